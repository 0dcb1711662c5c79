"""Rule programs that say in their comments what follows from them: `tests/programs/*.rules`.

A file holds sections, each a program of its own under a line `%% TITLE`. Lines that begin with `%=` say what must hold:

    %= ends(a)                        an atom that follows; those named of a predicate are all that there are
    %= no ends/1                      nothing follows of this predicate
    %= goal length(L, N): N = 3       the answers of a goal, separated by `;`, or `none`
    %= refused starts(X: HPX012       the code with which a goal is refused
    %= fault HPX104 2:1-2:5           a fault of `check` with its range; where a section names any, it names all
    %= finds HPX104 2                 a fault of `check` with its line, as often as it stands here; others may be there, too
    %= mended HPX104                  this fault is not found, or not any more
    %= statement If ann ..., then ... a derived statement; where a section names any, it names all
    %= prolog ends(X) :- big(X).      a clause of the compiled program
    %= printed big(T X) -> ends(T X)  a line of the program as rule text
    %= probability ends(a): 0.3       the probability of an atom
    %= order NAME: X A B              the order in which a search of the rule takes its variables

What follows a line `%+ NAME` is another file of the section, beside the first; a fault in it has its name before the place.

A section without faults has no errors. Atoms are compared before and after `derive`, which stores them; Prolog alone
derives the same statements, and the program says the same after it is printed.
"""

from __future__ import annotations

import csv
import json
import random
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from cli_fixture import invoke

import hapax

PROGRAMS = Path(__file__).parents[2] / "programs"
KINDS = ("no", "goal", "refused", "fault", "finds", "mended", "statement", "prolog", "printed", "order", "probability")
ABOUT_TEXT = ("fault", "finds", "mended")
ATOM = re.compile(r"('(?:[^'\\]|\\.)*'|\w+)\((.*)\)")


@dataclass
class Section:
    """A program, and what its comments expect, by kind."""

    file: str
    title: str
    text: str = ""
    others: dict[str, str] = field(default_factory=dict)
    expected: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"

    def expect(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind in KINDS:
            self.expected[kind].append(rest.strip())
        else:
            assert ATOM.fullmatch(line), f"{self}: cannot read the line %= {line}"
            self.expected["atom"].append(line)


def sections() -> Iterable[Section]:
    for path in sorted(PROGRAMS.glob("*.rules")):
        section = None
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("%% "):
                if section is not None:
                    yield section
                section = Section(path.stem, line[3:])
            elif line.startswith("%= "):
                assert section is not None, f"{path.name} has an expectation before its first section"
                section.expect(line[3:].strip())
            elif line.startswith("%+ "):
                assert section is not None
                section.others[line[3:].strip()] = ""
            elif section is not None and section.others:
                section.others[list(section.others)[-1]] += f"{line}\n"
            elif section is not None and (line or section.text):
                section.text += f"{line}\n"
        if section is not None:
            yield section


SECTIONS = list(sections())


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_a_program_has_the_outcome_that_it_names(section: Section, tmp_path: Path) -> None:
    """Faults, atoms, answers, statements, Prolog text and orders are those in the comments of the program."""
    expected = section.expected
    rules, found = read_and_checked(section, tmp_path)
    for line in set(expected["finds"]):
        lines = [f"{code} {at.line}" for code, at, _ in found]
        assert lines.count(line) == expected["finds"].count(line), (line, lines)
    if expected["mended"] or expected["finds"]:
        assert [code for code, _, _ in found if code in expected["mended"]] == []
    else:
        wanted = [fault for fault in found if expected["fault"] or fault[2] == "error"]
        assert sorted(f"{code} {at_text(section, at)}" for code, at, _ in wanted) == sorted(expected["fault"])
    if rules is not None:
        check_printing(section, rules)
    if any(lines for kind, lines in expected.items() if kind not in ABOUT_TEXT):
        assert rules is not None, found
        check_outcome(section, rules)


def read(section: Section, folder: Path) -> hapax.Library:
    if not section.others:
        return hapax.parse_rules(section.text)
    for name, text in {"main.rules": section.text, **section.others}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return hapax.load_rules(folder / "main.rules")


def read_and_checked(section: Section, folder: Path) -> tuple[hapax.Library | None, list[tuple[str, Any, str]]]:
    """The rules, if they can be read, and code, place and severity of each fault."""
    rules = None
    try:
        rules = read(section, folder)
        diagnostics = list(hapax.check_rules(rules))
    except hapax.RulesRejected as rejected:
        diagnostics = list(rejected.diagnostics)
    return rules, [(item.code, item.place, str(item.severity)) for item in diagnostics]


def at_text(section: Section, place: Any) -> str:
    name = Path(place.file).name
    prefix = f"{name}:" if section.others and name != "main.rules" else ""
    return f"{prefix}{place.line}:{place.column}-{place.end_line}:{place.end_column}"


def check_printing(section: Section, rules: hapax.Library) -> None:
    """Printed as rule text, the program is the same."""
    printed = hapax.compile_rules(rules, "rules")
    again = hapax.parse_rules(printed)
    assert (again.rules, again.facts, again.examples) == (rules.rules, rules.facts, rules.examples)
    assert hapax.compile_rules(again, "rules") == printed


def check_outcome(section: Section, rules: hapax.Library) -> None:
    expected = section.expected
    if any(lines for kind, lines in expected.items() if kind not in (*ABOUT_TEXT, "prolog", "printed")):
        check_conclusions(section, rules)
    program = " ".join(hapax.compile_rules(rules).split()) if expected["prolog"] else ""
    assert [clause for clause in expected["prolog"] if " ".join(clause.split()) not in program] == []
    printed = hapax.compile_rules(rules, "rules").splitlines()
    assert [line for line in expected["printed"] if line not in printed] == []


def check_conclusions(section: Section, rules: hapax.Library) -> None:
    expected = section.expected
    if expected["probability"]:
        check_probabilities(section, rules)
        return
    with hapax.KnowledgeBase() as kb:
        for goal in expected["refused"]:
            check_refusal(*goal.rsplit(": ", 1), rules, kb)
        for goal in expected["goal"]:
            check_goal(goal, rules, kb)
        before = followed(section, rules, kb)
        derivation = hapax.derive(rules, kb)
        after = followed(section, rules, kb)
        statements = sorted(map(str, derivation.statements))
        if expected["statement"]:
            assert statements == sorted(expected["statement"])
        if expected["order"]:
            models = hapax.open_models("simulated", library=rules)
            orders = [f"{rule.rule}: {' '.join(rule.order)}" for rule in hapax.plan(rules, kb, models).rules]
            assert [order for order in expected["order"] if order not in orders] == []
    assert before == wanted(section)
    assert after == before


def probabilities(section: Section) -> dict[str, float]:
    pairs = (line.rsplit(": ", 1) for line in section.expected["probability"])
    return {atom: float(value) for atom, value in pairs}


def check_probabilities(section: Section, rules: hapax.Library) -> None:
    """A conclusion with a probability is no statement, so that `derive` refuses the rules."""
    program = hapax.program(section.text)
    for atom, wanted in probabilities(section).items():
        found = program.query(atom).rows
        assert found or wanted == 0, atom
        assert found == [] or found[0] == pytest.approx((wanted,)), atom
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="has a probability"):
        hapax.derive(rules, kb)


@pytest.mark.parametrize("section", [section for section in SECTIONS if section.expected["probability"]], ids=str)
def test_problog_has_the_probabilities(section: Section) -> None:
    """The same text in ProbLog 2, with a query for each atom."""
    problog = pytest.importorskip("problog")
    expected = probabilities(section)
    program = problog.program.PrologString(section.text + "".join(f"query({atom}).\n" for atom in expected))

    found = problog.get_evaluatable().create_from(program).evaluate()

    assert {re.sub(r"\s", "", str(atom)): value for atom, value in found.items()} == pytest.approx(expected)


def check_refusal(goal: str, code: str, rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    with pytest.raises(hapax.GoalRejected) as rejected:
        hapax.query(goal, rules, kb)
    assert code in [item.code for item in rejected.value.diagnostics]


def wanted(section: Section) -> dict[str, set[str]]:
    """The expected atoms by predicate."""
    expected: dict[str, set[str]] = {indicator: set() for indicator in section.expected["no"]}
    for atom in section.expected["atom"]:
        name, arguments = split_atom(atom)
        expected.setdefault(f"{name}/{len(arguments)}", set()).add(f"({', '.join(arguments)})")
    return expected


def followed(section: Section, rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, set[str]]:
    """The atoms that hold of each predicate that the section names, by one goal."""
    indicators, goals = list(wanted(section)), []
    for place, indicator in enumerate(indicators):
        name, _, arity = indicator.rpartition("/")
        names = ", ".join(f"A{number}" for number in range(int(arity)))
        goals.append(f"findall([{names}], {name}({names}), L{place})")
    if not goals:
        return {}
    (row,) = hapax.query(", ".join(goals), rules, kb).rows
    return {
        indicator: {f"({', '.join(map(shown, arguments))})" for arguments in found}
        for indicator, found in zip(indicators, row, strict=True)
    }


def check_goal(line: str, rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    goal, _, answers = line.rpartition(": ")
    expected = set() if answers == "none" else {answer.strip() for answer in answers.split(";")}
    found = {
        ", ".join(f"{name} = {shown(value)}" for name, value in answer.items()) or "yes"
        for answer in hapax.query(goal, rules, kb)
    }
    assert found == expected, goal


def split_atom(atom: str) -> tuple[str, list[str]]:
    """Name and arguments; a comma in a quoted argument does not part them."""
    match = ATOM.fullmatch(atom)
    assert match
    arguments = re.findall(r"'(?:[^'\\]|\\.)*'|[^,\s][^,]*", match[2])
    return match[1], [argument.strip() for argument in arguments]


def shown(value: object) -> str:
    """A value as Prolog writes it: texts that are no plain words in quotation marks."""
    if isinstance(value, str):
        return (
            value if re.fullmatch(r"[a-z]\w*", value) else "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        )
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value))}]"
    return str(value)


ROOT = Path(__file__).parents[3]
TABLE = re.search(r"\n\| construct \|.*?\n\n", (ROOT / "docs" / "language.md").read_text("utf-8"), re.DOTALL)
CONSTRUCTS_SECTIONS = dict(
    section.split("\n", 1)
    for section in (ROOT / "tests" / "programs" / "constructs.rules").read_text("utf-8").split("%% ")[1:]
)
ELSEWHERE = {"probabilities": "test_programs.py", "proofs, reasons why not, withdrawal": "test_answers_out.py"}
"""Constructs whose outcome is no set of atoms, with the tests that have it."""


def expected(section: str) -> set[str]:
    """The atoms that the section says follow, without blanks and quotation marks."""
    return {plain(line) for line in re.findall(r"^%= (\w+\(.*\))$", section, re.MULTILINE)}


def plain(atom: str) -> str:
    return re.sub(r"[\s'\"]", "", atom)


def by_clingo(program: str, _: set[str], __: Path) -> set[str] | None:
    """The atoms of the one model; None if there is none."""
    control = pytest.importorskip("clingo").Control(["--warn=none"])
    control.add("base", [], program)
    control.ground([("base", [])])
    models: list[set[str]] = []
    control.solve(on_model=lambda model: models.append(set(map(str, model.symbols(atoms=True)))))
    return models[0] if models else None


def by_swipl(program: str, indicators: set[str], folder: Path) -> set[str]:
    """The atoms of the predicates."""
    (folder / "program.pl").write_text(f":- set_prolog_flag(prefer_rationals, true).\n{program}", "utf-8")
    goals = []
    for indicator in indicators:
        name, _, arity = indicator.partition("/")
        atom = f"{name}({', '.join('ABCDEFG'[: int(arity)])})"
        goals.append(f"forall({atom}, (print({atom}), nl))")
    command = ["swipl", "-q", "-g", ", ".join([*goals, "halt"]), folder / "program.pl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.splitlines())


def by_duckdb(program: str, _: set[str], __: Path) -> set[str]:
    """The texts that the SQL gives."""
    return {text for (text,) in pytest.importorskip("duckdb").sql(program).fetchall()}


ENGINES = {"clingo": by_clingo, "swipl": by_swipl, "duckdb": by_duckdb}
COMPARED = {
    title: engine[1]
    for title, text in CONSTRUCTS_SECTIONS.items()
    if (engine := re.search(r"second engine: (\w+)", text))
}


@pytest.mark.parametrize("title", COMPARED)
def test_a_second_engine_has_the_outcome(title: str, tmp_path: Path) -> None:
    """The same program in clingo, SWI-Prolog or DuckDB gives the atoms that the section expects, or no model."""
    section = CONSTRUCTS_SECTIONS[title]
    program = "\n".join(re.findall(r"^%: (.*)$", section, re.MULTILINE))
    atoms = expected(section)
    indicators = {f"{atom.partition('(')[0]}/{atom.count(',') + 1}" for atom in atoms}

    found = ENGINES[COMPARED[title]](program, indicators, tmp_path)

    if not atoms:
        assert "%= finds HPX" in section
        assert found is None
    else:
        assert found is not None
        names = {indicator.partition("/")[0] for indicator in indicators}
        assert {plain(atom) for atom in found if atom.partition("(")[0] in names} == atoms


def test_each_row_of_the_table_has_a_program() -> None:
    """The sections are named like the rows."""
    assert TABLE is not None
    rows = {line.split("|")[1].strip().replace("`", "") for line in TABLE[0].strip().splitlines()[2:]}

    assert rows == {*COMPARED, *ELSEWHERE}
    assert all([*(ROOT / "tests" / "contracts").rglob(name)] for name in ELSEWHERE.values())


CLASSICS = Path(__file__).parents[3] / "examples" / "classics"
CLASSICS_PROGRAMS = {path.stem: path for path in sorted(CLASSICS.glob("*.rules"))}
ASKED = {
    name: found[1]
    for name, path in CLASSICS_PROGRAMS.items()
    if (found := re.search(r"% ask: (\w+/\d)", path.read_text("utf-8")))
}
REFUSED = {
    name: found[1]
    for name, path in CLASSICS_PROGRAMS.items()
    if (found := re.search(r"% refused: (HPX\d+)", path.read_text("utf-8")))
}


def second_engine(name: str, indicator: str) -> set[str]:
    """The atoms of the predicate by SWI-Prolog, if the program has a file for it, else by clingo."""
    predicate, _, arity = indicator.partition("/")
    prolog = CLASSICS / f"{name}.pl"
    if prolog.exists():
        atom = f"{predicate}({', '.join('ABCD'[: int(arity)])})"
        goal = f"forall({atom}, (write_canonical({atom}), nl)), halt"
        done = subprocess.run(
            ["swipl", "-q", "-g", goal, prolog], capture_output=True, text=True, check=True, timeout=60
        )
        return set(done.stdout.split())
    clingo = pytest.importorskip("clingo")
    control = clingo.Control(["--warn=none"])
    control.add("base", [], CLASSICS_PROGRAMS[name].read_text("utf-8"))
    control.ground([("base", [])])
    atoms = set[str]()
    control.solve(
        on_model=lambda model: atoms.update(
            str(symbol)
            for symbol in model.symbols(atoms=True)
            if (symbol.name, len(symbol.arguments)) == (predicate, int(arity))
        )
    )
    return atoms


def by_hapax(name: str, indicator: str) -> set[str]:
    predicate, _, arity = indicator.partition("/")
    program = hapax.program(CLASSICS_PROGRAMS[name].read_text("utf-8"))
    rows = program.query(f"{predicate}({', '.join('ABCD'[: int(arity)])})").rows
    return {f"{predicate}({','.join(map(str, row))})" for row in rows}


def test_there_are_twenty_classics() -> None:
    """Each is asked or refused."""
    assert len(CLASSICS_PROGRAMS) >= 20
    assert {*ASKED, *REFUSED} == set(CLASSICS_PROGRAMS)


@pytest.mark.parametrize("name", ASKED)
def test_a_classic_has_the_answers_of_a_second_engine(name: str) -> None:
    """They stand in `answers.json`, and `check` has nothing to say."""
    answers = json.loads((CLASSICS / "answers.json").read_text("utf-8"))

    assert answers[name] == sorted(second_engine(name, ASKED[name]))
    assert by_hapax(name, ASKED[name]) == set(answers[name])
    assert invoke("check", str(CLASSICS_PROGRAMS[name])).stdout == ""


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_beyond_the_language_is_refused_with_its_reason(name: str) -> None:
    """By a code that `explain` explains."""
    refused = invoke("check", str(CLASSICS_PROGRAMS[name]))

    assert refused.exit_code == 4
    assert REFUSED[name] in refused.stdout


FAMILY = """
parent(ann, bob).
parent(bob, carol).
ancestor(X, Y) :- parent(X, Y).
ancestor(X, Z) :- parent(X, Y), ancestor(Y, Z).
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the file of the family."""
    monkeypatch.chdir(tmp_path)
    Path("family.rules").write_text(FAMILY, "utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_goal_needs_no_knowledge_base(folder: Path) -> None:
    """Facts and rules of the file suffice, nothing is written, and `check` has nothing to say."""
    asked = invoke("query", "ancestor(ann, X)", "family.rules")

    assert asked.stdout.split() == ["X", "bob", "carol"]
    assert invoke("check", "family.rules").stdout == ""
    assert [path.name for path in folder.iterdir()] == ["family.rules"]


@pytest.mark.usefixtures("folder")
def test_a_named_knowledge_base_keeps_what_is_derived() -> None:
    """By `query` and by `derive`; later goals need no rules."""
    invoke("query", "ancestor(ann, X)", "family.rules", "--db", "asked.db")
    invoke("derive", "family.rules", "--db", "derived.db")

    for database in ("asked.db", "derived.db"):
        assert invoke("query", "ancestor(X, carol)", "--db", database).stdout.split() == ["X", "ann", "bob"]


@pytest.mark.usefixtures("folder")
def test_proofs_need_no_knowledge_base_either() -> None:
    """`why` draws the proof, `why-not` says what is missing; names that are no verbs make no sentences."""
    why = invoke("why", "ancestor(ann, carol)", "family.rules").stdout
    why_not = invoke("why-not", "ancestor(carol, ann)", "family.rules").stdout

    assert why.splitlines()[:2] == [
        'ancestor("ann", "carol")  [by rule rule2]',
        '  parent("ann", "bob")  [given]',
    ]
    assert 'nothing makes parent("carol", "ann") hold' in why_not


@pytest.mark.usefixtures("folder")
def test_a_sentence_is_made_of_a_name_that_is_one() -> None:
    """`is_parent_of` reads as a sentence."""
    program = hapax.program("is_parent_of(ann, bob). is_parent_of(X, Y) -> is_child_of(Y, X)")

    assert "bob is a child of ann" in str(program.why("is_child_of(bob, ann)"))


@pytest.mark.usefixtures("folder")
def test_a_program_is_asked_in_python() -> None:
    """As a text, without a file."""
    program = hapax.program(FAMILY)

    assert program.query("ancestor(ann, X)").rows == [("bob",), ("carol",)]
    assert "by rule rule1" in str(program.why("ancestor(ann, bob)"))
    assert "does not hold" in str(program.why_not("ancestor(bob, ann)"))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("goal", "notes"),
    [
        ("plays_at(Ajax, S)", ["Ajax is a variable here; the stored name is written 'Ajax'."]),
        ("plays_at('Ajax', S)", []),
        ("plays_at(X, S)", []),
        ("plays_at(Ajax, S) & plays_at(Ajax, T)", []),
    ],
)
def test_a_variable_that_is_spelt_like_a_value_is_noted(goal: str, notes: list[str]) -> None:
    """In facts of the rules and in stored ones, if the word occurs once."""
    facts = 'plays_at("Ajax", arena). plays_at("X", park).'
    stored, rules = hapax.KnowledgeBase(), hapax.parse_rules("given plays_at(Club, Ground)")
    hapax.add_facts(stored, "plays_at", [("Ajax", "arena"), ("X", "park")], rules)

    assert hapax.program(facts).query(goal).notes == notes
    assert hapax.query(goal, rules, stored).notes == notes


@pytest.mark.usefixtures("folder")
def test_answers_are_sorted_limited_and_written() -> None:
    """The limit counts behind the order."""
    Path("trips.rules").write_text("trip(a, 5). trip(b, 70). trip(c, 9). trip(d, 'n/a').", "utf-8")
    printed = invoke("query", "trip(I, T)", "trips.rules", "--sort=-T", "--limit", "2", "--csv").stdout
    invoke("query", "trip(I, T) & T < 60", "trips.rules", "--sort", "T", "-o", "short.csv")
    invoke("query", "trip(I, T) & T < 60", "trips.rules", "-o", "short.json")
    refused = invoke("query", "trip(I, T)", "trips.rules", "--sort", "Z")

    assert printed.splitlines() == ["I,T", "d,n/a", "b,70"]
    with Path("short.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["I", "T"], ["a", "5"], ["c", "9"]]
    assert json.loads(Path("short.json").read_text("utf-8"))["answers"] == [{"I": "a", "T": 5}, {"I": "c", "T": 9}]
    assert refused.exit_code == 1
    assert "Sort by I or T" in refused.output


@pytest.mark.usefixtures("folder")
def test_warnings_about_searches_come_with_searches_alone() -> None:
    """A rule over a table needs no third variable, no `@generic` and no sentences; one that a model serves does."""
    rule = "delayed(Flight F, Minutes D) & D > 60 -> is_late(Flight F)"
    table = "type Minutes < Number\ngiven delayed(Flight, Minutes)\nderived is_late(Flight)\n"
    asked = "type Minutes < Number\noracle delayed(Flight, Minutes)\n"

    assert hapax.check_rules(hapax.parse_rules(table + rule)) == ()
    codes = {found.code for found in hapax.check_rules(hapax.parse_rules(asked + rule))}
    assert {"HPX105", "HPX201", "HPX202"} <= codes
    assert not any(found.severity == "error" for found in hapax.check_rules(hapax.parse_rules(asked + rule)))


SHORTEST = """
given road(Place, Place, Number)
aggregate d(Place A, Place B, Number K) :=
  K = min(Number N: road(A, B, N) | d(A, Place C, Number L) & road(C, B, Number M) & N = L + M)
@generic none
d(Place A, Place B, Number K) & K =< 9 -> is_near(Place A, Place B)
"""
PARTS = """
given part(Thing, Thing, Number)
aggregate total(Thing A, Thing C, Number K) :=
  K = sum(Number N: part(A, C, N) | part(A, Thing B, Number M) & total(B, C, Number L) & N = M * L)
"""


def loaded(rules: hapax.Library, predicate: str, rows: list[tuple[str, str, int]]) -> hapax.KnowledgeBase:
    kb = hapax.KnowledgeBase()
    hapax.add_facts(kb, predicate, rows, rules)
    return kb


def by_prolog(rules: hapax.Library, rows: list[tuple[str, str, int]], fact: str, goal: str, folder: Path) -> set[str]:
    """The answers of a goal, as SWI-Prolog writes them when it consults the compiled rules."""
    program, facts = folder / "rules.pl", folder / "facts.pl"
    program.write_text(hapax.compile_rules(rules), "utf-8")
    facts.write_text("".join(f":- assertz(hapax:{fact}({a}, {b}, {n})).\n" for a, b, n in rows), "utf-8")
    show = f"forall((Goal = {goal}, hapax:Goal), (writeq(Goal), nl)), halt"
    command = ["swipl", "-q", "-f", "none", "-g", show, str(program), str(facts)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stderr == ""
    return set(ended.stdout.split())


@pytest.mark.parametrize("seed", range(6))
def test_shortest_paths_are_those_of_dijkstra_and_of_prolog(seed: int, tmp_path: Path) -> None:
    """By goal, by part of the arguments, by derivation, and after a change of facts; on cyclic graphs."""
    draw = random.Random(seed)
    pairs = {(f"p{draw.randrange(9)}", f"p{draw.randrange(9)}") for _ in range(20)}
    roads = [(a, b, draw.choice((0, 1, 2, 5))) for a, b in sorted(pairs) if a != b]
    rules = hapax.parse_rules(SHORTEST)
    with loaded(rules, "road", roads) as kb:
        for edges in (roads, roads[:-3]):
            expected = shortest(edges)
            by_goal = set(hapax.query("d(A, B, K)", rules, kb).rows)
            start = edges[0][0]
            from_one = {(start, *row) for row in hapax.query(f"d({start}, B, K)", rules, kb).rows}
            report = hapax.derive(rules, kb).report
            stored = set(hapax.query("d(A, B, K)", rules, kb).rows)
            near = [row for row in expected if row[2] <= 9]

            assert by_goal == stored == expected
            assert from_one == {row for row in expected if row[0] == start}
            assert report.rules[0].statements == len(near)
            for a, b, k in sorted(expected)[:5]:
                assert f"{k}" in str(hapax.why(f"d({a}, {b}, {k})", rules, kb))
            for a, b, n in roads[-3:] if edges is roads else ():
                hapax.retract(f"road({a}, {b}, {n})", rules, kb, reason="closed")

    assert by_prolog(rules, roads, "road", "d(_, _, _)", tmp_path) == {f"d({a},{b},{k})" for a, b, k in shortest(roads)}


def shortest(roads: list[tuple[str, str, int]]) -> set[tuple[str, str, int]]:
    """The least sums of one road and more."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(roads)
    lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
    found: dict[tuple[str, str], int] = {}
    for a, b, n in roads:
        for c, rest in lengths[b].items():
            found[a, c] = min(n + rest, found.get((a, c), n + rest))
    return {(a, c, k) for (a, c), k in found.items()}


@pytest.mark.parametrize("seed", range(4))
def test_parts_are_counted_once_for_each_path(seed: int, tmp_path: Path) -> None:
    """By goal, by derivation and in Prolog; on graphs without a cycle."""
    draw = random.Random(seed)
    pairs = {tuple(sorted(draw.sample(range(8), 2))) for _ in range(14)}
    parts = [(f"t{a}", f"t{b}", draw.choice((1, 2, 2, 3))) for a, b in sorted(pairs)]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(parts)
    totals: dict[tuple[str, str], int] = {}
    for a in graph:
        for b in graph:
            for path in nx.all_simple_paths(graph, a, b) if a != b else ():
                product = 1
                for step in pairwise(path):
                    product *= graph.edges[step]["weight"]
                totals[a, b] = totals.get((a, b), 0) + product
    expected = {(a, b, n) for (a, b), n in totals.items()}
    rules = hapax.parse_rules(PARTS)
    with loaded(rules, "part", parts) as kb:
        by_goal = set(hapax.query("total(A, B, K)", rules, kb).rows)
        of_one = {("t0", *row) for row in hapax.query("total(t0, B, K)", rules, kb).rows}
        hapax.derive(rules, kb)
        stored = set(hapax.query("total(A, B, K)", rules, kb).rows)

    assert by_goal == stored == expected
    assert of_one == {row for row in expected if row[0] == "t0"}
    assert by_prolog(rules, parts, "part", "total(_, _, _)", tmp_path) == {
        f"total({a},{b},{n})" for a, b, n in expected
    }


@pytest.mark.parametrize("ask", [lambda rules, kb: hapax.query("d(A, B, K)", rules, kb), hapax.derive])
def test_a_value_that_falls_for_ever_ends_with_the_reason(ask: object) -> None:
    """A cycle whose sum is negative has no shortest path; nothing hangs."""
    rules = hapax.parse_rules(SHORTEST)
    with loaded(rules, "road", [("a", "b", 1), ("b", "a", -2)]) as kb, pytest.raises(hapax.HapaxError, match="cycle"):
        ask(rules, kb)  # type: ignore[operator]


def test_a_thing_that_is_a_part_of_itself_is_told() -> None:
    """A sum over a cycle has no value."""
    rules = hapax.parse_rules(PARTS)
    rows = [("a", "b", 1), ("b", "a", 1)]
    with loaded(rules, "part", rows) as kb, pytest.raises(hapax.HapaxError, match="part of itself along a cycle"):
        hapax.query("total(A, B, K)", rules, kb)


def test_quarters_and_negative_steps_without_a_cycle_are_exact() -> None:
    """Values may fall, and need not be whole."""
    rules = hapax.parse_rules(SHORTEST)
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "road", [("a", "b", 3), ("b", "c", -1), ("a", "c", 2.5)], rules)
        found = hapax.query("d(a, c, K)", rules, kb).rows

    assert found == [(2,)]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "spark"])
def test_databases_refuse_what_they_cannot_run(dialect: str) -> None:
    """WITH RECURSIVE has no smallest value of the rows so far."""
    with pytest.raises(hapax.HapaxError, match=r"d/3: it is an aggregate that depends on itself"):
        hapax.compile_rules(hapax.parse_rules(SHORTEST), dialect)


@pytest.mark.usefixtures("folder")
def test_a_file_asks_goals(tmp_path: Path) -> None:
    """`query` answers them in order, with the options of a goal; a file without one is an error of usage."""
    text = "parent(ann, bob). parent(bob, carl).\nold(X) :- parent(X, _).\n?- old(X).\n?- findall(X, old(X), L),\n  length(L, N)."
    asking, silent = tmp_path / "asking.rules", tmp_path / "silent.rules"
    asking.write_text(text, "utf-8")
    silent.write_text("parent(ann, bob).", "utf-8")
    found = invoke("query", str(asking), "--json").stdout.splitlines()

    assert [json.loads(line)["answers"] for line in found] == [
        [{"X": "ann"}, {"X": "bob"}],
        [{"L": ["ann", "bob"], "N": 2}],
    ]
    assert invoke("query", str(silent)).exit_code == 2
    assert invoke("query", str(asking), "-o", str(tmp_path / "out.csv")).exit_code == 2
    assert "?- old(X)" in invoke("rules", "compile", str(asking), "--to", "rules").stdout
