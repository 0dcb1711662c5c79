"""Account of a rule's search: per step, its questions, lines, values and partial substitutions, and where they end.

The numbers of a step add up. Every different line that was read was dropped by the reader, repeats a value that the
model had given or was to leave out, or holds a new value. Every such value was rejected by a gate, accepted, or left
unjudged: by a budget, or because a premise that needs no model excludes it. Every partial substitution failed a
premise, was left unranked by a budget, was cut by the likelihood gate, or was kept. All of it follows from stored
answers and scores, so a repeated run has the same account.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from hapax.engine.gates.gates import AGREEMENT, COMPUTED, CRITIC, GIVEN, PARSER, TYPE, GateCount
from hapax.grammar.remedies import CALL, Operation, Remedy, Setting
from hapax.grammar.writing.words import counted, excerpt
from hapax.kb.records import Candidate, Decision

EQUAL_SHARE = 0.5
"""Share of texts with a score that another text has, too, above which a ranker is named."""

NO_ANSWER = 0.3
"""Highest P(yes) below which a lower threshold is no remedy: the critic says no to everything."""

_NUMBER = re.compile(r"[0-9]+")
"""Numbers in reasons such as `repeats line 3`, which would make each line a reason of its own."""


@dataclass(frozen=True, slots=True)
class DroppedLines:
    """Lines that were dropped for one reason: their number, and the first of them."""

    count: int
    example: str

    def __add__(self, other: DroppedLines) -> DroppedLines:
        return DroppedLines(self.count + other.count, self.example or other.example)


@dataclass(frozen=True, slots=True)
class GateLoss:
    """Values that a gate rejected: their number, and the highest score with the threshold that it did not reach."""

    count: int
    highest: float | None = None
    threshold: float | None = None

    def __add__(self, other: GateLoss) -> GateLoss:
        # A loss without a score ranks below all P(yes).
        higher = max(self, other, key=lambda loss: -1.0 if loss.highest is None else loss.highest)
        return GateLoss(self.count + other.count, higher.highest, higher.threshold)


@dataclass(frozen=True, slots=True)
class PremiseLoss:
    """Partial substitutions that failed a premise: their number, its gate, and the highest P(yes) of a critic's."""

    count: int
    gate: str
    highest: float | None = None

    def __add__(self, other: PremiseLoss) -> PremiseLoss:
        scores = [score for score in (self.highest, other.highest) if score is not None]
        return PremiseLoss(self.count + other.count, self.gate, max(scores, default=None))


Part = TypeVar("Part", DroppedLines, GateLoss, PremiseLoss, GateCount)


def merge(totals: dict[str, Part], more: Mapping[str, Part]) -> None:
    """Add further counts to those of the same names."""
    for name, part in more.items():
        totals[name] = totals[name] + part if name in totals else part


@dataclass(frozen=True, slots=True)
class DistributionCut:
    """Partial substitutions of one distribution that a step ranked, and those that it kept.

    `limit`: score of the last one kept, in nats per token; None if none was kept, or no model ranked.
    """

    ranked: int
    kept: int
    limit: float | None = None


@dataclass(slots=True, kw_only=True)
class QuestionAccount:
    """Account of the lines and values of one question, or of several. A line that comes again counts once.

    `lines`: lines of replies; `dropped`: those without a new value, by reason, of which `repeated` repeat one.
    `losses`: rejected values by gate, and `unjudged` those that nobody judged. `given`: values by given facts, which
    need no line.
    """

    calls: int = 0
    lines: int = 0
    dropped: dict[str, DroppedLines] = field(default_factory=dict)
    unjudged: int = 0
    losses: dict[str, GateLoss] = field(default_factory=dict)
    accepted: int = 0
    given: int = 0


def question_account(
    calls: int, decisions: Iterable[tuple[Candidate, Decision]], unjudged: int, given: int
) -> QuestionAccount:
    """The account of a question by the gates' decisions on its candidates."""
    dropped: dict[str, DroppedLines] = {}
    losses: dict[str, GateLoss] = {}
    # A line that comes again in the same words is stored once, with its first reason, so it counts once.
    unique: dict[str, tuple[Candidate, Decision]] = {}
    for candidate, decision in decisions:
        unique.setdefault(candidate.id, (candidate, decision))
    for candidate, decision in unique.values():
        if not decision.accepted and decision.gate == PARSER.name:
            merge(dropped, {_NUMBER.sub("N", decision.reason): DroppedLines(1, excerpt(candidate.raw))})
        elif not decision.accepted:
            merge(losses, {decision.gate: GateLoss(1, decision.score, decision.threshold)})
    accepted = sum(decision.accepted for _, decision in unique.values())
    return QuestionAccount(
        calls=calls,
        lines=len(unique) + unjudged,
        dropped=dropped,
        unjudged=unjudged,
        losses=losses,
        accepted=accepted,
        given=given,
    )


@dataclass(slots=True)
class StepAccount(QuestionAccount):
    """One step of a rule's plan, with its questions.

    `step` counts from 1; `variable`: the variable that gets values, with its type; `origin`: where they come from.
    `extended`: partial substitutions with a value for the variable; `failed`: those that fail a premise;
    `unranked`: those that a budget left without a likelihood; `cut`: those that the likelihood gate keeps in no
    distribution; `kept`: those that go on. `texts`: different texts that were ranked; `equal`: those whose score
    another of them has, too. `cuts`: by distribution, what was ranked and kept; a substitution that one distribution
    cuts may stay in the other.
    `spared`: partial substitutions of the step before that were not extended, because there is enough without them.
    `listable`: the values are asked for one by one, each with a single right answer, but as lists premise first.
    """

    step: int
    variable: str
    origin: str
    questions: int = 0
    extended: int = 0
    failed: dict[str, PremiseLoss] = field(default_factory=dict)
    unranked: int = 0
    cut: int = 0
    kept: int = 0
    texts: int = 0
    equal: int = 0
    cuts: dict[str, DistributionCut] = field(default_factory=dict)
    spared: int = 0
    listable: bool = False

    @property
    def dropped_count(self) -> int:
        """Number of lines that the reader dropped because they hold no value."""
        return sum(lines.count for reason, lines in self.dropped.items() if not _is_repeat(reason))

    @property
    def repeated(self) -> int:
        """Number of lines with a value that an earlier line has, or that the prompt excludes."""
        return sum(lines.count for reason, lines in self.dropped.items() if _is_repeat(reason))

    @property
    def failed_count(self) -> int:
        """Number of partial substitutions that failed a premise."""
        return sum(loss.count for loss in self.failed.values())

    @property
    def judged(self) -> int:
        """Number of values that came to the gates and were decided."""
        return self.lines - self.dropped_count - self.repeated - self.unjudged

    @property
    def rejected(self) -> int:
        """Number of values that all gates together rejected."""
        return sum(loss.count for loss in self.losses.values())

    @property
    def commonest_drop(self) -> tuple[str, DroppedLines] | None:
        """The commonest reason for a line without a value; of equally common ones the first by alphabet."""
        fresh = [drop for drop in self.dropped.items() if not _is_repeat(drop[0])]
        return min(fresh, key=lambda drop: (-drop[1].count, drop[0]), default=None)

    def loss(self, gate: str) -> GateLoss:
        """The values that the gate rejected."""
        return self.losses.get(gate, GateLoss(0))

    def add(self, question: QuestionAccount) -> None:
        """Add a question of this step."""
        self.questions += 1
        self.calls += question.calls
        self.lines += question.lines
        self.unjudged += question.unjudged
        self.accepted += question.accepted
        self.given += question.given
        merge(self.dropped, question.dropped)
        merge(self.losses, question.losses)

    def to_json(self) -> dict[str, Any]:
        """The step as the run record stores it."""
        identity = {"step": self.step, "variable": self.variable, "origin": self.origin}
        return {**identity, **asdict(self), "repeated": self.repeated}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> StepAccount:
        """A stored step. Raises ValueError for one of another shape."""
        from pydantic import TypeAdapter

        return TypeAdapter(cls).validate_python(stored)


# --- in words ---------------------------------------------------------------------------------------------------------


def step_text(row: StepAccount) -> str:
    """A step's account in one line."""
    asked = [
        counted(row.questions, "question"),
        counted(row.calls, "call"),
        counted(row.lines, "different line"),
        f"{row.dropped_count} dropped ({_drop_text(*row.commonest_drop)})" if row.commonest_drop else "",
        counted(row.repeated, "repeat") if row.repeated else "",
        f"{row.unjudged} not judged" if row.unjudged else "",
        *(f"{loss.count} rejected by the {gate} gate{_score_text(loss)}" for gate, loss in row.losses.items()),
        counted(row.accepted, "accepted value"),
        counted(row.given, "given value") if row.given else "",
    ]
    values = ", ".join(filter(None, asked)) if row.questions else f"values are {row.origin}"
    substitutions = [
        counted(row.extended, "substitution"),
        *(f"{counted(loss.count, 'fails', 'fail')} {premise}" for premise, loss in row.failed.items()),
        f"{row.unranked} without a likelihood" if row.unranked else "",
        f"{row.cut} cut",
        f"{row.kept} kept",
    ]
    spared = f"; {counted(row.spared, 'combination')} not asked about (enough)" if row.spared else ""
    return f"step {row.step}, {row.variable}: {values}; {', '.join(filter(None, substitutions))}{spared}"


def cut_text(row: StepAccount) -> str:
    """The cut of the likelihood gate at a step, with the widths of the distributions; empty if it cut nothing.

    `step 2, Airport A: 7,836 values ranked, 400 kept (head 200, long tail 200)`.
    """
    if not row.cut:
        return ""
    ends = [f"{name.replace('_', ' ')} {cut.kept:,}" for name, cut in row.cuts.items()]
    widths = f" ({', '.join(ends)})" if len(ends) > 1 else ""
    number = row.cut + row.kept
    count = f"{number:,} {'value' if number == 1 else 'values'}"
    came = f"{count} ranked" if any(cut.limit is not None for cut in row.cuts.values()) else f"the first of {count}"
    return f"step {row.step}, {row.variable}: {came}, {row.kept:,} kept{widths}"


def _drop_text(reason: str, lines: DroppedLines) -> str:
    """`12 times: does not end in a full stop, as in "1. Pizza"`."""
    example = f', as in "{lines.example}"' if lines.example else ""
    return f"{counted(lines.count, 'time')}: {reason}{example}"


def _score_text(loss: GateLoss) -> str:
    if loss.highest is None or loss.threshold is None:
        return ""
    return f" (highest P(yes) {loss.highest:.2f}, threshold {loss.threshold:.2f})"


# --- where values ran out ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shortage:
    """The place where a rule ran out of values: what happened there, and the first remedy."""

    fact: str
    remedy: Remedy | str

    def __str__(self) -> str:
        return f"{self.fact} {self.remedy}"


def shortage(account: Sequence[StepAccount], compat: str | None = None) -> Shortage | None:
    """Where the rule of this account ran out of values; None if nothing was recorded."""
    if not account:
        return None
    # The last step is the one that left nothing.
    row = account[-1]
    if row.kept:
        fact = f"{counted(row.kept, 'substitution')} went through all steps, but Prolog derives no statement from them."
        shown = Shortage(fact, f"Run {Operation('why_not')} on a conclusion that should hold.")
    elif row.extended:
        shown = _lost_substitutions(row, compat)
    elif row.questions:
        shown = _lost_values(row, compat)
    else:
        shown = Shortage("no fact gives it a value.", _FACT_REMEDIES[row.origin])
    return Shortage(f"Step {row.step}, {row.variable}: {shown.fact}", shown.remedy)


_FACT_REMEDIES = {
    "given": Remedy("Add facts to a rule file, or with {}.", Operation("import_facts")),
    "derived": Remedy("Look for the premise that fails with {}.", Operation("why_not")),
    "computed": Remedy("Check the equation that computes it."),
    "model": Remedy(
        "Raise {}, or choose another model with {}.", Setting("settings.calls_per_question"), Setting("knowledge")
    ),
}
"""The first remedy for a step without values, by their origin."""

_REPEATS = ("repeats an earlier", "repeats line", "excludes")
"""Words of the reasons to drop a line whose value is known already."""

_LIST_REMEDY = Remedy(
    "Search with {} premise-first, which asks for lists where this order needs one right answer.",
    Setting("settings.plan"),
)

_MODEL_REMEDY = Remedy(
    "Choose another model with {}; {} shows its replies.", Setting("knowledge"), Operation("why_not")
)

_REPEAT_REMEDY = Remedy(
    "Raise {}, or choose another model with {}.", Setting("settings.temperature"), Setting("knowledge")
)

_DROP_REMEDIES = {
    "reasoning": Remedy(
        "Allow more tokens for a reply with {}, or switch off reasoning in the model's alias.",
        Setting("settings.answer_tokens"),
    ),
    "cut off": Remedy("Ask for fewer values in a call with {}.", Setting("settings.values_per_call")),
    "no answer": Remedy(
        "Choose another model with {}, or word the predicate differently in its declaration.", Setting("knowledge")
    ),
}
"""The first remedy by a word of the reason why the reader dropped most lines."""


def _lost_values(row: StepAccount, compat: str | None) -> Shortage:
    """No value was accepted: the loss with the most lines says why."""
    if not row.lines:
        return Shortage(f"the replies of {counted(row.calls, 'call')} have no line.", _FACT_REMEDIES["model"])
    # Of equal losses the last gate's: what came so far was nearest to acceptance.
    losses = reversed(row.losses.items())
    gate, loss = max(losses, key=lambda item: item[1].count, default=("", GateLoss(0)))
    is_known = bool(row.losses or row.unjudged)
    # Lines that only repeat a value explain no loss, unless there is no other.
    if row.commonest_drop and (row.dropped_count > loss.count or not is_known):
        reason, lines = row.commonest_drop
        part = _part(row.dropped_count, row.lines, "line", "holds", "hold")
        remedies = (remedy for word, remedy in _DROP_REMEDIES.items() if word in reason)
        remedy = next(remedies, _LIST_REMEDY if row.listable else _MODEL_REMEDY)
        return Shortage(f"{part} no value ({_drop_text(reason, lines)}).", remedy)
    if row.repeated and not is_known:
        repeated = counted(row.lines, "line repeats a value", "lines repeat values")
        return Shortage(f"{repeated} that the question has, and no other line came.", _REPEAT_REMEDY)
    if not gate or row.unjudged > loss.count:
        return Shortage("the budget left its values unjudged.", Remedy("Run the same {} with a higher budget.", CALL))
    if gate == AGREEMENT.name:
        fact = f"{counted(loss.count, 'value was', 'values were')} rejected because samples of one question differ."
        differing = f"Lower {Setting('settings.temperature')}, or choose another model with {Setting('knowledge')}."
        return Shortage(fact, _LIST_REMEDY if row.listable else differing)
    part = _part(loss.count, row.judged, "value", "was", "were")
    fact = f"{part} rejected by the {gate} gate{_score_text(loss)}."
    return Shortage(fact, _threshold_remedy(gate, loss.highest, compat))


def _part(count: int, total: int, noun: str, verb: str, plural: str) -> str:
    """`1 of 3 lines holds`."""
    return f"{count} of {counted(total, noun)} {verb if count == 1 else plural}"


def _is_repeat(reason: str) -> bool:
    return any(word in reason for word in _REPEATS)


def _lost_substitutions(row: StepAccount, compat: str | None) -> Shortage:
    """All partial substitutions failed a premise or have no likelihood."""
    if row.unranked > row.failed_count or not row.failed:
        fact = f"the likelihood model scored none of {counted(row.extended, 'substitution')}."
        return Shortage(
            fact,
            (f"Choose another model with {Setting('likelihood')}; {Operation('stats')} shows what this one refused."),
        )
    premise, loss = max(row.failed.items(), key=lambda failed: failed[1].count)
    fact = f"{_part(loss.count, row.extended, 'substitution', 'fails', 'fail')} {premise}"
    if loss.gate == CRITIC.name and loss.highest is not None:
        remedy = _threshold_remedy(loss.gate, loss.highest, compat)
        return Shortage(f"{fact}; the highest P(yes) is {loss.highest:.2f}.", remedy)
    return Shortage(f"{fact}.", _PREMISE_REMEDIES.get(loss.gate, _MORE_VALUES))


_PREMISE_REMEDIES = {
    GIVEN.name: Remedy(
        "Add facts with {}, or look at the premise with {}.", Operation("import_facts"), Operation("why_not")
    ),
    COMPUTED.name: Remedy(
        "Raise {}, {} or {} for more values to compare.",
        Setting("settings.calls_per_question"),
        Setting("settings.values_per_call"),
        Setting("settings.beam"),
    ),
}
"""The first remedy where all substitutions fail a premise, by the gate that says so."""

_MORE_VALUES = Remedy(
    "Raise {} or {} for more values, or look at the premise with {}.",
    Setting("settings.calls_per_question"),
    Setting("settings.beam"),
    Operation("why_not"),
)


def _threshold_remedy(gate: str, highest: float | None, compat: str | None) -> str:
    option = {
        TYPE.name: Setting("settings.type_threshold"),
        CRITIC.name: Setting("settings.fact_threshold"),
    }.get(gate)
    if option is None or highest is None:
        return f"Choose another model with {Setting('knowledge')}."
    if highest < NO_ANSWER:
        return (
            f"Look at the values with {Operation('why_not')}, and choose another model with "
            f"{Setting('knowledge')} or {Setting('critic')}."
        )
    # Rounded first: 0.8 * 20 must not become 15.
    below = math.floor(round(highest * 20, 9)) / 20
    if compat:  # which words its questions in another way
        return f"Search with no {Setting('settings.compat')} and {option} {below:g}."
    return f"Search with {option} {below:g}; stored answers are judged again without a call."


def equal_scores(account: Iterable[StepAccount]) -> tuple[int, int] | None:
    """Numbers of ranked texts that share their score, and of all; None if the ranker tells enough of them apart."""
    rows = list(account)
    equal, texts = sum(row.equal for row in rows), sum(row.texts for row in rows)
    return (equal, texts) if equal > EQUAL_SHARE * texts else None
