"""Loads everything that the critic is trained and measured on."""

from __future__ import annotations

import random
from dataclasses import dataclass

from hapax.llm_oracle.embedded.atlas import load_atlas
from tools.critic.claims import KnownClaim, free_sentences, measured_claims, outside_claims
from tools.critic.relations import SOURCES, Form, TrainingRelation, all_relations
from tools.critic.split import ClaimPart, SplitRelations, split
from tools.critic.wordnet import Wordnet
from tools.embedded.wording import load_wording

SHARES = dict(zip(SOURCES, (0.15, 0.035, 0.005, 0.77, 0.04), strict=True))
"""Share of each source in the training claims."""
MEASURED_SEED = 16
OUTSIDE, FREE = "test: hand-written outside facts", "test: hand-written sentences of other predicates"


@dataclass(frozen=True)
class CriticData:
    """The split relations, and the rule library's words for the atlas's predicates, affirmative and negated."""

    relations: SplitRelations
    templates: dict[str, tuple[str, ...]]

    @property
    def words(self) -> dict[str, Form]:
        """The affirmative forms."""
        return {name: Form(affirmative) for name, (affirmative, *_) in self.templates.items()}

    def measured(self, part: ClaimPart, per_relation: int) -> list[KnownClaim]:
        """Claims of a part that is not for training; the same every time."""
        rng = random.Random(MEASURED_SEED)  # noqa: S311  # claims, not secrets
        pools = {(pool.name, pool.source): pool for pool in self.relations.parts[ClaimPart.TRAIN]}
        claims: list[KnownClaim] = []
        for relation in self.relations.parts[part]:
            pool: TrainingRelation = pools.get((relation.name, relation.source), relation)
            claims += measured_claims(relation, pool, per_relation, rng)
        return claims

    def handwritten(self) -> dict[str, list[KnownClaim]]:
        """The hand-written claims by the name of their test."""
        return {OUTSIDE: outside_claims(self.words), FREE: free_sentences()}


def load_data(wordnet: Wordnet | None = None) -> CriticData:
    """Read atlas and references, and add WordNet if it is given. Raises HapaxError if one is missing."""
    atlas = load_atlas()
    wording = load_wording(atlas)
    relations = all_relations(atlas, wording, wordnet)
    templates: dict[str, tuple[str, ...]] = {}
    for signature in wording.library.signatures:
        if signature.name in atlas.relations and signature.templates is not None:
            own = (signature.templates.affirmative, signature.templates.negated)
            templates[signature.name] = tuple(template for template in own if template is not None)
    return CriticData(split(relations, atlas), templates)
