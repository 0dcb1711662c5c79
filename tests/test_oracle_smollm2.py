"""The pretrained model SmolLM2-135M in its roles. Not run by default: `make test-opt-in` installs it and runs these."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_fixture import run

import hapax
from hapax.llm_oracle.backends.checkpoints import SMOLLM2, SMOLLM2_CRITIC
from hapax.llm_oracle.backends.trained_critic import CARD, FOLDER, read_card
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Models

pytestmark = [pytest.mark.smollm2, pytest.mark.timeout(600)]  # the first test converts the model

EUROPE = frozenset(
    [
        "Albania",
        "Andorra",
        "Austria",
        "Belarus",
        "Belgium",
        "Bosnia",
        "Bulgaria",
        "Croatia",
        "Cyprus",
        "Czechia",
        "Czech Republic",
        "Denmark",
        "Estonia",
        "Finland",
        "France",
        "Germany",
        "Greece",
        "Hungary",
        "Iceland",
        "Ireland",
        "Italy",
        "Latvia",
        "Liechtenstein",
        "Lithuania",
        "Luxembourg",
        "Malta",
        "Moldova",
        "Monaco",
        "Montenegro",
        "Netherlands",
        "North Macedonia",
        "Norway",
        "Poland",
        "Portugal",
        "Romania",
        "Russia",
        "San Marino",
        "Serbia",
        "Slovakia",
        "Slovenia",
        "Spain",
        "Sweden",
        "Switzerland",
        "The Netherlands",
        "Ukraine",
        "United Kingdom",
    ]
)

RULES = """
oracle is_a_dish_from(Dish, Country): "[1] is a dish from [2]" / "[1] is not a dish from [2]" / "is [1] a dish from [2]?"
given travels_to(Person, Country): "[1] travels to [2]" / "[1] does not travel to [2]" / "does [1] travel to [2]?"
given may_taste(Person, Dish): "[1] may taste [2]" / "[1] may not taste [2]" / "may [1] taste [2]?"
@name tasting
travels_to(Person X, Country A) & is_a_dish_from(Dish B, Country A) -> may_taste(Person X, Dish B)
"""


@pytest.fixture(scope="module")
def models() -> Models:
    if missing := SMOLLM2.missing():
        pytest.skip(missing)
    return hapax.open_models("smollm2", evaluator="smollm2")


def test_it_lists_countries_of_europe(models: Models) -> None:
    """Asked for ten countries in Europe, it lists ten, at least eight of which are."""
    request = GenerationRequest("List 10 countries in Europe.")

    (reply,) = models.knowledge.generate([request], GenerationParameters(max_tokens=120, temperature=0.0))

    listed = re.findall(r"^\d+\. ([\w ]+)", reply.text, re.MULTILINE)
    assert len(listed) == 10
    assert len(EUROPE.intersection(listed)) >= 8


def test_a_sentence_is_likelier_than_its_words_in_another_order(models: Models) -> None:
    """Likelihood knows English, which word frequency does not."""
    sentence, scrambled = models.likelihood.log_likelihoods(
        ["Paris is the capital of France.", "France capital the of is Paris."]
    )

    assert sentence.total > scrambled.total + 20
    assert sentence.token_count == scrambled.token_count


def test_the_critic_reads_its_chat_template(models: Models) -> None:
    """P(yes) is a probability that depends on the claim, asked in the model's own chat format."""
    first, second = models.critic.probabilities(["Paris is the capital of France.", "Paris is the capital of Peru."])

    assert 0 < second.probability < first.probability < 1


def test_a_search_ends_with_counts_that_add_up(models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search with SmolLM2 in all roles ends, counts each call once, and asks nothing when it is repeated."""
    monkeypatch.chdir(tmp_path)
    Path("tasting.rules").write_text(RULES, "utf-8")
    options = ("--values", "5", "--calls", "2", "--beam", "3", "--evaluator", "smollm2", "--json", "--no-progress")

    first = run("search", "tasting.rules", "-m", "smollm2", *options)
    again = run("search", "tasting.rules", "-m", "smollm2", *options)

    summary, repeated = json.loads(first.stdout), json.loads(again.stdout)
    sent = sum(role["calls"] for role in summary["calls"].values())
    with hapax.KnowledgeBase("hapax.db") as kb:
        assert len(kb.calls()) == sent > 0
        (candidates, rejected), *_ = kb.query("SELECT count(*), count(rejected_by_parser) FROM candidates")
        (judged,), *_ = kb.query("SELECT count(DISTINCT subject) FROM decisions WHERE gate = 'critic'")
    assert candidates - rejected >= judged
    assert sum(role["calls"] for role in repeated["calls"].values()) == 0
    assert repeated["statements"] == summary["statements"]


def test_the_trained_critic_prefers_known_truths_and_leaves_what_its_card_excludes() -> None:
    """Opened by its string it judges claims in any order alike, prefers most truths, and does not cover some predicates."""
    if missing := SMOLLM2_CRITIC.missing():
        pytest.skip(missing)
    critic = hapax.open_models(critic="smollm2-critic").critic
    pairs = [
        ("The giraffe belongs to the class mammal.", "The giraffe belongs to the class fish."),
        ("Geology is the study of rocks.", "Geology is the study of dreams."),
        ("Hamburg is a city in Germany.", "Hamburg is a city in Peru."),
        ("The violin belongs to the string instruments.", "The violin belongs to the percussion instruments."),
    ]
    claims = [claim for pair in pairs for claim in pair]

    scores = critic.probabilities(claims)
    backwards = critic.probabilities(claims[::-1])[::-1]

    assert sum(truth.probability > lie.probability for truth, lie in zip(scores[::2], scores[1::2], strict=True)) >= 3
    assert [score.probability for score in scores] == pytest.approx(
        [score.probability for score in backwards], abs=0.03
    )
    assert critic.identity.name == "smollm2-critic"
    card = read_card(FOLDER / CARD)
    for entry in card.predicates:
        (score,) = critic.probabilities([entry.templates[0].replace("[1]", "Xenia").replace("[2]", "1900") + "."])
        assert score.covered is entry.judged
        assert score.covered or (entry.name in score.basis and score.probability == 0.5)
