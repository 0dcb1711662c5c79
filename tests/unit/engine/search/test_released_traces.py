"""LINK's released code, replayed step by step: fourteen traces."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hapax.engine.gates.gates import CRITIC, TYPE, Scores
from hapax.engine.gates.inquiry import Inquiry, ParsedGeneration
from hapax.engine.gates.released import TRIES, first_calls
from hapax.engine.search.oracle import asked_question
from hapax.engine.search.ranking import released_penalty
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import load_library, parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import AtomPattern, Candidate, Distribution, Question
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
from hapax.llm_oracle.questions.prompts import critic_prompt
from hapax.llm_oracle.reading.link_replies import parse_values, render_values

# --- replay -----------------------------------------------------------------------------------------------------------


KINDS = ("facts", "types", "both", "both_with_prior")
"""Kinds of questions: which of the two probabilities varies."""

PLANS: Mapping[str, Any] = {"premise": "premise-first", "conclusion": "conclusion-first"}
"""Hapax's names of the release's orders of variables."""

_FORBIDDEN = re.compile(r" Do not generate these values: (?P<values>.*)\.\Z", re.DOTALL)

Request = tuple[str, frozenset[str], frozenset[str]]
"""A prompt without its forbidden values, these, and the biased values. Their order is chance in the release."""


# --- questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The outcome of a question: its accepted values, its threshold and its calls."""

    accepted: frozenset[str]
    threshold: float
    calls: int


def recorded_outcome(trace: Mapping[str, Any]) -> QuestionOutcome:
    """The outcome in the trace."""
    return QuestionOutcome(frozenset(trace["accepted"]), trace["final_fact_threshold"], trace["calls_made"])


def replayed_outcome(trace: Mapping[str, Any]) -> QuestionOutcome:
    """The outcome under `--compat released`, with the values and scores of the trace."""
    settings = SearchSettings(compat="released", calls_per_question=len(trace["calls"]))
    prior = ((CRITIC.name, tuple(trace["prior_p_fact"])), (TYPE.name, tuple(trace["prior_p_type"])))
    question = Question((AtomPattern("is_a_value_of", (None, "key")),), "Entity")
    asked = asked_question(Inquiry(question, question.patterns, prior), settings)
    while asked.is_open:
        call = trace["calls"][asked.calls]
        by_value = {entry["value"]: entry for entry in call}
        parsed = parse_values(render_values(list(by_value)), "A", question.data_type)
        scores: dict[Candidate, Scores] = {}
        for candidate in asked.take([ParsedGeneration(f"call {asked.calls}", parsed)]):
            entry = by_value[str(candidate.value)]
            scores[candidate] = {CRITIC.name: entry["p_fact"], TYPE.name: entry["p_type"]}
        asked.judge(scores)
    accepted = frozenset(str(candidate.value) for candidate in asked.gates.accepted)
    return QuestionOutcome(accepted, asked.gates.thresholds[CRITIC.name].value, asked.calls)


def equal_questions(traces: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """By kind of question, how many of them end as in the trace, and how many there are."""
    equal: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for trace in traces:
        total[trace["mode"]] += 1
        equal[trace["mode"]] += replayed_outcome(trace) == recorded_outcome(trace)
    return {kind: (equal[kind], total[kind]) for kind in (*KINDS, *sorted(set(total) - set(KINDS))) if total[kind]}


# --- searches --------------------------------------------------------------------------------------------------------


class TraceModel:
    """All roles, answering as a trace recorded; `requests`, `questions` and `texts` are what it was asked.

    A reply is a function of the prompt without its forbidden values, of these, and of the biased ones; for a question
    with one right value, of the prompt and of how often it has been asked. Raises HapaxError for any other request.
    """

    def __init__(self, trace: Mapping[str, Any]) -> None:
        self.identity = ModelIdentity("trace")
        self._replies: dict[Request, str] = {}
        self._samples: dict[str, list[str]] = defaultdict(list)
        self._critic: Mapping[str, float] = trace["critic"]
        self._likelihood: Mapping[str, float] = trace["likelihood"]
        self.requests: set[Request] = set()
        self.samples: Counter[str] = Counter()
        self.questions: set[str] = set()
        self.texts: set[str] = set()
        for call in trace["knowledge"]:
            prompt: str = call["prompt"]
            if asks_one_value(prompt):
                self._samples[prompt].append(call["reply"])
            else:
                self._replies[request_of(prompt, call["biased_values"])] = call["reply"]

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        del parameters  # those of the trace
        return [Generation(self._reply(request)) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        questions = [critic_prompt(claim) for claim in claims]
        self.questions |= set(questions)
        return [CriticScore(_recorded(self._critic, question)) for question in questions]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.texts |= set(texts)
        return [LogLikelihood(_recorded(self._likelihood, text), 1) for text in texts]

    def _reply(self, request: GenerationRequest) -> str:
        if asks_one_value(request.prompt):
            self.samples[request.prompt] += 1
            samples = self._samples.get(request.prompt, [])
            return _recorded(dict(enumerate(samples)), request.sample_index, request.prompt)
        asked = request_of(request.prompt, request.banned_tokens_of)
        self.requests.add(asked)
        return _recorded(self._replies, asked)

    def differences(self) -> Iterator[str]:
        """The kinds of requests of the trace that were not made; others have raised an error."""
        if self.requests != set(self._replies):
            yield f"{len(set(self._replies) - self.requests)} prompts not asked"
        if self.samples != {prompt: len(replies) for prompt, replies in self._samples.items()}:
            yield "another number of samples of a single right value"
        if self.questions != set(self._critic):
            yield f"{len(set(self._critic) - self.questions)} questions not put to the critic"
        if self.texts != set(self._likelihood):
            yield f"{len(set(self._likelihood) - self.texts)} texts not ranked"


class _ConstantEvaluator:
    """An evaluator that tells nothing: traces have no evaluator."""

    identity = ModelIdentity("constant")

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-1.0, 1) for _ in texts]


def _recorded(answers: Mapping[Any, Any], asked: Any, shown: str = "") -> Any:
    if asked not in answers:
        raise HapaxError(f"The trace has no answer to {(shown or str(asked))[:300]!r}. The release did not ask this.")
    return answers[asked]


def request_of(prompt: str, biased: Sequence[str]) -> Request:
    """The parts of a request that determine its reply."""
    match = _FORBIDDEN.search(prompt)
    forbidden = match["values"].split(", ") if match else []
    return _FORBIDDEN.sub("", prompt), frozenset(forbidden), frozenset(biased)


def asks_one_value(prompt: str) -> bool:
    """True for a question with one right value."""
    return prompt.startswith("Give me the correct value of ")


def search_settings(trace: Mapping[str, Any]) -> SearchSettings:
    """The settings of a traced search in Hapax's terms."""
    recorded = trace["settings"]
    return SearchSettings(
        beam=recorded["beam"],
        values_per_call=recorded["num_values"],
        calls_per_question=-(-recorded["beam"] // recorded["num_values"]),
        compat="released",
        plan=PLANS[recorded["plan"]],
        profile="released-nl" if recorded["use_nl_prompt"] else "released",
    )


def search_differences(trace: Mapping[str, Any], library: Library) -> list[str]:
    """Differences of the product's search in rows, prompts, critic questions and texts; empty if it is the trace's."""
    model = TraceModel(trace)
    rule = library.rule(trace["rule"].split()[0])
    with KnowledgeBase() as kb:
        models = Models(model, model, model, _ConstantEvaluator())
        try:
            report = search(SearchJob(library, [rule], kb, models, search_settings(trace)))
        except HapaxError as fault:
            return [str(fault)]
    differences = list(model.differences())
    for distribution in Distribution:
        recorded = {tuple(row) for row in trace[distribution.value]}
        rows: set[tuple[str, ...]] = set()
        for statement in report.rules[0].statements[distribution]:
            values = {name: str(value) for name, value in statement.substitution}
            rows.add(tuple(values[name] for name in trace["variables"]))
        if rows != recorded:
            differences.append(f"{distribution.value}: {len(rows & recorded)} of {len(recorded)} rows")
    return differences


# --- the files --------------------------------------------------------------------------------------------------------


def read_questions(folder: Path) -> list[dict[str, Any]]:
    """The traced questions of a folder."""
    return [json.loads(line) for line in (folder / "gate.jsonl").read_text("utf-8").splitlines()]


def read_searches(folder: Path) -> dict[str, dict[str, Any]]:
    """The traced searches of a folder by name."""
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("search_*.json"))}


def read_rules(folder: Path) -> Library:
    """The rules of the traced searches."""
    beside = [place / "rules_example.json" for place in (folder, folder.parent)]
    return load_library([path for path in beside if path.exists()][:1])


# --- traces -----------------------------------------------------------------------------------------------------------


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
