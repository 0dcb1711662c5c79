"""Reads sentences back as atoms, by the templates of a library."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from hapax.grammar.parsing.declarations import PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.writing.verbalize import template_of

LONGEST_SENTENCE = 4000
"""Characters of a sentence that is read; no template yields a longer one."""

_SLOT = re.compile(r"\[(\d{1,3})\]")
_PLACEHOLDER = re.compile(r"\[\w+\]|[A-Z]\w*[A-Z]\d*")
"""`[B]`, or `PersonX` as `verbalize` writes generic variables."""


def is_placeholder(text: str) -> bool:
    """True for the text of a variable."""
    return _PLACEHOLDER.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class SentencePattern:
    """A template of a predicate as a regular expression, with the argument position of each of its slots."""

    template: str
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


class PatternIndex:
    """Patterns by their rarest word, so that a clause is compared with few of them."""

    def __init__(self, patterns: Sequence[SentencePattern]) -> None:
        self._patterns = patterns
        fixed_words = []
        for pattern in patterns:
            fixed_words.append([word for word in pattern.template.casefold().split() if "[" not in word])
        counts: Counter[str] = Counter()
        for words in fixed_words:
            counts.update(words)
        self._numbers: dict[str, list[int]] = {}
        for number, words in enumerate(fixed_words):
            rarest = min(words, key=lambda word: (counts[word], word), default="")
            self._numbers.setdefault(rarest, []).append(number)

    def candidates(self, clause: str) -> Iterator[SentencePattern]:
        """Patterns that the clause may match, in order. Every pattern that it does match is among them."""
        numbers: list[int] = []
        for word in {"", *clause.casefold().split()}:  # "": patterns that are all slots
            numbers += self._numbers.get(word, [])
        # Back in the order of the patterns, which the words' sets have lost.
        return (self._patterns[number] for number in sorted(numbers))


@dataclass(frozen=True)
class SentenceReader:
    """Reads clauses by the affirmative and negated templates of a library's predicates."""

    library: Library

    @cached_property
    def _patterns(self) -> PatternIndex:
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
                patterns.append(SentencePattern(template, expression, signature, positions, denied))
        return PatternIndex(sorted(patterns, key=lambda pattern: -len(pattern.template)))

    def readings(self, clause: str) -> Iterator[SentenceReading]:
        """All readings of a clause, those by the longest templates first."""
        if len(clause) >= LONGEST_SENTENCE:
            return
        for pattern in self._patterns.candidates(clause):
            match = pattern.expression.fullmatch(clause)
            if match is None:
                continue
            slots = [""] * len(pattern.signature.argument_types)
            for position, text in zip(pattern.positions, match.groups(), strict=True):
                slots[position] = text
            yield SentenceReading(pattern.signature, tuple(slots), pattern.denied, len(pattern.template))

    def best_readings(self, clause: str) -> list[SentenceReading]:
        """The readings by the most specific template, and by others of its length."""
        best: list[SentenceReading] = []
        for reading in self.readings(clause):
            if best and reading.length < best[0].length:
                break
            best.append(reading)
        return best
