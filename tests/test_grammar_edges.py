"""Values at the very limits of the rule language, and forms that rules seldom have."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from hapax.grammar import parser, terms
from hapax.grammar.assemble import MAXIMUM_DIGITS, number_value
from hapax.grammar.dependencies import plan
from hapax.grammar.errors import HapaxError, Place, RulesRejected, TextRepair
from hapax.grammar.fixing import with_replacements
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.link_json import rule_text_of_link_json
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.prolog_text import MAXIMUM_POWER, program_text, prolog_value
from hapax.grammar.rules import Library
from hapax.grammar.terms import CutDecimal, decimal_of


def library_of(text: str) -> Library:
    return parse_library([("a.rules", text)])


def refusal(text: str) -> str:
    """The message of a rule text that cannot be read, empty for one that can."""
    try:
        library_of(text)
    except RulesRejected as rejected:
        return str(rejected)
    return ""


def goal_refusal(goal: str, library: Library) -> str:
    try:
        parse_goal(goal, library)
    except HapaxError as refused:
        return str(refused)
    return ""


def test_numbers_have_as_many_digits_as_is_allowed() -> None:
    """One digit more makes a number too long; sign and point are no digits."""
    digits = "7" * MAXIMUM_DIGITS

    assert number_value(digits) == int(digits)
    assert number_value(f"-{digits}") == -int(digits)
    assert number_value(f"0.{digits[1:]}") == Decimal(f"0.{digits[1:]}")
    assert number_value(f"7{digits}") is number_value(f"0.{digits}") is None


def test_numbers_have_powers_of_ten_up_to_the_limit_in_prolog() -> None:
    """Powers at the limit are written exactly, the next ones are refused."""
    assert prolog_value(Decimal(f"1e-{MAXIMUM_POWER}")) == f"1r1{'0' * MAXIMUM_POWER}"
    for power in (MAXIMUM_POWER + 1, -MAXIMUM_POWER - 1):
        with pytest.raises(HapaxError, match=f"Use one between 1e-{MAXIMUM_POWER} and 1e{MAXIMUM_POWER}"):
            prolog_value(Decimal(f"1e{power}"))


def test_fractions_end_up_to_the_limit_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fraction with more places than are kept is cut, one with as many is exact."""
    monkeypatch.setattr(terms, "MOST_PLACES", 5)

    assert decimal_of(Fraction(3, 16)) == Decimal("0.1875")
    assert not isinstance(decimal_of(Fraction(3, 16)), CutDecimal)
    assert isinstance(decimal_of(Fraction(3, 32)), CutDecimal)


def test_statements_and_goals_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement has at most so many signs and words, a goal at most so many characters."""
    library = library_of("given p(T, T)")
    monkeypatch.setattr(parser, "MAXIMUM_GOAL", 8)
    assert goal_refusal("p(ab, c)", library) == ""
    assert "the goal has more than 8 characters" in goal_refusal("p(abc, d)", library)

    monkeypatch.setattr(parser, "MAXIMUM_TOKENS", 7)
    assert refusal("given p(T, T)") == ""
    assert "7" in refusal("given p(T, T, T)")


def test_goals_are_as_deep_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets, and operators that follow each other, make a goal deep."""
    library = library_of("given p(T, T)")
    monkeypatch.setattr(parser, "MAXIMUM_DEPTH", 3)

    assert goal_refusal("((p(a, b)))", library) == goal_refusal("X is 1 + 2 - 3 * 4", library) == ""
    assert goal_refusal("p(a, b), X is (((1)))", library) == ""
    for deeper in ("(((p(a, b))))", "X is 1 + 2 - 3 * 4 + 5"):
        assert "more than 3 nested parentheses or operators" in goal_refusal(deeper, library)


def test_faults_are_listed_up_to_their_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many faults as fit are all listed; of more the rest is counted."""
    monkeypatch.setattr(parser, "DIAGNOSTICS_PER_FILE", 2)

    assert refusal("given p(\ngiven q(").count("error") == 2
    assert "1 more fault" in refusal("given p(\ngiven q(\ngiven r(")
    assert "more fault" not in refusal("given p(\ngiven q(")


def test_parentheses_around_one_variable_change_nothing() -> None:
    """Only those around a calculation group it."""
    text = "@generic none\np(T X, Number M) & N = {} -> q(T X, Number N)"

    assert library_of(text.format("(M) + 1")) == library_of(text.format("M + 1"))
    assert library_of(text.format("(M + 1) * 2")) != library_of(text.format("M + 1 * 2"))


def test_a_step_of_a_plan_is_written_with_its_source() -> None:
    """An equation gives a variable its value, whether it calculates or names another variable; a literal is asked."""
    rule = "@generic none\np(T X, Number M) & K = M & N = M + 1 & q(T X, Number K) -> r(Number N, Number K)"
    library = library_of(rule)

    assert [str(step) for step in plan(library.rules[0], library).steps] == [
        "X by p(X, M)", "M by p(X, M)", "K = M, then q(X, K)", "N = M + 1",
    ]  # fmt: skip


def test_a_repair_is_made_where_the_text_is_as_it_was() -> None:
    """One beyond the end of the text is left out; a mark at the beginning of the text stays before it."""
    text = "\ufeffgiven p(T)\n"
    repairs = [TextRepair(Place("a.rules", line, 7, line, 8), "p", "q") for line in (1, 9)]

    assert with_replacements(text, repairs) == ("\ufeffgiven q(T)\n", repairs[:1])
    assert with_replacements(text[1:], repairs[1:]) == (text[1:], [])


@pytest.mark.parametrize(
    ("text", "laid_out"), [("", ""), (" \n\n", ""), ("# a\n\n", "# a\n"), ("given p(T)", "given p(T)\n")]
)
def test_an_empty_file_stays_empty(text: str, laid_out: str) -> None:
    """Blanks alone are laid out as nothing; other text ends with one line end."""
    assert formatted_rules(text) == laid_out


def test_variables_of_a_link_file_need_three_fields() -> None:
    """Name, type and whether it is generic; the fourth, the kind of node, may be absent."""
    entry = '{"r": {"premise_map": {"p(A, B)": null}, "conclusion_map": {"q(A, B)": null}, "variables": {"A": %s, "B": %s}}}'
    three, two = '["A", "Tool", false]', '["A", "Tool"]'

    assert "p(Tool A, Tool B) -> q(Tool A, Tool B)" in rule_text_of_link_json(entry % (three, three), "f").text
    with pytest.raises(HapaxError, match=r"variable B is not \[name, data type, is generic, node type\]"):
        rule_text_of_link_json(entry % (three, two), "f")


def test_counts_of_goals_may_be_zero() -> None:
    """A length may be 0 and not less."""
    library = library_of("given p(T, T)")

    assert goal_refusal("length(L, 0)", library) == ""
    assert "length/2 needs a whole number from 0 on, not -1" in goal_refusal("length(L, -1)", library)


def test_long_names_are_shortened_in_refusals() -> None:
    """Eighty characters of a goal are shown in whole."""
    library = library_of("given p(T, T)")
    name = "q" * 78

    assert f"{name}/1 is not a predicate" in goal_refusal(f"{name}(X)", library)
    assert f"{'q' * 77}... is not a predicate" in goal_refusal(f"q{name}(X)", library)


def test_a_name_of_several_lines_is_one_comment_of_the_program() -> None:
    """No part of a name becomes Prolog text."""
    library = library_of('@name "a\\nhalt. b"\n@generic none\np(T X, T Y) -> q(T X, T Y)')

    assert "a halt. b" in program_text(library)
    assert "\nhalt" not in program_text(library)


def test_what_a_library_does_not_have_is_told_with_what_is_near() -> None:
    """A near predicate is suggested; without one, the command that lists them. Rules of no file name none."""
    library = library_of(
        "given lives_in(Person, City)\n@name home\n@generic none\nlives_in(T X, T Y) -> knows(T X, T Y)"
    )

    def told(name: str) -> str:
        with pytest.raises(HapaxError) as refused:
            library.signature(name)
        return str(refused.value)

    assert told("live_in/2") == "No predicate live_in/2 in the rules. Did you mean lives_in/2?"
    assert told("zzz/7") == "No predicate zzz/7 in the rules. List the predicates with `hapax compile`."
    bare = Library(rules=tuple(replace(rule, place=Place("")) for rule in library.rules))
    for known, place in ((library, " in a.rules"), (bare, "")):
        with pytest.raises(HapaxError, match=f"^No rule is named zzz{re.escape(place)}\\. Known rules: home\\.$"):
            known.rule("zzz")
