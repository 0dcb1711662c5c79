"""Sets of pronoun problems in the formats in which they are published, with sentences of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hapax.evaluation.winograd.data import UnreadableItemsError, WinogradItem, pairs_of, pronoun_place
from hapax.evaluation.winograd.files import ItemFile, read_file, read_items

DPR = """The goat fled from the wolf because it was afraid.
it
The goat,the wolf
The goat

The goat fled from the wolf because it was hungry.
it
The goat,the wolf
the wolf
"""

COLLECTION = """<?xml version="1.0" encoding="UTF-8"?>
<collection>
  <schema>
    <text><txt1>Ann lent Eve a book. Then</txt1><pron>she</pron><txt2>read it.</txt2></text>
    <answers><answer>Ann</answer><answer>Eve</answer></answers>
    <correctAnswer> B. </correctAnswer>
  </schema>
</collection>
"""

BLANKS = [
    {"qID": "X1-1", "sentence": "Ann beat Eve because _ ran fast.", "option1": "Ann", "option2": "Eve", "answer": "1"},
    {"qID": "X1-2", "sentence": "Ann beat Eve because _ ran badly.", "option1": "Ann", "option2": "Eve", "answer": "2"},
]

KNOWREF = [
    {
        "original_sentence": "Tom thanked Jim because Jim had helped.",
        "sentence_with_pronoun": "Tom thanked Jim because [he] had helped.",
        "candidate0": "Tom",
        "candidate1": "Jim",
        "correct_candidate": "candidate1",
    }
]

WINOGENDER = """sentid\tsentence
baker.customer.0.female.txt\tThe baker told the customer that she could bake more.
baker.customer.1.female.txt\tThe baker told the customer that she could pay later.
baker.someone.1.neutral.txt\tThe baker told someone that they could pay later.
"""

TEMPLATES = """occupation(0)\tother-participant(1)\tanswer\tsentence
baker\tcustomer\t1\tThe $OCCUPATION told the $PARTICIPANT that $NOM_PRONOUN could pay later.
"""

WINOBIAS = """1 [The baker] paid the tailor because [he] owed money.
2 The baker paid [the tailor] because [he] had sewn a coat.
"""

LANGUAGES = "\t".join(
    [
        "zh",
        "test",
        "1",
        "猫追老鼠，因为它饿了。",
        json.dumps(["猫", "追", "老鼠", "，", "因为", "它", "饿", "了", "。"]),
        json.dumps(["它", [5, 6], ["它"]]),
        json.dumps([["猫", [0, 1], ["猫"], True], ["老鼠", [2, 3], ["老鼠"], False]]),
    ]
)

PERTURBED = (
    "text_original\tpron\tanswer_a\tanswer_b\tcorrect_answer\ttext_voice\ttext_number\tpron_number\tanswer_a_number"
    "\tanswer_b_number\n"
    "The dog chased the cat because it was angry .\tit\tthe dog\tthe cat\tA\tThe cat was chased by the dog because it "
    "was angry .\tThe dogs chased the cats because they were angry .\tthey\tthe dogs\tthe cats\n"
    "The dog chased the cat because it was tempting .\tit\tthe dog\tthe cat\tB\t-\t-\t-\t-\t-\n"
)


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def brief(items: list[WinogradItem]) -> list[tuple[str, tuple[str, str], int]]:
    return [(item.pronoun, item.options, item.answer) for item in items]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "train.c.txt",
            DPR,
            [("it", ("The goat", "the wolf"), 0), ("it", ("The goat", "the wolf"), 1)],
        ),
        ("PDP.xml", COLLECTION, [("she", ("Ann", "Eve"), 1)]),
        ("train_xl.jsonl", lines(BLANKS), [("_", ("Ann", "Eve"), 0), ("_", ("Ann", "Eve"), 1)]),
        ("Knowref_dev.json", json.dumps(KNOWREF), [("he", ("Tom", "Jim"), 1)]),
        (
            "all_sentences.tsv",
            WINOGENDER,
            [
                ("she", ("the baker", "the customer"), 0),
                ("she", ("the baker", "the customer"), 1),
                ("they", ("the baker", "someone"), 1),
            ],
        ),
        (
            "pro_stereotyped_type1.txt.dev",
            WINOBIAS,
            [("he", ("The baker", "the tailor"), 0), ("he", ("The baker", "the tailor"), 1)],
        ),
        ("dataset.tsv", LANGUAGES, [("它", ("猫", "老鼠"), 0)]),
    ],
)
def test_published_formats_are_read(
    tmp_path: Path, name: str, text: str, expected: list[tuple[str, tuple[str, str], int]]
) -> None:
    """A set is read in the format in which it is published, with pronoun, options and answer, and without a fault."""
    file = read_file(written(tmp_path, name, text))

    assert brief(file.items) == expected
    assert file.faults == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("train.c.txt", DPR), ("train_xl.jsonl", lines(BLANKS)), ("pro_type1.txt.dev", WINOBIAS)],
)
def test_the_two_sentences_of_a_schema_are_a_pair(tmp_path: Path, name: str, text: str) -> None:
    """The two sentences of a published schema form one pair."""
    pairs = pairs_of(read_items(written(tmp_path, name, text)))

    assert [(first.answer, second.answer) for first, second in pairs] == [(0, 1)]


def test_templates_of_winogender_give_six_sentences_each(tmp_path: Path) -> None:
    """A WinoGender template becomes a sentence for each gender, with the participant named and as someone."""
    items = read_items(written(tmp_path, "templates.tsv", TEMPLATES))

    assert [item.text for item in items] == [
        "The baker told the customer that he could pay later.",
        "The baker told the customer that she could pay later.",
        "The baker told the customer that they could pay later.",
        "The baker told someone that he could pay later.",
        "The baker told someone that she could pay later.",
        "The baker told someone that they could pay later.",
    ]
    assert len({item.id for item in items}) == 6
    assert {item.family for item in items} == {"baker.customer", "baker.someone"}


def test_a_pronoun_is_found_in_a_language_without_blanks(tmp_path: Path) -> None:
    """The pronoun of a Chinese sentence is found where the published set states it."""
    (item,) = read_items(written(tmp_path, "dataset.tsv", LANGUAGES))

    place = pronoun_place(item)
    assert item.source == "dataset:zh"
    assert place is not None
    assert place.start() == item.text.index("它")


def test_rewordings_share_their_original(tmp_path: Path) -> None:
    """Each rewording of a perturbed set names its kind and its original, and has its own pronoun and options."""
    items = read_items(written(tmp_path, "enhanced_wsc.tsv", PERTURBED))

    assert [(item.rewording, item.base, item.pronoun, item.options[0]) for item in items] == [
        ("", "enhanced_wsc:0", "it", "the dog"),
        ("voice", "enhanced_wsc:0", "it", "the dog"),
        ("number", "enhanced_wsc:0", "they", "the dogs"),
        ("", "enhanced_wsc:1", "it", "the dog"),
    ]
    assert [item.pair for item in items] == [
        "enhanced_wsc:0",
        "enhanced_wsc:0/voice",
        "enhanced_wsc:0/number",
        "enhanced_wsc:0",
    ]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("train.c.txt", DPR.replace("\nthe wolf\n", "\nthe bear\n"), "the answer 'the bear' is not one of the two"),
        (
            "PDP.xml",
            COLLECTION.replace("<answer>Eve</answer>", "<answer>Eve</answer><answer>Liz</answer>"),
            "3 answers",
        ),
        ("train.jsonl", lines([BLANKS[0] | {"answer": ""}]), "the answer is ''"),
        ("Knowref_dev.json", json.dumps([KNOWREF[0] | {"correct_candidate": "Ann"}]), "one right candidate"),
        ("pro_type1.txt.dev", WINOBIAS + "3 [The baker] slept because [he] was tired.\n", "one other person"),
    ],
)
def test_a_faulty_record_is_refused_with_its_row_or_left_out(
    tmp_path: Path, name: str, text: str, problem: str
) -> None:
    """A faulty record refuses the file and names its row; with `skip_faulty` it is listed and the others are read."""
    path = written(tmp_path, name, text)

    with pytest.raises(UnreadableItemsError, match=rf"{path.name} row \d+: .*{problem}"):
        read_file(path)
    file: ItemFile = read_file(path, skip_faulty=True)
    assert [(fault.used, fault.remedy) for fault in file.faults] == [(False, "left out")]
    assert problem in file.faults[0].problem


def test_an_overlong_cell_of_a_table_is_refused(tmp_path: Path) -> None:
    """A cell longer than Python's CSV reader takes refuses the file instead of ending the program."""
    table = PERTURBED.replace("\n", "\n" + "x" * 200_000 + "\n", 1)

    with pytest.raises(UnreadableItemsError, match=r"enhanced_wsc.tsv: the table cannot be read"):
        read_file(written(tmp_path, "enhanced_wsc.tsv", table))


def test_entities_in_xml_are_refused(tmp_path: Path) -> None:
    """XML that declares entities is refused, even if faulty records are to be left out."""
    bomb = COLLECTION.replace("<collection>", '<!DOCTYPE c [<!ENTITY a "aaaa">]><collection>')

    with pytest.raises(UnreadableItemsError, match="declares entities"):
        read_file(written(tmp_path, "PDP.xml", bomb), skip_faulty=True)


def test_a_faulty_row_of_a_plain_file_can_be_left_out(tmp_path: Path) -> None:
    """A row without a label is left out of a plain file on request, and its neighbours do not become a pair."""
    sentences = ("The ant bit the bug because it was mad.", "It.", "The ant bit the bug because it was near.")
    rows = []
    for text, label in zip(sentences, (0, 7, 1), strict=True):
        rows.append({"text": text, "pronoun": "it", "options": ["the ant", "the bug"], "label": label})
    path = written(tmp_path, "mine.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    with pytest.raises(UnreadableItemsError, match=r"mine.jsonl row 1: the label is '7'"):
        read_items(path)
    items = read_items(path, skip_faulty=True)
    assert [item.id for item in items] == ["mine:0", "mine:2"]
    assert pairs_of(items) == []
