"""Knowledge model, critic and likelihood of a simulated world, with calibrated errors.

`SimulatedModel` gets the same prompts as any other model. It reads them back by the frame of `prompts.py` and the
templates of the world's rule library.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateSignature
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.writing.verbalize import atom_text
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
from hapax.llm_oracle.protocols import (
    ClaimText,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Usage,
)
from hapax.llm_oracle.questions.prompts import InstructionParts, read_instruction, read_prompt, stated_claim
from hapax.llm_oracle.scripts.simulated_rows import SimulatedRowWriter, by_popularity, typed_readings
from hapax.llm_oracle.scripts.simulated_world import SentenceAtom, SimulatedWorld, SimulationSettings

MOST_CLAUSES = 20
"""Number of atoms of a prompt that are read."""

ANSWERS_KEPT = 10_000
"""Number of questions whose right values are remembered: a search asks a whole round before it repeats a question."""

_ATOM = re.compile(r"(?P<predicate>\w+)\((?P<arguments>.*)\)", re.DOTALL)
"""An atom in a prompt that asks in the form of predicates."""
_VARIABLE = re.compile(r"[A-Z][0-9]{0,3}")


class SimulatedModel:
    """Knowledge model, critic and likelihood of a simulated world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.identity = ModelIdentity("simulated", f"seed {world.seed}, world {world.fingerprint}")
        self._answers = lru_cache(ANSWERS_KEPT)(self._right_values)

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        """Numbered lists with wrong values, repeated lines and malformed lines, but without excluded values."""
        return [self._generation(request, parameters) for request in requests]

    reads_origins = True

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [CriticScore(self._probability(claim), Usage(len(claim.split()), 1)) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """One token per word, as if a begin token preceded the first. Rarer names are less likely."""
        scores: list[LogLikelihood] = []
        for text in texts:
            words = [word.strip(".,'\"") for word in text.casefold().split()]
            # 0.1 for all other words: they are common, and the same in all texts of a rule.
            logarithms = [math.log(self.world.popularity(word) or 0.1) for word in words]
            scores.append(LogLikelihood(math.fsum(logarithms), len(words)))
        return scores

    def values(self, prompt: str) -> tuple[list[Value], list[Value]]:
        """The right and the wrong values for a prompt, most popular first."""
        parts = read_prompt(prompt)
        if parts is None:
            return [], []
        slot = f"[{parts.variable}]"
        right = self._answers(self._in_words(parts.sentence, parts.variable), slot, parts.data_type)
        wrong = set(self.world.entities(parts.data_type)).difference(right)
        return list(right), [value for value in self.world.entities(parts.data_type) if value in wrong]

    def _in_words(self, asked: str, variable: str) -> str:
        """Atoms such as `is_ingredient_in(butter, B) & ...` as a sentence; a sentence stays as it is."""
        sentences = []
        for text in asked.split(" & "):
            match = _ATOM.fullmatch(text)
            arguments = match["arguments"].split(", ") if match else []
            indicator = f"{match['predicate']}/{len(arguments)}" if match else ""
            if match is None or not self.world.library.knows(indicator):
                return asked
            # Variables without a value stand there by their names alone.
            slots = (
                f"[{argument}]" if argument == variable or _VARIABLE.fullmatch(argument) else argument
                for argument in arguments
            )
            atom = Atom(match["predicate"], tuple(Constant(slot) for slot in slots))
            sentences.append(atom_text(atom, self.world.library))
        return " and ".join(sentences)

    def _right_values(self, sentence: str, slot: str, data_type: str) -> tuple[Value, ...]:
        """Values of the slot that make the whole sentence true; none if no clause of it can be read."""
        questions: list[SentenceAtom] = []
        for clause in _clauses(sentence, self.world):
            question = self._question(clause, slot, data_type)
            if question is not None:
                questions.append(question)
        values = list(self.world.entities(data_type)) if questions else []
        for question in questions:
            values = [value for value in values if self._is_true(question, slot, value)]
        return tuple(values)

    def _question(self, clause: str, slot: str, data_type: str) -> SentenceAtom | None:
        """The reading whose slot has the requested type and whose other arguments fit; else any with the slot."""
        library = self.world.library
        readings = [
            reading for reading in self.world.read(clause) if slot in reading.slots and self.world.fits(reading)
        ]
        for reading in readings:
            place_type = reading.signature.argument_types[reading.slots.index(slot)]
            if library.is_subtype(data_type, place_type) or library.is_subtype(place_type, data_type):
                return reading
        return readings[0] if readings else None

    def _is_true(self, question: SentenceAtom, slot: str, value: Value) -> bool:
        filled = [
            value if text == slot else known for text, known in zip(question.slots, question.arguments, strict=True)
        ]
        return self._truth(question.signature, filled)

    def _truth(self, signature: PredicateSignature, arguments: Sequence[Value | None]) -> bool:
        """An atom with placeholders is true of all values of the right types."""
        known = [value for value in arguments if value is not None]
        if len(known) == len(arguments):
            return self.world.holds(signature.indicator, known)
        return self.world.are_typed(signature, arguments)

    def _rows(
        self, instruction: InstructionParts, request: GenerationRequest, parameters: GenerationParameters
    ) -> Generation:
        """Rows of values for a whole rule."""
        world = self.world
        premise = instruction.sentence.removeprefix("If ").partition(", then ")[0]
        readings: list[list[SentenceAtom]] = []
        for clause in _clauses(premise, world):
            readings.append([reading for reading in world.read(clause) if world.fits(reading)])
        excluded = frozenset(value.casefold() for value in request.excluded_values)
        writer = SimulatedRowWriter(
            world, instruction, typed_readings(readings, instruction, world), parameters.temperature
        )
        lines = list(writer.lines(self._random(request, parameters, excluded), excluded))
        usage = Usage(len(request.prompt.split()), sum(len(line.split()) for line in lines))
        return Generation("\n".join(lines), usage=usage)

    def _random(
        self, request: GenerationRequest, parameters: GenerationParameters, excluded: frozenset[str]
    ) -> random.Random:
        """A random stream that depends on the seeds and the request, so that batches do not change answers."""
        # Sorted, because the order of a set of texts differs from process to process.
        seed = f"{self.world.seed} {parameters.seed} {request.sample_index} {sorted(excluded)} {request.prompt}"
        return random.Random(seed)  # noqa: S311  # reproducible, not secret

    def _generation(self, request: GenerationRequest, parameters: GenerationParameters) -> Generation:
        instruction = read_instruction(request.prompt)
        if instruction is not None:
            return self._rows(instruction, request, parameters)
        settings = self.world.settings
        parts = read_prompt(request.prompt)
        count = parts.count if parts else 0
        excluded = frozenset(value.casefold() for value in request.excluded_values)
        rng = self._random(request, parameters, excluded)

        def in_order(values: list[Value]) -> list[Value]:
            allowed = [value for value in values if str(value).casefold() not in excluded]
            return by_popularity(allowed, rng, parameters.temperature)

        right, wrong = self.values(request.prompt)
        # Forgotten facts depend on prompt and value alone: asking again does not bring them back.
        known = [value for value in right if self.world.chance("known", request.prompt, value) < settings.recall]
        right, wrong = in_order(known), in_order(wrong)
        items: list[Value] = []
        while len(items) < count and right:
            is_right = rng.random() < settings.precision or not wrong
            items.append((right if is_right else wrong).pop(0))
        text = "\n".join(_lines(items, rng, settings))
        return Generation(text, usage=Usage(len(request.prompt.split()), 3 * len(items)))

    def _probability(self, claim: str) -> float:
        """P(yes), fixed for a claim. Its rates above and below 0.85 are those of the settings."""
        world = self.world
        rate = world.settings.critic_recall if self._believes(claim) else world.settings.critic_false_alarms
        height = world.chance("score", claim)
        # Accepted claims lie between 0.85 and 1, rejected ones clearly below, between 0 and 0.6.
        return 0.85 + 0.15 * height if world.chance("critic", claim) < rate else 0.6 * height

    def _believes(self, claim: str) -> bool:
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return self.world.is_a(self.world.named(claim.typed[0]), claim.typed[1])
        words = stated_claim(claim).strip().removesuffix(".")
        readings = sorted(self.world.read(words), key=lambda reading: not self.world.fits(reading))
        if isinstance(claim, ClaimText) and claim.atom is not None:
            stated = claim.atom.indicator
            readings = [reading for reading in readings if reading.signature.indicator == stated]
        if readings:
            best = readings[0]
            return self._truth(best.signature, best.arguments) != best.denied
        # Not a fact of the library, so perhaps a claim of a type: `Butter is an ingredient`.
        # ` is a` is also the beginning of ` is an`, whose `n` goes below.
        value, is_a, data_type = words.rpartition(" is a")
        if not is_a:
            return False
        return self.world.is_a(self.world.named(value), data_type.removeprefix("n").strip())


def _clauses(sentence: str, world: SimulatedWorld) -> Iterator[str]:
    """The clauses that a sentence joins by "and". A template may contain "and" itself, so the longest match wins."""
    pieces = sentence.split(" and ")[:MOST_CLAUSES]
    while pieces:
        length = _longest_clause(pieces, world)
        yield " and ".join(pieces[:length])
        pieces = pieces[length:]


def _longest_clause(pieces: Sequence[str], world: SimulatedWorld) -> int:
    """Number of pieces of the longest clause that can be read; 1 if there is none."""
    for length in range(len(pieces), 0, -1):  # the longest first
        if any(world.fits(reading) for reading in world.read(" and ".join(pieces[:length]))):
            return length
    return 1


def _lines(items: Sequence[Value], rng: random.Random, settings: SimulationSettings) -> Iterator[str]:
    """The numbered list with its errors: repeated items, missing full stops, chatter."""
    number = 0
    for place, item in enumerate(items):
        lines = [f"{item}."]
        if place and rng.random() < settings.duplicates:
            lines.append(f"{rng.choice(items[:place])}.")
        if rng.random() < settings.malformed:
            lines.append(rng.choice([f"{item}", f"{item}/{items[0]}.", "one, two, three."]))
        for line in lines:
            number += 1
            yield f"{number}. {line}"


def _open(request: ModelRequest) -> SimulatedModel:
    library = request.options.library
    if library is None:
        raise HapaxError(
            "A simulated model needs rules to simulate. Name a rule file, or in Python give `library=rules`."
        )
    if request.argument and not request.argument.isdecimal():
        raise HapaxError(f"{request.model}: the seed should be a number, for example simulated:7.")
    seed = int(request.argument) if request.argument else request.options.seed
    return request.once(lambda: SimulatedModel(SimulatedWorld(library, seed)))


BACKEND = Backend(
    open=_open,
    argument="[SEED]",
    roles=ALL_ROLES,
    abilities="a seeded invented world over the rules at hand, with known truth and error rates",
    price=FREE,
)
