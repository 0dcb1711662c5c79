"""The draw of `votes next`: what its labels certify and estimate in simulated worlds, and the command."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke
from scipy import stats
from test_statement_promise import RULES, script, search

import hapax
from hapax.api.browser.judging import Judging
from hapax.api.kept_rules import kept_rules
from hapax.engine.certificates import JudgedScore, LabelDraw, Promise, anytime_tail, choose_threshold
from hapax.engine.judgements import SOUNDNESS_QUESTION
from hapax.engine.judging_draw import NEVER, DrawnLabels, cut_of, draw_weights
from hapax.engine.search.scored_facts import AUDIT_QUESTION, labels_of, proposed_atoms
from hapax.evaluation.shared.estimates import mended_share
from hapax.evaluation.votes.items import ItemSource
from hapax.evaluation.votes.next_items import NextOptions, judging_pool, next_items
from hapax.evaluation.votes.questions import SheetKind
from hapax.kb.records import DrawnItem, VoteRecord

WORLDS = 100
BROKEN_AT_MOST = int(stats.binom.ppf(0.999, WORLDS, 0.1))


def world(rng: np.random.Generator, size: int, auc: float, true_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated probabilities and truths."""
    truths = rng.random(size) < true_share
    distance = math.sqrt(2) * stats.norm.ppf(auc)
    odds = (
        true_share / (1 - true_share) * np.exp(distance * (rng.normal(size=size) + distance * truths) - distance**2 / 2)
    )
    return odds / (1 + odds), truths


def drawn(rng: np.random.Generator, scores: np.ndarray, truths: np.ndarray, count: int):
    """The labels of a draw with the weights of `votes next`, and the draw."""
    weights, _ = draw_weights(scores.tolist(), cut_of(scores.tolist(), 0.1))
    draws = rng.random(len(scores))
    order = np.argsort(draws / np.array(weights))
    reach = float(draws[order[count]] / weights[order[count]])
    judged = [JudgedScore(float(scores[n]), bool(truths[n]), "", float(draws[n])) for n in order[:count]]
    rows = [(float(scores[n]), bool(truths[n]), min(1.0, reach * weights[n])) for n in order[:count]]
    return judged, LabelDraw(reach, weights), rows


def test_a_promise_by_labels_of_the_draw_is_kept() -> None:
    """Labels that are drawn with weights break the promise in at most one world of ten, and certify more worlds."""
    rng, promise, broken, made, even = np.random.default_rng(1), Promise(0.9, 0.9), 0, 0, 0
    for _ in range(WORLDS):
        scores, truths = world(rng, 800, 0.75, 0.7)
        judged, draw, _ = drawn(rng, scores, truths, 120)
        choice = choose_threshold(judged, scores.tolist(), promise, draw=draw)
        if choice.threshold is not None:
            made += 1
            broken += truths[scores >= choice.threshold].mean() < 0.9
        chosen = rng.choice(len(scores), 120, replace=False)
        labels = [JudgedScore(float(scores[n]), bool(truths[n])) for n in chosen]
        even += choose_threshold(labels, scores.tolist(), promise).threshold is not None

    assert broken <= BROKEN_AT_MOST
    assert made > even


def test_a_promise_that_is_tested_again_and_again_is_kept() -> None:
    """Who tests after every ten labels until it fits breaks a promise of `anytime` in at most one world of ten."""
    rng, broken = np.random.default_rng(2), {"anytime": 0, "learn-then-test": 0}
    for _ in range(WORLDS):
        scores, truths = world(rng, 600, 0.55, 0.88)  # somewhat too false for the promise
        order = rng.permutation(600)
        labels = [JudgedScore(float(scores[n]), bool(truths[n])) for n in order[:300]]
        for method in ("anytime", "learn-then-test"):
            for count in range(30, 301, 30):
                choice = choose_threshold(labels[:count], scores.tolist(), Promise(0.9, 0.9, method))
                if choice.threshold is not None:
                    broken[method] += truths[scores >= choice.threshold].mean() < 0.9
                    break

    assert broken["anytime"] <= BROKEN_AT_MOST
    assert broken["anytime"] < broken["learn-then-test"]


def test_the_repeatable_test_is_stricter_than_the_single_one() -> None:
    """Its error is never below that of a single test, and falls as true labels come."""
    errors = [anytime_tail(0, count, 0.05) for count in (0, 20, 60, 200)]

    assert errors[0] == 1.0
    assert errors == sorted(errors, reverse=True)
    assert all(anytime_tail(0, count, 0.05) >= 0.95**count for count in (20, 60, 200))


def test_an_estimate_from_a_biased_sample_is_mended() -> None:
    """The interval of the share of true values holds it in 95 of 100 worlds, although the sample prefers some values."""
    rng, inside, naive = np.random.default_rng(3), 0, 0
    for _ in range(WORLDS):
        scores, truths = world(rng, 1000, 0.8, 0.6)
        _, _, rows = drawn(rng, scores, truths, 300)
        share = mended_share(scores.tolist(), rows)
        inside += share.low <= truths.mean() <= share.high
        naive += abs(np.mean([is_true for _, is_true, _ in rows]) - truths.mean()) < (share.high - share.low) / 2

    assert inside >= stats.binom.ppf(0.001, WORLDS, 0.95)
    assert naive < WORLDS / 2


def test_the_interval_by_few_labels_knows_what_they_may_have_missed() -> None:
    """A sure critic that is wrong about 1 fact in 20: the interval by 20 labels holds the truth as often as it says."""
    rng, inside, size, count = np.random.default_rng(4), 0, 1000, 20
    for _ in range(WORLDS):
        truths = rng.random(size) < 0.95
        rows = [(0.97, bool(truths[n]), count / size) for n in rng.choice(size, count, replace=False)]
        share = mended_share([0.97] * size, rows)
        inside += share.low <= truths.mean() <= share.high

    assert inside >= stats.binom.ppf(0.001, WORLDS, 0.95)


def test_nothing_is_uncertain_once_all_is_judged() -> None:
    """Labels of the whole pool give its share without an interval to speak of."""
    share = mended_share([0.9] * 4, [(0.9, True, 1.0), (0.9, True, 1.0), (0.9, True, 1.0), (0.9, False, 1.0)])

    assert (share.value, share.low, share.high) == pytest.approx((0.75, 0.75, 0.75))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search of 120 statements, half of them by facts of a lower score."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gems.rules").write_text(RULES.replace("{ban}", ""), "utf-8")
    (tmp_path / "gems.json").write_text(json.dumps(script((0.99, 0.9))), "utf-8")
    assert search().exit_code == 0
    return tmp_path


@pytest.mark.parametrize("kind", ["statements", "facts"])
def test_next_items_come_on_a_sheet_and_are_not_asked_twice(place: Path, kind: str) -> None:
    """The next items are on a sheet whose items an import finds; once they are judged others come, with an estimate."""
    first = invoke("votes", "next", "20", kind, "--db", "kb.db", "--voter", "ann", "--out", "sheets", "--format", "csv")
    assert first.exit_code == 0, first.output
    (path,) = (place / "sheets").glob("*.csv")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    ids = list(dict.fromkeys(row["item"] for row in rows if row["item"].startswith(("statement:", "fact:"))))
    question = SOUNDNESS_QUESTION if kind == "statements" else AUDIT_QUESTION
    with hapax.KnowledgeBase("kb.db") as kb:
        known = ItemSource(kb, SheetKind.SOUNDNESS if kind == "statements" else SheetKind.PREDICATES).by_id(ids)
        kb.add_votes([VoteRecord(item.partition(":")[2], question, "ann", "yes") for item in ids])
    second = invoke("votes", "next", "20", kind, "--db", "kb.db", "--voter", "bob", "--out", "more", "--json")

    assert set(known) == set(ids)  # as the import of a sheet finds them
    assert second.exit_code == 0, second.output
    report = json.loads(second.stdout)
    assert report["items"] == 20
    assert report["judged"] == 20
    assert report["true"][0] > 0.9


def test_labels_of_a_reference_do_not_stand_for_unanswered_items(place: Path) -> None:
    """A share is told once people have answered; what a reference labels says nothing about what they were given."""
    with hapax.KnowledgeBase("kb.db") as kb:
        atoms = proposed_atoms(kb, kept_rules(kb))
        first = next_items(kb, NextOptions("predicates", 10)).ids
        pool = judging_pool(kb, "predicates").probabilities
        others = [identity for identity in pool if identity not in first]
        kb.add_labels(labels_of(dict.fromkeys(others, True), atoms, "reference:all"))
        before = next_items(kb, NextOptions("predicates", 10))
        kb.add_votes([VoteRecord(item, AUDIT_QUESTION, "ann", "no") for item in first])
        after = next_items(kb, NextOptions("predicates", 10))

    assert (before.judged, math.isnan(before.share.value)) == (0, True)
    assert after.judged == len(pool)
    assert after.share.value == pytest.approx(len(others) / len(pool))


@pytest.mark.parametrize(
    ("is_other", "found"),
    [
        (False, {"given out": (0.3, 2.0), "not given out": (None, 2.0), "elsewhere": (None, 1.0)}),
        (True, {"given out": (NEVER, 1.0), "not given out": (None, 1.0), "elsewhere": (None, 1.0)}),
    ],
)
def test_labels_drawn_by_the_scores_of_another_critic_are_no_sample(
    is_other: bool, found: dict[str, tuple[float | None, float]]
) -> None:
    """A certificate thins the labels that its own critic's draw gave out, leaves out another one's, and counts the rest."""
    draws = {"given out": 0.3, "not given out": 0.9}
    items = {item_id: DrawnItem("s", item_id, 0.5, weight=2.0, draw=draw) for item_id, draw in draws.items()}
    labels = DrawnLabels(reach=0.2, items=items, is_other=is_other)

    assert {item_id: labels.of(item_id) for item_id in found} == found


@pytest.mark.parametrize("kind", ["statements", "facts"])
def test_a_draw_that_is_judged_whole_says_so_and_succeeds(place: Path, kind: str) -> None:
    """When nothing is left to judge, one line says so with the share of true items, and no sheet is written."""
    question = SOUNDNESS_QUESTION if kind == "statements" else AUDIT_QUESTION
    with hapax.KnowledgeBase("kb.db") as kb:
        ids = next_items(kb, NextOptions("soundness" if kind == "statements" else "predicates", 10_000)).ids
        kb.add_votes([VoteRecord(item, question, "ann", "yes") for item in ids])
    found = invoke("votes", "next", "20", kind, "--db", "kb.db", "--out", "sheets")
    listed = invoke("votes", "next", "20", kind, "--db", "kb.db", "--out", "sheets", "--json")

    assert (found.exit_code, listed.exit_code) == (0, 0)
    assert found.stdout == ""
    assert found.stderr.startswith(f"All {len(ids)} {kind} of the draw are judged: 100.0 ")
    assert found.stderr.count("\n") == 1
    assert (json.loads(listed.stdout)["items"], json.loads(listed.stdout)["files"]) == (0, [])
    assert not (place / "sheets").exists()


SALES = """
oracle sells(Shop, Fruit, City): "[1] sells [2] in [3]" / "[1] does not sell [2] in [3]" / "does [1] sell [2] in [3]?"
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_get(Person, Fruit): "[1] can get [2]" / "[1] cannot get [2]" / "can [1] get [2]?"
@name sales
lives_in(Person X, City A) & sells("Ikea", Fruit B, City A) -> can_get(Person X, Fruit B)
"""


def test_facts_of_three_things_are_on_the_sheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact with three arguments is asked about like one with two, and its label counts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gems.rules").write_text(SALES, "utf-8")
    fruits = [f"fruit {number}" for number in range(30)]
    generate = {"sells [A] in [B]": ["fruit 1"], "in Rome": fruits, "in [A]": ["Rome"], "in [B]": ["Rome"]}
    content = {"generate": generate, "defaults": {"critic": 0.9, "likelihood": -10.0, "generate": ["Rome"]}}
    (tmp_path / "gems.json").write_text(json.dumps(content), "utf-8")
    assert search().exit_code == 0

    found = invoke("votes", "next", "5", "--db", "kb.db", "--voter", "ann", "--out", "sheets", "--format", "csv")

    assert found.exit_code == 0, found.output
    (path,) = (tmp_path / "sheets").glob("*.csv")
    text = path.read_text(encoding="utf-8-sig")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        facts = [row for row in csv.DictReader(stream) if row["item"].startswith("fact:")]
    assert "in the Statement “Ikea sells fruit" in text
    assert {row["question"] for row in facts} == {
        *(f"audit Q{number}" for number in range(1, 6)),
        "audit reference 3",
        "audit type 3",
    }


def test_report_and_card_tell_the_mended_shares(place: Path) -> None:
    """The page of a run and the card of a dataset have the shares of true facts and statements with their intervals."""
    with hapax.KnowledgeBase("kb.db") as kb:
        for kind, question in (("predicates", AUDIT_QUESTION), ("soundness", SOUNDNESS_QUESTION)):
            ids = next_items(kb, NextOptions(kind, 20)).ids
            kb.add_votes([VoteRecord(item, question, "ann", "yes") for item in ids])
    assert invoke("report", "--db", "kb.db", "-o", "report.html").exit_code == 0
    assert invoke("dataset", "folder", "--db", "kb.db").exit_code == 0

    for path in ("report.html", "folder/README.md"):
        text = (place / path).read_text("utf-8")
        assert "Of all facts of the draw by" in text
        assert "Of all statements of the draw by" in text
        assert "1 person has judged 20 statements: by majority 20 true" in text
        assert "mended for its chances, by 20 labels." in text


def test_derived_statements_are_drawn_by_the_scores_of_their_facts(place: Path) -> None:
    """Statements that `derive` concludes from the facts of a search have the probabilities that the search's statements have."""
    derived = invoke("derive", "gems.rules", "--db", "kb.db")
    assert derived.exit_code == 0, derived.output
    with hapax.KnowledgeBase("kb.db") as kb:
        searched, concluded = (
            judging_pool(kb, kind, kept_rules(kb)).probabilities for kind in ("soundness", "derived")
        )

    assert len(set(searched.values())) > 1
    assert {key: pytest.approx(score) for key, score in searched.items()} == concluded


def test_the_page_asks_in_the_order_of_the_draw(place: Path) -> None:
    """The next statement that the browser shows for judging is the first of `votes next`."""
    with hapax.KnowledgeBase("kb.db") as kb:
        chosen = next_items(kb, NextOptions("soundness", 5)).ids
        judging, shown = Judging(place / "kb.db"), []
        for _ in chosen:
            asked = judging.next(kb, "soundness", "ann", 0)
            assert asked is not None
            shown.append(asked.item.id.partition(":")[2])
            kb.add_votes([VoteRecord(shown[-1], SOUNDNESS_QUESTION, "ann", "yes")])

    assert tuple(shown) == chosen
