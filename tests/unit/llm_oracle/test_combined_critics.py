"""Critics that are combined from others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from hapax.llm_oracle.combined_critic import CombinedCritic, paraphrased, sigmoid
from hapax.llm_oracle.prompts import conflict_question
from hapax.llm_oracle.protocols import CriticScore, ModelIdentity, Usage


class SettledCritic:
    """A critic with one answer to every claim, which remembers the claims."""

    def __init__(self, name: str, score: CriticScore, knows: tuple[str, ...] | None = None) -> None:
        self.identity = ModelIdentity(name, "1", knows)
        self.score = score
        self.claims: list[str] = []

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        self.claims += claims
        return [self.score] * len(claims)


def test_a_combined_score_is_the_mean_of_the_log_odds() -> None:
    """Members that do not cover a claim, or refuse it, have no part in the score; the raw scores are kept."""
    yes = SettledCritic("a", CriticScore(0.9, Usage(10, 1)))
    doubt = SettledCritic("b", CriticScore(0.5, Usage(20, 1)))
    silent = SettledCritic("c", CriticScore(0.5, covered=False, basis="no row"))
    refusing = SettledCritic("d", CriticScore(0.5, refused="filter"))

    (score,) = CombinedCritic([yes, doubt, silent, refusing]).probabilities(["Butter is a fat."])

    assert score.probability == pytest.approx(sigmoid(math.log(9) / 2))
    assert score.members == {"a@1": 0.9, "b@1": 0.5}
    assert (score.usage.prompt_tokens, score.covered, score.refused) == (30, True, "")
    assert not CombinedCritic([silent, silent_too()]).probabilities(["x"])[0].covered
    assert CombinedCritic([silent, refusing]).probabilities(["x"])[0].refused == "filter"


def silent_too() -> SettledCritic:
    return SettledCritic("e", CriticScore(0.5, covered=False))


def test_a_paraphrased_critic_is_asked_in_several_words() -> None:
    """A tendency to yes cancels out between a claim and its denial, and questions about conflicts stay questions."""
    yes_sayer = SettledCritic("a", CriticScore(0.9))
    critic = CombinedCritic(paraphrased(yes_sayer))

    (score,) = critic.probabilities(["Butter is a fat."])
    critic.probabilities([conflict_question("Butter is a fat.", ["Butter is a fat.", "Butter is a nut."])])

    assert yes_sayer.claims[:3] == [
        "Butter is a fat.",
        "It is a well-known fact: Butter is a fat.",
        "The following is false: Butter is a fat.",
    ]
    assert score.probability == pytest.approx(sigmoid(math.log(9) / 3))
    assert score.members == pytest.approx({"a@1": 0.9, "a/stressed@1": 0.9, "a/denied@1": 0.1})
    assert yes_sayer.claims[-1].count("The following is false: Butter is a fat.") == 1
    assert "Butter is a nut." in yes_sayer.claims[-1]
