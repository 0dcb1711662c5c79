"""Facts that are withdrawn take with them what rests on them alone, everywhere, until they are restored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import EVERY_END, invoke, run
from money_fixture import SCRIPT

import hapax

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
    """What rests on a withdrawn fact is in no count, answer, page or file, and `why` says when and why it went."""
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
