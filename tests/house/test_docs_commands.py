"""Command lines of README and docs, run as they are printed with the files of `examples/`."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from cli_fixture import invoke, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(?:hapax|python cli\.py)\s+(\S.*)")
_FOLDER = re.compile(r"\]\(((?:\.\./)+examples/[\w-]+)/[^)]+\)")
_SHELL = {"", "console", "sh", "bash", "shell"}

ELSEWHERE = {
    "architecture.md": "test_worked_examples",
    "commands.md": "test_docs: it is the output of --help",
    "language.md": "test_rule_files: its blocks are outputs",
    "tutorial.md": "test_tutorial",
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
    for kind, text in _FENCE.findall(page.read_text("utf-8")):
        if kind in _SHELL:
            matches = (_COMMAND.fullmatch(line) for line in text.splitlines())
            lines += [match[1] for match in matches if match]
    return lines


def pages() -> list[Path]:
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


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
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
    used = {pattern for page in pages() for line in commands(page) for pattern in reasons(line)}

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
