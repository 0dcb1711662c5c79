"""The words of the house: the glossary fits the code, class names are unique, and names say something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "tools", "cli.py")
VAGUE = frozenset({"one", "told", "held", "several", "each", "other", "thing", "what"})
MOST_VAGUE_NAMES = 14
MOST_PARAMETERS = 7
Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def nodes() -> list[tuple[str, ast.AST]]:
    """Each node of the production code, with its file."""
    files = sorted(
        file for room in ROOMS for file in (ROOT.glob(room) if room == "cli.py" else (ROOT / room).rglob("*.py"))
    )
    trees = [(file.relative_to(ROOT).as_posix(), ast.parse(file.read_text("utf-8"))) for file in files]
    return [(file, node) for file, tree in trees for node in ast.walk(tree)]


@pytest.fixture(scope="module")
def classes(nodes: list[tuple[str, ast.AST]]) -> dict[str, list[str]]:
    """The files that define each class."""
    places: dict[str, list[str]] = {}
    for file, node in nodes:
        if isinstance(node, ast.ClassDef):
            places.setdefault(node.name, []).append(file)
    return places


def rows() -> list[tuple[str, str, str]]:
    """Word, class and refused words of each line of the glossary."""
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in GLOSSARY.splitlines() if line[:2] == "| "
    ]
    return [(word, name.strip("`"), refused) for word, _, name, refused in cells[1:]]


def test_the_glossary_names_each_class_where_it_is(classes: dict[str, list[str]]) -> None:
    """Each class of the glossary is defined once, in the module that the glossary names."""
    expected = {}
    for _, name, _ in rows():
        if name:
            module, _, class_name = name.rpartition(".")
            expected[class_name] = [module.replace(".", "/") + ".py"]

    assert {name: classes.get(name) for name in expected} == expected
    assert len(expected) > 20


def test_refused_words_are_in_no_class_name(classes: dict[str, list[str]]) -> None:
    """Synonyms that the glossary refuses name no class."""
    refused = {word for _, _, cell in rows() for word in cell.replace(",", " ").split()}
    found = {name for name in classes if refused.intersection(re.findall(r"[A-Z][a-z]*", name))}

    assert found == set()
    assert len(refused) > 5


def test_a_class_name_means_one_thing(classes: dict[str, list[str]]) -> None:
    """No class name is defined twice."""
    assert {name: files for name, files in classes.items() if len(files) > 1} == {}


def test_docstrings_say_what_a_thing_is(nodes: list[tuple[str, ast.AST]]) -> None:
    """No docstring begins with What, Whether, How or Whose."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [(file, ast.get_docstring(node) or "") for file, node in nodes if isinstance(node, documented)]

    assert [row for row in texts if re.match(r"(What|Whether|How|Whose)\b", row[1])] == []


def test_names_are_nouns_of_the_field(nodes: list[tuple[str, ast.AST]]) -> None:
    """Next to no variable is called one, told, held, several, each, other, thing or what."""
    stored = [(file, node) for file, node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    vague = [f"{file}:{node.lineno} {node.id}" for file, node in stored if node.id in VAGUE]

    assert len(vague) <= MOST_VAGUE_NAMES, vague


def test_no_function_takes_more_than_seven_parameters(nodes: list[tuple[str, ast.AST]]) -> None:
    """Outside the command line, whose functions take an argument for each option."""
    functions = [
        (file, node) for file, node in nodes if isinstance(node, Function) and not file.startswith("commands/")
    ]
    wide = []
    for file, node in functions:
        names = [item.arg for item in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS:
            wide.append(f"{file}:{node.lineno} {node.name}")

    assert wide == []
