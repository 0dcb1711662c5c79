"""The engine's gates inverted: keep schemas that favour the wrong answer and that a base model fails on.

The likelihood gate of a search keeps the least likely statements (LINK, section 2.3). Here it keeps the schemas whose
right answer is least associated with what the sentence says about it, and the critic's threshold becomes one that a
base model must not reach.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from hapax.engine.search.ranking import kept
from hapax.evaluation.shared.estimates import Estimate, auc_estimate
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.asking import ROLE, Ask
from hapax.evaluation.winograd.data import HUMAN, Pair, WinogradItem, clause_with, pairs_of
from hapax.evaluation.winograd.files import read_items
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Setting
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.calls import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.protocols import LIKELIHOOD
from hapax.llm_oracle.registry import open_model, with_journal

ASSOCIATION, NON_LLM_PROOF, SHARE = "winograd association", "winograd non-llm-proof", "winograd share"
"""Names of the gates in stored decisions."""


@dataclass(frozen=True, slots=True)
class Association:
    """Preference of the sentences' clauses for the wrong entity over the right one, in nats.

    For a sentence this is [log P(clause about wrong) - log P(wrong)] - [log P(clause about right) - log P(right)], the
    difference of two pointwise mutual informations, so that long and rare names have no influence. `mean` is the mean
    of both sentences.
    """

    by_sentence: tuple[float, float]

    @property
    def mean(self) -> float:
        return fmean(self.by_sentence)


def associations(pairs: Sequence[Pair], model: JournaledLikelihood) -> list[Association | None]:
    """Association of each pair; None if a sentence has no clause with its pronoun."""
    pair_texts = [_texts(pair) for pair in pairs]
    distinct: dict[str, None] = {}
    for texts in pair_texts:
        distinct |= dict.fromkeys(texts or ())
    scores = model.log_likelihoods(list(distinct))
    totals = {text: score.total for text, score in zip(distinct, scores, strict=True)}
    results: list[Association | None] = []
    for texts in pair_texts:
        differences = []
        for start in range(0, len(texts or ()), 4):  # four texts for each sentence, as `_texts` orders them
            wrong, wrong_alone, right, right_alone = (totals[text] for text in (texts or ())[start : start + 4])
            differences.append((wrong - wrong_alone) - (right - right_alone))
        results.append(Association((differences[0], differences[1])) if differences else None)
    return results


WANTED_REVERSED, WANTED_SOURCES = 45 / 51, 10 / 51
"""Shares of CR-WSC-H and of its sources: a gate is useful if at least and at most these pass it."""


@dataclass(frozen=True, slots=True)
class AssociationSplit:
    """Association of reversed pairs and of their sources under a model.

    `threshold`: of the gate that passes the wanted share of reversed pairs, so that a lower one would pass more
    sources; `reversed_passing` and `sources_passing`: pairs at or above it. `auc`: probability that a reversed pair
    favours the wrong answer more than a source pair.
    """

    model: str
    reversed_scores: tuple[float, ...]
    source_scores: tuple[float, ...]
    threshold: float
    auc: Estimate

    @property
    def reversed_passing(self) -> int:
        return sum(score >= self.threshold for score in self.reversed_scores)

    @property
    def sources_passing(self) -> int:
        return sum(score >= self.threshold for score in self.source_scores)

    @property
    def separates(self) -> bool:
        """True if at most the wanted share of sources passes with the reversed pairs."""
        return self.sources_passing <= WANTED_SOURCES * len(self.source_scores)

    def to_result(self) -> ExperimentResult:
        """The gate that passes the wanted reversed pairs, and a sentence that says if the model separates them."""
        reversed_count, source_count = len(self.reversed_scores), len(self.source_scores)
        row = (
            self.model,
            f"{self.threshold:.2f}",
            f"{self.reversed_passing} of {reversed_count}",
            f"{self.sources_passing} of {source_count}",
            str(self.auc),
        )
        columns = ("model", "threshold, nats", "reversed pairs passing", "sources passing", "AUC")
        if self.separates:
            verdict = f"This model can gate new schemas: use {Setting('options.threshold')} {self.threshold:.2f}."
        else:
            verdict = (
                "This model cannot gate new schemas by association: with the reversed pairs, "
                f"{self.sources_passing} of {source_count} sources pass. Use another model."
            )
        figures = {
            **asdict(self),
            "reversed_passing": self.reversed_passing,
            "sources_passing": self.sources_passing,
            "separates": self.separates,
        }
        return ExperimentResult([ResultTable("", columns, [row])], figures, details=[verdict])


@checked
@extras_named()
def measure_association(
    kb: KnowledgeBase, path: str | Path, model: str = "embedded", opening: OpeningOptions | None = None
) -> Evaluation[AssociationSplit]:
    """Association of the reversed pairs of the annotated WSC file (CR-WSC-H) and of their sources under a model.

    `model`: of the likelihood role. `opening`: as for `ask_schemas`. Raises HapaxError if the file has no such pairs.
    """
    opening, journal = with_journal(kb, opening)
    likelihood = open_model(model, LIKELIHOOD, opening)
    by_pair = {pair[0].pair: pair for pair in pairs_of(read_items(Path(path)))}
    reversed_pairs = [pair for pair in by_pair.values() if pair[0].source == HUMAN and pair[0].family in by_pair]
    if not reversed_pairs:
        raise HapaxError(f"{path}: no pairs of {HUMAN} with their sources. Give the annotated WSC file.")
    sources = [by_pair[pair[0].family] for pair in reversed_pairs]
    scorer = JournaledLikelihood(likelihood, journal, role=ROLE)
    measured = associations([*reversed_pairs, *sources], scorer)
    count = len(reversed_pairs)
    reversed_scores = tuple(score.mean for score in measured[:count] if score is not None)
    source_scores = tuple(score.mean for score in measured[count:] if score is not None)
    if not reversed_scores:
        raise HapaxError(f"{path}: no clause of a pair of {HUMAN} has its pronoun. Correct the pronouns of the file.")
    # The highest threshold that the wanted share passes.
    # The small number keeps a product that rounding made too large from asking for one pair more.
    passing = math.ceil(WANTED_REVERSED * len(reversed_scores) - 1e-9)
    threshold = sorted(reversed_scores, reverse=True)[passing - 1]
    estimate = auc_estimate(reversed_scores, source_scores)
    return Evaluation.of(
        AssociationSplit(likelihood.identity.name, reversed_scores, source_scores, threshold, estimate)
    )


def _texts(pair: Pair) -> tuple[str, ...] | None:
    """For each sentence: the clause about the wrong entity, this entity, the clause about the right one, this entity.

    None if a sentence has no clause with its pronoun.
    """
    texts: list[str] = []
    for item in pair:
        for entity in (item.options[1 - item.answer], item.options[item.answer]):
            clause = clause_with(item, entity)
            if clause is None:
                return None
            texts += [clause, f"{entity[0].upper()}{entity[1:]}."]
    return tuple(texts)


def keep_most_adversarial(scores: Sequence[float], ties: Sequence[str], share: float, most: int) -> list[int]:
    """Positions of the scores to keep, most adversarial first: the likelihood gate on the negated scores."""
    return kept([-score for score in scores], ties, Distribution.LONG_TAIL, share, most)


def meaning_claim(item: WinogradItem, option: int) -> str:
    """The claim that the pronoun means this option, for a critic."""
    return f"In the sentence “{item.text}” the word “{item.pronoun.lower()}” means {item.options[option]}."


def critic_rights(pairs: Sequence[Pair], critic: JournaledCritic) -> list[int]:
    """Number of sentences of each pair (0 to 2) whose right meaning a critic finds likelier than the wrong one."""
    claims = []
    for pair in pairs:
        for item in pair:
            claims += [meaning_claim(item, item.answer), meaning_claim(item, 1 - item.answer)]
    scores = [score.probability for score in critic.probabilities(claims)]
    counts = []
    for start in range(0, len(scores), 4):
        # Two claims for each of the two sentences, in the order in which they were asked.
        right_1, wrong_1, right_2, wrong_2 = scores[start : start + 4]
        counts.append((right_1 > wrong_1) + (right_2 > wrong_2))
    return counts


def base_rights(pairs: Sequence[Pair], ask: Ask) -> list[int]:
    """Number of sentences of each pair (0 to 2) that the base model answers right. Unreadable replies are wrong."""
    counts = []
    for answer in ask(pairs):
        counts.append(sum(sentence.right for sentence in answer.answers))
    return counts
