"""The pretrained model SmolLM2-135M in its roles. Opt-in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_fixture import run

import hapax

pytestmark = [pytest.mark.smollm2, pytest.mark.timeout(600)]  # the first test converts the model
CLAIMS = Path(__file__).parents[3] / "tools" / "critic_claims"
RULES = """
oracle is_a_dish_from(Dish, Country): "[1] is a dish from [2]" / "[1] is not a dish from [2]" / "is [1] a dish from [2]?"
given travels_to(Person, Country): "[1] travels to [2]" / "[1] does not travel to [2]" / "does [1] travel to [2]?"
given may_taste(Person, Dish): "[1] may taste [2]" / "[1] may not taste [2]" / "may [1] taste [2]?"
@name tasting
travels_to(Person X, Country A) & is_a_dish_from(Dish B, Country A) -> may_taste(Person X, Dish B)
"""


def skip_without(model: str) -> None:
    (listing,) = [listing for listing in hapax.list_models().listings if listing.name == model]
    if not listing.available:
        pytest.skip(listing.remedy)


@pytest.fixture(scope="module")
def models() -> hapax.Models:
    skip_without("smollm2")
    return hapax.open_models("smollm2", evaluator="smollm2")


def test_a_sentence_is_likelier_than_its_words_in_another_order(models: hapax.Models) -> None:
    """Likelihood knows English, which word frequency does not."""
    sentence, scrambled = models.likelihood.log_likelihoods(
        ["Paris is the capital of France.", "France capital the of is Paris."]
    )

    assert sentence.total > scrambled.total + 20
    assert sentence.token_count == scrambled.token_count


def test_a_search_ends_with_counts_that_add_up(
    models: hapax.Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        (candidates, rejected), *_ = kb.sql("SELECT count(*), count(rejected_by_parser) FROM candidates")
        (judged,), *_ = kb.sql("SELECT count(DISTINCT subject) FROM decisions WHERE gate = 'critic'")
    assert candidates - rejected >= judged
    assert sum(role["calls"] for role in repeated["calls"].values()) == 0
    assert repeated["statements"] == summary["statements"]


def test_the_trained_critic_prefers_known_truths() -> None:
    """Opened by its string it judges claims in any order alike and prefers most truths."""
    skip_without("smollm2-critic")
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


def test_the_trained_critic_means_what_it_says_of_subjects_that_it_never_saw(tmp_path: Path) -> None:
    """Of the held-out claims that it judges it accepts few false ones, and its probabilities are near the truth."""
    skip_without("smollm2-critic")
    rows = [line.split("\t") for line in (CLAIMS / "held_out.tsv").read_text("utf-8").splitlines()]
    rules = hapax.parse_rules((CLAIMS / "subjects.rules").read_text("utf-8"))
    templates = {signature.name: signature.templates.affirmative for signature in rules.signatures}
    claims = [templates[name].replace("[1]", key).replace("[2]", value) for _, name, key, value in rows]

    scores = hapax.open_models(critic="smollm2-critic").critic.probabilities(
        [f"{claim[0].upper()}{claim[1:]}." for claim in claims]
    )

    judged = [(score.probability, row[0] == "true") for score, row in zip(scores, rows, strict=True) if score.covered]
    accepted = [is_true for probability, is_true in judged if probability >= 0.85]
    assert len(judged) >= len(rows) / 2
    assert sum(accepted) >= 0.9 * len(accepted) > 0
    assert sum(probability for probability, _ in judged) == pytest.approx(
        sum(truth for _, truth in judged), abs=0.08 * len(judged)
    )
