"""Changed copies of pairs, on which a scorer that reasons from premise to hypothesis behaves in a known way.

After McKenna et al. (2023), "Sources of Hallucination by Large Language Models on Inference Tasks": a random premise
entails nothing, and other entities of the same types change nothing.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from hapax.evaluation.entailment.pairs import UNPARSED, EntailmentPair, Triple, TypedTriple

_T = TypeVar("_T")

SHARE = 0.25
"""Share of the arguments of a type that are called rare, and that are called frequent."""

Frequency = Callable[[Sequence[str]], Sequence[float]]
"""The frequency of each text, such as its log-likelihood by a word list; only the order counts."""

Entities = Mapping[str, Sequence[str]]
"""Names by type; the type `""` has the names of arguments without a type."""


def random_premises(pairs: Sequence[EntailmentPair], typed: bool, seed: int) -> list[EntailmentPair | None]:
    """Each pair with the premise's predicate drawn from another pair, and its own arguments.

    `typed`: from pairs with the same types. None where there is no other predicate, or no type. The new
    predicate neither entails the hypothesis nor is entailed by it, as far as the set says.
    """
    by_types: defaultdict[object, list[Triple]] = defaultdict(list)
    related: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        by_types[_types(pair.premise) if typed else None].append(pair.premise)
        # Predicates are related whatever their label says: a false pair may still have a true converse.
        premise_key, hypothesis_key = pair.premise.key[1], pair.hypothesis.key[1]
        related[premise_key].add(hypothesis_key)
        related[hypothesis_key].add(premise_key)
    perturbed: list[EntailmentPair | None] = []
    for pair in pairs:
        types = _types(pair.premise)
        hypothesis = pair.hypothesis.key[1]
        excluded = related[hypothesis] | {hypothesis}
        candidates = [] if typed and types is None else by_types[types if typed else None]
        # Seeded by pair, so that a pair has the same premise whatever other pairs are measured.
        draw = random.Random(f"{seed} {pair.key}")  # noqa: S311  # no secret
        # A triple for each predicate, sorted, so that the draw does not depend on the order of lines.
        fitting = sorted({triple.predicate: triple for triple in candidates if triple.key[1] not in excluded}.items())
        if not fitting or UNPARSED in (pair.premise, pair.hypothesis):
            perturbed.append(None)
            continue
        _, drawn = draw.choice(fitting)
        premise = replace(pair.premise, predicate=drawn.predicate)
        if isinstance(premise, TypedTriple) and isinstance(drawn, TypedTriple):
            premise = replace(premise, relation=drawn.relation)
        perturbed.append(replace(pair, premise=premise))
    return perturbed


def swapped(pairs: Sequence[EntailmentPair], entities: Entities, seed: int) -> list[EntailmentPair | None]:
    """Each pair with other entities, the same in premise and hypothesis; None where a type has no two names."""
    perturbed: list[EntailmentPair | None] = []
    for pair in pairs:
        draw = random.Random(f"{seed} {pair.key}")  # noqa: S311  # no secret
        names: dict[str, str] = {}
        for text, kind in _arguments(pair):
            # Neither the old name nor one that is in use: two arguments stay two.
            taken = {text.casefold(), *(name.casefold() for name in names.values())}
            candidates = [name for name in entities.get(kind, ()) if name.casefold() not in taken]
            if candidates and text.casefold() not in names:
                names[text.casefold()] = draw.choice(candidates)
        # With a new name for one argument alone, old and new entities would be mixed.
        complete = bool(names) and all(text.casefold() in names for text, _ in _arguments(pair))
        changed = replace(pair, premise=_renamed(pair.premise, names), hypothesis=_renamed(pair.hypothesis, names))
        perturbed.append(changed if complete else None)
    return perturbed


def rare_and_frequent(pairs: Sequence[EntailmentPair], frequency: Frequency) -> tuple[Entities, Entities]:
    """The rarest and the most frequent quarter of the set's own arguments, by type."""
    by_type: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for pair in pairs:
        for text, kind in _arguments(pair):
            by_type[kind][text] = None
    rare: dict[str, Sequence[str]] = {}
    frequent: dict[str, Sequence[str]] = {}
    for kind, texts in by_type.items():
        names = list(texts)
        known = dict(zip(names, frequency(names), strict=True))
        ordered = sorted(names, key=lambda name: (known[name], name))
        # Two names at least, for pairs with two arguments of this type.
        size = max(2, round(SHARE * len(ordered)))
        rare[kind], frequent[kind] = ordered[:size], ordered[-size:]
    return rare, frequent


def _arguments(pair: EntailmentPair) -> Iterator[tuple[str, str]]:
    """The arguments of a pair with their types. A sentence in the place of a triple has none that can be told."""
    for triple in (pair.hypothesis, pair.premise):
        if not triple.predicate:
            continue
        types = triple.types if isinstance(triple, TypedTriple) else ("", "")
        yield from ((text, kind) for text, kind in zip((triple.subject, triple.object), types, strict=True) if text)


def _types(triple: Triple) -> tuple[str, str] | None:
    return triple.types if isinstance(triple, TypedTriple) else None


def _renamed(triple: Triple, names: Mapping[str, str]) -> Triple:
    subject, object_ = (names.get(text.casefold(), text) for text in (triple.subject, triple.object))
    return replace(triple, subject=subject, object=object_)


# --- pairs whose answers must agree with those of the set -------------------------------------------------------------


def chain_completions(
    pairs: Sequence[EntailmentPair], most: int, seed: int
) -> list[tuple[EntailmentPair, EntailmentPair]]:
    """For pairs P => Q and Q => R over other arguments: Q => R and P => R with those of the first pair.

    Up to `most` chains are drawn. Their labels are False, and mean nothing.
    """
    by_premise: defaultdict[str, list[EntailmentPair]] = defaultdict(list)
    for pair in pairs:
        if pair.premise.predicate and pair.hypothesis.predicate:
            by_premise[pair.premise.key[1]].append(pair)
    completions: dict[object, tuple[EntailmentPair, EntailmentPair]] = {}
    for pair in pairs:
        # Pairs with the same arguments are in the set already.
        for second in by_premise.get(pair.hypothesis.key[1], ()):
            end = _transferred(second, pair.hypothesis)
            # A chain that ends at its premise or its middle says nothing new.
            if end is not None and end.key not in (pair.premise.key, pair.hypothesis.key):
                steps = replace(pair, premise=pair.hypothesis, hypothesis=end), replace(pair, hypothesis=end)
                completions.setdefault((pair.key, end.key), steps)
    return _drawn(list(completions.values()), most, f"{seed} chains")


def _transferred(pair: EntailmentPair, premise: Triple) -> Triple | None:
    """The hypothesis of a pair with the arguments of another premise; None if it has an argument of its own."""
    # Arguments of the pair's premise -> the arguments that take their places.
    places = {pair.premise.key[0]: premise.subject, pair.premise.key[2]: premise.object}
    subject, _, object_ = pair.hypothesis.key
    if subject not in places or object_ not in places:
        return None
    return Triple(places[subject], pair.hypothesis.predicate, places[object_])


_NEGATED_BY_NOT = frozenset(
    ["is", "are", "was", "were", "can", "could", "will", "would", "may", "might", "must", "should"]
)


def negated_hypotheses(pairs: Sequence[EntailmentPair], most: int, seed: int) -> list[EntailmentPair]:
    """Up to `most` pairs with the hypothesis negated, of English ones whose predicate begins with an auxiliary."""
    negated: dict[object, EntailmentPair] = {}
    for pair in pairs:
        first, *rest = pair.hypothesis.predicate.split() or [""]
        if pair.language == "EN" and first.casefold() in _NEGATED_BY_NOT and rest[:1] != ["not"]:
            hypothesis = Triple(pair.hypothesis.subject, " ".join((first, "not", *rest)), pair.hypothesis.object)
            negated.setdefault(pair.key, replace(pair, hypothesis=hypothesis, entailed=False))
    return _drawn(list(negated.values()), most, f"{seed} negations")


def _drawn(population: list[_T], most: int, seed: str) -> list[_T]:
    return population if len(population) <= most else random.Random(seed).sample(population, most)  # noqa: S311  # no secret
