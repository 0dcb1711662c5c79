"""Gates of a search: their counts in its JSON and in a dataset's card, by each order of the gates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run
from money_fixture import RULES, VALUES

SCRIPT = {
    "generate": {
        **VALUES,
        "'Norway uses the [B]'": ["Norwegian krone", "euro", "fish", "skilling"],
        "'France uses the [B]'": ["euro", "franc"],
        # LINK begins with the conclusion.
        "PersonX can pay with the [B]": ["Norwegian krone", "euro", "dalasi"],
        "[A] uses the Norwegian krone": ["Norway"],
        "[A] uses the euro": ["France", "Norway", "Fish", "Europe"],
        "[A] uses the dalasi": ["The Gambia"],
        "[B] is a city in Norway": ["Oslo"],
        "[B] is a city in France": ["Lyon"],
        "[B] is a city in The Gambia": ["Banjul"],
        # LINK prints predicates.
        "can_pay_with(PersonX, B)": ["Norwegian krone", "euro", "dalasi"],
        "uses_currency(A, Norwegian krone)": ["Norway"],
        "uses_currency(A, euro)": ["France", "Norway", "Fish", "Europe"],
        "uses_currency(A, dalasi)": ["The Gambia"],
        "is_a_city_in(B, Norway)": ["Oslo"],
        "is_a_city_in(B, France)": ["Lyon"],
        "is_a_city_in(B, The Gambia)": ["Banjul"],
    },
    "critic": {
        # For each order of variables: a fact that is false, a wrong type, and a value that is wrong in both ways.
        "Norway uses the euro.": 0.1,
        "Skilling is a currency.": 0.2,
        "Europe is a country.": 0.2,
        "Norway uses the fish.": 0.1,
        "Fish is a currency.": 0.1,
        "Fish uses the euro.": 0.1,
        "Fish is a country.": 0.1,
    },
    "likelihood": {},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}


@pytest.mark.parametrize(
    ("compat", "expected"),
    [
        # Of 13 values the critic is not asked about the 3 cities of the open question and the 2 of a wrong type.
        (None, {"type": (13, 2), "critic": (8, 1)}),
        ("paper", {"type": (12, 2), "critic": (7, 1)}),
    ],
)
def test_a_search_counts_by_gate(tmp_path: Path, compat: str | None, expected: dict[str, tuple[int, int]]) -> None:
    """In each order of the gates it says how many values came to a gate, and how many of these it rejected."""
    (tmp_path / "test.rules").write_text(RULES, "utf-8")
    (tmp_path / "script.json").write_text(json.dumps(SCRIPT), "utf-8")
    database, model = tmp_path / "kb.db", f"scripted:{tmp_path / 'script.json'}"
    options = ("--db", database, "-m", model, "--evaluator", model, "--json", *(("--compat", compat) if compat else ()))
    (rule,) = json.loads(run("search", tmp_path / "test.rules", *options).stdout)["rules"]
    gates = {name: rule["gates"][name] for name in expected}

    assert {name: (gate["judged"], gate["judged"] - gate["accepted"]) for name, gate in gates.items()} == expected
