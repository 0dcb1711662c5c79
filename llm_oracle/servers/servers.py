"""Backend for models on OpenAI-compatible servers: `openai:MODEL`. Loads the HTTP client when one is opened."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.egress import permit
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD

if TYPE_CHECKING:
    from hapax.llm_oracle.servers.openai_models import OpenAIModel

ALIASES_NAME = "HAPAX_ALIASES"
"""Environment variable with the file of aliases, unless `--aliases` names one."""

_HOW_TO_SEND_NOTHING = Remedy(
    "With {} only probes are sent. To send none, state `logprobs` in an alias of the model ({}).",
    Setting("queue"),
    Setting("aliases"),
)


def _open_openai(request: ModelRequest) -> Any:
    model = request.once(lambda: _connect(request))
    # Both score texts in the same way, and share what is probed.
    role = LIKELIHOOD if request.role == EVALUATOR else request.role
    open_role = {KNOWLEDGE: model.generator, CRITIC: model.critic, LIKELIHOOD: model.likelihood}[role]
    try:
        # The roles of one server share its connection but are probed one by one.
        return request.opened.once(f"{request.model} {role}", open_role)
    except BudgetReached:
        raise
    except HapaxError as fault:
        if model.prober.served.alias.logprobs is not None or not request.options.queue:
            raise
        raise HapaxError(f"{fault} {_HOW_TO_SEND_NOTHING}") from fault


def _connect(request: ModelRequest) -> OpenAIModel:
    from hapax.llm_oracle.servers.openai_abilities import Prober
    from hapax.llm_oracle.servers.openai_aliases import URL_NAME, served_model
    from hapax.llm_oracle.servers.openai_batch import QueueTransport
    from hapax.llm_oracle.servers.openai_models import OpenAIModel
    from hapax.llm_oracle.servers.openai_transport import HttpTransport

    options = request.options
    default_aliases = os.environ.get(ALIASES_NAME)
    aliases = options.aliases or (Path(default_aliases) if default_aliases else None)
    is_queued = options.queue is not None
    served = served_model(request.argument, aliases, os.environ, options.proxy)
    # What is only queued sends no probe if its alias says what one would find.
    is_stated = options.forecast or (is_queued and served.alias.logprobs is not None)
    if served.lacks_key and not is_stated:
        fact = f"OpenAI requires a key. Set {served.server.key_name}, or {URL_NAME} for a server of your own."
        raise HapaxError(fact, _HOW_TO_SEND_NOTHING if is_queued else "")
    if request.model in options.prices:
        served = replace(served, price=options.prices[request.model])
    # A forecast sends nothing. A queue may do without, so `--offline` does not forbid it.
    if not options.forecast and not (options.offline and is_queued):
        permit(*(urlsplit(url).hostname or "" for url in (served.server.base_url, served.server.proxy) if url))
    # Before the first probe, which counts in the budget.
    request.opened.learn_price(served.name, served.price)
    transport = HttpTransport(served)
    prober = Prober(served, transport, options.journal, options.probe_again, is_stated)
    queue = None if options.queue is None else QueueTransport(options.queue, served.server)
    return OpenAIModel(prober, queue, options.claims)


OPENAI = Backend(
    open=_open_openai,
    argument="MODEL",
    reads_any_words=True,
    roles=ALL_ROLES,
    abilities="a model on an OpenAI-compatible server, by alias, name or NAME@URL; its abilities are probed",
)
