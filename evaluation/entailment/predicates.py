"""Predicates of a rule library and entailments: judged by a critic, and linked to those of stored graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import Edge, store_entailments
from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession
from hapax.evaluation.entailment.scorers import Measure, best_difference, sentences
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.verbalize import atom_text
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.protocols import CRITIC

Candidate = tuple[Atom, Atom]
"""Premise and hypothesis over the same variables."""


@checked
def count_entailment_candidates(rules: Library) -> int:
    """Number of pairs of predicates that `judge_entailments` asks about, with up to 8 sentences each."""
    return sum(1 for _ in candidates(rules))


def candidates(library: Library) -> Iterator[Candidate]:
    """All pairs of predicates whose arguments can be matched so that the premise's types are subtypes.

    Predicates without a template are left out, because a critic could not read them.
    """
    signatures = []
    for signature in library.completed().signatures:
        # Arithmetic decides what a computed predicate entails.
        is_asked = signature.kind is not PredicateKind.COMPUTED and signature.templates is not None
        if is_asked and signature.argument_types:
            signatures.append(signature)
    for premise, hypothesis in permutations(signatures, 2):
        if len(premise.argument_types) == len(hypothesis.argument_types):
            yield from _aligned(premise, hypothesis, library)


def _aligned(premise: PredicateSignature, hypothesis: PredicateSignature, library: Library) -> Iterator[Candidate]:
    names = [chr(ord("A") + number) for number in range(len(premise.argument_types))]
    variables = tuple(Variable(name, data_type) for name, data_type in zip(names, premise.argument_types, strict=True))
    for order in permutations(variables):
        types = [variable.data_type for variable in order]
        if all(map(library.is_subtype, types, hypothesis.argument_types)):
            yield Atom(premise.name, variables), Atom(hypothesis.name, order)


def score_candidates(pairs: Sequence[Candidate], library: Library, measure: Measure) -> list[Edge]:
    """The candidates with their scores: (1 + best P(yes) of a pattern - best P(yes) of an antipattern) / 2."""
    texts = []
    for premise, hypothesis in pairs:
        generic = [term.name for term in premise.arguments if isinstance(term, Variable)]
        words = [atom_text(atom, library, generic=generic) for atom in (premise, hypothesis)]
        texts.append(sentences(*words))
    edges = []
    for (premise, hypothesis), score in zip(pairs, best_difference(texts, measure), strict=True):
        edges.append(Edge(premise, hypothesis, round((score + 1) / 2, 6)))  # from [-1, 1] to [0, 1]
    return edges


@dataclass(frozen=True)
class EntailmentsJudged:
    """Outcome of `judge_entailments`: the number of pairs of predicates, and the stored edges, the strongest first."""

    pairs: int
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Any]:
        """The pairs and edges as a JSON object."""
        entailments = []
        for edge in self.edges:
            atoms = {"premise": str(edge.premise), "hypothesis": str(edge.hypothesis)}
            entailments.append({**atoms, "score": edge.score})
        return {"pairs": self.pairs, "entailments": entailments}


@checked
@extras_named()
def judge_entailments(
    kb: KnowledgeBase,
    rules: Library,
    options: ScorerOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    at_least: float = STRONG,
    budget: Budget | None = None,
) -> EntailmentsJudged:
    """Ask a model which predicates of the rules entail which, and store what has at least this score.

    The score is (1 + P(yes) of the best pattern - P(yes) of the best antipattern) / 2.
    """
    measure = ScorerSession(kb, options or ScorerOptions(), opening, budget).measure(CRITIC)
    pairs = list(candidates(rules))
    strong = [edge for edge in score_candidates(pairs, rules, measure) if edge.score >= at_least]
    # The strongest first, as the result lists them.
    strong.sort(key=lambda edge: -edge.score)
    store_entailments(kb, strong)
    return EntailmentsJudged(len(pairs), tuple(strong))


# --- proposals --------------------------------------------------------------------------------------------------------
