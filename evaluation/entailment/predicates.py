"""Which predicates of a rule library entail which, asked of a critic in the predicates' own sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from engine.entailment import Edge
from evaluation.entailment.prompts import Filled, sentences
from evaluation.entailment.scorers import Measure, best_difference
from grammar.rules import Library, PredicateKind, PredicateSignature
from grammar.terms import Atom, Variable
from grammar.verbalize import atom_text

Candidate = tuple[Atom, Atom]
"""Premise and hypothesis over the same variables."""


def candidates(library: Library) -> Iterator[Candidate]:
    """Every two predicates that could speak of the same things: arguments paired off, the premise's types no wider.

    Computed predicates are left out, since arithmetic decides what they entail, and so are those without a template.
    """
    told = [
        one
        for one in library.completed().signatures
        if one.kind is not PredicateKind.COMPUTED and one.templates is not None and one.argument_types
    ]
    for premise, hypothesis in permutations(told, 2):
        if len(premise.argument_types) == len(hypothesis.argument_types):
            yield from _aligned(premise, hypothesis, library)


def _aligned(premise: PredicateSignature, hypothesis: PredicateSignature, library: Library) -> Iterator[Candidate]:
    names = [chr(ord("A") + number) for number in range(len(premise.argument_types))]
    variables = tuple(Variable(*each) for each in zip(names, premise.argument_types, strict=True))
    for order in permutations(variables):
        if all(
            library.is_subtype(variable.data_type, wanted)
            for variable, wanted in zip(order, hypothesis.argument_types, strict=True)
        ):
            yield Atom(premise.name, variables), Atom(hypothesis.name, order)


def score_candidates(found: Sequence[Candidate], library: Library, measure: Measure) -> list[Edge]:
    """Each as an entailment: half of one more than the best pattern's P(yes) less the best antipattern's."""
    told = [_filled(premise, hypothesis, library) for premise, hypothesis in found]
    scores = best_difference(told, measure)
    return [
        Edge(premise, hypothesis, round((score + 1) / 2, 6))
        for (premise, hypothesis), score in zip(found, scores, strict=True)
    ]


def _filled(premise: Atom, hypothesis: Atom, library: Library) -> Filled:
    generic = [term.name for term in premise.arguments if isinstance(term, Variable)]
    one, other = (atom_text(atom, library, generic=generic) for atom in (premise, hypothesis))
    return sentences(one, other)
