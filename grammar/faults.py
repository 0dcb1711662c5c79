"""What `check` can find: a code, a severity, a name and a rule text that shows it. Checks, tests and docs read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from grammar.errors import Diagnostic, Severity
from grammar.rules import Place


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault of rules that are well formed. The example is a rule file that has it."""

    code: str
    severity: Severity
    name: str
    example: str

    def at(self, place: Place, message: str, remedy: str, *related: Place) -> Diagnostic:
        return Diagnostic(self.code, self.severity, place, message, remedy, related)


def _error(code: str, name: str, example: str) -> Fault:
    return Fault(code, Severity.ERROR, name, example)


def _warning(code: str, name: str, example: str) -> Fault:
    return Fault(code, Severity.WARNING, name, example)


UNBOUND_CONCLUSION: Final = _error(
    "HPX101", "unbound head variable",
    "eats(Person X, Food A) & is_of(Food A, Ingredient Z) & is_in(Ingredient Z, Dish B) -> can_eat(Person P, Dish B)",
)  # fmt: skip
TWO_TYPES: Final = _error(
    "HPX102", "one variable with two unrelated types",
    "eats(Person X, Food A) & is_in(Ingredient Z, Animal A) -> knows_taste_of(Person X, Ingredient Z)",
)  # fmt: skip
UNCONNECTED: Final = _error(
    "HPX103", "unconnected premise",
    "eats(Person X, Food A) & flows_through(River R, City B) -> can_visit(Person X, City B)",
)  # fmt: skip
TAUTOLOGY: Final = _error(
    "HPX104", "tautology",
    "likes(Person X, Dish B) & is_in(Ingredient Z, Dish B) -> likes(Person X, Dish B)",
)  # fmt: skip
FEW_VARIABLES: Final = _error(
    "HPX105", "fewer than three variables",
    "allergic_to(Person X, Allergen A) -> reacts_badly_to(Person X, Allergen A)",
)  # fmt: skip
CLASHING_DECLARATIONS: Final = _error(
    "HPX106", "two declarations of one predicate",
    "oracle is_in(Ingredient, Dish)\nfunctional is_in(Ingredient, Dish)",
)  # fmt: skip
CLASHING_USE: Final = _error(
    "HPX107", "use against the declaration",
    "oracle is_in(Ingredient, Dish)\n"
    "eats(Person X, Animal A) & is_in(Animal A, Dish B) -> likes(Person X, Dish B)",
)  # fmt: skip
NEVER: Final = _error(
    "HPX108", "premise that can never hold",
    "lived(Person X, Year A) & built(Tower B, Year C) & A < C & C < A -> saw(Person X, Tower B)",
)  # fmt: skip
UNSTRATIFIED: Final = _error(
    "HPX109", "predicate on its own negation",
    "likes(Person X, Dish A) & is_like(Dish A, Dish B) & not may_eat(Person X, Dish A) -> may_eat(Person X, Dish B)",
)  # fmt: skip
UNREACHABLE: Final = _error(
    "HPX110", "variable that nothing gives a value to",
    "computed is_before(Year A, Year B) := A < B\n"
    "fought_in(Person X, War A) & ended_in(War A, Year E) & is_before(Year E, Year Y) -> could_see(Person X, Year Y)",
)  # fmt: skip
UNSAFE_NEGATION: Final = _error(
    "HPX111", "negated literal with an unbound variable",
    "eats(Person X, Dish A) & is_in(Herb Z, Dish A) & not spoils(Spice S, Dish A) -> may_eat(Person X, Herb Z)",
)  # fmt: skip
ORDER_OF_TEXTS: Final = _error(
    "HPX112", "texts compared by order",
    "likes(Person X, Dish A) & is_like(Dish A, Dish B) & A < B -> may_eat(Person X, Dish B)",
)  # fmt: skip
NUMBER_AND_TEXT: Final = _error(
    "HPX113", "numbers and texts mixed",
    "lived(Person X, Year A) & built(Tower B, Year C) & A = B -> saw(Person X, Tower B)",
)  # fmt: skip
COMPUTED_CONCLUDED: Final = _error(
    "HPX114", "computed predicate as a conclusion or fact",
    "computed is_before(Year A, Year B) := A < B\nfact is_before(1815, 1876)",
)  # fmt: skip
TYPE_CIRCLE: Final = _error("HPX115", "circle of subtypes", "type Food < Meal\ntype Meal < Food")
OWN_OPPOSITE: Final = _error("HPX116", "predicate that is its own opposite", "opposite can_eat can_eat")

UNDECLARED: Final = _warning(
    "HPX201", "undeclared predicate",
    "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
)  # fmt: skip
NO_TEMPLATE: Final = _warning("HPX202", "no templates", "oracle is_in(Ingredient, Dish)")
INCOMPLETE_TEMPLATE: Final = _warning(
    "HPX203", "incomplete templates", 'oracle is_in(Ingredient, Dish): "[1] is in it"'
)
DIFFERENT_USES: Final = _warning(
    "HPX204", "one predicate over unrelated types",
    "exists(Person X, Place A) & exists(Plant B, Time C) & comes_to(Time C, Place A) -> sees(Person X, Plant B)",
)  # fmt: skip
DUPLICATE: Final = _warning(
    "HPX205", "duplicate rule",
    "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
    "is_in(Food C, Dish D) & eats(Person Y, Food C) -> may_eat(Person Y, Dish D)",
)  # fmt: skip
SUBSUMED: Final = _warning(
    "HPX206", "subsumed rule",
    "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)\n"
    "eats(Person X, Food A) & is_in(Food A, Dish B) & is_tasty(Dish B) -> may_eat(Person X, Dish B)",
)  # fmt: skip
OPPOSED: Final = _warning(
    "HPX207", "opposite conclusions from premises that can hold together",
    "lives_in(Person X, City A) & grows_in(Plant B, City A) -> can_plant(Person X, Plant B)\n"
    "lived_in(Person X, Period A) & came_after(Plant B, Period A) -> cannot_plant(Person X, Plant B)",
)  # fmt: skip
NO_ENTITY: Final = _warning(
    "HPX208", "measure of something without a name",
    "plants(Person X, Tree A) & has_height(Tree A, Height B) -> needs(Person X, Height B)",
)  # fmt: skip
NOBODY: Final = _warning(
    "HPX209", "question about persons without a name",
    "@generic X\ninvites(Person X, Person A) & likes(Person A, Dish B) -> should_cook(Person X, Dish B)",
)  # fmt: skip
VAGUE: Final = _warning(
    "HPX210", "vague question",
    "eats(Person X, Food A) & is_related_to(Food A, Dish B) -> may_eat(Person X, Dish B)",
)  # fmt: skip
ASKED_ARITHMETIC: Final = _warning(
    "HPX211", "arithmetic asked of a model",
    "is_of_age(Person A, Age X) & needs(Car B, Age Y) & is_smaller_than(Age X, Age Y) -> cannot_drive(Person A, Car B)",
)  # fmt: skip
UNKNOWN_OPPOSITE: Final = _warning("HPX212", "opposite of an unknown predicate", "opposite can_dance cannot_dance")
TWO_ARITIES: Final = _warning(
    "HPX213", "one name with two numbers of arguments",
    "eats(Person X, Food A) & eats(Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
)  # fmt: skip

DECLARED_TWICE: Final = Fault(
    "HPX301", Severity.NOTE, "the same declaration twice",
    "oracle is_in(Ingredient, Dish)\noracle is_in(Ingredient, Dish)",
)  # fmt: skip
BY_POSITION: Final = Fault(
    "HPX302", Severity.NOTE, "generic variable by default, and no person",
    "has_room_for(Room B, Furniture C) & is_smaller_than(Furniture A, Furniture C) -> can_fit_in(Furniture A, Room B)",
)  # fmt: skip
NOT_COMPARED: Final = Fault(
    "HPX303", Severity.NOTE, "comparison of two rules given up",
    "lives_in(Person X, Town A) & leads_to(Town A, Town B) & leads_to(Town B, Town C) & leads_to(Town C, Town D)\n"
    "  & leads_to(Town D, Town E) & leads_to(Town E, Town F) & leads_to(Town F, Town G) & leads_to(Town G, Town H)\n"
    "  & leads_to(Town H, Town I) & leads_to(Town I, Town J) & leads_to(Town J, Town K) & leads_to(Town K, Town L)\n"
    "  & leads_to(Town L, Town M) & leads_to(Town M, Town A) -> can_tour(Person X, Town A)\n"
    "lives_in(Person X, Town A) & leads_to(Town A, Town B) & leads_to(Town B, Town A) & leads_to(Town A, Town C)\n"
    "  & leads_to(Town C, Town A) & leads_to(Town D, Town B) & leads_to(Town B, Town D) & leads_to(Town D, Town C)\n"
    "  & leads_to(Town C, Town D) -> can_tour(Person X, Town A)",
)  # fmt: skip

FAULTS: tuple[Fault, ...] = tuple(value for value in tuple(globals().values()) if isinstance(value, Fault))
"""All of the above, in order."""

# Against a knowledge base (`engine/kb_checks.py`); the examples are the rules that facts then contradict.

BOTH_WAYS: Final = _error(
    "HPX401", "derived both ways",
    "lives_in(Person X, City A) & grows_in(Plant B, City A) -> can_plant(Person X, Plant B)\n"
    "rents(Person X, Flat A) & has_no_room_for(Flat A, Plant B) -> cannot_plant(Person X, Plant B)",
)  # fmt: skip
TWO_VALUES: Final = _error(
    "HPX402", "functional predicate with two values", "functional was_built_in(Tower, Year)"
)  # fmt: skip
CONTRARY_STATEMENTS: Final = _warning("HPX411", "contrary statements", BOTH_WAYS.example)
DISJOINT_TYPES: Final = _warning(
    "HPX412", "constant under types that exclude each other",
    "oracle wrote(Author, Book)\noracle is_in(Ingredient, Dish)\ntype Author < Person",
)  # fmt: skip
REVERSED: Final = _warning(
    "HPX413", "rule against the direction of an entailment",
    "went_to(Person X, Shop A) & is_in(Shop A, City B) -> shopped_in(Person X, Shop A)",
)  # fmt: skip
REDUNDANT: Final = _warning(
    "HPX414", "rule that entailments make redundant",
    "sells(Shop A, Food B) & shopped_in(Person X, Shop A) -> went_to(Person X, Shop A)",
)  # fmt: skip
CONTRADICTED: Final = _warning(
    "HPX415", "rules that contradict each other by an entailment",
    "shopped_in(Person X, Shop A) & sells(Shop A, Food B) -> can_eat(Person X, Food B)\n"
    "is_allergic_to(Person X, Allergen A) & is_in(Allergen A, Food B) -> cannot_digest(Person X, Food B)",
)  # fmt: skip
UNRELATED_TYPES: Final = Fault(
    "HPX421", Severity.NOTE, "constants under unrelated types",
    "oracle orbits(Moon, Planet)\noracle is_alloyed_in(Metal, Alloy)",
)  # fmt: skip

KB_FAULTS: tuple[Fault, ...] = (
    BOTH_WAYS,
    TWO_VALUES,
    CONTRARY_STATEMENTS,
    DISJOINT_TYPES,
    REVERSED,
    REDUNDANT,
    CONTRADICTED,
    UNRELATED_TYPES,
)

# By a model's judgement (`engine/scope.py`); the examples are rules that a model may object to.

OUT_OF_SCOPE: Final = _warning(
    "HPX501", "question beyond a model's knowledge",
    "plants(Person X, Tree A) & was_watered_by(Tree A, Gardener B) -> should_thank(Person X, Gardener B)",
)  # fmt: skip
SENSELESS: Final = _warning(
    "HPX502", "statement that makes no sense",
    "eats(Person X, Dish A) & is_married_to(Dish A, Country B) -> should_visit(Person X, Country B)",
)  # fmt: skip

MODEL_FAULTS: tuple[Fault, ...] = (OUT_OF_SCOPE, SENSELESS)
