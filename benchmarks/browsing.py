"""Seconds that the pages of `hapax serve` take with many statements, and processor time of storing those.

    python -m benchmarks.browsing --statements 1000000
    python -m benchmarks.browsing --db large.db -o browsing.json

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import quote

from starlette.testclient import TestClient
from wordfreq import top_n_list

import hapax
from benchmarks.common import machine, write_figures
from hapax.api.browser.app import Browser, browser_app
from hapax.api.browser.guard import Access
from hapax.engine.search.settings import SearchSettings
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.scripted import ScriptedModel

DECLARATIONS = """
functional is_a_city_in(City, Country): "[1] is a city in [2]" / "[1] is not a city in [2]" / "is [1] a city in [2]?"
oracle uses_currency(Country, Currency): "[1] uses the [2]" / "[1] does not use the [2]" / "does [1] use the [2]?"
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_pay(Person, Currency): "[1] can pay with [2]" / "[1] cannot pay with [2]" / "can [1] pay with [2]?"
"""
RULE = (
    "@name {name}\nlives_in(Person X, City A) & is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) "
    "-> can_pay(Person X, Currency B)\n"
)
SHARES = {"half": 0.5, "quarter": 0.25, "tenth": 0.1, "others": 0.15}
"""Rules with their shares of the statements."""
SCRIPT = {
    "generate": {
        "'[A] is a city in [B]'": ["Oslo", "Lyon"],
        "'Oslo is a city in [B]'": ["Norway"],
        "'Lyon is a city in [B]'": ["France"],
        "'Norway uses the [B]'": ["krone"],
        "'France uses the [B]'": ["euro"],
    },
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}
TOGETHER = 20_000
"""Statements of one transaction."""
COUNTRIES = 500
CITY_STATEMENTS = 5
PATHS = {
    "front page": "/",
    "statements": "/statements",
    "statements by likelihood": "/statements?order=log-likelihood",
    "statements by likelihood, greatest first": "/statements?order=-log-likelihood",
    "statements by rule": "/statements?order=rule",
    "statements by end": "/statements?order=end",
    "statements by sentence": "/statements?order=statement",
    "statements, page 10,000": "/statements?page=10000",
    "statements by likelihood, page 10,000": "/statements?order=likely&page=10000",
    "statements of a rule": "/statements?rule=half",
    "statements of a rule by likelihood": "/statements?rule=half&order=likely",
    "statements of an end": "/statements?end=head",
    "statements of an end by likelihood": "/statements?end=long_tail&order=likely",
    "statements with a rare word": "/statements?words={word}",
    "statements of common values": "/statements?rare=5",
    "statements without votes": "/statements?judge=nobody",
    "statements of sure facts": "/statements?least=0.9",
    "facts": "/facts",
    "facts by P(yes)": "/facts?order=-probability",
    "facts by arguments": "/facts?order=arguments",
    "a rule with half of the statements": "/rule/half",
    "a rule with a tenth": "/rule/tenth",
    "an entity": "/entity?name={city}",
    "an entity with many statements": "/entity?name={country}",
    "a statement": "/statement/{statement}",
    "rules": "/rules",
    "predicates": "/predicates",
    "a predicate": "/predicate/is_a_city_in/2",
    "map": "/map",
    "runs": "/runs",
    "a run": "/run/{run}",
    "next statement to judge": "/judge?voter=ann",
    "claims": "/claims",
    "facts by popularity": "/facts?order=-popularity",
    "statements by popularity": "/statements?order=popularity",
}
"""Addresses of the pages by what they show."""


@dataclass(frozen=True)
class PageTime:
    """Seconds of a page when it is first opened, and of processor time then; the least seconds of two further times."""

    page: str
    first: float
    processor: float
    again: float


def write_kb(database: Path, count: int, seed: int = 1) -> float:
    """A knowledge base of a small search with `count` more statements of its rules; returns processor seconds.

    The seconds are those of storing the statements with their proofs and facts.
    """
    rules = hapax.parse_rules(DECLARATIONS + "".join(RULE.format(name=name) for name in SHARES))
    with hapax.KnowledgeBase(database) as kb:
        model = ScriptedModel(SCRIPT)
        hapax.search(rules, kb, Models(model, model, model, model), SearchSettings())
        sample = kb.statements()[0]
        used = 0.0
        for statements, facts in _batches(sample, count, random.Random(seed)):  # noqa: S311  no secrets
            begun = time.process_time()
            kb.add_facts(facts)
            kb.add_statements(statements)
            used += time.process_time() - begun
    return used


def _batches(
    sample: StatementRecord, count: int, numbers: random.Random
) -> Iterator[tuple[list[StatementRecord], list[FactRecord]]]:
    """Statements like the sample about invented cities, each with its facts."""
    words = [word.title() for word in top_n_list("en", 20_000) if word.isalpha()]
    names = numbers.choices(list(SHARES), weights=list(SHARES.values()), k=count)
    ends = list(Distribution)
    city, number = "", 0
    for start in range(0, count, TOGETHER):
        statements, facts = [], []
        for place in range(start, min(start + TOGETHER, count)):
            # As in an average search: a city is in the statements of several rules.
            if place % CITY_STATEMENTS == 0:
                city = f"{numbers.choice(words)} {numbers.choice(words)} {place}"
                number = numbers.randrange(COUNTRIES)
            located = FactRecord("is_a_city_in", (city, f"Country {number}"), ("City", "Country"), Source.MODEL, 0.95)
            paid = FactRecord(
                "uses_currency", (f"Country {number}", f"coin {number}"), ("Country", "Currency"), Source.MODEL, 0.9
            )
            facts += [located, paid]
            texts = (f"PersonX lives in {city}", f"PersonX can pay with coin {number}")
            statements.append(
                replace(
                    sample,
                    rule=names[place],
                    distribution=ends[place % 2],
                    substitution=(("A", city), ("C", f"Country {number}"), ("B", f"coin {number}")),
                    premise=texts[0],
                    conclusion=texts[1],
                    proof=_proof(names[place], city, (located, paid)),
                    log_likelihood=numbers.gauss(-10, 2),
                )
            )
        yield statements, facts


def _proof(rule: str, city: str, facts: Sequence[FactRecord]) -> dict[str, object]:
    """The proof of a statement about a city: the rule, an assumption, and these facts."""
    person = {"type": "Person", "variable": "X"}
    goals = [("can_pay", [person, facts[-1].arguments[1]]), ("lives_in", [person, city])]
    goals += [(fact.predicate, list(fact.arguments)) for fact in facts]
    reasons: list[dict[str, object]] = [{"by": "rule", "rule": rule, "premises": [1, 2, 3]}, {"by": "assumption"}]
    reasons += [{"by": "fact", "fact": fact.id} for fact in facts]
    steps = []
    for (predicate, arguments), reason in zip(goals, reasons, strict=True):
        steps.append({**reason, "goal": {"predicate": predicate, "arguments": arguments}})
    return {"steps": steps}


_LAST = "SELECT id, run_id, premise, conclusion FROM statements ORDER BY rowid DESC LIMIT 1"


def page_times(database: Path, only: str = "") -> Iterator[PageTime]:
    """The seconds of each page, or of those with `only` in their description."""
    with KnowledgeBase(database, read_only=True) as kb:
        ((identity, run, premise, conclusion),) = kb.query(_LAST)
    city, number = premise.removeprefix("PersonX lives in "), conclusion.split()[-1]
    country = quote(f"Country {number}")
    values = {
        "statement": identity,
        "run": run,
        "city": quote(city),
        "country": country,
        "word": quote(city.split()[1]),
    }
    access = Access(8001)
    app, headers = browser_app(Browser(database, judge=True), access), {"Authorization": f"Bearer {access.token}"}
    with TestClient(app, base_url="http://localhost:8001", headers=headers) as client:
        for page, path in PATHS.items():
            if only in page:
                used = time.process_time()
                first = _seconds(client, path.format(**values))
                used = time.process_time() - used
                yield PageTime(page, first, used, min(_seconds(client, path.format(**values)) for _ in range(2)))


def _seconds(client: TestClient, path: str) -> float:
    begun = time.perf_counter()
    response = client.get(path)
    seconds = time.perf_counter() - begun
    if response.status_code != 200:
        raise SystemExit(f"{path}: {response.status_code}\n{response.text}")
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a knowledge base, or take one, and print the seconds of each page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=1_000_000)
    parser.add_argument("--db", type=Path, help="kept; used as it is if it is there")
    parser.add_argument("--only", default="", help="pages with these words in their description")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args(arguments)
    figures: dict[str, object] = {"statements": options.statements}
    with tempfile.TemporaryDirectory() as folder:
        database = options.db or Path(folder, "large.db")
        if not database.exists():
            used = write_kb(database, options.statements)
            size = database.stat().st_size / 1e6
            print(f"storing: {used:.1f} s of processor time, {size:.0f} MB")
            figures |= {"storing": used, "megabytes": size}
        times = []
        print("   first processor again")
        for timed in page_times(database, options.only):
            print(f"{timed.first:8.2f} {timed.processor:8.2f} {timed.again:8.2f} s  {timed.page}", flush=True)
            times.append(asdict(timed))
    write_figures(options.output, {"machine": machine(), **figures, "pages": times})


if __name__ == "__main__":
    main()
