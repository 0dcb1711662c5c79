"""The prompts of Schmitt and Schütze (2021): patterns that express an entailment, antipatterns that deny one.

They equal the released ones byte for byte, misspellings included. English and German prompts take the parts of a
triple, Chinese ones whole sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
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
