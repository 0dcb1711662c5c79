"""Atoms that `derive` has stored, by the same rules and from the facts as they are: a goal reads them as facts.

So a goal about a derived predicate costs as much as its rows, however long the derivation took.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.fingerprints import Fingerprints
from hapax.grammar.checking.rule_checks import adds_nothing
from hapax.grammar.dependencies import evaluation_layers
from hapax.grammar.parsing.declarations import SAME_AS
from hapax.grammar.rules import Library, Rule, literals_of
from hapax.grammar.terms import Atom, Constant, Variable
from hapax.kb.atoms.derived_relations import Relations, StoredDerivation
from hapax.kb.atoms.facts import columns_of
from hapax.kb.schema import union
from hapax.kb.store import KnowledgeBase


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
        self._layers: dict[str, frozenset[str]] = {}
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
        for layer in evaluation_layers(self.library):
            self._layers |= dict.fromkeys(layer, layer)
        stored, seen, waiting = set[str](), set[str](), [*goals]
        while waiting:
            indicator = waiting.pop()
            if indicator in seen or indicator not in self.library.concluding:
                continue
            seen.add(indicator)
            if self._is_stored(indicator):
                stored.add(indicator)
            else:
                waiting += [literal.atom.indicator for literal in literals_of(self.library.concluding[indicator])]
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
