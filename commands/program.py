"""Options of the whole program, which stand before the command: how models are opened, whichever command asks them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from hapax.commands.declared import F, Finite, declared, together
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Price


class PriceOf(click.ParamType[tuple[str, Price]]):
    """`MODEL=IN,OUT`: a model string and its prices per million tokens of prompts and of answers."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Price]:
        """The model and its price, or a usage error."""

        # At the last `=`, since the name of a model may contain one.
        model, equals, money = str(value).rpartition("=")
        listed = money.split(",")
        if not equals or not model or len(listed) != 2:
            self.fail(f"{value!r} should read MODEL=IN,OUT, such as openai:org/model=0.5,1.5", param, ctx)
        amount = Finite(0)
        prompts, answers = (amount.convert(part, param, ctx) for part in listed)
        return model, Price(prompts, answers)


def _options(*, hidden: bool = False) -> Callable[[F], F]:
    return together(
        declared(OpeningOptions, "device", "dtype", "aliases", hidden=hidden),
        click.option(
            "--price",
            "prices",
            type=PriceOf(),
            multiple=True,
            metavar="MODEL=IN,OUT",
            help="Price of a million tokens of prompts and of answers; overrides the alias.",
            hidden=hidden,
        ),
        declared(OpeningOptions, "proxy", "offline", "probe_again", "retry_unusable", "claims", "seed", hidden=hidden),
    )


with_program = _options()


def of_program(command: F) -> F:
    """The command with the program's options, as they stand before it, in the environment, or in a file for it.

    A command line that has them behind the command is understood, too, and told where they belong.
    """

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        from hapax.commands.console import err

        context = click.get_current_context()
        late = []
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and parameter.hidden and parameter.name is not None:
                source = context.get_parameter_source(parameter.name)
                if source is ParameterSource.DEFAULT:
                    options[parameter.name] = context.find_root().params.get(parameter.name, options[parameter.name])
                elif source is ParameterSource.COMMANDLINE:
                    late.append(parameter.opts[0])
        if late:
            err.print(f"{', '.join(late)}: write options of models before the command, `hapax {late[0]} ...`.")
        return command(*arguments, **options)

    # The command reads them; the program lists them.
    return _options(hidden=True)(run)  # type: ignore[return-value]  # click calls both by name
