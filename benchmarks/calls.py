"""Calls and wall time of LINK's call pattern and of Hapax, on a simulated server with a latency.

    python -m benchmarks.calls --rules 10 -o calls.json
    python -m benchmarks.calls --rules 10 --judges local

LINK's released code makes one call after another: up to 4 for each of up to 200 beams, for head and for long tail. It
repeats the questions of other beams, and stores no answers. Its search here is that of Hapax under `--compat released`,
including prompts and gates; only the order and the repetition of calls are LINK's. Because it would take hours, it runs
by a simulated clock, calls x latency; a small search on the real server checks the clock.
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

from benchmarks.common import DelegatingModel, chosen_rules, machine, simulated, write_figures
from benchmarks.server import MODEL, ExclusionReader, counts, served
from hapax.engine.search.beams import RuleSearch
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer
from hapax.engine.search.job import SearchJob
from hapax.engine.search.oracle import Oracle
from hapax.engine.search.origin import Origin, origin_of
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.dependencies import plan
from hapax.grammar.rules import Library, Rule
from hapax.kb.records import CallRecord, Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    Models,
)
from hapax.llm_oracle.registry import open_models
from hapax.llm_oracle.simulated import SimulatedModel

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD)

CHECK = SearchSettings(beam=2, calls_per_question=2, values_per_call=5, compat="released", plan="link", profile="hapax")
"""The small search that checks the clock, with a few dozen calls."""


# --- LINK's call pattern ---------------------------------------------------------------------------------------------


class SequentialModel(DelegatingModel):
    """A model that is asked one request at a time, and counts the requests by role.

    LINK biases its requests against the tokens of rejected values. The simulated model has no tokens, so the values are
    excluded by name.
    """

    def __init__(self, models: Models, asked: Counter[str]) -> None:
        super().__init__(models)
        self._asked = asked

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        worded = []
        for request in requests:
            worded.append(replace(request, excluded_values=request.banned_tokens_of, banned_tokens_of=()))
        return super().generate(worded, parameters)

    def _answered(self, role: str, asked: Sequence[Any], answer: Callable[..., Sequence[Any]], *more: Any) -> list[Any]:
        self._asked[role] += len(asked)
        return [found for request in asked for found in answer([request], *more)]


class EmptyCallStore:
    """A journal store that keeps nothing, so that every question is asked again."""

    def calls(self, request_ids: Sequence[str]) -> Mapping[str, CallRecord]:  # noqa: ARG002  # it knows none
        return {}

    def record_calls(self, calls: Sequence[CallRecord]) -> None:
        pass


class _RollBack(Exception):  # noqa: N818  # nothing went wrong
    """Leaves a transaction without committing it."""


@dataclass
class ReleasedPattern:
    """LINK's search, rule by rule and beam by beam, with nothing shared but the list of the first variable.

    `statements` counts the complete substitutions.
    """

    library: Library
    models: Models
    settings: SearchSettings
    asked: Counter[str] = field(default_factory=Counter)
    statements: int = 0

    def search(self, rule: Rule) -> None:
        """Search both distributions of a rule."""
        with KnowledgeBase() as kb:
            first: QuestionAnswer | None = None
            for distribution in Distribution:
                settings = replace(self.settings, distributions=(distribution,))
                search = RuleSearch(plan(rule, self.library, settings.plan), self.library, settings, "")
                while search.step is not None:
                    inquiries = search.inquiries()
                    if search.origin is Origin.COMPUTED:
                        search.compute()
                    elif search.step_number == 0:
                        first = first or self._answer(kb, inquiries[search.beams[0]])
                        search.extend({search.beams[0]: first})
                    else:
                        search.extend({beam: self._answer(kb, inquiry) for beam, inquiry in inquiries.items()})
                    self._close(search, kb)
                    self._rank(search, kb)
                if search.step_number == len(search.plan.steps):
                    self.statements += len(search.beams)

    def _oracle(self, kb: KnowledgeBase) -> Oracle:
        """A new oracle, which does not know the answers of other beams."""
        model = SequentialModel(self.models, self.asked)
        models = Models(model, model, model, model)
        return Oracle(kb, self.library, models, self.settings.oracle, journal=Journal(EmptyCallStore()))

    def _answer(self, kb: KnowledgeBase, inquiry: Inquiry) -> QuestionAnswer:
        with suppress(_RollBack), kb.transaction():
            answer = self._oracle(kb).answers([inquiry])[inquiry]
            raise _RollBack
        return answer

    def _close(self, search: RuleSearch, kb: KnowledgeBase) -> None:
        search.compare()
        start = self.settings.oracle.truth_threshold
        for literal in search.checked():
            passed = []
            for atom in search.ground(literal):
                score = self._oracle(kb).probabilities([atom])[atom] or 0.0
                passed.append(score <= 1 - start if literal.negated else score >= start)
            search.close(literal, passed, "critic")

    def _rank(self, search: RuleSearch, kb: KnowledgeBase) -> None:
        if not search.is_ranked:
            search.advance_unranked()
            return
        texts = search.texts()
        scores: dict[str, float] = {}
        for text in texts.values():  # one sentence each, because the rules are LINK's
            scores |= self._oracle(kb).log_likelihoods([text])
        search.rank(texts, scores)


def is_link_rule(rule: Rule, library: Library) -> bool:
    """True if LINK could search the rule: a model answers each literal that arithmetic does not decide."""
    constraints = [literal for literal in rule.literals if not rule.is_information(literal)]
    return all(origin_of(literal, library) in (Origin.MODEL, Origin.COMPUTED) for literal in constraints)


class CachingModel(ExclusionReader):
    """The server's model in this process. A score is computed once for each claim or text."""

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
class CallBenchmark:
    """Settings of the comparison.

    `judges`: critic and likelihood on the server (`server`) or, like LINK's, in this process (`local`), where calls
    take no time and are not counted.
    """

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


def in_process(library: Library, bench: CallBenchmark) -> Models:
    """The server's model in this process, without the server."""
    model = CachingModel(simulated(library, bench.world))
    return Models(model, model, model, FrequencyLikelihood())


def on_server(url: str, library: Library, bench: CallBenchmark, in_flight: int) -> Models:
    """The model on the server, through the client for OpenAI-compatible servers."""
    with tempfile.TemporaryDirectory() as folder:
        aliases = Path(folder) / "aliases.yaml"
        alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": in_flight}
        aliases.write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
        opened = open_models(f"openai:{MODEL}", library=library, aliases=aliases)
    here = in_process(library, bench)
    return opened if bench.judges == "server" else replace(here, knowledge=opened.knowledge)


def released(library: Library, rules: Sequence[Rule], bench: CallBenchmark) -> dict[str, Any]:
    """LINK's pattern by the simulated clock: a call takes the latency, and nothing else takes any time."""
    settings = SearchSettings(beam=bench.beam, compat="released", plan="link", profile="hapax")
    pattern = ReleasedPattern(library, in_process(library, bench), settings)
    most = 0
    for rule in rules:
        before = pattern.asked[KNOWLEDGE]
        pattern.search(rule)
        most = max(most, pattern.asked[KNOWLEDGE] - before)
    seconds = bench.latency * sum(pattern.asked[role] for role in bench.roles)
    return {**_figures(pattern.statements, pattern.asked, bench, seconds), "most_knowledge_calls_of_a_rule": most}


def clock_check(library: Library, rule: Rule, bench: CallBenchmark) -> dict[str, Any]:
    """The time of a small search in LINK's pattern on the real server, and that by the simulated clock."""
    with served(bench.paths, bench.world, bench.latency) as url:
        pattern = ReleasedPattern(library, on_server(url, library, bench, in_flight=1), CHECK)
        begun = time.perf_counter()
        pattern.search(rule)
        seconds = time.perf_counter() - begun
    calls = sum(pattern.asked[role] for role in bench.roles)
    return {"calls": calls, "seconds": round(seconds, 2), "clock_seconds": round(calls * bench.latency, 2)}


def hapax(library: Library, rules: Sequence[Rule], bench: CallBenchmark) -> dict[str, Any]:
    """Hapax's search on the real server, by the wall clock."""
    with (
        tempfile.TemporaryDirectory() as folder,
        KnowledgeBase(Path(folder) / "hapax.db") as kb,
        served(bench.paths, bench.world, bench.latency) as url,
    ):
        models = on_server(url, library, bench, bench.in_flight)
        begun = time.perf_counter()
        report = search(SearchJob(library, rules, kb, models, SearchSettings(beam=bench.beam)))
        seconds = time.perf_counter() - begun
        most_at_once = counts(url)["most_at_once"]
    asked = Counter({role: statistics.calls for role, statistics in report.statistics.items()})
    return {**_figures(len(report.statements), asked, bench, seconds), "most_calls_at_once": most_at_once}


def _figures(statements: int, asked: Mapping[str, int], bench: CallBenchmark, seconds: float) -> dict[str, Any]:
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


def compared(bench: CallBenchmark) -> dict[str, Any]:
    """The figures of both patterns over the same rules, and the ratios of LINK's figures to those of Hapax."""
    library, rules = chosen_rules(bench.paths, bench.rules)
    rules = [rule for rule in rules if is_link_rule(rule, library)]
    link, ours = released(library, rules, bench), hapax(library, rules, bench)
    link_calls, our_calls = link["calls_per_statement"], ours["calls_per_statement"]
    ratios = {"knowledge_calls_per_statement": _ratio(link_calls[KNOWLEDGE], our_calls[KNOWLEDGE])}
    for name in ("all_calls_per_statement", "seconds", "seconds_per_statement"):
        ratios[name] = _ratio(link[name], ours[name])
    return {
        "bench": {**asdict(bench), "paths": [str(path) for path in bench.paths], "rules": len(rules)},
        "clock_check": clock_check(library, rules[0], bench),
        "link": link,
        "hapax": ours,
        "ratios": ratios,
    }


def _ratio(dividend: float | None, divisor: float | None) -> float | None:
    """The rounded ratio; None if it is undefined."""
    return None if dividend is None or not divisor else round(dividend / divisor, 3)


# --- the command -----------------------------------------------------------------------------------------------------


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as lines of text."""
    bench, check = figures["bench"], figures["clock_check"]
    where = "on the server" if bench["judges"] == "server" else "in this process, not counted"
    yield (f"{bench['rules']} rules, beam {bench['beam']}, {bench['latency']} s a call; critic and likelihood {where}")
    yield ""
    for name, pattern in (("LINK's pattern", figures["link"]), ("Hapax", figures["hapax"])):
        calls = ", ".join(f"{role} {count}" for role, count in pattern["calls"].items())
        per_statement = ", ".join(f"{role} {count}" for role, count in pattern["calls_per_statement"].items())
        yield f"{name}: {pattern['statements']} statements; calls {calls}"
        yield f"  calls per statement: {per_statement}; all {pattern['all_calls_per_statement']}"
        yield f"  {pattern['seconds']} s, {pattern['seconds_per_statement']} s per statement"
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
    """Run the command line."""
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
    figures = compared(CallBenchmark(**{**chosen, "paths": tuple(chosen["paths"])}))
    figures = {"benchmark": "calls", "machine": machine(), **figures}
    print("\n".join(lines(figures)))
    write_figures(output, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
