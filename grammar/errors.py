"""Exceptions that a user can cause, and diagnostics: a place in a text, the fact and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from hapax.grammar.remedies import Remedy


class HapaxError(Exception):
    """Base of every error that a user can cause.

    `message` names the place and the fact, and perhaps what to do. `remedy`: what to do, in the words of the door at
    which the error is shown; "" if there is none beside the message.
    """

    def __init__(self, message: str = "", remedy: Remedy | str = "") -> None:
        super().__init__(message, remedy)
        self.message, self.remedy = message, remedy

    def __str__(self) -> str:
        between = "" if self.message.endswith("\n") else " "
        return f"{self.message}{between}{self.remedy}" if self.remedy else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of other processes arrive with all fields; those of a class need not be the arguments of its __init__.
        return _arrived, (type(self), self.args, self.__dict__)


def _arrived(kind: type[HapaxError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> HapaxError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


@dataclass(frozen=True, slots=True)
class Place:
    """File with 1-based line and column. Places are excluded from the equality of their owners.

    `end_line` and `end_column`: of the first character after the range; None: only the start is known. Two places with
    one start are the same place, and the range is not in the representation, which identifies runs.
    """

    file: str = "<text>"
    line: int = 1
    column: int = 1
    end_line: int | None = field(default=None, compare=False, repr=False)
    end_column: int | None = field(default=None, compare=False, repr=False)

    def contains(self, place: Place) -> bool:
        """True if another place begins in this range."""
        begin, end = (self.line, self.column), (self.end_line or self.line, self.end_column or self.column + 1)
        return self.file == place.file and begin <= (place.line, place.column) < end

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(StrEnum):
    """Errors stop the rules from being used; warnings and notes do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class TextRepair:
    """The text `new` in the place of `old`, which begins at each of the places."""

    old: str
    new: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding at one place of a text.

    Its code names its kind: a `Hint` (`hints.py`) where the text is malformed, a `RuleFault` (`faults.py`)
    where well-formed rules are wrong. `related` are further places involved, such as the first of two clashing lines.
    `fix`: the change of the text that follows the remedy, where it leaves no choice.
    """

    code: str
    severity: Severity
    place: Place
    message: str
    remedy: str
    related: tuple[Place, ...] = ()
    fix: TextRepair | None = None

    def with_fix(self, old: str, new: str, *places: Place) -> Diagnostic:
        """The diagnostic with a fix: the text `new` for `old` at these places, or else at its own."""
        return replace(self, fix=TextRepair(old, new, places or (self.place,)))

    def __str__(self) -> str:
        also = f" (see also {', '.join(map(str, self.related))})" if self.related else ""
        return f"{self.place}: {self.severity} {self.code}: {self.text}{also}"

    @property
    def text(self) -> str:
        """The message and the remedy as sentences, without place and code."""
        return f"{_sentence(self.message)} {_sentence(self.remedy)}".rstrip()


UNREADABLE_FILE = "HPX060"
"""The code of a file that was named as rules and cannot be read as such."""


class RulesRejected(HapaxError):  # noqa: N818 - reads as what happened
    """Rules that cannot be used; `diagnostics` are all that were found, warnings included.

    `texts`: the sources that are not files, by the name in the diagnostics' places.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic], texts: Mapping[str, str] | None = None) -> None:
        self.diagnostics = tuple(diagnostics)
        self.texts = dict(texts or {})
        super().__init__("\n".join(map(str, self.diagnostics)))


class GoalRejected(RulesRejected):
    """A goal or an atom that cannot be asked, although the rules are sound."""


def _sentence(text: str) -> str:
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else text + "."
