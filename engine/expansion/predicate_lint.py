"""Ask a model whether predicates make sense over their types and whether it can know their facts.

LINK leaves out predicates beyond a model's knowledge (section 2.2). `grammar/predicate_checks.py` recognises some by
their words; this module asks a model about the others.
"""

from __future__ import annotations

from dataclasses import replace

from hapax.grammar import faults
from hapax.grammar.arguments import checked
from hapax.grammar.errors import Diagnostic, Place
from hapax.grammar.predicate_checks import asked_atoms
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.verbalize import atom_text
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.prompts import scope_claim, sense_claim
from hapax.llm_oracle.protocols import CRITIC, CriticScore
from hapax.llm_oracle.registry import open_instructed, with_journal

MIN_PROBABILITY = 0.5
"""P(yes) below which the model objects to a claim."""


@checked
def lint_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> tuple[int, tuple[Diagnostic, ...]]:
    """Ask a model if predicates make sense over their types. Gives their number, and its warnings in rule order.

    A predicate counts once for each combination of argument types. A claim that the model refuses to judge gives no
    warning.
    """
    opening, journal = with_journal(kb, opening)
    critic = JournaledCritic(open_instructed(model, CRITIC, replace(opening, library=rules)), journal, role="rules")
    first: dict[tuple[str, tuple[str, ...]], tuple[Place, str, Atom]] = {}
    for place, owner, atom, types in asked_atoms(rules):
        first.setdefault((atom.indicator, types), (place, owner, atom))
    uses = list(first.values())
    sentences: list[str] = []
    for _, _, atom in uses:
        # Types stand in for values: `[Tree A] has the height [Height B]`.
        names = {variable.name: Constant(f"[{variable}]") for variable in atom.variables}
        sentences.append(atom_text(atom, rules, names))
    # One batch, the claims about scope first and those about sense behind them.
    scores = critic.probabilities([*map(scope_claim, sentences), *map(sense_claim, sentences)])
    warnings: list[Diagnostic] = []
    for number, (place, owner, atom) in enumerate(uses):
        scope, sense = scores[number], scores[number + len(uses)]
        if _objects(sense):
            warnings.append(
                faults.SENSELESS.at(
                    place,
                    f"{atom}{owner} reads '{sentences[number]}', which makes no sense to {critic.identity.name} "
                    f"(P(yes) {sense.probability:.2f})",
                    "Choose a verb or types that fit each other, or correct the predicate's sentence",
                )
            )
        # A sentence without sense is reported once: whether it is in scope says nothing then.
        elif _objects(scope):
            warnings.append(
                faults.OUT_OF_SCOPE.at(
                    place,
                    f"{atom}{owner} asks for facts that common texts do not contain, {critic.identity.name} says "
                    f"(P(yes) {scope.probability:.2f})",
                    "Ask about a type whose members are named, or declare the predicate given",
                )
            )
    return len(uses), tuple(warnings)


def _objects(score: CriticScore) -> bool:
    return score.probability < MIN_PROBABILITY and not score.refused
