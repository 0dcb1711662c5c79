"""The relations that the critic learns from: the atlas, the shipped references' tables, and WordNet.

Values that a relation does not list for a key are false for that key, as far as falsehoods are drawn here: for the
atlas and the tables by their closedness, for WordNet because every kind of a noun, near and far, counts as listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hapax.grammar.rules import Library
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, Atlas, popularity
from hapax.llm_oracle.prompts import with_article
from hapax.llm_oracle.references import loaders
from tools.critic.paraphrases import FORMS
from tools.critic.wordnet import Wordnet
from tools.embedded.wording import AtlasWording

ATLAS, GEO, ELEMENTS, WORDNET, COMPARISON = "atlas", "geo", "elements", "wordnet", "comparison"
SOURCES = (ATLAS, GEO, ELEMENTS, WORDNET, COMPARISON)

LEAST_POPULARITY = 2.2
"""Zipf value of the rarest name that is taken from WordNet or GeoNames: no small model knows a rarer one."""
LARGEST_CITIES = 6000
COMPARED_CITIES = 400
MOST_COMPARED = 12
"""Entities with which a claim compares each other entity."""
CLOSEST_RATIO = 1.5
CLOSEST_YEARS = 40
"""Least ratio of two sizes, and least distance of two years of birth, that a claim compares."""


@dataclass(frozen=True, slots=True)
class Form:
    """A sentence with the slots [1] and [2]. `affirms`: the sentence says what the relation says, not its denial."""

    template: str
    affirms: bool = True

    def words(self, first: str, second: str) -> str:
        """The clause with these arguments."""
        # By way of \0, because the first argument may contain "[2]".
        return self.template.replace("[1]", "\0").replace("[2]", second).replace("\0", first)


@dataclass(frozen=True, slots=True)
class TrainingRelation:
    """True facts of a predicate: values by key, and all that must not pass for a falsehood.

    `key`: the position, 0 or 1, of the key. `forms`: sentence forms, the rule library's own one first. `listed`: by key
    further values that are true or doubtful. `numeric`: the values are numbers.
    """

    name: str
    source: str
    forms: tuple[Form, ...]
    values: dict[str, tuple[str, ...]]
    key: int = 0
    numeric: bool = False
    listed: dict[str, frozenset[str]] = field(default_factory=dict)

    def arguments(self, key: str, value: str) -> tuple[str, str]:
        """Key and value in the order of the arguments."""
        return (key, value) if self.key == 0 else (value, key)

    def is_true(self, key: str, value: str) -> bool:
        """True unless the value may be used as a falsehood of the key."""
        return value in self.values.get(key, ()) or value in self.listed.get(key, ()) or value == key

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """All keys with their values."""
        for key, values in self.values.items():
            for value in values:
                yield key, value


def all_relations(atlas: Atlas, wording: AtlasWording, wordnet: Wordnet) -> list[TrainingRelation]:
    """Every relation, in a fixed order."""
    relations = [*_atlas_relations(atlas, wording), _atlas_types(atlas, wording)]
    relations += _geo_relations(wording.library)
    relations.append(_table("has_symbol", ELEMENTS, ((row["name"], row["symbol"]) for row in loaders.elements())))
    relations += _wordnet_relations(wordnet)
    relations += _comparisons(atlas)
    return relations


def _atlas_relations(atlas: Atlas, wording: AtlasWording) -> Iterator[TrainingRelation]:
    for name, relation in atlas.relations.items():
        numeric = bool(NUMERIC_TYPES.intersection(relation.argument_types))
        forms = _library_forms(wording.library, name)
        yield TrainingRelation(name, ATLAS, forms, dict(relation.values), relation.key, numeric)


def _library_forms(library: Library, name: str) -> tuple[Form, ...]:
    """The library's affirmative and negated template, and the paraphrases."""
    templates = next(signature.templates for signature in library.signatures if signature.name == name)
    if templates is None:
        return _forms(name)
    own = [Form(templates.affirmative)]
    if templates.negated is not None:
        own.append(Form(templates.negated, affirms=False))
    return (*own, *map(Form, FORMS.get(name, ())))


def _forms(name: str) -> tuple[Form, ...]:
    return tuple(Form(template) for template in FORMS[name])


def _atlas_types(atlas: Atlas, wording: AtlasWording) -> TrainingRelation:
    """`Butter is an ingredient.`: the claims of data types."""
    types: dict[str, dict[str, None]] = defaultdict(dict)
    for predicate in atlas.relations:
        for position in (0, 1):
            named = wording.predicates[predicate].data_types[position]
            if NUMERIC_TYPES.isdisjoint(named):
                for entity in atlas.true_values(predicate, position):
                    types[entity].update(dict.fromkeys(with_article(data_type.lower()) for data_type in named))
    values = {entity: tuple(kinds) for entity, kinds in types.items()}
    return TrainingRelation("type", ATLAS, (Form("[1] is [2]"),), values)


def _table(name: str, source: str, pairs: Iterable[tuple[str, str]], forms: tuple[Form, ...] = ()) -> TrainingRelation:
    values: dict[str, dict[str, None]] = defaultdict(dict)
    for key, value in pairs:
        if key and value:
            values[key][value] = None
    return TrainingRelation(name, source, forms or _forms(name), {key: tuple(row) for key, row in values.items()})


def _geo_relations(library: Library) -> Iterator[TrainingRelation]:
    def forms(name: str) -> tuple[Form, ...]:
        return _library_forms(library, name)

    countries = list(loaders.countries())
    yield _table("lies_in", GEO, ((row["name"], row["continent"]) for row in countries), forms("lies_in"))
    capitals = _table("is_the_capital_of", GEO, ((row["name"], row["capital"]) for row in countries))
    yield TrainingRelation(capitals.name, GEO, forms(capitals.name), capitals.values, key=1)
    borders = ((row["country"], row["neighbour"]) for row in loaders.borders())
    yield _table("shares_a_border_with", GEO, borders, forms("shares_a_border_with"))
    currencies = ((row["country"], row["currency"]) for row in loaders.currencies())
    yield _table("uses_currency", GEO, currencies, forms("uses_currency"))
    languages = ((row["country"], row["language"]) for row in loaders.official_languages())
    yield _table("has_official_language", GEO, languages, forms("has_official_language"))
    cities: list[tuple[str, str]] = []
    for row in loaders.cities():
        if popularity(row["name"]) >= LEAST_POPULARITY and len(cities) < LARGEST_CITIES:
            cities.append((row["name"], row["country"]))
    yield _table("is_a_city_in", GEO, cities, forms("is_a_city_in"))


def _wordnet_relations(wordnet: Wordnet) -> Iterator[TrainingRelation]:
    for name, table in wordnet.tables(lambda word: popularity(word) >= LEAST_POPULARITY).items():
        yield TrainingRelation(name, WORDNET, _forms(name), table.values, listed=table.listed)


def _comparisons(atlas: Atlas) -> Iterator[TrainingRelation]:
    """Which of two is the larger, so that exchanging the two arguments makes a truth false."""
    people = {row["name"]: float(row["population"]) for row in loaders.countries() if row["population"]}
    cities = 0
    for row in loaders.cities():
        if cities < COMPARED_CITIES and popularity(row["name"]) >= LEAST_POPULARITY and row["name"] not in people:
            people[row["name"]] = float(row["population"])
            cities += 1
    yield _compared("has_more_people_than", people, lambda more, less: more > CLOSEST_RATIO * less)
    areas = {row["name"]: row["area"] for row in loaders.countries() if row["area"]}
    yield _compared("is_larger_than", areas, lambda more, less: more > CLOSEST_RATIO * less)
    yield _compared(
        "is_heavier_than_the", _numbers(atlas, "weighs_about"), lambda more, less: more > CLOSEST_RATIO * less
    )
    years = _numbers(atlas, "was_born_in")
    yield _compared("was_born_before", years, lambda early, late: early + CLOSEST_YEARS < late)


def _numbers(atlas: Atlas, predicate: str) -> dict[str, float]:
    return {key: float(values[0]) for key, values in atlas.relations[predicate].values.items()}


def _compared(name: str, sizes: dict[str, float], exceeds: Callable[[float, float], bool]) -> TrainingRelation:
    """For each entity some that it exceeds. Those that exceed it are its falsehoods."""
    order = sorted(sizes, key=lambda entity: (sizes[entity], entity))
    values: dict[str, tuple[str, ...]] = {}
    listed: dict[str, frozenset[str]] = {}
    for entity in order:
        below = [name for name in order if exceeds(sizes[entity], sizes[name])]
        if below:
            # Spread over all sizes.
            values[entity] = tuple(below[:: max(1, len(below) // MOST_COMPARED)][:MOST_COMPARED])
            listed[entity] = frozenset(name for name in order if not exceeds(sizes[name], sizes[entity]))
    return TrainingRelation(name, COMPARISON, _forms(name), values, listed=listed)
