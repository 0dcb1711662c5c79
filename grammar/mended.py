"""The examples of malformed and faulty rules and goals without their fault, by code; `explain` prints them.

Codes of faults that no other rules mend, such as a file that cannot be read, have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MENDED: Final[Mapping[str, str]] = {
    "HPX001": "p(Age A, Age B) & A > B -> q(Age A)",
    "HPX002": "p(T X, T Y) & q(T Y, T Z) -> r(T X, T Z)",
    "HPX003": "p(T X, T Y) & q(T Y, T Z) -> r(T X, T Z)",
    "HPX004": "p(T X, T Y) & q(T Y, T Z) -> r(T X, T Z)",
    "HPX005": "p(T X, T Y) -> q(T X)\np(T X, T Y) -> r(T Y)",
    "HPX006": "p(T X, T Y) & q(T Y) -> r(T X)",
    "HPX007": "opposite q not_q\np(T X, T Y) -> not_q(T X, T Y)",
    "HPX008": "p(Age X, Age Y) & X < Y -> is_below(Age X, Age Y)",
    "HPX009": 'fact p("a")',
    "HPX010": "p(T X) & r(T X) -> q(T X)",
    "HPX011": "p(T X) -> r(T X)\nq(T X) -> r(T X)",
    "HPX012": "p(T X) & q(T X) -> r(T X)",
    "HPX013": "p(T X) -> q(T X)",
    "HPX014": "p(T X) -> q(T X)",
    "HPX015": "has_f(T X, T Z) & p(T Z, T Y) -> q(T X)",
    "HPX016": "p(Age Z, T Y) & r(Age X) & Z = X + 1 -> q(Age X)",
    "HPX017": 'p(T X, "butter") -> q(T X)',
    "HPX018": 'p(T X, "butter") -> q(T X)',
    "HPX019": "type Vehicle < Object",
    "HPX020": "oracle is_in(Ingredient, Dish)",
    "HPX021": "computed p(Year A, Year B) := A < B",
    "HPX022": "opposite can_plant cannot_plant",
    "HPX023": 'fact p("a")\nfact q("a")',
    "HPX024": "@name allergy\np(T X) -> q(T X)",
    "HPX025": "p(T X, Age A, Age B, Age C) & A < B & B < C -> q(T X)",
    "HPX026": "p(Age X) & X < 3 -> q(Age X)",
    "HPX027": "p(Age X) & X >= 3 -> q(Age X)",
    "HPX028": "p(T X) & is_tasty(T X) -> q(T X)",
    "HPX029": 'p(T X) & X = "a" -> q(T X)',
    "HPX030": "p(T X) -> q(T X)",
    "HPX031": "symmetric borders/2",
    "HPX032": "never p(T X) & q(T X)",
    "HPX033": "p(T X, T Y) -> q(T X)",
    "HPX034": "p(T X, T Y) -> q(T X)",
    "HPX035": "oracle is_in(Ingredient, Dish)",
    "HPX036": "p(Age A) & A < 3 -> q(Age A)",
    "HPX037": "is_in_food(Food X, Dish Y) -> q(Food X)",
    "HPX040": "is_allergic_to(Person X, Food A) -> p(Person X, Food A)",
    "HPX041": "p(Person X, Food A) -> q(Food A)",
    "HPX042": "p(Person X, Food A) -> q(Food A)",
    "HPX043": 'fact was_born_in("ada", 1815)',
    "HPX044": "oracle is_in(Ingredient, Dish)",
    "HPX045": "computed p(Year A, Year B) := B < 3",
    "HPX046": "computed p(Year A, Year C) := A < C",
    "HPX047": 'oracle p(A, B): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    "HPX048": 'oracle p(A, B): "[1] is in [2]"',
    "HPX049": "@name allergy\np(Person X) -> q(Person X)",
    "HPX050": "@polarity negative\np(Person X) -> q(Person X)",
    "HPX051": "@name a\np(Person X) -> q(Person X)",
    "HPX052": "@name a\np(Person X) -> q(Person X)",
    "HPX053": "@name a\np(Person X) -> q(Person X)\n@name b\nq(Person X) -> r(Person X)",
    "HPX054": 'fact p("a\\\\q")',
    "HPX055": "fact p(1e300)",
    "HPX058": "disjoint Food Allergen, Person",
    "HPX059": "closed has_capital/2 by 1",
    "HPX062": "is_bird(Animal X) -> can_fly(Animal X) unless is_penguin(Animal X)",
    "HPX063": 'import "example.rules"',
    "HPX064": 'import "example.rules"',
    "HPX070": "p(X)",
    "HPX071": "p(tom)",
    "HPX072": "p(X)",
    "HPX073": "p(X), Y is 2 + 1",
    "HPX074": "aggregate_all(count, p(X), A)",
    "HPX076": "p(X)",
    "HPX077": "X is 1 / 2",
    "HPX078": "length(L, 2)",
    "HPX101": (
        "eats(Person X, Food A) & is_of(Food A, Ingredient Z) & is_in(Ingredient Z, Dish B) "
        "-> can_eat(Person X, Dish B)"
    ),
    "HPX102": "eats(Person X, Food A) & is_in(Ingredient Z, Food A) -> knows_taste_of(Person X, Ingredient Z)",
    "HPX103": (
        "eats(Person X, Food A) & is_sold_in(Food A, City B) & flows_through(River R, City B) "
        "-> can_visit(Person X, City B)"
    ),
    "HPX104": "likes(Person X, Ingredient Z) & is_in(Ingredient Z, Dish B) -> may_like(Person X, Dish B)",
    "HPX105": ("allergic_to(Person X, Allergen A) & is_in(Allergen A, Dish B) -> reacts_badly_to(Person X, Dish B)"),
    "HPX106": "functional is_in(Ingredient, Dish)",
    "HPX107": (
        "oracle is_in(Ingredient, Dish)\n"
        "eats(Person X, Ingredient A) & is_in(Ingredient A, Dish B) -> likes(Person X, Dish B)"
    ),
    "HPX108": "lived(Person X, Year A) & built(Tower B, Year C) & C < A -> saw(Person X, Tower B)",
    "HPX109": (
        "likes(Person X, Dish A) & is_like(Dish A, Dish B) & not hates(Person X, Dish A) -> may_eat(Person X, Dish B)"
    ),
    "HPX110": (
        "fought_in(Person X, War A) & ended_in(War A, Year E) & built(Tower B, Year Y) & E < Y "
        "-> could_see(Person X, Tower B)"
    ),
    "HPX111": (
        "eats(Person X, Dish A) & is_in(Herb Z, Dish A) & grows_with(Spice S, Herb Z) & not spoils(Spice S, Dish A) "
        "-> may_eat(Person X, Herb Z)"
    ),
    "HPX112": (
        "type Price < Number\n"
        "likes(Person X, Dish A) & costs(Dish A, Price C) & costs(Dish B, Price D) & C < D -> may_eat(Person X, Dish B)"
    ),
    "HPX113": "lived(Person X, Year A) & built(Tower B, Year C) & A = C -> saw(Person X, Tower B)",
    "HPX114": "given is_before(Year, Year)\nfact is_before(1815, 1876)",
    "HPX115": "type Food < Meal",
    "HPX116": "opposite can_eat cannot_eat",
    "HPX117": "functional was_invented_in(Invention, Year) within 2",
    "HPX118": "oracle owns(Person, Pet)\nnever owns(Person X, Pet A) & not is_tame(Pet A)",
    "HPX119": "oracle borders(Country, Country)\nsymmetric borders/2",
    "HPX120": "oracle knows(Person, Person)\nsymmetric knows/2",
    "HPX121": "type Tomato < Fruit\ndisjoint Fruit, Vegetable",
    "HPX122": (
        "irreflexive borders/2\n"
        "is_in(City B, Country C) & lives_in(Person X, Country A) & borders(Country A, Country C)\n"
        "  -> likes(Person X, City B)"
    ),
    "HPX123": 'given is_parent_of(Person, Person)\nasymmetric is_parent_of/2\nfact is_parent_of("Ann", "Bob")',
    "HPX124": 'functional was_built_in(Tower, Year)\nfact was_built_in("Eiffel Tower", 1889)',
    "HPX125": "lived(Person X, Year A) & built(Tower B, Year C) & A / C > 1 -> saw(Person X, Tower B)",
    "HPX126": "eats(Person X, Food A) & is_served_with(Food A, Dish B) -> may_eat(Person X, Dish B)",
    "HPX127": "given is_in(Ingredient, Dish)\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    "HPX128": "given is_in(Ingredient, Dish)\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    "HPX129": "given has_price(Dish, Number)\n"
    "aggregate price_of_all(Number K) := K = sum(Number P, Dish D: has_price(Dish D, Number P))",
    "HPX130": "given sells(Town, Town)\naggregate size(Town A, Number K) := K = count(Town B: sells(Town A, Town B))",
    "HPX131": "oracle is_in(Ingredient, Dish)\nclosed is_in/2\n"
    "aggregate dishes_with(Ingredient Z, Number K) := K = count(Dish D: is_in(Ingredient Z, Dish D))",
    "HPX201": (
        'oracle eats(Person, Food): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?"\n'
        'oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"\n'
        'oracle may_eat(Person, Dish): "[1] may eat [2]" / "[1] may not eat [2]" / "may [1] eat [2]?"\n'
        "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)"
    ),
    "HPX202": 'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    "HPX203": 'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    "HPX204": (
        "lives_in(Person X, Place A) & grows_at(Plant B, Time C) & comes_to(Time C, Place A) -> sees(Person X, Plant B)"
    ),
    "HPX205": "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
    "HPX206": "eats(Person X, Food A) & is_in(Food A, Dish B) & is_tasty(Dish B) -> may_eat(Person X, Dish B)",
    "HPX207": (
        "lives_in(Person X, City A) & grows_in(Plant B, City A) & is_hardy(Plant B) -> can_plant(Person X, Plant B)\n"
        "lived_in(Person X, Period A) & came_after(Plant B, Period A) & not is_hardy(Plant B)\n"
        "  -> cannot_plant(Person X, Plant B)"
    ),
    "HPX208": (
        "given has_height(Tree, Height)\n"
        "plants(Person X, Tree A) & has_height(Tree A, Height B) -> needs(Person X, Height B)"
    ),
    "HPX209": ("@generic X\nadmires(Person X, Author A) & likes(Author A, Dish B) -> should_cook(Person X, Dish B)"),
    "HPX210": "eats(Person X, Food A) & is_an_ingredient_of(Food A, Dish B) -> may_eat(Person X, Dish B)",
    "HPX211": (
        "computed is_smaller_than(Age X, Age Y) := X < Y\n"
        "is_of_age(Person A, Age X) & needs(Car B, Age Y) & is_smaller_than(Age X, Age Y) "
        "-> cannot_drive(Person A, Car B)"
    ),
    "HPX212": "oracle can_dance(Person, Dance)\noracle cannot_dance(Person, Dance)\nopposite can_dance cannot_dance",
    "HPX213": "eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)",
    "HPX214": "oracle borders(Country, Country)\nclosed borders/2",
    "HPX215": "never was_born_in(Person X, Year A) & died_in(Person X, Year B) & B < A",
    "HPX216": (
        'oracle is_of_a_kind(Object, Animal): "[1] is of the kind [2]" / "[1] is not of the kind [2]" / '
        '"is [1] of the kind [2]?"'
    ),
    "HPX218": (
        "oracle can_eat(Person, Food)\noracle cannot_eat(Person, Food)\noracle must_avoid(Person, Food)\n"
        "opposite can_eat cannot_eat\nnever can_eat(Person X, Food A) & must_avoid(Person X, Food A)"
    ),
    "HPX219": 'oracle is_in(Ingredient, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"',
    "HPX220": (
        "@generic none\nsupplies(Town A, Town B) & lies_on(Town B, River R) -> feeds(Town A, River R)\n"
        "@generic none\nlies_above(Town A, Town B) & lies_on(Town B, River R) & lies_on(Town A, River R) "
        "-> supplies(Town A, Town B)"
    ),
    "HPX221": (
        "given starts_at(Place, Number)\n@generic none\n"
        "starts_at(Place A, Number N) -> is_reached_at(Place A, Number N)\n@generic none\n"
        "is_reached_at(Place A, Number N) & M = N + 1 & M < 100 -> is_reached_at(Place A, Number M)"
    ),
    "HPX222": (
        "@generic none\nflows_into(River A, River B) -> drains_into(River A, River B)\n"
        "@generic none\nflows_into(River A, River B) & drains_into(River B, River C) -> drains_into(River A, River C)"
    ),
    "HPX223": (
        "given borders(Place, Place)\n@generic none\nborders(Place A, Place B) -> is_linked_to(Place A, Place B)\n"
        "@generic none\nborders(Place A, Place B) & is_linked_to(Place B, Place C) -> is_linked_to(Place A, Place C)"
    ),
    "HPX301": "oracle is_in(Ingredient, Dish)",
    "HPX302": (
        "@generic A\n"
        "has_room_for(Room B, Furniture C) & is_smaller_than(Furniture A, Furniture C) "
        "-> can_fit_in(Furniture A, Room B)"
    ),
}
