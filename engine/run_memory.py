"""Recall the predicates, rules and models of earlier runs from a knowledge base.

With them a story is told in the words in which its questions were asked, whatever rule files are loaded now.
"""

from __future__ import annotations

from dataclasses import replace

from hapax.engine.inference.theory import Theory
from hapax.engine.search.account import StepAccount
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import OBJECT, Library, PredicateKind, PredicateSignature, Rule, Templates
from hapax.grammar.terms import Atom
from hapax.kb.records import PREDICATES, RULES, PredicateRecord, RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.circularity import is_circular
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR)
"""The roles, in the order of the models in a run's record."""


def with_stored_predicates(theory: Theory, *, thorough: bool = False) -> Theory:
    """The theory with the predicates of its knowledge base added, and all sentence templates as stored there.

    `thorough`: also those that facts alone have, under the name of another predicate with more or fewer arguments. To
    find them, all facts are read.
    """
    stored = {record.indicator: record for record in theory.kb.select(PREDICATES)}
    signatures = []
    for signature in theory.library.completed().signatures:
        templates = _templates(stored.get(signature.indicator)) or signature.templates
        signatures.append(replace(signature, templates=templates))
    # Predicates that only the store knows are undeclared: no rule file says what could be asked about them.
    signatures += [_signature(record) for name, record in stored.items() if not theory.library.knows(name)]
    known = [*stored, *(signature.indicator for signature in theory.library.completed().signatures)]
    names = frozenset() if thorough else frozenset(indicator.rpartition("/")[0] for indicator in known)
    for indicator in theory.kb.fact_indicators(names):
        if indicator not in stored and not theory.library.knows(indicator):
            # Only imported facts use it, so nothing but its name and its number of arguments is known.
            name, _, arity = indicator.rpartition("/")
            types = (OBJECT,) * int(arity)
            signatures.append(PredicateSignature(name, types, PredicateKind.GIVEN, declared=False))
    return replace(theory, library=replace(theory.library, signatures=tuple(signatures)))


def worded_atom(text: str, theory: Theory) -> tuple[Theory, Atom]:
    """An atom, and the theory with the stored predicates that it needs. Raises as `Theory.atom`."""
    worded = with_stored_predicates(theory)
    try:
        return worded, worded.atom(text)
    except HapaxError:
        worded = with_stored_predicates(theory, thorough=True)
        return worded, worded.atom(text)


def _templates(record: PredicateRecord | None) -> Templates | None:
    if record is None or record.affirmative is None:
        return None
    return Templates(record.affirmative, record.negated, record.question)


def _signature(record: PredicateRecord) -> PredicateSignature:
    kind = PredicateKind(record.kind) if record.kind in list(PredicateKind) else PredicateKind.GIVEN
    return PredicateSignature(record.name, record.argument_types, kind, _templates(record), declared=False)


def last_account(kb: KnowledgeBase, rule: str) -> tuple[RunRecord, list[StepAccount]] | None:
    """The last complete search of the rule with the account of its steps; None without such a search."""
    runs = [run for run in kb.runs() if run.command == "search" and run.finished]
    # Times in ISO notation sort as texts; the newest run comes first.
    for run in sorted(runs, key=lambda run: run.finished or "", reverse=True):
        lines = run.summary.get("rules", ())
        try:
            stored = next((line["account"] for line in lines if line["rule"] == rule and line.get("account")), None)
            if stored:
                return run, [StepAccount.from_json(step) for step in stored]
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # another program's summary
    return None


def stored_rule(kb: KnowledgeBase, name: str, library: Library) -> Rule | None:
    """The rule of that name as the last search used it, else as the library has it.

    None if there is no such rule, or if the library does not know all of its predicates.
    """
    text = next((record.text for record in kb.select(RULES) if record.name == name), None)
    try:
        rule = library.rule(name) if text is None else parse_library([(f"rule {name}", text)]).rules[0]
    except (HapaxError, IndexError):
        return None
    return rule if all(library.knows(atom.indicator) for atom in rule.atoms) else None


def models_of(run: RunRecord | None) -> dict[str, str]:
    """The names of a run's models by role, without roles that the run did not use."""
    names = run.settings.get("models") if run else None
    # Imports record no models.
    if run is None or not isinstance(names, list) or len(names) != len(ROLES):
        return {}
    # Such a search named a likelihood model, but did not rank by it.
    without = {LIKELIHOOD} if run.settings.get("likelihood") != "model" else set()
    return {role: str(name) for role, name in zip(ROLES, names, strict=True) if role not in without}


def identities_of(run: RunRecord | None) -> dict[str, ModelIdentity]:
    """The identities of a run's models by role, with the models that taught them."""
    identities = {}
    taught_by = run.settings.get("taught_by", {}) if run else {}
    for role, full_name in models_of(run).items():
        name, _, revision = full_name.rpartition("@") if "@" in full_name else (full_name, "", "")
        identities[role] = ModelIdentity(name, revision, taught_by=tuple(taught_by.get(full_name, ())))
    return identities


def circular_judge(run: RunRecord) -> str | None:
    """The name of the run's evaluator if it ranked the run itself, taught its ranker or learned from it."""
    identities = identities_of(run)
    ranker, judge = identities.get(LIKELIHOOD), identities.get(EVALUATOR)
    return judge.name if ranker is not None and judge is not None and is_circular(judge, ranker) else None
