"""From `openai:MODEL` to a model on a server: an alias from the user's file, `MODEL@URL`, or the environment.

A key goes only to the server it belongs to: OPENAI_API_KEY to OPENAI_BASE_URL (without one, to OpenAI), an alias's key
to the alias's own base. The file holds names of environment variables, never keys.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from grammar.errors import HapaxError
from llm_oracle.backends.openai_limits import Limits, Patience
from llm_oracle.backends.openai_transport import Server
from llm_oracle.calls import Price

OPENAI = "https://api.openai.com/v1"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"

_WITH_URL = re.compile(r"(?P<model>.+)@(?P<url>https?://.+)")
_SHOWN_KEY = re.compile(r"[\x21-\x7e]*")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model on a server, and what the user says about it."""

    model: str
    server: Server
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)
    price: Price | None = None
    completion: bool | None = None
    """True: asked by completions, False: by chat, None: by chat where the server knows it."""
    logprobs: str | None = None
    """What the user says the server gives: `none`, `output`, `echo` or `prompt`. Believed only where nothing can be
    probed."""
    votes: int = 10
    revision: str = ""
    """The user's own word for which version of the model this is; a new one asks everything anew."""

    @property
    def name(self) -> str:
        """What journal and report call it."""
        return f"openai/{self.server.place}/{self.model}"


class KeyMissing(HapaxError):  # noqa: N818  # named after the situation, as all our errors are
    """OpenAI would be asked without a key."""


def served_model(
    argument: str, aliases: Path | None, environment: Mapping[str, str], queued: bool = False
) -> ServedModel:
    """The model that follows `openai:`. Raises HapaxError with place and remedy for what cannot be meant.

    `queued`: its requests are written down, so that a model whose alias states `logprobs` needs no key.
    """
    served = _meant(argument, aliases, environment)
    server = served.server
    if server.base_url == OPENAI and not server.key and not (queued and served.logprobs is not None):
        raise KeyMissing(f"OpenAI wants a key. Set {server.key_name}, or {URL_NAME} for a server of your own.")
    return served


def _meant(argument: str, aliases: Path | None, environment: Mapping[str, str]) -> ServedModel:
    known = read_aliases(aliases) if aliases else {}
    if argument in known:
        return _from_alias(known[argument], environment)
    usual = environment.get(URL_NAME) or OPENAI
    match = _WITH_URL.fullmatch(argument)
    if known and not match and usual == OPENAI and not environment.get(KEY_NAME):
        raise KeyMissing(
            f"{aliases} has no alias {argument}, and OpenAI, which may know it, wants a key. Name one of "
            f"{', '.join(known)}, or set {KEY_NAME}."
        )
    model, url = (match["model"], match["url"]) if match else (argument, usual)
    mine = _base(url, "the model") == _base(usual, URL_NAME)
    return ServedModel(model, _server(url, KEY_NAME if mine else "", environment, "the model"))


def _server(url: str, key_name: str, environment: Mapping[str, str], where: str) -> Server:
    base = _base(url, where)
    key = environment.get(key_name, "").strip() if key_name else ""
    if not _SHOWN_KEY.fullmatch(key):
        raise HapaxError(f"{key_name} holds blanks or characters that no key has. Set it to the key alone.")
    parts = urlsplit(base)
    path = parts.path.removesuffix("/v1").strip("/")
    remedy = key_name or (KEY_NAME if base == OPENAI else "its key")
    return Server(base, f"{parts.netloc}/{path}" if path else parts.netloc, key, remedy)


def _base(url: str, where: str) -> str:
    """A base URL in one form. It goes into the journal, so it may hold no secret."""
    url = url.strip().rstrip("/")
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable or any(c.isspace() or not c.isprintable() for c in url):
        raise HapaxError(f"{where}: the base URL is none. It reads as http://localhost:8000/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise HapaxError(
            f"{where}: a base URL has no name, password or query, because it is kept with every answer. "
            "Put the key into an environment variable, and name that in an alias as api_key_name."
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}"


# The file


def _number(low: float, high: float = math.inf, whole: bool = False) -> Callable[[Any], bool]:
    kinds = (int,) if whole else (int, float)
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "model_id": (_is_text, "the alias, a text"),
    "model_name": (_is_text, "the server's name of the model, a text"),
    "api_base": (_is_text, "a base URL such as http://localhost:8000/v1"),
    "api_key_name": (_is_text, "the name of an environment variable"),
    "completion": (lambda value: isinstance(value, bool), "true or false"),
    "logprobs": (lambda value: value in ("none", "output", "echo", "prompt"), "none, output, echo or prompt"),
    "votes": (_number(1, 1000, whole=True), "a whole number from 1"),
    "revision": (_is_text, "a text"),
    "max_concurrency": (_number(1, 1024, whole=True), "a whole number from 1"),
    "rpm": (_number(0.001, 1e9), "requests per minute, above 0"),
    "tpm": (_number(1, 1e12), "tokens per minute, from 1"),
    "timeout": (_number(0.001, 86_400), "seconds, above 0"),
    "attempts": (_number(1, 100, whole=True), "a whole number from 1"),
    "price_in": (_number(0, 1e9), "money per million tokens of the prompt"),
    "price_out": (_number(0, 1e9), "money per million tokens of the answer"),
}


def read_aliases(path: Path) -> dict[str, dict[str, Any]]:
    """The aliases of a file by name. Every fault of the file is a HapaxError that names the alias and the field."""
    try:
        listed = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as fault:
        raise HapaxError(
            f"{path}: the aliases cannot be read: {_why(fault)}. They are a YAML list of mappings."
        ) from None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise HapaxError(f"{path}: the aliases should be a YAML list of mappings, each with model_id and model_name.")
    found: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(listed, 1):
        _check(entry, f"{path}: alias {number}")
        if entry["model_id"] in found:
            raise HapaxError(f"{path}: alias {number} repeats the model_id {entry['model_id']}. Rename one of them.")
        found[entry["model_id"]] = entry
    return found


def _why(fault: Exception) -> str:
    """The fault without the line that it stands in, which may hold what nobody should see."""
    if isinstance(fault, yaml.MarkedYAMLError) and fault.problem_mark:
        return f"line {fault.problem_mark.line + 1}: {fault.problem}"
    return fault.strerror or str(fault) if isinstance(fault, OSError) else type(fault).__name__


def _check(entry: Mapping[Any, Any], where: str) -> None:
    for name, value in entry.items():
        if name not in _FIELDS:
            raise HapaxError(f"{where} has the unknown field {name!r}. Fields are {', '.join(_FIELDS)}.")
        fits, wanted = _FIELDS[name]
        if not fits(value):
            raise HapaxError(f"{where}: {name} should be {wanted}.")
    for name in ("model_id", "model_name"):
        if name not in entry:
            raise HapaxError(f"{where} lacks {name}, {_FIELDS[name][1]}.")
    if ("price_in" in entry) != ("price_out" in entry):
        raise HapaxError(f"{where} has one price of two. Give price_in and price_out.")


def _from_alias(alias: Mapping[str, Any], environment: Mapping[str, str]) -> ServedModel:
    usual = environment.get(URL_NAME) or OPENAI
    url = alias.get("api_base", usual)
    where = f"alias {alias['model_id']}"
    key_name = alias.get("api_key_name", KEY_NAME if _base(url, where) == _base(usual, URL_NAME) else "")
    patience = Patience(**{name: alias[name] for name in ("timeout", "attempts") if name in alias})
    limits = Limits(**{name: alias[name] for name in ("max_concurrency", "rpm", "tpm") if name in alias})
    own = {name: alias[name] for name in ("completion", "logprobs", "votes", "revision") if name in alias}
    price = Price(alias["price_in"], alias["price_out"]) if "price_in" in alias else None
    server = _server(url, key_name, environment, where)
    return ServedModel(alias["model_name"], server, limits, patience, price, **own)
