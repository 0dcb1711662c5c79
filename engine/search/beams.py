"""The beams of one rule: the questions of each step, the extension of beams by values, their ranking and selection.

A `RuleSearch` asks no model. It states what it needs (questions, ground atoms, texts) and receives the answers, so that
the search can put the needs of many rules into one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from hapax.engine.search.account import PremiseLoss, StepAccount
from hapax.engine.search.gates import COMPUTED, CRITIC, LIKELIHOOD, TYPE, Gate, GateCount
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer, argument_name
from hapax.engine.search.ranking import (
    PERSON,
    equal_texts,
    kept,
    kept_at_ends,
    random_score,
    released_penalty,
    repetition_penalty,
)
from hapax.engine.search.released import FIRST_VALUES, first_calls, released_literals, released_text
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.arithmetic import assigned, holds
from hapax.grammar.dependencies import SearchPlan, SearchStep
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, Comparison, Constant, Literal, Substitution, Term, Value, Variable
from hapax.grammar.verbalize import literal_text
from hapax.kb.records import AtomPattern, Decision, Distribution, Question
from hapax.kb.values import encode_value
from hapax.llm_oracle.prompts import sentence, type_claim

ASKED = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
"""Kinds of predicates whose facts come from a model."""


class Origin(StrEnum):
    """Source of a step's values."""

    MODEL = "model"
    GIVEN = "given"
    DERIVED = "derived"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial substitution: values of the plan's first variables, in order, and the distributions that keep it.

    `facts`, `types`: P(yes) of the claims about the values and about their types, as far as there are any, for the
    confidence that LINK's released code accumulates.
    """

    values: tuple[Value, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    facts: tuple[float, ...] = ()
    types: tuple[float, ...] = ()

    def extended(self, value: Value, fact: float | None = None, type_score: float | None = None) -> Beam:
        """The beam with one more value and its scores."""
        facts = self.facts if fact is None else (*self.facts, fact)
        types = self.types if type_score is None else (*self.types, type_score)
        return Beam((*self.values, value), self.distributions, facts, types)


_Kept = dict[tuple[Value, ...], list[Distribution]]
"""Distributions that keep a beam, by its values."""


@dataclass(eq=False)
class RuleSearch:
    """The search of one rule. Each step of its plan has three phases:

    - extend: `inquiries` states the questions, `extend`, `extend_with` or `compute` takes the values;
    - close: `compare`, then `checked` and `ground` state the atoms to judge, and `close` takes the verdicts;
    - rank: `texts` states what is ranked, and `rank` or `advance_unranked` ends the step.
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
    capped: dict[Distribution, int] = field(default_factory=dict)
    """By distribution, the substitutions that the rule's `@most` left out."""
    _texts: dict[tuple[Literal, tuple[Value, ...]], str] = field(default_factory=dict)
    _orders: dict[Distribution, list[tuple[Value, ...]]] = field(default_factory=dict)
    """By distribution, the values of the beams that the last step kept, in the order of LINK's released code."""

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
            self.account.append(StepAccount(number, f"{variable.data_type} {variable.name}", self.origin.value))
        return self.account[-1]

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

    def open_atoms(self) -> dict[Beam, Atom]:
        """By beam, the current generator's atom with the beam's values in it."""
        atom, names = self._now().generators[0].atom, self.names[:-1]
        return {beam: _substituted(atom, dict(zip(names, beam.values, strict=True))) for beam in self.beams}

    def inquiries(self) -> dict[Beam, Inquiry]:
        """By beam, the question that gives it new values. Many beams have the same one."""
        if self.origin is not Origin.MODEL:
            return {}
        step = self._now()
        literals = self._asked_with(step)
        claimed = [literal for literal in literals if self._is_claimed(literal)]
        if self._is_asked_anew:
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
            askings[inquiry.question] += 1
            return replace(inquiry, variable=variable, repeat=askings[inquiry.question] - 1)
        prior = ((CRITIC.name, beam.facts), (TYPE.name, beam.types))
        if self.step_number > 0:
            return replace(inquiry, prior=prior, variable=variable)
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
        names = {variable.name for variable in literal.variables}
        known = {*self.names, *self.plan.rule.generic}
        asked = origin_of(literal, self.library) is Origin.MODEL or self.plan.rule.is_information(literal)
        return asked and self._now().variable.name in names and names <= known

    def _is_claimed(self, literal: Literal) -> bool:
        """True if a value makes the literal ground: then the critic judges it, and it becomes a fact."""
        return {variable.name for variable in literal.variables} <= set(self.names)

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
        """Replace each beam by one for each accepted value of its answer."""
        extended: list[Beam] = []
        for beam in self.beams:
            if beam in answers:
                types = answers[beam].types
                for value, probability in answers[beam].accepted.items():
                    extended.append(beam.extended(value, probability, types.get(value)))
        self._extended(_merged(extended) if self._is_asked_anew else extended)
        self.cut = self.cut or not all(answer.complete for answer in answers.values())

    def extend_with(self, values: Mapping[Beam, Sequence[Value]]) -> None:
        """Replace each beam by one for each value that facts or rules give it."""
        extended: list[Beam] = []
        for beam in self.beams:
            for value in values.get(beam, ()):
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

    def compare(self) -> None:
        """Drop the beams for which a comparison that has all its values now is false."""
        comparisons = [item for item in self._now().closes if isinstance(item, Comparison)]
        names = self.names
        for item in comparisons:
            passed = [holds(item, dict(zip(names, beam.values, strict=True))) for beam in self.beams]
            self._drop(COMPUTED, passed, item)

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
        return [_substituted(literal.atom, dict(zip(names, beam.values, strict=True))) for beam in self.beams]

    def close(self, literal: Literal, passed: Sequence[bool], gate: Gate, highest: float | None = None) -> None:
        """Drop the beams for which the literal does not hold. `passed` is in the order of the beams.

        `highest`: the highest P(yes) of those that do not pass.
        """
        self._drop(gate, passed, literal, highest)

    def _drop(
        self, gate: Gate, passed: Sequence[bool], premise: Literal | Comparison, highest: float | None = None
    ) -> None:
        self.count(gate.name, GateCount(sum(passed), len(passed)))
        self.account_now.fail(str(premise), PremiseLoss(len(passed) - sum(passed), gate.name, highest))
        reason = f"{premise} does not hold"
        left: list[Beam] = []
        for beam, is_kept in zip(self.beams, passed, strict=True):
            if is_kept:
                left.append(beam)
                continue
            for distribution in beam.distributions:
                self.decisions.append(self._decision(gate, beam, distribution, False, reason))
        self.beams = left

    # -- ranking

    @property
    def is_ranked(self) -> bool:
        """True if the likelihood gate ranks the beams of this step."""
        if self.settings.compat or self.step_number + 1 == len(self.plan.steps):
            return True
        # If the next step only adds a number to each beam (the year of an invention), ranking waits for it: the
        # comparisons that the number decides should choose among all beams, not among those that a cut has left.
        following = self.plan.steps[self.step_number + 1]
        return not (following.functional and self.library.is_numeric(following.variable.data_type))

    def texts(self) -> dict[Beam, str]:
        """By beam, the text by which it is ranked: the ranked literals joined with "and".

        Until a literal has all its values, the newest value is ranked by itself: `Saffron is an ingredient.`
        """
        ranked = ranked_literals(self.plan.rule, self.library, self.names, self.settings.compat)
        if not ranked:
            data_type = self._now().variable.data_type
            return {beam: type_claim(str(beam.values[-1]), data_type) for beam in self.beams}
        parts: dict[Beam, list[str]] = {beam: [] for beam in self.beams}
        names = self.names
        for literal in ranked:
            positions = [names.index(variable.name) for variable in literal.variables if variable.name in names]
            for beam, texts in parts.items():
                texts.append(self._literal_text(literal, positions, beam))
        written = str if self.settings.is_released else sentence
        return {beam: written(" and ".join(texts)) for beam, texts in parts.items()}

    def _literal_text(self, literal: Literal, positions: Sequence[int], beam: Beam) -> str:
        """The literal in words; `positions` of its variables in the beam. Many beams share a text, so it is cached."""
        key = (literal, tuple(beam.values[position] for position in positions))
        if key not in self._texts:
            bound = {self.names[position]: Constant(beam.values[position]) for position in positions}
            if self.settings.is_released:
                bound |= dict.fromkeys(self.plan.rule.generic, Constant(PERSON))
            self._texts[key] = literal_text(literal, self.library, bound, self.plan.rule.generic)
        return self._texts[key]

    def rank(self, texts: Mapping[Beam, str], scores: Mapping[str, float]) -> None:
        """Keep each distribution's share of its beams. Beams whose text has no score are dropped."""
        # The budget left these texts without a score.
        pool = [beam for beam in self.beams if texts[beam] in scores]
        self.cut = self.cut or len(pool) < len(self.beams)
        account = self.account_now
        account.unranked += len(self.beams) - len(pool)
        if self.settings.likelihood == "model":
            ranked = {texts[beam]: scores[texts[beam]] for beam in pool}
            account.texts += len(ranked)
            account.equal += equal_texts(ranked)
        pools: dict[Distribution, dict[Beam, float]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in pool if distribution in beam.distributions]
            pools[distribution] = {beam: self._score(beam, scores[texts[beam]], distribution) for beam in own}
        self.beams = pool
        left: _Kept = {}
        for distribution, chosen in self._chosen(pools).items():
            self._judge_ranked(distribution, pools[distribution], chosen)
            for beam in chosen:
                left.setdefault(beam.values, []).append(distribution)
            order = [beam.values for beam in chosen]
            # LINK's released code takes head and long tail from one list of the first variable's values.
            is_reversed = self.step_number == 0 and distribution is Distribution.LONG_TAIL
            self._orders[distribution] = order[::-1] if is_reversed else order
        self._advance(left)

    def advance_unranked(self) -> None:
        """Keep the first beams of each distribution, as many as the beam is wide."""
        left: _Kept = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in self.beams if distribution in beam.distributions]
            for beam in own[: self.settings.beam]:
                left.setdefault(beam.values, []).append(distribution)
        self._advance(left)

    def _score(self, beam: Beam, score: float, distribution: Distribution) -> float:
        if self.settings.likelihood == "random":
            return random_score(self.settings.seed, self.plan.rule.name, distribution.value, beam.values)
        # The paper has no penalty; the released code ranks the first variable's values once for both distributions.
        if distribution is not Distribution.HEAD or self.settings.compat == "paper":
            return score
        if self.settings.is_released:
            return score - released_penalty(beam.values[-1], beam.values[:-1]) if self.step_number else score
        return score - repetition_penalty(beam.values[-1], beam.values[:-1])

    def _chosen(self, pools: Mapping[Distribution, Mapping[Beam, float]]) -> dict[Distribution, list[Beam]]:
        """The beams that the likelihood gate keeps in each distribution, best first."""
        share, width = self.settings.keep_share, self.settings.beam
        if self.settings.is_released and self.step_number == 0:
            share = 1.0  # the two ends of one list, each as wide as the beam
        if self.settings.compat is None:
            return kept_at_ends(pools, self._chance, share, width)
        chosen: dict[Distribution, list[Beam]] = {}
        for distribution, scores in pools.items():
            beams = list(scores)
            places = kept(list(scores.values()), [beam.values for beam in beams], distribution, share, width)
            chosen[distribution] = [beams[place] for place in places]
        return chosen

    def _chance(self, beam: Beam) -> float:
        """The beam's number for breaking ties, from 0 to 1: by its values, not by its place or its run."""
        return random_score(self.settings.seed, "tie", self.plan.rule.name, beam.values)

    def _judge_ranked(self, distribution: Distribution, scores: Mapping[Beam, float], chosen: Sequence[Beam]) -> None:
        """Count and note the likelihood gate's verdicts on the beams of a distribution."""
        self.count(LIKELIHOOD.name, GateCount(len(chosen), len(scores)))
        limit = scores[chosen[-1]] if chosen else None
        accepted = set(chosen)
        side = "likeliest" if distribution is Distribution.HEAD else "least likely"
        reason = f"among the {len(chosen)} {side} of {len(scores)}"
        for beam, score in scores.items():
            is_kept = beam in accepted
            text = reason if is_kept else f"not {reason}"
            if not is_kept and score == limit:
                text += "; chance chose among equal scores"
            decision = self._decision(LIKELIHOOD, beam, distribution, is_kept, text)
            self.decisions.append(replace(decision, score=score, threshold=limit))

    def _advance(self, left: _Kept) -> None:
        """Go to the next step with the kept beams, in the order they came."""
        account = self.account_now
        account.kept += sum(beam.values in left for beam in self.beams)
        account.cut += sum(beam.values not in left for beam in self.beams)
        self.beams = [
            replace(beam, distributions=tuple(left[beam.values])) for beam in self.beams if beam.values in left
        ]
        self.step_number += 1

    # -- results

    def substitutions(self) -> dict[Distribution, list[Substitution]]:
        """The complete substitutions that each distribution kept, once the plan is over, within the rule's cap."""
        names = [step.variable.name for step in self.plan.steps]
        found: dict[Distribution, list[Substitution]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in self.beams if distribution in beam.distributions and len(beam.values) == len(names)]
            found[distribution] = []
            for beam in self._within_cap(distribution, own):
                bindings = tuple((name, Constant(value)) for name, value in zip(names, beam.values, strict=True))
                found[distribution].append(Substitution(bindings))
        return found

    def _within_cap(self, distribution: Distribution, beams: Sequence[Beam]) -> list[Beam]:
        """The beams that the rule's `@most` keeps at this end, the best first; `capped` counts the others."""
        cap = self.plan.rule.cap
        if cap is None:
            return list(beams)
        names = [step.variable.name for step in self.plan.steps]
        places = [names.index(name) for name in cap.variables if name in names]
        ranks = {values: rank for rank, values in enumerate(self._orders.get(distribution, ()))}
        uses: Counter[tuple[int, Value]] = Counter()
        chosen = []
        # A last step that does not rank leaves the beams in the order in which they came.
        for beam in sorted(beams, key=lambda beam: ranks.get(beam.values, len(ranks))):
            keys = [(place, beam.values[place]) for place in places]
            if all(uses[key] < cap.count for key in keys):
                uses.update(keys)
                chosen.append(beam)
        self.capped[distribution] = len(beams) - len(chosen)
        return chosen

    def count(self, gate: str, more: GateCount) -> None:
        """Add a gate's counts."""
        self.gates[gate] = self.gates.get(gate, GateCount()) + more

    def _decision(self, gate: Gate, beam: Beam, distribution: Distribution, accepted: bool, reason: str) -> Decision:
        subject = substitution_subject(zip(self.names, beam.values, strict=True))
        rule = self.plan.rule.name
        return Decision(
            self.run_id, gate.name, subject, accepted, None, None, reason, rule, distribution, self.step_number
        )

    def _now(self) -> SearchStep:
        return self.plan.steps[self.step_number]


def _merged(beams: Sequence[Beam]) -> list[Beam]:
    """One beam for equal values, with the distributions of all."""
    merged: dict[tuple[Value, ...], Beam] = {}
    for beam in beams:
        known = merged.get(beam.values)
        distributions = beam.distributions if known is None else (*known.distributions, *beam.distributions)
        merged[beam.values] = replace(beam, distributions=distributions)
    return list(merged.values())


def ranked_literals(rule: Rule, library: Library, names: Collection[str], compat: str | None) -> list[Literal]:
    """The literals by which a rule's beams are ranked once the named variables have values, in the plan's order.

    LINK (section 2.3) ranks every literal that has its values, the conclusion last. Hapax leaves out all about PersonX:
    such a sentence adds the same to all values, and a model that never read one adds noise.
    """
    if compat == "released":
        return released_literals(rule, names)

    def is_ranked(literal: Literal) -> bool:
        is_asked = library.signature(literal.atom.indicator).kind in ASKED
        return is_asked and not literal.negated and not rule.is_information(literal)

    literals = [*rule.literals, rule.conclusion] if compat else filter(is_ranked, rule.literals)
    known = {*names, *rule.generic}
    return [literal for literal in literals if {variable.name for variable in literal.variables} <= known]


def ranked_text(rule: Rule, library: Library, bound: Mapping[str, Constant], compat: str | None) -> str:
    """The text by which a substitution is ranked. `bound` has the plan's order, the newest value last."""
    literals = ranked_literals(rule, library, bound, compat)
    if literals and compat == "released":
        return released_text(literals, library, rule, bound)
    if literals:
        return sentence(" and ".join(literal_text(literal, library, bound, rule.generic) for literal in literals))
    newest = list(bound)[-1]
    data_type = next(variable.data_type for variable in rule.searched if variable.name == newest)
    return type_claim(str(bound[newest].value), data_type)


def origin_of(literal: Literal, library: Library) -> Origin:
    """Source of the literal's truth. A predicate that is both asked and derived is asked."""
    indicator = literal.atom.indicator
    signature = library.signature(indicator)
    if indicator in library.derived and not (signature.declared and signature.kind in ASKED):
        return Origin.DERIVED
    if signature.kind is PredicateKind.COMPUTED:
        return Origin.COMPUTED
    if signature.kind is PredicateKind.GIVEN and indicator in library.generating:
        return Origin.DERIVED  # further facts follow by its declared properties
    return Origin.GIVEN if signature.kind is PredicateKind.GIVEN else Origin.MODEL


def _substituted(atom: Atom, bound: Mapping[str, Value]) -> Atom:
    arguments = (
        Constant(bound[term.name]) if isinstance(term, Variable) and term.name in bound else term
        for term in atom.arguments
    )
    return Atom(atom.predicate, tuple(arguments))


def substitution_subject(bindings: Iterable[tuple[str, Value]]) -> str:
    """A substitution as one canonical text: JSON, names in order."""
    # Sorted by name alone: values of different types have no order.
    pairs = sorted(bindings, key=lambda binding: binding[0])
    return f"[{','.join(f'[{encode_value(name)},{encode_value(value)}]' for name, value in pairs)}]"
