"""A world whose truth is known: models with calibrated errors, to measure a search without any real model.

A `SimulatedWorld` is made from a rule library and a seed. Each data type has invented entities, ranked by popularity
(Zipf). Whether a fact holds is settled by a hash, so that the truth needs no table and two worlds of one seed agree.
`SimulatedModel` plays all roles in it. It is given the same prompts as any other model and reads them back by the frame
of `prompts.py` and the library's templates.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache

from grammar.rules import Library, PredicateKind, PredicateSignature, type_key
from grammar.terms import Atom, Value, Variable
from grammar.verbalize import template_of
from kb.records import content_id
from llm_oracle.answers import parse_number
from llm_oracle.prompts import InstructionParts, read_instruction, read_prompt
from llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Usage,
)
from llm_oracle.simulated_rows import RowWriter, typed_readings

FIRST_NUMBER, NUMBER_STEP = 1400, 3
"""Numeric types hold FIRST_NUMBER, then every third number: readable as years."""

MOST_CLAUSES = 20
"""Atoms of one prompt that are read."""

FINGERPRINT_DIGITS = 12

ANSWERS_KEPT = 10_000
"""Questions whose right values are remembered: a search asks all of a round before it asks the first again."""

_SYLLABLES = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
_SLOT = re.compile(r"\[(\d{1,3})\]")
_PLACEHOLDER = re.compile(r"\[\w+\]|[A-Z]\w*[A-Z]\d*")
"""`[B]`, or `PersonX` as `verbalize` writes generic variables."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Sizes of the world and error rates of its models; all rates are shares between 0 and 1."""

    entities_per_type: int = 120
    facts_per_argument: float = 8.0
    """Expected number of right values for a question of an oracle predicate."""
    recall: float = 0.9
    """Share of the true facts that the generator knows at all."""
    precision: float = 0.75
    """Share of a list's well-formed lines that are true, as long as the generator knows enough true values."""
    duplicates: float = 0.1
    malformed: float = 0.05
    """Lines that repeat an earlier one, and lines that are no list item."""
    critic_recall: float = 0.95
    """Share of true claims that get P(yes) >= 0.85."""
    critic_false_alarms: float = 0.03
    """Share of false claims that get P(yes) >= 0.85."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sentence as an atom: what stands at each argument position, None for a placeholder."""

    signature: PredicateSignature
    arguments: tuple[Value | None, ...]
    slots: tuple[str, ...]
    denied: bool = False


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One sentence of a predicate: its text with slots, and which argument stands in each slot."""

    expression: re.Pattern[str]
    signature: PredicateSignature
    positions: tuple[int, ...]
    denied: bool


class _Patterns:
    """Patterns by the rarest word that their sentence must hold, so that a clause meets few of them."""

    def __init__(self, templates: Sequence[tuple[str, _Pattern]]) -> None:
        self._patterns = [pattern for _, pattern in templates]
        own = [[word for word in template.casefold().split() if "[" not in word] for template, _ in templates]
        counts = Counter(word for words in own for word in words)
        self._places: dict[str, list[int]] = {}
        for place, words in enumerate(own):
            self._places.setdefault(min(words, key=lambda word: (counts[word], word), default=""), []).append(place)

    def fitting(self, words: str) -> Iterator[_Pattern]:
        """Patterns that the words may match, in order; no pattern that they match is missing."""
        places = (place for word in {"", *words.casefold().split()} for place in self._places.get(word, ()))
        return (self._patterns[place] for place in sorted(places))


@dataclass(frozen=True)
class SimulatedWorld:
    """Entities and truth: what `holds` says never changes for a library and a seed."""

    library: Library
    seed: int = 0
    settings: SimulationSettings = field(default_factory=SimulationSettings)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Every data type that the library speaks of, by its key, in order of first mention."""
        library = self.library.completed()
        declared = [one for signature in library.signatures for one in signature.argument_types]
        used = [variable.data_type for rule in library.rules for variable in rule.variables]
        related = [one for pair in library.subtypes for one in pair]
        return tuple(dict.fromkeys(type_key(one) for one in (*declared, *used, *related)))

    @cached_property
    def fingerprint(self) -> str:
        """What tells worlds of one seed apart: their settings and their types, by which entities get their names."""
        types = [list(self.types), sorted(map(list, self.library.subtypes))]
        return content_id("world", asdict(self.settings), *types)[:FINGERPRINT_DIGITS]

    @cached_property
    def _own(self) -> dict[str, tuple[Value, ...]]:
        """Entities that belong to each type itself, most popular first; a type with subtypes has only theirs."""
        count = self.settings.entities_per_type
        divided = {type_key(upper) for _, upper in self.library.subtypes}
        names = _names(random.Random(f"names {self.seed}"))  # noqa: S311  # reproducible, not secret
        numbers = tuple(FIRST_NUMBER + NUMBER_STEP * place for place in range(count))
        return {
            one: numbers if self.library.is_numeric(one) else tuple(next(names) for _ in range(count))
            for one in self.types
            if one not in divided
        }

    @cached_property
    def _kin(self) -> dict[Value, tuple[Value, ...]]:
        """Entity -> the entities of its own type."""
        return {entity: entities for entities in self._own.values() for entity in entities}

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Text entity in lower case -> popularity rank in its type, from 0."""
        return {
            str(entity): rank
            for entities in self._own.values()
            for rank, entity in enumerate(entities)
            if isinstance(entity, str)
        }

    @cached_property
    def _extensions(self) -> dict[str, tuple[Value, ...]]:
        return {}

    def entities(self, data_type: str) -> tuple[Value, ...]:
        """Everything of a type, its subtypes included, most popular first."""
        key = type_key(data_type)
        if key not in self._extensions:
            below = [one for one in self.types if self.library.is_subtype(one, key)]
            ranked = [
                (rank, order, e) for order, one in enumerate(below) for rank, e in enumerate(self._own.get(one, ()))
            ]
            self._extensions[key] = tuple(dict.fromkeys(entity for _, _, entity in sorted(ranked, key=lambda r: r[:2])))
        return self._extensions[key]

    @cached_property
    def _members(self) -> dict[str, frozenset[Value]]:
        return {}

    @cached_property
    def _densities(self) -> dict[str, float]:
        return {}

    def _density(self, signature: PredicateSignature) -> float:
        """Share of the atoms of an oracle predicate that are true."""
        density = self._densities.get(signature.indicator)
        if density is None:
            crowd = len(self.entities(signature.argument_types[-1]))
            density = min(0.5, self.settings.facts_per_argument / max(1, crowd))
            self._densities[signature.indicator] = density
        return density

    def is_a(self, value: Value, data_type: str) -> bool:
        members = self._members.get(data_type)
        if members is None:
            members = self._members[data_type] = frozenset(self.entities(data_type))
        return value in members

    def holds(self, indicator: str, arguments: Sequence[Value]) -> bool:
        """Whether the fact is true. Arguments of a wrong type make it false.

        A functional predicate has one right last argument in each type of it that has no subtypes.
        """
        signature = self.library.signature(indicator)
        if not all(self.is_a(value, one) for value, one in zip(arguments, signature.argument_types, strict=True)):
            return False
        if signature.kind is PredicateKind.FUNCTIONAL:
            choices = self._kin[arguments[-1]]
            return arguments[-1] == choices[int(self.chance("function", indicator, *arguments[:-1]) * len(choices))]
        return self.chance("fact", indicator, *arguments) < self._density(signature)

    def popularity(self, word: str) -> float | None:
        """Zipf probability of an entity's name, None for any other word."""
        rank = self._ranks.get(word)
        if rank is None:
            return None
        return 1 / ((rank + 1) * (math.log(self.settings.entities_per_type) + 0.58))

    def named(self, words: str) -> Value:
        """An argument as it stands in a sentence: an entity whatever its case, a number, or unknown text."""
        folded = words.strip().casefold()
        if folded in self._ranks:
            return folded
        number = parse_number(words)
        return words.strip() if number is None else number

    def chance(self, *parts: object) -> float:
        """A number in [0, 1) that depends on the seed and these parts alone."""
        digest = hashlib.sha256("\0".join(map(str, (self.seed, *parts))).encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:7]) / 2**56

    @cached_property
    def _patterns(self) -> _Patterns:
        """Every predicate's sentences as patterns; longer templates first, since they say more."""
        found = []
        for signature in self.library.completed().signatures:
            atom = Atom(signature.name, tuple(Variable(f"V{i}", one) for i, one in enumerate(signature.argument_types)))
            for form in ("affirmative", "negated"):
                template = template_of(atom, self.library, "negated" if form == "negated" else "affirmative")
                positions = tuple(int(slot) - 1 for slot in _SLOT.findall(template))
                pieces = [re.escape(piece) for piece in _SLOT.split(template)[::2]]
                pattern = re.compile("(.{1,400}?)".join(pieces), re.IGNORECASE | re.DOTALL)
                found.append((template, _Pattern(pattern, signature, positions, form == "negated")))
        return _Patterns(sorted(found, key=lambda one: -len(one[0])))

    def read(self, words: str) -> list[_Reading]:
        """All ways to read a clause as an atom of the library."""
        readings = []
        for pattern in self._patterns.fitting(words) if len(words) < 4000 else ():
            signature = pattern.signature
            match = pattern.expression.fullmatch(words)
            if match is None:
                continue
            slots = [""] * len(signature.argument_types)
            for position, text in zip(pattern.positions, match.groups(), strict=True):
                slots[position] = text
            values = tuple(None if _PLACEHOLDER.fullmatch(text) else self.named(text) for text in slots)
            readings.append(_Reading(signature, values, tuple(slots), pattern.denied))
        return readings

    def fits(self, reading: _Reading) -> bool:
        """Whether all named arguments have the types of their places."""
        typed = zip(reading.arguments, reading.signature.argument_types, strict=True)
        return all(value is None or self.is_a(value, one) for value, one in typed)


class SimulatedModel:
    """Knowledge model, critic and likelihood of a simulated world."""

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world
        self.identity = ModelIdentity("simulated", f"seed {world.seed}, world {world.fingerprint}")
        self._answers = lru_cache(ANSWERS_KEPT)(self._answered)

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        """Numbered lists with wrong values, repeated lines and malformed lines; excluded values never come."""
        return [self._generation(request, parameters) for request in requests]

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [CriticScore(self._probability(claim), Usage(len(claim.split()), 1)) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """One token a word, as if a begin token stood before the first; rarer names are less likely."""
        return [self._log_likelihood(text) for text in texts]

    def values(self, prompt: str) -> tuple[list[Value], list[Value]]:
        """The true and the wrong values that a prompt can be answered with, most popular first."""
        parts = read_prompt(prompt)
        if parts is None:
            return [], []
        true = self._answers(parts.sentence, f"[{parts.variable}]", parts.data_type)
        wrong = set(self.world.entities(parts.data_type)).difference(true)
        return list(true), [one for one in self.world.entities(parts.data_type) if one in wrong]

    def _answered(self, sentence: str, slot: str, data_type: str) -> tuple[Value, ...]:
        """The values of the slot that make the whole sentence true; none where no clause of it can be read."""
        questions = [self._question(clause, slot, data_type) for clause in _clauses(sentence, self.world)]
        asked = [question for question in questions if question is not None]
        candidates = self.world.entities(data_type) if asked else ()
        return tuple(one for one in candidates if all(self._true_with(question, slot, one) for question in asked))

    def _question(self, clause: str, slot: str, data_type: str) -> _Reading | None:
        """The reading whose slot has the type asked for and whose other arguments fit; else any that has the slot."""
        readings = [
            reading for reading in self.world.read(clause) if slot in reading.slots and self.world.fits(reading)
        ]
        for reading in readings:
            place = reading.signature.argument_types[reading.slots.index(slot)]
            if self.world.library.is_subtype(data_type, place) or self.world.library.is_subtype(place, data_type):
                return reading
        return readings[0] if readings else None

    def _true_with(self, question: _Reading, slot: str, value: Value) -> bool:
        arguments = tuple(
            value if text == slot else known for text, known in zip(question.slots, question.arguments, strict=True)
        )
        return self._truth(question.signature, arguments)

    def _truth(self, signature: PredicateSignature, arguments: Sequence[Value | None]) -> bool:
        """An atom with placeholders is true of everything of the right types."""
        known = [value for value in arguments if value is not None]
        if len(known) == len(arguments):
            return self.world.holds(signature.indicator, known)
        typed = zip(arguments, signature.argument_types, strict=True)
        return all(value is None or self.world.is_a(value, one) for value, one in typed)

    def _rows(
        self, instruction: InstructionParts, request: GenerationRequest, parameters: GenerationParameters
    ) -> Generation:
        """Rows for a whole rule."""
        premise = instruction.sentence.removeprefix("If ").partition(", then ")[0]
        readings = (filter(self.world.fits, self.world.read(one)) for one in _clauses(premise, self.world))
        excluded = frozenset(value.casefold() for value in request.excluded_values)
        rng = random.Random(  # noqa: S311  # reproducible, not secret
            f"{self.world.seed} {parameters.seed} {request.sample_index} {sorted(excluded)} {request.prompt}"
        )
        writer = RowWriter(
            self.world,
            instruction,
            typed_readings(map(list, readings), instruction, self.world),
            lambda some, rng: _by_popularity(some, rng, parameters.temperature),
        )
        lines = list(writer.lines(rng, excluded))
        usage = Usage(len(request.prompt.split()), sum(len(line.split()) for line in lines))
        return Generation("\n".join(lines), usage=usage)

    def _generation(self, request: GenerationRequest, parameters: GenerationParameters) -> Generation:
        instruction = read_instruction(request.prompt)
        if instruction is not None:
            return self._rows(instruction, request, parameters)
        world, settings = self.world, self.world.settings
        parts = read_prompt(request.prompt)
        count = parts.count if parts else 0
        excluded = {value.casefold() for value in request.excluded_values}
        true, false = self.values(request.prompt)
        true = [one for one in true if world.chance("known", request.prompt, one) < settings.recall]
        rng = random.Random(  # noqa: S311  # reproducible, not secret
            f"{world.seed} {parameters.seed} {request.sample_index} {sorted(excluded)} {request.prompt}"
        )
        true, false = (
            _by_popularity([one for one in some if str(one).casefold() not in excluded], rng, parameters.temperature)
            for some in (true, false)
        )
        items: list[Value] = []
        while len(items) < count and true:
            right = rng.random() < settings.precision or not false
            items.append((true if right else false).pop(0))
        text = "\n".join(_lines(items, rng, settings))
        return Generation(text, usage=Usage(len(request.prompt.split()), 3 * len(items)))

    def _probability(self, claim: str) -> float:
        """P(yes) whose rates over and under 0.85 are the settings', fixed for a claim."""
        world = self.world
        sure = world.settings.critic_recall if self._believes(claim) else world.settings.critic_false_alarms
        height = world.chance("score", claim)
        return 0.85 + 0.15 * height if world.chance("critic", claim) < sure else 0.6 * height

    def _believes(self, claim: str) -> bool:
        words = claim.strip().removesuffix(".")
        readings = sorted(self.world.read(words), key=lambda reading: not self.world.fits(reading))
        if readings:
            best = readings[0]
            return self._truth(best.signature, best.arguments) != best.denied
        value, is_a, data_type = words.rpartition(" is a")
        if not is_a:
            return False
        return self.world.is_a(self.world.named(value), data_type.removeprefix("n").strip())

    def _log_likelihood(self, text: str) -> LogLikelihood:
        words = [word.strip(".,'\"") for word in text.casefold().split()]
        scores = [math.log(self.world.popularity(word) or 0.1) for word in words]
        return LogLikelihood(math.fsum(scores), len(words))


def _clauses(sentence: str, world: SimulatedWorld) -> Iterator[str]:
    """The atoms that a sentence joins by "and". A template may hold an "and" itself, so the longest that fits wins."""
    pieces = sentence.split(" and ")[:MOST_CLAUSES]
    while pieces:
        joined = ((length, " and ".join(pieces[:length])) for length in range(len(pieces), 0, -1))
        fitting = (one for one in joined if any(map(world.fits, world.read(one[1]))))
        length, clause = next(fitting, (1, pieces[0]))
        yield clause
        pieces = pieces[length:]


def _by_popularity(values: list[Value], rng: random.Random, temperature: float) -> list[Value]:
    """A random order in which popular values tend to come first, the less so the higher the temperature."""
    noise = {value: -temperature * math.log(-math.log(rng.random() or 0.5)) for value in values}
    return [
        value for _, value in sorted(enumerate(values), key=lambda ranked: math.log(ranked[0] + 1) - noise[ranked[1]])
    ]


def _lines(items: Sequence[Value], rng: random.Random, settings: SimulationSettings) -> Iterator[str]:
    """The numbered list with its noise: repeated items, lost full stops, chatter."""
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


def _names(rng: random.Random) -> Iterator[str]:
    """Invented words of three syllables, each once, in an order that depends on the seed."""
    total = len(_SYLLABLES) ** 3
    step = rng.choice([one for one in range(total // 3, total // 2) if math.gcd(one, total) == 1])
    place = rng.randrange(total)
    while True:
        place = (place + step) % total
        first, rest = divmod(place, len(_SYLLABLES) ** 2)
        yield _SYLLABLES[first] + _SYLLABLES[rest // len(_SYLLABLES)] + _SYLLABLES[rest % len(_SYLLABLES)]
