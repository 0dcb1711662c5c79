"""Stored runs as the paper's tables, followed by the paper's own tables, never mixed with ours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Annotated

from hapax.evaluation.shared.estimates import Estimate
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.schema_asking import Scores, mcnemar
from hapax.evaluation.winograd.schema_files import HUMAN, MACHINE, WSC273
from hapax.evaluation.winograd.schema_prompts import PromptMethod
from hapax.evaluation.winograd.schema_runs import ABSENT, StoredRun, readings_table, shortened, stored_runs
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import CALL, Operation, Remedy, Setting
from hapax.kb.store import KnowledgeBase

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


PRINTED: Mapping[int, tuple[Printed, Sequence[str], Sequence[int]]] = {
    1: (TABLE_1, _columns(_WIDE), [count for source in _WIDE for count in SENTENCES[source]]),
    2: (
        TABLE_2,
        [f"{model} {column}" for model, column in product(TABLE_2_MODELS, _columns(_NARROW))],
        [count for source in _NARROW for count in SENTENCES[source]] * len(TABLE_2_MODELS),
    ),
    3: (TABLE_3, TABLE_3_METHODS, [FAMILIES] * len(TABLE_3_METHODS)),
    5: (TABLE_5, _columns(_NARROW), [count for source in _NARROW for count in SENTENCES[source]]),
}
"""By number: rows, columns, and the number of cases that each column is a share of."""


def printed_tables() -> Iterator[ResultTable]:
    """The paper's tables as printed."""
    for number, (printed, columns, _) in PRINTED.items():
        # The paper prints two decimals, and three in one cell.
        rows = [[name, *(f"{value:.3f}".removesuffix("0") for value in values)] for name, values in printed.items()]
        title = f"Reference: the paper's table {number}, for other models and replies"
        yield ResultTable(title, ("", *columns), rows)


def impossible() -> Iterator[str]:
    """Printed percentages that no whole number of right answers can give."""
    for number, (printed, columns, counts) in PRINTED.items():
        for row, values in printed.items():
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

SHORT = {PromptMethod.ZERO_SHOT: "0-s", PromptMethod.ONE_SHOT: "1-s"}
UNAVAILABLE = Remedy(
    "no prompt: neither paper nor release has it; supply one with {}", Setting("settings.own", "NAME=FILE")
)


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
    readings = readings_table(finished, "Strict and released reading, with 95 % intervals")
    ours = (*_SchemaTables(finished, released).tables(), readings, _tests(finished))
    tables = [*(table for table in ours if table.rows), *printed_tables()]
    return Evaluation(runs, ExperimentResult(tables, [run.figures for run in runs], notes=list(_notes(runs))))


def _notes(runs: Sequence[StoredRun]) -> Iterator[str]:
    for run in runs:
        if run.status != "done":
            yield (
                f"{run.method} on {run.source} by {run.model} has {len(run.answers) // 2} of {run.pairs} pairs and is "
                f"left out of the tables; run the same {CALL} again to finish it"
            )
    if not runs:
        yield f"Nothing was asked yet. Ask with {Operation('ask_schemas', 'FILE', knowledge='MODEL')}."
    yield from (f"printed, but not possible: {text}" for text in impossible())


class _SchemaTables:
    """The paper's tables of finished runs, by one reading of the replies."""

    def __init__(self, runs: Sequence[StoredRun], released: bool) -> None:
        self._reading = "released reading" if released else "strict reading"
        # By model, with a mark for unusual wordings; then by method and source.
        self._scores: dict[str, dict[tuple[str, str], Scores]] = {}
        for run in runs:
            marks = [run.variant] if run.variant != "paper" else []
            marks += ["as published"] if run.published else []
            model = f"{run.model} [{', '.join(marks)}]" if marks else run.model
            scores = run.measured.released if released else run.measured.strict
            self._scores.setdefault(model, {})[run.method, run.source] = scores
        keys = list(dict.fromkeys(chain.from_iterable(self._scores.values())))
        # In the order of table 2; users' own prompts come last.
        order = list(map(str, NAMES))
        methods = dict.fromkeys(method for method, _ in keys)
        self._methods = sorted(methods, key=lambda name: order.index(name) if name in order else len(order))
        self._sources = dict.fromkeys(source for _, source in keys)

    def _cells(self, model: str, method: str, sources: Sequence[str]) -> list[str]:
        """Single and pair accuracies of a method on each source."""
        cells = []
        for source in sources:
            scores = self._scores[model].get((method, source))
            cells += [_percent(share) for share in ((scores.single, scores.pair) if scores else (None, None))]
        return cells

    def tables(self) -> Iterator[ResultTable]:
        """Tables 1, 2, 3 and 5; without rows where nothing was asked for them."""
        rows = []
        for model, method in product(self._scores, SHORT):
            cells = self._cells(model, method, _WIDE)
            if set(cells) != {ABSENT}:
                rows.append([f"{model} ({SHORT[method]})", *cells])
        yield ResultTable(f"Table 1 ({self._reading})", ("", *_columns(_WIDE)), rows)
        yield self._table_2()
        # Those of the paper come first, with the consistency of families of five pairs.
        methods = [method for method in self._methods if any((method, MACHINE) in by for by in self._scores.values())]
        rows = []
        for model, scores in self._scores.items():
            if any(source == MACHINE for _, source in scores):
                found = [scores.get((method, MACHINE)) for method in methods]
                rows.append([model, *(_percent(own.consistency if own else None) for own in found)])
        columns = ("", *map(method_name, methods))
        yield ResultTable(f"Table 3 ({self._reading}): consistency on {MACHINE}", columns, rows)
        yield self._table_5()

    def _table_2(self) -> ResultTable:
        """A row for each method and columns for each model, as printed, and for other sources than the paper's."""
        asked = [source for source in self._sources if source != WSC273]
        sources = sorted(asked, key=[*_NARROW, *asked].index)
        rows = []
        for method in self._methods:
            cells = list(chain.from_iterable(self._cells(model, method, sources) for model in self._scores))
            if set(cells) != {ABSENT}:
                rows.append([method_name(method), *cells])
        columns = [f"{model} {column}" for model, column in product(self._scores, _columns(sources))]
        return ResultTable(f"Table 2 ({self._reading})", ("", *columns), rows)

    def _table_5(self) -> ResultTable:
        # AoT2 and AoT3 are the names under which users ask with their own prompts.
        methods = {"AoT1": PromptMethod.AOT.value, "AoT2": "AoT2", "AoT3": "AoT3"}
        rows = []
        for model, scores in self._scores.items():
            asked = {method for method, _ in scores}
            for name, method in methods.items() if asked & set(methods.values()) else ():
                remark = str(UNAVAILABLE) if method not in asked and name != "AoT1" else ""
                rows.append((name, model, *self._cells(model, method, _NARROW), remark))
        return ResultTable(f"Table 5 ({self._reading})", ("", "model", *_columns(_NARROW), ""), rows)


def _percent(estimate: Estimate | None) -> str:
    return ABSENT if estimate is None or math.isnan(estimate.value) else f"{100 * estimate.value:.2f}"


def method_name(method: str) -> str:
    """The method's name in table 2, or the name of a user's own prompt."""
    return NAMES.get(PromptMethod(method), method) if method in set(PromptMethod) else method


def _tests(runs: Sequence[StoredRun]) -> ResultTable:
    """McNemar's exact test between every two methods of a model on a source, by the strict reading."""
    rows = []
    for first, second in combinations(runs, 2):
        test = mcnemar(first.answers, second.answers)
        if (first.model, first.source) == (second.model, second.source) and test is not None:
            *counts, p_value = test
            rows.append((first.label, second.label, first.model, first.source, *counts, f"{p_value:.4g}"))
    columns = ("first", "second", "model", "source", "only first right", "only second right", "p")
    return ResultTable("McNemar's exact test (strict reading)", columns, rows)
