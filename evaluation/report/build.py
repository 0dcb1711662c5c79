"""From a knowledge base to the content of a page, and to the page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from engine.query import Theory
from engine.stored import with_stored_predicates
from evaluation.estimates import NOTHING, Estimate, mean
from evaluation.probing.items import Verdicts, verdicts_of
from evaluation.report.drawing import Histogram
from evaluation.report.gates import GateReport, gate_report
from evaluation.report.reading import snapshot, statements_of, streamed
from evaluation.report.runs import (
    Heading,
    Recorded,
    RuleLine,
    Spent,
    chosen_run,
    heading_of,
    recorded,
    spent_in,
    spent_in_all,
)
from evaluation.report.sections import RuleSection, RuleTally, Teller, score_histogram, tally_rules, vote_counts
from grammar.errors import HapaxError
from grammar.rules import Library
from kb.records import Distribution, RunRecord, VoteRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CallStatistics

STATEMENTS = 5
"""Statements shown of each rule and distribution, unless asked otherwise."""
MOST_STATEMENTS = 600
"""How many a page of many rules shows in all, unless asked otherwise; a story takes about 5 kB."""
REJECTED = 20


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What is asked for. `database`: how the user names it, for the commands that the page names.

    `statements`: per rule and distribution; None: STATEMENTS, fewer where there are many rules. `rejected`: of each
    kind.
    """

    database: str
    run_id: str | None = None
    rules: tuple[str, ...] = ()
    statements: int | None = None
    rejected: int = REJECTED


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures at the head of the page. `leftover`: statements that an earlier pass of the same run left behind."""

    counts: Mapping[str, int]
    mean_delta: float | None
    interval: Estimate
    leftover: int
    searched: int
    skipped: int
    without: int
    facts: int
    facts_of_run: int
    recorded: bool
    """Whether the search left its figures at its end; else they are counted from what is stored."""


@dataclass(frozen=True, slots=True)
class VoteReport:
    """What people said of the run's statements."""

    count: int
    statements: int
    answers: tuple[tuple[str, str, int], ...]
    contradicted: int
    wrong_type: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows."""

    heading: Heading
    options: ReportOptions
    version: str
    summary: Summary
    histogram: Histogram | None
    rules: tuple[RuleSection, ...]
    of_all: int
    """How many rules the run has; fewer are shown where some were chosen."""
    gates: GateReport
    votes: VoteReport | None
    spent: tuple[Spent, ...]
    spent_in_all: tuple[Spent, ...]

    @property
    def skipped(self) -> tuple[RuleSection, ...]:
        return tuple(one for one in self.rules if one.state == SKIPPED)

    @property
    def domains(self) -> tuple[str, ...]:
        named = (one.record.domain for one in self.rules if one.record)
        return tuple(sorted({one for one in named if one}))

    @property
    def total(self) -> CallStatistics:
        """What the run sent to all roles together."""
        return sum((one.sent for one in self.spent), CallStatistics())

    def why(self, statement_id: str) -> str:
        """The command that tells the whole story of a statement."""
        return shlex.join(["hapax", "why", "--db", self.options.database, statement_id])

    def command(self, **changed: object) -> str:
        """The command of this page with other options, such as `statements=60, rule="allergy"`."""
        words = ["hapax", "report", "--db", self.options.database, "--run", self.heading.run_id]
        for name, value in changed.items():
            words += [f"--{name}", str(value)]
        return shlex.join([*words, "-o", "more.html"])


SKIPPED, CUT, EMPTY, COMPLETE = "skipped", "cut", "no statement", ""
"""What became of a rule."""


def build(kb: KnowledgeBase, library: Library, options: ReportOptions) -> Report:
    """The content of a page. `library`: the rules by which the stories are told, as for `why`.

    Raises HapaxError for a run that is not there, and for rules that are not the run's.
    """
    with snapshot(kb):
        run = chosen_run(kb, options.run_id)
        return _Builder(kb, library, options, run, recorded(kb, run)).report()


@dataclass(frozen=True)
class _Builder:
    kb: KnowledgeBase
    library: Library
    options: ReportOptions
    run: RunRecord
    record: Recorded

    def report(self) -> Report:
        spoken = with_stored_predicates(Theory(self.library, self.kb))
        wanted = STATEMENTS if self.options.statements is None else self.options.statements
        tallies = tally_rules(statements_of(self.kb, self.run.id), wanted)
        names = self._names(tallies)
        chosen = self._chosen(names)
        votes = self._votes(tallies)
        records = {one.name: one for one in self.kb.rules()}
        teller = Teller(spoken, records, votes, self._shown(wanted, [name for name in chosen if name in tallies]))
        by_rule = {
            name: (tallies.get(name, RuleTally(0)), self.record.lines.get(name, RuleLine()), self._state(name, tallies))
            for name in names
        }
        return Report(
            heading_of(self.run),
            self.options,
            version("hapax-kb"),
            self._summary(tallies, {name: state for name, (_, _, state) in by_rule.items()}),
            score_histogram(list(tallies.values())),
            tuple(teller.section(name, *by_rule[name]) for name in chosen),
            len(names),
            gate_report(self.kb, self.run, spoken.library, self.options.rejected),
            self._vote_report(votes),
            spent_in(self.run, self.record),
            tuple(spent_in_all(self.kb)),
        )

    def _names(self, tallies: Mapping[str, RuleTally]) -> list[str]:
        """The rules of the run as it was given them; of an import, those that have statements."""
        named = self.run.settings.get("rules")
        searched = list(map(str, named)) if isinstance(named, list) else []
        return list(dict.fromkeys([*searched, *tallies]))

    def _chosen(self, names: Sequence[str]) -> list[str]:
        unknown = [one for one in self.options.rules if one not in names]
        if unknown:
            raise HapaxError(
                f"Run {self.run.id} has no rule {', '.join(unknown)}. Without --rule all {len(names)} are reported."
            )
        return [name for name in names if not self.options.rules or name in self.options.rules]

    def _shown(self, wanted: int, with_statements: Sequence[str]) -> int:
        if self.options.statements is not None:
            return wanted
        return max(1, min(wanted, MOST_STATEMENTS // max(1, 2 * len(with_statements))))

    def _state(self, name: str, tallies: Mapping[str, RuleTally]) -> str:
        if name in self.record.skipped:
            return SKIPPED
        if name in self.record.cut:
            return CUT
        return COMPLETE if name in tallies else EMPTY

    # -- figures

    def _summary(self, tallies: Mapping[str, RuleTally], states: Mapping[str, str]) -> Summary:
        """As the search told them at its end; counted from what is stored where it did not, or not all of them."""
        stored = {each.value: sum(one.count(each) for one in tallies.values()) for each in Distribution}
        stored["in_both"] = sum(one.in_both for one in tallies.values())
        deltas = [one.delta.value for one in tallies.values() if one.delta.count]
        counts = {**stored, **self.record.counts}
        (facts, of_run), *_ = streamed(
            self.kb, "SELECT count(*), coalesce(sum(run_id = ?), 0) FROM facts", (self.run.id,)
        )
        estimate = mean(deltas) if deltas else NOTHING
        told = list(states.values())
        return Summary(
            counts,
            self.record.mean_delta if self.record.counts else (estimate.value if deltas else None),
            estimate,
            sum(stored[each.value] - counts.get(each.value, 0) for each in Distribution),
            len(told) - told.count(SKIPPED),
            told.count(SKIPPED),
            told.count(EMPTY),
            facts,
            of_run,
            recorded=bool(self.record.counts),
        )

    # -- votes

    def _votes(self, tallies: Mapping[str, RuleTally]) -> dict[str, list[VoteRecord]]:
        ids = {one for tally in tallies.values() for one in tally.ids}
        found: dict[str, list[VoteRecord]] = {}
        for vote in self.kb.votes():
            if vote.statement_id in ids:
                found.setdefault(vote.statement_id, []).append(vote)
        return found

    def _vote_report(self, votes: Mapping[str, Sequence[VoteRecord]]) -> VoteReport | None:
        every = [vote for several in votes.values() for vote in several]
        if not every:
            return None
        verdicts: Verdicts = verdicts_of(every)
        return VoteReport(
            len(every), len(votes), vote_counts(every), len(verdicts.contradicted), len(verdicts.wrong_type)
        )
