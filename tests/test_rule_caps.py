"""Caps of statements, withdrawn rules, and the grammar of templates."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.api.operations import chosen_rules
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.template_text import template_errors, text_errors
from hapax.kb.records import Distribution

WARS = """
oracle ended_in(War, Place): "the [1] ended in [2]" / "the [1] did not end in [2]" / "did the [1] end in [2]?".
oracle was_made_in(Tool, Place): "[1] was made in [2]" / "[1] was not made in [2]" / "was [1] made in [2]?".
given fell_in(Person, War): "[1] fell in the [2]" / "[1] did not fall in the [2]" / "did [1] fall in the [2]?".
given knew(Person, Tool): "[1] knew [2]" / "[1] did not know [2]" / "did [1] know [2]?".
@name relics
{attribute}
fell_in(Person X, War A) & ended_in(War A, Place P) & was_made_in(Tool B, Place P) -> knew(Person X, Tool B).
"""


def test_a_cap_limits_the_statements_of_each_value_and_is_reported(tmp_path: Path) -> None:
    """With `@most 1 per A` each end has one statement for a value of A, and the search says how many it left out."""
    rules = tmp_path / "wars.rules"
    database = tmp_path / "wars.db"
    rules.write_text(WARS.format(attribute="@most 1 per A"), encoding="utf-8")
    options = ("-m", "simulated", "--values", "6", "--calls", "1", "--no-progress", "--db", str(database))
    result = invoke("search", str(rules), *options)

    assert result.exit_code == 0, result.output
    with hapax.KnowledgeBase(database) as kb:
        uses = Counter((record.distribution, dict(record.substitution)["A"]) for record in kb.statements())
    assert set(uses.values()) == {1}
    assert {distribution for distribution, _ in uses} == set(Distribution)
    assert "left out by @most" in result.output
    assert "(@most 1 per A)" in result.output


def test_a_withdrawn_rule_is_searched_only_by_name() -> None:
    """Without names a withdrawn rule is left out; named it is there, with its reason in its text."""
    library = parse_library([("wars.rules", WARS.format(attribute='@withdrawn "proves nothing"'))])

    assert chosen_rules(library) == []
    assert [rule.withdrawn for rule in chosen_rules(library, "relics")] == ["proves nothing"]


@pytest.mark.parametrize("attribute", ["@most 2 per A B", '@withdrawn "a \\"reason\\""'])
def test_attributes_round_trip(attribute: str) -> None:
    """The text of a rule with these attributes parses back to the same rule."""
    library = parse_library([("wars.rules", WARS.format(attribute=attribute))])
    (rule,) = library.rules

    assert str(parse_library([("again.rules", WARS.rpartition("@name")[0] + str(rule))]).rules[0]) == str(rule)
    assert attribute in str(rule)


@pytest.mark.parametrize("value", ["0 per A", "2", "per A", "2 per Z", "two per A", "2 of A"])
def test_a_malformed_cap_is_an_error(value: str) -> None:
    """A cap that is no positive number per variables of the rule is refused."""
    with pytest.raises(HapaxError, match="most"):
        parse_library([("wars.rules", WARS.format(attribute=f"@most {value}"))])


@pytest.mark.parametrize(
    ("template", "error"),
    [
        ("[1] used a [2]", "depends on the value"),
        ("the [1] fell in [2]", "no article"),
        ("[1] fell in in [2]", "stands twice"),
        ("[1] ate an dish of [2]", "does not fit"),
        ("[1] does not uses [2]", "infinitive"),
        ("can [1] goes to [2]?", "infinitive"),
        ("[1] cannot has [2]", "infinitive"),
        ("[1]  likes [2]", "blank"),
        ("[1] likes[2]", "blank"),
    ],
)
def test_ungrammatical_templates_are_named(template: str, error: str) -> None:
    """Errors that no value can mend are found in the words around the slots."""
    assert any(error in found for found in template_errors(template, frozenset({1})))


@pytest.mark.parametrize(
    "template",
    [
        "[1] had had enough of [2]",
        "can ships pass under [1]?",
        "[1] cannot discuss [2] in an hour",
        "[1] has a use for [2]",
        "does [1] pass an honest test of [2]?",
        "did the [2] end in [1]?",
    ],
)
def test_grammatical_templates_pass(template: str) -> None:
    """Good sentences that resemble errors are not reported."""
    assert list(template_errors(template, frozenset({1}))) == []


def test_check_reports_an_ungrammatical_template() -> None:
    """`check` names the predicate."""
    library = parse_library([("a.rules", 'given p(Person, Dish): "[1] eats a [2]" / "[1] eats no [2]" / "[1] [2]?"')])

    assert [item.message for item in check_library(library) if item.code == "HPX216"] == [
        'a template of p/2 is ungrammatical: "a [2]": whether a or an is right depends on the value'
    ]


def test_texts_with_two_articles_or_the_wrong_one() -> None:
    """Values that bring their own article, or begin with a vowel, show in the finished sentence."""
    assert list(text_errors("PersonX saw the the end of a apple")) != []
    assert list(text_errors("PersonX saw a union, an hour and vitamin A in it")) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("an uninhabited island", "a uninhabited island"),
        ("an unidentified bird", "a unidentified bird"),
        ("an onerous task", "a onerous task"),
        ("a unilateral treaty", "an unilateral treaty"),
        ("a ukulele", "an ukulele"),
        ("a utopia", "an utopia"),
        ("a uterus", "an uterus"),
        ("a ewe", "an ewe"),
        ("an urban area", "a urban area"),
        ("an utter failure", "a utter failure"),
    ],
)
def test_the_article_follows_the_sound(right: str, wrong: str) -> None:
    """Words that begin with the letter of a vowel and the sound of a consonant, and the other way round, are known."""
    assert list(text_errors(f"PersonX saw {right}")) == []
    assert list(text_errors(f"PersonX saw {wrong}")) != []
