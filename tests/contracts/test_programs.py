"""Rule programs that say in their comments what follows from them: `tests/programs/*.rules`.

A file holds sections, each a program of its own under a line `%% TITLE`. Lines that begin with `%=` say what must hold:

    %= ends(a)                        an atom that follows; those named of a predicate are all that there are
    %= no ends/1                      nothing follows of this predicate
    %= goal length(L, N): N = 3       the answers of a goal, separated by `;`, or `none`
    %= refused starts(X: HPX076       the code with which a goal is refused
    %= fault HPX104 2:1-2:5           a fault of `check` with its range; where a section names any, it names all
    %= mended HPX104                  this fault is not found any more
    %= statement If ann ..., then ... a derived statement; where a section names any, it names all
    %= prolog ends(X) :- big(X).      a clause of the compiled program
    %= printed big(T X) -> ends(T X)  a line of the program as rule text
    %= order NAME: X A B              the order in which a search of the rule takes its variables

A section without faults has no errors. Atoms are compared before and after `derive`, which stores them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import hapax

PROGRAMS = Path(__file__).parent.parent / "programs"
ATOM = re.compile(r"('(?:[^'\\]|\\.)*'|\w+)\((.*)\)")


@dataclass
class Section:
    """A program, and what its comments expect, by kind."""

    file: str
    title: str
    text: str = ""
    expected: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __str__(self) -> str:
        return f"{self.file}: {self.title}"

    def expect(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        if kind in ("no", "goal", "refused", "fault", "mended", "statement", "prolog", "printed", "order"):
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
            elif section is not None and (line or section.text):
                section.text += f"{line}\n"
        if section is not None:
            yield section


SECTIONS = list(sections())


@pytest.mark.parametrize("section", SECTIONS, ids=str)
def test_a_program_has_the_outcome_that_it_names(section: Section) -> None:
    """Faults, atoms, answers, statements, Prolog text and orders are those in the comments of the program."""
    found = found_faults(section)
    if section.expected["mended"]:
        assert [fault for fault in found if fault.split()[0] in section.expected["mended"]] == []
    else:
        assert found == sorted(section.expected["fault"])
    if any(lines for kind, lines in section.expected.items() if kind not in ("fault", "mended")):
        check_outcome(section, hapax.parse_rules(section.text))


def found_faults(section: Section) -> list[str]:
    """All faults where the section names any, else the errors."""
    try:
        diagnostics = list(hapax.check_rules(hapax.parse_rules(section.text)))
    except hapax.RulesRejected as rejected:
        diagnostics = list(rejected.diagnostics)
    every = section.expected["fault"] or section.expected["mended"]
    wanted = [item for item in diagnostics if every or item.severity == "error"]
    places = [(item.code, item.place) for item in wanted]
    return sorted(f"{code} {at.line}:{at.column}-{at.end_line}:{at.end_column}" for code, at in places)


def check_outcome(section: Section, rules: hapax.Library) -> None:
    expected = section.expected
    with hapax.KnowledgeBase() as kb:
        for goal in expected["refused"]:
            check_refusal(*goal.rsplit(": ", 1), rules, kb)
        before = followed(section, rules, kb)
        derivation = hapax.derive(rules, kb)
        after = followed(section, rules, kb)
        if expected["statement"]:
            assert sorted(map(str, derivation.statements)) == sorted(expected["statement"])
        if expected["order"]:
            models = hapax.open_models("simulated", library=rules)
            orders = [f"{rule.rule}: {' '.join(rule.order)}" for rule in hapax.plan(rules, kb, models).rules]
            assert [order for order in expected["order"] if order not in orders] == []
    assert before == wanted(section)
    assert after == before
    program = " ".join(hapax.compile_rules(rules).split())
    assert [clause for clause in expected["prolog"] if " ".join(clause.split()) not in program] == []
    printed = hapax.compile_rules(rules, "rules").splitlines()
    assert [line for line in expected["printed"] if line not in printed] == []


def check_refusal(goal: str, code: str, rules: hapax.Library, kb: hapax.KnowledgeBase) -> None:
    with pytest.raises(hapax.GoalRejected) as rejected:
        hapax.query(goal, rules, kb)
    assert code in [item.code for item in rejected.value.diagnostics]


def wanted(section: Section) -> dict[str, set[str]]:
    """The expected atoms by predicate, and the expected answers by goal."""
    expected: dict[str, set[str]] = {indicator: set() for indicator in section.expected["no"]}
    for atom in section.expected["atom"]:
        name, arguments = split_atom(atom)
        expected.setdefault(f"{name}/{len(arguments)}", set()).add(f"({', '.join(arguments)})")
    for line in section.expected["goal"]:
        goal, _, answers = line.rpartition(": ")
        expected[goal] = set() if answers == "none" else {answer.strip() for answer in answers.split(";")}
    return expected


def followed(section: Section, rules: hapax.Library, kb: hapax.KnowledgeBase) -> dict[str, set[str]]:
    """The atoms that hold of each predicate that the section names, and the answers of its goals."""
    found = {}
    for asked in wanted(section):
        name, _, arity = asked.rpartition("/")
        if name and arity.isdecimal():
            names = [f"A{number}" for number in range(int(arity))]
            answers = hapax.query(f"{name}({', '.join(names)})", rules, kb)
            found[asked] = {f"({', '.join(shown(answer[name]) for name in names)})" for answer in answers}
        else:
            answers = hapax.query(asked, rules, kb)
            found[asked] = {
                ", ".join(f"{name} = {shown(value)}" for name, value in answer.items()) or "yes" for answer in answers
            }
    return found


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


@pytest.mark.parametrize("line", (PROGRAMS / "identity.rules").read_text("utf-8").splitlines())
def test_a_printed_rule_is_read_as_the_same_rule(line: str) -> None:
    """Rule text that Hapax prints gives the same rule again; the printed rules of the LINK paper are among them."""
    rules = hapax.parse_rules(line)
    printed = hapax.compile_rules(rules, "rules")

    again = hapax.parse_rules(printed)

    assert again.rules == rules.rules
    assert hapax.compile_rules(again, "rules") == printed
