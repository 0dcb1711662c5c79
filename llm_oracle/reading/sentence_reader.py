"""Reads sentences back as atoms, by the templates of a library."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from hapax.grammar.parsing.declarations import PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.writing.verbalize import template_of

LONGEST_SENTENCE = 4000
"""Characters of a sentence that is read; no template yields a longer one."""

_SLOT = re.compile(r"\[(\d{1,3})\]")
_PLACEHOLDER = re.compile(r"\[\w+\]|[A-Z]\w*[A-Z]\d*")
"""`[B]`, or `PersonX` as `verbalize` writes generic variables."""


MOST_PIECES = 20
"""Pieces of a sentence between "and" that are read."""


def is_placeholder(text: str) -> bool:
    """True for the text of a variable."""
    return _PLACEHOLDER.fullmatch(text) is not None


def clauses_of(sentence: str, is_clause: Callable[[str], bool]) -> Iterator[str]:
    """The clauses that a sentence joins by "and", from its first pieces.

    A template or a name may contain "and" itself, so the longest clause wins; a piece alone is one in any case.
    """
    pieces = sentence.split(" and ")[:MOST_PIECES]
    while pieces:
        joined = {size: " and ".join(pieces[:size]) for size in range(len(pieces), 0, -1)}
        length = next((size for size, clause in joined.items() if size > 1 and is_clause(clause)), 1)
        yield joined[length]
        pieces = pieces[length:]


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """A template of a predicate as a regular expression, with the argument position of each of its slots.

    `words`: those that every sentence by the template has, in lower case.
    """

    template: str
    words: frozenset[str]
    expression: re.Pattern[str]
    signature: PredicateSignature
    positions: tuple[int, ...]
    denied: bool


@dataclass(frozen=True, slots=True)
class SentenceReading:
    """A sentence as an atom. `slots`: the text of each argument. `denied`: it is the atom's negation."""

    signature: PredicateSignature
    slots: tuple[str, ...]
    denied: bool
    length: int
    """Characters of the template. The longest template that fits is the most specific."""


@dataclass(frozen=True)
class SentenceReader:
    """Reads clauses by the affirmative and negated templates of a library's predicates."""

    library: Library

    @cached_property
    def _patterns(self) -> list[SentencePattern]:
        """Affirmative and negated templates of all predicates, longer ones first, since they are more specific."""
        patterns = []
        for signature in self.library.completed().signatures:
            variables = [Variable(f"V{place}", data_type) for place, data_type in enumerate(signature.argument_types)]
            atom = Atom(signature.name, tuple(variables))
            for denied in (False, True):
                template = template_of(atom, self.library, "negated" if denied else "affirmative")
                positions = tuple(int(slot) - 1 for slot in _SLOT.findall(template))
                # `split` returns the slots' numbers as well, at the odd places.
                pieces = [re.escape(piece) for piece in _SLOT.split(template)[::2]]
                # Limited and lazy, so that a long clause cannot make the match explode.
                expression = re.compile("(.{1,400}?)".join(pieces), re.IGNORECASE | re.DOTALL)
                words = frozenset(word for word in template.casefold().split() if "[" not in word)
                patterns.append(SentencePattern(template, words, expression, signature, positions, denied))
        return sorted(patterns, key=lambda pattern: -len(pattern.template))

    def readings(self, clause: str) -> Iterator[SentenceReading]:
        """All readings of a clause, those by the longest templates first."""
        words = frozenset(clause.casefold().split())
        for pattern in self._patterns if len(clause) < LONGEST_SENTENCE else ():
            match = pattern.expression.fullmatch(clause) if pattern.words <= words else None
            if match is not None:
                slots = dict(zip(pattern.positions, match.groups(), strict=True))
                texts = tuple(slots.get(place, "") for place in range(len(pattern.signature.argument_types)))
                yield SentenceReading(pattern.signature, texts, pattern.denied, len(pattern.template))

    def best_readings(self, clause: str) -> list[SentenceReading]:
        """The readings by the most specific template, and by others of its length."""
        return list(next(map(itemgetter(1), groupby(self.readings(clause), lambda reading: reading.length)), ()))
