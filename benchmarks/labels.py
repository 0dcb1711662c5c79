"""Labels that `votes next` saves against an even draw, in simulated worlds whose truth is known.

    python -m benchmarks.labels

Each world has facts of which most are true and a critic with an AUC of .8, whose scores are calibrated. Labels are
drawn evenly, or as `votes next` does. Printed: labels until a promise of 95 % with confidence 90 % is made for the
first time, how often it was broken, facts that 10,000 labels of both draws certify, and the width of the interval of
the share of true facts.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
from scipy import stats

from hapax.engine.certificates import JudgedScore, LabelDraw, Promise, choose_threshold
from hapax.engine.judging_draw import cut_of, draw_weights
from hapax.evaluation.shared.estimates import mended_share

STEPS = (50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1300, 1600, 2000, 3000, 5000, 10_000)


def world(rng: Any, size: int, auc: float, true_share: float) -> tuple[Any, Any]:
    """Calibrated probabilities and truths of facts."""
    truths = rng.random(size) < true_share
    distance = math.sqrt(2) * stats.norm.ppf(auc)
    signal = rng.normal(size=size) + distance * truths
    odds = true_share / (1 - true_share) * np.exp(distance * signal - distance**2 / 2)
    return odds / (1 + odds), truths


def first_promise(scores: Any, truths: Any, draws: Any, weights: Any) -> tuple[int, bool, int, float]:
    """Labels of the first promise, whether it is broken, and what all labels certify, with the interval's width."""
    promise, pool = Promise(), scores.tolist()
    order = np.argsort(draws / weights)
    first, broken = STEPS[-1] + 1, False
    for count in STEPS:
        reach = float((draws / weights)[order[count]])
        judged = [JudgedScore(pool[place], bool(truths[place]), float(draws[place])) for place in order[:count]]
        choice = choose_threshold(judged, pool, promise, draw=LabelDraw(reach, weights.tolist()))
        if choice.threshold is not None and first > STEPS[-1]:
            first, broken = count, bool(truths[scores >= choice.threshold].mean() < promise.precision)
    return first, broken, choice.accepted, _width(scores, truths, draws, weights, 500)


def _width(scores: Any, truths: Any, draws: Any, weights: Any, count: int) -> float:
    order = np.argsort(draws / weights)
    reach = float((draws / weights)[order[count]])
    rows = [
        (float(scores[place]), bool(truths[place]), min(1.0, reach * float(weights[place]))) for place in order[:count]
    ]
    share = mended_share(scores.tolist(), rows)
    return share.high - share.low


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--facts", type=int, default=40_000)
    parser.add_argument("--auc", type=float, default=0.8)
    parser.add_argument("--true", type=float, default=0.7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    found: dict[str, list[tuple[int, bool, int, float]]] = {"even": [], "votes next": []}
    for _ in range(options.worlds):
        scores, truths = world(rng, options.facts, options.auc, options.true)
        draws = rng.random(options.facts)
        weights, _ = draw_weights(scores.tolist(), cut_of(scores.tolist(), Promise().risk))
        found["even"].append(first_promise(scores, truths, draws, np.ones(options.facts)))
        found["votes next"].append(first_promise(scores, truths, draws, np.array(weights)))
    for name, rows in found.items():
        first, broken, accepted, width = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        print(
            f"{name}: first promise after {np.median(first):.0f} labels (median; {np.quantile(first, 0.1):.0f} to "
            f"{np.quantile(first, 0.9):.0f}), broken in {broken.mean():.0%} of the worlds; {np.mean(accepted):.0f} "
            f"facts certified by {STEPS[-1]:,} labels; interval of the share of true facts by 500 labels "
            f"{100 * np.mean(width):.1f} points wide"
        )


if __name__ == "__main__":
    main()
