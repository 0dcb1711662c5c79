"""Statements from what a search kept: Prolog joins the substitutions with the facts, and each result gets its proof.

Constraint literals must hold, comparisons are computed, negation is failure, derived predicates go by their rules. The
literals that speak of a generic variable are the statement's hypothesis: they are told, not proved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.program import build_program
from engine.proof import By, Proof, instantiated
from engine.session import Cell, PrologSession, PrologTerm, QueryLimits, Row
from grammar.errors import HapaxError
from grammar.prolog_text import clause_text, prolog_atom, prolog_value
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Atom, BodyLiteral, Comparison, Constant, Literal, Substitution, Value, Variable
from grammar.verbalize import literal_text, statement_text
from kb.records import Distribution, FactRecord, Source, StatementRecord

BULK = QueryLimits(seconds=600.0, inferences=10**14, answers=10**8, memory_mb=8192)
"""A derivation is Hapax's own goal over data of any size: its limits only stop what has gone wrong."""

_KEPT = Variable("Kept", "Number")


def derive_statements(  # noqa: PLR0917  one noun each; a bundle of them would have one user
    session: PrologSession,
    library: Library,
    rule: Rule,
    kept: Mapping[Distribution, Sequence[Substitution]],
    facts: Iterable[FactRecord],
    run_id: str,
    limits: QueryLimits = BULK,
) -> list[StatementRecord]:
    """The statements of a rule, in the order of the kept substitutions, each with its proof.

    A kept substitution may leave searched variables open; the join then gives them every value that fits.
    """
    entries = [(distribution, one) for distribution, group in kept.items() for one in group]
    if not entries:
        return []
    needed = relevant_library(library, rule)
    known = FactIndex(needed, facts)
    join = Join(rule, [substitution for _, substitution in entries])
    session.load(build_program(needed, known.records) + join.program(needed))
    answers = session.solutions(join.goal, join.variables, limits, trusted=True, distinct=True)
    roots = join.derived_goals(needed)
    instances = derivations(session, needed, roots, limits) if roots else {}
    scribe = Scribe(needed, rule, Prover(needed, known, instances), run_id)
    found = sorted(answers.rows, key=lambda row: (_kept_number(row[0]), repr(row)))
    return [scribe.record(*_entry(entries, join.variables[1:], row)) for row in found]


def relevant_library(library: Library, *rules: Rule, goals: Iterable[str] = ()) -> Library:
    """The library with only the rules that the rules' premises or the goals (indicators) reach."""
    waiting = [*goals, *(literal.atom.indicator for rule in rules for literal in rule.literals)]
    reached: set[str] = set()
    by_conclusion: dict[str, list[Rule]] = {}
    for one in library.rules:
        by_conclusion.setdefault(one.conclusion.atom.indicator, []).append(one)
    while waiting:
        indicator = waiting.pop()
        if indicator not in reached:
            reached.add(indicator)
            waiting.extend(part.atom.indicator for one in by_conclusion.get(indicator, ()) for part in one.literals)
    signatures = tuple(one for one in library.completed().signatures if one.indicator in reached)
    kept = tuple(one for one in library.rules if one.conclusion.atom.indicator in reached)
    concluded = tuple(
        library.signature(rule.conclusion.atom.indicator)
        for rule in rules
        if rule.conclusion.atom.indicator not in reached
    )
    facts = tuple(fact for fact in library.facts if fact.indicator in reached)
    return replace(library, rules=kept, signatures=(*signatures, *concluded), facts=facts)


class FactIndex:
    """Facts by predicate and arguments; what rule files and assumptions state is among them."""

    def __init__(self, library: Library, facts: Iterable[FactRecord], assumed: Iterable[Atom] = ()) -> None:
        self.records = [one for one in facts if library.knows(f"{one.predicate}/{len(one.arguments)}")]
        self.assumed = frozenset(assumed)
        stated = (FactRecord(*atom_key(atom), types=(), source=Source.GIVEN) for atom in library.facts)
        self._facts = {(one.predicate, one.arguments): one for one in (*stated, *self.records)}
        self._leaves: dict[Atom, Proof] = {}

    def leaf(self, atom: Atom) -> Proof | None:
        """The proof by a fact or an assumption, if there is one; the same object each time."""
        leaf = self._leaves.get(atom)
        if leaf is None:
            fact = self._facts.get(atom_key(atom))
            if fact is not None:
                by = By.GIVEN if fact.source is Source.GIVEN else By.FACT
                leaf = self._leaves[atom] = Proof(Literal(atom), by, fact_id=fact.id)
            elif atom in self.assumed:
                leaf = self._leaves[atom] = Proof(Literal(atom), By.ASSUMPTION)
        return leaf


def atom_key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    """What a ground atom is looked up by."""
    return atom.predicate, tuple(term.value for term in atom.arguments if isinstance(term, Constant))


class Join:
    """The Prolog side of one derivation: the kept substitutions as facts and the rule's constraints as a clause."""

    def __init__(self, rule: Rule, kept: Sequence[Substitution]) -> None:
        self.rule = rule
        self.kept = kept
        self.searched = rule.searched
        self.constraints = tuple(item for item in rule.premise if not rule.is_information(item))
        self.variables = (_KEPT.name, *(variable.name for variable in self.searched))
        self.goal = f"hapax_statement({', '.join(self.variables)})"

    def program(self, library: Library) -> str:
        """One predicate of kept rows for each set of variables that they bind, and one clause on top of each."""
        shapes: dict[tuple[Variable, ...], list[tuple[int, Substitution]]] = {}
        for number, substitution in enumerate(self.kept):
            bound = tuple(variable for variable in self.searched if variable.name in substitution)
            shapes.setdefault(bound, []).append((number, substitution))
        quoted: dict[tuple[type, Value], str] = {}
        lines: list[str] = []
        heads: list[str] = []
        for shape, (bound, rows) in enumerate(shapes.items()):
            name = f"hapax_kept_{shape}"
            heads.append(self._clause(name, bound, library))
            lines.extend(f"{name}({', '.join([str(number), *_cells(bound, row, quoted)])})." for number, row in rows)
        return "\n".join((*lines, *heads)) + "\n"

    def _clause(self, name: str, bound: tuple[Variable, ...], library: Library) -> str:
        row = Literal(Atom(name, (_KEPT, *bound)))
        statement = Literal(Atom("hapax_statement", (_KEPT, *self.searched)))
        return clause_text(replace(self.rule, premise=(row, *self.constraints), conclusion=statement), library)

    def derived_goals(self, library: Library) -> str:
        """A Prolog goal that binds Roots to the derived atoms in the statements' premises; empty if there are none."""
        atoms = [
            f"{prolog_atom(one.atom.predicate)}({', '.join(_argument(term) for term in one.atom.arguments)})"
            for one in self.constraints
            if isinstance(one, Literal) and not one.negated and one.atom.indicator in library.derived
        ]
        if not atoms:
            return ""
        return f"findall(Root, ({self.goal}, lists:member(Root, [{', '.join(atoms)}])), Roots)"


def _argument(term: Variable | Constant) -> str:
    return term.name if isinstance(term, Variable) else prolog_value(term.value)


def _cells(
    bound: tuple[Variable, ...], substitution: Substitution, quoted: dict[tuple[type, Value], str]
) -> Iterator[str]:
    for variable in bound:
        value = substitution[variable.name].value
        key = (type(value), value)
        if key not in quoted:
            quoted[key] = prolog_value(value)
        yield quoted[key]


# --- proofs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule with values for its variables whose premise holds."""

    rule: Rule
    substitution: Substitution


def derivations(
    session: PrologSession, library: Library, roots: str, limits: QueryLimits = BULK
) -> dict[Atom, list[Instance]]:
    """By conclusion, every rule instance that takes part in deriving the ground atoms that the goal `roots` puts into
    the list Roots. Terminates on cyclic data: each atom is looked at once."""
    goal = f"{roots}, hapax_host:derivation(Roots, Head, Rule, Values)"
    return in_order(library, session.solutions(goal, ("Head", "Rule", "Values"), limits, trusted=True).rows)


def in_order(library: Library, rows: Iterable[Row]) -> dict[Atom, list[Instance]]:
    """The instances of rows (conclusion, number of the rule, its values), by conclusion.

    Prolog gives them as its tables have them, otherwise in each process; of equal proofs the first is kept.
    """
    found: dict[Atom, list[Instance]] = {}
    for head, number, values in sorted(rows, key=repr):
        if not isinstance(head, PrologTerm) or not isinstance(number, int) or not isinstance(values, PrologTerm):
            raise HapaxError("Prolog gave a derivation that is none. This is a fault in Hapax; please report it.")
        rule = library.rules[number]
        found.setdefault(ground_atom(head), []).append(Instance(rule, _substitution(rule, values.arguments)))
    return found


def ground_atom(term: PrologTerm) -> Atom:
    """The atom that a ground Prolog term is."""
    return Atom(term.name, tuple(Constant(cell) for cell in term.arguments if not isinstance(cell, PrologTerm)))


def _substitution(rule: Rule, cells: Sequence[Cell]) -> Substitution:
    """Variables that Prolog left free stay out."""
    pairs = zip(rule.variables, cells, strict=True)
    return Substitution(tuple((v.name, Constant(cell)) for v, cell in pairs if not isinstance(cell, PrologTerm)))


class Prover:
    """Builds proof trees out of facts and rule instances. Equal parts are one object."""

    def __init__(self, library: Library, facts: FactIndex, instances: Mapping[Atom, Sequence[Instance]]) -> None:
        self.library = library
        self.facts = facts
        self._proofs: dict[Atom, Proof] = {}
        self._computed = {one.indicator for one in library.completed().signatures if one.kind is PredicateKind.COMPUTED}
        self._found(instances)

    def atom(self, atom: Atom) -> Proof | None:
        """The proof of a ground atom, or None if there is none."""
        return self.facts.leaf(atom) or self._proofs.get(atom)

    def item(self, item: BodyLiteral) -> Proof:
        """The proof of a ground premise item that is known to hold."""
        if isinstance(item, Comparison):
            return Proof(item, By.COMPUTED)
        if item.negated:
            return Proof(item, By.NEGATION)
        proof = self.atom(item.atom)
        if proof is None and item.atom.indicator in self._computed:
            return Proof(item, By.COMPUTED)
        if proof is None:
            raise HapaxError(
                f"{item.atom} holds without a proof: a rule leaves one of its variables open. `hapax check` names it."
            )
        return proof

    def _found(self, instances: Mapping[Atom, Sequence[Instance]]) -> None:
        """Prove from the facts upwards, so that no proof rests on itself; of several proofs the shallowest is kept."""
        open_premises: dict[int, int] = {}
        users: dict[Atom, list[tuple[int, Atom, Instance]]] = {}
        ready: deque[tuple[Atom, Instance]] = deque()
        for number, (head, instance) in enumerate((h, one) for h, group in instances.items() for one in group):
            missing = {atom for atom in self._derived_premises(instance) if self.facts.leaf(atom) is None}
            open_premises[number] = len(missing)
            if not missing:
                ready.append((head, instance))
            for atom in missing:
                users.setdefault(atom, []).append((number, head, instance))
        while ready:
            head, instance = ready.popleft()
            if head in self._proofs:
                continue
            self._proofs[head] = self._by_rule(head, instance)
            for number, user, using in users.get(head, ()):
                open_premises[number] -= 1
                if open_premises[number] == 0:
                    ready.append((user, using))

    def _derived_premises(self, instance: Instance) -> Iterator[Atom]:
        for literal in instance.rule.literals:
            if not literal.negated and literal.atom.indicator in self.library.derived:
                yield instance.substitution.apply(literal.atom)

    def _by_rule(self, head: Atom, instance: Instance) -> Proof:
        children = tuple(self.item(instantiated(item, instance.substitution)) for item in instance.rule.premise)
        return Proof(Literal(head), By.RULE, instance.rule.name, children)


# --- records --------------------------------------------------------------------------------------------------------


def _kept_number(cell: Cell) -> int:
    if not isinstance(cell, int):
        raise HapaxError("Prolog gave a statement without its number. This is a fault in Hapax; please report it.")
    return cell


def _entry(
    entries: Sequence[tuple[Distribution, Substitution]], names: Sequence[str], row: Sequence[Cell]
) -> tuple[Distribution, Substitution]:
    """The distribution of a row's substitution, and that substitution with what the join added.

    What was kept is taken as it was: Prolog knows 2.0 and 2 as one number.
    """
    distribution, kept = entries[_kept_number(row[0])]
    pairs: list[tuple[str, Constant]] = []
    for name, cell in zip(names, row[1:], strict=True):
        constant = kept.get(name)
        if constant is not None:
            pairs.append((name, constant))
        elif not isinstance(cell, PrologTerm):
            pairs.append((name, Constant(cell)))
    return distribution, Substitution(tuple(pairs))


class Scribe:
    """Writes the records of one rule's statements; what is the same in all of them is worked out once."""

    def __init__(self, library: Library, rule: Rule, prover: Prover, run_id: str) -> None:
        self.rule, self.prover, self.run_id = rule, prover, run_id
        self.items = tuple((item, rule.is_information(item)) for item in rule.premise)
        slots = Substitution(tuple((variable.name, Constant(f"\0{variable.name}\0")) for variable in rule.searched))
        text = statement_text(rule, library, slots)
        self.premise, self.conclusion = text.premise.split("\0"), text.conclusion.split("\0")
        told = (literal_text(one, library, slots, rule.generic) for one in (*rule.literals, rule.conclusion))
        self.ranking = " and ".join(told).split("\0")

    def record(self, distribution: Distribution, substitution: Substitution) -> StatementRecord:
        return StatementRecord(
            rule=self.rule.name,
            distribution=distribution,
            run_id=self.run_id,
            substitution=tuple((name, constant.value) for name, constant in substitution.bindings),
            premise=_filled(self.premise, substitution),
            conclusion=_filled(self.conclusion, substitution),
            ranking_text=_filled(self.ranking, substitution),
            proof=self._proof(substitution).to_json(),
        )

    def _proof(self, substitution: Substitution) -> Proof:
        """The statement's hypotheses are assumed, everything else is proved."""
        children = []
        for item, is_hypothesis in self.items:
            goal = instantiated(item, substitution)
            children.append(Proof(goal, By.ASSUMPTION) if is_hypothesis else self.prover.item(goal))
        conclusion = Literal(substitution.apply(self.rule.conclusion.atom), self.rule.conclusion.negated)
        return Proof(conclusion, By.RULE, self.rule.name, tuple(children))


def _filled(pieces: Sequence[str], substitution: Substitution) -> str:
    """Text whose every second piece is a variable's name. No value holds the NUL that parted them."""
    if len(pieces) == 1:
        return pieces[0]
    words = list(pieces)
    for place in range(1, len(pieces), 2):
        constant = substitution.get(pieces[place])
        words[place] = f"[{pieces[place]}]" if constant is None else str(constant.value)
    return "".join(words)
