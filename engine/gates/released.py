"""LINK's released code where it differs from the paper and from Hapax (`--compat released`).

Golden traces of the released code hold every rule here: `tests/unit/engine/search/test_released_traces.py` replays
them. The float arithmetic is part of the rules: thresholds fall by repeated subtraction, so that some lie a little
below the decimal number that they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hapax.engine.gates.gates import CRITIC, START, STEP, TYPE, TYPE_FLOOR, CriticRule, Gate, QuestionGates, Scores
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Value
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.records import Candidate
from hapax.llm_oracle.protocols import ClaimText
from hapax.llm_oracle.questions.prompts import released_type_question

TRIES = 10
"""Calls for one answer to a question with one right value, until a reply has a readable value."""

MAX_TOKENS = 512
"""Token limit of a reply."""

FIRST_VALUES = 2
"""Multiple of the usual number of values that each call about the first variable asks for, with fewer calls."""


def first_calls(calls: int) -> int:
    """Number of calls about the first variable, which ask for as many values in all as the calls about others."""
    # Division rounded up.
    return -(-calls // FIRST_VALUES)


class ReleasedGates(QuestionGates):
    """The gates on the values of one question in the released code.

    Facts and types are judged apart, each over all values of a call. The threshold of types starts anew in each call,
    falls until it accepts a value, and never rises. That of facts rises with better calls; values below it
    leave only at the end of the question. A call in which facts or types accept nothing counts as empty.
    """

    def __init__(
        self,
        order: Sequence[Gate] | None = None,
        rules: Mapping[str, CriticRule] | None = None,
        prior: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        super().__init__(order, rules, prior)
        self._type_thresholds: dict[Candidate, float] = {}

    def add(self, scores: Mapping[Candidate, Scores]) -> int:
        """Take the scored candidates of one call; 0 if it was empty."""
        self.scores.update(scores)
        self._move(scores)
        self.end()  # nothing falls here: the values go through the gates again
        self._once_accepted |= scores.keys() & set(self.accepted)
        passing = [sum(self._admits(gate, *value) for value in scores.items()) for gate in self.order]
        return min(passing, default=len(scores))

    @property
    def forbidden(self) -> list[Candidate]:
        """All candidates that were accepted when they came."""
        return [candidate for candidate in self.scores if candidate in self._once_accepted]

    def _move(self, scores: Mapping[Candidate, Scores]) -> None:
        """Move the thresholds by the values of one call, each by all of them."""
        facts, types = self._judged(CRITIC, scores), self._judged(TYPE, scores)
        if CRITIC.name in self.thresholds:
            moved = self.thresholds[CRITIC.name].after(list(facts.values()), (), self._rules[CRITIC.name])
            self.thresholds[CRITIC.name] = moved
        threshold = START
        while threshold > TYPE_FLOOR and not any(score >= threshold for score in types.values()):
            threshold -= STEP  # not rounded, see above
        self._type_thresholds |= dict.fromkeys(types, threshold)

    def _threshold(self, gate: Gate, candidate: Candidate) -> float:
        if gate.name == TYPE.name and candidate in self._type_thresholds:
            return self._type_thresholds[candidate]
        return super()._threshold(gate, candidate)


def _type_questions(value: Value, data_type: str, _: Sequence[Atom], __: Library) -> Sequence[str]:
    return (released_type_question(str(value), data_type),)  # numbers are asked about, too


def _fact_claims(_: Value, __: str, atoms: Sequence[Atom], library: Library) -> Sequence[str]:
    return [ClaimText(atom_text(atom, library), atom) for atom in atoms]


RELEASED_CLAIMS: Mapping[str, Callable[[Value, str, Sequence[Atom], Library], Sequence[str]]] = {
    TYPE.name: _type_questions,
    CRITIC.name: _fact_claims,
}
"""By gate, the texts by which the critic judges a value."""


def released_literals(rule: Rule, names: Iterable[str]) -> list[Literal]:
    """The literals by which beams are ranked: in the order in which they get their values, the conclusion last.

    `names`: the variables with values, in the order of the search.
    """
    # Generic variables count as known before all others.
    step = {name: number for number, name in enumerate((*rule.generic, *names))}

    def is_complete(literal: Literal) -> bool:
        return all(variable.name in step for variable in literal.variables)

    def completed_at(literal: Literal) -> int:
        return max((step[variable.name] for variable in literal.variables), default=0)

    literals = sorted(filter(is_complete, rule.literals), key=completed_at)
    return [*literals, rule.conclusion] if is_complete(rule.conclusion) else literals
