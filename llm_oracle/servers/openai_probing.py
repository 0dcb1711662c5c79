"""Finds out what a server can do by asking it, never by its name, and keeps the findings in the journal.

Servers ignore what they do not know: a completion comes without log-probabilities, an echo without an echo. Each probe
is a request whose right answer is known, and a way of asking counts only if the answer shows that it works.
Findings are paid for once, and compared with what the server says later.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.critics.critic_probing import probe_claims
from hapax.llm_oracle.journal import PROBE, Asker, Journal, PreparedCall, StoredAnswer
from hapax.llm_oracle.protocols import CannotScore, ModelIdentity, SpannedText, Stream, Usage, in_request_order
from hapax.llm_oracle.reading.link_replies import (
    KNOWN_CLAIM,
    KNOWN_FALSEHOOD,
    VERDICT_WORDS,
    FirstToken,
    tells_apart,
)
from hapax.llm_oracle.servers.openai_aliases import ServedModel
from hapax.llm_oracle.servers.openai_outcomes import SAME_FOR_ALL, Kind, Refused, RetriesExhausted, TransientFault
from hapax.llm_oracle.servers.openai_requests import (
    ECHO,
    FEWER_TOP,
    LOGPROBS,
    MOST_TOP,
    PLAIN_SAMPLING,
    PROMPT_LOGPROBS,
    VOTE,
    Abilities,
    Questions,
)
from hapax.llm_oracle.servers.openai_wire import (
    CHAT,
    COMPLETIONS,
    SYSTEM_ONE,
    ReadReply,
    ServerRequest,
    Transport,
    answered_texts,
    model_reported,
    texts,
    usage,
)

KNOWN_UNLIKELY = "France capital the of is Paris."
"""The words of the known claim in an order that every language model finds less likely."""

FORM_QUESTION = "Name two colours."
"""A question that says nothing about JSON."""
FORM_TOKENS = 200

PROBING = 3
"""Version of the probes. A new one probes every server again."""

MOST_PROBES = Usage(300, 800)
"""Tokens that probing one ability is expected to use at most; each of its requests is reserved by itself."""


def _format(name: str, items: dict[str, Any]) -> dict[str, Any]:
    """The option `response_format` for an object whose field of this name is an array."""
    return schema_format(name, _object({name: {"type": "array", "items": items}}))


def schema_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The option `response_format` that holds a reply to a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_TEXTS = {"type": "array", "items": {"type": "string"}}
VALUES_FORMAT = _format("values", {"type": "string"})
"""For the values of one list."""
LISTS_FORMAT = _format("lists", _object({"number": {"type": "integer"}, "values": _TEXTS}))
"""For several numbered lists."""

_OPTIONAL = ("top_p", "temperature", "seed")
"""Options that a model may refuse, in the order in which they are given up: at 1, `top_p` says nothing."""

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
USUAL_PROBES = {"manner": 1, "critic": 2, "claims": 1, "form": 1, "likelihood": 2}
"""Requests by which a usual model's abilities are found out."""

STATED = {
    "manner": ("endpoint", "plain"),
    "critic": ("critic", "top"),
    "claims": ("claims",),
    "form": ("structures",),
    "likelihood": ("likelihood",),
}
"""What an alias says about an ability, by its fields."""

Found = TypeVar("Found")


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
    _spent: Usage = field(default_factory=Usage)
    _alone: dict[tuple[Abilities, str], tuple[Any, ServerRequest] | None] = field(default_factory=dict)
    """Replies about claims that were asked alone; None for one without a verdict."""
    _is_refused: bool = False
    """True if the server refused the latest request for which a value was to be found."""
    _reason: str = ""
    """Why its latest reply had no value."""
    _has_tokens: bool = False
    """True if the latest claim asked alone got log-probabilities, or votes."""

    def answers(self) -> Abilities:
        """The endpoint that answers prompts, and the options that the model accepts.

        Raises the fault of the first endpoint if none works.
        """
        # Part of the ids of stored findings.
        return self._kept("manner", Abilities(), self._probe_answers)

    def critic(self, known: Abilities) -> Abilities:
        """With the source of P(yes). Raises HapaxError for a model that says neither yes nor no."""
        return self._kept("critic", known, self._probe_critic)

    def claims(self, known: Abilities) -> Abilities:
        """With the largest number of claims in a request for which the verdicts are those that they get alone."""
        if known.endpoint != CHAT or known.critic == SYSTEM_ONE:
            return known
        return self._kept("claims", known, self._probe_claims)

    def structures(self, known: Abilities) -> bool:
        """True if the server's reply follows a schema that the question does not mention."""
        # Completions have no such option.
        return known.endpoint == CHAT and self._kept("form", known, self._probe_form).structures

    def expects_structures(self, known: Abilities) -> bool:
        """The same without a probe: what the journal says, or else what is usual."""
        return (self if self.stated else replace(self, stated=True, assumed=set())).structures(known)

    def likelihood(self) -> Abilities:
        """With the source of ln P. Raises CannotScore if there is none."""
        found = self._kept("likelihood", Abilities(), self._probe_likelihood)
        if not found.likelihood:
            raise self._cannot_score(f"its alias says `logprobs: {self.served.alias.logprobs}`")
        return found

    # Probes

    def _probe_answers(self, known: Abilities) -> Abilities:
        endpoints = {True: (COMPLETIONS,), False: (CHAT,), None: (CHAT, COMPLETIONS)}[self.served.alias.completion]
        if not self.served.chat.is_default:
            endpoints = (CHAT,)  # completions have neither a system prompt nor a template
        first: HapaxError | None = None  # of the endpoint that most servers have
        for endpoint in endpoints:
            try:
                return self._with_accepted_options(replace(known, endpoint=endpoint))
            except (Refused, RetriesExhausted) as fault:
                _raise_if_general(fault)
                first = first or fault
        assert first is not None  # noqa: S101  # there is at least one endpoint
        raise first

    def _with_accepted_options(self, known: Abilities) -> Abilities:
        """Without the options that the model rejects by name, and with room for its thoughts."""
        rooms = iter(ROOMS)
        while True:
            # Each refusal removes an option for good, makes more room, or is raised, so the loop ends.
            try:
                reported = self._answer(self._first_question(known), _reported)
            except Refused as refused:
                room = next(rooms, None) if refused.kind is Kind.CUT_OFF else None
                known = replace(known, room=room) if room else self._without_refused_option(known, refused)
            else:
                roomy = replace(known, room=known.room * MORE_ROOM)
                # So much may be beyond the model's limit.
                if known.room and self._found(self._first_question(roomy), _reported) is None:
                    roomy = known
                return replace(roomy, reported=reported)

    def _first_question(self, known: Abilities) -> ServerRequest:
        asked = Questions(self.served, known)
        return asked.sample(KNOWN_CLAIM, PROBE_TOKENS, temperature=0.7, top_p=1.0, seed=1)

    def _without_refused_option(self, known: Abilities, refused: Refused) -> Abilities:
        """The abilities without the option that the refusal names. Raises the refusal if it names none."""
        if refused.status not in (400, 422):
            raise refused
        if "max_completion_tokens" in refused.said and known.limit_name == "max_tokens":
            return replace(known, limit_name="max_completion_tokens")
        if "stream" in refused.said and not known.streams:
            return replace(known, streams=True)
        if known.plain and any(option in refused.said for option in PLAIN_SAMPLING):
            return replace(known, plain=False)
        if "system" in refused.said.casefold() and self.served.chat.system_prompt and known.system_turn:
            return replace(known, system_turn=False)
        for option in _OPTIONAL:
            if option in refused.said and option not in known.dropped:
                return replace(known, dropped=(*known.dropped, option))
        raise refused

    def _probe_critic(self, known: Abilities) -> Abilities:
        for way in CRITICS:
            candidate = replace(known, **way)
            if candidate.critic == LOGPROBS and known.room:
                continue  # the first token of a thought is no answer
            # What was ignored with twenty tokens, or with one, is ignored in other ways, too.
            if (candidate.top == FEWER_TOP and not self._is_refused) or (candidate.lead and not self._has_tokens):
                continue
            for words in VERDICT_WORDS if candidate.critic == LOGPROBS else VERDICT_WORDS[:1]:
                if self._judges(replace(candidate, words=words)):
                    return replace(candidate, words=words)
        raise HapaxError(
            f"{self.served.name} cannot be a critic: it gives no log-probabilities, and when asked whether a "
            f"statement is correct, it says neither yes nor no{f': {self._reason}' if self._reason else ''}.",
            Remedy("Choose another {}.", Setting("critic")),
        )

    def _judges(self, known: Abilities) -> bool:
        """True if a known claim gets a verdict; by log-probabilities, if it is told from a falsehood."""
        if known.critic != LOGPROBS:
            return self._verdict(known, KNOWN_CLAIM) is not None
        return tells_apart(known.words, lambda claim: self._verdict(known, claim))

    def _probe_claims(self, known: Abilities) -> Abilities:
        known_claims = probe_claims()
        for size in CLAIMS_SIZES:
            # True and false ones in turn, the first of which have been asked alone.
            pairs = zip((KNOWN_CLAIM, *known_claims.truths), (KNOWN_FALSEHOOD, *known_claims.falsehoods), strict=True)
            claims = list(chain.from_iterable(pairs))[:size]
            together = self._verdicts(known, claims)
            if not any(together):
                break  # it answers otherwise, and would for fewer
            if not all(together):
                continue
            said = list(map(_is_yes, together))
            # Those that stand out come first: where a critic that says yes to most says no, it may mean it.
            wrong = [place for place in range(size) if said[place] is bool(place % 2)]
            wrong.sort(key=lambda place: said.count(said[place]))
            sample = {0, 1, *wrong[:CLAIMS_SAMPLE]}
            different = sum(said[place] is not _is_yes(self._verdict(known, claims[place])) for place in sample)
            # As many of the other wrong ones as of the sample.
            if different * max(1.0, len(wrong) / CLAIMS_SAMPLE) <= MOST_DIFFERENT[known.critic] * size:
                return replace(known, claims=len(claims))
        return known

    def _verdict(self, known: Abilities, claim: str) -> FirstToken | None:
        asked, key = Questions(self.served, known), (replace(known, words=VERDICT_WORDS[0]), claim)
        if key not in self._alone:
            # A critic that votes is asked for several samples in one request if that is to be found out.
            samples = 2 if known.critic == VOTE and known.takes_n else 1

            def read(reply: Any, request: ServerRequest) -> tuple[Any, ServerRequest]:
                asked.read_verdicts(reply, request)  # raises TransientFault without a verdict
                return reply, request

            self._alone[key] = self._found(asked.verdicts([claim], samples=samples), read)
        reply = self._alone[key]
        self._has_tokens = reply is not None
        return None if reply is None else asked.read_verdicts(*reply)[0][0]

    def _verdicts(self, known: Abilities, claims: Sequence[str]) -> list[FirstToken | None]:
        """P(yes) of these claims in one request; None where the server does not tell it."""
        asked = Questions(self.served, known)
        found = self._found(asked.verdicts(claims), asked.read_verdicts)
        return [None] * len(claims) if found is None else found[0]

    def _probe_form(self, known: Abilities) -> Abilities:
        asked = Questions(self.served, known)
        request = asked.answer(FORM_QUESTION, FORM_TOKENS, temperature=0, response_format=VALUES_FORMAT)
        return replace(known, structures=bool(self._found(request, _follows_schema)))

    def _probe_likelihood(self, known: Abilities) -> Abilities:
        """Whichever scores a whole sentence and finds it likelier than its words in disorder."""
        for kind in (ECHO, PROMPT_LOGPROBS):
            asked = Questions(self.served, replace(known, likelihood=kind))

            def score(text: str, asked: Questions = asked) -> tuple[float, int, str]:
                """Its ln P, number of tokens, and the server's name for the model."""

                def read(reply: Any, _: ServerRequest) -> tuple[float, int, str] | None:
                    found = asked.read_likelihood(reply, SpannedText(text, ()))
                    return None if found is None else (found.total, found.token_count, model_reported(reply))

                return self._found(asked.text(SpannedText(text, ())), read) or (0.0, 0, "")

            (likely, tokens, reported), (unlikely, others, _) = score(KNOWN_CLAIM), score(KNOWN_UNLIKELY)
            # The score of one token is not that of a sentence.
            if tokens > 1 and others and likely > unlikely:
                return replace(known, likelihood=kind, reported=reported)
        raise self._cannot_score(
            "its completions neither echo a text with log-probabilities nor support prompt_logprobs"
        )

    def _cannot_score(self, reason: str) -> CannotScore:
        return CannotScore(
            f"{self.served.name} cannot score texts: {reason}.",
            Remedy(
                "Choose {} frequency, or a server that does, such as vLLM or llama-cpp-python.", Setting("likelihood")
            ),
        )

    # Requests

    def _answer(self, request: ServerRequest, read: ReadReply[Found]) -> Found:
        """The answer to a probe. A refusal is raised, even one of this request alone."""

        def metered(reply: Any, request: ServerRequest) -> Found:
            cost = usage(reply, request.prompt, ())
            self._spent = Usage(
                self._spent.prompt_tokens + cost.prompt_tokens, self._spent.completion_tokens + cost.completion_tokens
            )
            return read(reply, request)

        (found,) = in_request_order(self.transport.stream([request], metered), 1)
        if isinstance(found, Refused):
            raise found
        return found

    def _found(self, request: ServerRequest, read: ReadReply[Found]) -> Found | None:
        """The value that `read` finds in the reply; None if the server refuses the request or ignores its options."""

        def read_or_none(reply: Any, request: ServerRequest) -> Found | None:
            if not isinstance(reply, dict) or not reply.get("choices", reply.get("answers")):
                raise TransientFault("a reply without an answer")
            if reply.get("choices"):
                texts(reply)  # raises TransientFault for one of another form, which the next reply need not have
            try:
                return read(reply, request)
            except TransientFault as fault:
                # An answer without the value: the server does not know the option, and would not when asked again.
                self._reason = fault.reason
                return None

        self._is_refused, self._reason = False, ""
        try:
            return self._answer(request, read_or_none)
        except (Refused, RetriesExhausted) as fault:
            _raise_if_general(fault)
            self._is_refused = True
            return None

    # Findings

    def _kept(self, ability: str, known: Abilities, probe: Callable[[Abilities], Abilities]) -> Abilities:
        """The finding in the journal, else that of the probe, which is stored there."""
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
            return replace(known, **{name: getattr(stated, name) for name in STATED.get(ability, ())})
        if journal is None or call is None:
            return probe(known)

        def send(_: Sequence[int]) -> Stream[StoredAnswer]:
            self._spent = Usage()
            found = _differing(probe(known), known)
            yield [(0, StoredAnswer(found, self._spent))]

        (record,) = journal.answers(asker, [call], send)
        # JSON has no tuples.
        fields: dict[str, Any] = {
            name: tuple(said) if isinstance(said, list) else said for name, said in record.response.items()
        }
        return replace(known, **fields)

    def _call(self, journal: Journal, asker: Asker, about: dict[str, Any]) -> PreparedCall:
        """The newest round of probing that the journal holds, or the next round."""

        def call(number: int) -> PreparedCall:
            request = {**about, "probing": PROBING, "round": number}
            request_id = content_id("probe", asker.model.name, asker.model.revision, request)
            return PreparedCall(request_id, request, MOST_PROBES)

        # Rounds are numbered without gaps, so the first unknown number is behind the newest round.
        unknown = next(number for number in count() if not journal.store.calls([call(number).id]))
        return call(unknown if self.again else max(0, unknown - 1))


def _differing(abilities: Abilities, known: Abilities) -> dict[str, Any]:
    """The fields in which they differ."""
    before = asdict(known)
    return {name: said for name, said in asdict(abilities).items() if said != before[name]}


def _is_yes(verdict: FirstToken | None) -> bool | None:
    return None if verdict is None else verdict.probability > 0.5


def _reported(reply: Any, _: ServerRequest) -> str:
    texts(reply)  # raises TransientFault for a reply without an answer
    try:
        answered_texts(reply)
    except TransientFault as fault:
        # An empty answer is one, as far as the way of asking goes.
        if fault.kind is Kind.CUT_OFF:
            raise
    return model_reported(reply)


def _follows_schema(reply: Any, _: ServerRequest) -> bool:
    try:
        answer = json.loads(texts(reply)[0])
    except (ValueError, RecursionError):
        return False
    values = answer.get("values") if isinstance(answer, dict) else None
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _raise_if_general(fault: Refused | RetriesExhausted) -> None:
    """Raise a fault that another way of asking would meet, too."""
    if fault.status is None or fault.kind in SAME_FOR_ALL or fault.kind is Kind.BUSY:
        raise fault
