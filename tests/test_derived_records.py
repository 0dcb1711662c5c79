"""Derivations by rules of every kind, to the last row: before and after changes of the facts, in `tests/golden/`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from derived_programs import FACTS, PROGRAMS, stored, without_generic
from golden_fixture import compared
from kb_contents import checksum, contents

from hapax.engine.inference.bulk_derivation import Engine, derive_all
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.withdrawal import restore_facts, withdraw_facts
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.derived_statements import derived_statements
from hapax.kb.records import DenialRecord
from hapax.kb.store import KnowledgeBase


def told(title: str, kb: KnowledgeBase, text: str, engine: Engine, prolog: PrologSession) -> str:
    library = parse_library([("f.rules", text)])
    lines = [f"# {title}"]
    try:
        report = derive_all(kb, library, library.rules, engine, prolog)
        lines += [f"{report.facts} facts, {report.atoms}", *(str(replace(rule, seconds=0)) for rule in report.rules)]
        statements = sorted(f"{item.rule}: {item.text} {item.id}" for item in derived_statements(kb))
        lines += [f"{len(statements)} statements, {checksum(statements)}", *(f"  {text}" for text in statements[:12])]
    except HapaxError as refusal:
        lines.append(str(refusal))
    return "\n".join([*lines, contents(kb, shown=0)])


@pytest.mark.parametrize("engine", ["auto", "sql", "prolog"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivations_are_recorded_to_the_last_row(name: str, engine: Engine, prolog: PrologSession) -> None:
    """Statements, atoms and stored rows of each program, by each engine, after each change, are those read over."""
    text = without_generic(name)
    with KnowledgeBase() as kb:
        stored(kb, *FACTS)
        kb.add_denials([DenialRecord("closed", ("p1",), 0.01)])
        parts = [told("first", kb, text, engine, prolog), told("again", kb, text, engine, prolog)]
        stored(kb, ("road", ("p4", "p0")), ("height", ("p7", 900)), ("closed", ("p4",)), ("year", ("p3", 1899)))
        parts.append(told("facts added", kb, text, engine, prolog))
        theory = Theory(parse_library([("f.rules", text)]), kb)
        if name != "cycle":
            change = withdraw_facts(theory, ["road(p0, p1)", "closed(p3)", "height(p4, 400)"], "a test", prolog)
            parts.append(str(change.to_json()))
            parts.append(told("facts withdrawn", kb, text, engine, prolog))
            parts.append(str(restore_facts(theory, ["closed(p3)"]).to_json()))
        stored(
            kb,
            *(("closed" if name == "wide" else "road", (f"q{k}", f"r{k}")[: 2 - (name == "wide")]) for k in range(150)),
        )
        parts.append(told("many added", kb, text, engine, prolog))

        compared(f"derived/{name}_{engine}", "\n".join(parts))
