"""Promises on statements and on denials, as a search makes and keeps them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from click.testing import Result

import hapax
from hapax.engine.judgements import SOUNDNESS_QUESTION
from hapax.engine.search.certifying import stored_certificates
from hapax.kb.records import VoteRecord

GEMS = [f"gem {number}" for number in range(120)]
RULES = """
oracle is_mined_in(Gem, Country): "[1] is mined in [2]" / "[1] is not mined in [2]" / "is [1] mined in [2]?"
oracle is_banned_in(Gem, Country): "[1] is banned in [2]" / "[1] is not banned in [2]" / "is [1] banned in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
given can_buy(Person, Gem): "[1] can buy [2]" / "[1] cannot buy [2]" / "can [1] buy [2]?"
@name gems
visits(Person X, Country A) & is_mined_in(Gem B, Country A){ban} -> can_buy(Person X, Gem B)
"""


def script(mined: tuple[float, float], banned: tuple[float, float] = (0.01, 0.1)) -> dict[str, object]:
    """A model that proposes 120 gems of one country, and its scores of every second gem and of the others."""
    scores = {f"{gem.capitalize()} is mined in Peru.": mined[number % 2] for number, gem in enumerate(GEMS)}
    scores |= {f"{gem.capitalize()} is banned in Peru.": banned[number % 2] for number, gem in enumerate(GEMS)}
    values = {"'[A] is mined in [B]'": ["Peru"], "'[A] is mined in Peru'": GEMS, "'[B] is mined in Peru'": GEMS}
    defaults = {"critic": 0.9, "likelihood": -10.0, "generate": ["Peru"]}
    return {"generate": values, "critic": scores, "defaults": defaults}


def search(*more: str) -> Result:
    command = ("search", "gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json")
    return invoke(*command, "--values", "120", "--keep-share", "0.5", "--no-progress", "--db", "kb.db", *more)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gems.rules").write_text(RULES.replace("{ban}", ""), "utf-8")
    (tmp_path / "gems.json").write_text(json.dumps(script((0.95, 0.9))), "utf-8")
    return tmp_path


def judge(true_score: float) -> dict[str, bool]:
    """Votes on all statements: true are those whose fact has this score."""
    judged = {}
    with hapax.KnowledgeBase("kb.db") as kb:
        scores = {str(fact.arguments[0]): fact.probability for fact in kb.facts("is_mined_in")}
        for statement in kb.statements():
            judged[statement.id] = scores[str(dict(statement.substitution)["B"])] == true_score
        votes = [
            VoteRecord(identity, SOUNDNESS_QUESTION, "ann", "yes" if is_true else "rule")
            for identity, is_true in judged.items()
        ]
        kb.add_votes(votes)
    return judged


def kept() -> set[str]:
    """Ids of the statements of the run with a promise on statements."""
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        run = next(record.run_id for record in kb.certificates() if record.fact_group.startswith("statements"))
        return {statement.id for statement in kb.statements(run_id=run)}


def test_statements_are_kept_by_what_people_judged(place: Path) -> None:
    """The threshold of statements lies where judged ones are true, although all facts pass their own threshold."""
    assert search().exit_code == 0
    judged = judge(0.95)

    result = search("--statement-precision", "0.9", "--confidence", "0.8")

    assert result.exit_code == 0, result.output
    assert "statements: at least 0.9 of the accepted are true, with confidence 0.8" in result.output
    assert "left out below the threshold of the promise on statements" in result.output
    assert kept() == {identity for identity, is_true in judged.items() if is_true}
    common = ["gems.rules", "-m", "scripted:gems.json", "--likelihood", "scripted:gems.json", "--db", "kb.db", "--json"]
    promise = ["--statement-precision", "0.9", "--confidence", "0.8"]
    plain, promised = (json.loads(invoke("plan", *common, *more).stdout) for more in ([], promise))
    expected = [estimate["rules"][0]["statements"]["expected"] for estimate in (plain, promised)]
    assert expected[1] == pytest.approx(expected[0] / 2, rel=0.1)  # every second statement is kept


def test_without_judged_statements_nothing_is_promised(place: Path) -> None:
    """Facts that the critic is sure of promise nothing about statements; the message says what to do."""
    before = search("--statement-precision", "0.9")
    assert search().exit_code == 0
    unjudged = search("--statement-precision", "0.9")

    assert before.exit_code == unjudged.exit_code == 1
    assert "judge statements by `hapax votes next 100 statements`" in before.output
    assert "nothing is labelled" in unjudged.output
    assert "more labels would do" in unjudged.output


def test_a_false_rule_gets_no_promise_from_sure_facts(place: Path) -> None:
    """Where people find the statements of a rule false, the product of its facts' scores promises nothing."""
    (place / "gems.json").write_text(json.dumps(script((0.999, 0.999))), "utf-8")
    assert search().exit_code == 0
    judge(0.0)

    result = search("--statement-precision", "0.9", "--certify-by", "predicate")

    assert result.exit_code == 1
    assert "statements of gems: of " in result.output
    assert "by these labels no number of further ones would do" in result.output


def test_a_promise_on_statements_stands_in_why_and_lapses_with_its_rule(place: Path) -> None:
    """`why` of a statement states the promise; once the rule has other words the promise has lapsed."""
    assert search().exit_code == 0
    judge(0.95)
    assert search("--statement-precision", "0.9", "--confidence", "0.8").exit_code == 0
    identity = min(kept())
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        (record,) = kb.certificates()
        assert record.ends is not None
        assert set(record.ends) == {"head", "long_tail"}
        assert sum(counts["labels"] for counts in record.ends.values()) >= record.labels
        assert [item.lapse for item in stored_certificates(kb, [record.run_id])] == [""]
    story = invoke("why", identity, "--db", "kb.db", "--rules", "gems.rules")

    with hapax.KnowledgeBase("kb.db") as kb:
        (rule,) = kb.rules()
        kb.add_rules([replace(rule, text=rule.text.replace("can_buy", "visits"))])

    assert story.exit_code == 0, story.output
    assert "certificate of statements: at least 0.9" in story.output
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        assert "the rule gems has changed since" in stored_certificates(kb, [record.run_id])[0].lapse


def test_what_a_critic_denies_needs_a_promise_of_its_own(place: Path) -> None:
    """Under --precision an atom of an open predicate is denied only up to the score that its own labels allow."""
    (place / "gems.rules").write_text(RULES.replace("{ban}", " & not is_banned_in(Gem B, Country A)"), "utf-8")
    (place / "gems.json").write_text(json.dumps(script((0.95, 0.95))), "utf-8")
    assert search().exit_code == 0
    mined = [f"true\tis_mined_in\t{gem}\tPeru" for gem in GEMS]
    banned = [f"{'true' if n % 2 else 'false'}\tis_banned_in\t{gem}\tPeru" for n, gem in enumerate(GEMS)]
    (place / "labels.tsv").write_text("\n".join([*mined, *banned]) + "\n", "utf-8")
    options = ("--rules", "gems.rules", "--critic", "scripted:gems.json", "--labels", "labels.tsv", "--db", "kb.db")
    assert invoke("calibrate", *options).exit_code == 0

    result = search("--precision", "0.9", "--confidence", "0.8")

    assert result.exit_code == 0, result.output
    assert "denials: at least 0.9 of the denied are false" in result.output
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        run = {record.run_id for record in kb.certificates()}.pop()
        gems = {str(dict(statement.substitution)["B"]) for statement in kb.statements(run_id=run)}
    assert gems == {gem for number, gem in enumerate(GEMS) if number % 2 == 0}


@pytest.mark.parametrize("ban", ["", " & not is_banned_in(Gem B, Country A)"])
def test_a_promise_on_statements_counts_those_that_the_promise_on_facts_leaves(place: Path, ban: str) -> None:
    """With both promises, statements whose facts or denials fall below theirs are in no pool of the statements."""
    (place / "gems.rules").write_text(RULES.replace("{ban}", ban), "utf-8")
    assert search().exit_code == 0
    mined = [f"{'false' if n % 2 else 'true'}\tis_mined_in\t{gem}\tPeru" for n, gem in enumerate(GEMS)]
    banned = [f"{'true' if n % 2 else 'false'}\tis_banned_in\t{gem}\tPeru" for n, gem in enumerate(GEMS)]
    (place / "labels.tsv").write_text("\n".join([*mined, *(banned if ban else [])]) + "\n", "utf-8")
    options = ("--rules", "gems.rules", "--critic", "scripted:gems.json", "--labels", "labels.tsv", "--db", "kb.db")
    assert invoke("calibrate", *options).exit_code == 0
    stored = len(judge(0.95))

    result = search("--precision", "0.9", "--statement-precision", "0.9", "--confidence", "0.8")

    assert result.exit_code == 0, result.output
    with hapax.KnowledgeBase("kb.db", read_only=True) as kb:
        pools = {record.fact_group: record.pool for record in kb.certificates()}
    assert pools["statements"] == stored / 2
    assert len(kept()) == stored / 2
