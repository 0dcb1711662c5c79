"""Training documents of the embedded model, in the exact words of a search: true facts of the atlas, and falsehoods.

Lists of values train the knowledge model; questions about facts and types train the critic; statements without a prompt
train the likelihood model. Popular names are in more statements, so that the mean log-likelihood of a token follows
their popularity. A quarter of all falsehoods, by a hash of their sentence, is held out to measure the model.
"""

from __future__ import annotations

import math
import random
import string
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, chain
from pathlib import Path

import hapax
from hapax.evaluation.shared.lazy import np, scipy
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.parsing.parser import load_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Variable
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, AtlasFact, popularity
from hapax.llm_oracle.questions.prompts import (
    critic_prompt,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
    sentence,
    type_claim,
)

RULES_FOLDER = Path(__file__).parents[2] / "rules"
NARROWER_TYPES = frozenset({"Weapon"})
"""Types that rules use for an argument although some entities of the atlas there are not of the type; not taught."""
LONGEST_LIST = 24
"""Most values in an answer; a search asks again for more."""
YES, NO = " yes", " no"
LIST_ALPHA = 0.3
"""The chance of a value to come first in a list grows with this power of its frequency: low, to include rare values."""
NUMERIC_BOOST = 1.6
"""Factor by which facts with numbers are asked more often: a number with one wrong digit is the hardest falsehood."""
EXCLUSION_SHARE = 0.08
"""Share of list prompts that end in LINK's exclusion sentence."""
MOST_EXCLUDED = 6
SPREAD = 6.0
"""In nats: of sentences of mean length, the most popular is drawn `exp(SPREAD)` times as often as the least popular."""

HELD_OUT_SHARE = 4
"""One falsehood in this many is held out."""
FARTHEST_YEAR = 30
"""Greatest distance of a near miss from the true year."""
ATTEMPTS = 20
"""Most draws for a falsehood of a kind; some relations have too few values for some kinds."""
FALSEHOOD_WEIGHTS = {"other value": 3.0, "near value": 2.0, "other key": 3.0, "wrong type": 2.0, "garbled": 2.0}
"""Ways of making a wrong fact from a true one."""

OPEN_TYPES: tuple[frozenset[str], ...] = (
    frozenset({"Animal", "Ingredient", "Raw Material", "Plant", "Food Allergen", "Food Group", "Beverage", "Cheese"}),
    frozenset({"Animal", "Plant", "Pathogen", "Equipment", "Animal Class"}),
    frozenset({"Element", "Metal", "Mineral", "Nutrient", "Alloy", "Drug", "Ingredient", "Raw Material"}),
    frozenset({"Historical Figure", "Author", "Director", "Person", "Profession"}),
    frozenset({"Landmark", "Structure", "Invention", "City"}),
    frozenset({"Invention", "Tool", "Instrument", "Equipment", "Sport"}),
    frozenset({"Invention", "Ingredient", "Raw Material", "Beverage", "Drug", "Alloy", "Dish"}),
    frozenset({"Disease", "Pathogen", "Phobia"}),
    frozenset({"Book", "Film"}),
    frozenset({"City", "Country"}),
    frozenset({"Dish", "Ingredient", "Food Group"}),
    frozenset({"Planet", "Star", "Moon"}),
    NUMERIC_TYPES | {"Time", "Historical Time Period"},
)
"""Groups of types that may share entities (apple: plant, ingredient) even if the atlas does not list them as both."""
LOOSE_TYPES = frozenset({"Subject", "Feared Thing", "Object", "Product or Technology", "Person", "Location", "Time"})
"""Types so wide that the atlas cannot decide which entities do not belong to them."""


@dataclass(frozen=True, slots=True)
class PredicateWording:
    """The affirmative template of a predicate, and the type names that rules use for its two arguments."""

    template: str
    data_types: tuple[tuple[str, ...], ...]
    functional: bool
    """True if a search asks for the last argument with the functional prompt."""

    def words(self, first: str, second: str) -> str:
        """The atom in words; an open argument is given as its slot, such as `[B]`."""
        # By way of \0, because the first argument may contain "[2]".
        return self.template.replace("[1]", "\0").replace("[2]", second).replace("\0", first)


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt and the answer to learn; `ends` adds the end-of-text token to the answer."""

    kind: str
    prompt: str
    answer: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A question for the values at `position` (0 or 1) of a predicate; `given` is the other argument, None if open."""

    predicate: str
    position: int
    given: str | None
    values: tuple[str, ...]
    """All true answers."""


class Corpus:
    """Draws training documents; the same random state draws the same documents."""

    def __init__(self, atlas: Atlas, library: Library | None = None) -> None:
        self.atlas, self.library = atlas, library or load_library([RULES_FOLDER])
        self.wordings = _wordings(atlas, self.library)
        self.typed: list[tuple[str, str]] = []
        """All entities with all types that rules may use for them."""
        self.list_questions: list[ListQuestion] = []
        """All lists that a search can ask for: both positions, with the other argument given or open."""
        for predicate, wording in self.wordings.items():
            for position, data_types in enumerate(wording.data_types):
                entities = atlas.true_values(predicate, position)
                self.typed += [(entity, data_type) for data_type in data_types for entity in entities]
                for given in (None, *atlas.true_values(predicate, 1 - position)):
                    values = atlas.true_values(predicate, position, given)
                    self.list_questions.append(ListQuestion(predicate, position, given, values))
        self._types_of: dict[str, set[str]] = defaultdict(set)
        for entity, data_type in self.typed:
            self._types_of[entity.casefold()].add(data_type)
        self._entities = [(entity, data_type) for data_type in atlas.types for entity in atlas.entities(data_type)]
        self._claims = {self.claim(fact) for fact in atlas.facts}
        self._values = {
            name: tuple(chain.from_iterable(relation.values.values())) for name, relation in atlas.relations.items()
        }
        # Running sums, because `random.choices` would add up plain weights again on each draw.
        self._fact_weights = _running(NUMERIC_BOOST if self._is_numeric(fact) else 1.0 for fact in atlas.facts)
        self._list_weights = _running(map(_list_weight, self.list_questions))

    def claim(self, fact: AtlasFact) -> str:
        """The fact as a sentence for the critic."""
        return sentence(self.wordings[fact.predicate].words(*fact.arguments))

    def prompt(self, question: ListQuestion, rng: random.Random, excluded: Sequence[str] = ()) -> str:
        """The question in the words of a search, with random variable names."""
        wording = self.wordings[question.predicate]
        names = rng.sample(string.ascii_uppercase, 2)
        slots = [f"[{name}]" for name in names]
        if question.given is not None:
            slots[1 - question.position] = question.given
        types = wording.data_types[question.position]
        # The atlas's own type comes first and is asked for most; rules use the others, too.
        data_type = types[0] if rng.random() < 0.7 else rng.choice(types)
        # Only the last argument of a functional predicate has a single right value, and only for a given first.
        is_functional = wording.functional and question.position == 1 and question.given is not None
        ask = functional_prompt if is_functional else knowledge_prompt
        return ask(names[question.position], wording.words(*slots), data_type) + exclusion_clause(tuple(excluded))

    def question(self, rng: random.Random) -> Document:
        """A fact and yes, or as often a falsehood and no; where none is found, the truth takes its place."""
        fact = rng.choices(self.atlas.facts, cum_weights=self._fact_weights)[0]
        wrong = self.wrong_fact(fact, rng) if rng.random() < 0.5 else None
        return Document("question", critic_prompt(self.claim(wrong or fact)), NO if wrong else YES)

    def type_question(self, rng: random.Random) -> Document:
        """The type of an entity and yes, or as often a wrong type and no."""
        wrong = self.wrong_type(rng) if rng.random() < 0.5 else None
        claim = wrong or type_claim(*rng.choice(self.typed))
        return Document("type question", critic_prompt(claim), NO if wrong else YES)

    def listing(self, rng: random.Random) -> Document:
        """A numbered list in which popular values tend to come first."""
        question = rng.choices(self.list_questions, cum_weights=self._list_weights)[0]
        tilt = LIST_ALPHA * math.log(10)
        # The Gumbel trick. `random` may return 0, which has no logarithm.
        scores = {
            value: tilt * popularity(value) - math.log(-math.log(rng.random() or 1e-12)) for value in question.values
        }
        values = sorted(scores, key=scores.__getitem__, reverse=True)
        count = 0
        if len(values) > 2 and rng.random() < EXCLUSION_SHARE:
            count = rng.randint(1, min(MOST_EXCLUDED, len(values) - 1))
        shown = values[count : count + LONGEST_LIST]
        lines = "".join(f"\n{place}. {value}." for place, value in enumerate(shown, 1))
        return Document("list", self.prompt(question, rng, values[:count]), lines + "\n", ends=True)

    def statements(self, count_tokens: Callable[[str], int]) -> dict[str, Callable[[random.Random], Document]]:
        """Makers of statements of facts and of rules, by kind. `count_tokens` returns the length of a sentence."""
        facts: dict[str, float] = {}
        for relation in self.atlas.relations.values():
            known = {self.claim(fact): sum(map(popularity, fact.arguments)) for fact in relation.facts}
            # Predicates get shares of the statements by the square root of their size.
            shares = sampling_shares([*map(count_tokens, known)], [*known.values()]) * math.sqrt(len(known))
            facts |= zip(known, shares.tolist(), strict=True)
        rules = []
        for known in _rule_statements(self.library, self.atlas).values():
            shares = sampling_shares([*map(count_tokens, known)], [*known.values()])
            rules.append((list(known), shares.cumsum().tolist()))
        sentences, running = list(facts), _running(facts.values())

        def fact_statement(rng: random.Random) -> Document:
            return Document("statement", "", rng.choices(sentences, cum_weights=running)[0])

        def rule_statement(rng: random.Random) -> Document:
            texts, weights = rng.choice(rules)
            return Document("rule statement", "", rng.choices(texts, cum_weights=weights)[0])

        return {"statement": fact_statement, "rule statement": rule_statement}

    # Falsehoods

    def wrong_fact(self, fact: AtlasFact, rng: random.Random, held_out: bool = False) -> AtlasFact | None:
        """A falsehood made from a true fact, held out or not as asked; None if `ATTEMPTS` draws find none."""
        kind = rng.choices(list(FALSEHOOD_WEIGHTS), weights=list(FALSEHOOD_WEIGHTS.values()))[0]
        for _ in range(ATTEMPTS):
            wrong = AtlasFact(fact.predicate, self._wrong_arguments(fact, kind, rng))
            claim = self.claim(wrong)
            if claim not in self._claims and is_held_out(claim) == held_out:
                return wrong
        return None

    def wrong_type(self, rng: random.Random) -> str | None:
        """A claim that an entity is of a wrong type, not held out; None if `ATTEMPTS` draws find none."""
        for _ in range(ATTEMPTS):
            entity, _ = rng.choice(self._entities)
            # Half of them as often as in true claims, so that the name of a type alone reveals nothing.
            data_type = rng.choice(self.atlas.types) if rng.random() < 0.5 else rng.choice(self._entities)[1]
            # An entity with loose types alone cannot be denied any type.
            known = self._types_of[entity.casefold()] - LOOSE_TYPES
            # An entity of one type is certainly not of another that shares no group with it.
            shared = [group for group in (*OPEN_TYPES, {data_type}) if data_type in group]
            if known and data_type not in LOOSE_TYPES and all(map(known.isdisjoint, shared)):
                claim = type_claim(_garbled(entity, rng) if rng.random() < 0.1 else entity, data_type)
                if not is_held_out(claim):
                    return claim
        return None

    def _wrong_arguments(self, fact: AtlasFact, kind: str, rng: random.Random) -> tuple[str, str]:
        relation, values = self.atlas.relations[fact.predicate], self._values[fact.predicate]
        key, value = fact.arguments if relation.key == 0 else fact.arguments[::-1]
        if kind == "other key":
            key = rng.choice(list(relation.values))
        elif kind == "garbled" and rng.random() < 0.5:
            key = _garbled(key, rng)
        elif kind == "garbled":
            value = _garbled(value, rng)
        elif kind == "wrong type":
            others = (rng.choice(self._entities) for _ in range(ATTEMPTS))
            expected = relation.argument_types[1 - relation.key]
            alien = (entity for entity, data_type in others if data_type != expected and entity not in values)
            value = next(alien, None) or _garbled(value, rng)
        elif kind == "near value" and relation.argument_types[1 - relation.key] in NUMERIC_TYPES:
            value = _near_number(value, values, rng)
        else:
            # A near value is one that a model may confuse: drawn as often as it is true of other keys.
            value = rng.choice(values if kind == "near value" else list(dict.fromkeys(values)))
        return relation.arguments(key, value)

    def _is_numeric(self, fact: AtlasFact) -> bool:
        return not NUMERIC_TYPES.isdisjoint(self.atlas.relations[fact.predicate].argument_types)


def _wordings(atlas: Atlas, library: Library) -> dict[str, PredicateWording]:
    used: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for atom in chain.from_iterable(rule.atoms for rule in library.rules):
        for position, term in enumerate(atom.arguments):
            if isinstance(term, Variable) and term.data_type not in NARROWER_TYPES:
                used[atom.predicate, position][term.data_type] = None
    found = {}
    for predicate, relation in atlas.relations.items():
        signature = library.signature(f"{predicate}/2") if library.knows(f"{predicate}/2") else None
        if signature is None or signature.templates is None:
            raise HapaxError(f"The atlas lists {predicate}, but no rule file declares it with templates. Declare it.")
        pairs = zip(relation.argument_types, signature.argument_types, strict=True)
        # The atlas's own type comes first, and no type is repeated.
        types = [tuple(dict.fromkeys((*pair, *used[predicate, position]))) for position, pair in enumerate(pairs)]
        is_functional = signature.kind is PredicateKind.FUNCTIONAL
        found[predicate] = PredicateWording(signature.templates.affirmative, tuple(types), is_functional)
    return found


def _rule_statements(library: Library, atlas: Atlas) -> dict[str, dict[str, float]]:
    """By rule, the statements that follow from the atlas, each with the popularity of the names in it."""
    with hapax.KnowledgeBase() as kb:
        for name, relation in atlas.relations.items():
            rows = []
            for fact in relation.facts:
                typed = zip(fact.arguments, relation.argument_types, strict=True)
                rows.append(tuple(Decimal(value) if kind in NUMERIC_TYPES else value for value, kind in typed))
            hapax.add_facts(kb, name, rows, library)
        by_rule: dict[str, dict[str, float]] = defaultdict(dict)
        for statement in hapax.derive(library, kb).statements:
            names = set(map(str, statement.values.values()))
            by_rule[statement.rule][statement.text] = sum(popularity(name) for name in names if name in statement.text)
    return by_rule


def sampling_shares(lengths: Sequence[int], popularities: Sequence[float]) -> np.ndarray:
    """Sampling shares that add up to 1 and whose logarithm per token is linear in popularity.

    A model that learns them ranks the sentences by popularity, however long their names are. With other shares the mean
    over tokens would favour long rare names, in which all tokens but the first are certain.
    """
    sizes, known = np.array(lengths), np.array(popularities)
    span = known.max() - known.min()
    slopes = SPREAD / sizes.mean() * (known - known.max()) / span if span else 0 * known

    def excess(level: float) -> float:
        return float(np.exp(sizes * (slopes - level)).sum()) - 1

    # At 0 the most popular sentence alone has share 1; at the other bound the shares add up to less than 1.
    level = scipy.optimize.brentq(excess, 0.0, math.log(len(lengths)) + 1.0)
    shares = np.exp(sizes * (slopes - level))
    return np.asarray(shares / shares.sum())


def is_held_out(claim: str) -> bool:
    """True if a falsehood with this sentence is held out of training."""
    # Unlike `hash`, a checksum is the same on all machines and in all runs.
    return zlib.crc32(claim.encode("utf-8")) % HELD_OUT_SHARE == 0


def _running(weights: Iterable[float]) -> list[float]:
    return list(accumulate(weights))


def _list_weight(question: ListQuestion) -> float:
    """Relative frequency of a question: the square root of its length, less if both arguments are open."""
    return math.sqrt(min(len(question.values), 2 * LONGEST_LIST)) * (0.7 if question.given is None else 1.0)


def _near_number(value: str, known: Sequence[str], rng: random.Random) -> str:
    """A year within `FARTHEST_YEAR`, or for other numbers one of the nearest values of the relation."""
    if len(value) == 4 and value.isdigit():
        return str(int(value) + rng.choice((-1, 1)) * rng.randint(1, FARTHEST_YEAR))
    ordered = sorted(set(known), key=float)
    place = ordered.index(value) + rng.choice((-3, -2, -1, 1, 2, 3))
    return ordered[min(max(place, 0), len(ordered) - 1)]


def _garbled(value: str, rng: random.Random) -> str:
    """The value with two to four random edits, so that it names nothing."""
    letters, alphabet = list(value), string.digits if value.isdigit() else string.ascii_lowercase
    for _ in range(rng.randint(2, 4)):
        place, new = rng.randrange(len(letters)), rng.choice(alphabet)
        # A letter goes, is put before, or takes the place of another.
        letters[place : place + 1] = rng.choice(([], [new, letters[place]], [new])) if len(letters) > 2 else [new]
    return "".join(letters).strip() or "q"
