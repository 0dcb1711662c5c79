"""LevyHolt's four sub-groups, their pairings, and splits that no converse crosses (section 2)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import combinations

from evaluation.entailment.pairs import EntailmentPair


class SubGroup(StrEnum):
    """Named as in the paper."""

    DIR_TRUE = "DirTrue"
    DIR_FALSE = "DirFalse"
    PARAPHRASES = "Paraphrases"
    UNRELATED = "Unrelated"


PAIRINGS: tuple[tuple[SubGroup, SubGroup], ...] = tuple(combinations(SubGroup, 2))
"""All six pairs of sub-groups."""

PAPER_SIZES: Mapping[str, Mapping[SubGroup, int]] = {
    split: dict(zip(SubGroup, sizes, strict=True))
    for split, sizes in {
        "train": (251, 251, 615, 3255),
        "dev": (64, 64, 155, 831),
        "test": (892, 892, 1939, 9198),
    }.items()
}
"""The sizes that the paper prints. Which converse pairs went where was drawn at random there."""

_TRUE_GROUPS = (SubGroup.DIR_TRUE, SubGroup.PARAPHRASES)


def sub_groups(pairs: Sequence[EntailmentPair]) -> list[SubGroup]:
    """Each pair's sub-group, in order, from its label and that of its converse among `pairs`.

    A true pair is directional where a converse is false, a false pair where a converse is true. A true pair without
    converse counts as a paraphrase and a false one as unrelated, which gives the paper's counts.
    """
    labels: defaultdict[object, set[bool]] = defaultdict(set)
    for pair in pairs:
        labels[pair.key].add(pair.entailed)
    return [_sub_group(pair.entailed, labels.get(pair.converse_key, set())) for pair in pairs]


def _sub_group(entailed: bool, converse: set[bool]) -> SubGroup:
    if entailed:
        return SubGroup.DIR_TRUE if False in converse else SubGroup.PARAPHRASES
    return SubGroup.DIR_FALSE if True in converse else SubGroup.UNRELATED


def counts(pairs: Sequence[EntailmentPair]) -> dict[SubGroup, int]:
    """How many pairs each sub-group has."""
    found = sub_groups(pairs)
    return {group: found.count(group) for group in SubGroup}


def subset(pairs: Sequence[EntailmentPair], chosen: Iterable[SubGroup]) -> list[EntailmentPair]:
    """The pairs of these sub-groups, in order, labelled so that a scorer can be measured on them.

    Two sub-groups of one label are told apart instead: the directional one, or among false ones `DirFalse`, is the
    positive class, as in the release's `symposi_dirposi` and `dirnegi_symnegi`.
    """
    wanted = set(chosen)
    found = [(pair, group) for pair, group in zip(pairs, sub_groups(pairs), strict=True) if group in wanted]
    if len({group in _TRUE_GROUPS for group in wanted}) == 1:
        return [replace(pair, entailed=group in (SubGroup.DIR_TRUE, SubGroup.DIR_FALSE)) for pair, group in found]
    return [pair for pair, _ in found]


def pairing_name(pairing: tuple[SubGroup, SubGroup]) -> str:
    """`DirTrue-DirFalse`."""
    return "-".join(pairing)


def leaks(splits: Mapping[str, Sequence[EntailmentPair]]) -> int:
    """How many pairs have their converse, or themselves, in another split."""
    homes: defaultdict[object, set[str]] = defaultdict(set)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair.key].add(name)
    return sum(
        bool((homes[pair.key] | homes.get(pair.converse_key, set())) - {name})
        for name, pairs in splits.items()
        for pair in pairs
    )


def split_again(splits: Mapping[str, Sequence[EntailmentPair]], seed: int = 0) -> dict[str, list[EntailmentPair]]:
    """The splits with every pair and its converse in one of them (section 2, footnote 3).

    Where they were apart, one of their splits is drawn for all of them, weighted by how many of them each had. Drawn
    from the seed and the pair itself, so the order of lines changes nothing.
    """
    homes: defaultdict[object, list[str]] = defaultdict(list)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair_and_converse(pair)].append(name)
    chosen = {
        both: names[0] if len(set(names)) == 1 else random.Random(f"{seed} {both}").choice(sorted(names))  # noqa: S311
        for both, names in homes.items()
    }
    again: dict[str, list[EntailmentPair]] = {name: [] for name in splits}
    for pairs in splits.values():
        for pair in pairs:
            again[chosen[pair_and_converse(pair)]].append(pair)
    return again


def pair_and_converse(pair: EntailmentPair) -> tuple[object, ...]:
    """What a pair and its converse share."""
    return tuple(sorted(pair.key))
