"""Tests of the audit of direction and consistency of entailment scorers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import hypothesis.strategies as st
import pytest
from cli_fixture import invoke
from hypothesis import given

import hapax
from hapax.evaluation.entailment.consistency import ConsistencySetting, ContradictionKind, check_answers, consistency
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple
from hapax.evaluation.entailment.perturbations import chain_completions
from hapax.evaluation.entailment.scorers import VisibleSides

PREDICATES = ("murdered", "killed", "harmed", "is near", "met", "saw")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bootstrap's resamples: the planted effects are far larger than its noise."""
    monkeypatch.setattr("hapax.evaluation.entailment.metrics.RESAMPLES", 100)


@dataclass(frozen=True)
class Scripted:
    """Scores a pair by a function of its sentences."""

    judge: Callable[[EntailmentPair], float]
    name: str = "scripted"
    sees: VisibleSides = VisibleSides.BOTH

    def scores(self, pairs: Sequence[EntailmentPair]) -> list[float]:
        return [self.judge(pair) for pair in pairs]


def pair(premise: str, hypothesis: str, entailed: bool, who: str = "ann", whom: str = "bob") -> EntailmentPair:
    return EntailmentPair(Triple(who, premise, whom), Triple(who, hypothesis, whom), entailed)


def affirming(*affirmed: tuple[str, str]) -> Scripted:
    return Scripted(lambda pair: float((pair.premise.predicate, pair.hypothesis.predicate) in affirmed))


def at_half(completed: int = 200) -> ConsistencySetting:
    return ConsistencySetting(0.5, completed)


def couple(special: str, general: str, name: str = "ann") -> list[EntailmentPair]:
    return [pair(special, general, True, name), pair(general, special, False, name)]


def test_couples_are_right_both_neither_or_wrong() -> None:
    """Each couple of a true pair and its false converse is counted by which of the two is affirmed."""
    pairs = [*couple("a", "b"), *couple("c", "d"), *couple("e", "f"), *couple("g", "h"), *couple("a", "b")]
    scorer = affirming(("a", "b"), ("c", "d"), ("d", "c"), ("h", "g"))

    figures = consistency(scorer, pairs, at_half(0)).figures

    outcomes = [figures.right, figures.both, figures.neither, figures.wrong, figures.direction]
    assert [outcome.value for outcome in outcomes] == [0.25, 0.25, 0.25, 0.25, 0.5]
    assert figures.right.count == 4


def test_a_direction_that_the_hypothesis_alone_decides_is_calibrated_away() -> None:
    """A score that only grows with the hypothesis says nothing once that of the hypothesis alone is taken from it."""
    scorer = Scripted(lambda pair: {"killed": 0.9, "murdered": 0.2}[pair.hypothesis.predicate])

    figures = consistency(scorer, couple("murdered", "killed"), at_half(0)).figures

    assert (figures.direction.value, figures.calibrated.value) == (1.0, 0.5)


def test_paraphrases_are_alike_both_ways() -> None:
    """Two true pairs that are each other's converse should be affirmed both, or denied both."""
    pairs = [pair("a", "b", True), pair("b", "a", True), pair("c", "d", True), pair("d", "c", True)]

    figures = consistency(affirming(("a", "b"), ("b", "a"), ("c", "d")), pairs, at_half(0)).figures

    assert (figures.symmetry.value, figures.symmetry.count) == (0.5, 2)


def test_a_denied_pair_that_follows_is_told_with_the_smallest_chain() -> None:
    """Of two chains of affirmed pairs to a denied one, the shorter is the contradictory set."""
    steps = [("murdered", "killed"), ("killed", "harmed"), ("harmed", "saw"), ("killed", "saw")]
    pairs = [*(pair(*step, True) for step in steps), pair("murdered", "saw", True)]

    audit = consistency(affirming(*steps), pairs, at_half(0))

    (contradiction,) = audit.answers.contradictions
    assert contradiction.kind is ContradictionKind.TRANSITIVITY
    assert str(contradiction) == (
        "affirmed: ann murdered bob => ann killed bob; ann killed bob => ann saw bob; "
        "denied: ann murdered bob => ann saw bob"
    )
    assert audit.answers.chains == 2  # the other one, from killed to saw, is affirmed


def test_a_paraphrase_that_behaves_otherwise_is_a_kind_of_its_own() -> None:
    """If P and Q are affirmed both ways, what Q entails is to follow from P."""
    steps = [("killed", "slew"), ("slew", "killed"), ("slew", "harmed")]
    pairs = [*(pair(*step, True) for step in steps), pair("killed", "harmed", True)]

    audit = consistency(affirming(*steps), pairs, at_half(0))

    assert [contradiction.kind for contradiction in audit.answers.contradictions] == [ContradictionKind.PARAPHRASE]


def test_chains_over_other_arguments_are_completed() -> None:
    """Pairs P => Q and Q => R with other arguments are brought to the same ones, and their end is asked about."""
    pairs = [pair("murdered", "killed", True), pair("killed", "harmed", True, "eve", "joe")]
    scorer = affirming(("murdered", "killed"), ("killed", "harmed"))

    without, completed = consistency(scorer, pairs, at_half(0)), consistency(scorer, pairs, at_half())

    assert without.answers.contradictions == ()
    (contradiction,) = completed.answers.contradictions
    assert contradiction.denied == ("ann murdered bob", "ann harmed bob")


def test_contrary_hypotheses_cannot_both_follow() -> None:
    """Hypotheses that begin with an auxiliary are negated; a premise that entails both is a contradiction."""
    everything = Scripted(lambda _: 1.0)

    (contradiction,) = consistency(everything, [pair("met", "is near", True)], at_half()).answers.contradictions

    assert contradiction.kind is ContradictionKind.NEGATION
    assert contradiction.affirmed == (("ann met bob", "ann is near bob"), ("ann met bob", "ann is not near bob"))


@given(st.dictionaries(st.sampled_from(PREDICATES), st.integers(0, 3), min_size=2), st.integers(0, 10))
def test_a_scorer_that_follows_an_order_never_contradicts_itself(ranks: dict[str, int], seed: int) -> None:
    """Affirming that the lower in an order entails the higher is transitive, so no chain is contradicted."""
    draw = random.Random(seed)
    pairs = [
        pair(*draw.sample(sorted(ranks), 2), draw.random() < 0.5, name) for name in ("ann", "eve") for _ in range(8)
    ]

    def judge(asked: EntailmentPair) -> bool:
        return ranks[asked.premise.predicate] <= ranks[asked.hypothesis.predicate]

    for steps in chain_completions(pairs, 20, seed):
        pairs += steps
    assert check_answers(pairs, [judge(asked) for asked in pairs]).contradictions == ()


def test_a_lead_is_promised_where_directions_are_right() -> None:
    """A scorer whose directions are right gets a lead; one at chance gets none, and the reason."""
    draw = random.Random(0)
    pairs = [side for number in range(300) for side in couple(f"a{number}", f"b{number}")]
    truths = {entailment.key: entailment.entailed for entailment in pairs}
    knowing = Scripted(lambda asked: 0.5 * truths.get(asked.key, False) + 0.6 * draw.random(), "knowing")
    guessing = Scripted(lambda _: draw.random(), "guessing")

    sure, chance = (consistency(scorer, pairs, at_half(0)).lead for scorer in (knowing, guessing))

    assert sure.threshold is not None
    assert sure.bound <= 0.05
    assert chance.threshold is None
    assert chance.reason


def test_audited_pairs_become_entailments_and_a_margin(tmp_path: Path) -> None:
    """`consistency --store` keeps probabilities for `query --entail`, and `check --db` takes the lead for its margin."""
    draw, lines = random.Random(1), []
    for number in range(200):
        for premise, hypothesis, truth in (("murdered", "killed", 1), ("killed", "murdered", 0)):
            triples = {"premise": f"Ann,{premise},Bob {number}", "hypothesis": f"Ann,{hypothesis},Bob {number}"}
            lines.append(json.dumps({**triples, "preds": [0.3 * draw.random() + 0.6 * truth], "gold": bool(truth)}))
    answers, database = tmp_path / "answers.json", str(tmp_path / "kb.db")
    answers.write_text("\n".join(lines), encoding="utf-8")

    result = invoke(
        *("evaluate", "entailment", "consistency", str(answers), "--scorer", f"scores:{answers}", "--store"),
        *("--db", database, "--json"),
    )

    assert result.exit_code == 0, result.output
    assert "1 entailment with a probability" in result.stderr
    (figures,) = json.loads(result.stdout)
    lead = figures["lead"]["threshold"]
    with hapax.KnowledgeBase(database) as kb:
        (fact,) = kb.facts("entails")
        assert fact.arguments[:2] == ("murdered(Thing A, Thing B)", "killed(Thing A, Thing B)")
        assert [run.summary for run in kb.runs()] == [{"margin": lead}]
    asked = invoke("query", "killed(ann, Who)", "--entail", "0.9", "--assume", "murdered(ann, bob)", "--db", database)
    assert "bob" in asked.stdout, asked.output


def test_the_margin_of_the_last_audit_decides_what_is_reversed(tmp_path: Path) -> None:
    """A way back that is weaker by less than the audited lead makes no reversed rule; an option goes before it."""
    rules = tmp_path / "r.rules"
    rules.write_text(
        "given went_to(Person, Shop)\ngiven wants(Person, Thing)\n"
        "went_to(Person X, Shop A) & wants(Person X, Thing B) -> shopped_in(Person X, Shop A)\n",
        encoding="utf-8",
    )
    edges = tmp_path / "edges.tsv"
    edges.write_text(
        "shopped_in(Person X, Shop A)\twent_to(Person X, Shop A)\t0.9\n"
        "went_to(Person X, Shop A)\tshopped_in(Person X, Shop A)\t0.6\n",
        encoding="utf-8",
    )
    database = str(tmp_path / "kb.db")
    assert invoke("evaluate", "entailment", "facts", str(edges), "--db", database).exit_code == 0

    def codes(*more: str) -> set[str]:
        result = invoke("check", str(rules), "--db", database, "--json", *more)
        return {fault["code"] for fault in json.loads(result.stdout)}

    assert "HPX413" in codes()
    with hapax.KnowledgeBase(database) as kb:
        audit = consistency(Scripted(lambda _: 0.5), couple("a", "b"), at_half(0))
        hapax.store_audited_entailments(kb, audit)  # no lead is sure by one couple
    assert "HPX413" not in codes()
    assert "HPX413" in codes("--entailment-margin", "0.2")


def test_probabilities_of_several_scorers_are_not_stored(tmp_path: Path) -> None:
    """`--store` needs a single scorer, and says so before anything is scored."""
    pairs = tmp_path / "pairs.txt"
    pairs.write_text("a,b,c\ta,d,c\tTrue\n", encoding="utf-8")

    result = invoke(
        *("evaluate", "entailment", "consistency", str(pairs), "--store"),
        *("--scorer", "random", "--scorer", "prior", "--db", str(tmp_path / "kb.db")),
    )

    assert result.exit_code == 2
    assert "single scorer" in result.stderr
