"""Facts that are withdrawn take with them what rests on them alone, everywhere, and bring it back when they return."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke, run
from hypothesis import given, settings
from hypothesis import strategies as st
from money_fixture import RULES, WORLD
from random_cases import cases

import hapax

EURO = 'uses_currency("France", euro)'
KRONE = "uses_currency('Norway', 'Norwegian krone')"
HOME = """
@name home
@generic none
is_a_city_in(City A, Country C) & uses_currency(Country C, Currency B) -> is_spent_in(Currency B, City A)
"""
SPENT = "If Oslo is a city in Norway and Norway uses the Norwegian krone, then Norwegian krone is spent in Oslo."
TWO_PROOFS = """
given lives_in(Person, City): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given is_named(Thing, Name): "[1] is named [2]" / "[1] is not named [2]" / "is [1] named [2]?"
oracle is_born_in(Thing, City): "[1] is born in [2]" / "[1] is not born in [2]" / "is [1] born in [2]?"
oracle works_in(Thing, City): "[1] works in [2]" / "[1] does not work in [2]" / "does [1] work in [2]?"
given knows(Person, Thing): "[1] knows [2]" / "[1] does not know [2]" / "does [1] know [2]?"
is_born_in(Thing T, City C) -> belongs_to(Thing T, City C)
works_in(Thing T, City C) -> belongs_to(Thing T, City C)
@name local
lives_in(Person X, City C) & belongs_to(Thing T, City C) & is_named(Thing T, Name N) -> knows(Person X, Thing T)
"""
BIRDS = """
given is_bird(Animal): "[1] is a bird"
given lives_in(Animal, Place): "[1] lives in [2]"
given is_penguin(Animal): "[1] is a penguin"
closed is_penguin/1
aggregate animals_of(Place P, Number K) := K = count(Animal X: lives_in(Animal X, Place P)): "[1] has [2] animals"
@name default
@generic none
is_bird(Animal X) & lives_in(Animal X, Place P) -> can_fly_over(Animal X, Place P) unless is_penguin(Animal X)
@name closed
@generic none
is_bird(Animal X) & lives_in(Animal X, Place P) & not is_penguin(Animal X) -> flies_over(Animal X, Place P)
@name crowd
@generic none
is_bird(Animal X) & lives_in(Animal X, Place P) & animals_of(Place P, Number K) & K < 2
  -> is_alone_in(Animal X, Place P)
"""
ABSENCE = ["closed", "default"]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base after a search with a scripted model and `derive` with the same rules."""
    folder = tmp_path_factory.mktemp("world")
    (folder / "money.rules").write_text(RULES + HOME, "utf-8")
    (folder / "script.json").write_text(json.dumps(WORLD), "utf-8")
    models = ("-m", f"scripted:{folder / 'script.json'}", "--evaluator", "frequency", "--no-progress", *EVERY_END)
    run("search", folder / "money.rules", "--rule", "currency", *models, "--db", folder / "kb.db")
    run("derive", folder / "money.rules", "--rule", "home", "--db", folder / "kb.db")
    return folder


@pytest.fixture
def database(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in the working folder, with its rules and script."""
    monkeypatch.chdir(tmp_path)
    for name in ("money.rules", "script.json"):
        (tmp_path / name).write_bytes((world / name).read_bytes())
    with closing(sqlite3.connect(world / "kb.db")) as old, closing(sqlite3.connect("kb.db")) as new:
        old.backup(new)
    return tmp_path / "kb.db"


def exported(database: Path) -> dict[str, dict[str, Any]]:
    """Exported statements by sentence; one of head and long tail counts once."""
    lines = run("export", "--statements", "--db", database).stdout.splitlines()
    return {line["statement"]: line for line in map(json.loads, lines)}


def searched_statements(database: Path) -> dict[str, str]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return {statement.id: statement.text for statement in kb.statements()}


def page_of(database: Path) -> str:
    run("report", "--db", database, "-o", database.with_name("page.html"))
    return html.unescape(re.sub("<[^>]*>", "", database.with_name("page.html").read_text("utf-8")))


def test_a_withdrawn_fact_takes_its_statements_along_everywhere(database: Path) -> None:
    """A statement of a withdrawn fact is in no count, answer, page or file; `why` says when and why it went."""
    before = searched_statements(database)
    gone = {identity: text for identity, text in before.items() if "euro" in text}
    result = run("retract", EURO, "--reason", "the franc is back", "--db", database)
    told = [run("why", name, "--db", database, code=1).output for name in (*gone, *gone.values())]
    page = page_of(database)

    assert gone
    assert all(text in flat(result.output) for text in gone.values())
    assert searched_statements(database) == {key: text for key, text in before.items() if key not in gone}
    assert json.loads(run("stats", "--db", database, "--json").stdout)["withdrawn"]["statements"] >= len(gone)
    assert all("the franc is back" in text and "withdrawn by the user" in flat(text) for text in told)
    assert "withdrawn by the user" in flat(run("why-not", EURO, "--db", database).output)
    assert not any(text in page for text in gone.values())
    assert "euro" not in run("export", "--format", "csv", "--db", database).stdout
    assert json.loads(run("query", "uses_currency(C, euro)", "--db", database, "--json").stdout)["answers"] == []


def test_a_withdrawn_fact_takes_derived_statements_along_too(database: Path) -> None:
    """They leave export and the view for readers; `why` tells their story by text and id; undoing brings them back."""
    identity = exported(database)[SPENT]["id"]
    run("retract", KRONE, "--reason", "they use shells", "--db", database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        listed = connection.execute("SELECT premise, conclusion FROM derived_statements").fetchall()

    derived = {text for text, line in exported(database).items() if line["end"] == "derived"}
    assert SPENT not in derived
    assert {f"If {premise}, then {conclusion}." for premise, conclusion in listed} == derived
    for named in (SPENT, SPENT.replace("If", "if").rstrip("."), identity):
        assert "they use shells" in flat(run("why", named, "--db", database, code=1).stderr)
    run("retract", "--undo", KRONE, "--db", database)
    assert SPENT in exported(database)
    assert "[derived, statement" in run("why", SPENT, "--db", database).stdout


def test_an_undone_withdrawal_leaves_everything_as_it_was(database: Path) -> None:
    """By atom or by id, `restore` brings the fact and its statements back; both steps stay in the journal."""
    before = searched_statements(database)
    rules = hapax.load_rules("money.rules")
    with hapax.KnowledgeBase(database) as kb:
        facts = sorted(map(repr, kb.facts()))
        (identity,) = [fact.id for fact in kb.facts("uses_currency") if fact.arguments == ("France", "euro")]
        for name in (EURO, identity):
            fallen = hapax.retract(name, rules, kb, reason="a mistake").fallen
            assert [item.atom for item in hapax.withdrawn_facts(kb)] == ['uses_currency("France", "euro")']
            risen = hapax.restore(name, rules, kb).risen
            assert [item.id for item in risen] == [item.id for item in fallen] != []
        assert sorted(map(repr, kb.facts())) == facts
        assert [item.reason for item in kb.withdrawals(undone=True)] == ["a mistake"] * 2
        assert hapax.withdrawn_facts(kb) == []

    assert searched_statements(database) == before


def test_a_search_does_not_bring_back_what_the_user_withdrew(database: Path) -> None:
    """The same search again leaves the fact and its statements withdrawn; giving the fact restores them."""
    run("retract", EURO, "--reason", "wrong", "--db", database)
    after = searched_statements(database)
    models = ("-m", "scripted:script.json", "--evaluator", "frequency", "--no-progress", *EVERY_END)
    run("search", "money.rules", "--rule", "currency", *models, "--values", "4", "--db", database)
    assert searched_statements(database).keys() == after.keys()

    Path("given.csv").write_text("uses_currency,France,euro\n", "utf-8")
    run("import", "given.csv", "--db", database)
    assert any("euro" in text for text in searched_statements(database).values())


def test_a_row_that_another_program_deletes_is_a_withdrawal(database: Path) -> None:
    """Without a word from Hapax the statements go as well, and `why` says how the fact was lost."""
    (identity, *_) = searched_statements(database)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("DELETE FROM facts WHERE predicate = 'uses_currency'")

    assert searched_statements(database) == {}
    assert "another program" in flat(run("why", identity, "--db", database, code=1).output)


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        ((EURO,), 2, "--reason"),
        ((EURO, "--reason", " "), 2, "--reason"),
        ((), 2, "facts"),
        (("--list", EURO), 2, "--list"),
        (("uses_currency('France', franc)", "--reason", "wrong"), 1, "franc"),
        (("--undo", EURO), 1, "not withdrawn"),
    ],
)
def test_what_cannot_be_withdrawn_is_told(database: Path, arguments: tuple[str, ...], code: int, word: str) -> None:
    """A missing reason, an unknown fact and one that stands are refused, and nothing changes."""
    before = searched_statements(database)
    result = invoke("retract", *arguments, "--db", database)

    assert (result.exit_code, word in flat(result.output)) == (code, True)
    assert searched_statements(database) == before


def test_a_statement_stays_with_its_last_proof() -> None:
    """All proofs of a statement count: it goes with the last of them, and returns with one."""
    library = hapax.parse_rules(TWO_PROOFS)
    born, works = "is_born_in(cheese, 'Lyon')", "works_in(cheese, 'Lyon')"
    facts = {"lives_in": ("Ann", "Lyon"), "is_named": ("cheese", "Brie"), "is_born_in": ("cheese", "Lyon")}
    with hapax.KnowledgeBase() as kb:
        for predicate, cells in {**facts, "works_in": ("cheese", "Lyon")}.items():
            hapax.add_facts(kb, predicate, [cells], library)
        kb.add_statements(list(hapax.derive(library, kb, only="local").read()))
        (statement,) = kb.statements()

        first = hapax.retract(born, library, kb, reason="wrong")
        assert [item.id for item in kb.statements()] == [statement.id]
        assert [item.id for item in (*first.reproved, *first.fallen)] == [statement.id]
        assert [item.id for item in hapax.retract(works, library, kb, reason="wrong").fallen] == [statement.id]
        assert kb.statements() == []
        hapax.restore([born, works], library, kb)
        assert [item.id for item in kb.statements()] == [statement.id]


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A knowledge base with statements that rest on the absence of facts, or on their number, and its rules."""
    monkeypatch.chdir(tmp_path)
    Path("birds.rules").write_text(BIRDS, "utf-8")
    Path("birds.csv").write_text("is_bird,tit\nlives_in,tit,park\n", "utf-8")
    Path("script.json").write_text("{}", "utf-8")
    run("import", "birds.csv", "--db", "kb.db", "--rules", "birds.rules")
    models = ("-m", "scripted:script.json", "--likelihood", "frequency")
    run("search", "birds.rules", *models, "--db", "kb.db", "--no-progress", *EVERY_END)
    assert rules_of(tmp_path / "kb.db") == ["closed", "crowd", "default"]
    return tmp_path / "kb.db"


def rules_of(database: Path) -> list[str]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return sorted({statement.rule for statement in kb.statements()})


def test_facts_that_are_added_refute_what_rests_on_their_absence(birds: Path) -> None:
    """A statement by `not`, `unless` or a number lapses everywhere when imported facts refute it, and comes back."""
    Path("new.csv").write_text("is_penguin,tit\nlives_in,rat,park\n", "utf-8")
    before = searched_statements(birds)
    told = run("import", "new.csv", "--db", birds)

    assert all(f"no longer holds: {text}" in told.output for text in before.values())
    assert rules_of(birds) == []
    assert json.loads(run("stats", "--db", birds, "--json").stdout)["withdrawn"] == {"facts": 0, "statements": 3}
    for identity in before:
        assert "has not held since" in flat(run("why", identity, "--db", birds, code=1).output)
    assert not any(text in page_of(birds) for text in before.values())

    assert "holds again" in run("retract", "is_penguin(tit)", "--reason", "a tit is none", "--db", birds).output
    assert rules_of(birds) == ABSENCE
    run("retract", "lives_in(rat, park)", "--reason", "it left", "--db", birds)
    assert searched_statements(birds) == before
    run("retract", "--undo", "is_penguin(tit)", "--db", birds)
    assert rules_of(birds) == ["crowd"]


def test_facts_of_another_knowledge_base_refute_as_well(birds: Path) -> None:
    """A merge tells which statements the facts of the other file refute, in either direction."""
    Path("other.csv").write_text("is_penguin,tit\n", "utf-8")
    run("import", "other.csv", "--db", "other.db", "--rules", "birds.rules")
    run("merge", "kb.db", "--db", "other.db")
    told = run("merge", "other.db", "--db", birds).output

    assert told.count("no longer holds:") == 2
    assert rules_of(birds) == rules_of(Path("other.db")) == ["crowd"]


@given(changes=st.lists(st.tuples(st.sampled_from(["is_penguin", "lives_in", "is_bird"]), st.sampled_from("abc"))))
@settings(deadline=None, max_examples=cases(5))
def test_what_stands_is_what_a_fresh_derivation_proves(changes: list[tuple[str, str]]) -> None:
    """After any row of additions and withdrawals the stored statements that stand are those that can be derived."""
    library = hapax.parse_rules(BIRDS)
    cells = {"lives_in": ["park"]}
    with hapax.KnowledgeBase() as kb:
        for animal in "abc":
            hapax.add_facts(kb, "is_bird", [(animal,)], library)
            hapax.add_facts(kb, "lives_in", [(animal, f"place of {animal}")], library)
        kb.add_statements(list(hapax.derive(library, kb).read()))
        stored = {statement.id for statement in kb.statements()}
        for predicate, animal in changes:
            row = (animal, *cells.get(predicate, ()))
            if any((fact.predicate, fact.arguments) == (predicate, row) for fact in kb.facts()):
                hapax.retract(f"{predicate}({', '.join(row)})", library, kb, reason="chance")
            else:
                hapax.add_facts(kb, predicate, [row], library)
        standing = {statement.id for statement in kb.statements()}
        fresh = {statement.id for statement in hapax.derive(library, kb).read()}

    assert standing == stored & fresh


# --- statements of `derive` beside those of searches ------------------------------------------------------------------


def test_export_report_and_dataset_list_what_searches_and_derive_concluded(database: Path) -> None:
    """One export has both with their proofs; the report and the dataset have them as well."""
    sentences = exported(database)
    run("dataset", "out", "--format", "jsonl", "--in-both", "keep", "--db", database)
    derived = {text for text, line in sentences.items() if line["end"] == "derived"}
    rows = map(json.loads, Path("out/derived.jsonl").read_text("utf-8").splitlines())

    assert {line["end"] for line in sentences.values()} > {"derived"}
    assert SPENT in derived
    assert sentences[SPENT]["proof"]
    assert {row["statement"] for row in rows} == derived
    assert SPENT in page_of(database)


def test_statements_of_derive_are_listed_only_while_they_are_up_to_date(database: Path) -> None:
    """After an import nothing of `derive` is shown as true, and what is left out is said with the remedy."""
    identity = exported(database)[SPENT]["id"]
    Path("more.csv").write_text("uses_currency,Peru,sol\n", "utf-8")
    run("import", "more.csv", "--db", database)
    run("dataset", "out", "--format", "jsonl", "--in-both", "keep", "--db", database)

    assert SPENT not in exported(database)
    assert not Path("out/derived.jsonl").exists()
    for command in (("export", "--statements"), ("why", identity)):
        assert "hapax derive" in flat(invoke(*command, "--db", database).stderr)
    assert json.loads(run("stats", "--json", "--db", database).stdout)["outdated"] == ["home"]


def test_what_derive_alone_concluded_has_a_report_and_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any search the report has their section, and the dataset their file; an unknown rule is refused."""
    monkeypatch.chdir(tmp_path)
    declared = "given is_a_city_in(City, Country)\ngiven uses_currency(Country, Currency)\n"
    Path("home.rules").write_text(declared + HOME, "utf-8")
    Path("f.csv").write_text("is_a_city_in,Oslo,Norway\nuses_currency,Norway,krone\n", "utf-8")
    run("import", "f.csv", "--rules", "home.rules", "--db", "kb.db")
    run("derive", "home.rules", "--db", "kb.db")
    (sentence,) = exported(Path("kb.db"))
    run("dataset", "out", "--db", "kb.db")

    assert sentence in page_of(tmp_path / "kb.db")
    assert "nosuch" in invoke("report", "-o", "p.html", "--rule", "nosuch", "--db", "kb.db").stderr
    assert {path.name for path in Path("out").iterdir()} == {"derived.jsonl", "metadata.json", "rules.rules"}


def test_derived_values_are_the_same_wherever_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Quotes, line breaks, negative and huge numbers and a third: digits in sentences, the exact number in JSON, one id."""
    monkeypatch.chdir(tmp_path)
    Path("r.rules").write_text(
        'given weighs(Thing, Number): "[1] weighs [2] kg"\ngiven share(Thing, Number): "a third of [1] is [2] kg"\n'
        "@name third\n@generic none\nweighs(Thing T, Number X) & Y = X / 3 -> share(Thing T, Number Y)\n",
        "utf-8",
    )
    things = ['a "b" \\n \\\\', "line\nbreak", "d'e", "\u00e9\u0301\ttab", "[X]", "\x1b", "stone"]
    numbers = ["4.50", "-3", "0", "3" + "0" * 30, "-0.375", "21", "1"]
    rows = [
        f'{{"predicate": "weighs", "arguments": [{json.dumps(t)}, {n}]}}' for t, n in zip(things, numbers, strict=True)
    ]
    Path("f.jsonl").write_text("\n".join(rows), "utf-8")
    run("import", "f.jsonl", "--rules", "r.rules", "--db", "kb.db")
    run("derive", "r.rules", "--db", "kb.db", "-o", "derived.jsonl")
    run("dataset", "out", "--db", "kb.db")

    written = {
        line["statement"]: line for line in map(json.loads, Path("derived.jsonl").read_text("utf-8").splitlines())
    }
    data = {row["statement"]: row for row in map(json.loads, Path("out/derived.jsonl").read_text("utf-8").splitlines())}
    lines = exported(tmp_path / "kb.db")
    assert written.keys() == data.keys() == lines.keys()
    assert len(lines) == len(things)
    assert {text: line["id"] for text, line in lines.items()} == {text: line["id"] for text, line in written.items()}
    stone = lines[f"If stone weighs 1 kg, then a third of stone is 0.{'3' * 28} kg."]
    assert stone["substitution"]["Y"] == {"decimal": f"0.{'3' * 28}", "exact": "1/3"}
    assert "stone" in run("why", stone["id"], "--db", "kb.db").stdout
