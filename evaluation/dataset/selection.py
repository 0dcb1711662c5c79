"""Selection of the statements of a dataset, which is complete before the first row is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from hapax.engine.inference.proof import proof_from_json
from hapax.evaluation.dataset.blocked import BlockList
from hapax.evaluation.shared.experiments import skipped_runs
from hapax.evaluation.shared.stored_statements import draw_order_key
from hapax.evaluation.shared.verdicts import ENTAILMENT_QUESTION, VoteVerdicts, vote_balance, vote_verdicts
from hapax.evaluation.votes.questions import HARMFUL
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Constant, Literal
from hapax.kb.records import Distribution, StatementPlace, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase

T = TypeVar("T")

CHUNK = 500
"""Statements that are read together with their proofs."""


@checked
@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which statements to take.

    `rules`: names, or all if empty; `runs`: beginnings of ids, or whole searches and imports if empty; `sample`:
    largest number per distribution; `shared`: False leaves out statements that are in both head and long tail.
    """

    rules: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    shared: bool = True
    blocked: BlockList = field(default_factory=BlockList)


class Judgements(NamedTuple):
    """People's votes on statements.

    `judged`: more voters affirmed the entailment than denied it, or the reverse; `harmful`: more of those who answered
    this question said yes than no.
    """

    verdicts: VoteVerdicts
    judged: frozenset[str]
    harmful: frozenset[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen statements in the order of the rows, and how many were left out by reason.

    Head comes before long tail. Within a distribution, statements stand in the order in which a sample is drawn, so
    that the first rows of a split are a fair sample of it.
    """

    places: tuple[StatementPlace, ...]
    in_both: frozenset[str]
    judgements: Judgements
    left_out: dict[str, int]

    def count(self, distribution: Distribution) -> int:
        """Number of chosen statements of a distribution."""
        return sum(place.distribution is distribution for place in self.places)


REASONS = ("other_runs", "wrong_type", "harmful", "shared", "blocked", "not_in_the_sample")
"""Reasons to leave a statement out. Only the first that applies is counted."""


def select(kb: KnowledgeBase, options: SelectionOptions) -> Selection:
    """Choose statements; each counts once per distribution, as the last run stored it.

    Raises HapaxError if no statement is left to write.
    """
    left_out: Counter[str] = Counter()
    latest = _latest(kb, options, left_out)
    judgements = judge(kb.votes())
    # Before anything is left out: a statement is in both even if only one of its rows is written.
    in_both = frozenset.intersection(*(frozenset(places) for places in latest.values()))
    chosen: list[StatementPlace] = []
    for places in latest.values():
        in_order = sorted(places.values(), key=lambda place: draw_order_key(options.seed, place.id))
        fitting = _fitting(in_order, options, judgements, in_both, left_out)
        # The sample is drawn last, so that it has its full size whatever else is left out.
        unblocked = list(_unblocked(kb, fitting, options.blocked, left_out))
        sampled = unblocked[: options.sample]
        chosen += sampled
        left_out["not_in_the_sample"] += len(unblocked) - len(sampled)
    if not chosen:
        raise HapaxError(
            f"{kb.place}: all {sum(left_out.values())} statements were left out. Relax the options that choose them."
        )
    return Selection(tuple(chosen), in_both, judgements, {reason: left_out[reason] for reason in REASONS})


def judge(votes: Iterable[VoteRecord]) -> Judgements:
    """Count the votes on all statements."""
    votes = list(votes)
    judged, harmful = set(), set()
    for (statement, question), balance in vote_balance(votes).items():
        # As many for as against leave the statement to the rule.
        if question == ENTAILMENT_QUESTION and balance:
            judged.add(statement)
        elif question == HARMFUL and balance > 0:
            harmful.add(statement)
    return Judgements(vote_verdicts(votes), frozenset(judged), frozenset(harmful))


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts of at most CHUNK items."""
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def _latest(
    kb: KnowledgeBase, options: SelectionOptions, left_out: Counter[str]
) -> dict[Distribution, dict[str, StatementPlace]]:
    """Statements of the chosen rules and runs by distribution and id."""
    names = {rule.name for rule in kb.rules()}
    for name in options.rules:
        if name not in names:
            raise HapaxError(f"{kb.place}: there is no rule {name!r}. Omit --rule to take the statements of all rules.")
    skipped = skipped_runs(kb, options.runs)
    latest: dict[Distribution, dict[str, StatementPlace]] = {distribution: {} for distribution in Distribution}
    others: set[tuple[Distribution, str]] = set()
    for place in kb.statement_places():
        if options.rules and place.rule not in options.rules:
            continue
        # In the order in which they were stored, so that a later run's statement replaces an earlier one's.
        if place.run_id in skipped:
            others.add((place.distribution, place.id))
        else:
            latest[place.distribution][place.id] = place
    # Statements that are in a chosen run as well are not left out.
    left_out["other_runs"] = sum(identity not in latest[distribution] for distribution, identity in others)
    if not any(latest.values()):
        raise HapaxError(
            f"{kb.place} holds no statement for a dataset. Run `hapax search`, import LINT with `hapax evaluate lint`, "
            "or name the run of an experiment with --run."
        )
    return latest


def _fitting(
    places: Iterable[StatementPlace],
    options: SelectionOptions,
    judgements: Judgements,
    in_both: frozenset[str],
    left_out: Counter[str],
) -> list[StatementPlace]:
    """The places that neither votes nor options leave out; the others are counted."""
    ids_by_reason = {
        "wrong_type": judgements.verdicts.wrong_type,
        "harmful": judgements.harmful,
        "shared": frozenset() if options.shared else in_both,
    }
    fitting = []
    for place in places:
        reason = next((reason for reason, ids in ids_by_reason.items() if place.id in ids), None)
        if reason is None:
            fitting.append(place)
        else:
            left_out[reason] += 1
    return fitting


def _unblocked(
    kb: KnowledgeBase, places: Sequence[StatementPlace], blocked: BlockList, left_out: Counter[str]
) -> Iterator[StatementPlace]:
    """The places whose statements match no pattern of the block list; the others are counted."""
    if not blocked.patterns:  # spares reading all statements
        yield from places
        return
    for part in chunks(places):
        for place, record in zip(part, kb.statements_at(part), strict=True):
            if blocked.blocks(_texts(record)):
                left_out["blocked"] += 1
            else:
                yield place


def _texts(record: StatementRecord) -> Iterator[str]:
    """All texts of a statement that a reader of the dataset sees."""
    yield record.premise
    yield record.conclusion
    for _, value in record.substitution:
        yield str(value)
    for part in proof_from_json(record.proof).parts():
        if isinstance(part.goal, Literal):
            for term in part.goal.atom.arguments:
                if isinstance(term, Constant):
                    yield str(term.value)
