"""Searches that stop before their end, and searches on a cluster that cannot begin."""

from __future__ import annotations

import io
import random
import sqlite3
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax

# --- stopped ----------------------------------------------------------------------------------------------------------


RULES = """
oracle is_eaten_in(Dish, City): "[1] is eaten in [2]" / "[1] is not eaten in [2]" / "is [1] eaten in [2]?"
oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"
oracle is_sold_in(Dish, City): "[1] is sold in [2]" / "[1] is not sold in [2]" / "is [1] sold in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given may_try(Person, Dish): "[1] may try [2]" / "[1] may not try [2]" / "may [1] try [2]?"
given may_miss(Person, Dish): "[1] may miss [2]" / "[1] may not miss [2]" / "may [1] miss [2]?"
@name tried
visits(Person X, Country L) & lies_in(City C, Country L) & is_eaten_in(Dish D, City C) -> may_try(Person X, Dish D)
@name missed
visits(Person X, Country L) & lies_in(City C, Country L) & is_eaten_in(Dish D, City C) & not is_sold_in(Dish D, City C)
  -> may_miss(Person X, Dish D)
"""
CONFLICT = "never is_eaten_in(Dish D, City C) & is_sold_in(Dish D, City C).\n"
SETTINGS = hapax.SearchSettings(beam=4, values_per_call=6, calls_per_question=3)


class ServerFaultError(Exception):
    """The fault that ends a run in the midst."""


def searched(
    rules: hapax.Library, path: Path, seed: int, budget: hapax.Budget | None = None, faulty_event: int = 0
) -> hapax.SearchResult:
    """Search within a budget; at an event of progress, an even one as Ctrl-C, the search is ended."""
    models = hapax.open_models(f"simulated:{seed}", library=rules, budget=budget)
    events = 0

    def count(_: hapax.Progress) -> None:
        nonlocal events
        events += 1
        if events == faulty_event:
            raise ServerFaultError if faulty_event % 2 else KeyboardInterrupt

    with hapax.KnowledgeBase(path) as kb:
        return hapax.search(rules, kb, models, SETTINGS, progress=count)


def stored(path: Path, rules: hapax.Library) -> dict[str, set[str]]:
    """The facts as they are exported, the statements by run and end, and the verdicts behind both."""
    facts, statements = io.StringIO(), io.StringIO()
    with hapax.KnowledgeBase(path, read_only=True) as kb:
        hapax.export_facts(kb, facts, form="jsonl")
        hapax.export_statements(kb, rules, statements)
    found = {"facts": set(facts.getvalue().splitlines()), "statements": set(statements.getvalue().splitlines())}
    tables = {
        "ends": "SELECT run_id, rule, distribution, substitution FROM statements",
        "keys": "SELECT key FROM statements",
        "denials": "SELECT predicate, arguments FROM denials",
        "conflicts": "SELECT declaration, facts, lost FROM conflicts",
        "verdicts": "SELECT gate, subject, accepted, rule, distribution, step FROM decisions",
    }
    with closing(sqlite3.connect(path)) as connection:
        present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for name, sql in tables.items():
            # Denials and conflicts have tables once there are any.
            is_there = name not in ("denials", "conflicts") or name in present
            found[name] = set(map(str, connection.execute(sql))) if is_there else set()
    return found


@pytest.mark.parametrize(("declared", "seed"), [("", 7), (CONFLICT, 3)])
def test_a_run_that_another_one_continues_ends_as_if_it_had_never_been_stopped(
    declared: str, seed: int, tmp_path: Path
) -> None:
    """Whatever stops it, every row so far is one of the finished run, and the next runs add the rest."""
    rules = hapax.parse_rules(declared + RULES)
    whole = searched(rules, tmp_path / "whole.db", seed)
    expected = stored(tmp_path / "whole.db", rules)
    assert expected["statements"]
    calls = sum(role.calls for role in whole.report.statistics.values())
    tokens = sum(role.tokens for role in whole.report.statistics.values())
    draw = random.Random(seed)
    for number in range(3):
        path = tmp_path / f"{number}.db"
        for _ in range(draw.randint(1, 3)):
            stop = draw.choice(["calls", "tokens", "fault"])
            if stop == "calls":
                searched(rules, path, seed, hapax.Budget(max_calls=draw.randint(1, calls)))
            elif stop == "tokens":
                searched(rules, path, seed, hapax.Budget(max_tokens=draw.randint(1, tokens)))
            else:
                with suppress(KeyboardInterrupt, ServerFaultError):
                    searched(rules, path, seed, faulty_event=draw.randint(2, 50))
            if path.exists():
                so_far = stored(path, rules)
                assert {name: found - expected[name] for name, found in so_far.items() if found - expected[name]} == {}
        assert searched(rules, path, seed).complete
        assert stored(path, rules) == expected


def test_a_finished_rule_replaces_what_an_earlier_version_left(tmp_path: Path) -> None:
    """A statement that the run no longer has, with its proof, is gone once its rule is finished again."""
    rules, path = hapax.parse_rules(RULES), tmp_path / "kb.db"
    searched(rules, path, 7)
    expected = stored(path, rules)
    with closing(sqlite3.connect(path)) as connection, connection:
        # A temporary copy, so that all columns are taken, whichever there are.
        connection.execute("CREATE TEMP TABLE copied AS SELECT * FROM statements ORDER BY key LIMIT 1")
        connection.execute("UPDATE copied SET key = 'stale'")
        connection.execute("INSERT INTO statements SELECT * FROM copied")
    searched(rules, path, 7)

    assert stored(path, rules) == expected


# --- executors --------------------------------------------------------------------------------------------------------


def test_without_ray_the_command_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor that is not there is an error with its remedy, and no knowledge base is begun."""
    monkeypatch.setitem(sys.modules, "ray", None)
    result = invoke("search", "-m", "simulated", "--executor", "ray", "--db", tmp_path / "one.db")

    assert result.exit_code == 1
    assert "hapax-kb[ray]" in result.stderr
    assert not (tmp_path / "one.db").exists()


def test_a_queue_is_not_spread(tmp_path: Path) -> None:
    """--queue sends nothing, so that it does not go with an executor."""
    result = invoke("search", "--executor", "ray", "--queue", tmp_path / "q.jsonl")

    assert result.exit_code == 2
    assert "--queue" in result.stderr
