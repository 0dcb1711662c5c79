"""The model card: its figures are right on scores made by hand, its markers keep the prose, its outside facts are outside."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hapax.evaluation.shared.estimates import (
    auc,
    auc_estimate,
    cohens_d,
    difference_of_means,
    mean,
    mean_difference,
    mean_share,
    rank_correlation,
    share,
    signed_rank_test,
    spearman,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import FactRecord, Source
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.embedded.atlas import Atlas, load_atlas, parse_atlas, popularity
from hapax.llm_oracle.prompts import read_prompt
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
)
from tools.embedded.card import PROSE, Measurements, write_card
from tools.embedded.card_sections import replace_sections
from tools.embedded.corpus import Corpus
from tools.embedded.handwritten_claims import free_claims, outside_facts
from tools.embedded.list_measurements import CALLS, measure_lists
from tools.embedded.model_folder import ModelFacts, read_model_facts
from tools.embedded.score_measurements import (
    CardSize,
    measure_critic,
    measure_free,
    measure_likelihood,
    measure_outside,
)
from tools.embedded.search_measurements import measure_search, summary, truth
from tools.embedded.wording import AtlasWording, load_wording

CHEESES = """\
predicate is_made_from_milk_of(Cheese, Animal) key 1
feta: sheep; goat
cheddar: cow
roquefort: sheep
chevre: goat
predicate is_a_cheese_from(Cheese, Country) key 1 functional
feta: Greece
cheddar: England
roquefort: France
chevre: France
"""
RULES = """\
oracle is_made_from_milk_of(Cheese, Animal): "[1] is made from the milk of the [2]".
functional is_a_cheese_from(Cheese, Country): "[1] is a cheese from [2]".
given reacts_to_milk_of(Person, Animal): "[1] reacts to the milk of the [2]".
given should_avoid(Person, Cheese): "[1] should avoid [2]".
@name milk
reacts_to_milk_of(Person X, Animal A) & is_made_from_milk_of(Cheese B, Animal A) -> should_avoid(Person X, Cheese B).
"""
EXTENT = CardSize(lists=20)


class AtlasModel:
    """All roles, answered from an atlas: what it lists is said and believed, and longer texts are less likely."""

    identity = ModelIdentity("atlas")

    def __init__(self, atlas: Atlas, wording: AtlasWording) -> None:
        self._atlas = atlas
        self._claims = {wording.claim(fact.predicate, fact.arguments).casefold() for fact in atlas.facts}
        self._templates = {
            name: re.compile(
                re.escape(wording.claim(name, ("<1>", "<2>"))).replace("<1>", "(.+)").replace("<2>", "(.+)")
            )
            for name in atlas.relations
        }

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return [Generation(self._list(request)) for request in requests]

    def _list(self, request: GenerationRequest) -> str:
        parts = read_prompt(request.prompt)
        sentence = parts.sentence if parts is not None else ""
        matches = ((name, template.fullmatch(sentence)) for name, template in self._templates.items())
        predicate, match = next(((name, match) for name, match in matches if match), ("", None))
        if match is None:
            return ""  # a question that finds out the best prompt profile
        position = match.groups().index(f"[{parts.variable}]")
        given = None if match[2 - position].startswith("[") else match[2 - position]
        values = [v for v in self._atlas.true_values(predicate, position, given) if v not in request.excluded_values]
        return "".join(f"\n{number}. {value}." for number, value in enumerate(values, start=1)) + "\n"

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [CriticScore(self._belief(claim.rstrip(".").casefold())) for claim in claims]

    def _belief(self, claim: str) -> float:
        typed = re.fullmatch(r"(.+) is an? (cheese|animal|country)", claim)
        if typed is None:
            return 0.99 if claim in self._claims else 0.01
        known = {entity.casefold() for entity in self._atlas.entities(typed[2].capitalize())}
        return 0.99 if typed[1] in known else 0.01

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-float(len(text)), 1) for text in texts]


def library() -> Library:
    return parse_library([("cheese.rules", RULES)])


def corpus(text: str = CHEESES) -> Corpus:
    atlas = parse_atlas([("cheese.atlas", text)])
    return Corpus(atlas, AtlasWording(atlas, library()))


def model(text: str = CHEESES) -> AtlasModel:
    own = corpus(text)
    return AtlasModel(own.atlas, own.wording)


def models(text: str = CHEESES) -> Models:
    embedded = model(text)
    return Models(embedded, embedded, embedded, FrequencyLikelihood())


@pytest.fixture(scope="module")
def measured() -> Measurements:
    """A card's figures of a small world."""
    own = corpus()
    facts = ModelFacts(10, 1, 8, 100, 1000, "abc", 5, 2, {"steps": 7})
    return Measurements(
        facts,
        measure_critic(model(), own, EXTENT),
        measure_likelihood(model(), own, EXTENT),
        measure_lists(model(), own, library(), EXTENT),
        measure_free(model(), free_claims()),
        measure_free(model(), free_claims()),
        measure_search(models(), library(), own.atlas, EXTENT),
    )


# figures


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
    st.lists(st.integers(0, 5), min_size=1, max_size=20),
)
def test_area_is_mann_whitneys_share_of_pairs(positive: list[int], negative: list[int]) -> None:
    """The area equals scipy's U over the number of pairs, ties included."""
    expected = stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))

    assert auc(positive, negative) == pytest.approx(expected)


def test_area_by_hand() -> None:
    """Of the four pairs three are in order; a tie counts half."""
    assert auc([0.9, 0.4], [0.1, 0.5]) == 0.75
    assert auc([0.5], [0.5]) == 0.5


def test_rank_correlation_by_hand() -> None:
    """Same order is 1, reversed is -1, one swap of three is a half, and a constant has none."""
    assert spearman([1, 2, 30], [2, 4, 5]) == pytest.approx(1)
    assert spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2, 3], [1, 3, 2]) == pytest.approx(0.5)
    assert math.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_shares_have_wilsons_interval() -> None:
    """Eight of ten: the interval that textbooks print."""
    found = share([True] * 8 + [False] * 2)

    assert (found.value, found.count) == (0.8, 10)
    assert found.low == pytest.approx(0.490, abs=0.001)
    assert found.high == pytest.approx(0.943, abs=0.001)


def test_bootstrap_intervals_hold_the_figure_and_repeat() -> None:
    """The same scores give the same interval, with the figure inside."""
    first, second = [float(n) for n in range(30)], [float(n * n % 31) for n in range(30)]

    for estimate in (lambda: mean(first), lambda: auc_estimate(first, second), lambda: rank_correlation(first, second)):
        found = estimate()
        assert found.low <= found.value <= found.high
        assert found == estimate()


def test_nothing_measured_is_no_number() -> None:
    """Without cases there is no figure, and that is said in words."""
    for found in (share([]), mean([]), auc_estimate([1.0], []), rank_correlation([], [])):
        assert math.isnan(found.value)
        assert str(found) == "none"


def test_a_single_case_has_no_interval() -> None:
    """One value cannot be resampled."""
    found = mean([2.0])

    assert found.value == 2.0
    assert math.isnan(found.low)


def test_rounding_is_no_difference() -> None:
    """Values that differ by rounding alone are ties: no small p-value, no sign, no effect; small scores keep theirs."""
    first, second = [0.1 + 0.2] * 10, [0.3] * 10
    assert first[0] > second[0]

    assert signed_rank_test(first, second) == 1.0
    assert mean_difference(first, second) == difference_of_means(first, second).value == 0.0
    assert math.isnan(cohens_d([0.1] * 3, [0.3] * 3))
    small, smaller = [2e-20 * n for n in range(1, 11)], [1e-20 * n for n in range(1, 11)]
    assert signed_rank_test(small, smaller) == pytest.approx(2 / 2**10)
    assert mean_difference(small, smaller) > 0
    assert cohens_d(small, smaller) == pytest.approx(cohens_d(np.multiply(small, 1e20), np.multiply(smaller, 1e20)))


def test_differences_that_are_equal_but_for_rounding_tie() -> None:
    """The ranks of .3 - .2 and .2 - .1, which differ in their last digit, are shared."""
    assert signed_rank_test([0.3, 0.2, 0.5, 0.1], [0.2, 0.1, 0.0, 0.3]) == signed_rank_test([1, 1, 5, 1], [0, 0, 0, 3])


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_shares_that_are_all_alike_have_the_interval_of_single_cases(end: float) -> None:
    """Ten shares of 1, and an AUC of 1 by ten cases, are no proof that there is nothing else: Wilson's interval."""
    wilson = share([bool(end)] * 10)
    assert wilson.high - wilson.low == pytest.approx(0.278, abs=0.001)

    assert mean_share([end] * 10) == wilson
    assert mean_share([0.0, 1.0]) == mean([0.0, 1.0])
    area = auc_estimate([end] * 10, [1 - end] * 20)
    assert (area.value, area.low, area.high, area.count) == (end, wilson.low, wilson.high, 30)


def test_deltas_are_counted_by_rule() -> None:
    """Each rule counts once in the mean and in the share above 0."""
    found = summary([0.5, -0.1, 0.2])

    assert found.mean.value == pytest.approx(0.2)
    assert found.positive.value == pytest.approx(2 / 3)


# the card's text

CARD = "Prose \\1 before.\n<!-- measured: a -->\nold\n<!-- end: a -->\nBetween.\n<!-- measured: b -->\n<!-- end: b -->\nAfter.\n"


@given(st.text(alphabet="ab|\\1 \n.é", max_size=30), st.text(alphabet="xy\\g<0> \n", max_size=30))
def test_replacing_sections_twice_changes_nothing_more(first: str, second: str) -> None:
    """The replacement is idempotent, whatever the text, and leaves the prose alone."""
    sections = {"a": first, "b": second}
    once = replace_sections(CARD, sections)

    assert replace_sections(once, sections) == once
    assert replace_sections(once, {"a": "old", "b": ""}) == replace_sections(CARD, {"a": "old", "b": ""})
    assert once.startswith("Prose \\1 before.\n<!-- measured: a -->\n")
    assert once.endswith("\n<!-- end: b -->\nAfter.\n")


@pytest.mark.parametrize(
    ("card", "names"), [(CARD, ["a"]), (CARD, ["a", "b", "c"]), (CARD + CARD, ["a", "b"]), ("no marker", ["a"])]
)
def test_markers_that_do_not_fit_are_refused(card: str, names: list[str]) -> None:
    """A marker too many, too few or twice is an error that names it."""
    with pytest.raises(HapaxError, match=r"markers .*: (a|b|c)"):
        replace_sections(card, dict.fromkeys(names, "text"))


def test_card_and_figures_are_written(tmp_path: Path, measured: Measurements) -> None:
    """Every section of the shipped prose is filled, the front matter stays first, and the JSON holds no nan."""
    write_card(measured, tmp_path)
    first = (tmp_path / "README.md").read_text("utf-8")
    write_card(measured, tmp_path)

    assert (tmp_path / "README.md").read_text("utf-8") == first
    assert first.startswith("---\nlanguage: ")
    assert "Not measured" not in first
    assert len(first) > len(PROSE.read_text("utf-8"))
    figures = json.loads((tmp_path / "measurements.json").read_text("utf-8"), parse_constant=pytest.fail)
    assert figures["critic"]["auc"]["value"] == 1.0
    assert figures["model"]["training"] == {"steps": 7}


def test_writing_the_card_keeps_the_models_revision(tmp_path: Path, measured: Measurements) -> None:
    """Card and figures are no part of what answers, so the journal of a model with a new card stays valid."""
    from hapax.llm_oracle.backends import identities

    (tmp_path / "config.json").write_text("{}")
    before = identities.content_revision(tmp_path)
    write_card(measured, tmp_path)

    assert identities.content_revision(tmp_path) == before


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    """The error names the folder and the command that helps."""
    with pytest.raises(HapaxError, match=r"contains no model.*make model"):
        read_model_facts(tmp_path, corpus().atlas)


# the roles


def test_a_critic_that_knows_the_atlas_is_perfect() -> None:
    """True facts and types are all accepted, wrong ones never, and the area is 1 under each predicate."""
    found = measure_critic(model(), corpus(), EXTENT)

    assert (found.auc.value, found.true_accepted.value, found.wrong_accepted.value) == (1.0, 1.0, 0.0)
    assert (found.true_types_accepted.value, found.wrong_types_accepted.value) == (1.0, 0.0)
    assert set(found.auc_by_predicate.values()) == {1.0}


def test_likelihood_is_correlated_with_popularity() -> None:
    """The pooled figure is Spearman's of the scores with the summed popularity of the two names."""
    own = corpus()
    scores = [-float(len(own.claim(fact))) for fact in own.atlas.facts]
    expected = spearman(scores, [sum(map(popularity, fact.arguments)) for fact in own.atlas.facts])

    found = measure_likelihood(model(), own, EXTENT)

    assert found.pooled.value == pytest.approx(expected)
    assert found.by_predicate == {}


def test_lists_are_judged_call_by_call() -> None:
    """The first call tells every true value; the exclusion leaves nothing for the later ones."""
    found = measure_lists(model(), corpus(), library(), EXTENT)

    assert len(found.calls) == CALLS
    first, second = found.calls[:2]
    assert (first.parsed.value, first.of_type.value, first.true.value, first.recall.value) == (1.0, 1.0, 1.0, 1.0)
    assert second.parsed.count == 0
    assert (found.functional_agreed.value, found.functional_true.value) == (1.0, 1.0)


def test_wrong_list_values_lower_truth_and_keep_type() -> None:
    """A model of another atlas gives values of the right type that are not true here."""
    found = measure_lists(model(CHEESES.replace("cheddar: cow", "cheddar: goat")), corpus(), library(), EXTENT)

    assert found.calls[0].of_type.value == 1.0
    assert found.calls[0].true.value < 1.0


# the search


def test_a_search_over_true_facts_is_all_true() -> None:
    """Every accepted fact, and every statement of either distribution, is true; both judges give the rule a delta."""
    found = measure_search(models(), library(), corpus().atlas, EXTENT)

    assert (found.rules, found.skipped, found.accepted.wrong, found.accepted.unlisted) == (1, 0, 0, 0)
    assert found.accepted.true.value == 1.0
    for truths in found.by_distribution.values():
        assert truths.facts.true.value == truths.statements.value == 1.0
        assert truths.statements.count > 0
    assert [delta.rule for delta in found.deltas] == ["milk"]
    assert found.by_ranker.mean.value == found.deltas[0].by_ranker


def test_facts_are_judged_by_the_key() -> None:
    """A value that the key's line lacks is wrong; a key without a line cannot be judged; neither counts as true."""
    facts = [
        FactRecord("is_made_from_milk_of", arguments, ("Cheese", "Animal"), Source.MODEL)
        for arguments in (("feta", "goat"), ("feta", "cow"), ("gouda", "cow"))
    ]
    facts.append(FactRecord("of_another_model", ("feta",), ("Cheese",), Source.MODEL))

    found = truth(facts, corpus().atlas)

    assert (found.true.value, found.true.count, found.wrong, found.unlisted) == (1 / 3, 3, 1, 1)


# the claims outside the atlas


def test_outside_facts_are_about_entities_outside_the_atlas() -> None:
    """The entity that each fact is about, its key, stands nowhere in the atlas; the predicate does, and nothing is twice."""
    atlas = load_atlas()
    entities = {entity.casefold() for data_type in atlas.types for entity in atlas.entities(data_type)}
    facts = outside_facts()

    for fact in facts:
        assert fact.arguments[atlas.relations[fact.predicate].key].casefold() not in entities, fact
    assert len({(fact.predicate, fact.arguments) for fact in facts}) == len(facts)
    assert sum(fact.is_true for fact in facts) >= 60
    assert sum(not fact.is_true for fact in facts) >= 60


def test_unknown_predicates_are_in_no_template() -> None:
    """No free claim can be read as a claim under a predicate of the atlas, and nothing is twice."""
    atlas = load_atlas()
    wording = load_wording(atlas)
    templates = [
        re.compile(
            re.escape(wording.claim(name, ("<1>", "<2>"))).replace("<1>", ".+").replace("<2>", ".+"), re.IGNORECASE
        )
        for name in atlas.relations
    ]
    claims = free_claims()

    for claim in claims:
        assert not any(template.fullmatch(claim.sentence.rstrip(".")) for template in templates), claim
    assert len({claim.sentence for claim in claims}) == len(claims)
    assert sum(claim.is_true for claim in claims) == sum(not claim.is_true for claim in claims) > 0


def test_outside_facts_are_asked_in_their_templates() -> None:
    """A critic that believes exactly the true ones separates them fully."""
    atlas = load_atlas()
    own = Corpus(atlas, load_wording(atlas))
    facts = outside_facts()
    believed = {own.wording.claim(fact.predicate, fact.arguments).casefold() for fact in facts if fact.is_true}

    class Believer(AtlasModel):
        def _belief(self, claim: str) -> float:
            return 1.0 if claim in believed else 0.0

    found = measure_outside(Believer(own.atlas, own.wording), own, facts)

    assert (found.auc.value, found.true_accepted.value, found.false_accepted.value) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("line", ["maybe\tp\ta\tb", "true\tp\ta", "true\tp\ta\t ", "\ufeff"])
def test_a_malformed_claim_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    """The error tells file, line and form."""
    path = tmp_path / "facts.tsv"
    path.write_text(f"# comment\ntrue\tp\ta\tb\n{line}\n", encoding="utf-8")

    with pytest.raises(HapaxError, match=r"facts\.tsv:3: not true or false and then 3 cells"):
        outside_facts(path)
