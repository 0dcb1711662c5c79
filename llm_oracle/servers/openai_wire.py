"""Replies of OpenAI-compatible servers, read from plain JSON.

Client libraries treat log-probabilities differently from release to release, and servers differ, too. A reply that
lacks or misstates anything raises `Unanswered`.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise, zip_longest
from typing import Any

from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.protocols import LogLikelihood, SpannedText, Usage
from hapax.llm_oracle.reading.link_replies import LEAST_MASS, VERDICT_WORDS, FirstToken, spoken_verdict, yes_probability
from hapax.llm_oracle.servers.openai_outcomes import (
    MORE_TOKENS,
    Kind,
    Unanswered,
    error_in,
    error_of,
    message_text,
    wait_of,
)

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


def unusable(reason: str, kind: Kind = Kind.UNUSABLE) -> Unanswered:
    """The fault of a reply without a usable answer."""
    return Unanswered(kind, reason)


def parsed(content: bytes) -> Any:
    """The reply with this body. Raises Unanswered for one that is not JSON.

    Some servers send a stream of events whether or not one was asked for; it is put together.
    """
    # Signs of life of a router may stand before a reply that is no stream.
    body = _COMMENTS.sub(b"", content.strip().removeprefix(codecs.BOM_UTF8))
    try:
        reply = _joined(body) if body.startswith(_EVENTS) else _whole(body.decode())
        # A gateway may write JSON into a text of JSON.
        return json.loads(reply) if isinstance(reply, str) else reply
    except (ValueError, RecursionError):
        said = error_of(200, body.decode("utf-8", "replace")).said
        if body.startswith(b"<"):
            fact = f"a web page instead of a reply ({said}); the base URL of a server usually ends in /v1"
        else:
            fact = f"a reply that is not JSON: {said}" if body else "an empty reply"
        raise unusable(fact) from None


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
    """One reply from the events of a stream. Raises ValueError or Unanswered for a part of a stream."""
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
        raise Unanswered(Kind.AWAY, "a stream that ends before its answer does", None)
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


@dataclass(frozen=True)
class ServerReply:
    """A reply with status 200. `body`: its JSON. `asked`: the prompt, by which tokens are estimated.

    Whatever reads an answer raises Unanswered where there is none.
    """

    body: Any
    asked: str = ""

    def failure(self, is_echo: bool = False) -> Unanswered | None:
        """The error, the refusal, or the words of a server, in the place of an answer; None if there is an answer.

        `is_echo`: the reply repeats what was asked.
        """
        if (error := error_in(self.body)) is not None:
            return error
        try:
            choices = self.choices
        except Unanswered:
            return None  # whoever wants them raises it
        reasons = [_refusal(choice) for choice in choices]
        if all(reasons):
            return Unanswered(Kind.REFUSED, reasons[0])
        said = "" if is_echo else self._excuse()
        if not said:
            return None
        wait, fact = wait_of(said), f"the server says in the place of an answer: {said}"
        return Unanswered(Kind.UNUSABLE if wait is None else Kind.BUSY, fact, wait=wait)

    @cached_property
    def choices(self) -> list[dict[str, Any]]:
        """The choices in their order; servers may list them in the order in which they were finished."""
        choices = self.body.get("choices") if isinstance(self.body, dict) else None
        if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
            raise unusable("a reply without choices")
        return sorted(map(_normalised, choices), key=lambda choice: _count(choice.get("index")) or 0)

    @cached_property
    def texts(self) -> list[str]:
        """The text of each choice. A chat's refusal has no text and is read as an empty one."""
        return [_text(choice) for choice in self.choices]

    @property
    def answers(self) -> list[str]:
        """The text of each choice, each of which has one. It must be clear which choice is the first."""
        for choice in self.choices:
            self._check_text(choice)
        # A chained comparison: the texts of choices with the index of the first one, if that has an index.
        index = self.choices[0].get("index")
        first = {
            text
            for choice, text in zip(self.choices, self.texts, strict=True)
            if choice.get("index") == index is not None
        }
        if len(first) > 1:
            raise unusable(f"{len(first)} different choices with the index {index}")
        return self.texts

    @property
    def is_cut(self) -> bool:
        """True if the token limit cut off the first choice."""
        return _is_cut(self.choices[0])

    @property
    def model(self) -> str:
        """The server's name for the model that answered, such as a dated version of the requested name."""
        name = _at(self.body, "model")
        return name if isinstance(name, str) else ""

    @cached_property
    def usage(self) -> Usage:
        """Tokens as counted by the server; estimated from the bytes if it does not count them.

        Some servers leave the tokens of a model's thoughts out of the answer's, and count them in the total or apart.
        """
        try:
            estimate = Usage(estimated_tokens(self.asked), sum(map(estimated_tokens, self.texts)))
        except Unanswered:
            estimate = Usage(estimated_tokens(self.asked), 0)
        counts = _at(self.body, "usage")
        if not isinstance(counts, dict) or not any(counts.values()):  # some servers count nothing, and say 0
            return estimate
        prompt = _count(counts.get("prompt_tokens", counts.get("input_tokens")))
        total = _count(counts.get("total_tokens"))
        known = (
            _count(counts.get("completion_tokens", counts.get("output_tokens"))),
            None if total is None or prompt is None else max(0, total - prompt),
            self._thought_tokens,
        )
        completions = [count for count in known if count is not None]
        return Usage(
            estimate.prompt_tokens if prompt is None else prompt, max(completions, default=estimate.completion_tokens)
        )

    @property
    def _thought_tokens(self) -> int | None:
        """Tokens that the model spent on its thoughts, if the server says so."""
        for place in (("completion_tokens_details",), ("output_tokens_details",), ()):
            count = _count(_at(self.body, "usage", *place, "reasoning_tokens"))
            if count is not None:
                return count
        return None

    def _check_text(self, choice: Mapping[str, Any]) -> None:
        """Raise Unanswered, with a remedy, for a choice of a chat without text."""
        message, is_cut = choice.get("message"), _is_cut(choice)
        if not isinstance(message, dict):
            return
        content = message.get("content")
        # A server that does not take reasoning out of the text sends an open `<think>`.
        is_thought = is_cut and isinstance(content, str) and _OPEN_REASONING.fullmatch(content)
        if content and not is_thought:
            return
        if message.get("tool_calls") or message.get("function_call"):
            raise unusable("a tool call instead of text. Switch tools off on the server, or choose another model")
        spent = _count(_at(self.body, "usage", "completion_tokens")) or self._thought_tokens
        tokens = f"{spent} tokens" if spent else "tokens"
        if is_cut:
            raise unusable(f"no text: the model spent its {tokens} on reasoning. {MORE_TOKENS}", Kind.CUT_OFF)
        if message.get("reasoning_content") or message.get("reasoning") or self._thought_tokens:
            raise unusable(
                f"no text: the server gives all {tokens} as reasoning. {MORE_TOKENS}; a parser of reasoning on the "
                "server may also take answers for thoughts"
            )
        if content is None:
            raise unusable(f"a message without text (finish_reason {choice.get('finish_reason')})")

    def _excuse(self) -> str:
        """The words of a server in the place of an answer, such as `The model is overloaded`; empty for an answer.

        Gateways send errors of the server behind them, and the pages of their log-in, as if a model had said them.
        """
        said = [_text(choice).strip() for choice in self.choices]
        page = _PAGE.match(said[0])
        return message_text((page and page[1]) or said[0]) if all(map(_is_excuse, said)) else ""

    # Answers of critics

    def first_token_yes(self, words: str) -> FirstToken:
        """P(yes) over yes and no, in these words, where the reply says them: at its start, or after marks and a label.

        The mass is that of the first token if they are nowhere.
        """
        first, said = None, ""
        for token, likeliest in self._tokens():
            if not likeliest:
                continue
            seen = _yes_among(likeliest, words)
            first = first or seen
            if seen.mass >= LEAST_MASS:
                return seen
            said += token
            if not _BEFORE_VERDICT.fullmatch(said):
                break
        if first is None:
            raise unusable("a reply without log-probabilities")
        return first

    def numbered_yes(self, count: int, words: str) -> list[FirstToken | None]:
        """P(yes) of each of so many claims, at the token after its number in a line; None where there is none."""
        found: list[FirstToken | None] = [None] * count
        line = ""
        for token, likeliest in self._tokens():
            number = _NUMBER_ALONE.fullmatch(line)
            place = int(number[1]) - 1 if number else -1
            if likeliest and 0 <= place < count and found[place] is None:
                seen = _yes_among(likeliest, words)
                # A point or a blank may come between the number and the verdict.
                found[place] = seen if seen.mass >= LEAST_MASS else None
            line = re.split(r"[\n,]", f"{line}{token}")[-1]
        return found

    def decided_yes(self) -> float:
        """P(yes) from a decision server, for the question named `holds`."""
        probability = _at(self.body, "answers", "holds", "noul")
        if not isinstance(probability, float | int) or not 0 <= probability <= 1:
            raise unusable("a reply without a probability of the decision")
        return float(probability)

    def _tokens(self) -> Iterator[tuple[str, list[tuple[str, float]]]]:
        """The tokens of the first choice with the likeliest ones at their places, in the formats of both endpoints."""
        logprobs = self.choices[0].get("logprobs")
        content = _at(logprobs, "content")
        if isinstance(content, list) and content:
            for entry in content:
                entries = _at(entry, "top_logprobs")
                listed = entries if isinstance(entries, list) else []
                yield (
                    str(_at(entry, "token")),
                    _scored((_at(each, "token"), _at(each, "logprob")) for each in listed),
                )
            return
        tokens, positions = _at(logprobs, "tokens"), _at(logprobs, "top_logprobs")
        for token, place in zip_longest(tokens or (), positions) if isinstance(positions, list) else ():
            yield str(token), _scored(place.items() if isinstance(place, dict) else ())

    # Likelihoods of texts

    def echoed_likelihood(self, asked: SpannedText) -> LogLikelihood | None:
        """ln P of the text from a completion that echoes it; None if it does not, or without log-probabilities.

        The tokens of the text are those that the server counts as the prompt. The first, and a begin token before it,
        have no log-probability. None, too, if spans are asked and the reply does not say where its tokens are.
        """
        text = asked.text
        logprobs = self.choices[0].get("logprobs")
        scores = _at(logprobs, "token_logprobs")
        if not isinstance(scores, list) or not scores or not self.texts[0].lstrip().startswith(text.lstrip()):
            return None
        counted = _count(_at(self.body, "usage", "prompt_tokens"))
        offsets = _at(logprobs, "text_offset")
        starts, length = None, counted or 0
        if isinstance(offsets, list) and len(offsets) == len(scores):
            # Tokens that begin inside the text; what begins after it is the answer.
            length = sum(isinstance(offset, int) and offset < len(text) for offset in offsets)
            starts = offsets[:length]
        # The two counts may differ by a begin token, which only one of them includes.
        if not 0 < length <= len(scores) or (counted is not None and abs(counted - length) > 1):
            return None
        return _summed(scores[:length], starts, asked)

    def prompt_likelihood(self, asked: SpannedText) -> LogLikelihood | None:
        """ln P of the prompt from vLLM's `prompt_logprobs`; None if the server did not return them.

        None, too, if spans are asked and the tokens of the reply, put together, are not the text.
        """
        positions = self.choices[0].get("prompt_logprobs") or _at(self.body, "prompt_logprobs")
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


def _normalised(choice: dict[str, Any]) -> dict[str, Any]:
    """The choice with its text in one piece: Mistral and others send it in parts, among thoughts."""
    message = choice.get("message", choice.get("delta"))  # a delta as in a stream
    if not isinstance(message, dict):
        return choice
    content = message.get("content")
    parts = [content] if isinstance(content, dict) else content
    if isinstance(parts, list):
        texts_only = [{"text": part} if isinstance(part, str) else part for part in parts]
        said = [part.get("text") for part in texts_only if isinstance(part, dict) and part.get("type") in _TEXT_PARTS]
        message = {**message, "content": "".join(text for text in said if isinstance(text, str)) if said else None}
        if parts and not said:
            message.setdefault("reasoning_content", "thoughts")
    return {**choice, "message": message}


_TEXT_PARTS = ("text", "output_text", None)
"""Types of the parts of a message that are said, not thought."""


def _text(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    text = message.get("content") or "" if isinstance(message, dict) else choice.get("text")
    if not isinstance(text, str):
        raise unusable("a choice without text")
    return _THOUGHTS.sub("", text)


# Templates that begin the thought themselves leave its end alone in the text; gpt-oss thinks in a channel of its own.
_THOUGHTS = re.compile(
    r"^.*(?:</think(?:ing)?>|<\|channel\|>final[^<]{0,40}<\|message\|>)\s*|^analysis.*assistantfinal",
    re.DOTALL | re.IGNORECASE,
)
# Blanks, or a `<think>` without its end, before which the token limit came.
_OPEN_REASONING = re.compile(r"\s*(?:<think(?:ing)?>(?:(?!</think).)*)?", re.DOTALL | re.IGNORECASE)


def _is_cut(choice: Mapping[str, Any]) -> bool:
    """True if the token limit cut off a choice, in OpenAI's word or in those of Claude and Gemini."""
    return str(choice.get("finish_reason")).casefold() in ("length", "max_tokens")


def _refusal(choice: Mapping[str, Any]) -> str:
    """The reason if a choice is a refusal instead of an answer, else empty."""
    message = choice.get("message")
    # A choice with text is an answer, whatever else it contains.
    if _at(message, "content") or choice.get("text"):
        return ""
    said, reason = _at(message, "refusal"), choice.get("finish_reason")
    if isinstance(said, str) and said.strip():
        return message_text(said)
    return message_text(reason) if isinstance(reason, str) and _FILTERED.match(reason) else ""


_FILTERED = re.compile(r"content.?filter|safety|recitation|blocklist|prohibited|spii|sensitive|refusal", re.IGNORECASE)
"""Reasons to end by a filter: OpenAI's, those that Gemini's layer passes through, GLM's and Claude's."""


def _is_excuse(text: str) -> bool:
    # Lines and items of a list are values, whatever they say.
    is_brief = len(text) <= LONGEST_EXCUSE and "\n" not in text and not _ITEM.match(text)
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

# `**`, `{"answer": "`, "Antwort: "
_BEFORE_VERDICT = re.compile(r"[^\w<]*(?:json\s[^\w<]*)?(?:[^\W\d]{1,20}[^\w<]*){0,2}")
# Before the verdict of a line: its number.
_NUMBER_ALONE = re.compile(r"\W*(\d{1,3})\W*")


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


def _scored(pairs: Iterable[tuple[Any, Any]]) -> list[tuple[str, float]]:
    """Tokens with their log-probabilities, without what is neither."""
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
