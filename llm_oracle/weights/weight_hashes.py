"""Expected hashes of a model's weights: the file SHA256SUMS of a folder, in the format of the command `sha256sum`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from hapax.grammar.errors import HapaxError

SUMS_FILE = "SHA256SUMS"


def file_hash(path: Path) -> str:
    """SHA-256 of the file's content, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Write SHA256SUMS for these files of the folder."""
    # Two blanks, as `sha256sum` writes them for files that are read as text.
    lines = [f"{file_hash(folder / name)}  {name}\n" for name in sorted(names)]
    (folder / SUMS_FILE).write_text("".join(lines), encoding="utf-8")


def check_sums(folder: Path) -> None:
    """Compare the files of the folder with its SHA256SUMS, if it has one.

    Raises HapaxError for a file that is missing or whose content has another hash.
    """
    sums = folder / SUMS_FILE
    if not sums.is_file():
        return
    try:
        for number, line in enumerate(sums.read_text(encoding="utf-8").splitlines(), 1):
            expected, _, name = line.partition("  ")
            # A name of a file in this folder: a path would let the listing have other files read.
            if len(expected) != 64 or Path(name).name != name:
                raise HapaxError(f"{sums}:{number} is malformed. Write it with: sha256sum *.safetensors > {SUMS_FILE}")
            found = file_hash(folder / name)
            if found != expected:
                raise changed_weights(folder / name, found, expected, f"in {sums}")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{sums} cannot be compared with the files: {fault}. Install the model anew.") from fault


def changed_weights(path: Path, found: str, expected: str, stated: str) -> HapaxError:
    """The error for a file whose hash is not the expected one. `stated`: where the expected one stands."""
    return HapaxError(
        f"The weights in {path} are damaged or were changed: their SHA-256 is {found[:16]}..., and {expected[:16]}... "
        f"stands {stated}. Install the model anew."
    )
