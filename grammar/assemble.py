"""Parsed statements to a library: names, types, values, attributes and defaults are settled here.

Three passes over all files, because types and predicates may be declared after their use: subtypes; declarations,
opposites and facts; rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import chain, count
from pathlib import PurePath
from typing import TypeVar

from hapax.grammar.attributes import (
    PRINCIPLE_SPELLINGS,
    GenericBy,
    Polarity,
    StatementCap,
    default_generic,
    default_polarity,
    default_principle,
)
from hapax.grammar.closedness import Closedness
from hapax.grammar.declarations import (
    AggregateDeclaration,
    ClosedDeclaration,
    Constraint,
    Declaration,
    DisjointTypes,
    ExceptionClause,
    Property,
    PropertyDeclaration,
)
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.hints import hint
from hapax.grammar.prolog_text import UNSTORABLE
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature, Rule, Templates, Tolerance, type_key
from hapax.grammar.syntax import (
    MISSPELT,
    AggregateLine,
    AttributeLine,
    BrokenLine,
    ClosedLine,
    DeclarationLine,
    DisjointLine,
    ExampleLine,
    FactLine,
    NeverLine,
    OppositeLine,
    PropertyLine,
    RawArgument,
    RawAtom,
    RawComparison,
    RawExpression,
    RawItem,
    RawLiteral,
    RawNumber,
    RawOperation,
    RawText,
    RuleLine,
    SourceLine,
    Spot,
    SubtypeLine,
    WordSequence,
)
from hapax.grammar.terms import Arithmetic, Atom, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

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
_DECLARING = (*PredicateKind, "aggregate", "file", MISSPELT)
"""Kinds of broken lines that may have declared predicates; see `syntax.BrokenLine.kind`."""
_RULES = ("", "file")
"""Kinds of broken lines that may have been rules."""


def assemble(
    files: Sequence[tuple[str, Sequence[SourceLine]]], known: Library
) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The library of all lines, and the diagnostics of those left out.

    The lines may use the types and signatures of `known`, which is not part of the result.
    """
    assembly = _Assembly(known)
    for file, lines in files:
        assembly.read_types(file, lines)
    for file, lines in files:
        assembly.read_declarations(file, lines)
    assembly.end_declarations()
    for file, lines in files:
        assembly.read_rules(file, lines)
    return assembly.library(), tuple(assembly.diagnostics)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The types of the variables of one rule or computed predicate, by name."""

    types: dict[str, tuple[str, ...]]
    """The types at a name's occurrences, in order."""
    settled: dict[str, str]
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
        self.file = ""
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
        self.types = known
        self.declared: dict[str, PredicateSignature] = {}
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

    def report(self, label: str, at: Spot, **words: str) -> None:
        """Add the diagnostic of a hint; long words are shortened to 60 characters."""
        shortened = {
            key: value if len(value) <= 60 or key == "remedy" else value[:57] + "..." for key, value in words.items()
        }
        self.diagnostics.append(hint(label).at(Place(self.file, *at), **shortened))

    def data_type(self, words: Sequence[str]) -> str:
        """The type in the spelling that was read first."""
        spelling = " ".join(words)
        return self.spellings.setdefault(type_key(spelling), spelling)

    # First pass: types

    def read_types(self, file: str, lines: Sequence[SourceLine]) -> None:
        for line in lines:
            if isinstance(line, SubtypeLine):
                pair = (self.data_type(line.lower.words), self.data_type(line.upper.words))
                self.subtypes.append(pair)
                self.pair_places.setdefault(pair, Place(file, *line.at))
        # Subtypes alone are enough to compare types in the passes that follow.
        self.types = Library(subtypes=(*self.known.subtypes, *self.subtypes))

    # Second pass: declarations, opposites, facts

    def read_declarations(self, file: str, lines: Sequence[SourceLine]) -> None:
        self.file = file
        for line in lines:
            if isinstance(line, DeclarationLine):
                self._declare(line)
            elif isinstance(line, AggregateLine):
                # A given predicate, of which the aggregate's rule concludes the facts.
                self._declare(DeclarationLine("given", line.atom, line.templates, None, line.at))
            elif isinstance(line, OppositeLine):
                self.opposites.append(line.names)
                self.pair_places.setdefault(line.names, Place(file, *line.at))
            elif isinstance(line, FactLine):
                self.facts.append(self._ground(line.atom))
            elif isinstance(line, ExampleLine):
                self.examples.append(self._ground(line.atom))
            elif isinstance(line, PropertyLine | ClosedLine | DisjointLine):
                self._declare_property(line)
            elif isinstance(line, BrokenLine) and line.kind in _DECLARING:
                self.broken.add(_joined(line.name))

    def end_declarations(self) -> None:
        """Index the declarations of all files for the third pass; the first of two for one predicate counts."""
        self.declared = {
            signature.indicator: signature for signature in reversed((*self.known.signatures, *self.signatures))
        }

    def _declare(self, line: DeclarationLine) -> None:
        count = len(self.diagnostics)
        name = self._predicate(line.atom)
        types, parameters = self._parameters(line)
        definition = None
        misses_parameters = False
        if line.definition is not None:
            # One of the parameters was reported, and a name in the definition may be meant for it.
            is_short = len(types) < len(line.atom.arguments)
            types_by_name = {parameter.name: (parameter.data_type,) for parameter in parameters}
            scope = _Scope(dict[str, tuple[str, ...]](types_by_name), {}, "unknown parameter", is_short)
            self._no_type(line.definition)
            definition = self._comparison(line.definition, scope)
            # The templates' slots for these would only be reported a second time.
            misses_parameters = bool(scope.reported)
        names = [variable.name for variable in parameters]
        templates = None if misses_parameters else self._templates(line, len(line.atom.arguments), names)
        if count < len(self.diagnostics):  # something in this declaration was reported
            self.broken.add(name.replace(" ", "_"))
        else:
            kind = PredicateKind(line.kind)
            place = Place(self.file, *line.at)
            formal = parameters if kind is PredicateKind.COMPUTED else ()
            tolerance = None if line.tolerance is None else Tolerance.parsed(line.tolerance)
            signature = PredicateSignature(name, types, kind, templates, formal, definition, True, place, tolerance)
            wordings = tuple(Place(self.file, *text.at) for text in line.templates)
            self.signatures.append(replace(signature, template_places=wordings))

    def _declare_property(self, line: PropertyLine | ClosedLine | DisjointLine) -> None:
        place = Place(self.file, *line.at)
        if isinstance(line, PropertyLine):
            indicator = f"{line.name}/{line.arity}"
            self.declarations.append(PropertyDeclaration(Property(line.keyword), indicator, place))
        elif isinstance(line, DisjointLine):
            words = line.first.words
            if line.second is None and len(words) != 2:
                self.report("types not separated", line.at, types=" ".join(words))
                return
            first, second = (words, line.second.words) if line.second is not None else (words[:1], words[1:])
            self.declarations.append(DisjointTypes(self.data_type(first), self.data_type(second), place))
        elif line.position not in (None, "1"):
            self.report("closed by another argument", line.at, position=str(line.position))
        else:
            closedness = Closedness.CLOSED if line.position is None else Closedness.CLOSED_FOR_FIRST
            self.declarations.append(ClosedDeclaration(f"{line.name}/{line.arity}", closedness, place))

    def _parameters(self, line: DeclarationLine) -> tuple[tuple[str, ...], tuple[Variable, ...]]:
        """Argument types and formal variables. Only computed predicates need variables; others may leave them out."""
        types: list[str] = []
        parameters: list[Variable] = []
        for argument in line.atom.arguments:
            if not isinstance(argument, WordSequence):
                label = "type expected" if line.definition is None else "parameter without a name"
                self.report(label, argument.at, argument=argument.source)
                continue
            *type_words, last = argument.words
            named = bool(type_words) and is_variable_name(last)
            repeated = last in [parameter.name for parameter in parameters]
            if line.definition is not None and (not named or repeated):
                self.report("parameter without a name", argument.at, argument=" ".join(argument.words))
                continue
            types.append(self.data_type(type_words if named else argument.words))
            if named:
                parameters.append(Variable(last, types[-1]))
        return tuple(types), tuple(parameters)

    def _templates(self, line: DeclarationLine, arity: int, names: list[str]) -> Templates | None:
        if not line.templates:
            return None
        if len(line.templates) > 3:
            self.report("too many templates", line.templates[3].at)
            return None
        texts = [numbered_slots(self._unquoted(text), names) for text in line.templates]
        for text, raw in zip(texts, line.templates, strict=True):
            for slot in SLOT.findall(text):
                if slot.isdecimal() and not (slot.isascii() and 1 <= len(slot) <= 3 and 1 <= int(slot) <= arity):
                    self.report("slot without argument", raw.at, slot=slot)
        return Templates(texts[0], *(text or None for text in texts[1:]))  # an empty text stands for a missing form

    def _ground(self, atom: RawAtom) -> Atom:
        """The atom of a fact or an example, which has no variables."""
        arguments: list[Term] = []
        for argument in atom.arguments:
            if isinstance(argument, WordSequence):
                self.report("variable in a fact", argument.at, argument=" ".join(argument.words))
            else:
                arguments.append(self._constant(argument))
        return Atom(self._predicate(atom), tuple(arguments), Place(self.file, *atom.at), self._argument_places(atom))

    # Third pass: rules

    def read_rules(self, file: str, lines: Sequence[SourceLine]) -> None:
        self.file = file
        position = 0
        waiting: dict[str, AttributeLine] = {}
        for line in lines:
            if isinstance(line, AttributeLine):
                if line.name not in _ATTRIBUTES:
                    self.report("unknown attribute", line.at, name=line.name)
                elif line.name in waiting:
                    self.report("attribute twice", line.at, name=line.name)
                else:
                    waiting[line.name] = line
                continue
            if isinstance(line, BrokenLine) and line.kind == MISSPELT:
                waiting = {}  # the attributes before it may be a rule's, if no keyword was meant
                continue
            if isinstance(line, BrokenLine) and line.kind == "@":
                continue  # the attributes before it still wait for their rule
            self._premised(line)
            if isinstance(line, RuleLine):
                position += 1
                self._rule(line, waiting, position)
            elif isinstance(line, BrokenLine) and line.kind in _RULES:
                position += 1  # a broken rule keeps its number, so that the others keep their names
            else:
                self._unused(waiting)
            waiting = {}
        self._unused(waiting)

    def _unused(self, waiting: dict[str, AttributeLine]) -> None:
        for line in waiting.values():
            self.report("attribute without rule", line.at, name=line.name)

    def _rule(self, line: RuleLine, attributes: dict[str, AttributeLine], position: int) -> None:
        count = len(self.diagnostics)
        scope = self._scope((*line.premise, *chain.from_iterable(line.exceptions)), line.conclusion)
        premise = tuple(self._premise(line.premise, scope))
        conclusion = Literal(self._atom(line.conclusion, scope))
        exceptions = tuple(self._exception(items, premise, scope) for items in line.exceptions)
        if count == len(self.diagnostics):  # nothing in this rule was reported
            # Equal exceptions have one atom, because its name is made of their text; the premise has it once.
            whole = (*premise, *dict.fromkeys(exception.literal for exception in exceptions))
            rule = Rule("", whole, conclusion, place=Place(self.file, *line.at), exceptions=exceptions)
            self.rules.append(self._with_attributes(rule, attributes, position))
            self.places.setdefault(self.rules[-1].name, rule.place)

    def _exception(self, items: Sequence[RawItem], premise: tuple[BodyLiteral, ...], scope: _Scope) -> ExceptionClause:
        stated = tuple(self._premise(items, scope))
        first = items[0].atom.at if isinstance(items[0], RawLiteral) else items[0].at
        exception = ExceptionClause.of(premise, stated, Place(self.file, *first))
        if not exception.atom.arguments:
            self.report("exception apart from its rule", first, exception=str(exception))
        return exception

    def _premised(self, line: SourceLine) -> None:
        """Read a declaration with a premise."""
        if isinstance(line, NeverLine):
            self._constraint(line)
        elif isinstance(line, AggregateLine):
            self._aggregate(line)

    def _constraint(self, line: NeverLine) -> None:
        count = len(self.diagnostics)
        premise = self._premise(line.premise, self._scope(line.premise))
        if count == len(self.diagnostics):
            self.declarations.append(Constraint(tuple(premise), place=Place(self.file, *line.at)))

    def _aggregate(self, line: AggregateLine) -> None:
        count = len(self.diagnostics)
        # As an atom, the counted variables may give types that no premise writes.
        counted = RawAtom(WordSequence((line.function,), line.at), line.counted, line.at)
        scope = self._scope(line.premise, line.atom, counted)
        premise = tuple(self._premise(line.premise, scope))
        atom, variables = self._atom(line.atom, scope), self._atom(counted, scope).variables
        # Another sign than `=` is kept in place of the function: `check` reports it as an unknown aggregate.
        function = line.function if COMPARISONS.get(line.operator, line.operator) == "=" else line.operator
        if count == len(self.diagnostics):
            place = Place(self.file, *line.at)
            self.declarations.append(AggregateDeclaration(atom, line.result, function, variables, premise, place))

    def _premise(self, items: Sequence[RawItem], scope: _Scope) -> list[BodyLiteral]:
        premise: list[BodyLiteral] = []
        for item in items:
            if isinstance(item, RawLiteral):
                premise.append(Literal(self._atom(item.atom, scope), item.negated))
            else:
                premise.append(self._comparison(item, scope))
        return premise

    def _scope(self, premise: Sequence[RawItem], *conclusions: RawAtom) -> _Scope:
        """The types of a rule's variables: as written, or else by the declarations of its predicates."""
        types_by_name = self._types_of_equations(premise)
        bare: dict[str, str] = {}  # types by declaration; they count only for names without a written type
        explained = False
        for atom in (*(item.atom for item in premise if isinstance(item, RawLiteral)), *conclusions):
            predicate = _joined(atom.name.words).replace(" ", "_")
            signature = self.declared.get(f"{predicate}/{len(atom.arguments)}")
            for index, argument in enumerate(atom.arguments):
                if not isinstance(argument, WordSequence):
                    continue
                *type_words, name = argument.words
                if not is_variable_name(name):
                    explained = True  # `PersonX` has its own diagnostic, and may be meant as the variable X
                elif type_words:
                    types_by_name[name] = (*types_by_name.get(name, ()), self.data_type(type_words))
                elif signature is not None:
                    bare.setdefault(name, signature.argument_types[index])
                else:
                    # A declaration that could not be read might have given the type.
                    explained = explained or bool(self.broken & {"", predicate})
        for name, data_type in bare.items():
            types_by_name.setdefault(name, (data_type,))
        # Types of one name that are not on one line of subtypes stay with their occurrences; `check` reports them.
        chains = {name: self.types.most_specific(tuple(dict.fromkeys(types))) for name, types in types_by_name.items()}
        settled = {name: most_specific for name, most_specific in chains.items() if most_specific is not None}
        return _Scope(types_by_name, settled, explained=explained)

    def _types_of_equations(self, premise: Sequence[RawItem]) -> dict[str, tuple[str, ...]]:
        """The types that equations give the variables on their left."""
        types_by_name: dict[str, tuple[str, ...]] = {}
        for item in premise:
            if isinstance(item, RawComparison) and item.defined is not None:
                *type_words, name = item.defined.words
                types_by_name[name] = (*types_by_name.get(name, ()), self.data_type(type_words))
        return types_by_name

    def _atom(self, atom: RawAtom, scope: _Scope) -> Atom:
        terms = tuple(self._term(argument, scope) for argument in atom.arguments)
        return Atom(self._predicate(atom), terms, Place(self.file, *atom.at), self._argument_places(atom))

    def _argument_places(self, atom: RawAtom) -> tuple[Place, ...]:
        return tuple(Place(self.file, *argument.at) for argument in atom.arguments)

    def _term(self, argument: RawArgument, scope: _Scope) -> Term:
        if not isinstance(argument, WordSequence):
            return self._constant(argument)
        *type_words, name = argument.words
        if not is_variable_name(name):
            self._no_variable(argument, type_words)
            return Variable(name, "")  # never used: the rule is left out
        return self._variable(scope, name, self.data_type(type_words) if type_words else None, argument.at)

    def _no_variable(self, argument: WordSequence, type_words: list[str]) -> None:
        """Report words that do not end in a variable, with the variable that they may be meant for."""
        text, last = " ".join(argument.words)[:60], argument.words[-1]
        if last == "_":
            remedy = (
                f"Every argument has a name: write {' '.join(type_words) or 'its type'} and a capital letter of its own"
            )
        elif type_words and last[0].isupper():
            named = f"{' '.join(type_words)} {last[0]}"
            of_type = f'or "{text} X" if {text} is the type'
            remedy = f'A variable is one capital letter, perhaps with digits: write "{named}", {of_type}'
        else:
            remedy = f'Add the name, a capital letter and perhaps digits: {text} X. If it is a text, quote it: "{text}"'
        self.report("no variable name", argument.at, argument=text, remedy=remedy)

    def _variable(
        self, scope: _Scope, name: str, own_type: str | None, at: Spot, remedy: str | None = None
    ) -> Variable:
        variable = scope.variable(name, own_type)
        if variable is None and not scope.explained and name not in scope.reported:
            scope.reported.add(name)
            first_use = f'Write the type where the variable first occurs, such as "Ingredient {name}"'
            self.report(scope.missing, at, name=name, remedy=remedy or first_use)
        return variable or Variable(name, "")

    def _predicate(self, atom: RawAtom) -> str:
        name = _joined(atom.name.words)
        if " " in name:
            self.report("blank in a predicate name", atom.name.at, name=name, remedy=name.replace(" ", "_"))
        return name

    # Comparisons and values

    def _comparison(self, comparison: RawComparison, scope: _Scope) -> Comparison:
        operator = COMPARISONS.get(comparison.operator, comparison.operator)
        if operator != "=":
            self._no_type(comparison)
        left, right = self._expression(comparison.left, scope), self._expression(comparison.right, scope)
        if comparison.defined is not None and isinstance(left, Variable):
            own_type = self.data_type(comparison.defined.words[:-1])
            left = scope.variable(left.name, own_type) or left
        return Comparison(operator, left, right, Place(self.file, *comparison.at), comparison.defined is not None)

    def _no_type(self, comparison: RawComparison) -> None:
        """Report a variable with its type in a comparison that defines none."""
        if comparison.defined is not None:
            written, name = " ".join(comparison.defined.words), comparison.defined.words[-1]
            operator = comparison.operator
            self.report("type in a comparison", comparison.at, operator=operator, variable=written, name=name)

    def _expression(self, expression: RawExpression, scope: _Scope) -> Expression:
        if isinstance(expression, RawOperation):
            left, right = self._expression(expression.left, scope), self._expression(expression.right, scope)
            return Arithmetic(expression.operator, left, right)
        if not isinstance(expression, WordSequence):
            return self._constant(expression)
        name = expression.words[0]
        if not is_variable_name(name):
            self._no_variable(expression, [])
            return Variable(name, "")
        remedy = f'Write the type in the equation that gives its value, such as "Number {name} = ..."'
        return self._variable(scope, name, None, expression.at, remedy)

    def _constant(self, raw: RawText | RawNumber) -> Constant:
        if isinstance(raw, RawText):
            return Constant(self._unquoted(raw))
        number = number_value(raw.source)
        if number is None:
            self.report("number too large", raw.at, limit=str(MAXIMUM_DIGITS))
        return Constant(0 if number is None else number)

    def _unquoted(self, raw: RawText) -> str:
        try:
            return unquoted(raw.source)
        except ValueError as error:
            self.report("unknown escape", raw.at, escape=str(error))
            return ""

    # Attributes

    def _with_attributes(self, rule: Rule, lines: dict[str, AttributeLine], position: int) -> Rule:
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

    def _attribute_text(self, line: AttributeLine) -> str:
        count = len(self.diagnostics)
        parts = (self._unquoted(RawText(value, line.at)) if value.startswith('"') else value for value in line.values)
        text = " ".join(parts)
        if not text.strip() and count == len(self.diagnostics):
            self.report(
                "attribute value", line.at, value="", name=line.name, remedy=f"Write a value after @{line.name}."
            )
        return text

    def _choice(
        self, lines: dict[str, AttributeLine], text: dict[str, str], name: str, choices: Mapping[str, _Choice]
    ) -> _Choice | None:
        value = text.get(name, "")
        if value and type_key(value) not in choices:
            remedy = f"Write {' or '.join(choices)}."
            self.report("attribute value", lines[name].at, value=value, name=name, remedy=remedy)
        return choices.get(type_key(value))

    def _name(self, lines: dict[str, AttributeLine], text: dict[str, str], position: int) -> str:
        """The value of @name, else `rule<N>`, with the file's name before it if an earlier file has that name, and a
        number behind it if that is taken, too.
        """
        written_name = text.get("name")
        if written_name:
            if written_name in self.places:
                self.report("name twice", lines["name"].at, name=written_name)
                # `report` knows no related places.
                self.diagnostics[-1] = replace(self.diagnostics[-1], related=(self.places[written_name],))
            return written_name
        numbered = f"rule{position}"
        of_file = f"{PurePath(self.file).stem}_{numbered}"
        names = chain((numbered, of_file), (f"{of_file}_{number}" for number in count(2)))
        return next(name for name in names if name not in self.places)

    def _generic(
        self, rule: Rule, lines: dict[str, AttributeLine], text: dict[str, str]
    ) -> tuple[tuple[str, ...], GenericBy]:
        value = text.get("generic")
        if not value:
            return default_generic(rule.stated_premise, rule.conclusion, self.types.is_person)
        names = () if value == "none" else tuple(dict.fromkeys(value.split()))
        variable_names = [variable.name for variable in rule.variables]
        for name in names:
            if name not in variable_names:
                remedy = f"Write variables of the rule ({', '.join(variable_names)}), or none."
                self.report("attribute value", lines["generic"].at, value=name, name="generic", remedy=remedy)
        return names, GenericBy.ATTRIBUTE

    def _cap(self, rule: Rule, lines: dict[str, AttributeLine], text: dict[str, str]) -> StatementCap | None:
        """The value of @most, such as `2 per A B`."""
        value = text.get("most")
        if not value:
            return None
        cap = StatementCap.parsed(value)
        variables = {variable.name for variable in rule.variables}
        if cap is None or not variables.issuperset(cap.variables):
            remedy = f"Write a number from 1 and variables of the rule ({', '.join(sorted(variables))}): @most 2 per A."
            self.report("attribute value", lines["most"].at, value=value, name="most", remedy=remedy)
        return cap


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
