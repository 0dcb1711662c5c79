"""Content of the page: everything about one run, read from the knowledge base at one moment."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from typing import Annotated

from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import Judgements
from hapax.engine.logic.derive import RUN_ID
from hapax.engine.run_memory import circular_judge, with_stored_predicates
from hapax.engine.search.stored_certificates import StoredCertificate, stored_certificates
from hapax.evaluation.report.drawing import Histogram
from hapax.evaluation.report.extensions import AddedSection, SectionSource, added_sections
from hapax.evaluation.report.gates import GateReport, gate_report
from hapax.evaluation.report.reading import snapshot, statements_of, streamed
from hapax.evaluation.report.runs import (
    RoleCost,
    RuleSummary,
    RunHeading,
    SearchSummary,
    chosen_run,
    costs_in,
    costs_in_all,
    run_heading,
    search_summary,
)
from hapax.evaluation.report.sections import (
    RuleSection,
    RuleTally,
    SectionBuilder,
    score_histogram,
    tally_rules,
    vote_counts,
)
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean
from hapax.evaluation.shared.judged import JudgedCounts
from hapax.evaluation.votes.derived import judged_derived
from hapax.evaluation.votes.next_items import mended_lines
from hapax.evaluation.votes.soundness import truth_lines
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import ChosenRules, Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.kb import system
from hapax.kb.derived_statements import current_counts, derived_statements
from hapax.kb.records import RULES, Distribution, RunRecord, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import CallStatistics

STATEMENTS = 5
"""Default number of statements shown per rule and distribution."""
MOST_STATEMENTS = 600
"""Default limit on the statements of a whole page, because the story of each takes about 5 kB."""
REJECTED = 20
"""Default number of rejected values shown per kind."""


@checked
@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options of a page.

    `database`: the knowledge base as the user named it, for the commands on the page; `statements`: number shown per
    rule and distribution, or None for STATEMENTS, less if there are many rules; `rejected`: number shown per kind.
    """

    database: str
    run_id: Annotated[
        str | None,
        Option("Run to report, by the beginning of its id; default: the run that finished last.", name="run"),
    ] = None
    rules: ChosenRules = ()
    statements: Annotated[
        int | None,
        Option("Statements to show per rule and distribution.  [default: 5, fewer if there are many rules]", least=0),
    ] = None
    rejected: Annotated[int, Option("Rejected values to show per kind.", least=0)] = REJECTED


@dataclass(frozen=True, slots=True)
class PageSummary:
    """The figures at the top of the page."""

    counts: Mapping[str, int]
    mean_delta: float | None
    circular: str | None
    interval: Estimate
    leftover: int
    """Statements that an earlier pass of the same run left behind."""
    searched: int
    skipped: int
    without: int
    """Number of rules without a statement."""
    facts: int
    facts_of_run: int
    recorded: bool
    """True if the search stored its figures at its end; otherwise they are counted from the stored statements."""


@dataclass(frozen=True, slots=True)
class VoteReport:
    """People's votes on the statements of the run."""

    count: int
    statements: int
    answers: tuple[tuple[str, str, int], ...]
    wrong_type: int


@dataclass(frozen=True, slots=True)
class Report:
    """The content of the page."""

    heading: RunHeading
    options: ReportOptions
    version: str
    summary: PageSummary
    histogram: Histogram | None
    rules: tuple[RuleSection, ...]
    rule_count: int
    """Number of rules of the run, of which `rules` may be a selection."""
    gates: GateReport
    certificates: tuple[StoredCertificate, ...]
    truth: tuple[str, ...]
    """Shares of true statements and facts by people's labels, with intervals, in words."""
    votes: VoteReport | None
    costs: tuple[RoleCost, ...]
    costs_in_all: tuple[RoleCost, ...]
    added: tuple[AddedSection, ...]
    """The statements that `derive` concluded, and sections of other packages."""

    @property
    def skipped(self) -> tuple[RuleSection, ...]:
        """The rules that the search skipped."""
        return tuple(rule for rule in self.rules if rule.state == SKIPPED)

    @property
    def domains(self) -> tuple[str, ...]:
        """The domains of the rules shown, sorted."""
        return tuple(sorted({rule.record.domain for rule in self.rules if rule.record and rule.record.domain}))

    @property
    def total(self) -> CallStatistics:
        """The calls of the run to all roles together."""
        return sum((cost.sent for cost in self.costs), CallStatistics())

    def why(self, statement_id: str) -> str:
        """The command that prints the whole story of a statement."""
        return shlex.join(["hapax", "why", "--db", self.options.database, statement_id])

    def command(self, **changed: object) -> str:
        """The command that writes this page with other options, such as `statements=60, rule="allergy"`."""
        words = ["hapax", "report", "--db", self.options.database, "--run", self.heading.run_id]
        for name, value in changed.items():
            words += [f"--{name}", str(value)]
        return shlex.join([*words, "-o", "more.html"])


def _derivation(kb: KnowledgeBase) -> RunRecord | None:
    """A run that stands for `derive` where nothing else has stored statements; None elsewhere."""
    if kb.runs() or not any(kb.derived_counts().values()):
        return None
    now = system.now().isoformat(timespec="milliseconds")
    return RunRecord(RUN_ID, "derive", {}, RUN_ID, now, now, "done")


SKIPPED, CUT, EMPTY, COMPLETE = "skipped", "cut", "no statement", ""
"""States of a rule, as the page shows them."""


def build(kb: KnowledgeBase, library: Library, options: ReportOptions) -> Report:
    """Read the content of a page. `library` holds the rules for derived premises, as for `hapax why`.

    Raises HapaxError for an unknown run, and for rules that are not of the run.
    """
    # Before the snapshot, in which the index of derived statements cannot be brought up to date.
    derived = JudgedCounts.of(found for _, found in judged_derived(kb, library, Judgements.stored(kb)).values())
    with snapshot(kb):
        run = _derivation(kb) if options.run_id is None else None
        run = run or chosen_run(kb, options.run_id)
        return _PageBuilder(kb, library, options, run, search_summary(kb, run), derived).report()


@dataclass(frozen=True)
class _PageBuilder:
    kb: KnowledgeBase
    library: Library
    options: ReportOptions
    run: RunRecord
    recorded: SearchSummary
    derived: JudgedCounts

    def report(self) -> Report:
        # In the words of the knowledge base, whatever rule files are loaded now.
        theory = with_stored_predicates(Theory(self.library, self.kb))
        most = STATEMENTS if self.options.statements is None else self.options.statements
        tallies = tally_rules(statements_of(self.kb, self.run.id), most)
        names = self._names(tallies)
        known = {*names, *self.kb.derived_counts()}
        unknown = [name for name in self.options.rules if name not in known]
        if unknown:
            raise HapaxError(
                f"Run {self.run.id} has no rule {', '.join(unknown)}.",
                Remedy("Omit {} to report all {} rules.", Setting("options.rules"), len(known)),
            )
        chosen = [name for name in names if not self.options.rules or name in self.options.rules]
        # A number that the user gave is kept, however large the page becomes.
        if self.options.statements is None:
            # Two distributions per rule; each keeps at least one statement.
            rules_with_statements = sum(name in tallies for name in chosen)
            most = max(1, min(most, MOST_STATEMENTS // max(1, 2 * rules_with_statements)))
        judged = Judgements.stored(self.kb)
        votes = self._votes(tallies, judged)
        records = {rule.name: rule for rule in self.kb.select(RULES)}
        builder = SectionBuilder(theory, records, votes, judged, most)
        # Of all rules, not only the chosen ones: the summary counts them.
        states = self._states(names, tallies)
        sections = []
        for name in chosen:
            summary = self.recorded.rules.get(name, RuleSummary())
            # A rule without statements has an empty tally.
            sections.append(builder.section(name, tallies.get(name, RuleTally(0)), summary, states[name]))
        return Report(
            heading=run_heading(self.run),
            options=self.options,
            version=version("hapax-kb"),
            summary=self._summary(tallies, list(states.values())),
            histogram=score_histogram(list(tallies.values())),
            rules=tuple(sections),
            rule_count=len(names),
            gates=gate_report(self.kb, self.run, theory.library, self.options.rejected),
            certificates=tuple(stored_certificates(self.kb, [self.run.id])),
            truth=(*self._truth(), *mended_lines(self.kb)),
            votes=_vote_report(votes, judged),
            costs=costs_in(self.run, self.recorded),
            costs_in_all=tuple(costs_in_all(self.kb)),
            added=(
                *_derived_section(self.kb, self.options.rules, most),
                *added_sections(SectionSource(self.kb, self.run, theory.library)),
            ),
        )

    def _truth(self) -> list[str]:
        """People's judgements of the statements of the run, and of those of `derive`."""
        lines = [] if self.run.id == RUN_ID else truth_lines(self.kb, runs=[self.run.id])
        if self.derived.judged:
            lines.append(f"Statements of `derive`: {self.derived.sentence()}")
        return lines

    def _names(self, tallies: Mapping[str, RuleTally]) -> list[str]:
        """The rules of a search in their order there; those of an import are the rules that have statements."""
        rules = self.run.settings.get("rules")
        searched = list(map(str, rules)) if isinstance(rules, list) else []
        return list(dict.fromkeys([*searched, *tallies]))

    def _states(self, names: Sequence[str], tallies: Mapping[str, RuleTally]) -> dict[str, str]:
        """States of the rules by name."""
        states = {}
        for name in names:
            # A rule that was cut may have statements, and one that was skipped may have those of an earlier pass.
            if name in self.recorded.skipped:
                states[name] = SKIPPED
            elif name in self.recorded.cut:
                states[name] = CUT
            else:
                states[name] = COMPLETE if name in tallies else EMPTY
        return states

    def _summary(self, tallies: Mapping[str, RuleTally], states: Sequence[str]) -> PageSummary:
        """The figures that the search stored at its end; those that it did not store are counted."""
        counts_of_statements: dict[str, int] = {}
        for distribution in Distribution:
            counts_of_statements[distribution.value] = sum(tally.count(distribution) for tally in tallies.values())
        # Nothing is left over where the search stored no figures.
        leftover = sum(count - self.recorded.counts.get(name, count) for name, count in counts_of_statements.items())
        counts_of_statements["in_both"] = sum(tally.in_both for tally in tallies.values())
        deltas = [tally.delta.value for tally in tallies.values() if tally.delta.count]
        estimate = mean(deltas) if deltas else NOTHING
        mean_delta = self.recorded.mean_delta if self.recorded.counts else (estimate.value if deltas else None)
        sql = "SELECT count(*), coalesce(sum(run_id = ?), 0) FROM facts"
        ((facts, facts_of_run),) = streamed(self.kb, sql, (self.run.id,))
        return PageSummary(
            # What the search stored goes before what is counted here.
            counts={**counts_of_statements, **self.recorded.counts},
            mean_delta=mean_delta,
            circular=circular_judge(self.run),
            interval=estimate,
            leftover=leftover,
            searched=len(states) - states.count(SKIPPED),
            skipped=states.count(SKIPPED),
            without=states.count(EMPTY),
            facts=facts,
            facts_of_run=facts_of_run,
            recorded=bool(self.recorded.counts),
        )

    def _votes(self, tallies: Mapping[str, RuleTally], judged: Judgements) -> dict[str, list[VoteRecord]]:
        """The votes on texts of the run, by row."""
        rows: set[str] = set()
        for tally in tallies.values():
            rows.update(map(judged.row, tally.ids))
        votes: dict[str, list[VoteRecord]] = {}
        for vote in self.kb.votes():
            row = judged.row(vote.statement_id)
            if row in rows:
                votes.setdefault(row, []).append(vote)
        return votes


def _derived_section(kb: KnowledgeBase, rules: Sequence[str], most: int) -> Iterator[AddedSection]:
    """The rules of which `derive` stored statements, each with some of these."""
    rows: list[tuple[object, ...]] = []
    stored, current = kb.derived_counts(), current_counts(kb)
    for name, count in stored.items():
        if rules and name not in rules:
            continue
        if name not in current:
            rows.append((name, count, f"Facts have changed since: run {Operation('derive')}.", ""))
            continue
        listed = list(derived_statements(kb, rule=name, most=most))
        rows += [(name, count, statement.text, statement.id) for statement in listed]
        if not listed:
            rows.append((name, count, "", ""))
    if rows:
        yield AddedSection("Derived statements", ("rule", "statements", "for example", "id"), tuple(rows))


def _vote_report(votes: Mapping[str, Sequence[VoteRecord]], judged: Judgements) -> VoteReport | None:
    if not votes:
        return None
    all_votes = list(chain.from_iterable(votes.values()))
    wrong_type = sum(judged.of(identity).typed is False for identity in votes)
    return VoteReport(len(all_votes), len(votes), vote_counts(all_votes), wrong_type)
