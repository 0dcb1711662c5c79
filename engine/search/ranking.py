"""The likelihood gate: the texts by which beams are ranked, and which of them a step keeps (LINK, section 2.3).

The two ends of a rule's statements are disjoint, with nothing of the middle, and not filled by one value. Under LINK's
ways each step keeps 75 % at each end.
"""

from __future__ import annotations

import hashlib
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from hapax.engine.gates.decidable import Origin, origin_of
from hapax.engine.gates.inquiry import PERSON
from hapax.engine.gates.released import released_literals
from hapax.engine.inference.derive import relevant_library
from hapax.grammar.parsing.declarations import ASKED_KINDS, StatementCap
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Literal, Value, Variable, variable_names
from hapax.grammar.writing.verbalize import literal_text
from hapax.kb.records import Distribution
from hapax.llm_oracle.critics.measures import Measure, RankedText, TextMeasures
from hapax.llm_oracle.questions.prompts import sentence, type_claim


@dataclass(frozen=True, slots=True)
class Beam:
    """A partial substitution: values of the plan's first variables, in order, and the distributions that keep it.

    `facts`, `types`: P(yes) of the claims about the values and about their types, as far as there are any, for the
    confidence that LINK's released code accumulates.
    """

    values: tuple[Value, ...] = ()
    distributions: tuple[Distribution, ...] = ()
    facts: tuple[float, ...] = ()
    types: tuple[float, ...] = ()

    def extended(self, value: Value, fact: float | None = None, type_score: float | None = None) -> Beam:
        """The beam with one more value and its scores."""
        facts = self.facts if fact is None else (*self.facts, fact)
        types = self.types if type_score is None else (*self.types, type_score)
        return Beam((*self.values, value), self.distributions, facts, types)


# --- disjoint ends ----------------------------------------------------------------------------------------------------

END_SHARE = 1 / 3
"""Share of a rule's statements at each end; the rest is the middle."""

VALUE_SHARE = 1 / 4
"""Largest share of an end whose statements may have the same value of a variable, unless there are few values."""

SMALL_POOL = 6
"""A pool with fewer statements has fewer than two at each end."""

Values = tuple[object, ...]
"""The values of a statement, by the order of its rule's variables."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Statements of one rule by end, the most extreme first. Whatever is at neither end is in the middle.

    `crowded`: those that an end leaves out because it has enough statements with one of their values. `pool`: number of
    statements from which the ends are cut.
    """

    head: tuple[str, ...]
    long_tail: tuple[str, ...]
    crowded: tuple[str, ...] = ()
    pool: int = 0

    def of(self, distribution: Distribution) -> tuple[str, ...]:
        """The statements of one end."""
        return self.head if distribution is Distribution.HEAD else self.long_tail


@dataclass(frozen=True, slots=True)
class EndSize:
    """Share of a pool at each end, and the most statements.

    `splits_ties`: chance orders statements with equal scores; otherwise tied ones are at no end. `by_pairs`: the scores
    are those of `pair`, so that the pool is the half with the commoner names.
    """

    share: float = END_SHARE
    most: int | None = None
    splits_ties: bool = False
    by_pairs: bool = False

    def of(self, count: int) -> int:
        """Statements at each end of a pool, before crowded ones leave."""
        # 0.29 * 100 is a little less than 29: without the epsilon a statement would be lost.
        third = max(1, math.floor(count * self.share + 1e-9))
        return min(count // 2, third, count if self.most is None else self.most)


def ends(
    scores: Mapping[str, float],
    values: Mapping[str, Values],
    chance: Callable[[str], float],
    size: EndSize | None = None,
) -> Ends:
    """Split the statements of a rule by their scores; higher is likelier.

    `chance` gives a statement's number in [0, 1), by which equal scores are ordered. Unless ties are split, statements
    that share the score at which one end stops with the other end are in neither.
    """
    wanted = size or EndSize()
    order = sorted(scores, key=lambda text: (scores[text], chance(text)))
    # At most half of the pool, so that the ends never share a statement.
    count = wanted.of(len(order))
    tail, head = order[:count], order[::-1][:count]
    if count and not wanted.splits_ties and scores[tail[-1]] == scores[head[-1]]:
        # The tie spans the middle: which of its statements falls to which end would be chance.
        limit = scores[tail[-1]]
        tail = [text for text in tail if scores[text] != limit]
        head = [text for text in head if scores[text] != limit]
    # For each variable the number of its different values in the pool.
    columns = zip(*(values[text] for text in order), strict=True)
    distinct = [len(set(column)) for column in columns]
    chosen_head, chosen_tail = _SpreadStatements(values, head, distinct), _SpreadStatements(values, tail, distinct)
    crowded = (*chosen_head.crowded, *chosen_tail.crowded)
    return Ends(tuple(chosen_head.texts), tuple(chosen_tail.texts), crowded, len(order))


def pair_pool(measures: Mapping[str, TextMeasures]) -> list[str]:
    """The half of a pool whose names are the commoner: among them `pair` tells rare combinations, not rare names.

    All statements, if the names' rarity is unknown.
    """
    priors = {
        text: measure.scores[Measure.PRIOR] for text, measure in measures.items() if Measure.PRIOR in measure.scores
    }
    if len(priors) < len(measures) or not priors:
        return list(measures)
    middle = statistics.median(priors.values())
    return [text for text in measures if priors[text] >= middle]


@dataclass
class _SpreadStatements:
    """The statements of one end, without those whose values it has often enough already.

    `distinct`: number of values of each variable in the whole pool.
    """

    values: Mapping[str, Values]
    ordered: Sequence[str]
    distinct: Sequence[int]
    texts: list[str] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        most = [self._most(count) for count in self.distinct]
        seen: list[Counter[object]] = [Counter() for _ in most]
        for text in self.ordered:
            row = self.values[text]
            if any(counts[value] >= limit for counts, value, limit in zip(seen, row, most, strict=True)):
                self.crowded.append(text)
                continue
            self.texts.append(text)
            for counts, value in zip(seen, row, strict=True):
                counts[value] += 1

    def _most(self, distinct: int) -> int:
        """Most statements with one of `distinct` values: the share, or twice the even share where values are few."""
        return math.ceil(len(self.ordered) * min(1.0, max(VALUE_SHARE, 2 / distinct)))


def divided(
    scores: Mapping[str, float],
    values: Mapping[str, Values],
    measures: Mapping[str, TextMeasures],
    chance: Callable[[str], float],
    size: EndSize,
) -> Ends:
    """The ends of a rule's statements by their scores. A single statement is long tail.

    `measures`: all that the ranker says of them.
    """
    if len(scores) == 1:
        return Ends((), tuple(scores), pool=1)
    # A pair of rare names is rare because of the names, which says nothing about the pair.
    pool = pair_pool(measures) if size.by_pairs and measures else list(scores)
    return ends({text: scores[text] for text in pool}, values, chance, size)


SIDES = {Distribution.HEAD: "likeliest", Distribution.LONG_TAIL: "least likely"}


class Side(NamedTuple):
    """One side of ranked beams: their scores, and those that it keeps, the last one at its limit."""

    end: Distribution
    scores: Mapping[Beam, float]
    chosen: Sequence[Beam]

    @property
    def limit(self) -> float | None:
        return self.scores[self.chosen[-1]] if self.chosen else None

    def __str__(self) -> str:
        return f"among the {len(self.chosen)} {SIDES[self.end]} of {len(self.scores)}"


def both_sides(scores: Mapping[Beam, float], chance: Callable[[Beam], float], width: int) -> list[Side]:
    """The likeliest and the least likely beams of a wide pool, from which both ends can still be cut."""
    order = sorted(scores, key=lambda beam: (-scores[beam], -chance(beam)))
    likeliest = Side(Distribution.HEAD, scores, order[:width])
    return [likeliest, Side(Distribution.LONG_TAIL, scores, order[: -width - 1 : -1])]


# --- LINK's ends ------------------------------------------------------------------------------------------------------

KEEP_SHARE = 0.75

PENALTY_WEIGHT = 3.0
"""Cost of ROUGE-L between the values of a beam of the head distribution, in nats per token (LINK's released code)."""

CACHED_COMPARISONS = 50_000
"""Size of the caches of split values and compared pairs: enough for a few rules, not for a whole run."""

Row = tuple[Value, ...]

_WORD = re.compile(r"[a-z0-9]+")


CLAIMS = "\n"
"""Separator of claims about single values in a ranked text; no sentence contains it."""


def keep_count(count: int, share: float, beam: int) -> int:
    """Number of beams that a step keeps of `count`: the share, rounded up, and at most `beam`."""
    # 0.07 * 100 is 7.000000000000001, which must not be rounded up to 8.
    return min(beam, math.ceil(round(share * count, 9)))


def kept(
    scores: Sequence[float], ties: Sequence[object], distribution: Distribution, share: float, beam: int
) -> list[int]:
    """Positions of the kept beams, best first: the least likely for the long tail, the likeliest for the head.

    `ties` decide between equal scores, so that the result depends on the set of beams and not on their order.
    """
    # Sorted in ascending order: the head's scores are negated, so that ties are decided alike at both ends.
    sign = -1.0 if distribution is Distribution.HEAD else 1.0
    order = sorted(range(len(scores)), key=lambda position: (sign * scores[position], repr(ties[position])))
    return order[: keep_count(len(scores), share, beam)]


def within_cap(cap: StatementCap, names: Sequence[str], rows: Sequence[Row], order: Sequence[Row]) -> list[Row]:
    """The substitutions of `names` that a rule's `@most` keeps at one end, the best first, as `order` has them."""
    places = [names.index(name) for name in cap.variables if name in names]
    ranks = {values: rank for rank, values in enumerate(order)}
    uses: Counter[tuple[int, Value]] = Counter()
    chosen = []
    # A last step that does not rank leaves the beams in the order in which they came.
    for values in sorted(rows, key=lambda values: ranks.get(values, len(ranks))):
        keys = [(place, values[place]) for place in places]
        if all(uses[key] < cap.count for key in keys):
            uses.update(keys)
            chosen.append(values)
    return chosen


def equal_texts(scores: Mapping[Any, float]) -> int:
    """Number of texts whose score another text has, too."""
    counts = Counter(scores.values())
    return sum(count for count in counts.values() if count > 1)


def released_penalty(value: Value, earlier: Sequence[Value]) -> float:
    """The penalty for the head: 3 x ROUGE-L between the new value and each value before it in the beam.

    LINK's released code takes the mean over the earlier values, with `PersonX` among them.
    """
    likeness = (_rouge_l(str(value), str(before)) for before in (PERSON, *earlier))
    return PENALTY_WEIGHT * math.fsum(likeness) / (len(earlier) + 1)


def random_score(seed: int, *parts: object) -> float:
    """A number in [0, 1) that depends on its arguments alone: the random ranker of the paper's ablation."""
    digest = hashlib.sha256(repr((seed, *parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / (1 << 56)  # 56 bits; a float holds 53 of them


@lru_cache(CACHED_COMPARISONS)
def _words(text: str) -> tuple[str, ...]:
    """The text's words as the tokenizer of the rouge_score package splits them."""
    return tuple(_WORD.findall(text.lower()))


@lru_cache(CACHED_COMPARISONS)
def _rouge_l(left: str, right: str) -> float:
    """ROUGE-L (F measure): twice the longest common subsequence of words over the number of words."""
    from rapidfuzz.distance import Indel

    left_words, right_words = _words(left), _words(right)
    # Indel similarity is this very quotient; for two empty sequences it is 1, where ROUGE has 0.
    return Indel.normalized_similarity(left_words, right_words) if left_words and right_words else 0.0


# --- the texts that are ranked ----------------------------------------------------------------------------------------


def ranked_literals(rule: Rule, library: Library, names: Collection[str], compat: str | None) -> list[Literal]:
    """The literals by which a rule's beams are ranked once the named variables have values, in the plan's order.

    LINK (section 2.3) ranks every literal that has its values, the conclusion last. Hapax leaves out those about
    PersonX: such a sentence adds the same to all values, and a model that never read one adds noise.
    """
    if compat == "released":
        return released_literals(rule, names)

    def is_ranked(literal: Literal) -> bool:
        is_asked = library.signature(literal.atom.indicator).kind in ASKED_KINDS
        return is_asked and not literal.negated and not rule.is_information(literal)

    literals = [*rule.literals, rule.conclusion] if compat else filter(is_ranked, rule.literals)
    known = {*names, *rule.generic}
    return [literal for literal in literals if variable_names([literal]) <= known]


class TextWriter:
    """Writes the texts by which substitutions of the named variables are ranked: the ranked literals joined by "and".

    Until a literal has all its values, a value is ranked by its type: `Saffron is an ingredient.`. `names`: in the
    plan's order, the newest last. `written`: the words of literals so far, which many substitutions share.
    """

    def __init__(
        self,
        rule: Rule,
        library: Library,
        names: Sequence[str],
        compat: str | None,
        written: dict[tuple[Literal, Row], str] | None = None,
    ) -> None:
        self._rule, self._library, self._names = rule, library, names
        self._is_released = compat == "released"
        self._written = {} if written is None else written
        literals = ranked_literals(rule, library, names, compat)
        self._places = {literal: _places(literal, names) for literal in literals}
        by_name = {variable.name: variable for variable in rule.variables}
        variables = [by_name[name] for name in names]
        claimed = [] if literals else claimed_places(rule, variables, library, compat)
        self._claimed = [(place, variables[place].data_type) for place in claimed]

    def text(self, values: Row) -> str:
        """The text of a substitution."""
        if not self._places:
            return CLAIMS.join(type_claim(str(values[place]), data_type) for place, data_type in self._claimed)
        text = " and ".join(self._words(literal, places, values) for literal, places in self._places.items())
        return text if self._is_released else sentence(text)

    def _words(self, literal: Literal, places: Sequence[int], values: Row) -> str:
        key = literal, tuple(values[place] for place in places)
        if key not in self._written:
            bound = {self._names[place]: Constant(values[place]) for place in places}
            if self._is_released:
                bound |= dict.fromkeys(self._rule.generic, Constant(PERSON))
            self._written[key] = literal_text(literal, self._library, bound, self._rule.generic)
        return self._written[key]


def _places(literal: Literal, names: Sequence[str]) -> list[int]:
    return [names.index(variable.name) for variable in literal.variables if variable.name in names]


def ranked_text(rule: Rule, library: Library, bound: Mapping[str, Constant], compat: str | None) -> str:
    """The text by which a substitution is ranked. `bound` has the plan's order, the newest value last."""
    return TextWriter(rule, library, list(bound), compat).text(tuple(constant.value for constant in bound.values()))


def claimed_places(rule: Rule, variables: Sequence[Variable], library: Library, compat: str | None) -> list[int]:
    """Places of the variables whose types decide how a beam is ranked: the newest one.

    Where no premise needs a model, ranking waits until all given values are joined, so that all texts count.
    """
    newest = [len(variables) - 1]
    if compat or len(variables) == 1:
        return newest
    literals = [literal for literal in rule.literals if not rule.is_information(literal)]
    for definition in relevant_library(library, goals=[literal.atom.indicator for literal in literals]).rules:
        literals += definition.literals
    if any(origin_of(literal, library) is Origin.MODEL for literal in literals):
        return newest
    return [place for place, variable in enumerate(variables) if not library.is_numeric(variable.data_type)] or newest


def ranked_parts(text: str) -> list[str]:
    """The sentences of a ranked text that a model scores apart, so that each value's claim is scored once."""
    return text.split(CLAIMS)


def measured_parts(texts: Iterable[tuple[str, Row]]) -> dict[str, RankedText]:
    """By part of ranked texts that is measured apart, the part with the values that it may mention."""
    ranked: dict[str, RankedText] = {}
    for text, values in texts:
        for part in ranked_parts(text):
            if part not in ranked:
                ranked[part] = RankedText(part, tuple(map(str, values)))
    return ranked


def joined_measures(texts: Iterable[str], measures: Mapping[str, TextMeasures]) -> dict[str, TextMeasures]:
    """Measures of ranked texts by those of their parts: the mean of each. A text with an unmeasured part has none."""
    joined: dict[str, TextMeasures] = {}
    for text in texts:
        parts = [measures[part] for part in ranked_parts(text) if part in measures]
        if len(parts) == len(ranked_parts(text)):
            common = set.intersection(*(set(part.scores) for part in parts))
            means = {}
            for measure in common:
                means[measure] = sum(part.scores[measure] for part in parts) / len(parts)
            joined[text] = TextMeasures(means, sum(part.name_tokens for part in parts))
    return joined


def mean_of_parts(text: str, scores: Mapping[str, float]) -> float | None:
    """The score of a ranked text: the mean of those of its parts; None if one of them has none."""
    parts = [scores.get(part) for part in ranked_parts(text)]
    known = [score for score in parts if score is not None]
    return sum(known) / len(known) if len(known) == len(parts) else None
