"""Import LINK's dataset LINT: a CSV file of values for each rule and distribution, as LINK's released code writes it.

`rule2_value_cache.csv_head` and `rule2_value_cache.csv_longtail` have a column for each variable of `rule2`; the
generic variable's cells are `PersonX`. `flip_label_data.json` has the labels that people flipped: method -> rule ->
`head` and `longtail` -> row numbers, from 0, where equal rows count once. Nothing has checked such statements.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

from hapax.engine.inference.proof import By, Proof
from hapax.engine.judgements import ENTAILMENT_QUESTION, LINK_ANNOTATORS
from hapax.evaluation.shared.estimates import Estimate, mean
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, grouped
from hapax.evaluation.shared.stored_statements import NO_DOMAIN, TOTAL, ordered_domains
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Literal, Substitution, Value
from hapax.grammar.writing.verbalize import statement_text
from hapax.grammar.writing.words import counted
from hapax.kb.exchange.csv_text import read_cell
from hapax.kb.files.whole_files import read_text
from hapax.kb.judgement_records import VOTES, VoteRecord
from hapax.kb.records import (
    PREDICATES,
    RULES,
    RUNS,
    Distribution,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledLikelihood
from hapax.llm_oracle.protocols import EVALUATOR, LikelihoodModel
from hapax.llm_oracle.reading.link_replies import parse_number


@dataclass(frozen=True, slots=True)
class GivenStatementWriter:
    """Writes the statements of one rule, distribution and run."""

    library: Library
    rule: Rule
    distribution: Distribution
    run_id: str

    def statement(self, values: Mapping[str, Value]) -> StatementRecord:
        """The rule with these values, in words. A generic variable that has a value is named by it."""
        bound = {name: Constant(value) for name, value in values.items()}
        rule, library = self.rule, self.library
        words = statement_text(rule, library, bound)
        return StatementRecord(
            rule.name,
            self.distribution,
            self.run_id,
            tuple(values.items()),
            words.premise,
            words.conclusion,
            _proof(rule, bound).to_json(),
        )


def _proof(rule: Rule, bound: Mapping[str, Constant]) -> Proof:
    """A proof by the rule itself: information is assumed, constraints are taken as given."""
    # Generic variables stay variables: the proof holds for any person.
    searched = Substitution(tuple((name, value) for name, value in bound.items() if name not in rule.generic))

    def substituted(literal: Literal) -> Literal:
        return Literal(searched.apply(literal.atom), literal.negated)

    premises = []
    for literal in rule.literals:
        # Information is the premise that a reader supposes; constraints are facts from elsewhere.
        source = By.ASSUMPTION if rule.is_information(literal) else By.GIVEN
        premises.append(Proof(substituted(literal), source))
    return Proof(substituted(rule.conclusion), By.RULE, rule.name, tuple(premises))


FLIPS_FILE = "flip_label_data.json"

PAPER_RULES, PAPER_PERSONS, PAPER_OBJECTS = 417, 149, 268
PAPER_HEAD, PAPER_LONG_TAIL = 54_220, 54_366
RELEASED_RULES = 200
"""Number of released rules according to LINK's README; the paper's counts are from table 16 and section 2.1."""

_SUFFIXES = {"head": Distribution.HEAD, "longtail": Distribution.LONG_TAIL}
_FILE = re.compile(rf"(?P<rule>.+)_value_cache\.csv_(?P<suffix>{'|'.join(_SUFFIXES)})")


@checked
@dataclass(frozen=True)
class FlippedLabels:
    """File of labels of LINT that people flipped, None for the folder's own, and the method whose labels are used."""

    path: Path | None = None
    method: str = "LINK"


@dataclass(frozen=True, slots=True)
class LintFile:
    """A CSV file. A row with an empty cell is None; `repeated` rows equal an earlier row and are left out."""

    path: Path
    rule: Rule
    distribution: Distribution
    rows: tuple[StatementRecord | None, ...]
    repeated: int

    @property
    def statements(self) -> list[StatementRecord]:
        return [row for row in self.rows if row is not None]


@dataclass(frozen=True, slots=True)
class DomainCount:
    """A row of LINK's table 16. `delta`: how much likelier the head is, in nats per token, mean over rules."""

    domain: str
    rules: int
    head: int
    long_tail: int
    delta: Estimate


@dataclass
class DomainTally:
    """Counts statements for table 16 as they are taken. `rules`: the domain of each rule, also without statements."""

    rules: dict[str, str]
    _sizes: Counter[tuple[str, Distribution]] = field(default_factory=Counter)
    _scores: list[tuple[str, Distribution, str, float]] = field(default_factory=list)

    def take(self, statement: StatementRecord, evaluator: str | None = None) -> None:
        """Count a statement; `evaluator`: who measured its likelihood."""
        rule, distribution, score = statement.rule, statement.distribution, statement.log_likelihood
        self._sizes[rule, distribution] += 1
        if score is not None and math.isfinite(score):
            self._scores.append((rule, distribution, evaluator or "", score))

    def counts(self) -> tuple[DomainCount, ...]:
        """LINK's domains in its order, then others, the total last."""
        deltas = {}
        for rule, found in grouped(self._scores, lambda row: row[0]).items():
            ends = grouped(found, lambda row: row[1:3])
            # Of one and the same evaluator: scores of different ones cannot be subtracted from each other.
            if len(ends) == len(Distribution) and len({evaluator for _, evaluator in ends}) == 1:
                means = {end: fmean(score for *_, score in rows) for (end, _), rows in ends.items()}
                deltas[rule] = means[Distribution.HEAD] - means[Distribution.LONG_TAIL]
        counts = []
        for domain in (*ordered_domains(self.rules.values()), TOTAL):
            rules = [rule for rule in sorted(self.rules) if domain in (TOTAL, self.rules[rule])]
            head, tail = (sum(self._sizes[rule, end] for rule in rules) for end in Distribution)
            of_rules = mean([deltas[rule] for rule in rules if rule in deltas])
            counts.append(DomainCount(domain, len(rules), head, tail, of_rules))
        return tuple(counts)


@dataclass(frozen=True, slots=True)
class LintReport:
    """Counts of an import. `persons`: rules about a person; `turned`: labels that people flipped; `incomplete`: rows
    with an empty cell.
    """

    domains: tuple[DomainCount, ...]
    persons: int
    repeated: int
    incomplete: int
    turned: int

    def evaluation(self) -> Evaluation[LintReport]:
        """Table 16, with notes on the rows left out and on the share of LINT that was imported."""
        figures = {
            "table_16": table_16_json(self.domains),
            "rules_about_persons": self.persons,
            "repeated": self.repeated,
            "incomplete": self.incomplete,
            "labels_turned": self.turned,
        }
        rows_note = (
            f"left out: {counted(self.repeated, 'repeated row')} and {counted(self.incomplete, 'row')} with an empty "
            f"cell; people flipped {counted(self.turned, 'label')}"
        )
        total = self.domains[-1]
        size_note = (
            f"{total.rules} of LINT's {PAPER_RULES} rules: {self.persons} of its {PAPER_PERSONS} about persons and "
            f"{total.rules - self.persons} of its {PAPER_OBJECTS} about objects; {total.head:,} of its {PAPER_HEAD:,} "
            f"head statements and {total.long_tail:,} of its {PAPER_LONG_TAIL:,} long-tail statements."
        )
        if total.rules == RELEASED_RULES:
            size_note += f" These are LINK's released rules, {RELEASED_RULES} according to its README."
        return Evaluation(self, [table_16(self.domains)], figures, notes=(rows_note, size_note))


@dataclass
class LintReader:
    """Reader of a folder of LINT's files, by the rules of a library."""

    library: Library
    folder: Path

    @cached_property
    def run_id(self) -> str:
        """Id of the run that an import stores; the same folder and rules give the same run."""
        return content_id("run", "lint", self.folder.name, sorted(rule.name for rule in self.library.rules))

    def files(self) -> list[LintFile]:
        """All CSV files of the folder. Raises HapaxError for an unknown rule, a missing column, or if there is none."""
        files = []
        # Sorted, because folders have no order of their own and statements are stored in that of the files.
        for path in sorted(self.folder.iterdir()):
            if match := _FILE.fullmatch(path.name):
                files.append(self._file(path, self.library.rule(match["rule"]), _SUFFIXES[match["suffix"]]))
        if not files:
            raise HapaxError(
                f"{self.folder}: no file such as rule2_value_cache.csv_head. Name the folder of LINT's CSV files."
            )
        return files

    def _file(self, path: Path, rule: Rule, distribution: Distribution) -> LintFile:
        searched = [variable.name for variable in rule.searched]
        reader = csv.DictReader(io.StringIO(read_text(path, "Fix or remove it."), newline=""), strict=True)
        try:
            columns = reader.fieldnames or ()
            # A row that ends early has None in its last cells.
            rows = [tuple(read_cell(row[name] or "") for name in columns) for row in reader]
        except csv.Error as fault:
            raise HapaxError(f"{path}: not valid CSV in UTF-8 ({fault}). Fix or remove the file.") from None
        if missing := [name for name in searched if name not in columns]:
            raise HapaxError(
                f"{path}: no column {missing[0]}, a variable that rule {rule.name} searches. Use the rules that LINT "
                "was made with."
            )
        variables = [variable.name for variable in rule.variables if variable.name in columns]
        # LINK's code removes equal rows before it numbers them for the labels that people flipped.
        distinct = dict.fromkeys(rows)
        statements = []
        for cells in distinct:
            by_name = dict(zip(columns, cells, strict=True))
            # Rows without a statement stay as None: labels refer to rows by number.
            statements.append(self._statement(rule, distribution, {name: by_name[name] for name in variables}))
        return LintFile(path, rule, distribution, tuple(statements), len(rows) - len(distinct))

    def _statement(self, rule: Rule, distribution: Distribution, cells: Mapping[str, str]) -> StatementRecord | None:
        """The statement of a row's cells; None if one is empty."""
        types = {variable.name: variable.data_type for variable in rule.variables}
        # The release joins the words of a value by underscores.
        words = {name: " ".join(cell.replace("_", " ").split()) for name, cell in cells.items()}
        if not all(words.values()):
            return None
        values: dict[str, Value] = {}
        for name, text in words.items():
            number = parse_number(text, types[name]) if self.library.is_numeric(types[name]) else None
            # A text where a number is expected stays as LINT has it.
            values[name] = text if number is None else number
        # The generic variable's value is `PersonX`, so that LINT's own name for it appears in the statement.
        return GivenStatementWriter(self.library, rule, distribution, self.run_id).statement(values)


def read_flips(path: Path, method: str) -> dict[str, dict[Distribution, frozenset[int]]]:
    """Read the numbers of the rows whose labels people flipped, by rule and distribution."""
    try:
        flips: dict[str, dict[Distribution, frozenset[int]]] = {}
        for rule, by_suffix in json.loads(path.read_text("utf-8"))[method].items():
            flips[rule] = {_SUFFIXES[suffix]: frozenset(map(int, rows)) for suffix, rows in by_suffix.items()}
    # OverflowError: Python reads Infinity in JSON, which is no row number.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as fault:
        raise HapaxError(
            f'{path}: not a file of flipped labels for {method} ({fault!r}). Expected, for example, {{"'
            f'{method}": {{"rule2": {{"head": [0], "longtail": []}}}}}}.',
            Remedy("Name another file or {}.", Setting("labels.method")),
        ) from None
    return flips


@checked
def import_lint(
    kb: KnowledgeBase,
    rules: Library,
    folder: str | Path,
    evaluator: LikelihoodModel,
    *,
    flips: FlippedLabels | None = None,
    journal: Journal | None = None,
) -> Evaluation[LintReport]:
    """Store the statements of LINK's dataset LINT from the CSV files of a folder and count them: LINK's table 16.

    Statements come with their likelihoods, their rules and people's votes; the same import again changes nothing.
    `rules`: LINT's own; `evaluator`: the model that measures delta, such as `open_models(...).evaluator`; `flips`: file
    and method of labels that people flipped, else the folder's own file for the method LINK.
    """
    reader, flips = LintReader(rules, Path(folder)), flips or FlippedLabels()
    # A file that the caller names, else the one that the folder brings, if any.
    own = reader.folder / FLIPS_FILE
    path = flips.path or (own if own.exists() else None)
    flipped = read_flips(path, flips.method) if path else {}
    files = reader.files()
    votes: list[VoteRecord] = []
    # Before a model is asked: a wrong row number is reported first.
    for file in files:
        votes += _votes(file, flipped.get(file.rule.name, {}).get(file.distribution, frozenset()))
    statements = list(chain.from_iterable(file.statements for file in files))
    # Equal texts are asked for once.
    texts = list(dict.fromkeys(statement.text for statement in statements))
    journaled = JournaledLikelihood(evaluator, journal or Journal(kb), role=EVALUATOR)
    scores = dict(zip(texts, journaled.log_likelihoods(texts), strict=True))
    used = {file.rule.name: file.rule for file in files}
    tally = DomainTally({name: rule.domain or NO_DOMAIN for name, rule in used.items()})
    for place, statement in enumerate(statements):
        score = scores[statement.text]
        statements[place] = replace(statement, log_likelihood=score.per_token if score.token_count else None)
        tally.take(statements[place])
    persons = 0
    for rule in used.values():
        generic = (variable.data_type for variable in rule.variables if variable.name in rule.generic)
        persons += any(map(rules.is_person, generic))
    repeated, rows = (sum(counts) for counts in zip(*((file.repeated, len(file.rows)) for file in files), strict=True))
    report = LintReport(tally.counts(), persons, repeated, rows - len(statements), len(votes))
    settings = {"folder": reader.folder.name, "evaluator": evaluator.identity.name}
    # An import that is killed leaves nothing behind.
    with kb.transaction():
        kb.add(RUNS, [RunRecord.now(reader.run_id, "evaluate lint", settings)])
        kb.add(PREDICATES, map(PredicateRecord.of, reader.library.completed().signatures))
        kb.add(RULES, map(RuleRecord.of, used.values()))
        kb.add_statements(statements)
        kb.add(VOTES, votes)
        kb.finish_run(reader.run_id, summary={"statements": len(statements), "labels_turned": len(votes)})
    return report.evaluation()


def _votes(file: LintFile, flipped: frozenset[int]) -> Iterator[VoteRecord]:
    for number in sorted(flipped):
        row = file.rows[number] if 0 <= number < len(file.rows) else None
        if row is None:
            raise HapaxError(f"{file.path} has no row {number}, whose label is to be flipped. Check {FLIPS_FILE}.")
        # LINK publishes which labels were flipped, but no vote: one denial stands for the majority.
        yield VoteRecord(row.id, ENTAILMENT_QUESTION, LINK_ANNOTATORS, "no")


def table_16(domains: Iterable[DomainCount]) -> ResultTable:
    """Table 16 with delta."""
    rows = [
        (count.domain, str(count.rules), str(count.head), str(count.long_tail), count.delta.text(2, 2))
        for count in domains
    ]
    return ResultTable("", ("domain", "rules", "head", "long tail", "delta"), rows)


def table_16_json(domains: Iterable[DomainCount]) -> list[dict[str, Any]]:
    """Table 16 for programs; a delta that cannot be measured is null."""
    return [{**asdict(count), "delta": count.delta.value if count.delta.count else None} for count in domains]
