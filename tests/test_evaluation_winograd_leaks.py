"""Leaked pairs of Winograd schemas: how they are recognized, listed, and left out of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import winograd_fixture as fixture
from cli_fixture import run

from hapax.evaluation.winograd.data import pairs_of
from hapax.evaluation.winograd.files import read_items
from hapax.kb.store import KnowledgeBase

ANNOTATED = Path(__file__).parent.parent.parent / "shared" / "data" / "cr_wsc" / "wsc_273_annotated_final.csv"

FIREMEN = [
    {
        "text": f"The firemen arrived {when} the police because they were coming from so far away.",
        "pronoun": "they",
        "options": ["The firemen", "The police"],
        "label": label,
    }
    for label, when in enumerate(("after", "before"))
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A plain file, and one that reverses all of its schemas but the first, in other case, and adds a worked example."""
    entities = (fixture.PLAIN[0], *fixture.REVERSED[1:])
    plain = fixture.write(tmp_path / "plain.csv", fixture.PLAIN)
    rows = []
    for item in read_items(fixture.write(tmp_path / "partly.csv", entities)):
        rows.append(
            {"text": item.text.upper(), **{key: item.to_json()[key] for key in ("pronoun", "options", "label")}}
        )
    partly = tmp_path / "partly.jsonl"
    partly.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *FIREMEN]), encoding="utf-8")
    return plain, partly


def leaks(*words: str | Path) -> dict[str, list[str]]:
    output = json.loads(run("evaluate", "winograd", "data", *words, "--json").stdout)
    problems: dict[str, list[str]] = {}
    for leak in output["leaks"]:
        problems.setdefault(leak["items"][0], []).append(leak["what"])
    return problems


def test_leaked_pairs_are_named(files: tuple[Path, Path]) -> None:
    """A pair that repeats another source in other case leaks, and so does the example of a prompt; the rest do not."""
    assert leaks(*files) == {
        "partly:0": ["word for word the pair of plain:0"],
        "partly:8": ["the worked example of the prompts for winowhy"],
    }


def test_leaks_are_left_out_of_runs(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Both kinds are left out of the later source alone, also where the original's source is not asked about."""
    replies = fixture.script(list(files), fixture.by_association)
    model = fixture.scripted(tmp_path / "m.json", replies)
    asked = ("evaluate", "winograd", "ask", *files, "-m", model, "--db", tmp_path / "w.db", "--json")

    def pairs(*more: str) -> dict[str, int]:
        runs: list[dict[str, Any]] = json.loads(run(*asked, *more).stdout)
        return {figures["source"]: figures["pairs"] for figures in runs}

    assert pairs() == {"plain": 4, "partly": 5}
    assert pairs("--skip-leaked") == {"plain": 4, "partly": 3}
    assert pairs("--skip-leaked", "--source", "partly") == {"partly": 3}
    tables = run("evaluate", "winograd", "tables", "--db", tmp_path / "w.db").stdout
    assert "without leaked pairs" in tables


def test_leaks_are_left_out_of_proofs(files: tuple[Path, Path]) -> None:
    """`rules --skip-leaked` answers no sentence of a leaked pair; with --source, a leak from another source counts."""

    def answered(*more: str) -> list[str]:
        output = json.loads(run("evaluate", "winograd", "rules", *files, "--json", *more).stdout)
        return [answer["id"] for answer in output["answers"]]

    leaked = {"partly:0", "partly:1", "partly:8", "partly:9"}
    whole = answered()
    assert leaked < set(whole)
    assert answered("--skip-leaked") == [item for item in whole if item not in leaked]
    assert answered("--skip-leaked", "--source", "partly") == [f"partly:{number}" for number in range(2, 8)]


def test_leaks_are_no_sources_of_new_schemas(files: tuple[Path, Path], tmp_path: Path) -> None:
    """`generate --skip-leaked` starts from the pairs that do not leak, in a run of its own."""
    model = fixture.scripted(tmp_path / "m.json", {"defaults": {"generate": "I cannot say."}})
    made = ("evaluate", "winograd", "generate", files[1], "-m", model, "--prompt", "1", "--db", tmp_path / "w.db")

    def sources(*more: str) -> int:
        output = json.loads(run(*made, "--out", tmp_path / "new.jsonl", "--json", *more).stdout)
        return int(output["counts"]["source pairs"])

    assert sources() == 5
    assert sources("--skip-leaked") == 4  # alone in its file, the copy has no original
    with KnowledgeBase(tmp_path / "w.db", read_only=True) as kb:
        assert [record.settings.get("skip_leaked") for record in kb.runs()] == [None, True]


@pytest.mark.skipif(not ANNOTATED.exists(), reason="the published data lies beside the repository, not in it")
def test_leaks_of_the_published_file() -> None:
    """Five pairs of CR-WSC-H are word for word their source, and two schemas are worked examples of prompts."""
    problems = leaks(ANNOTATED)
    copies = [item for item, what in problems.items() if any(text.startswith("word for word") for text in what)]
    examples = [item for item, what in problems.items() if any(text.startswith("the worked") for text in what)]

    assert copies == [f"CR-WSC-H:{row}" for row in (66, 82, 96, 100, 170)]
    assert examples == ["WSC273:30", "WSC273:96", "CR-WSC-H:96"]
    assert len(pairs_of(read_items(ANNOTATED))) == 187
