"""Readers of fact files that other packages add, by the entry point group `hapax.fact_readers`.

docs/reference/knowledge-base.md shows an example. Entry points are looked up only for an ending that Hapax does not
read itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeAlias

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Value

GROUP = "hapax.fact_readers"

FactReader: TypeAlias = Callable[[Path], Iterable[tuple[int, str, Sequence[Value]]]]
"""Yields the line or record number, the predicate and the arguments of each fact of a file."""


def added_reader(ending: str) -> FactReader | None:
    """The reader of another package for files with this ending, such as `xlsx`; None if there is none.

    Raises HapaxError, naming the packages, for a reader that cannot be loaded and for two with the same ending.
    """
    # Sorted because the order of installed packages differs between machines.
    entries = sorted(entry_points(group=GROUP, name=ending), key=_package)
    if len(entries) > 1:
        packages = " and ".join(map(_package, entries))
        raise HapaxError(
            f"{packages}: these packages each read facts from .{ending} files. Uninstall all but one of them, for "
            f"example `pip uninstall {_package(entries[0])}`."
        )
    for entry in entries:
        try:
            reader: FactReader = entry.load()
        except Exception as fault:  # the code of others can raise anything when imported
            raise _fault(entry, f"cannot be loaded: {type(fault).__name__}: {fault}") from fault
        return partial(_read, entry, reader)
    return None


def _read(entry: EntryPoint, reader: FactReader, path: Path) -> Iterator[tuple[int, str, Sequence[Value]]]:
    """The facts that a reader yields. Raises HapaxError, naming its package, if it fails or yields something else."""
    try:
        for line, predicate, arguments in reader(path):
            yield line, predicate, list(arguments)
    except HapaxError:  # its own words about the file
        raise
    except Exception as fault:
        raise _fault(entry, f"failed on {path} with {fault!r}") from fault


def _fault(entry: EntryPoint, problem: str) -> HapaxError:
    return HapaxError(
        f"{_package(entry)}: the fact reader `{entry.name}` ({entry.value}) {problem}. Update the package, or "
        f"uninstall it: `pip uninstall {_package(entry)}`."
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown package"
