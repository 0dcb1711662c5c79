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
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, Variable, quoted

# `is_in (A, B)`: a name, perhaps with blanks in it, and arguments without parentheses
_ATOM = re.compile(r"\s*(\w[\w ]*?)\s*\(([^()]*)\)\s*")
# the words of a data type, such as `Food Allergen`
_WORDS = re.compile(r"\w[\w'’-]*(?: +\w[\w'’-]*)*")
_ATTRIBUTES = ("domain", "principle", "polarity")


def rule_text_of_link_json(text: str, file: str) -> str:
    """A LINK file as rule text, declarations with templates behind the rules. Raises HapaxError for another form.

    Each rule begins on the line of its name in the file, if the file has enough lines, so that places lead there.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise HapaxError(f"{file}: not valid JSON ({error}). Pass a LINK rules file: an object of rules.") from None
    if not isinstance(entries, dict):
        raise HapaxError(f'{file}: not an object of rules. Pass a LINK rules file, such as {{"rule0": {{...}}}}.')
    reader = _LinkFileReader(file)
    lines: list[str] = []
    offset = 0
    for name, entry in entries.items():
        rule = reader.rule(name, entry)
        # A name with escapes of another kind is not found, and its rule follows the one before.
        found = re.compile(re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:\s*\{").search(text, offset)
        if found is not None:
            offset = found.end()
            lines += [""] * (text.count("\n", 0, found.start()) - len(lines))
        lines += rule.split("\n")
    return "\n".join([*lines, *reader.declarations()]) + "\n"


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
class _LinkPredicate:
    """A predicate as the maps use it."""

    types: tuple[str, ...]
    template: str | None
    functional: bool


@dataclass(slots=True)
class _LinkFileReader:
    """Reads the rules of one file, and collects the declarations of their predicates."""

    file: str
    predicates: dict[tuple[str, int], _LinkPredicate] = field(default_factory=dict)
    """By name and number of arguments."""

    def rule(self, name: str, entry: Any) -> str:
        """The rule as text."""
        variables = self._variables(name, entry)
        premise = self._atoms(name, entry, "premise_map", variables)
        conclusions = self._atoms(name, entry, "conclusion_map", variables)
        if len(conclusions) != 1 or not premise:
            raise self._error(name, "it needs a premise and exactly one conclusion")
        factual = {key for key, fields in variables.items() if len(fields) > 3 and fields[3] == "factual"}
        self._collect([*premise, *conclusions], factual)
        generic = [key for key, fields in variables.items() if fields[2]]
        lines = [f"@name {quoted(name)}", f"@generic {' '.join(generic) or 'none'}"]
        lines += [f"@{key} {quoted(str(entry[key]))}" for key in _ATTRIBUTES if entry.get(key)]
        return "\n".join([*lines, f"{' & '.join(str(atom) for atom, _ in premise)} -> {conclusions[0][0]}"])

    def declarations(self) -> Iterator[str]:
        for (name, _), predicate in self.predicates.items():
            # Others need no declaration: a search asks a model for them, and rules name their types.
            if predicate.template is not None or predicate.functional:
                kind = PredicateKind.FUNCTIONAL if predicate.functional else PredicateKind.ORACLE
                template = f": {quoted(predicate.template)}" if predicate.template is not None else ""
                yield f"{kind} {name}({', '.join(predicate.types)}){template}"

    def _variables(self, name: str, entry: Any) -> dict[str, list[Any]]:
        variables = entry.get("variables") if isinstance(entry, dict) else None
        if not isinstance(variables, dict):
            raise self._error(name, 'it has no "variables"')
        for key, fields in variables.items():
            if not isinstance(fields, list) or len(fields) < 3 or not isinstance(fields[1], str):
                raise self._error(name, f"variable {key} is not [name, data type, is generic, node type]")
            if not is_variable_name(key) or not _WORDS.fullmatch(fields[1].strip()):
                raise self._error(
                    name,
                    f"variable {key!r} of type {fields[1]!r} has no valid name: a variable is a capital letter and "
                    "perhaps digits, and a type is words",
                )
        return variables

    def _atoms(
        self, name: str, entry: dict[str, Any], key: str, variables: dict[str, list[Any]]
    ) -> list[tuple[Atom, str | None]]:
        """The atoms of a map, each with its sentence."""
        sentences = entry.get(key)
        if not isinstance(sentences, dict):
            raise self._error(name, f'it has no "{key}"')
        atoms = []
        for text, sentence in sentences.items():
            match = _ATOM.fullmatch(text)
            names = [argument.strip() for argument in match[2].split(",")] if match else []
            if match is None or not all(argument in variables for argument in names):
                raise self._error(name, f"{text!r} is not an atom over its variables")
            arguments = (Variable(argument, " ".join(variables[argument][1].split())) for argument in names)
            atoms.append((Atom(match[1], tuple(arguments)), sentence))
        return atoms

    def _collect(self, atoms: list[tuple[Atom, str | None]], factual: set[str]) -> None:
        """Types and sentence are those of a predicate's first use; any use may make it functional."""
        earlier: set[str] = set()  # last arguments of the atoms before
        for position, (atom, sentence) in enumerate(atoms):
            last = _last_variable(atom)
            is_conclusion = position == len(atoms) - 1
            # Of several atoms that end in the variable, the first one gives it its value.
            functional = last in factual - earlier and not is_conclusion
            earlier.add(last)
            names = [variable.name for variable in atom.arguments if isinstance(variable, Variable)]
            template = numbered_slots(sentence, names) if isinstance(sentence, str) else None
            types = tuple(variable.data_type for variable in atom.arguments if isinstance(variable, Variable))
            key = (atom.predicate, len(atom.arguments))
            predicate = self.predicates.get(key, _LinkPredicate(types, template, functional))
            self.predicates[key] = replace(predicate, functional=predicate.functional or functional)

    def _error(self, name: str, reason: str) -> HapaxError:
        return HapaxError(f"{self.file}: rule {name}: {reason}. Compare it with LINK's released rules.json.")


def _last_variable(atom: Atom) -> str:
    """The name of the last argument, "" if it is a constant."""
    last = atom.arguments[-1]
    return last.name if isinstance(last, Variable) else ""


def inexpressible_parts(rule: Rule) -> Iterator[str]:
    """The parts of a rule that LINK's form cannot express."""
    if rule.comparisons:
        yield "a comparison"
    if any(literal.negated for literal in (*rule.literals, rule.conclusion)):
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
