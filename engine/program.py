"""One Prolog program out of a library and what is known: what `engine/session.py` loads.

The program holds the facts, the rules, computed definitions and, for proofs, every rule once more as data. In demand
mode a predicate that a model could be asked about also notes which question it would need (see `engine/demand.py`).
Quoting is `grammar/prolog_text.py`'s alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from grammar.dependencies import recursive_predicates, refuse_negative_cycles
from grammar.errors import HapaxError
from grammar.prolog_text import SYSTEM_NAMES, atom_goal, clause_text, definition_text, prolog_atom, prolog_value
from grammar.rules import Library, PredicateKind, PredicateSignature, Rule, type_key
from grammar.terms import Atom, BodyLiteral, Constant, Literal, Value
from kb.loading import is_sayable
from kb.records import FactRecord, Pattern, TypeFact

OWN_NAMES = "hapax_"
"""How the program's helper predicates begin; the walker (sandbox.pl) keeps goals away from them."""

ASKED_KINDS = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)


@dataclass(frozen=True, slots=True)
class DemandState:
    """What demand mode need not ask again: patterns that were asked (every None a free argument), and ground atoms that
    were judged false."""

    asked: Collection[Pattern] = ()
    refuted: Collection[Atom] = ()


def build_program(
    library: Library,
    facts: Iterable[FactRecord],
    type_facts: Iterable[TypeFact] = (),
    assumed: Iterable[Atom] = (),
    *,
    demand: bool = False,
    state: DemandState | None = None,
) -> str:
    """The program text. Facts of predicates that the library does not know are left out: no rule or goal can name them.

    `assumed` atoms count as facts here and are stored nowhere; one that is not ground or not known is refused. Raises
    HapaxError for a predicate that rests on its own negation: it has no one meaning.
    """
    refuse_negative_cycles(library)
    known = list(facts)
    writer = _Writer(library, demand)
    lines = [
        *writer.declarations(),
        *writer.facts(known, _checked(assumed, library)),
        *writer.rules(),
        *(writer.demands(state or DemandState()) if demand else ()),
        *(writer.instances(known, type_facts) if demand else ()),
    ]
    return "\n".join(lines) + "\n"


def is_asked(library: Library, signature: PredicateSignature) -> bool:
    """Whether a model may be asked about the predicate at all.

    What rules only ever say of their generic person is a hypothesis, and what rules conclude is derived unless a file
    declares it an oracle predicate too.
    """
    if signature.kind not in ASKED_KINDS:
        return False
    if signature.indicator in library.derived and not signature.declared:
        return False
    uses = [
        rule.is_information(literal)
        for rule in library.rules
        for literal in rule.literals
        if literal.atom.indicator == signature.indicator
    ]
    return not (uses and all(uses) and any(library.is_person(one) for one in signature.argument_types))


def join_order(rule: Rule) -> Rule:
    """The rule with its positive atoms in an order that joins along shared variables, what is told coming first.

    Where the tests go is decided by `clause_text`, which puts each as soon as its variables are bound.
    """
    waiting = list(rule.premise)
    bound: set[str] = set()
    ordered: list[BodyLiteral] = []
    while waiting:
        chosen = max(waiting, key=lambda item: _eagerness(rule, item, bound))
        waiting.remove(chosen)
        bound |= {variable.name for variable in chosen.variables}
        ordered.append(chosen)
    return replace(rule, premise=tuple(ordered))


def _eagerness(rule: Rule, item: BodyLiteral, bound: set[str]) -> tuple[bool, int, bool]:
    """Atoms before tests, then what shares most variables with what is bound; `max` keeps the written order in ties."""
    is_generator = isinstance(item, Literal) and not item.negated
    return is_generator, len({v.name for v in item.variables} & bound), not bound and rule.is_information(item)


def _checked(assumed: Iterable[Atom], library: Library) -> list[Atom]:
    atoms = list(assumed)
    for atom in atoms:
        library.signature(atom.indicator)
        if not atom.is_ground:
            raise HapaxError(f"The assumption {atom} has a variable. Assume something about one person or thing.")
    return atoms


@dataclass
class _Writer:
    """Writes the parts of one program; remembers how each value is quoted, because facts repeat them."""

    library: Library
    demand: bool
    _quoted: dict[tuple[type, Value], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.signatures = {
            one.indicator: self.library.signature(one.indicator) for one in self.library.completed().signatures
        }
        taken = sorted(one for one in self.signatures if one in SYSTEM_NAMES or one.startswith(OWN_NAMES))
        if taken:
            raise HapaxError(f"The generated program needs the name {', '.join(taken)} itself. Rename the predicate.")
        self.recursive = frozenset(recursive_predicates(self.library))
        self.computed = frozenset(
            s.indicator for s in self.signatures.values() if s.kind is PredicateKind.COMPUTED and s.definition
        )
        self.asked = frozenset(
            s.indicator for s in self.signatures.values() if self.demand and is_asked(self.library, s)
        )

    def declarations(self) -> Iterator[str]:
        """Every known predicate is there, so that one without facts fails instead of raising (closed world)."""
        yield ":- style_check(-singleton)."
        yield ":- style_check(-discontiguous)."
        yield ":- dynamic hapax_rule/5."
        for indicator, signature in self.signatures.items():
            name, arity = prolog_atom(signature.name), len(signature.argument_types)
            yield f":- {'table' if indicator in self.recursive else 'dynamic'} {name}/{arity}."
            if indicator in self.asked:
                yield f":- dynamic {self.fact_name(signature.name)}/{arity}."

    def facts(self, known: Sequence[FactRecord], assumed: Sequence[Atom]) -> Iterator[str]:
        given = [(atom.predicate, _values(atom)) for atom in (*self.library.facts, *assumed)]
        every = {(f.predicate, f.arguments): None for f in known if is_sayable(f.arguments)} | dict.fromkeys(given)
        lines: dict[str, list[str]] = {}
        for predicate, arguments in every:
            indicator = f"{predicate}/{len(arguments)}"
            if indicator in self.signatures:
                cells = ", ".join(map(self.value, arguments))
                name = self.fact_name(predicate) if indicator in self.asked else prolog_atom(predicate)
                lines.setdefault(indicator, []).append(f"{name}({cells})." if cells else f"{name}.")
        for group in lines.values():
            yield from group

    def instances(self, known: Sequence[FactRecord], type_facts: Iterable[TypeFact]) -> Iterator[str]:
        """`hapax_accepted(Value, Type)` for the type each value was accepted under, `hapax_instance` for all above too.

        Types come in the first spelling met.
        """
        spelling: dict[str, str] = {}
        for signature in self.signatures.values():
            for data_type in signature.argument_types:
                spelling.setdefault(type_key(data_type), data_type)
        pairs: dict[tuple[str, str], None] = {}
        for fact in known:
            if f"{fact.predicate}/{len(fact.arguments)}" in self.signatures and is_sayable(fact.arguments):
                for value, data_type in zip(fact.arguments, fact.types, strict=False):
                    pairs[self.value(value), data_type] = None
        for found in type_facts:
            pairs[self.value(found.constant), found.data_type] = None
        for value, data_type in pairs:
            yield f"hapax_accepted({value}, {prolog_atom(spelling.get(type_key(data_type), data_type))})."
        above = {data_type: self._and_above(data_type, spelling) for data_type in {pair[1] for pair in pairs}}
        seen = {(value, wide): None for value, data_type in pairs for wide in above[data_type]}
        for value, data_type in seen:
            yield f"hapax_instance({value}, {prolog_atom(data_type)})."

    def _and_above(self, data_type: str, spelling: dict[str, str]) -> tuple[str, ...]:
        here = spelling.setdefault(type_key(data_type), data_type)
        return (here, *(s for s in list(spelling.values()) if s != here and self.library.is_subtype(here, s)))

    def rules(self) -> Iterator[str]:
        """Computed definitions, then every rule: as a clause, and as data for `derivation/4` of host.pl."""
        for indicator in self.computed:
            yield definition_text(self.signatures[indicator])
        for index, rule in enumerate(self.library.rules):
            if not rule.conclusion.negated:
                yield from self._rule(index, rule)

    def _rule(self, index: int, rule: Rule) -> Iterator[str]:
        body = Atom(f"hapax_body_{index}", rule.variables)
        derived = [
            atom_goal(literal.atom)
            for literal in rule.literals
            if not literal.negated and literal.atom.indicator in self.library.derived
        ]
        ordered = join_order(rule)
        yield clause_text(ordered, self.library)
        yield clause_text(replace(ordered, conclusion=Literal(body)), self.library)
        names = ", ".join(variable.name for variable in rule.variables)
        head, premises = atom_goal(rule.conclusion.atom), ", ".join(derived)
        yield f"hapax_rule({index}, {head}, [{names}], {atom_goal(body)}, [{premises}])."

    def demands(self, state: DemandState) -> Iterator[str]:
        """The clauses by which an asked predicate notes its question, and what need not be noted."""
        yield ":- dynamic hapax_asked/2, hapax_refuted/2, hapax_functional/1, hapax_argument/3."
        yield ":- dynamic hapax_instance/2, hapax_accepted/2, hapax_above/2."
        for indicator in sorted(self.asked):
            signature = self.signatures[indicator]
            name, arity = prolog_atom(signature.name), len(signature.argument_types)
            names = ", ".join(f"A{i}" for i in range(1, arity + 1))
            fact = self.fact_name(signature.name)
            yield f"{name}({names}) :- hapax_host:need({name}, [{names}], {fact}({names}))."
            yield f"{name}({names}) :- {fact}({names})."
            for position, data_type in enumerate(signature.argument_types, 1):
                yield f"hapax_argument({name}/{arity}, {position}, {prolog_atom(data_type)})."
            if signature.kind is PredicateKind.FUNCTIONAL:
                yield f"hapax_functional({name}/{arity})."
        asked = (self.signatures[indicator].argument_types for indicator in sorted(self.asked))
        spelling = {type_key(one): one for types in asked for one in types}
        for data_type in spelling.values():
            for wider in self._and_above(data_type, spelling)[1:]:
                yield f"hapax_above({prolog_atom(data_type)}, {prolog_atom(wider)})."
        for pattern in state.asked:
            yield f"hapax_asked({prolog_atom(pattern.predicate)}, {self.pattern(pattern)})."
        for atom in state.refuted:
            cells = ", ".join(map(self.value, _values(atom)))
            yield f"hapax_refuted({prolog_atom(atom.predicate)}, [{cells}])."

    def pattern(self, pattern: Pattern) -> str:
        cells = ("free" if value is None else f"bound({self.value(value)})" for value in pattern.arguments)
        return f"[{', '.join(cells)}]"

    def fact_name(self, predicate: str) -> str:
        return prolog_atom(f"hapax_fact {predicate}")

    def value(self, value: Value) -> str:
        key = (type(value), value)
        found = self._quoted.get(key)
        if found is None:
            found = self._quoted[key] = prolog_value(value)
        return found


def _values(atom: Atom) -> tuple[Value, ...]:
    return tuple(term.value for term in atom.arguments if isinstance(term, Constant))
