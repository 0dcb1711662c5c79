"""Checks of two rules against each other: the same twice, one inside the other, and one against the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from grammar import faults
from grammar.errors import Diagnostic
from grammar.rules import Library, Rule
from grammar.satisfiable import contradiction
from grammar.subsumption import MAXIMUM_TRIES, MAXIMUM_TRIES_OF_ALL, Features, Matcher, features
from grammar.terms import Arithmetic, Atom, BodyLiteral, Comparison, Constant, Expression, Literal, Term, Variable

CONTRARIES_TOLD = 20
"""Rules with the contrary conclusion that one rule is told of at most."""

MAXIMUM_MEETINGS = 50_000
"""Pairs of rules with contrary conclusions that are looked at, in a library: about ten seconds."""


def duplicate_and_subsumed_rules(library: Library) -> Iterator[Diagnostic]:
    """Rules that are equal up to renaming, and rules whose every conclusion another rule draws from less.

    Of rules that say the same, each is told once, against the first of them.
    """
    matcher = Matcher(library, MAXIMUM_TRIES_OF_ALL)
    for rules in _by_conclusion(library.rules).values():
        known = _Known(rules)
        for rule in rules:
            if matcher.left <= 0:
                yield given_up(rule)
                return
            found = [_Pair(matcher, other, rule, *ways) for other, *ways in known.related(rule)]
            twin = next((pair for pair in found if pair.forward and pair.backward), None)
            if twin is None:
                known.add(rule)
            yield from twin.diagnostics() if twin else (one for pair in found for one in pair.diagnostics())


def _by_conclusion(rules: Sequence[Rule]) -> dict[str, list[Rule]]:
    groups: dict[str, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.conclusion.atom.indicator, []).append(rule)
    return groups


class _Known:
    """Rules with one concluded predicate, found by what they share with another.

    One rule can subsume another only if all its features are the other's, too. So each is filed under its rarest one,
    and looked for under the other's.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._features = {id(rule): features(rule) for rule in rules}
        self._counts = Counter(feature for one in self._features.values() for feature in one)
        self._rules: list[Rule] = []
        self._by_rarest: dict[Hashable, list[int]] = {}
        self._by_any: dict[Hashable, list[int]] = {}

    def add(self, rule: Rule) -> None:
        number = len(self._rules)
        self._rules.append(rule)
        self._by_rarest.setdefault(self._rarest(rule), []).append(number)
        for feature in self._features[id(rule)]:
            self._by_any.setdefault(feature, []).append(number)

    def related(self, rule: Rule) -> Iterator[tuple[Rule, bool, bool]]:
        """Earlier rules in order, with whether they may subsume this one, and whether this one may subsume them."""
        mine = self._features[id(rule)]
        general = {
            number for feature in mine for number in self._by_rarest.get(feature, ()) if self._of(number) <= mine
        }
        special = {number for number in self._by_any.get(self._rarest(rule), ()) if mine <= self._of(number)}
        for number in sorted(general | special):
            yield self._rules[number], number in general, number in special

    def _of(self, number: int) -> Features:
        return self._features[id(self._rules[number])]

    def _rarest(self, rule: Rule) -> Hashable:
        return min(self._features[id(rule)], key=self._counts.__getitem__)


class _Pair:
    """Two rules compared, as far as it may be that one subsumes the other."""

    def __init__(self, matcher: Matcher, first: Rule, second: Rule, forward: bool, backward: bool) -> None:
        self.first, self.second = first, second
        self.forward = matcher.subsumes(first, second) if forward else False
        self.backward = matcher.subsumes(second, first) if backward else False

    def diagnostics(self) -> Iterator[Diagnostic]:
        first, second = self.first, self.second
        if self.forward and self.backward:
            yield faults.DUPLICATE.at(
                second.place,
                f"rule {second.name} says the same as rule {first.name}",
                "Take one of them out",
                first.place,
            )
        elif self.forward or self.backward:
            general, special = (first, second) if self.forward else (second, first)
            yield faults.SUBSUMED.at(
                special.place,
                f"all that rule {special.name} concludes follows by rule {general.name} already, which asks for less",
                f"Take rule {special.name} out, or add to the premise of rule {general.name} what it lacks",
                general.place,
            )
        elif self.forward is None or self.backward is None:
            yield faults.NOT_COMPARED.at(
                second.place,
                f"whether rule {second.name} and rule {first.name} say the same was given up after {MAXIMUM_TRIES:,} "
                "tries: the literals of one can be matched with those of the other in too many ways",
                "Compare them yourself, or use fewer literals over one predicate",
                first.place,
            )


def given_up(rule: Rule) -> Diagnostic:
    """From this rule on all comparisons were given up: none of the tries of a library were left."""
    return faults.NOT_COMPARED.at(
        rule.place,
        f"from rule {rule.name} on, rules were not compared any more: those before it took {MAXIMUM_TRIES_OF_ALL:,} "
        "tries, because their literals can be matched in too many ways",
        "Use fewer literals over one predicate in a premise, or check fewer rules together",
    )


def opposite_conclusions(library: Library) -> Iterator[Diagnostic]:
    """Two rules that conclude a thing and its contrary of the same values, and nothing excludes that both apply."""
    earlier: dict[str, list[Rule]] = {}
    left = MAXIMUM_MEETINGS
    for second in library.rules:
        predicate = second.conclusion.atom.predicate
        told = 0
        for first in earlier.get(predicate, ()):
            if told == CONTRARIES_TOLD or left == 0:
                yield not_all_contraries(second, told)
                if left == 0:
                    return
                break
            left -= 1
            if can_meet(first, second, library):
                told += 1
                yield faults.OPPOSED.at(
                    second.place,
                    f"rule {second.name} concludes {predicate}, and rule {first.name} the contrary, "
                    f"{first.conclusion.atom.predicate}, under premises that can hold together",
                    "Add to one premise what keeps them apart",
                    first.place,
                )
        if opposite := library.opposite_of(predicate):
            earlier.setdefault(opposite, []).append(second)


def not_all_contraries(rule: Rule, told: int) -> Diagnostic:
    """The search for contrary conclusions ended at this rule: `told` were enough, or none of a library's were left."""
    if told == CONTRARIES_TOLD:
        return faults.NOT_COMPARED.at(
            rule.place,
            f"rule {rule.name} concludes the contrary of more than {told} rules; the others were not looked at",
            "Mend those that are told, then check again",
        )
    return faults.NOT_COMPARED.at(
        rule.place,
        f"from rule {rule.name} on, contrary conclusions were not looked for any more: {MAXIMUM_MEETINGS:,} pairs of "
        "rules were",
        "Check fewer rules together",
    )


def can_meet(first: Rule, second: Rule, library: Library) -> bool:
    """Whether both rules can apply to the same arguments of their conclusions."""
    other = _renamed_apart(second)
    pairs = list(zip(first.conclusion.atom.arguments, other.conclusion.atom.arguments, strict=False))
    if len(first.conclusion.atom.arguments) != len(other.conclusion.atom.arguments):
        return False
    if not all(_overlap(one, another, library) for one, another in pairs):
        return False
    equations = [Comparison("=", one, another) for one, another in pairs]
    return not contradiction((*first.premise, *other.premise, *equations), library)


def _overlap(one: Term, other: Term, library: Library) -> bool:
    """Whether a value can be both. Unrelated types are taken to have no common values."""
    if isinstance(one, Variable) and isinstance(other, Variable):
        return library.most_specific((one.data_type, other.data_type)) is not None
    return True


def _renamed_apart(rule: Rule) -> Rule:
    """The rule with variables that no file can write, so that they meet those of another rule only where equated."""
    premise = tuple(_primed(item) for item in rule.premise)
    return replace(rule, premise=premise, conclusion=Literal(_primed_atom(rule.conclusion.atom)))


def _primed(item: BodyLiteral) -> BodyLiteral:
    if isinstance(item, Literal):
        return Literal(_primed_atom(item.atom), item.negated)
    return Comparison(item.operator, _primed_expression(item.left), _primed_expression(item.right))


def _primed_atom(atom: Atom) -> Atom:
    return Atom(atom.predicate, tuple(_primed_term(term) for term in atom.arguments))


def _primed_term(term: Term) -> Term:
    return term if isinstance(term, Constant) else Variable(f"{term.name}'", term.data_type)


def _primed_expression(expression: Expression) -> Expression:
    if isinstance(expression, Arithmetic):
        return Arithmetic(
            expression.operator, _primed_expression(expression.left), _primed_expression(expression.right)
        )
    return _primed_term(expression)
