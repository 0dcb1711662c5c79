"""Critics that are combined from others: equal weights at first, learned ones after a calibration, raw scores kept."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke

import hapax
from hapax.engine.search.score_maps import ScoreMap, ScoreMaps
from hapax.evaluation.calibration.fitting import LabelledScore, best_map, held_out, measures
from hapax.kb.records import Assessment, CalibrationRecord
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import FREE, Price
from hapax.llm_oracle.combined_critic import CombinedCritic, highest_price, paraphrased, sigmoid
from hapax.llm_oracle.prompts import conflict_question
from hapax.llm_oracle.protocols import CRITIC, CriticScore, ModelIdentity, Usage
from hapax.llm_oracle.registry import chain_parts, open_model
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle flows_through(River, Country): "[1] flows through [2]" / "[1] does not flow through [2]" / "does [1] flow through [2]?".
lives_in(Person X, Country A) & flows_through(River B, Country A) -> can_swim_in(Person X, River B).
"""


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


def test_model_strings_name_the_members() -> None:
    """A plus separates members that begin with the name of a backend; a chain may end with a combination."""
    assert chain_parts("smollm2+embedded", "+") == ["smollm2", "embedded"]
    assert chain_parts("hf:org/c++model+embedded", "+") == ["hf:org/c++model", "embedded"]
    assert chain_parts("paraphrased:smollm2+embedded", "+") == ["paraphrased:smollm2", "embedded"]
    assert chain_parts("reference:geo,elements,smollm2+embedded") == ["reference:geo,elements", "smollm2+embedded"]

    critic = open_model("simulated:1+simulated:2", CRITIC, OpeningOptions(library=hapax.parse_rules(RULES)))

    assert critic.identity.name == "simulated+simulated"
    with pytest.raises(hapax.HapaxError, match="is combined with itself"):
        open_model("simulated:1+simulated:1", CRITIC, OpeningOptions(library=hapax.parse_rules(RULES)))
    with pytest.raises(hapax.HapaxError, match="reads only the sentences that it was trained on"):
        paraphrased(SettledCritic("a", CriticScore(0.9), knows=("flows_through/2",)))


def test_a_combination_costs_what_its_members_cost() -> None:
    """Prices are never too low, and unknown if one is."""
    assert highest_price([FREE, Price(1, 4), Price(2, 3)]) == Price(2, 4)
    assert highest_price([FREE, None]) is None


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


def members_labels(count: int, seed: int = 0) -> list[LabelledScore]:
    """Labels with the scores of two critics that each know another half of the facts, and of one that knows nothing."""
    rng = np.random.default_rng(seed)
    labels = []
    for number in range(count):
        is_true = bool(rng.random() < 0.5)
        signal = 3.0 if is_true else -3.0
        knows = number % 2
        logits = {
            "a@1": float(rng.normal(signal if knows else 0.0)),
            "b@1": float(rng.normal(0.0 if knows else signal)),
            "noise@1": float(rng.normal(0.0, 6.0)),
        }
        members = {title: sigmoid(value) for title, value in logits.items()}
        mean = sigmoid(sum(logits.values()) / 3)
        labels.append(LabelledScore(mean, is_true, f"p{number % 3}/2", f"key {number // 2}", str(number), members))
    return labels


def test_stacking_beats_the_mean_on_keys_that_it_has_not_seen() -> None:
    """The noisy member gets hardly a weight, no weight is negative, and the held-out measures gain."""
    labels = members_labels(150)
    fitted = best_map(labels)
    stacked = measures(labels, held_out(labels))
    equal = measures(labels, [label.score for label in labels])

    assert fitted.method == "stacked"
    assert min(fitted.map.weights.values()) >= 0
    assert fitted.map.weights.get("noise@1", 0.0) < 0.1 * fitted.map.weights["a@1"]
    assert stacked.auc.low > equal.auc.high
    assert stacked.log_loss.high < equal.log_loss.low


def test_a_stacked_map_is_the_same_after_storing() -> None:
    """Weights come back from the knowledge base, and members' stored scores are found by claim."""
    fitted = best_map(members_labels(120)).map
    label = members_labels(1, seed=5)[0]
    with hapax.KnowledgeBase() as kb:
        kb.set_calibration(CalibrationRecord("a+b@1 + 1", "stacked", fitted.parameters, (), (), {}, "2026"))
        kb.add_assessments(Assessment("A claim.", "probability", name, score) for name, score in label.members.items())
        maps = ScoreMaps.stored(kb)
        found = maps.of_claims(kb, "a+b@1 + 1", {"A claim.": label.score}, {"A claim.": "p1/2"})

    expected = fitted.probability(label.score, "p1/2", label.members)
    assert found == {"A claim.": pytest.approx(expected)}
    # Alone, the combined score counts as if each member had given it.
    own = ScoreMap(3.0, 0.5, weights={"a": 2.0, "b": 1.0})
    assert own.probability(0.3) == pytest.approx(own.probability(0.3, "", {"a": 0.3, "b": 0.3}))


@pytest.fixture
def combined(tmp_path: Path) -> Path:
    """Two scripted critics, each of which knows half of sixty rivers; labels of all."""
    (tmp_path / "world.rules").write_text(RULES, "utf-8")
    lines, first, second = [], {}, {}
    rng = np.random.default_rng(3)
    rivers = []
    for number in range(80):
        is_true, claim = bool(rng.random() < 0.5), f"River {number} flows through country {number // 2}."
        lines.append(f"{'true' if is_true else 'false'}\tflows_through\tRiver {number}\tcountry {number // 2}")
        known, other = (first, second) if number % 2 else (second, first)
        known[claim] = 0.95 if is_true else 0.05
        other[claim] = 0.5 + 0.1 * float(rng.random() - 0.5)
        rivers.append(f"River {number}")
    (tmp_path / "labels.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    defaults = {"generate": [], "critic": 0.5, "likelihood": -10}
    generate = {"flows through [B]": ["country 1", "country 2"], "flows through country": rivers[:6]}
    for name, script in (("a", first), ("b", second)):
        content = {"generate": generate, "critic": script, "defaults": defaults}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), "utf-8")
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    return tmp_path


def test_commands_calibrate_and_search_with_a_combination(combined: Path) -> None:
    """`calibrate` prints each member beside the combination; the search compares stacked scores and keeps raw ones."""
    critic = f"scripted:{combined / 'a.json'}+scripted:{combined / 'b.json'}"
    place = ["--db", str(combined / "kb.db")]
    rules = str(combined / "world.rules")
    labels = ["--labels", str(combined / "labels.tsv")]

    learned = invoke("calibrate", "--rules", rules, *place, "--critic", critic, *labels, "--json")
    models = ["-m", f"scripted:{combined / 'a.json'}", "--critic", critic]
    searched = invoke("search", rules, *place, *models, "--calibrated", "--no-progress")

    assert learned.exit_code == 0, learned.output
    figures = json.loads(learned.stdout)
    measured = figures["measures"]
    assert figures["method"].startswith("stacked")
    auc = {part: found["calibrated"]["auc"]["value"] for part, found in measured.items()}
    members = [part for part in auc if part.startswith("scripted")]
    assert len(members) == 2
    assert all(auc["all labels"] > auc[member] + 0.1 for member in members)
    assert searched.exit_code == 0, searched.output
    with hapax.KnowledgeBase(combined / "kb.db", read_only=True) as kb:
        (record,) = kb.calibrations()
        raw = kb.assessments(["River 1 flows through country 0."], "probability", record.critic)
        members_raw = [
            kb.assessments(["River 1 flows through country 0."], "probability", name)
            for name in record.parameters["weights"]
        ]
    assert raw
    assert all(members_raw)


def test_a_script_is_no_paraphrase_of_itself() -> None:
    """The journal keeps the answers in each wording apart, by names of the members."""
    model = ScriptedModel({"defaults": {"critic": 0.7}})
    critic = CombinedCritic(paraphrased(model))

    assert critic.identity.name == "scripted+scripted/stressed+scripted/denied"
