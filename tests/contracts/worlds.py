"""A knowledge base after a search of the small world of `money_fixture`, and copies of knowledge bases."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from cli_fixture import EVERY_END, run
from money_fixture import FOUR_CITIES, RULES, WORLD

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
