"""A world whose truth is known, and a model of it with calibrated errors: a search is measured without a real model.

A `SimulatedWorld` is made from a rule library and a seed. Each data type has invented entities, ranked by popularity
(Zipf). A hash decides if a fact holds, so the truth needs no table and two worlds with the same seed agree.

`SimulatedModel` gets the same prompts as any other model. It reads them back by the frame of `prompts.py` and the
templates of the world's rule library.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, product, zip_longest

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.records import content_id
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
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.reading.sentence_reader import SentenceReader, clauses_of, is_placeholder

FIRST_NUMBER, NUMBER_STEP = 1400, 3
"""A numeric type holds FIRST_NUMBER and every third number after it, which can be read as years."""

MOST_DENSITY = 0.5
"""Most true atoms of a predicate, as a share, in a world with few entities."""

FINGERPRINT_DIGITS = 12

_SYLLABLES = tuple(map("".join, product("bdfgklmnprstvz", "aeiou")))


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """Sizes of the world and error rates of its models. All rates are shares between 0 and 1."""

    entities_per_type: int = 120
    facts_per_argument: float = 8.0
    """Expected number of right values for a question of an oracle predicate."""
    recall: float = 0.9
    """Share of the true facts that the generator knows at all."""
    precision: float = 0.75
    """Share of a list's well-formed lines that are true, as long as the generator knows enough true values."""
    duplicates: float = 0.1
    malformed: float = 0.05
    """Shares of lines that repeat an earlier one, and of lines that are not list items."""
    critic_recall: float = 0.95
    """Share of true claims that get P(yes) >= 0.85."""
    critic_false_alarms: float = 0.03
    """Share of false claims that get P(yes) >= 0.85."""


@dataclass(frozen=True, slots=True)
class SentenceAtom:
    """A sentence read as an atom. `arguments`: value at each position, None for a placeholder; `slots`: their texts."""

    signature: PredicateSignature
    arguments: tuple[Value | None, ...]
    slots: tuple[str, ...]
    denied: bool = False

    def filled(self, values: Mapping[str, Value]) -> list[Value | None]:
        """The arguments, with values for some of the slots by their texts."""
        return [values.get(slot, known) for slot, known in zip(self.slots, self.arguments, strict=True)]


@dataclass(frozen=True)
class SimulatedWorld:
    """Entities and truth. `holds` never changes for the same library, seed and settings."""

    library: Library
    seed: int = 0
    settings: SimulationSettings = field(default_factory=SimulationSettings)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Keys of all data types in the library, in order of first mention."""
        library = self.library.completed()
        types = (
            *(signature.argument_types for signature in library.signatures),
            *([variable.data_type for variable in rule.variables] for rule in library.rules),
            *library.subtypes,
        )
        return tuple(dict.fromkeys(map(type_key, chain.from_iterable(types))))

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the settings and types, which distinguishes worlds with the same seed."""
        types = [list(self.types), sorted(map(list, self.library.subtypes))]
        return content_id("world", asdict(self.settings), *types)[:FINGERPRINT_DIGITS]

    @cached_property
    def _own_entities(self) -> dict[str, tuple[Value, ...]]:
        """Entities of each type itself, most popular first. A type with subtypes has only theirs."""
        count = self.settings.entities_per_type
        divided = {type_key(supertype) for _, supertype in self.library.subtypes}
        names = _names(random.Random(f"names {self.seed}"))  # noqa: S311  # reproducible, not secret
        numbers = tuple(FIRST_NUMBER + NUMBER_STEP * place for place in range(count))
        entities: dict[str, tuple[Value, ...]] = {}
        # The names are drawn from one generator, so the order of the types is part of the world.
        for data_type in self.types:
            if data_type not in divided:
                is_numeric = self.library.is_numeric(data_type)
                entities[data_type] = numbers if is_numeric else tuple(next(names) for _ in range(count))
        return entities

    @cached_property
    def _siblings(self) -> dict[Value, tuple[Value, ...]]:
        """The entities of an entity's own type."""
        siblings: dict[Value, tuple[Value, ...]] = {}
        for entities in self._own_entities.values():
            siblings.update(dict.fromkeys(entities, entities))
        return siblings

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """Popularity rank of each name within its type, from 0. Names are in lower case."""
        ranks: dict[str, int] = {}
        for entities in self._own_entities.values():
            ranks.update((entity, rank) for rank, entity in enumerate(entities) if isinstance(entity, str))
        return ranks

    _extensions: dict[str, tuple[Value, ...]] = field(default_factory=dict, init=False, compare=False)
    _members: dict[str, frozenset[Value]] = field(default_factory=dict, init=False, compare=False)

    def entities(self, data_type: str) -> tuple[Value, ...]:
        """All entities of a type and its subtypes, most popular first."""
        key = type_key(data_type)
        if key not in self._extensions:
            subtypes = [subtype for subtype in self.types if self.library.is_subtype(subtype, key)]
            # By rank: the first of each subtype, then the second ones.
            ranks = zip_longest(*(self._own_entities.get(subtype, ()) for subtype in subtypes))
            self._extensions[key] = tuple(entity for entity in dict.fromkeys(chain(*ranks)) if entity is not None)
        return self._extensions[key]

    def is_a(self, value: Value, data_type: str) -> bool:
        if data_type not in self._members:
            self._members[data_type] = frozenset(self.entities(data_type))
        return value in self._members[data_type]

    def holds(self, indicator: str, arguments: Sequence[Value]) -> bool:
        """Tell if a fact is true. Arguments of a wrong type make it false.

        A functional predicate has one right last argument in each type of it that has no subtypes.
        """
        signature = self.library.signature(indicator)
        if not self.are_typed(signature, arguments):
            return False
        if signature.kind is PredicateKind.FUNCTIONAL:
            # Each type without subtypes chooses for itself, so the value's siblings are all that it competes with.
            choices = self._siblings[arguments[-1]]
            return arguments[-1] == choices[int(self.chance("function", indicator, *arguments[:-1]) * len(choices))]
        count = len(self.entities(signature.argument_types[-1]))
        density = min(MOST_DENSITY, self.settings.facts_per_argument / max(1, count))
        return self.chance("fact", indicator, *arguments) < density

    def popularity(self, word: str) -> float | None:
        """Zipf probability of an entity's name; None for any other word."""
        rank = self._ranks.get(word)
        if rank is None:
            return None
        # ln n + 0.58 approximates the harmonic number, so that the probabilities of a type sum to 1.
        return 1 / ((rank + 1) * (math.log(self.settings.entities_per_type) + 0.58))

    def named(self, words: str) -> Value:
        """The value of a sentence's argument: an entity in any case, a number, or unknown text."""
        folded = words.strip().casefold()
        if folded in self._ranks:
            return folded
        number = parse_number(words)
        return words.strip() if number is None else number

    def chance(self, *parts: object) -> float:
        """A number in [0, 1) that depends only on the seed and these parts."""
        # U+0000 keeps the parts apart: `ab`, `c` is not `a`, `bc`.
        digest = hashlib.sha256("\0".join(map(str, (self.seed, *parts))).encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:7]) / 2**56  # seven bytes: a float has 53 bits

    @cached_property
    def _reader(self) -> SentenceReader:
        return SentenceReader(self.library)

    def read(self, clause: str) -> list[SentenceAtom]:
        """All readings of a clause as an atom of the library."""
        readings = []
        for reading in self._reader.readings(clause):
            values = tuple(None if is_placeholder(text) else self.named(text) for text in reading.slots)
            readings.append(SentenceAtom(reading.signature, values, reading.slots, reading.denied))
        return readings

    def fits(self, reading: SentenceAtom) -> bool:
        """True if all values have the types of their positions."""
        return self.are_typed(reading.signature, reading.arguments)

    def are_typed(self, signature: PredicateSignature, arguments: Sequence[Value | None]) -> bool:
        """True if all values have the types of their positions; None has every type."""
        typed = zip(arguments, signature.argument_types, strict=True)
        return all(value is None or self.is_a(value, data_type) for value, data_type in typed)


def _names(rng: random.Random) -> Iterator[str]:
    """Invented words of three syllables, each once, in an order that depends on the seed."""
    total = len(_SYLLABLES) ** 3
    # A step without a common divisor visits every number before it repeats one.
    step = rng.choice([step for step in range(total // 3, total // 2) if math.gcd(step, total) == 1])
    place = rng.randrange(total)
    while True:
        place = (place + step) % total
        first, rest = divmod(place, len(_SYLLABLES) ** 2)
        yield _SYLLABLES[first] + _SYLLABLES[rest // len(_SYLLABLES)] + _SYLLABLES[rest % len(_SYLLABLES)]


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
