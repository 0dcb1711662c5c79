"""Searches on a Ray cluster, `search --executor ray`: an entry point of the group `hapax.executors`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from hapax.commands.console import err
from hapax.commands.declared import Finite, together
from hapax.commands.model_options import opening_options
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import missing_of
from hapax.grammar.words import counted

if TYPE_CHECKING:
    from hapax.engine.cluster.running import ClusterReport, Spread
    from hapax.engine.search.report import SearchReport
    from hapax.engine.search.settings import SearchJob
    from hapax.grammar.rules import Library

MOST_WORKERS = 10_000


class RayExecutor:
    """Spreads searches over a Ray cluster, as its options say."""

    options = together(
        click.option(
            "--ray-address",
            default="local",
            show_default=True,
            envvar="RAY_ADDRESS",
            help="Address of the cluster: `auto`, HOST:PORT, ray://HOST:PORT, or `local` to start one on this machine.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1, MOST_WORKERS),
            help="Processes that ask models; they share the limits of servers.  [default: one per processor]",
        ),
        click.option("--worker-gpus", type=Finite(0), default=0.0, show_default=True, help="GPUs per worker."),
        click.option(
            "--shards",
            type=click.Path(file_okay=False, path_type=Path),
            help="Folder where workers, on each machine, keep answers until they are collected.  [default: DB.shards]",
        ),
    )

    def __init__(self, library: Library, options: Mapping[str, Any]) -> None:
        self._spread = _spread(library, options)
        self._report: ClusterReport | None = None
        workers = options["workers"]
        self._workers = counted(workers, "worker") if workers else "one worker per processor"
        self._is_local = options["ray_address"] == "local"

    def search(self, job: SearchJob) -> SearchReport:
        """Search, spread over the cluster."""
        from hapax.engine.cluster.running import search_spread

        if self._is_local:
            # Starting takes seconds, without a word from Ray.
            err.print(f"Starting a Ray cluster on this machine with {self._workers}", soft_wrap=True)
        report, self._report = search_spread(job, self._spread)
        return report

    def print_report(self) -> None:
        """Print the cluster's own work."""
        report = self._report
        if report is None:
            return
        walks = f"; {counted(report.walks, 'walk')} of rules ahead of the search" if report.walks else ""
        lines = [f"{counted(report.workers, 'worker')}{walks}"]
        if report.walks_failed:
            faults = "; ".join(report.faults)
            lines.append(f"{counted(report.walks_failed, 'walk')} failed, which only cost time: {faults}")
        if report.taken_in:
            lines.append(f"{counted(report.taken_in, 'answer')} of an earlier run taken in")
        if report.restarted:
            lines.append(f"{counted(report.restarted, 'worker')} restarted without a shard")
        if report.kept:
            lines.append(
                f"{counted(report.kept, 'answer')} that this search did not need kept for later ones in "
                f"{self._spread.folder}"
            )
        for line in lines:
            err.print(escape(line), soft_wrap=True)


def _spread(library: Library, options: Mapping[str, Any]) -> Spread:
    if options["queue"] is not None:
        raise click.UsageError("--queue asks no model, so there is nothing to spread. Omit --executor ray.")
    # Before the imports below, whose ImportError would not say how to install Ray.
    if missing := missing_of("ray"):
        raise HapaxError(missing)
    from dataclasses import replace

    from hapax.engine.cluster.on_ray import RayCluster
    from hapax.engine.cluster.owner import Opening
    from hapax.engine.cluster.running import Spread
    from hapax.llm_oracle.backends.servers import ALIASES_NAME

    # Read here and made absolute: workers may run in other folders and without this environment variable.
    aliases = options["aliases"] or os.environ.get(ALIASES_NAME)
    opened = replace(
        opening_options(library, options),
        probe_again=False,
        aliases=Path(aliases).absolute() if aliases else None,
        notice=None,  # workers have no screen
    )
    opening = Opening(
        options["knowledge"], options["critic"], options["likelihood"], options["evaluator"], options=opened
    )
    # A folder that the user names may be a link; the one that Hapax names may not.
    folder = options["shards"].resolve() if options["shards"] else Path(f"{options['database']}.shards")
    cluster = RayCluster(options["ray_address"], options["workers"], options["worker_gpus"])
    # Workers may run in other folders.
    return Spread(cluster, opening, folder.absolute())
