"""The first hour of somebody who has only the README, with data of any kind."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from cli_fixture import invoke, run
from served import serving

import hapax

# --- first ------------------------------------------------------------------------------------------------------------


TABLE = """Id,Kind,Maker,City,Price
I1,Lute,Élodie,Kraków,746
I2,Lute,Élodie,Paris,297
I3,Viola,Élodie,,465
I4,Viola,Jean,Dublin,"1,200"
I2,Guitar,Jean,Dublin,658
"""
RULES = """
given instruments(id: Text, kind: Text, maker: Text, city: Text, price: Number)
instruments(id: I, price: P) & P > 500 -> is_dear(I)
aggregate average_price(Text M, Number N) := N = avg(Number P, Text I: instruments(id: I, maker: M, price: P))
"""
MAP = "- {predicate: instruments, columns: [Id, Kind, Maker, City, Price], key: Id}\n"
IMPORT = ("import", "table.csv", "--map", "map.yaml", "--rules", "my.rules", "--db", "my.db", "--skip-faulty")
AVERAGE = "502.6666666666666666666666667"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder with a table, rules, a mapping, and the base of an import that left two rows out."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"table.csv": TABLE, "my.rules": RULES, "map.yaml": MAP}.items():
        Path(name).write_text(text, "utf-8")
    run(*IMPORT)


def output(*arguments: object, code: int = 0) -> str:
    """All that a command prints."""
    result = run(*arguments, code=code)
    return f"{result.stdout}\n{result.stderr}"


# -- why and why-not


def test_an_atom_by_its_columns_is_explained() -> None:
    """One row is explained like an atom in full; of several rows the first are."""
    single = output("why", 'instruments(id: "I1", price: 746)', "--db", "my.db")
    several = output("why", "instruments(maker: _, kind: 'Lute')", "--db", "my.db")

    assert 'instruments("I1", "Lute", "Élodie", "Kraków", 746)  [given]' in single
    assert [name in several for name in ('"I1"', '"I2"', '"I3"')] == [True, True, False]


@pytest.mark.parametrize(
    ("atom", "words"),
    [
        ('instruments(id: "I1", price: 745)', ["price is 746 and not 745"]),
        ('instruments(id: "I3", city: "Paris")', ['city is empty and not "Paris"']),
        ("instruments('I1', 'Lute', 'Élodie', 'Kraków', 7)", ["price is 746 and not 7"]),
        ('instruments(id: "I4")', ["left out", "table.csv:5", "1,200"]),
        ('instruments(id: "I2", kind: "Guitar")', ["table.csv:6", "left out", 'kind is "Lute" and not "Guitar"']),
        ('instruments(id: "I9")', ["not among the given facts"]),
        ('is_dear("I4")', ["left out", "table.csv:5"]),
        ("I4 is dear", ["left out", "table.csv:5"]),
        ('average_price("Jean", 3)', ["no row"]),
    ],
)
def test_a_row_that_is_not_there_is_explained(atom: str, words: list[str]) -> None:
    """The row that differs is shown with the column, and a row that an import left out with the reason."""
    told = output("why-not", atom, "--db", "my.db")

    assert [word for word in words if word not in told] == [], told


def test_a_row_that_was_withdrawn_or_corrected_is_no_longer_left_out() -> None:
    """A withdrawal is told for an atom by its columns, and the next import of the file forgets what the last left out."""
    run("data", "retract", 'instruments(id: "I1")', "--reason", "sold", "--db", "my.db")
    withdrawn = output("why-not", 'instruments(id: "I1")', "--db", "my.db")
    Path("table.csv").write_text(TABLE.replace('"1,200"', "1300"), "utf-8")
    run(*IMPORT)
    corrected = output("why-not", 'instruments(id: "I4", price: 1200)', "--db", "my.db")
    several = output("data", "retract", 'instruments(kind: "Viola")', "--reason", "sold", "--db", "my.db", code=1)
    run("data", "retract", 'instruments(id: "I4")', "--reason", "sold", "--db", "my.db")
    run("data", "retract", "--undo", 'instruments(id: "I4")', "--db", "my.db")

    assert "sold" in withdrawn
    assert "price is 1300 and not 1200" in corrected
    assert "1,200" not in corrected
    assert "2 facts" in several
    assert run("query", 'instruments(id: "I4", price: P)', "--db", "my.db").stdout.split() == ["P", "1300"]


def test_an_empty_cell_is_the_reason_why_a_premise_fails() -> None:
    """A row whose cell is empty, or differs from another that has to be the same, is told with the column's name."""
    Path("my.rules").write_text(
        "given sails(id: Text, leaves: Text, lands: Text) key id: '[1] sails from [2] to [3]'\n"
        "sails(I, A, B) -> arrives(I)\n"
        "sails(I, A, A) -> returns(I)\n"
        "sails(id: I, lands: B) & is_missing(B) -> is_lost(I)\n"
        "sails(id: I) & not sails(id: I, lands: 'Kiel') -> strays(I)\n"
        "sails(id: I) & not sails(I, _, _) -> never_was(I)\n"
        "sails(id: I) -> is_known(I) unless sails(I, _, _)\n",
        "utf-8",
    )
    Path("sails.csv").write_text("id,leaves,lands\nS1,Oslo,\nS2,Oslo,Kiel\n", "utf-8")
    columns = ("--predicate", "sails", "--columns", "id,leaves,lands")
    run("import", "sails.csv", *columns, "--rules", "my.rules", "--db", "sea.db")
    asked = ("--rules", "my.rules", "--db", "sea.db")

    assert 'in sails("S1", "Oslo", _), lands is empty' in output("why-not", "arrives('S1')", *asked)
    assert 'lands: empty in sails("S1", "Oslo", _)' in run("query", "sails('S1', A, B)", *asked).stderr
    returns = output("why-not", "returns('S2')", *asked)
    assert 'in sails("S2", "Oslo", "Kiel"), leaves and lands are not the same' in returns
    assert "lands is Kiel and not empty" in output("why-not", "is_lost('S2')", *asked).replace('"', "")
    assert "S1 sails from Oslo to _ " in output("why", "is_lost('S1')", *asked)
    # What one rule negates is no exception because another rule has it as one.
    assert "what it negates holds" in output("why-not", "never_was('S1')", *asked)
    assert "the exception applies" in output("why-not", "is_known('S1')", *asked)


def test_an_aggregate_with_another_value_shows_it() -> None:
    """The value and the rows that it counts are printed."""
    told = output("why-not", 'average_price("Élodie", 3)', "--db", "my.db")

    assert AVERAGE in told
    assert all(f'"{name}"' in told for name in ("I1", "I2", "I3"))


def test_an_average_is_given_back_as_it_was_printed() -> None:
    """The digits that `query` prints are the number in goals, in `why` and in `why-not`; fewer digits are another one."""
    goals = (f'average_price("Élodie", {AVERAGE})', f"average_price(M, N), N = {AVERAGE}")
    other = f'average_price("Élodie", {AVERAGE[:-2]}7)'

    assert AVERAGE in run("query", "average_price(_, N)", "--db", "my.db").stdout
    assert [bool(hapax.query(goal, hapax.load_rules("my.rules"), hapax.KnowledgeBase("my.db"))) for goal in goals] == [
        True,
        True,
    ]
    assert '"I2"' in output("why", goals[0], "--db", "my.db")
    assert "holds" in output("why-not", goals[0], "--db", "my.db", code=1)
    assert "does not hold" in output("why-not", other, "--db", "my.db")


def test_a_remedy_is_a_command_that_works_as_it_stands() -> None:
    """It has the knowledge base and the rule files of the command that names it."""
    Path("family.rules").write_text("parent(ann, bob). ancestor(X, Y) :- parent(X, Y).", "utf-8")
    for given in (('is_dear("I2")', "--db", "my.db"), ("ancestor(bob, ann)", "family.rules")):
        told = output("why", *given, code=1)
        command = shlex.split(re.findall("`hapax (.*?)`", told)[-1])

        assert command[0] == "why-not"
        assert "premise" in output(*command)


def test_a_sentence_is_explained_whether_it_holds_or_not() -> None:
    """`why` and `why-not` take the sentence of an atom or of a statement; neither takes one that says nothing."""
    run("derive", "--db", "my.db")
    statement = run("export", "--statements", "--db", "my.db").stdout

    assert "I1 is dear" in statement
    assert "746 > 500" in output("why", "I1 is dear.", "--db", "my.db")
    assert "297 > 500 is false" in output("why-not", "I2 is dear.", "--db", "my.db")
    assert "not an atom" in output("why-not", "It rains in Kraków", "--db", "my.db", code=1)


def test_an_open_base_explains_itself() -> None:
    """In Python a knowledge base has `why` and `why_not` beside `query`, with the rules that it keeps."""
    with hapax.KnowledgeBase("my.db", read_only=True) as kb:
        assert "746 > 500" in str(kb.why('is_dear("I1")'))
        assert "297 > 500 is false" in str(kb.why_not('is_dear("I2")'))


# -- goals and rules


GOALS = {
    "instruments(id: I, price: P) and P > 500": ["I1"],
    "instruments(id: I, price: P) & (P < 300 or P > 700)": ["I1", "I2"],
    "instruments(id: I, price: P), (P = 297 or\n P = 465)": ["I2", "I3"],
    'instruments(id: I, maker: M), not M contains "lod"': [],
    'instruments(id: I, city: C), C starts_with "Kra"': ["I1"],
}


@pytest.mark.parametrize("goal", GOALS)
def test_words_are_read_as_signs_in_goals_and_in_rules(goal: str) -> None:
    """`and`, `or` and a test between its arguments mean the same as `&`, `|` and the test before them."""
    names = re.findall(r"\b[IPMC]\b", goal)
    rule = f"{RULES}{goal} -> found(I)\n"

    assert "I" in names
    with hapax.KnowledgeBase("my.db", read_only=True) as kb:
        assert sorted(row["I"] for row in hapax.query(goal, hapax.load_rules("my.rules"), kb)) == GOALS[goal]
        assert sorted(row["I"] for row in kb.query("found(I)", hapax.parse_rules(rule))) == GOALS[goal]


def test_words_that_are_signs_elsewhere_may_be_parts_of_types() -> None:
    """A type `Food and Drink` is read as before, and a rule goes on behind `and` at the end of a line."""
    text = """
    type Snack < Food and Drink
    given likes(Person, Food and Drink)
    given sells(Shop or Stall, Food and Drink)
    likes(Person P, Food and Drink F) and
      sells(Shop or Stall S, Food and Drink F)
      and S contains "a" -> may_go_to(P, S)
    """
    program = hapax.program(f"{text}\nlikes(ann, tea). sells(stall, tea). sells(shop, tea).")

    assert [row["S"] for row in program.query("may_go_to(ann, S)")] == ["stall"]


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("instruments(price: P), P > 1,000", ["1,000", "Write 1000."]),
        ("instruments(price: 12,500,000)", ["Write 12500000."]),
        ("instruments", ["id, kind, maker, city, price"]),
        ("average_price", ["average_price(A1, A2)"]),
        ("instruments(id: I) instruments(price: P)", ['"&"']),
    ],
)
def test_a_slip_in_a_goal_is_told_with_what_to_write(goal: str, words: list[str]) -> None:
    """A number in groups of digits, a predicate without arguments and a forgotten sign have a remedy of their own."""
    told = output("query", goal, "--db", "my.db", code=1)

    assert [word for word in words if word not in told] == [], told


def test_a_number_in_groups_of_digits_is_told_in_a_rule() -> None:
    """The number is shown as it is to be written."""
    Path("high.rules").write_text(f"{RULES}instruments(id: I, price: P) & P > 1,000 -> is_high(I)\n", "utf-8")

    assert "Write 1000." in output("check", "high.rules", code=4)


def test_a_forgotten_comma_and_lacking_sentences_are_told_with_what_to_write() -> None:
    """A type with a variable in its middle is two arguments, and the two other forms of a sentence are made from it."""
    Path("tea.rules").write_text(
        """oracle is_grown_in(Tea, Region): "[1] is grown in [2]"
likes(Person X, Tea T) & is_grown_in(Tea T Region R) -> visits(X, R)
""",
        "utf-8",
    )
    told = output("check", "tea.rules", code=4)

    assert "Write a comma between T and Region." in told
    assert '"[1] is grown in [2]" / "[1] is not grown in [2]" / "is [1] grown in [2]?"' in told


def test_extremes_of_texts_and_dates_are_found_by_their_order() -> None:
    """`aggregate_all` has the first and the last of a column of texts or dates; over no rows there is none."""
    program = hapax.program(
        "given seen(bird: Text, day: Date)\nseen(kite, '2024-05-01'). seen(auk, '2023-12-31'). seen(tit, '2024-01-02')."
    )

    assert program.query("aggregate_all(min(D), seen(day: D), M)").rows == [("2023-12-31",)]
    assert program.query("aggregate_all(max(B), seen(bird: B), M)").rows == [("tit",)]
    assert program.query("aggregate_all(max(B), (seen(bird: B, day: D), year(D) = 2025), M)").rows == []


def test_a_capitalised_name_is_told_before_the_answers() -> None:
    """Also one with accents is a variable, and the note has the value that is stored."""
    for name in ("Kraków", "Paris"):
        told = run("query", f"instruments(id: I, city: {name})", "--db", "my.db")
        assert f"'{name}'" in told.stderr
        assert told.output.index(f"'{name}'") < told.output.index("I1")


def test_values_of_two_kinds_are_named_in_their_order() -> None:
    """A text compared with a number is called a text and a number, and the other way round."""
    program = hapax.program("born(ann, '2000-01-02').")

    assert "a text and a number" in program.query("born(P, D), D < 2016").warnings[0]
    assert "a number and a text" in program.query("born(P, D), 2016 > D").warnings[0]


def test_the_shell_says_what_can_be_asked() -> None:
    """`?` and `help` list the words of the shell, and the predicates with their columns."""
    for word in ("?", "help"):
        said = invoke("shell", "--db", "my.db", answers=f"{word}\nquit\n")
        assert said.exit_code == 0
        assert "why-not" in said.stdout
        assert "instruments/5  id, kind, maker, city, price" in said.stdout


# -- tables


def test_a_corrected_table_without_a_key_is_told() -> None:
    """A second import of rows of which some changed warns that the old ones stay; the same rows again do not."""
    Path("log.csv").write_text("name,amount\nx,1\ny,2\nx,2\n", "utf-8")
    Path("log.yaml").write_text("- {predicate: log, columns: [name, amount]}\n", "utf-8")
    given = ("import", "log.csv", "--map", "log.yaml", "--db", "log.db")
    first, again = run(*given).stderr, run(*given).stderr
    Path("log.csv").write_text("name,amount\nx,1\ny,3\nx,2\n", "utf-8")
    corrected = run(*given).stderr

    assert "no key" not in first + again
    assert all(
        words in corrected for words in ("2 rows are stored already", "1 is new", "no key", "--same-key replace")
    )


def test_an_import_without_rules_names_those_beside_the_mapping() -> None:
    """Values are checked by rules alone, so the file that declares the predicate is named, until the base keeps rules."""
    without = run("import", "table.csv", "--map", "map.yaml", "--db", "new.db", "--skip-faulty").stderr
    kept = run("import", "table.csv", "--map", "map.yaml", "--db", "my.db", "--skip-faulty").stderr

    assert "no value was checked" in without
    assert "--rules my.rules" in without
    assert "no value was checked" not in kept


OTHER_NUMBERS = {
    "$5": "5",
    "1,5": "1.5",
    "1.234,50": "1234.50",
    "1,234.5": "1234.5",
    "20 °C": "20",
    "12 kg": "12",
    "-3 %": "-3",
    "EUR 7": "7",
    "1 000": "1000",
}


@pytest.mark.parametrize("cell", OTHER_NUMBERS)
def test_init_says_how_a_number_is_written(cell: str) -> None:
    """A column of numbers in another notation stays a text, and a note has one of its values as a number."""
    Path("own.csv").write_text("id,amount\n" + "".join(f'{row},"{cell}"\n' for row in "abc"), "utf-8")

    assert f"is written {OTHER_NUMBERS[cell]}, and not {cell}." in run("init", "own.csv").stderr


@pytest.mark.parametrize("cell", ["12 High Street", "A-7", "2024", "10.1.2.3.4x", "7b/9", "0043 1 58801"])
def test_init_takes_no_other_text_for_a_number(cell: str) -> None:
    """Addresses, codes and telephone numbers are texts, and nothing is said of them."""
    Path("own.csv").write_text("id,amount\n" + "".join(f'{row},"{cell}"\n' for row in "abc"), "utf-8")

    assert "a number is written" not in run("init", "own.csv").stderr


def test_init_writes_nothing_for_a_table_with_a_column_twice() -> None:
    """The header is refused before a folder is there that a second try would find taken."""
    Path("own.csv").write_text("id,price,price\n1,2,3\n", "utf-8")
    refused = run("init", "own.csv", "own", code=1).stderr

    assert "'price' is there twice" in refused
    assert not Path("own").exists()


def test_the_commands_of_init_work_from_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share one knowledge base without naming it."""
    told = run("init", "table.csv", "begun").stdout
    monkeypatch.chdir("begun")
    commands = [shlex.split(line)[1:] for line in told.splitlines() if line.startswith("  hapax ")]

    assert [run(*command).exit_code for command in commands] == [0, 0, 0]
    assert [path.name for path in Path().glob("*.db")] == ["hapax.db"]


def test_a_file_that_needs_another_names_it() -> None:
    """`check` of rules over columns that a neighbour declares is one error, with the command that checks both."""
    Path("more.rules").write_text(
        "instruments(id: I, kind: K) -> is_of(I, K)\ninstruments(id: I, city: C) -> is_in(I, C)\n", "utf-8"
    )
    told = output("check", "more.rules", code=4)
    command = shlex.split(re.findall("`hapax (.*?)`", told)[0])

    assert told.count("HPX042") == 1
    assert "my.rules declares it" in told
    assert "0 errors" in output(*command)


def test_many_rows_with_one_fault_are_told_by_a_few() -> None:
    """`init` and `import` list three rows of a fault and count the others, so that other faults are seen."""
    dates = [f"{day}.2.2024" if day % 3 == 0 else f"2024-02-{day:02}" for day in range(1, 28)]
    cells = [f"{number} g" if number % 2 else f"0.{number} kg" for number in range(1, 28)]
    lines = [f"r{min(number, 24)},{day},{cell}" for number, (day, cell) in enumerate(zip(dates, cells, strict=True))]
    Path("own.csv").write_text("\n".join(["ring no,day,weight", *lines]), "utf-8")
    begun = run("init", "own.csv", "own").stderr
    imported = run("import", "own.csv", "--map", "own/map.yaml", "--rules", "own/own.rules", "--skip-faulty").stderr

    for told in (begun, imported):
        assert told.count("write it as 2012-12-01") == 3
        assert "has the key ring no" in told
        assert "6 more faulty rows like these" in told
    assert "some rows repeat it" in Path("own/map.yaml").read_text("utf-8")
    assert "The column has g and kg" in begun


def test_texts_with_numbers_in_them_have_a_remedy() -> None:
    """A goal that compares a text such as `12 kg` with a number is told how to read the number."""
    program = hapax.program('given bird(ring: Text, weight: Text)\nbird(a, "12 kg"). bird(b, "7 kg").')
    found = program.query('bird(ring: R, weight: W), number(replace(W, " kg", "")) > 8').rows

    assert found == [("a", "12 kg")]
    assert any(
        "number(replace(" in line for line in hapax.near_misses("bird(weight: W), W > 8", program.rules, program.kb)
    )


def test_a_date_without_quotation_marks_has_a_remedy() -> None:
    """A date that is read as a difference of numbers comes back in quotation marks."""
    program = hapax.program('given seen(ring: Text, day: Date)\nseen(a, "2024-01-08").')
    lines = hapax.near_misses("seen(day: D), D > 2024-01-05", program.rules, program.kb)

    assert any('"2024-01-05"' in line for line in lines)


def test_facts_whose_declaration_is_not_loaded_are_named() -> None:
    """A goal by columns over such facts is no misspelt name: the message has their predicate and the option."""
    Path("facts.csv").write_text("predicate,argument1,argument2,argument3\nmembers,ann,gold,2020\n", "utf-8")
    run("import", "facts.csv", "--db", "club.db")
    refused = run("query", "members(name: N, plan: gold)", "--db", "club.db", code=1).output

    assert "members/3" in refused
    assert "--rules" in refused


# -- the browser


PAGE_RULES = f"""{RULES}
instruments(id: I, kind: K) & not is_dear(I) -> is_sold(I, K)
@name bargain
instruments(id: I, price: P) -> is_bargain(I) unless P > 300
"""


def test_pages_show_what_rules_conclude_by_the_names_of_columns(tmp_path: Path) -> None:
    """Predicates have their derived atoms, rows the names of their columns, and none is one of Hapax's own."""
    Path("page.rules").write_text(PAGE_RULES, "utf-8")
    told = run("derive", "page.rules", "--db", "my.db").stderr
    with serving(tmp_path / "my.db") as served:
        listed = served.ask("/predicates?format=json").text
        derived = {row["predicate"]: (row["facts"], row["derived"]) for row in json.loads(listed)}
        rows, entity = served.ask("/predicate/instruments/5").text, served.ask("/entity?name=Paris").text
        concluded, asked = served.ask("/predicate/is_dear/1").text, served.ask("/ask").text

    assert "--rule " in told
    assert "unless" not in listed
    assert (derived["is_dear/1"], derived["is_bargain/1"], derived["instruments/5"]) == ((0, 1), (0, 1), (3, 0))
    assert all(f'<th scope="col">{name}</th>' in rows for name in ("id", "kind", "maker", "city"))
    assert re.search(r'city</span>\s*<a href="/entity\?name=Paris"', entity)
    assert "1 derived atom" in concluded
    assert "unless_" not in asked


def test_a_claim_is_rejected_no_longer_when_it_is_a_fact(database: Path, searched: Path) -> None:
    """An entity lists each rejected value once, and none that holds; a statement that fell says why on its page."""
    euro = 'uses_currency("France", euro)'
    lines = map(json.loads, run("export", "--statements", "--db", database).stdout.splitlines())
    statement = next(line["id"] for line in lines if "Lyon" in line["statement"])
    run("data", "retract", euro, "--reason", "no", "--db", database)
    script = f"scripted:{searched.with_name('script.json')}"
    searched = ("search", searched.with_name("money.rules"), "--rule", "currency", "-m", script, "--no-progress")
    for threshold in ("0.6", "0.7"):
        run(*searched, "--evaluator", "frequency", "--fact-threshold", threshold, "--db", database)
    with serving(database) as served:
        gone = served.ask(f"/statement/{statement}")
        before = json.loads(served.ask("/entity?name=France&format=json").text)["rejected"]
        refused = served.ask("/judge", "POST", "a=b")
    run("data", "retract", "--undo", euro, "--db", database)
    last = output("why", euro, "--db", database)
    with serving(database) as served:
        after = json.loads(served.ask("/entity?name=France&format=json").text)["rejected"]
        back = served.ask(f"/statement/{statement}")

    assert (gone.status, back.status) == (410, 200)
    assert "withdrawn by the user" in gone.text
    assert [row["value"] for row in before].count("euro") == 1
    assert "euro" not in [row["value"] for row in after]
    assert (refused.status, "lacks the header Origin" in refused.text) == (403, True)
    assert "rejected: the user withdrew this fact: no; overruled" in last


def test_directives_of_prolog_that_load_a_file_are_told_and_others_read() -> None:
    """A file that another one loads is not silently missing; what says nothing about facts is passed over."""
    plain = ":- initialization main.\n:- multifile p/1.\n:- style_check(-singleton).\n:- use_module(library(lists)).\np(a).\n"
    Path("plain.pl").write_text(plain, "utf-8")
    assert "0 errors" in output("check", "plain.pl")
    for loading in ("consult(others)", "include('others.pl')", "ensure_loaded('others.pl')", "use_module(others)"):
        Path("loads.pl").write_text(f"p(a).\n:- {loading}.\n", "utf-8")
        assert "loads.pl:2:1: error HPX089" in output("check", "loads.pl", code=4)
    Path("loads.pl").write_text("p(a).\n:- .\n", "utf-8")
    assert "HPX001" in output("check", "loads.pl", code=4)


# --- hostile ----------------------------------------------------------------------------------------------------------


HOSTILE_RULES = hapax.parse_rules("given says(Person, Sentence)")
HOSTILE_TEXTS = (
    "it's",
    'say "x"',
    "back\\slash",
    "tab\tnew\nline\r",
    "a'), shell('touch /tmp/hapax_was_here'), ('b",
    ":- halt.",
    "'; DROP TABLE facts; --",
    "\u202eright to left",
    "emoji \U0001f600 and e\u0301",
    "r1l0:e4:halt",
    "% comment /* another */",
    "[]",
    "{}",
    "1876",
    "Variable",
    "x" * 1_000_000,
)


def test_hostile_texts_come_back_as_they_were() -> None:
    """A fact with any text in it is answered by a goal with the same text."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", text) for text in HOSTILE_TEXTS], HOSTILE_RULES)

        assert {row["X"] for row in hapax.query("says(tom, X)", HOSTILE_RULES, kb)} == set(HOSTILE_TEXTS)


def test_what_prolog_cannot_hold_is_refused_or_left_out() -> None:
    """U+0000 is no part of a goal, and of answers in Prolog; half a character is refused; other facts still answer."""
    nul, half = "nul \0 inside", "half \ud800 character"
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", "soup"), ("tom", nul)], HOSTILE_RULES)
        with pytest.raises(hapax.HapaxError, match="half"):
            hapax.add_facts(kb, "says", [("tom", half)], HOSTILE_RULES)
        for text in (nul, half):
            with pytest.raises(hapax.HapaxError):
                hapax.query(f"says(tom, '{text}')", HOSTILE_RULES, kb)

        assert {row["X"] for row in hapax.query("says(tom, X)", HOSTILE_RULES, kb)} == {"soup", nul}
        assert hapax.query("findall(X, says(tom, X), L)", HOSTILE_RULES, kb)[0] == {"L": ["soup"]}


@pytest.mark.parametrize(
    "goal", ["says(tom, {deep})", "shell(ls)", "halt", "assertz(says(a, b))", "system:shell(ls)", "X = 1, X"]
)
def test_dangerous_goals_are_refused_before_they_run(goal: str) -> None:
    """Calls outside the goals' language and deep nesting are refused; the next goal is answered."""
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "says", [("tom", "soup")], HOSTILE_RULES)
        with pytest.raises(hapax.RulesRejected):
            hapax.query(goal.replace("{deep}", "[" * 20_000 + "]" * 20_000), HOSTILE_RULES, kb)

        assert len(hapax.query("says(tom, X)", HOSTILE_RULES, kb)) == 1


@pytest.mark.parametrize("name", ["halt", "print", "member", "consult", "instance_of", "shell", "need"])
def test_predicates_named_like_prolog_s_own_are_only_facts(name: str) -> None:
    """A rule file may use a name that Prolog knows: it is then an ordinary predicate."""
    rules = hapax.parse_rules(f"given {name}(Person, Sentence)")
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, name, [("tom", "x")], rules)

        assert [row["X"] for row in hapax.query(f"{name}(tom, X)", rules, kb)] == ["x"]


@pytest.mark.parametrize("name", ["write", "hapax_rule", "hapax_fact_"])
def test_names_that_are_taken_are_refused_with_a_remedy(name: str) -> None:
    """Predicates that SWI-Prolog reserves, and the program's helpers, are refused by name with a remedy."""
    rules = hapax.parse_rules(f"given {name}(Person, Sentence)")
    with hapax.KnowledgeBase() as kb, pytest.raises(hapax.HapaxError, match="Rename"):
        hapax.query("X = 1", rules, kb)
