"""Rules that strong entailments suggest: those that point one way only, and that no rule says already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.entailment import Edge
from grammar.rules import Library
from grammar.subsumption import subsumes
from grammar.terms import Atom, Literal, Variable


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An entailment as a rule. `converse` is the score of the way back, 0 where none is stored."""

    edge: Edge
    converse: float
    used_by: tuple[str, ...]
    """Rules of the library with the conclusion among their premises: what the suggestion would feed."""

    @property
    def text(self) -> str:
        """The rule as a rule file takes it, with its reason as a comment."""
        feeds = f"; feeds {', '.join(self.used_by)}" if self.used_by else ""
        return (
            f"# entailment {self.edge.score:.2f}, the way back {self.converse:.2f}{feeds}\n"
            f"@name {self.edge.premise.predicate}_entails_{self.edge.hypothesis.predicate}\n"
            "@generic none\n"
            f"{self.edge.premise} -> {self.edge.hypothesis}"
        )


def suggestions(found: Sequence[Edge], library: Library, at_least: float, margin: float) -> Iterator[Suggestion]:
    """Entailments of `at_least` whose way back scores lower by `margin`, the strongest first.

    One is left out where a rule of the library says as much already, and where the entailment's predicate is unknown
    to the library on both sides: nothing would use it.
    """
    scores = {(edge.premise, edge.hypothesis): edge.score for edge in found}
    for edge in sorted(found, key=lambda one: (-one.score, str(one.premise), str(one.hypothesis))):
        back = scores.get(_turned(edge), 0.0)
        if edge.score < at_least or edge.score - back < margin:
            continue
        known = library.knows(edge.premise.indicator) or library.knows(edge.hypothesis.indicator)
        if not known or any(subsumes(rule, edge.rule, library) for rule in library.rules):
            continue
        yield Suggestion(edge, back, _used_by(edge.hypothesis, library))


def _turned(edge: Edge) -> tuple[Atom, Atom]:
    """The way back, with names in the order of its own premise."""
    names = {
        term.name: chr(ord("A") + number)
        for number, term in enumerate(dict.fromkeys(edge.hypothesis.arguments))
        if isinstance(term, Variable)
    }
    turned = (
        Atom(
            atom.predicate,
            tuple(Variable(names.get(t.name, t.name), t.data_type) for t in atom.arguments if isinstance(t, Variable)),
        )
        for atom in (edge.hypothesis, edge.premise)
    )
    first, second = turned
    return first, second


def _used_by(atom: Atom, library: Library) -> tuple[str, ...]:
    return tuple(
        rule.name
        for rule in library.rules
        if any(one.atom.indicator == atom.indicator for one in rule.literals if isinstance(one, Literal))
    )
