"""Files and texts to libraries, and goals. `statements.py` reads the statements of a text.

The errors of all statements of all files are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NoReturn

from hapax.grammar.arguments import checked
from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, Place, RulesRejected
from hapax.grammar.goals import GOAL_PLACE, Goal
from hapax.grammar.parsing.assemble import assemble
from hapax.grammar.parsing.goal_reader import Elsewhere, allowed_goal
from hapax.grammar.parsing.hints import DIAGNOSTICS_PER_FILE, TOO_MANY
from hapax.grammar.parsing.rule_imports import Opener, RuleSource, UnreadableFile, with_imports
from hapax.grammar.parsing.statements import grouped_digits, read_goal, read_statements
from hapax.grammar.parsing.tree_builder import tokens_of
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.link_json import statements_of_link_json
from hapax.grammar.writing.words import counted

_CHECK_PATH = "Check the path and its permissions."
_FACT_SUFFIXES = frozenset((".csv", ".jsonl"))
_SQLITE_HEADER = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class ReadRules:
    """The statements that could be read, as a library, and the diagnostics of the others.

    `files`: all that were read, imported files included.
    """

    library: Library
    diagnostics: tuple[Diagnostic, ...]
    files: tuple[str, ...]


@checked
def parse_rules(text: str, name: str = "rules") -> Library:
    """The rules of a text. `name` stands in error messages for a file's name. Raises RulesRejected."""
    return parse_library([(name, text)])


def parse_library(sources: Iterable[tuple[str, str]]) -> Library:
    """All rules of the sources, pairs of file name and text, as one library.

    Raises `RulesRejected` with the diagnostics of all sources, at most 50 per source and a count of the rest.
    """
    return _accepted(_read((read_statements(file, text) for file, text in sources), _only_named, is_trusted=True))


def load_library(paths: Sequence[str | Path]) -> Library:
    """The library of files and folders (`*.rules`, `*.txt`, LINK's `*.json`), the files of a folder by name.

    Raises `RulesRejected`, also for files that cannot be read.
    """
    return _accepted(read_rules(paths))


def read_rules(paths: Sequence[str | Path]) -> ReadRules:
    """The readable part of the files and folders that `load_library` takes, and diagnostics for the rest."""
    return _read((_or_unreadable(str(path), _opened) for path in rule_files(paths)), _opened, is_trusted=True)


def read_texts(sources: Iterable[tuple[str, str]], *, import_files: bool = False) -> ReadRules:
    """Like `read_rules`, of texts that were read from files: pairs of file name and text.

    `import_files`: imported files that are not among the texts are read, too.
    """
    files = (_or_unreadable(file, partial(_read_source, text=text)) for file, text in sources)
    # Texts that may not read files are not trusted with Python functions either.
    return _read(files, _opened if import_files else _only_named, is_trusted=import_files)


def rule_files(paths: Sequence[str | Path]) -> Iterator[Path]:
    """The files that `load_library` reads."""
    for path in map(Path, paths):
        if path.is_dir():
            # Sorted, because the order in a folder depends on the file system.
            files = sorted(file for file in path.iterdir() if file.suffix in (".rules", ".txt", ".json"))
            # A folder without any is a fault of its own.
            yield from files or [path]
        else:
            yield path


def parse_addition(file: str, text: str, library: Library) -> Library:
    """The library of a text that extends `library`, whose types and signatures it may use; it does not include these.

    Raises `RulesRejected`.
    """
    source = read_statements(file, text)
    parsed, diagnostics = assemble([(source.file, "", source.lines)], library)
    if source.diagnostics or diagnostics:
        raise RulesRejected(_capped(file, [*source.diagnostics, *diagnostics]))
    return parsed


def parse_rule(text: str, library: Library | None = None, file: str = "<text>") -> Rule:
    """The single rule of the text, read with the types and signatures of `library`. Raises `RulesRejected`.

    `file`: name of the text in diagnostics.
    """
    parsed = parse_addition(file, text, library or Library())
    if len(parsed.rules) != 1 or replace(parsed, rules=()) != Library():
        raise HapaxError(
            f"Expected exactly one rule and nothing else; found {counted(len(parsed.rules), 'rule')} in the text."
        )
    return parsed.rules[0]


def _accepted(read: ReadRules) -> Library:
    if read.diagnostics:
        raise RulesRejected(read.diagnostics)
    return read.library


def _read(files: Iterable[RuleSource], opened: Opener, *, is_trusted: bool) -> ReadRules:
    """The sources and their imports as one library: names, types and values are settled across files."""
    sources = with_imports(files, opened)
    lines = [(source.file, source.suffix, source.lines) for source in sources]
    library, from_assembly = assemble(lines, Library(), is_trusted=is_trusted)
    by_file: dict[str, list[Diagnostic]] = {source.file: [] for source in sources}
    # A file that is imported under several names has most of its faults under each.
    for diagnostic in dict.fromkeys(chain(*(source.diagnostics for source in sources), from_assembly)):
        by_file[diagnostic.place.file].append(diagnostic)
    listed: list[Diagnostic] = []
    for file, diagnostics in by_file.items():
        listed += _capped(file, diagnostics)
    library = replace(library.completed(), texts={source.file: source.text for source in sources})
    return ReadRules(library, tuple(listed), tuple(by_file))


def _capped(file: str, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The first diagnostics by place, and a count of the rest."""
    ordered = sorted(diagnostics, key=lambda diagnostic: (diagnostic.place.line, diagnostic.place.column))
    left_out = len(ordered) - DIAGNOSTICS_PER_FILE
    if left_out <= 0:
        return ordered
    first_left_out = Place(file, ordered[DIAGNOSTICS_PER_FILE].place.line)
    return [*ordered[:DIAGNOSTICS_PER_FILE], TOO_MANY.at(first_left_out, count=counted(left_out, "more fault"))]


# Files

MAXIMUM_BYTES = 100_000_000
"""Bytes of a rule file."""


def _read_source(file: str, text: str) -> RuleSource:
    """The statements of the text of a file. Raises UnreadableFile for JSON of another form than LINK's."""
    if Path(file).suffix != ".json":
        return replace(read_statements(file, text), text=text)
    return RuleSource(file, statements_of_link_json(text), text=text)


def _or_unreadable(file: str, read: Callable[[str], RuleSource]) -> RuleSource:
    """The statements of a file; one that cannot be read has its diagnostic alone."""
    try:
        return read(file)
    except UnreadableFile as error:
        return RuleSource(file, diagnostics=[error.at(Place(file, *error.spot))])


def _opened(name: str) -> RuleSource:
    """The statements of the file with this name. Raises UnreadableFile."""
    path = Path(name)
    if path.is_dir():
        reason = "it is a folder without files of rules (*.rules, *.txt)"
        raise UnreadableFile(reason, Remedy("Name another one; {} reads tables.", Operation("import_facts")))
    try:
        # `-sig`: some editors begin a file with a byte order mark.
        source = _read_source(name, file_content(path).decode("utf-8-sig"))
    except OSError as error:
        raise UnreadableFile(error.strerror or str(error), _CHECK_PATH) from None
    except UnicodeDecodeError as error:
        if error.object.startswith(_SQLITE_HEADER):
            raise UnreadableFile("it is a knowledge base", Remedy("Pass it as {}.", Setting("kb", str(path)))) from None
        raise UnreadableFile(f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from None
    # Facts that were passed as rules: one diagnostic instead of one for each row.
    if source.diagnostics and path.suffix in _FACT_SUFFIXES:
        raise UnreadableFile("it contains no rules", Remedy("Import facts with {}.", Operation("import_facts", path)))
    return source


def file_content(path: Path) -> bytes:
    """The bytes of a rule file. Raises OSError, and UnreadableFile for more bytes than a rule file may have."""
    with path.open("rb") as stream:
        content = stream.read(MAXIMUM_BYTES + 1)  # a device may have no end
    if len(content) > MAXIMUM_BYTES:
        raise UnreadableFile(
            f"it has more than {MAXIMUM_BYTES // 10**6} million bytes",
            Remedy("Name a rule file; {} reads facts.", Operation("import_facts")),
        )
    return content


def _only_named(name: str) -> NoReturn:
    """Refuses to read files for texts, which may come from a stranger."""
    raise UnreadableFile(f"{name} is not among the rules that are read here", "Pass it along, or pass the files.")


# Goals


def parse_goal(text: str, library: Library, elsewhere: Elsewhere = lambda _: "") -> Goal:
    """The goal of a query, checked against the predicates of the library. Raises `GoalRejected`.

    Raises RulesRejected for a predicate of which a rule was left out.
    """
    goal, diagnostics = allowed_goal(read_goal(text), text, library, elsewhere)
    if diagnostics:
        grouped = grouped_digits(GOAL_PLACE, list(tokens_of(text)))
        raise GoalRejected([grouped] if grouped else _capped(GOAL_PLACE, list(diagnostics)), {GOAL_PLACE: text})
    library.refuse_left_out(goal.called)
    return goal
