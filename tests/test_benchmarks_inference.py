"""The benchmark of bulk inference runs, agrees with Prolog, and says what it measured."""

import json
from pathlib import Path

import pytest

from benchmarks.inference import main, slopes

pytestmark = pytest.mark.slow


def test_each_way_is_timed_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command times joins, a closure and the shipped rules, and writes them with the machine's description."""
    written = tmp_path / "inference.json"
    sizes = ["--facts", "300", "600", "--edges", "30", "--nodes", "20", "--shipped", "5", "--questions", "3000"]
    sizes += ["--probable", "400", "--changing", "3000"]
    main([*sizes, "--rounds", "1", "--sample", "100", "-o", str(written)])
    found = json.loads(written.read_text("utf-8"))
    small, large = found["joins"]

    assert small["facts"] <= 300 < large["facts"] <= 600
    assert 0 < small["statements"] < large["statements"]
    assert all(sizes[f"{way}_s"] > 0 for sizes in found["joins"] for way in ("cold", "again", "ctas_int", "pyswip"))
    assert small["prolog_path_s"] > 0
    assert set(found["slopes"]) == {"reading_by_facts", "cold_by_facts", "again_by_statements"}
    assert 0 < found["closure"]["pairs"] <= 400
    assert found["shipped"]["statements"] > 0
    assert sum(found["shipped"]["engines"].values()) == found["shipped"]["rules"]
    assert {"add_to_first", "remove_to_first"} <= set(found["changes"])
    assert {"system", "cores", "sqlite"} <= set(found["machine"])
    assert set(found["questions"]["seconds"]["Hapax"]) == {"import", "first", "point", "reach", "derive", "export"}
    assert all(seconds > 0 for engine in found["questions"]["seconds"].values() for seconds in engine.values())
    assert {"facts_best_to_without", "derived_best_to_without"} <= set(found["probabilities"])
    printed = capsys.readouterr().out
    tables, _, lines = printed.partition("slopes:")
    assert "SQLite" in tables
    assert max(map(len, tables.splitlines())) <= 80
    assert "closure: edges" in lines


def test_slopes_are_exponents() -> None:
    """Cost that grows with the square of the facts has slope 2; one size has none."""
    joins = [{"facts": n, "statements": 10 * n, "reading_s": n, "cold_s": n**2, "again_s": n} for n in (10, 100, 1000)]

    assert {name: round(value, 6) for name, value in slopes(joins).items()} == {
        "reading_by_facts": 1.0,
        "cold_by_facts": 2.0,
        "again_by_statements": 1.0,
    }
    assert slopes(joins[:1]) == {}
