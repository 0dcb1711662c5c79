"""What is written to an OpenAI-compatible server and how its replies are read.

Replies are read from plain JSON: what client libraries make of log-probabilities changes from release to release, and
servers differ, too. Whatever a reply lacks or misstates is a Fault.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from llm_oracle.answers import yes_probability
from llm_oracle.backends.openai_limits import Fault
from llm_oracle.calls import BYTES_PER_TOKEN
from llm_oracle.protocols import LogLikelihood, Usage

CHAT, COMPLETIONS = "chat/completions", "completions"
SYSTEM_ONE = "systemone"
"""Typed decisions with probabilities, as `transformers serve` offers them."""

MOST_TOKENS = 2**40
"""In a server's own count; more is no count."""

SMALLEST = 1e-12
"""Probability given to an answer that is beyond the likeliest tokens, where these leave nothing for it."""

LEAST_LOGPROB = -1e6
"""Beyond anything that a model's arithmetic gives, and what servers say for zero."""

_MARKS = " \t\r\n\u2581\u0120\u010a"
"""Blanks, and how tokenizers write them."""


_ONE_REQUEST_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "context_length_exceeded",
        "data_inspection_failed",
        "exceed_context_size_error",
        "invalid_prompt",
        "string_above_max_length",
    }
)
_ONE_REQUEST_WORDS = re.compile(
    r"context[ _](length|size|window)|prompt is too long|content[ _](filter|management|policy)|\bflagged\b|usage polic",
    re.IGNORECASE,
)
"""How OpenAI, Azure, OpenRouter, vLLM and llama.cpp say that a text is too long or forbidden."""

MESSAGE_LENGTH = 300
"""Characters of a server's own words that are shown and kept."""


def request_body(endpoint: str, model: str, prompt: str, **options: Any) -> dict[str, Any]:
    """A request for an answer to a prompt: as one user message, or as a text to go on with."""
    asked: dict[str, Any] = (
        {"messages": [{"role": "user", "content": prompt}]} if endpoint == CHAT else {"prompt": prompt}
    )
    return {"model": model, **asked, **options}


def logprobs_options(endpoint: str, top: int) -> dict[str, Any]:
    """Options that ask for the likeliest tokens at each place of the answer."""
    return {"logprobs": True, "top_logprobs": top} if endpoint == CHAT else {"logprobs": top}


def texts(reply: Any) -> list[str]:
    """The text of each choice. A chat's refusal has no text and is read as an empty one."""
    return [_text(choice) for choice in _choices(reply)]


def finish_reason(reply: Any) -> str:
    """`length` where the token limit cut the first choice, else `stop`."""
    return "length" if _choices(reply)[0].get("finish_reason") == "length" else "stop"


def refusal(reply: Any) -> str:
    """Why every choice of a reply is a refusal instead of an answer; empty: one of them is none."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices:
        return ""
    reasons = [_refusal(choice) if isinstance(choice, dict) else "" for choice in choices]
    return reasons[0] if all(reasons) else ""


def _refusal(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    said = _at(message, "refusal")
    if _at(message, "content") or choice.get("text"):
        return ""
    if isinstance(said, str) and said.strip():
        return one_line(said)
    return "content_filter" if choice.get("finish_reason") == "content_filter" else ""


def one_line(said: str) -> str:
    """A server's words in one line of bounded length, without what a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in said).split())[:MESSAGE_LENGTH]


def is_of_one_request(status: int, codes: AbstractSet[str], said: str) -> bool:
    """Whether an error concerns this request alone: its text is too long for the model, or forbidden.

    403 is mostly a key that may not do this, which concerns all requests; some moderate by it.
    """
    if status == 403:
        return "flagged" in said.casefold() or bool(codes & _ONE_REQUEST_CODES)
    named = bool(codes & _ONE_REQUEST_CODES) or _ONE_REQUEST_WORDS.search(said) is not None
    return status == 413 or (status in (400, 422) and named)


def usage(reply: Any, asked: str, answered: Sequence[str]) -> Usage:
    """Tokens as the server counts them; where it does not, a guess from the bytes."""
    told = reply.get("usage") if isinstance(reply, dict) else None
    counts = told if isinstance(told, dict) else {}
    prompt = _count(counts.get("prompt_tokens", counts.get("input_tokens")))
    completion = _count(counts.get("completion_tokens", counts.get("output_tokens")))
    return Usage(
        guessed_tokens(asked) if prompt is None else prompt,
        sum(map(guessed_tokens, answered)) if completion is None else completion,
    )


def guessed_tokens(text: str) -> int:
    """Tokens of a text whose tokens nobody counted, rather too many than too few."""
    return len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN + 1


def model_reported(reply: Any) -> str:
    """What the server calls the model that answered, such as a dated version of the name asked for."""
    said = reply.get("model") if isinstance(reply, dict) else None
    return said if isinstance(said, str) else ""


def first_token_yes(reply: Any) -> float | None:
    """P(yes) over yes and no among the likeliest first tokens; None: neither is there.

    Where one of the two is not there, it is at most as likely as the last of those that are, and as what they leave.
    """
    likeliest = _likeliest_first_tokens(reply)
    yes, no = (
        [score for token, score in likeliest if token.strip(_MARKS).casefold() == word] for word in ("yes", "no")
    )
    if not yes and not no:
        return None
    left = 1 - sum(math.exp(score) for _, score in likeliest)
    bound = math.log(max(SMALLEST, min(left, *(math.exp(score) for _, score in likeliest))))
    return yes_probability(yes or [bound], no or [bound])


def has_logprobs(reply: Any) -> bool:
    """Whether the server heeded the wish for log-probabilities at all."""
    return isinstance(_choices(reply)[0].get("logprobs"), dict)


def system_one_yes(reply: Any) -> float:
    """P(yes) as a decision server gives it to the question named `holds`."""
    probability = _at(reply, "answers", "holds", "noul")
    if not isinstance(probability, float | int) or not 0 <= probability <= 1:
        raise Fault("a reply without a probability of the decision")
    return float(probability)


def echoed_likelihood(reply: Any, text: str) -> LogLikelihood | None:
    """ln P of the text from a completion that echoes it; None: the server did not echo it with log-probabilities.

    The tokens of the text are those that the server counts as the prompt. The first, and a begin token before it, have
    no log-probability.
    """
    choice = _choices(reply)[0]
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict) or not _text(choice).lstrip().startswith(text.lstrip()):
        return None
    scores = logprobs.get("token_logprobs")
    if not isinstance(scores, list) or not scores:
        return None
    counted = _count(_at(reply, "usage", "prompt_tokens"))
    offsets = logprobs.get("text_offset")
    if isinstance(offsets, list) and len(offsets) == len(scores):
        length = sum(isinstance(offset, int) and offset < len(text) for offset in offsets)
    else:
        length = counted or 0
    if not 0 < length <= len(scores) or (counted is not None and abs(counted - length) > 1):
        return None
    return _summed(scores[:length])


def prompt_likelihood(reply: Any) -> LogLikelihood | None:
    """ln P of the prompt from vLLM's `prompt_logprobs`; None: the server did not give them."""
    places = _choices(reply)[0].get("prompt_logprobs")
    if places is None and isinstance(reply, dict):
        places = reply.get("prompt_logprobs")
    if not isinstance(places, list) or not places:
        return None
    scores: list[Any] = []
    for place in places:
        entries = list(place.values()) if isinstance(place, dict) else []
        if place is not None and (len(entries) != 1 or not isinstance(entries[0], dict)):
            return None
        scores.append(entries[0].get("logprob") if entries else None)
    return _summed(scores)


def _summed(scores: Sequence[Any]) -> LogLikelihood | None:
    """Every token has a score but the first, which nothing predicts unless a begin token stands before it unseen."""
    first, rest = scores[0], scores[1:]
    if not all(map(_is_logprob, rest)):
        return None
    known = [first, *rest] if _is_logprob(first) and first < 0 else rest
    return LogLikelihood(math.fsum(min(0.0, score) for score in known), len(known))


def _choices(reply: Any) -> list[dict[str, Any]]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(one, dict) for one in choices):
        raise Fault("a reply without choices")
    return sorted(choices, key=lambda one: _count(one.get("index")) or 0)  # servers may send them as they are ready


def _text(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    text = message.get("content") or "" if isinstance(message, dict) else choice.get("text")
    if not isinstance(text, str):
        raise Fault("a choice without text")
    return text


def _likeliest_first_tokens(reply: Any) -> list[tuple[str, float]]:
    """Tokens and log-probabilities at the answer's first place, in the forms of both endpoints."""
    logprobs = _choices(reply)[0].get("logprobs")
    content = _at(logprobs, "content")
    if isinstance(content, list) and content:
        entries = _at(content[0], "top_logprobs")
        pairs = [(_at(one, "token"), _at(one, "logprob")) for one in entries] if isinstance(entries, list) else []
    else:
        places = _at(logprobs, "top_logprobs")
        first = places[0] if isinstance(places, list) and places else None
        pairs = list(first.items()) if isinstance(first, dict) else []
    found = [(token, min(0.0, score)) for token, score in pairs if isinstance(token, str) and _is_logprob(score)]
    if not found:
        raise Fault("a reply without log-probabilities")
    return found


def _is_logprob(score: Any) -> bool:
    """A number up to 0, with room for rounding; neither infinite nor nan."""
    return type(score) in (int, float) and LEAST_LOGPROB <= score < 0.01


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_TOKENS else None
