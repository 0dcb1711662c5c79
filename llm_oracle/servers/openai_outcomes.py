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
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hapax.grammar.remedies import CALL, Remedy, Setting
from hapax.grammar.writing.words import one_line
from hapax.kb.files import system
from hapax.kb.records import NO_USABLE_REPLY
from hapax.llm_oracle.protocols import PartlyAnswered, Usage

if TYPE_CHECKING:
    from hapax.llm_oracle.servers.openai_aliases import Server

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

SAME_FOR_ALL = frozenset({Kind.NO_ACCESS, Kind.NO_MONEY, Kind.MOVED, Kind.BUSY})
"""Kinds that another way of asking would meet, too."""

_ONE_REQUEST = (
    r"content_filter|content_policy_violation|context_length_exceeded|data_inspection_failed|exceed_context_size_error|"
    r"hooks_failed|invalid_prompt|string_above_max_length|\bflagged\b"
)
KINDS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        # 429 is also the status of an account without money, which no pause cures.
        (
            Kind.NO_MONEY,
            r"^402|\b(AccountOverdueError|Arrearage|INSUFFICIENT_BALANCE|billing_hard_limit_reached|"
            r"exceeded_current_quota_error|insufficient_quota)\b|insufficient (account )?(credits?|balance|funds)|"
            r"credit balance is too low|used all available credits|spending limit",
        ),
        # xAI and Gemini refuse a wrong key by 400.
        (
            Kind.NO_ACCESS,
            r"^401|^4(00|22)\b.*(api.?key.{0,30}(not valid|invalid|incorrect|not found|missing|expired)|"
            r"(invalid|incorrect|missing) api.?key)",
        ),
        # 403 is mostly a key without permission, but some servers moderate with it, and OpenAI forbids options by it.
        (Kind.REFUSED, rf"^403\b.*({_ONE_REQUEST})"),
        (Kind.OPTION, r"^403\b.*logprobs"),
        (Kind.NO_ACCESS, r"^403"),
        (Kind.NOT_FOUND, r"^(404|405|410)"),
        # OpenAI's reasoning models, whose thoughts took all tokens.
        (Kind.CUT_OFF, r"could not finish the message because max_tokens|output limit was reached"),
        # 446: Portkey's guardrails
        (
            Kind.REFUSED,
            rf"^(413|446)|{_ONE_REQUEST}|context[ _](length|size|window|limit)|(prompt|input|request) is too (long|"
            r"large)|request too large|input (length|token count)|too many tokens|inputs?`? (tokens \+|must have less)|"
            r"content[ _](filter|management|policy)|usage polic|guardrail|safety (system|filter|settings)",
        ),
        (Kind.BUSY, r"^429"),
        # 498: Groq has no room. A repetition cannot cure 501 and 505.
        (Kind.AWAY, r"^(408|409|425|498|(?!501|505)[5-9]\d\d)"),
        (Kind.MOVED, r"^[123]"),
        (
            Kind.NOT_FOUND,
            r"not a valid model|(invalid|unknown) model|model .{0,80}(does not exist|not found|identifier is invalid)",
        ),
        (Kind.OPTION, r"\bunsupported_(parameter|value)\b"),
    )
)
"""The kind of an error: that of the first pattern in `STATUS CODES: MESSAGE`. Words and codes decide as much as the
status does, because servers use every status for every fault."""

MORE_TOKENS = f"Switch reasoning off, or allow more tokens for an answer with {Setting('settings.answer_tokens')}"
FEWER_TOKENS = f"Allow fewer tokens for an answer with {Setting('settings.answer_tokens')}."
_TOO_MANY_TOKENS = re.compile(r"max(imum)?_(completion_)?tokens\b.*\d|at most \d+ (completion|output) tokens")


class Unanswered(PartlyAnswered):
    """A request without an answer; it is the answer of its question if others can be asked.

    `said`: the reason, in the server's words. `status`: that of the reply; None if there was none; 200 for a reply that
    cannot be used. `wait`: seconds that the server asks to wait. `is_sent`: False if no server took the request.
    `usage`: tokens that the server charges for it. `others_answered`: True if the server answered others meanwhile.
    """

    def __init__(
        self, kind: Kind, said: str, status: int | None = 200, *, wait: float | None = None, is_sent: bool = True
    ) -> None:
        super().__init__(said)
        self.kind, self.said, self.status, self.wait, self.is_sent = kind, said, status, wait, is_sent
        self.usage = Usage()
        self.others_answered = False

    @property
    def is_transient(self) -> bool:
        return self.kind in TRANSIENT

    @property
    def has_reply(self) -> bool:
        """True if the server replied as if it had an answer."""
        return self.status == 200

    @property
    def reason(self) -> str:
        """The reason that the journal stores."""
        said = self.said or f"HTTP {self.status}"
        return f"{NO_USABLE_REPLY}{message_text(said)}" if self.is_transient else said

    def worded(self, server: Server, path: str) -> Unanswered:
        """The same error with a sentence for the user, and without the server's secrets."""
        self.said = server.redacted(self.said).rstrip("." if self.is_transient else "")
        if self.is_transient:
            self.message = f"{server.place} gave no usable reply to {path}: {self.said}."
            self.remedy = Remedy("Check the server, then run the same {}: nothing that was answered is lost.", CALL)
        else:
            self.message = f"{server.place} refused ({self.status}): {self.said or 'no reason'}".rstrip(".") + "."
            self.remedy = self._remedy(server)
        return self

    def _remedy(self, server: Server) -> Remedy | str:
        if self.said.endswith(FEWER_TOKENS):
            return ""
        if self.kind is Kind.NO_ACCESS and not server.key_name:
            return Remedy(
                "The server wants a key: name the environment variable that has it as `api_key_name`, in an alias of "
                "the model ({}).",
                Setting("aliases"),
            )
        remedies = {
            Kind.NO_ACCESS: f"Set {server.key_name} to a key that this server accepts.",
            Kind.NO_MONEY: "The account has run out of money or quota.",
            Kind.MOVED: "The server has moved: give its new base URL.",
            Kind.NOT_FOUND: "Check the model's name and the base URL, which usually ends in /v1."
            + ("" if re.search(r"/v\d", server.base_url) else f" Perhaps it is {server.base_url}/v1."),
        }
        return remedies.get(self.kind, "The model does not accept this request.")


def error_of(status: int, content: str, headers: Mapping[str, str] | None = None) -> Unanswered:
    """The error that a reply with an error's status describes."""
    headers = headers or {}
    said, codes = _message_and_codes(content)
    if 300 <= status < 400:
        said = message_text(f"see {headers.get('location', 'elsewhere')}")
    line = f"{status} {' '.join(sorted(codes))}: {said}"
    kind = next((kind for kind, pattern in KINDS if pattern.search(line)), Kind.NOT_ACCEPTED)
    if kind is Kind.CUT_OFF:
        return Unanswered(kind, f"{said} {MORE_TOKENS}")
    if kind in TRANSIENT:
        said = f"HTTP {status} {said}".strip()
    elif _TOO_MANY_TOKENS.search(said):  # at every request of this length, so that the reason has the remedy
        said = f"{said.rstrip('.')}. {FEWER_TOKENS}"
    return Unanswered(kind, said, status, wait=_wait(headers, content))


def error_in(reply: Any) -> Unanswered | None:
    """The error that a reply with status 200 contains in the place of an answer; None if there is none."""
    if not isinstance(reply, dict) or any(reply.get(name) for name in _ANSWERING):
        reply = _failed_choice(reply)
    content = json.dumps(reply) if reply else ""
    message, codes = _message_and_codes(content)
    if not message or message.startswith("{"):
        return None  # nothing says that it is one
    numbers = [int(code) for code in codes if re.fullmatch("[45][0-9]{2}", code)]
    if _NO_SUCH_PATH.search(message):
        numbers = [404]
    # Without a code nothing says that another attempt is in vain.
    return error_of(numbers[0] if numbers else 502, content)


_ANSWERING = ("choices", "answers", "tokens")
"""Fields of which a reply with an answer has one."""

# LM Studio says so with status 200.
_NO_SUCH_PATH = re.compile(r"unexpected endpoint", re.IGNORECASE)


def _failed_choice(reply: Any) -> dict[str, Any] | None:
    """The error of a reply whose first choice ends by one, as OpenRouter and its like say it."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or choice.get("finish_reason") not in ("error", "network_error"):
        return None
    return {"error": reply.get("error") or choice.get("error") or "the server behind this one failed"}


def message_text(text: str) -> str:
    """A server's message in one line of limited length."""
    return one_line(text)[:MESSAGE_LENGTH]


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
    # More than is shown, because `message_text` removes blanks and control characters.
    beginning = content[: 4 * MESSAGE_LENGTH]
    page = _HEADING.search(beginning)
    return message_text(": ".join(messages) or (page[1] if page else beginning)), frozenset(codes)


_HEADING = re.compile(r"^\s*<.*?<(?:title|h1)>(.*?)</", re.DOTALL | re.IGNORECASE)
"""What the page of a proxy says."""

_CODES = ("code", "type", "status", "http_code")
_SAYING = (
    *("message", "Message", "msg", "title", "detail", "error"),
    *("error_msg", "error_description", "status_msg", "raw"),
)
_INNER = (
    *("error", "errors", "innererror", "inner_error", "metadata", "provider_specific_fields"),
    *("base_resp", "message", "raw"),
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


# `Please try again in 2.3s`, `retry after 26 seconds`, `"retryDelay": "34s"`, `"X-RateLimit-Reset": "1795953600000"`
_WAIT_WORDS = re.compile(
    r"(?:try again|retry|wait|resets?)(?: (?:in|after|for|about))* ((?:[0-9.]+ ?(?:ms|h|m|s)\w*\s*)+)"
    r'|"(?:retryDelay|retry_after|estimated_time|resets_in_seconds|x-ratelimit-reset)": ?"?([0-9.]+)',
    re.IGNORECASE,
)
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?(ms|h|m|s)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIMES = 1e9
"""Numbers from here are times: seconds since 1970, or thousandths of seconds from a hundred times as much."""


def _wait(headers: Mapping[str, str], content: str) -> float | None:
    """The seconds that an error asks to wait, by its headers or its words; None if it does not say."""
    with suppress(ValueError, KeyError):
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    # A date is compared with the server's own, because clocks differ.
    now = _date(headers.get("date", "")) or system.now()
    for name in sorted(headers):
        # OpenAI's of requests and tokens, Cerebras's of minutes, OpenRouter's: whichever was exhausted.
        is_reset = name.startswith("x-ratelimit-reset") and headers.get(name.replace("reset", "remaining")) == "0"
        if name == "retry-after" or is_reset:
            until = _date(headers[name])
            seconds = _seconds(headers[name]) if until is None else max(0.0, (until - now).total_seconds())
            if seconds is not None:
                return seconds
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


def _date(text: str) -> datetime | None:
    """A date in HTTP's format; None if it is not one, which costs only the hint in it."""
    with suppress(ValueError, TypeError):
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=date.tzinfo or UTC)
    return None
