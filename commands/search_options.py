"""The options of searches, and the settings that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import click
from click.core import ParameterSource

from hapax.commands.declared import declared, together
from hapax.engine.certificates import Promise
from hapax.engine.search.gates import gates_in_order
from hapax.engine.search.settings import THRESHOLDS, SearchSettings
from hapax.grammar.options import Option, made
from hapax.llm_oracle.registry import find_backend

TOKENS_PER_VALUE = 25
"""Tokens for one value of a list where a model is given few values at once: a name and a few words about it."""

with_search_settings = declared(
    SearchSettings,
    *("distributions", "beam", "measure", "keep_share", "calls_per_question", "values_per_call"),
    *("temperature", "answer_tokens", "plan", "compat", *THRESHOLDS, "accept_by_rank", "profile"),
)

with_gates = together(
    *(click.option(f"--no-{gate.name}", is_flag=True, help=gate.switch) for gate in gates_in_order() if gate.switch)
)
"""The option `--no-GATE` of each gate that can be switched off."""


def promises(
    *,
    precision: Annotated[
        float | None,
        Option(
            "Promise that this share of the accepted facts is true: labels decide the threshold.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = None,
    statement_precision: Annotated[
        float | None,
        Option(
            "The same for statements, by those that people judged.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = None,
    confidence: Annotated[
        float,
        Option(
            "Probability with which the promises of --precision and --statement-precision are kept.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = 0.9,
) -> dict[str, Promise]:
    """The promises of a search, by the fields of its settings."""
    wanted = {"promise": precision, "statement_promise": statement_precision}
    return {name: Promise(share, confidence) for name, share in wanted.items() if share is not None}


with_promise = together(
    declared(SearchSettings, "calibrated"),
    declared(promises),
    declared(SearchSettings, "certify_by"),
)


def search_settings(options: dict[str, Any]) -> SearchSettings:
    """The settings of a search by its options."""
    given = [f"--{name.replace('_', '-')}" for name in THRESHOLDS if options[name] is not None]
    if options["compat"] and given:
        message = f"{' and '.join(given)} cannot go with --compat {options['compat']}, which has LINK's own thresholds."
        raise click.UsageError(message)
    promised = made(promises, options)
    if not promised:
        # A search without a promise would look as if it had the one that was asked for.
        context = click.get_current_context(silent=True)  # None where no command line asked
        for name in ("confidence", "certify_by"):
            if context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --precision or --statement-precision.")
    return made(
        SearchSettings,
        options,
        **promised,
        seed=options["seed"],
        # Commands without switches of gates do not have these options.
        critic=not options.get("no_critic"),
        likelihood="random" if options.get("no_likelihood") else "model",
        # LINK's ways include its order of variables.
        plan=options["plan"] or ("link" if options["compat"] else None),
        **_list_sizes(options),
    )


def _list_sizes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values and tokens of one list: as the user says, as suits the knowledge model, or the settings' own."""
    # The kind of the model: `hf` of `hf:NAME`.
    backend = None if options["compat"] else find_backend(options["knowledge"].partition(":")[0])
    if backend is None or backend.values_per_call is None:
        return {}
    # The user's own numbers stay.
    values = options["values"] or backend.values_per_call
    return {"values_per_call": values, "answer_tokens": options["answer_tokens"] or TOKENS_PER_VALUE * values}
