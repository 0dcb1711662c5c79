"""BoOQA: questions built from a corpus with planted rows, in English and Chinese, and answered by every way of scoring."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run
from papers_fixture import CORE, Planted, fault, flat, install, lines, parsed, planted, script

import hapax

PERSON, PLACE = "person", "location"
SLICE = "2008_04-21_04-23"
SHOP, GO, HOST = "(shop.1,shop.in.2)", "(go.1,go.to.2)", "(host.1,host.2)"


@pytest.fixture(scope="module", autouse=True)
def _wordnets(tmp_path_factory: pytest.TempPathFactory) -> None:
    install(tmp_path_factory.mktemp("wn"))


def triple(subject: str, predicate: str, place: str, number: object, **more: Any) -> dict[str, Any]:
    """A line of a corpus, in a document of its own."""
    line = {"subject": subject, "predicate": predicate, "object": place, "types": [PERSON, PLACE], "date": "2008-04-21"}
    return {**line, "document": f"d{number}", "sentence": f"{subject} {predicate} {place} {number}.", **more}


def written(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rows), "utf-8")
    return path


SMALL = ("--pair-from", 1, "--predicate-from", 1, "--no-frequency-map")
"""Bounds under which every triple of a small corpus counts."""


def build(corpus: Path, *more: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The questions that are built from a corpus, and the steps of the report by name."""
    out = corpus.parent / f"built{len(list(corpus.parent.iterdir()))}"
    run("evaluate", "booqa", "build", corpus, "--out", out, "--db", corpus.parent / "x.db", *more)
    return [question for path in sorted(out.glob("*.jsonl")) for question in lines(path)], steps(out)


def refused(corpus: Path, *more: object) -> str:
    """The message of a corpus from which nothing is built."""
    out = corpus.parent / "refused"
    said = fault("evaluate", "booqa", "build", corpus, "--out", out, "--db", corpus.parent / "x.db", *more)
    assert not list(out.glob("*"))
    return said


def parts(question: dict[str, Any]) -> tuple[str, str, str]:
    """Predicate, subject and object of a question."""
    relation, subject, place, *_ = question["r"][1:-1].split("::")
    return relation, subject, place


# The planted corpus


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Path, Path]:
    """The planted corpus, its file, and what was built from it."""
    folder, corpus = tmp_path_factory.mktemp("booqa"), planted()
    path = corpus.write(folder / "triples.jsonl")
    run("evaluate", "booqa", "build", path, "--out", folder / "built", "--db", folder / "x.db")
    return corpus, path, folder / "built"


def steps(folder: Path) -> dict[str, Any]:
    return {step["name"]: step for step in json.loads((folder / "report.json").read_text("utf-8"))["steps"]}


def test_each_filter_drops_exactly_the_planted_rows(world: tuple[Planted, Path, Path]) -> None:
    """Of some 2,000 triples just those go that were planted for a filter, and all else are positives. Visits and help
    alone have hyponyms; five pairs are toured elsewhere, and five are helped by a synonym."""
    corpus, _, folder = world
    outcome = steps(folder)
    dropped = Counter(outcome["time slices"]["dropped"]) + Counter(outcome["entity pairs and predicates"]["dropped"])

    assert len(corpus.lines) == 2009
    assert dropped == corpus.dropped
    assert outcome["entity pairs and predicates"]["kept"] == 90 * len(CORE) == 2009 - corpus.dropped.total()
    assert (outcome["WordNet"]["kept"], outcome["WordNet"]["dropped"]) == (90 + 85, {"no negative found": 90 * 14 + 5})
    assert outcome["replacements"]["kept"] == 85 * 2 + 5 + 85
    assert sorted(outcome["replacements"]["dropped"].values()) == [10, 90]  # said of the pair, and too rare


def test_what_is_built(world: tuple[Planted, Path, Path], tmp_path: Path) -> None:
    """Positives are said of pairs that are asked about, negatives of the same pairs never; slices stay whole. Records
    have the release's keys and a proposition in words. The same seed gives the same bytes, another seed another sample,
    whose size is met exactly without the frequency map."""
    corpus, path, folder = world
    said = {(line["predicate"], line["subject"], line["object"]) for line in corpus.lines}
    dev, test = lines(folder / "dev.jsonl"), lines(folder / "test.jsonl")
    keys = ["r", "partition_key", "in_partition_sidx", "wn_synsets", "label", "proposition"]

    assert {parts(question)[1:] for question in dev + test} <= corpus.asked
    assert all((parts(question) in said) is question["label"] for question in dev + test)
    assert not {row["partition_key"] for row in dev} & {row["partition_key"] for row in test}
    assert len(dev) <= len(dev + test) / 2
    assert {row["posi_upred"] for row in dev + test if not row["label"]} == {parsed("visit"), parsed("help")}
    assert [list(row)[:6] for row in dev] == [keys] * len(dev)
    assert dev[0]["proposition"].startswith("Person ")
    assert dev[0]["r"].endswith("::person::location)")
    for seed in (0, 1):
        run(
            "evaluate", "booqa", "build", path, "--out", tmp_path / str(seed), "--seed", seed, "--db", tmp_path / "x.db"
        )
    for name in ("dev.jsonl", "test.jsonl", "report.json"):
        assert (tmp_path / "0" / name).read_bytes() == (folder / name).read_bytes()
        assert (tmp_path / "1" / name).read_bytes() != (folder / name).read_bytes()
    words = ("build", path, "--out", tmp_path / "x", "--db", tmp_path / "x.db", "--sample", 40, "--negatives", 1)
    printed = json.loads(run("evaluate", "booqa", *words, "--no-frequency-map", "--json").stdout)["sets"].values()
    assert [sum(figures[label] for figures in printed) for label in ("positives", "negatives")] == [40, 40]


# Reading and filters


def test_dates_fall_into_slices(tmp_path: Path) -> None:
    """ISO, the release's English and Chinese forms are read; each year begins anew, February has 29 days, and what is no
    date is left out."""
    dates = {
        "2008-04-21": "2008_04-21_04-23",
        "2008-04-23T10:00:00": "2008_04-21_04-23",
        "Sep 29, 2014 12:00:00 AM": "2014_09-27_09-29",
        "07-26 12:30": "07-26_07-28",
        "2016年7月28日": "2016_07-26_07-28",
        "2009-02-28": "2009_02-27_02-29",
        "2009-03-01": "2009_03-01_03-03",
        "2010-12-31": "2010_12-29_12-31",
        "2009-02-30": None,
        "yesterday": None,
    }
    triples = [triple(f"Ann {number}", parsed("visit"), "Paris", number, date=day) for number, day in enumerate(dates)]
    found, outcome = build(written(tmp_path / "c.jsonl", [*triples, triple("Bob", parsed("tour"), "Rome", 99)]), *SMALL)

    slices = {parts(row)[1]: row["partition_key"] for row in found}
    assert [slices.get(f"Ann {number}") for number in range(len(dates))] == list(dates.values())
    assert outcome["time slices"]["dropped"] == {"undated": 2}


def test_sentences_of_the_release_are_read(tmp_path: Path) -> None:
    """A line of the release is a sentence with its triples; repeated ones and those without a date are counted."""
    rels = [{"r": f"(({verb}.1,{verb}.2)::ann::paris::EE::0::1::person::location)"} for verb in ("visit", "like")]
    line = {"s": "Ann visits Paris.", "date": "Apr 21, 2008 12:00:00 AM", "articleId": 7, "lineId": 1, "rels": rels}
    sentences = [line, line, {**line, "s": "x", "date": "?"}, {**line, "s": "Bob.", "articleId": 8}]
    corpus = written(tmp_path / "nc.json", [*sentences, triple("Cid", parsed("tour"), "Rome", 5)])
    _, outcome = build(corpus, *SMALL)

    assert outcome["time slices"]["kept"] == 2 + 2 + 1
    assert outcome["time slices"]["dropped"] == {"sentence repeated": 2, "undated": 2}


LINE = {"subject": "a", "predicate": "p", "object": "b", "types": ["x", "y"], "date": "?", "document": 1}


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "x.jsonl:1:"),
        ("[]", "JSON object"),
        ("[" * 100_000, "x.jsonl:1:"),
        ('{"subject": "a"}', "types"),
        (json.dumps({**LINE, "subject": "a::b"}), "a::b"),
        (json.dumps({**LINE, "types": ["x"]}), "x.jsonl:1:"),
        ('{"s": "A.", "date": "", "articleId": 1, "rels": [{"r": "(a::b::c)"}]}', "(a::b::c)"),
        ("", "no triple"),
        (json.dumps(LINE), "1 undated"),
    ],
)
def test_faulty_corpora_are_named(tmp_path: Path, line: str, named: str) -> None:
    """Place, fact and remedy, exit code 1, and no set is written."""
    path = tmp_path / "x.jsonl"
    path.write_text(line + "\n", "utf-8")
    said = refused(path, "--lexicon", "toy-en")

    assert named in said
    assert "x.jsonl" in said


def test_a_wordnet_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With those that are installed, and how to get one."""
    corpus = written(tmp_path / "c.jsonl", [triple("Ann", parsed("visit"), "Paris", 0)])
    missing = refused(corpus, "--lexicon", "oewn:2024")

    assert "toy-en:1" in missing
    assert "python -m wn download" in missing


# Negatives


def negatives(folder: Path, counts: dict[str, int], *more: object, positive: str = parsed("visit")) -> set[str]:
    """Predicates of the negatives of what Ann does in Paris, in a corpus that has others so often."""
    triples = [triple("Ann", positive, "Paris", 0)]
    for relation, count in counts.items():
        triples += [triple(f"Bob {number}", relation, "Rome", f"{relation} {number}") for number in range(count)]
    words = ("--pair-from", 1, "--pair-below", 0, "--predicate-from", 1, "--no-frequency-map", "--negatives", 9, *more)
    found, _ = build(written(folder / "c.jsonl", triples), *words)
    return {parts(row)[0] for row in found if not row["label"] and parts(row)[1] == "Ann"}


OTHERS = {parsed(word): 3 for word in ("tour", "inspect", "assist", "plague", "revisit", "courtesy.call")}


def test_negatives_are_narrower(tmp_path: Path) -> None:
    """Hyponyms of the first verb sense, not of nouns, nor what shares the lemma; words around stay, and inflected text
    is compared by lemmas."""
    assert negatives(tmp_path, OTHERS) == {parsed("tour"), parsed("inspect")}
    assert negatives(tmp_path, {parsed("tour.with"): 1, **OTHERS}, positive="(visit.1,visit.with.2)") == {
        "(tour.with.1,tour.with.2)"
    }
    assert negatives(tmp_path, {"toured": 2, "tours": 1}, positive="visited") == {"toured"}


def test_senses_can_be_chosen(tmp_path: Path) -> None:
    """A critic prefers the sense whose definition fits best in the predicate."""
    model = script(tmp_path / "s.json", yes=0.5)

    every = {parsed(word) for word in ("tour", "inspect", "plague", "courtesy.call")}
    assert negatives(tmp_path, OTHERS, "--senses", "critic", "-m", model) < every


def test_a_chinese_slice(tmp_path: Path) -> None:
    """Dates without a year, predicates with the object's place, and negatives and propositions without blanks."""
    types = {"types": ["人", "地点"], "date": "07-26 12:30"}
    triples = [
        triple(who, f"({verb}.1,{verb}.2)", "北京", f"{who}{verb}", **types)
        for who in ("小明", "小红")
        for verb in ("在·X·工作", "访问", "是", *(("参观",) if who == "小红" else ()))
    ]
    triples += [triple(f"老师{n}", "(在·X·任教.1,在·X·任教.2)", "北京", f"t{n}", **types) for n in range(2)]
    words = ("--pair-from", 3, "--predicate-from", 1, "--no-frequency-map", "--language", "ZH")
    found, _ = build(written(tmp_path / "zh.jsonl", triples), *words)

    assert {row["partition_key"] for row in found} == {"07-26_07-28"}
    assert sorted((row["proposition"], row["label"]) for row in found) == [
        ("小明参观北京", False), ("小明在北京任教", False), ("小明在北京工作", True), ("小明访问北京", True),
        ("小红在北京任教", False), ("小红在北京工作", True),
    ]  # fmt: skip


# Answers

PLACES = """types: person#location, num preds: 4

predicate: (shop.1,shop.in.2)#person#location
num neighbors: 2

local sims
(go.1,go.to.2)#person#location 0.3
(be.1,be.in.2)#person#location 0.2

global sims
(go.1,go.to.2)#person#location 0.8
(see.2,see.by.1)#location#person 0.4
a line that is no score

predicate: (go.1,go.to.2)#person#location
num neighbors: 1
local sims
(shop.1,shop.in.2)#person#location 0.1
global sims

predicate: (host.1,host.2)#location#person
local sims
global sims
(go.1,go.to.2)#person#location 0.6
"""
PEOPLE = """person#person type propagation num preds: 2
predicate: (shop.1,shop.in.2)#person_1#person_2
global sims
(go.1,go.to.2)#person_1#person_2 0.5
predicate: (marry.1,marry.2)#person_2#person_1
global sims
(marry.1,marry.2)#person_1#person_2 0.9
"""
THINGS = """types: thing#location, num preds: 2
predicate: (shop.1,shop.in.2)#thing#location
global sims
predicate: (go.1,go.to.2)#thing#location
global sims
"""


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    (tmp_path / "graphs").mkdir()
    for name, text in (("person#location", PLACES), ("person#person", PEOPLE), ("thing#location", THINGS)):
        (tmp_path / "graphs" / f"{name}_gsim.txt").write_text(text, "utf-8")
    return tmp_path / "graphs"


Asked = tuple[str, str, str, bool]
"""Predicate, subject and object of a question, and its label."""


def ask(folder: Path, corpus: Iterable[dict[str, Any]], asked: Sequence[Asked], **more: Any) -> Callable[..., Any]:
    """Write a corpus and a set of questions; what comes back runs `score` on them with further words."""
    (folder / "set").mkdir(exist_ok=True)
    kinds = more.get("types", [(PERSON, PLACE)] * len(asked))
    fixed = {
        "partition_key": more.get("slice", SLICE),
        "in_partition_sidx": more.get("sentence", 999),
        "wn_synsets": {},
    }
    rows = [
        {"r": f"({relation}::{subject}::{place}::::0::0::{both[0]}::{both[1]})", "label": label, **fixed}
        for (relation, subject, place, label), both in zip(asked, kinds, strict=True)
    ]
    written(folder / "set" / "dev.jsonl", rows)
    path = written(folder / "triples.jsonl", corpus)
    command = ("evaluate", "booqa", "score", folder / "set", "--corpus", path, "--db", folder / "x.db")
    return lambda *words: invoke(*command, *words)


def scores(folder: Path, score: Callable[..., Any], *words: object) -> list[float]:
    """The scores of the questions, as --out writes them."""
    result = score(*words, "--out", folder / "answers")
    assert result.exit_code == 0, result.output
    (path,) = (folder / "answers").glob("scores-*.txt")
    found = [float(line.split()[1]) for line in path.read_text("utf-8").splitlines()]
    path.unlink()
    return found


def test_graphs_are_looked_up(tmp_path: Path, graphs: Path) -> None:
    """Typed first, then the mean over all types; arguments in their places; by words where the parse is another."""
    people, park = (PERSON, PERSON), (PERSON, "park")
    lookups: list[tuple[str, str, tuple[str, str], bool, float]] = [
        (SHOP, GO, (PERSON, PLACE), False, 0.8),
        (GO, SHOP, (PERSON, PLACE), False, 0.0),
        (HOST, GO, (PERSON, PLACE), True, 0.6),  # Paris hosts Ann: Ann goes to Paris
        (HOST, GO, (PERSON, PLACE), False, 0.0),  # Ann hosts Paris
        (SHOP, GO, people, False, 0.5),
        ("(shop.in.1,shop.in.2)", GO, (PERSON, PLACE), False, 0.8),  # by its words
        (SHOP, GO, park, False, (0.8 + 0.5 + 0.0) / 3),  # no such graph: the mean of all three
        ("(fly.1,fly.to.2)", GO, (PERSON, PLACE), False, 0.0),
    ]
    corpus, asked = [], []
    for number, (premise, hypothesis, kinds, turned, _) in enumerate(lookups):
        who, where = f"Ann {number}", f"Town {number}"
        corpus.append(triple(*((where, premise, who) if turned else (who, premise, where)), number))
        corpus[-1]["types"] = list(kinds[::-1] if turned else kinds)
        asked.append((hypothesis, who, where, number % 2 == 0))
    score = ask(tmp_path, corpus, asked, types=[row[2] for row in lookups])

    assert scores(tmp_path, score, "--scorer", f"graph:{graphs}") == pytest.approx([row[4] for row in lookups])
    first = f"graph:{graphs}/person#location_gsim.txt@local"
    assert scores(tmp_path, score, "--scorer", first)[0] == pytest.approx(0.3)


SAID = [
    triple("Ann", SHOP, "Paris", 0), triple("Ann", parsed("tour"), "Paris", 1), triple("Bob", HOST, "Rome", 2),
    triple("Cid", parsed("frob"), "Rome, the city", 3), triple("Ann", parsed("visit"), "Paris", 4),
    *(triple("Dan", GO, f"Town {number}", 5 + number) for number in range(3)), triple("Dan", parsed("inspect"), "Town 9", 9),
]  # fmt: skip
QUESTIONS: list[Asked] = [
    (parsed("visit"), "Ann", "Paris", True), (parsed("inspect"), "Ann", "Paris", False), (GO, "Ann", "Paris", True),
    (parsed("inspect"), "Bob", "Rome", False), (GO, "Cid", "Rome, the city", False),
]  # fmt: skip


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., Any]:
    """A corpus in which Ann toured Paris, Bob merely hosted Rome, and each is asked about."""
    return ask(tmp_path, SAID, QUESTIONS, sentence=4)


def test_every_method_has_its_gold_answers(tmp_path: Path, graphs: Path, score: Callable[..., Any]) -> None:
    """Frequency, null, and graphs with and without stand-ins for what they do not hold."""
    near, folder = tmp_path / "near.tsv", f"graph:{graphs}"
    near.write_text("inspect\tgo to\t0.5\n", "utf-8")

    assert scores(tmp_path, score, "--scorer", "frequency") == pytest.approx([0, 0, 2 / 3, 0, 2 / 3])
    assert scores(tmp_path, score, "--scorer", "null") == [0] * 5
    assert scores(tmp_path, score, "--scorer", folder) == pytest.approx([0, 0, 0.8, 0, 0])
    smoothed = ("--scorer", folder, "--smooth-hypothesis", f"lm:{near}")
    assert scores(tmp_path, score, *smoothed) == pytest.approx([0, 0.4, 0.8, 0, 0])
    near.write_text("a\tb\t2\n", "utf-8")
    refused = score(*smoothed)
    assert (refused.exit_code, "near.tsv:1" in refused.stderr) == (1, True)


def test_models_answer_with_and_without_context(tmp_path: Path, score: Callable[..., Any]) -> None:
    """A critic judges each premise once, as a triple or as the sentence that it is from; a budget ends with 3."""
    yes = {"Ann tour Paris, which means that Ann visit Paris.": 0.9}
    critic = ("--scorer", "critic", "-m", script(tmp_path / "s.json", yes=0.4, critic=yes))

    assert scores(tmp_path, score, *critic) == pytest.approx([0.5, 0, 0, 0, 0])
    assert score(*critic, "--max-calls", 0).exit_code == 0
    assert score(*critic, "--context", "sentence", "--max-calls", 1).exit_code == 3
    assert score(*critic, "--context", "sentence").exit_code == 0
    with hapax.KnowledgeBase(tmp_path / "x.db") as kb:
        claims = [call.request["claim"] for call in kb.calls().values()]
    assert [claim for claim in claims if SAID[1]["sentence"] in claim]


def test_premises_are_of_the_same_two_in_the_slice(tmp_path: Path) -> None:
    """In either order, by other words, and not from another slice; a question without premises has the lowest score of
    all; sentences of similar documents are another kind of premise."""
    corpus = [
        triple("Ann", parsed("tour"), "Paris", 0), triple("PARIS", parsed("welcome"), "ann", 1, types=[PLACE, PERSON]),
        triple("Ann", parsed("love"), "Paris", 2, date="2008-04-24"), triple("Bob", parsed("love"), "Paris", 3),
    ]  # fmt: skip
    score = ask(tmp_path, corpus, [(parsed("visit"), "Ann", "Paris", True), (parsed("help"), "Eve", "Rome", False)])
    result = score("--pairs", tmp_path / "pairs", "--scorer", "null")
    shown = {line.split("\t")[1] for line in (tmp_path / "pairs" / "pairs-dev.txt").read_text("utf-8").splitlines()}
    similar = score("--context", "documents", "--pairs", tmp_path / "documents", "--scorer", "null")

    assert shown == {"Ann,tour,Paris", "PARIS,welcome,ann"}
    assert "1 of 2 have none" in result.stderr
    assert similar.exit_code == 0


def test_figures_are_printed_and_written(tmp_path: Path, score: Callable[..., Any]) -> None:
    """AUC and its interval for each scorer and set; curves beside the scores."""
    yes = {
        "Ann tour Paris, which means that Ann visit Paris.": 0.9,
        "Ann tour Paris, which means that Ann go to Paris.": 0.8,
    }
    critic = ("-m", script(tmp_path / "s.json", yes=0.4, critic=yes))
    result = score("--scorer", "critic", *critic, "--scorer", "null", "--out", tmp_path / "out", "--json")
    names = {path.name for path in (tmp_path / "out").iterdir()}

    figures = {row["scorer"].split()[0]: row["auc_norm"] for row in json.loads(result.stdout)}
    assert figures["critic"]["low"] <= figures["critic"]["value"] == 1.0
    assert figures["null"]["value"] == 0.0
    assert {"curves-dev.png", "curves-dev.csv"} <= names
    assert {name.partition("-")[0] for name in names if "critic" in name} == {"critic", "scores"}


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (("--set", "test"), 2, "no set test"),
        (("--scorer", "oracle"), 2, "oracle"),
        (("--scorer", "graph:x", "--context", "sentence"), 2, "--context triple"),
        (("--scorer", "graph:x", "--smooth-premise", "cousins"), 2, "cousins"),
        (("--scorer", "scores:cli.py"), 1, "cli.py"),
        (("--scorer", "prior"), 2, "--train"),
    ],
)
def test_wrong_options_are_named(score: Callable[..., Any], words: tuple[str, ...], code: int, named: str) -> None:
    """Options that conflict, are unknown or cannot be read."""
    result = score(*words)

    assert (result.exit_code, named in flat(result.stderr)) == (code, True)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (json.dumps({"r": f"({GO}::Ann::Paris::::0::0::person::location)", "label": True}) + "\n", "dev"),
        ('{"r": "(a::b)", "label": 1}\n', "dev.jsonl:1"),
        (None, "hapax evaluate booqa build"),
    ],
)
def test_sets_that_cannot_be_measured_are_refused(tmp_path: Path, text: str | None, named: str) -> None:
    """A set of one label, a line that is no question, and a folder without a set are named."""
    score, path = ask(tmp_path, SAID, QUESTIONS), tmp_path / "set" / "dev.jsonl"
    if text is None:
        path.unlink()
    else:
        path.write_text(text, "utf-8")
    result = score()

    assert (result.exit_code, result.stdout, named in flat(result.stderr)) == (1, "", True)


def test_the_releases_sets_are_read(tmp_path: Path) -> None:
    """The release names its files otherwise, and its lines have further keys."""
    line = {"r": "(visit.1::ann::paris::EE::0::1::person::location)", "partition_key": SLICE, "in_partition_sidx": 3}
    more = {"wn_synsets": {"visit": ["visit%2:38:00::"]}, "negatives": []}
    (tmp_path / "release").mkdir()
    rows = [{**line, **more, "label": label} for label in (True, False)]
    written(tmp_path / "release" / "nc_final_samples_dev.json", rows)
    sets = hapax.read_questions(tmp_path / "release", [written(tmp_path / "c.jsonl", SAID)])

    assert {name: len(found) for name, found in sets.items()} == {"nc_final_samples_dev": 2}
