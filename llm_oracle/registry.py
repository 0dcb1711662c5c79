"""Model strings such as `embedded` or `hf:google/flan-t5-large`, and the models behind them.

A backend is one line of `BACKENDS`. Nothing heavy is imported before a model is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grammar.errors import HapaxError
from llm_oracle.calls import CRITIC, EVALUATOR, FREE, KNOWLEDGE, LIKELIHOOD, BudgetReached, Journal, Price
from llm_oracle.protocols import Critic, Generator, LikelihoodModel, Models

if TYPE_CHECKING:
    from grammar.rules import Library
    from llm_oracle.backends.loading import LoadedModel
    from llm_oracle.backends.openai_batch import BatchQueue
    from llm_oracle.backends.openai_models import OpenAIModel

EMBEDDED_FOLDER = Path(__file__).parent / "embedded" / "model"

ALIASES_NAME = "HAPAX_ALIASES"

_PROTOCOLS: Mapping[str, Any] = {
    KNOWLEDGE: Generator,
    CRITIC: Critic,
    LIKELIHOOD: LikelihoodModel,
    EVALUATOR: LikelihoodModel,
}
ALL_ROLES = tuple(_PROTOCOLS)
SCORING_ROLES = (LIKELIHOOD, EVALUATOR)


@dataclass(frozen=True, slots=True)
class OpeningOptions:
    """What opening a model may need beside its string. A simulated world is made from `library`.

    `aliases`: the file of models on servers, else the one that HAPAX_ALIASES names; `queue`: where their requests go
    instead, to be answered as a batch. `prices`: by model string, before an alias's own. `journal`: learns the prices
    of what is opened, counts what probing a server takes, and keeps what it found; `probe_again`: find it out anew.
    `sharers`: how many processes that are opened alike keep each server's limits together.
    """

    library: Library | None = None
    seed: int = 0
    device: str = "auto"
    dtype: str = "auto"
    batch_size: int = 16
    aliases: Path | None = None
    queue: BatchQueue | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    journal: Journal | None = None
    probe_again: bool = False
    sharers: int = 1


@dataclass
class Opened:
    """The models opened so far by string, so that one checkpoint is loaded once for all its roles."""

    options: OpeningOptions
    loaded: dict[str, Any] = field(default_factory=dict)

    def once(self, model: str, load: Callable[[], Any]) -> Any:
        """The model of that string, loaded at the first call."""
        if model not in self.loaded:
            self.loaded[model] = load()
        return self.loaded[model]

    def learn_price(self, name: str, price: Price | None) -> None:
        """Tell the journal, if there is one, what a model costs."""
        if self.options.journal is not None and price is not None:
            self.options.journal.prices.setdefault(name, price)


@dataclass(frozen=True, slots=True)
class Backend:
    """One kind of model string. `open` gets the whole string, its argument and the role."""

    prefix: str
    argument: str
    """What follows the colon: `PATH`, `[SEED]`; empty: no colon."""
    roles: tuple[str, ...]
    abilities: str
    missing: Callable[[], str]
    """What stands in the way of using it here and the command that helps; empty: nothing."""
    open: Callable[[Opened, str, str, str], Any]
    price: Price | None = None
    """What its models cost unless the user gives prices; None: unknown. What runs in this process is `FREE`."""

    @property
    def form(self) -> str:
        if self.argument.startswith("["):
            return f"{self.prefix}[:{self.argument[1:]}"
        return f"{self.prefix}:{self.argument}" if self.argument else self.prefix


@dataclass(frozen=True, slots=True)
class ModelListing:
    """One line of `hapax models`. `remedy` is empty when the backend can be used."""

    name: str
    roles: tuple[str, ...]
    abilities: str
    available: bool
    remedy: str


def open_models(
    knowledge: str = "embedded",
    critic: str | None = None,
    likelihood: str | None = None,
    evaluator: str = "frequency",
    options: OpeningOptions | None = None,
) -> Models:
    """The models of a run. Critic and likelihood are the knowledge model's unless they are named.

    Raises HapaxError for an unknown string, a role that a model cannot play, and whatever a model lacks here.
    """
    opened = Opened(options or OpeningOptions())
    return Models(
        _open(opened, knowledge, KNOWLEDGE),
        _open(opened, critic or knowledge, CRITIC),
        _open(opened, likelihood or knowledge, LIKELIHOOD),
        _open(opened, evaluator, EVALUATOR),
    )


def open_model(model: str, role: str, options: OpeningOptions | None = None) -> Any:
    """One model for one role (`knowledge`, `critic`, `likelihood` or `evaluator`)."""
    return _open(Opened(options or OpeningOptions()), model, role)


def open_beside(opened: Opened, model: str, role: str) -> Any:
    """As `open_model`, beside what was opened before: one checkpoint is loaded once."""
    return _open(opened, model, role)


def open_instructed(model: str, role: str, options: OpeningOptions | None = None) -> Any:
    """One model for one role, for questions beyond single facts. Raises HapaxError for one made for those alone."""
    opened = open_model(model, role, options)
    if opened.identity.knows is not None:
        raise HapaxError(
            f"{model} was made to judge and fill in single facts and can do nothing else. Name a model that follows "
            "instructions: -m openai:MODEL or -m hf:MODEL (`hapax models`)."
        )
    return opened


def list_models() -> tuple[ModelListing, ...]:
    """Every backend, what it can do, and whether it can be used here."""
    return tuple(
        ModelListing(backend.form, backend.roles, backend.abilities, not remedy, remedy)
        for backend in BACKENDS
        for remedy in (backend.missing(),)
    )


def price_table(models: Models, prices: Mapping[str, Price] | None = None) -> dict[str, Price]:
    """Prices by model name for the journal: those given, else the models' own (an alias's), else the backends' own.

    A model without any is left out.
    """
    opened = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    own = {model.identity.name: getattr(model, "price", None) for model in opened}
    usual = {backend.prefix: backend.price for backend in BACKENDS}
    known = {name: own[name] or usual.get(name.partition("/")[0]) for name in sorted(own)}
    return {**{name: price for name, price in known.items() if price is not None}, **(prices or {})}


def _open(opened: Opened, model: str, role: str) -> Any:
    backend, argument = _backend(model)
    if role not in backend.roles:
        able = ", ".join(one.form for one in BACKENDS if role in one.roles)
        raise HapaxError(f"{model} cannot be the {role} model. Choose one of {able}.")
    found = backend.open(opened, model, argument, role)
    if not isinstance(found, _PROTOCOLS[role]):
        raise TypeError(f"{model} opened as {type(found).__name__}, which does not play {role}")
    opened.learn_price(found.identity.name, getattr(found, "price", None) or backend.price)
    return found


def _backend(model: str) -> tuple[Backend, str]:
    prefix, colon, argument = model.partition(":")
    for backend in BACKENDS:
        wants = bool(backend.argument)
        needs = wants and not backend.argument.startswith("[")
        if backend.prefix == prefix and (wants or not colon) and (argument or not needs):
            return backend, argument
    forms = ", ".join(backend.form for backend in BACKENDS)
    raise HapaxError(f"No model {model!r}. A model is one of {forms}; `hapax models` tells more.")


def _open_embedded(opened: Opened, model: str, argument: str, role: str) -> Any:  # noqa: ARG001  # one shape for all
    lack = _embedded_missing()
    if lack:
        raise HapaxError(lack)
    return _in_role(opened.once(model, lambda: _load(EMBEDDED_FOLDER, opened, "embedded")), role, opened)


def _open_huggingface(opened: Opened, model: str, argument: str, role: str) -> Any:
    lack = _huggingface_missing()
    if lack:
        raise HapaxError(lack)
    return _in_role(opened.once(model, lambda: _load(argument, opened, f"hf/{argument}")), role, opened)


def _load(source: str | Path, opened: Opened, name: str) -> LoadedModel:
    from llm_oracle.backends.loading import load_model

    return load_model(source, opened.options.device, name, opened.options.dtype)


def _in_role(loaded: LoadedModel, role: str, opened: Opened) -> Any:
    from llm_oracle.backends.huggingface import HuggingFaceCritic, HuggingFaceGenerator, HuggingFaceLikelihood

    if role == KNOWLEDGE:
        return HuggingFaceGenerator(loaded, opened.options.batch_size)
    return HuggingFaceCritic(loaded) if role == CRITIC else HuggingFaceLikelihood(loaded)


def _open_openai(opened: Opened, model: str, argument: str, role: str) -> Any:
    lack = _openai_missing()
    if lack:
        raise HapaxError(lack)
    served = opened.once(model, lambda: _connect(argument, opened))
    playing = {KNOWLEDGE: served.generator, CRITIC: served.critic}.get(role, served.likelihood)
    try:
        return opened.once(f"{model} {LIKELIHOOD if role == EVALUATOR else role}", playing)
    except BudgetReached:
        raise
    except HapaxError as fault:
        if opened.options.queue is None or served.served.logprobs is not None:
            raise
        raise HapaxError(f"{fault} {_SENDING_NONE}") from fault


_SENDING_NONE = "With --queue nothing but probes is sent; state `logprobs` in an alias (--aliases) to send none."


def _connect(argument: str, opened: Opened) -> OpenAIModel:
    from llm_oracle.backends.openai_aliases import KeyMissing, served_model
    from llm_oracle.backends.openai_findings import Prober
    from llm_oracle.backends.openai_models import OpenAIModel
    from llm_oracle.backends.openai_transport import HttpTransport

    options = opened.options
    usual = os.environ.get(ALIASES_NAME)
    aliases, queued = options.aliases or (Path(usual) if usual else None), options.queue is not None
    try:
        served = served_model(argument, aliases, os.environ, queued)
    except KeyMissing as fault:
        raise HapaxError(f"{fault} {_SENDING_NONE}") if queued else fault from None
    if f"openai:{argument}" in options.prices:
        served = replace(served, price=options.prices[f"openai:{argument}"])
    opened.learn_price(served.name, served.price)
    transport = HttpTransport(served.server, served.limits.shared(options.sharers), served.patience)
    prober = Prober(served, transport, options.journal, options.probe_again)
    return OpenAIModel(prober, None if options.queue is None else options.queue.to(served.server))


def _open_frequency(opened: Opened, model: str, argument: str, role: str) -> Any:  # noqa: ARG001  # one shape for all
    from llm_oracle.backends.frequency import FrequencyLikelihood

    return opened.once(model, FrequencyLikelihood)


def _open_vectors(opened: Opened, model: str, argument: str, role: str) -> Any:  # noqa: ARG001  # one shape for all
    lack = _vectors_missing()
    if lack:
        raise HapaxError(lack)
    from llm_oracle.backends.vectors import VectorLikelihood

    return opened.once(model, lambda: VectorLikelihood.from_file(argument))


def _open_scripted(opened: Opened, model: str, argument: str, role: str) -> Any:  # noqa: ARG001  # one shape for all
    from llm_oracle.scripted import ScriptedModel

    return opened.once(model, lambda: ScriptedModel.from_file(argument))


def _open_simulated(opened: Opened, model: str, argument: str, role: str) -> Any:  # noqa: ARG001  # one shape for all
    from llm_oracle.simulated import SimulatedModel, SimulatedWorld

    library = opened.options.library
    if library is None:
        raise HapaxError("A simulated model needs rules to simulate. Name a rule file.")
    if argument and not argument.isdecimal():
        raise HapaxError(f"{model}: the seed should be a number, such as simulated:7.")
    seed = int(argument) if argument else opened.options.seed
    return opened.once(model, lambda: SimulatedModel(SimulatedWorld(library, seed)))


def _huggingface_missing() -> str:
    missing = [package for package in ("torch", "transformers") if find_spec(package) is None]
    return f"{' and '.join(missing)} not installed. Run `pip install {' '.join(missing)}`." if missing else ""


def _openai_missing() -> str:
    missing = [name for name in ("aiolimiter", "httpx2", "tenacity", "yaml") if find_spec(name) is None]
    packages = " ".join(missing).replace("yaml", "pyyaml")
    return f"{' and '.join(missing)} not installed. Run `pip install {packages}`." if missing else ""


def _embedded_missing() -> str:
    if not (EMBEDDED_FOLDER / "config.json").is_file():
        return "The embedded model is not there. Run `make model` to train it."
    return _huggingface_missing()


def _frequency_missing() -> str:
    return "" if find_spec("wordfreq") else "wordfreq is not installed. Run `pip install wordfreq`."


def _vectors_missing() -> str:
    return "" if find_spec("gensim") else "gensim is not installed. Run `pip install gensim`."


def _nothing_missing() -> str:
    return ""


BACKENDS: tuple[Backend, ...] = (
    Backend(
        "embedded",
        "",
        ALL_ROLES,
        "Hapax's own small model of its atlas; excludes given values while decoding; no network",
        _embedded_missing,
        _open_embedded,
        FREE,
    ),
    Backend(
        "hf",
        "NAME_OR_PATH",
        ALL_ROLES,
        "a Hugging Face checkpoint in this process: causal in all roles, sequence-to-sequence as critic",
        _huggingface_missing,
        _open_huggingface,
        FREE,
    ),
    Backend(
        "openai",
        "MODEL",
        ALL_ROLES,
        "a model on an OpenAI-compatible server, by alias, name or NAME@URL; what the server can do is probed",
        _openai_missing,
        _open_openai,
    ),
    Backend(
        "frequency",
        "",
        SCORING_ROLES,
        "mean log word frequency; independent of every language model",
        _frequency_missing,
        _open_frequency,
        FREE,
    ),
    Backend(
        "vectors",
        "PATH",
        SCORING_ROLES,
        "how closely a text's words belong together, by word vectors such as fastText's",
        _vectors_missing,
        _open_vectors,
        FREE,
    ),
    Backend(
        "scripted",
        "PATH",
        ALL_ROLES,
        "answers from a JSON file, for tests and examples",
        _nothing_missing,
        _open_scripted,
        FREE,
    ),
    Backend(
        "simulated",
        "[SEED]",
        ALL_ROLES,
        "a seeded invented world over the rules at hand, with known truth and error rates",
        _nothing_missing,
        _open_simulated,
        FREE,
    ),
)
