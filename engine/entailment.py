"""Entailments between predicates: stored as facts `entails(P, Q, Score)`, used as rules, and closed by Prolog.

P and Q are atoms with typed variables in rule notation: `shopped_in(Person A, Location B)` entails
`went_to(Person A, Location B)`. Arguments may change places, and Q has no variable that P lacks.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from engine.derive import BULK
from engine.session import PrologSession, PrologTerm
from grammar.errors import HapaxError, RulesRejected
from grammar.parser import parse_rule
from grammar.prolog_text import atom_goal
from grammar.rules import Library, Place, Rule
from grammar.terms import Atom, Constant, Term, Variable
from kb.records import FactRecord, PredicateRecord, Source
from kb.store import KnowledgeBase

ENTAILS = "entails"
"""The predicate that holds entailments: premise, hypothesis, score in [0, 1]."""

STRONG = 0.5
"""From which score on an entailment counts unless the user says otherwise."""

FAULTS_SHOWN = 10

UNTYPED = "HPX042"
"""The code of a variable without a data type."""

_DECLARATION = PredicateRecord(ENTAILS, ("Entailing Atom", "Entailed Atom", "Score"), "given")


@dataclass(frozen=True, slots=True)
class Edge:
    """One entailment. Variables are named A, B, ... in the order of the premise."""

    premise: Atom
    hypothesis: Atom
    score: float

    @classmethod
    def of(cls, premise: str, hypothesis: str, score: float, library: Library | None = None) -> Edge:
        """From texts; a `library` gives types that they leave out. Raises HapaxError with fact and remedy."""
        try:
            rule = parse_rule(f"{premise} -> {hypothesis}", library)
        except RulesRejected as rejected:
            first = rejected.diagnostics[0]
            remedy = f"{first.remedy.rstrip('.')}, or name the file that declares the predicate by --rules."
            raise HapaxError(
                f"{premise} -> {hypothesis} is no entailment: {first.message}. "
                f"{remedy if first.code == UNTYPED else first.remedy}"
            ) from None
        lone = rule.literals[0] if len(rule.premise) == len(rule.literals) == 1 else None
        if lone is None or lone.negated or rule.conclusion.negated:
            raise HapaxError(f"{premise} -> {hypothesis}: an entailment has one atom on each side.")
        if not all(isinstance(term, Variable) for atom in rule.atoms for term in atom.arguments) or rule.unbound:
            raise HapaxError(
                f"{premise} -> {hypothesis}: write variables only, and on the right none that the left lacks."
            )
        if not 0 <= score <= 1:
            raise HapaxError(f"{premise} -> {hypothesis}: the score is {score}; write a number from 0 to 1.")
        names = {one.name: chr(ord("A") + number) for number, one in enumerate(rule.variables)}
        return cls(_renamed(lone.atom, names), _renamed(rule.conclusion.atom, names), score)

    @property
    def is_trivial(self) -> bool:
        """Whether it says that an atom entails itself."""
        return self.premise == self.hypothesis

    @property
    def name(self) -> str:
        """What a proof calls it."""
        return f"{self.premise.predicate} entails {self.hypothesis.predicate} ({self.score:.2f})"

    @property
    def rule(self) -> Rule:
        """The entailment as a rule that speaks about nobody."""
        text = f"{_written(self.premise)} -> {_written(self.hypothesis)}"
        return replace(parse_rule(text), name=self.name, generic=(), place=Place(ENTAILS, 1, 1))

    @property
    def fact(self) -> FactRecord:
        values = (_written(self.premise), _written(self.hypothesis), Decimal(repr(self.score)))
        return FactRecord(ENTAILS, values, _DECLARATION.argument_types, Source.GIVEN)


def edges(kb: KnowledgeBase, at_least: float = STRONG) -> list[Edge]:
    """The stored entailments of this score and more; of equal ones that with the highest score."""
    best: dict[tuple[Atom, Atom], Edge] = {}
    for fact in kb.facts(ENTAILS):
        premise, hypothesis, score = fact.arguments
        edge = Edge.of(str(premise), str(hypothesis), float(score))
        pair = (edge.premise, edge.hypothesis)
        if edge.score >= at_least and (pair not in best or best[pair].score < edge.score):
            best[pair] = edge
    return sorted(best.values(), key=lambda one: (str(one.premise), str(one.hypothesis)))


def strongest(kb: KnowledgeBase, indicator: str) -> float | None:
    """The highest score of a stored entailment from or to a predicate; None without one."""
    scores = [one.score for one in edges(kb, 0.0) if indicator in (one.premise.indicator, one.hypothesis.indicator)]
    return max(scores, default=None)


def store_edges(kb: KnowledgeBase, found: Iterable[Edge]) -> int:
    """Keep entailments as given facts, but for those of an atom by itself; how many they are. What was there stays."""
    facts = [edge.fact for edge in found if not edge.is_trivial]
    with kb.transaction():
        kb.add_predicates([_DECLARATION])
        kb.add_facts(facts)
    return len(facts)


def read_edges(path: Path, library: Library | None = None) -> list[Edge]:
    """Lines of `premise TAB hypothesis TAB score`. Raises HapaxError for none, or telling every faulty line."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path}: cannot be read as text in UTF-8 ({fault}). Name a file of entailments.") from None
    found: list[Edge] = []
    faults: list[str] = []
    for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE), 1):
        if not any(cell.strip() for cell in row):
            continue
        try:
            found.append(_edge(row, library))
        except HapaxError as fault:
            faults.append(f"{path}:{number}: {fault}")
    if faults:
        more = len(faults) - FAULTS_SHOWN
        raise HapaxError("\n".join([*faults[:FAULTS_SHOWN], *([f"and {more} more faulty lines"] if more > 0 else [])]))
    if not found:
        raise HapaxError(f"{path}: holds no entailment. Write lines of premise TAB hypothesis TAB score.")
    return found


def _edge(row: Sequence[str], library: Library | None) -> Edge:
    if len(row) != 3:
        raise HapaxError(f"has {len(row)} fields between tabs; it takes premise, hypothesis and score.")
    try:
        score = float(row[2])
    except ValueError:
        score = math.nan
    return Edge.of(row[0].strip(), row[1].strip(), score, library)


def with_entailments(library: Library, found: Iterable[Edge]) -> Library:
    """The library with entailments as rules. What it declares stays declared, so its oracle predicates stay asked."""
    declared = tuple(replace(one, declared=True) for one in library.completed().signatures)
    return replace(library, signatures=declared, rules=(*library.rules, *(edge.rule for edge in found)))


@dataclass(frozen=True, slots=True)
class Chain:
    """The shortest way from one atom to one that it entails, through every atom between."""

    atoms: tuple[Atom, ...]

    @property
    def end(self) -> Atom:
        return self.atoms[-1]

    def __str__(self) -> str:
        return ", which entails ".join(map(str, self.atoms)).replace(", which entails ", " entails ", 1)


class EntailmentGraph:
    """What follows from what by entailments alone, by Prolog's tabling; circles are paraphrases."""

    def __init__(self, found: Sequence[Edge], session: PrologSession) -> None:
        """`session` gets another program loaded with each question."""
        self.edges = tuple(found)
        self._session = session

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Every predicate as an atom over A, B, ..., in order of names."""
        named = {atom.indicator: atom for edge in self.edges for atom in (edge.premise, edge.hypothesis)}
        return tuple(_plain(named[indicator]) for indicator in sorted(named))

    def chains(self, starts: Iterable[Atom]) -> dict[Atom, list[Chain]]:
        """From each atom the shortest chain to every other that it entails. The atoms' terms stay as they are."""
        wanted = list(dict.fromkeys(starts))
        if not self.edges or not wanted:
            return {atom: [] for atom in wanted}
        constants = [_frozen(atom) for atom in wanted]
        program = "\n".join([*_PATHS, *map(_clause, self.edges), *map(_start, range(len(wanted)), constants)])
        self._session.load(program + "\n")
        answers = self._session.solutions(
            "hapax_start(Number, Start), hapax_path(Start, _, Path)", ("Number", "Path"), BULK, trusted=True
        )
        found: dict[Atom, list[Chain]] = {atom: [] for atom in wanted}
        for number, path in answers.rows:
            start = wanted[int(str(number))]
            steps = _steps(path)
            if steps[-1] != steps[0]:
                found[start].append(Chain(tuple(_thawed(step, start) for step in steps)))
        return {atom: sorted(some, key=lambda one: (len(one.atoms), str(one.end))) for atom, some in found.items()}

    @cached_property
    def closure(self) -> dict[Atom, list[Chain]]:
        """The chains from every predicate."""
        return self.chains(self.atoms)

    @cached_property
    def paraphrases(self) -> tuple[tuple[Atom, ...], ...]:
        """Sets of atoms that entail each other, the arguments in their places."""
        reached = {atom: {chain.end for chain in chains} for atom, chains in self.closure.items()}
        found: list[tuple[Atom, ...]] = []
        told: set[str] = set()
        for atom in self.atoms:
            if atom.indicator in told:
                continue
            back = self.chains(sorted(reached[atom], key=str))
            same = [end for end, chains in back.items() if any(chain.end == atom for chain in chains)]
            if same:
                told |= {one.indicator for one in (atom, *same)}
                found.append((atom, *same))
        return tuple(found)


# A path is Length-[Atom, ...]; the least in standard order is the shortest, and always the same one.
_PATHS = (
    ":- style_check(-singleton).",
    ":- table hapax_path(_, _, min).",
    "hapax_path(P, Q, 1-[P, Q]) :- hapax_edge(P, Q).",
    "hapax_path(P, Q, Path) :- hapax_edge(P, R), hapax_path(R, Q, Tail), Tail = M-Rest, N is M + 1, Path = N-[P|Rest].",
)


def _clause(edge: Edge) -> str:
    return f"hapax_edge({atom_goal(edge.premise)}, {atom_goal(edge.hypothesis)})."


def _start(number: int, atom: Atom) -> str:
    return f"hapax_start({number}, {atom_goal(atom)})."


def _frozen(atom: Atom) -> Atom:
    """The atom with its distinct terms as constants."""
    places = {term: Constant(number) for number, term in enumerate(dict.fromkeys(atom.arguments))}
    return Atom(atom.predicate, tuple(places[term] for term in atom.arguments))


def _thawed(term: PrologTerm, start: Atom) -> Atom:
    """The atom of a path's term, with the terms that stood at the start."""
    terms = list(dict.fromkeys(start.arguments))
    return Atom(term.name, tuple(terms[int(str(one))] for one in term.arguments))


def _steps(path: object) -> list[PrologTerm]:
    """The terms of `Length-[...]`."""
    assert isinstance(path, PrologTerm)  # noqa: S101  # the program above says so
    listed = path.arguments[1]
    assert isinstance(listed, PrologTerm)  # noqa: S101
    return [one for one in listed.arguments if isinstance(one, PrologTerm)]


def _plain(atom: Atom) -> Atom:
    """The atom over A, B, ... with its types."""
    names = [chr(ord("A") + number) for number in range(len(atom.arguments))]
    types = [term.data_type if isinstance(term, Variable) else "" for term in atom.arguments]
    return Atom(atom.predicate, tuple(Variable(*each) for each in zip(names, types, strict=True)))


def _renamed(atom: Atom, names: dict[str, str]) -> Atom:
    return Atom(atom.predicate, tuple(_term(term, names) for term in atom.arguments))


def _term(term: Term, names: dict[str, str]) -> Term:
    return Variable(names[term.name], term.data_type) if isinstance(term, Variable) else term


def _written(atom: Atom) -> str:
    """With types, as it is stored."""
    return str(atom)
