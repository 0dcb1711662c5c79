"""Counts of votes: majorities, verdicts, agreement of voters, people measured like a model, and the paper's figures."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

from hapax.engine.judgements import (
    DATA_TYPE_QUESTION,
    DENIALS,
    ENTAILMENT_QUESTION,
    LINK_ANNOTATORS,
    SOUNDNESS_QUESTION,
    Judgement,
    Judgements,
    folded,
    shared_judgements,
)
from hapax.evaluation.link.likelihood_measures import methods_by_run
from hapax.evaluation.link.probing_questions import TEMPLATES, ParsedReply, ProbeAnswer, items_of
from hapax.evaluation.link.probing_run import ProbeReport, measure
from hapax.evaluation.link.sessions import conjunction
from hapax.evaluation.shared.estimates import NOTHING, Estimate, of_groups, share
from hapax.evaluation.shared.lazy import np
from hapax.evaluation.shared.stored_statements import (
    DISTRIBUTION_NAMES,
    NO_DOMAIN,
    TOTAL,
    JudgedCounts,
    ordered_domains,
)
from hapax.evaluation.votes.voting_items import ItemSource
from hapax.evaluation.votes.voting_questions import AUDIT, BASELINE, SheetKind
from hapax.grammar.parsing.attributes import Domain
from hapax.kb.records import RULES, Distribution, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase

MEASURES = ("data type", "factuality", "overall")
"""The rows of tables 3, 17 and 19, in the paper's order."""

METHODS = ("ChatGPT", "GPT4", "LINK")

TABLE_3 = {"data type": (85.40, 91.80, 94.23), "factuality": (67.50, 84.82, 88.71), "overall": (56.44, 78.23, 83.95)}
"""Accuracy by method."""

TABLE_6 = (0.04, 0.0, 6.39, 0.11, 0.0)
"""Error rates of Q1 to Q5; the paper prints shares."""

AUDIT_CORRECT = (85.67, 84.67)
"""Statements all of whose questions were answered Yes (appendix C): head, long tail."""

TABLE_17 = {
    Domain.TEMPORAL.value: (90.18, 85.27, 77.38),
    Domain.OUTCOMES.value: (94.97, 80.73, 75.98),
    Domain.NATURAL.value: (96.61, 96.61, 93.81),
    Domain.LOCATIONAL.value: (98.88, 70.79, 70.79),
}
"""Data type, factuality and overall by domain, in the paper's order."""

TABLE_19 = {"data type": (79.29, 83.16, 87.54), "factuality": (38.35, 58.48, 75.10), "overall": (65.64, 74.93, 83.39)}
"""Agreement by method. The paper does not say in which measure.

In all three columns the last figure is the mean over three questions, two on data types and one on factuality.
"""


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """Agreement on a set of questions with at least two votes each.

    `percent`: share of pairs of voters who gave the same answer, averaged over questions. `unanimous`: share of
    questions on which all voters agree. `fleiss`: Fleiss' kappa. `krippendorff`: Krippendorff's nominal alpha. The last
    two are nan if all voters always gave the same answer.
    """

    questions: int
    percent: Estimate
    unanimous: Estimate
    fleiss: Estimate
    krippendorff: Estimate


def agreement(subjects: Iterable[Sequence[Sequence[int]]]) -> AnnotatorAgreement:
    """Compute the agreement. `subjects` holds, by statement and question, the number of votes for each answer.

    Intervals come from resampling whole statements, because the answers about one statement depend on each other.
    """
    groups = []
    for questions in subjects:
        # One vote alone neither agrees nor disagrees with anything.
        if voted_twice := [counts for counts in questions if sum(counts) > 1]:
            groups.append(np.array(voted_twice))
    if not groups:
        return AnnotatorAgreement(0, NOTHING, NOTHING, NOTHING, NOTHING)
    alpha = of_groups(krippendorff_alpha, groups)
    votes = sum(int(group.sum()) for group in groups)
    # Kappa rises with alpha, so its interval follows from alpha's without another resampling.
    value, low, high = (fleiss_kappa(bound, votes) for bound in (alpha.value, alpha.low, alpha.high))
    kappa = Estimate(value, low, high, alpha.count)
    question_count = sum(len(group) for group in groups)
    return AnnotatorAgreement(question_count, of_groups(percent, groups), of_groups(unanimous, groups), kappa, alpha)


def percent(counts: Any) -> float:
    """Share of equal pairs of votes on a question, averaged over the rows of `counts`."""
    # n votes make n (n - 1) ordered pairs.
    votes = counts.sum(axis=1)
    return float(np.mean((counts * (counts - 1)).sum(axis=1) / (votes * (votes - 1))))


def unanimous(counts: Any) -> float:
    """Share of rows with votes in one column only."""
    return float(np.mean(counts.max(axis=1) == counts.sum(axis=1)))


def krippendorff_alpha(counts: Any) -> float:
    """Krippendorff's alpha for nominal answers; nan if only one answer was ever given.

    `counts`: a row for each question, with the number of votes for each answer. Computed as in Krippendorff, Computing
    Krippendorff's Alpha-Reliability (2011), section D, whose values of a unit are the votes on a question.
    """
    votes = counts.sum(axis=1)
    # One vote alone can be paired with no other.
    counts, votes = counts[votes > 1], votes[votes > 1]
    total = votes.sum()
    expected = total**2 - (counts.sum(axis=0) ** 2).sum()
    if not expected:
        return math.nan
    # Ordered pairs of equal votes on a question of n votes count 1 / (n - 1) each.
    equal = ((counts * (counts - 1)).sum(axis=1) / (votes - 1)).sum()
    return float(1 - (total - 1) * (total - equal) / expected)


def fleiss_kappa(alpha: float, votes: int) -> float:
    """Fleiss' kappa from Krippendorff's alpha and the number of votes.

    Alpha is kappa with a correction for small samples, so for n votes kappa is 1 - (1 - alpha) n / (n - 1). Fleiss
    defines kappa for equal numbers of votes on each question; for others, this weighs questions as alpha does.
    """
    return 1 - (1 - alpha) * votes / (votes - 1)


AUDIT_QUESTIONS = tuple(f"{AUDIT} Q{number}".casefold() for number in range(1, 6))
"""The questions of table 6, folded like the questions of votes."""


class Majority(StrEnum):
    """The answer of more voters. A tie counts for neither side."""

    YES = "yes"
    NO = "no"
    TIE = "tie"


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes on one question about one statement or fact."""

    votes: tuple[VoteRecord, ...]

    @property
    def counts(self) -> tuple[int, int]:
        """Numbers of voters who said yes, and who denied what is asked."""
        answers = Counter(folded(vote.answer) for vote in self.votes)
        return answers["yes"], sum(answers[denial] for denial in DENIALS)

    @property
    def majority(self) -> Majority:
        yes, no = self.counts
        if yes == no:
            return Majority.TIE
        return Majority.YES if yes > no else Majority.NO


Ballots = Mapping[str, Mapping[str, Ballot]]
"""Ballots by statement or fact, then by question."""


def ballots_of(votes: Iterable[VoteRecord]) -> Ballots:
    """Collect votes into ballots, without LINK's annotators, of whom only the noes are known."""
    collected: dict[str, dict[str, list[VoteRecord]]] = defaultdict(lambda: defaultdict(list))
    for vote in votes:
        if vote.voter != LINK_ANNOTATORS:
            collected[vote.statement_id][folded(vote.question)].append(vote)
    ballots = {}
    for subject, by_question in collected.items():
        ballots[subject] = {question: Ballot(tuple(on_question)) for question, on_question in by_question.items()}
    return ballots


@dataclass(frozen=True, slots=True)
class VotedStatement:
    """A statement with its ballots by question, and what they say together.

    Its verdicts are True, False, or None after a tie and if nobody was asked.
    """

    record: StatementRecord
    domain: str
    ballots: Mapping[str, Ballot]
    judgement: Judgement

    @property
    def typed(self) -> list[Ballot]:
        """The ballots on data types."""
        return [ballot for question, ballot in self.ballots.items() if question.startswith(DATA_TYPE_QUESTION)]

    @property
    def entailment(self) -> list[Ballot]:
        """The ballot on the entailment, if there is one."""
        return [ballot for question, ballot in self.ballots.items() if question == ENTAILMENT_QUESTION]

    @property
    def data_type(self) -> bool | None:
        """Verdict that all values are of their types."""
        return _verdict(ballot.majority for ballot in self.typed)

    @property
    def factual(self) -> bool | None:
        """Verdict that the premise entails the conclusion."""
        return _verdict(ballot.majority for ballot in self.entailment)

    @property
    def overall(self) -> bool | None:
        """Verdict that both hold."""
        return conjunction((self.data_type, self.factual))

    @property
    def ties(self) -> list[str]:
        """Questions with as many yes as no votes."""
        return [question for question, ballot in self.of_quality.items() if ballot.majority is Majority.TIE]

    @property
    def of_quality(self) -> dict[str, Ballot]:
        """The ballots on truth and data types: those of figure 14 except for the mark of harm, and on soundness."""
        ballots = {}
        for question, ballot in self.ballots.items():
            is_truth = question in (ENTAILMENT_QUESTION, SOUNDNESS_QUESTION)
            if is_truth or question.startswith(DATA_TYPE_QUESTION):
                ballots[question] = ballot
        return ballots

    @property
    def in_tables(self) -> bool:
        """True if a question of LINK's sheet was answered, which its tables are about."""
        return bool(self.typed or self.entailment)


def _verdict(majorities: Iterable[Majority]) -> bool | None:
    """True if all are yes, False if one is no, else None; None without any, too."""
    distinct = set(majorities)
    if Majority.NO in distinct:
        return False
    return True if distinct == {Majority.YES} else None


@dataclass(frozen=True, slots=True)
class VotedAccuracy:
    """A column of table 3 or a line of table 17: shares of statements that are right, among those with a verdict."""

    group: str
    statements: int
    data_type: Estimate
    factuality: Estimate
    overall: Estimate

    @classmethod
    def of(cls, group: str, judged: Sequence[VotedStatement]) -> VotedAccuracy:
        shares = []
        for measure_name in ("data_type", "factual", "overall"):
            # A measure has its own denominator: a tie on the type leaves the entailment decided.
            verdicts = [getattr(statement, measure_name) for statement in judged]
            shares.append(share([verdict for verdict in verdicts if verdict is not None]))
        return cls(group, len(judged), *shares)


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of facts by people, LINK's table 6.

    `errors`: by question Q1 to Q5, the share of facts that a majority denied. `correct`: by distribution, the share of
    statements all of whose facts are right in every question, among those whose facts all have a verdict.
    """

    facts: int
    errors: tuple[Estimate, ...]
    correct: Mapping[Distribution, Estimate]
    ties: int


@dataclass(frozen=True, slots=True)
class HumanBaseline:
    """People measured like a model: by majority, and each person alone.

    `both_roles`: voters who also labelled statements; `unlabelled`: statements that nobody labelled.
    """

    templates: tuple[int, ...]
    majority: ProbeReport
    single: ProbeReport
    ties: int
    unlabelled: int
    both_roles: tuple[str, ...]


@dataclass(frozen=True)
class VoteCount:
    """All figures about the votes of a knowledge base.

    `judged`: statements with votes on truth or types; `known`: the judgements on statements of searches and imports,
    each text once; `derived`: on those of `derive`; `methods`: name of the method by run; `imported`: number of labels
    that LINK's annotators flipped; `strays`: number of votes on what the knowledge base does not hold.
    """

    judged: tuple[VotedStatement, ...]
    known: tuple[Judgement, ...]
    methods: Mapping[str, str]
    agreements: Mapping[str, AnnotatorAgreement]
    audit: Audit | None
    baseline: HumanBaseline | None
    harmful: frozenset[str]
    voters: int
    votes: int
    imported: int
    strays: int
    derived: tuple[Judgement, ...] = ()

    @property
    def counts(self) -> JudgedCounts:
        """The judgements on the truth of statements, each text once, with those of `derive`."""
        return JudgedCounts.of([*self.known, *self.derived])

    @property
    def judged_total(self) -> int:
        """Number of statements with votes on truth or types."""
        return len(self.distinct) + sum(judgement.truth is not None for judgement in self.derived)

    @property
    def wrong_total(self) -> int:
        """Number of statements that were found wrong."""
        return len(self.failures) + sum(judgement.is_wrong for judgement in self.derived)

    @property
    def failures(self) -> list[VotedStatement]:
        """Statements that were found wrong, each once (table 20)."""
        return [voted for voted in self.distinct if voted.judgement.is_wrong]

    @property
    def distinct(self) -> list[VotedStatement]:
        """The judged statements, each text once, even if several distributions, rules or methods have it."""
        return list({voted.record.text: voted for voted in self.judged}.values())

    @property
    def in_tables(self) -> list[VotedStatement]:
        """The statements of LINK's tables."""
        return [voted for voted in self.judged if voted.in_tables]

    def by_method(self) -> Iterator[VotedAccuracy]:
        """Columns of table 3: for each method head, long tail and both."""
        groups: dict[str, dict[str, VotedStatement]] = defaultdict(dict)
        for voted in self.in_tables:
            method = self.methods[voted.record.run_id]
            # By id: a statement of both distributions counts once in "both".
            for name in (DISTRIBUTION_NAMES[voted.record.distribution], BOTH):
                groups[f"{method}: {name}"][voted.record.id] = voted
        for method in dict.fromkeys(self.methods.values()):
            for name in (*DISTRIBUTION_NAMES.values(), BOTH):
                group = f"{method}: {name}"
                if group in groups:
                    yield VotedAccuracy.of(group, list(groups[group].values()))

    def by_domain(self) -> Iterator[VotedAccuracy]:
        """Lines of table 17, the total last."""
        distinct = list({voted.record.id: voted for voted in self.in_tables}.values())
        for domain in ordered_domains(voted.domain for voted in distinct):
            yield VotedAccuracy.of(domain, [voted for voted in distinct if voted.domain == domain])
        yield VotedAccuracy.of(TOTAL, distinct)


BOTH = "both"
"""Name of the group of head and long tail together."""


def count_votes(kb: KnowledgeBase, statements: Sequence[StatementRecord], found: Judgements | None = None) -> VoteCount:
    """Count all votes of a knowledge base, given all its statements, and the judgements if they are known already."""
    votes, found = kb.votes(), found or Judgements.stored(kb)
    ballots = ballots_of(votes)
    domains = {rule.name: rule.domain or NO_DOMAIN for rule in kb.select(RULES)}
    judged = []
    for statement in statements:
        if statement.id in ballots:
            domain = domains.get(statement.rule, NO_DOMAIN)
            voted = VotedStatement(statement, domain, ballots[statement.id], found.of(statement.id))
            # A statement may have a mark of harm or answers to a baseline alone.
            if voted.of_quality:
                judged.append(voted)
    claims = _claims(kb, statements, ballots)
    known = {statement.id for statement in statements}
    present = known.union(chain.from_iterable(claims.values()))
    # Labels imported from LINT stand for a majority of LINK's annotators, not for a voter.
    own = [vote for vote in votes if vote.voter != LINK_ANNOTATORS]
    return VoteCount(
        judged=tuple(judged),
        known=tuple(shared_judgements(found, known)),
        methods=methods_by_run(kb, statements) if judged else {},
        # Each statement once, whatever distributions it is in: its votes are the same.
        agreements=_agreements({voted.record.id: voted for voted in judged}.values()),
        audit=_audit(claims, ballots),
        baseline=_baseline(kb, statements, votes, found),
        harmful=frozenset(identity for identity, judgement in found.texts.items() if judgement.is_harmful),
        voters=len({vote.voter for vote in own}),
        votes=len(own),
        imported=len(votes) - len(own),
        strays=sum(vote.statement_id not in present for vote in votes),
    )


def _agreements(judged: Iterable[VotedStatement]) -> dict[str, AnnotatorAgreement]:
    """Table 19: on data types, on factuality, and on all these questions together."""
    types, entailment, together = [], [], []
    for voted in judged:
        of_types = [ballot.counts for ballot in voted.typed]
        of_entailment = [ballot.counts for ballot in voted.entailment]
        types.append(of_types)
        entailment.append(of_entailment)
        together.append(of_types + of_entailment)
    return dict(zip(MEASURES, map(agreement, (types, entailment, together)), strict=True))


def _claims(
    kb: KnowledgeBase, statements: Sequence[StatementRecord], ballots: Ballots
) -> dict[tuple[str, Distribution], list[str]]:
    """Ids of the facts behind each statement; empty if no fact was audited."""
    questions = set().union(*ballots.values())
    if questions.isdisjoint(AUDIT_QUESTIONS):
        return {}
    source = ItemSource(kb, SheetKind.PREDICATES)
    claims = {}
    for statement in statements:
        claims[statement.id, statement.distribution] = [claim.fact for claim in source.claims(statement)]
    return claims


def _audit(claims: Mapping[tuple[str, Distribution], list[str]], ballots: Ballots) -> Audit | None:
    audited: dict[str, Mapping[str, Ballot]] = {}
    for facts in claims.values():
        audited |= {fact: ballots[fact] for fact in facts if fact in ballots}
    if not audited:
        return None
    errors, ties = [], 0
    for question in AUDIT_QUESTIONS:
        majorities = [by_question[question].majority for by_question in audited.values() if question in by_question]
        errors.append(share([majority is Majority.NO for majority in majorities if majority is not Majority.TIE]))
        ties += majorities.count(Majority.TIE)
    right = {}
    for fact, by_question in audited.items():
        # A question without votes leaves the fact as undecided as a tie does.
        ballots_or_none = [by_question.get(question) for question in AUDIT_QUESTIONS]
        right[fact] = _verdict(Majority.TIE if ballot is None else ballot.majority for ballot in ballots_or_none)
    correct: dict[Distribution, list[bool]] = {distribution: [] for distribution in Distribution}
    for (_, distribution), facts in claims.items():
        verdicts = [right.get(fact) for fact in facts]
        # One undecided fact leaves the statement undecided, even if another fact is wrong.
        if facts and None not in verdicts:
            correct[distribution].append(all(verdicts))
    shares = {distribution: share(verdicts) for distribution, verdicts in correct.items()}
    return Audit(len(audited), tuple(errors), shares, ties)


def _baseline(
    kb: KnowledgeBase, statements: Sequence[StatementRecord], votes: Sequence[VoteRecord], found: Judgements
) -> HumanBaseline | None:
    """Measure people by the labels that a probing uses. Statements with a value of a wrong type are left out."""
    answers, answerers = _baseline_votes(votes)
    subjects = {subject for subject, _ in answers if found.of(subject).typed is not False}
    labelled = {subject for subject in subjects if found.of(subject).truth}
    judges = set[str]().union(*(judgement.voters for judgement in found.texts.values()))
    records = {}
    for statement in statements:
        if statement.id in subjects:
            records[statement.id, statement.distribution] = statement
    if not records:
        return None
    # The judgements give the items the labels by which a model would be measured, too.
    items, _ = items_of(kb, list(records.values()), found)
    majority: list[ProbeAnswer] = []
    single: list[ProbeAnswer] = []
    for item in items:
        for template in TEMPLATES:
            words = answers.get((item.statement_id, template.number), [])
            if not words:
                continue
            question = template.question(item)
            positive = template.pair.word(True).lower()
            replies = [word == positive for word in words]
            for is_positive in replies:
                single.append(ProbeAnswer(item, template, question, ParsedReply(is_positive), ""))
            # A tie is an answer off format, as when a model says neither of the two words.
            yes, no = replies.count(True), replies.count(False)
            reply = ParsedReply(None, "tie") if yes == no else ParsedReply(yes > no)
            majority.append(ProbeAnswer(item, template, question, reply, ""))
    return HumanBaseline(
        tuple(sorted({number for _, number in answers})),
        measure(majority),
        measure(single),
        sum(answer.verdict.positive is None for answer in majority),
        len(subjects - labelled),
        tuple(sorted(judges & answerers)),
    )


def _baseline_votes(votes: Sequence[VoteRecord]) -> tuple[dict[tuple[str, int], list[str]], set[str]]:
    """Answers by statement and template, and the voters who gave them."""
    answers: dict[tuple[str, int], list[str]] = defaultdict(list)
    answerers = set()
    for vote in votes:
        question = folded(vote.question)
        if question.startswith(BASELINE):
            answerers.add(vote.voter)
            # A merged knowledge base may hold any question, such as "baseline" without a template's number.
            words = question.split()
            if words[0] == BASELINE and len(words) > 1 and words[1].isdecimal():
                answers[vote.statement_id, int(words[1])].append(folded(vote.answer))
    return answers, answerers
