"""Rule texts: predicates without arguments, the library of rules, and rules with faults beside right ones."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke, run

import hapax

# --- atoms ------------------------------------------------------------------------------------------------------------


WEATHER = """
given windy
raining.
cold().
wet :- raining.
cold & \\+ wet -> dry
happy(ann) :- wet, not dry.
(windy | cold) & happy(X) -> stays(X)
p(a, b). p(b, c).
p(A, B) & (A, b) < (B, c) & cold -> q(A)
aggregate pairs(Number N) := N = count(X: p(X, Y) & cold)
p(X, Y) & X \\= Y -> has_pairs
happy(X) & not dry -> glad
"""


@pytest.mark.parametrize(
    ("goal", "rows"),
    [
        ("wet", [()]),
        ("wet()", [()]),
        ("raining, happy(X)", [("ann",)]),
        ("dry", []),
        ("not dry", [()]),
        ("windy", []),
        ("stays(X)", [("ann",)]),
        ("q(X)", [("a",), ("b",)]),
        ("pairs(N)", [(2,)]),
        ("has_pairs & glad", [()]),
        ("findall(X, (p(X, _), cold), L)", [(["a", "b"],)]),
        ("forall(p(X, _), cold)", [()]),
    ],
)
def test_they_are_facts_premises_conclusions_and_goals(
    goal: str, rows: list[tuple[object, ...]], tmp_path: Path
) -> None:
    """With parentheses or without; from rules and from what is derived."""
    program = hapax.program(WEATHER)
    rules = hapax.parse_rules(WEATHER)
    with hapax.KnowledgeBase(tmp_path / "weather.db") as kb:
        hapax.derive(rules, kb)
        derived = hapax.query(goal, rules, kb)

    assert [tuple(row) for row in program.query(goal).rows] == rows
    assert [tuple(row) for row in derived.rows] == rows


def test_they_are_proved_and_assumed() -> None:
    """`why`, `why-not` and `assume` name them as goals do."""
    program = hapax.program(WEATHER)

    assert str(program.why("wet")).splitlines() == ["wet()  [by rule rule1]", "  raining()  [given]"]
    assert "wet() holds, but the rule requires that it does not" in str(program.why_not("dry"))
    assert program.query("stays(X), windy", assume="windy").rows == [("ann",)]


def test_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`check` has nothing to say, and statements are exported with their proofs."""
    monkeypatch.chdir(tmp_path)
    Path("weather.rules").write_text(WEATHER, "utf-8")

    assert run("check", "weather.rules").stdout == ""
    assert run("query", "glad", "weather.rules").stdout.strip() == "true"
    run("derive", "weather.rules", "--db", "weather.db")
    assert '"predicate": "has_pairs", "arguments": []' in run("export", "--statements", "--db", "weather.db").stdout
    run("kb", "verify", "--db", "weather.db")


def test_rules_are_written_and_read_again() -> None:
    """As rules and as Prolog; SQL has no table without columns, and a table of facts no row without cells."""
    rules = hapax.parse_rules("raining. wet :- raining.")

    assert hapax.parse_rules(hapax.compile_rules(rules, "rules")).rules == rules.rules
    assert "wet :-\n    raining." in hapax.compile_rules(rules)
    with pytest.raises(hapax.HapaxError, match="a table without columns"):
        hapax.compile_rules(rules, "duckdb")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="has no arguments"):
        hapax.add_facts(kb, "raining", [()], rules)


def test_words_of_other_meanings_stay() -> None:
    """A text as an argument, a word that names no predicate, and words without an arrow between them."""
    assert hapax.program("p(raining). p(X) -> q(X, wet)").query("q(X, Y)").rows == [("raining", "wet")]
    with pytest.raises(hapax.HapaxError, match="sunny is no predicate"):
        hapax.program("p(a).").query("sunny")
    with pytest.raises(hapax.HapaxError, match="HPX028"):
        hapax.parse_rules("it is raining -> wet")


def test_true_and_false_are_items() -> None:
    """Of a premise, of a case and of a negation, and of goals; a rule of `true` alone is a fact."""
    program = hapax.program(
        "q(1; 5). r(X) :- q(X), true. s(X) :- q(X), (X > 3 ; fail). t(X) :- q(X), not false. u(2) :- true."
    )
    found = {goal: program.query(goal).rows for goal in ("r(X)", "s(X)", "t(X)", "u(X)", "q(X), true", "q(X), fail")}

    assert found == {
        "r(X)": [(1,), (5,)], "s(X)": [(5,)], "t(X)": [(1,), (5,)], "u(X)": [(2,)], "q(X), true": [(1,), (5,)],
        "q(X), fail": [],
    }  # fmt: skip


def test_ranges_and_pools_have_an_end() -> None:
    """More than ten thousand numbers, ends that are no numbers, and pools in premises are refused with a code."""
    for text, code in {
        "p(1..100000).": "HPX085",
        "q(1..200, 1..200).": "HPX085",
        "p(a..b).": "HPX086",
        "p(X) & X > 1..3 -> q(X)": "HPX087",
        "given p(1..3)": "HPX088",
        "p(X) -> q(a; b)": "HPX088",
    }.items():
        with pytest.raises(hapax.RulesRejected, match=code):
            hapax.parse_rules(text)


# --- library ----------------------------------------------------------------------------------------------------------


FOLDER = Path(__file__).parents[3] / "rules"
SHIPPED = hapax.load_rules("shipped")
LARGE = hapax.load_rules(FOLDER / "library")
PAPER = {
    *("plant_by_climate", "plant_by_period", "allergy", "driving_age", "operating_age"),  # section 2.2, tables 2 and 5
    *("rule0", "rule32", "rule46", "rule88", "rule112", "rule122"),  # table 18
    *("rule172", "rule371", "rule274", "rule204"),  # table 20
}
RULES_OF_LINT = {"temporal": 81, "outcomes and effects": 132, "natural properties": 139, "locational": 65}
"""Symbolic rules by domain (paper, appendix H, table 16)."""


def orders(rules: hapax.Library, preset: str = "cheapest") -> dict[str, tuple[str, ...]]:
    """The order of the variables of each rule, by a plan for a search."""
    models = hapax.open_models("simulated", library=rules)
    with hapax.KnowledgeBase() as kb:
        planned = hapax.plan(rules, kb, models, hapax.SearchSettings(plan=preset))  # type: ignore[arg-type]
    return {rule.rule: tuple(rule.order) for rule in planned.rules}


def is_about_a_person(rule: Any, rules: hapax.Library) -> bool:
    return any(rules.is_person(variable.data_type) for variable in rule.variables if variable.name in rule.generic)


def test_the_shipped_rules_pass_their_checks() -> None:
    """One warning about two rules of the paper that contradict each other, and notes; nothing about the library."""
    found = json.loads(run("check", "--json").stdout)

    assert {fault["severity"] for fault in found} == {"warning", "note"}
    assert Counter(fault["code"] for fault in found if fault["severity"] == "warning") == {"HPX207": 1}
    assert {Path(fault["file"]).name for fault in found} == {"paper.rules"}
    assert {Path(rule.place.file).parent for rule in SHIPPED.rules} == {FOLDER}  # the library is no part of them
    assert json.loads(run("check", FOLDER / "library", "--json").stdout) == []


def test_every_rule_of_the_paper_is_there() -> None:
    """Section 2.2, tables 2, 5, 18 and 20."""
    assert {rule.name for rule in SHIPPED.rules if Path(rule.place.file).name == "paper.rules"} == PAPER


def test_the_papers_orders_hold_in_the_shipped_rules() -> None:
    """Under LINK's preset, although the library declares years functional; every rule has an order."""
    found = orders(SHIPPED, "link")

    assert {name: "".join(found[name]) for name in ("allergy", "rule0", "rule46")} == {
        "allergy": "XAZB", "rule0": "PADYC", "rule46": "AXB",
    }  # fmt: skip


def test_the_library_is_as_large_as_lint() -> None:
    """By domain, by rules about a person (at least 149, section 2.2), and with rules about things in every domain."""
    domains = Counter(str(rule.domain) for rule in LARGE.rules)
    persons = [rule for rule in LARGE.rules if is_about_a_person(rule, LARGE)]
    things = {str(rule.domain) for rule in LARGE.rules if not is_about_a_person(rule, LARGE)}

    assert {domain: domains[domain] for domain, least in RULES_OF_LINT.items() if domains[domain] < least} == {}
    assert set(domains) == things == set(RULES_OF_LINT)
    assert len(persons) >= 149
    assert len({Path(rule.place.file).name for rule in LARGE.rules}) == 4


def test_every_rule_has_a_name_of_its_own() -> None:
    """So that `--rule` chooses one rule; at least three variables and a principle make it a rule of the paper's kind."""
    names = Counter(rule.name for rule in (*LARGE.rules, *SHIPPED.rules))

    assert [name for name, count in names.items() if count > 1] == []
    assert [name for name in names if re.fullmatch(r"\w+_rule\d+", name)] == []
    assert [rule.name for rule in LARGE.rules if len(rule.variables) < 3 or rule.principle is None] == []


@pytest.mark.parametrize("rules", [SHIPPED, LARGE], ids=["shipped", "library"])
def test_every_predicate_has_three_sentences(rules: hapax.Library) -> None:
    """Affirmative, negated and question form, each with a slot for every argument, and each different."""
    for signature in rules.signatures:
        texts = signature.templates and (
            signature.templates.affirmative, signature.templates.negated, signature.templates.question,
        )  # fmt: skip
        assert texts is not None, signature.name
        assert all(texts), signature.name
        assert len(set(texts)) == 3, signature.name
        slots = [f"[{number}]" for number in range(1, len(signature.argument_types) + 1)]
        assert [text for text in texts for slot in slots if slot not in str(text)] == [], signature.name
        assert str(texts[2]).endswith("?"), signature.name


def test_the_library_says_more_than_chains_of_two_place_predicates() -> None:
    """Two persons, things as generic variables, three arguments, negation and arithmetic occur in it, at least five times."""
    computed = {signature.indicator for signature in LARGE.signatures if str(signature.kind) == "computed"}
    shapes = {
        "two persons": [rule for rule in LARGE.rules if len(rule.generic) > 1],
        "generic thing": [rule for rule in LARGE.rules if rule.generic and not is_about_a_person(rule, LARGE)],
        "nothing generic": [rule for rule in LARGE.rules if not rule.generic],
        "three arguments": [rule for rule in LARGE.rules if any(len(atom.arguments) > 2 for atom in rule.atoms)],
        "negation": [rule for rule in LARGE.rules if any(literal.negated for literal in rule.literals)],
        "comparison": [rule for rule in LARGE.rules if rule.comparisons],
        "computed": [rule for rule in LARGE.rules if computed & {atom.indicator for atom in rule.atoms}],
    }

    assert {shape: len(found) for shape, found in shapes.items() if len(found) < 5} == {}


@pytest.mark.slow
def test_every_rule_can_be_searched() -> None:
    """Each has an order that binds all its variables: no variable stands in given atoms and denials alone."""
    found = orders(LARGE)

    assert [rule.name for rule in LARGE.rules if {v.name for v in rule.searched} - set(found[rule.name])] == []


# --- faults -----------------------------------------------------------------------------------------------------------


FAULTY = """
given a(Thing)
given n(Thing, Number)
@name good
@generic none
a(Thing X) -> b(Thing X)
@name other
@generic none
b(Thing X) -> c(Thing X)
@name unbound
@generic none
a(Thing X) -> d(Thing Y)
@name needs
@generic none
d(Thing X) & a(Thing X) -> e(Thing X)
@name negates
@generic none
a(Thing X) & not d(Thing X) -> f(Thing X)
@name excepts
@generic none
a(Thing X) -> g(Thing X) unless e(Thing X)
@name cycle
@generic none
a(Thing X) & not h(Thing X) -> h(Thing X)
aggregate es(Number K) := K = count(Thing X: e(Thing X))
aggregate as(Number K) := K = count(Thing X: a(Thing X))
fact a("x")
"""
HARMLESS = """
given a(Thing)
given n(Thing, Number)
@name good
@generic none
a(Thing X) -> b(Thing X)
@name tautology
@generic none
b(Thing X) -> b(Thing X)
@name never
@generic none
n(Thing X, Number K) & K > 3 & K < 2 -> m(Thing X)
@name divides
@generic none
n(Thing X, Number K) & K / 0 > 2 -> q(Thing X)
@name top
@generic none
b(Thing X) -> t(Thing X)
fact a("x")
fact n("x", 1)
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "my.rules"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A knowledge base without facts."""
    path = tmp_path / "kb.db"
    hapax.KnowledgeBase(path).close()
    return path


def test_rules_that_conclude_nothing_change_no_answer(tmp_path: Path, database: Path) -> None:
    """They are warnings; all other rules are derived and asked for, and goals about what never holds have no answer."""
    rules = write(tmp_path, HARMLESS)
    found = {item["code"]: item["severity"] for item in json.loads(run("check", rules, "--json").stdout)}
    assert [found[code] for code in ("HPX104", "HPX108", "HPX125")] == ["warning"] * 3
    derived = run("derive", rules, "--db", database)

    assert "tautology is left out" in derived.stderr
    assert "top" in derived.stdout
    for goal, answers in (("b(X)", [{"X": "x"}]), ("t(X)", [{"X": "x"}]), ("m(X)", []), ("q(X)", [])):
        output = run("query", goal, "--rules", rules, "--db", database, "--json").stdout
        assert json.loads(output)["answers"] == answers
    assert "good" in run("why", "b(x)", "--rules", rules, "--db", database).stdout


@pytest.mark.parametrize(("goal", "answers"), [("c(X)", [{"X": "x"}]), ("as(N)", [{"N": 1}]), ("b(x)", [{}])])
def test_goals_that_need_no_faulty_rule_are_answered(
    tmp_path: Path, database: Path, goal: str, answers: list[dict[str, object]]
) -> None:
    """The faulty rule is named on stderr, and the goal has its answer."""
    result = run("query", goal, "--rules", write(tmp_path, FAULTY), "--db", database, "--json")

    assert json.loads(result.stdout)["answers"] == answers
    assert "unbound is left out" in result.stderr


@pytest.mark.parametrize("goal", ["d(X)", "e(X)", "f(X)", "g(X)", "es(N)", "a(X), \\+ e(X)"])
def test_goals_that_need_a_faulty_rule_are_refused_with_its_place(tmp_path: Path, database: Path, goal: str) -> None:
    """Directly, by a rule, a negation, an exception or an aggregate: any answer could be wrong."""
    result = invoke("query", goal, "--rules", write(tmp_path, FAULTY), "--db", database)

    assert result.exit_code != 0
    assert "12 | a(Thing X)" in result.output
    assert "rule unbound" in result.output
    assert "HPX101" in result.output
    assert "HPX109" not in result.stdout


def test_derive_leaves_out_faulty_rules_and_those_that_need_them(tmp_path: Path, database: Path) -> None:
    """The others are derived, a faulty rule that is named is refused, and so is a file of faulty rules alone."""
    rules = write(tmp_path, FAULTY)
    result = run("derive", rules, "--db", database, "--json")
    report = json.loads(result.stdout)

    assert [rule["rule"] for rule in report["rules"]] == ["other"]
    assert report["atoms"] == {"as/1": 1, "b/1": 1}
    for name in ("unbound", "needs", "negates", "excepts", "cycle", "es/1"):
        assert f"{name} is left out" in result.stderr
    assert "unbound" in invoke("derive", rules, "--rule", "needs", "--db", database).output
    assert invoke("derive", rules, "--rule", "needs", "--db", database).exit_code != 0
    alone = write(tmp_path, "@name unbound\na(Thing X) & b(Thing X, Thing Z) -> d(Thing X, Thing Y)\n")
    assert invoke("derive", alone, "--db", database).exit_code != 0


def test_a_fault_of_the_declarations_refuses_the_file(tmp_path: Path, database: Path) -> None:
    """Types in a cycle concern every rule; a line that cannot be read does, too."""
    for text in (f"{FAULTY}type Food < Meal\ntype Meal < Food\n", f"{FAULTY}a(Thing X -> b(Thing X)\n"):
        result = invoke("query", "b(X)", "--rules", write(tmp_path, text), "--db", database)

        assert result.exit_code != 0
        assert "my.rules" in result.output
