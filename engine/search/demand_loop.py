"""The demand loop: collect the questions that a goal needs, ask them as one batch, and repeat until none is missing.

A goal over oracle predicates never calls a model. The evaluator knows the calls that it makes
(`engine/logic/demand.py`): a call with one free argument is a question; one with more, a question for values of the
first; a ground one a verification. While something is missing, negation and aggregates may be wrong, so answers that
use them are withheld.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from hapax.engine.answers.query import answer
from hapax.engine.gates.inquiry import Inquiry, QuestionAnswer, argument_name
from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.theory import QueryResult, Theory
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.goal_rules import GOAL, NotRules, goal_rules, rule_of, with_rules
from hapax.engine.logic.proofs import reading, time_limit
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import PrologSession
from hapax.grammar.goals import Either, Goal, GoalItem, PrologCall, every_item
from hapax.grammar.parsing.declarations import Negation, PredicateKind, PredicateSignature
from hapax.grammar.parsing.syntax import LIST
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Value, Variable
from hapax.grammar.writing.words import counted
from hapax.kb.atoms.symbols import canonical
from hapax.kb.records import AtomPattern, FactRecord, Question, Source, TypeFact
from hapax.llm_oracle.budget import BudgetReached

_CLOSED_WORLD = frozenset(("forall", "findall", "aggregate_all", "setof", "bagof"))
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

    `answers`: those of the oracle, by inquiry. There are no rows where more facts might falsify them.
    `stopped`: why the loop ended early, and what to do about it. `budget`: the budget that ended it.
    """

    result: QueryResult
    rounds: int = 0
    asked: tuple[Question, ...] = ()
    missing: Missing = field(default_factory=Missing)
    stopped: str = ""
    budget: BudgetReached | None = None
    answers: Mapping[Inquiry, QuestionAnswer] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """True if nothing was missing in the end."""
        return not self.missing


def is_asked_by_queries(library: Library, signature: PredicateSignature) -> bool:
    """True if a query may ask a model about the predicate.

    One that rules only use about their generic person is a hypothesis, about which a model knows nothing.
    """
    if not library.is_asked(signature.indicator):
        return False
    uses: list[bool] = []
    for rule in library.rules:
        literals = [literal for literal in rule.literals if literal.atom.indicator == signature.indicator]
        uses += map(rule.is_information, literals)
    return not (uses and all(uses) and any(map(library.is_person, signature.argument_types)))


Row: TypeAlias = tuple[Value | None, ...]
"""The arguments of a call, None at free ones."""


@dataclass(frozen=True, slots=True)
class Settled:
    """All that need not be asked again: patterns that were asked, atoms found false or lost, and facts learnt since.

    `types`: of values that the answers brought.
    """

    asked: frozenset[AtomPattern] = frozenset()
    refuted: frozenset[Atom] = frozenset()
    learnt: tuple[FactRecord, ...] = ()
    types: tuple[TypeFact, ...] = ()


def missing_questions(
    theory: Theory,
    goal: Goal,
    settled: Settled | None = None,
    limits: QueryLimits | None = None,
) -> Missing:
    """The questions and ground atoms that the goal needs beyond what is known."""
    settled, limits = settled or Settled(), limits or QueryLimits()
    library = theory.library
    signatures = library.completed().signatures
    asked = frozenset(item.indicator for item in signatures if is_asked_by_queries(library, item))
    learnt = tuple(fact.ground_atom for fact in settled.learnt)
    known = replace(theory, assume=(*theory.assumed, *learnt))
    rules = _calling_rules(goal, library)
    with reading(theory.kb), time_limit(theory.kb, limits.seconds):
        demand = Demand(known.source(), with_rules(library, rules))
        finder = _NeedFinder(theory, settled)
        # A negation is called with the values that its rule has before it.
        called = {literal.atom.indicator for literal in literals_of(rules)}
        roots = [rule.conclusion.atom for rule in rules if rule.conclusion.atom.indicator not in called]
        for indicator, row in demand.calls(roots, asked):
            finder.add_call(library.signature(indicator), row)
    return finder.missing()


def _calling_rules(goal: Goal, library: Library) -> list[Rule]:
    """Rules whose premises call what the goal calls.

    Of a goal that only Prolog can answer, each atom is called after the atoms that stand before it outside of
    conditions and collections.
    """
    goal = replace(goal, premise=tuple(map(_choice, goal.premise)))
    with suppress(NotRules):
        return list(goal_rules(goal, library, by_failure=True))
    rules: list[Rule] = []
    before: list[Literal] = []
    for part in goal.premise:
        for literal in every_item((part,)):
            if isinstance(literal, Literal):
                name = f"{GOAL}, calls {len(rules)}"
                rules.append(rule_of([*before, literal], Atom(name, ()), name))
        before += [part] if isinstance(part, Literal) and not part.negated else []
    return rules


def _choice(item: GoalItem) -> GoalItem:
    """`member(X, [a, b])` as `X = a ; X = b`, which rules can say."""
    match item:
        case PrologCall("member", (Variable() as variable, Arithmetic(operator, values))) if operator == LIST:
            return Either(tuple((Comparison("=", variable, value),) for value in values))
    return item


class _NeedFinder:
    """Finds out what calls need beyond the facts under which a goal runs, and the types that these give to values."""

    def __init__(self, theory: Theory, settled: Settled) -> None:
        self._theory, self._settled = theory, settled
        self._found: dict[AtomPattern, None] = {}
        self._library = theory.library
        relations = theory.kb.relations
        indicators = [signature.indicator for signature in self._library.completed().signatures]
        self._large = [name for name in indicators if theory.known is None and relations.is_large(name)]
        stated = (*self._library.facts, *theory.assumed, *(fact.ground_atom for fact in settled.learnt))
        self._rows: dict[str, set[tuple[Value, ...]]] = {}
        self._types: dict[Value, set[str]] = {}
        for atom in stated:
            self._rows.setdefault(atom.indicator, set()).add(tuple(map(canonical, atom.values)))
        for fact in theory.facts(self._large):
            self._rows.setdefault(fact.indicator, set()).add(fact.arguments)
            self._note_types(zip(fact.arguments, fact.types, strict=False))
        for atom in self._library.facts:
            types = self._library.signature(atom.indicator).argument_types
            self._note_types(zip(atom.values, types, strict=True))
        for found in (*theory.type_facts(), *settled.types):
            self._note_types([(found.constant, found.data_type)])

    def _note_types(self, pairs: Iterable[tuple[Value, str]]) -> None:
        for value, data_type in pairs:
            self._types.setdefault(canonical(value), set()).add(data_type)

    def _has(self, indicator: str, row: Row) -> bool:
        """True if a fact has the values of a row, whatever it has where the row is free."""
        bound = {place: canonical(value) for place, value in enumerate(row) if value is not None}
        if indicator in self._large and next(self._theory.kb.relations.at(indicator, bound), None) is not None:
            return True
        rows = self._rows.get(indicator, set())
        if len(bound) == len(row):
            return tuple(bound.values()) in rows
        return any(all(known[place] == value for place, value in bound.items()) for known in rows)

    def _accepted(self, value: Value) -> set[str]:
        """The types under which facts accept a value."""
        found = set(self._types.get(canonical(value), ()))
        return found.union(*(self._theory.kb.relations.types_of(indicator, value) for indicator in self._large))

    def _instances(self, data_type: str) -> list[Value]:
        """The values that facts accept under a type or one below it."""

        def is_below(lower: str) -> bool:
            return self._library.is_subtype(lower, data_type)

        found = {value for value, types in self._types.items() if any(map(is_below, types))}
        for indicator in self._large:
            found.update(value for value, _ in self._theory.kb.relations.typed_values(indicator, is_below))
        return sorted(found, key=repr)

    def add_call(self, signature: PredicateSignature, row: Row) -> None:
        """Note what a call needs."""
        if not any(map(self._is_misfit, row, signature.argument_types)):
            self._note(signature, row)

    def _is_misfit(self, value: Value | None, wanted: str) -> bool:
        """True for a value that was accepted, but under no sub- or supertype of this: Prague is no landmark."""
        types = set() if value is None else self._accepted(value)
        library = self._library
        return bool(types) and not any(
            library.is_subtype(name, wanted) or library.is_subtype(wanted, name) for name in types
        )

    def _note(self, signature: PredicateSignature, row: Row) -> None:
        free = [place for place, value in enumerate(row) if value is None]
        is_functional = signature.kind is PredicateKind.FUNCTIONAL
        pattern = AtomPattern(signature.name, row)
        if not free:
            # A functional predicate that has a value for these arguments has no other value.
            decisive = (*row[:-1], None) if is_functional else row
            if not self._has(signature.indicator, decisive) and _atom(pattern) not in self._settled.refuted:
                self._found[pattern] = None
        elif pattern not in self._settled.asked:
            is_known = is_functional and free == [len(row) - 1] and self._has(signature.indicator, row)
            if not is_known:
                self._found[pattern] = None
        elif len(free) > 1:
            # The first free argument was asked for: go on with each of its values.
            place = free[0]
            for value in self._instances(signature.argument_types[place]):
                self._note(signature, (*row[:place], value, *row[place + 1 :]))

    def missing(self) -> Missing:
        """Everything that was found, in one order."""
        patterns = sorted(self._found, key=lambda pattern: (pattern.predicate, repr(pattern.arguments)))
        needs = tuple(_need(pattern, self._library) for pattern in patterns if None in pattern.arguments)
        return Missing(needs, tuple(_atom(pattern) for pattern in patterns if None not in pattern.arguments))


def run_demand(
    theory: Theory,
    goal: str | Goal,
    oracle: DemandOracle | None,
    budget: DemandBudget | None = None,
    *,
    session: PrologSession | None = None,
) -> DemandResult:
    """Ask what the goal needs, round by round, then answer it. The oracle stores facts; assumptions are not stored.

    Without an oracle the result says what the first round would ask: give a budget of no rounds.
    """
    if isinstance(goal, str):
        goal = theory.goal(goal)
    part = theory.relevant_to(goals=goal.called)
    part.index()
    return _Loop(part, goal, oracle, budget or DemandBudget(), session).run()


@dataclass
class _Loop:
    """One demand loop, with the questions asked and the facts learnt so far.

    `retracted`: facts that were learnt and have lost in a conflict since.
    """

    theory: Theory
    goal: Goal
    oracle: DemandOracle | None
    budget: DemandBudget
    session: PrologSession | None
    asked: dict[Need, None] = field(default_factory=dict)
    verdicts: dict[Atom, bool] = field(default_factory=dict)
    learnt: list[FactRecord] = field(default_factory=list)
    retracted: set[Atom] = field(default_factory=set)
    types: list[TypeFact] = field(default_factory=list)
    answers: dict[Inquiry, QuestionAnswer] = field(default_factory=dict)
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
        is_unsure = bool(missing) and uses_closed_world(self.goal, self.theory.library)
        result = QueryResult(self.goal.variables) if is_unsure else self._answer()
        return DemandResult(
            result,
            rounds,
            tuple(need.question for need in self.asked),
            missing,
            self.stopped if missing else "",
            self.reached,
            self.answers,
        )

    def _missing(self) -> Missing:
        # Questions that were asked, and atoms found false, are no longer missing.
        refuted = [atom for atom, holds in self.verdicts.items() if not holds]
        asked = frozenset(need.pattern for need in self.asked)
        settled = Settled(asked, frozenset((*refuted, *self.retracted)), tuple(self.learnt), tuple(self.types))
        return missing_questions(self.theory, self.goal, settled, self.budget.limits)

    def _answer(self) -> QueryResult:
        # The program in demand mode only records what is missing.
        learnt = tuple(fact.ground_atom for fact in self.learnt)
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
            self.answers.update(self.oracle.answers([need.inquiry for need in needs]))
            for need in needs:
                self._learn(need, self.answers[need.inquiry])
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
                self.retracted.add(fact.ground_atom)
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
                self.learnt.append(self._fact(need.pattern.filled(Constant(value))))

    def _fact(self, atom: Atom) -> FactRecord:
        types = self.theory.library.signature(atom.indicator).argument_types
        return FactRecord(atom.predicate, atom.values, types, Source.MODEL)


def uses_closed_world(goal: Goal, library: Library) -> bool:
    """True if more facts could falsify an answer: negation or an aggregate in the goal, or negation in its rules."""
    items = list(every_item(goal.premise))
    if any(
        isinstance(item, Negation) or (isinstance(item, PrologCall) and item.name in _CLOSED_WORLD) for item in items
    ):
        return True
    reached = relevant_library(library, goals=goal.called)
    return any(literal.negated for literal in literals_of(reached.rules))


def _atom(pattern: AtomPattern) -> Atom:
    return Atom(pattern.predicate, tuple(Constant(value) for value in pattern.arguments if value is not None))


def _need(pattern: AtomPattern, library: Library) -> Need:
    """The question for the first free argument; the other free ones become slots in its wording."""
    signature = library.signature(pattern.indicator)
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
