"""What the answers come to: LINK's table 4 with intervals, its table 13, and the questions one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluation.estimates import NOTHING, Estimate, mean, relative_change, share
from evaluation.probing.asking import ProbeAnswer
from evaluation.probing.templates import TEMPLATES
from grammar.rules import Domain
from kb.records import Distribution

TOTAL = "total"
DOMAINS = (Domain.NATURAL.value, Domain.TEMPORAL.value, Domain.OUTCOMES.value, Domain.LOCATIONAL.value)
"""In table 4's order."""

Asked = Sequence[ProbeAnswer]
"""The answers to one statement."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One domain and distribution. `positive`, `negative` and `every`: the share of statements of which all questions
    with such a label, or all 13, were answered right. `accuracy`: the mean share of right answers of a statement.
    `violations` and `refusals`: the shares of replies that kept to no format and of questions that the model refused;
    they count as not right everywhere else.
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
    """How a domain goes from head to long tail, relative to the head: LINK's delta is that of `every`.

    nan where the head has nothing to lose.
    """

    domain: str
    every: Estimate
    accuracy: Estimate


@dataclass(frozen=True, slots=True)
class TemplateCell:
    """One question in one distribution."""

    template: int
    distribution: Distribution
    accuracy: Estimate
    violations: Estimate
    refusals: Estimate


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """All tables of one run. Domains come in LINK's order, then others, the total last."""

    cells: tuple[Cell, ...]
    changes: tuple[Change, ...]
    templates: tuple[TemplateCell, ...]

    def cell(self, domain: str, distribution: Distribution) -> Cell:
        return next(one for one in self.cells if (one.domain, one.distribution) == (domain, distribution))

    def change(self, domain: str) -> Change:
        return next(one for one in self.changes if one.domain == domain)


def measure(answers: Iterable[ProbeAnswer]) -> ProbeReport:
    """The report on the statements that were asked in full."""
    statements = _by_statement(answers)
    seen = {asked[0].item.domain for asked in statements}
    domains = [*in_order(seen), TOTAL]
    parts = {
        (domain, distribution): [one for one in statements if _belongs(one, domain, distribution)]
        for domain in domains
        for distribution in Distribution
    }
    changes = (
        Change(
            domain,
            _change(parts[domain, Distribution.HEAD], parts[domain, Distribution.LONG_TAIL], _all_right),
            _change(parts[domain, Distribution.HEAD], parts[domain, Distribution.LONG_TAIL], _share_right),
        )
        for domain in domains
    )
    return ProbeReport(
        tuple(_cell(domain, distribution, part) for (domain, distribution), part in parts.items()),
        tuple(changes),
        tuple(
            _template(template.number, distribution, parts[TOTAL, distribution])
            for template in TEMPLATES
            for distribution in Distribution
        ),
    )


def in_order(domains: Iterable[str]) -> list[str]:
    """LINK's four domains as its table 4 has them, then others by name."""
    seen = set(domains)
    return [one for one in DOMAINS if one in seen] + sorted(seen.difference(DOMAINS))


def relative_drop(head: float, long_tail: float) -> float | None:
    """LINK's delta of two figures, in percent of the head's; None where the head is 0."""
    return 100 * (long_tail - head) / head if head else None


def _by_statement(answers: Iterable[ProbeAnswer]) -> list[Asked]:
    found: dict[tuple[str, Distribution], list[ProbeAnswer]] = {}
    for one in answers:
        found.setdefault((one.item.statement_id, one.item.distribution), []).append(one)
    return list(found.values())


def _belongs(asked: Asked, domain: str, distribution: Distribution) -> bool:
    return asked[0].item.distribution is distribution and domain in (TOTAL, asked[0].item.domain)


def _cell(domain: str, distribution: Distribution, statements: Sequence[Asked]) -> Cell:
    return Cell(
        domain,
        distribution,
        share([_all_right([one for one in asked if one.label]) for asked in statements]),
        share([_all_right([one for one in asked if not one.label]) for asked in statements]),
        share([_all_right(asked) for asked in statements]),
        mean([_share_right(asked) for asked in statements]) if statements else NOTHING,
        share([one.verdict.violation is not None for asked in statements for one in asked]),
        share([one.verdict.refusal is not None for asked in statements for one in asked]),
    )


def _template(number: int, distribution: Distribution, statements: Sequence[Asked]) -> TemplateCell:
    answers = [one for asked in statements for one in asked if one.template.number == number]
    return TemplateCell(
        number,
        distribution,
        share([one.right for one in answers]),
        share([one.verdict.violation is not None for one in answers]),
        share([one.verdict.refusal is not None for one in answers]),
    )


def _change(head: Sequence[Asked], long_tail: Sequence[Asked], figure: Callable[[Asked], float]) -> Estimate:
    if not head or not long_tail:
        return Estimate(math.nan, math.nan, math.nan, 0)
    return relative_change([float(figure(one)) for one in head], [float(figure(one)) for one in long_tail])


def _all_right(asked: Asked) -> bool:
    return all(one.right for one in asked)


def _share_right(asked: Asked) -> float:
    return fmean(one.right for one in asked)
