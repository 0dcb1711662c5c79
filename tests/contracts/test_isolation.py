"""Nothing in the working folder is imported or loaded by any command, whatever its files are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import winograd_fixture

import hapax

PROGRAM = Path(hapax.__file__).resolve().parents[1] / "cli.py"
"""`cli.py` of the checkout."""

TRAPS = (
    *("json.py", "select.py", "random.py", "re.py", "numpy.py", "click.py", "pyswip.py", "yaml.py", "sqlite_utils.py"),
    *("sitecustomize.py", "usercustomize.py", "engine/__init__.py", "engine/worker.py", "hapax/__init__.py"),
    *("grammar/__init__.py", "kb/__init__.py", "torch/__init__.py", "matplotlib/__init__.py", "wordfreq.py", "ray.py"),
)
"""Files that leave a mark when Python imports them."""

PROLOG_TRAPS = ("init.pl", ".swiplrc", "swi-prolog/init.pl", "sandbox.pl", "host.pl", "lists.pl", "library/lists.pl")
"""Files that leave a mark when Prolog loads them."""

RULES = """
oracle is_a_cog_of(Part, Machine): "[1] is a cog of [2]" / "[1] is not a cog of [2]" / "is [1] a cog of [2]?".
given runs_alone(Person, Machine): "[1] runs [2]" / "[1] does not run [2]" / "does [1] run [2]?".
fact runs_alone("Ann", "mill").
@name repair
makes(Person X, Part A) & is_a_cog_of(Part A, Machine B) -> can_mend(Person X, Machine B).
@name owned
@generic none
runs_alone(Person P, Machine M) -> possesses(Person P, Machine M).
"""
MODELS = {"generate": {}, "defaults": {"generate": "1. windmill\n2. crane", "critic": 0.9, "likelihood": -9.0}}
GRID = """
files: [world.rules]
rules: [repair]
variants: [full]
models: [{name: LINK, knowledge: "simulated:1"}]
temperatures: [0.7]
search: {beam: 2, calls: 1, values: 3}
baseline: {count: 2, values: 2, calls: 1}
"""
ENTAILMENT = "is_a_cog_of(Part A, Machine B)\tbelongs_to(Part A, Machine B)\t0.9\n"

SMALL = ("world.rules", "--rule", "repair", "-m", "simulated:12", "--evaluator", "frequency", "--values", "3")
SCRIPTED = ("-m", "scripted:models.json")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("search", *SMALL),
    ("check", "world.rules", "--db", "hapax.db"),
    ("import", "facts.csv"),
    ("verify",),
    ("backup", "copy.db"),
    ("derive", "world.rules", "--rule", "owned"),
    ("query", "possesses(P, M)"),
    ("why", "possesses('Ann', mill)"),
    ("why-not", "possesses('Ann', crane)"),
    ("report", "-o", "report.html"),
    ("dataset", "dataset", "--in-both", "keep", "--format", "jsonl", "--format", "lint", "--format", "lm-eval"),
    ("votes", "export", "statements", "--voter", "ann", "--out", "sheets"),
    ("calibrate", "--rules", "world.rules", "--critic", "simulated:12", "--labels", "labels.tsv"),
    ("mcp",),
    ("lsp",),
    ("evaluate", "long-tail", "--rules", "world.rules", "--judge", "frequency", "--judge", "simulated"),
    ("evaluate", "probe", "-m", "simulated:12", "--sample", "2"),
    ("models",),
    ("doctor",),
    ("rules", "lint", "world.rules", "-m", "simulated:12"),
    ("rules", "mine", "--rules", "world.rules"),
    ("evaluate", "grid", "grid.yaml", "--db", "grid.db"),
    ("evaluate", "entailment", "facts", "entailments.tsv", "--rules", "world.rules"),
    ("evaluate", "winograd", "ask", "schemas.csv", *SCRIPTED, "--limit", "1"),
)
"""Commands that start Prolog and other processes, load libraries, draw, speak protocols and read files."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with the inputs of the commands, and traps that leave their names in the folder `marks`."""
    folder = tmp_path_factory.mktemp("trapped")
    (folder / "marks").mkdir()
    for name in TRAPS:
        (folder / name).parent.mkdir(exist_ok=True)
        mark = folder / "marks" / name.replace("/", "-")
        (folder / name).write_text(
            f"import sys; open({str(mark)!r}, 'w').write(' '.join(sys.argv))\n", encoding="utf-8"
        )
    for name in PROLOG_TRAPS:
        (folder / name).parent.mkdir(exist_ok=True)
        mark = folder / "marks" / name.replace("/", "-")
        (folder / name).write_text(f":- open('{mark}', write, S), close(S).\n", encoding="utf-8")
    inputs = {
        "world.rules": RULES,
        "models.json": json.dumps(MODELS),
        "grid.yaml": GRID,
        "labels.tsv": "true\tis_a_cog_of\tmill\tcrane\n",
        "facts.csv": "predicate,argument1,type1,argument2,type2\nruns_alone,Bob,Person,mill,Machine\n",
        "entailments.tsv": ENTAILMENT,
    }
    for name, text in inputs.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    winograd_fixture.write(folder / "schemas.csv", winograd_fixture.PLAIN)
    return folder


def marks(folder: Path) -> dict[str, str]:
    """The traps that something ran into, with the command line that did where Python knows it."""
    return {path.name: path.read_text("utf-8") for path in (folder / "marks").iterdir()}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_commands_run_nothing_from_the_working_folder(folder: Path) -> None:
    """Files named like modules of Python, of packages, of Hapax or of Prolog are neither imported nor loaded."""
    failed: dict[tuple[str, ...], str] = {}
    for words in COMMANDS:
        command = [sys.executable, str(PROGRAM), *words]
        ended = subprocess.run(
            command, cwd=folder, env=unmeasured(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert marks(folder) == {}, words
        if ended.returncode:
            failed[words] = ended.stderr

    assert failed == {}


@pytest.mark.cluster
def test_workers_of_a_ray_cluster_run_nothing_from_the_working_folder(folder: Path) -> None:
    """Ray puts the working folder first on its workers' path; a search on Ray keeps it off, and still finds files there."""
    pytest.importorskip("ray")
    cluster = ("--executor", "ray", "--workers", "2", "--db", "spread.db", "--no-progress")
    for models in (
        ("-m", "simulated:12"),
        SCRIPTED,
    ):  # simulated models take likelihoods from wordfreq, scripted ones read a file
        command = [sys.executable, str(PROGRAM), "search", "world.rules", "--rule", "repair", *models, *cluster]
        ended = subprocess.run(command, cwd=folder, env=unmeasured(), capture_output=True, text=True, check=False)

        assert marks(folder) == {}
        assert ended.returncode == 0, ended.stderr
        assert "2 workers" in ended.stderr


def unmeasured() -> dict[str, str]:
    """The environment without the variables by which coverage measures child processes.

    Coverage imports `json` before the child's own program starts, which would hide a trap of that name.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


@pytest.mark.parametrize("trap", ["json.py", "hapax/__init__.py"])
def test_the_traps_work(folder: Path, trap: str, tmp_path: Path) -> None:
    """Python started with `-c` does put the working folder first, by its own rule; there a trap leaves its mark."""
    module = trap.removesuffix(".py").removesuffix("/__init__")
    mark = folder / "marks" / trap.replace("/", "-")
    command = [sys.executable, "-c", f"import {module}"]
    subprocess.run(command, cwd=folder, env=unmeasured(), capture_output=True, check=False)

    assert mark.exists()
    mark.unlink()
