"""Replies of two methods to the same schemas, side by side, with the kind of failure as a tag (appendix F)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult
from hapax.evaluation.winograd.schema_asking import Concepts, Sources, read_concepts
from hapax.evaluation.winograd.schema_files import Pair, pairs_of, read_file
from hapax.evaluation.winograd.schema_prompts import SCORED, PromptMethod
from hapax.evaluation.winograd.schema_runs import WITHOUT_VARIANT, StoredRun, stored_runs
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase

COMPARED = ("cot", "aot")
"""Methods that the paper compares case by case."""

CASES = 10
"""Most cases of each source that `compare_cases` lists."""

ABSTRACTING = (PromptMethod.AOT, PromptMethod.AOT_STAGED)
"""Methods whose prompts ask for concepts."""

STEM = 4
"""First letters by which two words count as forms of one word, such as weak and weaker."""

_WORD = re.compile(r"[a-z]{3,}")

# Frequent words that describe no quality.
_EMPTY = frozenset(
    ("the", "and", "was", "were", "had", "has", "have", "been", "that", "one", "very", "too", "because", "for")
)


class Failure(StrEnum):
    """The two failures of abstraction in the paper (appendix F), and failures of another kind."""

    FORMAT = "format not kept: concepts or answers could not be read"
    LEVEL = "wrong level of abstraction"
    CUE = "adversarial cue kept"
    OTHER = "neither: the reasoning about sound concepts failed"


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """A pair with the replies of two methods. `failures`: those of the second method, if its answer is wrong."""

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

    @property
    def figures(self) -> dict[str, Any]:
        """The case for programs."""
        rows = zip(self.methods, self.replies, self.right, strict=True)
        methods = [dict(zip(("method", "reply", "right"), row, strict=True)) for row in rows]
        return {
            "pair": self.pair[0].pair,
            "sentences": [item.text for item in self.pair],
            "methods": methods,
            "failures": [failure.value for failure in self.failures],
        }


def failures_of(pair: Pair, concepts: Concepts | None, answered: bool = True) -> tuple[Failure, ...]:
    """Failures of an abstraction that led to a wrong answer, judged by its words.

    The format is not kept if no concepts are stated, or if the answers are not read (`answered`); that says nothing
    about the abstraction. The level is wrong if a concept names the very quality in which the two sentences differ (a
    "weak individual" where one "was so weak"). A cue is kept if a concept repeats a word of its entity.
    """
    if concepts is None:
        return (Failure.FORMAT,)
    failures = [] if answered else [Failure.FORMAT]
    # Words of one sentence alone: the quality that the two answers turn on.
    differing = _words(pair[0].text) ^ _words(pair[1].text)
    if any(_share_stem(_words(concept), differing) for concept in concepts):
        failures.append(Failure.LEVEL)
    if any(_share_stem(_words(concepts[place]), _words(pair[0].options[place])) for place in (0, 1)):
        failures.append(Failure.CUE)
    return tuple(failures) or (Failure.OTHER,)


@checked
@extras_named()
def compare_cases(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    methods: tuple[str, str] = COMPARED,
    *,
    model: Annotated[str | None, Option("Only runs of models whose name begins with this text.", short="-m")] = None,
    sources: Sources = (),
    most: Annotated[int, Option("Maximum number of pairs to show of each source.", least=1)] = CASES,
) -> Evaluation[dict[tuple[str, str], list[CaseComparison]]]:
    """Stored replies of two methods to the same pairs, by model and source, with the failures of the second tagged.

    `model`: the beginning of the models' names. The tables list at most `most` cases of each source. Raises HapaxError
    if no model was asked by both methods.
    """
    pairs: dict[str, Pair] = {}
    for path in paths:
        pairs |= {pair[0].pair: pair for pair in pairs_of(read_file(Path(path)).items)}
    runs: dict[tuple[str, str, str, bool], dict[str, StoredRun]] = {}
    for run in stored_runs(kb):
        if (not sources or run.source in sources) and (model is None or run.model.startswith(model)):
            # A method with a single wording is compared with runs of every wording.
            wording = "" if run.method in WITHOUT_VARIANT else run.variant
            runs.setdefault((run.model, run.source, wording, run.published), {})[run.method] = run
    neither_worded = set(methods) <= set(WITHOUT_VARIANT)
    by_run: dict[tuple[str, str], list[CaseComparison]] = {}
    for (name, source, wording, published), by_method in runs.items():
        unworded = runs.get((name, source, "", published), {})
        first, second = (by_method.get(method, unworded.get(method)) for method in methods)
        # Runs of a method without wordings are reached by way of the other's, unless neither method has any.
        is_reached = bool(wording) is not neither_worded
        if is_reached and first is not None and second is not None:
            by_run.setdefault((name, source), []).extend(cases(kb, pairs, first, second))
    if not any(by_run.values()):
        raise HapaxError(
            f"{kb.place}: no pairs of these files were asked by both {methods[0]} and {methods[1]}.",
            Remedy("Ask first, with {}.", Operation("ask_schemas")),
        )
    shown = [case for run_cases in by_run.values() for case in run_cases[:most]]
    lines = [line for case in shown for line in (*case.lines(), "")]
    return Evaluation(by_run, ExperimentResult((), [case.figures for case in shown], details=lines))


def cases(kb: KnowledgeBase, pairs: dict[str, Pair], first: StoredRun, second: StoredRun) -> Iterator[CaseComparison]:
    """Pairs that both runs answered: first those that the second fails on, then those that the first fails on."""
    calls = kb.calls([identity for run in (first, second) for ids in run.calls.values() for identity in ids])
    comparisons = []
    for name in second.calls:
        # A budget may have ended one of the runs, and the files may hold only some of the pairs.
        if name not in first.calls or name not in pairs:
            continue
        pair = pairs[name]
        replies = _reply(calls, first, pair), _reply(calls, second, pair)
        answers = [[answer for answer in run.answers if answer.pair == name] for run in (first, second)]
        right = all(answer.right for answer in answers[0]), all(answer.right for answer in answers[1])
        failures: tuple[Failure, ...] = ()
        # Scores have no format, and say nothing of concepts.
        if not right[1] and second.method not in SCORED:
            answered = all(answer.strict is not None for answer in answers[1])
            concepts = read_concepts(replies[1], pair[0].options)
            if second.method in ABSTRACTING or concepts is not None:
                failures = failures_of(pair, concepts, answered)
            elif not answered:
                # A method that asks for no concepts fails by its format alone.
                failures = (Failure.FORMAT,)
        comparisons.append(CaseComparison(pair, (first.method, second.method), replies, right, failures))
    # False sorts before True.
    yield from sorted(comparisons, key=lambda case: (case.right[1], case.right[0]))


def _reply(calls: Mapping[str, CallRecord], run: StoredRun, pair: Pair) -> str:
    """Replies about a pair; those that are not in the journal are left out. Methods that score have chosen options."""
    if run.method not in SCORED:
        return "\n\n".join(str(calls[call].response["text"]) for call in run.calls[pair[0].pair] if call in calls)
    chosen = {answer.item: answer.strict for answer in run.answers}
    options = [(item.options, chosen.get(item.id)) for item in pair]
    return "\n".join("no option" if place is None else names[place] for names, place in options)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def _share_stem(words: frozenset[str], others: frozenset[str]) -> bool:
    """True if a word of each set is equal, or a form of the same word."""
    stems = {word[:STEM] for word in words if len(word) >= STEM}
    return bool(words & others) or any(len(word) >= STEM and word[:STEM] in stems for word in others)
