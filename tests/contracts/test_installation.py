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
from cli_fixture import invoke

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
FOR_TESTS = {"browser", "databases", "harness", "servers", "fuzz"}


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
        ("import hapax; hapax.list_models()", ("torch", "transformers", "wordfreq", "httpx2")),
        ("import hapax; hapax.open_models('openai:m@http://127.0.0.1:9/v1', likelihood='frequency')", ("torch",)),
        ("from hapax.cli import main; main(['--help'])", ("torch", "lark", "hapax.commands.options")),
        (
            "from hapax.cli import main; main(['query', '1 =< 2', '--db', 'none.db'])",
            ("torch", "hapax.commands.search"),
        ),
        ("from hapax.cli import main; main(['check'])", ("torch", "transformers", "wordfreq", "sqlite_utils")),
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
