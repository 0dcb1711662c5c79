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


@pytest.fixture
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No operation prints."""
    yield
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("_silent")
def test_contents_are_counted(kb: hapax.KnowledgeBase) -> None:
    """`stats` gives the rows of each table and the calls by role, as a frame and as JSON."""
    contents = hapax.stats(kb)

    assert contents.counts["statements"] == len(kb.statements())
    assert contents.to_json()["calls_by_role"] == kb.call_counts()
    assert contents.df().set_index("table").loc["facts", "rows"] == len(kb.facts())


@pytest.mark.usefixtures("_silent")
def test_a_report_is_a_page(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`report` gives the page as text and as values; a notebook shows it in a frame that cannot reach the notebook."""
    page = hapax.report(kb, hapax.parse_rules(RULES), hapax.ReportOptions(kb.place, statements=1))
    page.write(tmp_path / "report.html")

    assert (tmp_path / "report.html").read_text("utf-8") == page.html
    shown = page._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert shown.count("<") == 2


@pytest.mark.usefixtures("_silent")
def test_a_dataset_is_written_with_its_table(kb: hapax.KnowledgeBase, tmp_path: Path) -> None:
    """`write_dataset` writes the formats of its target and gives LINK's table 16."""
    target = hapax.Target(tmp_path / "out", ("jsonl",))
    written = hapax.write_dataset(kb, target, hapax.SelectionOptions(sample=5))

    assert list((tmp_path / "out").glob("**/*.jsonl"))
    assert written.value.formats == ("jsonl",)
    assert len(written.tables[0].df()) > 0
    assert written.to_json()


@pytest.mark.usefixtures("_silent")
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


@pytest.mark.usefixtures("_silent")
def test_answers_come_out_as_data_frames() -> None:
    """Whole numbers are int64 and others float64, thirds too; a number with more digits than a float stays as it is."""
    program = hapax.program("""
        weighs(ann, 61.5). weighs(bob, 70). lives_in(ann, 3). lives_in(bob, 4). owes(ann, 0.1). owes(bob, 12345678901234567.89).
    """)
    frame = program.query("weighs(N, K), lives_in(N, F), owes(N, M)").df()
    table = program.query("weighs(N, K), lives_in(N, F)").arrow()

    thirds = program.query("weighs(ann, K), lives_in(ann, F), T = F / 9").df()

    assert list(thirds["T"] * 1.5) == [0.5]
    assert sorted(frame["K"]) == [61.5, 70.0]
    assert [str(frame[name].dtype) for name in ("K", "F", "M")] == ["float64", "int64", "object"]
    assert [str(table.schema.field(name).type) for name in ("N", "K", "F")] == ["string", "double", "int64"]
