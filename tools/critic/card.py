"""Join trained adapters, measure them and ship them: `python -m tools.critic.card ADAPTER ...`.

The claims go through the backend itself, with the adapter merged. `card.json` says of which predicates the critic has
no opinion, because it was wrong about them too often.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from hapax.evaluation.shared.estimates import auc
from hapax.llm_oracle.backends.adapters import read_adapter
from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.gguf_files import converted
from hapax.llm_oracle.backends.loading import load_model
from hapax.llm_oracle.backends.trained_critic import ADAPTER, CARD, FOLDER, CriticCard, TrainedCritic
from hapax.llm_oracle.backends.weight_hashes import write_sums
from hapax.llm_oracle.embedded.atlas import Atlas, load_atlas
from tools.critic.claims import KnownClaim, measured_claims
from tools.critic.lora import mean
from tools.critic.split import ClaimPart, SplitRelations, load_split
from tools.embedded.wording import load_wording

RANK = 19
"""The adapter of all layers then has 11.6 MB in float16."""
BAR = 0.65
"""AUC below which a predicate is not judged."""
FEWEST = 16
"""Claims from which a predicate's own AUC decides; with fewer, that of all its kind (numbers or names) does."""
PER_RELATION = 40
"""Most facts of a relation that are measured, each with a falsehood."""
MEASURED = (ClaimPart.DEV_PREDICATES, ClaimPart.TEST_ENTITIES, ClaimPart.TEST_PREDICATES)

Scored = tuple[KnownClaim, float]


def measured(critic: TrainedCritic, relations: SplitRelations) -> list[Scored]:
    """Claims that were kept out of training, with P(yes)."""
    rng = random.Random(16)  # noqa: S311  claims, not secrets
    pools = {(pool.name, pool.source): pool for pool in relations.parts[ClaimPart.TRAIN]}
    claims: list[KnownClaim] = []
    for part in MEASURED:
        for relation in relations.parts[part]:
            pool = pools.get((relation.name, relation.source), relation)
            claims += measured_claims(relation, pool, PER_RELATION, rng)
    answers = critic.probabilities([claim.sentence for claim in claims])
    return [(claim, answer.probability) for claim, answer in zip(claims, answers, strict=True)]


def predicate_entries(atlas: Atlas, rows: list[Scored]) -> dict[str, Any]:
    """The atlas's predicates with their templates and AUC, and whether they are judged.

    Predicates with the same templates are measured together: a claim does not tell which of them it is about.
    """
    templates: dict[str, list[str]] = {}
    for signature in load_wording(atlas).library.signatures:
        if signature.name in atlas.relations and signature.templates is not None:
            own = (signature.templates.affirmative, signature.templates.negated)
            templates[signature.name] = [template for template in own if template is not None]
    by_words: dict[tuple[str, ...], list[Scored]] = defaultdict(list)
    by_kind: dict[bool, list[Scored]] = defaultdict(list)
    numeric: dict[str, bool] = {}
    for claim, probability in rows:
        if claim.relation in templates:
            by_words[tuple(templates[claim.relation])].append((claim, probability))
            by_kind[claim.numeric].append((claim, probability))
            numeric[claim.relation] = claim.numeric
    entries: dict[str, Any] = {}
    for name, words in templates.items():
        claims = by_words[tuple(words)]
        area = _area(claims if len(claims) >= FEWEST else by_kind[numeric.get(name, False)])
        entries[name] = {"templates": words, "auc": area, "claims": len(claims), "judged": area >= BAR}
    return entries


def _area(rows: list[Scored]) -> float:
    truths = [probability for claim, probability in rows if claim.is_true]
    return auc(truths, [probability for claim, probability in rows if not claim.is_true])


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("adapters", type=Path, nargs="+")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where adapter and card are written")
    options = parser.parse_args()
    adapters = [read_adapter(path) for path in options.adapters]
    options.folder.mkdir(parents=True, exist_ok=True)
    claims = sum(int(adapter.metadata["claims"]) for adapter in adapters)
    metadata = {
        "base": adapters[0].metadata["base"],
        "scale": str(adapters[0].scale),
        "claims": str(claims),
        "trainings": str(len(adapters)),
    }
    save_file(mean(adapters, RANK), options.folder / ADAPTER, metadata)
    write_sums(options.folder, [ADAPTER])
    model = converted(smollm2_file())
    loaded = load_model(model.folder, name="smollm2-critic", dtype="bfloat16", revision=model.revision)
    critic = TrainedCritic(loaded, read_adapter(options.folder / ADAPTER), CriticCard((), BAR))
    rows = measured(critic, load_split())
    content = {"bar": BAR, "measured": _area(rows), "predicates": predicate_entries(load_atlas(), rows)}
    (options.folder / CARD).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
