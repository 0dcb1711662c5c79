"""LevyHolt's four sub-groups, their pairings, and splits that keep a pair with its converse (section 2)."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import combinations

from hapax.evaluation.entailment.pairs import EntailmentPair


class SubGroup(StrEnum):
    """The sub-groups, named as in the paper."""

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
"""The sizes that the paper prints. Its authors, too, drew at random which split a pair and its converse went to."""

RELEASED_PAIRINGS: Mapping[str, tuple[SubGroup, SubGroup]] = {
    "symposi_dirposi": (SubGroup.DIR_TRUE, SubGroup.PARAPHRASES),
    "dirnegi_symnegi": (SubGroup.DIR_FALSE, SubGroup.UNRELATED),
}
"""Pairings whose files in the release are not those of the sub-groups, by name there. The first group is true."""

RELEASED_SIZES: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "test": {"symposi_dirposi": (924, 1716), "dirnegi_symnegi": (918, 9172)}
}
"""Numbers of true and of false lines in the release's files, by split."""

_TRUE_GROUPS = (SubGroup.DIR_TRUE, SubGroup.PARAPHRASES)


def sub_groups(pairs: Sequence[EntailmentPair]) -> list[SubGroup]:
    """Each pair's sub-group, in order, from its label and that of its converse among `pairs`.

    A true pair is directional if a converse is false, a false pair if a converse is true.
    """
    # A set, because a pair may be repeated with another label.
    labels: defaultdict[object, set[bool]] = defaultdict(set)
    for pair in pairs:
        labels[pair.key].add(pair.entailed)
    groups = []
    for pair in pairs:
        # Without a converse a true pair is a paraphrase and a false one unrelated: this gives the paper's counts.
        converse = labels.get(pair.converse_key, set())
        if pair.entailed:
            groups.append(SubGroup.DIR_TRUE if False in converse else SubGroup.PARAPHRASES)
        else:
            groups.append(SubGroup.DIR_FALSE if True in converse else SubGroup.UNRELATED)
    return groups


def released_sub_groups(pairs: Sequence[EntailmentPair]) -> list[SubGroup | None]:
    """Each pair's sub-group as the release's two pairings of equally labelled pairs have it; None: in neither.

    A pair whose converse is missing takes the label of a pair with the same two predicates in reverse order, whatever
    its arguments; a true pair without such a pair is left out. Of several labels the last one counts. No page
    describes this: it is inferred from the sizes of the release's files, whose lines over train and dev it reproduces
    (1,018 and 4,401). Which lines are the positive ones cannot be told from these.
    """
    exact: dict[object, bool] = {}
    by_predicates: dict[tuple[str, str], bool] = {}
    for pair in pairs:
        exact[pair.key] = pair.entailed
        by_predicates[pair.premise.key[1], pair.hypothesis.key[1]] = pair.entailed
    groups: list[SubGroup | None] = []
    for pair in pairs:
        reversed_predicates = (pair.hypothesis.key[1], pair.premise.key[1])
        converse = exact.get(pair.converse_key, by_predicates.get(reversed_predicates))
        if pair.entailed:
            known = {True: SubGroup.PARAPHRASES, False: SubGroup.DIR_TRUE}
            groups.append(None if converse is None else known[converse])
        else:
            groups.append(SubGroup.DIR_FALSE if converse else SubGroup.UNRELATED)
    return groups


def released_subset(pairs: Sequence[EntailmentPair], name: str) -> list[EntailmentPair]:
    """The pairs of a pairing of `RELEASED_PAIRINGS`, in order, with the directional ones as the true ones."""
    directional, _ = chosen = RELEASED_PAIRINGS[name]
    members = []
    for pair, group in zip(pairs, released_sub_groups(pairs), strict=True):
        if group in chosen:
            members.append(replace(pair, entailed=group is directional))
    return members


def counts(pairs: Sequence[EntailmentPair]) -> dict[SubGroup, int]:
    """Number of pairs in each sub-group."""
    groups = sub_groups(pairs)
    return {group: groups.count(group) for group in SubGroup}


def subset(pairs: Sequence[EntailmentPair], chosen: Iterable[SubGroup]) -> list[EntailmentPair]:
    """The pairs of these sub-groups, in order, labelled so that a scorer can be measured on them.

    If both sub-groups have the same label, the directional one (`DirTrue` or `DirFalse`) becomes the positive class,
    as in the release's `symposi_dirposi` and `dirnegi_symnegi`.
    """
    groups = set(chosen)
    members = [(pair, group) for pair, group in zip(pairs, sub_groups(pairs), strict=True) if group in groups]
    # Both groups have one label: the directional pairs are to be told from the symmetric ones.
    if len({group in _TRUE_GROUPS for group in groups}) == 1:
        return [replace(pair, entailed=group in (SubGroup.DIR_TRUE, SubGroup.DIR_FALSE)) for pair, group in members]
    return [pair for pair, _ in members]


def pairing_name(pairing: tuple[SubGroup, SubGroup]) -> str:
    """The name of a pairing, such as `DirTrue-DirFalse`."""
    return "-".join(pairing)


def leaks(splits: Mapping[str, Sequence[EntailmentPair]]) -> int:
    """Number of pairs whose converse, or a duplicate, is in another split."""
    # By wording: a duplicate in another split leaks as much as a converse.
    homes: defaultdict[object, set[str]] = defaultdict(set)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair.key].add(name)
    count = 0
    for name, pairs in splits.items():
        for pair in pairs:
            elsewhere = (homes[pair.key] | homes.get(pair.converse_key, set())) - {name}
            count += bool(elsewhere)
    return count


def split_again(splits: Mapping[str, Sequence[EntailmentPair]], seed: int = 0) -> dict[str, list[EntailmentPair]]:
    """Split the pairs again, with every pair in the same split as its converse (section 2, footnote 3).

    If they were in different splits, one of these is drawn for all of them, weighted by how many of them each had.
    """
    homes: defaultdict[object, list[str]] = defaultdict(list)
    for name, pairs in splits.items():
        for pair in pairs:
            homes[pair_and_converse(pair)].append(name)
    chosen: dict[object, str] = {}
    for both, names in homes.items():
        # Seeded by the pair itself, and drawn from sorted names, so that the order of lines changes nothing.
        draw = random.Random(f"{seed} {both}")  # noqa: S311  # no secret
        chosen[both] = names[0] if len(set(names)) == 1 else draw.choice(sorted(names))
    again: dict[str, list[EntailmentPair]] = {name: [] for name in splits}
    for pairs in splits.values():
        for pair in pairs:
            again[chosen[pair_and_converse(pair)]].append(pair)
    return again


def pair_and_converse(pair: EntailmentPair) -> tuple[object, ...]:
    """A key that a pair has in common with its converse."""
    return tuple(sorted(pair.key))


def directional_couples(pairs: Sequence[EntailmentPair]) -> list[tuple[int, int]]:
    """Numbers of each true pair and its false converse; a couple counts once, however often its pairs are repeated."""
    # By wording and label, so that a true pair finds a false converse only.
    numbers = {(pair.key, pair.entailed): number for number, pair in enumerate(pairs)}
    couples: dict[object, tuple[int, int]] = {}
    for number, pair in enumerate(pairs):
        converse = numbers.get((pair.converse_key, False))
        if pair.entailed and converse is not None:
            couples.setdefault(pair_and_converse(pair), (number, converse))
    return list(couples.values())
