"""Rule text to rules and back, and the diagnostics of malformed text."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hapax.grammar.attributes import Polarity, Principle, default_generic, default_polarity, default_principle
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.hints import DIAGNOSTICS_PER_FILE, FORM_HINTS, TOO_MANY, UNREADABLE, Hint
from hapax.grammar.parser import (
    KEYWORDS,
    load_library,
    parse_library,
    parse_rule,
    parse_statements,
    read_texts,
    statement_tokens,
)
from hapax.grammar.printing import format_library, signature_text
from hapax.grammar.rules import Library, PredicateKind, Rule
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable

LINK = Path(__file__).parents[2] / "shared" / "data" / "link"

LINES = [
    line for line in (Path(__file__).parent / "programs" / "identity.rules").read_text("utf-8").split("\n") if line
]


def read(text: str) -> Library:
    return parse_library([("example.rules", text)])


def codes(text: str) -> list[str]:
    with pytest.raises(RulesRejected) as caught:
        read(text)
    return [diagnostic.code for diagnostic in caught.value.diagnostics]


@pytest.mark.parametrize("line", LINES)
def test_every_line_prints_to_what_it_was_read_from(line: str) -> None:
    """Libraries and rules print to text that reads back as the same."""
    library = read(line)

    assert read(format_library(library)) == library
    for rule in library.rules:
        assert parse_rule(str(rule), library) == rule


malformed_examples = pytest.mark.parametrize(
    ("entry", "example"),
    [(entry, text) for entry in FORM_HINTS if entry not in (UNREADABLE, TOO_MANY) for text in entry.examples],
    ids=lambda value: value.label if isinstance(value, Hint) else "",
)


@malformed_examples
def test_every_malformed_example_gets_its_own_diagnostic(entry: Hint, example: str) -> None:
    """Each example of a hint gives exactly its diagnostic."""
    assert codes(example) == [entry.code]


@malformed_examples
def test_a_fault_among_good_statements_is_reported_alone(entry: Hint, example: str) -> None:
    """The attribute before a malformed statement and the statements around it get no diagnostics."""
    attribute = "" if example.startswith(("@", *KEYWORDS)) else "@domain any\n"
    before = "oracle eats(Person, Dish)\n@name before\neats(X, A) & eats(X, B) -> may_eat(X, B)."
    after = "oracle likes(Person, Dish)\n@name after\n@domain any\nlikes(X, A) & likes(X, B) -> may_like(X, B)"

    assert codes(f"{before}\n{attribute}{example}\n{after}") == [entry.code]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("HPX002", "@name a\np(T X), q(T X) -> r(T X)"),
        ("HPX010", "@name a\n& p(T X) -> q(T X)"),
        ("HPX024", "@domain a\n@name b p(T X) -> q(T X)\n@domain c\nq(T X) -> r(T X)"),
        ("HPX057", "@name a\n" + "p(T X) & " * 3000 + "p(T X) -> q(T X)"),
        ("HPX013", "p(T X)) -> q(T X)\np(T X) -> q(T X)\n@name rule1\nq(T X) -> r(T X)"),
        ("HPX004", "p(T X) ->\noracle likes(Person, Dish)\nlikes(X, A) -> q(X, A)"),
        ("HPX020", "likes(X, A) & likes(X, B) -> q(X, B)\noracle likes(Person, Dish): [1]"),
        ("HPX020", "likes(X, A) & likes(X, B) -> q(X, B)\nfunctional likes"),
        ("HPX020", 'oracle "likes"(Person, Dish)\nlikes(X, A) & likes(X, B) -> q(X, B)'),
        ("HPX048", 'oracle likes(Person, Dish): "[3]"\nlikes(X, A) & likes(X, B) -> q(X, B)'),
        ("HPX044", 'oracle likes(Person, "Dish"): "[1] likes [2]"\nlikes(X, A) & likes(X, B) -> q(X, B)'),
        ("HPX040", "oracle likes it(Person, Dish)\nlikes_it(X, A) & likes_it(X, B) -> q(X, B)"),
        ("HPX040", "oracle likes_it(Person, Dish)\nlikes it(X, A) & likes_it(X, B) -> q(X, B)"),
        ("HPX041", "p(PersonX, Food A) -> q(X, A)"),
        ("HPX042", "p(Food A) & q(X, A) & X < 3 -> r(X, A)"),
        ("HPX045", "computed p(Year, Year B) := A < B"),
        ("HPX046", 'computed p(Year A) := A < B + B: "[1] is before [2]"'),
        ("HPX054", '@name "\\q"\np(T X) -> q(T X)'),
    ],
)
def test_what_only_follows_from_a_fault_is_not_reported(code: str, text: str) -> None:
    """A rule or declaration that cannot be read does not make attributes, uses and variables look faulty."""
    assert codes(text) == [code]


def test_a_rule_of_ten_thousand_tokens_is_the_longest() -> None:
    """A statement of exactly 10,000 tokens is read; one token more makes it too long."""
    values = ", ".join(['"a"'] * 4998)  # each with its comma or bracket two tokens; `fact`, `p`, `(` and `.` are four

    read(f"fact p({values}).")
    assert codes(f'fact p({values}, "a")') == ["HPX057"]


def test_a_file_that_cannot_be_read_may_have_declared_anything(tmp_path: Path) -> None:
    """Variables that it may have given a type get no diagnostic."""
    rules = tmp_path / "a.rules"
    rules.write_text("likes(X, A) & likes(X, B) -> q(X, B)")
    with pytest.raises(RulesRejected) as caught:
        load_library([rules, tmp_path / "missing.rules"])

    assert [fault.code for fault in caught.value.diagnostics] == [UNREADABLE.code]


def test_codes_and_labels_are_unique() -> None:
    """A code names one fault."""
    assert len({entry.code for entry in FORM_HINTS}) == len({entry.label for entry in FORM_HINTS}) == len(FORM_HINTS)


@pytest.mark.skipif(not LINK.exists(), reason="the papers' data (../shared) is not here")
def test_the_papers_rules_parse() -> None:
    """The rules printed in section 2.2 and tables 2 and 5 of the paper are read, stray blanks included."""
    library = load_library([LINK / "paper_rules.txt"])

    assert len(library.rules) == 6
    assert library.rule("rule3").premise[1] == Literal(
        Atom("is_ingredient_in", (Variable("Z", "Ingredient"), Variable("B", "Name of a dish or food")))
    )
    assert library.rule("rule3").conclusion.atom.arguments[0] == Variable("P", "Person")


def test_one_variable_has_the_most_specific_of_its_types() -> None:
    """A type and its declared supertype, or Object, settle on the more specific one wherever the variable occurs."""
    rule = read("type Car < Vehicle\np(Vehicle B, Age Y) & q(Object B) & r(Car B) -> s(Object B)").rules[0]

    assert {variable.data_type for variable in rule.variables if variable.name == "B"} == {"Car"}
    assert rule.conclusion.atom.arguments == (Variable("B", "Car"),)


def test_unrelated_types_stay_for_the_check_to_report() -> None:
    """If a variable's types are unrelated, each occurrence keeps its own."""
    rule = read("p(Person B) & q(Vehicle B) -> r(B)").rules[0]

    assert [atom.arguments[0] for atom in rule.atoms] == [
        Variable("B", "Person"),
        Variable("B", "Vehicle"),
        Variable("B", "Person"),
    ]


def test_types_compare_without_case_and_keep_one_spelling() -> None:
    """The first spelling is used throughout."""
    rule = read("p(Person X, Food allergen A) & q(Food  Allergen A) -> r(person X)").rules[0]

    assert str(rule.conclusion) == "r(Person X)"
    assert str(rule.premise[1]) == "q(Food allergen A)"


def test_defaults_follow_the_conclusion() -> None:
    """Polarity, principle and generic variable are inferred."""
    rule = read("likes(Person X, Plant Y) & p(Plant Y, Area A) -> cannot_plant(Person X, Plant Y)").rules[0]

    assert (rule.polarity, rule.principle) == (Polarity.NEGATIVE, Principle.EXCLUSION)
    assert (rule.generic, rule.name) == (("X",), "rule1")


def test_generic_falls_back_to_the_first_argument_of_the_premise() -> None:
    """Without a person the first premise atom's first argument is generic if the conclusion speaks of it, else none."""
    library = read(
        "holds(Drawer B, Tool C) & larger(Tool A, Tool C) -> cannot_be_in(Tool A, Drawer B)\n"
        "larger(Tool C, Tool A) -> smaller(Tool A, Tool D)\n"
        "likes(Person X, Tool C) -> liked(Tool C, Person P)"
    )

    assert [rule.generic for rule in library.rules] == [("B",), (), ()]


def test_statements_go_on_over_newlines() -> None:
    """Parentheses and operators carry a statement on; comments and blank lines between do not matter."""
    text = "p(Person X,\n  Food A) &  # and\n\n q(Food A)\n  -> r(Person X).\n"
    text += 'oracle p(Person, Food):\n "[1] p [2]"\n / "n"'
    library = read(text)

    assert str(library.rules[0]).endswith("p(Person X, Food A) & q(Food A) -> r(Person X)")
    assert library.signature("p/2").templates is not None


def test_keywords_are_words_inside_types() -> None:
    """ "Blood type" and "Given Fact" are data types although type, given and fact begin statements."""
    rule = read("has(Person X, Blood type B) & p(Given fact C, Blood type B) -> q(Person X)").rules[0]

    assert rule.premise[0].variables[1] == Variable("B", "Blood type")


def test_a_fault_ends_with_its_statement() -> None:
    """All faults of all files are reported at their places; a forgotten parenthesis does not swallow the next rule."""
    broken = "p(Person X & q(Person X) -> r(Person X)\nfact p(ada)\n@nmae x\np(Person X), q(Person X) -> r(Person X)\n"
    with pytest.raises(RulesRejected) as caught:
        parse_library([("a", broken), ("b", "p(Person X)")])

    places = [(fault.code, fault.place.file, fault.place.line) for fault in caught.value.diagnostics]
    assert places == [
        ("HPX012", "a", 1),
        ("HPX043", "a", 2),
        ("HPX049", "a", 3),
        ("HPX002", "a", 4),
        ("HPX004", "b", 1),
    ]
    assert str(caught.value).startswith('a:1:12: error HPX012: a "(" is not closed')


def test_a_whole_file_of_garbage_gives_fifty_faults_and_a_count() -> None:
    """A megabyte of nonsense is refused without listing all of it."""
    found = codes('%& ( $$ ]\n$$$ nonsense ( ( 1.e9 "\n' * 40_000)

    assert len(found) == DIAGNOSTICS_PER_FILE + 1
    assert found[-1] == TOO_MANY.code


def test_one_fault_beyond_fifty_is_counted() -> None:
    """The example of the count is a file with one fault more than are listed."""
    (example,) = TOO_MANY.examples

    assert codes(example) == ["HPX013"] * DIAGNOSTICS_PER_FILE + [TOO_MANY.code]


@pytest.mark.parametrize(
    "text", ["(" * 30_000, "(" * 15_000 + ")" * 15_000, "p(" * 15_000, "p(T X) & X < " + "-" * 30_000]
)
def test_nesting_is_refused_not_followed(text: str) -> None:
    """30 kB of brackets or signs give a diagnostic."""
    assert len(codes(text)) == 1


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from('pqXA(), &->:=."\\[]/\n@#%<not type fact\0é→🙂3'), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any text is read or rejected with diagnostics."""
    try:
        library = read(text)
    except RulesRejected as fault:
        handled = len(fault.diagnostics) > 0
    else:
        handled = read(format_library(library)) == library

    assert handled


CHARACTERS = st.characters(exclude_characters="\0", exclude_categories=("Cs",))
"""Characters that Prolog and SQLite can hold."""

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
    expressions = st.recursive(
        terms, lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner), max_leaves=6
    )
    comparisons = st.builds(Comparison, st.sampled_from(["<", "=<", ">", ">=", "=", "\\="]), expressions, expressions)
    every = Literal(Atom("all_of", tuple(variables)))
    others = draw(st.lists(st.one_of(st.builds(Literal, atoms, st.booleans()), comparisons), max_size=4))
    conclusion = Literal(draw(atoms))
    polarity = draw(st.sampled_from([default_polarity(conclusion), *Polarity]))
    return Rule(
        draw(st.text(CHARACTERS, min_size=1, max_size=8).filter(str.strip)),
        (every, *others),
        conclusion,
        draw(st.none() | st.text(CHARACTERS, min_size=1, max_size=8).filter(str.strip)),
        draw(st.sampled_from([default_principle(polarity), *Principle])),
        polarity,
        draw(
            st.sampled_from([default_generic((every, *others), conclusion, Library().is_person)[0], (), ("A", "Z22")])
        ),
    )


@settings(deadline=None)
@given(rules())
def test_a_rule_prints_to_what_reads_as_itself(rule: Rule) -> None:
    """parse(str(rule)) == rule, whatever its texts hold."""
    assert parse_rule(str(rule)) == rule


def test_numbers_and_texts_are_distinguished() -> None:
    """A quoted number is a text, a decimal is exact."""
    library = read('fact p("1876", 1876, -2.50, "a\\"b\\\\c\\u{1F642}")')

    assert library.facts[0].arguments == (
        Constant("1876"),
        Constant(1876),
        Constant(Decimal("-2.5")),
        Constant('a"b\\c🙂'),
    )


def test_declarations_hold_what_they_say() -> None:
    """Kind, types, templates and definition are read; slots may go by name; undeclared predicates are inferred."""
    library = read(
        'computed is_before(Year A, Year B) := A < B: "[A] is before [B]" / "" / "is [1] before [2]?"\n'
        "functional born(Person, Year)\np(Person X, Food A) -> q(Person X)"
    )

    before = library.signature("is_before/2")
    assert before.templates is not None
    assert (before.templates.affirmative, before.templates.negated) == ("[1] is before [2]", None)
    assert before.definition == Comparison("<", Variable("A", "Year"), Variable("B", "Year"))
    assert library.signature("born/2").kind is PredicateKind.FUNCTIONAL
    assert not library.signature("p/2").declared
    assert library.signature("p/2").argument_types == ("Person", "Food")
    assert library.derived == {"q/1"}


def test_a_bare_variable_takes_its_type_from_a_declaration() -> None:
    """If no atom of the rule gives a variable a type, the declaration does."""
    assert read("oracle p(Person, Food)\np(X, A) -> q(X)").rules[0].conclusion.variables == (Variable("X", "Person"),)


def test_rules_without_name_in_two_files_do_not_collide() -> None:
    """The rule1 of a second file has the file's name before it."""
    library = parse_library([("a.rules", "p(Person X) -> q(Person X)"), ("b.rules", "q(Person X) -> r(Person X)")])

    assert [rule.name for rule in library.rules] == ["rule1", "b_rule1"]


def test_files_that_cannot_be_read_are_reported_with_the_others(tmp_path: Path) -> None:
    """A missing file, one that is not UTF-8 and a broken JSON are reported, and so is the faulty rule beside them."""
    (tmp_path / "latin.rules").write_bytes(b'fact p("caf\xe9")')
    (tmp_path / "bad.rules").write_text("p(Person X")
    (tmp_path / "bad.json").write_text("[" * 100_000)
    with pytest.raises(RulesRejected) as caught:
        load_library([tmp_path, tmp_path / "missing.rules"])

    assert sorted(fault.code for fault in caught.value.diagnostics) == ["HPX012", "HPX060", "HPX060", "HPX060"]


def test_parse_rule_wants_one_rule() -> None:
    """Anything beside a single rule is refused."""
    with pytest.raises(HapaxError, match="one rule"):
        parse_rule("p(Person X) -> q(Person X)\nq(Person X) -> r(Person X)")


RULE_TEXT = "p(Person X, Food A) & q(Food A, Place B) -> r(Person X, Place B)\n"


def test_long_words_are_shortened_in_messages() -> None:
    """A word of up to 60 characters is shown whole, a longer one by its first 57 and three dots."""
    messages = []
    for length in (60, 61):
        with pytest.raises(RulesRejected) as rejected:
            parse_library([("a.rules", f"@polarity {'y' * length}\n{RULE_TEXT}")])
        messages.append(rejected.value.diagnostics[0].message)

    assert f'"{"y" * 60}" is not' in messages[0]
    assert f'"{"y" * 57}..." is not' in messages[1]


def test_the_first_rule_of_a_name_is_named_beside_the_second() -> None:
    """The diagnostic of a doubled name refers to the first rule, also where another fault of the file comes before."""
    text = f"@polarity odd\n{RULE_TEXT}@name a\n{RULE_TEXT}@name a\n{RULE_TEXT}"
    with pytest.raises(RulesRejected) as rejected:
        parse_library([("a.rules", text)])
    related = {
        diagnostic.code: [place.line for place in diagnostic.related] for diagnostic in rejected.value.diagnostics
    }

    assert related == {"HPX050": [], "HPX053": [4]}


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ('functional p(A, Year) within 2: "[1] is [2]"', "within 2:"),
        ('functional p(A, Year) within 2.50 %: "[1] is [2]"', "within 2.50%:"),
        ("functional p(A, Year) within 5%", "within 5%"),
        ("functional p(A, Year) within 5% # a note", "within 5%"),
        ("functional p(A, Year) within 5 % a note", "within 5"),
        ("functional p(A, Year) within 5.", "within 5"),
    ],
)
def test_a_tolerance_is_read_and_printed(text: str, printed: str) -> None:
    """`within` is an amount or, with a sign that is no comment, a share; a printed declaration reads back the same."""
    (signature,) = parse_library([("a.rules", text)]).signatures
    again = parse_library([("b.rules", signature_text(signature))]).signatures

    assert printed in signature_text(signature) + ":"
    assert again == (signature,)


@pytest.mark.parametrize(
    "text", ["functional p(A, Year) within", "functional p(A, Year) within five", 'functional p(A, Year) 5: "[1]"']
)
def test_a_malformed_tolerance_is_refused(text: str) -> None:
    """Nothing but a number may follow `within`."""
    with pytest.raises(RulesRejected):
        parse_library([("a.rules", text)])


def test_line_ends_of_every_system_are_line_ends() -> None:
    """A file with carriage returns alone has the rules and the places of the same file with newlines."""
    lines = [
        "# rules",
        "edge(City A, City B) & edge(City B, City C) -> two(City A, City C)",
        "",
        'fact edge("a", "b")',
        "",
    ]
    read = [parse_library([("r.rules", end.join(lines))]) for end in ("\n", "\r\n", "\r")]

    assert read[0].rules[0].place.line == 2
    assert read[0] == read[1] == read[2]


def test_a_variable_is_a_capital_letter_of_any_alphabet() -> None:
    """`Ä` and `Ω2` are variables; a small letter and a word are none."""
    rule = parse_rule("p(Person Ä, City Ω2) -> q(City Ω2, Person Ä)")

    assert [variable.name for variable in rule.variables] == ["Ä", "Ω2"]
    with pytest.raises(RulesRejected):
        parse_rule("p(Person ä, City B) -> q(City B, Person ä)")


def test_an_equation_gives_a_variable_its_type() -> None:
    """The printed rule keeps the type that no atom states, and a type that contradicts an atom's is an error."""
    rule = parse_rule("p(Age A, T X) & Number K = A + 1 & K > 3 -> r(T X)")

    assert rule.sentence == "p(Age A, T X) & Number K = A + 1 & K > 3 -> r(T X)"
    assert [str(variable) for variable in rule.variables] == ["Age A", "T X", "Number K"]

    text = "p(Age A, T X) & Number K = A + 1 & q(Dish K) -> r(T X)"
    assert "HPX102" in [diagnostic.code for diagnostic in check_library(read(text))]


@pytest.mark.parametrize("arrow", ["->", ":-"])
def test_an_arrow_below_a_blank_line_belongs_to_the_premise_above(arrow: str) -> None:
    """No statement begins with an arrow; the other operators carry a rule over one newline only."""
    before, after = ("p(T X) & q(T X)", "r(T X)")
    text = f"{before}\n\n-> {after}" if arrow == "->" else f"{after} :-\n\n{before}"

    (rule,) = parse_library([("t", text)]).rules
    assert rule.sentence == "p(T X) & q(T X) -> r(T X)"


TEMPLATES = '"[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?"'

DECLARATIONS = {
    "type": "type Dog < Animal",
    "oracle": f"oracle eats(Dog, Food): {TEMPLATES}",
    "functional": f"functional eats(Dog, Food): {TEMPLATES}",
    "given": f"given eats(Dog, Food): {TEMPLATES}",
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


@given(st.sampled_from(sorted(DECLARATIONS)), st.data())
def test_a_slip_in_a_keyword_names_the_keyword(keyword: str, data: st.DataObject) -> None:
    """One wrong letter in a keyword is a fault at the word that names the keyword, and the statements around are read."""
    slip = data.draw(st.sampled_from(slips(keyword)))
    text = f"type Child < Person\n{slip}{DECLARATIONS[keyword].removeprefix(keyword)}\ntype Adult < Person\n"

    (fault,) = parse_statements("a.rules", text)

    assert (fault.code, fault.place.line, fault.place.column) == ("HPX035", 2, 1)
    mended = [repair.new for repair in fault.fix]
    if keyword.endswith(
        "symmetric"
    ):  # two keywords differ by a letter; where both are near, nothing is mended by itself
        assert 'symmetric"?' in str(fault)
        assert mended == []
    else:
        assert f'Did you mean "{keyword}"?' in str(fault)
        assert mended == [keyword]


def test_rules_are_numbered_by_their_place_among_the_rules() -> None:
    """A rule that cannot be read keeps its number; a broken declaration has none, and an attribute only with an arrow."""
    text = """
        @polarity & affirmative
        p(Person X) -> q(Person X)
        p(Person X -> q(Person X)
        oracle r(Person X -> Person Y)
        @domain x -> y
        p(Person X) -> s(Person X)
    """
    library = read_texts([("t", text)]).library

    assert [rule.name for rule in library.rules] == ["rule1", "rule4"]


def test_a_declaration_that_cannot_be_read_explains_missing_types_of_its_own_predicate_alone() -> None:
    """It might have typed the variables of `likes`; those of `near`, which nothing declares, are a fault of their own."""
    broken = 'oracle likes(Person X, Food Y: "[1] likes [2]"\n'
    rules = "likes(X, Y) -> buys(X, Y)\nnear(P, Person Q) -> sees(P, Person Q)\n"

    with pytest.raises(RulesRejected) as rejected:
        parse_library([("t", broken + rules)])

    assert [(fault.code, fault.place.line) for fault in rejected.value.diagnostics] == [("HPX001", 1), ("HPX042", 3)]


@pytest.mark.parametrize(
    "text", ["orcale", "orcale & eats(Dog X)", "orcale(Dog X)", "colour red -> blue", 'imprt "a.rules"', "gven/2"]
)
def test_a_word_that_no_name_follows_is_no_keyword(text: str) -> None:
    """A word that does not go on as a declaration does, or is like no keyword, begins a faulty rule: it is no misspelt keyword."""
    faults = parse_statements("a.rules", text)

    assert len(faults) == 1
    assert faults[0].code != "HPX035"


def test_two_words_suffice_for_a_misspelt_keyword() -> None:
    """A declaration that has only just been begun is told of its keyword."""
    (fault,) = parse_statements("a.rules", "oracl eats")

    assert fault.code == "HPX035"


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("p(X) -> q(X). r(X) -> s(X)", ["p ( X ) -> q ( X )", "r ( X ) -> s ( X )"]),
        ("p(X)\n-> q(X)\nr(X) -> s(X)", ["p ( X ) -> q ( X )", "r ( X ) -> s ( X )"]),
        ("p(X) &\n\nq(X)", ["p ( X ) & q ( X )"]),
        ("p(X)\n& q(X)", ["p ( X ) & q ( X )"]),
        ("p(X)\n\n& q(X)", ["p ( X )", "& q ( X )"]),
        ("p(X,\nY)", ["p ( X , Y )"]),
        ("p(X\nY)\nq(X)", ["p ( X Y )", "q ( X )"]),
        ("p(X\n\nq(X)", ["p ( X", "q ( X )"]),
        ("p(X -> q(X)\nr(X)", ["p ( X -> q ( X )", "r ( X )"]),
        ("p(X\ntype A < B", ["p ( X", "type A < B"]),
        ("p(X\ntype(A) -> q(A)", ["p ( X", "type ( A ) -> q ( A )"]),
        ("p(X) &\ntype A < B", ["p ( X ) &", "type A < B"]),
        ('p(X) &\nimport "a.rules"', ["p ( X ) &", 'import "a.rules"']),
        ("p(X) &\ntype(A) -> q(A)", ["p ( X ) & type ( A ) -> q ( A )"]),
        ("p(X))\n(q)\nr", ["p ( X ) )", "( q )", "r"]),
        ("p(X\n@name a\nq(X)", ["p ( X", "@name a", "q ( X )"]),
        ("@name a,\nb\n& q(X)", ["@name a , b", "& q ( X )"]),
        ("food.is_in(X)", ["food . is_in ( X )"]),
        ("food. is_in(X)", ["food", "is_in ( X )"]),
        ("food .is_in(X)", ["food", "is_in ( X )"]),
        ("fact food.is_in(X)", ["fact food", "is_in ( X )"]),
        ("p(X) -> q(X)\nunless r(X)", ["p ( X ) -> q ( X ) unless r ( X )"]),
        ("p(X) -> q(X) unless\nr(X)", ["p ( X ) -> q ( X ) unless r ( X )"]),
        ("p(X) -> q(X)\nunless(X) -> r(X)", ["p ( X ) -> q ( X )", "unless ( X ) -> r ( X )"]),
        ("symmetric unless\np(X)", ["symmetric unless", "p ( X )"]),
        ("symmetric p/2\nunless r(X)", ["symmetric p / 2", "unless r ( X )"]),
        ("", []),
        (".\n. .", []),
    ],
)
def test_where_a_statement_ends(text: str, statements: list[str]) -> None:
    """A statement ends at a full stop or a newline that no parenthesis, sign or `unless` carries on over."""
    assert [" ".join(map(str, tokens)) for tokens in statement_tokens(text)[1]] == statements
