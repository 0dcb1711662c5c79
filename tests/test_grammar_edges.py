"""Values at the very limits of the rule language, and forms that rules seldom have."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from hapax.grammar import parser, terms
from hapax.grammar.assemble import MAXIMUM_DIGITS, number_value
from hapax.grammar.checks import check_library
from hapax.grammar.dependencies import graph_text, plan
from hapax.grammar.errors import HapaxError, Place, RulesRejected, TextRepair
from hapax.grammar.explanations import explanation
from hapax.grammar.faults import KB_FAULTS, MODEL_FAULTS
from hapax.grammar.fixing import with_replacements
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.link_json import rule_text_of_link_json
from hapax.grammar.occurrences import occurrences
from hapax.grammar.parser import parse_goal, parse_library
from hapax.grammar.prolog_text import program_text, prolog_value
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature, Templates
from hapax.grammar.terms import MAXIMUM_POWER, Atom, Constant, CutDecimal, Literal, decimal_of
from hapax.grammar.verbalize import literal_text


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


def found(text: str) -> list[str]:
    """The messages of the checks of a rule text."""
    return [diagnostic.message for diagnostic in check_library(library_of(text))]


def test_only_an_aggregate_of_the_cycle_is_reported() -> None:
    """Another aggregate of the same file, which depends on facts alone, is right."""
    text = (
        "given p(T, T)\naggregate n(T A, Number K) := K = count(T B: p(T A, T B))\n"
        "aggregate m(T A, Number K) := K = count(T B: q(T A, T B))\n"
        "@generic none\nm(T A, Number K) & p(T A, T B) -> q(T A, T B)\n"
    )

    (fault,) = [message for message in found(text) if "depends on itself" in message]
    assert "the aggregate m/2 depends on itself" in fault


def test_a_constraint_on_one_number_is_broken_by_a_fact() -> None:
    """Its comparison is about all values of the fact."""
    text = "given is_age(Number)\nfact is_age({})\nnever is_age(Number N) & N > 150\n"

    broken = 'the stated facts break "never is_age(Number N) & N > 150"'
    assert broken in found(text.format(151))
    assert broken not in found(text.format(150))


def test_words_without_a_variable_are_quoted_up_to_sixty_characters() -> None:
    """A longer text is cut in the message."""
    for length in (59, 60, 61):
        quoted = "a" * min(length, 60)
        assert f'the argument "{quoted}" does not end in' in refusal(f"p({'a' * length}) -> q(T X)")


def test_a_drawing_shows_signs_without_a_form_as_question_marks() -> None:
    """DOT has no escapes for them."""
    library = library_of('@name "a\\tb"\n@generic none\np(T X) -> q(T X)')

    drawn = "".join(graph_text(library.rules[0], library, "dot"))
    assert "a?b" in drawn
    assert "\t" not in drawn


def test_a_number_that_calculates_to_zero_divides_nothing() -> None:
    """Sums, differences and products of written numbers are calculated; other calculations are left to Prolog."""
    library = library_of("given p(T, T)")

    for divisor in ("0", "1 - 1", "0 * 7", "-(0)", "2 + -2"):
        assert "zero" in goal_refusal(f"X is 1 / ({divisor})", library), divisor
    for divisor in ("1 - Y", "abs(0)", "2 // 3", "min(0, 1)", "Y * 0"):
        assert goal_refusal(f"Y = 1, X is 1 / ({divisor})", library) == "", divisor


def test_a_list_where_a_count_is_wanted_is_quoted() -> None:
    """The refusal shows the argument in whole."""
    library = library_of("given p(T, T)")

    assert "length/2 needs a whole number from 0 on, not [a, b]." in goal_refusal("length(L, [a, b])", library)
    assert "length/2 needs a list, not f(x)." in goal_refusal("length(f(x), N)", library)


def test_faults_of_models_and_of_knowledge_bases_are_explained_without_a_run() -> None:
    """Their examples are no rules, so that nothing is found in them."""
    for faults in (KB_FAULTS, MODEL_FAULTS):
        for fault in faults:
            assert explanation(fault.code).diagnostics == ()


def test_what_a_declaration_lacks_is_read_from_the_rest() -> None:
    """A form that was not written has the declaration's place, and a slot without an argument stays as it is."""
    place, wording = Place("a.rules", 3, 1), Place("a.rules", 3, 20)
    signature = PredicateSignature(
        "likes",
        ("T", "T"),
        PredicateKind.ORACLE,
        Templates("[1] likes [2] and [3]"),
        place=place,
        template_places=(wording,),
    )
    library = Library(signatures=(signature,))

    assert [signature.place_of_template(form) for form in range(3)] == [wording, place, place]
    assert literal_text(Literal(Atom("likes", (Constant("tom"), Constant("tea")))), library) == "tom likes tea and [3]"


def test_a_predicate_named_without_its_arity_is_found() -> None:
    """A name in a broken line counts, without the number of its arguments."""
    names = [(item.name, item.arity) for item in occurrences("a.rules", "symmetric near/2.5\nsymmetric far/2\n")]

    assert names == [("near", None), ("far", 2)]


def test_a_tolerance_names_the_kind_that_cannot_have_one() -> None:
    """Only one right value may differ a little."""
    (message,) = [text for text in found("oracle was_born_in(Person, Year) within 2") if "tolerance" in text]
    assert 'it is declared as "oracle"' in message


def test_a_file_is_read_up_to_many_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a file with more faults than twenty times those that are listed is left out."""
    monkeypatch.setattr(parser, "DIAGNOSTICS_PER_FILE", 1)

    for faults, read in ((20, 20), (21, 21), (22, 21), (40, 21)):
        source = parser._read_statements("many.rules", "given p(\n" * faults)
        assert len(source.diagnostics) == read
        assert len(source.lines) == min(faults, 22)
