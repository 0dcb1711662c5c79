"""Finds out what a server can do by asking it, never by its name, and keeps the findings in the journal.

Servers ignore what they do not know: a completion comes without log-probabilities, an echo without an echo. Each probe
is a request whose right answer is known, and a method of asking counts only if the answer shows that it works.
Findings are paid for once, and compared with what the server says later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.answers import LEAST_MASS_OF_PROBE, FirstToken, numbered_verdicts, parse_yes_no
from hapax.llm_oracle.backends.openai_aliases import ServedModel
from hapax.llm_oracle.backends.openai_outcomes import SAME_FOR_ALL, Kind, Refused, RetriesExhausted, TransientFault
from hapax.llm_oracle.backends.openai_transport import (
    Answer,
    ReadReply,
    ServerRequest,
    Transport,
)
from hapax.llm_oracle.backends.openai_wire import (
    CHAT,
    COMPLETIONS,
    SYSTEM_ONE,
    answered_texts,
    echoed_likelihood,
    first_token_yes,
    logprobs_options,
    model_reported,
    numbered_yes,
    prompt_likelihood,
    request_body,
    system_one_yes,
    texts,
    usage,
)
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.critic_probing import probe_claims
from hapax.llm_oracle.journal import PROBE, Asker, Journal, PreparedCall, StoredAnswer
from hapax.llm_oracle.prompts import critic_batch_prompt, critic_prompt
from hapax.llm_oracle.protocols import (
    CannotScore,
    LogLikelihood,
    ModelIdentity,
    PartlyAnswered,
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)

KNOWN_CLAIM = "Paris is the capital of France."
KNOWN_FALSEHOOD = "Paris is the capital of Spain."
FORM_QUESTION = "Name two colours."
"""A question that says nothing about JSON."""

KNOWN_UNLIKELY = "France capital the of is Paris."
"""The same words in an order that every language model finds less likely."""

PROBING = 1
"""Version of the probes. A new one probes every server again."""

MOST_PROBES = Usage(300, 800)
"""Tokens that probing one ability is expected to use at most; each of its requests is reserved by itself."""

LOGPROBS, VOTE = "logprobs", "vote"
ECHO, PROMPT_LOGPROBS = "echo", "prompt_logprobs"
JSON_SCHEMA, WORDS = "json_schema", "words"

VALUES_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "values",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"values": {"type": "array", "items": {"type": "string"}}},
            "required": ["values"],
            "additionalProperties": False,
        },
    },
}
"""The option `response_format` for an object whose field `values` is an array of texts."""

FORM_TOKENS = 200
"""Tokens of the probe for structured output, whose question has a short answer."""

MOST_TOP = 20
"""Number of likeliest tokens requested: the limit of OpenAI and vLLM for chats. Completions may allow fewer."""
FEWER_TOP = 5
"""OpenAI's limit for completions."""

TOKENS_PER_VERDICT = 8
"""Most tokens of a line with a number and a verdict."""

VOTE_TOKENS = {CHAT: 256, COMPLETIONS: 8}
"""Most tokens of a vote. A chat may think aloud before it says yes or no."""

PLAIN_SAMPLING = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "repetition_penalty": 1.0}
"""Turns off the defaults of llama.cpp and vLLM that change sampling. OpenAI rejects these options."""

_STATED_LIKELIHOODS = {"echo": ECHO, "prompt": PROMPT_LOGPROBS}
_OPTIONAL = ("top_p", "temperature", "seed")
"""Options that a model may refuse, in the order in which they are given up: at 1, `top_p` says nothing."""

PROBE_TOKENS = 16
ROOMS = (512, 2_048, 8_192)
"""Tokens that a model gets to think before its answer to a probe, as far as it needs them."""

MORE_ROOM = 4
"""Times the room of a probe that a real question gets."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class AnswerMethod:
    """Endpoint that answers prompts, and options that the model rejects. The journal stores it field by field."""

    endpoint: str
    dropped: tuple[str, ...] = ()
    limit_name: str = "max_tokens"
    plain: bool = True
    reported: str = ""
    """The server's name for the model."""
    streams: bool = False
    """True if the server answers by streams alone."""
    room: int = 0
    """Tokens that the model gets to think before its answer; 0 for one that does not."""

    def ask(self, model: str, prompt: str, tokens: int, **options: Any) -> ServerRequest:
        """A request for an answer of at most `tokens` tokens, thoughts apart."""
        accepted = {name: value for name, value in options.items() if name not in self.dropped}
        if self.streams:
            accepted |= {"stream": True, "stream_options": {"include_usage": True}}
        most = tokens + self.room
        body = request_body(self.endpoint, model, prompt, **{self.limit_name: most}, **accepted)
        samples = options.get("n", 1)
        return ServerRequest(self.endpoint, body, Usage(estimated_tokens(prompt), most * samples))

    def sample(self, model: str, prompt: str, tokens: int, **options: Any) -> ServerRequest:
        """A request that samples by temperature and top_p alone, if the server has options for that."""
        return self.ask(model, prompt, tokens, **options, **(PLAIN_SAMPLING if self.plain else {}))

    def revision(self, served: ServedModel) -> list[str]:
        """Parts of the model's revision: everything here that may change an answer."""
        version = served.revision or (self.reported if self.reported != served.model else "")
        without = f"without {', '.join(sorted(self.dropped))}" if self.dropped else ""
        return [part for part in (version, self.endpoint.partition("/")[0], without, served.chat.revision) if part]


@dataclass(frozen=True, slots=True)
class CriticMethod:
    """Source of P(yes): log-probabilities, a decision endpoint, or a vote of samples."""

    kind: str
    top: int = MOST_TOP
    takes_n: bool = True
    """True if one request can return several samples (option `n`)."""

    def revision(self, votes: int) -> str:
        """Part of the model's revision, so that votes are never taken for probabilities."""
        return f"{VOTE} of {votes}" if self.kind == VOTE else self.kind


@dataclass(frozen=True, slots=True)
class LikelihoodMethod:
    """Source of ln P of a text."""

    kind: str
    reported: str = ""

    def ask(self, model: str, text: str) -> ServerRequest:
        """A request that scores the text. It asks for one token of answer, the least that all servers accept."""
        option: dict[str, Any] = {"echo": True, "logprobs": 1} if self.kind == ECHO else {"prompt_logprobs": 0}
        body = request_body(COMPLETIONS, model, text, max_tokens=1, temperature=0, **option)
        return ServerRequest(COMPLETIONS, body, Usage(estimated_tokens(text), 1))

    def read(self, reply: Any, asked: SpannedText) -> LogLikelihood | None:
        return echoed_likelihood(reply, asked) if self.kind == ECHO else prompt_likelihood(reply, asked)


@dataclass(frozen=True, slots=True)
class FormMethod:
    """Means by which a reply becomes JSON: the option `response_format` with a schema, or words alone."""

    kind: str = WORDS


@dataclass(frozen=True, slots=True)
class ClaimsMethod:
    """Number of claims that a critic is asked about in one request."""

    size: int = 1


Method = TypeVar("Method", AnswerMethod, ClaimsMethod, CriticMethod, FormMethod, LikelihoodMethod)


# Methods that an alias states, for models that cannot be probed


def stated_answer_method(served: ServedModel) -> AnswerMethod:
    """The answer method by the alias alone."""
    return AnswerMethod(COMPLETIONS if served.completion else CHAT, plain=False)


def stated_critic_method(served: ServedModel) -> CriticMethod:
    """The critic's method by the alias alone."""
    top = FEWER_TOP if served.completion else MOST_TOP
    return CriticMethod(VOTE if served.logprobs == "none" else LOGPROBS, top)


def stated_form_method(_: ServedModel) -> FormMethod:
    """Words: an alias does not state whether its server follows a schema."""
    return FormMethod(WORDS)


def stated_likelihood_method(served: ServedModel) -> LikelihoodMethod:
    """The likelihood's method by the alias alone. Raises HapaxError if it states that there is none."""
    if served.logprobs is None:
        return LikelihoodMethod(ECHO)
    if served.logprobs not in _STATED_LIKELIHOODS:
        raise CannotScore(
            f"{served.name} cannot score texts: its alias says `logprobs: {served.logprobs}`.",
            Remedy("Choose {} frequency, or a server that echoes texts.", Setting("likelihood")),
        )
    return LikelihoodMethod(_STATED_LIKELIHOODS[served.logprobs])


# Probes


def probe_answer_method(transport: Transport, served: ServedModel) -> AnswerMethod:
    """Chat if the server answers one, else completions; the alias may say which.

    Raises the fault of the first endpoint if none works.
    """
    endpoints = {True: (COMPLETIONS,), False: (CHAT,), None: (CHAT, COMPLETIONS)}[served.completion]
    if not served.chat.is_default:
        endpoints = (CHAT,)  # completions have neither a system prompt nor a template
    first: HapaxError | None = None  # of the endpoint that most servers have
    for endpoint in endpoints:
        try:
            return _with_accepted_options(transport, served, AnswerMethod(endpoint))
        except (Refused, RetriesExhausted) as fault:
            _raise_if_general(fault)
            first = first or fault
    assert first is not None  # noqa: S101  # there is at least one endpoint
    raise first


def _with_accepted_options(transport: Transport, served: ServedModel, method: AnswerMethod) -> AnswerMethod:
    """The method without the options that the model rejects by name, and with room for its thoughts."""
    rooms = iter(ROOMS)
    while True:
        # Each refusal removes an option for good, makes more room, or is raised, so the loop ends.
        request = method.sample(served.model, KNOWN_CLAIM, PROBE_TOKENS, temperature=0.7, top_p=1.0, seed=1)
        try:
            reported = _answer(transport, request, _reported)
        except Refused as refused:
            room = next(rooms, None) if refused.kind is Kind.CUT_OFF else None
            method = replace(method, room=room) if room else _without_refused_option(method, refused)
        else:
            return replace(method, reported=reported, room=method.room * MORE_ROOM)


def _reported(reply: Any, request: ServerRequest) -> str:  # noqa: ARG001  # ReadReply
    texts(reply)  # raises TransientFault for a reply without an answer
    try:
        answered_texts(reply)
    except TransientFault as fault:
        # An empty answer is one, as far as the way of asking goes.
        if fault.kind is Kind.CUT_OFF:
            raise
    return model_reported(reply)


def _without_refused_option(method: AnswerMethod, refused: Refused) -> AnswerMethod:
    """The method without the option that the refusal names. Raises the refusal if it names none."""
    if refused.status in (400, 422):
        if "max_completion_tokens" in refused.said and method.limit_name == "max_tokens":
            return replace(method, limit_name="max_completion_tokens")
        if "stream" in refused.said and not method.streams:
            return replace(method, streams=True)
        if method.plain and any(option in refused.said for option in PLAIN_SAMPLING):
            return replace(method, plain=False)
        for option in _OPTIONAL:
            if option in refused.said and option not in method.dropped:
                return replace(method, dropped=(*method.dropped, option))
    raise refused


def probe_critic_method(transport: Transport, served: ServedModel, method: AnswerMethod) -> CriticMethod:
    """Log-probabilities if the server gives them, else its decision endpoint, else a vote.

    Raises HapaxError for a model that says neither yes nor no.
    """
    prompt = critic_prompt(KNOWN_CLAIM)
    # Some servers refuse the larger number instead of giving fewer. The first token of a thought is no answer.
    for top in () if method.room else (MOST_TOP, FEWER_TOP):
        true = _first_token(transport, served, KNOWN_CLAIM, method, top)
        if true is not None and true.mass >= LEAST_MASS_OF_PROBE:
            false = _first_token(transport, served, KNOWN_FALSEHOOD, method, top)
            if false is not None and false.mass >= LEAST_MASS_OF_PROBE and true.probability > false.probability:
                return CriticMethod(LOGPROBS, top)
    if _found(transport, system_one_request(served.model, prompt), system_one_yes) is not None:
        return CriticMethod(SYSTEM_ONE)
    for takes_n in (True, False):
        wanted = 2 if takes_n else 1
        samples = _found(transport, vote_request(served.model, prompt, method, seed=1, samples=wanted), texts)
        if samples is None or len(samples) != wanted:
            continue
        if any(parse_yes_no(text) is not None for text in samples):
            return CriticMethod(VOTE, takes_n=takes_n)
    raise HapaxError(
        f"{served.name} cannot be a critic: it gives no log-probabilities, and when asked whether a "
        "statement is correct, it says neither yes nor no.",
        Remedy("Choose another {}.", Setting("critic")),
    )


CLAIMS_SIZES = (20, 5)
"""Numbers of claims in one request that are tried."""

CLAIMS_SAMPLE = 5
"""Claims of a tried request that are also asked alone."""

MOST_DIFFERENT = 1
"""Claims of the sample that may get another verdict alone."""


def probe_claims_method(
    transport: Transport, served: ServedModel, method: AnswerMethod, critic: CriticMethod
) -> ClaimsMethod:
    """The largest number of claims in a request for which the verdicts are those that the claims get alone."""
    for size in CLAIMS_SIZES:
        # True and false ones in turn.
        claims = list(chain.from_iterable(zip(*probe_claims(), strict=False)))[:size]
        request = claims_request(served.model, claims, method, critic, seed=1)
        together = _found(transport, request, partial(claims_yes, count=len(claims), critic=critic))
        if together is None or not any(map(_is_told, together)):
            break  # it answers otherwise, and would for fewer
        sample = range(0, len(claims), max(1, len(claims) // CLAIMS_SAMPLE))
        alone = {place: _alone(transport, served, claims[place], method, critic) for place in sample}
        different = sum(_verdict(together[place]) is not verdict for place, verdict in alone.items())
        if all(map(_is_told, together)) and different <= MOST_DIFFERENT:
            return ClaimsMethod(len(claims))
    return ClaimsMethod()


def _alone(
    transport: Transport, served: ServedModel, claim: str, method: AnswerMethod, critic: CriticMethod
) -> bool | None:
    """The verdict on a claim that is asked alone."""
    if critic.kind == LOGPROBS:
        return _verdict(_first_token(transport, served, claim, method, critic.top))
    samples = _found(transport, vote_request(served.model, critic_prompt(claim), method, seed=1), texts)
    return parse_yes_no(samples[0]) if samples else None


def _is_told(found: FirstToken | None) -> bool:
    return found is not None


def _verdict(found: FirstToken | None) -> bool | None:
    return None if found is None else found.probability > 0.5


def claims_request(
    model: str, claims: Sequence[str], method: AnswerMethod, critic: CriticMethod, *, seed: int, samples: int = 1
) -> ServerRequest:
    """A request for verdicts on several claims, numbered from 1."""
    prompt, tokens = critic_batch_prompt(claims), TOKENS_PER_VERDICT * len(claims)
    if critic.kind == LOGPROBS:
        return method.ask(model, prompt, tokens, temperature=1, top_p=1, **logprobs_options(CHAT, critic.top))
    return vote_request(model, prompt, method, seed=seed, samples=samples, more_tokens=tokens)


def claims_yes(reply: Any, count: int, critic: CriticMethod) -> list[FirstToken | None]:
    """P(yes) of so many claims: by the tokens of their verdicts, or the share of yes among the samples.

    None for a claim about which nothing is said.
    """
    if critic.kind == LOGPROBS:
        return numbered_yes(reply, count)
    columns = zip(*(numbered_verdicts(text, count) for text in answered_texts(reply)), strict=True)
    votes = [[vote for vote in column if vote is not None] for column in columns]
    return [FirstToken(sum(said) / len(said), 1.0) if said else None for said in votes]


def _first_token(
    transport: Transport, served: ServedModel, claim: str, method: AnswerMethod, top: int
) -> FirstToken | None:
    """The beginning of the answer to a claim; None if the server does not tell it."""
    return _found(transport, critic_request(served.model, critic_prompt(claim), method, top), first_token_yes)


def probe_form_method(transport: Transport, served: ServedModel, method: AnswerMethod) -> FormMethod:
    """A schema if the server's reply follows one that the question does not mention."""
    if method.endpoint != CHAT:  # completions have no such option
        return FormMethod()
    request = method.ask(served.model, FORM_QUESTION, FORM_TOKENS, temperature=0, response_format=VALUES_FORMAT)
    return FormMethod(JSON_SCHEMA if _found(transport, request, _follows_schema) else WORDS)


def _follows_schema(reply: Any) -> bool:
    try:
        answer = json.loads(texts(reply)[0])
    except (ValueError, RecursionError):
        return False
    values = answer.get("values") if isinstance(answer, dict) else None
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def probe_likelihood_method(transport: Transport, served: ServedModel) -> LikelihoodMethod:
    """Echo or prompt_logprobs, whichever scores a whole sentence and finds it likelier than its words in disorder."""
    for kind in (ECHO, PROMPT_LOGPROBS):
        method = LikelihoodMethod(kind)
        likely, reported = _scored(transport, served, method, KNOWN_CLAIM)
        unlikely, _ = _scored(transport, served, method, KNOWN_UNLIKELY)
        # The score of one token is not that of a sentence.
        if likely and unlikely and likely.token_count > 1 and likely.total > unlikely.total:
            return replace(method, reported=reported)
    raise CannotScore(
        f"{served.name} cannot score texts: its completions neither echo a text with log-probabilities "
        "nor support prompt_logprobs.",
        Remedy("Choose {} frequency, or a server that does, such as vLLM or llama-cpp-python.", Setting("likelihood")),
    )


def _scored(
    transport: Transport, served: ServedModel, method: LikelihoodMethod, text: str
) -> tuple[LogLikelihood | None, str]:
    """The score of a text, and the server's name for the model."""

    def read(reply: Any) -> tuple[LogLikelihood | None, str]:
        return method.read(reply, SpannedText(text, ())), model_reported(reply)

    return _found(transport, method.ask(served.model, text), read) or (None, "")


def critic_request(model: str, prompt: str, method: AnswerMethod, top: int) -> ServerRequest:
    """A request for the likeliest first tokens of the answer. At temperature 1 the scores are the model's own."""
    return method.ask(model, prompt, 1, temperature=1, top_p=1, **logprobs_options(method.endpoint, top))


def system_one_request(model: str, prompt: str) -> ServerRequest:
    """A request for a decision between yes and no."""
    body = {"model": model, "state": prompt, "questions": {"holds": {"type": "noul"}}}
    return ServerRequest(SYSTEM_ONE, body, Usage(estimated_tokens(prompt), 1))


def vote_request(
    model: str, prompt: str, method: AnswerMethod, *, seed: int, samples: int = 1, more_tokens: int = 0
) -> ServerRequest:
    """A request for samples of the answer."""
    number = {"n": samples} if samples > 1 else {}
    tokens = VOTE_TOKENS[method.endpoint] + more_tokens
    return method.sample(model, prompt, tokens, temperature=1, top_p=1, seed=seed, **number)


def _answer(transport: Transport, request: ServerRequest, read: ReadReply[Answer]) -> Answer:
    """The answer to a probe. A refusal is raised, even one of this request alone."""
    (found,) = transport.ask([request], read)
    if isinstance(found, Refused):
        raise found
    return found


def _found(transport: Transport, request: ServerRequest, read: Callable[[Any], Found]) -> Found | None:
    """The value that `read` finds in the reply; None if the server refuses the request or ignores its options."""

    def read_or_none(reply: Any, request: ServerRequest) -> Found | None:  # noqa: ARG001  # ReadReply
        if not isinstance(reply, dict) or not reply.get("choices", reply.get("answers")):
            raise TransientFault("a reply without an answer")
        try:
            return read(reply)
        except TransientFault:
            # An answer without the value: the server does not know the option, and would not when asked again.
            return None

    try:
        return _answer(transport, request, read_or_none)
    except (Refused, RetriesExhausted) as fault:
        _raise_if_general(fault)
        return None


def _raise_if_general(fault: Refused | RetriesExhausted) -> None:
    """Raise a fault that another way of asking would meet, too."""
    if fault.status is None or fault.kind in SAME_FOR_ALL or fault.kind is Kind.BUSY:
        raise fault


# Findings


@dataclass(frozen=True, slots=True)
class Prober:
    """Probes one model on one server; with a journal, once for all commands that use the same journal.

    `again`: probe even if the journal holds findings; the new ones then replace them. `stated`: send nothing, and where
    the journal holds none, take what the alias states, or else the usual method. `assumed`: abilities of which neither
    the journal nor the alias says anything.
    """

    served: ServedModel
    transport: Transport
    journal: Journal | None = None
    again: bool = False
    stated: bool = False
    assumed: set[str] = field(default_factory=set)

    def answer_method(self) -> AnswerMethod:
        # Part of the ids of stored findings: under another name every server would be probed again.
        ability = {"ability": "manner", "completion": self.served.completion}
        probe = partial(probe_answer_method, served=self.served)
        return self._kept(ability, probe, AnswerMethod, stated_answer_method)

    def critic_method(self, method: AnswerMethod) -> CriticMethod:
        # The mass is part of the id: findings without it may rest on the ratio of two tiny numbers.
        ability = {"ability": "critic", "least_mass": LEAST_MASS_OF_PROBE, **asdict(method)}
        probe = partial(probe_critic_method, served=self.served, method=method)
        return self._kept(ability, probe, CriticMethod, stated_critic_method)

    def claims_method(self, method: AnswerMethod, critic: CriticMethod) -> ClaimsMethod:
        if method.endpoint != CHAT or critic.kind == SYSTEM_ONE:
            return ClaimsMethod()
        ability = {"ability": "claims", **asdict(method), "by": asdict(critic)}
        probe = partial(probe_claims_method, served=self.served, method=method, critic=critic)
        return self._kept(ability, probe, ClaimsMethod, lambda _: ClaimsMethod())

    def form_method(self, method: AnswerMethod) -> FormMethod:
        ability = {"ability": "form", **asdict(method)}
        probe = partial(probe_form_method, served=self.served, method=method)
        return self._kept(ability, probe, FormMethod, stated_form_method)

    def likelihood_method(self) -> LikelihoodMethod:
        ability = {"ability": "likelihood"}
        probe = partial(probe_likelihood_method, served=self.served)
        return self._kept(ability, probe, LikelihoodMethod, stated_likelihood_method)

    def _kept(
        self,
        ability: Mapping[str, Any],
        probe: Callable[[Transport], Method],
        kind: Callable[..., Method],
        stated: Callable[[ServedModel], Method],
    ) -> Method:
        """The finding in the journal, else that of the probe, which is stored there."""
        if self.journal is None and not self.stated:
            return probe(self.transport)
        asker = Asker(PROBE, "probe", ModelIdentity(self.served.name, self.served.revision), 1)
        if not self.served.chat.is_default:
            ability = {**ability, "chat": self.served.chat.revision}
        call = None if self.journal is None else self._call(self.journal, asker, ability)
        if self.journal is None or call is None or (self.stated and not self.journal.store.calls([call.id])):
            if self.served.logprobs is None:
                self.assumed.add(str(ability["ability"]))
            return stated(self.served)

        def send(_: Sequence[int]) -> Stream[StoredAnswer]:
            metered = MeteredTransport(self.transport)
            fields = asdict(probe(metered))
            yield [(0, StoredAnswer({_STORED_NAMES.get(name, name): fields[name] for name in fields}, metered.spent))]

        (record,) = self.journal.answers(asker, [call], send)
        fields: dict[str, Any] = {}
        for name, value in record.response.items():
            # JSON has no tuples.
            fields[_FIELD_NAMES.get(name, name)] = tuple(value) if isinstance(value, list) else value
        return kind(**fields)

    def _call(self, journal: Journal, asker: Asker, ability: Mapping[str, Any]) -> PreparedCall:
        """The newest round of probing that the journal holds, or the next round."""

        def call(number: int) -> PreparedCall:
            request = {**ability, "probing": PROBING, "round": number}
            request_id = content_id("probe", asker.model.name, asker.model.revision, request)
            return PreparedCall(request_id, request, MOST_PROBES)

        # Rounds are numbered without gaps, so the first unknown number is behind the newest round.
        unknown = next(number for number in count() if not journal.store.calls([call(number).id]))
        return call(unknown if self.again else max(0, unknown - 1))


_STORED_NAMES = {"takes_n": "several"}
"""Fields whose name in the journal, which older knowledge bases share, is another one."""

_FIELD_NAMES = {stored: name for name, stored in _STORED_NAMES.items()}


class MeteredTransport:
    """A transport that adds up the tokens of its replies."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.spent = Usage()

    def ask(self, requests: Sequence[ServerRequest], read: ReadReply[Answer]) -> list[Answer | Refused]:
        return in_request_order(self.stream(requests, read), len(requests))

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        def metered(reply: Any, request: ServerRequest) -> Answer:
            cost = usage(reply, request.prompt, ())
            self.spent = Usage(
                self.spent.prompt_tokens + cost.prompt_tokens, self.spent.completion_tokens + cost.completion_tokens
            )
            return read(reply, request)

        return self._transport.stream(requests, metered)


class VersionChanged(PartlyAnswered):
    """The server reports another version of the model than the one that was probed."""


@dataclass(frozen=True, slots=True)
class SameVersionTransport:
    """A transport whose replies must all report the version of the model that was probed.

    Thus the first reply shows that the model was replaced while the journal holds answers of its predecessor.
    """

    transport: Transport
    place: str
    version: str

    def ask(self, requests: Sequence[ServerRequest], read: ReadReply[Answer]) -> list[Answer | Refused]:
        return in_request_order(self.stream(requests, read), len(requests))

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        def checked(reply: Any, request: ServerRequest) -> Answer:
            answer = read(reply, request)
            version = model_reported(reply)
            if version and version != self.version:
                raise VersionChanged(
                    f"{self.place} now answers with {version}, but {self.version} answered when it was probed.",
                    Remedy(
                        "Run the {} with {}, which asks the new version everything anew, or set "
                        "`revision` in the model's alias to say that both are the same model.",
                        CALL,
                        Setting("probe_again"),
                    ),
                )
            return answer

        return self.transport.stream(requests, checked)


def same_version(transport: Transport, served: ServedModel, reported: str) -> Transport:
    """The transport, checked for the reported version unless the user's alias has a `revision`."""
    if served.revision or not reported:
        return transport
    return SameVersionTransport(transport, served.server.place, reported)
