"""Searches on a Ray cluster, `search --executor ray`: an entry point of the group `hapax.executors`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hapax.commands.shared.console import note
from hapax.commands.shared.declared import Finite, together
from hapax.commands.shared.model_options import opening_options
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.writing.words import counted
from hapax.llm_oracle.backend import ALL_ROLES

if TYPE_CHECKING:
    from hapax.grammar.rules import Library
    from hapax.llm_oracle.protocols import Models

MOST_WORKERS = 10_000


class RayExecutor:
    """Spreads searches over a Ray cluster, as its options say."""

    options = together(
        click.option(
            "--ray-address",
            default="local",
            show_default=True,
            envvar="RAY_ADDRESS",
            help="Address of the cluster: auto, HOST:PORT, ray://HOST:PORT, or local: start one here.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, MOST_WORKERS),
            help="Processes that load models.  [default: one per processor]",
        ),
        click.option("--worker-gpus", type=Finite(0), default=0.0, show_default=True, help="GPUs per worker."),
    )

    def __init__(self, library: Library, options: Mapping[str, Any]) -> None:
        if options["queue"] is not None:
            raise click.UsageError("--queue asks no model, so there is nothing to spread. Omit --executor ray.")
        # Before the import of Ray, whose ImportError would not say how to install it.
        if missing := missing_of("ray"):
            raise HapaxError(missing)
        from hapax.engine.cluster.on_ray import RayCluster

        self._names = {role: options[role] for role in ALL_ROLES}
        # Workers ask no servers, and have no screen.
        self._opening = replace(opening_options(library, options), aliases=None, notice=None)
        self._cluster = RayCluster(options["ray_address"], options["workers"], options["worker_gpus"], note)

    @contextmanager
    def spread(self, models: Models) -> Iterator[Models]:
        """The models, with those that run in a process on the cluster while the block runs."""
        from hapax.engine.cluster.on_ray import LOCAL
        from hapax.engine.cluster.spreading import Opening, names_to_spread, spread

        names = names_to_spread(self._names, models)
        if not names:
            note("Servers and lists are asked from this process, so nothing goes to Ray.")
            yield models
            return
        cluster = self._cluster
        if cluster.address == LOCAL:
            # Starting takes seconds, without a word from Ray.
            some = counted(cluster.worker_count, "worker") if cluster.worker_count else "one worker per processor"
            note(f"Starting a Ray cluster on this machine with {some}")
        with cluster.workers(Opening(names, self._opening)) as workers:
            note(f"{counted(workers.count, 'worker')} for {', '.join(names)}")
            yield spread(models, tuple(names), workers)
