"""Requests that left for servers, as the knowledge base has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from hapax.grammar.arguments import checked
from hapax.grammar.options import Option
from hapax.grammar.writing.notebook import Tabular

if TYPE_CHECKING:
    from hapax.kb.store import KnowledgeBase

COUNTS = {name: name for name in ("answered", "refused", "unusable", "queued")} | {"error": "errors"}
"""Fields of `Spending` by the outcome that they count; all other requests were perhaps billed."""


@dataclass
class Spending:
    """Requests of one role to one model. `perhaps`: those without a whole reply, which were perhaps billed.

    Tokens and cost include all requests, of those that were perhaps billed the most that they can use; the cost is None
    if a price is unknown. `queued`: requests in batch files whose results were not read; they are no part of the other
    figures.
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
        return [tuple(asdict(row).values()) for row in self.spending]

    def to_json(self) -> dict[str, Any]:
        """All figures as one JSON object."""
        return {"spending": [asdict(row) for row in self.spending]}


Since: TypeAlias = Annotated[str, Option("First UTC time, such as 2026-11 or 2026-11-23T08:00.", metavariable="TIME")]
Until: TypeAlias = Annotated[str, Option("UTC time before which the period ends.", metavariable="TIME")]


@checked
def ledger(kb: KnowledgeBase, *, since: Since = "", until: Until = "") -> SpendingLedger:
    """Every request that left for a server, summed by model and role, lost and repeated ones included.

    `since` and `until`: beginnings of UTC times such as `2026-11` or `2026-11-23`; `until` itself is excluded.
    """
    rows: dict[tuple[str, str], Spending] = {}
    for attempt in kb.attempts():
        # ISO times are compared as texts; a beginning such as `2026-11` is less than every time that begins with it.
        if attempt.outcome == "unsent" or attempt.started < since or (until and attempt.started >= until):
            continue
        key = attempt.model, attempt.role
        row = rows.setdefault(key, Spending(*key))
        name = COUNTS.get(attempt.outcome or "", "perhaps")
        setattr(row, name, getattr(row, name) + 1)
        if name != "queued":
            row.requests += 1
            row.prompt_tokens += attempt.prompt_tokens
            row.completion_tokens += attempt.completion_tokens
            # One unknown price makes the sum unknown.
            row.cost = None if row.cost is None or attempt.cost is None else row.cost + attempt.cost
    return SpendingLedger([rows[key] for key in sorted(rows)])
