"""A model on an OpenAI-compatible server in its roles, with the methods of asking that `openai_probing.py` found."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.kb.records import content_id
from hapax.llm_oracle.answers import FirstToken, first_items, parse_yes_no, render_values, without_values
from hapax.llm_oracle.backends.openai_aliases import OPENAI, ServedModel
from hapax.llm_oracle.backends.openai_outcomes import Refused, RetriesExhausted, TransientFault
from hapax.llm_oracle.backends.openai_probing import (
    JSON_SCHEMA,
    LOGPROBS,
    VALUES_FORMAT,
    VOTE,
    VOTE_TOKENS,
    AnswerMethod,
    CriticMethod,
    FormMethod,
    LikelihoodMethod,
    Prober,
    claims_request,
    claims_yes,
    critic_request,
    same_version,
    stated_answer_method,
    stated_critic_method,
    stated_likelihood_method,
    system_one_request,
    vote_request,
)
from hapax.llm_oracle.backends.openai_tokens import Tokenizer, own_tokenizer
from hapax.llm_oracle.backends.openai_transport import ReadReply, ServerRequest, Transport
from hapax.llm_oracle.backends.openai_wire import (
    COMPLETIONS,
    SYSTEM_ONE,
    answered_texts,
    finish_reason,
    first_token_yes,
    system_one_yes,
    usage,
)
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.journal import REFUSED
from hapax.llm_oracle.prompts import critic_prompt, exclusion_clause, is_whole_question, reply_form
from hapax.llm_oracle.protocols import (
    NOTHING_KNOWN,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)

MOST_GIVEN_VALUES = 6
"""Number of the newest excluded values that a list begins with, as for models in this process."""

MOST_SEED = 2**31 - 1

MOST_BANNED_TOKENS = 300
"""LINK's limit, which is OpenAI's."""
BIAS = -100
LIST_TEXT = "1. 2.\n3.\n"
"""Text whose tokens every list needs; they are never banned."""
TOKENIZER_PATHS = ("/tokenize", "/extras/tokenize")
"""Paths of vLLM and llama.cpp, and of llama-cpp-python."""

Answer = TypeVar("Answer")
Ballot = tuple[list[bool | None], Usage]

_CONTROL = re.compile(r"<\|[^|<>]{1,60}\|>|</?s>|\[/?INST\]")


class OpenAIModel:
    """One model on one server, opened once for all its roles. Its abilities are probed when a role needs them.

    `queue`: records the requests instead of sending them. An alias that states the model's abilities is then believed.
    """

    def __init__(self, prober: Prober, queue: Transport | None = None, claims: int | None = None) -> None:
        """`claims`: number of claims in a request to the critic; None: what a probe finds."""
        self._claims = claims
        self.served = prober.served
        self._prober = prober
        self._transport = queue or prober.transport
        self._is_stated = queue is not None and self.served.logprobs is not None
        self._method: AnswerMethod | None = None

    @property
    def method(self) -> AnswerMethod:
        """The method of asking for an answer, probed once."""
        if self._method is None:
            self._method = stated_answer_method(self.served) if self._is_stated else self._prober.answer_method()
        return self._method

    def generator(self) -> OpenAIGenerator:
        # The bias asks the server for its tokens, and a stated model sends nothing.
        bias = None if self._is_stated else TokenBias(self.served, self._prober.transport)
        transport = same_version(self._transport, self.served, self.method.reported)
        # A stated model sends no probe, so that words alone ask it for JSON.
        probe = FormMethod if self._is_stated else lambda: self._prober.form_method(self.method)
        return OpenAIGenerator(self.served, transport, self.method, bias, probe)

    def critic(self) -> OpenAICritic:
        if self._is_stated:
            critic_method = stated_critic_method(self.served)
        else:
            critic_method = self._prober.critic_method(self.method)
        # A decision endpoint may report another name than the endpoint that was probed for its version.
        reported = "" if critic_method.kind == SYSTEM_ONE else self.method.reported
        transport = same_version(self._transport, self.served, reported)
        if self._claims is not None or self._is_stated:
            claims = self._claims or 1
        else:
            claims = self._prober.claims_method(self.method, critic_method).size
        critic = OpenAICritic(self.served, transport, self.method, critic_method, claims)
        critic.is_assumed = bool(self._prober.assumed)
        return critic

    def likelihood(self) -> OpenAILikelihood:
        method = stated_likelihood_method(self.served) if self._is_stated else self._prober.likelihood_method()
        likelihood = OpenAILikelihood(self.served, same_version(self._transport, self.served, method.reported), method)
        likelihood.is_assumed = bool(self._prober.assumed)
        return likelihood


class OpenAIGenerator:
    """Numbered lists from a server. Each request has its own seed."""

    def __init__(
        self,
        served: ServedModel,
        transport: Transport,
        method: AnswerMethod,
        bias: TokenBias | None = None,
        form_method: Callable[[], FormMethod] = FormMethod,
    ) -> None:
        self.identity = ModelIdentity(served.name, "; ".join(method.revision(served)))
        self.price = served.price
        self.pace = served.pace
        self._model = served.model
        self._transport = transport
        self._method = method
        self._bias = bias
        self._probe_form = form_method
        self._form_method: FormMethod | None = None

    @property
    def structures(self) -> bool:
        """True if the server holds a reply to a JSON schema. Probed when first needed."""
        if self._form_method is None:
            self._form_method = self._probe_form()
        return self._form_method.kind == JSON_SCHEMA

    @property
    def bias_refused(self) -> str:
        """Why a logit bias that was wanted could not be sent; empty if it was sent or not wanted."""
        return "" if self._bias is None else self._bias.refused

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return in_request_order(self.stream(requests, parameters), len(requests))

    def stream(self, asked: Sequence[GenerationRequest], *parameters: GenerationParameters) -> Stream[Generation]:
        """The answers as they arrive."""
        requests = ([self.request(request, *parameters)] for request in asked)
        return _combined(
            self._transport, requests, _generation, lambda position, replies: _trimmed(replies[0], asked[position])
        )

    def request(self, request: GenerationRequest, parameters: GenerationParameters) -> ServerRequest:
        """The request in the server's format."""
        options: dict[str, Any] = {
            "temperature": parameters.temperature,
            "top_p": parameters.top_p,
            # Otherwise two samples of the same request would be equal.
            "seed": seed(parameters.seed, request.content),
        }
        bias = self._bias.against(request.banned_tokens_of) if self._bias and request.banned_tokens_of else {}
        if bias:
            options["logit_bias"] = bias
        if request.form is not None and request.form.json and self.structures:
            options["response_format"] = VALUES_FORMAT
        return self._method.sample(self._model, self._prompt(request), parameters.max_tokens, **options)

    def _prompt(self, request: GenerationRequest) -> str:
        """The prompt with the excluded values: a sentence for a chat, the beginning of the list for completions."""
        prompt = harmless(request.prompt)
        values = tuple(harmless(value) for value in request.excluded_values if value.strip())
        if not values or request.form is not None:  # words of another form name the excluded values themselves
            return prompt
        if self._method.endpoint == COMPLETIONS:
            return prompt + "\n" + render_values(values[-MOST_GIVEN_VALUES:])
        return prompt + exclusion_clause(values)


class OpenAICritic:
    """P(yes) from the likeliest first tokens, from a decision endpoint, or as the share of yes among sampled votes.

    The identity says which, so that votes are never taken for probabilities. `is_assumed`: neither a probe nor the
    alias says which it is, so that at most it is a vote. `claims_together`: number of claims in one request.
    """

    is_assumed: bool = False

    def __init__(
        self,
        served: ServedModel,
        transport: Transport,
        method: AnswerMethod,
        critic_method: CriticMethod,
        claims: int = 1,
    ) -> None:
        revision = [*method.revision(served), critic_method.revision(served.votes)]
        if claims > 1:
            revision.append(f"{claims} claims at a time")
        self.claims_together = claims
        self._opened_by = served, transport, method, critic_method
        self.identity = ModelIdentity(served.name, "; ".join(revision))
        self.price = served.price
        self.pace = served.pace
        self._model = served.model
        self._votes = served.votes
        self._transport = transport
        self._method = method
        self._critic_method = critic_method

    def one_by_one(self) -> OpenAICritic:
        """The same critic, asked about each claim alone, as LINK asks."""
        critic = OpenAICritic(*self._opened_by)
        critic.is_assumed = self.is_assumed
        return critic

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return in_request_order(self.stream(claims), len(claims))

    def stream(self, asked: Sequence[str], *_: GenerationParameters) -> Stream[CriticScore]:
        """The scores as they arrive. Claims about which a request for several says nothing are asked alone."""
        alone = [place for place, claim in enumerate(asked) if self.claims_together == 1 or is_whole_question(claim)]
        # In an order that has nothing to do with the search, and the same for the same claims.
        others = sorted(set(range(len(asked))).difference(alone), key=lambda place: seed("claim", asked[place]))
        groups = [others[start : start + self.claims_together] for start in range(0, len(others), self.claims_together)]
        if groups and len(groups[-1]) == 1:
            alone += groups.pop()
        for found in self._together([[asked[place] for place in group] for group in groups]):
            scores = [pair for number, told in found for pair in zip(groups[number], told, strict=True)]
            alone += [place for place, score in scores if score is None]
            yield [(place, score) for place, score in scores if score is not None]
        for single in self._alone([asked[place] for place in alone]):
            yield [(alone[place], score) for place, score in single]

    def _together(self, groups: Sequence[Sequence[str]]) -> Stream[list[CriticScore | None]]:
        """The scores of groups of claims, each asked in one request, or in one for each vote."""
        method = self._critic_method
        count = 1 if method.kind == LOGPROBS else self._requests_per_vote
        samples = 1 if method.kind == LOGPROBS else self._votes // count

        def votes(group: Sequence[str]) -> list[ServerRequest]:
            claims = [harmless(claim) for claim in group]
            asked = (
                claims_request(self._model, claims, self._method, method, seed=seed(vote, *claims), samples=samples)
                for vote in range(count)
            )
            return [replace(request, parts=count) for request in asked]

        def read(reply: Any, request: ServerRequest) -> tuple[list[FirstToken | None], Usage]:
            # The largest group's: further places are empty.
            return claims_yes(reply, self.claims_together, method), usage(reply, request.prompt, ())

        return _combined(
            self._transport, map(votes, groups), read, lambda place, replies: _shared_out(replies, len(groups[place]))
        )

    def _alone(self, asked: Sequence[str]) -> Stream[CriticScore]:
        prompts = (critic_prompt(harmless(claim)) for claim in asked)
        top = self._critic_method.top
        if self._critic_method.kind == VOTE:
            votes = map(self._vote_requests, prompts)
            return _combined(self._transport, votes, _ballot, lambda _, replies: _share_of_yes(replies))
        if self._critic_method.kind == LOGPROBS:
            requests = ([critic_request(self._model, prompt, self._method, top)] for prompt in prompts)
            return _combined(self._transport, requests, _likeliest, lambda _, replies: _critic_score(replies[0]))
        requests = ([system_one_request(self._model, prompt)] for prompt in prompts)
        return _combined(self._transport, requests, _decision, lambda _, replies: _critic_score(replies[0]))

    def reserved(self, claim: str) -> Usage:
        """Most tokens that a claim uses: each vote, with the question around the claim."""
        prompt = estimated_tokens(critic_prompt(claim))
        if self._critic_method.kind != VOTE and not self.is_assumed:
            return Usage(prompt, 1)
        requests = self._requests_per_vote
        return Usage(prompt * requests, VOTE_TOKENS[self._method.endpoint] * self._votes, requests)

    @property
    def _requests_per_vote(self) -> int:
        return 1 if self._critic_method.takes_n and not self.is_assumed else self._votes

    def _vote_requests(self, prompt: str) -> list[ServerRequest]:
        # With the option `n` one request returns all votes; without it each vote is a request with a seed of its own.
        count = self._requests_per_vote
        requests = (
            vote_request(self._model, prompt, self._method, seed=seed(number, prompt), samples=self._votes // count)
            for number in range(count)
        )
        return [replace(request, parts=count) for request in requests]


class OpenAILikelihood:
    """ln P of a text from completions that echo it with log-probabilities, or from `prompt_logprobs`.

    `is_assumed`: as for the critic.
    """

    is_assumed: bool = False

    def __init__(self, served: ServedModel, transport: Transport, method: LikelihoodMethod) -> None:
        version = served.revision or (method.reported if method.reported != served.model else "")
        self.identity = ModelIdentity(served.name, "; ".join(part for part in (version, method.kind) if part))
        self.price = served.price
        self.pace = served.pace
        self._model = served.model
        self._transport = transport
        self._method = method

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))

    def stream(self, asked: Sequence[str | SpannedText], *_: GenerationParameters) -> Stream[LogLikelihood]:
        """The scores as they arrive. An empty text has a score without a request."""
        requests = map(self._request, asked)
        parts = ([request] if request.prompt else [] for request in requests)
        return _combined(self._transport, parts, self._read, lambda _, replies: _log_likelihood(replies))

    def _request(self, asked: str | SpannedText) -> ServerRequest:
        text = SpannedText(asked, ()) if isinstance(asked, str) else asked
        cleaned = text.rewritten(harmless)
        return replace(self._method.ask(self._model, cleaned.text), spans=cleaned.spans)

    def _read(self, reply: Any, request: ServerRequest) -> LogLikelihood:
        found = self._method.read(reply, SpannedText(request.prompt, request.spans))
        if found is not None:
            return found
        if self._method.read(reply, SpannedText(request.prompt, ())) is not None:
            raise HapaxError(
                f"{self.identity.name} does not say where in a text its tokens are, so it cannot score the values of "
                "a sentence. Choose another model, or a server that gives text_offset or decoded_token."
            )
        raise TransientFault(f"a text of {len(request.prompt)} characters came back without its log-probabilities")


class TokenBias:
    """Logit bias against the tokens of texts, which the server is asked for once per text.

    For OpenAI's own models tiktoken tells them, if it is installed. Otherwise, and from a server without a tokenizer
    endpoint, there is no bias, and `refused` says why.
    """

    def __init__(self, served: ServedModel, transport: Transport) -> None:
        self.refused = ""
        self._model = served.model
        self._transport = transport
        self._is_openai = served.server.base_url == OPENAI
        self._tokenizer: Tokenizer | None = None
        self._path: str | None = None
        self._known: dict[str, list[int]] = {}

    def against(self, banned_texts: Sequence[str]) -> dict[str, int]:
        """A bias of -100 on each token of the texts, at the start of a line and inside it, except those lists need."""
        spellings: list[str] = []
        for text in banned_texts:
            # Inside a line a word begins with a blank, which is part of its first token.
            spellings += [" " + text, text]
        if not self._tokenize(spellings):
            return {}
        kept = {*self._known[LIST_TEXT], *self._known[""]}  # "": tokens that the server adds to every text
        banned: dict[int, None] = {}
        for spelling in spellings:
            banned.update(dict.fromkeys(token for token in self._known[spelling] if token not in kept))
        return {str(token): BIAS for token in list(banned)[:MOST_BANNED_TOKENS]}

    def _tokenize(self, spellings: Sequence[str]) -> bool:
        """Learn the tokens of the texts; False if the server does not return them."""
        unknown = [text for text in dict.fromkeys(["", LIST_TEXT, *spellings]) if text not in self._known]
        if not unknown:
            return True
        if self._is_openai:
            return self._learn_own(unknown)
        for path in TOKENIZER_PATHS if self._path is None else (self._path,):
            try:
                replies = self._transport.ask([self._request(path, text) for text in unknown], _tokens)
            except (Refused, RetriesExhausted):
                continue
            found = [reply for reply in replies if isinstance(reply, list)]
            if len(found) == len(unknown):
                self._path = path
                self._known.update(zip(unknown, found, strict=True))
                return True
        self.refused = "The server does not tell the tokens of a text (/tokenize)."
        return False

    def _learn_own(self, texts: Sequence[str]) -> bool:
        """Learn the tokens from tiktoken; False if the model's tokenizer is not at hand."""
        if self._tokenizer is None and not self.refused:
            self._tokenizer, self.refused = own_tokenizer(self._model)
        if self._tokenizer is None:
            return False
        self._known.update({text: self._tokenizer(text) for text in texts})
        return True

    def _request(self, path: str, text: str) -> ServerRequest:
        # vLLM reads `prompt`, llama.cpp `content`, llama-cpp-python `input`; each ignores the others' names.
        names = dict.fromkeys(("prompt", "content", "input"), text)
        return ServerRequest(path, {"model": self._model, **names, "add_special_tokens": False, "add_special": False})


def _tokens(reply: Any, request: ServerRequest) -> list[int] | None:  # noqa: ARG001  # ReadReply
    tokens = reply.get("tokens") if isinstance(reply, dict) else None
    if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
        return None
    return tokens


def harmless(text: str) -> str:
    """The text without the marks by which chat templates separate speakers."""
    # Repeated, because removing a mark may join two halves of another one.
    while (shorter := _CONTROL.sub("", text)) != text:
        text = shorter
    return text


def seed(*parts: object) -> int:
    """A seed that every server accepts, the same for equal parts."""
    # Twelve hexadecimal digits are 48 bits, so that the remainder is as good as uniform.
    return int(content_id("sample", *parts)[:12], 16) % MOST_SEED


def _combined(
    transport: Transport,
    requests: Iterable[Sequence[ServerRequest]],
    read: ReadReply[Any],
    combine: Callable[[int, Sequence[Any]], Answer],
) -> Stream[Answer]:
    """Answers to requests that are sent in any number of parts, each as soon as all its parts are answered.

    `combine` gets the request's position, and the answer or refusal to each part.
    """
    owners: list[tuple[int, int]] = []  # for each part sent: its request and its number there
    unfinished: dict[int, list[Any]] = {}

    def sent() -> Iterator[ServerRequest]:
        for position, parts in enumerate(requests):
            unfinished[position] = [None] * len(parts)
            for number, part in enumerate(parts):
                owners.append((position, number))
                yield part

    for group in transport.stream(sent(), read):
        for place, answer in group:
            position, number = owners[place]
            unfinished[position][number] = answer
        # None stands for a part without an answer; a request without parts has none.
        finished = [position for position, answers in unfinished.items() if None not in answers]
        yield [(position, combine(position, unfinished.pop(position))) for position in finished]
    # Requests without parts remain if no group came after them.
    yield [(position, combine(position, ())) for position in unfinished]


def _generation(reply: Any, request: ServerRequest) -> Generation:
    first = answered_texts(reply)[:1]
    return Generation(first[0], finish_reason(reply), usage(reply, request.prompt, first))


def _trimmed(generation: Generation | Refused, request: GenerationRequest) -> Generation:
    """The reply up to the last requested item, without the excluded values."""
    if isinstance(generation, Refused):
        return Generation("", REFUSED, generation.usage, generation.reason)
    form = reply_form(request)
    if form is not None and form.json:
        return generation
    items = first_items(generation.text, form.count if form else None)
    data_type = form.data_type if form else "Number"
    text = without_values(generation.text if items is None else items, request.excluded_values, data_type)
    return Generation(text, generation.finish_reason if items is None else "stop", generation.usage)


def _shared_out(replies: Sequence[Any], count: int) -> list[CriticScore | None]:
    """The mean scores of so many claims by replies about all of them. The first one has the tokens."""
    answered = [reply for reply in replies if not isinstance(reply, Refused)]
    spent = [reply.usage if isinstance(reply, Refused) else reply[1] for reply in replies]
    total = Usage(sum(each.prompt_tokens for each in spent), sum(each.completion_tokens for each in spent), len(spent))
    scores: list[CriticScore | None] = []
    for place in range(count):
        told = [found for seen, _ in answered if (found := seen[place]) is not None]
        if not told:
            scores.append(None)
            continue
        probability = sum(found.probability for found in told) / len(told)
        scores.append(CriticScore(probability, total))
        total = Usage(requests=0)
    return scores


def _likeliest(reply: Any, request: ServerRequest) -> CriticScore:
    return first_token_yes(reply).score(usage(reply, request.prompt, ()))


def _decision(reply: Any, request: ServerRequest) -> CriticScore:
    return CriticScore(system_one_yes(reply), usage(reply, request.prompt, ()))


def _critic_score(reply: CriticScore | Refused) -> CriticScore:
    return CriticScore(NOTHING_KNOWN, reply.usage, reply.reason) if isinstance(reply, Refused) else reply


def _log_likelihood(replies: Sequence[LogLikelihood | Refused]) -> LogLikelihood:
    if not replies:  # an empty text
        return LogLikelihood(0.0, 0)
    (reply,) = replies
    return LogLikelihood(0.0, 0, reply.reason) if isinstance(reply, Refused) else reply


def _ballot(reply: Any, request: ServerRequest) -> Ballot:
    """The votes of one reply. Raises TransientFault for fewer than requested."""
    samples = answered_texts(reply)
    wanted = request.body.get("n", 1)
    if len(samples) < wanted:
        raise TransientFault(f"{len(samples)} samples where {wanted} were asked for")
    return [parse_yes_no(text) for text in samples[:wanted]], usage(reply, request.prompt, samples)


def _share_of_yes(replies: Sequence[Ballot | Refused]) -> CriticScore:
    """The share of yes among the votes. A claim is refused only if all requests for votes are."""
    votes: list[bool] = []
    refusals: list[str] = []
    prompt_tokens = completion_tokens = 0
    for reply in replies:
        if isinstance(reply, Refused):
            refusals.append(reply.reason)
            spent = reply.usage
        else:
            ballot, spent = reply
            # An answer that says neither yes nor no is no vote.
            votes += [vote for vote in ballot if vote is not None]
        prompt_tokens += spent.prompt_tokens
        completion_tokens += spent.completion_tokens
    refused = refusals[0] if refusals and len(refusals) == len(replies) else ""
    probability = sum(votes) / len(votes) if votes else NOTHING_KNOWN
    return CriticScore(probability, Usage(prompt_tokens, completion_tokens, len(replies)), refused)
