"""Replays of LINK's released code: questions through its thresholds, and whole searches.

The folder of traces has `gate.jsonl`, with a question a line: its calls with P(yes) of each value, and what was accepted;
and `search_*.json`, each with the rule and settings of a search, the replies and scores of its models, and the head and
long tail that came out. The rules are those of `rules_example.json` in the folder or beside it.

The search that is compared is the one of `hapax search --compat released`. Its models answer as the trace recorded
them, and a question that the release did not put has no answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.engine.questions.gates import CRITIC, TYPE, Scores
from hapax.engine.questions.inquiry import Inquiry, ParsedGeneration
from hapax.engine.search.oracle import asked_question
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import load_library
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
