"""The beams of one rule: what each step asks, which values extend which beam, what is ranked, and what stays.

A `RuleSearch` asks nobody. It says what it needs (questions, ground atoms, texts) and is told the answers, so that the
search can put the needs of many rules into one batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from engine.gates import kept, random_score, repetition_penalty
from engine.inquiry import Answer, Inquiry, argument_name
from engine.report import GateCount, SearchSettings
from grammar.arithmetic import assigned, holds
from grammar.dependencies import SearchPlan, SearchStep
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Atom, Comparison, Constant, Literal, Substitution, Term, Value, Variable
from grammar.verbalize import literal_text
from kb.records import Decision, Distribution, Pattern, Question
from kb.values import encode_value
from llm_oracle.prompts import sentence, type_claim

ASKED = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)


class Origin(StrEnum):
    """Where a step's values come from."""

    MODEL = "model"
    GIVEN = "given"
    DERIVED = "derived"
    COMPUTED = "computed"


@dataclass(frozen=True, slots=True)
class Beam:
    """Values of the plan's variables so far, in the plan's order, and the distributions that keep it.

    `confidences` are P(yes) of the values, for LINK's accumulated confidence.
    """

    values: tuple[Value, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    confidences: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _BeamVerdict:
    accepted: bool
    reason: str
    score: float | None = None
    threshold: float | None = None


@dataclass(eq=False)
class RuleSearch:
    """One rule on its way through its plan. The steps go: `inquiries`, `extend`, `atoms`, `close`, `texts`, `rank`."""

    plan: SearchPlan
    library: Library
    settings: SearchSettings
    run_id: str
    step_number: int = 0
    beams: list[Beam] = field(default_factory=list)
    gates: dict[str, GateCount] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    cut: bool = False
    _texts: dict[tuple[int, tuple[Value, ...]], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beams = [Beam(distributions=self.settings.distributions)]

    @property
    def step(self) -> SearchStep | None:
        """The step to take now; None: the plan is over, or no beam is left."""
        return self.plan.steps[self.step_number] if self.step_number < len(self.plan.steps) and self.beams else None

    @property
    def names(self) -> list[str]:
        """The variables that the beams bind, the newest last."""
        return [step.variable.name for step in self.plan.steps[: self.step_number + 1]]

    # -- asking

    @property
    def origin(self) -> Origin:
        """Where the present step's values come from."""
        step = self._now()
        if step.assignment is not None:
            return Origin.COMPUTED
        literal = step.generators[0]
        if self.plan.rule.is_information(literal):
            return Origin.MODEL
        return origin_of(literal, self.library)

    def open_atoms(self) -> dict[Beam, Atom]:
        """The generator's atom for each beam, with the values that the beam has."""
        atom, names = self._now().generators[0].atom, self.names[:-1]
        return {beam: _substituted(atom, dict(zip(names, beam.values, strict=True))) for beam in self.beams}

    def inquiries(self) -> dict[Beam, Inquiry]:
        """What the present step asks the model, beam by beam; many beams ask the same."""
        if self.origin is not Origin.MODEL:
            return {}
        step = self._now()
        literals = self._asked_with(step)
        claimed = [literal for literal in literals if self._is_claimed(literal)]
        values = None
        if self.settings.compat == "released" and self.step_number == 0:
            values = 2 * self.settings.values_per_call
        found: dict[Beam, Inquiry] = {}
        for beam in self.beams:
            question = Question(
                tuple(self._pattern(one.atom, beam) for one in literals), step.variable.data_type, step.functional
            )
            prior = beam.confidences if self.settings.compat == "released" else ()
            found[beam] = Inquiry(question, tuple(self._pattern(one.atom, beam) for one in claimed), prior, values)
        return found

    def _asked_with(self, step: SearchStep) -> tuple[Literal, ...]:
        """The literals in the prompt: Hapax asks with the plan's first generator, LINK with all that have values."""
        if self.settings.compat is None:
            return step.generators[:1]
        rule = self.plan.rule
        joined = [literal for literal in rule.literals if not literal.negated and self._is_claimed_or_told(literal)]
        if self.step_number == 0 and not rule.conclusion.negated and self._is_claimed_or_told(rule.conclusion):
            joined.append(rule.conclusion)
        return tuple(joined) or step.generators[:1]

    def _is_claimed_or_told(self, literal: Literal) -> bool:
        """Whether the literal has the step's variable and otherwise only values and generic variables."""
        names = {variable.name for variable in literal.variables}
        known = {*self.names, *self.plan.rule.generic}
        asked = origin_of(literal, self.library) is Origin.MODEL or self.plan.rule.is_information(literal)
        return asked and self._now().variable.name in names and names <= known

    def _is_claimed(self, literal: Literal) -> bool:
        """Whether a value makes the literal ground, so that the critic judges it and a fact comes of it."""
        return {variable.name for variable in literal.variables} <= set(self.names)

    def _pattern(self, atom: Atom, beam: Beam) -> Pattern:
        bound = dict(zip(self.names, beam.values, strict=False))
        return Pattern(
            atom.predicate, tuple(self._argument(term, place, bound) for place, term in enumerate(atom.arguments))
        )

    def _argument(self, term: Term, place: int, bound: Mapping[str, Value]) -> Value | None:
        """A value, None at the free place, or the slot or `PersonX` that a prompt shows for other variables."""
        if isinstance(term, Constant):
            return term.value
        if term.name == self._now().variable.name:
            return None
        if term.name in bound:
            return bound[term.name]
        if term.name in self.plan.rule.generic:
            return "".join(term.data_type.split()) + term.name
        return f"[{argument_name(place)}]"

    # -- extending

    def extend(self, answers: Mapping[Beam, Answer]) -> None:
        """One beam for each accepted value of each beam's answer."""
        self.beams = [
            Beam(
                (*beam.values, judged.value),
                beam.distributions,
                beam.confidences if judged.probability is None else (*beam.confidences, judged.probability),
            )
            for beam in self.beams
            if beam in answers
            for judged in answers[beam].accepted
        ]
        self.cut = self.cut or not all(answer.complete for answer in answers.values())

    def extend_with(self, values: Mapping[Beam, Sequence[Value]]) -> None:
        """One beam for each value that facts or rules give."""
        self.beams = [
            Beam((*beam.values, value), beam.distributions, beam.confidences)
            for beam in self.beams
            for value in values.get(beam, ())
        ]

    def compute(self) -> None:
        """Bind the step's variable by its equation; a beam for which it has no value ends."""
        assignment = self._now().assignment
        assert assignment is not None  # noqa: S101  `origin` said so
        before = self.names[:-1]
        values = {beam: assigned(assignment.right, dict(zip(before, beam.values, strict=True))) for beam in self.beams}
        self.extend_with({beam: [] if value is None else [value] for beam, value in values.items()})

    # -- closing

    def compare(self) -> None:
        """The comparisons that have all their values now decide, by arithmetic."""
        comparisons = [item for item in self._now().closes if isinstance(item, Comparison)]
        names = self.names
        for item in comparisons:
            passed = [holds(item, dict(zip(names, beam.values, strict=True))) for beam in self.beams]
            self._drop("computed", passed, f"{item} does not hold")

    def checked(self) -> list[Literal]:
        """The constraint literals that have all their values now and that no question has judged."""
        asked = self._asked_with(self._now()) if self.origin is Origin.MODEL else self._now().generators[:1]
        return [
            item
            for item in self._now().closes
            if isinstance(item, Literal)
            and not self.plan.rule.is_information(item)
            and not (item in asked and self._is_claimed(item) and self._now().assignment is None)
        ]

    def ground(self, literal: Literal) -> list[Atom]:
        """The literal's atom for each beam."""
        names = self.names
        return [_substituted(literal.atom, dict(zip(names, beam.values, strict=True))) for beam in self.beams]

    def close(self, literal: Literal, passed: Sequence[bool], gate: str) -> None:
        """Keep the beams for which the literal holds."""
        self._drop(gate, passed, f"{literal} does not hold")

    def _drop(self, gate: str, passed: Sequence[bool], reason: str) -> None:
        self.count(gate, GateCount(sum(passed), len(passed)))
        verdict = _BeamVerdict(False, reason)
        for beam, stays in zip(self.beams, passed, strict=True):
            if not stays:
                self.decisions += [self._decision(gate, beam, one, verdict) for one in beam.distributions]
        self.beams = [beam for beam, stays in zip(self.beams, passed, strict=True) if stays]

    # -- ranking

    @property
    def is_ranked(self) -> bool:
        """Whether the likelihood gate acts now.

        Where the next step only adds a number to each beam (the year of an invention), it waits for it: the comparisons
        that the number decides should choose among all beams, not among those that a cut has left.
        """
        if self.settings.compat == "released":
            return self.step_number > 0
        following = self.plan.steps[self.step_number + 1 : self.step_number + 2]
        waits = any(one.functional and self.library.is_numeric(one.variable.data_type) for one in following)
        return self.settings.compat == "paper" or not waits

    def texts(self) -> dict[Beam, str]:
        """What is ranked, joined with "and".

        LINK (section 2.3) ranks every atom that has its values, the conclusion last. Hapax ranks the constraint atoms
        alone: what a sentence about PersonX adds is the same for all values, and noise to a model that never read one.
        Where no atom has all its values yet, the newest value is ranked as what it is: `Saffron is an ingredient.`
        """
        rule, names = self.plan.rule, self.names
        told = (*rule.literals, rule.conclusion)
        ranked = ranked_literals(rule, self.library, names, bool(self.settings.compat))
        literals = [
            (told.index(literal), literal, [names.index(v.name) for v in literal.variables if v.name in names])
            for literal in ranked
        ]
        if not literals:
            data_type = self._now().variable.data_type
            return {beam: type_claim(str(beam.values[-1]), data_type) for beam in self.beams}
        return {beam: self._text(beam, literals, names) for beam in self.beams}

    def _text(self, beam: Beam, literals: Sequence[tuple[int, Literal, list[int]]], names: Sequence[str]) -> str:
        parts = []
        for number, literal, places in literals:
            key = (number, tuple(beam.values[place] for place in places))
            if key not in self._texts:
                bound = {names[place]: Constant(beam.values[place]) for place in places}
                self._texts[key] = literal_text(literal, self.library, bound, self.plan.rule.generic)
            parts.append(self._texts[key])
        return sentence(" and ".join(parts))

    def rank(self, texts: Mapping[Beam, str], scores: Mapping[str, float]) -> None:
        """Keep each distribution's share of the pool of all beams; texts without a score fall out."""
        pool = [beam for beam in self.beams if texts[beam] in scores]
        self.cut = self.cut or len(pool) < len(self.beams)
        stays: dict[tuple[Value, ...], list[Distribution]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in pool if distribution in beam.distributions]
            ranked = [self._score(beam, scores[texts[beam]], distribution) for beam in own]
            self._keep(distribution, own, ranked, stays)
        self._advance(stays)

    def advance_unranked(self) -> None:
        """Keep the first beams as they came, at most the beam's width in each distribution."""
        stays: dict[tuple[Value, ...], list[Distribution]] = {}
        for distribution in self.settings.distributions:
            own = [beam for beam in self.beams if distribution in beam.distributions]
            for beam in own[: self.settings.beam]:
                stays.setdefault(beam.values, []).append(distribution)
        self._advance(stays)

    def _score(self, beam: Beam, score: float, distribution: Distribution) -> float:
        if self.settings.likelihood == "random":
            return random_score(self.settings.seed, self.plan.rule.name, distribution.value, beam.values)
        if distribution is Distribution.HEAD:
            return score - repetition_penalty(beam.values[-1], beam.values[:-1])
        return score

    def _keep(
        self,
        distribution: Distribution,
        beams: Sequence[Beam],
        scores: Sequence[float],
        stays: dict[tuple[Value, ...], list[Distribution]],
    ) -> None:
        share, width = self.settings.keep_share, self.settings.beam
        chosen = kept(scores, [beam.values for beam in beams], distribution, share, width)
        for place in chosen:
            stays.setdefault(beams[place].values, []).append(distribution)
        self.count("likelihood", GateCount(len(chosen), len(beams)))
        limit = scores[chosen[-1]] if chosen else None
        among = set(chosen)
        side = "likeliest" if distribution is Distribution.HEAD else "least likely"
        reason = f"among the {len(chosen)} {side} of {len(beams)}"
        for place, beam in enumerate(beams):
            inside = place in among
            verdict = _BeamVerdict(inside, reason if inside else f"not {reason}", scores[place], limit)
            self.decisions.append(self._decision("likelihood", beam, distribution, verdict))

    def _advance(self, stays: Mapping[tuple[Value, ...], Sequence[Distribution]]) -> None:
        self.beams = [
            Beam(beam.values, tuple(stays[beam.values]), beam.confidences)
            for beam in self.beams
            if beam.values in stays
        ]
        self.step_number += 1

    # -- results

    def substitutions(self) -> dict[Distribution, list[Substitution]]:
        """What each distribution kept, once the plan is over."""
        names = [step.variable.name for step in self.plan.steps]
        complete = [beam for beam in self.beams if len(beam.values) == len(names)]
        return {
            distribution: [
                Substitution(tuple((name, Constant(value)) for name, value in zip(names, beam.values, strict=True)))
                for beam in complete
                if distribution in beam.distributions
            ]
            for distribution in self.settings.distributions
        }

    def count(self, gate: str, more: GateCount) -> None:
        """Add to a gate's count."""
        self.gates[gate] = self.gates.get(gate, GateCount()) + more

    def _decision(self, gate: str, beam: Beam, distribution: Distribution, verdict: _BeamVerdict) -> Decision:
        subject = substitution_subject(zip(self.names, beam.values, strict=True))
        return Decision(
            self.run_id,
            gate,
            subject,
            verdict.accepted,
            verdict.score,
            verdict.threshold,
            verdict.reason,
            self.plan.rule.name,
            distribution,
            self.step_number,
        )

    def _now(self) -> SearchStep:
        return self.plan.steps[self.step_number]


def ranked_literals(rule: Rule, library: Library, names: Collection[str], compat: bool) -> list[Literal]:
    """What of a rule is ranked once the named variables have values; `RuleSearch.texts` says why."""

    def is_asked(literal: Literal) -> bool:
        """Whether a model says that it holds: neither told of PersonX, nor denied, computed or derived."""
        kind = library.signature(literal.atom.indicator).kind
        return kind in ASKED and not literal.negated and not rule.is_information(literal)

    told = [*rule.literals, rule.conclusion] if compat else [one for one in rule.literals if is_asked(one)]
    known = {*names, *rule.generic}
    return [one for one in told if {variable.name for variable in one.variables} <= known]


def ranked_text(rule: Rule, library: Library, bound: Mapping[str, Constant], compat: bool) -> str:
    """The text by which one substitution is ranked; `bound` in the plan's order, the newest value last."""
    literals = ranked_literals(rule, library, bound, compat)
    if literals:
        return sentence(" and ".join(literal_text(one, library, bound, rule.generic) for one in literals))
    newest = list(bound)[-1]
    data_type = next(variable.data_type for variable in rule.searched if variable.name == newest)
    return type_claim(str(bound[newest].value), data_type)


def origin_of(literal: Literal, library: Library) -> Origin:
    """Where the literal's truth comes from; a predicate that is both asked and derived is asked."""
    indicator = literal.atom.indicator
    signature = library.signature(indicator)
    if indicator in library.derived and not (signature.declared and signature.kind in ASKED):
        return Origin.DERIVED
    if signature.kind is PredicateKind.COMPUTED:
        return Origin.COMPUTED
    return Origin.GIVEN if signature.kind is PredicateKind.GIVEN else Origin.MODEL


def _substituted(atom: Atom, bound: Mapping[str, Value]) -> Atom:
    arguments = (
        Constant(bound[term.name]) if isinstance(term, Variable) and term.name in bound else term
        for term in atom.arguments
    )
    return Atom(atom.predicate, tuple(arguments))


def substitution_subject(bindings: Iterable[tuple[str, Value]]) -> str:
    """A substitution as one canonical text: JSON, names in order."""
    pairs = (f"[{encode_value(name)},{encode_value(value)}]" for name, value in sorted(bindings, key=_name))
    return f"[{','.join(pairs)}]"


def _name(binding: tuple[str, Value]) -> str:
    return binding[0]
