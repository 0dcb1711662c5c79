"""Thresholds, bounds, draws and weighed votes on fixed samples are in `tests/golden/`, to twelve digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple
from itertools import product
from random import Random
from typing import get_args

import pytest
from golden_fixture import compared

from hapax.engine.certificates import (
    JudgedScore,
    LabelDraw,
    Promise,
    PromiseMethod,
    ThresholdChoice,
    anytime_tail,
    binomial_tail,
    choose_by_group,
    choose_threshold,
    least_labels,
    score_shift,
    upper_bound,
)
from hapax.engine.judgements import judgements
from hapax.engine.judging_draw import NEVER, DrawnLabels, cut_of, draw_weights, is_given_out, random_number
from hapax.engine.search.certified_groups import (
    ScoredValue,
    certificates_of_groups,
    choose_for_groups,
    describe,
    end_lines,
    ends_of,
    refuse_without_promise,
)
from hapax.engine.soundness import rule_soundness
from hapax.engine.voter_errors import Vote, weigh, weigh_shared
from hapax.grammar.errors import HapaxError
from hapax.kb.records import DrawnItem, JudgingDraw, VoteRecord
from hapax.kb.store import KnowledgeBase

PROMISES = [
    Promise(precision, confidence, method)
    for (precision, confidence), method in product([(0.95, 0.9), (0.8, 0.8), (0.6, 0.5)], get_args(PromiseMethod))
]


def rounded(*numbers: object) -> str:
    return ", ".join(f"{number:.12g}" if isinstance(number, float) else str(number) for number in numbers)


def sample(seed: int, count: int, blocks: int = 0) -> tuple[list[JudgedScore], list[float]]:
    """Labelled scores, true the more often the higher they are, and a pool of others."""
    rng = Random(seed)
    scores = [round(rng.random(), 2) for _ in range(count)]
    judged = [
        JudgedScore(
            score,
            rng.random() < 0.5 + score / 2,
            f"q{k % blocks}" if blocks else "",
            rng.random(),
            9 if blocks else None,
        )
        for k, score in enumerate(scores)
    ]
    return judged, [round(rng.random(), 2) for _ in range(3 * count)]


def bounds() -> Iterator[str]:
    for tail in (binomial_tail, anytime_tail):
        for false, count, share in product((0, 1, 3, 10), (1, 10, 45, 200), (0.05, 0.2, 0.5)):
            yield f"{tail.__name__} {false} of {count}, {share}: {rounded(tail(false, count, share))}"
            if false <= count:
                yield f"  {rounded(upper_bound(false, count, 0.9, tail), upper_bound(false, count, 0.5, tail))}"
        for false, risk, error in product((0, 1, 5), (0.05, 0.2), (0.1, 0.01)):
            yield f"least {false}, {risk}, {error}: {least_labels(false, risk, error, tail)}"


def choices() -> Iterator[str]:
    def told(title: str, choice: ThresholdChoice) -> str:
        return f"{title}: {rounded(*astuple(choice))}"

    for promise in PROMISES:
        yield f"# {promise}"
        yield told("nothing", choose_threshold([], [0.5], promise))
        yield told("no pool", choose_threshold([JudgedScore(0.5, True)], [], promise, 3))
        for seed, count in ((1, 5), (2, 40), (3, 150), (4, 500)):
            judged, pool = sample(seed, count)
            plain = [JudgedScore(item.score, item.is_true) for item in judged]
            yield told(f"{count}", choose_threshold(plain, pool, promise))
            yield told(f"{count}, three groups", choose_threshold(plain, pool, promise, 3))
            weights = [1.0 if score > 0.7 else 0.4 for score in pool]
            yield told(f"{count}, drawn", choose_threshold(judged, pool, promise, 1, LabelDraw(0.8, weights)))
            by_question, others = sample(seed, count, 7)
            yield told(f"{count}, questions", choose_threshold(by_question, others, promise))
            true = [JudgedScore(item.score, True, item.block) for item in by_question]
            yield told(f"{count}, all true", choose_threshold(true, others, promise))
            false = [JudgedScore(item.score, False, item.block) for item in by_question]
            yield told(f"{count}, all false", choose_threshold(false, others, promise))
        groups = choose_by_group({"a": plain, "b": plain[:9]}, {"a": pool, "b": pool, "c": pool[:4], "d": []}, promise)
        yield from (told(f"group {name}", choice) for name, choice in groups.items())
    yield rounded(score_shift([1.0, 2.0], [1.5, 2.0, 0.0]), score_shift([], [1.0]), score_shift([1.0], []))


def test_promises_are_kept_by_these_thresholds() -> None:
    """Tails, bounds, least labels and thresholds by every method are those read over."""
    compared("promises/thresholds", "\n".join([*bounds(), *choices()]) + "\n")


def test_groups_get_these_certificates() -> None:
    """Counts by end, reasons, warnings and certificates of groups are those read over."""
    lines = []
    for promise, count in product(PROMISES, (4, 60)):
        judged, pool = sample(count, count)
        labelled = [
            ScoredValue(
                f"l{k}",
                item.score,
                item.is_true,
                "",
                (("head",), ("long_tail",), ("head", "long_tail"))[k % 3],
                item.draw,
                0.5,
            )
            for k, item in enumerate(judged)
        ]
        values = [*labelled, *(ScoredValue(f"p{k}", score, None, "", ("head",)) for k, score in enumerate(pool))]
        groups = {"all": values, "few": values[:3] + values[-3:], "unlabelled": values[-5:]}
        for reach in (None, 0.9):
            found = choose_for_groups(groups, promise, reach)
            lines.append(f"# {promise}, {count}, {reach}")
            for record in certificates_of_groups(groups, found, promise, lambda group: {"critic": group}):
                lines.append(
                    f"{record.fact_group}: {rounded(record.threshold, record.labels, record.false, record.bound)}"
                )
                lines.append(
                    f"  {rounded(record.accepted, record.pool, record.shift)}; {record.sample}; {record.reason}"
                )
                lines.append(f"  {record.ends}; {end_lines(record.ends or {})}")
            lines += [f"  {name}: {ends_of(groups[name], choice, promise)}" for name, choice in found.items()]
            try:
                refuse_without_promise({"few": found["few"], "unlabelled": found["unlabelled"]}, promise, "Label more.")
                lines.append("promised")
            except HapaxError as refusal:
                lines.append(str(refusal))
    lines += [describe("a reason", number) for number in (None, 0, 1, 2, 1500)]

    compared("promises/group_certificates", "\n".join(lines) + "\n")


def test_votes_are_drawn_and_weighed_alike() -> None:
    """Cuts, weights and random numbers of draws, and the weights of voters, are those read over."""
    lines = []
    for name, chances in (
        ("even", [k / 20 for k in range(21)]), ("sure", [0.99] * 50 + [0.5] * 10), ("single", [0.4]), ("low", [0.01, 0.02] * 15),
        ("rising", [k / 200 for k in range(1, 42)]), ("few", [0.1, 0.3, 0.2]),
    ):  # fmt: skip
        for risk in (0.05, 0.2, 0.5):
            cut = cut_of(chances, risk)
            weights, low = draw_weights(chances, cut)
            lines.append(f"{name}, {risk}: {rounded(cut, low)}; {rounded(*weights)}")
            lines.append(f"  {rounded(*draw_weights(chances, cut, 0.3)[0])}")
    lines += [rounded(random_number("salt", item), random_number("", item)) for item in ("a", "b", "")]
    for reach, weight in product((0.0, 0.5, 1.0), (0.0, 0.5, 1.0)):
        draw = JudgingDraw("predicates", "s", {}, reach, "2026")
        lines.append(
            f"{reach}, {weight}: {[is_given_out(draw, DrawnItem('s', 'i', 0.5, weight, number)) for number in (0.0, 0.25, 0.5)]}"
        )
    rng = Random(5)
    votes = [
        Vote(f"i{k}", voter, rng.random() < (0.9 if k % 3 else 0.2))
        for k in range(12)
        for voter in ("ann", "bob", "cid")
    ]
    votes += [Vote(f"i{k}", "dan", k % 3 == 0) for k in range(12)]
    for chosen in (votes, votes[:3], votes[:1], [vote for vote in votes if vote.voter != "dan"], votes[:12]):
        weighed = weigh(chosen)
        lines.append(rounded(weighed.share, *weighed.probabilities.values()))
        for voter, rates in weighed.voters.items():
            lines.append(f"  {voter}: {rounded(*astuple(rates), rates.log_odds(True), rates.log_odds(False))}")
        lines.append(f"  shared: {weigh_shared(chosen) is not None}")
    ballots = [
        VoteRecord(f"s{k}", "soundness", voter, rng.choice(["yes", "no", "unsure"]))
        for k in range(9)
        for voter in "abc"[: k % 4]
    ]
    verdicts = {item: judgement.truth or "" for item, judgement in judgements(ballots).items()}
    lines.append(str(verdicts))
    for rule, soundness in rule_soundness({f"s{k}": f"r{k % 2}" for k in range(9)}, verdicts).items():
        lines.append(f"{rule}: {soundness}; {[soundness.is_below(bar) for bar in (0.0, 0.3, 0.5, 0.9, 1.0)]}")

    compared("promises/draws_and_votes", "\n".join(lines) + "\n")


def test_of_many_groups_without_a_promise_ten_are_told() -> None:
    """The refusal names the first ten groups with their reasons, then the remedy."""
    found = {f"g{k:02}": choose_threshold([], [0.5], Promise()) for k in range(11)}

    with pytest.raises(HapaxError) as refused:
        refuse_without_promise(found, Promise(), "Label more.")
    first, *reasons, remedy = str(refused.value).splitlines()
    assert first.startswith("Nothing can be promised: that at least 0.95")
    assert [reason.partition(":")[0] for reason in reasons] == [f"g{k:02}" for k in range(10)]
    assert remedy == "Label more."


def test_the_draw_of_a_knowledge_base_tells_which_labels_are_a_sample(fresh_kb: KnowledgeBase) -> None:
    """Items that were given out have their numbers and weights; by another critic's draw they are never in the sample."""
    assert DrawnLabels.stored(fresh_kb, "predicates", "m") == DrawnLabels()
    assert DrawnLabels().of("a") == (None, 1.0)
    draw = JudgingDraw("predicates", "salt", {"critic": "m"}, 0.5, "2026-01-01")
    items = [
        DrawnItem("salt", "out", 0.9, 1.0, 0.3),
        DrawnItem("salt", "kept", 0.9, 1.0, 0.5),
        DrawnItem("salt", "light", 0.2, 0.4, 0.1),
        DrawnItem("salt", "light, kept", 0.2, 0.4, 0.2),
    ]
    fresh_kb.set_judging_draw(draw, items)
    own, other = (DrawnLabels.stored(fresh_kb, "predicates", critic) for critic in ("m", "n"))
    names = [*(item.item_id for item in items), "no item"]

    assert [own.of(name) for name in names] == [(0.3, 1.0), (None, 1.0), (0.1, 0.4), (None, 0.4), (None, 1.0)]
    assert [other.of(name) for name in names] == [(NEVER, 1.0), (None, 1.0), (NEVER, 1.0), (None, 1.0), (None, 1.0)]
    assert DrawnLabels.stored(fresh_kb, "soundness", "m") == DrawnLabels()
