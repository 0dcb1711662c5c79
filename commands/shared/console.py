"""The console: data to stdout, progress and errors to stderr in the words of the command line, and exit codes."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from enum import StrEnum
from functools import lru_cache
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from hapax.commands.shared.groups import MOVED, CommandGroup
from hapax.grammar.arguments import ArgumentRejected
from hapax.grammar.errors import (
    UNREADABLE_FILE,
    Diagnostic,
    GoalRejected,
    HapaxError,
    RulesRejected,
    Severity,
)
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Setting, worded_for
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from hapax.engine.search.progress import Watcher

DONE, FAILED, WRONG_USAGE, BUDGET_REACHED, RULES_REJECTED, INTERRUPTED = 0, 1, 2, 3, 4, 130


# --- streams ----------------------------------------------------------------------------------------------------------


class Screen(Console):
    """A console that escapes control characters: a terminal would obey them, or reorder the text."""

    def render_str(self, text: str, **options: Any) -> Text:
        """Text as rich draws it, with control characters as escapes. Cells of tables come here too."""
        return super().render_str(visible(text), **options)


def visible(text: str) -> str:
    """The text with control characters as escapes."""
    return _CONTROLS.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


# Controls but tab and line feed, also those of Latin-1; then signs without width, and those that turn the direction.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def _open_streams() -> None:
    """Give each standard stream that the caller closed the null device, and let narrow encodings print escapes.

    A closed stream's number would go to the next file that is opened, and texts for the stream into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
        # Python has None in place of a stream that was closed when it began.
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w" if number else "r", encoding="utf-8"))  # noqa: SIM115  for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


# Before the consoles below take the streams.
_open_streams()

# Without a terminal a row of a table, or a message, is one line, so that programs find cells, paths and commands whole.
out = Screen(soft_wrap=True, highlight=False, emoji=False, width=None if sys.stdout.isatty() else 1_000_000)
err = Screen(stderr=True, highlight=False, emoji=False, soft_wrap=not sys.stderr.isatty())

ROWS_AT_ONCE = 1_000
"""Rows of a table that are laid out together, so that the first are seen while the others are read."""

STATEMENTS_SHOWN = 10
"""Statements that fell or rose, of which each is printed; the rest are counted."""

PATIENCE = 2.0
"""Seconds after which a terminal shows what goes on."""

SECONDS_BETWEEN_LINES = 10
"""Interval of progress lines where there is no terminal for a bar."""


# --- errors, signals and the log --------------------------------------------------------------------------------------


class Commands(CommandGroup):
    """Prints every expected error as one line and ends with its exit code. A traceback is a defect."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of these words; of an earlier spelling, with a line that has today's."""
        if args and args[0] in MOVED:
            err.print(f"`hapax {args[0]}` is now `hapax {MOVED[args[0]]}`.")
            args = [*MOVED[args[0]].split(), *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with worded_for(CommandLine(ctx.meta)):
            return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            # A missing library becomes an error that names the extra which brings it.
            with _ended_by_signals(), extras_named():
                return super().invoke(ctx)
        except ArgumentRejected as rejected:
            # Exit code 2, as for the faults that click finds itself.
            raise click.UsageError(str(rejected)) from None
        except HapaxError as fault:
            ctx.exit(ended_by(fault))
        except (OSError, RuntimeError) as fault:
            # click ends quietly when a reader such as `head` has gone; `Path.resolve` names a loop of links so.
            if isinstance(fault, BrokenPipeError) or not (isinstance(fault, OSError) or "Symlink loop" in str(fault)):
                raise
            # The error of a library may lack both.
            named = [getattr(fault, name, None) for name in ("filename", "strerror")]
            message = f"{named[0]}: {named[1]}" if all(named) else str(fault)
            _print_always(f"[red]error:[/] {escape(message)}. No answer is lost.")
            ctx.exit(FAILED)
        except KeyboardInterrupt as ended:
            _print_always(" ".join(["Interrupted.", *getattr(ended, "__notes__", [Left.UNCHANGED])]))
            ctx.exit(ended.code if isinstance(ended, Ended) else INTERRUPTED)


def ended_by(fault: HapaxError) -> int:
    """Print why a command, or one goal of several, ends; the exit code."""
    from hapax.llm_oracle.budget import BudgetReached

    if isinstance(fault, RulesRejected):
        out.quiet = False
        print_diagnostics(fault.diagnostics, texts=fault.texts)
        # A faulty goal is no fault of the rules.
        return FAILED if isinstance(fault, GoalRejected) else rejected_code(fault.diagnostics)
    if isinstance(fault, BudgetReached):
        _print_always(escape(str(fault)))
        return BUDGET_REACHED
    _print_always(f"[red]error:[/] {escape(str(fault))}")
    return FAILED


def rejected_code(diagnostics: Iterable[Diagnostic]) -> int:
    """The exit code for errors of rules: that of wrong usage if files that were named are no rules at all."""
    errors = [found for found in diagnostics if found.severity is Severity.ERROR]
    return WRONG_USAGE if errors and all(found.code == UNREADABLE_FILE for found in errors) else RULES_REJECTED


def be_quiet(quiet: bool) -> None:
    """Print nothing on stderr from here on but errors, or print everything."""
    err.quiet = quiet


def _print_always(message: str) -> None:
    # Errors are printed even with --quiet.
    err.quiet = False
    err.print(message)


def be_verbose(level: int) -> None:
    """Print the log of Hapax on stderr: nothing at 0, rounds of calls to models at 1, their texts from 2 on."""
    logger = logging.getLogger("hapax")
    # A process may run several commands, as tests do.
    logger.handlers = [_LogLines()] if level else []
    logger.setLevel(logging.DEBUG if level > 1 else logging.INFO if level else logging.WARNING)
    # A program that has set up logging of its own would print the lines again.
    logger.propagate = False


class _LogLines(logging.Handler):
    """Prints log records as lines between those of progress."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(f"{time.strftime('%H:%M:%S')}  {record.getMessage()}", markup=False, soft_wrap=True)


class Left(StrEnum):
    """Sentences about stored data that an interrupted command prints; a command that stores nothing needs none."""

    UNCHANGED = "Nothing that was stored before is lost. Run the same command to begin again."
    NOTHING = "Nothing was stored. Run the same command to begin again."
    WHOLE = "Either all of it was stored or nothing. Run the same command to make sure."
    ANSWERS = "All answers so far are kept. Run the same command to go on."
    STORED = "What was stored is kept."


@contextmanager
def leaving(left: Left) -> Iterator[None]:
    """Have an interruption of the block say what is left. The innermost block has the word; also a decorator."""
    try:
        yield
    except KeyboardInterrupt as ended:
        if not hasattr(ended, "__notes__"):
            ended.add_note(left)
        raise


class Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP: the command ends as with Ctrl-C, with the exit code that shells use for the signal."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Raise SIGTERM and SIGHUP as `Ended`, unless the parent process ignores them (nohup)."""

    def end(number: int, _: object) -> None:
        raise Ended(number)

    # Python lets only the main thread set handlers.
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]  # Windows has no SIGHUP
    handled = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in handled:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


# --- data -------------------------------------------------------------------------------------------------------------


def use_json(_: click.Context, __: click.Parameter, value: bool) -> None:
    """Callback of --json: stdout is for the JSON alone, and `out` prints nothing there."""
    out.quiet = value


def print_json(value: Any) -> None:
    """With --json, print a value as one line; results of operations say themselves how they look as JSON."""
    if out.quiet:
        say_json(value)


def say_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    # By `echo`: `out` would escape signs, and take brackets for markup. A narrow encoding gets the escapes of JSON.
    is_wide = (sys.stdout.encoding or "").lower().startswith("utf")
    click.echo(json.dumps(value, ensure_ascii=not is_wide, default=_as_json))


def _as_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return list(value) if isinstance(value, Iterable) else str(value)


def say(text: object) -> None:
    """Print a text as it is, unless --json was given."""
    if not out.quiet:
        click.echo(text)


def note(text: object, label: str = "") -> None:
    """Print a line on stderr, perhaps behind a label."""
    err.print(f"[yellow]{label}[/] {escape(str(text))}" if label else escape(str(text)), soft_wrap=True)


def show(found: Any) -> None:
    """Print what an operation found: with --json as JSON, otherwise its tables and lines; its notes on stderr."""
    print_json(found)
    tables = getattr(found, "tables", [found])
    for number, table in enumerate(tables):
        if number:
            out.print()
        print_table(table.columns, table.cells(), title=getattr(table, "title", "") or None)
    details = getattr(found, "details", ())
    if tables and details:
        out.print()
    for line in details:
        out.print(escape(line))
    for remark in getattr(found, "notes", ()):
        note(remark)


def print_diagnostics(diagnostics: Iterable[Diagnostic], texts: Mapping[str, str] | None = None) -> None:
    """Print diagnostics with their source lines. `texts`: sources that are not files, by name."""
    _lines_of.cache_clear()
    for diagnostic in diagnostics:
        out.print(escape(str(diagnostic)))
        for line in excerpts(diagnostic, texts or {}):
            out.print(line)


def diagnostic_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A diagnostic's fields, its place as text, and the range of the place in parts."""
    place = diagnostic.place
    return {**asdict(diagnostic), "place": str(place), **asdict(place)}


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> None:
    """Print a table without lines, in parts as its rows come. Cells are data, never markup."""
    from rich.table import Column, Table

    title = None if title is None else escape(title)
    waiting = (tuple(map(cell_text, row)) for row in rows)
    widths = list(map(cell_len, columns))
    is_first = not out.quiet
    while (part := list(islice(waiting, ROWS_AT_ONCE if not out.quiet else 0))) or is_first:
        # A column is as wide as in the parts before, unless it would take more than its share of the screen.
        least = [0 if is_first else min(width, out.width // len(columns)) for width in widths]
        # Folded, not cut: at 80 columns two rows must not read alike.
        headers = [
            Column(escape(name), min_width=width, overflow="fold") for name, width in zip(columns, least, strict=True)
        ]
        table = Table(*headers, box=None, pad_edge=False, header_style="bold", show_header=is_first)
        if is_first:
            table.title, table.title_justify = title, "left"
        for row in part:
            table.add_row(*map(escape, row))
            widths = list(map(max, widths, map(cell_len, row)))
        out.print(table)
        is_first = False


def cell_text(cell: object) -> str:
    """A cell of a table: figures with four decimals at most, without zeros behind them."""
    if cell is None or isinstance(cell, bool):
        return {None: "unknown", True: "yes", False: "no"}[cell]
    return f"{cell:.4f}".rstrip("0").rstrip(".") if isinstance(cell, float) else str(cell)


def print_texts(outcome: str, texts: Sequence[str]) -> None:
    """Print what happened to statements, one line each."""
    for text in texts[:STATEMENTS_SHOWN]:
        out.print(f"{outcome}: {escape(text)}", soft_wrap=True)
    if len(texts) > STATEMENTS_SHOWN:
        out.print(f"{outcome}: {counted(len(texts) - STATEMENTS_SHOWN, 'more statement')}; --json lists all")


def counts_text(counts: Mapping[str, int]) -> str:
    """`knowledge 204, critic 310`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


# --- progress ---------------------------------------------------------------------------------------------------------


@contextmanager
def progress_display(visible: bool) -> Iterator[Watcher | None]:
    """A progress bar on a terminal, otherwise plain lines, both on stderr; None if progress is not shown."""
    if not visible:
        yield None
    elif not err.is_terminal or err.is_dumb_terminal:
        with _lines() as show:
            yield show
    else:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        # As wide as the counts leave room for; `transient`: the bar is gone when the report is printed.
        with Bar(BarColumn(None), TextColumn("{task.description}"), console=err, expand=True, transient=True) as bar:
            task = bar.add_task("", total=1.0)
            yield lambda now: bar.update(task, completed=now.share, description=now.counts + now.left)


Tell = Callable[..., None]
"""Says what goes on: a text, and perhaps how many parts are done of how many."""


@contextmanager
def working(doing: str) -> Iterator[Tell]:
    """Show on a terminal what the block does once that takes longer than PATIENCE. It may print nothing on stdout."""
    if not doing or not err.is_terminal or err.is_dumb_terminal:
        yield lambda *_: None
        return
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    # Redirected, stdout would come out on stderr, even where it is a pipe.
    bar = Progress(*columns, console=err, transient=True, redirect_stdout=False, redirect_stderr=False)
    task = bar.add_task(visible(doing), total=None)

    def tell(text: str, done: int = 0, total: int = 0) -> None:
        bar.columns = (*columns, MofNCompleteColumn(), TimeRemainingColumn()) if total else columns
        bar.update(task, description=visible(text), completed=done, total=total or None)

    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield tell
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


@contextmanager
def _lines() -> Iterator[Watcher]:
    """Plain lines: one at the start, then at most one per ten seconds, and one at the end."""
    from hapax.engine.search.progress import Progress, duration

    last = Progress()
    began = last.clock()
    # The first line comes at once.
    due = began

    def show(now: Progress) -> None:
        nonlocal due, last
        last = now
        if now.clock() >= due:
            due = now.clock() + SECONDS_BETWEEN_LINES
            err.print(f"{now.rules}: {now.counts}{now.left}", soft_wrap=True)

    yield show
    err.print(f"searched in {duration(last.clock() - began)}: {last.counts}", soft_wrap=True)


# --- excerpts of sources ----------------------------------------------------------------------------------------------

MARKED_PLACES = 3
"""Related places whose lines are printed; the message names all of them."""
WIDEST = 160
"""Columns of a source line that are printed on either side of a marked range."""

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}


def excerpts(diagnostic: Diagnostic, texts: Mapping[str, str]) -> Iterator[str]:
    """The marked source lines of a diagnostic as console markup; none where the source cannot be read as a rule file.

    `texts`: sources that are not files, by the name in their places.
    """
    # Place, style, sign and label of each excerpt.
    marks = [(diagnostic.place, f"[{_COLOURS[diagnostic.severity]}]", "^", "")]
    marks += [(place, "[blue]", "-", f" see also {place}") for place in diagnostic.related[:MARKED_PLACES]]
    width = len(str(max(place.line for place, *_ in marks)))
    for place, style, sign, label in marks:
        lines = texts[place.file].split("\n") if place.file in texts else _lines_of(Path(place.file))
        if place.end_column is None or not 0 < place.line <= len(lines):
            continue
        # A tab takes one cell, so that the signs stand below their range.
        line = lines[place.line - 1].replace("\t", " ")
        start = min(place.column - 1, len(line))
        # Of a range of several lines the first is printed.
        end = max(start, min(place.end_column - 1, len(line)) if place.end_line == place.line else len(line.rstrip()))
        before, marked, after = line[:start], line[start:end], line[end:]
        before = f"...{before[-WIDEST:]}" if len(before) > WIDEST else before
        after = f"{after[:WIDEST]}..." if len(after) > WIDEST else after
        marked, after = (f"{marked[:WIDEST]}...", "") if len(marked) > WIDEST else (marked, after)
        before, marked, after = visible(before), visible(marked), visible(after)
        # In cells of the terminal, of which a wide character takes two; an empty range gets one sign.
        signs = sign * max(1, cell_len(marked))
        yield f"{place.line:>{width}} | {escape(before + marked + after)}"
        yield f"{' ' * width} | {' ' * cell_len(before)}{style}{signs}{escape(label)}[/]"


@lru_cache(64)
def _lines_of(path: Path) -> list[str]:
    """The lines as the parser counts them."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError):
        return []
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


OPTIONS = {
    'hapax.load_rules("shipped")': "`--rules shipped`",
    "hapax.with_entailments": "--entail",
    "kb": "--db",
    "judges": "--judge",
    "mapping": "--predicate NAME --columns FIRST,SECOND, or --map FILE",
    "mapping.columns": "--predicate NAME --columns FIRST,SECOND",
    "model": "-m",
    "models": "--ask",
    "options.model": "-m",
    "only": "--rule",
    "options.chosen": "--set",
    "options.evaluators": "--evaluator",
    "options.models": "--model",
    "options.rules": "--rule",
    "options.runs": "--run",
    "options.unjudged": "--new",
    "options.scorers": "--scorer",
    "options.sources": "--source",
    "options.training": "--train",
    "options.variants": "--variant",
    "options.voters": "--voter",
    "options.way": "--ask",
    "options.wordings": "--wording",
    "predicate": "--of",
    "prices": "--price",
    "selection.rules": "--rule",
    "selection.runs": "--run",
    "selection.shared": "--in-both",
    "settings.calls_per_question": "--calls",
    "settings.critic": "--no-critic",
    "settings.likelihood": "--no-likelihood",
    "settings.own": "--prompt",
    "settings.promise": "--precision",
    "settings.statement_promise": "--statement-precision",
    "settings.values_per_call": "--values",
    "target.formats": "--format",
    "folder": "--out",
}
"""Options by the argument in Python. Any other has the argument's own name, or that of its last field."""

COMMANDS = {
    "ask_schemas": "evaluate winograd ask",
    "backup": "kb backup",
    "build_questions": "evaluate booqa build",
    "calibrate": "model calibrate",
    "check_rules": "check",
    "compile_rules": "rules compile",
    "evaluate_grid": "evaluate grid",
    "evaluate_instruction": "evaluate instruct",
    "evaluate_likelihood": "evaluate likelihood",
    "evaluate_long_tail": "evaluate long-tail",
    "evaluate_probe": "evaluate probe",
    "evaluate_soundness": "evaluate soundness",
    "expand_rules": "rules expand",
    "explain_fault": "rules explain",
    "export_facts": "export",
    "export_sheets": "votes export",
    "import_facts": "import",
    "import_lint": "evaluate lint",
    "import_sheets": "votes import",
    "lint_rules": "rules lint",
    "list_models": "model list",
    "merge": "data merge",
    "mine_rules": "rules mine",
    "retract": "data retract",
    "restore": "data retract --undo",
    "split_entailments": "evaluate entailment data",
    "start_folder": "init",
    "stats": "data stats",
    "store_entailments": "evaluate entailment facts",
    "verify": "kb verify",
    "why_not": "why-not",
    "withdrawn_facts": "data retract --list",
    "write_dataset": "data dataset",
}
"""Commands by the function in Python, where their names differ."""


BY_RULES = ("query", "why", "why_not", "derive")
"""Operations on the rule files and the knowledge base of the command that names them."""

OF_A_BASE = (*BY_RULES, "retract", "restore", "withdrawn_facts", "stats", "verify")
"""Operations on the knowledge base of the command that names them."""

WHOLE = ("derive", "withdrawn_facts", "stats", "verify")
"""Operations that need no argument: all others are only named without one."""

NAMED_DATABASE, NAMED_PATHS = "hapax.database", "hapax.paths"
"""Where click's `meta` has the knowledge base and the rule files that the user named on the command line."""


class CommandLine:
    """Options and commands, as one types them. `named`: the files that the user named, as `NAMED_PATHS` says."""

    call = "command"

    def __init__(self, named: Mapping[str, Any] | None = None) -> None:
        self._named = {} if named is None else named  # filled while the command line is read

    def setting(self, setting: Setting) -> str:
        option = OPTIONS.get(setting.name) or f"--{setting.name.rpartition('.')[2].replace('_', '-')}"
        return f"{option} {setting.metavariable}".rstrip()

    def operation(self, operation: Operation) -> str:
        return f"`{' '.join(self._words(operation))}`"

    def _words(self, operation: Operation) -> Iterator[str]:
        yield f"hapax {COMMANDS.get(operation.name, operation.name)}"
        # Quoted, because a stranger may have chosen a name, and the line is pasted into a shell.
        for argument in operation.arguments:
            yield shlex.quote(str(argument))
        for name, value in operation.settings.items():
            option = self.setting(Setting(name))
            yield option if value is True else f"{option} {shlex.quote(str(value))}"
        # So that the command reads what this one has read.
        if not operation.arguments and operation.name not in WHOLE:
            return
        if operation.name in BY_RULES:
            yield from (shlex.quote(str(path)) for path in self._named.get(NAMED_PATHS, ()))
        if operation.name in OF_A_BASE and "kb" not in operation.settings and self._named.get(NAMED_DATABASE):
            yield f"--db {shlex.quote(self._named[NAMED_DATABASE])}"


TOOLS = {"query", "why", "why_not", "check_rules", "ask"}
"""Operations that are tools of an agent, by the same name."""


class ToolCalls(CommandLine):
    """Tools and their arguments, as an agent calls them; what no tool does is for the person who runs the server."""

    call = "tool call"

    def setting(self, setting: Setting) -> str:
        if setting.name in ("assume", "limits.answers"):
            return f"the argument `{'limit' if setting.name == 'limits.answers' else setting.name}`"
        return f"{super().setting(setting)} of the server"

    def operation(self, operation: Operation) -> str:
        if operation.name in TOOLS:
            given = ", ".join(json.dumps(argument, ensure_ascii=False, default=str) for argument in operation.arguments)
            return f"the tool `{operation.name}({given})`"
        return f"{super().operation(operation)} by the person who runs this server"
