"""Metrics over probe answers: LINK's table 4 with intervals, its table 13, and scores by template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from hapax.evaluation.link.probing.asking import TEMPLATES, ProbeAnswer
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mean_share, relative_change, share, share_of_clusters
from hapax.evaluation.shared.stored_statements import TOTAL, ordered_domains
from hapax.kb.records import Distribution

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
