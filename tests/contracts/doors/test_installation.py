"""The installation: extras and their names, the lock, a checkout that lost its links, the doctor, and a quick start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import winograd_fixture
from cli_fixture import invoke

import hapax

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOR_TESTS = {"browser", "databases", "harness", "servers"}


def distribution(requirement: str) -> str:
    name = re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def python(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_the_lock_pins_everything_that_is_required() -> None:
    """Each requirement of the project is pinned in requirements.lock, where every pin has hashes of its files."""
    _, _, content = (ROOT / "requirements.lock").read_text("utf-8").partition("\n")
    entries = re.sub(r" \\\n +", " ", content).splitlines()
    groups = [
        PROJECT["build-system"]["requires"],
        PROJECT["project"]["dependencies"],
        PROJECT["dependency-groups"]["dev"],
        *PROJECT["project"]["optional-dependencies"].values(),
    ]

    assert [entry for entry in entries if not re.fullmatch(r"\S+==\S+( --hash=sha256:[0-9a-f]{64})+", entry)] == []
    assert {distribution(name) for group in groups for name in group} <= {distribution(entry) for entry in entries}


def test_the_doctor_lists_each_extra_of_the_distribution() -> None:
    """A missing extra is no fault, and the doctor says how each is installed; what the program needs is there."""
    result = invoke("doctor", "--json")
    names = {finding["name"] for finding in json.loads(result.stdout)}

    assert result.exit_code == 0
    assert {name.removeprefix("extra ") for name in names if name.startswith("extra ")} == (
        PROJECT["project"]["optional-dependencies"].keys() - FOR_TESTS
    )
    assert {"SWI-Prolog", "Python", "SQLite"} <= names


def test_the_doctor_refuses_an_old_prolog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A SWI-Prolog before 9 is told with its version and the remedy, by exit code 1; so is none at all."""
    program = tmp_path / "swipl"
    program.write_text('#!/bin/sh\necho "SWI-Prolog version 8.4.2 for x86_64-linux"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    old = invoke("doctor")
    program.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    none = invoke("doctor")

    assert (old.exit_code, none.exit_code) == (1, 1)
    assert "8.4.2" in old.output
    assert "swi-prolog" in none.output


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("import hapax", ("torch", "lark", "sqlite_utils", "click")),
        ("import hapax; hapax.list_models()", ("torch", "transformers", "httpx2")),
        ("import hapax; hapax.open_models('openai:m@http://127.0.0.1:9/v1', likelihood='frequency')", ("torch",)),
        ("from hapax.cli import main; main(['--help'])", ("torch", "lark", "hapax.commands.shared.common_options")),
        (
            "from hapax.cli import main; main(['query', '1 =< 2', '--db', 'none.db'])",
            ("torch", "hapax.commands.search_commands"),
        ),
        (
            "from hapax.cli import main; main(['check'])",
            ("torch", "transformers", "hapax.llm_oracle.rankers.word_frequency", "sqlite_utils"),
        ),
        ("from hapax.cli import main; main(['plan', '--rule', 'allergy', '--db', 'none.db'])", ("torch",)),
    ],
)
def test_only_what_is_needed_is_loaded(code: str, modules: tuple[str, ...]) -> None:
    """Importing Hapax, listing models, asking servers, checks and plans begin without torch and other large libraries."""
    shown = f"print([name for name in {modules} if name in sys.modules])"

    assert python(f"import sys\ntry: {code}\nexcept BaseException: pass\n{shown}").stdout.strip().endswith("[]")


# --- a checkout whose links in `hapax/` were lost on the way, in a zip archive or by git with core.symlinks=false -----


@pytest.fixture(params=["text", pytest.param("nothing", marks=pytest.mark.slow)])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tracked files, with text files in place of the links, or with nothing."""
    if not (ROOT / ".git").exists():
        pytest.skip("takes the files that git tracks")
    options = ("-c", "core.symlinks=false", "checkout-index", "--all", f"--prefix={tmp_path}/")
    subprocess.run(["git", "-C", ROOT, *options], check=True)
    for path in (tmp_path / "hapax").iterdir():
        if (ROOT / "hapax" / path.name).is_symlink():
            assert path.read_text("utf-8") == f"../{path.name}"
            if request.param == "nothing":
                path.unlink()
    return tmp_path


def ended(checkout: Path, *command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_checkout_without_links_works(checkout: Path) -> None:
    """A goal is answered by the Prolog worker, `hapax.cli` is the file in the folder above, and set-up restores the links."""
    (checkout / "facts.csv").write_text("predicate,argument1\nis_grain,wheat\n", "utf-8")
    ended(checkout, sys.executable, "cli.py", "import", "facts.csv", "--db", "new.db")
    answer = ended(checkout, sys.executable, "cli.py", "query", "member(X, [wheat])", "--db", "new.db")
    imported = ended(checkout, sys.executable, "-c", "import hapax.cli; print(hapax.cli.__file__)")
    for _ in range(2):
        ended(checkout, checkout / "scripts" / "set_up.sh", "links")

    assert "wheat" in answer
    assert imported == f"{checkout / 'cli.py'}\n"
    expected = {path.name: path.readlink() for path in (ROOT / "hapax").iterdir() if path.is_symlink()}
    assert {path.name: path.readlink() for path in (checkout / "hapax").iterdir() if path.is_symlink()} == expected


def test_set_up_deletes_no_folder(tmp_path: Path) -> None:
    """Where a link became a copy of its folder, set-up stops and names it, because the copy may hold changes."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "hapax" / "api").mkdir(parents=True)
    script = tmp_path / "scripts" / "set_up.sh"
    script.write_bytes((ROOT / "scripts" / "set_up.sh").read_bytes())
    done = subprocess.run(["bash", script, "links"], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "hapax/api" in done.stderr
    assert (tmp_path / "hapax" / "api").is_dir()


PROGRAM = Path(hapax.__file__).resolve().parents[1] / "cli.py"
"""`cli.py` of the checkout."""

TRAPS = (
    *("json.py", "select.py", "random.py", "re.py", "numpy.py", "click.py", "pyswip.py", "yaml.py", "sqlite_utils.py"),
    *("sitecustomize.py", "usercustomize.py", "engine/__init__.py", "engine/worker.py", "hapax/__init__.py"),
    *("grammar/__init__.py", "kb/__init__.py", "torch/__init__.py", "matplotlib/__init__.py", "regex.py", "ray.py"),
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
    ("kb", "verify"),
    ("kb", "backup", "copy.db"),
    ("derive", "world.rules", "--rule", "owned"),
    ("query", "possesses(P, M)"),
    ("why", "possesses('Ann', mill)"),
    ("why-not", "possesses('Ann', crane)"),
    ("report", "-o", "report.html"),
    ("data", "dataset", "dataset", "--in-both", "keep", "--format", "jsonl", "--format", "lm-eval"),
    ("votes", "export", "statements", "--voter", "ann", "--out", "sheets"),
    ("model", "calibrate", "--rules", "world.rules", "--critic", "simulated:12", "--labels", "labels.tsv"),
    ("kb", "mcp"),
    ("rules", "lsp"),
    ("evaluate", "long-tail", "--rules", "world.rules", "--judge", "frequency", "--judge", "simulated"),
    ("evaluate", "probe", "-m", "simulated:12", "--sample", "2"),
    ("model", "list"),
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
    ):  # simulated models take likelihoods from word frequencies, scripted ones read a file
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
