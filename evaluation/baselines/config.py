"""The file of `evaluate grid`: which models, variants, temperatures and rules make its cells.

Every fault is told with its line, what is wanted, and the nearest name that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from evaluation.ablation import VARIANTS, Variant
from grammar.errors import HapaxError
from kb.records import Distribution
from llm_oracle.prompts import LONG_TAIL_WORDINGS

USUAL_VARIANTS = ("full", "w/o critic", "w/o critic+likelihood")
"""The paper's three."""

USUAL_TEMPERATURES = (0.5, 0.7, 1.0)

MOST_SHOWN, LONGEST_SHOWN = 10, 80
"""Items of a list and characters of a value that a fault repeats."""

PLANS = ("cheapest", "premise-first", "conclusion-first", "link")


class ConfigRejected(HapaxError):  # noqa: N818  # said like RulesRejected
    """A file with faults; the message lists all of them, one a line."""

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One row group of the tables: a knowledge model with its critic and ranker. Without those it plays both."""

    name: str
    knowledge: str
    critic: str | None = None
    likelihood: str | None = None


@dataclass(frozen=True, slots=True)
class Baseline:
    """Instruction-only generation; the defaults are the paper's. `wordings`: of table 11; tables show the first."""

    wordings: tuple[int, ...] = (1,)
    count: int = 200
    values: int = 50
    calls: int = 8


@dataclass(frozen=True, slots=True)
class GridConfig:
    """What a grid runs. `files` empty: the shipped rules; `rules` empty: all of them but definitions.

    `temperature` is that of tables 8 to 10, `temperatures` are the rows of table 7. `baseline` None: none is run.
    `judge`: `auto`, or a model that judges all statements as a critic.
    """

    models: tuple[ModelEntry, ...]
    files: tuple[Path, ...] = ()
    rules: tuple[str, ...] = ()
    variants: tuple[Variant, ...] = ()
    distributions: tuple[Distribution, ...] = (Distribution.HEAD, Distribution.LONG_TAIL)
    temperature: float = 0.7
    temperatures: tuple[float, ...] = USUAL_TEMPERATURES
    baseline: Baseline | None = field(default_factory=Baseline)
    search: Mapping[str, Any] = field(default_factory=dict)
    evaluator: str = "frequency"
    judge: str = "auto"
    seed: int | None = None

    @property
    def asked(self) -> frozenset[str]:
        """The strings of all models that it names."""
        entries = [one for entry in self.models for one in (entry.knowledge, entry.critic, entry.likelihood)]
        return frozenset(one for one in (*entries, self.evaluator, self.judge) if one and one != "auto")


def read_config(path: Path) -> GridConfig:
    """The grid of a YAML file. Raises ConfigRejected with every fault of it."""
    try:
        text = path.read_text("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        told = yaml.safe_load(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as fault:
        raise ConfigRejected([f"{path}: {_why(fault)}. A grid is a YAML mapping such as docs/grid.yaml."]) from None
    reader = _Reader(path, dict(_lines(node)))
    return reader.config(told)


Check = Callable[[Any], bool]
Field = tuple[Check, str]
"""Whether a value fits, and what is wanted in words."""


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _number(low: float, high: float = math.inf, whole: bool = False) -> Check:
    kinds = (int,) if whole else (int, float)
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and bool(value) and all(map(check, value)) and _distinct(value)


def _distinct(values: Sequence[Any]) -> bool:
    return len(set(values)) == len(values)


def _one_of(names: Sequence[str]) -> Check:
    return lambda value: isinstance(value, str) and value in names


_VARIANT_NAMES = tuple(one.name for one in VARIANTS)
_DISTRIBUTION_NAMES = tuple(one.value for one in Distribution)
_TEMPERATURE = _number(0, 100)

_FIELDS: Mapping[str, Field] = {
    "models": (lambda value: isinstance(value, list) and bool(value), "a list of models, each with name and knowledge"),
    "files": (_list_of(_is_text), "a list of rule files or folders, relative to this file"),
    "rules": (_list_of(_is_text), "a list of rule names, each once"),
    "variants": (_list_of(_one_of(_VARIANT_NAMES)), f"a list of {', '.join(_VARIANT_NAMES)}, each once"),
    "distributions": (_list_of(_one_of(_DISTRIBUTION_NAMES)), f"a list of {', '.join(_DISTRIBUTION_NAMES)}"),
    "temperature": (_TEMPERATURE, "a number from 0"),
    "temperatures": (_list_of(_TEMPERATURE), "a list of numbers from 0, each once"),
    "baseline": (
        lambda value: value is False or isinstance(value, dict),
        "false, or wordings, count, values and calls",
    ),
    "search": (lambda value: isinstance(value, dict), "a mapping with beam, calls, values, keep_share or plan"),
    "evaluator": (_is_text, "a model that measures delta"),
    "judge": (_is_text, "auto, or a model that judges as a critic"),
    "seed": (_number(0, 2**63 - 1, whole=True), "a whole number from 0"),
}
_MODEL_FIELDS: Mapping[str, Field] = {
    "name": (_is_text, "what the tables call it, a text"),
    "knowledge": (_is_text, "a model such as embedded or openai:gpt-4.1"),
    "critic": (_is_text, "a model; without it the knowledge model judges"),
    "likelihood": (_is_text, "a model; without it the knowledge model ranks"),
}
_WORDING = _number(1, len(LONG_TAIL_WORDINGS), whole=True)
_BASELINE_FIELDS: Mapping[str, Field] = {
    "wordings": (_list_of(_WORDING), f"a list of numbers from 1 to {len(LONG_TAIL_WORDINGS)}, each once"),
    "count": (_number(1, 100_000, whole=True), "a whole number from 1"),
    "values": (_number(1, 1000, whole=True), "a whole number from 1 to 1000"),
    "calls": (_number(1, 100_000, whole=True), "a whole number from 1"),
}
_SEARCH_FIELDS: Mapping[str, Field] = {
    "beam": (_number(1, 1_000_000, whole=True), "a whole number from 1"),
    "calls": (_number(1, 1000, whole=True), "a whole number from 1"),
    "values": (_number(1, 1000, whole=True), "a whole number from 1 to 1000"),
    "keep_share": (lambda value: _number(0, 1)(value) and value > 0, "a number above 0, at most 1"),
    "plan": (_one_of(PLANS), f"one of {', '.join(PLANS)}"),
}
_SEARCH_NAMES = {"calls": "calls_per_question", "values": "values_per_call"}
"""What `SearchSettings` calls them."""

Key = tuple[str | int, ...]
"""Where in the file: `("models", 0, "knowledge")`."""


@dataclass
class _Reader:
    """Checks a file part by part and collects what is wrong."""

    path: Path
    lines: Mapping[Key, int]
    faults: list[str] = field(default_factory=list)

    def config(self, told: Any) -> GridConfig:
        fields = self._fields(told, (), _FIELDS, "the grid")
        if "models" not in fields and not self.faults:
            self._fault((), "lacks models, a list of models, each with name and knowledge")
        models = tuple(self._models(fields.get("models", ())))
        baseline = self._baseline(fields.get("baseline", {}))
        search = self._fields(fields.get("search", {}), ("search",), _SEARCH_FIELDS, "search")
        if self.faults:
            raise ConfigRejected(self.faults)
        variants = fields.get("variants", USUAL_VARIANTS)
        same = {name: fields[name] for name in ("temperature", "evaluator", "judge", "seed") if name in fields}
        return GridConfig(
            models,
            files=tuple(self.path.parent / one for one in fields.get("files", ())),
            rules=tuple(fields.get("rules", ())),
            variants=tuple(one for one in VARIANTS if one.name in variants),
            distributions=tuple(
                one for one in Distribution if one.value in fields.get("distributions", list(Distribution))
            ),
            temperatures=tuple(map(float, fields.get("temperatures", USUAL_TEMPERATURES))),
            baseline=baseline,
            search={_SEARCH_NAMES.get(name, name): value for name, value in search.items()},
            **same,
        )

    def _models(self, listed: Sequence[Any]) -> Iterator[ModelEntry]:
        seen: set[str] = set()
        for place, entry in enumerate(listed):
            key = ("models", place)
            fields = self._fields(entry, key, _MODEL_FIELDS, f"model {place + 1}")
            missing = [name for name in ("name", "knowledge") if isinstance(entry, dict) and name not in entry]
            for name in missing:
                self._fault(key, f"model {place + 1} lacks {name}, {_MODEL_FIELDS[name][1]}")
            if fields.get("name") in seen:
                self._fault((*key, "name"), f"the name {fields['name']!r} is there already; rename one of them")
            if "name" in fields and "knowledge" in fields:
                seen.add(fields["name"])
                yield ModelEntry(**fields)

    def _baseline(self, told: Any) -> Baseline | None:
        if told is False:
            return None
        fields = self._fields(told, ("baseline",), _BASELINE_FIELDS, "baseline")
        if "wordings" in fields:
            fields["wordings"] = tuple(fields["wordings"])
        return Baseline(**fields)

    def _fields(self, told: Any, key: Key, known: Mapping[str, Field], what: str) -> dict[str, Any]:
        """The fields that fit; what does not is noted."""
        if not isinstance(told, dict):
            self._fault(key, f"{what} should be a mapping with {', '.join(known)}")
            return {}
        found = {}
        for name, value in told.items():
            if name not in known:
                near = get_close_matches(str(name), known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
                self._fault((*key, name), f"{what} has no field {str(name)[:LONGEST_SHOWN]!r}; {hint}")
            elif not known[name][0](value):
                self._fault((*key, name), f"{name} should be {known[name][1]}, not {_shown(value)}")
            else:
                found[name] = value
        return found

    def _fault(self, key: Key, message: str) -> None:
        line = next((self.lines[key[:end]] for end in range(len(key), -1, -1) if key[:end] in self.lines), 1)
        self.faults.append(f"{self.path}:{line}: {message}{'' if message.endswith('?') else '.'}")


def _lines(node: yaml.Node | None, key: Key = (), above: frozenset[int] = frozenset()) -> Iterator[tuple[Key, int]]:
    """The line, from 1, of every key and item. A part that holds itself is entered once; three levels are enough."""
    if node is None or id(node) in above or len(key) > 3:
        return
    yield key, node.start_mark.line + 1
    within = above | {id(node)}
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield from _lines(value, (*key, name.value), within)
                yield (*key, name.value), name.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _lines(value, (*key, place), within)


def _shown(value: Any) -> str:
    """A value as the fault tells it; a few lines of YAML can make a list that has no end, so not all is written."""
    if isinstance(value, list):
        items = ["..." if isinstance(one, dict | list) else _shown(one) for one in value[:MOST_SHOWN]]
        return f"[{', '.join([*items, *(['...'] if len(value) > MOST_SHOWN else [])])}]"
    shown = "a mapping" if isinstance(value, dict) else repr(value)
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}..."


def _why(fault: Exception) -> str:
    if isinstance(fault, yaml.MarkedYAMLError) and fault.problem_mark:
        return f"line {fault.problem_mark.line + 1}: {fault.problem}"
    return str(fault) if isinstance(fault, OSError) else f"cannot be read: {type(fault).__name__}"
