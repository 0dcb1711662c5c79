"""One question while it is asked: its wording, the values proposed so far, and when it is finished."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hapax.engine.search.account import QuestionAccount, question_account
from hapax.engine.search.gates import CRITIC, TYPE, GateCount, QuestionGates, Scores, count_by_gate
from hapax.grammar.rules import Library, Tolerance
from hapax.grammar.terms import Atom, Constant, Term, Value, Variable
from hapax.grammar.verbalize import atom_text
from hapax.kb.records import AtomPattern, Candidate, Decision, Question, QuestionState
from hapax.llm_oracle.answers import ParsedValue

EMPTY_CALLS = 2
"""Consecutive calls without an accepted value after which a question is finished (LINK paper, section 2.3)."""

FUNCTIONAL_SAMPLES = 2
"""Calls for a functional question, whose value is believed only if the samples agree (LINK's released code)."""

PERSON = "PersonX"
"""LINK's released code puts this for every generic variable, and compares values with it, too."""

ALPHABET = 26

Key = str | tuple[str, Value]


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A question, and the context in which it is asked.

    `claimed`: patterns that a value makes ground; they are judged and stored as facts. The other patterns (about a
    generic variable, or with a second open argument) appear in the prompt only. `prior`: by gate, the scores of the
    beam's earlier values, for the confidence that LINK's released code accumulates. `variable`: its name in the prompt;
    empty: the letter of its position. `values`, `calls`: number of values to ask for in one call, and limit of calls;
    None: as the settings say. `repeat`: index among the askings of a question that LINK's released code asks anew.
    """

    question: Question
    claimed: tuple[AtomPattern, ...]
    prior: tuple[tuple[str, tuple[float, ...]], ...] = ()
    variable: str = ""
    values: int | None = None
    calls: int | None = None
    repeat: int = 0

    def is_about(self, indicators: Collection[str]) -> bool:
        """True if all patterns are of these predicates."""
        return all(f"{pattern.predicate}/{len(pattern.arguments)}" in indicators for pattern in self.question.patterns)


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The accepted values of a question, and the counts for the report.

    `accepted`: values in the order they came, with the lowest P(yes) over the claims about each; None without a claim.
    `types`: P(yes) of the claim about their type, where there is one. `calls`: all calls, `sent`: those that the
    journal could not answer. `verdicts`: where other inquiries may judge the same values again. `complete` is False
    where the budget ended the question.
    """

    accepted: Mapping[Value, float | None] = field(default_factory=dict)
    types: Mapping[Value, float] = field(default_factory=dict)
    calls: int = 0
    sent: int = 0
    gates: Mapping[str, GateCount] = field(default_factory=dict)
    verdicts: Collection[Decision] = ()
    complete: bool = True
    account: QuestionAccount = field(default_factory=QuestionAccount)

    @property
    def values(self) -> list[Value]:
        return list(self.accepted)


@dataclass(frozen=True, slots=True)
class ParsedGeneration:
    """One generation, parsed into values, and the call that it came from."""

    call_id: str
    parsed: Sequence[ParsedValue]
    refused: bool = False
    """True for a reply without an answer: the model refused, or no reply was usable."""


@dataclass(eq=False, slots=True)
class AskedQuestion:
    """State of one question: its gates, the candidates so far, and whether it is finished.

    `tolerance`: within which the samples about a functional predicate agree; None: they have to be equal.
    `empty`: consecutive calls without an accepted value. `cut`: the budget ended it. `refused`: the last reply has no
    answer. `restored`: its candidates come from an earlier run. `unread`: candidates that the parser rejected. `tries`:
    calls for each sample of a question with one right value, until a reply has a value; `first_sample`: index of the
    first of them. `samples`: number of samples of such a question, which have to agree.
    """

    inquiry: Inquiry
    gates: QuestionGates
    calls_allowed: int
    tolerance: Tolerance | None = None
    tries: int = 1
    first_sample: int = 0
    samples: int = FUNCTIONAL_SAMPLES
    calls: int = 0
    sent: int = 0
    empty: int = 0
    cut: bool = False
    finished: bool = False
    refused: bool = False
    restored: bool = False
    values: list[Candidate] = field(default_factory=list)
    unread: list[Candidate] = field(default_factory=list)
    _stored: tuple[int, int] = (0, 0)
    _reported: tuple[int, int] = (0, 0)
    _seen: set[Key] = field(default_factory=set)
    _samples: list[Value] = field(default_factory=list)
    _failed_tries: int = 0
    _requests: dict[object, int] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return not self.cut and not self.finished

    @property
    def state(self) -> QuestionState:
        """The question's row in the journal."""
        # Disagreement of the samples has no column: it is stored as two calls without acceptance, and read back so.
        empty = self.empty if self.gates.agreed else FUNCTIONAL_SAMPLES
        # Agreement must not look like two calls without acceptance.
        if self.inquiry.question.functional and self.gates.agreed:
            empty = min(empty, FUNCTIONAL_SAMPLES - 1)
        return QuestionState(self.calls, empty, exhausted=self.finished)

    def sample_index(self, *request: object) -> int:
        """Index of the request among its repeats: a repeated request is sampled anew, not read from the journal."""
        index = self._requests.get(request, -1) + 1
        self._requests[request] = index
        return index

    @property
    def next_samples(self) -> range:
        """Indices of the samples that a question with one right value still needs."""
        next_sample = self.first_sample + self.calls
        return range(next_sample, next_sample + self.samples - len(self._samples))

    @property
    def _needs_samples(self) -> bool:
        return len(self._samples) < self.samples and self._failed_tries < self.tries

    def take(self, replies: Sequence[ParsedGeneration]) -> list[Candidate]:
        """Add the replies' values and return the new ones, which the critic has to score."""
        question = self.inquiry.question
        self.calls += len(replies)
        new: list[Candidate] = []
        self.refused = any(reply.refused for reply in replies)
        for reply in replies:
            first: Value | None = None
            for parsed in reply.parsed:
                rejected = parsed.rejected
                if rejected is None and question.functional and first is not None:
                    # Models add guesses after the right value: they are kept, but rejected.
                    rejected = "is not the first value, and only one is right"
                candidate = Candidate(question.id, parsed.value, parsed.raw, reply.call_id, parsed.position, rejected)
                if rejected is not None:
                    self.unread.append(candidate)
                    continue
                key = value_key(parsed.value)
                # The first readable value; later ones of a functional predicate are rejected above.
                first = parsed.value if first is None else first
                if key not in self._seen:
                    self._seen.add(key)
                    new.append(candidate)
            self._add_sample(first)
        has_all = len(self._samples) == self.samples
        self.gates.agreed = not question.functional or (has_all and self._agree(self._samples))
        self.values += new
        return new

    def _add_sample(self, first: Value | None) -> None:
        """Add the first value of a reply to a question with one right value; None: it has none."""
        if not self._needs_samples:
            return
        if first is None:
            self._failed_tries += 1
        else:
            self._samples.append(first)
            self._failed_tries = 0

    def judge(self, scores: Mapping[Candidate, Scores]) -> None:
        """Pass one call's scored candidates to the gates; the question is finished if this was its last call."""
        accepted = self.gates.add(scores)
        self.empty = 0 if accepted else self.empty + 1
        if self.inquiry.question.functional:
            last = not self._needs_samples
        else:
            # The same question, asked once more, would be refused again.
            last = self.refused or self.calls >= self.calls_allowed or self.empty >= EMPTY_CALLS
        # A question that the budget cut is not finished: a later run goes on with it.
        self.finished = not self.cut and (self.finished or last)

    def end(self) -> None:
        """Give the gates their last word once all calls are judged; a question that the budget cut goes on later."""
        if self.finished:
            self.gates.end()

    @property
    def is_starved(self) -> bool:
        """True if all calls are over, and the scores of the values were too low for each of them."""
        return self.finished and self.gates.is_starved

    def restore(self, state: QuestionState, candidates: Sequence[Candidate]) -> None:
        """Take the state and the candidates that an earlier run stored."""
        self.values = [candidate for candidate in candidates if candidate.rejected_by_parser is None]
        self.unread = [candidate for candidate in candidates if candidate.rejected_by_parser is not None]
        # Only exhausted questions are restored.
        self.calls, self.finished, self.restored = state.calls, True, True
        functional = self.inquiry.question.functional
        # Values that differ are judged by the tolerance of today, whatever it was when they were asked.
        first_values = [candidate.value for candidate in self.values]
        agreed = state.calls_without_acceptance < FUNCTIONAL_SAMPLES
        self.gates.agreed = not functional or (self._agree(first_values) if len(first_values) > 1 else agreed)

    def _agree(self, values: Sequence[Value]) -> bool:
        """Tell if the values agree, and have the gates take the first of values that are not equal."""
        taken, *others = values
        self.gates.taken = taken
        if self.tolerance is None:
            return all(value_key(value) == value_key(taken) for value in others)
        return all(self.tolerance.covers(taken, value) for value in others)

    def unstored(self) -> list[Candidate]:
        """Candidates added since the last call of this method."""
        values, unread = self._stored
        self._stored = (len(self.values), len(self.unread))
        return [*self.values[values:], *self.unread[unread:]]

    def change(self) -> tuple[int, int]:
        """By how much the numbers of accepted and of rejected candidates grew since the last call of this method."""
        accepted = len(self.gates.accepted)
        now = (accepted, len(self.values) + len(self.unread) - accepted)
        before, self._reported = self._reported, now
        return now[0] - before[0], now[1] - before[1]

    def decisions(self, run_id: str) -> list[tuple[Candidate, Decision]]:
        """The gates' verdict on each candidate. Values of a question that the budget cut may have none yet."""
        # `values` may end with candidates that the budget left unscored; the gates do not have them.
        candidates = [*self.gates.scores, *self.unread]
        return list(zip(candidates, self.gates.decisions(candidates, run_id), strict=True))

    def answer(
        self, given: Iterable[Value], decisions: Sequence[tuple[Candidate, Decision]], judged_again: bool = False
    ) -> QuestionAnswer:
        """The accepted values by these decisions; values of given facts come first, with probability 1.

        `judged_again`: other inquiries may judge the same values.
        """
        accepted: dict[Value, float | None] = dict.fromkeys(given, 1.0)
        known = {value_key(value) for value in accepted}
        types: dict[Value, float] = {}
        for candidate, decision in decisions:
            # A proposed value that is a given fact already must not make a second beam.
            if decision.accepted and value_key(candidate.value) not in known:
                scores = self.gates.scores[candidate]
                accepted[candidate.value] = scores.get(CRITIC.name)
                if judged_again and TYPE.name in scores:
                    types[candidate.value] = scores[TYPE.name]
        verdicts = [decision for _, decision in decisions]
        return QuestionAnswer(
            accepted,
            types,
            self.calls,
            self.sent,
            count_by_gate(verdicts, self.gates.order),
            verdicts if judged_again else (),
            complete=not self.cut,
            account=question_account(self.calls, decisions, len(self.values) - len(self.gates.scores), len(known)),
        )


# --- patterns and words ----------------------------------------------------------------------------------------------


def question_words(question: Question, library: Library, name: str = "") -> tuple[str, str]:
    """The variable's name and the sentence with its slot: `B`, `butter is an ingredient in [B]`.

    Unless the name is given, it follows from the free position alone, so that all rules word the same question in the
    same way.
    """
    name = name or slot_name(question.patterns[0])
    variable = Variable(name, question.data_type)
    atoms = (pattern_atom(pattern, variable) for pattern in question.patterns)
    return name, " and ".join(atom_text(atom, library) for atom in atoms)


def slot_name(pattern: AtomPattern) -> str:
    """The variable's letter for the pattern's free position: A for the first argument, B for the second."""
    return argument_name(pattern.arguments.index(None))


def argument_name(position: int) -> str:
    """A variable name for an argument position: A to Z, then A1 to Z1 and so on."""
    letter = chr(ord("A") + position % ALPHABET)
    return letter if position < ALPHABET else f"{letter}{position // ALPHABET}"


def filled(pattern: AtomPattern, value: Value) -> Atom:
    """The pattern with the value at its free positions."""
    return pattern_atom(pattern, Constant(value))


def pattern_atom(pattern: AtomPattern, free: Term) -> Atom:
    """The pattern with a term at its free positions."""
    arguments = (free if argument is None else Constant(argument) for argument in pattern.arguments)
    return Atom(pattern.predicate, tuple(arguments))


def opened_atom(pattern: AtomPattern, free: Term) -> Atom:
    """As `pattern_atom`, for a pattern of which other positions are open, too: each slot becomes a variable."""
    arguments: list[Term] = []
    for position, term in enumerate(pattern_atom(pattern, free).arguments):
        is_slot = isinstance(term, Constant) and term.value == f"[{argument_name(position)}]"
        arguments.append(Variable(f"Open{position}", "") if is_slot else term)
    return Atom(pattern.predicate, tuple(arguments))


def value_key(value: Value) -> Key:
    """Key under which two proposals are the same value: texts are compared without case, and never equal a number."""
    return value.casefold() if isinstance(value, str) else ("number", value)
