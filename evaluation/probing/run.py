"""One probing from options to result: which statements, which model, how it is asked, and what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from evaluation.probing import tables
from evaluation.probing.asking import ProbeRun, ProbeSettings, Way, asking, probe
from evaluation.probing.items import ItemSet, kb_library, probe_items
from evaluation.probing.metrics import ProbeReport, measure
from grammar.words import counted
from kb.records import Distribution
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, KNOWLEDGE, CallStatistics, Journal, JournaledGenerator
from llm_oracle.protocols import ModelIdentity
from llm_oracle.registry import OpeningOptions, open_model
from llm_oracle.rewriting import FormWriter


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """What a probing is told. `sample`: statements of each distribution; None: all."""

    model: str = "embedded"
    way: Way = Way.CRITIC
    writer: str | None = None
    rules: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sample: int | None = None
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, rules: tuple[str, ...], options: Mapping[str, Any]) -> ProbeOptions:
        """From the options of the command line."""
        same = {name: options[name] for name in ("model", "writer", "temperature", "seed", "runs")}
        return cls(way=Way(options["ask"]), rules=rules, sample=options["sample"] or None, **same)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What was asked and answered."""

    model: ModelIdentity
    options: ProbeOptions
    found: ItemSet
    run: ProbeRun
    report: ProbeReport
    calls: CallStatistics

    def pages(self) -> tuple[tables.Page, ...]:
        return tables.pages(self.report)

    def answers_json(self) -> Iterator[dict[str, Any]]:
        """Every answer, for a file."""
        return map(tables.answer_json, self.run.answers)

    def example_lines(self, most: int) -> Iterator[str]:
        """Wrong answers of both distributions with their rationales."""
        for distribution in Distribution:
            for one in tables.wrong_answers(self.run.answers, distribution, most):
                yield from tables.answer_lines(one)

    def to_json(self, most: int) -> dict[str, Any]:
        """Everything but the right answers."""
        wrong = [
            tables.answer_json(one)
            for distribution in Distribution
            for one in tables.wrong_answers(self.run.answers, distribution, most)
        ]
        told = {"model": self.model.name, "revision": self.model.revision, "ask": self.options.way.value}
        calls = {"sent": self.calls.calls, "from_journal": self.calls.hits}
        figures = tables.report_json(self.report, self.found)
        return {**told, "calls": calls, "stopped": self.run.stopped, **figures, "wrong": wrong}

    def remarks(self) -> Iterator[str]:
        """What a reader of the figures should know."""
        yield tables.found_line(self.found)
        yield tables.label_line(self.found.items)
        yield f"{counted(self.calls.calls, 'call')}, {counted(self.calls.hits, 'answer')} from the journal"
        yield from self.found.notes
        if self.model.knows is not None:
            yield (
                f"{self.model.name} was made to judge and fill in single facts, and knows {len(self.model.knows)} "
                "predicates. Questions with premise and conclusion are nothing it was made for: these figures say how "
                "it answers them, not what it knows."
            )
        if self.run.stopped:
            yield self.run.stopped


class ProbeSession:
    """A knowledge base being probed. `opening`: how its models are opened, but for the library."""

    def __init__(self, kb: KnowledgeBase, options: ProbeOptions, opening: OpeningOptions) -> None:
        self._kb = kb
        self._options = options
        self._opening = replace(opening, library=kb_library(kb))

    def load(self) -> None:
        """Open the probed model, and the writer if there is one."""
        _ = self._model, self._writer

    def probe(self, journal: Journal, progress: Callable[[int, int], None] | None = None) -> ProbeResult:
        """Ask, as far as the budget goes. `progress` is told statements done and statements in all."""
        options = self._options
        writer = None
        if self._writer is not None:
            writer = FormWriter(JournaledGenerator(self._writer, journal, role="writer"), options.seed)
        found = probe_items(self._kb, options.rules, options.sample, options.seed, writer=writer, runs=options.runs)
        total = len(found.items)
        ask = asking(options.way, self._model, journal, ProbeSettings(options.temperature, options.seed))
        run = probe(found.items, ask, None if progress is None else lambda done: progress(done, total))
        return ProbeResult(self._model.identity, options, found, run, measure(run.answers), journal.total)

    @cached_property
    def _model(self) -> Any:
        role = CRITIC if self._options.way is Way.CRITIC else KNOWLEDGE
        return open_model(self._options.model, role, self._opening)

    @cached_property
    def _writer(self) -> Any:
        writer = self._options.writer
        return open_model(writer, KNOWLEDGE, self._opening) if writer else None
