"""The demand loop: collect the questions that a goal needs, ask them as one batch, and repeat until none is missing.

A goal over oracle predicates never calls a model. In demand mode it records what it needed instead: for an atom with
one free argument a question; for one with more, a question for values of the first; for a ground atom a verification.
While something is missing, negation and aggregates may be wrong, so answers that use them are withheld.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hapax.engine.inference.call_patterns import CallPatterns
from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.fact_supply import FactSupply, supplied_predicates
from hapax.engine.inference.limits import QueryLimits
from hapax.engine.inference.program import DemandState, Supply, build_program
from hapax.engine.inference.session import PrologSession, PrologTerm
from hapax.engine.inference.theory import QueryResult, Theory, open_session
from hapax.engine.logic.query import answer
from hapax.engine.search.inquiry import Inquiry, QuestionAnswer, argument_name, filled
from hapax.grammar.goals import Compound, Goal, GoalList, GoalTerm, called_indicators, goal_text
from hapax.grammar.prolog_text import prolog_atom
from hapax.grammar.rules import Library, PredicateKind, literals_of
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.words import counted
from hapax.kb.facts import one_state
from hapax.kb.records import AtomPattern, DenialRecord, FactRecord, Question, Source, TypeFact
from hapax.llm_oracle.budget import BudgetReached

CLOSED_WORLD = frozenset(
    ("\\+/1", "forall/2", "findall/3", "aggregate_all/3", "setof/3", "bagof/3"),
)
"""Built-ins whose answers may change when more facts are known."""


class DemandOracle(Protocol):
    """Answers questions: `engine.search.oracle.Oracle`, or a table in a test."""

    def answers(self, inquiries: Sequence[Inquiry]) -> Mapping[Inquiry, QuestionAnswer]:
        """The accepted values of each question. Where a budget ended one, it is incomplete, or raises BudgetReached."""
        ...

    def verify(self, atoms: Sequence[Atom]) -> Mapping[Atom, bool]:
        """Truth of each ground atom. May raise BudgetReached."""
        ...


@dataclass(frozen=True, slots=True)
class Need:
    """A question that a goal needs. `pattern` has None at free arguments; the question is about the first of them."""

    pattern: AtomPattern
    question: Question

    def __str__(self) -> str:
        """The pattern as a goal with `?` at each free argument."""
        cells = ("?" if value is None else str(Constant(value)) for value in self.pattern.arguments)
        return f"{self.pattern.predicate}({', '.join(cells)})"

    @property
    def is_opening(self) -> bool:
        """True if more than one argument is free: a value then makes no ground atom, so nothing is claimed."""
        return self.pattern.arguments.count(None) > 1

    @property
    def inquiry(self) -> Inquiry:
        return Inquiry(self.question, () if self.is_opening else self.question.patterns)


@dataclass(frozen=True, slots=True)
class Missing:
    """Questions and ground atoms that a goal needs, in alphabetical order."""

    needs: tuple[Need, ...] = ()
    atoms: tuple[Atom, ...] = ()

    @property
    def questions(self) -> frozenset[Question]:
        return frozenset(need.question for need in self.needs)

    def __bool__(self) -> bool:
        return bool(self.needs or self.atoms)


@dataclass(frozen=True, slots=True)
class DemandBudget:
    """Limits at which the loop ends with something still missing. The journal's budget limits the cost of models.

    `limits`: of each run of the goal itself; None: the usual ones.
    """

    rounds: int = 20
    questions: int = 200
    verifications: int = 1000
    limits: QueryLimits | None = None


@dataclass(frozen=True, slots=True)
class DemandResult:
    """The goal's answers, and the course of the loop.

    `withheld`: there are no rows, because more facts might falsify them. `stopped`: why the loop ended early, and what
    to do about it. `budget`: the budget that ended it.
    """

    result: QueryResult
    rounds: int = 0
    asked: tuple[Question, ...] = ()
    verified: tuple[Atom, ...] = ()
    missing: Missing = field(default_factory=Missing)
    withheld: bool = False
    stopped: str = ""
    budget: BudgetReached | None = None

    @property
    def complete(self) -> bool:
        """True if nothing was missing in the end."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts under which a goal runs; `state` has the questions that need not be asked again."""

    facts: Sequence[FactRecord] = ()
    type_facts: Sequence[TypeFact] = ()
    assumed: Sequence[Atom] = ()
    denied: Sequence[DenialRecord] = ()
    state: DemandState = field(default_factory=DemandState)
    supply: Supply = field(default_factory=Supply)
    """The predicates whose facts, and the types of their values, `feed` gives when they are called."""
    feed: FactSupply | None = None


def missing_questions(
    session: PrologSession, library: Library, goal: Goal, known: Evidence, limits: QueryLimits | None = None
) -> Missing:
    """The questions and ground atoms that the goal needs beyond what is known."""
    program = build_program(
        library,
        known.facts,
        known.assumed,
        state=replace(known.state, type_facts=known.type_facts),
        denied=known.denied,
        supply=known.supply,
    )
    session.load(program, known.feed)
    demand = f"hapax_host:demanded({prolog_atom(goal_text(goal))}, Name, Pattern)"
    answers = session.solutions(demand, ("Name", "Pattern"), limits, trusted=True)
    patterns = []
    for name, term in answers.rows:
        if isinstance(term, PrologTerm):
            patterns.append(AtomPattern(str(name), tuple(map(_cell, term.arguments))))
    # Prolog returns them in the order of a hash table, which differs between processes.
    patterns.sort(key=lambda pattern: (pattern.predicate, repr(pattern.arguments)))
    needs = tuple(_need(pattern, library) for pattern in patterns if None in pattern.arguments)
    atoms: list[Atom] = []
    for pattern in patterns:
        constants = tuple(Constant(value) for value in pattern.arguments if value is not None)
        if len(constants) == len(pattern.arguments):
            atoms.append(Atom(pattern.predicate, constants))
    return Missing(needs, tuple(atoms))


def run_demand(
    theory: Theory,
    goal_text: str,
    oracle: DemandOracle | None,
    budget: DemandBudget | None = None,
    *,
    session: PrologSession | None = None,
) -> DemandResult:
    """Ask what the goal needs, round by round, then answer it. The oracle stores facts; assumptions are not stored.

    Without an oracle the result says what the first round would ask: give a budget of no rounds.
    """
    goal = theory.goal(goal_text)
    part = theory.relevant_to(goals=called_indicators(goal, theory.library))
    patterns = part.patterns()
    patterns.add_goal(goal)
    part.index(patterns)
    with open_session(session) as prolog:
        return _Loop(prolog, part, goal, oracle, budget or DemandBudget(), patterns).run()


@dataclass
class _Loop:
    """One demand loop, with the questions asked and the facts learnt so far.

    `retracted`: facts that were learnt and have lost in a conflict since.
    """

    session: PrologSession
    theory: Theory
    goal: Goal
    oracle: DemandOracle | None
    budget: DemandBudget
    patterns: CallPatterns
    asked: dict[Need, None] = field(default_factory=dict)
    verdicts: dict[Atom, bool] = field(default_factory=dict)
    learnt: list[FactRecord] = field(default_factory=list)
    retracted: set[Atom] = field(default_factory=set)
    types: list[TypeFact] = field(default_factory=list)
    stopped: str = ""
    reached: BudgetReached | None = None

    def run(self) -> DemandResult:
        rounds = 0
        missing = self._missing()
        while missing and not self.stopped:
            if rounds == self.budget.rounds:
                self.stopped = f"Facts are still missing after {counted(rounds, 'round')}. Raise the limit on rounds."
                break
            rounds += 1
            self._ask(missing)
            self._retract()
            missing = self._missing()
        # A further fact could falsify what rests on the absence of facts.
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
            self.reached,
        )

    def _missing(self) -> Missing:
        # Questions that were asked, and atoms found false, are no longer missing.
        refuted = [atom for atom, holds in self.verdicts.items() if not holds]
        state = DemandState(tuple(need.pattern for need in self.asked), (*refuted, *self.retracted))
        with one_state(self.theory.kb):
            known = self._evidence(state)
            return missing_questions(self.session, self.theory.library, self.goal, known, self.budget.limits)

    def _evidence(self, state: DemandState) -> Evidence:
        """The facts of small predicates, those learnt, and a supply of the others."""
        theory, supplied = self.theory, supplied_predicates(self.theory.kb, self.patterns)
        types = (*theory.type_facts(), *self.types)
        bound = {
            number: self.patterns.bound_variables(rule) for number, rule in enumerate(theory.library.rules) if supplied
        }
        learnt = [fact_atom(fact) for fact in self.learnt]
        stated = (*theory.library.facts, *theory.assumed, *learnt)
        feed = FactSupply(theory.kb, supplied, stated, theory.library) if supplied else None
        facts = [*theory.facts(supplied), *self.learnt]
        return Evidence(facts, types, theory.assumed, tuple(theory.denied()), state, Supply(supplied, bound), feed)

    def _answer(self) -> QueryResult:
        # The program in demand mode only records what is missing.
        learnt = tuple(map(fact_atom, self.learnt))
        theory = replace(self.theory, assume=(*self.theory.assumed, *learnt))
        return answer(theory, self.goal, self.budget.limits, session=self.session)

    def _ask(self, missing: Missing) -> None:
        """Ask one batch, within the limits."""
        if self.oracle is None:
            raise ValueError("a demand loop of one round and more needs an oracle")
        # Slices, not a check: a batch is cut to what the limits leave.
        needs = missing.needs[: self.budget.questions - len(self.asked)]
        atoms = missing.atoms[: self.budget.verifications - len(self.verdicts)]
        if not needs and not atoms:
            self.stopped = "The limit on questions is reached. Raise it."
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
            self.reached, self.stopped = reached, str(reached)

    def _retract(self) -> None:
        """Forget the learnt facts that the oracle has withdrawn since, because they lost in a conflict."""
        standing = []
        for fact in self.learnt:
            if self.theory.kb.withdrawals(fact.id):
                self.retracted.add(fact_atom(fact))
            else:
                standing.append(fact)
        self.learnt = standing

    def _learn(self, need: Need, answer: QuestionAnswer) -> None:
        # A cut question stays missing, so that rows that depend on it are withheld.
        if answer.complete:
            self.asked[need] = None
        else:
            self.stopped = "The budget for model calls is reached. Raise it to go on from here."
        for value in answer.values:
            self.types.append(TypeFact(value, need.question.data_type))
            # A value of an opening question makes no ground atom yet; its type is what the next round needs.
            if not need.is_opening:
                self.learnt.append(self._fact(filled(need.pattern, value)))

    def _fact(self, atom: Atom) -> FactRecord:
        types = self.theory.library.signature(atom.indicator).argument_types
        values = tuple(term.value for term in atom.arguments if isinstance(term, Constant))
        return FactRecord(atom.predicate, values, types, Source.MODEL)


def fact_atom(fact: FactRecord) -> Atom:
    """A fact as an atom."""
    return Atom(fact.predicate, tuple(Constant(value) for value in fact.arguments))


def uses_closed_world(goal: Goal, library: Library) -> bool:
    """True if more facts could falsify an answer: negation or an aggregate in the goal, or negation in its rules."""
    if _mentions(goal.term):
        return True
    reached = relevant_library(library, goals=called_indicators(goal, library))
    return any(literal.negated for literal in literals_of(reached.rules))


def _mentions(term: GoalTerm) -> bool:
    if isinstance(term, Compound):
        return term.indicator in CLOSED_WORLD or any(map(_mentions, term.arguments))
    return isinstance(term, GoalList) and any(map(_mentions, term.items))


def _cell(cell: object) -> Value | None:
    """`free` -> None, `bound(Value)` -> the value."""
    if isinstance(cell, PrologTerm) and not isinstance(cell.arguments[0], PrologTerm):
        return cell.arguments[0]
    return None


def _need(pattern: AtomPattern, library: Library) -> Need:
    """The question for the first free argument; the other free ones become slots in its wording."""
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
