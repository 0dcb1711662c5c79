"""Sections about the rules of a run, with their most typical statements and the story of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hapax.engine.explain import why_statement
from hapax.engine.inference.theory import Theory
from hapax.engine.judgements import Judgements
from hapax.engine.run_memory import stored_rule
from hapax.engine.stories import Story
from hapax.evaluation.report.drawing import Graph, Histogram, graph, histogram
from hapax.evaluation.report.reading import proved
from hapax.evaluation.report.runs import RuleSummary
from hapax.evaluation.shared.domains import DISTRIBUTION_NAMES
from hapax.evaluation.shared.estimates import NOTHING, Estimate, difference_of_means
from hapax.evaluation.shared.judged import judgement_text
from hapax.grammar.verbalize import statement_text
from hapax.kb.records import Distribution, RuleRecord, StatementRecord, VoteRecord

MOST_LINES = 300
"""Lines of one story on a page; `hapax why` prints all."""
MOST_DEPTH = 40
"""Deepest nesting of a story's lists; deeper lines are shown at this depth. Browsers stop at 512 nested elements."""

_Key = tuple[bool, float, str]


@dataclass
class DistributionTally:
    """One distribution of one rule: all its scores, and its most typical statements in the order of a search's report.

    Head statements are typical if they are likely, long-tail statements if they are unlikely; those without a score
    come last.
    """

    distribution: Distribution
    most: int
    ids: set[str] = field(default_factory=set)
    scores: list[float] = field(default_factory=list)
    _best: list[tuple[_Key, StatementRecord]] = field(default_factory=list)

    def add(self, statement: StatementRecord) -> None:
        self.ids.add(statement.id)
        score = statement.log_likelihood
        if score is not None:
            self.scores.append(score)
        sign = -1.0 if self.distribution is Distribution.HEAD else 1.0
        # The text breaks ties, so that the page does not depend on the order of rows.
        # Ascending: statements with a score first, then by typicality.
        self._best.append(((score is None, sign * (score or 0.0), statement.text), statement))
        # A run may have millions of statements, so the list is cut now and then, not only at the end.
        if len(self._best) > 2 * self.most + 100:
            self._cut()

    def typical(self, count: int) -> list[StatementRecord]:
        """The most typical statements, at most `most`."""
        self._cut()
        return [statement for _, statement in self._best[:count]]

    def _cut(self) -> None:
        self._best = sorted(self._best, key=lambda pair: pair[0])[: self.most]


@dataclass
class RuleTally:
    """Both distributions of one rule."""

    most: int
    distributions: dict[Distribution, DistributionTally] = field(init=False)

    def __post_init__(self) -> None:
        self.distributions = {distribution: DistributionTally(distribution, self.most) for distribution in Distribution}

    def count(self, distribution: Distribution) -> int:
        """Number of different statements."""
        return len(self.distributions[distribution].ids)

    @property
    def ids(self) -> set[str]:
        return set.union(*(tally.ids for tally in self.distributions.values()))

    @property
    def in_both(self) -> int:
        return len(set.intersection(*(tally.ids for tally in self.distributions.values())))

    @property
    def delta(self) -> Estimate:
        """Mean score of head less that of long-tail statements, in nats per token (paper, section 3.2)."""
        # An evaluator may give a sentence the probability 0, whose logarithm would swallow all others.
        head, long_tail = (list(filter(math.isfinite, tally.scores)) for tally in self.distributions.values())
        return difference_of_means(head, long_tail) if head and long_tail else NOTHING


def tally_rules(statements: Iterable[StatementRecord], most: int) -> dict[str, RuleTally]:
    """Tally the statements of a run by rule, in one pass."""
    tallies: dict[str, RuleTally] = {}
    for statement in statements:
        tally = tallies.setdefault(statement.rule, RuleTally(most))
        tally.distributions[statement.distribution].add(statement)
    return tallies


def score_histogram(tallies: Sequence[RuleTally]) -> Histogram | None:
    """Histogram of the scores of head and long tail, over all these rules together."""
    scores: dict[str, list[float]] = {distribution.value: [] for distribution in Distribution}
    for tally in tallies:
        for distribution in Distribution:
            scores[distribution.value] += tally.distributions[distribution].scores
    return histogram(scores, {distribution.value: name for distribution, name in DISTRIBUTION_NAMES.items()})


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One line of a story. `opens`: the next line is its first child; `closes`: number of lists that end after it."""

    text: str
    kind: str
    opens: bool
    unfolded: bool
    closes: int


def nested(story: Story) -> tuple[list[StoryLine], int]:
    """The first lines of a story, which open and close lists, and the number of the others.

    Without recursion, because a proof may be deeper than Python's stack.
    """
    # Lazily: only the first lines of a long proof are put into words.
    lines = [(min(depth, MOST_DEPTH), part) for depth, part in islice(story.lines(), MOST_LINES)]
    # After the last line all lists end.
    next_depths = [*(depth for depth, _ in lines[1:]), 0]
    nested_lines = []
    for (depth, part), next_depth in zip(lines, next_depths, strict=True):
        # A conclusion shows its premises at once; whatever is behind a fact stays folded.
        unfolded = any(child.kind == "goal" for child in part.children)
        nested_lines.append(StoryLine(part.text, part.kind, next_depth > depth, unfolded, max(0, depth - next_depth)))
    # Counted without keeping them: a proof may have millions of lines.
    return nested_lines, sum(1 for _ in story.lines()) - len(nested_lines)


@dataclass(frozen=True, slots=True)
class ShownStatement:
    """A statement with its story and votes. `lines`: the first of its story; `more`: number of the others."""

    record: StatementRecord
    story: Story
    lines: list[StoryLine]
    more: int
    votes: tuple[tuple[str, str, int], ...]
    judgement: str

    @classmethod
    def of(
        cls, theory: Theory, statement: StatementRecord, votes: Iterable[VoteRecord], judged: Judgements
    ) -> ShownStatement:
        """A statement as pages show it. `votes`: those on its text."""
        story = why_statement(theory, statement)
        return cls(statement, story, *nested(story), vote_counts(votes), judgement_text(judged.of(statement.id)))


@dataclass(frozen=True, slots=True)
class ShownDistribution:
    """A distribution of a rule with some of its statements."""

    name: str
    kind: str
    count: int
    mean: float | None
    statements: tuple[ShownStatement, ...]

    @property
    def more(self) -> int:
        """Number of statements left out."""
        return self.count - len(self.statements)


@dataclass(frozen=True, slots=True)
class RuleSection:
    """One rule of the run. `record` and `graph` are None if the knowledge base holds no rule of this name."""

    name: str
    record: RuleRecord | None
    sentence: str
    """The rule's statements with slots for their values."""
    graph: Graph | None
    line: RuleSummary
    state: str
    in_both: int
    delta: Estimate
    histogram: Histogram | None
    distributions: tuple[ShownDistribution, ...]


@dataclass(frozen=True)
class SectionBuilder:
    """Makes sections about rules, with at most `most` statements per distribution."""

    theory: Theory
    records: Mapping[str, RuleRecord]
    votes: Mapping[str, Sequence[VoteRecord]]
    judged: Judgements
    most: int

    def section(self, name: str, tally: RuleTally, line: RuleSummary, state: str) -> RuleSection:
        library = self.theory.library
        rule = stored_rule(self.theory.kb, name, library)
        return RuleSection(
            name,
            self.records.get(name),
            statement_text(rule, library).sentence if rule else "",
            graph(rule, library) if rule else None,
            line,
            state,
            tally.in_both,
            tally.delta,
            score_histogram([tally]),
            tuple(map(self._distribution, tally.distributions.values())),
        )

    def _distribution(self, tally: DistributionTally) -> ShownDistribution:
        finite = list(filter(math.isfinite, tally.scores))
        mean = math.fsum(finite) / len(finite) if finite else None
        statements = []
        for statement in proved(self.theory.kb, tally.typical(self.most)):
            votes = self.votes.get(self.judged.row(statement.id), ())
            statements.append(ShownStatement.of(self.theory, statement, votes, self.judged))
        name = DISTRIBUTION_NAMES[tally.distribution]
        return ShownDistribution(name, tally.distribution.value, len(tally.ids), mean, tuple(statements))


def vote_counts(votes: Iterable[VoteRecord]) -> tuple[tuple[str, str, int], ...]:
    """Question, answer and number of votes, sorted."""
    counts = Counter((vote.question, vote.answer) for vote in votes)
    return tuple((question, answer, count) for (question, answer), count in sorted(counts.items()))
