"""Fit the maps from the P(yes) of the shipped critic `smollm2-critic` to a probability: `python -m tools.critic`.

They go into its card. Claims in the words of the card's predicates are mapped by facts of the atlas that were kept out
of training, all others by claims of subjects that nobody trained on.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from hapax.evaluation.calibration.fitting import LabelledScore, logistic
from hapax.evaluation.shared.lazy import np
from hapax.grammar.parsing.parser import parse_rules
from hapax.grammar.terms import Atom, Constant
from hapax.llm_oracle.backends.adapters import read_adapter
from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.loading import load_model
from hapax.llm_oracle.backends.trained_critic import (
    ADAPTER,
    CARD,
    FOLDER,
    CriticCard,
    LogisticMap,
    TrainedCritic,
)
from hapax.llm_oracle.backends.weights import converted
from hapax.llm_oracle.embedded.atlas import AtlasFact, load_atlas
from hapax.llm_oracle.questions.prompts import fact_claim
from tools.embedded.corpus import Corpus

HELD_OUT_KEYS = 10
"""One key in this many, by a hash of its name, is kept out of training."""
MAPPED = 10
"""Most facts of a predicate by which the map is fitted."""
SUBJECTS = Path(__file__).parent / "critic_claims"
"""Claims of subjects that nobody trained on: those for development, and those that are held out."""
UNKNOWN_SHARE = 0.35
"""Share of the development claims, those nearest to one half, of which the critic says that it does not know them."""


Claim = tuple[str, bool, str]
"""A predicate, whether the claim is true, and its text."""


def write_maps(folder: Path) -> None:
    """Fit both maps for the critic of the folder, and write them into its card."""
    path = folder / CARD
    content = json.loads(path.read_text(encoding="utf-8"))
    model = converted(smollm2_file())
    loaded = load_model(model.folder, name="smollm2-critic", revision=model.revision)
    # Without its card the critic judges all claims by its own P(yes).
    critic = TrainedCritic(loaded, read_adapter(folder / ADAPTER), CriticCard((), content["bar"]))
    judged = {name for name, entry in content["predicates"].items() if entry["judged"]}
    inside = [claim for claim in atlas_claims() if claim[0] in judged]
    maps = {"inside": fitted(critic, inside, 0.0), "outside": fitted(critic, subject_claims(), UNKNOWN_SHARE)}
    content["maps"] = {name: astuple(found) for name, found in maps.items()}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def atlas_claims() -> list[Claim]:
    """Facts that were kept out of training, each with a falsehood that was, too."""
    rng, atlas = random.Random(16), load_atlas()  # noqa: S311  claims, not secrets
    corpus = Corpus(atlas)
    # By their place in the alphabet alone, so that nobody chose them.
    unseen = frozenset(sorted(atlas.relations)[3::7])
    kept_out: dict[str, list[AtlasFact]] = defaultdict(list)
    for fact in atlas.facts:
        key = fact.arguments[atlas.relations[fact.predicate].key]
        # Unlike `hash`, a checksum is the same on all machines and in all runs.
        if fact.predicate in unseen or zlib.crc32(key.casefold().encode()) % HELD_OUT_KEYS == 0:
            kept_out[fact.predicate].append(fact)
    claims: list[Claim] = []
    for predicate, facts in kept_out.items():
        for fact in rng.sample(facts, min(MAPPED, len(facts))):
            wrong = corpus.wrong_fact(fact, rng, held_out=True)
            if wrong is not None:
                claims += [(predicate, True, corpus.claim(fact)), (predicate, False, corpus.claim(wrong))]
    return claims


def subject_claims() -> list[Claim]:
    """The claims of the subjects for development."""
    library = parse_rules((SUBJECTS / "subjects.rules").read_text(encoding="utf-8"))
    claims: list[Claim] = []
    for line in (SUBJECTS / "development.tsv").read_text(encoding="utf-8").splitlines():
        truth, name, *values = line.split("\t")
        claims.append((name, truth == "true", fact_claim(Atom(name, tuple(map(Constant, values))), library)))
    return claims


def fitted(critic: TrainedCritic, claims: Sequence[Claim], unknown: float) -> LogisticMap:
    """The logistic regression on the logits, with no opinion on this share of the claims."""
    scores = critic.probabilities([text for _, _, text in claims])
    labels = []
    for (predicate, is_true, _), score in zip(claims, scores, strict=True):
        labels.append(LabelledScore(score.probability, is_true, predicate, predicate))
    found = logistic(labels, np.array([label.is_true for label in labels], dtype=int))
    distances = sorted(abs(found.probability(label.score) - 0.5) for label in labels)
    return LogisticMap(found.slope, found.intercept, distances[int(unknown * len(distances))] if unknown else 0.0)


if __name__ == "__main__":
    write_maps(FOLDER)
