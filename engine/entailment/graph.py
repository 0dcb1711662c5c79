"""Entailments between predicates: stored as facts `entails(P, Q, Score)`, and used as rules.

P and Q are atoms with typed variables in rule notation: `shopped_in(Person A, Location B)` entails
`went_to(Person A, Location B)`. Arguments may be permuted, and every variable of Q is in P.

Edges are looked up by predicate, so that a goal reads those on its own chains and no others. The score of a chain is
the product of the scores of its steps (soft transitivity, Chen et al. 2022). Chains are followed on demand and never
stored. A predicate's edge for the types at hand counts; without one the mean over all types does, as in typed
entailment graphs (Hosseini et al. 2018, section 5).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from heapq import heappop, heappush
from itertools import chain, count
from pathlib import Path
from typing import Generic, TypeVar

from hapax.grammar.arguments import checked
from hapax.grammar.checking import faults
from hapax.grammar.checking.pair_checks import (
    NOT_COMPARED,
    duplicate_and_subsumed_rules,
    opposite_conclusions,
)
from hapax.grammar.checking.subsumption import subsumes
from hapax.grammar.errors import Diagnostic, HapaxError, Place, RulesRejected
from hapax.grammar.parsing.declarations import Chance, default_polarity, default_principle
from hapax.grammar.parsing.parser import parse_rule
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import Atom, Constant, Literal, Term, Value, Variable, connected, grouped, variable_names
from hapax.grammar.writing.words import counted
from hapax.kb import rows
from hapax.kb.files.whole_files import read_text
from hapax.kb.records import PREDICATES, FactRecord, PredicateRecord, Source
from hapax.kb.store import KnowledgeBase

ENTAILS = "entails"
"""Predicate of the facts that are entailments."""

INDICATOR = f"{ENTAILS}/3"

STRONG = 0.5
"""The default of the score from which on an entailment is used."""

FAULTS_SHOWN = 10

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
            raise HapaxError(
                f"{premise} -> {hypothesis} is not an entailment: {first.message}. {first.remedy}"
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
        conclusion, score = Literal(self.hypothesis), Constant(Decimal(repr(self.score)))
        polarity = default_polarity(conclusion)
        return Rule(
            self.name,
            (Literal(self.premise),),
            conclusion,
            principle=default_principle(polarity),
            polarity=polarity,
            place=Place(ENTAILS, 1, 1),
            chance=Chance(("entailment", self.premise, self.hypothesis), ((score, self.hypothesis),), is_shared=True),
        )

    @property
    def fact(self) -> FactRecord:
        values = (str(self.premise), str(self.hypothesis), Decimal(repr(self.score)))
        # The shortest decimal that reads back as the same float.
        return FactRecord(ENTAILS, values, DECLARATION.argument_types, Source.GIVEN)


def edges(kb: KnowledgeBase, at_least: float = STRONG) -> list[Edge]:
    """The stored entailments with at least this score; of several between the same atoms the strongest."""
    found = (stored_edge(fact.arguments) for fact in kb.facts(ENTAILS))
    return strongest_of(edge for edge in found if edge.score >= at_least)


def strongest_of(found: Iterable[Edge]) -> list[Edge]:
    """The strongest entailment between each two atoms, in order of their texts."""
    best: dict[tuple[Atom, Atom], Edge] = {}
    for edge in found:
        pair = (edge.premise, edge.hypothesis)
        if pair not in best or best[pair].score < edge.score:
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
    letters = [chr(ord("A") + number) for number in range(len(names))]
    is_plain = names == letters and {term.name for term in hypothesis.variables} <= set(names)
    return Edge(premise, hypothesis, score) if is_plain else Edge.of(texts[0], texts[1], score)


@lru_cache(maxsize=100_000)
def _plain_atom(text: str) -> Atom | None:
    """The atom of a text as `Edge.fact` writes it, without the parser, which takes a millisecond; else None."""
    found = _PLAIN_ATOM.fullmatch(text)
    if found is None:
        return None
    parts = [argument.rpartition(" ") for argument in found[2].split(", ")]
    return Atom(found[1], tuple(Variable(name, data_type) for data_type, _, name in parts))


@checked
def store_entailments(kb: KnowledgeBase, entailments: Iterable[Edge]) -> int:
    """Store entailments as facts `entails(P, Q, Score)`, for `with_entailments` and `check_rules`; return their number.

    Entailments of an atom by itself are skipped, and those that are stored already stay.
    """
    facts = [edge.fact for edge in entailments if edge.premise != edge.hypothesis]
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
    text = read_text(path, "Name a file of entailments.")
    found: list[Edge] = []
    faults: list[str] = []
    # Without quoting: a stray quotation mark must not join lines.
    for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE), 1):
        if any(cell.strip() for cell in row):
            try:
                found.append(_edge(row, library))
            except HapaxError as fault:
                faults.append(f"{path}:{number}: {fault}")
    if len(faults) > FAULTS_SHOWN:
        faults[FAULTS_SHOWN:] = [f"and {counted(len(faults) - FAULTS_SHOWN, 'more faulty line')}"]
    if not found and not faults:
        faults = [f"{path} contains no entailment. Write lines of premise TAB hypothesis TAB score."]
    if faults:
        raise HapaxError("\n".join(faults))
    return found


def _edge(row: Sequence[str], library: Library) -> Edge:
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
    chances = {rule.name: rule.chance for rule in library.rules if rule.chance is not None and rule.chance.is_shared}
    return {name: float(sum(chance.shares({}) or ())) for name, chance in chances.items()}


def _renamed(atom: Atom, names: dict[str, str]) -> Atom:
    new = {item.name: Variable(names.get(item.name, item.name), item.data_type) for item in atom.variables}
    return atom.replaced(new)


# --- edges looked up by predicate -------------------------------------------------------------------------------------

PREMISE, HYPOTHESIS = 0, 1
"""Places of the atoms in a fact `entails(P, Q, Score)`."""

# `went_to(`, perhaps with a blank before the bracket
_CALLED = re.compile(r"(?:'((?:[^'\\\n]|\\.)+)'|(\w+))\s*\(")


def edges_of(kb: KnowledgeBase, place: int, predicate: str, at_least: float = 0.0) -> list[Edge]:
    """The stored entailments with this predicate as PREMISE or as HYPOTHESIS; of equal ones the strongest.

    Those between two predicates are left out if none of them, whatever its types, has this score.
    """
    relation = kb.relations.get(INDICATOR)
    if relation is None:
        return []
    kb.index_facts([INDICATOR])
    facts: list[tuple[Value, ...]] = []
    # A file may have a name with blanks for underscores.
    for beginning in {predicate, predicate.replace("_", " ")}:
        low = str(rows.VALUE.encode(beginning))[:-1]
        # The text of an atom that begins like this: `"went_to(` and what follows.
        sql = "SELECT id, symbol FROM symbols WHERE symbol >= ? AND symbol < ?"
        for tag, text in kb.sql(sql, (low, low + "\U0010ffff")):
            if text[1:].partition("(")[0].strip().replace(" ", "_") == predicate:
                found = kb.relations.records(relation, f"WHERE r.a{place + 1} = ?", (tag,))
                facts += (fact.arguments for _, fact in found)
    strong: list[Edge] = []
    for same in grouped(facts, lambda arguments: str(arguments[1 - place]).partition("(")[0]).values():
        # Before atoms are made, which takes longest: most entailments of a graph are weak.
        if max(float(arguments[-1] or 0) for arguments in same) >= at_least:
            strong.extend(map(stored_edge, same))
    return strongest_of(strong)


def strongest(kb: KnowledgeBase, indicator: str) -> float | None:
    """The highest score of a stored entailment from or to a predicate; None if there is none."""
    name = indicator.rpartition("/")[0]
    found = (*edges_of(kb, PREMISE, name), *edges_of(kb, HYPOTHESIS, name))
    named = (edge.score for edge in found if indicator in (edge.premise.indicator, edge.hypothesis.indicator))
    return max(named, default=None)


@checked
def with_entailments(rules: Library, kb: KnowledgeBase, at_least: float, goal: str | None = None) -> Library:
    """The rules and, as further rules, the entailments between predicates that the knowledge base scores this high.

    With a goal: those that it can use, on chains whose product of scores is as high. They are looked up, so that a
    graph of a million entailments costs a goal no more than its own chains. A text without an atom, such as a
    statement, stands for every predicate of the rules.
    """
    signatures = rules.completed().signatures
    if goal is None:
        found = edges(kb, at_least)
    else:
        # The names before brackets, quoted or not: those of predicates, and perhaps of others.
        called = dict.fromkeys(quoted or bare for quoted, bare in _CALLED.findall(goal))
        found = edges_into(kb, rules, [*called] or [signature.name for signature in signatures], at_least)
    # A declared oracle predicate is still asked about when rules conclude it.
    declared = tuple(replace(signature, declared=True) for signature in signatures)
    return replace(rules, signatures=declared, rules=(*rules.rules, *(edge.rule for edge in found)))


def edges_into(kb: KnowledgeBase, library: Library, goals: Iterable[str], at_least: float) -> list[Edge]:
    """The entailments on chains of at least this score that end in a goal or below it, in what rules need for it.

    `goals`: names of predicates. A rule passes a chain on with the same score.
    """
    rules_of = grouped(library.with_closure().rules, lambda rule: rule.conclusion.atom.predicate)
    types = {signature.name: tuple(signature.argument_types) for signature in library.completed().signatures}
    used: list[Edge] = []

    def before(chain: Chain[tuple[str, Types]]) -> Iterator[tuple[float, tuple[str, Types]]]:
        name, wanted = chain.end
        for premise in literals_of(rules_of.get(name, ())):
            yield 1.0, (premise.atom.predicate, types.get(premise.atom.predicate))
        # The further steps of the chain need at least this score.
        least = at_least / chain.score if chain.score else 0.0
        for edge in by_types(edges_of(kb, HYPOTHESIS, name, least), types.get(name, wanted), library):
            if chain.score * edge.score >= at_least:
                used.append(edge)
            premise_name = edge.premise.predicate
            yield edge.score, (premise_name, types.get(premise_name, _types(edge.premise)))

    for _ in strongest_chains([(name, types.get(name)) for name in goals], before, at_least):
        pass  # the walk collects the edges
    return strongest_of(used)


Types = tuple[str, ...] | None
"""The types of a predicate's arguments, None where they are not known."""

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class Chain(Generic[Node]):
    """The strongest way from a start to a node. `before` is the chain to the node before the last."""

    end: Node
    before: Chain[Node] | None = None
    score: float = 1.0
    """Product of the scores along the way: ten steps of .5 are .001."""

    length: int = 1
    """Number of nodes."""

    @property
    def nodes(self) -> list[Node]:
        """Every node on the way, from the first."""
        found: list[Node] = []
        chain: Chain[Node] | None = self
        while chain is not None:
            found.append(chain.end)
            chain = chain.before
        return found[::-1]

    def __str__(self) -> str:
        # `a(A) entails b(A), which entails c(A)`
        return ", which entails ".join(map(str, self.nodes)).replace(", which entails ", " entails ", 1)


def strongest_chains(
    starts: Iterable[Node], steps: Callable[[Chain[Node]], Iterable[tuple[float, Node]]], at_least: float
) -> Iterator[Chain[Node]]:
    """The strongest chain to each node that the starts reach with this score, the strongest first.

    Of equally strong chains the shortest is given. `steps` gives the scores and the ends of the steps that lead on from
    a chain. By Dijkstra's algorithm: a longer chain is never stronger.
    """
    number = count()
    waiting = [(-1.0, 1, next(number), Chain(start)) for start in starts]
    seen: set[Node] = set()
    while waiting:
        *_, chain = heappop(waiting)
        if chain.end in seen:
            continue
        seen.add(chain.end)
        yield chain
        for score, end in steps(chain):
            product, length = chain.score * score, chain.length + 1
            if end not in seen and product >= at_least:
                heappush(waiting, (-product, length, next(number), Chain(end, chain, product, length)))


def by_types(found: Iterable[Edge], wanted: Types, library: Library) -> list[Edge]:
    """One entailment for each pair of predicates and order of arguments, with its score for these types.

    The strongest of those whose hypothesis has the types, or supertypes of them. Without one, the mean over all types.
    """

    def fits(edge: Edge) -> bool:
        types = _types(edge.hypothesis)
        return wanted is not None and len(types) == len(wanted) and all(map(library.is_subtype, wanted, types))

    # With the names: an entailment that exchanges arguments is another one.
    pairs = grouped(found, lambda edge: (edge.premise.predicate, names_of(edge.premise), names_of(edge.hypothesis)))
    chosen: list[Edge] = []
    for same in pairs.values():
        mean = replace(same[0], score=sum(edge.score for edge in same) / len(same))
        chosen.append(max(filter(fits, same), key=lambda edge: edge.score, default=mean))
    return chosen


def _types(atom: Atom) -> tuple[str, ...]:
    return tuple(term.data_type for term in atom.arguments if isinstance(term, Variable))


def names_of(atom: Atom) -> tuple[str, ...]:
    """The names of an entailment's variables, in the order of the arguments."""
    return tuple(term.name for term in atom.arguments if isinstance(term, Variable))


# --- rules that entailments show to be faulty -------------------------------------------------------------------------

Chains = Mapping[Atom, Sequence[Chain[Atom]]]
"""From each atom of the rules, over its rule's variables, to all that it entails."""


def entailment_chains(
    starts: Iterable[Atom], edges_of: Callable[[str], Iterable[Edge]], at_least: float = 0.0
) -> dict[Atom, list[Chain[Atom]]]:
    """The strongest chain from each atom to every other atom that it entails, over the terms of the start.

    Shorter chains come first. Of equally strong chains the shortest is given; those with a lower score than `at_least`
    are left out. `edges_of` gives the entailments whose premise has this indicator.
    """

    def entailed(chain: Chain[Atom]) -> Iterator[tuple[float, Atom]]:
        for edge in edges_of(chain.end.indicator):
            names, terms = names_of(edge.premise), dict[str, Term]()
            # A premise that repeats a variable needs equal terms.
            if all(terms.setdefault(*pair) == pair[1] for pair in zip(names, chain.end.arguments, strict=True)):
                arguments = map(terms.__getitem__, names_of(edge.hypothesis))
                yield edge.score, Atom(edge.hypothesis.predicate, tuple(arguments))

    found = {}
    for start in dict.fromkeys(starts):
        # An atom's entailment of itself is no chain.
        _, *chains = strongest_chains([start], entailed, at_least)
        found[start] = sorted(chains, key=lambda chain: (chain.length, str(chain.end)))
    return found


# --- checks of rules --------------------------------------------------------------------------------------------------

MARGIN = 0.2
"""Lead of an entailment's score over that of its way back, from which on its direction counts."""


@checked
@dataclass(frozen=True, slots=True)
class EntailmentLimits:
    """Limits of entailments that count against rules, from 0 to 1. `at_least`: score of a chain, the product of its
    steps' scores; `margin`: its lead over the score of the way back, from which on its direction counts.
    """

    at_least: float = STRONG
    margin: float = MARGIN


def entailment_faults(
    library: Library, edges_of: Callable[[str], Iterable[Edge]], limits: EntailmentLimits | None = None
) -> Iterator[Diagnostic]:
    """Yield the faults of rules that entailments show, each with the chain that shows it."""
    limits = limits or EntailmentLimits()
    atoms: list[Atom] = []
    for rule in library.rules:
        atoms += [literal.atom for literal in (*_positive(rule), rule.conclusion)]
    chains = entailment_chains(atoms, edges_of, limits.at_least)
    if not any(chains.values()):
        return
    reversed_faults = list(reversed_rules(library.rules, chains, limits.margin))
    yield from reversed_faults
    places = {fault.place for fault in reversed_faults}
    # A reversed rule is not called redundant as well: once turned round it is another rule. Neither is one that the
    # rules alone make redundant: who removes it and the rule that follows only by it would lose the conclusion.
    places |= {fault.place for fault in duplicate_and_subsumed_rules(library)}
    yield from redundant_rules([rule for rule in library.rules if rule.place not in places], chains, library)
    yield from contradicted_rules(library.rules, chains, library)


def reversed_rules(rules: Sequence[Rule], chains: Chains, margin: float) -> Iterator[Diagnostic]:
    """Rules that infer the specific from the general: the conclusion entails a premise more surely than the reverse.

    Rules whose other premises also connect the arguments of the conclusion are left out: those premises may justify it.
    """
    for rule in rules:
        for literal in _positive(rule):
            chain = _to(literal.atom, chains[rule.conclusion.atom])
            if chain is None or not _rests_on(rule, literal):
                continue
            back = _to(rule.conclusion.atom, chains[literal.atom])
            if back is not None and chain.score - back.score < margin:
                continue  # paraphrases
            yield faults.REVERSED.at(
                rule.place,
                f"rule {rule.name} concludes {rule.conclusion.atom} from {chain.end}, but the entailment runs the "
                f"other way: {chain}",
                "Reverse the rule, or add the premise that makes the difference",
            )


def redundant_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose conclusion follows without them: from one of their premises, or by another rule and entailments."""
    reported: set[str] = set()
    for rule in rules:
        if len(rule.premise) == 1:
            continue  # the rule states an entailment, for queries without --entail
        ends = list(chain.from_iterable(chains[literal.atom] for literal in _positive(rule)))
        by_itself = _to(rule.conclusion.atom, ends)
        # With what its premises entail, another rule may conclude the same.
        extended = replace(rule, premise=(*rule.premise, *(Literal(found.end) for found in ends)))
        unreported = (known for known in rules if ends and known is not rule and known.name not in reported)
        stronger = next((known for known in unreported if subsumes(known, extended, library)), None)
        if by_itself is not None or stronger is not None:
            reported.add(rule.name)
            reason = str(by_itself)
            if stronger is not None:
                reason = f"it follows from rule {stronger.name}, because {' and '.join(map(str, ends))}"
            problem = f"rule {rule.name} says nothing new: {reason}"
            yield faults.REDUNDANT.at(rule.place, problem, f"Remove rule {rule.name}")


def contradicted_rules(rules: Sequence[Rule], chains: Chains, library: Library) -> Iterator[Diagnostic]:
    """Rules whose premise entails the contrary of the conclusion, and pairs whose conclusions entail contraries."""
    for rule in rules:
        ends: list[Chain[Atom]] = []
        for literal in _positive(rule):
            ends += chains[literal.atom]
        opposite = library.opposite_of(rule.conclusion.atom.predicate)
        # No atom has the predicate "", which stands for no opposite.
        contrary = replace(rule.conclusion.atom, predicate=opposite or "")
        chain = next((chain for chain in ends if chain.end == contrary), None)
        if chain is not None:
            yield faults.CONTRADICTED.at(
                rule.place,
                f"rule {rule.name} concludes {rule.conclusion.atom}, but {chain}",
                "Negate the conclusion, or correct the entailment",
            )
    # Those that contradict each other already without entailments have another fault.
    seen = {(fault.place, fault.related) for fault in opposite_conclusions(library)}
    varied = replace(library, rules=tuple(variant for rule in rules for variant in _variants(rule, chains)))
    for fault in opposite_conclusions.find(varied, faults.CONTRADICTED, NOT_COMPARED):
        if (fault.place, fault.related) not in seen and fault.place not in fault.related:
            seen.add((fault.place, fault.related))
            yield fault


def _variants(rule: Rule, chains: Chains) -> Iterator[Rule]:
    """The rule, and with each conclusion that its own one entails."""
    yield rule
    for way in chains[rule.conclusion.atom]:
        yield replace(rule, name=f"{rule.name} ({way})", conclusion=Literal(way.end))


def _positive(rule: Rule) -> list[Literal]:
    return [literal for literal in rule.literals if not literal.negated]


def _to(atom: Atom, chains: Sequence[Chain[Atom]]) -> Chain[Atom] | None:
    return next((chain for chain in chains if chain.end == atom), None)


def _rests_on(rule: Rule, literal: Literal) -> bool:
    """True if without the literal the premise does not connect the variables of the conclusion."""
    wanted = {term.name for term in rule.conclusion.atom.arguments if isinstance(term, Variable)}
    rest = [variable_names([item]) for item in rule.premise if item != literal]
    # A conclusion about one variable needs the literal unless another item is about that variable alone.
    if len(wanted) < 2:
        return wanted not in rest
    # All that the other items connect with one of the variables.
    return not wanted <= set(chain.from_iterable(connected(rest, set, [min(wanted)])))
