"""The page of results, in Markdown."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from hapax.evaluation.shared.results import ResultTable, markdown_table
from tools.results.measuring import PartResult, ResultsRun
from tools.results.parts import PARTS

FIGURES = "results"
"""Folder of the figures, beside the page."""

HEADER = """\
# Results with a real model

`make results` writes this page. The model is `{model}`: other people trained it for other purposes. Bad figures are
printed as they are. Intervals are for 95 %. Figures that a paper printed are in tables of their own, because its models
answered other questions.
"""


def write_page(path: Path, run: ResultsRun, results: Mapping[str, PartResult | None]) -> None:
    """Write the page, and copy its figures into a folder beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    paragraphs = [HEADER.format(model=run.model)]
    if run.share < 1:
        paragraphs.append(f"**A trial run on {run.share:.0%} of each sample: do not quote these figures.**\n")
    for part in PARTS:
        result = results[part.name]
        paragraphs.append(f"## {part.title}\n\n{part.reading}\n")
        if result is None:
            paragraphs.append("Not measured yet. The same command goes on with it.\n")
        else:
            paragraphs += _body(result, path, run.folder / "figures")
    seconds = sum(result.seconds for result in results.values() if result is not None)
    paragraphs.append(f"The measurements took {seconds / 60:.0f} minutes in all.\n")
    path.write_text("\n".join(paragraphs), "utf-8")


def _body(result: PartResult, page: Path, figures: Path) -> Iterator[str]:
    findings = result.findings
    if findings.missing:
        yield f"Not measured: {findings.missing}\n"
        return
    for table in findings.measured:
        yield _table(table)
    for name in findings.figures:
        target = page.parent / FIGURES / name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(figures / name, target)
        yield f"![{Path(name).stem}]({FIGURES}/{name})\n"
    for table in findings.printed:
        yield _table(table)
    for note in findings.notes:
        yield f"- {note}"
    if findings.notes:
        yield ""


def _table(table: ResultTable) -> str:
    title = f"{table.title}\n\n" if table.title else ""
    return f"{title}{markdown_table(list(table.columns), table.texts)}\n"
