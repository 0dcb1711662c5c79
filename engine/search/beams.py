"""The beams of one rule: the questions of each step, the extension of beams by values, their ranking and selection.

A `RuleSearch` asks no model. It states what it needs (questions, ground atoms, texts) and receives the answers, so that
the search can put the needs of many rules into one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, inf, prod
from typing import NamedTuple

from hapax.engine.gates.account import DistributionCut, PremiseLoss, StepAccount, merge
from hapax.engine.gates.decidable import GivenFacts, Origin, PremisePart, open_parts, origin_of
from hapax.engine.gates.gates import (
    COMPUTED,
    CRITIC,
    GIVEN,
    LIKELIHOOD,
    TYPE,
    Gate,
    GateCount,
    LastVerdicts,
    substitution_subject,
)
from hapax.engine.gates.inquiry import PERSON, Inquiry, QuestionAnswer, argument_name
from hapax.engine.gates.released import FIRST_VALUES, first_calls
from hapax.engine.prolog.session import LimitExceeded
from hapax.engine.search.ranking import (
    Beam,
    Ends,
    Side,
    TextWriter,
    both_sides,
    divided,
    equal_texts,
    kept,
    random_score,
    released_penalty,
    within_cap,
)
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.dependencies import PlanCosts, Rows, SearchPlan, SearchStep, Yields, plan
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.rules import Library
from hapax.grammar.terms import (
    Atom,
    Comparison,
    Constant,
    CutDecimal,
    Literal,
    Substitution,
    Term,
    Value,
    variable_names,
)
from hapax.grammar.values.functions import assigned, holds
from hapax.grammar.writing.verbalize import statement_text
from hapax.kb.records import AtomPattern, Decision, Distribution, Question
from hapax.llm_oracle.critics.measures import TextMeasures

EXAMPLES = 20
"""Rejected beams whose verdicts are stored, for each step and premise or distribution. The account has the numbers."""

POOL = 10_000
"""Beams at most for which ranking waits until the next step has added its given values."""


class _Verdict(NamedTuple):
    """A gate's verdict on a beam, with its score and the limit that it is compared with."""

    accepted: bool
    reason: str
    score: float | None = None
    limit: float | None = None


@dataclass(eq=False)
class RuleSearch:
    """The search of one rule. Each step of its plan has three phases:

    - extend: `inquiries` states the questions, `extend`, `extend_with` or `compute` takes the values;
    - close: `test`, then `checked` and `ground` state the atoms to judge, and `drop` takes the verdicts;
    - rank: `texts` states what is ranked, and `rank` or `advance_unranked` ends the step.

    `facts`: those that premises are tested by before anything is ranked; None: each premise is tested once all its
    variables have values, as in LINK.
    """

    plan: SearchPlan
    library: Library
    settings: SearchSettings
    run_id: str
    step_number: int = 0
    beams: list[Beam] = field(default_factory=list)
    gates: dict[str, GateCount] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    account: list[StepAccount] = field(default_factory=list)
    cut: bool = False
    facts: GivenFacts | None = None
    capped: dict[Distribution, int] = field(default_factory=dict)
    """By distribution, the substitutions that the rule's `@most` left out."""
    division: Ends | None = None
    """The disjoint ends of the complete substitutions, by the statements' texts, once the last step is ranked."""
    questions: set[Inquiry] = field(default_factory=set)
    calls: int = 0
    hits: int = 0
    uncertain: int = 0
    """Statements below the threshold of their promise."""
    verdicts: LastVerdicts = field(default_factory=LastVerdicts)
    """On values that were judged more than once."""
    _unjudged: set[Beam] = field(default_factory=set)
    """Beams whose newest value waits for its judgement, because a premise that needs no model excludes it."""
    _aside: list[Beam] = field(default_factory=list)
    """Beams that the step has not extended, because it may not need them."""
    _extended_beams: list[Beam] = field(default_factory=list)
    """What the others brought."""
    _tried: int = 0
    _by_step: set[tuple[int, Inquiry]] = field(default_factory=set)
    """Questions with the number of each step that asked them."""
    _texts: dict[tuple[Literal, tuple[Value, ...]], str] = field(default_factory=dict)
    _orders: dict[Distribution, list[tuple[Value, ...]]] = field(default_factory=dict)
    """By distribution, the values of the beams that the last step kept, in the order of LINK's released code."""
    _kept_decisions: list[tuple[Distribution, tuple[Value, ...], Decision]] = field(default_factory=list)
    """The likelihood gate's decisions on beams that it kept, by distribution and values."""

    def __post_init__(self) -> None:
        self.beams = [Beam(distributions=self.settings.distributions)]

    @property
    def step(self) -> SearchStep | None:
        """The current step; None once the plan is over or no beam is left."""
        return self.plan.steps[self.step_number] if self.step_number < len(self.plan.steps) and self.beams else None

    @property
    def names(self) -> list[str]:
        """Names of the variables that have a value after the current step, the newest last."""
        return [step.variable.name for step in self.plan.steps[: self.step_number + 1]]

    @property
    def account_now(self) -> StepAccount:
        """The account of the current step."""
        number = self.step_number + 1
        if not self.account or self.account[-1].step != number:
            variable = self._now().variable
            # Single right values that premise-first would ask for as lists.
            is_listable = self.is_functional and not any(
                step.functional and step.variable == variable
                for step in plan(self.plan.rule, self.library, "premise-first").steps
            )
            typed = f"{variable.data_type} {variable.name}"
            self.account.append(StepAccount(number, typed, self.origin.value, listable=is_listable))
        return self.account[-1]

    # -- enough

    @property
    def enough_now(self) -> tuple[float, float]:
        """Beams that the current step is to leave, and those that it needs for them, by what steps usually bring."""
        costs = PlanCosts(self.plan.rule, self.library, self.settings.yields(Yields()))
        rates: list[float] = []
        for number in range(self.step_number, len(self.plan.steps)):
            bound = {step.variable.name: 1.0 for step in self.plan.steps[:number]}
            rates.append(costs.step(self.plan.steps[number], Rows(1.0, bound))[1].count)
        left = self.settings.needed / prod(min(1.0, rate) for rate in rates[1:])
        return left, left / rates[0]

    def take_needed(self) -> None:
        """Leave only beams that are needed; the others wait for `needs_more`.

        They come in random order, so that both ends of a part are like those of all.
        """
        if self.settings.enough is None:
            return
        left, count = self.enough_now
        if self._tried:  # as many as the beams so far brought
            count = (left - len(self._extended_beams)) * self._tried / max(1, len(self._extended_beams))
        else:
            self._aside = sorted(self.beams, key=self._chance)
        self.beams, self._aside = self._aside[: ceil(count)], self._aside[ceil(count) :]
        self._tried += len(self.beams)

    def needs_more(self) -> bool:
        """True if the step is to go on with further beams; if not, it has what all beams so far brought."""
        if self.settings.enough is None:
            return False
        self._extended_beams += self.beams
        if self._aside and len(self._extended_beams) < self.enough_now[0]:
            return True
        self.beams, self.account_now.spared = self._extended_beams, len(self._aside)
        self._extended_beams, self._aside, self._tried = [], [], 0
        return False

    # -- asking

    @property
    def origin(self) -> Origin:
        """Source of the current step's values."""
        step = self._now()
        if step.assignment is not None:
            return Origin.COMPUTED
        literal = step.generators[0]
        if self.plan.rule.is_information(literal):
            return Origin.MODEL
        return origin_of(literal, self.library)

    @property
    def generator(self) -> Literal:
        """The literal that gives the current step's values."""
        return self._now().generators[0]

    def open_atoms(self) -> dict[Beam, Atom]:
        """By beam, the current generator's atom with the beam's values in it."""
        atom, names = self._now().generators[0].atom, self.names[:-1]
        return {beam: _bound(atom, names, beam) for beam in self.beams}

    def inquiries(self) -> dict[Beam, Inquiry]:
        """By beam, the question that gives it new values. Many beams have the same one."""
        if self.origin is not Origin.MODEL:
            return {}
        step = self._now()
        literals = self._asked_with(step)
        claimed = [literal for literal in literals if self._is_claimed(literal)]
        if self._is_asked_anew:  # each distribution asks for its own beams
            self.beams = self._by_distribution()
        inquiries: dict[Beam, Inquiry] = {}
        askings: Counter[Question] = Counter()
        for beam in self.beams:
            patterns = tuple(self._pattern(literal.atom, beam) for literal in literals)
            claimed_patterns = tuple(self._pattern(literal.atom, beam) for literal in claimed)
            inquiry = Inquiry(Question(patterns, step.variable.data_type, self.is_functional), claimed_patterns)
            inquiries[beam] = self._released(inquiry, beam, askings) if self.settings.is_released else inquiry
        return inquiries

    def _released(self, inquiry: Inquiry, beam: Beam, askings: Counter[Question]) -> Inquiry:
        """The inquiry as LINK's released code puts it. `askings`: how often this step has put each question so far."""
        variable = self._now().variable.name
        if inquiry.question.functional:
            # Each beam that asks the question again gets samples of its own.
            askings[inquiry.question] += 1
            return replace(inquiry, variable=variable, repeat=askings[inquiry.question] - 1)
        prior = ((CRITIC.name, beam.facts), (TYPE.name, beam.types))
        if self.step_number > 0:
            return replace(inquiry, prior=prior, variable=variable)
        # About the first variable: fewer calls, each for more values.
        values = FIRST_VALUES * self.settings.values_per_call
        calls = first_calls(self.settings.calls_per_question)
        return replace(inquiry, variable=variable, values=values, calls=calls)

    @property
    def is_functional(self) -> bool:
        """True if the current step's variable has one right value, of which models are asked for samples.

        In LINK's released code this is a property of the variable, whichever literal asks for it.
        """
        step = self._now()
        if not self.settings.is_released or step.assignment is not None:
            return step.functional
        return any(
            literal.atom.arguments[-1:] == (step.variable,)
            and self.library.kind(literal.atom.indicator) is PredicateKind.FUNCTIONAL
            for literal in self.plan.rule.literals
        )

    @property
    def _is_asked_anew(self) -> bool:
        """True if each beam of each distribution asks its question anew."""
        return self.settings.is_released and self.is_functional

    def _by_distribution(self) -> list[Beam]:
        """A beam for each distribution that keeps it, in the order of LINK's released code."""
        known = {beam.values: beam for beam in self.beams}
        beams: list[Beam] = []
        for distribution in self.settings.distributions:
            order = self._orders.get(distribution, list(known))
            own = (known[values] for values in order if values in known)
            beams += [replace(beam, distributions=(distribution,)) for beam in own]
        return beams

    def _asked_with(self, step: SearchStep) -> tuple[Literal, ...]:
        """The literals in the prompt: the plan's first generator, or, in LINK's way, all that have their values."""
        if self.settings.compat is None:
            return step.generators[:1]
        rule = self.plan.rule
        # LINK's first prompt has the conclusion in it, too.
        literals = [*rule.literals, rule.conclusion] if self.step_number == 0 else rule.literals
        joined = [literal for literal in literals if not literal.negated and self._fits_prompt(literal)]
        return tuple(joined) or step.generators[:1]

    def _fits_prompt(self, literal: Literal) -> bool:
        """True if the literal has the step's variable and, apart from it, only values and generic variables."""
        names = variable_names([literal])
        known = {*self.names, *self.plan.rule.generic}
        asked = origin_of(literal, self.library) is Origin.MODEL or self.plan.rule.is_information(literal)
        return asked and self._now().variable.name in names and names <= known

    def _is_claimed(self, literal: Literal) -> bool:
        """True if a value makes the literal ground: then the critic judges it, and it becomes a fact."""
        return variable_names([literal]) <= set(self.names)

    def _pattern(self, atom: Atom, beam: Beam) -> AtomPattern:
        bound = dict(zip(self.names, beam.values, strict=False))  # the step's variable has no value yet
        arguments = (self._argument(term, position, bound) for position, term in enumerate(atom.arguments))
        return AtomPattern(atom.predicate, tuple(arguments))

    def _argument(self, term: Term, position: int, bound: Mapping[str, Value]) -> Value | None:
        """A value; None at the free position; the slot or `PersonX` that a prompt shows for another variable."""
        if isinstance(term, Constant):
            return term.value
        if term.name == self._now().variable.name:
            return None
        if term.name in bound:
            return bound[term.name]
        if term.name in self.plan.rule.generic:
            return PERSON if self.settings.is_released else "".join(term.data_type.split()) + term.name
        return f"[{argument_name(position)}]"

    # -- extending

    def extend(self, answers: Mapping[Beam, QuestionAnswer]) -> None:
        """Replace each beam by one for each accepted value of its answer, and each that waits for its judgement."""
        extended: list[Beam] = []
        for beam in self.beams:
            if beam in answers:
                types = answers[beam].types
                for value, probability in answers[beam].accepted.items():
                    extended.append(beam.extended(value, probability, types.get(value)))
                unjudged = [beam.extended(value) for value in answers[beam].waiting]
                self._unjudged.update(unjudged)
                extended += unjudged
        if self._is_asked_anew:
            # Beams that were apart by their distributions come together again.
            merged: dict[tuple[Value, ...], Beam] = {}
            for beam in extended:
                kept_by = merged[beam.values].distributions if beam.values in merged else ()
                merged[beam.values] = replace(beam, distributions=(*kept_by, *beam.distributions))
            extended = list(merged.values())
        self._extended(extended)

    def extend_with(self, values: Mapping[Beam, Sequence[Value]]) -> None:
        """Replace each beam by one for each value that facts or rules give it."""
        variable, rule = self._now().variable, self.plan.rule
        is_of_facts = any(
            variable in literal.variables
            and not literal.negated
            and not rule.is_information(literal)
            and origin_of(literal, self.library) in (Origin.MODEL, Origin.GIVEN)
            for literal in rule.literals
        )
        extended: list[Beam] = []
        for beam in self.beams:
            for value in values.get(beam, ()):
                # No fact has a number that cannot be written down, so that no model is asked about it.
                if not (is_of_facts and isinstance(value, CutDecimal)):
                    extended.append(beam.extended(value))
        self._extended(extended)

    def _extended(self, beams: list[Beam]) -> None:
        self.beams = beams
        self.account_now.extended += len(beams)

    def compute(self) -> None:
        """Extend each beam by the value of the step's equation; a beam for which it has none is dropped."""
        assignment = self._now().assignment
        assert assignment is not None  # noqa: S101  `origin` said so
        before = self.names[:-1]
        values = {beam: assigned(assignment.right, dict(zip(before, beam.values, strict=True))) for beam in self.beams}
        self.extend_with({beam: [] if value is None else [value] for beam, value in values.items()})

    # -- closing

    def test(self) -> None:
        """Drop the beams that arithmetic, given facts and rules over given facts exclude, whatever a model says.

        Premises about variables without a value are tested too: they must hold for some of their values.
        """
        for test in self._tests():
            passed = self._passes(test, self.beams)
            if isinstance(test, Comparison) or not all(passed):
                self.drop(COMPUTED if isinstance(test, Comparison) else GIVEN, passed, str(test))
        # A value that waits for its judgement was excluded by these tests, unless one of them has run out of time now.
        if any(beam in self._unjudged for beam in self.beams):
            self.drop(GIVEN, [beam not in self._unjudged for beam in self.beams], "a premise that needs no model")

    def passing(self, beams: Iterable[Beam]) -> list[Beam]:
        """The beams that `test` would keep, each with a value for the step's variable."""
        left = list(beams)
        for test in self._tests():
            left = [beam for beam, is_kept in zip(left, self._passes(test, left), strict=True) if is_kept]
        return left

    def _tests(self) -> list[Comparison | PremisePart]:
        """The premises of the step that need no model; comparisons first, which cost least."""
        comparisons = [item for item in self._now().closes if isinstance(item, Comparison)]
        parts = [] if self.facts is None else open_parts(self.plan.rule, self.names, self.facts, self.library)
        return [*comparisons, *parts]

    def _passes(self, test: Comparison | PremisePart, beams: Sequence[Beam]) -> list[bool]:
        rows = [dict(zip(self.names, beam.values, strict=True)) for beam in beams]
        if isinstance(test, Comparison):
            return [holds(test, row) for row in rows]
        assert self.facts is not None  # noqa: S101  parts come from facts
        return self.facts.passing(test, rows)

    def checked(self) -> list[Literal]:
        """The literals that have all their values now and that the step's question has not judged."""
        step = self._now()
        asked = self._asked_with(step) if self.origin is Origin.MODEL else step.generators[:1]
        literals = []
        for item in step.closes:
            if isinstance(item, Literal) and not self.plan.rule.is_information(item):
                # A computed value answers no question, so its literal is still to be judged.
                is_judged = item in asked and self._is_claimed(item) and step.assignment is None
                if not is_judged:
                    literals.append(item)
        return literals

    def ground(self, literal: Literal) -> list[Atom]:
        """The literal's atom with the values of each beam, in the order of the beams."""
        names = self.names
        return [_bound(literal.atom, names, beam) for beam in self.beams]

    def drop(self, gate: Gate, passed: Sequence[bool], premise: str, highest: float | None = None) -> None:
        """Drop the beams for which a premise does not hold. `passed` is in the order of the beams.

        `highest`: the highest P(yes) of those that do not pass.
        """
        merge(self.gates, {gate.name: GateCount(sum(passed), len(passed))})
        if not all(passed):
            merge(self.account_now.failed, {premise: PremiseLoss(len(passed) - sum(passed), gate.name, highest)})
        reason = f"{premise} does not hold"
        left: list[Beam] = []
        dropped: list[Beam] = []
        for beam, is_kept in zip(self.beams, passed, strict=True):
            (left if is_kept else dropped).append(beam)
        # The premise itself shows why each of the others was dropped.
        for beam in dropped[:EXAMPLES]:
            for distribution in beam.distributions:
                self.decisions.append(self._decision(gate, beam, distribution, _Verdict(False, reason)))
        self.beams = left

    # -- ranking

    @property
    def is_ranked(self) -> bool:
        """True if the likelihood gate ranks the beams of this step."""
        if self.settings.beam is None:
            return False  # nothing is cut, so nothing has to be ranked
        return self.ranks(len(self.beams))

    def ranks(self, count: int) -> bool:
        """True if the likelihood gate would rank this number of beams after this step."""
        if self.settings.compat or self.is_last:
            return True
        if count <= self.settings.pool:
            return False  # all of them stay, so the last step alone ranks them
        if self._next_is_free():
            return False
        # If the next step only adds a number to each beam (the year of an invention), ranking waits for it: the
        # comparisons that the number decides should choose among all beams, not among those that a cut has left.
        following = self.plan.steps[self.step_number + 1]
        return not (following.functional and self.library.is_numeric(following.variable.data_type))

    @property
    def is_last(self) -> bool:
        """True in the last step of the plan."""
        return self.step_number + 1 == len(self.plan.steps)

    @property
    def divides(self) -> bool:
        """True if the ranking of this step gives the disjoint ends."""
        return self.is_last and self.settings.compat is None

    def _next_is_free(self) -> bool:
        """True if the next step asks no model, and leaves few enough beams to rank them after it.

        Its tests should choose among all beams, not only among those that survive a cut.
        """
        if self.facts is None:
            return False
        following, names = self.plan.steps[self.step_number + 1], self.names
        # An equation gives each beam one value at most.
        if following.assignment is not None:
            return True
        literal = following.generators[0]
        if self.plan.rule.is_information(literal) or not self.facts.decide(literal):
            return False
        atoms = [_bound(literal.atom, names, beam) for beam in self.beams]
        try:
            values = self.facts.values(atoms, following.variable.name)
        except LimitExceeded:
            return False
        return sum(len(values[atom]) for atom in atoms) <= POOL

    def texts(self) -> dict[Beam, str]:
        """By beam, the text by which it is ranked."""
        writer = TextWriter(self.plan.rule, self.library, self.names, self.settings.compat, self._texts)
        return {beam: writer.text(beam.values) for beam in self.beams}

    def rank(
        self,
        texts: Mapping[Beam, str],
        scores: Mapping[str, float],
        measures: Mapping[str, TextMeasures] | None = None,
    ) -> None:
        """Keep each distribution's share of its beams. Beams whose text has no score are dropped.

        `measures`: measures of the texts, for disjoint ends (`kept_measures`).
        """
        # The model refused the other texts.
        pool = [beam for beam in self.beams if texts[beam] in scores]
        account = self.account_now
        account.unranked += len(self.beams) - len(pool)
        if self.settings.likelihood == "model":
            ranked = {texts[beam]: scores[texts[beam]] for beam in pool}
            account.texts += len(ranked)
            # `A is like B` and `B is like A` have the same names: their equal sums are no weakness of the ranker.
            values = {texts[beam]: frozenset(beam.values) for beam in pool}
            distinct = {values[text]: score for text, score in ranked.items()} if measures else ranked
            account.equal += equal_texts(distinct)
        self.beams = pool
        ranked_beams = {beam: scores[texts[beam]] for beam in pool}
        if self.settings.compat is not None:
            self._keep(self._linked(ranked_beams))
            return
        if self.settings.likelihood == "random":  # one score for both ends
            seed, name = self.settings.seed, self.plan.rule.name
            ranked_beams = {beam: random_score(seed, name, beam.values) for beam in pool}
        by_beam = {beam: measures[texts[beam]] for beam in pool} if measures else {}
        if self.divides:
            self._keep(self._divided(ranked_beams, by_beam))
        else:
            # Both sides of the pool, whatever distributions are wanted; see `SearchSettings.pool`.
            sides = both_sides(ranked_beams, self._chance, self.settings.width)
            self._keep(dict.fromkeys(self.settings.distributions, sides))

    def _linked(self, likelihoods: Mapping[Beam, float]) -> dict[Distribution, list[Side]]:
        """LINK's ends, which each step cuts from the beams of a distribution, so that both may keep the same beam."""
        share, width = self.settings.share, self.settings.width
        if self.settings.is_released and self.step_number == 0:
            share = 1.0  # the two ends of one list, each as wide as the beam
        sides: dict[Distribution, list[Side]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in likelihoods if distribution in beam.distributions]
            scores = {beam: self._score(beam, likelihoods[beam], distribution) for beam in own}
            places = kept(list(scores.values()), [beam.values for beam in own], distribution, share, width)
            sides[distribution] = [Side(distribution, scores, [own[place] for place in places])]
        return sides

    def _divided(
        self, scores: Mapping[Beam, float], measures: Mapping[Beam, TextMeasures]
    ) -> dict[Distribution, list[Side]]:
        """The disjoint ends of the complete substitutions; those with one text of the statement stay together."""
        groups: dict[str, list[Beam]] = {}
        for beam in scores:
            bound = {name: Constant(value) for name, value in zip(self.names, beam.values, strict=True)}
            groups.setdefault(statement_text(self.plan.rule, self.library, bound).sentence, []).append(beam)
        first = {text: beams[0] for text, beams in groups.items()}
        self.division = divided(
            {text: max(map(scores.__getitem__, beams)) for text, beams in groups.items()},
            {text: beam.values for text, beam in first.items()},
            {text: measures[beam] for text, beam in first.items() if beam in measures},
            lambda text: self._chance(first[text]),
            self.settings.end_size,
        )
        return {
            end: [Side(end, scores, list(chain.from_iterable(groups[text] for text in self.division.of(end))))]
            for end in self.settings.distributions
        }

    def _keep(self, sides: Mapping[Distribution, Sequence[Side]]) -> None:
        """Go on with the beams that a side of their distribution keeps, and note the likelihood gate's verdicts."""
        left: dict[tuple[Value, ...], list[Distribution]] = {}
        for distribution, own in sides.items():
            chosen: dict[Beam, Side] = {}
            for side in own:
                self.account_now.cuts[side.end.value] = DistributionCut(len(side.scores), len(side.chosen), side.limit)
                chosen |= dict.fromkeys(side.chosen, side)
            for beam, side in chosen.items():
                left.setdefault(beam.values, []).append(distribution)
                verdict = _Verdict(True, str(side), side.scores[beam], side.limit)
                decision = self._decision(LIKELIHOOD, beam, distribution, verdict)
                self._kept_decisions.append((distribution, beam.values, decision))
            order = [beam.values for beam in chosen]
            # LINK's released code takes head and long tail from one list of the first variable's values.
            is_reversed = self.settings.compat and not self.step_number and distribution is Distribution.LONG_TAIL
            self._orders[distribution] = order[::-1] if is_reversed else order
            scores, limits = own[0].scores, [side.limit for side in own if side.limit is not None]
            merge(self.gates, {LIKELIHOOD.name: GateCount(len(chosen), len(scores))})
            # Of the others those nearest to a limit; the limits and the stored likelihoods explain the rest.
            others = [beam for beam in scores if beam not in chosen]
            distances = {beam: min((abs(scores[beam] - limit) for limit in limits), default=inf) for beam in others}
            for beam in sorted(distances, key=lambda beam: (distances[beam], repr(beam.values)))[:EXAMPLES]:
                tied = "" if distances[beam] else "; chance chose among equal scores"
                reason = f"not {' or '.join(map(str, own))}{tied}"
                verdict = _Verdict(False, reason, scores[beam], own[0].limit if len(own) == 1 else None)
                self.decisions.append(self._decision(LIKELIHOOD, beam, distribution, verdict))
        self._advance(left)

    def advance_unranked(self) -> None:
        """Keep the first beams of each distribution, as many as the beam is wide; all of them if ranking waits.

        Ranking waits for a step that only tests, or adds given values: its cut would come before the tests.
        """
        waits = self.facts is not None and self.step_number + 1 < len(self.plan.steps) and self._next_is_free()
        left: dict[tuple[Value, ...], list[Distribution]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in self.beams if distribution in beam.distributions]
            # Disjoint ends come from a common pool.
            room = self.settings.width if self.settings.compat else self.settings.pool
            kept_beams = own if waits else own[:room]
            if len(kept_beams) < len(own):
                self.account_now.cuts[distribution.value] = DistributionCut(len(own), len(kept_beams))
            for beam in kept_beams:
                left.setdefault(beam.values, []).append(distribution)
        self._advance(left)

    def _score(self, beam: Beam, score: float, distribution: Distribution) -> float:
        if self.settings.likelihood == "random":
            return random_score(self.settings.seed, self.plan.rule.name, distribution.value, beam.values)
        # The paper has no penalty; the released code ranks the first variable's values once for both distributions.
        is_penalised = self.settings.is_released and distribution is Distribution.HEAD and self.step_number
        return score - released_penalty(beam.values[-1], beam.values[:-1]) if is_penalised else score

    def _chance(self, beam: Beam) -> float:
        """The beam's number for breaking ties, from 0 to 1: by its values, not by its place or its run."""
        return random_score(self.settings.seed, "tie", self.plan.rule.name, beam.values)

    def finish(self) -> None:
        """Add the decisions that led to the complete substitutions, for `why`."""
        ancestors: dict[Distribution, set[tuple[Value, ...]]] = {name: set() for name in self.settings.distributions}
        for beam in self.beams:
            for distribution in beam.distributions:
                # The beginnings of a beam's values are those of the beams from which it came.
                for length in range(1, len(beam.values) + 1):
                    ancestors[distribution].add(beam.values[:length])
        for distribution, values, decision in self._kept_decisions:
            if values in ancestors[distribution]:
                self.decisions.append(decision)
        self._kept_decisions.clear()

    def _advance(self, left: Mapping[tuple[Value, ...], Sequence[Distribution]]) -> None:
        """Go to the next step with the kept beams, in the order they came."""
        going_on = [beam for beam in self.beams if beam.values in left]
        self.account_now.kept += len(going_on)
        self.account_now.cut += len(self.beams) - len(going_on)
        self.beams = [replace(beam, distributions=tuple(left[beam.values])) for beam in going_on]
        self.step_number += 1

    # -- results

    def substitutions(self) -> dict[Distribution, list[Substitution]]:
        """The complete substitutions that each distribution kept, once the plan is over, within the rule's cap."""
        names = [step.variable.name for step in self.plan.steps]
        found: dict[Distribution, list[Substitution]] = {}
        for distribution in self.settings.distributions:
            own = [beam.values for beam in self.beams if distribution in beam.distributions]
            rows = complete = [values for values in own if len(values) == len(names)]
            if self.plan.rule.cap is not None:
                rows = within_cap(self.plan.rule.cap, names, complete, self._orders.get(distribution, ()))
                self.capped[distribution] = len(complete) - len(rows)
            bound = (zip(names, map(Constant, values), strict=True) for values in rows)
            found[distribution] = [Substitution(tuple(pairs)) for pairs in bound]
        return found

    def count_answer(self, inquiry: Inquiry, answer: QuestionAnswer, sent: int) -> None:
        """Count a question once for each step and once for the rule. `sent`: those of its calls that count for it."""
        if (self.step_number, inquiry) not in self._by_step:
            self._by_step.add((self.step_number, inquiry))
            self.account_now.add(answer.account)
        if inquiry in self.questions:
            return
        self.questions.add(inquiry)
        self.calls += sent
        self.hits += answer.calls - sent
        self.verdicts.add(answer.verdicts)
        if not answer.verdicts:
            merge(self.gates, answer.gates)

    def _decision(self, gate: Gate, beam: Beam, distribution: Distribution, verdict: _Verdict) -> Decision:
        subject, rule = substitution_subject(zip(self.names, beam.values, strict=True)), self.plan.rule.name
        accepted, reason, score, limit = verdict
        return Decision(
            self.run_id, gate.name, subject, accepted, score, limit, reason, rule, distribution, self.step_number
        )

    def _now(self) -> SearchStep:
        return self.plan.steps[self.step_number]


def _bound(atom: Atom, names: Sequence[str], beam: Beam) -> Atom:
    """The atom with the values of a beam."""
    return atom.replaced(dict(zip(names, map(Constant, beam.values), strict=True)))
