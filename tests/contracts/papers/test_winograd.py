"""Winograd schemas: what is read, the prompts, what a reply answers, scores and tables, new schemas, and tasks."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import winograd_fixture as fixture
from cli_fixture import run
from papers_fixture import Answer, fault, fill_csv, lines, loaded, python

import hapax

ROOT = Path(__file__).parents[3]
SHARED = ROOT.parent / "shared"
ANNOTATED = SHARED / "data" / "cr_wsc" / "wsc_273_annotated_final.csv"
GENERATED = SHARED / "data" / "cr_wsc" / "generated_modify_tq.csv"
needs_data = pytest.mark.skipif(not ANNOTATED.exists(), reason="the published data lies beside the repository")

WSC273, HUMAN, MACHINE = "WSC273", "CR-WSC-H", "CR-WSC-M"
WRESTLER, DANCER = "The wrestler", "the ballet dancer"
SENTENCES = tuple(
    f"The wrestler couldn't push the ballet dancer because he was so {word}." for word in ("weak", "strong")
)


def winograd(*words: object, code: int = 0) -> Any:
    """The JSON that a command about schemas prints."""
    return json.loads(run("evaluate", "winograd", *words, "--json", code=code).stdout)


def pairs_of(items: Sequence[Any]) -> list[tuple[str, str]]:
    """Identities of the two sentences of each schema."""
    by_pair: dict[str, list[str]] = {}
    for item in items:
        by_pair.setdefault(item.pair, []).append(item.id)
    return [(ids[0], ids[1]) for ids in by_pair.values() if len(ids) == 2]


def table(path: Path, rows: Sequence[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    return path


def written(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def schema(
    sentence: str, words: Iterable[str], pronoun: str, options: Sequence[str], **more: str
) -> list[dict[str, Any]]:
    """A pair of sentences, in the first of which the pronoun means the first option."""
    return [
        {"text": sentence.format(word), "pronoun": pronoun, "options": options, "label": label, **more}
        for label, word in enumerate(words)
    ]


def stored(database: Path) -> Any:
    """The runs of `ask` that a knowledge base holds."""
    with hapax.KnowledgeBase(database) as kb:
        return hapax.tabulate_schemas(kb).value


def wrestlers(folder: Path, source: str = "wrestlers") -> Path:
    """The pair about the wrestler as a file of its own, or as the published files hold pairs of a source."""
    options = json.dumps([WRESTLER, DANCER])
    if source == HUMAN:
        plain = [f"The fish ate the worm. It was {word}." for word in ("hungry", "tasty")]
        before = json.dumps(["The fish", "the worm"])
        rows = [(text, "he", before, label, options, SENTENCES[label]) for label, text in enumerate(plain)]
        return table(folder / "human.csv", [("text", "pronoun", "options", "label", "mod", "mod_text"), *rows])
    rows = [(text, WRESTLER, DANCER, "he", label, 1) for label, text in enumerate(SENTENCES)]
    return table(folder / f"{source}.csv", [("text", "entity1", "entity2", "pronoun", "label", "use_tq"), *rows])


# Reading


@needs_data
def test_published_files_hold_136_51_and_205_pairs() -> None:
    """The triple of rows 252 to 254 leaves one row over, and the pair with mismatched flags counts as used. Every
    pronoun is that of the WSC pair from which the family was made; in the file 240 of 410 are another word."""
    items = hapax.read_schemas(ANNOTATED, GENERATED)
    pairs = dict(pairs_of(items))
    machine = [item for item in items if item.source == MACHINE]
    first = {item.id: item.pronoun.casefold() for item in items if item.source == WSC273}
    heads = sorted({int(item.family.split(":")[1]) for item in items if item.source == HUMAN})
    with GENERATED.open(encoding="utf-8", newline="") as stream:
        written = list(csv.DictReader(stream))

    assert Counter(name.partition(":")[0] for name in pairs) == {WSC273: 136, HUMAN: 51, MACHINE: 205}
    assert (pairs["WSC273:252"], pairs["WSC273:255"]) == ("WSC273:253", "WSC273:256")
    assert "WSC273:254" not in {name for both in pairs.items() for name in both}
    assert len({item.family for item in machine}) == 51
    for item in machine:
        family = heads[int(item.family.split(":")[1]) // 10]
        assert item.pronoun.casefold() == first[f"{WSC273}:{family}"], item
    assert sum(item.pronoun != written[int(item.id.split(":")[1])]["pronoun"] for item in machine) == 240


@needs_data
def test_faults_of_the_published_files_are_listed() -> None:
    """The seven pairs of CR-WSC-H with an option that is not in the sentence, and the one wrong row."""
    faults = winograd("data", ANNOTATED, GENERATED)["faults"]
    unsaid = [40, 56, 66, 106, 152, 170, 266]

    assert sorted({fault["rows"][0] for fault in faults if fault["source"] == HUMAN}) == unsaid
    assert [fault["rows"] for fault in faults if "marked as used" in fault["what"]] == [[24, 25]]
    assert any(fault["rows"] == [471] for fault in faults)


def test_a_plain_file_pairs_neighbours_of_one_schema(tmp_path: Path) -> None:
    """Rows are paired by labels and options; a third row of a schema stays alone, and nothing shifts behind it."""
    path = fixture.write(tmp_path / "mine.csv", fixture.PLAIN)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream))
    rows.insert(3, ["The uncle slept because he was tired.", "he", "The uncle", "The nephew", "0"])
    items = hapax.read_schemas(table(path, rows))

    assert [item.source for item in items] == ["mine"] * 9
    assert pairs_of(items) == [
        ("mine:0", "mine:1"), ("mine:3", "mine:4"), ("mine:5", "mine:6"), ("mine:7", "mine:8"),
    ]  # fmt: skip


# Prompts


def expected_prompts() -> dict[str, str]:
    """The prompts of `prompts_winograd.txt`, by name."""
    text = (Path(__file__).parent / "prompts_winograd.txt").read_text("utf-8")
    parts = [part.partition("\n") for part in text.split("\n### ")[1:]]
    return {name: prompt.rpartition("∎")[0] for name, _, prompt in parts}


PROMPTS = expected_prompts()


def example(name: str) -> str:
    """The worked example of a prompt, without the question."""
    return PROMPTS[name].rpartition("\n\n")[0]


def sent(folder: Path, *words: object, reply: str = "1. The wrestler. 2. The ballet dancer") -> list[str]:
    """The prompts that a command sends, as the journal keeps them."""
    script = {
        "generate": {"Conceptualization: ": reply},
        "defaults": {"generate": reply, "likelihood": -1, "critic": 0.5},
    }
    model = fixture.scripted(folder / "reply.json", script)
    run("evaluate", "winograd", *words, "-m", model, "--db", folder / "sent.db")
    with hapax.KnowledgeBase(folder / "sent.db") as kb:
        return [call.request["prompt"] for call in kb.calls().values() if "prompt" in call.request]


@pytest.mark.parametrize("name", [name for name in PROMPTS if name.endswith((HUMAN, MACHINE))])
def test_prompts_are_sent_byte_for_byte(tmp_path: Path, name: str) -> None:
    """Those of the released notebooks, which differ for CR-WSC-M in two methods, and those of the paper."""
    method, wording, source = name.split()
    words = ("ask", wrestlers(tmp_path, source), "--source", source, "--method", method, "--variant", wording)

    assert sent(tmp_path, *words) == [PROMPTS[name]]


def test_prompts_of_steps_and_analogies_are_sent_byte_for_byte(tmp_path: Path) -> None:
    """First the concepts are asked for, then the question about them, in which no entity stands; of analogies the five
    prompts of the paper and the one of the released transcripts."""
    concepts = (
        "The wrestler can be conceptualized as a pusher, the dancer can be conceptualized as a thing that is pushed."
    )
    made = ("generate", wrestlers(tmp_path), "--out", tmp_path / "new.jsonl")
    paper, released = sent(tmp_path, *made), sent(tmp_path, *made, "--prompt", "released")
    (tmp_path / "steps").mkdir()
    staged = sent(tmp_path / "steps", "ask", wrestlers(tmp_path), "--method", "aot-staged", reply=concepts)

    assert staged == [PROMPTS["aot-staged first step"], PROMPTS["aot-staged second step"]]
    assert {PROMPTS[f"analogy {number}"] for number in range(1, 6)} <= set(paper)
    assert PROMPTS["analogy released"] in released


# What a reply answers

REPLIES = {
    "1. The wrestler. 2. The ballet dancer": ((0, 1), (0, 1)),
    "1. The ballet dancer\n2. The wrestler": ((1, 0), (1, 0)),
    'A: 1. "he" refers to the dancer. 2. "he" refers to the wrestler.': ((1, 0), None),
    'In the first sentence, "he" refers to the wrestler. In the second sentence, "he" refers to the ballet dancer.': (
        (0, 1),
        None,
    ),
    'In both sentences, "he" refers to the ballet dancer.': ((1, 1), None),
    "Answer: 1. pusher. 2. pushed\n\nConclusion: As ..\nA: Thus the answer is:\n1. wrestler 2. ballet dancer": (
        (0, 1),
        None,
    ),
    "**1.** The wrestler\n**2.** the ballet dancer": ((0, 1), None),
    "1. The wrestler 2. The wrestler\n\nQ: more\nA: 1. The ballet dancer 2. The ballet dancer": ((0, 0), None),
    "1. The wrestler or the ballet dancer. 2. The wrestler": ((None, 0), None),
    "1. Neither. 2. Both.": ((None, None), None),
    "1. nobody 2. wrestler (first)": ((None, 0), (-1, 0)),
    "The wrestler": ((None, None), None),
    "": ((None, None), (0, 0)),
}
"""Replies with what they answer by the strict and, where it is known, by the released reading."""


def test_replies_are_read_strictly_and_as_released(tmp_path: Path) -> None:
    """Numbered answers, sentences and `both` are read; what names none or both entities is no answer. The released
    reading finds an empty reply in the first option."""
    rows: list[Sequence[object]] = [("text", "pronoun", "entity1", "entity2", "label")]
    script = {}
    for number, reply in enumerate(REPLIES):
        texts = [text.replace("The wrestler", f"On day {number} the wrestler") for text in SENTENCES]
        rows += [(text, "he", WRESTLER, DANCER, label) for label, text in enumerate(texts)]
        script[f"On day {number} the"] = reply
    model = fixture.scripted(tmp_path / "m.json", {"generate": script})
    words = ("evaluate", "winograd", "ask", table(tmp_path / "days.csv", rows), "-m", model, "--db", tmp_path / "w.db")
    # Zero-shot replies have a rule of their own in the release.
    run(*words, "--method", "cot")
    (asked,) = stored(tmp_path / "w.db")
    answers = list(zip(asked.answers[::2], asked.answers[1::2], strict=True))

    assert [(first.strict, second.strict) for first, second in answers] == [strict for strict, _ in REPLIES.values()]
    for (first, second), (reply, (_, released)) in zip(answers, REPLIES.items(), strict=True):
        assert released in (None, (first.released, second.released)), reply


# Asking, scores and tables


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder with plain and reversed schemas, and what a model that goes by association answered to them."""
    folder = tmp_path_factory.mktemp("asked")
    files = [fixture.write(folder / f"{name}.csv", entities) for name, entities in SETS.items()]
    model = fixture.scripted(folder / "m.json", fixture.association(*SETS.values()))
    methods = [word for name in ("zero-shot", "cot", "aot", "aot-staged") for word in ("--method", name)]
    return folder, winograd("ask", *files, "-m", model, "--db", folder / "w.db", *methods)


SETS = {"plain": fixture.PLAIN, "reversed": fixture.REVERSED}


def test_association_fails_on_reversed_schemas_and_abstraction_does_not(
    asked: tuple[Path, list[dict[str, Any]]],
) -> None:
    """Asked at once, a model that goes by association gets the plain pairs and no reversed one; in steps it gets all.
    What each of sixteen entities was abstracted to is stored as a fact."""
    accuracy = {(found["source"], found["method"]): found["strict"]["pair"]["value"] for found in asked[1]}
    with hapax.KnowledgeBase(asked[0] / "w.db") as kb:
        facts = {tuple(fact.arguments) for fact in kb.facts("abstracts_to")}

    assert accuracy == {
        **{("plain", method): 1.0 for method in ("zero-shot", "cot", "aot", "aot-staged")},
        **{("reversed", method): 0.0 for method in ("zero-shot", "cot", "aot")},
        ("reversed", "aot-staged"): 1.0,
    }
    assert {found["unparsed"]["value"] for found in asked[1]} == {0}
    assert len(facts) == 16
    assert ("The tycoon", "first one") in facts


def test_tables_come_from_stored_runs(asked: tuple[Path, list[dict[str, Any]]]) -> None:
    """Tables 2 and 5 in the paper's layout, both readings beside each other, and McNemar's exact test: eight to none is
    2 / 2**8."""
    with hapax.KnowledgeBase(asked[0] / "w.db") as kb:
        tables = {table.title: table for table in hapax.tabulate_schemas(kb).tables}
    (test,) = [table for title, table in tables.items() if "McNemar" in title]
    compared = {(row[0].split()[0], row[1].split()[0], row[3]): list(map(float, row[4:])) for row in test.texts}

    assert {"Table 2 (strict reading)", "Table 5 (strict reading)"} <= set(tables)
    (readings,) = [table for title, table in tables.items() if title.startswith("Strict and released reading")]
    assert "single, released" in readings.columns
    assert compared["zero-shot", "aot-staged", "reversed"] == [0, 8, pytest.approx(2 / 2**8, abs=1e-6)]
    assert compared["zero-shot", "cot", "plain"] == [0, 0, 1]


@pytest.mark.parametrize(("day", "reply"), list(product((2, 3), ("1. The wrestler 2. ?", "1. ? 2. The ballet dancer"))))
def test_scores_of_pairs_sentences_and_families_by_hand(day: int, reply: str, tmp_path: Path) -> None:
    """Three of four pairs, seven of eight sentences and one of two families are right; an unread answer is wrong,
    whichever of its pair and of its family it is."""
    rows, script = [], {}
    for number in range(4):
        sentence = f"On day {number} the wrestler couldn't push the ballet dancer because he was so {{}}."
        group = {"pair": f"p{number}", "family": f"f{number // 2}"}
        rows += schema(sentence, ("weak", "strong"), "he", [WRESTLER, DANCER], **group)
        script[f"On day {number} the"] = reply if number == day else "1. The wrestler 2. The ballet dancer"
    model = fixture.scripted(tmp_path / "m.json", {"generate": script})
    (found,) = winograd("ask", written(tmp_path / "days.jsonl", rows), "-m", model, "--db", tmp_path / "w.db")

    strict = {name: found["strict"][name]["value"] for name in ("single", "pair", "consistency")}
    assert strict == {"single": 7 / 8, "pair": 3 / 4, "consistency": 1 / 2}
    assert found["unparsed"]["value"] == 1 / 8
    assert found["strict"]["pair"]["low"] < 3 / 4 < found["strict"]["pair"]["high"]


def test_failures_of_abstraction_are_told_apart(tmp_path: Path) -> None:
    """As in the paper: a concept that names the quality in question is of the wrong level; no concept is no format."""
    said = "The wrestler can be conceptualized as a {}, and the ballet dancer can be conceptualized as a {}.\n"
    stated = (said.format("strong individual", "weaker individual"), said.format("pusher", "pushed person"), "")
    path, found = wrestlers(tmp_path), []
    for number, concepts in enumerate(stated):
        reply = f"{concepts}1. The ballet dancer 2. The wrestler"
        model = fixture.scripted(tmp_path / f"{number}.json", {"defaults": {"generate": reply}})
        database = ("--db", tmp_path / f"{number}.db")
        run("evaluate", "winograd", "ask", path, "-m", model, *database, "--method", "aot", "--method", "cot")
        (case,) = winograd("cases", path, "--first", "cot", "--second", "aot", *database)
        found += case["failures"]

    assert len(found) == len(set(found)) == 3
    assert "format" in found[2]


# Methods of likelihood

HEAD = "The van overtook the bus because it was so "
BEGINNINGS = {"van": -5.0, "bus": -20.0}
"""Log-likelihood of the sentence up to the option: the van is the common one."""
ENDINGS = {("van", "fast"): -4, ("bus", "fast"): -8, ("van", "slow"): -5, ("bus", "slow"): -5.5}
"""Of the words behind it: a van is likelier in both sentences, but less so where it is slow."""


def vans(folder: Path) -> tuple[Path, str]:
    """A pair about vans and buses, and a model that scores its texts."""
    scores: dict[str, float] = {"The van.": -2, "The bus.": -18}
    for name, beginning in BEGINNINGS.items():
        scores[f"The van overtook the bus because the {name}"] = beginning
    for (name, quality), ending in ENDINGS.items():
        scores[f"The van overtook the bus because the {name} was so {quality}."] = BEGINNINGS[name] + ending
    for quality, right in (("fast", "The van"), ("slow", "The bus")):
        for first, second in (("The van", "The bus"), ("The bus", "The van")):
            asked = f'{HEAD}{quality}.\nQuestion: What does "it" refer to?\n1. {first}\n2. {second}\nAnswer: '
            # The model prefers the first position by 3 nats, and the right option by 1.
            scores |= {f"{asked}1": -7 + (first == right), f"{asked}2": -10 + (second == right)}
    path = written(folder / "vans.jsonl", schema(f"{HEAD}{{}}.", ("fast", "slow"), "it", ["The van", "The bus"]))
    return path, fixture.scripted(folder / "v.json", {"likelihood": scores})


def test_each_score_answers_as_computed_by_hand(tmp_path: Path) -> None:
    """Each method of likelihood chooses as its formula says, and the position of an option decides nothing."""
    path, model = vans(tmp_path)
    # By pmi -9 + 2 against -28 + 18 where it is fast, -10 + 2 against -25.5 + 18 where it is slow.
    answers = {
        "likelihood": [0, 0],
        "likelihood-pmi": [0, 1],
        "likelihood-partial": [0, 0],
        "likelihood-choice": [0, 1],
    }
    words = ("evaluate", "winograd", "ask", path, "-m", model, "--db", tmp_path / "w.db")
    for method in answers:
        run(*words, "--method", method)
    single = [[answer.strict for answer in asked.answers] for asked in stored(tmp_path / "w.db")]

    assert single == list(answers.values())


# New schemas

BASE = {
    ("weightlifter", "toddler"): "1. The toddler. 2. The toddler.",
    ("giant", "dwarf"): "1. The giant. 2. The dwarf.",
}
PROPOSED = (
    "1. Weightlifter. 2. Toddler.\nThe two sentences would be:\n1. The weightlifter pushed the toddler.",
    "giant\ndwarf",
    "dwarf\ngiant",
    "The weightlifter\nthe toddler",
)


def generate(folder: Path, *more: object, code: int = 0) -> dict[str, Any]:
    """Who could not push whom, with the entities that a script proposes, judges and knows to go with a quality."""
    text, pronoun, qualities = fixture.SCHEMAS[0]
    source = fixture.write(folder / "plain.csv", fixture.PLAIN)
    table(source, list(csv.reader(source.open(encoding="utf-8")))[:3])
    likelihood = {}
    for a, b, favoured in (("weightlifter", "toddler", True), ("giant", "dwarf", True), ("dwarf", "giant", False)):
        for entity, alone in ((a, -5.0), (b, -9.0)):
            likelihood[f"The {entity}."] = alone
            for quality, of_b in (("weak", True), ("heavy", False)):
                goes = (entity == b) == of_b
                likelihood[f"The {entity} was so {quality}."] = alone - (10 if goes is favoured else 12)
    replies: dict[str, Any] = {example("analogy 5"): "I cannot say."}
    for number, proposal in enumerate(PROPOSED, start=1):
        stated = f"The property is strength. Therefore, analogous entities are:\n{proposal}"
        replies[example(f"analogy {number}")] = stated
    for (a, b), reply in BASE.items():
        made = tuple(text.format(a=a, b=b, q=quality) for quality in qualities)
        replies[fixture.questions((made[0], made[1]), pronoun, (f"The {a}", f"The {b}"))] = reply
    script = {"generate": replies, "likelihood": likelihood, "defaults": {"critic": 0.5}}
    words = ("generate", source, "-m", fixture.scripted(folder / "g.json", script), "--out", folder / "new.jsonl")
    found: dict[str, Any] = winograd(*words, "--db", folder / "g.db", *more, code=code)
    return found


def test_only_adversarial_schemas_are_made(tmp_path: Path) -> None:
    """Of five proposals one stays: the others are a repetition, unread, associated the right way, or no trouble.
    Verdicts are stored: association in nats against its threshold, and the base model's failures against one half."""
    found = generate(tmp_path, "--threshold", "1.5")
    fates = {tuple(candidate["entities"]): candidate["rejected"] for candidate in found["candidates"]}
    first, second = hapax.read_schemas(tmp_path / "new.jsonl")
    with hapax.KnowledgeBase(tmp_path / "g.db") as kb:
        verdicts = [(made.score, made.threshold, made.accepted) for made in kb.decisions() if made.threshold]

    assert found["counts"]["pairs made"] == 1
    assert "base model" in fates[("The giant", "The dwarf")]
    assert "associated" in fates[("The dwarf", "The giant")]
    assert "no two entities" in fates[()]
    assert [candidate["rejected"] for candidate in found["candidates"]].count("proposed before") == 1
    assert first.text == "The weightlifter couldn't push the toddler because he was so weak."
    assert (first.answer, second.answer, first.options) == (0, 1, ("The weightlifter", "The toddler"))
    assert first.family == "plain:0"
    associated, failed = [(2.0, 1.5, True), (2.0, 1.5, True), (-2.0, 1.5, False)], [(0.5, 0.5, True), (0.0, 0.5, False)]
    assert sorted(verdicts) == sorted([*associated, *failed])


def test_a_budget_ends_the_making_and_nothing_is_lost(tmp_path: Path) -> None:
    """Exit code 3 and no file; the same command without the limit finishes. A critic, undecided between both meanings,
    fails as a base model on everything, so that the giant and the dwarf stay, too."""
    stopped = generate(tmp_path, "--max-calls", "6", code=3)
    written = (tmp_path / "new.jsonl").exists()

    assert stopped["stopped"]
    assert not written
    assert generate(tmp_path)["counts"]["pairs made"] == 1
    assert generate(tmp_path, "--base-method", "critic")["counts"]["pairs made"] == 2


# People


def right(row: dict[str, str]) -> str:
    """Answers of an annotator who agrees with every label and finds every schema usable."""
    is_label = row["question"].startswith("schema label")
    return row["choices"].split(" / ")[int(row["question"][-1]) - 1] if is_label else "yes"


def doubtful(row: dict[str, str]) -> str:
    """Disagrees with the label of one sentence, and finds one schema without trap."""
    if "tractor" in row["text"] and row["question"] == "schema label 2":
        return "unclear"
    if "thimble doesn't go into the barn" in row["text"] and row["question"] == "schema adversarial":
        return "no"
    return right(row)


def judge(schemas: Path, voter: str, answer: Answer, *more: str) -> set[str]:
    """A sheet is written, filled in and imported; the schemas that it asks about."""
    folder, asked = schemas.parent / "sheets", set()
    database = ("--db", schemas.parent / "p.db")
    run("evaluate", "winograd", "sheets", schemas, "--annotator", voter, *more, "--out", folder, *database)

    def noted(row: dict[str, str]) -> str:
        asked.add(row["item"])
        return answer(row)

    sheet = fill_csv(folder / f"schemas-{voter}.csv", noted)
    run("votes", "import", sheet, "--schemas", schemas, *database)
    return asked


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    return fixture.write(tmp_path / "reversed.csv", fixture.REVERSED)


def test_what_annotators_differ_on_is_discarded_until_a_third_decides(schemas: Path) -> None:
    """Two annotators differ on two of four schemas: those are discarded; a third sheet asks about them alone."""
    judged = ("judged", schemas, "--db", schemas.parent / "p.db")
    judge(schemas, "ann", right)
    assert winograd(*judged)["fates"] == {"fewer than two annotators": 4}

    judge(schemas, "bob", doubtful)
    found = winograd(*judged, "--out", schemas.parent / "kept.jsonl")
    assert found["fates"] == {"annotators disagree": 2, "kept": 2}
    assert found["disagreement"]["value"] == 0.5
    assert found["agreement"]["schema adversarial"]["percent"]["value"] == 0.75
    kept = hapax.read_schemas(schemas.parent / "kept.jsonl")[::2]
    assert [item.text.split()[1] for item in kept] == ["weightlifter", "tycoon"]

    assert len(judge(schemas, "eve", right, "--disputed")) == 2
    assert winograd(*judged)["fates"] == {"kept": 4}


def test_sheets_of_schemas_belong_to_their_file(schemas: Path) -> None:
    """Without their file `votes import` asks for it; a changed sentence is found."""
    folder, database = schemas.parent / "sheets", ("--db", schemas.parent / "p.db")
    run("evaluate", "winograd", "sheets", schemas, "--annotator", "ann", "--out", folder, *database)
    sheet = folder / "schemas-ann.csv"

    hapax.KnowledgeBase(schemas.parent / "p.db").close()
    assert "--schemas" in fault("votes", "import", sheet, *database)
    sheet.write_text(sheet.read_text(encoding="utf-8").replace("tycoon", "baron"), encoding="utf-8")
    assert "changed" in fault("votes", "import", sheet, "--schemas", schemas, *database)


# Tasks


def exported(schemas: Path) -> Path:
    folder = schemas.parent / "tasks"
    run("evaluate", "winograd", "export", schemas, "--name", "crwsc", "--out", folder)
    return folder


def test_tasks_hold_a_document_for_each_pair_and_read_as_we_do(schemas: Path) -> None:
    """Four pairs are four documents with six prompts, four choices and the right one's place. The file beside the tasks
    reads a reply as `ask` does, and a family counts if all its pairs are right."""
    folder = exported(schemas)
    found = lines(folder / "lm_eval" / "reversed.jsonl")
    utils = loaded(folder / "lm_eval" / "utils.py")

    assert len(found) == 4
    assert found[0]["choices"][found[0]["label"]] == "1. The weightlifter 2. The toddler"
    assert sum(name.startswith("prompt_") for name in found[0]) == 6
    assert utils.process_generated(found[0], ["1. The weightlifter 2. nobody"]) == {
        "single": 0.5, "pair": 0.0, "unparsed": 0.5, "consistency": (found[0]["family"], False),
    }  # fmt: skip
    assert utils.process_choice(found[0], [(-2.0, False), (-1.0, False), (-3.0, False), (-4.0, False)])["pair"] == 1.0
    assert utils.consistency([("a", True), ("a", False), ("b", True)]) == 0.5


@pytest.mark.harness
@pytest.mark.timeout(600)
def test_harness_takes_the_tasks(schemas: Path) -> None:
    """`lm-eval` takes both groups for valid and runs them, with the figures of pairs."""
    folder = exported(schemas)
    named = ("--tasks", "crwsc,crwsc_choice", "--include_path", folder / "lm_eval")

    assert "All tasks found and valid" in python(folder, "-m", "lm_eval", "validate", *named)
    ran = python(folder, "-m", "lm_eval", "run", "--model", "dummy", *named)
    assert "crwsc_choice_reversed_zero_shot" in ran
    assert "consistency" in ran


# A family as rules


def test_a_reversed_schema_has_the_same_proof(tmp_path: Path) -> None:
    """The rules and facts of `examples/schemas` give the answers, and the proofs that the page prints; reversing the
    concepts changes nothing but names."""
    examples, database = ROOT / "examples" / "schemas", ("--db", tmp_path / "lifting.db")
    rules = examples / "lifting.rules"
    run("import", examples / "lifting.csv", "--rules", rules, *database)
    run("derive", rules, *database)

    def proof(sentence: int, entity: str) -> str:
        return run("why", f"means('sentence {sentence}', he, '{entity}')", *database).stdout

    plain, exchanged = proof(1, "the man"), proof(3, "the bodybuilder")
    assert plain + exchanged in (ROOT / "docs" / "papers" / "winograd-rules.md").read_text("utf-8")
    renamed = plain.replace("the man", "the bodybuilder").replace("his son", "the frail senior")
    assert exchanged == renamed.replace("sentence 1", "sentence 3")
    assert [proof(2, "his son"), proof(4, "the frail senior")] != ["", ""]
