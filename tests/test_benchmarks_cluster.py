"""The benchmark of clusters: what it measures, and that it compares."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_fixture import Threads
from test_engine_search import ALLERGY, OLDER, VOCABULARY

from benchmarks.cluster import ClusterBenchmark, lines, measured

pytestmark = pytest.mark.slow


def test_clusters_are_measured_beside_one_process(tmp_path: Path) -> None:
    """Every cluster finds the same rows as the one process by as many requests, which the lines tell."""
    path = tmp_path / "test.rules"
    path.write_text("\n".join((VOCABULARY, ALLERGY, OLDER)), "utf-8")

    figures = measured(ClusterBenchmark((path,), rules=2, beam=3, latency=0.0, in_flight=8, workers=(1, 2)), Threads)

    assert [one["workers"] for one in figures["clusters"]] == [1, 2]
    assert figures["replay"]["calls_sent"] == 0
    for one in figures["clusters"]:
        assert one["different_rows"] == one["walks_failed"] == one["answers_in_vain"] == 0
        assert one["statements"] == figures["alone"]["statements"] > 0
        assert one["requests_at_the_server"] == figures["alone"]["requests_at_the_server"]
        assert one["calls_sent"] == figures["alone"]["calls_sent"]
    assert "2 workers: " in "\n".join(lines(figures))
