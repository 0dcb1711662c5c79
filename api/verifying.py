"""The check of a knowledge base against itself, and verified copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hapax.engine.inference.replay import Replay
from hapax.engine.kept_rules import kept_rules
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.writing.notebook import Tabular
from hapax.kb.files.backups import Damage, damages, strange_objects
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class Verification(Tabular):
    """Damages of a knowledge base, with the numbers of rows and of stored proofs that were checked.

    `rewritten`: rules that were rewritten after their statements were derived. The proofs of these were compared with
    the facts only. `others`: tables, indexes and views of other programs, which change nothing that Hapax stores.
    """

    rows: int
    damages: Sequence[Damage]
    proofs: int = 0
    rewritten: Sequence[str] = ()
    others: Sequence[str] = ()
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
        return {
            "clean": self.is_clean,
            "rows": self.rows,
            "proofs": self.proofs,
            "rewritten": list(self.rewritten),
            "others": list(self.others),
            "damages": [asdict(damage) for damage in self.damages],
        }


@checked
def verify(kb: KnowledgeBase) -> Verification:
    """Check a knowledge base against itself.

    SQLite checks its structures, each table, index, trigger and view is compared with what Hapax makes, the identity of
    every row is hashed again, every reference between tables is followed, and the stored proofs are replayed with the
    facts and rules of the knowledge base.
    """
    found = list(damages(kb))
    # SQLite may read rows of a broken file wrongly, so nothing else is checked.
    if any(damage.table == "SQLite" for damage in found):
        return Verification(0, found)
    try:
        library = kept_rules(kb)
    except HapaxError:
        library = None  # proofs are compared with the facts alone
    replay = Replay(kb, library)
    found += replay.damages()
    rows = sum(kb.row_counts().values())
    others = [str(strange.object) for strange in strange_objects(kb) if not strange.reason]
    return Verification(rows, found, replay.statements, sorted(replay.rewritten), others)
