"""Withdraw facts, and prove again the stored statements that rest on changed facts or on the absence of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from hapax.engine.answers.derivation import current_rules, derive_all
from hapax.engine.explain import IDENTITY, stored_rule, with_stored_predicates, worded_atom
from hapax.engine.inference.derive import KeptSubstitutions, fact_key, matched
from hapax.engine.inference.theory import AskedAtom, Theory
from hapax.engine.logic.proofs import derive_statements
from hapax.grammar.arguments import checked, texts
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Substitution, grouped
from hapax.grammar.writing.words import counted, some
from hapax.kb.records import USER, FactRecord, StatementRecord, Withdrawal, fact_id
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class FactChange:
    """Facts that were withdrawn, restored or added, and the effect on stored statements."""

    facts: tuple[FactRecord, ...] = ()
    """Facts that were withdrawn or restored."""
    fallen: tuple[StatementRecord, ...] = ()
    """Statements that do not hold any more: the facts were in all of their proofs, or refute them."""
    reproved: tuple[StatementRecord, ...] = ()
    """Statements that hold by another proof, which is now stored with them."""
    risen: tuple[StatementRecord, ...] = ()
    """Statements that hold again."""
    derived: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Numbers of the statements that `derive` stored, before and now, by rule, where they differ."""

    def to_json(self) -> dict[str, Any]:
        """Atoms of the facts, and id and text of the statements."""
        changed: dict[str, Any] = {"facts": [str(fact.ground_atom) for fact in self.facts]}
        for name in ("fallen", "reproved", "risen"):
            texts = {statement.id: statement.text for statement in getattr(self, name)}
            changed[name] = [{"id": identity, "text": text} for identity, text in texts.items()]
        changed["derived"] = {rule: {"before": before, "now": now} for rule, (before, now) in self.derived.items()}
        return changed


@checked
def retract(facts: str | Sequence[str], rules: Library, kb: KnowledgeBase, *, reason: str) -> FactChange:
    """Withdraw facts, named as atoms, as sentences or by id, and with them the statements that rest on them alone.

    Statements with another proof stay, with that proof. A search never brings back what was withdrawn here; `restore`
    does, and giving the fact again. Raises HapaxError, and withdraws nothing, for a fact that is not stored.
    """
    theory = Theory(rules, kb)
    if not reason.strip():
        raise HapaxError("A withdrawal needs a reason.", Remedy("Add {}.", Setting("reason", "TEXT")))
    by_id = {fact.id: fact for fact in (_stored_fact(theory, text) for text in texts(facts))}
    return _followed(theory, by_id, lambda: kb.withdraw(by_id.values(), reason.strip(), USER))


@checked
def restore(facts: str | Sequence[str], rules: Library, kb: KnowledgeBase) -> FactChange:
    """Bring withdrawn facts back, named as in `retract`, with the statements that rest on them.

    Raises HapaxError if one of them is not withdrawn.
    """
    theory = Theory(rules, kb)
    restored: dict[str, FactRecord] = {}
    for text in texts(facts):
        fact = _withdrawn_fact(theory, text)
        if fact is None:
            raise HapaxError(
                f"{kb.place}: {text} is not withdrawn.",
                Remedy("Run {} to see whether any fact is.", Operation("withdrawn_facts")),
            )
        restored[fact.id] = fact
    return _followed(theory, restored, lambda: kb.restore(restored))


@checked
def withdrawn_facts(kb: KnowledgeBase) -> list[Withdrawal]:
    """The facts that are withdrawn, with the reasons, in the order in which they were."""
    return kb.withdrawals()


def _followed(theory: Theory, facts: Mapping[str, FactRecord], change: Callable[[], object]) -> FactChange:
    """Change facts, and let the stored statements of searches and of `derive` follow."""
    kb = theory.kb
    with kb.transaction():
        # What had fallen before is no effect of this change.
        before, rules, counts = _fallen(kb), current_rules(kb, theory.library), kb.derived_counts()
        change()
        effect = _revised(theory, before)
        if rules:
            derive_all(kb, theory.library, rules)
        now = kb.derived_counts()
    pairs = {rule.name: (counts[rule.name], now[rule.name]) for rule in rules}
    derived = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    return replace(effect, facts=tuple(facts.values()), derived=derived)


def revise_statements(
    library: Library, kb: KnowledgeBase, fallen: Sequence[StatementRecord] | None = None
) -> FactChange:
    """Bring stored statements up to date after facts were added or withdrawn.

    A statement whose proof rests on withdrawn facts gets another one, if there is one. A statement that rests on the
    absence of facts or on their number, by `not`, `unless` or an aggregate, is proved again, or stands no more.
    `fallen`: the statements that had fallen before the change; by default those that have now.
    """
    if not kb.fallen_statements() and not kb.unrevised_statements():
        return FactChange()
    with kb.transaction():
        before = _fallen(kb) if fallen is None else {statement.key: statement for statement in fallen}
        return _revised(Theory(library, kb), before, before.values())


def _fallen(kb: KnowledgeBase) -> dict[str, StatementRecord]:
    return {statement.key: statement for statement in kb.fallen_statements()}


def _revised(
    theory: Theory,
    before: Mapping[str, StatementRecord],
    also: Iterable[StatementRecord] = (),
) -> FactChange:
    """Revise the statements that a change of the facts concerns. `before`: those that had fallen when it began.

    `also`: further statements, which may have another proof.
    """
    kb = theory.kb
    unrevised = [statement for statement in kb.unrevised_statements() if _is_of(statement, theory)]
    touched = [statement for key, statement in _fallen(kb).items() if key not in before]
    concerned = {statement.key: statement for statement in (*also, *touched, *unrevised)}
    proved = {item.key: item for item in prove_again(theory, concerned.values())}
    kb.lapse(item for item in unrevised if item.key not in proved)
    now = _fallen(kb)
    return FactChange(
        fallen=tuple(item for key, item in now.items() if key not in before),
        reproved=tuple(proved[item.key] for item in touched if item.key in proved),
        risen=tuple(item for key, item in before.items() if key not in now),
    )


def prove_again(theory: Theory, statements: Iterable[StatementRecord]) -> list[StatementRecord]:
    """Prove statements from the facts that stand, store the new proofs, and return the statements that have one."""
    worded = with_stored_predicates(theory)
    proved: list[StatementRecord] = []
    for name, group in grouped(statements, attrgetter("rule")).items():
        rule = stored_rule(worded.kb, name, worded.library)
        if rule is None:
            continue
        rule = replace(rule, name=name)
        part = worded.relevant_to(rule)
        # A statement of several runs or of both distributions has the same proofs in all of them.
        substitutions = {item.id: Substitution.of(item.substitution) for item in group}
        kept = KeptSubstitutions(rule, {group[0].distribution: list(substitutions.values())}, group[0].run_id)
        found = derive_statements(worded.kb, worded.library, part.facts(), kept, list(part.denied()))
        proofs = {record.id: record.proof for record in found}
        proved += [replace(item, proof=proofs[item.id]) for item in group if item.id in proofs]
    worded.kb.add_statements(proved)
    return proved


def _is_of(statement: StatementRecord, theory: Theory) -> bool:
    """True if the library has the statement's rule as a search used it; otherwise a missing proof means nothing."""
    now = next((rule for rule in theory.library.rules if rule.name == statement.rule), None)
    used = stored_rule(theory.kb, statement.rule, theory.library)
    if now is None or used is None:
        return False
    return (now.premise, now.conclusion) == (used.premise, used.conclusion)


def _matching(asked: AskedAtom, facts: Iterable[FactRecord]) -> list[FactRecord]:
    """The facts that a user may have named."""
    terms, indicator = asked.atom.arguments, asked.atom.indicator
    wanted = fact_id(*fact_key(asked.atom)) if asked.atom.is_ground else ""
    return [
        fact
        for fact in facts
        if fact.indicator == indicator and (fact.id == wanted if wanted else matched(terms, fact.arguments) is not None)
    ]


def _single(text: str, found: Sequence[FactRecord]) -> FactRecord | None:
    """The one fact that a text names; None without any. Raises HapaxError for several."""
    if len(found) > 1:
        named = some((str(fact.ground_atom) for fact in found), 3)
        raise HapaxError(f"{text} names {counted(len(found), 'fact')}: {named}. Name one of them.")
    return found[0] if found else None


def _withdrawn_fact(theory: Theory, text: str) -> FactRecord | None:
    withdrawn = [item.fact for item in theory.kb.withdrawals()]
    if IDENTITY.fullmatch(text.strip()):
        return next((fact for fact in withdrawn if fact.id == text.strip()), None)
    _, asked = worded_atom(text, theory)
    return _single(text, _matching(asked, withdrawn))


def _stored_fact(theory: Theory, text: str) -> FactRecord:
    kb = theory.kb
    if IDENTITY.fullmatch(text.strip()):
        # All facts are read to find one by its id.
        fact, stated = kb.facts_by_id([text.strip()]).get(text.strip()), False
    else:
        _, asked = worded_atom(text, theory)
        fact = _single(text, _matching(asked, kb.relations.at(asked.atom.indicator, asked.atom.bound)))
        stated = asked.atom in theory.library.facts
    if fact is None:
        if gone := _withdrawn_fact(theory, text):
            raise HapaxError(
                f"{text} is withdrawn already: {kb.withdrawals(gone.id)[-1].text}.",
                Remedy("Run {} to bring it back.", Operation("restore", text)),
            )
        listed = Remedy("Run {} to see the facts.", Operation("export_facts"))
        remedy = Remedy("A rule file states it: delete it there.") if stated else listed
        raise HapaxError(f"{kb.place}: there is no fact {text}.", remedy)
    if fact.ground_atom in theory.library.facts:
        raise HapaxError(f"A rule file states {text} as well, so it would still hold. Delete it there first.")
    return fact
