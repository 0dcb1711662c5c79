"""What a knowledge base holds, as counts, an HTML page or a dataset."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.api.results import Tabular
from hapax.grammar.extras import extras_named

if TYPE_CHECKING:
    from hapax.evaluation.dataset.build import Target
    from hapax.evaluation.dataset.selection import SelectionOptions
    from hapax.evaluation.dataset.summary import DatasetSummary
    from hapax.evaluation.report.build import Report, ReportOptions
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class Contents(Tabular):
    """Counts of a knowledge base, with a row for each of its tables.

    `derived`: statements stored by `derive`, by rule. `calls`: journaled calls by the role of the model.
    `refused`: role, reason and number of the calls that a model refused.
    """

    counts: Mapping[str, int]
    derived: Mapping[str, int]
    calls: Mapping[str, int]
    refused: Sequence[tuple[str, str, int]]
    columns = ("table", "rows")

    def cells(self) -> list[tuple[Any, ...]]:
        """Table and number of rows."""
        return list(self.counts.items())

    def to_json(self) -> dict[str, Any]:
        """All counts as one JSON object."""
        refused = [{"role": role, "reason": reason, "count": count} for role, reason, count in self.refused]
        return {**self.counts, "derived": self.derived, "calls_by_role": self.calls, "refused": refused}


def stats(kb: KnowledgeBase) -> Contents:
    """Count the contents of a knowledge base."""
    return Contents(kb.counts(), kb.derived_counts(), kb.call_counts(), kb.refusals())


@dataclass(frozen=True)
class ReportPage:
    """The HTML page about a run: `html` is its text, `content` its figures and statements as values."""

    content: Report
    html: str

    def write(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<report of run {self.content.heading.run_id}, {len(self.html):,} characters>"

    def _repr_html_(self) -> str:
        """The page in a frame, so that its style stays inside."""
        style = "width:100%;height:40em"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(self.html)}"></iframe>'


@extras_named()
def report(kb: KnowledgeBase, rules: Library | None = None, options: ReportOptions | None = None) -> ReportPage:
    """The HTML page about a run: statements with their proofs, gates, rejected values with the reasons, and cost.

    `rules`: those that derive premises, as for `why`; None: the shipped ones. Needs the extra `evaluation`.
    """
    from hapax.api.operations import load_rules
    from hapax.evaluation.report.build import ReportOptions, build
    from hapax.evaluation.report.page import page

    content = build(kb, load_rules() if rules is None else rules, options or ReportOptions(kb.place))
    return ReportPage(content, page(content))


@extras_named()
def write_dataset(
    kb: KnowledgeBase,
    target: Target | str | Path,
    selection: SelectionOptions | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> DatasetSummary:
    """Write statements as a dataset to a new or empty folder, in all formats, or as a `Target` says.

    `selection`: which statements; None: those of whole searches and imports. `progress` is called with the statements
    written so far and their total. Needs the extra `evaluation`.
    """
    from hapax.evaluation.dataset.build import Target, build
    from hapax.evaluation.dataset.selection import SelectionOptions

    if not isinstance(target, Target):
        target = Target(Path(target))
    return build(kb, target, selection or SelectionOptions(), progress)
