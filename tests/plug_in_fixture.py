"""Packages that provide model backends, installed without a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "hapax-echo"


def install(source: Path, target: Path, tmp_path: Path) -> None:
    """Install a package from source into a folder, without network."""
    copy = shutil.copytree(source, tmp_path / "source")  # building writes beside the sources
    if find_spec("pip") and find_spec("setuptools"):
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True, timeout=120)
        return
    project = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))["project"]
    (group, points) = next(iter(project["entry-points"].items()))
    provide(target, project["name"], dict(points), group)
    shutil.copy(copy / "hapax_echo.py", target)


def provide(target: Path, name: str, points: dict[str, str], group: str = "hapax.models") -> None:
    """Write the metadata of an installed package with these entry points."""
    folder = target / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}" for point, value in points.items()]
    (folder / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
