"""Entailments between the predicates of a rule library, judged by a critic in the predicates' own sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from hapax.engine.entailment.graph import Edge
from hapax.evaluation.entailment.prompts import sentences
from hapax.evaluation.entailment.scorers import Measure, best_difference
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.verbalize import atom_text

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
