"""Seals: the roots of a knowledge base, signed with an SSH key and kept in two files beside it.

`ssh-keygen -Y` signs and checks, so that anybody can check a seal without Hapax:
`ssh-keygen -Y check-novalidate -n hapax -s hapax.db.seal.sig < hapax.db.seal`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.kb import own_files
from hapax.kb.roots import Roots
from hapax.kb.unfinished import publish, unfinished

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
