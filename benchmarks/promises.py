"""A promise of 95 % in whole searches with a scripted critic of AUC .8, compared with the truth.

    python -m benchmarks.promises --worlds 20

Each world has a country with gems, of which most are mined there. The critic's scores are drawn so that a true fact
scores above a false one with the given AUC. A first search proposes and scores all facts; some of them, drawn evenly,
are labelled; a second search promises a precision. Printed: how often the promise was made and broken, the share of
true facts among all and among the accepted ones, and the yield (accepted true ones of all true ones) beside that of the
lowest threshold that keeps the precision, which only who knows all truths could choose.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Sequence
from statistics import NormalDist, fmean, median

import hapax
from hapax.kb.records import LABELS, FactLabel, Source
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle is_mined_in(Gem, Country): "[1] is mined in [2]" / "[1] is not mined in [2]" / "is [1] mined in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given can_buy(Person, Gem): "[1] can buy [2]" / "[1] cannot buy [2]" / "can [1] buy [2]?"
@name gems
visits(Person X, Country A) & is_mined_in(Gem B, Country A) -> can_buy(Person X, Gem B)
"""
COUNTRY, PREDICATE = "Peru", "is_mined_in"


class World:
    """Facts with truths and a critic's scores."""

    def __init__(self, seed: int, facts: int, auc: float, true_share: float) -> None:
        draw = random.Random(seed)  # noqa: S311  # a simulation, not secrets
        distance = math.sqrt(2) * NormalDist().inv_cdf(auc)
        self.truths = {f"gem {number}": draw.random() < true_share for number in range(facts)}
        self.scores = {}
        for gem, is_true in self.truths.items():
            signal = draw.gauss(distance if is_true else 0.0, 1.0)
            self.scores[gem] = 1.0 / (1.0 + math.exp(-signal))
        self.order = draw.sample(list(self.truths), facts)

    @property
    def model(self) -> ScriptedModel:
        critic = {f"{gem.capitalize()} is mined in {COUNTRY}.": score for gem, score in self.scores.items()}
        gems = list(self.truths)
        generate = {"'[A] is mined in [B]'": [COUNTRY], "'[A] is mined in Peru'": gems, "'[B] is mined in Peru'": gems}
        defaults = {"critic": 0.99, "likelihood": -10.0, "generate": [COUNTRY]}
        return ScriptedModel({"generate": generate, "critic": critic, "defaults": defaults}, "scripted/gems")

    def oracle_yield(self, precision: float) -> float:
        """The largest share of true facts above a threshold that keeps the precision."""
        best = true = 0
        for count, gem in enumerate(sorted(self.scores, key=lambda gem: -self.scores[gem]), start=1):
            true += self.truths[gem]
            if true >= precision * count:
                best = true
        return best / sum(self.truths.values())


def searched(world: World, labels: int, promise: hapax.Promise) -> list[str] | None:
    """The gems that the search with the promise accepts; None if nothing can be promised."""
    rules, model = hapax.parse_rules(RULES), world.model
    models = hapax.Models(model, model, model, model)
    settings = hapax.SearchSettings(values_per_call=len(world.truths), calls_per_question=1)
    with hapax.KnowledgeBase() as kb:
        hapax.search(rules, kb, models, settings)
        kb.add(
            LABELS, (FactLabel(PREDICATE, (gem, COUNTRY), world.truths[gem], "people") for gem in world.order[:labels])
        )
        try:
            hapax.search(
                rules,
                kb,
                models,
                hapax.SearchSettings(values_per_call=len(world.truths), calls_per_question=1, promise=promise),
            )
        except hapax.HapaxError as refused:
            if "Nothing can be promised" not in str(refused):
                raise
            return None
        # Facts of the first search that do not reach the promise's threshold are rejected again.
        return [str(fact.arguments[0]) for fact in kb.facts(f"{PREDICATE}/2") if fact.source is Source.MODEL]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--facts", type=int, default=2000)
    parser.add_argument("--labels", type=int, default=400)
    parser.add_argument("--auc", type=float, default=0.8)
    parser.add_argument("--true-share", type=float, default=0.7)
    parser.add_argument("--precision", type=float, default=0.95)
    parser.add_argument("--confidence", type=float, default=0.9)
    options = parser.parse_args(arguments)
    promise = hapax.Promise(options.precision, options.confidence)
    precisions, yields, best = [], [], []
    for seed in range(options.worlds):
        world = World(seed, options.facts, options.auc, options.true_share)
        accepted = searched(world, options.labels, promise)
        if accepted is None:
            continue
        true = sum(world.truths[gem] for gem in accepted)
        precisions.append(true / len(accepted))
        yields.append(true / sum(world.truths.values()))
        best.append(world.oracle_yield(options.precision))
    broken = sum(precision < options.precision for precision in precisions)
    print(f"{options.worlds} worlds, AUC {options.auc}, {options.labels} of {options.facts} facts labelled")
    print(f"promised in {len(precisions)}, broken in {broken}")
    if precisions:
        print(f"true among the accepted: mean {fmean(precisions):.3f}, least {min(precisions):.3f}")
        print(f"yield: median {median(yields):.3f}, of the best threshold {median(best):.3f}")


if __name__ == "__main__":
    main()
