"""`--compat released` is LINK's released code: by traces of it where they are at hand, by traces of our own elsewhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from released_replay import (
    equal_questions,
    read_questions,
    read_rules,
    read_searches,
    replayed_outcome,
    search_differences,
)

from hapax.engine.questions.released import TRIES, first_calls
from hapax.engine.search.ranking import released_penalty
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.parsing.parser import parse_library
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
)
from hapax.llm_oracle.reading.link_replies import render_values

TRACES = Path(__file__).parents[5] / "shared" / "data" / "link" / "released_traces"
needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the traces of LINK's released code are not there")


# --- traces of the released code -------------------------------------------------------------------------------------


@needs_traces
def test_traced_questions_end_as_in_the_release() -> None:
    """Accepted values, final threshold and number of calls are those of the trace, for every kind of question."""
    counts = equal_questions(read_questions(TRACES))

    assert {kind: equal for kind, (equal, _) in counts.items()} == {kind: total for kind, (_, total) in counts.items()}
    assert sum(total for _, total in counts.values()) == 2000


@needs_traces
@pytest.mark.parametrize("name", sorted(path.stem for path in TRACES.glob("search_*.json")))
def test_traced_searches_come_out_as_in_the_release(name: str) -> None:
    """Head and long tail have the same rows; prompts, critic questions and ranked texts are the same, byte for byte."""
    assert search_differences(read_searches(TRACES)[name], read_rules(TRACES)) == []


@needs_traces
def test_a_trace_that_differs_is_noticed() -> None:
    """A trace with another score of a text, or another question, does not agree with the search."""
    trace, rules = read_searches(TRACES)["search_rule7_nl_mixed"], read_rules(TRACES)
    likeliest = max(trace["likelihood"], key=trace["likelihood"].__getitem__)
    scores = {**trace["likelihood"], likeliest: -99.0}
    questions = {question: score for question, score in trace["critic"].items() if "Statement:" in question}

    assert search_differences({**trace, "likelihood": scores}, rules)
    assert "no answer to" in search_differences({**trace, "critic": questions}, rules)[0]


# --- traces of our own -----------------------------------------------------------------------------------------------


def outcome(
    *calls: Sequence[tuple[float, float]], facts: Sequence[float] = (), types: Sequence[float] = ()
) -> tuple[list[str], float, int]:
    """Accepted values, threshold and calls of a question; a value is (P of its type, P of the fact)."""
    values = [
        [{"value": f"v{n}{m}", "p_type": scores[0], "p_fact": scores[1]} for m, scores in enumerate(call)]
        for n, call in enumerate(calls)
    ]
    found = replayed_outcome({"calls": values, "prior_p_fact": facts, "prior_p_type": types})
    return sorted(found.accepted), found.threshold, found.calls


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        # 0.75 // 0.05 is 14 in floats, so 0.75 reaches 0.7; there is no floor above 0.
        ([[(0.9, 0.75)]], (["v00"], 0.7, 1)),
        ([[(0.9, 0.74)]], (["v00"], 0.7, 1)),
        ([[(0.9, 0.85)]], (["v00"], 0.8, 1)),
        ([[(0.9, 0.86)]], (["v00"], 0.85, 1)),
        ([[(0.9, 0.04)]], (["v00"], 0.0, 1)),
        # A better call raises the threshold of facts, and earlier values fall out.
        ([[(0.9, 0.62), (0.9, 0.61)], [(0.9, 0.72)]], (["v10"], 0.7, 2)),
        # That of types falls within a call to what the call has, down to 0.65, and a later call does not change that.
        ([[(0.7, 0.9), (0.68, 0.9)], [(0.95, 0.9), (0.84, 0.9)]], (["v00", "v10"], 0.85, 2)),
        ([[(0.65, 0.9)]], (["v00"], 0.85, 1)),
        ([[(0.64, 0.9)]], ([], 0.85, 1)),
        # A value whose fact is false can keep the threshold of types high.
        ([[(0.9, 0.1), (0.7, 0.9)]], ([], 0.85, 1)),
        # Two calls in a row count as empty, although each of the two gates accepts something in one of them.
        ([[(0.5, 0.9)], [(0.9, 0.1)], [(0.9, 0.9)]], ([], 0.85, 2)),
        ([[(0.5, 0.9), (0.9, 0.1)], [(0.9, 0.1)], [(0.9, 0.9)]], (["v20"], 0.85, 3)),
    ],
)
def test_thresholds_are_those_of_the_release(
    calls: list[list[tuple[float, float]]], expected: tuple[list[str], float, int]
) -> None:
    """Accepted values, threshold of facts, and calls, from the probabilities of type and fact of each call's values."""
    assert outcome(*calls) == expected


def test_both_scores_are_averaged_along_the_beam() -> None:
    """Types are averaged as facts are."""
    assert outcome([(0.6, 0.9)], types=(0.95, 0.95)) == (["v00"], 0.85, 1)
    assert outcome([(0.9, 0.63)], facts=(0.9, 0.9)) == (["v00"], 0.8, 1)
    assert outcome([(0.7, 0.9)], types=(0.4,)) == ([], 0.85, 1)


def test_the_penalty_is_a_mean_with_personx() -> None:
    """LINK's own figures: 3 x the mean of ROUGE-L over the values before, PersonX among them."""
    assert released_penalty("peanut butter pie", ("peanut", "peanut butter")) == pytest.approx(1.3)
    assert released_penalty("butter chicken", ("dairy", "butter")) == pytest.approx(2 / 3)


def test_the_first_variable_has_half_the_calls() -> None:
    """Each asks for twice the values."""
    assert [first_calls(calls) for calls in (4, 3, 2, 1)] == [2, 2, 1, 1]


# --- whole searches --------------------------------------------------------------------------------------------------

RULES = """
oracle was_born_in(Person, Period): "[1] was born in [2]".
functional began_in(Period, Year): "[1] began in [2]".
oracle was_made_in(Tool, Year): "[1] was made in [2]".
oracle cannot_use(Person, Tool): "[1] cannot use [2]".
@name tools
@generic P
was_born_in(Person P, Period B) & began_in(Period B, Year Y) & was_made_in(Tool A, Year Y) -> cannot_use(Person P, Tool A)
"""


class Recorder:
    """All roles: lists by a part of the prompt, and replies to the year of a period by the number of the sample."""

    def __init__(self, years: dict[str, list[str]], looms: Sequence[str] = ("loom",)) -> None:
        self.identity = ModelIdentity("recorder")
        self.years, self.looms = years, looms
        self.prompts: list[tuple[str, int]] = []
        self.claims: list[str] = []
        self.texts: list[str] = []

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        assert parameters.max_tokens == 512
        return [Generation(self._reply(request)) for request in requests]

    def _reply(self, request: GenerationRequest) -> str:
        self.prompts.append((request.prompt, request.sample_index))
        for period, replies in self.years.items():
            if f"({period}, Y)" in request.prompt:
                return replies[request.sample_index] if request.sample_index < len(replies) else "I do not know"
        lists = {"was_born_in": list(self.years), "was_made_in(A, 1500)": ["flail"], "was_made_in(A, 1600)": self.looms}
        return next((render_values(values) for part, values in lists.items() if part in request.prompt), "")

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.claims += claims
        return [CriticScore(0.9) for _ in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.texts += texts
        return [LogLikelihood(-float(len(text)), 1) for text in texts]


def rows(
    years: dict[str, list[str]], looms: Sequence[str] = ("loom",), **settings: Any
) -> tuple[dict[Distribution, set[str]], Recorder]:
    """The tools of head and long tail, and the model that was asked."""
    model, library = Recorder(years, looms), parse_library([("tools.rules", RULES)])
    chosen = SearchSettings(compat="released", plan="premise-first", **{"keep_share": 1.0, **settings})
    with KnowledgeBase() as kb:
        report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model), chosen))
    found: dict[Distribution, set[str]] = {}
    for distribution, statements in report.rules[0].statements.items():
        found[distribution] = {str(dict(statement.substitution)["A"]) for statement in statements}
    return found, model


def test_a_search_asks_judges_and_ranks_in_the_words_of_the_release() -> None:
    """Atoms with the rule's own variables; type questions without `Statement:`; texts in the order of the search."""
    found, model = rows({"Baroque": ["1. 1600."] * 9})

    assert found == {Distribution.HEAD: {"loom"}, Distribution.LONG_TAIL: {"loom"}}
    assert model.prompts[0][0] == (
        "Give me 100 diverse values of B to instantiate the rule 'was_born_in(PersonX, B)' in the format '1. value.', "
        "where B can be a Period."
    )
    assert model.claims[0].endswith("Please answer yes or no\nBaroque is a period\nAnswer:")
    assert "loom was made in 1600" in model.claims
    assert not any("began" in claim for claim in model.claims)
    assert [text for text in model.texts if not text.startswith("If")] == [
        "PersonX was born in Baroque",
        "PersonX was born in Baroque and Baroque began in 1600",
        "PersonX was born in Baroque and Baroque began in 1600 and loom was made in 1600 and PersonX cannot use loom",
    ]


def test_an_answer_has_ten_tries() -> None:
    """A reply without a value is asked for again, up to ten times for each of the two answers."""
    unread = ["I do not know"]
    patient, model = rows({"Baroque": [*unread * (TRIES - 1), "1. 1600.", *unread, "1. 1600."]}, distributions=HEAD)
    assert patient == {Distribution.HEAD: {"loom"}}
    assert max(index for _, index in model.prompts) == TRIES + 1

    hopeless, _ = rows({"Baroque": [*unread * TRIES, "1. 1600.", "1. 1600."]}, distributions=HEAD)
    assert hopeless == {Distribution.HEAD: set()}


HEAD = (Distribution.HEAD,)


def test_head_and_long_tail_ask_for_their_own_answers() -> None:
    """Answers that differ for the head do not decide for the long tail, which the release asks later."""
    years = {"Baroque": ["1. 1500.", "1. 1600.", "1. 1600.", "1. 1600."]}

    assert rows(years)[0] == {Distribution.HEAD: set(), Distribution.LONG_TAIL: {"loom"}}


def test_the_first_variable_is_cut_at_both_ends_by_the_beam_alone() -> None:
    """Of three periods a beam of two keeps the likeliest two for the head, the others for the long tail."""
    years = {name: ["1. 1600."] * 9 for name in ("B", "Bb", "Bbb")}
    _, model = rows({f"Era {name}": replies for name, replies in years.items()}, beam=2, keep_share=0.3)

    asked = [prompt.split("(")[1].split(",")[0] for prompt, _ in model.prompts if "began_in" in prompt]
    assert asked[::2] == ["Era B", "Era Bb", "Era Bbb", "Era Bb"]


def test_the_head_avoids_words_of_earlier_values() -> None:
    """Of two tools with equally likely texts the one that repeats the period is kept by the long tail alone."""
    found, _ = rows({"Iron Age": ["1. 1600."] * 9}, ["iron age", "wood saw"], beam=1, distributions=HEAD)
    assert found == {Distribution.HEAD: {"wood saw"}}

    tail = (Distribution.LONG_TAIL,)
    found, _ = rows({"Iron Age": ["1. 1600."] * 9}, ["iron age", "wood saw"], beam=1, distributions=tail)
    assert found == {Distribution.LONG_TAIL: {"iron age"}}
