"""The classification of what comes back from a server instead of an answer, with one treatment and one sentence each.

Whatever asks a server (probes, lists, critics, votes, likelihoods, batches) meets these kinds alone. The server's own
words are kept, wherever it puts them: in an error object of a reply with status 200, too, in a list of errors, or in
the text of the server behind it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from typing import Any

from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.files import system
from hapax.kb.records import NO_USABLE_REPLY
from hapax.llm_oracle.protocols import PartlyAnswered, Usage

MESSAGE_LENGTH = 300
"""Characters of a server's own message that are shown and stored."""


class Kind(StrEnum):
    """Why there is no answer, and what is done about it."""

    BUSY = "busy"
    """The server asks for a pause, which is kept; it costs no attempt and no call."""
    AWAY = "away"
    """No reply, or an error of the server: asked again."""
    UNUSABLE = "unusable"
    """A reply without an answer: asked again, and passed over if it stays so."""
    CUT_OFF = "cut off"
    """The token limit came before the answer: treated as unusable, and probes ask with more."""
    REFUSED = "refused"
    """This request alone is refused, by a filter or because it is too long: that is its answer."""
    OPTION = "option"
    """The model does not take an option of the request: probes leave it out."""
    NO_ACCESS = "no access"
    NO_MONEY = "no money"
    NOT_FOUND = "not found"
    MOVED = "moved"
    NOT_ACCEPTED = "not accepted"
    """The server does not accept the request and does not say that the reason is in it alone."""


TRANSIENT = frozenset({Kind.BUSY, Kind.AWAY, Kind.UNUSABLE, Kind.CUT_OFF})
"""Kinds for which another attempt may bring an answer."""

SAME_FOR_ALL = frozenset({Kind.NO_ACCESS, Kind.NO_MONEY, Kind.MOVED})
"""Kinds that another way of asking would meet, too."""


class TransientFault(Exception):  # noqa: N818  # it describes an attempt; the retry policy decides if it is an error
    """A failed attempt that may succeed when repeated. `kind`: one of `TRANSIENT`.

    `status`: that of the reply; None if there was no reply; 200 for a reply that cannot be used. `retry_after`: the
    seconds that the server asks to wait. `left`: False if no server took the request.
    """

    def __init__(
        self,
        reason: str,
        status: int | None = 200,
        retry_after: float | None = None,
        *,
        kind: Kind = Kind.UNUSABLE,
        left: bool = True,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.retry_after = retry_after
        self.kind = kind
        self.left = left

    @property
    def is_congestion(self) -> bool:
        """True if sending fewer requests at a time would help."""
        return self.status is not None and (self.kind is Kind.BUSY or self.status >= 500)


class Refused(PartlyAnswered):
    """The server will never answer this request, or no attempt brought a usable reply.

    `status`: None if no reply came. `said`: the server's words. `usage`: tokens that it charges for the request.
    """

    def __init__(
        self, message: str, status: int | None, said: str, kind: Kind = Kind.REFUSED, usage: Usage | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.said = said
        self.kind = kind
        self.usage = usage or Usage()

    @property
    def of_this_request(self) -> bool:
        """True if the reason is in this request alone, so that others can be asked."""
        return self.kind is Kind.REFUSED or self.kind in TRANSIENT

    @property
    def reason(self) -> str:
        """The reason that the journal stores."""
        return self.said or f"HTTP {self.status}"

    @property
    def is_unusable(self) -> bool:
        """True if the server did not refuse, but gave no usable reply."""
        return self.said.startswith(NO_USABLE_REPLY)


class RetriesExhausted(PartlyAnswered):
    """The server is down: all attempts of a request failed. `status`: of the last one; None if no reply came."""

    def __init__(self, message: str, status: int | None, kind: Kind = Kind.AWAY) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error as a server words it. `codes`: its code and type; `wait`: the seconds that it asks to wait."""

    status: int
    message: str
    codes: frozenset[str]
    wait: float | None = None

    @property
    def kind(self) -> Kind:
        """The kind of the error: by its words and codes first, because servers use every status for every fault."""
        if self.status == HTTPStatus.PAYMENT_REQUIRED or self.codes & _SPENT or _SPENT_WORDS.search(self.message):
            return Kind.NO_MONEY
        if self.status == HTTPStatus.UNAUTHORIZED or (self.status in _BAD_REQUEST and _KEY_WORDS.search(self.message)):
            return Kind.NO_ACCESS
        if self.status == HTTPStatus.FORBIDDEN:
            return self._of_permission()
        if self.status in _ABSENT:
            return Kind.NOT_FOUND
        if _CUT_OFF_WORDS.search(self.message):
            return Kind.CUT_OFF
        if self.status in _TOO_LARGE or self.codes & _ONE_REQUEST_CODES or _ONE_REQUEST_WORDS.search(self.message):
            return Kind.REFUSED
        return self._of_status()

    def _of_permission(self) -> Kind:
        """Mostly a key without permission, but some servers moderate with it, and OpenAI forbids options by it."""
        if "flagged" in self.message.casefold() or self.codes & _ONE_REQUEST_CODES:
            return Kind.REFUSED
        return Kind.OPTION if "logprobs" in self.message else Kind.NO_ACCESS

    def _of_status(self) -> Kind:
        if self.status == HTTPStatus.TOO_MANY_REQUESTS:
            return Kind.BUSY
        if self.status in _TEMPORARY or (self.status >= 500 and self.status not in _NEVER):
            return Kind.AWAY
        if self.status < 400:
            return Kind.MOVED
        if _MODEL_WORDS.search(self.message):
            return Kind.NOT_FOUND
        return Kind.OPTION if self.codes & _OPTION_CODES else Kind.NOT_ACCEPTED

    def fault(self, place: str, key_name: str, base_url: str) -> TransientFault | Refused:
        """The exception for the error. `place`, `key_name` and `base_url`: of the server."""
        kind = self.kind
        if kind in (Kind.BUSY, Kind.AWAY):
            said = f"HTTP {self.status} {self.message}".strip()
            return TransientFault(said, self.status, self.wait, kind=kind)
        if kind is Kind.CUT_OFF:
            return TransientFault(f"{self.message} {MORE_TOKENS}", kind=kind)
        said, remedy = self.message, _remedy(kind, key_name, base_url)
        if _TOO_MANY_TOKENS.search(said):  # at every request of this length, so that the reason has the remedy
            said, remedy = f"{said.rstrip('.')}. {FEWER_TOKENS}", ""
        reason = f"{place} refused ({self.status}): {said or 'no reason'}".rstrip(".")
        return Refused(f"{reason}. {remedy}".strip(), self.status, said, kind)


MORE_TOKENS = f"Switch reasoning off, or allow more tokens for an answer with {Setting('settings.answer_tokens')}"
FEWER_TOKENS = f"Allow fewer tokens for an answer with {Setting('settings.answer_tokens')}."
_TOO_MANY_TOKENS = re.compile(r"max(imum)?_(completion_)?tokens\b.*\d|at most \d+ (completion|output) tokens")

_BAD_REQUEST = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_ABSENT = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.GONE)
_TOO_LARGE = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 446)  # 446: Portkey's guardrails
_TEMPORARY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY, 498)  # 498: Groq has no room
_NEVER = (501, 505)  # server errors that a repetition cannot cure

# 429 is also the status of an account without money, which no pause cures.
_SPENT = frozenset(
    {
        "AccountOverdueError",
        "Arrearage",
        "INSUFFICIENT_BALANCE",
        "billing_hard_limit_reached",
        "exceeded_current_quota_error",
        "insufficient_quota",
    }
)
_SPENT_WORDS = re.compile(
    r"insufficient (account )?(credits?|balance|funds)|credit balance is too low|used all available credits|"
    r"spending limit",
    re.IGNORECASE,
)
# xAI and Gemini refuse a wrong key by 400.
_KEY_WORDS = re.compile(
    r"api.?key.{0,30}(not valid|invalid|incorrect|not found|missing|expired)|(invalid|incorrect|missing) api.?key",
    re.IGNORECASE,
)
_MODEL_WORDS = re.compile(
    r"not a valid model|(invalid|unknown) model|model .{0,80}(does not exist|not found|identifier is invalid)",
    re.IGNORECASE,
)

# Codes and words by which servers say that a text is too long or forbidden.
_ONE_REQUEST_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "context_length_exceeded",
        "data_inspection_failed",
        "exceed_context_size_error",
        "hooks_failed",
        "invalid_prompt",
        "string_above_max_length",
    }
)
_ONE_REQUEST_WORDS = re.compile(
    r"context[ _](length|size|window|limit)|(prompt|input|request) is too (long|large)|request too large|"
    r"input (length|token count)|too many tokens|inputs?`? (tokens \+|must have less)|"
    r"content[ _](filter|management|policy)|\bflagged\b|usage polic|guardrail|safety (system|filter|settings)",
    re.IGNORECASE,
)
_OPTION_CODES = frozenset({"unsupported_parameter", "unsupported_value"})
# OpenAI's reasoning models, whose thoughts took all tokens.
_CUT_OFF_WORDS = re.compile(r"could not finish the message because max_tokens|output limit was reached", re.IGNORECASE)
# LM Studio says so with status 200.
_NO_SUCH_PATH = re.compile(r"unexpected endpoint", re.IGNORECASE)

# `Please try again in 2.3s`, `retry after 26 seconds`, `"retryDelay": "34s"`, `"X-RateLimit-Reset": "1795953600000"`
_WAIT_WORDS = re.compile(
    r"(?:try again|retry|wait|resets?)(?: (?:in|after|for|about))* ((?:[0-9.]+ ?(?:ms|h|m|s)\w*\s*)+)"
    r'|"(?:retryDelay|retry_after|estimated_time|resets_in_seconds|x-ratelimit-reset)": ?"?([0-9.]+)',
    re.IGNORECASE,
)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _remedy(kind: Kind, key_name: str, base_url: str) -> Remedy | str:
    """The remedy of an error that is permanent."""
    if kind is Kind.NO_ACCESS and not key_name:
        return Remedy(
            "The server wants a key: name the environment variable that has it as `api_key_name`, in an alias of "
            "the model ({}).",
            Setting("aliases"),
        )
    remedies = {
        Kind.NO_ACCESS: f"Set {key_name} to a key that this server accepts.",
        Kind.NO_MONEY: "The account has run out of money or quota.",
        Kind.MOVED: "The server has moved: give its new base URL.",
        Kind.NOT_FOUND: "Check the model's name and the base URL, which usually ends in /v1."
        + ("" if re.search(r"/v\d", base_url) else f" Perhaps it is {base_url}/v1."),
    }
    return remedies.get(kind, "The model does not accept this request.")


def error_of(status: int, content: str, headers: Mapping[str, str]) -> ServerError:
    """The error that a reply with an error's status describes."""
    message, codes = _message_and_codes(content)
    if 300 <= status < 400:
        message = one_line(f"see {headers.get('location', 'elsewhere')}")
    return ServerError(status, message, codes, _wait(headers, content))


def error_in(reply: Any) -> ServerError | None:
    """The error that a reply with status 200 contains in the place of an answer; None if there is none."""
    if not isinstance(reply, dict) or any(reply.get(name) for name in _ANSWERING):
        reply = _failed_choice(reply)
    message, codes = _message_and_codes(json.dumps(reply)) if reply else ("", frozenset[str]())
    if not message or message.startswith("{"):
        return None  # nothing says that it is one
    numbers = [int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)]
    if _NO_SUCH_PATH.search(message):
        numbers = [int(HTTPStatus.NOT_FOUND)]
    # Without a code nothing says that another attempt is in vain.
    return ServerError(numbers[0] if numbers else 502, message, codes, _wait({}, json.dumps(reply)))


_ANSWERING = ("choices", "answers", "tokens")
"""Fields of which a reply with an answer has one."""


def _failed_choice(reply: Any) -> dict[str, Any] | None:
    """The error of a reply whose first choice ends by one, as OpenRouter and its like say it."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or choice.get("finish_reason") not in ("error", "network_error"):
        return None
    return {"error": reply.get("error") or choice.get("error") or "the server behind this one failed"}


def one_line(text: str) -> str:
    """A server's message in one line of limited length, without control characters that a terminal would obey."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MESSAGE_LENGTH]


def _message_and_codes(content: str) -> tuple[str, frozenset[str]]:
    """The message and codes of an error's body in the formats that servers use; the beginning of any other body."""
    messages: dict[str, None] = {}
    codes: set[str] = set()
    for error in _errors(content):
        codes.update(str(error[name]) for name in _CODES if error.get(name))
        for name in _SAYING:
            said = error.get(name)
            # Lists are those of a validation, with the names of its options.
            text = json.dumps(said) if isinstance(said, list) else said
            if isinstance(text, str) and not text.lstrip().startswith("{"):
                messages[text] = None
    page = _HEADING.search(content[: 4 * MESSAGE_LENGTH])
    # More than is shown, because `one_line` removes blanks and control characters.
    said = ": ".join(messages) or (page[1] if page else content[: 4 * MESSAGE_LENGTH])
    return one_line(said), frozenset(codes)


_HEADING = re.compile(r"^\s*<.*?<(?:title|h1)>(.*?)</", re.DOTALL | re.IGNORECASE)
"""What the page of a proxy says."""

_CODES = ("code", "type", "status", "http_code")
_SAYING = (
    "message",
    "Message",
    "msg",
    "title",
    "detail",
    "error",
    "error_msg",
    "error_description",
    "status_msg",
    "raw",
)
_INNER = (
    "error",
    "errors",
    "innererror",
    "inner_error",
    "metadata",
    "provider_specific_fields",
    "base_resp",
    "message",
    "raw",
)


def _errors(body: Any, depth: int = 5) -> Iterator[Mapping[str, Any]]:
    """The error objects in a body, the outer ones first: Gemini sends lists, gateways quote the server behind them."""
    if isinstance(body, str) and body.lstrip().startswith(("{", "[")):
        # A hostile body may be nested too deeply for the JSON reader.
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, dict) and depth:
        yield body
        for name in _INNER:
            yield from _errors(body.get(name), depth - 1)


def _wait(headers: Mapping[str, str], content: str) -> float | None:
    """The seconds that an error asks to wait, by its headers or its words; None if it does not say."""
    with suppress(ValueError, KeyError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    stated = _retry_after(headers.get("retry-after"), headers.get("date"))
    if stated is not None:
        return stated
    # OpenAI's of requests and tokens, Cerebras's of minutes, OpenRouter's: whichever was exhausted.
    for name, value in headers.items():
        remaining = name.lower().replace("reset", "remaining")
        if name.lower().startswith("x-ratelimit-reset") and headers.get(remaining) == "0":
            return _seconds(value)
    return wait_of(content)


def wait_of(content: str) -> float | None:
    """The seconds that a text asks to wait; None if it does not say."""
    found = _WAIT_WORDS.search(content)
    return None if found is None else _seconds(found[1] or found[2])


def _seconds(text: str) -> float | None:
    """Seconds of a duration such as `1m30.5s` or `12`, or until a time since 1970; None for anything else."""
    with suppress(ValueError):
        number = float(text)
        if not math.isfinite(number):  # float() accepts `inf` and `nan`
            return None
        if number >= _TIMES:
            number = number / (1000 if number >= 100 * _TIMES else 1) - system.now().timestamp()
        return max(0.0, number)
    parts = _DURATION.findall(text)
    return math.fsum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else None


_TIMES = 1e9
"""Numbers from here are times: seconds since 1970, or thousandths of seconds from a hundred times as much."""


def _retry_after(value: str | None, now: str | None) -> float | None:
    """Seconds from a Retry-After header, which is a number or a date; None for anything else, which is ignored.

    A date is compared with the server's own (`now`) if it sent one, because clocks differ.
    """
    date = _date(value)
    if date is not None:
        return max(0.0, (date - (_date(now) or system.now())).total_seconds())
    return None if value is None else _seconds(value)


def _date(value: str | None) -> datetime | None:
    """A date in HTTP's format; None if it is not one."""
    # An unreadable header only costs the hint in it; the retry happens all the same.
    with suppress(ValueError, TypeError):
        date = parsedate_to_datetime(value or "")
        return date.replace(tzinfo=date.tzinfo or UTC)
    return None
