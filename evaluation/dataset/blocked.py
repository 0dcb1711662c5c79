"""The block list: terms and patterns whose statements are left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grammar.errors import HapaxError


@dataclass(frozen=True, slots=True)
class BlockList:
    """One term or `/regular expression/` a line; blank lines and lines that begin with # say nothing.

    A term blocks where it stands as whole words. Case and compatibility forms of letters (NFKC) do not count.
    """

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def read(cls, path: Path) -> BlockList:
        """Raises HapaxError, naming the line, for an expression that is none, and for a file that cannot be read."""
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except OSError as fault:
            raise HapaxError(f"{path}: {fault.strerror}. Name a block list that can be read.") from None
        except UnicodeDecodeError:
            raise HapaxError(f"{path}: this is not UTF-8. Save the block list as UTF-8.") from None
        told = ((number, line.strip()) for number, line in enumerate(lines, 1))
        return cls(tuple(_pattern(path, number, text) for number, text in told if text and not text.startswith("#")))

    def blocks(self, texts: Iterable[str]) -> bool:
        """Whether a pattern is in one of the texts."""
        plain = [_plain(text) for text in texts] if self.patterns else []
        return any(pattern.search(text) for text in plain for pattern in self.patterns)


def _pattern(path: Path, number: int, text: str) -> re.Pattern[str]:
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1], re.IGNORECASE)
        except (re.error, OverflowError, RecursionError) as fault:
            raise HapaxError(
                f"{path}:{number}: {text} is no regular expression ({fault}). Mend it, or write a term without slashes."
            ) from None
    words = r"\s+".join(map(re.escape, _plain(text).split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
