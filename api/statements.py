"""Statements, and the derivation in bulk of all that follow from the stored facts."""

from __future__ import annotations

import html
import math
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, overload

from hapax.engine.answers.derivation import DerivationReport, derive_all, read_statements
from hapax.engine.answers.statement_lines import LineWriter, statement_lines
from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.proof import Proof, proof_from_json, proof_text
from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.engine.probability.probable_answers import Probability, basis_of, statement_probabilities
from hapax.engine.query_options import ProbabilityOptions
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.notebook import Tabular
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class Statement:
    """A derived statement: `If premise, then conclusion.` with its substitution, likelihood and proof."""

    record: StatementRecord

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def rule(self) -> str:
        return self.record.rule

    @property
    def distribution(self) -> str:
        """`head` or `long_tail`."""
        return self.record.distribution.value

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def values(self) -> dict[str, Any]:
        """The substitution: the values by variable name."""
        return dict(self.record.substitution)

    @property
    def log_likelihood(self) -> float | None:
        """Mean token log-likelihood under the evaluator, in nats."""
        return self.record.log_likelihood

    @property
    def proof(self) -> Proof:
        return proof_from_json(self.record.proof)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        proof = html.escape(proof_text(self.proof))
        return f"<details><summary>{html.escape(self.text)}</summary><pre>{proof}</pre></details>"


class Statements(Tabular, Sequence[Statement]):
    """Statements in the order they were derived."""

    columns = ("rule", "distribution", "text", "premise", "conclusion", "log_likelihood")

    def __init__(self, records: Sequence[StatementRecord]) -> None:
        self._records = records

    def cells(self) -> list[tuple[Any, ...]]:
        return [
            (
                record.rule,
                record.distribution.value,
                record.text,
                record.premise,
                record.conclusion,
                record.log_likelihood,
            )
            for record in self._records
        ]

    def of(self, distribution: str) -> Statements:
        """The statements of one distribution, `head` or `long_tail`."""
        try:
            wanted = Distribution(distribution)
        except ValueError:
            names = " or ".join(end.value for end in Distribution)
            raise HapaxError(f"There is no distribution {distribution!r}. Choose {names}.") from None
        return Statements([record for record in self._records if record.distribution is wanted])

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> Statement: ...
    @overload
    def __getitem__(self, place: slice) -> Statements: ...
    def __getitem__(self, place: int | slice) -> Statement | Statements:
        if isinstance(place, slice):
            return Statements(self._records[place])
        return Statement(self._records[place])

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'statement')}>"


class Derivation(Tabular):
    """The outcome of a bulk derivation: its statements, and its table with a row for each rule.

    `report` has all figures; `read` reads the statements one by one from the knowledge base, which must still be open,
    and `lines` their lines for a file in batches. With probabilities, `probabilities` has that of each of `statements`,
    which are the most probable first, and `basis` says which scores count as the facts' probabilities.
    """

    columns: tuple[str, ...] = ("rule", "statements", "seconds")

    def __init__(
        self,
        report: DerivationReport,
        kb: KnowledgeBase,
        library: Library,
        rules: Sequence[Rule],
        probability: ProbabilityOptions | None = None,
    ) -> None:
        self.report = report
        self._kb, self._library, self._rules, self._options = kb, library, rules, probability
        if probability is not None:
            # Of this object alone; the class keeps its columns.
            self.columns = (*self.columns, "expected")
        self.basis = "" if probability is None else basis_of(kb, library)

    def read(self) -> Generator[StatementRecord]:
        """The statements one by one: there may be millions."""
        for rule in self._rules:
            yield from read_statements(self._kb, self._library, rule)

    def lines(self, line_of: LineWriter) -> Generator[list[str]]:
        """Their lines in batches."""
        for rule in self._rules:
            yield from statement_lines(self._kb, self._library, rule, line_of)

    @cached_property
    def by_rule(self) -> list[list[Probability]]:
        """The probability of each statement of each rule, in the order of `read`; empty without probabilities."""
        # Cached: to compute them takes long, and several properties need them.
        if self._options is None:
            return []
        return [statement_probabilities(self._kb, self._library, rule, self._options) for rule in self._rules]

    @property
    def expected(self) -> list[float]:
        """The number of true statements that is expected of each rule: the sum of (lower bounds of) probabilities."""
        sums = []
        for probabilities in self.by_rule:
            # Without the rounding of a long sum.
            sums.append(math.fsum(probability.lower for probability in probabilities))
        return sums

    @property
    def probabilities(self) -> list[Probability]:
        """The probabilities of `statements`; empty if none were asked for."""
        return [probability for probability, _ in self._ranked()] if self.by_rule else []

    @property
    def statements(self) -> Statements:
        """The stored statements of the derived rules, read into memory; with probabilities the most probable first."""
        if not self.by_rule:
            return Statements(list(self.read()))
        records = list(self.read())
        return Statements([records[place] for _, place in self._ranked()])

    def _ranked(self) -> list[tuple[Probability, int]]:
        """The probabilities that are high enough, the highest first, with the places of their statements."""
        flat = chain.from_iterable(self.by_rule)
        at_least = 0.0 if self._options is None else self._options.at_least
        kept = [(found, place) for place, found in enumerate(flat) if found.lower >= at_least]
        # Of equal probabilities the earlier statement comes first.
        return sorted(kept, key=lambda pair: (-pair[0].lower, -pair[0].upper, pair[1]))

    def write(self, path: str | Path) -> int:
        """Write the statements with their proofs to a file named .jsonl or .parquet, and return their number."""
        from hapax.evaluation.dataset import columns

        path = Path(path)
        columns.check_output(path)
        if path.suffix == ".jsonl":
            # Closed at once if writing fails: the generator reads inside a transaction of the knowledge base.
            with closing(self.lines(columns.derived_line)) as batches:
                if not self.by_rule:
                    return columns.write_lines(path, batches)
                # The order is by probability, so all lines must be known before the first is written.
                every = list(chain.from_iterable(batches))
            return columns.write_lines(path, ([columns.probable_line(every[n], found)] for found, n in self._ranked()))
        with closing(self.read()) as statements:
            if not self.by_rule:
                return columns.write_derived(path, ((record, None) for record in statements), columns.DERIVED)
            records = list(statements)
        return columns.write_derived(path, ((records[n], found) for found, n in self._ranked()), columns.PROBABLE)

    def cells(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = [(rule.rule, rule.statements, rule.seconds) for rule in self.report.rules]
        if not self.by_rule:
            return rows
        return [(*row, expected) for row, expected in zip(rows, self.expected, strict=True)]

    def __repr__(self) -> str:
        count = sum(rule.statements for rule in self.report.rules)
        return f"<derivation of {counted(len(self.report.rules), 'rule')}, {counted(count, 'statement')}>"


@checked
def derive(
    rules: Library,
    kb: KnowledgeBase,
    *,
    only: str | Sequence[str] = (),
    probability: ProbabilityOptions | None = None,
    seconds: float | None = None,
) -> Derivation:
    """Derive everything that rules conclude from the stored facts, in bulk, and store it. No model is asked.

    Where statements are stored and few facts have changed since, only what the change affects is derived.
    `probability`: the statements come with the probabilities of what their rules need, the most probable first.
    `seconds`: a time limit, after which LimitExceeded is raised and nothing is stored. The report names the rules that
    were left out for their errors.
    """
    rules = sound_rules(rules)
    chosen = chosen_rules(rules, only)
    # With the rules that derive premises of the chosen ones.
    library = relevant_library(rules, *chosen) if only else rules
    library.refuse_uncertain()
    report = derive_all(kb, library, chosen, seconds=seconds)
    report = replace(report, left_out=tuple(map(str, rules.left_out or ())))
    return Derivation(report, kb, library, chosen, probability)
