"""Statements as written -> a library: names, types, values, attributes and defaults are settled here.

Two rounds over all files, because a type may be declared after its use: first the subtype lines, then everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from pathlib import PurePath
from typing import TypeVar

from grammar.defaults import PRINCIPLE_SPELLINGS, default_polarity, default_principle, inferred_generic
from grammar.errors import Diagnostic, hint
from grammar.rules import (
    GenericBy,
    Library,
    Place,
    Polarity,
    PredicateKind,
    PredicateSignature,
    Rule,
    Templates,
    type_key,
)
from grammar.syntax import (
    AttributeLine,
    BrokenLine,
    DeclarationLine,
    FactLine,
    Line,
    OppositeLine,
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
    Spot,
    SubtypeLine,
    Words,
)
from grammar.terms import (
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

MAXIMUM_DIGITS = 300
"""Digits of a number, and the largest power of ten: beyond it nobody means a quantity, and printing would explode."""

_Choice = TypeVar("_Choice")

VARIABLE_NAME = re.compile(r"[A-Z]\d*")
SLOT = re.compile(r"\[([^\[\]]*)\]")
_ESCAPE = re.compile(r"\\(u\{[0-9a-fA-F]{1,6}\}|.)", re.DOTALL)
_COMPARISONS = {
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
_ATTRIBUTES = ("name", "domain", "principle", "polarity", "generic")
_DECLARING = (*PredicateKind, "file")
"""Kinds of broken lines that may have declared predicates."""
_RULES = ("", "file")
"""Kinds of broken lines that may have been a rule."""


def assemble(files: Sequence[tuple[str, Sequence[Line]]], known: Library) -> tuple[Library, tuple[Diagnostic, ...]]:
    """The library of all lines and the faults found. `known` lends its types and signatures but is not part of it."""
    assembly = _Assembly(known)
    for _, lines in files:
        assembly.read_types(lines)
    for file, lines in files:
        assembly.read_declarations(file, lines)
    assembly.end_declarations()
    for file, lines in files:
        assembly.read_rules(file, lines)
    return assembly.library(), tuple(assembly.faults)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The variables of one rule: for each name the types its occurrences give it, in order."""

    given: dict[str, tuple[str, ...]]
    settled: dict[str, str]
    """One type for each name whose types are on one subtype chain; the others keep what each occurrence says."""
    missing: str = "variable without a type"
    """The fault of a name that is not given."""
    excused: bool = False
    """Whether another fault, told already, may be why a name is not given."""
    told: set[str] = field(default_factory=set)
    """Names that were told to be missing: each is told once."""

    def variable(self, name: str, own_type: str | None = None) -> Variable | None:
        """The variable of that name, or None if no atom types it."""
        if name not in self.given:
            return None
        return Variable(name, self.settled.get(name) or own_type or self.given[name][0])


class _Assembly:
    """What has been read so far."""

    def __init__(self, known: Library) -> None:
        self.known = known
        self.faults: list[Diagnostic] = []
        self.file = ""
        self.rules: list[Rule] = []
        self.places: dict[str, Place] = {}
        """Where the rule of each name stands."""
        self.signatures: list[PredicateSignature] = []
        self.subtypes: list[tuple[str, str]] = []
        self.opposites: list[tuple[str, str]] = []
        self.facts: list[Atom] = []
        self.spellings: dict[str, str] = {}
        for data_type in _data_types(known):
            self.data_type(data_type.split())
        self.types = known
        self.declared: dict[str, PredicateSignature] = {}
        self.broken: set[str] = set()
        """Names of predicates whose declarations are faulty; "" where the name cannot be read."""

    def library(self) -> Library:
        return Library(
            tuple(self.rules), tuple(self.signatures), tuple(self.subtypes), tuple(self.opposites), tuple(self.facts)
        )

    def fault(self, label: str, at: Spot, **words: str) -> None:
        shortened = {key: value if len(value) <= 60 else value[:57] + "..." for key, value in words.items()}
        self.faults.append(hint(label).at(Place(self.file, *at), **shortened))

    def data_type(self, words: Sequence[str]) -> str:
        """The type's name in the spelling met first."""
        spelling = " ".join(words)
        return self.spellings.setdefault(type_key(spelling), spelling)

    # Round one: types

    def read_types(self, lines: Sequence[Line]) -> None:
        for line in lines:
            if isinstance(line, SubtypeLine):
                self.subtypes.append((self.data_type(line.lower.words), self.data_type(line.upper.words)))
        self.types = Library(subtypes=(*self.known.subtypes, *self.subtypes))

    # Round two: declarations, opposites, facts

    def read_declarations(self, file: str, lines: Sequence[Line]) -> None:
        self.file = file
        for line in lines:
            if isinstance(line, DeclarationLine):
                self._declare(line)
            elif isinstance(line, OppositeLine):
                self.opposites.append(line.names)
            elif isinstance(line, FactLine):
                self._fact(line)
            elif isinstance(line, BrokenLine) and line.kind in _DECLARING:
                self.broken.add(_joined(line.name))

    def end_declarations(self) -> None:
        """Rules may use every declaration, of whichever file."""
        self.declared = {one.indicator: one for one in reversed((*self.known.signatures, *self.signatures))}

    def _declare(self, line: DeclarationLine) -> None:
        count = len(self.faults)
        name = self._predicate(line.atom)
        types, parameters = self._parameters(line)
        definition = None
        misses_parameters = False
        if line.definition is not None:
            is_short = len(types) < len(line.atom.arguments)
            scope = _Scope({one.name: (one.data_type,) for one in parameters}, {}, "unknown parameter", is_short)
            definition = self._comparison(line.definition, scope)
            misses_parameters = bool(scope.told)  # and slots for them would seem to be without arguments
        names = [variable.name for variable in parameters]
        templates = None if misses_parameters else self._templates(line, len(line.atom.arguments), names)
        if count < len(self.faults):
            self.broken.add(name.replace(" ", "_"))
        else:
            kind = PredicateKind(line.kind)
            place = Place(self.file, *line.at)
            kept = parameters if kind is PredicateKind.COMPUTED else ()
            self.signatures.append(PredicateSignature(name, types, kind, templates, kept, definition, place=place))

    def _parameters(self, line: DeclarationLine) -> tuple[tuple[str, ...], tuple[Variable, ...]]:
        """Argument types and formal variables. Only computed predicates need names; elsewhere they may be left out."""
        types: list[str] = []
        parameters: list[Variable] = []
        for argument in line.atom.arguments:
            if not isinstance(argument, Words):
                self.fault("type expected" if line.definition is None else "parameter without a name", argument.at,
                           argument=argument.source)  # fmt: skip
                continue
            *type_words, last = argument.words
            named = bool(type_words) and bool(VARIABLE_NAME.fullmatch(last))
            if line.definition is not None and (not named or last in (one.name for one in parameters)):
                self.fault("parameter without a name", argument.at, argument=" ".join(argument.words))
                continue
            types.append(self.data_type(type_words if named else argument.words))
            if named:
                parameters.append(Variable(last, types[-1]))
        return tuple(types), tuple(parameters)

    def _templates(self, line: DeclarationLine, arity: int, names: list[str]) -> Templates | None:
        if not line.templates:
            return None
        if len(line.templates) > 3:
            self.fault("too many templates", line.templates[3].at)
            return None
        texts = [numbered_slots(self._unquoted(text), names) for text in line.templates]
        for text, raw in zip(texts, line.templates, strict=True):
            for slot in SLOT.findall(text):
                if slot.isdecimal() and not (slot.isascii() and 1 <= len(slot) <= 3 and 1 <= int(slot) <= arity):
                    self.fault("slot without argument", raw.at, slot=slot)
        return Templates(texts[0], *(text or None for text in texts[1:]))

    def _fact(self, line: FactLine) -> None:
        arguments: list[Term] = []
        for argument in line.atom.arguments:
            if isinstance(argument, Words):
                self.fault("variable in a fact", argument.at, argument=" ".join(argument.words))
            else:
                arguments.append(self._constant(argument))
        self.facts.append(Atom(self._predicate(line.atom), tuple(arguments)))

    # Round three: rules

    def read_rules(self, file: str, lines: Sequence[Line]) -> None:
        self.file = file
        position = 0
        waiting: dict[str, AttributeLine] = {}
        for line in lines:
            if isinstance(line, AttributeLine):
                self._wait(line, waiting)
                continue
            if isinstance(line, BrokenLine) and line.kind == "@":
                continue
            if isinstance(line, RuleLine):
                position += 1
                self._rule(line, waiting, position)
            elif isinstance(line, BrokenLine) and line.kind in _RULES:
                position += 1
            else:
                self._unused(waiting)
            waiting = {}
        self._unused(waiting)

    def _wait(self, line: AttributeLine, waiting: dict[str, AttributeLine]) -> None:
        if line.name not in _ATTRIBUTES:
            self.fault("unknown attribute", line.at, name=line.name)
        elif line.name in waiting:
            self.fault("attribute twice", line.at, name=line.name)
        else:
            waiting[line.name] = line

    def _unused(self, waiting: dict[str, AttributeLine]) -> None:
        for line in waiting.values():
            self.fault("attribute without rule", line.at, name=line.name)

    def _rule(self, line: RuleLine, attributes: dict[str, AttributeLine], position: int) -> None:
        count = len(self.faults)
        scope = self._scope(line)
        premise = tuple(self._item(item, scope) for item in line.premise)
        conclusion = Literal(self._atom(line.conclusion, scope))
        if count == len(self.faults):
            rule = Rule("", premise, conclusion, place=Place(self.file, *line.at))
            self.rules.append(self._with_attributes(rule, attributes, position))
            self.places.setdefault(self.rules[-1].name, rule.place)

    def _scope(self, line: RuleLine) -> _Scope:
        given: dict[str, tuple[str, ...]] = {}
        bare: dict[str, str] = {}
        excused = False
        for atom in (*(item.atom for item in line.premise if isinstance(item, RawLiteral)), line.conclusion):
            predicate = _joined(atom.name.words).replace(" ", "_")
            signature = self.declared.get(f"{predicate}/{len(atom.arguments)}")
            for index, argument in enumerate(atom.arguments):
                if not isinstance(argument, Words):
                    continue
                *type_words, name = argument.words
                if not VARIABLE_NAME.fullmatch(name):
                    excused = True  # `PersonX`: told as such, and X may be the variable that it would type
                elif type_words:
                    given[name] = (*given.get(name, ()), self.data_type(type_words))
                elif signature is not None:
                    bare.setdefault(name, signature.argument_types[index])
                else:
                    excused = excused or bool(self.broken & {"", predicate})
        for name, data_type in bare.items():
            given.setdefault(name, (data_type,))
        chains = {name: self.types.most_specific(tuple(dict.fromkeys(types))) for name, types in given.items()}
        settled = {name: found for name, found in chains.items() if found is not None}
        return _Scope(given, settled, excused=excused)

    def _item(self, item: RawItem, scope: _Scope) -> BodyLiteral:
        if isinstance(item, RawLiteral):
            return Literal(self._atom(item.atom, scope), item.negated)
        return self._comparison(item, scope)

    def _atom(self, atom: RawAtom, scope: _Scope) -> Atom:
        return Atom(self._predicate(atom), tuple(self._term(argument, scope) for argument in atom.arguments))

    def _term(self, argument: RawArgument, scope: _Scope) -> Term:
        if not isinstance(argument, Words):
            return self._constant(argument)
        *type_words, name = argument.words
        if not VARIABLE_NAME.fullmatch(name):
            self.fault("no variable name", argument.at, argument=" ".join(argument.words))
            return Variable(name, "")
        return self._variable(scope, name, self.data_type(type_words) if type_words else None, argument.at)

    def _variable(self, scope: _Scope, name: str, own_type: str | None, at: Spot) -> Variable:
        variable = scope.variable(name, own_type)
        if variable is None and not scope.excused and name not in scope.told:
            scope.told.add(name)
            self.fault(scope.missing, at, name=name)
        return variable or Variable(name, "")

    def _predicate(self, atom: RawAtom) -> str:
        name = _joined(atom.name.words)
        if " " in name:
            self.fault("blank in a predicate name", atom.at, name=name, remedy=name.replace(" ", "_"))
        return name

    # Comparisons and values

    def _comparison(self, comparison: RawComparison, scope: _Scope) -> Comparison:
        operator = _COMPARISONS.get(comparison.operator, comparison.operator)
        return Comparison(operator, self._expression(comparison.left, scope), self._expression(comparison.right, scope))

    def _expression(self, expression: RawExpression, scope: _Scope) -> Expression:
        if isinstance(expression, RawOperation):
            left, right = self._expression(expression.left, scope), self._expression(expression.right, scope)
            return Arithmetic(expression.operator, left, right)
        if not isinstance(expression, Words):
            return self._constant(expression)
        name = expression.words[0]
        if not VARIABLE_NAME.fullmatch(name):
            self.fault("no variable name", expression.at, argument=name)
            return Variable(name, "")
        return self._variable(scope, name, None, expression.at)

    def _constant(self, raw: RawText | RawNumber) -> Constant:
        if isinstance(raw, RawText):
            return Constant(self._unquoted(raw))
        number = number_value(raw.source)
        if number is None:
            self.fault("number too large", raw.at, limit=str(MAXIMUM_DIGITS))
        return Constant(0 if number is None else number)

    def _unquoted(self, raw: RawText) -> str:
        try:
            return unquoted(raw.source)
        except ValueError as fault:
            self.fault("unknown escape", raw.at, escape=str(fault))
            return ""

    # Attributes

    def _with_attributes(self, rule: Rule, lines: dict[str, AttributeLine], position: int) -> Rule:
        text = {name: self._attribute_text(line) for name, line in lines.items()}
        polarity = self._choice(lines, text, "polarity", {one.value: one for one in Polarity})
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
        )

    def _attribute_text(self, line: AttributeLine) -> str:
        count = len(self.faults)
        parts = (self._unquoted(RawText(value, line.at)) if value.startswith('"') else value for value in line.values)
        text = " ".join(parts)
        if not text.strip() and count == len(self.faults):
            self.fault(
                "attribute value", line.at, value="", name=line.name, remedy=f"Write a value after @{line.name}."
            )
        return text

    def _choice(
        self, lines: dict[str, AttributeLine], text: dict[str, str], name: str, choices: Mapping[str, _Choice]
    ) -> _Choice | None:
        value = text.get(name, "")
        if value and type_key(value) not in choices:
            remedy = f"Write {' or '.join(choices)}."
            self.fault("attribute value", lines[name].at, value=value, name=name, remedy=remedy)
        return choices.get(type_key(value))

    def _name(self, lines: dict[str, AttributeLine], text: dict[str, str], position: int) -> str:
        """The rule's own name, else `rule<N>`; where an earlier file took that, the file's name comes before it."""
        own = text.get("name")
        if own:
            if own in self.places:
                self.fault("name twice", lines["name"].at, name=own)
                self.faults[-1] = replace(self.faults[-1], related=(self.places[own],))
            return own
        plain = f"rule{position}"
        return plain if plain not in self.places else f"{PurePath(self.file).stem}_{plain}"

    def _generic(
        self, rule: Rule, lines: dict[str, AttributeLine], text: dict[str, str]
    ) -> tuple[tuple[str, ...], GenericBy]:
        value = text.get("generic")
        if not value:
            return inferred_generic(rule.premise, rule.conclusion, self.types.is_person)
        names = () if value == "none" else tuple(dict.fromkeys(value.split()))
        known = [variable.name for variable in rule.variables]
        for name in names:
            if name not in known:
                remedy = f"Name variables of the rule ({', '.join(known)}), or none."
                self.fault("attribute value", lines["generic"].at, value=name, name="generic", remedy=remedy)
        return names, GenericBy.ATTRIBUTE


def unquoted(source: str) -> str:
    """The text inside quotes, escapes read. Raises ValueError with the escape that means nothing."""
    return _ESCAPE.sub(_unescaped, source[1:-1])


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        code = int(escape[2:-1], 16)
        if code <= 0x10FFFF:
            return chr(code)
    found = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}.get(escape)
    if found is None:
        raise ValueError(match[0])
    return found


def number_value(source: str) -> int | Decimal | None:
    """An int where the text has neither point nor exponent, else an exact Decimal; None where it is out of bounds."""
    digits = sum(character.isdigit() for character in source)
    if digits > MAXIMUM_DIGITS:
        return None
    if source.lstrip("-").isdigit():
        return int(source)
    try:
        number = Decimal(source)
    except InvalidOperation:  # a power of ten beyond what decimals have
        return None
    return number if not number or abs(number.adjusted()) <= MAXIMUM_DIGITS else None


def numbered_slots(template: str, names: Sequence[str]) -> str:
    """The template with `[X]` slots of variable names turned into `[1]`, `[2]` ...; other brackets stay."""
    positions = {name: str(index) for index, name in reversed(list(enumerate(names, start=1)))}
    return SLOT.sub(lambda slot: f"[{positions.get(slot[1], slot[1])}]", template)


def _joined(words: Sequence[str]) -> str:
    """The words of a predicate name; the blanks that LINK prints beside underscores disappear, others stay a fault."""
    return re.sub(r" ?_ ?", "_", " ".join(words))


def _data_types(library: Library) -> Iterable[str]:
    for pair in library.subtypes:
        yield from pair
    for signature in library.signatures:
        yield from signature.argument_types
    for rule in library.rules:
        for variable in rule.variables:
            yield variable.data_type
