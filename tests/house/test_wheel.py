"""The wheel: one top-level name, everything that commands need, and a core that works without the extras."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

RULES = """
type Feet < Number
given lies_at(Airport, Feet): "[1] lies at [2] feet"
given flies_to(Person, Airport): "[1] flies to [2]"
given needs_oxygen_at(Person, Airport): "[1] needs oxygen at [2]"
@name thin_air
flies_to(Person X, Airport A) & lies_at(Airport A, Feet E) & E > 8000 -> needs_oxygen_at(Person X, Airport A)
"""
FACTS = "predicate,argument1,argument2\nlies_at,Cusco,10860\nlies_at,Heathrow,83\n"

WITHOUT_EXTRAS = """
import sys
for name in {libraries!r}:
    sys.modules[name] = None  # importing it raises ModuleNotFoundError
from hapax import cli
cli.main(sys.argv[1:], prog_name="hapax")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what git tracks."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--wheel-dir", folder)
    source = folder / "source"
    subprocess.run(["git", "-C", ROOT, "checkout-index", "--all", f"--prefix={source}/"], check=True)
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, source], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages into which the wheel was installed, beside one that takes common names."""
    folder = tmp_path_factory.mktemp("packages")
    options = ("--quiet", "--no-deps", "--disable-pip-version-check", "--target", folder)
    subprocess.run([sys.executable, "-m", "pip", "install", *options, wheel], check=True)
    for name in ("cli", "engine", "rules", "grammar", "kb", "commands", "evaluation", "llm_oracle", "api"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('another package was imported')\n", "utf-8")
    return folder


def hapax(packages: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command in a folder outside the checkout."""
    program = "import sys; from hapax.cli import main; main(sys.argv[1:], prog_name='hapax')"
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_commit_gives_the_same_wheel(tmp_path: Path) -> None:
    """Two checkouts of one commit, at other times and with other modes of files, build wheels of the same bytes."""
    built = []
    for number, mask in enumerate((0o022, 0o077)):
        checkout = tmp_path / f"checkout {number}"
        subprocess.run(["git", "clone", "--quiet", ROOT, checkout], check=True, umask=mask)
        environment = {**os.environ, "PYTHON": sys.executable}
        subprocess.run(
            [checkout / "scripts" / "wheel.sh"], env=environment, check=True, capture_output=True, umask=mask
        )
        (wheel,) = (checkout / "build" / "wheel").glob("*.whl")
        built.append(wheel.read_bytes())

    assert built[0] == built[1]


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    """Nothing but `hapax` and its metadata, no training code, and the marker of typed packages."""
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"hapax"}
    assert "hapax/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert not [name for name in names if "training" in name or name.startswith("tests")]


@pytest.mark.embedded
@pytest.mark.timeout(900)  # it searches with the embedded model
def test_the_installed_wheel_works_anywhere(installed: Path, tmp_path: Path) -> None:
    """Outside the checkout, beside packages of common names: check, search, query, why and report work."""
    for arguments in (
        ("check",),
        ("search", "--rule", "currency", "--no-progress"),
        ("query", "aggregate_all(count, uses_currency(_, _), N)", "--json"),
        ("report", "-o", "report.html"),
    ):
        done = hapax(installed, tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    fact = hapax(installed, tmp_path, "export", "--format", "jsonl").stdout.splitlines()[0]
    atom = json.loads(fact)
    goal = f"{atom['predicate']}({', '.join(json.dumps(value) for value in atom['arguments'])})"
    assert "[fact]" in hapax(installed, tmp_path, "why", goal).stdout
    assert (tmp_path / "report.html").stat().st_size > 10_000


def write_inputs(folder: Path) -> None:
    (folder / "thin.rules").write_text(RULES, "utf-8")
    (folder / "facts.csv").write_text(FACTS, "utf-8")


@cache
def libraries_of_extras() -> list[str]:
    """Names of the installed libraries that only extras ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = chain.from_iterable(project["optional-dependencies"].values())
    core, of_extras = ({distribution(text) for text in texts} for texts in (project["dependencies"], extras))
    provided = packages_distributions().items()
    return [library for library, owners in provided if {*map(distribution, owners)} <= of_extras - core]


def distribution(requirement: str) -> str:
    """The normal name of the distribution that a requirement names."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def without_extras(folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS.format(libraries=libraries_of_extras()), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_core_works_without_extras(tmp_path: Path) -> None:
    """Without torch and the others: check, compile, plan, import, derive, query, why, search, export."""
    write_inputs(tmp_path)
    simulated = ("-m", "simulated", "--no-progress")
    for arguments in (
        ("check", "thin.rules"),
        ("rules", "compile", "thin.rules"),
        ("import", "facts.csv"),
        ("derive", "thin.rules"),
        ("query", "lies_at(A, E), E > 8000", "--rules", "thin.rules"),
        ("why", 'lies_at("Cusco", 10860)', "--rules", "thin.rules"),
        ("plan", "thin.rules", "-m", "simulated"),
        ("search", "thin.rules", *simulated),
        ("export",),
        ("data", "stats"),
        ("model", "list"),
    ):
        done = without_extras(tmp_path, arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rules and a knowledge base that holds facts and a search, both made without extras."""
    folder = tmp_path_factory.mktemp("searched")
    write_inputs(folder)
    for arguments in (("import", "facts.csv"), ("search", "thin.rules", "-m", "simulated", "--no-progress")):
        done = without_extras(folder, arguments)
        assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("search", "--rule", "currency", "--no-progress"), "local"),
        (("search", "thin.rules", "-m", "hf:any/model", "--no-progress"), "local"),
        (("search", "thin.rules", "-m", "smollm2", "--no-progress"), "smollm2"),
        (("search", "thin.rules", "-m", "simulated", "--evaluator", "gguf:any.gguf", "--no-progress"), "gguf"),
        (("derive", "thin.rules", "-o", "out.parquet"), "evaluation"),
        (("rules", "compile", "thin.rules", "--to", "duckdb"), "sql"),
        (("data", "dataset", "out"), "evaluation"),
        (("report", "-o", "report.html"), "evaluation"),
        (("search", "thin.rules", "-m", "simulated", "--executor", "ray"), "ray"),
        (("search", "thin.rules", "-m", "simulated", "--likelihood", "vectors:x.bin"), "vectors"),
    ],
    ids=" ".join,
)
def test_a_command_that_needs_an_extra_names_it(
    searched: Path, tmp_path: Path, arguments: Sequence[str], extra: str
) -> None:
    """A command whose extra is missing ends with exit code 1 and one line that says which extra to install."""
    folder = shutil.copytree(searched, tmp_path / "copy")

    done = without_extras(folder, arguments)

    assert done.returncode == 1, done.stderr
    assert f"hapax-kb[{extra}]" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
