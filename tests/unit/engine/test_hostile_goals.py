"""The goals of red_team.yaml behind the grammar: in Prolog's sandbox, and in the process that is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import LimitExceeded, PrologError, PrologSession

GOALS = yaml.safe_load((Path(__file__).parents[2] / "red_team.yaml").read_text("utf-8"))["goals"]
LIMITS = QueryLimits(seconds=0.3, inferences=20_000_000, answers=100, memory_mb=96)
PROGRAM = """
e(alive).
n(1).
loop(A) :- e(A), loop(A).
grow(B) :- n(A), grow(A), B is A + 1.
"""


@pytest.fixture(scope="module")
def session() -> Iterator[PrologSession]:
    with PrologSession() as session:
        session.load(PROGRAM)
        yield session


def processes_of(group: int) -> int:
    """The number of processes in the group, 0 without /proc."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, owner = stat.read_text("utf-8", "replace").rpartition(") ")[2].split()[:3]
        except (OSError, ValueError):
            continue
        found += state != "Z" and int(owner) == group
    return found


@pytest.mark.parametrize("case", GOALS, ids=[f"{number}-{case['why']}"[:60] for number, case in enumerate(GOALS)])
def test_a_goal_past_the_grammar_is_contained(
    case: dict[str, Any], session: PrologSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused or ends, no file and no process is left, and the same session answers the next goal."""
    monkeypatch.chdir(tmp_path)
    text = case["text"].replace("{file}", str(tmp_path / "made"))
    text = text.replace("{many}", case.get("many", "") * case.get("count", 0))
    for trusted in (False, True):
        with suppress(PrologError, LimitExceeded):
            session.solutions(text, [], LIMITS, trusted=trusted)

    assert session.solutions("e(X)", ["X"]).rows == [("alive",)]
    assert list(tmp_path.iterdir()) == []
    process = session._process
    assert process is not None
    assert processes_of(process.pid) <= 1
