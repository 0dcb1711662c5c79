"""Wall time of a single process and of Ray clusters of increasing size, on a simulated server with a latency.

    python -m benchmarks.cluster -o cluster.json
    python -m benchmarks.cluster --rules 8 --beam 10 --workers 2

All searches run in turn on the same server, and the result of each cluster is compared row by row with that of a single
process. The main search stays in one process, so the same search with all answers known (`replay`) bounds the speed-up
by any number of workers (Amdahl's law).
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
from hapax.engine.cluster.calling import Owners
from hapax.engine.cluster.owner import Opening
from hapax.engine.cluster.running import Cluster, Spread, search_spread
from hapax.engine.cluster.walking import Ahead, Walkers
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, Rule
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.journal import Journal


@dataclass(frozen=True, slots=True)
class ClusterBenchmark:
    """The searches to compare. `in_flight`: concurrent requests of all workers together, or of the single process."""

    paths: tuple[Path, ...] = ()
    rules: int = 32
    beam: int = 20
    latency: float = 0.2
    in_flight: int = 128
    workers: tuple[int, ...] = (1, 2, 4)
    world: int = 1


@dataclass
class TimedCluster:
    """A cluster that records how long its processes take to start."""

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
class ClusterSearches:
    """Searches of the same rules, each into a file of its own in `folder`."""

    bench: ClusterBenchmark
    library: Library
    rules: Sequence[Rule]
    opening: Opening
    folder: Path

    @property
    def settings(self) -> SearchSettings:
        return SearchSettings(beam=self.bench.beam)

    def alone(self) -> dict[str, Any]:
        """Search in this process, and return the figures."""
        with KnowledgeBase(self.folder / "alone.db") as kb:
            return self._alone(kb)

    def replayed(self) -> dict[str, Any]:
        """Search in this process, into a new file that has all answers of `alone` and nothing else."""
        with KnowledgeBase(self.folder / "alone.db") as known, KnowledgeBase(self.folder / "replay.db") as kb:
            kb.record_calls(known.calls().values())
            return self._alone(kb)

    def _alone(self, kb: KnowledgeBase) -> dict[str, Any]:
        journal = Journal(kb)
        models = self.opening.open(journal, 1)
        begun = time.perf_counter()
        report = search(SearchJob(self.library, self.rules, kb, models, self.settings, journal))
        return _figures(report, time.perf_counter() - begun)

    def spread(self, cluster: Cluster, name: str) -> dict[str, Any]:
        """Search over a cluster. Also reports the start time and the number of rows that differ from `alone`."""
        timed = TimedCluster(cluster)
        with KnowledgeBase(self.folder / f"{name}.db") as kb:
            journal = Journal(kb)
            models = self.opening.open(journal, 1)
            spreading = Spread(timed, self.opening, self.folder / f"{name}.shards")
            begun = time.perf_counter()
            job = SearchJob(self.library, self.rules, kb, models, self.settings, journal)
            report, spread_report = search_spread(job, spreading)
            seconds = time.perf_counter() - begun
        different = sum(differences(self.folder / "alone.db", self.folder / f"{name}.db").values())
        return {
            **_figures(report, seconds),
            "start_seconds": round(timed.start_seconds, 2),
            "walks": spread_report.walks,
            "walks_failed": spread_report.walks_failed,
            "answers_in_vain": spread_report.kept,
            "different_rows": different,
        }


def _figures(report: SearchReport, seconds: float) -> dict[str, Any]:
    return {
        "seconds": round(seconds, 2),
        "statements": len(report.statements),
        "calls_sent": sum(statistics.calls for role, statistics in report.statistics.items() if role != "evaluator"),
    }


def on_ray(count: int) -> Cluster:
    """A Ray cluster on this machine with `count` workers."""
    from hapax.engine.cluster.on_ray import RayCluster

    return RayCluster(worker_count=count)


def measured(bench: ClusterBenchmark, cluster_of: Callable[[int], Cluster] = on_ray) -> dict[str, Any]:
    """The figures of the single process, of the replay, and of each cluster."""
    library, rules = chosen_rules(bench.paths, bench.rules)
    with tempfile.TemporaryDirectory() as name, served(bench.paths, bench.world, bench.latency) as url:
        folder = Path(name)
        alias = {"model_id": MODEL, "model_name": MODEL, "api_base": url, "max_concurrency": bench.in_flight}
        (folder / "aliases.yaml").write_text(json.dumps([alias]), "utf-8")  # JSON is YAML
        options = OpeningOptions(library=library, aliases=folder / "aliases.yaml")
        opening = Opening(f"openai:{MODEL}", None, None, "frequency", options)
        searches = ClusterSearches(bench, library, rules, opening, folder)
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


def lines(figures: dict[str, Any]) -> Iterator[str]:
    """The figures as lines of text."""
    bench, alone, replay = figures["bench"], figures["alone"], figures["replay"]
    yield f"{bench['rules']} rules, beam {bench['beam']}, {bench['latency']} s a call, {bench['in_flight']} at once"
    yield f"one process: {alone['seconds']} s, {alone['statements']} statements, {alone['calls_sent']} calls"
    yield f"with all answers known: {replay['seconds']} s; no cluster is more than {replay['most_ratio']} times as fast"
    for cluster in figures["clusters"]:
        yield (
            f"{cluster['workers']} workers: {cluster['seconds']} s, {cluster['start_seconds']} s of it starting Ray; "
            f"{cluster['ratio']} times as fast, {cluster['ratio_without_start']} without the start; "
            f"{cluster['requests_at_the_server']} requests, {cluster['answers_in_vain']} answers in vain, "
            f"{cluster['different_rows']} rows differ"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if a search fails or the result of a cluster differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster", description=(__doc__ or "").partition("\n")[0]
    )
    usual = ClusterBenchmark()
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
    bench = ClusterBenchmark(**{**chosen, "paths": tuple(chosen["paths"]), "workers": tuple(chosen["workers"])})
    try:
        figures = measured(bench)
    except (HapaxError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(lines(figures)))
    write_figures(output, {"benchmark": "cluster", "machine": machine(), **figures})
    return 1 if any(cluster["different_rows"] for cluster in figures["clusters"]) else 0


if __name__ == "__main__":
    sys.exit(main())
