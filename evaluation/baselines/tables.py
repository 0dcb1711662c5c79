"""Baselines as tables for the screen: ours in the paper's layout, and what the paper prints in tables of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from evaluation.baselines.instruct import InstructReport, StreamReport
from evaluation.baselines.paper import COLUMNS, TABLE_3, Printed
from evaluation.baselines.rows import Drop
from evaluation.judging import Accuracy, Share
from evaluation.probing.tables import SPOKEN, Page
from kb.records import Distribution
from llm_oracle.prompts import long_tail_wording

_NAMES = ("A", "B", "Z")
"""The variables of the paper's example."""


def instruct_tables(reports: Sequence[InstructReport], accuracies: Sequence[Accuracy]) -> tuple[Page, ...]:
    """By rule, by wording, and how right the statements are; with LINK's table 3. `accuracies`: head and long tail of
    each report in turn."""
    return (_by_rule(reports), _by_wording(reports), _accuracy(reports, accuracies), printed_table(TABLE_3))


def printed_table(printed: Printed) -> Page:
    """The paper's own figures."""
    rows = [(name, *(f"{figure:.2f}" for figure in figures)) for name, *figures in printed.rows]
    return Page(f"LINK's paper, table {printed.number}: {printed.title}", (printed.first, *COLUMNS), rows)


def accuracy_cells(one: Accuracy | None) -> tuple[str, str, str]:
    """Data type, factuality and overall in percent, each with how many were judged; `n/a` where none was."""
    return ("n/a",) * 3 if one is None else (_told(one.data_type), _told(one.factuality), _told(one.overall))


def dropped_json(streams: Iterable[StreamReport]) -> dict[str, int]:
    """Dropped lines by reason."""
    counts: Counter[Drop] = Counter()
    for one in streams:
        counts.update(one.dropped)
    return {drop.value: counts[drop] for drop in Drop}


def number(value: float | None) -> str:
    """Two decimals, or `n/a`."""
    return "n/a" if value is None else f"{value:.2f}"


def _told(share: Share) -> str:
    return "n/a" if share.value is None else f"{100 * share.value:.2f} of {share.known}"


def _by_rule(reports: Sequence[InstructReport]) -> Page:
    columns = (
        "rule",
        "wording",
        "head",
        "long tail",
        *(drop.value for drop in Drop),
        "calls",
        "hits",
        "delta",
        "ended",
    )
    rows = [
        (
            rule,
            str(report.settings.wording),
            *(str(len(one.statements)) for one in streams),
            *(str(sum(one.dropped.get(drop, 0) for one in streams)) for drop in Drop),
            str(sum(one.calls for one in streams)),
            str(sum(one.hits for one in streams)),
            number(report.delta(rule)),
            "; ".join(dict.fromkeys(one.end for one in streams)),
        )
        for rule in reports[0].rules
        for report in reports
        for streams in (tuple(report.of(rule).values()),)
    ]
    return Page(f"Statements by instruction only, {reports[0].model}", columns, rows)


def _by_wording(reports: Sequence[InstructReport]) -> Page:
    rows = [
        (str(one.settings.wording), long_tail_wording(one.settings.wording, _NAMES), number(one.mean_delta))
        for one in reports
    ]
    return Page("Mean delta by wording (LINK, figure 13)", ("wording", "", "mean delta"), rows)


def _accuracy(reports: Sequence[InstructReport], accuracies: Sequence[Accuracy]) -> Page:
    pairs = zip([(report, each) for report in reports for each in Distribution], accuracies, strict=True)
    rows = [
        (str(report.settings.wording), SPOKEN[each], str(one.statements), *accuracy_cells(one))
        for (report, each), one in pairs
    ]
    judges = ", ".join(dict.fromkeys(one.judge for one in accuracies))
    columns = ("wording", "distribution", "statements", *COLUMNS)
    return Page(f"Accuracy in percent (LINK, table 3), judged by {judges}", columns, rows)
