"""Critics that are combined from others by a plus: one is calibrated, and a search keeps the raw scores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke

import hapax

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?".
lives_in(Person X, Country A) & flows_through(River B, Country A) -> can_swim_in(Person X, River B).
"""


@pytest.fixture
def combined(tmp_path: Path) -> Path:
    """Two scripted critics, each of which knows half of sixty rivers; labels of all."""
    (tmp_path / "world.rules").write_text(RULES, "utf-8")
    lines, first, second = [], {}, {}
    rng = np.random.default_rng(3)
    rivers = []
    for number in range(80):
        is_true, claim = bool(rng.random() < 0.5), f"River {number} flows through country {number // 2}."
        lines.append(f"{'true' if is_true else 'false'}\tflows_through\tRiver {number}\tcountry {number // 2}")
        known, other = (first, second) if number % 2 else (second, first)
        known[claim] = 0.95 if is_true else 0.05
        other[claim] = 0.5 + 0.1 * float(rng.random() - 0.5)
        rivers.append(f"River {number}")
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    defaults = {"generate": [], "critic": 0.5, "likelihood": -10}
    generate = {"flows through [B]": ["country 1", "country 2"], "flows through country": rivers[:6]}
    for name, script in (("a", first), ("b", second)):
        content = {"generate": generate, "critic": script, "defaults": defaults}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path


def test_commands_calibrate_and_search_with_a_combination(combined: Path) -> None:
    """`calibrate` prints each member beside the combination; the search compares stacked scores and keeps raw ones."""
    critic = f"scripted:{combined / 'a.json'}+scripted:{combined / 'b.json'}"
    place = ["--db", str(combined / "kb.db")]
    rules = str(combined / "world.rules")
    labels = ["--labels", str(combined / "labels.tsv")]

    learned = invoke("model", "calibrate", "--rules", rules, *place, "--critic", critic, *labels, "--json")
    models = ["-m", f"scripted:{combined / 'a.json'}", "--critic", critic]
    searched = invoke("search", rules, *place, *models, "--calibrated", "--no-progress")

    assert learned.exit_code == 0, learned.output
    figures = json.loads(learned.stdout)
    measured = figures["measures"]
    assert figures["method"].startswith("stacked")
    auc = {part: found["calibrated"]["auc"]["value"] for part, found in measured.items()}
    members = [part for part in auc if part.startswith("scripted")]
    assert len(members) == 2
    assert all(auc["all labels"] > auc[member] + 0.1 for member in members)
    assert searched.exit_code == 0, searched.output
    with hapax.KnowledgeBase(combined / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
        raw = kb.assessments(["River 1 flows through country 0."], "probability", record.critic)
        members_raw = [
            kb.assessments(["River 1 flows through country 0."], "probability", name)
            for name in record.parameters["weights"]
        ]
    assert raw
    assert all(members_raw)
