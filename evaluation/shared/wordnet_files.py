"""WordNet's database files, such as those of Debian's package `wordnet-base` (man page wndb)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SynsetLine:
    """A synset. `words`: with blanks, without markers such as `(p)`; `pointers`: symbol, offset and part of speech."""

    words: tuple[str, ...]
    pointers: tuple[tuple[str, int, str], ...]
    gloss: str


def index_entries(path: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Entries of an index file, with underscores, and the offsets of their senses, the most frequent first."""
    for line in path.read_text(encoding="ascii").splitlines():
        if not line.startswith(" "):  # the licence is indented
            fields = line.split()
            # The third field is the number of senses; their offsets end the line.
            yield fields[0], tuple(map(int, fields[-int(fields[2]) :]))


def synset_at(data: bytes, offset: int) -> SynsetLine:
    """The synset that begins at this byte of a data file."""
    line, _, gloss = data[offset : data.index(b"\n", offset)].decode("ascii").partition(" | ")
    fields = line.split()
    # wndb: offset, file number, part of speech, number of words in hexadecimal, then word and lexical id in turn.
    count = int(fields[3], 16)
    words = tuple(fields[4 + 2 * place].partition("(")[0].replace("_", " ") for place in range(count))
    # The number of pointers, in decimal; each pointer has four fields, the last of which is not needed.
    at = 4 + 2 * count
    pointers = []
    for number in range(int(fields[at])):
        symbol, target, part = fields[at + 1 + 4 * number : at + 4 + 4 * number]
        pointers.append((symbol, int(target), part))
    return SynsetLine(words, tuple(pointers), gloss.strip())
