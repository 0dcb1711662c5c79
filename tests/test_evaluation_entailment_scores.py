"""Directional entailment: prompts, scorers, and what they get on each subset."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result

from hapax.engine.entailment.graph import Edge, edges
from hapax.engine.entailment.suggestions import suggestions
from hapax.evaluation.entailment import pairs, report, scorers
from hapax.evaluation.entailment.pairs import ANYTHING, EntailmentPair, Triple
from hapax.evaluation.entailment.predicates import candidates
from hapax.evaluation.entailment.prompts import PROMPTS, Direction, chinese_sentence, filled
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.store import KnowledgeBase

SHOPPED = EntailmentPair(Triple("John", "shopped in", "IKEA"), Triple("John", "went to", "IKEA"), True)


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bootstrap's resamples: the planted effects are far larger than its noise."""
    monkeypatch.setattr("hapax.evaluation.entailment.metrics.RESAMPLES", 100)


def planted(seed: int = 0) -> list[EntailmentPair]:
    """Directional pairs, paraphrases and unrelated ones; `general` is what directional hypotheses are."""
    rows = []
    for number in range(30):
        special, general = Triple("a", f"special {number}", "b"), Triple("a", f"general {number}", "b")
        same, equal = Triple("a", f"same {number}", "b"), Triple("a", f"equal {number}", "b")
        rows += [
            EntailmentPair(special, general, True),
            EntailmentPair(general, special, False),
            EntailmentPair(same, equal, True),
            EntailmentPair(equal, same, True),
            EntailmentPair(special, same, False),
            EntailmentPair(general, equal, False),
        ]
    random.Random(seed).shuffle(rows)
    return rows


@dataclass(frozen=True)
class Judge:
    """Scores by what it is told to look at, with a little noise of its own."""

    looks_at: str
    name: str = "judge"
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, given: Sequence[EntailmentPair]) -> list[float]:
        return [self._score(row) for row in given]

    def _score(self, row: EntailmentPair) -> float:
        noise = int(hashlib.sha256(repr(row.key).encode()).hexdigest()[:8], 16) / 2**32
        premise, hypothesis = row.premise.predicate.split(), row.hypothesis.predicate.split()
        if self.looks_at == "hypothesis":
            return noise + 2 * (hypothesis[:1] == ["general"])
        if self.looks_at == "direction" and premise[:1] == ["special"] and hypothesis[:1] == ["general"]:
            return noise + 2 * (premise[1] == hypothesis[1])
        if self.looks_at == "pair":
            return float(sum(map(len, premise + hypothesis)))
        return noise


# Prompts


def test_english_prompts_are_the_papers() -> None:
    """The paper's own example comes out, and each antipattern names both sides."""
    filled_pair = filled(SHOPPED)

    assert filled_pair.patterns == (
        "John shopped in IKEA, which means that John went to IKEA.",
        "It is not the case that John went to IKEA, let alone that John shopped in IKEA.",
        "John went to IKEA because John shopped in IKEA.",
    )
    assert len(filled_pair.antipatterns) == 5
    assert all("John shopped in IKEA" in text and "went to" in text for text in filled_pair.antipatterns)
    assert filled_pair.antipatterns[3] == "Even if John shopped in IKEA, John maybe went to IKEA."


def test_prompts_stay_as_released() -> None:
    """Five patterns and five antipatterns a language, byte for byte, misspelling included."""
    text = json.dumps(
        {name: [prompts.patterns, prompts.antipatterns] for name, prompts in PROMPTS.items()}, ensure_ascii=False
    )

    assert {
        name: (len(prompts.patterns), len(prompts.directional), len(prompts.antipatterns))
        for name, prompts in PROMPTS.items()
    } == dict.fromkeys(("EN", "DE", "ZH"), (5, 3, 5))
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "19960a1e8defb9f3"


def test_original_prompts_negate_what_sherliic_needs() -> None:
    """In the last two patterns premise and hypothesis are negated, in one antipattern the hypothesis, if verbs begin them."""
    rows = EntailmentPair(Triple("Ann", "is head of", "Acme"), Triple("Ann", "works for", "Acme"), True, verbal=True)
    original = filled(rows, Direction.ORIGINAL)

    assert original.patterns[0] == "Ann is head of Acme, which means that Ann works for Acme."
    assert original.patterns[3] == "Ann is not head of Acme because Ann does not work for Acme."
    assert original.patterns[4] == "Ann does not work for Acme, which means that Ann is not head of Acme."
    assert original.antipatterns[3] == "Even if Ann is head of Acme, Ann maybe does not work for Acme."
    assert original.antipatterns[0] == "It is not sure that Ann works for Acme just because Ann is head of Acme."
    assert filled(rows).patterns == original.patterns[:3]
    plain = filled(replace(rows, verbal=False), Direction.ORIGINAL)
    assert plain.patterns[3] == "Ann is head of Acme because Ann works for Acme."


def test_symmetric_prompts_are_the_same_both_ways_round() -> None:
    """The three directional patterns are filled both ways, so that a pair and its converse read the same sentences."""
    converse = EntailmentPair(SHOPPED.hypothesis, SHOPPED.premise, False)

    assert set(filled(SHOPPED, Direction.SYMMETRIC).patterns) == set(filled(converse, Direction.SYMMETRIC).patterns)
    assert len(filled(SHOPPED, Direction.SYMMETRIC).patterns) == 6
    assert len(filled(SHOPPED, Direction.ORIGINAL).patterns) == 5
    assert set(filled(SHOPPED).patterns) != set(filled(converse).patterns)


@pytest.mark.parametrize(
    ("triple", "sentence"),
    [
        (Triple("小明", "吃", "苹果"), "小明吃苹果"),
        (Triple("小明", "在·X·工作", "北京"), "小明在北京工作"),
        (Triple("小明", "否·去", "北京"), "小明没有去北京"),
        (Triple("北京", "【介宾】在·X·发现", "文物"), "在北京发现文物"),
        (Triple("true", "", ""), "true"),
    ],
)
def test_chinese_triples_become_sentences(triple: Triple, sentence: str) -> None:
    """Marks for objects, negation and adjuncts go, and what they mark stands in its place."""
    assert chinese_sentence(triple) == sentence


def test_other_languages_are_refused() -> None:
    """A language without prompts is told with those that have some."""
    with pytest.raises(HapaxError, match=r"no prompts for language 'FR'\. Use one of EN, DE, ZH"):
        filled(EntailmentPair(SHOPPED.premise, SHOPPED.hypothesis, True, "FR"))


# Scorers


def test_best_pattern_less_best_antipattern() -> None:
    """Each sentence is measured once, and the score is the difference of the two maxima."""
    asked: list[str] = []

    def measure(texts: Sequence[str]) -> list[float]:
        asked.extend(texts)
        return [
            0.9 if "because John shopped" in text and "ust because" not in text else 0.2 + 0.1 * text.startswith("Even")
            for text in texts
        ]

    scorer = scorers.PatternScorer("m", measure)

    assert scorer.scores([SHOPPED, SHOPPED]) == pytest.approx([0.9 - 0.3] * 2)
    assert len(asked) == len(set(asked)) == 8


def test_baselines_count_training_pairs() -> None:
    """Frequency is 1 - 1/n of the hypothesis' predicate; the prior is the share of its true pairs, drawn to one half."""
    training = [
        EntailmentPair(Triple("a", "P", "b"), Triple("a", "q", "b"), True),
        EntailmentPair(Triple("a", "r", "b"), Triple("a", " Q", "b"), True),
        EntailmentPair(Triple("a", "q", "b"), Triple("a", "p", "b"), False),
    ]
    asked = [EntailmentPair(ANYTHING, Triple("x", name, "y"), True) for name in ("q", "p", "new")]

    assert scorers.FrequencyScorer.of(training).scores(asked) == pytest.approx([2 / 3, 1 / 2, 0])
    assert scorers.PriorScorer.of(training).scores(asked) == pytest.approx([3 / 4, 1 / 3, 1 / 2])


def test_random_scores_belong_to_the_pair() -> None:
    """The same pair gets the same number wherever it stands, and another seed another."""
    rows = planted()

    assert scorers.RandomScorer(1).scores(rows) == scorers.RandomScorer(1).scores(rows[::-1])[::-1]
    assert scorers.RandomScorer(1).scores(rows) != scorers.RandomScorer(2).scores(rows)


def test_scores_from_a_file_must_belong(tmp_path: Path) -> None:
    """A file with as many lines and the same labels is taken; any other is refused."""
    path = tmp_path / "run7.txt"
    path.write_text("1 0.7\n", "utf-8")
    scorer = scorers.FileScorer(path)

    assert (scorer.name, scorer.scores([SHOPPED])) == ("run7", [0.7])
    with pytest.raises(HapaxError, match="its 1 labels differ from those of the 2 pairs"):
        scorer.scores([SHOPPED, SHOPPED])


# What it says


def findings(looks_at: str) -> dict[str, str]:
    return {result.subset: result.finding for result in report.measure([Judge(looks_at)], planted())}


def test_a_planted_artefact_is_flagged() -> None:
    """A scorer that reads the hypothesis alone does well on direction, and the report calls it an artefact."""
    (result,) = [
        found for found in report.measure([Judge("hypothesis")], planted()) if found.subset == report.DIRECTIONAL
    ]

    for figure in (result.norm, result.rel, result.order):
        assert figure.whole.value == pytest.approx(1.0)
        assert figure.alone.value == pytest.approx(1.0)
        assert figure.gap.value == pytest.approx(0.0)
    assert result.finding == "artefact"


def test_who_knows_the_direction_is_told_from_artefacts() -> None:
    """A scorer that needs both sides has a gap above chance on directional pairs."""
    assert findings("direction")[report.DIRECTIONAL] == "entailment"


def test_symmetric_scorers_know_no_direction() -> None:
    """Whoever scores a pair as its converse has AUCnorm 0 there, whatever else he gets."""
    symmetric = [result for result in report.measure([Judge("pair")], planted()) if result.subset == report.DIRECTIONAL]

    found = [(result.norm.whole.value, result.finding) for result in symmetric]
    assert found == [(pytest.approx(0.0, abs=1e-12), "nothing")]


def test_a_scorer_that_is_reliably_wrong_is_told() -> None:
    """Scores below chance for certain are no chance: the finding is `reversed`."""

    class Contrary(Judge):
        def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
            return [-score for score in super().scores(pairs)]

    results = {result.subset: result for result in report.measure([Contrary("direction")], planted())}

    assert results[report.DIRECTIONAL].finding == "reversed"
    assert results[report.DIRECTIONAL].order.whole.high < 0.5


def test_one_side_alone_has_no_twin() -> None:
    """A scorer that sees premises or hypotheses alone is not compared with itself."""
    premise = list(report.measure([Judge("direction")], planted(), report.Measuring(VisibleSides.PREMISE)))
    prior = list(report.measure([scorers.PriorScorer.of(planted())], planted()))

    assert {result.twin_curve for result in (*premise, *prior)} == {None}
    assert {result.finding for result in premise} == {""}
    assert "artefact" in {result.finding for result in prior}


def test_a_score_file_brings_its_twin(tmp_path: Path) -> None:
    """`scores:WHOLE+ALONE`: scores by hypotheses alone make the comparison that a single file cannot."""
    pairs = planted()
    whole, alone = tmp_path / "whole.txt", tmp_path / "alone.txt"
    judged = Judge("direction").scores(pairs)
    whole.write_text(
        "".join(f"{int(pair.entailed)} {score}\n" for pair, score in zip(pairs, judged, strict=True)), "utf-8"
    )
    alone.write_text("".join(f"{int(pair.entailed)} 0.5\n" for pair in pairs), "utf-8")
    (single,) = (r for r in report.measure([scorers.FileScorer(whole)], pairs) if r.subset == report.DIRECTIONAL)
    (both,) = (r for r in report.measure([scorers.FileScorer(whole, alone)], pairs) if r.subset == report.DIRECTIONAL)

    assert single.finding == ""
    assert both.finding == "entailment"
    assert both.rel.alone.value == pytest.approx(0.0)


# The command


def run(*arguments: object) -> Result:
    return invoke("evaluate", "entailment", "score", *arguments)


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    path = tmp_path / "dev.txt"
    pairs.write_levy_holt(planted(), path)
    return path


def test_command_compares_scorers_and_writes_curves(dev: Path, tmp_path: Path) -> None:
    """A line for each scorer and subset, JSON with the same figures, and curves as figure, CSV and the release's lines."""
    words = (dev, "--scorer", "random", "--scorer", "prior", "--train", dev, "--db", tmp_path / "x.db")
    shown = run(*words, "--out", tmp_path / "curves")
    printed = json.loads(run(*words, "--json").stdout)

    assert shown.exit_code == 0
    assert len(printed) == 14
    assert {figures["scorer"] for figures in printed} == {"random", "prior"}
    assert [
        figures["finding"] for figures in printed if figures["scorer"] == "prior" and figures["subset"] == "full"
    ] == ["artefact"]
    assert "artefact: hypotheses alone are above chance" in shown.stderr
    names = {path.name for path in (tmp_path / "curves").iterdir()}
    assert {
        "curves-full.png",
        "curves-full.svg",
        "curves-full.csv",
        "prior-full.tsv",
        "random-hypothesis-only-full.tsv",
    } <= names
    first = (tmp_path / "curves" / "prior-full.tsv").read_text("utf-8").splitlines()[0].split("\t")
    assert len(list(map(float, first))) == 3


def test_models_are_asked_through_the_journal(dev: Path, tmp_path: Path) -> None:
    """A scripted critic is asked for each sentence once; a second run asks nothing, and a budget ends in exit code 3."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"defaults": {"critic": 0.5, "likelihood": [-6.0, 3]}}), "utf-8")
    words = (dev, "-m", f"scripted:{script}", "--db", tmp_path / "x.db")

    assert run(*words, "--max-calls", "10").exit_code == 3
    assert run(*words).exit_code == 0
    assert run(*words, "--max-calls", "0").exit_code == 0
    assert run(*words, "--scorer", "likelihood").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--scorer", "prior"), 2, "name their files with --train"),
        (("--scorer", "oracle"), 2, "There is no scorer oracle"),
        (("--scorer", "scores:nowhere.txt"), 1, "nowhere.txt: cannot be read"),
    ],
)
def test_wrong_scorers_are_told(dev: Path, tmp_path: Path, words: tuple[str, ...], code: int, message: str) -> None:
    """Errors for missing, unknown and unreadable values say what to do."""
    result = run(dev, *words, "--db", tmp_path / "x.db")

    assert (result.exit_code, message in result.stderr) == (code, True)


def test_pairs_of_one_label_have_no_figures(tmp_path: Path) -> None:
    """Pairs that are all false are refused with the reason, in place of a table without lines."""
    pairs.write_levy_holt([pair for pair in planted() if not pair.entailed], tmp_path / "false.txt")
    result = run(tmp_path / "false.txt", "--scorer", "random", "--db", tmp_path / "x.db")

    assert (result.exit_code, result.stdout) == (1, "")
    assert "false.txt: every label is False, so there are no two classes to separate" in result.stderr
    assert "Add pairs labelled True." in result.stderr


# Predicates of a rule library

RULES = """
type Shop < Location
oracle shopped_in(Person, Shop): "[1] shopped in [2]"
oracle went_to(Person, Location): "[1] went to [2]"
oracle was_visited_by(Location, Person): "[1] was visited by [2]"
oracle is_older_than(Person, Person): "[1] is older than [2]"
oracle has_no_words(Person, Location)
computed is_before(Year A, Year B) := A < B
"""


def test_candidates_pair_arguments_by_type() -> None:
    """The special may entail the general, arguments may change places, and what has no words or is computed is left out."""
    library = parse_library([("x.rules", RULES)])

    assert {f"{premise} -> {hypothesis}" for premise, hypothesis in candidates(library)} == {
        "shopped_in(Person A, Shop B) -> went_to(Person A, Shop B)",
        "shopped_in(Person A, Shop B) -> was_visited_by(Shop B, Person A)",
        "went_to(Person A, Location B) -> was_visited_by(Location B, Person A)",
        "was_visited_by(Location A, Person B) -> went_to(Person B, Location A)",
    }


def test_predicates_become_entailments(tmp_path: Path) -> None:
    """A critic that affirms one direction leaves that one entailment in the knowledge base, and `check` can use it."""
    rules, script, database = tmp_path / "x.rules", tmp_path / "s.json", tmp_path / "x.db"
    rules.write_text(RULES, "utf-8")
    yes = "PersonA shopped in ShopB, which means that PersonA went to ShopB."
    script.write_text(json.dumps({"critic": {yes: 0.9}, "defaults": {"critic": 0.1}}), "utf-8")
    words = ("evaluate", "entailment", "predicates", "--rules", rules, "-m", f"scripted:{script}", "--db", database)
    dry = invoke(*words, "--dry-run", "--json")
    result = invoke(*words, "--at-least", "0.6", "--json")

    assert json.loads(dry.stdout) == {"pairs": 4}
    assert json.loads(result.stdout)["entailments"] == [
        {"premise": "shopped_in(Person A, Shop B)", "hypothesis": "went_to(Person A, Shop B)", "score": 0.9}
    ]
    with KnowledgeBase(database) as kb:
        assert [(str(edge.hypothesis), edge.score) for edge in edges(kb)] == [("went_to(Person A, Shop B)", 0.9)]


def test_suggestions_point_one_way() -> None:
    """A strong entailment becomes a rule unless its way back is strong, a rule says it already, or nothing would use it."""
    library = parse_library(
        [
            (
                "x.rules",
                RULES
                + "\n@name seen\nwent_to(Person X, Location A) & lies_in(Location A, City C) -> saw(Person X, City C)",
            )
        ]
    )
    found = [
        Edge.of("shopped_in(Person A, Shop B)", "went_to(Person A, Shop B)", 0.95),
        Edge.of("went_to(Person A, Location B)", "was_visited_by(Location B, Person A)", 0.9),
        Edge.of("was_visited_by(Location A, Person B)", "went_to(Person B, Location A)", 0.85),
        Edge.of("dined(Person A, Hotel B)", "slept(Person A, Hotel B)", 0.99),
        Edge.of("went_to(Person A, Location B)", "liked(Person A, Location B)", 0.6),
    ]
    (suggestion,) = suggestions(found, library, at_least=0.8, margin=0.3)
    written = parse_library([("new.rules", suggestion.text)])

    assert suggestion.text.splitlines()[0] == "# entailment 0.95, converse 0.00; used by seen"
    assert written.rules[0].sentence == "shopped_in(Person A, Shop B) -> went_to(Person A, Shop B)"
    added = parse_library([("x.rules", RULES), ("new.rules", suggestion.text)])
    assert list(suggestions(found, added, 0.8, 0.3)) == []


@pytest.mark.parametrize(
    ("score", "converse", "count"), [(0.85, 0.55, 1), (0.8, 0.5, 1), (0.8, 0.51, 0), (0.79, 0.1, 0), (0.95, 0.65, 1)]
)
def test_a_suggestion_reaches_score_and_margin(score: float, converse: float, count: int) -> None:
    """A score of exactly the least, and a difference of exactly the margin, suffice, also where floats round it."""
    found = [
        Edge.of("shopped_in(Person A, Shop B)", "went_to(Person A, Shop B)", score),
        Edge.of("went_to(Person A, Shop B)", "shopped_in(Person A, Shop B)", converse),
    ]

    assert len(list(suggestions(found, parse_library([("x.rules", RULES)]), at_least=0.8, margin=0.3))) == count
