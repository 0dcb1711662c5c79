"""Rules that join parts of a premise which share no variable, so that every row of one meets every row of the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from hapax.engine.inference.theory import Theory
from hapax.engine.logic.demand import Demand
from hapax.engine.logic.evaluate import constraints
from hapax.engine.logic.goal_rules import GOAL
from hapax.engine.logic.proofs import reading
from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Comparison, Constant, Literal, variable_names
from hapax.grammar.writing.prolog_text import definition_of
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.store import KnowledgeBase

LARGE = 1_000_000
"""Combinations from which a product is worth a word."""


@dataclass(frozen=True, slots=True)
class Product:
    """A product that a rule evaluates: of each part of its premise the largest predicate, and the number of its rows.

    `is_concluded`: each part has a variable in the conclusion, so that the rule asks for the combinations.
    """

    rule: Rule
    parts: tuple[tuple[str, int], ...]
    is_concluded: bool

    @property
    def size(self) -> int:
        return math.prod(rows for _, rows in self.parts)

    def __str__(self) -> str:
        joined = " with ".join(f"{rows:,} rows of {indicator}" for indicator, rows in self.parts)
        # The rules of a goal have names that no rule file can give.
        name = GOAL if self.rule.name.startswith(GOAL) else f"rule {self.rule.name}"
        return f"{name} joins {joined} that share no variable: {self.size:,} combinations"


class _Connected(NamedTuple):
    """Items of a premise that are connected: the names of their variables, and their atoms."""

    names: frozenset[str]
    atoms: tuple[Atom, ...]


def row_counts(kb: KnowledgeBase, library: Library) -> Callable[[Atom], int]:
    """A function that says how many rows match an atom: facts, or atoms as last derived, 0 where that is not known."""
    facts, relations = kb.fact_counts(), Relations(kb)

    def rows(atom: Atom) -> int:
        is_derived = atom.indicator in library.derived
        if not any(isinstance(term, Constant) for term in atom.arguments):
            return max(facts.get(atom.indicator, 0), relations.atom_count(atom.indicator) if is_derived else 0)
        if is_derived:
            return 0
        with reading(kb):
            return sum(1 for _ in Demand(Theory(library, kb).source(), Library()).rows(atom))

    return rows


def product_of(rule: Rule, library: Library, rows: Callable[[Atom], int]) -> Product | None:
    """The product that the rule evaluates; None without one."""
    parts: list[_Connected] = []
    for item in constraints(rule):
        names = frozenset(variable_names([item]))
        if isinstance(item, Literal) and not item.negated and definition_of(item, library) is None:
            part = _Connected(names, (item.atom,))
        elif isinstance(item, Comparison) and item.operator == "=":
            part = _Connected(names, ())
        else:
            continue  # it only tests combinations
        for sharing in [earlier for earlier in parts if earlier.names & names]:
            parts.remove(sharing)
            part = _Connected(part.names | sharing.names, part.atoms + sharing.atoms)
        parts.append(part)
    # Atoms without variables and equations with constants multiply nothing.
    parts = [part for part in parts if part.names and part.atoms]
    sized = []
    for part in parts:
        largest = max(((atom.indicator, rows(atom)) for atom in part.atoms), key=itemgetter(1))
        # Neither does a part with one row.
        if largest[1] != 1:
            sized.append(largest)
    if len(sized) < 2:
        return None
    concluded = {variable.name for variable in rule.conclusion.variables}
    return Product(rule, tuple(sized), all(part.names & concluded for part in parts))


@contextmanager
def naming_products(rules: Iterable[Rule], library: Library, kb: KnowledgeBase) -> Iterator[None]:
    """Let an error of a time limit name the largest product of the rules that were at work."""
    try:
        yield
    except LimitExceeded as limit:
        product = max(large_products(rules, library, kb), key=lambda product: product.size, default=None)
        if product is not None:
            text = str(product)
            limit.message += f" {text[0].upper()}{text[1:]}."
        raise


def large_products(rules: Iterable[Rule], library: Library, kb: KnowledgeBase) -> Iterator[Product]:
    """The products of these rules that are worth a word."""
    rows = row_counts(kb, library)
    for rule in rules:
        product = product_of(rule, library, rows)
        if product is not None and product.size >= LARGE:
            yield product
