"""The wording of messages is that of `messages.yaml`, the only place in the tests that holds whole sentences."""

from __future__ import annotations

import shlex
from contextlib import chdir
from pathlib import Path

import pytest
import yaml
from cli_fixture import invoke

import hapax

CATALOGUE = yaml.safe_load((Path(__file__).parent / "messages.yaml").read_text("utf-8"))


@pytest.mark.parametrize("code", CATALOGUE["codes"])
def test_a_fault_is_worded_as_in_the_catalogue(code: str) -> None:
    """Fact and remedy of the example of each code."""
    said = next(found for found in hapax.explain_fault(code).diagnostics if found.code == code)

    assert f"{said.message}. {said.remedy.removesuffix('.')}." == CATALOGUE["codes"][code]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalogue's commands."""
    folder = tmp_path_factory.mktemp("world")
    for name, text in CATALOGUE["world"]["files"].items():
        (folder / name).write_text(text, "utf-8")
    with chdir(folder):
        for line in CATALOGUE["world"]["before"]:
            assert invoke(*shlex.split(line)[1:]).exit_code == 0
    return folder


@pytest.mark.parametrize("entry", CATALOGUE["commands"], ids=lambda entry: entry["when"])
def test_a_command_is_worded_as_in_the_catalogue(entry: dict[str, str], world: Path) -> None:
    """All that a command says in a situation, in one line; usage lines and excerpts are left out."""
    with chdir(world):
        result = invoke(*shlex.split(entry["run"])[1:], environment={"OPENAI_API_KEY": ""})

    assert entry["says"] in " ".join(result.output.split())
