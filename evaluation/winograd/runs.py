"""Asking as runs of a knowledge base: answers are stored, and tables are made of what is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluation.winograd.abstraction import ABSTRACTS_TO, mapping_facts
from evaluation.winograd.asking import AskRun, AskSettings, PairAnswer, ask_pairs, asking
from evaluation.winograd.data import Pair, pairs_of, read_file
from evaluation.winograd.prompts import PROMPTED, Method, OwnPrompt, Variant, read_own
from evaluation.winograd.scores import Answer, Measured, measure
from grammar.errors import HapaxError
from kb.records import RunRecord, content_id
from kb.store import KnowledgeBase
from llm_oracle.calls import KNOWLEDGE, BudgetReached, Journal, PutOff
from llm_oracle.protocols import Generator, ModelIdentity
from llm_oracle.registry import OpeningOptions, open_model

COMMAND = "evaluate winograd ask"
ALL = "all"


@dataclass(frozen=True, slots=True)
class AskOptions:
    """What an asking is told. `limit`: pairs of each source; None: all. `published`: rows exactly as published."""

    model: str
    settings: tuple[AskSettings, ...]
    sources: tuple[str, ...] = ()
    published: bool = False
    limit: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> AskOptions:
        """From the options of the command line."""
        base = AskSettings(
            variant=Variant(options["variant"]),
            temperature=options["temperature"],
            tokens=options["reply_tokens"],
            seed=options["seed"],
        )
        methods = [one for name in options["methods"] for one in (PROMPTED if name == ALL else (Method(name),))]
        settings = [replace(base, method=method) for method in dict.fromkeys(methods)]
        settings += [replace(base, method=Method.OWN, own=own) for own in map(_own, options["prompts"])]
        return cls(options["model"], tuple(settings), options["sources"], options["published"], options["limit"])


def _own(named: str) -> OwnPrompt:
    name, equals, path = named.partition("=")
    if not equals or not name.strip() or not path:
        raise HapaxError(f"--prompt {named!r} should read NAME=FILE, such as AoT2=my_prompt.txt.")
    return read_own(name.strip(), Path(path))


@dataclass(frozen=True)
class StoredRun:
    """One method on one source by one model, as it is stored."""

    id: str
    model: str
    revision: str
    method: str
    variant: str
    source: str
    published: bool
    status: str
    pairs: int
    """How many were to be asked."""
    answers: tuple[Answer, ...]
    calls: Mapping[str, tuple[str, ...]]
    """By pair the journal's ids of its calls."""

    @property
    def name(self) -> str:
        """The model's name, with its revision if that is known."""
        return f"{self.model}@{self.revision}" if self.revision else self.model

    @cached_property
    def measured(self) -> Measured:
        return measure(self.answers)

    @property
    def label(self) -> str:
        words = "" if self.method == Method.AOT_STAGED else f" ({self.variant})"
        return f"{self.method}{words}{', as published' if self.published else ''}"

    def to_json(self) -> dict[str, Any]:
        told = ("id", "model", "revision", "method", "variant", "source", "published", "status", "pairs")
        return {**{name: getattr(self, name) for name in told}, **self.measured.to_json()}


class AskSession:
    """Files being asked about. `stopped`: what kept some answers away, a budget or a queue."""

    def __init__(self, kb: KnowledgeBase, options: AskOptions, opening: OpeningOptions) -> None:
        self._kb, self._options, self._opening = kb, options, opening
        self.stopped: BudgetReached | None = None

    @cached_property
    def model(self) -> Generator:
        """The model that is asked; opened at the first call."""
        opened: Generator = open_model(self._options.model, KNOWLEDGE, self._opening)
        return opened

    def ask(
        self, paths: Sequence[Path], journal: Journal, progress: Callable[[str, int, int], None] | None = None
    ) -> Iterator[StoredRun]:
        """Ask by each method about each source, as far as the budget goes; a run is stored when it ends.

        `progress` is told the method, the pairs done and the pairs in all.
        """
        for source, pairs in self._pairs(paths).items():
            for settings in self._options.settings:
                told = None if progress is None else _telling(progress, settings.name, source, len(pairs))
                stored, stopped = self._run(source, pairs, settings, journal, told)
                self.stopped = self.stopped or stopped
                yield stored
                if stopped and not isinstance(stopped, PutOff):
                    return

    def _pairs(self, paths: Sequence[Path]) -> dict[str, list[Pair]]:
        by_source: dict[str, list[Pair]] = {}
        seen: dict[str, Pair] = {}
        for path in paths:
            for pair in pairs_of(read_file(path, self._options.published).items):
                name = pair[0].pair
                if seen.setdefault(name, pair) != pair:
                    raise HapaxError(
                        f"{pair[0].place}: another file has a pair {name!r}, too. Rename one of the files."
                    )
                if seen[name] is pair and (not self._options.sources or pair[0].source in self._options.sources):
                    by_source.setdefault(pair[0].source, []).append(pair)
        if not by_source:
            raise HapaxError(
                f"{', '.join(map(str, paths))}: no pairs to ask about. Name another file, or another --source."
            )
        return {source: pairs[: self._options.limit] for source, pairs in by_source.items()}

    def _run(
        self,
        source: str,
        pairs: Sequence[Pair],
        settings: AskSettings,
        journal: Journal,
        finished: Callable[[int], None] | None,
    ) -> tuple[StoredRun, BudgetReached | None]:
        record = _record(self.model.identity, source, pairs, settings, self._options)
        self._kb.start_run(record)
        run = ask_pairs(pairs, asking(self.model, journal, settings), finished)
        status = "budget" if run.stopped else "done"
        with self._kb.transaction():
            self._kb.finish_run(record.id, status, _summary(run))
            self._keep_mappings(run.answers, record.id)
        return _stored(replace(record, status=status, summary=_summary(run))), run.stopped

    def _keep_mappings(self, answers: Iterable[PairAnswer], run_id: str) -> None:
        facts = [
            fact
            for one in answers
            if one.concepts is not None
            for fact in mapping_facts(one.pair[0].options, one.concepts, run_id)
        ]
        if facts:
            self._kb.add_predicates([ABSTRACTS_TO])
            self._kb.add_facts(facts)


def stored_runs(kb: KnowledgeBase) -> list[StoredRun]:
    """What was asked, the latest of each model, method, variant and source; in the order it was first started."""
    latest: dict[tuple[str, str, str, str, bool], StoredRun] = {}
    for record in kb.runs():
        if record.command == COMMAND and record.status != "running":
            run = _stored(record)
            latest[run.name, run.method, run.variant, run.source, run.published] = run
    return list(latest.values())


def _telling(progress: Callable[[str, int, int], None], method: str, source: str, total: int) -> Callable[[int], None]:
    return lambda done: progress(f"{method} on {source}", done, total)


def _record(
    model: ModelIdentity, source: str, pairs: Sequence[Pair], settings: AskSettings, options: AskOptions
) -> RunRecord:
    asked = [[item.text, item.pronoun, *item.options] for pair in pairs for item in pair]
    told = {
        "model": model.name,
        "revision": model.revision,
        "method": settings.name,
        "variant": settings.variant.value,
        "prompt": hashlib.sha256(settings.own.text.encode()).hexdigest() if settings.own else "",
        "source": source,
        "published": options.published,
        "temperature": str(settings.temperature),
        "tokens": settings.tokens,
        "seed": settings.seed,
        "pairs": len(pairs),
    }
    identity = content_id(COMMAND, told, asked)
    return RunRecord(identity, COMMAND, told, identity, datetime.now(UTC).isoformat(timespec="milliseconds"))


def _summary(run: AskRun) -> dict[str, Any]:
    return {
        "answers": [
            [one.item, one.pair, one.family, one.gold, one.strict, one.released]
            for pair in run.answers
            for one in pair.answers
        ],
        "calls": {pair.pair[0].pair: list(pair.calls) for pair in run.answers},
    }


def _stored(record: RunRecord) -> StoredRun:
    told = record.settings
    return StoredRun(
        record.id,
        told["model"],
        told["revision"],
        told["method"],
        told["variant"],
        told["source"],
        told["published"],
        record.status,
        told["pairs"],
        tuple(Answer(*cells) for cells in record.summary["answers"]),
        {pair: tuple(calls) for pair, calls in record.summary["calls"].items()},
    )
