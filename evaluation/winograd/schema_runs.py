"""Runs of asking that are stored in a knowledge base, from which tables are made later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.winograd.schema_asking import (
    ABSTRACTS_TO,
    AskRun,
    AskSettings,
    ReadingScores,
    SentenceAnswer,
    Sources,
    ask_pairs,
    asking,
    mapping_facts,
    measure,
    scoring,
)
from hapax.evaluation.winograd.schema_files import Pair, pairs_of, read_file
from hapax.evaluation.winograd.schema_prompts import PROMPTED, SCORED, PromptMethod, read_own
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, made
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import PREDICATES, RUNS, RunRecord, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import BudgetReached, Deferred
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import KNOWLEDGE, LIKELIHOOD, ModelIdentity
from hapax.llm_oracle.registry import open_shared

COMMAND = "evaluate winograd ask"
WITHOUT_VARIANT = (PromptMethod.AOT_STAGED, *SCORED)
"""Methods without a second wording."""
ALL = "all"


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
    def of(cls, options: Mapping[str, Any]) -> SchemaAskOptions:
        """Build it from the options of the command line."""
        base = made(AskSettings, options)
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
        return made(cls, options, settings=tuple(settings))


@dataclass(frozen=True)
class StoredRun:
    """Stored answers of one model, by one method, on one source."""

    id: str
    model: str
    revision: str
    method: str
    variant: str
    source: str
    published: bool
    status: str
    pairs: int
    """Number of pairs to ask about."""
    answers: tuple[SentenceAnswer, ...]
    calls: Mapping[str, tuple[str, ...]]
    """Journal ids of the calls, by pair."""

    @property
    def name(self) -> str:
        """The model's name, with its revision if that is known."""
        return f"{self.model}@{self.revision}" if self.revision else self.model

    @cached_property
    def measured(self) -> ReadingScores:
        return measure(self.answers)

    @property
    def label(self) -> str:
        wording = "" if self.method in WITHOUT_VARIANT else f" ({self.variant})"
        return ", ".join([f"{self.method}{wording}", *self.marks])

    @property
    def marks(self) -> list[str]:
        """Differences of the run's pairs from those of the source as it is read."""
        return ["as published"] if self.published else []

    @property
    def figures(self) -> dict[str, Any]:
        """Settings and scores for programs, without the single answers."""
        settings = (
            "id",
            "model",
            "revision",
            "method",
            "variant",
            "source",
            "published",
            "status",
            "pairs",
        )
        scores = ("strict", "released", "unparsed")
        return {
            **{name: getattr(self, name) for name in settings},
            **{name: getattr(self.measured, name) for name in scores},
        }


class AskSession:
    """Asks about the pairs of files. `stopped`: the budget or queue that left some pairs unanswered."""

    def __init__(self, kb: KnowledgeBase, options: SchemaAskOptions, opening: OpeningOptions) -> None:
        self._kb, self._options, self._opened = kb, options, OpenedModels(opening)
        self.stopped: BudgetReached | None = None

    def ask(
        self, paths: Sequence[Path], journal: Journal, progress: Callable[[str, int, int], None] | None = None
    ) -> Iterator[StoredRun]:
        """Ask by each method about each source until the budget is reached. Each run is stored when it ends.

        `progress` is called with the method, the number of pairs done and the number of all pairs.
        """
        for source, pairs in self._pairs(paths).items():
            for settings in self._options.settings:
                finished = None if progress is None else _run_progress(progress, settings.name, source, len(pairs))
                stored, stopped = self._run(source, pairs, settings, journal, finished)
                self.stopped = self.stopped or stopped
                yield stored
                # Requests deferred to a queue do not keep the other runs from being asked.
                if stopped and not isinstance(stopped, Deferred):
                    return

    def _pairs(self, paths: Sequence[Path]) -> dict[str, list[Pair]]:
        by_source: dict[str, list[Pair]] = {}
        for pair in self._distinct_pairs(paths):
            if not self._options.sources or pair[0].source in self._options.sources:
                by_source.setdefault(pair[0].source, []).append(pair)
        if not by_source:
            raise HapaxError(
                f"{', '.join(map(str, paths))}: no pairs to ask about.",
                Remedy("Name another file, or another {}.", Setting("options.sources")),
            )
        return {source: chosen[: self._options.limit] for source, chosen in by_source.items()}

    def _distinct_pairs(self, paths: Sequence[Path]) -> list[Pair]:
        seen: dict[str, Pair] = {}
        for path in paths:
            for pair in pairs_of(read_file(path, self._options.published).items):
                name = pair[0].pair
                # A pair is stored by its name, so two pairs of one name would mix their answers.
                if seen.setdefault(name, pair) != pair:
                    raise HapaxError(
                        f"{pair[0].place}: another file has a different pair {name!r}. Rename one of the files."
                    )
        # A file given twice repeats equal pairs, which are asked once.
        return list(seen.values())

    def _run(
        self,
        source: str,
        pairs: Sequence[Pair],
        settings: AskSettings,
        journal: Journal,
        finished: Callable[[int], None] | None,
    ) -> tuple[StoredRun, BudgetReached | None]:
        is_scored = settings.method in SCORED
        model = open_shared(self._opened, self._options.model, LIKELIHOOD if is_scored else KNOWLEDGE)
        ask = scoring(model, journal, settings) if is_scored else asking(model, journal, settings)
        record = _record(model.identity, source, pairs, settings, self._options)
        self._kb.add(RUNS, [record])
        run = ask_pairs(pairs, ask, finished)
        status, summary = "budget" if run.stopped else "done", _summary(run)
        facts = []
        for answer in run.answers:
            if answer.concepts is not None:
                facts += mapping_facts(answer.pair[0].options, answer.concepts, record.id)
        with self._kb.transaction():
            self._kb.finish_run(record.id, status, summary)
            if facts:
                self._kb.add(PREDICATES, [ABSTRACTS_TO])
                self._kb.add_facts(facts)
        return _stored(replace(record, status=status, summary=summary)), run.stopped


def stored_runs(kb: KnowledgeBase) -> list[StoredRun]:
    """The latest run of each model, method, variant and source, in the order they were first started."""
    latest: dict[tuple[str, str, str, str, tuple[str, ...]], StoredRun] = {}
    for record in kb.runs():
        if record.command == COMMAND and record.status != "running":
            run = _stored(record)
            # A later run replaces an earlier one and keeps its place.
            latest[run.name, run.method, run.variant, run.source, tuple(run.marks)] = run
    return list(latest.values())


def _run_progress(
    progress: Callable[[str, int, int], None], method: str, source: str, total: int
) -> Callable[[int], None]:
    # A lambda in the caller's loop would see the names of whichever turn the loop is at.
    return lambda done: progress(f"{method} on {source}", done, total)


def _record(
    model: ModelIdentity, source: str, pairs: Sequence[Pair], settings: AskSettings, options: SchemaAskOptions
) -> RunRecord:
    # The texts are part of the identity, so a changed file starts a new run.
    texts = []
    for pair in pairs:
        texts += [[item.text, item.pronoun, *item.options] for item in pair]
    stored_settings = {
        "model": model.name,
        "revision": model.revision,
        "method": settings.name,
        "variant": settings.variant.value,
        # A user may change the text of a prompt and keep its name.
        "prompt": hashlib.sha256(settings.own.text.encode()).hexdigest() if settings.own else "",
        "source": source,
        "published": options.published,
        "temperature": str(settings.temperature),
        "tokens": settings.tokens,
        "seed": settings.seed,
        "pairs": len(pairs),
    }
    return RunRecord.now(content_id(COMMAND, stored_settings, texts), COMMAND, stored_settings)


def _summary(run: AskRun) -> dict[str, Any]:
    cells: list[list[Any]] = []
    for pair_answer in run.answers:
        for answer in pair_answer.answers:
            cells.append([answer.item, answer.pair, answer.family, answer.gold, answer.strict, answer.released])
    return {"answers": cells, "calls": {answer.pair[0].pair: list(answer.calls) for answer in run.answers}}


def _stored(record: RunRecord) -> StoredRun:
    settings = record.settings
    return StoredRun(
        record.id,
        settings["model"],
        settings["revision"],
        settings["method"],
        settings["variant"],
        settings["source"],
        settings["published"],
        record.status,
        settings["pairs"],
        tuple(SentenceAnswer(*cells) for cells in record.summary["answers"]),
        {pair: tuple(calls) for pair, calls in record.summary["calls"].items()},
    )
