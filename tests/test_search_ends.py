"""The ends of a search: head and long tail by a measure, without a common statement, from scores that are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

import hapax
from hapax.engine.cluster.routing import routed
from hapax.engine.search.ends import Division, EndSize, pair_pool
from hapax.engine.search.job import SearchJob
from hapax.engine.search.plan import plan_run
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.measures import Measure, TextMeasures, chosen_measure, measures_of
from hapax.llm_oracle.protocols import LIKELIHOOD, LogLikelihood, ModelIdentity, Models, SpannedText
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle is_sung_in(Song, Land): "[1] is sung in [2]" / "[1] is not sung in [2]" / "is [1] sung in [2]?"
oracle lies_in(Town, Land): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"
oracle may_sing(Person, Song): "[1] may sing [2]" / "[1] may not sing [2]" / "may [1] sing [2]?"
given hears(Person, Song): "[1] hears [2]" / "[1] does not hear [2]" / "does [1] hear [2]?"
@name song
hears(Person X, Song A) & is_sung_in(Song A, Land B) -> may_sing(Person X, Song A)
"""
SONGS = [f"song{letter * 3}" for letter in "abcdefghijklmnopqrst"]


class ByAlphabet:
    """A ranker to which a name is rarer the later its last letter comes; a token is a word."""

    identity = ModelIdentity("alphabet")

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        self.asked += texts
        return [LogLikelihood(-float(len(text)), 1) for text in texts]

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        self.asked += texts
        return [self._scored(text) for text in texts]

    @staticmethod
    def _scored(text: SpannedText) -> LogLikelihood:
        places, start = [], 0
        for word in text.text.split(" "):
            places.append((start, start + len(word)))
            start += len(word) + 1
        scores = [-float(ord(text.text[start:end].strip(".\n")[-1])) for start, end in places]
        return LogLikelihood.of_tokens(scores, places, text.spans)


class Plain:
    """A ranker that scores whole texts alone."""

    identity = ModelIdentity("plain")

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-float(len(text)), 1) for text in texts]


def models(ranker: Any, lands: Mapping[str, Sequence[str]] | None = None) -> Models:
    """Models that know the songs, and by song the lands where it is sung."""
    sung_in = lands or {song: ["Mali", "Fiji"] for song in SONGS}
    script = {
        "generate": {"[A] is sung in [B]": SONGS, **{f"{song} is sung in [B]": sung_in[song] for song in SONGS}},
        "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []},
    }
    answering = ScriptedModel(script)
    return Models(answering, answering, ranker, Plain())


def run(ranker: Any, kb: KnowledgeBase | None = None, **settings: Any) -> SearchReport:
    library = hapax.parse_rules(RULES)
    chosen = SearchSettings(plan="premise-first", **settings)
    return search(SearchJob(library, library.rules, kb or KnowledgeBase(), models(ranker), chosen))


def end(report: SearchReport, distribution: Distribution) -> set[str]:
    return {statement.text for statement in report.statements if statement.distribution is distribution}


def test_the_ends_are_thirds_by_the_names() -> None:
    """The songs with the latest letters are the long tail, the earliest the head, and the middle third is at neither.

    Each text comes from two substitutions, by two countries that it does not name, and is at one end alone.
    """
    report = run(ByAlphabet())
    head, tail = end(report, Distribution.HEAD), end(report, Distribution.LONG_TAIL)

    assert head
    assert tail
    assert not head & tail
    assert max(song for song in SONGS if any(song in text for text in head)) < min(
        song for song in SONGS if any(song in text for text in tail)
    )
    assert report.rules[0].pool > len(head) + len(tail)
    assert report.summary()["statements"]["in_both"] == 0


def test_another_measure_asks_the_ranker_nothing() -> None:
    """All measures of sentences and names are stored with the first search, so that the next one asks nothing."""
    ranker, kb = ByAlphabet(), KnowledgeBase()
    run(ranker, kb)
    before = len(ranker.asked)
    measures = set(Measure) - {Measure.PAIR}
    others = [run(ranker, kb, measure=measure) for measure in measures]

    assert before
    assert len(ranker.asked) == before
    assert all(report.statements for report in others)
    values = dict(next(iter(kb.statements())).substitution)
    sentence = f"{str(values['A']).capitalize()} is sung in {values['B']}."
    stored = {measure for measure in Measure if kb.assessments([sentence], measure.value, "alphabet")}
    assert stored == measures


def test_pairs_of_names_are_scored_only_for_a_search_that_ranks_by_them() -> None:
    """Such a search has more texts scored than any other, and stores all measures, so that a later one asks nothing."""
    by_names, by_pairs, kb = ByAlphabet(), ByAlphabet(), KnowledgeBase()
    run(by_names)
    report = run(by_pairs, kb, measure=Measure.PAIR)
    before = len(by_pairs.asked)
    run(by_pairs, kb)

    assert report.statements
    assert len(by_pairs.asked) == before
    assert any(" has to do with " in asked.text for asked in by_pairs.asked)
    assert not any(" has to do with " in asked.text for asked in by_names.asked)


def test_overlapping_ends_are_ranked_by_the_wanted_measure() -> None:
    """By the names the head has the songs with early letters; by LINK's mean, which is equal here, chance decides."""
    by_names = run(ByAlphabet(), ends="overlapping", keep_share=0.25, measure=Measure.PRIOR)
    by_default = run(ByAlphabet(), ends="overlapping", keep_share=0.25)
    by_mean = run(ByAlphabet(), ends="overlapping", keep_share=0.25, measure=Measure.PAPER)
    head, tail = end(by_names, Distribution.HEAD), end(by_names, Distribution.LONG_TAIL)

    assert head
    assert max(song for song in SONGS if any(song in text for text in head)) < min(
        song for song in SONGS if any(song in text for text in tail)
    )
    assert end(by_default, Distribution.HEAD) == head
    assert end(by_mean, Distribution.HEAD) != head


@pytest.mark.parametrize(
    ("ranker", "measure"),
    [
        (ByAlphabet, Measure.PRIOR),
        (ByAlphabet, Measure.SPAN),
        (ByAlphabet, Measure.PAIR),
        (Plain, Measure.PAPER),
    ],
)
def test_the_forecast_of_texts_is_what_the_ranker_scores(ranker: type, measure: Measure) -> None:
    """Where all answers are known, sentences, names and pairs are counted: every song goes with every land here, so that a
    name beside another statement's is a statement's own pair."""
    kb, library = KnowledgeBase(), hapax.parse_rules(RULES)
    run(Plain(), kb, likelihood="none")
    wanted = SearchSettings(plan="premise-first", measure=measure)
    expected = plan_run(library, library.rules, kb, models(ranker()), wanted).roles[LIKELIHOOD].calls
    scored = run(ranker(), kb, measure=measure).statistics[LIKELIHOOD].calls
    again = plan_run(library, library.rules, kb, models(ranker()), wanted).roles[LIKELIHOOD].calls

    assert expected.expected == scored
    assert scored <= expected.most
    assert again.expected == 0


def test_a_search_for_the_long_tail_alone_gives_the_same_long_tail() -> None:
    """The pool does not depend on the distributions that are wanted."""
    both = run(ByAlphabet(), beam=4)
    alone = run(ByAlphabet(), beam=4, distributions=(Distribution.LONG_TAIL,))

    assert end(alone, Distribution.LONG_TAIL) == end(both, Distribution.LONG_TAIL)
    assert not end(alone, Distribution.HEAD)


def test_statements_that_one_value_would_fill_are_counted() -> None:
    """Ten songs are sung in one land: two of the six at the head stay, as a quarter, and the report has the others."""
    lands = {song: ["Maland" if place < 10 else f"{song[-1].upper()}land"] for place, song in enumerate(SONGS)}
    library = hapax.parse_rules(RULES)
    job = SearchJob(
        library, library.rules, KnowledgeBase(), models(ByAlphabet(), lands), SearchSettings(plan="premise-first")
    )
    (rule,) = search(job).rules

    assert (rule.pool, rule.crowded) == (20, 4)


def test_a_reason_says_where_chance_decided() -> None:
    """Of equal scores some are kept by chance, and the others say so; scores that differ from the last kept do not."""
    said = set()
    for ranker in (Plain(), ByAlphabet()):
        kb = KnowledgeBase()
        run(ranker, kb, ends="overlapping", keep_share=0.25)
        left = [item for item in kb.decisions(gate="likelihood") if not item.accepted]
        said |= {(item.score == item.threshold, "; chance chose among equal scores" in item.reason) for item in left}

    assert said == {(True, True), (False, False)}


def test_matched_pairs_are_ids_of_stored_statements() -> None:
    """A pair of the report has a head and a long-tail statement that differ in one value."""
    kb = KnowledgeBase()
    report = run(ByAlphabet(), kb)
    by_id = {(item.distribution, item.id): dict(item.substitution) for item in kb.statements()}
    pairs = report.rules[0].matched

    assert pairs
    for pair in pairs:
        head = by_id[Distribution.HEAD, pair.head]
        tail = by_id[Distribution.LONG_TAIL, pair.long_tail]
        assert sum(head[name] != tail[name] for name in head) == 1


def test_a_ranker_of_whole_texts_ranks_by_the_papers_measure() -> None:
    """Without a wanted measure such a ranker is used as in LINK; with one it is refused before anything is asked."""
    assert chosen_measure(Plain(), None) is Measure.PAPER
    assert chosen_measure(ByAlphabet(), None) is Measure.PRIOR
    assert run(Plain()).statements
    kb = KnowledgeBase()
    with pytest.raises(HapaxError, match=r"plain does not give the measure span\. Its measures are paper, total, slor"):
        run(Plain(), kb, measure="span")
    assert not list(kb.runs())


def test_the_ways_of_link_keep_their_measure_and_ends() -> None:
    """`compat` has 75 % at each end by the mean per token, and takes no other measure or ends."""
    linked = SearchSettings(compat="paper")
    assert (linked.share, linked.has_disjoint_ends, linked.wanted_measure) == (0.75, False, Measure.PAPER)
    assert not {"ends", "measure"} & set(linked.to_json())
    assert SearchSettings(ends="overlapping", measure="paper").to_json()["keep_share"] == 0.75
    with pytest.raises(HapaxError, match="LINK's own measure"):
        SearchSettings(compat="released", measure="prior")
    with pytest.raises(HapaxError, match="LINK's own ends"):
        SearchSettings(compat="paper", ends="disjoint")
    with pytest.raises(HapaxError, match=r"measure is 'rare'\. Choose paper or total"):
        SearchSettings(measure="rare")
    with pytest.raises(HapaxError, match=r"at most 0\.5, or ends to overlapping"):
        SearchSettings(keep_share=0.75)


def test_the_front_door_takes_a_measure() -> None:
    """`hapax.search` takes the measure of its settings, and the run says by which it ranked."""
    kb = KnowledgeBase()
    hapax.search(hapax.parse_rules(RULES), kb, models(ByAlphabet()), SearchSettings(measure="span"))

    (stored,) = kb.runs()
    assert (stored.settings["measure"], stored.settings["ends"]) == ("span", "disjoint")


def test_a_small_pool_is_told() -> None:
    """Three statements give one to each end and count as few; a single one is long tail."""
    scores = {"a": 3.0, "b": 2.0, "c": 1.0}
    made = Division.of(scores, {text: (text,) for text in scores}, {}, lambda _: 0.5, EndSize())

    assert (made.ends.head, made.ends.long_tail, made.ends.is_small) == (("a",), ("c",), True)
    single = Division.of({"a": 1.0}, {"a": ("a",)}, {}, lambda _: 0.5, EndSize())
    assert single.ends.long_tail == ("a",)


def test_pair_rarity_is_asked_of_common_names() -> None:
    """By `pair`, only statements with the commoner half of the names are divided."""
    priors = {"oslo": -3.0, "paris": -1.0, "apia": -9.0, "rome": -2.0}
    measures = {name: TextMeasures({Measure.PRIOR: prior, Measure.PAIR: 0.0}, 1) for name, prior in priors.items()}

    assert pair_pool(measures) == ["paris", "rome"]
    assert pair_pool({"x": TextMeasures({Measure.PAIR: 1.0}, 1)}) == ["x"]
    made = Division.of(
        {"oslo": 0.0, "paris": 1.0, "apia": 5.0, "rome": -1.0},
        {name: (name,) for name in priors},
        measures,
        lambda _: 0.5,
        EndSize(by_pairs=True),
    )
    assert (made.ends.head, made.ends.long_tail, made.rarer_names) == (("paris",), ("rome",), 2)


class Unlocated(ByAlphabet):
    """A ranker that does not tell where in a text its tokens are, as with a slow tokenizer."""

    locates_tokens = False


@pytest.mark.parametrize("ranker", [ByAlphabet(), FrequencyLikelihood(), Unlocated(), Plain()])
def test_routed_models_have_the_measures_of_the_opened_ones(ranker: Any) -> None:
    """A search on a cluster ranks by what the workers' model gives, and by nothing else."""

    class Owners:
        count = 1

        def begin(self, *_: Any) -> Any:
            raise AssertionError

    opened = replace(models(ByAlphabet()), likelihood=ranker)

    assert measures_of(routed(opened, Owners()).likelihood) == measures_of(ranker)
