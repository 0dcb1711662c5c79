"""What a run would cost before anything is asked: expected and most calls, tokens and money.

The rules walk through their plans with a budget of nothing: what the journal knows is taken exactly, and from the first
unknown answer on numbers are estimated. Nothing is sent and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from engine.beams import Beam, Origin, RuleSearch
from engine.inquiry import FUNCTIONAL_SAMPLES, Inquiry, question_words
from engine.oracle import Oracle, journaled
from engine.report import SearchSettings, Unanswerable
from engine.search import unanswerable
from grammar.dependencies import VALUES, SearchPlan, SearchStep, plan
from grammar.rules import Library, Rule
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, Budget, Journal, Price
from llm_oracle.prompts import knowledge_prompt
from llm_oracle.protocols import Models, Usage

USUAL_CALLS = 3
"""Calls that a question usually takes: one that brings nearly everything and two that bring nothing new."""

PROPOSED_PER_VALUE = 1.4
"""Values proposed for each one accepted: the embedded model's lists are true by about 70 %."""

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_VALUE = 5
"""Number, value, full stop and line end of a list item."""


@dataclass(frozen=True, slots=True)
class Range:
    """An expected number and the most it can be."""

    expected: int = 0
    most: int = 0

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step: questions of the model, those of them that the journal answers, and what would be sent."""

    variable: str
    asks: str
    questions: Range = Range()
    known: int = 0
    calls: Range = Range()
    claims: Range = Range()
    texts: Range = Range()


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """One rule; `skipped` says why it would not be searched."""

    rule: str
    generic: str = ""
    """The generic variables, and how they came to be generic."""
    order: tuple[str, ...] = ()
    steps: tuple[StepEstimate, ...] = ()
    statements: Range = Range()
    skipped: Unanswerable | None = None

    @property
    def calls(self) -> Range:
        return sum((step.calls for step in self.steps), Range())

    @property
    def known(self) -> int:
        return sum(step.known for step in self.steps)


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Calls, tokens and money by role. `cost` is None where the model's price is unknown."""

    model: str
    calls: Range = Range()
    tokens: Range = Range()
    cost: tuple[float, float] | None = None
    """Expected and most."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The whole run. Rules share answers, so it may take fewer calls than its rules together."""

    rules: tuple[RuleEstimate, ...]
    roles: Mapping[str, RoleEstimate] = field(default_factory=dict)

    @property
    def calls(self) -> Range:
        """Calls of the knowledge model."""
        return sum((one.calls for one in self.rules), Range())

    @property
    def cost(self) -> tuple[float, float] | None:
        """Expected and most money; None as soon as one price is unknown."""
        costs = [one.cost for one in self.roles.values()]
        known = [one for one in costs if one is not None]
        return (sum(one[0] for one in known), sum(one[1] for one in known)) if len(known) == len(costs) else None


def plan_run(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    prices: Mapping[str, Price] | None = None,
) -> RunEstimate:
    """Estimate a search of these rules, given what `kb` knows. `prices` by model name, per million tokens."""
    settings = settings or SearchSettings()
    journal = Journal(kb, Budget(max_calls=0))
    with KnowledgeBase(None) as scratch:
        oracle = Oracle(scratch, library, journaled(models, journal), settings.oracle, journal=journal)
        estimates = []
        usage = _Usage()
        for rule in rules:
            reason = unanswerable(rule, library, models)
            if reason is not None:
                estimates.append(RuleEstimate(rule.name, rule.spoken_of, skipped=reason))
                continue
            walk = _Walk(oracle, plan(rule, library, settings.plan), settings, usage)
            estimates.append(walk.estimate())
    return RunEstimate(tuple(estimates), _roles(estimates, models, settings, usage, prices or {}))


@dataclass
class _Usage:
    """Prompt tokens of an average question, sampled on the way."""

    prompts: int = 0
    tokens: int = 0

    def add(self, prompt: str) -> None:
        self.prompts += 1
        self.tokens += len(prompt) // CHARACTERS_PER_TOKEN + 1

    @property
    def mean(self) -> int:
        return ceil(self.tokens / self.prompts) if self.prompts else 0


class _Walk:
    """One rule: exact beams as far as answers are known, and how many more there would be."""

    def __init__(self, oracle: Oracle, one: SearchPlan, settings: SearchSettings, usage: _Usage) -> None:
        self.oracle, self.plan, self.settings, self.usage = oracle, one, settings, usage
        self.search = RuleSearch(one, oracle.library, settings, "")
        self.rows = Range(1, 1)
        self.unknown_rows = 0
        self.width = settings.beam * len(settings.distributions)

    def estimate(self) -> RuleEstimate:
        steps = tuple(self._step(step) for step in self.plan.steps)
        most = len(self.settings.distributions) * self.settings.beam
        statements = Range(min(self.rows.expected, most), min(self.rows.most, most))
        rule = self.plan.rule
        return RuleEstimate(rule.name, rule.spoken_of, self.plan.order, steps, statements)

    def _step(self, step: SearchStep) -> StepEstimate:
        origin = self._origin(step)
        asks = "" if step.assignment else str(step.generators[0])
        if origin is not Origin.MODEL:
            self._advance({})
            return StepEstimate(step.variable.name, asks)
        inquiries = self.search.inquiries() if self.search.step is not None else {}
        unique = list(dict.fromkeys(inquiries.values()))
        for inquiry in unique[:1]:
            name, words = question_words(inquiry.question, self.oracle.library)
            self.usage.add(knowledge_prompt(name, words, inquiry.question.data_type))
        answers = self.oracle.answers(unique)
        known = sum(answer.complete for answer in answers.values())
        new = len(unique) - known + min(self.unknown_rows, self.width)
        questions = Range(known + new, max(known + new, min(self.rows.most, self.width)))
        found = self._advance(inquiries)
        values = self._values(step)
        rows = found + new * values
        self.unknown_rows = ceil(min(new * values, self.width) * self.settings.keep_share)
        self.rows = Range(
            min(self.width, rows), min(self.width, self.rows.most * (1 if step.functional else self._most_values()))
        )
        claims = Range(ceil(new * values * 2 * PROPOSED_PER_VALUE), (questions.most - known) * 2 * self._most_values())
        ranked = self.settings.likelihood == "model" and not self.oracle.library.is_numeric(step.variable.data_type)
        texts = Range(rows, self.width * self._most_values()) if ranked else Range()
        calls = self._calls(step, Range(new, questions.most - known))
        critic = claims if self.settings.critic else Range()
        return StepEstimate(step.variable.name, asks, questions, known, calls, critic, texts)

    def _origin(self, step: SearchStep) -> Origin:
        if self.search.step is not None:
            return self.search.origin
        return Origin.COMPUTED if step.assignment else Origin.MODEL

    def _advance(self, inquiries: Mapping[Beam, Inquiry]) -> int:
        """Take the step with what is known; gives how many beams there are then."""
        search = self.search
        if search.step is None:
            return 0
        if search.origin is Origin.MODEL:
            known = self.oracle.answers(list(dict.fromkeys(inquiries.values())))
            search.extend({beam: known[inquiry] for beam, inquiry in inquiries.items()})
        elif search.origin is Origin.COMPUTED:
            search.compute()
        elif search.origin is Origin.GIVEN:
            name = search.names[-1]
            search.extend_with({b: self.oracle.known.given(atom, name) for b, atom in search.open_atoms().items()})
        else:
            self.unknown_rows = min(self.width, self.unknown_rows + len(search.beams) * VALUES)
            search.extend_with({})
        search.compare()
        found = len(search.beams)
        if self.settings.likelihood == "model" and search.is_ranked:
            texts = search.texts()
            scores = self.oracle.log_likelihoods(texts.values())
            if all(text in scores for text in texts.values()):
                search.rank(texts, scores)
                return found
        search.advance_unranked()
        return found

    def _values(self, step: SearchStep) -> int:
        """Values that an unknown question is expected to keep; an open one keeps twice as many."""
        if step.functional:
            return 1
        return VALUES if self.search.step_number > 1 else 2 * VALUES

    def _most_values(self) -> int:
        return self.settings.calls_per_question * self.settings.values_per_call

    def _calls(self, step: SearchStep, questions: Range) -> Range:
        if step.functional:
            return Range(questions.expected * FUNCTIONAL_SAMPLES, questions.most * FUNCTIONAL_SAMPLES)
        most = self.settings.calls_per_question
        return Range(questions.expected * min(USUAL_CALLS, most), questions.most * most)


def _roles(
    estimates: Sequence[RuleEstimate],
    models: Models,
    settings: SearchSettings,
    usage: _Usage,
    prices: Mapping[str, Price],
) -> dict[str, RoleEstimate]:
    steps = [step for one in estimates for step in one.steps]
    statements = sum((one.statements for one in estimates), Range())
    calls = {
        KNOWLEDGE: sum((step.calls for step in steps), Range()),
        CRITIC: sum((step.claims for step in steps), Range()),
        LIKELIHOOD: sum((step.texts for step in steps), Range()),
        EVALUATOR: statements,
    }
    list_tokens = settings.values_per_call * TOKENS_PER_VALUE
    each = {
        KNOWLEDGE: Usage(usage.mean, list_tokens),
        CRITIC: Usage(usage.mean, 1),
        LIKELIHOOD: Usage(usage.mean, 0),
        EVALUATOR: Usage(usage.mean, 0),
    }
    named = {
        KNOWLEDGE: models.knowledge,
        CRITIC: models.critic,
        LIKELIHOOD: models.likelihood,
        EVALUATOR: models.evaluator,
    }
    found = {}
    for role, model in named.items():
        one, spent = calls[role], each[role]
        per_call = spent.prompt_tokens + spent.completion_tokens
        price = prices.get(model.identity.name)
        cost = None if price is None else (price.of(spent) * one.expected, price.of(spent) * one.most)
        tokens = Range(one.expected * per_call, one.most * per_call)
        found[role] = RoleEstimate(model.identity.name, one, tokens, cost)
    return found
