"""Replies of models to instructions and probing questions: what is an answer, and what is dropped with its reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.link.instruct import Drop, RowVariable, parse_rows
from hapax.evaluation.link.probing_questions import AnswerPair, ParsedReply, first_word, parse_reply
from hapax.evaluation.winograd.generation import read_entities
from hapax.evaluation.winograd.schema_files import WinogradItem, options_as_named, replaced
from hapax.llm_oracle.questions.prompts import InstructionParts, instruction_prompt, read_instruction

ABZ = (RowVariable("A", "Food Allergen"), RowVariable("B", "Dish"), RowVariable("Z", "Ingredient"))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1. A=milk, B=paneer, Z=butter", ("milk", "paneer", "butter")),
        ("12) A = milk; B = paneer; Z = butter.", ("milk", "paneer", "butter")),
        ("- **A**=milk, **B**=paneer, **Z**=butter", ("milk", "paneer", "butter")),
        ("Z=butter, A=milk, B=paneer", ("milk", "paneer", "butter")),
        ("1. A: milk, B: paneer, Z: butter", ("milk", "paneer", "butter")),
        ('1. A="milk", B=“paneer”, Z=butter (clarified)', ("milk", "paneer", "butter")),
        ("1. A=milk, B=Paris, France, Z=butter", ("milk", "Paris", "butter")),
    ],
)
def test_rows_are_read(line: str, values: tuple[str, ...]) -> None:
    """Spellings of a row that say the same are read the same; values are cleaned as a search cleans them."""
    assert parse_rows(line, ABZ) == [values]


@pytest.mark.parametrize(
    ("line", "drop"),
    [
        ("Sure! Here are 50 values:", Drop.NO_ROW),
        ("1. milk, paneer, butter", Drop.NO_ROW),
        ("1. A=milk, B=paneer", Drop.INCOMPLETE),
        ("1. A=, B=paneer, Z=butter", Drop.INCOMPLETE),
        ("1. A=..., B=paneer, Z=butter", Drop.INCOMPLETE),
        ("1. A=milk, A=egg, B=paneer, Z=butter", Drop.INCOMPLETE),
        ("1. A=[A], B=[B], Z=[Z]", Drop.UNUSABLE),
        ("1. A=milk, B=dish, Z=butter", Drop.UNUSABLE),
        ("1. A=milk/egg, B=paneer, Z=butter", Drop.UNUSABLE),
        ("1. A=milk\u202e, B=paneer, Z=butter", Drop.UNUSABLE),
        (f"1. A={'x' * 65}, B=paneer, Z=butter", Drop.UNUSABLE),
        ("A=" * 5000, Drop.UNUSABLE),
    ],
)
def test_hostile_and_faulty_rows_are_dropped_with_a_reason(line: str, drop: Drop) -> None:
    """No line raises, and none is half a statement."""
    assert parse_rows(line, ABZ) == [drop]


def test_a_number_is_asked_of_numeric_types() -> None:
    """A year that is no number drops its row; one that is comes as a number, also the list's own first one."""
    year = (RowVariable("A", "Dish"), RowVariable("Y", "Year", numeric=True))

    found = parse_rows("1. A=naan, Y=soon\n2. A=naan, Y=1\n3. A=naan, Y=1,200", year)

    assert found == [Drop.UNUSABLE, ("naan", 1), ("naan", 1200)]


def test_the_last_line_of_a_reply_that_was_cut_is_no_row() -> None:
    """Where the token limit ended a reply, its last value may be half a word."""
    reply = "1. A=milk, B=paneer, Z=butter\n2. A=egg, B=omelette, Z=yol"

    assert parse_rows(reply, ABZ, cut=True) == [("milk", "paneer", "butter"), Drop.CUT]
    assert Drop.CUT not in parse_rows(f"{reply}\n", ABZ, cut=True)


@given(st.text(), st.booleans())
def test_no_reply_raises(text: str, cut: bool) -> None:
    """Any text at all becomes rows and drops."""
    found = parse_rows(text, ABZ, cut)

    assert all(isinstance(row, Drop) or len(row) == len(ABZ) for row in found)


@pytest.mark.parametrize(
    ("reply", "pair", "positive", "violation"),
    [
        ("Yes", AnswerPair.YES_NO, True, None),
        (" no, because", AnswerPair.YES_NO, False, None),
        ("**True.** It is so.", AnswerPair.TRUE_FALSE, True, None),
        ("'Wrong'", AnswerPair.RIGHT_WRONG, False, None),
        ("The answer is: Yes.", AnswerPair.YES_NO, True, None),
        ("Therefore, the answer (true or false) is: false", AnswerPair.TRUE_FALSE, False, None),
        ("Answer: no", AnswerPair.YES_NO, False, None),
        ("Yes", AnswerPair.TRUE_FALSE, None, "Yes where true or false was asked"),
        ("", AnswerPair.YES_NO, None, "empty reply"),
        ("Yes or no: if PersonX", AnswerPair.YES_NO, None, "repeats the question: Yes or no: if PersonX"),
        ("It depends; yes and no.", AnswerPair.YES_NO, None, "no answer: It depends; yes and no."),
        ("Yesterday", AnswerPair.YES_NO, None, "no answer: Yesterday"),
        ("42", AnswerPair.YES_NO, None, "no answer: 42"),
    ],
)
def test_replies_are_read(reply: str, pair: AnswerPair, positive: bool | None, violation: str | None) -> None:
    """Only the question's own pair of answers, said first, is an answer; all else is a violation with its reason."""
    assert parse_reply(reply, pair) == ParsedReply(positive, violation)


@pytest.mark.parametrize(
    ("reply", "word"),
    [("Yes", "Yes"), (" yes, because", "yes"), ("Yes.\n\nMilk", "Yes"), ('"Yes"', '"'), ("", ""), ("Yes-no", "Yes-no")],
)
def test_the_first_word_counts(reply: str, word: str) -> None:
    """It ends before its punctuation; a reply that begins with a sign begins with no answer."""
    assert first_word(reply) == word


@given(
    st.lists(st.tuples(st.sampled_from("ABCZ"), st.sampled_from(["Dish", "Food Allergen"])), min_size=1, unique=True),
    st.text(max_size=50),
    st.integers(1, 999),
    st.one_of(st.none(), st.integers(1, 10)),
    st.booleans(),
)
def test_an_instruction_is_read_back(
    variables: list[tuple[str, str]], words: str, count: int, wording: int | None, released: bool
) -> None:
    """Whatever stands in the sentence, the parts of an instruction are found again."""
    parts = InstructionParts(tuple(variables), words, count, wording, released)

    assert read_instruction(instruction_prompt(parts)) == parts


@pytest.mark.parametrize(
    ("reply", "pairs"),
    [
        ("Therefore, the two entities are:\n1. nurse. 2. pilot.\nThe two sentences are:\n1. ..", [("nurse", "pilot")]),
        (
            "the entities would be:\n1. The roof and the floor.\n2. lion - gazelle",
            [("The roof", "the floor"), ("lion", "gazelle")],
        ),
        ("entities are:\n1. Ann (outside) and Bo (inside).\nThe two sentences are:", [("Ann", "Bo")]),
        ("**1. nurse**\n**2. pilot**", [("nurse", "pilot")]),
        ("entities are:\n1. Coach and athlete\n2. nurse/patient", [("Coach", "athlete"), ("nurse", "patient")]),
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
    """Lists of entities and of pairs are read as the pairs they state; a reply without two entities gives none."""
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
