"""The content of the page of a run: its settings, figures, gates and cost, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from hapax.api.browser import table_pages as tables
from hapax.api.browser.plot_values import Funnel
from hapax.api.browser.table_pages import Page, StoredTable
from hapax.engine.questions.account import StepAccount, equal_scores, shortage
from hapax.engine.questions.gates import gates_in_order
from hapax.engine.run_memory import ROLES, circular_judge, models_of
from hapax.engine.search.progress import duration
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Operation, Remedy
from hapax.kb.files.running_search import RunFiles, RunState, Wish
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

    `head`, `long_tail`, `in_both`: numbers of statements. `account`: a row for each step; `shortage`: where a rule
    without a statement ran out of values, and the remedy.
    """

    head: int = 0
    long_tail: int = 0
    in_both: int = 0
    delta: float | None = None
    gates: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    calls: int | None = None
    hits: int | None = None
    skipped: Mapping[str, Any] | None = None
    account: tuple[StepAccount, ...] = ()
    shortage: str = ""

    @property
    def note(self) -> str:
        """Why the rule has no statement, with the remedy; empty if it has some."""
        if self.skipped:
            unknown = ", ".join(self.skipped["unknown"])
            return f"skipped: {self.skipped['model']} does not know {unknown}. {self.skipped['remedy']}"
        return self.shortage if not (self.head or self.long_tail) else ""

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
    critic_area: float | None = None
    """How well the critic told claims of known truth from false ones (AUC)."""


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
    if run.command != "search":
        return SearchSummary()  # other commands store other figures
    try:
        # A search that was interrupted has stored its calls alone.
        if "statements" not in run.summary:
            return SearchSummary(sent=_sent(run.summary))
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
            int(line["head"]),
            int(line["long_tail"]),
            int(line["in_both"]),
            None if line["delta"] is None else float(line["delta"]),
            gates,
            int(line["calls"]),
            int(line["hits"]),
            line["skipped"],
            account,
            str(shortage(account, compat) or ""),
        )
    delta = summary["mean_delta"]
    return SearchSummary(
        {name: int(count) for name, count in summary["statements"].items()},
        None if delta is None else float(delta),
        tuple(map(str, summary["skipped"])),
        tuple(map(str, summary["cut"])),
        rules,
        _sent(summary),
        summary.get("critic", {}).get("auc"),
    )


def _sent(summary: Mapping[str, Any]) -> dict[str, CallStatistics]:
    return {role: CallStatistics(**counts) for role, counts in summary.get("calls", {}).items()}


def costs_in(run: RunRecord, summary: SearchSummary) -> tuple[RoleCost, ...]:
    """Calls of the run by role: known roles in their usual order, then others."""
    models = models_of(run)
    roles = [role for role in ROLES if role in summary.sent]
    roles += [role for role in summary.sent if role not in ROLES]
    return tuple(RoleCost(role, models.get(role, ""), summary.sent[role]) for role in roles)


# Of several verdicts on one value the last one holds; with a lone max(), SQLite takes the columns of its row.
_GATES = (
    "SELECT gate, sum(accepted), sum(NOT accepted) FROM (SELECT gate, accepted, max(rowid) FROM decisions "
    "WHERE rule IS NULL AND run_id = %s GROUP BY subject) GROUP BY gate;"
)


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run: its settings, and how far it is. `statements`: rows, of which a statement at both ends has two.

    `summary`: figures that a search stored at its end; `circular`: the judge of its delta, if that also ranked or
    taught the ranker. `state`: of a running search, as it has written it itself; None if it has not, or has ended.
    `wish`: what it was asked to do last.
    """

    run: RunRecord
    heading: RunHeading
    summary: SearchSummary
    circular: str | None
    costs: tuple[RoleCost, ...]
    verdicts: list[tuple[str, int, int]]
    statements: int
    facts: int
    state: RunState | None
    wish: Wish | None

    @property
    def is_running(self) -> bool:
        """True if the run has not ended, as far as this machine can tell."""
        return self.run.status == "running" and (self.state is None or self.state.is_alive)

    @property
    def is_watched(self) -> bool:
        """True if the search says itself where it stands, so that it also reads what it is asked to do."""
        return self.is_running and self.state is not None

    @property
    def warning(self) -> str:
        """A warning about how the run ended; empty for one that is complete, or that says where it stands."""
        if self.is_watched:
            return ""
        if self.run.status == "running" and self.state is not None:
            return f"The process of this search has ended before its end. Run the same {CALL} again to continue."
        return self.heading.state

    @property
    def sent(self) -> CallStatistics:
        """The calls to all roles together; the cost is None if a price is unknown."""
        return sum((line.sent for line in self.costs), CallStatistics())

    def tables(self) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        costs = []
        for line in self.costs:
            sent = line.sent
            costs.append((line.role, line.model, sent.calls, sent.prompt_tokens, sent.completion_tokens, sent.cost))
        columns = ("role", "model", "requests", "prompt tokens", "completion tokens", "cost")
        sql = _GATES % tables.literal(self.run.id)
        return {
            "gates": StoredTable(("gate", "accepted", "rejected"), self.verdicts, sql, Page()),
            "costs": StoredTable(columns, costs, "", Page()),
            "rules": self.rules,
        }

    @property
    def rules(self) -> StoredTable:
        """The rules of a search that has ended, with their statements, calls, and the shares that gates let pass."""
        lines = self.summary.rules
        gates = [gate.name for gate in gates_in_order() if any(gate.name in line.gates for line in lines.values())]
        rows: list[tuple[Any, ...]] = []
        for name, line in lines.items():
            shares = map(line.share, gates)
            rows.append(
                (name, line.head, line.long_tail, line.in_both, line.delta, *shares, line.calls, line.hits, line.note)
            )
        columns = ("rule", "head", "long tail", "in both", "delta", *gates, "calls", "hits", "note")
        return StoredTable(columns, rows, "", Page())

    @property
    def interval(self) -> Estimate:
        """The mean delta of the rules with its interval."""
        deltas = [line.delta for line in self.summary.rules.values() if line.delta is not None]
        return mean(deltas) if deltas else NOTHING

    @property
    def funnel(self) -> Funnel:
        """The verdicts as a plot."""
        return Funnel(tuple(self.verdicts))

    def to_json(self) -> dict[str, Any]:
        """The figures of the page."""
        gates = [{"gate": gate, "accepted": accepted, "rejected": stopped} for gate, accepted, stopped in self.verdicts]
        return {
            "run": self.run.id,
            "command": self.run.command,
            "status": self.run.status,
            "is_running": self.is_running,
            "state": None if self.state is None else self.state.to_json(),
            "gates": gates,
            "costs": [asdict(line) for line in self.costs],
            "statements": self.statements,
            "facts": self.facts,
        }


def run_page(kb: KnowledgeBase, identity: str | None) -> RunPage:
    """The page of a run, counted from what is stored so far; `identity` as in `chosen_run`."""
    run = chosen_run(kb, identity)
    counts = {row[0]: row for row in kb.sql(_GATES % tables.literal(run.id))}
    ((statements,),) = kb.sql("SELECT count(*) FROM statements WHERE run_id = ?", (run.id,))
    ((facts,),) = kb.sql("SELECT count(*) FROM facts WHERE run_id = ?", (run.id,))
    compat = run.settings.get("compat")
    order = [gate.name for gate in gates_in_order(compat if isinstance(compat, str) else None) if gate.name in counts]
    # A gate of another version of Hapax comes last.
    order += [name for name in counts if name not in order]
    verdicts = [counts[gate] for gate in order]
    files = None if kb.path is None else RunFiles(kb.path, run.id)
    state = files.read() if files and run.status == "running" else None
    # Without a state nobody would read a wish.
    wish = files.wish() if files and state else None
    # The summary comes when the run ends; until then the search itself tells its calls.
    summary = search_summary(kb, run)
    costs = (_costs_so_far(run, state) if state is not None else ()) or costs_in(run, summary)
    circular = circular_judge(run)
    return RunPage(run, run_heading(run), summary, circular, costs, verdicts, statements, facts, state, wish)


def _costs_so_far(run: RunRecord, state: RunState | None) -> tuple[RoleCost, ...]:
    """The calls of a running search, by role."""
    try:
        sent = {} if state is None else {role: CallStatistics(**counts) for role, counts in state.sent.items()}
    except TypeError:  # written by another version
        return ()
    return costs_in(run, SearchSummary(sent=sent))


def ask_run(kb: KnowledgeBase, identity: str, wish: Wish | None) -> None:
    """Ask a running search to pause, to end, or, with None, to go on. Raises HapaxError if none is running."""
    shown = run_page(kb, identity)
    if kb.path is None or not shown.is_watched:
        raise HapaxError(f"The search {shown.run.id} is not running. Run its command again to continue.")
    RunFiles(kb.path, shown.run.id).ask(wish)
