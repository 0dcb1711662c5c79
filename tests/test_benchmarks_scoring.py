"""The benchmark of scoring runs, agrees with itself, and says what it measured."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.scoring import main

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    """The benchmark sets the number of threads for its process."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_ways_of_scoring_agree_and_differ_in_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One command prints each way's throughput beside the plain loop's and writes them with the machine's description."""
    written = tmp_path / "scoring.json"
    main(["--model", "random:32x1", "--texts", "40", "--repeats", "1", "-o", str(written)])
    result = json.loads(written.read_text("utf-8"))
    measured = {(measurement["role"], measurement["way"]): measurement for measurement in result["measured"]}

    assert list(measured) == [(r, w) for r in ("critic", "likelihood") for w in ("plain", "unshared", "hapax")]
    assert all(measurement["difference"] < 1e-4 for measurement in measured.values())
    assert measured["critic", "hapax"]["work"]["tokens"] < measured["critic", "plain"]["work"]["tokens"] / 2
    assert measured["likelihood", "hapax"]["work"]["heads"] < measured["likelihood", "plain"]["work"]["heads"]
    assert result["machine"]["threads"] == 1
    assert result["asked"]["critic"]["texts"] == 40
    assert capsys.readouterr().out.startswith("random:32x1, float32, cpu\n")
