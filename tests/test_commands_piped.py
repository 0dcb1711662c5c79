"""Output of commands that no terminal reads."""

from __future__ import annotations

import pytest

from hapax.commands import console
from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.scripted import ScriptedModel


def test_a_row_of_a_piped_table_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Cells longer than any screen stay whole and in their row when stdout is no terminal."""
    long = " ".join(100 * ["word"])

    console.print_table(("one", "two"), [(long, "end"), ("short", long)], title="title")

    title, head, first, second = capsys.readouterr().out.splitlines()
    assert title.strip() == "title"
    assert head.split() == ["one", "two"]
    assert first.split() == [*100 * ["word"], "end"]
    assert second.split() == ["short", *100 * ["word"]]


def test_a_script_that_is_not_there_is_told_in_words() -> None:
    """The message names the file and what to do, without the system's number for it."""
    with pytest.raises(HapaxError, match=r"^none\.json: the script cannot be read: No such file or directory\. Name"):
        ScriptedModel.from_file("none.json")
