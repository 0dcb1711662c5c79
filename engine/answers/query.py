"""Answer goals: those of atoms, comparisons, negations, `,` and `;` by rules, and all others in Prolog over answers.

Prolog then has the atoms that the goal's calls ask for as facts, each once, and no rules: so it counts answers, not
proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice

from hapax.engine.inference.theory import QueryResult, Theory, sort_key
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.goal_rules import GOAL, NotRules, goal_rules, parts_by_rules, with_rules
from hapax.engine.logic.proofs import naming_products, reading, time_limit
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.program import answers_program
from hapax.engine.prolog.session import AnswerRow, PrologSession
from hapax.grammar.goals import Goal
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import MISSING, Atom, Constant, Term, Value, Variable
from hapax.grammar.writing.prolog_text import GoalText
from hapax.kb.atoms.derived_relations import BATCH, TaggedRows


def run_query(
    theory: Theory, text: str, limits: QueryLimits | None = None, *, session: PrologSession | None = None
) -> QueryResult:
    """Answer a goal over a theory. Raises GoalRejected, GoalRefused or LimitExceeded."""
    return answer(theory, theory.goal(text), limits, session=session)


def answer(
    theory: Theory, goal: Goal, limits: QueryLimits | None = None, *, session: PrologSession | None = None
) -> QueryResult:
    """Answer a goal that was read."""
    limits = limits or QueryLimits()
    whole = theory.relevant_to(goals=goal.called)
    if goal.has_constants:
        whole.index()
    at_work: list[Rule] = []
    with naming_products(at_work, theory.library, theory.kb), reading(theory.kb), time_limit(theory.kb, limits.seconds):
        part, stored = whole.without_stored(goal)
        try:
            rules = goal_rules(goal, theory.library, by_failure=True)
        except NotRules:
            goal, inner = parts_by_rules(goal, theory.library)
            library = with_rules(part.library, inner) if inner else part.library
            demand = Demand(part.source(), library, stored, at_work=at_work)
            return _by_prolog(demand, library.with_closure(), goal, limits, session)
        ways = [rule for rule in rules if rule.conclusion.atom.predicate == GOAL]
        library = with_rules(part.library, [rule for rule in rules if rule not in ways])
        demand = Demand(part.source(), library, stored, at_work=at_work)
        # One row more than asked for tells that there are more.
        limit = "" if limits.answers is None else f" LIMIT {limits.answers + 1}"
        tagged = demand.tagged(ways, goal.variables, limit)
        found = TaggedRows(theory.kb, len(goal.variables), islice(tagged, limits.answers))
        is_cut = any(True for _ in tagged)
        rows: Sequence[AnswerRow] = found if len(found) > BATCH else sorted(found, key=sort_key)
        failed = demand.failures()
    return QueryResult(goal.variables, rows, is_cut, failed)


def _by_prolog(
    demand: Demand, library: Library, goal: Goal, limits: QueryLimits, session: PrologSession | None
) -> QueryResult:
    called = [name for name in goal.called if library.signature(name).definition is None]
    concluded: dict[tuple[str, tuple[Value, ...]], None] = {}
    for call in (literal.atom for literal in goal.literals if literal.atom.indicator in called):
        # Every variable is free: what binds it in Prolog is not known here.
        terms: list[Term] = [
            term if isinstance(term, Constant) else Variable(f"{'_' if term.is_anonymous else 'A'}{place}", "")
            for place, term in enumerate(call.arguments)
        ]
        for row in demand.rows(Atom(call.predicate, tuple(terms)), ordered=True):
            values = iter(row)
            found = tuple(term.value if isinstance(term, Constant) else next(values) for term in terms)
            # Prolog cannot hold U+0000.
            if not any(isinstance(value, str) and "\0" in value for value in found):
                concluded[call.predicate, found] = None
    has_missing = any(MISSING in row for _, row in concluded)
    text = GoalText(library, called if has_missing else ()).of(goal.premise)
    program = answers_program(library, concluded)
    failed = demand.failures()
    with nullcontext(session) if session is not None else PrologSession() as prolog:
        prolog.load(program)
        answers = prolog.solutions(text, goal.variables, limits, distinct=True)
    # For tabled predicates Prolog's own order differs from run to run.
    return QueryResult(goal.variables, sorted(answers.rows, key=sort_key), answers.truncated, failed)
