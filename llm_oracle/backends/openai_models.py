"""A model on an OpenAI-compatible server in its roles. `openai_probing.py` says how each of them asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from kb.records import content_id
from llm_oracle.answers import first_items, parse_yes_no, render_values, without_values
from llm_oracle.backends.openai_aliases import ServedModel
from llm_oracle.backends.openai_bias import TokenBias
from llm_oracle.backends.openai_findings import Prober, one_version
from llm_oracle.backends.openai_limits import Fault
from llm_oracle.backends.openai_probing import (
    LOGPROBS,
    VOTE,
    VOTE_TOKENS,
    CriticWay,
    LikelihoodWay,
    Manner,
    critic_ask,
    stated_critic,
    stated_likelihood,
    stated_manner,
    system_one_ask,
    vote_ask,
)
from llm_oracle.backends.openai_transport import Ask, Read, Refused, Transport
from llm_oracle.backends.openai_wire import (
    COMPLETIONS,
    SYSTEM_ONE,
    finish_reason,
    first_token_yes,
    guessed_tokens,
    system_one_yes,
    texts,
    usage,
)
from llm_oracle.calls import REFUSED
from llm_oracle.prompts import critic_prompt, exclusion_clause, read_prompt
from llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Stream,
    Usage,
    gathered,
)

MOST_GIVEN_VALUES = 6
"""How many of the newest excluded values a list is begun with, as for models in this process."""

NOTHING_KNOWN = 0.5
"""P(yes) where an answer says neither yes nor no."""

MOST_SEED = 2**31 - 1

Answer = TypeVar("Answer")
Ballot = tuple[list[bool | None], Usage]

_CONTROL = re.compile(r"<\|[^|<>]{1,60}\|>|</?s>|\[/?INST\]")


class OpenAIModel:
    """One model on one server, opened once for all its roles; what it can do is probed when a role needs it.

    `queue`: where requests go instead of to the server. An alias that states what the server can do is then believed.
    """

    def __init__(self, prober: Prober, queue: Transport | None = None) -> None:
        self.served = prober.served
        self._prober = prober
        self._transport = queue or prober.transport
        self._is_stated = queue is not None and self.served.logprobs is not None
        self._manner: Manner | None = None

    @property
    def manner(self) -> Manner:
        if self._manner is None:
            self._manner = stated_manner(self.served) if self._is_stated else self._prober.manner()
        return self._manner

    def generator(self) -> OpenAIGenerator:
        bias = None if self._is_stated else TokenBias(self.served.model, self._prober.transport)
        return OpenAIGenerator(self.served, self._held_to(self.manner.reported), self.manner, bias)

    def critic(self) -> OpenAICritic:
        way = stated_critic(self.served) if self._is_stated else self._prober.critic(self.manner)
        # A decision endpoint may call the model otherwise than the endpoint that was probed for its version.
        reported = "" if way.kind == SYSTEM_ONE else self.manner.reported
        return OpenAICritic(self.served, self._held_to(reported), self.manner, way)

    def likelihood(self) -> OpenAILikelihood:
        way = stated_likelihood(self.served) if self._is_stated else self._prober.likelihood()
        return OpenAILikelihood(self.served, self._held_to(way.reported), way)

    def _held_to(self, reported: str) -> Transport:
        return one_version(self._transport, self.served, reported)


class OpenAIGenerator:
    """Numbered lists from a server, each request with a seed of its own."""

    def __init__(
        self, served: ServedModel, transport: Transport, manner: Manner, bias: TokenBias | None = None
    ) -> None:
        self.identity = ModelIdentity(served.name, "; ".join(manner.told(served)))
        self.price = served.price
        self._model = served.model
        self._transport = transport
        self._manner = manner
        self._bias = bias

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return gathered(self.stream(requests, parameters), len(requests))

    def stream(self, asked: Sequence[GenerationRequest], *parameters: GenerationParameters) -> Stream[Generation]:
        """The answers as they come."""
        asks = ([self.ask(request, *parameters)] for request in asked)
        return _stream(self._transport, asks, _generation, lambda place, came: _cut(came[0], asked[place]))

    def ask(self, request: GenerationRequest, parameters: GenerationParameters) -> Ask:
        """The request as it goes to the server."""
        options: dict[str, Any] = {
            "temperature": parameters.temperature,
            "top_p": parameters.top_p,
            "seed": seed(parameters.seed, asdict(request)),
        }
        bias = self._bias.against(request.banned_tokens_of) if self._bias and request.banned_tokens_of else {}
        if bias:
            options["logit_bias"] = bias
        return self._manner.sample(self._model, self._prompt(request), parameters.max_tokens, **options)

    def _prompt(self, request: GenerationRequest) -> str:
        """The prompt with what it excludes: a chat is told, a completion goes on with a list that has given it."""
        prompt = harmless(request.prompt)
        values = tuple(harmless(value) for value in request.excluded_values if value.strip())
        if not values:
            return prompt
        if self._manner.endpoint == COMPLETIONS:
            return prompt + "\n" + render_values(values[-MOST_GIVEN_VALUES:])
        return prompt + exclusion_clause(values)


class OpenAICritic:
    """P(yes) from the likeliest first tokens, from a decision endpoint, or as the share of yes among sampled votes.

    The identity says which, so that votes are never taken for probabilities.
    """

    def __init__(self, served: ServedModel, transport: Transport, manner: Manner, way: CriticWay) -> None:
        self.identity = ModelIdentity(served.name, "; ".join([*manner.told(served), way.told(served.votes)]))
        self.price = served.price
        self._model = served.model
        self._votes = served.votes
        self._transport = transport
        self._manner = manner
        self._way = way

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return gathered(self.stream(claims), len(claims))

    def stream(self, asked: Sequence[str], *_: GenerationParameters) -> Stream[CriticScore]:
        """The scores as they come."""
        prompts = (critic_prompt(harmless(claim)) for claim in asked)
        if self._way.kind == VOTE:
            return _stream(self._transport, map(self._votes_on, prompts), _ballot, lambda _, came: _counted(came))
        if self._way.kind == LOGPROBS:
            asks = ([critic_ask(self._model, prompt, self._manner, self._way.top)] for prompt in prompts)
            return _stream(self._transport, asks, _likeliest, lambda _, came: _judged(came[0]))
        asks = ([system_one_ask(self._model, prompt)] for prompt in prompts)
        return _stream(self._transport, asks, _decision, lambda _, came: _judged(came[0]))

    def reserved(self, claim: str) -> Usage:
        """The most tokens that the budget may see spent on a claim: each vote, and the question around the claim."""
        prompt = guessed_tokens(critic_prompt(claim))
        if self._way.kind != VOTE:
            return Usage(prompt, 1)
        requests = 1 if self._way.several else self._votes
        return Usage(prompt * requests, VOTE_TOKENS[self._manner.endpoint] * self._votes)

    def _votes_on(self, prompt: str) -> list[Ask]:
        requests = 1 if self._way.several else self._votes
        return [
            vote_ask(self._model, prompt, self._manner, seed(number, prompt), self._votes // requests)
            for number in range(requests)
        ]


class OpenAILikelihood:
    """ln P of a text from completions that echo it with log-probabilities, or from `prompt_logprobs`."""

    def __init__(self, served: ServedModel, transport: Transport, way: LikelihoodWay) -> None:
        version = served.revision or (way.reported if way.reported != served.model else "")
        self.identity = ModelIdentity(served.name, "; ".join(part for part in (version, way.kind) if part))
        self.price = served.price
        self._model = served.model
        self._transport = transport
        self._way = way

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return gathered(self.stream(texts), len(texts))

    def stream(self, asked: Sequence[str], *_: GenerationParameters) -> Stream[LogLikelihood]:
        """The scores as they come; a text without tokens has one without asking."""
        asks = (self._way.ask(self._model, harmless(text)) for text in asked)
        several = ([ask] if ask.prompt else [] for ask in asks)
        return _stream(self._transport, several, self._read, lambda _, came: _summed(came))

    def _read(self, reply: Any, ask: Ask) -> LogLikelihood:
        found = self._way.read(reply, ask.prompt)
        if found is None:
            raise Fault(f"a text of {len(ask.prompt)} characters came back without its log-probabilities")
        return found


def harmless(text: str) -> str:
    """The text without the signs by which chat templates tell who speaks."""
    while (shorter := _CONTROL.sub("", text)) != text:
        text = shorter
    return text


def seed(*parts: object) -> int:
    """A seed that every server takes, the same for the same request."""
    return int(content_id("sample", *parts)[:12], 16) % MOST_SEED


def _stream(
    transport: Transport,
    asks: Iterable[Sequence[Ask]],
    read: Read[Any],
    arrange: Callable[[int, Sequence[Any]], Answer],
) -> Stream[Answer]:
    """The role's answers as soon as all parts are there that each of its requests is sent in; some are sent in none.

    `arrange` is told the request's place, and the answer or refusal to each part.
    """
    owners: list[tuple[int, int]] = []
    open_: dict[int, list[Any]] = {}

    def sent() -> Iterator[Ask]:
        for place, parts in enumerate(asks):
            open_[place] = [None] * len(parts)
            for part, ask in enumerate(parts):
                owners.append((place, part))
                yield ask

    for group in transport.stream(sent(), read):
        for number, answer in group:
            place, part = owners[number]
            open_[place][part] = answer
        whole = [place for place, parts in open_.items() if None not in parts]
        yield [(place, arrange(place, open_.pop(place))) for place in whole]
    yield [(place, arrange(place, ())) for place in open_]


def _generation(reply: Any, ask: Ask) -> Generation:
    said = texts(reply)[:1]
    return Generation(said[0], finish_reason(reply), usage(reply, ask.prompt, said))


def _cut(generation: Generation | Refused, request: GenerationRequest) -> Generation:
    """The reply behind its last item asked for, and without the values that were excluded."""
    if isinstance(generation, Refused):
        return Generation("", REFUSED, generation.usage, generation.reason)
    parts = read_prompt(request.prompt)
    items = first_items(generation.text, parts.count if parts else None)
    data_type = parts.data_type if parts else "Number"
    text = without_values(generation.text if items is None else items, request.excluded_values, data_type)
    return Generation(text, generation.finish_reason if items is None else "stop", generation.usage)


def _likeliest(reply: Any, ask: Ask) -> CriticScore:
    return _score(first_token_yes(reply), reply, ask)


def _decision(reply: Any, ask: Ask) -> CriticScore:
    return _score(system_one_yes(reply), reply, ask)


def _judged(came: CriticScore | Refused) -> CriticScore:
    return CriticScore(NOTHING_KNOWN, came.usage, came.reason) if isinstance(came, Refused) else came


def _summed(came: Sequence[LogLikelihood | Refused]) -> LogLikelihood:
    (one,) = came or [LogLikelihood(0.0, 0)]
    return LogLikelihood(0.0, 0, one.reason) if isinstance(one, Refused) else one


def _score(probability: float | None, reply: Any, ask: Ask) -> CriticScore:
    return CriticScore(NOTHING_KNOWN if probability is None else probability, usage(reply, ask.prompt, ()))


def _ballot(reply: Any, ask: Ask) -> Ballot:
    """The votes of one reply; fewer than were asked for are a fault."""
    said = texts(reply)
    wanted = ask.body.get("n", 1)
    if len(said) < wanted:
        raise Fault(f"{len(said)} samples where {wanted} were asked for")
    return [parse_yes_no(text) for text in said[:wanted]], usage(reply, ask.prompt, said)


def _counted(came: Sequence[Ballot | Refused]) -> CriticScore:
    """The share of yes. A claim is refused where every request that was to give votes is."""
    refusals = [one for one in came if isinstance(one, Refused)]
    ballots = [one for one in came if not isinstance(one, Refused)]
    votes = [vote for several, _ in ballots for vote in several if vote is not None]
    used = [*(usage for _, usage in ballots), *(one.usage for one in refusals)]
    spent = Usage(sum(one.prompt_tokens for one in used), sum(one.completion_tokens for one in used))
    refused = refusals[0].reason if refusals and not ballots else ""
    return CriticScore(sum(votes) / len(votes) if votes else NOTHING_KNOWN, spent, refused)
