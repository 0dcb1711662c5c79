"""Distributions of stored statements, delta, agreement of evaluators, and the figures as files."""

from __future__ import annotations

import csv
import json
import struct
import xml.etree.ElementTree as ET
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result

from hapax.engine.search.job import SearchJob
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.evaluation.link.ablation import Experiment, ablation
from hapax.evaluation.link.judging import GroundTruth
from hapax.evaluation.link.likelihood.figures import NUMBERS, ablation_plot, write
from hapax.evaluation.link.likelihood.measures import measure
from hapax.evaluation.link.likelihood.run import LikelihoodOptions, run
from hapax.evaluation.link.likelihood.samples import reranked
from hapax.evaluation.shared.estimates import difference_of_means
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import Assessment, Distribution, RuleRecord, RunRecord, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import LogLikelihood, ModelIdentity, Models
from hapax.llm_oracle.scripted import ScriptedModel
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld, SimulationSettings

HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
LENGTH = "evaluator@length"
SCORES = {
    "allergy": {HEAD: (-1.0, -2.0, -3.0), TAIL: (-3.0, -4.0, -5.0)},
    "currency": {HEAD: (-2.0, -2.0), TAIL: (-1.0, -2.0, -1.5)},
}
"""Mean token log-likelihoods: delta is 2 for the first rule and -0.5 for the second."""
RULES = """
oracle is_ingredient_in(Ingredient, Dish): "[1] is an ingredient in [2]" / "?" / "?".
oracle is_one_type_of(Ingredient, Allergen): "[1] is one type of [2]" / "?" / "?".
@name allergy
is_allergic_to(Person X, Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Allergen A)
  -> cannot_eat(Person X, Dish B).
"""


class Evaluator:
    """Gives each text a score and remembers what it was asked. It agrees with the stored one, but on currency."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity("other", "1")

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.asked += texts
        return [
            LogLikelihood((1 if "currency" in text else 2) * float(text.split()[-1].rstrip(".")), 2) for text in texts
        ]


def run_record(run_id: str, started: str = "2026-01-01T00:00:00+00:00", **settings: object) -> RunRecord:
    told = {**SearchSettings().to_json(), "models": ["m", "m", "m", LENGTH], "rules": list(SCORES), **settings}
    return RunRecord(run_id, "search", told, run_id, started, status="done")


def instruction(run_id: str, wording: int, model: str = "gpt@1") -> RunRecord:
    settings = {
        "knowledge model": model,
        "evaluator": LENGTH,
        "wording": wording,
        "released": False,
        "rules": list(SCORES),
    }
    return RunRecord(run_id, "evaluate instruct", settings, run_id, f"2026-01-{wording:02}", status="done")


def statement(run_id: str, rule: str, distribution: Distribution, score: float, number: int = 0) -> StatementRecord:
    return StatementRecord(
        rule,
        distribution,
        run_id,
        (("A", f"{rule} {score} {number}"),),
        f"PersonX has {rule} {run_id} {number}",
        f"the score is {score}",
        "",
        {},
        score,
    )


def fill(
    kb: KnowledgeBase, record: RunRecord, scores: dict[str, dict[Distribution, tuple[float, ...]]] = SCORES
) -> None:
    """A search with these log-likelihoods, scored by the evaluator `LENGTH` with four tokens each."""
    kb.start_run(record)
    statements = [
        statement(record.id, rule, distribution, score, number)
        for rule, by_distribution in scores.items()
        for distribution, several in by_distribution.items()
        for number, score in enumerate(several)
    ]
    kb.add_statements(statements)
    kb.add_assessments(
        Assessment(statement.text, "log_likelihood", LENGTH, 4 * (statement.log_likelihood or 0.0), 4)
        for statement in statements
    )


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base with one search of two rules."""
    path = tmp_path / "kb.db"
    with KnowledgeBase(path) as kb:
        fill(kb, run_record("run"))
    return path


def evaluate_likelihood(*arguments: str | Path) -> Result:
    return invoke("evaluate", "likelihood", *arguments)


def said(result: Result) -> str:
    """Text on stderr, with line breaks as blanks."""
    return " ".join(result.stderr.split())


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def assert_image(png: Path, svg: Path) -> None:
    """The PNG's chunks carry right checksums up to the end, and the SVG is XML with lines in it."""
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, kinds = 8, []
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        body = data[place + 4 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length]) == (zlib.crc32(body),)
        kinds.append(body[:4])
        place += 12 + length
    assert (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
    root = ET.fromstring(svg.read_bytes())  # noqa: S314  # our own file
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findall(".//{http://www.w3.org/2000/svg}path")


# -- delta


def test_delta_is_the_difference_of_the_means(database: Path) -> None:
    """Delta by rule and their mean are exact on known log-likelihoods, from what is stored, and nothing is asked."""
    result = evaluate_likelihood("--db", database, "--json")

    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["evaluators"] == [LENGTH]
    assert {delta["rule"]: delta["delta"]["value"] for delta in report["deltas"]} == {"allergy": 2.0, "currency": -0.5}
    assert report["mean_deltas"][0]["delta"]["value"] == 0.75
    assert [(delta["head"], delta["long_tail"]) for delta in report["deltas"]] == [(3, 3), (2, 3)]


def test_delta_is_that_of_the_search(fresh_kb: KnowledgeBase) -> None:
    """A search and the evaluation of what it stored print the same deltas."""
    library = parse_library([("test.rules", RULES)])
    model = SimulatedModel(SimulatedWorld(library, 1, SimulationSettings(entities_per_type=20)))
    models = Models(model, model, model, ScriptedModel({"defaults": {"likelihood": -9.0}}))
    settings = SearchSettings(beam=10, calls_per_question=1, values_per_call=10)
    searched = search(SearchJob(library, library.rules, fresh_kb, replace(models, evaluator=model), settings))

    report = measure(fresh_kb)

    assert searched.mean_delta is not None
    assert [delta.delta.value for delta in report.deltas] == pytest.approx([rule.delta for rule in searched.rules])
    assert report.mean_deltas[0].delta.value == pytest.approx(searched.mean_delta)
    assert report.own_rankers == report.evaluators
    assert report.headlines[0].circular


def test_a_delta_has_an_interval_around_it() -> None:
    """The bootstrap interval holds the difference, and is empty where nothing varies."""
    some = difference_of_means([-1.0, -2.0, -3.0], [-3.0, -4.0, -5.0])
    none = difference_of_means([-1.0, -1.0], [-3.0, -3.0])

    assert some.low < 2.0 < some.high
    assert (none.low, none.value, none.high) == (2.0, 2.0, 2.0)


def test_a_figure_that_cannot_be_resampled_stands_alone() -> None:
    """A delta without an interval is printed alone."""
    assert str(difference_of_means([-1.0], [-3.0])) == "2.000"
    assert str(difference_of_means([], [-3.0])) == "none"


def test_tables_are_printed(database: Path) -> None:
    """Without --json the deltas by rule and their mean come as tables with intervals."""
    result = evaluate_likelihood("--db", database)

    assert result.exit_code == 0
    assert "allergy   3     3          2.000 (" in result.stdout
    assert "0.750" in result.stdout
    assert "Agreement" not in result.stdout


def test_only_the_named_rules_are_measured(database: Path) -> None:
    """--rule leaves the others out; one without statements is refused by name."""
    result, unknown = (
        evaluate_likelihood("--db", database, "--rule", "currency", "--json"),
        evaluate_likelihood("--db", database, "--rule", "x"),
    )

    assert [delta["rule"] for delta in json.loads(result.stdout)["deltas"]] == ["currency"]
    assert unknown.exit_code == 1
    assert "has no statement of x" in said(unknown)


def test_an_empty_knowledge_base_is_refused_with_a_remedy(tmp_path: Path) -> None:
    """Without statements there is nothing to measure."""
    KnowledgeBase(tmp_path / "kb.db").close()
    result = evaluate_likelihood("--db", tmp_path / "kb.db")

    assert result.exit_code == 1
    assert "Run `hapax search` first" in said(result)


def test_the_latest_search_of_a_method_counts(fresh_kb: KnowledgeBase) -> None:
    """A rule that was searched again counts once, by its later statements; a rule that was not keeps its own."""
    fill(fresh_kb, run_record("old"))
    later = {"allergy": {HEAD: (-1.0,), TAIL: (-9.0,)}}
    fill(fresh_kb, run_record("new", "2026-02-01T00:00:00+00:00", rules=["allergy"]), later)

    report = measure(fresh_kb)

    assert [method.name for method in report.methods] == ["search"]
    assert {delta.rule: delta.delta.value for delta in report.deltas} == {"allergy": 8.0, "currency": -0.5}


def test_a_later_search_that_found_nothing_counts(fresh_kb: KnowledgeBase) -> None:
    """Statements that a completed later search no longer finds do not stand for it."""
    fill(fresh_kb, run_record("old"))
    fill(fresh_kb, run_record("new", "2026-02-01T00:00:00+00:00"), {"allergy": SCORES["allergy"]})

    assert [delta.rule for delta in measure(fresh_kb).deltas] == ["allergy"]


def test_a_search_without_statements_is_no_method(fresh_kb: KnowledgeBase) -> None:
    """One that was interrupted early neither counts nor changes how the others are named."""
    fill(fresh_kb, run_record("run"))
    fresh_kb.start_run(replace(run_record("cool", "2026-02-01T00:00:00+00:00", temperature=0.5), status="interrupted"))

    assert [method.name for method in measure(fresh_kb).methods] == ["search"]


def test_an_import_is_a_method_of_its_own(fresh_kb: KnowledgeBase) -> None:
    """Statements that no search made are measured beside those of searches, under the name of what brought them."""
    fill(fresh_kb, run_record("run"))
    fill(fresh_kb, RunRecord("lint", "evaluate lint", {"folder": "lint"}, "lint", "2026-01-02", status="done"))

    assert [method.name for method in measure(fresh_kb).methods] == ["search", "evaluate lint lint"]


def test_an_instruction_is_a_method_named_by_model_and_wording(fresh_kb: KnowledgeBase) -> None:
    """Instructions come after searches, their wordings in the order of table 11."""
    fill(fresh_kb, instruction("ten", 10))
    fill(fresh_kb, instruction("two", 2))
    fill(fresh_kb, run_record("run"))

    names = [method.name for method in measure(fresh_kb).methods]

    assert names == ["search", "instruction only, gpt@1, wording 2", "instruction only, gpt@1, wording 10"]


def test_models_of_one_short_name_stay_apart(fresh_kb: KnowledgeBase) -> None:
    """Revisions that differ behind what is shown of them are told in full."""
    for number, revision in enumerate(("seed 7, world a", "seed 7, world b"), 1):
        fill(fresh_kb, replace(instruction(f"run{number}", 1), settings={"knowledge model": f"s@{revision}"}))

    assert [method.name for method in measure(fresh_kb).methods] == [
        "instruction only, s@seed 7, world a",
        "instruction only, s@seed 7, world b",
    ]


# -- reranking afterwards


def test_reranking_afterwards_is_measured_for_what_no_likelihood_ranked(fresh_kb: KnowledgeBase) -> None:
    """Instructions and ungated searches get the delta of their best 75 %; a ranked search does not."""
    scores = {"allergy": {HEAD: (-1.0, -2.0, -3.0, -4.0), TAIL: (-2.0, -3.0, -4.0, -5.0)}}
    fill(fresh_kb, run_record("run"), scores)
    fill(fresh_kb, run_record("drawn", likelihood="random"), scores)
    fill(fresh_kb, instruction("one", 1), scores)

    found = measure(fresh_kb).rerankings

    assert [row.method for row in found] == ["drawn at random", "instruction only, gpt@1"]
    assert [(row.before.value, row.after.value) for row in found] == [(1.0, 2.0), (1.0, 2.0)]
    assert {row.reranker for row in found} == {LENGTH}


def test_another_model_can_rerank(fresh_kb: KnowledgeBase) -> None:
    """A reranker is asked once for its scores; the evaluator measures what it kept."""

    class Backwards(Evaluator):
        def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
            return [LogLikelihood(-score.total - 20.0, 2) for score in super().log_likelihoods(texts)]

    scores = {"allergy": {HEAD: (-1.0, -2.0, -3.0, -4.0), TAIL: (-2.0, -3.0, -4.0, -5.0)}}
    fill(fresh_kb, instruction("one", 1), scores)
    first, second = Backwards(), Backwards()

    (found,) = measure(fresh_kb, reranker=first).rerankings
    again = measure(fresh_kb, reranker=second).rerankings

    assert (found.evaluator, found.reranker) == (LENGTH, "other@1")
    assert (found.before.value, found.after.value) == (1.0, 0.0)
    assert found in again
    assert (len(first.asked), second.asked) == (8, [])


def test_the_command_prints_reranking_and_the_papers_deltas(database: Path) -> None:
    """Beside instructions a reader finds what reranking them brings, and LINK's means as a remark."""
    with KnowledgeBase(database) as kb:
        fill(kb, instruction("one", 1))

    result = evaluate_likelihood("--db", database, "--rerank", "frequency")

    assert result.exit_code == 0, result.output
    assert "reranked (LINK, D.4)" in result.stdout
    assert "0.48" not in result.stdout
    assert "mean delta 0.48 for LINK, -0.14 for ChatGPT and -0.02 for GPT-4" in said(result)


# -- evaluators


def test_a_second_evaluator_is_asked_once(database: Path) -> None:
    """Missing scores are asked for and stored; a second call, or one without a named evaluator, asks nothing."""
    first, second = Evaluator(), Evaluator()
    with KnowledgeBase(database) as kb:
        run(kb, LikelihoodOptions([first]))
        again = run(kb, LikelihoodOptions([second])).report
        stored = measure(kb)

    assert len(first.asked) == len(set(first.asked)) == 10
    assert second.asked == []
    assert again.evaluators == ("other@1",)
    assert stored.evaluators == (LENGTH, "other@1")


def test_a_budget_ends_the_asking_and_keeps_what_came(database: Path) -> None:
    """Ten statements and a limit of four calls: exit code 3, and the second time only the others are asked for."""
    evaluator = ("--evaluator", "frequency", "--db", database)
    first = evaluate_likelihood(*evaluator, "--max-calls", "4")
    again = evaluate_likelihood(*evaluator, "--max-calls", "10")

    assert (first.exit_code, again.exit_code) == (3, 0)
    assert "exceed the limit of 4 on calls" in said(first)


def test_a_database_that_is_not_there_is_not_begun(tmp_path: Path) -> None:
    """A mistyped --db is an error, also where an evaluator would be asked, and leaves no file."""
    result = evaluate_likelihood("--evaluator", "frequency", "--db", tmp_path / "typo.db")

    assert result.exit_code == 1
    assert "there is no such knowledge base" in said(result)
    assert list(tmp_path.iterdir()) == []


def test_evaluators_agree_as_far_as_their_ranks_do(fresh_kb: KnowledgeBase) -> None:
    """Inside rules the two put statements in one order, so the correlation there is 1; both deltas have one sign."""
    fill(fresh_kb, run_record("run"))
    measure(fresh_kb, [Evaluator()])

    (agreement,) = measure(fresh_kb).agreements

    assert agreement.within_rules.value == pytest.approx(1.0)
    assert 0.0 < agreement.statements.value < 1.0
    assert (agreement.signs.value, agreement.signs.count) == (1.0, 2)
    assert agreement.signs.low < 1.0
    assert agreement.statements.count == 10


def test_evaluators_that_disagree_on_a_sign_show_it(fresh_kb: KnowledgeBase) -> None:
    """Of two rules, one has a positive delta under one evaluator and a negative one under the other."""

    class Contrary(Evaluator):
        def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
            scores = super().log_likelihoods(texts)
            return [
                LogLikelihood(-10.0 - score.total, 2) if "currency" in text else score
                for text, score in zip(texts, scores, strict=True)
            ]

    fill(fresh_kb, run_record("run"))
    measure(fresh_kb, [Contrary()])

    (agreement,) = measure(fresh_kb).agreements

    assert (agreement.signs.value, agreement.signs.count) == (0.5, 2)
    assert agreement.within_rules.value == pytest.approx(0.0)


def test_scores_that_are_missing_ask_for_an_evaluator(fresh_kb: KnowledgeBase) -> None:
    """Statements that nobody has scored in full say which option helps."""
    fresh_kb.start_run(run_record("run"))
    fresh_kb.add_statements([statement("run", "allergy", HEAD, -1.0)])

    with pytest.raises(HapaxError, match="--evaluator frequency"):
        measure(fresh_kb)


def test_evaluators_come_from_the_command_line(database: Path, tmp_path: Path) -> None:
    """--evaluator takes model strings, and with two of them the table of their agreement follows."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"defaults": {"likelihood": -10.0}}), encoding="utf-8")

    result = evaluate_likelihood("--db", database, "--evaluator", "frequency", "--evaluator", f"scripted:{script}")

    assert result.exit_code == 0, result.output
    assert "Agreement" in result.stdout
    assert "frequency" in result.stdout


# -- figures


@pytest.mark.slow
def test_every_figure_is_written_as_png_svg_and_csv(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """With searches of other temperature, model and ranker, two wordings and four evaluators, all are drawn."""
    fill(fresh_kb, run_record("run"))
    fill(fresh_kb, instruction("one", 1))
    fill(fresh_kb, instruction("two", 2))
    fill(fresh_kb, run_record("cool", temperature=0.5))
    fill(fresh_kb, run_record("drawn", likelihood="random"))
    fill(fresh_kb, run_record("large", models=["large", "large", "large", LENGTH]))
    evaluators = [Named(name) for name in ("one", "two", "three", "four")]

    result = run(fresh_kb, LikelihoodOptions(evaluators, out=tmp_path))

    assert list(result.written) == list(NUMBERS)
    assert result.unavailable == {}
    for png, svg, table in result.written.values():
        assert_image(png, svg)
        assert cells(table)
    assert len(cells(tmp_path / "likelihoods.csv")) == 4 * 6 * 11


class Named(Evaluator):
    """An evaluator of another name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity(self.name)


def test_figures_depend_on_the_data_alone(database: Path, tmp_path: Path) -> None:
    """Two runs write the same bytes."""
    for name in ("one", "two"):
        assert evaluate_likelihood("--db", database, "--out", tmp_path / name).exit_code == 0

    written = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "figure-3.png" in written
    assert "figure-4.svg" in written
    for name in written:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_figure_13_has_a_line_for_each_wording(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """The search stands first, then the wordings of the model that was asked in most of them."""
    fill(fresh_kb, run_record("run"))
    for number in (3, 1, 2):
        fill(fresh_kb, instruction(f"w{number}", number))
    fill(fresh_kb, instruction("other", 1, "another@1"))

    run(fresh_kb, LikelihoodOptions(figure_numbers=[13, 3, 9], out=tmp_path))

    wordings = [f"instruction only, gpt@1, wording {number}" for number in (1, 2, 3)]
    lines = list(dict.fromkeys(cell["method"] for cell in cells(tmp_path / "figure-13.csv")))
    assert lines == ["search", *wordings]
    compared = ["search", wordings[0], "instruction only, another@1, wording 1"]
    assert set(dict.fromkeys(cell["method"] for cell in cells(tmp_path / "figure-3.csv"))) == set(compared)
    assert set(dict.fromkeys(cell["row"] for cell in cells(tmp_path / "figure-9.csv"))) == set(compared)


def test_figure_7_reranks_instructions(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """Search, instruction, and what remains of the instruction's statements: the likeliest, and the least likely."""
    fill(fresh_kb, run_record("run"))
    fill(fresh_kb, instruction("one", 1))

    run(fresh_kb, LikelihoodOptions(rules=["allergy"], figure_numbers=[7], out=tmp_path))

    found = cells(tmp_path / "figure-7.csv")
    name = "instruction only, gpt@1"
    assert list(dict.fromkeys(row["row"] for row in found)) == ["search", name, f"{name}, reranked afterwards"]


def test_an_instruction_without_a_pair_keeps_no_figure_from_being_drawn(
    fresh_kb: KnowledgeBase, tmp_path: Path
) -> None:
    """A model that wrote a head alone is not in the figures, which need both."""
    fill(fresh_kb, run_record("run"))
    fill(fresh_kb, instruction("one", 1), {"allergy": {HEAD: (-1.0,)}})

    result = run(fresh_kb, LikelihoodOptions(figure_numbers=[4, 9], out=tmp_path))

    assert list(result.written) == [4, 9]
    assert {cell["row"] for cell in cells(tmp_path / "figure-9.csv")} == {"search"}


def test_figure_3_has_each_rules_delta(database: Path, tmp_path: Path) -> None:
    """The CSV holds what the line shows: rules from the largest delta to the smallest."""
    evaluate_likelihood("--db", database, "--figure", "3", "--out", tmp_path)

    found = cells(tmp_path / "figure-3.csv")
    assert [(row["rule"], float(row["delta"])) for row in found] == [("allergy", 2.0), ("currency", -0.5)]
    assert not (tmp_path / "figure-4.csv").exists()


def test_histograms_count_every_statement_once(database: Path, tmp_path: Path) -> None:
    """The bins of a panel share their edges and add up to its statements."""
    evaluate_likelihood("--db", database, "--figure", "9", "--out", tmp_path)

    found = cells(tmp_path / "figure-9.csv")
    for rule, by_distribution in SCORES.items():
        bins = [row for row in found if row["rule"] == rule]
        assert len({(one["low"], one["high"]) for one in bins}) == 30
        for distribution, scores in by_distribution.items():
            counts = [int(one["statements"]) for one in bins if one["distribution"] == distribution.value]
            assert sum(counts) == len(scores)


def test_figure_4_shows_one_rule(database: Path, tmp_path: Path) -> None:
    """It is the named one, else the one with most statements."""
    evaluate_likelihood("--db", database, "--figure", "4", "--out", tmp_path / "most")
    evaluate_likelihood("--db", database, "--figure", "4", "--rule", "currency", "--out", tmp_path / "named")

    assert {cell["rule"] for cell in cells(tmp_path / "most" / "figure-4.csv")} == {"allergy"}
    assert {cell["rule"] for cell in cells(tmp_path / "named" / "figure-4.csv")} == {"currency"}


def test_figure_4_leaves_out_what_people_judged_wrong(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A statement that more voters denied than affirmed is in figure 9, but not in figure 4."""
    fill(fresh_kb, run_record("run"))
    wrong = next(
        statement
        for statement in fresh_kb.statements(rule="allergy", distribution=HEAD)
        if statement.log_likelihood == -3.0
    )
    answers = {"ada": "no", "ben": "no", "cy": "yes"}
    fresh_kb.add_votes(VoteRecord(wrong.id, "entailment", voter, answer) for voter, answer in answers.items())

    run(fresh_kb, LikelihoodOptions(rules=["allergy"], figure_numbers=[4, 9], out=tmp_path))

    for number, count in ((4, 2), (9, 3)):
        heads = [cell for cell in cells(tmp_path / f"figure-{number}.csv") if cell["distribution"] == "head"]
        assert sum(int(one["statements"]) for one in heads) == count


def test_methods_are_told_apart_by_what_differs(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """Figure 5's rows are the temperatures, in their order, although other searches are there, too."""
    fill(fresh_kb, run_record("warm", temperature=1.0))
    fill(fresh_kb, run_record("run"))
    fill(fresh_kb, run_record("small", beam=5, temperature=0.1))

    run(fresh_kb, LikelihoodOptions(figure_numbers=[5], out=tmp_path))

    rows = list(dict.fromkeys(cell["row"] for cell in cells(tmp_path / "figure-5.csv")))
    assert rows == ["beam 200, temperature 0.7", "beam 200, temperature 1.0"]


def test_reranking_afterwards_keeps_three_quarters_from_its_end(fresh_kb: KnowledgeBase) -> None:
    """The head keeps its likeliest statements, the long tail its least likely, rounded up."""
    fill(fresh_kb, run_record("run"))
    pair = measure(fresh_kb).samples.pair("search", "allergy", LENGTH)
    assert pair is not None
    long = replace(pair[1], scores=(-5.0, -4.0, -3.0, -2.0, -1.0), texts=tuple("abcde"))

    assert sorted(reranked(pair[0]).scores) == [-3.0, -2.0, -1.0]
    assert reranked(long).scores == (-5.0, -4.0, -3.0, -2.0)
    assert reranked(replace(long, distribution=HEAD)).texts == ("e", "d", "c", "b")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (5, "--temperature"),
        (6, "--no-likelihood"),
        (7, "--no-likelihood"),
        (8, "--knowledge"),
        (10, "--evaluator"),
        (13, "--wording all"),
    ],
)
def test_a_figure_that_lacks_data_says_what_brings_it(database: Path, tmp_path: Path, number: int, remedy: str) -> None:
    """A figure that is asked for by number and cannot be drawn fails with the command that helps."""
    result = evaluate_likelihood("--db", database, "--figure", str(number), "--out", tmp_path / "figures")

    assert result.exit_code == 1
    assert f"Figure {number} " in said(result)
    assert remedy in said(result)


def test_all_figures_that_can_be_drawn_are_no_failure(database: Path, tmp_path: Path) -> None:
    """Asking for all draws what it can and names the rest."""
    result = evaluate_likelihood("--db", database, "--figure", "all", "--out", tmp_path, "--json")

    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert sorted(report["figures"]) == ["3", "4", "9"]
    assert sorted(report["lacking"], key=int) == ["5", "6", "7", "8", "10", "11", "12", "13"]


def test_a_figure_needs_a_folder(database: Path) -> None:
    """--figure without --out is wrong usage."""
    result = evaluate_likelihood("--db", database, "--figure", "3")

    assert result.exit_code == 2
    assert "--out" in result.stderr


def test_names_with_signs_of_formulas_are_drawn_as_they_are(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A dollar sign in a name does not begin a formula."""
    fill(fresh_kb, run_record("run"), {"a$_$b": SCORES["allergy"]})

    run(fresh_kb, LikelihoodOptions(figure_numbers=[3, 4], out=tmp_path))

    assert "a$_$b" in (tmp_path / "figure-4.svg").read_text(encoding="utf-8")


def test_figure_6_comes_from_an_ablation(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """The four variants are its rows, and their bins hold all their statements."""
    library = parse_library([("test.rules", RULES)])
    world = SimulatedWorld(library, 1, SimulationSettings(entities_per_type=20))
    model = SimulatedModel(world)
    settings = SearchSettings(beam=10, calls_per_question=1, values_per_call=10)
    experiment = Experiment(library, library.rules, Models(model, model, model, model), settings)
    report = ablation(experiment, fresh_kb, GroundTruth(world.holds))

    png, svg, table = write(ablation_plot(report.reports, "simulated"), tmp_path)

    assert_image(png, svg)
    found = cells(table)
    for cell in report.cells:
        counts = [
            int(row["statements"])
            for row in found
            if (row["row"], row["distribution"]) == (cell.variant, cell.distribution.value)
        ]
        assert sum(counts) == cell.statements > 0


def test_the_ablation_command_writes_figure_6(tmp_path: Path) -> None:
    """`evaluate ablation --out` draws its log-likelihoods, and --json prints the same ones."""
    rules, folder = tmp_path / "allergy.rules", tmp_path / "figures"
    rules.write_text(RULES, encoding="utf-8")
    options = ["-m", "simulated", "--beam", "10", "--calls", "1", "--values", "10"]
    arguments = ["evaluate", "ablation", rules, *options, "--db", tmp_path / "kb.db", "--out", folder, "--json"]

    result = invoke(*arguments)

    assert result.exit_code == 0, result.output
    assert_image(folder / "figure-6.png", folder / "figure-6.svg")
    drawn = cells(folder / "figure-6.csv")
    for variant, by_distribution in json.loads(result.stdout)["log_likelihoods"].items():
        for distribution, by_rule in by_distribution.items():
            bins = [
                example for example in drawn if (example["row"], example["distribution"]) == (variant, distribution)
            ]
            assert sum(int(one["statements"]) for one in bins) == len(by_rule["allergy"])


def test_a_budget_ends_an_ablation(tmp_path: Path) -> None:
    """The variants that it cut are named, and the exit code is 3."""
    rules = tmp_path / "allergy.rules"
    rules.write_text(RULES, encoding="utf-8")
    arguments = ["evaluate", "ablation", rules, "-m", "simulated", "--max-calls", "3", "--db", tmp_path / "kb.db"]

    result = invoke(*arguments)

    assert result.exit_code == 3, result.output
    assert "A budget ended these variants" in said(result)
    assert "full, w/o critic" in said(result)


def test_an_ablation_switches_its_gates_itself() -> None:
    """It takes the settings of a search, but not the two switches that it varies."""
    result = invoke("evaluate", "ablation", "--no-critic")

    assert result.exit_code == 2
    assert "--no-critic" in result.stderr


def test_rules_with_one_end_have_no_delta(tmp_path: Path) -> None:
    """Where no rule has statements at both ends, the command prints its tables with no rule above 0, and succeeds."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        kb.start_run(RunRecord("run", "search", {}, "f", "2026-01-01", status="done"))
        kb.add_rules([RuleRecord("r", "p(A) -> q(A)", None, None, None)])
        kb.add_statements([StatementRecord("r", HEAD, "run", (("A", "milk"),), "milk is p", "milk is q", "t", {})])

    result = invoke("evaluate", "likelihood", "--evaluator", "frequency", "--db", tmp_path / "kb.db")

    assert result.exit_code == 0, result.output
    assert "0 of 0" in result.stdout
