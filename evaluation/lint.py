"""LINT as LINK's released code writes it: one CSV of values a rule and distribution, read as statements.

`rule2_value_cache.csv_head` and `rule2_value_cache.csv_longtail` have a column for each variable of `rule2`, the
generic one filled with `PersonX`. The labels that people turned are in `flip_label_data.json`: method -> rule -> `head`
and `longtail` -> numbers of rows, from 0, equal rows counted once.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from evaluation.estimates import Estimate, mean
from evaluation.probing.items import ENTAILMENT, NO_DOMAIN
from evaluation.probing.metrics import TOTAL, in_order
from evaluation.stated import Stated
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from grammar.terms import Value
from kb.records import (
    Distribution,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    StatementRecord,
    VoteRecord,
    content_id,
)
from kb.store import KnowledgeBase
from llm_oracle.answers import parse_number
from llm_oracle.calls import EVALUATOR, Journal, JournaledLikelihood
from llm_oracle.protocols import LikelihoodModel

FLIPS_FILE = "flip_label_data.json"
VOTER = "LINK's annotators, by majority"

PAPER_RULES, PAPER_PERSONS, PAPER_OBJECTS = 417, 149, 268
PAPER_HEAD, PAPER_LONG_TAIL = 54_220, 54_366
RELEASED_RULES = 200
"""What LINK's README says of its released rules; the paper's counts are table 16's and section 2.1's."""

_ENDS = {"head": Distribution.HEAD, "longtail": Distribution.LONG_TAIL}
_FILE = re.compile(rf"(?P<rule>.+)_value_cache\.csv_(?P<end>{'|'.join(_ENDS)})")


@dataclass(frozen=True, slots=True)
class LintFile:
    """One CSV. A row is None where a cell is empty; rows that repeat an earlier one are `repeated` and left out."""

    path: Path
    rule: Rule
    distribution: Distribution
    rows: tuple[StatementRecord | None, ...]
    repeated: int

    @property
    def statements(self) -> list[StatementRecord]:
        return [one for one in self.rows if one is not None]


@dataclass(frozen=True, slots=True)
class DomainCount:
    """One line of LINK's table 16, with delta: how much likelier the head is, mean over rules, in nats a token."""

    domain: str
    rules: int
    head: int
    long_tail: int
    delta: Estimate


@dataclass(frozen=True, slots=True)
class LintReport:
    """What an import brought. `persons`: rules that speak about a person; `turned`: labels that people turned;
    `incomplete`: rows without a value.
    """

    domains: tuple[DomainCount, ...]
    persons: int
    repeated: int
    incomplete: int
    turned: int


@dataclass
class LintReader:
    """Reads a folder by the rules of a library."""

    library: Library
    folder: Path
    _run: str = field(init=False)

    def __post_init__(self) -> None:
        self._run = content_id("run", "lint", self.folder.name, sorted(rule.name for rule in self.library.rules))

    @property
    def run_id(self) -> str:
        return self._run

    def files(self) -> list[LintFile]:
        """Every CSV of the folder. Raises HapaxError for an unknown rule, a missing column, and an empty folder."""
        found = [
            self._file(path, self.library.rule(match["rule"]), _ENDS[match["end"]])
            for path in sorted(self.folder.iterdir())
            if (match := _FILE.fullmatch(path.name))
        ]
        if not found:
            raise HapaxError(
                f"{self.folder}: no file such as rule2_value_cache.csv_head. Name the folder of LINT's CSV files."
            )
        return found

    def _file(self, path: Path, rule: Rule, distribution: Distribution) -> LintFile:
        wanted = [variable.name for variable in rule.searched]
        rows: list[StatementRecord | None] = []
        repeated = 0
        seen: set[tuple[str, ...]] = set()
        try:
            with path.open(encoding="utf-8-sig", newline="") as stream:
                reader = csv.DictReader(stream, strict=True)
                missing = [name for name in wanted if name not in (reader.fieldnames or ())]
                if missing:
                    raise HapaxError(
                        f"{path}: no column {missing[0]}, which {rule.name} searches. Name the rules that LINT was "
                        "made with."
                    )
                told = [one.name for one in rule.variables if one.name in (reader.fieldnames or ())]
                for row in reader:
                    cells = tuple(row[name] or "" for name in reader.fieldnames or ())
                    if cells in seen:
                        repeated += 1
                        continue
                    seen.add(cells)
                    rows.append(self._statement(rule, distribution, {name: row[name] or "" for name in told}))
        except (csv.Error, UnicodeDecodeError) as fault:
            raise HapaxError(f"{path}: no CSV in UTF-8 ({fault}). Mend or remove the file.") from None
        return LintFile(path, rule, distribution, tuple(rows), repeated)

    def _statement(self, rule: Rule, distribution: Distribution, cells: Mapping[str, str]) -> StatementRecord | None:
        """The generic variable keeps LINT's name for it, whatever the rule calls it."""
        types = {variable.name: variable.data_type for variable in rule.variables}
        words = {name: " ".join(cell.replace("_", " ").split()) for name, cell in cells.items()}
        if not all(words.values()):
            return None
        values = {name: self._value(text, types[name]) for name, text in words.items()}
        return Stated(self.library, rule, distribution, self.run_id).statement(values)

    def _value(self, text: str, data_type: str) -> Value:
        number = parse_number(text, data_type) if self.library.is_numeric(data_type) else None
        return text if number is None else number


def read_flips(path: Path, method: str) -> dict[str, dict[Distribution, frozenset[int]]]:
    """The rows whose labels people turned, by rule and distribution."""
    try:
        by_rule = json.loads(path.read_text("utf-8"))[method]
        return {
            rule: {_ENDS[end]: frozenset(map(int, numbers)) for end, numbers in ends.items()}
            for rule, ends in by_rule.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise HapaxError(
            f"{path}: no such file as LINK's, which is "
            f'{{"{method}": {{"rule2": {{"head": [0], "longtail": []}}}}}} ({fault!r}). '
            "Name another file, or another --method."
        ) from None


def import_lint(
    kb: KnowledgeBase,
    reader: LintReader,
    flips: Mapping[str, Mapping[Distribution, frozenset[int]]],
    evaluator: LikelihoodModel,
    journal: Journal,
) -> LintReport:
    """Store the folder's statements with their likelihoods, the rules behind them, and people's votes; idempotent."""
    files = reader.files()
    votes = [vote for one in files for vote in _votes(one, flips.get(one.rule.name, {}).get(one.distribution, ()))]
    files = _measured(files, JournaledLikelihood(evaluator, journal, role=EVALUATOR))
    rules = list(dict.fromkeys(one.rule for one in files))
    report = LintReport(
        tuple(_domain_counts(files)),
        sum(_is_about_a_person(rule, reader.library) for rule in rules),
        sum(one.repeated for one in files),
        sum(len(one.rows) - len(one.statements) for one in files),
        len(votes),
    )
    settings = {"folder": reader.folder.name, "evaluator": evaluator.identity.name}
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    with kb.transaction():
        kb.start_run(RunRecord(reader.run_id, "evaluate lint", settings, reader.run_id, started))
        kb.add_predicates(map(PredicateRecord.of, reader.library.completed().signatures))
        kb.add_rules(RuleRecord(one.name, str(one), one.domain, one.principle, one.polarity) for one in rules)
        kb.add_statements(each for one in files for each in one.statements)
        kb.add_votes(votes)
        counts = {"statements": sum(len(one.statements) for one in files), "labels_turned": len(votes)}
        kb.finish_run(reader.run_id, summary=counts)
    return report


def _votes(one: LintFile, flipped: frozenset[int] | tuple[()]) -> Iterator[VoteRecord]:
    for number in sorted(flipped):
        row = one.rows[number] if 0 <= number < len(one.rows) else None
        if row is None:
            raise HapaxError(f"{one.path}: there is no row {number} whose label could be turned. Compare {FLIPS_FILE}.")
        yield VoteRecord(row.id, ENTAILMENT, VOTER, "no")


def _measured(files: Sequence[LintFile], evaluator: JournaledLikelihood) -> list[LintFile]:
    texts = list(dict.fromkeys(each.text for one in files for each in one.statements))
    scores = dict(zip(texts, evaluator.log_likelihoods(texts), strict=True))
    means = {text: score.per_token if score.token_count else None for text, score in scores.items()}
    return [
        replace(one, rows=tuple(row and replace(row, log_likelihood=means[row.text]) for row in one.rows))
        for one in files
    ]


def _domain_counts(files: Sequence[LintFile]) -> Iterator[DomainCount]:
    by_domain: dict[str, list[LintFile]] = {}
    for one in files:
        by_domain.setdefault(one.rule.domain or NO_DOMAIN, []).append(one)
    for domain in in_order(by_domain):
        yield _domain_count(domain, by_domain[domain])
    yield _domain_count(TOTAL, files)


def _domain_count(domain: str, files: Sequence[LintFile]) -> DomainCount:
    counts = {each: sum(len(one.statements) for one in files if one.distribution is each) for each in Distribution}
    rules = list(dict.fromkeys(one.rule.name for one in files))
    deltas = [delta for name in rules if (delta := _delta([one for one in files if one.rule.name == name])) is not None]
    return DomainCount(domain, len(rules), counts[Distribution.HEAD], counts[Distribution.LONG_TAIL], mean(deltas))


def _delta(files: Sequence[LintFile]) -> float | None:
    ends: dict[Distribution, list[float]] = {each: [] for each in Distribution}
    for one in files:
        ends[one.distribution] += [row.log_likelihood for row in one.statements if row.log_likelihood is not None]
    if not all(ends.values()):
        return None
    return fmean(ends[Distribution.HEAD]) - fmean(ends[Distribution.LONG_TAIL])


def table_16_rows(domains: Iterable[DomainCount]) -> list[tuple[str, ...]]:
    """Table 16 with delta."""
    return [(one.domain, str(one.rules), str(one.head), str(one.long_tail), _signed(one.delta)) for one in domains]


def _signed(delta: Estimate) -> str:
    if delta.count == 0:
        return "n/a"
    return f"{delta.value:.2f}" if math.isnan(delta.low) else f"{delta.value:.2f} ({delta.low:.2f} to {delta.high:.2f})"


def _is_about_a_person(rule: Rule, library: Library) -> bool:
    return any(library.is_person(one.data_type) for one in rule.variables if one.name in rule.generic)


def size_note(report: LintReport) -> str:
    """How much of LINT this is."""
    total = report.domains[-1]
    released = " LINK's README gives its released rules as 200: this is that part." * (total.rules == RELEASED_RULES)
    return (
        f"Of LINT's {PAPER_RULES} rules {total.rules}, of its {PAPER_PERSONS} about persons {report.persons}, of its "
        f"{PAPER_OBJECTS} about things {total.rules - report.persons}; of its {PAPER_HEAD:,} head statements "
        f"{total.head:,} and of its {PAPER_LONG_TAIL:,} long-tail ones {total.long_tail:,}.{released}"
    )


def report_json(report: LintReport) -> dict[str, Any]:
    """The same for programs."""
    rest = {
        "rules_about_persons": report.persons,
        "repeated": report.repeated,
        "incomplete": report.incomplete,
        "labels_turned": report.turned,
    }
    return {"table_16": table_16_json(report.domains), **rest}


def table_16_json(domains: Iterable[DomainCount]) -> list[dict[str, Any]]:
    """Table 16 for programs; a delta that cannot be measured is null."""
    return [
        {
            "domain": one.domain,
            "rules": one.rules,
            "head": one.head,
            "long_tail": one.long_tail,
            "delta": one.delta.value if one.delta.count else None,
        }
        for one in domains
    ]
