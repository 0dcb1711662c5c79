"""Study of the long tail: which measure of likelihood finds it, by which judge (LINK, section 3.2).

The same stored statements are split into two ends by every ranker and measure, and judged by every other model. AUC is
the probability that a head statement is likelier than a long-tail statement of its rule, by the judge.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product

from hapax.engine.explain import models_of
from hapax.engine.search.ranking import Ends, Values, ends, pair_pool, random_score
from hapax.evaluation.link.likelihood import statements_of
from hapax.evaluation.shared.estimates import Estimate, auc, mean_difference, mean_share, share
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critics.circularity import is_circular
from hapax.llm_oracle.critics.measures import Measure, RankedText, TextMeasures, counts_names, measured, measures_of
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledLikelihood
from hapax.llm_oracle.protocols import EVALUATOR, LIKELIHOOD, LikelihoodModel, ModelIdentity
from hapax.llm_oracle.rankers.word_frequency import zipf_frequency

COMMON_NAME = 4.22
"""Zipf frequency from which a name is common: that of the English word of rank 5,000."""

STORED = "as stored"
"""Name of the split that the searches made."""


@dataclass(frozen=True, slots=True)
class JudgedSplit:
    """A split of the statements into two ends, as one judge sees it. All estimates are over rules.

    `auc`: mean AUC; `positive`: share of rules with a delta above 0. `circular`: the judge equals the ranker, or one of
    them taught the other.
    """

    ranker: str
    measure: str
    judge: str
    judged_by: Measure
    circular: bool
    auc: Estimate
    positive: Estimate


@dataclass(frozen=True, slots=True)
class SplitSize:
    """Numbers of a split: statements at each end, in both, crowded out; and the share of the tail's common names."""

    ranker: str
    measure: str
    rules: int
    head: int
    long_tail: int
    in_both: int
    crowded: int
    common_names: Estimate


@dataclass(frozen=True, slots=True)
class LongTailStudy:
    """Results of `evaluate_long_tail`."""

    statements: int
    rules: int
    sizes: tuple[SplitSize, ...]
    judged: tuple[JudgedSplit, ...]

    @property
    def cells(self) -> dict[tuple[str, str], dict[str, JudgedSplit]]:
        """A row for each ranker and measure, with the judgements by judge and measure."""
        cells: dict[tuple[str, str], dict[str, JudgedSplit]] = {(size.ranker, size.measure): {} for size in self.sizes}
        for split in self.judged:
            cells[split.ranker, split.measure][f"{split.judge} {split.judged_by}"] = split
        return cells

    @property
    def judges(self) -> list[str]:
        """Each judge with each measure by which it judges."""
        return list(dict.fromkeys(chain.from_iterable(self.cells.values())))

    def evaluation(self) -> Evaluation[LongTailStudy]:
        """The tables, with all figures. A circular judgement is marked: it is no evidence."""
        judged = []
        for names, row in self.cells.items():
            judged.append((*names, *(_cell(row[judge]) if judge in row else "" for judge in self.judges)))
        sizes = []
        for size in self.sizes:
            common = "n/a" if math.isnan(size.common_names.value) else f"{size.common_names.value:.1%}"
            numbers = (size.rules, size.head, size.long_tail, size.in_both, size.crowded)
            sizes.append((size.ranker, size.measure, *numbers, common))
        of_sizes = ("ranked by", "measure", "rules", "head", "tail", "both", "crowded", "common in tail")
        tables = [
            ResultTable("AUC of head against long tail, by judge", ("ranked by", "measure", *self.judges), judged),
            ResultTable("Statements at the ends", of_sizes, sizes),
        ]
        notes = [
            f"{self.statements} statements of {self.rules} rules. AUC: a head statement is likelier than a long-tail "
            "statement of its rule, by the judge; .5 is chance. In brackets, the rules with a delta above 0.",
            "*: circular. The judge is the ranker, or one of them taught the other: no evidence.",
        ]
        return Evaluation(self, tables, self, notes=notes)


def _cell(split: JudgedSplit) -> str:
    if math.isnan(split.auc.value):
        return "n/a"
    rules = f"{round(split.positive.value * split.positive.count)}/{split.positive.count}"
    return f"{split.auc.value:.2f} ({rules}){'*' if split.circular else ''}"


@dataclass(frozen=True, slots=True)
class _Pool:
    """The distinct texts of a rule, with their values and the ends in which the searches put them."""

    rule: str
    values: dict[str, Values]
    ends: dict[Distribution, list[str]]


@dataclass(frozen=True, slots=True)
class _Scorer:
    """A model and all that it says of the statements, by text.

    `measures`: those that tell statements apart; `judged_by`: the measure by which it judges.
    """

    name: str
    identity: ModelIdentity
    measures: tuple[Measure, ...]
    judged_by: Measure
    by_text: Mapping[str, TextMeasures]

    def scores(self, texts: Iterable[str], measure: Measure) -> dict[str, float]:
        """Finite scores of the texts."""
        known = {text: self.by_text[text].scores.get(measure, math.nan) for text in texts if text in self.by_text}
        return {text: score for text, score in known.items() if math.isfinite(score)}


@dataclass(frozen=True, slots=True)
class _Split:
    """The ends of each rule by one ranker and measure; the searches' own have no measure, and an identity if known."""

    ranker: str
    measure: str
    identity: ModelIdentity | None
    by_rule: Mapping[str, Ends]
    is_of_pairs: bool = False
    """True if the ends were cut by pair rarity."""


@checked
def evaluate_long_tail(
    kb: KnowledgeBase,
    judges: Sequence[LikelihoodModel],
    *,
    only: Sequence[str] = (),
    seed: int = 0,
    journal: Journal | None = None,
) -> Evaluation[LongTailStudy]:
    """Split the stored statements into ends by every judge and measure, and let every judge measure each split.

    `judges`: models of the evaluator's role, two or more, since a ranker cannot judge itself. `only`: names of rules;
    without any, all. `seed`: orders statements with equal scores. Raises HapaxError without statements. Needs the extra
    `evaluation`.
    """
    if len(judges) < 2:
        raise HapaxError(
            "A split needs a judge that did not rank it.", Remedy("Name two models or more, by {}.", Setting("judges"))
        )
    pools = _pools(kb, only)
    # A revision is shown for those that share a name, such as two folders `texts` of counts.
    names = Counter(model.identity.name for model in judges)
    scorers: list[_Scorer] = []
    for model in judges:
        name = model.identity.name if names[model.identity.name] == 1 else model.identity.title
        if name in {scorer.name for scorer in scorers}:
            raise HapaxError(
                f"{name} is named twice, in two ways.", Remedy("Name another judge, by {}.", Setting("judges"))
            )
        scorers.append(_scorer(model, name, pools, journal or Journal(kb)))
    splits = [_stored_split(kb, pools, [scorer.identity for scorer in scorers])]
    for scorer in scorers:
        for measure in scorer.measures:
            made = {pool.rule: _ends(pool, scorer, measure, seed) for pool in pools}
            splits.append(_Split(scorer.name, measure, scorer.identity, made, measure == Measure.PAIR))
    judged = []
    for split, scorer in product(splits, scorers):
        judged.append(_judged(split, pools, scorer, scorer.judged_by))
        # Pair rarity is another thing than name rarity, so it is judged by pairs, too.
        if split.is_of_pairs and Measure.PAIR in scorer.measures and scorer.judged_by != Measure.PAIR:
            judged.append(_judged(split, pools, scorer, Measure.PAIR))
    statements = sum(len(pool.values) for pool in pools)
    sizes = tuple(_size(split, pools) for split in splits)
    return LongTailStudy(statements, len(pools), sizes, tuple(judged)).evaluation()


def _pools(kb: KnowledgeBase, rules: Sequence[str]) -> list[_Pool]:
    """The statements of each rule's latest search: searches by other measures divide the same statements otherwise."""
    statements = statements_of(kb, rules)
    # Runs that started in one second stay in the order in which they were stored; one that is not stored is the oldest.
    order = {run.id: place for place, run in enumerate(sorted(kb.runs(), key=lambda run: run.started))}
    last: dict[tuple[str, Distribution], str] = {}
    for statement in sorted(statements, key=lambda statement: order.get(statement.run_id, -1)):
        last[statement.rule, statement.distribution] = statement.run_id
    pools: dict[str, _Pool] = {}
    for statement in statements:
        if statement.run_id == last[statement.rule, statement.distribution]:
            new = _Pool(statement.rule, {}, {end: [] for end in Distribution})
            pool = pools.setdefault(statement.rule, new)
            pool.values[statement.text] = tuple(value for _, value in statement.substitution)
            if statement.text not in pool.ends[statement.distribution]:
                pool.ends[statement.distribution].append(statement.text)
    return list(pools.values())


def _stored_split(kb: KnowledgeBase, pools: Sequence[_Pool], known: Sequence[ModelIdentity]) -> _Split:
    """The split that the searches made, with what is known of the latest one's ranker, if any."""
    made = {}
    for pool in pools:
        head, long_tail = (tuple(texts) for texts in pool.ends.values())
        made[pool.rule] = Ends(head, long_tail, pool=len(pool.values))
    searches = [run for run in kb.runs() if run.command == "search" and run.settings.get("likelihood") == "model"]
    if not searches:
        return _Split(STORED, "", None, made)
    latest = max(reversed(searches), key=lambda run: run.started)
    name = models_of(latest).get(LIKELIHOOD, "").partition("@")[0]
    ranker = next((identity for identity in known if identity.name == name), ModelIdentity(name))
    return _Split(STORED, "", ranker, made, latest.settings.get("measure") == Measure.PAIR)


def _scorer(model: LikelihoodModel, name: str, pools: Sequence[_Pool], journal: Journal) -> _Scorer:
    wanted = [measure for measure in Measure if measure in measures_of(model)]
    asked: dict[str, RankedText] = {}
    for pool in pools:
        for text, values in pool.values.items():
            asked[text] = RankedText(text, tuple(map(str, values)))
    journaled = model if isinstance(model, JournaledLikelihood) else JournaledLikelihood(model, journal, role=EVALUATOR)
    answers = measured(journaled, list(asked.values()), wanted)
    known = {text: answer for text, answer in zip(asked, answers, strict=True) if answer is not None}
    # A word list counts names only; other models judge the names in their sentence if they can.
    judged_by = Measure.PRIOR if counts_names(model) else Measure.SPAN if Measure.SPAN in wanted else Measure.TOTAL
    # A word list knows no pairs, for instance: its measure of them is the same for all.
    telling = []
    for measure in wanted:
        if len({answer.scores[measure] for answer in known.values() if measure in answer.scores}) > 1:
            telling.append(measure)
    return _Scorer(name, model.identity, tuple(telling), judged_by, known)


def _ends(pool: _Pool, scorer: _Scorer, measure: Measure, seed: int) -> Ends:
    """The ends of a rule as a search by this measure cuts them."""
    scores = scorer.scores(pool.values, measure)
    if measure == Measure.PAIR:
        commoner = pair_pool({text: scorer.by_text[text] for text in scores})
        scores = {text: scores[text] for text in commoner}
    return ends(scores, pool.values, lambda text: random_score(seed, pool.rule, text))


def _size(split: _Split, pools: Sequence[_Pool]) -> SplitSize:
    made = list(split.by_rule.values())
    common: list[bool] = []
    for pool in pools:
        long_tail = split.by_rule[pool.rule].long_tail
        common += [_all_common(pool.values[text]) for text in long_tail]
    return SplitSize(
        split.ranker,
        split.measure,
        sum(bool(by_end.head and by_end.long_tail) for by_end in made),
        sum(len(by_end.head) for by_end in made),
        sum(len(by_end.long_tail) for by_end in made),
        sum(len(set(by_end.head) & set(by_end.long_tail)) for by_end in made),
        sum(len(by_end.crowded) for by_end in made),
        share(common),
    )


def _all_common(values: Values) -> bool:
    """True if all names among the values are common; numbers are not names."""
    names = [value for value in values if isinstance(value, str)]
    return bool(names) and all(zipf_frequency(name) >= COMMON_NAME for name in names)


def _judged(split: _Split, pools: Sequence[_Pool], scorer: _Scorer, measure: Measure) -> JudgedSplit:
    """The judgement of a split, over the rules of which the judge scored statements of both ends."""
    areas, positive = [], []
    for pool in pools:
        scores, division = scorer.scores(pool.values, measure), split.by_rule[pool.rule]
        left, right = ([scores[text] for text in end if text in scores] for end in (division.head, division.long_tail))
        if left and right:
            areas.append(auc(left, right))
            positive.append(mean_difference(left, right) > 0)
    circular = split.identity is not None and is_circular(scorer.identity, split.identity)
    names = (split.ranker, split.measure, scorer.name, measure)
    return JudgedSplit(*names, circular, mean_share(areas), share(positive))
