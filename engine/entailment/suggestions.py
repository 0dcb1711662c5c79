"""Suggest rules from strong entailments that hold in one direction only and that no rule states yet."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.engine.entailment.graph import Edge, edges
from hapax.grammar.arguments import checked
from hapax.grammar.rules import Library
from hapax.grammar.subsumption import subsumes
from hapax.grammar.terms import Atom, Variable
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An entailment as a rule. `converse` is the score of the opposite direction, 0 where none is stored."""

    edge: Edge
    converse: float
    used_by: tuple[str, ...]
    """Rules of the library that have the conclusion among their premises, and so would use it."""

    @property
    def text(self) -> str:
        """The rule in rule notation, with its reason as a comment."""
        used_by = f"; used by {', '.join(self.used_by)}" if self.used_by else ""
        return (
            f"# entailment {self.edge.score:.2f}, converse {self.converse:.2f}{used_by}\n"
            f"@name {self.edge.premise.predicate}_entails_{self.edge.hypothesis.predicate}\n"
            "@generic none\n"
            f"{self.edge.premise} -> {self.edge.hypothesis}"
        )


@checked
def suggest_rules(rules: Library, kb: KnowledgeBase, at_least: float = 0.8, margin: float = 0.3) -> list[Suggestion]:
    """Rules from strong stored entailments that hold in one direction only, the strongest first.

    `at_least`: lowest score; `margin`: how much lower the converse must score. Entailments that a rule states already
    are left out, and those of which the rules know neither predicate, because nothing would use them.
    """
    # All entailments: the converse of a strong one may be weak.
    found = list(edges(kb, 0.0))
    suggested = []
    scores = {(edge.premise, edge.hypothesis): edge.score for edge in found}
    # The surest first; the texts make the order of ties the same in every run.
    for edge in sorted(found, key=lambda edge: (-edge.score, str(edge.premise), str(edge.hypothesis))):
        converse = scores.get(_converse(edge), 0.0)
        # Rounded: .85 - .55 is less than .3 in floats.
        if edge.score < at_least or round(edge.score - converse, 9) < margin:
            continue
        known = rules.knows(edge.premise.indicator) or rules.knows(edge.hypothesis.indicator)
        if not known or any(subsumes(rule, edge.rule, rules) for rule in rules.rules):
            continue
        suggested.append(Suggestion(edge, converse, _used_by(edge.hypothesis, rules)))
    return suggested


def _converse(edge: Edge) -> tuple[Atom, Atom]:
    """The atoms of the opposite direction, with variables named in the order of its own premise."""
    names: dict[str, str] = {}
    for term in edge.hypothesis.arguments:
        if isinstance(term, Variable):
            names.setdefault(term.name, chr(ord("A") + len(names)))

    def renamed(atom: Atom) -> Atom:
        variables = (term for term in atom.arguments if isinstance(term, Variable))  # an entailment has no constants
        renamed_variables = (Variable(names.get(v.name, v.name), v.data_type) for v in variables)
        return Atom(atom.predicate, tuple(renamed_variables))

    return renamed(edge.hypothesis), renamed(edge.premise)


def _used_by(atom: Atom, library: Library) -> tuple[str, ...]:
    names: list[str] = []
    for rule in library.rules:
        if atom.indicator in {literal.atom.indicator for literal in rule.literals}:
            names.append(rule.name)
    return tuple(names)
