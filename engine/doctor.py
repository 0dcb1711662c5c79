"""Check of the programs and packages that Hapax needs, with commands that install missing ones."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hapax.engine.prolog.isolation import child_environment
from hapax.engine.prolog.landlock import interface_version
from hapax.grammar.arguments import checked
from hapax.grammar.extras import EXTRAS, missing_of
from hapax.grammar.writing.notebook import Tabular
from hapax.llm_oracle.backends.checkpoints import EMBEDDED_FOLDER

OLDEST_SWIPL = (9, 0)
OLDEST_SQLITE = (3, 37)  # the first version with STRICT tables
PACKAGES = ("lark", "networkx", "pydantic", "pyswip", "rapidfuzz", "sqlite-utils")
"""Packages of the light core; the extras are listed apart."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check. `found` is a version or size, empty if the part is missing; `remedy` a command.

    `optional`: Hapax works without the part.
    """

    name: str
    found: str
    ok: bool
    remedy: str = ""
    optional: bool = False


@dataclass(frozen=True)
class Examination(Tabular):
    """Programs and packages that Hapax needs, what was found of each, and how to install what is missing."""

    findings: tuple[Finding, ...]
    columns = ("part", "found", "what to do")

    @property
    def passed(self) -> bool:
        """True if only optional parts are missing, or none."""
        return all(finding.ok or finding.optional for finding in self.findings)

    def cells(self) -> list[tuple[str, ...]]:
        """Name, version, and the remedy for what is missing."""
        rows: list[tuple[str, ...]] = []
        for finding in self.findings:
            installed = finding.found or ("not installed" if finding.optional else "missing")
            rows.append((finding.name, installed, "" if finding.ok else finding.remedy))
        return rows

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as JSON objects."""
        return [asdict(finding) for finding in self.findings]


@checked
def doctor() -> Examination:
    """Check the programs and packages that Hapax needs, in the order in which a newcomer should fix them.

    Imports torch only to measure a processor that was not measured yet, and no other heavy package.
    """
    return Examination(tuple(_findings()))


def _findings() -> Iterator[Finding]:
    yield Finding("Python", platform.python_version(), sys.version_info >= (3, 11), "install Python 3.11 or newer")
    yield _prolog()
    # Limits of resources hold for each goal without it, so its absence is no fault.
    interface = interface_version()
    found = f"version {interface}: goals reach no file" if interface else ""
    remedy = "a Linux kernel from 5.13 on with Landlock also shuts goals off from all files"
    yield Finding("Landlock", found, bool(interface), remedy, optional=True)
    is_new = sqlite3.sqlite_version_info >= OLDEST_SQLITE
    yield Finding("SQLite", sqlite3.sqlite_version, is_new, "install a Python built with SQLite 3.37 or newer")
    for name in PACKAGES:
        try:
            yield Finding(name, version(name), True)
        except PackageNotFoundError:
            yield Finding(name, "", False, f"{sys.executable} -m pip install hapax-kb")
    # Extras are a choice, so a missing one is no fault; its line says how to install it.
    for extra in EXTRAS:
        missing = missing_of(extra)
        yield Finding(f"extra {extra}", "" if missing else "installed", not missing, missing, optional=True)
    weights = EMBEDDED_FOLDER / "model.safetensors"
    size = f"{weights.stat().st_size / 1e6:.1f} MB" if weights.exists() else ""
    yield Finding("embedded model", size, bool(size), "make model")


def _prolog() -> Finding:
    remedy = "brew install swi-prolog" if sys.platform == "darwin" else "sudo apt-get install swi-prolog-nox"
    path = shutil.which("swipl")
    if path is None:
        return Finding("SWI-Prolog", "", False, remedy)
    command, environment = [path, "--version"], child_environment()
    output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=environment).stdout
    # The output is `SWI-Prolog version 9.0.4 for x86_64-linux`.
    number = next((word for word in output.split() if word[:1].isdigit()), "")
    is_new = tuple(int(part) for part in number.split(".")[:2] if part.isdigit()) >= OLDEST_SWIPL
    return Finding("SWI-Prolog", number or "unknown version", is_new, remedy)
