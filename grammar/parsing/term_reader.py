"""Nodes of statements as terms: names, values, and the types of variables are settled here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, count
from typing import Any, TypeVar

from hapax.grammar.data_types import BUILT_IN_SUBTYPES, OBJECT, PERSON, type_key
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.goals import Either, GoalItem, PrologCall
from hapax.grammar.parsing.declarations import Item, Negation, PredicateSignature
from hapax.grammar.parsing.hints import hint
from hapax.grammar.parsing.syntax import (
    LIST,
    NONE_OF,
    NOT,
    TAIL,
    RawAtom,
    RawNamed,
    RawNode,
    RawPremise,
    RawTerm,
    RawValue,
    RawWords,
    Spot,
    unnamed,
    variables,
)
from hapax.grammar.rules import Library
from hapax.grammar.terms import (
    ANY,
    MISSING,
    OPERATIONS,
    TESTS,
    TRUE,
    Arithmetic,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Value,
    Variable,
    expression_names,
    variable_names,
)
from hapax.grammar.values.functions import FUNCTIONS
from hapax.grammar.writing.prolog_text import type_of
from hapax.grammar.writing.texts import (
    NoConstant,
    is_variable_name,
    is_variable_word,
    predicate_name,
    value_of,
)
from hapax.grammar.writing.words import counted

Typed = Callable[[Variable], Variable]
"""The variable of a statement with its type."""

AnyItem = TypeVar("AnyItem", bound=GoalItem)


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables of the statement that is read. `counts`: the number of a name's occurrences. `types`: their keys.

    `parameters`: those of a computed predicate, whose other names are reported, each once; None elsewhere.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    types: Collection[str] = ()
    parameters: set[str] | None = None
    anonymous: Iterator[int] = field(default_factory=lambda: count(1))


class TermReader:
    """Reads the parts of statements of one or more files. Variables have the types that are written, or "", until all
    of a statement is read and `typed` finds the others.
    """

    def __init__(self, known: Library) -> None:
        self.known = known
        self.diagnostics: list[Diagnostic] = []
        self.file = self.suffix = ""
        self.subtypes: list[tuple[str, str]] = []
        self.signatures: list[PredicateSignature] = []
        self.stated: set[str] = set()
        """Indicators of the predicates that a fact or rule states or concludes."""

    @cached_property
    def spellings(self) -> dict[str, str]:
        """The first spelling of a type, by `type_key`; those of the known library count as read first."""
        return {type_key(name): name for name in reversed((ANY, *_data_types(self.known)))}

    def report(self, label: str, at: Spot, *related: Place, **words: str) -> None:
        """Add the diagnostic of a hint; long words are shortened to 60 characters."""
        for key, value in words.items():
            if len(value) > 60 and key != "remedy":
                words[key] = value[:57] + "..."
        self.diagnostics.append(hint(label).at(Place(self.file, *at), *related, **words))

    def place(self, node: RawNode) -> Place:
        return Place(self.file, *node.at)

    def data_type(self, words: Sequence[str]) -> str:
        """The type in the spelling that was read first."""
        spelling = " ".join(words)
        return self.spellings.setdefault(type_key(spelling), spelling)

    # Declarations of all files, complete once these are read

    @cached_property
    def types(self) -> Library:
        """The subtypes of all files, which is enough to compare types."""
        return Library(subtypes=(*self.known.subtypes, *self.subtypes))

    @cached_property
    def type_names(self) -> frozenset[str]:
        """Keys of the types that declarations name, and of the built-in ones."""
        declared = chain.from_iterable(signature.argument_types for signature in self.signatures)
        pairs = chain.from_iterable((*self.subtypes, *BUILT_IN_SUBTYPES))
        return frozenset(map(type_key, (*declared, *pairs, *_data_types(self.known), OBJECT, PERSON)))

    @cached_property
    def declared(self) -> dict[str, PredicateSignature]:
        """The first declaration of each predicate in all files, by indicator."""
        return {signature.indicator: signature for signature in reversed((*self.known.signatures, *self.signatures))}

    @cached_property
    def named(self) -> set[str]:
        """Indicators of the predicates that are declared or stated, or that a rule of any file concludes."""
        return {*self.declared, *self.stated, *(atom.indicator for atom in self.known.atoms)}

    def scope(self, *nodes: RawNode) -> Scope:
        """The scope of a statement with these parts."""
        found = [node.words for node in variables(*nodes)]
        types = (" ".join(words[:-1]) for words in found if len(words) > 1)
        return Scope(Counter(words[-1] for words in found), frozenset(map(type_key, types)))

    # Premises

    def premise(self, items: RawPremise, scope: Scope) -> tuple[Item, ...]:
        """The items of a conjunction."""
        premise: list[Item] = []
        for item in items:
            match item:
                case RawAtom() | RawTerm("\\+"):
                    atom = item if isinstance(item, RawAtom) else item.parts[0]
                    is_denied = atom is not item
                    assert isinstance(atom, RawAtom)  # noqa: S101  the grammar has nothing else after a sign of negation
                    if self._is_test(atom):
                        sign, value = "\\=" if is_denied else "=", self.expression(atom, scope)
                        premise.append(Comparison(sign, value, Constant(TRUE), self.place(item)))
                    else:
                        premise.append(Literal(self.atom(atom, scope), is_denied))
                case RawTerm(sign) if sign == NONE_OF:
                    premise.append(Negation(self.premise(item.parts, scope), self.place(item)))
                case RawTerm():
                    premise.append(self.comparison(item, scope))
        return with_missing(premise)

    def _is_test(self, atom: RawAtom) -> bool:
        """True for a test such as `contains(C, "x")`, unless the rules have a predicate of this name."""
        has_types = any(isinstance(argument, RawWords) and len(argument.words) > 1 for argument in atom.arguments)
        return str(atom.name) in TESTS and not has_types and self.indicator(atom) not in self.named

    def comparison(self, comparison: RawTerm, scope: Scope) -> Comparison:
        left, right = comparison.parts
        is_typed = isinstance(left, RawWords) and len(left.words) > 1
        # Only an equation of a rule defines a variable.
        if isinstance(left, RawWords) and is_typed and (comparison.sign != "=" or scope.parameters is not None):
            words = {"operator": comparison.sign, "variable": str(left), "name": left.words[-1]}
            self.report("type in a comparison", comparison.at, **words)
        sides = (self.expression(left, scope), self.expression(right, scope))
        return Comparison(comparison.sign, *sides, self.place(comparison), is_typed)

    def expression(self, expression: RawNode, scope: Scope) -> Expression:
        if isinstance(expression, RawAtom):
            return self._call(expression, scope)
        if isinstance(expression, RawTerm) and expression.sign in OPERATIONS:
            return Arithmetic(expression.sign, tuple(self.expression(part, scope) for part in expression.parts))
        return self._term(expression, scope)

    def _call(self, call: RawAtom, scope: Scope) -> Arithmetic:
        name, count = str(call.name), len(call.arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            near = get_close_matches(name.lower(), [known for known in FUNCTIONS if known not in OPERATIONS], 1)
            question = f"Did you mean {near[0]}?" if near else "The page on the language lists the functions."
            self.report("unknown function", call.name.at, name=name, remedy=question)
        elif not function.least <= count <= function.most:
            words = {"name": name, "wanted": function.wanted, "count": counted(count, "argument")}
            self.report("arguments of a function", call.at, **words)
        return Arithmetic(name, tuple(self.expression(unnamed(argument), scope) for argument in call.arguments))

    # Atoms

    def atom(self, atom: RawAtom, scope: Scope) -> Atom:
        atom = self.positional(atom)
        signature = self.declared.get(self.indicator(atom))
        terms: list[Variable | Constant] = []
        for place, argument in enumerate(map(unnamed, atom.arguments)):
            term = self._term(argument, scope)
            if isinstance(term, Variable) and term.name == "_":
                declared = signature.argument_types[place] if signature is not None else ANY
                own_type = declared if term.data_type in ("", ANY) else term.data_type
                term = Variable(f"_{next(scope.anonymous)}", own_type)
            terms.append(term)
        return self.applied(atom, terms)

    def ground(self, atom: RawAtom) -> Atom:
        """The atom of a fact or an example, which has no variables."""
        atom = self.positional(atom)
        terms: list[Variable | Constant] = []
        for argument in map(unnamed, atom.arguments):
            if isinstance(argument, RawWords) and not _is_constant(argument):
                self.report("variable in a fact", argument.at, argument=str(argument))
            else:
                terms.append(self._term(argument, Scope()))
        return self.applied(atom, terms)

    def applied(self, atom: RawAtom, terms: Iterable[Variable | Constant]) -> Atom:
        return Atom(self.predicate(atom), tuple(terms), self.place(atom), tuple(map(self.place, atom.arguments)))

    def positional(self, atom: RawAtom) -> RawAtom:
        """The atom with its arguments in the order of the declared columns, `_` for those that it does not name."""
        named = {item.column: item.argument for item in atom.arguments if isinstance(item, RawNamed)}
        if not named:
            return atom
        name = predicate_name(atom.name.words) + self.suffix
        columns = next((found.columns for found in self.declared.values() if found.name == name and found.columns), ())
        unknown = [column for column in named if column not in columns]
        if unknown or len(named) < len(atom.arguments):
            others = (found.name for found in self.declared.values() if found.columns)
            self.report("column", atom.at, **wrong_column(name, (unknown or list(named))[0], columns, others))
            return replace(atom, arguments=tuple(named.values()))
        nothing = RawWords(("_",), at=atom.at)
        return replace(atom, arguments=tuple(named.get(column, nothing) for column in columns))

    def predicate(self, atom: RawAtom) -> str:
        name = predicate_name(atom.name.words) + self.suffix
        if " " in name:
            self.report("blank in a predicate name", atom.name.at, name=name, remedy=name.replace(" ", "_"))
        return name

    def indicator(self, atom: RawAtom) -> str:
        return f"{predicate_name(atom.name.words).replace(' ', '_')}{self.suffix}/{len(atom.arguments)}"

    # Variables and values

    def _term(self, node: RawNode, scope: Scope) -> Variable | Constant:
        if isinstance(node, RawValue):
            return Constant(self.value(node.source, node.at, node.unit))
        if not isinstance(node, RawWords):
            is_nested = not isinstance(node, RawTerm) or node.sign in (LIST, TAIL, NOT)
            self.report("nested atom" if is_nested else "expression as argument", node.at)
        elif _is_constant(node):
            return Constant(str(node))
        else:
            *type_words, name = node.words
            if is_variable_word(name) and (type_words or not self._is_type_alone(name, scope)):
                if scope.parameters is not None and name not in scope.parameters:
                    scope.parameters.add(name)
                    self.report("unknown parameter", node.at, name=name)
                return Variable(name, self.data_type(type_words) if type_words else "")
            self.report("no variable name", node.at, argument=str(node))
        return Constant(0)  # never used: the statement is left out

    def _is_type_alone(self, name: str, scope: Scope) -> bool:
        """True for the name of a type in place of a variable: `eats(Person, Food A)`."""
        key = type_key(name)
        return scope.counts.get(name) == 1 and not is_variable_name(name) and key in {*self.type_names, *scope.types}

    def value(self, source: str, at: Spot, unit: str = "") -> Value:
        """The value of what is written; where that is reported to have none, one of its kind."""
        try:
            return value_of(source, unit)
        except NoConstant as fault:
            self.report(fault.label, at, **fault.words)
            return 0 if source[-1].isdecimal() and not unit else ""

    # Types

    def typed(self, items: Iterable[Item], *atoms: Atom) -> Typed:
        """The types of the variables of a statement with these items and further atoms.

        They are those written, or else those of the predicates' declarations, or of the values that equations give. A
        name has the most specific of its types; if these are not subtypes of one another, each occurrence keeps its
        own, which `check` reports.
        """
        written: dict[str, list[str]] = {}
        declared: dict[str, list[str]] = {}  # they count only for names without a written type
        premise = list(_flat(items))
        comparisons = [item for item in premise if isinstance(item, Comparison)]
        literals = [item for item in premise if isinstance(item, Literal)]
        for comparison in comparisons:
            if comparison.typed and isinstance(comparison.left, Variable):
                written.setdefault(comparison.left.name, []).append(comparison.left.data_type)
        for atom in (*(literal.atom for literal in literals), *atoms):
            signature = self.declared.get(atom.indicator)
            for place, term in enumerate(atom.arguments):
                if isinstance(term, Variable) and not term.is_anonymous:
                    if term.data_type:
                        written.setdefault(term.name, []).append(term.data_type)
                    elif signature is not None:
                        declared.setdefault(term.name, [signature.argument_types[place]])
        types = declared | written
        # An equation of a variable that has its values from atoms is a test.
        bound = variable_names(literal for literal in literals if not literal.negated)
        self._add_defined([item for item in comparisons if not item.typed], types, bound)
        most_specific = {name: self.types.most_specific(tuple(dict.fromkeys(found))) for name, found in types.items()}

        def with_type(variable: Variable) -> Variable:
            name = variable.name
            own_type = most_specific.get(name) or variable.data_type or next(iter(types.get(name, ())), ANY)
            return Variable(name, own_type)

        return with_type

    def _add_defined(self, equations: Sequence[Comparison], types: dict[str, list[str]], bound: set[str]) -> None:
        """Add the types of the variables to which equations without a written type give values."""
        given = [pair for equation in equations if equation.operator == "=" for pair in _sides(equation)]
        for _ in given:  # an equation may need a type that another one gives
            for target, source in given:
                used = expression_names(source)
                if target.name not in bound | types.keys() and used <= types.keys():
                    known = expression_with_types(source, lambda part: replace(part, data_type=types[part.name][0]))
                    types[target.name] = [type_of(known, self.types)]


def wrong_column(predicate: str, column: str, columns: Sequence[str], others: Iterable[str]) -> dict[str, str]:
    """Problem and remedy of a call by columns, of which one is wrong. `others`: names of predicates with columns."""
    problem = f"{predicate} has no column {column}"
    if column in columns:
        problem = f"{predicate} has {column} twice, or other arguments without the name of a column"
        return {"problem": problem, "remedy": "Name each argument once."}
    near = get_close_matches(column.casefold(), columns or (), n=1, cutoff=0.6)
    question = f"Did you mean {near[0]}? " if near else ""
    if columns:
        return {"problem": problem, "remedy": f"{question}The columns are {', '.join(columns)}."}
    named = get_close_matches(predicate, dict.fromkeys(others), n=1, cutoff=0.6)
    question = f"Did you mean {named[0]}? If not, declare" if named else "Declare"
    return {"problem": problem, "remedy": f"{question} them, such as given {predicate}(id: Trip, air_time: Minutes)."}


def _sides(equation: Comparison) -> Iterator[tuple[Variable, Expression]]:
    """Each variable that is a side of an equation, with the other side."""
    for target, source in ((equation.left, equation.right), (equation.right, equation.left)):
        if isinstance(target, Variable):
            yield target, source


def _flat(items: Iterable[Item]) -> Iterator[Literal | Comparison]:
    for item in items:
        if isinstance(item, Negation):
            yield from _flat(item.premise)
        else:
            yield item


def with_types(item: GoalItem, typed: Typed) -> Any:
    """The item, of the same kind, with the types of its variables."""
    match item:
        case Negation(premise):
            return replace(item, premise=tuple(with_types(part, typed) for part in premise))
        case Comparison(_, left, right):
            return replace(item, left=expression_with_types(left, typed), right=expression_with_types(right, typed))
        case Literal(atom):
            return Literal(atom_with_types(atom, typed), item.negated)
        case Either(ways):
            return Either(tuple(tuple(with_types(part, typed) for part in way) for way in ways))
        case PrologCall(name, arguments):
            read = (
                tuple(with_types(part, typed) for part in argument)
                if isinstance(argument, tuple)
                else expression_with_types(argument, typed)
                for argument in arguments
            )
            return PrologCall(name, tuple(read))


def atom_with_types(atom: Atom, typed: Typed) -> Atom:
    """The atom with the types of its variables."""
    terms = (typed(term) if isinstance(term, Variable) else term for term in atom.arguments)
    return Atom(atom.predicate, tuple(terms), atom.place, atom.argument_places)


def expression_with_types(expression: Expression, typed: Typed) -> Expression:
    """The expression with the types of its variables."""
    if isinstance(expression, Variable):
        return typed(expression)
    if isinstance(expression, Constant):
        return expression
    return replace(expression, operands=tuple(expression_with_types(operand, typed) for operand in expression.operands))


def _is_constant(argument: RawWords) -> bool:
    """True for a word that begins with neither a capital letter nor `_`."""
    return len(argument.words) == 1 and not argument.words[0][0].isupper() and argument.words[0][0] != "_"


def with_missing(premise: Sequence[AnyItem]) -> tuple[AnyItem, ...]:
    """The premise with MISSING in its atoms for each variable that a test says is missing, without these tests."""
    atoms = [item for item in premise if isinstance(item, Literal) and not item.negated]
    tests = [item for item in premise if isinstance(item, Comparison) and item.tests_missing in variable_names(atoms)]
    terms = {str(item.tests_missing): Constant(MISSING) for item in tests}
    items: list[Any] = [item for item in premise if item not in tests]
    return tuple(item.replaced(terms) if terms and item in atoms else item for item in items)


def _data_types(library: Library) -> Iterable[str]:
    for pair in library.subtypes:
        yield from pair
    for signature in library.signatures:
        yield from signature.argument_types
    for rule in library.rules:
        for variable in rule.variables:
            yield variable.data_type
