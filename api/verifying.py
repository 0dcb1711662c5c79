"""The check of a knowledge base against itself, and verified copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.api.tabular import Tabular
from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.kb.store import KnowledgeBase
    from hapax.kb.verification import Damage


@dataclass(frozen=True)
class Verification(Tabular):
    """Damages of a knowledge base, with the numbers of rows and of stored proofs that were checked.

    `rewritten`: rules that were rewritten after their statements were derived. The proofs of these were compared with
    the facts only.
    """

    rows: int
    damages: Sequence[Damage]
    proofs: int = 0
    rewritten: Sequence[str] = ()
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
            "damages": [asdict(damage) for damage in self.damages],
        }


@checked
def verify(kb: KnowledgeBase) -> Verification:
    """Check SQLite's structures, hash the identity of every row again, follow every reference between tables, and
    replay the stored proofs with the facts and rules of the knowledge base.
    """
    from hapax.api.kept_rules import kept_rules
    from hapax.engine.inference.replay import Replay
    from hapax.grammar.errors import HapaxError
    from hapax.kb.verification import damages

    found = list(damages(kb))
    if any(damage.table == "SQLite" for damage in found):
        return Verification(0, found)
    try:
        library = kept_rules(kb)
    except HapaxError:
        library = None  # rules of an older version of the language: proofs are compared with the facts
    replay = Replay(kb, library)
    found += replay.damages()
    return Verification(sum(kb.row_counts().values()), found, replay.statements, sorted(replay.rewritten))


@checked
def backup(database: str | Path, target: str | Path) -> int:
    """Copy a knowledge base, also while others write to it, into a new file; return the number of its rows.

    The copy is verified as by `verify` before it takes its name. Raises HapaxError if the target exists or a row is
    damaged.
    """
    from hapax.kb.backups import copy_verified

    return copy_verified(Path(database), Path(target))


@checked
def restore_backup(copy: str | Path, database: str | Path) -> Path | None:
    """Replace a knowledge base by a backup; return the file that keeps the replaced one, None if there was none.

    The backup is verified first and stays. Raises HapaxError if it is damaged.
    """
    from hapax.kb.backups import put_back

    return put_back(Path(copy), Path(database))
