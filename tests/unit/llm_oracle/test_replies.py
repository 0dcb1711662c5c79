"""Replies are read in whatever form models write them, and each line that is no value has a reason."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hapax.llm_oracle.answers import LONGEST_VALUE, MOST_LINES, parse_number, parse_values
from hapax.llm_oracle.drop_reasons import DropReason
from hapax.llm_oracle.prompts import read_prompt
from hapax.llm_oracle.replies import read_reply, read_strictly
from hapax.llm_oracle.reply_question import ReplyQuestion

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
        (f"Dish,country\n{'xy' * 70_000},Italy\npaella,Spain", "paella,Spain"),
    ],
    ids=["unknown declaration", "declaration in a list", "cell beyond the limit of the module csv"],
)
def test_mark_up_that_the_standard_library_refuses_is_read_as_text(text: str, value: str) -> None:
    """A reply that html.parser or csv refuses to read is read as text."""
    assert value in read_reply(text, DISH).values


def test_the_strict_reader_is_links() -> None:
    """`--compat` reads by LINK's rules: a line without a full stop is no value. On LINK's released traces, whose lists
    keep the wanted form, both readers read the same."""
    text = "1. Pizza.\n2. Risotto"
    assert read_strictly(text, DISH).values == ["Pizza"]
    assert list(read_strictly(text, DISH)) == parse_values(text, "B", "Dish")
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
