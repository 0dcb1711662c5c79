"""The check of a knowledge base against itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hapax.api.tabular import Tabular
from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.kb.store import KnowledgeBase
    from hapax.kb.verification import Damage


@dataclass(frozen=True)
class Verification(Tabular):
    """Damages of a knowledge base, and the number of rows that were compared with their identities."""

    rows: int
    damages: Sequence[Damage]
    columns = ("table", "row", "reason", "content")

    @property
    def is_clean(self) -> bool:
        """True if there is no damage."""
        return not self.damages

    def cells(self) -> list[tuple[Any, ...]]:
        """A row for each damage."""
        return [(damage.table, damage.row, damage.reason, damage.content) for damage in self.damages]

    def to_json(self) -> dict[str, Any]:
        """All damages as one JSON object."""
        return {"clean": self.is_clean, "rows": self.rows, "damages": [asdict(damage) for damage in self.damages]}


@checked
def verify(kb: KnowledgeBase) -> Verification:
    """Check SQLite's structures, hash the identity of every row again, and follow every reference between tables."""
    from hapax.kb.verification import damages

    found = list(damages(kb))
    is_readable = all(damage.table != "SQLite" for damage in found)
    return Verification(sum(kb.row_counts().values()) if is_readable else 0, found)
