"""Hostile rule files and goals that once hung, or were answered at the wrong place or with a misleading remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.grammar import parser
from hapax.grammar.errors import GoalRejected, HapaxError

GIVEN = "given e(Thing, Thing).\n@generic none\n"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        pytest.param('born("a", 1).\n', 'or "fact" before an atom that always holds', id="a fact without its word"),
        pytest.param(
            f"{GIVEN}e(Thing X, Thing Y) -> a(Thing X, Thing Y)\n unless not a(X, Y).\n",
            'a/2 depends on its own negation: a/2 <- "unless not a(Thing X, Thing Y)" <- a/2',
            id="an exception that the conclusion is its own",
        ),
        pytest.param('import "endless".\n', "it has more than 0 million bytes", id="a file without an end"),
    ],
)
def test_hostile_rule_files_are_told_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str, message: str
) -> None:
    """`check` ends with exit code 4 and a message in the words of the file."""
    monkeypatch.setattr(parser, "MAXIMUM_BYTES", 1_000)
    (tmp_path / "endless").write_bytes(b" " * 2_000)
    (tmp_path / "hostile.rules").write_text(rules, "utf-8")
    result = invoke("check", tmp_path / "hostile.rules")

    assert result.exit_code == 4
    assert message in " ".join(result.output.split())


def test_a_rule_file_may_have_the_largest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of exactly that many bytes is read whole; one byte more is refused."""
    monkeypatch.setattr(parser, "MAXIMUM_BYTES", 1_000)
    (tmp_path / "full").write_bytes(b" " * 1_000)
    (tmp_path / "over").write_bytes(b" " * 1_001)

    assert parser.file_content(tmp_path / "full") == b" " * 1_000
    with pytest.raises(HapaxError, match="it has more than 0 million bytes"):
        parser.file_content(tmp_path / "over")


@pytest.mark.parametrize(("goal", "place"), [("p(X", (1, 3)), ("p(X,\n Y  ", (2, 2)), ("", (1, 1))])
def test_a_goal_that_stops_too_early_is_marked_at_its_end(goal: str, place: tuple[int, int]) -> None:
    """The last character that is no blank is marked, not the first of the goal."""
    with pytest.raises(GoalRejected) as rejected:
        parser.parse_goal(goal, hapax.parse_rules('fact p("a")'))

    (diagnostic,) = rejected.value.diagnostics
    assert (diagnostic.place.line, diagnostic.place.column) == place
