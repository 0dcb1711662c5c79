"""`--json` of commands whose reports are short: one value on stdout, with paths as texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke, run
from money_fixture import RULES, WORLD
from votes_fixture import fill_csv


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a knowledge base after a search of a small world."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "money.rules").write_text(RULES, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency")
    run("search", folder / "money.rules", *models, "--db", folder / "kb.db", "--no-progress", *EVERY_END)
    return folder


def printed(*words: object) -> Any:
    """The JSON on stdout of a command that succeeds."""
    result = invoke(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_backup_restore_and_merge_print_json(searched: Path, tmp_path: Path) -> None:
    """The copy with its rows, the file that was there before, and the new rows of each table."""
    copy, other = tmp_path / "copy.db", tmp_path / "other.db"

    backed_up = printed("backup", copy, "--db", searched / "kb.db")
    first = printed("restore", copy, "--db", other)
    second = printed("restore", copy, "--db", other)
    merged = printed("merge", copy, "--db", tmp_path / "merged.db")

    assert backed_up == {"copy": str(copy), "rows": sum(merged["added"].values())}
    assert first == {"database": str(other), "backup": str(copy), "earlier": None}
    assert Path(second["earlier"]).exists()
    assert merged["conflicts"] == []


def test_votes_print_json(searched: Path, tmp_path: Path) -> None:
    """The sheets with their items, and the votes of a sheet that was filled in."""
    options = ("--voter", "ann", "--format", "csv", "--out", tmp_path)
    exported = printed("votes", "export", "soundness", *options, "--db", searched / "kb.db")
    (sheet,) = map(Path, exported["files"])
    fill_csv(sheet, lambda row: "yes")
    imported = printed("votes", "import", sheet, "--db", searched / "kb.db")

    assert exported["items"] > 0
    assert imported["votes"] == imported["new"] >= exported["items"]
    assert (imported["voters"], imported["replaced"], imported["faults"]) == (1, [], [])


def test_a_report_prints_json(searched: Path, tmp_path: Path) -> None:
    """The file with its size, and the run that it is about; beside a page on stdout it is refused."""
    page = printed("report", "-o", tmp_path / "page.html", "--db", searched / "kb.db")

    assert page["bytes"] == (tmp_path / "page.html").stat().st_size
    assert (page["file"], page["rules"]) == (str(tmp_path / "page.html"), 1)
    assert invoke("report", "-o", "-", "--db", searched / "kb.db", "--json").exit_code == 2


def test_entailments_and_proofs_print_json(searched: Path, tmp_path: Path) -> None:
    """The number of stored entailments; the answer to a pronoun with the lines of its proof."""
    (tmp_path / "edges.tsv").write_text("uses_currency(Country X, Currency Y)\tknows(Country X, Currency Y)\t0.5\n")
    rules = ("--rules", searched / "money.rules", "--db", tmp_path / "kb.db")
    sentence = "The ant could not lift the crumb because it was too heavy."

    stored = printed("evaluate", "entailment", "facts", tmp_path / "edges.tsv", *rules)
    proved = printed("evaluate", "winograd", "prove", sentence, "-o", "ant", "-o", "crumb")

    assert stored == {"stored": 1, "skipped": 0}
    assert proved["answer"] == "crumb"
    assert proved["lines"][-1] == "the pronoun is crumb"
