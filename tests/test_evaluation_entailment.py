"""Directional entailment: the data, its sub-groups, and what is measured on them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise, product
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.evaluation.entailment import groups, metrics, pairs
from hapax.evaluation.entailment.groups import PAIRINGS, PAPER_SIZES, SubGroup
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.grammar.errors import HapaxError

LEVY_HOLT = Path(__file__).parent.parent.parent / "shared" / "data" / "levyholt"
needs_levy_holt = pytest.mark.skipif(not LEVY_HOLT.is_dir(), reason="needs LevyHolt's published train and dev files")

SHOPPED, WENT = Triple("Person", "shopped in", "Location"), Triple("Person", "went to", "Location")
SHERLIIC = (
    "sample_id,prem_type,prem_rel,hypo_type,hypo_rel,prem_argleft,prem_middle,prem_argright,prem_end,hypo_argleft,"
    "hypo_middle,hypo_argright,hypo_end,is_prem_reversed,is_hypo_reversed,examples_A,examples_B,gold_label,rel_score,"
    "sign_score,esr_score,num_disagr\n"
)

words = st.text(st.characters(exclude_characters=",", exclude_categories=("C", "Z")), min_size=1, max_size=6)
triples = st.builds(Triple, words, words, words)
any_pairs = st.lists(
    st.builds(EntailmentPair, triples, triples, st.booleans(), st.sampled_from(("EN", "DE"))), min_size=1
)
labelled_scores = st.lists(
    st.tuples(st.booleans(), st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0])), min_size=1, max_size=40
)


def pair(premise: str, hypothesis: str, entailed: bool, order: tuple[str, str] = ("a", "b")) -> EntailmentPair:
    return EntailmentPair(Triple(order[0], premise, order[1]), Triple(order[0], hypothesis, order[1]), entailed)


def levy_holt() -> dict[str, list[EntailmentPair]]:
    return {name: pairs.read_pairs(LEVY_HOLT / f"{name}.txt") for name in ("train", "dev")}


# Data


def test_the_first_column_is_the_hypothesis(tmp_path: Path) -> None:
    """A directional entailment reads as: who shopped there went there, and not the other way round."""
    path = tmp_path / "dev.txt"
    path.write_text(
        "Person,went to,Location\tPerson,shopped in,Location\tTrue\tEN\n"
        "Person,shopped in,Location\tPerson,went to,Location\tFalse\tEN\n",
        "utf-8",
    )
    first, second = pairs.read_pairs(path)

    assert (first.premise, first.hypothesis, first.entailed) == (SHOPPED, WENT, True)
    assert groups.sub_groups([first, second]) == [SubGroup.DIR_TRUE, SubGroup.DIR_FALSE]


@needs_levy_holt
def test_direction_of_the_published_data() -> None:
    """Who exported tons of something exports it; a reader with the columns swapped would say the reverse."""
    every = [row for split in levy_holt().values() for row in split]
    directional = {
        (row.premise.predicate, row.hypothesis.predicate)
        for row, group in zip(every, groups.sub_groups(every), strict=True)
        if group is SubGroup.DIR_TRUE
    }

    assert ("exported tons of", "exports") in directional
    assert ("exports", "exported tons of") not in directional


@given(any_pairs)
def test_what_is_written_reads_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, given_pairs: list[EntailmentPair]
) -> None:
    """LevyHolt's form keeps every pair whose parts it can hold."""
    path = tmp_path_factory.mktemp("entailment") / "some.txt"
    pairs.write_levy_holt(given_pairs, path)

    assert [(row.key, row.entailed, row.language) for row in pairs.read_pairs(path)] == [
        (row.key, row.entailed, row.language) for row in given_pairs
    ]


@pytest.mark.parametrize("part", ["a, b", "a\tb", "a\nb", " a"])
def test_what_the_form_cannot_hold_is_refused(tmp_path: Path, part: str) -> None:
    """A comma, tab, line break or outer blank inside an argument would come back as something else."""
    with pytest.raises(HapaxError, match="Remove them"):
        pairs.write_levy_holt([EntailmentPair(Triple(part, "is", "b"), WENT, True)], tmp_path / "x.txt")


def test_all_faulty_lines_are_told(tmp_path: Path) -> None:
    """Each with file, line, fact and remedy; a file of many is cut with their number."""
    path = tmp_path / "dev.txt"
    path.write_text(
        "a,b,c\td,e,f\tTrue\tEN\n\na,b\td,e,f\tTrue\tEN\na,b,c\td,e,f\tyes\tEN\na,b,c\n,,\td,e,f\tTrue\n" + "x\n" * 20,
        "utf-8",
    )
    with pytest.raises(HapaxError) as raised:
        pairs.read_pairs(path)

    lines = str(raised.value).splitlines()
    assert [line.split(": ")[0].rpartition(":")[2] for line in lines[:4]] == ["3", "4", "5", "6"]
    assert "'a,b' is not a triple" in lines[0]
    assert "write True or False" in lines[1]
    assert "1 fields between tabs" in lines[2]
    assert lines[-1] == "and 14 more faulty lines"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00"])
def test_files_without_data(tmp_path: Path, content: bytes) -> None:
    """An empty file and one that is no text are errors that name the file."""
    path = tmp_path / "dev.txt"
    path.write_bytes(content)

    with pytest.raises(HapaxError, match=r"dev\.txt"):
        pairs.read_pairs(path)


def test_sherliic(tmp_path: Path) -> None:
    """Example entities stand for the types, swapped where a relation is reversed; the file's end of a relation stays."""
    path = tmp_path / "dev.csv"
    row = '1,1,2,1,3,person[A],is granting to,organization[B],,organization[B],is given,person[A],"by x",False,True,"Ann / Bo",ACME / Foo,yes,1.0,0.5,0.2,0\n'
    path.write_text(SHERLIIC + row + row.replace(",yes,", ",no,").replace("\n", ",EN\n"), "utf-8")
    first, second = pairs.read_pairs(path)

    assert first.premise == Triple("Ann", "is granting to", "ACME")
    assert first.hypothesis == Triple("ACME", "is given", "Ann by x")
    assert (first.entailed, second.entailed) == (True, False)
    assert second.place == "dev.csv:3"


@pytest.mark.parametrize(
    ("row", "fault"),
    [("1,2\n", ": 2 columns"), (",".join("x" * 22) + "\n", "write yes or no"), ('"1', "not valid CSV")],
)
def test_faulty_sherliic(tmp_path: Path, row: str, fault: str) -> None:
    """Columns and answers that are not SherLIiC's are told."""
    path = tmp_path / "dev.csv"
    path.write_text(SHERLIIC + row, "utf-8")

    with pytest.raises(HapaxError, match=fault):
        pairs.read_pairs(path)


def test_scores_of_a_training_run(tmp_path: Path) -> None:
    """The release's files of truth and score are read; what is none is told by line."""
    path = tmp_path / "scores.txt"
    path.write_text("1 0.5\n0 -2e-3\n", "utf-8")
    assert pairs.read_scores(path) == [(True, 0.5), (False, -0.002)]

    path.write_text("1 0.5\n2 0.5\n1 nan\n1 x\n", "utf-8")
    with pytest.raises(HapaxError, match=r"(?s):2: .*:3: .*:4: "):
        pairs.read_scores(path)


# Sub-groups


def test_sub_groups_by_label_and_converse() -> None:
    """True with a false converse is directional, true with a true one or none a paraphrase, the rest by analogy."""
    rows = [
        pair("shopped in", "went to", True),
        pair("went to", "shopped in", False),
        pair("arrived at", "got to", True),
        pair("got to", "arrived at", True),
        pair("shopped in", "fell ill in", False),
        pair("Lived in", " dwelt  in", True),
    ]

    assert groups.sub_groups(rows) == [
        SubGroup.DIR_TRUE,
        SubGroup.DIR_FALSE,
        SubGroup.PARAPHRASES,
        SubGroup.PARAPHRASES,
        SubGroup.UNRELATED,
        SubGroup.PARAPHRASES,
    ]


@needs_levy_holt
def test_counts_of_the_paper() -> None:
    """Train and dev hold 868 + 3520 and 217 + 881 pairs; their sub-groups have together what the paper prints."""
    splits = levy_holt()
    every = [row for split in splits.values() for row in split]

    assert [sum(row.entailed for row in split) for split in splits.values()] == [868, 217]
    assert [len(split) for split in splits.values()] == [868 + 3520, 217 + 881]
    assert groups.counts(every) == {
        group: PAPER_SIZES["train"][group] + PAPER_SIZES["dev"][group] for group in SubGroup
    }


@needs_levy_holt
def test_no_converse_crosses_splits() -> None:
    """The files as published leak; split again they do not, pairs that were together stay, and the seed decides."""
    splits = levy_holt()
    again = groups.split_again(splits, seed=1)

    assert groups.leaks(splits) > 0
    assert groups.leaks(again) == 0
    assert sorted(row.place for split in again.values() for row in split) == sorted(
        row.place for split in splits.values() for row in split
    )
    assert groups.split_again(splits, seed=1) == again != groups.split_again(splits, seed=2)
    assert {name: groups.counts(split)[SubGroup.UNRELATED] for name, split in again.items()} == {
        name: PAPER_SIZES[name][SubGroup.UNRELATED] for name in splits
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from("pqr"), st.sampled_from("pqr"), st.booleans(), st.sampled_from(("train", "dev", "test"))
        )
    )
)
def test_split_again_never_leaks(rows: list[tuple[str, str, bool, str]]) -> None:
    """Whatever the pairs, none is lost and no converse is in another split."""
    splits: dict[str, list[EntailmentPair]] = {"train": [], "dev": [], "test": []}
    for premise, hypothesis, entailed, name in rows:
        splits[name].append(pair(premise, hypothesis, entailed))
    again = groups.split_again(splits)

    assert groups.leaks(again) == 0
    assert sum(map(len, again.values())) == len(rows)


@needs_levy_holt
def test_pairings() -> None:
    """All six pairs of sub-groups have both labels; where both are true or both false, direction is the label."""
    every = [first for split in levy_holt().values() for first in split]
    sizes = groups.counts(every)

    assert len(PAIRINGS) == 6
    for first, second in PAIRINGS:
        chosen = groups.subset(every, (first, second))
        assert len(chosen) == sizes[first] + sizes[second]
        assert sum(row.entailed for row in chosen) in (sizes[first], sizes[second])
    directions = groups.subset(every, (SubGroup.PARAPHRASES, SubGroup.DIR_TRUE))
    assert sum(row.entailed for row in directions) == sizes[SubGroup.DIR_TRUE]


def test_hypothesis_only_twin() -> None:
    """The premise is gone, everything else stays."""
    twin = pair("shopped in", "went to", True).hypothesis_only

    assert (twin.premise, twin.hypothesis.predicate, twin.entailed) == (Triple("true", "", ""), "went to", True)
    assert twin.premise.sentence == "true"


# Metrics


def test_baselines_of_the_release() -> None:
    """The constants in the paper's code are the shares of true pairs that its counts give."""
    size = PAPER_SIZES["test"]
    true = size[SubGroup.DIR_TRUE] + size[SubGroup.PARAPHRASES]

    assert round(true / sum(size.values()), 4) == 0.2191
    assert round(994 / 2989, 5) == 0.33255
    assert round(size[SubGroup.PARAPHRASES] / (size[SubGroup.PARAPHRASES] + size[SubGroup.UNRELATED]), 4) == 0.1741
    assert round(size[SubGroup.DIR_TRUE] / (size[SubGroup.DIR_TRUE] + size[SubGroup.UNRELATED]), 4) == 0.0884
    assert round(size[SubGroup.PARAPHRASES] / (size[SubGroup.PARAPHRASES] + size[SubGroup.DIR_FALSE]), 4) == 0.6849
    assert round(924 / (924 + 1716), 2) == 0.35
    assert round(918 / (918 + 9172), 3) == 0.091


def test_curve_by_hand() -> None:
    """Four cases, of which the second is wrong: one point for each distinct score."""
    measured = metrics.curve([True, False, True, True], [0.9, 0.8, 0.5, 0.5])

    assert measured.thresholds.tolist() == [0.9, 0.8, 0.5]
    assert measured.precision.tolist() == [1.0, 0.5, 0.75]
    assert measured.recall.tolist() == pytest.approx([1 / 3, 1 / 3, 1])
    assert measured.positive == 0.75
    assert metrics.area_above(measured, 0.0) == pytest.approx((1 + (1 / 2 + 2 / 3) / 2 + (2 / 3 + 3 / 4) / 2) / 3)
    assert metrics.best_f1(measured) == metrics.BestThreshold(pytest.approx(6 / 7), 0.75, 1.0, 0.5)


@settings(deadline=None)
@given(labelled_scores)
def test_curve_agrees_with_scikit_learn(cases: list[tuple[bool, float]]) -> None:
    """Precision and recall at every threshold are scikit-learn's."""
    sklearn = pytest.importorskip("sklearn.metrics")
    truth, scores = [case[0] for case in cases], [case[1] for case in cases]
    measured = metrics.curve(truth, scores)
    if not any(truth):
        assert not len(measured.recall)
        return
    precision, recall, thresholds = sklearn.precision_recall_curve(truth, scores, drop_intermediate=False)

    assert measured.thresholds.tolist() == thresholds[::-1].tolist()
    assert measured.precision == pytest.approx(precision[:-1][::-1])
    assert measured.recall == pytest.approx(recall[:-1][::-1])
    if len(set(scores)) == len(scores):
        assert metrics.area_above(measured, 0.0) == pytest.approx(
            sklearn.auc(np.append(0.0, measured.recall), np.append(measured.precision[0], measured.precision))
        )


@given(labelled_scores)
def test_both_definitions_agree_above_the_baseline(cases: list[tuple[bool, float]]) -> None:
    """Eq. 1 equals the released variant where precision never falls below the baseline, and is never above it."""
    measured = metrics.curve([case[0] for case in cases], [case[1] for case in cases])
    own, released = metrics.normalised_area(measured), metrics.released_area(measured)

    assert own <= released + 1e-12
    if (measured.precision >= measured.positive).all():
        assert own == pytest.approx(released, abs=1e-12)


def has_both_labels(cases: Sequence[tuple[bool, int]]) -> bool:
    return {label for label, _ in cases} == {True, False}


def exact_areas(cases: Sequence[tuple[bool, int]]) -> tuple[Fraction, Fraction]:
    """AUCnorm of Eq. 1 and AUCREL in rational numbers, straight from the definitions."""
    ordered = sorted(cases, key=lambda case: -case[1])
    hits = sum(label for label, _ in ordered)
    floor = Fraction(hits, len(ordered))
    points, before = [], Fraction(0)
    for _, group in groupby(ordered, key=lambda case: case[1]):
        tied = list(group)
        share = Fraction(sum(label for label, _ in tied), len(tied))
        for _ in tied:  # expectation under random order
            before += share
            points.append((before / hits, before / (len(points) + 1)))
    points.insert(0, (Fraction(0), points[0][1]))
    area = reach = Fraction(0)
    for (left, start), (right, end) in pairwise(points):
        high, low = max(start, end) - floor, min(start, end) - floor
        above = Fraction(1) if low >= 0 else high / (high - low) if high > 0 else Fraction(0)
        area += (right - left) * ((high + low) / 2 if low >= 0 else above * max(high, 0) / 2)
        reach += (right - left) * above
    return (area + floor * reach - floor) / (1 - floor), area / (1 - floor)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(has_both_labels))
def test_areas_are_those_of_exact_arithmetic(cases: list[tuple[bool, int]]) -> None:
    """With any ties, both areas equal those computed in rational numbers."""
    measured = metrics.curve([label for label, _ in cases], [float(score) for _, score in cases])
    norm, released = exact_areas(cases)

    assert metrics.normalised_area(measured) == pytest.approx(float(norm), abs=1e-12)
    assert metrics.released_area(measured) == pytest.approx(float(released), abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40).filter(has_both_labels))
def test_concordance_is_the_share_of_ordered_couples(cases: list[tuple[bool, int]]) -> None:
    """A true pair above a false one counts 1, a tie one half."""
    true = [score for label, score in cases if label]
    false = [score for label, score in cases if not label]
    wins = sum((high > low) + (high == low) / 2 for high, low in product(true, false))
    measured = metrics.curve([label for label, _ in cases], [float(score) for _, score in cases])

    assert metrics.concordance(measured) == pytest.approx(wins / (len(true) * len(false)))


def test_curve_of_the_release_by_hand() -> None:
    """From precision 1 at recall 0 in straight lines; its half keeps the points from .51 on."""
    measured = metrics.curve([True, False, True, False], [1.0, 1.0, 1.0, 0.0])

    # Points (0, 1), (1, 2/3), (1, 1/2) over a baseline of 1/2.
    assert metrics.area_of_release(measured) == pytest.approx((1 / 2 + 1 / 6) / 2 / (1 / 2))
    assert metrics.half_of_release(measured) == pytest.approx((1 + 2 / 3) / 2)


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_constant_scorer_knows_nothing(true: int, false: int) -> None:
    """Whatever the share of true pairs, a scorer that gives all pairs one score has AUCnorm 0."""
    measured = metrics.curve([True] * true + [False] * false, [0.5] * (true + false))

    assert metrics.normalised_area(measured) == pytest.approx(0.0, abs=1e-9)


def test_the_definitions_differ_where_the_curve_dips() -> None:
    """A curve that starts below its baseline loses that stretch in Eq. 1 and only its height in the released code."""
    measured = metrics.curve([False, False, True, True], [0.9, 0.8, 0.7, 0.6])

    assert metrics.released_area(measured) == pytest.approx(0.0)
    assert metrics.normalised_area(measured) == pytest.approx(-1.0)
    assert metrics.normalised_area(metrics.curve([True, False], [1.0, 0.0])) == pytest.approx(1.0)


def test_ties_are_worth_a_draw_among_them() -> None:
    """Two right answers and ties for the rest are worth little, and ties for all nothing, wherever the true ones stand."""
    truth = [True] * 100 + [False] * 100
    few = metrics.curve(truth, [1.0, 1.0] + [0.0] * 198)
    none = metrics.curve(truth, [0.0] * 200)

    assert 0.02 < metrics.normalised_area(few) < 0.1
    assert metrics.normalised_area(none) == pytest.approx(0.0, abs=1e-12)
    assert few.precision.tolist() == [1.0, 0.5]


def test_empty_curve() -> None:
    """Without cases, or without a true one, every figure is 0 and nothing crashes."""
    for truth in ([], [False, False]):
        measured = metrics.curve(truth, [0.5] * len(truth))
        assert (
            metrics.area_above(measured) == metrics.normalised_area(measured) == metrics.released_area(measured) == 0.0
        )
        assert metrics.best_f1(measured) == metrics.BestThreshold(0.0, 0.0, 0.0, math.inf)
    all_true = metrics.curve([True], [0.5])
    assert metrics.normalised_area(all_true) == 0.0


@settings(deadline=None, max_examples=cases(10))
@given(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=2, max_size=30), st.integers(0, 3))
def test_a_symmetric_scorer_gets_nothing_on_directions(scores: list[float], seed: int) -> None:
    """Who scores a pair as its converse has precision one half everywhere and AUCnorm 0, with no doubt about it."""
    truth = [True, False] * len(scores)
    both = [score for score in scores for _ in range(2)]
    clusters = [number for number in range(len(scores)) for _ in range(2)]
    measured = metrics.curve(truth, both)

    assert np.all(measured.precision == 0.5)
    interval = metrics.estimate(truth, both, metrics.normalised_area, clusters, seed)
    assert (interval.value, interval.low, interval.high) == pytest.approx((0.0, 0.0, 0.0), abs=1e-12)


def test_interval_covers_and_repeats() -> None:
    """The interval holds the figure, is the same for a seed, and narrows with more cases."""
    generator = np.random.default_rng(3)
    widths = []
    for count in (100, 2000):
        truth = (generator.random(count) < 0.4).tolist()
        scores = [generator.normal(float(label), 1.0) for label in truth]
        estimated = metrics.estimate(truth, scores, metrics.released_area)
        assert estimated == metrics.estimate(truth, scores, metrics.released_area)
        assert estimated.low < estimated.value < estimated.high
        widths.append(estimated.high - estimated.low)
    assert widths[1] < widths[0]


def test_labels_and_scores_must_align() -> None:
    """A lost score is an error, not a shifted curve."""
    with pytest.raises(ValueError, match="2 labels but 1 scores"):
        metrics.curve([True, False], [0.5])


# The command


def run(*arguments: object) -> Result:
    return invoke("evaluate", "entailment", *arguments)


ROWS = [
    pair("shopped in", "went to", True),
    pair("went to", "shopped in", False),
    pair("arrived at", "got to", True),
    pair("shopped in", "fell ill in", False),
]


def test_data_counts_and_writes_subsets(tmp_path: Path) -> None:
    """Counts by split and together, the paper's in a table of their own, and every subset with its twin on disk."""
    pairs.write_levy_holt(ROWS[:1], tmp_path / "train.txt")
    pairs.write_levy_holt(ROWS[1:], tmp_path / "dev.txt")
    result = run("data", tmp_path / "train.txt", tmp_path / "dev.txt", "--out", tmp_path / "out")
    printed = json.loads(run("data", tmp_path / "train.txt", tmp_path / "dev.txt", "--json").stdout)

    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines() if line.startswith("together")] == [
        ["together", "4", "2", "1", "1", "1", "1"]
    ]
    assert "Sub-groups as the paper prints them" in result.stdout
    assert "2 pairs had their converse or a duplicate in another split" in result.stderr
    assert printed["leaks"] == 2
    assert printed["together"] == {"DirTrue": 1, "DirFalse": 1, "Paraphrases": 1, "Unrelated": 1}
    written = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.txt")}
    assert {"full/dev.txt", "full-hypothesis-only/dev.txt"} <= written
    twins = pairs.read_pairs(tmp_path / "out" / "full-hypothesis-only" / "dev.txt")
    assert {twin.premise for twin in twins} == {pairs.ANYTHING}


def test_the_releases_pairings_look_at_predicates_alone() -> None:
    """A true pair without its converse is directional by the predicates' converse, or in neither of the two pairings."""
    rows = [
        entails(("ann", "bought", "milk"), ("ann", "owns", "milk"), True),
        entails(("eve", "owns", "bread"), ("eve", "bought", "bread"), False),
        entails(("ann", "ate", "rice"), ("ann", "had", "rice"), True),
        entails(("bob", "sold", "tea"), ("bob", "gave away", "tea"), False),
        entails(("jim", "gave away", "tin"), ("jim", "sold", "tin"), True),
    ]

    derived = groups.sub_groups(rows)
    released = groups.released_sub_groups(rows)

    assert [str(group) for group in derived] == ["Paraphrases", "Unrelated", "Paraphrases", "Unrelated", "Paraphrases"]
    assert released == [
        groups.SubGroup.DIR_TRUE,
        groups.SubGroup.DIR_FALSE,
        None,
        groups.SubGroup.DIR_FALSE,
        groups.SubGroup.DIR_TRUE,
    ]
    chosen = groups.released_subset(rows, "symposi_dirposi")
    assert [pair.entailed for pair in chosen] == [True, True]
    assert [pair.entailed for pair in groups.released_subset(rows, "dirnegi_symnegi")] == [True, True]


def entails(premise: tuple[str, str, str], hypothesis: tuple[str, str, str], entailed: bool) -> EntailmentPair:
    return EntailmentPair(Triple(*premise), Triple(*hypothesis), entailed)


@needs_levy_holt
def test_the_releases_pairings_have_its_numbers_of_lines() -> None:
    """Over train and dev the two pairings have as many lines as the release's files, 815 + 203 and 3,520 + 881."""
    together = [*levy_holt()["train"], *levy_holt()["dev"]]

    assert len(groups.released_subset(together, "symposi_dirposi")) == 815 + 203
    assert len(groups.released_subset(together, "dirnegi_symnegi")) == 3520 + 881


def test_the_releases_pairings_are_named_measured_and_written(tmp_path: Path) -> None:
    """`data` prints and writes both versions of the two pairings, and `score --release` measures both."""
    pairs.write_levy_holt([*ROWS, pair("went to", "shopped in", False, ("bob", "ikea"))], tmp_path / "test.txt")
    result = run("data", tmp_path / "test.txt", "--out", tmp_path / "out")
    scored = run("score", tmp_path / "test.txt", "--scorer", "random", "--release", "--json")

    assert "924 / 1716" in result.stdout
    assert (tmp_path / "out" / "dirnegi_symnegi" / "test.txt").exists()
    subsets = {row["subset"] for row in json.loads(scored.stdout)}
    assert {"DirFalse-Unrelated", "dirnegi_symnegi"} <= subsets


def test_data_refuses_two_splits_of_one_name(tmp_path: Path) -> None:
    """Two files named dev would be one split."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        pairs.write_levy_holt(ROWS, tmp_path / folder / "dev.txt")
    result = run("data", tmp_path / "a" / "dev.txt", tmp_path / "b" / "dev.txt")

    assert result.exit_code == 1
    assert "Two files are named dev" in result.stderr


SHERLIIC_DEV = LEVY_HOLT.parent / "sherliic" / "dev.txt"


def test_sentences_keep_their_commas(tmp_path: Path) -> None:
    """SherLIiC's lines as published: a sentence with commas of its own, then two empty parts."""
    path = tmp_path / "dev.txt"
    path.write_text("Party is in Washington, D.C.,,\tParty rules Washington, D.C.,,\tFalse\tEN\n", "utf-8")

    (only,) = pairs.read_pairs(path)
    assert only.hypothesis == Triple("Party is in Washington, D.C.", "", "")
    assert only.premise.sentence == "Party rules Washington, D.C."


@pytest.mark.skipif(not SHERLIIC_DEV.exists(), reason="needs SherLIiC's published dev split in ../shared/data")
def test_sherliic_is_read_as_published() -> None:
    """All 200 lines of the published file, 68 of them true."""
    found = pairs.read_pairs(SHERLIIC_DEV)

    assert (len(found), sum(row.entailed for row in found)) == (200, 68)


PARSED = "(see.2,see.from.2) sirius::astral_body earth::location"


def test_a_side_without_a_parse_is_read(tmp_path: Path) -> None:
    """entGraph's files leave a side empty that the parser made nothing of; two empty sides are a fault."""
    path = tmp_path / "dev_rels.txt"
    path.write_text(f"{PARSED}\t\tFalse\n{PARSED}\t{PARSED}\tTrue\n", "utf-8")
    first, second = pairs.read_pairs(path)

    assert first.premise == pairs.UNPARSED
    assert second.premise.predicate == second.hypothesis.predicate
    path.write_text("\t\tFalse\n", "utf-8")
    with pytest.raises(HapaxError, match="not a triple"):
        pairs.read_pairs(path)


def test_faulty_lines_are_left_out_when_asked(tmp_path: Path) -> None:
    """--skip-faulty measures the other lines and names the faulty one."""
    path = tmp_path / "dev.txt"
    path.write_text("X,own,Y\tX,buy,Y\tTrue\tEN\nnothing\nX,see,Y\tX,hear,Y\tFalse\tEN\n", "utf-8")
    refused = invoke("evaluate", "entailment", "data", path)
    result = invoke("evaluate", "entailment", "data", path, "--skip-faulty", "--json")

    assert refused.exit_code == 1
    assert json.loads(result.stdout)["splits"]["dev"]["pairs"] == 2
    assert f"{path}:2:" in result.stderr.replace("\n", "")


def test_published_answers_are_pairs_and_scores(tmp_path: Path) -> None:
    """A file of answers as McKenna et al. published them is measured alone: its labels, and the mean of its answers."""
    path = tmp_path / "answers.json"
    lines = []
    for number, (premise, hypothesis, gold) in enumerate([("buy", "own", True), ("own", "buy", False)]):
        texts = {"premise": f"X,{premise},Y", "hypothesis": f"X,{hypothesis},Y"}
        lines.append(json.dumps({**texts, "preds": [1.0, float(number == 0)], "gold": gold}))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    result = invoke(
        "evaluate", "entailment", "score", path, "--scorer", f"scores:{path}", "--json", "--db", tmp_path / "x.db"
    )

    (full,) = (figures for figures in json.loads(result.stdout) if figures["subset"] == "full")
    assert (full["pairs"], full["auc_rel"], full["concordance"]["whole"]["value"]) == (2, 1.0, 1.0)
    path.write_text('{"premise": "X,a,Y", "hypothesis": "X,b,Y", "gold": 1, "preds": []}\n', "utf-8")
    assert "write a JSON object" in invoke("evaluate", "entailment", "score", path).stderr


def test_a_published_answer_beyond_all_floats_is_refused(tmp_path: Path) -> None:
    """An integer that no float can hold is a faulty answer, which is named with its line."""
    path = tmp_path / "answers.json"
    path.write_text(f'{{"gold": true, "preds": [{10**400}]}}\n', "utf-8")

    with pytest.raises(HapaxError, match=r"answers.json:1: preds must be a list of finite numbers"):
        pairs.read_scores(path)
