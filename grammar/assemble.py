"""Parsed statements to a library: names, types, values, attributes and defaults are settled here.

Three passes over all files, because types and predicates may be declared after their use: subtypes; declarations,
opposites and facts; rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import chain, count
from pathlib import PurePath
from typing import TypeVar

from hapax.grammar import syntax
from hapax.grammar.attributes import (
    PRINCIPLE_SPELLINGS,
    GenericBy,
    Polarity,
    StatementCap,
    default_generic,
    default_polarity,
    default_principle,
)
from hapax.grammar.declarations import (
    AggregateDeclaration,
    ClosedDeclaration,
    Closedness,
    Constraint,
    Declaration,
    DisjointTypes,
    ExceptionClause,
    Property,
    PropertyDeclaration,
)
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.functions import FUNCTIONS, TEXT, result_type
from hapax.grammar.hints import hint
from hapax.grammar.moments import DURATION, UNITS, duration_text
from hapax.grammar.prolog_text import UNSTORABLE
from hapax.grammar.rules import NUMBER, Library, PredicateKind, PredicateSignature, Rule, Templates, Tolerance, type_key
from hapax.grammar.terms import (
    OPERATIONS,
    TESTS,
    TRUE,
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
)
from hapax.grammar.verbalize import spelled_template
from hapax.grammar.words import counted

MAXIMUM_DIGITS = 300
"""Digits of a number, and its largest power of ten. Nobody means a larger quantity, and written out it fills memory."""

_Choice = TypeVar("_Choice")

# A letter of any alphabet (a word character that is neither digit nor underscore), then digits: A, Ä2.
_VARIABLE_NAME = re.compile(r"[^\W\d_]\d*")
# [1] or [X] in a template
SLOT = re.compile(r"\[([^\[\]]*)\]")
# \n, \" and the like, or a character by its code: \u{e9}
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|.)", re.DOTALL)
COMPARISONS = {
    "<=": "=<",
    "≤": "=<",
    "≥": ">=",
    "==": "=",
    "=:=": "=",
    "!=": "\\=",
    "≠": "\\=",
    "\\==": "\\=",
    "=\\=": "\\=",
}
_ATTRIBUTES = ("name", "domain", "principle", "polarity", "generic", "most", "withdrawn")
_DECLARING = (*PredicateKind, "aggregate", "file", syntax.MISSPELT)
"""Kinds of broken lines that may have declared predicates; see `syntax.RawBroken.kind`."""


def assemble(
    files: Sequence[tuple[str, str, Sequence[syntax.RawNode]]], known: Library
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The library of all lines, and the diagnostics of those left out.

    `files`: names, suffixes of the names of predicates and rules (see `imports.py`), and lines.
    The lines may use the types and signatures of `known`, which is not part of the result.
    """
    assembly = _Assembly(known)
    for read in (assembly.read_types, assembly.read_declarations, assembly.read_rules):
        for assembly.file, assembly.suffix, lines in files:
            read(lines)
    return assembly.library(), tuple(assembly.diagnostics)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The types of the variables of one rule or computed predicate, by name."""

    types: Mapping[str, Sequence[str]]
    """The types at a name's occurrences, in order."""
    settled: Mapping[str, str] = field(default_factory=dict)
    """The type of a name whose types are subtypes of one another; elsewhere each occurrence keeps its own."""
    missing: str = "variable without a type"
    """Label of the hint for a name without a type."""
    explained: bool = False
    """Another diagnostic may be the reason why a name has no type."""
    reported: set[str] = field(default_factory=set)
    """Names reported to have no type, each once."""

    def variable(self, name: str, own_type: str | None = None) -> Variable | None:
        """The variable of this name, or None if no atom gives it a type."""
        if name not in self.types:
            return None
        return Variable(name, self.settled.get(name) or own_type or self.types[name][0])


class _Assembly:
    """The library under construction."""

    def __init__(self, known: Library) -> None:
        self.known = known
        self.diagnostics: list[Diagnostic] = []
        self.file = self.suffix = ""
        self.rules: list[Rule] = []
        self.places: dict[str, Place] = {}
        """The place of the first rule with a name."""
        self.signatures: list[PredicateSignature] = []
        self.subtypes: list[tuple[str, str]] = []
        self.opposites: list[tuple[str, str]] = []
        self.facts: list[Atom] = []
        self.examples: list[Atom] = []
        self.declarations: list[Declaration] = []
        self.pair_places: dict[tuple[str, str], Place] = {}
        """The place of each pair of subtypes or opposites."""
        self.spellings: dict[str, str] = {}
        """The first spelling of a type, by `type_key`."""
        # The spellings of the known library count as read first.
        for data_type in _data_types(known):
            self.data_type(data_type.split())
        self.concluded: set[str] = set()
        self.broken: set[str] = set()
        """Names of predicates with malformed declarations; "" for a name that cannot be read."""

    def library(self) -> Library:
        return Library(
            tuple(self.rules),
            tuple(self.signatures),
            tuple(self.subtypes),
            tuple(self.opposites),
            tuple(self.facts),
            tuple(self.examples),
            tuple(self.declarations),
            self.pair_places,
        )

    def report(self, label: str, at: syntax.Spot, *related: Place, **words: str) -> None:
        """Add the diagnostic of a hint; long words are shortened to 60 characters."""
        for key, value in words.items():
            if len(value) > 60 and key != "remedy":
                words[key] = value[:57] + "..."
        self.diagnostics.append(hint(label).at(Place(self.file, *at), *related, fix=(), **words))

    def place(self, node: syntax.RawNode) -> Place:
        return Place(self.file, *node.at)

    def data_type(self, words: Sequence[str]) -> str:
        """The type in the spelling that was read first."""
        spelling = " ".join(words)
        return self.spellings.setdefault(type_key(spelling), spelling)

    # First pass: types

    def read_types(self, lines: Sequence[syntax.RawNode]) -> None:
        for line in lines:
            if isinstance(line, syntax.RawSubtype):
                pair = (self.data_type(line.lower.words), self.data_type(line.upper.words))
                self.subtypes.append(pair)
                self.pair_places.setdefault(pair, self.place(line))

    @cached_property
    def types(self) -> Library:
        """The subtypes of all files, which is enough to compare types; complete after the first pass."""
        return Library(subtypes=(*self.known.subtypes, *self.subtypes))

    # Second pass: declarations, opposites, facts

    def read_declarations(self, lines: Sequence[syntax.RawNode]) -> None:
        for line in lines:
            match line:
                case syntax.RawDeclaration():
                    # The range is that of the declaration without its sentences.
                    self._declare(line, Place(self.file, *line.at[:2], *line.atom.at[2:]))
                case syntax.RawAggregate():
                    # A given predicate, of which the aggregate's rule concludes the facts.
                    self._declare(syntax.RawDeclaration("given", line.atom, None, line.templates), self.place(line))
                case syntax.RawOpposite():
                    pair = (line.first + self.suffix, line.second + self.suffix)
                    self.opposites.append(pair)
                    self.pair_places.setdefault(pair, self.place(line))
                case syntax.RawFact():
                    stated = self.facts if line.keyword == "fact" else self.examples
                    stated.append(self._ground(line.atom))
                case syntax.RawProperty():
                    self._declare_property(line)
                case syntax.RawDisjoint():
                    self._disjoin(line)
                case syntax.RawRule(conclusion=atom):
                    self.concluded.add(f"{_joined(atom.name.words)}{self.suffix}/{len(atom.arguments)}")
                case syntax.RawBroken(kind=kind) if kind in _DECLARING:
                    self.broken.add(_joined(line.name) + self.suffix if line.name else "")

    @cached_property
    def named(self) -> set[str]:
        """Indicators of the predicates that are declared or stated, or that a rule of any file concludes."""
        return {*self.declared, *self.concluded, *(fact.indicator for fact in (*self.known.atoms, *self.facts))}

    @cached_property
    def declared(self) -> dict[str, PredicateSignature]:
        """The first declaration of each predicate in all files, by indicator; complete after the second pass."""
        signatures = (*self.known.signatures, *self.signatures)
        return {signature.indicator: signature for signature in reversed(signatures)}

    def _declare(self, line: syntax.RawDeclaration, place: Place) -> None:
        count = len(self.diagnostics)
        name = self._predicate(line.atom)
        types, parameters = self._parameters(line)
        definition = None
        misses_parameters = False
        if line.definition is not None:
            # One of the parameters was reported, and a name in the definition may be meant for it.
            is_short = len(types) < len(line.atom.arguments)
            types_by_name = {parameter.name: (parameter.data_type,) for parameter in parameters}
            scope = _Scope(types_by_name, missing="unknown parameter", explained=is_short)
            self._no_type(line.definition)
            definition = self._comparison(line.definition, scope)
            # The templates' slots for these would only be reported a second time.
            misses_parameters = bool(scope.reported)
        names = [variable.name for variable in parameters]
        templates = None if misses_parameters else self._templates(line, names)
        if count < len(self.diagnostics):  # something in this declaration was reported
            self.broken.add(name.replace(" ", "_"))
            return
        kind = PredicateKind(line.keyword)
        formal = parameters if kind is PredicateKind.COMPUTED else ()
        tolerance = Tolerance.parsed(line.tolerance.removeprefix("within")) if line.tolerance else None
        wordings = tuple(map(self.place, line.templates or ()))
        self.signatures.append(
            PredicateSignature(name, types, kind, templates, formal, definition, True, place, tolerance, wordings)
        )

    def _declare_property(self, line: syntax.RawProperty) -> None:
        indicator, place = f"{line.name}{self.suffix}/{line.arity}", self.place(line)
        if line.keyword != "closed":
            self.declarations.append(PropertyDeclaration(Property(line.keyword), indicator, place))
        elif line.position in (None, "1"):
            closedness = Closedness.CLOSED if line.position is None else Closedness.CLOSED_FOR_FIRST
            self.declarations.append(ClosedDeclaration(indicator, closedness, place))
        else:
            self.report("closed by another argument", line.at, position=str(line.position))

    def _disjoin(self, line: syntax.RawDisjoint) -> None:
        words = line.first.words
        if line.second is None and len(words) != 2:
            self.report("types not separated", line.at, types=str(line.first))
            return
        first, second = (words, line.second.words) if line.second is not None else (words[:1], words[1:])
        self.declarations.append(DisjointTypes(self.data_type(first), self.data_type(second), self.place(line)))

    def _parameters(self, line: syntax.RawDeclaration) -> tuple[tuple[str, ...], tuple[Variable, ...]]:
        """Argument types and formal variables. Only computed predicates need variables; others may leave them out."""
        types: list[str] = []
        parameters: list[Variable] = []
        for argument in line.atom.arguments:
            if not isinstance(argument, syntax.RawWords):
                label = "type expected" if line.definition is None else "parameter without a name"
                self.report(label, argument.at, argument=getattr(argument, "source", "an expression"))
                continue
            *type_words, last = argument.words
            named = bool(type_words) and is_variable_name(last)
            repeated = last in [parameter.name for parameter in parameters]
            if line.definition is not None and (not named or repeated):
                self.report("parameter without a name", argument.at, argument=str(argument))
                continue
            types.append(self.data_type(type_words if named else argument.words))
            if named:
                parameters.append(Variable(last, types[-1]))
        return tuple(types), tuple(parameters)

    def _templates(self, line: syntax.RawDeclaration, names: list[str]) -> Templates | None:
        arity = len(line.atom.arguments)
        if not line.templates:
            # The suffix does not belong to the sentence that is made from the name.
            return Templates(spelled_template(_joined(line.atom.name.words), arity)) if self.suffix else None
        if len(line.templates) > 3:
            self.report("too many templates", line.templates[3].at)
            return None
        texts = [numbered_slots(self._unquoted(raw.source, raw.at), names) for raw in line.templates]
        for text, raw in zip(texts, line.templates, strict=True):
            for slot in SLOT.findall(text):
                if slot.isdecimal() and not (slot.isascii() and 1 <= len(slot) <= 3 and 1 <= int(slot) <= arity):
                    self.report("slot without argument", raw.at, slot=slot)
        return Templates(texts[0], *(text or None for text in texts[1:]))  # an empty text stands for a missing form

    def _ground(self, atom: syntax.RawAtom) -> Atom:
        """The atom of a fact or an example, which has no variables."""
        arguments: list[Term] = []
        for argument in atom.arguments:
            if isinstance(argument, syntax.RawWords):
                self.report("variable in a fact", argument.at, argument=str(argument))
            else:
                arguments.append(self._argument(argument, _Scope({})))
        return self._applied(atom, arguments)

    # Third pass: rules

    def read_rules(self, lines: Sequence[syntax.RawNode]) -> None:
        position = 0
        waiting: dict[str, syntax.RawAttribute] = {}
        for line in lines:
            match line:
                case syntax.RawAttribute():
                    self._await(line, waiting)
                    continue
                case syntax.RawBroken(kind="@"):
                    continue  # the attributes before it still wait for their rule
                case syntax.RawBroken(kind=syntax.MISSPELT):
                    pass  # the attributes before it may be a rule's, if no keyword was meant
                case syntax.RawBroken(kind="" | "file"):
                    position += 1  # a broken rule keeps its number, so that the others keep their names
                case syntax.RawRule():
                    position += 1
                    self._rule(line, waiting, position)
                case syntax.RawNever():
                    self._constraint(line)
                    self._unused(waiting)
                case syntax.RawAggregate():
                    self._aggregate(line)
                    self._unused(waiting)
                case _:
                    self._unused(waiting)
            waiting = {}
        self._unused(waiting)

    def _await(self, line: syntax.RawAttribute, waiting: dict[str, syntax.RawAttribute]) -> None:
        """Keep an attribute for the rule that follows."""
        if line.name not in _ATTRIBUTES:
            self.report("unknown attribute", line.at, name=line.name)
        elif line.name in waiting:
            self.report("attribute twice", line.at, name=line.name)
        else:
            waiting[line.name] = line

    def _unused(self, waiting: dict[str, syntax.RawAttribute]) -> None:
        for line in waiting.values():
            self.report("attribute without rule", line.at, name=line.name)

    def _rule(self, line: syntax.RawRule, attributes: dict[str, syntax.RawAttribute], position: int) -> None:
        count = len(self.diagnostics)
        scope = self._scope((*line.premise, *chain.from_iterable(line.exceptions)), line.conclusion)
        premise = self._premise(line.premise, scope)
        conclusion = Literal(self._atom(line.conclusion, scope))
        exceptions = tuple(self._exception(items, premise, scope) for items in line.exceptions)
        if count == len(self.diagnostics):  # nothing in this rule was reported
            # Equal exceptions have one atom, because its name is made of their text; the premise has it once.
            whole = (*premise, *dict.fromkeys(exception.literal for exception in exceptions))
            rule = Rule("", whole, conclusion, place=self.place(line), exceptions=exceptions)
            self.rules.append(self._with_attributes(rule, attributes, position))
            self.places.setdefault(self.rules[-1].name, rule.place)

    def _exception(
        self, items: Sequence[syntax.RawItem], premise: tuple[BodyLiteral, ...], scope: _Scope
    ) -> ExceptionClause:
        exception = ExceptionClause.of(premise, self._premise(items, scope), self.place(items[0]))
        if not exception.atom.arguments:
            self.report("exception apart from its rule", items[0].at, exception=str(exception))
        return exception

    def _constraint(self, line: syntax.RawNever) -> None:
        count = len(self.diagnostics)
        premise = self._premise(line.premise, self._scope(line.premise))
        if count == len(self.diagnostics):
            self.declarations.append(Constraint(premise, place=self.place(line)))

    def _aggregate(self, line: syntax.RawAggregate) -> None:
        count = len(self.diagnostics)
        # As an atom, the counted variables may give types that no premise writes.
        counted = syntax.RawAtom(syntax.RawWords((line.function,)), line.counted)
        scope = self._scope(line.premise, line.atom, counted)
        premise = self._premise(line.premise, scope)
        atom, variables = self._atom(line.atom, scope), self._atom(counted, scope).variables
        # Another sign than `=` is kept in place of the function: `check` reports it as an unknown aggregate.
        function = line.function if COMPARISONS.get(line.operator, line.operator) == "=" else line.operator
        if count == len(self.diagnostics):
            aggregate = AggregateDeclaration(atom, line.result, function, variables, premise, self.place(line))
            self.declarations.append(aggregate)

    def _premise(self, items: Sequence[syntax.RawItem], scope: _Scope) -> tuple[BodyLiteral, ...]:
        premise: list[BodyLiteral] = []
        for item in items:
            if isinstance(item, syntax.RawLiteral) and self._is_test(item.atom):
                test = self._expression(item.atom, scope)
                premise.append(Comparison("\\=" if item.negated else "=", test, Constant(TRUE), self.place(item)))
            elif isinstance(item, syntax.RawLiteral):
                premise.append(Literal(self._atom(item.atom, scope), item.negated))
            else:
                premise.append(self._comparison(item, scope))
        return tuple(premise)

    def _scope(self, premise: Sequence[syntax.RawItem], *conclusions: syntax.RawAtom) -> _Scope:
        """The types of a rule's variables: as written, or else by the declarations of its predicates."""
        written: dict[str, list[str]] = {}
        for item in premise:
            if isinstance(item, syntax.RawComparison) and item.defined is not None:
                *type_words, name = item.defined.words
                written.setdefault(name, []).append(self.data_type(type_words))
        declared: dict[str, str] = {}  # they count only for names without a written type
        explained = False
        literals = (item for item in premise if isinstance(item, syntax.RawLiteral) and not self._is_test(item.atom))
        for atom in (*(item.atom for item in literals), *conclusions):
            predicate = _joined(atom.name.words).replace(" ", "_") + self.suffix
            signature = self.declared.get(f"{predicate}/{len(atom.arguments)}")
            for index, argument in enumerate(atom.arguments):
                if not isinstance(argument, syntax.RawWords):
                    continue
                *type_words, name = argument.words
                if not is_variable_name(name):
                    explained = True  # `PersonX` has its own diagnostic, and may be meant as the variable X
                elif type_words:
                    written.setdefault(name, []).append(self.data_type(type_words))
                elif signature is not None:
                    declared.setdefault(name, signature.argument_types[index])
                else:
                    # A declaration that could not be read might have given the type.
                    explained = explained or bool(self.broken & {"", predicate})
        types_by_name = {**{name: [data_type] for name, data_type in declared.items()}, **written}
        self._add_defined(premise, types_by_name)
        # Types of one name that are not on one line of subtypes stay with their occurrences; `check` reports them.
        chains = {name: self.types.most_specific(tuple(dict.fromkeys(types))) for name, types in types_by_name.items()}
        settled = {name: most_specific for name, most_specific in chains.items() if most_specific is not None}
        return _Scope(types_by_name, settled, explained=explained)

    def _add_defined(self, premise: Sequence[syntax.RawItem], types: dict[str, list[str]]) -> None:
        """Add the types of the variables to which equations without a written type give values."""
        equations = [item for item in premise if isinstance(item, syntax.RawComparison) and _is_equation(item)]
        sides = [(item.left, item.right) for item in equations] + [(item.right, item.left) for item in equations]
        for _ in sides:  # an equation may need a type that another one gives
            for target, source in sides:
                name = target.words[-1] if isinstance(target, syntax.RawWords) else ""
                if is_variable_name(name) and name not in types and (found := self._type_of(source, types)):
                    types[name] = [found]

    def _type_of(self, expression: syntax.RawExpression, types: Mapping[str, Sequence[str]]) -> str:
        """The type of an expression; empty if that of a variable in it is not known."""
        match expression:
            case syntax.RawWords(words=words):
                return next(iter(types.get(words[-1], ())), "")
            case syntax.RawOperation(left=left, operator=name, right=right):
                operands = [left, right]
            case syntax.RawAtom(arguments=arguments):
                name, operands = str(expression.name), list(arguments)
            case syntax.RawNumber():
                return NUMBER
            case _:
                return DURATION if isinstance(expression, syntax.RawQuantity) else TEXT
        found = [self._type_of(operand, types) for operand in operands]
        return result_type(name, found, self.types.kind_of) if all(found) else ""

    def _is_test(self, atom: syntax.RawAtom) -> bool:
        """True for a test such as `contains(C, "x")`, unless the rules have a predicate of this name."""
        name, arguments = str(atom.name), atom.arguments
        has_types = any(isinstance(argument, syntax.RawWords) and len(argument.words) > 1 for argument in arguments)
        return name in TESTS and not has_types and f"{name}{self.suffix}/{len(arguments)}" not in self.named

    def _atom(self, atom: syntax.RawAtom, scope: _Scope) -> Atom:
        return self._applied(atom, [self._argument(argument, scope) for argument in atom.arguments])

    def _argument(self, argument: syntax.RawExpression, scope: _Scope) -> Term:
        if isinstance(argument, syntax.RawOperation | syntax.RawAtom):
            is_nested = isinstance(argument, syntax.RawAtom)
            self.report("nested atom" if is_nested else "expression as argument", argument.at)
            return Constant(0)  # never used: the rule is left out
        return self._term(argument, scope)

    def _applied(self, atom: syntax.RawAtom, terms: Iterable[Term]) -> Atom:
        places = tuple(map(self.place, atom.arguments))
        return Atom(self._predicate(atom), tuple(terms), self.place(atom), places)

    def _term(
        self, argument: syntax.RawArgument | syntax.RawQuantity, scope: _Scope, in_equation: bool = False
    ) -> Variable | Constant:
        if not isinstance(argument, syntax.RawWords):
            return self._constant(argument)
        *type_words, name = argument.words
        if not is_variable_name(name):
            self._no_variable(argument, type_words)
            return Variable(name, "")  # never used: the rule is left out
        variable = scope.variable(name, self.data_type(type_words) if type_words else None)
        if variable is None and not scope.explained and name not in scope.reported:
            scope.reported.add(name)
            if in_equation:
                remedy = f'Write the type in the equation that gives its value, such as "Number {name} = ..."'
            else:
                remedy = f'Write the type where the variable first occurs, such as "Ingredient {name}"'
            self.report(scope.missing, argument.at, name=name, remedy=remedy)
        return variable or Variable(name, "")

    def _no_variable(self, argument: syntax.RawWords, type_words: list[str]) -> None:
        """Report words that do not end in a variable, with the variable that they may be meant for."""
        text, last = str(argument)[:60], argument.words[-1]
        if last == "_":
            written = " ".join(type_words) or "its type"
            remedy = f"Every argument has a name: write {written} and a capital letter of its own"
        elif type_words and last[0].isupper():
            named = f"{' '.join(type_words)} {last[0]}"
            of_type = f'or "{text} X" if {text} is the type'
            remedy = f'A variable is one capital letter, perhaps with digits: write "{named}", {of_type}'
        else:
            remedy = f'Add the name, a capital letter and perhaps digits: {text} X. If it is a text, quote it: "{text}"'
        self.report("no variable name", argument.at, argument=text, remedy=remedy)

    def _predicate(self, atom: syntax.RawAtom) -> str:
        name = _joined(atom.name.words) + self.suffix
        if " " in name:
            self.report("blank in a predicate name", atom.name.at, name=name, remedy=name.replace(" ", "_"))
        return name

    # Comparisons and values

    def _comparison(self, comparison: syntax.RawComparison, scope: _Scope) -> Comparison:
        operator = COMPARISONS.get(comparison.operator, comparison.operator)
        if operator != "=":
            self._no_type(comparison)
        left, right = self._expression(comparison.left, scope), self._expression(comparison.right, scope)
        if comparison.defined is not None and isinstance(left, Variable):
            own_type = self.data_type(comparison.defined.words[:-1])
            left = scope.variable(left.name, own_type) or left
        return Comparison(operator, left, right, self.place(comparison), comparison.defined is not None)

    def _no_type(self, comparison: syntax.RawComparison) -> None:
        """Report a variable with its type in a comparison that defines none."""
        if comparison.defined is not None:
            written, name = str(comparison.defined), comparison.defined.words[-1]
            operator = comparison.operator
            self.report("type in a comparison", comparison.at, operator=operator, variable=written, name=name)

    def _expression(self, expression: syntax.RawExpression, scope: _Scope) -> Expression:
        if isinstance(expression, syntax.RawOperation):
            left, right = self._expression(expression.left, scope), self._expression(expression.right, scope)
            return Arithmetic(expression.operator, (left, right))
        if isinstance(expression, syntax.RawAtom):
            return self._call(expression, scope)
        return self._term(expression, scope, in_equation=True)

    def _call(self, call: syntax.RawAtom, scope: _Scope) -> Arithmetic:
        name, count = str(call.name), len(call.arguments)
        function = FUNCTIONS.get(name)
        if function is None:
            near = get_close_matches(name, [known for known in FUNCTIONS if known not in OPERATIONS], 1)
            question = f"Did you mean {near[0]}?" if near else "The page on the language lists the functions."
            self.report("unknown function", call.name.at, name=name, remedy=question)
        elif not function.least <= count <= function.most:
            wanted = f"{function.least}" if function.least == function.most else f"{function.least} to {function.most}"
            self.report("arguments of a function", call.at, name=name, wanted=wanted, count=counted(count, "argument"))
        return Arithmetic(name, tuple(self._expression(argument, scope) for argument in call.arguments))

    def _constant(self, raw: syntax.RawText | syntax.RawNumber | syntax.RawQuantity) -> Constant:
        if isinstance(raw, syntax.RawText):
            return Constant(self._unquoted(raw.source, raw.at))
        if isinstance(raw, syntax.RawQuantity):
            return Constant(self._duration(raw))
        number = number_value(raw.source)
        if number is None:
            self.report("number too large", raw.at, limit=str(MAXIMUM_DIGITS))
        return Constant(0 if number is None else number)

    def _duration(self, raw: syntax.RawQuantity) -> str:
        amount = number_value(raw.number)
        text = duration_text(amount, raw.unit) if amount is not None and amount < 10**9 else None
        if text is None:
            self.report("unknown unit", raw.at, unit=raw.unit, units=", ".join(UNITS))
        return text or ""

    def _unquoted(self, source: str, at: syntax.Spot) -> str:
        try:
            return unquoted(source)
        except ValueError as error:
            self.report("unknown escape", at, escape=str(error))
            return ""

    # Attributes

    def _with_attributes(self, rule: Rule, lines: dict[str, syntax.RawAttribute], position: int) -> Rule:
        text = {name: self._attribute_text(line) for name, line in lines.items()}
        polarity = self._choice(lines, text, "polarity", {polarity.value: polarity for polarity in Polarity})
        # Before the principle, whose default follows from the polarity.
        polarity = polarity or default_polarity(rule.conclusion)
        principle = self._choice(lines, text, "principle", PRINCIPLE_SPELLINGS) or default_principle(polarity)
        generic, generic_by = self._generic(rule, lines, text)
        return replace(
            rule,
            name=self._name(lines, text, position),
            domain=text.get("domain") or None,
            principle=principle,
            polarity=polarity,
            generic=generic,
            generic_by=generic_by,
            cap=self._cap(rule, lines, text),
            withdrawn=text.get("withdrawn") or None,
        )

    def _attribute_text(self, line: syntax.RawAttribute) -> str:
        count = len(self.diagnostics)
        text = " ".join(self._unquoted(value, line.at) if value.startswith('"') else value for value in line.values)
        if not text.strip() and count == len(self.diagnostics):
            self._refuse_value(line, "", f"Write a value after @{line.name}.")
        return text

    def _refuse_value(self, line: syntax.RawAttribute, value: str, remedy: str) -> None:
        self.report("attribute value", line.at, value=value, name=line.name, remedy=remedy)

    def _choice(
        self, lines: dict[str, syntax.RawAttribute], text: dict[str, str], name: str, choices: Mapping[str, _Choice]
    ) -> _Choice | None:
        value = text.get(name, "")
        if value and type_key(value) not in choices:
            self._refuse_value(lines[name], value, f"Write {' or '.join(choices)}.")
        return choices.get(type_key(value))

    def _name(self, lines: dict[str, syntax.RawAttribute], text: dict[str, str], position: int) -> str:
        """The value of @name, else `rule<N>`, with the file's name before it if an earlier file has that name, and a
        number behind it if that is taken, too.
        """
        if text.get("name"):
            written = text["name"] + self.suffix
            if written in self.places:
                self.report("name twice", lines["name"].at, self.places[written], name=written)
            return written
        numbered = f"rule{position}"
        of_file = f"{PurePath(self.file).stem}_{numbered}"
        names = chain((numbered, of_file), (f"{of_file}_{number}" for number in count(2)))
        return next(name for name in names if name not in self.places)

    def _generic(
        self, rule: Rule, lines: dict[str, syntax.RawAttribute], text: dict[str, str]
    ) -> tuple[tuple[str, ...], GenericBy]:
        value = text.get("generic")
        if not value:
            return default_generic(rule.stated_premise, rule.conclusion, self.types.is_person)
        names = () if value == "none" else tuple(dict.fromkeys(value.split()))
        known = [variable.name for variable in rule.variables]
        for name in names:
            if name not in known:
                self._refuse_value(
                    lines["generic"], name, f"Write variables of the rule ({', '.join(known)}), or none."
                )
        return names, GenericBy.ATTRIBUTE

    def _cap(self, rule: Rule, lines: dict[str, syntax.RawAttribute], text: dict[str, str]) -> StatementCap | None:
        """The value of @most, such as `2 per A B`."""
        value = text.get("most")
        if not value:
            return None
        cap = StatementCap.parsed(value)
        known = sorted({variable.name for variable in rule.variables})
        if cap is None or not set(cap.variables).issubset(known):
            example = "@most 2 per A"
            remedy = f"Write a number from 1 and variables of the rule ({', '.join(known)}): {example}."
            self._refuse_value(lines["most"], value, remedy)
        return cap


@lru_cache(maxsize=10_000)  # called for every argument of every rule, twice
def is_variable_name(text: str) -> bool:
    """Tell if a word names a variable: a capital letter of any alphabet, perhaps with a number, such as `A` or `Ä2`."""
    return bool(_VARIABLE_NAME.fullmatch(text)) and text[0].isupper()


def unquoted(source: str) -> str:
    """The text inside quotes with its escapes replaced.

    Raises ValueError with an unknown escape, or with the escape of a character that Prolog and SQLite cannot hold.
    """
    if found := UNSTORABLE.search(source):
        raise ValueError(f"\\u{{{ord(found[0]):x}}}")
    return _ESCAPE.sub(_unescaped, source[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        code = int(escape[2:-1], 16)
        # Neither NUL nor half of a character in UTF-16 is a text: Prolog and SQLite can hold neither.
        if 0 < code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            return chr(code)
    character = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}.get(escape)
    if character is None:
        raise ValueError(match[0])
    return character


def number_value(source: str) -> int | Decimal | None:
    """An int for plain digits, an exact Decimal for a point or an exponent, None if it exceeds MAXIMUM_DIGITS."""
    # Counted before int(), which refuses very long numbers with an error of its own.
    digits = sum(character.isdigit() for character in source)
    if digits > MAXIMUM_DIGITS:
        return None
    if source.lstrip("-").isdigit():
        return int(source)
    try:
        number = Decimal(source)
    except InvalidOperation:  # a power of ten beyond what decimals have
        return None
    # `adjusted` is the power of ten of the first digit: 1e999 is short to write, and too large.
    return number if not number or abs(number.adjusted()) <= MAXIMUM_DIGITS else None


def numbered_slots(template: str, names: Sequence[str]) -> str:
    """The template with slots `[X]` of variable names replaced by `[1]`, `[2]` ...; other brackets stay."""
    positions: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        positions.setdefault(name, str(position))  # of a repeated name, the first position
    return SLOT.sub(lambda slot: f"[{positions.get(slot[1], slot[1])}]", template)


def _is_equation(item: syntax.RawComparison) -> bool:
    return COMPARISONS.get(item.operator, item.operator) == "=" and item.defined is None


def _joined(words: Sequence[str]) -> str:
    """The words of a predicate name. Blanks beside underscores, as LINK prints them, are dropped; others stay."""
    return re.sub(r" ?_ ?", "_", " ".join(words))


def _data_types(library: Library) -> Iterable[str]:
    for pair in library.subtypes:
        yield from pair
    for signature in library.signatures:
        yield from signature.argument_types
    for rule in library.rules:
        for variable in rule.variables:
            yield variable.data_type
