"""The plot library that ships is the one that its build writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "tools" / "plots"


def shipped() -> str:
    return resources.files("hapax.evaluation.report").joinpath("observable-plot.js").read_text("utf-8")


def test_the_library_names_its_version_and_licences() -> None:
    """The file begins with the version of the lock file and the licence of each package in it."""
    locked = json.loads((FOLDER / "package-lock.json").read_text("utf-8"))["packages"]
    notices = shipped().partition("*/")[0]

    assert f"Observable Plot {locked['node_modules/@observablehq/plot']['version']} " in notices
    assert "Permission to use, copy, modify" in notices
    named = set(re.findall(r"^([@a-z0-9/-]+): Copyright", notices, re.MULTILINE))
    assert {"@observablehq/plot", "d3-scale", "isoformat"} <= named
    assert named <= {path.removeprefix("node_modules/") for path in locked}


def test_the_library_evaluates_no_text() -> None:
    """The bundle needs no `unsafe-eval` and can stand inside a script element."""
    code = shipped().partition("*/")[2]

    assert not re.search(r"\bnew Function\b|\beval\(|</script|<!--", code)


@pytest.mark.harness
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_the_library_is_what_its_build_writes(tmp_path: Path) -> None:
    """`npm ci` and `npm run build` in tools/plots give the shipped file byte for byte."""
    folder = tmp_path / "tools" / "plots"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "evaluation" / "report").mkdir(parents=True)

    for command in (("npm", "ci", "--no-audit", "--no-fund"), ("npm", "run", "build")):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)

    assert (tmp_path / "evaluation" / "report" / "observable-plot.js").read_text("utf-8") == shipped()
