"""Requests to OpenAI-compatible servers, and readers of their replies.

Replies are read from plain JSON, because client libraries treat log-probabilities differently from release to release,
and servers differ, too. A reply that lacks or misstates anything raises TransientFault.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, zip_longest
from typing import Any, Protocol, TypeVar

from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.protocols import LogLikelihood, SpannedText, Stream, Usage
from hapax.llm_oracle.reading.link_replies import LEAST_MASS, VERDICT_WORDS, FirstToken, spoken_verdict, yes_probability
from hapax.llm_oracle.servers.openai_outcomes import MORE_TOKENS, Kind, Refused, TransientFault, error_of, one_line

CHAT, COMPLETIONS = "chat/completions", "completions"
SYSTEM_ONE = "systemone"
"""Typed decisions with probabilities, as `transformers serve` offers them."""

MOST_TOKENS = 2**24
"""Limit on a server's own count, above any context window; a larger number is not believed."""
SMALLEST = 1e-12
"""Least probability of an answer that is not among the likeliest tokens."""
LEAST_LOGPROB = -1e6
"""Below anything that a model's arithmetic gives; some servers write such numbers for probability zero."""
_BLANKS = " \t\r\n\u2581\u0120\u010a"
"""Blanks, and the characters by which tokenizers write them."""

_AROUND_WORDS = f"{_BLANKS}*_\"'`.,:;!"
"""What may stand around the word of an answer in its token."""


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request: path below the base URL (below the host if it begins with /), body, and most tokens it can use.

    Nothing is charged for a request that can use no tokens, such as one to a tokenizer.
    """

    path: str
    body: Mapping[str, Any]
    most: Usage = field(default_factory=Usage)
    spans: tuple[tuple[int, int], ...] = ()
    """Character ranges of the prompt whose scores are read apart from the whole. They are not sent."""
    claims: int = 1
    """Number of claims about which a critic is asked."""
    parts: int = 1
    """Number of requests, one after the other, whose answers are stored together, such as the votes on a claim. It is
    the same for all requests of a stream."""

    @property
    def is_charged(self) -> bool:
        return self.most.prompt_tokens + self.most.completion_tokens > 0

    @property
    def tokens(self) -> int:
        """Most tokens, for a limit per minute."""
        return max(1, self.most.prompt_tokens + self.most.completion_tokens)

    @property
    def prompt(self) -> str:
        """The prompt, without the system prompt of a chat."""
        messages = self.body.get("messages")
        shown = messages[-1]["content"] if messages else self.body.get("prompt", self.body.get("state", ""))
        return str(shown)


ReadReply = Callable[[Any, ServerRequest], Answer]
"""Reads the answer to a request from a parsed reply. Raises TransientFault for a reply without a usable answer."""


class Transport(Protocol):
    """Carries requests to wherever answers come from."""

    def stream(self, requests: Iterable[ServerRequest], read: ReadReply[Answer]) -> Stream[Answer | Refused]:
        """The answers in groups as they arrive; requests are taken from `requests` when there is room for them.

        A request that is refused for its own content has its refusal as answer. Any other permanent failure raises
        PartlyAnswered after the answers that arrived.
        """


def parsed(content: bytes) -> Any:
    """The reply with this body, as `normalised` gives it. Raises TransientFault for one that is not JSON.

    Some servers send a stream of events whether or not one was asked for; it is put together.
    """
    body = content.strip().removeprefix(codecs.BOM_UTF8)
    # Signs of life of a router, before a reply that is no stream.
    body = _COMMENTS.sub(b"", body)
    try:
        reply = _joined(body) if body.startswith(_EVENTS) else _whole(body.decode())
        # A gateway may write JSON into a text of JSON.
        return normalised(json.loads(reply) if isinstance(reply, str) else reply)
    except (ValueError, RecursionError):
        said = error_of(200, body.decode("utf-8", "replace"), {}).message
        if body.startswith(b"<"):
            fact = f"a web page instead of a reply ({said}); the base URL of a server usually ends in /v1"
        else:
            fact = f"a reply that is not JSON: {said}" if body else "an empty reply"
        raise TransientFault(fact) from None


def _whole(body: str) -> Any:
    """The reply of a body. Some gateways append the end of a stream, or the reply once more."""
    reply, end = json.JSONDecoder().raw_decode(body)
    if body[end:].strip() not in ("", "data: [DONE]", body[:end]):
        raise ValueError("more than one reply")
    return reply


_COMMENTS = re.compile(rb"^(?::[^\n]*\s+)+(?=[{\[\"])")
_EVENTS = (b"data:", b"event:", b":", b"id:")
"""Beginnings of a stream of events."""


def _joined(body: bytes) -> Any:
    """One reply from the events of a stream. Raises ValueError or TransientFault for a part of a stream."""
    reply: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    is_over = False
    for line in body.decode("utf-8", "replace").splitlines():
        data = line.removeprefix("data:").strip()
        is_over = is_over or data == "[DONE]"
        if data in (line.strip(), "", "[DONE]"):  # another field of an event, a sign of life, or the end
            continue
        event = json.loads(data)
        if not isinstance(event, dict) or event.get("error"):
            return event
        reply |= {name: event[name] for name in ("model", "usage") if event.get(name)}
        for part in event.get("choices") or ():
            _add_part(choices.setdefault(_count(_at(part, "index")) or 0, {}), part)
    if not is_over and not all(choice.get("finish_reason") for choice in choices.values()):
        raise TransientFault("a stream that ends before its answer does", None, kind=Kind.AWAY)
    return {**reply, "choices": [{"index": index, **choice} for index, choice in choices.items()]}


def _add_part(choice: dict[str, Any], part: Any) -> None:
    """Add a part of a stream to the choice that it continues."""
    delta = _at(part, "delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"content": None})
        for name in ("content", "reasoning_content", "refusal"):
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
    elif isinstance(_at(part, "text"), str):
        choice["text"] = choice.get("text", "") + part["text"]
    tokens = _at(part, "logprobs", "content")
    if isinstance(tokens, list):
        choice.setdefault("logprobs", {"content": []})["content"] += tokens
    if reason := _at(part, "finish_reason"):
        choice["finish_reason"] = reason


def normalised(reply: Any) -> Any:
    """The reply with the text of each message in one piece: Mistral and others send it in parts, among thoughts."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(_at(choice, "delta"), dict):  # as in a stream
            choice.setdefault("message", choice["delta"])
        message = _at(choice, "message")
        content = _at(message, "content")
        parts = [content] if isinstance(content, dict) else content
        if isinstance(parts, list):
            texts_only = [{"text": part} if isinstance(part, str) else part for part in parts]
            said = [
                part.get("text") for part in texts_only if isinstance(part, dict) and part.get("type") in _TEXT_PARTS
            ]
            message["content"] = "".join(text for text in said if isinstance(text, str)) if said else None
            if parts and not said:
                message.setdefault("reasoning_content", "thoughts")
    return reply


_TEXT_PARTS = ("text", "output_text", None)
"""Types of the parts of a message that are said, not thought."""


def texts(reply: Any) -> list[str]:
    """The text of each choice. A chat's refusal has no text and is read as an empty one."""
    return [_text(choice) for choice in _choices(reply)]


def answered_texts(reply: Any) -> list[str]:
    """The text of each choice. Raises TransientFault if one has none, or if it is unclear which choice is the first."""
    choices = _choices(reply)
    for choice in choices:
        _require_text(choice, reply)
    # A chained comparison: the choices with the index of the first one, if that has an index.
    first = [choice for choice in choices if choice.get("index") == choices[0].get("index") is not None]
    if len({_text(choice) for choice in first}) > 1:
        raise TransientFault(f"{len(first)} different choices with the index {choices[0]['index']}")
    return [_text(choice) for choice in choices]


# A `<think>` without its end, before which the token limit came.
_OPEN_REASONING = re.compile(r"\s*<think(?:ing)?>(?:(?!</think).)*", re.DOTALL | re.IGNORECASE)


def _require_text(choice: Mapping[str, Any], reply: Any) -> None:
    """Raise TransientFault, with a remedy, for a choice without text."""
    message = choice.get("message")
    is_cut = _is_cut(choice)
    if not isinstance(message, dict):
        return
    content = message.get("content")
    # A server that does not take reasoning out of the text sends an open `<think>`.
    is_thinking = is_cut and isinstance(content, str) and bool(_OPEN_REASONING.fullmatch(content))
    if content and not is_thinking and not (is_cut and not str(content).strip()):
        return
    if message.get("tool_calls") or message.get("function_call"):
        raise TransientFault("a tool call instead of text. Switch tools off on the server, or choose another model")
    thought = message.get("reasoning_content") or message.get("reasoning") or _reasoning_tokens(reply)
    if thought or (is_cut and not content) or is_thinking:
        spent = _count(_at(reply, "usage", "completion_tokens")) or _reasoning_tokens(reply)
        tokens = f"its {spent} tokens" if spent else "its tokens"
        if is_cut:
            raise TransientFault(f"no text: the model spent {tokens} on reasoning. {MORE_TOKENS}", kind=Kind.CUT_OFF)
        raise TransientFault(
            f"no text: the server gives all {tokens.removeprefix('its ')} as reasoning. {MORE_TOKENS}; a parser of "
            "reasoning on the server may also take answers for thoughts"
        )
    if message.get("content") is None:
        raise TransientFault(f"a message without text (finish_reason {choice.get('finish_reason')})")


def finish_reason(reply: Any) -> str:
    """`length` if the token limit cut off the first choice, else `stop`."""
    return "length" if _is_cut(_choices(reply)[0]) else "stop"


def _is_cut(choice: Mapping[str, Any]) -> bool:
    """True if the token limit cut off a choice, in OpenAI's word or in those of Claude and Gemini."""
    return str(choice.get("finish_reason")).casefold() in ("length", "max_tokens")


def refusal(reply: Any) -> str:
    """The reason if every choice of a reply is a refusal instead of an answer, else empty."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices:
        return ""
    reasons = [_refusal(choice) if isinstance(choice, dict) else "" for choice in choices]
    return reasons[0] if all(reasons) else ""


def _refusal(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    said = _at(message, "refusal")
    # A choice with text is an answer, whatever else it contains.
    if _at(message, "content") or choice.get("text"):
        return ""
    if isinstance(said, str) and said.strip():
        return one_line(said)
    reason = choice.get("finish_reason")
    return one_line(reason) if isinstance(reason, str) and _FILTERED.match(reason) else ""


def excuse(reply: Any) -> str:
    """The words of a server in the place of an answer, such as `The model is overloaded`; empty for an answer.

    Gateways send errors of the server behind them, and the pages of their log-in, as if a model had said them.
    """
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        return ""
    said = [_text(choice).strip() for choice in choices]
    page = _PAGE.match(said[0])
    return one_line((page and page[1]) or said[0]) if all(map(_is_excuse, said)) else ""


def _is_excuse(text: str) -> bool:
    # Items of a list are values, whatever they say.
    is_brief = len(text) <= LONGEST_EXCUSE and not _ITEM.match(text)
    return _PAGE.match(text) is not None or (is_brief and _EXCUSE.search(text) is not None)


LONGEST_EXCUSE = 400
"""Characters of an error in the place of an answer."""
_ITEM = re.compile(r"\W{0,3}\d{1,3}[.)]\s|[-*•]\s")
_PAGE = re.compile(r"<(?:!doctype html|html|head)\b(?:.{0,2000}?<(?:title|h1)>([^<]*))?", re.DOTALL | re.IGNORECASE)
_EXCUSE = re.compile(
    r"^\W{0,3}(?:(?:internal|upstream|server|api|provider|http|request|unexpected)\s)*(?:error|exception)\b"
    r"(?:\s(?:code|status))?(?:\W{0,3}\d{3}\b|\W{0,2}[]:–—-]\s)|"
    r"\b(?:error|problem)\s(?:has\s)?occurred\b|\bsomething\swent\swrong\b|\bstatus\scode\s\d{3}\b|"
    r"^\W{0,3}(?:service|server|model)\s(?:temporarily\s)?(?:unavailable|overloaded)\b|"
    r"\b(?:model|server|service|engine|api|endpoint|provider|backend)\b[^.\n]{0,60}\b(?:is|are)\s(?:\w+\s){0,2}?"
    r"(?:overloaded|unavailable|at\s(?:full\s)?capacity|offline|rate.?limited)\b|"
    r"\b(?:rate|usage|quota|requests?|tokens?|daily|monthly|spending|credits?)\b[^.\n]{0,30}\b"
    r"(?:exceeded|reached|exhausted|used\sup)\b|"
    r"\b(?:you|you['’]ve|account)\b[^.\n]{0,30}\b(?:exceeded|reached|hit|run\sout\sof)\b[^.\n]{0,40}\b"
    r"(?:limits?|quota|credits?)\b|\binsufficient\s(?:\w+\s)?(?:credits?|quota|balance|funds)\b|"
    r"\b(?:try|retry)\s(?:it\s|your\srequest\s)?again\s(?:later|shortly|soon|in\s(?:a|\d))|"
    r"\b(?:please|must|need\sto|have\sto)\s(?:log|sign)\s?in\b|"
    r"\b(?:request|connection|upstream|gateway|backend|model)\b[^.\n]{0,20}\b(?:timed\sout|time-?out)\b|"
    r"\b(?:invalid|missing|incorrect|expired)\sapi.?key\b",
    re.IGNORECASE,
)
"""Words of servers that have no answer: failing, overloaded, limited, out of money, behind a log-in."""
_FILTERED = re.compile(r"content.?filter|safety|recitation|blocklist|prohibited|spii|sensitive|refusal", re.IGNORECASE)
"""Reasons to end by a filter: OpenAI's, those that Gemini's layer passes through, GLM's and Claude's."""


def usage(reply: Any, asked: str, answered: Sequence[str]) -> Usage:
    """Tokens as counted by the server; estimated from the bytes if it does not count them.

    Some servers leave the tokens of a model's thoughts out of the answer's, and count them in the total or apart.
    """
    counts = _at(reply, "usage")
    if not isinstance(counts, dict) or not any(counts.values()):  # some servers count nothing, and say 0
        return Usage(estimated_tokens(asked), sum(map(estimated_tokens, answered)))
    prompt = _count(counts.get("prompt_tokens", counts.get("input_tokens")))
    total = _count(counts.get("total_tokens"))
    known = (
        _count(counts.get("completion_tokens", counts.get("output_tokens"))),
        None if total is None or prompt is None else max(0, total - prompt),
        _reasoning_tokens(reply),
    )
    completions = [count for count in known if count is not None]
    return Usage(
        estimated_tokens(asked) if prompt is None else prompt,
        max(completions) if completions else sum(map(estimated_tokens, answered)),
    )


def _reasoning_tokens(reply: Any) -> int | None:
    """Tokens that the model spent on its thoughts, if the server tells."""
    for place in (("completion_tokens_details",), ("output_tokens_details",), ()):
        count = _count(_at(reply, "usage", *place, "reasoning_tokens"))
        if count is not None:
            return count
    return None


def model_reported(reply: Any) -> str:
    """The server's name for the model that answered, such as a dated version of the requested name."""
    name = reply.get("model") if isinstance(reply, dict) else None
    return name if isinstance(name, str) else ""


def first_token_yes(reply: Any, words: str) -> FirstToken:
    """P(yes) over yes and no, in these words, where a reply says them: at its start, or after marks and a label.

    The mass is that of the first token if they are nowhere.
    """
    first, said = None, ""
    for token, likeliest in _likeliest_tokens(reply):
        seen = _yes_among(likeliest, words)
        first = first or seen
        if seen.mass >= LEAST_MASS:
            return seen
        said += token
        if not _BEFORE_VERDICT.fullmatch(said):
            break
    if first is None:
        raise TransientFault("a reply without log-probabilities")
    return first


# `**`, `{"answer": "`, "Antwort: "
_BEFORE_VERDICT = re.compile(r"[^\w<]*(?:json\s[^\w<]*)?(?:[^\W\d]{1,20}[^\w<]*){0,2}")


# Before the verdict of a line: its number.
_NUMBER_ALONE = re.compile(r"\W*(\d{1,3})\W*")


def numbered_yes(reply: Any, count: int, words: str) -> list[FirstToken | None]:
    """P(yes) of each of so many claims, at the token that follows its number in a line; None where there is none."""
    content = _at(_choices(reply)[0].get("logprobs"), "content")
    found: list[FirstToken | None] = [None] * count
    line = ""
    for entry in content if isinstance(content, list) else ():
        number = _NUMBER_ALONE.fullmatch(line)
        place = int(number[1]) - 1 if number else -1
        if 0 <= place < count and found[place] is None:
            likeliest = _scored(_at(entry, "top_logprobs"))
            seen = _yes_among(likeliest, words) if likeliest else None
            # A point or a blank may come between the number and the verdict.
            found[place] = seen if seen is not None and seen.mass >= LEAST_MASS else None
        line = re.split(r"[\n,]", f"{line}{_at(entry, 'token')}")[-1]
    return found


def _yes_among(likeliest: Sequence[tuple[str, float]], words: str) -> FirstToken:
    """P(yes) over yes and no among the likeliest tokens, and their mass, by an entry of `VERDICT_WORDS`.

    A missing answer is at most as likely as the last of the listed tokens, and as the probability that they leave.
    """
    # Marks around the word count only where hardly anything is said without them, so that all backends agree.
    for around in (_BLANKS, _AROUND_WORDS):
        said = [(_said(token.strip(around), words), score) for token, score in likeliest]
        yes, no = ([score for verdict, score in said if verdict is wanted] for wanted in (True, False))
        mass = min(1.0, sum(map(math.exp, (*yes, *no))))
        if mass >= LEAST_MASS:
            break
    left = 1 - sum(math.exp(score) for _, score in likeliest)
    bound = math.log(max(SMALLEST, min(left, *(math.exp(score) for _, score in likeliest))))
    return FirstToken(yes_probability(yes or [bound], no or [bound]), mass)


def _said(token: str, words: str) -> bool | None:
    """The verdict of a token, which may be the beginning of a word alone, but for English: `Ne` of `Nein`."""
    yes, no = (side.split() for side in words.split("/"))
    said = token.casefold()
    if words == VERDICT_WORDS[0] or not said:
        return True if said in yes else False if said in no else None
    begun = [any(word.startswith(said) for word in side) for side in (yes, no)]
    return begun[0] if begun[0] != begun[1] else spoken_verdict(token, words)


def system_one_yes(reply: Any) -> float:
    """P(yes) from a decision server, for the question named `holds`."""
    probability = _at(reply, "answers", "holds", "noul")
    if not isinstance(probability, float | int) or not 0 <= probability <= 1:
        raise TransientFault("a reply without a probability of the decision")
    return float(probability)


def echoed_likelihood(reply: Any, asked: SpannedText) -> LogLikelihood | None:
    """ln P of the text from a completion that echoes it; None if the server did not echo it with log-probabilities.

    The tokens of the text are those that the server counts as the prompt. The first, and a begin token before it, have
    no log-probability. None, too, if spans are asked and the reply does not say where its tokens are.
    """
    text = asked.text
    choice = _choices(reply)[0]
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict) or not _text(choice).lstrip().startswith(text.lstrip()):
        return None
    scores = logprobs.get("token_logprobs")
    if not isinstance(scores, list) or not scores:
        return None
    prompt_tokens = _count(_at(reply, "usage", "prompt_tokens"))
    offsets = logprobs.get("text_offset")
    if isinstance(offsets, list) and len(offsets) == len(scores):
        # Tokens that begin inside the text; what begins behind it is the answer.
        length = sum(isinstance(offset, int) and offset < len(text) for offset in offsets)
    else:
        length = prompt_tokens or 0
    # The two counts may differ by a begin token, which only one of them includes.
    if not 0 < length <= len(scores) or (prompt_tokens is not None and abs(prompt_tokens - length) > 1):
        return None
    starts = offsets[:length] if isinstance(offsets, list) and len(offsets) == len(scores) else None
    return _summed(scores[:length], starts, asked)


def prompt_likelihood(reply: Any, asked: SpannedText) -> LogLikelihood | None:
    """ln P of the prompt from vLLM's `prompt_logprobs`; None if the server did not return them.

    None, too, if spans are asked and the tokens of the reply, put together, are not the text.
    """
    positions = _choices(reply)[0].get("prompt_logprobs")
    if positions is None and isinstance(reply, dict):
        positions = reply.get("prompt_logprobs")
    if not isinstance(positions, list) or not positions:
        return None
    scores: list[Any] = []
    words: list[Any] = []
    for position in positions:
        entries = list(position.values()) if isinstance(position, dict) else []
        # None stands for the first token, which nothing predicts.
        if position is not None and (len(entries) != 1 or not isinstance(entries[0], dict)):
            return None
        scores.append(entries[0].get("logprob") if entries else None)
        words.append(entries[0].get("decoded_token") if entries else None)
    return _summed(scores, _starts(words, asked.text), asked)


def _starts(words: Sequence[Any], text: str) -> list[int] | None:
    """The place in the text of each token, read from its end; None if the tokens do not make up the text.

    The first token has no words in these replies: it is a begin token, or the text's own first word.
    """
    rest = words[1:]
    if not all(isinstance(word, str) for word in rest) or not text.endswith("".join(rest)):
        return None
    first = len(text) - len("".join(rest))
    return [0, *accumulate((len(word) for word in rest[:-1]), initial=first)] if rest else [0]


def _summed(scores: Sequence[Any], starts: Sequence[int] | None, asked: SpannedText) -> LogLikelihood | None:
    """Sum of the scores. Only the first token may have none: nothing predicts it unless there is a begin token."""
    first, rest = scores[0], scores[1:]
    if not all(map(_is_logprob, rest)):
        return None
    # Exactly 0 for the first token means that nothing predicted it: a predicted token is never certain.
    known = [min(0.0, score) for score in ([first, *rest] if _is_logprob(first) and first < 0 else rest)]
    if not asked.spans:
        return LogLikelihood(math.fsum(known), len(known))
    if starts is None:
        return None
    places = list(pairwise([*starts, len(asked.text)]))
    return LogLikelihood.of_tokens(known, places[len(places) - len(known) :], asked.spans)


def _choices(reply: Any) -> list[dict[str, Any]]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise TransientFault("a reply without choices")
    # Servers may list choices in the order in which they were finished.
    return sorted(choices, key=lambda choice: _count(choice.get("index")) or 0)


def _text(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    text = message.get("content") or "" if isinstance(message, dict) else choice.get("text")
    if not isinstance(text, str):
        raise TransientFault("a choice without text")
    return _THOUGHTS.sub("", text)


# Templates that begin the thought themselves leave its end alone in the text; gpt-oss thinks in a channel of its own.
_THOUGHTS = re.compile(
    r"^.*(?:</think(?:ing)?>|<\|channel\|>final[^<]{0,40}<\|message\|>)\s*|^analysis.*assistantfinal",
    re.DOTALL | re.IGNORECASE,
)


def _likeliest_tokens(reply: Any) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """The answer's tokens with the likeliest ones at their places, in the formats of both endpoints."""
    logprobs = _choices(reply)[0].get("logprobs")
    content = _at(logprobs, "content")
    if not isinstance(content, list) or not content:  # completions
        tokens, positions = _at(logprobs, "tokens"), _at(logprobs, "top_logprobs")
        pairs = zip_longest(tokens or (), positions) if isinstance(positions, list) else ()
        content = []
        for token, place in pairs:
            entries = place.items() if isinstance(place, dict) else ()
            content.append(
                {"token": token, "top_logprobs": [{"token": word, "logprob": score} for word, score in entries]}
            )
    for entry in content:
        if likeliest := _scored(_at(entry, "top_logprobs")):
            yield str(_at(entry, "token")), likeliest


def _scored(entries: Any) -> list[tuple[str, float]]:
    """The tokens of entries of a chat's log-probabilities, with these."""
    pairs = [(_at(entry, "token"), _at(entry, "logprob")) for entry in entries] if isinstance(entries, list) else []
    return [(token, min(0.0, score)) for token, score in pairs if isinstance(token, str) and _is_logprob(score)]


def _is_logprob(score: Any) -> bool:
    """True for a finite number up to 0, with room for rounding."""
    return type(score) in (int, float) and LEAST_LOGPROB <= score < 0.01


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS else None
