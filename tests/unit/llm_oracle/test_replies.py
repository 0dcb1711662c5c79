"""Replies are read in whatever form models write them, and each line that is no value has a reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.writing.words import with_article
from hapax.llm_oracle.questions.prompts import (
    PromptParts,
    critic_prompt,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
    read_prompt,
    sentence,
    type_claim,
)
from hapax.llm_oracle.reading.link_replies import (
    LONGEST_VALUE,
    MOST_LINES,
    parse_number,
    parse_values,
    parse_yes_no,
    render_values,
    yes_probability,
)
from hapax.llm_oracle.reading.replies import read_reply, read_strictly
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyQuestion

CORPUS = Path(__file__).parents[2] / "replies"
TRACES = Path(__file__).parents[4] / "shared" / "data" / "link" / "released_traces"
DISH = ReplyQuestion("B", "Dish", "[B] is a dish from Italy", forbidden=("Gnocchi",))
YEAR = ReplyQuestion("Y", "Year", "the Titanic sank in [Y]", numeric=True)


def counts(entry: Mapping[str, Any]) -> tuple[int, int, int]:
    """The true values of a reply of the corpus, those of them that are read, and the accepted texts that are none."""
    data_type, sentence = entry["ask"]
    variable = sentence[sentence.index("[") + 1 : sentence.index("]")]
    numeric = entry.get("numeric", False)
    question = ReplyQuestion(variable, data_type, sentence, numeric, tuple(entry.get("forbidden", ())))
    true = [parse_number(str(value)) if numeric else str(value) for value in entry["values"]]
    difference = Counter(true)
    difference.subtract(read_reply(entry["reply"], question, entry.get("finish", "stop")).values)
    lost = sum(count > 0 for count in difference.values())
    return len(true), len(true) - lost, sum(count < 0 for count in difference.values())


@pytest.mark.parametrize(
    ("name", "recall", "junk"),
    [("hard", 0.93, 0.04), ("lists", 0.93, 0.03), ("more_lists", 0.93, 0.03), ("sentences", 0.8, 0.05)],
)
def test_the_corpus_is_read(name: str, recall: float, junk: float) -> None:
    """Most of the true values in replies of many model families are read, and few of the accepted texts are none."""
    entries = yaml.safe_load((CORPUS / f"{name}.yaml").read_text(encoding="utf-8"))
    true, read, false = map(sum, zip(*map(counts, entries), strict=True))

    assert read >= recall * true
    assert false <= junk * (read + false)


def test_json_and_tables_are_read_whole() -> None:
    """Of the values in JSON and in tables .99 are read."""
    texts = "".join(path.read_text(encoding="utf-8") for path in CORPUS.glob("*.yaml"))
    entries = [
        entry
        for entry in yaml.safe_load(texts)
        if "|--" in entry["reply"] or '["' in entry["reply"] or '": ' in entry["reply"]
    ]
    true, read, false = map(sum, zip(*map(counts, entries), strict=True))

    assert len(entries) >= 30
    assert read >= 0.99 * true
    assert false <= 0.01 * true


DROPPED = [
    ("<think>Pizza?</think>\n1. Pasta", DropReason.REASONING),
    ("I'm sorry, but I cannot help with that.", DropReason.REFUSAL),
    ("1. None", DropReason.REFUSAL),
    ("Here are the dishes:\n1. Pasta", DropReason.PREAMBLE),
    ("1. Pasta\n\n## Sweet\n2. Tiramisu", DropReason.HEADING),
    ("1. Pasta\n   - It is made from wheat.\n2. Pizza", DropReason.EXPLANATION),
    ("1. Pasta\n\nI hope this helps!", DropReason.REMARK),
    ("1. Pasta\n2. PASTA", DropReason.REPEAT),
    ("1. Pasta\n2. gnocchi", DropReason.FORBIDDEN),
    ("1. " + "x" * (LONGEST_VALUE + 1), DropReason.TOO_LONG),
    ("1. [B]", DropReason.SLOT),
    ("1. A dish.", DropReason.DATA_TYPE),
    ("1. Pasta\n2. 1.1.1.1", DropReason.EMPTY),
    ("1. a\u202eb", DropReason.CONTROL),
    ("1. x\n" * (MOST_LINES + 5), DropReason.NOT_READ),
]


@pytest.mark.parametrize(("text", "reason"), DROPPED)
def test_a_dropped_line_has_its_reason(text: str, reason: DropReason) -> None:
    """Each line that is not a value is dropped for a reason of the vocabulary."""
    assert reason in [entry.rejected for entry in read_reply(text, DISH).dropped]


def test_only_the_token_limit_drops_a_last_line() -> None:
    """The last line is dropped if the token limit cut it, and is a value if the model ended there."""
    text = "1. Pasta\n2. Piz"

    assert read_reply(text, DISH, "stop").values == ["Pasta", "Piz"]
    assert read_reply(text, DISH, "length").values == ["Pasta"]
    assert [entry.rejected for entry in read_reply(text, DISH, "length").dropped] == [DropReason.CUT]
    assert read_reply("1. Pasta\n2. Pizza\n", DISH, "length").values == ["Pasta", "Pizza"]


ADVERSARIAL = [
    ("1. The Danube River*\n2. Sagittarius A*\n3. Volga", ["The Danube River", "Sagittarius A*", "Volga"]),
    ("1 Pizza\n2 Risotto\n3 Lasagna", ["Pizza", "Risotto", "Lasagna"]),
    ("Dishes from Italy include pizza, risotto, and lasagna.", ["pizza", "risotto", "lasagna"]),
    ('```python\ndishes = ["Pizza", "Risotto"]\n```', ["Pizza", "Risotto"]),
    ('{"values": []}', []),
    ("<ul><li>Pizza</li><li>Risotto</li></ul>", ["Pizza", "Risotto"]),
    ("- Pizza\n- Risotto\n- And many more!", ["Pizza", "Risotto"]),
    ("**Northern Italy**\n- Risotto\n- Polenta\n\n**Southern Italy**\n- Pizza", ["Risotto", "Polenta", "Pizza"]),
    ("1. Pizza\n2. Risotto\n...\n50. Tiramisu", ["Pizza", "Risotto", "Tiramisu"]),
    ("1. Risotto alla milanese is a dish from Italy.", ["Risotto alla milanese"]),
    ("1. B: B is a dish from Italy", []),
    ("* 1. Pizza\n* 2. Risotto", ["Pizza", "Risotto"]),
    ("1. 🍕 Pizza\n2. Risotto ✅", ["Pizza", "Risotto"]),
    ("- Risotto\n\n**Found not only in the north:**\n- Pizza\n- Pasta", ["Risotto", "Pizza", "Pasta"]),
    ("**Pizza**: from Naples\n\n**Risotto**: from Milan\n\nNote: both have variants.", ["Pizza", "Risotto"]),
]


@pytest.mark.parametrize(("text", "values"), ADVERSARIAL)
def test_an_odd_reply_is_read(text: str, values: list[str]) -> None:
    """Forms that are in no set of the corpus are read, too."""
    assert read_reply(text, DISH).values == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("The Titanic sank in April 1912.", [1912]),
        ("1. 1912 - it hit an iceberg 3 hours before", [1912]),
        ("1. 44 BC\n2. ١٩١٢", [-44, 1912]),
        ("maybe between 1910 and 1915", []),
        ("1. 1914-1918", []),
        ("It sank around 2560 BC.", [-2560]),
        ("Ca. 800 BCE", [-800]),
        ("The Titanic sank in AD 79.", [79]),
        ("1912.", [1912]),
    ],
)
def test_a_number_is_read_from_its_sentence(text: str, values: list[int]) -> None:
    """A numeric question gets the one number that an entry states, and none from a range."""
    assert read_reply(text, YEAR).values == values


@given(st.text(max_size=400), st.booleans(), st.sampled_from(["stop", "length"]))
def test_any_reply_is_read_without_a_fault(text: str, numeric: bool, finish_reason: str) -> None:
    """No reply raises, values have no control characters, and every dropped entry has a reason of the vocabulary."""
    question = ReplyQuestion("B", "Dish", "butter is an ingredient in [B]", numeric)
    reply = read_reply(text, question, finish_reason)

    assert all(0 < len(str(value)) <= LONGEST_VALUE and "\x00" not in str(value) for value in reply.values)
    assert all(isinstance(entry.rejected, DropReason) for entry in reply.dropped)


@pytest.mark.parametrize(
    "piece", ["(", "a", "1. a\n", "**", "[", "{", "|", "- ", ",a", ": ", "<think>", "\\boxed{", "a is "]
)
def test_a_huge_reply_is_survived(piece: str) -> None:
    """A megabyte of anything is read up to a limit."""
    reply = read_reply(piece * (10**6 // len(piece)), DISH)

    assert len(reply.entries) <= MOST_LINES + 1
    assert all(len(entry.raw) < 1000 for entry in reply.entries)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<![foo[bar]]><item>basil</item><item>thyme</item>", "basil"),
        ("1. basil\n2. thyme <![foo[<item>a</item>", "basil"),
        (f"Dish,country\n{'xy' * 70_000},Italy\npaella,Spain", "paella"),
    ],
    ids=["unknown declaration", "declaration in a list", "cell beyond the limit of the module csv"],
)
def test_mark_up_that_the_standard_library_refuses_is_read_as_text(text: str, value: str) -> None:
    """A reply that html.parser or csv refuses to read is read as text.

    The limit of csv holds for the whole process, so another reader may have raised it.
    """
    assert any(found.startswith(value) for found in read_reply(text, DISH).values)


def test_the_strict_reader_is_links() -> None:
    """`--compat` reads by LINK's rules: a line without a full stop is no value. On LINK's released traces, whose lists
    keep the wanted form, both readers read the same."""
    text = "1. Pizza.\n2. Risotto"
    assert read_strictly(text, DISH).values == ["Pizza"]
    assert list(read_strictly(text, DISH).entries) == parse_values(text, "B", "Dish")
    if not TRACES.is_dir():
        pytest.skip("LINK's released traces are not here")
    compared = 0
    for path in TRACES.glob("search_*_nl_*.json"):
        for call in json.loads(path.read_text(encoding="utf-8"))["knowledge"]:
            parts = read_prompt(call["prompt"])
            assert parts is not None
            question = ReplyQuestion(parts.variable, parts.data_type, parts.sentence, "year" in parts.data_type)
            assert read_reply(call["reply"], question).values == read_strictly(call["reply"], question).values
            compared += 1

    assert compared > 100


NAMES = st.sampled_from(
    [
        "Pizza",
        "Risotto alla milanese",
        "São Paulo",
        "O'Neal",
        "Abdul-Jabbar",
        "Vitamin B12",
        "Mount Etna",
        "東京",
        "Copper(II) sulfate",
        "Dr. Seuss",
        "Washington, D.C.",
        "steel",
        "honey",
        "2-Propanol",
        "H&M",
        "Казань",
        "AC/DC",
    ]
)
STYLES = {
    "numbers": lambda values: "\n".join(f"{number}. {value}" for number, value in enumerate(values, 1)),
    "numbers, full stops": lambda values: "\n".join(f"{number}. {value}." for number, value in enumerate(values, 1)),
    "brackets": lambda values: "\n".join(f"{number}) {value}" for number, value in enumerate(values, 1)),
    "stop and dash": lambda values: "\n".join(f"{number}.- {value}" for number, value in enumerate(values, 1)),
    "bullets": lambda values: "\n".join(f"- {value}" for value in values),
    "stars": lambda values: "Sure! Here you go:\n\n" + "\n".join(f"*   **{value}**" for value in values),
    "explained": lambda values: "\n".join(
        f"{number}. **{value}**: well known" for number, value in enumerate(values, 1)
    ),
    "quotes": lambda values: "\n".join(f'{number}. "{value}"' for number, value in enumerate(values, 1)),
    "JSON": lambda values: json.dumps({"values": values}),
    "fenced JSON": lambda values: f"Here is the list:\n```json\n{json.dumps(values, ensure_ascii=False)}\n```",
    "objects": lambda values: json.dumps([{"dish": value, "note": "known"} for value in values]),
    "XML": lambda values: "<dishes>\n" + "\n".join(f"<dish>{escape(value)}</dish>" for value in values) + "\n</dishes>",
    "table": lambda values: "| Dish | Note |\n|---|---|\n" + "\n".join(f"| {value} | known |" for value in values),
    "template": lambda values: "\n".join(
        f"{number}. {value} is a dish from Italy." for number, value in enumerate(values, 1)
    ),
}


@given(st.lists(NAMES, min_size=2, max_size=8, unique=True), st.sampled_from(sorted(STYLES)))
def test_values_in_any_style_are_read_back(values: list[str], style: str) -> None:
    """A list of plausible values is read back from any style in which models render it."""
    assert read_reply(STYLES[style](values), DISH).values == values


SENTENCES = [
    ("[A] is the capital of Australia", "City", "The capital of Australia is Canberra.", ["Canberra"]),
    ("[A] wrote Emma", "Person", "Emma was written by Jane Austen in 1815.", ["Jane Austen"]),
    (
        "coffee is grown in [B]",
        "Country",
        "Coffee is grown in many places, such as Brazil and Peru.",
        ["Brazil", "Peru"],
    ),
    ("[A] borders France", "Country", "France and Spain", ["France", "Spain"]),
    ("[A] is a dish", "Dish", "Fish and chips", ["Fish and chips"]),
]


@pytest.mark.parametrize(("sentence", "data_type", "text", "values"), SENTENCES)
def test_a_sentence_gives_its_values(sentence: str, data_type: str, text: str, values: list[str]) -> None:
    """Values come out of a sentence in whichever order it repeats the template, and none out of a refusal."""
    variable = sentence[sentence.index("[") + 1]

    assert read_reply(text, ReplyQuestion(variable, data_type, sentence)).values == values


def test_a_type_that_is_only_numbered_is_no_value() -> None:
    """`Gem 1`, `Gem 2` and so on name nothing; other numbers belong to names, as in `Apollo 11` or `Gem 7`."""
    question = ReplyQuestion("B", "Gem", "[B] is mined in Peru")

    assert read_reply("1. Gem 1\n2. Gem 2\n3. Gem 3", question, "stop").values == []
    assert read_reply("1. Gem 0.\n2. Gem 1.", question, "stop").values == ["Gem 0", "Gem 1"]
    assert read_reply("1. Opal\n2. Gem 7", question, "stop").values == ["Opal", "Gem 7"]


KEPT = [
    ("1. butter.", "butter"),
    ("4.butter.", "butter"),
    ("butter.", "butter"),
    ('5. "butter".', "butter"),
    ("5. **butter**.", "butter"),
    ("7. 7 Up.", "7 Up"),
    ("8. U.S.A..", "U.S.A."),
    ("10. butter (salted).", "butter"),
    ("10. butter (salted.", "butter"),
    ("11. Dairy product - butter.", "butter"),
    ("14. café au lait.", "café au lait"),
    ("16. بامية.", "بامية"),
    ("18. " + "x" * LONGEST_VALUE + ".", "x" * LONGEST_VALUE),
]
STRICT_READER_DROPPED = [
    "1. butter",
    "2. butter...",
    "3. " + "x" * (LONGEST_VALUE + 1) + ".",
    "5. butter/ghee.",
    "6. butter, ghee, lard.",
    "7. B.",
    "7. [B].",
    "8. dish.",
    "9. (nothing).",
    "11.",
    "12. a\x00b.",
    "14. a\ud800b.",
]


@pytest.mark.parametrize(("line", "value"), KEPT)
def test_line_becomes_value(line: str, value: str) -> None:
    """A list item keeps its words and loses numbering, quotes, parentheses, labels and full stop."""
    (parsed,) = parse_values(line, "B", "Dish")

    assert (parsed.value, parsed.rejected, parsed.raw) == (value, None, line)


@pytest.mark.parametrize("line", STRICT_READER_DROPPED)
def test_line_is_dropped_with_a_reason(line: str) -> None:
    """A line that is not a value is dropped with a reason, and the lines before it stay."""
    lines = parse_values(f"10. first.\n\n{line}", "B", "Dish")

    assert len(lines) == 2
    assert lines[1].position == 1
    assert lines[1].rejected


NUMBERS = [
    ("1. 1876.", 1876),
    ("1. 1,876.", 1876),
    ("1. 3.50.", Decimal("3.5")),
    ("1. -40.", -40),
    ("1. 44 BC.", -44),
    ("1. 79 A.D..", 79),
    ("1. about 5 kilograms.", 5),
    ("1. c. 1500.", 1500),
    ("1. " + "9" * 40 + ".", int("9" * 40)),
]


@pytest.mark.parametrize(("line", "number"), NUMBERS)
def test_numeric_type_yields_numbers(line: str, number: int | Decimal) -> None:
    """A numeric type's values are integers or decimals in one form each."""
    (parsed,) = parse_values(line, "Y", "Kilograms", numeric=True)

    assert parsed.rejected is None
    assert parsed.value == number
    assert type(parsed.value) is type(number)


@pytest.mark.parametrize(
    "text", ["5 million", "1914-1918", "19th", "٣", "five", "5 tons", "1e9", "NaN", "1" * 10_000, ""]
)
def test_other_texts_are_no_number(text: str) -> None:
    """Ranges, factors, foreign units and words are no numbers, and a numeric value says so."""
    (parsed,) = parse_values(f"1. x{text}x.", "Y", "Kilograms", numeric=True)

    assert parse_number(text, "Kilograms") is None
    assert parsed.rejected


WORDS = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lo", "Nd"], include_characters=" '-.&"),
    min_size=1,
    max_size=LONGEST_VALUE,
)


def is_plain(value: str) -> bool:
    """A value that says one thing: nothing in it that the clean-up takes for mark-up."""
    import unicodedata

    return (
        value == " ".join(unicodedata.normalize("NFC", value).split())
        and len(value) <= LONGEST_VALUE
        and value[:1].isalpha()
        and value[-1:].isalpha()
        and " - " not in value
        and value.casefold() not in ("dish", "a dish", "the dish", "an dish")
        and not value.startswith(("BB ", "BB="))
        and value != "BB"
        and "values of BB" not in value
        and "value of BB" not in value
    )


@given(st.lists(WORDS.filter(is_plain), max_size=12, unique_by=str.casefold))
def test_rendered_values_are_read_back(values: list[str]) -> None:
    """Parsing a rendered list gives the values themselves, all kept, in order."""
    parsed = parse_values(render_values(values), "BB", "Dish")

    assert [item.value for item in parsed] == values
    assert not any(item.rejected for item in parsed)


YES_NO = [
    ("Yes", True),
    (" yes, it is.", True),
    ("No.", False),
    ("wrong", False),
    ("The answer is no.", False),
    ("It is not true.", None),
    ("yesterday", None),
    ("Is it true or false?", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "verdict"), YES_NO)
def test_free_answer_is_read(text: str, verdict: bool | None) -> None:
    """A free answer counts by its first word, else by its only verdict word, else not at all."""
    assert parse_yes_no(text) is verdict


@given(st.floats(-800, 800), st.floats(-800, 800))
def test_yes_probability_is_a_softmax(yes: float, no: float) -> None:
    """P(yes) lies in [0, 1], does not change when all logits shift, and mirrors P(no)."""
    probability = yes_probability([yes], [no])

    assert 0 <= probability <= 1
    assert probability == pytest.approx(1 - yes_probability([no], [yes]), abs=1e-9)
    assert probability == pytest.approx(yes_probability([yes - 5], [no - 5]), abs=1e-9)


def test_wordings_of_the_released_code() -> None:
    """Lists, single values, exclusion and the critic's question are asked for as LINK's code does, byte by byte."""
    assert (
        knowledge_prompt("B", "butter is an ingredient in [B]", "Dish")
        + exclusion_clause(("naan", "roti"))
        == "Give me 50 values of B to fill in the sentence 'butter is an ingredient in [B]' in the format '1. value.', "
        "where B is a dish. Do not generate these values: naan, roti."
    )
    assert functional_prompt("Y", "the radio was invented in [Y]", "Year") == (
        "Give me the correct value of Y to fill in the sentence 'the radio was invented in [Y]' "
        "in the format '1. value.', where Y is a year."
    )
    assert critic_prompt("Butter is {claim}.") == (
        "For the following question, please answer in a normal life scenario with no special consideration:\n"
        "Question: Is the following statement correct? Please answer yes or no\n"
        "Statement: Butter is {claim}.\n"
        "Answer:"
    )
    assert exclusion_clause(()) == ""


def test_claims_are_sentences() -> None:
    """A claim starts with a capital and ends in one full stop; articles follow the sound."""
    assert sentence("butter is in naan.") == "Butter is in naan."
    assert type_claim("saffron", "Ingredient") == "Saffron is an ingredient."
    assert [with_article(noun) for noun in ("hour", "university", "dish")] == ["an hour", "a university", "a dish"]


@given(st.sampled_from("ABXYZ"), st.text(max_size=50), st.sampled_from(["dish", "food allergen"]), st.integers(1, 999))
def test_prompt_is_read_back(variable: str, words: str, data_type: str, count: int) -> None:
    """Whatever stands in the sentence, the parts of a prompt are found again, with an exclusion clause or without."""
    for values in ((), ("a", "b.")):
        prompt = knowledge_prompt(variable, words, data_type, count) + exclusion_clause(values)
        assert read_prompt(prompt) == PromptParts(variable, words, data_type, count)
    assert read_prompt(functional_prompt(variable, words, data_type)) == PromptParts(variable, words, data_type, 1)
