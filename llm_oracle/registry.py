"""Model strings such as `embedded` or `hf:google/flan-t5-large`, and the backends that open them.

A built-in backend is one line of `BACKENDS`; a plug-in is an entry point of the group `hapax.models`. Both are loaded
in the same way and only when a model string needs them, so that nothing heavy is imported before a model is opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.writing.notebook import Tabular
from hapax.llm_oracle.backend import Backend, ModelRequest, OpenedModels, OpeningOptions
from hapax.llm_oracle.backends.weights import ForecastModel
from hapax.llm_oracle.budget import FREE, Budget, Price
from hapax.llm_oracle.critics.combined_critic import CombinedCritic, highest_price, paraphrased
from hapax.llm_oracle.critics.critic_chain import CriticChain
from hapax.llm_oracle.egress import offline
from hapax.llm_oracle.journal import CallStore, Journal
from hapax.llm_oracle.protocols import (
    CRITIC,
    EVALUATOR,
    KNOWLEDGE,
    LIKELIHOOD,
    CannotScore,
    Critic,
    Generator,
    LikelihoodModel,
    Models,
    NameAuthority,
)

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PARAPHRASED = "paraphrased:"
"""Begins the model string of a critic that is asked in several wordings."""

GROUP = "hapax.models"
"""Entry-point group of the backends in other packages."""

BACKENDS: Mapping[str, str] = {
    "embedded": "hapax.llm_oracle.backends.checkpoints:EMBEDDED",
    "smollm2": "hapax.llm_oracle.backends.checkpoints:SMOLLM2",
    "smollm2-critic": "hapax.llm_oracle.backends.checkpoints:SMOLLM2_CRITIC",
    "hf": "hapax.llm_oracle.backends.checkpoints:HUGGING_FACE",
    "gguf": "hapax.llm_oracle.backends.checkpoints:GGUF",
    "openai": "hapax.llm_oracle.servers.servers:OPENAI",
    "frequency": "hapax.llm_oracle.rankers.frequency:BACKEND",
    "reference": "hapax.llm_oracle.references.model:BACKEND",
    "vectors": "hapax.llm_oracle.rankers.vectors:BACKEND",
    "scripted": "hapax.llm_oracle.scripts.scripted:BACKEND",
    "simulated": "hapax.llm_oracle.scripts.simulated:BACKEND",
}
"""Built-in backends in the order of `hapax model list`: the beginning of a model string, and where its `Backend` is."""

FALLBACK_RANKER = "frequency"
"""The likelihood model where none was named and the knowledge model gives no likelihoods."""

_PROTOCOLS: Mapping[str, Any] = {
    KNOWLEDGE: Generator,
    CRITIC: Critic,
    LIKELIHOOD: LikelihoodModel,
    EVALUATOR: LikelihoodModel,
}


@dataclass(frozen=True, slots=True)
class ModelListing:
    """A line of `hapax model list`. `remedy` is empty if the backend can be used here."""

    name: str
    roles: tuple[str, ...]
    abilities: str
    available: bool
    remedy: str


@dataclass(frozen=True)
class ModelListings(Tabular):
    """The backends of models that are known, with their roles, abilities, and whether they can be used here."""

    listings: tuple[ModelListing, ...]
    columns = ("model", "roles", "abilities", "usable here")

    def cells(self) -> list[tuple[str, ...]]:
        """Model string, roles, abilities, and `yes` or the remedy."""
        return [(model.name, ", ".join(model.roles), model.abilities, model.remedy or "yes") for model in self.listings]

    def to_json(self) -> list[dict[str, Any]]:
        """The backends as JSON objects."""
        return [asdict(model) for model in self.listings]


@dataclass(frozen=True, slots=True)
class BudgetedModels(Models):
    """The models of the four roles, with the budget that each operation on them keeps; None: no limit.

    `journal`: the one that the models were opened with, which holds their probes and prices. `retry_unusable`: ask once
    more for what had no usable reply.
    """

    budget: Budget | None = None
    journal: Journal | None = None
    retry_unusable: bool = False


@checked
def open_models(
    knowledge: str = "embedded",
    critic: str | None = None,
    likelihood: str | None = None,
    evaluator: str = "frequency",
    *,
    budget: Budget | None = None,
    **options: Any,
) -> BudgetedModels:
    """The models of a search, by model strings such as `embedded`, `hf:NAME` and `openai:MODEL@URL`.

    Critic and likelihood are the knowledge model unless they are named; word frequencies rank for a model that gives no
    likelihoods. `budget`: the most that each search or goal
    with these models may send. `options`: the fields of `OpeningOptions`, for instance `seed`, `device` and `aliases`;
    a simulated world needs `library`. A `journal` keeps what probing a server takes and finds. Raises HapaxError for an
    unknown string, a role that a model cannot play, and anything that is not installed.
    """
    known = [field.name for field in fields(OpeningOptions)]
    # `OpeningOptions` itself would raise a TypeError, without the names of its options.
    if unknown := sorted(options.keys() - set(known)):
        raise HapaxError(f"open_models has no option {', '.join(unknown)}. Its options are {', '.join(known)}.")
    opening = OpeningOptions(**options)
    models = open_roles(OpenedModels(opening), knowledge, critic, likelihood, evaluator)
    roles = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    return BudgetedModels(*roles, models.names, budget, opening.journal, opening.retry_unusable)


def journal_of(kb: CallStore, models: Models) -> Journal:
    """The journal of the models, else a journal of the knowledge base under their budget and prices."""
    if not isinstance(models, BudgetedModels):
        return Journal(kb, None, price_table(models))
    return models.journal or Journal(kb, models.budget, price_table(models), retry_unusable=models.retry_unusable)


def with_journal(
    kb: CallStore, opening: OpeningOptions | None, budget: Budget | None = None
) -> tuple[OpeningOptions, Journal]:
    """The opening options with a journal: their own, else one of the knowledge base with this budget."""
    opening = opening or OpeningOptions()
    journal = opening.journal or Journal(kb, budget, retry_unusable=opening.retry_unusable)
    return replace(opening, journal=journal), journal


def open_roles(
    opened: OpenedModels,
    knowledge: str = "embedded",
    critic: str | None = None,
    likelihood: str | None = None,
    evaluator: str = "frequency",
) -> Models:
    """Like `open_models`, sharing models that are already open."""
    proposing = open_shared(opened, knowledge, KNOWLEDGE)
    judging = open_shared(opened, critic or knowledge, CRITIC)
    return Models(
        proposing,
        judging,
        open_shared(opened, likelihood, LIKELIHOOD) if likelihood else _ranking(opened, knowledge),
        open_shared(opened, evaluator, EVALUATOR),
        # The members of a chain, or else the critic itself.
        _authorities((proposing, *getattr(judging, "critics", (judging,)))),
    )


def _ranking(opened: OpenedModels, knowledge: str) -> LikelihoodModel:
    """The knowledge model as likelihood model; word frequencies where it gives no likelihoods, as most chats do."""
    try:
        return open_shared(opened, knowledge, LIKELIHOOD)  # type: ignore[no-any-return]  # checked there
    except CannotScore:
        return open_shared(opened, FALLBACK_RANKER, LIKELIHOOD)  # type: ignore[no-any-return]


def _authorities(models: Iterable[Any]) -> tuple[NameAuthority, ...]:
    """The models that know canonical names, each once."""
    return tuple({id(model): model for model in models if isinstance(model, NameAuthority)}.values())


def open_model(model: str, role: str, options: OpeningOptions | None = None) -> Any:
    """Open a model for one role (`knowledge`, `critic`, `likelihood` or `evaluator`)."""
    return open_shared(OpenedModels(options or OpeningOptions()), model, role)


def open_shared(opened: OpenedModels, model: str, role: str) -> Any:
    """Like `open_model`, sharing models that are already open: a checkpoint is loaded once for all its roles."""
    # Commas first: a member of a chain may be a combination, such as `reference:geo,a+b`.
    if role == CRITIC:
        parts = chain_parts(model)
        if len(parts) > 1:
            chain = CriticChain([open_shared(opened, part, role) for part in parts], _price_of(parts[-1]))
            if opened.options.forecast and opened.options.journal is not None:
                chain.identify(opened.options.journal.newest_revision(chain.identity.name))
            opened.learn_price(chain.identity.name, chain.price)
            return chain
        if len(chain_parts(model, "+")) > 1 or model.startswith(PARAPHRASED):
            return _combination(opened, chain_parts(model, "+"))
    name, colon, argument = model.partition(":")
    backend = find_backend(name)
    if backend is None or not backend.accepts(colon, argument):
        forms = ", ".join(backend.form(name) for name, backend in _usable_backends())
        raise HapaxError(
            f"Unknown model {model!r}.", Remedy("Choose one of {}; {} describes them.", forms, Operation("list_models"))
        )
    if role not in backend.roles:
        forms = ", ".join(backend.form(name) for name, backend in _usable_backends() if role in backend.roles)
        raise HapaxError(f"{model} cannot be the {role} model. Choose one of {forms}.")
    with offline(opened.options.offline):
        found = _opened(backend, ModelRequest(model, argument, role, opened))
    if not isinstance(found, _PROTOCOLS[role]):
        raise HapaxError(
            f"{model} opened as {type(found).__name__}, which is not a {_PROTOCOLS[role].__name__}. "
            f"Choose another {role} model, and report this to the authors of the backend `{name}`."
        )
    opened.learn_price(found.identity.name, getattr(found, "price", None) or backend.price)
    return found


def chain_parts(model: str, separator: str = ",") -> list[str]:
    """The model strings of a chain such as `reference:geo,smollm2`, which begin with names of backends.

    Any other comma belongs to the string before it, as in `reference:geo,elements`. `+` separates what is combined.
    """
    parts: list[str] = []
    for piece in model.split(separator):
        first = piece.removeprefix(PARAPHRASED).partition("+")[0]
        name, colon, argument = first.partition(":")
        backend = find_backend(name)
        if parts and (backend is None or not backend.accepts(colon, argument)):
            parts[-1] += f"{separator}{piece}"
        else:
            parts.append(piece)
    return parts


def _price_of(model: str) -> Price | None:
    """The price of a model's backend. A chain has that of its last critic, whom the others save claims."""
    backend = find_backend(model.removeprefix(PARAPHRASED).partition(":")[0])
    return backend.price if backend else None


def _combination(opened: OpenedModels, parts: Sequence[str]) -> CombinedCritic:
    """The critic that combines these models, each in several wordings if it is to be paraphrased."""
    members: list[Critic] = []
    prices: list[Price | None] = []
    for part in parts:
        critic: Critic = open_shared(opened, part.removeprefix(PARAPHRASED), CRITIC)
        members += paraphrased(critic) if part.startswith(PARAPHRASED) else [critic]
        prices.append(getattr(critic, "price", None) or _price_of(part))
    combined = CombinedCritic(members, highest_price(prices))
    opened.learn_price(combined.identity.name, combined.price)
    return combined


def _opened(backend: Backend, request: ModelRequest) -> Any:
    """The model, or for a forecast one that has its identity alone."""
    if request.options.forecast and backend.identify is not None:
        return ForecastModel(backend.identify(request))
    # Before `open`, whose import error would not name the command that helps.
    missing = backend.missing()
    if missing:
        raise HapaxError(missing)
    return backend.open(request)


def open_instructed(model: str, role: str, options: OpeningOptions | None = None) -> Any:
    """Open a model for questions beyond single facts. Raises HapaxError for a model that knows only single facts."""
    return instructed(open_model(model, role, options))


def instructed(opened: Any) -> Any:
    """A model that follows instructions. Raises HapaxError for one that knows only single facts."""
    if opened.identity.knows is not None:
        raise HapaxError(
            f"{opened.identity.name} can only judge and fill in single facts.",
            Remedy(
                "Name a model that follows instructions: {} openai:MODEL or hf:MODEL ({}).",
                Setting("model"),
                Operation("list_models"),
            ),
        )
    return opened


@checked
def list_models() -> ModelListings:
    """The backends of models, built in and of other packages, with their abilities.

    A faulty plug-in has its fault as remedy.
    """
    listings = []
    for entry in (*map(_built_in, BACKENDS), *_plug_ins()):
        package = f"from the package {_package(entry)}" if entry.dist else ""
        try:
            backend = _plug_in(entry.name) if package else _load(entry)
        except HapaxError as fault:
            listings.append(ModelListing(entry.name, (), package, available=False, remedy=str(fault)))
            continue
        remedy = backend.missing()
        abilities = f"{backend.abilities} ({package})" if package else backend.abilities
        listings.append(ModelListing(backend.form(entry.name), backend.roles, abilities, not remedy, remedy))
    return ModelListings(tuple(listings))


def price_table(models: Models) -> dict[str, Price]:
    """Prices by model name for the journal: a model's own (from an alias), else its backend's.

    A model without any price is left out.
    """
    table: dict[str, Price] = {}
    opened = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    for model in sorted(opened, key=lambda model: model.identity.name):
        name = model.identity.name
        # By convention, the name of a model begins with the name of its backend.
        backend = find_backend(name.partition("/")[0])
        price = getattr(model, "price", None) or (backend.price if backend else None)
        if price is not None:
            table[name] = price
    return table


def find_backend(name: str) -> Backend | None:
    """The backend of this name; None if there is none. Raises HapaxError for a plug-in that cannot be used."""
    if name in BACKENDS:
        return _load(_built_in(name))
    return _plug_in(name) if any(entry.name == name for entry in _plug_ins()) else None


def runs_in_process(model: str) -> bool:
    """True for a model string whose model runs in this process, so that its requests are not sent anywhere."""
    backend = find_backend(model.partition(":")[0])
    # By identity: a server may cost nothing, too.
    return backend is not None and backend.price is FREE


def _usable_backends() -> Iterator[tuple[str, Backend]]:
    """Names and backends, built-in ones first, without faulty plug-ins."""
    for name in dict.fromkeys((*BACKENDS, *(entry.name for entry in _plug_ins()))):
        try:
            backend = find_backend(name)
        except HapaxError:
            continue
        if backend is not None:
            yield name, backend


def _built_in(name: str) -> EntryPoint:
    # importlib.metadata is slow to import, and no command needs it that opens no model.
    from importlib.metadata import EntryPoint

    return EntryPoint(name, BACKENDS[name], GROUP)


def _plug_ins() -> list[EntryPoint]:
    """Entry points of other packages, by name. Finding them reads the metadata of every installed package."""
    from importlib.metadata import entry_points

    # Sorted, so that the list of models does not depend on the order of folders on the path.
    return sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, _package(entry)))


def _plug_in(name: str) -> Backend:
    """The backend that a plug-in registers. Raises HapaxError if another one has the same name."""
    entries = [entry for entry in _plug_ins() if entry.name == name]
    packages = [_package(entry) for entry in entries]
    if name in BACKENDS:
        raise HapaxError(
            f"{packages[0]}: the model backend `{name}` has the name of one that is built in, which is used instead. "
            f"Ask the authors of the package to rename theirs, or uninstall it: `pip uninstall {packages[0]}`."
        )
    if len(entries) > 1:
        raise HapaxError(
            f"{' and '.join(packages)}: these packages each provide a model backend `{name}`. "
            f"Uninstall all but one of them, for example `pip uninstall {packages[0]}`."
        )
    return _load(entries[0])


def _load(entry: EntryPoint) -> Backend:
    """The Backend that an entry point refers to. Raises HapaxError with the name of its package if it has none."""
    # A built-in backend that fails is a defect of Hapax, whose traceback should be seen.
    if entry.dist is None:
        return entry.load()  # type: ignore[no-any-return]  # built in
    place = f"{_package(entry)}: the model backend `{entry.name}` ({entry.value})"
    remedy = f"Update the package, or uninstall it: `pip uninstall {_package(entry)}`."
    try:
        backend = entry.load()
    except Exception as fault:  # the code of others can raise anything when imported
        raise HapaxError(f"{place} cannot be loaded: {type(fault).__name__}: {fault}. {remedy}") from fault
    if not isinstance(backend, Backend):
        raise HapaxError(
            f"{place} is of type {type(backend).__name__}, not a hapax.llm_oracle.backend.Backend. {remedy}"
        )
    return backend


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "hapax-kb"
