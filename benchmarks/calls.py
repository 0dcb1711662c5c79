"""Calls and wall time of LINK's call pattern and of Hapax, on one simulated server with a latency.

    python -m benchmarks.calls --rules 10 -o calls.json
    python -m benchmarks.calls --rules 10 --judges local

LINK's released code makes one call after the other: up to 4 for each of up to 200 beams, for head and for long tail. It
asks again what another beam has asked, and keeps nothing. Its search here is Hapax's under `--compat released`, prompts
and gates included; only who asks what and when is LINK's. It runs by a simulated clock, calls x latency, because it
would take hours; a small search on the real server checks the clock.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.common import Beside, chosen_rules, machine, simulated, write_figures
from benchmarks.server import MODEL, Obedient, counts, served
from engine.beams import Origin, RuleSearch, origin_of
from engine.inquiry import Answer, Inquiry
from engine.oracle import Oracle
from engine.report import SearchSettings
from engine.search import search
from grammar.dependencies import plan
from grammar.rules import Library, Rule
from kb.records import CallRecord, Distribution
from kb.store import KnowledgeBase
from llm_oracle.backends.frequency import FrequencyLikelihood
from llm_oracle.calls import CRITIC, KNOWLEDGE, LIKELIHOOD, Journal
from llm_oracle.protocols import CriticScore, Generation, GenerationParameters, GenerationRequest, LogLikelihood, Models
from llm_oracle.registry import OpeningOptions, open_models
from llm_oracle.simulated import SimulatedModel

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD)

CHECK = SearchSettings(beam=2, calls_per_question=2, values_per_call=5, compat="released", plan="link")
"""The small search that checks the clock: some dozens of calls."""


# --- LINK's call pattern ---------------------------------------------------------------------------------------------


class OneByOne(Beside):
    """A model that is asked one request at a time, and counts them by role.

    The bias against rejected values is put into words: it goes with a request of LINK's, and the simulated model has no
    tokens that a bias could be against.
    """

    def __init__(self, models: Models, asked: Counter[str]) -> None:
        super().__init__(models)
        self._asked = asked

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        told = [replace(one, excluded_values=one.banned_tokens_of, banned_tokens_of=()) for one in requests]
        return super().generate(told, parameters)

    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        self._asked[role] += len(asked)
        return [found for one in asked for found in answer([one], *more)]


class Forgetful:
    """A journal's store that keeps nothing, so that everything is asked again."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:  # noqa: ARG002  # it knows none
        return {}

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        pass


class _Undone(Exception):  # noqa: N818  # nothing went wrong
    """Leaves a transaction without keeping what it wrote."""


@dataclass
class ReleasedPattern:
    """LINK's search of one rule after the other, and of each beam after the other, with nothing shared.

    Only the first variable's list serves both distributions. `statements` counts the complete substitutions.
    """

    library: Library
    models: Models
    settings: SearchSettings
    asked: Counter[str] = field(default_factory=Counter)
    statements: int = 0

    def search(self, rule: Rule) -> None:
        """Both distributions of a rule."""
        with KnowledgeBase() as kb:
            first: Answer | None = None
            for distribution in Distribution:
                settings = replace(self.settings, distributions=(distribution,))
                one = RuleSearch(plan(rule, self.library, settings.plan), self.library, settings, "")
                while one.step is not None:
                    inquiries = one.inquiries()
                    if one.origin is Origin.COMPUTED:
                        one.compute()
                    elif one.step_number == 0:
                        first = first or self._answer(kb, inquiries[one.beams[0]])
                        one.extend({one.beams[0]: first})
                    else:
                        one.extend({beam: self._answer(kb, inquiry) for beam, inquiry in inquiries.items()})
                    self._close(one, kb)
                    self._rank(one, kb)
                if one.step_number == len(one.plan.steps):
                    self.statements += len(one.beams)

    def _oracle(self, kb: KnowledgeBase) -> Oracle:
        """An oracle that knows of no other beam's answers."""
        model = OneByOne(self.models, self.asked)
        models = Models(model, model, model, model)
        return Oracle(kb, self.library, models, self.settings.oracle, journal=Journal(Forgetful()))

    def _answer(self, kb: KnowledgeBase, inquiry: Inquiry) -> Answer:
        with suppress(_Undone), kb.transaction():
            answer = self._oracle(kb).answers([inquiry])[inquiry]
            raise _Undone
        return answer

    def _close(self, one: RuleSearch, kb: KnowledgeBase) -> None:
        one.compare()
        start = self.settings.oracle.fact_rule.start
        for literal in one.checked():
            passed = []
            for atom in one.ground(literal):
                score = self._oracle(kb).probabilities([atom])[atom] or 0.0
                passed.append(score <= 1 - start if literal.negated else score >= start)
            one.close(literal, passed, "critic")

    def _rank(self, one: RuleSearch, kb: KnowledgeBase) -> None:
        if not one.is_ranked:
            one.advance_unranked()
            return
        texts = one.texts()
        scores: dict[str, float] = {}
        for text in texts.values():
            scores |= self._oracle(kb).log_likelihoods([text])
        one.rank(texts, scores)


def is_link_rule(rule: Rule, library: Library) -> bool:
    """Whether LINK could search the rule: a model says everything that arithmetic does not."""
    constraints = [one for one in rule.literals if not rule.is_information(one)]
    return all(origin_of(one, library) in (Origin.MODEL, Origin.COMPUTED) for one in constraints)


class Remembering(Obedient):
    """The server's model in this process; what it says of a claim or text is worked out once, and counted each time."""

    def __init__(self, model: SimulatedModel) -> None:
        super().__init__(model)
        self._score = cache(lambda claim: model.probabilities([claim])[0])
        self._likelihood = cache(lambda text: model.log_likelihoods([text])[0])

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [self._score(claim) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [self._likelihood(text) for text in texts]


# --- the two patterns, measured --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bench:
    """What is compared. `judges`: whether critic and likelihood are asked on the server, too, or in this process, as
    LINK's are; calls in this process take no time and are not counted."""

    paths: tuple[Path, ...] = ()
    rules: int = 10
    beam: int = 200
    latency: float = 0.2
    in_flight: int = 32
    judges: str = "server"
    world: int = 1

    @property
    def roles(self) -> tuple[str, ...]:
        return ROLES if self.judges == "server" else (KNOWLEDGE,)


def in_process(library: Library, bench: Bench) -> Models:
    """The server's model without the server."""
    model = Remembering(simulated(library, bench.world))
    return Models(model, model, model, FrequencyLikelihood())


def on_server(url: str, library: Library, bench: Bench, in_flight: int) -> Models:
    """The model behind the server, by the way that every OpenAI-compatible server is asked."""
    with tempfile.TemporaryDirectory() as folder:
        aliases = Path(folder) / "aliases.yaml"
        alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": in_flight}
        aliases.write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
        opened = open_models(f"openai:{MODEL}", options=OpeningOptions(library=library, aliases=aliases))
    here = in_process(library, bench)
    return opened if bench.judges == "server" else replace(here, knowledge=opened.knowledge)


def released(library: Library, rules: Sequence[Rule], bench: Bench) -> dict[str, Any]:
    """LINK's pattern by a clock that only counts: each call takes the latency, and what comes between takes nothing."""
    settings = SearchSettings(beam=bench.beam, compat="released", plan="link")
    pattern = ReleasedPattern(library, in_process(library, bench), settings)
    most = 0
    for rule in rules:
        before = pattern.asked[KNOWLEDGE]
        pattern.search(rule)
        most = max(most, pattern.asked[KNOWLEDGE] - before)
    seconds = bench.latency * sum(pattern.asked[role] for role in bench.roles)
    return {**_figures(pattern.statements, pattern.asked, bench, seconds), "most_knowledge_calls_of_a_rule": most}


def clock_check(library: Library, rule: Rule, bench: Bench) -> dict[str, Any]:
    """A small search in LINK's pattern on the real server: what it took, and what the clock says of as many calls."""
    with served(bench.paths, bench.world, bench.latency) as url:
        pattern = ReleasedPattern(library, on_server(url, library, bench, in_flight=1), CHECK)
        begun = time.perf_counter()
        pattern.search(rule)
        seconds = time.perf_counter() - begun
    calls = sum(pattern.asked[role] for role in bench.roles)
    return {"calls": calls, "seconds": round(seconds, 2), "clock_seconds": round(calls * bench.latency, 2)}


def hapax(library: Library, rules: Sequence[Rule], bench: Bench) -> dict[str, Any]:
    """Hapax's search on the real server, by the wall clock."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase(Path(folder) / "hapax.db") as kb,
        served(bench.paths, bench.world, bench.latency) as url,
    ):
        models = on_server(url, library, bench, bench.in_flight)
        begun = time.perf_counter()
        report = search(library, rules, kb, models, SearchSettings(beam=bench.beam))
        seconds = time.perf_counter() - begun
        most_at_once = counts(url)["most_at_once"]
    asked = Counter({role: one.calls for role, one in report.statistics.items()})
    return {**_figures(len(report.statements), asked, bench, seconds), "most_calls_at_once": most_at_once}


def _figures(statements: int, asked: Mapping[str, int], bench: Bench, seconds: float) -> dict[str, Any]:
    calls = {role: asked[role] for role in bench.roles}
    total = sum(calls.values())
    return {
        "statements": statements,
        "calls": calls,
        "calls_per_statement": {role: _ratio(count, statements) for role, count in calls.items()},
        "all_calls_per_statement": _ratio(total, statements),
        "seconds": round(seconds, 1),
        "seconds_per_statement": _ratio(seconds, statements),
    }


def compared(bench: Bench) -> dict[str, Any]:
    """Both patterns over the same rules, and how many times as much LINK's takes."""
    library, rules = chosen_rules(bench.paths, bench.rules)
    rules = [rule for rule in rules if is_link_rule(rule, library)]
    link, ours = released(library, rules, bench), hapax(library, rules, bench)
    ratios = {
        "knowledge_calls_per_statement": _ratio(
            link["calls_per_statement"][KNOWLEDGE], ours["calls_per_statement"][KNOWLEDGE]
        ),
        **{
            name: _ratio(link[name], ours[name])
            for name in ("all_calls_per_statement", "seconds", "seconds_per_statement")
        },
    }
    return {
        "bench": {**asdict(bench), "paths": [str(path) for path in bench.paths], "rules": len(rules)},
        "clock_check": clock_check(library, rules[0], bench),
        "link": link,
        "hapax": ours,
        "ratios": ratios,
    }


def _ratio(one: float | None, other: float | None) -> float | None:
    """None where there is nothing to divide by."""
    return None if one is None or not other else round(one / other, 3)


# --- the command -----------------------------------------------------------------------------------------------------


def told(figures: dict[str, Any]) -> Iterator[str]:
    """The figures in lines."""
    bench, check = figures["bench"], figures["clock_check"]
    where = "on the server" if bench["judges"] == "server" else "in this process, not counted"
    yield (f"{bench['rules']} rules, beam {bench['beam']}, {bench['latency']} s a call; critic and likelihood {where}")
    yield ""
    for name, one in (("LINK's pattern", figures["link"]), ("Hapax", figures["hapax"])):
        calls = ", ".join(f"{role} {count}" for role, count in one["calls"].items())
        each = ", ".join(f"{role} {count}" for role, count in one["calls_per_statement"].items())
        yield f"{name}: {one['statements']} statements; calls {calls}"
        yield f"  calls per statement: {each}; all {one['all_calls_per_statement']}"
        yield f"  {one['seconds']} s, {one['seconds_per_statement']} s per statement"
    yield f"  at most {figures['hapax']['most_calls_at_once']} calls at once"
    yield ""
    yield f"LINK's seconds are calls x {bench['latency']} s, not measured: nothing else is counted against it."
    yield (
        f"The clock, checked on the real server: {check['calls']} calls one by one took {check['seconds']} s, "
        f"{check['clock_seconds']} s by the clock."
    )
    yield ""
    yield "As a multiple of Hapax, LINK's pattern takes"
    for name, ratio in figures["ratios"].items():
        yield f"  {name.replace('_', ' ')}: {ratio}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules/library)")
    parser.add_argument("--rules", type=int, default=10, help="so many, spread evenly (default: %(default)s)")
    parser.add_argument("--beam", type=int, default=200, help="(default: %(default)s)")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds of a call (default: %(default)s)")
    parser.add_argument(
        "--in-flight", type=int, default=32, help="Hapax's calls at once, at most (default: %(default)s)"
    )
    parser.add_argument(
        "--judges",
        choices=("server", "local"),
        default="server",
        help="where critic and likelihood are asked; LINK's are local (default: %(default)s)",
    )
    parser.add_argument("--world", type=int, default=1, help="seed of the simulated world (default: %(default)s)")
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, as JSON")
    chosen = vars(parser.parse_args(arguments))
    output = chosen.pop("output")
    figures = compared(Bench(**{**chosen, "paths": tuple(chosen["paths"])}))
    figures = {"benchmark": "calls", "machine": machine(), **figures}
    print("\n".join(told(figures)))
    write_figures(output, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
