"""Scorers of entailments behind one protocol: models with their prompts, baselines, and files of scores."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product
from pathlib import Path
from typing import Protocol

from hapax.evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple, read_scores
from hapax.grammar.errors import HapaxError


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a language. Only the first three patterns express the direction of the entailment."""

    patterns: tuple[str, ...]
    antipatterns: tuple[str, ...]

    @property
    def directional(self) -> tuple[str, ...]:
        return self.patterns[:3]


class Direction(StrEnum):
    """The patterns to fill: the three directional ones, these in both directions, or the five of S&S."""

    DIRECTIONAL = "directional"
    SYMMETRIC = "symmetric"
    ORIGINAL = "original"


PROMPTS: Mapping[str, Prompts] = {
    "EN": Prompts(
        (
            "{pal} {prem} {par}, which means that {hal} {hypo} {har}.",
            "It is not the case that {hal} {hypo} {har}, let alone that {pal} {prem} {par}.",
            "{hal} {hypo} {har} because {pal} {prem} {par}.",
            "{pal} {prem} {par} because {hal} {hypo} {har}.",
            "{hal} {hypo} {har}, which means that {pal} {prem} {par}.",
        ),
        (
            "It is not sure that {hal} {hypo} {har} just because {pal} {prem} {par}.",
            "{pal} {prem} {par}. This does not mean that {hal} {hypo} {har}.",
            "The fact that {pal} {prem} {par} does not necessarily mean that {hal} {hypo} {har}.",
            "Even if {pal} {prem} {par}, {hal} maybe {hypo} {har}.",
            "Just because {pal} {prem} {par}, it might still not be true that {hal} {hypo} {har}.",
        ),
    ),
    "DE": Prompts(
        (
            "{pal} {prem} {par}, das heisst {hal} {hypo} {har}.",
            "Es ist nicht der Fall, dass {hal} {har} {hypo}, geschweige denn {pal} {par} {prem}.",
            "{hal} {hypo} {har} denn {pal} {prem} {par}.",
            "{pal} {prem} {par} denn {hal} {hypo} {har}.",
            "{hal} {hypo} {har}, was bedeuted dass {pal} {par} {prem}.",
        ),
        (
            "Es ist ungewiss dass {hal} {har} {hypo} nur weil {pal} {par} {prem}.",
            "{pal} {prem} {par}. Das bedeutet nicht, dass {hal} {har} {hypo}.",
            "{pal} {prem} {par} heisst nicht, dass {hal} {har} {hypo}.",
            "Selbst wenn {pal} {par} {prem}, {hypo} {hal} vielleicht {har}.",
            "Nur weil {pal} {par} {prem}, kann es trotzdem falsch sein, dass {hal} {har} {hypo}.",
        ),
    ),
    "ZH": Prompts(
        (
            "{prem}，这也就是说，{hypo}。",
            "{hypo}是不成立的，所以{prem}就更不可能了。",
            "{prem}，所以{hypo}",
            "{hypo}，所以{prem}",
            "{hypo}，这意味着{prem}",
        ),
        (
            "只因为{prem}，还不能确定{hypo}。",
            "{prem}。这并不意味着{hypo}。",
            "{prem}并不一定导致{hypo}。",
            "即使{prem}，也只是有可能{hypo}。",
            "只从{prem}来看，{hypo}这件事仍有可能不是真的。",
        ),
    ),
}


# By contraposition: "not P because not H" says again that P entails H, although the order is reversed.
NEGATED_PATTERNS: Mapping[int, tuple[bool, bool]] = {3: (True, True), 4: (True, True)}
NEGATED_ANTIPATTERNS: Mapping[int, tuple[bool, bool]] = {3: (False, True)}
"""Numbers of the English prompts, from 0, in which Schmitt and Schuetze negate premise and hypothesis (SherLIiC)."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The sentences of a pair."""

    patterns: tuple[str, ...]
    antipatterns: tuple[str, ...]


def filled(pair: EntailmentPair, direction: Direction = Direction.DIRECTIONAL) -> Filled:
    """The pair in the prompts of its language. Raises HapaxError for a language without prompts."""
    prompts = PROMPTS.get(pair.language)
    if prompts is None:
        raise HapaxError(
            f"{pair.place or pair.premise.sentence}: no prompts for language {pair.language!r}. Use one of "
            f"{', '.join(PROMPTS)}."
        )
    patterns = prompts.patterns if direction is Direction.ORIGINAL else prompts.directional
    ways = [(pair.premise, pair.hypothesis)]
    if direction is Direction.SYMMETRIC:
        # A scorer of both directions cannot tell a pair from its converse, which is what it is compared for.
        ways.append((pair.hypothesis, pair.premise))
    if direction is Direction.ORIGINAL and pair.verbal and pair.language == "EN":
        return Filled(
            _with_negation(patterns, NEGATED_PATTERNS, pair),
            _with_negation(prompts.antipatterns, NEGATED_ANTIPATTERNS, pair),
        )
    # Chinese patterns take whole sentences, because a Chinese object may stand inside its predicate.
    fill = _chinese if pair.language == "ZH" else _european
    return Filled(
        tuple(fill(pattern, *way) for way, pattern in product(ways, patterns)),
        tuple(fill(pattern, *way) for way, pattern in product(ways, prompts.antipatterns)),
    )


def _with_negation(
    patterns: Sequence[str], negated: Mapping[int, tuple[bool, bool]], pair: EntailmentPair
) -> tuple[str, ...]:
    """The patterns, filled with the pair; those with a number in `negated` with its premise or hypothesis negated."""
    texts = []
    for number, pattern in enumerate(patterns):
        sides = []
        for side, negate in zip((pair.premise, pair.hypothesis), negated.get(number, (False, False)), strict=True):
            sides.append(replace(side, predicate=negation(side.predicate)) if negate else side)
        texts.append(_european(pattern, sides[0], sides[1]))
    return tuple(texts)


def negation(predicate: str) -> str:
    """A predicate negated as in the released code: `is not part of`, `does not own`.

    Of a verb without -s it loses the last letter, as there: the prompts are the released ones.
    """
    first, *rest = predicate.split()
    if first in ("is", "are", "were", "was"):
        return " ".join([first, "not", *rest])
    return " ".join(["does" if first.endswith("s") else "do", "not", first[:-1], *rest])


def sentences(premise: str, hypothesis: str) -> Filled:
    """The directional English prompts, filled with whole sentences instead of triples."""
    pieces = {
        "{pal} {prem} {par}": premise,
        "{hal} {hypo} {har}": hypothesis,
        "{hal} maybe {hypo} {har}": f"maybe {hypothesis}",  # a sentence has no marked subject to put "maybe" after
    }

    def fill(pattern: str) -> str:
        for slots, words in pieces.items():
            pattern = pattern.replace(slots, words)
        return pattern

    prompts = PROMPTS["EN"]
    return Filled(tuple(map(fill, prompts.directional)), tuple(map(fill, prompts.antipatterns)))


def _european(pattern: str, premise: Triple, hypothesis: Triple) -> str:
    return pattern.format(
        pal=premise.subject,
        prem=premise.predicate,
        par=premise.object,
        hal=hypothesis.subject,
        hypo=hypothesis.predicate,
        har=hypothesis.object,
    )


def _chinese(pattern: str, premise: Triple, hypothesis: Triple) -> str:
    return pattern.format(prem=chinese_sentence(premise), hypo=chinese_sentence(hypothesis))


def chinese_sentence(triple: Triple) -> str:
    """A Chinese triple as a sentence: `·X·` is the object's place, `否·` a negation, `【介宾】` an adjunct subject."""
    subject, predicate = triple.subject, triple.predicate
    if "【介宾】" in predicate:
        # The right side is evaluated first, so it still has the subject, which moves into the object's place.
        subject, predicate = "", predicate.replace("·X·", f"·{subject}·", 1).replace("【介宾】", "")
    if predicate.startswith("否·"):
        predicate = "没有·" + predicate.removeprefix("否·")
    if "·X·" in predicate:
        return subject + predicate.replace("·X·", triple.object, 1).replace("·", "")
    return subject + predicate.replace("·", "") + triple.object


Measure = Callable[[Sequence[str]], list[float]]
"""Returns a number for each sentence: P(yes), or log-likelihood per token."""


class VisibleSides(StrEnum):
    """The sides of a pair that a scorer sees."""

    BOTH = "both"
    HYPOTHESIS = "hypothesis"
    PREMISE = "premise"

    def of(self, pair: EntailmentPair) -> EntailmentPair:
        """The pair without the side that is not shown."""
        if self is VisibleSides.HYPOTHESIS:
            return pair.hypothesis_only
        return replace(pair, hypothesis=ANYTHING) if self is VisibleSides.PREMISE else pair


class EntailmentScorer(Protocol):
    """Scores how certain it is that a premise entails a hypothesis; only the order of the scores matters."""

    @property
    def name(self) -> str:
        """The name in tables."""

    @property
    def sees(self) -> VisibleSides | None:
        """The sides of a pair that it uses; None if unknown, because the scores come from elsewhere."""

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """One finite number for each pair, in order."""


@dataclass(frozen=True, slots=True)
class FunctionScorer:
    """A scorer by a function."""

    name: str
    scores: Callable[[Sequence[EntailmentPair]], list[float]]
    sees: VisibleSides = VisibleSides.BOTH


def pattern_scores(pairs: Sequence[EntailmentPair], measure: Measure, direction: Direction) -> list[float]:
    """A model's measure of each pair's best pattern minus that of its best antipattern (S&S, section 2)."""
    return best_difference([filled(pair, direction) for pair in pairs], measure)


def best_difference(filled_pairs: Sequence[Filled], measure: Measure) -> list[float]:
    """The best pattern's measure minus the best antipattern's, for each pair. Equal sentences are measured once."""
    # With symmetric patterns, for instance, a pair and its converse give the same sentences.
    unique: dict[str, None] = {}
    for pair in filled_pairs:
        unique.update(dict.fromkeys((*pair.patterns, *pair.antipatterns)))
    sentences = list(unique)
    measured = dict(zip(sentences, measure(sentences), strict=True))

    def best(texts: Sequence[str]) -> float:
        return max(measured[text] for text in texts)

    return [best(pair.patterns) - best(pair.antipatterns) for pair in filled_pairs]


def likeness_scores(pairs: Sequence[EntailmentPair], measure: Measure, marks: tuple[str, str]) -> list[float]:
    """Similarity of an encoder's vectors for the two predicates of each pair, or for whole sentences.

    `measure` takes both sides separated by a tab; it compares the parts between `marks`.
    """
    texts = []
    for pair in pairs:
        texts.append("\t".join(_marked(side, pair, marks) for side in (pair.premise, pair.hypothesis)))
    unique = list(dict.fromkeys(texts))
    measured = dict(zip(unique, measure(unique), strict=True))
    return [measured[text] for text in texts]


def _marked(triple: Triple, pair: EntailmentPair, marks: tuple[str, str]) -> str:
    """The triple as a sentence with its predicate marked; unmarked if the premise is a whole sentence."""
    # Without marks of its own.
    blanks = dict.fromkeys(map(ord, marks), " ")
    texts = (triple.subject, triple.predicate, triple.object)
    plain = Triple(*(" ".join(text.translate(blanks).split()) for text in texts))
    if pair.premise.predicate:
        # A Chinese predicate is marked in two parts, around the object's place.
        parts = plain.predicate.split("·X·")
        plain = replace(plain, predicate="·X·".join(part.join(marks) for part in parts))
    return chinese_sentence(plain) if pair.language == "ZH" else plain.sentence


def random_scores(pairs: Sequence[EntailmentPair], seed: int) -> list[float]:
    """A number for each pair, which depends on the seed and the pair alone, not on the order of pairs."""
    return [random.Random(f"{seed} {pair.key}").random() for pair in pairs]  # noqa: S311  # no secret


def frequency_scores(pairs: Sequence[EntailmentPair], corpus: Sequence[EntailmentPair]) -> list[float]:
    """1 - 1/n if the hypothesis' predicate occurs n times in a corpus, 0 if it does not (BoOQA's baseline)."""
    counts: Counter[str] = Counter()
    for pair in corpus:
        # Premises and hypotheses alike.
        counts.update((pair.premise.key[1], pair.hypothesis.key[1]))
    return [1 - 1 / n if (n := counts[pair.hypothesis.key[1]]) else 0.0 for pair in pairs]


def prior_scores(pairs: Sequence[EntailmentPair], training: Sequence[EntailmentPair]) -> list[float]:
    """(true + 1) / (all + 2) over the training pairs with the hypothesis' predicate.

    It measures how much a data set reveals by its hypotheses alone.
    """
    labels: defaultdict[str, list[bool]] = defaultdict(list)
    for pair in training:
        labels[pair.hypothesis.key[1]].append(pair.entailed)
    # One true and one false pair are added (Laplace), so an unseen predicate scores one half.
    of_pairs = (labels.get(pair.hypothesis.key[1], []) for pair in pairs)
    return [(sum(known) + 1) / (len(known) + 2) for known in of_pairs]


@dataclass(frozen=True, slots=True)
class FileScorer:
    """Reads scores from a file of `truth score` lines, one for each pair, in the same order.

    `twin`: the file of the same pairs' scores by hypotheses alone.
    """

    path: Path
    twin: Path | None = None

    @property
    def sees(self) -> VisibleSides | None:
        """Unknown, unless scores by hypotheses alone show that the others are by both sides."""
        return None if self.twin is None else VisibleSides.BOTH

    @property
    def name(self) -> str:
        return self.path.stem

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        """The scores in the file. Raises HapaxError if its labels are not those of the pairs."""
        # Only the pairs tell which of the two files is asked for.
        is_twin = self.twin is not None and all(pair.premise == ANYTHING for pair in pairs)
        path = self.twin if self.twin is not None and is_twin else self.path
        rows = read_scores(path)
        if [truth for truth, _ in rows] != [pair.entailed for pair in pairs]:
            raise HapaxError(
                f"{path}: its {len(rows)} labels differ from those of the {len(pairs)} pairs. Name the file of "
                "pairs that was scored."
            )
        return [score for _, score in rows]
