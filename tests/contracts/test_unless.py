"""Rules with exceptions, by the command line and by `import hapax`."""

from __future__ import annotations

from pathlib import Path

import hapax

SAME_WORDS = """
given link(Thing, Thing)
given big(Thing)
@name first
@generic none
big(Thing X) -> starts(Thing X) unless link(Thing X, Thing Y)
@name second
@generic none
big(Thing Y) -> ends(Thing Y) unless link(Thing X, Thing Y)
fact big("a")
fact link("c", "a")
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "my.rules"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_same_words_about_another_variable_are_another_exception(tmp_path: Path) -> None:
    """`a` starts, because nothing leads from it, and does not end, because a link leads to it."""
    rules = hapax.load_rules(write(tmp_path, SAME_WORDS))
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.derive(rules, kb)

        assert list(hapax.query("starts(X)", rules, kb).rows) == [("a",)]
        assert list(hapax.query("ends(X)", rules, kb).rows) == []
        derived = [statement.text for statement in hapax.derive(rules, kb).statements]
        assert len(derived) == 1


def test_rules_that_share_an_exception_keep_it_when_a_command_uses_only_the_second(tmp_path: Path) -> None:
    """Part of the rules concludes the same as all of them, each proof once."""
    shared = """
given big(Thing)
given odd(Thing)
@name first
@generic none
big(Thing X) -> starts(Thing X) unless odd(Thing X)
@name second
@generic none
big(Thing X) -> ends(Thing X) unless odd(Thing X)
fact big("a")
fact big("b")
fact odd("b")
"""
    rules = hapax.load_rules(write(tmp_path, shared))
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        whole = {s.id for s in hapax.derive(rules, kb).statements if s.rule == "second"}
        part = {s.id for s in hapax.derive(rules, kb, only="second").statements}

        assert part == whole
        assert list(hapax.query("ends(X)", rules, kb).rows) == [("a",)]
