"""The places where a text names predicates, types and rules, for editors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.grammar.assemble import is_variable_name
from hapax.grammar.errors import Place
from hapax.grammar.parser import SourceToken, statement_tokens

DECLARING = frozenset(("oracle", "functional", "given", "computed", "aggregate"))
"""Words that begin the declaration of a predicate."""

_OF_VALUES = frozenset(("fact", "@example"))
"""Beginnings of statements whose arguments are values, not types."""


class NameKind(StrEnum):
    """The kinds of names in rules."""

    PREDICATE = "predicate"
    TYPE = "type"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at its place in a text. `arity`: of a predicate, None where the line does not tell it.

    `declares`: the statement declares the predicate or the subtype, or names the rule.
    """

    kind: NameKind
    name: str
    place: Place
    arity: int | None = None
    declares: bool = False


def occurrences(file: str, text: str) -> list[Occurrence]:
    """All names of predicates, types and rules of a text, in its order; broken statements included."""
    found: list[Occurrence] = []
    for tokens in statement_tokens(text)[1]:
        found += _Statement(file, tokens).names()
    return found


@dataclass(slots=True)
class _Statement:
    """The tokens of one statement."""

    file: str
    tokens: Sequence[SourceToken]

    def names(self) -> Iterator[Occurrence]:
        first = str(self.tokens[0])
        if first == "@name":
            for token in self.tokens[1:2]:
                yield Occurrence(NameKind.RULE, str(token).strip('"'), self._place([token]), declares=True)
        elif first == "opposite" and self._follows(1, "WORD"):
            for token in self.tokens[1:3]:
                yield Occurrence(NameKind.PREDICATE, str(token), self._place([token]))
        elif first in ("type", "disjoint") and self._follows(1, "WORD"):
            yield from self._types()
        elif self._follows(2, "SLASH") and self._follows(3, "NUMBER"):  # symmetric p/2
            yield Occurrence(NameKind.PREDICATE, str(self.tokens[1]), self._place([self.tokens[1]]), self._number(3))
        elif not first.startswith("@") or first in _OF_VALUES:
            yield from self._atoms(first)

    def _types(self) -> Iterator[Occurrence]:
        """The types of `type A < B` and `disjoint A, B`; the first of a subtype is declared there."""
        begin = 1
        for end in range(1, len(self.tokens) + 1):
            # A type ends at a sign or at the end of the statement.
            if end == len(self.tokens) or self.tokens[end].type != "WORD":
                declares = begin == 1 and str(self.tokens[0]) == "type"
                yield from self._type(self.tokens[begin:end], declares)
                begin = end + 1

    def _atoms(self, first: str) -> Iterator[Occurrence]:
        """The predicates of the statement, and the types of their arguments."""
        declares = first in DECLARING and self._follows(1, "WORD")
        index = 0
        while index < len(self.tokens):
            if first == "aggregate" and self.tokens[index].type == "COMPARE" and self._follows(index + 2, "LPAR"):
                index += 3  # the function is not a predicate
            elif self.tokens[index].type == "WORD" and self._follows(index + 1, "LPAR"):
                arguments, end = self._arguments(index + 2)
                name = self.tokens[index]
                yield Occurrence(NameKind.PREDICATE, str(name), self._place([name]), len(arguments), declares)
                for words in arguments:
                    if first not in _OF_VALUES:
                        # `Food Allergen` in a declaration is all type; elsewhere the last word is the variable.
                        yield from self._type(words if declares and not _named(words) else words[:-1], False)
                declares = False
                index = end
            else:
                index += 1

    def _arguments(self, start: int) -> tuple[list[list[SourceToken]], int]:
        """The tokens of each argument, and the position behind the last one."""
        arguments: list[list[SourceToken]] = [[]]
        for index in range(start, len(self.tokens)):
            token = self.tokens[index]
            if token.type == "RPAR":
                return arguments, index
            # A second "(" before the ")" shows that the first one was left open, before the name of another predicate.
            if token.type == "LPAR":
                return [*arguments[:-1], arguments[-1][:-1]], index - 1
            if token.type == "COMMA":
                arguments.append([])
            else:
                arguments[-1].append(token)
        return arguments, len(self.tokens)

    def _type(self, words: Sequence[SourceToken], declares: bool) -> Iterator[Occurrence]:
        if words and all(word.type == "WORD" for word in words):
            name = " ".join(map(str, words))
            yield Occurrence(NameKind.TYPE, name, self._place(words), declares=declares)

    def _follows(self, index: int, kind: str) -> bool:
        return index < len(self.tokens) and self.tokens[index].type == kind

    def _number(self, index: int) -> int | None:
        text = str(self.tokens[index])
        return int(text) if text.isdecimal() else None

    def _place(self, words: Sequence[SourceToken]) -> Place:
        first, last = words[0], words[-1]
        return Place(self.file, first.line or 1, first.column or 1, last.end_line, last.end_column)


def _named(words: Sequence[SourceToken]) -> bool:
    """The argument of a declaration ends in a formal variable."""
    return len(words) > 1 and is_variable_name(str(words[-1]))
