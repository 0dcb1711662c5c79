"""What a simulated model answers to an instruction: rows of values for a whole rule, right and wrong ones.

It is deaf to wordings: asked for less frequent terms it writes the same kind of row, as LINK found of ChatGPT and GPT-4
(section 3.2). It does not calculate, so comparisons of numbers hold by chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grammar.terms import Value

if TYPE_CHECKING:
    from llm_oracle.prompts import InstructionParts
    from llm_oracle.simulated import SimulatedWorld, _Reading

ATTEMPTS = 20
"""To find a true row, before one is written that is wrong."""

Order = Callable[[list[Value], random.Random], list[Value]]
"""Values with those first that come to mind first."""

Bindings = dict[str, Value]


@dataclass(frozen=True)
class RowWriter:
    """Writes rows for one instruction. `clauses`: what the premise demands, as atoms whose slots are `[B]`."""

    world: SimulatedWorld
    parts: InstructionParts
    clauses: Sequence[_Reading]
    order: Order

    def lines(self, rng: random.Random, excluded: frozenset[str]) -> Iterator[str]:
        """The numbered rows with their noise: rows that come twice, rows that lack a value, chatter."""
        settings = self.world.settings
        written: list[str] = []
        number = 0
        for _ in range(self.parts.count):
            row = self._row(rng, right=rng.random() < settings.precision)
            text = ", ".join(f"{name}={row[name]}" for name, _ in self.parts.variables)
            if (text.casefold() in excluded or text in written) and rng.random() >= settings.duplicates:
                continue
            written.append(text)
            lines = [text]
            if rng.random() < settings.malformed:
                lines.append(rng.choice([text.partition(", ")[0], text.replace("=", " is "), "and so on."]))
            for line in lines:
                number += 1
                yield f"{number}. {line}"

    def _row(self, rng: random.Random, right: bool) -> Bindings:
        for _ in range(ATTEMPTS if right else 0):
            row = self._true_row(rng)
            if row is not None:
                return row
        return {name: self.order(self._entities(data_type), rng)[0] for name, data_type in self.parts.variables}

    def _true_row(self, rng: random.Random) -> Bindings | None:
        row: Bindings = {}
        for name, data_type in self.parts.variables:
            values = self.order(self._entities(data_type), rng)
            found = next((value for value in values if self._holds({**row, name: value})), None)
            if found is None:
                return None
            row[name] = found
        return row

    def _entities(self, data_type: str) -> list[Value]:
        return list(self.world.entities(data_type)) or [data_type]

    def _holds(self, row: Bindings) -> bool:
        """Whether every clause is true whose slots all have values."""
        return all(self._is_true(clause, row) for clause in self.clauses)

    def _is_true(self, clause: _Reading, row: Bindings) -> bool:
        slots = [slot[1:-1] if slot.startswith("[") else None for slot in clause.slots]
        values = [known if slot is None else row.get(slot) for slot, known in zip(slots, clause.arguments, strict=True)]
        bound = [value for value in values if value is not None]
        if len(bound) < len(values):
            return True
        return self.world.holds(clause.signature.indicator, bound) != clause.denied


def typed_readings(
    clauses: Iterable[Sequence[_Reading]], parts: InstructionParts, world: SimulatedWorld
) -> list[_Reading]:
    """Of each clause's readings the first whose places can have the variables' types; a clause without is left out."""
    types = {f"[{name}]": data_type for name, data_type in parts.variables}

    def suits(reading: _Reading) -> bool:
        places = zip(reading.slots, reading.signature.argument_types, strict=True)
        pairs = [(types[slot], place) for slot, place in places if slot in types]
        return all(world.library.is_subtype(*pair) or world.library.is_subtype(*reversed(pair)) for pair in pairs)

    found = (next(filter(suits, readings), None) for readings in clauses)
    return [one for one in found if one is not None]
