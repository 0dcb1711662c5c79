"""Votes counted: majorities, what they say of statements and facts, and how people do as a model would be measured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.distributions import methods_by_run
from evaluation.estimates import Estimate, share
from evaluation.lint import VOTER
from evaluation.probing.asking import ProbeAnswer
from evaluation.probing.items import DATA_TYPE, ENTAILMENT, NO_DOMAIN, items_of, verdicts_of
from evaluation.probing.metrics import TOTAL, ProbeReport, in_order, measure
from evaluation.probing.reading import Verdict
from evaluation.probing.templates import TEMPLATES
from evaluation.votes.agreement import Agreement, agreement
from evaluation.votes.items import Askable
from evaluation.votes.paper import MEASURES
from evaluation.votes.questions import AUDIT, BASELINE, HARMFUL, Kind
from kb.records import Distribution, StatementRecord, VoteRecord
from kb.store import KnowledgeBase

AUDIT_QUESTIONS = tuple(f"{AUDIT} Q{number}".casefold() for number in range(1, 6))
"""The questions of table 6 as votes are compared: without case."""


def harmful_statements(votes: Iterable[VoteRecord]) -> frozenset[str]:
    """The ids of statements that anybody marked as harmful: one mark is enough."""
    return frozenset(
        one.statement_id for one in votes if (_plain(one.question), _plain(one.answer)) == (HARMFUL, "yes")
    )


class Majority(StrEnum):
    """What more voters said. A tie is told and settled for neither side."""

    YES = "yes"
    NO = "no"
    TIE = "tie"


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes of yes and no on one question about one statement or fact."""

    votes: tuple[VoteRecord, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """How many said yes, and how many no."""
        answers = Counter(_plain(one.answer) for one in self.votes)
        return answers["yes"], answers["no"]

    @property
    def majority(self) -> Majority:
        yes, no = self.counts
        return Majority.TIE if yes == no else Majority.YES if yes > no else Majority.NO


Ballots = Mapping[str, Mapping[str, Ballot]]
"""By statement or fact, then by question."""


def ballots_of(votes: Iterable[VoteRecord]) -> Ballots:
    """The votes by what they are about. What LINK's annotators turned is no vote of ours: only their noes are known."""
    found: dict[str, dict[str, list[VoteRecord]]] = defaultdict(lambda: defaultdict(list))
    for one in votes:
        if one.voter != VOTER:
            found[one.statement_id][_plain(one.question)].append(one)
    return {
        subject: {question: Ballot(tuple(several)) for question, several in by_question.items()}
        for subject, by_question in found.items()
    }


def _plain(text: str) -> str:
    return text.strip().casefold()


@dataclass(frozen=True, slots=True)
class Judged:
    """A statement with its ballots. `data_type`: whether all values are of their types; `factual`: whether it is
    entailed; `overall`: both. None: a tie, or nobody was asked.
    """

    record: StatementRecord
    domain: str
    ballots: Mapping[str, Ballot]

    @property
    def typed(self) -> list[Ballot]:
        return [one for question, one in self.ballots.items() if question.startswith(DATA_TYPE)]

    @property
    def data_type(self) -> bool | None:
        return _all(one.majority for one in self.typed)

    @property
    def factual(self) -> bool | None:
        return _all(one.majority for question, one in self.ballots.items() if question == ENTAILMENT)

    @property
    def overall(self) -> bool | None:
        both = (self.data_type, self.factual)
        return False if False in both else None if None in both else True

    @property
    def ties(self) -> list[str]:
        """The questions on which as many said yes as no."""
        return [question for question, one in self.of_quality.items() if one.majority is Majority.TIE]

    @property
    def of_quality(self) -> dict[str, Ballot]:
        """The ballots of figure 14 but the mark of harm."""
        return {
            question: one
            for question, one in self.ballots.items()
            if question == ENTAILMENT or question.startswith(DATA_TYPE)
        }


def _all(majorities: Iterable[Majority]) -> bool | None:
    found = set(majorities)
    return False if Majority.NO in found else True if found == {Majority.YES} else None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A column of table 3, or a line of table 17: the shares of statements that are right; ties have no say."""

    group: str
    statements: int
    data_type: Estimate
    factuality: Estimate
    overall: Estimate

    @classmethod
    def of(cls, group: str, judged: Sequence[Judged]) -> Accuracy:
        verdicts = ([one.data_type for one in judged], [one.factual for one in judged], [one.overall for one in judged])
        return cls(group, len(judged), *(share([one for one in each if one is not None]) for each in verdicts))


@dataclass(frozen=True, slots=True)
class Audit:
    """Table 6. `errors`: of Q1 to Q5 the share of facts to which no was said; `correct`: of head and long tail the
    share of statements all of whose facts were answered yes throughout, among those whose facts are all decided.
    """

    facts: int
    errors: tuple[Estimate, ...]
    correct: Mapping[Distribution, Estimate]
    ties: int


@dataclass(frozen=True, slots=True)
class Baseline:
    """People measured as a model is: by majority, and one by one. `both_roles`: voters who also made the labels."""

    templates: tuple[int, ...]
    majority: ProbeReport
    single: ProbeReport
    ties: int
    unlabelled: int
    both_roles: tuple[str, ...]


@dataclass(frozen=True)
class Count:
    """Everything that the votes of a knowledge base come to. `strays`: votes on what it does not hold."""

    judged: tuple[Judged, ...]
    methods: Mapping[str, str]
    agreements: Mapping[str, Agreement]
    audit: Audit | None
    baseline: Baseline | None
    harmful: frozenset[str]
    voters: int
    votes: int
    imported: int
    strays: int

    @property
    def failures(self) -> list[Judged]:
        """The statements that a majority found wrong, each once (table 20)."""
        return list({one.record.id: one for one in self.judged if one.overall is False}.values())

    @property
    def distinct(self) -> list[Judged]:
        """The judged statements, each once, whatever distributions and methods it is of."""
        return list({one.record.id: one for one in self.judged}.values())

    def by_method(self) -> Iterator[Accuracy]:
        """Table 3: for each method head, long tail and both."""
        groups: dict[str, dict[str, Judged]] = defaultdict(dict)
        for one in self.judged:
            method, end = self.methods[one.record.run_id], SPOKEN[one.record.distribution]
            for group in (f"{method}: {end}", f"{method}: both"):
                groups[group][one.record.id] = one
        order = [f"{method}: {end}" for method in dict.fromkeys(self.methods.values()) for end in ENDS]
        yield from (Accuracy.of(group, list(groups[group].values())) for group in order if groups[group])

    def by_domain(self) -> Iterator[Accuracy]:
        """Table 17, and the total."""
        for domain in in_order({one.domain for one in self.judged}):
            yield Accuracy.of(domain, [one for one in self.distinct if one.domain == domain])
        yield Accuracy.of(TOTAL, self.distinct)


SPOKEN = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "long tail"}
ENDS = (*SPOKEN.values(), "both")


def count_votes(kb: KnowledgeBase, statements: Sequence[StatementRecord]) -> Count:
    """Count all votes of a knowledge base. `statements`: all that it holds."""
    votes = kb.votes()
    ballots = ballots_of(votes)
    domains = {one.name: one.domain or NO_DOMAIN for one in kb.rules()}
    judged = tuple(
        found
        for one in statements
        if one.id in ballots and (found := Judged(one, domains.get(one.rule, NO_DOMAIN), ballots[one.id])).of_quality
    )
    claims = _claims(kb, statements, ballots)
    known = {one.id for one in statements} | {fact for facts in claims.values() for fact in facts}
    return Count(
        judged,
        methods_by_run(kb, statements) if judged else {},
        _agreements({one.record.id: one for one in judged}.values()),
        _audit(claims, ballots),
        _baseline(kb, statements, votes),
        harmful_statements(votes),
        voters=len({one.voter for one in votes if one.voter != VOTER}),
        votes=sum(one.voter != VOTER for one in votes),
        imported=sum(one.voter == VOTER for one in votes),
        strays=sum(one.statement_id not in known for one in votes),
    )


def _agreements(judged: Iterable[Judged]) -> dict[str, Agreement]:
    """Table 19: on data types, on factuality, and on all these questions together."""
    judged = list(judged)
    types = [[one.counts for one in each.typed] for each in judged]
    entailed = [[one.counts for key, one in each.ballots.items() if key == ENTAILMENT] for each in judged]
    together = [[*one, *other] for one, other in zip(types, entailed, strict=True)]
    return dict(zip(MEASURES, map(agreement, (types, entailed, together)), strict=True))


def _claims(
    kb: KnowledgeBase, statements: Sequence[StatementRecord], ballots: Ballots
) -> dict[tuple[str, Distribution], list[str]]:
    """The facts behind each statement, where any fact was audited."""
    if not any(question in AUDIT_QUESTIONS for by_question in ballots.values() for question in by_question):
        return {}
    askable = Askable(kb, Kind.PREDICATES)
    return {(one.id, one.distribution): [each.fact for each in askable.claims(one)] for one in statements}


def _audit(claims: Mapping[tuple[str, Distribution], list[str]], ballots: Ballots) -> Audit | None:
    found = {fact: ballots[fact] for facts in claims.values() for fact in facts if fact in ballots}
    if not found:
        return None
    majorities = {
        question: [each[question].majority for each in found.values() if question in each]
        for question in AUDIT_QUESTIONS
    }
    errors = tuple(
        share([one is Majority.NO for one in several if one is not Majority.TIE]) for several in majorities.values()
    )
    right = {fact: _right(each) for fact, each in found.items()}
    correct: dict[Distribution, list[bool]] = {each: [] for each in Distribution}
    for (_, distribution), facts in claims.items():
        verdicts = [right.get(fact) for fact in facts]
        if facts and None not in verdicts:
            correct[distribution].append(all(verdicts))
    ties = sum(one is Majority.TIE for several in majorities.values() for one in several)
    return Audit(len(found), errors, {each: share(several) for each, several in correct.items()}, ties)


def _right(ballots: Mapping[str, Ballot]) -> bool | None:
    """Whether all five questions about a fact were answered yes; None: not all have a majority."""
    asked = [ballots[question].majority for question in AUDIT_QUESTIONS if question in ballots]
    if Majority.NO in asked:
        return False
    return True if asked == [Majority.YES] * len(AUDIT_QUESTIONS) else None


def _baseline(kb: KnowledgeBase, statements: Sequence[StatementRecord], votes: Sequence[VoteRecord]) -> Baseline | None:
    """The statements that were put to people, but those of wrong types, by the labels that a probing uses."""
    given: dict[tuple[str, int], list[str]] = defaultdict(list)
    for one in votes:
        words = _plain(one.question).split()
        if words[:1] == [BASELINE] and words[1:] and words[1].isdecimal():
            given[one.statement_id, int(words[1])].append(_plain(one.answer))
    verdicts = verdicts_of(votes)
    asked = {subject for subject, _ in given} - verdicts.wrong_type
    records = {(one.id, one.distribution): one for one in statements if one.id in asked}
    if not records:
        return None
    items, _ = items_of(kb, list(records.values()), verdicts)
    majority: list[ProbeAnswer] = []
    single: list[ProbeAnswer] = []
    for item in items:
        for template in TEMPLATES:
            words = given.get((item.statement_id, template.number), [])
            question = template.question(item)
            positive = template.pair.word(True).lower()
            said = [word == positive for word in words]
            single += [ProbeAnswer(item, template, question, Verdict(one), "") for one in said]
            if said:
                majority.append(ProbeAnswer(item, template, question, _most(said), ""))
    labelled = {one.statement_id for one in votes if _plain(one.question) == ENTAILMENT}
    judges = {one.voter for one in votes if _plain(one.question) == ENTAILMENT}
    answerers = {one.voter for one in votes if _plain(one.question).startswith(BASELINE)}
    return Baseline(
        tuple(sorted({number for _, number in given})),
        measure(majority),
        measure(single),
        sum(one.verdict.positive is None for one in majority),
        len(asked - labelled),
        tuple(sorted(judges & answerers)),
    )


def _most(said: Sequence[bool]) -> Verdict:
    yes = sum(said)
    return Verdict(None, "tie") if 2 * yes == len(said) else Verdict(2 * yes > len(said))
