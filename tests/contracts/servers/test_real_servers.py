"""Whole searches over HTTP against real servers that host the embedded model on loopback. Opt-in."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx2
import pytest
from cli_fixture import EVERY_END, invoke
from click.testing import Result
from served import found

import hapax

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]
START_SECONDS = 300
EMBEDDED = Path(__file__).parents[3] / "llm_oracle" / "embedded" / "model"
RULE = ("--rule", "currency", "--beam", "4", "--calls", "1", "--temperature", "0")
"""At temperature 0 the lists are the network's own, so that two programs can be compared."""
CLAIMS = ["Paris is the capital of France.", "Paris is the capital of Norway.", "Norway uses the euro."]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until_up(server: subprocess.Popen[bytes], url: str) -> None:
    for _ in range(START_SECONDS * 2):
        if server.poll() is not None:
            pytest.fail(f"the server ended with {server.returncode}")
        try:
            httpx2.get(url, timeout=5)
        except httpx2.HTTPError:
            time.sleep(0.5)
        else:
            return
    pytest.fail("the server does not come up")


def search(database: Path, *options: str | Path) -> Result:
    # A server's model is probed, and the small one that ships knows too few answers for the order it is asked in here.
    order = ("--plan", "cheapest")
    arguments = ["search", *RULE, "--db", database, "--no-progress", *order, *EVERY_END, *options]
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture(scope="module")
def transformers_serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """`transformers serve` with the embedded model; an aliases file that names it `served`.

    Its decisions are asked as Hapax asks in this process: the prompt as it stands, the logits of ` yes` and ` no`.
    """
    if find_spec("fastapi") is None:
        pytest.skip("`transformers serve` lacks its packages: `make test-opt-in` installs them")
    folder = tmp_path_factory.mktemp("serve")
    decisions = {"labels": {"noul": [" yes", " no"]}, "chat_template": "{{ bos_token }}{{ state }}"}
    (folder / "decision.json").write_text(json.dumps(decisions), encoding="utf-8")
    port = free_port()
    command = [Path(sys.executable).with_name("transformers"), "serve", str(EMBEDDED), "--port", str(port)]
    options = ["--device", "cpu", "--dtype", "float32", "--decision-config", str(folder / "decision.json")]
    alias = {
        "model_id": "served",
        "model_name": str(EMBEDDED),
        "api_base": f"http://localhost:{port}/v1",
        "completion": True,
        "attempts": 2,
    }
    (folder / "models.yaml").write_text(json.dumps([alias]), encoding="utf-8")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, *options], stdout=log, stderr=log)
        try:
            wait_until_up(server, f"http://localhost:{port}/health")
            yield folder / "models.yaml"
        finally:
            server.terminate()
            server.wait(30)


def test_transformers_serve_decides_as_the_model_in_this_process(transformers_serve: Path) -> None:
    """It ignores log-probabilities; its decision endpoint gives the same P(yes)."""
    served = hapax.open_models("openai:served", likelihood="frequency", aliases=transformers_serve).critic
    own = hapax.open_models("embedded").critic

    assert served.identity.revision.endswith("systemone")
    expected = [score.probability for score in own.probabilities(CLAIMS)]
    assert [score.probability for score in served.probabilities(CLAIMS)] == pytest.approx(expected, abs=1e-4)


def test_a_search_by_transformers_serve_finds_the_same(transformers_serve: Path, tmp_path: Path) -> None:
    """Knowledge and critic over HTTP give the facts and statements that the same checkpoint gives in this process."""
    frequency = ("--likelihood", "frequency")
    search(tmp_path / "own.db", "-m", f"hf:{EMBEDDED}", *frequency)
    search(tmp_path / "http.db", "-m", "openai:served", "--aliases", transformers_serve, *frequency)

    assert found(tmp_path, "http.db") == found(tmp_path, "own.db")
    assert len(found(tmp_path, "http.db")[1]) > 1


@pytest.fixture(scope="module")
def llama_cpp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A llama.cpp server by llama-cpp-python with the embedded model; an aliases file that names it `served`."""
    if find_spec("llama_cpp") is None or find_spec("gguf") is None:
        pytest.skip("llama-cpp-python is not built: `make test-opt-in` does where there is a C++ compiler")
    from embedded_gguf import write_gguf

    folder = tmp_path_factory.mktemp("llama")
    write_gguf(EMBEDDED, folder / "embedded.gguf")
    port = free_port()
    command = [sys.executable, "-m", "llama_cpp.server", "--model", str(folder / "embedded.gguf")]
    options = ["--model_alias", "embedded", "--logits_all", "true", "--n_ctx", "2048", "--port", str(port)]
    base = f"http://localhost:{port}"
    alias = {"model_id": "served", "model_name": "embedded", "api_base": f"{base}/v1", "completion": True}
    (folder / "models.yaml").write_text(json.dumps([alias]), encoding="utf-8")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, *options, "--verbose", "false"], stdout=log, stderr=log)
        try:
            wait_until_up(server, f"{base}/v1/models")
            yield folder / "models.yaml"
        finally:
            server.terminate()
            server.wait(30)


def test_llama_cpp_scores_as_the_model_in_this_process(llama_cpp: Path) -> None:
    """P(yes) and ln P are the model's own; of a text's first token the server tells no ln P."""
    served, own = hapax.open_models("openai:served", aliases=llama_cpp), hapax.open_models("embedded")
    critic, likelihood, own_critic, own_likelihood = served.critic, served.likelihood, own.critic, own.likelihood

    assert critic.identity.revision.endswith("logprobs")
    assert likelihood.identity.revision.endswith("echo")
    expected = [score.probability for score in own_critic.probabilities(CLAIMS)]
    assert [score.probability for score in critic.probabilities(CLAIMS)] == pytest.approx(expected, abs=2e-3)
    texts = CLAIMS[:2]
    (first,) = own_likelihood.log_likelihoods(["Par"])  # the first token of both
    for score, own in zip(likelihood.log_likelihoods(texts), own_likelihood.log_likelihoods(texts), strict=True):
        assert score.token_count == own.token_count - first.token_count
        assert score.total == pytest.approx(own.total - first.total, rel=1e-3)


def test_llama_cpp_plays_all_roles_of_a_search(llama_cpp: Path, tmp_path: Path) -> None:
    """Ranker and evaluator over HTTP, too: statements of both ends, and the second time nothing is asked."""
    options = ("-m", "openai:served", "--evaluator", "openai:served", "--aliases", llama_cpp, "--json")
    first = json.loads(search(tmp_path / "kb.db", *options).stdout)
    again = json.loads(search(tmp_path / "kb.db", *options).stdout)

    assert min(first["statements"]["head"], first["statements"]["long_tail"]) > 0
    assert {role for role, statistics in first["calls"].items() if statistics["calls"]} == {
        "knowledge",
        "critic",
        "likelihood",
        "evaluator",
        "probe",
    }
    assert not any(role["calls"] for role in again["calls"].values())
