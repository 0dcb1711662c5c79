"""Licences and versions of what the extras install: all are permissive or named, none is GPL, and ranges fit the lock."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOR_TESTS = {"browser", "databases", "harness", "servers"}
"""Extras that only the tests of this repository use."""

PERMISSIVE = re.compile(
    r"0BSD|Apache|BSD|BSL-1\.0|CC0|CNRI-Python|HPND|ISC|MIT\b|MIT-CMU|PSF|Python Software Foundation|Public Domain|"
    r"Unlicense|Zlib",
    re.IGNORECASE,
)
COPYLEFT = re.compile(r"(?<!L)(?<!Lesser )\b(?:A?GPL|Affero|GNU General Public)", re.IGNORECASE)

FIXED = {
    "duckdb": "1.4.2",
    "filelock": "3.20.3",
    "jinja2": "3.1.6",
    "pyarrow": "23.0.1",
    "python-multipart": "0.0.31",
    "ray": "2.55",
    "starlette": "1.3.1",
    "torch": "2.10",
    "transformers": "5.10",
}
"""Versions that fixed the last known advisory of a requirement."""


def requirements() -> dict[str, list[Requirement]]:
    """The requirements of pyproject.toml, by extra; those of the core under ""."""
    groups: dict[str, list[str]] = {
        "": PROJECT["project"]["dependencies"],
        **PROJECT["project"]["optional-dependencies"],
    }
    return {extra: [Requirement(line) for line in lines] for extra, lines in groups.items()}


def installed(requirement: Requirement, seen: dict[str, Distribution], extra: str = "") -> None:
    """Add the requirement and what it needs in turn, as far as that is installed here."""
    name = canonicalize_name(requirement.name)
    if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
        return
    if name not in seen:
        try:
            seen[name] = distribution(name)
        except PackageNotFoundError:
            return
    elif not requirement.extras:
        return
    for line in seen[name].requires or ():
        for wanted in ("", *requirement.extras):
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": wanted}):
                needed.marker = None
                installed(needed, seen)


def licences(package: Distribution) -> list[str]:
    """The licences that a package declares: its expression, or else its classifiers, or else its text."""
    if expression := package.metadata.get("License-Expression"):
        return re.split(r"\s+AND\s+", expression)
    found = [
        line.rpartition(" :: ")[2] for line in package.metadata.get_all("Classifier") or () if "License ::" in line
    ]
    text = (package.metadata.get("License") or "").strip()
    return found or re.split(r"\s+AND\s+", text.partition("\n")[0])


def brought_in() -> Iterator[tuple[str, Distribution]]:
    """The packages that the core and the extras install, each once."""
    seen: dict[str, Distribution] = {}
    for extra, needed in requirements().items():
        for requirement in needed if extra not in FOR_TESTS else ():
            installed(requirement, seen)
    yield from seen.items()


def card() -> Mapping[str, str]:
    """The packages that SECURITY.md names with their licences."""
    _, _, section = (ROOT / "SECURITY.md").read_text("utf-8").partition("- **Licences.**")
    return dict(re.findall(r"^ +\| `([\w.-]+)` \| ([^|]+) \|", section, re.MULTILINE))


def pins() -> dict[str, Version]:
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    return {canonicalize_name(name): Version(version) for name, version in found}


def test_every_licence_is_permissive_or_named() -> None:
    """A package whose licence is not permissive, or not declared, stands in the table of licences."""
    named = card()

    unnamed = {
        name: licences(package)
        for name, package in brought_in()
        if not all(PERMISSIVE.search(licence) for licence in licences(package)) and name not in named
    }

    assert unnamed == {}


def test_no_extra_brings_in_gpl() -> None:
    """Nothing that the program uses is under GPL or AGPL: Hapax is under Apache-2.0."""
    packages = dict(brought_in())

    assert len(packages) > 60
    assert {name for name, package in packages.items() if any(map(COPYLEFT.search, licences(package)))} == set()
    assert {"krippendorff", "gensim"} & {*packages, *pins()} == set()


def test_the_lock_fits_the_ranges() -> None:
    """Each pinned version satisfies the range of pyproject.toml, so set-up and `pip install` can agree."""
    pinned = pins()

    outside = [
        str(requirement)
        for needed in requirements().values()
        for requirement in needed
        if not requirement.specifier.contains(pinned[canonicalize_name(requirement.name)], prereleases=True)
    ]

    assert outside == []


def test_no_range_begins_below_a_fixed_advisory() -> None:
    """pip may install no version with a fixed security fault: every range begins where the last one was fixed."""
    below = []
    for needed in requirements().values():
        for requirement in needed:
            fixed = FIXED.get(canonicalize_name(requirement.name))
            floors = [Version(part.version) for part in requirement.specifier if part.operator in (">=", "==")]
            if not floors or (fixed and max(floors) < Version(fixed)):
                below.append(str(requirement))

    assert below == []
