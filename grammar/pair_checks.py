"""Checks of two rules against each other: duplicates, subsumed rules, and opposite conclusions.

Each check stands below the faults that it finds. A new check is a fault, a function and a line in PAIR_CHECKS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from hapax.grammar.errors import Diagnostic
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.rules import Library, Rule
from hapax.grammar.satisfiable import contradiction, divides_by_zero
from hapax.grammar.subsumption import MAXIMUM_TRIES, MAXIMUM_TRIES_OF_ALL, Features, Matcher, features
from hapax.grammar.terms import Comparison, Variable

CONTRARIES_SHOWN = 20
"""Rules with the opposite conclusion reported for one rule."""

MAXIMUM_MEETINGS = 50_000
"""Pairs of rules with opposite conclusions examined per library: about ten seconds."""

DUPLICATE: Final = RuleFault.warning(
    "HPX205", "duplicate rule",
    "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
    "is_in(Food C, Dish D) & eats(Person Y, Food C) -> may_eat(Person Y, Dish D)",
)  # fmt: skip
SUBSUMED: Final = RuleFault.warning(
    "HPX206", "subsumed rule",
    "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
    "eats(Person X, Food A) & is_in(Food A, Dish B) & is_tasty(Dish B) -> may_eat(Person X, Dish B)",
)  # fmt: skip
NOT_COMPARED: Final = RuleFault.note(
    "HPX303", "comparison given up",
    "lives_in(Person X, Town A) & leads_to(Town A, Town B) & leads_to(Town B, Town C) & leads_to(Town C, Town D)\n"
    "  & leads_to(Town D, Town E) & leads_to(Town E, Town F) & leads_to(Town F, Town G) & leads_to(Town G, Town H)\n"
    "  & leads_to(Town H, Town I) & leads_to(Town I, Town J) & leads_to(Town J, Town K) & leads_to(Town K, Town L)\n"
    "  & leads_to(Town L, Town M) & leads_to(Town M, Town A) -> can_tour(Person X, Town A)\n"
    "lives_in(Person X, Town A) & leads_to(Town A, Town B) & leads_to(Town B, Town A) & leads_to(Town A, Town C)\n"
    "  & leads_to(Town C, Town A) & leads_to(Town D, Town B) & leads_to(Town B, Town D) & leads_to(Town D, Town C)\n"
    "  & leads_to(Town C, Town D) -> can_tour(Person X, Town A)",
)  # fmt: skip


@check(DUPLICATE, SUBSUMED, NOT_COMPARED, even_if_incomplete=True)
def duplicate_and_subsumed_rules(library: Library) -> Iterator[Diagnostic]:
    """Rules that are equal up to renaming, and rules whose every conclusion another rule draws from a weaker premise.

    Of equal rules each is reported once, against the first of them.
    """
    matcher = Matcher(library, MAXIMUM_TRIES_OF_ALL)
    for rules in library.concluding.values():
        earlier = _EarlierRules(rules)
        for rule in rules:
            if matcher.left <= 0:
                yield given_up(rule)
                return
            pairs = [
                _Pair(matcher, known, rule, may_subsume, may_be_subsumed)
                for known, may_subsume, may_be_subsumed in earlier.related(rule)
            ]
            duplicate = next((pair for pair in pairs if pair.forward and pair.backward), None)
            # Its other pairs would only repeat what the rule that it equals has reported already.
            if duplicate is not None:
                yield from duplicate.diagnostics()
                continue
            earlier.add(rule)
            for pair in pairs:
                # What a premise that never holds concludes follows from anything; it has a fault of its own.
                if not (pair.is_one_sided and any(_never_applies(part, library) for part in (pair.first, pair.second))):
                    yield from pair.diagnostics()


class _EarlierRules:
    """Rules that conclude one predicate, indexed by their features.

    A rule can subsume another only if the other has all its features. So each rule is filed under its rarest feature,
    and looked up under the features of the other.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        # By identity, because hashing a rule walks its whole tree.
        self._features = {id(rule): features(rule) for rule in rules}
        self._counts = Counter[Hashable]()
        for rule_features in self._features.values():
            self._counts.update(rule_features)
        self._rules: list[Rule] = []
        self._by_rarest: dict[Hashable, list[int]] = {}
        self._by_any: dict[Hashable, list[int]] = {}

    def add(self, rule: Rule) -> None:
        index = len(self._rules)
        self._rules.append(rule)
        self._by_rarest.setdefault(self._rarest(rule), []).append(index)
        for feature in self._features[id(rule)]:
            self._by_any.setdefault(feature, []).append(index)

    def related(self, rule: Rule) -> Iterator[tuple[Rule, bool, bool]]:
        """Earlier rules in order, each with: may it subsume this rule, and may this rule subsume it."""
        own = self._features[id(rule)]
        general: set[int] = set()
        for feature in own:
            general.update(index for index in self._by_rarest.get(feature, ()) if self._features_of(index) <= own)
        special = {index for index in self._by_any.get(self._rarest(rule), ()) if own <= self._features_of(index)}
        for index in sorted(general | special):
            yield self._rules[index], index in general, index in special

    def _features_of(self, index: int) -> Features:
        return self._features[id(self._rules[index])]

    def _rarest(self, rule: Rule) -> Hashable:
        return min(self._features[id(rule)], key=self._counts.__getitem__)


class _Pair:
    """Two rules compared for subsumption, in the directions that are possible.

    `forward`: the first subsumes the second; `backward`: the reverse. None: the comparison was given up.
    """

    def __init__(self, matcher: Matcher, first: Rule, second: Rule, forward: bool, backward: bool) -> None:
        self.first, self.second = first, second
        self.forward = matcher.subsumes(first, second) if forward else False
        self.backward = matcher.subsumes(second, first) if backward else False

    @property
    def is_one_sided(self) -> bool:
        """True if one of the rules subsumes the other, and they are not equal."""
        return bool(self.forward) != bool(self.backward)

    def diagnostics(self) -> Iterator[Diagnostic]:
        first, second = self.first, self.second
        if self.forward and self.backward:
            yield DUPLICATE.at(
                second.place,
                f"rule {second.name} duplicates rule {first.name}",
                "Remove one of them",
                first.place,
            )
        elif self.forward or self.backward:
            general, special = (first, second) if self.forward else (second, first)
            yield SUBSUMED.at(
                special.place,
                f"everything that rule {special.name} concludes already follows from rule {general.name}, which has a "
                "weaker premise",
                f"Remove rule {special.name}, or add the missing condition to the premise of rule {general.name}",
                general.place,
            )
        elif self.forward is None or self.backward is None:
            yield NOT_COMPARED.at(
                second.place,
                f"the comparison of rule {second.name} with rule {first.name} was given up after {MAXIMUM_TRIES:,} "
                "tries, because their literals can be matched in too many ways",
                "Compare them yourself, or use fewer literals over one predicate",
                first.place,
            )


def given_up(rule: Rule) -> Diagnostic:
    """The note that from this rule on nothing was compared, because the tries of the library were used up."""
    return NOT_COMPARED.at(
        rule.place,
        f"from rule {rule.name} on, rules were not compared: those before it used up {MAXIMUM_TRIES_OF_ALL:,} tries, "
        "because their literals can be matched in too many ways",
        "Use fewer literals over one predicate in a premise, or check fewer rules together",
    )


OPPOSED: Final = RuleFault.warning(
    "HPX207", "opposite conclusions",
    "lives_in(Person X, City A) & grows_in(Plant B, City A) -> can_plant(Person X, Plant B)\n"
    "lived_in(Person X, Period A) & came_after(Plant B, Period A) -> cannot_plant(Person X, Plant B)",
)  # fmt: skip


@check(OPPOSED, NOT_COMPARED, even_if_incomplete=True)
def opposite_conclusions(library: Library) -> Iterator[Diagnostic]:
    """Two rules with opposite conclusions about the same values, where nothing keeps both from applying."""
    earlier: dict[str, list[Rule]] = {}
    pairs_left = MAXIMUM_MEETINGS
    for second in library.rules:
        predicate = second.conclusion.atom.predicate
        reported = 0
        for first in earlier.get(predicate, ()):
            if reported == CONTRARIES_SHOWN or pairs_left == 0:
                yield contraries_given_up(second, reported)
                if pairs_left == 0:
                    return
                break  # of this rule
            pairs_left -= 1
            if can_meet(first, second, library):
                reported += 1
                yield OPPOSED.at(
                    second.place,
                    f"rule {second.name} concludes {predicate} and rule {first.name} the opposite, "
                    f"{first.conclusion.atom.predicate}, but their premises can hold together",
                    "Add a literal to one premise that excludes the other",
                    first.place,
                )
        # Under the opposite, by which a later rule looks it up.
        if opposite := library.opposite_of(predicate):
            earlier.setdefault(opposite, []).append(second)


def contraries_given_up(rule: Rule, reported: int) -> Diagnostic:
    """The note that the search for opposite conclusions ended at this rule: enough were `reported` for it, or the
    pairs of the library were used up.
    """
    if reported == CONTRARIES_SHOWN:
        return NOT_COMPARED.at(
            rule.place,
            f"rule {rule.name} concludes the opposite of more than {reported} rules; the rest were not compared",
            "Fix the reported ones, then check again",
        )
    return NOT_COMPARED.at(
        rule.place,
        f"from rule {rule.name} on, opposite conclusions were not looked for: {MAXIMUM_MEETINGS:,} pairs of rules were "
        "compared before",
        "Check fewer rules together",
    )


def _never_applies(rule: Rule, library: Library) -> bool:
    return divides_by_zero(rule.premise, library) or bool(contradiction(rule.premise, library))


def can_meet(first: Rule, second: Rule, library: Library) -> bool:
    """True if both rules can apply to the same arguments of their conclusions."""
    if divides_by_zero((*first.premise, *second.premise), library):
        return False
    second = _renamed_apart(second)
    first_arguments, second_arguments = first.conclusion.atom.arguments, second.conclusion.atom.arguments
    if len(first_arguments) != len(second_arguments):
        return False
    equations: list[Comparison] = []
    for left, right in zip(first_arguments, second_arguments, strict=True):
        # Unrelated types are taken to have no common values.
        both = (left.data_type, right.data_type) if isinstance(left, Variable) and isinstance(right, Variable) else None
        if both is not None and library.most_specific(both) is None:
            return False
        equations.append(Comparison("=", left, right))
    return not contradiction((*first.premise, *second.premise, *equations), library)


def _renamed_apart(rule: Rule) -> Rule:
    """The rule with a `'` at each variable, which no file can write: no variable is shared with another rule."""
    primed = {variable.name: replace(variable, name=f"{variable.name}'") for variable in rule.variables}
    return replace(
        rule,
        premise=tuple(item.replaced(primed) for item in rule.premise),
        conclusion=rule.conclusion.replaced(primed),
    )


PAIR_CHECKS: tuple[Check, ...] = (duplicate_and_subsumed_rules, opposite_conclusions)
