"""`evaluate_instruction`: statements that a model writes by instruction only, LINK's baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any

from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.evaluation.link.baselines.instruct import (
    BUDGET,
    NO_ROWS,
    Instructed,
    InstructReport,
    InstructSettings,
    instruct,
)
from hapax.evaluation.link.baselines.jury import Jury
from hapax.evaluation.link.baselines.tables import dropped_json, instruct_tables
from hapax.evaluation.link.judging import JudgedAccuracy, accuracy
from hapax.evaluation.shared.results import Evaluation, ExperimentResult
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, made
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.prompts import LONG_TAIL_WORDINGS
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE
from hapax.llm_oracle.registry import open_shared, with_journal

MOST_DROPPED = 0.5
"""Share of dropped lines above which a note says that the model does not follow the format."""


@checked
@dataclass(frozen=True, slots=True)
class InstructOptions:
    """Options of the command. `wordings`: numbers in LINK's table 11, ascending."""

    model: Annotated[str, Option("Model that is instructed.", short="-m")] = "embedded"
    wordings: tuple[int, ...] = (1,)
    settings: InstructSettings = field(default_factory=InstructSettings)
    evaluator: Annotated[str, Option("Model that measures delta.")] = "frequency"
    critic: Annotated[
        str | None,
        Option("Model that judges the statements; default: votes if there are any, else known facts."),
    ] = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> InstructOptions:
        """From the options of the command line."""
        wordings = wording_numbers(options["wordings"])
        return made(cls, options, wordings=wordings, settings=made(InstructSettings, options))


@dataclass(frozen=True, slots=True)
class InstructResult:
    """Statements that a model wrote, measured and judged. `accuracies`: head and long tail of each report in turn."""

    reports: tuple[InstructReport, ...]
    accuracies: tuple[JudgedAccuracy, ...]
    calls: CallStatistics
    budget: str | None = None

    def to_result(self) -> ExperimentResult:
        """All tables and figures; the statements themselves are in the knowledge base."""
        figures = {
            "model": self.reports[0].model,
            "calls": {"sent": self.calls.calls, "from_journal": self.calls.hits},
            "stopped": self.budget,
            "wordings": self._wordings(),
        }
        return ExperimentResult(instruct_tables(self.reports, self.accuracies), figures, notes=tuple(self._notes()))

    def examples(self, count: int) -> Iterator[tuple[Distribution, str]]:
        """The first statements of each rule and distribution by the first wording."""
        for stream in self.reports[0].streams:
            for statement in stream.statements[:count]:
                yield stream.distribution, statement.text

    def _wordings(self) -> list[dict[str, Any]]:
        # Head and long tail of each report in turn.
        accuracies = iter(self.accuracies)
        wordings = []
        for report in self.reports:
            wordings.append(
                {
                    "wording": report.settings.wording,
                    "run": report.run_id,
                    "mean_delta": report.mean_delta,
                    "accuracy": {distribution: next(accuracies) for distribution in Distribution},
                    "rules": [_rule_json(report, rule) for rule in report.rules],
                }
            )
        return wordings

    def _notes(self) -> Iterator[str]:
        streams = list(chain.from_iterable(report.streams for report in self.reports))
        # Wordings share the head, so a statement can be in several reports.
        written: set[str] = set()
        for stream in streams:
            written.update(statement.id for statement in stream.statements)
        yield (
            f"{counted(len(written), 'statement')} stored beside those of searches; nothing has checked them, and none "
            f"is a fact. {counted(self.calls.calls, 'call')} sent, {self.calls.hits} answered from the journal."
        )
        dropped, rows = sum(dropped_json(streams).values()), sum(len(stream.statements) for stream in streams)
        if dropped > MOST_DROPPED * (dropped + rows) or all(stream.end == NO_ROWS for stream in streams):
            yield (
                f"{self.reports[0].model} does not follow the format of the instruction: "
                f"{counted(dropped, 'line was', 'lines were')} dropped and {counted(rows, 'row')} kept."
            )
        if self.budget:
            yield self.budget


def wording_numbers(names: Iterable[str]) -> tuple[int, ...]:
    """The numbers of wordings named `paper`, `all`, or `1` to `10`; ascending, each once."""
    numbers: set[int] = set()
    for name in names:
        if name == "all":
            numbers.update(range(1, len(LONG_TAIL_WORDINGS) + 1))
        else:
            # Section 3.1 uses the first wording of table 11.
            numbers.add(1 if name == "paper" else int(name))
    return tuple(sorted(numbers))


@checked
@extras_named()
def evaluate_instruction(
    rules: Library,
    kb: KnowledgeBase,
    options: InstructOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Evaluation[InstructResult]:
    """Have a model write statements by instruction only, without search, critic or ranking: LINK's baseline.

    `options`: the model, the wordings and the judges. `opening`: options of opening them; its journal, if any, has the
    budget. `progress` is called with each wording's number before it is used.
    """
    rules, options = sound_rules(rules), options or InstructOptions()
    chosen = chosen_rules(rules, only)
    opening, journal = with_journal(kb, opening)
    if not chosen:
        raise HapaxError(
            "No rule to write statements of.", Remedy("Name a rule file, or a rule with {}.", Setting("only"))
        )
    # A simulated model makes its world from the rules.
    opened = OpenedModels(replace(opening, library=rules))
    knowledge = open_shared(opened, options.model, KNOWLEDGE)
    evaluator = open_shared(opened, options.evaluator, EVALUATOR)
    critic = open_shared(opened, options.critic, CRITIC) if options.critic else None
    # The same for all wordings, so the journal answers the head's requests of each further wording.
    instructed = Instructed(rules, chosen, knowledge, evaluator)
    reports = []
    for wording in options.wordings:
        if progress is not None:
            progress(wording)
        reports.append(instruct(instructed, kb, replace(options.settings, wording=wording), journal))
    jury = Jury(kb, rules, JournaledCritic(critic, journal) if critic else None)
    statements = list(chain.from_iterable(report.statements for report in reports))
    # For all reports together, so that a critic is asked in one batch.
    judge = jury.judge(statements, knowledge, searched=False)
    accuracies = []
    for report in reports:
        for distribution in Distribution:
            part = [statement for statement in report.statements if statement.distribution is distribution]
            accuracies.append(accuracy(part, judge))
    # A budget that ends one report ends those after it as well; the first message tells why.
    budgets = [report.budget for report in reports if report.budget] + ([str(jury.budget)] if jury.budget else [])
    return Evaluation.of(
        InstructResult(tuple(reports), tuple(accuracies), journal.total, budgets[0] if budgets else None)
    )


def _rule_json(report: InstructReport, rule: str) -> dict[str, Any]:
    streams = report.of(rule)
    return {
        "rule": rule,
        **{distribution.value: len(stream.statements) for distribution, stream in streams.items()},
        "dropped": dropped_json(streams.values()),
        "calls": sum(stream.calls for stream in streams.values()),
        "hits": sum(stream.hits for stream in streams.values()),
        "delta": report.delta(rule),
        "ended": {distribution.value: stream.end for distribution, stream in streams.items()},
        "cut": any(stream.end == BUDGET for stream in streams.values()),
    }
