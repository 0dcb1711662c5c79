"""Case studies: two methods' replies to the same pair side by side, failures tagged by the paper's two kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from evaluation.winograd.abstraction import Concepts, read_concepts
from evaluation.winograd.data import Pair, pairs_of, read_file
from evaluation.winograd.prompts import Method
from evaluation.winograd.runs import StoredRun, stored_runs
from evaluation.winograd.scores import Answer
from grammar.errors import HapaxError
from kb.store import KnowledgeBase

STEM = 4
"""Letters that two words share at their beginning to be taken for forms of one, such as weak and weaker."""

_WORD = re.compile(r"[a-z]{3,}")
_EMPTY = frozenset(
    ("the", "and", "was", "were", "had", "has", "have", "been", "that", "one", "very", "too", "because", "for")
)


class Failure(StrEnum):
    """The two failures of abstraction that the paper tells apart (appendix F)."""

    LEVEL = "wrong level of abstraction"
    CUE = "adversarial cue kept"
    OTHER = "neither: the reasoning about sound concepts failed"


@dataclass(frozen=True, slots=True)
class Case:
    """One pair with the replies of two methods. `failures`: of the second's abstraction, if its answer is wrong."""

    pair: Pair
    methods: tuple[str, str]
    replies: tuple[str, str]
    right: tuple[bool, bool]
    failures: tuple[Failure, ...]

    def lines(self) -> Iterator[str]:
        """The case as text."""
        yield f"{self.pair[0].pair}: {self.pair[0].text} / {self.pair[1].text}"
        for method, reply, right in zip(self.methods, self.replies, self.right, strict=True):
            yield f"  {method} ({'right' if right else 'wrong'}):"
            yield from (f"    {line}" for line in reply.strip().splitlines())
        for failure in self.failures:
            yield f"  tag: {failure.value}"

    def to_json(self) -> dict[str, Any]:
        return {
            "pair": self.pair[0].pair,
            "sentences": [item.text for item in self.pair],
            "methods": [
                {"method": method, "reply": reply, "right": right}
                for method, reply, right in zip(self.methods, self.replies, self.right, strict=True)
            ],
            "failures": [one.value for one in self.failures],
        }


def failures_of(pair: Pair, concepts: Concepts | None) -> tuple[Failure, ...]:
    """What is wrong with an abstraction that led to a wrong answer, by words alone.

    The level is wrong if no concepts are stated, or if one names the very quality in which the two sentences differ (a
    "weak individual" where one "was so weak"). A cue is kept if a concept repeats a word of its entity.
    """
    if concepts is None:
        return (Failure.LEVEL,)
    one, other = (_words(item.text) for item in pair)
    found = []
    if any(_related(word, turning) for concept in concepts for word in _words(concept) for turning in one ^ other):
        found.append(Failure.LEVEL)
    kept = zip(concepts, pair[0].options, strict=True)
    if any(_related(word, own) for concept, option in kept for word in _words(concept) for own in _words(option)):
        found.append(Failure.CUE)
    return tuple(found) or (Failure.OTHER,)


def stored_cases(
    kb: KnowledgeBase,
    paths: Sequence[Path],
    methods: tuple[str, str],
    model: str | None = None,
    sources: Sequence[str] = (),
) -> dict[tuple[str, str], list[Case]]:
    """By model and source the cases of two stored methods; raises HapaxError if nobody was asked by both."""
    pairs = {pair[0].pair: pair for path in paths for pair in pairs_of(read_file(path).items)}
    runs: dict[tuple[str, str, str, bool], dict[str, StoredRun]] = {}
    for run in stored_runs(kb):
        if (not sources or run.source in sources) and (model is None or run.model.startswith(model)):
            words = "" if run.method == Method.AOT_STAGED else run.variant
            runs.setdefault((run.name, run.source, words, run.published), {})[run.method] = run
    found: dict[tuple[str, str], list[Case]] = {}
    for (name, source, words, published), by_method in runs.items():
        others = runs.get((name, source, "", published), {})
        first, second = (by_method.get(method, others.get(method)) for method in methods)
        if words and first is not None and second is not None:
            found.setdefault((name, source), []).extend(cases(kb, pairs, first, second))
    if not any(found.values()):
        raise HapaxError(
            f"{kb.place}: no pairs of these files were asked by both {methods[0]} and {methods[1]}. "
            "Ask first: hapax evaluate winograd ask."
        )
    return found


def cases(kb: KnowledgeBase, pairs: dict[str, Pair], first: StoredRun, second: StoredRun) -> Iterator[Case]:
    """The pairs that both runs answered, in the order of the second: failures of the second, then of the first."""
    calls = kb.calls([call for run in (first, second) for several in run.calls.values() for call in several])
    found = []
    for name in second.calls:
        if name not in first.calls or name not in pairs:
            continue
        replies = [
            "\n\n".join(str(calls[call].response["text"]) for call in run.calls[name] if call in calls)
            for run in (first, second)
        ]
        rights = [_right(run, name) for run in (first, second)]
        failed = () if rights[1] else failures_of(pairs[name], read_concepts(replies[1], pairs[name][0].options))
        found.append(
            Case(
                pairs[name],
                (first.method, second.method),
                (replies[0], replies[1]),
                (rights[0], rights[1]),
                failed,
            )
        )
    yield from sorted(found, key=lambda case: (case.right[1], case.right[0]))


def _right(run: StoredRun, pair: str) -> bool:
    mine: list[Answer] = [one for one in run.answers if one.pair == pair]
    return all(one.right for one in mine)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def _related(one: str, other: str) -> bool:
    return one == other or (min(len(one), len(other)) >= STEM and one[:STEM] == other[:STEM])
