"""The command line connects to this machine and to hosts that are named, and with `--offline` to this machine alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_fixture import invoke

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.registry import open_model

ROOT = Path(__file__).resolve().parent.parent

ATTEMPTS = """
import json, socket, sys
from hapax.llm_oracle import egress

class Reached(Exception):
    pass

def stop(event, arguments):  # runs behind the guard, before anything is sent
    if event in ("socket.getaddrinfo", "socket.connect"):
        raise Reached

permitted, hosts = map(json.loads, sys.argv[1:])
egress.permit(*permitted)
egress.guard()
sys.addaudithook(stop)
reached = []
for host in hosts:
    own = socket.socket().connect if host[0].isdigit() else socket.create_connection
    for connect in (socket.create_connection, own):
        try:
            connect((host, 443))
        except Reached:
            reached.append(host)
        except PermissionError:
            pass
print(json.dumps(reached))
"""


def _reached(permitted: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """The hosts that a guarded process may reach: once by the resolver, once by the address alone."""
    command = [sys.executable, "-c", ATTEMPTS, json.dumps(permitted), json.dumps(hosts)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    reached: list[str] = json.loads(ended.stdout)
    return reached


def test_a_guarded_process_reaches_named_hosts_alone() -> None:
    """Names that are permitted and those below them are looked up, as is this machine; no other name is."""
    hosts = ["models.example", "eu.models.example", "notmodels.example", "telemetry.example", "localhost", "127.0.0.1"]
    reached = _reached(["models.example"], hosts)

    assert set(reached) == {"models.example", "eu.models.example", "localhost", "127.0.0.1"}


def test_addresses_are_guarded_without_names() -> None:
    """Where no name is permitted, an address is reached only if it is permitted itself."""
    assert set(_reached(["192.0.2.1"], ["192.0.2.1", "192.0.2.2", "::1"])) == {"192.0.2.1", "::1"}
    assert _reached([], ["192.0.2.1"]) == []


def test_offline_refuses_servers_elsewhere() -> None:
    """With `--offline` a model on another machine is refused before anything is sent; one on this machine is not."""
    found = invoke("search", "-m", "openai:m@http://models.example/v1", "--offline")
    assert found.exit_code == 1
    assert "models.example is not on this machine, and --offline keeps all requests on it" in found.output

    options = OpeningOptions(offline=True)
    with pytest.raises(HapaxError, match="ConnectError"):
        open_model("openai:m@http://127.0.0.1:9/v1", "critic", options)


@pytest.mark.embedded
def test_offline_loads_checkpoints_of_this_machine_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With `--offline` a checkpoint's folder is loaded, and a name that is not cached is refused without a request."""
    pytest.importorskip("transformers")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    options = OpeningOptions(offline=True)
    folder = ROOT / "llm_oracle" / "embedded" / "model"

    assert open_model(f"hf:{folder}", "critic", options).identity.name.startswith("hf/")
    with pytest.raises(HapaxError, match="cannot be loaded"):
        open_model("hf:nobody/nothing", "critic", options)
