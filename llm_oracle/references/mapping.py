"""Mapping files: which columns of which tables are the facts of which predicates, and the names of which data types."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import Closedness
from hapax.grammar.yaml_files import read_yaml

SHIPPED = Path(__file__).parent / "shipped"
"""Folder of the mappings that ship, each `NAME.yaml` for `reference:NAME`."""

ALL = "all"
"""Name of all shipped mappings whose data is installed here."""

# `is_capital_of/2`, with at most 99 arguments.
_INDICATOR = r"^[a-z]\w*/[1-9]\d?$"


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Columns = Annotated[tuple[str, ...], BeforeValidator(_listed)]
"""One column name, or a list of them."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceSection(_Section):
    """Origin of the tables. With a `package`, the version is that of the installed package."""

    name: str = Field(min_length=1)
    version: str = ""
    licence: str = ""
    package: str = ""

    @property
    def title(self) -> str:
        """Name and version, as a decision cites them."""
        number = self.version
        with suppress(PackageNotFoundError):
            number = number or (version(self.package) if self.package else "")
        return f"{self.name} {number}".strip()


class TableSection(_Section):
    """A table: a file beside the mapping, whose format its ending names, or a registered loader."""

    file: Path | None = None
    loader: str | None = None
    separator: str = "|"
    """Separates the names within a cell of a column of aliases."""
    source: SourceSection | None = None
    """The table's own source, where it is not that of the mapping."""

    @model_validator(mode="after")
    def _one_of_both(self) -> TableSection:
        if (self.file is None) == (self.loader is None):
            raise ValueError("a table has either `file` or `loader`")
        return self


class TypeSection(_Section):
    """Names of a data type, with other names and popularity. Closed: there are no further values of the type."""

    table: str
    name: str
    aliases: Columns = ()
    popularity: str | None = None
    # A predicate can be closed for its first argument; a type has no other one.
    closedness: Literal["closed", "open"] = "open"
    rename: dict[str, str] = Field(default_factory=dict)
    """Canonical names to use instead of the table's, by the table's."""
    also: dict[str, str] = Field(default_factory=dict)
    """Canonical names by further aliases."""


class PredicateSection(_Section):
    """Facts of a predicate: the column of each argument.

    `homonyms`: rows that contradict each other are about different bearers of a name. `symmetric`: a row also holds
    with its two arguments exchanged. `typed`: the arguments are values of the predicate's data types.
    """

    table: str
    arguments: tuple[str, ...] = Field(min_length=1)
    popularity: str | None = None
    closedness: Closedness = Closedness.OPEN
    homonyms: bool = False
    symmetric: bool = False
    typed: bool = True


class ReferenceMapping(_Section):
    """A mapping file."""

    source: SourceSection
    needs: tuple[str, ...] = ()
    """Loaders' data that has to be installed: Python modules, or absolute paths."""
    remedy: str = ""
    """Command that installs it."""
    tables: dict[str, TableSection]
    types: dict[str, TypeSection] = Field(default_factory=dict)
    predicates: dict[Annotated[str, Field(pattern=_INDICATOR)], PredicateSection] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fitting(self) -> ReferenceMapping:
        named = {title: section.table for title, section in self.types.items()}
        named.update((title, section.table) for title, section in self.predicates.items())
        for title, table in named.items():
            if table not in self.tables:
                raise ValueError(f"{title} names the table {table!r}, which `tables` does not have")
        for indicator, predicate in self.predicates.items():
            arity = int(indicator.partition("/")[2])
            if len(predicate.arguments) != arity:
                raise ValueError(f"{indicator} needs {arity} argument columns, not {len(predicate.arguments)}")
            if predicate.symmetric and arity != 2:
                raise ValueError(f"{indicator} cannot be symmetric: only a predicate of two arguments can")
        if not self.types and not self.predicates:
            raise ValueError("it maps nothing: give `predicates` or `types`")
        return self

    def columns(self, table: str) -> list[str]:
        """The columns of a table that the mapping names, each once."""
        named: list[str | None] = []
        for kind in self.types.values():
            named += (kind.name, *kind.aliases, kind.popularity) if kind.table == table else ()
        for facts in self.predicates.values():
            named += (*facts.arguments, facts.popularity) if facts.table == table else ()
        return [name for name in dict.fromkeys(named) if name]

    def source_of(self, table: str) -> SourceSection:
        """The source of a table."""
        return self.tables[table].source or self.source


def read_mapping(path: Path) -> ReferenceMapping:
    """The mapping in a YAML file. Raises HapaxError that names the file, the place in it and the fault."""
    try:
        content: Any = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as fault:
        raise HapaxError(f"{path}: cannot be read: {fault.strerror}. Name a mapping file of a reference.") from fault
    except UnicodeDecodeError as fault:
        raise HapaxError(f"{path}: is not UTF-8 text. Save the mapping as UTF-8.") from fault
    except (yaml.YAMLError, ValueError) as fault:
        raise HapaxError(f"{path}: is not YAML: {' '.join(str(fault).split())}. Correct it there.") from fault
    try:
        return ReferenceMapping.model_validate(content)
    except ValidationError as fault:
        lines = []
        for error in fault.errors():
            place = ".".join(map(str, error["loc"])) or "the mapping"
            # Pydantic puts these words before the messages of our own validators.
            lines.append(f"{path}: {place}: {error['msg'].removeprefix('Value error, ')}.")
        raise HapaxError("\n".join(lines) + "\nCorrect the mapping; docs/how-to/references.md has its form.") from fault


def shipped_names() -> tuple[str, ...]:
    """Names of the mappings that ship."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))
