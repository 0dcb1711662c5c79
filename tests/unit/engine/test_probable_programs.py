"""Random rule files with probabilities, by Hapax and by ProbLog 2: no difference."""

from __future__ import annotations

import os

import pytest

from tools.drawn_programs import Compared
from tools.probable_programs import by_problog, compare_chances

pytest.importorskip("problog", reason="ProbLog 2 is not installed: `pip install problog`")
pytest.importorskip("pysdd", reason="exact probabilities need the extra `probability`")

PROGRAMS = int(os.environ.get("HAPAX_TEST_PROBABLE_PROGRAMS", "5"))


def test_probabilities_of_rule_files_are_those_of_problog() -> None:
    """Answers and statements over recursion, negation, denials and entailments: exact within 1e-9, bounds around."""
    found = Compared()
    for number in range(PROGRAMS):
        compare_chances(f"1-{number}", found)

    assert not found.differences, found.differences[0]
    assert found.counts["programs"] == PROGRAMS
    assert found.counts["answers, exact"] > 3 * PROGRAMS
    assert found.counts["statements"]
    assert found.counts["answers, bounds"]


def test_another_probability_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ProbLog has other numbers, each is told with its goal and its program."""
    monkeypatch.setattr(
        "tools.probable_programs.by_problog",
        lambda text: {
            name: {row: chance * 0.999 for row, chance in rows.items()} for name, rows in by_problog(text).items()
        },
    )
    found = Compared()
    compare_chances("1-1", found)

    assert any("exact" in difference and "ProbLog has" in difference for difference in found.differences)
    assert "::" in found.differences[0]
