"""Estimate of a goal's demand loop before anything is asked: rounds, questions, claims and money, expected and at most.

The loop runs as it would, over the answers that the knowledge base has. A question without one gets as many invented
values as such questions usually have, so that the rounds after the first are counted, too. Nothing is sent or stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.theory import Theory
from hapax.engine.search.demand import DemandBudget, Missing, run_demand
from hapax.engine.search.expectation import FUNCTIONAL, KEYED, LARGE, LIMITED, OPEN, Experience, type_size
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer
from hapax.engine.search.oracle import Oracle, journaled
from hapax.engine.search.plan import (
    PromptUsage,
    Range,
    RuleEstimate,
    RunEstimate,
    StepEstimate,
    role_estimates,
    with_ledger,
)
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.rules import type_key
from hapax.grammar.terms import Atom, Value
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, Price
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, Models


@dataclass(frozen=True, slots=True)
class DemandForecast:
    """The course of a demand loop. `first`: what its first round needs; `rounds`: those in which models are asked.

    `estimate`: calls, tokens and money of all rounds by role.
    """

    first: Missing
    rounds: int
    estimate: RunEstimate

    @property
    def questions(self) -> Range:
        """Questions of all rounds."""
        return sum((step.questions for step in self.estimate.rules[0].steps), Range())

    @property
    def calls(self) -> Range:
        """Calls of the knowledge model."""
        return self.estimate.roles[KNOWLEDGE].calls

    @property
    def claims(self) -> Range:
        """Requests to the critic."""
        return self.estimate.roles[CRITIC].calls

    @property
    def cost(self) -> tuple[float, float] | None:
        """Expected and most money; None if a price is unknown."""
        asked = {name: self.estimate.roles[name] for name in (KNOWLEDGE, CRITIC)}
        return RunEstimate((), asked).cost


def forecast_demand(
    theory: Theory,
    goal: str,
    models: Models,
    settings: SearchSettings,
    *,
    prices: Mapping[str, Price] | None = None,
    limits: QueryLimits | None = None,
) -> DemandForecast:
    """Estimate what `run_demand` would ask for this goal, given the answers in the theory's knowledge base.

    At most, one round asks what it needs; later ones, which rest on answers, all that the loop may ask.
    """
    budget = DemandBudget(limits=limits)
    with KnowledgeBase(None) as scratch:
        # With no calls allowed the journal answers what it knows, and everything else is cut.
        journal = Journal(theory.kb, Budget(max_calls=0))
        oracle = Oracle(scratch, theory.library, journaled(models, journal), settings.oracle, journal=journal)
        oracle.finished, oracle.takes_parts = theory.kb, True
        habits = LARGE if models.knowledge.identity.knows is None else LIMITED
        expected = _ExpectedAnswers(oracle, settings, Experience(habits, settings))
        first = run_demand(theory, goal, None, replace(budget, rounds=0)).missing
        run_demand(theory, goal, expected, budget)
    steps = tuple(expected.steps)
    rule = RuleEstimate(goal, steps=steps if len(steps) < 2 else _unlimited(steps, budget, settings))
    roles = role_estimates([rule], models, settings, expected.usage, prices or {})
    return DemandForecast(first, len(steps), with_ledger(RunEstimate((rule,), roles), theory.kb, prices or {}))


def _unlimited(
    steps: Sequence[StepEstimate], budget: DemandBudget, settings: SearchSettings
) -> tuple[StepEstimate, ...]:
    """These rounds with the upper limits of a whole loop, which only its own limits bound."""
    calls = budget.questions * settings.calls_per_question
    claims = 2 * calls * settings.values_per_call + budget.verifications if settings.critic else 0
    first, *others = (
        replace(
            step,
            questions=Range(step.questions.expected),
            calls=Range(step.calls.expected),
            claims=Range(step.claims.expected),
        )
        for step in steps
    )
    whole = replace(
        first,
        questions=Range(first.questions.expected, budget.questions),
        calls=Range(first.calls.expected, calls),
        claims=Range(first.claims.expected, claims),
    )
    return (whole, *others)


@dataclass
class _ExpectedAnswers:
    """Answers of the knowledge base, and invented ones where it has none, which are counted round by round."""

    oracle: Oracle
    settings: SearchSettings
    experience: Experience
    steps: list[StepEstimate] = field(default_factory=list)
    usage: PromptUsage = field(default_factory=PromptUsage)
    _invented: dict[str, int] = field(default_factory=dict)
    _owed: dict[str, float] = field(default_factory=dict)
    _asking: StepEstimate = field(default_factory=lambda: StepEstimate("", ""))

    def answers(self, inquiries: Sequence[Inquiry]) -> Mapping[Inquiry, QuestionAnswer]:
        """Stored answers; for other questions as many values as are usual."""
        stored = self.oracle.answers(inquiries)
        for inquiry, answer in stored.items():
            self.experience.learn(_kind(inquiry), [answer])
        missing = {inquiry: answer for inquiry, answer in stored.items() if not answer.complete}
        self._asking = self._round(missing)
        return {**stored, **{inquiry: self._expected(inquiry, answer) for inquiry, answer in missing.items()}}

    def _round(self, missing: Mapping[Inquiry, QuestionAnswer]) -> StepEstimate:
        """Numbers of the questions, calls and claims of a round."""
        calls = claims = most_calls = most_claims = 0
        for inquiry, answer in missing.items():
            self.usage.add(self.oracle.wording.request(inquiry.question, self.settings.values_per_call).prompt)
            habit, functional = self.experience.of(_kind(inquiry)), inquiry.question.functional
            allowed = self.oracle.most_samples if functional else self.settings.calls_per_question
            calls += max(1, round(habit.calls) - answer.calls)
            most_calls += max(1, allowed - answer.calls)
            # One claim about the type of a value, and one about each fact that it makes.
            per_value = int(not self.oracle.library.is_numeric(inquiry.question.data_type)) + len(inquiry.claimed)
            claims += round(habit.proposed * per_value)
            most_claims += allowed * self.settings.values_per_call * per_value
        judged = (Range(claims, most_claims),) if self.settings.critic else ()
        asked = Range(len(missing), len(missing))
        return StepEstimate("", "", asked, 0, Range(calls, most_calls), *judged)

    def _expected(self, inquiry: Inquiry, answer: QuestionAnswer) -> QuestionAnswer:
        """The answer with invented values, whose number is the usual one on average over the questions of a kind."""
        kind = _kind(inquiry)
        wanted = self._owed.get(kind, 0.0) + max(0.0, self.experience.of(kind).accepted - len(answer.accepted))
        # What is invented above the usual number for one question is owed by the next ones.
        self._owed[kind] = wanted - ceil(wanted)
        values = [self._value(inquiry.question.data_type) for _ in range(ceil(wanted))]
        return replace(answer, accepted={**answer.accepted, **dict.fromkeys(values)}, complete=True)

    def _value(self, data_type: str) -> Value:
        """The next invented value of a type, of which there are as many as a type usually has."""
        number = self._invented.get(type_key(data_type), 0)
        self._invented[type_key(data_type)] = number + 1
        number %= max(1, round(self.experience.pool(type_size(self.oracle.library, data_type))))
        return number if self.oracle.library.is_numeric(data_type) else f"{data_type} {number + 1} of this forecast"

    def verify(self, atoms: Sequence[Atom]) -> Mapping[Atom, bool]:
        """Stored judgements; every second of the other atoms is taken as true. Ends a round."""
        scores = self.oracle.probabilities(atoms)
        missing = [atom for atom in atoms if scores[atom] is None]
        if self.settings.critic:
            self._asking = replace(self._asking, claims=self._asking.claims + Range(len(missing), len(missing)))
        if self._asking.questions.expected or missing:
            self.steps.append(self._asking)
        affirmed = set(missing[::2])
        settings = self.oracle.settings
        return {
            atom: atom in affirmed if score is None else score >= settings.threshold_of(atom.indicator)
            for atom, score in scores.items()
        }


def _kind(inquiry: Inquiry) -> str:
    """The kind of question by which habits are counted."""
    if inquiry.question.functional:
        return FUNCTIONAL
    # Other free arguments stand in the question as slots, and no value narrows it.
    return OPEN if not inquiry.claimed else KEYED
