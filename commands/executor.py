"""Where a search is done: in this process, or spread over a Ray cluster."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import err
from commands.options import Finite, opening_options, together
from grammar.errors import HapaxError
from grammar.words import counted

if TYPE_CHECKING:
    from engine.cluster.running import ClusterReport, Spread
    from engine.report import SearchProgress, SearchReport, SearchSettings
    from grammar.rules import Library, Rule
    from kb.store import KnowledgeBase
    from llm_oracle.calls import Journal
    from llm_oracle.protocols import Models

MOST_WORKERS = 10_000

with_executor = together(
    click.option(
        "--executor",
        type=click.Choice(["process", "ray"]),
        default="process",
        show_default=True,
        help="Search in this process, or spread requests and rules over a Ray cluster; the result is the same.",
    ),
    click.option(
        "--ray-address",
        default="local",
        show_default=True,
        envvar="RAY_ADDRESS",
        help="The cluster: `auto`, HOST:PORT, ray://HOST:PORT, or `local`, which starts one on this machine.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, MOST_WORKERS),
        help="Processes that ask models; they share the limits of servers.  [default: one for each processor]",
    ),
    click.option("--worker-gpus", type=Finite(0), default=0.0, show_default=True, help="GPUs of each worker."),
    click.option(
        "--shards",
        type=click.Path(file_okay=False, path_type=Path),
        help="Folder, on each machine, of the workers' answers until they are home.  [default: DB.shards]",
    ),
)


class Executor:
    """Does searches where the options say; `told` says afterwards what a cluster did."""

    def __init__(self, library: Library, options: Mapping[str, Any]) -> None:
        self._spread = _spread(library, options) if options["executor"] == "ray" else None
        self._report: ClusterReport | None = None
        workers = options["workers"]
        self._workers = counted(workers, "worker") if workers else "a worker for each processor"
        self._starts = self._spread is not None and options["ray_address"] == "local"

    def search(
        self,
        library: Library,
        rules: Sequence[Rule],
        kb: KnowledgeBase,
        models: Models,
        settings: SearchSettings,
        *,
        progress: SearchProgress | None,
        journal: Journal,
    ) -> SearchReport:
        """As `engine.search.search`."""
        if self._spread is None:
            from engine.search import search

            return search(library, rules, kb, models, settings, progress=progress, journal=journal)
        from engine.cluster.running import search_spread

        if self._starts:
            err.print(f"Starting a Ray cluster on this machine, {self._workers}", soft_wrap=True)
        report, self._report = search_spread(
            library, rules, kb, models, self._spread, settings=settings, progress=progress, journal=journal
        )
        return report

    def told(self) -> None:
        """Print what the cluster did, if there was one."""
        if self._report is None or self._spread is None:
            return
        one = self._report
        walks = f"; {counted(one.walks, 'walk')} of rules ahead of the search" if one.walks else ""
        lines = [f"{counted(one.workers, 'worker')}{walks}"]
        if one.walks_failed:
            lines.append(f"{counted(one.walks_failed, 'walk')} failed and cost time alone: {'; '.join(one.faults)}")
        if one.taken_in:
            lines.append(f"{counted(one.taken_in, 'answer')} taken in that an earlier run had left")
        if one.restarted:
            lines.append(f"{counted(one.restarted, 'worker')} came back without a shard")
        if one.kept:
            lines.append(
                f"{counted(one.kept, 'answer')} that this search did not need stay in {self._spread.folder}, "
                "for later ones"
            )
        for line in lines:
            err.print(escape(line), soft_wrap=True)


def _spread(library: Library, options: Mapping[str, Any]) -> Spread:
    if options["queue"] is not None:
        raise click.UsageError("--queue sends nothing, so there is nothing to spread: leave out --executor ray.")
    if find_spec("ray") is None:
        raise HapaxError("Ray is not installed. In the folder of Hapax, run `pip install '.[ray]'`.")
    from dataclasses import replace

    from engine.cluster.on_ray import RayCluster
    from engine.cluster.owner import Opening
    from engine.cluster.running import Spread
    from llm_oracle.registry import ALIASES_NAME

    aliases = options["aliases"] or os.environ.get(ALIASES_NAME)
    opened = replace(
        opening_options(library, options), probe_again=False, aliases=Path(aliases).absolute() if aliases else None
    )
    opening = Opening(
        options["knowledge"], options["critic"], options["likelihood"], options["evaluator"], options=opened
    )
    folder = options["shards"] or Path(f"{options['database']}.shards")
    cluster = RayCluster(options["ray_address"], options["workers"], options["worker_gpus"])
    return Spread(cluster, opening, folder.absolute())
