"""Landlock: a goal's process reaches no file, no network and no other process, where the kernel can do it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hapax.engine.prolog.landlock import interface_version
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import PrologSession

VERSION = interface_version()
ROOT = Path(__file__).resolve().parents[3]
LIMITS = QueryLimits(seconds=10.0, memory_mb=256)
pytestmark = pytest.mark.skipif(VERSION == 0, reason="this kernel has no Landlock")

ATTEMPTS = """
import json, os, socket, sys
from hapax.engine.prolog.landlock import shut_off

path, port, process = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
attempts = {
    "read": lambda: open(path).read(),
    "write": lambda: open(path, "w"),
    "list": lambda: os.listdir(os.path.dirname(path)),
    "remove": lambda: os.remove(path),
    "make": lambda: os.mkdir(path + ".folder"),
    "rename": lambda: os.rename(path, path + ".moved"),
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "connect": lambda: socket.socket().connect(("127.0.0.1", port)),
    "signal": lambda: os.kill(process, 0),
}
if sys.argv[4] == "shut":
    assert shut_off()
refused = []
for name in sys.argv[5].split(","):
    try:
        attempts[name]()
    except PermissionError:
        refused.append(name)
print(json.dumps(refused))
"""


ALL = ["read", "write", "list", "make", "rename", "remove", "connect", "signal", "execute"]


def _refused(file: Path, state: str, attempts: list[str]) -> list[str]:
    """The attempts that are refused, in their order, by a process in this state: `shut` or `open`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        arguments = [str(file), str(server.getsockname()[1]), str(os.getpid()), state, ",".join(attempts)]
        command = [sys.executable, "-c", ATTEMPTS, *arguments]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)
    refused: list[str] = json.loads(ended.stdout)
    return refused


def test_a_process_that_is_shut_off_reaches_nothing(tmp_path: Path) -> None:
    """After `shut_off` files, folders, TCP, programs and processes outside are refused, which are open before it."""
    file = tmp_path / "facts"
    file.write_text("kept", encoding="utf-8")
    expected = [name for name in ALL if (name != "connect" or VERSION >= 4) and (name != "signal" or VERSION >= 6)]

    assert _refused(file, "shut", ALL) == expected
    assert file.read_text(encoding="utf-8") == "kept"
    assert _refused(file, "open", ["read", "list", "make", "connect", "signal", "rename"]) == []


def test_a_goal_past_the_allow_list_removes_no_file(tmp_path: Path) -> None:
    """A goal that got past the allow-list can neither remove a file nor make a folder, which no limit forbids."""
    file = tmp_path / "facts"
    file.write_text("kept", encoding="utf-8")
    with PrologSession() as session:
        session.load("e(alive).\n")
        for goal in (
            f"delete_file('{file}')",
            f"make_directory('{tmp_path / 'made'}')",
            f"rename_file('{file}', moved)",
        ):
            rows = session.solutions(f"catch({goal}, error(Kind, _), true)", ["Kind"], LIMITS, trusted=True).rows
            assert "permission_error" in str(rows), goal

    assert [path.name for path in tmp_path.iterdir()] == ["facts"]
