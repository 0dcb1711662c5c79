"""Measure promises and probabilities against simulated truth.

python -m tools.simulated_truth promises
python -m tools.simulated_truth labels
python -m tools.simulated_truth probabilities

`promises` draws worlds of scores and truths, and counts in how many of them a promise of 95 % is possible, given and
broken. `labels` counts the labels until the first promise, in the order of `votes next` and in even draws.
`probabilities` searches, calibrates and derives in worlds whose errors share a reply, a thing or nothing, and compares
the probabilities of statements with the truth. It needs the extras `calibration` and `probability`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import hapax
from hapax.engine.certificates import JudgedScore, LabelDraw, Promise, choose_threshold
from hapax.engine.gates.score_maps import REPLIES
from hapax.engine.judgements import cut_of, draw_weights
from hapax.evaluation.calibration.fitting import LabelledScore, measures
from hapax.evaluation.shared.estimates import percent, share
from hapax.evaluation.shared.lazy import np, scipy
from hapax.kb.judgement_records import CALIBRATIONS
from hapax.kb.store import KnowledgeBase

PROMISE = Promise(0.95, 0.9)
WORLDS = {"promises": 2000, "labels": 20, "probabilities": 20}
STEP, MOST = 10, 400
"""Labels that are given out at once, and the most for which a first promise is waited for."""


# --- promises --------------------------------------------------------------------------------------------------------


def scored(rng: Any, size: int, auc: float, true_share: float) -> tuple[Any, Any]:
    """Probabilities, calibrated by the true share, and truths of values that a critic of this AUC judges."""
    truths = rng.random(size) < true_share
    distance = np.sqrt(2) * scipy.stats.norm.ppf(auc)
    log_ratio = distance * (rng.normal(size=size) + distance * truths) - distance**2 / 2
    odds = true_share / (1 - true_share) * np.exp(log_ratio)
    return odds / (1 + odds), truths


def promises(worlds: int, seed: int) -> None:
    """Print in how many worlds a promise is possible, given and broken, by even draws of 60 to 700 labels."""
    rng = np.random.default_rng(seed)
    possible, given, broken = [], [], []
    for _ in range(worlds):
        size = int(rng.integers(800, 2001))
        scores, truths = scored(rng, size, rng.uniform(0.5, 0.95), rng.uniform(0.5, 0.98))
        if rng.random() < 0.5:  # ties
            scores = scores.round(2)
        drawn = rng.choice(size, int(rng.integers(60, 701)), replace=False)
        judged = [JudgedScore(float(scores[place]), bool(truths[place])) for place in drawn]
        threshold = choose_threshold(judged, scores.tolist(), PROMISE).threshold
        # By the truth, of the thresholds that accept a twenty-fifth of the values or more.
        cuts = np.unique(scores)
        possible.append(any(truths[scores >= cut].mean() >= 0.95 for cut in cuts if (scores >= cut).mean() >= 0.04))
        given.append(threshold is not None)
        broken.append(threshold is not None and truths[scores >= threshold].mean() < 0.95)
    print(f"{worlds} worlds, seed {seed}: a promise is possible in {sum(possible)}, given in {sum(given)}")
    print(f"broken in {sum(broken)}: {percent(share(broken))} % of all worlds")


def labels(worlds: int, seed: int) -> None:
    """Print the median number of labels until the first promise, by `votes next` and by even draws."""
    rng = np.random.default_rng(seed)
    counts: dict[str, list[int]] = {"votes next": [], "even draw": []}
    for _ in range(worlds):
        scores, truths = scored(rng, 1500, 0.9, 0.7)
        weights, _ = draw_weights(scores.tolist(), cut_of(scores.tolist(), PROMISE.risk))
        counts["votes next"].append(first_promise(rng, scores, truths, weights))
        counts["even draw"].append(first_promise(rng, scores, truths, [1.0] * len(scores)))
    for draw, found in counts.items():
        within = percent(share([count <= 120 for count in found]))
        print(f"{draw}: first promise after {median(found):g} labels, with 120 in {within} %")


def first_promise(rng: Any, scores: Any, truths: Any, weights: Sequence[float]) -> int:
    """Labels until a promise is given, in the order of a draw with these weights; above `MOST` if it is not."""
    draws = rng.random(len(scores))
    ratios = draws / np.array(weights)
    order = np.argsort(ratios)
    for count in range(STEP, min(MOST, len(scores) - 1) + 1, STEP):
        judged = [JudgedScore(float(scores[n]), bool(truths[n]), float(draws[n])) for n in order[:count]]
        draw = LabelDraw(float(ratios[order[count]]), weights)
        if choose_threshold(judged, scores.tolist(), PROMISE, draw=draw).threshold is not None:
            return count
    return MOST + STEP


# --- probabilities ---------------------------------------------------------------------------------------------------

KINDS = ("reply", "thing", "nothing")
"""What the errors of a world share."""
LANDS = tuple(f"land {number}" for number in range(100))
PREDICATES = {"flows_through": ("River", "flows through"), "is_eaten_in": ("Dish", "is eaten in")}
THINGS = 70
"""Values of each predicate."""
LABELS = 150
RULES = """\
given land(Land): "[1] is a land".
given lives_in(Person, Land): "[1] lives in [2]".
oracle flows_through(River, Land): "[1] flows through [2]" / "[1] does not flow through [2]" / "?".
oracle is_eaten_in(Dish, Land): "[1] is eaten in [2]" / "[1] is not eaten in [2]" / "?".
@name both
land(Land A) & lives_in(Person X, Land A) & flows_through(River B, Land A) & is_eaten_in(Dish C, Land A)
  -> can_have(Person X, Dish C, River B).
@name reply
land(Land A) & lives_in(Person X, Land A) & flows_through(River B, Land A) & flows_through(River C, Land A) & B \\= C
  -> can_compare(Person X, River B, River C).
@name thing
land(Land A) & lives_in(Person X, Land A) & flows_through(River B, Land A) & flows_through(River B, Land C) & A \\= C
  -> can_drift_to(Person X, River B, Land C).
"""


@dataclass(frozen=True, slots=True)
class SaidFact:
    """A fact that the model of a world says, whether it is true, and the critic's P(yes)."""

    predicate: str
    value: str
    land: str
    is_true: bool
    score: float

    @property
    def atom(self) -> tuple[str, ...]:
        return self.predicate, self.value, self.land

    @property
    def claim(self) -> str:
        return f"{self.value.capitalize()} {PREDICATES[self.predicate][1]} {self.land}."


def said_facts(rng: Any, kind: str) -> Iterator[SaidFact]:
    """Facts with errors of a kind. Who errs about a thing, or in a reply, says much that is false and sounds right."""
    for predicate, (noun, _) in PREDICATES.items():
        strange = rng.random(THINGS) < 0.3
        for land in LANDS:
            is_ignorant = kind == "reply" and rng.random() < 0.3
            count = int(rng.integers(5, 9) if is_ignorant else rng.integers(2, 6))
            for number in rng.choice(THINGS, count, replace=False):
                errs = is_ignorant or (kind == "thing" and strange[number])
                is_true = bool(rng.random() < (0.25 if errs else 0.75 if kind == "nothing" else 0.92))
                log_odds = 0.6 + 1.5 * (1 if is_true else -1) + (1.2 if errs else 0.0) + rng.normal(0, 1.2)
                score = float(1 / (1 + np.exp(-log_odds)))
                yield SaidFact(predicate, f"{noun.lower()} {number}", land, is_true, score)


def probabilities(worlds: int, seed: int) -> None:
    """Print the ECE of statements' probabilities, pooled and by world: raw, by facts' own scores, and as Hapax does."""
    found: dict[str, list[LabelledScore]] = {"raw scores": [], "own scores": [], "calibrated": []}
    single: dict[str, list[float]] = {name: [] for name in found}
    for number in range(worlds):
        rng = np.random.default_rng([seed, number])
        kind = KINDS[number % len(KINDS)]
        facts = list(said_facts(rng, kind))
        with TemporaryDirectory() as folder:
            rows = judged_statements(Path(folder), facts, rng)
        for name, pairs in rows.items():
            own = [LabelledScore(value, is_true, "", f"world {number}") for value, is_true in pairs]
            single[name].append(measures(own, [label.score for label in own]).ece.value)
            found[name] += own
            print(f"{kind} {number}, {name}: {single[name][-1]:.3f}", file=sys.stderr, flush=True)
    print(f"{worlds} worlds, seed {seed}: {len(found['calibrated'])} statements without labelled facts")
    for name, own in found.items():
        pooled = measures(own, [label.score for label in own]).ece
        print(f"{name}: ECE {pooled}, in one world {fmean(single[name]):.3f}")


def judged_statements(folder: Path, facts: Sequence[SaidFact], rng: Any) -> dict[str, list[tuple[float, bool]]]:
    """Probability and truth of the statements that rest on no labelled fact, by the way to their probabilities."""
    generate: dict[str, list[str]] = {}
    for fact in facts:
        generate.setdefault(f"{PREDICATES[fact.predicate][1]} {fact.land}", []).append(fact.value)
    script = {"generate": generate, "critic": {fact.claim: fact.score for fact in facts}}
    defaults = {"generate": [], "critic": 0.9, "likelihood": -10}
    (folder / "script.json").write_text(json.dumps({**script, "defaults": defaults}))
    chosen = [facts[place] for place in rng.choice(len(facts), LABELS, replace=False)]
    lines = ["\t".join((str(fact.is_true).lower(), *fact.atom)) for fact in chosen]
    (folder / "labels.tsv").write_text("\n".join(lines))
    truths = {fact.atom: fact.is_true for fact in facts}
    labelled = {fact.atom for fact in chosen}
    rules = hapax.parse_rules(RULES + "".join(f'fact land("{land}").\n' for land in LANDS))
    model = f"scripted:{folder / 'script.json'}"
    accepting = hapax.SearchSettings(beam=None, fact_threshold=hapax.CriticRule.parse("0.5"))
    with KnowledgeBase() as kb:
        hapax.search(rules, kb, hapax.open_models(model), accepting, only="both")
        rows = {"raw scores": derived(rules, kb, truths, labelled)}
        hapax.calibrate(rules, kb, hapax.CalibrationOptions(model, (str(folder / "labels.tsv"),)))
        rows["calibrated"] = derived(rules, kb, truths, labelled)
        for record in kb.calibrations():
            own = {name: value for name, value in record.parameters.items() if name != REPLIES}
            kb.add(CALIBRATIONS, [replace(record, parameters=own)])
        rows["own scores"] = derived(rules, kb, truths, labelled)
    return rows


def derived(
    rules: Any, kb: KnowledgeBase, truths: Mapping[tuple[str, ...], bool], labelled: Set[tuple[str, ...]]
) -> list[tuple[float, bool]]:
    """Probability and truth of each derived statement that rests on no labelled fact."""
    derivation = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions())
    found = []
    for statement, probability in zip(derivation.statements, derivation.probabilities, strict=True):
        steps = statement.record.proof["steps"]
        atoms = [(step["goal"]["predicate"], *step["goal"]["arguments"]) for step in steps if step["by"] == "fact"]
        if labelled.isdisjoint(atoms):
            found.append((probability.lower, all(truths[atom] for atom in atoms)))
    return found


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulated_truth", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("what", choices=WORLDS)
    parser.add_argument("--worlds", type=int, help=f"default: {WORLDS}")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    measurement = {"promises": promises, "labels": labels, "probabilities": probabilities}[options.what]
    measurement(options.worlds or WORLDS[options.what], options.seed)


if __name__ == "__main__":
    main()
