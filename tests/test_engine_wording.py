"""Worked examples in prompts come from given facts and `@example` lines, and never give an answer away."""

from __future__ import annotations

import pytest

from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.search.wording import QuestionWording
from hapax.grammar.errors import RulesRejected
from hapax.grammar.parser import parse_library, parse_rule
from hapax.grammar.printing import format_library
from hapax.kb.records import AtomPattern, FactRecord, Question, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.profiles import FEW_SHOT, PAPER, PLAIN, AnsweredExample
from hapax.llm_oracle.prompts import exclusion_clause

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]"
oracle borders(Country, Country): "[1] borders [2]"
oracle lies_in(City, Country): "[1] lies in [2]"
@example flows_through("the Danube", "Austria")
@example flows_through("the Danube", "Germany")
"""

GENERAL = (AnsweredExample("___ is a planet", "Planet", ("Mars", "Venus")),)


def wording(rules: str, *facts: tuple[str, str, str]) -> QuestionWording:
    """The profile `few-shot` over rules and given facts."""
    library = parse_library([("a.rules", rules)])
    kb = KnowledgeBase()
    kb.add_facts(FactRecord(name, (first, second), ("", ""), Source.GIVEN) for name, first, second in facts)
    return QuestionWording(FEW_SHOT, library, KnownFacts(kb, library), GENERAL)


def asked(predicate: str, first: str | None, second: str | None, data_type: str = "Country") -> Question:
    """A question for the argument that is None."""
    return Question((AtomPattern(predicate, (first, second)),), data_type)


def test_examples_come_from_the_rule_file() -> None:
    """`@example` lines of the asked predicate are shown, as an answered question; the general ones come last."""
    prompt = wording(RULES).request(asked("flows_through", "the Po", None), 5).prompt
    assert 'such that "the Danube flows through ___" is true.\nAnswer:\n1. Austria\n2. Germany\n\n' in prompt
    assert '"___ is a planet"' in prompt
    assert prompt.endswith(
        'Question: List 5 examples of a country such that "the Po flows through ___" is true.\nAnswer:'
    )


def test_given_facts_are_examples() -> None:
    """Given facts of the asked predicate are shown, at most three keys, those with most values first."""
    rivers = [("flows_through", f"river {number}", f"land {number}") for number in range(5)]
    words = wording(RULES, *rivers, ("flows_through", "river 4", "land 9"))
    sentences = [example.sentence for example in words.examples(asked("flows_through", "the Po", None))]
    assert sentences == ["river 4 flows through ___", "the Danube flows through ___", "river 0 flows through ___"]


def test_no_example_is_about_the_asked_key() -> None:
    """A question about the Danube shows neither its own row nor countries that are known to answer it."""
    words = wording(RULES, ("flows_through", "the Rhine", "Germany"), ("flows_through", "the Rhine", "France"))
    examples = words.examples(asked("flows_through", "The Danube", None))
    assert [example.values for example in examples] == [("France",), ("Mars", "Venus")]


def test_a_row_of_which_every_value_is_an_answer_is_no_example() -> None:
    """Nothing is left to show of a river that flows through nothing but countries that answer the question."""
    words = wording(RULES, ("flows_through", "the Rhine", "Germany"), ("flows_through", "the Elbe", "Germany"))
    examples = words.examples(asked("flows_through", "the Rhine", None))
    assert [example.values for example in examples] == [("Austria",), ("Mars", "Venus")]


def test_a_value_that_rules_and_facts_both_give_is_shown_once() -> None:
    """An `@example` line that repeats a given fact adds nothing to the example."""
    words = wording(RULES, ("flows_through", "the Danube", "Austria"), ("flows_through", "the Danube", "Serbia"))
    (example, _) = words.examples(asked("flows_through", "the Po", None))
    assert example.values == ("Austria", "Serbia", "Germany")


def test_accepted_values_are_named_once_in_a_prompt_of_the_paper() -> None:
    """A wording that names forbidden values itself gets no further clause; rejected ones are left to the bias."""
    library = parse_library([("a.rules", RULES)])
    known = KnownFacts(KnowledgeBase(), library)
    for profile in (PLAIN, PAPER):
        words = QuestionWording(profile, library, known)
        made = words.link_request(asked("flows_through", "the Po", None), 5, ("Italy",), ("Chad",), 2)
        assert (made.prompt.count("Italy"), made.prompt.count("Chad"), made.sample_index) == (1, 0, 2)
        assert made.prompt.endswith(exclusion_clause(("Italy",)))


def test_symmetric_facts_do_not_give_answers_away() -> None:
    """A row of another country that names the asked one would state an answer, so it is left out."""
    words = wording(
        RULES, ("borders", "Spain", "France"), ("borders", "Spain", "Portugal"), ("borders", "Chile", "Peru")
    )
    sentences = [example.sentence for example in words.examples(asked("borders", "France", None))]
    assert "Spain borders ___" not in sentences
    assert sentences[0] == "Chile borders ___"


def test_general_examples_about_the_question_are_left_out() -> None:
    """A general example in which the asked value occurs is not shown."""
    words = wording(RULES)
    assert [example.sentence for example in words.examples(asked("lies_in", "Mars", None))] == [
        "the Danube flows through ___"
    ]


def test_an_open_place_of_the_question_is_no_word_of_an_example() -> None:
    """The place that is asked for has no text, so that no example can mention it."""
    library = parse_library([("a.rules", RULES)])
    general = (AnsweredExample("___ is nonetheless a planet", "Planet", ("Mars", "None")),)
    words = QuestionWording(FEW_SHOT, library, KnownFacts(KnowledgeBase(), library), general)
    assert general[0] in words.examples(asked("borders", "Chad", None))


def test_facts_of_models_are_no_examples() -> None:
    """Only given facts are shown, so that a resumed search sends the same prompts."""
    library = parse_library([("a.rules", 'oracle lies_in(City, Country): "[1] lies in [2]"')])
    kb = KnowledgeBase()
    kb.add_facts([FactRecord("lies_in", ("Bonn", "Germany"), ("City", "Country"), Source.MODEL, 0.9)])
    assert QuestionWording(FEW_SHOT, library, KnownFacts(kb, library)).examples(asked("lies_in", "Graz", None)) == ()


def test_examples_are_no_facts_and_survive_formatting() -> None:
    """`@example` lines are read, printed again, checked like facts, and stay apart from given facts."""
    library = parse_library([("a.rules", RULES)])
    assert [str(atom) for atom in library.examples] == [
        'flows_through("the Danube", "Austria")',
        'flows_through("the Danube", "Germany")',
    ]
    assert library.facts == ()
    assert parse_library([("a.rules", format_library(library))]).examples == library.examples
    with pytest.raises(RulesRejected, match="of a fact or an example is not a constant"):
        parse_library([("a.rules", '@example flows_through(River R, "Austria")')])
    with pytest.raises(RulesRejected, match="HPX001"):
        parse_library([("a.rules", "@example the Danube")])
    assert parse_rule("p(T A, T B) & q(T B, T C) -> r(T A, T C)").name
