"""Merkle roots of the rows of a knowledge base: one for each run, and one over them.

Leaves and nodes are hashed as in RFC 6962 (SHA-256 of 00 and the leaf, of 01 and two nodes). A leaf is a row of a table
as JSON; leaves are sorted, so the order of writing does not matter and a backup has the roots of its original.

A seal is the roots, signed with an SSH key and kept in two files beside the knowledge base. `ssh-keygen -Y` signs and
checks, so that anybody can check a seal without Hapax:
`ssh-keygen -Y check-novalidate -n hapax -s hapax.db.seal.sig < hapax.db.seal`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.kb import own_files, rows
from hapax.kb.records import RUNS, TABLES
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import publish, unfinished
from hapax.kb.verification import strange_objects

SHARED = ""
"""Name of the rows that belong to no run, such as answers of models, given facts, rules and votes."""


STRANGE = "objects of other programs"
"""Name of the tables, indexes, triggers and views that Hapax did not make, or not so. No run's id has blanks."""


@dataclass(frozen=True, slots=True)
class RunRoot:
    """The root of one run's rows. `run`: its id, `SHARED` or `STRANGE`."""

    run: str
    rows: int
    root: str


@dataclass(frozen=True, slots=True)
class Roots:
    """The roots of a knowledge base by run; `root` is that over the runs' lines."""

    runs: tuple[RunRoot, ...]

    @property
    def root(self) -> str:
        return merkle_root(sorted(_leaf(_line(run)) for run in self.runs))

    @property
    def run_count(self) -> int:
        """Number of runs, without the rows that belong to none."""
        return sum(run.run not in (SHARED, STRANGE) for run in self.runs)

    @property
    def text(self) -> str:
        """The text that a seal signs."""
        lines = ["hapax seal 1", f"root {self.root}", *map(_line, self.runs)]
        return "".join(f"{line}\n" for line in lines)

    @classmethod
    def read(cls, text: str) -> Roots:
        """The roots of a seal's text. Raises ValueError for any other text."""
        head, root, *lines = text.splitlines()
        runs = []
        for line in lines:
            word, digest, count, name = line.split(" ", 3)
            runs.append(RunRoot(json.loads(name), int(count), digest))
            if word != "run":
                raise ValueError(f"the line {line[:60]!r} is none of a seal")
        roots = cls(tuple(runs))
        if head != "hapax seal 1" or root != f"root {roots.root}":
            raise ValueError("its root is not that of its lines")
        return roots

    def changed_since(self, sealed: Roots) -> list[tuple[str, str]]:
        """Runs whose rows are not as sealed, each with the difference in words."""
        now = {run.run: run for run in self.runs}
        before = {run.run: run for run in sealed.runs}
        changes = []
        for run in sorted({*now, *before}):
            if run not in now:
                changes.append((run, "its rows are gone"))
            elif run not in before:
                changes.append((run, f"it is not in the seal, with {now[run].rows} rows"))
            elif now[run] != before[run]:
                changes.append((run, f"it had {before[run].rows} rows and has {now[run].rows}, not all the same"))
        return changes


def roots_of(kb: KnowledgeBase) -> Roots:
    """The roots of everything that Hapax stored, and of the objects of the file that it did not make.

    Indexes and derived tables are left out, as they can be made again.
    """
    leaves: dict[str, list[bytes]] = {}
    for strange in strange_objects(kb):
        entry = strange.object
        text = json.dumps([str(strange.is_gone), entry.kind, entry.name, entry.table, entry.sql])
        leaves.setdefault(STRANGE, []).append(_leaf(text))
    for table in (table for table in TABLES if kb.has(table.name)):
        for run, leaf in _leaves(kb, table):
            leaves.setdefault(run, []).append(leaf)
    found = []
    for run, hashes in sorted(leaves.items()):
        hashes.sort()
        found.append(RunRoot(run, len(hashes), merkle_root(hashes)))
    return Roots(tuple(found))


def merkle_root(leaves: Sequence[bytes]) -> str:
    """The root over hashed leaves, in hexadecimal digits."""
    # Pairs level by level, which gives the same tree as the recursive split of RFC 6962, section 2.1.
    level = list(leaves)
    while len(level) > 1:
        pairs = [hashlib.sha256(b"\1" + level[at] + level[at + 1]).digest() for at in range(0, len(level) - 1, 2)]
        # The last of an odd number goes up as it is, so the tree splits at powers of two as that of RFC 6962.
        level = pairs + level[len(level) // 2 * 2 :]
    return level[0].hex() if level else hashlib.sha256().hexdigest()


def _leaves(kb: KnowledgeBase, table: rows.TableSchema[object]) -> Iterator[tuple[str, bytes]]:
    """Run and hashed leaf of each row of a table."""
    columns = ", ".join(f"{table.name}.{name}" for name in table.all_columns)
    run = f"{table.name}.run_id"
    if table is RUNS:  # a run owns its own row
        run = "runs.id"
    elif "run_id" not in table.all_columns:
        run = "NULL"
    for name, *cells in kb.connection.execute(f"SELECT {run}, {columns} FROM {table.name}"):  # noqa: S608  ours
        # Another program may have written what JSON has no form for.
        yield str(name or SHARED), _leaf(json.dumps([table.name, *cells], separators=(",", ":"), default=repr))


def _leaf(text: str) -> bytes:
    return hashlib.sha256(b"\0" + text.encode("ascii")).digest()


def _line(run: RunRoot) -> str:
    return f"run {run.root} {run.rows} {json.dumps(run.run)}"


# --- signed roots -----------------------------------------------------------------------------------------------------

NAMESPACE = "hapax"
"""Purpose that is part of a signature, so that none made for another purpose passes as a seal."""

# ssh-keygen says `Good "hapax" signature with ED25519 key SHA256:...`, or `... signature for NAME with ED25519 ...`.
_SIGNER = re.compile(r"with (\S+ key SHA256:\S+)")
# Good "hapax" signature for NAME with ED25519 key SHA256:...
_PRINCIPAL = re.compile(r'Good "hapax" signature for (.+) with ')


@dataclass(frozen=True, slots=True)
class Seal:
    """A seal with a good signature. `key`: type and fingerprint of the key that signed it.

    `signer`: its owner by the file of signers that was named; None without one.
    """

    roots: Roots
    key: str
    signer: str | None = None


def seal_path(database: Path) -> Path:
    """Path of the seal beside a knowledge base; its signature has `.sig` after it."""
    return database.with_name(f"{database.name}.seal")


def signature_path(seal: Path) -> Path:
    """Path of the signature of a seal."""
    return seal.with_name(f"{seal.name}.sig")


def sign(roots: Roots, seal: Path, key: Path) -> Seal:
    """Write the seal and its signature, in place of earlier ones, and check them.

    `key`: a private key of SSH, or the public key of one that an agent holds. Raises HapaxError if signing fails.
    """
    if not key.is_file():
        raise HapaxError(f"{key}: there is no such key. Make one with `ssh-keygen -t ed25519 -f {key}`.")
    try:
        with unfinished(seal) as written:
            written.write_text(roots.text, encoding="ascii")
            _run(["-Y", "sign", "-f", str(key.resolve()), "-n", NAMESPACE, str(written)], f"{key}: signing failed")
            # ssh-keygen has written the signature beside the file, under its name with `.sig`.
            for path in (signature_path(written), written):
                publish(path, seal.with_name(path.name))
    except OSError as error:
        raise HapaxError(f"{seal}: the seal cannot be written ({error.strerror or error}).") from error
    return read(seal)


def read(seal: Path, signers: Path | None = None) -> Seal:
    """A seal whose signature is good. Raises HapaxError for any other.

    `signers`: file of those whose signature counts, in the format ALLOWED SIGNERS of ssh-keygen; None: anybody's.
    """
    signature = signature_path(seal)
    try:
        text = own_files.read(seal).decode("ascii")
        roots = Roots.read(text)
        own_files.read(signature)
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, own_files.ForeignFileError) else fault
        raise HapaxError(f"{seal}: this is no seal ({reason}). Seal the knowledge base again.") from fault
    check = ["-n", NAMESPACE, "-s", str(signature.resolve())]
    said = _run(["-Y", "check-novalidate", *check], f"{signature}: it is no signature of {seal.name}", text)
    key = found[1] if (found := _SIGNER.search(said)) else said.strip()
    if signers is None:
        return Seal(roots, key)
    if not signers.is_file():
        raise HapaxError(f"{signers}: there is no such file of signers. Each of its lines is `NAME KEYTYPE KEY`.")
    unknown = f"{seal}: the signer, {key}, is not in {signers}"
    names = ["-f", str(signers.resolve())]
    # `verify` asks for the signer's name, which the file of signers has for the key.
    principal = _run(["-Y", "find-principals", *names, "-s", str(signature.resolve())], unknown).splitlines()
    said = _run(["-Y", "verify", *names, "-I", principal[0] if principal else "", *check], unknown, text)
    return Seal(roots, key, found[1] if (found := _PRINCIPAL.search(said)) else principal[0])


def _run(arguments: Sequence[str], failure: str, text: str = "") -> str:
    """Output of ssh-keygen. Raises HapaxError with `failure` if it fails."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise HapaxError("ssh-keygen signs and checks seals, and is not installed. Install OpenSSH's client.")
    ended = subprocess.run([program, *arguments], input=text.encode("ascii"), capture_output=True, check=False)
    # It complains on stderr or on stdout, depending on the operation.
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace")
    if ended.returncode != 0:
        raise HapaxError(f"{failure} ({' '.join(said.split()) or 'ssh-keygen failed'}).")
    return ended.stdout.decode("utf-8", "replace")
