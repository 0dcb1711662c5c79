"""Derive statements from kept substitutions: Prolog joins them with the facts, and each statement gets its proof.

Constraint literals must hold, comparisons are computed, negation is failure, and derived predicates follow from their
rules. Literals about a generic variable are the statement's hypothesis: they are assumed, not proved.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from operator import itemgetter

from hapax.engine.inference.proof import By, Proof
from hapax.engine.prolog.limits import QueryLimits
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS, AggregateDeclaration, Constraint, Declaration, PredicateKind
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import (
    MISSING,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Literal,
    Substitution,
    Term,
    Value,
    Variable,
    grouped,
    reached,
)
from hapax.grammar.writing.verbalize import StatementText, atom_text, is_worded, statement_text
from hapax.kb.atoms.derived_statements import RuleWords
from hapax.kb.atoms.symbols import canonical
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord

BULK_LIMITS = QueryLimits(seconds=600.0, inferences=10**14, answers=10**8, memory_mb=8192)
"""Limits of Hapax's own goals, which run over data of any size: only a runaway goal reaches them."""

MOST_PARTS = 1000
"""Parts of a library that are kept."""


@dataclass(frozen=True, slots=True)
class KeptSubstitutions:
    """The substitutions of a rule that a run kept, by distribution. They may leave searched variables open."""

    rule: Rule
    by_distribution: Mapping[Distribution, Sequence[Substitution]]
    run_id: str

    def pairs(self) -> list[tuple[Distribution, Substitution]]:
        """Each substitution with its distribution, in order."""
        pairs: list[tuple[Distribution, Substitution]] = []
        for distribution, substitutions in self.by_distribution.items():
            pairs.extend((distribution, substitution) for substitution in substitutions)
        return pairs


def relevant_library(library: Library, *rules: Rule, goals: Iterable[str] = ()) -> Library:
    """The library with only the rules that the rules' premises or the goals (indicators) reach.

    The rules that symmetric and transitive predicates stand for are among them, and those of `same_as`, on whose names
    everything depends.
    """
    library = library.with_closure()
    wanted = frozenset([*goals, *(literal.atom.indicator for literal in literals_of(rules))])
    # Whoever asks many questions about the same predicates has their part found once.
    if wanted not in library.parts:
        if len(library.parts) == MOST_PARTS:
            library.parts.clear()
        library.parts[wanted] = _part(library, wanted)
    part = library.parts[wanted]
    # The conclusions of `rules` stay declared even where nothing rests on them: their sentences need the templates.
    concluded = dict.fromkeys(rule.conclusion.atom.indicator for rule in rules)
    unused = [library.signature(indicator) for indicator in concluded if not part.knows(indicator)]
    return replace(part, signatures=(*part.signatures, *unused)) if unused else part


def _part(library: Library, wanted: frozenset[str]) -> Library:
    def below(indicator: str) -> list[str]:
        return [literal.atom.indicator for literal in literals_of(library.concluding.get(indicator, ()))]

    needed = set(reached(wanted | ({SAME_AS} if library.knows(SAME_AS) else set()), below))
    return replace(
        library,
        rules=tuple(rule for rule in library.rules if rule.conclusion.atom.indicator in needed),
        signatures=tuple(item for item in library.completed().signatures if item.indicator in needed),
        facts=tuple(fact for fact in library.facts if fact.indicator in needed),
        chances=tuple(item for item in library.chances if item[0].indicator in needed),
        # Each predicate that these mention is known to the library, and its facts would be read with the others.
        examples=tuple(atom for atom in library.examples if atom.indicator in needed),
        declarations=tuple(item for item in library.declarations if _mentioned(item) <= needed),
    )


def _mentioned(item: Declaration) -> set[str]:
    """Indicators of the predicates without which a declaration says nothing."""
    if isinstance(item, AggregateDeclaration):
        return {item.atom.indicator}
    if not isinstance(item, Constraint):
        return set()
    return {part.atom.indicator for part in item.premise if isinstance(part, Literal)}


def stated_fact(library: Library, atom: Atom) -> FactRecord:
    """The record of a fact that a rule file states."""
    types = library.signature(atom.indicator).argument_types
    return FactRecord(atom.predicate, atom.values, types, Source.GIVEN)


def matched(terms: Sequence[Term], values: Sequence[Value]) -> dict[str, Value] | None:
    """Values of the variables under which the terms are these values; None if there are none."""
    bindings: dict[str, Value] = {}
    for term, value in zip(terms, values, strict=True):
        if value is MISSING and isinstance(term, Variable) and not term.is_anonymous:
            return None
        expected = term.value if isinstance(term, Constant) else bindings.setdefault(term.name, value)
        if expected != value:
            return None
    return bindings


class FactIndex:
    """Facts by predicate and arguments, those that rule files state and those assumed included."""

    def __init__(self, library: Library, facts: Iterable[FactRecord], assumed: Iterable[Atom] = ()) -> None:
        self.records = [fact for fact in facts if library.knows(f"{fact.predicate}/{len(fact.arguments)}")]
        self.assumed = frozenset(assumed)
        stated = (stated_fact(library, atom) for atom in library.facts)
        # A stored fact comes after the same one in a rule file and replaces it: it records where the fact is from.
        self._facts = {(fact.predicate, fact.arguments): fact for fact in (*stated, *self.records)}
        self._leaves: dict[Atom, Proof] = {}

    def stated_and_stored(self) -> Iterable[FactRecord]:
        """All facts, without the assumptions."""
        return self._facts.values()

    def leaf(self, atom: Atom) -> Proof | None:
        """The proof of an atom that is a fact or an assumption, the same object each time; None for any other atom."""
        leaf = self._leaves.get(atom)
        if leaf is None:
            fact = self._facts.get(fact_key(atom))
            if fact is not None:
                by = By.GIVEN if fact.source is Source.GIVEN else By.FACT
                leaf = self._leaves[atom] = Proof(Literal(atom), by, fact_id=fact.id)
            elif atom in self.assumed:
                leaf = self._leaves[atom] = Proof(Literal(atom), By.ASSUMPTION)
        return leaf


def fact_key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    """Predicate and argument values of a ground atom, as facts are indexed by."""
    return atom.predicate, atom.values


# --- proofs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleInstance:
    """A rule with values for its variables under which its premise holds.

    `further_rows`: of an aggregate, those of the group after the first; `left_out`: how many more it has.
    """

    rule: Rule
    substitution: Substitution
    further_rows: tuple[RuleInstance, ...] = ()
    left_out: int = 0


class Prover:
    """Builds proof trees from facts and rule instances. Equal subtrees are the same object."""

    def __init__(self, library: Library, facts: FactIndex, instances: Mapping[Atom, Sequence[RuleInstance]]) -> None:
        self.library = library
        self.facts = facts
        self._proofs: dict[Atom, Proof] = {}
        signatures = library.completed().signatures
        self._computed = {item.indicator for item in signatures if item.kind is PredicateKind.COMPUTED}
        self._derived = library.derived | {conclusion.indicator for conclusion in instances}
        self._prove_upwards(instances)

    def atom(self, atom: Atom) -> Proof | None:
        """The proof of a ground atom; None if it does not hold."""
        return self.facts.leaf(atom) or self._proofs.get(atom)

    def item(self, item: BodyLiteral) -> Proof:
        """The proof of a ground premise item that is known to hold."""
        if isinstance(item, Comparison):
            return Proof(item, By.COMPUTED)
        if item.negated:
            return Proof(item, By.DENIAL if self.library.is_open(item.atom.indicator) else By.NEGATION)
        proof = self.atom(item.atom)
        # A computed predicate may have facts as well; their proof was looked for first.
        if proof is None and (item.atom.indicator in self._computed or _is_identity(item.atom)):
            return Proof(item, By.COMPUTED)
        if proof is None:
            raise HapaxError(
                f"{item.atom} holds but has no proof, because a rule leaves one of its variables open.",
                Remedy("Run {}: it names the rule.", Operation("check_rules")),
            )
        return proof

    def _unproved_premises(self, instance: RuleInstance) -> set[Atom]:
        """Derived atoms in an instance's premise that are not facts as well."""
        found: set[Atom] = set()
        for row in (instance, *instance.further_rows):
            atoms = (row.substitution.apply(item.atom) for item in row.rule.literals if not item.negated)
            found.update(atom for atom in atoms if atom.indicator in self._derived)
        return {atom for atom in found if self.facts.leaf(atom) is None and not _is_identity(atom)}

    def _prove_upwards(self, instances: Mapping[Atom, Sequence[RuleInstance]]) -> None:
        """Prove atoms from the facts upwards, breadth first: no proof rests on itself, and the shallowest is kept."""
        open_premises: list[int] = []  # by instance, how many of its derived premises are not proved yet
        # By derived atom, the instances that wait for its proof.
        users: dict[Atom, list[tuple[int, RuleInstance]]] = {}
        conclusions: list[Atom] = []
        ready: deque[tuple[Atom, RuleInstance]] = deque()
        for conclusion, group in instances.items():
            for instance in _with_whole_groups(group):
                missing = self._unproved_premises(instance)
                for atom in missing:
                    users.setdefault(atom, []).append((len(open_premises), instance))
                open_premises.append(len(missing))
                conclusions.append(conclusion)
                if not missing:
                    ready.append((conclusion, instance))
        while ready:
            conclusion, instance = ready.popleft()
            # Another instance proved it first; that proof is kept.
            if conclusion in self._proofs:
                continue
            rule, children = instance.rule, self._premises(instance)
            by = By.DECLARATION if rule.by_declaration else By.RULE
            self._proofs[conclusion] = Proof(Literal(conclusion), by, rule.name, children, left_out=instance.left_out)
            for number, user in users.get(conclusion, ()):
                open_premises[number] -= 1
                if open_premises[number] == 0:
                    ready.append((conclusions[number], user))

    def _premises(self, instance: RuleInstance) -> tuple[Proof, ...]:
        """The proofs of an instance's premise; of an aggregate, those of all rows of the group, each goal once."""
        goals: dict[BodyLiteral, None] = {}
        if not instance.further_rows:
            return tuple(self.item(item.replaced(instance.substitution)) for item in instance.rule.premise)
        for row in (instance, *instance.further_rows):
            goals |= dict.fromkeys(item.replaced(row.substitution) for item in row.rule.premise)
        return tuple(map(self.item, goals))


def _is_identity(atom: Atom) -> bool:
    """True for a name that is the same as itself, as which premises see two joined names."""
    return atom.indicator == SAME_AS and atom.arguments[0] == atom.arguments[1]


def _with_whole_groups(instances: Iterable[RuleInstance]) -> Iterator[RuleInstance]:
    """The instances of one conclusion, in which those of an aggregate are a single one."""
    for aggregate, (first, *further) in grouped(instances, lambda instance: instance.rule.aggregate).items():
        # A row with the smallest or largest value proves it by itself.
        if aggregate is None or aggregate.is_improved:
            yield from (first, *further)
        else:
            yield replace(first, further_rows=tuple(further))


# --- records --------------------------------------------------------------------------------------------------------


class StatementWriter:
    """Writes the records of a rule's statements. Sentences are verbalised once, with slots for the variables."""

    def __init__(self, library: Library, rule: Rule, prover: Prover, run_id: str) -> None:
        self.rule, self.prover, self.run_id = rule, prover, run_id
        self.items = tuple((item, rule.is_information(item)) for item in rule.premise)
        self.words = rule_words(rule, library)

    def record(self, distribution: Distribution, substitution: Substitution) -> StatementRecord:
        return StatementRecord(
            rule=self.rule.name,
            distribution=distribution,
            run_id=self.run_id,
            substitution=tuple((name, constant.value) for name, constant in substitution.bindings),
            premise=filled(self.words.premise, substitution),
            conclusion=filled(self.words.conclusion, substitution),
            proof=self._proof(substitution).to_json(),
        )

    def _proof(self, substitution: Substitution) -> Proof:
        """The statement's proof, in which its hypotheses are assumed and everything else is proved."""
        children = []
        for item, is_hypothesis in self.items:
            goal = item.replaced(substitution)
            children.append(Proof(goal, By.ASSUMPTION) if is_hypothesis else self.prover.item(goal))
        conclusion = Literal(substitution.apply(self.rule.conclusion.atom))
        return Proof(conclusion, By.RULE, self.rule.name, tuple(children))


def _with_slots(rule: Rule, library: Library) -> StatementText:
    """The text of a rule's statements, with the names of its variables between NULs, which no value contains."""
    slots = Substitution.of((variable.name, f"\0{variable.name}\0") for variable in rule.searched)
    return statement_text(rule, library, slots)


def sentence_pieces(rule: Rule, library: Library) -> list[str]:
    """The sentence of a rule's statements as pieces for `filled`."""
    return _with_slots(rule, library).sentence.split("\0")


def rule_words(rule: Rule, library: Library) -> RuleWords:
    """The clauses of a rule's statements as pieces for `filled`, as the knowledge base stores them."""
    text = _with_slots(rule, library)
    names = tuple(variable.name for variable in rule.searched)
    return RuleWords(names, tuple(text.premise.split("\0")), tuple(text.conclusion.split("\0")))


def values_in_sentence(rule: Rule, library: Library, text: str) -> list[Substitution]:
    """The values by which the rule's sentence becomes this text, blanks, case and the last full stop aside.

    At most one reading: each value is taken as short as possible, as a number where it is written like one and as text.
    """
    return _values_in(sentence_pieces(rule, library), text)


def atoms_in_sentence(library: Library, text: str) -> list[Atom]:
    """The ground atoms whose sentence is this text: first those of which the predicate's own words make most of it."""
    found: list[tuple[int, Atom]] = []
    for signature in library.completed().signatures:
        names = [f"V{place}" for place in range(len(signature.argument_types))]
        atom = Atom(signature.name, tuple(map(Variable, names, signature.argument_types)))
        if is_worded(atom, library):
            slots = Substitution.of((name, f"\0{name}\0") for name in names)
            pieces = atom_text(atom, library, slots).split("\0")
            read = [slots.apply(atom) for slots in _values_in(pieces, text)]
            found += [(-len("".join(pieces[::2])), atom) for atom in read if atom.is_ground]
    return [atom for _, atom in sorted(found, key=itemgetter(0))]


def _values_in(pieces: Sequence[str], text: str) -> list[Substitution]:
    """The values by which pieces with a variable's name in each second place become a text."""
    pattern = []
    seen: dict[str, int] = {}
    for place, piece in enumerate(pieces):
        # A variable that comes again stands for the same text.
        if place % 2 and piece in seen:
            pattern.append(f"(?P=v{seen[piece]})")
        elif place % 2:
            seen[piece] = len(seen)
            pattern.append(f"(?P<v{seen[piece]}>.+?)")
        else:
            words = re.split(r"\s+", piece.rstrip(".") if place == len(pieces) - 1 else piece)
            pattern.append(r"\s+".join(map(re.escape, words)))
    found = re.fullmatch("".join(pattern), text.strip().rstrip("."), re.IGNORECASE | re.DOTALL)
    if found is None:
        return []
    texts: dict[str, Value] = {name: found[f"v{number}"] for name, number in seen.items()}
    numbers = dict(texts)
    for name, value in texts.items():
        if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(value)):
            numbers[name] = canonical(Decimal(value))
    # They are equal where no value is written like a number.
    return list(dict.fromkeys((Substitution.of(texts.items()), Substitution.of(numbers.items()))))


def filled(pieces: Sequence[str], substitution: Substitution) -> str:
    """The text of a writer's pieces with values in place of variables; every second piece is a variable's name.

    The pieces were split at NUL, which no value contains.
    """
    if len(pieces) == 1:
        return pieces[0]
    words = list(pieces)
    for place in range(1, len(pieces), 2):
        constant = substitution.get(pieces[place])
        words[place] = f"[{pieces[place]}]" if constant is None else str(constant.value)
    return "".join(words)
