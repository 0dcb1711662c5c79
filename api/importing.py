"""The rules that imported facts must fit: those that the caller names, else those that the knowledge base keeps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.intake import FactIntake, FactNames, FactsInConflict, RulesForFacts
from hapax.kb.records import FactRecord, Source
from hapax.kb.store import KnowledgeBase

if TYPE_CHECKING:
    from hapax.grammar.rules import Library


@checked
@dataclass(frozen=True, slots=True)
class FactRules:
    """Rules that imported facts must fit, and a reference such as `reference:geo` for canonical names of values.

    Without `rules`, those that the knowledge base keeps apply.
    """

    rules: Library | None = None
    names: str | None = None


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
    from hapax.llm_oracle.backends.reference import open_names

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
        for number, fact in enumerate(source.facts(), 1):
            if fact.source is Source.GIVEN:
                intake.add_fact(number, fact.predicate, list(fact.arguments), fact.types)
        intake.refuse_faulty()


def _rules_for_facts(kb: KnowledgeBase, rules: Library | None) -> RulesForFacts:
    from hapax.api.kept_rules import read_kept

    library = rules
    if library is None:
        # The part of the kept rules that can be read: a fault in them does not stop an import.
        read = read_kept(kb)
        if read is None:
            return RulesForFacts()
        library = read.library
    from hapax.engine.logic.conflicts import constrained_predicates

    constrained = constrained_predicates(library)

    # The import calls it when all facts are read.
    def conflicts(facts: Iterable[FactRecord]) -> list[FactsInConflict]:
        return _conflicts(kb, library, list(facts))

    return RulesForFacts(library, rules is not None, constrained, conflicts)


def _conflicts(kb: KnowledgeBase, library: Library, facts: list[FactRecord]) -> list[FactsInConflict]:
    from hapax.engine.logic.conflicts import new_conflicts

    identities = {fact.id for fact in facts}
    found = []
    for conflict in new_conflicts(kb, library, facts):
        verb = "breaks" if len(conflict.facts) == 1 else "together break"
        # Facts that are stored already; those of models give way to given ones.
        others = [fact for fact in conflict.facts if fact.id not in identities]
        claimed = any(fact.source is not Source.GIVEN for fact in others)
        arriving = frozenset(fact.id for fact in conflict.facts if fact.id in identities)
        found.append(FactsInConflict(arriving, f'{conflict.text} {verb} "{conflict.declaration}"', claimed))
    return found
