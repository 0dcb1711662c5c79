"""Requests to a model on a server, in the way that its abilities allow, and the reading of answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.protocols import LogLikelihood, SpannedText, Usage
from hapax.llm_oracle.questions.prompts import critic_batch_prompt, critic_prompt
from hapax.llm_oracle.reading.link_replies import VERDICT_WORDS, FirstToken, numbered_verdicts, parse_yes_no
from hapax.llm_oracle.reading.replies import own_turn
from hapax.llm_oracle.servers.openai_aliases import ServedModel
from hapax.llm_oracle.servers.openai_outcomes import TransientFault
from hapax.llm_oracle.servers.openai_wire import (
    CHAT,
    COMPLETIONS,
    SYSTEM_ONE,
    ServerRequest,
    answered_texts,
    echoed_likelihood,
    first_token_yes,
    numbered_yes,
    prompt_likelihood,
    system_one_yes,
    usage,
)

LOGPROBS, VOTE = "logprobs", "vote"
ECHO, PROMPT_LOGPROBS = "echo", "prompt_logprobs"

MOST_TOP = 20
"""Number of likeliest tokens requested: the limit of OpenAI and vLLM for chats. Completions may allow fewer."""
FEWER_TOP = 5
"""OpenAI's limit for completions."""

LEAST_TEMPERATURE = 0.01
"""Sent in place of 0, which some servers refuse."""

TOKENS_PER_VERDICT = 8
"""Most tokens of a line with a number and a verdict."""

VOTE_TOKENS = {CHAT: 256, COMPLETIONS: 8}
"""Most tokens of a vote. A chat may think aloud before it says yes or no."""

PLAIN_SAMPLING = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}
"""Turns off the defaults of llama.cpp and vLLM that change sampling. OpenAI rejects these options."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities of a model on a server. The journal stores those that differ from these."""

    endpoint: str = CHAT
    dropped: tuple[str, ...] = ()
    """Options that the model rejects."""
    limit_name: str = "max_tokens"
    plain: bool = True
    """True if the server knows the options of `PLAIN_SAMPLING`."""
    reported: str = ""
    """The server's name for the model."""
    system_turn: bool = True
    """False if the model's template has no place for a system prompt, so that it stands before the question."""
    streams: bool = False
    """True if the server answers by streams alone."""
    room: int = 0
    """Tokens that the model gets to think before its answer; 0 for one that does not."""
    critic: str = ""
    """Source of P(yes): log-probabilities, a decision endpoint, or a vote of samples."""
    top: int = MOST_TOP
    words: str = VERDICT_WORDS[0]
    """Words of yes and no in the language in which the model answers."""
    lead: int = 0
    """Tokens that it may say before yes or no, such as the beginning of an object in JSON."""
    takes_n: bool = True
    """True if one request can return several samples (option `n`)."""
    claims: int = 1
    """Number of claims that a critic is asked about in one request."""
    structures: bool = False
    """True if the server holds a reply to a JSON schema (option `response_format`)."""
    likelihood: str = ""
    """Source of ln P of a text: an echo, or `prompt_logprobs`."""


Verdicts = tuple[list[FirstToken | None], Usage]
"""P(yes) of each claim of a request, None where nothing is said of it, and what the request used."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Requests to a model with these abilities, and the readers of their replies."""

    served: ServedModel
    abilities: Abilities

    @property
    def version(self) -> str:
        """Part of the model's revision: the user's name for its version, or else the server's."""
        reported = self.abilities.reported
        return self.served.alias.revision or (reported if reported != self.served.model else "")

    @property
    def revision(self) -> list[str]:
        """Parts of the model's revision: everything that may change an answer."""
        able = self.abilities
        without = f"without {', '.join(sorted(able.dropped))}" if able.dropped else ""
        return [self.version, able.endpoint.partition("/")[0], without, self.served.chat.revision]

    def answer(self, prompt: str, tokens: int, **options: Any) -> ServerRequest:
        """A request for an answer of at most `tokens` tokens, thoughts apart."""
        able, chat = self.abilities, self.served.chat
        turns = chat.messages(prompt)
        if not able.system_turn:
            turns = [{"role": "user", "content": "\n\n".join(turn["content"] for turn in turns)}]
        body: dict[str, Any] = {"model": self.served.model, able.limit_name: tokens + able.room}
        body |= {name: value for name, value in options.items() if name not in able.dropped}
        if body.get("temperature") == 0:
            body["temperature"] = LEAST_TEMPERATURE
        if able.streams:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if able.endpoint == CHAT:
            body["messages"] = turns
            settings = {
                "chat_template": chat.template,
                "chat_template_kwargs": dict(chat.template_options),
                "reasoning_effort": chat.reasoning_effort,
            }
            # Servers may reject options that they do not know, so only those that are set are sent.
            body |= {name: value for name, value in settings.items() if value}
        else:
            body["prompt"] = prompt
        asked = sum(estimated_tokens(turn["content"]) for turn in turns)
        return ServerRequest(able.endpoint, body, Usage(asked, (tokens + able.room) * options.get("n", 1)))

    def sample(self, prompt: str, tokens: int, **options: Any) -> ServerRequest:
        """A request that samples by temperature and top_p alone, if the server has options for that."""
        return self.answer(prompt, tokens, **options, **(PLAIN_SAMPLING if self.abilities.plain else {}))

    def verdicts(self, claims: Sequence[str], *, seed: int = 1, samples: int = 1, parts: int = 1) -> ServerRequest:
        """A request for the verdict on a claim, or on several, numbered from 1. `samples`: number of votes."""
        asked = self._verdicts(claims, seed, samples)
        return ServerRequest(asked.path, asked.body, asked.most, claims=len(claims), parts=parts)

    def _verdicts(self, claims: Sequence[str], seed: int, samples: int) -> ServerRequest:
        able, is_single = self.abilities, len(claims) == 1
        prompt = critic_prompt(claims[0]) if is_single else critic_batch_prompt(claims)
        tokens = 0 if is_single else TOKENS_PER_VERDICT * len(claims)
        if able.critic == SYSTEM_ONE:
            body = {"model": self.served.model, "state": prompt, "questions": {"holds": {"type": "noul"}}}
            return ServerRequest(SYSTEM_ONE, body, Usage(estimated_tokens(prompt), 1))
        if able.critic == LOGPROBS:
            is_chat = able.endpoint == CHAT
            options = {"logprobs": True, "top_logprobs": able.top} if is_chat else {"logprobs": able.top}
            # At temperature 1 the scores are the model's own.
            return self.answer(prompt, tokens or 1 + able.lead, temperature=1, top_p=1, **options)
        number = {"n": samples} if samples > 1 else {}
        return self.sample(prompt, VOTE_TOKENS[able.endpoint] + tokens, temperature=1, top_p=1, seed=seed, **number)

    def read_verdicts(self, reply: Any, request: ServerRequest) -> Verdicts:
        """The answer to `verdicts`."""
        if self.abilities.critic == SYSTEM_ONE:
            return [FirstToken(system_one_yes(reply), 1.0)], usage(reply, request.prompt, ())
        if self.abilities.critic == LOGPROBS:
            return self._told(reply, request.claims), usage(reply, request.prompt, ())
        samples, wanted = answered_texts(reply), request.body.get("n", 1)
        if len(samples) < wanted:
            raise TransientFault(f"{len(samples)} samples where {wanted} were asked for")
        # Some servers repeat the prompt before its answer.
        ballots = [_ballot(text.removeprefix(request.prompt), request.claims) for text in samples[:wanted]]
        votes = [[vote for vote in column if vote is not None] for column in zip(*ballots, strict=True)]
        shares = [FirstToken(sum(said) / len(said), 1.0) if said else None for said in votes]
        return shares, usage(reply, request.prompt, samples)

    def _told(self, reply: Any, claims: int) -> list[FirstToken | None]:
        """P(yes) by log-probabilities."""
        words = self.abilities.words
        return [first_token_yes(reply, words)] if claims == 1 else numbered_yes(reply, claims, words)

    def text(self, text: SpannedText) -> ServerRequest:
        """A request that scores a text. It asks for one token of answer, the least that all servers accept."""
        is_echo = self.abilities.likelihood == ECHO
        option: dict[str, Any] = {"echo": True, "logprobs": 1} if is_echo else {"prompt_logprobs": 0}
        body = {"model": self.served.model, "prompt": text.text, "max_tokens": 1, "temperature": 0, **option}
        return ServerRequest(COMPLETIONS, body, Usage(estimated_tokens(text.text), 1), text.spans)

    def read_likelihood(self, reply: Any, asked: SpannedText) -> LogLikelihood | None:
        """The answer to `text`; None if the server did not score it."""
        read = echoed_likelihood if self.abilities.likelihood == ECHO else prompt_likelihood
        return read(reply, asked)


def _ballot(text: str, claims: int) -> list[bool | None]:
    """The verdicts of one sample. An answer that says neither yes nor no is no vote."""
    answer = own_turn(text)[1]  # without thoughts
    return [parse_yes_no(answer)] if claims == 1 else numbered_verdicts(answer, claims)
