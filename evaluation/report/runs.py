"""Which run a page is about, what its record says, and what was spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from engine.report import duration
from engine.stored import ROLES, models_of
from evaluation.report.reading import streamed
from grammar.errors import HapaxError
from kb.records import RunRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CallStatistics

RUNS_NAMED = 5
"""How many runs a message names where one was asked for that is not there."""

OVER = ("done", "budget")

_STATES = {
    "done": "",
    "budget": "A budget ended this search before it was complete. The same command with a higher one goes on.",
    "interrupted": "This search was interrupted before its end. The same command goes on from there.",
    "failed": "This search ended with an error. The same command goes on from there.",
    "running": "This search has not ended: it is still running, or it was killed. The same command goes on from there.",
}
_NOT_SETTINGS = ("models", "rules")


@dataclass(frozen=True, slots=True)
class Spent:
    """A line of the cost table; `cost` None: a price is unknown. `hits`: what the journal answered."""

    role: str
    model: str
    sent: CallStatistics


@dataclass(frozen=True, slots=True)
class RuleLine:
    """What the run's record says of one rule; `gates`: accepted and judged by gate."""

    gates: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    calls: int | None = None
    hits: int | None = None
    skipped: Mapping[str, Any] | None = None

    def share(self, gate: str) -> float | None:
        """How much of what came to the gate passed it."""
        accepted, judged = self.gates.get(gate, (0, 0))
        return accepted / judged if judged else None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The summary that a search leaves at its end. `counts` is empty where it left none."""

    counts: Mapping[str, int] = field(default_factory=dict)
    mean_delta: float | None = None
    skipped: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    lines: Mapping[str, RuleLine] = field(default_factory=dict)
    spent: Mapping[str, CallStatistics] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Heading:
    """What was run, in words."""

    command: str
    run_id: str
    started: str
    took: str
    state: str
    """What is to be said of the way it ended; empty where it ended as it should."""
    models: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...]


def chosen_run(kb: KnowledgeBase, run_id: str | None) -> RunRecord:
    """The run whose id begins so; None: the one that was finished last, or where none was, the one begun last."""
    known = kb.runs()
    if not known:
        raise HapaxError(f"{kb.place} holds no run to report. `hapax search` begins one.")
    if run_id is None:
        over = [one for one in known if one.status in OVER]
        return max(over, key=_ended) if over else max(known, key=lambda one: (one.started, one.id))
    found = [one for one in known if one.id.startswith(run_id)]
    if len(found) == 1:
        return found[0]
    said = "several runs whose ids begin" if found else "no run whose id begins"
    named = ", ".join(
        f"{one.id} ({one.command}, {moment(one.started)}, {one.status})" for one in (found or known)[-RUNS_NAMED:]
    )
    raise HapaxError(f"{kb.place} holds {said} with {run_id!r}. The latest of them: {named}.")


def _ended(run: RunRecord) -> tuple[str, str]:
    return run.finished or "", run.id


def heading_of(run: RunRecord) -> Heading:
    """The run's heading."""
    settings = ((name.replace("_", " "), _told(value)) for name, value in run.settings.items())
    hidden = {name.replace("_", " ") for name in _NOT_SETTINGS}
    return Heading(
        run.command,
        run.id,
        moment(run.started),
        _took(run),
        _STATES.get(run.status, f"Its state is {run.status}."),
        tuple(models_of(run).items()),
        tuple((name, value) for name, value in settings if name not in hidden),
    )


def _told(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_told, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def moment(text: str) -> str:
    """A stored time for people, `2026-01-31 09:05 UTC`; as it stands where it is none."""
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return text


def _took(run: RunRecord) -> str:
    """How long the run took, from its last start on."""
    try:
        seconds = (datetime.fromisoformat(run.finished or "") - datetime.fromisoformat(run.started)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return duration(seconds) if seconds >= 0 else ""


def recorded(kb: KnowledgeBase, run: RunRecord) -> Recorded:
    """The run's summary. Raises HapaxError where something other than a search wrote it so that it cannot be read."""
    if run.command != "search" or "statements" not in run.summary:
        return Recorded()
    try:
        return _recorded(run.summary)
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise HapaxError(
            f"{kb.place}: the summary of run {run.id} was not written by Hapax ({fault!r}). Search again."
        ) from fault


def _recorded(summary: Mapping[str, Any]) -> Recorded:
    delta = summary["mean_delta"]
    return Recorded(
        {name: int(count) for name, count in summary["statements"].items()},
        None if delta is None else float(delta),
        tuple(map(str, summary["skipped"])),
        tuple(map(str, summary["cut"])),
        {str(one["rule"]): _line(one) for one in summary.get("rules", ())},
        {role: CallStatistics(**counts) for role, counts in summary["calls"].items()},
    )


def _line(line: Mapping[str, Any]) -> RuleLine:
    gates = {gate: (int(count["accepted"]), int(count["judged"])) for gate, count in line["gates"].items()}
    return RuleLine(gates, int(line["calls"]), int(line["hits"]), line["skipped"])


def spent_in(run: RunRecord, record: Recorded) -> tuple[Spent, ...]:
    """What the run sent, by role."""
    models = models_of(run)
    roles = [*(role for role in ROLES if role in record.spent), *(role for role in record.spent if role not in ROLES)]
    return tuple(Spent(role, models.get(role, ""), record.spent[role]) for role in roles)


def spent_in_all(kb: KnowledgeBase) -> Iterator[Spent]:
    """What all runs together sent, by role and model."""
    sql = (
        "SELECT role, model, count(*), sum(prompt_tokens), sum(completion_tokens), sum(cost), count(cost) "
        "FROM calls GROUP BY role, model ORDER BY min(rowid)"
    )
    for role, model, calls, prompts, completions, cost, priced in streamed(kb, sql):
        yield Spent(role, model, CallStatistics(calls, 0, prompts, completions, cost=cost if priced == calls else None))
