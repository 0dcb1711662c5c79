"""Facts that are withdrawn take with them what rests on them alone, everywhere, until they are restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import EVERY_END, invoke, run
from hypothesis import given, settings
from hypothesis import strategies as st
from money_fixture import SCRIPT
from random_cases import cases
from roads_fixture import ROADS, road

import hapax
from hapax.engine.explain import refuse_withdrawn
from hapax.engine.inference.bulk_derivation import derive_all, read_statements
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.withdrawal import withdraw_facts
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import FactRecord, Source, StatementRecord

FACT = 'uses_currency("France", euro)'
OTHER_PROOF = """
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
given is_asked(Animal): "[1] is asked"
aggregate animals_of(Place P, Number K) := K = count(Animal X: lives_in(Animal X, Place P)): "[1] has [2] animals"
oracle may_fly(Animal): "[1] may fly" / "[1] may not fly" / "may [1] fly?"
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
ABSENCE = ("default", "closed")


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A knowledge base with statements that rest on the absence of facts, or on their number, and its rules."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "birds.rules").write_text(BIRDS, "utf-8")
    (tmp_path / "birds.csv").write_text("is_bird,tit\nlives_in,tit,park\n", "utf-8")
    run("import", "birds.csv", "--db", "kb.db", "--rules", "birds.rules")
    (tmp_path / "script.json").write_text("{}", "utf-8")
    models = ("-m", "scripted:script.json", "--likelihood", "frequency")
    run("search", "birds.rules", *models, "--db", "kb.db", "--no-progress", *EVERY_END)
    assert _rules_of(tmp_path / "kb.db") == ["closed", "crowd", "default"]
    return tmp_path / "kb.db"


def _rules_of(database: Path) -> list[str]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return sorted({statement.rule for statement in kb.statements()})


@pytest.fixture
def searched(rules: Path, tmp_path: Path) -> Path:
    """A knowledge base after a search with a scripted model."""
    script, database = tmp_path / "script.json", tmp_path / "kb.db"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    run("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress", *EVERY_END)
    return database


def _statements(database: Path) -> dict[str, str]:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return {statement.id: statement.text for statement in kb.statements()}


def test_a_withdrawn_fact_takes_its_statements_along_everywhere(searched: Path, rules: Path, tmp_path: Path) -> None:
    """A statement of a withdrawn fact is in no count, answer, page or file; `why` says when and why it went."""
    before = _statements(searched)
    result = run("retract", FACT, "--reason", "the franc is back", "--rules", rules, "--db", searched)
    gone = {identity: text for identity, text in before.items() if "euro" in text}
    stats = json.loads(run("stats", "--db", searched, "--json").stdout)
    told = [run("why", name, "--rules", rules, "--db", searched, code=1).output for name in (*gone, *gone.values())]
    run("report", "--db", searched, "--rules", rules, "-o", tmp_path / "page.html")
    run("export", "--db", searched, "--format", "csv", "-o", tmp_path / "facts.csv")
    query = run("query", "uses_currency(C, euro)", "--rules", rules, "--db", searched, "--json")
    why_not = run("why-not", FACT, "--rules", rules, "--db", searched).output

    assert gone
    assert all(text in result.output for text in gone.values())
    assert _statements(searched) == {identity: text for identity, text in before.items() if identity not in gone}
    assert stats["withdrawn"] == {"facts": 1, "statements": len(gone)}
    assert all("the franc is back" in text and "withdrawn by the user" in " ".join(text.split()) for text in told)
    assert "withdrawn by the user" in why_not
    assert not any(text in (tmp_path / "page.html").read_text("utf-8") for text in gone.values())
    assert "euro" not in (tmp_path / "facts.csv").read_text("utf-8")
    assert json.loads(query.stdout)["answers"] == []


def test_an_undone_withdrawal_leaves_everything_as_it_was(searched: Path, rules: Path) -> None:
    """`--undo` brings the fact and its statements back; both steps stay in the journal."""
    before = _statements(searched)
    with hapax.KnowledgeBase(searched) as kb:
        facts = kb.facts()
        library = hapax.load_rules(rules)
        hapax.retract(FACT, library, kb, reason="a mistake")
        assert [item.atom for item in hapax.withdrawn_facts(kb)] == ['uses_currency("France", "euro")']
        risen = hapax.restore(FACT, library, kb).risen
        assert sorted(kb.facts(), key=repr) == sorted(facts, key=repr)
        assert [item.reason for item in kb.withdrawals(undone=True)] == ["a mistake"]
        assert hapax.withdrawn_facts(kb) == []

    assert risen
    assert _statements(searched) == before


def test_a_fact_is_withdrawn_and_brought_back_by_its_id(searched: Path, rules: Path) -> None:
    """The id, as it stands in an export, does what the atom does."""
    before = _statements(searched)
    with hapax.KnowledgeBase(searched) as kb:
        (identity,) = [fact.id for fact in kb.facts("uses_currency") if fact.arguments == ("France", "euro")]
        library = hapax.load_rules(rules)
        hapax.retract(identity, library, kb, reason="a mistake")
        assert [item.fact.id for item in kb.withdrawals()] == [identity]
        fallen = _statements(searched)
        hapax.restore(f" {identity} ", library, kb)

    assert fallen != before
    assert _statements(searched) == before


def test_a_search_does_not_bring_back_what_the_user_withdrew(searched: Path, rules: Path, tmp_path: Path) -> None:
    """The same search again leaves the fact and its statements withdrawn; giving the fact restores them."""
    run("retract", FACT, "--reason", "wrong", "--rules", rules, "--db", searched)
    after = _statements(searched)
    run(
        "search",
        rules,
        "-m",
        f"scripted:{tmp_path / 'script.json'}",
        "--db",
        searched,
        "--no-progress",
        "--values",
        "4",
        *EVERY_END,
    )

    assert _statements(searched).keys() == after.keys()

    given = tmp_path / "given.csv"
    given.write_text("uses_currency,France,euro\n", encoding="utf-8")
    run("import", given, "--db", searched)

    assert any("euro" in text for text in _statements(searched).values())


def test_a_row_that_another_program_deletes_is_a_withdrawal(searched: Path, rules: Path) -> None:
    """Without a word from Hapax the statements go as well, and `why` says how the fact was lost."""
    with hapax.KnowledgeBase(searched) as kb:
        kb.write("DELETE FROM facts WHERE predicate = ?", [("uses_currency",)])
        assert kb.statements() == []
        told = kb.fallen_statements()[0]

    output = run("why", told.id, "--rules", rules, "--db", searched, code=1).output
    assert "another program" in " ".join(output.split())


def test_a_statement_with_another_proof_stays_with_that_proof() -> None:
    """All proofs of a statement count: it goes with the last of them."""
    library = hapax.parse_rules(OTHER_PROOF)
    facts = ("is_born_in(cheese, 'Lyon')", "works_in(cheese, 'Lyon')")
    with hapax.KnowledgeBase() as kb:
        for predicate, cells in (
            ("lives_in", ("Ann", "Lyon")),
            ("is_named", ("cheese", "Brie")),
            ("is_born_in", ("cheese", "Lyon")),
            ("works_in", ("cheese", "Lyon")),
        ):
            hapax.add_facts(kb, predicate, [cells], library)
        kb.add_statements(list(hapax.derive(library, kb, only="local").read()))
        ((statement,),) = [kb.statements()]

        first = [hapax.retract(fact, library, kb, reason="wrong") for fact in facts[:1]]
        assert [item.id for item in (*first[0].reproved, *first[0].fallen)] == [statement.id]
        assert [item.id for item in kb.statements()] == [statement.id]
        assert "[given]" in str(hapax.why(statement.id, library, kb))

        last = hapax.retract(facts[1], library, kb, reason="wrong")
        assert [item.id for item in last.fallen] == [statement.id]
        assert kb.statements() == []

        hapax.restore(facts[0], library, kb)
        hapax.restore(facts[1], library, kb)
        assert [item.id for item in kb.statements()] == [statement.id]


def test_a_statement_whose_rule_is_unknown_is_not_proved_again() -> None:
    """Without its rule no other proof can be looked for, so that the statement falls with the fact of its only one."""
    library = hapax.parse_rules(OTHER_PROOF)
    without = hapax.parse_rules(OTHER_PROOF.partition("@name local")[0])
    facts = {"lives_in": ("Ann", "Lyon"), "is_named": ("cheese", "Brie"), "is_born_in": ("cheese", "Lyon")}
    with hapax.KnowledgeBase() as kb:
        for predicate, cells in {**facts, "works_in": ("cheese", "Lyon")}.items():
            hapax.add_facts(kb, predicate, [cells], library)
        kb.add_statements(list(hapax.derive(library, kb, only="local").read()))
        ((statement,),) = [kb.statements()]
        done = hapax.retract("is_born_in(cheese, 'Lyon')", without, kb, reason="wrong")

        assert ([item.id for item in done.fallen], list(done.reproved)) == ([statement.id], [])
        # As a file of an earlier version would tell, which deleted such facts.
        kb.migrated.names = ["m009_withdrawals"]
        assert "1 statement rests on facts that an earlier version of Hapax deleted." in kb.opening_notice()


def test_facts_that_are_added_refute_what_rests_on_their_absence(birds: Path, tmp_path: Path) -> None:
    """A statement by `not`, `unless` or a number lapses everywhere when imported facts refute it, and comes back."""
    new = tmp_path / "new.csv"
    new.write_text("is_penguin,tit\nlives_in,rat,park\n", "utf-8")
    with hapax.KnowledgeBase(birds, read_only=True) as kb:
        before = {statement.rule: statement for statement in kb.statements()}
    told = run("import", new, "--db", birds)
    stats = json.loads(run("stats", "--db", birds, "--json").stdout)
    why = [run("why", statement.id, "--db", birds, code=1).output for statement in before.values()]
    run("report", "--db", birds, "-o", tmp_path / "page.html")

    assert all(f"no longer holds: {statement.text}" in told.output for statement in before.values())
    assert _rules_of(birds) == []
    assert stats["withdrawn"] == {"facts": 0, "statements": 3}
    assert all("has not held since" in " ".join(text.split()) for text in why)
    assert not any(statement.text in (tmp_path / "page.html").read_text("utf-8") for statement in before.values())

    again = run("retract", "is_penguin(tit)", "--reason", "a tit is none", "--db", birds)
    assert all(f"holds again: {before[name].text}" in again.output for name in ABSENCE)
    assert _rules_of(birds) == sorted(ABSENCE)
    assert "[given]" in run("why", before["default"].id, "--db", birds).output

    run("retract", "lives_in(rat, park)", "--reason", "it left", "--db", birds)
    assert _rules_of(birds) == sorted(before)
    run("retract", "--undo", "is_penguin(tit)", "--db", birds)
    assert _rules_of(birds) == ["crowd"]


def test_facts_of_another_knowledge_base_refute_as_well(birds: Path, tmp_path: Path) -> None:
    """A merge tells which statements the facts of the other file refute; so does the other file, merged the other way."""
    (tmp_path / "other.csv").write_text("is_penguin,tit\n", "utf-8")
    run("import", "other.csv", "--db", "other.db", "--rules", "birds.rules")
    run("merge", "kb.db", "--db", "other.db")
    told = run("merge", "other.db", "--db", birds).output

    assert told.count("no longer holds:") == 2
    assert _rules_of(birds) == ["crowd"]
    assert _rules_of(tmp_path / "other.db") == ["crowd"]


def test_unrelated_facts_and_other_rules_refute_nothing() -> None:
    """A statement stays where facts do not concern it, and where the rule that proved it is not at hand."""
    library = hapax.parse_rules(BIRDS)
    without = hapax.parse_rules(BIRDS.replace("@name closed", "@name other"))
    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "is_bird", [("tit",)], library)
        hapax.add_facts(kb, "lives_in", [("tit", "park")], library)
        kb.add_statements(list(hapax.derive(library, kb).read()))
        hapax.add_facts(kb, "is_bird", [("owl",)], library)
        assert not kb.unrevised_statements()
        hapax.add_facts(kb, "is_penguin", [("owl",)], library)
        assert len(kb.statements()) == 3
        assert not kb.unrevised_statements()  # those that concern the tit were proved again
        hapax.add_facts(kb, "is_penguin", [("tit",)], without)
        assert sorted(statement.rule for statement in kb.statements()) == ["closed", "crowd"]


@given(changes=st.lists(st.tuples(st.sampled_from(["is_penguin", "lives_in", "is_bird"]), st.sampled_from("abc"))))
@settings(deadline=None, max_examples=cases(8))
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


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((FACT,), 2, "needs --reason"),
        ((), 2, "Name the facts"),
        (("--list", FACT), 2, "--list takes neither"),
        (("uses_currency('France', franc)", "--reason", "wrong"), 1, "there is no fact"),
        (("--undo", FACT), 1, "is not withdrawn"),
    ],
)
def test_what_cannot_be_withdrawn_is_told(
    searched: Path, rules: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    """A missing reason, an unknown fact and one that stands are refused, and nothing changes."""
    paths = () if "--list" in arguments else ("--rules", rules)
    before = _statements(searched)
    result = invoke("retract", *arguments, *paths, "--db", searched)

    assert (result.exit_code, message in " ".join(result.output.split())) == (code, True)
    assert _statements(searched) == before


def test_derived_statements_follow_a_withdrawal_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`why` finds what `derive` stored by id and sentence; it goes and comes with a fact, and `stats` says when it is old."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "birds.rules").write_text(BIRDS, "utf-8")
    (tmp_path / "birds.csv").write_text("is_bird,tit\nlives_in,tit,park\nis_bird,owl\nlives_in,owl,barn\n", "utf-8")
    run("import", "birds.csv", "--rules", "birds.rules")
    run("derive", "--rule", "default", "-o", "found.jsonl")
    named = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text("utf-8").splitlines()]
    tit = next(row for row in named if "tit" in row["statement"])
    found = [run("why", name).output for name in (tit["id"], tit["statement"].upper())]
    told = run("retract", "is_bird(tit)", "--reason", "a mistake").output
    gone = [run("why", name, code=1).output for name in (tit["id"], tit["statement"])]
    counts = json.loads(run("stats", "--json").stdout)
    back = run("retract", "--undo", "is_bird(tit)").output
    (tmp_path / "new.csv").write_text("is_bird,rook\n", "utf-8")
    run("import", "new.csv")

    assert all("[by rule default]" in text and "[given]" in text for text in found)
    assert "derived by default: 1 statement, 2 before" in told
    assert all("no longer holds. Its proof rests on is_bird" in " ".join(text.split()) for text in gone)
    assert (counts["derived"], counts["outdated"]) == ({"default": 1}, [])
    assert "derived by default: 2 statements, 1 before" in back
    assert "Facts have changed since default was derived" in run("stats").output
    assert "Run `hapax derive` again" in " ".join(run("why", tit["id"], code=1).output.split())


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_a_withdrawal_without_a_reason_is_refused(reason: str) -> None:
    """A reason of blanks alone is none; nothing is withdrawn."""
    with hapax.KnowledgeBase() as kb:
        kb.add_facts([FactRecord("p", ("a",), (), Source.GIVEN)])
        with pytest.raises(HapaxError) as refused:
            withdraw_facts(Theory(parse_library([("r", "given p(Thing)")]), kb), ["p(a)"], reason)

        assert str(refused.value) == "A withdrawal needs a reason. Add --reason TEXT."
        assert len(kb.facts()) == 1


STARTS = """
given starts(Place, Place): "[1] starts for [2]" / "[1] does not start for [2]" / "does it start?"
@name start
@generic none
road("a", Place B) & road(Place B, Place C) -> starts("a", Place C)
"""


def test_derived_statements_that_a_withdrawal_felled_are_told_by_text_and_by_id(fresh_kb: hapax.KnowledgeBase) -> None:
    """By its text each of them is found, by its id where the withdrawn fact is a premise itself; no other is refused."""
    library = parse_library([("roads.rules", ROADS + STARTS)])
    fresh_kb.add_facts(road(*ends) for ends in ("ab", "bc", "cd"))
    derive_all(fresh_kb, library, library.rules)
    before = [record for rule in library.rules for record in read_statements(fresh_kb, library, rule)]
    (gone,) = (record.id for record in fresh_kb.facts() if record.arguments == ("b", "c"))
    fresh_kb.withdraw([gone], "wrong", "user")
    derive_all(fresh_kb, library, library.rules)
    standing = {record.id for rule in library.rules for record in read_statements(fresh_kb, library, rule)}
    with PrologSession() as session:
        theory = Theory(library, fresh_kb)
        by_id = [record.id for record in before if names_the_fallen(theory, record.id, record, session)]
        by_text = [record.id for record in before if names_the_fallen(theory, record.text, record, session)]

    fallen = [record.id for record in before if record.id not in standing]
    assert len(fallen) == 5
    assert by_text == fallen
    assert by_id == [record.id for record in before if "road leads from b to c" in record.text]


def names_the_fallen(theory: Theory, text: str, record: StatementRecord, session: PrologSession) -> bool:
    """True if the statement is refused under this text, with the withdrawn fact."""
    try:
        refuse_withdrawn(theory, text, session)
    except HapaxError as fault:
        return f'(statement {record.id}) no longer holds. Its proof rests on road("b", "c"), withdrawn' in str(fault)
    return False
