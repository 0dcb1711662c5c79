"""A critic that says no to everything: how it is recognised, and what a search does with its scores."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from test_engine_oracle import BUTTER, PHONE, oracle_of, scripted

from hapax.engine.search.gates import QuestionGates
from hapax.engine.search.oracle import Oracle, OracleSettings
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.kb.records import Candidate
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critic_probing import CriticProbe, probe_claims, probe_result, reads_any_words
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CriticScore, ModelIdentity, Models

CLAIMS = {"Butter is an ingredient in paella.": 0.03, "Butter is an ingredient in toast.": 0.06}


@dataclass
class Naysayer:
    """A critic of any words that gives known truths this P(yes), and other claims those of the table."""

    truths: float
    table: dict[str, float] = field(default_factory=lambda: dict(CLAIMS))
    identity: ModelIdentity = field(default_factory=lambda: ModelIdentity("openai/naysayer", "1"))
    claims: list[str] = field(default_factory=list)

    def probabilities(self, claims: list[str]) -> list[CriticScore]:
        self.claims += claims
        truths = set(probe_claims()[0])
        return [CriticScore(self.truths if claim in truths else self.table.get(claim, 0.05)) for claim in claims]


def asked(critic: Naysayer, settings: OracleSettings | None = None) -> Oracle:
    model = scripted()
    kb = KnowledgeBase()
    models = Models(model, critic, model, model)
    return Oracle(kb, oracle_of(model).library, models, settings or SearchSettings().oracle, "run", journal=Journal(kb))


def test_a_probe_has_truths_and_falsehoods() -> None:
    """Both sorts are sentences of the known questions, and none is in both."""
    truths, falsehoods = probe_claims()

    assert "The Danube flows through Germany." in truths
    assert "The Danube flows through Spain." in falsehoods
    assert (len(truths), len(falsehoods)) == (11, 12)
    assert not set(truths) & set(falsehoods)


def test_a_probe_says_what_it_found() -> None:
    """Preference is the area under the ROC curve; says no means that no truth reaches the threshold."""
    probe = CriticProbe((0.1, 0.3), (0.1, 0.2))

    assert probe.preference == pytest.approx((0.5 + 0 + 1 + 1) / 4)
    assert (probe.says_no(0.3), probe.says_no(0.31)) == (False, True)
    assert "at most 0.30 for 2 claims that are known to be true" in str(probe)
    assert probe_result([0.9] * 11 + [0.1] * 12).preference == 1.0


def test_a_critic_that_says_no_ranks_the_values() -> None:
    """The better half of a question's values is accepted, in order of P(yes), and its reason says why."""
    oracle = asked(Naysayer(0.05))
    accepted = oracle.answer([BUTTER])[BUTTER]
    reasons = [decision.reason for decision in oracle.kb.decisions(run_id="run") if decision.accepted]

    assert accepted == ["toast", "soap"]
    assert all("because the critic says no to known truths" in reason for reason in reasons)
    assert "Expect false statements" in str(oracle.critic_note)
    assert "openai/naysayer" in str(oracle.critic_note)


def test_a_critic_that_knows_truths_is_believed() -> None:
    """If it affirms one known truth, a question without a true value stays empty."""
    oracle = asked(Naysayer(0.9))

    assert oracle.answer([BUTTER]) == {BUTTER: []}
    assert oracle.critic_note is None


def test_a_critic_is_probed_once_and_only_if_values_run_out() -> None:
    """A search whose questions find values asks nothing more."""
    critic = Naysayer(0.05)
    oracle = asked(critic)
    oracle.answer([BUTTER])
    oracle.answer([PHONE])
    content = Naysayer(0.05, dict.fromkeys((*CLAIMS, "Butter is an ingredient in soap."), 0.95))
    content.table |= {f"{dish} is a dish.": 0.9 for dish in ("Paella", "Toast", "Soap")}
    asked(content).answer([BUTTER])
    known = probe_claims()[0]

    assert sum(claim in known for claim in critic.claims) == len(known)
    assert not set(known) & set(content.claims)


def test_thresholds_of_the_user_and_of_link_are_kept() -> None:
    """No value is ranked where a threshold is stated, under --compat, or for a model that is made for Hapax's words."""
    critic = Naysayer(0.05)

    assert asked(critic, SearchSettings(fact_threshold=CriticRule.at(0.5)).oracle).answer([BUTTER]) == {BUTTER: []}
    assert not set(probe_claims()[0]) & set(critic.claims)
    assert not SearchSettings(compat="paper").oracle.ranks_if_needed
    assert not reads_any_words(ModelIdentity("scripted", "1"))
    assert not reads_any_words(ModelIdentity("hf/own", "1", knows=()))
    assert reads_any_words(ModelIdentity("hf/gpt2", "1"))


def test_ranking_keeps_the_better_half_of_each_gate() -> None:
    """Values that a gate rejects do not count for the next one, and a single value is its own better half."""
    gates = QuestionGates()
    values = [Candidate("q", f"v{number}", f"v{number}", "c", number) for number in range(5)]
    scores = [(0.05, 0.01), (0.04, 0.09), (0.03, 0.03), (0.02, 0.99), (0.01, 0.5)]
    gates.add({value: {"type": kind, "critic": fact} for value, (kind, fact) in zip(values, scores, strict=True)})
    gates.end()
    assert gates.is_starved
    gates.rank()

    assert [candidate.value for candidate in gates.accepted] == ["v1", "v2"]


def test_one_call_asks_a_question_with_one_right_value_once() -> None:
    """Its value is then believed on one sample; a later search with more calls takes the second one."""
    model = scripted()
    kb = KnowledgeBase()
    once = oracle_of(model, kb, SearchSettings(calls_per_question=1).oracle)

    assert once.answer([PHONE]) == {PHONE: [1876]}
    assert len(model.prompts) == 1
    assert oracle_of(model, kb, SearchSettings().oracle, run_id="later").answer([PHONE]) == {PHONE: [1876]}
    assert len(model.prompts) == 2
