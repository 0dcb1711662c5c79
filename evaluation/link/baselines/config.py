"""The file of `evaluate grid`: models, variants, temperatures and rules whose combinations are the cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
)

from hapax.engine.search.ranking import KEEP_SHARE
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.arguments import checked
from hapax.grammar.dependencies import BEAM
from hapax.grammar.errors import HapaxError
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.records import Distribution
from hapax.llm_oracle.prompts import LONG_TAIL_WORDINGS


@dataclass(frozen=True, slots=True)
class AblationVariant:
    """A row of tables 8 and 9, with its settings."""

    name: str
    critic: bool
    likelihood: bool


# The paper has the first, the second and the last; the third shows the gate's part alone.
VARIANTS = (
    AblationVariant("full", critic=True, likelihood=True),
    AblationVariant("w/o critic", critic=False, likelihood=True),
    AblationVariant("w/o likelihood", critic=True, likelihood=False),
    AblationVariant("w/o critic+likelihood", critic=False, likelihood=False),
)
USUAL_VARIANTS = tuple(
    variant for variant in VARIANTS if variant.name in ("full", "w/o critic", "w/o critic+likelihood")
)
"""The three variants of the paper."""

AUTO = "auto"
"""Judge that is chosen by what is known about the statements; see `Jury`."""

_SHOWN = 80
"""Characters of a faulty value in a message."""

_SEARCH = SearchSettings()
_VARIANTS = {variant.name: variant for variant in VARIANTS}

KeyPath = tuple[str | int, ...]
"""A place in the file: `("models", 0, "knowledge")`."""


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("write a text of printable signs")
    return text


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("write a number")  # noqa: TRY004  # pydantic lets a TypeError pass
    return value


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values or len(set(values)) < len(values):
        raise ValueError("write a list with each item once")
    return values


def _variant(name: Any) -> AblationVariant:
    if not isinstance(name, str) or name not in _VARIANTS:
        raise ValueError(f"write one of {', '.join(_VARIANTS)}")
    return _VARIANTS[name]


# The order of the tables, whatever order the file has.
def _in_order(values: tuple[Any, ...]) -> tuple[Any, ...]:
    order = list(Distribution) if isinstance(values[0], Distribution) else list(VARIANTS)
    return tuple(sorted(values, key=order.index))


def _beside_config(path: Any, info: ValidationInfo) -> Path:
    if not isinstance(path, str) or info.context is None:
        raise ValueError("write a path")  # pydantic turns a ValueError into a fault, and lets a TypeError pass
    folder: Path = info.context["folder"]
    return folder / _printable(path)


def _false_for_none(value: Any) -> Any:
    # An empty entry may be forgotten; only `false` says that no baseline is wanted.
    if value is None:
        raise ValueError("write false, or wordings, count, values and calls")
    return None if value is False else value


def _named_once(models: tuple[ModelEntry, ...]) -> tuple[ModelEntry, ...]:
    if not models:
        raise ValueError("write a list of models, each with name and knowledge")
    names = [model.name for model in models]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"models[{place}].name is {name!r}, the name of an earlier model; rename one of them")
    return models


Text = Annotated[StrictStr, AfterValidator(_printable)]
# A whole number stays an int: run ids are hashes of the settings, in which 1 and 1.0 differ.
Number = Annotated[Any, AfterValidator(_number)]
Temperature = Annotated[Number, Field(ge=0, le=100)]
Wording = Annotated[StrictInt, Field(ge=1, le=len(LONG_TAIL_WORDINGS))]
Size = Annotated[StrictInt, Field(ge=1, le=100_000)]
Values = Annotated[StrictInt, Field(ge=1, le=1000)]
# FailFast: one fault for a list instead of one for each of its items.
Unrepeated = (FailFast(), AfterValidator(_distinct))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_Part):
    """A row group of the tables: a knowledge model with its critic and ranker; without these it plays both roles."""

    name: Text
    knowledge: Text
    critic: Text | None = None
    likelihood: Text | None = None


class InstructionBaseline(_Part):
    """Instruction-only generation; the defaults are the paper's. Tables show the first of the wordings."""

    wordings: Annotated[tuple[Wording, ...], *Unrepeated] = (1,)
    count: Size = 200
    values: Values = 50
    calls: Size = 8


class SearchOptions(_Part):
    """Options of `hapax search`; the serialization aliases are the fields of `SearchSettings`."""

    beam: Annotated[StrictInt, Field(ge=1, le=1_000_000)] = BEAM
    calls: Values = Field(default=_SEARCH.calls_per_question, serialization_alias="calls_per_question")
    values: Values = Field(default=_SEARCH.values_per_call, serialization_alias="values_per_call")
    keep_share: Annotated[Number, Field(gt=0, le=1)] = KEEP_SHARE
    plan: Literal["cheapest", "premise-first", "conclusion-first", "link"] = "cheapest"
    compat: Literal["paper", "released"] | None = None

    def settings(self) -> dict[str, Any]:
        """The options that the file sets, by their names in `SearchSettings`."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class GridConfig(_Part):
    """A grid. `files` empty: the shipped rules; `rules` empty: all of them but definitions.

    `temperature` is that of tables 8 to 10, `temperatures` are the rows of table 7. `baseline` None: none is run.
    """

    models: Annotated[tuple[ModelEntry, ...], AfterValidator(_named_once)]
    files: Annotated[tuple[Annotated[Path, BeforeValidator(_beside_config)], ...], *Unrepeated] = ()
    rules: Annotated[tuple[Text, ...], *Unrepeated] = ()
    variants: Annotated[
        tuple[Annotated[AblationVariant, BeforeValidator(_variant)], ...], *Unrepeated, AfterValidator(_in_order)
    ] = USUAL_VARIANTS
    distributions: Annotated[tuple[Distribution, ...], *Unrepeated, AfterValidator(_in_order)] = tuple(Distribution)
    temperature: Temperature = 0.7
    temperatures: Annotated[tuple[Annotated[Temperature, AfterValidator(float)], ...], *Unrepeated] = (0.5, 0.7, 1.0)
    baseline: Annotated[InstructionBaseline | None, BeforeValidator(_false_for_none)] = InstructionBaseline()
    search: SearchOptions = SearchOptions()
    evaluator: Text = "frequency"
    judge: Text = AUTO
    seed: Annotated[StrictInt, Field(ge=0, le=2**63 - 1)] | None = None

    @property
    def model_names(self) -> frozenset[str]:
        """Names of all models in the file."""
        names = {self.evaluator, self.judge}
        for entry in self.models:
            names.update(name for name in (entry.knowledge, entry.critic, entry.likelihood) if name is not None)
        return frozenset(names - {AUTO})


@checked
def read_grid(path: str | Path) -> GridConfig:
    """Read the YAML file of a grid. `load_rules(*grid.files)` reads the rules that it names.

    Raises HapaxError with all faults of the file, each on a line of its own.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        # Composed as well as loaded, because only nodes know their lines.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = read_yaml(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as fault:
        reason = " ".join(str(fault).split())
        raise HapaxError(f"{path}: {reason}. A grid is a YAML mapping such as docs/grid.yaml.") from None
    try:
        return GridConfig.model_validate(content, context={"folder": path.parent})
    except ValidationError as rejected:
        lines = [f"{path}:{_line(node, key)}: {message}" for key, message in _faults(rejected)]
        raise HapaxError("\n".join(lines)) from None


def _faults(rejected: ValidationError) -> Iterator[tuple[KeyPath, str]]:
    """Key path and message of each faulty field, in pydantic's words, with the nearest name of an unknown one."""
    for error in rejected.errors(include_url=False):
        key = error["loc"]
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            parts: dict[str, type[BaseModel]] = {
                "models": ModelEntry,
                "baseline": InstructionBaseline,
                "search": SearchOptions,
            }
            part = parts.get(str(key[0]), GridConfig) if len(key) > 1 else GridConfig
            fields = part.model_fields
            near = get_close_matches(str(key[-1]), fields, n=1, cutoff=0.5)
            message = f"did you mean {near[0]}?" if near else f"use one of {', '.join(fields)}"
        elif error["type"] != "missing":
            message += f", not {repr(error['input'])[:_SHOWN]}"
        if not key:
            message += ". A grid is a YAML mapping such as docs/grid.yaml"
        yield key, f"{_key_text(key)}: {message}"


def _key_text(key: KeyPath) -> str:
    """A key path as in `models[0].knowledge`."""
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".") or "the grid"


def _line(node: yaml.Node | None, key: KeyPath) -> int:
    """Line of the key, or of the closest part around it that is in the file."""
    line = 1
    for step in key:
        if isinstance(node, yaml.MappingNode):
            # A later item replaces an earlier one.
            entries = [(name, value) for name, value in node.value if name.value == step]
            if not entries:
                break
            name, node = entries[-1]
            line = name.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line
