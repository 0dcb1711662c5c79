"""LINK's rules.json: read, written and placed."""

from __future__ import annotations

import json
import subprocess
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hapax.grammar.errors import HapaxError, Place, RulesRejected
from hapax.grammar.parsing.declarations import PredicateKind, Tolerance, default_polarity, default_principle
from hapax.grammar.parsing.parser import parse_library, read_rules, read_texts
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Variable
from hapax.grammar.writing.link_json import to_link_json
from hapax.grammar.writing.prolog_text import clause_text, prolog_atom, prolog_value
from hapax.grammar.writing.verbalize import negated_template, question_template

ENTRY = {
    "premise_map": {"is_Ancient(A, B)": "[A] is Ancient and A [B]", "was_invented_in(A, Y)": "[A] was invented in [Y]"},
    "conclusion_map": {"cannot_use(B, A)": "[B] cannot use [A]"},
    "variables": {
        "A": ["A", "Tool", False, None],
        "B": ["B", "Person", True, None],
        "Y": ["Y", "Year", False, "factual"],
    },
}


def from_link_json(text: str, file: str) -> Library:
    """The library of a LINK file."""
    read = read_texts([(f"{file}.json", text)])
    if read.diagnostics:
        raise RulesRejected(read.diagnostics)
    return read.library


def test_a_file_of_link_comes_back() -> None:
    """A factual variable makes its predicate functional, and the A of "Ancient" is no slot (LINK's replace made it one)."""
    library = from_link_json(json.dumps({"r": ENTRY}), "f")
    templates = library.signature("is_Ancient/2").templates

    assert templates is not None
    assert templates.affirmative == "[1] is Ancient and A [2]"
    assert library.signature("was_invented_in/2").kind is PredicateKind.FUNCTIONAL
    assert library.rule("r").generic == ("B",)
    assert json.loads(to_link_json(library)) == {"r": ENTRY}


@pytest.mark.parametrize("order", ["fu", "uf"])
def test_any_use_of_a_predicate_may_make_it_functional(order: str) -> None:
    """Its variable is factual in one of two rules, the first or the second."""
    unknown = {**ENTRY, "variables": {**ENTRY["variables"], "Y": ["Y", "Year", False]}}
    entries = {kind: ENTRY if kind == "f" else unknown for kind in order}

    library = from_link_json(json.dumps(entries), "f")
    assert library.signature("was_invented_in/2").kind is PredicateKind.FUNCTIONAL


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{", "[" * 100_000, '{"r": 1}', '{"r": {}}', '{"r": {"variables": {}, "premise_map": 3}}'),
        json.dumps({"r": {**ENTRY, "variables": {"A": ["A", "T\n@name x", False, None]}}}),
        json.dumps({"r": {**ENTRY, "premise_map": {"p(Q)": None}}}),
        json.dumps({"r": {**ENTRY, "premise_map": {"p(A) -> q(A)\nfact": None}}}),
        json.dumps({"r": {**ENTRY, "conclusion_map": {}}}),
    ],
)
def test_other_json_is_refused(text: str) -> None:
    """JSON of another form than LINK's is an error that names the file."""
    with pytest.raises(HapaxError, match=r"^f.json:1:"):
        from_link_json(text, "f")


@pytest.mark.parametrize(
    "text",
    ["not p(Person X) & q(Person X) -> r(Person X)", "p(Age A) & A < 3 -> q(Age A)", 'p(Age A, "b") -> q(Age A)'],
)
def test_rules_that_link_cannot_say_are_named(text: str) -> None:
    """Negations, comparisons and constants have no place in LINK's JSON."""
    with pytest.raises(HapaxError, match="rule1"):
        to_link_json(parse_library([("f", text)]))


LETTERS = st.lists(st.sampled_from("XAB"), min_size=1, max_size=3)


@given(
    st.lists(st.tuples(st.sampled_from("pq"), LETTERS), min_size=1, max_size=4, unique_by=str),
    st.sets(st.sampled_from("XAB")),
    st.none()
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1).filter(str.strip),
)
def test_rules_go_to_json_and_back(atoms: list[tuple[str, list[str]]], generic: set[str], domain: str | None) -> None:
    """Any rule that LINK's form can express comes back equal."""
    premise = tuple(
        Literal(Atom(f"{name}_{len(letters)}", tuple(Variable(letter, f"Type {letter}") for letter in letters)))
        for name, letters in atoms
    )
    conclusion = Literal(Atom("cannot_r", (premise[0].atom.arguments[0],)))
    polarity = default_polarity(conclusion)
    order = dict.fromkeys(variable.name for item in premise for variable in item.variables)
    names = tuple(name for name in order if name in generic)
    rule = Rule("r", premise, conclusion, domain, default_principle(polarity), polarity, names)

    assert from_link_json(to_link_json(Library((rule,))), "f").rules == (rule,)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{"r":\r\n {"variables": {]}}', 2, "]"),
        ('{"r":\n {}}', 1, '"r"'),
        (json.dumps({"s": ENTRY, "r": {**ENTRY, "variables": {"A": 3}}}, indent=1), 31, '"r"'),
        (json.dumps({"s": ENTRY, "r": {**ENTRY, "premise_map": {"p(Q)": None}}}, indent=1), 31, '"r"'),
    ],
)
def test_json_of_another_form_is_placed(text: str, line: int, words: str, tmp_path: Path) -> None:
    """A fault of JSON and of LINK's form names its line and column."""
    path = tmp_path / "f.json"
    path.write_bytes(text.encode())

    (fault,) = read_rules([path]).diagnostics

    assert (fault.code, fault.place.line) == ("HPX060", line)
    assert words_at(text, fault.place).startswith(words)


@given(
    st.lists(st.tuples(st.sampled_from(["p", "is_in", "größer"]), LETTERS), min_size=1, max_size=3, unique_by=str),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
)
def test_every_atom_is_placed_at_its_rule(
    atoms: list[tuple[str, list[str]]], indent: int | str | None, ascii_only: bool
) -> None:
    """However the JSON is laid out, each atom and argument has the place of the rule's name."""
    keys = {f" {name}_{len(letters)} ( {' , '.join(letters)})": "so it is" for name, letters in atoms}
    variables = {letter: [letter, f"Type {letter}", False, None] for letter in "XAB"}
    conclusion = {f"q({atoms[0][1][0]})": None}
    entry = {"premise_map": keys, "conclusion_map": conclusion, "variables": variables}
    text = json.dumps({"r": entry}, indent=indent, ensure_ascii=ascii_only)

    (rule,) = read_texts([("f.json", text)]).library.rules

    for atom in rule.atoms:
        assert atom.place is not None
        for place in (atom.place, *atom.argument_places):
            assert words_at(text, place).startswith('"r": ')


def words_at(text: str, place: Place) -> str:
    """The rest of the line at a place."""
    return text.replace("\r\n", "\n").split("\n")[place.line - 1][place.column - 1 :]


def library_of(text: str) -> Library:
    return parse_library([("test.rules", text)])


def swipl(program: str, goal: str, folder: Path) -> str:
    """The output of the goal over the program; a warning or error while loading fails the test."""
    path = folder / "program.pl"
    path.write_text(program, encoding="utf-8")
    begin = f"set_stream(user_output, encoding(utf8)), use_module('{path}'), {goal}"
    command = ["swipl", "-q", "-g", begin, "-t", "halt"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=True)

    assert done.stderr == ""
    return done.stdout


HOSTILE = [
    *("'", "\\", "a'), halt, p('", "é→🙂", "\n\r\t", "\x01\x7f\u2028\ufeff", "[]", "{}", "Upper", "_x", "", "dynamic"),
    *("is", "a b", "%", "/* */", "\\x41\\", "x" * 100_000, "ﷺ", "\ufffe", "\U0010ffff", "~w", "0'a", ":-"),
    "end_of_file",
]


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=50, max_size=50))
def test_texts_come_back_from_prolog_character_by_character(tmp_path: Path, drawn: list[str]) -> None:
    """Prolog sees the same code points, of hostile texts and of any others."""
    texts = [*HOSTILE, *drawn]
    program = ":- encoding(utf8).\n:- module(m, [t/1]).\n" + "\n".join(f"t({prolog_value(text)})." for text in texts)
    printed = swipl(program + "\n", "forall(t(T), (atom(T), atom_codes(T, C), print(C), nl))", tmp_path)

    assert printed.splitlines() == ["[" + ",".join(str(ord(character)) for character in text) + "]" for text in texts]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_prolog_cannot_hold_is_refused(text: str) -> None:
    """NUL and lone surrogates are an error that names them."""
    with pytest.raises(HapaxError, match="U\\+"):
        prolog_atom(text)


@given(st.integers() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_numbers_are_exact(value: int | Decimal) -> None:
    """A number written for Prolog is the same number; a whole one has no denominator."""
    written = prolog_value(value)

    assert Fraction(written.replace("r", "/")) == value
    assert value != int(value) or "r" not in written


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), Decimal("1e999999")])
def test_numbers_without_an_exact_form_are_refused(value: Decimal) -> None:
    """NaN and numbers that would fill memory are errors."""
    with pytest.raises(HapaxError, match="exact"):
        prolog_value(value)


def test_tests_come_after_what_binds_their_variables() -> None:
    """Comparisons and negations follow their literals; a computed equation stands before those that need its result."""
    library = library_of(
        "computed later(Year A, Year B) := A > B\n"
        "computed sum_of(Number A, Number B, Number C) := C = A + B\n"
        "not q(Person X) & A \\= 3 & C = A + 1 & later(C, B) & p(Person X, Year A) & p(Person Y, Year B) -> r(X, Year C)\n"
        "later(C, B) & sum_of(A, 1, C) & p(Person X, Year A) & p(Person Y, Year B) -> s(X, Year C)"
    )

    assert [clause_text(rule, library) for rule in library.rules] == [
        "r(X, C) :-\n    p(X, A),\n    \\+ q(X),\n    number(A), A =\\= 3,\n    number(A), C is (A + 1),\n"
        "    p(Y, B),\n    later(C, B).",
        "s(X, C) :-\n    p(X, A),\n    sum_of(A, 1, C),\n    p(Y, B),\n    later(C, B).",
    ]


@pytest.mark.parametrize(
    ("tolerance", "values", "agree"),
    [
        ("2", ("a", "a"), True),
        ("2", ("a", "b"), False),
        ("2", ("1", 1), False),
        ("2", (1, 3), True),
        ("2", (1, 4, 2), False),
        ("2", (1, Decimal("3.01")), False),
        ("5%", (95, 100), True),
        ("5%", (-100, -95), True),
        ("5%", (94, 100, 97), False),
        ("0%", ("a", "a", 1), False),
        ("2", (Decimal("1e1000"), 10**1000 + 2), True),
        ("2", (Decimal("1e99999999"), Decimal("10e99999998")), True),
        ("50%", (Decimal("1e99999999"), Decimal("1.1e99999999")), False),
    ],
)
def test_values_agree_within_a_tolerance(tolerance: str, values: tuple[str | int | Decimal, ...], agree: bool) -> None:
    """Up to a difference, or a share of the larger one; texts, and numbers that are too large, only if they are equal."""
    assert Tolerance.parsed(tolerance).covers_all(values) is agree


@pytest.mark.parametrize(
    ("affirmative", "negated", "question"),
    [
        ("[1] can plant [2]", "[1] cannot plant [2]", "can [1] plant [2]?"),
        ("[1] cannot plant [2]", "[1] can plant [2]", "is it true that [1] cannot plant [2]?"),
        ("[1] is not able to eat [2]", "[1] is able to eat [2]", "is it true that [1] is not able to eat [2]?"),
        ("[1] was born in [2]", "[1] was not born in [2]", "was [1] born in [2]?"),
        ("[1] lived in [2]", "it is not true that [1] lived in [2]", "is it true that [1] lived in [2]?"),
    ],
)
def test_forms_follow_the_verb(affirmative: str, negated: str, question: str) -> None:
    """Auxiliaries take "not" and move to the front; other verbs are denied and asked as a whole."""
    assert (negated_template(affirmative), question_template(affirmative)) == (negated, question)
