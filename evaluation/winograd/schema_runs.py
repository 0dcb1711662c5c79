"""Asking a model about schemas, and the runs of it that a knowledge base keeps, from which tables are made later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable, for_batches
from hapax.evaluation.winograd.schema_asking import (
    ABSTRACTS_TO,
    AskSettings,
    PairAnswer,
    ReadingScores,
    SentenceAnswer,
    Sources,
    asking,
    mapping_facts,
    measure,
    scoring,
)
from hapax.evaluation.winograd.schema_files import Pair, pairs_of, read_file
from hapax.evaluation.winograd.schema_prompts import PROMPTED, SCORED, PromptMethod, read_own
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, from_options
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import PREDICATES, RUNS, RunRecord, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached, Deferred
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import KNOWLEDGE, LIKELIHOOD
from hapax.llm_oracle.registry import open_shared, with_journal

COMMAND = "evaluate winograd ask"
WITHOUT_VARIANT = (PromptMethod.AOT_STAGED, *SCORED)
"""Methods without a second wording."""
ALL = "all"

PAIRS_TOGETHER = 16
"""Pairs asked in one batch; when a budget ends, all pairs of its batch stay unanswered."""

ABSENT = "-"


@checked
@dataclass(frozen=True, slots=True)
class SchemaAskOptions:
    """Options of asking. `settings`: a method and its settings for each run."""

    model: Annotated[str, Option("Model to ask.", short="-m")] = "embedded"
    settings: tuple[AskSettings, ...] = (AskSettings(),)
    sources: Sources = ()
    published: Annotated[
        bool, Option("Use rows exactly as the release asks them, with their faults.", name="as-published")
    ] = False
    limit: Annotated[int | None, Option("Maximum number of pairs of each source.", least=1)] = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> SchemaAskOptions:
        """Build it from the options of the command line."""
        base = from_options(AskSettings, options)
        methods: dict[PromptMethod, None] = {}
        for name in options["methods"]:
            methods |= dict.fromkeys(PROMPTED if name == ALL else (PromptMethod(name),))
        settings = [replace(base, method=method) for method in methods]
        for option in options["prompts"]:
            name, equals, path = option.partition("=")
            if not equals or not name.strip() or not path:
                raise HapaxError(
                    f"{Setting('settings.own')} {option!r} should read NAME=FILE, such as AoT2=my_prompt.txt."
                )
            settings.append(replace(base, method=PromptMethod.OWN, own=read_own(name.strip(), Path(path))))
        return from_options(cls, options, settings=tuple(settings))


@dataclass(frozen=True)
class StoredRun:
    """Stored answers of one model, by one method, on one source.

    `model`: its name, with its revision if that is needed; `pairs`: number of pairs to ask about; `calls`: journal ids
    of the calls, by pair.
    """

    id: str
    model: str
    method: str
    variant: str
    source: str
    published: bool
    status: str
    pairs: int
    answers: tuple[SentenceAnswer, ...]
    calls: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, record: RunRecord) -> StoredRun:
        """From the record of a run that has ended."""
        settings = record.settings
        return cls(
            record.id,
            "@".join(filter(None, (settings["model"], settings["revision"]))),
            settings["method"],
            settings["variant"],
            settings["source"],
            settings["published"],
            record.status,
            settings["pairs"],
            tuple(SentenceAnswer(*cells) for cells in record.summary["answers"]),
            record.summary["calls"],
        )

    @cached_property
    def measured(self) -> ReadingScores:
        return measure(self.answers)

    @property
    def label(self) -> str:
        """Method, wording and reading of the rows."""
        wording = "" if self.method in WITHOUT_VARIANT else f" ({self.variant})"
        return f"{self.method}{wording}{', as published' if self.published else ''}"

    @property
    def figures(self) -> dict[str, Any]:
        """Settings and scores for programs, without the single answers."""
        name, _, revision = self.model.partition("@")
        settings = ("id", "method", "variant", "source", "published", "status", "pairs")
        scores = ("strict", "released", "unparsed")
        return {
            "model": name,
            "revision": revision,
            **{setting: getattr(self, setting) for setting in settings},
            **{score: getattr(self.measured, score) for score in scores},
        }


def stored_runs(kb: KnowledgeBase) -> list[StoredRun]:
    """The latest run of each model, method, variant and source, in the order they were first started."""
    latest: dict[tuple[str, str, str], StoredRun] = {}
    for record in kb.runs():
        if record.command == COMMAND and record.status != "running":
            run = StoredRun.of(record)
            # A later run replaces an earlier one and keeps its place.
            latest[run.model, f"{run.label} {run.variant}", run.source] = run
    return list(latest.values())


def shortened(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """The runs without revisions of models, except where two models differ in their revision only."""
    names = [model.partition("@")[0] for model in dict.fromkeys(run.model for run in runs)]
    short = []
    for run in runs:
        name = run.model.partition("@")[0]
        short.append(replace(run, model=name) if names.count(name) == 1 else run)
    return short


@dataclass(frozen=True)
class AskedSchemas:
    """Runs of methods on sources of schemas. `stopped`: the budget or queue that left pairs unanswered; else empty."""

    runs: tuple[StoredRun, ...]
    stopped: str = ""

    def to_result(self) -> ExperimentResult:
        """Scores of the runs, finished or not, with intervals."""
        readings = readings_table(shortened(self.runs), "Asked, with 95 % intervals")
        return ExperimentResult([readings], [run.figures for run in self.runs])


def readings_table(runs: Sequence[StoredRun], title: str) -> ResultTable:
    """Scores by both readings of the same replies; the released one finds answers even where there are none."""
    rows = []
    for run in runs:
        strict, released = run.measured.strict, run.measured.released
        shares = (strict.single, strict.pair, released.single, released.pair, run.measured.unparsed, strict.consistency)
        cells = [estimate.text(1, 0, scale=100, empty=ABSENT) for estimate in shares]
        rows.append((run.label, run.model, run.source, *cells))
    scores = ("single", "pair", "single, released", "pair, released", "unparsed", "consistency")
    return ResultTable(title, ("", "model", "source", *scores), rows)


@checked
@extras_named()
def ask_schemas(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: SchemaAskOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[AskedSchemas]:
    """Ask a model about the pairs of files, by each method, and store the answers. No question is asked twice.

    `opening`: options of opening the model; its journal, if any, has the budget. `progress` is called with the method,
    the pairs done and all pairs.
    """
    opening, journal = with_journal(kb, opening, budget)
    options = options or SchemaAskOptions()
    opened = OpenedModels(opening)
    runs: list[StoredRun] = []
    stopped: BudgetReached | None = None
    for pairs, settings in product(_pairs_by_source([Path(path) for path in paths], options), options.settings):
        run = _SchemaRun(kb, options, settings, pairs)
        reached = run.ask(opened, journal, progress)
        runs.append(StoredRun.of(run.record))
        stopped = stopped or reached
        # Requests deferred to a queue do not keep the other runs from being asked.
        if reached and not isinstance(reached, Deferred):
            break
    return Evaluation.of(AskedSchemas(tuple(runs), str(stopped or "")))


def _pairs_by_source(paths: Sequence[Path], options: SchemaAskOptions) -> list[list[Pair]]:
    """The pairs to ask about, those of each source in a list. A file that is given twice is asked once."""
    distinct: dict[str, Pair] = {}
    for path in paths:
        for pair in pairs_of(read_file(path, options.published).items):
            # A pair is stored by its name, so two pairs of one name would mix their answers.
            if distinct.setdefault(pair[0].pair, pair) != pair:
                raise HapaxError(
                    f"{pair[0].place}: another file has a different pair {pair[0].pair!r}. Rename one of the files."
                )
    by_source: dict[str, list[Pair]] = {}
    for pair in distinct.values():
        if not options.sources or pair[0].source in options.sources:
            by_source.setdefault(pair[0].source, []).append(pair)
    if not by_source:
        raise HapaxError(
            f"{', '.join(map(str, paths))}: no pairs to ask about.",
            Remedy("Name another file, or another {}.", Setting("options.sources")),
        )
    return [pairs[: options.limit] for pairs in by_source.values()]


@dataclass
class _SchemaRun:
    """A run of one method on the pairs of one source."""

    kb: KnowledgeBase
    options: SchemaAskOptions
    settings: AskSettings
    pairs: Sequence[Pair]

    def ask(
        self, opened: OpenedModels, journal: Journal, progress: Callable[[str, int, int], None] | None
    ) -> BudgetReached | None:
        """Ask about the pairs until the budget is reached, and store the answers as `record`."""
        is_scored = self.settings.method in SCORED
        model = open_shared(opened, self.options.model, LIKELIHOOD if is_scored else KNOWLEDGE)
        ask = (scoring if is_scored else asking)(model, journal, self.settings)
        self.record = self._record(model.identity.name, model.identity.revision)
        self.kb.add(RUNS, [self.record])
        answers: list[PairAnswer] = []
        name = f"{self.settings.name} on {self.pairs[0][0].source}"
        finished = None if progress is None else partial(_show, progress, name, len(self.pairs))
        stopped = for_batches(self.pairs, PAIRS_TOGETHER, lambda batch: answers.extend(ask(batch)), finished)
        status = "budget" if stopped else "done"
        cells: list[list[Any]] = []
        facts = []
        for answer in answers:
            cells += answer.cells
            if answer.concepts is not None:
                facts += mapping_facts(answer.pair[0].options, answer.concepts, self.record.id)
        summary = {"answers": cells, "calls": {answer.pair[0].pair: list(answer.calls) for answer in answers}}
        with self.kb.transaction():
            self.kb.finish_run(self.record.id, status, summary)
            if facts:
                self.kb.add(PREDICATES, [ABSTRACTS_TO])
                self.kb.add_facts(facts)
        self.record = replace(self.record, status=status, summary=summary)
        return stopped

    def _record(self, model: str, revision: str) -> RunRecord:
        settings = self.settings
        # The texts are part of the identity, so a changed file starts a new run.
        texts = [[[item.text, item.pronoun, *item.options] for item in pair] for pair in self.pairs]
        stored = {
            "model": model,
            "revision": revision,
            "method": settings.name,
            "variant": settings.variant.value,
            # A user may change the text of a prompt and keep its name.
            "prompt": hashlib.sha256(settings.own.text.encode()).hexdigest() if settings.own else "",
            "source": self.pairs[0][0].source,
            "published": self.options.published,
            "temperature": str(settings.temperature),
            "tokens": settings.tokens,
            "seed": settings.seed,
            "pairs": len(self.pairs),
        }
        return RunRecord.now(content_id(COMMAND, stored, texts), COMMAND, stored)


def _show(progress: Callable[[str, int, int], None], method: str, total: int, done: int) -> None:
    progress(method, done, total)
