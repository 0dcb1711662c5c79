"""Measures which prompt profile suits a model, on questions whose answers are known."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.questions.profiles import (
    FEW_SHOT,
    HAPAX,
    JSON,
    PAPER,
    PLAIN,
    AnsweredExample,
    Profile,
    ValueQuestion,
)
from hapax.llm_oracle.reading.reply_question import ReplyQuestion

PROBED_VALUES = 5
"""Values that a probe asks for."""

PROBED_EXAMPLES = 3
"""Worked examples in a probe of the profile `few-shot`."""

PROBED_TOKENS = 200
"""Tokens of a reply, several times those of a short list."""

PROBED_PROFILES = (HAPAX, PLAIN, FEW_SHOT, JSON, PAPER)
"""Profiles that are tried, in order. LINK's other words differ from these by little."""

ENOUGH = 0.75
"""Share of the known answers from which a model needs no other words."""

MOST_TRIALS = len(PROBED_PROFILES)
"""Requests at most, one for each profile."""

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
    def rank(self) -> tuple[float, int, int]:
        """Greatest for the best profile: largest share of known answers, then fewest dropped lines and tokens."""
        return self.share, -self.dropped, -self.tokens


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


def probe_profiles(generator: JournaledGenerator, most_tokens: int = PROBED_TOKENS) -> list[ProfileScore]:
    """Try profiles at temperature 0 until one brings enough of the known answers. Raises BudgetReached.

    Each is tried on one question. A second one then shows what a model knows that understands the usual words.
    """
    scores: list[ProfileScore] = []
    for profile in PROBED_PROFILES:
        scores.append(_tried(generator, profile, 1, most_tokens))
        if scores[-1].share >= ENOUGH:
            return scores if scores[1:] else [_tried(generator, profile, 2, most_tokens)]
    return scores


def _tried(generator: JournaledGenerator, profile: Profile, count: int, most_tokens: int) -> ProfileScore:
    """The result of a profile on the first questions."""
    # Here, because a goal over facts loads this module, and needs no reader of replies.
    from hapax.llm_oracle.reading.replies import read_reply

    questions = known_questions()[:count]
    requests = []
    for known in questions:
        # Not the question itself, whose example would tell its answers.
        others = [_worked(other) for other in known_questions() if other is not known and not other.question.functional]
        worded = replace(known.question, examples=tuple(others[:PROBED_EXAMPLES]))
        requests.append(GenerationRequest(profile.word(worded), form=profile.reply_form(worded)))
    # Greedy, so that chance has no part in the choice.
    replies = generator.generate(requests, GenerationParameters(temperature=0.0, max_tokens=most_tokens))
    found = dropped = 0
    for known, generation in zip(questions, replies, strict=True):
        asked = known.question
        read = ReplyQuestion(asked.variable, asked.data_type, asked.sentence, asked.numeric)
        reply = read_reply(profile.own_part(generation.text), read, generation.finish_reason)
        # No reply counts beyond the requested length: a model that lists every city of the world knows no more.
        found += known.known_in(reply.values[: asked.count])
        dropped += len(reply.dropped)
    tokens = sum(generation.usage.tokens for generation in replies)
    return ProfileScore(profile, found, sum(known.most for known in questions), dropped, tokens)


def _worked(known: KnownQuestion) -> AnsweredExample:
    question = known.question
    return AnsweredExample(question.blank_sentence, question.data_type, known.answers[:PROBED_VALUES])


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).removeprefix("the ")
