"""Mappings: which columns of a table are the arguments of which predicates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Setting
from hapax.grammar.yaml_files import read_yaml


class Fixed(BaseModel):
    """An argument that is the same in all facts."""

    model_config = ConfigDict(extra="forbid", strict=True)
    value: str | int

    def __str__(self) -> str:
        return repr(self.value)


class ColumnsOfFact(BaseModel):
    """A predicate, and the column or the fixed value of each of its arguments.

    `key`: the columns of which no two facts have the same values.
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    # Not beginning with a digit, `_` or one of A-Z: Prolog would read a number or a variable.
    predicate: Annotated[str, Field(pattern=r"^[^\W\dA-Z_]\w*$")]
    columns: Annotated[list[str | Fixed], Field(min_length=1)]
    key: str | list[str] = []

    @property
    def key_places(self) -> list[int]:
        """The places of the key's columns among the arguments. Raises HapaxError for one that is no argument."""
        names = [self.key] if isinstance(self.key, str) else self.key
        for name in names:
            if name not in self.columns:
                known = ", ".join(column for column in self.columns if isinstance(column, str))
                raise HapaxError(f"{name}, the key of {self.predicate}, is not among its columns. Choose from {known}.")
        return [self.columns.index(name) for name in names]


@checked
class TableMapping(BaseModel):
    """The facts that each row of a table gives. `table`: in a SQLite file; `delimiter`: of a CSV file.

    `empty`: `skip` an empty cell of a fact with a key, and leave out another fact with one; `refuse` the row; or have
    the text "" there (`fact`).
    """

    model_config = ConfigDict(extra="forbid", strict=True)
    facts: Annotated[list[ColumnsOfFact], Field(min_length=1)]
    table: str | None = None
    empty: Literal["skip", "refuse", "fact"] = "skip"
    delimiter: Annotated[str, Field(min_length=1, max_length=1, pattern=r'[^\r\n"]')] | None = None

    @classmethod
    @checked
    def of(cls, predicate: str, columns: Sequence[str], table: str | None = None) -> TableMapping:
        """The mapping of one predicate. Raises HapaxError if the name cannot be a predicate's."""
        return _validated(
            {"facts": [{"predicate": predicate, "columns": [*columns]}], "table": table},
            str(Setting("mapping.columns")),
        )

    @classmethod
    @checked
    def read(cls, path: str | Path) -> TableMapping:
        """The mapping in a YAML file. Raises HapaxError with every fault."""
        try:
            content = read_yaml(Path(path).read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as fault:
            raise HapaxError(f"{path} cannot be read: {fault}. Name a readable mapping file.") from fault
        except (yaml.YAMLError, ValueError) as fault:
            raise HapaxError(f"{path} is not YAML: {' '.join(str(fault).split())}. {_EXAMPLE}") from fault
        # A list is that of the facts alone.
        return _validated({"facts": content} if isinstance(content, list) else content, str(path))

    @property
    def named_columns(self) -> list[str]:
        """The columns of the table that are arguments of some fact, each once."""
        arguments = [argument for facts in self.facts for argument in facts.columns]
        return list(dict.fromkeys(argument for argument in arguments if isinstance(argument, str)))


_EXAMPLE = "Write, for example: facts: [{predicate: lies_at, columns: [airport, elevation]}]"


def _validated(content: object, place: str) -> TableMapping:
    try:
        return TableMapping.model_validate(content)
    except ValidationError as fault:
        lines = []
        for error in fault.errors():
            where = ".".join(str(part) for part in error["loc"] if part not in ("str", "Fixed"))
            message = error["msg"]
            if error["type"] == "string_pattern_mismatch" and where == "delimiter":
                message = f"{error['input']!r} cannot separate cells; write a character such as ; or \\t"
            elif error["type"] == "string_pattern_mismatch":
                message = f"{error['input']!r} is not a predicate name; write a name like is_allergic_to"
            lines.append(f"{where or 'the file'}: {message}")
        raise HapaxError(f"{place}: {'; '.join(dict.fromkeys(lines))}. {_EXAMPLE}") from fault
