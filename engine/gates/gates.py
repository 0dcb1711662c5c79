"""The gates: why a proposed value, or a partial substitution, is rejected, in the order in which they decide.

`GATES` is the whole list. The search, its counts and tables, the report of a run, the card of a dataset and the options
of the command line read names and order from it. A new gate is a `Gate` and its line in `GATES`:

    def _too_long(candidate: Candidate, _: QuestionGates) -> str | None:
        return "is longer than 40 characters" if len(candidate.raw) > 40 else None

    LENGTH = Gate("length", _too_long)

Models score, gates decide. Nothing here asks a model or stores anything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Value
from hapax.kb.exchange.values import encode_value
from hapax.kb.records import Candidate, Decision
from hapax.llm_oracle.questions.prompts import fact_claim, type_claim

# --- thresholds -------------------------------------------------------------------------------------------------------

START = 0.85
STEP = 0.05
"""The LINK paper's start and step of the critic's threshold (appendix C)."""

TYPE_FLOOR = 0.65
"""The LINK paper's lowest threshold for data types (appendix C)."""

FACT_FLOOR = 0.70
"""Hapax's lowest threshold for facts, a step above that for types, because critics judge facts worse (appendix C).

The paper has none, so that its threshold may fall until a critic of pure noise passes everything. With the embedded
model, whose P(yes) are mostly near 0 or 1, the best of a question without a true value reaches 0.69.
"""

_DIGITS = 9
"""Digits to which thresholds are rounded: 0.85 - 0.05 would otherwise be 0.7999999999999999."""


@checked
@dataclass(frozen=True, slots=True)
class CriticRule:
    """The rule by which a threshold moves (LINK paper, appendix C).

    It begins at `start`. Each call that leaves nothing accepted lowers it by one step, until something is accepted.
    From then on each call whose best score reaches one step more raises it by that step.

    `fixed`: it does not move. `released`: LINK's released code, which sets it by the best score of the first call, at
    most to `start`. `falls_at_end`: if a question ends with nothing accepted, it goes on falling to the floor, and the
    stored scores are compared again. A question has too few calls for a modest critic otherwise.

    `str()` and `parse` write and read it as the options of the command line do. Raises HapaxError unless
    0 <= floor <= start <= cap <= 1 and the step is above 0.
    """

    start: float = START
    step: float = STEP
    floor: float = 0.0
    cap: float = 1.0
    fixed: bool = False
    released: bool = False
    falls_at_end: bool = False

    def __post_init__(self) -> None:
        # Negated, so that NaN is refused too.
        if not 0.0 <= self.floor <= self.start <= self.cap <= 1.0:
            numbers = f"floor {self.floor:g}, start {self.start:g} and cap {self.cap:g}"
            raise HapaxError(f"A threshold has {numbers}. Choose 0 <= floor <= start <= cap <= 1.")
        if not self.step > 0.0:
            raise HapaxError(f"The step of a threshold is {self.step:g}. Set it above 0.")

    @classmethod
    @checked
    def at(cls, value: float) -> CriticRule:
        """A threshold that does not move."""
        return cls(value, floor=value, fixed=True)

    @classmethod
    @checked
    def parse(cls, text: str) -> CriticRule:
        """The rule that a text states: `0.75` is a fixed threshold, `start=0.8,floor=0.6` a moving one.

        Omitted parts have Hapax's defaults. Raises HapaxError for any other text.
        """
        try:
            if "=" not in text:
                return cls.at(float(text))
            pairs = [assignment.split("=") for assignment in text.split(",")]
            numbers = {name.strip(): float(number) for name, number in pairs}
        except ValueError:  # of `float`, or of a pair that is none
            numbers, pairs = {}, []
        if not numbers or not set(numbers) <= set(_PARTS) or len(numbers) < len(pairs):
            parts = ",".join(f"{part}=NUMBER" for part in _PARTS)
            raise HapaxError(f"{text!r} is not a threshold. Give a number such as 0.75, or some of {parts}.")
        # The usual start gives way to a given floor or cap, and the usual floor to a given start.
        usual = min(numbers.get("cap", 1.0), max(START, numbers.get("floor", 0.0)))
        start = numbers.get("start", usual)
        floor = numbers.get("floor", min(FACT_FLOOR, start))
        return cls(start, numbers.get("step", STEP), floor, numbers.get("cap", 1.0), falls_at_end=True)

    def __str__(self) -> str:
        if self.fixed:
            return format(self.start, ".12g")
        return ",".join(f"{part}={getattr(self, part):.12g}" for part in _PARTS)


FactThreshold: TypeAlias = Annotated[
    CriticRule | None,
    Option(
        "P(yes) that facts need: a number, or start, step, floor and cap of a moving threshold. "
        " [default: start=0.85,step=0.05,floor=0.7,cap=1]",
        metavariable="P|NAME=P,...",
        read=CriticRule.parse,
        in_any_folder=True,
    ),
]

TypeThreshold: TypeAlias = Annotated[
    CriticRule | None,
    Option(
        "P(yes) that the data types of values need, in the same form.  [default: 0.65]",
        metavariable="P|NAME=P,...",
        read=CriticRule.parse,
        in_any_folder=True,
    ),
]


_PARTS = ("start", "step", "floor", "cap")
"""Numbers of a moving threshold that a text may state."""

DEFAULT_RULE = CriticRule(floor=FACT_FLOOR, falls_at_end=True)
"""Hapax's own rule for facts."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The score that is accepted now. Once `is_set`, it never falls."""

    value: float
    is_set: bool = False

    def after(self, scores: Sequence[float], earlier: Sequence[float], rule: CriticRule) -> Threshold:
        """The threshold after one call's scores; only their maximum counts, so their order does not.

        `earlier`: scores of the calls before, which a lowered threshold may still accept.
        """
        # A call without scores says nothing about the critic, so it changes nothing.
        if rule.fixed or not scores:
            return self
        if rule.released:
            # LINK's own floor of floats: 0.75 // 0.05 is 14.0, so that 0.75 reaches 0.7. A better call raises it.
            multiple = round(max(scores) // rule.step * rule.step, _DIGITS)
            reached = max(rule.floor, min(rule.start, multiple), self.value if self.is_set else 0.0)
            return Threshold(reached, is_set=True)
        if self.is_set:
            raised = round(self.value + rule.step, _DIGITS)
            # It rises only if the best score reaches the higher threshold and the cap allows it.
            return Threshold(raised, is_set=True) if max(scores) >= raised <= rule.cap else self
        best = max((*scores, *earlier))
        if best >= self.value:
            return Threshold(self.value, is_set=True)
        lowered = max(rule.floor, round(self.value - rule.step, _DIGITS))
        return Threshold(lowered, is_set=best >= lowered)

    def at_end(self, scores: Sequence[float], rule: CriticRule) -> Threshold:
        """The threshold at the end of a question with these scores in all: lower if nothing reached it so far."""
        if self.is_set or rule.fixed or not rule.falls_at_end or not scores:
            return self
        best, value = max(scores), self.value
        while best < value > rule.floor:
            value = max(rule.floor, round(value - rule.step, _DIGITS))
        return Threshold(value, is_set=best >= value)


ROSE = "which rose after it was accepted"
"""End of the reason where a threshold that rose rejects what it had accepted."""

NOTHING_TO_JUDGE = "nothing to judge"

Scores = Mapping[str, float]
"""Scores of one candidate by name of the gate; a gate that has nothing to judge in it has none."""


def _below(score: float, threshold: float) -> str:
    """A score and the threshold above it, with as many digits as tell them apart."""
    digits = 2
    while round(threshold, digits) <= round(score, digits + 1) and digits < 15:
        digits += 1
    return f"{score:.{digits + 1}f} is below the threshold {threshold:.{digits}f}"


def substitution_subject(bindings: Iterable[tuple[str, Value]]) -> str:
    """A substitution as one canonical text: JSON, names in order."""
    # Sorted by name alone: values of different types have no order.
    pairs = sorted(bindings, key=lambda binding: binding[0])
    return f"[{','.join(f'[{encode_value(name)},{encode_value(value)}]' for name, value in pairs)}]"


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scoring of values by a gate: the lowest P(yes) that the critic gives to claims about a value.

    `claims` makes the claims from the value, its data type and the atoms that it completes; none: nothing to judge.
    `measure`: name under which the scores are stored. `condition`: what is probable, as in P(yes). `rule`: the
    threshold's, unless the settings have another. `screened`: only values that pass the gates before move the
    threshold.
    """

    measure: str
    condition: str
    claims: Callable[[Value, str, Sequence[Atom], Library], Sequence[str]]
    rule: CriticRule = DEFAULT_RULE
    screened: bool = True


@dataclass(frozen=True, slots=True)
class Gate:
    """A reason to reject. Equal names are the same gate in every knowledge base, so a name never changes.

    A gate on values has an `objection`, which returns the reason to reject a candidate, or a `scoring`; consistency has
    neither, because the facts of all questions decide together. Without `on_values`, the search itself decides which
    partial substitutions pass. `switch`: help of the option `--no-NAME`, if there is one. `in_tables`: shown in
    the tables of rules.
    """

    name: str
    objection: Callable[[Candidate, QuestionGates], str | None] | None = None
    scoring: Scoring | None = None
    switch: str = ""
    on_values: bool = True
    in_tables: bool = True


@dataclass(frozen=True, slots=True)
class GateCount:
    """Number of subjects that a gate judged, and of those that passed."""

    accepted: int = 0
    judged: int = 0

    def __add__(self, other: GateCount) -> GateCount:
        return GateCount(self.accepted + other.accepted, self.judged + other.judged)

    @property
    def share(self) -> float | None:
        """Share that passed; None where nothing was judged."""
        return self.accepted / self.judged if self.judged else None


# --- the gates -------------------------------------------------------------------------------------------------------


def _unreadable(candidate: Candidate, _: QuestionGates) -> str | None:
    return candidate.rejected_by_parser


def _disagreeing(candidate: Candidate, question: QuestionGates) -> str | None:
    if not question.agreed:
        return "the answers to a question with one right value differ"
    # Only numbers can agree without being equal.
    if question.taken is not None and candidate.value != question.taken and type(candidate.value) is not str:
        return f"agrees within the tolerance with {question.taken}, which came first and is taken"
    return None


TYPE_MEASURE = "type_probability"
"""Name under which scores of claims about data types are stored."""


def _type_claims(value: Value, data_type: str, _: Sequence[Atom], library: Library) -> Sequence[str]:
    # The parser has read a number as a number already: there is nothing left to doubt.
    return () if library.is_numeric(data_type) else (type_claim(str(value), data_type),)


def _fact_claims(_: Value, __: str, atoms: Sequence[Atom], library: Library) -> Sequence[str]:
    return [fact_claim(atom, library) for atom in atoms]


# Can the line be read as a new value?
PARSER = Gate("parser", _unreadable, in_tables=False)
# Do the answers to a question with one right value agree?
AGREEMENT = Gate("agreement", _disagreeing, in_tables=False)
# Is it a value of the data type?
TYPE = Gate(
    "type",
    scoring=Scoring(
        TYPE_MEASURE,
        "of its type",
        _type_claims,
        CriticRule.at(TYPE_FLOOR),
        # LINK moves this threshold by every proposed value, even where the fact is judged first.
        screened=False,
    ),
    in_tables=False,
)
# Is the fact true? It also judges single facts that no question proposed, and premises about values that were found.
CRITIC = Gate(
    "critic", scoring=Scoring("probability", "true", _fact_claims), switch="Switch the critic gate off (ablation)."
)
# Does the fact break no declaration, alone or together with surer facts?
CONSISTENCY = Gate("consistency", in_tables=False)
# Is the comparison true?
COMPUTED = Gate("computed", on_values=False, in_tables=False)
# Can the premises that need no model hold, by given facts and the comparisons?
GIVEN = Gate("given", on_values=False, in_tables=False)
# Does the premise follow by other rules?
DERIVED = Gate("derived", on_values=False, in_tables=False)
# Is the substitution among the likeliest (head) or the least likely (long tail)?
LIKELIHOOD = Gate("likelihood", on_values=False, switch="Rank at random (ablation).")

GATES: tuple[Gate, ...] = (PARSER, AGREEMENT, TYPE, CRITIC, CONSISTENCY, COMPUTED, GIVEN, DERIVED, LIKELIHOOD)

REORDERED: Mapping[str | None, tuple[Gate, ...]] = {"released": (CRITIC, TYPE)}
"""Gates that take each other's places in this order under `--compat`: LINK's released code asks for the fact first."""


def gates_in_order(compat: str | None = None) -> tuple[Gate, ...]:
    """All gates in the order in which a value comes to them under `--compat`."""
    reordered = REORDERED.get(compat, ())
    # Each of the reordered gates gets the place where `GATES` has one of them.
    swapped = iter(reordered)
    # LINK has no declarations, so that nothing can be inconsistent.
    gates = [gate for gate in GATES if compat is None or gate is not CONSISTENCY]
    return tuple(next(swapped) if gate in reordered else gate for gate in gates)


# --- judging the values of one question ------------------------------------------------------------------------------


class QuestionGates:
    """The gates on the values of one question. Thresholds move with each call, so that a verdict may change later.

    `rules`: of thresholds by gate, where they differ from the gate's own. `prior`: by gate, the scores of the values
    before in the beam, which LINK's released code averages with the new one. `agreed`: all samples of a question with
    one right value gave the same value, or one within the predicate's tolerance; `taken` is then the first one.
    """

    def __init__(
        self,
        order: Sequence[Gate] | None = None,
        rules: Mapping[str, CriticRule] | None = None,
        prior: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        gates = gates_in_order() if order is None else order
        self.order = [gate for gate in gates if gate.on_values]
        self.agreed = True
        self.taken: Value | None = None
        self.objections: dict[tuple[str, Candidate], str] = {}
        """Why a gate rejects a candidate whatever its scores, by the gate's name; set by those who ask and compare."""
        self.scores: dict[Candidate, Scores] = {}
        self.accepted: list[Candidate] = []
        """Candidates that passed all gates when they last came through them, in the order they came."""
        self._prior = prior or {}
        self._rules: dict[str, CriticRule] = {}
        for gate in self.order:
            if gate.scoring is not None:
                self._rules[gate.name] = (rules or {}).get(gate.name, gate.scoring.rule)
        self.thresholds = {name: Threshold(rule.start, is_set=rule.fixed) for name, rule in self._rules.items()}
        self._once_accepted: set[Candidate] = set()

    def add(self, scores: Mapping[Candidate, Scores]) -> int:
        """Take the scored candidates of one call and return how many of them are accepted now."""
        self.scores.update(scores)
        self._sift(scores)
        self._once_accepted.update(self.accepted)
        return sum(candidate in scores for candidate in self.accepted)

    def end(self) -> None:
        """Lower the thresholds that no value of the question reached, as far as their rules allow it."""
        self._sift(None)

    def _sift(self, new: Mapping[Candidate, Scores] | None) -> None:
        """Send all values through the gates in order, and move each threshold by the scores that come to its gate.

        `new`: the values of the last call; None at the end of the question.
        """
        passing = self.scores
        for gate in self.order:
            if gate.scoring is not None:
                judged = self._judged(gate, passing if gate.scoring.screened else self.scores)
                threshold, rule = self.thresholds[gate.name], self._rules[gate.name]
                if new is None:
                    moved = threshold.at_end(list(judged.values()), rule)
                else:
                    of_call = [score for candidate, score in judged.items() if candidate in new]
                    earlier = [score for candidate, score in judged.items() if candidate not in new]
                    moved = threshold.after(of_call, earlier, rule)
                self.thresholds[gate.name] = moved
            passing = {candidate: own for candidate, own in passing.items() if self._admits(gate, candidate, own)}
        self.accepted = list(passing)

    def _judged(self, gate: Gate, scores: Mapping[Candidate, Scores]) -> dict[Candidate, float]:
        """The scores that the gate compares with its threshold, of candidates that have one."""
        found = {candidate: self._score(gate, own) for candidate, own in scores.items()}
        return {candidate: score for candidate, score in found.items() if score is not None}

    def is_hopeless(self, gate: Gate, scores: Scores) -> bool:
        """True if the gate's threshold cannot fall to its score."""
        score = self._score(gate, scores)
        return score is not None and score < self._rules[gate.name].floor

    @property
    def forbidden(self) -> list[Candidate]:
        """Candidates that the next prompt names as not to be generated, under `--compat`."""
        return self.accepted

    def decisions(self, candidates: Iterable[Candidate], run_id: str) -> list[Decision]:
        """The verdict on each candidate: the first gate that rejects it, or the last one that had a score."""
        return [self._decision(candidate, run_id) for candidate in candidates]

    def _decision(self, candidate: Candidate, run_id: str) -> Decision:
        passed: Decision | None = None
        for gate in self.order:
            reason = self._objection(gate, candidate)
            if reason is not None:
                return Decision(run_id, gate.name, candidate.id, False, None, None, reason)
            score = self._score(gate, self.scores.get(candidate, {}))
            if score is None or gate.scoring is None:
                continue
            threshold, condition = self._threshold(gate, candidate), gate.scoring.condition
            if score < threshold:
                reason = f"P({condition}) {_below(score, threshold)}"
                if candidate in self._once_accepted:
                    reason += f", {ROSE}"
                return Decision(run_id, gate.name, candidate.id, False, score, threshold, reason)
            reason = f"P({condition}) {score:.3f} reaches {threshold:.2f}"
            passed = Decision(run_id, gate.name, candidate.id, True, score, threshold, reason)
        if passed is not None:
            return passed
        # A decision needs a gate: it is the first one that would have scored the value.
        first = next(iter(self.thresholds), self.order[0].name)
        return Decision(run_id, first, candidate.id, True, None, None, NOTHING_TO_JUDGE)

    def _admits(self, gate: Gate, candidate: Candidate, scores: Scores) -> bool:
        if self._objection(gate, candidate) is not None:
            return False
        score = self._score(gate, scores)
        return score is None or score >= self._threshold(gate, candidate)

    def _objection(self, gate: Gate, candidate: Candidate) -> str | None:
        """Why the gate rejects the candidate whatever its score; None if the score decides."""
        noted = self.objections.get((gate.name, candidate)) if self.objections else None
        return noted if noted or gate.objection is None else gate.objection(candidate, self)

    def _score(self, gate: Gate, scores: Scores) -> float | None:
        """The score that the gate compares with its threshold."""
        score, prior = scores.get(gate.name), self._prior.get(gate.name, ())
        # LINK's own sum: `fsum` would round differently, and a mean may lie on the threshold.
        return score if score is None or not prior else sum((*prior, score)) / (len(prior) + 1)

    def _threshold(self, gate: Gate, candidate: Candidate) -> float:
        """The threshold with which the candidate's score is compared now."""
        del candidate  # LINK's released code has one for each call
        return self.thresholds[gate.name].value


# --- counts ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class LastVerdicts:
    """The last verdict on each value where beams judge the same values apart, as under `--compat released`.

    A verdict that a value has had before is not stored again, so it is not the last one of the knowledge base either.
    """

    _stored: dict[tuple[str, str, bool], Decision] = field(default_factory=dict)

    def add(self, decisions: Iterable[Decision]) -> None:
        """Take further verdicts, in the order in which they are stored."""
        for decision in decisions:
            self._stored.setdefault((decision.subject, decision.gate, decision.accepted), decision)

    def by_gate(self, order: Sequence[Gate]) -> dict[str, GateCount]:
        """Accepted and judged values of each gate on values, each value counted once."""
        last = {decision.subject: decision for decision in self._stored.values()}
        return count_by_gate(last.values(), order) if last else {}


def count_by_gate(decisions: Collection[Decision], order: Sequence[Gate]) -> dict[str, GateCount]:
    """Accepted and judged values of each gate on values, by these decisions.

    A rejected value came to the gates up to the one that rejected it. An accepted one came to the gates up to the last
    that scored it, and to all that score nothing.
    """
    rejected = Counter(decision.gate for decision in decisions if not decision.accepted)
    scored = Counter(item.gate for item in decisions if item.accepted and item.score is not None)
    values_left = len(decisions)
    unscored = values_left - rejected.total() - scored.total()
    counts: dict[str, GateCount] = {}
    for gate in order:
        if gate.on_values:
            judged = values_left - (unscored if gate.scoring is not None else 0)
            counts[gate.name] = GateCount(judged - rejected[gate.name], judged)
            # The next gate sees only what this one let pass.
            values_left -= rejected[gate.name]
            # The decision names the last gate with a score: no later gate scored these values.
            unscored += scored[gate.name]
    return counts
