"""Goals over what is known: typed by a person, answered by Prolog under limits, nothing stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.derive import relevant_library
from engine.entailment import strongest
from engine.known import KnownFacts
from engine.program import build_program
from engine.session import PrologSession, PrologTerm, QueryLimits, Row
from grammar.errors import HapaxError
from grammar.goals import Compound, Elsewhere, Goal, called_indicators, goal_text
from grammar.parser import parse_goal
from grammar.rules import Library, Rule
from grammar.terms import Atom, Constant, Value
from grammar.words import counted
from kb.records import FactRecord, TypeFact
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


@dataclass(frozen=True, slots=True)
class Theory:
    """What goals are asked of: rules, the facts of a knowledge base, and what `--assume` says for the moment.

    `known`: what a search holds true so far, in place of everything that is stored.
    """

    library: Library
    kb: KnowledgeBase
    assume: tuple[str | Atom, ...] = ()
    known: KnownFacts | None = None

    @property
    def assumed(self) -> tuple[Atom, ...]:
        """The assumptions as ground atoms of known predicates. Raises HapaxError for what is none."""
        return tuple(one if isinstance(one, Atom) else parse_atom(one, self.library) for one in self.assume)

    def facts(self) -> Iterator[FactRecord]:
        """The facts of the predicates that the library knows."""
        facts = self.kb.facts if self.known is None else self.known.held
        for signature in self.library.completed().signatures:
            yield from facts(signature.indicator)

    def type_facts(self) -> list[TypeFact]:
        """The types that values are known to have."""
        return self.kb.type_facts() if self.known is None else self.known.types()

    def atom(self, text: str) -> Atom:
        """The ground atom of a text. Raises as `goal`, and HapaxError for what is none."""
        return parse_atom(text, self.library, self._elsewhere)

    def goal(self, text: str) -> Goal:
        """The goal of a text. Raises GoalRejected, which says of an unknown predicate what the store knows of it."""
        return parse_goal(text, self.library, self._elsewhere)

    def _elsewhere(self, indicator: str) -> str:
        score = strongest(self.kb, indicator)
        if score is not None:
            told = f"{self.kb.place} holds entailments of it, the strongest of score {score:g}"
            return f"{told}: --entail {score:g} takes that one in."
        count = self.kb.fact_counts().get(indicator, 0)
        facts = f"{self.kb.place} holds {counted(count, 'fact')} of it"
        if any(one.indicator == indicator for one in self.kb.predicates()):
            return f"{facts}, from a search with other rule files: name them with --rules."
        if not count:
            return self._derived(indicator)
        name, _, arity = indicator.rpartition("/")
        line = f"given {name}({', '.join(['Object'] * int(arity))})"
        return f"{facts}, and no loaded rule file declares it: name one with --rules. The line `{line}` is enough."

    def _derived(self, indicator: str) -> str:
        """What `hapax derive` has stored; of which predicates its rules' statements are, their files alone say."""
        ask = "name its rules with --rules FILE."
        if indicator in self.kb.derived_predicates():
            return f"{self.kb.place} holds derived statements of {indicator.rpartition('/')[0]}: {ask}"
        names = list(self.kb.derived_counts())
        some = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
        return f"{self.kb.place} holds derived statements of {some}: if one concludes it, {ask} " if names else ""

    def behind(self, *rules: Rule, goals: Iterable[str] = ()) -> Theory:
        """The part that the rules' premises or the goals (indicators) rest on; nothing else can matter to them."""
        part = relevant_library(self.library, *rules, goals=goals)
        return replace(self, library=part, assume=tuple(atom for atom in self.assumed if part.knows(atom.indicator)))

    def program(self) -> str:
        """Everything in it as a Prolog program."""
        return build_program(self.library, self.facts(), assumed=self.assumed)


def run_query(
    theory: Theory, goal_text: str, limits: QueryLimits | None = None, *, session: PrologSession | None = None
) -> QueryResult:
    """The answers of a goal. Raises GoalRejected, GoalRefused or LimitExceeded."""
    goal = theory.goal(goal_text)
    part = theory.behind(goals=called_indicators(goal, theory.library))
    with opened(session) as prolog:
        prolog.load(part.program())
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


def parse_atom(text: str, library: Library, elsewhere: Elsewhere = lambda _: "") -> Atom:
    """One ground atom in the notation of goals: `is_allergic_to(tom, shellfish)`."""
    term = parse_goal(text, library, elsewhere).term
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


@contextmanager
def opened(session: PrologSession | None) -> Iterator[PrologSession]:
    """The caller's session, or one of our own that is closed afterwards."""
    if session is not None:
        yield session
        return
    with PrologSession() as own:
        yield own
