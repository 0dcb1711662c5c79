"""Goals over what is known: typed by a person, answered by Prolog under limits, nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.derive import relevant_library
from engine.program import build_program
from engine.session import PrologSession, PrologTerm, QueryLimits, Row
from grammar.errors import HapaxError
from grammar.goals import Compound, Goal, called_indicators, goal_text
from grammar.parser import parse_goal
from grammar.rules import Library
from grammar.terms import Atom, Constant, Value
from kb.records import FactRecord
from kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One row a distinct answer, one column a variable of the goal. A goal without variables holds if it has a row."""

    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    truncated: bool = False

    @property
    def holds(self) -> bool:
        return bool(self.rows)


def run_query(
    library: Library,
    kb: KnowledgeBase,
    goal_text: str,
    assume: Sequence[str | Atom] = (),
    limits: QueryLimits | None = None,
    *,
    session: PrologSession | None = None,
) -> QueryResult:
    """The answers of a goal over the facts, the rules and the assumptions. Raises RulesRejected, GoalRefused or
    LimitExceeded."""
    goal = parse_goal(goal_text, library)
    assumed = assumptions(assume, library)
    part = relevant_library(library, goals=called_indicators(goal, library))
    with opened(session) as prolog:
        prolog.load(build_program(part, relevant_facts(kb, part), assumed=known_atoms(assumed, part)))
        return answered(prolog, goal, limits)


def answered(session: PrologSession, goal: Goal, limits: QueryLimits | None = None) -> QueryResult:
    """The goal's answers over the program that the session holds."""
    answers = session.solutions(goal_text(goal), goal.variables, limits, distinct=True)
    return QueryResult(goal.variables, sorted(answers.rows, key=_in_order), answers.truncated)


def _in_order(row: Row) -> list[tuple[int, Value | str]]:
    """Numbers before texts before terms. Prolog's own order would differ from run to run for tabled predicates."""
    return [
        (2, str(cell)) if isinstance(cell, PrologTerm) else (1, cell) if isinstance(cell, str) else (0, cell)
        for cell in row
    ]


def assumptions(assume: Iterable[str | Atom], library: Library) -> tuple[Atom, ...]:
    """What `--assume` says, as ground atoms of known predicates."""
    return tuple(one if isinstance(one, Atom) else parse_atom(one, library) for one in assume)


def parse_atom(text: str, library: Library) -> Atom:
    """One ground atom in the notation of goals: `is_allergic_to(tom, shellfish)`."""
    term = parse_goal(text, library).term
    if not isinstance(term, Compound) or not library.knows(term.indicator):
        raise HapaxError(
            f"{_short(text)} is no single atom of the rules. Write one, such as is_allergic_to(tom, shellfish)."
        )
    constants = [one for one in map(_constant, term.arguments) if one is not None]
    if len(constants) != len(term.arguments):
        raise HapaxError(
            f"{_short(text)} has a variable. Name the person or thing; a capital letter begins a variable."
        )
    return Atom(term.functor, tuple(constants))


def _constant(term: object) -> Constant | None:
    if isinstance(term, Compound) and term.indicator == "-/1":
        inner = term.arguments[0]
        if isinstance(inner, Constant) and not isinstance(inner.value, str):
            return Constant(-inner.value)
    return term if isinstance(term, Constant) else None


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def relevant_facts(kb: KnowledgeBase, library: Library) -> Iterator[FactRecord]:
    """The stored facts of the predicates that the (partial) library knows."""
    for signature in library.completed().signatures:
        yield from kb.facts(signature.indicator)


def known_atoms(atoms: Iterable[Atom], library: Library) -> tuple[Atom, ...]:
    """The atoms whose predicates the partial library still has; the others cannot matter."""
    return tuple(atom for atom in atoms if library.knows(atom.indicator))


@contextmanager
def opened(session: PrologSession | None) -> Iterator[PrologSession]:
    """The caller's session, or one of our own that is closed afterwards."""
    if session is not None:
        yield session
        return
    with PrologSession() as own:
        yield own
