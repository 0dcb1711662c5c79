"""Head and long tail of a search: by the wanted measure, without a common statement, from scores that are kept."""

from __future__ import annotations

from typing import Any

import pytest
from search_fixture import rows, scripted, searched, sentences, texts

import hapax

RULES = hapax.parse_rules("""
oracle is_sung_in(Song, Land): "[1] is sung in [2]" / "[1] is not sung in [2]" / "is [1] sung in [2]?"
oracle may_sing(Person, Song): "[1] may sing [2]" / "[1] may not sing [2]" / "may [1] sing [2]?"
given hears(Person, Song): "[1] hears [2]" / "[1] does not hear [2]" / "does [1] hear [2]?"
@name song
hears(Person X, Song A) & is_sung_in(Song A, Land B) -> may_sing(Person X, Song A)
""")
SONGS = [f"song{letter * 3}" for letter in "abcdefghijklmnopqrst"]


class ByAlphabet:
    """A ranker to which a text is less likely the later the song's letter comes; a token is a word."""

    def __init__(self, model: Any) -> None:
        self.identity = type(model.identity)("alphabet")
        self.asked: list[str] = []
        self.likelihood = type(model.log_likelihoods(["a text"])[0])

    def log_likelihoods(self, texts: list[str]) -> list[Any]:
        self.asked += texts
        return [self.likelihood(-float(len(text)), 1) for text in texts]

    def span_log_likelihoods(self, texts: list[Any]) -> list[Any]:
        self.asked += [text.text for text in texts]
        return [self.scored(text) for text in texts]

    def scored(self, text: Any) -> Any:
        places, start = [], 0
        for word in text.text.split(" "):
            places.append((start, start + len(word)))
            start += len(word) + 1
        scores = [-float(ord(text.text[begin:end].strip(".\n")[-1])) for begin, end in places]
        return self.likelihood.of_tokens(scores, places, text.spans)


def models(lands: dict[str, list[str]] | None = None, spans: bool = True) -> hapax.Models:
    """Models that know the songs, and by song the lands where it is sung; `spans`: the ranker scores parts of texts."""
    sung_in = {song: (lands or {}).get(song, ["Mali", "Fiji"]) for song in SONGS}
    lists = {"[A] is sung in [B]": SONGS, **{f"{song} is sung in [B]": sung_in[song] for song in SONGS}}
    every = scripted({"generate": lists, "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []}})
    ranker = ByAlphabet(every.likelihood) if spans else every.likelihood
    return hapax.Models(every.knowledge, every.critic, ranker, every.evaluator)


def search(kb: hapax.KnowledgeBase | None = None, using: hapax.Models | None = None, **settings: Any) -> Any:
    chosen: dict[str, Any] = {"beam": 200, "plan": "premise-first", "values_per_call": 50, **settings}
    return searched(RULES, using or models(), kb, **chosen)


def is_by_names(result: hapax.SearchResult) -> bool:
    """The head's songs come before the long tail's."""
    head, tail = (
        {song for song in SONGS if any(song in text for text in texts(result, end))} for end in ("head", "long_tail")
    )
    return bool(head and tail) and max(head) < min(tail)


def test_the_ends_are_disjoint_and_by_the_names() -> None:
    """The songs with the latest letters are the long tail, the earliest the head, and the middle is at neither."""
    result = search()
    (row,) = rows(result)

    assert is_by_names(result)
    assert row["in_both"] == 0
    assert 2 * len(SONGS) > len(sentences(result)) > 20


def test_another_measure_asks_the_ranker_nothing() -> None:
    """All measures of sentences and names are stored with the first search, and the run says by which it ranked."""
    using, kb = models(), hapax.KnowledgeBase()
    search(kb, using)
    before = len(using.likelihood.asked)
    others = [search(kb, using, measure=measure) for measure in ("paper", "total", "slor", "span")]
    stored = {run.settings.get("measure") for run in kb.runs()}

    assert before
    assert len(using.likelihood.asked) == before
    assert all(len(result.statements) > 0 for result in others)
    assert stored >= {"total", "slor", "span"}


def test_ends_are_ranked_by_the_wanted_measure() -> None:
    """By the names the head has the early letters; by the mean per token, which is equal here, chance decides."""
    options = {"keep_share": 0.25}

    assert is_by_names(search(**options, measure="prior"))
    assert is_by_names(search(**options))
    assert not is_by_names(search(**options, measure="paper"))


def test_a_search_for_the_long_tail_alone_gives_the_same_long_tail() -> None:
    """The statements of an end do not depend on whether the other is wanted."""
    both, alone = search(beam=4), search(beam=4, distributions=(hapax.Distribution.LONG_TAIL,))

    assert sentences(alone) == sentences(alone, "long_tail") == sentences(both, "long_tail")


def test_one_land_does_not_fill_an_end() -> None:
    """Ten songs are sung in one land: it takes two of six places at the head, and the end has others besides."""
    lands = {song: ["Maland" if place < 10 else f"{song[-1].upper()}land"] for place, song in enumerate(SONGS)}
    result = search(None, models(lands))
    head = [item.values["B"] for item in result.statements if item.distribution == "head"]

    assert (len(head), head.count("Maland")) == (2, 2)
    assert result.report.rules[0].crowded == 4


def test_a_ranker_of_whole_texts_ranks_by_the_papers_measure() -> None:
    """Without a wanted measure such a ranker is used as in LINK; with one it is refused before anything is asked."""
    kb, plain = hapax.KnowledgeBase(), models(spans=False)
    with pytest.raises(hapax.HapaxError, match=r"span.*paper, total"):
        search(kb, plain, measure="span")

    assert not list(kb.runs())
    assert len(search(None, plain).statements) > 0
