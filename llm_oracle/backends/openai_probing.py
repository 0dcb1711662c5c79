"""Finds out at start what a server can do, by asking it, never by its name.

Servers ignore what they do not know: a completion comes without log-probabilities, an echo without an echo. Each probe
is a request whose right answer is known, and a way of asking counts only where the answer shows that it works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from grammar.errors import HapaxError
from llm_oracle.answers import parse_yes_no
from llm_oracle.backends.openai_aliases import ServedModel
from llm_oracle.backends.openai_limits import Fault
from llm_oracle.backends.openai_transport import Answer, Ask, Exhausted, Read, Refused, Transport
from llm_oracle.backends.openai_wire import (
    CHAT,
    COMPLETIONS,
    SYSTEM_ONE,
    echoed_likelihood,
    first_token_yes,
    guessed_tokens,
    logprobs_options,
    model_reported,
    prompt_likelihood,
    request_body,
    system_one_yes,
    texts,
)
from llm_oracle.prompts import critic_prompt
from llm_oracle.protocols import LogLikelihood

KNOWN_CLAIM = "Paris is the capital of France."
KNOWN_UNLIKELY = "France capital the of is Paris."
"""The same words in an order that every language model finds less likely."""

LOGPROBS, VOTE = "logprobs", "vote"
ECHO, PROMPT_LOGPROBS = "echo", "prompt_logprobs"

MOST_TOP = 20
"""Likeliest tokens asked for: OpenAI's and vLLM's limit for chats; completions may allow fewer."""

VOTE_TOKENS = {CHAT: 256, COMPLETIONS: 8}
"""Room for one vote; a chat may think aloud before it says yes or no."""

_STATED_LIKELIHOODS = {"echo": ECHO, "prompt": PROMPT_LOGPROBS}

_OPTIONAL = ("temperature", "top_p", "seed")

PLAIN_SAMPLING = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}
"""Switches off what llama.cpp and vLLM do to sampling unasked. OpenAI has none of it and refuses the words."""
_NOT_THIS_MODEL = frozenset({401, 402, 403, 429})
"""Refusals that another way of asking would meet, too."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server is asked for an answer: its endpoint, and the options that this model does not take."""

    endpoint: str
    dropped: tuple[str, ...] = ()
    limit_name: str = "max_tokens"
    plain: bool = True
    reported: str = ""

    def ask(self, model: str, prompt: str, tokens: int, **options: Any) -> Ask:
        """A request for at most so many tokens of answer."""
        taken = {name: value for name, value in options.items() if name not in self.dropped}
        body = request_body(self.endpoint, model, prompt, **{self.limit_name: tokens}, **taken)
        return Ask(self.endpoint, body, guessed_tokens(prompt) + tokens)

    def sample(self, model: str, prompt: str, tokens: int, **options: Any) -> Ask:
        """A request that samples by temperature and top_p alone, where the server lets that be said."""
        return self.ask(model, prompt, tokens, **options, **(PLAIN_SAMPLING if self.plain else {}))

    def told(self, served: ServedModel) -> list[str]:
        """What of it the journal must know: whatever may change an answer."""
        version = served.revision or (self.reported if self.reported != served.model else "")
        without = f"without {', '.join(sorted(self.dropped))}" if self.dropped else ""
        return [part for part in (version, self.endpoint.partition("/")[0], without) if part]


@dataclass(frozen=True, slots=True)
class CriticWay:
    """How P(yes) is had: from log-probabilities, from a decision endpoint, or by a vote of samples."""

    kind: str
    top: int = MOST_TOP
    several: bool = True
    """Whether one request gives several samples (`n`)."""

    def told(self, votes: int) -> str:
        """What of it the journal must know, so that votes are never taken for probabilities."""
        return f"{VOTE} of {votes}" if self.kind == VOTE else self.kind


@dataclass(frozen=True, slots=True)
class LikelihoodWay:
    """How ln P of a text is had."""

    kind: str
    reported: str = ""

    def ask(self, model: str, text: str) -> Ask:
        """A request that scores the text. One token of answer is the least that all servers give."""
        option: dict[str, Any] = {"echo": True, "logprobs": 1} if self.kind == ECHO else {"prompt_logprobs": 0}
        body = request_body(COMPLETIONS, model, text, max_tokens=1, temperature=0, **option)
        return Ask(COMPLETIONS, body, guessed_tokens(text) + 1)

    def read(self, reply: Any, text: str) -> LogLikelihood | None:
        return echoed_likelihood(reply, text) if self.kind == ECHO else prompt_likelihood(reply)


def _answer(transport: Transport, ask: Ask, read: Read[Answer]) -> Answer:
    """The answer to one probe; a refusal is raised, whomever it concerns."""
    (found,) = transport.ask([ask], read)
    if isinstance(found, Refused):
        raise found
    return found


def stated_manner(served: ServedModel) -> Manner:
    """The manner by the alias alone."""
    return Manner(COMPLETIONS if served.completion else CHAT, plain=False)


def stated_critic(served: ServedModel) -> CriticWay:
    """The critic's way by the alias alone."""
    top = 5 if served.completion else MOST_TOP
    return CriticWay(VOTE if served.logprobs == "none" else LOGPROBS, top)


def stated_likelihood(served: ServedModel) -> LikelihoodWay:
    """The likelihood's way by the alias alone."""
    if served.logprobs not in _STATED_LIKELIHOODS:
        raise HapaxError(
            f"{served.name} gives no likelihood of a text: its alias says `logprobs: {served.logprobs}`. "
            "Choose --likelihood frequency, or a server that echoes texts."
        )
    return LikelihoodWay(_STATED_LIKELIHOODS[served.logprobs])


def probe_manner(transport: Transport, served: ServedModel) -> Manner:
    """Chat where the server answers one, else completions; the alias may say which. Raises what the first one met."""
    endpoints = {True: (COMPLETIONS,), False: (CHAT,), None: (CHAT, COMPLETIONS)}[served.completion]
    first: HapaxError | None = None
    for endpoint in endpoints:
        try:
            return _settled(transport, served, Manner(endpoint))
        except (Refused, Exhausted) as fault:
            if fault.status is None or fault.status in _NOT_THIS_MODEL:
                raise
            first = first or fault
    assert first is not None  # noqa: S101  # there is at least one endpoint
    raise first


def _settled(transport: Transport, served: ServedModel, manner: Manner) -> Manner:
    """The manner without the options that the model refuses by name."""
    while True:
        ask = manner.sample(served.model, KNOWN_CLAIM, 16, temperature=0.7, top_p=1.0, seed=1)

        try:
            reported = _answer(transport, ask, _reported)
        except Refused as refused:
            manner = _without_refused(manner, refused)
        else:
            return replace(manner, reported=reported)


def _reported(reply: Any, ask: Ask) -> str:  # noqa: ARG001  # one shape for all readers
    texts(reply)
    return model_reported(reply)


def _without_refused(manner: Manner, refused: Refused) -> Manner:
    if refused.status in (400, 422):
        if "max_completion_tokens" in refused.said and manner.limit_name == "max_tokens":
            return replace(manner, limit_name="max_completion_tokens")
        if manner.plain and any(option in refused.said for option in PLAIN_SAMPLING):
            return replace(manner, plain=False)
        for option in _OPTIONAL:
            if option in refused.said and option not in manner.dropped:
                return replace(manner, dropped=(*manner.dropped, option))
    raise refused


def probe_critic(transport: Transport, served: ServedModel, manner: Manner) -> CriticWay:
    """Log-probabilities where the server gives them, else its decision endpoint, else a vote.

    A model that never says yes or no is refused.
    """
    prompt = critic_prompt(KNOWN_CLAIM)
    for top in (MOST_TOP, 5):
        if _works(transport, critic_ask(served.model, prompt, manner, top), first_token_yes):
            return CriticWay(LOGPROBS, top)
    if _works(transport, system_one_ask(served.model, prompt), system_one_yes):
        return CriticWay(SYSTEM_ONE)
    for several in (True, False):
        ask = vote_ask(served.model, prompt, manner, seed=1, samples=2 if several else 1)
        found = _found(transport, ask, texts)
        if found is not None and len(found) == (2 if several else 1):
            if all(parse_yes_no(text) is None for text in found):
                continue
            return CriticWay(VOTE, several=several)
    raise HapaxError(
        f"{served.name} cannot be a critic: it gives no log-probabilities, and asked whether a statement is correct it "
        f"says neither yes nor no. Choose another --critic."
    )


def probe_likelihood(transport: Transport, served: ServedModel) -> LikelihoodWay:
    """Echo or prompt_logprobs, whichever scores all of a known text and finds it likelier than its words in a mess."""
    for kind in (ECHO, PROMPT_LOGPROBS):
        way = LikelihoodWay(kind)
        scored = [_scored(transport, served, way, text) for text in (KNOWN_CLAIM, KNOWN_UNLIKELY)]
        (likely, reported), (unlikely, _) = scored
        if likely and unlikely and likely.token_count > 1 and likely.total > unlikely.total:
            return replace(way, reported=reported)
    raise HapaxError(
        f"{served.name} gives no likelihood of a text: its completions neither echo a text with log-probabilities nor "
        "know prompt_logprobs. Choose --likelihood frequency, or a server that does, such as vLLM or llama-cpp-python."
    )


def _scored(
    transport: Transport, served: ServedModel, way: LikelihoodWay, text: str
) -> tuple[LogLikelihood | None, str]:
    return _found(
        transport, way.ask(served.model, text), lambda reply: (way.read(reply, text), model_reported(reply))
    ) or (None, "")


def critic_ask(model: str, prompt: str, manner: Manner, top: int) -> Ask:
    """A request for the likeliest first tokens of the answer. At temperature 1 the scores are the model's own."""
    return manner.ask(model, prompt, 1, temperature=1, top_p=1, **logprobs_options(manner.endpoint, top))


def system_one_ask(model: str, prompt: str) -> Ask:
    """A request for a decision between yes and no."""
    body = {"model": model, "state": prompt, "questions": {"holds": {"type": "noul"}}}
    return Ask(SYSTEM_ONE, body, guessed_tokens(prompt))


def vote_ask(model: str, prompt: str, manner: Manner, seed: int, samples: int = 1) -> Ask:
    """A request for so many samples of the answer."""
    several = {"n": samples} if samples > 1 else {}
    return manner.sample(model, prompt, VOTE_TOKENS[manner.endpoint], temperature=1, top_p=1, seed=seed, **several)


def _works(transport: Transport, ask: Ask, read: Callable[[Any], float | None]) -> bool:
    return _found(transport, ask, read) is not None


def _found(transport: Transport, ask: Ask, read: Callable[[Any], Found]) -> Found | None:
    """What the reply holds; None where the server refuses the request, or heeds not what it asks for."""

    def read_or_none(reply: Any, ask: Ask) -> Found | None:  # noqa: ARG001  # one shape for all readers
        if not isinstance(reply, dict) or not reply.get("choices", reply.get("answers")):
            raise Fault("a reply without an answer")
        try:
            return read(reply)
        except Fault:
            return None

    try:
        return _answer(transport, ask, read_or_none)
    except (Refused, Exhausted) as fault:
        if fault.status is None or fault.status in _NOT_THIS_MODEL:
            raise
        return None
