"""The run that a page is about: its choice, heading, summary and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hapax.engine.run_memory import ROLES, models_of
from hapax.engine.search.account import StepAccount, equal_scores, shortage
from hapax.engine.search.progress import duration
from hapax.evaluation.report.reading import streamed
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Operation, Remedy
from hapax.kb.records import RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import CallStatistics

RUNS_NAMED = 5
"""Number of runs listed in the message about an unknown run."""

OVER = ("done", "budget")

_STATES = {
    "done": "",
    "budget": Remedy(
        "This search reached its budget before its end. Run the same {} with a higher one to continue.", CALL
    ),
    "interrupted": Remedy("This search was interrupted before its end. Run the same {} again to continue.", CALL),
    "failed": Remedy("This search ended with an error. Run the same {} again to continue.", CALL),
    "running": Remedy("This search is still running, or it was killed. Run the same {} again to continue.", CALL),
}
_NOT_SETTINGS = ("models", "rules", "taught_by")
"""Settings that the page shows elsewhere."""


@dataclass(frozen=True, slots=True)
class RoleCost:
    """A line of the cost table: the calls to one role's model."""

    role: str
    model: str
    sent: CallStatistics


@dataclass(frozen=True, slots=True)
class RuleSummary:
    """Figures of one rule from the run's record; `gates` has accepted and judged values by gate.

    `account`: a row for each step; `shortage`: where a rule without a statement ran out of values, and the remedy.
    """

    gates: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    calls: int | None = None
    hits: int | None = None
    skipped: Mapping[str, Any] | None = None
    account: tuple[StepAccount, ...] = ()
    shortage: str = ""

    @property
    def equal_scores(self) -> tuple[int, int] | None:
        """Numbers of ranked texts that share their score, and of all, if these are many."""
        return equal_scores(self.account)

    def share(self, gate: str) -> float | None:
        """Share of the values judged by the gate that passed it."""
        accepted, judged = self.gates.get(gate, (0, 0))
        return accepted / judged if judged else None


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """Figures that a search stores at its end. `counts` is empty if it stored none."""

    counts: Mapping[str, int] = field(default_factory=dict)
    mean_delta: float | None = None
    skipped: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    rules: Mapping[str, RuleSummary] = field(default_factory=dict)
    sent: Mapping[str, CallStatistics] = field(default_factory=dict)
    """Calls by role."""


@dataclass(frozen=True, slots=True)
class RunHeading:
    """Command, times, models and settings of a run as texts."""

    command: str
    run_id: str
    started: str
    took: str
    state: str
    """A warning about how the run ended; empty if it was complete."""
    models: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]


def chosen_run(kb: KnowledgeBase, run_id: str | None) -> RunRecord:
    """The run whose id begins with `run_id`.

    Without `run_id`, the run that finished last; if none has finished, the one that started last. Raises HapaxError if
    no run matches, or more than one.
    """
    runs = kb.runs()
    if not runs:
        raise HapaxError(f"{kb.place} holds no run to report.", Remedy("Start one with {}.", Operation("search")))
    if run_id is None:
        # A run that is still going would show a part of its statements.
        over = [run for run in runs if run.status in OVER]
        if over:
            return max(over, key=lambda run: (run.finished or "", run.id))
        return max(runs, key=lambda run: (run.started, run.id))
    matching = [run for run in runs if run.id.startswith(run_id)]
    if len(matching) == 1:
        return matching[0]
    description = "several runs whose ids begin" if matching else "no run whose id begins"
    latest = []
    for run in (matching or runs)[-RUNS_NAMED:]:
        latest.append(f"{run.id} ({run.command}, {moment(run.started)}, {run.status})")
    raise HapaxError(f"{kb.place} holds {description} with {run_id!r}. Choose one of the latest: {', '.join(latest)}.")


def run_heading(run: RunRecord) -> RunHeading:
    """The heading of the page."""
    settings = []
    for name, value in run.settings.items():
        if name not in _NOT_SETTINGS:
            settings.append((name.replace("_", " "), _setting_text(value)))
    return RunHeading(
        run.command,
        run.id,
        moment(run.started),
        _took(run),
        # Another program, or a later version, may know other states.
        str(_STATES.get(run.status, f"The state of this run is {run.status}.")),
        tuple(models_of(run).items()),
        tuple(settings),
    )


def _setting_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_setting_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "none" if value is None else str(value)


def moment(text: str) -> str:
    """A stored time in the form `2026-01-31 09:05 UTC`, or the text itself if it is not a time."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return text


def _took(run: RunRecord) -> str:
    """Duration of the run since its last start; empty if it is unknown."""
    try:
        seconds = (datetime.fromisoformat(run.finished or "") - datetime.fromisoformat(run.started)).total_seconds()
    except (ValueError, TypeError):  # TypeError: one of the times has no zone
        return ""
    # Negative if the clock was set back meanwhile.
    return duration(seconds) if seconds >= 0 else ""


def search_summary(kb: KnowledgeBase, run: RunRecord) -> SearchSummary:
    """Read the figures that a search stored in its record; empty for other commands.

    Raises HapaxError if the record has another shape, because another program changed it.
    """
    # A search that was interrupted has stored nothing yet; other commands store other figures.
    if run.command != "search" or "statements" not in run.summary:
        return SearchSummary()
    try:
        return _search_summary(run.summary, run.settings.get("compat"))
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise HapaxError(
            f"{kb.place}: the summary of run {run.id} was not written by Hapax ({fault!r}). Run the search again."
        ) from fault


def _search_summary(summary: Mapping[str, Any], compat: str | None) -> SearchSummary:
    rules = {}
    for line in summary.get("rules", ()):
        gates = {gate: (int(count["accepted"]), int(count["judged"])) for gate, count in line["gates"].items()}
        account = tuple(StepAccount.from_json(step) for step in line["account"])
        rules[str(line["rule"])] = RuleSummary(
            gates, int(line["calls"]), int(line["hits"]), line["skipped"], account, str(shortage(account, compat) or "")
        )
    delta = summary["mean_delta"]
    return SearchSummary(
        {name: int(count) for name, count in summary["statements"].items()},
        None if delta is None else float(delta),
        tuple(map(str, summary["skipped"])),
        tuple(map(str, summary["cut"])),
        rules,
        {role: CallStatistics(**counts) for role, counts in summary["calls"].items()},
    )


def costs_in(run: RunRecord, summary: SearchSummary) -> tuple[RoleCost, ...]:
    """Calls of the run by role: known roles in their usual order, then others."""
    models = models_of(run)
    roles = [role for role in ROLES if role in summary.sent]
    roles += [role for role in summary.sent if role not in ROLES]
    return tuple(RoleCost(role, models.get(role, ""), summary.sent[role]) for role in roles)


def costs_in_all(kb: KnowledgeBase) -> Iterator[RoleCost]:
    """Calls of all runs together by role and model. The cost is None if the price of a call is unknown."""
    sql = (
        "SELECT role, model, count(*), sum(prompt_tokens), sum(completion_tokens), sum(cost), count(cost) "
        "FROM calls GROUP BY role, model ORDER BY min(rowid)"
    )
    for role, model, calls, prompts, completions, cost, priced in streamed(kb, sql):
        # sum() skips calls without a price, and would understate the cost.
        known_cost = cost if priced == calls else None
        yield RoleCost(role, model, CallStatistics(calls, 0, prompts, completions, cost=known_cost))
