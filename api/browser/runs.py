"""The content of the page of a run: its settings, figures, gates and cost, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from hapax.api.browser import table_pages as tables
from hapax.api.browser.rendering import moment
from hapax.api.browser.table_pages import Page, StoredTable
from hapax.engine.explain import ROLES, circular_judge, models_of
from hapax.engine.gates.account import StepAccount, equal_scores, shortage
from hapax.engine.gates.gates import gates_in_order
from hapax.engine.search.progress import RunFile, RunState, duration
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean
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


NO_FIGURES: Mapping[str, Any] = {"account": (), "equal_scores": None, "note": ""}
"""The figures of a rule of which a search has stored none."""


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


def _setting_text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_setting_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "none" if value is None else str(value)


def search_figures(kb: KnowledgeBase, run: RunRecord) -> dict[str, Any]:
    """The figures that a search has stored in its record, by their names there; of an interrupted one the calls alone.

    `calls` has statistics by role, `rules` the lines of the rules by name with their steps as `account`, and the `note`
    why a rule has no statement. Empty for other commands. Raises HapaxError for a record that another program changed.
    """
    if run.command != "search":
        return {}  # other commands store other figures
    figures: dict[str, Any] = {}
    try:
        sent = run.summary.get("calls", {})
        figures["calls"] = {role: CallStatistics(**counts) for role, counts in sent.items()}
        # A search that was interrupted has stored its calls alone.
        if "statements" in run.summary:
            figures["rules"] = {str(line["rule"]): _rule_figures(line, run) for line in run.summary.get("rules", ())}
            figures["statements"] = {name: int(count) for name, count in run.summary["statements"].items()}
            shares = {"mean_delta": run.summary["mean_delta"], "auc": run.summary.get("critic", {}).get("auc")}
            figures |= {name: None if value is None else float(value) for name, value in shares.items()}
    except (KeyError, TypeError, ValueError, AttributeError) as fault:
        raise HapaxError(
            f"{kb.place}: the summary of run {run.id} was not written by Hapax ({fault!r}). Run the search again."
        ) from fault
    return figures


def _rule_figures(line: Mapping[str, Any], run: RunRecord) -> dict[str, Any]:
    """A rule's line of the record with its steps as objects, the shares of values that gates let pass, and a note."""
    account, skipped = tuple(StepAccount.from_json(step) for step in line["account"]), line["skipped"]
    gates = {gate: count["accepted"] / count["judged"] for gate, count in line["gates"].items() if count["judged"]}
    note = ""
    if skipped:
        note = f"skipped: {skipped['model']} does not know {', '.join(skipped['unknown'])}. {skipped['remedy']}"
    elif not (line["head"] or line["long_tail"]):
        note = str(shortage(account, run.settings.get("compat")) or "")
    delta = None if line["delta"] is None else float(line["delta"])
    figures = {"account": account, "equal_scores": equal_scores(account), "note": note, "gates": gates, "delta": delta}
    return {**line, **figures, **{name: int(line[name]) for name in ("head", "long_tail", "in_both", "calls", "hits")}}


# Of several verdicts on one value the last one holds; with a lone max(), SQLite takes the columns of its row.
_GATES = (
    "SELECT gate, sum(accepted), sum(NOT accepted) FROM (SELECT gate, accepted, max(rowid) FROM decisions "
    "WHERE rule IS NULL AND run_id = %s GROUP BY subject) GROUP BY gate;"
)


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run: its settings, and how far it is. `statements`: rows, of which a statement at both ends has two.

    `figures`: those that a search stored at its end, as `search_figures` gives them. `sent`: its calls by role;
    `verdicts`: numbers of accepted and rejected values by gate. `state`: of a running search, as it has written it
    itself; None if it has not, or has ended.
    """

    run: RunRecord
    figures: Mapping[str, Any]
    sent: Mapping[str, CallStatistics]
    verdicts: list[tuple[str, int, int]]
    statements: int
    facts: int
    state: RunState | None

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
        # Another program, or a later version, may know other states.
        return str(_STATES.get(self.run.status, f"The state of this run is {self.run.status}."))

    @property
    def took(self) -> str:
        """Duration of the run since its last start; empty if it is unknown."""
        try:
            started, finished = map(datetime.fromisoformat, (self.run.started, self.run.finished or ""))
            seconds = (finished - started).total_seconds()
        except (ValueError, TypeError):  # TypeError: one of the times has no zone
            return ""
        # Negative if the clock was set back meanwhile.
        return duration(seconds) if seconds >= 0 else ""

    @property
    def settings(self) -> list[tuple[str, str]]:
        """Models and settings of the run as texts."""
        named = self.run.settings.items()
        others = [(name.replace("_", " "), _setting_text(value)) for name, value in named if name not in _NOT_SETTINGS]
        return [*models_of(self.run).items(), *others]

    @property
    def circular(self) -> str | None:
        """The judge of the delta, if that also ranked or taught the ranker."""
        return circular_judge(self.run)

    @property
    def costs(self) -> list[dict[str, Any]]:
        """Role, model and calls `sent`: known roles in their usual order, then others."""
        models = models_of(self.run)
        roles = [*(role for role in ROLES if role in self.sent), *(role for role in self.sent if role not in ROLES)]
        return [{"role": role, "model": models.get(role, ""), "sent": self.sent[role]} for role in roles]

    @property
    def all_sent(self) -> CallStatistics:
        """The calls to all roles together; the cost is None if a price is unknown."""
        return sum(self.sent.values(), CallStatistics())

    @property
    def rules(self) -> StoredTable:
        """The rules of a search that has ended, with their statements, calls, and the shares that gates let pass."""
        lines = self.figures.get("rules", {})
        gates = [gate.name for gate in gates_in_order() if any(gate.name in line["gates"] for line in lines.values())]
        rows: list[tuple[Any, ...]] = []
        for name, line in lines.items():
            counts = [line[column] for column in ("head", "long_tail", "in_both", "delta")]
            shares = [line["gates"].get(gate) for gate in gates]
            rows.append((name, *counts, *shares, line["calls"], line["hits"], line["note"]))
        columns = ("rule", "head", "long tail", "in both", "delta", *gates, "calls", "hits", "note")
        return StoredTable(columns, rows, "", Page())

    @property
    def interval(self) -> Estimate:
        """The mean delta of the rules with its interval."""
        deltas = [line["delta"] for line in self.figures.get("rules", {}).values() if line["delta"] is not None]
        return mean(deltas) if deltas else NOTHING

    def tables(self) -> dict[str, StoredTable]:
        """The tables behind the page by name."""
        columns = ("role", "model", "requests", "prompt tokens", "completion tokens", "cost")
        costs = []
        for line in self.costs:
            sent = line["sent"]
            counts = (sent.calls, sent.prompt_tokens, sent.completion_tokens, sent.cost)
            costs.append((line["role"], line["model"], *counts))
        sql = _GATES % tables.literal(self.run.id)
        return {
            "gates": StoredTable(("gate", "accepted", "rejected"), self.verdicts, sql, Page()),
            "costs": StoredTable(columns, costs, "", Page()),
            "rules": self.rules,
        }

    def to_json(self) -> dict[str, Any]:
        """The figures of the page."""
        return {
            "run": self.run.id,
            "command": self.run.command,
            "status": self.run.status,
            "is_running": self.is_running,
            "state": None if self.state is None else self.state.to_json(),
            "gates": self.tables()["gates"].to_json(),
            "costs": [{**line, "sent": asdict(line["sent"])} for line in self.costs],
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
    verdicts = [counts[gate] for gate in dict.fromkeys((*order, *counts))]
    state = RunFile(kb.path, run.id).read() if kb.path is not None and run.status == "running" else None
    figures = search_figures(kb, run)
    sent = figures.get("calls", {})
    if state is not None:
        # The summary comes when the run ends; until then the search itself tells its calls.
        with suppress(TypeError):  # written by another version
            sent = {role: CallStatistics(**counts) for role, counts in state.sent.items()} or sent
    return RunPage(run, figures, sent, verdicts, statements, facts, state)
