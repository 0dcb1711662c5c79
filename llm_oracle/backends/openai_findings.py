"""What probing found: kept in the journal, so that it is paid once, and held against what the server says later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, TypeVar

from kb.records import content_id
from llm_oracle.backends.openai_aliases import ServedModel
from llm_oracle.backends.openai_probing import (
    CriticWay,
    LikelihoodWay,
    Manner,
    probe_critic,
    probe_likelihood,
    probe_manner,
)
from llm_oracle.backends.openai_transport import Answer, Ask, Read, Refused, Transport
from llm_oracle.backends.openai_wire import model_reported, usage
from llm_oracle.calls import PROBE, Answered, Asker, Journal, PreparedCall
from llm_oracle.protocols import ModelIdentity, PartlyAnswered, Stream, Usage, gathered

PROBING = 1
"""Which way of probing this is; another one probes anew."""

MOST_PROBES = Usage(300, 800)
"""The most tokens that finding out one ability takes: a vote, or a server that refuses option after option."""

Found = TypeVar("Found", Manner, CriticWay, LikelihoodWay)


@dataclass(frozen=True, slots=True)
class Prober:
    """Finds out what one model on one server can do; with a journal, once for all commands that keep it.

    `again`: what the journal holds is found out anew, and what is found then holds from then on.
    """

    served: ServedModel
    transport: Transport
    journal: Journal | None = None
    again: bool = False

    def manner(self) -> Manner:
        def probe(transport: Transport) -> Manner:
            return probe_manner(transport, self.served)

        return self._kept({"ability": "manner", "completion": self.served.completion}, probe, Manner)

    def critic(self, manner: Manner) -> CriticWay:
        def probe(transport: Transport) -> CriticWay:
            return probe_critic(transport, self.served, manner)

        return self._kept({"ability": "critic", **asdict(manner)}, probe, CriticWay)

    def likelihood(self) -> LikelihoodWay:
        def probe(transport: Transport) -> LikelihoodWay:
            return probe_likelihood(transport, self.served)

        return self._kept({"ability": "likelihood"}, probe, LikelihoodWay)

    def _kept(
        self, ability: Mapping[str, Any], probe: Callable[[Transport], Found], kind: Callable[..., Found]
    ) -> Found:
        if self.journal is None:
            return probe(self.transport)
        asker = Asker(PROBE, "probe", ModelIdentity(self.served.name, self.served.revision), 1)

        def send(_: Sequence[int]) -> Stream[Answered]:
            metered = Metered(self.transport)
            found = probe(metered)
            yield [(0, Answered(asdict(found), metered.spent))]

        (record,) = self.journal.answers(asker, [self._call(self.journal, asker, ability)], send)
        return kind(**{name: tuple(one) if isinstance(one, list) else one for name, one in record.response.items()})

    def _call(self, journal: Journal, asker: Asker, ability: Mapping[str, Any]) -> PreparedCall:
        """The newest round of probing that the journal holds, or the round behind it."""

        def call(number: int) -> PreparedCall:
            request = {**ability, "probing": PROBING, "round": number}
            return PreparedCall(
                content_id("probe", asker.model.name, asker.model.revision, request), request, MOST_PROBES
            )

        unknown = next(number for number in count() if not journal.store.calls([call(number).id]))
        return call(unknown if self.again else max(0, unknown - 1))


class Metered:
    """A transport that adds up what its replies cost."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.spent = Usage()

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        return gathered(self.stream(asks, read), len(asks))

    def stream(self, asks: Iterable[Ask], read: Read[Answer]) -> Stream[Answer | Refused]:
        def metered(reply: Any, ask: Ask) -> Answer:
            cost = usage(reply, ask.prompt, ())
            self.spent = Usage(
                self.spent.prompt_tokens + cost.prompt_tokens, self.spent.completion_tokens + cost.completion_tokens
            )
            return read(reply, ask)

        return self._transport.stream(asks, metered)


class Moved(PartlyAnswered):
    """The server says that another version of the model answers than the one that was probed."""


@dataclass(frozen=True, slots=True)
class OneVersion:
    """A transport whose replies all have to come from the version of the model that was probed, as the server says it.

    So a server that was changed behind a journal full of answers is found out by its first reply.
    """

    transport: Transport
    place: str
    version: str

    def ask(self, asks: Sequence[Ask], read: Read[Answer]) -> list[Answer | Refused]:
        return gathered(self.stream(asks, read), len(asks))

    def stream(self, asks: Iterable[Ask], read: Read[Answer]) -> Stream[Answer | Refused]:
        def checked(reply: Any, ask: Ask) -> Answer:
            answer = read(reply, ask)
            said = model_reported(reply)
            if said and said != self.version:
                raise Moved(
                    f"{self.place} now answers by {said}, and answered by {self.version} when it was probed. "
                    "Run the command with --probe-again, which asks the new version everything anew, or say by "
                    "`revision` in the model's alias that the two are one."
                )
            return answer

        return self.transport.stream(asks, checked)


def one_version(transport: Transport, served: ServedModel, reported: str) -> Transport:
    """The transport that holds the server to the version it reported; where the user names the version, as it is."""
    return transport if served.revision or not reported else OneVersion(transport, served.server.place, reported)
