"""Text to rules and goals. The languages are in `rule.lark` and `goal.lark`; this file cuts rule files into statements.

Each statement is parsed alone, so that a syntax error ends where its statement ends, and the errors of all statements
of all files are reported together.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial
from importlib.util import cache_from_source
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedToken

from hapax.grammar.arguments import checked
from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, Place, RulesRejected, TextRepair
from hapax.grammar.goal_language import (
    COLUMN,
    Compound,
    Elsewhere,
    Goal,
    GoalList,
    GoalTerm,
    GoalVariable,
    allowed_goal,
    called_indicators,
)
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.assemble import assemble
from hapax.grammar.parsing.hints import (
    DIAGNOSTICS_PER_FILE,
    SYNTAX_HINTS,
    TOO_MANY,
    UNEXPECTED_TOKEN,
    Hint,
    hint,
)
from hapax.grammar.parsing.rule_imports import Opener, RuleSource, UnreadableFile, with_imports
from hapax.grammar.parsing.shorthand import BUILT_IN, ShorthandWriter
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import TRUTHS, Constant
from hapax.grammar.values.moments import UNITS, duration_text
from hapax.grammar.writing.link_json import statements_of_link_json
from hapax.grammar.writing.texts import MAXIMUM_DIGITS, number_value, unquoted
from hapax.grammar.writing.words import counted

MAXIMUM_DEPTH = 100
"""Nested parentheses, and arithmetic operators per statement: trees stay shallow enough to walk recursively."""
MAXIMUM_TOKENS = 10_000
"""Tokens per statement."""
MAXIMUM_GOAL = 100_000
"""Characters per goal."""

KEYWORDS = (
    *("import", "type", "oracle", "functional", "given", "derived", "computed", "aggregate", "opposite", "fact"),
    *("symmetric", "asymmetric", "irreflexive", "transitive", "closed", "disjoint", "never"),
)
_OPERATIONS = ("PLUS", "MINUS", "STAR", "SLASH", "DIVIDE", "POWER")
GOES_ON_AFTER = frozenset(
    ("AND", "OR", "COMMA", "ARROW", "NECK", "DEFINE", "COLON", "_CHANCE", "COMPARE", "LESS", "NOT", *_OPERATIONS)
)
"""Terminals after which a statement goes on over a newline."""
GOES_ON_BEFORE = GOES_ON_AFTER - {"NOT"}  # a line that begins with "not" is a new statement
_SHORT = frozenset(
    ("RANGE", "LBRACE", "LSQB", "OR", "PERCENT", "_CHANCE", "mod", "in", *BUILT_IN, *_OPERATIONS, *TRUTHS)
)
"""Terminals, and words, of which one is in each statement with shorthand."""
_BEFORE_NOT = GOES_ON_AFTER | {"FACT", "NEVER", "_UNLESS"}
_BEFORE_ITEM = frozenset(
    (
        "AND",
        "OR",
        "COMMA",
        "ARROW",
        "NECK",
        "NOT",
        "_CHANCE",
        "LPAR",
        "LBRACE",
        "FACT",
        "EXAMPLE",
        "NEVER",
        "GIVEN",
        "DERIVED",
        "_UNLESS",
    )
)
"""Terminals behind which an item of a premise, a fact or a declared atom begins."""
_BEHIND_ITEM = frozenset(("AND", "OR", "COMMA", "ARROW", "NECK", "RPAR", "RBRACE", "_UNLESS", "$END"))
_CLAUSES = {("closed", "NUMBER", "by"), ("import", "TEXT", "as"), ("functional", "TOLERANCE", "key")} | {
    (keyword, "RPAR", "key") for keyword in ("oracle", "functional", "given", "derived")
}
"""Words inside a statement that have a meaning there, behind its keyword and the terminal before them."""
_COMMA = frozenset(("COMMA",))
ENDS_ITEM = frozenset(("RPAR", "RBRACE", "RSQB", "WORD", "NUMBER", "TEXT"))
"""Terminals that can end an item of a premise."""
_NOT_INSIDE_PARENTHESES = frozenset(("ARROW", "NECK", "DEFINE"))

_NEAR_KEYWORD = 0.75
"""Similarity from which a word is a misspelt keyword; two letters in another order leave .83 of six."""
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
NAME_TWICE = hint("name twice").code
_CHECK_PATH = "Check the path and its permissions."
_FACT_SUFFIXES = frozenset((".csv", ".jsonl"))
_SQLITE_HEADER = b"SQLite format 3\0"
_PROLOG_DIRECTIVES = frozenset(
    ("use_module", "initialization", "dynamic", "discontiguous", "table", "set_prolog_flag", "ensure_loaded", "module")
)
_AS_SOUFFLE = (
    "Declare given edge(from: Number, to: Text), begin variables with capital letters, import tables, and ask "
    "?- path(X, Y)"
)
_DECLARE_NOTHING = frozenset(("", "@", "@example", "fact"))
"""Kinds of broken statements that cannot have been declarations; see `syntax.RawBroken.kind`."""

SourceToken: TypeAlias = Token
"""A token of a rule file with its place; only this module knows lark."""
Missing: TypeAlias = Literal["nothing", "rules", "declarations"]


@dataclass(frozen=True, slots=True)
class ReadRules:
    """The statements that could be read, as a library, and the diagnostics of the others.

    `missing`: the kind of statements that the library may lack: rules (or facts), or declarations as well. Rules with
    a repeated name are in the library all the same. `files`: all that were read, imported files included.
    """

    library: Library
    diagnostics: tuple[Diagnostic, ...]
    missing: Missing
    files: tuple[str, ...]


class _TooLarge(HapaxError):  # noqa: N818 - never leaves this module
    """A statement or goal too large to be meant; `label` is its hint's."""

    def __init__(self, label: str, limit: int) -> None:
        super().__init__(label)
        self.label = label
        self.limit = limit


@checked
def parse_rules(text: str, name: str = "rules") -> Library:
    """The rules of a text. `name` stands in error messages for a file's name. Raises RulesRejected."""
    return parse_library([(name, text)])


def parse_library(sources: Iterable[tuple[str, str]]) -> Library:
    """All rules of the sources, pairs of file name and text, as one library.

    Raises `RulesRejected` with the diagnostics of all sources, at most 50 per source and a count of the rest.
    """
    return _accepted(_read((_read_statements(file, text) for file, text in sources), _only_named, is_trusted=True))


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
    source = _read_statements(file, text)
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


def parse_goal(text: str, library: Library, elsewhere: Elsewhere = lambda _: "") -> Goal:
    """The goal of a query, checked against the predicates of the library. Raises `GoalRejected`.

    Raises RulesRejected for a predicate of which a rule was left out, and HapaxError for a text constant that Prolog
    cannot hold; some of these are found only by `goal_text`.
    """
    try:
        term = _goal_term(text)
    except _TooLarge:
        diagnostic = hint("goal too large").at(Place("<goal>"), length=str(MAXIMUM_GOAL), depth=str(MAXIMUM_DEPTH))
        raise GoalRejected([diagnostic], {"<goal>": text}) from None
    except UnexpectedToken as error:
        raise GoalRejected([_goal_diagnostic(text, error)], {"<goal>": text}) from None
    goal, diagnostics = allowed_goal(term, library, elsewhere)
    if diagnostics:
        raise GoalRejected(_capped("<goal>", list(diagnostics)), {"<goal>": text})
    library.refuse_left_out(called_indicators(goal, library))
    return goal


_GOAL = "Write a goal such as: is_allergic_to(Who, nuts) & not likes(Who, 'soy milk')."

_OF_OTHERS = {
    "and": 'Write "&" in place of "and".',
    "or": 'Write "|" in place of "or", with both sides in parentheses.',
    ":": "The name of a column begins with a small letter: airport(name: A).",
}
"""Remedies for what other languages have, or what a column looks like."""


def _goal_diagnostic(text: str, error: UnexpectedToken) -> Diagnostic:
    """The diagnostic of a goal that is malformed at a token."""
    place = _place("<goal>", error.token)
    if error.token.type == "UNCLOSED":
        return hint("open quotation mark").at(place, mark=str(error.token)[0])
    if error.token.type != "$END":
        found = str(error.token)[:20]
        return hint("goal syntax").at(place, found=f'"{found}"', remedy=_OF_OTHERS.get(found.casefold(), _GOAL))
    lines = text.rstrip().split("\n")
    last = Place("<goal>", len(lines), max(1, len(lines[-1])))
    opened: list[Token] = []
    for token in _tokens(_goal_lark(), text):
        if token.type in ("OPEN", "LEFT"):
            opened.append(token)
        elif token.type in ("CLOSE", "CLOSE_LIST") and opened:
            opened.pop()
    # A goal that lacks a bracket alone.
    if opened and not {"CLOSE", "CLOSE_LIST"}.isdisjoint(error.expected):
        return hint("open bracket").at(_place("<goal>", opened[-1]), bracket=str(opened[-1]))
    return hint("goal syntax").at(last, found="the end of the goal", remedy=_GOAL)


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
    missing = _missing(sources, from_assembly, library)
    library = replace(library.completed(), texts={source.file: source.text for source in sources})
    return ReadRules(library, tuple(listed), missing, tuple(by_file))


def _missing(sources: Sequence[RuleSource], diagnostics: Sequence[Diagnostic], library: Library) -> Missing:
    """`ReadRules.missing`; the diagnostics are those of assembling."""
    lines = list(chain.from_iterable(source.lines for source in sources))
    broken = {line.kind for line in lines if isinstance(line, syntax.RawBroken)}
    declared = sum(isinstance(line, syntax.RawDeclaration | syntax.RawAggregate) for line in lines)
    # Fewer signatures than declarations: one was read, but left out for its meaning.
    if broken - _DECLARE_NOTHING or len(library.signatures) < declared:
        return "declarations"
    # A rule with a repeated name is in the library all the same.
    if broken or any(diagnostic.code != NAME_TWICE for diagnostic in diagnostics):
        return "rules"
    return "nothing"


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
        return replace(_read_statements(file, text), text=text)
    return RuleSource(file, statements_of_link_json(text), text=text)


def _or_unreadable(file: str, read: Callable[[str], RuleSource]) -> RuleSource:
    """The statements of a file; a file that cannot be read is one broken line and its diagnostic."""
    try:
        return read(file)
    except UnreadableFile as error:
        return RuleSource(file, [syntax.RawBroken("file")], [error.at(Place(file, *error.spot))])


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


# Statements


def _read_statements(file: str, text: str) -> RuleSource:
    """The statements of a text."""
    source = RuleSource(file)
    writer = ShorthandWriter(partial(_report, source))
    # Line ends of every system are one character here, also those of files that have carriage returns alone.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    constants: dict[str, list[Token]] = {}
    statements = list(_statements(_tokens(_lark(), text)))
    writer.defined = {token.value for tokens in statements for token in _concluded(tokens)}
    for written in statements:
        tokens = list(_with_constants(written, constants))
        # The rest of such a file is not worth the time; it is missing like an unreadable file.
        if len(source.diagnostics) > 20 * DIAGNOSTICS_PER_FILE:
            source.lines.append(syntax.RawBroken("file"))
            break
        if tokens[0].type == "CONSTANT" and len(tokens) > 3:
            constants[tokens[1].value] = tokens[3:]
            continue
        if asked := _asked(tokens, text):
            source.lines.append(syntax.RawGoal(asked, at=_span(tokens)))
            continue
        try:
            line = _parse(tokens)
            if isinstance(line, syntax.RawFact) and (near := _near_keywords(tokens)):
                # `fcat p("a")` is an atom with a blank in its name.
                source.lines.append(_broken(tokens, syntax.MISSPELT))
                source.diagnostics.append(_misspelt(file, tokens, near))
            elif _SHORT.isdisjoint(token.value if token.type == "WORD" else token.type for token in tokens):
                source.lines.append(line)
            else:
                count = len(source.diagnostics)
                plain = list(writer.statement(line))
                is_sound = count == len(source.diagnostics)
                source.lines += plain if is_sound else [_broken(tokens, _keyword(tokens))]
        except _TooLarge as error:
            source.lines.append(_broken(tokens, _keyword(tokens)))
            source.diagnostics.append(hint(error.label).at(_place(file, tokens[0]), limit=str(error.limit)))
        except UnexpectedToken as error:
            source.lines.append(_broken(tokens, syntax.MISSPELT if _near_keywords(tokens) else _keyword(tokens)))
            # Finding the hint costs a parse of all examples; diagnostics beyond the cap are only counted.
            if len(source.diagnostics) < DIAGNOSTICS_PER_FILE:
                source.diagnostics.append(_syntax_diagnostic(file, tokens, error))
            else:
                source.diagnostics.append(UNEXPECTED_TOKEN.at(_place(file, tokens[0]), found="", expected=""))
    source.lines += writer.added.values()
    return source


def _concluded(tokens: list[Token]) -> Iterator[Token]:
    """The names that a statement declares, states or concludes."""
    for index, token in enumerate(tokens):
        before = tokens[index - 1]
        if token.type == "WORD" and (index == 0 or before.type in ("ARROW", "_CHANCE") or before.value in KEYWORDS):
            yield token


def _with_constants(tokens: list[Token], constants: Mapping[str, list[Token]]) -> Iterator[Token]:
    """The tokens with the values of constants in the place of their names."""
    for token, following in pairwise([*tokens, Token("$END", "")]):
        is_name = token.value in constants and following.type != "LPAR"
        yield from (
            [Token.new_borrow_pos(part.type, part.value, token) for part in constants[token.value]]
            if is_name
            else [token]
        )


def _asked(tokens: list[Token], text: str) -> str:
    """The goal of `?- goal` and of `query(atom)`, which lists what its `_` stand for; empty for another statement."""
    kinds = [token.type for token in tokens]
    if kinds[0] == "ASK" and len(tokens) > 1:
        return text[tokens[1].start_pos : tokens[-1].end_pos]
    is_query = kinds[:2] == ["WORD", "LPAR"] and tokens[0].value == "query" and kinds[-1] == "RPAR"
    if not is_query or (kinds[2] != "NOT" and kinds[2:4] != ["WORD", "LPAR"]):
        return ""
    taken = {token.value for token in tokens}
    names = (name for number in count(1) if (name := f"V{number}") not in taken)
    end = tokens[-1].start_pos
    asked = ""
    for token in reversed(tokens[2:-1]):
        word = next(names) if token.value == "_" else text[token.start_pos : token.end_pos]
        asked, end = f"{word}{text[token.end_pos : end]}{asked}", token.start_pos
    return asked


def _report(source: RuleSource, label: str, at: syntax.Spot, **words: str) -> None:
    """Add the diagnostic of a hint to those of a file."""
    source.diagnostics.append(hint(label).at(Place(source.file, *at), fix=(), **words))


def parse_statements(file: str, text: str) -> tuple[Diagnostic, ...]:
    """The diagnostics of reading the statements of a text alone; none if each is well-formed."""
    return tuple(_capped(file, _read_statements(file, text).diagnostics))


def statement_tokens(text: str) -> tuple[list[Token], list[list[Token]]]:
    """All tokens of a text, newlines and full stops included, and those of each statement. Comments are not tokens."""
    tokens = list(_tokens(_lark(), text))
    return tokens, list(_statements(tokens))


def _broken(tokens: list[Token], kind: str) -> syntax.RawBroken:
    """The statement that the tokens were meant to be."""
    # With an arrow in it, it is a rule that is not separated from the attribute before it by a newline.
    if kind == "@" and any(token.type in ("ARROW", "NECK") for token in tokens):
        kind = ""
    return syntax.RawBroken(kind)


def _statements(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The token lists of the statements, which end at a full stop or at a newline that nothing carries on over."""
    current: list[Token] = []
    opened: list[bool] = []  # by open parenthesis, if it is one of arguments
    newlines = 0
    # An arrow inside parentheses, or "&" inside arguments: one was left open, so the next newline ends the statement.
    broken = False
    for token, following in pairwise(chain(tokens, [Token("$END", "")])):
        if token.type == "NEWLINE":
            newlines += 1
            continue
        starts_line, blank_line, newlines = newlines > 0, newlines > 1, 0
        is_torn = bool(opened) and opened[-1] and _is_torn(current[-1], token, following)
        may_end = starts_line and (not opened or broken or blank_line or is_torn)
        ends = may_end and not (_goes_on(current, token, blank_line) or _at_exception(current, token, following))
        # A keyword at the start of a line begins a statement even inside an open parenthesis.
        declares = starts_line and token.value in KEYWORDS and (bool(opened) or following.type in ("WORD", "TEXT"))
        if current and (ends or declares or token.type in ("ATTRIBUTE", "EXAMPLE")):
            yield current
            current, opened, broken = [], [], False
        if token.type == "DOT" and not _joins_names(current, token, following):
            if current:
                yield current
            current, opened, broken = [], [], False
            continue
        if token.type in ("LPAR", "LBRACE", "LSQB"):
            opened.append(token.type == "LPAR" and _opens_arguments(current))
        elif token.type in ("RPAR", "RBRACE", "RSQB") and opened:
            opened.pop()
        unclosed = token.type in _NOT_INSIDE_PARENTHESES or (token.type == "AND" and opened and opened[-1])
        broken = bool(opened) and (broken or bool(unclosed))
        current.append(token)
    if current:
        yield current


def _is_torn(last: Token, token: Token, following: Token) -> bool:
    """True if a list of arguments cannot go on with a token: a value ends an argument, and an atom is none."""
    begins_atom = token.type == "WORD" and following.type == "LPAR" and last.type != "COMMA"
    return begins_atom or (last.type in ("TEXT", "NUMBER") and token.type == "WORD")


def _opens_arguments(before: Sequence[Token]) -> bool:
    """True if a parenthesis behind these tokens holds arguments, and no part of a premise or a calculation."""
    return bool(before) and before[-1].type == "WORD" and before[-1].value not in ("not", "unless")


def _goes_on(current: list[Token], token: Token, blank_line: bool) -> bool:
    """True if the statement `current` carries on over the newline before `token`.

    An operator at its end carries it over blank lines too; at the start of the next line only an arrow does, because no
    statement begins with one.
    """
    if not current:
        return False
    # Attributes go on only at a comma: the sign at the start of a broken rule below them is not theirs.
    after, before = (_COMMA, _COMMA) if current[0].type == "ATTRIBUTE" else (GOES_ON_AFTER, GOES_ON_BEFORE)
    return current[-1].type in after or (token.type in before and (not blank_line or token.type == "ARROW"))


def _joins_names(current: list[Token], dot: Token, following: Token) -> bool:
    """True for the dot in `food.is_in`, which stands between two words of a rule without a blank."""
    if not current or _keyword(current) or current[-1].type != "WORD" or following.type != "WORD":
        return False
    return current[-1].end_pos == dot.start_pos and dot.end_pos == following.start_pos


def _at_exception(current: list[Token], token: Token, following: Token) -> bool:
    """True if the line ends or begins with the word `unless`, which begins no statement."""
    begins = token.value == "unless" and following.type not in ("LPAR", "$END")
    ends = len(current) > 1 and current[-1].value == "unless" and current[-2].type in ENDS_ITEM
    return bool(current) and _keyword(current) == "" and (begins or ends)


def _parse(tokens: list[Token]) -> syntax.RawNode:
    """The parsed statement. Raises UnexpectedToken or _TooLarge."""
    if len(tokens) > MAXIMUM_TOKENS:
        raise _TooLarge("too long", MAXIMUM_TOKENS)
    if tokens[0].type == "NECK" and len(tokens) > 1 and tokens[1].value in _PROLOG_DIRECTIVES:
        raise UnexpectedToken(tokens[1], set())  # type: ignore[no-untyped-call]
    _refuse_depth(tokens, "too deep", ("LPAR", "LBRACE", "LSQB"), ("RPAR", "RBRACE", "RSQB"), _OPERATIONS)
    line: syntax.RawNode = _built(_lark(), "statement", _with_parentheses(list(_with_keywords(tokens))), tokens)
    return line


def _refuse_depth(
    tokens: Iterable[Token], label: str, opening: Sequence[str], closing: Sequence[str], operators: Sequence[str]
) -> None:
    """Raise _TooLarge for brackets in brackets, or operators that make such a tree; `opening`, `closing`: terminals."""
    depth = chained = 0
    for token in tokens:
        depth = max(0, depth + (token.type in opening) - (token.type in closing))
        # A chain of operators makes a tree that is as deep as the chain is long.
        chained += token.type in operators
        if max(depth, chained) > MAXIMUM_DEPTH:
            raise _TooLarge(label, MAXIMUM_DEPTH)


def _tokens(lark: Lark, text: str) -> Iterator[Token]:
    """The tokens of a text, as by `lark.lex`, which makes a new lexer for each text."""
    parser = lark.parse_interactive(text, start=lark.options.start[0])
    tokens: Iterator[Token] = parser.lexer_thread.lex(parser.parser_state)  # type: ignore[no-untyped-call]
    return tokens


def _built(lark: Lark, start: str, tokens: Iterable[Token], written: Sequence[Token]) -> Any:
    """The node that the builder of the grammar makes of tokens; `written`: as they were. Raises UnexpectedToken."""
    state = lark.parse_interactive(start=start)
    for token in tokens:
        state.feed_token(token)
    return state.feed_token(Token.new_borrow_pos("$END", "", written[-1]) if written else Token("$END", ""))


def _with_keywords(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with `type`, `oracle` ... and `not` as terminals of their own where they are not ordinary words."""
    before = ""
    depth = 0
    begins_premise = False  # behind a parenthesis that holds a part of a premise
    is_rule = not _keyword(tokens)
    for index, token in enumerate(tokens):
        terminal = token.type
        depth += (terminal == "LPAR") - (terminal == "RPAR")
        if index == 0 and (keyword := _keyword(tokens)) in KEYWORDS:
            terminal = keyword.upper()
        # Inside an argument or a name `not` is an ordinary word, unless an atom follows: `evidence(not p(a))`.
        elif token.value == "not" and (
            index == 0
            or begins_premise
            or before in _BEFORE_NOT
            or (before == "LPAR" and [behind.type for behind in tokens[index + 1 : index + 3]] == ["WORD", "LPAR"])
        ):
            terminal = "NOT"
        elif is_rule and depth == 0 and before in ENDS_ITEM and _begins_exception(tokens, index):
            terminal = "_UNLESS"
        elif token.value in ("count", "sum", "min", "max", "mean", "avg") and _collects(tokens, index):
            terminal = "COLLECT"
        elif token.value in _SIGNS and _is_operation(tokens, index) and _SIGNS[token.value](tokens, index):
            terminal = {"mod": "MOD", "in": "_IN", "is": "COMPARE"}[token.value]
        elif depth == 0 and (tokens[0].value, before, token.value) in _CLAUSES:
            terminal = f"_{token.value.upper()}"
        value = token.value
        if terminal == "PERCENT":
            terminal, value = "MOD", "mod"
        yield token if terminal == token.type else Token.new_borrow_pos(terminal, value, token)
        begins_premise = terminal == "LPAR" and not _opens_arguments(tokens[:index])
        before = terminal


def _with_parentheses(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with parentheses behind each word that is an atom without arguments: `wet :- raining`."""
    premises = [True]  # by open parenthesis, and for the whole statement, if it holds items of a premise
    begins_item = True
    for index, (token, following) in enumerate(pairwise([*tokens, Token("$END", "")])):
        yield token
        if token.type == "LPAR":
            premises.append(premises[-1] and begins_item and not _holds_values(tokens[index:]))
        elif token.type in ("LBRACE", "LSQB"):
            premises.append(token.type == "LBRACE")
        elif token.type in ("RPAR", "RBRACE", "RSQB") and len(premises) > 1:
            premises.pop()
        elif token.type == "COLON" and len(premises) == 2 and any(before.type == "DEFINE" for before in tokens[:index]):
            premises[-1] = True  # behind what an aggregate counts
        elif token.type == "_KEY":
            premises[-1] = False  # columns follow
        is_name = token.type == "WORD" and not token.value[0].isupper() and token.value[0] != "_"
        if is_name and premises[-1] and begins_item and following.type in _BEHIND_ITEM:
            yield Token.new_borrow_pos("LPAR", "(", token)
            yield Token.new_borrow_pos("RPAR", ")", token)
        begins_item = token.type in _BEFORE_ITEM or (token.type == "COLON" and premises[-1])


def _holds_values(tokens: list[Token]) -> bool:
    """True if the parenthesis that begins these tokens holds a side of a comparison, as `(A, b) < (C, D)`."""
    depth = 0
    for token, following in pairwise([*tokens, Token("$END", "")]):
        depth += (token.type == "LPAR") - (token.type == "RPAR")
        if depth == 0:
            return following.type in ("COMPARE", "LESS", *_OPERATIONS)
    return False


def _collects(tokens: list[Token], index: int) -> bool:
    """True for the `sum` of `sum P * N : { ... }`."""
    for token, following in pairwise(tokens[index + 1 :]):
        if token.type == "COLON":
            return following.type == "LBRACE"
        if token.type not in ("WORD", "NUMBER", "TEXT", "LPAR", "RPAR", *_OPERATIONS):
            return False
    return False


def _is_operation(tokens: list[Token], index: int) -> bool:
    """True for a word between two operands, of which the first is a number, a variable or in brackets."""
    if not 0 < index < len(tokens) - 1:
        return False
    before, behind = tokens[index - 1], tokens[index + 1]
    is_operand = before.type in ("NUMBER", "TEXT", "RPAR") or (before.type == "WORD" and before.value[0].isupper())
    return is_operand and behind.type in ("NUMBER", "TEXT", "WORD", "LPAR", "LSQB", "MINUS")


def _is_assignment(tokens: list[Token], index: int) -> bool:
    """True for the `is` of `M is N + 1`, but not for that of `X is tasty`."""
    behind = tokens[index + 1 : index + 3]
    names_value = len(behind) == 2 and behind[0].type == "WORD" and not behind[0].value[0].isupper()
    return tokens[index - 1].type in ("WORD", "NUMBER") and not (names_value and behind[1].type != "LPAR")


_SIGNS: dict[str, Callable[[list[Token], int], bool]] = {
    "mod": lambda tokens, index: tokens[index + 1].type != "LSQB",
    "in": lambda tokens, index: tokens[index + 1].type in ("LPAR", "LSQB"),
    "is": _is_assignment,
}
"""Words that are signs between two operands, each with the condition that it is one."""


def _begins_exception(tokens: list[Token], index: int) -> bool:
    """True for the word `unless` that is not the name of an atom: a predicate may be called so."""
    follows_word = tokens[index - 1].type == "WORD"
    is_name = follows_word and index + 1 < len(tokens) and tokens[index + 1].type == "LPAR"
    return tokens[index].value == "unless" and not is_name


def _keyword(tokens: list[Token]) -> str:
    """The keyword that begins the statement, "@" for attributes, "" for rules."""
    if tokens[0].type == "ATTRIBUTE":
        return "@"
    if tokens[0].type == "EXAMPLE":
        return "@example"
    is_name = len(tokens) > 1 and tokens[1].type == "LPAR"  # a predicate may be called `type`
    return tokens[0].value if tokens[0].value in KEYWORDS and not is_name else ""


def _place(file: str, token: Token) -> Place:
    return Place(file, *_at(token))


# Syntax errors


def _near_keywords(tokens: list[Token]) -> list[str]:
    """The two keywords at most that a malformed statement may begin with, the likelier one first."""
    if _keyword(tokens) or len(tokens) < 2 or tokens[0].type != "WORD" or tokens[1].type != "WORD":
        return []
    return get_close_matches(str(tokens[0]), KEYWORDS, 2, _NEAR_KEYWORD)


def _misspelt(file: str, tokens: list[Token], near: Sequence[str]) -> Diagnostic:
    """The diagnostic of a statement that begins with a word near these keywords."""
    place, word = _place(file, tokens[0]), str(tokens[0])
    # Two keywords may be equally near; a fix leaves no choice.
    fix = [TextRepair(place, word, near[0])] if len(near) == 1 else []
    return hint("misspelt keyword").at(place, fix=fix, word=word, keyword=near[0])


def _syntax_diagnostic(file: str, tokens: list[Token], error: UnexpectedToken) -> Diagnostic:
    """The diagnostic of the hint with an example that fails in the same parser state, else the expected tokens."""
    if near := _near_keywords(tokens):
        return _misspelt(file, tokens, near)
    if tokens[0].type == "DIRECTIVE":
        place, word = _place(file, tokens[0]), str(tokens[0])
        return hint("directive").at(place, directive=word, language="Soufflé", remedy=_AS_SOUFFLE)
    if tokens[0].type == "NECK" and error.token.value in _PROLOG_DIRECTIVES:
        place, word = _place(file, error.token), str(error.token)
        return hint("directive").at(place, directive=word, language="Prolog", remedy="Remove it: nothing needs it here")
    at_end = error.token.type == "$END"
    place, sign = _place(file, tokens[-1] if at_end else error.token), str(error.token)
    if error.token.type == "DOT":
        dot = next(index for index, token in enumerate(tokens) if token is error.token)
        prefix, name = tokens[dot - 1], tokens[dot + 1]
        return hint("dotted name").at(Place(file, *_span([prefix, name])), prefix=str(prefix), name=str(name))
    if error.token.type == "UNKNOWN" and unicodedata.category(sign) == "Cf":
        fix = [TextRepair(place, sign, "")]
        return hint("invisible character").at(place, fix=fix, point=f"U+{ord(sign):04X}")
    if error.token.type == "UNKNOWN" and sign in _DASHES:
        return hint("dash").at(place, fix=[TextRepair(place, sign, "-")], sign=sign)
    # Only examples of the same kind of statement: the parser's state does not tell a fact's atom from a rule's.
    kinds, keyword = _example_tokens(), _keyword(tokens)
    examples: list[tuple[Hint, list[str]]] = []
    for entry in SYNTAX_HINTS:
        examples.append((entry, [text for text in entry.examples if _keyword(kinds[text]) == keyword]))
    matching_hint = error.match_examples(
        lambda text: _parse(kinds[text]),  # type: ignore[arg-type,return-value]  # lark only asks for the error's state
        examples,
        token_type_match_fallback=True,
        use_accepts=False,
    )
    if matching_hint is not None:
        return matching_hint.at(place)
    found = "the end of the statement" if at_end else f'"{sign[:20]}"'
    expected = sorted({_TERMINAL_NAMES[name] for name in error.expected if name in _TERMINAL_NAMES})
    return UNEXPECTED_TOKEN.at(place, found=found, expected=" or ".join(expected) or "the end of the statement")


@cache
def _example_tokens() -> dict[str, list[Token]]:
    """The examples as tokens."""
    tokens: dict[str, list[Token]] = {}
    for entry in SYNTAX_HINTS:
        for text in entry.examples:
            tokens[text] = next(_statements(_tokens(_lark(), text)))
    return tokens


_TERMINAL_NAMES = {
    "WORD": "a word",
    "TEXT": "a quoted text",
    "NUMBER": "a number",
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "AND": '"&"',
    "OR": '"|"',
    "ARROW": '"->"',
    "NECK": '":-"',
    "COLON": '":"',
    "TOLERANCE": "a tolerance",
    "DEFINE": '":="',
    "LESS": '"<"',
    "_UNLESS": '"unless"',
    "SLASH": '"/"',
    "_BY": '"by"',
    "_AS": '"as"',
    "COMPARE": "a comparison sign",
    "$END": "the end of the statement",
}


# Trees


class _TreeBuilder(Transformer[Token, syntax.RawNode]):
    """Builds statements bottom-up while lark parses: the node of the rule's name, of its parts in order.

    Parts that are left out are None. Rules that need more have a method of their name.
    """

    def __getattr__(self, name: str) -> Callable[[list[Any]], syntax.RawNode]:
        # Terminals are in capitals. Of rules without a node lark makes a tree, which it dissolves in that of another.
        if not name.islower() or not hasattr(syntax, f"Raw{name.capitalize()}"):
            raise AttributeError(name)
        kind = getattr(syntax, f"Raw{name.capitalize()}")
        return partial(_node, kind)

    def words(self, parts: list[Token]) -> syntax.RawWords:
        return syntax.RawWords(tuple(map(str, parts)), at=_span(parts))

    name = words

    def branch(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(part for part in parts if not isinstance(part, Token))

    counted = templates = cells = heads = branch

    def listing(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(part for part in parts if isinstance(part, syntax.RawNode))

    def listed(self, parts: list[Any]) -> syntax.RawListed:
        return syntax.RawListed(parts[1], at=_span([parts[0], parts[2]]))

    def among(self, parts: list[Any]) -> syntax.RawComparison:
        return syntax.RawComparison(parts[0], syntax.IN, parts[1], at=_span(parts))

    def constraint(self, parts: list[Any]) -> syntax.RawNever:
        return syntax.RawNever("never", parts[1], at=_span(parts))

    def premise(self, parts: list[Any]) -> tuple[Any, ...]:
        branches = self.branch(parts)
        items: tuple[Any, ...] = branches[0]
        return items if len(branches) == 1 else (syntax.RawAlternatives(branches, at=_span(branches)),)

    def alternatives(self, parts: list[Any]) -> syntax.RawAlternatives:
        return syntax.RawAlternatives((parts[1],), at=_span(parts))

    def negation(self, parts: list[Any]) -> syntax.RawNegation:
        return syntax.RawNegation(parts[2], at=_span(parts))

    def untrue(self, parts: list[Any]) -> syntax.RawNegation:
        return syntax.RawNegation((parts[1],), at=_span(parts))

    def stated(self, parts: list[Any]) -> syntax.RawFact:
        return syntax.RawFact("fact", parts[0], at=parts[0].at)

    def attribute(self, parts: list[Token]) -> syntax.RawAttribute:
        return syntax.RawAttribute(str(parts[0])[1:], tuple(map(str, parts[1:])), at=_span(parts))

    def key(self, parts: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, parts))

    def declaration(self, parts: list[Any]) -> syntax.RawDeclaration:
        keyword, atom, tolerance, key, templates = parts
        within = str(tolerance) if tolerance is not None else None
        return syntax.RawDeclaration(str(keyword), atom, within, key, templates, at=_span([keyword, templates or atom]))

    def computed(self, parts: list[Any]) -> syntax.RawDeclaration:
        keyword, atom, definition, templates = parts
        return syntax.RawDeclaration(str(keyword), atom, None, None, templates, definition, at=_span(parts))

    def aggregate(self, parts: list[Any]) -> syntax.RawAggregate:
        keyword, atom, result, operator, function, counted, premise, closing, templates = parts
        at = _span([keyword, closing])
        words = (str(result), str(operator))
        return syntax.RawAggregate(str(keyword), atom, *words, function, counted, premise, templates, at=at)

    def forward(self, parts: list[Any]) -> syntax.RawRule:
        premise, _, conclusion, *exceptions = parts
        return syntax.RawRule(premise, conclusion, tuple(exceptions), at=_span(parts))

    def backward(self, parts: list[Any]) -> syntax.RawRule:
        conclusion, _, premise, *exceptions = parts
        return syntax.RawRule(premise, conclusion, tuple(exceptions), at=_span(parts))

    def choice(self, parts: list[Any]) -> syntax.RawChoice:
        heads, _, premise, *exceptions = parts
        return syntax.RawChoice(heads, premise or (), tuple(exceptions), at=_span(parts))

    def following(self, parts: list[Any]) -> syntax.RawChoice:
        premise, _, heads, *exceptions = parts
        return syntax.RawChoice(heads, premise, tuple(exceptions), at=_span(parts))

    def literal(self, parts: list[Any]) -> syntax.RawLiteral:
        sign, atom = parts
        return syntax.RawLiteral(atom, sign is not None, at=atom.at)

    def atom(self, parts: list[Any]) -> syntax.RawAtom:
        name, *arguments, _ = parts
        groups: list[list[Any]] = [[]]
        for argument in filter(None, arguments):
            if isinstance(argument, Token):  # a sign of *or*
                groups.append([])
            else:
                groups[-1].append(argument)
        pools = tuple(map(tuple, groups)) if len(groups) > 1 else ()
        return syntax.RawAtom(name, tuple(groups[0]), pools, at=_span(parts))

    def range(self, parts: list[Any]) -> syntax.RawOperation:
        return syntax.RawOperation(parts[0], syntax.RANGE, parts[2], at=_span(parts))

    def collected(self, parts: list[Any]) -> syntax.RawCollected:
        function, expression, _, premise, _ = parts
        name = syntax.RawWords((str(function),), at=_at(function))
        counted = (expression,) if expression is not None else ()
        return syntax.RawCollected(name, counted, premise=premise, at=_span(parts))

    def collected_set(self, parts: list[Any]) -> syntax.RawCollected:
        function, _, counted, premise, _ = parts
        name = syntax.RawWords((str(function)[1:],), at=_at(function))
        return syntax.RawCollected(name, counted, premise=premise, is_set=True, at=_span(parts))

    def minus(self, parts: list[Any]) -> syntax.RawNode:
        _, operand = parts
        at = _span(parts)
        if isinstance(operand, syntax.RawNumber):
            return syntax.RawNumber(f"-{operand.source}".removeprefix("--"), at=at)
        return syntax.RawOperation(syntax.RawNumber("0", at=at), "-", operand, at=at)

    def comparison(self, parts: list[Any]) -> syntax.RawComparison:
        left, operator, right = parts
        defined = left if isinstance(left, syntax.RawWords) and len(left.words) > 1 else None
        if defined is not None:
            left = syntax.RawWords(defined.words[-1:], at=defined.at)
        return syntax.RawComparison(left, str(operator), right, defined, at=_span(parts))

    def group(self, parts: list[Any]) -> syntax.RawNode:
        inner: syntax.RawNode = parts[1]
        return replace(inner, at=_span(parts)) if isinstance(inner, syntax.RawOperation) else inner


def _node(kind: type[syntax.RawNode], parts: list[Any]) -> syntax.RawNode:
    values = (str(part) if isinstance(part, Token) else part for part in parts)
    return kind(*values, at=_span(parts))


def _at(part: Any) -> syntax.Spot:
    """The range of a token, of a node, or of the items of a premise."""
    if isinstance(part, syntax.RawNode):
        return part.at
    if isinstance(part, tuple):
        return _span(part)
    line, column = part.line or 1, part.column or 1
    return (line, column, part.end_line or line, part.end_column or column + len(part))


def _span(parts: Sequence[Any]) -> syntax.Spot:
    """The range from the first to the last of the parts that are there."""
    last = -1
    while parts[last] is None:
        last -= 1
    first = parts[0] or parts[1]  # a literal may have no sign
    return _at(first)[:2] + _at(parts[last])[2:]


@cache
def _lark() -> Lark:
    return _grammar("rule.lark", ["statement", "other"], _TreeBuilder())


def _as_variable(token: Token) -> Token:
    """`X` for `?x`."""
    return token.update(type="WORD", value=token[1].upper() + token[2:])


def _grammar(file: str, start: list[str], builder: Transformer[Token, Any]) -> Lark:
    path = Path(__file__).with_name(file)
    # Lark's tables lie beside the bytecode of this module, and are made anew when the grammar or lark changes.
    tables = Path(cache_from_source(str(path))).with_suffix(".lark")
    return Lark(
        path.read_text(encoding="utf-8"),
        start=start,
        parser="lalr",
        # Statements are split before they are parsed, and the contextual lexer needs the parser's state.
        lexer="basic",
        transformer=builder,  # works while parsing: a recursive walk over a finished tree would limit its depth
        maybe_placeholders=True,
        cache=not sys.dont_write_bytecode and str(tables),
        lexer_callbacks={"QUESTIONED": _as_variable},
    )


# Goals


def _goal_term(text: str) -> GoalTerm:
    """The parsed goal. Raises UnexpectedToken or _TooLarge."""
    if len(text) > MAXIMUM_GOAL:
        raise _TooLarge("goal too large", MAXIMUM_GOAL)
    # A full stop at the end is allowed, as in Prolog.
    tokens = list(_tokens(_goal_lark(), text))
    if tokens and tokens[-1].value == ".":
        tokens.pop()
    for before, token in pairwise(tokens):
        if token.value == "in" and before.type not in ("COMMA", "AND", "OPEN", "SEMICOLON", "BAR", "NOT", "THEN"):
            token.type = "IN"
    # As at Prolog's prompt.
    if [token.value for token in tokens[:2]] == ["?", "-"]:
        del tokens[:2]
    operators = ("PLUS", "MINUS", "TIMES", "REMAINDER", "HAT", "POWER", "NOT")
    _refuse_depth(tokens, "goal too large", ("OPEN", "LEFT"), ("CLOSE", "CLOSE_LIST"), operators)
    term: GoalTerm = _built(_goal_lark(), "goal", tokens, tokens)
    return term


_AS_PROLOG = {
    "AND": ",",
    "SEMICOLON": ";",
    "BAR": ";",
    "<=": "=<",
    "≤": "=<",
    "≥": ">=",
    "%": "mod",
    "!=": "\\=",
    "<>": "\\=",
    "≠": "\\=",
}
"""The signs of rules that Prolog writes otherwise, by terminal or spelling."""


class _GoalBuilder(Transformer[Token, GoalTerm]):
    """Builds goal terms while lark parses; each method is named after its rule in `goal.lark`."""

    def operation(self, parts: list[Any]) -> Compound:
        left, sign, right = parts
        operator = sign.update(value=_AS_PROLOG.get(sign.type) or _AS_PROLOG.get(sign, sign))
        # One flat compound, so that the term of a long conjunction stays shallow. Alternatives are read from the right.
        if operator == "," and isinstance(left, Compound) and left.functor == ",":
            return Compound(",", (*left.arguments, right), left.place)
        if operator == ";" and isinstance(right, Compound) and right.functor == ";":
            return Compound(";", (left, *right.arguments), _place("<goal>", operator))
        return Compound(str(operator), (left, right), _place("<goal>", operator))

    def prefix(self, parts: list[Any]) -> GoalTerm:
        operator, term = parts
        if operator != "-":
            return Compound("\\+", (term,), _place("<goal>", operator))
        # `-1` is a number, `-X` an operation.
        if isinstance(term, Constant) and not isinstance(term.value, str):
            return Constant(-term.value)
        return Compound("-", (Constant(0), term), _place("<goal>", operator))

    def variable(self, parts: list[Token]) -> GoalVariable:
        # A type before it says nothing more: each predicate has its own.
        return GoalVariable(str(parts[-1]))

    def named(self, parts: list[Any]) -> Compound:
        column, term = parts
        return Compound(COLUMN, (Constant(str(column)), term), _place("<goal>", column))

    def word(self, parts: list[Token]) -> Constant:
        return Constant(str(parts[0]))

    def text(self, parts: list[Token]) -> Constant:
        return Constant(_unescaped(parts[0]))

    def number(self, parts: list[Token]) -> Constant:
        value = number_value(parts[0])
        if value is None:
            place = _place("<goal>", parts[0])
            raise RulesRejected([hint("number too large").at(place, limit=str(MAXIMUM_DIGITS))])
        return Constant(value)

    def quantity(self, parts: list[Token]) -> Constant:
        amount, unit = number_value(parts[0]), str(parts[1])
        text = duration_text(amount, unit) if amount is not None else None
        if text is None:
            place = _place("<goal>", parts[1])
            raise RulesRejected([hint("unknown unit").at(place, unit=unit, units=", ".join(UNITS))])
        return Constant(text)

    def call(self, parts: list[Any]) -> Compound:
        name, *arguments = parts
        functor = _unescaped(name) if name.type == "SINGLE" else str(name)
        return Compound(functor, tuple(filter(None, arguments)), _place("<goal>", name))

    def among(self, parts: list[Any]) -> Compound:
        target, sign, _, *items, _ = parts
        return Compound("member", (target, GoalList(tuple(items))), _place("<goal>", sign))

    def sequence(self, parts: list[Any]) -> GoalList:
        *items, _, tail = parts or [None, None]
        return GoalList(tuple(items), tail)


def _unescaped(token: Token) -> str:
    """The text of a quoted token of a goal. Raises RulesRejected for an unknown escape."""
    try:
        return unquoted(token)
    except ValueError as error:
        raise RulesRejected([hint("unknown escape").at(_place("<goal>", token), escape=str(error))]) from None


@cache
def _goal_lark() -> Lark:
    return _grammar("goal.lark", ["goal", "other"], _GoalBuilder())
