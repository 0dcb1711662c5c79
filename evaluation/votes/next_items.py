"""The items that people should judge next: those that decide a promise, and those of which the scores know least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from hapax.engine.certificates import Promise
from hapax.engine.judgements import (
    DrawKind,
    cut_of,
    draw_weights,
    is_given_out,
    random_number,
)
from hapax.engine.run_memory import models_of
from hapax.engine.search.promises import DistinctStatements, StatementScores
from hapax.engine.search.score_maps import ScoreMaps, chained_critics, fact_truths, proposed_atoms, stored_scores
from hapax.evaluation.shared.estimates import NOTHING, Estimate, mended_share, percent
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.evaluation.votes.derived import derivation_rules, derived_scores
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.words import counted
from hapax.kb import system
from hapax.kb.records import DRAWN_ITEMS, JUDGING_DRAWS, DrawnItem, JudgingDraw, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import CRITIC

DRAWN: Mapping[DrawKind, str] = {"predicates": "facts", "soundness": "statements", "derived": "derived statements"}
"""Names of what is judged, by the kind of its draw."""

ENOUGH = 1e12
"""Reach of a draw that has given out all its items."""


@checked
@dataclass(frozen=True, slots=True)
class NextOptions:
    """Options of a draw. `promise`: the one that the labels are meant for. `anew`: begin another draw."""

    kind: DrawKind
    count: int = 50
    promise: Promise = field(default_factory=Promise)
    anew: bool = False

    def __post_init__(self) -> None:
        if self.count < 1:
            raise HapaxError(f"count is {self.count}. Ask for 1 item or more.")

    @classmethod
    def of(cls, kind: str, count: int, precision: float, anew: bool, derived: bool = False) -> NextOptions:
        """The options of a draw of `facts` or `statements` by those of the command line."""
        if derived and kind == "facts":
            raise HapaxError(
                "`derive` concludes statements.",
                Remedy("Draw statements, or omit {}.", Setting("options.sample.derived")),
            )
        statements: DrawKind = "derived" if derived else "soundness"
        return cls("predicates" if kind == "facts" else statements, count, Promise(precision), anew)


@dataclass(frozen=True, slots=True)
class JudgingPool:
    """The facts or statements that can be judged. `truths`: of those that were judged or labelled already.

    `labelled`: ids of those that another source than people's votes labels.
    """

    critic: str
    probabilities: Mapping[str, float]
    truths: Mapping[str, bool]
    labelled: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NextItems:
    """Ids to judge next, with the number of them above the cut, and the share of true items of the whole pool.

    `share`: by the labels that the draw has brought, mended for its weights; `judged`: their number.
    """

    ids: tuple[str, ...]
    above: int
    cut: float
    pool: int
    judged: int
    share: Estimate


def next_items(kb: KnowledgeBase, options: NextOptions) -> NextItems:
    """Give out the next items of the draw of a kind, which begins with the first call, and store their chances."""
    pool = judging_pool(kb, options.kind)
    draw = None if options.anew else kb.first(JUDGING_DRAWS, kind=options.kind)
    # Another critic's probabilities give other weights, so its items need a draw of their own.
    if draw is None or draw.settings.get("critic") != pool.critic:
        draw = _begun(options, pool)
    known = {item.item_id: item for item in kb.matching(DRAWN_ITEMS, salt=draw.salt)}
    cut = float(draw.settings["cut"])
    new = [
        # The random number depends on the draw's salt alone, so new items join an old draw without changing it.
        DrawnItem(draw.salt, identity, probability, weight, random_number(draw.salt, identity))
        for identity, probability, weight in _weighted(pool.probabilities, cut, float(draw.settings["low"]))
        if identity not in known
    ]
    items = [*known.values(), *new]
    # Priority sampling (Duffield, Lund, Thorup 2007): the smallest quotients of random number and weight come first.
    order = sorted(items, key=lambda item: item.draw / item.weight)
    waiting = [item for item in order if item.item_id in pool.probabilities and item.item_id not in pool.truths]
    chosen, later = waiting[: options.count], waiting[options.count :]
    # The first item that is not given out bounds the draw, so that each item's chance depends on the others alone.
    reach = later[0].draw / later[0].weight if later else ENOUGH
    # The reach never shrinks: what was given out stays given out, also after its labels are in.
    draw = replace(draw, reach=max(draw.reach, reach))
    kb.set_judging_draw(draw, new)
    share, judged = _share(draw, items, pool.truths, pool.labelled)
    above = sum(item.score >= cut for item in chosen)
    return NextItems(tuple(item.item_id for item in chosen), above, cut, len(items), judged, share)


def drawn_share(kb: KnowledgeBase, kind: DrawKind) -> tuple[Estimate, int] | None:
    """The share of true facts or statements of a draw's pool, mended for its weights, and the number of its labels.

    None without a draw.
    """
    draw = kb.first(JUDGING_DRAWS, kind=kind)
    return (
        None
        if draw is None
        else _share(draw, kb.matching(DRAWN_ITEMS, salt=draw.salt), _truths(kb, kind), _labelled(kb, kind))
    )


def mended_lines(kb: KnowledgeBase) -> list[str]:
    """The shares of true facts and statements by the draws of `votes next`, in words."""
    lines = []
    for kind, name in DRAWN.items():
        found = drawn_share(kb, kind)
        if found is not None and found[1]:
            share, judged = found
            lines.append(
                f"Of all {name} of the draw by `hapax votes next`, {percent(share)} % are true, with a 95 % interval: "
                f"mended for its chances, by {counted(judged, 'label')}."
            )
    return lines


def judging_pool(kb: KnowledgeBase, kind: DrawKind) -> JudgingPool:
    """The facts that the last search's critic judged, or the statements that stand, with their probabilities.

    Raises HapaxError where there are none.
    """
    critics, maps, truths = _critics(kb), ScoreMaps.stored(kb), _truths(kb, kind)
    if kind == "derived":
        # Without a search nothing tells one fact from another, and the draw is even.
        scores = StatementScores(kb, derivation_rules(kb), critics, maps)
        return JudgingPool(",".join(critics), derived_scores(scores), truths)
    if not critics:
        raise HapaxError(
            f"{kb.place}: no search has stored anything to judge.",
            Remedy(
                "Run {} first, or draw from what {} concluded: `hapax votes next 50 statements --derived`.",
                Operation("search"),
                Operation("derive"),
            ),
        )
    library = stored_library(kb)
    if kind == "predicates":
        atoms = proposed_atoms(kb, library)
        critic = critics[-1]
        raw = stored_scores(kb, atoms, critic)
        indicators = {atom.claim: atom.indicator for atom in atoms.values()}
        worth = maps.of_claims(kb, critic, {atoms[key].claim: score for key, score in raw.items()}, indicators)
        found = {key: worth[atoms[key].claim] for key in raw}
    else:
        critic = ",".join(critics)
        distinct = DistinctStatements.of(kb, {rule.name for rule in library.rules})
        found = StatementScores(kb, library, critics, maps).scores(distinct.records.values())
    if not found:
        raise HapaxError(f"{kb.place}: its last critic has scored nothing to judge. Search with another.")
    return JudgingPool(critic, found, truths, _labelled(kb, kind))


def _truths(kb: KnowledgeBase, kind: DrawKind) -> dict[str, bool]:
    """Truth by id of the facts or statements that were judged."""
    if kind == "predicates":
        return fact_truths(kb)
    return DistinctStatements.of(kb, {rule.name for rule in stored_library(kb).rules}).truths(kb)


def _critics(kb: KnowledgeBase) -> list[str]:
    """NAME@REVISION of the critics of the last search; none without a search."""
    for run in reversed(kb.runs()):
        chain = models_of(run).get(CRITIC)
        if run.command == "search" and chain:
            return chained_critics(str(chain))
    return []


def _begun(options: NextOptions, pool: JudgingPool) -> JudgingDraw:
    created = system.now().isoformat(timespec="microseconds")
    cut = cut_of(list(pool.probabilities.values()), options.promise.risk)
    _, low = draw_weights(list(pool.probabilities.values()), cut)
    settings = {"critic": pool.critic, "cut": cut, "low": low}
    return JudgingDraw(options.kind, content_id("judging", options.kind, created), settings, 0.0, created)


def _weighted(probabilities: Mapping[str, float], cut: float, low: float) -> list[tuple[str, float, float]]:
    values = list(probabilities.values())
    weights, _ = draw_weights(values, cut, low)
    return list(zip(probabilities, values, weights, strict=True))


def _share(
    draw: JudgingDraw, items: Sequence[DrawnItem], truths: Mapping[str, bool], labelled: Set[str]
) -> tuple[Estimate, int]:
    given = [item for item in items if is_given_out(draw, item)]
    judged = [item for item in given if item.item_id in truths]
    # People have not answered all that was given out yet; the answered part is taken for a random one. Labels of other
    # sources, which may well be of the true values only, are all there before and are no part of what is answered.
    asked = [item for item in given if item.item_id not in labelled]
    answered = sum(item.item_id in truths for item in asked)
    if asked and not answered:
        return NOTHING, 0
    rows = []
    for item in judged:
        chance = min(1.0, draw.reach * item.weight)
        part = 1.0 if item.item_id in labelled else answered / len(asked)
        rows.append((item.score, truths[item.item_id], chance * part))
    return mended_share([item.score for item in items], rows), len(judged)


def _labelled(kb: KnowledgeBase, kind: DrawKind) -> Set[str]:
    """Ids of the facts that stored labels decide, which are not votes."""
    return {label.fact_id for label in kb.labels()} if kind == "predicates" else frozenset()
