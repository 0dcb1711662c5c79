"""Generate the Prolog program of a library and its facts, which `engine/inference/session.py` loads.

It contains the facts, the rules and computed definitions. In demand mode a
predicate that a model could be asked about also records the questions that it would need (`engine/search/demand.py`).
All quoting is done by `grammar/prolog_text.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hapax.engine.inference.known_facts import stated_fact
from hapax.grammar.dependencies import recursive_predicates, refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.prolog_text import (
    OWN_NAMES,
    SYSTEM_NAMES,
    clause_text,
    definition_text,
    denial_name,
    prolog_atom,
    prolog_value,
)
from hapax.grammar.rules import ASKED_KINDS, Library, PredicateKind, PredicateSignature, Rule, type_key
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Value, variable_names
from hapax.kb.records import AtomPattern, DenialRecord, FactRecord, TypeFact


@dataclass(frozen=True, slots=True)
class DemandState:
    """Questions that need not be asked again: patterns (None is a free argument), and ground atoms judged false.

    `type_facts`: values under the types for which a critic accepted them.
    """

    asked: Collection[AtomPattern] = ()
    refuted: Collection[Atom] = ()
    type_facts: Collection[TypeFact] = ()


@dataclass(frozen=True, slots=True)
class Supply:
    """Predicates (indicators) whose facts are not in a program but fetched by call, and the calls that are expected.

    `bound` gives, by the number of a rule, the sets of its conclusion's variables that are bound in calls. `concluded`:
    atoms, by name and values, that stand in place of the rules that conclude them.
    """

    predicates: frozenset[str] = frozenset()
    bound: Mapping[int, Sequence[frozenset[str]]] = field(default_factory=dict)
    concluded: Sequence[tuple[str, tuple[Value, ...]]] = ()


TYPES, VALUES = "hapax types", "hapax values"
"""Names in calls for the types of a value, and for the values of a type, by facts that are fetched."""

_TYPE_CALLS = ((TYPES, "Value"), (VALUES, "Type"))
_ACCEPTED, _INSTANCE = "accepted", "instance"


def row_name(predicate: str) -> str:
    """The name, quoted, of the predicate that has the fetched facts of a predicate."""
    return prolog_atom(f"hapax_row {predicate}")


def build_program(
    library: Library,
    facts: Iterable[FactRecord],
    assumed: Iterable[Atom] = (),
    *,
    state: DemandState | None = None,
    denied: Iterable[DenialRecord] = (),
    supply: Supply | None = None,
) -> str:
    """The text of the program. Facts of unknown predicates are left out: no rule or goal can name them.

    `assumed` atoms count as facts and are stored nowhere. `denied`: atoms of which a critic said a sure no, which a
    negation of an open predicate needs. `state`: the program also finds the questions that a goal needs, beyond those
    of this state; None: it derives only. `supply`: predicates whose facts are fetched when they are called, and stored
    conclusions. Raises HapaxError for an assumed atom that is not ground or whose predicate is unknown, and for a
    predicate that depends on its own negation.
    """
    refuse_negative_cycles(library)
    known = list(facts)
    stated = (stated_fact(library, atom) for atom in library.facts)
    writer = _Writer(library, state is not None, supply or Supply())
    lines = [
        *writer.declarations(),
        *writer.facts(known, _checked(assumed, library), writer.supply.concluded),
        *writer.fetches(),
        *writer.denials(denied),
        *writer.rules(),
        *(writer.demands(state) if state is not None else ()),
        *(writer.type_fetches() if state is not None else ()),
        *(writer.instances((*stated, *known), state.type_facts) if state is not None else ()),
    ]
    return "\n".join(lines) + "\n"


def type_rows(library: Library, known: Iterable[TypeFact]) -> list[str]:
    """Values with the types under which facts accept them, as terms for a program that fetches them."""
    writer = _Writer(library, True, Supply(frozenset({TYPES})))
    return [line.removesuffix(".") for line in writer.instances((), known)]


def is_asked(library: Library, signature: PredicateSignature) -> bool:
    """True if a model may be asked about the predicate.

    A predicate that rules conclude is derived unless a file also declares it an oracle predicate. One that rules only
    use about their generic person is a hypothesis, about which a model knows nothing.
    """
    if signature.kind not in ASKED_KINDS:
        return False
    rules = [rule for rule in library.rules if not rule.by_declaration]
    if not signature.declared and any(rule.conclusion.atom.indicator == signature.indicator for rule in rules):
        return False
    uses: list[bool] = []
    for rule in rules:
        literals = [literal for literal in rule.literals if literal.atom.indicator == signature.indicator]
        uses += map(rule.is_information, literals)
    return not (uses and all(uses) and any(map(library.is_person, signature.argument_types)))


def join_order(rule: Rule, known: Collection[str] = ()) -> Rule:
    """The rule with its positive atoms ordered to join along shared variables, beginning with its hypotheses.

    `known` are variables that have values before. `clause_text` decides where the tests go: each as soon as its
    variables are bound.
    """
    waiting = list(rule.premise)
    bound = set(known)
    ordered: list[BodyLiteral] = []
    while waiting:
        chosen = max(waiting, key=lambda item: _eagerness(rule, item, bound))
        waiting.remove(chosen)
        bound |= variable_names([chosen])
        ordered.append(chosen)
    return replace(rule, premise=tuple(ordered))


def _eagerness(rule: Rule, item: BodyLiteral, bound: set[str]) -> tuple[bool, int, bool]:
    """Sort key: atoms before tests, then by the number of variables that are bound. `max` keeps the order of ties."""
    is_generator = isinstance(item, Literal) and not item.negated
    return is_generator, len({v.name for v in item.variables} & bound), not bound and rule.is_information(item)


def _checked(assumed: Iterable[Atom], library: Library) -> list[Atom]:
    atoms = list(assumed)
    for atom in atoms:
        library.signature(atom.indicator)
        if not atom.is_ground:
            raise HapaxError(f"The assumption {atom} contains a variable. Write a name in its place.")
    return atoms


@dataclass
class _Writer:
    """Writes the parts of a program. Quoted values are cached, because facts repeat them."""

    library: Library
    demand: bool
    supply: Supply
    _quoted: dict[tuple[type, Value], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        indicators = [signature.indicator for signature in self.library.completed().signatures]
        self.signatures = {indicator: self.library.signature(indicator) for indicator in indicators}
        # Prolog lets no program define the former; the latter begin the names of the program's helpers.
        taken = sorted(name for name in self.signatures if name in SYSTEM_NAMES or name.startswith(OWN_NAMES))
        if taken:
            raise HapaxError(f"Prolog reserves the name {', '.join(taken)}. Rename the predicate.")
        self.recursive = frozenset(recursive_predicates(self.library))
        self.computed = frozenset(
            s.indicator for s in self.signatures.values() if s.kind is PredicateKind.COMPUTED and s.definition
        )
        self.asked = frozenset(
            s.indicator for s in self.signatures.values() if self.demand and is_asked(self.library, s)
        )

    def declarations(self) -> Iterator[str]:
        """Declarations of all known predicates: one without facts then fails instead of raising (closed world)."""
        # Variables of rules may occur once, and the clauses of a predicate need not be adjacent.
        yield ":- style_check(-singleton)."
        yield ":- style_check(-discontiguous)."
        for indicator, signature in self.signatures.items():
            name, arity = prolog_atom(signature.name), len(signature.argument_types)
            # Tabling makes left recursion and cycles in the data terminate.
            yield f":- {'table' if indicator in self.recursive else 'dynamic'} {name}/{arity}."
            if indicator in self.asked:
                yield f":- dynamic {self.fact_name(signature.name)}/{arity}."
            if indicator in self.supply.predicates:
                yield f":- dynamic {row_name(signature.name)}/{arity}."
            if self.library.is_open(indicator):
                yield f":- dynamic {prolog_atom(denial_name(signature.name))}/{arity}."

    def denials(self, denied: Iterable[DenialRecord]) -> Iterator[str]:
        """Facts about the atoms of open predicates that a critic denied."""
        for record in denied:
            indicator = f"{record.predicate}/{len(record.arguments)}"
            if indicator in self.signatures and self.library.is_open(indicator):
                cells = ", ".join(map(self.value, record.arguments))
                yield f"{prolog_atom(denial_name(record.predicate))}({cells})."

    def facts(
        self,
        known: Sequence[FactRecord],
        assumed: Sequence[Atom],
        concluded: Iterable[tuple[str, tuple[Value, ...]]],
    ) -> Iterator[str]:
        given = [(atom.predicate, _values(atom)) for atom in (*self.library.facts, *assumed)]
        # The same fact may be stored, stated in a rule file and assumed at once; a dictionary keeps the first.
        # Stated facts come first, as they do where stored ones are fetched, so that answers have one order.
        every = dict.fromkeys(given) | {(f.predicate, f.arguments): None for f in known}
        every |= dict.fromkeys(concluded)
        lines: dict[str, list[str]] = {}
        for predicate, arguments in every:
            indicator = f"{predicate}/{len(arguments)}"
            if indicator in self.signatures:
                cells = ", ".join(map(self.value, arguments))
                name = self._stored_name(predicate, indicator)
                # `p()` is another term than `p` in SWI-Prolog.
                lines.setdefault(indicator, []).append(f"{name}({cells})." if cells else f"{name}.")
        for group in lines.values():
            yield from group

    def _stored_name(self, predicate: str, indicator: str) -> str:
        """The name under which a predicate's facts are stored, quoted."""
        if indicator in self.supply.predicates:
            return row_name(predicate)
        return self.fact_name(predicate) if indicator in self.asked else prolog_atom(predicate)

    def fetches(self) -> Iterator[str]:
        """A clause for each predicate whose facts are fetched."""
        for indicator in sorted(self.supply.predicates & set(self.signatures)):
            predicate, _, arity = indicator.rpartition("/")
            names = ", ".join(f"A{place}" for place in range(1, int(arity) + 1))
            name = self.fact_name(predicate) if indicator in self.asked else prolog_atom(predicate)
            fetch = f"hapax_host:fetch({prolog_atom(predicate)}, [{names}])"
            yield f"{name}({names}) :- {fetch}, {row_name(predicate)}({names})."

    def type_fetches(self) -> Iterator[str]:
        """Clauses that fetch the types of a value, or of a free one the values of the type, where facts are fetched."""
        types, values = (f"hapax_host:fetch({prolog_atom(name)}, [{cell}])" for name, cell in _TYPE_CALLS)
        for kind in (_ACCEPTED, _INSTANCE) if self.supply.predicates else ():
            yield f":- dynamic {row_name(kind)}/2."
            fetch = f"( nonvar(Value) -> {types} ; {values} )"
            yield f"hapax_{kind}(Value, Type) :- {fetch}, {row_name(kind)}(Value, Type)."

    def instances(self, known: Sequence[FactRecord], type_facts: Iterable[TypeFact]) -> Iterator[str]:
        """Facts `hapax_accepted(Value, Type)` for accepted types, and `hapax_instance` for their supertypes as well.

        Types are compared without case and blanks; the first spelling is written.
        """
        accepted, instance = f"hapax_{_ACCEPTED}", f"hapax_{_INSTANCE}"
        if self.supply.predicates:
            accepted, instance = row_name(_ACCEPTED), row_name(_INSTANCE)
        spelling: dict[str, str] = {}
        for signature in self.signatures.values():
            for data_type in signature.argument_types:
                spelling.setdefault(type_key(data_type), data_type)
        pairs = dict.fromkeys(self._typed(known))
        # Values that a critic accepted under a type, also those without a fact so far.
        for found in type_facts:
            pairs[self.value(found.constant), found.data_type] = None
        for value, data_type in pairs:
            yield f"{accepted}({value}, {prolog_atom(spelling.get(type_key(data_type), data_type))})."
        supertypes = {data_type: self._with_supertypes(data_type, spelling) for _, data_type in pairs}
        instances: dict[tuple[str, str], None] = {}
        for value, data_type in pairs:
            instances |= dict.fromkeys((value, supertype) for supertype in supertypes[data_type])
        for value, data_type in instances:
            yield f"{instance}({value}, {prolog_atom(data_type)})."

    def _typed(self, known: Sequence[FactRecord]) -> Iterator[tuple[str, str]]:
        """The values of facts, quoted, with the types of their arguments."""
        for fact in known:
            if f"{fact.predicate}/{len(fact.arguments)}" in self.signatures:
                for value, data_type in zip(fact.arguments, fact.types, strict=False):
                    yield self.value(value), data_type

    def _with_supertypes(self, data_type: str, spelling: dict[str, str]) -> tuple[str, ...]:
        first = spelling.setdefault(type_key(data_type), data_type)
        return (first, *(s for s in list(spelling.values()) if s != first and self.library.is_subtype(first, s)))

    def rules(self) -> Iterator[str]:
        """Computed definitions, then every rule as a clause."""
        for indicator in self.computed:
            yield definition_text(self.signatures[indicator])
        for index, rule in enumerate(self.library.rules):
            yield self._clause(index, rule)

    def _clause(self, index: int, rule: Rule) -> str:
        """The rule as a clause, whose atoms are joined in an order that suits the variables that a call binds."""
        clause = clause_text(join_order(rule), self.library)
        if rule.aggregate is not None:
            return clause
        head, turnstile, body = clause.removesuffix(".").partition(" :-\n    ")
        branches: dict[str, str] = {}
        # Most variables first: the test for fewer would hold of a call that binds more, too.
        for names in sorted(self.supply.bound.get(index, ()), key=len, reverse=True):
            ordered = clause_text(join_order(rule, names), self.library)
            test = ", ".join(f"nonvar({name})" for name in sorted(names)) or "true"
            branches.setdefault(test, ordered.removesuffix(".").partition(turnstile)[2])
        # Mostly one order suits every call, and tests would only cost time.
        if set(branches.values()) <= {body}:
            return clause
        # What is open in every variable is the last branch, without a test.
        tested = "".join(f"{test} -> {branch}\n    ; " for test, branch in branches.items() if test != "true")
        return f"{head}{turnstile}( {tested}{body} )."

    def demands(self, state: DemandState) -> Iterator[str]:
        """Clauses by which predicates record the questions they need, and facts about those that need no asking."""
        yield ":- dynamic hapax_asked/2, hapax_refuted/2, hapax_functional/1, hapax_argument/3."
        yield ":- dynamic hapax_instance/2, hapax_accepted/2, hapax_above/2."
        for indicator in sorted(self.asked):
            signature = self.signatures[indicator]
            name, arity = prolog_atom(signature.name), len(signature.argument_types)
            names = ", ".join(f"A{i}" for i in range(1, arity + 1))
            fact = self.fact_name(signature.name)
            # need/3 always fails, so that the second clause looks the facts up.
            yield f"{name}({names}) :- hapax_host:need({name}, [{names}], {fact}({names}))."
            yield f"{name}({names}) :- {fact}({names})."
            for position, data_type in enumerate(signature.argument_types, 1):
                yield f"hapax_argument({name}/{arity}, {position}, {prolog_atom(data_type)})."
            if signature.kind is PredicateKind.FUNCTIONAL:
                yield f"hapax_functional({name}/{arity})."
        spelling: dict[str, str] = {}
        for indicator in sorted(self.asked):
            spelling |= {type_key(data_type): data_type for data_type in self.signatures[indicator].argument_types}
        for data_type in spelling.values():
            # The first one is the type itself.
            for wider in self._with_supertypes(data_type, spelling)[1:]:
                yield f"hapax_above({prolog_atom(data_type)}, {prolog_atom(wider)})."
        for pattern in state.asked:
            yield f"hapax_asked({prolog_atom(pattern.predicate)}, {self.pattern(pattern)})."
        for atom in state.refuted:
            cells = ", ".join(map(self.value, _values(atom)))
            yield f"hapax_refuted({prolog_atom(atom.predicate)}, [{cells}])."

    def pattern(self, pattern: AtomPattern) -> str:
        cells = ("free" if value is None else f"bound({self.value(value)})" for value in pattern.arguments)
        return f"[{', '.join(cells)}]"

    def fact_name(self, predicate: str) -> str:
        return prolog_atom(f"hapax_fact {predicate}")

    def value(self, value: Value) -> str:
        # By type as well, because 1, Decimal(1) and True are equal keys in Python.
        key = (type(value), value)
        found = self._quoted.get(key)
        if found is None:
            found = self._quoted[key] = prolog_value(value)
        return found


def _values(atom: Atom) -> tuple[Value, ...]:
    return tuple(term.value for term in atom.arguments if isinstance(term, Constant))
