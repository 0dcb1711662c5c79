"""Proofs, exports, answers of goals and reasons why not of programs of every kind, as texts in `tests/golden/`."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import product

import pytest
from derived_programs import FACTS, PROGRAMS, stored, without_generic
from golden_fixture import compared
from kb_contents import checksum

import hapax
from hapax.engine.explain import Story, story_text, why, why_not
from hapax.engine.inference.bulk_derivation import derive_all
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.statement_export import export_statements
from hapax.engine.inference.theory import Theory
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.kb.derived_statements import derived_statements
from hapax.kb.records import DenialRecord
from hapax.kb.store import KnowledgeBase

SHOWN = 4
"""Stories of a program that are shown whole; of the others the file has the first line and a checksum."""

ASKED = 12
"""Goals and atoms that are asked about in each program."""

DERIVABLE = sorted({*PROGRAMS} - {"cycle"})
CHECKED = sorted({*DERIVABLE} - {"aggregates", "arithmetic", "texts", "wide"})
"""The programs in which `hapax check` finds no error."""


POOLS: Mapping[str, Sequence[Value]] = {
    "Place": [f"p{number}" for number in range(8)],
    "Person": ["ann", "bob", "cid", 'c"d'],
    "Number": [0, 100, 200, 300, Decimal("0.5"), Decimal("33.3")],
    "Year": [1900, 1901, 1899],
}


def asked_atoms(library: Library) -> list[Atom]:
    """Atoms of the concluded predicates over constants of their types, drawn by a seed."""
    chance = random.Random(1)
    heads = {rule.conclusion.atom.indicator: rule.conclusion.atom for rule in library.rules}
    atoms = []
    for head in heads.values():
        pools = [
            POOLS.get(term.data_type, POOLS["Number"]) if isinstance(term, Variable) else [term.value]
            for term in head.arguments
        ]
        ways = list(product(*pools))
        atoms += [Atom(head.predicate, tuple(map(Constant, way))) for way in chance.sample(ways, min(ASKED, len(ways)))]
    return chance.sample(atoms, min(ASKED, len(atoms)))


def told(title: str, number: int, text: str) -> Iterator[str]:
    yield f"# {title}: {checksum([text])}"
    yield from (f"  {line}" for line in (text.splitlines() if number < SHOWN else text.splitlines()[:1]))


def attempt(made: Callable[[], object]) -> str:
    """The result as text, or the error that refuses it."""
    try:
        return str(made())
    except HapaxError as refusal:
        return f"refused: {refusal}"


def story(asked: Callable[..., Story], theory: Theory, atom: Atom, prolog: PrologSession) -> str:
    return story_text(asked(theory, str(atom), prolog))


@pytest.mark.parametrize("name", DERIVABLE)
def test_programs_are_told_as_read_over(name: str, prolog: PrologSession) -> None:
    """Exported statements, proofs of statements and atoms, and the reasons why atoms do not hold are recorded."""
    library = parse_library([("f.rules", without_generic(name))])
    with KnowledgeBase() as kb:
        stored(kb, *FACTS)
        kb.add_denials([DenialRecord("closed", ("p1",), 0.01)])
        derive_all(kb, library, library.rules, "auto", prolog)
        theory = Theory(library, kb)
        stream = io.StringIO()
        report = export_statements(kb, library, stream)
        exported = stream.getvalue().splitlines()
        lines = [f"{report}, {checksum(exported)}", *exported[:2]]
        for number, statement in enumerate(sorted(derived_statements(kb), key=lambda item: item.id)[:ASKED]):
            lines += told(statement.text, number, story_text(why(theory, statement.id, prolog)))
        for number, atom in enumerate(asked_atoms(library)):
            for asked in (why, why_not):
                lines += told(f"{asked.__name__} {atom}", number, attempt(partial(story, asked, theory, atom, prolog)))
    compared(f"programs/{name}", "\n".join(lines) + "\n")


def goals(rules: Library, kb: hapax.KnowledgeBase) -> Iterator[str]:
    """Goals of each concluded predicate: open, and with some or all arguments of its first and last answer."""
    heads = {rule.conclusion.atom.indicator: rule.conclusion.atom for rule in rules.rules}
    for head in list(heads.values())[:8]:
        names = [f"V{place}" for place in range(len(head.arguments))]
        yield f"{head.predicate}({', '.join(names)})"
        found = hapax.query(f"{head.predicate}({', '.join(names)})", rules, kb).to_json()["answers"]
        for answer in [*found[:1], *found[-1:]]:
            bound = [str(Constant(answer[name])) for name in names]
            for kept in ({0}, {len(names) - 1}, {*range(len(names))}):
                terms = [bound[place] if place in kept else name for place, name in enumerate(names)]
                yield f"{head.predicate}({', '.join(terms)})"


def answers(goal: str, rules: Library, kb: hapax.KnowledgeBase, assumed: Sequence[str]) -> object:
    return hapax.query(goal, rules, kb, assume=assumed).to_json()


@pytest.mark.parametrize("name", CHECKED)
def test_goals_of_programs_have_the_answers_read_over(name: str) -> None:
    """A goal with no, some or all arguments bound has the same recorded answers, in order, with an assumption or none."""
    rules = parse_library([("f.rules", without_generic(name))])
    lines = []
    with hapax.KnowledgeBase() as kb:
        stored(kb, *FACTS)
        for goal in dict.fromkeys(goals(rules, kb)):
            for assumed in ((), ('road("p4", "p1")', 'closed("p2")')):
                text = attempt(partial(answers, goal, rules, kb, assumed))
                lines.append(f"{goal} {assumed}: {checksum([text])} {text[:160]}")
    compared(f"programs/goals_of_{name}", "\n".join(lines) + "\n")
