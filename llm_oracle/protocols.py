"""The roles a model can play, as narrow batch-first protocols, and the requests and answers that pass through them.

Answers are always in the order of their requests. Models score and propose; thresholds live in
`engine/gates/gates.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy
from hapax.grammar.terms import Atom

KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR = "knowledge", "critic", "likelihood", "evaluator"
"""Names of the roles. Statistics are kept by role; likelihood and evaluator share answers if they are one model."""

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GenerationParameters:
    """Sampling parameters of a generation. All of them are part of the request's identity."""

    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 1000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ReplyForm:
    """The list that a prompt asks for, where its words are not LINK's, by which backends recognise a list.

    `count`: number of values; `json`: in a JSON object instead of a numbered list; `lists`: number of lists in it.
    `schema`: the JSON schema of another object, as text, in place of values. Such a prompt names the excluded values
    itself, so a backend adds nothing to it.
    """

    count: int
    data_type: str
    json: bool = False
    lists: int = 1
    schema: str = ""


@dataclass(frozen=True, slots=True)
class ListedSentence:
    """The sentence of a question, by which a request for several lists can ask it, and the number of values to list."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A prompt, and values that the decoder must not produce.

    `excluded_values`: whole values from earlier answers, which must not appear in this one.
    `banned_tokens_of`: texts whose tokens get a logit bias of -100 (LINK's method; only servers with `logit_bias`).
    `sample_index`: index of this sample among repeats of the request (a functional question is asked twice).
    `form`: of the reply; None: LINK's, if the words are LINK's. `listed`: the same question in other words, with which
    it may be asked together with others; None: it is asked alone.
    """

    prompt: str
    excluded_values: tuple[str, ...] = ()
    banned_tokens_of: tuple[str, ...] = ()
    sample_index: int = 0
    form: ReplyForm | None = None
    listed: ListedSentence | None = None

    @property
    def content(self) -> dict[str, Any]:
        """All that may change the answer, for identities and seeds."""
        fields = asdict(self)
        # An answer is the same whether the question was asked alone or with others.
        del fields["listed"]
        # Without these the content is that of older knowledge bases, whose answers are found by its hash.
        if self.form is None:
            del fields["form"]
        else:
            own = {"lists": self.form.lists > 1, "schema": self.form.schema}
            fields["form"] = {name: value for name, value in fields["form"].items() if own.get(name, True)}
        return fields


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as counted by the backend, and the number of requests that it took, several for a vote."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    requests: int = 1

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.requests + other.requests,
        )


NO_USAGE = Usage(requests=0)
"""What nothing uses, from which sums begin."""


@dataclass(frozen=True, slots=True)
class Generation:
    """A reply. `finish_reason` is `length` if the token limit cut it off, else `stop`.

    `refused`: why there is no answer, such as a content filter, or that no reply was usable; empty if it answered.
    """

    text: str
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    refused: str = ""


NOTHING_KNOWN = 0.5
"""P(yes) of a claim without an answer."""


@dataclass(frozen=True, slots=True)
class CriticScore:
    """P(yes) after softmax over the yes and no answers alone. A refused claim has `NOTHING_KNOWN`.

    `covered` False: the critic has no opinion, which is neither yes nor no; a chain asks the next one. `basis`: the
    source on which the score rests, such as a row of a table. `judge`: the member of a chain that decided. `members`:
    raw scores of the members of a combined critic, by their titles.
    """

    probability: float
    usage: Usage = field(default_factory=Usage)
    refused: str = ""
    covered: bool = True
    basis: str = ""
    judge: str = ""
    members: Mapping[str, float] = field(default_factory=dict)


class ClaimText(str):
    """A sentence for a critic with its origin: the atom that it states, or a value and its data type (`typed`).

    A critic that reads words takes it as its text; one that looks things up takes the origin, because two predicates,
    or a predicate and a data type, may say things in the same words. Claims of different origins are not equal.
    """

    __slots__ = ("atom", "typed")

    def __new__(cls, text: str, atom: Atom | None = None, typed: tuple[str, str] | None = None) -> ClaimText:
        claim = super().__new__(cls, text)
        claim.atom, claim.typed = atom, typed
        return claim

    atom: Atom | None
    typed: tuple[str, str] | None

    def __getnewargs__(self) -> tuple[str, Atom | None, tuple[str, str] | None]:  # type: ignore[override]
        return str(self), self.atom, self.typed

    def __eq__(self, other: object) -> bool:
        same = not isinstance(other, ClaimText) or (self.atom, self.typed) == (other.atom, other.typed)
        return same and str.__eq__(self, other)

    __hash__ = str.__hash__

    @property
    def about(self) -> str:
        """The indicator of its predicate, or the data type."""
        return self.typed[1] if self.typed else "" if self.atom is None else self.atom.indicator


def reads_origins(critic: object) -> bool:
    """True for a critic that looks up the origin of a claim, so that equal words may have different answers."""
    return getattr(critic, "reads_origins", False)


@dataclass(frozen=True, slots=True)
class SpannedText:
    """A text and the character ranges in it, `(start, end)`, whose tokens are also summed apart."""

    text: str
    spans: tuple[tuple[int, int], ...]

    def rewritten(self, rewrite: Callable[[str], str]) -> SpannedText:
        """The text with `rewrite` applied to each span and to each stretch between them; the spans keep their words."""
        parts: list[str] = []
        spans: list[tuple[int, int]] = []
        # `length`: characters of the new text so far; `end`: place in the old one up to which it is rewritten.
        length = end = 0
        for start, stop in self.spans:
            between, inside = rewrite(self.text[end:start]), rewrite(self.text[start:stop])
            spans.append((length + len(between), length + len(between) + len(inside)))
            parts += [between, inside]
            length, end = spans[-1][1], stop
        return SpannedText("".join([*parts, rewrite(self.text[end:])]), tuple(spans))


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Natural log of a text's probability, and the number of tokens that it sums over.

    The first token is not counted, because nothing predicts it. A refused text has no tokens and must not be ranked.
    `spans`: of each span of a SpannedText, the sum over the tokens that touch it, and their number. `first`: ln P of
    the first token of a SpannedText that is scored; None if the model does not tell.
    """

    total: float
    token_count: int
    refused: str = ""
    spans: tuple[tuple[float, int], ...] = ()
    first: float | None = None

    @classmethod
    def of_tokens(
        cls, scores: Sequence[float], places: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]
    ) -> LogLikelihood:
        """Sum the tokens of a text, and of its spans. `places`: the character range of each token."""
        sums = []
        for start, end in spans:
            # Touching is enough: many tokenizers put the blank before a name into its first token.
            inside = [score for score, place in zip(scores, places, strict=True) if place[0] < end and place[1] > start]
            sums.append((math.fsum(inside), len(inside)))
        return cls(math.fsum(scores), len(scores), spans=tuple(sums), first=scores[0] if scores else None)

    @property
    def usage(self) -> Usage:
        """Scoring generates nothing."""
        return Usage(self.token_count, 0)

    @property
    def per_token(self) -> float:
        """Mean token log-likelihood, by which texts are ranked (LINK, section 2.3). An empty text ranks last."""
        return self.total / self.token_count if self.token_count else float("-inf")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Name, version and declared abilities of a model, for the journal, the report and `hapax model list`."""

    name: str
    """For example `embedded`, `hf/google/flan-t5-large`, `scripted/allergy.json`."""
    revision: str = ""
    """Changes whenever the model's answers may change: a hash of the weights or of a script, a seed."""
    knows: tuple[str, ...] | None = None
    """Indicators of the predicates that the model can answer; None: no declared limit."""
    types: tuple[str, ...] | None = None
    """Data types whose values the model can judge, in any case; None: no declared limit."""
    taught_by: tuple[str, ...] = ()
    """Names of the models and word lists on whose scores it was trained: they are not independent judges of it."""

    @property
    def title(self) -> str:
        """NAME@REVISION, as journal records and scores name the model."""
        return f"{self.name}@{self.revision}" if self.revision else self.name


def declared_union(limits: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """All that several models declare to know; None if one of them declares no limit."""
    known: dict[str, None] = {}
    for declared in limits:
        if declared is None:
            return None
        known.update(dict.fromkeys(declared))
    return tuple(known)


class CannotScore(HapaxError):  # noqa: N818  # named after the situation, as all our errors are
    """A model gives no likelihoods of texts."""


class PartlyAnswered(HapaxError):  # noqa: N818  # the answers matter as much as the failure
    """The model failed permanently part-way through a batch.

    `answers`: aligned with the requests; None for those that were not answered.
    """

    def __init__(self, message: str, remedy: Remedy | str = "") -> None:
        super().__init__(message, remedy)
        self.answers: tuple[Any, ...] = ()


Stream: TypeAlias = Iterator[Sequence[tuple[int, Answer]]]
"""Groups of (position of the request, answer), as they arrive. May raise PartlyAnswered after the last group."""


def single_group(ask: Callable[[], Sequence[Answer]]) -> Stream[Answer]:
    """Stream a whole batch as one group: all answers, or those that arrived before the model failed."""
    try:
        answers = ask()
    except PartlyAnswered as failed:
        # Given away before the failure is raised, so that they are stored.
        yield [(position, answer) for position, answer in enumerate(failed.answers) if answer is not None]
        raise
    yield list(enumerate(answers))


def in_request_order(stream: Stream[Answer], count: int) -> list[Answer]:
    """Collect the answers of a stream in the order of their requests.

    Raises PartlyAnswered with the answers so far if the stream ends early.
    """
    answers: list[Any] = [None] * count
    try:
        for group in stream:
            for position, answer in group:
                answers[position] = answer
    except PartlyAnswered as failed:
        failed.answers = tuple(answers)
        raise
    return answers


class Model(Protocol):
    """Base of all roles: a model has a name and a revision for the journal."""

    @property
    def identity(self) -> ModelIdentity: ...


# Checkable at run time, because the registry verifies that a model plays the role for which it was opened.
@runtime_checkable
class Generator(Model, Protocol):
    """Knowledge model: proposes values."""

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]: ...


@runtime_checkable
class Critic(Model, Protocol):
    """Judges claims, each a complete sentence such as `Butter is an ingredient in saag chicken.`"""

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]: ...


@runtime_checkable
class LikelihoodModel(Model, Protocol):
    """Scores texts by their log-likelihood."""

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]: ...


@runtime_checkable
class SpanLikelihoodModel(LikelihoodModel, Protocol):
    """A likelihood model that also tells the share of a text's parts in its log-likelihood."""

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        """Like `log_likelihoods`, with `LogLikelihood.spans` aligned with the spans of each text."""
        ...


@runtime_checkable
class PopularityModel(Model, Protocol):
    """Tells how popular names are; a name without a count is unknown, and not rare."""

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        """Popularity of the least popular name of each tuple; 0 for an unknown one."""
        ...


@runtime_checkable
class PairModel(Protocol):
    """Tells how much two names belong together, without a text around them."""

    def similarities(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """The similarity of the two names of each pair; None where it does not know both."""
        ...


Scored: TypeAlias = "str | SpannedText | tuple[str, ...]"
"""A request to a likelihood model: a text, a text with spans, or names to be counted together."""


@runtime_checkable
class Streaming(Protocol):
    """A model that takes any number of requests at once and returns answers as they arrive, such as one on a server.

    `asked` holds whatever its role takes: `GenerationRequest`s (with their parameters), claims or texts.
    """

    def stream(self, asked: Sequence[Any], *parameters: GenerationParameters) -> Stream[Any]: ...


@runtime_checkable
class Structuring(Protocol):
    """A generator that may hold a reply to the JSON that its form asks for, whatever the words are."""

    @property
    def structures(self) -> bool:
        """True if it does. A server is asked."""
        ...


@runtime_checkable
class NameAuthority(Protocol):
    """Knows the canonical names of values, whatever their spelling."""

    def canonical(self, value: str, data_type: str) -> str | None:
        """The canonical name of a value of this data type; None if it is unknown or ambiguous."""
        ...


@checked
@dataclass(frozen=True, slots=True)
class Models:
    """The models of a run by role. The evaluator measures delta; it should not be the ranker (LINK, section 3.2).

    `names`: give values that other models propose their canonical names, the first that knows one.
    """

    knowledge: Generator
    critic: Critic
    likelihood: LikelihoodModel
    evaluator: LikelihoodModel
    names: tuple[NameAuthority, ...] = ()
