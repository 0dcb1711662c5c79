"""The grammar refuses libraries that `check` has not seen, and layouts by which it would change a file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hapax.grammar import formatting
from hapax.grammar.arguments import with_article
from hapax.grammar.dependencies import cost_from, plan, refuse_negative_cycles
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.prolog_text import definition_text
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature
from hapax.grammar.terms import Literal

RULE = "@generic none\nroad(Place A, Place B) & road(Place B, Place C) -> leads(Place A, Place C)\n"


def library_of(text: str) -> Library:
    return parse_library([("f.rules", text)])


def test_an_unknown_order_is_told_with_those_there_are() -> None:
    """The error names the order that was wished for and every preset."""
    library = library_of(RULE)
    with pytest.raises(HapaxError, match=r"^No order is called fastest\. Choose one of cheapest, .*link.*\.$"):
        plan(library.rules[0], library, "fastest")  # type: ignore[arg-type]


def test_what_depends_on_its_own_negation_has_no_truth_value() -> None:
    """The error tells the circle, from the predicate back to itself, and of an aggregate that it has no value."""
    negation = library_of(
        "@generic none\nroad(Place A, Place B) & not shut(Place A) -> open(Place A, Place B)\n"
        "@generic none\nroad(Place A, Place B) & open(Place B, Place A) -> shut(Place A)\n"
    )
    with pytest.raises(HapaxError, match=r"^\S+ depends on its own negation \(\S+ <- \S+ <- \S+\), so it has no truth"):
        refuse_negative_cycles(negation)
    aggregate = library_of(
        "given sells(Town, Town)\n"
        "aggregate size(Town A, Number K) := K = count(Town B: sells(Town A, Town B) & size(Town B, Number N))\n"
    )
    with pytest.raises(HapaxError, match=r"^An aggregate depends on itself \(size/2 <- size/2\), so it has no value\."):
        refuse_negative_cycles(aggregate.with_closure())
    refuse_negative_cycles(library_of(RULE))


def test_a_rule_concludes_no_negation() -> None:
    """One that a program makes is refused like one of a file, with its place, its name and the way out."""
    (rule,) = library_of(RULE).rules
    told = f"^{rule.place}: rule {rule.name} concludes the negation not .*\\. Conclude the opposite predicate\\.$"
    with pytest.raises(HapaxError, match=told):
        replace(rule, conclusion=Literal(rule.conclusion.atom, True))


def test_prolog_gets_no_empty_definition() -> None:
    """The error names the predicate, and the way out."""
    signature = PredicateSignature("is_big", ("Number",), PredicateKind.COMPUTED, declared=True)
    with pytest.raises(HapaxError, match=r"^The computed predicate is_big/1 has no definition\. Add"):
        definition_text(signature)


def test_a_layout_that_would_change_the_rules_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect of the layout keeps the file as it is, and asks for a report."""
    assert formatting.formatted_rules(RULE, "f.rules") == RULE
    monkeypatch.setattr(formatting, "_content", lambda text: object())
    with pytest.raises(HapaxError, match=r"^f\.rules: the layout would change the rules\. Please report this file"):
        formatting.formatted_rules(RULE, "f.rules")


def test_nouns_have_their_articles() -> None:
    """Vowels, capital ones too, have another article; None has none."""
    assert [with_article(name) for name in ("int", "Atom", "str", "Library", "NoneType", "None")] == [
        "an int", "an Atom", "a str", "a Library", "NoneType", "None",
    ]  # fmt: skip


def test_a_rule_of_no_library_costs_what_a_model_is_asked_for() -> None:
    """Predicates that nothing mentions are planned like undeclared ones, for which a search would ask."""
    library = library_of("@generic none\nroad(Place A, Place B) & near(Place B, Place C) -> leads(Place A, Place C)\n")
    (rule,) = library.rules
    known, unknown = plan(rule, library), plan(rule, Library())

    assert known.order == unknown.order
    assert list(map(str, known.steps)) == list(map(str, unknown.steps))
    assert cost_from(known, library, 100, 1, {}) == cost_from(unknown, Library(), 100, 1, {})
    assert cost_from(unknown, Library(), 100, 1, {}).calls > 0


def test_an_unknown_rule_is_looked_for_in_the_files_that_were_named() -> None:
    """A file that was given by a relative path is told as it was written; of an absolute one its name is enough."""
    library = parse_library(
        [("own/road.rules", f"@name roads\n{RULE}"), ("/shipped/folder/sea.rules", f"@name seas\n{RULE}")]
    )
    with pytest.raises(HapaxError, match=r"^No rule is named rivers in own/road\.rules, sea\.rules\."):
        library.rule("rivers")
