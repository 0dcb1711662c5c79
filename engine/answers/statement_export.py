"""Export of all statements, those of searches and those of `derive`, with their proofs as JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from hapax.engine.answers.derivation import current_rules
from hapax.engine.answers.statement_lines import statement_lines
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library
from hapax.kb.exchange.values import encode_decimal
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase

DERIVED = "derived"
"""The end of a statement that `derive` concluded, which has no likelihood."""

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class StatementExportReport:
    """Numbers of exported statements, and of those of `derive` that are left out, since facts or rules have changed."""

    searched: int
    derived: int
    outdated: int


@checked
def export_statements(kb: KnowledgeBase, rules: Library, stream: IO[str]) -> StatementExportReport:
    """Write the statements of searches and of `derive`, with their proofs, to a text stream as JSON Lines.

    `rules`: those of `derive`, whose statements are left out where facts or rules have changed since.
    """
    searched = derived = 0
    for record in _of_searches(kb):
        stream.write(_line(record, record.distribution.value))
        searched += 1
    current = current_rules(kb, rules)
    for rule in current:
        for lines in statement_lines(kb, rules, rule, _derived_line):
            stream.write("".join(lines))
            derived += len(lines)
    stored = kb.derived_counts()
    return StatementExportReport(searched, derived, sum(stored.values()) - sum(stored[rule.name] for rule in current))


def _of_searches(kb: KnowledgeBase) -> Iterator[StatementRecord]:
    places = kb.statement_places()
    for start in range(0, len(places), _CHUNK):
        yield from kb.statements_at(places[start : start + _CHUNK])


def _derived_line(record: StatementRecord) -> str:
    return _line(record, DERIVED)


def _line(record: StatementRecord, end: str) -> str:
    tree = {
        "id": record.id,
        "rule": record.rule,
        "end": end,
        "run": record.run_id if end != DERIVED else None,
        "statement": record.text,
        "premise": record.premise,
        "conclusion": record.conclusion,
        "substitution": dict(record.substitution),
        "log_likelihood": record.log_likelihood,
        "proof": record.proof,
    }
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, default=encode_decimal) + "\n"
