"""Fingerprints: hashes of everything but facts that decides what is derived. A stored result that has one is current.

That of a predicate is made of its own rules and the fingerprints of the predicates below, so that a long chain of rules
is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from operator import attrgetter

from hapax.engine.inference.derive import relevant_library
from hapax.grammar.dependencies import evaluation_layers
from hapax.grammar.parsing.declarations import SAME_AS, ClosedDeclaration
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import grouped
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase


class Fingerprints:
    """The fingerprints of a library over the denials of a knowledge base."""

    def __init__(self, kb: KnowledgeBase, library: Library) -> None:
        self._kb, self._library = kb, library.with_closure()
        self._stated = grouped(library.facts, attrgetter("indicator"))
        closed = (item for item in library.declarations if isinstance(item, ClosedDeclaration))
        self._closed = grouped(closed, attrgetter("indicator"))

    def atoms(self, indicator: str) -> str:
        """The fingerprint of a derived predicate's atoms; predicates that depend on each other share it."""
        if indicator not in self._by_indicator:
            self._by_indicator[indicator] = self._layer([indicator])
        return self._by_indicator[indicator]

    def statements(self, rule: Rule) -> str:
        """The fingerprint of a rule's statements."""
        return content_id("statements", self._types, *self._rule(rule), *self._below([rule]))

    @cached_property
    def _by_indicator(self) -> dict[str, str]:
        found: dict[str, str] = {}
        # While the layers above are read, those below are known.
        self.__dict__["_by_indicator"] = found
        for layer in evaluation_layers(self._library):
            found |= dict.fromkeys(layer, self._layer(sorted(layer)))
        return found

    @cached_property
    def _types(self) -> str:
        types = [f"{lower} < {upper}" for lower, upper in self._library.subtypes]
        if not self._library.knows(SAME_AS):
            return content_id("types", *sorted(types))
        # Every predicate depends on the names that are the same.
        part = relevant_library(self._library, goals=[SAME_AS])
        stated = [fact for fact in part.facts if fact.indicator == SAME_AS]
        return content_id("types", *sorted(types), SAME_AS, *map(str, part.rules), *map(str, stated))

    def _layer(self, members: list[str]) -> str:
        rules = [rule for name in members for rule in self._library.concluding.get(name, ())]
        texts = [*members, self._types]
        for name in members:
            if self._library.knows(name):
                known = self._library.signature(name)
                texts.append(f"{known.argument_types} {known.kind} {known.definition}")
            texts += [*map(str, self._stated.get(name, ())), *sorted(map(str, self._closed.get(name, ())))]
        for rule in rules:
            texts += self._rule(rule)
        return content_id("atoms", *texts, *self._below(rules, members))

    def _below(self, rules: Iterable[Rule], members: Iterable[str] = ()) -> list[str]:
        names = {literal.atom.indicator for rule in rules for literal in rule.literals}.difference(members)
        return [self.atoms(name) for name in sorted(names)]

    def _rule(self, rule: Rule) -> Iterator[str]:
        yield str(rule)
        # Denials come with no fact, so that no fact tells of them.
        for literal in rule.literals:
            if literal.negated and self._library.is_open(literal.atom.indicator):
                yield f"open {literal.atom.indicator}"
                yield from sorted(denial.id for denial in self._kb.denials(literal.atom.indicator))
