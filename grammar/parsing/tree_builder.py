"""The grammar, and the trees that lark builds with it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer

from hapax.grammar.errors import HapaxError, Place
from hapax.grammar.parsing import syntax
from hapax.grammar.terms import INFIX_TESTS

MAXIMUM_DEPTH = 100
"""Nested parentheses, and arithmetic operators per statement: trees stay shallow enough to walk recursively."""


class TextTooLarge(HapaxError):  # noqa: N818 - never leaves the parser
    """A statement or goal too large to be meant; `label` is its hint's."""

    def __init__(self, label: str, limit: int) -> None:
        super().__init__(label)
        self.label = label
        self.limit = limit


@cache
def rule_lark() -> Lark:
    """The parser of rule files and goals."""
    path = Path(__file__).with_name("rule.lark")
    # Lark's tables lie beside the bytecode of this module, and are made anew when the grammar or lark changes.
    tables = Path(cache_from_source(str(path))).with_suffix(".lark")
    return Lark(
        path.read_text(encoding="utf-8"),
        start=["statement", "goal", "other"],
        parser="lalr",
        # Statements are split before they are parsed, and the contextual lexer needs the parser's state.
        lexer="basic",
        transformer=_TreeBuilder(),  # works while parsing: a recursive walk over a finished tree would limit its depth
        maybe_placeholders=True,
        cache=not sys.dont_write_bytecode and str(tables),
        lexer_callbacks={"QUESTIONED": _as_variable},
    )


def _as_variable(token: Token) -> Token:
    """`X` for `?x`."""
    return token.update(type="WORD", value=token[1].upper() + token[2:])


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text, as by `lark.lex`, which makes a new lexer for each text."""
    parser = rule_lark().parse_interactive(text, start="statement")
    tokens: Iterator[Token] = parser.lexer_thread.lex(parser.parser_state)  # type: ignore[no-untyped-call]
    return tokens


def built(start: str, tokens: Iterable[Token], written: Sequence[Token]) -> Any:
    """The node that the builder of the grammar makes of tokens; `written`: as they were. Raises UnexpectedToken."""
    state = rule_lark().parse_interactive(start=start)
    for token in tokens:
        state.feed_token(token)
    return state.feed_token(Token.new_borrow_pos("$END", "", written[-1]) if written else Token("$END", ""))


_OPENING = frozenset(("LPAR", "LBRACE", "LSQB", "_GOALS"))
_CLOSING = frozenset(("RPAR", "RBRACE", "RSQB"))
_NESTING = frozenset(("PLUS", "MINUS", "STAR", "SLASH", "DIVIDE", "POWER", "HAT", "THEN", "NOT_NOT"))
"""Terminals of which a chain makes a tree that is as deep as the chain is long."""


def refuse_depth(tokens: Iterable[Token]) -> None:
    """Raise TextTooLarge for too many nested brackets or operators."""
    depth = chained = 0
    for token in tokens:
        depth = max(0, depth + (token.type in _OPENING) - (token.type in _CLOSING))
        chained += token.type in _NESTING
        if max(depth, chained) > MAXIMUM_DEPTH:
            raise TextTooLarge("too deep", MAXIMUM_DEPTH)


def place_of(file: str, token: Token) -> Place:
    """The range of a token."""
    return Place(file, *_at(token))


class _TreeBuilder(Transformer[Token, syntax.RawNode]):
    """Builds statements bottom-up while lark parses: a method of the rule's name gets its parts in order.

    Parts that are left out are None.
    """

    def line(self, parts: list[Any]) -> syntax.RawLine:
        keyword, *others = (str(part) if isinstance(part, Token) else part for part in parts)
        return syntax.RawLine(keyword, tuple(others), at=span(parts))

    def words(self, parts: list[Token]) -> syntax.RawWords:
        return syntax.RawWords(tuple(map(str, parts)), at=span(parts))

    name = words

    def value(self, parts: list[Token]) -> syntax.RawValue:
        return syntax.RawValue(*map(str, parts), at=span(parts))

    def templates(self, parts: list[Any]) -> tuple[Any, ...]:
        return _nodes(parts)

    counted = heads = templates

    def key(self, parts: list[Token]) -> tuple[str, ...]:
        return tuple(map(str, parts))

    def operation(self, parts: list[Any]) -> syntax.RawNode:
        left, sign, right = parts
        if sign in INFIX_TESTS:
            return syntax.RawAtom(syntax.RawWords((str(sign),), at=_at(sign)), (left, right), at=span(parts))
        return syntax.RawTerm(syntax.COMPARISONS.get(sign, str(sign)), (left, right), at=span(parts))

    def minus(self, parts: list[Any]) -> syntax.RawNode:
        operand, at = parts[1], span(parts)
        if isinstance(operand, syntax.RawValue) and not (operand.unit or operand.is_text):
            return syntax.RawValue(f"-{operand.source}".removeprefix("--"), at=at)
        return syntax.RawTerm("-", (syntax.RawValue("0", at=at), operand), at=at)

    def group(self, parts: list[Any]) -> syntax.RawNode:
        inner: syntax.RawNode = parts[1]
        is_operation = isinstance(inner, syntax.RawTerm) and inner.sign != syntax.LIST
        return replace(inner, at=span(parts)) if is_operation else inner

    def listed(self, parts: list[Any]) -> syntax.RawTerm:
        sign = syntax.TAIL if parts[-3:-2] == ["|"] else syntax.LIST
        return syntax.RawTerm(sign, _nodes(parts), at=span(parts))

    def cells(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.CELLS, _nodes(parts), at=span(parts))

    def named(self, parts: list[Any]) -> syntax.RawNamed:
        return syntax.RawNamed(str(parts[0]), parts[1], at=span(parts))

    def atom(self, parts: list[Any]) -> syntax.RawAtom:
        name, *arguments, _ = parts
        groups: list[list[Any]] = [[]]
        for argument in filter(None, arguments):
            if isinstance(argument, Token):  # a sign of *or*
                groups.append([])
            else:
                groups[-1].append(argument)
        pools = tuple(map(tuple, groups)) if len(groups) > 1 else ()
        return syntax.RawAtom(name, tuple(groups[0]), pools, at=span(parts))

    def collected(self, parts: list[Any]) -> syntax.RawAtom:
        function, expression, _, premise, _ = parts
        name = syntax.RawWords((str(function),), at=_at(function))
        return syntax.RawAtom(name, (expression,) if expression else (), rows=premise, at=span(parts))

    def collected_set(self, parts: list[Any]) -> syntax.RawAtom:
        function, _, counted, premise, _ = parts
        name = syntax.RawWords((str(function)[1:],), at=_at(function))
        return syntax.RawAtom(name, counted, rows=premise, is_set=True, at=span(parts))

    columns = operation

    # Premises

    def literal(self, parts: list[Any]) -> syntax.RawNode:
        sign, atom = parts
        return atom if sign is None else syntax.RawTerm(syntax.NOT, (atom,), at=atom.at)

    def untrue(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.NONE_OF, (parts[1],), at=span(parts))

    def negation(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.NONE_OF, parts[2], at=span(parts))

    def alternatives(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.ANY_OF, (syntax.RawTerm(syntax.ALL, parts[1]),), at=span(parts))

    def branch(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.ALL, _nodes(parts), at=span(parts))

    def choose(self, parts: list[Any]) -> syntax.RawTerm:
        return syntax.RawTerm(syntax.THEN, _nodes(parts), at=span(parts))

    def premise(self, parts: list[Any]) -> syntax.RawPremise:
        branches: tuple[Any, ...] = _nodes(parts)
        if len(branches) == 1 and branches[0].sign == syntax.ALL:
            return branches[0].parts  # type: ignore[no-any-return]
        return (syntax.RawTerm(syntax.ANY_OF, branches, at=span(branches)),)

    # Statements

    def declaration(self, parts: list[Any]) -> syntax.RawDeclaration:
        keyword, atom, tolerance, key, templates = parts
        within = str(tolerance) if tolerance is not None else None
        return syntax.RawDeclaration(str(keyword), atom, within, key, templates, at=span([keyword, templates or atom]))

    def computed(self, parts: list[Any]) -> syntax.RawDeclaration:
        keyword, atom, definition, templates = parts
        return syntax.RawDeclaration(str(keyword), atom, None, None, templates, definition, at=span(parts))

    def aggregate(self, parts: list[Any]) -> syntax.RawDeclaration:
        keyword, atom, result, sign, function, counted, premise, closing, templates = parts
        rows = syntax.RawAtom(function, counted, rows=premise, is_set=True, at=span([function, closing]))
        sides = (syntax.RawWords((str(result),), at=_at(result)), rows)
        definition = syntax.RawTerm(syntax.COMPARISONS.get(sign, str(sign)), sides)
        return syntax.RawDeclaration(
            str(keyword), atom, templates=templates, definition=definition, at=span([keyword, closing])
        )

    def weighted(self, parts: list[Any]) -> syntax.RawHead:
        return syntax.RawHead(parts[1], parts[0], at=span(parts))

    def fact(self, parts: list[Any]) -> syntax.RawClause:
        return syntax.RawClause((syntax.RawHead(parts[1]),), keyword=str(parts[0]), at=span(parts))

    def stated(self, parts: list[Any]) -> syntax.RawClause:
        return syntax.RawClause((syntax.RawHead(parts[0]),), keyword="fact", at=span(parts))

    def never(self, parts: list[Any]) -> syntax.RawClause:
        return syntax.RawClause((), parts[1], keyword="never", at=span(parts))

    def choice(self, parts: list[Any]) -> syntax.RawClause:
        heads, _, premise, *exceptions = parts
        heads = (syntax.RawHead(heads),) if isinstance(heads, syntax.RawAtom) else heads
        return syntax.RawClause(heads, premise or (), tuple(exceptions), at=span(parts))

    backward = choice

    def forward(self, parts: list[Any]) -> syntax.RawClause:
        premise, arrow, heads, *exceptions = parts
        clause = self.choice([heads, arrow, premise, *exceptions])
        return replace(clause, at=span(parts))

    following = forward


def _nodes(parts: Iterable[Any]) -> tuple[Any, ...]:
    """The parts without tokens and without those that are left out."""
    return tuple(part for part in parts if isinstance(part, syntax.RawNode))


def _at(part: Any) -> syntax.Spot:
    """The range of a token, of a node, or of the items of a premise."""
    if isinstance(part, syntax.RawNode):
        return part.at
    if isinstance(part, tuple):
        return span(part)
    line, column = part.line or 1, part.column or 1
    return (line, column, part.end_line or line, part.end_column or column + len(part))


def span(parts: Sequence[Any]) -> syntax.Spot:
    """The range from the first to the last of the parts that are there."""
    last = -1
    while parts[last] is None:
        last -= 1
    first = parts[0] or parts[1]  # a literal may have no sign
    return _at(first)[:2] + _at(parts[last])[2:]
