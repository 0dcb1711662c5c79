"""Where everything is printed: data to stdout, progress and faults to stderr, each expected error as an exit code."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table
from rich.text import Text

from grammar.errors import Diagnostic, GoalRejected, HapaxError, RulesRejected, Severity
from grammar.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.report import Tally
    from evaluation.probing.tables import Page

DONE, FAILED, BUDGET_REACHED, RULES_REJECTED, INTERRUPTED = 0, 1, 3, 4, 130


class Screen(Console):
    """A console on which text is only shown: what a terminal would obey, or show in another order, is spelt out."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The text as rich draws it, cells of tables included."""
        return super().render_str(_OBEYED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text), **options)


_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

out = Screen(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 1_000_000)
"""Where nobody looks on, a row of a table is one line, however long: what reads it must find cells whole."""


err = Screen(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())
"""Where nobody looks on, one message is one line, so that a path or a command in it stays whole."""


NOTES_SHOWN = 3
"""How many notes of one kind at one place `check` prints; --all prints the others, too."""


SECONDS_BETWEEN_LINES = 10
"""Between two lines of progress, where there is no terminal to draw a bar on."""


class Commands(click.Group):
    """Turns every expected error into one line and an exit code; a traceback would be a defect."""

    def invoke(self, ctx: click.Context) -> Any:
        from llm_oracle.calls import BudgetReached

        try:
            with _ended_by_signals():
                return super().invoke(ctx)
        except RulesRejected as rejected:
            print_diagnostics(rejected.diagnostics)
            ctx.exit(FAILED if isinstance(rejected, GoalRejected) else RULES_REJECTED)
        except BudgetReached as reached:
            err.print(escape(str(reached)))
            ctx.exit(BUDGET_REACHED)
        except HapaxError as fault:
            err.print(f"[red]error:[/] {escape(str(fault))}")
            ctx.exit(FAILED)
        except OSError as fault:
            if isinstance(fault, BrokenPipeError):
                raise  # click ends quietly when a reader such as `head` has gone
            told = f"{fault.filename}: {fault.strerror}" if fault.filename and fault.strerror else str(fault)
            err.print(f"[red]error:[/] {escape(told)}. Nothing that was answered is lost.")
            ctx.exit(FAILED)
        except KeyboardInterrupt as ended:
            err.print("Interrupted. Everything answered so far is kept; the same command goes on from here.")
            ctx.exit(ended.code if isinstance(ended, Ended) else INTERRUPTED)


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: a command ends as by Ctrl-C, with the exit code that shells give to the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Signals that ask a process to end are raised as `Ended`, unless whoever started it wants them ignored (nohup)."""

    def end(number: int, _: object) -> None:
        raise Ended(number)

    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    asked = [getattr(signal, name) for name in names if hasattr(signal, name)]
    heeded = [one for one in asked if signal.getsignal(one) is signal.SIG_DFL]
    for one in heeded:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in heeded:
            signal.signal(one, signal.SIG_DFL)


def print_diagnostics(diagnostics: Iterable[Diagnostic], as_json: bool = False, every: bool = True) -> None:
    """Faults and notes as text or JSON; `every`: all notes of a kind, not the first few."""
    if as_json:
        click.echo(json.dumps([{**asdict(one), "place": str(one.place)} for one in diagnostics], default=str))
        return
    for (severity, code, place), group in groupby(diagnostics, lambda one: (one.severity, one.code, one.place)):
        alike = list(group)
        shown = len(alike) if every or severity is not Severity.NOTE else NOTES_SHOWN
        for one in alike[:shown]:
            out.print(escape(str(one)))
        if more := len(alike[shown:]):
            out.print(escape(f"{place}: {counted(more, f'more note {code}', f'more notes {code}')}; --all prints all."))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """Columns and rows without lines; the cells are data, never markup."""
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)


def print_pages(pages: Iterable[Page]) -> None:
    """Tables with a blank line between them."""
    for number, page in enumerate(pages):
        out.print("\n" * bool(number), end="")
        print_table(page.columns, page.rows, title=page.title)


def number_text(value: float | None) -> str:
    """Two decimals, or `n/a`."""
    return "n/a" if value is None else f"{value:.2f}"


class _Display:
    """Counts what a search tells, and shows the count after each word of it."""

    def __init__(self, tally: Tally, show: Callable[[Tally], None]) -> None:
        self._tally, self._show = tally, show

    def started(self, rules: int, calls: int) -> None:
        self._tally.started(rules, calls)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        self._tally.searching(rules, calls)
        self._show(self._tally)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        self._tally.advanced(calls, hits, accepted, rejected)
        self._show(self._tally)


@contextmanager
def progress_display(shown: bool) -> Iterator[_Display | None]:
    """A bar on a terminal, else plain lines, both on stderr."""
    from engine.report import Tally

    if not shown:
        yield None
        return
    tally = Tally()
    with _bar() if err.is_terminal and not err.is_dumb_terminal else _lines(tally) as show:
        yield _Display(tally, show)


@contextmanager
def _bar() -> Iterator[Callable[[Tally], None]]:
    """A bar that takes what the counts leave of the line."""
    from rich.progress import BarColumn, TextColumn

    with Progress(BarColumn(None), TextColumn("{task.description}"), console=err, expand=True, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda tally: bar.update(task, completed=tally.share, description=tally.counts + tally.left)


@contextmanager
def _lines(tally: Tally) -> Iterator[Callable[[Tally], None]]:
    """A line at the start, then one in ten seconds at most, and one at the end."""
    from engine.report import duration

    began = tally.clock()
    due = began

    def show(tally: Tally) -> None:
        nonlocal due
        if tally.clock() >= due:
            due = tally.clock() + SECONDS_BETWEEN_LINES
            err.print(f"{tally.rules}: {tally.counts}{tally.left}", soft_wrap=True)

    yield show
    err.print(f"searched in {duration(tally.clock() - began)}: {tally.counts}", soft_wrap=True)
