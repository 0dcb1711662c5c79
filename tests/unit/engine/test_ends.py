"""The ends of a ranking."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hapax.engine.search.ranking import Ends, EndSize, MatchedPair, divided, ends, matched_pairs, random_score
from hapax.llm_oracle.measures import Measure, TextMeasures

SCORES = st.dictionaries(st.text(max_size=4), st.sampled_from([-3.0, -2.5, -1.0, 0.0, 4.0]), max_size=40)


def split(scores: dict[str, float], values: dict[str, tuple[object, ...]] | None = None) -> Ends:
    own = {text: (text,) for text in scores}
    return ends(scores, values or own, lambda text: random_score(0, text))


@given(SCORES)
def test_the_ends_are_apart(scores: dict[str, float]) -> None:
    """No statement is at both ends, each end has at most a third, and every head scores above every long tail."""
    made = split(scores)

    assert not set(made.head) & set(made.long_tail)
    assert max(len(made.head), len(made.long_tail)) <= max(1, len(scores) // 3)
    assert all(scores[likely] > scores[rare] for likely in made.head for rare in made.long_tail)


@given(SCORES)
def test_the_order_of_statements_does_not_matter(scores: dict[str, float]) -> None:
    """The ends follow from the set of statements."""
    assert split(dict(reversed(scores.items()))) == split(scores)


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (9, 3), (10, 3)])
def test_a_third_at_each_end(count: int, size: int) -> None:
    """Each end has a third, rounded down; a pair is split, and a single statement is at no end."""
    made = split({str(number): float(number) for number in range(count)})

    assert (len(made.head), len(made.long_tail)) == (size, size)


def test_statements_that_the_ranker_cannot_tell_apart_are_at_no_end() -> None:
    """Where most statements have one score, the ends have the others only."""
    made = split({"rare": -5.0, "common": 5.0, **{f"same {number}": 0.0 for number in range(10)}})

    assert made == Ends(("common",), ("rare",), pool=12)


def test_one_value_does_not_fill_an_end() -> None:
    """A war with forty inventions takes a quarter of an end; the rest of them are told as crowded out."""
    wars = {f"war 1, invention {number}": ("war 1", number) for number in range(40)}
    other = {f"war {number}, wheel {number}": (f"war {number}", f"wheel {number}") for number in range(2, 22)}
    values: dict[str, tuple[object, ...]] = {**wars, **other}
    made = split({text: float(place) for place, text in enumerate(values)}, values)

    assert Counter(values[text][0] for text in made.long_tail) == {"war 1": 5}
    assert len(made.head) == 20
    assert made.crowded == tuple(wars)[5:20]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=12, unique=True))
def test_quotas_on_a_tiny_pool_empty_no_end(rows: list[tuple[int, int]]) -> None:
    """However few statements and values there are, each end keeps its most extreme statement, and what leaves is told."""
    values: dict[str, tuple[object, ...]] = {f"{row[0]}, {row[1]}": row for row in rows}
    made = split({text: float(place) for place, text in enumerate(values)}, values)
    size = max(1, len(rows) // 3)
    order = list(values)

    assert (made.head[0], made.long_tail[0]) == (order[-1], order[0])
    assert len(made.head) + len(made.long_tail) + len(made.crowded) == 2 * size
    for end in (made.head, made.long_tail):
        assert len(end) >= min(2, size)


def test_matched_pairs_differ_in_one_value() -> None:
    """Statements are paired whose other values are equal and whose names have about as many tokens, each once."""
    values: dict[str, tuple[object, ...]] = {
        "h1": ("cake", "Paris"),
        "h2": ("cake", "Rome"),
        "t1": ("cake", "Ouagadougou"),
        "t2": ("pie", "Ouagadougou"),
        "t3": ("cake", "Apia"),
    }
    tokens = {"h1": 2, "h2": 2, "t1": 7, "t2": 7, "t3": 3}

    pairs = matched_pairs(Ends(("h1", "h2"), ("t1", "t2", "t3")), values, tokens)

    assert pairs == [MatchedPair("h1", "t3")]


def test_pair_rarity_is_asked_of_common_names() -> None:
    """By `pair`, only statements with the commoner half of the names are divided."""
    priors = {"oslo": -3.0, "paris": -1.0, "apia": -9.0, "rome": -2.0}
    measures = {name: TextMeasures({Measure.PRIOR: prior, Measure.PAIR: 0.0}, 1) for name, prior in priors.items()}
    scores = {"oslo": 0.0, "paris": 1.0, "apia": 5.0, "rome": -1.0}
    values = {name: (name,) for name in priors}
    made = divided(scores, values, measures, lambda _: 0.5, EndSize(by_pairs=True))

    assert (made.head, made.long_tail, made.pool) == (("paris",), ("rome",), 2)
