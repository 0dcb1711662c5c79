"""The value that adds a kind of model: `Backend`. Built-in backends and plug-ins of other packages both define one.

A package of its own registers its backend as an entry point of the group `hapax.models`; see
docs/reference/backends.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from hapax.grammar.arguments import checked
from hapax.grammar.options import Option
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity

if TYPE_CHECKING:
    from hapax.grammar.rules import Library
    from hapax.llm_oracle.budget import Price
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.servers.openai_batch import BatchQueue

ALL_ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR)
SCORING_ROLES = (LIKELIHOOD, EVALUATOR)

Loaded = TypeVar("Loaded")


@checked
@dataclass(frozen=True, slots=True)
class OpeningOptions:
    """Settings that opening a model may need beside its string."""

    library: Library | None = None
    """Rules from which a simulated world is made."""
    seed: Annotated[int, Option("Seed of all random choices.", in_any_folder=True)] = 0
    device: Annotated[str, Option("Where Hugging Face models run.")] = "auto"
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        Option("Number format of models in this process; auto: bfloat16 where it is faster (`hapax doctor`)."),
    ] = "auto"
    batch_size: int = 16
    aliases: Annotated[
        Path | None, Option("YAML file of models on servers, for openai:ALIAS; default: HAPAX_ALIASES.")
    ] = None
    proxy: Annotated[
        str,
        Option(
            "Proxy for servers on other machines: its URL, or the environment variable with it; default: none.",
            metavariable="URL",
        ),
    ] = ""
    offline: Annotated[
        bool,
        Option("Send nothing to other machines, and download no models."),
    ] = False
    queue: BatchQueue | None = None
    """Collects the requests to servers, to be answered as a batch instead."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model string; they override the price in an alias."""
    journal: Journal | None = None
    """Learns the prices of opened models, counts the probes of servers and keeps their findings."""
    probe_again: Annotated[bool, Option("Probe servers again for their capabilities and versions.")] = False
    retry_unusable: Annotated[
        bool,
        Option("Ask again for what had no usable reply in an earlier run."),
    ] = False
    claims: Annotated[
        int | None,
        Option(
            "Claims in one request to a critic on a server; default: up to 20, if that changes no verdict.",
            metavariable="N",
        ),
    ] = None
    forecast: bool = False
    """Only identities are needed: nothing is loaded, and an alias's statements are believed instead of probed."""
    notice: Callable[[str], None] | None = None
    """Receives lines for the user about slow preparations, such as a conversion at a model's first use."""


@dataclass
class OpenedModels:
    """Models opened so far, so that a checkpoint that plays several roles is loaded once."""

    options: OpeningOptions
    loaded: dict[str, Any] = field(default_factory=dict)

    def once(self, key: str, load: Callable[[], Loaded]) -> Loaded:
        """The value of `load`, which is called for the first request with this key only."""
        if key not in self.loaded:
            self.loaded[key] = load()
        return self.loaded[key]  # type: ignore[no-any-return]  # whatever `load` returned for this key

    def learn_price(self, name: str, price: Price | None) -> None:
        """Add the price of a model to the journal's price table, if there is a journal and a price."""
        if self.options.journal is not None and price is not None:
            # A price that the user gave stays.
            self.options.journal.prices.setdefault(name, price)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to open a model for a role. `argument` is the part of the model string after the first colon."""

    model: str
    argument: str
    role: str
    opened: OpenedModels

    @property
    def options(self) -> OpeningOptions:
        return self.opened.options

    def once(self, load: Callable[[], Loaded]) -> Loaded:
        """The value of `load`, which is called once per model string, whatever roles the model plays."""
        return self.opened.once(self.model, load)


def _nothing_missing() -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """A kind of model. Its name, by which model strings begin, is the name under which it is registered."""

    open: Callable[[ModelRequest], Any]
    """Opens a model that implements the protocol of the requested role."""
    roles: tuple[str, ...]
    abilities: str
    """Description for `hapax model list`."""
    argument: str = ""
    """Form of the text after the colon: `PATH` if it is required, `[SEED]` if optional; empty: no colon."""
    missing: Callable[[], str] = _nothing_missing
    """Returns why the backend cannot be used here and the command that helps; empty if it can be used."""
    identify: Callable[[ModelRequest], ModelIdentity] | None = None
    """Returns the identity that an opened model will have, without loading it, for forecasts; None: models are opened
    for a forecast, too."""
    reads_any_words: bool = False
    """True if its models follow instructions in any words, so that the prompt profile that suits them best is probed.
    Other models are asked in the words of the profile `hapax`."""
    values_per_call: int | None = None
    """Values to ask for in one call unless the user says; None: as many as of any model. Small models repeat themselves
    in long lists, and a processor takes minutes over them."""
    price: Price | None = None
    """Price of its models unless the user gives one; `FREE` for models in this process; None: unknown."""

    def __post_init__(self) -> None:
        # A plug-in with a misspelt role should fail when it is loaded, not when somebody wants the role.
        if not self.roles or not set(self.roles) <= set(ALL_ROLES):
            raise ValueError(f"roles should be some of {', '.join(ALL_ROLES)}, not {self.roles!r}")

    def form(self, name: str) -> str:
        """Form of its model strings, for example `hf:NAME_OR_PATH` or `simulated[:SEED]`."""
        if self.argument.startswith("["):
            return f"{name}[:{self.argument[1:]}"
        return f"{name}:{self.argument}" if self.argument else name

    def accepts(self, colon: str, argument: str) -> bool:
        """Tell if a model string with this colon and argument has the backend's form."""
        if not self.argument:
            # `embedded:` is a mistake, even with nothing after the colon.
            return not colon
        return bool(argument) or self.argument.startswith("[")
