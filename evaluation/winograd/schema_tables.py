"""Stored runs as the paper's tables and case studies, followed by the paper's own tables, never mixed with ours."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.schema_asking import Concepts, Scores, Sources, mcnemar, read_concepts
from hapax.evaluation.winograd.schema_files import HUMAN, MACHINE, WSC273, Pair, WinogradItem, pairs_of, read_file
from hapax.evaluation.winograd.schema_prompts import SCORED, PromptMethod
from hapax.evaluation.winograd.schema_runs import WITHOUT_VARIANT, AskSession, SchemaAskOptions, StoredRun, stored_runs
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.records import CallRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.registry import with_journal

Printed = Mapping[str, tuple[float, ...]]
"""Rows of a table by their first cell."""

TABLE_1: Printed = {
    "GPT3.5 (0-s)": (73.90, 64.71, 60.73, 47.05, 50.97, 40.48),
    "GPT3.5 (1-s)": (75.00, 65.44, 63.73, 49.02, 63.41, 49.75),
    "GPT4 (0-s)": (85.92, 80.88, 53.92, 37.25, 54.63, 28.29),
    "GPT4 (1-s)": (91.91, 86.03, 76.47, 68.62, 74.63, 60.94),
}
"""Single and pair accuracy on WSC, CR-WSC-H and CR-WSC-M."""

TABLE_2_MODELS = ("GPT3.5", "Llama3.1", "Mistral-7B")
TABLE_2: Printed = {
    "Zero-shot": (60.73, 47.05, 50.97, 40.48, 31.37, 11.76, 32.43, 6.83, 30.39, 7.84, 24.39, 6.83),
    "One-shot": (62.74, 47.05, 63.41, 49.75, 64.71, 52.94, 59.27, 47.32, 50.00, 13.73, 44.63, 16.10),
    "WinoWhy": (51.96, 33.33, 57.56, 34.63, 77.45, 68.62, 72.20, 57.07, 25.49, 5.88, 47.80, 13.17),
    "ZS CoT": (40.24, 34.14, 50.98, 41.18, 45.10, 45.10, 36.10, 31.22, 23.53, 3.92, 24.63, 6.83),
    "CoT": (58.82, 41.18, 60.24, 43.90, 76.47, 64.71, 71.95, 56.09, 48.04, 13.73, 43.17, 14.63),
    "AoT": (70.58, 54.90, 68.29, 56.09, 78.43, 68.62, 71.95, 57.56, 52.94, 19.61, 42.20, 20.49),
}
"""For each model, single and pair accuracy on CR-WSC-H and CR-WSC-M."""

TABLE_3: Printed = {"Consistency": (15.68, 17.64, 10.00, 19.61, 27.45)}
TABLE_3_METHODS = ("Zero-shot?", "One-shot", "ZS CoT?", "CoT", "AoT")
"""Two headers are missing from our copy of the paper; their names follow from the order of table 2."""

TABLE_5: Printed = {
    "AoT1": (70.58, 54.90, 68.29, 56.09),
    "AoT2": (65.68, 41.17, 67.80, 42.43),
    "AoT3": (61.76, 43.137, 65.36, 41.46),
}

SENTENCES = {"WSC": (272, 136), "H": (102, 51), "M": (410, 205)}
"""Numbers of sentences and pairs that single and pair accuracies are shares of."""

FAMILIES = 51

DISAGREEMENT = 7.5
"""Percentage from appendix E that bounds the disagreement of annotators."""


@dataclass(frozen=True, slots=True)
class Impossible:
    """A printed percentage that no whole number of right answers can give."""

    table: int
    row: str
    column: str
    value: float
    count: int

    def __str__(self) -> str:
        return f"table {self.table}, {self.row}, {self.column}: no k of {self.count} gives {self.value}"


def possible(value: float, count: int) -> bool:
    """True if some k of `count` gives the printed percentage, rounded or truncated to its digits."""
    digits = 3 if round(value, 2) != value else 2  # one value has three decimals
    # A truncated percentage may belong to a neighbour of the nearest number.
    nearest = round(value * count / 100)
    for hits in (nearest - 1, nearest, nearest + 1):
        share = 100 * hits / count
        if 0 <= hits <= count and (abs(round(share, digits) - value) < 1e-9 or 0 <= share - value < 10**-digits):
            return True
    return False


def impossible() -> Iterator[Impossible]:
    """Printed percentages that are impossible with the number of sentences, pairs or families."""
    sets = ("WSC", "H", "M")
    yield from _impossible(1, TABLE_1, list(product(sets, (0, 1))))
    model_columns = list(product(("H", "M"), (0, 1)))
    yield from _impossible(2, TABLE_2, model_columns * len(TABLE_2_MODELS))
    for method, value in zip(TABLE_3_METHODS, TABLE_3["Consistency"], strict=True):
        if not possible(value, FAMILIES):
            yield Impossible(3, "Consistency", method, value, FAMILIES)
    yield from _impossible(5, TABLE_5, model_columns)


def _impossible(table: int, printed: Printed, columns: list[tuple[str, int]]) -> Iterator[Impossible]:
    """Check a table. A column is a key of `SENTENCES` with 0 for single or 1 for pair accuracy."""
    for row, values in printed.items():
        for (name, kind), value in zip(columns, values, strict=True):
            count = SENTENCES[name][kind]
            if not possible(value, count):
                yield Impossible(table, row, f"{name} {('single', 'pair')[kind]}", value, count)


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

SHORT = {PromptMethod.ZERO_SHOT: "0-s", PromptMethod.ONE_SHOT: "1-s"}
ABSENT = "-"
UNAVAILABLE = Remedy(
    "no prompt: neither paper nor release has it; supply one with {}", Setting("settings.own", "NAME=FILE")
)

ScoresOf = Callable[[StoredRun], Scores]
RunsByMethod = dict[str, dict[str, StoredRun]]
"""Runs by method and source."""


@dataclass(frozen=True)
class AskedSchemas:
    """Runs of methods on sources of schemas. `stopped`: the budget or queue that left pairs unanswered; else empty."""

    runs: tuple[StoredRun, ...]
    stopped: str = ""


@checked
@extras_named()
def ask_schemas(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: SchemaAskOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[AskedSchemas]:
    """Ask a model about the pairs of files, by each method, and store the answers. No question is asked twice.

    `opening`: options of opening the model; its journal, if any, has the budget. `progress` is called with the method,
    the pairs done and all pairs.
    """
    opening, journal = with_journal(kb, opening, budget)
    session = AskSession(kb, options or SchemaAskOptions(), opening)
    # A generator, which must have ended before `stopped` is read.
    runs = tuple(session.ask([Path(path) for path in paths], journal, progress))
    return Evaluation(AskedSchemas(runs, str(session.stopped or "")), _run_result(runs))


def _run_result(runs: Sequence[StoredRun]) -> ExperimentResult:
    """Scores of runs, finished or not, with intervals."""
    readings = _readings(shortened(runs))
    rows = []
    for row, run in zip(readings.rows, runs, strict=True):
        rows.append((*row, _with_interval(run.measured.strict.consistency)))
    table = ResultTable("Asked, with 95 % intervals", (*readings.columns, "consistency"), rows)
    return ExperimentResult([table], [run.figures for run in runs])


@checked
@extras_named()
def tabulate_schemas(
    kb: KnowledgeBase,
    *,
    released: Annotated[
        bool, Option("Score by the released reading of replies instead of the strict reading.")
    ] = False,
) -> Evaluation[list[StoredRun]]:
    """Tables 1, 2, 3 and 5 of the stored answers, McNemar's test between methods, and the paper's own tables.

    `released`: replies are read as the released code reads them.
    """
    runs = stored_runs(kb)
    # Scores of a part of the pairs cannot be compared with those of all.
    finished = shortened([run for run in runs if run.status == "done"])
    scores_of: ScoresOf = (lambda run: run.measured.released) if released else (lambda run: run.measured.strict)
    reading = "released reading" if released else "strict reading"
    ours = (
        _table_1(finished, scores_of, reading),
        _table_2(finished, scores_of, reading),
        _table_3(finished, scores_of, reading),
        _table_5(finished, scores_of, reading),
        _readings(finished),
        _tests(finished),
    )
    tables = [*(table for table in ours if table.rows), *printed_tables()]
    return Evaluation(runs, ExperimentResult(tables, [run.figures for run in runs], notes=list(_notes(runs))))


def _notes(runs: Sequence[StoredRun]) -> Iterator[str]:
    for run in runs:
        if run.status != "done":
            yield (
                f"{run.method} on {run.source} by {run.name} has {len(run.answers) // 2} of {run.pairs} pairs and is "
                "left out of the tables; run the same {CALL} again to finish it"
            )
    if not runs:
        yield f"Nothing was asked yet. Ask with {Operation('ask_schemas', 'FILE', knowledge='MODEL')}."
    for printed in impossible():
        yield f"printed, but not possible: {printed}"


def shortened(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs without revisions of models, except where two models differ in their revision only."""
    models = {(run.model, run.revision) for run in runs}
    revisions = Counter(model for model, _ in models)
    return [replace(run, revision="") if revisions[run.model] == 1 else run for run in runs]


def _table_1(runs: Sequence[StoredRun], scores_of: ScoresOf, reading: str) -> ResultTable:
    sources = (WSC273, HUMAN, MACHINE)
    rows = []
    for (model, suffix), by_method in _grouped(runs).items():
        for method, by_source in by_method.items():
            # The paper's table 1 has only these two methods.
            if method in set(SHORT) and set(sources) & set(by_source):
                name = f"{model} ({SHORT[PromptMethod(method)]}){suffix}"
                rows.append((name, *_cells(by_source, sources, scores_of)))
    return ResultTable(f"Table 1 ({reading})", ("", *_columns(sources)), rows)


def _table_2(runs: Sequence[StoredRun], scores_of: ScoresOf, reading: str) -> ResultTable:
    """A row for each method and columns for each model, as printed, and for other sources than the paper's."""
    grouped = _grouped(runs)
    run_sources = dict.fromkeys(run.source for run in runs)
    sources = [source for source in run_sources if source != WSC273]
    # The paper's two sources come first, in its order.
    order = [HUMAN, MACHINE, *sources]
    sources.sort(key=order.index)
    columns = []
    for model, suffix in grouped:
        columns += [f"{model}{suffix} {column}" for column in _columns(sources)]
    rows = []
    for method in _methods(grouped):
        cells: list[str] = []
        for by_method in grouped.values():
            cells += _cells(by_method.get(method, {}), sources, scores_of)
        if set(cells) != {ABSENT}:
            rows.append((method_name(method), *cells))
    return ResultTable(f"Table 2 ({reading})", ("", *columns), rows)


def _table_3(runs: Sequence[StoredRun], scores_of: ScoresOf, reading: str) -> ResultTable:
    grouped = _grouped([run for run in runs if run.source == MACHINE])
    methods = _methods(grouped)
    rows = []
    for (model, suffix), by_method in grouped.items():
        cells = [f"{model}{suffix}"]
        for method in methods:
            run = by_method.get(method, {}).get(MACHINE)
            cells.append(ABSENT if run is None else _percent(scores_of(run).consistency))
        rows.append(cells)
    return ResultTable(f"Table 3 ({reading}): consistency on {MACHINE}", ("", *map(method_name, methods)), rows)


def _table_5(runs: Sequence[StoredRun], scores_of: ScoresOf, reading: str) -> ResultTable:
    sources = (HUMAN, MACHINE)
    # AoT2 and AoT3 are the names under which users ask with their own prompts.
    methods = {"AoT1": PromptMethod.AOT.value, "AoT2": "AoT2", "AoT3": "AoT3"}
    rows = []
    for (model, suffix), by_method in _grouped(runs).items():
        if not set(methods.values()) & set(by_method):
            continue
        for name, method in methods.items():
            by_source = by_method.get(method, {})
            remark = str(UNAVAILABLE) if not by_source and name != "AoT1" else ""
            rows.append((name, f"{model}{suffix}", *_cells(by_source, sources, scores_of), remark))
    return ResultTable(f"Table 5 ({reading})", ("", "model", *_columns(sources), ""), rows)


def _readings(runs: Sequence[StoredRun]) -> ResultTable:
    """Scores by both readings of the same replies; the released one finds answers even where there are none."""
    rows = []
    for run in runs:
        strict, released = run.measured.strict, run.measured.released
        shares = (strict.single, strict.pair, released.single, released.pair, run.measured.unparsed)
        rows.append((run.label, run.name, run.source, *map(_with_interval, shares)))
    columns = ("", "model", "source", "single", "pair", "single, released", "pair, released", "unparsed")
    return ResultTable("Strict and released reading, with 95 % intervals", columns, rows)


def _tests(runs: Sequence[StoredRun]) -> ResultTable:
    """McNemar's exact test between every two methods of a model on a source, by the strict reading."""
    rows = []
    for first, second in combinations(runs, 2):
        if (first.name, first.source) == (second.name, second.source):
            test = mcnemar(first.answers, second.answers)
            if test is not None:
                counts = (str(test.only_first), str(test.only_second), f"{test.p_value:.4g}")
                rows.append((first.label, second.label, first.name, first.source, *counts))
    columns = ("first", "second", "model", "source", "only first right", "only second right", "p")
    return ResultTable("McNemar's exact test (strict reading)", columns, rows)


def printed_tables() -> Iterator[ResultTable]:
    """The paper's tables as printed."""
    wide = _columns((WSC273, HUMAN, MACHINE))
    narrow = _columns((HUMAN, MACHINE))
    by_model = []
    for model in TABLE_2_MODELS:
        by_model += [f"{model} {column}" for column in narrow]
    yield _printed_table("1", TABLE_1, wide)
    yield _printed_table("2", TABLE_2, by_model)
    yield _printed_table("3", TABLE_3, TABLE_3_METHODS)
    yield _printed_table("5", TABLE_5, narrow)


def _printed_table(number: str, printed: Printed, columns: Sequence[str]) -> ResultTable:
    rows = []
    for name, values in printed.items():
        # The paper prints two decimals, and three in one cell.
        rows.append([name, *(f"{value:.3f}".removesuffix("0") for value in values)])
    return ResultTable(f"Reference: the paper's table {number}, for other models and replies", ("", *columns), rows)


def _grouped(runs: Sequence[StoredRun]) -> dict[tuple[str, str], RunsByMethod]:
    """Runs by model and a suffix that marks unusual wordings."""
    grouped: dict[tuple[str, str], RunsByMethod] = {}
    for run in runs:
        marks = [run.variant] if run.variant != "paper" else []
        marks += run.marks
        key = run.name, f" [{', '.join(marks)}]" if marks else ""
        grouped.setdefault(key, {}).setdefault(run.method, {})[run.source] = run
    return grouped


def _columns(sources: Sequence[str]) -> list[str]:
    columns = []
    for source in sources:
        columns += [f"{source} single", f"{source} pair"]
    return columns


def _cells(by_source: Mapping[str, StoredRun], sources: Sequence[str], scores_of: ScoresOf) -> list[str]:
    cells: list[str] = []
    for source in sources:
        run = by_source.get(source)
        cells += [ABSENT, ABSENT] if run is None else [_percent(scores_of(run).single), _percent(scores_of(run).pair)]
    return cells


def _methods(grouped: Mapping[tuple[str, str], RunsByMethod]) -> list[str]:
    """Methods with runs, in the order of table 2, then users' own."""
    # Users' own prompts are not in NAMES and come last.
    order = {str(method): place for place, method in enumerate(NAMES)}
    methods: dict[str, None] = {}
    for by_method in grouped.values():
        methods |= dict.fromkeys(by_method)
    return sorted(methods, key=lambda method: order.get(method, len(order)))


def method_name(method: str) -> str:
    """The method's name in table 2, or the name of a user's own prompt."""
    return NAMES.get(PromptMethod(method), method) if method in set(PromptMethod) else method


def _percent(estimate: Estimate) -> str:
    return ABSENT if math.isnan(estimate.value) else f"{100 * estimate.value:.2f}"


def _with_interval(estimate: Estimate) -> str:
    return estimate.text(1, 0, scale=100, empty=ABSENT)


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
        methods = []
        for method, reply, right in zip(self.methods, self.replies, self.right, strict=True):
            methods.append({"method": method, "reply": reply, "right": right})
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
            runs.setdefault((run.name, run.source, wording, run.published), {})[run.method] = run
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
    first_cases: list[CaseComparison] = []
    for run_cases in by_run.values():
        first_cases += run_cases[:most]
    lines: list[str] = []
    for case in first_cases:
        lines += [*case.lines(), ""]
    return Evaluation(by_run, ExperimentResult((), [case.figures for case in first_cases], details=lines))


def cases(kb: KnowledgeBase, pairs: dict[str, Pair], first: StoredRun, second: StoredRun) -> Iterator[CaseComparison]:
    """Pairs that both runs answered: first those that the second fails on, then those that the first fails on."""
    call_ids: list[str] = []
    for run in (first, second):
        for ids in run.calls.values():
            call_ids += ids
    calls = kb.calls(call_ids)
    comparisons = []
    for name in second.calls:
        # A budget may have ended one of the runs, and the files may hold only some of the pairs.
        if name not in first.calls or name not in pairs:
            continue
        pair = pairs[name]
        replies = _replies(calls, first, pair), _replies(calls, second, pair)
        right = _right(first, name), _right(second, name)
        failures = () if right[1] else _failures(pair, second, replies[1])
        comparisons.append(CaseComparison(pair, (first.method, second.method), replies, right, failures))
    # False sorts before True.
    yield from sorted(comparisons, key=lambda case: (case.right[1], case.right[0]))


def _failures(pair: Pair, run: StoredRun, reply: str) -> tuple[Failure, ...]:
    """Failures of a wrong reply. A method that asks for no concepts fails by its format alone, if that was not kept."""
    # Scores have no format, and say nothing of concepts.
    if run.method in SCORED:
        return ()
    answered = all(answer.strict is not None for answer in run.answers if answer.pair == pair[0].pair)
    concepts = read_concepts(reply, pair[0].options)
    if run.method in ABSTRACTING or concepts is not None:
        return failures_of(pair, concepts, answered)
    return () if answered else (Failure.FORMAT,)


def _replies(calls: Mapping[str, CallRecord], run: StoredRun, pair: Pair) -> str:
    """Replies about a pair; those that are not in the journal are left out. Methods that score have chosen options."""
    if run.method in SCORED:
        return "\n".join(_choice(run, item) for item in pair)
    return "\n\n".join(str(calls[call].response["text"]) for call in run.calls[pair[0].pair] if call in calls)


def _choice(run: StoredRun, item: WinogradItem) -> str:
    """The option that a run has chosen for a sentence by its scores."""
    answer = next((answer.strict for answer in run.answers if answer.item == item.id), None)
    return "no option" if answer is None else item.options[answer]


def _right(run: StoredRun, pair: str) -> bool:
    return all(answer.right for answer in run.answers if answer.pair == pair)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EMPTY


def _share_stem(words: frozenset[str], others: frozenset[str]) -> bool:
    """True if a word of each set is equal, or a form of the same word."""
    stems = {word[:STEM] for word in words if len(word) >= STEM}
    return bool(words & others) or any(len(word) >= STEM and word[:STEM] in stems for word in others)
