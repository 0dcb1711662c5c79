"""BoOQA answered: premises from the corpus, and gold answers for every way of scoring them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from booqa_fixture import install
from cli_fixture import invoke
from click.testing import Result

from hapax.evaluation.booqa.corpus import Mention, Sentence
from hapax.evaluation.booqa.premises import Context, PremiseSettings, QuestionWithPremises, ask
from hapax.evaluation.booqa.records import Proposition, write_questions
from hapax.evaluation.booqa.retrieval import DocumentIndex
from hapax.evaluation.booqa.scoring import BestPremise, Frequency, Null
from hapax.evaluation.entailment.graph_files import (
    GraphScorer,
    Neighbours,
    Smoothing,
    graph_paths,
    read_graph,
    read_neighbours,
)
from hapax.evaluation.entailment.lexicon import Lexicon, ReplacementDirection, WordNetScorer, neighbours
from hapax.evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple, TypedTriple, read_levy_holt
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.grammar.errors import HapaxError

TYPES = ("person", "location")
SLICE = "2008_04-21_04-23"


@pytest.fixture(scope="module", autouse=True)
def _wordnets(tmp_path_factory: pytest.TempPathFactory) -> None:
    install(tmp_path_factory.mktemp("wn"))


def pair(premise: str, hypothesis: str, types: tuple[str, str] = TYPES, turned: bool = False) -> EntailmentPair:
    """Parsed predicates of Ann and Paris; `turned`: the premise says it of Paris and Ann."""
    first, second = ("Paris", "Ann") if turned else ("Ann", "Paris")
    triple = Mention(premise, first, second, *(types[::-1] if turned else types)).triple("EN")
    return EntailmentPair(triple, Mention(hypothesis, "Ann", "Paris", *types).triple("EN"), True)


SHOP, GO, HOST, MARRY = "(shop.1,shop.in.2)", "(go.1,go.to.2)", "(host.1,host.2)", "(marry.1,marry.2)"

# Graph files

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
    folder = tmp_path / "graphs"
    folder.mkdir()
    for name, text in (("person#location", PLACES), ("person#person", PEOPLE), ("thing#location", THINGS)):
        (folder / f"{name}_gsim.txt").write_text(text, "utf-8")
    return folder


def test_graph_files_are_read(graphs: Path) -> None:
    """Types, nodes, and the similarities asked for; the global ones unless others are."""
    path = graphs / "person#location_gsim.txt"
    graph, local = read_graph(path), read_graph(path, "local")
    shop, go = ("(shop.1,shop.in.2)#person#location", "(go.1,go.to.2)#person#location")

    assert (graph.types, read_graph(graphs / "person#person_gsim.txt").types) == (TYPES, ("person", "person"))
    assert (graph.score(shop, go), graph.score(go, shop), graph.score(go, go)) == (0.8, 0.0, 1.0)
    assert (local.score(shop, go), local.score(shop, "(be.1,be.in.2)#person#location")) == (0.3, 0.2)
    assert graph.score(shop, "(be.1,be.in.2)#person#location") is None
    assert graph.by_words["go to"] == ("(go.1,go.to.2)",)


@pytest.mark.parametrize(
    ("text", "block", "message"),
    [
        ("nothing", "", "not an entailment graph"),
        ("types: a#b, num preds: 1\n", "", "not an entailment graph"),
        (PLACES, "cos", "contains local sims, global sims, but none named cos"),
        ("types: a#b\npredicate: (p.1,p.2)#a#b\n", "", "contains no similarities"),
        ("types: a#b\npredicate: (p.1,p.2)#a#b\ncos sims\nlin sims\n", "", "contains cos sims, lin sims"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, block: str, message: str) -> None:
    """Errors for files without a graph or without the similarities name the similarities there are."""
    path = tmp_path / "x.txt"
    path.write_text(text, "utf-8")

    with pytest.raises(HapaxError, match=message):
        read_graph(path, block)


def test_graphs_are_found(graphs: Path, tmp_path: Path) -> None:
    """A folder, a file, a pattern; two graphs of the same types are refused, and so is what is not there."""
    (graphs / "person#location_sim.txt").write_text(PLACES, "utf-8")

    assert len(graph_paths(str(graphs))) == 4
    assert len(graph_paths(str(graphs / "*_gsim.txt"))) == 3
    with pytest.raises(HapaxError, match="are graphs of the same types"):
        GraphScorer(str(graphs)).scores([pair(SHOP, GO)])
    with pytest.raises(HapaxError, match="cannot be read"):
        GraphScorer(str(tmp_path / "none.txt")).scores([])
    with pytest.raises(HapaxError, match=r"contains no `.txt` file"):
        graph_paths(str(tmp_path))


@pytest.mark.parametrize(
    ("looked_up", "score"),
    [
        (pair(SHOP, GO), 0.8),
        (pair(GO, SHOP), 0.0),
        (pair(GO, GO), 1.0),
        (pair(HOST, GO, turned=True), 0.6),  # Paris hosts Ann: Ann goes to Paris
        (pair(HOST, GO), 0.0),  # Ann hosts Paris
        (pair(SHOP, GO, ("person", "person")), 0.5),
        (pair(MARRY, MARRY, ("person", "person"), turned=True), 0.9),
        (pair("(shop.in.1,shop.in.2)", GO), 0.8),  # by its words
        (pair(SHOP, GO, ("person", "park")), (0.8 + 0.5 + 0.0) / 3),  # no such graph: the mean of all three
        (pair("(fly.1,fly.to.2)", GO), 0.0),
        (EntailmentPair(Triple("a", "shop in", "b"), Triple("a", "Go to", "b"), True), (0.8 + 0.5 + 0.0) / 3),
        (EntailmentPair(ANYTHING, pair(SHOP, GO).hypothesis, True), 0.0),
    ],
)
def test_graphs_are_looked_up(graphs: Path, looked_up: EntailmentPair, score: float) -> None:
    """Typed first, then all types; arguments in their places; by words where the parse is another or there is none."""
    assert GraphScorer(str(graphs)).scores([looked_up]) == pytest.approx([score])


def test_types_back_off_over_best_premises(graphs: Path) -> None:
    """Of several premises each graph takes its best, and the mean is over graphs."""
    group = [pair(relation, GO, ("person", "park")) for relation in (SHOP, GO)]

    assert GraphScorer(str(graphs)).grouped([group, []]) == pytest.approx([1.0, 0.0])
    assert GraphScorer(str(graphs), "local").sees is VisibleSides.BOTH


def near(*found: tuple[str, float]) -> Neighbours:
    return lambda predicate, among: [neighbour for neighbour in found if neighbour[0] in among]


def test_neighbours_smooth(graphs: Path) -> None:
    """A predicate that no graph holds is scored by its neighbours, times their similarity; on both sides at once, too."""
    unknown = pair("(stroll.1,stroll.through.2)", GO)
    both = pair("(stroll.1,stroll.through.2)", "(reach.1,reach.2)")
    premise, hypothesis = near(("shop in", 0.5)), near(("go to", 0.25))

    assert GraphScorer(str(graphs), smoothing=Smoothing(premise)).scores([unknown, both]) == pytest.approx([0.4, 0.0])
    assert GraphScorer(str(graphs), smoothing=Smoothing(premise, hypothesis)).scores([both]) == pytest.approx([0.1])
    assert GraphScorer(str(graphs), smoothing=Smoothing(None, hypothesis)).scores([pair(SHOP, GO)]) == [0.8]


def test_neighbours_from_a_file(tmp_path: Path) -> None:
    """The nearest that the graph knows, so many; faulty lines are told."""
    path = tmp_path / "near.tsv"
    path.write_text("stroll through\tgo to\t0.4\nstroll through\tShop in\t0.5\nstroll through\tfly\t0.9\n", "utf-8")

    assert read_neighbours(path)("stroll through", ["go to", "shop in"]) == [("shop in", 0.5), ("go to", 0.4)]
    assert read_neighbours(path, 1)("stroll through", ["go to", "shop in"]) == [("shop in", 0.5)]
    path.write_text("a\tb\t0.5\n\n\na\tb\t2\n", "utf-8")
    with pytest.raises(HapaxError, match=r"near.tsv:4: write a predicate"):
        read_neighbours(path)


def test_neighbours_from_wordnet() -> None:
    """One step broader or narrower, with the words around, as far as the graph knows them."""
    lexicon = Lexicon.open("toy-en")
    among = ["tour with", "inspect with", "stop by with", "go with", "go"]

    assert neighbours(lexicon, ReplacementDirection.NARROWER)("visit with", among) == [
        (name, 1.0) for name in among[:3]
    ]
    assert neighbours(lexicon, ReplacementDirection.NARROWER, 2)("visit with", among) == [
        (name, 1.0) for name in among[:2]
    ]
    assert neighbours(lexicon, ReplacementDirection.BROADER)("visited with", among) == [("go with", 1.0)]


def test_parsed_levy_holt_is_read(tmp_path: Path, graphs: Path) -> None:
    """entGraph's `_rels.txt` gives words to every scorer, and predicates and types to graphs."""
    path = tmp_path / "dev_rels.txt"
    lines = (
        "(go.1,go.to.2) ann-lee::person ikea::location\t(shop.1,shop.in.2) ann-lee::person ikea::location\tTrue",
        "(go.1,go.to.2) ann-lee::person ikea::location\t(host.1,host.2) ikea::location ann-lee::person\tTrue",
    )
    path.write_text("\n".join(lines), "utf-8")
    found = read_levy_holt(path)

    assert found[0].premise == TypedTriple("ann lee", "shop in", "ikea", SHOP, TYPES)
    assert GraphScorer(str(graphs)).scores(found) == pytest.approx([0.8, 0.6])


# WordNet


@pytest.mark.parametrize(
    ("premise", "hypothesis", "turned", "score"),
    [
        ("toured", "went to", False, 1 / 3),
        ("toured", "visits", False, 1 / 2),
        ("saw", "visited", False, 0.0),  # saw is no form of see for the lemmatiser
        ("sees", "visited", False, 1.0),
        ("visited", "toured", False, 0.0),
        ("do the sights of", "visited", False, 1 / 2),
        ("bought", "paid for", False, 0.0),
        ("buys", "pays for", False, 1 / 2),
        ("did not visit", "tours", False, 0.0),
        ("not tour", "not visit", False, 1 / 2),
        ("owns", "is owned by", True, 1.0),
        ("owns", "is owned by", False, 0.0),
        ("owns", "owns", True, 0.0),
        ("frobs", "frobs", False, 1.0),
        ("frobs", "grobs", False, 0.0),
        ("in", "at", False, 0.0),
    ],
)
def test_wordnet_leads_upwards(premise: str, hypothesis: str, turned: bool, score: float) -> None:
    """The special entails the general, less by each step; negation, and arguments that change places, do not."""
    first, second = ("b", "a") if turned else ("a", "b")
    row = EntailmentPair(Triple(first, premise, second), Triple("a", hypothesis, "b"), True)

    assert WordNetScorer(Lexicon.open("toy-en")).scores([row]) == pytest.approx([score])


def test_chinese_wordnet() -> None:
    """Signs stand side by side, and the object's place is no word."""
    scorer = WordNetScorer(Lexicon.open(language="ZH"))
    teach, work = Triple("小明", "在·X·任教", "北京"), Triple("小明", "在·X·工作", "北京")

    assert scorer.scores([EntailmentPair(teach, work, True, "ZH"), EntailmentPair(work, teach, True, "ZH")]) == [
        0.5,
        0.0,
    ]


def test_scorers_are_named_on_the_command_line(tmp_path: Path, graphs: Path) -> None:
    """`graph:` and `wordnet` stand beside other scorers of LevyHolt; a WordNet that is not there is told."""
    path = tmp_path / "dev.txt"
    path.write_text("a,go to,b\ta,tour,b\tTrue\na,tour,b\ta,go to,b\tFalse\na,go to,b\ta,shop in,b\tTrue\n", "utf-8")

    def run(*words: str) -> Result:
        return invoke("evaluate", "entailment", "score", path, "--db", tmp_path / "x.db", *words)

    printed = json.loads(run("--scorer", f"graph:{graphs}@global", "--scorer", "wordnet:toy-en", "--json").stdout)
    assert [
        (figures["scorer"], round(figures["auc_norm"]["value"], 2))
        for figures in printed
        if figures["subset"] == "full"
    ] == [
        ("graph graphs global", 0.69),
        ("wordnet", 0.69),
    ]
    assert "No WordNet oewn is installed" in run("--scorer", "wordnet:oewn").stderr


# Premises


def sentence(index: int, relation: str, document: str = "", subject: str = "Ann", **more: Any) -> Sentence:
    mention = Mention(relation, subject, more.get("object", "Paris"), *TYPES)
    return Sentence(
        more.get("slice", SLICE), index, document or f"d{index}", more.get("text", f"Sentence {index}."), (mention,)
    )


ASKED = Proposition(Mention("(visit.1,visit.2)", "Ann", "Paris", *TYPES), SLICE, 0, True)


def test_premises_are_of_the_same_two_in_the_slice() -> None:
    """In either order, by other words, and neither from another slice nor from the question's own sentence."""
    corpus = [
        sentence(0, "(like.1,like.2)"),
        sentence(1, "(tour.1,tour.2)"),
        sentence(2, "(visit.1,visit.2)"),
        sentence(3, "(visit.in.1,visit.2)", document="same words"),
        sentence(4, "(welcome.1,welcome.2)", subject="PARIS", object="ann"),
        sentence(5, "(tour.1,tour.2)"),
        sentence(6, "(love.1,love.2)", slice="2008_04-24_04-26"),
        sentence(7, "(love.1,love.2)", subject="Bob"),
    ]
    (question,) = ask([ASKED], corpus, PremiseSettings())

    assert [(premise.premise.predicate, premise.swapped) for premise in question.pairs] == [
        ("tour", False),
        ("welcome", True),
    ]
    assert question.occurrences == 2
    assert len(ask([ASKED], corpus, PremiseSettings(most=1))[0].pairs) == 1


def test_contexts_show_sentences() -> None:
    """The sentence that a premise is from, or the sentences of the documents most like the question."""
    corpus = [
        sentence(0, "(visit.1,visit.2)", "d", text="Ann visits Paris."),
        sentence(1, "(tour.1,tour.2)", "e", text="She toured it."),
        sentence(2, "(eat.1,eat.2)", "d", "Bob", text="They visit Paris in spring."),
        sentence(3, "(eat.1,eat.2)", "f", "Bob", text="Nothing of the kind."),
    ]

    def shown(context: Context) -> list[str]:
        return [premise.premise.sentence for premise in ask([ASKED], corpus, PremiseSettings(context=context))[0].pairs]

    assert shown(Context.TRIPLE) == ["Ann tour Paris"]
    assert shown(Context.SENTENCE) == ["She toured it."]
    assert shown(Context.DOCUMENTS) == ["They visit Paris in spring."]
    with pytest.raises(HapaxError, match="has no text"):
        ask([ASKED], [sentence(1, "(tour.1,tour.2)", text="")], PremiseSettings(context=Context.SENTENCE))


def test_documents_like_a_question() -> None:
    """The most similar first, no more than asked for, none that shares nothing; Chinese is compared by signs."""
    english = DocumentIndex(
        [
            sentence(0, "p", "a", text="cats"),
            sentence(1, "p", "b", text="dogs and cats"),
            sentence(2, "p", "c", text=""),
        ],
        "EN",
    )
    chinese = DocumentIndex([sentence(0, "p", "a", text="小明去北京"), sentence(1, "p", "b", text="天气")], "ZH")

    assert [found[0].document for found in english.like("some cats", 5)] == ["a", "b"]
    assert len(english.like("cats", 1)) == 1
    assert [found[0].document for found in chinese.like("北京", 5)] == ["a"]
    assert DocumentIndex([], "EN").like("cats", 5) == []


# Answers


@dataclass(frozen=True)
class Table:
    """Scores by the premise's predicate."""

    scored: dict[str, float]
    name: str = "table"
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [self.scored[premise_pair.premise.predicate] for premise_pair in pairs]


def asked(*premises: str, occurrences: int = 0) -> QuestionWithPremises:
    alone = EntailmentPair(ANYTHING, Triple("a", "h", "b"), True)
    pairs = (EntailmentPair(Triple("a", premise, "b"), alone.hypothesis, True) for premise in premises)
    return QuestionWithPremises(ASKED, alone, tuple(pairs), occurrences)


def test_the_best_premise_answers() -> None:
    """The maximum counts; a question without premises stands with the lowest of all; hypothesis-only scorers need none."""
    some = [asked("x", "y"), asked("z"), asked()]

    assert BestPremise(Table({"x": -0.5, "y": 0.5, "z": 0.1})).answers(some) == [0.5, 0.1, -0.5]
    assert BestPremise(Table({"": 0.7}, sees=VisibleSides.HYPOTHESIS)).answers(some) == [0.7] * 3
    assert BestPremise(Table({})).answers([asked()]) == [0.0]


def test_baselines() -> None:
    """1 - 1/n by the corpus' count of the predicate, and nothing at all."""
    some = [asked(occurrences=4), asked(occurrences=1), asked()]

    assert Frequency().answers(some) == [0.75, 0.0, 0.0]
    assert Null().answers(some) == [0.0] * 3


# The command


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A corpus in which Ann toured Paris, Bob merely went to Rome, and each is asked about."""
    said = [
        ("Ann", SHOP, "Paris"),
        ("Ann", "(tour.1,tour.2)", "Paris"),
        ("Bob", HOST, "Rome"),
        ("Cid", "(frob.1,frob.2)", "Rome, the city"),
        ("Ann", "(visit.1,visit.2)", "Paris"),
        *(("Dan", GO, f"Town {number}") for number in range(3)),
        ("Dan", "(inspect.1,inspect.2)", "Town 9"),
    ]
    lines = [
        {
            "subject": s,
            "predicate": p,
            "object": o,
            "types": TYPES,
            "date": "2008-04-21",
            "document": str(n),
            "sentence": f"{s} {p} {o}.",
        }
        for n, (s, p, o) in enumerate(said)
    ]
    (tmp_path / "triples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def question(subject: str, relation: str, place: str, label: bool) -> Proposition:
        return Proposition(Mention(relation, subject, place, *TYPES), SLICE, 4, label)

    (tmp_path / "set").mkdir()
    dev = [
        question("Ann", "(visit.1,visit.2)", "Paris", True),
        question("Ann", "(inspect.1,inspect.2)", "Paris", False),
        question("Ann", GO, "Paris", True),
        question("Bob", "(inspect.1,inspect.2)", "Rome", False),
        question("Cid", GO, "Rome, the city", False),
    ]
    write_questions(dev, tmp_path / "set" / "dev.jsonl", "EN")
    return tmp_path


def score(world: Path, *words: object) -> Result:
    fixed = ("evaluate", "booqa", "score", world / "set", "--corpus", world / "triples.jsonl", "--db", world / "x.db")
    return invoke(*fixed, *words)


def scores(world: Path, *words: object) -> list[float]:
    """The scores of the five questions, as --out writes them."""
    result = score(world, *words, "--out", world / "answers")
    assert result.exit_code == 0, result.output
    (path,) = (world / "answers").glob("scores-*.txt")
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    path.unlink()

    assert [truth for truth, _ in lines] == ["1", "0", "1", "0", "0"]
    return [float(number) for _, number in lines]


def test_every_method_has_its_gold_answers(world: Path, graphs: Path, tmp_path: Path) -> None:
    """Frequency, null, WordNet, graphs with and without smoothing, a critic, and scores from elsewhere."""
    folder = f"graph:{graphs}"
    (tmp_path / "near.tsv").write_text("inspect\tgo to\t0.5\n", "utf-8")

    assert scores(world, "--scorer", "frequency") == pytest.approx([0, 0, 2 / 3, 0, 2 / 3])
    assert scores(world, "--scorer", "null") == [0] * 5
    assert scores(world, "--scorer", "wordnet", "--lexicon", "toy-en") == pytest.approx([1 / 2, 0, 1 / 3, 0, 0])
    assert scores(world, "--scorer", folder) == pytest.approx([0, 0, 0.8, 0, 0])
    assert scores(world, "--scorer", f"{folder}/person#location_gsim.txt@local") == pytest.approx([0, 0, 0.3, 0, 0])
    assert scores(world, "--scorer", folder, "--smooth-hypothesis", "hypernym", "--lexicon", "toy-en") == pytest.approx(
        [0, 0, 0.8, 0, 0]
    )
    assert scores(world, "--scorer", folder, "--smooth-hypothesis", f"lm:{tmp_path / 'near.tsv'}") == pytest.approx(
        [0, 0.4, 0.8, 0, 0]
    )


def test_models_answer_with_and_without_context(world: Path) -> None:
    """A scripted critic judges each premise once, as a triple or as the sentence that it is from."""
    script = world / "script.json"
    yes = {
        "Ann tour Paris, which means that Ann visit Paris.": 0.9,
        "Ann (tour.1,tour.2) Paris., which means that Ann visit Paris.": 0.7,
    }
    script.write_text(json.dumps({"critic": yes, "defaults": {"critic": 0.4}}), "utf-8")
    critic = ("--scorer", "critic", "-m", f"scripted:{script}")

    assert scores(world, *critic) == pytest.approx([0.5, 0, 0, 0, 0])
    assert score(world, *critic, "--max-calls", 0).exit_code == 0
    assert score(world, *critic, "--context", "sentence", "--max-calls", 1).exit_code == 3


def test_scores_from_elsewhere(world: Path) -> None:
    """Premises are written as pairs, somebody scores these, and the best of each question counts."""
    result = score(world, "--pairs", world / "pairs", "--scorer", "null")
    path = world / "pairs" / "pairs-dev.txt"
    found = read_levy_holt(path)
    (world / "theirs.txt").write_text(
        "".join(f"{int(premise_pair.entailed)} {number / 10}\n" for number, premise_pair in enumerate(found)), "utf-8"
    )

    assert "8 pairs" in result.stderr
    assert found[-1].premise == Triple("Cid", "frob", "Rome the city")
    assert scores(world, "--scorer", f"scores:{world / 'theirs.txt'}") == pytest.approx([0.1, 0.3, 0.5, 0.6, 0.7])


def test_table_json_and_files(world: Path) -> None:
    """AUC, F1 and the interval of each scorer and set; curves beside the scores; how many premises there are."""
    result = score(world, "--scorer", "wordnet:toy-en", "--scorer", "null", "--out", world / "out")
    printed = json.loads(score(world, "--scorer", "wordnet:toy-en", "--json").stdout)
    names = {path.name for path in (world / "out").iterdir()}

    assert result.exit_code == 0
    assert "premises per question; 0 of 5 have none" in result.stderr
    assert [(figures["scorer"], figures["subset"], figures["auc_norm"]["value"]) for figures in printed] == [
        ("wordnet", "dev", pytest.approx(1.0))
    ]
    assert {
        "curves-dev.png",
        "curves-dev.csv",
        "wordnet-dev.tsv",
        "scores-wordnet-dev.txt",
        "scores-null-dev.txt",
    } <= names


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--set", "test"), 2, "contains no set test"),
        (("--scorer", "oracle"), 2, "There is no scorer oracle"),
        (("--scorer", "graph:x", "--context", "sentence"), 2, "use --context triple"),
        (("--scorer", "graph:x", "--smooth-premise", "cousins"), 2, "There is no stand-in cousins"),
        (("--scorer", "scores:cli.py"), 1, "cli.py:1: write 1 or 0"),
        (("--scorer", "prior"), 2, "name their files with --train"),
    ],
)
def test_wrong_options_are_told(world: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """Errors for options that conflict or are unknown or unreadable say what to do."""
    result = score(world, *words)

    assert (result.exit_code, message in " ".join(result.stderr.split())) == (code, True)


def test_questions_of_one_label_have_no_figures(world: Path) -> None:
    """A set without a negative is refused with the reason, in place of a table without figures."""
    lines = (world / "set" / "dev.jsonl").read_text("utf-8").splitlines(keepends=True)
    (world / "set" / "dev.jsonl").write_text("".join(line for line in lines if json.loads(line)["label"]), "utf-8")
    result = score(world)

    assert (result.exit_code, result.stdout) == (1, "")
    assert "set dev: every label is True, so there are no two classes to separate" in " ".join(result.stderr.split())


def test_a_chinese_set_is_answered(tmp_path: Path) -> None:
    """Chinese prompts, Chinese WordNet, and slices without a year."""
    rows = [
        {
            "subject": "小明",
            "predicate": f"({verb}.1,{verb}.2)",
            "object": "北京",
            "types": ["人", "地点"],
            "date": "07-26 12:30",
            "document": verb,
        }
        for verb in ("在·X·任教", "访问")
    ]
    (tmp_path / "triples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (tmp_path / "set").mkdir()
    questions = [
        Proposition(Mention(f"({verb}.1,{verb}.2)", "小明", "北京", "人", "地点"), "07-26_07-28", 9, label)
        for verb, label in (("在·X·工作", True), ("参观", False))
    ]
    write_questions(questions, tmp_path / "set" / "dev.jsonl", "ZH")
    script = tmp_path / "script.json"
    script.write_text(
        json.dumps({"critic": {"小明在北京任教，这也就是说，小明在北京工作。": 0.9}, "defaults": {"critic": 0.4}}),
        "utf-8",
    )
    critic = ("--scorer", "critic", "-m", f"scripted:{script}", "--language", "ZH", "--json")
    printed = json.loads(score(tmp_path, "--scorer", "wordnet:toy-zh", *critic).stdout)

    assert [(figures["scorer"].split()[0], figures["auc_norm"]["value"]) for figures in printed] == [
        ("wordnet", 1.0),
        ("critic", 1.0),
    ]
