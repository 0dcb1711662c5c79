"""Expected numbers of questions, claims and texts of a search, where the journal has no answers yet.

A step asks one question for each distinct key of its beams. Rules with the same questions share them, and each
distribution keeps its share of one pool. The expected yield of a question is that of its kind in this knowledge
base so far, and at first a measured default.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from hapax.engine.search.gates import PARSER, GateCount
from hapax.engine.search.inquiry import QuestionAnswer
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.dependencies import SearchStep
from hapax.grammar.rules import Library, type_key
from hapax.grammar.terms import Comparison

OPEN, KEYED, FUNCTIONAL = "open", "keyed", "functional"
"""Kinds of question: without a value in it, with at least one, and with one right answer."""

PRIOR_QUESTIONS = 5
"""Weight of the measured habits, as a number of questions in the journal."""

COMPARED: Mapping[str, float] = {"=": 0.1, "\\=": 0.95}
"""Share of beams that pass a comparison; half for any other operator."""

VERIFIED = 0.5
"""Share of beams that pass a literal decided by the critic or by rules."""


@dataclass(frozen=True, slots=True)
class Habit:
    """An average question: number of calls, of values that can be read, and of accepted values."""

    calls: float
    proposed: float
    accepted: float

    def times(self, size: float, values_per_call: int) -> Habit:
        """The habit of a question with `size` times as many values: one more call per further full reply."""
        more = max(0.0, (size - 1) * self.proposed / values_per_call)
        return Habit(self.calls + more, self.proposed * size, self.accepted * size)


def type_size(library: Library, data_type: str) -> int:
    """Number of types without subtypes that a type consists of: it has as many times the values of one of them."""
    parts = {type_key(lower) for lower, _ in library.subtypes if library.is_declared_subtype(lower, data_type)}
    divided = {type_key(upper) for _, upper in library.subtypes}
    return max(1, len(parts - divided))


Habits = Mapping[str, Habit]
"""By kind of question."""

LARGE: Habits = {OPEN: Habit(4, 115, 109), KEYED: Habit(2.9, 9.0, 5.2), FUNCTIONAL: Habit(2, 1.3, 0.5)}
"""Measured on the development rules of `benchmarks.forecast` in a simulated world, which knows 120 things of a type."""

LIMITED: Habits = {OPEN: Habit(4, 35, 34), KEYED: Habit(3, 2.6, 2.3), FUNCTIONAL: Habit(2, 1.0, 0.95)}
"""Measured on the shipped rules with the embedded model; for models that state the predicates they know."""


@dataclass
class Experience:
    """Habits, corrected by the answers in the journal."""

    habits: Habits
    settings: SearchSettings
    _seen: dict[str, list[Habit]] = field(default_factory=dict)

    def learn(self, kind: str, answers: Iterable[QuestionAnswer], size: float = 1.0) -> None:
        """Add answers of a kind of question; incomplete ones are ignored. `size`: as in `of`."""
        seen = self._seen.setdefault(kind, [])
        for answer in answers:
            if answer.complete:
                proposed = answer.gates.get(PARSER.name, GateCount()).accepted
                seen.append(Habit(answer.calls, proposed / size, len(answer.accepted) / size))

    def of(self, kind: str, size: float = 1.0) -> Habit:
        """The expected habit of a kind of question, within the settings' limits.

        `size`: number of values of the question, where that of a question of this kind is 1. A predicate has a typical
        number of last arguments; other arguments have as many more as their type is larger, and an open question has as
        many as its type.
        """
        seen, usual = self._seen.get(kind, []), self.habits[kind]
        mean = Habit(
            _mean(usual.calls, [habit.calls for habit in seen]),
            _mean(usual.proposed, [habit.proposed for habit in seen]),
            _mean(usual.accepted, [habit.accepted for habit in seen]),
        )
        calls = self.settings.calls_per_question
        allowed = self.settings.oracle.samples if kind == FUNCTIONAL else calls
        room = allowed * self.settings.values_per_call
        sized = mean.times(size, self.settings.values_per_call)
        return Habit(min(allowed, sized.calls), min(room, sized.proposed), min(room, sized.accepted))

    def pool(self, size: float) -> float:
        """Expected number of different values of a type of this size, over all questions."""
        return size * self.of(OPEN).proposed


def _mean(usual: float, seen: list[float]) -> float:
    return (PRIOR_QUESTIONS * usual + sum(seen)) / (PRIOR_QUESTIONS + len(seen))


@dataclass
class SharedQuestions:
    """Questions that the rules of a run share, by a key that equal questions have.

    Of the rules with the same key, the one with the most questions asks those of the others too.
    """

    counts: dict[Hashable, float] = field(default_factory=dict)

    def more(self, key: Hashable, count: float) -> float:
        """Number of these questions that no earlier rule has asked."""
        before = self.counts.get(key, 0.0)
        self.counts[key] = max(before, count)
        return max(0.0, count - before)


@dataclass
class ExpectedBeams:
    """Expected number of beams beside the known ones.

    `each_distribution`: in one distribution; `together`: in all. `distinct`: number of different values by variable.
    `after`: by variable, the number of beams after its step, which is the most combinations of it with earlier ones.
    """

    settings: SearchSettings
    each_distribution: float = 0.0
    together: float = 0.0
    distinct: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)

    def distinct_of(self, step: SearchStep) -> float:
        """Expected number of different values of the step's variable."""
        return self.distinct.get(step.variable.name, 0.0)

    def keys(self, names: Iterable[str]) -> float:
        """Expected number of different combinations of these variables' values, at most one per beam."""
        wanted = set(names)
        bound = [name for name in self.distinct if name in wanted]
        # The newest of these variables was bound last, so its step limits the combinations.
        newest = self.after.get(bound[-1], self.together) if bound else self.together
        return min(self.together, newest, prod(self.distinct[name] for name in bound))

    def begin(self, beams: int, distinct: Mapping[str, int]) -> None:
        """Add known beams whose questions have no answer yet."""
        self.each_distribution += beams
        self.together += beams
        for name, count in distinct.items():
            self.distinct[name] = self.distinct.get(name, 0.0) + count

    def extend(self, name: str, values: float, questions: float) -> None:
        """Replace each beam by `values` beams; the questions limit the number of different values."""
        self.each_distribution *= values
        self.together *= values
        # A question gives different values; several beams may ask the same question.
        self.distinct[name] = min(self.together, questions * values)
        self.after[name] = self.together

    def pass_through(self, share: float) -> None:
        """Keep this share of the beams."""
        self.each_distribution *= share
        self.together *= share
        self._limit()

    def compare(self, step: SearchStep) -> None:
        """Keep the beams that are expected to pass the step's comparisons."""
        for item in step.closes:
            # An assignment makes its comparison true.
            if isinstance(item, Comparison) and step.assignment is None:
                self.pass_through(COMPARED.get(item.operator, 0.5))

    def rank(self, beam: int, ranked: bool, divides: bool = False) -> None:
        """Keep each distribution's share of the beams. `divides`: this step cuts the disjoint ends."""
        if not self.together:
            return
        if self.settings.has_disjoint_ends and ranked:
            self._divide(beam) if divides else self._narrow(2 * beam)
            return
        # Ranked, the distributions keep different ends of the pool; unranked, they keep the same first beams.
        apart = len(self.settings.distributions) if ranked else max(1.0, self.together / self.each_distribution)
        before = self.together
        width = 2 * beam if self.settings.has_disjoint_ends else beam
        self.each_distribution = min(width, self.each_distribution * (self.settings.share if ranked else 1.0))
        self.together = min(self.together, self.each_distribution * apart)
        if not ranked and self.together < before:
            # The first beams are kept: all new values of the first beams before, and of these only their share.
            newest = list(self.distinct)[-1]
            share = self.together / before
            self.distinct = {
                name: count if name == newest else max(min(count, apart), count * share)
                for name, count in self.distinct.items()
            }
        self._limit()
        self.after[list(self.distinct)[-1]] = self.together

    def _divide(self, beam: int) -> None:
        before = self.together
        self.each_distribution = min(beam, self.together * self.settings.share)
        self.together = self.each_distribution * len(self.settings.distributions)
        self._spread(before)
        self.after[list(self.distinct)[-1]] = self.together

    def _narrow(self, pool: int) -> None:
        """Keep both sides of a common pool."""
        before = self.together
        self.together = self.each_distribution = min(pool, self.together)
        self._spread(before)
        self.after[list(self.distinct)[-1]] = self.together

    def _spread(self, before: float) -> None:
        """Limit the numbers of values to those in the beams that are kept of `before`, wherever these lie."""
        lost = 1 - self.together / before
        # A value goes with the last of its beams.
        self.distinct = {name: count * (1 - lost ** (before / count)) for name, count in self.distinct.items() if count}

    def _limit(self) -> None:
        self.distinct = {name: min(count, self.together) for name, count in self.distinct.items()}
