"""Remedies as data: an error names settings and operations, and each door words them in its own way.

A setting is named by its argument in Python, such as `limits.seconds`, and an operation by its function. The text of
either depends on the door that this process has opened: `--seconds` on the command line, words in a browser.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting; `metavariable`: what to give for it, such as `FILE`."""

    name: str
    metavariable: str = ""

    def __str__(self) -> str:
        return _open[-1].setting(self)


class Operation:
    """A function of `hapax`, with arguments and settings. True stands for a setting without a value."""

    def __init__(self, name: str, *arguments: object, **settings: object) -> None:
        self.name, self.arguments, self.settings = name, arguments, settings

    def __str__(self) -> str:
        return _open[-1].operation(self)


class _Call:
    """The word for the user's action: a command, a call, a request. `Run the same {} again.`"""

    def __str__(self) -> str:
        return _open[-1].call


CALL = _Call()


class Remedy:
    """A sentence whose `{}` stand for settings, operations and values. Its text is made when it is shown."""

    def __init__(self, template: str, *parts: object) -> None:
        self.template, self.parts = template, parts

    def __str__(self) -> str:
        return self.template.format(*self.parts)


class Door(Protocol):
    """The words of one way into Hapax."""

    @property
    def call(self) -> str: ...
    def setting(self, setting: Setting) -> str: ...
    def operation(self, operation: Operation) -> str: ...


class Python:
    """The words of a script: names of arguments and functions."""

    call = "call"

    def setting(self, setting: Setting) -> str:
        return f"`{setting.name}`"

    def operation(self, operation: Operation) -> str:
        settings = " and ".join(f"`{name}`" for name in operation.settings)
        return f"`hapax.{operation.name}` with {settings}" if settings else f"`hapax.{operation.name}`"


_open: list[Door] = [Python()]
"""The doors of this process; remedies are worded for the last one."""


@contextmanager
def worded_for(door: Door) -> Iterator[None]:
    """Word the remedies of this process for a door."""
    _open.append(door)
    try:
        yield
    finally:
        _open.remove(door)
