"""The block list: terms and patterns; statements that match one are left out of a dataset."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError


@checked
@dataclass(frozen=True, slots=True)
class BlockList:
    """Patterns from a file with a term or `/regular expression/` per line, blank lines and `#` comments.

    A term matches whole words. Case and compatibility forms of letters (NFKC) are ignored.
    """

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    @checked
    def read(cls, path: Path) -> BlockList:
        """Raises HapaxError for a file that cannot be read and, with its line, for an invalid regular expression."""
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except OSError as fault:
            raise HapaxError(f"{path}: {fault.strerror}. Name a block list that can be read.") from None
        except UnicodeDecodeError:
            raise HapaxError(f"{path}: this is not UTF-8. Save the block list as UTF-8.") from None
        patterns = []
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text and not text.startswith("#"):
                patterns.append(_pattern(path, number, text))
        return cls(tuple(patterns))

    def blocks(self, texts: Iterable[str]) -> bool:
        """Return True if a pattern matches one of the texts."""
        if not self.patterns:
            return False
        folded = [_folded(text) for text in texts]
        return any(any(map(pattern.search, folded)) for pattern in self.patterns)


def _pattern(path: Path, number: int, text: str) -> re.Pattern[str]:
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1], re.IGNORECASE)
        # Python raises the last two for absurd repetitions and nesting.
        except (re.error, OverflowError, RecursionError) as fault:
            raise HapaxError(
                f"{path}:{number}: {text} is not a valid regular expression ({fault}). Fix it, or write a term without "
                "slashes."
            ) from None
    # Any blanks may stand between the words of a term: "hot dog" matches across a line end, too.
    words = r"\s+".join(map(re.escape, _folded(text).split()))
    # Not \b: a term may begin or end with a sign that is not a letter.
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
