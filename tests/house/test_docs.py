"""The pages match the program: what is generated, what can be run, and what is linked."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from math import log
from pathlib import Path
from typing import Any

import click
import pytest
from cli_fixture import invoke

import hapax
from hapax import cli
from scripts.commands_page import commands_page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_RUN = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(?:hapax|python cli\.py)\s+(.+)")
_MAKE = re.compile(r"(?:\$ )?make\s+([\w-]+)")
_SHELL = {"|", ">", ">>", "<", "&&", ";", "&"}


def pages() -> list[Path]:
    """All pages of the repository; those of installed packages and caches lie in hidden folders."""
    found = (path.relative_to(ROOT) for path in ROOT.rglob("*.md"))
    return sorted(ROOT / path for path in found if not any(part.startswith(".") for part in path.parts))


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in _FENCE.findall(page.read_text(encoding="utf-8")) if kind == language]


def code(page: Path) -> Iterator[str]:
    """Every line of a fenced block and every inline piece of code."""
    text = page.read_text(encoding="utf-8")
    for _, block in _FENCE.findall(text):
        yield from (line.strip() for line in block.splitlines())
    yield from re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))


def command_lines(page: Path) -> list[list[str]]:
    """The words after `hapax` of every command on the page, up to the first pipe or redirection."""
    matches = (_RUN.fullmatch(line) for line in code(page))
    return [_words(match[1]) for match in matches if match]


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)
    ends = (place for place, word in enumerate(words) if word in _SHELL)
    return words[: next(ends, len(words))]


def resolved(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and what follows its name. Raises KeyError for one that does not exist."""
    command: click.Command = cli.main
    # Options of the program stand before the command.
    context = click.Context(cli.main, **cli.main.context_settings)
    _, after, _ = cli.main.make_parser(context).parse_args(list(words))
    if after and after[0] in cli.main.commands:
        words = after
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command, words = command.commands[words[0]], words[1:]
    return command, words


def option_names(command: click.Command) -> set[str]:
    named = (
        name for option in command.get_params(click.Context(command)) for name in (*option.opts, *option.secondary_opts)
    )
    return {"-h", "--help", *named}


def test_language_page_is_generated() -> None:
    """After a change of grammar or faults: `make docs`."""
    command = [sys.executable, "-m", "hapax.grammar.writing.language_page"]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)

    assert (DOCS / "language.md").read_bytes() == made.stdout


def test_commands_page_is_generated() -> None:
    """After a change of a command: `make docs`."""
    assert (DOCS / "commands.md").read_text(encoding="utf-8") == commands_page()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_on_a_page_exist(page: Path) -> None:
    """Every `hapax ...` line names a command and options that it has; every `make ...` a target."""
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    made = {match[1] for line in code(page) if (match := _MAKE.match(line))}
    unknown = []
    for words in command_lines(page):
        command, rest = resolved(words)
        options = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        unknown += [(words, option) for option in sorted(options - option_names(command))]

    assert unknown == []
    assert made <= targets


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_resolve(page: Path) -> None:
    """A link to a file of the repository leads to a file that is there."""
    links = _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    local = [link.split("#")[0] for link in links if not re.match(r"\w+:|#", link)]

    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.slow
def test_the_site_is_built_and_asks_for_nothing_outside(tmp_path: Path) -> None:
    """`make site` builds every page without a warning, finds it by search, and its pages load nothing from elsewhere."""
    options = ["-q", "-W", "--keep-going", "-b", "html", "-c", str(DOCS), str(ROOT), str(tmp_path)]

    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stderr
    written = [path for path in (tmp_path / "docs").rglob("*.html") if path.name != "index.html"]
    assert {path.stem for path in written} == {path.stem for path in DOCS.rglob("*.md") if path.stem != "index"}
    for page in written:
        loaded = re.findall(r"<(?:link|script|img)[^>]*(?:href|src)=\"(\w+:)?//", page.read_text("utf-8"))
        assert loaded == [], page.name
    assert (tmp_path / "searchindex.js").exists()


def test_the_script_of_the_models_page_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules, script and command of the worked example, typed in as they stand, print what the page shows."""
    page = DOCS / "how-to" / "models.md"
    (rules,), (script,) = blocks(page, "rules"), blocks(page, "json")
    (tmp_path / "dish.rules").write_text(rules, encoding="utf-8")
    (tmp_path / "dish.json").write_text(script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (command,) = (words for words in command_lines(page) if "scripted:dish.json" in words)
    (printed,) = (block for block in blocks(page, "") if block.startswith("     head"))

    result = invoke(*command)

    assert result.exit_code == 0
    assert printed in result.stdout


def test_the_example_of_a_backend_works() -> None:
    """The example of a backend is a critic, and its arithmetic is right."""
    (source,) = blocks(DOCS / "reference" / "backends.md", "python")
    names: dict[str, Any] = {}
    exec(compile(source, "backends.md", "exec"), names)  # noqa: S102  # our own page
    asked: list[str] = []

    def post(body: dict[str, Any]) -> dict[str, Any]:
        asked.append(body["prompt"])
        likeliest = {" yes": log(0.5), "Yes": log(0.1), " no": log(0.2), "maybe": log(0.2)}
        return {
            "choices": [{"logprobs": {"top_logprobs": [likeliest]}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        }

    critic = names["ServerCritic"]("tiny", post)
    (score,) = critic.probabilities(["Butter is in naan."])

    assert score.probability == pytest.approx(0.75)
    assert "Statement: Butter is in naan." in asked[0]


@pytest.mark.parametrize("sql", blocks(DOCS / "reference" / "knowledge-base.md", "sql"))
def test_queries_of_the_knowledge_base_page_run(sql: str, tmp_path: Path) -> None:
    """Each query names tables and columns that exist."""
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    with closing(sqlite3.connect(tmp_path / "kb.db")) as connection:
        assert all(count in (0, None) for row in connection.execute(sql) for count in row)


def test_every_table_is_described(fresh_kb: hapax.KnowledgeBase) -> None:
    """The page of the knowledge base names all tables."""
    text = (DOCS / "reference" / "knowledge-base.md").read_text(encoding="utf-8")

    assert [table for table in fresh_kb.counts() if f"`{table}`" not in text] == []


CITED = re.compile(r"`(test_\w+)::(test_\w+)`")


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_cited_tests_exist(page: Path) -> None:
    """A page that names a test as evidence names one that is there."""
    for file, name in CITED.findall(page.read_text(encoding="utf-8")):
        (path,) = (ROOT / "tests").rglob(f"{file}.py")
        source = path.read_text(encoding="utf-8")
        assert f"def {name}(" in source, f"{file}::{name}"
