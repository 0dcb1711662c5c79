"""LINK's `rules.json`, read and written.

A rule in such a file is two maps from an untyped atom to its sentence with `[VAR]` slots, and its variables as
`name: [name, data type, is generic, node type]`. A *factual* variable has a single right value. In Hapax this is a
property of the predicate, so the first premise predicate that ends in a factual variable is read as functional.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.parsing.rule_imports import UnreadableFile
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Variable, quoted
from hapax.grammar.writing.texts import SLOT, is_variable_name, numbered_slots

# `is_in (A, B)`: a name, perhaps with blanks in it, and arguments without parentheses
_ATOM = re.compile(r"\s*(\w[\w ]*?)\s*\(([^()]*)\)\s*")
# what rule.lark calls a WORD, but for `not`, which is a sign
_WORD = re.compile(r"(?!not$)(?:\d*[^\W\d][^\W\d_]\w*(?:['’-][^\W\d]\w*)+|\d*[^\W\d]\w*)")
_ATTRIBUTES = ("domain", "principle", "polarity")


def statements_of_link_json(text: str) -> list[syntax.RawNode]:
    """The statements of a LINK file, declarations after the rules, each at the key that it stands for.

    Raises UnreadableFile.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        spot = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        remedy = "Pass a LINK rules file: an object of rules."
        raise UnreadableFile(f"not valid JSON ({error})", remedy, spot) from None
    if not isinstance(entries, dict):
        remedy = 'Pass a LINK rules file, such as {"rule0": {...}}.'
        raise UnreadableFile("not an object of rules", remedy, (1, 1))
    reader = _LinkFileReader(text)
    for name, entry in entries.items():
        reader.read_rule(name, entry)
    return [*reader.statements, *reader.declarations.values()]


def to_link_json(library: Library) -> str:
    """The library's rules as a LINK file. Raises HapaxError that names the rules which LINK's form cannot express."""
    misfits: list[str] = []
    for rule in library.rules:
        misfits += [f"{rule.name} ({part})" for part in inexpressible_parts(rule)]
    if misfits:
        raise HapaxError(f"LINK's JSON cannot express: {', '.join(misfits)}. Leave these rules out.")
    entries = {rule.name: _entry(rule, library) for rule in library.rules}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


class _LinkFileReader:
    """Reads the rules of one file, and collects the declarations of their predicates."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.statements: list[syntax.RawNode] = []
        self.declarations: dict[tuple[str, int], syntax.RawDeclaration] = {}
        """By name and number of arguments; others need none: a search asks a model for them, and rules name types."""
        self.sentences: dict[tuple[str, int], str | None] = {}
        """The sentence of a predicate's first use."""
        self.begin = 0
        """Offset of the rule that is read."""

    def read_rule(self, name: str, entry: Any) -> None:
        """Add the statements of a rule."""
        at = self._spot(name)
        self.begin = self.line_starts[at[0] - 1] + at[1] - 1
        variables = self._variables(name, entry)
        premise = self._atoms(name, entry, "premise_map", variables)
        conclusions = self._atoms(name, entry, "conclusion_map", variables)
        if len(conclusions) != 1 or not premise:
            raise self._error(name, "it needs a premise and exactly one conclusion")
        generic = [key for key, fields in variables.items() if fields[2]]
        attributes = {"name": quoted(name), "generic": " ".join(generic) or "none"}
        attributes |= {key: quoted(str(entry[key])) for key in _ATTRIBUTES if entry.get(key)}
        for key, value in attributes.items():
            self.statements.append(syntax.RawLine(f"@{key}", (value,), at=at))
        whole = premise[0].at[:2] + conclusions[0].at[2:]
        self.statements.append(syntax.RawClause((syntax.RawHead(conclusions[0]),), tuple(premise), at=whole))
        self._declare(
            [*premise, *conclusions], {key for key, fields in variables.items() if fields[3:4] == ["factual"]}
        )

    def _variables(self, name: str, entry: Any) -> dict[str, list[Any]]:
        variables = entry.get("variables") if isinstance(entry, dict) else None
        if not isinstance(variables, dict):
            raise self._error(name, 'it has no "variables"')
        for key, fields in variables.items():
            if not isinstance(fields, list) or len(fields) < 3 or not isinstance(fields[1], str):
                raise self._error(name, f"variable {key} is not [name, data type, is generic, node type]", key)
            words = fields[1].split()
            if not is_variable_name(key) or not words or not all(map(_WORD.fullmatch, words)):
                reason = (
                    f"variable {key!r} of type {fields[1]!r} has no valid name: a variable is a capital letter and "
                    "perhaps digits, and a type is words"
                )
                raise self._error(name, reason, key)
        return variables

    def _atoms(
        self, name: str, entry: dict[str, Any], key: str, variables: dict[str, list[Any]]
    ) -> list[syntax.RawAtom]:
        """The atoms of a map. The sentence of a predicate's first use is kept."""
        sentences = entry.get(key)
        if not isinstance(sentences, dict):
            raise self._error(name, f'it has no "{key}"')
        atoms = []
        for text, sentence in sentences.items():
            match = _ATOM.fullmatch(text)
            names = [argument.strip() for argument in match[2].split(",")] if match else []
            words = match[1].split() if match else []
            if match is None or not set(names) <= variables.keys() or not all(map(_WORD.fullmatch, words)):
                raise self._error(name, f"{text!r} is not an atom over its variables", text)
            at = self._spot(text)
            arguments = (syntax.RawWords((*variables[name][1].split(), name), at=at) for name in names)
            atoms.append(syntax.RawAtom(syntax.RawWords(tuple(words), at=at), tuple(arguments), at=at))
            template = numbered_slots(sentence, names) if isinstance(sentence, str) else None
            self.sentences.setdefault((match[1], len(names)), template)
        return atoms

    def _declare(self, atoms: list[syntax.RawAtom], factual: set[str]) -> None:
        """Types and sentence are those of a predicate's first use; any use may make it functional."""
        earlier: set[str] = set()  # last arguments of the atoms before
        for atom in atoms:
            words = [argument.words for argument in atom.arguments if isinstance(argument, syntax.RawWords)]
            last = words[-1][-1]
            # Of several atoms that end in the variable, the first one gives it its value; a conclusion never does.
            functional = last in factual - earlier and atom is not atoms[-1]
            earlier.add(last)
            key = (" ".join(atom.name.words), len(atom.arguments))
            types = tuple(syntax.RawWords(part[:-1], at=atom.at) for part in words)
            template = self.sentences[key]
            templates = None if template is None else (syntax.RawValue(quoted(template), at=atom.at),)
            if functional or templates:
                formal = syntax.RawAtom(atom.name, types, at=atom.at)
                new = syntax.RawDeclaration(PredicateKind.ORACLE, formal, templates=templates, at=atom.at)
                declaration = self.declarations.setdefault(key, new)
                if functional:
                    declaration.keyword = PredicateKind.FUNCTIONAL

    def _spot(self, key: str) -> syntax.Spot:
        """The range of a key after the start of the rule; where it has other escapes, the start of the rule."""
        written = (json.dumps(key, ensure_ascii=is_ascii) for is_ascii in (False, True))
        start, text = next(((at, text) for text in written if (at := self.text.find(text, self.begin)) >= 0), (-1, ""))
        start = self.begin if start < 0 else start
        line = bisect_right(self.line_starts, start)
        column = start - self.line_starts[line - 1] + 1
        return line, column, line, column + len(text)

    def _error(self, name: str, reason: str, key: str | None = None) -> UnreadableFile:
        """The error of a rule, at a key of its entry or at its name."""
        remedy = "Compare it with LINK's released rules.json."
        return UnreadableFile(f"rule {name}: {reason}", remedy, self._spot(name if key is None else key))


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
    if len({atom.untyped for atom in premise}) < len(premise):
        yield "the same atom twice"
    variables = {term for term in arguments if isinstance(term, Variable)}
    if len({variable.name for variable in variables}) < len(variables):
        yield "a variable with two types"


def _entry(rule: Rule, library: Library) -> dict[str, Any]:
    functional = (item for item in rule.literals if library.kind(item.atom.indicator) is PredicateKind.FUNCTIONAL)
    factual = {literal.atom.arguments[-1] for literal in functional}
    entry: dict[str, Any] = {
        "premise_map": {literal.atom.untyped: _sentence(literal.atom, library) for literal in rule.literals},
        "conclusion_map": {rule.conclusion.atom.untyped: _sentence(rule.conclusion.atom, library)},
        "variables": {
            item.name: [item.name, item.data_type, item.name in rule.generic, "factual" if item in factual else None]
            for item in rule.variables
        },
    }
    # Only the attributes that a reader would not infer, so that LINK's own file comes back unchanged.
    written = str(rule)
    for key in _ATTRIBUTES:
        if f"@{key} " in written:
            entry[key] = str(getattr(rule, key))
    return entry


def _sentence(atom: Atom, library: Library) -> str | None:
    """The affirmative template with the atom's variable names in its slots."""
    signature = library.signature(atom.indicator) if library.knows(atom.indicator) else None
    if signature is None or signature.templates is None:
        return None
    names = {
        str(position): term.name for position, term in enumerate(atom.arguments, start=1) if isinstance(term, Variable)
    }
    return SLOT.sub(lambda slot: f"[{names.get(slot[1], slot[1])}]", signature.templates.affirmative)
