"""`hapax doctor` names what is there, what is missing or too old, and the command that brings it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hapax.engine import doctor
from hapax.engine.doctor import Finding


@pytest.mark.parametrize(
    ("output", "found", "ok"),
    [
        ("SWI-Prolog version 9.0.4 for x86_64-linux\n", "9.0.4", True),
        ("SWI-Prolog version 9.3.12-5-g1 for x86_64-linux\n", "9.3.12-5-g1", True),
        ("SWI-Prolog version 8.4.2 for x86_64-linux\n", "8.4.2", False),
        ("SWI-Prolog version 10.0 for arm64\n", "10.0", True),
        ("something else\n", "unknown version", False),
        ("", "unknown version", False),
    ],
)
def test_an_old_prolog_is_told_with_its_version(
    output: str, found: str, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions from 9.0 on are fine; the program is asked with an environment without the user's keys."""
    asked: list[Any] = []

    def run(command: list[str], **options: Any) -> Any:
        asked.append((command, "SECRET_KEY" in options["env"]))
        return SimpleNamespace(stdout=output)

    monkeypatch.setenv("SECRET_KEY", "1")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(sys, "platform", "linux")

    assert list(doctor._prolog()) == [Finding("SWI-Prolog", found, ok, "sudo apt-get install swi-prolog-nox")]
    assert asked == [(["/bin/swipl", "--version"], False)]


def test_missing_parts_have_their_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Prolog and packages are faults; Landlock and extras are left out at will."""
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", "darwin")

    def version(name: str) -> str:
        if name != "lark":
            raise PackageNotFoundError(name)
        return "1.2"

    monkeypatch.setattr(doctor, "version", version)
    monkeypatch.setattr(doctor, "interface_version", lambda: 0)
    monkeypatch.setattr(doctor, "missing_of", lambda extra: "" if extra == "local" else f"pip install {extra}")
    monkeypatch.setattr(doctor, "EXTRAS", {"local": (), "servers": ()})
    monkeypatch.setattr(doctor, "EMBEDDED_FOLDER", tmp_path)

    assert list(doctor._prolog()) == [Finding("SWI-Prolog", "", False, "brew install swi-prolog")]
    first, *others = doctor._packages()
    assert first == Finding("lark", "1.2", True)
    assert others == [
        Finding(name, "", False, f"{sys.executable} -m pip install hapax-kb") for name in doctor.PACKAGES[1:]
    ]
    assert [(item.found, item.ok, item.optional) for item in doctor._landlock()] == [("", False, True)]
    assert list(doctor._extras()) == [
        Finding("extra local", "installed", True, "", optional=True),
        Finding("extra servers", "", False, "pip install servers", optional=True),
    ]
    assert list(doctor._embedded_model()) == [Finding("embedded model", "", False, "make model")]
    (tmp_path / "model.safetensors").write_bytes(b"x" * 1_250_000)
    assert list(doctor._embedded_model()) == [Finding("embedded model", "1.2 MB", True, "make model")]
    monkeypatch.setattr(doctor, "interface_version", lambda: 3)
    assert [(item.found, item.ok) for item in doctor._landlock()] == [("version 3: goals reach no file", True)]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.5, "float32 (bfloat16 is 0.5 times as fast as float32)"),
        (3.0, "bfloat16 (bfloat16 is 3.0 times as fast as float32)"),
    ],
)
def test_number_format_of_models_is_told_where_they_can_run(
    ratio: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the libraries of models nothing is measured and nothing is said."""
    speed = SimpleNamespace(prefers_bfloat16=ratio > 1, ratio=ratio)
    monkeypatch.setattr(doctor, "processor_speed", lambda: speed)
    monkeypatch.setattr(doctor, "missing_of", lambda extra: "")
    assert list(doctor._number_format()) == [Finding("number format", words, True, optional=True)]

    monkeypatch.setattr(doctor, "missing_of", lambda extra: "pip install it")
    assert list(doctor._number_format()) == []


def test_sqlite_and_python_below_the_oldest_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version that is too old by one is refused, and the oldest one is fine."""
    for info, ok in (((3, 36, 9), False), ((3, 37, 0), True)):
        monkeypatch.setattr(doctor.sqlite3, "sqlite_version_info", info)
        assert [item.ok for item in doctor._sqlite()] == [ok]
    for number, ok in (((3, 10, 9), False), ((3, 11, 0), True)):
        monkeypatch.setattr(sys, "version_info", number)
        assert [item.ok for item in doctor._python()] == [ok]
