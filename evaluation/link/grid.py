"""The grid of LINK's tables 7 to 10: variants, temperatures and knowledge models, and the instruction-only baseline.

All cells share one journal, so a stopped grid continues with what is missing. Statements are stored in the knowledge
base, for figures and for people's votes. Facts are not: a cell without a critic accepts every value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from hapax.engine.kept_rules import sound_rules
from hapax.engine.search.ranking import KEEP_SHARE
from hapax.engine.search.search import search
from hapax.engine.search.search_report import SearchReport
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.evaluation.link.instruct import Instructed, InstructSettings, instruct
from hapax.evaluation.link.sessions import (
    COLUMNS,
    GRID,
    TABLE_7,
    TABLE_8,
    TABLE_9,
    TABLE_10,
    JudgedAccuracy,
    Jury,
    PrintedTable,
    accuracy,
    accuracy_cells,
    printed_table,
    two_decimals,
)
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.shared.stored_statements import DISTRIBUTION_NAMES
from hapax.grammar.arguments import checked
from hapax.grammar.dependencies import BEAM
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.words import counted
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.records import ASSESSMENTS, PREDICATES, RULES, RUNS, Distribution, Source, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import CRITIC, Models
from hapax.llm_oracle.questions.prompts import LONG_TAIL_WORDINGS
from hapax.llm_oracle.registry import open_roles, open_shared


class AblationVariant(StrEnum):
    """A row of tables 8 and 9; the paper has all but `NO_LIKELIHOOD`, which shows the gate's part alone."""

    FULL = "full"
    NO_CRITIC = "w/o critic"
    NO_LIKELIHOOD = "w/o likelihood"
    NEITHER = "w/o critic+likelihood"

    @property
    def critic(self) -> bool:
        return self in (AblationVariant.FULL, AblationVariant.NO_LIKELIHOOD)

    @property
    def likelihood(self) -> bool:
        return self in (AblationVariant.FULL, AblationVariant.NO_CRITIC)


FULL = AblationVariant.FULL

AUTO = "auto"
"""Judge that is chosen by what is known about the statements; see `Jury`."""

_SEARCH = SearchSettings()


def _some(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("write at least one")
    return values


def _named_once(models: tuple[ModelEntry, ...]) -> tuple[ModelEntry, ...]:
    if len({model.name for model in models}) < len(models):
        raise ValueError("give each model a name of its own")
    return models


Text = Annotated[StrictStr, Field(pattern=r"\S")]
# A whole number stays an int: run ids are hashes of the settings, in which 1 and 1.0 differ.
Number = StrictInt | StrictFloat
Temperature = Annotated[Number, Field(ge=0, le=100)]
Wording = Annotated[StrictInt, Field(ge=1, le=len(LONG_TAIL_WORDINGS))]
Size = Annotated[StrictInt, Field(ge=1, le=100_000)]
Values = Annotated[StrictInt, Field(ge=1, le=1000)]
# Behind the items: a list of faulty items alone is not empty.
Some = AfterValidator(_some)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_Part):
    """A row group of the tables: a knowledge model with its critic and ranker; without these it plays both roles."""

    name: Text
    knowledge: Text
    critic: Text | None = None
    likelihood: Text | None = None


class InstructionBaseline(_Part):
    """Instruction-only generation; the defaults are the paper's. Tables show the first of the wordings."""

    wordings: Annotated[tuple[Wording, ...], Some] = (1,)
    count: Size = 200
    values: Values = 50
    calls: Size = 8


class SearchOptions(_Part):
    """Options of `hapax search`; the serialization aliases are the fields of `SearchSettings`."""

    beam: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = BEAM
    calls: Values = Field(default=_SEARCH.calls_per_question, serialization_alias="calls_per_question")
    values: Values = Field(default=_SEARCH.values_per_call, serialization_alias="values_per_call")
    keep_share: Annotated[Number, Field(gt=0, le=1)] = KEEP_SHARE
    plan: Literal["cheapest", "premise-first", "conclusion-first", "link"] = "cheapest"
    compat: Literal["paper", "released"] | None = None

    def settings(self) -> dict[str, Any]:
        """The options that the file sets, by their names in `SearchSettings`."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class GridConfig(_Part):
    """A grid. `files` empty: the shipped rules; `rules` empty: all of them but definitions.

    `temperature` is that of tables 8 to 10, `temperatures` are the rows of table 7. `baseline` None: none is run.
    """

    models: Annotated[tuple[ModelEntry, ...], Some, AfterValidator(_named_once)]
    files: Annotated[tuple[Path, ...], Some] = ()
    rules: Annotated[tuple[Text, ...], Some] = ()
    variants: Annotated[tuple[AblationVariant, ...], Some] = (FULL, AblationVariant.NO_CRITIC, AblationVariant.NEITHER)
    distributions: Annotated[tuple[Distribution, ...], Some] = tuple(Distribution)
    temperature: Temperature = 0.7
    temperatures: Annotated[tuple[Annotated[Temperature, AfterValidator(float)], ...], Some] = (0.5, 0.7, 1.0)
    baseline: Annotated[
        InstructionBaseline | None, BeforeValidator(lambda value: None if value is False else value)
    ] = InstructionBaseline()
    search: SearchOptions = SearchOptions()
    evaluator: Text = "frequency"
    judge: Text = AUTO
    seed: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = None

    @property
    def model_names(self) -> frozenset[str]:
        """Names of all models in the file."""
        names = {self.evaluator, self.judge}
        for entry in self.models:
            names.update(name for name in (entry.knowledge, entry.critic, entry.likelihood) if name is not None)
        return frozenset(names - {AUTO})


@checked
def read_grid(path: str | Path) -> GridConfig:
    """Read the YAML file of a grid. `load_rules(*grid.files)` reads the rules that it names.

    Raises HapaxError with all faults of the file, each on a line of its own with its key.
    """
    path = Path(path)
    remedy = "A grid is a YAML mapping such as docs/papers/grid.yaml."
    try:
        content = read_yaml(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as fault:
        raise HapaxError(f"{path}: {' '.join(str(fault).split())}.", remedy) from None
    try:
        config = GridConfig.model_validate(content)
    except ValidationError as rejected:
        faults = []
        for error in rejected.errors(include_url=False):
            key = ".".join(map(str, error["loc"])) or "the grid"
            faults.append(f"{path}: {key}: {error['msg']}.")
        raise HapaxError("\n".join(faults), remedy) from None
    # Files stand beside the grid.
    return config.model_copy(update={"files": tuple(path.parent / file for file in config.files)})


@dataclass(frozen=True, slots=True)
class GridCell:
    """A run of the grid. `variant` None: instruction only."""

    model: ModelEntry
    variant: AblationVariant | None
    temperature: float

    def __str__(self) -> str:
        how = self.variant or "instruction only"
        return f"{self.model.name}, {how}, temperature {self.temperature:g}"


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of a cell. `accuracies`: by distribution; that of None is for all statements together.

    `failed`: why it could not run. `cut`: a budget ended it, so its figures are not shown. `note`: a remark.
    """

    cell: GridCell
    statements: Mapping[Distribution, int]
    accuracies: Mapping[Distribution | None, JudgedAccuracy]
    delta: float | None = None
    calls: int = 0
    hits: int = 0
    failed: str = ""
    cut: bool = False
    note: str = ""

    @property
    def outcome(self) -> str:
        """The end of the run, in words."""
        if self.failed:
            return "could not run"
        return "cut by the budget" if self.cut else "done"

    def accuracy(self, distribution: Distribution | None) -> JudgedAccuracy | None:
        """The accuracy to show; None for a cell that was cut or could not run."""
        return None if self.cut or self.failed else self.accuracies.get(distribution)


@dataclass(frozen=True, slots=True)
class GridResult:
    """Results of all cells."""

    config: GridConfig
    cells: Mapping[GridCell, CellResult]
    budget: str | None = None

    @property
    def exit_code(self) -> int:
        """1 if a cell could not run."""
        return int(any(result.failed for result in self.cells.values()))

    def to_result(self) -> ExperimentResult:
        """Each of tables 7 to 10 in the paper's layout, followed by the paper's own; and the calls of each cell."""
        variants = self._variants()
        ours = {
            7: self._table(TABLE_7, self._temperatures(), None),
            8: self._table(TABLE_8, variants, Distribution.LONG_TAIL),
            9: self._table(TABLE_9, variants, Distribution.HEAD),
            10: self._table(TABLE_10, self._knowledge_models(), Distribution.LONG_TAIL),
        }
        tables: list[ResultTable] = []
        rows_by_table: dict[str, list[dict[str, object]]] = {}
        for number, table in ours.items():
            tables += [table, printed_table(GRID[number])]
            rows_by_table[str(number)] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        figures = {
            "cells": [_cell_json(result) for result in self.cells.values()],
            "tables": rows_by_table,
            "links_paper": {str(number): printed.rows for number, printed in GRID.items()},
            "stopped": self.budget,
        }
        notes = []
        for result in self.cells.values():
            notes += [f"{result.cell}: {text}" for text in (result.failed, result.note) if text]
        if self.budget:
            notes.append(self.budget)
        return ExperimentResult([*tables, self._overview()], figures, notes=notes)

    def _table(
        self, printed: PrintedTable, cells: Sequence[tuple[str, GridCell]], distribution: Distribution | None
    ) -> ResultTable:
        accuracies = [(label, self.cells[cell].accuracy(distribution)) for label, cell in cells]
        judges = dict.fromkeys(judged.judge for _, judged in accuracies if judged is not None)
        part = "head and long tail together" if distribution is None else DISTRIBUTION_NAMES[distribution]
        judged_by = f", judged by {', '.join(judges)}" if judges else ""
        title = f"Table {printed.number}, on our rules and models: {part}{judged_by}"
        rows = [(label, *accuracy_cells(judged)) for label, judged in accuracies]
        return ResultTable(title, (printed.first, *COLUMNS), rows)

    def _temperatures(self) -> list[tuple[str, GridCell]]:
        first = self.config.models[0]
        cells = []
        for temperature in dict.fromkeys(self.config.temperatures):
            # As in the paper: 1.0, not 1; but not 0.2 for 0.25.
            label = f"{temperature:.1f}" if temperature == round(temperature, 1) else f"{temperature:g}"
            cells.append((label, GridCell(first, FULL, temperature)))
        return cells

    def _variants(self) -> list[tuple[str, GridCell]]:
        cells = []
        for model in self.config.models:
            # In the order of the tables, whatever order the file has.
            for variant in [variant for variant in AblationVariant if variant in self.config.variants]:
                label = model.name if variant is FULL else f"    {variant}"
                cells.append((label, GridCell(model, variant, self.config.temperature)))
        return cells

    def _knowledge_models(self) -> list[tuple[str, GridCell]]:
        models, temperature = self.config.models, self.config.temperature
        # The paper's order: instruction only above the searches.
        zero_shot = [(f"Zero-shot {model.knowledge}", GridCell(model, None, temperature)) for model in models]
        searched = [(model.name, GridCell(model, FULL, temperature)) for model in models]
        return [(label, cell) for label, cell in (*zero_shot, *searched) if cell in self.cells]

    def _overview(self) -> ResultTable:
        rows = []
        for result in self.cells.values():
            statements = [str(result.statements.get(distribution, 0)) for distribution in Distribution]
            delta = "n/a" if result.cut else two_decimals(result.delta)
            rows.append((str(result.cell), *statements, delta, str(result.calls), str(result.hits), result.outcome))
        columns = ("cell", "head", "long tail", "delta", "calls", "hits", "outcome")
        return ResultTable("Cells", columns, rows)


@dataclass
class GridRun:
    """A run of a grid on a knowledge base. Models, rules and journal are those of `opening`."""

    config: GridConfig
    kb: KnowledgeBase
    opening: OpeningOptions

    def __post_init__(self) -> None:
        # Shared by all cells, so that each model is loaded once.
        self._opened = OpenedModels(self.opening)
        self._budget: str | None = None

    def result(self, progress: Callable[[int, int, GridCell], None] | None = None) -> GridResult:
        """Run every cell. `progress` is called with the cell's number, the number of cells, and the cell."""
        cells = self.cells()
        results: dict[GridCell, CellResult] = {}
        for place, cell in enumerate(cells, 1):
            if progress is not None:
                progress(place, len(cells), cell)
            results[cell] = self._run(cell)
        return GridResult(self.config, results, self._budget)

    def cells(self) -> tuple[GridCell, ...]:
        """All cells of the tables, each once: cells that tables share run once."""
        config = self.config
        cells = []
        for model in config.models:
            # Table 10 shows the full variant, even if the file does not list it.
            cells += [GridCell(model, variant, config.temperature) for variant in (FULL, *config.variants)]
        cells += [GridCell(config.models[0], FULL, temperature) for temperature in config.temperatures]
        if config.baseline:
            cells += [GridCell(model, None, config.temperature) for model in config.models]
        return tuple(dict.fromkeys(cells))

    @cached_property
    def _library(self) -> Library:
        return self.opening.library or Library()

    @cached_property
    def _rules(self) -> list[Rule]:
        library, names = self._library, self.config.rules
        if names:
            return [library.rule(name) for name in names]
        return [rule for rule in library.rules if not library.is_definition(rule) and rule.withdrawn is None]

    @cached_property
    def _journal(self) -> Journal:
        return self.opening.journal or Journal(self.kb)

    @cached_property
    def _jury(self) -> Jury:
        judge = self.config.judge
        critic = None if judge == AUTO else JournaledCritic(open_shared(self._opened, judge, CRITIC), self._journal)
        return Jury(self.kb, self._library, critic)

    def _run(self, cell: GridCell) -> CellResult:
        """Run a cell. If it cannot run, its result says why, and the other cells continue."""
        before = self._journal.total
        try:
            baseline = self.config.baseline or InstructionBaseline()
            result = self._search(cell, cell.variant) if cell.variant else self._instruct(cell, baseline)
        except BudgetReached as reached:  # a HapaxError itself, so it comes first
            # The first message tells why; later cells only meet the same budget.
            self._budget = self._budget or str(reached)
            result = CellResult(cell, {}, {}, cut=True)
        except (HapaxError, OSError) as fault:
            result = CellResult(cell, {}, {}, failed=str(fault))
        # The journal counts over all cells.
        after = self._journal.total
        return replace(result, calls=after.calls - before.calls, hits=after.hits - before.hits)

    def _search(self, cell: GridCell, variant: AblationVariant) -> CellResult:
        models = self._models(cell.model)
        settings = SearchSettings(
            distributions=tuple(end for end in Distribution if end in self.config.distributions),
            temperature=cell.temperature,
            seed=self.opening.seed,
            critic=variant.critic,
            # "random" keeps as many beams as the likelihood gate would, so that the variants' statements can be
            # compared.
            likelihood="model" if variant.likelihood else "random",
            measure=Measure.PAPER.value,
            **self.config.search.settings(),
        )
        report = self._searched(models, settings)
        self._budget = self._budget or report.budget
        # There is nothing to judge then; the reason becomes the outcome of the cell.
        if not report.searched:
            raise HapaxError(_skipped(report))
        accuracies = self._accuracies(report.statements, models, searched=True)
        note = _skipped(report) if report.skipped else ""
        return CellResult(
            cell, _counts(report.statements), accuracies, report.mean_delta, cut=report.status == "budget", note=note
        )

    def _searched(self, models: Models, settings: SearchSettings) -> SearchReport:
        """Search with a store of its own, in memory, which begins with the given facts of the knowledge base.

        Kept are statements alone: facts that no critic has judged must not reach the knowledge base.
        """
        with KnowledgeBase(None) as temporary:
            temporary.add_facts(fact for fact in self.kb.facts() if fact.source is Source.GIVEN)
            report = search(SearchJob(self._library, self._rules, temporary, models, settings, self._journal))
            texts = [statement.text for statement in report.statements]
            # One transaction: after a kill, a run is there with all its statements or not at all.
            with self.kb.transaction():
                for table in (RUNS, RULES, PREDICATES):
                    self.kb.add(table, temporary.select(table))
                self.kb.add_statements(report.statements)
                scores = temporary.assessments(texts, "log_likelihood", models.evaluator.identity.title)
                self.kb.add(ASSESSMENTS, scores.values())
        return report

    def _instruct(self, cell: GridCell, baseline: InstructionBaseline) -> CellResult:
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
        # Tables show the first wording; the others are stored for figure 13.
        first = reports[0]
        budgets = [report.budget for report in reports if report.budget]
        self._budget = self._budget or (budgets[0] if budgets else None)
        accuracies = self._accuracies(first.statements, models, searched=False)
        note = "" if first.statements else "no reply held a row in the format that was asked for."
        return CellResult(
            cell, _counts(first.statements), accuracies, first.mean_delta, cut=bool(first.budget), note=note
        )

    def _accuracies(
        self, statements: Sequence[StatementRecord], models: Models, searched: bool
    ) -> dict[Distribution | None, JudgedAccuracy]:
        judge = self._jury.judge(statements, models.knowledge, searched)
        # Accuracies of some of the statements would look like those of all.
        if self._jury.budget:
            raise self._jury.budget
        # None: head and long tail together, for table 7.
        accuracies: dict[Distribution | None, JudgedAccuracy] = {None: accuracy(statements, judge)}
        for distribution in self.config.distributions:
            part = [statement for statement in statements if statement.distribution is distribution]
            accuracies[distribution] = accuracy(part, judge)
        return accuracies

    def _models(self, entry: ModelEntry) -> Models:
        return open_roles(self._opened, entry.knowledge, entry.critic, entry.likelihood, self.config.evaluator)


@checked
@extras_named()
def evaluate_grid(
    rules: Library,
    kb: KnowledgeBase,
    grid: GridConfig,
    opening: OpeningOptions | None = None,
    *,
    progress: Callable[[int, int, GridCell], None] | None = None,
) -> Evaluation[GridResult]:
    """Run every cell of LINK's tables 7 to 10. A cell that cannot run says why, and the others go on.

    `opening`: options of opening the models; its journal, if any, has the budget. `progress` is called with the number
    of a cell, the number of cells, and the cell.
    """
    # A simulated model makes its world from the rules.
    opening = replace(opening or OpeningOptions(), library=sound_rules(rules))
    if grid.seed is not None:  # before the caller's seed, so that the file alone reproduces its grid
        opening = replace(opening, seed=grid.seed)
    return Evaluation.of(GridRun(grid, kb, opening).result(progress))


def _counts(statements: Sequence[StatementRecord]) -> dict[Distribution, int]:
    counts = dict.fromkeys(Distribution, 0)
    for statement in statements:
        counts[statement.distribution] += 1
    return counts


def _skipped(report: SearchReport) -> str:
    """A note on the rules that were not searched, with the predicates that the first of them needs."""
    skipped = [(rule.rule, rule.skipped) for rule in report.rules if rule.skipped is not None]
    if not skipped:
        return "no rule was searched."
    rule, reason = skipped[0]
    rules = f"{counted(len(skipped), 'rule was', 'rules were')} skipped, such as {rule}"
    return f"{rules}: {reason.model} does not know {', '.join(reason.unknown)}."


def _cell_json(result: CellResult) -> dict[str, Any]:
    cell = result.cell
    accuracies = {}
    for distribution in result.accuracies:
        judged = result.accuracy(distribution)
        if judged is not None:
            accuracies["all" if distribution is None else distribution.value] = judged
    return {
        "model": cell.model.model_dump(),
        "variant": cell.variant or "instruction only",
        "temperature": cell.temperature,
        "statements": result.statements,
        "accuracy": accuracies,
        "delta": None if result.cut else result.delta,
        "calls": result.calls,
        "hits": result.hits,
        "outcome": result.outcome,
        "failed": result.failed or None,
        "note": result.note or None,
    }
