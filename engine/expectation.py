"""How many questions, claims and texts a search is expected to bring where the journal knows nothing yet.

A step asks one question for each distinct key that its beams hold, rules that ask alike share their questions, and each
distribution keeps its share of one pool. What a question brings is what its kind brought so far in this knowledge base,
or, until then, what was measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod

from engine.inquiry import FUNCTIONAL_SAMPLES, Answer
from engine.report import SearchSettings
from grammar.dependencies import SearchStep
from grammar.terms import Comparison

OPEN, KEYED, FUNCTIONAL = "open", "keyed", "functional"
"""Kinds of question: without any value in it, with some, and with one right answer."""

PRIOR_QUESTIONS = 5
"""How many questions what was measured weighs against those that the journal knows."""

COMPARED: Mapping[str, float] = {"=": 0.1, "\\=": 0.95}
"""Share of beams that a comparison lets through; any other half."""

VERIFIED = 0.5
"""Share of beams that a literal lets through which the critic or rules decide afterwards."""


@dataclass(frozen=True, slots=True)
class Habit:
    """What an average question takes and brings: calls, values that can be read, values that are accepted."""

    calls: float
    proposed: float
    accepted: float


Habits = Mapping[str, Habit]
"""By kind of question."""

LARGE: Habits = {OPEN: Habit(4, 115, 109), KEYED: Habit(2.9, 7.5, 5.2), FUNCTIONAL: Habit(2, 1.3, 0.5)}
"""Measured on the shipped rules in the simulated world, which knows 120 things of each type."""

LIMITED: Habits = {OPEN: Habit(4, 35, 34), KEYED: Habit(3, 2.6, 2.3), FUNCTIONAL: Habit(2, 1.0, 0.95)}
"""Measured on the shipped rules with the embedded model; for models that say that they know little."""


@dataclass
class Experience:
    """Habits that give way to what the answers at hand took and brought."""

    habits: Habits
    settings: SearchSettings
    _seen: dict[str, list[Answer]] = field(default_factory=dict)

    def learn(self, kind: str, answers: Iterable[Answer]) -> None:
        """Take complete answers in."""
        self._seen.setdefault(kind, []).extend(one for one in answers if one.complete)

    def of(self, kind: str) -> Habit:
        """What a question of that kind is expected to take and bring, within what the settings allow."""
        seen, usual = self._seen.get(kind, []), self.habits[kind]
        calls = [one.calls for one in seen]
        proposed = [one.gates.get("parser", (0, 0))[0] for one in seen]
        accepted = [len(one.accepted) for one in seen]
        allowed = FUNCTIONAL_SAMPLES if kind == FUNCTIONAL else self.settings.calls_per_question
        room = allowed * self.settings.values_per_call
        return Habit(
            min(allowed, _mean(usual.calls, calls)),
            min(room, _mean(usual.proposed, proposed)),
            min(room, _mean(usual.accepted, accepted)),
        )


def _mean(usual: float, seen: list[int]) -> float:
    return (PRIOR_QUESTIONS * usual + sum(seen)) / (PRIOR_QUESTIONS + len(seen))


@dataclass
class Shared:
    """What the rules of a run ask in common, by what makes it alike: the most that one of them needs is asked once."""

    counts: dict[Hashable, float] = field(default_factory=dict)

    def more(self, key: Hashable, count: float) -> float:
        """How many of these nobody has asked before."""
        before = self.counts.get(key, 0.0)
        self.counts[key] = max(before, count)
        return max(0.0, count - before)


@dataclass
class Rows:
    """Beams that are expected beyond the known ones. `each`: in one distribution, `together`: in all of them.

    `distinct`: by variable the number of its different values. `after`: by variable the beams that its step left, which
    no combination of it with earlier ones can exceed.
    """

    settings: SearchSettings
    each: float = 0.0
    together: float = 0.0
    distinct: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)

    def distinct_of(self, step: SearchStep) -> float:
        """Different values of the step's variable."""
        return self.distinct.get(step.variable.name, 0.0)

    def keys(self, names: Iterable[str]) -> float:
        """Different combinations of these variables' values; at most one a beam."""
        wanted = set(names)
        bound = [name for name in self.distinct if name in wanted]
        newest = self.after.get(bound[-1], self.together) if bound else self.together
        return min(self.together, newest, prod(self.distinct[name] for name in bound))

    def begin(self, beams: int, distinct: Mapping[str, int]) -> None:
        """Known beams whose questions have no answer go on as expected ones."""
        self.each += beams
        self.together += beams
        for name, count in distinct.items():
            self.distinct[name] = self.distinct.get(name, 0.0) + count

    def extend(self, name: str, values: float, questions: float) -> None:
        """Each beam gets so many values; no more different ones than the questions bring."""
        self.each *= values
        self.together *= values
        self.distinct[name] = min(self.together, questions * values)
        self.after[name] = self.together

    def pass_through(self, share: float) -> None:
        """This share stays."""
        self.each *= share
        self.together *= share
        self._limit()

    def compare(self, step: SearchStep) -> None:
        """The comparisons that decide now."""
        for item in step.closes:
            if isinstance(item, Comparison) and step.assignment is None:
                self.pass_through(COMPARED.get(item.operator, 0.5))

    def rank(self, beam: int, ranked: bool) -> None:
        """Each distribution keeps its share, from its own end; unranked both keep the first ones."""
        if not self.together:
            return
        apart = len(self.settings.distributions) if ranked else max(1.0, self.together / self.each)
        self.each = min(beam, self.each * (self.settings.keep_share if ranked else 1.0))
        self.together = min(self.together, self.each * apart)
        self._limit()
        self.after[list(self.distinct)[-1]] = self.together

    def _limit(self) -> None:
        self.distinct = {name: min(count, self.together) for name, count in self.distinct.items()}
