"""Replies that propose entities, and sentences in which entities are exchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.winograd.data import WinogradItem, options_as_named, replaced
from hapax.evaluation.winograd.generation import read_entities


@pytest.mark.parametrize(
    ("reply", "pairs"),
    [
        ("Therefore, the two entities are:\n1. nurse. 2. pilot.\nThe two sentences are:\n1. ..", [("nurse", "pilot")]),
        (
            "entities could be:\n1. Ann scolded Bo because he was late.\n2. Ann consoled Bo because he was late.",
            [("Ann", "Bo")],
        ),
        (
            "the entities would be:\n1. The roof and the floor.\n2. lion - gazelle",
            [("The roof", "the floor"), ("lion", "gazelle")],
        ),
        ("entities are:\n1. Ann (outside) and Bo (inside).\nThe two sentences are:", [("Ann", "Bo")]),
        ("**1. nurse**\n**2. pilot**", [("nurse", "pilot")]),
        (
            "entities could be:\n1. A cheetah chasing a gazelle\n2. Doctor examining a patient in a ward",
            [("A cheetah", "a gazelle"), ("Doctor", "a patient")],
        ),
        (
            "entities are:\n1. Coach and athlete relationship\n2. nurse/patient",
            [("Coach", "athlete"), ("nurse", "patient")],
        ),
        ("entities are:\n1. nurse -> patient\n2. waiter: guest", [("nurse", "patient"), ("waiter", "guest")]),
        ("entities are:\n1. Salt and pepper shaker. 2. Cupboard.", [("Salt and pepper shaker", "Cupboard")]),
        ("Two entities:\n1) **Manager** – someone who decides\n2) **Guests**: people who ask", [("Manager", "Guests")]),
        ("**Entity 1:** Landlord\n**Entity 2:** the tenants", [("Landlord", "the tenants")]),
        ("two entities:\n\n| Entity 1 | Entity 2 |\n|---|---|\n| judge | defendant |", [("judge", "defendant")]),
        ('```json\n{"entity1": "nurse", "entity2": "surgeon"}\n```', [("nurse", "surgeon")]),
        ("<think>the entities are:\n1. cat 2. dog</think>the entities are:\n1. cat. 2. canary.", [("cat", "canary")]),
        ("entities are:\n1. nurse", []),
        ("I am sorry, I cannot help with that.", []),
        ("", []),
    ],
)
def test_entities_of_a_reply(reply: str, pairs: list[tuple[str, str]]) -> None:
    """Every form that models choose is read as the pairs it states; a reply without two entities gives none."""
    assert read_entities(reply) == pairs


@given(st.text(max_size=300))
def test_no_reply_breaks_the_reading_of_entities(reply: str) -> None:
    """Any reply gives pairs of texts, or none."""
    assert all(len(pair) == 2 for pair in read_entities(f"entities are:\n{reply}"))


@pytest.mark.parametrize(
    ("text", "options", "made"),
    [
        (
            "The older students were bullying the younger ones, so we punished them.",
            ("The older students", "The younger students"),
            "The judges were bullying the clerks, so we punished them.",
        ),
        (
            "The customer stabbed one of the tellers. He fled.",
            ("The customer", "The teller"),
            "The judges stabbed the clerks. He fled.",
        ),
        (
            "John saw a man juggling melons in the park, and he was impressed.",
            ("John", "The juggler"),
            "The judges saw the clerks, and he was impressed.",
        ),
        (
            "In July Kamtchatka attacked Yakutsk. They used Kamtchatka's army.",
            ("Kamchatka", "Yakutsk"),
            "In July the judges attacked the clerks. They used the judges' army.",
        ),
        ("Anne gave birth to a daughter. She is charming.", ("Anne", "Anne's daughter"), None),
        ("The house in Porto was sold. It was new.", ("The house", "The mouse"), None),
    ],
)
def test_entities_are_exchanged_however_the_sentence_names_them(
    text: str, options: tuple[str, str], made: str | None
) -> None:
    """A mention in other words or another spelling is exchanged; options that the sentence does not name are not found."""
    item = WinogradItem("mine:0", "mine:0", "mine", text, "he", options, 0, "row 0", "mine:0")
    named = options_as_named(item)

    assert (named and replaced(text, named, ("The judges", "The clerks"))) == made


def test_both_entities_are_exchanged_at_once() -> None:
    """A new name that contains an old one is not exchanged again; articles follow their place in the sentence."""
    made = replaced("Ann thanked Bob. Bob's cat, Ann said, slept.", ("Ann", "Bob"), ("The tall Bob", "the short Ann"))
    fallback = replaced("The man lifted his son.", ("The man", "The son"), ("The nurse", "The porter"))

    assert made == "The tall Bob thanked the short Ann. The short Ann's cat, the tall Bob said, slept."
    assert fallback == "The nurse lifted his porter."
