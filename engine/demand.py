"""The demand loop: which questions would a goal need, ask them in a batch, run again, until nothing is missing.

A goal over oracle predicates never calls a model. Run in demand mode it notes what it lacked: one question for an atom
with one free argument; for an atom with several, first the values of the first free one; for a ground atom a
verification. While something is missing, negation and aggregates may be wrong: answers that rest on them are withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.derive import relevant_library
from engine.inquiry import Answer, Inquiry, argument_name, filled
from engine.program import DemandState, build_program
from engine.query import QueryResult, Theory, answered, opened
from engine.session import PrologSession, PrologTerm, QueryLimits
from grammar.goals import Compound, Goal, GoalList, GoalTerm, called_indicators, goal_text
from grammar.prolog_text import prolog_atom
from grammar.rules import Library, PredicateKind
from grammar.terms import Atom, Constant, Value
from grammar.words import counted
from kb.records import FactRecord, Pattern, Question, Source, TypeFact
from llm_oracle.calls import BudgetReached

CLOSED_WORLD = frozenset(
    ("\\+/1", "forall/2", "findall/3", "aggregate_all/3", "setof/3", "bagof/3"),
)
"""What may answer differently once more is known."""


class DemandOracle(Protocol):
    """Who answers: `engine.oracle.Oracle`, or a table in a test."""

    def answers(self, inquiries: Sequence[Inquiry]) -> Mapping[Inquiry, Answer]:
        """The accepted values of each question; `Answer.complete` False where a budget cut it off."""
        ...

    def verify(self, atoms: Sequence[Atom]) -> Mapping[Atom, bool]:
        """Whether each ground atom holds. May raise BudgetReached."""
        ...


@dataclass(frozen=True, slots=True)
class Need:
    """A question that a goal lacked. `pattern` has None at each free argument; the question asks for the first of them.

    With more than one free argument the question only proposes values: no atom of it is claimed.
    """

    pattern: Pattern
    question: Question

    @property
    def is_opening(self) -> bool:
        return self.pattern.arguments.count(None) > 1

    @property
    def inquiry(self) -> Inquiry:
        return Inquiry(self.question, () if self.is_opening else self.question.patterns)


@dataclass(frozen=True, slots=True)
class Missing:
    """What a goal lacked, in alphabetical order."""

    needs: tuple[Need, ...] = ()
    atoms: tuple[Atom, ...] = ()

    @property
    def questions(self) -> frozenset[Question]:
        return frozenset(need.question for need in self.needs)

    def __bool__(self) -> bool:
        return bool(self.needs or self.atoms)


@dataclass(frozen=True, slots=True)
class DemandBudget:
    """When the loop ends with something still missing. What the models may cost is the journal's budget."""

    rounds: int = 20
    questions: int = 200
    verifications: int = 1000
    limits: QueryLimits | None = None
    """Of the goal itself, each time it runs; None: the usual ones."""


@dataclass(frozen=True, slots=True)
class DemandResult:
    """`complete`: nothing was missing in the end. `withheld`: rows were left out because they might still turn wrong.

    `stopped` says why the loop ended early, and what to do about it.
    """

    result: QueryResult
    rounds: int = 0
    asked: tuple[Question, ...] = ()
    verified: tuple[Atom, ...] = ()
    missing: Missing = field(default_factory=Missing)
    withheld: bool = False
    stopped: str = ""

    @property
    def complete(self) -> bool:
        return not self.missing


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when a goal runs, and what need not be asked again."""

    facts: Sequence[FactRecord] = ()
    type_facts: Sequence[TypeFact] = ()
    assumed: Sequence[Atom] = ()
    state: DemandState = field(default_factory=DemandState)


def missing_questions(
    session: PrologSession, library: Library, goal: Goal, known: Evidence, limits: QueryLimits | None = None
) -> Missing:
    """What the goal would need to be asked, given what is known."""
    program = build_program(library, known.facts, known.type_facts, known.assumed, demand=True, state=known.state)
    session.load(program)
    demand = f"hapax_host:demanded({prolog_atom(goal_text(goal))}, Name, Pattern)"
    answers = session.solutions(demand, ("Name", "Pattern"), limits, trusted=True)
    patterns = [
        Pattern(str(name), tuple(_cell(cell) for cell in cells.arguments))
        for name, cells in answers.rows
        if isinstance(cells, PrologTerm)
    ]
    patterns.sort(key=_in_order)  # Prolog gives them as its hash table has them, otherwise in each process
    needs = tuple(_need(pattern, library) for pattern in patterns if None in pattern.arguments)
    atoms = tuple(_ground(pattern) for pattern in patterns if None not in pattern.arguments)
    return Missing(needs, atoms)


def run_demand(
    theory: Theory,
    goal_text: str,
    oracle: DemandOracle,
    budget: DemandBudget | None = None,
    *,
    session: PrologSession | None = None,
) -> DemandResult:
    """Ask what the goal lacks, round by round, then answer it. Facts are the oracle's to store; nothing assumed is."""
    goal = theory.goal(goal_text)
    part = theory.behind(goals=called_indicators(goal, theory.library))
    with opened(session) as prolog:
        return _Loop(prolog, part, goal, oracle, budget or DemandBudget()).run()


@dataclass
class _Loop:
    """One demand loop: what it has asked and learnt so far."""

    session: PrologSession
    theory: Theory
    goal: Goal
    oracle: DemandOracle
    budget: DemandBudget
    asked: dict[Need, None] = field(default_factory=dict)
    verdicts: dict[Atom, bool] = field(default_factory=dict)
    learnt: list[FactRecord] = field(default_factory=list)
    types: list[TypeFact] = field(default_factory=list)
    stopped: str = ""

    def run(self) -> DemandResult:
        rounds = 0
        missing = self._missing()
        while missing and not self.stopped:
            if rounds == self.budget.rounds:
                made = counted(rounds, "round")
                self.stopped = f"After {made} something is still missing; a higher limit on rounds goes on."
                break
            rounds += 1
            self._ask(missing)
            missing = self._missing()
        withheld = bool(missing) and uses_closed_world(self.goal, self.theory.library)
        result = QueryResult(self.goal.variables) if withheld else self._answer()
        return DemandResult(
            result,
            rounds,
            tuple(need.question for need in self.asked),
            tuple(self.verdicts),
            missing,
            withheld,
            self.stopped if missing else "",
        )

    def _facts(self) -> list[FactRecord]:
        return [*self.theory.facts(), *self.learnt]

    def _missing(self) -> Missing:
        state = DemandState(
            tuple(need.pattern for need in self.asked),
            tuple(atom for atom, holds in self.verdicts.items() if not holds),
        )
        types = (*self.theory.type_facts(), *self.types)
        known = Evidence(self._facts(), types, self.theory.assumed, state)
        return missing_questions(self.session, self.theory.library, self.goal, known, self.budget.limits)

    def _answer(self) -> QueryResult:
        self.session.load(build_program(self.theory.library, self._facts(), assumed=self.theory.assumed))
        return answered(self.session, self.goal, self.budget.limits)

    def _ask(self, missing: Missing) -> None:
        """One batch, as far as the budget reaches."""
        needs = missing.needs[: self.budget.questions - len(self.asked)]
        atoms = missing.atoms[: self.budget.verifications - len(self.verdicts)]
        if not needs and not atoms:
            self.stopped = "The limit on questions is reached; a higher one goes on."
            return
        try:
            answers = self.oracle.answers([need.inquiry for need in needs])
            for need in needs:
                self._learn(need, answers[need.inquiry])
            for atom, holds in self.oracle.verify(list(atoms)).items():
                self.verdicts[atom] = holds
                if holds:
                    self.learnt.append(self._fact(atom))
        except BudgetReached as reached:
            self.stopped = str(reached)

    def _learn(self, need: Need, answer: Answer) -> None:
        if answer.complete:
            self.asked[need] = None
        else:
            self.stopped = "The budget of the models is reached; a higher one goes on where this one stopped."
        for value in answer.values:
            self.types.append(TypeFact(value, need.question.data_type))
            if not need.is_opening:
                self.learnt.append(self._fact(filled(need.pattern, value)))

    def _fact(self, atom: Atom) -> FactRecord:
        types = self.theory.library.signature(atom.indicator).argument_types
        values = tuple(term.value for term in atom.arguments if isinstance(term, Constant))
        return FactRecord(atom.predicate, values, types, Source.MODEL)


def uses_closed_world(goal: Goal, library: Library) -> bool:
    """Whether an answer could turn wrong by more facts: negation or an aggregate in the goal, negation in its rules."""
    if _mentions(goal.term):
        return True
    reached = relevant_library(library, goals=called_indicators(goal, library))
    return any(literal.negated for rule in reached.rules for literal in rule.literals)


def _mentions(term: GoalTerm) -> bool:
    if isinstance(term, Compound):
        return term.indicator in CLOSED_WORLD or any(map(_mentions, term.arguments))
    return isinstance(term, GoalList) and any(map(_mentions, term.items))


def _cell(cell: object) -> Value | None:
    """`free` -> None, `bound(Value)` -> the value."""
    if isinstance(cell, PrologTerm) and not isinstance(cell.arguments[0], PrologTerm):
        return cell.arguments[0]
    return None


def _in_order(pattern: Pattern) -> tuple[str, str]:
    return pattern.predicate, repr(pattern.arguments)


def _ground(pattern: Pattern) -> Atom:
    return Atom(pattern.predicate, tuple(Constant(value) for value in pattern.arguments if value is not None))


def _need(pattern: Pattern, library: Library) -> Need:
    """The question for the first free argument; further free ones are worded as slots."""
    signature = library.signature(f"{pattern.predicate}/{len(pattern.arguments)}")
    first = pattern.arguments.index(None)
    worded = tuple(
        f"[{argument_name(position)}]" if value is None and position != first else value
        for position, value in enumerate(pattern.arguments)
    )
    functional = (
        signature.kind is PredicateKind.FUNCTIONAL
        and first == len(worded) - 1  # asked the other way round, several values may be right
    )
    return Need(pattern, Question((replace(pattern, arguments=worded),), signature.argument_types[first], functional))
