"""`evaluate instruct` from options to result: which wordings, who measures and who judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from evaluation.baselines.instruct import BUDGET, NO_ROWS, Instructed, InstructReport, InstructSettings, instruct
from evaluation.baselines.jury import Jury
from evaluation.baselines.tables import dropped_json, instruct_tables
from evaluation.judging import Accuracy, accuracy
from evaluation.probing.tables import Page
from grammar.errors import HapaxError
from grammar.rules import Rule
from grammar.words import counted
from kb.records import Distribution, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, CallStatistics, Journal, JournaledCritic
from llm_oracle.prompts import LONG_TAIL_WORDINGS
from llm_oracle.registry import Opened, OpeningOptions, open_beside

MOST_FAULTS = 0.5
"""From this share of dropped lines on, a model can be said not to follow the format."""


@dataclass(frozen=True, slots=True)
class InstructOptions:
    """What the command is told. `wordings`: by number, in order."""

    model: str = "embedded"
    wordings: tuple[int, ...] = (1,)
    settings: InstructSettings = field(default_factory=InstructSettings)
    evaluator: str = "frequency"
    critic: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> InstructOptions:
        """From the options of the command line."""
        same = ("count", "values_per_call", "calls", "temperature", "released", "bias", "seed")
        settings = InstructSettings(**{name: options[name] for name in same})
        return cls(
            options["model"], wording_numbers(options["wordings"]), settings, options["evaluator"], options["critic"]
        )


@dataclass(frozen=True, slots=True)
class InstructResult:
    """What was written, measured and judged. `accuracies`: head and long tail of each report in turn."""

    reports: tuple[InstructReport, ...]
    accuracies: tuple[Accuracy, ...]
    calls: CallStatistics
    budget: str | None = None

    def pages(self) -> tuple[Page, ...]:
        return instruct_tables(self.reports, self.accuracies)

    def examples(self, count: int) -> Iterator[tuple[Distribution, str]]:
        """The first statements of each rule and distribution by the first wording."""
        for one in self.reports[0].streams:
            for statement in one.statements[:count]:
                yield one.distribution, statement.text

    def remarks(self) -> Iterator[str]:
        """What a reader of the tables should know."""
        written = {one.id for report in self.reports for one in report.statements}
        yield (
            f"{counted(len(written), 'statement')} kept beside those of searches; nothing has checked them, none "
            f"is a fact. {counted(self.calls.calls, 'call')} sent, {self.calls.hits} answered by the journal."
        )
        streams = [one for report in self.reports for one in report.streams]
        dropped, kept = sum(dropped_json(streams).values()), sum(len(one.statements) for one in streams)
        if dropped > MOST_FAULTS * (dropped + kept) or all(one.end == NO_ROWS for one in streams):
            yield (
                f"{self.reports[0].model} does not follow the instruction's format: "
                f"{counted(dropped, 'line was', 'lines were')} dropped and {counted(kept, 'row')} kept."
            )
        if self.budget:
            yield self.budget

    def to_json(self) -> dict[str, Any]:
        """All figures; statements are in the knowledge base."""
        accuracies = iter(self.accuracies)
        return {
            "model": self.reports[0].model,
            "calls": {"sent": self.calls.calls, "from_journal": self.calls.hits},
            "stopped": self.budget,
            "wordings": [
                {
                    "wording": report.settings.wording,
                    "run": report.run_id,
                    "mean_delta": report.mean_delta,
                    "accuracy": {each.value: asdict(next(accuracies)) for each in Distribution},
                    "rules": [_rule_json(report, rule) for rule in report.rules],
                }
                for report in self.reports
            ],
        }


def wording_numbers(named: Iterable[str]) -> tuple[int, ...]:
    """The numbers behind `paper`, `1` to `10` and `all`, each once and in order."""
    every = range(1, len(LONG_TAIL_WORDINGS) + 1)
    known = {"paper": (1,), "all": tuple(every), **{str(number): (number,) for number in every}}
    return tuple(sorted({number for name in named for number in known[name]}))


def run_instruct(
    kb: KnowledgeBase,
    options: InstructOptions,
    opening: OpeningOptions,
    rules: Sequence[Rule],
    progress: Callable[[int], None] | None = None,
) -> InstructResult:
    """Instruct a model by every wording, and judge what it wrote. The journal is that of `opening`."""
    library, journal = opening.library, opening.journal or Journal(kb)
    if library is None or not rules:
        raise HapaxError("No rule to write statements of. Name a rule file, or a rule by --rule.")
    opened = Opened(opening)
    knowledge = open_beside(opened, options.model, KNOWLEDGE)
    evaluator = open_beside(opened, options.evaluator, EVALUATOR)
    critic = open_beside(opened, options.critic, CRITIC) if options.critic else None
    instructed = Instructed(library, rules, knowledge, evaluator)
    reports = []
    for wording in options.wordings:
        if progress is not None:
            progress(wording)
        reports.append(instruct(instructed, kb, replace(options.settings, wording=wording), journal))
    jury = Jury(kb, library, JournaledCritic(critic, journal) if critic else None)
    judge = jury.judge([one for report in reports for one in report.statements], knowledge, searched=False)
    accuracies = [accuracy(_of(report, each), judge) for report in reports for each in Distribution]
    budgets = [one.budget for one in reports if one.budget] + ([str(jury.budget)] if jury.budget else [])
    return InstructResult(tuple(reports), tuple(accuracies), journal.total, next(iter(budgets), None))


def _of(report: InstructReport, distribution: Distribution) -> list[StatementRecord]:
    return [one for one in report.statements if one.distribution is distribution]


def _rule_json(report: InstructReport, rule: str) -> dict[str, Any]:
    streams = report.of(rule)
    return {
        "rule": rule,
        **{each.value: len(one.statements) for each, one in streams.items()},
        "dropped": dropped_json(streams.values()),
        "calls": sum(one.calls for one in streams.values()),
        "hits": sum(one.hits for one in streams.values()),
        "delta": report.delta(rule),
        "ended": {each.value: one.end for each, one in streams.items()},
        "cut": any(one.end == BUDGET for one in streams.values()),
    }
