"""Results of the Python API: plain values, data frames, and how a notebook shows them."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hapax.api.tabular import Tabular
from hapax.engine.inference.proof import Proof, proof_from_json, proof_text
from hapax.engine.inference.session import PrologTerm
from hapax.engine.stories import Story, story_text
from hapax.grammar.errors import HapaxError
from hapax.grammar.words import counted
from hapax.kb.records import Distribution
from hapax.kb.values import encode_decimal

if TYPE_CHECKING:
    from hapax.engine.inference.theory import QueryResult
    from hapax.engine.logic.derive import DerivationReport
    from hapax.engine.logic.statement_lines import LineWriter
    from hapax.engine.probability.answers import Probability, ProbableAnswers
    from hapax.engine.search.account import StepAccount
    from hapax.engine.search.report import SearchReport
    from hapax.kb.records import StatementRecord


PROBABILITY = "probability"
"""The column of an answer's probability; no variable of a goal begins with a small letter."""


# --- answers ----------------------------------------------------------------------------------------------------------


class Answers(Tabular, Sequence[dict[str, Any]]):
    """The answers of a goal: a sequence of dicts, one for each distinct answer, by the goal's variables.

    A goal without variables has no columns; `holds` and the truth of the object tell if it holds. `truncated`: there
    were more answers than the limit. `complete` is False if facts are still missing; `stopped` says why and what to do.
    With probabilities the column `probability` has that of each answer, or its lower bound; `probabilities` has the
    upper bounds and methods as well, and `basis` says which scores count as the facts' probabilities.
    """

    def __init__(self, result: QueryResult, *, complete: bool = True, stopped: str = "") -> None:
        self.result = result
        self.columns = result.columns
        self.rows = [tuple(map(_python_value, row)) for row in result.rows]
        self.holds = result.holds
        self.truncated = result.truncated
        self.complete = complete
        self.stopped = stopped
        self.probabilities: list[Probability] = []
        self.basis = ""

    @classmethod
    def probable(cls, found: ProbableAnswers, complete: bool = True, stopped: str = "") -> Answers:
        """Answers with probabilities."""
        answers = cls(found.result, complete=complete, stopped=stopped)
        answers.probabilities, answers.basis = found.probabilities, found.basis
        answers.columns = (*answers.columns, PROBABILITY)
        answers.rows = [
            (*row, probability.lower) for row, probability in zip(answers.rows, found.probabilities, strict=True)
        ]
        return answers

    def cells(self) -> Sequence[Sequence[Any]]:
        return self.rows

    def to_json(self) -> dict[str, Any]:
        """The answers as a JSON object; a decimal becomes `{"decimal": "0.1"}`, a Prolog term its text."""
        rows = [dict(zip(self.result.columns, map(_json_cell, row), strict=True)) for row in self.result.rows]
        if PROBABILITY not in self.columns:
            return {"answers": rows, "truncated": self.truncated}
        for number, probability in enumerate(self.probabilities):
            # A variable begins with a capital letter, so that no name occurs twice.
            rows[number].update(probability.to_json())
        return {"answers": rows, "truncated": self.truncated, "basis": self.basis}

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [self._answer(row) for row in self.rows[place]]
        return self._answer(self.rows[place])

    def _answer(self, row: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.columns, row, strict=True))

    def __repr__(self) -> str:
        if not self.columns:
            return f"Answers(holds={self.holds})"
        return f"Answers({list(self)!r})"

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self.columns else f"<p>{'true' if self.holds else 'false'}</p>"


def _json_cell(cell: Any) -> Any:
    if isinstance(cell, PrologTerm):
        # A Prolog list is a term of the name `[]` with its items as arguments.
        return [_json_cell(item) for item in cell.arguments] if cell.name == "[]" else str(cell)
    return encode_decimal(cell) if isinstance(cell, Decimal) else cell


def _python_value(cell: Any) -> Any:
    """A text or number as it is, a Prolog list as a list, any other Prolog term as its text."""
    if isinstance(cell, PrologTerm):
        return [_python_value(item) for item in cell.arguments] if cell.name == "[]" else str(cell)
    return cell


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


# --- searches ---------------------------------------------------------------------------------------------------------


class SearchResult(Tabular):
    """The outcome of a search: its statements, and its table with a row for each rule.

    `complete` is False where a budget was reached, and `stopped` says which; the same search goes on from there.
    `report` has all figures.
    """

    columns = ("rule", "head", "long_tail", "in_both", "delta", "calls", "skipped")

    def __init__(self, report: SearchReport) -> None:
        self.report = report
        self.complete = report.status == "done"
        self.stopped = report.budget or ""

    @property
    def statements(self) -> Statements:
        return Statements(self.report.statements)

    @property
    def account(self) -> SearchAccount:
        """The account of questions, lines and values, by rule and step."""
        return SearchAccount(self.report)

    @property
    def shortages(self) -> dict[str, str]:
        """By rule without a statement: where its values ran out, and the first remedy."""
        found = {rule.rule: rule.shortage() for rule in self.report.rules}
        return {rule: str(shortage) for rule, shortage in found.items() if shortage is not None}

    def cells(self) -> list[tuple[Any, ...]]:
        return [
            (
                rule.rule,
                rule.count(Distribution.HEAD),
                rule.count(Distribution.LONG_TAIL),
                rule.in_both,
                rule.delta,
                rule.calls,
                ", ".join(rule.skipped.unknown) if rule.skipped else None,
            )
            for rule in self.report.rules
        ]

    def __repr__(self) -> str:
        status = "" if self.complete else f", {self.report.status}"
        rules, statements = len(self.report.rules), len(self.statements)
        return f"<search of {counted(rules, 'rule')}, {counted(statements, 'statement')}{status}>"


class SearchAccount(Tabular, Sequence["StepAccount"]):
    """Account of a search: the questions, lines, values and substitutions of each step, a row for each rule and step.

    Its items are the steps with all details: reasons and an example of dropped lines, the highest P(yes) at each gate.
    """

    columns = (
        "rule",
        "step",
        "variable",
        "origin",
        "questions",
        "calls",
        "lines",
        "dropped",
        "drop_reason",
        "repeated",
        "unjudged",
        "below_type",
        "highest_type",
        "below_fact",
        "highest_fact",
        "rejected",
        "accepted",
        "given",
        "substitutions",
        "failed",
        "unranked",
        "cut",
        "kept",
    )

    def __init__(self, report: SearchReport) -> None:
        self._steps: list[tuple[str, StepAccount]] = []
        for rule in report.rules:
            self._steps.extend((rule.rule, step) for step in rule.account)

    def cells(self) -> list[tuple[Any, ...]]:
        from hapax.engine.search.gates import CRITIC, TYPE

        rows: list[tuple[Any, ...]] = []
        for rule, step in self._steps:
            of_type, of_fact = step.loss(TYPE.name), step.loss(CRITIC.name)
            asked = (step.questions, step.calls, step.lines, step.dropped_count)
            reason = step.commonest_drop[0] if step.commonest_drop else None
            below = (of_type.count, of_type.highest, of_fact.count, of_fact.highest, step.rejected)
            beams = (step.extended, step.failed_count, step.unranked, step.cut, step.kept)
            identity = (rule, step.step, step.variable, step.origin)
            unread = (reason, step.repeated, step.unjudged)
            # In the order of `columns`.
            rows.append((*identity, *asked, *unread, *below, step.accepted, step.given, *beams))
        return rows

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, place: int) -> StepAccount: ...
    @overload
    def __getitem__(self, place: slice) -> list[StepAccount]: ...
    def __getitem__(self, place: int | slice) -> StepAccount | list[StepAccount]:
        if isinstance(place, slice):
            return [step for _, step in self._steps[place]]
        return self._steps[place][1]

    def __repr__(self) -> str:
        return f"<account of {counted(len(self), 'step')}>"


@dataclass(frozen=True)
class StatementChances:
    """Probabilities of derived statements: `read` computes them rule by rule, and `at_least` is the lowest of interest.

    `basis`: the scores that count as the facts' probabilities.
    """

    read: Callable[[], Generator[list[Probability]]]
    at_least: float
    basis: str


class Derivation(Tabular):
    """The outcome of a bulk derivation: its statements, and its table with a row for each rule.

    `report` has all figures; `read` reads the statements one by one from the knowledge base, which must still be open,
    and `lines` their lines for a file in batches. With probabilities, `probabilities` has that of each of `statements`,
    which are the most probable first.
    """

    columns: tuple[str, ...] = ("rule", "statements", "seconds")

    def __init__(
        self,
        report: DerivationReport,
        read: Callable[[], Generator[StatementRecord]],
        lines: Callable[[LineWriter], Generator[list[str]]],
        chances: StatementChances | None = None,
    ) -> None:
        self.report = report
        self.read = read
        self.lines = lines
        self._chances = chances
        if chances is not None:
            # Of this object alone; the class keeps its columns.
            self.columns = (*self.columns, "expected")

    @cached_property
    def by_rule(self) -> list[list[Probability]]:
        """The probability of each statement of each rule, in the order of `read`; empty without probabilities."""
        # Cached: to compute them takes long, and several properties need them.
        return [] if self._chances is None else list(self._chances.read())

    @property
    def basis(self) -> str:
        """The scores that count as the facts' probabilities; empty without probabilities."""
        return "" if self._chances is None else self._chances.basis

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
        at_least = 0.0 if self._chances is None else self._chances.at_least
        kept = [(found, place) for place, found in enumerate(flat) if found.lower >= at_least]
        # Of equal probabilities the earlier statement comes first.
        return sorted(kept, key=lambda pair: (-pair[0].lower, -pair[0].upper, pair[1]))

    def write(self, path: str | Path) -> int:
        """Write the statements with their proofs to a file named .jsonl or .parquet, and return their number."""
        from hapax.evaluation.dataset.derived import (
            check_output,
            derived_line,
            probable_line,
            write_derived,
            write_lines,
            write_probable,
        )

        check_output(Path(path))
        if self.by_rule:
            if Path(path).suffix == ".jsonl":
                # Closed at once if writing fails: the generator reads inside a transaction of the knowledge base.
                with closing(self.lines(derived_line)) as batches:
                    # The order is by probability, so all lines must be known before the first is written.
                    every = list(chain.from_iterable(batches))
                return write_lines(Path(path), ([probable_line(every[n], found)] for found, n in self._ranked()))
            records = list(self.read())
            return write_probable(Path(path), ((records[place], found) for found, place in self._ranked()))
        if Path(path).suffix == ".jsonl":
            with closing(self.lines(derived_line)) as lines:
                return write_lines(Path(path), lines)
        with closing(self.read()) as statements:
            return write_derived(Path(path), statements)

    def cells(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = [(rule.rule, rule.statements, rule.seconds) for rule in self.report.rules]
        if not self.by_rule:
            return rows
        return [(*row, expected) for row, expected in zip(rows, self.expected, strict=True)]

    def __repr__(self) -> str:
        count = sum(rule.statements for rule in self.report.rules)
        return f"<derivation of {counted(len(self.report.rules), 'rule')}, {counted(count, 'statement')}>"


@dataclass(frozen=True)
class Explanation:
    """Why something holds or does not, as a tree of lines. `str()` gives indented text; a notebook unfolds it."""

    story: Story

    @property
    def lines(self) -> list[tuple[int, str, str]]:
        """Depth, kind (`goal`, `fact`, `call`, `gate` ...) and text of every line, from the top."""
        return [(depth, line.kind, line.text) for depth, line in self.story.lines()]

    def to_json(self) -> list[dict[str, Any]]:
        return self.story.to_json()

    def __str__(self) -> str:
        return story_text(self.story)

    def _repr_html_(self) -> str:
        """Nested lists; built line by line, because a proof may be deeper than Python's stack."""
        pieces, open_lists = [], 0
        for depth, line in self.story.lines():
            # Close the lists of lines that are not above this one.
            while open_lists > depth:
                pieces.append("</details></li></ul>")
                open_lists -= 1
            text = html.escape(line.text)
            if line.children:
                pieces.append(f"<ul><li><details open><summary>{text}</summary>")
                open_lists += 1
            else:
                pieces.append(f"<ul><li>{text}</li></ul>")
        # Close what is still open.
        return "".join(pieces) + "</details></li></ul>" * open_lists
