"""From `openai:MODEL` to a model on a server: an alias from the user's file, `MODEL@URL`, or the environment.

A key is sent only to the server it belongs to: OPENAI_API_KEY to OPENAI_BASE_URL (or to OpenAI if that is not set), an
alias's key to the alias's own base. The file holds names of environment variables, never keys.

There is no proxy unless `--proxy` or an alias names one, and never one to this machine. The environment's HTTP_PROXY,
HTTPS_PROXY and ALL_PROXY are ignored, because a proxy sees everything that is sent to an http:// server, its key
included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urljoin, urlsplit

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.yaml_files import read_yaml
from hapax.llm_oracle.budget import Price, ServerPace
from hapax.llm_oracle.egress import is_local_host
from hapax.llm_oracle.questions.chat_settings import ChatSettings
from hapax.llm_oracle.servers.redaction import redacted

OPENAI = "https://api.openai.com/v1"
KEY_NAME, URL_NAME = "OPENAI_API_KEY", "OPENAI_BASE_URL"

# `my-model@http://localhost:8000/v1`; the model's own name may contain an @.
_WITH_URL = re.compile(r"(?P<model>.+)@(?P<url>https?://.+)", re.IGNORECASE)
# `claude-3@20240229` and `model@2024-02-29` are names of versions.
_VERSION = re.compile(r"\d{8}|\d{4}-\d{2}-\d{2}")
_HOST = re.compile(
    r"(localhost|\d+\.\d+\.\d+\.\d+|\[[0-9a-f:.]+\])(:\d+)?(/.*)?|[\w.-]+:\d{2,5}(/.*)?|[\w-]+(\.[\w-]+)+(/.*)?/v\d+/?",
    re.IGNORECASE,
)
"""An address without `http://`: a host of this machine, NAME:PORT, or a domain with the path of an API."""
_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]*")
_HEADER = re.compile(r"[A-Za-z0-9-]+")
_API_VERSION = re.compile(r"api-version=[\w.-]+")
# Written by those who copy the whole address of a request.
_ENDPOINT = re.compile(r"/(chat/)?completions$")


@dataclass(frozen=True, slots=True)
class Server:
    """Address and headers of a server. `place` names it in messages and in the journal.

    `key_name`: the variable of the environment that has its key; empty where the user named none.

    `proxy`: URL of the proxy on the way; empty: none.
    """

    base_url: str
    place: str
    key_name: str = ""
    proxy: str = field(default="", repr=False)
    query: str = ""
    """The version of the interface behind each address, as Azure wants it: `api-version=2024-10-21`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values of headers that no message and no row may have."""

    def url(self, path: str) -> str:
        """The address of a path, below the host if it begins with `/`, else below the base URL."""
        address = urljoin(f"{self.base_url}/", path)
        return f"{address}?{self.query}" if self.query else address

    def redacted(self, text: str) -> str:
        """The text with the secrets replaced, whole and in pieces."""
        for secret in self.secrets:
            text = redacted(text, secret)
        return text

    def redacted_json(self, value: Any) -> Any:
        """A JSON tree with the secrets replaced in all strings and names."""
        if isinstance(value, str):
            return self.redacted(value)
        if isinstance(value, list):
            return [self.redacted_json(item) for item in value]
        if isinstance(value, dict):
            return {self.redacted(name): self.redacted_json(item) for name, item in value.items()}
        return value


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model on a server, with the settings and claims of the user's alias."""

    alias: Alias
    server: Server
    price: Price | None = None
    chat: ChatSettings = field(default_factory=ChatSettings)

    @property
    def model(self) -> str:
        """The server's name of the model."""
        return self.alias.model_name

    @property
    def lacks_key(self) -> bool:
        """True if the server is known to want a key, and there is none."""
        return self.server.base_url == OPENAI and "Authorization" not in self.server.headers

    @property
    def pace(self) -> ServerPace:
        """The limits and the stated speed of the server."""
        alias = self.alias
        return ServerPace(alias.max_concurrency, alias.rpm, alias.tpm, alias.latency, alias.speed)

    @property
    def name(self) -> str:
        """Name of the model in the journal and the report."""
        return f"openai/{self.server.place}/{self.model}"


def served_model(argument: str, aliases: Path | None, environment: Mapping[str, str], proxy: str = "") -> ServedModel:
    """The model that follows `openai:`. Raises HapaxError with place and remedy for a string that has no meaning.

    `proxy`: URL, or name of the environment variable, of the proxy to servers on other machines, unless an alias names
    another one.
    """
    alias, where = _named(argument, aliases, environment)
    server = _server(alias, environment, where, proxy)
    price = None
    if alias.price_in is not None and alias.price_out is not None:
        price = Price(alias.price_in, alias.price_out)
    return ServedModel(alias, server, price, _chat_settings(alias, aliases))


def _named(argument: str, aliases: Path | None, environment: Mapping[str, str]) -> tuple[Alias, str]:
    """The alias, or one that says nothing but model and address, and its place in messages."""
    known = read_aliases(aliases) if aliases else {}
    if argument in known:
        return known[argument], f"alias {argument}"
    match = _WITH_URL.fullmatch(argument)
    if not match:
        _refuse_address(argument)
    if known and not match and not environment.get(URL_NAME) and not environment.get(KEY_NAME):
        raise HapaxError(
            f"{aliases} has no alias {argument}, and OpenAI, which may have such a model, requires a key. "
            f"Name one of {', '.join(known)}, or set {KEY_NAME}."
        )
    model, url = (match["model"], match["url"]) if match else (argument, None)
    # Not checked: the server knows which names there are.
    return Alias.model_construct(model_id=argument, model_name=model, api_base=url), "the model"


def _refuse_address(argument: str) -> None:
    """Raise HapaxError for a name with an address in it: the name, and the key, would go to the default server."""
    model, at, place = argument.rpartition("@")
    is_version = bool(_VERSION.fullmatch(place))  # claude-3@20240229 is the name of a model
    if (model and at and not is_version) or "://" in argument or _HOST.fullmatch(argument):
        raise HapaxError(
            f"openai:{argument} is not MODEL@URL: the address has to be a URL, and the name of a model "
            "comes before it. Write it like openai:my-model@http://localhost:8000/v1.",
            Remedy("For a model whose own name contains such an @, write an alias ({}).", Setting("aliases")),
        )


def local_model(argument: str, aliases: Path | None) -> tuple[str, ChatSettings]:
    """The checkpoint or file that follows `hf:` or `gguf:`, and the chat settings of its alias, if it is an alias.

    Raises HapaxError for an alias with settings of a server.
    """
    known = read_aliases(aliases) if aliases else {}
    alias = known.get(argument)
    if alias is None:
        return argument, ChatSettings()
    misplaced = sorted(alias.model_fields_set - {"model_id", "model_name", *CHAT_FIELDS})
    if misplaced:
        raise HapaxError(
            f"{aliases}: alias {argument}: {', '.join(misplaced)} cannot be set for a model in this process. Keep only "
            f"model_id, model_name, {', '.join(CHAT_FIELDS)}, or open the model as openai:{argument}."
        )
    return alias.model_name, _chat_settings(alias, aliases)


def _chat_settings(alias: Alias, file: Path | None) -> ChatSettings:
    return ChatSettings(alias.system_prompt, _template(alias, file), alias.chat_template_kwargs, alias.reasoning_effort)


def _template(alias: Alias, file: Path | None) -> str:
    """The chat template: the text itself if it has a brace, else the content of the file, beside the alias file."""
    given = alias.chat_template
    if not given or "{" in given:
        return given
    path = Path(given).expanduser() if file is None else file.parent / Path(given).expanduser()
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else "it is not UTF-8"
        raise HapaxError(
            f"alias {alias.model_id}: the chat template {path} cannot be read: {reason}. Name a file with a Jinja "
            "template, or write the template itself."
        ) from fault


def _server(alias: Alias, environment: Mapping[str, str], where: str, proxy: str) -> Server:
    default_url = environment.get(URL_NAME) or OPENAI
    base, query = _address(alias.api_base or default_url, where)
    # OPENAI_API_KEY belongs to one server; a model at another URL does not get it.
    key_name = alias.api_key_name or (KEY_NAME if base == _address(default_url, URL_NAME)[0] else "")
    key = environment.get(key_name, "").strip()
    # A key with a line break would smuggle a second header into the request.
    if not _VISIBLE_ASCII.fullmatch(key):
        raise HapaxError(f"{key_name} contains blanks or characters that no key has. Set it to the key alone.")
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    if key and query:  # Azure
        headers["api-key"] = key
    further, secrets = _further_headers(alias, environment)
    is_here = is_local_host(urlsplit(base).hostname or "")
    if alias.proxy and is_here:
        raise HapaxError(f"{where}: a proxy is named for a server on this machine. Remove `proxy`.")
    named = alias.proxy or ("" if is_here else proxy)
    address = _proxy(named, environment, where if alias.proxy else str(Setting("proxy"))) if named else ""
    parts = urlsplit(base)
    path = parts.path.removesuffix("/v1").strip("/")  # the usual ending says nothing in a name
    place = f"{parts.netloc}/{path}" if path else parts.netloc
    wanted = key_name or (KEY_NAME if base == OPENAI else "")
    return Server(base, place, wanted, address, query, headers | further, (key, *secrets))


def _proxy(name: str, environment: Mapping[str, str], where: str) -> str:
    """The URL of a proxy: `name` itself, or the value of the environment variable that it names.

    A URL with a password is accepted from the environment alone, and never shown.
    """
    url = name if "://" in name else environment.get(name, "").strip()
    if not url:
        raise HapaxError(
            f"{where}: the proxy {name!r} is neither a URL nor an environment variable that is set. Write it like "
            "http://proxy:3128."
        )
    if url == name and "@" in urlsplit(name).netloc:
        raise HapaxError(
            f"{where}: the proxy contains a user name or password. Put its URL into an environment variable, and "
            "give the name of the variable instead."
        )
    if _http_parts(url) is None:
        raise HapaxError(f"{where}: the URL of the proxy is not valid. Write it like http://proxy:3128.")
    return url


def _http_parts(url: str) -> SplitResult | None:
    """The parts of an http URL with a host; None for anything else."""
    try:
        parts = urlsplit(url)
        # Reading `port` raises ValueError if it is not a number.
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        return None
    return parts if is_usable and not any(c.isspace() or not c.isprintable() for c in url) else None


def _further_headers(alias: Alias, environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The headers of an alias, and their secrets: `$NAME` is the value of a variable of the environment."""
    headers, secrets = {}, []
    for name, stated in alias.headers.items():
        value = environment.get(stated[1:], "").strip() if stated.startswith("$") else stated
        if value != stated:
            secrets.append(value)
        if not value or not _VISIBLE_ASCII.fullmatch(value.replace(" ", "")) or not _HEADER.fullmatch(name):
            raise HapaxError(
                f"alias {alias.model_id}: the header {name} has no value that can be sent. Write a text, or $NAME for "
                "a variable of the environment that is set."
            )
        headers[name] = value
    return headers, secrets


def _address(url: str, where: str) -> tuple[str, str]:
    """A normalised base URL, and the version of Azure's interface behind it. They may not contain a secret."""
    url, _, query = url.strip().partition("?")
    parts = _http_parts(_ENDPOINT.sub("", url.rstrip("/")))
    if parts is None:
        raise HapaxError(f"{where}: the base URL is not valid. Write it like http://localhost:8000/v1.")
    is_plain = parts.username is None and parts.password is None and not parts.fragment
    if not is_plain or (query and not _API_VERSION.fullmatch(query)):
        raise HapaxError(
            f"{where}: the base URL contains a user name, password, fragment or query, but it is stored with every "
            "answer. Put the key into an environment variable, and name that variable in an alias as api_key_name."
        )
    # Host names are the same in any case, and the journal knows a server by its address.
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}", query


# The file of aliases


def _printable(text: str) -> str:
    """A text of any number of lines, without other control characters."""
    if not text.strip() or any(not line.replace("\t", " ").isprintable() for line in text.splitlines()):
        raise ValueError("it should be a text without control characters, and not blank")
    return text


def _of_one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it should be a text of one line")
    return text


Lines = Annotated[str, AfterValidator(_printable)]
Text = Annotated[Lines, AfterValidator(_of_one_line)]

CHAT_FIELDS = ("system_prompt", "chat_template", "chat_template_kwargs", "reasoning_effort")
"""Fields of an alias that frame its prompts; models in this process take them as well."""


class Alias(BaseModel):
    """An entry of the file, as docs/how-to/servers.md describes it."""

    # Some versions of pydantic warn of fields whose names begin with `model_`, as two of these do.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=(), allow_inf_nan=False)

    model_id: Text
    model_name: Text
    api_base: Text = ""
    api_key_name: Text = ""
    headers: dict[Text, Text] = {}
    proxy: Text = ""
    completion: bool | None = None
    logprobs: Literal["none", "output", "echo", "prompt"] | None = None
    votes: int = Field(10, ge=1, le=1000)
    revision: Text = ""
    system_prompt: Lines = ""
    chat_template: Lines = ""
    chat_template_kwargs: dict[str, bool | int | float | str] = {}
    reasoning_effort: Text = ""
    max_concurrency: int = Field(16, ge=1, le=1024)
    rpm: float | None = Field(None, ge=0.001, le=1e9)
    tpm: float | None = Field(None, ge=1, le=1e12)
    latency: float | None = Field(None, ge=0, le=86_400)
    speed: float | None = Field(None, ge=0.001, le=1e9)
    timeout: float = Field(120, ge=0.001, le=86_400)
    attempts: int = Field(5, ge=1, le=100)
    price_in: float | None = Field(None, ge=0, le=1e9)
    price_out: float | None = Field(None, ge=0, le=1e9)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, fields: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if value is not None}

    @model_validator(mode="after")
    def _fits_together(self) -> Alias:
        if (self.price_in is None) != (self.price_out is None):
            raise ValueError("only one of the two prices is given; give both price_in and price_out")
        if self.completion and any(getattr(self, name) for name in CHAT_FIELDS):
            raise ValueError(f"{', '.join(CHAT_FIELDS)} need a chat, but completion is true; remove it, or these")
        return self


def read_aliases(path: Path) -> dict[str, Alias]:
    """The aliases of a file by name. Raises HapaxError with file, alias and field of every fault."""
    try:
        entries = read_yaml(path.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as fault:
        raise HapaxError(
            f"{path}: the aliases cannot be read: {_reason(fault)}. Write them as a YAML list of mappings."
        ) from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise HapaxError(
            f"{path}: the file is not a list of aliases. Write a YAML list of mappings, each with model_id and "
            "model_name."
        )
    aliases: dict[str, Alias] = {}
    faults: list[str] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}: alias {number}"
        try:
            alias = Alias.model_validate(entry)
        except ValidationError as invalid:
            # Without the values, of which one may be a secret in the wrong place.
            for error in invalid.errors():
                field = "".join(f": {name}" for name in error["loc"][:1])
                fact = error["msg"].removeprefix("Value error, ")
                if error["type"] == "extra_forbidden":
                    fact = f"unknown field. Remove it, or use one of {', '.join(Alias.model_fields)}"
                faults.append(f"{where}{field}: {fact}.")
            continue
        if alias.model_id in aliases:
            faults.append(f"{where}: model_id {alias.model_id} is already taken. Rename one of the two.")
        aliases[alias.model_id] = alias
    if faults:
        raise HapaxError("\n".join(faults))
    return aliases


def _reason(fault: Exception) -> str:
    """The fault without the line of the file in which it is, because that may contain a secret."""
    if isinstance(fault, yaml.MarkedYAMLError) and fault.problem_mark:
        return f"line {fault.problem_mark.line + 1}: {fault.problem}"
    return fault.strerror or str(fault) if isinstance(fault, OSError) else type(fault).__name__
