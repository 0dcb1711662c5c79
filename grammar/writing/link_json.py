"""LINK's `rules.json`, read and written.

A rule in such a file is two maps from an untyped atom to its sentence with `[VAR]` slots, and its variables as
`name: [name, data type, is generic, node type]`. A *factual* variable has a single right value. In Hapax this is a
property of the predicate, so the first premise predicate that ends in a factual variable is read as functional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.parsing.rule_imports import UnreadableFile
from hapax.grammar.parsing.statements import read_statements
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Variable, quoted
from hapax.grammar.writing.texts import SLOT, numbered_slots

# `is_in (A, B)`: a name, perhaps with blanks in it, and arguments without parentheses
_ATOM = re.compile(r"\s*(\w[\w ]*?)\s*\(([^()]*)\)\s*")
_ATTRIBUTES = ("domain", "principle", "polarity")

Use: TypeAlias = tuple[str, tuple[str, ...]]
"""A predicate's name and the names of an atom's variables."""


def statements_of_link_json(text: str) -> list[syntax.RawNode]:
    """The statements of a LINK file, declarations after the rules, each at the name of its rule.

    Raises UnreadableFile.
    """
    try:
        rules = json.loads(text)
    except (ValueError, RecursionError) as error:
        spot = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        remedy = "Pass a LINK rules file: an object of rules."
        raise UnreadableFile(f"not valid JSON ({error})", remedy, spot) from None
    if not isinstance(rules, dict):
        remedy = 'Pass a LINK rules file, such as {"rule0": {...}}.'
        raise UnreadableFile("not an object of rules", remedy, (1, 1))
    statements: list[syntax.RawNode] = []
    declared: dict[tuple[str, int], _Declared] = {}
    begin = 0
    for name, entry in rules.items():
        # Where the name is written with other escapes, the place is that of the rule before.
        begin = max(begin, text.find(json.dumps(name, ensure_ascii=False), begin))
        line, column = text.count("\n", 0, begin) + 1, begin - text.rfind("\n", 0, begin)
        at = (line, column, line, column + len(name) + 2)
        try:
            statements += _parsed(_rule_text(name, entry, declared, at), at, len(entry["premise_map"]))
        except (LookupError, TypeError, ValueError, AttributeError):
            reason = (
                f"rule {name} has no premise_map of atoms, one atom as conclusion_map, and variables that are each "
                "[name, data type, is generic, node type]"
            )
            raise UnreadableFile(reason, "Compare it with LINK's released rules.json.", at) from None
    for (name, _), known in declared.items():
        if known.is_functional or known.template is not None:
            kind = PredicateKind.FUNCTIONAL if known.is_functional else PredicateKind.ORACLE
            template = "" if known.template is None else f": {quoted(known.template)}"
            statements += _parsed(f"{kind} {name}({', '.join(known.types)}){template}", known.at)
    return statements


@dataclass
class _Declared:
    """A predicate: types, sentence and place are those of its first use; any use may make it functional."""

    types: list[str]
    template: str | None
    at: syntax.Spot
    is_functional: bool = False


def _rule_text(name: str, entry: dict[str, Any], declared: dict[tuple[str, int], _Declared], at: syntax.Spot) -> str:
    """The text of a rule with its attributes. Its predicates are added to those that are declared."""
    variables = {
        key: (" ".join(fields[1].split()), fields[2], fields[3:]) for key, fields in entry["variables"].items()
    }
    factual = {key for key, (_, _, kind) in variables.items() if kind[:1] == ["factual"]}
    premise, conclusion = (list(map(_use, entry[key])) for key in ("premise_map", "conclusion_map"))
    (_,) = conclusion
    written: list[str] = []
    earlier: set[str] = set()  # last arguments of the atoms before
    sentences = (*entry["premise_map"].values(), *entry["conclusion_map"].values())
    for (predicate, names), sentence in zip((*premise, *conclusion), sentences, strict=True):
        types = [variables[key][0] for key in names]
        template = numbered_slots(sentence, names) if isinstance(sentence, str) else None
        known = declared.setdefault((predicate, len(names)), _Declared(types, template, at))
        # Of several atoms that end in the variable, the first one gives it its value; a conclusion never does.
        if names[-1] in factual - earlier and len(written) < len(premise):
            known.is_functional = True
        earlier.add(names[-1])
        written.append(f"{predicate}({', '.join(f'{variables[key][0]} {key}' for key in names)})")
    generic = " ".join(key for key, (_, is_generic, _) in variables.items() if is_generic)
    attributes = {"name": quoted(name), "generic": generic or "none"}
    attributes |= {key: quoted(str(entry[key])) for key in _ATTRIBUTES if entry.get(key)}
    lines = [f"@{key} {value}" for key, value in attributes.items()]
    return "\n".join([*lines, f"{' & '.join(written[:-1])} -> {written[-1]}"])


def _use(text: str) -> Use:
    """The predicate and the variables of an atom. Raises TypeError for another text."""
    predicate, names = _ATOM.fullmatch(text).groups()  # type: ignore[union-attr]
    return " ".join(predicate.split()), tuple(name.strip() for name in names.split(","))


def _parsed(text: str, at: syntax.Spot, premises: int = 0) -> list[syntax.RawNode]:
    """The statements of a text, all at one place. Raises ValueError if a rule has another number of premises."""
    source = read_statements("", text)
    *_, last = source.lines
    if source.diagnostics or (isinstance(last, syntax.RawClause) and len(last.premise) != premises):
        raise ValueError(text)
    for node in chain.from_iterable(map(syntax.all_parts, source.lines)):
        node.at = at
    return source.lines


def to_link_json(library: Library) -> str:
    """The library's rules as a LINK file. Raises HapaxError that names the rules which LINK's form cannot express."""
    misfits: list[str] = []
    for rule in library.rules:
        misfits += [f"{rule.name} ({part})" for part in inexpressible_parts(rule)]
    if misfits:
        raise HapaxError(f"LINK's JSON cannot express: {', '.join(misfits)}. Leave these rules out.")
    entries = {rule.name: _entry(rule, library) for rule in library.rules}
    return json.dumps(entries, indent=2, ensure_ascii=False) + "\n"


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
