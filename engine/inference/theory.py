"""Theories, which are rules with facts and assumptions, and the goals and atoms that users ask of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.inference.stored_atoms import StoredAtoms
from hapax.engine.prolog.session import AnswerRow, PrologTerm
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import Goal, GoalItem
from hapax.grammar.parsing.goal_reader import CUT, Elsewhere
from hapax.grammar.parsing.parser import parse_goal
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Comparison, Literal, Value, Variable
from hapax.grammar.writing.words import counted, excerpt, some
from hapax.kb.records import PREDICATES, TYPE_FACTS, DenialRecord, FactRecord, TypeFact
from hapax.kb.schema import GIVEN
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class QueryResult:
    """Distinct answers as rows, with a column for each variable of the goal.

    A goal without variables holds if there is a row. `failures`: messages about comparisons without a value.
    """

    columns: tuple[str, ...]
    rows: Sequence[AnswerRow] = field(default_factory=list)
    truncated: bool = False
    failures: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return len(self.rows) > 0


@dataclass(frozen=True, slots=True)
class FactSource:
    """Where an evaluation finds the facts and the denials of a predicate, by indicator.

    `stored`: SQL of the condition on the stored facts, as rows of their relation, that count, and `beside` has further
    facts; None: `facts` has all of them.
    """

    kb: KnowledgeBase
    facts: Callable[[str], Iterable[FactRecord]]
    denials: Callable[[str], Iterable[DenialRecord]]
    assumed: tuple[Atom, ...] = ()
    stored: Callable[[str], str | None] = lambda _: None
    beside: Callable[[str], Iterable[FactRecord]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class AskedAtom:
    """An atom as a user named it: `_`, or a column that is not named, leaves an argument open.

    `tests`: for each number written as rounded as tables print it, a test that the exact number rounds to it.
    """

    atom: Atom
    tests: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True)
class Theory:
    """Rules, the facts of a knowledge base, and assumptions (`--assume`) that are stored nowhere.

    `known`: the facts that a search has accepted so far, in place of all that are stored.
    """

    library: Library
    kb: KnowledgeBase
    assume: tuple[str | Atom, ...] = ()
    known: RunFacts | None = None

    @property
    def assumed(self) -> tuple[Atom, ...]:
        """The assumptions as ground atoms. Raises HapaxError for a text that is not an atom of a known predicate."""
        return tuple(atom if isinstance(atom, Atom) else parse_atom(atom, self.library) for atom in self.assume)

    def facts(self, without: Collection[str] = ()) -> Iterator[FactRecord]:
        """The facts of the predicates that the library knows, `without` those of some indicators."""
        facts = self.kb.facts if self.known is None else self.known.of_run
        for signature in self.library.completed().signatures:
            if signature.indicator not in without:
                yield from facts(signature.indicator)

    def denied(self) -> Iterator[DenialRecord]:
        """The denials of open predicates, which negations of these need."""
        denials = self.kb.denials if self.known is None else self.known.denials
        for signature in self.library.signatures:
            if self.library.is_open(signature.indicator):
                yield from denials(signature.indicator)

    def type_facts(self) -> list[TypeFact]:
        """The types under which values were accepted."""
        return self.kb.select(TYPE_FACTS) if self.known is None else self.known.types()

    def source(self) -> FactSource:
        """The facts, denials and assumptions for an evaluation."""
        known = self.known
        if known is None:
            return FactSource(self.kb, self.kb.facts, self.kb.denials, self.assumed, lambda _: "1")
        return FactSource(self.kb, known.of_run, known.denials, self.assumed, lambda _: GIVEN, known.found)

    def asked_atom(self, text: str) -> AskedAtom:
        """Parse an atom that may leave arguments open. Raises as `goal`, and HapaxError for any other goal."""
        return parse_asked(text, self.library, self._elsewhere)

    def goal(self, text: str) -> Goal:
        """Parse a goal. Raises GoalRejected, which says what is stored about an unknown predicate."""
        return parse_goal(text, self.library, self._elsewhere)

    def _elsewhere(self, indicator: str) -> str:
        """A hint about a predicate that the library does not know: what is stored about it, and how to load that."""
        from hapax.engine.entailment.graph import strongest

        score = strongest(self.kb, indicator)
        if score is not None:
            entailments = f"{self.kb.place} holds entailments of it, the strongest of score {score:g}"
            return f"{entailments}: use {Setting('hapax.with_entailments')} {score:g} to include that one."
        counts = self.kb.fact_counts()
        count, (name, _, arity) = counts.get(indicator, 0), indicator.rpartition("/")
        facts = f"{self.kb.place} holds {counted(count, 'fact')} of it"
        if any(predicate.indicator == indicator for predicate in self.kb.select(PREDICATES)):
            return f"{facts}, from a search with other rule files: name them with {Setting('rules')}."
        if not count:
            others = [known for known in counts if known.rpartition("/")[0] == name and not self.library.knows(known)]
            if others:
                remedy = f"name one with {Setting('rules')}"
                return f"{self.kb.place} has facts of {some(others)}, which no loaded rule file declares: {remedy}."
            return self._derived(indicator)
        line = f"given {name}({', '.join(['Object'] * int(arity))})"
        return (
            f"{facts}, and no loaded rule file declares it: name one with {Setting('rules')}. The line `{line}` "
            "is enough."
        )

    def _derived(self, indicator: str) -> str:
        """The same hint for a predicate of which only `hapax derive` may have stored something."""
        remedy = f"name its rule file with {Setting('rules')}."
        if indicator in self.kb.derived_predicates():
            return f"{self.kb.place} holds derived atoms of {indicator.rpartition('/')[0]}: {remedy}"
        # An earlier command's rule files are those of the knowledge base.
        kept = [record.name for record in self.kb.rule_texts()]
        shipped = Setting('hapax.load_rules("shipped")')
        hint = f"{self.kb.place} keeps the rules of {some(kept)}; {shipped} names those of Hapax. " if kept else ""
        # Statements are stored by rule; only the rule's file says which predicate it concludes.
        known = {rule.name for rule in self.library.rules}
        rules = [name for name in self.kb.derived_counts() if name not in known]
        if not rules:
            return hint
        derived = f"derived statements of {'rule' if len(rules) == 1 else 'rules'} {some(rules)}"
        return f"{self.kb.place} holds {derived}. If one concludes the predicate, {remedy} {hint}"

    def relevant_to(self, *rules: Rule, goals: Iterable[str] = ()) -> Theory:
        """The part of the theory that the rules' premises or the goals (indicators) depend on."""
        part = relevant_library(self.library, *rules, goals=goals)
        return replace(self, library=part, assume=tuple(atom for atom in self.assumed if part.knows(atom.indicator)))

    def without_stored(self, goal: Goal) -> tuple[Theory, StoredAtoms | None]:
        """The theory without what a goal can read from stored atoms, and these atoms, if there are any."""
        if self.known is not None:
            return self, None
        library = self.library.with_closure()
        stored = StoredAtoms.below(self.kb, library, self.assumed, goal.called, whole=not goal.has_constants)
        return (self, None) if stored is None else (replace(self, library=stored.part), stored)

    def index(self) -> None:
        """Index large predicates, for questions about some of their facts. Call it outside `one_state`."""
        if self.known is None:
            self.kb.index_facts(signature.indicator for signature in self.library.completed().signatures)


def sort_key(row: AnswerRow) -> list[tuple[int, Value | str]]:
    """Sorts numbers before texts before terms."""
    return [
        # The leading number keeps cells of different kinds apart, which Python cannot compare.
        (2, str(cell)) if isinstance(cell, PrologTerm) else (1, cell) if isinstance(cell, str) else (0, cell)
        for cell in row
    ]


def parse_atom(text: str, library: Library) -> Atom:
    """Parse a ground atom in the notation of goals: `is_allergic_to(tom, shellfish)`."""
    asked = parse_asked(text, library)
    if not asked.atom.is_ground:
        raise HapaxError(f"{excerpt(text, 80)} leaves an argument open. Write a value for each.")
    return asked.atom


def parse_asked(text: str, library: Library, elsewhere: Elsewhere = lambda _: "") -> AskedAtom:
    """Parse an atom in the notation of goals, such as `likes(ann, _)` or `trip(id: 7, air_time: 63)`."""
    goal = parse_goal(text, library, elsewhere)
    call, *tests = goal.premise
    if not isinstance(call, Literal) or not all(map(_is_of_digits, tests)):
        raise HapaxError(
            f"{excerpt(text, 80)} is not an atom of the loaded rules. Write one, such as "
            "is_allergic_to(tom, shellfish)."
        )
    if goal.variables:
        raise HapaxError(
            f"{excerpt(text, 80)} contains a variable, which begins with a capital letter. Write a name in its place, "
            "in quotes if it is capitalised, or _ for any."
        )
    return AskedAtom(call.atom, tuple(test for test in tests if isinstance(test, Comparison)))


def _is_of_digits(item: GoalItem) -> bool:
    """True for a test by which a goal has a number whose digits are cut."""
    return isinstance(item, Comparison) and isinstance(item.left, Variable) and item.left.name.startswith(CUT)
