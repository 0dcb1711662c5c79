"""Rule programs that say in their comments what follows from them: `tests/programs/*.rules`.

A file holds sections, each a program of its own under a line `%% TITLE`. Lines that begin with `%=` say what must hold:

    %= ends(a)                        an atom that follows; those named of a predicate are all that there are
    %= no ends/1                      nothing follows of this predicate
    %= goal length(L, N): N = 3       the answers of a goal, separated by `;`, or `none`
    %= refused starts(X: HPX076       the code with which a goal is refused
    %= fault HPX104 2:1-2:5           a fault of `check` with its range; where a section names any, it names all
    %= finds HPX104 2                 a fault of `check` with its line, as often as it stands here; others may be there, too
    %= mended HPX104                  this fault is not found, or not any more
    %= statement If ann ..., then ... a derived statement; where a section names any, it names all
    %= prolog ends(X) :- big(X).      a clause of the compiled program
    %= printed big(T X) -> ends(T X)  a line of the program as rule text
    %= order NAME: X A B              the order in which a search of the rule takes its variables

What follows a line `%+ NAME` is another file of the section, beside the first; a fault in it has its name before the place.

A section without faults has no errors. Atoms are compared before and after `derive`, which stores them; Prolog alone
derives the same statements, and the program says the same after it is printed, and after it is laid out by `fmt`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import hapax

PROGRAMS = Path(__file__).parent.parent / "programs"
KINDS = ("no", "goal", "refused", "fault", "finds", "mended", "statement", "prolog", "printed", "order")
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
    """Printed as rule text, and laid out, the program is the same."""
    printed = hapax.compile_rules(rules, "rules")
    again = hapax.parse_rules(printed)
    assert (again.rules, again.facts, again.examples) == (rules.rules, rules.facts, rules.examples)
    assert hapax.compile_rules(again, "rules") == printed
    laid_out = hapax.format_rules(section.text)
    assert hapax.format_rules(laid_out) == laid_out
    if not section.others:
        assert hapax.parse_rules(laid_out) == rules


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
