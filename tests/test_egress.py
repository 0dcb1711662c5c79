"""The command line connects to this machine and to hosts that are named, and with `--offline` to this machine alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


TRACED_THREADS = """
import sys, threading
from hapax.llm_oracle import egress

sys.setswitchinterval(1e-6)
sys.settrace(lambda *call: None)
threading.settrace(lambda *call: None)
egress.guard()
ran = []
for _ in range(2000):
    threads = [threading.Thread(target=ran.append, args=(None,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(ran))
"""


def _printed(program: str, *arguments: object) -> Any:
    """The JSON that a program prints in a process that nothing traces: coverage would, by its variables."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    command = [sys.executable, "-c", program, *map(json.dumps, arguments)]
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, timeout=60, check=True, cwd=ROOT, env=environment
    )
    return json.loads(ended.stdout)


def _reached(permitted: Sequence[str], hosts: Sequence[str]) -> set[str]:
    """The hosts that a guarded process may reach, by the resolver or by the address alone."""
    return set(_printed(ATTEMPTS, permitted, hosts))


def test_a_guarded_process_reaches_named_hosts_alone() -> None:
    """Names that are permitted and those below them are looked up, as is this machine; no other name is."""
    hosts = ["models.example", "eu.models.example", "notmodels.example", "telemetry.example", "localhost", "127.0.0.1"]
    reached = _reached(["models.example"], hosts)

    assert reached == {"models.example", "eu.models.example", "localhost", "127.0.0.1"}


def test_addresses_are_guarded_without_names() -> None:
    """Where no name is permitted, an address is reached only if it is permitted itself."""
    assert _reached(["192.0.2.1"], ["192.0.2.1", "192.0.2.2", "::1"]) == {"192.0.2.1", "::1"}
    assert _reached([], ["192.0.2.1"]) == set()


def test_a_traced_process_loses_no_thread() -> None:
    """Threads that start at the same time under a debugger or coverage all run, though the process asked for a guard."""
    assert _printed(TRACED_THREADS) == 12_000


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
