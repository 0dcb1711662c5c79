"""What this machine has and lacks, each with the command that helps."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from llm_oracle.registry import EMBEDDED_FOLDER

OLDEST_SWIPL = (9, 0)
PACKAGES = ("lark", "networkx", "pyswip", "sqlite-utils", "torch", "transformers", "wordfreq", "rapidfuzz")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `found` is its version or place, empty where it is missing; `remedy` a command."""

    name: str
    found: str
    ok: bool
    remedy: str = ""


def examine() -> list[Finding]:
    """Every finding, in the order in which a newcomer would mend them. Imports no heavy package."""
    return [finding for look in LOOKS for finding in look()]


def _python() -> Iterator[Finding]:
    yield Finding("Python", platform.python_version(), sys.version_info >= (3, 11), "install Python 3.11 or newer")


def _prolog() -> Iterator[Finding]:
    path = shutil.which("swipl")
    if path is None:
        yield Finding("SWI-Prolog", "", False, _install_swipl())
        return
    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, check=False).stdout
    numbers = next((word for word in said.split() if word[:1].isdigit()), "")
    new_enough = tuple(int(part) for part in numbers.split(".")[:2] if part.isdigit()) >= OLDEST_SWIPL
    yield Finding("SWI-Prolog", numbers or "unknown version", new_enough, _install_swipl())


def _install_swipl() -> str:
    return "brew install swi-prolog" if sys.platform == "darwin" else "sudo apt-get install swi-prolog-nox"


def _packages() -> Iterator[Finding]:
    remedy = f"{sys.executable} -m pip install --editable ."
    for name in PACKAGES:
        try:
            yield Finding(name, version(name), True)
        except PackageNotFoundError:
            yield Finding(name, "", False, remedy)


def _embedded_model() -> Iterator[Finding]:
    weights = EMBEDDED_FOLDER / "model.safetensors"
    found = f"{weights.stat().st_size / 1e6:.1f} MB" if weights.exists() else ""
    yield Finding("embedded model", found, bool(found), "make model")


def _sqlite() -> Iterator[Finding]:
    new_enough = sqlite3.sqlite_version_info >= (3, 37)  # STRICT tables
    yield Finding("SQLite", sqlite3.sqlite_version, new_enough, "install a Python built with SQLite 3.37 or newer")


LOOKS: tuple[Callable[[], Iterator[Finding]], ...] = (_python, _prolog, _sqlite, _packages, _embedded_model)
