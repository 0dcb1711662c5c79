"""Calibration of critics: maps are learned from labels, measured on held-out keys, stored and applied."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_fixture import invoke
from click.testing import Result

import hapax
from hapax.api.browser.pages import statement_page
from hapax.engine.search.certified_groups import MUCH_SHIFT
from hapax.engine.search.certified_statements import StatementPromise, StatementScores
from hapax.engine.search.certifying import (
    DENIALS,
    STATEMENTS,
    UNPROMISED,
    Certificates,
    certificate_lines,
    stored_certificates,
)
from hapax.engine.search.score_maps import (
    ScoreMap,
    ScoreMaps,
    chained_critics,
    denial_probabilities,
    fact_probabilities,
    last_critic,
)
from hapax.engine.search.scored_facts import ProposedAtom, labels_of, proposed_atoms
from hapax.evaluation.calibration.fitting import (
    LabelledScore,
    best_map,
    contextual_map,
    held_out,
    measures,
    reliability,
    with_shifts,
)
from hapax.evaluation.calibration.labels import LabelReader
from hapax.grammar.parser import parse_library
from hapax.kb.records import (
    AtomPattern,
    CalibrationRecord,
    Candidate,
    CertificateRecord,
    DenialRecord,
    FactLabel,
    FactRecord,
    Question,
    RunRecord,
    Source,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.prompts import sentence

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?".
lives_in(Person X, Country A) & flows_through(River B, Country A) -> can_swim_in(Person X, River B).
"""


def timid(count: int, seed: int = 0) -> list[LabelledScore]:
    """A critic that knows much and says yes to nothing: all its scores are below .11."""
    rng = np.random.default_rng(seed)
    labels = []
    for number in range(count):
        is_true = bool(rng.random() < 0.6)
        score = 0.11 / (1 + math.exp(-rng.normal(1.5 if is_true else -1.5, 1)))
        labels.append(LabelledScore(score, is_true, f"p{number % 3}/2", f"key {number // 2}", str(number)))
    return labels


def test_candidates_of_other_rule_files_make_no_facts() -> None:
    """A knowledge base may hold answers about predicates that the loaded rules do not know: they are passed over."""
    questions = [
        Question((AtomPattern("flows_through", ("Rhine", None)),), "Country"),
        Question((AtomPattern("was_painted_by", ("Guernica", None)),), "Painter"),
    ]
    with hapax.KnowledgeBase() as kb:
        kb.add_questions(questions)
        kb.add_candidates(
            Candidate(question.id, value, value, "call", 0)
            for question, value in zip(questions, ("France", "Picasso"), strict=True)
        )
        found = proposed_atoms(kb, hapax.parse_rules(RULES))

    assert [atom.predicate for atom in found.values()] == ["flows_through"]


def test_a_timid_critic_gets_probabilities() -> None:
    """Scores that never reach .11 become probabilities near the truth, on keys that the map has not seen."""
    labels = timid(400)
    raw = measures(labels, [label.score for label in labels])
    calibrated = measures(labels, held_out(labels))

    assert raw.ece.value > 0.4
    assert calibrated.ece.value < 0.08
    assert calibrated.log_loss.high < raw.log_loss.low
    assert calibrated.auc.value > 0.9


def test_facts_with_one_score_are_one_point_in_whatever_order_they_come() -> None:
    """A critic that gives .5 to everything and is right about half is calibrated: its error is 0, its point one."""
    labels = [LabelledScore(0.5, n < 50, "p/2", f"{n:03}") for n in range(100)]
    scores = [label.score for label in labels]

    assert measures(labels, scores).ece.value == 0
    assert reliability(labels, scores) == [(0.5, 0.5, 100)]


def test_bins_without_ties_have_equal_numbers_of_facts() -> None:
    """Ten bins of as many facts each; with fewer facts than bins each is a point of its own."""
    labels = [LabelledScore(n / 100, n % 2 == 0, "p/2", str(n)) for n in range(100)]

    assert [count for *_, count in reliability(labels, [label.score for label in labels])] == [10] * 10
    assert reliability(labels[:2], [0.0, 0.01]) == [(0.0, 1.0, 1), (0.01, 0.0, 1)]
    assert reliability([], []) == []


def test_a_map_never_prefers_the_lower_score() -> None:
    """Within a predicate a higher score has at least the probability of a lower one."""
    fitted = best_map(timid(300)).map

    probabilities = [fitted.probability(score / 1000, "p1/2") for score in range(120)]

    assert probabilities == sorted(probabilities)
    assert 0 < probabilities[0] < probabilities[-1] < 1


def test_few_labels_of_a_predicate_move_its_map_little() -> None:
    """The shift of a predicate with two false labels is smaller than that of one with forty."""
    labels = [LabelledScore(0.5, False, "few/2", str(n)) for n in range(2)]
    labels += [LabelledScore(0.5, False, "many/2", str(n)) for n in range(40)]

    shifts = with_shifts(ScoreMap(), labels, 1.0).shifts

    assert shifts["many/2"] < shifts["few/2"] < 0


def test_a_map_and_its_shifts_are_added_on_the_logit() -> None:
    """A score of .8 has log odds of ln 4; slope, intercept, a predicate's shift and the members' weights act on these."""
    line = ScoreMap(slope=2.0, intercept=-math.log(2), shifts={"lower/2": -math.log(8)})
    assert line.probability(0.8) == pytest.approx(8 / 9)  # odds 4 * 4 / 2
    assert line.probability(0.8, "other/2") == pytest.approx(8 / 9)
    assert line.probability(0.8, "lower/2") == pytest.approx(1 / 2)

    points = ScoreMap(points=([0.2, 0.4, 0.8], [0.1, 0.5, 0.9]), shifts={"higher/2": math.log(9)})
    found = [points.probability(score) for score in (0.0, 0.2, 0.3, 0.4, 0.7, 0.8, 1.0)]
    assert found == pytest.approx([0.1, 0.1, 0.3, 0.5, 0.8, 0.9, 0.9])
    assert points.probability(0.0, "higher/2") == pytest.approx(1 / 2)

    both = ScoreMap(slope=1.5, intercept=math.log(3), weights={"a": 1.0, "b": 0.5}, shifts={"lower/2": -math.log(12)})
    assert both.probability(0.5, members={"a": 0.8, "b": 0.2}) == pytest.approx(6 / 7)  # odds 3 * 4 / 2
    assert both.probability(0.5, members={"a": 0.8, "other": 0.9}) == pytest.approx(12 / 13)
    assert both.probability(0.5, "lower/2", {"a": 0.8}) == pytest.approx(1 / 2)
    assert both.probability(0.8) == pytest.approx(24 / 25)  # the combined score alone: odds 3 * 4 ** 1.5
    for fitted in (line, points, both, ScoreMap()):
        assert ScoreMap.of(json.loads(json.dumps(fitted.parameters))).probability(0.3, "lower/2") == pytest.approx(
            fitted.probability(0.3, "lower/2")
        )


def test_without_labels_the_bias_is_that_of_claims_about_nothing() -> None:
    """A critic that gives .1 to claims without content is as undecided at .1 as another at .5 (Zhao et al. 2021)."""
    fitted = contextual_map([0.1, 0.1, 0.1])

    assert fitted.probability(0.1) == pytest.approx(0.5)
    # p / p_cf, normalised: (0.3 / 0.1) / (0.3 / 0.1 + 0.7 / 0.9)
    assert fitted.probability(0.3) == pytest.approx(3 / (3 + 0.7 / 0.9))


def test_a_map_is_the_same_after_storing() -> None:
    """Maps of both kinds give the same probabilities from the knowledge base as before."""
    fitted = best_map(timid(300)).map
    with hapax.KnowledgeBase() as kb:
        kb.set_calibration(CalibrationRecord("a@1", "isotonic", fitted.parameters, (), (), {}, "2026"))
        stored = ScoreMaps.stored(kb)

    for score in (0.0, 0.01, 0.05, 0.1, 1.0):
        assert stored.probability("a@1", score, "p2/2") == fitted.probability(score, "p2/2")
        assert stored.probability("other@1", score, "p2/2") == score


def test_a_stored_fact_has_a_calibrated_probability() -> None:
    """Given facts have 1, and facts of a critic without a map the critic's own score."""
    with hapax.KnowledgeBase() as kb:
        probability = fact_probabilities(kb)

        assert probability(FactRecord("p", ("a", "b"), ("A", "B"), Source.GIVEN)) == 1.0
        assert probability(FactRecord("p", ("a", "b"), ("A", "B"), Source.MODEL, 0.7)) == 0.7


def test_the_probability_of_a_fact_is_that_of_its_run(tmp_path: Path) -> None:
    """The map of the critic that judged in a fact's run changes its score, unless the run or a source gave it."""
    fitted = best_map(timid(300)).map
    scored = fitted.probability(0.05, "p/2")
    settings: dict[str, dict[str, Any]] = {
        "by_critic": {"models": ["k@1", "a@1"]},
        "by_chain": {"models": ["k@1", "table,a@2; 1"]},
        "by_other": {"models": ["k@1", "b@1"]},
        "calibrated": {"models": ["k@1", "a@1"], "calibrated": True},
    }
    with hapax.KnowledgeBase() as kb:
        kb.set_calibration(CalibrationRecord("a@1", "isotonic", fitted.parameters, (), (), {}, "2026"))
        for run, stored in settings.items():
            kb.start_run(RunRecord.now(run, "search", stored))
        of_fact, of_denial = fact_probabilities(kb), denial_probabilities(kb)

    fact = FactRecord("p", ("a", "b"), ("A", "B"), Source.MODEL, 0.05)
    facts = {run: of_fact(replace(fact, run_id=run)) for run in settings}
    denials = {run: of_denial(DenialRecord("p", ("a", "b"), 0.05, run)) for run in settings}
    assert facts == denials
    assert facts == {"by_critic": scored, "by_chain": scored, "by_other": 0.05, "calibrated": 0.05}
    assert of_fact(fact) == 0.05  # no run is known
    assert of_fact(replace(fact, run_id="by_critic", basis="a table")) == 0.05
    assert of_fact(replace(fact, run_id="by_critic", probability=None)) is None


def test_a_chain_of_critics_is_told_apart_by_its_revisions() -> None:
    """Each name of a chain has its revision; where a name has a comma of its own, only the last critic is known."""
    assert chained_critics("table,a@2; 1") == ["table@2", "a@1"]
    assert chained_critics("table,a@; 1") == ["table", "a@1"]
    assert chained_critics("a@1") == ["a@1"]
    assert chained_critics("a,b@1") == [last_critic("a,b@1")]
    assert last_critic("table,a@2; 1") == "a@1"


PROMISED = CertificateRecord(
    fact_group="all facts",
    precision=0.95,
    confidence=0.9,
    method="learn-then-test",
    basis={},
    threshold=0.8,
    labels=60,
    false=1,
    bound=0.046,
    accepted=30,
    pool=40,
    sample="",
    shift=None,
    reason="",
    created="2026",
)


def test_the_limits_of_a_promise_are_those_of_its_groups() -> None:
    """A fact needs the threshold of its predicate or of all facts; a denial one less the threshold of the denials."""
    by_predicate = replace(PROMISED, fact_group="p/2", threshold=0.7)
    denials = replace(PROMISED, fact_group=DENIALS, threshold=0.6)
    refused = replace(PROMISED, fact_group="q/2", threshold=None, reason="too few labels")

    assert Certificates((PROMISED,)).threshold("p/2") == 0.8
    promise = Certificates((refused, by_predicate, denials))
    assert promise.threshold("p/2") == 0.7
    assert promise.threshold("q/2") == promise.threshold("r/2") == UNPROMISED == 1.0
    assert promise.denial_limit() == pytest.approx(0.4)
    assert Certificates((PROMISED, replace(denials, threshold=None))).denial_limit() == -1.0
    assert Certificates(()).threshold("p/2") == UNPROMISED


def test_a_promise_in_words_has_its_threshold_bound_and_labels() -> None:
    """A line says what is promised and by how many labels, or why nothing is and what is kept then."""
    groups = ("p/2", DENIALS, f"{STATEMENTS}: older_tool")
    refused = [replace(PROMISED, fact_group=group, threshold=None, reason="too few labels") for group in groups]
    denied = replace(PROMISED, fact_group=DENIALS, threshold=0.6)
    alike = replace(PROMISED, shift=0.5 + MUCH_SHIFT, labels=1, false=0)
    shifted = replace(PROMISED, fact_group=f"{STATEMENTS}: older_tool", shift=0.49 - MUCH_SHIFT)

    assert certificate_lines(refused) == [
        "p/2: nothing is promised, and no model's value accepted: too few labels",
        f"{DENIALS}: nothing is promised, and no atom is denied: too few labels",
        f"{STATEMENTS}: older_tool: nothing is promised, and none is kept: too few labels",
    ]
    of_accepted = "at least 0.95 of the accepted are true, with confidence 0.9"
    assert certificate_lines([PROMISED, denied, alike, shifted]) == [
        f"all facts: {of_accepted}. Threshold 0.8, which 75% of 40 proposed facts reach; "
        "1 of 60 labels there false, bound 0.046 (learn-then-test).",
        f"{DENIALS}: at least 0.95 of the denied are false, with confidence 0.9. P(yes) at most 0.4, "
        "which 75% of 40 proposed facts reach; 1 of 60 labels there false, bound 0.046 (learn-then-test).",
        f"all facts: {of_accepted}. Threshold 0.8, which 75% of 40 proposed facts reach; "
        "0 of 1 label there false, bound 0.046 (learn-then-test).",
        f"{STATEMENTS}: older_tool: {of_accepted}. Threshold 0.8, which 75% of 40 statements reach; "
        "1 of 60 labels there false, bound 0.046 (learn-then-test). The labelled statements differ from the others in "
        "their scores (AUC 0.39, 0.5 if alike): the promise holds for statements like the labelled ones.",
    ]


@pytest.fixture
def rivers(tmp_path: Path) -> Path:
    """Rules, a critic whose scores follow the truth in the file of labels, and an empty knowledge base."""
    (tmp_path / "world.rules").write_text(RULES, "utf-8")
    lines = [f"{'true' if n % 3 else 'false'}\tflows_through\tRiver {n}\tCountry {n // 2}" for n in range(60)]
    (tmp_path / "labels.tsv").write_text("# truth, predicate, arguments\n" + "\n".join(lines) + "\n", "utf-8")
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path


def calibrated(place: Path, *more: str) -> str:
    result = invoke(
        *("calibrate", "--rules", str(place / "world.rules"), "--db", str(place / "kb.db"), "--critic", "simulated:1"),
        *("--labels", str(place / "labels.tsv"), *more),
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_stores_labels_and_map_and_draws(rivers: Path) -> None:
    """A file of labels teaches a map, which the knowledge base keeps with its sample; the diagram has its data."""
    output = calibrated(rivers, "--reserve", "0.5", "--figure", str(rivers / "diagram"))

    assert "60 labels, 40 of them true" in output
    assert "AUC" in output
    assert "For facts like these nothing can be promised" in output
    assert (rivers / "diagram.csv").read_text("utf-8").startswith("scores,mean probability,share true,facts")
    with hapax.KnowledgeBase(rivers / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
        assert len(kb.labels()) == 60
        assert 0 < len(record.sample) < 60
        assert record.sources == (str(rivers / "labels.tsv"),)


def test_labels_that_left_their_file_are_forgotten(rivers: Path) -> None:
    """Only the labels that a file has now count; those of other sources stay."""
    calibrated(rivers)
    lines = (rivers / "labels.tsv").read_text("utf-8").splitlines()
    corrected = [*lines[:30], lines[30].replace("true", "false"), *lines[31:50]]
    (rivers / "labels.tsv").write_text("\n".join(corrected) + "\n", "utf-8")
    other = FactLabel("flows_through", ("River 59", "Country 29"), is_true=True, source="people")
    with hapax.KnowledgeBase(rivers / "kb.db") as kb:
        kb.add_labels([other])
    calibrated(rivers)

    with hapax.KnowledgeBase(rivers / "kb.db", read_only=True) as kb:
        by_source = Counter(label.source for label in kb.labels())
        truths = {label.arguments[0]: label.is_true for label in kb.labels()}
    assert by_source == {str(rivers / "labels.tsv"): 49, "people": 1}
    assert lines[30].split("\t")[:3] == ["true", "flows_through", "River 29"]
    assert truths["River 29"] is False


def test_a_contextual_map_is_measured_by_the_labels_that_did_not_teach_it(rivers: Path) -> None:
    """With too few labels to learn from, the calibrated measures are those of the map that is stored."""
    lines = (rivers / "labels.tsv").read_text("utf-8").splitlines()
    (rivers / "labels.tsv").write_text("\n".join(lines[:11]) + "\n", "utf-8")
    calibrated(rivers)

    with hapax.KnowledgeBase(rivers / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
    measured = record.metrics["all labels"]

    assert record.method == "contextual"
    assert measured["raw"]["brier"] != measured["calibrated"]["brier"]


def test_a_fact_that_a_file_calls_true_and_false_is_named(rivers: Path) -> None:
    """Two lines that contradict each other are refused with both numbers; a repeated line is a label once."""
    line = "true\tflows_through\tRhine\tGermany\n"
    (rivers / "labels.tsv").write_text(line + line + line.replace("true", "false"), "utf-8")

    result = invoke(
        *("calibrate", "--rules", str(rivers / "world.rules"), "--db", str(rivers / "kb.db")),
        *("--critic", "simulated:1", "--labels", str(rivers / "labels.tsv")),
    )

    assert result.exit_code == 1
    assert "labels.tsv:3: says false, line 1 true, of the same fact. Remove one of them." in result.output


def test_a_faulty_label_is_named(rivers: Path) -> None:
    """A line that is no label is refused with its number."""
    (rivers / "labels.tsv").write_text("true\tflows_through\tRhine\tGermany\nmaybe\tflows_through\tA\tB\n", "utf-8")

    result = invoke(
        *("calibrate", "--rules", str(rivers / "world.rules"), "--db", str(rivers / "kb.db")),
        *("--critic", "simulated:1", "--labels", str(rivers / "labels.tsv")),
    )

    assert result.exit_code == 1
    assert "labels.tsv:2: not true or false" in result.output


def test_a_file_of_labels_that_is_no_text_is_refused(rivers: Path) -> None:
    """A file in another encoding is named, with what to do."""
    (rivers / "labels.tsv").write_bytes("true\tflows_through\tDonau\tÖsterreich\n".encode("latin-1"))

    result = invoke(
        *("calibrate", "--rules", str(rivers / "world.rules"), "--db", str(rivers / "kb.db")),
        *("--critic", "simulated:1", "--labels", str(rivers / "labels.tsv")),
    )

    assert result.exit_code == 1
    assert "Give lines of text in UTF-8." in " ".join(result.output.split())


def test_numbers_of_labels_are_read_as_a_search_reads_values(tmp_path: Path) -> None:
    """Years before Christ and decimals are the numbers of the facts; a sign that is no number stays text."""
    rules = 'oracle began_in(Period A, Year B): "[1] began in [2]".'
    library = hapax.parse_rules(rules)
    lines = [f"true\tbegan_in\tAge {year}\t{year}\n" for year in ("1750", "500 BC", "2.5", "²", "--5")]
    (tmp_path / "labels.tsv").write_text("".join(lines), "utf-8")
    with hapax.KnowledgeBase() as kb:
        reader = LabelReader(kb, library, {}, OpeningOptions())
        truths = reader.truths(str(tmp_path / "labels.tsv"))

    assert set(truths.values()) == {True}
    assert [atom.arguments[1] for atom in reader.proposed.values()] == [1750, -500, Decimal("2.5"), "²", "--5"]


# --- promises of a search --------------------------------------------------------------------------------------------

GEMS = [f"gem {number}" for number in range(120)]
GEM_RULES = """
oracle is_mined_in(Gem, Country): "[1] is mined in [2]" / "[1] is not mined in [2]" / "is [1] mined in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given can_buy(Person, Gem): "[1] can buy [2]" / "[1] cannot buy [2]" / "can [1] buy [2]?"
@name gems
visits(Person X, Country A) & is_mined_in(Gem B, Country A) -> can_buy(Person X, Gem B)
"""


def gem_script() -> dict[str, object]:
    """A model that proposes 120 gems of one country; its critic says .5 to every second one and .3 to the others."""
    scores = {f"{gem.capitalize()} is mined in Peru.": 0.5 if n % 2 else 0.3 for n, gem in enumerate(GEMS)}
    values = {"'[A] is mined in [B]'": ["Peru"], "'[A] is mined in Peru'": GEMS, "'[B] is mined in Peru'": GEMS}
    return {
        "generate": values,
        "critic": scores,
        "defaults": {"critic": 0.9, "likelihood": -10.0, "generate": ["Peru"]},
    }


@pytest.fixture(scope="module")
def searched_gems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search without a promise was done. Gems with a score of .5 are true, the others are false."""
    folder = tmp_path_factory.mktemp("gems")
    (folder / "gems.rules").write_text(GEM_RULES, "utf-8")
    (folder / "gems.json").write_text(json.dumps(gem_script()), "utf-8")
    lines = [f"{'true' if n % 2 else 'false'}\tis_mined_in\t{gem}\tPeru" for n, gem in enumerate(GEMS)]
    (folder / "labels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert search_gems("--fact-threshold", "0.99").exit_code == 0
    return folder


@pytest.fixture
def gems(searched_gems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `searched_gems`, as the working folder."""
    shutil.copytree(searched_gems, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def search_gems(*more: str) -> Result:
    # The values of one call suffice for a certificate only if there are many of them.
    command = ("search", "gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json")
    return invoke(*command, "--values", "120", "--no-progress", "--db", "kb.db", *more)


def label_gems(*more: str) -> None:
    options = ("--rules", "gems.rules", "--critic", "scripted:gems.json", "--labels", "labels.tsv")
    result = invoke("calibrate", *options, "--db", "kb.db", *more)
    assert result.exit_code == 0, result.output


def facts(place: Path) -> set[str]:
    with hapax.KnowledgeBase(place / "kb.db", read_only=True) as kb:
        return {str(fact.arguments[0]) for fact in kb.facts("is_mined_in")}


def test_nothing_is_promised_without_labels(gems: Path) -> None:
    """A promise without labels ends the command before anything is asked, and says how many are needed."""
    result = search_gems("--precision", "0.95")

    assert result.exit_code == 1
    assert "nothing is labelled" in result.output
    assert "more labels would do" in result.output


def test_a_promise_accepts_what_its_labels_allow(gems: Path) -> None:
    """The threshold lies where the labels are true, below Hapax's own; the certificate is kept with its run."""
    label_gems()

    result = search_gems("--precision", "0.9", "--confidence", "0.8")

    assert result.exit_code == 0, result.output
    assert "at least 0.9 of the accepted are true, with confidence 0.8" in result.output
    assert facts(gems) == {gem for n, gem in enumerate(GEMS) if n % 2}
    with hapax.KnowledgeBase(gems / "kb.db", read_only=True) as kb:
        (certificate,) = kb.certificates()
        assert certificate.threshold == 0.5
        assert (certificate.false, certificate.labels) == (0, 60)
        assert certificate.run_id in {run.id for run in kb.runs()}


@pytest.mark.parametrize("option", [("--confidence", "0.9"), ("--promise", "anytime"), ("--certify-by", "predicate")])
def test_options_of_a_promise_need_one(gems: Path, option: tuple[str, str]) -> None:
    """A search without a promise does not pass for one that has the confidence that was asked for."""
    result = search_gems(*option)

    assert result.exit_code == 2
    assert f"{option[0]} needs --precision or --statement-precision." in result.output


def test_facts_that_taught_the_map_do_not_certify_it(gems: Path) -> None:
    """A promise on calibrated scores counts reserved labels alone."""
    label_gems()
    refused = search_gems("--precision", "0.9", "--calibrated")
    label_gems("--reserve", "0.7")
    promised = search_gems("--precision", "0.9", "--confidence", "0.8", "--calibrated")

    assert "nothing is labelled" in refused.output
    assert promised.exit_code == 0, promised.output
    assert facts(gems) == {gem for n, gem in enumerate(GEMS) if n % 2}


def test_a_calibrated_search_accepts_what_raw_scores_hide(gems: Path) -> None:
    """A critic that never says more than .5 is useless to the usual threshold, and useful when it is calibrated."""
    label_gems()
    raw = search_gems("--fact-threshold", "0.85")
    before = facts(gems)

    result = search_gems("--calibrated", "--fact-threshold", "0.85")

    assert raw.exit_code == result.exit_code == 0, result.output
    assert before == set()
    assert facts(gems) == {gem for n, gem in enumerate(GEMS) if n % 2}


def test_a_critic_without_a_map_is_named(gems: Path) -> None:
    """--calibrated without a calibration is an error with its remedy."""
    result = search_gems("--calibrated")

    assert result.exit_code == 1
    assert "is not calibrated. Run `hapax calibrate` first" in result.output


# --- certificates where they are read --------------------------------------------------------------------------------


def certify_gems(*more: str) -> None:
    label_gems("--reserve", "0.7")
    result = search_gems("--precision", "0.9", "--confidence", "0.8", *more)
    assert result.exit_code == 0, result.output


def certified(place: Path, tmp: str = "page.html") -> tuple[str, str, str]:
    """HTML report and the dataset's card of the certified run, and the story of one of its facts."""
    with hapax.KnowledgeBase(place / "kb.db", read_only=True) as kb:
        (run_id,) = {certificate.run_id for certificate in kb.certificates()}
    for command in (("report", "--run", run_id, "-o", tmp), ("dataset", "data", "--force", "--run", run_id)):
        result = invoke(*command, "--db", "kb.db")
        assert result.exit_code == 0, result.output
    story = invoke("why", f"is_mined_in('{GEMS[1]}', 'Peru')", "--db", "kb.db", "--rules", "gems.rules")
    assert story.exit_code == 0, story.output
    return (place / tmp).read_text("utf-8"), (place / "data" / "README.md").read_text("utf-8"), story.output


def test_a_certificate_stands_in_page_card_and_story(gems: Path) -> None:
    """The HTML report, the dataset's card and `why` state the promise under which a fact was accepted."""
    certify_gems()

    for text in certified(gems):
        assert "at least 0.9 of the accepted are true, with confidence 0.8" in text
        assert "LAPSED" not in text


def test_a_certificate_stands_on_the_page_of_a_statement(gems: Path) -> None:
    """The browser's page of a statement states the promises on the facts of its proof, each once."""
    certify_gems()

    with hapax.KnowledgeBase(gems / "kb.db", read_only=True) as kb:
        page = statement_page(kb, hapax.load_rules(gems / "gems.rules"), kb.statements()[0].id)
        assert [item.record for item in page.certificates] == kb.certificates()


def test_a_certificate_lapses_with_the_calibration(gems: Path) -> None:
    """A promise on calibrated scores ends when the critic is calibrated anew to another map."""
    certify_gems("--calibrated")
    before = certified(gems)

    (gems / "labels.tsv").write_text("".join(f"false\tis_mined_in\t{gem}\tPeru\n" for gem in GEMS), "utf-8")
    label_gems("--reserve", "0.2")

    assert not any("LAPSED" in text for text in before)
    for text in certified(gems):
        assert "LAPSED, for the calibration has changed since" in text


def test_a_certificate_lapses_with_the_prompt(gems: Path) -> None:
    """A promise ends when a later search words the facts in another way; what that search accepts has none."""
    certify_gems()

    rules = (gems / "gems.rules").read_text("utf-8").replace('"[1] is mined in [2]"', '"[1] is dug up in [2]"')
    (gems / "gems.rules").write_text(rules, "utf-8")
    assert search_gems().exit_code == 0

    page, card, story = certified(gems)

    for text in (page, card):
        assert "the wording of is_mined_in/2 has changed since" in text.replace("\\", "")
    assert "dug up" in story
    assert "certificate" not in story


def test_a_certificate_lapses_with_the_critics_question(gems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A promise ends when another version of Hapax asks critics in other words."""
    certify_gems()
    before = lapses(gems)
    monkeypatch.setattr("hapax.engine.search.certifying.critic_prompt", lambda claim: f"True or false? {claim}")

    assert before == [""]
    assert lapses(gems) == ["the wording of the critic's question has changed since"]


def test_a_certificate_outlives_the_calibration_of_another_critic(gems: Path) -> None:
    """Calibrating another critic leaves the promise of this one as it is."""
    certify_gems("--calibrated")
    with hapax.KnowledgeBase(gems / "kb.db") as kb:
        (own,) = kb.calibrations()
        kb.set_calibration(replace(own, critic="another@1"))

    assert lapses(gems) == [""]


def lapses(place: Path) -> list[str]:
    with hapax.KnowledgeBase(place / "kb.db", read_only=True) as kb:
        return [item.lapse for item in stored_certificates(kb, {record.run_id for record in kb.certificates()})]


def test_a_certificate_lapses_with_the_critic_until_it_is_tested_anew(gems: Path) -> None:
    """A promise ends when another revision of its critic judges a later run, and holds again once it was tested."""
    certify_gems()
    before = (gems / "gems.json").read_text("utf-8")

    script = gem_script() | {"defaults": {"critic": 0.95, "likelihood": -10.0, "generate": ["Peru"]}}
    (gems / "gems.json").write_text(json.dumps(script), "utf-8")
    assert search_gems().exit_code == 0
    after_change = lapses(gems)
    (gems / "gems.json").write_text(before, "utf-8")
    again = search_gems("--precision", "0.9", "--confidence", "0.8")

    assert len(after_change) == 1
    assert "the critic" in after_change[0]
    assert "has had another revision since" in after_change[0]
    assert again.exit_code == 0, again.output
    assert lapses(gems) == [""]


def test_a_certificate_of_an_earlier_version_counts_from_its_run(gems: Path) -> None:
    """Without the last run before the test, every run after the certificate's own can end it."""
    certify_gems()
    with hapax.KnowledgeBase(gems / "kb.db") as kb:
        kb.add_certificates([replace(record, after_run=None) for record in kb.certificates()])
    before = lapses(gems)

    script = gem_script() | {"defaults": {"critic": 0.95, "likelihood": -10.0, "generate": ["Peru"]}}
    (gems / "gems.json").write_text(json.dumps(script), "utf-8")
    assert search_gems().exit_code == 0

    assert before == [""]
    assert "has had another revision since" in lapses(gems)[0]


def plan_gems(*more: str) -> Result:
    command = ("plan", "gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json")
    return invoke(*command, "--values", "120", "--db", "kb.db", "--json", *more)


def planned_statements(result: Result) -> int:
    assert result.exit_code == 0, result.output
    (rule,) = json.loads(result.output)["rules"]
    return int(rule["statements"]["expected"])


def test_a_plan_takes_the_threshold_of_the_promise(gems: Path) -> None:
    """`plan --precision` expects the statements that its promise lets pass, and refuses where the search would."""
    refused = plan_gems("--precision", "0.9")
    uncalibrated = plan_gems("--calibrated")
    label_gems("--reserve", "0.7")

    promised = plan_gems("--precision", "0.9", "--confidence", "0.8")
    strict = plan_gems("--fact-threshold", "0.99")

    assert refused.exit_code == uncalibrated.exit_code == 1
    assert "nothing is labelled" in refused.output
    assert "is not calibrated" in uncalibrated.output
    assert planned_statements(promised) == 60
    assert planned_statements(strict) == 0


def test_the_type_gate_compares_calibrated_scores_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A critic that gives .2 to every river as a river accepts none; labelled by the atlas, its .2 is a yes."""
    monkeypatch.chdir(tmp_path)
    atlas = load_atlas()
    rivers, dishes = atlas.entities("River")[:20], atlas.entities("Dish")[:20]
    facts = [(name, name in rivers) for name in (*rivers, *dishes)]
    lines = [f"{'true' if is_true else 'false'}\tflows_through\t{name}\tPeru" for name, is_true in facts]
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    scores = {sentence(f"{name} flows through Peru"): 0.9 if is_true else 0.1 for name, is_true in facts}
    scores |= {sentence(f"{name} is a river"): 0.2 if is_true else 0.02 for name, is_true in facts}
    names = [name for name, _ in facts]
    generate = {"'[A] flows through [B]'": ["Peru"], "'[B] flows through [A]'": ["Peru"], "flows through Peru'": names}
    content = {"generate": generate, "critic": scores, "defaults": {"critic": 0.9, "likelihood": -10.0, "generate": []}}
    (tmp_path / "gems.json").write_text(json.dumps(content), "utf-8")
    (tmp_path / "gems.rules").write_text(RULES, "utf-8")

    def accepted(*more: str) -> set[str]:
        result = search_gems(*more)
        assert result.exit_code == 0, result.output
        with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
            return {str(fact.arguments[0]) for fact in kb.facts("flows_through")}

    before = accepted()
    label_gems("--labels", "atlas")
    after = accepted("--calibrated")

    assert before == set()
    assert after == set(rivers)
    with hapax.KnowledgeBase(tmp_path / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
        assert "data types of values" in record.metrics
        (raw,) = kb.assessments([sentence(f"{rivers[0]} is a river")], "type_probability", record.critic).values()
        assert raw.score == 0.2


def test_the_expected_share_of_statements_is_that_of_their_group() -> None:
    """A rule keeps the share of its group's statements that reach the threshold; without a promise it keeps none."""
    promised = replace(PROMISED, fact_group="statements of visits")
    refused = replace(PROMISED, fact_group="statements of buys", threshold=None, reason="too few labels")
    scores = StatementScores(KnowledgeBase(), parse_library([]), ())
    promise = StatementPromise(Certificates((refused, promised)), scores, "predicate")

    assert [promise.expected_share(rule) for rule in ("visits", "buys", "sells")] == [0.75, 0.0, 0.0]
    whole = Certificates((replace(PROMISED, fact_group="statements"),))
    assert replace(promise, certificates=whole, by="all").expected_share("visits") == 0.75


def test_a_certificate_of_a_run_that_is_not_here_has_lapsed() -> None:
    """Of merged rows a run may be missing; without the last run before the test, the certificate's own counts."""
    with KnowledgeBase() as kb:
        kb.start_run(RunRecord.now("here", "search", {"models": ["m@1", "c@1", "m@1", "m@1"]}))
        kb.start_run(RunRecord.now("later", "search", {"models": ["m@2", "c@2", "m@2", "m@2"]}))
        for run, last in (("gone", None), ("gone", "here"), ("here", "gone"), ("here", "later")):
            kb.add_certificates(
                [replace(PROMISED, basis={"critic": "c@1"}, run_id=run, after_run=last, sample=f"{run} {last}")]
            )
        found = {item.record.sample: item.lapse for item in stored_certificates(kb, ["gone", "here"])}

    assert found.pop("here later") == ""
    assert found == {
        "gone None": "its run is not in this knowledge base",
        "gone here": "its run is not in this knowledge base",
        "here gone": "the critic c has had another revision since",
    }


def test_only_proposed_facts_get_labels() -> None:
    """A truth about another fact is no label."""
    atom = ProposedAtom("is_in", ("soup", "Lima"), "Soup is in Lima.")
    (label,) = labels_of({"elsewhere": True, atom.id: False}, {atom.id: atom}, "people")

    assert (label.predicate, label.arguments, label.is_true, label.source) == (
        "is_in",
        ("soup", "Lima"),
        False,
        "people",
    )
