"""The names in a text at their places, as editors look them up and rename them."""

from __future__ import annotations

import pytest

from hapax.grammar.occurrences import Occurrence, occurrences

ORACLE = '"[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?"'


def described(text: str, found: Occurrence) -> str:
    """An occurrence in words; the name as the text has it at the place."""
    place = found.place
    line = text.splitlines()[place.line - 1]
    assert place.end_line == place.line
    arity = "" if found.arity is None else f"/{found.arity}"
    return f"{found.kind} {line[place.column - 1 : (place.end_column or 0) - 1]}{arity}{' declared' * found.declares}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("opposite hot cold", ["predicate hot", "predicate cold"]),
        ("type Dog < Animal", ["type Dog declared", "type Animal"]),
        ("type Guide Dog < Working Dog", ["type Guide Dog declared", "type Working Dog"]),
        ("disjoint Dog, Cat Burglar", ["type Dog", "type Cat Burglar"]),
        ("symmetric knows/2", ["predicate knows/2"]),
        ("closed knows/2", ["predicate knows/2"]),
        (f"oracle eats(Dog, Cat Food): {ORACLE}", ["predicate eats/2 declared", "type Dog", "type Cat Food"]),
        (f"oracle eats(Dog X, Cat Food Y): {ORACLE}", ["predicate eats/2 declared", "type Dog", "type Cat Food"]),
        (
            "eats(Guide Dog X, Y) & not hot(Y) -> cold(X)",
            ["predicate eats/2", "type Guide Dog", "predicate hot/1", "predicate cold/1"],
        ),
        ("never eats(Dog X, Cat Y)", ["predicate eats/2", "type Dog", "type Cat"]),
        ('fact eats(Rex, "dry food")', ["predicate eats/2"]),
        ("@example eats(Guide Dog, Dry Food)", ["predicate eats/2"]),
        ("computed older(Age A, Age B) := A > B", ["predicate older/2 declared", "type Age", "type Age"]),
        (
            "aggregate meals(Dog X, Number K) := K = count(Food F: eats(Dog X, Food F))",
            ["predicate meals/2 declared", "type Dog", "type Number", "predicate eats/2", "type Dog", "type Food"],
        ),
        # Names of statements may be names of predicates.
        ("opposite(Dog X) -> type(Dog X)", ["predicate opposite/1", "type Dog", "predicate type/1", "type Dog"]),
    ],
)
def test_each_name_of_a_statement_is_found_at_its_place(text: str, names: list[str]) -> None:
    """Predicates, types and rules are found with their kind, place and number of arguments, and what declares them."""
    assert [described(text, found) for found in occurrences("a.rules", text)] == names


def test_a_rule_has_its_name_without_quotation_marks() -> None:
    """The attribute before a rule names it, and only the name is the rule's."""
    text = '@name "dry food"\n@example eats(Rex, food)\neats(Dog X, Food Y) -> fed(Dog X)\n'

    first = occurrences("a.rules", text)[0]

    assert (first.kind, first.name, first.declares) == ("rule", "dry food", True)
    assert described(text, first) == 'rule "dry food" declared'


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("eats(Dog X, fed(Dog X", ["predicate eats/2", "type Dog", "predicate fed/1", "type Dog"]),
        ("eats(", ["predicate eats/1"]),
        (f"oracle eats(Dog X, ): {ORACLE}", ["predicate eats/2 declared", "type Dog"]),
        ("symmetric knows/many", []),
        ("symmetric knows/", []),
        ("type Dog <", ["type Dog declared"]),
        ("type < Animal", []),
        ("opposite hot", ["predicate hot"]),
        ("opposite hot cold warm", ["predicate hot", "predicate cold"]),
        ("@name dry food", ["rule dry declared"]),
        ("opposite", []),
        ("disjoint", []),
        ("type", []),
        ("@name", []),
        ("oracle", []),
    ],
)
def test_names_of_a_broken_statement_are_found(text: str, names: list[str]) -> None:
    """While a statement is being written, the names it has so far are found."""
    assert [described(text, found) for found in occurrences("a.rules", text)] == names


def test_names_of_later_lines_have_their_lines() -> None:
    """Places count lines from the beginning of the text, comments and empty lines included."""
    text = "# names\n\ntype Dog < Animal\n  symmetric knows/2\n"

    assert [(found.name, found.place.line, found.place.column) for found in occurrences("a.rules", text)] == [
        ("Dog", 3, 6),
        ("Animal", 3, 12),
        ("knows", 4, 13),
    ]
