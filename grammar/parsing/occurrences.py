"""The places where a text names predicates, types and rules, for editors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hapax.grammar.errors import Place
from hapax.grammar.parsing.statements import SourceToken, statement_tokens
from hapax.grammar.writing.texts import is_variable_name

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
        kinds = [token.type for token in self.tokens]
        if first == "@name":
            for token in self.tokens[1:2]:
                yield Occurrence(NameKind.RULE, str(token).strip('"'), self._place([token]), declares=True)
        elif first == "opposite" and kinds[1:2] == ["WORD"]:
            for token in self.tokens[1:3]:
                yield Occurrence(NameKind.PREDICATE, str(token), self._place([token]))
        elif first in ("type", "disjoint") and kinds[1:2] == ["WORD"]:
            # A type ends at a sign or at the end of the statement; the first of a subtype is declared there.
            for number, words in enumerate(_split(self.tokens[1:], lambda token: token.type != "WORD")):
                yield from self._type(words, declares=first == "type" and number == 0)
        elif kinds[2:4] == ["SLASH", "NUMBER"]:  # symmetric p/2
            arity = int(self.tokens[3]) if self.tokens[3].isdecimal() else None
            yield Occurrence(NameKind.PREDICATE, str(self.tokens[1]), self._place([self.tokens[1]]), arity)
        elif not first.startswith("@") or first in _OF_VALUES:
            yield from self._atoms(first, kinds)

    def _atoms(self, first: str, kinds: Sequence[str]) -> Iterator[Occurrence]:
        """The predicates of the statement, and the types of their arguments."""
        declares = first in DECLARING and kinds[1:2] == ["WORD"]
        for index, name in enumerate(self.tokens):
            is_function = first == "aggregate" and index > 0 and kinds[index - 1] == "COMPARE"
            if kinds[index : index + 2] == ["WORD", "LPAR"] and not is_function:
                # A list that is left open ends before the name of the next predicate.
                end = next((at for at in range(index + 2, len(kinds)) if kinds[at] in ("LPAR", "RPAR")), len(kinds))
                inside = self.tokens[index + 2 : end - (kinds[end : end + 1] == ["LPAR"])]
                arguments = _split(inside, lambda token: token.type == "COMMA")
                yield Occurrence(NameKind.PREDICATE, str(name), self._place([name]), len(arguments), declares)
                for words in arguments if first not in _OF_VALUES else ():
                    # `Food Allergen` in a declaration is all type; elsewhere the last word is the variable.
                    is_named = len(words) > 1 and is_variable_name(str(words[-1]))
                    yield from self._type(words if declares and not is_named else words[:-1])
                declares = False

    def _type(self, words: Sequence[SourceToken], declares: bool = False) -> Iterator[Occurrence]:
        if words and all(word.type == "WORD" for word in words):
            name = " ".join(map(str, words))
            yield Occurrence(NameKind.TYPE, name, self._place(words), declares=declares)

    def _place(self, words: Sequence[SourceToken]) -> Place:
        first, last = words[0], words[-1]
        return Place(self.file, first.line or 1, first.column or 1, last.end_line, last.end_column)


def _split(tokens: Sequence[SourceToken], ends: Callable[[SourceToken], bool]) -> list[list[SourceToken]]:
    """The tokens between those that end a part."""
    parts: list[list[SourceToken]] = [[]]
    for token in tokens:
        if ends(token):
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
