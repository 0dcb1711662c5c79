"""Forecast of a run against what the run takes, by role, in simulated worlds.

    python -m benchmarks.forecast -o forecast.json
    python -m benchmarks.forecast --set development --worlds 1 2 3

The figures of the forecast (`grammar.dependencies.Yields`) were measured on the development rules alone. The
evaluation rules are spread evenly over the library, and none of them is a development rule.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.common import FACTS, LIBRARY, machine, simulated, write_figures
from hapax.engine.search.estimate import estimate_run
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.parser import load_library
from hapax.grammar.rules import Library, Rule
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, LIKELIHOOD, Models

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD)
EVALUATED = 6
DEVELOPED = 24


@dataclass(frozen=True, slots=True)
class ForecastBenchmark:
    """Settings of the comparison. `facts`: mean number of right values of a question in the world.

    `by_names`: word frequency ranks, by names, instead of the simulated model by whole sentences.
    `drawn`: seed by which the rules are drawn at random from those outside the development set; None: the rule set.
    """

    rule_set: str = "evaluation"
    drawn: int | None = None
    worlds: tuple[int, ...] = (1,)
    beam: int = 200
    facts: float = FACTS
    by_names: bool = False


def rules_of(library: Library, rule_set: str) -> list[Rule]:
    """The rules of a set: spread evenly over the library, and apart from those of the other set."""
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    evaluated = [place * len(rules) // EVALUATED for place in range(EVALUATED)]
    if rule_set == "evaluation":
        return [rules[place] for place in evaluated]
    others = [rule for place, rule in enumerate(rules) if place not in evaluated]
    # From the middle of each part, so that neighbours of evaluated rules in the file are left out, too.
    return [others[(2 * place + 1) * len(others) // (2 * DEVELOPED)] for place in range(DEVELOPED)]


def drawn_rules(library: Library, seed: int) -> list[Rule]:
    """Rules drawn at random from those that are not in the development set."""
    developed = {rule.name for rule in rules_of(library, "development")}
    rules = [rule for rule in library.rules if not library.is_definition(rule) and rule.name not in developed]
    return Random(seed).sample(rules, EVALUATED)  # noqa: S311 (not for secrets)


def compared(bench: ForecastBenchmark) -> dict[str, Any]:
    """Expected and actual calls of a run over all rules of the set, by world and role."""
    library = load_library([LIBRARY])
    rules = rules_of(library, bench.rule_set) if bench.drawn is None else drawn_rules(library, bench.drawn)
    worlds = []
    for seed in bench.worlds:
        model = simulated(library, seed, bench.facts)
        frequency = FrequencyLikelihood()
        models = Models(model, model, *((frequency, model) if bench.by_names else (model, frequency)))
        settings = SearchSettings(beam=bench.beam)
        with KnowledgeBase() as kb:
            estimate = estimate_run(SearchJob(library, rules, kb, models, settings))
            spent = search(SearchJob(library, rules, kb, models, settings)).statistics
        roles = {}
        for role in ROLES:
            expected, actual = estimate.roles[role].calls.expected, spent[role].calls
            ratio = round(expected / actual, 3) if actual else None
            roles[role] = {"expected": expected, "actual": actual, "ratio": ratio}
        worlds.append({"world": seed, "roles": roles})
    return {"bench": asdict(bench), "rules": [rule.name for rule in rules], "worlds": worlds}


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as lines of text."""
    bench = figures["bench"]
    origin = f"of the {bench['rule_set']} set" if bench["drawn"] is None else f"drawn by seed {bench['drawn']}"
    yield f"{len(figures['rules'])} rules {origin}, beam {bench['beam']}"
    for world in figures["worlds"]:
        for role, count in world["roles"].items():
            yield (
                f"  world {world['world']} {role:>10}: expected {count['expected']:>6}, actual {count['actual']:>6}, "
                f"ratio {count['ratio']}"
            )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forecast", description=(__doc__ or "").partition("\n")[0]
    )
    sets = ("evaluation", "development")
    parser.add_argument("--set", dest="rule_set", choices=sets, default=sets[0], help="(default: %(default)s)")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="rules drawn at random in place of a set")
    parser.add_argument("--worlds", type=int, nargs="+", default=[1], help="seeds of simulated worlds (default: 1)")
    parser.add_argument("--beam", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--facts", type=float, default=FACTS, help="right values of a question (default: %(default)s)")
    parser.add_argument("--by-names", action="store_true", help="word frequency ranks, by the names alone")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, as JSON")
    chosen = vars(parser.parse_args(arguments))
    output = chosen.pop("output")
    figures = compared(ForecastBenchmark(**{**chosen, "worlds": tuple(chosen["worlds"])}))
    figures = {"benchmark": "forecast", "machine": machine(), **figures}
    print("\n".join(lines(figures)))
    write_figures(output, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
