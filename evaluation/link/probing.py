"""LINK's probing: 13 questions about each stored statement, and its tables; LINK's own as printed stand apart."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, product
from statistics import fmean
from typing import Annotated, Any, Literal

from hapax.evaluation.link.judging import PAPER
from hapax.evaluation.link.probing_questions import (
    ANSWER_TOKENS,
    EXPLANATION_TOKENS,
    PREFIX,
    STEP_BY_STEP,
    TEMPERATURE,
    TEMPLATES,
    Asker,
    ItemSet,
    ParsedReply,
    ProbeAnswer,
    ProbeItem,
    ProbeQuestion,
    ReleasedAsker,
    ReleasedSettings,
    ReleasedVariant,
    closing,
    examples,
    parse_reply,
    probe_items,
    released_order,
    without_answer,
)
from hapax.evaluation.shared.estimates import (
    NOTHING,
    Estimate,
    mean_share,
    percent,
    relative_change,
    share,
)
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, for_batches, grouped
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    TOTAL,
    StatementChoice,
    ordered_domains,
    stored_library,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed, Temperature
from hapax.grammar.parsing.declarations import Polarity
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, CallStatistics
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.protocols import (
    CRITIC,
    KNOWLEDGE,
    Critic,
    Generation,
    GenerationParameters,
    GenerationRequest,
    Generator,
    ModelIdentity,
)
from hapax.llm_oracle.questions.rewriting import FormWriter
from hapax.llm_oracle.registry import open_model, with_journal

# --- asking -----------------------------------------------------------------------------------------------------------

ROLE = "probe"
"""Role under which probing calls are counted."""

STATEMENTS_PER_BATCH = 16
"""Statements whose questions share batches; a budget that ends within a batch loses all of them."""


class ProbeMethod(StrEnum):
    """The method of asking a model."""

    CRITIC = "critic"
    TEXT = "text"
    CHAIN = "cot"


def critic_asker(model: Critic, journal: Journal) -> Asker:
    """Put each question to a critic as the claim to judge; P(yes) above one half is the positive answer."""
    critic = JournaledCritic(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = [template.question(item) for item, template in questions]
        answers = []
        for (item, template), text, score in zip(questions, texts, critic.probabilities(texts), strict=True):
            if score.refused:
                # A refused claim has a P(yes), which lets a search go on; as an answer it would be made up.
                answers.append(ProbeAnswer(item, template, text, ParsedReply(None, refusal=score.refused)))
                continue
            # Exactly one half counts as the negative answer.
            positive = score.probability > 0.5
            # The reply in words, although the critic gave a number, so that all methods are reported alike.
            word = template.pair.word(positive)
            answers.append(ProbeAnswer(item, template, text, ParsedReply(positive), word, None, score.probability))
        return answers

    return ask


def reply_asker(model: Generator, journal: Journal, options: ProbeOptions) -> Asker:
    """Put the question to a generator and parse the first word of its reply.

    For a chain of thought, show two worked examples, let the model write a rationale, and then request its answer.
    """
    generator = JournaledGenerator(model, journal, role=ROLE)

    def replies(prompts: Sequence[str], max_tokens: int) -> list[Generation]:
        parameters = GenerationParameters(options.temperature, max_tokens=max_tokens, seed=options.seed)
        return generator.generate([GenerationRequest(prompt) for prompt in prompts], parameters)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = [template.question(item) for item, template in questions]
        prompts = [f"{PREFIX}\n{text}" for text in texts]
        rationales: list[str | None] = [None] * len(texts)
        if options.way is ProbeMethod.CHAIN:
            for place, (item, template) in enumerate(questions):
                worked = examples(options.seed, item, template)
                prompts[place] = f"{PREFIX}\n{worked}{texts[place]}\n{STEP_BY_STEP}\n"
            rationales = [without_answer(thought.text) for thought in replies(prompts, EXPLANATION_TOKENS)]
            for place, (_, template) in enumerate(questions):
                # The whole first prompt again with its rationale: a request has no memory of another.
                prompts[place] += f"{rationales[place]}\n{closing(template)}"
        answers = []
        answered = zip(questions, texts, replies(prompts, ANSWER_TOKENS), rationales, strict=True)
        for (item, template), text, reply, rationale in answered:
            verdict = ParsedReply(None, refusal=reply.refused)
            if not reply.refused:
                verdict = parse_reply(reply.text, template.pair)
            answers.append(ProbeAnswer(item, template, text, verdict, reply.text, rationale))
        return answers

    return ask


# --- scores -----------------------------------------------------------------------------------------------------------

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
    statements: int
    positive: Estimate
    negative: Estimate
    every: Estimate
    accuracy: Estimate
    violations: Estimate
    refusals: Estimate


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
    """Scores of one run, by domain and distribution: LINK's domains in its order, then others, the total last."""

    cells: Mapping[tuple[str, Distribution], ProbeScores]
    changes: Mapping[str, Change]
    templates: tuple[TemplateCell, ...]


def measure(answers: Iterable[ProbeAnswer]) -> ProbeReport:
    """Score the answers; every statement is expected to be asked in full."""
    # A statement of both distributions has one id, and counts in each.
    groups = grouped(answers, lambda answer: (answer.item.statement_id, answer.item.distribution))
    cells, changes, templates = {}, {}, []
    # All answers of a group are about one statement, so the first tells its domain.
    for domain in [*ordered_domains(group[0].item.domain for group in groups.values()), TOTAL]:
        ends: dict[Distribution, list[StatementAnswers]] = {distribution: [] for distribution in Distribution}
        for (_, distribution), group in groups.items():
            if domain in (TOTAL, group[0].item.domain):
                ends[distribution].append(group)
        for distribution, statements in ends.items():
            cells[domain, distribution] = _scores(domain, distribution, statements)
        changes[domain] = Change(domain, _change(ends, _all_right), _change(ends, _share_right))
    # The last domain is the total.
    for template, (distribution, statements) in product(TEMPLATES, ends.items()):
        replies = [answer for answer in chain.from_iterable(statements) if answer.template.number == template.number]
        shares = share([answer.right for answer in replies]), share(_violations(replies)), share(_refusals(replies))
        templates.append(TemplateCell(template.number, distribution, *shares))
    return ProbeReport(cells, changes, tuple(templates))


def _scores(domain: str, distribution: Distribution, statements: Sequence[StatementAnswers]) -> ProbeScores:
    return ProbeScores(
        domain,
        distribution,
        len(statements),
        share([_all_right(answers, label=True) for answers in statements]),
        share([_all_right(answers, label=False) for answers in statements]),
        share([_all_right(answers) for answers in statements]),
        mean_share([_share_right(answers) for answers in statements]),
        # By statement: the replies about one statement are no independent cases.
        mean_share([fmean(_violations(answers)) for answers in statements]),
        mean_share([fmean(_refusals(answers)) for answers in statements]),
    )


def _change(
    ends: Mapping[Distribution, Sequence[StatementAnswers]], score: Callable[[StatementAnswers], float]
) -> Estimate:
    # A domain, or a whole knowledge base, can have statements of one distribution only.
    if not all(ends.values()):
        return NOTHING
    head, long_tail = ([float(score(answers)) for answers in statements] for statements in ends.values())
    return relative_change(head, long_tail)


def _all_right(answers: StatementAnswers, label: bool | None = None) -> bool:
    """True if all answers are right; with a label, all answers to questions of that label."""
    return all(answer.right for answer in answers if label is None or answer.label == label)


def _share_right(answers: StatementAnswers) -> float:
    # The accuracy of LINK's table 13, beside "all 13 right", its table 4.
    return fmean(answer.right for answer in answers)


def _violations(answers: StatementAnswers) -> list[bool]:
    return [answer.verdict.violation is not None for answer in answers]


def _refusals(answers: StatementAnswers) -> list[bool]:
    return [answer.verdict.refusal is not None for answer in answers]


# --- tables -----------------------------------------------------------------------------------------------------------


def probe_tables(report: ProbeReport) -> Iterator[ResultTable]:
    """Ours in the layout of table 4, and ours by template."""
    rows: list[tuple[str, ...]] = []
    for domain, change in report.changes.items():
        for distribution, name in DISTRIBUTION_NAMES.items():
            cell = report.cells[domain, distribution]
            right = (cell.positive, cell.negative, cell.every, cell.accuracy)
            figures = map(percent, (*right, cell.violations, cell.refusals))
            rows.append((domain, name, str(cell.statements), *figures))
        rows.append((domain, "delta", "", "", "", percent(change.every), percent(change.accuracy), "", ""))
    measures = ("positive", "negative", f"all {len(TEMPLATES)}", "accuracy", "off format", "refused")
    columns: tuple[str, ...] = ("domain", "distribution", "statements", *measures)
    yield ResultTable("Ours, in the layout of LINK's table 4; percent with 95 % intervals", columns, _unrepeated(rows))
    rows = []
    for place, template in enumerate(TEMPLATES):
        # Head and long tail of each template in turn.
        ends = report.templates[2 * place : 2 * place + 2]
        label = "depends" if template.positive is None else template.pair.word(template.positive)
        figures = map(percent, (*(cell.accuracy for cell in ends), *(cell.violations for cell in ends)))
        rows.append((str(template.number), template.text, label, *figures))
    columns = ("", "template", "label", "head", "long tail", "off format: head", "long tail")
    yield ResultTable("Ours, by question; 5 and 12 ask the same of a conclusion and its negation", columns, rows)


def computed_delta(printed: Mapping[str, Any]) -> float | None:
    """Delta in percent from the printed figures; None where the head is 0, for which LINK prints 0.0 %."""
    head, long_tail = printed["head"][2], printed["long_tail"][2]
    return 100 * (long_tail - head) / head if head else None


def printed_tables() -> Iterator[ResultTable]:
    """LINK's tables 4 and 13 as printed."""
    # In the order of the domains.
    by_domain: dict[str, list[Mapping[str, Any]]] = grouped(PAPER["table_4"], lambda printed: str(printed["domain"]))
    rows: list[tuple[str, ...]] = []
    for domain, cells in by_domain.items():
        for end, name in DISTRIBUTION_NAMES.items():
            # Of people, only the last of the three figures is printed.
            known = ([figure for figure in cell[end] if figure is not None] for cell in cells)
            rows.append((domain, name, *(" / ".join(f"{figure:.2f}" for figure in figures) for figures in known)))
        deltas = ("n/a (printed 0.0)" if computed_delta(cell) is None else f"{cell['delta']:.2f}" for cell in cells)
        rows.append((domain, "delta", *deltas))
    columns = ("domain", "distribution", *(f"{cell['who']}: pos / neg / all" for cell in by_domain[TOTAL]))
    title = "LINK's table 4 as printed: other statements, other models"
    yield ResultTable(title, columns, _unrepeated(rows))
    rows = [(domain, f"{head:.2f}", f"{long_tail:.2f}") for domain, (head, long_tail) in PAPER["table_13"].items()]
    yield ResultTable("LINK's table 13 as printed: accuracy of GPT4", ("domain", "head", "long tail"), rows)


def _unrepeated(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows with their first cell only where it changes."""
    before = ("", *(first for first, *_ in rows))
    return [("" if row[0] == last else row[0], *row[1:]) for row, last in zip(rows, before, strict=False)]


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


# --- the experiment ---------------------------------------------------------------------------------------------------

WRONG_SHOWN = 2
"""Wrong answers of each distribution among the details of a probe."""


@checked
@dataclass(frozen=True, slots=True)
class ProbeOptions(StatementChoice):
    """Options of a probing. `sample`: statements of each distribution; None: all.

    `compat` `released`: ask like LINK's released code, with a generator at its own temperature. `writer`, by default
    the probed model, then writes the negations and questions; `variants` are its switches. Raises HapaxError for
    `variants` without `compat`, and for `compat` with a critic.
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
            "With --compat: no explanation, or no worked examples.",
            name="variant",
        ),
    ] = ()
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
        settings = ReleasedSettings(self.way is ProbeMethod.CHAIN, frozenset(self.variants), self.seed)
        return settings if self.compat else None


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Questions asked, the answers, and their scores. `stopped`: the message of the budget that ended the asking."""

    model: ModelIdentity
    options: ProbeOptions
    found: ItemSet
    answers: tuple[ProbeAnswer, ...]
    report: ProbeReport
    calls: CallStatistics
    stopped: str | None = None

    def answers_json(self) -> Iterator[dict[str, Any]]:
        """All answers as JSON objects, for a file of lines."""
        return map(answer_json, self.answers)

    def evaluation(self, most_wrong: int) -> Evaluation[ProbeResult]:
        """Tables and figures, with at most `most_wrong` wrong answers of each distribution as examples.

        Our figures are shares of 1; those under `link` are LINK's, in percent.
        """
        found, labels = self.found, self._labels
        wrong = wrong_answers(self.answers, most_wrong)
        figures = {
            "model": self.model.name,
            "revision": self.model.revision,
            "ask": self.options.way,
            "calls": {"sent": self.calls.calls, "from_journal": self.calls.hits},
            "stopped": self.stopped,
            "statements": {
                "probed": len(found.items),
                "found": found.found,
                "repeats": found.repeats,
                "in_both_distributions": found.shared,
                "labels_turned": found.contradicted,
                "wrong_type_left_out": found.wrong_type,
            },
            "labels": {
                "positive": sum(labels),
                "negative": labels.count(False),
                "negative_share": fmean(map(operator.not_, labels)) if labels else None,
            },
            "table_4": list(self.report.cells.values()),
            "change": list(self.report.changes.values()),
            "templates": self.report.templates,
            "notes": found.notes,
            "link": {
                "table_4": [{**row, "computed_delta": computed_delta(row)} for row in PAPER["table_4"]],
                "table_13": {
                    name: dict(zip(Distribution, row, strict=True)) for name, row in PAPER["table_13"].items()
                },
                "negative_labels": PAPER["negative"],
            },
            "wrong": list(map(answer_json, wrong)),
        }
        lines = list(chain.from_iterable(map(answer_lines, wrong)))
        return Evaluation(self, [*probe_tables(self.report), *printed_tables()], figures, lines, tuple(self._notes()))

    @property
    def _labels(self) -> list[bool]:
        """The right answers to all questions about each item; True is the positive one."""
        return [template.label(item) for item, template in product(self.found.items, TEMPLATES)]

    def _notes(self) -> Iterator[str]:
        found, labels = self.found, self._labels
        counts = " and ".join(f"{count} {DISTRIBUTION_NAMES[end]}" for end, count in found.found.items())
        repeats = f", {counted(found.repeats, 'repeat')} of a text left out" if found.repeats else ""
        yield (
            f"{len(found.items)} of {counts} statements{repeats}; {found.shared} are in both "
            f"distributions; people's votes flipped {found.contradicted} labels and excluded {found.wrong_type} "
            "statements"
        )
        positive = sum(item.polarity is Polarity.POSITIVE for item in found.items)
        negative = 100 * labels.count(False) / len(labels) if labels else float("nan")
        yield (
            f"{negative:.2f} % of {len(labels)} right answers are negative (LINK: {PAPER['negative']} %); "
            f"{positive} of {len(found.items)} conclusions are positive"
        )
        yield f"{counted(self.calls.calls, 'call')}, {counted(self.calls.hits, 'answer')} from the journal"
        yield from found.notes
        if self.model.knows is not None:
            yield (
                f"{self.model.name} was trained to judge and complete single facts of {len(self.model.knows)} "
                "predicates, not to answer questions with premise and conclusion: these figures say how it answers "
                "them, not what it knows."
            )
        if self.options.compat is not None:
            yield from self._released_notes()
        if self.stopped:
            yield self.stopped

    def _released_notes(self) -> Iterator[str]:
        yield (
            "asked as LINK's released code asks; `accuracy` is its measure, where a statement with flipped labels "
            "counts 1 less its share of right answers, and a reply off format is a wrong answer like any other"
        )
        wrong_form = [item.rule for item in self.found.items if item.polarity is Polarity.POSITIVE]
        if wrong_form:
            yield (
                f"{counted(len(wrong_form), 'statement')} of {', '.join(dict.fromkeys(wrong_form))} with a positive "
                "conclusion was asked about in the form for negative ones, as the released code does by mistake: the "
                "right answer to question 7 is taken to be No"
            )


@checked
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
    found = probe_items(kb, options, options.sample, options.seed, writer=writer)
    total = len(found.items)
    if released is not None:
        # The draws of worked examples follow the order of the questions, so the order is part of the method.
        found = replace(found, items=released_order(found.items))
        rewriter = JournaledGenerator(writing, journal, role="writer")
        ask: Asker = ReleasedAsker(JournaledGenerator(model, journal, role=ROLE), rewriter, released)
    elif options.way is ProbeMethod.CRITIC:
        ask = critic_asker(model, journal)
    else:
        ask = reply_asker(model, journal, options)
    answers: list[ProbeAnswer] = []

    def ask_batch(batch: Sequence[ProbeItem]) -> None:
        # All questions about a statement in one batch, so that a budget leaves none half asked.
        answers.extend(ask(list(product(batch, TEMPLATES))))

    finished = None if progress is None else lambda done: progress(done, total)
    stopped = for_batches(found.items, STATEMENTS_PER_BATCH, ask_batch, finished)
    report = measure(answers)
    message = str(stopped) if stopped else None
    probed = ProbeResult(model.identity, options, found, tuple(answers), report, journal.total, message)
    return probed.evaluation(wrong)
