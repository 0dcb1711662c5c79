"""Answer goals: those of atoms, comparisons, negations, `,` and `;` by rules, and all others in Prolog over answers.

Prolog then has the atoms that the goal's calls ask for as facts, each once, and no rules: so it counts answers, not
proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from hapax.engine.inference.theory import QueryResult, Theory, answer_goal, open_session, sort_key
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.goal_rules import GOAL, NotRules, goal_rules, parts_by_rules, with_rules
from hapax.engine.logic.products import naming_products
from hapax.engine.logic.proofs import reading, time_limit
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.program import answers_program
from hapax.engine.prolog.session import AnswerRow, PrologSession
from hapax.grammar.goal_language import Goal, GoalVariable, called_indicators, calls, has_constants, with_present
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import MISSING, Atom, Constant, Term, Value, Variable
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
    whole = theory.relevant_to(goals=called_indicators(goal, theory.library))
    if has_constants(goal):
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
    called = [name for name in called_indicators(goal, library) if library.signature(name).definition is None]
    concluded: dict[tuple[str, tuple[Value, ...]], None] = {}
    for indicator in called:
        for call in calls(goal, indicator):
            # Every variable is free: what binds it in Prolog is not known here.
            terms: list[Term] = [
                part
                if isinstance(part, Constant)
                else Variable(f"{'_' if part == GoalVariable('_') else 'A'}{place}", "")
                for place, part in enumerate(call.arguments)
            ]
            atom = Atom(call.functor, tuple(terms))
            for row in demand.rows(atom, ordered=True):
                values = iter(row)
                cells = (term.value if isinstance(term, Constant) else next(values) for term in terms)
                found = tuple(cells)
                # Prolog cannot hold U+0000.
                if not any(isinstance(value, str) and "\0" in value for value in found):
                    concluded[call.functor, found] = None
    if any(MISSING in row for _, row in concluded):
        goal = replace(goal, term=with_present(goal.term, called))
    program = answers_program(library, concluded)
    failed = demand.failures()
    with open_session(session) as prolog:
        prolog.load(program)
        return replace(answer_goal(prolog, goal, limits), failures=failed)
