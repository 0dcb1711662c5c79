"""The grid of LINK's tables 7 to 10: variants, temperatures and knowledge models, and the instruction-only baseline.

All cells share one journal, so a stopped grid continues with what is missing. Statements are stored in the knowledge
base, for figures and for people's votes. Facts are not: a cell without a critic accepts every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import product
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
from hapax.evaluation.link.judging import COLUMNS, PAPER, UNKNOWN_CELLS, JudgedAccuracy, judge_of, printed_table
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.dependencies import BEAM
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.words import counted, two_decimals
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
    """Result of a cell. `accuracies`: by distribution, or "all" for both together; none unless the cell is done.

    `failed`: why it could not run. `cut`: a budget ended it. `note`: a remark.
    """

    cell: GridCell
    statements: Mapping[Distribution, int] = field(default_factory=lambda: dict.fromkeys(Distribution, 0))
    accuracies: Mapping[str, JudgedAccuracy] = field(default_factory=dict)
    delta: float | None = None
    calls: int = 0
    hits: int = 0
    failed: str | None = None
    cut: bool = False
    note: str | None = None

    @property
    def outcome(self) -> str:
        """The end of the run, in words."""
        return "could not run" if self.failed else "cut by the budget" if self.cut else "done"


_TABLES = {
    7: ("all", "head and long tail together"),
    8: (Distribution.LONG_TAIL, "long tail"),
    9: (Distribution.HEAD, "head"),
    10: (Distribution.LONG_TAIL, "long tail"),
}
"""The part of the statements that each table counts, and its name."""


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

    def evaluation(self) -> Evaluation[GridResult]:
        """Each of tables 7 to 10 in the paper's layout, followed by the paper's own; and the calls of each cell."""
        tables: list[ResultTable] = []
        rows_by_table: dict[str, list[dict[str, object]]] = {}
        for number in _TABLES:
            table = self._table(number)
            tables += [table, printed_table(number)]
            rows_by_table[str(number)] = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        cells, rows, notes = [], [], []
        for cell, result in self.cells.items():
            notes += [f"{cell}: {text}" for text in (result.failed, result.note) if text]
            counts = (*result.statements.values(), two_decimals(result.delta), result.calls, result.hits)
            rows.append((str(cell), *counts, result.outcome))
            figures = {name: getattr(result, name) for name in ("statements", "delta", "calls", "hits", "outcome")}
            kind = {"variant": cell.variant or "instruction only", "temperature": cell.temperature}
            ends = {"accuracy": result.accuracies, "failed": result.failed, "note": result.note}
            cells.append({"model": cell.model.model_dump(), **kind, **figures, **ends})
        overview = ResultTable("Cells", ("cell", "head", "long tail", "delta", "calls", "hits", "outcome"), rows)
        shown = {
            "cells": cells,
            "tables": rows_by_table,
            "links_paper": {str(number): PAPER["accuracy"][number]["rows"] for number in _TABLES},
            "stopped": self.budget,
        }
        return Evaluation(self, [*tables, overview], shown, notes=[*notes, *([self.budget] if self.budget else [])])

    def _table(self, number: int) -> ResultTable:
        part, name = _TABLES[number]
        rows = []
        judges: dict[str, None] = {}
        for label, cell in self._rows(number):
            judged = self.cells[cell].accuracies.get(part)
            rows.append((label, *(judged.cells if judged else UNKNOWN_CELLS)))
            if judged:
                judges[judged.judge] = None
        judged_by = f", judged by {', '.join(judges)}" if judges else ""
        title = f"Table {number}, on our rules and models: {name}{judged_by}"
        return ResultTable(title, (PAPER["accuracy"][number]["first"], *COLUMNS), rows)

    def _rows(self, number: int) -> Iterator[tuple[str, GridCell]]:
        """Labels and cells of a table's rows, in the order of the paper's."""
        models, usual = self.config.models, self.config.temperature
        if number == 7:
            for temperature in dict.fromkeys(self.config.temperatures):
                # As in the paper: 1.0, not 1; but not 0.2 for 0.25.
                label = f"{temperature:.1f}" if temperature == round(temperature, 1) else f"{temperature:g}"
                yield label, GridCell(models[0], FULL, temperature)
        elif number == 10:
            for model in models if self.config.baseline else ():
                yield f"Zero-shot {model.knowledge}", GridCell(model, None, usual)
            yield from ((model.name, GridCell(model, FULL, usual)) for model in models)
        else:
            for model, variant in product(models, AblationVariant):
                if variant in self.config.variants:
                    yield model.name if variant is FULL else f"    {variant}", GridCell(model, variant, usual)


@dataclass
class GridRun:
    """A run of a grid on a knowledge base. Models, rules and journal are those of `opening`."""

    config: GridConfig
    kb: KnowledgeBase
    opening: OpeningOptions

    def __post_init__(self) -> None:
        # Shared by all cells, so that each model is loaded once.
        self._opened = OpenedModels(self.opening)
        self._journal = self.opening.journal or Journal(self.kb)
        self._library = self.opening.library or Library()
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
        # Table 10 shows the full variant, even if the file does not list it.
        ablated = product(config.models, (FULL, *config.variants))
        cells = [GridCell(model, variant, config.temperature) for model, variant in ablated]
        cells += [GridCell(config.models[0], FULL, temperature) for temperature in config.temperatures]
        if config.baseline:
            cells += [GridCell(model, None, config.temperature) for model in config.models]
        return tuple(dict.fromkeys(cells))

    def _run(self, cell: GridCell) -> CellResult:
        """Run a cell. If it cannot run, its result says why, and the other cells continue."""
        before = self._journal.total
        try:
            entry = cell.model
            roles = (entry.knowledge, entry.critic, entry.likelihood, self.config.evaluator)
            models = open_roles(self._opened, *roles)
            result = self._search(cell, cell.variant, models) if cell.variant else self._instruct(cell, models)
        except BudgetReached as reached:  # a HapaxError itself, so it comes first
            # The first message tells why; later cells only meet the same budget.
            self._budget = self._budget or str(reached)
            result = CellResult(cell, cut=True)
        except (HapaxError, OSError) as fault:
            result = CellResult(cell, failed=str(fault))
        # The journal counts over all cells.
        after = self._journal.total
        return replace(result, calls=after.calls - before.calls, hits=after.hits - before.hits)

    def _search(self, cell: GridCell, variant: AblationVariant, models: Models) -> CellResult:
        """Search with a store of its own, in memory, which begins with the given facts of the knowledge base.

        Kept are statements alone: facts that no critic has judged must not reach the knowledge base.
        """
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
        with KnowledgeBase(None) as temporary:
            temporary.add_facts(fact for fact in self.kb.facts() if fact.source is Source.GIVEN)
            report = search(SearchJob(self._library, self._rules(), temporary, models, settings, self._journal))
            texts = [statement.text for statement in report.statements]
            # One transaction: after a kill, a run is there with all its statements or not at all.
            with self.kb.transaction():
                for table in (RUNS, RULES, PREDICATES):
                    self.kb.add(table, temporary.select(table))
                self.kb.add_statements(report.statements)
                scores = temporary.assessments(texts, "log_likelihood", models.evaluator.identity.title)
                self.kb.add(ASSESSMENTS, scores.values())
        self._budget = self._budget or report.budget
        # There is nothing to judge then; the reason becomes the outcome of the cell.
        if not report.searched:
            raise HapaxError(_skipped(report) or "")
        result = self._judged(cell, report.statements, models, cut=report.status == "budget")
        return replace(result, delta=None if result.cut else report.mean_delta, note=_skipped(report))

    def _rules(self) -> list[Rule]:
        library, names = self._library, self.config.rules
        if names:
            return [library.rule(name) for name in names]
        return [rule for rule in library.rules if not library.is_definition(rule) and rule.withdrawn is None]

    def _instruct(self, cell: GridCell, models: Models) -> CellResult:
        baseline = self.config.baseline or InstructionBaseline()
        instructed = Instructed(self._library, self._rules(), models.knowledge, models.evaluator)
        settings = InstructSettings(
            count=baseline.count,
            values_per_call=baseline.values,
            calls=baseline.calls,
            temperature=cell.temperature,
            seed=self.opening.seed,
        )
        reports = []
        for wording in baseline.wordings:
            reports.append(instruct(instructed, self.kb, replace(settings, wording=wording), self._journal))
            self._budget = self._budget or reports[-1].budget
        # Tables show the first wording; the others are stored for figure 13.
        first = reports[0]
        result = self._judged(cell, first.statements, models, cut=bool(first.budget))
        note = None if first.statements else "no reply held a row in the format that was asked for."
        return replace(result, delta=None if result.cut else first.mean_delta, note=note)

    def _judged(
        self, cell: GridCell, statements: Sequence[StatementRecord], models: Models, *, cut: bool
    ) -> CellResult:
        """Counts and accuracies of a cell; none if it was cut: those of a part would look like those of all."""
        by_part = {part: [record for record in statements if record.distribution is part] for part in Distribution}
        counts = {part: len(records) for part, records in by_part.items()}
        if cut:
            return CellResult(cell, counts, cut=True)
        critic = None
        if self.config.judge != AUTO:
            critic = JournaledCritic(open_shared(self._opened, self.config.judge, CRITIC), self._journal)
        searched = cell.variant is not None
        judge = judge_of(self.kb, self._library, statements, models.knowledge, critic=critic, searched=searched)
        if judge.budget:
            raise judge.budget
        accuracies = {"all": JudgedAccuracy.of(statements, judge)}
        for part in self.config.distributions:
            accuracies[part.value] = JudgedAccuracy.of(by_part[part], judge)
        return CellResult(cell, counts, accuracies)


@checked
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
    return GridRun(grid, kb, opening).result(progress).evaluation()


def _skipped(report: SearchReport) -> str | None:
    """A note on the rules that were not searched, and on the predicates that the first of them needs."""
    skipped = [(rule.rule, rule.skipped) for rule in report.rules if rule.skipped is not None]
    if not skipped:
        return None if report.searched else "no rule was searched."
    rule, reason = skipped[0]
    rules = f"{counted(len(skipped), 'rule was', 'rules were')} skipped, such as {rule}"
    return f"{rules}: {reason.model} does not know {', '.join(reason.unknown)}."
