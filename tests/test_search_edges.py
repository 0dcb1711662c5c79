"""Limits of a search met exactly, and states of it that seldom occur."""

from __future__ import annotations

from itertools import chain
from types import SimpleNamespace

import pytest
from test_critic_probing import Naysayer
from test_engine_oracle import BUTTER, oracle_of, scripted
from test_plan_ledger import MODEL, attempts

import hapax
from hapax.engine.certificates import Promise
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.search import running
from hapax.engine.search.account import _threshold_remedy
from hapax.engine.search.certified_statements import JudgedPremise, StatementScores
from hapax.engine.search.certifying import METHODS, certificate_lines
from hapax.engine.search.consistency import Consistency
from hapax.engine.search.decidable import DecidableFacts, Lookups, PartTest, open_parts
from hapax.engine.search.oracle import Oracle
from hapax.engine.search.plan import LEAST_MEASURED, Range, RoleEstimate, RunEstimate, with_ledger
from hapax.engine.search.settings import SearchSettings
from hapax.kb import rows
from hapax.kb.records import Assessment, CertificateRecord, FactRecord, Outcome, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, BudgetReached, Price
from hapax.llm_oracle.critic_probing import probe_claims
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models


def test_the_cost_of_measured_requests_needs_a_price_and_an_estimate(fresh_kb: KnowledgeBase) -> None:
    """Without one of them the cost is what it was: unknown, or that of the estimate."""
    fresh_kb.add(rows.ATTEMPTS, attempts(Outcome.ANSWERED, LEAST_MEASURED))
    for cost, prices in ((None, {MODEL: Price(1.0, 1.0)}), ((1.0, 2.0), {})):
        estimate = RunEstimate((), {"critic": RoleEstimate(MODEL, Range(100, 110), cost=cost)})
        assert with_ledger(estimate, fresh_kb, prices).roles["critic"].cost == cost


@pytest.mark.parametrize(
    ("gate", "highest", "remedy"),
    [
        ("critic", None, "Choose another model with --knowledge."),
        ("likelihood", 0.5, "Choose another model with --knowledge."),
        ("critic", 0.8, "Search with --fact-threshold 0.8; stored answers are judged again without a call."),
        ("type", 0.84, "Search with --type-threshold 0.8; stored answers are judged again without a call."),
    ],
)
def test_a_threshold_is_recommended_for_a_gate_with_scores(gate: str, highest: float | None, remedy: str) -> None:
    """Without a score, and for other gates, another model is."""
    assert _threshold_remedy(gate, highest, None) == remedy


def test_a_probe_that_the_budget_ends_decides_nothing() -> None:
    """Values are ranked only once all known truths and falsehoods are judged."""
    ranked = {}
    for calls in range(26, 34):
        critic, kb = Naysayer(0.05), KnowledgeBase()
        models, library = Models(scripted(), critic, scripted(), scripted()), oracle_of(scripted()).library
        oracle = Oracle(
            kb, library, models, SearchSettings().oracle, "run", journal=Journal(kb, Budget(max_calls=calls))
        )
        try:
            values = oracle.answer([BUTTER])[BUTTER]
        except BudgetReached:
            values = []
        probed = len(set(critic.claims) & set(chain.from_iterable(probe_claims())))
        ranked[calls] = bool(values), oracle.critic_probe is not None, probed == 23
    assert ranked == {calls: (calls > 30,) * 3 for calls in range(26, 34)}


@pytest.mark.parametrize(("shift", "differs"), [(0.6, False), (0.4, False), (0.61, True), (0.39, True), (None, False)])
def test_a_promise_tells_labels_that_differ_much(shift: float | None, differs: bool) -> None:
    """By a tenth from one half they may differ either way."""
    record = CertificateRecord("g", 0.9, 0.9, "anytime", {}, 0.5, 50, 1, 0.05, 40, 100, "s", shift, "", "2026")
    assert ("differ from the others in their scores" in certificate_lines([record])[0]) is differs


@pytest.mark.parametrize("method", METHODS)
def test_a_promise_tells_its_method(method: str) -> None:
    """Each method promises in its own words."""
    record = CertificateRecord("g", 0.9, 0.9, method, {}, 0.5, 50, 1, 0.05, 40, 100, "s", None, "", "2026")
    assert str(Promise(0.9, 0.9, method)) in certificate_lines([record])[0]
    assert f"({method})" in certificate_lines([record])[0]


def test_a_value_whose_fact_the_user_withdrew_stays_away() -> None:
    """The values after it are accepted."""
    with KnowledgeBase() as kb:
        withdrawn = FactRecord("is_ingredient_in", ("butter", "paella"), ("Ingredient", "Dish"), Source.MODEL, 0.9)
        kb.add_facts([withdrawn])
        kb.withdraw([withdrawn.id], "wrong", "user")
        oracle = oracle_of(scripted(), kb)

        assert oracle.answer([BUTTER]) == {BUTTER: ["toast"]}
        reasons = [item.reason for item in kb.decisions(run_id="run") if item.gate == "consistency"]
        assert reasons == ["the user withdrew this fact: wrong"]


def test_lookups_end_exactly(fresh_kb: KnowledgeBase) -> None:
    """A part is decided from the number of lookups on that it takes, and passes with any fewer."""
    rules = "given holds(Number, Number)\n@name joined\n@generic none\n"
    library = hapax.parse_rules(
        rules + "holds(Number A, Number B) & holds(Number B, Number C) & C > 9 -> found(Number A)"
    )
    hapax.add_facts(fresh_kb, "holds", [(1, number) for number in range(2, 5)] + [(2, 3), (4, 11)], library)
    facts = DecidableFacts(KnownFacts(fresh_kb, library), library, lambda _: None)
    (part,) = open_parts(library.rule("joined"), ["A"], facts, library)

    left = {}
    for number in range(20):
        lookups = Lookups(number)
        left[number] = PartTest(part, facts, library).passes({"A": 2}, lookups), lookups.left
    # Of the two rows of holds(2, B) and those of their ends none is above 9.
    assert {number: passes for number, (passes, _) in left.items() if not passes} == dict.fromkeys(range(4, 20), False)
    assert left[3] == (True, 0)
    assert left[4] == (False, 1)


def test_the_pace_is_that_of_the_last_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request of exactly a minute ago is the first that counts."""
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(running.system, "monotonic", lambda: clock.seconds)
    journal = SimpleNamespace(total=SimpleNamespace(calls=0))
    search = running.WatchedSearch(None, journal, None)  # type: ignore[arg-type]
    assert search._pace() == 0.0
    clock.seconds, journal.total.calls = 130.0, 10
    assert search._pace() == 20.0
    clock.seconds, journal.total.calls = 160.0, 30
    assert search._pace() == 30.0
    clock.seconds = 160.5
    assert search._pace() == pytest.approx(20 * 60 / 30.5)


def test_wishes_are_looked_for_once_in_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is read again after its time, and not a moment before."""
    clock = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(running.system, "monotonic", lambda: clock.seconds)
    looks: list[float] = []
    files = SimpleNamespace(wish=lambda: looks.append(clock.seconds))
    search = running.WatchedSearch(files, Journal(KnowledgeBase()), None)  # type: ignore[arg-type]
    for seconds in (100.0, 100.0 + running.LOOKING_SECONDS / 2, 100.0 + running.LOOKING_SECONDS):
        clock.seconds = seconds
        assert not search.is_wanted
    assert looks == [100.0, 100.0 + running.LOOKING_SECONDS]


BORDERING = "oracle above(Node, Node)\nasymmetric above/2\nnever above(Node A, Node B) & above(Node B, Node C)"


def above(first: str, second: str, probability: float | None) -> FactRecord:
    source = Source.GIVEN if probability is None else Source.MODEL
    return FactRecord("above", (first, second), ("Node", "Node"), source, probability)


def settled(kb: KnowledgeBase, facts: list[FactRecord], covered: str = "") -> list[tuple[str, ...]]:
    """The facts that each conflict of these lost; the critic knows no more than the facts say."""
    library = hapax.parse_rules(BORDERING)
    kb.add_facts([item for item in facts if item.source is Source.GIVEN])
    known = KnownFacts(kb, library)
    known.add([item for item in facts if item.source is Source.MODEL])
    consistency = Consistency(
        kb, library, known, "run", lambda asked: [{} for _ in asked], covers=lambda atom: str(atom) == covered
    )
    assert consistency.conflicts == 0
    consistency.settle([], facts)
    assert consistency.conflicts == len(kb.conflicts("run"))
    return [item.lost for item in kb.conflicts("run")]


def test_given_facts_that_conflict_are_told_once(fresh_kb: KnowledgeBase) -> None:
    """None of them loses, and the search for conflicts ends."""
    assert settled(fresh_kb, [above("a", "b", None), above("b", "c", None)]) == [()]


def test_a_conflict_of_which_no_fact_lost_yet_is_decided_next(fresh_kb: KnowledgeBase) -> None:
    """In the chain a, b, c, d the first fact loses to the second, which then loses to the third."""
    facts = [above("a", "b", 0.5), above("b", "c", 0.6), above("c", "d", 0.7)]
    assert settled(fresh_kb, facts) == [('above("a", "b")',), ('above("b", "c")',)]


def test_an_atom_that_a_reference_covers_does_not_lose(fresh_kb: KnowledgeBase) -> None:
    """The surer fact of a model loses to it."""
    facts = [above("a", "b", 0.5), above("b", "c", 0.6)]
    assert settled(fresh_kb, facts, 'above("a", "b")') == [('above("b", "c")',)]


def test_claims_are_worth_their_calibrated_scores(fresh_kb: KnowledgeBase) -> None:
    """A score that comes from a row of a table is as sure as the table says."""
    fresh_kb.add_assessments(
        [
            Assessment("One.", "probability", "c@1", 0.4),
            Assessment("Two.", "probability", "c@1", 0.4, basis="row 2"),
            Assessment("Two.", "probability", "d@1", 0.6),
        ]
    )
    halved = SimpleNamespace(of_claims=lambda kb, critic, scores, indicators: {c: s / 2 for c, s in scores.items()})
    premises = [JudgedPremise(claim, "p/1", is_affirmed=True) for claim in ("One.", "Two.", "Three.")]
    library = hapax.parse_rules("oracle p(T)")

    plain = StatementScores(fresh_kb, library, ["c@1", "d@1"])
    assert plain.worth(premises) == {"One.": 0.4, "Two.": 0.4, "Three.": 1.0}
    mapped = StatementScores(fresh_kb, library, ["c@1", "d@1"], halved)  # type: ignore[arg-type]
    assert mapped.worth(premises) == {"One.": 0.2, "Two.": 0.4, "Three.": 1.0}
