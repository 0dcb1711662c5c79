"""A model on an OpenAI-compatible server in its roles, asked in the way that `openai_abilities.py` found."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.journal import REFUSED
from hapax.llm_oracle.protocols import (
    NO_USAGE,
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
    LISTS,
    ListsTogether,
    banned_tokens,
    begun_list,
    excluded_values,
    spellings,
    trimmed,
)
from hapax.llm_oracle.questions.prompts import critic_prompt, exclusion_clause, is_whole_question
from hapax.llm_oracle.reading.link_replies import VERDICT_WORDS, FirstToken
from hapax.llm_oracle.servers.openai_abilities import (
    ABILITIES,
    COMPLETIONS,
    LISTS_FORMAT,
    SYSTEM_ONE,
    VALUES_FORMAT,
    VOTE,
    VOTE_TOKENS,
    Abilities,
    Prober,
    Questions,
    Verdicts,
    cannot_score,
    schema_format,
)
from hapax.llm_oracle.servers.openai_aliases import OPENAI, ServedModel
from hapax.llm_oracle.servers.openai_outcomes import Unanswered
from hapax.llm_oracle.servers.openai_transport import ServerRequest, Transport
from hapax.llm_oracle.servers.openai_wire import ServerReply, unusable

MOST_SEED = 2**31 - 1

Answer = TypeVar("Answer")

_CONTROL = re.compile(r"<\|[^|<>]{1,60}\|>|</?s>|\[/?INST\]")


class VersionChanged(PartlyAnswered):
    """The server reports another version of the model than the one that was probed."""


@dataclass
class OpenAIModel:
    """One model on one server, opened once for all its roles. Its abilities are probed when a role needs them.

    `queue`: records the requests instead of sending them. `claims`: number of claims in a request to the critic; None:
    what a probe finds.
    """

    prober: Prober
    queue: Transport | None = None
    claims: int | None = None

    @cached_property
    def _answers(self) -> Abilities:
        return self.prober.learn("manner")

    def generator(self) -> OpenAIGenerator:
        return OpenAIGenerator(self.prober, self.queue, self._answers)

    def critic(self) -> OpenAICritic:
        able = self.prober.learn("critic", self._answers)
        # What was never tried goes into no queue.
        claims = 1 if self.claims is None and self.queue and self.prober.stated else self.claims
        able = self.prober.learn("claims", able) if claims is None else replace(able, claims=claims)
        return OpenAICritic(self.prober, self.queue, able)

    def likelihood(self) -> OpenAILikelihood:
        """Raises CannotScore if there is no source of ln P."""
        able, served = self.prober.learn("likelihood"), self.prober.served
        if not able.likelihood:
            stated = f"its alias says `logprobs: {served.alias.logprobs}`"
            found = "its completions neither echo a text with log-probabilities nor support prompt_logprobs"
            raise cannot_score(served, stated if self.prober.stated else found)
        return OpenAILikelihood(self.prober, self.queue, able)


class _Role:
    """State and requests that all roles of a model share. `queue`: as that of the model.

    `is_assumed`: neither a probe nor the alias says how it is to be asked.
    """

    def __init__(self, prober: Prober, queue: Transport | None, able: Abilities) -> None:
        self._served, self._able = prober.served, able
        self._prober, self._queue = prober, queue
        self._transport = queue or prober.transport
        self._questions = Questions(self._served, able)
        self.price, self.pace = self._served.price, self._served.pace
        self.is_assumed = bool(prober.assumed)
        self.identity = ModelIdentity(self._served.name, "; ".join(part for part in self._revision() if part))

    def probes_to_come(self) -> dict[str, int]:
        """By model and ability, the requests by which it will be probed first."""
        return {f"{self._served.name} {ability}": ABILITIES[ability].probes for ability in self._prober.assumed}

    def _revision(self) -> list[str]:
        return self._questions.revision

    def _stream(
        self, questions: Iterable[Sequence[ServerRequest]], combine: Callable[[int, Sequence[Any]], Answer]
    ) -> Stream[Answer]:
        """Answers to questions of any number of requests. `combine` gets a position, and the answer to each request."""
        versioned = ([replace(request, read=self._versioned(request)) for request in asked] for asked in questions)
        for group in self._transport.stream(versioned):
            yield [(position, combine(position, answers)) for position, answers in group]

    def _versioned(self, request: ServerRequest) -> Callable[[ServerReply], Any]:
        """The reader of a request that raises VersionChanged for another version than the one that was probed.

        Thus the first reply shows that the model was replaced while the journal holds answers of its predecessor.
        """
        probed = self._able.reported
        # A decision endpoint may report another name than the endpoint that was probed.
        if self._served.alias.revision or not probed or request.path == SYSTEM_ONE:
            return request.read

        def read(reply: ServerReply) -> Any:
            answer = request.read(reply)
            if reply.model in ("", probed):
                return answer
            raise VersionChanged(
                f"{self._served.server.place} now answers with {reply.model}, but {probed} answered when it was "
                "probed.",
                Remedy(
                    "Run the {} with {}, which asks the new version everything anew, or set "
                    "`revision` in the model's alias to say that both are the same model.",
                    CALL,
                    Setting("probe_again"),
                ),
            )

        return read


class OpenAIGenerator(_Role):
    """Numbered lists from a server. Each request has its own seed.

    `lists_together`: number of lists to expect in one request.
    """

    def __init__(self, prober: Prober, queue: Transport | None, able: Abilities) -> None:
        super().__init__(prober, queue, able)
        self.is_assumed = False  # lists are asked for in one way alone
        self.lists_together = LISTS if prober.foreseen("form", able).structures else 1
        self._lists = ListsTogether(lambda: self.structures)
        # The bias asks the server for its tokens.
        self._bias = None if prober.stated else TokenBias(self._served, prober.transport)

    @cached_property
    def structures(self) -> bool:
        """True if the server holds a reply to a JSON schema. Probed when first needed."""
        # What was never tried goes into no queue.
        return not (self._queue and self._prober.stated) and self._prober.learn("form", self._able).structures

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
        return self._stream(requests, lambda position, replies: _whole_list(replies[0], asked[position]))

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
        return self._questions.sample(self._prompt(request), parameters.max_tokens, _generation, **options)

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
        return OpenAICritic(self._prober, self._queue, replace(self._able, claims=1))

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
            scores = [pair for number, judged in found for pair in zip(groups[number], judged, strict=True)]
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
        self, groups: Sequence[Sequence[str]], combine: Callable[[Sequence[Verdicts | Unanswered], int], Answer]
    ) -> Stream[Answer]:
        """The scores of groups of claims, each asked in one request, or in one for each vote."""
        count = self._requests_per_vote if self._able.critic == VOTE else 1
        samples = self._served.alias.votes // count

        def requests(group: Sequence[str]) -> list[ServerRequest]:
            claims = [harmless(claim) for claim in group]
            return [
                self._questions.verdicts(claims, seed=seed(vote, *claims), samples=samples) for vote in range(count)
            ]

        return self._stream(map(requests, groups), lambda place, replies: combine(replies, len(groups[place])))


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
        texts = [SpannedText(text, ()) if isinstance(text, str) else text for text in asked]
        requests = (self._requests(text.rewritten(harmless)) for text in texts)
        return self._stream(requests, lambda _, replies: _log_likelihood(replies))

    def _requests(self, text: SpannedText) -> list[ServerRequest]:
        if not text.text:
            return []
        scoring = self._questions.likelihood(text)
        whole = self._questions.likelihood(SpannedText(text.text, ()))

        def read(reply: ServerReply) -> LogLikelihood:
            found: LogLikelihood | None = scoring.read(reply)
            if found is not None:
                return found
            if whole.read(reply) is not None:
                raise HapaxError(
                    f"{self.identity.name} does not say where in a text its tokens are, so it cannot score the values "
                    "of a sentence. Choose another model, or a server that gives text_offset or decoded_token."
                )
            raise unusable(f"a text of {len(text.text)} characters came back without its log-probabilities")

        return [replace(scoring, read=read)]


TOKENIZER_PATHS = ("/tokenize", "/extras/tokenize")
"""Paths of vLLM and llama.cpp, and of llama-cpp-python."""


class TokenBias:
    """Logit bias against the tokens of texts, which the server is asked for once per text.

    For OpenAI's own models tiktoken tells them, if it is installed. Otherwise, and from a server without a tokenizer
    endpoint, there is no bias, and `refused` says why.
    """

    def __init__(self, served: ServedModel, transport: Transport) -> None:
        self.refused = ""
        self._served, self._transport = served, transport
        self._paths: tuple[str, ...] = TOKENIZER_PATHS
        self._known: dict[str, list[int]] = {}

    def against(self, banned_texts: Sequence[str]) -> dict[str, int]:
        """A bias of -100 on each token of the texts, at the start of a line and inside it, except those lists need."""
        spelt = spellings(banned_texts)
        unknown = [text for text in dict.fromkeys(["", LIST_TEXT, *spelt]) if text not in self._known]
        if unknown and not self.refused:
            is_openai = self._served.server.base_url == OPENAI
            tokens, self.refused = own_tokens(self._served.model, unknown) if is_openai else self._asked(unknown)
            self._known.update(zip(unknown, tokens, strict=False))  # none if that is refused
        if self.refused:
            return {}
        kept = {*self._known[LIST_TEXT], *self._known[""]}  # "": tokens that the server adds to every text
        return {str(token): int(BIAS) for token in banned_tokens(map(self._known.__getitem__, spelt), kept)}

    def _asked(self, texts: Sequence[str]) -> tuple[list[list[int]], str]:
        """The tokens of the texts by the server, or why there are none."""
        for path in self._paths:
            try:
                requests = [[self._request(path, text)] for text in texts]
                found = [answer for (answer,) in in_request_order(self._transport.stream(requests), len(texts))]
            except Unanswered:
                continue
            if all(isinstance(answer, list) for answer in found):
                self._paths = (path,)
                return found, ""
        return [], "The server does not return the tokens of a text (/tokenize)."

    def _request(self, path: str, text: str) -> ServerRequest:
        # vLLM reads `prompt`, llama.cpp `content`, llama-cpp-python `input`; each ignores the others' names.
        names = dict.fromkeys(("prompt", "content", "input"), text)
        body = {"model": self._served.model, **names, "add_special_tokens": False, "add_special": False}
        return ServerRequest(path, body, _tokens)


def _tokens(reply: ServerReply) -> list[int] | None:
    tokens = reply.body.get("tokens") if isinstance(reply.body, dict) else None
    return tokens if isinstance(tokens, list) and all(type(token) is int for token in tokens) else None


class _NotHere(Exception):  # noqa: N818  # not an error: the file of a tokenizer is not on this machine
    """The file of a tokenizer would have to be downloaded."""


def own_tokens(model: str, texts: Sequence[str]) -> tuple[list[list[int]], str]:
    """The tokens of texts by the tokenizer of one of OpenAI's models, or the reason and remedy if it is not at hand.

    Nothing is downloaded: tiktoken would fetch the file of a tokenizer from a server that the user did not name.
    """
    if missing := missing_of("openai"):
        return [], missing
    import tiktoken
    from tiktoken import load

    read_file: Any = load.read_file

    def read_local_file(path: str) -> bytes:
        if "://" in path:
            raise _NotHere
        return read_file(path)  # type: ignore[no-any-return]  # tiktoken's own function

    reading: Any = load  # a module whose function is exchanged
    reading.read_file = read_local_file
    try:
        encoding = tiktoken.encoding_for_model(model)
    except KeyError:
        return [], f"tiktoken does not know the tokenizer of {model}."
    except _NotHere:
        command = f"""python -c "import tiktoken; tiktoken.encoding_for_model('{model}')" """.strip()
        return [], f"The file of its tokenizer is not on this machine. Download it once: {command}."
    finally:
        reading.read_file = read_file
    # A value may spell a special token; it is a text like any other.
    return [list(encoding.encode(text, disallowed_special=())) for text in texts], ""


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


def _generation(reply: ServerReply) -> Generation:
    return Generation(reply.answers[0], "length" if reply.is_cut else "stop", reply.usage)


def _whole_list(answer: Generation | Unanswered, request: GenerationRequest) -> Generation:
    if isinstance(answer, Unanswered):
        return Generation("", REFUSED, answer.usage, answer.reason)
    return trimmed(answer.text, answer.finish_reason, answer.usage, request)


def _scores(replies: Sequence[Verdicts | Unanswered], count: int) -> list[CriticScore | None]:
    """The mean scores of so many claims by replies about all of them. The first one has the tokens."""
    answered = [reply[0] for reply in replies if not isinstance(reply, Unanswered)]
    spent = _spent(replies)
    scores: list[CriticScore | None] = []
    for place in range(count):
        found = [verdicts[place] for verdicts in answered if verdicts[place] is not None]
        if not found:
            scores.append(None)
            continue
        probability, mass = (fmean(getattr(each, name) for each in found) for name in ("probability", "mass"))
        scores.append(FirstToken(probability, mass).score(spent))
        spent = NO_USAGE
    return scores


def _single_score(replies: Sequence[Verdicts | Unanswered], _: int) -> CriticScore:
    """The score of a claim that was asked alone. It is refused only if all requests for votes are."""
    (score,) = _scores(replies, 1)
    reasons = [reply.reason for reply in replies if isinstance(reply, Unanswered)]
    refused = reasons[0] if len(reasons) == len(replies) else ""
    return CriticScore(NOTHING_KNOWN, _spent(replies), refused) if score is None else score


def _spent(replies: Sequence[Verdicts | Unanswered]) -> Usage:
    return sum((reply.usage if isinstance(reply, Unanswered) else reply[1] for reply in replies), NO_USAGE)


def _log_likelihood(replies: Sequence[LogLikelihood | Unanswered]) -> LogLikelihood:
    if not replies:  # an empty text
        return LogLikelihood(0.0, 0)
    (reply,) = replies
    return LogLikelihood(0.0, 0, reply.reason) if isinstance(reply, Unanswered) else reply
