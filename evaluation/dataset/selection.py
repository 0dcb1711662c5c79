"""Which statements are in a dataset, and what was left out: decided before the first row is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from engine.proof import proof_from_json
from evaluation.dataset.blocked import BlockList
from evaluation.experiments import skipped_runs
from evaluation.probing.items import ENTAILMENT, Verdicts, balance_of, draw_key, verdicts_of
from evaluation.votes.questions import HARMFUL
from grammar.errors import HapaxError
from grammar.terms import Constant, Literal
from kb.records import Distribution, StatementPlace, StatementRecord, VoteRecord
from kb.store import KnowledgeBase

T = TypeVar("T")

CHUNK = 500
"""Statements that are read, with their proofs, at a time."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. `rules`: only these; `sample`: at most so many a distribution; `shared`: False leaves out
    statements that are in head and long tail; `runs`: only these, by how their ids begin; without any, whole searches
    and imports, and no experiment.
    """

    rules: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    shared: bool = True
    blocked: BlockList = field(default_factory=BlockList)


class Judgements(NamedTuple):
    """What people's votes say of statements. `judged`: the entailment was affirmed or denied by more voters than not.

    `harmful`: of those who answered that question at all, more said yes than no.
    """

    verdicts: Verdicts
    judged: frozenset[str]
    harmful: frozenset[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen statements in the order in which they are written, and how many were left out and why.

    Statements stand in the order in which a sample is drawn, head before long tail, so that the first rows of each
    split are a fair sample of it.
    """

    places: tuple[StatementPlace, ...]
    in_both: frozenset[str]
    judgements: Judgements
    left_out: dict[str, int]

    def count(self, distribution: Distribution) -> int:
        return sum(one.distribution is distribution for one in self.places)


def select(kb: KnowledgeBase, wish: Wish) -> Selection:
    """Choose; each statement counts once a distribution, as the last run wrote it.

    Raises HapaxError where nothing is left to write.
    """
    left_out: Counter[str] = Counter()
    latest = _latest(kb, wish, left_out)
    judgements = judge(kb.votes())
    in_both = frozenset.intersection(*(frozenset(one) for one in latest.values()))
    chosen: list[StatementPlace] = []
    for places in latest.values():
        several = sorted(places.values(), key=lambda place: draw_key(wish.seed, place.id))
        fitting = _fitting(several, wish, judgements, in_both, left_out)
        unblocked = list(_unblocked(kb, fitting, wish.blocked, left_out))
        chosen += unblocked[: wish.sample]
        left_out["not_in_the_sample"] += len(unblocked[wish.sample :]) if wish.sample is not None else 0
    if not chosen:
        raise HapaxError(f"{kb.place}: all {sum(left_out.values())} statements were left out. Ask for more of them.")
    told = {reason: left_out[reason] for reason in REASONS}
    return Selection(tuple(chosen), in_both, judgements, told)


REASONS = ("other_runs", "wrong_type", "harmful", "shared", "blocked", "not_in_the_sample")
"""Why a statement is left out, the first reason that applies."""


def judge(votes: Iterable[VoteRecord]) -> Judgements:
    """What the votes come to."""
    several = list(votes)
    balance = balance_of(several)
    return Judgements(
        verdicts_of(several),
        frozenset(statement for (statement, question), count in balance.items() if question == ENTAILMENT and count),
        frozenset(statement for (statement, question), count in balance.items() if question == HARMFUL and count > 0),
    )


def chunks(several: Sequence[T]) -> Iterator[Sequence[T]]:
    """What is read together."""
    for start in range(0, len(several), CHUNK):
        yield several[start : start + CHUNK]


def _latest(kb: KnowledgeBase, wish: Wish, left_out: Counter[str]) -> dict[Distribution, dict[str, StatementPlace]]:
    known = {rule.name for rule in kb.rules()}
    for name in wish.rules:
        if name not in known:
            raise HapaxError(f"{kb.place}: no rule {name!r}. Without --rule all are taken that it holds.")
    skipped = skipped_runs(kb, wish.runs)
    latest: dict[Distribution, dict[str, StatementPlace]] = {each: {} for each in Distribution}
    others: set[tuple[Distribution, str]] = set()
    for one in kb.statement_places():
        if wish.rules and one.rule not in wish.rules:
            continue
        if one.run_id in skipped:
            others.add((one.distribution, one.id))
        else:
            latest[one.distribution][one.id] = one
    left_out["other_runs"] = sum(identity not in latest[end] for end, identity in others)
    if not any(latest.values()):
        raise HapaxError(
            f"{kb.place} holds no statement for a dataset. Search some (`hapax search`) or import LINT's "
            "(`hapax evaluate lint`); --run takes those of an experiment."
        )
    return latest


def _fitting(
    places: Iterable[StatementPlace],
    wish: Wish,
    judgements: Judgements,
    in_both: frozenset[str],
    left_out: Counter[str],
) -> list[StatementPlace]:
    """The places that no vote and no wish leaves out; the others are counted."""
    out = {
        "wrong_type": judgements.verdicts.wrong_type,
        "harmful": judgements.harmful,
        "shared": frozenset() if wish.shared else in_both,
    }
    kept = []
    for place in places:
        reason = next((reason for reason, ids in out.items() if place.id in ids), None)
        if reason is None:
            kept.append(place)
        else:
            left_out[reason] += 1
    return kept


def _unblocked(
    kb: KnowledgeBase, places: Sequence[StatementPlace], blocked: BlockList, left_out: Counter[str]
) -> Iterator[StatementPlace]:
    """The places whose statements the block list lets pass; without a list nothing is read."""
    if not blocked.patterns:
        yield from places
        return
    for part in chunks(places):
        for place, record in zip(part, kb.statements_at(part), strict=True):
            if blocked.blocks(_words(record)):
                left_out["blocked"] += 1
            else:
                yield place


def _words(record: StatementRecord) -> Iterator[str]:
    """Everything of a statement that a reader of the dataset would see."""
    yield record.premise
    yield record.conclusion
    yield from (str(value) for _, value in record.substitution)
    goals = (part.goal for part in proof_from_json(record.proof).parts())
    terms = (term for goal in goals if isinstance(goal, Literal) for term in goal.atom.arguments)
    yield from (str(term.value) for term in terms if isinstance(term, Constant))
