"""The file of `evaluate grid`: models, variants, temperatures and rules whose combinations are the cells.

The models below define the file's fields; the description of a field is the part of a fault that says what to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
)

from hapax.engine.search.ranking import KEEP_SHARE
from hapax.engine.search.settings import SearchSettings
from hapax.evaluation.link.ablation import VARIANTS, AblationVariant
from hapax.grammar.arguments import checked
from hapax.grammar.dependencies import BEAM
from hapax.grammar.errors import HapaxError
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.records import Distribution
from hapax.llm_oracle.prompts import LONG_TAIL_WORDINGS

USUAL_VARIANTS = tuple(
    variant for variant in VARIANTS if variant.name in ("full", "w/o critic", "w/o critic+likelihood")
)
"""The three variants of the paper."""

AUTO = "auto"
"""Judge that is chosen by what is known about the statements; see `Jury`."""

# An error message quotes at most this many items of a list, and characters of a value.
_ITEMS_SHOWN, _CHARACTERS_SHOWN = 10, 80

_SEARCH = SearchSettings()
_VARIANTS = {variant.name: variant for variant in VARIANTS}
_DISTRIBUTIONS = ", ".join(distribution.value for distribution in Distribution)

KeyPath = tuple[str | int, ...]
"""A place in the file: `("models", 0, "knowledge")`."""


class ConfigRejected(HapaxError):  # noqa: N818  # named like RulesRejected
    """A grid file with faults; the message has one line for each of them."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


def _printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError
    return text


# Not `min_length`: pydantic counts valid items, so one faulty item would also be reported as an empty list.
def _filled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError
    return values


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError
    return _filled(values)


def _variant(name: Any) -> AblationVariant:
    if not isinstance(name, str) or name not in _VARIANTS:
        raise ValueError
    return _VARIANTS[name]


# The order of the tables, whatever order the file has.
def _in_order(values: tuple[Any, ...]) -> tuple[Any, ...]:
    order = list(Distribution) if isinstance(values[0], Distribution) else list(VARIANTS)
    return tuple(sorted(values, key=order.index))


def _beside_config(path: Any, info: ValidationInfo) -> Path:
    if not isinstance(path, str) or info.context is None:
        raise ValueError  # pydantic turns a ValueError into a fault, and lets a TypeError pass
    folder: Path = info.context["folder"]
    return folder / _printable(path)


def _false_for_none(value: Any) -> Any:
    # An empty entry may be forgotten; only `false` says that no baseline is wanted.
    if value is None:
        raise ValueError
    return None if value is False else value


Text = Annotated[StrictStr, AfterValidator(_printable)]
# A whole number stays an int: run ids are hashes of the settings, in which 1 and 1.0 differ.
Number = StrictInt | StrictFloat
Temperature = Annotated[Number, Field(ge=0, le=100)]
Wording = Annotated[StrictInt, Field(ge=1, le=len(LONG_TAIL_WORDINGS))]
# FailFast: one fault for a list instead of one for each of its items.
Unrepeated = (FailFast(), AfterValidator(_distinct))


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_Part):
    """A row group of the tables: a knowledge model with its critic and ranker; without these it plays both roles."""

    name: Text = Field(description="a text that names the model in the tables")
    knowledge: Text = Field(description="a model such as embedded or openai:gpt-4.1")
    critic: Text | None = Field(default=None, description="a model; without it the knowledge model judges")
    likelihood: Text | None = Field(default=None, description="a model; without it the knowledge model ranks")


class InstructionBaseline(_Part):
    """Instruction-only generation; the defaults are the paper's. Tables show the first of the wordings."""

    wordings: Annotated[tuple[Wording, ...], *Unrepeated] = Field(
        default=(1,), description=f"a list of numbers from 1 to {len(LONG_TAIL_WORDINGS)}, each once"
    )
    count: StrictInt = Field(default=200, ge=1, le=100_000, description="a whole number from 1")
    values: StrictInt = Field(default=50, ge=1, le=1000, description="a whole number from 1 to 1000")
    calls: StrictInt = Field(default=8, ge=1, le=100_000, description="a whole number from 1")


class SearchOptions(_Part):
    """Options of `hapax search`; the serialization aliases are the fields of `SearchSettings`."""

    beam: StrictInt = Field(default=BEAM, ge=1, le=1_000_000, description="a whole number from 1")
    calls: StrictInt = Field(
        default=_SEARCH.calls_per_question,
        ge=1,
        le=1000,
        serialization_alias="calls_per_question",
        description="a whole number from 1 to 1000",
    )
    values: StrictInt = Field(
        default=_SEARCH.values_per_call,
        ge=1,
        le=1000,
        serialization_alias="values_per_call",
        description="a whole number from 1 to 1000",
    )
    keep_share: Number = Field(default=KEEP_SHARE, gt=0, le=1, description="a number above 0, at most 1")
    plan: Literal["cheapest", "premise-first", "conclusion-first", "link"] = Field(
        default="cheapest", description="one of cheapest, premise-first, conclusion-first, link"
    )

    def settings(self) -> dict[str, Any]:
        """The options that the file sets, by their names in `SearchSettings`."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class GridConfig(_Part):
    """A grid. `files` empty: the shipped rules; `rules` empty: all of them but definitions.

    `temperature` is that of tables 8 to 10, `temperatures` are the rows of table 7. `baseline` None: none is run.
    """

    models: Annotated[tuple[ModelEntry, ...], AfterValidator(_filled)] = Field(
        description="a list of models, each with name and knowledge"
    )
    files: Annotated[tuple[Annotated[Path, BeforeValidator(_beside_config)], ...], *Unrepeated] = Field(
        default=(), description="a list of rule files or folders, relative to this file"
    )
    rules: Annotated[tuple[Text, ...], *Unrepeated] = Field(default=(), description="a list of rule names, each once")
    variants: Annotated[
        tuple[Annotated[AblationVariant, BeforeValidator(_variant)], ...], *Unrepeated, AfterValidator(_in_order)
    ] = Field(default=USUAL_VARIANTS, description=f"a list of {', '.join(_VARIANTS)}, each once")
    distributions: Annotated[tuple[Distribution, ...], *Unrepeated, AfterValidator(_in_order)] = Field(
        default=tuple(Distribution), description=f"a list of {_DISTRIBUTIONS}, each once"
    )
    temperature: Temperature = Field(default=0.7, description="a number from 0")
    temperatures: Annotated[tuple[Annotated[Temperature, AfterValidator(float)], ...], *Unrepeated] = Field(
        default=(0.5, 0.7, 1.0), description="a list of numbers from 0, each once"
    )
    baseline: Annotated[InstructionBaseline | None, BeforeValidator(_false_for_none)] = Field(
        default=InstructionBaseline(), description="false, or wordings, count, values and calls"
    )
    search: SearchOptions = Field(
        default=SearchOptions(), description="a mapping with beam, calls, values, keep_share or plan"
    )
    evaluator: Text = Field(default="frequency", description="a model that measures delta")
    judge: Text = Field(default=AUTO, description="auto, or a model that judges as a critic")
    seed: StrictInt | None = Field(default=None, ge=0, le=2**63 - 1, description="a whole number from 0")

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

    Raises ConfigRejected with all faults of the file.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
        # Composed as well as loaded, because only nodes know their lines.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        content = read_yaml(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as fault:
        raise ConfigRejected([f"{path}: {_reason(fault)}. A grid is a YAML mapping such as docs/grid.yaml."]) from None
    faults: list[tuple[KeyPath, str]] = []
    config = None
    try:
        config = GridConfig.model_validate(content, context={"folder": path.parent})
    except ValidationError as rejected:
        faults += _faults(rejected, content)
    faults += _repeated_names(content)
    if config is None or faults:
        lines = dict(_lines(node))
        ends = [message if message.endswith("?") else f"{message}." for _, message in faults]
        raise ConfigRejected([f"{path}:{_line(key, lines)}: {end}" for (key, _), end in zip(faults, ends, strict=True)])
    return config


def _faults(rejected: ValidationError, content: Any) -> Iterator[tuple[KeyPath, str]]:
    """Key path and message of each faulty field: pydantic has an error for each item, and for each type of a union."""
    seen: set[KeyPath] = set()
    errors = rejected.errors(include_url=False, include_context=False, include_input=False)
    # Unknown fields first: what is missing may be one of them, misspelt.
    for error in sorted(errors, key=lambda error: error["type"] != "extra_forbidden"):
        # pydantic locates inside unions and tuples; faults are reported at the field.
        part, key, name = _place(error["loc"])
        field = key if name is None else (*key, name)
        if field in seen:
            continue
        seen.add(field)
        fields = part.model_fields
        if name is None:
            yield field, f"{_key_text(field)} should be a mapping with {', '.join(fields)}"
        elif name not in fields:
            near = get_close_matches(str(name), fields, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"its fields are {', '.join(fields)}"
            # The field that was meant is not also reported as missing.
            seen.update((*key, meant) for meant in near)
            yield field, f"{_key_text(key)} has no field {str(name)[:_CHARACTERS_SHOWN]!r}; {hint}"
        elif error["type"] == "missing":
            yield key, f"{_key_text(key)} needs {name}: {fields[str(name)].description}"
        else:
            value = content
            for step in field:
                value = value[step]
            yield field, f"{_key_text(field)} should be {fields[str(name)].description}, not {_short_text(value)}"


def _place(location: KeyPath) -> tuple[type[BaseModel], KeyPath, str | int | None]:
    """The part of the file that an error is in, its key path, and the name of the field; None: the part itself."""
    # Such as ("models", 0, "knowledge"), with further positions inside a list.
    match location:
        case ("models", int(), *names):
            return ModelEntry, location[:2], names[0] if names else None
        case ("baseline", name, *_):
            return InstructionBaseline, location[:1], name
        case ("search", name, *_):
            return SearchOptions, location[:1], name
    return GridConfig, (), location[0] if location else None


def _repeated_names(content: Any) -> Iterator[tuple[KeyPath, str]]:
    """Faults of models named as an earlier one; found apart from pydantic, so that they join all others."""
    models = content.get("models") if isinstance(content, dict) else None
    names: set[str] = set()
    for place, model in enumerate(models if isinstance(models, list) else []):
        name = model.get("name") if isinstance(model, dict) else None
        if isinstance(name, str) and name in names:
            key = ("models", place, "name")
            yield key, f"{_key_text(key)} is {_short_text(name)}, the name of an earlier model; rename one of them"
        elif isinstance(name, str):
            names.add(name)


def _key_text(key: KeyPath) -> str:
    """A key path as in `models[0].knowledge`."""
    if not key:
        return "the grid"
    text = str(key[0])
    for step in key[1:]:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text


def _line(key: KeyPath, lines: Mapping[KeyPath, int]) -> int:
    """Line of the key, or of the closest part around it that is in the file."""
    for end in range(len(key), -1, -1):
        if key[:end] in lines:
            return lines[key[:end]]
    return 1


def _lines(node: Any, key: KeyPath = (), above: frozenset[int] = frozenset()) -> Iterator[tuple[KeyPath, int]]:
    """Lines of all keys and items. `above`: ids of the nodes around this one, since an anchor can hold itself."""
    # No field is deeper than three levels; anchors can make the levels below exponentially large.
    if node is None or id(node) in above or len(key) > 3:
        return
    yield key, node.start_mark.line + 1
    within = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield from _lines(value, (*key, name.value), within)
                # A later item replaces an earlier one: the line of the key, not of its value, is reported.
                yield (*key, name.value), name.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _lines(value, (*key, place), within)


def _short_text(value: Any) -> str:
    """A value in short; with anchors, a few lines of YAML make a list that would fill the memory."""
    if isinstance(value, list):
        texts = ["..." if isinstance(part, dict | list) else _short_text(part) for part in value[:_ITEMS_SHOWN]]
        if len(value) > _ITEMS_SHOWN:
            texts.append("...")
        return f"[{', '.join(texts)}]"
    text = "a mapping" if isinstance(value, dict) else repr(value)
    return text if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]}..."


def _reason(fault: Exception) -> str:
    if isinstance(fault, yaml.MarkedYAMLError) and fault.problem_mark:
        return f"line {fault.problem_mark.line + 1}: {fault.problem}"
    return str(fault) if isinstance(fault, OSError) else f"cannot be read: {type(fault).__name__}"
