"""The benchmark of the search: what it measures, and to whom it charges time."""

from __future__ import annotations

import json
import pstats
from pathlib import Path

import pytest
from test_engine_search import ALLERGY, OLDER, VOCABULARY

from benchmarks.search import ROOMS, LookupModel, main, shares
from hapax.grammar.parser import parse_library
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.simulated import SimulatedModel
from hapax.llm_oracle.simulated_world import SimulatedWorld

pytestmark = pytest.mark.slow


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file of two small rules."""
    path = tmp_path / "test.rules"
    path.write_text("\n".join((VOCABULARY, ALLERGY, OLDER)), "utf-8")
    return path


def test_each_part_gives_its_figures(rules: Path, tmp_path: Path) -> None:
    """Overhead beside storing, wall time beside the two bounds, memory of few and of all rules."""
    output = tmp_path / "figures.json"

    sizes = ["--rules", "2", "--beam", "4", "--repeats", "1", "--latency", "0.01", "--in-flight", "4"]
    code = main([str(rules), *sizes, "-o", str(output)])
    figures = json.loads(output.read_text("utf-8"))
    overhead, latency, memory = figures["overhead"], figures["latency"], figures["memory"]

    assert code == 0
    assert overhead["statements"] > 0
    assert overhead["ratio_to_storing"] > 0
    assert set(overhead["shares"]) <= {room for room, _ in ROOMS}
    assert sum(overhead["shares"].values()) == pytest.approx(1, abs=0.01)
    assert latency["calls"] > 0
    assert 1 < latency["longest_chain"] <= latency["calls"]
    assert max(latency["slots_bound_seconds"], latency["chain_bound_seconds"]) <= latency["seconds"]
    assert 0 < latency["in_flight_on_average"] <= 4
    assert [searched["rules"] for searched in memory["searches"]] == [1, 2]
    assert figures["plan"]["latency"]["beam"] == 4


def test_time_of_the_library_counts_for_its_caller() -> None:
    """Time in JSON and hashing is charged to the rooms that called them, each for its own calls."""
    root = Path(__file__).parent.parent
    naming, writing = (str(root / "kb" / "records.py"), 1, "content_id"), (str(root / "kb" / "store.py"), 1, "write")
    encoding = ("/usr/lib/python3/json/encoder.py", 1, "encode")
    callers = {naming: (2, 2, 2.0, 2.0), writing: (1, 1, 1.0, 1.0)}
    profiled = {
        naming: (2, 2, 1.0, 3.0, {}),
        writing: (1, 1, 0.0, 1.0, {}),
        encoding: (3, 3, 3.0, 3.0, callers),
    }
    stats = pstats.Stats()
    stats.stats = profiled  # type: ignore[attr-defined]

    assert shares(stats) == {"identities": 0.75, "knowledge base": 0.25}


def test_what_a_model_said_is_looked_up() -> None:
    """A second search is answered without the simulated model, and as the first one was."""
    library = parse_library([("test.rules", "\n".join((VOCABULARY, ALLERGY)))])
    simulated = SimulatedModel(SimulatedWorld(library, 1))
    model = LookupModel(simulated)
    request, parameters = GenerationRequest("Give me 2 values."), GenerationParameters()

    first = (model.generate([request], parameters), model.probabilities(["a"]), model.log_likelihoods(["a"]))
    again = (model.generate([request], parameters), model.probabilities(["a"]), model.log_likelihoods(["a"]))

    assert first == again
    assert first[1] == simulated.probabilities(["a"])
    assert all(first_answer is second_answer for first_answer, second_answer in zip(first[0], again[0], strict=True))
