"""The one layout of rule files; that it is stable and keeps the rules is a contract of fuzz/rules.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.grammar.formatting import formatted_rules

UNTIDY = """\ufeff
# head
type Food<Meal.  type A < B   # two\r
\r


oracle  is_in ( Ingredient,Dish ) within 2 %
  : "[1]  in [2]"/"x [1] [2]".
symmetric borders / 2.
- 3 < X && p(T X , U A)
     ∧ \\+ q(U A, V B) & A <= B*( - 2 + C) \\to r(T X,V B). # end
@name foo @domain "bar" , baz
r(T X) :- p(T X , U A),
# inside
   not q( U A).
"""
TIDY = """# head
type Food < Meal
type A < B  # two

oracle is_in(Ingredient, Dish) within 2 %
  : "[1]  in [2]" / "x [1] [2]"
symmetric borders/2.
-3 < X & p(T X, U A)
  & not q(U A, V B) & A =< B * (-2 + C) -> r(T X, V B)  # end
@name foo
@domain "bar", baz
r(T X) :- p(T X, U A),
# inside
  not q(U A)
"""


def test_the_layout_settles_blanks_signs_and_line_ends() -> None:
    """Comments, quoted texts and the lines of a statement stay; a full stop stays where the next line would go on."""
    assert formatted_rules(UNTIDY) == TIDY
    assert formatted_rules(TIDY) == TIDY
    assert hapax.format_rules("") == ""


def test_a_text_that_cannot_be_parsed_has_no_layout() -> None:
    """The faults are raised as when the rules are read."""
    with pytest.raises(hapax.RulesRejected) as rejected:
        hapax.format_rules("p(T X -> q(T X)", "my.rules")

    assert [fault.code for fault in rejected.value.diagnostics] == ["HPX012"]


def test_the_shipped_rules_read_the_same_in_the_layout() -> None:
    """Every shipped file is laid out, and gives the same library."""
    for path in sorted((Path(__file__).parent.parent / "rules").rglob("*.rules")):
        text = path.read_text(encoding="utf-8")
        assert hapax.parse_rules(hapax.format_rules(text)) == hapax.parse_rules(text)


def test_fmt_writes_files_and_check_only_names_them(tmp_path: Path) -> None:
    """`--check` fails and writes nothing while a file differs; a faulty file stops all of them."""
    path = tmp_path / "my.rules"
    path.write_text("type Food<Meal.\n", encoding="utf-8")
    checked = invoke("fmt", tmp_path, "--check")
    assert (checked.exit_code, checked.stdout) == (1, f"would change {path}\n")
    assert path.read_text(encoding="utf-8") == "type Food<Meal.\n"

    written = invoke("fmt", path)
    assert (written.exit_code, written.stdout) == (0, f"changed {path}\n")
    assert path.read_text(encoding="utf-8") == "type Food < Meal\n"
    assert invoke("fmt", path, "--check").exit_code == 0

    path.write_text("type  Food < Meal\n", encoding="utf-8")
    (tmp_path / "z.rules").write_text("p(T X -> q(T X)\n", encoding="utf-8")
    refused = invoke("fmt", tmp_path)
    assert refused.exit_code == 4
    assert "HPX012" in refused.stdout
    assert path.read_text(encoding="utf-8") == "type  Food < Meal\n"
