"""Figure of the study of the long tail: the AUC of every split by every judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hapax.evaluation.link.longtail import LongTailStudy
from hapax.evaluation.shared.drawing import single, write_figure
from hapax.evaluation.shared.results import ResultTable

DARK = 0.25
"""Distance of an AUC from chance above which its cell is too dark for black letters."""


def write_long_tail_figure(study: LongTailStudy, folder: Path) -> tuple[Path, ...]:
    """Write `long-tail.png`, `.svg` and `.csv`: a row for each split, a column for each judge.

    A colour is the mean AUC over rules, white at chance. Circular judgements are crossed out, for they are no evidence.
    """
    columns = ("ranked by", "measure", "judge", "by", "auc", "low", "high", "rules", "circular")
    rows = []
    for split in study.judged:
        auc = split.auc
        names = (split.ranker, split.measure, split.judge, split.judged_by.value)
        rows.append((*names, auc.value, auc.low, auc.high, auc.count, split.circular))
    splits = list(dict.fromkeys((split.ranker, split.measure) for split in study.judged))
    judges = list(dict.fromkeys((split.judge, split.judged_by) for split in study.judged))
    size = (2.5 + 0.7 * len(judges), 1.5 + 0.22 * len(splits))

    def draw(axes: Any) -> None:
        cells = np.full((len(splits), len(judges)), np.nan)
        for split in study.judged:
            place = splits.index((split.ranker, split.measure)), judges.index((split.judge, split.judged_by))
            cells[place] = split.auc.value
            if np.isnan(split.auc.value):
                continue
            row, column = place
            ink = "white" if abs(split.auc.value - 0.5) > DARK else "black"
            axes.text(column, row, f"{split.auc.value:.2f}", ha="center", va="center", color=ink)
            if split.circular:
                axes.plot((column - 0.5, column + 0.5), (row + 0.5, row - 0.5), color=ink, linewidth=0.5)
        axes.imshow(cells, cmap="PuOr", vmin=0, vmax=1, aspect="auto")
        axes.set_xticks(
            range(len(judges)), [f"{judge} {measure}" for judge, measure in judges], rotation=45, ha="right"
        )
        axes.set_yticks(range(len(splits)), [f"{ranker} {measure}".strip() for ranker, measure in splits])
        axes.set_title("AUC of head against long tail; crossed out: circular")

    return write_figure(folder / "long-tail", single(size, draw), ResultTable("", columns, rows))
