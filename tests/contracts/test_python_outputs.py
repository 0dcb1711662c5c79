"""Contents, reports, datasets, sheets, evaluations and the machine from Python: values, tables, and no output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from money_fixture import RULES

import hapax


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hapax.KnowledgeBase]:
    """A knowledge base that holds a search with simulated models."""
    path = tmp_path_factory.mktemp("outputs") / "money.db"
    rules = hapax.parse_rules(RULES)
    with hapax.KnowledgeBase(path) as kb:
        hapax.search(rules, kb, hapax.open_models("simulated:3", library=rules))
        yield kb


@pytest.fixture(autouse=True)
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No operation prints."""
    yield
    assert capfd.readouterr() == ("", "")


def test_contents_are_counted(kb: hapax.KnowledgeBase) -> None:
    """`stats` gives the rows of each table and the calls by role, as a frame and as JSON."""
    contents = hapax.stats(kb)

    assert contents.counts["statements"] == len(kb.statements())
    assert contents.to_json()["calls_by_role"] == kb.call_counts()
    assert contents.to_pandas().set_index("table").loc["facts", "rows"] == len(kb.facts())


def test_a_report_is_a_page(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`report` gives the page as text and as values; a notebook shows it in a frame that cannot reach the notebook."""
    page = hapax.report(kb, hapax.parse_rules(RULES), hapax.ReportOptions(kb.place, statements=1))
    page.write(tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text("utf-8") == page.html
    shown = page._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert shown.count("<") == 2


def test_a_dataset_is_written_with_its_table(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`write_dataset` writes the formats of its target and gives LINK's table 16."""
    target = hapax.Target(tmp_path / "out", ("jsonl",))
    written = hapax.write_dataset(kb, target, hapax.SelectionOptions(sample=5))

    assert list((tmp_path / "out").glob("**/*.jsonl"))
    assert written.value.formats == ("jsonl",)
    assert len(written.tables[0].to_pandas()) > 0
    assert written.to_json()


def test_a_budget_stops_a_probe(kb: hapax.KnowledgeBase) -> None:
    """A probe whose budget is spent gives what it has and says so."""
    options = hapax.ProbeOptions("simulated:4", sample=1)
    stopped = hapax.evaluate_probe(kb, options, budget=hapax.Budget(max_calls=2))

    assert stopped.value.run.stopped


def test_sheets_and_their_votes(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Sheets are exported by options; a knowledge base without votes says how to get some, in terms of Python."""
    options = hapax.SheetExportOptions(hapax.SheetKind.STATEMENTS, hapax.SampleOptions(total=5), ("ann", "bob"))
    report = hapax.export_sheets(kb, options, tmp_path)

    assert all(path.exists() for path in report.paths)
    with pytest.raises(hapax.HapaxError) as raised:
        hapax.report_votes(kb)
    assert "--" not in str(raised.value)


def test_rules_in_other_forms() -> None:
    """`compile_rules` writes Prolog, rule text and LINK's JSON, of all rules or of some; other forms are refused."""
    rules = hapax.parse_rules(RULES)

    assert hapax.parse_rules(hapax.compile_rules(rules, "rules")).rules == rules.rules
    assert ":-" in hapax.compile_rules(rules, only=rules.rules[0].name)
    with pytest.raises(hapax.HapaxError, match=r"xml.*link-json"):
        hapax.compile_rules(rules, "xml")


def test_shipped_rules_have_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shipped` names the rules that ship, beside own files; a file of that name in the working folder comes first."""
    monkeypatch.chdir(tmp_path)
    mine = "@name mine\nis_ingredient_in(Ingredient A, Dish B) -> is_in(Ingredient A, Dish B)\n"
    (tmp_path / "my.rules").write_text(mine, "utf-8")
    shipped, own = hapax.load_rules(), hapax.load_rules("my.rules")

    assert hapax.load_rules("shipped") == shipped
    assert len(hapax.load_rules("my.rules", "shipped").rules) == len(own.rules) + len(shipped.rules)
    assert len(hapax.load_rules("shipped/library").rules) > 400
    (tmp_path / "shipped").write_text(mine, "utf-8")
    assert hapax.load_rules("shipped") == own


def test_a_pronoun_is_resolved_with_its_proof() -> None:
    """`resolve_pronoun` gives the option that the pronoun means, and lines that prove it."""
    pair = ("ant", "crumb")

    resolution = hapax.resolve_pronoun("The ant could not lift the crumb because it was too heavy.", pair)

    assert resolution.answer == 1
    assert any("heavy" in line for line in resolution.lines(pair))


PAIRS = """X,kill,Y\tX,die,Y\tFalse\tEN
X,die,Y\tX,kill,Y\tTrue\tEN
X,own,Y\tX,buy,Y\tTrue\tEN
X,see,Y\tX,hear,Y\tFalse\tEN
"""
"""LevyHolt's format: hypothesis, premise, label and language."""


def test_entailments_are_measured_and_chained(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """Pairs are split and scored from Python, and stored entailments give their chains."""
    pairs, edges = tmp_path / "dev.txt", tmp_path / "edges.tsv"
    pairs.write_text(PAIRS, "utf-8")
    edges.write_text("has(Person X, Thing Y)\tmay_lend(Person X, Thing Y)\t0.9\n", "utf-8")

    split = hapax.split_entailments(pairs)
    scored = hapax.score_entailments(kb, [pairs], hapax.EntailmentOptions(scorers=("random",)))
    stored = hapax.store_entailments(kb, hapax.read_entailments(hapax.parse_rules(""), edges))
    chains = hapax.entailment_chains(kb)

    assert split.to_json()["splits"]["dev"]["pairs"] == 4
    assert {result.subset for result in scored.value} >= {"full", "DirTrue-DirFalse"}
    assert stored == 1
    assert chains.text.startswith("has(Person A, Thing B) entails may_lend(Person A, Thing B)")
    with pytest.raises(hapax.ArgumentRejected, match="There is no scorer oracle"):
        hapax.score_entailments(kb, [pairs], hapax.EntailmentOptions(scorers=("oracle",)))
