"""Requests that left for servers, as the knowledge base has them, and their comparison with a provider's export."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.writing.notebook import Tabular

if TYPE_CHECKING:
    from hapax.kb.store import KnowledgeBase

MODEL_COLUMNS = ("model", "snapshot_id")
COUNT_COLUMNS: Mapping[str, Sequence[str]] = {
    "requests": ("num_model_requests", "n_requests", "requests"),
    "prompt_tokens": ("input_tokens", "n_context_tokens_total", "prompt_tokens"),
    "completion_tokens": ("output_tokens", "n_generated_tokens_total", "completion_tokens"),
    "cost": ("cost", "amount_value", "amount"),
}
"""Names of a provider's columns by the figure in them; the first that is there is read."""


@dataclass(frozen=True)
class Spending:
    """Requests of one role to one model. `perhaps`: those without a whole reply, which were perhaps billed.

    Tokens and cost include all requests; `perhaps_` fields are the part for requests that were perhaps billed, at the
    most that these can use. The cost is None if a price is unknown. `queued`: requests in batch files whose results
    were not read; they are no part of the other figures.
    """

    model: str
    role: str
    requests: int = 0
    answered: int = 0
    refused: int = 0
    unusable: int = 0
    errors: int = 0
    perhaps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    queued: int = 0
    perhaps_prompt_tokens: int = 0
    perhaps_completion_tokens: int = 0
    perhaps_cost: float = 0.0
    queued_prompt_tokens: int = 0
    queued_completion_tokens: int = 0
    queued_cost: float = 0.0


@dataclass(frozen=True)
class SpendingLedger(Tabular):
    """Requests that left for servers in all runs on a knowledge base, by model and role."""

    spending: Sequence[Spending]
    columns = (
        *("model", "role", "requests", "answered", "refused", "unusable", "errors", "perhaps billed"),
        *("prompt tokens", "completion tokens", "cost", "queued"),
    )

    def cells(self) -> list[tuple[Any, ...]]:
        """A row for each model and role."""
        # The fields of a row begin with the columns; those behind them serve `reconcile`.
        return [tuple(asdict(row).values())[: len(self.columns)] for row in self.spending]

    def to_json(self) -> dict[str, Any]:
        """All figures as one JSON object."""
        return {"spending": [asdict(row) for row in self.spending]}


@dataclass(frozen=True)
class ReconciledFigure:
    """One figure of one model: by the ledger from `least` to `most`, and the provider's; None: it does not say."""

    model: str
    figure: str
    least: float
    most: float
    provider: float | None

    @property
    def agrees(self) -> bool:
        """True if the provider's figure is within the ledger's, but for rounding of money, or is absent."""
        # Half a cent: exports round money to cents.
        rounding = 0.005 if self.figure == "cost" else 0.0
        return self.provider is None or self.least - rounding <= self.provider <= self.most + rounding


@dataclass(frozen=True)
class Reconciliation(Tabular):
    """The ledger beside a provider's export. `unknown`: models of the export that this knowledge base never asked."""

    comparisons: Sequence[ReconciledFigure]
    unknown: Sequence[str]
    columns = ("model", "figure", "ledger, least", "ledger, most", "provider", "agrees")

    @property
    def agrees(self) -> bool:
        """True if every figure agrees."""
        return all(comparison.agrees for comparison in self.comparisons)

    def cells(self) -> list[tuple[Any, ...]]:
        """A row for each figure."""
        return [(*asdict(row).values(), row.agrees) for row in self.comparisons]

    def to_json(self) -> dict[str, Any]:
        """All figures as one JSON object."""
        rows = [{**asdict(row), "agrees": row.agrees} for row in self.comparisons]
        return {"agrees": self.agrees, "comparisons": rows, "unknown_models": list(self.unknown)}


Since: TypeAlias = Annotated[str, Option("First UTC time, such as 2026-11 or 2026-11-23T08:00.", metavariable="TIME")]
Until: TypeAlias = Annotated[str, Option("UTC time before which the period ends.", metavariable="TIME")]


@checked
def ledger(kb: KnowledgeBase, *, since: Since = "", until: Until = "") -> SpendingLedger:
    """Every request that left for a server, summed by model and role, lost and repeated ones included.

    `since` and `until`: beginnings of UTC times such as `2026-11` or `2026-11-23`; `until` itself is excluded.
    """
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for attempt in kb.attempts():
        # ISO times are compared as texts; a beginning such as `2026-11` is less than every time that begins with it.
        if attempt.outcome == "unsent" or attempt.started < since or (until and attempt.started >= until):
            continue
        row = sums.setdefault((attempt.model, attempt.role), defaultdict(int, cost=0.0))
        used = {name: getattr(attempt, name) for name in ("prompt_tokens", "completion_tokens", "cost")}
        # Without an outcome, or lost: a provider may have billed it.
        name = _COUNTS.get(attempt.outcome or "", "perhaps")
        row[name] += 1
        if name != "queued":
            row["requests"] += 1
        for figure, amount in used.items():
            if name in ("queued", "perhaps"):
                row[f"{name}_{figure}"] += amount or 0
            if name != "queued":
                # One unknown price makes the sum unknown.
                row[figure] = None if None in (row[figure], amount) else row[figure] + amount
    return SpendingLedger([Spending(*key, **sums[key]) for key in sorted(sums)])


_COUNTS = {name: name for name in ("answered", "refused", "unusable", "queued")} | {"error": "errors"}
"""Fields of `Spending` by the outcome that they count."""


@checked
def reconcile(kb: KnowledgeBase, path: str | Path, *, since: Since = "", until: Until = "") -> Reconciliation:
    """Compare the ledger with a provider's usage export, a CSV file with a row for each model and period.

    Errors are not counted, since providers do not bill them. Raises HapaxError for a file without the columns.
    """
    provider = _exported(Path(path))
    ours = ledger(kb, since=since, until=until).spending
    names = {row.model: _exported_name(row.model, provider) for row in ours}
    comparisons = []
    # A model on several servers may have one name in the export.
    for model in sorted(set(names.values())):
        spending = [row for row in ours if names[row.model] == model]
        # A model that the export lacks was not billed at all.
        billed = provider.get(model, dict.fromkeys(COUNT_COLUMNS, 0.0))
        for figure, (least, most) in _ranges(spending).items():
            comparisons.append(ReconciledFigure(model, figure, least, most, billed.get(figure)))
    return Reconciliation(comparisons, sorted(set(provider) - set(names.values())))


def _ranges(spending: Sequence[Spending]) -> dict[str, tuple[float, float]]:
    """The least and most that a provider may have billed for requests to one model, by figure."""
    billed = [row.requests - row.errors for row in spending]
    ranges = {}
    for name in COUNT_COLUMNS:
        sums = billed if name == "requests" else [getattr(row, name) for row in spending]
        if None not in sums:
            # A provider may have billed all that has no whole reply, and what somebody sent from batch files.
            perhaps, queued = (
                sum(getattr(row, part if name == "requests" else f"{part}_{name}") for row in spending)
                for part in ("perhaps", "queued")
            )
            ranges[name] = (float(sum(sums) - perhaps), float(sum(sums) + queued))
    return ranges


def _exported_name(model: str, exported: Iterable[str]) -> str:
    """The provider's name of a model of ours, which begins with the kind and place of its server."""
    # `openai/api.openai.com/gpt-x` is `gpt-x` there.
    name = model.split("/", 2)[-1]
    # Or the name with a date behind it, such as `gpt-x-2026-08-06`; the shortest of several is the nearest.
    dated = [known for known in exported if known == name or known.startswith(f"{name}-20")]
    return min(dated, key=len, default=name)


def _exported(path: Path) -> dict[str, dict[str, float]]:
    """Figures by model and column, summed over the rows; figures without a column are absent."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            present = reader.fieldnames or ()
            model_column = next((name for name in MODEL_COLUMNS if name in present), None)
            chosen = {figure: next(filter(present.__contains__, names), "") for figure, names in COUNT_COLUMNS.items()}
            columns = {figure: name for figure, name in chosen.items() if name}
            if model_column is None or not columns:
                raise HapaxError(
                    f"{path}: line 1 names no column of models and usage. Export the usage by model, with columns such "
                    "as model, num_model_requests, input_tokens and output_tokens."
                )
            sums: dict[str, dict[str, float]] = {}
            for row in reader:
                # Several rows, one for each period, belong to one model.
                figures = sums.setdefault(row[model_column] or "", dict.fromkeys(columns, 0.0))
                for figure, column in columns.items():
                    figures[figure] += _number(row[column], f"{path}:{reader.line_num}: {column}")
            return sums
    except (OSError, UnicodeDecodeError, csv.Error) as fault:
        raise HapaxError(f"{path}: the file cannot be read as CSV ({fault}). Name a usage export in UTF-8.") from fault


def _number(cell: str | None, place: str) -> float:
    try:
        # An empty cell counts as 0.
        return float(cell or 0)
    except ValueError:
        raise HapaxError(f"{place} is {cell!r}, which is not a number. Correct the file, or export it again.") from None
