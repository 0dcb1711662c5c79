"""Stored runs as the paper's tables 1, 2, 3 and 5, followed by the paper's own tables, never mixed with ours."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd import paper
from hapax.evaluation.winograd.data import HUMAN, MACHINE, WSC273
from hapax.evaluation.winograd.prompts import PromptMethod
from hapax.evaluation.winograd.runs import AskSession, SchemaAskOptions, StoredRun, stored_runs
from hapax.evaluation.winograd.scores import Scores, mcnemar
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.registry import with_journal

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
def tabulate_schemas(kb: KnowledgeBase, *, released: bool = False) -> Evaluation[list[StoredRun]]:
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
    for printed in paper.impossible():
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
    for model in paper.TABLE_2_MODELS:
        by_model += [f"{model} {column}" for column in narrow]
    yield _printed_table("1", paper.TABLE_1, wide)
    yield _printed_table("2", paper.TABLE_2, by_model)
    yield _printed_table("3", paper.TABLE_3, paper.TABLE_3_METHODS)
    yield _printed_table("5", paper.TABLE_5, narrow)


def _printed_table(number: str, printed: paper.Printed, columns: Sequence[str]) -> ResultTable:
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
