"""Measures of how likely a sentence is: by its words, by the names in it, and by names that go together.

LINK ranks by the mean log-likelihood per token (section 2.3). Under word pieces a rare name is many pieces, of which
all but the first are cheap, so that this mean hardly knows how rare a name is. The other measures ask for name rarity
(`span`, `prior`) and for pair rarity (`pair`) apart. All are logarithms, and higher is likelier.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import chain, combinations
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.protocols import (
    LikelihoodModel,
    LogLikelihood,
    PairModel,
    PopularityModel,
    SpanLikelihoodModel,
    SpannedText,
)
from hapax.llm_oracle.questions.pair_frames import START, pair_frames
from hapax.llm_oracle.rankers.frequency import FrequencyLikelihood

NEUTRAL_FRAME = "They talked about {}."
"""Sentence in which a name is scored alone. It fits names of every type."""


class Measure(StrEnum):
    """A measure of likelihood. All but `paper` and `slor` are sums in nats."""

    PAPER = "paper"
    """Mean log-likelihood per token without the first token (LINK, section 2.3)."""
    TOTAL = "total"
    """Log-likelihood of the whole text."""
    SLOR = "slor"
    """Log-likelihood less that of the words on their own, per token (Pauls and Klein 2012; Kann et al. 2018). The words
    on their own have the frequencies of `frequency`: a model does not tell those of its training text."""
    SPAN = "span"
    """Log-likelihood of the values where the text first mentions them, given the text before."""
    PRIOR = "prior"
    """Log-likelihood of the values alone, each in a neutral frame: name rarity."""
    PAIR = "pair"
    """Log-likelihood of a value beside another one, less what it has anyway, as a mean over pairs of values and both
    orders: pair rarity. What it has anyway is its mean beside the values of other statements (`pair_frames.py`), or its
    prior without others. It is the pointwise mutual information in the domain's frame (Holtzman et al. 2021). By word
    vectors, it is the similarity of the values, which is not in nats."""


OF_NAMES = frozenset({Measure.SPAN, Measure.PRIOR, Measure.PAIR})
"""Measures that need the values of a sentence."""


OF_LISTS = OF_NAMES - {Measure.PAIR}
"""Measures that the popularity of listed names gives: a list does not tell which names go together."""

PREFERRED = (Measure.PRIOR, Measure.PAPER)
"""Measures by which a search ranks, the first that its ranker gives: names tell what is rare
(docs/papers/long_tail.md)."""


@dataclass(frozen=True, slots=True)
class RankedText:
    """A sentence to be measured, and the values in it."""

    text: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextMeasures:
    """A text's measures, and the number of tokens in its values, because a sum favours short names."""

    scores: Mapping[Measure, float]
    name_tokens: int


def measures_of(model: Any) -> frozenset[Measure]:
    """The measures that a model can give. A model behind a journal has those of the model itself."""
    inner = _inner(model)
    if isinstance(inner, PopularityModel):
        return OF_LISTS
    # A tokenizer may give no offsets of tokens (`HuggingFaceLikelihood.locates_tokens`).
    gives_spans = isinstance(inner, SpanLikelihoodModel) and getattr(inner, "locates_tokens", True)
    if gives_spans:
        # Where words are independent, no names go together.
        return frozenset(Measure) - ({Measure.PAIR} if getattr(inner, "words_are_independent", False) else set())
    of_texts = frozenset(Measure) - OF_NAMES
    # The similarity of words is no log-likelihood, from which that of the words on their own could be subtracted.
    return of_texts - {Measure.SLOR} | {Measure.PAIR} if isinstance(inner, PairModel) else of_texts


def counts_names(model: Any) -> bool:
    """True for a model that counts names, behind a journal or not."""
    return isinstance(_inner(model), PopularityModel)


def chosen_measure(model: Any, wanted: Measure | None) -> Measure:
    """The measure by which a model ranks: the wanted one, or the first of `PREFERRED` that it gives.

    Raises HapaxError for a measure that the model cannot give.
    """
    own = measures_of(model)
    if wanted is None:
        return next((measure for measure in PREFERRED if measure in own), Measure.PAPER)
    if wanted not in own:
        able = ", ".join(measure for measure in Measure if measure in own)
        raise HapaxError(
            f"{model.identity.name} does not give the measure {wanted}. Its measures are {able}; choose one of "
            "these or another likelihood model."
        )
    return wanted


def kept_measures(model: Any, wanted: Measure) -> list[Measure]:
    """The measures that a search keeps of its complete statements: all that come from one pass over their sentences
    and names, so that a search by another of them asks the ranker nothing.

    `pair` is among them only where it is wanted, because it has many further texts scored (`pair_frames.py`).
    """
    able = measures_of(model)
    return [measure for measure in Measure if measure in able and (measure == wanted or measure is not Measure.PAIR)]


def measured(model: Any, texts: Sequence[RankedText], measures: Sequence[Measure]) -> list[TextMeasures | None]:
    """The measures of each text by a likelihood model or a popularity model; None for a text that the model refused.

    A model that lists names has none for a text without a listed name. Raises HapaxError for a measure that the model
    cannot give.
    """
    for measure in measures:
        chosen_measure(model, measure)
    if counts_names(model):
        return _by_counts(model, texts)
    inner = _inner(model)
    if Measure.PAIR in measures and isinstance(inner, PairModel):
        return _with_similarities(inner, texts, _by_likelihood(model, texts, frozenset(measures) - {Measure.PAIR}))
    return _by_likelihood(model, texts, frozenset(measures))


def _inner(model: Any) -> Any:
    return getattr(model, "model", model)


def mentions(text: str, values: Sequence[str]) -> tuple[tuple[int, int] | None, ...]:
    """The character range of the first mention of each value as whole words; None for a value that is not mentioned.

    A longer value takes its place first, so that *Congo* is not seen in *Republic of the Congo* if both are values.
    """
    places: dict[str, tuple[int, int] | None] = {}
    for value in sorted(dict.fromkeys(values), key=len, reverse=True):
        taken = [place for place in places.values() if place is not None]
        places[value] = None
        for match in _whole_words(value).finditer(text) if value.strip() else ():
            # Only where no longer value stands.
            if all(match.end() <= start or match.start() >= end for start, end in taken):
                places[value] = match.span()
                break
    return tuple(places[value] for value in values)


@lru_cache(10_000)
def _whole_words(value: str) -> re.Pattern[str]:
    # A template may begin a sentence with the value, so that its capital differs.
    # Not `\b`, which is no border beside the last sign of a name such as `C++`.
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE)


def _by_likelihood(
    model: LikelihoodModel, texts: Sequence[RankedText], measures: frozenset[Measure]
) -> list[TextMeasures | None]:
    """A text is scored once for all measures, and a value's prior once for all texts.

    Where `paper` alone is wanted, or the model does not tell the first token's score, texts are scored without `START`.
    """
    spanned = [_spanned(text) for text in texts]
    plain: Sequence[LogLikelihood | None] = [None] * len(texts)
    parts: Sequence[LogLikelihood | None] = [None] * len(texts)
    of_sentence = measures & {Measure.TOTAL, Measure.SLOR}
    tells_spans = Measure.SPAN in measures_of(model)
    if Measure.SPAN in measures or (of_sentence and tells_spans):
        parts = _span_scores(model, [asked for asked, _ in spanned])
    # The paper leaves out a text's first token; where its score is known, it can be subtracted from the whole.
    tells_first = all(part is not None and (part.first is not None or part.refused) for part in parts)
    if (Measure.PAPER in measures and not tells_first) or (of_sentence and not tells_spans):
        plain = model.log_likelihoods([text.text for text in texts])
    priors: dict[str, LogLikelihood] = {}
    if measures & {Measure.PRIOR, Measure.PAIR}:
        names = list(dict.fromkeys(chain.from_iterable(mentioned for _, mentioned in spanned)))
        priors = dict(zip(names, _span_scores(model, [_alone(name) for name in names]), strict=True))
    gains = _pair_gains(model, spanned, priors) if Measure.PAIR in measures else {}
    answers: list[TextMeasures | None] = []
    for text, (asked, mentioned), whole, part in zip(texts, spanned, plain, parts, strict=True):
        alone = [priors[name] for name in mentioned] if priors else []
        gain = gains.get(asked)
        is_refused = any(score is not None and score.refused for score in (whole, part, *alone))
        if is_refused or (Measure.PAIR in measures and gain is None):
            answers.append(None)
            continue
        answer = _measures(text.text, whole, part, alone, Measure.SLOR in measures)
        pair = {} if gain is None else {Measure.PAIR: gain}
        answers.append(replace(answer, scores={**answer.scores, **pair}))
    return answers


def _pair_gains(
    model: Any, statements: Sequence[tuple[SpannedText, Sequence[str]]], priors: Mapping[str, LogLikelihood]
) -> dict[SpannedText, float]:
    """Pointwise mutual information of each text's names, in nats, as a mean over their ordered pairs.

    0 for a text with fewer than two names, of which nothing is known; none for one with a pair that the model refused.
    """
    frames = pair_frames(statements)
    asked: dict[SpannedText, None] = {}
    for frame in chain.from_iterable(frames.values()):
        asked |= dict.fromkeys((frame.beside, *frame.beside_others))
    answers = zip(asked, _span_scores(model, list(asked)), strict=True) if asked else ()
    scores = {text: answer.spans[0][0] for text, answer in answers if not answer.refused}
    found = {}
    for text, pairs in frames.items():
        if not all(pair.beside in scores for pair in pairs):
            continue
        gains = []
        for pair in pairs:
            anyway = [scores[text] for text in pair.beside_others if text in scores]
            base = math.fsum(anyway) / len(anyway) if anyway else priors[pair.name].spans[0][0]
            gains.append(scores[pair.beside] - base)
        found[text] = math.fsum(gains) / len(gains) if gains else 0.0
    return found


def _measures(
    text: str, whole: LogLikelihood | None, part: LogLikelihood | None, names: Sequence[LogLikelihood], is_slor: bool
) -> TextMeasures:
    """The measures by the scores of a text without its first token, of one with its values, and of each value alone."""
    found: dict[Measure, float] = {}
    if whole is not None:
        found[Measure.PAPER] = whole.per_token
    elif part is not None and part.first is not None:
        # Behind `START` one more token has a score than in the text alone: the first one.
        found[Measure.PAPER] = LogLikelihood(part.total - part.first, part.token_count - 1).per_token
    scored = part or whole
    if scored is not None:
        found[Measure.TOTAL] = scored.total
        if is_slor:
            # (ln P(text) - ln P(its words on their own)) / tokens (Pauls and Klein 2012).
            (words,) = FrequencyLikelihood().log_likelihoods([text])
            found[Measure.SLOR] = (scored.total - words.total) / (scored.token_count or math.inf)
    if part is not None:
        found[Measure.SPAN] = math.fsum(total for total, _ in part.spans)
    spans = [name.spans[0] for name in names]
    if spans:
        found[Measure.PRIOR] = math.fsum(total for total, _ in spans)
    return TextMeasures(found, sum(count for _, count in (spans if part is None else part.spans)))


def _with_similarities(
    model: PairModel, texts: Sequence[RankedText], answers: Sequence[TextMeasures | None]
) -> list[TextMeasures | None]:
    """The answers with the mean similarity of the names in each text as `pair`, where two of them are known."""
    found: list[TextMeasures | None] = []
    for text, answer in zip(texts, answers, strict=True):
        if answer is None:
            found.append(None)
            continue
        named = dict.fromkeys(text.values)
        names = [name for name, place in zip(named, mentions(text.text, list(named)), strict=True) if place]
        alike = [score for score in model.similarities(list(combinations(names, 2))) if score is not None]
        pair = {Measure.PAIR: math.fsum(alike) / len(alike)} if alike else {}
        # Word vectors have words instead of tokens.
        found.append(TextMeasures({**answer.scores, **pair}, sum(len(name.split()) for name in names)))
    return found


def _spanned(text: RankedText) -> tuple[SpannedText, list[str]]:
    """The text with the places of its values, in the order of their mention, and these values."""
    # By place, so that a value that is given twice counts once.
    places = {place: value for place, value in zip(mentions(text.text, text.values), text.values, strict=True) if place}
    order = sorted(places)
    spans = tuple((start + len(START), end + len(START)) for start, end in order)
    return SpannedText(START + text.text, spans), [places[place] for place in order]


def _alone(name: str) -> SpannedText:
    before = NEUTRAL_FRAME.index("{}")
    return SpannedText(NEUTRAL_FRAME.format(name), ((before, before + len(name)),))


def _span_scores(model: Any, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
    scores: list[LogLikelihood] = model.span_log_likelihoods(texts)
    return scores


def _by_counts(model: Any, texts: Sequence[RankedText]) -> list[TextMeasures | None]:
    """Measures from the popularity of names: one is added to each, so that unpopular names are ranked, too."""
    named = [tuple(dict.fromkeys(text.values)) for text in texts]
    asked: list[tuple[str, ...]] = list(dict.fromkeys((name,) for name in chain.from_iterable(named)))
    counts = dict(zip(asked, model.counts(asked), strict=True))
    answers: list[TextMeasures | None] = []
    for names in named:
        listed = [math.log1p(counts[(name,)]) for name in names if counts[(name,)]]
        # A list does not count names together, and all of them are together at most as often as the rarest.
        scores = {Measure.SPAN: min(listed, default=0.0), Measure.PRIOR: math.fsum(listed)}
        answers.append(TextMeasures(scores, sum(len(name.split()) for name in names)) if listed else None)
    return answers
