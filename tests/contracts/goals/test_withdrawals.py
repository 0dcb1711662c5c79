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
from money_fixture import RULES, copied, search_world
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
    """The searched world, with what `derive` concludes from it by another rule."""
    path = search_world(tmp_path_factory.mktemp("world"), RULES + HOME)
    run("derive", path.with_name("money.rules"), "--rule", "home", "--db", path)
    return path


@pytest.fixture
def database(world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, in the working folder, with its rules and script."""
    monkeypatch.chdir(tmp_path)
    for name in ("money.rules", "script.json"):
        (tmp_path / name).write_bytes(world.with_name(name).read_bytes())
    return copied(world, tmp_path / "kb.db")


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
    result = run("data", "retract", EURO, "--reason", "the franc is back", "--db", database)
    told = [run("why", name, "--db", database, code=1).output for name in next(iter(gone.items()))]
    page = page_of(database)

    assert gone
    assert all(text in flat(result.output) for text in gone.values())
    assert searched_statements(database) == {key: text for key, text in before.items() if key not in gone}
    assert json.loads(run("data", "stats", "--db", database, "--json").stdout)["withdrawn"]["statements"] >= len(gone)
    assert all("the franc is back" in text and "withdrawn by the user" in flat(text) for text in told)
    assert "withdrawn by the user" in flat(run("why-not", EURO, "--db", database).output)
    assert not any(text in page for text in gone.values())
    assert "euro" not in run("export", "--format", "csv", "--db", database).stdout
    assert json.loads(run("query", "uses_currency(C, euro)", "--db", database, "--json").stdout)["answers"] == []


def test_a_withdrawn_fact_takes_derived_statements_along_too(database: Path) -> None:
    """They leave export and view; `why-not` tells the story; undoing brings them back."""
    assert SPENT in exported(database)
    run("data", "retract", KRONE, "--reason", "they use shells", "--db", database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        listed = connection.execute("SELECT premise, conclusion FROM derived_statements").fetchall()

    derived = {text for text, line in exported(database).items() if line["end"] == "derived"}
    assert SPENT not in derived
    assert {f"If {premise}, then {conclusion}." for premise, conclusion in listed} == derived
    for named in (SPENT, SPENT.replace("If", "if").rstrip(".")):
        assert "why-not" in run("why", named, "--db", database, code=1).stderr
        assert "they use shells" in flat(run("why-not", named, "--db", database).output)
    run("data", "retract", "--undo", KRONE, "--db", database)
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
    run("data", "retract", EURO, "--reason", "wrong", "--db", database)
    after = searched_statements(database)
    models = ("-m", "scripted:script.json", "--evaluator", "frequency", "--no-progress", *EVERY_END)
    run("search", "money.rules", "--rule", "currency", *models, "--values", "4", "--db", database)
    assert searched_statements(database).keys() == after.keys()

    Path("given.csv").write_text("uses_currency,France,euro\n", "utf-8")
    run("import", "given.csv", "--db", database)
    assert any("euro" in text for text in searched_statements(database).values())


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
    assert json.loads(run("data", "stats", "--db", birds, "--json").stdout)["withdrawn"] == {
        "facts": 0,
        "statements": 3,
    }
    for identity in before:
        assert "has not held since" in flat(run("why", identity, "--db", birds, code=1).output)
    assert not any(text in page_of(birds) for text in before.values())

    assert "holds again" in run("data", "retract", "is_penguin(tit)", "--reason", "a tit is none", "--db", birds).output
    assert rules_of(birds) == ABSENCE
    run("data", "retract", "lives_in(rat, park)", "--reason", "it left", "--db", birds)
    assert searched_statements(birds) == before
    run("data", "retract", "--undo", "is_penguin(tit)", "--db", birds)
    assert rules_of(birds) == ["crowd"]


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


@pytest.mark.parametrize("into", ["kb.db", "other.db"])
def test_a_withdrawal_reaches_what_is_merged(into: str, database: Path, tmp_path: Path) -> None:
    """Whichever file is merged into the other: what one of them withdrew stands in neither facts nor statements."""
    source, target = copied(database, tmp_path / "other.db"), tmp_path / into
    run("data", "retract", EURO, "--reason", "the franc is back", "--db", database)
    wanted, listed = searched_statements(database), run("data", "retract", "--list", "--db", database).stdout
    run("data", "merge", source if into == "kb.db" else database, "--db", target)
    facts = run("export", "--db", target, "--format", "csv").stdout

    assert searched_statements(target) == wanted
    assert not any("France" in line and "euro" in line for line in facts.splitlines())
    assert run("data", "retract", "--list", "--db", target).stdout == listed
    assert json.loads(run("kb", "verify", "--db", target, "--json").stdout)["clean"]


# --- statements of `derive` beside those of searches ------------------------------------------------------------------


def test_export_report_and_dataset_list_what_searches_and_derive_concluded(database: Path) -> None:
    """One export has both with their proofs; the report and the dataset have them as well."""
    sentences = exported(database)
    run("data", "dataset", "out", "--format", "jsonl", "--in-both", "keep", "--db", database)
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
    run("data", "dataset", "out", "--format", "jsonl", "--in-both", "keep", "--db", database)

    assert SPENT not in exported(database)
    assert not Path("out/derived.jsonl").exists()
    for command in (("export", "--statements"), ("why", identity)):
        assert "hapax derive" in flat(invoke(*command, "--db", database).stderr)
    assert json.loads(run("data", "stats", "--json", "--db", database).stdout)["outdated"] == ["home"]


def test_what_derive_alone_concluded_has_a_report_and_a_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any search report and dataset have it; strange names and a third are alike everywhere, under one id."""
    monkeypatch.chdir(tmp_path)
    Path("r.rules").write_text(
        'given weighs(Thing, Number): "[1] weighs [2] kg"\ngiven share(Thing, Number): "a third of [1] is [2] kg"\n'
        "@name third\n@generic none\nweighs(Thing T, Number X) & Y = X / 3 -> share(Thing T, Number Y)\n",
        "utf-8",
    )
    things = ['a "b" \\n \\\\', "line\nbreak", "d'e", "\u00e9\u0301\ttab", "[X]", "\x1b", "stone"]
    facts = [f'{{"predicate": "weighs", "arguments": [{json.dumps(thing)}, 1]}}' for thing in things]
    Path("f.jsonl").write_text("\n".join(facts), "utf-8")
    run("import", "f.jsonl", "--rules", "r.rules", "--db", "kb.db")
    run("derive", "r.rules", "--db", "kb.db", "-o", "derived.jsonl")
    run("data", "dataset", "out", "--db", "kb.db")
    written, data = (
        {line["statement"]: line for line in map(json.loads, Path(name).read_text("utf-8").splitlines())}
        for name in ("derived.jsonl", "out/derived.jsonl")
    )
    lines = exported(tmp_path / "kb.db")
    third = f"0.{'3' * 28}"
    page = page_of(tmp_path / "kb.db")
    stone = f"If stone weighs 1 kg, then a third of stone is {third} kg."

    assert len(lines) == len(things)
    assert {text: line["id"] for text, line in lines.items()} == {text: line["id"] for text, line in written.items()}
    assert data.keys() == written.keys()
    assert lines[stone]["substitution"]["Y"] == {"decimal": third, "exact": "1/3"}
    assert any(text in page for text in lines)
    assert "nosuch" in invoke("report", "-o", "p.html", "--rule", "nosuch", "--db", "kb.db").stderr
    assert {path.name for path in Path("out").iterdir()} == {"derived.jsonl", "metadata.json", "rules.rules"}
