"""A model on an OpenAI-compatible server in its roles, asked in the way that `openai_probing.py` found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import fmean
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.journal import REFUSED
from hapax.llm_oracle.protocols import (
    NOTHING_KNOWN,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    PartlyAnswered,
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)
from hapax.llm_oracle.questions.list_requests import (
    BIAS,
    LIST_TEXT,
    banned_tokens,
    begun_list,
    excluded_values,
    spellings,
    trimmed,
)
from hapax.llm_oracle.questions.lists_together import LISTS, ListsTogether
from hapax.llm_oracle.questions.prompts import critic_prompt, exclusion_clause, is_whole_question
from hapax.llm_oracle.reading.link_replies import VERDICT_WORDS, FirstToken
from hapax.llm_oracle.servers.openai_aliases import OPENAI, ServedModel
from hapax.llm_oracle.servers.openai_outcomes import Refused, RetriesExhausted, TransientFault
from hapax.llm_oracle.servers.openai_probing import (
    LISTS_FORMAT,
    USUAL_PROBES,
    VALUES_FORMAT,
    Prober,
    schema_format,
)
from hapax.llm_oracle.servers.openai_requests import (
    VOTE,
    VOTE_TOKENS,
    Abilities,
    Questions,
    Verdicts,
)
from hapax.llm_oracle.servers.openai_tokens import Tokenizer, own_tokenizer
from hapax.llm_oracle.servers.openai_wire import (
    COMPLETIONS,
    SYSTEM_ONE,
    ReadReply,
    ServerRequest,
    Transport,
    answered_texts,
    finish_reason,
    model_reported,
    usage,
)

MOST_SEED = 2**31 - 1

TOKENIZER_PATHS = ("/tokenize", "/extras/tokenize")
"""Paths of vLLM and llama.cpp, and of llama-cpp-python."""

Answer = TypeVar("Answer")

_CONTROL = re.compile(r"<\|[^|<>]{1,60}\|>|</?s>|\[/?INST\]")


class VersionChanged(PartlyAnswered):
    """The server reports another version of the model than the one that was probed."""


class OpenAIModel:
    """One model on one server, opened once for all its roles. Its abilities are probed when a role needs them.

    `queue`: records the requests instead of sending them. `claims`: number of claims in a request to the critic; None:
    what a probe finds.
    """

    def __init__(self, prober: Prober, queue: Transport | None = None, claims: int | None = None) -> None:
        self.served = prober.served
        self._prober = prober
        self._transport = queue or prober.transport
        # What was never tried goes into no queue.
        self._claims = 1 if claims is None and queue is not None and prober.stated else claims
        self._can_structure = queue is None or not prober.stated

    @cached_property
    def _answers(self) -> Abilities:
        return self._prober.answers()

    def generator(self) -> OpenAIGenerator:
        able = self._answers
        # The bias asks the server for its tokens.
        bias = None if self._prober.stated else TokenBias(self.served, self._prober.transport)
        generator = OpenAIGenerator(
            self.served, self._transport, able, bias, lambda: self._can_structure and self._prober.structures(able)
        )
        generator.lists_together = LISTS if self._prober.expects_structures(able) else 1
        generator.unprobed = self._prober.assumed
        return generator

    def critic(self) -> OpenAICritic:
        able = self._prober.critic(self._answers)
        able = self._prober.claims(able) if self._claims is None else replace(able, claims=self._claims)
        return OpenAICritic(self.served, self._transport, able, bool(self._prober.assumed))

    def likelihood(self) -> OpenAILikelihood:
        able = self._prober.likelihood()
        likelihood = OpenAILikelihood(self.served, self._transport, able, bool(self._prober.assumed))
        likelihood.unprobed = self._prober.assumed
        return likelihood


class _Role:
    """State and requests that all roles of a model share.

    `is_assumed`: neither a probe nor the alias says how it is to be asked.
    """

    unprobed: Collection[str] = ()
    """Abilities of the model that are assumed, in whichever role."""

    def __init__(self, served: ServedModel, transport: Transport, able: Abilities, is_assumed: bool = False) -> None:
        self.is_assumed = is_assumed
        self.price = served.price
        self.pace = served.pace
        self._served = served
        self._transport = transport
        self._able = able
        self._questions = Questions(served, able)
        self.identity = ModelIdentity(served.name, "; ".join(part for part in self._revision() if part))

    def probes_to_come(self) -> dict[str, int]:
        """By model and ability, the requests by which it will be probed first."""
        return {f"{self._served.name} {ability}": USUAL_PROBES[ability] for ability in self.unprobed}

    def _revision(self) -> list[str]:
        return self._questions.revision

    def _stream(
        self,
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

        def checked(reply: Any, request: ServerRequest) -> Any:
            answer = read(reply, request)
            self._check_version(reply, request)
            return answer

        for group in self._transport.stream(sent(), checked):
            for place, answer in group:
                position, number = owners[place]
                unfinished[position][number] = answer
            # None stands for a part without an answer; a request without parts has none.
            finished = [position for position, answers in unfinished.items() if None not in answers]
            yield [(position, combine(position, unfinished.pop(position))) for position in finished]
        # Requests without parts remain if no group came after them.
        yield [(position, combine(position, ())) for position in unfinished]

    def _check_version(self, reply: Any, request: ServerRequest) -> None:
        """Raise VersionChanged for a reply of another version than the one that was probed.

        Thus the first reply shows that the model was replaced while the journal holds answers of its predecessor.
        """
        probed, version = self._able.reported, model_reported(reply)
        # A decision endpoint may report another name than the endpoint that was probed.
        if self._served.alias.revision or not probed or version in ("", probed) or request.path == SYSTEM_ONE:
            return
        raise VersionChanged(
            f"{self._served.server.place} now answers with {version}, but {probed} answered when it was probed.",
            Remedy(
                "Run the {} with {}, which asks the new version everything anew, or set "
                "`revision` in the model's alias to say that both are the same model.",
                CALL,
                Setting("probe_again"),
            ),
        )


class OpenAIGenerator(_Role):
    """Numbered lists from a server. Each request has its own seed.

    `lists_together`: number of lists to expect in one request.
    """

    lists_together: int = 1

    def __init__(
        self,
        served: ServedModel,
        transport: Transport,
        able: Abilities,
        bias: TokenBias | None,
        structures: Callable[[], bool],
    ) -> None:
        super().__init__(served, transport, able)
        self._bias = bias
        self._probe_structures = structures
        self._lists = ListsTogether(lambda: self.structures)

    @cached_property
    def structures(self) -> bool:
        """True if the server holds a reply to a JSON schema. Probed when first needed."""
        return self._probe_structures()

    @property
    def bias_refused(self) -> str:
        """Why a logit bias that was wanted could not be sent; empty if it was sent or not wanted."""
        return "" if self._bias is None else self._bias.refused

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        return in_request_order(self.stream(requests, parameters), len(requests))

    def stream(self, asked: Sequence[GenerationRequest], *parameters: GenerationParameters) -> Stream[Generation]:
        """The answers as they arrive."""
        return self._lists.stream(asked, lambda requests: self._each(requests, *parameters))

    def _each(self, asked: Sequence[GenerationRequest], *parameters: GenerationParameters) -> Stream[Generation]:
        requests = ([self._request(request, *parameters)] for request in asked)
        return self._stream(requests, _generation, lambda position, replies: _whole_list(replies[0], asked[position]))

    def _request(self, request: GenerationRequest, parameters: GenerationParameters) -> ServerRequest:
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
            options["response_format"] = LISTS_FORMAT if request.form.lists > 1 else VALUES_FORMAT
            if request.form.schema:
                options["response_format"] = schema_format("reply", json.loads(request.form.schema))
        return self._questions.sample(self._prompt(request), parameters.max_tokens, **options)

    def _prompt(self, request: GenerationRequest) -> str:
        """The prompt with the excluded values: a sentence for a chat, the beginning of the list for completions."""
        prompt, values = harmless(request.prompt), excluded_values(request, harmless)
        if not values:
            return prompt
        return prompt + (begun_list(values) if self._able.endpoint == COMPLETIONS else exclusion_clause(tuple(values)))


class OpenAICritic(_Role):
    """P(yes) from the likeliest first tokens, from a decision endpoint, or as the share of yes among sampled votes.

    The identity says which, so that votes are never taken for probabilities.
    """

    def _revision(self) -> list[str]:
        able = self._able
        source = f"{VOTE} of {self._served.alias.votes}" if able.critic == VOTE else able.critic
        words = f"in words {able.words}" if able.words != VERDICT_WORDS[0] else ""
        return [*super()._revision(), source, words, f"{able.claims} claims at a time" if able.claims > 1 else ""]

    @property
    def claims_together(self) -> int:
        """Number of claims in one request."""
        return self._able.claims

    def one_by_one(self) -> OpenAICritic:
        """The same critic, asked about each claim alone, as LINK asks."""
        return OpenAICritic(self._served, self._transport, replace(self._able, claims=1), self.is_assumed)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return in_request_order(self.stream(claims), len(claims))

    def stream(self, asked: Sequence[str], *_: GenerationParameters) -> Stream[CriticScore]:
        """The scores as they arrive. Claims about which a request for several says nothing are asked alone."""
        size = self.claims_together
        alone = [place for place, claim in enumerate(asked) if size == 1 or is_whole_question(claim)]
        # In an order that has nothing to do with the search, and the same for the same claims.
        others = sorted(set(range(len(asked))).difference(alone), key=lambda place: seed("claim", asked[place]))
        groups = [others[start : start + size] for start in range(0, len(others), size)]
        if groups and len(groups[-1]) == 1:
            alone += groups.pop()
        for found in self._judged([[asked[place] for place in group] for group in groups], _scores):
            scores = [pair for number, told in found for pair in zip(groups[number], told, strict=True)]
            alone += [place for place, score in scores if score is None]
            yield [(place, score) for place, score in scores if score is not None]
        for single in self._judged([[asked[place]] for place in alone], _single_score):
            yield [(alone[place], score) for place, score in single]

    def reserved(self, claim: str) -> Usage:
        """Most tokens that a claim uses: each vote, with the question around the claim."""
        prompt = estimated_tokens(critic_prompt(claim))
        if self._able.critic != VOTE and not self.is_assumed:
            return Usage(prompt, 1 + self._able.lead)
        requests = self._requests_per_vote
        return Usage(prompt * requests, VOTE_TOKENS[self._able.endpoint] * self._served.alias.votes, requests)

    @property
    def _requests_per_vote(self) -> int:
        """One if the option `n` returns all votes; without it each vote is a request with a seed of its own."""
        return 1 if self._able.takes_n and not self.is_assumed else self._served.alias.votes

    def _judged(
        self, groups: Sequence[Sequence[str]], combine: Callable[[Sequence[Verdicts | Refused], int], Answer]
    ) -> Stream[Answer]:
        """The scores of groups of claims, each asked in one request, or in one for each vote."""
        count = self._requests_per_vote if self._able.critic == VOTE else 1

        def parts(group: Sequence[str]) -> list[ServerRequest]:
            claims = [harmless(claim) for claim in group]
            samples = self._served.alias.votes // count
            return [
                self._questions.verdicts(claims, seed=seed(vote, *claims), samples=samples, parts=count)
                for vote in range(count)
            ]

        requests = map(parts, groups)
        return self._stream(
            requests, self._questions.read_verdicts, lambda place, replies: combine(replies, len(groups[place]))
        )


class OpenAILikelihood(_Role):
    """ln P of a text from completions that echo it with log-probabilities, or from `prompt_logprobs`."""

    def _revision(self) -> list[str]:
        return [self._questions.version, self._able.likelihood]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        return in_request_order(self.stream(texts), len(texts))

    def stream(self, asked: Sequence[str | SpannedText], *_: GenerationParameters) -> Stream[LogLikelihood]:
        """The scores as they arrive. An empty text has a score without a request."""
        requests = map(self._request, asked)
        parts = ([request] if request.prompt else [] for request in requests)
        return self._stream(parts, self._read, lambda _, replies: _log_likelihood(replies))

    def _request(self, asked: str | SpannedText) -> ServerRequest:
        text = SpannedText(asked, ()) if isinstance(asked, str) else asked
        return self._questions.text(text.rewritten(harmless))

    def _read(self, reply: Any, request: ServerRequest) -> LogLikelihood:
        found = self._questions.read_likelihood(reply, SpannedText(request.prompt, request.spans))
        if found is not None:
            return found
        if self._questions.read_likelihood(reply, SpannedText(request.prompt, ())) is not None:
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
        spelt = spellings(banned_texts)
        if not self._tokenize(spelt):
            return {}
        kept = {*self._known[LIST_TEXT], *self._known[""]}  # "": tokens that the server adds to every text
        return {str(token): int(BIAS) for token in banned_tokens(map(self._known.__getitem__, spelt), kept)}

    def _tokenize(self, texts: Sequence[str]) -> bool:
        """Learn the tokens of the texts; False if the server does not return them."""
        unknown = [text for text in dict.fromkeys(["", LIST_TEXT, *texts]) if text not in self._known]
        if not unknown:
            return True
        if self._is_openai:
            return self._learn_own(unknown)
        for path in TOKENIZER_PATHS if self._path is None else (self._path,):
            try:
                requests = [self._request(path, text) for text in unknown]
                replies = in_request_order(self._transport.stream(requests, _tokens), len(unknown))
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


def _tokens(reply: Any, _: ServerRequest) -> list[int] | None:
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


def _generation(reply: Any, request: ServerRequest) -> Generation:
    first = answered_texts(reply)[:1]
    return Generation(first[0], finish_reason(reply), usage(reply, request.prompt, first))


def _whole_list(answer: Generation | Refused, request: GenerationRequest) -> Generation:
    if isinstance(answer, Refused):
        return Generation("", REFUSED, answer.usage, answer.reason)
    return trimmed(answer.text, answer.finish_reason, answer.usage, request)


def _scores(replies: Sequence[Verdicts | Refused], count: int) -> list[CriticScore | None]:
    """The mean scores of so many claims by replies about all of them. The first one has the tokens."""
    told = [reply[0] for reply in replies if not isinstance(reply, Refused)]
    spent = _spent(replies)
    scores: list[CriticScore | None] = []
    for place in range(count):
        found = [verdicts[place] for verdicts in told if verdicts[place] is not None]
        if not found:
            scores.append(None)
            continue
        probability, mass = (fmean(getattr(each, name) for each in found) for name in ("probability", "mass"))
        scores.append(FirstToken(probability, mass).score(spent))
        spent = Usage(requests=0)
    return scores


def _single_score(replies: Sequence[Verdicts | Refused], _: int) -> CriticScore:
    """The score of a claim that was asked alone. It is refused only if all requests for votes are."""
    (score,) = _scores(replies, 1)
    reasons = [reply.reason for reply in replies if isinstance(reply, Refused)]
    refused = reasons[0] if len(reasons) == len(replies) else ""
    return CriticScore(NOTHING_KNOWN, _spent(replies), refused) if score is None else score


def _spent(replies: Sequence[Verdicts | Refused]) -> Usage:
    spent = [reply.usage if isinstance(reply, Refused) else reply[1] for reply in replies]
    return Usage(sum(each.prompt_tokens for each in spent), sum(each.completion_tokens for each in spent), len(spent))


def _log_likelihood(replies: Sequence[LogLikelihood | Refused]) -> LogLikelihood:
    if not replies:  # an empty text
        return LogLikelihood(0.0, 0)
    (reply,) = replies
    return LogLikelihood(0.0, 0, reply.reason) if isinstance(reply, Refused) else reply
