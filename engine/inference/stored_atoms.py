"""Atoms that `derive` has stored, by the same rules and from the facts as they are: a goal reads them as facts.

So a goal about a derived predicate costs as much as its rows, however long the derivation took.

Fingerprints are hashes of everything but facts that decides what is derived: a stored result that has one is current.
That of a predicate is made of its own rules and the fingerprints of the predicates below, so that a long chain of rules
is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter

from hapax.engine.inference.derive import relevant_library
from hapax.grammar.checking.rule_checks import adds_nothing
from hapax.grammar.dependencies import evaluation_layers
from hapax.grammar.parsing.declarations import SAME_AS, ClosedDeclaration
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import Atom, Constant, Variable, grouped, reached
from hapax.kb.atoms.derived_relations import Relations, StoredDerivation
from hapax.kb.atoms.facts import columns_of
from hapax.kb.records import content_id
from hapax.kb.schema import union
from hapax.kb.store import KnowledgeBase

# --- fingerprints -------------------------------------------------------------------------------------------------


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
        # No fact records a denial, so denials are listed here.
        for literal in rule.literals:
            if literal.negated and self._library.is_open(literal.atom.indicator):
                yield f"open {literal.atom.indicator}"
                yield from sorted(denial.id for denial in self._kb.denials(literal.atom.indicator))


# --- stored atoms -------------------------------------------------------------------------------------------------


@dataclass
class StoredAtoms:
    """The stored atoms of a knowledge base that follow from a library without its assumptions.

    `assumed`: indicators of the assumptions, from which nothing stored follows. `part`: the library without the rules
    that a goal need not prove, because it reads the atoms of `predicates`.
    """

    kb: KnowledgeBase
    library: Library
    assumed: frozenset[str]
    part: Library = field(init=False)
    whole: bool = True
    """False for goals with constants: statements are not indexed by their values, so that few are derived sooner."""
    predicates: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.part = self.library
        self._relations = Relations(self.kb)
        self._derivations: dict[str, StoredDerivation] = {}
        self._fingerprints = Fingerprints(self.kb, self.library)

    @classmethod
    def below(
        cls, kb: KnowledgeBase, library: Library, assumed: Iterable[Atom], goals: Iterable[str], *, whole: bool
    ) -> StoredAtoms | None:
        """The stored atoms that goals, by indicator, can read; None if there are none."""
        # Statements and facts may have other names than `same_as` gives; tables of atoms have these.
        whole = whole and not library.knows(SAME_AS)
        found = cls(kb, library, frozenset(atom.indicator for atom in assumed), whole)
        return found if found._find(goals) else None

    def _find(self, goals: Iterable[str]) -> bool:
        """Find the stored predicates below goals, and the part that is left; False without any."""
        if not self._relations.is_up_to_date:
            return False
        self._derivations = self._relations.derivations()
        stored: set[str] = set()

        def below(indicator: str) -> list[str]:
            """The predicates on which one rests that is not stored."""
            rules = self.library.concluding.get(indicator, ())
            if rules and self._is_stored(indicator):
                stored.add(indicator)
                return []
            return [literal.atom.indicator for literal in literals_of(rules)]

        reached(goals, below)
        if stored:
            self.predicates = frozenset(stored)
            rules = tuple(rule for rule in self.library.rules if rule.conclusion.atom.indicator not in stored)
            self.part = relevant_library(replace(self.library, rules=rules), goals=goals)
        return bool(stored)

    def _is_stored(self, indicator: str) -> bool:
        if self.library.signature(indicator).definition is not None:
            return False
        below = relevant_library(self.library, goals=[indicator])
        if any(below.knows(name) for name in self.assumed):
            return False
        # Without its rules an oracle predicate would be open, and its negations would need denials.
        rules = tuple(rule for rule in self.library.rules if rule.conclusion.atom.indicator != indicator)
        if replace(self.library, rules=rules).is_open(indicator) != self.library.is_open(indicator):
            return False
        if self._table(indicator) is not None:
            return True
        return self.whole and all(map(self._is_derived, self.library.concluding[indicator]))

    def _table(self, indicator: str) -> str | None:
        """The table of all atoms of a predicate, if it is up to date."""
        return self._relations.atoms(indicator, self._fingerprints.atoms(indicator))

    def _is_derived(self, rule: Rule) -> bool:
        """True if the stored statements of a rule, which are up to date, have all that it concludes."""
        if adds_nothing(rule, self.library):
            return True
        found = self._derivations.get(rule.name)
        names = {variable.name for variable in rule.searched}
        return (
            found is not None
            and not found.stale
            and not rule.generic
            and not rule.by_declaration
            and {variable.name for variable in rule.conclusion.variables} <= names
            and found.fingerprint == self._fingerprints.statements(rule)
        )

    def source(self, indicator: str) -> str:
        """The table with all atoms of a stored predicate, or a SELECT of them."""
        table = self._table(indicator)
        if table is not None:
            return table
        columns, tag = columns_of(indicator), self._relations.symbols.tag
        selects = [f"SELECT {', '.join(f'0 AS {column}' for column in columns)} WHERE 0"]
        if (relation := self.kb.relations.get(indicator)) is not None:
            selects.append(f"SELECT {', '.join(columns)} FROM {relation.table}")  # noqa: S608  ours
        for atom in self.library.facts:
            if atom.indicator == indicator:
                tags = [tag(term.value) for term in atom.arguments if isinstance(term, Constant)]
                selects.append(f"SELECT {', '.join(map(str, tags)) or '0'}")
        for rule in self.library.concluding[indicator]:
            if not adds_nothing(rule, self.library):
                places = {variable.name: f"v{number}" for number, variable in enumerate(rule.searched, 1)}
                terms = rule.conclusion.atom.arguments
                cells = [places[term.name] if isinstance(term, Variable) else str(tag(term.value)) for term in terms]
                selects.append(f"SELECT {', '.join(cells) or '0'} FROM {self._derivations[rule.name].table}")  # noqa: S608
        return f"SELECT DISTINCT * FROM ({union(selects)})"  # noqa: S608  ours
