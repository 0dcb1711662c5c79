"""The premises that need no model are tested as soon as their variables have values, and each once."""

from __future__ import annotations

import hapax
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.search.decidable import DecidableFacts, open_parts
from hapax.kb.store import KnowledgeBase

RULES = """
given was_first_made_in(Tool, Year)
given is_sold_in(Tool, City)
oracle was_improved_in(Tool, Year): "[1] was improved in [2]" / "[1] was not improved in [2]" / "?".
@name later
@generic none
was_first_made_in(Tool A, Year M) & is_sold_in(Tool A, City C) & was_improved_in(Tool A, Year N) & M > 1900 & N > M
    -> is_newer(Tool A, Year N, City C)
"""


def parts_after(*names: str) -> list[str]:
    """The parts that are tested once these variables have values, the last of them the newest."""
    library = hapax.parse_rules(RULES)
    rule = library.rule("later")
    with KnowledgeBase() as kb:
        hapax.add_facts(kb, "was_first_made_in", [("plough", 1950)], library)
        hapax.add_facts(kb, "is_sold_in", [("plough", "Ghent")], library)
        facts = DecidableFacts(KnownFacts(kb, library), library, lambda _: None)
        return sorted(str(part) for part in open_parts(rule, names, facts, library))


def test_premises_of_given_facts_are_tested_at_once() -> None:
    """With the tool the facts about it are tested, apart where they share no other variable."""
    assert parts_after("A") == ["is_sold_in(Tool A, City C)", "was_first_made_in(Tool A, Year M) & M > 1900"]


def test_a_comparison_waits_for_the_value_that_a_model_gives() -> None:
    """A comparison with a model's year is no reason to reject a tool before the model was asked."""
    assert parts_after("A", "M") == ["M > 1900", "was_first_made_in(Tool A, Year M)"]
    assert parts_after("A", "M", "N") == ["N > M"]


def test_what_an_earlier_step_tested_is_left_out() -> None:
    """A new value that no such premise mentions brings nothing to test."""
    assert parts_after("A", "C", "N") == ["was_first_made_in(Tool A, Year M) & M > 1900 & N > M"]
    assert parts_after("A", "M", "C") == ["is_sold_in(Tool A, City C)"]
