"""The check of a knowledge base against itself, and verified copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hapax.engine.inference.replay import Replay
from hapax.engine.kept_rules import kept_rules
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.notebook import Tabular
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.seals import Roots, Seal, read, roots_of, seal_path, sign
from hapax.kb.store import KnowledgeBase
from hapax.kb.verification import Damage, damages, strange_objects


@dataclass(frozen=True)
class Verification(Tabular):
    """Damages of a knowledge base, with the numbers of rows and of stored proofs that were checked.

    `rewritten`: rules that were rewritten after their statements were derived. The proofs of these were compared with
    the facts only. `others`: tables, indexes and views of other programs, which change nothing that Hapax stores.
    `roots`: Merkle roots of the rows by run, None for a file that SQLite cannot read. `seal`: the seal
    beside the file, if it has one whose signature is good.
    """

    rows: int
    damages: Sequence[Damage]
    proofs: int = 0
    rewritten: Sequence[str] = ()
    others: Sequence[str] = ()
    roots: Roots | None = None
    seal: Seal | None = None
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
            "root": self.roots.root if self.roots else None,
            "runs": [asdict(run) for run in self.roots.runs] if self.roots else [],
            "seal": {"root": self.seal.roots.root, "key": self.seal.key, "signer": self.seal.signer}
            if self.seal
            else None,
        }


@checked
def verify(kb: KnowledgeBase, *, signers: str | Path | None = None) -> Verification:
    """Check a knowledge base against itself.

    SQLite checks its structures, each table, index, trigger and view is compared with what Hapax makes, the identity of
    every row is hashed again, every reference between tables is followed, and the stored proofs are replayed with the
    facts and rules of the knowledge base. A seal is checked, too.
    `signers`: file of those whose seals count, in the format ALLOWED SIGNERS of ssh-keygen; None: anybody's.
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
    roots = roots_of(kb)
    sealed, broken = _checked_seal(kb, roots, None if signers is None else Path(signers))
    rows = sum(kb.row_counts().values())
    others = [str(strange.object) for strange in strange_objects(kb) if not strange.reason]
    return Verification(rows, [*found, *broken], replay.statements, sorted(replay.rewritten), others, roots, sealed)


def _checked_seal(kb: KnowledgeBase, roots: Roots, signers: Path | None) -> tuple[Seal | None, list[Damage]]:
    """The seal beside a knowledge base, and what does not agree with it."""
    path = seal_path(kb.path) if kb.path else None
    if path is None or not path.exists():
        # Who names signers expects a seal.
        missing = "it has no seal" if signers is not None else ""
        return None, [Damage("seal", "", missing)] if missing else []
    try:
        sealed = read(path, signers)
    except HapaxError as fault:
        return None, [Damage("seal", "", str(fault))]
    return sealed, [Damage("seal", run or "rows of no run", why) for run, why in roots.changed_since(sealed.roots)]


@checked
def seal(kb: KnowledgeBase, key: str | Path) -> Verification:
    """Verify a knowledge base in a file, and sign the Merkle roots of its rows with an SSH key.

    `key`: a private key, or the public key of one that an agent holds. The seal and its signature are written beside
    the file, in place of earlier ones. Raises HapaxError if anything is damaged.
    """
    if kb.path is None:
        raise HapaxError("A knowledge base in memory cannot be sealed. Write it to a file.")
    verified = verify(kb)
    # An earlier seal that no longer agrees is about to be replaced.
    damaged = [damage for damage in verified.damages if damage.table != "seal"]
    if damaged or verified.roots is None:
        first = damaged[0]
        raise HapaxError(
            f"{kb.place}: it is damaged and was not sealed; the first damage: {first.table} {first.row}: "
            f"{first.reason.rstrip('.')}.",
            Remedy("See all with {}.", Operation("verify")),
        )
    return replace(verified, damages=[], seal=sign(verified.roots, seal_path(kb.path), Path(key)))
