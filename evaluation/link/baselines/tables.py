"""Tables of the baselines: ours in the paper's layout, and the paper's own as printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

from hapax.evaluation.link.baselines.instruct import InstructReport, StreamReport
from hapax.evaluation.link.baselines.paper import COLUMNS, TABLE_3, PrintedTable
from hapax.evaluation.link.baselines.rows import Drop
from hapax.evaluation.link.judging import JudgedAccuracy
from hapax.evaluation.shared.domains import DISTRIBUTION_NAMES
from hapax.evaluation.shared.results import ResultTable
from hapax.kb.records import Distribution
from hapax.llm_oracle.prompts import long_tail_wording

_NAMES = ("A", "B", "Z")
"""Variables of the paper's example."""


def instruct_tables(reports: Sequence[InstructReport], accuracies: Sequence[JudgedAccuracy]) -> tuple[ResultTable, ...]:
    """Statements by rule, delta by wording, accuracy, and LINK's table 3. `accuracies`: head and long tail of each
    report in turn.
    """
    return (_by_rule(reports), _by_wording(reports), _accuracy(reports, accuracies), printed_table(TABLE_3))


def printed_table(printed: PrintedTable) -> ResultTable:
    """A table of the paper, with its own figures."""
    rows = []
    for name, *figures in printed.rows:
        rows.append((name, *(f"{figure:.2f}" for figure in figures)))
    return ResultTable(f"LINK's paper, table {printed.number}: {printed.title}", (printed.first, *COLUMNS), rows)


def accuracy_cells(judged: JudgedAccuracy | None) -> tuple[str, str, str]:
    """Data type, factuality and overall in percent, each with the number judged; `n/a` where none was."""
    if judged is None:
        return ("n/a", "n/a", "n/a")
    return (str(judged.data_type), str(judged.factuality), str(judged.overall))


def dropped_json(streams: Iterable[StreamReport]) -> dict[str, int]:
    """Number of dropped lines by reason."""
    counts: Counter[Drop] = Counter()
    for stream in streams:
        counts.update(stream.dropped)
    # Zeros as well, because each reason is a column.
    return {drop.value: counts[drop] for drop in Drop}


def two_decimals(value: float | None) -> str:
    """Two decimals, or `n/a`."""
    return "n/a" if value is None else f"{value:.2f}"


def _by_rule(reports: Sequence[InstructReport]) -> ResultTable:
    drops = [drop.value for drop in Drop]
    columns = ("rule", "wording", "head", "long tail", *drops, "calls", "hits", "delta", "ended")
    rows = []
    for rule in reports[0].rules:
        for report in reports:
            streams = list(report.of(rule).values())
            statements = [str(len(stream.statements)) for stream in streams]
            dropped = map(str, dropped_json(streams).values())
            calls, hits = sum(stream.calls for stream in streams), sum(stream.hits for stream in streams)
            # Head and long tail usually end for the same reason, which is then named once.
            end = "; ".join(dict.fromkeys(stream.end for stream in streams))
            wording = str(report.settings.wording)
            rows.append(
                (rule, wording, *statements, *dropped, str(calls), str(hits), two_decimals(report.delta(rule)), end)
            )
    return ResultTable(f"Statements by instruction only, {reports[0].model}", columns, rows)


def _by_wording(reports: Sequence[InstructReport]) -> ResultTable:
    rows = []
    for report in reports:
        wording = report.settings.wording
        rows.append((str(wording), long_tail_wording(wording, _NAMES), two_decimals(report.mean_delta)))
    return ResultTable("Mean delta by wording (LINK, figure 13)", ("wording", "", "mean delta"), rows)


def _accuracy(reports: Sequence[InstructReport], accuracies: Sequence[JudgedAccuracy]) -> ResultTable:
    rows = []
    # The accuracies come in the same order: head and long tail of each report.
    for (report, distribution), judged in zip(product(reports, Distribution), accuracies, strict=True):
        place = (str(report.settings.wording), DISTRIBUTION_NAMES[distribution])
        rows.append((*place, str(judged.statements), *accuracy_cells(judged)))
    judges = ", ".join(dict.fromkeys(judged.judge for judged in accuracies))
    columns = ("wording", "distribution", "statements", *COLUMNS)
    return ResultTable(f"Accuracy in percent (LINK, table 3), judged by {judges}", columns, rows)
