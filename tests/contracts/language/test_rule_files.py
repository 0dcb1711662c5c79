"""Rule files as `check`, `check --fix` and `explain` read, mark and mend them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_fixture import invoke, run

import hapax

ENTRIES = json.loads(invoke("rules", "explain", "--json").stdout)
CODES = [entry["code"] for entry in ENTRIES]
OF_RULES = [entry for entry in ENTRIES if entry["code"] < "HPX060" or "HPX100" < entry["code"] < "HPX4"]
TEMPLATES = '"[1] reaches [2]" / "[1] does not reach [2]" / "does [1] reach [2]?"'


def write(folder: Path, text: str, name: str = "my.rules") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_explained(code: str) -> None:
    """By its severity, and, where rules or goals alone can have it, by an example with the fault and one without."""
    explained = hapax.explain_fault(code.lower())
    said = run("rules", "explain", code).stdout

    assert said.startswith(f"{code} ({explained.severity})")
    assert {fault.code for fault in explained.diagnostics} <= {code}
    assert ("Corrected:" in said) is bool(explained.mended)


def test_the_page_of_the_language_has_each_code() -> None:
    """And no others."""
    page = (Path(__file__).parents[3] / "docs" / "language.md").read_text("utf-8")

    assert re.findall(r"^\| (HPX\d{3}) \|", page, re.MULTILINE) == CODES


def test_faults_of_rules_and_goals_have_mended_examples() -> None:
    """Only limits, and faults that depend on files, facts or models, have none; `explain` says at least what they mean."""
    without = {code for code in CODES if not hapax.explain_fault(code).mended}

    assert without == {"HPX056", "HPX057", "HPX060", "HPX061", "HPX075", "HPX303"} | {
        code for code in CODES if code >= "HPX4"
    }


@pytest.mark.parametrize("entry", OF_RULES, ids=lambda entry: entry["code"])
def test_a_fault_marks_characters_that_are_there(entry: dict[str, str]) -> None:
    """Each range of the example of a code lies within its lines."""
    lines = entry["example"].split("\n")
    for fault in hapax.explain_fault(entry["code"]).diagnostics:
        for place in (fault.place, *fault.related):
            assert place.end_line is not None
            assert place.end_column is not None
            assert (place.line, place.column) < (place.end_line, place.end_column)
            assert place.end_column <= len(lines[place.end_line - 1]) + 1


def test_marks_stand_below_their_word(tmp_path: Path) -> None:
    """Behind characters of two columns, tabs and controls that are shown escaped; a pipe gets no colours."""
    text = invoke("check", write(tmp_path, 'fact p("\u6f22\u202e",\t"a\\q")\n')).stdout
    source, marks = text.splitlines()[1:3]

    assert source.endswith('fact p("\u6f22\\u202e", "a\\q")')
    assert marks.index("^") == source.index('"a') + 1  # the Chinese character takes two columns
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("rules", "code", "marked"),
    [
        ("p(T X, U A) & q(U A, V B) -> r(Person P, V B)", "HPX101", "Person P"),
        ('given age(Person, Age)\nfact age("Ann", "old")', "HPX113", '"old"'),
        ("p(T X, Text A) & q(Text A, V B) & A + (1 - B) < 3 -> r(T X, V B)", "HPX112", "A + (1 - B) < 3"),
    ],
)
def test_the_word_at_fault_is_marked(tmp_path: Path, rules: str, code: str, marked: str) -> None:
    """JSON has the range of the literal, argument or text at fault, not of its rule."""
    path = write(tmp_path, rules)
    found = next(fault for fault in json.loads(invoke("check", path, "--json").stdout) if fault["code"] == code)

    assert rules.split("\n")[found["line"] - 1][found["column"] - 1 : found["end_column"] - 1] == marked
    assert found["place"] == f"{path}:{found['line']}:{found['column']}"


def test_faults_with_one_remedy_are_mended_in_place(tmp_path: Path) -> None:
    """Keyword, invisible character, dash and predicate, one after another; all else stays, line ends too."""
    faulty = (
        f"\ufefforcale reach(Town, Town): {TEMPLATES}\r\n\r\n@name far\r\nraech(Town A, Town B) & raech(Town B,\u200b Town C)"
        " \u2014> reach(Town A, Town C)  # \u2014 stays\r\n"
    )
    path = write(tmp_path, faulty)
    ended = run("check", path, "--fix")

    assert path.read_bytes().decode() == (
        f"\ufefforacle reach(Town, Town): {TEMPLATES}\r\n\r\n@name far\r\nreach(Town A, Town B) & reach(Town B, Town C)"
        " -> reach(Town A, Town C)  # \u2014 stays\r\n"
    )
    assert f'{path}:1:1: changed "orcale" to "oracle"' in ended.stderr


def test_a_choice_is_left_to_the_author(tmp_path: Path) -> None:
    """Nothing is changed where two names are near, nor in files that nobody named."""
    text = (
        f"oracle reach(Town, Town): {TEMPLATES}\noracle reecho(Town, Town): {TEMPLATES}\n"
        "reech(Town A, Town B) & wraps(Town B, Town C) -> warps(Town A, Town C)\n"
    )
    path = write(tmp_path, text)
    importing = write(tmp_path, 'import "slip.rules"\n', "importing.rules")
    imported = write(tmp_path, text.replace("oracle reecho", "orcale reecho"), "slip.rules")
    invoke("check", path, importing, "--fix")

    assert path.read_text("utf-8") == text
    assert "orcale" in imported.read_text("utf-8")
    assert "PATHS" in run("check", "--fix", code=2).stderr


def test_files_that_cannot_be_read_are_reported_with_the_others(tmp_path: Path) -> None:
    """A missing file, one that is not UTF-8, one that is too large and a broken JSON, beside a faulty rule."""
    (tmp_path / "latin.rules").write_bytes(b'fact p("caf\xe9")')
    with (tmp_path / "large.rules").open("wb") as stream:
        stream.truncate(200_000_000)
    write(tmp_path, "p(Person X", "bad.rules")
    write(tmp_path, "[" * 100_000, "bad.json")
    found = json.loads(run("check", tmp_path, tmp_path / "missing.rules", "--json", code=4).stdout)

    assert sorted((fault["code"], Path(fault["file"]).name) for fault in found) == [
        *(("HPX012", "bad.rules"), ("HPX060", "bad.json"), ("HPX060", "large.rules"), ("HPX060", "latin.rules")),
        ("HPX060", "missing.rules"),
    ]


@pytest.mark.parametrize(
    ("command", "name", "words"),
    [
        *((command, name, words) for command in ("check", "query", "derive") for name, words in (
            ("empty", "folder without files of rules"),
            ("tables", "folder without files of rules"),
            ("none.rules", "No such file"),
            ("bin.rules", "not UTF-8"),
            ("tables/t.csv", "hapax import"),
        )),
        ("import", "none.csv", "no such file"),
        ("import", "bin.csv", "zero bytes"),
        ("import", "ok.rules", "hapax derive ok.rules"),
        ("init", "ok.rules", "hapax derive ok.rules"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, name: str, words: str
) -> None:
    """The message names it and the remedy; nothing is made."""
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("tables").mkdir()
    Path("tables/t.csv").write_text("a,b\n1,2\n", "utf-8")
    Path("ok.rules").write_text("p(a).\n", "utf-8")
    Path("bin.rules").write_bytes(b"\xff\xfe\x00p")
    Path("bin.csv").write_bytes(b"p,\x00\xff\n")
    before = set(tmp_path.rglob("*"))
    found = invoke(command, *(["q(X)"] if command == "query" else []), name)

    assert found.exit_code == 2
    assert name in found.output
    assert words in " ".join(found.output.split())
    assert set(tmp_path.rglob("*")) == before
