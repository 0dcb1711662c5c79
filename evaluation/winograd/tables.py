"""Stored runs as the paper's tables 1, 2, 3 and 5, and the paper's own tables beside them, each by itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from evaluation.estimates import Estimate
from evaluation.probing.tables import Page
from evaluation.winograd import paper
from evaluation.winograd.data import HUMAN, MACHINE, WSC273
from evaluation.winograd.prompts import Method
from evaluation.winograd.runs import StoredRun
from evaluation.winograd.scores import Scores, mcnemar

NAMES = {
    Method.ZERO_SHOT: "Zero-shot",
    Method.ONE_SHOT: "One-shot",
    Method.WINOWHY: "WinoWhy",
    Method.ZS_COT: "ZS CoT",
    Method.COT: "CoT",
    Method.AOT: "AoT",
    Method.AOT_STAGED: "AoT, staged",
}
"""As table 2 names the methods."""

SHORT = {Method.ZERO_SHOT: "0-s", Method.ONE_SHOT: "1-s"}
ABSENT = "-"
UNAVAILABLE = "no prompt: neither paper nor release has it; bring one by --prompt {name}=FILE"

Reading = Callable[[StoredRun], Scores]


def pages(runs: Sequence[StoredRun], released: bool = False) -> Iterator[Page]:
    """Our tables that have a row, then the paper's. `released`: by the released reading of replies."""
    done = _shortened([run for run in runs if run.status == "done"])
    read: Reading = (lambda run: run.measured.released) if released else (lambda run: run.measured.strict)
    how = "released reading" if released else "strict reading"
    ours = (
        _table_1(done, read, how),
        _table_2(done, read, how),
        _table_3(done, read, how),
        _table_5(done, read, how),
        _readings(done),
        _tests(done),
    )
    yield from (page for page in ours if page.rows)
    yield from _printed()


def run_page(runs: Sequence[StoredRun]) -> Page:
    """The figures of runs, finished or not, with intervals."""
    page = _readings(_shortened(runs))
    rows = [(*row, _with_interval(run.measured.strict.consistency)) for row, run in zip(page.rows, runs, strict=True)]
    return Page("Asked, with 95 % intervals", (*page.columns, "consistency"), rows)


def remarks(runs: Sequence[StoredRun]) -> Iterator[str]:
    """What a reader of the tables should know."""
    for run in runs:
        if run.status != "done":
            yield (
                f"{run.method} on {run.source} by {run.name} has {len(run.answers) // 2} of {run.pairs} pairs and is "
                "in no table; run the same command again to finish it"
            )
    if not runs:
        yield "Nothing was asked yet. Ask with: hapax evaluate winograd ask FILE -m MODEL"
    for one in paper.impossible():
        yield f"printed, but not possible: {one}"


def _shortened(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs with their models' names alone, where no two models differ in their revision only."""
    revisions = Counter(model for model, _ in {(run.model, run.revision) for run in runs})
    return [replace(run, revision="") if revisions[run.model] == 1 else run for run in runs]


def _table_1(runs: Sequence[StoredRun], read: Reading, how: str) -> Page:
    sources = (WSC273, HUMAN, MACHINE)
    rows = [
        (f"{model} ({SHORT[Method(method)]}){suffix}", *_cells(by_source, sources, read))
        for (model, suffix), by_method in _grouped(runs).items()
        for method, by_source in by_method.items()
        if method in set(SHORT) and set(sources) & set(by_source)
    ]
    return Page(f"Table 1 ({how})", ("", *_columns(sources)), rows)


def _table_2(runs: Sequence[StoredRun], read: Reading, how: str) -> Page:
    """A row for each method, four columns for each model, as printed; and for sets of one's own."""
    grouped = _grouped(runs)
    asked_about = dict.fromkeys(run.source for run in runs)
    order = [HUMAN, MACHINE, *asked_about]
    sources = sorted(set(asked_about) - {WSC273}, key=order.index)
    columns = [f"{model}{suffix} {one}" for model, suffix in grouped for one in _columns(sources)]
    rows = []
    for method in _methods(grouped):
        cells = [cell for one in grouped.values() for cell in _cells(one.get(method, {}), sources, read)]
        if set(cells) != {ABSENT}:
            rows.append((named(method), *cells))
    return Page(f"Table 2 ({how})", ("", *columns), rows)


def _table_3(runs: Sequence[StoredRun], read: Reading, how: str) -> Page:
    grouped = _grouped([run for run in runs if run.source == MACHINE])
    methods = _methods(grouped)
    rows = []
    for (model, suffix), by_method in grouped.items():
        cells = (
            _percent(read(by_method[method][MACHINE]).consistency) if method in by_method else ABSENT
            for method in methods
        )
        rows.append((f"{model}{suffix}", *cells))
    return Page(f"Table 3 ({how}): consistency on {MACHINE}", ("", *map(named, methods)), rows)


def _table_5(runs: Sequence[StoredRun], read: Reading, how: str) -> Page:
    sources = (HUMAN, MACHINE)
    names = {"AoT1": Method.AOT.value, "AoT2": "AoT2", "AoT3": "AoT3"}
    rows = []
    for (model, suffix), by_method in _grouped(runs).items():
        if not set(names.values()) & set(by_method):
            continue
        for name, method in names.items():
            by_source = by_method.get(method, {})
            lacking = not by_source and name != "AoT1"
            cells = _cells(by_source, sources, read)
            rows.append((name, f"{model}{suffix}", *cells, UNAVAILABLE.format(name=name) if lacking else ""))
    return Page(f"Table 5 ({how})", ("", "model", *_columns(sources), ""), rows)


def _readings(runs: Sequence[StoredRun]) -> Page:
    """Both readings of the same replies: the released one finds an answer where there is none."""
    rows = []
    for run in runs:
        strict, released = run.measured.strict, run.measured.released
        shown = (strict.single, strict.pair, released.single, released.pair, run.measured.unparsed)
        rows.append((run.label, run.name, run.source, *map(_with_interval, shown)))
    columns = ("", "model", "source", "single", "pair", "single, released", "pair, released", "unparsed")
    return Page("Strict and released reading, with 95 % intervals", columns, rows)


def _tests(runs: Sequence[StoredRun]) -> Page:
    """McNemar's exact test between each two methods of a model on a source, by the strict reading."""
    rows = []
    for one, other in combinations(runs, 2):
        if (one.name, one.source) == (other.name, other.source):
            test = mcnemar(one.answers, other.answers)
            if test is not None:
                found = (str(test.only_first), str(test.only_second), f"{test.p_value:.4g}")
                rows.append((one.label, other.label, one.name, one.source, *found))
    columns = ("one", "other", "model", "source", "only one right", "only other right", "p")
    return Page("McNemar's exact test (strict reading)", columns, rows)


def _printed() -> Iterator[Page]:
    """The paper's tables as printed."""
    wide = _columns((WSC273, HUMAN, MACHINE))
    narrow = _columns((HUMAN, MACHINE))
    yield _page("1", paper.TABLE_1, ("", *wide))
    yield _page("2", paper.TABLE_2, ("", *(f"{model} {one}" for model in paper.TABLE_2_MODELS for one in narrow)))
    yield _page("3", paper.TABLE_3, ("", *paper.TABLE_3_METHODS))
    yield _page("5", paper.TABLE_5, ("", *narrow))


def _page(number: str, printed: paper.Printed, columns: tuple[str, ...]) -> Page:
    rows = [(row, *(f"{value:.3f}".removesuffix("0") for value in values)) for row, values in printed.items()]
    return Page(f"Reference: the paper's table {number}, for other models and replies", columns, rows)


Grouped = dict[tuple[str, str], dict[str, dict[str, StoredRun]]]


def _grouped(runs: Sequence[StoredRun]) -> Grouped:
    """By model with what marks its words, by method, by source."""
    grouped: Grouped = {}
    for run in runs:
        marks = [run.variant] if run.variant != "paper" else []
        marks += ["as published"] if run.published else []
        key = run.name, f" [{', '.join(marks)}]" if marks else ""
        grouped.setdefault(key, {}).setdefault(run.method, {})[run.source] = run
    return grouped


def _columns(sources: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{source} {kind}" for source in sources for kind in ("single", "pair"))


def _cells(by_source: Mapping[str, StoredRun], sources: Sequence[str], read: Reading) -> tuple[str, ...]:
    cells: list[str] = []
    for source in sources:
        run = by_source.get(source)
        cells += [ABSENT, ABSENT] if run is None else [_percent(read(run).single), _percent(read(run).pair)]
    return tuple(cells)


def _methods(grouped: Grouped) -> list[str]:
    """The methods asked by, in the order of table 2, then users' own."""
    known = [str(one) for one in NAMES]
    asked = dict.fromkeys(method for by_method in grouped.values() for method in by_method)
    return sorted(asked, key=lambda method: known.index(method) if method in known else len(known))


def named(method: str) -> str:
    """The method as table 2 names it; a user's own by its name."""
    return NAMES.get(Method(method), method) if method in set(Method) else method


def _percent(estimate: Estimate) -> str:
    return ABSENT if math.isnan(estimate.value) else f"{100 * estimate.value:.2f}"


def _with_interval(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return ABSENT
    return f"{100 * estimate.value:.1f} ({100 * estimate.low:.0f} to {100 * estimate.high:.0f})"
