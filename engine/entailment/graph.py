"""Entailments between predicates: stored as facts `entails(P, Q, Score)`, and used as rules.

P and Q are atoms with typed variables in rule notation: `shopped_in(Person A, Location B)` entails
`went_to(Person A, Location B)`. Arguments may be permuted, and every variable of Q is in P.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from pathlib import Path

from hapax.grammar.arguments import checked
from hapax.grammar.attributes import default_polarity, default_principle
from hapax.grammar.errors import HapaxError, Place, RulesRejected
from hapax.grammar.parser import parse_rule
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Value, Variable
from hapax.grammar.words import counted
from hapax.kb.records import PREDICATES, FactRecord, PredicateRecord, Source
from hapax.kb.schema import ENTAILS
from hapax.kb.store import KnowledgeBase

STRONG = 0.5
"""The default of the score from which on an entailment is used."""

FAULTS_SHOWN = 10

UNTYPED = "HPX042"
"""The code of a variable without a data type."""

# Letters, digits and underscores need no quotes, and one capital letter is a variable's name.
_PLAIN_ATOM = re.compile(r"([a-z]\w*)\(((?:[A-Z]\w*(?: [A-Z]\w*)* [A-Z], )*[A-Z]\w*(?: [A-Z]\w*)* [A-Z])\)")

DECLARATION = PredicateRecord(ENTAILS, ("Entailing Atom", "Entailed Atom", "Score"), "given")
"""The declaration of the facts that store entailments."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An entailment. Its variables are named A, B, ... in the order of the premise."""

    premise: Atom
    hypothesis: Atom
    score: float

    @classmethod
    def of(cls, premise: str, hypothesis: str, score: float, library: Library | None = None) -> Edge:
        """Parse an entailment; types that the atoms leave out come from `library`. Raises HapaxError."""
        try:
            # As a rule with one premise, whose faults the parser of rules reports.
            rule = parse_rule(f"{premise} -> {hypothesis}", library)
        except RulesRejected as rejected:
            first = rejected.diagnostics[0]
            remedy = f"{first.remedy.rstrip('.')}, or name the file that declares the predicate by {Setting('rules')}."
            raise HapaxError(
                f"{premise} -> {hypothesis} is not an entailment: {first.message}. "
                f"{remedy if first.code == UNTYPED else first.remedy}"
            ) from None
        lone = rule.literals[0] if len(rule.premise) == len(rule.literals) == 1 else None
        if lone is None or lone.negated:
            raise HapaxError(f"{premise} -> {hypothesis}: write exactly one atom on each side, without negation.")
        terms = chain.from_iterable(atom.arguments for atom in rule.atoms)
        if not all(isinstance(term, Variable) for term in terms) or rule.unbound:
            raise HapaxError(f"{premise} -> {hypothesis}: use variables only, and on the right only those of the left.")
        if not 0 <= score <= 1:
            raise HapaxError(f"{premise} -> {hypothesis}: the score is {score}; write a number from 0 to 1.")
        names = {variable.name: chr(ord("A") + number) for number, variable in enumerate(rule.variables)}
        return cls(_renamed(lone.atom, names), _renamed(rule.conclusion.atom, names), score)

    @property
    def is_trivial(self) -> bool:
        """True if an atom entails itself."""
        return self.premise == self.hypothesis

    @property
    def name(self) -> str:
        """The name of the rule in proofs, with the score to four digits."""
        score = f"{self.score:.4f}".rstrip("0")
        # Two decimals at least: 0.50, but 0.1234.
        shown = score if len(score) > len("0.00") else f"{self.score:.2f}"
        return f"{self.premise.predicate} entails {self.hypothesis.predicate} ({shown})"

    @property
    def rule(self) -> Rule:
        """The entailment as a rule without generic variables."""
        # Not parsed: a goal may need thousands.
        conclusion = Literal(self.hypothesis)
        polarity = default_polarity(conclusion)
        return Rule(
            self.name,
            (Literal(self.premise),),
            conclusion,
            principle=default_principle(polarity),
            polarity=polarity,
            place=Place(ENTAILS, 1, 1),
            probability=self.score,
        )

    @property
    def fact(self) -> FactRecord:
        values = (str(self.premise), str(self.hypothesis), Decimal(repr(self.score)))
        # The shortest decimal that reads back as the same float.
        return FactRecord(ENTAILS, values, DECLARATION.argument_types, Source.GIVEN)


def edges(kb: KnowledgeBase, at_least: float = STRONG) -> list[Edge]:
    """The stored entailments with at least this score; of several between the same atoms the strongest."""
    best: dict[tuple[Atom, Atom], Edge] = {}
    for fact in kb.facts(ENTAILS):
        edge = stored_edge(fact.arguments)
        pair = (edge.premise, edge.hypothesis)
        if edge.score >= at_least and (pair not in best or best[pair].score < edge.score):
            best[pair] = edge
    return sorted(best.values(), key=lambda edge: (str(edge.premise), str(edge.hypothesis)))


def stored_edge(arguments: Sequence[Value | None]) -> Edge:
    """The entailment of a fact `entails(P, Q, Score)`. Raises HapaxError for other arguments."""
    if len(arguments) != 3:
        raise HapaxError(f"A fact of {ENTAILS} has {counted(len(arguments), 'argument')}, not 3. Retract it.")
    texts, score = list(map(str, arguments[:2])), float(arguments[2] or 0)
    premise, hypothesis = map(_plain_atom, texts)
    # The parser reads what has another form, or says what is wrong with it.
    if premise is None or hypothesis is None or not 0 <= score <= 1:
        return Edge.of(texts[0], texts[1], score)
    names = [term.name for term in premise.variables]
    if names != [chr(ord("A") + number) for number in range(len(names))]:
        return Edge.of(texts[0], texts[1], score)
    if {term.name for term in hypothesis.variables} - set(names):
        return Edge.of(texts[0], texts[1], score)
    return Edge(premise, hypothesis, score)


@lru_cache(maxsize=100_000)
def _plain_atom(text: str) -> Atom | None:
    """The atom of a text as `Edge.fact` writes it, without the parser, which takes a millisecond; else None."""
    found = _PLAIN_ATOM.fullmatch(text)
    if found is None:
        return None
    parts = [argument.rpartition(" ") for argument in found[2].split(", ")]
    return Atom(found[1], tuple(Variable(name, data_type) for data_type, _, name in parts))


def store_edges(kb: KnowledgeBase, found: Iterable[Edge]) -> int:
    """Store entailments as given facts, without those of an atom by itself, and return their number.

    Entailments that are stored already stay.
    """
    facts = [edge.fact for edge in found if not edge.is_trivial]
    with kb.transaction():
        kb.add(PREDICATES, [DECLARATION])
        kb.add_facts(facts)
    return len(facts)


@checked
def read_entailments(rules: Library, *paths: str | Path) -> list[Edge]:
    """The entailments of files with lines of `premise TAB hypothesis TAB score`.

    Types that the rules declare may be left out. Raises HapaxError for an empty file, and with every faulty line.
    """
    # A list, so that a faulty file raises before anything of another is stored.
    return list(chain.from_iterable(_read_edges(Path(path), rules) for path in paths))


def _read_edges(path: Path, library: Library) -> list[Edge]:
    """Read lines of `premise TAB hypothesis TAB score`. Raises HapaxError for an empty file and for faulty lines."""
    try:
        # `-sig`: spreadsheets write a byte order mark, which would become part of the first predicate's name.
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as fault:
        raise HapaxError(f"{path} cannot be read as UTF-8 text: {fault}. Name a file of entailments.") from None
    found: list[Edge] = []
    faults: list[str] = []
    # Without quoting: a stray quotation mark must not join lines.
    for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE), 1):
        if not any(cell.strip() for cell in row):
            continue
        try:
            found.append(_edge(row, library))
        except HapaxError as fault:
            faults.append(f"{path}:{number}: {fault}")
    if faults:
        more = len(faults) - FAULTS_SHOWN
        shown = faults[:FAULTS_SHOWN]
        raise HapaxError("\n".join([*shown, f"and {counted(more, 'more faulty line')}"] if more > 0 else shown))
    if not found:
        raise HapaxError(f"{path} contains no entailment. Write lines of premise TAB hypothesis TAB score.")
    return found


def _edge(row: Sequence[str], library: Library | None) -> Edge:
    if len(row) != 3:
        raise HapaxError(
            f"the line has {counted(len(row), 'field')}. Write premise, hypothesis and score, separated by tabs."
        )
    try:
        score = float(row[2])
    except ValueError:
        raise HapaxError(f"{row[2]!r} is not a score. Write a number from 0 to 1.") from None
    return Edge.of(row[0].strip(), row[1].strip(), score, library)


def entailment_scores(library: Library) -> dict[str, float]:
    """The scores of the rules that stand for entailments, by the name of the rule."""
    return {rule.name: rule.probability for rule in library.rules if rule.probability is not None}


def _renamed(atom: Atom, names: dict[str, str]) -> Atom:
    variables = (term for term in atom.arguments if isinstance(term, Variable))  # an entailment has no constants
    return Atom(atom.predicate, tuple(Variable(names[variable.name], variable.data_type) for variable in variables))
