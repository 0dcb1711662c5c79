"""The rules of a run with their most typical statements, and the story of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from engine.explain import Story, why_statement
from engine.query import Theory
from engine.stored import stored_rule
from evaluation.estimates import NOTHING, Estimate, difference_of_means
from evaluation.report.drawing import Graph, Histogram, graph, histogram
from evaluation.report.reading import proved
from evaluation.report.runs import RuleLine
from grammar.rules import Library, Rule
from grammar.verbalize import statement_text
from kb.records import Distribution, RuleRecord, StatementRecord, VoteRecord

ENDS = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "long tail"}

MOST_LINES = 300
"""Lines of one story that a page tells; `hapax why` tells all."""
MOST_DEPTH = 40
"""How deep a story's lists are nested; what lies deeper stands at this depth. Browsers end at 512 nested elements."""

_Key = tuple[bool, float, str]


@dataclass
class End:
    """One distribution of one rule: all scores, and its most typical statements, as `RuleReport.examples` ranks."""

    distribution: Distribution
    wanted: int
    ids: set[str] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)
    _best: list[tuple[_Key, StatementRecord]] = field(default_factory=list)

    def add(self, one: StatementRecord) -> None:
        self.ids.add(one.id)
        score = one.log_likelihood
        if score is not None:
            self.scores.append(score)
        sign = -1.0 if self.distribution is Distribution.HEAD else 1.0
        self._best.append(((score is None, sign * (score or 0.0), one.text), one))
        if len(self._best) > 2 * self.wanted + 100:
            self._cut()

    def typical(self, count: int) -> list[StatementRecord]:
        self._cut()
        return [one for _, one in self._best][:count]

    def _cut(self) -> None:
        self._best = sorted(self._best, key=lambda pair: pair[0])[: self.wanted]


@dataclass
class RuleTally:
    """Both ends of one rule."""

    wanted: int
    ends: dict[Distribution, End] = field(init=False)

    def __post_init__(self) -> None:
        self.ends = {each: End(each, self.wanted) for each in Distribution}

    def count(self, distribution: Distribution) -> int:
        return len(self.ends[distribution].ids)

    @property
    def ids(self) -> set[str]:
        return set.union(*(end.ids for end in self.ends.values()))

    @property
    def in_both(self) -> int:
        return len(set.intersection(*(end.ids for end in self.ends.values())))

    @property
    def delta(self) -> Estimate:
        """How much likelier the head is, in nats a token (paper, section 3.2), with its interval."""
        head, long_tail = ([score for score in end.scores if math.isfinite(score)] for end in self.ends.values())
        return difference_of_means(head, long_tail) if head and long_tail else NOTHING


def tally_rules(statements: Iterable[StatementRecord], wanted: int) -> dict[str, RuleTally]:
    """The statements of a run by rule, in one pass."""
    found: dict[str, RuleTally] = {}
    for one in statements:
        found.setdefault(one.rule, RuleTally(wanted)).ends[one.distribution].add(one)
    return found


def score_histogram(tallies: Sequence[RuleTally]) -> Histogram | None:
    """Head beside long tail over all these rules."""
    scores = {each.value: [one for tally in tallies for one in tally.ends[each].scores] for each in Distribution}
    return histogram(scores, {each.value: name for each, name in ENDS.items()})


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a story. `opens`: the next line is its first child; `closes`: how many lists end behind it."""

    text: str
    kind: str
    opens: bool
    unfolded: bool
    closes: int


def nested(story: Story) -> list[Line]:
    """A story as lines that open and close lists, without recursion: a proof may be deeper than Python's stack."""
    told = [(min(depth, MOST_DEPTH), part) for _, (depth, part) in zip(range(MOST_LINES), story.lines(), strict=False)]
    following = [*(depth for depth, _ in told[1:]), 0]
    return [
        Line(part.text, part.kind, after > depth, _by_rule(part), max(0, depth - after))
        for (depth, part), after in zip(told, following, strict=True)
    ]


def _by_rule(part: Story) -> bool:
    """Whether the line is a conclusion, whose premises are shown at once."""
    return any(child.kind == "goal" for child in part.children)


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement with its story; `more`: lines that are not told. `votes`: what people said of it."""

    record: StatementRecord
    lines: tuple[Line, ...]
    more: int
    votes: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class ShownEnd:
    """A distribution of a rule as the page shows it."""

    name: str
    kind: str
    count: int
    mean: float | None
    statements: tuple[ShownStatement, ...]

    @property
    def more(self) -> int:
        return self.count - len(self.statements)


@dataclass(frozen=True, slots=True)
class RuleSection:
    """One rule of the run. `text` and what follows from it are None where the knowledge base holds no such rule."""

    name: str
    record: RuleRecord | None
    sentence: str
    graph: Graph | None
    line: RuleLine
    state: str
    in_both: int
    delta: Estimate
    histogram: Histogram | None
    ends: tuple[ShownEnd, ...]


@dataclass(frozen=True)
class Teller:
    """Makes sections. `spoken`: a theory in the words of its knowledge base; `shown`: statements per rule and end."""

    spoken: Theory
    records: Mapping[str, RuleRecord]
    votes: Mapping[str, Sequence[VoteRecord]]
    shown: int

    def section(self, name: str, tally: RuleTally, line: RuleLine, state: str) -> RuleSection:
        rule = stored_rule(self.spoken.kb, name, self.spoken.library)
        return RuleSection(
            name,
            self.records.get(name),
            _sentence(rule, self.spoken.library) if rule else "",
            graph(rule, self.spoken.library) if rule else None,
            line,
            state,
            tally.in_both,
            tally.delta,
            score_histogram([tally]),
            tuple(self._end(end) for end in tally.ends.values()),
        )

    def _end(self, end: End) -> ShownEnd:
        finite = [score for score in end.scores if math.isfinite(score)]
        mean = math.fsum(finite) / len(finite) if finite else None
        statements = tuple(self._shown(proved(self.spoken.kb, end.typical(self.shown))))
        return ShownEnd(ENDS[end.distribution], end.distribution.value, len(end.ids), mean, statements)

    def _shown(self, statements: Iterable[StatementRecord]) -> Iterator[ShownStatement]:
        for one in statements:
            story = why_statement(self.spoken, one)
            lines = tuple(nested(story))
            more = sum(1 for _ in story.lines()) - len(lines)
            yield ShownStatement(one, lines, more, vote_counts(self.votes.get(one.id, ())))


def vote_counts(votes: Iterable[VoteRecord]) -> tuple[tuple[str, str, int], ...]:
    """Question, answer, and how often it was given."""
    counts = Counter((one.question, one.answer) for one in votes)
    return tuple((question, answer, count) for (question, answer), count in sorted(counts.items()))


def _sentence(rule: Rule, library: Library) -> str:
    """The statements of the rule with slots for their values."""
    return statement_text(rule, library).sentence
