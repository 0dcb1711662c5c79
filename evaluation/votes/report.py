"""What people's votes come to, in the layout of LINK's tables 3, 4, 6, 17, 19 and 20, as text and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from engine.proof import proof_from_json, proof_text
from evaluation.estimates import Estimate
from evaluation.probing.items import verdicts_of
from evaluation.probing.metrics import DOMAINS, TOTAL
from evaluation.probing.paper import TABLE_4
from evaluation.probing.tables import Page, percent
from evaluation.votes import paper
from evaluation.votes.items import Askable, subject
from evaluation.votes.questions import Kind, visible
from evaluation.votes.tally import SPOKEN, Accuracy, Baseline, Judged, count_votes
from grammar.errors import HapaxError
from grammar.words import counted
from kb.records import Distribution, RuleRecord
from kb.store import KnowledgeBase

_QUESTIONS = tuple(f"Q{number}" for number in range(1, 6))
_MEASURES_OF_AGREEMENT = ("percent", "unanimous", "fleiss", "krippendorff")


class VotesResult:
    """The votes of a knowledge base, counted and ready to be told. Raises HapaxError where there are none."""

    def __init__(self, kb: KnowledgeBase) -> None:
        if not kb.votes():
            raise HapaxError(
                f"{kb.place} holds no votes. Export sheets (`hapax votes export`), and import them when they are "
                "filled in (`hapax votes import`)."
            )
        statements = kb.statements()
        self.count = count_votes(kb, statements)
        self._rules = {one.name: one for one in kb.rules()}
        wrong = [one.record for one in self.count.failures]
        self._wordings = {
            (subject(one.id), asked.key.casefold()): asked.text
            for one in Askable(kb, Kind.STATEMENTS).items(wrong)
            for asked in one.asked
        }
        verdicts = verdicts_of(kb.votes())
        known = {(one.id, one.distribution) for one in statements}
        left = [(key, end) for key, end in known if key not in verdicts.wrong_type]
        self.remaining = {each: sum(end is each for _, end in left) for each in Distribution}
        self.turned = len({key for key, _ in left if key in verdicts.contradicted})
        self.wrong_type = len(known) - len(left)

    def pages(self) -> Iterator[Page]:
        """Our tables, each followed by the paper's."""
        count = self.count
        if count.judged:
            yield _across("Ours, in the layout of LINK's table 3: accuracy by majority", list(count.by_method()))
            yield _printed("LINK's table 3 as printed: other statements", paper.METHODS, paper.TABLE_3)
            yield _down("Ours, in the layout of LINK's table 17: accuracy by domain", list(count.by_domain()))
            yield _table_17()
            yield self._agreement()
            yield _printed(
                "LINK's table 19 as printed; it does not say of which measure", paper.METHODS, paper.TABLE_19
            )
        if count.audit is not None:
            audit = count.audit
            cells = (*audit.errors, *audit.correct.values())
            columns = ("facts", *_QUESTIONS, *(f"{SPOKEN[each]} correct" for each in audit.correct))
            title = "Ours, in the layout of LINK's table 6: error rates, and statements all of whose facts are right"
            yield Page(title, columns, [(str(audit.facts), *map(percent, cells))])
            reference = tuple(f"{one:.2f}" for one in (*paper.TABLE_6, *paper.AUDIT_CORRECT))
            yield Page("LINK's table 6 and appendix C as printed", columns[1:], [reference])
        if count.baseline is not None:
            yield _people(count.baseline)
            yield _people_printed()

    def _agreement(self) -> Page:
        rows = [
            (name, str(one.questions), *(_plain(getattr(one, each), each) for each in _MEASURES_OF_AGREEMENT))
            for name, one in self.count.agreements.items()
        ]
        columns = ("agreement on", "questions", "percent of pairs", "unanimous", "Fleiss", "Krippendorff")
        return Page("Ours, in the layout of LINK's table 19: agreement", columns, rows)

    def failure_lines(self, most: int | None) -> Iterator[str]:
        """Statements that a majority found wrong, with rule, values, votes and proof (table 20)."""
        for one in self.count.failures[:most]:
            yield from self._failure(one)

    def _failure(self, one: Judged) -> Iterator[str]:
        rule, record = self._rules.get(one.record.rule), one.record
        yield f"{SPOKEN[record.distribution]}, rule {record.rule}, {one.domain}, statement {record.id}"
        yield f"  rule: {_one_line(rule)}"
        yield f"  values: {', '.join(f'{name} = {visible(str(value))}' for name, value in record.substitution)}"
        yield f"  premise: {visible(record.premise)}"
        yield f"  conclusion: {visible(record.conclusion)}"
        for question, ballot in one.of_quality.items():
            yes, no = ballot.counts
            yield f"  {self._wordings.get((record.id, question), question)} {ballot.majority} ({yes} yes, {no} no)"
            for vote in ballot.votes:
                if vote.comment:
                    yield f"    {visible(vote.voter)}: {visible(vote.comment)}"
        for line in _proof(one).splitlines():
            yield f"  proof: {line}"

    def remarks(self) -> Iterator[str]:
        """What a reader of the figures should know."""
        count = self.count
        yield (
            f"{counted(count.votes, 'vote')} of {counted(count.voters, 'voter')}; "
            f"{counted(len(count.distinct), 'statement')} judged, {len(count.failures)} found wrong, "
            f"{len(count.harmful)} marked as harmful"
        )
        ends = " and ".join(f"{number} {SPOKEN[each]}" for each, number in self.remaining.items())
        yield (
            f"for `hapax evaluate probe`: {counted(self.turned, 'label is', 'labels are')} turned, "
            f"{counted(self.wrong_type, 'statement has', 'statements have')} a value of a wrong type and "
            f"{'is' if self.wrong_type == 1 else 'are'} left out; {ends} statements remain"
        )
        yield from self._ties()
        if count.imported:
            yield (
                f"{counted(count.imported, 'label was', 'labels were')} turned by LINK's annotators. Of their votes "
                "only these are known, so they turn labels and are in none of these tables."
            )
        if count.strays:
            yield f"{counted(count.strays, 'vote is', 'votes are')} about what this knowledge base does not hold"
        yield from self._about_people()

    def _ties(self) -> Iterator[str]:
        ties = [(one.record.id, question) for one in self.count.distinct for question in one.ties]
        if ties:
            told = "; ".join(f"{question} of {key}" for key, question in ties[:_TIES_TOLD])
            more = "; ..." if len(ties) > _TIES_TOLD else ""
            yield f"{counted(len(ties), 'tie')}, settled for neither side: {told}{more}"
        if self.count.audit is not None and self.count.audit.ties:
            yield f"{counted(self.count.audit.ties, 'tie')} in the audit of facts, settled for neither side"

    def _about_people(self) -> Iterator[str]:
        baseline = self.count.baseline
        if baseline is None:
            return
        if baseline.ties:
            yield f"{counted(baseline.ties, 'tie')} in the human baseline: not right, and counted as off format"
        if baseline.unlabelled:
            yield (
                f"{counted(baseline.unlabelled, 'statement')} of the human baseline nobody judged: taken as entailed, "
                "as its rule says"
            )
        if baseline.both_roles:
            yield (
                f"{', '.join(map(visible, baseline.both_roles))} gave labels and answered the baseline, too; in the "
                "paper these are other people (section 4)"
            )

    def to_json(self, failures: int | None = None) -> dict[str, Any]:
        """All figures as shares of 1; what cannot be computed is null. LINK's stand under `link`, in percent."""
        count = self.count
        ours = {
            "votes": count.votes,
            "voters": count.voters,
            "statements": {
                "judged": len(count.distinct),
                "found_wrong": len(count.failures),
                "labels_turned": self.turned,
                "wrong_type_left_out": self.wrong_type,
                "remaining": {each.value: number for each, number in self.remaining.items()},
                "harmful": sorted(count.harmful),
            },
            "ties": [{"statement": one.record.id, "questions": one.ties} for one in count.distinct if one.ties],
            "table_3": [asdict(one) for one in count.by_method()],
            "table_17": [asdict(one) for one in count.by_domain()] if count.judged else [],
            "table_19": {name: asdict(one) for name, one in count.agreements.items()} if count.judged else {},
            "table_6": None if count.audit is None else asdict(count.audit),
            "baseline": None if count.baseline is None else _baseline_json(count.baseline),
            "failures": [self._failure_json(one) for one in count.failures[:failures]],
            "remarks": list(self.remarks()),
            "link": {
                "methods": paper.METHODS,
                "table_3": paper.TABLE_3,
                "table_6": paper.TABLE_6,
                "audit_correct": paper.AUDIT_CORRECT,
                "table_17": paper.TABLE_17,
                "table_19": paper.TABLE_19,
                "human": [asdict(one) for one in TABLE_4 if one.who == "Human"],
            },
        }
        plain: dict[str, Any] = json.loads(json.dumps(ours), parse_constant=lambda _: None)
        return plain

    def _failure_json(self, one: Judged) -> dict[str, Any]:
        record = one.record
        return {
            "statement": record.id,
            "rule": record.rule,
            "rule_text": _one_line(self._rules.get(record.rule)),
            "domain": one.domain,
            "distribution": record.distribution.value,
            "values": {name: str(value) for name, value in record.substitution},
            "premise": record.premise,
            "conclusion": record.conclusion,
            "votes": [
                {"question": vote.question, "voter": vote.voter, "answer": vote.answer, "comment": vote.comment}
                for ballot in one.of_quality.values()
                for vote in ballot.votes
            ],
            "proof": _proof(one).splitlines(),
        }


_TIES_TOLD = 5


def _one_line(rule: RuleRecord | None) -> str:
    return "not stored" if rule is None else " ".join(visible(rule.text.replace("\n", " ")).split())


def _proof(one: Judged) -> str:
    """The proof as lines; an import without one has none."""
    if not one.record.proof.get("steps"):
        return ""
    return proof_text(proof_from_json(one.record.proof), lambda goal: visible(str(goal)))


def _across(title: str, columns: Sequence[Accuracy]) -> Page:
    figures = {
        "data type": [one.data_type for one in columns],
        "factuality": [one.factuality for one in columns],
        "overall": [one.overall for one in columns],
    }
    rows = [(name, *map(percent, several)) for name, several in figures.items()]
    rows.append(("statements", *(str(one.statements) for one in columns)))
    return Page(title, ("accuracy", *(one.group for one in columns)), rows)


def _down(title: str, lines: Sequence[Accuracy]) -> Page:
    rows = [
        (one.group, str(one.statements), percent(one.data_type), percent(one.factuality), percent(one.overall))
        for one in lines
    ]
    return Page(title, ("domain", "statements", *paper.MEASURES), rows)


def _printed(title: str, columns: Sequence[str], table: dict[str, tuple[float, float, float]]) -> Page:
    return Page(title, ("", *columns), [(name, *(f"{one:.2f}" for one in row)) for name, row in table.items()])


def _table_17() -> Page:
    rows = [(domain, *(f"{one:.2f}" for one in row)) for domain, row in paper.TABLE_17.items()]
    return Page("LINK's table 17 as printed", ("domain", *paper.MEASURES), rows)


def _plain(one: Estimate, measure: str) -> str:
    """Shares in percent, coefficients as they are."""
    if measure in {"percent", "unanimous"}:
        return percent(one)
    return "n/a" if math.isnan(one.value) else str(one)


def _people(baseline: Baseline) -> Page:
    rows = []
    for cell in baseline.majority.cells:
        single = baseline.single.cell(cell.domain, cell.distribution)
        figures = (cell.every, cell.accuracy, single.accuracy)
        rows.append((cell.domain, SPOKEN[cell.distribution], str(cell.statements), *map(percent, figures)))
        if cell.distribution is Distribution.LONG_TAIL:
            change, alone = baseline.majority.change(cell.domain), baseline.single.change(cell.domain)
            deltas = (change.every, change.accuracy, alone.accuracy)
            rows.append((cell.domain, "delta", "", *map(percent, deltas)))
    asked = "template " + " and ".join(map(str, baseline.templates))
    columns = ("domain", "distribution", "statements", "all, by majority", "accuracy, by majority", "one person")
    return Page(f"Ours: people, in the layout of LINK's table 4 ({asked})", columns, rows)


def _people_printed() -> Page:
    human = {one.domain: one for one in TABLE_4 if one.who == "Human"}
    rows = [
        (domain, f"{human[domain].head[2]:.2f}", f"{human[domain].long_tail[2]:.2f}", f"{human[domain].delta:.2f}")
        for domain in (*DOMAINS, TOTAL)
    ]
    return Page("LINK's table 4 as printed: people", ("domain", "head", "long tail", "delta"), rows)


def _baseline_json(baseline: Baseline) -> dict[str, Any]:
    def cells(report: Any) -> list[dict[str, Any]]:
        return [
            {
                "domain": one.domain,
                "distribution": one.distribution.value,
                "statements": one.statements,
                "all": asdict(one.every),
                "accuracy": asdict(one.accuracy),
            }
            for one in report.cells
        ]

    return {
        "templates": baseline.templates,
        "majority": cells(baseline.majority),
        "one_person": cells(baseline.single),
        "change": [asdict(one) for one in baseline.majority.changes],
        "ties": baseline.ties,
        "unlabelled": baseline.unlabelled,
        "both_roles": baseline.both_roles,
    }
