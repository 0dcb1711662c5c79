"""Searches for head and long-tail statements, their results, and their cost beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, overload

from hapax.api.statements import Statements
from hapax.engine.gates.account import StepAccount
from hapax.engine.gates.gates import CRITIC, TYPE
from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.engine.search.estimate import RunEstimate, estimate_run
from hapax.engine.search.progress import Progress
from hapax.engine.search.search import search as search_rules
from hapax.engine.search.search_report import SearchReport
from hapax.engine.search.settings import ProfileChooser, SearchJob, SearchSettings, settled
from hapax.engine.withdrawal import revise_statements
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library
from hapax.grammar.writing.notebook import Tabular
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.registry import BudgetedModels, journal_of, price_table


@checked
def search(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> SearchResult:
    """Search head and long-tail statements for rules and store them with their proofs.

    `only`: a name or names of rules, instead of all. Unless `settings` name a prompt profile, the one that suits the
    model best is probed, once per model. Rules with errors are left out; `check_rules` names them.
    The same search again asks nothing twice; one that reached its budget goes on.
    Ctrl-C (KeyboardInterrupt) loses nothing that was answered.
    """
    rules = sound_rules(rules)
    rules.refuse_uncertain()
    chosen, settings = chosen_rules(rules, only), settings or SearchSettings()
    return run_search(SearchJob(rules, chosen, kb, models, settings, journal_of(kb, models), progress))


@extras_named()
def run_search(job: SearchJob) -> SearchResult:
    """Search as a prepared job says; `search` prepares one from rules, knowledge base and models."""
    if job.settings.compat and hasattr(job.models.critic, "one_by_one"):
        job = replace(job, models=replace(job.models, critic=job.models.critic.one_by_one()))
    result = SearchResult(search_rules(job))
    # What its gates withdrew may not be the only proof of earlier statements, and its facts may refute some.
    revise_statements(job.library, job.kb)
    return result


@checked
def plan(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
) -> RunEstimate:
    """Estimate the calls and cost of a search, given the answers in the knowledge base. No model is asked."""
    rules = sound_rules(rules)
    rules.refuse_uncertain()
    settings = settings or SearchSettings()
    # A profile that is not chosen yet is probed by the search; the plan counts these requests.
    choice = ProfileChooser(kb, rules, models.knowledge, Journal(kb), can_ask=False).choose(settings)
    chosen = chosen_rules(rules, only)
    retry = isinstance(models, BudgetedModels) and models.retry_unusable
    job = SearchJob(rules, chosen, kb, models, settled(settings, choice))
    return estimate_run(job, prices=price_table(models), retry_unusable=retry, probes=choice.probes)


# --- results ----------------------------------------------------------------------------------------------------------


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


class SearchAccount(Tabular, Sequence[StepAccount]):
    """Account of a search: the questions, lines, values and substitutions of each step, a row for each rule and step.

    Its items are the steps with all details: reasons and an example of dropped lines, the highest P(yes) at each gate.
    """

    columns = (
        *("rule", "step", "variable", "origin", "questions", "calls", "lines", "dropped", "drop_reason", "repeated"),
        *("unjudged", "below_type", "highest_type", "below_fact", "highest_fact", "rejected", "accepted", "given"),
        *("substitutions", "failed", "unranked", "cut", "kept"),
    )

    def __init__(self, report: SearchReport) -> None:
        self._steps = [(rule.rule, step) for rule in report.rules for step in rule.account]

    def cells(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for rule, step in self._steps:
            of_type, of_fact = step.loss(TYPE.name), step.loss(CRITIC.name)
            computed = {
                "rule": rule,
                "dropped": step.dropped_count,
                "drop_reason": step.commonest_drop[0] if step.commonest_drop else None,
                "below_type": of_type.count,
                "highest_type": of_type.highest,
                "below_fact": of_fact.count,
                "highest_fact": of_fact.highest,
                "substitutions": step.extended,
                "failed": step.failed_count,
            }
            # Columns of any other name are fields of a step.
            rows.append(tuple(computed[name] if name in computed else getattr(step, name) for name in self.columns))
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
