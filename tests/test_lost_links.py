"""A checkout whose links in `hapax/` were lost on the way, in a zip archive or by git with core.symlinks=false."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(params=["text", "nothing"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The tracked files, with text files in place of the links, or with nothing."""
    options = ("-c", "core.symlinks=false", "checkout-index", "--all", f"--prefix={tmp_path}/")
    subprocess.run(["git", "-C", ROOT, *options], check=True)
    for path in (tmp_path / "hapax").iterdir():
        is_lost_link = (ROOT / "hapax" / path.name).is_symlink()
        assert not path.is_symlink()
        assert not is_lost_link or path.read_text("utf-8") == f"../{path.name}"
        if is_lost_link and request.param == "nothing":
            path.unlink()
    return tmp_path


def run(checkout: Path, *command: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="takes the files that git tracks")
def test_a_checkout_without_links_works(checkout: Path) -> None:
    """`cli.py` checks rules, a goal is answered by the Prolog worker, and `hapax.cli` is the file in the folder above."""
    run(checkout, sys.executable, "cli.py", "check")
    (checkout / "facts.csv").write_text("predicate,argument1\nis_grain,wheat\n", "utf-8")
    run(checkout, sys.executable, "cli.py", "import", "facts.csv", "--db", "new.db")
    answer = run(checkout, sys.executable, "cli.py", "query", "member(X, [wheat])", "--db", "new.db")
    imported = run(checkout, sys.executable, "-c", "import hapax.cli, hapax.engine; print(hapax.cli.__file__)")

    assert "wheat" in answer
    assert imported == f"{checkout / 'cli.py'}\n"


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="takes the files that git tracks")
def test_set_up_restores_the_links(checkout: Path) -> None:
    """`scripts/set_up.sh links` restores exactly the links that git tracks, and leaves them alone the next time."""
    run(checkout, checkout / "scripts" / "set_up.sh", "links")
    run(checkout, checkout / "scripts" / "set_up.sh", "links")

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
    assert "hapax/api is a copy of api instead of a link. Remove it" in done.stderr
    assert (tmp_path / "hapax" / "api").is_dir()
