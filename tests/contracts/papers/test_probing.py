"""Entailment probing, and the import of LINT."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run
from papers_fixture import FILES, RULES, bring, fault, judge, lines, notes, script, sent, statements, told

import hapax

# --- probing ----------------------------------------------------------------------------------------------------------


P, C, N = "PersonX is allergic to milk", "PersonX is not able to eat fondue", "PersonX is able to eat fondue"
TABLE_12 = f"""
Is it true that if {P}, {C}. Yes
Yes or no: if {P}, {C}. Yes
True or false: if {P}, {C}. True
Right or Wrong: if {P}, {C}. Right
Premise: {P}. Conclusion: {C}. Does premise entail conclusion? Yes
Premise: {P}. Conclusion: {N}. Does premise contradict the conclusion? Yes
Answer the question with yes or no: if {P}, is PersonX able to eat fondue? No
Is it true that if {P}, {N}. No
Yes or no: if {P}, {N}. No
True or false: if {P}, {N}. False
Right or Wrong: if {P}, {N}. Wrong
Premise: {P}. Conclusion: {N}. Does premise entail conclusion? No
Premise: {P}. Conclusion: {C}. Does premise contradict the conclusion? No
""".strip().splitlines()
"""Table 12 about a statement whose conclusion denies, with the right answers."""

PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:"
FONDUE = {("allergy", "head"): [("milk", "fondue")]}
FOUR = {
    ("allergy", "head"): [("milk", "fondue"), ("milk", "naan")],
    ("allergy", "longtail"): [("milk", "matapa"), ("milk", "ayran")],
}


@pytest.fixture
def fondue(tmp_path: Path) -> Path:
    """A knowledge base with one statement."""
    return bring(tmp_path / "kb.db", FONDUE)


@pytest.fixture
def raclette(tmp_path: Path) -> Path:
    """One whose only conclusion is positive."""
    return bring(tmp_path / "raclette.db", {("cook", "head"): [("milk", "raclette")]}, lint="raclette")


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """Two statements of either distribution."""
    return bring(tmp_path / "kb.db", FOUR)


def positives(rows: list[dict[str, Any]]) -> int:
    """The number of right answers that are positive."""
    return sum(row["label"] in ("Yes", "True", "Right") for row in rows)


def probe(database: Path, *more: object, says: object = "Yes.", **content: object) -> Any:
    """Probe all statements with a script; what the command prints as JSON."""
    model = script(database.parent / "s.json", says=says, **content)
    return told("evaluate", "probe", "--db", database, "-m", model, "--sample", 0, *more)


def answers(database: Path, *more: object, **content: object) -> list[dict[str, Any]]:
    """The line that the probing writes about each answer."""
    path = database.with_suffix(".jsonl")
    probe(database, "-o", path, *more, **content)
    return lines(path)


def prompts(database: Path) -> list[str]:
    return [request["prompt"] for request in sent(database, "probe")]


def cell(report: dict[str, Any], distribution: str, domain: str = "total") -> dict[str, Any]:
    return next(row for row in report["table_4"] if (row["domain"], row["distribution"]) == (domain, distribution))


# Questions


def test_the_13_questions_and_labels_are_table_12s_byte_for_byte(fondue: Path) -> None:
    """The critic is asked them as they stand, in their order; template 7 asks the positive side."""
    found = answers(fondue)

    assert [f"{row['question']} {row['label']}" for row in found] == TABLE_12
    assert [request["claim"] for request in sent(fondue, "probe")] == [row["question"] for row in found]


def test_labels_follow_the_polarity(fondue: Path, raclette: Path) -> None:
    """A positive conclusion has 7 positive and 6 negative labels, a denying one 6 and 7; the note compares with LINK."""
    found = answers(raclette)
    said = notes(run("evaluate", "probe", "--db", fondue, "-m", f"scripted:{fondue.parent / 's.json'}"))

    assert (positives(answers(fondue)), positives(found)) == (6, 7)
    assert "53.85 % of 13 right answers are negative (LINK: 51.58 %)" in said
    question = "Answer the question with yes or no: if PersonX is allergic to milk, can PersonX cook raclette?"
    assert question in {row["question"] for row in found}


def test_text_is_asked_behind_the_papers_prefix(fondue: Path) -> None:
    """The prompt is prefix and question; the reply is read by its question's own pair of answers."""
    found = answers(fondue, "--ask", "text")

    assert prompts(fondue)[1] == f"{PREFIX}\nYes or no: if {P}, {C}."
    assert [row["template"] for row in found if row["violation"]] == [3, 4, 10, 11]


def test_a_chain_of_thought_asks_twice_and_keeps_the_rationale(fondue: Path) -> None:
    """Two worked examples, then the rationale, then the answer behind it; an answer inside the rationale is cut off. A
    person reads of a wrong answer the question, the label, the answer or its lack, and the rationale."""
    found = answers(fondue, "--ask", "cot", says="It has cheese.\nTherefore, the answer (yes or no) is: Yes")
    first, second = prompts(fondue)[0], prompts(fondue)[13]
    question = TABLE_12[0].removesuffix(" Yes")
    labels = [re.findall(r"Therefore, the answer \(.*\) is: (\w+)", prompt) for prompt in prompts(fondue)[:13]]
    chatty = script(fondue.parent / "chatty.json", says="Cheese is made of milk.")
    shown = run("evaluate", "probe", "--db", fondue, "-m", chatty, "--ask", "cot").stdout

    assert first.startswith(f"{PREFIX}\n")
    assert first.endswith(f"{question}\nLet's think step by step.\n")
    assert second == f"{first}It has cheese.\nTherefore, the answer (yes or no) is:"
    assert {row["rationale"] for row in found} == {"It has cheese."}
    assert {tuple(sorted(word in ("Yes", "True", "Right") for word in pair)) for pair in labels} == {(False, True)}
    assert {pair[0] in ("Yes", "True", "Right") for pair in labels} == {True, False}
    assert "rationale: Cheese is made of milk." in shown
    assert "label Yes, answer no answer: Cheese is made of milk." in shown


def test_a_model_writes_the_forms_that_grammar_cannot(tmp_path: Path) -> None:
    """`--writer` has a model deny and ask, the run says so, and the forms are journaled, too."""
    rules = """
oracle is_made_from(Dish, Allergen): "[1] is made from [2]"
given has_use_for(Person, Dish): "[1] has use for [2]"
@name use
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> has_use_for(Person X, Dish B).
"""
    values = {("use", "head"): [("milk", "fondue")]}
    database = bring(tmp_path / "kb.db", values, rules=rules, columns={"use": "X,A,B"})
    forms = {"Opposite:": "[1] has no use for [2]", "Question:": "has [1] any use for [2]?"}
    writer = script(tmp_path / "writer.json", generate=forms)
    first, second = (probe(database, "--writer", writer) for _ in range(2))

    assert first["calls"] == {"sent": 13 + 2, "from_journal": 0}
    assert second["calls"] == {"sent": 0, "from_journal": 13 + 2}
    assert len(first["notes"]) == 2
    assert "has no use for" in str([request.get("claim") for request in sent(database, "probe")])


# Figures


def test_a_statement_counts_if_all_its_questions_of_a_kind_are_right(four: Path) -> None:
    """Table 4's cells, delta and shares off format, worked by hand: fondue misses template 5, naan none; both tails all."""
    rows = answers(four)
    right = {row["question"]: row["label"] in ("Yes", "True", "Right") for row in rows}
    (broken,) = [q for q in right if "fondue" in q and "not able" in q and "Does premise entail" in q]
    wrong = {q for q in right if "matapa" in q or "ayran" in q} | {broken}
    report = probe(four, critic={q: 0.9 if yes != (q in wrong) else 0.1 for q, yes in right.items()})
    head, tail = cell(report, "head"), cell(report, "long_tail")
    change = next(row for row in report["change"] if row["domain"] == "total")

    kinds = ("positive", "negative", "every")
    assert [head[kind]["value"] for kind in kinds] == [0.5, 1.0, 0.5]
    assert [tail[kind]["value"] for kind in kinds] == [0.0, 0.0, 0.0]
    assert head["accuracy"]["value"] == pytest.approx(25 / 26)
    assert change["every"]["value"] == -1
    assert head["every"]["low"] < 0.5 < head["every"]["high"]
    fifth = next(row for row in report["templates"] if (row["template"], row["distribution"]) == (5, "head"))
    assert fifth["accuracy"]["value"] == 0.5


def test_domains_have_cells_in_the_papers_order_and_delta_of_nothing_is_not_available(tmp_path: Path) -> None:
    """The total comes last; where the head has no statement right, delta is n/a and not 0."""
    values = {("before", "head"): [("1876", "naan", "1900")], **FONDUE, ("cook", "head"): [("milk", "raclette")]}
    database = bring(tmp_path / "kb.db", values)
    report = probe(database)
    shown = run("evaluate", "probe", "--db", database, "-m", f"scripted:{tmp_path / 's.json'}").stdout
    domains = ["natural properties", "temporal", "outcomes and effects", "total"]

    assert list(dict.fromkeys(row["domain"] for row in report["table_4"])) == domains
    assert next(row for row in report["change"] if row["domain"] == "total")["every"]["value"] is None
    assert "n/a" in next(line for line in shown.splitlines() if "delta" in line)


def test_votes_turn_labels_and_leave_statements_out(four: Path) -> None:
    """A majority against the entailment turns all 13 labels; one against a data type drops the statement."""
    before = {row["question"]: row["label"] for row in answers(four)}
    judge(four, "ann", {("naan", "entailment"): "no", ("matapa", "data type B"): "no"})
    after = {row["question"]: row["label"] for row in answers(four)}

    assert {question for question in before if question not in after} == {q for q in before if "matapa" in q}
    assert {question for question in after if after[question] != before[question]} == {q for q in before if "naan" in q}
    said = notes(run("evaluate", "probe", "--db", four, "-m", f"scripted:{four.parent / 's.json'}", "--sample", 0))
    assert re.search("flipped 1 labels? and excluded 1 statement", said)


def test_what_cannot_be_probed_is_told_with_a_remedy(four: Path) -> None:
    """An empty knowledge base, an unknown rule, and a critic, a temperature or a variant that does not fit the
    release."""
    hapax.KnowledgeBase(four.parent / "empty.db").close()
    words = ("evaluate", "probe", "-m", "simulated", "--db", four)

    assert "hapax search" in fault(*words, "--db", four.parent / "empty.db")
    assert "nosuch" in fault(*words, "--rule", "nosuch")
    assert "--ask text" in fault(*words, "--compat", "released", "--ask", "critic")
    assert "--compat released" in fault(*words, "--variant", "no-examples")
    assert "temperature" in fault(*words, "--compat", "released", "--ask", "text", "--temperature", 0.3)


# As LINK's released code asks

RELEASED = f"""
Is it true that if {P}, {C}? Answer yes or no:
Yes or no: if {P}, {C}.
True or false: if {P}, {C}.
Right or Wrong: if {P}, {C}.
Premise: {P}. Conclusion: {C}. Does premise entail conclusion? Answer yes or no:
Premise: {P}. Conclusion: N. Does premise contradict the conclusion? Answer yes or no:
Is it true that if {P}, N? Answer yes or no:
Yes or no: if {P}, N.
Answer the question with yes or no: if {P}, Q?
True or false: if {P}, N.
Right or Wrong: if {P}, N.
Premise: {P}. Conclusion: N. Does premise entail conclusion? Answer yes or no:
Premise: {P}. Conclusion: {C}. Does premise contradict the conclusion? Answer yes or no:
""".strip().splitlines()
"""The 13 questions of the released code, which a model denies as N and asks as Q?."""

ANSWERS = ("Yes", "Yes", "True", "Right", "Yes", "Yes", "No", "No", "No", "False", "Wrong", "No", "No")
FORMS = {"Convert the statement": " Q?\n", "Negate the statement": " N\n"}


def explained(line: str) -> str:
    """A question of the published run without a chain of thought, which asks for an explanation in three wordings."""
    if "Answer yes or no:" in line:
        return line.replace("Answer yes or no:", "Answer yes or no, and then give an explanation to your answer:")
    if "with yes or no: if" in line:
        return line.replace("with yes or no: if", "with yes or no, and then give an explanation to your answer: if")
    return f"{line} Also give an explanation to the answer."


def bare(line: str) -> str:
    """A question before a chain of thought, which does not ask for yes or no."""
    return line.replace(" Answer yes or no:", "").replace("the question with yes or no: if", "the question: if")


@pytest.mark.parametrize(
    ("options", "wording", "tokens"),
    [((), explained, 256), (("--variant", "no-rationale"), lambda line: line, 16)],
)
def test_the_released_questions_byte_for_byte(
    fondue: Path, options: tuple[str, ...], wording: Callable[[str], str], tokens: int
) -> None:
    """A model writes question and negation in 32 tokens at temperature .9; then prefix and question, in their order."""
    found = answers(fondue, "--compat", "released", "--ask", "text", *options, generate=FORMS)
    writer = [request for request in sent(fondue, "writer") if "minimal edits" in request["prompt"]]

    assert [request["prompt"] for request in writer] == [
        f"Convert the statement to a question with minimal edits: {C}.",
        f"Negate the statement with minimal edits: {C}.",
    ]
    assert {(r["parameters"]["max_tokens"], r["parameters"]["temperature"]) for r in writer} == {(32, 0.9)}
    assert prompts(fondue) == [f"{PREFIX}\n{wording(line)}" for line in RELEASED]
    assert {(r["parameters"]["max_tokens"], r["parameters"]["temperature"]) for r in sent(fondue, "probe")} == {
        (tokens, 0.9)
    }
    assert tuple(row["label"] for row in found) == ANSWERS


TRACTOR = (
    "PersonX was born in Roman Republic",
    "PersonX was not able to use tractor",
    "The Roman Republic existed around 509-27 BC. Tractor was invented in 1892. The Roman Republic was long before "
    "when tractor was invented.",
)
MANGO = (
    "PersonX is allergic to mango",
    "PersonX is not able to eat mango rice pudding",
    "Mango is an ingredient in mango rice pudding.",
)


def example(place: int, premise: str, conclusion: str, reason: str) -> str:
    """A worked example of the released chain of thought."""
    line = bare(RELEASED[place]).replace(P, premise).replace(C, conclusion)
    pairs = {"True": "true or false", "False": "true or false", "Right": "right or wrong", "Wrong": "right or wrong"}
    pair = pairs.get(ANSWERS[place], "yes or no")
    return f"{line}\nLet's think step by step.\n{reason}\nTherefore, the answer ({pair}) is: {ANSWERS[place]}\n"


def test_the_released_worked_examples_are_drawn_by_seed_42(fondue: Path) -> None:
    """Python's own chance draws a polarity and two forms for each question of a chain of thought."""
    thought = "It has milk.\nTherefore, the answer is yes."
    probe(fondue, "--compat", "released", "--ask", "cot", generate={**FORMS, "step by step": thought}, says="Yes")
    asked = [prompt for prompt in prompts(fondue) if prompt.endswith("step by step.\n")]
    closings = [prompt for prompt in prompts(fondue) if prompt.endswith("is:")]

    chance = random.Random(42)
    for place, prompt in enumerate(asked):
        kinds = [range(13)[:6], range(13)[6:]]
        first, second = kinds[::-1] if chance.sample([0, 1], 1)[0] else kinds
        tractor = example(chance.sample(first, 1)[0], *TRACTOR)
        mango = example(chance.sample(second, 1)[0], *MANGO)
        question = f"{bare(RELEASED[place])}\nLet's think step by step.\n"
        assert prompt == f"{PREFIX}\n{tractor}{mango}{question}"
    assert len(asked) == 13
    assert closings[1] == f"{asked[1]}\nIt has milk.\nTherefore, the answer (yes or no) is:"


def test_variants_of_the_release(fondue: Path, raclette: Path) -> None:
    """Without examples the prefix stands before the question, and the thought stays whole. Positive conclusions are
    asked about in the negative form, by mistake."""
    cot, text = (("--compat", "released", "--ask", way) for way in ("cot", "text"))
    thought = "It has milk.\nTherefore, no."
    whole = answers(fondue, *cot, "--variant", "no-examples", generate={**FORMS, "step by step": thought}, says="Yes")
    published = answers(raclette, *text, generate=FORMS)

    assert prompts(fondue)[1] == f"{PREFIX}\n{RELEASED[1]}\nLet's think step by step.\n"
    assert {row["rationale"] for row in whole} == {thought}
    assert positives(published) == 6


def test_the_release_counts_a_reply_off_format_as_wrong(fondue: Path) -> None:
    """Only the first word counts; a statement that people flipped counts one less its accuracy."""
    options = ("--compat", "released", "--ask", "text")
    chatty = probe(fondue, *options, generate=FORMS, says="Well, it depends.")
    judge(fondue, "ann", {("fondue", "entailment"): "no"})
    flipped = probe(fondue, *options, generate=FORMS, says="Well, it depends.")

    assert cell(chatty, "head")["accuracy"]["value"] == 0
    assert cell(flipped, "head")["accuracy"]["value"] == 1


# --- lint -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lint").mkdir()
    for name, text in FILES.items():
        (tmp_path / "lint" / name).write_text(text, "utf-8")
    (tmp_path / "rules.json").write_text(json.dumps(RULES), "utf-8")
    return tmp_path


IMPORT = ("evaluate", "lint", "lint", "--rules", "rules.json", "--db", "lint.db")


def test_csvs_become_statements(folder: Path) -> None:
    """Each distinct complete row is a statement in LINK's words, with its year as a number and underscores as blanks."""
    said = notes(run(*IMPORT))
    with hapax.KnowledgeBase("lint.db", read_only=True) as kb:
        (theremin,) = kb.statements(rule="rule7", distribution=hapax.Distribution.LONG_TAIL)

    assert set(statements(folder / "lint.db")) == {
        "If PersonX is allergic to dairy, then PersonX is not able to eat mashed potatoes.",
        "If PersonX is allergic to gluten, then PersonX is not able to eat bread.",
        "If PersonX was born in Roman Empire, then PersonX could not use tractor.",
        "If PersonX is allergic to dairy, then PersonX is not able to eat mysore pak.",
        "If PersonX is allergic to gluten, then PersonX is not able to eat tofu, fried.",
        "If PersonX was born in Hittite Empire, then PersonX could not use theremin.",
    }
    assert dict(theremin.substitution) == {"P": "PersonX", "B": "Hittite Empire", "A": "theremin", "Y": 1920}
    assert "1 repeated row and 1 row with an empty cell; people flipped 1 label" in said


def test_import_counts_as_table_16_and_measures_delta(folder: Path) -> None:
    """Rules and statements by domain, and how much likelier the head is; a second import changes nothing."""
    first, second = run(*IMPORT, "--json"), run(*IMPORT, "--json")
    counts = json.loads(first.stdout)["table_16"]

    assert [(count["domain"], count["rules"], count["head"], count["long_tail"]) for count in counts] == [
        ("temporal", 1, 1, 1),
        ("outcomes and effects", 1, 2, 2),
        ("total", 2, 3, 3),
    ]
    assert all(count["delta"] > 0 for count in counts)
    assert json.loads(first.stdout)["rules_about_persons"] == 2
    assert "2 of LINT's 417 rules: 2 of its 149 about persons and 0 of its 268 about objects" in notes(first)
    assert "of its 54,220 head statements" in notes(first)
    assert "of its 54,366 long-tail statements" in notes(first)
    assert second.stdout == first.stdout
    assert len(statements(folder / "lint.db")) == 6


def test_imported_statements_are_probed_with_turned_labels_and_explained(folder: Path) -> None:
    """The probing takes LINK's turned labels and needs no rule file; `why` shows what LINT states. `--flips` and
    `--method` name a file and a method whose labels people turned."""
    run(*IMPORT)
    command = ("evaluate", "probe", "-m", "simulated:1", "--sample", 0, "--db", "lint.db", "-o", "answers.jsonl")
    said = notes(run(*command))
    labels = {row["question"]: row["label"] for row in lines(folder / "answers.jsonl")}
    ghee = next(identity for text, identity in statements(folder / "lint.db").items() if "mysore pak" in text)
    story = run("why", ghee, "--db", "lint.db").stdout
    (folder / "flips.json").write_text(json.dumps({"GPT4": {"rule7": {"head": [0], "longtail": [0]}}}), "utf-8")

    assert "flipped 1 label" in said
    tractor = "Answer the question with yes or no: if PersonX was born in Roman Empire, could PersonX use tractor?"
    assert tractor in labels
    asked = "Is it true that if PersonX is allergic to {}, PersonX is not able to eat {}."
    assert labels[asked.format("gluten", "bread")] == "No"
    assert labels[asked.format("dairy", "mysore pak")] == "Yes"
    assert "ghee" in story
    assert "given" in story
    assert told(*IMPORT, "--flips", "flips.json", "--method", "GPT4")["labels_turned"] == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("rule2_value_cache.csv_head", "P,A,B\nPersonX,dairy,bread\n", ("column Z", "rule2")),
        ("rule99_value_cache.csv_head", "P,A\nPersonX,dairy\n", ("rule99",)),
        ("rule2_value_cache.csv_head", 'P,A,Z,B\nPersonX,"dairy\n', ("CSV", "UTF-8")),
        ("flip_label_data.json", "[]", ("flip_label_data.json", "flipped labels")),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [7]}}}', ("row 7",)),
        ("flip_label_data.json", '{"LINK": {"rule2": {"head": [Infinity]}}}', ("flipped labels",)),
    ],
)
def test_faulty_files_are_told_and_nothing_is_stored(
    folder: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    """Place and fact; the knowledge base stays as it was. So does a folder that holds none of LINT's files."""
    (folder / "lint" / name).write_text(text, "utf-8")
    said = fault(*IMPORT)
    (folder / "empty").mkdir(exist_ok=True)

    assert "rule2_value_cache.csv_head" in fault("evaluate", "lint", "empty", *IMPORT[3:])
    assert [word for word in words if word not in said] == []
    assert not (folder / "lint.db").exists()
