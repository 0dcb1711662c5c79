"""Check of rules that other rules imply together, one concluding what the next one needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from hapax.grammar.errors import Diagnostic
from hapax.grammar.faults import Check, RuleFault, check
from hapax.grammar.pair_checks import NOT_COMPARED
from hapax.grammar.rules import Library, Rule
from hapax.grammar.subsumption import Matcher
from hapax.grammar.terms import Atom, Constant, Literal, Term

MAXIMUM_ATOMS = 300
"""Atoms that are concluded from one premise before the rule is given up."""

MAXIMUM_TRIES = 1_000_000
"""Pairs of literals that are tried for all rules of a library: about a second."""

IMPLIED: Final = RuleFault.warning(
    "HPX222", "rule implied by others together",
    "@generic none\nflows_into(River A, River B) -> drains_into(River A, River B)\n"
    "@generic none\nflows_into(River A, River B) & drains_into(River B, River C) -> drains_into(River A, River C)\n"
    "@generic none\nflows_into(River A, River B) & flows_into(River B, River C) -> drains_into(River A, River C)",
)  # fmt: skip

AtomKey: TypeAlias = tuple[str, tuple[Term | str, ...]]


@check(IMPLIED, NOT_COMPARED, even_if_incomplete=True)
def rules_implied_by_others(library: Library) -> Iterator[Diagnostic]:
    """Rules whose conclusion follows from their premise by at least two other rules.

    A rule that was reported is not used for later ones, so that all reported rules can be removed together.
    """
    matcher = Matcher(library, MAXIMUM_TRIES)
    implying_rules = _ImplyingRules(library)
    for rule in library.rules:
        if not implying_rules.may_imply(rule):
            continue
        if matcher.left <= 0:
            yield NOT_COMPARED.at(
                rule.place,
                f"from rule {rule.name} on, it was not looked for rules that others together imply: those before it "
                f"used up {MAXIMUM_TRIES:,} tries",
                "Check fewer rules together",
            )
            return
        consequences = _Consequences(rule, matcher)
        used = consequences.rules_to_conclusion(implying_rules.used_for(rule))
        if consequences.gave_up:
            yield NOT_COMPARED.at(
                rule.place,
                f"the search for other rules that together imply rule {rule.name} was given up, because too much "
                "follows from its premise",
                "Look for them yourself, or use fewer literals over one predicate",
            )
        elif len(used) > 1 and not any(matcher.subsumes(rule, implying) for implying in used):
            implying_rules.reported.add(rule.name)
            names = [f'"{implying.name}"' if implying.by_declaration else implying.name for implying in used]
            others = f"{', '.join(names[:-1])} and {names[-1]}"
            yield IMPLIED.at(
                rule.place,
                f"everything that rule {rule.name} concludes already follows from {others}",
                f"Remove rule {rule.name}, or correct the other rule that concludes too much",
                *(implying.place for implying in used),
            )


class _ImplyingRules:
    """Rules that may imply others: those that are written, and those that symmetry and transitivity stand for."""

    def __init__(self, library: Library) -> None:
        declared = [rule for rule in library.closure_rules if rule.conclusion.atom.indicator in library.generating]
        self.by_conclusion: dict[str, list[Rule]] = {}
        for rule in (*library.rules, *declared):
            # `Atom.replaced` keeps an unbound variable of a conclusion, which would pass for a constant of the premise.
            if not rule.unbound:
                self.by_conclusion.setdefault(rule.conclusion.atom.indicator, []).append(rule)
        self.reported: set[str] = set()
        self._behind: dict[str, list[Rule]] = {}

    def may_imply(self, rule: Rule) -> bool:
        """True if another rule with this conclusion has a premise that rules conclude."""
        return any(
            concluding is not rule and any(self._is_concluded(literal) for literal in concluding.literals)
            for concluding in self.by_conclusion.get(rule.conclusion.atom.indicator, ())
        )

    def _is_concluded(self, literal: Literal) -> bool:
        return not literal.negated and literal.atom.indicator in self.by_conclusion

    def used_for(self, rule: Rule) -> list[Rule]:
        """The other rules on which the predicate of the rule's conclusion rests."""
        indicator = rule.conclusion.atom.indicator
        if indicator not in self._behind:
            self._behind[indicator] = self._rules_behind(indicator)
        behind = self._behind[indicator]
        return [needed for needed in behind if needed is not rule and needed.name not in self.reported]

    def _rules_behind(self, indicator: str) -> list[Rule]:
        found: list[Rule] = []
        seen, waiting = {indicator}, [indicator]
        while waiting:
            for rule in self.by_conclusion.get(waiting.pop(), ()):
                found.append(rule)
                new = {literal.atom.indicator for literal in rule.literals if self._is_concluded(literal)} - seen
                seen |= new
                waiting.extend(sorted(new))
        return found


@dataclass
class _Consequences:
    """The atoms that follow from the premise of a rule, whose variables stand for constants."""

    rule: Rule
    matcher: Matcher
    gave_up: bool = False
    atoms: dict[AtomKey, Atom] = field(default_factory=dict)
    steps: dict[AtomKey, tuple[Rule, tuple[AtomKey, ...]]] = field(default_factory=dict)
    """The rule that concluded an atom first, and the atoms that it needed."""

    def rules_to_conclusion(self, rules: Sequence[Rule]) -> list[Rule]:
        """The rules by which the conclusion follows from the premise; empty if it does not."""
        for literal in self.rule.literals:
            if not literal.negated:
                self.atoms.setdefault(_key(literal.atom), literal.atom)
        goal = _key(self.rule.conclusion.atom)
        if goal in self.atoms:
            return []  # a tautology, which is a fault of its own
        grown = True
        while grown and not self.gave_up and goal not in self.atoms:
            grown = self._applied(rules)
        return [] if self.gave_up or goal not in self.atoms else self._rules_behind(goal)

    def _applied(self, rules: Sequence[Rule]) -> bool:
        """Conclude from all atoms so far, once; True if there are new ones."""
        known = {atom.indicator for atom in self.atoms.values()}
        # Comparisons and negated literals cannot be concluded: those of the premise itself must cover a rule's.
        others = [item for item in self.rule.premise if not isinstance(item, Literal) or item.negated]
        premise = (*map(Literal, self.atoms.values()), *others)
        extended = replace(self.rule, premise=premise)
        count = len(self.atoms)
        for rule in rules:
            # A rule that does not apply costs a try as well: rounds times rules may be many.
            self.matcher.left -= 1
            needed = [literal.atom for literal in rule.literals if not literal.negated]
            if not needed or not known.issuperset(atom.indicator for atom in needed):
                continue
            for binding in self.matcher.bindings(rule.premise, extended):
                atom = rule.conclusion.atom.replaced(binding)
                if _key(atom) not in self.atoms:
                    self.atoms[_key(atom)] = atom
                    self.steps[_key(atom)] = (rule, tuple(_key(item.replaced(binding)) for item in needed))
            if self.matcher.gave_up or len(self.atoms) > MAXIMUM_ATOMS:
                self.gave_up = True
                break
        return len(self.atoms) > count

    def _rules_behind(self, goal: AtomKey) -> list[Rule]:
        """The rules of the steps to an atom, in their order in the file, each once."""
        found: dict[int, Rule] = {}
        waiting, seen = [goal], {goal}
        while waiting:
            step = self.steps.get(waiting.pop())
            if step is not None:
                found[id(step[0])] = step[0]
                new = [key for key in step[1] if key not in seen]
                seen.update(new)
                waiting += new
        return sorted(found.values(), key=lambda rule: (rule.place.file, rule.place.line, rule.place.column))


def _key(atom: Atom) -> AtomKey:
    """The atom without the types of its variables, of which a rule may name a subtype at one place."""
    return atom.indicator, tuple(term if isinstance(term, Constant) else term.name for term in atom.arguments)


CHAIN_CHECKS: tuple[Check, ...] = (rules_implied_by_others,)
