"""Checks of rules against each other: duplicates, subsumed rules, opposite conclusions.

A check declares its faults in its decorator and gets them as arguments. A new check is a function and a line in
PAIR_CHECKS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hapax.grammar.checking.faults import Check, RuleFault, check
from hapax.grammar.checking.satisfiable import contradiction, divides_by_zero, never_holds
from hapax.grammar.checking.subsumption import MAXIMUM_TRIES, MAXIMUM_TRIES_OF_ALL, Features, Matcher, features
from hapax.grammar.errors import Diagnostic
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Comparison, Variable

CONTRARIES_SHOWN = 20
"""Rules with the opposite conclusion reported for one rule."""

MAXIMUM_MEETINGS = 50_000
"""Pairs of rules with opposite conclusions examined per library: about ten seconds."""

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


@check(
    RuleFault.warning(
        "HPX205", "duplicate rule",
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
        "is_in(Food C, Dish D) & eats(Person Y, Food C) -> may_eat(Person Y, Dish D)",
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
    ),
    RuleFault.warning(
        "HPX206", "subsumed rule",
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
        "eats(Person X, Food A) & is_in(Food A, Dish B) & is_tasty(Dish B) -> may_eat(Person X, Dish B)",
        "eats(Person X, Food A) & is_in(Food A, Dish B) & is_tasty(Dish B) -> may_eat(Person X, Dish B)",
    ),
    NOT_COMPARED,
)  # fmt: skip
def duplicate_and_subsumed_rules(
    library: Library, equal: RuleFault, subsumed: RuleFault, not_compared: RuleFault
) -> Iterator[Diagnostic]:
    """Rules that are equal up to renaming, and rules whose every conclusion another rule draws from a weaker premise.

    Of equal rules each is reported once, against the first of them.
    """
    matcher = Matcher(library, MAXIMUM_TRIES_OF_ALL)
    for rules in library.concluding.values():
        earlier: list[tuple[Rule, Features]] = []
        # Each rule that holds by chance makes its conclusion likelier.
        for rule in (rule for rule in rules if rule.chance is None):
            if matcher.left <= 0:
                yield not_compared.at(
                    rule.place,
                    f"from rule {rule.name} on, rules were not compared: those before it used up "
                    f"{MAXIMUM_TRIES_OF_ALL:,} tries, because their literals can be matched in too many ways",
                    "Use fewer literals over one predicate in a premise, or check fewer rules together",
                )
                return
            own = features(rule)
            # A rule can subsume another only if the other has all its features.
            related = [(known, its <= own, own <= its) for known, its in earlier if its <= own or own <= its]
            pairs = [
                (known, forward and matcher.subsumes(known, rule), backward and matcher.subsumes(rule, known))
                for known, forward, backward in related
            ]
            # Its other pairs would only repeat what the rule that it equals has reported already.
            duplicate = next((known for known, forward, backward in pairs if forward and backward), None)
            if duplicate is not None:
                yield equal.at(
                    rule.place,
                    f"rule {rule.name} duplicates rule {duplicate.name}",
                    "Remove one of them",
                    duplicate.place,
                )
                continue
            earlier.append((rule, own))
            for known, forward, backward in pairs:
                if forward or backward:
                    # What a premise that never holds concludes follows from anything; it has a fault of its own.
                    if not any(never_holds(part.premise, library) for part in (known, rule)):
                        general, special = (known, rule) if forward else (rule, known)
                        yield subsumed.at(
                            special.place,
                            f"everything that rule {special.name} concludes already follows from rule {general.name}, "
                            "which has a weaker premise",
                            f"Remove rule {special.name}, or add the missing condition to the premise of rule "
                            f"{general.name}",
                            general.place,
                        )
                elif None in (forward, backward):
                    yield not_compared.at(
                        rule.place,
                        f"the comparison of rule {rule.name} with rule {known.name} was given up after "
                        f"{MAXIMUM_TRIES:,} tries, because their literals can be matched in too many ways",
                        "Compare them yourself, or use fewer literals over one predicate",
                        known.place,
                    )


@check(
    RuleFault.warning(
        "HPX207", "opposite conclusions",
        "lives_in(Person X, City A) & grows_in(Plant B, City A) -> can_plant(Person X, Plant B)\n"
        "lived_in(Person X, Period A) & came_after(Plant B, Period A) -> cannot_plant(Person X, Plant B)",
        "lives_in(Person X, City A) & grows_in(Plant B, City A) & is_hardy(Plant B) -> can_plant(Person X, Plant B)\n"
        "lived_in(Person X, Period A) & came_after(Plant B, Period A) & not is_hardy(Plant B)\n"
        "  -> cannot_plant(Person X, Plant B)",
    ),
    NOT_COMPARED,
)  # fmt: skip
def opposite_conclusions(library: Library, opposed: RuleFault, not_compared: RuleFault) -> Iterator[Diagnostic]:
    """Two rules with opposite conclusions about the same values, where nothing keeps both from applying."""
    earlier: dict[str, list[Rule]] = {}
    pairs_left = MAXIMUM_MEETINGS
    for second in library.rules:
        predicate = second.conclusion.atom.predicate
        reported = 0
        for first in earlier.get(predicate, ()):
            if pairs_left == 0:
                yield not_compared.at(
                    second.place,
                    f"from rule {second.name} on, opposite conclusions were not looked for: {MAXIMUM_MEETINGS:,} pairs "
                    "of rules were compared before",
                    "Check fewer rules together",
                )
                return
            if reported == CONTRARIES_SHOWN:
                problem = f"rule {second.name} concludes the opposite of more than {reported} rules"
                remedy = "Fix the reported ones, then check again"
                yield not_compared.at(second.place, f"{problem}; the rest were not compared", remedy)
                break
            pairs_left -= 1
            if can_meet(first, second, library):
                reported += 1
                yield opposed.at(
                    second.place,
                    f"rule {second.name} concludes {predicate} and rule {first.name} the opposite, "
                    f"{first.conclusion.atom.predicate}, but their premises can hold together",
                    "Add a literal to one premise that excludes the other",
                    first.place,
                )
        # Under the opposite, by which a later rule looks it up.
        if opposite := library.opposite_of(predicate):
            earlier.setdefault(opposite, []).append(second)


def can_meet(first: Rule, second: Rule, library: Library) -> bool:
    """True if both rules can apply to the same arguments of their conclusions."""
    # With a `'` at each variable, which no file can write, the second shares none with the first.
    primed = {variable.name: replace(variable, name=f"{variable.name}'") for variable in second.variables}
    premise = (*first.premise, *(item.replaced(primed) for item in second.premise))
    arguments = first.conclusion.atom.arguments, second.conclusion.atom.replaced(primed).arguments
    if divides_by_zero(premise, library) or len(arguments[0]) != len(arguments[1]):
        return False
    pairs = list(zip(*arguments, strict=True))
    for pair in pairs:
        types = tuple(term.data_type for term in pair if isinstance(term, Variable))
        # Unrelated types are taken to have no common values.
        if types and library.most_specific(types) is None:
            return False
    return not contradiction((*premise, *(Comparison("=", *pair) for pair in pairs)), library)


PAIR_CHECKS: tuple[Check, ...] = (duplicate_and_subsumed_rules, opposite_conclusions)
