"""A small world of cities, countries and currencies, a search of it by a scripted model, and copies of knowledge bases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cli_fixture import EVERY_END, run

RULES = """
type City < Location
functional is_a_city_in(City, Country): "[1] is a city in [2]" / "[1] is not a city in [2]" / "is [1] a city in [2]?"
oracle uses_currency(Country, Currency): "[1] uses the [2]" / "[1] does not use the [2]" / "does [1] use the [2]?"
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_pay_with(Person, Currency): "[1] can pay with the [2]" / "[1] cannot pay with the [2]" / "can [1] pay with the [2]?"
@name currency
@domain locational
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> can_pay_with(Person X, Currency B)
"""

VALUES = {
    "'[A] is a city in [B]'": ["Oslo", "Lyon", "Banjul"],
    "'Oslo is a city in [B]'": ["Norway"],
    "'Lyon is a city in [B]'": ["France"],
    "'Banjul is a city in [B]'": ["The Gambia"],
    "'Norway uses the [B]'": ["Norwegian krone", "euro"],
    "'France uses the [B]'": ["euro"],
    "'The Gambia uses the [B]'": ["dalasi"],
}
"""Values that the model gives, by a part of the prompt."""

SCRIPT = {
    "generate": VALUES,
    "critic": {"Norway uses the euro.": 0.1},
    "defaults": {"critic": 0.95, "likelihood": -10.0, "generate": []},
}
"""A scripted model: every statement is as likely as any other."""

WORLD = {**SCRIPT, "likelihood": {"Banjul is a city in The Gambia.": -40.0, "Oslo is a city in Norway.": -20.0}}
"""The same model with likelihoods that put one city in the long tail."""

FOUR_CITIES = {
    **VALUES,
    "'[A] is a city in [B]'": ["Oslo", "Lyon", "Banjul", "Kyoto"],
    "'Kyoto is a city in [B]'": ["Japan"],
    "'Japan uses the [B]'": ["yen"],
}
"""Values that make an even number of statements, so that each of them is at one end where an end has half of them."""


WHOLE = {**WORLD, "generate": FOUR_CITIES}
"""A world of which a search puts every statement at an end."""


def search_world(folder: Path, rules: str = RULES, world: Mapping[str, Any] = WHOLE) -> Path:
    """`kb.db` in the folder after a search of the rule about currencies, beside `money.rules` and `script.json`."""
    (folder / "money.rules").write_text(rules, "utf-8")
    (folder / "script.json").write_text(json.dumps(world), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency", "--no-progress", *EVERY_END)
    run("search", folder / "money.rules", "--rule", "currency", *models, "--db", folder / "kb.db")
    return folder / "kb.db"


def copied(source: Path, target: Path) -> Path:
    """A copy of a knowledge base, with what lies in its log."""
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    return target
