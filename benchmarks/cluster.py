"""Wall time of one process and of a Ray cluster with more and more workers, on one simulated server with a latency.

    python -m benchmarks.cluster -o cluster.json
    python -m benchmarks.cluster --rules 8 --beam 10 --workers 2

Everything is searched on one server, in turns, and every cluster's result is compared row by row with that of one
process. The search that counts stays in one process, so the same search with all answers known (`replay`) bounds what
any number of workers can gain (Amdahl).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import chosen_rules, machine, write_figures
from benchmarks.comparison import differences
from benchmarks.server import MODEL, counts, served
from engine.cluster.owner import Opening
from engine.cluster.routing import Owners
from engine.cluster.running import Cluster, Spread, search_spread
from engine.cluster.walking import Ahead, Walkers
from engine.report import SearchReport, SearchSettings
from engine.search import search
from grammar.errors import HapaxError
from grammar.rules import Library, Rule
from kb.store import KnowledgeBase
from llm_oracle.calls import Journal
from llm_oracle.registry import OpeningOptions


@dataclass(frozen=True, slots=True)
class Bench:
    """What is searched how. `in_flight`: requests at once of all workers together, and of the one process."""

    paths: tuple[Path, ...] = ()
    rules: int = 32
    beam: int = 20
    latency: float = 0.2
    in_flight: int = 128
    workers: tuple[int, ...] = (1, 2, 4)
    world: int = 1


@dataclass
class Timed:
    """A cluster that notes how long its processes took to start."""

    cluster: Cluster
    start_seconds: float = 0.0

    @contextmanager
    def workers(self, opening: Opening, folder: Path) -> Iterator[Owners]:
        begun = time.perf_counter()
        with self.cluster.workers(opening, folder) as owners:
            self.start_seconds = time.perf_counter() - begun
            yield owners

    def walkers(self, ahead: Ahead) -> Walkers:
        return self.cluster.walkers(ahead)


@dataclass(frozen=True, slots=True)
class Searches:
    """Searches of one task, each into a file of its own in one folder."""

    bench: Bench
    library: Library
    rules: Sequence[Rule]
    opening: Opening
    folder: Path

    @property
    def settings(self) -> SearchSettings:
        return SearchSettings(beam=self.bench.beam)

    def alone(self) -> dict[str, Any]:
        """In this process; gives seconds and what was found."""
        with KnowledgeBase(self.folder / "alone.db") as kb:
            return self._alone(kb)

    def replayed(self) -> dict[str, Any]:
        """In this process, into a new file that knows all answers and nothing else."""
        with KnowledgeBase(self.folder / "alone.db") as known, KnowledgeBase(self.folder / "replay.db") as kb:
            kb.record_calls(known.calls().values())
            return self._alone(kb)

    def _alone(self, kb: KnowledgeBase) -> dict[str, Any]:
        journal = Journal(kb)
        models = self.opening.open(journal, 1)
        begun = time.perf_counter()
        report = search(self.library, self.rules, kb, models, self.settings, journal=journal)
        return _figures(report, time.perf_counter() - begun)

    def spread(self, cluster: Cluster, name: str) -> dict[str, Any]:
        """Over a cluster; gives besides how long it took to start and how many rows differ from the one process's."""
        timed = Timed(cluster)
        with KnowledgeBase(self.folder / f"{name}.db") as kb:
            journal = Journal(kb)
            models = self.opening.open(journal, 1)
            one = Spread(timed, self.opening, self.folder / f"{name}.shards")
            begun = time.perf_counter()
            report, told = search_spread(
                self.library, self.rules, kb, models, one, settings=self.settings, journal=journal
            )
            seconds = time.perf_counter() - begun
        different = sum(differences(self.folder / "alone.db", self.folder / f"{name}.db").values())
        return {
            **_figures(report, seconds),
            "start_seconds": round(timed.start_seconds, 2),
            "walks": told.walks,
            "walks_failed": told.walks_failed,
            "answers_in_vain": told.kept,
            "different_rows": different,
        }


def _figures(report: SearchReport, seconds: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 2),
        "statements": len(report.statements),
        "calls_sent": sum(one.calls for role, one in report.statistics.items() if role != "evaluator"),
    }


def on_ray(count: int) -> Cluster:
    """A Ray cluster of this machine with so many workers."""
    from engine.cluster.on_ray import RayCluster

    return RayCluster(worker_count=count)


def measured(bench: Bench, cluster_of: Callable[[int], Cluster] = on_ray) -> dict[str, Any]:
    """The figures of one process, of the replay, and of clusters by their number of workers."""
    library, rules = chosen_rules(bench.paths, bench.rules)
    with tempfile.TemporaryDirectory() as name, served(bench.paths, bench.world, bench.latency) as url:
        folder = Path(name)
        alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": bench.in_flight}
        (folder / "aliases.yaml").write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
        options = OpeningOptions(library=library, aliases=folder / "aliases.yaml")
        opening = Opening(f"openai:{MODEL}", None, None, "frequency", options)
        searches = Searches(bench, library, rules, opening, folder)
        alone = searches.alone()
        alone["requests_at_the_server"] = counts(url)["asked"]
        replay = searches.replayed()
        clusters = []
        for count in bench.workers:
            before = counts(url)["asked"]
            figures = searches.spread(cluster_of(count), f"workers-{count}")
            searching = figures["seconds"] - figures["start_seconds"]
            clusters.append(
                {
                    "workers": count,
                    **figures,
                    "requests_at_the_server": counts(url)["asked"] - before,
                    "ratio": round(alone["seconds"] / figures["seconds"], 2),
                    "ratio_without_start": round(alone["seconds"] / searching, 2),
                }
            )
    return {
        "bench": {**asdict(bench), "paths": [str(path) for path in bench.paths], "rules": len(rules)},
        "alone": alone,
        "replay": {**replay, "most_ratio": round(alone["seconds"] / replay["seconds"], 2)},
        "clusters": clusters,
    }


def told(figures: dict[str, Any]) -> Iterator[str]:
    """The figures in lines."""
    bench, alone, replay = figures["bench"], figures["alone"], figures["replay"]
    yield f"{bench['rules']} rules, beam {bench['beam']}, {bench['latency']} s a call, {bench['in_flight']} at once"
    yield f"one process: {alone['seconds']} s, {alone['statements']} statements, {alone['calls_sent']} calls"
    yield f"with all answers known: {replay['seconds']} s; no cluster is more than {replay['most_ratio']} times as fast"
    for one in figures["clusters"]:
        yield (
            f"{one['workers']} workers: {one['seconds']} s, {one['start_seconds']} s of it starting Ray; "
            f"{one['ratio']} times as fast, {one['ratio_without_start']} without the start; "
            f"{one['requests_at_the_server']} requests, {one['answers_in_vain']} answers in vain, "
            f"{one['different_rows']} rows differ"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1: a search failed, or a cluster's result was another one."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=(__doc__ or "").partition("\n")[0]
    )
    usual = Bench()
    parser.add_argument("paths", nargs="*", type=Path, help="rule files and folders (default: rules/library)")
    parser.add_argument("--rules", type=int, default=usual.rules, help="so many, spread evenly (default: %(default)s)")
    parser.add_argument("--beam", type=int, default=usual.beam, help="(default: %(default)s)")
    parser.add_argument("--latency", type=float, default=usual.latency, help="seconds of a call (default: %(default)s)")
    parser.add_argument("--in-flight", type=int, default=usual.in_flight, help="calls at once (default: %(default)s)")
    parser.add_argument("--workers", type=int, nargs="+", default=usual.workers, help="(default: 1 2 4)")
    parser.add_argument(
        "--world", type=int, default=usual.world, help="seed of the simulated world (default: %(default)s)"
    )
    parser.add_argument("-o", "--output", type=Path, help="write the figures to this file, as JSON")
    chosen = vars(parser.parse_args(arguments))
    output = chosen.pop("output")
    bench = Bench(**{**chosen, "paths": tuple(chosen["paths"]), "workers": tuple(chosen["workers"])})
    try:
        figures = measured(bench)
    except (HapaxError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(told(figures)))
    write_figures(output, {"benchmark": "cluster", "machine": machine(), **figures})
    return 1 if any(one["different_rows"] for one in figures["clusters"]) else 0


if __name__ == "__main__":
    sys.exit(main())
