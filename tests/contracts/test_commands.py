"""Commands as people use them: `commands/*.yaml` says what each prints, writes and ends with.

A file has a world (`files`, and commands that run `before` its cases) and `cases`. A case begins in a copy of this world:

    - does: The behaviour in one sentence.
      files: {my.rules: TEXT}           # further files
      steps:
      - run: hapax check my.rules       # stdin: TEXT, environment: {NAME: TEXT}
        code: 4                         # 0 where it is left out
        prints: [HPX101]                # words on stdout
        says: ['my.rules:1:12']         # words on stderr
        never: [Traceback]              # words on neither
        json: {faults: [{code: HPX101, line: int}]}
        writes: {out.csv: [ann]}        # files, with words in them
        leaves_out: [hapax.db]          # files that must not be there

`json` is the shape of stdout: names of types (`int`, `str`, `number`, `bool`, `list`, `dict`, `null`, `any`) or values; a list gives the shape
of its first elements, a mapping some of the keys. A case with a single step may have its keys itself.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import invoke

FOLDER = Path(__file__).parent / "commands"
KEYS = {"run", "stdin", "environment", "code", "prints", "says", "never", "json", "writes", "leaves_out"}
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "int": int, "str": str, "number": (int, float), "bool": bool, "list": list, "dict": dict, "null": type(None), "any": object,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A case of a file."""

    path: Path
    does: str
    files: Mapping[str, str]
    steps: tuple[Mapping[str, Any], ...]

    def __str__(self) -> str:
        return f"{self.path.stem}: {self.does}"


def cases() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text("utf-8"))["cases"]:
            steps = entry.get("steps") or [{key: value for key, value in entry.items() if key in KEYS}]
            unknown = {key for step in steps for key in step} - KEYS | entry.keys() - KEYS - {"does", "files", "steps"}
            assert not unknown, f"{path.name}, {entry['does']}: unknown keys {unknown}"
            yield Case(path, entry["does"], entry.get("files", {}), tuple(steps))


@pytest.fixture(scope="module")
def world_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The folder in which the commands before the cases of a file have run; they run once."""

    @cache
    def made(path: Path) -> Path:
        about = yaml.safe_load(path.read_text("utf-8"))
        folder = tmp_path_factory.mktemp(path.stem)
        write(folder, about.get("files", {}))
        with chdir(folder):
            for line in about.get("before", ()):
                result = invoke(*shlex.split(line)[1:])
                assert result.exit_code == 0, f"{line}\n{result.output}"
        return folder

    return made


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_a_command_does_what_its_case_says(case: Case, world_of: Callable[[Path], Path], tmp_path: Path) -> None:
    """Exit code, words on stdout and stderr, shape of JSON and written files are those of the case."""
    folder = tmp_path / "case"
    shutil.copytree(world_of(case.path), folder)
    write(folder, case.files)
    with chdir(folder):
        for step in case.steps:
            check(step, folder)


def check(step: Mapping[str, Any], world: Path) -> None:
    words = shlex.split(step["run"])
    assert words[0] == "hapax"
    result = invoke(*words[1:], answers=step.get("stdin", ""), environment=step.get("environment"))
    shown = f"{step['run']}\nstdout:\n{result.stdout}\nstderr:\n{result.stderr}"
    assert result.exit_code == step.get("code", 0), shown
    assert [word for word in step.get("prints", ()) if flat(word) not in flat(result.stdout)] == [], shown
    assert [word for word in step.get("says", ()) if flat(word) not in flat(result.stderr)] == [], shown
    assert [word for word in step.get("never", ()) if flat(word) in flat(result.stdout + result.stderr)] == [], shown
    if "json" in step:
        differences = list(unlike(json.loads(result.stdout), step["json"], "$"))
        assert differences == [], shown
    for name, parts in step.get("writes", {}).items():
        text = (world / name).read_text("utf-8", "replace")
        assert [part for part in parts if part not in text] == [], f"{name}:\n{text[:2000]}"
    assert [name for name in step.get("leaves_out", ()) if (world / name).exists()] == [], shown


def flat(text: object) -> str:
    """A text in one line: where a message is wrapped depends on the terminal."""
    return " ".join(str(text).split())


def unlike(value: Any, shape: Any, at: str) -> Iterator[str]:
    """Places at which a JSON value has another shape."""
    if isinstance(shape, dict):
        missing = [key for key in shape if not isinstance(value, dict) or key not in value]
        yield from (f"{at}: no {key!r} in {value!r}" for key in missing)
        for key in shape.keys() - set(missing):
            yield from unlike(value[key], shape[key], f"{at}.{key}")
    elif isinstance(shape, list):
        if not isinstance(value, list) or len(value) < len(shape):
            yield f"{at}: {value!r} has fewer than {len(shape)} elements"
        else:
            for number, inner in enumerate(shape):
                yield from unlike(value[number], inner, f"{at}[{number}]")
    elif not is_like(value, shape):
        yield f"{at}: {value!r} is not {shape!r}"


def is_like(value: Any, shape: Any) -> bool:
    """A value of the named type, or the value itself; a truth value is no number."""
    if isinstance(shape, str) and shape in TYPES:
        return isinstance(value, TYPES[shape]) and not (isinstance(value, bool) and shape in ("int", "number"))
    return bool(value == shape)
