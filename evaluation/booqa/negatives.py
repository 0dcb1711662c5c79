"""Negatives: a positive with words of its predicate replaced by a hyponym that the corpus never uses of these entities.

A narrower proposition does not follow from a positive; if it were true, the corpus would probably have it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hapax.evaluation.booqa.corpus import Mention, Pair
from hapax.evaluation.booqa.filters import CountRange, Predicate
from hapax.evaluation.entailment.lexicon import Lexicon, ReplacementDirection, Sense, SenseChoice, replacements, spans
from hapax.evaluation.entailment.scorers import Measure
from hapax.grammar.errors import HapaxError

SAID = "said of these two"
UNUSUAL = "predicate too rare"


@dataclass(frozen=True, slots=True)
class UsualForm:
    """The most frequent form of a predicate in the corpus, and the number of occurrences of all its forms."""

    relation: str
    count: int


class PredicateIndex:
    """The predicates of a corpus by lemmas and types."""

    def __init__(self, occurrences: Mapping[Predicate, int], lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._forms: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        for (relation, *types), count in occurrences.items():
            # One predicate may stand in the corpus in several forms: `shops in`, `shopped in`.
            self._forms[(self.key(lexicon.words(relation)), types[0], types[1])][relation] += count

    def key(self, words: Iterable[str]) -> str:
        """The lemmas of a predicate, which all its forms have in common."""
        return self._lexicon.joint.join(map(self._lexicon.lemma, words))

    def usual(self, key: str, types: tuple[str, str]) -> UsualForm | None:
        """The usual form of a predicate with these types, None if the corpus has none. Ties go by the alphabet."""
        forms = self._forms.get((key, *types))
        if forms is None:
            return None
        return UsualForm(min(forms, key=lambda form: (-forms[form], form)), forms.total())

    def count(self, mention: Mention) -> int:
        """Number of occurrences of a mention's predicate with these types, in any form."""
        usual = self.usual(self.key(self._lexicon.words(mention.relation)), mention.types)
        return usual.count if usual else 0


@dataclass(frozen=True, slots=True)
class Negatives:
    """Relations that replace a positive's, and the chosen senses by the words that were replaced."""

    relations: tuple[str, ...]
    senses: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Replacer:
    """Finds the negatives of a positive.

    `said` maps an entity pair to the keys of all predicates that the corpus has for it, in any slice.
    """

    lexicon: Lexicon
    choose: SenseChoice
    index: PredicateIndex
    said: Mapping[Pair, frozenset[str]]
    frequency: CountRange
    dropped: Counter[str] = field(default_factory=Counter)
    """Number of replacements that were dropped, by reason: `SAID` or `UNUSUAL`."""

    def negatives(self, mention: Mention) -> Negatives:
        """The negatives of a mention by replacing each run of its words, the longest first."""
        words = self.lexicon.words(mention.relation)
        relations: dict[str, None] = {}
        senses: dict[str, tuple[str, ...]] = {}
        replaced: list[tuple[int, int]] = []
        for span in spans(len(words)):
            candidates = self.lexicon.of(words, span)
            # Words inside a run that was replaced are not replaced again.
            if not candidates or any(start <= span[0] and span[1] <= end for start, end in replaced):
                continue
            chosen = self.choose(words, span, candidates)
            senses[self.lexicon.joint.join(words[slice(*span)])] = tuple(sense.id for sense in chosen)
            fitting = self._fitting(mention, words, span, chosen)
            # Words without a usable hyponym stay free for the shorter runs inside them.
            if fitting:
                replaced.append(span)
                relations.update(dict.fromkeys(fitting))
        return Negatives(tuple(relations), senses)

    def _fitting(
        self, mention: Mention, words: tuple[str, ...], span: tuple[int, int], chosen: Sequence[Sense]
    ) -> list[str]:
        """Narrower relations that the corpus has often enough, but not for this pair, nor a synonym of them."""
        relations: list[str] = []
        for replacement in replacements(words, span, chosen, ReplacementDirection.NARROWER, self.lexicon):
            # All synonyms together: the corpus may state the same with another lemma of the sense.
            keys = list(dict.fromkeys(map(self.index.key, replacement.wordings)))
            if not self.said[mention.pair].isdisjoint(keys):
                self.dropped[SAID] += 1
                continue
            usual = [self.index.usual(key, mention.types) for key in keys]
            fitting = [form.relation for form in usual if form and not self.frequency.fault(form.count, "")]
            # A bool counts as 0 or 1.
            self.dropped[UNUSUAL] += not fitting
            relations += fitting
        return relations


def senses_from_file(path: Path) -> SenseChoice:
    """Read the senses chosen by a model or a person: lines of {"predicate": "...", "words": "...", "synsets": ["..."]}.

    A line without a predicate applies to the words in any predicate; words without a line keep their first sense.
    Raises HapaxError for a faulty line.
    """
    chosen: dict[tuple[str, str], frozenset[str]] = {}
    number = 0
    try:
        for line in path.read_text("utf-8").splitlines():
            number += 1
            content = json.loads(line)
            key = (_joined(str(content.get("predicate", ""))), _joined(str(content["words"])))
            chosen[key] = frozenset(map(str, content["synsets"]))
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read ({fault}). Name a file of senses.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise HapaxError(
            f'{path}:{number}: write {{"predicate": "shop in", "words": "shop", "synsets": ["oewn-..."]}}.'
        ) from None

    def choose(words: tuple[str, ...], span: tuple[int, int], senses: Sequence[Sense]) -> Sequence[Sense]:
        # Without separators, as `_joined` reads them from the file.
        predicate, phrase = "".join(words), "".join(words[slice(*span)])
        # A line for this predicate goes before a line for the words in general.
        ids = chosen.get((predicate, phrase), chosen.get(("", phrase)))
        return senses[:1] if ids is None else [sense for sense in senses if sense.id in ids]

    return choose


def _joined(text: str) -> str:
    """The words without separators: blanks, or in Chinese a dot or nothing."""
    return "".join(text.replace("·", " ").split())


def senses_by_critic(measure: Measure) -> SenseChoice:
    """Choose the sense whose definition a critic finds most likely; among equals, the lexicon's first."""

    # The same words stand in many predicates' positives, and each question to a critic costs.
    @cache
    def choose(words: tuple[str, ...], span: tuple[int, int], senses: tuple[Sense, ...]) -> Sequence[Sense]:
        if len(senses) < 2:
            return senses
        phrase, predicate = " ".join(words[slice(*span)]), " ".join(words)
        context = f'In "Someone {predicate} something", "{phrase}" means'
        scores = measure([f"{context}: {sense.definition}." for sense in senses])
        return (senses[scores.index(max(scores))],)

    return lambda words, span, senses: choose(words, span, tuple(senses))  # a list cannot be cached
