"""Rewordings that keep the meaning, and the robustness of answers under them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke

from hapax.api import schemas
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses
from hapax.evaluation.winograd.reasoner.parsing import ConlluParser, parser_installed
from hapax.evaluation.winograd.reasoner.wordnet import WordNet
from hapax.evaluation.winograd.rewordings.changes import CHANGES
from hapax.evaluation.winograd.rewordings.making import Rewording, Rewordings
from hapax.evaluation.winograd.rewordings.robustness import robustness, robustness_result
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase

PARSES = """
# text = The dog chased the cat because it barked.
1 The the _ DT _ 2 det _ _
2 dog dog _ NN _ 3 nsubj _ _
3 chased chase _ VBD _ 0 ROOT _ _
4 the the _ DT _ 5 det _ _
5 cat cat _ NN _ 3 dobj _ _
6 because because _ IN _ 8 mark _ _
7 it it _ PRP _ 8 nsubj _ _
8 barked bark _ VBD _ 3 advcl _ _
9 . . _ . _ 3 punct _ _

# text = The cat was chased by the dog because it barked.
1 The the _ DT _ 2 det _ _
2 cat cat _ NN _ 4 nsubjpass _ _
3 was be _ VBD _ 4 auxpass _ _
4 chased chase _ VBN _ 0 ROOT _ _
5 by by _ IN _ 4 agent _ _
6 the the _ DT _ 7 det _ _
7 dog dog _ NN _ 5 pobj _ _
8 because because _ IN _ 10 mark _ _
9 it it _ PRP _ 10 nsubj _ _
10 barked bark _ VBD _ 4 advcl _ _
11 . . _ . _ 4 punct _ _

# text = The dog chases the cat because it barks.
1 The the _ DT _ 2 det _ _
2 dog dog _ NN _ 3 nsubj _ _
3 chases chase _ VBZ _ 0 ROOT _ _
4 the the _ DT _ 5 det _ _
5 cat cat _ NN _ 3 dobj _ _
6 because because _ IN _ 8 mark _ _
7 it it _ PRP _ 8 nsubj _ _
8 barks bark _ VBZ _ 3 advcl _ _
9 . . _ . _ 3 punct _ _

# text = The dogs chased the cats because they barked.
1 The the _ DT _ 2 det _ _
2 dogs dog _ NNS _ 3 nsubj _ _
3 chased chase _ VBD _ 0 ROOT _ _
4 the the _ DT _ 5 det _ _
5 cats cat _ NNS _ 3 dobj _ _
6 because because _ IN _ 8 mark _ _
7 they they _ PRP _ 8 nsubj _ _
8 barked bark _ VBD _ 3 advcl _ _
9 . . _ . _ 3 punct _ _

# text = Because it barked, the dog chased the cat.
1 Because because _ IN _ 3 mark _ _
2 it it _ PRP _ 3 nsubj _ _
3 barked bark _ VBD _ 7 advcl _ _
4 , , _ , _ 7 punct _ _
5 the the _ DT _ 6 det _ _
6 dog dog _ NN _ 7 nsubj _ _
7 chased chase _ VBD _ 0 ROOT _ _
8 the the _ DT _ 9 det _ _
9 cat cat _ NN _ 7 dobj _ _
10 . . _ . _ 7 punct _ _
"""
SENTENCE = "The dog chased the cat because it barked."
WRONG_PARSE = PARSES.replace("10 barked bark _", "10 barked barque _")
FORMS = {
    ("chase", "VBN"): "chased",
    ("chase", "VBZ"): "chases",
    ("bark", "VBZ"): "barks",
    ("dog", "NNS"): "dogs",
    ("cat", "NNS"): "cats",
}
ITEM = WinogradItem("mine:0", "mine:0", "mine", SENTENCE, "it", ("the dog", "the cat"), 0, "mine row 0", "mine:0")


class Forms:
    """Inflection by a table."""

    def __init__(self, forms: Mapping[tuple[str, str], str]) -> None:
        self._forms = forms

    def inflect(self, lemma: str, tag: str) -> str | None:
        return self._forms.get((lemma, tag))


def reworded(kind: str, folder: Path, parses: str = PARSES) -> Rewordings:
    """Rewordings of the sentence without WordNet, so that every machine makes the same."""
    lexicon = WordClasses(wordnet=WordNet(folder))
    return Rewording((kind,), 0, ConlluParser(parses), Forms(FORMS), lexicon).of([ITEM])


@pytest.mark.parametrize(
    ("kind", "text", "pronoun", "options"),
    [
        ("voice", "The cat was chased by the dog because it barked.", "it", ("the dog", "the cat")),
        ("tense", "The dog chases the cat because it barks.", "it", ("the dog", "the cat")),
        ("number", "The dogs chased the cats because they barked.", "they", ("the dogs", "the cats")),
        ("order", "Because it barked, the dog chased the cat.", "it", ("the dog", "the cat")),
    ],
)
def test_a_sentence_is_reworded(tmp_path: Path, kind: str, text: str, pronoun: str, options: tuple[str, str]) -> None:
    """Each kind of rewording gives a sentence that says the same, with its pronoun's place, options and label."""
    made = reworded(kind, tmp_path)

    (original, item) = made.items
    assert (original.text, original.rewording, original.base) == (SENTENCE, "", "mine:0")
    assert (item.text, item.pronoun, item.options, item.answer) == (text, pronoun, options, 0)
    assert item.pronoun_start == text.index(pronoun)
    assert (item.rewording, item.base, item.pair) == (kind, "mine:0", f"mine:0/{kind}")


def test_a_rewording_with_other_events_is_not_kept(tmp_path: Path) -> None:
    """A rewording whose sentence is parsed to other events than the original's is counted and left out."""
    made = reworded("voice", tmp_path, WRONG_PARSE)

    assert [item.rewording for item in made.items] == [""]
    assert (made.counts["voice"].applied, made.counts["voice"].kept) == (1, 0)


def test_an_unknown_rewording_is_refused() -> None:
    """A kind of rewording that does not exist is refused with the kinds that do."""
    with pytest.raises(HapaxError, match="no rewording 'rhyme'"):
        Rewording(("rhyme",), 0, ConlluParser(PARSES), Forms({}))


def test_reworded_sentences_are_written_and_read_alike(tmp_path: Path) -> None:
    """A file of rewordings is read back with the same kinds, originals, pronouns and pairs."""
    made = reworded("order", tmp_path)
    target = tmp_path / "reworded.jsonl"

    schemas.write_rewordings(schemas.Evaluation(made, made.result()), target)
    read = read_items(target)

    fields = ("text", "pronoun", "pronoun_start", "options", "answer", "pair", "rewording", "base")
    for name in fields[:2] + fields[3:]:
        assert [getattr(item, name) for item in read] == [getattr(item, name) for item in made.items], name
    assert read[1].pronoun_start == made.items[1].pronoun_start


def perturbed(number: int, rewording: str, answer: int) -> WinogradItem:
    pair = f"set:{number // 2}/{rewording}"
    identity = f"set:{number}/{rewording}"
    return replace(ITEM, id=identity, pair=pair, source="set", answer=answer, rewording=rewording, base=f"set:{number}")


def test_robustness_counts_answers_that_stay_the_same() -> None:
    """Coverage, accuracy, whole pairs and kept answers of each rewording are those counted by hand."""
    items = []
    for rewording in ("", "voice"):
        items += [perturbed(number, rewording, number % 2) for number in range(4)]
    # Originals: right, right, wrong, unanswered; in the passive: right, unanswered, wrong as before, right.
    chosen = [0, 1, 1, None, 0, None, 1, 1]
    answers = {"rules": {item.id: answer for item, answer in zip(items, chosen, strict=True)}}

    original, voice = robustness(items, answers)

    assert (original.rewording, original.kept, original.test) == ("original", None, None)
    assert [original.coverage.value, original.accuracy.value, original.pairs.value] == [0.75, 2 / 3, 0.5]
    assert [voice.coverage.value, voice.accuracy.value, voice.pairs.value] == [0.75, 2 / 3, 0.0]
    assert voice.kept is not None
    assert (voice.kept.value, voice.kept.count) == (2 / 3, 3)
    assert voice.test is not None
    assert (voice.test.only_first, voice.test.only_second) == (1, 1)
    assert [row[2] for row in robustness_result([original, voice]).tables[0].rows] == ["original", "voice"]


def test_robustness_needs_rewordings() -> None:
    """A file without a rewording is refused with the command that makes some."""
    with pytest.raises(HapaxError, match="hapax evaluate winograd reword FILE"):
        schemas.measure_robustness([ITEM])


def test_stored_answers_of_a_model_are_measured(tmp_path: Path) -> None:
    """Robustness of a model is measured on the answers that `ask` stored, beside the patterns'."""
    rows = []
    for rewording in ("", "context"):
        for text, label in (("it barked.", 0), ("it hissed.", 1)):
            row = {"text": f"The dog chased the cat because {text}", "pronoun": "it", "label": label}
            more = {"options": ["the dog", "the cat"], "base": f"b{label}", "rewording": rewording}
            rows.append({**row, **more, "pair": f"p/{rewording}"})
    path = tmp_path / "reworded.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    database = str(tmp_path / "kb.db")

    asked = invoke("evaluate", "winograd", "ask", str(path), "--method", "likelihood", "--db", database)
    assert asked.exit_code == 0, asked.stderr
    result = invoke("evaluate", "winograd", "robustness", str(path), "--asked", "--db", database, "--json")

    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert [row["rewording"] for row in figures] == ["original", "context"]
    assert figures[0]["method"].startswith("embedded")
    assert figures[1]["kept"]["count"] == 2


def test_robustness_of_the_patterns_from_the_command_line(tmp_path: Path) -> None:
    """The command prints a row for each rewording of a perturbed set as published."""
    path = tmp_path / "enhanced.tsv"
    path.write_text(
        "text_original\tpron\tanswer_a\tanswer_b\tcorrect_answer\ttext_voice\n"
        "The ant could not lift the crumb because it was too heavy .\tit\tthe ant\tthe crumb\tB\t"
        "The crumb could not be lifted by the ant because it was too heavy .\n",
        encoding="utf-8",
    )

    result = invoke("evaluate", "winograd", "robustness", str(path), "--json")

    assert result.exit_code == 0, result.stderr
    figures = json.loads(result.stdout)
    assert [(row["method"], row["rewording"]) for row in figures] == [("patterns", "original"), ("patterns", "voice")]
    assert figures[0]["accuracy"]["value"] == 1.0


def test_leaked_pairs_and_their_rewordings_are_left_out(tmp_path: Path) -> None:
    """With --skip-leaked `robustness` and `hybrid` measure no pair of another source, nor its rewordings."""
    sizes = ("heavy", "weak")

    def row(name: str, animal: str, rewording: str, label: int) -> dict[str, Any]:
        text = f"The {animal} could not lift the crumb because it was too {sizes[label]}."
        if rewording:
            text = f"Rain fell all day. {text}"
        more = {"base": f"{name}{animal}{label}", "rewording": rewording, "pair": f"{name}/{animal}/{rewording}"}
        return {"text": text, "pronoun": "it", "options": [f"the {animal}", "the crumb"], "label": 1 - label, **more}

    paths = []
    for name, animals, rewordings in (("first", ["ant"], [""]), ("second", ["ant", "bee"], ["", "context"])):
        rows = [
            row(name, animal, rewording, label) for animal in animals for rewording in rewordings for label in (0, 1)
        ]
        paths.append(str(tmp_path / f"{name}.jsonl"))
        Path(paths[-1]).write_text("".join(json.dumps(line) + "\n" for line in rows), encoding="utf-8")

    def counts(*more: str) -> dict[tuple[str, str], int]:
        result = invoke("evaluate", "winograd", "robustness", *paths, "--json", *more)
        assert result.exit_code == 0, result.stderr
        return {(row["source"], row["rewording"]): row["coverage"]["count"] for row in json.loads(result.stdout)}

    whole = {("first", "original"): 2, ("second", "original"): 4, ("second", "context"): 4}
    assert counts() == whole
    assert counts("--skip-leaked") == {**whole, ("second", "original"): 2, ("second", "context"): 2}

    database = ("--db", str(tmp_path / "kb.db"))
    assert invoke("evaluate", "winograd", "ask", *paths, "--method", "likelihood", *database).exit_code == 0
    hybrid = ("evaluate", "winograd", "hybrid", *paths, "--method", "patterns", *database, "--json")
    rows = [json.loads(invoke(*hybrid, *more).stdout) for more in ((), ("--skip-leaked",))]
    sentences = [{row["source"]: row["accuracy"]["count"] for row in figures} for figures in rows]
    assert sentences == [{"first": 2, "second": 8}, {"first": 2, "second": 4}]


@pytest.mark.english
@pytest.mark.skipif(not parser_installed() or find_spec("lemminflect") is None, reason="needs the extra english")
@pytest.mark.parametrize(
    ("text", "options", "pronoun", "expected"),
    [
        (
            "The police did not arrest the protesters because they had no weapons.",
            ("the police", "the protesters"),
            "they",
            {"voice": "The protesters were not arrested by the police because they had no weapons."},
        ),
        (
            "Ann thanked Eve although she had been late.",
            ("Ann", "Eve"),
            "she",
            {
                "voice": "Eve was thanked by Ann although she had been late.",
                "order": "Although she had been late, Ann thanked Eve.",
            },
        ),
        (
            "The wolf watched a child until it was dark, and it ran.",
            ("the wolf", "a child"),
            "it",
            {"number": None},
        ),
        (
            "The grandmother scolded her granddaughter because she lied.",
            ("the grandmother", "her granddaughter"),
            "she",
            {"voice": None},
        ),
    ],
)
def test_sentences_are_reworded_by_the_real_parser(
    text: str, options: tuple[str, str], pronoun: str, expected: dict[str, str | None]
) -> None:
    """Real parses give grammatical rewordings, and none where the meaning would change."""
    item = replace(ITEM, text=text, options=options, pronoun=pronoun)
    made = Rewording(tuple(CHANGES)).of([item])

    texts = {reworded.rewording: reworded.text for reworded in made.items}
    assert {kind: texts.get(kind) for kind in expected} == expected


def test_the_knowledge_base_of_a_measure_may_be_empty() -> None:
    """Without stored answers and methods there are no rows, and nothing fails."""
    items = [perturbed(number, rewording, 0) for rewording in ("", "voice") for number in range(2)]
    with KnowledgeBase() as kb:
        assert schemas.measure_robustness(items, (), kb=kb).value == []
