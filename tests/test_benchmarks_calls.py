"""The benchmark of calls: LINK's pattern asks again and again, Hapax once; the simulated server answers both."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_engine_search import ALLERGY, OLDER, RECURSIVE, VOCABULARY

from benchmarks.calls import (
    KNOWLEDGE,
    ROLES,
    CachingModel,
    CallBenchmark,
    ReleasedPattern,
    in_process,
    is_link_rule,
    main,
    on_server,
)
from benchmarks.common import simulated
from benchmarks.server import ExclusionReader, SimulatedServer, counts
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.llm_oracle.answers import parse_values
from hapax.llm_oracle.prompts import exclusion_clause, knowledge_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Models

pytestmark = pytest.mark.slow

LIBRARY = parse_library([("test.rules", "\n".join((VOCABULARY, ALLERGY, OLDER)))])
PROMPT = knowledge_prompt("A", "[A] is one type of [B]", "Ingredient", 20)
BENCH = CallBenchmark(beam=3, latency=0.0)


class Counting(ExclusionReader):
    """The simulated model, which remembers the prompts that it was asked."""

    def __init__(self, library: Library) -> None:
        super().__init__(simulated(library, 1))
        self.prompts: list[str] = []

    def generate(self, requests, parameters):
        self.prompts += [request.prompt for request in requests]
        return super().generate(requests, parameters)


@pytest.fixture
def server() -> Iterator[SimulatedServer]:
    """The simulated server in a thread, without latency."""
    with SimulatedServer(ExclusionReader(simulated(LIBRARY, 1)), 0.0) as simulated_server:
        threading.Thread(target=simulated_server.serve_forever, args=(0.01,), daemon=True).start()
        yield simulated_server
        simulated_server.shutdown()


def values(text: str) -> set[object]:
    return {value.value for value in parse_values(text, "A", "Ingredient") if value.rejected is None}


def test_links_pattern_asks_the_same_question_again() -> None:
    """Beams that share a value ask their question each for itself, and head and long tail do, too."""
    model = Counting(LIBRARY)
    pattern = ReleasedPattern(
        LIBRARY,
        Models(model, model, model, model),
        SearchSettings(beam=6, compat="released", profile="hapax", plan="link"),
    )

    pattern.search(LIBRARY.rule("allergy"))

    assert len(model.prompts) == pattern.asked[KNOWLEDGE] > len(set(model.prompts))
    assert pattern.statements > 0


def test_links_pattern_keeps_its_bound() -> None:
    """At most 4 calls for the first variable, then 4 for each beam, other variable and distribution."""
    beam, rule = 5, LIBRARY.rule("allergy")
    pattern = ReleasedPattern(
        LIBRARY, in_process(LIBRARY, BENCH), SearchSettings(beam=beam, compat="released", profile="hapax", plan="link")
    )

    pattern.search(rule)

    assert 0 < pattern.asked[KNOWLEDGE] <= 4 + beam * 4 * (len(rule.searched) - 1) * 2
    assert pattern.statements <= 2 * beam


def test_a_rule_about_years_is_searched_too() -> None:
    """Functional values are asked for twice, comparisons are computed and cost nothing."""
    pattern = ReleasedPattern(
        LIBRARY, in_process(LIBRARY, BENCH), SearchSettings(beam=8, compat="released", profile="hapax", plan="link")
    )

    pattern.search(LIBRARY.rule("older_tool"))

    assert pattern.asked[KNOWLEDGE] > 2


def test_what_link_could_not_search_is_left_out() -> None:
    """Predicates that follow from other rules had no place in LINK."""
    library = parse_library([("test.rules", "\n".join((VOCABULARY, ALLERGY, RECURSIVE)))])

    assert is_link_rule(library.rule("allergy"), library)
    assert not is_link_rule(library.rule("repair"), library)


def test_the_server_is_the_simulated_model(server: SimulatedServer) -> None:
    """The critic's and the ranker's scores come through the server as the model gives them."""
    model = simulated(LIBRARY, 1)
    served = on_server(server.url, LIBRARY, BENCH, in_flight=4)
    claims = ["Bafe is one type of bodo.", "Bafe is an ingredient."]
    texts = ["Bafe is one type of bodo and so is dumu."]

    scores = [score.probability for score in served.critic.probabilities(claims)]
    (likelihood,) = served.likelihood.log_likelihoods(texts)

    assert scores == pytest.approx([score.probability for score in model.probabilities(claims)])
    assert likelihood.total == pytest.approx(model.log_likelihoods(texts)[0].total)
    assert counts(server.url)["asked"] == server.asked > 3


@pytest.mark.parametrize("in_words", [True, False])
def test_the_server_heeds_what_it_must_not_say(server: SimulatedServer, in_words: bool) -> None:
    """Values that the prompt names, or that the caller excludes, do not come again."""
    served = on_server(server.url, LIBRARY, BENCH, in_flight=4).knowledge
    (first,) = served.generate([GenerationRequest(PROMPT)], GenerationParameters())
    given = tuple(sorted(map(str, values(first.text))))
    again = GenerationRequest(PROMPT + exclusion_clause(given)) if in_words else GenerationRequest(PROMPT, given)

    (second,) = served.generate([again], GenerationParameters())

    assert given
    assert values(second.text).isdisjoint(given)


def test_a_page_that_the_server_lacks_is_not_found(server: SimulatedServer) -> None:
    """Other endpoints get 404, as from any server that does not have them."""
    assert server.answer("/tokenize", {"prompt": "x"})[0] == 404
    assert server.answer("/v1/completions", {"prompt": "x"})[0] == 404


def test_what_is_remembered_is_what_the_model_says() -> None:
    """The model that counts without a server gives the model's own scores."""
    model, remembering = simulated(LIBRARY, 1), CachingModel(simulated(LIBRARY, 1))
    claims = ["Bafe is one type of bodo."] * 2

    assert remembering.probabilities(claims) == model.probabilities(claims)
    assert remembering.log_likelihoods(claims) == model.log_likelihoods(claims)


@pytest.mark.parametrize("judges", ["server", "local"])
def test_both_patterns_are_compared(tmp_path: Path, judges: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints both patterns' figures and their ratios, and writes them as JSON."""
    rules, output = tmp_path / "test.rules", tmp_path / "figures.json"
    rules.write_text("\n".join((VOCABULARY, ALLERGY)), "utf-8")
    options = ["--beam", "3", "--latency", "0.001", "--judges", judges]

    assert main([str(rules), *options, "-o", str(output)]) == 0

    figures = json.loads(output.read_text("utf-8"))
    link, hapax = figures["link"], figures["hapax"]
    assert link["seconds"] == round(0.001 * sum(link["calls"].values()), 1)
    assert set(link["calls"]) == set(hapax["calls"]) == ({KNOWLEDGE} if judges == "local" else set(ROLES))
    assert figures["ratios"]["all_calls_per_statement"] == pytest.approx(
        link["all_calls_per_statement"] / hapax["all_calls_per_statement"], abs=0.002
    )
    assert figures["clock_check"]["calls"] > 0
    assert "As a multiple of Hapax, LINK's pattern takes" in capsys.readouterr().out
