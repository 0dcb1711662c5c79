"""Directional entailment: data and its sub-groups, prompts, scorers, what they get, training, and checks of rules."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import run
from hypothesis import given, settings
from hypothesis import strategies as st
from papers_fixture import VERBS, couple, fault, levy_holt, pair, score_file, script
from random_cases import cases

import hapax

DATA = Path(__file__).parents[4] / "shared" / "data"
LEVY_HOLT = [DATA / "levyholt" / f"{name}.txt" for name in ("train", "dev")]
SHERLIIC = DATA / "sherliic" / "dev.txt"
needs_levy_holt = pytest.mark.skipif(not LEVY_HOLT[0].exists(), reason="needs LevyHolt's published train and dev files")
SHERLIIC_COLUMNS = (
    "sample_id,prem_type,prem_rel,hypo_type,hypo_rel,prem_argleft,prem_middle,prem_argright,prem_end,hypo_argleft,"
    "hypo_middle,hypo_argright,hypo_end,is_prem_reversed,is_hypo_reversed,examples_A,examples_B,gold_label,"
    "rel_score,sign_score,esr_score,num_disagr\n"
)
GROUPS = ("DirTrue", "DirFalse", "Paraphrases", "Unrelated")


def entailment(*words: object, code: int = 0) -> Any:
    """The JSON that a command about entailment prints."""
    return json.loads(run("evaluate", "entailment", *words, "--json", code=code).stdout)


def pairs_of(*paths: str | Path) -> list[Any]:
    """The pairs of files, as they are read."""
    return [pair for split in hapax.split_entailments(*paths).value.splits.values() for pair in split]


# Data and sub-groups


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """LevyHolt's files split again, and the folder with everything that is written of them."""
    found, folder = hapax.split_entailments(*LEVY_HOLT), tmp_path_factory.mktemp("subsets")
    hapax.write_entailment_splits(found, folder)
    return found, folder


@needs_levy_holt
def test_counts_and_direction_of_the_paper(published: tuple[Any, Path]) -> None:
    """Train and dev hold 868 + 3520 and 217 + 881 pairs; their sub-groups have together what the paper prints, which
    stands in a table of its own. Who exported tons of something exports it, and not the reverse."""
    found = published[0].to_json()
    paper = {"train": (251, 251, 615, 3255), "dev": (64, 64, 155, 831)}
    labels = [path.read_text("utf-8").count("\tTrue") for path in LEVY_HOLT]
    (table,) = [table for table in published[0].tables if "paper" in table.title]
    pairs = pairs_of(*(published[1] / "DirTrue-DirFalse" / f"{name}.txt" for name in ("train", "dev")))
    directional = {(row.premise.predicate, row.hypothesis.predicate) for row in pairs if row.entailed}

    assert (labels, [split["pairs"] for split in found["given"].values()]) == ([868, 217], [868 + 3520, 217 + 881])
    assert list(found["together"].items()) == list(
        zip(GROUPS, map(sum, zip(*paper.values(), strict=True)), strict=True)
    )
    assert [(row[0], tuple(map(int, row[3:]))) for row in table.texts] == list(paper.items())
    assert ("exported tons of", "exports") in directional
    assert ("exports", "exported tons of") not in directional


SPLIT = st.tuples(st.sampled_from("pqr"), st.sampled_from("pqr"), st.booleans(), st.sampled_from(("train", "dev")))


@settings(max_examples=cases(15), deadline=None)
@given(st.lists(SPLIT, min_size=1))
def test_split_again_never_leaks(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, bool, str]]
) -> None:
    """Whatever the pairs, none is lost and no converse is in another split."""
    folder, by_name = tmp_path_factory.mktemp("split"), dict.fromkeys(row[3] for row in rows)
    given = {name: [pair(*row[:3]) for row in rows if row[3] == name] for name in by_name}
    paths = [levy_holt(folder / f"{name}.txt", some) for name, some in given.items()]
    splits = hapax.split_entailments(*paths).value.splits.values()
    predicates = [{frozenset((p.premise.predicate, p.hypothesis.predicate)) for p in split} for split in splits]

    assert sum(map(len, splits)) == len(rows)
    assert len(predicates) < 2 or not predicates[0] & predicates[1]


def test_sub_groups_by_label_and_converse(tmp_path: Path) -> None:
    """True with a false converse is directional, true with a true one or none a paraphrase, the rest by analogy."""
    rows = [
        *couple("shopped in", "went to"), pair("arrived at", "got to", True), pair("got to", "arrived at", True),
        pair("shopped in", "fell ill in", False), pair("Lived in", "dwelt  in", True),
    ]  # fmt: skip
    found = entailment("data", levy_holt(tmp_path / "dev.txt", rows), "--out", tmp_path / "out")
    twins = pairs_of(tmp_path / "out" / "full-hypothesis-only" / "dev.txt")

    assert found["together"] == {"DirTrue": 1, "DirFalse": 1, "Paraphrases": 3, "Unrelated": 1}
    # Where the premise is gone, everything else stays.
    assert {twin.premise.sentence for twin in twins} == {"true"}
    assert [twin.hypothesis.predicate for twin in twins].count("got to") == 1


def test_sherliic_rows_are_read(tmp_path: Path) -> None:
    """Example entities stand for the types, swapped where a relation is reversed; the file's end of a relation stays.
    The published file has 200 lines, 68 of them true."""
    row = (
        "1,1,2,1,3,person[A],is granting to,organization[B],,organization[B],is given,person[A],"
        '"by x",False,True,"Ann / Bo",ACME / Foo,yes,1.0,0.5,0.2,0\n'
    )
    path = tmp_path / "dev.csv"
    path.write_text(SHERLIIC_COLUMNS + row + row.replace(",yes,", ",no,"), "utf-8")
    first, second = pairs_of(path)

    assert (first.premise.sentence, first.hypothesis.sentence) == ("Ann is granting to ACME", "ACME is given Ann by x")
    assert (first.entailed, second.entailed) == (True, False)
    if SHERLIIC.exists():
        labels = [row.entailed for row in pairs_of(SHERLIIC)]
        assert (len(labels), sum(labels)) == (200, 68)
    for faulty in ("1,2\n", ",".join("x" * 22) + "\n", '"1'):
        path.write_text(SHERLIIC_COLUMNS + faulty, "utf-8")
        with pytest.raises(hapax.HapaxError, match=r"dev\.csv"):
            hapax.split_entailments(path)


def test_sides_without_commas_or_parse_are_read(tmp_path: Path) -> None:
    """A sentence with commas of its own and two empty parts, as SherLIiC has it; and a side that no parser could read."""
    path = tmp_path / "dev.txt"
    path.write_text("Party is in Washington, D.C.,,\tParty rules Washington, D.C.,,\tFalse\tEN\n", "utf-8")
    (only,) = pairs_of(path)
    parsed = "(see.2,see.from.2) sirius::astral_body earth::location"
    (tmp_path / "dev_rels.txt").write_text(f"{parsed}\t\tFalse\n{parsed}\t{parsed}\tTrue\n", "utf-8")
    first, second = pairs_of(tmp_path / "dev_rels.txt")

    assert only.hypothesis.sentence == "Party is in Washington, D.C."
    assert first.premise.sentence.strip() == ""
    assert second.premise == second.hypothesis
    blank = "(sell.2,sell.for.2) energy::thing many-cents:: money"
    (tmp_path / "dev_rels.txt").write_text(f"{parsed}\t{blank}\tTrue\n{parsed}\t{blank}s to live on\tTrue\n", "utf-8")
    third, fourth = pairs_of(tmp_path / "dev_rels.txt")
    assert third.premise.sentence == fourth.premise.sentence == "energy sell for many cents"
    (tmp_path / "dev_rels.txt").write_text("\t\tFalse\n", "utf-8")
    with pytest.raises(hapax.HapaxError, match=r"dev_rels\.txt:1"):
        hapax.split_entailments(tmp_path / "dev_rels.txt")


# Prompts and scores

PROMPTS = (Path(__file__).parent / "prompts_entailment.txt").read_text("utf-8").splitlines()
"""Five patterns and five antipatterns of each language, filled."""

ASKED = {
    "EN": ("Ann,owns,food", "Ann,buys,milk"),
    "DE": ("Ann,hat,Essen", "Ann,kauft,Milch"),
    "ZH": ("小明,否·去,北京", "小明,在·X·工作,北京"),
}


def claims(folder: Path, lines: Iterable[str], *more: str) -> list[str]:
    """The sentences that a model is asked about for some lines."""
    path = folder / "asked.txt"
    path.write_text("".join(lines) + "x,y,z\tx,w,z\tFalse\tEN\nx,y,z\tx,v,z\tTrue\tEN\n", "utf-8")
    asked = claimed(path, *more)
    return [claim for claim in asked if not {"x", "z"} & set(claim.replace(",", " ").replace(".", " ").split())]


def claimed(path: Path, *more: str) -> list[str]:
    """All sentences that a model is asked about for a file."""
    model, database = script(path.parent / "half.json", yes=0.5), path.parent / f"{'-'.join(more)}.db"
    run("evaluate", "entailment", "score", path, "-m", model, "--no-twin", "--db", database, *more)
    with hapax.KnowledgeBase(database) as kb:
        asked = [str(call.request["claim"]) for call in kb.calls().values()]
    database.unlink()
    return asked


@pytest.mark.parametrize(("language", "first"), [("EN", 0), ("DE", 10), ("ZH", 20)])
def test_prompts_are_sent_byte_for_byte(tmp_path: Path, language: str, first: int) -> None:
    """Five patterns and five antipatterns a language, misspelling included; of the patterns three are directional.
    Filled both ways, a pair and its converse read the same sentences."""
    line, back = (f"{one}\t{other}\tTrue\t{language}\n" for one, other in permutations(ASKED[language]))
    expected = PROMPTS[first : first + 10]
    symmetric = claims(tmp_path, [line], "--patterns", "symmetric")

    assert claims(tmp_path, [line], "--patterns", "original") == expected
    assert claims(tmp_path, [line]) == [*expected[:3], *expected[5:]]
    assert set(symmetric) == set(claims(tmp_path, [back], "--patterns", "symmetric"))
    assert len(symmetric) == 6 + 10


def test_original_prompts_negate_what_sherliic_needs(tmp_path: Path) -> None:
    """In two patterns premise and hypothesis are negated, in one antipattern the hypothesis, of SherLIiC's relations."""
    row = "1,1,2,1,3,p[A],is head of,o[B],,p[A],works for,o[B],,False,False,Ann,Acme,{},1.0,0.5,0.2,0\n"
    path = tmp_path / "dev.csv"
    path.write_text(SHERLIIC_COLUMNS + row.format("yes") + row.format("no").replace("works", "pays"), "utf-8")

    assert {
        "Ann is head of Acme, which means that Ann works for Acme.",
        "Ann is not head of Acme because Ann does not work for Acme.",
        "Ann does not work for Acme, which means that Ann is not head of Acme.",
        "Even if Ann is head of Acme, Ann maybe does not work for Acme.",
        "It is not sure that Ann works for Acme just because Ann is head of Acme.",
    } <= set(claimed(path, "--patterns", "original"))


def affirming(path: Path, texts: Iterable[str]) -> str:
    """A model that affirms these sentences and none besides."""
    return script(path, yes=0.1, critic=dict.fromkeys(texts, 0.9))


def means(premise: str, hypothesis: str) -> str:
    """The first pattern, filled with two sentences."""
    return f"{premise}, which means that {hypothesis}."


def test_the_score_is_the_best_pattern_less_the_best_antipattern(tmp_path: Path) -> None:
    """A pair whose best pattern is .9 and whose best antipattern is .3 has .6, so it is above a pair with .5."""
    path = levy_holt(tmp_path / "dev.txt", [pair("P", "q", True), pair("r", "s", False)])
    sure = {"a q b because a P b.": 0.9, "Even if a P b, a maybe q b.": 0.3, means("a r b", "a s b"): 0.7}
    model = script(tmp_path / "s.json", yes=0.2, critic=sure)
    found = entailment("score", path, "-m", model, "--no-twin", "--db", tmp_path / "x.db")

    assert found[0]["auc_norm"]["value"] == 1.0
    assert found[0]["f1"]["theta"] == pytest.approx(0.6)


@pytest.mark.parametrize("release", [(), ("--release",)])
def test_the_order_of_pairs_with_equal_scores_has_no_part(release: tuple[str, ...], tmp_path: Path) -> None:
    """Whichever of tied pairs comes first in the file, all areas, F1 and concordance are the same."""
    rows, found = [(pair(f"p{place}", f"q{place}", place % 3 == 0), abs(place - 5) // 4) for place in range(12)], []
    for true_first in (True, False):
        ordered, scores = zip(*sorted(rows, key=lambda row: row[0][2], reverse=true_first), strict=True)
        path = levy_holt(tmp_path / "dev.txt", ordered)
        name = f"scores:{score_file(tmp_path / 'scores.txt', ordered, scores)}"
        row, *_ = entailment("score", path, "--scorer", name, "--no-twin", *release, "--db", tmp_path / "x.db")
        found.append([row["auc50"], row["auc_rel"], row["auc_norm"]["value"], row["concordance"]["whole"]["value"]])
        found[-1] += [row["f1"][key] for key in ("f1", "precision", "recall", "theta")]

    assert found[0] == pytest.approx(found[1])


def test_each_line_of_a_score_file_keeps_its_score(tmp_path: Path) -> None:
    """Pairs that differ in case alone, or come twice with other labels, have the scores of their own lines."""
    rows = [pair("p", "q", True), pair("P", "Q", False), pair("p", "q", False), pair("r", "s", True)]
    path, scores = (
        levy_holt(tmp_path / "dev.txt", rows),
        score_file(tmp_path / "scores.txt", rows, [0.9, 0.1, 0.2, 0.8]),
    )
    row, *_ = entailment("score", path, "--scorer", f"scores:{scores}", "--no-twin", "--db", tmp_path / "x.db")

    assert (row["pairs"], row["auc_norm"]["value"], row["concordance"]["whole"]["value"]) == (4, 1.0, 1.0)


def test_baselines_count_training_pairs(tmp_path: Path) -> None:
    """Frequency is 1 - 1/n of the hypothesis' predicate; the prior is the share of its true pairs, drawn to one half.
    They see hypotheses alone: what they know is an artefact, and as who sees premises alone, they have no twin."""
    train = levy_holt(tmp_path / "train.txt", [pair("P", "q", True), pair("r", "Q", True), pair("q", "p", False)])
    # By either, q is above what is new; by frequency p, which was there once, is as new.
    asked = levy_holt(tmp_path / "dev.txt", [pair("x", "q", True), pair("x", "new", True), pair("x", "p", False)])
    score = ("score", asked, "--train", train, "--db", tmp_path / "x.db", "--scorer")
    both = entailment(*score, "frequency", "--scorer", "prior")
    found = {row["scorer"]: row for row in both if row["subset"] == "full"}

    assert {name: row["concordance"]["whole"]["value"] for name, row in found.items()} == {"frequency": 0.5, "prior": 1}
    assert found["prior"]["f1"]["theta"] == pytest.approx(1 / 2)
    assert {row["finding"] for row in entailment(*score, "random", "--shown", "premise")} == {""}
    many = levy_holt(train, [row for number in range(30) for row in couple(f"special {number}", f"general {number}")])
    known = entailment("score", many, "--train", many, "--scorer", "prior", "--db", tmp_path / "x.db")
    assert {row["subset"]: row["finding"] for row in known}["full"] == "artefact"


# What it says


def finding(folder: Path, whole: Callable[[str, str], float], alone: Callable[[str], float] | None) -> Any:
    """The figures on directional pairs of a scorer that looks at predicates, and at the hypothesis alone."""
    rows = [row for number in range(30) for row in couple(f"special {number}", f"general {number}")]
    draw = random.Random(1)
    words = [tuple(side.split(",")[1].split()[0] for side in row[:2]) for row in rows]
    name = f"scores:{score_file(folder / 'whole.txt', rows, [whole(*both) + draw.random() / 2 for both in words])}"
    if alone is not None:
        scores = [alone(both[1]) + draw.random() / 2 for both in words]
        name += f"+{score_file(folder / 'alone.txt', rows, scores)}"
    options = hapax.EntailmentOptions(scorers=(name,))
    with hapax.KnowledgeBase() as kb:
        found = hapax.score_entailments(kb, [levy_holt(folder / "dev.txt", rows)], options).value
    (result,) = [row for row in found if row.subset == "DirTrue-DirFalse"]
    return result


def directed(premise: str, hypothesis: str) -> float:
    return float((premise, hypothesis) == ("special", "general"))


def test_artefacts_are_told_from_entailment(tmp_path: Path) -> None:
    """Who reads the hypothesis alone has an artefact; who needs both sides has a gap above chance; reliably wrong is no
    chance; and without scores of hypotheses alone nothing is found."""
    artefact = finding(tmp_path, lambda _, said: said == "general", lambda said: said == "general")

    assert artefact.finding == "artefact"
    assert (artefact.norm.whole.value, artefact.norm.alone.value) == (pytest.approx(1.0), pytest.approx(1.0))
    assert artefact.rel.gap.value == pytest.approx(0.0)
    assert finding(tmp_path, directed, lambda _: 0.0).finding == "entailment"
    assert finding(tmp_path, lambda *both: -directed(*both), lambda _: 0.0).finding == "reversed"
    assert finding(tmp_path, lambda *_: 0.0, lambda _: 0.0).finding == "nothing"
    assert finding(tmp_path, directed, None).finding == ""


# Draws of a fine-tuning


def test_the_best_draw_on_dev_is_tested_once(tmp_path: Path) -> None:
    """No test before the last draw, none on dev and none on a second set; other draws' test scores are never read."""
    rows = [row for both in zip(VERBS[::2], VERBS[1::2], strict=True) for row in couple(*both, "ann", "bob")]
    dev, test, other = (
        levy_holt(tmp_path / f"{n}.txt", some) for n, some in enumerate((rows[::-1], rows[:6], rows[:2]))
    )
    gauge = tmp_path / "gauge"
    for name, gap in (("0", 0.0), ("1", 0.5), ("2", -0.5)):
        (gauge / name).mkdir(parents=True)
        score_file(gauge / name / "dev.txt", rows[::-1], [0.3 + gap * row[2] for row in rows[::-1]])
    score_file(gauge / "1" / "test.txt", rows[:6], [0.5] * 6)
    words = ("evaluate", "entailment", "select", gauge)

    assert "1 of 4 draws" in fault(*words, dev, test, "--draws", 4)
    assert "selected on" in fault(*words, dev, dev, "--draws", 3)
    found = entailment("select", gauge, dev, test, "--draws", 3)
    assert (found["draw"], found["dev"]["auc50"]) == ("1", 1.0)
    # A score that is the same both ways tells no direction.
    assert found["test"]["auc_norm"] == pytest.approx(0.0, abs=1e-9)
    assert entailment("select", gauge, dev, test) == found
    assert "other sets" in fault(*words, dev, other)


def test_a_planted_library_of_thirty(tmp_path: Path) -> None:
    """Ten rules are reversed, redundant or contradictory, and all are found; none of the other twenty is accused."""
    path, codes = Path(__file__).parent / "planted_entailments.rules", {"HPX413", "HPX414", "HPX415"}
    rules = hapax.load_rules(path)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        hapax.store_entailments(kb, hapax.read_entailments(rules, path.with_suffix(".tsv")))
        faults = hapax.check_rules(rules, kb)
    lines = path.read_text("utf-8").splitlines()
    found = {(lines[fault.place.line - 2].split()[-1], fault.code) for fault in faults if fault.code in codes}
    kinds = {"reversed": "HPX413", "redundant": "HPX414", "contrary": "HPX415"}
    names = [line.split()[1] for line in lines if line.startswith("@name")]

    assert len(names) == 30
    assert found == {(name, kinds[name.partition("_")[0]]) for name in names if name.partition("_")[0] in kinds}
