"""Statements that `derive` concluded as items of sheets: drawn for an export, and found by id."""

from __future__ import annotations

from collections.abc import Container, Iterable
from itertools import islice

from hapax.engine.judgements import Judgement, Judgements
from hapax.engine.kept_rules import kept_rules
from hapax.engine.logic.derive import current_rules, read_statements, statement_by_id
from hapax.engine.search.promises import StatementScores
from hapax.evaluation.shared.stored_statements import draw_order_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library
from hapax.kb.derived_ids import DerivedIds
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase

_BATCH = 10_000
"""Statements whose facts are scored at once."""


def derivation_rules(kb: KnowledgeBase) -> Library:
    """The rules of derived statements, which the knowledge base keeps; none where nothing is derived."""
    kept = kept_rules(kb) if any(kb.derived_counts().values()) else None
    return kept or Library()


def derived_records(kb: KnowledgeBase, library: Library, identities: Iterable[str]) -> list[StatementRecord]:
    """The derived statements with these ids, with their proofs; those that are gone or out of date are left out."""
    found = []
    if not any(kb.derived_counts().values()):
        return []
    for identity in identities:
        try:
            record = statement_by_id(kb, library, identity)
        except HapaxError:  # facts have changed since
            record = None
        if record is not None:
            found.append(record)
    return found


def draw_derived(
    kb: KnowledgeBase, library: Library, seed: int, size: int | None, rules: tuple[str, ...]
) -> list[StatementRecord]:
    """At most `size` derived statements, all if it is None, each text once; `rules`: only of these, if any are given.

    The draw depends on the seed and on each statement alone. Raises HapaxError where there are none.
    """
    ids = DerivedIds(kb)
    if not ids.prepare():
        raise HapaxError(
            f"{kb.place}: its derived statements cannot be indexed now.",
            Remedy(
                "Run {} on a file that may be written, and try again when no other command writes to it.",
                Operation("derive"),
            ),
        )
    chosen: dict[str, StatementRecord] = {}
    for identity in sorted(ids.all(rules), key=lambda identity: draw_order_key(seed, identity)):
        if size is not None and len(chosen) == size:
            break
        for record in derived_records(kb, library, [identity]):
            chosen.setdefault(record.text, record)
    if not chosen:
        raise _none_current(kb)
    return list(chosen.values())


def derived_scores(scores: StatementScores) -> dict[str, float]:
    """By id of a derived statement that is up to date, each text once, the product of what its facts are worth.

    Raises HapaxError where there are none.
    """
    kb, library = scores.kb, scores.library
    first: dict[str, tuple[str, float]] = {}
    for rule in current_rules(kb, library):
        records = read_statements(kb, library, rule)
        while batch := list(islice(records, _BATCH)):
            found = scores.scores(batch)
            for record in batch:
                own = (record.id, found[record.id])
                # The smallest id, so that the order of the rules decides nothing.
                first[record.text] = min(first.get(record.text, own), own)
    if not first:
        raise _none_current(kb)
    return dict(first.values())


def _none_current(kb: KnowledgeBase) -> HapaxError:
    return HapaxError(
        f"{kb.place} holds no derived statement that is up to date.", Remedy("Run {} first.", Operation("derive"))
    )


def judged_derived(
    kb: KnowledgeBase, library: Library, found: Judgements, known: Container[str] = ()
) -> dict[str, tuple[StatementRecord, Judgement]]:
    """The derived statements that are judged and up to date, by id; `known`: ids that are counted elsewhere."""
    judged = [identity for identity in found.texts if identity not in known]
    return {record.id: (record, found.texts[record.id]) for record in derived_records(kb, library, judged)}
