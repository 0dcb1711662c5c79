"""A guarded process connects to this machine and to hosts that are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

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


def reached(permitted: Sequence[str], hosts: Sequence[str]) -> set[str]:
    """The hosts that a guarded process may reach, by the resolver or by the address alone."""
    command = [sys.executable, "-c", ATTEMPTS, json.dumps(permitted), json.dumps(hosts)]
    root = Path(__file__).parents[3]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=60, check=True, cwd=root)
    return set(json.loads(ended.stdout))


def test_a_guarded_process_reaches_named_hosts_alone() -> None:
    """Names that are permitted and those below them are looked up, as is this machine; no other name is."""
    hosts = ["models.example", "eu.models.example", "notmodels.example", "telemetry.example", "localhost", "127.0.0.1"]

    assert reached(["models.example"], hosts) == {"models.example", "eu.models.example", "localhost", "127.0.0.1"}


def test_addresses_are_guarded_without_names() -> None:
    """Where no name is permitted, an address is reached only if it is permitted itself."""
    assert reached(["192.0.2.1"], ["192.0.2.1", "192.0.2.2", "::1"]) == {"192.0.2.1", "::1"}
    assert reached([], ["192.0.2.1"]) == set()
