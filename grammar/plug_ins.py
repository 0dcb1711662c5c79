"""Entry points: what other packages, and the outer rooms of this one, add to Hapax."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.errors import HapaxError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PACKAGE = "hapax-kb"

_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
"""In a checkout. Its entry points hold there, since the metadata of an editable installation may be older."""


@cache
def plug_ins(group: str) -> dict[str, EntryPoint]:
    """The entry points of a group by name. Those of this package come first, then the packages in alphabetical order.

    Finding them reads the metadata of every installed package.
    """
    # Slow to import, and no command of the core needs it.
    from importlib.metadata import entry_points

    ours = _declared(group)
    installed = [point for point in entry_points(group=group) if package(point) != PACKAGE or not ours]
    # Sorted, so that the order of folders on the path does not decide.
    ordered = sorted(installed, key=lambda point: (package(point) != PACKAGE, package(point)))
    return {point.name: point for point in (*reversed(ordered), *ours)}


def _declared(group: str) -> list[EntryPoint]:
    """The entry points of this checkout; none in an installed package."""
    if not _PROJECT.is_file():
        return []
    import tomllib
    from importlib.metadata import EntryPoint

    points = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]["entry-points"].get(group, {})
    return [EntryPoint(name, value, group) for name, value in points.items()]


def load(point: EntryPoint) -> Any:
    """The object of an entry point. Raises HapaxError with the name of the package if that cannot be loaded."""
    # What this package declares is a defect of Hapax if it fails, and the traceback should be seen.
    if package(point) == PACKAGE:
        return point.load()
    try:
        return point.load()
    except Exception as fault:  # the code of others can raise anything when imported
        raise HapaxError(
            f"{package(point)}: `{point.name}` of {point.group} ({point.value}) cannot be loaded: "
            f"{type(fault).__name__}: {fault}. Update the package, or uninstall it: `pip uninstall {package(point)}`."
        ) from fault


def package(point: EntryPoint) -> str:
    """The distribution that declares an entry point."""
    return point.dist.name if point.dist is not None else PACKAGE
