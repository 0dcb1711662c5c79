"""Derivations of drawn programs while facts come and go, by checksums in `tests/golden/`: reports, proofs and tables."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import fields

import pytest
from golden_fixture import compared
from kb_contents import checksum, contents

from hapax.engine.explain import story_text, why
from hapax.engine.inference.bulk_derivation import (
    DerivationReport,
    derive_all,
    export_tables,
    fact_tables,
    read_statements,
)
from hapax.engine.inference.replay import Replay
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.statement_export import export_statements
from hapax.engine.inference.theory import Theory
from hapax.engine.kb_checks import check_kb
from hapax.engine.near_misses import near_misses
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.relations import Relations
from hapax.kb.store import KnowledgeBase
from tools.differential import ChangingFacts, library_errors
from tools.drawn_programs import Drawing

CHANGES = 3
"""Times that facts change after the first derivation of a program."""


def told(report: DerivationReport) -> str:
    """The report without times."""
    rules = [
        ", ".join(
            f"{part.name} {getattr(rule, part.name)}" for part in fields(rule) if part.name not in ("seconds", "rule")
        )
        for rule in report.rules
    ]
    return f"{report.facts} facts, {dict(report.atoms)}; {'; '.join(rules)}"


def derived(kb: KnowledgeBase, library: Library, prolog: PrologSession) -> Iterator[str]:
    try:
        report = told(derive_all(kb, library, library.rules, session=prolog))
        yield f"  {checksum([report])} {report[:160]}"
    except HapaxError as refusal:
        yield f"  {refusal}"
        return
    counts = []
    for rule in library.rules:
        records = [repr(record) for record in read_statements(kb, library, rule, prolog)]
        joined = fact_tables(kb, Relations(kb), library, rule)
        counts.append(f"{rule.name} {len(records)} {checksum([*records, str(joined and joined[1])])}")
    yield f"  {', '.join(counts)}"
    exported = io.StringIO()
    export_statements(kb, library, exported)
    written: list[str] = []
    sql = export_tables(
        kb,
        library,
        library.rules,
        lambda name, columns, batches: written.append(f"{name} {columns} {[list(batch) for batch in batches]}"),
    )
    theory = Theory(library, kb)
    ids = sorted(
        line.split('"id": "')[1].split('"')[0] for line in exported.getvalue().splitlines() if '"id": "' in line
    )
    stories = [story_text(why(theory, identity, prolog)) for identity in ids[:2]]
    damages = "\n".join(map(str, Replay(kb, library).damages()))
    texts = (exported.getvalue(), sql, "\n".join(sorted(written)), contents(kb, shown=0), damages, *stories)
    yield f"  {' '.join(checksum(text.splitlines()) for text in texts)}"


def checked(kb: KnowledgeBase, library: Library, prolog: PrologSession) -> Iterator[str]:
    """Faults of the facts by the rules, and what is said of goals without an answer."""
    faults = [str(finding.diagnostic) for finding in check_kb(library, kb, prolog)]
    yield f"  {len(faults)} faults of facts, {checksum(faults)}"
    theory, missed = Theory(library, kb), []
    for signature in sorted(library.completed().signatures, key=lambda item: item.indicator)[:6]:
        terms = ["'caffe'", *(f"V{place}" for place in range(len(signature.argument_types) - 1))]
        missed += near_misses(theory, f"{signature.name}({', '.join(terms)})")
    yield f"  {len(missed)} lines about goals, {checksum(missed)} {'; '.join(missed)[:120]}"


@pytest.mark.parametrize("part", range(3))
def test_drawn_programs_are_derived_as_before(part: int, prolog: PrologSession) -> None:
    """Counts, engines, statements with proofs, exports and tables are those of the version that was read over."""
    lines = []
    for seed in range(part * 8, part * 8 + 8):
        chance = random.Random(f"recorded {seed}")
        program = Drawing(chance).drawn()
        library = parse_library([("f.rules", program.text)])
        while library_errors(library):
            program = Drawing(chance).drawn()
            library = parse_library([("f.rules", program.text)])
        with KnowledgeBase() as kb:
            changing = ChangingFacts(kb, program, chance)
            for change in range(CHANGES + 1):
                changing.change(first=change == 0)
                lines += [f"{seed} change {change}", *derived(kb, library, prolog)]
            lines += checked(kb, library, prolog)
    compared(f"drawn_programs/{part}", "\n".join(lines) + "\n")
