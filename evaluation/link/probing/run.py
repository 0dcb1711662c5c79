"""`evaluate probe`: from options to a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hapax.evaluation.link.probing.asking import ProbeMethod, ProbeRun, ProbeSettings, open_asker, probe
from hapax.evaluation.link.probing.items import ItemSet, probe_items
from hapax.evaluation.link.probing.metrics import ProbeReport, measure
from hapax.evaluation.link.probing.tables import (
    answer_json,
    answer_lines,
    label_note,
    probe_tables,
    report_json,
    statements_note,
    wrong_answers,
)
from hapax.evaluation.shared.results import ExperimentResult
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.grammar.words import counted
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity
from hapax.llm_oracle.registry import open_model
from hapax.llm_oracle.rewriting import FormWriter


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Options of a probing. `sample`: statements of each distribution; None: all."""

    model: str = "embedded"
    way: ProbeMethod = ProbeMethod.CRITIC
    writer: str | None = None
    rules: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sample: int | None = None
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, rules: tuple[str, ...], options: Mapping[str, Any]) -> ProbeOptions:
        """From the options of the command line."""
        same_name = {name: options[name] for name in ("model", "writer", "temperature", "seed", "runs")}
        # `--sample 0` asks for all statements.
        return cls(way=ProbeMethod(options["ask"]), rules=rules, sample=options["sample"] or None, **same_name)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Questions asked, the answers, and their scores."""

    model: ModelIdentity
    options: ProbeOptions
    found: ItemSet
    run: ProbeRun
    report: ProbeReport
    calls: CallStatistics

    def answers_json(self) -> Iterator[dict[str, Any]]:
        """All answers as JSON objects, for a file of lines."""
        return map(answer_json, self.run.answers)

    def to_result(self, most_wrong: int) -> ExperimentResult:
        """Tables and figures, with at most `most_wrong` wrong answers of each distribution as examples."""
        wrong = wrong_answers(self.run.answers, most_wrong)
        figures = {
            "model": self.model.name,
            "revision": self.model.revision,
            "ask": self.options.way,
            "calls": {"sent": self.calls.calls, "from_journal": self.calls.hits},
            "stopped": self.run.stopped,
            **report_json(self.report, self.found),
            "wrong": [answer_json(answer) for answer in wrong],
        }
        lines: list[str] = []
        for answer in wrong:
            lines += answer_lines(answer)
        return ExperimentResult(probe_tables(self.report), figures, lines, tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        yield statements_note(self.found)
        yield label_note(self.found.items)
        yield f"{counted(self.calls.calls, 'call')}, {counted(self.calls.hits, 'answer')} from the journal"
        yield from self.found.notes
        if self.model.knows is not None:
            yield (
                f"{self.model.name} was trained to judge and complete single facts of {len(self.model.knows)} "
                "predicates, not to answer questions with premise and conclusion: these figures say how it answers "
                "them, not what it knows."
            )
        if self.run.stopped:
            yield self.run.stopped


class ProbeSession:
    """Probing of one knowledge base. `opening`: how to open models; the stored library replaces its own."""

    def __init__(self, kb: KnowledgeBase, options: ProbeOptions, opening: OpeningOptions) -> None:
        self._kb = kb
        self._options = options
        # Statements are about the rules they were searched with, which files may have changed since.
        self._opening = replace(opening, library=stored_library(kb))

    def load(self) -> None:
        """Open the probed model, and the writer if there is one."""
        # A separate step, so that the command can show that it loads, and no question is asked before both are open.
        _ = self._model, self._writer

    def probe(self, journal: Journal, progress: Callable[[int, int], None] | None = None) -> ProbeResult:
        """Ask as far as the budget goes. `progress` is called with the statements done and the total."""
        options = self._options
        writer = None
        if self._writer is not None:
            writer = FormWriter(JournaledGenerator(self._writer, journal, role="writer"), options.seed)
        found = probe_items(self._kb, options.rules, options.sample, options.seed, writer=writer, runs=options.runs)
        total = len(found.items)
        ask = open_asker(options.way, self._model, journal, ProbeSettings(options.temperature, options.seed))
        run = probe(found.items, ask, None if progress is None else lambda done: progress(done, total))
        return ProbeResult(self._model.identity, options, found, run, measure(run.answers), journal.total)

    @cached_property
    def _model(self) -> Any:
        role = CRITIC if self._options.way is ProbeMethod.CRITIC else KNOWLEDGE
        return open_model(self._options.model, role, self._opening)

    @cached_property
    def _writer(self) -> Any:
        writer = self._options.writer
        return open_model(writer, KNOWLEDGE, self._opening) if writer else None
