"""The pages: links, commands, examples, tutorial, notebook and glossary."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import click
import pytest
from cli_fixture import invoke, run

import hapax
from hapax import cli
from scripts.commands_page import commands_page

# --- docs -------------------------------------------------------------------------------------------------------------


# --- docs -------------------------------------------------------------------------------------------------------------


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


# --- commands ---------------------------------------------------------------------------------------------------------


EXAMPLES = ROOT / "examples"

COMMAND_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(?:hapax|python cli\.py)\s+(\S.*)")
_FOLDER = re.compile(r"\]\(((?:\.\./)+examples/[\w-]+)/[^)]+\)")
COMMAND_SHELL = {"", "console", "sh", "bash", "shell"}

ELSEWHERE = {
    "architecture.md": "test_a_worked_example_does_what_it_says",
    "commands.md": "test_docs: it is the output of --help",
    "language.md": "test_rule_files: its blocks are outputs",
    "tutorial.md": "test_every_command_prints_what_the_page_shows",
}
"""Pages whose commands another test runs, or that have none."""

NOT_RUN = {
    r"--(precision|statement-precision) ": "needs 60 labels and more; test_promises",
    r"evaluate grid|grid\.db": "searches in four variants and more, which takes minutes",
    r"calibrate --critic paraphrased": "needs facts of references that a model has proposed; test_promises",
    r"search .*--executor ray": "needs a cluster; test_cluster_ray",
    r"--figure (4|13)": "needs rules with statements at both ends, by more than one method; test_likelihoods",
    r"--judge vectors:": "needs a table of word vectors that has to be downloaded; test_word_vectors",
    r"search (?:--(?!rule)|my\.rules shipped|shipped/library)(?!.*--rule (?!rule1))": "searches many rules, which takes minutes",
    r"^derive shipped/library": "takes half a minute",
    r"^evaluate long-tail": "asks a model of 135 million parameters",
    r"scores:theirs": "reads scores of the reader's own",
    r"# the next ones": "needs labels",
    r"mined\.rules my\.rules|my\.rules mined\.rules": "reads mined rules that a person accepted",
    r"-m echo:": "needs the plug-in of docs/examples/hapax-echo installed; test_plug_ins",
    r"^serve": "serves until it is stopped; test_serving",
    (
        r"(?<![\w:])(?:openai|hf):[\w./@:-]+|(?<=[ ,:+])smollm2(?:-critic)?(?=[ ,+]|$)|(?<=calibrate --critic )embedded"
    ): "needs a server, or a model that has to be downloaded",
    r"wsc_273|generated_modify": "needs the data that lies beside the repository",
    r"^model calibrate|--calibrated": "needs labels of the reader's own; test_promises",
    r"probing_set|lint\.db": "needs the files of LINK's code; test_lint_import",
    r"whole\.txt|gauge": "needs scores of other programs; test_entailment",
    r"sheets/|^votes (report|next)|reversed\.jsonl": "needs what people have filled in; test_vote_sheets",
    r"evaluate booqa": "needs a WordNet; test_booqa",
    r"--queue": "waits for a service of batches; test_offline_queue",
    r"^kb mcp": "waits for an agent; test_agents",
    r"report --run": "names a run of the author's; test_report_page",
}
"""Patterns of commands that are not run, each with its reason."""


def commands(page: Path) -> list[str]:
    """The command lines in the shell blocks of a page, without the name of the program."""
    lines: list[str] = []
    for kind, text in COMMAND_FENCE.findall(page.read_text("utf-8")):
        if kind in COMMAND_SHELL:
            matches = (_COMMAND.fullmatch(line) for line in text.splitlines())
            lines += [match[1] for match in matches if match]
    return lines


def commands_pages() -> list[Path]:
    """The pages with commands that are run here."""
    all_pages = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in all_pages if page.name not in ELSEWHERE and commands(page)]


def reasons(line: str) -> list[str]:
    """The patterns that a command has; none for a command that is run."""
    return [pattern for pattern in NOT_RUN if re.search(pattern, line)]


def arguments(line: str) -> list[str]:
    """The words of a command up to a comment or a redirection."""
    words = shlex.split(line, comments=True)
    return words[: words.index(">")] if ">" in words else words


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base like that of `make search`: two shipped rules, the embedded model, small lists."""
    folder = tmp_path_factory.mktemp("searched")
    sizes = ("--values", "3", "--calls", "1", "--beam", "3", "--likelihood", "frequency", "--evaluator", "frequency")
    run("search", "--rule", "allergy", "--rule", "currency", *sizes, "--no-progress", "--db", folder / "hapax.db")
    # Facts of the pages that only a search with longer lists finds.
    rows = ("predicate,argument1,argument2", "is_ingredient_in,shrimp,matapa", "is_ingredient_in,butter,hummus")
    (folder / "more.csv").write_text("\n".join(rows) + "\n", "utf-8")
    run("import", folder / "more.csv", "--db", folder / "hapax.db")
    return folder / "hapax.db"


@pytest.fixture
def folder(tmp_path: Path, searched: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean folder with the knowledge base, from which the files of the repository that pages name can be reached."""
    for name in ("hapax.db", "colleague.db"):
        shutil.copy(searched, tmp_path / name)
    for name in ("docs", "examples", "rules", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", commands_pages(), ids=lambda page: page.name)
def test_the_commands_of_a_page_run_as_printed(page: Path, folder: Path) -> None:
    """In their order, beside the files of the folders of `examples` that the page links to, all end with exit code 0."""
    for link in _FOLDER.findall(page.read_text("utf-8")):
        if (named := (page.parent / link).resolve()).parent == EXAMPLES:  # and not one of docs/examples
            shutil.copytree(named, folder, dirs_exist_ok=True)
    failed = []
    for line in commands(page):
        if not reasons(line):
            result = invoke(*arguments(line))
            if result.exit_code != 0:
                failed.append((line, result.output))

    assert failed == []


def test_every_reason_is_needed() -> None:
    """Each pattern of commands that are not run has a command on a page."""
    used = {pattern for page in commands_pages() for line in commands(page) for pattern in reasons(line)}

    assert sorted(NOT_RUN) == sorted(used)


@pytest.mark.parametrize(
    ("page", "name"),
    [
        ("entailment.md", "shopping/edges.tsv"),
        ("knowledge-base.md", "facts/airports.txt"),
        ("knowledge-base.md", "facts/facts.csv"),
        ("knowledge-base.md", "facts/facts.jsonl"),
        ("knowledge-base.md", "facts/mapping.yaml"),
        ("models.md", "models/dish.json"),
        ("models.md", "models/dish.rules"),
        ("probabilities.md", "travel/edges.tsv"),
        ("probabilities.md", "travel/facts.csv"),
        ("probabilities.md", "travel/travel.rules"),
        ("rules.md", "expansion/table5.json"),
    ],
)
def test_a_page_shows_the_file_of_the_example(page: str, name: str) -> None:
    """A file that stands on a page is, to the letter, the one in `examples`."""
    assert f"\n{(EXAMPLES / name).read_text('utf-8')}```\n" in next(DOCS.rglob(page)).read_text("utf-8")


# --- notebook ---------------------------------------------------------------------------------------------------------


NOTEBOOK = json.loads((DOCS / "notebook.ipynb").read_text("utf-8"))


def carried_out(source: str, names: dict[str, Any]) -> str:
    """The output of a cell, and then the value of its last line if that is an expression, as Jupyter shows it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)  # noqa: S102  our own cells
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None  # noqa: S307
    return printed.getvalue() + ("" if value is None else repr(value))


def stored(cell: dict[str, Any]) -> str:
    """The text of a cell's outputs."""
    texts = []
    for output in cell["outputs"]:
        texts += output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
    return "".join(texts)


def plain(text: str) -> str:
    """The text without ids of runs, which depend on the version."""
    return re.sub(r"\b[0-9a-f]{32}\b", "ID", text).strip()


def test_the_notebook_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each code cell, run in the folder of the docs, gives the output that is stored beside it, and no cell is empty."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(DOCS)
    names: dict[str, Any] = {}
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]

    assert len(cells) > 5
    for cell in cells:
        shown = stored(cell)
        assert shown
        assert plain(carried_out("".join(cell["source"]), names)) == plain(shown), cell["id"]


# --- tutorial ---------------------------------------------------------------------------------------------------------


PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "airports"


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that it prints."""
    blocks = re.findall(r"^```console\n\$ (.*)\n((?:.*\n)*?)```$", PAGE, re.MULTILINE)
    return [(command, [line for line in shown.splitlines() if line.strip()]) for command, shown in blocks]


def tutorial_plain(text: str) -> str:
    """The text with single spaces, since columns are as wide as the terminal, and without the seconds that steps took."""
    return re.sub(r"\b\d+\.\d{2,}\b", "0.00", " ".join(text.split()))


@pytest.fixture
def tutorial_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "airports")
    monkeypatch.chdir(tmp_path / "airports")
    return tmp_path / "airports"


def test_every_command_prints_what_the_page_shows(tutorial_folder: Path) -> None:
    """Ten commands lead from the table to statements with proofs, a report and a dataset."""
    assert len(steps()) == 10
    for command, shown in steps():
        program, *words = shlex.split(command)
        output = tutorial_plain(run(*words).output)

        assert program == "hapax"
        assert [line for line in shown if tutorial_plain(line) not in output] == [], command
    assert {"air.db", "air.html", "air"} <= {path.name for path in tutorial_folder.iterdir()}


def test_the_page_shows_the_files_of_the_example() -> None:
    """Rules and mapping stand on the page as they are, and the table with its first rows."""
    table = (EXAMPLE / "airports.csv").read_text("utf-8").splitlines()
    assert (EXAMPLE / "airports.rules").read_text("utf-8") in PAGE
    assert (EXAMPLE / "airports.yaml").read_text("utf-8") in PAGE
    assert "\n".join(table[:5]) in PAGE
    assert f"a table of {len(table) - 1} airports" in PAGE


# --- worked -----------------------------------------------------------------------------------------------------------


WORKED_PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "rules", "hapax")

WORLD = """
oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".
given eats(Person, Food): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?".
given may_eat(Person, Dish): "[1] may eat [2]" / "[1] may not eat [2]" / "may [1] eat [2]?".
@name may
eats(Person X, Food A) & is_in(Food A, Dish B) -> may_eat(Person X, Dish B)
"""
LONG = (
    " & ".join(f"has_part(Thing A, Part {letter})" for letter in "BCDEFGHIJKLM") + " -> is_complex(Thing A, Part B)\n"
)


@dataclass(frozen=True)
class Example:
    """A section of the page: new files, edits as (path, diff), and commands with words of their output."""

    title: str
    new_files: dict[str, str]
    edits: list[tuple[str, str]]
    commands: list[tuple[str, list[str]]]


def examples() -> list[Example]:
    _, _, section = WORKED_PAGE.partition("## Three changes, worked out")
    found = []
    for part in section.split("\n### ")[1:]:
        title, _, text = part.partition("\n")
        new_files = dict(re.findall(r"New file `([^`]+)`:\n\n```python\n(.*?)```", text, re.DOTALL))
        edits = re.findall(r"In `([^`]+)`:\n\n```diff\n(.*?)```", text, re.DOTALL)
        commands: list[tuple[str, list[str]]] = []
        for line in "".join(re.findall(r"```console\n(.*?)```", text, re.DOTALL)).splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        found.append(Example(title, new_files, edits, commands))
    return found


def edited(text: str, diff: str) -> str:
    """The text after one hunk: the lines with a blank or minus, found once, become those with a blank or plus."""
    lines = diff.splitlines()
    before = "".join(line[1:] + "\n" for line in lines if line[:1] != "+")
    after = "".join(line[1:] + "\n" for line in lines if line[:1] != "-")
    assert text.count(before) == 1, f"the page shows lines that are not there, or not once:\n{before}"
    return text.replace(before, after)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the program, with small rule files to try it on."""
    for room in ROOMS:
        # With the bytecode, which Python takes for the unchanged files; compiling takes longer than the commands.
        shutil.copytree(ROOT / room, tmp_path / room, symlinks=True, ignore=shutil.ignore_patterns("*.pyc.*"))
    for name in ("cli.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "world.rules").write_text(WORLD, "utf-8")
    (tmp_path / "long.rules").write_text(LONG, "utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("example", examples(), ids=lambda example: example.title)
def test_a_worked_example_does_what_it_says(example: Example, copy: Path) -> None:
    """The files of the example, changed as the page shows, make its commands print what it shows."""
    for path, text in example.new_files.items():
        (copy / path).write_text(text, "utf-8")
    for path, diff in example.edits:
        (copy / path).write_text(edited((copy / path).read_text("utf-8"), diff), "utf-8")

    for command, expected in example.commands:
        words = [sys.executable, *shlex.split(command)[1:]]
        done = subprocess.run(words, cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed = " ".join((done.stdout + done.stderr).split())
        assert [line for line in expected if line not in printed] == []


# --- glossary ---------------------------------------------------------------------------------------------------------


GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
GLOSSARY_ROOMS = ("grammar", "kb", "llm_oracle", "engine", "evaluation", "api", "commands", "tools", "cli.py")
VAGUE = frozenset({"one", "told", "held", "several", "each", "other", "thing", "what"})
MOST_VAGUE_NAMES = 14
MOST_PARAMETERS = 7
Function = ast.FunctionDef | ast.AsyncFunctionDef


@pytest.fixture(scope="module")
def nodes() -> list[tuple[str, ast.AST]]:
    """Each node of the production code, with its file."""
    files = sorted(
        file
        for room in GLOSSARY_ROOMS
        for file in (ROOT.glob(room) if room == "cli.py" else (ROOT / room).rglob("*.py"))
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
