"""Faults: the kinds of diagnostics for well-formed rules, each with an example; and the type of a check.

The faults of static checks are defined beside their checks (`rule_checks.py`, `predicate_checks.py`, `pair_checks.py`).
The others are defined here, because `docs/language.md` lists them and nothing below may import `engine/`, which finds
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from hapax.grammar.errors import Diagnostic, Place, Severity
from hapax.grammar.rules import Library


@dataclass(frozen=True, slots=True)
class RuleFault:
    """A kind of diagnostic for well-formed rules. The example is a rule file that has exactly this fault.

    `mended`: the example without the fault; empty for faults that other rules do not mend.
    """

    code: str
    severity: Severity
    name: str
    example: str
    mended: str = ""

    @classmethod
    def error(cls, code: str, name: str, example: str, mended: str = "") -> RuleFault:
        return cls(code, Severity.ERROR, name, example, mended)

    @classmethod
    def warning(cls, code: str, name: str, example: str, mended: str = "") -> RuleFault:
        return cls(code, Severity.WARNING, name, example, mended)

    @classmethod
    def note(cls, code: str, name: str, example: str, mended: str = "") -> RuleFault:
        return cls(code, Severity.NOTE, name, example, mended)

    def at(self, place: Place, message: str, remedy: str, *related: Place) -> Diagnostic:
        """A diagnostic of this kind."""
        return Diagnostic(self.code, self.severity, place, message, remedy, related)


Finder: TypeAlias = Callable[..., Iterable[Diagnostic]]
"""A function of a library and of the faults that it finds."""


@dataclass(frozen=True, slots=True)
class Check:
    """A function that finds diagnostics in a library, and the kinds that it can find."""

    find: Finder
    faults: tuple[RuleFault, ...]

    def __call__(self, library: Library) -> Iterable[Diagnostic]:
        return self.find(library, *self.faults)


def check(*faults: RuleFault) -> Callable[[Finder], Check]:
    """Decorator that makes a `Check` of a function."""
    return lambda find: Check(find, faults)


# Of a knowledge base (`engine/kb_checks.py`, `engine/entailment/entailment_checks.py`). The examples are rules that
# facts, or entailments between predicates, then contradict.

BOTH_WAYS: Final = RuleFault.error(
    "HPX401", "opposites derived",
    "lives_in(Person X, City A) & grows_in(Plant B, City A) -> can_plant(Person X, Plant B)\n"
    "rents(Person X, Flat A) & has_no_room_for(Flat A, Plant B) -> cannot_plant(Person X, Plant B)",
)  # fmt: skip
TWO_VALUES: Final = RuleFault.error(
    "HPX402", "functional predicate with two values", "functional was_built_in(Tower, Year)"
)  # fmt: skip
BROKEN_DECLARATION: Final = RuleFault.error(
    "HPX403", "facts that break a declaration",
    "oracle borders(Country, Country)\nirreflexive borders/2",
)  # fmt: skip
UNFIT_FACTS: Final = RuleFault.error(
    "HPX404", "facts that do not fit the declaration of their predicate",
    "type Feet < Number\ngiven lies_at(Airport, Feet)",
)  # fmt: skip
CONTRARY_STATEMENTS: Final = RuleFault.warning("HPX411", "opposite statements", BOTH_WAYS.example)
DISJOINT_TYPES: Final = RuleFault.warning(
    "HPX412", "constant of disjoint types",
    "oracle wrote(Author, Book)\noracle is_in(Ingredient, Dish)\ntype Author < Person",
)  # fmt: skip
REVERSED: Final = RuleFault.warning(
    "HPX413", "rule that reverses an entailment",
    "went_to(Person X, Shop A) & is_in(Shop A, City B) -> shopped_in(Person X, Shop A)",
)  # fmt: skip
REDUNDANT: Final = RuleFault.warning(
    "HPX414", "redundant rule by entailment",
    "sells(Shop A, Food B) & shopped_in(Person X, Shop A) -> went_to(Person X, Shop A)",
)  # fmt: skip
CONTRADICTED: Final = RuleFault.warning(
    "HPX415", "contradicting rules by entailment",
    "shopped_in(Person X, Shop A) & sells(Shop A, Food B) -> can_eat(Person X, Food B)\n"
    "is_allergic_to(Person X, Allergen A) & is_in(Allergen A, Food B) -> cannot_digest(Person X, Food B)",
)  # fmt: skip
UNSOUND: Final = RuleFault.warning(
    "HPX416", "rule with false statements",
    "follows(Person X, Diet A) & is_excluded_by(Food E, Diet A) & is_food(Food B) & not is_excluded_by(Food B, Diet A) "
    "-> may_eat(Person X, Food B)",
)  # fmt: skip
PRODUCT: Final = RuleFault.warning(
    "HPX418", "accidental product",
    "@generic none\nis_born_in(Person P, Year A) & was_built_in(Tower T, Year B) & A < B -> is_old(Person P)",
)  # fmt: skip
UNRELATED_TYPES: Final = RuleFault.note(
    "HPX421", "constants of unrelated types",
    "oracle orbits(Moon, Planet)\noracle is_alloyed_in(Metal, Alloy)",
)  # fmt: skip
OTHER_NAME: Final = RuleFault.warning(
    "HPX422", "name that a reference spells otherwise",
    'type Country < Location\ngiven lives_in(Person, Country)\nfact lives_in("Kofi", "Côte d\'Ivoire")',
)  # fmt: skip
MANY_COMBINATIONS: Final = RuleFault.note(
    "HPX423", "rule with many combinations",
    "@generic none\nis_guest(Person P) & is_dish(Dish D) -> may_order(Person P, Dish D)",
)  # fmt: skip

KB_FAULTS: tuple[RuleFault, ...] = (
    BOTH_WAYS,
    TWO_VALUES,
    BROKEN_DECLARATION,
    UNFIT_FACTS,
    CONTRARY_STATEMENTS,
    DISJOINT_TYPES,
    REVERSED,
    REDUNDANT,
    CONTRADICTED,
    UNSOUND,
    PRODUCT,
    UNRELATED_TYPES,
    OTHER_NAME,
    MANY_COMBINATIONS,
)

# By a model's judgement (`engine/expansion/sentences.py`). The examples are rules that a model may object to.

OUT_OF_SCOPE: Final = RuleFault.warning(
    "HPX501", "question beyond a model's knowledge",
    "plants(Person X, Tree A) & was_watered_by(Tree A, Gardener B) -> should_thank(Person X, Gardener B)",
)  # fmt: skip
SENSELESS: Final = RuleFault.warning(
    "HPX502", "statement without sense",
    "eats(Person X, Dish A) & is_married_to(Dish A, Country B) -> should_visit(Person X, Country B)",
)  # fmt: skip

MODEL_FAULTS: tuple[RuleFault, ...] = (OUT_OF_SCOPE, SENSELESS)
