"""Text to rules. The language itself is in `rule.lark`; this file cuts files into statements and tells faults.

Each statement is parsed alone, so that a fault ends where its statement ends and all faults of all files come at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain, pairwise, takewhile
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedToken

from grammar import syntax
from grammar.assemble import MAXIMUM_DIGITS, assemble, number_value, unquoted
from grammar.errors import (
    FAULTS_PER_FILE,
    SYNTAX_FAULT,
    SYNTAX_HINTS,
    TOO_MANY,
    UNREADABLE,
    Diagnostic,
    GoalRejected,
    HapaxError,
    RulesRejected,
    hint,
)
from grammar.goals import Compound, Elsewhere, Goal, GoalList, GoalTerm, GoalVariable, allowed_goal
from grammar.rules import Library, Place, Rule
from grammar.syntax import Line
from grammar.terms import Constant
from grammar.words import counted

MAXIMUM_DEPTH = 100
"""Parentheses inside each other, and arithmetic operators in a statement: trees stay shallow enough to walk."""
MAXIMUM_TOKENS = 10_000
MAXIMUM_GOAL = 100_000
"""Characters of a goal."""

KEYWORDS = ("type", "oracle", "functional", "given", "computed", "opposite", "fact")
GOES_ON_AFTER = frozenset(
    ("AND", "COMMA", "ARROW", "NECK", "DEFINE", "COLON", "SLASH", "PLUS", "MINUS", "STAR", "COMPARE", "LESS", "NOT")
)
GOES_ON_BEFORE = GOES_ON_AFTER - {"NOT"}
_COMMA = frozenset(("COMMA",))
NOT_INSIDE_PARENTHESES = frozenset(("ARROW", "NECK", "DEFINE", "AND"))


def parse_library(sources: Iterable[tuple[str, str]]) -> Library:
    """All rules of the sources, each (file name, text), as one library.

    Raises `RulesRejected` with every fault of every source, at most 50 a source and a count of the rest.
    """
    return _accepted(_library([_read_statements(file, text) for file, text in sources]))


def load_library(paths: Sequence[str | Path]) -> Library:
    """The library of files and folders (`*.rules`, `*.txt`, LINK's `*.json`), files of a folder in order of name.

    Raises `RulesRejected`, also for files that cannot be read.
    """
    return _accepted(read_rules(paths))


def read_rules(paths: Sequence[str | Path]) -> Read:
    """What can be read of files and folders as `load_library` reads them, beside the faults of the rest."""
    read: list[_Source] = []
    for path in rule_files(paths):
        try:
            source = _read_file(path)
            is_facts = bool(source.faults) and path.suffix in _FACTS
            read.append(_unreadable(path, "it holds no rules", _IMPORT.format(path)) if is_facts else source)
        except OSError as fault:
            read.append(_unreadable(path, fault.strerror or str(fault), _CHECK_PATH))
        except UnicodeDecodeError as fault:
            read.append(_no_text(path, fault))
        except HapaxError as fault:  # JSON of another form than LINK's
            reason = str(fault).removeprefix(f"{path}: ")
            read.append(_unreadable(path, reason, ""))
    return _library(read)


def _no_text(path: Path, fault: UnicodeDecodeError) -> _Source:
    if fault.object.startswith(_SQLITE):
        return _unreadable(path, "it is a knowledge base", f"Name it by --db {path}.")
    return _unreadable(path, f"it is not UTF-8 (byte {fault.start})", "Save it as UTF-8.")


def parse_addition(file: str, text: str, library: Library) -> Library:
    """What the text adds to a library, whose types and signatures it may use. Raises `RulesRejected`."""
    source = _read_statements(file, text)
    parsed, faults = assemble([(source.file, source.lines)], library)
    if source.faults or faults:
        raise RulesRejected(_capped(file, [*source.faults, *faults]))
    return parsed


def parse_rule(text: str, library: Library | None = None) -> Rule:
    """The one rule of the text, read with the types and signatures of `library`. Raises `RulesRejected`."""
    parsed = parse_addition("<text>", text, library or Library())
    if len(parsed.rules) != 1 or parsed.facts or parsed.signatures or parsed.subtypes or parsed.opposites:
        raise HapaxError(f"Expected one rule and nothing else, found {len(parsed.rules)} rules in the text.")
    return parsed.rules[0]


def parse_goal(text: str, library: Library, elsewhere: Elsewhere = lambda _: "") -> Goal:
    """The goal of a query, checked against what the library knows. Raises `GoalRejected`.

    A text in it that Prolog cannot hold is a HapaxError, here or where the goal is written for Prolog.
    """
    try:
        term = _goal_term(text)
    except _TooMuch:
        fault = hint("goal too large").at(Place("<goal>"), length=str(MAXIMUM_GOAL), depth=str(MAXIMUM_DEPTH))
        raise GoalRejected([fault]) from None
    except UnexpectedToken as unexpected:
        ends = unexpected.token.type == "$END"
        at = Place("<goal>") if ends else _place("<goal>", unexpected.token)
        found = "its end" if ends else f'"{str(unexpected.token)[:20]}"'
        raise GoalRejected([hint("goal syntax").at(at, found=found)]) from None
    goal, faults = allowed_goal(term, library, elsewhere)
    if faults:
        raise GoalRejected(_capped("<goal>", list(faults)))
    return goal


@dataclass(slots=True)
class _Source:
    """What one file gave."""

    file: str
    lines: list[Line] = field(default_factory=list)
    faults: list[Diagnostic] = field(default_factory=list)


Lacking: TypeAlias = Literal["nothing", "rules", "declarations"]


@dataclass(frozen=True, slots=True)
class Read:
    """The statements that could be read, as a library, and the faults of the others.

    `lacks`: what the library misses of them: "rules" (or facts), or "declarations" too. A rule whose name was given
    before is in it.
    """

    library: Library
    faults: tuple[Diagnostic, ...]
    lacks: Lacking


NAME_TWICE = hint("name twice").code
_CHECK_PATH = "Check the path and its permissions."
_FACTS = frozenset((".csv", ".jsonl"))
_IMPORT = "Facts go in by `hapax import {}`."
_SQLITE = b"SQLite format 3\0"
_RULES_ALONE = frozenset(("", "@", "fact"))
"""Kinds of broken statements that declare nothing."""


def _accepted(read: Read) -> Library:
    if read.faults:
        raise RulesRejected(read.faults)
    return read.library


def _library(sources: Sequence[_Source]) -> Read:
    library, meaning_faults = assemble([(source.file, source.lines) for source in sources], Library())
    found: dict[str, list[Diagnostic]] = {source.file: [] for source in sources}
    for fault in chain(chain.from_iterable(source.faults for source in sources), meaning_faults):
        found[fault.place.file].append(fault)
    listed = [fault for file, faults in found.items() for fault in _capped(file, faults)]
    return Read(library.completed(), tuple(listed), _lacking(sources, meaning_faults, library))


def _lacking(sources: Sequence[_Source], faults: Sequence[Diagnostic], library: Library) -> Lacking:
    lines = [line for source in sources for line in source.lines]
    broken = {line.kind for line in lines if isinstance(line, syntax.BrokenLine)}
    declared = sum(isinstance(line, syntax.DeclarationLine) for line in lines)
    if broken - _RULES_ALONE or len(library.signatures) < declared:
        return "declarations"
    return "rules" if broken or any(fault.code != NAME_TWICE for fault in faults) else "nothing"


def _capped(file: str, faults: list[Diagnostic]) -> list[Diagnostic]:
    ordered = sorted(faults, key=lambda fault: (fault.place.line, fault.place.column))
    left = len(ordered) - FAULTS_PER_FILE
    if left <= 0:
        return ordered
    first_left_out = Place(file, ordered[FAULTS_PER_FILE].place.line)
    return [*ordered[:FAULTS_PER_FILE], TOO_MANY.at(first_left_out, count=counted(left, "more fault"))]


# Files


def rule_files(paths: Sequence[str | Path]) -> Iterator[Path]:
    """The files that `load_library` reads."""
    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.suffix in (".rules", ".txt", ".json"))
        else:
            yield path


def _read_file(path: Path) -> _Source:
    text = path.read_bytes().decode("utf-8-sig")
    if path.suffix == ".json":
        from grammar.link_json import rule_text_of_link_json  # only JSON files need it

        return _read_statements(str(path), rule_text_of_link_json(text, str(path)))
    return _read_statements(str(path), text)


def _unreadable(path: Path, reason: str, remedy: str) -> _Source:
    fault = UNREADABLE.at(Place(str(path)), reason=reason, remedy=remedy)
    return _Source(str(path), [syntax.BrokenLine("file")], [fault])


# Statements


def _read_statements(file: str, text: str) -> _Source:
    source = _Source(file)
    for tokens in _statements(_lark().lex(text)):
        if len(source.faults) > 20 * FAULTS_PER_FILE:
            source.lines.append(syntax.BrokenLine("file"))
            break
        try:
            source.lines.append(_parse(tokens))
        except _TooMuch as fault:
            source.lines.append(_broken(tokens))
            source.faults.append(hint(fault.label).at(_place(file, tokens[0]), limit=str(fault.limit)))
        except UnexpectedToken as fault:
            source.lines.append(_broken(tokens))
            at = _place(file, fault.token if fault.token.type != "$END" else tokens[-1])
            # Naming a fault costs a parse of all examples; faults beyond the cap are only counted.
            named = len(source.faults) < FAULTS_PER_FILE
            source.faults.append(
                _name_fault(fault, at, _keyword(tokens)) if named else SYNTAX_FAULT.at(at, found="", expected="")
            )
    return source


def _broken(tokens: list[Token]) -> syntax.BrokenLine:
    """What the statement would have been. An attribute with an arrow in it is a rule that a newline fails to begin."""
    kind = _keyword(tokens)
    if kind == "@" and any(token.type in ("ARROW", "NECK") for token in tokens):
        kind = ""
    words = takewhile(lambda token: token.type == "WORD", tokens[1:])
    return syntax.BrokenLine(kind, tuple(map(str, words)) if kind in KEYWORDS else ())


def _statements(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The token lists of the statements: they end at a full stop, or at a newline that nothing carries on over."""
    current: list[Token] = []
    depth = 0
    newlines = 0
    broken = False  # a rule's sign inside parentheses: one was left open, so the next newline ends the statement
    for token, following in pairwise(chain(tokens, [Token("$END", "")])):
        if token.type == "NEWLINE":
            newlines += 1
            continue
        starts_line, blank_line, newlines = newlines > 0, newlines > 1, 0
        ends = starts_line and (depth == 0 or broken or blank_line) and not _goes_on(current, token, blank_line)
        declares = starts_line and token.value in KEYWORDS and (depth > 0 or following.type == "WORD")
        if current and (ends or declares or token.type == "ATTRIBUTE"):
            yield current
            current, depth, broken = [], 0, False
        if token.type == "DOT":
            if current:
                yield current
            current, depth, broken = [], 0, False
            continue
        depth = max(0, depth + (token.type == "LPAR") - (token.type == "RPAR"))
        broken = depth > 0 and (broken or token.type in NOT_INSIDE_PARENTHESES)
        current.append(token)
    if current:
        yield current


def _goes_on(current: list[Token], token: Token, blank_line: bool) -> bool:
    """Whether a statement carries on over the newline before `token`; an operator at its end outlasts blank lines.

    Attributes go on at a comma alone: the sign at the start of a broken rule below them is not theirs.
    """
    if not current:
        return False
    after, before = (_COMMA, _COMMA) if current[0].type == "ATTRIBUTE" else (GOES_ON_AFTER, GOES_ON_BEFORE)
    return current[-1].type in after or (token.type in before and not blank_line)


class _TooMuch(HapaxError):  # noqa: N818 - never leaves this module
    """A statement or goal too large to be meant."""

    def __init__(self, label: str, limit: int) -> None:
        super().__init__(label)
        self.label = label
        self.limit = limit


def _parse(tokens: list[Token]) -> Line:
    """One statement. Raises UnexpectedToken, or _TooMuch where it is too large to be meant."""
    _measure(tokens)
    state = _lark().parse_interactive(start="statement")
    for token in _with_keywords(tokens):
        state.feed_token(token)
    line: Line = state.feed_token(Token.new_borrow_pos("$END", "", tokens[-1]))
    return line


def _measure(tokens: list[Token]) -> None:
    if len(tokens) > MAXIMUM_TOKENS:
        raise _TooMuch("too long", MAXIMUM_TOKENS)
    depth = operators = 0
    for token in tokens:
        depth = max(0, depth + (token.type == "LPAR") - (token.type == "RPAR"))
        operators += token.type in ("PLUS", "MINUS", "STAR", "SLASH")
        if max(depth, operators) > MAXIMUM_DEPTH:
            raise _TooMuch("too deep", MAXIMUM_DEPTH)


def _with_keywords(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with `type`, `oracle` ... and `not` told from ordinary words by where they stand."""
    before = ""
    for index, token in enumerate(tokens):
        terminal = token.type
        if index == 0 and (keyword := _keyword(tokens)) in KEYWORDS:
            terminal = keyword.upper()
        elif token.value == "not" and (index == 0 or before in GOES_ON_AFTER or before == "FACT"):
            terminal = "NOT"
        yield token if terminal == token.type else Token.new_borrow_pos(terminal, token.value, token)
        before = terminal


def _keyword(tokens: list[Token]) -> str:
    """The word that says what kind of statement this is, "@" for attributes, "" for rules."""
    if tokens[0].type == "ATTRIBUTE":
        return "@"
    is_name = len(tokens) > 1 and tokens[1].type == "LPAR"
    return tokens[0].value if tokens[0].value in KEYWORDS and not is_name else ""


def _place(file: str, token: Token) -> Place:
    return Place(file, token.line or 1, token.column or 1)


# Naming faults


def _name_fault(fault: UnexpectedToken, place: Place, keyword: str) -> Diagnostic:
    """Examples of the same kind of statement only: the parser's states do not tell an atom of a fact from a rule's."""
    kinds = _example_tokens()
    examples = [
        (entry, [text for text in entry.examples if _keyword(kinds[text]) == keyword]) for entry in SYNTAX_HINTS
    ]
    found = fault.match_examples(_parse_example, examples, token_type_match_fallback=True, use_accepts=False)
    if found is not None:
        return found.at(place)
    what = "the end of the statement" if fault.token.type == "$END" else f'"{str(fault.token)[:20]}"'
    return SYNTAX_FAULT.at(place, found=what, expected=_spoken(fault.expected))


def _parse_example(text: str) -> Any:
    """An example's first statement; lark compares the state it stops in."""
    return _parse(_example_tokens()[text])


@cache
def _example_tokens() -> dict[str, list[Token]]:
    """The examples as tokens, read once."""
    return {text: next(_statements(_lark().lex(text))) for entry in SYNTAX_HINTS for text in entry.examples}


def _spoken(terminals: Iterable[str]) -> str:
    names = sorted({_SPOKEN[name] for name in terminals if name in _SPOKEN})
    return " or ".join(names) if names else "the end of the statement"


_SPOKEN = {
    "WORD": "a word",
    "TEXT": "a quoted text",
    "NUMBER": "a number",
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "AND": '"&"',
    "ARROW": '"->"',
    "NECK": '":-"',
    "COLON": '":"',
    "DEFINE": '":="',
    "LESS": '"<"',
    "COMPARE": "a comparison sign",
    "$END": "the end of the statement",
}


# Trees


class _Builder(Transformer[Token, Line]):
    """Statements out of what the parser recognised; each method is named after its rule in `rule.lark`."""

    def subtype(self, parts: list[Any]) -> syntax.SubtypeLine:
        keyword, lower, _, upper = parts
        return syntax.SubtypeLine(lower, upper, _at(keyword))

    def declaration(self, parts: list[Any]) -> syntax.DeclarationLine:
        keyword, atom, _, templates = parts
        return syntax.DeclarationLine(str(keyword), atom, templates or (), None, _at(keyword))

    def computed(self, parts: list[Any]) -> syntax.DeclarationLine:
        keyword, atom, _, definition, _, templates = parts
        return syntax.DeclarationLine(str(keyword), atom, templates or (), definition, _at(keyword))

    def opposite(self, parts: list[Token]) -> syntax.OppositeLine:
        keyword, first, second = parts
        return syntax.OppositeLine((str(first), str(second)), _at(keyword))

    def fact(self, parts: list[Any]) -> syntax.FactLine:
        keyword, atom = parts
        return syntax.FactLine(atom, _at(keyword))

    def attribute(self, parts: list[Token]) -> syntax.AttributeLine:
        keyword, *values = parts
        return syntax.AttributeLine(keyword[1:], tuple(str(one) for one in values if one.type != "COMMA"), _at(keyword))

    def forward(self, parts: list[Any]) -> syntax.RuleLine:
        premise, _, conclusion = parts
        return syntax.RuleLine(premise, conclusion, _start(premise))

    def backward(self, parts: list[Any]) -> syntax.RuleLine:
        conclusion, _, premise = parts
        return syntax.RuleLine(premise, conclusion, conclusion.at)

    def premise(self, parts: list[Any]) -> tuple[syntax.RawItem, ...]:
        return tuple(part for part in parts if not isinstance(part, Token))

    body = premise

    def literal(self, parts: list[syntax.RawAtom]) -> syntax.RawLiteral:
        return syntax.RawLiteral(parts[0], False)

    def negated(self, parts: list[Any]) -> syntax.RawLiteral:
        return syntax.RawLiteral(parts[1], True)

    def atom(self, parts: list[Any]) -> syntax.RawAtom:
        name, *arguments = (part for part in parts if not isinstance(part, Token))
        return syntax.RawAtom(name, tuple(arguments))

    def words(self, parts: list[Token]) -> syntax.Words:
        return syntax.Words(tuple(map(str, parts)), _at(parts[0]))

    name = operand = words

    def text(self, parts: list[Token]) -> syntax.RawText:
        return syntax.RawText(str(parts[0]), _at(parts[0]))

    def number(self, parts: list[Any]) -> syntax.RawNumber:
        sign, digits = parts
        return syntax.RawNumber(f"{sign or ''}{digits}", _at(sign or digits))

    def comparison(self, parts: list[Any]) -> syntax.RawComparison:
        left, operator, right = parts
        return syntax.RawComparison(str(operator), left, right, _at(operator))

    def operation(self, parts: list[Any]) -> syntax.RawOperation:
        left, operator, right = parts
        return syntax.RawOperation(str(operator), left, right)

    def group(self, parts: list[Any]) -> Any:
        return parts[1]

    def templates(self, parts: list[Any]) -> tuple[syntax.RawText, ...]:
        return tuple(syntax.RawText(str(part), _at(part)) for part in parts if part.type == "TEXT")


def _at(token: Token) -> syntax.Spot:
    return (token.line or 1, token.column or 1)


def _start(premise: tuple[syntax.RawItem, ...]) -> syntax.Spot:
    first = premise[0]
    return first.atom.at if isinstance(first, syntax.RawLiteral) else first.at


@cache
def _lark() -> Lark:
    return _grammar("rule.lark", ["statement", "other"], _Builder())


def _grammar(file: str, start: list[str], builder: Transformer[Token, Any]) -> Lark:
    """The builder works while parsing: a recursive walk over a finished tree would bound what can be read."""
    return Lark(
        Path(__file__).with_name(file).read_text(encoding="utf-8"),
        start=start,
        parser="lalr",
        lexer="basic",
        transformer=builder,
        maybe_placeholders=True,
        keep_all_tokens=True,
    )


# Goals


def _goal_term(text: str) -> GoalTerm:
    """Raises UnexpectedToken, or _TooMuch."""
    if len(text) > MAXIMUM_GOAL:
        raise _TooMuch("goal too large", MAXIMUM_GOAL)
    tokens = list(_goal_lark().lex(text))
    if tokens and tokens[-1].value == ".":
        tokens.pop()
    depth = chained = 0
    for token in tokens:
        depth = max(0, depth + (token.type in ("OPEN", "LEFT")) - (token.type in ("CLOSE", "CLOSE_LIST")))
        chained += token.type in ("PLUS", "MINUS", "TIMES", "HAT", "NOT")
        if max(depth, chained) > MAXIMUM_DEPTH:
            raise _TooMuch("goal too large", MAXIMUM_DEPTH)
    state = _goal_lark().parse_interactive(start="goal")
    for token in tokens:
        state.feed_token(token)
    end = Token.new_borrow_pos("$END", "", tokens[-1]) if tokens else Token("$END", "")
    term: GoalTerm = state.feed_token(end)
    return term


class _GoalBuilder(Transformer[Token, GoalTerm]):
    """Terms out of what `goal.lark` recognised."""

    def operation(self, parts: list[Any]) -> Compound:
        left, operator, right = parts
        if operator in (",", ";") and isinstance(left, Compound) and left.functor == operator:
            return Compound(left.functor, (*left.arguments, right), left.place)  # flat, so that long ones stay shallow
        return Compound(str(operator), (left, right), _place("<goal>", operator))

    def prefix(self, parts: list[Any]) -> GoalTerm:
        operator, term = parts
        if operator == "-" and isinstance(term, Constant) and not isinstance(term.value, str):
            return Constant(-term.value)
        return Compound("-" if operator == "-" else "\\+", (term,), _place("<goal>", operator))

    def variable(self, parts: list[Token]) -> GoalVariable:
        return GoalVariable(str(parts[0]))

    def word(self, parts: list[Token]) -> Constant:
        return Constant(str(parts[0]))

    def text(self, parts: list[Token]) -> Constant:
        try:
            return Constant(unquoted(parts[0]))
        except ValueError as escape:
            fault = hint("unknown escape").at(_place("<goal>", parts[0]), escape=str(escape))
            raise RulesRejected([fault]) from None

    def number(self, parts: list[Token]) -> Constant:
        value = number_value(parts[0])
        if value is None:
            fault = hint("number too large").at(_place("<goal>", parts[0]), limit=str(MAXIMUM_DIGITS))
            raise RulesRejected([fault])
        return Constant(value)

    def call(self, parts: list[Any]) -> Compound:
        name, *arguments = (part for part in parts if not isinstance(part, Token) or part.type == "WORD")
        return Compound(str(name), tuple(arguments), _place("<goal>", name))

    def group(self, parts: list[Any]) -> Any:
        return parts[1]

    def sequence(self, parts: list[Any]) -> GoalList:
        has_tail = any(isinstance(part, Token) and part.type == "BAR" for part in parts)
        terms = tuple(part for part in parts if part is not None and not isinstance(part, Token))
        return GoalList(terms[:-1], terms[-1]) if has_tail else GoalList(terms)


@cache
def _goal_lark() -> Lark:
    return _grammar("goal.lark", ["goal", "other"], _GoalBuilder())
