"""Any text as a rule file gives a library or `RulesRejected`; a library prints as text that gives it again."""

from __future__ import annotations

from any_input import assert_explained, check_any_input, text_of

from hapax.grammar.checking.library_checks import check_library
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.writing.printing import format_library
from hapax.grammar.writing.prolog_text import program_text

SEEDS = (
    b'oracle is_made_from(Dish, Food): "[1] is made from [2]" / "[1] is not made from [2]" / "is [1] made from [2]?"',
    b"@name a\n@generic X\np(Person X, Food A) & not q(Food A) & A \\= soup -> r(Person X)",
    b"computed is_below(Number A, Number B) := 2 * A < B / 3",
    b"type Small Dog < Dog\nopposite p q\nfact p('it''s', 1.50)\nfunctional was_born_in(Person, Year).",
    b'r(T X) :- p(T X, T Y), q(T Y, "a\\u{1F600}"). % comment',
)


def check(data: bytes) -> None:
    """Raise if the contract is broken."""
    try:
        library = parse_library([("f.rules", text_of(data))])
    except RulesRejected as error:
        assert_explained(error)
        return
    check_library(library)
    assert parse_library([("f.rules", format_library(library))]) == library
    try:
        program_text(library)
    except HapaxError as error:
        assert_explained(error)


def test_any_rules() -> None:
    """A library prints as text that gives it again."""
    check_any_input(check, SEEDS, [b"fact e(1e99999999999999999999)"])
