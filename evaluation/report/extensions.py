"""Sections that other packages add to the page, by the entry point group `hapax.report_sections`.

docs/report.md shows an example. Entry points are looked up only when a page is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.records import RunRecord
from hapax.kb.store import KnowledgeBase

GROUP = "hapax.report_sections"


@dataclass(frozen=True, slots=True)
class SectionSource:
    """The run of the page, the knowledge base that holds it, open for reading, and the rules with their wording."""

    kb: KnowledgeBase
    run: RunRecord
    library: Library


@dataclass(frozen=True, slots=True)
class AddedSection:
    """A section with a table, with HTML, or with both.

    Cells are escaped. `html` enters the page as it is, so the section escapes the texts of models and people in it. The
    page's policy blocks scripts, styles and external resources there.
    """

    title: str
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    html: str = ""


def added_sections(source: SectionSource) -> list[AddedSection]:
    """Call the sections of all installed packages, in the order of their names; one that returns None is left out.

    Raises HapaxError, naming the package, for a section that cannot be loaded, fails, or returns something else.
    """
    sections = []
    # Sorted because the order of installed packages differs between machines.
    for entry_point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        try:
            section = entry_point.load()(source)
        # Any fault: the code is another package's.
        except Exception as fault:
            raise _fault(entry_point, f"failed with {fault!r}") from fault
        if section is None:
            continue
        if not isinstance(section, AddedSection):
            raise _fault(entry_point, f"returned {type(section).__name__} instead of an AddedSection or None")
        sections.append(section)
    return sections


def _fault(entry_point: EntryPoint, problem: str) -> HapaxError:
    package = entry_point.dist.name if entry_point.dist else "an unknown package"
    return HapaxError(
        f"The report section {entry_point.name!r} of {package} ({entry_point.value}) {problem}. Update or uninstall "
        "that package."
    )
