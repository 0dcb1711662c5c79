"""Rows of values for a whole rule, right and wrong ones: the simulated model's answer to an instruction.

It ignores wordings: if asked for less frequent terms it writes the same kind of row, as LINK found of ChatGPT and GPT-4
(section 3.2). It does not calculate, so comparisons of numbers hold by chance.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hapax.grammar.terms import Value
from hapax.llm_oracle.questions.prompts import InstructionParts
from hapax.llm_oracle.scripts.simulated_world import SentenceAtom, SimulatedWorld

ATTEMPTS = 20
"""Number of attempts to find a true row before a wrong one is written."""

Bindings = dict[str, Value]


@dataclass(frozen=True)
class SimulatedRowWriter:
    """Writes rows for one instruction. `clauses`: atoms of the premise, whose slots are written `[B]`."""

    world: SimulatedWorld
    parts: InstructionParts
    clauses: Sequence[SentenceAtom]
    temperature: float

    def lines(self, rng: random.Random, excluded: frozenset[str]) -> Iterator[str]:
        """The numbered rows with their errors: repeated rows, rows without a value, chatter."""
        settings = self.world.settings
        written: list[str] = []
        number = 0
        for _ in range(self.parts.count):
            row = self._row(rng, right=rng.random() < settings.precision)
            text = ", ".join(f"{name}={row[name]}" for name, _ in self.parts.variables)
            # A real model repeats itself now and then, excluded rows included.
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
        for _ in range(ATTEMPTS if right else 0):  # a walk may fail where another order of values succeeds
            row = self._true_row(rng)
            if row is not None:
                return row
        # Values of the right types, whatever the clauses say.
        return {name: self._ordered(data_type, rng)[0] for name, data_type in self.parts.variables}

    def _true_row(self, rng: random.Random) -> Bindings | None:
        """A row found by one walk over the variables without going back; None if it leads nowhere."""
        row: Bindings = {}
        for name, data_type in self.parts.variables:
            candidates = ({**row, name: value} for value in self._ordered(data_type, rng))
            found = next((candidate for candidate in candidates if self._holds(candidate)), None)
            if found is None:
                return None
            row = found
        return row

    def _ordered(self, data_type: str, rng: random.Random) -> list[Value]:
        """Entities of a type, or its name if it has none, with popular ones tending to come first."""
        return by_popularity(list(self.world.entities(data_type)) or [data_type], rng, self.temperature)

    def _holds(self, row: Bindings) -> bool:
        """True if every clause is true whose slots all have values."""
        return all(self._is_true(clause, row) for clause in self.clauses)

    def _is_true(self, clause: SentenceAtom, row: Bindings) -> bool:
        bound: list[Value] = []
        for slot, known in zip(clause.slots, clause.arguments, strict=True):
            value = row.get(slot[1:-1]) if slot.startswith("[") else known
            if value is None:
                return True  # not all bound yet, so nothing speaks against it
            bound.append(value)
        return self.world.holds(clause.signature.indicator, bound) != clause.denied


def by_popularity(values: list[Value], rng: random.Random, temperature: float) -> list[Value]:
    """A random order of values ranked by popularity. Popular ones tend to come first, less so at high temperature."""
    # Gumbel noise on the log-probability of the rank: sorting by it samples without replacement.
    noise = {value: -temperature * math.log(-math.log(rng.random() or 0.5)) for value in values}
    ranked = sorted(enumerate(values), key=lambda ranked: math.log(ranked[0] + 1) - noise[ranked[1]])
    return [value for _, value in ranked]


def typed_readings(
    clauses: Iterable[Sequence[SentenceAtom]], parts: InstructionParts, world: SimulatedWorld
) -> list[SentenceAtom]:
    """The first reading of each clause whose positions allow the variables' types. A clause without one is left out."""
    types = {f"[{name}]": data_type for name, data_type in parts.variables}

    def suits(reading: SentenceAtom) -> bool:
        for slot, place_type in zip(reading.slots, reading.signature.argument_types, strict=True):
            data_type = types.get(slot, place_type)
            if not (world.library.is_subtype(data_type, place_type) or world.library.is_subtype(place_type, data_type)):
                return False
        return True

    found: list[SentenceAtom] = []
    for readings in clauses:
        found += [reading for reading in readings if suits(reading)][:1]
    return found
