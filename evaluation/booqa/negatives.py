"""Negatives: a positive's predicate with some words replaced by a hyponym, which the corpus never says of these two.

What is narrower does not follow from what is said, and would have been said.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from evaluation.booqa.corpus import Mention, Pair
from evaluation.booqa.filters import Between, Predicate
from evaluation.entailment.lexicon import Lexicon, Sense, SenseChoice, Way, replacements, spans
from evaluation.entailment.scorers import Measure
from grammar.errors import HapaxError

SAID = "said of these two"
UNUSUAL = "predicate too rare"


@dataclass(frozen=True, slots=True)
class Usual:
    """The corpus' most frequent form of a predicate, and how often all its forms occur."""

    relation: str
    count: int


class PredicateIndex:
    """The corpus' predicates by types and lemmas."""

    def __init__(self, occurrences: Mapping[Predicate, int], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._forms: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for (relation, *types), count in occurrences.items():
            self._forms[(self.key(lexicon.words(relation)), types[0], types[1])][relation] += count

    def key(self, words: Iterable[str]) -> str:
        """What the forms of one predicate share."""
        return self._lexicon.joint.join(map(self._lexicon.lemma, words))

    def usual(self, key: str, types: tuple[str, str]) -> Usual | None:
        """Of a key with these types; None where the corpus has none. Ties go to the first in the alphabet."""
        forms = self._forms.get((key, *types))
        if forms is None:
            return None
        return Usual(min(forms, key=lambda form: (-forms[form], form)), forms.total())

    def count(self, one: Mention) -> int:
        """How often a mention's predicate occurs with these types, in any form."""
        usual = self.usual(self.key(self._lexicon.words(one.relation)), one.types)
        return usual.count if usual else 0


@dataclass(frozen=True, slots=True)
class Negatives:
    """Relations that stand in for a positive's, and by replaced words the senses that were chosen."""

    relations: tuple[str, ...]
    senses: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Replacer:
    """Finds negatives. `said`: by entity pair the keys of all predicates that the corpus has for it, in any slice."""

    lexicon: Lexicon
    choose: SenseChoice
    index: PredicateIndex
    said: Mapping[Pair, frozenset[str]]
    wanted: Between
    dropped: Counter[str] = field(default_factory=Counter)
    """How many replacements the corpus says of the pair, itself or by a synonym, and how many it hardly knows."""

    def negatives(self, one: Mention) -> Negatives:
        """Of each run of words, the longest first; a run inside one that was replaced is not tried again."""
        words = self.lexicon.words(one.relation)
        found: dict[str, None] = {}
        senses: dict[str, tuple[str, ...]] = {}
        done: list[tuple[int, int]] = []
        for span in spans(len(words)):
            known = self.lexicon.of(words, span)
            if not known or any(start <= span[0] and span[1] <= end for start, end in done):
                continue
            chosen = self.choose(words, span, known)
            senses[self.lexicon.joint.join(words[slice(*span)])] = tuple(sense.id for sense in chosen)
            fitting = self._fitting(one, words, span, chosen)
            if fitting:
                done.append(span)
                found.update(dict.fromkeys(fitting))
        return Negatives(tuple(found), senses)

    def _fitting(
        self, one: Mention, words: tuple[str, ...], span: tuple[int, int], chosen: Sequence[Sense]
    ) -> list[str]:
        """Relations that the corpus has often enough, and never for this pair, not by a synonym either."""
        found = []
        for replacement in replacements(words, span, chosen, Way.NARROWER, self.lexicon):
            keys = list(dict.fromkeys(map(self.index.key, replacement.wordings)))
            if not self.said[one.pair].isdisjoint(keys):
                self.dropped[SAID] += 1
                continue
            usual = [self.index.usual(key, one.types) for key in keys]
            fitting = [each.relation for each in usual if each and not self.wanted.fault(each.count, "")]
            self.dropped[UNUSUAL] += not fitting
            found += fitting
        return found


def senses_from_file(path: Path) -> SenseChoice:
    """As a model or a person chose them: lines of {"predicate": "...", "words": "...", "synsets": ["..."]}.

    Words that the file does not name for a predicate, or at all, have their first sense. Raises HapaxError for a faulty
    line.
    """
    chosen: dict[tuple[str, str], frozenset[str]] = {}
    number = 0
    try:
        for line in path.read_text("utf-8").splitlines():
            number += 1
            said = json.loads(line)
            key = (_joined(str(said.get("predicate", ""))), _joined(str(said["words"])))
            chosen[key] = frozenset(map(str, said["synsets"]))
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of senses.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HapaxError(
            f'{path}:{number}: write {{"predicate": "shop in", "words": "shop", "synsets": ["oewn-..."]}}.'
        ) from None

    def choose(words: tuple[str, ...], span: tuple[int, int], senses: Sequence[Sense]) -> Sequence[Sense]:
        predicate, some = "".join(words), "".join(words[slice(*span)])
        wanted = chosen.get((predicate, some), chosen.get(("", some)))
        return senses[:1] if wanted is None else [sense for sense in senses if sense.id in wanted]

    return choose


def _joined(text: str) -> str:
    """Words without what parts them, which in Chinese is nothing, or a dot."""
    return "".join(text.replace("·", " ").split())


def senses_by_critic(measure: Measure) -> SenseChoice:
    """The sense whose definition a critic finds most likely; of several the lexicon's first."""

    @cache
    def choose(words: tuple[str, ...], span: tuple[int, int], senses: tuple[Sense, ...]) -> Sequence[Sense]:
        if len(senses) < 2:
            return senses
        some, whole = " ".join(words[slice(*span)]), " ".join(words)
        found = measure([f'In "Someone {whole} something", "{some}" means: {one.definition}.' for one in senses])
        return (senses[found.index(max(found))],)

    return lambda words, span, senses: choose(words, span, tuple(senses))
