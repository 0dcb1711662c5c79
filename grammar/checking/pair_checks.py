"""Checks of rules against each other: duplicates, subsumed rules, opposite conclusions, and rules implied by others.

A check declares its faults in its decorator and gets them as arguments. A new check is a function and a line in
PAIR_CHECKS.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Final, TypeAlias

from hapax.grammar.checking.faults import Check, RuleFault, check
from hapax.grammar.checking.satisfiable import contradiction, divides_by_zero, never_holds
from hapax.grammar.checking.subsumption import MAXIMUM_TRIES, MAXIMUM_TRIES_OF_ALL, Features, Matcher, features
from hapax.grammar.errors import Diagnostic
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Comparison, Constant, Literal, Term, Variable, grouped, reached

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
    even_if_incomplete=True,
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
    even_if_incomplete=True,
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


# Rules that others imply together, one concluding what the next one needs

MAXIMUM_ATOMS = 300
"""Atoms that are concluded from one premise before the rule is given up."""

MAXIMUM_CHAIN_TRIES = 1_000_000
"""Pairs of literals that are tried for all rules of a library: about a second."""


@check(
    RuleFault.warning(
        "HPX222", "rule implied by others together",
        "@generic none\nflows_into(River A, River B) -> drains_into(River A, River B)\n"
        "@generic none\nflows_into(River A, River B) & drains_into(River B, River C) -> drains_into(River A, River C)\n"
        "@generic none\nflows_into(River A, River B) & flows_into(River B, River C) -> drains_into(River A, River C)",
        "@generic none\n"
        "flows_into(River A, River B) -> drains_into(River A, River B)\n"
        "@generic none\n"
        "flows_into(River A, River B) & drains_into(River B, River C) -> drains_into(River A, River C)",
    ),
    NOT_COMPARED,
    even_if_incomplete=True,
)  # fmt: skip
def rules_implied_by_others(library: Library, implied: RuleFault, not_compared: RuleFault) -> Iterator[Diagnostic]:
    """Rules whose conclusion follows from their premise by at least two other rules.

    A rule that was reported is not used for later ones, so that all reported rules can be removed together.
    """
    matcher = Matcher(library, MAXIMUM_CHAIN_TRIES)
    # Symmetry and transitivity imply rules, too. A conclusion with an unbound variable would pass for one of constants.
    declared = (rule for rule in library.closure_rules if rule.conclusion.atom.indicator in library.generating)
    certain = (rule for rule in (*library.rules, *declared) if not rule.unbound and rule.chance is None)
    implying = grouped(certain, lambda rule: rule.conclusion.atom.indicator)

    @cache
    def behind(indicator: str) -> list[Rule]:
        """The rules on which a predicate rests."""
        below = reached([indicator], lambda name: chain.from_iterable(map(_needed, implying.get(name, ()))))
        return list(chain.from_iterable(implying.get(name, ()) for name in below))

    reported: set[str] = set()
    for rule in library.rules:
        indicator = rule.conclusion.atom.indicator
        chaining = (known for known in implying.get(indicator, ()) if not implying.keys().isdisjoint(_needed(known)))
        # A declaration or an entailment is no rule that could be removed.
        if rule.chance is not None or rule.by_declaration or all(known is rule for known in chaining):
            continue
        others = [known for known in behind(indicator) if known is not rule and known.name not in reported]
        used = _implying(rule, others, matcher)
        if used is None:
            yield not_compared.at(
                rule.place,
                f"the search for other rules that together imply rule {rule.name} was given up, because too much "
                "follows from its premise, or from those of the rules before it",
                "Look for them yourself, use fewer literals over one predicate, or check fewer rules together",
            )
            if matcher.left <= 0:
                return
        elif len(used) > 1 and not any(matcher.subsumes(rule, known) for known in used):
            reported.add(rule.name)
            names = [f'"{known.name}"' if known.by_declaration else known.name for known in used]
            listed = f"{', '.join(names[:-1])} and {names[-1]}"
            yield implied.at(
                rule.place,
                f"everything that rule {rule.name} concludes already follows from {listed}",
                f"Remove rule {rule.name}, or correct the other rule that concludes too much",
                *(known.place for known in used),
            )


AtomKey: TypeAlias = tuple[str, tuple[Term | str, ...]]


def _implying(rule: Rule, others: Sequence[Rule], matcher: Matcher) -> list[Rule] | None:
    """The rules by which the conclusion follows from the premise, in their order; None if too much follows from it.

    The variables of the rule stand for constants. Of a tautology, which is a fault of its own, none are used.
    """
    atoms = {_key(literal.atom): literal.atom for literal in rule.literals if not literal.negated}
    used: dict[AtomKey, dict[int, Rule]] = {key: {} for key in atoms}
    # Comparisons and negated literals cannot be concluded: those of the premise itself must cover a rule's.
    tests = [item for item in rule.premise if not isinstance(item, Literal) or item.negated]
    goal, count = _key(rule.conclusion.atom), 0
    while goal not in atoms and count < len(atoms):
        count = len(atoms)
        extended = replace(rule, premise=(*map(Literal, atoms.values()), *tests))
        for known in others:
            # A rule that does not apply costs a try as well: rounds times rules may be many.
            matcher.left -= 1
            needed = [literal.atom for literal in known.literals if not literal.negated]
            is_met = {indicator for indicator, _ in atoms}.issuperset(atom.indicator for atom in needed)
            for binding in matcher.bindings(known.premise, extended) if needed and is_met else ():
                atom = known.conclusion.atom.replaced(binding)
                atoms.setdefault(_key(atom), atom)
                below = [used.get(_key(item.replaced(binding)), {}) for item in needed]
                used.setdefault(_key(atom), dict(ChainMap({id(known): known}, *below)))
            if matcher.gave_up or len(atoms) > MAXIMUM_ATOMS:
                return None
    places = {id(known): (known.place.file, known.place.line, known.place.column) for known in others}
    return sorted(used.get(goal, {}).values(), key=lambda known: places[id(known)])


def _needed(rule: Rule) -> list[str]:
    """The predicates of the premise that must hold."""
    return [literal.atom.indicator for literal in rule.literals if not literal.negated]


def _key(atom: Atom) -> AtomKey:
    """The atom without the types of its variables, of which a rule may name a subtype at one place."""
    return atom.indicator, tuple(term if isinstance(term, Constant) else term.name for term in atom.arguments)


PAIR_CHECKS: tuple[Check, ...] = (duplicate_and_subsumed_rules, opposite_conclusions, rules_implied_by_others)
