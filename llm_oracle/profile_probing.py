"""Measures which prompt profile suits a model, on questions whose answers are known."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.profiles import FEW_SHOT, PROFILES, AnsweredExample, Profile, ValueQuestion
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest
from hapax.llm_oracle.replies import read_reply
from hapax.llm_oracle.reply_question import ReplyQuestion

PROBED_VALUES = 5
"""Values that a probe asks for."""

PROBED_EXAMPLES = 3
"""Worked examples in a probe of the profile `few-shot`."""

PROBED_TOKENS = 200
"""Tokens of a reply, several times those of a short list."""

_KNOWN_ANSWERS = Path(__file__).with_name("known_answers.toml")


@dataclass(frozen=True, slots=True)
class KnownQuestion:
    """A question with known answers. The question asks for `PROBED_VALUES` at most. `wrong`: values that are false."""

    question: ValueQuestion
    answers: tuple[str, ...]
    wrong: tuple[str, ...] = ()

    @property
    def most(self) -> int:
        """Number of known answers that a reply of the requested length can hold."""
        return min(self.question.count, len(self.answers))

    def known_in(self, values: Sequence[object]) -> int:
        """Number of known answers among values; case and a leading article make no difference."""
        return len({_plain(str(value)) for value in values} & set(map(_plain, self.answers)))


@dataclass(frozen=True, slots=True)
class ProfileScore:
    """Result of one profile: known answers, dropped lines and tokens, over all its probes.

    `most`: known answers that the probes could bring.
    """

    profile: Profile
    known: int
    most: int
    dropped: int
    tokens: int

    @property
    def share(self) -> float:
        """Share of the known answers that it brought."""
        return self.known / self.most

    @property
    def rank(self) -> tuple[int, int, int]:
        """Greatest for the best profile: most known answers, then fewest dropped lines, then fewest tokens."""
        return self.known, -self.dropped, -self.tokens


@cache
def known_questions() -> tuple[KnownQuestion, ...]:
    """The questions of `known_answers.toml`."""
    entries = tomllib.loads(_KNOWN_ANSWERS.read_text("utf-8"))["question"]
    questions: list[KnownQuestion] = []
    for entry in entries:
        functional = entry.get("functional", False)
        question = ValueQuestion(
            entry["variable"],
            entry["sentence"],
            (entry["atom"],),
            entry["data_type"],
            1 if functional else PROBED_VALUES,
            functional,
            entry.get("numeric", False),
        )
        questions.append(KnownQuestion(question, tuple(entry["answers"]), tuple(entry["wrong"])))
    return tuple(questions)


@cache
def general_examples() -> tuple[AnsweredExample, ...]:
    """The questions of `known_answers.toml` as worked examples, lists only."""
    return tuple(_worked(known) for known in known_questions() if not known.question.functional)


def probe_profiles(
    generator: JournaledGenerator,
    questions: Sequence[KnownQuestion],
    most_tokens: int = PROBED_TOKENS,
    profiles: Sequence[Profile] = PROFILES,
) -> list[ProfileScore]:
    """Ask all questions in the words of each of these profiles, at temperature 0. Raises BudgetReached."""
    # Greedy, so that chance has no part in the choice.
    parameters = GenerationParameters(temperature=0.0, max_tokens=most_tokens)
    scores = []
    # Profile by profile, so that what a slow model has answered is kept if the run is interrupted.
    for profile in profiles:
        requests = []
        for known in questions:
            worded = _with_examples(known, questions) if profile is FEW_SHOT else known.question
            requests.append(GenerationRequest(profile.word(worded), form=profile.reply_form(worded)))
        replies = generator.generate(requests, parameters)
        scores.append(_score(profile, list(zip(questions, replies, strict=True))))
    return scores


def _with_examples(known: KnownQuestion, questions: Sequence[KnownQuestion]) -> ValueQuestion:
    """The question with other ones as examples, unless it has its own, such as those of a user's predicate."""
    if known.question.examples:
        return known.question
    # Not the question itself, whose example would tell its answers.
    others = [_worked(question) for question in questions if question is not known and not question.question.functional]
    return replace(known.question, examples=tuple(others[:PROBED_EXAMPLES]))


def _worked(known: KnownQuestion) -> AnsweredExample:
    question = known.question
    return AnsweredExample(question.blank_sentence, question.data_type, known.answers[:PROBED_VALUES])


def _score(profile: Profile, answered: Sequence[tuple[KnownQuestion, Generation]]) -> ProfileScore:
    found = most = dropped = tokens = 0
    for known, generation in answered:
        asked = known.question
        read = ReplyQuestion(asked.variable, asked.data_type, asked.sentence, asked.numeric)
        reply = read_reply(profile.own_part(generation.text), read, generation.finish_reason)
        # No reply counts beyond the requested length: a model that lists every city of the world knows no more.
        found += known.known_in(reply.values[: asked.count])
        most += known.most
        dropped += len(reply.dropped)
        tokens += generation.usage.prompt_tokens + generation.usage.completion_tokens
    return ProfileScore(profile, found, most, dropped, tokens)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).removeprefix("the ")
