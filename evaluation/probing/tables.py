"""The report as rows of text and as JSON: our figures, and LINK's in tables of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from evaluation.estimates import Estimate
from evaluation.probing import paper
from evaluation.probing.asking import ProbeAnswer
from evaluation.probing.items import ItemSet, ProbeItem
from evaluation.probing.metrics import DOMAINS, TOTAL, ProbeReport
from evaluation.probing.templates import TEMPLATES, count_labels
from grammar.rules import Polarity
from kb.records import Distribution

SPOKEN = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "long tail"}


class Page(NamedTuple):
    """One table to print."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def pages(report: ProbeReport) -> tuple[Page, ...]:
    """Ours in the layout of table 4, ours by question, then LINK's tables 4 and 13 as they are printed."""
    return (_ours(report), _by_template(report), _table_4(), _table_13())


def label_line(items: Sequence[ProbeItem]) -> str:
    """How the right answers are spread, with LINK's share for comparison."""
    labels = count_labels(items)
    positive = sum(one.polarity is Polarity.POSITIVE for one in items)
    return (
        f"{100 * labels.negative_share:.2f} % of {labels.positive + labels.negative} right answers are negative "
        f"(LINK: {paper.NEGATIVE_SHARE} %); {positive} of {len(items)} conclusions are positive"
    )


def found_line(found: ItemSet) -> str:
    """How many statements there were, and what became of them."""
    counts = " and ".join(f"{count} {SPOKEN[each]}" for each, count in found.found.items())
    return (
        f"{len(found.items)} of {counts} statements; {found.shared} are in both distributions; by people's votes "
        f"{found.contradicted} labels are turned and {found.wrong_type} statements left out"
    )


def answer_json(one: ProbeAnswer) -> dict[str, Any]:
    """One answer as a line of JSONL."""
    return {
        "statement": one.item.statement_id,
        "rule": one.item.rule,
        "domain": one.item.domain,
        "distribution": one.item.distribution.value,
        "template": one.template.number,
        "question": one.question,
        "label": one.template.pair.word(one.label),
        "answer": None if one.verdict.positive is None else one.template.pair.word(one.verdict.positive),
        "right": one.right,
        "violation": one.verdict.violation,
        "refusal": one.verdict.refusal,
        "reply": one.reply,
        "rationale": one.rationale,
        "probability": one.probability,
    }


def wrong_answers(answers: Iterable[ProbeAnswer], distribution: Distribution, most: int) -> list[ProbeAnswer]:
    """The first wrong answers of a distribution, at most one a statement."""
    first: dict[str, ProbeAnswer] = {}
    for one in answers:
        if not one.right and one.item.distribution is distribution:
            first.setdefault(one.item.statement_id, one)
    return list(first.values())[:most]


def answer_lines(one: ProbeAnswer) -> Iterator[str]:
    """One answer as LINK's tables 14 and 15 show it."""
    yield f"{SPOKEN[one.item.distribution]}, rule {one.item.rule}, template {one.template.number}: {one.question}"
    refused = f"refused: {one.verdict.refusal}" if one.verdict.refusal else ""
    said = refused or one.verdict.violation or " ".join(one.reply.split())
    sure = "" if one.probability is None else f" (P(yes) {one.probability:.3f})"
    yield f"  label {one.template.pair.word(one.label)}, answer {said}{sure}"
    if one.rationale:
        yield f"  rationale: {' '.join(one.rationale.split())}"


def report_json(report: ProbeReport, found: ItemSet) -> dict[str, Any]:
    """All figures as shares of 1; what cannot be computed is null. LINK's stand under `link`, in percent."""
    labels = count_labels(found.items)
    ours: dict[str, Any] = {
        "statements": {
            "probed": len(found.items),
            "found": {each.value: count for each, count in found.found.items()},
            "in_both_distributions": found.shared,
            "labels_turned": found.contradicted,
            "wrong_type_left_out": found.wrong_type,
        },
        "labels": {**asdict(labels), "negative_share": labels.negative_share},
        "table_4": [{**asdict(one), "statements": one.statements} for one in report.cells],
        "change": [asdict(one) for one in report.changes],
        "templates": [asdict(one) for one in report.templates],
        "notes": found.notes,
        "link": {
            "table_4": [{**asdict(one), "computed_delta": one.computed} for one in paper.TABLE_4],
            "table_13": {domain: {"head": head, "long_tail": tail} for domain, (head, tail) in paper.TABLE_13.items()},
            "negative_labels": paper.NEGATIVE_SHARE,
        },
    }
    plain: dict[str, Any] = json.loads(json.dumps(ours), parse_constant=lambda _: None)
    return plain


def _ours(report: ProbeReport) -> Page:
    rows = []
    for cell in report.cells:
        figures = (cell.positive, cell.negative, cell.every, cell.accuracy, cell.violations, cell.refusals)
        rows.append((cell.domain, SPOKEN[cell.distribution], str(cell.statements), *map(percent, figures)))
        if cell.distribution is Distribution.LONG_TAIL:
            change = report.change(cell.domain)
            rows.append((cell.domain, "delta", "", "", "", percent(change.every), percent(change.accuracy), "", ""))
    measures = ("positive", "negative", "all 13", "accuracy", "off format", "refused")
    columns = ("domain", "distribution", "statements", *measures)
    return Page("Ours, in the layout of LINK's table 4; percent with 95 % intervals", columns, _unrepeated(rows))


def _by_template(report: ProbeReport) -> Page:
    cells = {(one.template, one.distribution): one for one in report.templates}
    rows = [
        (
            str(template.number),
            template.text,
            "depends" if template.positive is None else template.pair.word(template.positive),
            *(percent(cells[template.number, each].accuracy) for each in Distribution),
            *(percent(cells[template.number, each].violations) for each in Distribution),
        )
        for template in TEMPLATES
    ]
    columns = ("", "template", "label", "head", "long tail", "off format: head", "long tail")
    return Page("Ours, by question; 5 and 12 ask the same of a conclusion and its negation", columns, rows)


def _table_4() -> Page:
    who = tuple(dict.fromkeys(one.who for one in paper.TABLE_4))
    by_place = {(one.who, one.domain): one for one in paper.TABLE_4}
    rows = []
    for domain in (*DOMAINS, TOTAL):
        several = [by_place[one, domain] for one in who]
        rows.append((domain, "head", *(_three(one.head) for one in several)))
        rows.append((domain, "long tail", *(_three(one.long_tail) for one in several)))
        rows.append((domain, "delta", *(_delta(one) for one in several)))
    columns = ("domain", "distribution", *(f"{one}: pos / neg / all" for one in who))
    return Page("LINK's table 4 as printed: other statements, other models", columns, _unrepeated(rows))


def _table_13() -> Page:
    rows = [(domain, f"{head:.2f}", f"{tail:.2f}") for domain, (head, tail) in paper.TABLE_13.items()]
    return Page("LINK's table 13 as printed: accuracy of GPT4", ("domain", "head", "long tail"), rows)


def _delta(one: paper.Printed) -> str:
    return "n/a (printed 0.0)" if one.computed is None else f"{one.delta:.2f}"


def _three(figures: Sequence[float | None]) -> str:
    return " / ".join(f"{one:.2f}" for one in figures if one is not None)


def percent(one: Estimate) -> str:
    """`12.50 (4.30 to 31.10)`; `n/a` where there is nothing to measure."""
    if math.isnan(one.value):
        return "n/a"
    value = f"{100 * one.value:.2f}"
    return value if math.isnan(one.low) else f"{value} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def _unrepeated(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The rows with their first cell only where it changes."""
    before = ("", *(row[0] for row in rows))
    return [("" if row[0] == last else row[0], *row[1:]) for row, last in zip(rows, before, strict=False)]
