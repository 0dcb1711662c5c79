"""The grid of LINK's tables 7 to 10: variants, temperatures and knowledge models, and the instruction-only baseline.

Every cell goes through one journal, so a grid that was stopped goes on with what is missing. Statements are kept in the
knowledge base, for the figures and for people's votes; facts are not, since a cell without critic takes every value for
true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from engine.report import SearchReport, SearchSettings
from evaluation.ablation import VARIANTS, Experiment, Variant, search_variant
from evaluation.baselines.config import Baseline, GridConfig, ModelEntry
from evaluation.baselines.instruct import Instructed, InstructSettings, instruct
from evaluation.baselines.jury import Jury
from evaluation.baselines.paper import COLUMNS, GRID, TABLE_7, TABLE_8, TABLE_9, TABLE_10, Printed
from evaluation.baselines.tables import accuracy_cells, number, printed_table
from evaluation.judging import Accuracy, accuracy
from evaluation.probing.tables import SPOKEN, Page
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from grammar.words import counted
from kb.records import Distribution, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, BudgetReached, Journal, JournaledCritic
from llm_oracle.protocols import Models
from llm_oracle.registry import Opened, OpeningOptions, open_beside

FULL = VARIANTS[0]
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the grid. `variant` None: instruction only."""

    model: ModelEntry
    variant: Variant | None
    temperature: float

    def __str__(self) -> str:
        how = "instruction only" if self.variant is None else self.variant.name
        return f"{self.model.name}, {how}, temperature {self.temperature:g}"


@dataclass(frozen=True, slots=True)
class CellResult:
    """What a cell brought. `accuracies`: by distribution, and None: all together.

    `failed`: why it could not run; `cut`: the budget ended it, so its figures are not told; `note`: what else to know.
    """

    cell: Cell
    statements: Mapping[Distribution, int]
    accuracies: Mapping[Distribution | None, Accuracy]
    delta: float | None = None
    calls: int = 0
    hits: int = 0
    failed: str = ""
    cut: bool = False
    note: str = ""

    def accuracy(self, distribution: Distribution | None) -> Accuracy | None:
        """None where there is nothing to tell."""
        return None if self.cut or self.failed else self.accuracies.get(distribution)


@dataclass(frozen=True, slots=True)
class GridResult:
    """All cells by what they are."""

    config: GridConfig
    cells: Mapping[Cell, CellResult]
    budget: str | None = None

    @property
    def exit_code(self) -> int:
        """1 where a cell could not run."""
        return int(any(one.failed for one in self.cells.values()))

    def pages(self) -> Iterator[Page]:
        """Each of tables 7 to 10 in the paper's layout, the paper's own behind it; and what the cells took."""
        for printed, page in self._tables():
            yield page
            yield printed_table(printed)
        yield self._overview()

    def remarks(self) -> Iterator[str]:
        """What could not be told, and why."""
        for one in self.cells.values():
            for told in (one.failed, one.note):
                if told:
                    yield f"{one.cell}: {told}"
        if self.budget:
            yield self.budget

    def to_json(self) -> dict[str, Any]:
        """Cells and tables; the paper's figures stand apart."""
        return {
            "cells": [_cell_json(one) for one in self.cells.values()],
            "tables": {
                str(printed.number): [dict(zip(page.columns, row, strict=True)) for row in page.rows]
                for printed, page in self._tables()
            },
            "links_paper": {str(one.number): [list(row) for row in one.rows] for one in GRID.values()},
            "stopped": self.budget,
        }

    def _tables(self) -> Iterator[tuple[Printed, Page]]:
        yield TABLE_7, self._page(TABLE_7, self._temperatures(), None)
        for printed, distribution in ((TABLE_8, Distribution.LONG_TAIL), (TABLE_9, Distribution.HEAD)):
            yield printed, self._page(printed, self._variants(), distribution)
        yield TABLE_10, self._page(TABLE_10, self._knowledge_models(), Distribution.LONG_TAIL)

    def _page(self, printed: Printed, rows: Sequence[tuple[str, Cell]], distribution: Distribution | None) -> Page:
        found = [(label, self.cells[cell].accuracy(distribution)) for label, cell in rows]
        judges = dict.fromkeys(one.judge for _, one in found if one is not None)
        which = "head and long tail together" if distribution is None else SPOKEN[distribution]
        judged = f", judged by {', '.join(judges)}" if judges else ""
        title = f"Table {printed.number}, on our rules and models: {which}{judged}"
        return Page(title, (printed.first, *COLUMNS), [(label, *accuracy_cells(one)) for label, one in found])

    def _temperatures(self) -> list[tuple[str, Cell]]:
        first = self.config.models[0]
        return [
            (f"{each:.1f}" if each == round(each, 1) else f"{each:g}", Cell(first, FULL, each))
            for each in self.config.temperatures
        ]

    def _variants(self) -> list[tuple[str, Cell]]:
        temperature = self.config.temperature
        return [
            (model.name if one == FULL else f"    {one.name}", Cell(model, one, temperature))
            for model in self.config.models
            for one in self.config.variants
        ]

    def _knowledge_models(self) -> list[tuple[str, Cell]]:
        models, temperature = self.config.models, self.config.temperature
        zero_shot = [(f"Zero-shot {one.knowledge}", Cell(one, None, temperature)) for one in models]
        searched = [(one.name, Cell(one, FULL, temperature)) for one in models]
        return [(label, cell) for label, cell in (*zero_shot, *searched) if cell in self.cells]

    def _overview(self) -> Page:
        rows = [
            (
                str(one.cell),
                *(str(one.statements.get(each, 0)) for each in Distribution),
                "n/a" if one.cut else number(one.delta),
                str(one.calls),
                str(one.hits),
                _outcome(one),
            )
            for one in self.cells.values()
        ]
        return Page("Cells", ("cell", "head", "long tail", "delta", "calls", "hits", "outcome"), rows)


@dataclass
class GridRun:
    """A grid on a knowledge base. Models, rules and journal are those of `opening`."""

    config: GridConfig
    kb: KnowledgeBase
    opening: OpeningOptions

    def __post_init__(self) -> None:
        self._opened = Opened(self.opening)
        self._budget: str | None = None

    def result(self, progress: Callable[[int, int, Cell], None] | None = None) -> GridResult:
        """Run every cell. `progress` is told the cell's number, how many there are, and the cell."""
        cells = self.cells()
        found: dict[Cell, CellResult] = {}
        for place, cell in enumerate(cells, 1):
            if progress is not None:
                progress(place, len(cells), cell)
            found[cell] = self._ran(cell)
        return GridResult(self.config, found, self._budget)

    def cells(self) -> tuple[Cell, ...]:
        """Every cell once: what tables share runs once."""
        config = self.config
        wanted = [
            *(Cell(model, one, config.temperature) for model in config.models for one in (FULL, *config.variants)),
            *(Cell(config.models[0], FULL, each) for each in config.temperatures),
            *(Cell(model, None, config.temperature) for model in config.models if config.baseline),
        ]
        return tuple(dict.fromkeys(wanted))

    @cached_property
    def _library(self) -> Library:
        return self.opening.library or Library()

    @cached_property
    def _rules(self) -> list[Rule]:
        library, names = self._library, self.config.rules
        return [library.rule(name) for name in names] or [
            one for one in library.rules if not library.is_definition(one)
        ]

    @cached_property
    def _journal(self) -> Journal:
        return self.opening.journal or Journal(self.kb)

    @cached_property
    def _jury(self) -> Jury:
        judge = self.config.judge
        critic = None if judge == AUTO else JournaledCritic(open_beside(self._opened, judge, CRITIC), self._journal)
        return Jury(self.kb, self._library, critic)

    def _ran(self, cell: Cell) -> CellResult:
        """A cell's result; one that cannot run says why, and the others go on."""
        before = self._journal.total
        try:
            baseline = self.config.baseline or Baseline()
            found = self._searched(cell, cell.variant) if cell.variant else self._instructed(cell, baseline)
        except BudgetReached as reached:
            self._budget = self._budget or str(reached)
            found = CellResult(cell, {}, {}, cut=True)
        except (HapaxError, OSError) as fault:
            found = CellResult(cell, {}, {}, failed=str(fault))
        after = self._journal.total
        return replace(found, calls=after.calls - before.calls, hits=after.hits - before.hits)

    def _searched(self, cell: Cell, variant: Variant) -> CellResult:
        models = self._models(cell.model)
        settings = SearchSettings(
            distributions=self.config.distributions,
            temperature=cell.temperature,
            seed=self.opening.seed,
            **self.config.search,
        )
        experiment = Experiment(self._library, self._rules, models, settings, keep=True)
        report = search_variant(experiment, variant, self.kb, self._journal, None)
        self._budget = self._budget or report.budget
        if not report.searched:
            raise HapaxError(_skipped(report))
        accuracies = self._accuracies(report.statements, models, searched=True)
        note = _skipped(report) if report.skipped else ""
        return CellResult(
            cell, _counts(report.statements), accuracies, report.mean_delta, cut=report.status == "budget", note=note
        )

    def _instructed(self, cell: Cell, baseline: Baseline) -> CellResult:
        models = self._models(cell.model)
        instructed = Instructed(self._library, self._rules, models.knowledge, models.evaluator)
        settings = InstructSettings(
            count=baseline.count,
            values_per_call=baseline.values,
            calls=baseline.calls,
            temperature=cell.temperature,
            seed=self.opening.seed,
        )
        reports = [
            instruct(instructed, self.kb, replace(settings, wording=wording), self._journal)
            for wording in baseline.wordings
        ]
        first = reports[0]
        budgets = [one.budget for one in reports if one.budget]
        self._budget = self._budget or next(iter(budgets), None)
        accuracies = self._accuracies(first.statements, models, searched=False)
        note = "" if first.statements else "no reply held a row in the format that was asked for."
        return CellResult(
            cell, _counts(first.statements), accuracies, first.mean_delta, cut=bool(first.budget), note=note
        )

    def _accuracies(
        self, statements: Sequence[StatementRecord], models: Models, searched: bool
    ) -> dict[Distribution | None, Accuracy]:
        judge = self._jury.judge(statements, models.knowledge, searched)
        if self._jury.budget:
            raise self._jury.budget
        parts = {each: [one for one in statements if one.distribution is each] for each in self.config.distributions}
        return {
            None: accuracy(statements, judge),
            **{each: accuracy(several, judge) for each, several in parts.items()},
        }

    def _models(self, entry: ModelEntry) -> Models:
        opened = self._opened
        return Models(
            open_beside(opened, entry.knowledge, KNOWLEDGE),
            open_beside(opened, entry.critic or entry.knowledge, CRITIC),
            open_beside(opened, entry.likelihood or entry.knowledge, LIKELIHOOD),
            open_beside(opened, self.config.evaluator, EVALUATOR),
        )


def _counts(statements: Sequence[StatementRecord]) -> dict[Distribution, int]:
    return {each: sum(one.distribution is each for one in statements) for each in Distribution}


def _skipped(report: SearchReport) -> str:
    """Which rules were not searched, and what the model lacks for the first of them."""
    lacks = [(one.rule, one.skipped) for one in report.rules if one.skipped is not None]
    if not lacks:
        return "no rule was searched."
    rule, first = lacks[0]
    told = f"{counted(len(lacks), 'rule was', 'rules were')} skipped, such as {rule}"
    return f"{told}: {first.model} does not know {', '.join(first.unknown)}."


def _outcome(one: CellResult) -> str:
    if one.failed:
        return "could not run"
    return "cut by the budget" if one.cut else "done"


def _cell_json(one: CellResult) -> dict[str, Any]:
    return {
        "model": asdict(one.cell.model),
        "variant": "instruction only" if one.cell.variant is None else one.cell.variant.name,
        "temperature": one.cell.temperature,
        "statements": {each.value: count for each, count in one.statements.items()},
        "accuracy": {
            "all" if each is None else each.value: asdict(found)
            for each in one.accuracies
            if (found := one.accuracy(each)) is not None
        },
        "delta": None if one.cut or one.delta is None or not math.isfinite(one.delta) else one.delta,
        "calls": one.calls,
        "hits": one.hits,
        "outcome": _outcome(one),
        "failed": one.failed or None,
        "note": one.note or None,
    }
