"""LINK's `rules.json`: read and written.

A rule there is two maps from an untyped atom to its sentence with `[VAR]` slots, and its variables as
`name: [name, data type, is generic, node type]`. A *factual* variable has one right value: here that is a property of
the predicate, so the first premise predicate that ends in such a variable is read as functional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from grammar.assemble import SLOT, numbered_slots
from grammar.errors import HapaxError
from grammar.printing import rule_text
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Atom, Literal, Variable, quoted

_ATOM = re.compile(r"\s*(\w[\w ]*?)\s*\(([^()]*)\)\s*")
_WORDS = re.compile(r"\w[\w'’-]*(?: +\w[\w'’-]*)*")
_ATTRIBUTES = ("domain", "principle", "polarity")


def from_link_json(text: str, file: str) -> Library:
    """The library of a LINK file. Raises HapaxError for another form, RulesRejected for faults in its rules."""
    from grammar.parser import parse_library  # the parser reads JSON files through this module

    return parse_library([(file, rule_text_of_link_json(text, file))])


def rule_text_of_link_json(text: str, file: str) -> str:
    """A LINK file as rule text: declarations with templates, then the rules."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise HapaxError(f"{file}: no JSON ({fault}). Give a LINK rules file: an object of rules.") from None
    if not isinstance(entries, dict):
        raise HapaxError(f'{file}: not an object of rules. Give a LINK rules file, such as {{"rule0": {{...}}}}.')
    reading = _Reading(file)
    rules = [reading.rule(name, entry) for name, entry in entries.items()]
    return "\n".join([*reading.declarations(), *rules]) + "\n"


def to_link_json(library: Library) -> str:
    """The library's rules as a LINK file. Raises HapaxError naming the rules that LINK's form cannot hold."""
    misfits = [f"{rule.name} ({reason})" for rule in library.rules for reason in unfit(rule)]
    if misfits:
        raise HapaxError(f"LINK's JSON cannot hold: {', '.join(misfits)}. Leave these rules out.")
    entries = {rule.name: _entry(rule, library) for rule in library.rules}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class _Predicate:
    """What the maps say about a predicate: its types, its sentence, and whether its last argument is factual."""

    types: tuple[str, ...]
    template: str | None
    functional: bool


@dataclass(slots=True)
class _Reading:
    file: str
    predicates: dict[tuple[str, int], _Predicate] = field(default_factory=dict)

    def rule(self, name: str, entry: Any) -> str:
        """The rule as text; its predicates are remembered for their declarations."""
        variables = self._variables(name, entry)
        premise = self._atoms(name, entry, "premise_map", variables)
        conclusions = self._atoms(name, entry, "conclusion_map", variables)
        if len(conclusions) != 1 or not premise:
            raise self._fault(name, "it needs a premise and exactly one conclusion")
        factual = {one for one, words in variables.items() if len(words) > 3 and words[3] == "factual"}
        self._remember([*premise, *conclusions], factual)
        generic = [one for one, words in variables.items() if words[2]]
        lines = [f"@name {quoted(name)}", f"@generic {' '.join(generic) or 'none'}"]
        lines += [f"@{key} {quoted(str(entry[key]))}" for key in _ATTRIBUTES if entry.get(key)]
        return "\n".join([*lines, f"{' & '.join(str(atom) for atom, _ in premise)} -> {conclusions[0][0]}"])

    def declarations(self) -> Iterator[str]:
        for (name, _), predicate in self.predicates.items():
            if predicate.template is not None or predicate.functional:
                kind = PredicateKind.FUNCTIONAL if predicate.functional else PredicateKind.ORACLE
                template = f": {quoted(predicate.template)}" if predicate.template is not None else ""
                yield f"{kind} {name}({', '.join(predicate.types)}){template}"

    def _variables(self, name: str, entry: Any) -> dict[str, list[Any]]:
        variables = entry.get("variables") if isinstance(entry, dict) else None
        if not isinstance(variables, dict):
            raise self._fault(name, 'it has no "variables"')
        for key, words in variables.items():
            if not isinstance(words, list) or len(words) < 3 or not isinstance(words[1], str):
                raise self._fault(name, f"variable {key} is not [name, data type, is generic, node type]")
            if not re.fullmatch(r"[A-Z]\d*", key) or not _WORDS.fullmatch(words[1].strip()):
                raise self._fault(name, f"variable {key!r} of type {words[1]!r} cannot be named so")
        return variables

    def _atoms(
        self, name: str, entry: dict[str, Any], key: str, variables: dict[str, list[Any]]
    ) -> list[tuple[Atom, str | None]]:
        found = entry.get(key)
        if not isinstance(found, dict):
            raise self._fault(name, f'it has no "{key}"')
        return [(self._atom(name, text, variables), sentence) for text, sentence in found.items()]

    def _atom(self, name: str, text: str, variables: dict[str, list[Any]]) -> Atom:
        match = _ATOM.fullmatch(text)
        names = [one.strip() for one in match[2].split(",")] if match else []
        if match is None or not all(one in variables for one in names):
            raise self._fault(name, f"{text!r} is no atom over its variables")
        return Atom(match[1], tuple(Variable(one, " ".join(variables[one][1].split())) for one in names))

    def _remember(self, atoms: list[tuple[Atom, str | None]], factual: set[str]) -> None:
        """The first rule that uses a predicate says its types and sentence; any rule may make it functional."""
        for position, (atom, sentence) in enumerate(atoms):
            names = [one.name for one in atom.arguments if isinstance(one, Variable)]
            last = atom.arguments[-1]
            earlier = {one for before, _ in atoms[:position] for one in map(_last_name, [before])}
            functional = isinstance(last, Variable) and last.name in factual - earlier and position < len(atoms) - 1
            key = (atom.predicate, len(atom.arguments))
            template = numbered_slots(sentence, names) if isinstance(sentence, str) else None
            types = tuple(one.data_type for one in atom.arguments if isinstance(one, Variable))
            old = self.predicates.get(key, _Predicate(types, template, functional))
            self.predicates[key] = _Predicate(old.types, old.template, old.functional or functional)

    def _fault(self, name: str, reason: str) -> HapaxError:
        return HapaxError(f"{self.file}: rule {name}: {reason}. Compare LINK's released rules.json.")


def _last_name(atom: Atom) -> str:
    last = atom.arguments[-1]
    return last.name if isinstance(last, Variable) else ""


def unfit(rule: Rule) -> Iterator[str]:
    """What a rule has that LINK's form cannot hold."""
    if rule.comparisons:
        yield "a comparison"
    if any(literal.negated for literal in (*rule.literals, rule.conclusion)):
        yield "a negation"
    if any(not isinstance(term, Variable) for atom in rule.atoms for term in atom.arguments):
        yield "a constant"
    if len({_untyped(atom) for atom in rule.atoms[:-1]}) < len(rule.atoms) - 1:
        yield "the same atom twice"
    types: dict[str, set[str]] = {}
    for atom in rule.atoms:
        for variable in atom.variables:
            types.setdefault(variable.name, set()).add(variable.data_type)
    if any(len(found) > 1 for found in types.values()):
        yield "a variable with two types"


def _entry(rule: Rule, library: Library) -> dict[str, Any]:
    factual = {_last_name(literal.atom) for literal in rule.literals if _is_functional(literal, library)}
    entry: dict[str, Any] = {
        "premise_map": {_untyped(literal.atom): _sentence(literal.atom, library) for literal in rule.literals},
        "conclusion_map": {_untyped(rule.conclusion.atom): _sentence(rule.conclusion.atom, library)},
        "variables": {
            one.name: [one.name, one.data_type, one.name in rule.generic, "factual" if one.name in factual else None]
            for one in rule.variables
        },
    }
    written = rule_text(rule)  # only what a reader would not infer
    for key in _ATTRIBUTES:
        if f"@{key} " in written:
            entry[key] = str(getattr(rule, key))
    return entry


def _is_functional(literal: Literal, library: Library) -> bool:
    indicator = literal.atom.indicator
    return library.knows(indicator) and library.signature(indicator).kind is PredicateKind.FUNCTIONAL


def _untyped(atom: Atom) -> str:
    return f"{atom.predicate}({', '.join(one.name for one in atom.arguments if isinstance(one, Variable))})"


def _sentence(atom: Atom, library: Library) -> str | None:
    """The template with the atom's variable names in its slots."""
    signature = library.signature(atom.indicator) if library.knows(atom.indicator) else None
    if signature is None or signature.templates is None:
        return None
    names = {
        str(position): term.name for position, term in enumerate(atom.arguments, start=1) if isinstance(term, Variable)
    }
    return SLOT.sub(lambda slot: f"[{names.get(slot[1], slot[1])}]", signature.templates.affirmative)
