"""The forms of closed, connected rules: a head and up to three premises without their predicates.

A premise is an edge between two variables, or a label of one: a predicate of one argument, or of two with a constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, combinations_with_replacement, permutations
from typing import TypeAlias

MOST_PREMISES = 3

PremiseForm: TypeAlias = tuple[int, ...]
"""The variables of a premise: two of an edge, the lower number first; one of a label. Those of the head come first."""


@dataclass(frozen=True, slots=True)
class RuleShape:
    """A head of one or two variables, and the premises."""

    head: int
    premises: tuple[PremiseForm, ...]

    @property
    def variables(self) -> int:
        """The number of variables."""
        return max(self.head, 1 + max(map(max, self.premises)))

    @property
    def has_labels(self) -> bool:
        return self.head == 1 or any(len(premise) == 1 for premise in self.premises)

    def __str__(self) -> str:
        """`h(X, Y) <- p(X, Z) & q(Y, Z)`, without directions."""
        # The head's variables are X and Y, the inner ones begin with Z.
        names = "XYZW"[: self.head] + "ZWVU"
        parts = []
        for premise in self.premises:
            variables = ", ".join(names[variable] for variable in premise)
            parts.append(f"p({variables})")
        return f"h({', '.join(names[: self.head])}) <- {' & '.join(parts)}"


@lru_cache
def shapes(premises: int) -> tuple[RuleShape, ...]:
    """All shapes with this number of premises; those with edges alone come first.

    They are closed (each variable occurs twice), and their premises are connected without the head. Two shapes never
    differ only in the names of their variables.
    """
    found: dict[RuleShape, None] = {}
    for head in (2, 1):
        # A variable that is not in the head occurs twice in the premises.
        most = head + premises
        all_forms: list[PremiseForm] = [*combinations(range(most), 2), *combinations(range(most), 1)]
        for chosen in combinations_with_replacement(all_forms, premises):
            if _is_closed(head, chosen) and _is_connected(head, chosen):
                found.setdefault(RuleShape(head, _canonical(head, chosen)))
    return tuple(sorted(found, key=lambda shape: (shape.has_labels, -shape.head, shape.premises)))


def _is_closed(head: int, premises: Sequence[PremiseForm]) -> bool:
    counts = Counter(chain.from_iterable(premises))
    counts.update(range(head))
    used = max(counts) + 1
    return len(counts) == used and all(count > 1 for count in counts.values())


def _is_connected(head: int, premises: Sequence[PremiseForm]) -> bool:
    reached, waiting = set(premises[0]), list(premises[1:])
    while near := next((premise for premise in waiting if reached & set(premise)), None):
        reached |= set(near)
        waiting.remove(near)
    return not waiting and set(range(head)) <= reached


def _canonical(head: int, premises: Sequence[PremiseForm]) -> tuple[PremiseForm, ...]:
    """The premises with their inner variables named so that equal shapes have equal premises."""
    inner = sorted(set(chain.from_iterable(premises)) - set(range(head)))
    ways: list[tuple[PremiseForm, ...]] = []
    for order in permutations(inner):
        names = dict(zip(inner, order, strict=True))
        renamed = []
        for premise in premises:
            renamed.append(tuple(sorted(names.get(variable, variable) for variable in premise)))
        ways.append(tuple(sorted(renamed, key=lambda premise: (-len(premise), premise))))
    return min(ways)


def ways_to_match(shape: RuleShape) -> Iterator[tuple[int, ...]]:
    """Orders of the premises in which each has a variable that the head or an earlier premise binds.

    Premises whose variables are all bound come at once. So the orders differ in how they reach inner variables.
    """

    def continued(order: tuple[int, ...], bound: frozenset[int]) -> Iterator[tuple[int, ...]]:
        waiting = [place for place in range(len(shape.premises)) if place not in order]
        if not waiting:
            yield order
            return
        # An edge filters more than a label.
        closing = [place for place in waiting if bound.issuperset(shape.premises[place])]
        for place in closing[:1] or waiting:
            if bound & set(shape.premises[place]):
                yield from continued((*order, place), bound | set(shape.premises[place]))

    yield from continued((), frozenset(range(shape.head)))
