"""Facts imported from files, tables, rows and other knowledge bases, and checked by the rules that they must fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from hapax.engine.kept_rules import kept_rules, read_kept
from hapax.grammar.arguments import checked, is_table
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.grammar.writing.notebook import ArrowStream
from hapax.kb.exchange import merge as merging
from hapax.kb.exchange import tables
from hapax.kb.exchange.intake import FactIntake, FactNames, FactsInConflict, ImportReport, RulesForFacts
from hapax.kb.records import FactRecord, Source, StatementRecord
from hapax.kb.store import KnowledgeBase

if TYPE_CHECKING:
    import pandas as pd

    from hapax.kb.exchange.mappings import TableMapping


SameKey: TypeAlias = Annotated[
    Literal["refuse", "keep", "replace"],
    Option("Rows with the key of a stored fact or an earlier row, by mapping or rules, and other values."),
]


@checked
@dataclass(frozen=True, slots=True)
class FactRules:
    """Rules that imported facts must fit, and a reference such as `reference:geo` for canonical names of values.

    Without `rules`, those that the knowledge base keeps apply.
    """

    rules: Library | None = None
    names: str | None = None


@checked
def add_facts(
    kb: KnowledgeBase,
    predicate: str,
    rows: Iterable[Sequence[Any]] | pd.DataFrame | ArrowStream,
    rules: Library,
    *,
    same_key: SameKey = "refuse",
) -> int:
    """Hold facts true: rows of values, or a table whose columns are the arguments in order. Gives the new ones.

    A table is a data frame of pandas, or any with Arrow's PyCapsule protocol, such as one of polars. The predicate must
    be declared in `rules`, and the rows fit the declaration, as in `import_facts`, which also explains `same_key`.
    Raises FactsRejected with every faulty row, and then stores nothing.
    """
    name, slash, _ = predicate.partition("/")
    if slash:
        raise HapaxError(
            f"{predicate} is not the name of a predicate. Give the name {name!r} alone: the rows give its arguments."
        )
    if all(signature.name != predicate for signature in rules.completed().signatures):
        raise HapaxError(
            f"{predicate} is not declared in these rules. Add a line such as `given {predicate}(Type, Type)`."
        )
    before = kb.fallen_statements()
    report = tables.import_rows(kb, predicate, rows, rules_for_facts(kb, rules), same_key)
    # The new facts may refute stored statements, or let others hold again.
    revised(kb, rules, before if report.replaced else None)
    return report.added + report.promoted


@checked
def import_facts(
    kb: KnowledgeBase,
    source: str | Path | IO[str] | pd.DataFrame | ArrowStream,
    *,
    mapping: TableMapping | None = None,
    rules: Library | FactRules | None = None,
    form: str | None = None,
    skip_faulty: Annotated[bool, Option("Leave out faulty rows instead of refusing the file.")] = False,
    same_key: SameKey = "refuse",
) -> ImportReport:
    """Import given facts from CSV or JSONL. Raises FactsRejected with every fault, and then imports nothing.

    `mapping`: which columns of a table are the arguments of which predicates, such as `TableMapping.of("lies_at",
    ["airport", "elevation"])` or `TableMapping.read(path)`; the source may then also be a TSV, Parquet or SQLite file,
    or a table in memory, as in `add_facts`. `rules`: their declarations are what the facts must fit; by default those
    of the rules that the knowledge base keeps, of whose predicates a file then need not have any. `FactRules(rules,
    names="reference:geo")` stores values under the canonical names of a reference, and what the file has as the fact's
    `basis`.
    """
    if mapping is None and is_table(source):
        raise HapaxError("A table needs a mapping. Give mapping=hapax.TableMapping.of(predicate, columns).")
    fitting, before = rules_for_facts(kb, rules), kb.fallen_statements()
    report = tables.import_facts(
        kb, source, mapping=mapping, form=form, skip_faulty=skip_faulty, same_key=same_key, rules=fitting
    )
    fallen, risen = revised(kb, fitting.library, before if report.replaced else None)
    return replace(report, fallen=fallen, risen=risen)


def revised(
    kb: KnowledgeBase, rules: Library | None = None, before: Sequence[StatementRecord] | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts of the stored statements that fell, and of those that rose, by facts that were added.

    They are proved by the rules that the knowledge base keeps, otherwise by `rules` or the shipped ones. `before`:
    those that had fallen before facts were replaced.
    """
    if before is None and not kb.unrevised_statements():
        return (), ()
    from hapax.engine.withdrawal import revise_statements

    change = revise_statements(kept_rules(kb) or rules or load_rules(), kb, before)
    # By id: a statement has a row for each run and end.
    fallen = {statement.id: statement.text for statement in change.fallen}
    risen = {statement.id: statement.text for statement in change.risen}
    return tuple(fallen.values()), tuple(risen.values())


@checked
def merge(kb: KnowledgeBase, source: str | Path) -> merging.MergeReport:
    """Copy everything that another knowledge base holds into this one.

    Raises FactsRejected, and copies nothing, if given facts there do not fit the rules that this one keeps.
    """
    check_given_facts(kb, Path(source))
    report = merging.merge(kb, Path(source))
    return replace(report, fallen=revised(kb)[0])


def rules_for_facts(kb: KnowledgeBase, rules: Library | FactRules | None) -> RulesForFacts:
    """The rules that facts must fit. Those of the caller refuse unknown predicates, kept ones only warn of them.

    Raises HapaxError for a reference that cannot be opened, or without rules, which say the types of values.
    """
    if not isinstance(rules, FactRules):
        return _rules_for_facts(kb, rules)
    fitting = _rules_for_facts(kb, rules.rules)
    if rules.names is None:
        return fitting
    if fitting.library is None:
        raise HapaxError(
            f"{rules.names} needs rules, which say of which type each argument is.",
            Remedy("Name them by {}.", Setting("rules", "FILE")),
        )
    from hapax.llm_oracle.references.model import open_names

    return replace(fitting, names=FactNames(rules.names, open_names(rules.names, fitting.library).canonical))


def check_given_facts(kb: KnowledgeBase, path: Path) -> None:
    """Check the given facts of another knowledge base like those of an import, against the rules that this one keeps.

    Contradictions between the facts of both are left to the report of the merge. Raises FactsRejected.
    """
    rules = _rules_for_facts(kb, None)
    if rules.library is None or not path.exists():
        return
    with FactIntake(kb, str(path), rules) as intake, KnowledgeBase(path, read_only=True) as source:
        intake.remedy = Remedy(
            "Retract these facts there ({}), or correct the declarations here.", Operation("retract")
        )
        facts = ((line, fact) for line, fact in enumerate(source.facts(), 1) if fact.source is Source.GIVEN)
        while batch := list(islice(facts, tables.BATCH)):
            intake.add_facts([(line, fact.predicate, list(fact.arguments), fact.types) for line, fact in batch])
        intake.refuse_faulty()


def _rules_for_facts(kb: KnowledgeBase, rules: Library | None) -> RulesForFacts:
    library = rules
    if library is None:
        # The part of the kept rules that can be read: a fault in them does not stop an import.
        read = read_kept(kb)
        if read is None:
            return RulesForFacts()
        library = read.library
    from hapax.engine.logic.conflicts import constrained_predicates, new_conflicts

    # The import calls it when all facts are read.
    def conflicts(facts: Iterable[FactRecord]) -> list[FactsInConflict]:
        arriving = list(facts)
        identities = {fact.id for fact in arriving}
        found = []
        for conflict in new_conflicts(kb, library, arriving):
            verb = "breaks" if len(conflict.facts) == 1 else "together break"
            # Facts that are stored already; those of models give way to given ones.
            others = [fact for fact in conflict.facts if fact.id not in identities]
            claimed = any(fact.source is not Source.GIVEN for fact in others)
            own = [fact for fact in conflict.facts if fact.id in identities]
            found.append(FactsInConflict(own, f'{conflict.text} {verb} "{conflict.declaration}"', claimed))
        return found

    return RulesForFacts(library, rules is not None, constrained_predicates(library), conflicts)
