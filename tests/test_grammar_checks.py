"""The static checks: the example of each fault, the rules of the paper, and rules that are right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hapax.grammar.checks import CHECKS, FAULTS, check_library
from hapax.grammar.errors import Diagnostic, Severity
from hapax.grammar.faults import RuleFault
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library, PredicateSignature, Templates

ROOT = Path(__file__).parent.parent
NOT_DECLARED = {"HPX201", "HPX202"}
ABOUT_DECLARATIONS = {"HPX201", "HPX202", "HPX203", "HPX204", "HPX213", "HPX220"}
"""Faults that go away when everything is declared."""

# Section 2.2, table 2 and table 5 as the paper prints them, stray blanks and all.
PAPER = r"""exists(Person X, Location  A) & lives(Plant Y, Climate  B) & has_climate(Location  A, Climate B) \to can_plant(Person X, Plant Y)
exists(Person X, Time Period  A) & exists(Plant Y, Time Period  B) & is_much_later_than(Time Period  A, Time Period B) \to cannot_plant(Person X, Plant Y)
is_allergic_to(Person X, Food allergen A)& is_ ingredient_in(Ingredient Z, Name of a dish or food B) & is_one_type_of(Ingredient Z, Food allergen A) \to is_not_able_to_eat(Person P, Name of a dish or food B)
is_of_age(Person A, Age X) & requires_a_ minimal_operating_age_of(Object B, Age Y) & is_smaller_than(Age X, Age Y) \to cannot_drive(Person A, Vehicle B)
is_of_age(Person A, Age X) & requires_a_ minimal_age_of(Object B, Age Y) & is_smaller_than(Age X, Age Y) \to cannot_operate(Person A, Object B)
allergic_to(Person X, Allergen A) \to reacts_badly_to(Person X, Allergen A)
"""


def library_of(text: str) -> Library:
    return parse_library([("t.rules", text)])


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in check_library(library_of(text)) if diagnostic.code not in NOT_DECLARED]


def messages(found: Sequence[Diagnostic], severity: Severity) -> list[tuple[int, str]]:
    return [(diagnostic.place.line, diagnostic.code) for diagnostic in found if diagnostic.severity is severity]


def declared(library: Library) -> Library:
    """The library with every predicate declared with all three templates."""
    return replace(library, signatures=tuple(map(spoken, library.signatures)))


def spoken(signature: PredicateSignature) -> PredicateSignature:
    slots = " and ".join(f"[{number}]" for number, _ in enumerate(signature.argument_types, 1))
    sentences = Templates(f"{slots} agree", f"{slots} do not agree", f"do {slots} agree?")
    return replace(signature, templates=sentences, declared=True)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.code)
def test_every_fault_is_found_in_its_example_alone(fault: RuleFault) -> None:
    """A fault's example has that fault and, once its predicates are declared, no other."""
    library = library_of(fault.example)
    written = [
        diagnostic for diagnostic in check_library(library) if diagnostic.code not in NOT_DECLARED - {fault.code}
    ]
    complete = [] if fault.code in ABOUT_DECLARATIONS else check_library(declared(library))

    assert {(diagnostic.code, diagnostic.severity) for diagnostic in (*written, *complete)} == {
        (fault.code, fault.severity)
    }


DECLARED = """oracle likes(Person, Dish): "[1] likes [2]" / "[1] dislikes [2]" / "does [1] like [2]?"
oracle is_in(Herb, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?"
oracle is_dried(Herb): "[1] is dried" / "[1] is fresh" / "is [1] dried?"
functional was_first_cooked_in(Dish, Year): "[1] is of [2]" / "[1] is not of [2]" / "is [1] of [2]?"
computed is_before(Year A, Year B) := A < B: "[1] is before [2]" / "[1] is not before [2]" / "is [1] before [2]?"
given knows(Person, Herb): "[1] knows [2]" / "[1] does not know [2]" / "does [1] know [2]?"
"""


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("HPX107", "likes(Person X) & is_in(Herb Z, Dish A) -> knows(Person X, Herb Z)"),
        ("HPX107", "likes(Person X, Dish A) & is_in(Herb Z) -> knows(Person X, Herb Z)"),
        ("HPX107", "likes(Person X, Dish A) & is_in(Herb Z, Dish A) -> knows(Herb Z)"),
        (
            "HPX107",
            "likes(Person X, Dish A) & is_in(Herb Z, Dish A) & is_dried(Herb Z, Dish A) -> knows(Person X, Herb Z)",
        ),
        ("HPX107", "likes(Person X, Dish A) & is_in(Herb Z, Moon A) -> knows(Person X, Herb Z)"),
        ("HPX107", "likes(Moon X, Dish A) & is_in(Herb Z, Dish A) -> knows(Person X, Herb Z)"),
        ("HPX101", "likes(Person X, Dish A) & is_in(Herb Z, Dish A) -> knows(Person P, Herb Z)"),
        ("HPX103", "likes(Person X, Dish A) & is_in(Herb Z, Dish B) -> knows(Person X, Herb Z)"),
        (
            "HPX110",
            "likes(Person X, Dish A) & is_in(Herb Z, Dish A) & is_in(Herb Z, Dish B) & was_first_cooked_in(Dish A, Year V)"
            " & is_before(Year V, Year Q) -> knows(Person X, Herb Z)",
        ),
        (
            "HPX110",
            "likes(Person X, Dish A) & is_in(Herb Z, Dish A) & is_before(Year V, 1900) -> knows(Person X, Herb Z)",
        ),
        (
            "HPX106",
            "oracle is_in(Moon, Dish)\nlikes(Person X, Dish A) & is_in(Moon Z, Dish A) & knows(Person X, Herb H)"
            " & is_in(Herb H, Dish B) & is_in(Moon Z, Dish B) -> likes(Person X, Dish B)",
        ),
        ("HPX116", "opposite can_bake can_bake"),
        ("HPX115", "type Herb < Plant\ntype Plant < Green Thing\ntype Green Thing < Herb"),
        (
            "HPX209",
            "@generic Z\nknows(Person X, Herb Z) & has_age(Person X, Age B) -> suits(Herb Z, Age B)",
        ),
    ],
)
def test_what_only_follows_from_a_fault_is_not_reported(code: str, rule: str) -> None:
    """One fault in a rule or declaration gets its own diagnostic, once, and nothing that follows from it."""
    found = [
        diagnostic.code for diagnostic in check_library(library_of(DECLARED + rule)) if diagnostic.code != "HPX201"
    ]

    assert found == [code]


def test_a_wrong_number_of_arguments_is_reported_with_the_declaration() -> None:
    """The error names the atom, the rule and the declaration, and its place."""
    (error,) = check_library(
        library_of(DECLARED + "likes(Person X) & is_in(Herb Z, Dish A) -> knows(Person X, Herb Z)")
    )

    assert str(error) == (
        't.rules:7:1: error HPX107: likes(Person X) in rule rule1 has 1 argument, but it is declared as "oracle likes('
        'Person, Dish)". Write 2 arguments, or declare likes/1 as well. (see also t.rules:1:1)'
    )


def test_an_inferred_generic_variable_is_noted_where_it_is_no_person() -> None:
    """Rules that conclude about a person, say @generic, or define a predicate for others get no note."""
    about_person = "likes(Person X, Dish A) & is_in(Herb Z, Dish A) -> knows(Person X, Herb Z)"
    about_herb = "is_in(Herb Z, Dish A) & resembles(Dish A, Dish B) -> suits(Herb Z, Dish B)"
    about_nothing = "is_in(Herb Z, Dish A) & resembles(Dish A, Dish B) -> goes_with(Dish A, Dish B)"
    use = "likes(Person X, Dish A) & goes_with(Dish A, Dish B) -> likes(Person X, Dish B)"

    assert codes(about_herb) == codes(about_nothing) == ["HPX302"]
    assert codes(about_person) == codes(f"@generic Z\n{about_herb}") == codes(f"{about_nothing}\n{use}") == []
    (note,) = [diagnostic for diagnostic in check_library(library_of(about_herb)) if diagnostic.code == "HPX302"]
    assert "Herb Z (by default, first argument) is taken as generic" in str(note)


def test_codes_are_unique_and_every_check_has_its_reason() -> None:
    """One code names one fault, and each check has a docstring."""
    assert len({fault.code for fault in FAULTS}) == len(FAULTS)
    assert all(check.find.__doc__ for check in CHECKS)


def test_the_papers_rules_get_the_verdicts_they_deserve() -> None:
    """Table 2's misprint and the two-variable rule are errors, all other rules pass."""
    found = check_library(library_of(PAPER))

    assert messages(found, Severity.ERROR) == [(3, "HPX101"), (6, "HPX105")]
    assert {code for _, code in messages(found, Severity.WARNING)} == {"HPX201", "HPX204", "HPX207", "HPX211"}


def test_the_misprint_comes_with_its_hint() -> None:
    """The error gives the place, the fact and the variable that was most likely meant."""
    error = next(diagnostic for diagnostic in check_library(library_of(PAPER)) if diagnostic.code == "HPX101")

    assert str(error) == (
        "t.rules:3:173: error HPX101: unbound head variable: Person P is in the conclusion of rule rule3 but not in its "
        "premise. Did you mean Person X?"
    )


COUNTING = "given next(Number, Number).\ncomputed after(Number A, Number B) := B = A + 1.\n@generic none\n{} -> counts(Thing A, Number M)."


@pytest.mark.parametrize(
    "premise",
    [
        "counts(Thing A, Number N) & M = N + 1",
        "counts(Thing A, Number N) & N > 3 & M = N + 1",
        "counts(Thing A, Number N) & M = N - 1 & M < 5",
        "counts(Thing A, Number N) & after(Number N, Number M)",
        "counts(Thing A, Number N) & after(Number N, Number K) & M = K * 2",
        "counts(Thing A, Number N) & M = N + 1 & M \\= 7",
    ],
)
def test_recursion_that_may_count_for_ever_is_warned_of(premise: str) -> None:
    """A recursive rule that calculates on without a limit in its direction is named, computed predicates included."""
    assert codes(COUNTING.format(premise)).count("HPX221") == 1


@pytest.mark.parametrize(
    "premise",
    [
        "counts(Thing A, Number N) & M = N + 1 & M < 10",
        "counts(Thing A, Number N) & 10 >= N & M = N + 1",
        "counts(Thing A, Number N) & M = N - 1 & N > 0",
        "counts(Thing A, Number N) & next(Number N, Number M) & M = N + 1",
        "counts(Thing A, Number N) & N < 5 & after(Number N, Number K) & M = K * 2",
        "starts(Thing A, Number N) & M = N + 1",
        "counts(Thing A, Number N) & next(Number P, Number L) & M = L + 1 & M \\= N + 1",
    ],
)
def test_recursion_with_a_limit_is_none_that_counts_for_ever(premise: str) -> None:
    """A limit of the number or of its source, or facts that give it, end the recursion."""
    assert "HPX221" not in codes(COUNTING.format(premise))


def test_templates_are_compared_beside_predicates_without_any() -> None:
    """A predicate without templates is passed over; each form of the next that says the same as another is named."""
    text = (
        "oracle is_at(Thing, Place)\n"
        'oracle is_in(Thing, Place): "[1] is in [2]" / "[1] is in [2]" / "is [1] in [2]?"\n'
        'oracle is_by(Thing, Place): "[1] is by [2]" / "[1] is not by [2]" / "[1] is  By [2]?"\n'
    )
    found = [(fault.place.line, fault.message) for fault in check_library(library_of(text)) if fault.code == "HPX219"]

    assert [(line, message[:19]) for line, message in found] == [(2, "the negated form of"), (3, "the question form o")]


def test_each_predicate_that_is_its_own_opposite_is_named() -> None:
    """One of them hides no other."""
    assert codes("opposite can_bake can_bake\nopposite can_fry can_fry\n").count("HPX116") == 2


def test_a_calculating_rule_hides_no_recursion_after_it() -> None:
    """A rule that calculates a number and is not recursive is passed over; the one that counts for ever is named."""
    first = "@generic none\nweighs(Thing A, Number N) & M = N * 2 -> costs(Thing A, Number M)\n"
    counting = COUNTING.format("counts(Thing A, Number N) & M = N + 1")

    assert codes(first + counting).count("HPX221") == 1


def test_opposite_conclusions_name_both_rules_and_places() -> None:
    """A contradiction between two rules points at both."""
    warning = next(diagnostic for diagnostic in check_library(library_of(PAPER)) if diagnostic.code == "HPX207")

    assert "rule2" in warning.message
    assert "rule1" in warning.message
    assert [place.line for place in (warning.place, *warning.related)] == [2, 1]


@pytest.mark.parametrize(
    ("declared", "first", "second"),
    [
        (
            "functional has_used(Person, Plant, Year)",
            "has_used(Person X, Plant B, Year N) & N < 10",
            "has_used(Person A, Plant C, Year N) & N > 20",
        ),
        (
            "functional lives_in(Person, City)",
            "lives_in(Person X, City A) & grows_in(Plant B, City A)",
            "lives_in(Person A, City B) & not grows_in(Plant C, City B)",
        ),
        (
            "functional lives_in(Person, City)",
            "lives_in(Person X, City A) & can_grow_in(Plant B, City A)",
            "lives_in(Person A, City B) & cannot_grow_in(Plant C, City B)",
        ),
    ],
)
def test_premises_that_exclude_each_other_do_not_oppose(declared: str, first: str, second: str) -> None:
    """Comparisons, a negated literal and an opposite predicate each keep two rules apart."""
    rules = f"{first} -> can_plant(Person X, Plant B)\n{second} -> cannot_plant(Person A, Plant C)"

    assert "HPX207" not in codes(f"{declared}\n{rules}")
    assert "HPX207" in codes(rules.replace("not grows", "grows").replace("cannot_grow", "can_grow"))


def test_opposites_over_unrelated_types_do_not_meet() -> None:
    """A rule about drugs does not contradict one about machines."""
    text = """has(Person X, Illness A) & helps(Drug B, Illness A) -> can_use(Person X, Drug B)
    lacks(Person X, Tool A) & needs(Machine B, Tool A) -> cannot_use(Person X, Machine B)"""

    assert "HPX207" not in codes(text)


def test_a_definition_may_have_two_variables() -> None:
    """Rules whose conclusion other rules use, and rules without a generic variable, define something."""
    used = """in_town(Place A, Place B) -> within(Place A, Place B)
    loves(Person X, Place A) & within(Place B, Place A) -> visits(Person X, Place B)"""

    assert codes(used) == []
    assert codes("@generic none\nin_town(Place A, Place B) -> within(Place A, Place B)") == []


def test_subtypes_make_types_related() -> None:
    """A city may stand for a location; Object is a supertype of all types but persons."""
    text = """type City < Location
    oracle has_climate(Location, Climate)
    lives_in(Person X, City A) & has_climate(City A, Climate B) & stands(Object C, City A) & suits(Climate B, Machine C)
      -> uses(Person X, Machine C)"""

    assert codes(text) == []


def test_numbers_where_texts_belong_and_the_other_way_round() -> None:
    """A constant must be a number or a text as its position requires; a Time may be a year."""
    assert codes('functional born(Author, Year)\nfact born("Ada", "1815")') == ["HPX113"]
    assert codes('oracle is_in(Dish, Menu)\nfact is_in(3, "lunch")') == ["HPX113"]
    assert codes('given p(Dish, Year)\n@generic none\np(Dish A, "old") & p(Dish A, Year Y) -> q(Dish A, Year Y)') == [
        "HPX113"
    ]
    assert codes('type Year < Time\nfunctional born(Author, Time)\nfact born("Ada", 1815)') == []


def test_arithmetic_over_texts_is_reported_in_computed_predicates_too() -> None:
    """The definition of a computed predicate needs numbers."""
    assert codes("computed is_longer(Name A, Name B) := A > B") == ["HPX112", "HPX112"]
    assert codes('computed is_odd(Year A) := A = "odd"') == ["HPX113"]


def test_named_things_may_be_measured() -> None:
    """The height of a tower is known; a minimal age is required of a kind of things."""
    text = """functional has_height(Tower, Height)
    oracle requires_a_minimal_age_of(Object, Age)
    climbs(Person X, Tower A) & has_height(Tower A, Height B) & is_named(Tower A, Word C) -> sees(Person X, Word C)"""

    assert codes(text) == []


def test_faults_of_several_files_come_together() -> None:
    """All faults of all files at once, by file and line."""
    library = parse_library([("b.rules", FAULTS[0].example), ("a.rules", FAULTS[4].example)])
    found = [diagnostic for diagnostic in check_library(library) if diagnostic.severity is Severity.ERROR]

    assert [(diagnostic.place.file, diagnostic.code) for diagnostic in found] == [
        ("a.rules", "HPX105"),
        ("b.rules", "HPX101"),
    ]


def test_checking_the_shipped_rules_loads_nothing_heavy() -> None:
    """`check` must start at once: neither networkx nor torch nor the Prolog bridge is imported."""
    program = (
        "import sys; from hapax.grammar.parser import load_library; from hapax.grammar.checks import check_library;"
        "check_library(load_library(['rules']));"
        "print({'networkx', 'torch', 'pyswip', 'wordfreq'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert result.stdout == "set()\n"


def test_a_misspelt_predicate_is_told_what_it_may_mean() -> None:
    """A name that no rule concludes and no line declares is compared with the others of its arity."""
    text = "edge(City A, City B) -> reach(City A, City B)\nraech(City A, City B) & edge(City B, City C) -> reach(City A, City C)"
    remedies = {d.message.split()[0]: d.remedy for d in check_library(library_of(text)) if d.code == "HPX201"}

    assert remedies["raech/2"].startswith("Did you mean reach?")
    assert remedies["reach/2"].startswith("Declare it")
    assert remedies["edge/2"].startswith("Declare it")


def test_an_undeclared_predicate_of_a_constraint_is_shown_at_its_literal() -> None:
    """The place is that of the literal, not of the line."""
    found = check_library(library_of("given p(Thing)\nnever p(Thing X) & is_odd(Thing X)"))

    assert [(d.place.line, d.place.column) for d in found if d.code == "HPX201"] == [(2, 20)]


def test_types_and_opposites_are_told_where_they_stand() -> None:
    """A cycle of subtypes names each of its lines, an opposite its own."""
    text = "oracle p(Food)\ntype Food < Meal\ntype Meal < Food\nopposite p p"
    places = {d.code: (d.place.line, [other.line for other in d.related]) for d in check_library(library_of(text))}

    assert places["HPX115"] == (2, [3])
    assert places["HPX116"] == (4, [])


@pytest.mark.parametrize(
    ("facts", "count"),
    [
        ('fact was_built_in("Eiffel Tower", 1887)\nfact was_built_in("Eiffel Tower", 1889)', 1),
        ('fact was_built_in("Eiffel Tower", 1887)\nfact was_built_in("Tower Bridge", 1887)', 0),
        ('fact was_built_in("Eiffel Tower", 1887)\nfact was_built_in("Eiffel Tower", 1887)', 0),
        ('fact can_eat("ann", "rice")\nfact cannot_eat("ann", "rice")', 1),
        ('fact can_eat("ann", "rice")\nfact cannot_eat("bob", "rice")', 0),
    ],
)
def test_stated_facts_that_contradict_each_other(facts: str, count: int) -> None:
    """Two values of a functional predicate, and both of two opposites; other facts stand together."""
    declared = "functional was_built_in(Tower, Year)\nopposite can_eat cannot_eat\n"

    assert codes(declared + facts).count("HPX124") == count


@pytest.mark.parametrize(
    ("comparison", "code"),
    [
        ("A * A < 0", "HPX108"),
        ("(A - B) * (A - B) + 1 < 1", "HPX108"),
        ("A * A =< 0", None),
        ("A * B < 0", None),
        ("A / 0 > 1", "HPX125"),
        ("1 + A / (B - B) > 1", "HPX125"),
        ("A / (B - A) > 1", None),
        ("A / 2 > 1", None),
    ],
)
def test_squares_and_divisors_are_known(comparison: str, code: str | None) -> None:
    """No square is below zero, and nothing is divided by zero, however zero is written."""
    text = f"lived(Author X, Year A) & built(Tower C, Year B) & {comparison} -> saw(Author X, Tower C)"

    assert [found for found in codes(text) if found in ("HPX108", "HPX125")] == ([code] if code else [])


def test_a_predicate_that_rests_only_on_itself_is_told() -> None:
    """Two rules that need each other conclude nothing; a fact, a declaration or a third rule begins them."""
    cycle = (
        "@generic none\nsupplies(Town A, Town B) & lies_on(Town B, River R) -> feeds(Town A, River R)\n"
        "@generic none\nfeeds(Town A, River R) & lies_on(Town B, River R) -> supplies(Town A, Town B)\n"
    )
    third = "@generic none\npumps_to(Town A, Pump P) & stands_in(Pump P, Town B) -> supplies(Town A, Town B)\n"

    assert codes(cycle).count("HPX220") == 2
    assert "HPX220" not in codes(cycle + 'fact supplies("Ulm", "Bonn")')
    assert "HPX220" not in codes(cycle + "given feeds(Town, River)")
    assert "HPX220" not in codes(cycle + third)
    # What is said of a generic person is assumed, so such rules do begin.
    assert "HPX220" not in codes(cycle.replace("@generic none", "@generic A"))


@pytest.mark.parametrize("name", ["findall", "hapax_rows"])
def test_reserved_names_are_errors_with_a_place(name: str) -> None:
    """A predicate that the generated program could not define is an error of its file, not of a later query."""
    (found,) = [d for d in check_library(library_of(f"given {name}(Town, Town, Town)")) if d.code == "HPX126"]

    assert (found.place.line, name in found.message) == (1, True)
