"""Knowledge model, critic and likelihood of a simulated world, with calibrated errors.

`SimulatedModel` gets the same prompts as any other model. It reads them back by the frame of `prompts.py` and the
templates of the world's rule library.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Sequence
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
from hapax.llm_oracle.reading.sentence_reader import clauses_of
from hapax.llm_oracle.scripts.simulated_world import SentenceAtom, SimulatedWorld

ANSWERS_KEPT = 10_000
"""Number of questions whose right values are remembered: a search asks a whole round before it repeats a question."""

ATTEMPTS = 20
"""Number of attempts to find a true row before a wrong one is written."""

_ATOM = re.compile(r"(?P<predicate>\w+)\((?P<arguments>.*)\)", re.DOTALL)
"""An atom in a prompt that asks in the form of predicates."""
_VARIABLE = re.compile(r"[A-Z][0-9]{0,3}")


class SimulatedModel:
    """Knowledge model, critic and likelihood of a simulated world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.identity = ModelIdentity("simulated", f"seed {world.seed}, world {world.fingerprint}")
        self._answers = lru_cache(ANSWERS_KEPT)(self._right_values)

    # -- knowledge model

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        """Numbered lists with wrong values, repeated lines and malformed lines, but without excluded values."""
        return [self._generation(request, parameters) for request in requests]

    def _generation(self, request: GenerationRequest, parameters: GenerationParameters) -> Generation:
        excluded = frozenset(value.casefold() for value in request.excluded_values)
        # A random stream of its own, so that batches do not change answers. Sorted, because the order of a set of texts
        # differs from process to process.
        seed = f"{self.world.seed} {parameters.seed} {request.sample_index} {sorted(excluded)} {request.prompt}"
        rng = random.Random(seed)  # noqa: S311  # reproducible, not secret
        instruction = read_instruction(request.prompt)
        if instruction is not None:
            lines = list(_numbered(self._rows(instruction, rng, parameters.temperature, excluded)))
            tokens = sum(len(line.split()) for line in lines)
        else:
            items = self._items(request.prompt, rng, parameters.temperature, excluded)
            lines = list(_numbered(self._written(items, rng)))
            tokens = 3 * len(items)
        return Generation("\n".join(lines), usage=Usage(len(request.prompt.split()), tokens))

    def _items(self, prompt: str, rng: random.Random, temperature: float, excluded: frozenset[str]) -> list[Value]:
        """As many right and wrong values as a prompt asks for."""
        settings, parts = self.world.settings, read_prompt(prompt)

        def in_order(values: Iterable[Value]) -> list[Value]:
            return by_popularity([value for value in values if str(value).casefold() not in excluded], rng, temperature)

        right, wrong = self.values(prompt)
        # Forgotten facts depend on prompt and value alone: asking again does not bring them back.
        known = in_order(value for value in right if self.world.chance("known", prompt, value) < settings.recall)
        wrong = in_order(wrong)
        items: list[Value] = []
        while parts and len(items) < parts.count and known:
            is_right = rng.random() < settings.precision or not wrong
            items.append((known if is_right else wrong).pop(0))
        return items

    def _written(self, items: Sequence[Value], rng: random.Random) -> Iterator[str]:
        """The items of a list with its errors: repeated items, missing full stops, chatter."""
        settings = self.world.settings
        for place, item in enumerate(items):
            yield f"{item}."
            if place and rng.random() < settings.duplicates:
                yield f"{rng.choice(items[:place])}."
            if rng.random() < settings.malformed:
                yield rng.choice([f"{item}", f"{item}/{items[0]}.", "one, two, three."])

    def values(self, prompt: str) -> tuple[list[Value], list[Value]]:
        """The right and the wrong values for a prompt, most popular first."""
        parts = read_prompt(prompt)
        if parts is None:
            return [], []
        slot = f"[{parts.variable}]"
        right = self._answers(self._in_words(parts.sentence, parts.variable), slot, parts.data_type)
        known = set(right)
        return list(right), [value for value in self.world.entities(parts.data_type) if value not in known]

    def _in_words(self, asked: str, variable: str) -> str:
        """Atoms such as `is_ingredient_in(butter, B) & ...` as a sentence; a sentence stays as it is."""
        sentences = []
        for text in asked.split(" & "):
            match = _ATOM.fullmatch(text)
            names = match["arguments"].split(", ") if match else []
            if match is None or not self.world.library.knows(f"{match['predicate']}/{len(names)}"):
                return asked
            # Variables without a value stand there by their names alone.
            slots = [f"[{name}]" if name == variable or _VARIABLE.fullmatch(name) else name for name in names]
            sentences.append(atom_text(Atom(match["predicate"], tuple(map(Constant, slots))), self.world.library))
        return " and ".join(sentences)

    def _right_values(self, sentence: str, slot: str, data_type: str) -> tuple[Value, ...]:
        """Values of the slot that make the whole sentence true; none if no clause of it can be read."""
        # Of each clause the reading whose slot has the requested type, else any with the slot.
        questions = []
        for readings in self._readings(sentence):
            asked = [reading for reading in readings if slot in reading.slots]
            asked.sort(key=lambda reading: not self._suits(reading, {slot: data_type}))
            questions += asked[:1]
        return tuple(
            value
            for value in (self.world.entities(data_type) if questions else ())
            if all(self._truth(question.signature, question.filled({slot: value})) for question in questions)
        )

    def _readings(self, sentence: str) -> list[list[SentenceAtom]]:
        """The readings of each clause of a sentence, of which all values have the types of their places."""

        def fitting(clause: str) -> list[SentenceAtom]:
            return [reading for reading in self.world.read(clause) if self.world.fits(reading)]

        return list(map(fitting, clauses_of(sentence, lambda clause: bool(fitting(clause)))))

    def _suits(self, reading: SentenceAtom, types: dict[str, str]) -> bool:
        """True if the places of slots of these types allow them."""
        is_subtype = self.world.library.is_subtype
        places = [
            (types.get(slot, own), own)
            for slot, own in zip(reading.slots, reading.signature.argument_types, strict=True)
        ]
        return all(is_subtype(wanted, own) or is_subtype(own, wanted) for wanted, own in places)

    def _truth(self, signature: PredicateSignature, arguments: Sequence[Value | None]) -> bool:
        """An atom with placeholders is true of all values of the right types."""
        known = [value for value in arguments if value is not None]
        if len(known) == len(arguments):
            return self.world.holds(signature.indicator, known)
        return self.world.are_typed(signature, arguments)

    # -- rows of values for a whole rule

    def _rows(
        self, parts: InstructionParts, rng: random.Random, temperature: float, excluded: frozenset[str]
    ) -> Iterator[str]:
        """Rows that answer an instruction, with their errors: repeated rows, rows without a value, chatter.

        It ignores wordings: if asked for less frequent terms it writes the same kind of row, as LINK found of ChatGPT
        and GPT-4 (section 3.2). It does not calculate, so comparisons of numbers hold by chance.
        """
        settings = self.world.settings
        types = {f"[{name}]": data_type for name, data_type in parts.variables}
        clauses: list[SentenceAtom] = []
        for readings in self._readings(parts.sentence.removeprefix("If ").partition(", then ")[0]):
            clauses += [reading for reading in readings if self._suits(reading, types)][:1]

        def ordered(slot: str) -> list[Value]:
            """Entities of its type, or the type's name if it has none, with popular ones tending to come first."""
            return by_popularity(list(self.world.entities(types[slot])) or [types[slot]], rng, temperature)

        def true_row() -> dict[str, Value] | None:
            """A row found by one walk over the variables without going back; None if it leads nowhere."""
            row: dict[str, Value] = {}
            for slot in types:
                candidates = ({**row, slot: value} for value in ordered(slot))
                found = next((row for row in candidates if all(self._allows(clause, row) for clause in clauses)), None)
                if found is None:
                    return None
                row = found
            return row

        written: list[str] = []
        for _ in range(parts.count):
            is_right = rng.random() < settings.precision
            # A walk may fail where another order of values succeeds.
            found = (row for _ in range(ATTEMPTS if is_right else 0) if (row := true_row()) is not None)
            row = next(found, None) or {slot: ordered(slot)[0] for slot in types}
            text = ", ".join(f"{slot[1:-1]}={value}" for slot, value in row.items())
            # A real model repeats itself now and then, excluded rows included.
            if (text.casefold() in excluded or text in written) and rng.random() >= settings.duplicates:
                continue
            written.append(text)
            yield text
            if rng.random() < settings.malformed:
                yield rng.choice([text.partition(", ")[0], text.replace("=", " is "), "and so on."])

    def _allows(self, clause: SentenceAtom, row: dict[str, Value]) -> bool:
        """True if a clause is true of a row, or if the row does not have all its values yet."""
        bound = [value for value in clause.filled(row) if value is not None]
        return len(bound) < len(clause.slots) or self.world.holds(clause.signature.indicator, bound) != clause.denied

    # -- critic and likelihood

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

    def _probability(self, claim: str) -> float:
        """P(yes), fixed for a claim. Its rates above and below 0.85 are those of the settings."""
        world = self.world
        rate = world.settings.critic_recall if self._believes(claim) else world.settings.critic_false_alarms
        height = world.chance("score", claim)
        # Accepted claims lie between 0.85 and 1, rejected ones clearly below, between 0 and 0.6.
        return 0.85 + 0.15 * height if world.chance("critic", claim) < rate else 0.6 * height

    def _believes(self, claim: str) -> bool:
        world = self.world
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return world.is_a(world.named(claim.typed[0]), claim.typed[1])
        words = stated_claim(claim).strip().removesuffix(".")
        readings = sorted(world.read(words), key=lambda reading: not world.fits(reading))
        if isinstance(claim, ClaimText) and claim.atom is not None:
            stated = claim.atom.indicator
            readings = [reading for reading in readings if reading.signature.indicator == stated]
        if readings:
            return self._truth(readings[0].signature, readings[0].arguments) != readings[0].denied
        # Not a fact of the library, so perhaps a claim of a type: `Butter is an ingredient`.
        # ` is a` is also the beginning of ` is an`, whose `n` goes below.
        value, is_a, data_type = words.rpartition(" is a")
        return bool(is_a) and world.is_a(world.named(value), data_type.removeprefix("n").strip())


def by_popularity(values: list[Value], rng: random.Random, temperature: float) -> list[Value]:
    """A random order of values ranked by popularity. Popular ones tend to come first, less so at high temperature."""
    # Gumbel noise on the log-probability of the rank: sorting by it samples without replacement.
    noise = {value: -temperature * math.log(-math.log(rng.random() or 0.5)) for value in values}
    ranked = sorted(enumerate(values), key=lambda ranked: math.log(ranked[0] + 1) - noise[ranked[1]])
    return [value for _, value in ranked]


def _numbered(items: Iterable[str]) -> Iterator[str]:
    return (f"{number}. {item}" for number, item in enumerate(items, 1))


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
