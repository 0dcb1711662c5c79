"""Winograd schemas: reading and its faults, the prompts, what a reply answers, scores, and asking by the command."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import winograd_fixture as fixture
from cli_fixture import run
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.evaluation.winograd import paper
from hapax.evaluation.winograd.abstraction import abstract_pair, read_concepts
from hapax.evaluation.winograd.cases import Failure, failures_of
from hapax.evaluation.winograd.data import (
    HUMAN,
    MACHINE,
    SOURCES,
    WSC273,
    UnreadableItemsError,
    WinogradItem,
    clause_with,
    core,
    pairs_of,
    pronoun_of,
    pronoun_place,
    replaced,
)
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.prompts import EXEMPLARS, PromptMethod, PromptWording, prompt, pronoun_question
from hapax.evaluation.winograd.reading import read_as_released, read_strictly
from hapax.evaluation.winograd.scores import SentenceAnswer, mcnemar, measure
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase

SHARED = Path(__file__).parent.parent.parent / "shared"
ANNOTATED = SHARED / "data" / "cr_wsc" / "wsc_273_annotated_final.csv"
GENERATED = SHARED / "data" / "cr_wsc" / "generated_modify_tq.csv"
PAPER = SHARED / "papers" / "cr_wsc_aot.txt"
needs_data = pytest.mark.skipif(
    not ANNOTATED.exists(), reason="the published data lies beside the repository, not in it"
)
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's text lies beside the repository, not in it")

GAMES = ("The wrestler", "the ballet dancer")


def pair(*sentences: str, options: tuple[str, str] = GAMES, pronoun: str = "he") -> tuple[WinogradItem, WinogradItem]:
    first, second = (
        WinogradItem(f"s:{number}", "s:0", "s", text, pronoun, options, number, f"s row {number}", "s:0")
        for number, text in enumerate(sentences)
    )
    return first, second


WRESTLER = pair(
    "The wrestler couldn't push the ballet dancer because he was so weak.",
    "The wrestler couldn't push the ballet dancer because he was so strong.",
)


# --- reading ----------------------------------------------------------------------------------------------------------


@needs_data
def test_published_files_hold_136_51_and_205_pairs() -> None:
    """The triple of rows 252 to 254 leaves one row over, and the pair with mismatched flags counts as used."""
    items = read_items(ANNOTATED) + read_items(GENERATED)
    counts = {source: len(pairs_of(item for item in items if item.source == source)) for source in SOURCES}
    pairs = {first.id: second.id for first, second in pairs_of(items)}

    assert counts == {WSC273: 136, HUMAN: 51, MACHINE: 205}
    assert pairs["WSC273:252"] == "WSC273:253"
    assert "WSC273:254" not in pairs
    assert pairs["WSC273:255"] == "WSC273:256"
    assert {(first.answer, second.answer) for first, second in pairs_of(items) if first.source != WSC273} == {(0, 1)}
    assert len({item.family for item in items if item.source == MACHINE}) == 51


@needs_data
def test_faulty_rows_are_listed() -> None:
    """The seven pairs of CR-WSC-H with an option that is not in the sentence are named by row, the one wrong row too."""
    found = json.loads(run("evaluate", "winograd", "data", ANNOTATED, GENERATED, "--json").stdout)
    human = [fault for fault in found["faults"] if fault["source"] == HUMAN]
    mixed = [fault["rows"] for fault in found["faults"] if "marked as used" in fault["what"]]

    assert sorted({fault["rows"][0] for fault in human}) == [40, 56, 66, 106, 152, 170, 266]
    assert mixed == [[24, 25]]
    assert any(fault["rows"] == [471] for fault in found["faults"])
    assert (
        "CR-WSC-H rows 40, 41: the option 'The undisciplined students'"
        in run("evaluate", "winograd", "data", ANNOTATED).stdout
    )


@needs_data
def test_pronouns_of_the_generated_file_are_put_right() -> None:
    """Every pronoun is that of the WSC pair the family was made from; as published 240 of the 410 are another word."""
    heads = sorted({int(item.family.split(":")[1]) for item in read_items(ANNOTATED, HUMAN)})
    first = {item.id: item.pronoun.casefold() for item in read_items(ANNOTATED, WSC273)}
    mended, published = read_items(GENERATED), read_items(GENERATED, published=True)

    for item in mended:
        family = heads[int(item.family.split(":")[1]) // 10]
        assert item.pronoun.casefold() == first[f"{WSC273}:{family}"], item
    assert sum(first.pronoun != second.pronoun for first, second in zip(mended, published, strict=True)) == 240


def test_a_plain_file_pairs_neighbours_of_one_schema(tmp_path: Path) -> None:
    """Rows are paired by labels and options; a third row of a schema stays alone, and nothing shifts behind it."""
    path = fixture.write(tmp_path / "mine.csv", fixture.PLAIN)
    rows = list(csv.reader(path.open(encoding="utf-8")))
    rows.insert(3, ["The uncle slept because he was tired.", "he", "The uncle", "The nephew", "0"])
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows), encoding="utf-8")
    items = read_items(path)

    assert [item.source for item in items] == ["mine"] * 9
    assert [(first.id, second.id) for first, second in pairs_of(items)] == [
        ("mine:0", "mine:1"),
        ("mine:3", "mine:4"),
        ("mine:5", "mine:6"),
        ("mine:7", "mine:8"),
    ]


def test_items_come_back_from_jsonl(tmp_path: Path) -> None:
    """Items written as JSONL are read again with texts, options, labels, pairs and families."""
    before = read_items(fixture.write(tmp_path / "mine.csv", fixture.REVERSED))
    path = tmp_path / "again.jsonl"
    path.write_text("".join(json.dumps(item.to_json()) + "\n" for item in before), encoding="utf-8")
    after = read_items(path)

    assert [replace(item, id="", source="", place="") for item in after] == [
        replace(item, id="", source="", place="") for item in before
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "text,pronoun\nx,he\n", "not every row has"),
        ("a.csv", "", "not every row has"),
        ("a.csv", 'text,pronoun,options,label\nx,he,"[""a""]",0\n', "the options are"),
        ("a.csv", 'text,pronoun,options,label\nx,he,"[""a"",""A""]",0\n', "two different texts"),
        ("a.csv", "text,pronoun,entity1,entity2,label\nx,he,a,b,2\n", "Write 0 or 1"),
        ("a.csv", "text,pronoun,entity1,entity2,label\nx,,a,b,1\n", "pronoun is empty"),
        ("a.jsonl", "{\n", "not valid JSON"),
        ("a.jsonl", "[1]\n", "not a JSON object"),
        ("a.jsonl", '{"text": "x \\ud800", "pronoun": "he", "options": ["a", "b"], "label": 1}\n', "half a character"),
        (
            "a.jsonl",
            '{"text": "x", "pronoun": "he", "options": ["a", "b"], "label": 1, "pair": "p"}\n' * 3,
            "has 3 rows",
        ),
        ("a.jsonl", "[" * 100_000, "not valid JSON"),
    ],
)
def test_unreadable_files_are_told_with_place_and_remedy(tmp_path: Path, name: str, text: str, message: str) -> None:
    """A fault of the file ends the reading with one line, not with a traceback."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    with pytest.raises(UnreadableItemsError, match=message):
        read_items(path)
    assert name in run("evaluate", "winograd", "data", path, code=1).stderr


CELLS = st.one_of(st.text(max_size=12), st.sampled_from(['["a", "b"]', "0", "1", "he"]), st.integers(), st.none())
COLUMNS = ("text", "pronoun", "options", "entity1", "entity2", "label", "mod", "mod_text", "use_tq", "pair", "family")


@settings(max_examples=cases(30), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(COLUMNS), CELLS), max_size=4), st.booleans(), st.booleans())
def test_any_file_is_read_or_refused(rows: list[dict[str, Any]], whole: bool, published: bool) -> None:
    """Cells of any kind, missing or not, give items or one fault that says what to do."""
    filled = [{name: row.get(name, "") for name in COLUMNS} for row in rows] if whole else rows
    with TemporaryDirectory() as folder:
        path = Path(folder) / "any.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in filled), encoding="utf-8")
        try:
            items = read_items(path, published=published)
        except UnreadableItemsError as fault:
            assert str(fault).endswith((".", "]."))  # noqa: PT017  # not every file is refused
        else:
            assert len(items) >= len(pairs_of(items))


@given(st.text(max_size=60), st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8))
def test_exchanging_entities_never_fails(text: str, first: str, second: str) -> None:
    """Any text can be asked for its entities' exchange; without them it stays as it is."""
    made = replaced(text, (first, second), ("alpha", "beta"))

    # An entity is also found under another article.
    if not any(core(entity).casefold() in text.casefold() for entity in (first, second)):
        assert made == text


def test_both_entities_are_exchanged_at_once() -> None:
    """A new name that contains an old one is not exchanged again; articles follow their place in the sentence."""
    made = replaced("Ann thanked Bob. Bob's cat, Ann said, slept.", ("Ann", "Bob"), ("The tall Bob", "the short Ann"))
    fallback = replaced("The man lifted his son.", ("The man", "The son"), ("The nurse", "The porter"))

    assert made == "The tall Bob thanked the short Ann. The short Ann's cat, the tall Bob said, slept."
    assert fallback == "The nurse lifted his porter."


@pytest.mark.parametrize(
    ("text", "pronoun", "fitting"),
    [
        ("He declared war on them. Since their army was larger, they lost.", "he", "they"),
        ("A man heard a cranky man whistle, which made him annoyed.", "He", "him"),
        ("A and B answered it. She invited her to come in.", "it", "She"),
        ("A couldn't lift B because he was so weak.", "he", "he"),
        ("No pronoun here.", "it", "it"),
    ],
)
def test_the_pronoun_is_that_of_the_last_clause(text: str, pronoun: str, fitting: str) -> None:
    """A pronoun of another clause is not the one asked about."""
    item = WinogradItem("i", "p", "s", text, pronoun, ("A", "B"), 0, "f", "p")

    assert pronoun_of(item) == fitting


def test_clauses_are_about_an_entity() -> None:
    """The clause with the pronoun becomes a sentence about either entity; what is owned stays owned."""
    toy = pair("Ann cried because Bob took his toy.", "Ann cried because Bob shared his toy.", pronoun="his")[0]

    assert clause_with(WRESTLER[0], "the ballet dancer") == "The ballet dancer was so weak."
    assert clause_with(toy, "Ann") == "Bob took Ann's toy."
    assert clause_with(replace(toy, pronoun="them"), "Ann") is None


# --- prompts ----------------------------------------------------------------------------------------------------------


def test_questions_say_do_of_they_and_does_of_the_rest() -> None:
    """The rule of the released code, pronouns in small letters."""
    assert pronoun_question("They") == 'What do "they" refer to?'
    assert pronoun_question("them") == 'What do "them" refer to?'
    assert pronoun_question("Her") == 'What does "her" refer to?'


@pytest.mark.parametrize(
    ("method", "source", "digest"),
    [
        (PromptMethod.ZERO_SHOT, HUMAN, "3f86b2c12d12c539"),
        (PromptMethod.ONE_SHOT, HUMAN, "e0b89172dcecf293"),
        (PromptMethod.COT, HUMAN, "a12706b1a38d4479"),
        (PromptMethod.ZS_COT, HUMAN, "eb831963af78dc4a"),
        (PromptMethod.AOT, HUMAN, "e11e37d4aa116cf9"),
        (PromptMethod.WINOWHY, HUMAN, "950019d30b468447"),
        (PromptMethod.ZERO_SHOT, MACHINE, "3f86b2c12d12c539"),
        (PromptMethod.ONE_SHOT, MACHINE, "e0b89172dcecf293"),
        (PromptMethod.COT, MACHINE, "a12706b1a38d4479"),
        (PromptMethod.ZS_COT, MACHINE, "eb831963af78dc4a"),
        (PromptMethod.AOT, MACHINE, "cf09046b72c0bcff"),
        (PromptMethod.WINOWHY, MACHINE, "f2f4329a8645a57f"),
    ],
)
def test_notebook_prompts_are_sent_byte_for_byte(method: PromptMethod, source: str, digest: str) -> None:
    """The digests are those of the prompts that the two released notebooks' own code makes of this pair."""
    asked = tuple(replace(item, source=source) for item in WRESTLER)
    made = prompt((asked[0], asked[1]), method, PromptWording.NOTEBOOK)

    assert hashlib.sha256(made.encode()).hexdigest()[:16] == digest


def test_a_paper_prompt_in_full() -> None:
    """Worked example, blank line, the two questions, the options, and where the answer goes."""
    assert prompt(WRESTLER, PromptMethod.ONE_SHOT, PromptWording.PAPER) == (
        "Q: Compare the two sentences and answer the questions:\n"
        '1. The fish ate the worm. It was hungry. What does "it" refer to?\n'
        '2. The fish ate the worm. It was tasty. What does "it" refer to?\n'
        'Select from ["The fish", "The worm"]\n'
        "A: 1. The fish. 2. The worm\n\n"
        "Q: Compare the two sentences and answer the questions\n"
        '1. The wrestler couldn\'t push the ballet dancer because he was so weak. What does "he" refer to?\n'
        '2. The wrestler couldn\'t push the ballet dancer because he was so strong. What does "he" refer to?\n'
        'Select from ["The wrestler", "the ballet dancer"]\n'
        "A: "
    )


@needs_paper
@pytest.mark.parametrize("method", [method for method, variant in EXEMPLARS if variant is PromptWording.PAPER])
def test_paper_prompts_have_the_papers_words(method: PromptMethod) -> None:
    """Each worked example stands in appendix C word for word."""
    printed = " ".join(PAPER.read_text(encoding="utf-8").replace("**", "").split())

    assert " ".join(EXEMPLARS[method, PromptWording.PAPER].split()) in printed


@needs_data
def test_as_published_rows_are_the_releases() -> None:
    """Small letters but for the exchanged entities, and options and pronoun of the first row, as the notebook does."""
    published = {item.id: item for item in read_items(ANNOTATED, HUMAN, published=True)}

    assert published[f"{HUMAN}:0"].text.startswith("The violent local government refused the peaceful demonstrators a")
    assert published[f"{HUMAN}:24"].text.startswith("The polyhedron rolled off")
    assert published[f"{HUMAN}:22"].text.startswith("although they ran")
    assert published[f"{HUMAN}:266"].options == published[f"{HUMAN}:265"].options


# --- what a reply answers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("1. The wrestler. 2. The ballet dancer", (0, 1)),
        ("1. The ballet dancer\n2. The wrestler", (1, 0)),
        ('A: 1. "he" refers to the dancer. 2. "he" refers to the wrestler.', (1, 0)),
        (
            'In the first sentence, "he" refers to the wrestler. In the second sentence, "he" refers to the ballet dancer.',
            (0, 1),
        ),
        ('In both sentences, "he" refers to the ballet dancer.', (1, 1)),
        (
            "Answer: 1. pusher. 2. pushed\n\nConclusion: As ..\nA: Thus the answer is:\n1. wrestler 2. ballet dancer",
            (0, 1),
        ),
        ("**1.** The wrestler\n**2.** the ballet dancer", (0, 1)),
        ("1. The wrestler 2. The wrestler\n\nQ: more\nA: 1. The ballet dancer 2. The ballet dancer", (0, 0)),
        ("1. The wrestler or the ballet dancer. 2. The wrestler", (None, 0)),
        ("1. Neither. 2. Both.", (None, None)),
        ("", (None, None)),
        ("The wrestler", (None, None)),
    ],
)
def test_strict_reading(reply: str, answers: tuple[int | None, int | None]) -> None:
    """Numbered answers, sentences and `both` are read; what names none or both entities is no answer."""
    assert read_strictly(reply, GAMES) == answers


def test_strict_reading_tells_nested_names_apart() -> None:
    """An entity whose name is part of the other's is meant only where it stands alone."""
    assert read_strictly("1. the laptop bag 2. the laptop", ("The laptop", "The laptop bag")) == (1, 0)


def test_the_released_reading_answers_for_an_empty_reply() -> None:
    """The release finds the empty string in the first option, so a reply that says nothing is half right."""
    assert read_as_released("", GAMES) == (0, 0)
    assert read_as_released("I cannot say.", GAMES, zero_shot=True) == (0, 0)
    assert read_strictly("", GAMES) == (None, None)
    assert read_as_released("1. The wrestler. 2. The ballet dancer", GAMES) == (0, 1)
    assert read_as_released("1. nobody 2. wrestler (first)", GAMES) == (-1, 0)


@given(st.text(max_size=200), st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=10))
def test_no_reply_breaks_a_reading(reply: str, first: str, second: str) -> None:
    """Any reply about any options gives two answers in both readings."""
    assert all(answer in (0, 1, None) for answer in read_strictly(f"1. {reply} 2. {reply}", (first, second)))
    assert all(answer in (0, 1, -1) for answer in read_as_released(f"1. {reply} 2. {reply}", (first, second)))
    assert all(answer in (0, 1, -1) for answer in read_as_released(reply, (first, second), zero_shot=True))


@needs_data
def test_stored_replies_of_gpt3_are_read_as_people_read_them() -> None:
    """Of 24 replies in the annotated file 22 are read as annotated; two name nothing that is an option."""
    rows = list(csv.DictReader(ANNOTATED.open(encoding="utf-8", newline="")))
    read: list[tuple[object, object]] = []
    unread: list[tuple[object, object]] = []
    for number, row in enumerate(rows):
        for reply, options, said in (("gpt3-out", "options", "gpt3-pred"), ("gpt3-out-mod", "mod", "gpt3-pred-mod")):
            if row[reply] and row[options]:
                first, second = json.loads(row[options])
                answers = read_strictly(row[reply], (first, second))
                annotated = (int(row[said]), int(rows[number + 1][said]))
                (unread if None in answers else read).append((answers, annotated))

    assert len(read) == 22
    assert len(unread) == 2
    assert all(answers == annotated for answers, annotated in read)


# --- abstraction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "concepts"),
    [
        (
            "The wrestler can be conceptualized as a strong man, and the dancer can be conceptualized as an artist.",
            ("strong man", "artist"),
        ),
        (
            "Ballet dancer can be conceptualised as a person and wrestler can be conceptualised as a person.",
            ("person X", "person Y"),
        ),
        ("The wrestler can be conceptualized as a strong man.", None),
        ("The wrestler can be conceptualized as a strong man, and he can be conceptualized as an artist.", None),
        ("", None),
    ],
)
def test_concepts_are_read_for_both_entities(reply: str, concepts: tuple[str, str] | None) -> None:
    """A concept of each entity is stated, or there is no mapping; one concept for both becomes X and Y."""
    assert read_concepts(reply, GAMES) == concepts


def test_the_abstract_question_holds_no_entity() -> None:
    """Entities and their articles are gone from both sentences and the options."""
    made = abstract_pair(WRESTLER, ("pusher", "thing that is pushed"))

    assert made is not None
    assert made[0].text == "The pusher could not push the thing that is pushed because he was so weak."
    assert made[0].options == ("pusher", "thing that is pushed")
    assert abstract_pair(pair("Nobody is here.", "Nobody is there."), ("a", "b")) is None


def test_failures_are_tagged_as_the_paper_tells_them_apart() -> None:
    """A concept that names the quality in question is of the wrong level; one that repeats its entity keeps the cue.

    A reply without concepts, or without answers that can be read, did not keep the format; its abstraction is not judged
    by that.
    """
    asked = pair(
        "James asked the rejected man for a favour but he was refused.",
        "James asked the rejected man for a favour but he refused.",
        options=("James", "the rejected man"),
    )

    assert failures_of(WRESTLER, ("strong individual", "weaker individual")) == (Failure.LEVEL,)
    assert failures_of(WRESTLER, None) == (Failure.FORMAT,)
    assert failures_of(asked, ("asker", "someone asked"), answered=False) == (Failure.FORMAT,)
    assert failures_of(asked, ("asker", "rejected person"), answered=False) == (Failure.FORMAT, Failure.CUE)
    assert failures_of(asked, ("asker", "rejected person")) == (Failure.CUE,)
    assert failures_of(asked, ("asker", "someone asked")) == (Failure.OTHER,)


# --- scores -----------------------------------------------------------------------------------------------------------


def answers(rights: str, released: str = "") -> list[SentenceAnswer]:
    """Two letters a pair, two pairs a family: r right, w wrong, u unread."""
    return [
        SentenceAnswer(
            str(n),
            str(n // 2),
            str(n // 4),
            0,
            {"r": 0, "w": 1, "u": None}[letter],
            {"r": 0, "w": 1, "u": -1}[released_letter],
        )
        for n, (letter, released_letter) in enumerate(zip(rights, released or rights, strict=True))
    ]


def test_scores_by_hand() -> None:
    """Three of four pairs, seven of eight sentences and one of two families are right; an unread answer is wrong."""
    found = measure(answers("rrrrrrru", "rrrrrrrr"))

    assert found.strict.single.value == 7 / 8
    assert found.strict.pair.value == 3 / 4
    assert found.strict.consistency.value == 1 / 2
    assert found.released.consistency.value == 1
    assert found.unparsed.value == 1 / 8
    assert found.strict.pair.low < 3 / 4 < found.strict.pair.high


def test_mcnemar_is_exact() -> None:
    """Five to none is p = 2 / 2**5; no difference is p = 1; nothing in common is no test."""
    first, second = answers("rrrrrrrr"), answers("wwwwwrrr")
    test = mcnemar(first, second)

    assert test is not None
    assert (test.only_first, test.only_second, test.p_value) == (5, 0, 0.0625)
    assert mcnemar(first, first) is not None
    assert mcnemar(first, first).p_value == 1.0  # type: ignore[union-attr]  # asked in the line before
    assert mcnemar(first, []) is None


def test_printed_values_that_no_count_gives() -> None:
    """Of the printed shares these are no k of n, rounded or cut; all others are."""
    found = {(printed.table, printed.row, printed.column, printed.value) for printed in paper.impossible()}

    assert found == {
        (1, "GPT3.5 (0-s)", "H single", 60.73),
        (1, "GPT4 (0-s)", "WSC single", 85.92),
        (1, "GPT4 (1-s)", "M pair", 60.94),
        (2, "Zero-shot", "H single", 60.73),
        (2, "ZS CoT", "H single", 40.24),
        (2, "ZS CoT", "H pair", 34.14),
        (2, "ZS CoT", "M pair", 41.18),
        (3, "Consistency", "ZS CoT?", 10.0),
    }


@needs_paper
def test_printed_values_are_the_papers() -> None:
    """Every row of tables 1, 2, 3 and 5 stands in the paper's text as it stands here."""
    text = " ".join(PAPER.read_text(encoding="utf-8").split())
    for printed in (paper.TABLE_1, paper.TABLE_2, paper.TABLE_3, paper.TABLE_5):
        for row, values in printed.items():
            cells = " ".join(f"{value:.3f}".removesuffix("0") for value in values)
            assert f"{row} {cells}" in text, row


# --- asking -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        "plain": fixture.write(tmp_path / "plain.csv", fixture.PLAIN),
        "reversed": fixture.write(tmp_path / "reversed.csv", fixture.REVERSED),
    }


def ask(files: dict[str, Path], *more: str | Path, code: int = 0) -> list[dict[str, Any]]:
    folder = files["plain"].parent
    model = fixture.scripted(folder / "m.json", fixture.script(list(files.values()), fixture.by_association))
    words = ("evaluate", "winograd", "ask", *files.values(), "-m", model, "--db", folder / "w.db", "--json", *more)
    found: list[dict[str, Any]] = json.loads(run(*words, code=code).stdout)
    return found


def pair_accuracy(found: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    pair_accuracies = {}
    for figures in found:
        pair_accuracies[figures["source"], figures["method"]] = figures["strict"]["pair"]["value"]
    return pair_accuracies


def test_association_fails_on_reversed_schemas_and_abstraction_does_not(files: dict[str, Path]) -> None:
    """Asked at once, a model that goes by association gets the plain pairs and no reversed one; in stages it gets all."""
    found = ask(files, "--method", "zero-shot", "--method", "cot", "--method", "aot-staged")

    assert pair_accuracy(found) == {
        ("plain", "zero-shot"): 1.0,
        ("plain", "cot"): 1.0,
        ("plain", "aot-staged"): 1.0,
        ("reversed", "zero-shot"): 0.0,
        ("reversed", "cot"): 0.0,
        ("reversed", "aot-staged"): 1.0,
    }
    assert all(run_figures["unparsed"]["value"] == 0 for run_figures in found)


def test_the_partial_likelihood_ignores_how_common_an_option_is(tmp_path: Path) -> None:
    """By the full likelihood the common name wins both sentences, by the partial one each sentence decides."""
    rows = (
        'text,pronoun,entity1,entity2,label\n"The van overtook the bus because it was so fast.",it,The van,The bus,0\n'
    )
    (tmp_path / "vans.csv").write_text(
        rows + '"The van overtook the bus because it was so slow.",it,The van,The bus,1\n'
    )
    beginnings = {f"The van overtook the bus because the {name}": total for name, total in (("van", -5), ("bus", -20))}
    endings = {("van", "fast"): -4, ("bus", "fast"): -8, ("van", "slow"): -9, ("bus", "slow"): -3}
    sentences = {}
    for (name, quality), total in endings.items():
        beginning = f"The van overtook the bus because the {name}"
        sentences[f"{beginning} was so {quality}."] = beginnings[beginning] + total
    model = fixture.scripted(tmp_path / "m.json", {"likelihood": {**beginnings, **sentences}})
    asked = ("--method", "likelihood", "--method", "likelihood-partial", "-m", model, "--db", tmp_path / "w.db")

    full, partial = json.loads(run("evaluate", "winograd", "ask", tmp_path / "vans.csv", *asked, "--json").stdout)

    assert (full["strict"]["single"]["value"], full["strict"]["pair"]["value"]) == (0.5, 0.0)
    assert (partial["strict"]["single"]["value"], partial["strict"]["pair"]["value"]) == (1.0, 1.0)


@needs_data
def test_the_pronouns_of_the_annotated_file_are_where_it_says() -> None:
    """The place of the pronoun comes from the file, and the rule for files without it finds 269 of 273 places."""
    sentences = [item for item in read_items(ANNOTATED) if item.source == WSC273]
    places = [pronoun_place(item) for item in sentences]
    by_rule = [pronoun_place(replace(item, pronoun_start=None)) for item in sentences]
    starts = [place.start() for place in places if place is not None]

    assert starts == [item.pronoun_start for item in sentences]
    assert (
        sum(place is not None and place.start() == start for place, start in zip(by_rule, starts, strict=True)) == 269
    )


def test_the_mapping_of_stages_is_stored_as_facts(files: dict[str, Path]) -> None:
    """`abstracts_to` holds what each entity was abstracted to, and a goal finds it."""
    ask(files, "--method", "aot-staged")
    folder = files["plain"].parent
    with KnowledgeBase(folder / "w.db") as kb:
        facts = {tuple(fact.arguments) for fact in kb.facts("abstracts_to")}
    rules = folder / "abstraction.rules"
    rules.write_text('oracle abstracts_to(Entity, Concept): "[1] can be conceptualized as [2]"\n', encoding="utf-8")
    output = run("query", 'abstracts_to("The tycoon", C)', "--rules", rules, "--db", folder / "w.db").stdout

    assert ("The tycoon", "first one") in facts
    assert len(facts) == 16
    assert "first one" in output


def test_asking_again_asks_nothing(files: dict[str, Path]) -> None:
    """A budget ends the run with exit code 3; the same command goes on, and a third time all is in the journal."""
    first = ask(files, "--method", "zero-shot", "--max-calls", "2", code=3)
    second = ask(files, "--method", "zero-shot")
    folder = files["plain"].parent
    again = run(
        "evaluate", "winograd", "ask", *files.values(), "-m", f"scripted:{folder / 'm.json'}", "--db", folder / "w.db"
    )

    assert [figures["status"] for figures in first] == ["budget"]
    assert [figures["status"] for figures in second] == ["done", "done"]
    assert "0 calls, 8 answers from the journal" in again.stderr


def test_tables_come_from_stored_runs(files: dict[str, Path], tmp_path: Path) -> None:
    """Tables 1, 2, 3 and 5 in the paper's layout, McNemar's test, the paper's own tables apart, AoT2 without a prompt."""
    answered = ask(files, "--method", "zero-shot", "--method", "aot", "--method", "aot-staged")
    result = run("evaluate", "winograd", "tables", "--db", tmp_path / "w.db")
    released = run("evaluate", "winograd", "tables", "--released", "--db", tmp_path / "w.db")

    assert len(answered) == 6
    assert "Table 2 (strict reading)" in result.stdout
    assert "Table 5 (strict reading)" in result.stdout
    assert "no prompt: neither paper nor release has it" in result.stdout
    assert "McNemar's exact test" in result.stdout
    assert "Reference: the paper's table 2, for other models and replies" in result.stdout
    assert "73.90" in result.stdout
    assert "Table 2 (released reading)" in released.stdout
    assert "no k of 272 gives 85.92" in result.stderr


def test_tables_of_nothing_say_how_to_ask(tmp_path: Path) -> None:
    """A knowledge base without runs has the paper's tables alone, and a remark."""
    KnowledgeBase(tmp_path / "empty.db").close()
    result = run("evaluate", "winograd", "tables", "--db", tmp_path / "empty.db")

    assert "Nothing was asked yet" in result.stderr
    assert "Table 2 (strict reading)" not in result.stdout


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("tables",), "ask"),
        (("cases", "FILE"), "ask"),
        (("judged", "FILE"), "import"),
        (("sheets", "FILE", "--disputed"), "import"),
    ],
)
def test_without_a_knowledge_base_the_command_that_begins_one_is_named(
    files: dict[str, Path], tmp_path: Path, words: tuple[str, ...], first: str
) -> None:
    """Commands that show stored answers name the command that stores them if the file is missing, and create no file."""
    some = str(next(iter(files.values())))
    named = (some if word == "FILE" else word for word in words)
    result = run("evaluate", "winograd", *named, "--db", tmp_path / "no.db", code=1)

    assert f"no.db: there is no such knowledge base. Run `hapax evaluate winograd {first}` first" in result.stderr
    assert not (tmp_path / "no.db").exists()


def test_a_prompt_of_ones_own_fills_a_row_of_table_5(files: dict[str, Path], tmp_path: Path) -> None:
    """AoT2 is asked with the user's text before each question; a method's name is refused for it."""
    own = tmp_path / "own.txt"
    own.write_text("Think of roles.", encoding="utf-8")
    found = ask(files, "--prompt", f"AoT2={own}")
    refused = run(
        "evaluate", "winograd", "ask", files["plain"], "--prompt", f"aot={own}", "--db", tmp_path / "x.db", code=1
    )

    assert {figures["method"] for figures in found} == {"AoT2"}
    assert "is the name of a built-in method" in refused.stderr


def test_cases_stand_side_by_side(files: dict[str, Path], tmp_path: Path) -> None:
    """Replies of two methods to a pair, right or wrong, with tags where the second fails."""
    ask(files, "--method", "zero-shot", "--method", "aot-staged", "--method", "aot")
    words: list[str | Path] = ["evaluate", "winograd", "cases", *files.values(), "--first", "zero-shot"]
    words += ["--db", tmp_path / "w.db"]
    staged = run(*words, "--second", "aot-staged", "--source", "reversed").stdout
    failed = json.loads(run(*words, "--second", "aot", "--source", "reversed", "--json").stdout)

    assert "zero-shot (wrong):" in staged
    assert "aot-staged (right):" in staged
    assert "first one" in staged
    assert {tuple(case["failures"]) for case in failed} == {("format not kept: concepts or answers could not be read",)}
    wrong = json.loads(run(*words, "--second", "zero-shot", "--source", "reversed", "--json").stdout)
    assert [case["failures"] for case in wrong if not case["methods"][1]["right"]] == [[]] * len(wrong)
    assert "Ask first" in run(*words, "--second", "winowhy", code=1).stderr


def test_hostile_replies_and_entities_are_only_text(tmp_path: Path) -> None:
    """Quotes, brackets, Prolog and markup in entities and replies are stored and shown, never run."""
    entity = '[bold]a") :- halt. %'
    path = tmp_path / "odd.jsonl"
    rows = [
        {
            "text": f"{entity} met Bob because he was {word}.",
            "pronoun": "he",
            "options": [entity, "Bob"],
            "label": label,
        }
        for label, word in enumerate(("early", "late"))
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reply = (
        f"{entity} can be conceptualized as a [/]' ) person, Bob can be conceptualized as a host.\n1. Bob 2. Bob\ud800"
    )
    model = fixture.scripted(tmp_path / "m.json", {"defaults": {"generate": reply}})
    words = ("evaluate", "winograd", "ask", path, "-m", model, "--db", tmp_path / "o.db")

    run(*words, "--method", "aot", "--method", "zero-shot")
    assert (
        entity in run("evaluate", "winograd", "cases", path, "--first", "zero-shot", "--db", tmp_path / "o.db").stdout
    )


def test_no_pairs_is_a_fault_with_a_remedy(files: dict[str, Path], tmp_path: Path) -> None:
    """A source that is not there ends the command before a model is asked."""
    result = run(
        "evaluate", "winograd", "ask", files["plain"], "--source", "nowhere", "--db", tmp_path / "n.db", code=1
    )

    assert "no pairs to ask about" in result.stderr


def test_an_unreadable_prompt_is_told(tmp_path: Path) -> None:
    """A prompt file must be there, hold text, and come with a name."""
    from hapax.evaluation.winograd.prompts import read_own

    (tmp_path / "empty.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(HapaxError, match="cannot be read"):
        read_own("x", tmp_path / "gone.txt")
    with pytest.raises(HapaxError, match="is empty"):
        read_own("x", tmp_path / "empty.txt")
