"""Asks a model what only a model can say of rules: whether it can know what they ask, and whether their words fit.

LINK leaves out predicates beyond a model's knowledge (section 2.2). `grammar/predicate_checks.py` finds some by their
words; this finds others by opinion.
"""

from __future__ import annotations

from grammar import faults
from grammar.errors import Diagnostic
from grammar.predicate_checks import asked_atoms
from grammar.rules import Library, Place
from grammar.terms import Atom, Constant
from grammar.verbalize import atom_text
from llm_oracle.prompts import scope_claim, sense_claim
from llm_oracle.protocols import Critic, CriticScore

LEAST = 0.5
"""P(yes) below which a model is said to object."""


def lint_predicates(library: Library, critic: Critic) -> tuple[int, tuple[Diagnostic, ...]]:
    """How many predicates were judged, and the warnings, in the order of the rules.

    A predicate counts once for each combination of types that it is asked over. A claim that the model refuses to
    judge gives no warning.
    """
    first: dict[tuple[str, tuple[str, ...]], tuple[Place, str, Atom]] = {}
    for place, owner, atom, types in asked_atoms(library):
        first.setdefault((atom.indicator, types), (place, owner, atom))
    uses = list(first.values())
    sentences = [_sentence(atom, library) for _, _, atom in uses]
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
                    "Choose a verb or types that fit each other, or mend the predicate's sentence",
                )
            )
        elif _objects(scope):
            warnings.append(
                faults.OUT_OF_SCOPE.at(
                    place,
                    f"{atom}{owner} asks for what {critic.identity.name} says that common texts cannot tell "
                    f"(P(yes) {scope.probability:.2f})",
                    "Ask about a type whose members are named, or declare the predicate given",
                )
            )
    return len(uses), tuple(warnings)


def _sentence(atom: Atom, library: Library) -> str:
    """`[Tree A] has the height [Height B]`."""
    return atom_text(atom, library, {one.name: Constant(f"[{one}]") for one in atom.variables})


def _objects(score: CriticScore) -> bool:
    return score.probability < LEAST and not score.refused
