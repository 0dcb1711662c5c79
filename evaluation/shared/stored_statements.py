"""Statements of a knowledge base: which ones an experiment takes, samples of them, and the rules behind them."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.evaluation.shared.experiments import skipped_runs
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_rule
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature, Templates
from hapax.kb.records import PREDICATES, RULES, Distribution, StatementRecord, content_id
from hapax.kb.store import KnowledgeBase


def latest_statements(
    kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()
) -> dict[Distribution, dict[str, StatementRecord]]:
    """As `chosen_statements`, but raises HapaxError also where no statement is found."""
    latest = chosen_statements(kb, rules, runs)
    if not any(latest.values()):
        raise HapaxError(
            f"{kb.place} holds no statement to ask about.",
            Remedy(
                "Search for some ({}) or import LINT's ({}); use {} to take the statements of an "
                "experiment. {} takes what {} concluded.",
                Operation("search"),
                Operation("import_lint"),
                Setting("options.runs"),
                Operation("export_sheets", derived=True),
                Operation("derive"),
            ),
        )
    return latest


def chosen_statements(
    kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()
) -> dict[Distribution, dict[str, StatementRecord]]:
    """Statements by distribution and id, each as the last run wrote it. `rules`, `runs`: only these, if any are given;
    see `skipped_runs`.

    Raises HapaxError for an unknown rule.
    """
    names = {rule.name for rule in kb.select(RULES)}
    for name in rules:
        if name not in names:
            raise HapaxError(
                f"{kb.place}: no rule {name!r}.",
                Remedy("Without {}, all rules that it holds are used.", Setting("options.rules")),
            )
    skipped = skipped_runs(kb, runs)
    latest: dict[Distribution, dict[str, StatementRecord]] = {distribution: {} for distribution in Distribution}
    for statement in kb.statements():
        if statement.run_id not in skipped and (not rules or statement.rule in rules):
            # Statements come in the order of their runs, so that a later run's replaces an earlier one's.
            latest[statement.distribution][statement.id] = statement
    return latest


@dataclass(frozen=True, slots=True)
class DistinctTexts:
    """Statements of which those that read the same are counted once, as in a row of a dataset.

    `statements`: by distribution and row id, the smallest id of the statements of either distribution with this text.
    `row_ids`: the row id of each statement. `total`: number of statements by distribution.
    """

    statements: Mapping[Distribution, Mapping[str, StatementRecord]]
    row_ids: Mapping[str, str]
    total: Mapping[Distribution, int]

    @classmethod
    def of(cls, latest: Mapping[Distribution, Mapping[str, StatementRecord]]) -> DistinctTexts:
        """From the statements by distribution and id."""
        row_of_text: dict[str, str] = {}
        for statements in latest.values():
            for identity, record in statements.items():
                # Over both distributions, so that a text has one row id at either end.
                row_of_text[record.text] = min(identity, row_of_text.get(record.text, identity))
        row_ids: dict[str, str] = {}
        distinct: dict[Distribution, dict[str, StatementRecord]] = {}
        for distribution, statements in latest.items():
            rows = distinct[distribution] = {}
            # Sorted, so that the record shown is that of the smallest id of this distribution.
            for identity, record in sorted(statements.items()):
                row_ids[identity] = row_of_text[record.text]
                rows.setdefault(row_ids[identity], record)
        return cls(distinct, row_ids, {distribution: len(statements) for distribution, statements in latest.items()})


def draw_sample(
    statements: Mapping[str, StatementRecord], size: int | None, seed: int
) -> list[tuple[str, StatementRecord]]:
    """At most `size` statements with their ids, all if `size` is None; a larger sample contains the smaller ones."""
    # A prefix of one fixed order: a larger sample extends the smaller one.
    return sorted(statements.items(), key=lambda entry: draw_order_key(seed, entry[0]))[:size]


def draw_order_key(seed: int, identity: str) -> str:
    """Sort key of an item in a drawn order; depends on the seed and the item's identity alone."""
    # A hash instead of a shuffle: new statements do not change the order of the others.
    return content_id("draw", seed, identity)


def stored_library(kb: KnowledgeBase, rules: Container[str] | None = None) -> Library:
    """The rules of a knowledge base with their predicates, as its last run read them; `rules` None: all."""
    signatures = []
    for predicate in kb.select(PREDICATES):
        templates = None
        if predicate.affirmative:
            templates = Templates(predicate.affirmative, predicate.negated, predicate.question)
        try:
            kind = PredicateKind(predicate.kind)
        except ValueError:
            kinds = ", ".join(PredicateKind)
            fault = HapaxError(f"{predicate.kind!r} is none of {kinds}. Search with its rules again.")
            # Stored by a newer version or damaged; the other predicates stay usable.
            kb.leave_out(fault, f"The kind of the stored predicate {predicate.indicator} cannot be read: ")
            continue
        signatures.append(PredicateSignature(predicate.name, predicate.argument_types, kind, templates))
    # Rules are parsed with the signatures, which say what kinds of predicates they use.
    library = Library(signatures=tuple(signatures))
    parsed = []
    for record in kb.select(RULES):
        if rules is None or record.name in rules:
            try:
                parsed.append(parse_rule(record.text, library, f"rule {record.name}").named(record.name))
            except HapaxError as fault:
                kb.leave_out(fault, "A stored rule cannot be read: ")
    return replace(library, rules=tuple(parsed))
