"""`check --fix`: faults whose remedy leaves no choice are mended in the files."""

from __future__ import annotations

from pathlib import Path

from cli_fixture import invoke
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.errors import Place, TextRepair
from hapax.grammar.fixing import with_replacements

TEMPLATES = '"[1] reaches [2]" / "[1] does not reach [2]" / "does [1] reach [2]?"'
FAULTY = (
    f"\ufefforcale reach(Town, Town): {TEMPLATES}\r\n"
    "\r\n"
    "@name far\r\n"
    "raech(Town A, Town B) & raech(Town B,\u200b Town C) \u2014> reach(Town A, Town C)  # \u2014 stays\r\n"
)
MENDED = (
    f"\ufefforacle reach(Town, Town): {TEMPLATES}\r\n"
    "\r\n"
    "@name far\r\n"
    "reach(Town A, Town B) & reach(Town B, Town C) -> reach(Town A, Town C)  # \u2014 stays\r\n"
)


def test_faults_with_one_remedy_are_mended_in_place(tmp_path: Path) -> None:
    """Keyword, invisible character, dash and predicate are mended, one after another; all else stays, line ends too."""
    path = tmp_path / "my.rules"
    path.write_bytes(FAULTY.encode())
    ended = invoke("check", path, "--fix")

    assert path.read_bytes().decode() == MENDED
    assert ended.exit_code == 0
    changes = [line for line in ended.stderr.splitlines() if ": changed " in line]
    assert f'{path}:1:1: changed "orcale" to "oracle"' in changes
    assert len(changes) == 5


def test_a_choice_is_left_to_the_author(tmp_path: Path) -> None:
    """Nothing is changed where two names are near, or none is declared."""
    path = tmp_path / "my.rules"
    text = (
        f"oracle reach(Town, Town): {TEMPLATES}\noracle reecho(Town, Town): {TEMPLATES}\n"
        "reech(Town A, Town B) & wraps(Town B, Town C) -> warps(Town A, Town C)\n"
    )
    path.write_text(text, encoding="utf-8")
    invoke("check", path, "--fix")

    assert path.read_text(encoding="utf-8") == text


def test_fix_needs_named_files() -> None:
    """The shipped rules are not changed."""
    ended = invoke("check", "--fix")

    assert ended.exit_code == 2
    assert "PATHS" in ended.stderr


@settings(deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from(["a", "bc", "a a"]), max_size=4), st.integers(1, 4), st.integers(1, 4))
def test_only_the_named_text_is_replaced(lines: list[str], line: int, column: int) -> None:
    """A replacement is made where its old text stands, and left out elsewhere."""
    text = "\r\n".join(lines)
    replacement = TextRepair(Place("f", line, column), "a", "xyz")
    result, made = with_replacements(text, [replacement, replacement])
    stands = line <= len(lines) and lines[line - 1][column - 1 : column] == "a"

    assert made == ([replacement] if stands else [])
    assert len(result) == len(text) + 2 * stands
