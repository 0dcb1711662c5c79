"""`evaluate_probe`: LINK's 13 questions about stored statements, and its tables: ours, and LINK's as printed, apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from statistics import fmean
from typing import Annotated, Any, Literal

from hapax.evaluation.link.probing_questions import (
    ROLE,
    TEMPLATES,
    ItemSet,
    ProbeAnswer,
    ProbeItem,
    ProbeMethod,
    ProbeRun,
    ProbeSettings,
    count_labels,
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
from hapax.evaluation.shared.estimates import (
    NOTHING,
    Estimate,
    mean_share,
    percent,
    relative_change,
    share,
    share_of_clusters,
)
from hapax.evaluation.shared.result_tables import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    DOMAINS,
    TOTAL,
    ordered_domains,
    stored_library,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import ChosenRules, ChosenRuns, Option, Seed, Temperature
from hapax.grammar.parsing.attributes import Polarity
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, CallStatistics
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, ModelIdentity
from hapax.llm_oracle.questions.rewriting import FormWriter
from hapax.llm_oracle.registry import open_model, with_journal

StatementAnswers = Sequence[ProbeAnswer]
"""Answers to all questions about one statement."""


@dataclass(frozen=True, slots=True)
class ProbeScores:
    """Scores of one domain and distribution.

    `positive`, `negative`, `every`: share of statements whose questions with a positive label, with a negative label,
    or all questions were answered right. `accuracy`: mean share of right answers to a statement. `violations`,
    `refusals`: share of replies off format, and of questions that the model refused; neither counts as right.
    """

    domain: str
    distribution: Distribution
    positive: Estimate
    negative: Estimate
    every: Estimate
    accuracy: Estimate
    violations: Estimate
    refusals: Estimate

    @property
    def statements(self) -> int:
        return self.every.count


@dataclass(frozen=True, slots=True)
class Change:
    """Relative change of a domain from head to long tail; LINK's delta is that of `every`.

    nan where the head's score is 0.
    """

    domain: str
    every: Estimate
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class TemplateCell:
    """Scores of one template in one distribution."""

    template: int
    distribution: Distribution
    accuracy: Estimate
    violations: Estimate
    refusals: Estimate


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """Scores of one run: LINK's domains in its order, then others, the total last."""

    cells: tuple[ProbeScores, ...]
    changes: tuple[Change, ...]
    templates: tuple[TemplateCell, ...]

    def cell(self, domain: str, distribution: Distribution) -> ProbeScores:
        return next(cell for cell in self.cells if (cell.domain, cell.distribution) == (domain, distribution))

    def change(self, domain: str) -> Change:
        return next(change for change in self.changes if change.domain == domain)


def measure(answers: Iterable[ProbeAnswer]) -> ProbeReport:
    """Score the answers; every statement is expected to be asked in full."""
    statements = _by_statement(answers)
    # All answers of a group are about one statement, so the first tells its domain.
    domains = [*ordered_domains(answers[0].item.domain for answers in statements), TOTAL]
    scores, changes = [], []
    for domain in domains:
        head = _part(statements, domain, Distribution.HEAD)
        long_tail = _part(statements, domain, Distribution.LONG_TAIL)
        scores += [_scores(domain, Distribution.HEAD, head), _scores(domain, Distribution.LONG_TAIL, long_tail)]
        changes.append(
            Change(domain, _change(head, long_tail, _all_right), _change(head, long_tail, _share_right)),
        )
    parts = {distribution: _part(statements, TOTAL, distribution) for distribution in Distribution}
    templates = []
    for template in TEMPLATES:
        for distribution, part in parts.items():
            templates.append(_template_scores(template.number, distribution, part))
    return ProbeReport(tuple(scores), tuple(changes), tuple(templates))


def relative_drop(head: float, long_tail: float) -> float | None:
    """LINK's delta of two figures, in percent of the head's; None where the head's is 0."""
    return 100 * (long_tail - head) / head if head else None


def _by_statement(answers: Iterable[ProbeAnswer]) -> list[StatementAnswers]:
    by_statement: dict[tuple[str, Distribution], list[ProbeAnswer]] = {}
    for answer in answers:
        # A statement of both distributions has one id, and counts in each.
        by_statement.setdefault((answer.item.statement_id, answer.item.distribution), []).append(answer)
    return list(by_statement.values())


def _part(statements: Sequence[StatementAnswers], domain: str, distribution: Distribution) -> list[StatementAnswers]:
    """The statements of a domain, or of all, in one distribution."""
    part = []
    for answers in statements:
        item = answers[0].item
        if item.distribution is distribution and domain in (TOTAL, item.domain):
            part.append(answers)
    return part


def _scores(domain: str, distribution: Distribution, statements: Sequence[StatementAnswers]) -> ProbeScores:
    violations, refusals = [], []
    for answers in statements:
        violations.append([answer.verdict.violation is not None for answer in answers])
        refusals.append([answer.verdict.refusal is not None for answer in answers])
    return ProbeScores(
        domain,
        distribution,
        share([_all_right(answers, label=True) for answers in statements]),
        share([_all_right(answers, label=False) for answers in statements]),
        share([_all_right(answers) for answers in statements]),
        mean_share([_share_right(answers) for answers in statements]),
        # The replies about one statement are no independent cases.
        share_of_clusters(violations),
        share_of_clusters(refusals),
    )


def _template_scores(number: int, distribution: Distribution, statements: Sequence[StatementAnswers]) -> TemplateCell:
    replies = [answer for answer in chain.from_iterable(statements) if answer.template.number == number]
    return TemplateCell(
        number,
        distribution,
        share([answer.right for answer in replies]),
        share([answer.verdict.violation is not None for answer in replies]),
        share([answer.verdict.refusal is not None for answer in replies]),
    )


def _change(
    head: Sequence[StatementAnswers], long_tail: Sequence[StatementAnswers], score: Callable[[StatementAnswers], float]
) -> Estimate:
    # A domain, or a whole knowledge base, can have statements of one distribution only.
    if not head or not long_tail:
        return NOTHING
    return relative_change(
        [float(score(answers)) for answers in head], [float(score(answers)) for answers in long_tail]
    )


def _all_right(answers: StatementAnswers, label: bool | None = None) -> bool:
    """True if all answers are right; with a label, all answers to questions of that label."""
    return all(answer.right for answer in answers if label is None or answer.label == label)


def _share_right(answers: StatementAnswers) -> float:
    # The accuracy of LINK's table 13, beside "all 13 right", its table 4.
    return fmean(answer.right for answer in answers)


NEGATIVE_SHARE = 51.58
"""Percent of all labels (appendix G.2)."""


@dataclass(frozen=True, slots=True)
class PrintedProbe:
    """One model in one domain: (positive, negative, all) for head and long tail, and the printed delta in percent.

    Only `all` is printed for people.
    """

    who: str
    domain: str
    head: tuple[float | None, float | None, float]
    long_tail: tuple[float | None, float | None, float]
    delta: float

    @property
    def computed(self) -> float | None:
        """Delta from the printed figures; None where the head is 0, for which LINK prints 0.0 %."""
        return relative_drop(self.head[2], self.long_tail[2])


_NATURAL, _TEMPORAL, _OUTCOMES, _LOCATIONAL = DOMAINS
_HUMAN = "Human"

TABLE_4 = (
    PrintedProbe("Llama2-70B", _NATURAL, (2.78, 6.72, 0.44), (2.64, 3.49, 0.0), -100),
    PrintedProbe("ChatGPT", _NATURAL, (1.45, 5.56, 0.0), (1.08, 5.29, 0.0), -0.0),
    PrintedProbe("GPT4", _NATURAL, (13.68, 43.83, 9.23), (10.82, 39.9, 7.21), -21.89),
    PrintedProbe(_HUMAN, _NATURAL, (None, None, 82.31), (None, None, 82.45), 0.17),
    PrintedProbe("Llama2-70B", _TEMPORAL, (6.58, 2.6, 0.46), (7.43, 3.07, 0.0), -100),
    PrintedProbe("ChatGPT", _TEMPORAL, (10.72, 38.28, 4.13), (9.05, 32.15, 2.26), -45.28),
    PrintedProbe("GPT4", _TEMPORAL, (68.3, 43.95, 36.91), (60.58, 38.93, 28.11), -23.84),
    PrintedProbe(_HUMAN, _TEMPORAL, (None, None, 84.69), (None, None, 83.20), -1.76),
    PrintedProbe("Llama2-70B", _OUTCOMES, (7.62, 7.93, 1.22), (8.5, 9.97, 0.59), -51.64),
    PrintedProbe("ChatGPT", _OUTCOMES, (19.92, 29.27, 6.1), (19.65, 26.1, 2.64), -56.72),
    PrintedProbe("GPT4", _OUTCOMES, (57.32, 55.18, 41.16), (55.72, 46.63, 33.43), -18.78),
    PrintedProbe(_HUMAN, _OUTCOMES, (None, None, 83.83), (None, None, 85.13), 1.56),
    PrintedProbe("Llama2-70B", _LOCATIONAL, (8.57, 7.14, 0.0), (11.24, 8.99, 3.37), 0.0),
    PrintedProbe("ChatGPT", _LOCATIONAL, (17.14, 10.0, 5.71), (15.73, 4.49, 1.12), -80.39),
    PrintedProbe("GPT4", _LOCATIONAL, (18.57, 18.57, 2.86), (37.08, 8.99, 3.37), 17.83),
    PrintedProbe(_HUMAN, _LOCATIONAL, (None, None, 75.71), (None, None, 67.42), -10.95),
    PrintedProbe("Llama2-70B", TOTAL, (5.08, 5.28, 0.56), (5.69, 4.67, 0.27), -51.79),
    PrintedProbe("ChatGPT", TOTAL, (8.21, 20.67, 2.62), (7.76, 17.86, 1.28), -51.15),
    PrintedProbe("GPT4", TOTAL, (39.49, 44.87, 23.64), (36.58, 39.34, 18.66), -21.07),
    PrintedProbe(_HUMAN, TOTAL, (None, None, 83.12), (None, None, 82.44), -0.82),
)

TABLE_13 = {
    _NATURAL: (67.07, 63.40),
    _TEMPORAL: (83.14, 78.97),
    _OUTCOMES: (81.79, 80.19),
    _LOCATIONAL: (68.90, 67.07),
}
"""Accuracy over all questions, GPT4: head, long tail."""


def probe_tables(report: ProbeReport) -> tuple[ResultTable, ...]:
    """Ours in the layout of table 4, ours by template, then LINK's tables 4 and 13 as printed."""
    return (_ours(report), _by_template(report), _printed_table_4(), _printed_table_13())


def label_note(items: Sequence[ProbeItem]) -> str:
    """Share of negative labels, with LINK's for comparison."""
    labels = count_labels(items)
    positive = sum(item.polarity is Polarity.POSITIVE for item in items)
    return (
        f"{100 * labels.negative_share:.2f} % of {labels.positive + labels.negative} right answers are negative "
        f"(LINK: {NEGATIVE_SHARE} %); {positive} of {len(items)} conclusions are positive"
    )


def statements_note(found: ItemSet) -> str:
    """Numbers of texts found, probed, and changed by votes."""
    counts = " and ".join(f"{count} {DISTRIBUTION_NAMES[distribution]}" for distribution, count in found.found.items())
    repeats = f", {counted(found.repeats, 'repeat')} of a text left out" if found.repeats else ""
    return (
        f"{len(found.items)} of {counts} statements{repeats}; {found.shared} are in both "
        f"distributions; people's votes flipped {found.contradicted} labels and excluded {found.wrong_type} statements"
    )


def answer_json(answer: ProbeAnswer) -> dict[str, Any]:
    """An answer as a JSON object."""
    item, pair, verdict = answer.item, answer.template.pair, answer.verdict
    return {
        "statement": item.statement_id,
        "rule": item.rule,
        "domain": item.domain,
        "distribution": item.distribution.value,
        "template": answer.template.number,
        "question": answer.question,
        "label": pair.word(answer.label),
        # A released reply off format is judged as wrong, but its word is no answer.
        "answer": None if verdict.positive is None or verdict.violation else pair.word(verdict.positive),
        "right": answer.right,
        "violation": verdict.violation,
        "refusal": verdict.refusal,
        "reply": answer.reply,
        "rationale": answer.rationale,
        "probability": answer.probability,
    }


def wrong_answers(answers: Iterable[ProbeAnswer], most: int) -> list[ProbeAnswer]:
    """The first wrong answer to each statement, at most `most` statements of each distribution, the head first."""
    first: dict[Distribution, dict[str, ProbeAnswer]] = {distribution: {} for distribution in Distribution}
    for answer in answers:
        if not answer.right:
            # One per statement: a model that is wrong about it tends to be wrong in many wordings.
            first[answer.item.distribution].setdefault(answer.item.statement_id, answer)
    shown: list[ProbeAnswer] = []
    for by_statement in first.values():
        shown += list(by_statement.values())[:most]
    return shown


def answer_lines(answer: ProbeAnswer) -> Iterator[str]:
    """An answer in the layout of LINK's tables 14 and 15."""
    distribution = DISTRIBUTION_NAMES[answer.item.distribution]
    yield f"{distribution}, rule {answer.item.rule}, template {answer.template.number}: {answer.question}"
    refusal = f"refused: {answer.verdict.refusal}" if answer.verdict.refusal else ""
    text = refusal or answer.verdict.violation or " ".join(answer.reply.split())
    probability = "" if answer.probability is None else f" (P(yes) {answer.probability:.3f})"
    yield f"  label {answer.template.pair.word(answer.label)}, answer {text}{probability}"
    if answer.rationale:
        yield f"  rationale: {' '.join(answer.rationale.split())}"


def report_json(report: ProbeReport, found: ItemSet) -> dict[str, Any]:
    """Our figures as shares of 1; those under `link` are LINK's, in percent."""
    labels = count_labels(found.items)
    return {
        "statements": {
            "probed": len(found.items),
            "found": found.found,
            "repeats": found.repeats,
            "in_both_distributions": found.shared,
            "labels_turned": found.contradicted,
            "wrong_type_left_out": found.wrong_type,
        },
        "labels": {**asdict(labels), "negative_share": labels.negative_share},
        "table_4": [{**asdict(scores), "statements": scores.statements} for scores in report.cells],
        "change": report.changes,
        "templates": report.templates,
        "notes": found.notes,
        "link": {
            "table_4": [{**asdict(printed), "computed_delta": printed.computed} for printed in TABLE_4],
            "table_13": {domain: {"head": head, "long_tail": tail} for domain, (head, tail) in TABLE_13.items()},
            "negative_labels": NEGATIVE_SHARE,
        },
    }


def _ours(report: ProbeReport) -> ResultTable:
    rows = []
    for scores in report.cells:
        figures = (
            scores.positive,
            scores.negative,
            scores.every,
            scores.accuracy,
            scores.violations,
            scores.refusals,
        )
        distribution = DISTRIBUTION_NAMES[scores.distribution]
        rows.append((scores.domain, distribution, str(scores.statements), *map(percent, figures)))
        if scores.distribution is Distribution.LONG_TAIL:
            change = report.change(scores.domain)
            rows.append((scores.domain, "delta", "", "", "", percent(change.every), percent(change.accuracy), "", ""))
    measures = ("positive", "negative", f"all {len(TEMPLATES)}", "accuracy", "off format", "refused")
    columns = ("domain", "distribution", "statements", *measures)
    return ResultTable("Ours, in the layout of LINK's table 4; percent with 95 % intervals", columns, _unrepeated(rows))


def _by_template(report: ProbeReport) -> ResultTable:
    cells = {(cell.template, cell.distribution): cell for cell in report.templates}
    rows = []
    for template in TEMPLATES:
        label = "depends" if template.positive is None else template.pair.word(template.positive)
        by_distribution = [cells[template.number, distribution] for distribution in Distribution]
        accuracies = [percent(cell.accuracy) for cell in by_distribution]
        violations = [percent(cell.violations) for cell in by_distribution]
        rows.append((str(template.number), template.text, label, *accuracies, *violations))
    columns = ("", "template", "label", "head", "long tail", "off format: head", "long tail")
    return ResultTable("Ours, by question; 5 and 12 ask the same of a conclusion and its negation", columns, rows)


def _printed_table_4() -> ResultTable:
    models = tuple(dict.fromkeys(printed.who for printed in TABLE_4))
    by_place = {(printed.who, printed.domain): printed for printed in TABLE_4}
    rows = []
    for domain in (*DOMAINS, TOTAL):
        cells = [by_place[model, domain] for model in models]
        rows.append((domain, "head", *(_shares(cell.head) for cell in cells)))
        rows.append((domain, "long tail", *(_shares(cell.long_tail) for cell in cells)))
        rows.append((domain, "delta", *map(_printed_delta, cells)))
    columns = ("domain", "distribution", *(f"{model}: pos / neg / all" for model in models))
    return ResultTable("LINK's table 4 as printed: other statements, other models", columns, _unrepeated(rows))


def _printed_table_13() -> ResultTable:
    rows = []
    for domain, (head, long_tail) in TABLE_13.items():
        rows.append((domain, f"{head:.2f}", f"{long_tail:.2f}"))
    return ResultTable("LINK's table 13 as printed: accuracy of GPT4", ("domain", "head", "long tail"), rows)


def _printed_delta(printed: PrintedProbe) -> str:
    return "n/a (printed 0.0)" if printed.computed is None else f"{printed.delta:.2f}"


def _shares(figures: Sequence[float | None]) -> str:
    return " / ".join(f"{figure:.2f}" for figure in figures if figure is not None)


def _unrepeated(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows with their first cell only where it changes."""
    shown = []
    last = ""
    for first, *rest in rows:
        shown.append(("" if first == last else first, *rest))
        last = first
    return shown


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
