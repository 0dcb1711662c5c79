"""Costs of the steps of a search: what is expected where no answer is known, and the most that there can be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple
from math import ceil

from hapax.engine.questions.decidable import Origin, origin_of
from hapax.engine.search.search import DEMAND, ROWS_PER_GOAL, SearchRun
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.dependencies import PlanCost, PlanCosts, Rows, SearchStep, Yield, Yields, asked_predicates
from hapax.grammar.rules import Library, Rule, type_key
from hapax.grammar.terms import Literal
from hapax.llm_oracle.protocols import Models

LIMITED = Yields(open=Yield(1, 36, 35, 34), keyed=Yield(1, 2.7, 2.6, 2.3), functional=Yield(1, 1, 1, 1))
"""Measured on the shipped rules with the embedded model, which knows the facts of its atlas alone."""
LINK = Yields(open=Yield(4, 121, 92, 29), keyed=Yield(3, 16, 12, 3.3))
"""Measured as the defaults of `Yields` were: LINK's thresholds rise with the scores, and pass fewer values."""


class ExpectedCosts(PlanCosts):
    """Expected costs where a question has as many more values as its type has parts."""

    def __init__(self, run: SearchRun, rule: Rule) -> None:
        self.settings = run.job.settings
        self.usual = usual_yields(run.job.models, self.settings)
        super().__init__(rule, run.job.library, self.settings.yields(self.usual))

    def yield_of(self, step: SearchStep, bound: Collection[str]) -> Yield:
        limited = super().yield_of(step, bound)
        if step.functional:
            return limited
        atom, size = step.generators[0].atom, parts_of(step.variable.data_type, self.library)
        if limited is self.yields.open:
            return self.settings.within(self.usual.open.scaled(size))
        # A predicate has a typical number of last arguments; other ones have as many more as their type is larger.
        last = self.library.signature(atom.indicator).argument_types[-1]
        size = 1.0 if atom.arguments[-1] == step.variable else size / parts_of(last, self.library)
        return self.settings.within(self.usual.keyed.scaled(size))

    def most_values(self, data_type: str) -> float:
        """Number of different values of a type, in answers to any questions."""
        return self.usual.open.accepted * parts_of(data_type, self.library)


def usual_yields(models: Models, settings: SearchSettings) -> Yields:
    """The usual yields: a model that states the predicates that it knows has few values of each."""
    if settings.compat:
        return LINK
    return Yields() if models.knowledge.identity.knows is None else LIMITED


def parts_of(data_type: str, library: Library) -> float:
    """Number of types without subtypes that a type consists of."""
    parts = {type_key(lower) for lower, _ in library.subtypes if library.is_declared_subtype(lower, data_type)}
    return max(1, len(parts - {type_key(upper) for _, upper in library.subtypes}))


MOST_ROWS = 500_000
"""Rows of a predicate that are counted at most."""


class CostLimits(PlanCosts):
    """Upper limits in place of expected costs, for models that return no more values than they are asked for."""

    def __init__(self, run: SearchRun, rule: Rule) -> None:
        settings = run.job.settings
        samples = settings.samples * settings.tries
        # LINK's released code asks for twice as many values about the first variable, and each distribution asks anew.
        self.repeats = len(settings.distributions) if settings.is_released else 1
        room = (2 if settings.is_released else 1) * settings.calls_per_question * settings.values_per_call
        # A search with other settings may have allowed more.
        values = max(room, run.oracle.finished.most_candidates())
        full = Yield(settings.calls_per_question, values, values, values)
        super().__init__(rule, run.job.library, Yields(full, full, Yield(samples, samples, samples, 1), passing=1.0))
        self.facts = run.facts

    def ask(self, step: SearchStep, rows: Rows) -> tuple[PlanCost, Rows]:
        # Each beam may need a question of its own once its values are unknown.
        cost, extended = super().ask(step, Rows(rows.count, dict.fromkeys(rows.distinct, rows.count)))
        if step.assignment:
            return cost, extended
        literal = step.generators[0]
        origin = Origin.MODEL if self.rule.is_information(literal) else origin_of(literal, self.library)
        if origin is not Origin.MODEL:
            # Of given facts those that there are; of others all that a goal may ask for.
            values = max(MOST_ROWS, DEMAND.questions * ceil(self.yields.keyed.accepted))
            if self.facts.decide(literal):
                values = self.facts.size(literal, values)
            extended = rows.extended(step.variable.name, rows.count, values)
        return PlanCost(*(self.repeats * count for count in astuple(cost))), extended

    def behind(self, literal: Literal, keys: float) -> PlanCost:
        """Only the limits of a goal bound what derived predicates need."""
        if not asked_predicates(literal, self.library):
            return PlanCost()
        groups = ceil(keys / ROWS_PER_GOAL)
        questions, full = groups * DEMAND.questions, self.yields.keyed
        proposed, calls = questions * full.proposed, questions * max(full.calls, self.yields.functional.calls)
        return PlanCost(questions, calls, proposed, 2 * proposed + groups * DEMAND.verifications)
