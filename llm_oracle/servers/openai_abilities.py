"""Abilities of a server, found out by asking it, never by its name; and requests in the way that it can answer.

Servers ignore what they do not know: a completion comes without log-probabilities, an echo without an echo. Each probe
is a request whose right answer is known, and a way of asking counts only if the answer shows that it works.
Findings are kept in the journal: they are paid for once, and compared with what the server says later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, count
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.critics.critic_probing import probe_claims
from hapax.llm_oracle.journal import PROBE, Asker, Journal, PreparedCall, StoredAnswer
from hapax.llm_oracle.protocols import (
    NO_USAGE,
    CannotScore,
    LogLikelihood,
    ModelIdentity,
    SpannedText,
    Stream,
    Usage,
    in_request_order,
)
from hapax.llm_oracle.questions.prompts import critic_batch_prompt, critic_prompt
from hapax.llm_oracle.reading.link_replies import (
    KNOWN_CLAIM,
    KNOWN_FALSEHOOD,
    VERDICT_WORDS,
    FirstToken,
    numbered_verdicts,
    parse_yes_no,
    tells_apart,
)
from hapax.llm_oracle.reading.replies import own_turn
from hapax.llm_oracle.servers.openai_aliases import ServedModel
from hapax.llm_oracle.servers.openai_outcomes import SAME_FOR_ALL, Kind, Unanswered
from hapax.llm_oracle.servers.openai_transport import ServerRequest, Transport
from hapax.llm_oracle.servers.openai_wire import ServerReply, unusable

CHAT, COMPLETIONS = "chat/completions", "completions"
SYSTEM_ONE = "systemone"
"""Typed decisions with probabilities, as `transformers serve` offers them."""

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
    """Requests to a model with these abilities, each with the reader of its reply."""

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

    def answer(self, prompt: str, tokens: int, read: Callable[[ServerReply], Any], **options: Any) -> ServerRequest:
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
        return ServerRequest(able.endpoint, body, read, Usage(asked, (tokens + able.room) * options.get("n", 1)))

    def sample(self, prompt: str, tokens: int, read: Callable[[ServerReply], Any], **options: Any) -> ServerRequest:
        """A request that samples by temperature and top_p alone, if the server has options for that."""
        return self.answer(prompt, tokens, read, **options, **(PLAIN_SAMPLING if self.abilities.plain else {}))

    def verdicts(self, claims: Sequence[str], *, seed: int = 1, samples: int = 1) -> ServerRequest:
        """A request for `Verdicts` on a claim, or on several, numbered from 1. `samples`: number of votes."""
        able, is_single = self.abilities, len(claims) == 1
        prompt = critic_prompt(claims[0]) if is_single else critic_batch_prompt(claims)
        tokens = 0 if is_single else TOKENS_PER_VERDICT * len(claims)
        if able.critic == SYSTEM_ONE:
            body = {"model": self.served.model, "state": prompt, "questions": {"holds": {"type": "noul"}}}
            most = Usage(estimated_tokens(prompt), 1)
            return ServerRequest(
                SYSTEM_ONE, body, lambda reply: ([FirstToken(reply.decided_yes(), 1.0)], reply.usage), most
            )
        if able.critic == LOGPROBS:
            is_chat = able.endpoint == CHAT
            options = {"logprobs": True, "top_logprobs": able.top} if is_chat else {"logprobs": able.top}

            def scored(reply: ServerReply) -> Verdicts:
                if is_single:
                    return [reply.first_token_yes(able.words)], reply.usage
                return reply.numbered_yes(len(claims), able.words), reply.usage

            # At temperature 1 the scores are the model's own.
            return self.answer(prompt, tokens or 1 + able.lead, scored, temperature=1, top_p=1, **options)

        def voted(reply: ServerReply) -> Verdicts:
            said = reply.answers
            if len(said) < samples:
                raise unusable(f"{len(said)} samples where {samples} were asked for")
            # Some servers repeat the prompt before its answer.
            ballots = [_ballot(text.removeprefix(prompt), len(claims)) for text in said[:samples]]
            votes = [[vote for vote in column if vote is not None] for column in zip(*ballots, strict=True)]
            return [FirstToken(sum(said) / len(said), 1.0) if said else None for said in votes], reply.usage

        number = {"n": samples} if samples > 1 else {}
        limit = VOTE_TOKENS[able.endpoint] + tokens
        return self.sample(prompt, limit, voted, temperature=1, top_p=1, seed=seed, **number)

    def likelihood(self, asked: SpannedText) -> ServerRequest:
        """A request that scores a text; its answer is None if the server did not score it.

        It asks for one token of answer, the least that all servers accept.
        """
        is_echo = self.abilities.likelihood == ECHO
        option: dict[str, Any] = {"echo": True, "logprobs": 1} if is_echo else {"prompt_logprobs": 0}
        body = {"model": self.served.model, "prompt": asked.text, "max_tokens": 1, "temperature": 0, **option}

        def read(reply: ServerReply) -> LogLikelihood | None:
            return reply.echoed_likelihood(asked) if is_echo else reply.prompt_likelihood(asked)

        return ServerRequest(COMPLETIONS, body, read, Usage(estimated_tokens(asked.text), 1))


def _ballot(text: str, claims: int) -> list[bool | None]:
    """The verdicts of one sample. An answer that says neither yes nor no is no vote."""
    answer = own_turn(text)[1]  # without thoughts
    return [parse_yes_no(answer)] if claims == 1 else numbered_verdicts(answer, claims)


KNOWN_UNLIKELY = "France capital the of is Paris."
"""The words of the known claim in an order that every language model finds less likely."""

FORM_QUESTION = "Name two colours."
"""A question that says nothing about JSON."""
FORM_TOKENS = 200

PROBING = 3
"""Version of the probes. A new one probes every server again."""

MOST_PROBES = Usage(300, 800)
"""Tokens that probing one ability is expected to use at most; each of its requests is reserved by itself."""


def schema_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The option `response_format` that holds a reply to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXTS = {"type": "array", "items": {"type": "string"}}
_LIST = _object({"number": {"type": "integer"}, "values": _TEXTS})
VALUES_FORMAT = schema_format("values", _object({"values": _TEXTS}))
"""For the values of one list."""
LISTS_FORMAT = schema_format("lists", _object({"lists": {"type": "array", "items": _LIST}}))
"""For several numbered lists."""

_OPTIONAL = ("top_p", "temperature", "seed")
"""Options that a model may refuse, in the order in which they are given up: at 1, `top_p` says nothing."""

REFUSALS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("max_completion_tokens", {"limit_name": "max_completion_tokens"}),
    ("stream", {"streams": True}),
    *((option, {"plain": False}) for option in PLAIN_SAMPLING),
    ("system", {"system_turn": False}),
)
"""Words of refusals, in small letters, and what is asked otherwise after them."""

PROBE_TOKENS = 16
ROOMS = (512, 2_048, 8_192)
"""Tokens that a model gets to think before its answer to a probe, as far as it needs them."""

MORE_ROOM = 4
"""Times the room of a probe that a real question gets."""

CRITICS: tuple[dict[str, Any], ...] = (
    {"critic": LOGPROBS, "top": MOST_TOP},
    # Some servers refuse the larger number instead of giving fewer.
    {"critic": LOGPROBS, "top": FEWER_TOP},
    # After marks, or in an object in JSON.
    {"critic": LOGPROBS, "top": MOST_TOP, "lead": 12},
    {"critic": SYSTEM_ONE},
    {"critic": VOTE},
    {"critic": VOTE, "takes_n": False},
)
"""Sources of P(yes), the best first."""

CLAIMS_SIZES = (20, 5)
"""Numbers of claims in one request that are tried."""

CLAIMS_SAMPLE = 2
"""Claims with a wrong verdict among others that are also asked alone: the model may not know better."""

MOST_DIFFERENT = {LOGPROBS: 0.1, VOTE: 0.2}
"""Share of the claims of a request that may get another verdict than alone. A vote also differs by chance."""


@dataclass(frozen=True, slots=True)
class Ability:
    """A thing that a probe finds out. `probes`: requests that a usual model takes. `stated`: the fields that an alias
    states. `in_chats`: no completion can do it.
    """

    probes: int
    stated: tuple[str, ...]
    in_chats: bool = False


ABILITIES = {
    "manner": Ability(1, ("endpoint", "plain")),
    "critic": Ability(2, ("critic", "top")),
    "claims": Ability(1, ("claims",), in_chats=True),
    "form": Ability(1, ("structures",), in_chats=True),
    "likelihood": Ability(2, ("likelihood",)),
}
"""The endpoint and the options that it accepts; the source of P(yes); claims and JSON schemas in one request; the
source of ln P."""


def stated_abilities(served: ServedModel) -> Abilities:
    """Abilities by the alias, for models that cannot be probed; the usual ones where it says nothing."""
    return Abilities(
        endpoint=COMPLETIONS if served.alias.completion else CHAT,
        plain=False,
        critic=VOTE if served.alias.logprobs == "none" else LOGPROBS,
        top=FEWER_TOP if served.alias.completion else MOST_TOP,
        claims=CLAIMS_SIZES[0],
        structures=not served.alias.completion,
        likelihood={None: ECHO, "echo": ECHO, "prompt": PROMPT_LOGPROBS}.get(served.alias.logprobs, ""),
    )


@dataclass(slots=True)
class Prober:
    """Probes one model on one server; with a journal, once for all commands that use the same journal.

    `again`: probe even if the journal holds findings; the new ones then replace them. `stated`: send nothing, and where
    the journal holds none, take what the alias states. `assumed`: abilities of which neither the journal nor the alias
    says anything.
    """

    served: ServedModel
    transport: Transport
    journal: Journal | None = None
    again: bool = False
    stated: bool = False
    assumed: set[str] = field(default_factory=set)
    _spent: Usage = NO_USAGE
    _replies: dict[str, ServerReply | Unanswered] = field(default_factory=dict)
    """What came of each request, so that none is sent twice."""

    def learn(self, ability: str, known: Abilities | None = None) -> Abilities:
        """The abilities with this one of `ABILITIES`, by the journal, else by its probe, whose finding is stored there.

        Raises the fault of a server that answers nothing, and HapaxError for one that judges nothing.
        """
        known = known or Abilities()
        if ABILITIES[ability].in_chats and known.endpoint != CHAT:
            return known
        journal = self.journal
        asker = Asker(PROBE, "probe", ModelIdentity(self.served.name, self.served.alias.revision), 1)
        about = {"ability": ability, "completion": self.served.alias.completion, **_differing(known, Abilities())}
        if self.served.chat.revision:
            about["chat"] = self.served.chat.revision
        call = None if journal is None else self._call(journal, asker, about)
        if self.stated and (journal is None or call is None or not journal.store.calls([call.id])):
            if self.served.alias.logprobs is None:
                self.assumed.add(ability)
            stated = stated_abilities(self.served)
            return replace(known, **{name: getattr(stated, name) for name in ABILITIES[ability].stated})
        probe: Callable[[Abilities], Abilities] = getattr(self, f"_probe_{ability}")
        if journal is None or call is None:
            return probe(known)

        def send(_: Sequence[int]) -> Stream[StoredAnswer]:
            self._spent = NO_USAGE
            found = _differing(probe(known), known)
            yield [(0, StoredAnswer(found, self._spent))]

        (record,) = journal.answers(asker, [call], send)
        # JSON has no tuples.
        fields: dict[str, Any] = {
            name: tuple(said) if isinstance(said, list) else said for name, said in record.response.items()
        }
        return replace(known, **fields)

    def foreseen(self, ability: str, known: Abilities) -> Abilities:
        """The same without a probe: what the journal says, or else what is usual."""
        return (self if self.stated else replace(self, stated=True, assumed=set())).learn(ability, known)

    def _call(self, journal: Journal, asker: Asker, about: dict[str, Any]) -> PreparedCall:
        """The newest round of probing that the journal holds, or the next round."""

        def call(number: int) -> PreparedCall:
            request = {**about, "probing": PROBING, "round": number}
            request_id = content_id("probe", asker.model.name, asker.model.revision, request)
            return PreparedCall(request_id, request, MOST_PROBES)

        # Rounds are numbered without gaps, so the first unknown number is after the newest round.
        unknown = next(number for number in count() if not journal.store.calls([call(number).id]))
        return call(unknown if self.again else max(0, unknown - 1))

    # Probes

    def _probe_manner(self, known: Abilities) -> Abilities:
        endpoints = {True: (COMPLETIONS,), False: (CHAT,), None: (CHAT, COMPLETIONS)}[self.served.alias.completion]
        if not self.served.chat.is_default:
            endpoints = (CHAT,)  # completions have neither a system prompt nor a template
        faults: list[Unanswered] = []
        for endpoint in endpoints:
            found = self._with_accepted_options(replace(known, endpoint=endpoint))
            if not isinstance(found, Unanswered):
                return found
            faults.append(found)
        raise faults[0]  # of the endpoint that most servers have

    def _with_accepted_options(self, known: Abilities) -> Abilities | Unanswered:
        """Without the options that the model rejects by name, and with room for its thoughts, or what it refuses."""
        rooms = iter(ROOMS)
        while True:
            # Each refusal removes an option for good, makes more room, or is returned, so the loop ends.
            said = self._try(self._first_question(known))
            if not isinstance(said, Unanswered):
                roomy = replace(known, room=known.room * MORE_ROOM)
                # So much may be beyond the model's limit.
                if known.room and isinstance(self._try(self._first_question(roomy)), Unanswered):
                    roomy = known
                return replace(roomy, reported=said)
            room = next(rooms, None) if said.kind is Kind.CUT_OFF else None
            changed = replace(known, room=room) if room else self._without_refused_option(known, said)
            if changed == known:
                return said
            known = changed

    def _first_question(self, known: Abilities) -> ServerRequest:
        asked = Questions(self.served, known)
        return asked.sample(KNOWN_CLAIM, PROBE_TOKENS, _reported, temperature=0.7, top_p=1.0, seed=1)

    def _without_refused_option(self, known: Abilities, refused: Unanswered) -> Abilities:
        """The abilities without the option that the refusal names; the same if it names none."""
        said = refused.said.casefold() if refused.status in (400, 422) else ""
        changes = [change for word, change in REFUSALS if word in said]
        named = [name for name in _OPTIONAL if name in said and name not in known.dropped]
        changes += [{"dropped": (*known.dropped, name)} for name in named]
        return next((changed for change in changes if (changed := replace(known, **change)) != known), known)

    def _probe_critic(self, known: Abilities) -> Abilities:
        last: FirstToken | Unanswered = unusable("")
        for way in CRITICS:
            candidate = replace(known, **way)
            is_scored = candidate.critic == LOGPROBS
            # The first token of a thought is no answer. What was ignored with twenty tokens, or with one, is ignored in
            # other ways, too.
            is_ignored = isinstance(last, Unanswered) and last.has_reply
            has_tokens = not isinstance(last, Unanswered)
            if (is_scored and known.room) or (candidate.top == FEWER_TOP and (is_ignored or has_tokens)):
                continue
            if candidate.lead and not has_tokens:
                continue
            last = self._verdict(candidate, KNOWN_CLAIM)
            if not is_scored and not isinstance(last, Unanswered):
                return candidate
            for words in VERDICT_WORDS if is_scored else ():
                worded = replace(candidate, words=words)
                if tells_apart(words, partial(self._judged, worded)):
                    return worded
        reason = f": {last.said}" if isinstance(last, Unanswered) and last.said else ""
        raise HapaxError(
            f"{self.served.name} cannot be a critic: it gives no log-probabilities, and when asked whether a "
            f"statement is correct, it says neither yes nor no{reason}.",
            Remedy("Choose another {}.", Setting("critic")),
        )

    def _probe_claims(self, known: Abilities) -> Abilities:
        known_claims = probe_claims()
        # A decision endpoint takes one claim.
        for size in CLAIMS_SIZES if known.critic != SYSTEM_ONE else ():
            # True and false ones in turn, the first of which have been asked alone.
            pairs = zip((KNOWN_CLAIM, *known_claims.truths), (KNOWN_FALSEHOOD, *known_claims.falsehoods), strict=True)
            claims = list(chain.from_iterable(pairs))[:size]
            found = self._try(Questions(self.served, known).verdicts(claims))
            together = [None] * size if isinstance(found, Unanswered) else found[0]
            if not any(together):
                break  # it answers otherwise, and would for fewer
            if not all(together):
                continue
            said = list(map(_is_yes, together))
            # Those that stand out come first: where a critic that says yes to most says no, it may mean it.
            wrong = [place for place in range(size) if said[place] is bool(place % 2)]
            wrong.sort(key=lambda place: said.count(said[place]))
            sample = {0, 1, *wrong[:CLAIMS_SAMPLE]}
            different = sum(said[place] is not _is_yes(self._judged(known, claims[place])) for place in sample)
            # As many of the other wrong ones as of the sample.
            if different * max(1.0, len(wrong) / CLAIMS_SAMPLE) <= MOST_DIFFERENT[known.critic] * size:
                return replace(known, claims=len(claims))
        return known

    def _verdict(self, known: Abilities, claim: str) -> FirstToken | Unanswered:
        """P(yes) of a claim that is asked alone."""
        # A critic that votes is asked for several samples in one request if that is to be found out.
        samples = 2 if known.critic == VOTE and known.takes_n else 1
        found = self._try(Questions(self.served, known).verdicts([claim], samples=samples))
        return found if isinstance(found, Unanswered) else found[0][0] or unusable("")

    def _judged(self, known: Abilities, claim: str) -> FirstToken | None:
        found = self._verdict(known, claim)
        return None if isinstance(found, Unanswered) else found

    def _probe_form(self, known: Abilities) -> Abilities:
        asked = Questions(self.served, known)
        request = asked.answer(
            FORM_QUESTION, FORM_TOKENS, _follows_schema, temperature=0, response_format=VALUES_FORMAT
        )
        return replace(known, structures=self._try(request) is True)

    def _probe_likelihood(self, known: Abilities) -> Abilities:
        """Whichever scores a whole sentence and finds it likelier than its words in disorder; perhaps none."""
        for kind in (ECHO, PROMPT_LOGPROBS):
            asked = Questions(self.served, replace(known, likelihood=kind))
            requests = [asked.likelihood(SpannedText(text, ())) for text in (KNOWN_CLAIM, KNOWN_UNLIKELY)]
            likely, unlikely = map(self._try, requests)
            for fault in (likely, unlikely):
                if isinstance(fault, Unanswered) and (fault.kind is Kind.AWAY or (fault.status or 0) >= 500):
                    raise cannot_score(self.served, fault.said)  # which may be over the next time, so it is not stored
            if not isinstance(likely, LogLikelihood) or not isinstance(unlikely, LogLikelihood):
                continue
            # The score of one token is not that of a sentence.
            if likely.token_count > 1 and unlikely.token_count and likely.total > unlikely.total:
                reported = self._try(replace(requests[0], read=lambda reply: reply.model))
                return replace(known, likelihood=kind, reported=reported)
        return known

    def _try(self, request: ServerRequest) -> Any:
        """The answer to a probe; Unanswered if the request is refused, or the reply lacks what it asks for.

        Raises a fault that another way of asking would meet, too.
        """
        name = content_id("probe", request.path, request.body)
        if name not in self._replies:
            self._replies[name] = self._sent(request)
        reply = self._replies[name]
        if isinstance(reply, Unanswered):
            return reply
        try:
            return request.read(reply)
        except Unanswered as fault:
            # An answer without the value: the server does not know the option, and would not when asked again.
            return fault

    def _sent(self, request: ServerRequest) -> ServerReply | Unanswered:
        def whole(reply: ServerReply) -> ServerReply:
            """The reply, unless it has another form, which the next one need not have."""
            if not (isinstance(reply.body, dict) and reply.body.get("answers")):
                reply.texts  # noqa: B018  # raises Unanswered
            self._spent += reply.usage
            return reply

        try:
            ((answer,),) = in_request_order(self.transport.stream([[replace(request, read=whole)]]), 1)
        except Unanswered as fault:
            if fault.status is None or fault.kind in SAME_FOR_ALL:
                raise
            return fault
        return answer  # type: ignore[no-any-return]  # what `whole` returned, or a refusal


def cannot_score(served: ServedModel, reason: str) -> CannotScore:
    """The error of a model that is asked for the likelihood of texts."""
    return CannotScore(
        f"{served.name} cannot score texts: {reason}.",
        Remedy("Choose {} frequency, or a server that does, such as vLLM or llama-cpp-python.", Setting("likelihood")),
    )


def _differing(abilities: Abilities, known: Abilities) -> dict[str, Any]:
    """The fields in which they differ."""
    before = asdict(known)
    return {name: said for name, said in asdict(abilities).items() if said != before[name]}


def _is_yes(verdict: FirstToken | None) -> bool | None:
    return None if verdict is None else verdict.probability > 0.5


def _reported(reply: ServerReply) -> str:
    """The server's name for the model. An empty answer is one, as far as the way of asking goes, if it is not cut."""
    try:
        reply.answers  # noqa: B018  # raises Unanswered
    except Unanswered as fault:
        if fault.kind is Kind.CUT_OFF:
            raise
    return reply.model


def _follows_schema(reply: ServerReply) -> bool:
    try:
        answer = json.loads(reply.texts[0])
    except (ValueError, RecursionError):
        return False
    values = answer.get("values") if isinstance(answer, dict) else None
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
