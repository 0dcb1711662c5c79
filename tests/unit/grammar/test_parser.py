"""Rule text and goals: any text is read or refused, what is printed is read as the same, and where statements end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parsing.declarations import (
    ClosedDeclaration,
    Closedness,
    Constraint,
    DisjointTypes,
    Polarity,
    Principle,
    Property,
    PropertyDeclaration,
    default_generic,
    default_polarity,
    default_principle,
)
from hapax.grammar.parsing.parser import parse_goal, parse_library, parse_rule, read_texts
from hapax.grammar.parsing.statements import KEYWORDS, read_statements, statement_tokens
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import OPERATIONS, Arithmetic, Atom, Comparison, Constant, Literal, Variable
from hapax.grammar.writing.printing import format_library
from hapax.grammar.writing.prolog_text import GoalText


def read(text: str) -> Library:
    return parse_library([("example.rules", text)])


@given(st.text(alphabet=st.sampled_from('pqXA(), &->:=."\\[]/\n@#%<not type fact\0é→🙂3'), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """A text that is read prints to one with the same rules; any other has faults."""
    found = read_texts([("example.rules", text)])

    assert found.diagnostics or read(format_library(found.library)) == found.library


@pytest.mark.parametrize(
    "text", ["(" * 30_000, "(" * 15_000 + ")" * 15_000, "p(" * 15_000, "p(T X) & X < " + "-" * 30_000]
)
def test_endless_nesting_is_one_fault(text: str) -> None:
    """30 kB of brackets or signs are refused, not followed."""
    with pytest.raises(RulesRejected) as caught:
        read(text)

    assert len(caught.value.diagnostics) == 1


def test_a_file_of_garbage_has_fifty_faults_and_a_count() -> None:
    """A megabyte of nonsense is refused without listing all of it."""
    with pytest.raises(RulesRejected) as caught:
        read('%& ( $$ ]\n$$$ nonsense ( ( 1.e9 "\n' * 40_000)

    assert [len(caught.value.diagnostics), caught.value.diagnostics[-1].code] == [51, "HPX061"]


CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
TYPES = st.sampled_from(["Person", "Dish", "Name of a dish or food", "Anti-malarial Drug", "Year", "20th century Song"])
VALUES = st.one_of(
    st.text(CHARACTERS, max_size=20),
    st.integers(-(10**30), 10**30),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000),
)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    variables = [
        Variable(f"{letter}{number}", draw(TYPES)) for letter, number in (("X", ""), ("A", ""), ("B", 1), ("Z", 22))
    ]
    terms = st.one_of(st.sampled_from(variables), st.builds(Constant, VALUES))
    names = st.sampled_from(["is_in", "cannot_eat", "not_p", "type", "fact", "größer_als"])
    atoms = st.builds(Atom, names, st.lists(terms, min_size=1, max_size=3).map(tuple))
    signs = st.sampled_from([*OPERATIONS, "max", "concat", "round"])
    expressions = st.recursive(terms, lambda inner: st.builds(Arithmetic, signs, st.tuples(inner, inner)), max_leaves=6)
    comparisons = st.builds(Comparison, st.sampled_from(["<", "=<", ">", ">=", "=", "\\="]), expressions, expressions)
    every = Literal(Atom("all_of", tuple(variables)))
    others = draw(st.lists(st.one_of(st.builds(Literal, atoms, st.booleans()), comparisons), max_size=4))
    conclusion = Literal(draw(atoms))
    polarity = draw(st.sampled_from([default_polarity(conclusion), *Polarity]))
    words = st.text(CHARACTERS, min_size=1, max_size=8).filter(str.strip)
    inferred, _ = default_generic((every, *others), conclusion, Library().is_person)
    return Rule(
        draw(words),
        (every, *others),
        conclusion,
        draw(st.none() | words),
        draw(st.sampled_from([default_principle(polarity), *Principle])),
        polarity,
        draw(st.sampled_from([inferred, (), ("A", "Z22")])),
    )


@given(rules())
def test_a_rule_prints_to_what_reads_as_itself(rule: Rule) -> None:
    """Whatever its texts, types and attributes are."""
    assert parse_rule(str(rule)) == rule


PREDICATES = st.sampled_from(("borders/2", "is_part_of/2", "closed/1", "never_met/2"))
NAMES = st.sampled_from(("Country", "Food Allergen", "closed shop"))
DECLARATIONS = st.one_of(
    st.builds(PropertyDeclaration, st.sampled_from(Property), PREDICATES),
    st.builds(ClosedDeclaration, PREDICATES, st.sampled_from((Closedness.CLOSED, Closedness.CLOSED_FOR_FIRST))),
    st.builds(DisjointTypes, NAMES, NAMES),
)
PAIR = [Variable(name, "Country") for name in "AB"]
TERMS = st.sampled_from(PAIR) | st.builds(Constant, st.sampled_from(("never", 'quote "', 3)))
ITEMS = st.one_of(
    st.builds(
        Literal,
        st.builds(Atom, st.sampled_from(("borders", "never", "closed")), st.tuples(TERMS, TERMS)),
        st.booleans(),
    ),
    st.builds(Comparison, st.sampled_from(("<", "=", "\\=")), st.sampled_from(PAIR), TERMS),
)
CONSTRAINTS = st.builds(
    lambda items: Constraint((Literal(Atom("lies_near", tuple(PAIR))), *items)), st.lists(ITEMS, max_size=3)
)


@given(others=st.lists(DECLARATIONS, max_size=5), forbidden=st.lists(CONSTRAINTS, max_size=3))
def test_declarations_print_to_what_reads_as_themselves(others: list[object], forbidden: list[Constraint]) -> None:
    """A library that is printed and read again has the same declarations; constraints are read last."""
    library = Library(declarations=(*others, *forbidden))  # type: ignore[arg-type]

    assert read(format_library(library)).declarations == library.declarations


KEYWORD_LINES = {
    "type": "type Dog < Animal",
    "oracle": "oracle eats(Dog, Food)",
    "functional": "functional eats(Dog, Food)",
    "given": "given eats(Dog, Food)",
    "computed": "computed older(Age A, Age B) := A > B",
    "aggregate": "aggregate meals(Dog X, Number K) := K = count(Food F: eats(Dog X, Food F))",
    "opposite": "opposite eats refuses",
    "fact": 'fact eats("Rex", "meat")',
    "symmetric": "symmetric knows/2",
    "asymmetric": "asymmetric knows/2",
    "irreflexive": "irreflexive knows/2",
    "transitive": "transitive knows/2",
    "closed": "closed knows/2",
    "disjoint": "disjoint Dog, Cat",
    "never": "never eats(Dog X, Dog X)",
}
"""A statement by each keyword; behind a misspelt `import` no word follows that would tell it from a rule."""


def slips(word: str) -> list[str]:
    """The word with a letter too few, a letter twice, or two neighbours in the other order."""
    slipped = {word[:place] + word[place + 1 :] for place in range(len(word))}
    slipped |= {word[:place] + word[place] + word[place:] for place in range(len(word))}
    slipped |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    return sorted(slipped - set(KEYWORDS))


@given(st.sampled_from(sorted(KEYWORD_LINES)), st.data())
def test_a_slip_in_a_keyword_is_mended_by_the_keyword(keyword: str, data: st.DataObject) -> None:
    """One wrong letter is a fault at the word; two keywords differ by a letter, and there nothing is mended by itself."""
    slip = data.draw(st.sampled_from(slips(keyword)))
    text = f"type Child < Person\n{slip}{KEYWORD_LINES[keyword].removeprefix(keyword)}\ntype Adult < Person\n"

    (fault,) = read_statements("a.rules", text).diagnostics

    assert (fault.code, fault.place.line, fault.place.column) == ("HPX035", 2, 1)
    assert (fault.fix and fault.fix.new) == (None if keyword.endswith("symmetric") else keyword)


@pytest.mark.parametrize("text", ["orcale & eats(Dog X)", "orcale(Dog X", "colour red -> blue", "gven/2"])
def test_a_word_that_no_name_follows_is_no_misspelt_keyword(text: str) -> None:
    """It begins a faulty rule."""
    (fault,) = read_statements("a.rules", text).diagnostics

    assert fault.code != "HPX035"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("p(X) -> q(X). r(X) -> s(X)", ["p ( X ) -> q ( X )", "r ( X ) -> s ( X )"]),
        ("p(X)\n-> q(X)\nr(X) -> s(X)", ["p ( X ) -> q ( X )", "r ( X ) -> s ( X )"]),
        ("p(X) &\n\nq(X)", ["p ( X ) & q ( X )"]),
        ("p(X)\n\n& q(X)", ["p ( X )", "& q ( X )"]),
        ("p(X\nY)\nq(X)", ["p ( X Y )", "q ( X )"]),
        ("p(X\n\nq(X)", ["p ( X", "q ( X )"]),
        ("p(X -> q(X)\nr(X)", ["p ( X -> q ( X )", "r ( X )"]),
        ("p(X\ntype A < B", ["p ( X", "type A < B"]),
        ("p(X\ntype(A) -> q(A)", ["p ( X", "type ( A ) -> q ( A )"]),
        ("p(X) &\ntype A < B", ["p ( X ) &", "type A < B"]),
        ("p(X) &\ntype(A) -> q(A)", ["p ( X ) & type ( A ) -> q ( A )"]),
        ("p(X))\n(q)\nr", ["p ( X ) )", "( q )", "r"]),
        ("p(X\n@name a\nq(X)", ["p ( X", "@name a", "q ( X )"]),
        ("@name a,\nb\n& q(X)", ["@name a , b", "& q ( X )"]),
        ("food.is_in(X)", ["food . is_in ( X )"]),
        ("food. is_in(X)", ["food", "is_in ( X )"]),
        ("p(X) -> q(X)\nunless r(X)", ["p ( X ) -> q ( X ) unless r ( X )"]),
        ("p(X) -> q(X)\nunless(X) -> r(X)", ["p ( X ) -> q ( X )", "unless ( X ) -> r ( X )"]),
        ("symmetric p/2\nunless r(X)", ["symmetric p / 2", "unless r ( X )"]),
        (".\n. .", []),
    ],
)
def test_where_a_statement_ends(text: str, statements: list[str]) -> None:
    """At a full stop, or at a newline that no bracket, sign or `unless` carries on over."""
    assert [" ".join(map(str, tokens)) for tokens in statement_tokens(text)[1]] == statements


def test_line_ends_of_every_system_are_line_ends() -> None:
    """Carriage returns alone give the rules and the places of the same file with newlines."""
    lines = ["# rules", "edge(City A, City B) & edge(City B, City C) -> two(City A, City C)", "", 'fact edge("a", "b")']

    libraries = [parse_library([("r.rules", end.join(lines))]) for end in ("\n", "\r\n", "\r")]

    assert libraries[0].rules[0].place.line == 2
    assert libraries[0] == libraries[1] == libraries[2]


def test_texts_read_no_files() -> None:
    """Rules that come as a text, from an agent for instance, cannot make Hapax read a file."""
    (fault,) = read_texts([("docs/language.rules", 'import "../rules/paper.rules"')]).diagnostics

    assert fault.code == "HPX060"


TWO = read('fact likes("a", "b")\nfact p("a")')


def written_goal(text: str) -> str:
    """A goal as Prolog gets it."""
    return GoalText(TWO).of(parse_goal(text, TWO).premise)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("p(X), \\+ p(tom); p('saag \\'chicken')", "((p(X) , (\\+ p(tom))) ; p('saag \\'chicken'))"),
        ("not p(X).", "(\\+ p(X))"),
        ('p("Ada"), p(-3), p(1.5)', "(p('Ada') , p(-3) , p(3r2))"),
        ("X is -3 + abs(Y) * 2 / 4", "(X is ((-3) + ((abs(Y) * 2) rdiv 4)))"),
        ("X is 2 * 1.5 ** 2", "(X is (2 * (3r2 ^ 2)))"),
        ("setof(X-Y, Z^(p(X), likes(Y, Z)), [H|T])", "setof((X - Y), Z ^ (p(X) , likes(Y, Z)), [H|T])"),
        ("p(X) -> p(Y); p(Z) -> p(A) ; p(B)", "((p(X) -> p(Y)) ; (p(Z) -> p(A)) ; p(B))"),
        ("once((p(X) ; p(Y))), p(X), p(Y) -> p(Z)", "((once((p(X) ; p(Y))) , p(X) , p(Y)) -> p(Z))"),
    ],
)
def test_goals_are_written_bracketed_and_quoted(text: str, written: str) -> None:
    """Operators are bracketed, texts quoted, decimals and division exact; what is written is read as the same."""
    assert written_goal(text) == written
    assert written_goal(written.replace("rdiv", "/").replace("3r2", "1.5")) == written


def test_a_goal_knows_what_it_answers() -> None:
    """Variables in findall, in negation, before `^` and with an underscore have no answers; predicates are listed."""
    goal = parse_goal(
        "findall(X, p(X), L), setof(A, B^likes(A, B), M), \\+ p(C), likes(_, _D), bagof(E, likes(E, F), N)", TWO
    )

    assert goal.variables == ("L", "M", "F", "N")
    assert goal.called == ("p/1", "likes/2")


@pytest.mark.parametrize("text", ["(" * 15_000, "[" * 15_000, "p(" * 15_000, "\\+ " * 30_000, "- " * 30_000 + "1 < X"])
def test_endless_nesting_of_a_goal_is_refused(text: str) -> None:
    """It would crash Prolog's reader; a thousand literals side by side are no nesting."""
    with pytest.raises(RulesRejected, match=r"HPX05[67]"):
        parse_goal(text, TWO)
    assert written_goal(", ".join(["p(X)"] * 1000)).count("p(X)") == 1000


@given(st.text(alphabet=st.sampled_from("pXab_(),;[]|'\"\\+-*/<>=^.~@ \n0é→is"), max_size=60))
def test_any_goal_is_read_or_refused(text: str) -> None:
    """Any text is read or rejected with faults."""
    try:
        written = written_goal(text)
    except HapaxError as fault:  # some functions of rules have no form in Prolog
        written = str(fault)

    assert written
