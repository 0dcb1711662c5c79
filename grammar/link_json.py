"""LINK's `rules.json`, read and written.

A rule in such a file is two maps from an untyped atom to its sentence with `[VAR]` slots, and its variables as
`name: [name, data type, is generic, node type]`. A *factual* variable has a single right value. In Hapax this is a
property of the predicate, so the first premise predicate that ends in a factual variable is read as functional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hapax.grammar.assemble import SLOT, is_variable_name, numbered_slots
from hapax.grammar.errors import HapaxError
from hapax.grammar.json_places import JsonPath, JsonSpans, PlacedText, Span
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, Variable, quoted

# `is_in (A, B)`: a name, perhaps with blanks in it, and arguments without parentheses
_ATOM = re.compile(r"\s*(\w[\w ]*?)\s*\(([^()]*)\)\s*")
# the words of a data type, such as `Food Allergen`
_WORDS = re.compile(r"\w[\w'’-]*(?: +\w[\w'’-]*)*")
_ATTRIBUTES = ("domain", "principle", "polarity")


class NotLinkRules(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """JSON of another form than LINK's. `spot`: where, as line and column and perhaps those of the end."""

    def __init__(self, file: str, reason: str, remedy: str, spot: tuple[int, ...]) -> None:
        super().__init__(f"{file}: {reason}.", remedy)
        self.reason, self.spot = reason, spot


def rule_text_of_link_json(text: str, file: str) -> PlacedText:
    """A LINK file as rule text that remembers where its parts are in the file, declarations behind the rules.

    Raises NotLinkRules.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        spot = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        remedy = "Pass a LINK rules file: an object of rules."
        raise NotLinkRules(file, f"not valid JSON ({error})", remedy, spot) from None
    if not isinstance(entries, dict):
        remedy = 'Pass a LINK rules file, such as {"rule0": {...}}.'
        raise NotLinkRules(file, "not an object of rules", remedy, (1, 1))
    reader = _LinkFileReader(file, JsonSpans.of(text), PlacedText(text))
    for name, entry in entries.items():
        reader.read_rule(name, entry)
    reader.declare()
    return reader.made


def to_link_json(library: Library) -> str:
    """The library's rules as a LINK file. Raises HapaxError that names the rules which LINK's form cannot express."""
    misfits: list[str] = []
    for rule in library.rules:
        misfits += [f"{rule.name} ({part})" for part in inexpressible_parts(rule)]
    if misfits:
        raise HapaxError(f"LINK's JSON cannot express: {', '.join(misfits)}. Leave these rules out.")
    entries = {rule.name: _entry(rule, library) for rule in library.rules}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class _LinkAtom:
    """An atom of a map with its sentence. `path`: of its key."""

    atom: Atom
    sentence: str | None
    path: JsonPath


@dataclass(frozen=True, slots=True)
class _LinkPredicate:
    """A predicate as the maps use it, with its first use."""

    first: _LinkAtom
    types: tuple[str, ...]
    template: str | None
    functional: bool


@dataclass(slots=True)
class _LinkFileReader:
    """Reads the rules of one file into a text, and collects the declarations of their predicates."""

    file: str
    spans: JsonSpans
    made: PlacedText
    predicates: dict[tuple[str, int], _LinkPredicate] = field(default_factory=dict)
    """By name and number of arguments."""

    def read_rule(self, name: str, entry: Any) -> None:
        """Add a rule to the text."""
        variables = self._variables(name, entry)
        premise = self._atoms(name, entry, "premise_map", variables)
        conclusions = self._atoms(name, entry, "conclusion_map", variables)
        if len(conclusions) != 1 or not premise:
            raise self._error(name, "it needs a premise and exactly one conclusion")
        factual = {key for key, fields in variables.items() if len(fields) > 3 and fields[3] == "factual"}
        self._collect([*premise, *conclusions], factual)
        place = self.spans.keys[name,]
        generic = [key for key, fields in variables.items() if fields[2]]
        self.made.add(f"@name {quoted(name)}\n@generic {' '.join(generic) or 'none'}\n", place)
        for key in _ATTRIBUTES:
            if entry.get(key):
                self.made.add(f"@{key} {quoted(str(entry[key]))}\n", self.spans.values.get((name, key), place))
        for number, used in enumerate((*premise, *conclusions)):
            if number:
                sign = " -> " if number == len(premise) else " & "
                self.made.add(sign, self.spans.keys[used.path])
            self._add_atom(used)
        self.made.add("\n", place)

    def _add_atom(self, used: _LinkAtom) -> None:
        """Add an atom, in which each name stands for itself in its key."""
        whole = self.spans.keys[used.path]
        inside, match = self.spans.inside(whole), _ATOM.fullmatch(str(used.path[-1]))
        if inside is None or match is None:
            self.made.add(str(used.atom), whole)
            return
        start, end = inside
        self.made.add(used.atom.predicate, self._name_span(used.path))
        self.made.add("(", whole)
        offset = match.start(2)
        for number, (term, written) in enumerate(zip(used.atom.arguments, match[2].split(","), strict=True)):
            if number:
                self.made.add(", ", whole)
            blanks = len(written) - len(written.lstrip())
            first = start + offset + blanks
            self.made.add(str(term), (first, first + len(written.strip())))
            offset += len(written) + 1
        self.made.add(")", (end - 1, end))

    def _name_span(self, path: JsonPath) -> Span:
        """The predicate's name in the key of an atom; the whole key where it has escapes."""
        whole, match = self.spans.keys[path], _ATOM.fullmatch(str(path[-1]))
        inside = self.spans.inside(whole)
        if inside is None or match is None:
            return whole
        return inside[0] + match.start(1), inside[0] + match.end(1)

    def declare(self) -> None:
        """Add the declarations of the predicates, each at its first use."""
        for (name, _), predicate in self.predicates.items():
            # Others need no declaration: a search asks a model for them, and rules name their types.
            if predicate.template is not None or predicate.functional:
                kind = PredicateKind.FUNCTIONAL if predicate.functional else PredicateKind.ORACLE
                path = predicate.first.path
                self.made.add(f"{kind} ", self.spans.keys[path])
                self.made.add(name, self._name_span(path))
                self.made.add(f"({', '.join(predicate.types)})", self.spans.keys[path])
                if predicate.template is not None:
                    self.made.add(f": {quoted(predicate.template)}", self.spans.values[path])
                self.made.add("\n", self.spans.keys[path])

    def _variables(self, name: str, entry: Any) -> dict[str, list[Any]]:
        variables = entry.get("variables") if isinstance(entry, dict) else None
        if not isinstance(variables, dict):
            raise self._error(name, 'it has no "variables"')
        for key, fields in variables.items():
            if not isinstance(fields, list) or len(fields) < 3 or not isinstance(fields[1], str):
                reason = f"variable {key} is not [name, data type, is generic, node type]"
                raise self._error(name, reason, "variables", key)
            if not is_variable_name(key) or not _WORDS.fullmatch(fields[1].strip()):
                raise self._error(
                    name,
                    f"variable {key!r} of type {fields[1]!r} has no valid name: a variable is a capital letter and "
                    "perhaps digits, and a type is words",
                    "variables",
                    key,
                )
        return variables

    def _atoms(self, name: str, entry: dict[str, Any], key: str, variables: dict[str, list[Any]]) -> list[_LinkAtom]:
        """The atoms of a map, each with its sentence."""
        sentences = entry.get(key)
        if not isinstance(sentences, dict):
            raise self._error(name, f'it has no "{key}"')
        atoms = []
        for text, sentence in sentences.items():
            match = _ATOM.fullmatch(text)
            names = [argument.strip() for argument in match[2].split(",")] if match else []
            if match is None or not all(argument in variables for argument in names):
                raise self._error(name, f"{text!r} is not an atom over its variables", key, text)
            arguments = (Variable(argument, " ".join(variables[argument][1].split())) for argument in names)
            atoms.append(_LinkAtom(Atom(match[1], tuple(arguments)), sentence, (name, key, text)))
        return atoms

    def _collect(self, atoms: list[_LinkAtom], factual: set[str]) -> None:
        """Types and sentence are those of a predicate's first use; any use may make it functional."""
        earlier: set[str] = set()  # last arguments of the atoms before
        for position, used in enumerate(atoms):
            atom, sentence = used.atom, used.sentence
            last = _last_variable(atom)
            is_conclusion = position == len(atoms) - 1
            # Of several atoms that end in the variable, the first one gives it its value.
            functional = last in factual - earlier and not is_conclusion
            earlier.add(last)
            names = [variable.name for variable in atom.arguments if isinstance(variable, Variable)]
            template = numbered_slots(sentence, names) if isinstance(sentence, str) else None
            types = tuple(variable.data_type for variable in atom.arguments if isinstance(variable, Variable))
            key = (atom.predicate, len(atom.arguments))
            predicate = self.predicates.get(key, _LinkPredicate(used, types, template, functional))
            self.predicates[key] = replace(predicate, functional=predicate.functional or functional)

    def _error(self, name: str, reason: str, *path: str) -> HapaxError:
        """The error of a rule. `path`: of the key at fault within its entry."""
        span = self.spans.keys.get((name, *path), self.spans.keys[name,])
        remedy = "Compare it with LINK's released rules.json."
        return NotLinkRules(self.file, f"rule {name}: {reason}", remedy, self.made.spot_of(span))


def _last_variable(atom: Atom) -> str:
    """The name of the last argument, "" if it is a constant."""
    last = atom.arguments[-1]
    return last.name if isinstance(last, Variable) else ""


def inexpressible_parts(rule: Rule) -> Iterator[str]:
    """The parts of a rule that LINK's form cannot express."""
    if rule.comparisons:
        yield "a comparison"
    if any(literal.negated for literal in rule.literals):
        yield "a negation"
    arguments = list(chain.from_iterable(atom.arguments for atom in rule.atoms))
    if not all(isinstance(term, Variable) for term in arguments):
        yield "a constant"
    premise = rule.atoms[:-1]
    if len({_untyped(atom) for atom in premise}) < len(premise):
        yield "the same atom twice"
    types: dict[str, set[str]] = {}
    for term in arguments:
        if isinstance(term, Variable):
            types.setdefault(term.name, set()).add(term.data_type)
    if any(len(data_types) > 1 for data_types in types.values()):
        yield "a variable with two types"


def _entry(rule: Rule, library: Library) -> dict[str, Any]:
    factual: set[str] = set()
    for literal in rule.literals:
        if library.kind(literal.atom.indicator) is PredicateKind.FUNCTIONAL:
            factual.add(_last_variable(literal.atom))
    variables: dict[str, list[Any]] = {}
    for variable in rule.variables:
        node_type = "factual" if variable.name in factual else None
        variables[variable.name] = [variable.name, variable.data_type, variable.name in rule.generic, node_type]
    entry: dict[str, Any] = {
        "premise_map": {_untyped(literal.atom): _sentence(literal.atom, library) for literal in rule.literals},
        "conclusion_map": {_untyped(rule.conclusion.atom): _sentence(rule.conclusion.atom, library)},
        "variables": variables,
    }
    # Only the attributes that a reader would not infer, so that LINK's own file comes back unchanged.
    written = str(rule)
    for key in _ATTRIBUTES:
        if f"@{key} " in written:
            entry[key] = str(getattr(rule, key))
    return entry


def _untyped(atom: Atom) -> str:
    names = (term.name for term in atom.arguments if isinstance(term, Variable))
    return f"{atom.predicate}({', '.join(names)})"


def _sentence(atom: Atom, library: Library) -> str | None:
    """The affirmative template with the atom's variable names in its slots."""
    signature = library.signature(atom.indicator) if library.knows(atom.indicator) else None
    if signature is None or signature.templates is None:
        return None
    names = {
        str(position): term.name for position, term in enumerate(atom.arguments, start=1) if isinstance(term, Variable)
    }
    return SLOT.sub(lambda slot: f"[{names.get(slot[1], slot[1])}]", signature.templates.affirmative)
