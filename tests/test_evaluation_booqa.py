"""BoOQA: building it from a corpus with planted rows, in English and Chinese."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from booqa_fixture import CORE, Planted, install, parsed, planted
from cli_fixture import invoke
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.booqa import corpus as corpus_module
from hapax.evaluation.booqa.build import BuildSettings, HyponymSource, build_into
from hapax.evaluation.booqa.corpus import Mention, Sentence, read_relation, sentences, slice_of, write_relation
from hapax.evaluation.booqa.filters import CountedUnit, CountRange, is_vague, pair_faults, positives
from hapax.evaluation.booqa.negatives import SAID, UNUSUAL, PredicateIndex, Replacer, senses_by_critic, senses_from_file
from hapax.evaluation.booqa.records import Proposition, read_questions, read_set
from hapax.evaluation.booqa.sampling import BARS, BalancedPositive, allotments, halves, mapped
from hapax.evaluation.entailment.lexicon import (
    Lexicon,
    ReplacementDirection,
    SenseChoice,
    every_sense,
    first_sense,
    neighbours,
)
from hapax.evaluation.entailment.wording import predicate_words
from hapax.evaluation.entailment.wordnet_folder import open_lexicon
from hapax.grammar.errors import HapaxError

TYPES = ("person", "location")


@pytest.fixture(scope="module", autouse=True)
def _wordnets(tmp_path_factory: pytest.TempPathFactory) -> None:
    install(tmp_path_factory.mktemp("wn"))


def run(*arguments: object) -> Result:
    return invoke("evaluate", "booqa", *arguments)


# Words and slices


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("(shop.1,shop.in.2)", "shop in"),
        ("(bear.2,bear.in.2)", "bear in"),
        ("NEG__(visit.1,visit.2)", "do not visit"),
        ("NEG__(is.1,is.in.2)", "is not in"),
        ("try__(visit.1,visit.2)", "try to visit"),
        ("try.to__(visit.1,visit.2)", "try to visit"),
        ("_(visit.1,visit.2)", "visit"),
        ("was born in", "was born in"),
        ("Co-founded", "co-founded"),
        ("take_part in", "take part in"),
    ],
)
def test_predicates_have_words(predicate: str, words: str) -> None:
    """Parsed predicates give the words of their second half with negation and prefix, plain ones their own."""
    assert " ".join(predicate_words(predicate)) == words


def test_chinese_predicates_are_split_at_dots() -> None:
    """Parsed or not, the parts stay in order, the object's place among them."""
    assert (
        predicate_words("(在·X·工作.1,在·X·工作.2)", "ZH") == predicate_words("在·X·工作", "ZH") == ("在", "X", "工作")
    )


@pytest.mark.parametrize(
    ("written", "slice_key"),
    [
        ("2008-04-21", "2008_04-21_04-23"),
        ("2008-04-23T10:00:00", "2008_04-21_04-23"),
        ("Sep 29, 2014 12:00:00 AM", "2014_09-27_09-29"),
        ("07-26 12:30", "07-26_07-28"),
        ("2016年7月28日", "2016_07-26_07-28"),
        ("7月26日", "07-26_07-28"),
        ("2009-02-28", "2009_02-27_02-29"),
        ("2009-03-01", "2009_03-01_03-03"),
        ("2010-12-31", "2010_12-29_12-31"),
        ("2009-02-30", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_dates_fall_into_slices(written: str, slice_key: str | None) -> None:
    """ISO, the release's English and Chinese forms are read; each year begins anew, and February has 29 days."""
    assert slice_of(written) == slice_key


@given(st.integers(1, 400))
def test_slices_are_disjoint_and_cover_the_year(days: int) -> None:
    """Every day of a leap year lies within the bounds of its own slice, and slices come one after the other."""
    year = [date(2000, 1, 1) + timedelta(number) for number in range(366)]
    keys = [slice_of(day.isoformat(), days) for day in year]

    assert all(
        key and key.split("_")[1] <= f"{day:%m-%d}" <= key.split("_")[2] for key, day in zip(keys, year, strict=True)
    )
    assert all(count <= days for count in Counter(keys).values())
    assert len(list(dict.fromkeys(keys))) == sum(
        key != earlier for key, earlier in zip(keys, [None, *keys[:-1]], strict=True)
    )


# Reading


def test_release_sentences_are_read(tmp_path: Path) -> None:
    """A line of the release is a sentence with its triples; repeated ones and those without a date are counted, not kept."""
    rels = [
        {"r": "(visit.1::ann::paris::EE::0::1::person::location)"},
        {"r": "(like.1::ann::paris::EE::0::1::person::location)"},
    ]
    line = {"s": "Ann visits Paris.", "date": "Apr 21, 2008 12:00:00 AM", "articleId": 7, "lineId": 1, "rels": rels}
    path = tmp_path / "nc.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in (line, line, {**line, "s": "x", "date": "?"})), "utf-8")
    dropped: Counter[str] = Counter()
    (found_sentence,) = sentences([path], 3, dropped)

    assert found_sentence.triples[0] == Mention("visit.1", "ann", "paris", *TYPES)
    assert (found_sentence.slice, found_sentence.index, found_sentence.document, len(found_sentence.triples)) == (
        "2008_04-21_04-23",
        0,
        "7",
        2,
    )
    assert dropped == {"sentence repeated": 2, "undated": 2}


def test_lines_of_one_sentence_belong_together(tmp_path: Path) -> None:
    """Triples that follow one another with one text and document are one sentence; without a text each is its own."""
    line = {"subject": "a", "predicate": "p", "object": "b", "types": TYPES, "date": "2008-04-21", "document": "d"}
    path = tmp_path / "x.jsonl"
    rows = [{**line, "sentence": "A."}, {**line, "sentence": "A.", "predicate": "q"}, line, line]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    assert [
        (found_sentence.index, len(found_sentence.triples)) for found_sentence in sentences([path], 3, Counter())
    ] == [(0, 2), (1, 1), (2, 1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "x.jsonl:1:"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "recursion"),
        (
            r'{"subject": "\ud800", "predicate": "p", "object": "b", "types": ["x", "y"], "date": "", "document": 1}',
            "surrogates not allowed",
        ),
        ('{"subject": "a"}', "key 'types' is missing"),
        (
            '{"subject": "a::b", "predicate": "p", "object": "b", "types": ["x", "y"], "date": "", "document": "1"}',
            "'a::b' is not a part",
        ),
        (
            '{"subject": "a", "predicate": "p", "object": "b", "types": ["x"], "date": "", "document": "1"}',
            "not enough values",
        ),
        ('{"s": "A.", "date": "", "articleId": 1, "rels": [{"r": "(a::b::c)"}]}', "'(a::b::c)' is not a relation"),
    ],
)
def test_faulty_lines_are_told(tmp_path: Path, line: str, message: str) -> None:
    """Place, fact and the form of a line, and exit code 1."""
    path = tmp_path / "x.jsonl"
    path.write_text(line + "\n", "utf-8")
    result = run("build", path, "--out", tmp_path / "out", "--db", tmp_path / "x.db")

    assert result.exit_code == 1
    shown = " ".join(result.stderr.split())
    assert message in shown
    assert "Write a triple" in shown


_PART = st.text(
    st.characters(blacklist_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], blacklist_characters=":"), min_size=1
)


@given(_PART, _PART, _PART, _PART, _PART)
def test_relations_survive_writing(relation: str, subject: str, object_: str, first: str, second: str) -> None:
    """A relation written in the release's format is read back."""
    mention = Mention(relation, subject, object_, first, second)

    assert read_relation(write_relation(mention)) == mention


# Filters


def say(*rows: tuple[str, str, str]) -> list[Sentence]:
    """Sentences of one slice: document, subject and predicate, about Paris."""
    return [
        Sentence("s", number, document, "", (Mention(predicate, subject, "Paris", *TYPES),))
        for number, (document, subject, predicate) in enumerate(rows)
    ]


@pytest.mark.parametrize(("count", "fault"), [(14, "too few mentions"), (15, ""), (29, ""), (30, "too many mentions")])
def test_pairs_from_fifteen_and_below_thirty(count: int, fault: str) -> None:
    """The release's bounds: 15 documents count in, 30 do not."""
    found = say(*((f"d{number}", "Ann", f"p{number % 20}") for number in range(count)))

    assert pair_faults(found, CountRange(15, 30), CountedUnit.DOCUMENT) == {("ann", "paris", *TYPES): fault}


def test_units_count_differently() -> None:
    """Two triples of one sentence, and two sentences of one document."""
    mention = Mention("p", "Ann", "Paris", *TYPES)
    similar = mention._replace(relation="q")
    found = [Sentence("s", 0, "d", "", (mention, similar)), Sentence("s", 1, "d", "", (mention,))]
    faults = [list(pair_faults(found, CountRange(2, 0), unit).values()) for unit in CountedUnit]

    assert faults == [[""], [""], ["too few mentions"]]
    assert list(pair_faults(found, CountRange(3, 0), CountedUnit.SENTENCE).values()) == ["too few mentions"]
    assert list(pair_faults(found, CountRange(3, 0), CountedUnit.TRIPLE).values()) == ["too few different predicates"]


@pytest.mark.parametrize(
    ("relation", "language", "vague"),
    [
        ("(be.1,be.in.2)", "EN", True),
        ("has", "EN", True),
        ("(be.1,be.born.2)", "EN", False),
        ("是", "ZH", True),
        ("(有·X·的.1,有·X·的.2)", "ZH", True),
        ("(访问.1,访问.2)", "ZH", False),
    ],
)
def test_vague_predicates(relation: str, language: str, vague: bool) -> None:
    """Predicates of nothing but `be`, `have`, prepositions and their Chinese like ask nothing."""
    assert is_vague(relation, language) is vague


def test_each_filter_drops_its_rows() -> None:
    """Of one pair the vague and the rare predicate go, each for its reason, and what is left keeps its sentence."""
    found = say(("1", "Ann", "visit"), ("2", "Ann", "be"), ("3", "Ann", "stalk"), ("4", "he", "visit"))
    faults = pair_faults(found, CountRange(3, 0), CountedUnit.DOCUMENT)
    counts = Counter({("visit", *TYPES): 30, ("be", *TYPES): 90, ("stalk", *TYPES): 29})
    kept, dropped = positives(found, faults, counts, CountRange(30, 0), "EN")

    assert [(positive.mention.relation, positive.sentence) for positive in kept] == [("visit", 0)]
    assert dropped == {"vague predicate": 1, "too few occurrences of the predicate": 1, "pronoun": 1}


# Negatives


def replacer(choose: SenseChoice = first_sense, said: frozenset[str] = frozenset({"visit"}), **counts: int) -> Replacer:
    lexicon = Lexicon.open("toy-en")
    known = {"tour": 40, "inspect": 30, "assist": 50, "plague": 60, "revisit": 60, "courtesy.call": 70, **counts}
    index = PredicateIndex({(parsed(word), *TYPES): count for word, count in known.items()}, lexicon)
    return Replacer(lexicon, choose, index, {("ann", "paris", *TYPES): said}, CountRange(30, 0))


ANN = Mention(parsed("visit"), "Ann", "Paris", *TYPES)


def test_negatives_are_narrower() -> None:
    """Hyponyms of the first verb sense that the corpus has often enough; not of nouns, nor what shares the lemma."""
    finder = replacer()
    found = finder.negatives(ANN)

    assert found.relations == (parsed("tour"), parsed("inspect"))
    assert found.senses == {"visit": ("toy-en-visit-v",)}
    assert finder.dropped == {UNUSUAL: 1}  # stop by


def test_words_around_stay() -> None:
    """Inside a longer predicate the word alone is replaced, and prepositions never are."""
    finder = replacer(**{"visit.with": 90, "tour.with": 30, "tour": 29})

    assert finder.negatives(ANN._replace(relation="(visit.1,visit.with.2)")).relations == ("(tour.with.1,tour.with.2)",)


def test_negatives_are_never_said() -> None:
    """A predicate that the corpus has for the pair anywhere is not a negative, nor is a synonym of it."""
    finder = replacer(said=frozenset({"visit", "do the sights of", "inspect"}))

    assert finder.negatives(ANN).relations == ()
    assert finder.dropped == {SAID: 2, UNUSUAL: 1}


def test_inflected_predicates_are_found() -> None:
    """Plain text is compared by lemmas, and the corpus' most frequent form stands for all."""
    lexicon = Lexicon.open("toy-en")
    index = PredicateIndex({("toured", *TYPES): 20, ("tours", *TYPES): 12}, lexicon)
    finder = Replacer(lexicon, first_sense, index, {("ann", "paris", *TYPES): frozenset({"visit"})}, CountRange(30, 0))

    assert finder.negatives(ANN._replace(relation="visited")).relations == ("toured",)
    assert finder.index.count(ANN._replace(relation="touring")) == 32


def test_senses_can_be_chosen(tmp_path: Path) -> None:
    """All senses, those of a file, or the one that a critic prefers."""
    path = tmp_path / "senses.jsonl"
    path.write_text('{"words": "visit", "synsets": ["toy-en-afflict-v"]}\n', "utf-8")

    def critic(texts: list[str]) -> list[float]:
        return [0.9 * ("call in call-n" in text) for text in texts]

    assert set(replacer(every_sense).negatives(ANN).relations) == {
        parsed(word) for word in ("tour", "inspect", "plague", "courtesy.call")
    }
    assert replacer(senses_from_file(path)).negatives(ANN).relations == (parsed("plague"),)
    assert replacer(senses_by_critic(critic)).negatives(ANN).relations == (parsed("courtesy.call"),)  # type: ignore[arg-type]


def test_faulty_senses_are_told(tmp_path: Path) -> None:
    """A line of another form, and a file that is not there."""
    path = tmp_path / "senses.jsonl"
    path.write_text('{"words": "visit"}\n', "utf-8")

    with pytest.raises(HapaxError, match=r"senses.jsonl:1: write"):
        senses_from_file(path)
    with pytest.raises(HapaxError, match="cannot be read"):
        senses_from_file(tmp_path / "none")


# Sampling


def items(*frequencies: tuple[int, ...]) -> list[BalancedPositive]:
    """A positive's frequency, and its negatives'."""
    question = Proposition(ANN, "s", 0, True)
    return [
        BalancedPositive(
            replace(question, sentence=place), tuple(replace(question, label=False) for _ in others), first, others
        )
        for place, (first, *rest) in enumerate(frequencies)
        for others in (tuple(rest),)
    ]


def test_negatives_become_as_frequent_as_positives() -> None:
    """Half of the positives are rare, so at most half of 1.9 negatives for each may be: then frequency tells nothing."""
    given_items = items(*[(40, 40, 40)] * 50, *[(40, 200, 200)] * 50, *[(200, 40, 40)] * 100)
    kept, dropped = mapped(given_items, 100, random.Random(0))
    negatives = Counter(bisected for item in kept for bisected in item.negative_frequencies)

    assert len(kept) + sum(dropped.values()) == 200
    assert negatives[40] <= 95
    assert negatives[200] <= 95
    assert len(kept) >= 94


@given(
    st.lists(st.tuples(st.sampled_from([35, 80, 250]), st.sampled_from([35, 80, 250])), max_size=40), st.integers(0, 40)
)
def test_no_frequency_is_overdrawn(pairs: list[tuple[int, int]], allotment: int) -> None:
    """Of each frequency no more negatives are taken than positives ask for, rounded up, nor more items than wanted."""
    given_items = items(*pairs)
    kept, dropped = mapped(given_items, allotment, random.Random(1))
    shares = Counter(item.frequency for item in given_items)
    taken = Counter(item.negative_frequencies[0] for item in kept)

    assert len(kept) <= allotment
    assert len(kept) + dropped.total() == len(given_items)
    assert all(taken[bucket] <= shares[bucket] / len(given_items) * allotment * 0.95 + 1 for bucket in taken)
    assert BARS[0] == 30


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 50), min_size=1), st.integers(1, 400))
def test_samples_are_shared_out(sizes: dict[str, int], sample: int) -> None:
    """All where there are too few, else so many together, and no slice more than it has."""
    shares = allotments(sizes, sample)

    assert sum(shares.values()) == min(sum(sizes.values()), sample)
    assert all(0 <= shares[key] <= sizes[key] for key in sizes)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1), st.integers(0, 5))
def test_slices_go_whole_to_dev_or_test(sizes: dict[str, int], seed: int) -> None:
    """Each slice has one home, and dev never more than half."""
    homes = halves(sizes, random.Random(seed))

    assert homes.keys() == sizes.keys()
    assert sum(sizes[key] for key in sizes if homes[key] == "dev") <= sum(sizes.values()) / 2


# The command


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[Planted, Path, Path]:
    """The planted corpus, its file, and what was built from it."""
    folder = tmp_path_factory.mktemp("booqa")
    corpus = planted()
    path = corpus.write(folder / "triples.jsonl")
    result = run("build", path, "--out", folder / "built", "--db", folder / "x.db")
    assert result.exit_code == 0, result.output
    return corpus, path, folder / "built"


def steps(folder: Path) -> dict[str, Any]:
    return {step["name"]: step for step in json.loads((folder / "report.json").read_text("utf-8"))["steps"]}


def test_each_filter_drops_exactly_the_planted_rows(world: tuple[Planted, Path, Path]) -> None:
    """Of some 2,000 triples just those go that were planted for a filter, and all else are positives."""
    corpus, _, folder = world
    outcome = steps(folder)
    dropped = Counter(outcome["time slices"]["dropped"]) + Counter(outcome["entity pairs and predicates"]["dropped"])

    assert len(corpus.lines) == 2009
    assert dropped == corpus.dropped
    assert (
        outcome["entity pairs and predicates"]["kept"] == 90 * len(CORE) == len(corpus.lines) - corpus.dropped.total()
    )


def test_negatives_of_the_planted_corpus(world: tuple[Planted, Path, Path]) -> None:
    """Visits and help alone have hyponyms; five pairs are toured elsewhere, and five are helped by a synonym."""
    outcome = steps(world[2])

    assert outcome["WordNet"]["dropped"] == {"no negative found": 90 * 14 + 5}
    assert outcome["WordNet"]["kept"] == 90 + 85
    assert outcome["replacements"] == {
        "name": "replacements",
        "kept": 85 * 2 + 5 + 85,
        "noun": "negatives",
        "dropped": {SAID: 10, UNUSUAL: 90},
    }


def test_what_is_built(world: tuple[Planted, Path, Path]) -> None:
    """Positives are said of pairs that are asked about, negatives of the same pairs never; slices stay whole."""
    corpus, _, folder = world
    sets = read_set(folder)
    said = {(line["subject"], line["predicate"], line["object"]) for line in corpus.lines}
    questions = [question for some in sets.values() for question in some]

    assert set(sets) == {"dev", "test"}
    assert {(question.mention.subject, question.mention.object) for question in questions} <= corpus.asked
    assert all(
        ((question.mention.subject, question.mention.relation, question.mention.object) in said) is question.label
        for question in questions
    )
    assert not {question.slice for question in sets["dev"]} & {question.slice for question in sets["test"]}
    assert {question.positive for question in questions if not question.label} == {parsed("visit"), parsed("help")}
    assert len({(question.slice, question.sentence) for question in questions if question.label}) == sum(
        question.label for question in questions
    )


def test_records_have_the_releases_keys(world: tuple[Planted, Path, Path]) -> None:
    """Each line has the six keys, a negative its positive's predicate too, and both are read back."""
    path = world[2] / "dev.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    keys = ["r", "partition_key", "in_partition_sidx", "wn_synsets", "label", "proposition"]

    assert [list(row)[:6] for row in rows] == [keys] * len(rows)
    assert {"posi_upred" in row for row in rows if not row["label"]} == {True}
    assert [question.to_json("EN") for question in read_questions(path)] == rows
    assert rows[0]["proposition"].startswith("Person ")


def test_equal_corpora_give_equal_bytes(
    world: tuple[Planted, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same seed builds the same files, however much is kept in memory; another seed another sample."""
    _, path, folder = world
    monkeypatch.setattr(corpus_module, "BUFFERED", 100)
    words = HyponymSource(Lexicon.open("toy-en"), first_sense)
    build_into(tmp_path / "same", [path], words, BuildSettings())
    build_into(tmp_path / "other", [path], words, BuildSettings(seed=1))
    names = ("dev.jsonl", "test.jsonl", "report.json")

    assert [(tmp_path / "same" / name).read_bytes() for name in names] == [
        (folder / name).read_bytes() for name in names
    ]
    assert (tmp_path / "other" / "dev.jsonl").read_bytes() != (folder / "dev.jsonl").read_bytes()
    assert sorted(path.name for path in (tmp_path / "same").iterdir()) == sorted(names)


def test_samples_and_options(world: tuple[Planted, Path, Path], tmp_path: Path) -> None:
    """--sample and --negatives bound the set; without the frequency map the sample is met exactly."""
    _, path, _ = world
    words = ("build", path, "--out", tmp_path / "x", "--db", tmp_path / "x.db", "--sample", 40, "--negatives", 1)
    result = run(*words, "--no-frequency-map", "--json")
    printed = json.loads(result.stdout)

    assert sum(figures["positives"] for figures in printed["sets"].values()) == 40
    assert sum(figures["negatives"] for figures in printed["sets"].values()) == 40
    assert {figures["name"]: figures["dropped"] for figures in printed["steps"]}["sample"] == {"beyond the sample": 135}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "triples.jsonl: no triple. Name a corpus"),
        (
            '{"subject": "Ann", "predicate": "(visit.1,visit.2)", "object": "Rome", "types": ["person", "location"],'
            ' "date": "?", "document": "1"}\n',
            "no triple that can be used (left out: 1 undated)",
        ),
    ],
)
def test_a_corpus_of_nothing_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """Without a triple there are no questions: the build fails, says why, and writes no set."""
    (tmp_path / "triples.jsonl").write_text(text, "utf-8")
    words = ("--out", tmp_path / "x", "--lexicon", "toy-en", "--db", tmp_path / "x.db")
    result = run("build", tmp_path / "triples.jsonl", *words)

    assert result.exit_code == 1
    assert message in " ".join(result.stderr.split())
    assert not list((tmp_path / "x").glob("*"))


def test_wordnets_are_named(world: tuple[Planted, Path, Path], tmp_path: Path) -> None:
    """A WordNet that is not installed is told with those that are, and how to get one."""
    result = run("build", world[1], "--out", tmp_path / "x", "--lexicon", "oewn:2024")

    assert result.exit_code == 1
    shown = " ".join(result.stderr.split())
    assert "No WordNet oewn:2024 is installed (installed: toy-en:1, toy-zh:1)" in shown
    assert "python -m wn download" in shown


def test_finished_sets_are_read(tmp_path: Path) -> None:
    """The release's own lines are, whatever else they hold; faulty ones are told, and so is an empty folder."""
    line = {
        "r": "(visit.1::ann::paris::EE::0::1::person::location)",
        "partition_key": "2008_04-19_04-21",
        "in_partition_sidx": 3,
    }
    path = tmp_path / "nc_final_samples_dev.json"
    path.write_text(
        json.dumps({**line, "wn_synsets": {"visit": ["visit%2:38:00::"]}, "label": True, "negatives": []}), "utf-8"
    )
    (question,) = read_set(tmp_path)["nc_final_samples_dev"]

    assert (question.mention.subject, question.sentence, question.senses) == ("ann", 3, {"visit": ("visit%2:38:00::",)})
    path.write_text(json.dumps({**line, "label": 1}), "utf-8")
    with pytest.raises(HapaxError, match=r"dev.json:1: not a question: the label is 1"):
        read_set(tmp_path)
    with pytest.raises(HapaxError, match="contains no questions"):
        read_set(tmp_path / "empty")


# Chinese


def test_a_chinese_slice(tmp_path: Path) -> None:
    """Dates without a year, predicates with the object's place, and negatives and propositions without blanks."""
    rows = [
        {
            "subject": who,
            "predicate": f"({verb}.1,{verb}.2)",
            "object": "北京",
            "types": ["人", "地点"],
            "date": "07-26 12:30",
            "document": f"{who}{verb}",
            "sentence": f"{who}{verb}。",
        }
        for who in ("小明", "小红")
        for verb in ("在·X·工作", "访问", "是", *(("参观",) if who == "小红" else ()))
    ]
    rows += [
        {
            **rows[0],
            "subject": f"老师{n}",
            "predicate": "(在·X·任教.1,在·X·任教.2)",
            "document": f"t{n}",
            "sentence": f"t{n}",
        }
        for n in range(2)
    ]
    path = tmp_path / "zh.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    bounds = ("--pair-from", 3, "--predicate-from", 1, "--no-frequency-map", "--language", "ZH")
    result = run("build", path, "--out", tmp_path / "zh", "--db", tmp_path / "x.db", *bounds)
    questions = [question for some in read_set(tmp_path / "zh").values() for question in some]

    assert result.exit_code == 0, result.output
    assert {question.slice for question in questions} == {"07-26_07-28"}
    assert sorted((question.proposition("ZH"), question.label) for question in questions) == [
        ("小明参观北京", False),
        ("小明在北京任教", False),
        ("小明在北京工作", True),
        ("小明访问北京", True),
        ("小红在北京任教", False),
        ("小红在北京工作", True),
    ]


def wordnet_files(folder: Path) -> Path:
    """A folder of WordNet's own files with three verbs and a noun: visiting, touring and going, and a tour."""
    folder.mkdir()
    licence = "  1 a line of the licence\n"
    synsets = {
        "verb": (
            ("visit", "call_in", "@ {go} v 0000 ~ {tour} v 0000", "go to see a place"),
            ("tour", None, "@ {visit} v 0000", "make a tour of a certain place"),
            ("go", None, "~ {visit} v 0000", "change place"),
        ),
        "noun": (("tour", None, "", "a journey"),),
    }
    for part, rows in synsets.items():
        offsets: dict[str, int] = {}
        for _ in range(2):  # the second time with the offsets of the first
            text = licence
            for word, other, pointers, gloss in rows:
                offset, names = len(text), [word, *([other] if other else [])]
                known = {name: f"{offsets.get(name, 0):08d}" for name in ("visit", "tour", "go")}
                lemmas = " ".join(f"{name} 0" for name in names)
                filled = pointers.format(**known)
                count = filled.count(f" {part[0]} ")
                text += f"{offset:08d} 38 {part[0]} {len(names):02x} {lemmas} {count:03d} {filled} | {gloss}  \n"
                offsets[word] = offset
        (folder / f"data.{part}").write_text(text, "ascii")
        index = "".join(f"{word} {part[0]} 1 1 @ 1 0 {offsets[word]:08d}  \n" for word, *_ in rows)
        (folder / f"index.{part}").write_text(licence + index, "ascii")
        (folder / f"{part}.exc").write_text("went go\n" if part == "verb" else "", "ascii")
    return folder


def test_wordnets_own_files_are_a_lexicon(tmp_path: Path) -> None:
    """Lemmas, senses and relations come from a folder of WordNet's files; verbs come before nouns."""
    lexicon = open_lexicon(str(wordnet_files(tmp_path / "dict")))
    visit, *_ = lexicon.senses("visited")

    assert [lexicon.lemma(word) for word in ("visits", "touring", "went", "spam")] == ["visit", "tour", "go", "spam"]
    assert (visit.lemmas, visit.definition) == (("visit", "call in"), "go to see a place")
    assert [sense.lemmas for sense in lexicon.related(visit.id, ReplacementDirection.NARROWER)] == [("tour",)]
    assert [sense.lemmas for sense in lexicon.broader(visit.id)] == [("go",)]
    assert [sense.definition for sense in lexicon.senses("tour")] == ["make a tour of a certain place", "a journey"]


def test_a_folder_without_wordnet_is_refused(tmp_path: Path) -> None:
    """A folder without WordNet's files is refused with the package that has them."""
    with pytest.raises(HapaxError, match="Install Debian's package wordnet-base"):
        open_lexicon(str(tmp_path))


def test_negatives_of_a_far_other_frequency_are_dropped() -> None:
    """The ratio between a positive's frequency and its negatives' is the larger of both ways."""
    question = Proposition(ANN, label=True, slice="s", sentence=0, senses={})
    balanced = BalancedPositive(question, (question, question), 40, (20, 400))

    assert balanced.frequency_ratio == 10.0
    assert replace(balanced, negative_frequencies=(20, 10)).frequency_ratio == 4.0


def test_sentences_of_another_corpus_are_left_out(tmp_path: Path) -> None:
    """Sentences that a corpus left out has, too, are no part of the corpus, and their triples are counted."""
    rows = []
    for name in ("Ann", "Bob"):
        rows.append(
            {
                "subject": name,
                "predicate": "visit",
                "object": "Paris",
                "types": list(TYPES),
                "date": "2008-04-21",
                "document": name,
                "sentence": f"{name} visited Paris.",
            }
        )
    corpus, graph = tmp_path / "corpus.jsonl", tmp_path / "graph.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    graph.write_text(json.dumps(rows[0]) + "\n", "utf-8")
    dropped: Counter[str] = Counter()

    found = list(sentences([corpus], 3, dropped, [graph]))

    assert [sentence.document for sentence in found] == ["Bob"]
    assert dropped == {"sentence of a corpus left out": 1}


def test_light_verbs_have_no_stand_ins(tmp_path: Path) -> None:
    """A light verb by itself has no stand-ins, since it says too little, and other verbs have theirs."""
    lexicon = open_lexicon(str(wordnet_files(tmp_path / "dict")))
    nearest = neighbours(lexicon, ReplacementDirection.NARROWER)

    assert nearest("(visit.1,visit.2)", {"tour", "visit"}) == [("tour", 1.0)]
    assert lexicon.related(lexicon.senses("go")[0].id, ReplacementDirection.NARROWER)
    assert nearest("(go.1,go.2)", {"tour", "visit"}) == []
