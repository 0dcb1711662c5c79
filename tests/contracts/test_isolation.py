"""Nothing in the working folder is imported or loaded by any command, whatever its files are called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import lint_fixture
import pytest
import winograd_fixture

import hapax
from hapax import cli

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
MODELS = {
    "generate": {},
    "defaults": {"generate": "1. windmill\n2. crane", "critic": 0.9, "likelihood": -9.0},
}
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
GRAPH = (
    "types: person#place, num preds: 2\n\npredicate: (shop.1,shop.in.2)#person#place\nBInc sims\n"
    "(go.1,go.to.2)#person#place 0.8\n"
)
PAIRS = "Ann, visited, Rome\tAnn, went to, Rome\tTrue\nAnn, went to, Rome\tAnn, visited, Rome\tFalse\n"

DB = ("--db", "kb.db")
RULE_FILE = ("--rules", "world.rules")
SIMULATED = ("-m", "simulated:12")
SCRIPTED = ("-m", "scripted:models.json")
SMALL = ("world.rules", "--rule", "repair", *SIMULATED, "--evaluator", "frequency", "--values", "3")
ENTAILS = ("evaluate", "entailment")
WINOGRAD = ("evaluate", "winograd")
ASKED = ("--db", "winograd.db")
EDGES = ("--db", "entailments.db")
LATER = ("--review", "later")
ANT = ("The ant could not lift the crumb because it was too heavy.", "-o", "ant", "-o", "crumb")

SEARCHED = (
    ("search", *SMALL, *DB),
    ("check", "world.rules", *DB),
    ("import", "facts.csv", *DB),
    ("stats", *DB),
    ("ledger", *DB),
    ("verify", *DB),
    ("backup", "copy.db", *DB),
    ("restore", "copy.db", "--db", "restored.db"),
    ("export", *DB),
    ("derive", "world.rules", "--rule", "owned", *DB),
    ("query", "possesses(P, M)", *RULE_FILE, *DB),
    ("why", "possesses('Ann', mill)", *RULE_FILE, *DB),
    ("why-not", "possesses('Ann', crane)", *RULE_FILE, *DB),
    ("retract", "runs_alone('Bob', mill)", *RULE_FILE, *DB, "--reason", "sold"),
    ("report", *DB, "-o", "report.html"),
    ("datasette", *DB, "-o", "metadata.json"),
    ("dataset", "dataset", *DB, "--in-both", "keep", "--format", "jsonl", "--format", "lint", "--format", "lm-eval"),
    ("leaderboard", "dataset", *DB, *SCRIPTED, "--html", "board.html"),
    ("votes", "export", "statements", *DB, "--voter", "ann", "--format", "csv", "--out", "sheets"),
    ("votes", "import", "sheets/statements-ann.csv", *DB),
    ("votes", "next", "2", "statements", *DB, "--voter", "ann", "--out", "next"),
    ("votes", "report", *DB),
    ("calibrate", *RULE_FILE, *DB, "--critic", "simulated:12", "--labels", "labels.tsv"),
    ("merge", "kb.db", "--db", "merged.db"),
    ("mcp", *RULE_FILE, *DB),
    ("lsp", *RULE_FILE, *DB),
    ("serve", *RULE_FILE, "--db", "no-such-folder/kb.db"),
    ("evaluate", "likelihood", *RULE_FILE, *DB, "--evaluator", "frequency"),
    ("evaluate", "long-tail", *RULE_FILE, *DB, "--judge", "frequency", "--judge", "simulated"),
    ("evaluate", "probe", *DB, *SIMULATED, "--sample", "2"),
    ("evaluate", "soundness", *DB, "--out", "soundness"),
)
WITHOUT_SEARCH = (
    ("models",),
    ("doctor",),
    ("compile", "world.rules"),
    ("explain", "HPX113"),
    ("fmt", "world.rules"),
    ("plan", "world.rules", "--rule", "repair", *SIMULATED),
    ("rules", "expand", "world.rules", "--rule", "repair", "--variable", "B", *SCRIPTED, "-o", "new.rules", *LATER),
    ("rules", "lint", "world.rules", *SIMULATED, "--db", "rules.db"),
    ("rules", "verbalise", "world.rules", *SIMULATED, "--db", "rules.db"),
    ("evaluate", "ablation", *SMALL, "--db", "ablation.db"),
    ("evaluate", "instruct", "world.rules", "--rule", "repair", *SIMULATED, "--count", "2", "--db", "instruct.db"),
    ("evaluate", "grid", "grid.yaml", "--db", "grid.db"),
    ("evaluate", "lint", "lint", "--rules", "lint.json", "--db", "lint.db"),
)
ENTAILMENTS = (
    (*ENTAILS, "facts", "entailments.tsv", *RULE_FILE, *EDGES),
    (*ENTAILS, "import", "graphs", *EDGES),
    (*ENTAILS, "link", *RULE_FILE, *EDGES),
    (*ENTAILS, "graph", *EDGES),
    (*ENTAILS, "predicates", *RULE_FILE, *SCRIPTED, *EDGES),
    (*ENTAILS, "data", "pairs.txt"),
    (*ENTAILS, "score", "pairs.txt", "--scorer", "random", *EDGES),
    (*ENTAILS, "bias", "pairs.txt", "--scorer", "random", *EDGES),
    (*ENTAILS, "consistency", "pairs.txt", "--scorer", "random", "--store", *EDGES),
    ("rules", "suggest", *RULE_FILE, *EDGES),
    ("rules", "mine", *RULE_FILE, *EDGES),
)
SCHEMAS = (
    (*WINOGRAD, "data", "schemas.csv"),
    (*WINOGRAD, "ask", "schemas.csv", *SCRIPTED, "--limit", "1", *ASKED),
    (*WINOGRAD, "tables", *ASKED),
    (*WINOGRAD, "cases", "schemas.csv", "--first", "zero-shot", "--second", "zero-shot", *ASKED),
    (*WINOGRAD, "generate", "schemas.csv", *SCRIPTED, "--prompt", "1", "--out", "reversed.jsonl", *ASKED),
    (*WINOGRAD, "sheets", "schemas.csv", "--annotator", "ann", "--out", "schemas", *ASKED),
    (*WINOGRAD, "import", "schemas.csv", "schemas/schemas-ann.csv", *ASKED),
    (*WINOGRAD, "judged", "schemas.csv", *ASKED),
    (*WINOGRAD, "export", "schemas.csv"),
    (*WINOGRAD, "rules", "schemas.csv"),
    (*WINOGRAD, "robustness", "schemas.csv"),
    (*WINOGRAD, "hybrid", "schemas.csv", "--method", "patterns", *ASKED),
    (*WINOGRAD, "association", "wsc.csv", *ASKED),
    (*WINOGRAD, "prove", *ANT),
)
CHAINS: dict[str, tuple[tuple[str, ...], ...]] = {
    "searched": SEARCHED,
    "without_search": WITHOUT_SEARCH,
    "schemas": SCHEMAS,
    "entailments": ENTAILMENTS,
}
"""Every command. Those of a chain run one after the other, because they use each other's files."""

NOT_RUN = {
    "evaluate entailment train": "trains a transformer",
    "evaluate entailment test": "needs a trained transformer",
    "evaluate booqa build": "needs an installed WordNet",
    "evaluate winograd reword": "needs an English parser",
    "evaluate winograd learn": "needs an English parser",
    "evaluate booqa score": "needs the questions that `build` writes",
}
"""Commands that need what a test folder cannot hold, with what that is."""

REFUSED = {
    "serve": "the knowledge base is not there, and otherwise it would serve until interrupted",
    "votes import": "the sheet is not filled in",
    "votes report": "there are no votes",
    "evaluate winograd import": "the sheet is not filled in",
    "evaluate winograd robustness": "the file has no rewordings",
}
"""Commands that end with exit code 1 here, with the reason."""


def leaf_commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The names of all commands below this one, such as `votes export`."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from leaf_commands(child, (*path, name))
    else:
        yield " ".join(path)


NAMES = tuple(leaf_commands(cli.main))


def command_name(arguments: tuple[str, ...]) -> str:
    return next(name for name in NAMES if (*name.split(), "")[:-1] == arguments[: len(name.split())])


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
        "graphs/person#place_sim.txt": GRAPH,
        "pairs.txt": PAIRS,
        "lint.json": json.dumps(lint_fixture.RULES),
        **{f"lint/{name}": text for name, text in lint_fixture.FILES.items()},
    }
    for name, text in inputs.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    winograd_fixture.write(folder / "schemas.csv", winograd_fixture.PLAIN)
    winograd_fixture.annotated(folder / "wsc.csv")
    return folder


def marks(folder: Path) -> dict[str, str]:
    """The traps that something ran into, with the command line that did where Python knows it."""
    return {path.name: path.read_text("utf-8") for path in (folder / "marks").iterdir()}


def test_every_command_is_run_in_the_trapped_folder() -> None:
    """A new command stands in one of the chains, or in `NOT_RUN` with its reason."""
    run = [command_name(arguments) for chain in CHAINS.values() for arguments in chain]

    assert sorted([*run, *NOT_RUN]) == sorted(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_commands_run_nothing_from_the_working_folder(folder: Path, chain: str) -> None:
    """Files named like modules of Python, of packages, of Hapax or of Prolog are neither imported nor loaded."""
    failed: dict[str, str] = {}
    for arguments in CHAINS[chain]:
        command = [sys.executable, str(PROGRAM), *arguments]
        ended = subprocess.run(
            command, cwd=folder, env=unmeasured(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        name = command_name(arguments)
        assert marks(folder) == {}, name
        if ended.returncode != (1 if name in REFUSED else 0):
            failed[name] = ended.stderr

    assert failed == {}


@pytest.mark.cluster
def test_workers_of_a_ray_cluster_run_nothing_from_the_working_folder(folder: Path) -> None:
    """Ray puts the working folder first on its workers' path; a search on Ray keeps it off, and still finds files there."""
    pytest.importorskip("ray")
    cluster = ("--executor", "ray", "--workers", "2", "--db", "spread.db", "--no-progress")
    for models in (SIMULATED, SCRIPTED):  # simulated models take likelihoods from wordfreq, scripted ones read a file
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
