"""The gates of one run: how many values passed each, the thresholds call by call, and the rejected values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from hapax.engine.search.account import StepAccount
from hapax.engine.search.gates import (
    CRITIC,
    LIKELIHOOD,
    ROSE,
    Gate,
    Subject,
    VerdictCounts,
    Wording,
    gates_in_order,
)
from hapax.engine.search.inquiry import question_words
from hapax.engine.search.settings import THRESHOLDS, SearchSettings
from hapax.engine.search.thresholds import DEFAULT_RULE, CriticRule, Threshold
from hapax.evaluation.report.drawing import Histogram, histogram
from hapax.evaluation.report.reading import streamed
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.records import RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.kb.values import load_list

_REPEATS = "repeats line"
"""Start of the parser's reason for a line that repeats an earlier one."""

_RETROSPECT = Wording(
    "",
    "critic, in retrospect",
    "Accepted at first; then a later call raised the threshold of the question above its P(yes).",
)

# SQLite takes the other columns of a group from the row that has the maximum (bare columns with max()).
_DECISIONS = """
SELECT max(decision.rowid), decision.gate, decision.subject, decision.accepted, decision.score, decision.threshold,
       decision.reason, decision.rule, decision.distribution, decision.step,
       candidate.question_id, candidate.call_id, candidate.raw
FROM decisions AS decision LEFT JOIN candidates AS candidate ON candidate.id = decision.subject
WHERE decision.run_id = ?
GROUP BY decision.subject, decision.rule, decision.distribution, decision.step
ORDER BY candidate.rowid, decision.subject, decision.rule, decision.distribution, decision.step
"""
"""The last of several verdicts on one subject holds. A question's candidates come in the order of its calls."""


class _GateRow(NamedTuple):
    """A row of `_DECISIONS`."""

    number: int
    gate: str
    subject: str
    accepted: int
    score: float | None
    threshold: float | None
    reason: str
    rule: str | None
    distribution: str | None
    step: int | None
    question: str | None
    call: str | None
    raw: str | None

    @property
    def judged(self) -> Subject:
        """Kind of the subject."""
        if self.rule is not None:
            return Subject.BEAMS
        return Subject.ATOMS if self.question is None else Subject.VALUES

    @property
    def distance(self) -> float:
        """Distance of the score from the threshold; 0 without one."""
        return abs(self.score - self.threshold) if self.score is not None and self.threshold is not None else 0.0


@dataclass(frozen=True, slots=True)
class GateLine:
    """A gate's counts for one kind of subject. `came` None: only its rejections are recorded."""

    gate: str
    judged: str
    explained: str
    came: int | None
    stopped: int
    lowest: float | None = None
    highest: float | None = None

    @property
    def passed(self) -> int | None:
        return None if self.came is None else self.came - self.stopped

    @property
    def share(self) -> float | None:
        """Share of the judged subjects that passed."""
        return 1 - self.stopped / self.came if self.came else None


@dataclass(frozen=True, slots=True)
class CallLine:
    """The critic's thresholds after the first, second ... call of a question: number of questions at each."""

    call: int
    questions: int
    mean: float
    at: Mapping[float, int]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All calls; `values` are the thresholds that occur. `unknown`: questions whose thresholds cannot be replayed."""

    lines: tuple[CallLine, ...]
    values: tuple[float, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """A rejected value or partial substitution: what was proposed, for which question or rule, and the verdict."""

    proposed: str
    asked: str
    score: float | None
    threshold: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Rejections:
    """All rejections of one kind, with some of them. `reasons`: counts of kinds of reason where these differ."""

    kind: str
    explained: str
    count: int
    examples: tuple[RejectedValue, ...]
    reasons: tuple[tuple[str, int], ...] = ()

    @property
    def more(self) -> int:
        return self.count - len(self.examples)


@dataclass(frozen=True, slots=True)
class GateReport:
    """The gates of one run. `scores`: the critic's, by verdict; `columns`: gates in tables of rules."""

    lines: tuple[GateLine, ...]
    thresholds: Thresholds
    scores: Histogram | None
    rejections: tuple[Rejections, ...]
    columns: tuple[str, ...]


class _Kind(NamedTuple):
    """Kind of rejection. `retrospective`: the threshold rose after the value was accepted."""

    gate: str
    judged: Subject
    retrospective: bool = False


@dataclass
class _Nearest:
    """Rejections of one kind: their number, their reasons, and the `wanted` ones nearest to the threshold."""

    wanted: int
    kept: list[tuple[tuple[Any, ...], _GateRow]] = field(default_factory=list)
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: _GateRow) -> None:
        self.count += 1
        is_repeat = row.reason.startswith(_REPEATS)
        if row.score is None:  # with a score, each row has a reason of its own
            self.reasons[f"{_REPEATS} of the answer" if is_repeat else row.reason] += 1
        # Repeated lines teach least, so they come last.
        self.kept.append(((is_repeat, row.distance, row.subject, row.number), row))
        if len(self.kept) > 2 * self.wanted + 100:  # a run has millions of rejections: only the nearest are kept
            self._cut()

    def rows(self) -> list[_GateRow]:
        self._cut()
        return [row for _, row in self.kept]

    def _cut(self) -> None:
        self.kept = sorted(self.kept, key=lambda pair: pair[0])[: self.wanted]


@dataclass
class _Tally:
    """The verdicts of a run, counted while they are read."""

    wanted: int
    values: VerdictCounts = field(default_factory=VerdictCounts)
    rejected: Counter[tuple[Subject, str]] = field(default_factory=Counter)
    accepted: Counter[tuple[Subject, str]] = field(default_factory=Counter)
    limits: dict[tuple[Subject, str], tuple[float, float]] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=lambda: {"passed": [], "stopped": []})
    examples: dict[_Kind, _Nearest] = field(default_factory=dict)
    replays: dict[str, list[_GateRow]] = field(default_factory=dict)

    def add(self, row: _GateRow) -> None:
        key = (row.judged, row.gate)
        if row.judged is Subject.VALUES:
            self.values.add(row.gate, bool(row.accepted), row.score is not None)
        if not row.accepted:
            self.rejected[key] += 1
            # Single facts are rejected for the same reason as values, so both are one kind.
            judged = Subject.BEAMS if row.judged is Subject.BEAMS else Subject.VALUES
            kind = _Kind(row.gate, judged, row.gate == CRITIC.name and row.reason.endswith(ROSE))
            self.examples.setdefault(kind, _Nearest(self.wanted)).add(row)
        elif row.score is not None:  # accepted without a score: there was nothing to judge
            self.accepted[key] += 1
        if row.threshold is not None:
            low, high = self.limits.get(key, (row.threshold, row.threshold))
            self.limits[key] = min(low, row.threshold), max(high, row.threshold)
        if row.gate == CRITIC.name and row.score is not None:
            self.scores["passed" if row.accepted else "stopped"].append(row.score)
        if row.question is not None:
            # Rejected values are replayed too: they move the threshold as well.
            self.replays.setdefault(row.question, []).append(row)


def gate_report(kb: KnowledgeBase, run: RunRecord, library: Library, rejected: int) -> GateReport:
    """The gates of a run, with at most `rejected` examples of each kind of rejection."""
    tally = _Tally(rejected)
    for row in streamed(kb, _DECISIONS, (run.id,)):
        tally.add(_GateRow(*row))
    _count_beams(tally, run)
    compat = run.settings.get("compat")
    order = gates_in_order(compat if isinstance(compat, str) else None)
    labels = {"passed": "passed", "stopped": "stopped"}
    return GateReport(
        tuple(line for line in _lines(tally, order) if line.came or line.stopped),
        _thresholds(tally.replays.values(), _critic_rule(run)),
        histogram(tally.scores, labels, limits=(0.0, 1.0), shares=False),
        tuple(_rejections(kb, library, tally)),
        tuple(gate.name for gate in order if gate.in_tables),
    )


# -- counts


def _count_beams(tally: _Tally, run: RunRecord) -> None:
    """Count the partial substitutions by the run's account: of those rejected only examples have decisions.

    Unfinished runs, which have no account, are counted by their decisions.
    """
    steps = _steps(run)
    if not any(step.cuts for step in steps):
        return
    reasons: dict[str, Counter[str]] = {}
    for step in steps:
        for premise, loss in step.failed.items():
            reasons.setdefault(loss.gate, Counter())[f"{premise} does not hold"] += loss.count
    counts = {gate: by_reason.total() for gate, by_reason in reasons.items()}
    cuts = list(chain.from_iterable(step.cuts.values() for step in steps))
    counts[LIKELIHOOD.name] = sum(cut.ranked - cut.kept for cut in cuts)
    tally.accepted[Subject.BEAMS, LIKELIHOOD.name] = sum(cut.kept for cut in cuts)
    for gate, count in counts.items():
        tally.rejected[Subject.BEAMS, gate] = count
        nearest = tally.examples.get(_Kind(gate, Subject.BEAMS))
        if nearest is not None:
            nearest.count = count
            nearest.reasons = reasons.get(gate, Counter())


def _steps(run: RunRecord) -> list[StepAccount]:
    """The steps of all rules of the run; empty where another program stored something else."""
    steps: list[StepAccount] = []
    try:
        for line in run.summary["rules"]:
            steps += map(StepAccount.from_json, line["account"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return steps


def _lines(tally: _Tally, order: Sequence[Gate]) -> Iterator[GateLine]:
    """A line for each kind of subject and each gate on it, in the order in which a subject comes to the gates."""
    values = tally.values.by_gate(order)
    for subject in Subject:
        for gate in order:
            wording = gate.wording.get(subject)
            if wording is None:
                continue
            key = (subject, gate.name)
            came: int | None = tally.rejected[key] + tally.accepted[key]
            # Each value has one decision, by the gate that decided last; the order says which gates it came to before.
            if subject is Subject.VALUES:
                came = values[gate.name].judged
            if wording.rejections_only:
                came = None
            lowest, highest = tally.limits.get(key, (None, None))
            yield GateLine(gate.name, subject.value, wording.question, came, tally.rejected[key], lowest, highest)


# -- thresholds over calls


def _critic_rule(run: RunRecord) -> CriticRule:
    # Settings are JSON that other programs may have written: what is not a threshold counts as Hapax's own.
    try:
        stored: dict[str, Any] = {"compat": run.settings.get("compat")}
        stored |= {name: CriticRule.parse(str(run.settings[name])) for name in THRESHOLDS if name in run.settings}
        return SearchSettings(**stored).rules[CRITIC.name]
    except (HapaxError, TypeError):
        return DEFAULT_RULE


def _thresholds(questions: Iterable[Sequence[_GateRow]], rule: CriticRule) -> Thresholds:
    """The thresholds of all questions, replayed from the stored scores by the gate's own rule.

    The last threshold of a question includes its fall at the end. A question is unknown if its last replayed threshold
    is not the one that its verdicts name: then some of its scores are missing.
    """
    replayed = [steps for rows in questions if (steps := _replayed(rows, rule)) is not None]
    known = [steps for steps in replayed if steps]
    lines = []
    for call in range(max(map(len, known), default=0)):
        # Questions differ in their number of calls.
        reached = [steps[call] for steps in known if len(steps) > call]
        at = Counter(reached)
        lines.append(CallLine(call + 1, len(reached), sum(reached) / len(reached), dict(sorted(at.items()))))
    values: set[float] = set()
    for line in lines:
        values.update(line.at)
    return Thresholds(tuple(lines), tuple(sorted(values)), len(replayed) - len(known))


def _replayed(rows: Sequence[_GateRow], rule: CriticRule) -> list[float] | None:
    """The threshold after each call; empty if the last is not the verdicts'; None if the critic judged nothing."""
    judged = [row for row in rows if row.gate == CRITIC.name and row.threshold is not None]
    if not judged:
        return None
    # Scores by call; candidates come in the order of the calls, and a dictionary keeps it.
    calls: dict[str | None, list[float]] = {}
    # All rows make calls, also those that other gates rejected: a call without a score moves nothing.
    for row in rows:
        scores = calls.setdefault(row.call, [])
        if row.gate == CRITIC.name and row.score is not None:
            scores.append(row.score)
    threshold, earlier, steps = Threshold.initial(rule), list[float](), list[float]()
    for scores in calls.values():
        threshold = threshold.after(scores, earlier, rule)
        earlier += scores
        steps.append(threshold.value)
    last = threshold.at_end(earlier, rule).value
    return [*steps[:-1], last] if all(row.threshold == last for row in judged) else []


# -- rejected values


def _rejections(kb: KnowledgeBase, library: Library, tally: _Tally) -> Iterator[Rejections]:
    """Rejections by kind: of values, then of partial substitutions, in each the gate that decides last first."""
    wordings: dict[_Kind, Wording] = {}
    for subject in (Subject.VALUES, Subject.BEAMS):
        for gate in reversed(gates_in_order()):
            if gate.judges(subject):
                wordings[_Kind(gate.name, subject)] = gate.wording[subject]
            if subject is Subject.VALUES and gate is CRITIC:
                wordings[_Kind(gate.name, subject, retrospective=True)] = _RETROSPECT
    for kind in tally.examples:
        wordings.setdefault(kind, Wording(""))  # a gate that this version does not know
    for kind, wording in wordings.items():
        if kind in tally.examples:
            nearest = tally.examples[kind]
            reasons = sorted(nearest.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
            examples = tuple(
                RejectedValue(_proposed(row), _asked(kb, library, row), row.score, row.threshold, row.reason)
                for row in nearest.rows()
            )
            yield Rejections(wording.title or kind.gate, wording.rejection, nearest.count, examples, tuple(reasons))


def _proposed(row: _GateRow) -> str:
    """The line of the answer, or the bindings; an atom judged by itself is stored as a hash alone."""
    if row.raw is not None:
        return row.raw
    if row.rule is None:
        return f"the fact {row.subject}"
    try:
        return ", ".join(f"{name} = {value}" for name, value in load_list(row.subject))
    except (ValueError, TypeError):
        return row.subject


def _asked(kb: KnowledgeBase, library: Library, row: _GateRow) -> str:
    """The rule with distribution and step, or the question in words."""
    if row.rule is not None:
        distribution = (row.distribution or "").replace("_", " ")
        return f"{row.rule}, {distribution}" + ("" if row.step is None else f", step {row.step + 1}")
    question = kb.question(row.question) if row.question else None
    try:
        return "" if question is None else f"{question_words(question, library)[1]}, as {question.data_type}"
    except (IndexError, ValueError):  # another program's question, without a pattern or without a free position
        return ""
