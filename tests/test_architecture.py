"""The house rules that a reader relies on: imports go one way, each library has one place, pages match the program."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "commands", "cli")
FENCES = {
    "gensim": ("llm_oracle/backends/vectors.py",),
    "jinja2": ("evaluation/report/page.py", "evaluation/votes/sheets.py"),
    "inflect": ("engine/expansion/replies.py",),
    "filelock": ("kb/asking.py",),
    "lark": ("grammar/parser.py",),
    "matplotlib": ("evaluation/drawing.py", "evaluation/figures.py"),
    "networkx": ("grammar/dependencies.py",),
    "pyswip": ("engine/session.py", "engine/worker.py"),
    "sqlite_utils": ("kb/",),
    "torch": ("llm_oracle/backends/", "llm_oracle/embedded/", "llm_oracle/finetuning.py"),
    "transformers": ("llm_oracle/backends/", "llm_oracle/embedded/", "llm_oracle/finetuning.py"),
    "httpx2": ("llm_oracle/backends/openai_transport.py",),
    "tenacity": ("llm_oracle/backends/openai_limits.py",),
    "aiolimiter": ("llm_oracle/backends/openai_limits.py",),
    "yaml": (
        "evaluation/baselines/config.py",
        "evaluation/dataset/yaml_text.py",
        "llm_oracle/backends/openai_aliases.py",
    ),
    "pyarrow": ("evaluation/dataset/tables.py",),
    "inspect_ai": ("evaluation/dataset/shipped_inspect.py", "evaluation/winograd/shipped_inspect.py"),
    "datasets": ("evaluation/dataset/shipped_lm_eval.py", "evaluation/winograd/shipped_lm_eval.py"),
    "sklearn": ("evaluation/booqa/retrieval.py",),
    "wn": ("evaluation/entailment/lexicon.py",),
    "ray": ("engine/cluster/on_ray.py",),
    "click": ("commands/", "cli.py"),
    "rich": ("commands/",),
}


def sources() -> list[Path]:
    return [*sorted(path for room in ROOMS[:-1] for path in (ROOT / room).rglob("*.py")), ROOT / "cli.py"]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    """A room imports only from rooms to its left, and a library only in its one place."""
    place = path.relative_to(ROOT).as_posix()
    room = place.split("/")[0].removesuffix(".py")

    against = [name for name in imports(path) if name in ROOMS and ROOMS.index(name) > ROOMS.index(room)]
    outside = [name for name in imports(path) if name in FENCES and not place.startswith(FENCES[name])]

    assert against == []
    assert outside == []


def test_sources_are_found() -> None:
    """The walk above sees every room, so an empty list cannot pass for order."""
    seen = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in sources()}

    assert seen == set(ROOMS)
