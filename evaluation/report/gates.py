"""What the gates of a run did: how many passed, the thresholds call by call, and the values that were rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engine.gates import CriticRule, Threshold
from engine.inquiry import question_words
from evaluation.report.drawing import Histogram, histogram
from evaluation.report.reading import streamed
from grammar.rules import Library
from kb.records import RunRecord
from kb.store import KnowledgeBase
from kb.values import load_list

ROSE = "which rose after it was accepted"
"""How a reason ends where the critic's threshold rejects in retrospect what it had accepted (`engine/gates.py`)."""

_REPEATS = "repeats line"
_VALUES, _ATOMS, _BEAMS = "values", "single facts", "partial substitutions"

_DECISIONS = """
SELECT max(decision.rowid), decision.gate, decision.subject, decision.accepted, decision.score, decision.threshold,
       decision.reason, decision.rule, decision.distribution, decision.step,
       candidate.question_id, candidate.call_id, candidate.raw
FROM decisions AS decision LEFT JOIN candidates AS candidate ON candidate.id = decision.subject
WHERE decision.run_id = ?
GROUP BY decision.subject, decision.rule, decision.distribution, decision.step
ORDER BY candidate.rowid, decision.subject, decision.rule, decision.distribution, decision.step
"""
"""Of several verdicts on one subject the last one holds; a question's candidates come in the order of its calls."""


class _Row(NamedTuple):
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
    def judged(self) -> str:
        """What kind of thing the verdict is on."""
        if self.rule is not None:
            return _BEAMS
        return _ATOMS if self.question is None else _VALUES

    @property
    def distance(self) -> float:
        """How far the score is from the threshold."""
        return abs(self.score - self.threshold) if self.score is not None and self.threshold is not None else 0.0


@dataclass(frozen=True, slots=True)
class GateLine:
    """A gate's counts. `came` None: only what it stopped is recorded."""

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
        """How much of what came to it passed."""
        return 1 - self.stopped / self.came if self.came else None


@dataclass(frozen=True, slots=True)
class CallLine:
    """Where the critic's thresholds stood after a question's first, second ... call: how many questions at each."""

    call: int
    questions: int
    mean: float
    at: Mapping[float, int]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All calls; `values` are the thresholds that occur. `unknown`: questions whose thresholds cannot be told."""

    lines: tuple[CallLine, ...]
    values: tuple[float, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class RejectedValue:
    """A rejected value or partial substitution: what was proposed, for what, and what the gate said."""

    proposed: str
    asked: str
    score: float | None
    threshold: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class Rejections:
    """All rejections of one kind, with some of them; `reasons` counts the kinds of reason where they differ."""

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
    """Everything about the gates of one run. `scores`: the critic's, by verdict."""

    lines: tuple[GateLine, ...]
    thresholds: Thresholds
    scores: Histogram | None
    rejections: tuple[Rejections, ...]


_KINDS = {
    "critic": ("critic", "P(yes) below the threshold of its question. Nearest to the threshold first."),
    "retrospective": (
        "critic, in retrospect",
        "Accepted at first; then a later call raised the threshold of the question above its P(yes).",
    ),
    "type": ("type", "P(yes) that the value is of its data type is below the type's floor."),
    "agreement": ("agreement", "A question with one right value was answered twice, and the answers differ."),
    "parser": ("parser", "The line holds no value that can be used, or one that stands in an earlier line."),
    "likelihood": ("likelihood", "Not in the share that the likelihood gate keeps. Nearest to the limit first."),
    "checked": ("critic, on a rule's premise", "A premise about values that were found does not hold."),
    "computed": ("arithmetic", "A comparison of the rule is false."),
    "derived": ("derived", "A premise that other rules would have to prove does not follow."),
}
"""Kinds of rejection in the order of the page, each with its name and what it means."""


@dataclass
class _Nearest:
    """The few rows with the smallest keys of many."""

    wanted: int
    kept: list[tuple[tuple[Any, ...], _Row]] = field(default_factory=list)
    count: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: _Row) -> None:
        self.count += 1
        self.reasons[_alike(row.reason)] += 1
        self.kept.append(((row.reason.startswith(_REPEATS), row.distance, row.subject, row.number), row))
        if len(self.kept) > 2 * self.wanted + 100:
            self._cut()

    def rows(self) -> list[_Row]:
        self._cut()
        return [row for _, row in self.kept]

    def _cut(self) -> None:
        self.kept = sorted(self.kept, key=lambda pair: pair[0])[: self.wanted]


@dataclass
class _Tally:
    """The verdicts of a run, counted as they are read."""

    wanted: int
    counts: Counter[tuple[str, str, bool]] = field(default_factory=Counter)
    unjudged: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Accepted without a score: there was nothing to judge."""
    limits: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    scores: dict[str, list[float]] = field(default_factory=lambda: {"passed": [], "stopped": []})
    rejected: dict[str, _Nearest] = field(default_factory=dict)
    replays: dict[str, list[_Row]] = field(default_factory=dict)

    def add(self, row: _Row) -> None:
        judged, gate = row.judged, row.gate
        self.counts[judged, gate, bool(row.accepted)] += 1
        self.unjudged[judged, gate] += bool(row.accepted) and row.score is None
        if row.threshold is not None:
            low, high = self.limits.get((judged, gate), (row.threshold, row.threshold))
            self.limits[judged, gate] = min(low, row.threshold), max(high, row.threshold)
        if gate == "critic" and row.score is not None:
            self.scores["passed" if row.accepted else "stopped"].append(row.score)
        if row.question is not None:
            self.replays.setdefault(row.question, []).append(row)
        if not row.accepted:
            self.rejected.setdefault(_kind(row), _Nearest(self.wanted)).add(row)


def gate_report(kb: KnowledgeBase, run: RunRecord, library: Library, rejected: int) -> GateReport:
    """The gates of a run; `rejected`: how many rejections of each kind are told."""
    tally = _Tally(rejected)
    for row in streamed(kb, _DECISIONS, (run.id,)):
        tally.add(_Row(*row))
    labels = {"passed": "passed", "stopped": "stopped"}
    return GateReport(
        tuple(_lines(tally, released=run.settings.get("compat") == "released")),
        _thresholds(tally.replays.values(), _critic_rule(run)),
        histogram(tally.scores, labels, limits=(0.0, 1.0), shares=False),
        tuple(_rejections(kb, library, tally)),
    )


def _kind(row: _Row) -> str:
    if row.gate != "critic":
        return row.gate
    if row.judged == _BEAMS:
        return "checked"
    return "retrospective" if row.reason.endswith(ROSE) else "critic"


# -- counts


def _lines(tally: _Tally, released: bool) -> Iterator[GateLine]:
    """Gate by gate in the order in which a value comes to them; LINK's released code asks for the fact first."""

    def stopped(judged: str, gate: str) -> int:
        return tally.counts[judged, gate, False]

    def decided(judged: str, gate: str) -> int:
        return stopped(judged, gate) + tally.counts[judged, gate, True] - tally.unjudged[judged, gate]

    def line(judged: str, gate: str, explained: str, came: int | None) -> GateLine:
        lowest, highest = tally.limits.get((judged, gate), (None, None))
        return GateLine(gate, judged, explained, came, stopped(judged, gate), lowest, highest)

    values = sum(count for (judged, _, _), count in tally.counts.items() if judged == _VALUES)
    first, second = ("critic", "type") if released else ("type", "critic")
    explained = {"type": "is it a value of the data type?", "critic": "is the fact true?"}
    found = [
        line(_VALUES, "parser", "can the line be read as a new value?", values),
        line(_VALUES, "agreement", "do the answers to a question with one right value agree?", None),
        line(_VALUES, first, explained[first], decided(_VALUES, first) + decided(_VALUES, second)),
        line(_VALUES, second, explained[second], decided(_VALUES, second)),
        line(_ATOMS, "critic", "is the fact true that no question proposed?", decided(_ATOMS, "critic")),
        line(_BEAMS, "critic", "does the premise hold for the values found?", None),
        line(_BEAMS, "computed", "is the comparison true?", None),
        line(_BEAMS, "derived", "does the premise follow by other rules?", None),
        line(
            _BEAMS,
            "likelihood",
            "among the likeliest (head) or least likely (long tail)?",
            decided(_BEAMS, "likelihood"),
        ),
    ]
    return (one for one in found if one.came or one.stopped)


# -- thresholds over calls


def _critic_rule(run: RunRecord) -> CriticRule:
    cap = run.settings.get("threshold_cap", 1.0)
    return CriticRule(
        cap=float(cap) if isinstance(cap, int | float) else 1.0, released=run.settings.get("compat") == "released"
    )


def _thresholds(questions: Iterable[Sequence[_Row]], rule: CriticRule) -> Thresholds:
    """The thresholds of all questions, told again by the critic gate's own rule from the scores that were kept.

    Where the last of them is not the one that the question's verdicts name, the scores do not tell all, and the
    question counts as unknown.
    """
    told = [steps for rows in questions if (steps := _replayed(rows, rule)) is not None]
    known = [steps for steps in told if steps]
    lines = []
    for call in range(max(map(len, known), default=0)):
        reached = [steps[call] for steps in known if len(steps) > call]
        at = Counter(reached)
        lines.append(CallLine(call + 1, len(reached), sum(reached) / len(reached), dict(sorted(at.items()))))
    values = sorted({value for line in lines for value in line.at})
    return Thresholds(tuple(lines), tuple(values), len(told) - len(known))


def _replayed(rows: Sequence[_Row], rule: CriticRule) -> list[float] | None:
    """The threshold after each call; empty where it does not end as the verdicts say; None: the critic had no say."""
    judged = [row for row in rows if row.gate == "critic" and row.threshold is not None]
    if not judged:
        return None
    calls: dict[str | None, list[float]] = {}
    for row in rows:
        scores = calls.setdefault(row.call, [])
        if row.gate == "critic" and row.score is not None:
            scores.append(row.score)
    threshold, earlier, steps = Threshold.initial(rule), list[float](), list[float]()
    for scores in calls.values():
        threshold = threshold.after(scores, earlier, rule)
        earlier += scores
        steps.append(threshold.value)
    return steps if all(row.threshold == steps[-1] for row in judged) else []


# -- rejected values


def _rejections(kb: KnowledgeBase, library: Library, tally: _Tally) -> Iterator[Rejections]:
    unknown = {kind: (kind, "") for kind in tally.rejected if kind not in _KINDS}
    for kind, (name, explained) in (_KINDS | unknown).items():
        if kind in tally.rejected:
            nearest = tally.rejected[kind]
            reasons = nearest.reasons.most_common() if kind in ("parser", "computed", "derived", "checked") else []
            examples = tuple(_rejected(kb, library, row) for row in nearest.rows())
            yield Rejections(
                name, explained, nearest.count, examples, tuple(sorted(reasons, key=lambda pair: (-pair[1], pair[0])))
            )


def _alike(reason: str) -> str:
    """`repeats line 7` and `repeats line 12` are one kind of reason."""
    return f"{_REPEATS} of the answer" if reason.startswith(_REPEATS) else reason


def _rejected(kb: KnowledgeBase, library: Library, row: _Row) -> RejectedValue:
    return RejectedValue(_proposed(row), _asked(kb, library, row), row.score, row.threshold, row.reason)


def _proposed(row: _Row) -> str:
    """The line of the answer, or the bindings; an atom judged by itself is stored as a hash alone."""
    if row.raw is not None:
        return row.raw
    if row.rule is None:
        return f"the fact {row.subject}"
    try:
        return ", ".join(f"{name} = {value}" for name, value in load_list(row.subject))
    except (ValueError, TypeError):
        return row.subject


def _asked(kb: KnowledgeBase, library: Library, row: _Row) -> str:
    if row.rule is not None:
        ends = (row.distribution or "").replace("_", " ")
        return f"{row.rule}, {ends}" + ("" if row.step is None else f", step {row.step + 1}")
    question = kb.question(row.question) if row.question else None
    try:
        return "" if question is None else f"{question_words(question, library)[1]}, as {question.data_type}"
    except (IndexError, ValueError):  # another program's question, without a pattern or without a free place
        return ""
