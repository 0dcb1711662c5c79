"""Stored runs as the paper's tables, followed by the paper's own, never mixed with ours; and replies case by case."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, combinations, product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.lazy import scipy
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.evaluation.winograd.schema_asking import (
    ABSENT,
    PAPER,
    SCORED,
    Concepts,
    PromptMethod,
    Scores,
    Sources,
    StoredRun,
    read_concepts,
    readings_table,
    stored_runs,
)
from hapax.evaluation.winograd.schema_files import HUMAN, MACHINE, WSC273, Pair, read_pairs
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import CALL, Operation, Remedy, Setting
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase

TABLE_2_MODELS = ("GPT3.5", "Llama3.1", "Mistral-7B")
TABLE_3_METHODS = ("Zero-shot?", "One-shot", "ZS CoT?", "CoT", "AoT")
"""Two headers are missing from our copy of the paper; their names follow from the order of table 2."""

SENTENCES = {WSC273: (272, 136), HUMAN: (102, 51), MACHINE: (410, 205)}
"""Numbers of sentences and pairs that single and pair accuracies are shares of."""

FAMILIES = 51

DISAGREEMENT = 7.5
"""Percentage from appendix E that bounds the disagreement of annotators."""


# --- the paper's own --------------------------------------------------------------------------------------------------

_WIDE, _NARROW = (WSC273, HUMAN, MACHINE), (HUMAN, MACHINE)
"""Sources of table 1, and of the others."""


def _columns(sources: Sequence[str]) -> list[str]:
    return [f"{source} {accuracy}" for source, accuracy in product(sources, ("single", "pair"))]


PRINTED: Mapping[int, tuple[Sequence[str], Sequence[int]]] = {
    1: (_columns(_WIDE), [count for source in _WIDE for count in SENTENCES[source]]),
    2: (
        [f"{model} {column}" for model, column in product(TABLE_2_MODELS, _columns(_NARROW))],
        [count for source in _NARROW for count in SENTENCES[source]] * len(TABLE_2_MODELS),
    ),
    3: (TABLE_3_METHODS, [FAMILIES] * len(TABLE_3_METHODS)),
    5: (_columns(_NARROW), [count for source in _NARROW for count in SENTENCES[source]]),
}
"""By number of a table: its columns, and the number of cases that each is a share of."""


def printed_tables() -> Iterator[ResultTable]:
    """The paper's tables as printed."""
    for number, (columns, _) in PRINTED.items():
        rows = []
        for name, values in PAPER["tables"][number].items():
            # The paper prints two decimals, and three in one cell.
            rows.append([name, *(f"{value:.3f}".removesuffix("0") for value in values)])
        title = f"Reference: the paper's table {number}, for other models and replies"
        yield ResultTable(title, ("", *columns), rows)


def impossible() -> Iterator[str]:
    """Printed percentages that no whole number of right answers can give."""
    for number, (columns, counts) in PRINTED.items():
        for row, values in PAPER["tables"][number].items():
            for column, count, value in zip(columns, counts, values, strict=True):
                if not possible(value, count):
                    yield f"table {number}, {row}, {column}: no k of {count} gives {value}"


def possible(value: float, count: int) -> bool:
    """True if some k of `count` gives the printed percentage, rounded or truncated to its digits."""
    digits = 3 if round(value, 2) != value else 2  # one value has three decimals
    # A truncated percentage may belong to a neighbour of the nearest number.
    nearest = round(value * count / 100)
    shares = [100 * hits / count for hits in (nearest - 1, nearest, nearest + 1) if 0 <= hits <= count]
    return any(abs(round(found, digits) - value) < 1e-9 or 0 <= found - value < 10**-digits for found in shares)


# --- ours -------------------------------------------------------------------------------------------------------------

NAMES = {
    PromptMethod.ZERO_SHOT: "Zero-shot",
    PromptMethod.ONE_SHOT: "One-shot",
    PromptMethod.WINOWHY: "WinoWhy",
    PromptMethod.ZS_COT: "ZS CoT",
    PromptMethod.COT: "CoT",
    PromptMethod.AOT: "AoT",
    PromptMethod.AOT_STAGED: "AoT, staged",
    PromptMethod.LIKELIHOOD: "Likelihood",
    PromptMethod.LIKELIHOOD_PARTIAL: "Likelihood, partial",
    PromptMethod.LIKELIHOOD_PMI: "Likelihood, PMI",
    PromptMethod.LIKELIHOOD_CHOICE: "Likelihood, choice",
}
"""Methods as table 2 names them."""

SHORT: Mapping[str, str] = {PromptMethod.ZERO_SHOT: "0-s", PromptMethod.ONE_SHOT: "1-s"}
UNAVAILABLE = Remedy(
    "no prompt: neither paper nor release has it; supply one with {}", Setting("settings.own", "NAME=FILE")
)


@checked
def tabulate_schemas(kb: KnowledgeBase) -> Evaluation[list[StoredRun]]:
    """Tables 1, 2, 3 and 5 of the stored answers, McNemar's test between methods, and the paper's own tables."""
    runs = stored_runs(kb)
    # Scores of a part of the pairs cannot be compared with those of all.
    finished = [run for run in runs if run.record.status == "done"]
    readings = readings_table(finished, "Strict and released reading, with 95 % intervals")
    ours = (*_tables(finished), readings, _tests(finished))
    tables, notes = [*(table for table in ours if table.rows), *printed_tables()], []
    for run in runs:
        if run.record.status != "done":
            asked, done = run.settings, f"{len(run.answers) // 2} of {run.settings['pairs']} pairs"
            notes.append(
                f"{asked['method']} on {asked['source']} by {run.model} has {done} and is left out of the tables; run "
                f"the same {CALL} again to finish it"
            )
    if not runs:
        notes.append(f"Nothing was asked yet. Ask with {Operation('ask_schemas', 'FILE', knowledge='MODEL')}.")
    notes += [f"printed, but not possible: {text}" for text in impossible()]
    return Evaluation(runs, tables, [run.figures for run in runs], notes=notes)


def _tables(runs: Sequence[StoredRun]) -> Iterator[ResultTable]:
    """Tables 1, 2, 3 and 5 of finished runs; without rows where nothing was asked for them."""
    # By model, with a mark for unusual wordings; then by method and source.
    scores: dict[str, dict[tuple[str, str], Scores]] = {}
    for run in runs:
        variant = run.settings["variant"]
        model = run.model if variant == "paper" else f"{run.model} [{variant}]"
        scores.setdefault(model, {})[run.settings["method"], run.settings["source"]] = run.scores()
    keys = list(dict.fromkeys(chain.from_iterable(scores.values())))
    # In the order of table 2; users' own prompts come last.
    order = list(map(str, NAMES))
    asked = dict.fromkeys(method for method, _ in keys)
    methods = sorted(asked, key=lambda name: order.index(name) if name in order else len(order))

    def cells(model: str, method: str, sources: Sequence[str]) -> list[str]:
        """Single and pair accuracies of a method on each source."""
        found = [scores[model].get((method, source)) for source in sources]
        pairs = ((own.single, own.pair) if own else (None, None) for own in found)
        return list(map(_percent, chain.from_iterable(pairs)))

    rows: list[list[str]] = []
    for model, (method, short) in product(scores, SHORT.items()):
        rows.append([f"{model} ({short})", *cells(model, method, _WIDE)])
    yield ResultTable(
        "Table 1 (strict reading)", ("", *_columns(_WIDE)), [row for row in rows if set(row[1:]) != {ABSENT}]
    )
    # Columns for each model, as printed, and for other sources than the paper's.
    others = dict.fromkeys(source for _, source in keys if source != WSC273)
    sources, rows = sorted(others, key=[*_NARROW, *others].index), []
    for method in methods:
        rows.append([method_name(method), *chain.from_iterable(cells(model, method, sources) for model in scores)])
    columns = [f"{model} {column}" for model, column in product(scores, _columns(sources))]
    yield ResultTable("Table 2 (strict reading)", ("", *columns), [row for row in rows if set(row[1:]) != {ABSENT}])
    on_machine, rows = [method for method in methods if (method, MACHINE) in keys], []
    for model, own in scores.items():
        if any(source == MACHINE for _, source in own):
            found = [own.get((method, MACHINE)) for method in on_machine]
            rows.append([model, *(_percent(score.consistency if score else None) for score in found)])
    title = f"Table 3 (strict reading): consistency on {MACHINE}"
    yield ResultTable(title, ("", *map(method_name, on_machine)), rows)
    # AoT2 and AoT3 are the names under which users ask with their own prompts.
    variants, rows = {"AoT1": PromptMethod.AOT.value, "AoT2": "AoT2", "AoT3": "AoT3"}, []
    for model, own in scores.items():
        of_model = {method for method, _ in own}
        for name, method in variants.items() if of_model & set(variants.values()) else ():
            remark = str(UNAVAILABLE) if method not in of_model and name != "AoT1" else ""
            rows.append([name, model, *cells(model, method, _NARROW), remark])
    yield ResultTable("Table 5 (strict reading)", ("", "model", *_columns(_NARROW), ""), rows)


def _percent(estimate: Estimate | None) -> str:
    return ABSENT if estimate is None or math.isnan(estimate.value) else f"{100 * estimate.value:.2f}"


def method_name(method: str) -> str:
    """The method's name in table 2, or the name of a user's own prompt."""
    return NAMES.get(PromptMethod(method), method) if method in set(PromptMethod) else method


def _tests(runs: Sequence[StoredRun]) -> ResultTable:
    """McNemar's exact test between every two methods of a model on a source, by the strict reading.

    Numbers of sentences that only the first and only the second answers right, and the two-sided p-value.
    """
    rows = []
    for first, second in combinations(runs, 2):
        right = {answer.item: answer.right for answer in first.answers}
        outcomes = [(right[answer.item], answer.right) for answer in second.answers if answer.item in right]
        source = first.settings["source"]
        if (first.model, source) == (second.model, second.settings["source"]) and outcomes:
            counts = outcomes.count((True, False)), outcomes.count((False, True))
            # The binomial test needs at least one trial.
            p_value = float(scipy.stats.binomtest(counts[0], sum(counts)).pvalue) if any(counts) else 1.0
            rows.append((first.label, second.label, first.model, source, *counts, f"{p_value:.4g}"))
    columns = ("first", "second", "model", "source", "only first right", "only second right", "p")
    return ResultTable("McNemar's exact test (strict reading)", columns, rows)


# --- cases (appendix F) -----------------------------------------------------------------------------------------------

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
        """The case as text, with an empty line after it."""
        yield f"{self.pair[0].pair}: {self.pair[0].text} / {self.pair[1].text}"
        for method, reply, right in zip(self.methods, self.replies, self.right, strict=True):
            yield f"  {method} ({'right' if right else 'wrong'}):"
            yield from (f"    {line}" for line in reply.strip().splitlines())
        yield from (f"  tag: {failure.value}" for failure in self.failures)
        yield ""

    @property
    def figures(self) -> dict[str, Any]:
        """The case for programs."""
        rows = zip(self.methods, self.replies, self.right, strict=True)
        methods = [dict(zip(("method", "reply", "right"), row, strict=True)) for row in rows]
        sentences = [item.text for item in self.pair]
        return {"pair": self.pair[0].pair, "sentences": sentences, "methods": methods, "failures": self.failures}


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
    pairs = {pair[0].pair: pair for pair in read_pairs(paths)}
    # Runs in the same wording are compared; a method with a single wording has that which was asked for beside it.
    runs: dict[tuple[str, str, str], dict[str, StoredRun]] = {}
    for run in stored_runs(kb):
        settings = run.settings
        if (not sources or settings["source"] in sources) and (model is None or run.model.startswith(model)):
            runs.setdefault((run.model, settings["source"], settings["variant"]), {})[settings["method"]] = run
    by_run: dict[tuple[str, str], list[CaseComparison]] = {}
    for (name, source, _), by_method in runs.items():
        if by_method.keys() >= set(methods):
            first, second = (by_method[method] for method in methods)
            by_run.setdefault((name, source), []).extend(cases(kb, pairs, first, second))
    if not any(by_run.values()):
        raise HapaxError(
            f"{kb.place}: no pairs of these files were asked by both {methods[0]} and {methods[1]}.",
            Remedy("Ask first, with {}.", Operation("ask_schemas")),
        )
    shown = [case for run_cases in by_run.values() for case in run_cases[:most]]
    lines = list(chain.from_iterable(case.lines() for case in shown))
    return Evaluation(by_run, (), [case.figures for case in shown], details=lines)


def cases(kb: KnowledgeBase, pairs: dict[str, Pair], first: StoredRun, second: StoredRun) -> Iterator[CaseComparison]:
    """Pairs that both runs answered: first those that the second fails on, then those that the first fails on."""
    calls = kb.calls([identity for run in (first, second) for ids in run.calls.values() for identity in ids])
    comparisons, methods = [], (first.settings["method"], second.settings["method"])
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
        if not right[1] and methods[1] not in SCORED:
            answered = all(answer.strict is not None for answer in answers[1])
            concepts = read_concepts(replies[1], pair[0].options)
            if methods[1] in ABSTRACTING or concepts is not None:
                failures = failures_of(pair, concepts, answered)
            elif not answered:
                # A method that asks for no concepts fails by its format alone.
                failures = (Failure.FORMAT,)
        comparisons.append(CaseComparison(pair, methods, replies, right, failures))
    # False sorts before True.
    yield from sorted(comparisons, key=lambda case: (case.right[1], case.right[0]))


def _reply(calls: Mapping[str, CallRecord], run: StoredRun, pair: Pair) -> str:
    """Replies about a pair; those that are not in the journal are left out. Methods that score have chosen options."""
    if run.settings["method"] not in SCORED:
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
