"""`evaluate_probe`: LINK's 13 questions about stored statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from hapax.evaluation.link.probing_questions import (
    ROLE,
    ItemSet,
    ProbeMethod,
    ProbeRun,
    ProbeSettings,
    open_asker,
    probe,
    probe_items,
)
from hapax.evaluation.link.probing_released import (
    TEMPERATURE,
    ReleasedAsker,
    ReleasedSettings,
    ReleasedVariant,
    released_order,
)
from hapax.evaluation.link.probing_tables import (
    ProbeReport,
    answer_json,
    answer_lines,
    label_note,
    measure,
    probe_tables,
    report_json,
    statements_note,
    wrong_answers,
)
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import ChosenRules, ChosenRuns, Option, Seed, Temperature
from hapax.grammar.parsing.attributes import Polarity
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, CallStatistics
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity
from hapax.llm_oracle.questions.rewriting import FormWriter
from hapax.llm_oracle.registry import open_model, with_journal

WRONG_SHOWN = 2
"""Wrong answers of each distribution among the details of a probe."""


@checked
@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Options of a probing. `sample`: statements of each distribution; None: all.

    `compat` `released`: as LINK's released code asks, with a generator, at its own temperature; `writer`, by default
    the probed model, writes the negations and questions, and `variants` are its switches. Raises HapaxError for
    `variants` without it, and for a critic with it.
    """

    model: Annotated[str, Option("Model that is probed.", short="-m")] = "embedded"
    way: Annotated[
        ProbeMethod,
        Option(
            "How to ask: for P(yes), a reply, or a chain of thought and a reply.  [default: critic; with "
            "--compat text]",
            name="ask",
        ),
    ] = ProbeMethod.CRITIC
    writer: Annotated[
        str | None,
        Option(
            "Model that writes negations and questions that grammar cannot; with --compat all, by default "
            "the probed model."
        ),
    ] = None
    compat: Annotated[Literal["released"] | None, Option("Ask and score as LINK's released code does.")] = None
    variants: Annotated[
        tuple[ReleasedVariant, ...],
        Option(
            "With --compat: no explanation, no worked examples, or positive conclusions in their own form.",
            name="variant",
        ),
    ] = ()
    rules: ChosenRules = ()
    runs: ChosenRuns = ()
    sample: Annotated[int | None, Option("Statements per distribution; 0: all.", default="200", least=0, none="0")] = (
        None
    )
    temperature: Temperature = 0.0
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.compat is None and self.variants:
            raise HapaxError(
                f"{self.variants[0]} is a switch of LINK's released code.",
                Remedy("Add {} released.", Setting("options.compat")),
            )
        if self.compat is not None and self.way is ProbeMethod.CRITIC:
            raise HapaxError(
                "LINK's released code probes no critic.",
                Remedy("Choose {} text or cot.", Setting("options.way")),
            )
        if self.compat is not None and self.temperature not in (0.0, TEMPERATURE):
            raise HapaxError(
                f"LINK's released code has the temperature {TEMPERATURE:g}.",
                Remedy("Leave out {}.", Setting("options.temperature")),
            )

    @property
    def released(self) -> ReleasedSettings | None:
        """The settings of a released probing; None for our own way."""
        if self.compat is None:
            return None
        return ReleasedSettings(self.way is ProbeMethod.CHAIN, frozenset(self.variants), self.seed)


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
        if self.options.compat is not None:
            yield from self._released_notes()
        if self.run.stopped:
            yield self.run.stopped

    def _released_notes(self) -> Iterator[str]:
        yield (
            "asked as LINK's released code asks; `accuracy` is its measure, where a statement with flipped labels "
            "counts 1 less its share of right answers, and a reply off format is a wrong answer like any other"
        )
        settings = self.options.released
        wrong_form: list[str] = []
        for item in self.found.items:
            if item.polarity is Polarity.POSITIVE and not (settings and settings.is_positive(item)):
                wrong_form.append(item.rule)
        if wrong_form:
            rules = ", ".join(dict.fromkeys(wrong_form))
            yield (
                f"{counted(len(wrong_form), 'statement')} of {rules} with a positive conclusion was asked "
                "about in the form for negative ones, as the released code does by mistake: the right answer "
                f"to question 7 is taken to be No. {Setting('options.variants')} "
                f"{ReleasedVariant.POSITIVE_FORM} asks as the code intends"
            )


@checked
@extras_named()
def evaluate_probe(
    kb: KnowledgeBase,
    options: ProbeOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
    wrong: int = WRONG_SHOWN,
) -> Evaluation[ProbeResult]:
    """Ask a model LINK's 13 questions about each statement, and score its answers. No question is asked twice.

    `options`: the model by its string, the way of asking, and the statements. `opening`: options of opening the model;
    its journal, if any, has the budget. `progress` is called with the statements done and their total. `wrong`: wrong
    answers of each distribution among the details. Needs the extra `evaluation`.
    """
    options = options or ProbeOptions()
    opening, journal = with_journal(kb, opening, budget)
    # Statements are about the rules they were searched with, which files may have changed since.
    opening = replace(opening, library=stored_library(kb))
    # Both models are opened before a question is asked.
    model = open_model(options.model, CRITIC if options.way is ProbeMethod.CRITIC else KNOWLEDGE, opening)
    writing = model if options.writer is None else open_model(options.writer, KNOWLEDGE, opening)
    released = options.released
    writer = None
    if options.writer is not None and released is None:
        writer = FormWriter(JournaledGenerator(writing, journal, role="writer"), options.seed)
    found = probe_items(kb, options.rules, options.sample, options.seed, writer=writer, runs=options.runs)
    total = len(found.items)
    if released is None:
        ask = open_asker(options.way, model, journal, ProbeSettings(options.temperature, options.seed))
    else:
        # The draws of worked examples follow the order of the questions, so the order is part of the method.
        found = replace(found, items=released_order(found.items))
        rewriter = JournaledGenerator(writing, journal, role="writer")
        ask = ReleasedAsker(JournaledGenerator(model, journal, role=ROLE), rewriter, released)
    run = probe(found.items, ask, None if progress is None else lambda done: progress(done, total))
    measured = ProbeResult(model.identity, options, found, run, measure(run.answers), journal.total)
    return Evaluation(measured, measured.to_result(wrong))
