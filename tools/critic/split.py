"""Which facts train the critic, which choose its settings, and which test it.

Kept out of training by construction:

- entities: a share of the keys, by a hash of the name, whatever relation they are keys of. Such a name is no key of a
  training fact, and no value of one either, unless it is a class, a value of `CLASS_SIZE` facts or more;
- whole predicates: every seventh of the atlas for the test and every tenth of the others for development;
- the hand-written facts outside the atlas: no training fact has an entity of theirs that the atlas does not have, and
  none of their sentences is a training claim.
"""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from hapax.llm_oracle.embedded.atlas import Atlas, load_atlas
from tools.critic.relations import ATLAS, WORDNET, TrainingRelation, all_relations
from tools.critic.wordnet import Wordnet
from tools.embedded.wording import load_wording

OUTSIDE_FACTS = Path(__file__).parents[1] / "embedded" / "outside_atlas.tsv"
CLASS_SIZE = 8
"""Facts of a relation from which a value counts as a class, such as a continent, rather than as an entity."""


class ClaimPart(StrEnum):
    """Parts of the facts."""

    TRAIN = "train"
    DEV_ENTITIES = "development: unseen entities"
    TEST_ENTITIES = "test: unseen entities"
    DEV_PREDICATES = "development: unseen predicates"
    TEST_PREDICATES = "test: unseen predicates"


ENTITY_PARTS = {0: ClaimPart.TEST_ENTITIES, 1: ClaimPart.TEST_ENTITIES, 2: ClaimPart.DEV_ENTITIES}
"""Parts by a hash of the key, modulo `HASH_PARTS`; all others train."""
HASH_PARTS = 20


@dataclass(frozen=True)
class SplitRelations:
    """The relations of each part. A relation of an entity part has only the keys that are held out."""

    parts: dict[ClaimPart, tuple[TrainingRelation, ...]]
    test_predicates: frozenset[str]
    dev_predicates: frozenset[str]


@lru_cache(1_000_000)
def folded(name: str) -> str:
    """A name as the split compares it: without case, articles and the ending of a plural."""
    words = name.casefold().strip()
    for article in ("the ", "an ", "a "):
        words = words.removeprefix(article)
    return words.removesuffix("s")


def entity_part(name: str) -> ClaimPart:
    """The part of a key."""
    # Unlike `hash`, a checksum is the same on all machines and in all runs.
    return ENTITY_PARTS.get(zlib.crc32(folded(name).encode()) % HASH_PARTS, ClaimPart.TRAIN)


def held_out_predicates(atlas: Atlas) -> tuple[frozenset[str], frozenset[str]]:
    """The predicates of the test and those of development, chosen by their place in the alphabet alone."""
    names = sorted(atlas.relations)
    test = names[3::7]
    return frozenset(test), frozenset([name for name in names if name not in test][4::10])


def outside_entities(atlas: Atlas) -> frozenset[str]:
    """Entities of the hand-written facts that are no arguments of an atlas fact, folded."""
    known = {folded(argument) for fact in atlas.facts for argument in fact.arguments}
    with OUTSIDE_FACTS.open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 4]
    # Whether it is true, the predicate, and its two arguments.
    return frozenset(folded(argument) for row in rows for argument in row[2:]) - known


def split(relations: Sequence[TrainingRelation], atlas: Atlas) -> SplitRelations:
    """Divide the relations. Only the atlas's own relations are measured as unseen predicates."""
    test, dev = held_out_predicates(atlas)
    outside = outside_entities(atlas)
    about_held_out = {folded(key) for relation in relations if relation.name in test | dev for key in relation.values}
    parts: dict[ClaimPart, list[TrainingRelation]] = {part: [] for part in ClaimPart}
    for relation in relations:
        if relation.name in test or relation.name in dev:
            if relation.source == ATLAS:
                parts[ClaimPart.TEST_PREDICATES if relation.name in test else ClaimPart.DEV_PREDICATES].append(relation)
            continue
        counts = Counter(value for _, value in relation.pairs)
        classes = {value for value, count in counts.items() if count >= CLASS_SIZE}
        # What WordNet says of an entity, or by means of it, may be what a held-out predicate asks of it.
        shut = about_held_out if relation.source == WORDNET else frozenset[str]()
        for part in (ClaimPart.TRAIN, ClaimPart.DEV_ENTITIES, ClaimPart.TEST_ENTITIES):
            chosen = {
                key: kept
                for key, values in relation.values.items()
                if entity_part(key) is part
                and folded(key) not in shut
                and (kept := _kept(values, part, classes, outside, shut))
                and (part is not ClaimPart.TRAIN or folded(key) not in outside)
            }
            if chosen:
                parts[part].append(_with_all_truths(relation, chosen))
    return SplitRelations({part: tuple(found) for part, found in parts.items()}, test, dev)


def _kept(
    values: Iterable[str],
    part: ClaimPart,
    classes: Collection[str],
    outside: Collection[str],
    barred: Collection[str],
) -> tuple[str, ...]:
    """The values of a key that its part may use. `barred`: those that may train as classes alone."""
    if part is not ClaimPart.TRAIN:
        return tuple(values)
    return tuple(
        value
        for value in values
        if folded(value) not in outside
        and (value in classes or (folded(value) not in barred and entity_part(value) is ClaimPart.TRAIN))
    )


def _with_all_truths(relation: TrainingRelation, chosen: dict[str, tuple[str, ...]]) -> TrainingRelation:
    """The relation with these facts. What it no longer states must still not pass for a falsehood."""
    listed = {key: relation.listed.get(key, frozenset()) | frozenset(relation.values[key]) for key in chosen}
    return replace(relation, values=chosen, listed=listed)


def load_split() -> SplitRelations:
    """Read atlas, references and WordNet, and divide their relations. Raises HapaxError if one is missing."""
    atlas = load_atlas()
    return split(all_relations(atlas, load_wording(atlas), Wordnet()), atlas)
