"""The installation: extras and their remedies, licences, and programs that cannot start."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path

import pytest
import winograd_fixture
from cli_fixture import invoke
from openai_fake import FakeServer
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import hapax

# --- installation -----------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOR_TESTS = {"browser", "databases", "harness", "servers"}
"""Extras that only the tests of this repository use."""


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


# --- starts -----------------------------------------------------------------------------------------------------------


STARTS_RULES = """
oracle lies_in(City, Country): "[1] lies in [2]" / "[1] does not lie in [2]" / "does [1] lie in [2]?"
given visits(Person, Country): "[1] visits [2]" / "[1] does not visit [2]" / "does [1] visit [2]?"
@name sees
visits(Person X, Country L) & lies_in(City C, Country L) -> may_see(Person X, City C)
"""
NOWHERE = "openai:m@http://127.0.0.1:9/v1"
FAILING = {
    "search without a key": "search my.rules -m openai:gpt-4.1 --likelihood frequency",
    "search at a wrong URL": f"search my.rules -m {NOWHERE} --likelihood frequency",
    "search with an unknown model": "search my.rules -m nosuch:model",
    "search of an unknown rule": "search my.rules --rule nosuch -m simulated",
    "search with a missing file": "search my.rules -m scripted:nosuch.json",
    "a goal without a key": "query lies_in(X,italy) --ask --rules my.rules -m openai:gpt-4.1",
    "a goal at a wrong URL": f"query lies_in(X,italy) --ask --rules my.rules -m {NOWHERE}",
    "import of a missing file": "import nosuch.csv",
    "import of a faulty row": "import faulty.csv --rules my.rules",
    "merge of a missing file": "data merge nosuch.db",
    "an evaluation without a key": "evaluate instruct my.rules -m openai:gpt-4.1",
    "expansion without a key": "rules expand my.rules --rules my.rules --variable C -m openai:gpt-4.1 -o new.rules",
    "mining": "rules mine my.rules",
    "a plan": "plan my.rules -m nosuch:model",
    "an agent's server": "kb mcp --ask --max-calls 3 --rules my.rules -m openai:gpt-4.1",
    "a browser's server": "serve --ask --max-calls 3 --rules my.rules -m openai:gpt-4.1",
}


@pytest.fixture
def starts_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of rules and a file of facts of which one is faulty; there are no keys."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "my.rules").write_text(STARTS_RULES, "utf-8")
    (tmp_path / "faulty.csv").write_text("visits,ann,italy\nvisits,ann\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize("command", FAILING.values(), ids=FAILING)
def test_a_failed_start_leaves_no_knowledge_base(command: str, starts_folder: Path) -> None:
    """Neither the file nor one beside it is there, and a later command says that there is none."""
    before = sorted(path.name for path in starts_folder.iterdir())
    failed = invoke(*command.split(), "--db", "new.db")

    assert failed.exit_code not in (0, 130), failed.output
    assert sorted(path.name for path in starts_folder.iterdir()) == before
    asked = invoke("query", "lies_in(X, Y)", "--rules", "my.rules", "--db", "new.db")
    assert asked.exit_code != 0
    assert "new.db" in asked.output


def test_a_refused_key_leaves_no_knowledge_base(starts_folder: Path) -> None:
    """A server that refuses every request has answered nothing that could be kept."""
    with FakeServer() as server:
        server.misbehave = lambda number, asked: (401, {"error": {"message": "bad key"}}, {})
        failed = invoke("search", "my.rules", "-m", f"openai:m@{server.url}", "--db", "new.db")

    assert failed.exit_code == 1, failed.output
    assert [path.name for path in starts_folder.iterdir() if path.name.startswith("new.db")] == []


def test_a_file_with_something_in_it_stays(starts_folder: Path) -> None:
    """Paid answers, and a knowledge base that was there before, outlive a failure."""
    hapax.KnowledgeBase("new.db").close()
    assert invoke("search", "my.rules", "-m", "nosuch:model", "--db", "new.db").exit_code == 1
    assert (starts_folder / "new.db").exists()

    stopped = invoke("search", "my.rules", "-m", "simulated:1", "--max-calls", "3", "--db", "paid.db")
    assert stopped.exit_code == 3, stopped.output
    assert (starts_folder / "paid.db").exists()


def test_another_process_keeps_its_file(starts_folder: Path) -> None:
    """A file that somebody else has open is not taken away, though it is empty."""
    with hapax.KnowledgeBase("new.db"):
        failed = invoke("import", "nosuch.csv", "--db", "new.db")
        assert failed.exit_code == 2, failed.output
        assert (starts_folder / "new.db").exists()


# --- licences ---------------------------------------------------------------------------------------------------------


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
            seen[name] = metadata.distribution(name)
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
