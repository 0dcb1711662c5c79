"""What a knowledge base remembers of the searches that filled it: predicates in their words, rules, and the models.

With it a story reads as it was asked, whatever rule files are loaded now.
"""

from __future__ import annotations

from dataclasses import replace

from engine.query import Theory
from grammar.errors import HapaxError
from grammar.parser import parse_library
from grammar.rules import OBJECT, Library, PredicateKind, PredicateSignature, Rule, Templates
from kb.records import PredicateRecord, RunRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR)
"""In the order in which a run's record names its models."""


def with_stored_predicates(theory: Theory) -> Theory:
    """The theory with the predicates of its knowledge base, too, and all of them in the words that are stored there.

    What only the store knows counts as undeclared: no rule file says what could be asked about it.
    """
    stored = {one.indicator: one for one in theory.kb.predicates()}
    known = theory.library.completed().signatures
    worded = [replace(one, templates=_templates(stored.get(one.indicator)) or one.templates) for one in known]
    declared = [_signature(one) for name, one in stored.items() if not theory.library.knows(name)]
    held = [one for one in theory.kb.fact_counts() if one not in stored and not theory.library.knows(one)]
    return replace(theory, library=replace(theory.library, signatures=(*worded, *declared, *map(_unheard, held))))


def _templates(record: PredicateRecord | None) -> Templates | None:
    if record is None or record.affirmative is None:
        return None
    return Templates(record.affirmative, record.negated, record.question)


def _signature(record: PredicateRecord) -> PredicateSignature:
    kind = PredicateKind(record.kind) if record.kind in list(PredicateKind) else PredicateKind.GIVEN
    return PredicateSignature(record.name, record.argument_types, kind, _templates(record), declared=False)


def _unheard(indicator: str) -> PredicateSignature:
    """A predicate of imported facts, about which no search has said anything."""
    name, _, arity = indicator.rpartition("/")
    return PredicateSignature(name, (OBJECT,) * int(arity), PredicateKind.GIVEN, declared=False)


def stored_rule(kb: KnowledgeBase, name: str, library: Library) -> Rule | None:
    """The rule of that name as the last search had it, else as the library has it; None: nobody knows all of it."""
    text = next((one.text for one in kb.rules() if one.name == name), None)
    try:
        rule = library.rule(name) if text is None else parse_library([(f"rule {name}", text)]).rules[0]
    except (HapaxError, IndexError):
        return None
    return rule if all(library.knows(atom.indicator) for atom in rule.atoms) else None


def models_of(run: RunRecord | None) -> dict[str, str]:
    """The names of a run's models by role; nothing of a role that the run did without."""
    names = run.settings.get("models") if run else None
    if run is None or not isinstance(names, list) or len(names) != len(ROLES):
        return {}
    without = {LIKELIHOOD} if run.settings.get("likelihood") != "model" else set()
    return {role: str(name) for role, name in zip(ROLES, names, strict=True) if role not in without}
