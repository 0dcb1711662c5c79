"""Rules that may have enough support: shapes with the codes of their predicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hapax.engine.mining.shapes import RuleShape
from hapax.engine.mining.tables import NOTHING, MiningTables

CONSTANT = -1
"""The variable of a label's second node, which is a constant."""

MOST_CONSTANTS = (0, 2, 2, 1)
"""Most constants of a rule by the number of its premises: with more there are too many rules to look at."""


class MinedAtom(NamedTuple):
    """An edge from one variable to another, or to a constant: then `second` is CONSTANT, and `node` the constant."""

    code: int
    first: int
    second: int
    node: int = NOTHING


@dataclass(frozen=True, slots=True)
class RuleCandidate:
    """A rule that may have enough support."""

    head: MinedAtom
    premises: tuple[MinedAtom, ...]

    @property
    def variables(self) -> int:
        atoms = (self.head, *self.premises)
        return 1 + max(max(atom.first, atom.second) for atom in atoms)


def candidate(head: MinedAtom, premises: Sequence[MinedAtom], tables: MiningTables) -> RuleCandidate | None:
    """The rule of these atoms in one spelling; None if its types clash or it says nothing.

    It says nothing if a premise is the conclusion, mirrored under a symmetric predicate as well, or if two premises
    are one. Rules with more constants than MOST_CONSTANTS are not mined.
    """
    constants = sum(atom.second == CONSTANT and atom.node != NOTHING for atom in (head, *premises))
    if constants > MOST_CONSTANTS[len(premises)]:
        return None
    # One spelling of a rule, whatever the order of its premises.
    spelled = tuple(sorted(_spelled(atom, tables) for atom in premises))
    if len(set(spelled)) < len(spelled) or _spelled(head, tables) in spelled:
        return None
    made = RuleCandidate(head, spelled)
    return made if all(variable_type(made, number, tables)[0] for number in range(made.variables)) else None


def _spelled(atom: MinedAtom, tables: MiningTables) -> MinedAtom:
    """The atom under its predicate's own code if it has two variables, and with the lower code if it is symmetric."""
    # The even code of a pair is the predicate's own, the odd one that of its mirrored edges.
    symmetric = tables.predicates[atom.code & ~1].symmetric
    if atom.second == CONSTANT:
        return atom._replace(code=atom.code & ~1) if symmetric else atom
    first, second = sorted((atom.first, atom.second))
    if symmetric:
        return MinedAtom(atom.code & ~1, first, second)
    return MinedAtom(atom.code if atom.first == first else atom.code ^ 1, first, second)


def variable_type(rule: RuleCandidate, variable: int, tables: MiningTables) -> tuple[bool, str | None]:
    """Tell if the places of a variable have types that fit, and the type: None if that of no place is known."""
    types: list[str] = []
    for atom in (rule.head, *rule.premises):
        for place, name in enumerate((atom.first, atom.second)):
            data_type = tables.type_at(atom.code, bool(place)) if name == variable else None
            if data_type is not None:
                types.append(data_type)
    if not types:
        return True, None
    common = tables.library.most_specific(tuple(types))
    return common is not None, common


def is_not_conclusion(
    atom: tuple[int | str, str, str], conclusion: tuple[int, str, str], symmetric: bool = False
) -> str:
    """SQL that is true unless an edge (code, first and second node, as SQL) is the conclusion itself.

    An instance whose premise contains its conclusion supports nothing.
    """
    code, first, second = atom
    head, subject, value = conclusion
    # The conclusion as an edge, and mirrored.
    ways = [(head, subject, value), (head ^ 1, value, subject)]
    if symmetric:
        ways += [(head, value, subject), (head ^ 1, subject, value)]
    parts = []
    for head_code, head_first, head_second in ways:
        if isinstance(code, int) and code != head_code:
            continue
        same = [] if isinstance(code, int) else [f"{code} = {head_code}"]
        same += [f"{left} = {right}" for left, right in ((first, head_first), (second, head_second)) if left != right]
        parts.append(f"NOT ({' AND '.join(same) or 'true'})")
    return " AND ".join(dict.fromkeys(parts)) or "true"


def shape_atoms(shape: RuleShape, codes: Sequence[int], labels: dict[int, tuple[int, int]]) -> tuple[MinedAtom, ...]:
    """The premises of a shape with these codes of edges, or numbers of labels."""
    atoms = []
    for premise, code in zip(shape.premises, codes, strict=True):
        if len(premise) == 1:
            label, node = labels[code]
            atoms.append(MinedAtom(label, premise[0], CONSTANT, node))
        else:
            atoms.append(MinedAtom(code, *premise))
    return tuple(atoms)
