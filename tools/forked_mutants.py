"""Mutants that are tested in forks of one process, which has imported the product and collected all tests.

A fork gives the mutant's function its changed code and runs the tests, so that a mutant takes a second or two instead
of ten. Changes outside functions, such as those of constants, cannot be made in this way, nor can those of code that
runs in other processes: they have no outcome here.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FunctionType
from typing import Any, NoReturn, Protocol

import pytest

ROOT = Path(__file__).resolve().parent.parent

TIMED_OUT = "timed out"
"""Outcome of a mutant whose tests reached the time limit."""
_CACHED = type(functools.cache(len))
"""The class of functions that keep what they have returned."""


class FunctionMutant(Protocol):
    """A mutant of `tools.mutation`, as far as it is needed here."""

    @property
    def path(self) -> Path: ...

    @property
    def line(self) -> int: ...

    @property
    def tree(self) -> ast.Module: ...


def forked_outcomes(
    mutants: Sequence[FunctionMutant],
    tests: Callable[[FunctionMutant], Sequence[str]],
    seconds: float,
    jobs: int,
    collected: Sequence[str] = ("tests",),
) -> list[str | None]:
    """The outcome of each mutant by the tests that `tests` names, by node id, in that order; None: it had no outcome.

    `seconds`: time limit for the tests of a mutant. `collected`: the folders or files of tests.
    """
    options = ["-q", "--no-header", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov"]
    with TemporaryDirectory(prefix="mutants-") as folder:
        plugin = _ForkingPlugin(mutants, tests, seconds, jobs, folder)
        pytest.main([*options, *collected], plugins=[plugin])
    return plugin.outcomes


@dataclass
class _Trial:
    """A fork at work. `doubted`: the test that failed for the mutant, if the fork runs it without the change."""

    place: int
    tests: Sequence[str]
    doubted: str | None
    process: int = 0
    reading: int = 0
    began: float = field(default_factory=time.monotonic)


class _ForkingPlugin:
    """Runs mutants in place of the tests that pytest has collected."""

    def __init__(
        self,
        mutants: Sequence[FunctionMutant],
        tests: Callable[[FunctionMutant], Sequence[str]],
        seconds: float,
        jobs: int,
        folder: str,
    ) -> None:
        self.outcomes: list[str | None] = [None] * len(mutants)
        self._mutants, self._tests, self._seconds, self._jobs = mutants, tests, seconds, jobs
        self._folder = folder
        self._items: dict[str, pytest.Item] = {}
        self._sound: set[str] = set()
        self._unsound: set[str] = set()
        self._writing: int | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In a fork: the first failure ends it."""
        if self._writing is not None and report.failed:
            self._end({"failed": report.nodeid})

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Test all mutants. True: the tests themselves need not run."""
        if session.testsfailed:
            return True
        self._items = {item.nodeid: item for item in session.items}
        waiting = [_Trial(place, self._collected(place), None) for place in reversed(range(len(self._mutants)))]
        running: list[_Trial] = []
        while waiting or running:
            while waiting and len(running) < self._jobs:
                trial = waiting.pop()
                if trial.tests:
                    self._fork(trial)
                    running.append(trial)
            readable, _, _ = select.select([trial.reading for trial in running], [], [], 0.05)
            for trial in list(running):
                has_ended = trial.reading in readable
                if has_ended or time.monotonic() - trial.began > self._seconds:
                    running.remove(trial)
                    waiting += self._next(trial, self._result(trial, not has_ended))
        return True

    def _collected(self, place: int) -> list[str]:
        return [name for name in self._tests(self._mutants[place]) if name in self._items and name not in self._unsound]

    def _next(self, trial: _Trial, result: dict[str, Any]) -> list[_Trial]:
        """Note the outcome that a fork's result gives, or what to try next to know it."""
        failed = result.get("failed")
        if trial.doubted is not None:
            # A test that also fails without the change kills nothing.
            if result.get("passed"):
                self._sound.add(trial.doubted)
                self._note(trial, f"killed by {trial.doubted}")
                return []
            self._unsound.add(trial.doubted)
            return [_Trial(trial.place, self._collected(trial.place), None)]
        if failed in self._sound:
            self._note(trial, f"killed by {failed}")
        elif failed is not None:
            return [_Trial(trial.place, [failed], failed)]
        elif result.get("passed"):
            self._note(trial, "survived")
        elif not result:
            self._note(trial, TIMED_OUT)
        return []

    def _note(self, trial: _Trial, outcome: str) -> None:
        self.outcomes[trial.place] = outcome
        mutant = self._mutants[trial.place]
        print(f"{mutant.path}:{mutant.line} {outcome}", file=sys.stderr, flush=True)

    def _fork(self, trial: _Trial) -> None:
        mutant = self._mutants[trial.place]
        # In the parent, because a module that a test imports later would come without the change.
        importlib.import_module(_module(mutant.path))
        reading, writing = os.pipe()
        gc.freeze()  # what is never looked at stays shared with the fork
        process = os.fork()
        if process == 0:
            os.close(reading)
            self._writing = writing
            self._work(None if trial.doubted else mutant, trial.tests)
        os.close(writing)
        trial.process, trial.reading, trial.began = process, reading, time.monotonic()

    def _work(self, mutant: FunctionMutant | None, tests: Sequence[str]) -> NoReturn:
        """In a fork: change the function and run the tests."""
        try:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for descriptor in range(3):
                os.dup2(silence, descriptor)
            os.chdir(self._folder)  # a mutant may write files of any name
            gc.unfreeze()
            if mutant is not None and not _change(mutant):
                self._end({"unchanged": True})
            items = [self._items[name] for name in tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._end({"passed": True})
        except BaseException as fault:  # noqa: BLE001  whatever the change has broken
            self._end({"failed": f"the run of the tests: {fault!r}"})

    def _end(self, result: dict[str, Any]) -> NoReturn:
        assert self._writing is not None  # noqa: S101  this is a fork
        os.write(self._writing, json.dumps(result).encode())
        os._exit(0)

    @staticmethod
    def _result(trial: _Trial, is_late: bool) -> dict[str, Any]:
        """The result that the fork has written; empty if it is late."""
        written = b"" if is_late else os.read(trial.reading, 1 << 16)
        with suppress(ProcessLookupError):
            os.killpg(trial.process, signal.SIGKILL)  # also the processes that tests have left behind
        os.close(trial.reading)
        os.waitpid(trial.process, 0)
        if is_late:
            return {}
        # A fork that ends without a word was ended by the change.
        return dict(json.loads(written)) if written else {"failed": "the end of the process"}


def _change(mutant: FunctionMutant) -> bool:
    """Give the functions that the mutant changes their new code, and empty all caches; False if no code was changed."""
    file = ROOT / mutant.path
    functions = [
        function for function in gc.get_objects() if isinstance(function, FunctionType) and _is_in(function, file)
    ]
    if not functions:
        return False
    name = functions[0].__code__.co_filename
    before = compile(file.read_text("utf-8"), name, "exec", dont_inherit=True)
    after = compile(mutant.tree, name, "exec", dont_inherit=True)
    # Both have the same functions in the same order, unless one that a change has left without use is gone.
    pairs = list(zip(_codes(before), _codes(after), strict=False))
    is_changed = False
    for function in functions:
        for old, new in pairs:
            if function.__code__ == old and old.co_qualname == new.co_qualname and old != new:
                try:
                    function.__code__ = new
                except ValueError:  # the change leaves a variable of an outer function without use
                    return False
                is_changed = True
                break
    for cached in gc.get_objects():
        # What the collection of tests has computed would hide the change.
        if isinstance(cached, _CACHED) and cached.__module__.startswith("hapax."):
            cached.cache_clear()
    return is_changed


def _is_in(function: FunctionType, file: Path) -> bool:
    name = function.__code__.co_filename
    return name.endswith(file.name) and os.path.realpath(name) == str(file)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The codes of all functions below this one, in a fixed order."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _module(path: Path) -> str:
    return ".".join(["hapax", *path.with_suffix("").parts]).removesuffix(".__init__")
