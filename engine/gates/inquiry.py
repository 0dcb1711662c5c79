"""One question while it is asked: its wording, the values proposed so far, and when it is finished."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from hapax.engine.gates.account import QuestionAccount, question_account
from hapax.engine.gates.gates import CRITIC, TYPE, GateCount, QuestionGates, Scores, count_by_gate
from hapax.engine.inference.run_facts import RunFacts
from hapax.grammar.parsing.declarations import Tolerance
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Term, Value, Variable
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.records import AtomPattern, Candidate, Decision, Question, QuestionState
from hapax.llm_oracle.protocols import GenerationRequest
from hapax.llm_oracle.questions.profiles import BLANK, FEW_SHOT, AnsweredExample, Profile, ValueQuestion
from hapax.llm_oracle.questions.prompts import exclusion_clause
from hapax.llm_oracle.reading.link_replies import ParsedValue

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
        return all(pattern.indicator in indicators for pattern in self.question.patterns)


@dataclass(frozen=True, slots=True)
class QuestionAnswer:
    """The accepted values of a question, and the counts for the report.

    `accepted`: values in the order they came, with the lowest P(yes) over the claims about each; None without a claim.
    `types`: P(yes) of the claim about their type, where there is one. `calls`: all calls, `sent`: those that the
    journal could not answer. `verdicts`: where other inquiries may judge the same values again. `waiting`: values that
    nobody needs so far. `complete` is False where the budget ended the question.
    """

    accepted: Mapping[Value, float | None] = field(default_factory=dict)
    types: Mapping[Value, float] = field(default_factory=dict)
    calls: int = 0
    sent: int = 0
    gates: Mapping[str, GateCount] = field(default_factory=dict)
    verdicts: Collection[Decision] = ()
    waiting: Sequence[Value] = ()
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
    cut_off: bool = False
    """True if the token limit ended it."""


@dataclass(eq=False, slots=True)
class AskedQuestion:
    """State of one question: its gates, the candidates so far, and whether it is finished.

    `tolerance`: within which the samples about a functional predicate agree; None: they have to be equal. `empty`:
    consecutive calls without an accepted value. `cut`: the budget ended it. `refused`: the last reply has no answer.
    `restored`: its candidates come from an earlier run. `unread`: candidates that the parser rejected; `newest`: all of
    the last call. `tries`: calls for each sample of a question with one right value, until a reply has a value;
    `first_sample`: index of the first of them. `samples`: number of samples of such a question, which have to agree.
    `waiting`: values that no rule needs so far, so that nothing is paid for judging them. `wanted`: entries of a reply
    below which the model has no more to say; 0: a short list means nothing.
    """

    inquiry: Inquiry
    gates: QuestionGates
    calls_allowed: int
    tolerance: Tolerance | None = None
    tries: int = 1
    first_sample: int = 0
    samples: int = FUNCTIONAL_SAMPLES
    wanted: int = 0
    calls: int = 0
    sent: int = 0
    empty: int = 0
    cut: bool = False
    finished: bool = False
    refused: bool = False
    is_short: bool = False
    restored: bool = False
    values: list[Candidate] = field(default_factory=list)
    unread: list[Candidate] = field(default_factory=list)
    newest: list[Candidate] = field(default_factory=list)
    waiting: list[Candidate] = field(default_factory=list)
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
    def has_dissent(self) -> bool:
        """True if the samples of a question with one right value are all there and differ."""
        return not self.gates.agreed and (self.restored or len(self._samples) == self.samples)

    @property
    def _needs_samples(self) -> bool:
        return len(self._samples) < self.samples and self._failed_tries < self.tries

    def take(self, replies: Sequence[ParsedGeneration]) -> list[Candidate]:
        """Add the replies' values and return the new ones, which the critic has to score."""
        question = self.inquiry.question
        self.calls += len(replies)
        new: list[Candidate] = []
        read_before = len(self.unread)
        self.refused = any(reply.refused for reply in replies)
        self.is_short = any(len(reply.parsed) < self.wanted and not reply.cut_off for reply in replies)
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
            if self._needs_samples:
                self._failed_tries = self._failed_tries + 1 if first is None else 0
                self._samples += [] if first is None else [first]
        has_all = len(self._samples) == self.samples
        self.gates.agreed = not question.functional or (has_all and self._agree(self._samples))
        self.values += new
        self.newest = [*new, *self.unread[read_before:]]
        return new

    def judge(self, scores: Mapping[Candidate, Scores]) -> None:
        """Pass one call's scored candidates to the gates; the question is finished if this was its last call."""
        accepted = self.gates.add(scores)
        self.empty = 0 if accepted or self.waiting else self.empty + 1
        if self.inquiry.question.functional:
            last = not self._needs_samples
        else:
            # The same question, asked once more, would be refused again.
            has_said_all = self.is_short or self.empty >= EMPTY_CALLS
            last = self.refused or has_said_all or self.calls >= self.calls_allowed
        # A question that the budget cut is not finished: a later run goes on with it.
        self.finished = not self.cut and (self.finished or last)

    def end(self) -> None:
        """Give the gates their last word once all values are judged; a question that the budget cut goes on later."""
        if self.finished and not self.waiting:
            self.gates.end()

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
        taken, *later = values
        self.gates.taken = taken
        if self.tolerance is None:
            return all(value_key(value) == value_key(taken) for value in later)
        return all(self.tolerance.covers(taken, value) for value in later)

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
            [candidate.value for candidate in self.waiting],
            complete=not self.cut,
            account=question_account(self.calls, decisions, len(self.values) - len(self.gates.scores), len(known)),
        )


# --- patterns and words ----------------------------------------------------------------------------------------------


def question_words(question: Question, library: Library, name: str = "") -> tuple[str, str]:
    """The variable's name and the sentence with its slot: `B`, `butter is an ingredient in [B]`.

    Unless the name is given, it follows from the free position alone, so that all rules word the same question in the
    same way.
    """
    # A for the first argument, B for the second.
    name = name or argument_name(question.patterns[0].arguments.index(None))
    variable = Variable(name, question.data_type)
    atoms = (pattern.filled(variable) for pattern in question.patterns)
    return name, " and ".join(atom_text(atom, library) for atom in atoms)


def argument_name(position: int) -> str:
    """A variable name for an argument position: A to Z, then A1 to Z1 and so on."""
    letter = chr(ord("A") + position % ALPHABET)
    return letter if position < ALPHABET else f"{letter}{position // ALPHABET}"


def opened_atom(pattern: AtomPattern, free: Term) -> Atom:
    """Like `AtomPattern.filled`, but several positions may be open: each slot becomes a variable."""
    arguments: list[Term] = []
    for position, term in enumerate(pattern.filled(free).arguments):
        is_slot = isinstance(term, Constant) and term.value == f"[{argument_name(position)}]"
        arguments.append(Variable(f"Open{position}", "") if is_slot else term)
    return Atom(pattern.predicate, tuple(arguments))


def value_key(value: Value) -> Key:
    """Key under which two proposals are the same value: texts are compared without case, and never equal a number."""
    return value.casefold() if isinstance(value, str) else ("number", value)


# --- wording in a prompt profile --------------------------------------------------------------------------------------

EXAMPLES = 3
"""Worked examples in a prompt of the profile `few-shot`."""

EXAMPLE_VALUES = 5
"""Values of a worked example."""

Rows = dict[tuple[Value, ...], list[Value]]
"""Values at one argument place of a predicate, by the other arguments."""

# `[B]` or `[A1]`: the slot of a variable without a value
_BRACKETS = re.compile(r"\[([A-Z][0-9]{0,3})\]")


@dataclass
class QuestionWording:
    """Words the questions of a run by one profile.

    `general`: examples for `few-shot` where neither given facts nor `@example` lines have any.
    """

    profile: Profile
    library: Library
    known: RunFacts
    general: tuple[AnsweredExample, ...] = ()
    _rows: dict[tuple[str, int], Rows] = field(default_factory=dict)

    def request(
        self,
        question: Question,
        count: int,
        excluded: tuple[str, ...] = (),
        sample_index: int = 0,
        *,
        rejected: tuple[str, ...] | None = None,
        variable: str = "",
    ) -> GenerationRequest:
        """The request for `count` values other than the excluded ones.

        `rejected`: LINK's way, where words exclude the others, and a bias the tokens of these.
        """
        worded = self.question(question, count, excluded, variable)
        prompt, form = self.profile.word(worded), self.profile.reply_form(worded)
        if rejected is None:
            # A question without a value has a list too long to share an answer.
            arguments = sum(len(pattern.arguments) for pattern in question.patterns)
            has_value = len(question.patterns) + len(worded.open_types) < arguments
            listed = self.profile.listed(worded) if has_value and not excluded else None
            return GenerationRequest(prompt, excluded, sample_index=sample_index, form=form, listed=listed)
        if not self.profile.names_forbidden:
            prompt += exclusion_clause(excluded)
        return GenerationRequest(prompt, (), rejected, sample_index, form)

    def question(
        self, question: Question, count: int, forbidden: tuple[str, ...] = (), variable: str = ""
    ) -> ValueQuestion:
        """The question in all forms that a wording may need. `variable`: its name; empty: the letter of its place."""
        variable, words = question_words(question, self.library, variable)
        worded = ValueQuestion(
            variable,
            words,
            tuple(_predicate_form(pattern, variable) for pattern in question.patterns),
            question.data_type,
            count,
            question.functional,
            self.library.is_numeric(question.data_type),
            forbidden,
            open_types=tuple(self._open_types(question)),
        )
        if self.profile is not FEW_SHOT:
            return worded
        return replace(worded, examples=tuple(islice(self._examples(question), EXAMPLES)))

    def _open_types(self, question: Question) -> Iterator[tuple[str, str]]:
        """Name and data type of each open argument beside the requested one, which the patterns hold as `[B]`."""
        for pattern in question.patterns:
            types = self.library.signature(pattern.indicator).argument_types
            for argument, data_type in zip(pattern.arguments, types, strict=True):
                slot = _BRACKETS.fullmatch(argument) if isinstance(argument, str) else None
                if slot:
                    yield slot[1], data_type

    # -- examples

    def _examples(self, question: Question) -> Iterator[AnsweredExample]:
        """Worked examples: of the question's predicate, else of others with the slot at the same place, else general.

        No example mentions a value of the question, since a symmetric or similar predicate would then give an answer
        away, and none shows a value that is known to answer it.
        """
        pattern = question.patterns[0]
        place = pattern.arguments.index(None)
        answers = {value_key(value) for value in self._known_answers(question)}
        asked = chain.from_iterable(pattern.arguments for pattern in question.patterns)
        known = [value for value in asked if value is not None]
        mentioned = set(map(value_key, known))
        for indicator in self._indicators(pattern, place):
            yield from self._examples_of(indicator, place, mentioned, answers)
        # A value of the question anywhere in a general example would give an answer away.
        texts = [str(value).casefold() for value in known]
        for example in self.general:
            whole = " ".join((example.sentence, *example.values)).casefold()
            if not any(text in whole for text in texts) and not answers.intersection(map(value_key, example.values)):
                yield example

    def _indicators(self, pattern: AtomPattern, place: int) -> Iterator[str]:
        """The pattern's predicate, then those of the same shape: as many arguments, the slot's of the same type."""
        own = pattern.indicator
        yield own
        data_type = self.library.signature(own).argument_types[place]
        for signature in sorted(self.library.completed().signatures, key=lambda signature: signature.indicator):
            types = signature.argument_types
            alike = len(types) == len(pattern.arguments) and types[place] == data_type
            if alike and signature.indicator != own and signature.templates is not None:
                yield signature.indicator

    def _examples_of(
        self, indicator: str, place: int, mentioned: set[Key], answers: set[Key]
    ) -> Iterator[AnsweredExample]:
        """Examples of one predicate, those with most values first."""
        data_type = self.library.signature(indicator).argument_types[place]
        rows = self.rows_of(indicator, place)
        for key in sorted(rows, key=lambda key: (-len(rows[key]), tuple(map(str, key)))):
            if mentioned.intersection(map(value_key, (*key, *rows[key]))):
                continue
            values = [str(value) for value in rows[key] if value_key(value) not in answers]
            if values:
                sentence = self._blank_sentence(indicator.rpartition("/")[0], key, place, data_type)
                yield AnsweredExample(sentence, data_type, tuple(values[:EXAMPLE_VALUES]))

    def rows_of(self, indicator: str, place: int) -> Rows:
        """Values at this place in given facts and `@example` lines, by the other arguments."""
        rows = self._rows.get((indicator, place))
        if rows is None:
            rows = {}
            stated = (atom.values for atom in self.library.examples if atom.indicator == indicator)
            for arguments in (*self.known.given_rows(indicator), *stated):
                key = arguments[:place] + arguments[place + 1 :]
                values = rows.setdefault(key, [])
                if arguments[place] not in values:
                    values.append(arguments[place])
            self._rows[indicator, place] = rows
        return rows

    def _known_answers(self, question: Question) -> Iterator[Value]:
        """Values that given facts or `@example` lines state for one of the question's patterns."""
        for pattern in question.patterns:
            indicator = pattern.indicator
            place = pattern.arguments.index(None)
            key = tuple(argument for argument in pattern.arguments if argument is not None)
            for known_key, values in self.rows_of(indicator, place).items():
                if tuple(map(value_key, known_key)) == tuple(map(value_key, key)):
                    yield from values

    def _blank_sentence(self, predicate: str, key: tuple[Value, ...], place: int, data_type: str) -> str:
        """The sentence of an example, with `BLANK` at its place."""
        arguments = [Constant(value) for value in key]
        slot = Variable("BLANK", data_type)
        atom = Atom(predicate, (*arguments[:place], slot, *arguments[place:]))
        return atom_text(atom, self.library).replace(f"[{slot.name}]", BLANK)


def _predicate_form(pattern: AtomPattern, variable: str) -> str:
    """`ingredient_in(butter, B)`: the values as they are, without quotation marks, as LINK writes them."""
    arguments = []
    for argument in pattern.arguments:
        text = variable if argument is None else str(argument)
        open_slot = _BRACKETS.fullmatch(text)  # another variable without a value
        arguments.append(open_slot[1] if open_slot else text)
    return f"{pattern.predicate}({', '.join(arguments)})"
