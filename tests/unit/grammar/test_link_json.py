"""LINK's rules.json: read, written and placed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.attributes import default_polarity, default_principle
from hapax.grammar.errors import HapaxError, Place, RulesRejected
from hapax.grammar.link_json import to_link_json
from hapax.grammar.parser import parse_library, read_rules, read_texts
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Atom, Literal, Variable

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
        (json.dumps({"s": ENTRY, "r": {**ENTRY, "variables": {"A": 3}}}, indent=1), 40, '"A"'),
        (json.dumps({"s": ENTRY, "r": {**ENTRY, "premise_map": {"p(Q)": None}}}, indent=1), 33, '"p(Q)"'),
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
def test_every_atom_is_placed_at_its_key(
    atoms: list[tuple[str, list[str]]], indent: int | str | None, ascii_only: bool
) -> None:
    """However the JSON is laid out, each atom and argument has the place of the atom's key."""
    keys = {f" {name}_{len(letters)} ( {' , '.join(letters)})": "so it is" for name, letters in atoms}
    variables = {letter: [letter, f"Type {letter}", False, None] for letter in "XAB"}
    conclusion = {f"q({atoms[0][1][0]})": None}
    entry = {"premise_map": keys, "conclusion_map": conclusion, "variables": variables}
    text = json.dumps({"r": entry}, indent=indent, ensure_ascii=ascii_only)

    (rule,) = read_texts([("f.json", text)]).library.rules

    for atom in rule.atoms:
        assert atom.place is not None
        for place in (atom.place, *atom.argument_places):
            key = json.loads(words_at(text, place).partition(": ")[0])
            assert key.replace(" ", "").startswith(f"{atom.predicate}(")


def words_at(text: str, place: Place) -> str:
    """The rest of the line at a place."""
    return text.replace("\r\n", "\n").split("\n")[place.line - 1][place.column - 1 :]
