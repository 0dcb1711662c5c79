"""One question on its way to an answer: what is asked in which words, what was proposed, and when it is over."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from engine.gates import CriticGate, Judged, Verdict
from grammar.rules import Library
from grammar.terms import Atom, Constant, Term, Value, Variable
from grammar.verbalize import atom_text
from kb.records import Candidate, Decision, Pattern, Question, QuestionState
from llm_oracle.answers import ParsedValue

EMPTY_CALLS = 2
"""So many calls in a row without an accepted value end a question (paper, section 2.3)."""

FUNCTIONAL_SAMPLES = 2
"""A functional question is asked so often and believed only if the first values agree (LINK's released code)."""

Key = str | tuple[str, Value]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question with what its asker knows.

    `claimed`: the patterns that become ground with a value; they are judged and stored as facts. The others (about a
    generic variable, or with a second open argument) only word the prompt. `prior`: probabilities of the beam's earlier
    values, for LINK's accumulated confidence. `values`: how many to ask for in a call, if not what the settings say.
    """

    question: Question
    claimed: tuple[Pattern, ...]
    prior: tuple[float, ...] = ()
    values: int | None = None

    def is_about(self, indicators: Collection[str]) -> bool:
        """Whether all its patterns are of these predicates."""
        return all(f"{one.predicate}/{len(one.arguments)}" in indicators for one in self.question.patterns)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question brought: accepted values in the order they came, and the counts for the report.

    `gates` maps gate -> (accepted, judged). `complete` is False where the budget cut the question off.
    """

    accepted: tuple[Judged, ...] = ()
    threshold: float = 0.0
    calls: int = 0
    sent: int = 0
    gates: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    complete: bool = True

    @property
    def values(self) -> list[Value]:
        return [judged.value for judged in self.accepted]


@dataclass(frozen=True, slots=True)
class Reply:
    """One generation, read: the call it came from and its lines."""

    call_id: str
    parsed: Sequence[ParsedValue]


@dataclass(eq=False, slots=True)
class AskedQuestion:
    """The state of one question: its gate, what was proposed, and whether it is over.

    `cut`: the budget ended it. `agreed`: the samples of a functional question had the same first value.
    """

    inquiry: Inquiry
    gate: CriticGate
    calls_allowed: int
    calls: int = 0
    sent: int = 0
    empty: int = 0
    cut: bool = False
    over: bool = False
    agreed: bool = True
    restored: bool = False
    values: list[Candidate] = field(default_factory=list)
    unread: list[Candidate] = field(default_factory=list)
    _stored: tuple[int, int] = (0, 0)
    _told: tuple[int, int] = (0, 0)
    _seen: set[Key] = field(default_factory=set)
    _requests: dict[object, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return self.cut or self.over

    @property
    def state(self) -> QuestionState:
        """The journal line; a functional question whose samples differed counts as two calls without acceptance."""
        return QuestionState(self.calls, self.empty if self.agreed else FUNCTIONAL_SAMPLES, exhausted=self.over)

    def repeated(self, *request: object) -> int:
        """How often this very request was made before: a call that brought nothing new is sampled anew."""
        index = self._requests.get(request, -1) + 1
        self._requests[request] = index
        return index

    def take(self, replies: Sequence[Reply]) -> list[Candidate]:
        """Note what the replies hold; gives the values that are new and go to the critic."""
        question = self.inquiry.question
        self.calls += len(replies)
        fresh: list[Candidate] = []
        firsts: list[Key | None] = []
        for reply in replies:
            first: Key | None = None
            for parsed in reply.parsed:
                rejected = parsed.rejected
                if rejected is None and question.functional and first is not None:
                    rejected = "is not the first value, and only one is right"
                candidate = Candidate(question.id, parsed.value, parsed.raw, reply.call_id, parsed.position, rejected)
                if rejected is not None:
                    self.unread.append(candidate)
                    continue
                first = first or value_key(parsed.value)
                if value_key(parsed.value) not in self._seen:
                    self._seen.add(value_key(parsed.value))
                    fresh.append(candidate)
            firsts.append(first)
        self.agreed = not question.functional or (None not in firsts and len(set(firsts)) == 1)
        self.values += fresh
        return fresh

    def unstored(self) -> list[Candidate]:
        """Candidates that came since this was last asked."""
        values, unread = self._stored
        self._stored = (len(self.values), len(self.unread))
        return [*self.values[values:], *self.unread[unread:]]

    def change(self) -> tuple[int, int]:
        """How many candidates more are accepted, and how many more rejected, since this was last asked."""
        accepted = len(self.gate.accepted) if self.agreed else 0
        now = (accepted, len(self.values) + len(self.unread) - accepted)
        earlier, self._told = self._told, now
        return now[0] - earlier[0], now[1] - earlier[1]

    def close_call(self, accepted: int) -> None:
        """Whether this call was the last one: all made, or two in a row that brought nothing."""
        self.empty = 0 if accepted else self.empty + 1
        last = self.inquiry.question.functional or self.calls >= self.calls_allowed or self.empty >= EMPTY_CALLS
        self.over = not self.cut and (self.over or last)

    def restore(self, state: QuestionState, candidates: Sequence[Candidate]) -> None:
        """Take over what an earlier run was told."""
        self.values = [candidate for candidate in candidates if candidate.rejected_by_parser is None]
        self.unread = [candidate for candidate in candidates if candidate.rejected_by_parser is not None]
        self.calls, self.over, self.restored = state.calls, True, True
        self.agreed = not self.inquiry.question.functional or state.calls_without_acceptance < FUNCTIONAL_SAMPLES

    def verdicts(self) -> list[tuple[Candidate, Verdict]]:
        """One verdict per judged value. Functional values that disagree are all rejected, whatever the critic says."""
        verdicts = self.gate.verdicts
        if not self.agreed:
            reason = "the answers to a question with one right value differ"
            verdicts = [Verdict(one.judged, False, "agreement", None, None, reason) for one in verdicts]
        return list(zip(self.values, verdicts, strict=False))  # a question that was cut has values without a verdict

    def decisions(self, run_id: str, verdicts: Sequence[tuple[Candidate, Verdict]]) -> list[Decision]:
        """What the gates say of every candidate by these verdicts, the parser's refusals included."""
        decided = [
            Decision(run_id, one.gate, candidate.id, one.accepted, one.score, one.threshold, one.reason)
            for candidate, one in verdicts
        ]
        refused = [
            Decision(run_id, "parser", one.id, False, None, None, one.rejected_by_parser or "") for one in self.unread
        ]
        return decided + refused

    def answer(self, given: Sequence[Value], judged: Sequence[tuple[Candidate, Verdict]]) -> Answer:
        """What the question brought by these verdicts, given values first."""
        verdicts = [verdict for _, verdict in judged]
        known = {value_key(value) for value in given}
        accepted = [one.judged for one in verdicts if one.accepted and value_key(one.judged.value) not in known]
        return Answer(
            accepted=(*(Judged(value, None, 1.0) for value in given), *accepted),
            threshold=self.gate.fact_threshold.value,
            calls=self.calls,
            sent=self.sent,
            gates=self._gates(verdicts),
            complete=not self.cut,
        )

    def _gates(self, verdicts: Sequence[Verdict]) -> dict[str, tuple[int, int]]:
        """Accepted and judged values by gate; a value is judged by a gate only if the ones before let it through."""
        counts = {"parser": (len(self.values), len(self.values) + len(self.unread))}
        left = len(verdicts)
        for gate in ("agreement", "type", "critic"):
            stopped = sum(one.gate == gate and not one.accepted for one in verdicts)
            counts[gate] = (left - stopped, left)
            left -= stopped
        return counts


# --- patterns and words ----------------------------------------------------------------------------------------------


def question_words(question: Question, library: Library) -> tuple[str, str]:
    """The variable's name and the sentence with its slot: `B`, `butter is an ingredient in [B]`.

    The name follows from the free position, so that all rules that ask the same question ask it in the same words.
    """
    name = slot_name(question.patterns[0])
    variable = Variable(name, question.data_type)
    atoms = (pattern_atom(pattern, variable) for pattern in question.patterns)
    return name, " and ".join(atom_text(atom, library) for atom in atoms)


def slot_name(pattern: Pattern) -> str:
    """The variable letter of the pattern's free position: A for the first argument, B for the second."""
    return argument_name(pattern.arguments.index(None))


def argument_name(position: int) -> str:
    """A variable name for an argument position; beyond Z numbered, as rules write them."""
    letter = chr(ord("A") + position % 26)
    return letter if position < 26 else f"{letter}{position // 26}"


def filled(pattern: Pattern, value: Value) -> Atom:
    """The ground atom that the pattern becomes with the value."""
    return pattern_atom(pattern, Constant(value))


def pattern_atom(pattern: Pattern, free: Term) -> Atom:
    """The pattern with a term at its free places."""
    return Atom(pattern.predicate, tuple(free if one is None else Constant(one) for one in pattern.arguments))


def atom_values(atom: Atom) -> tuple[Value, ...]:
    """The arguments of a ground atom."""
    return tuple(term.value for term in atom.arguments if isinstance(term, Constant))


def value_key(value: Value) -> Key:
    """What makes two proposals the same value: case does not; a text is never a number."""
    return value.casefold() if isinstance(value, str) else ("number", value)
