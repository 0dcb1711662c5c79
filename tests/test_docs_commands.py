"""Every command line of README and docs, run as it is printed with the files of `examples/`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from cli_fixture import invoke, run
from page_files import DATA, prepared, write_inputs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = ROOT / "examples"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"(?:\$ )?(?:\.venv/bin/)?(?:hapax|python cli\.py)\s+(\S.*)")
_FOLDER = re.compile(r"\]\(\.\./examples/([\w-]+)/[^)]+\)")
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
    r"evaluate grid|grid\.db|evaluate ablation": "searches in four variants and more, which takes minutes",
    r"calibrate --critic paraphrased": "needs facts of references that a model has proposed; test_promises",
    r"^search .*--executor ray": "needs a cluster; test_cluster_ray",
    r"--figure (4|13)": "needs rules with statements at both ends, by more than one method; test_likelihoods",
    r"--judge vectors:": "needs a table of word vectors that has to be downloaded; test_word_vectors",
    r"winograd learn": "learns for minutes",
}
"""Patterns of commands that are not run, each with its reason."""

STANDS_IN = "scripted:stand-in.json"
ANSWERS = {"defaults": {"generate": ["butter", "shrimp"], "critic": 0.9, "likelihood": -2}}
"""The script of the model that stands in for models on servers, and for those that have to be downloaded."""

_ELSEWHERE_MODEL = re.compile(
    r"(?<![\w:])(?:openai|hf):[\w./@:-]+|(?<=[ ,:+])smollm2(?:-critic)?(?=[ ,+]|$)|(?<=calibrate --critic )embedded"
)
_ALL_RULES = re.compile(r"search (?:--(?!rule)|my\.rules shipped|shipped/library)(?!.*--rule (?!rule1))")
_FEW = "--values 3 --calls 1 --beam 3"

ASKED_FOR = {
    _ALL_RULES.pattern: "searches many rules, which takes minutes; two of them here, with short lists",
    r"^derive shipped/library": "takes half a minute",
    r"evaluate entailment (train|test )|gauge/": "trains models; here from a small one",
    r"^evaluate long-tail": "asks a model of 135 million parameters; another stands in",
    r"scores:theirs": "reads scores of the reader's own; they are written here",
    r"# the next ones": "needs labels, which are given here",
    r"mined\.rules my\.rules|my\.rules mined\.rules": "reads mined rules after their review; some are written here",
    r"--db more\.db": "reads what another command here finds",
    r"-m echo:": "needs the plug-in of docs/examples/hapax-echo installed; it is for this test",
    r"^serve": "serves until it is stopped, here at once",
    _ELSEWHERE_MODEL.pattern: "another model stands in",
    r"wsc_273|generated_modify": "needs the data that lies beside the repository",
    r"winograd (reword|hybrid|robustness|learn)|--method reasoner|reworded\.jsonl": "needs the extra `english`",
    r"^calibrate|--calibrated": "needs labels of the reader's own; they are written here",
    r"probing_set|lint\.db": "needs the files of LINK's code; small ones are written here",
    r"answers\.json|whole\.txt": "needs answers of other programs; they are written here",
    r"graphs/|--of shop_in": "needs published entailment graphs; small ones are written here",
    r"--encoder": "needs an encoder; a small one without training stands in",
    r"^leaderboard": "asks several models; others stand in",
    r"sheets/|^votes (report|next)|reversed\.jsonl": "needs what people have filled in; it is filled in here",
    r"^verify .*--(seal|signers)": "needs a key; one is made here",
    r"evaluate booqa": "needs a WordNet (Debian: wordnet-base)",
    r"--queue": "waits for a service of batches, which answers here; rounds are left, with exit code 3",
    r"^mcp": "waits for an agent; here its input ends at once",
    r"report --run": "names a run of the author's; the newest one is taken",
}
"""Patterns of commands that are run when they are asked for (`-m pages`), each with what they need."""


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
    all_pages = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
    return [page for page in all_pages if page.name not in ELSEWHERE and commands(page)]


def reasons(line: str, patterns: Iterable[str] = (*NOT_RUN, *ASKED_FOR)) -> list[str]:
    """The patterns that a command has; none for a command that is run."""
    return [pattern for pattern in patterns if re.search(pattern, line)]


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
    # Where plug-ins are installed.
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_commands_of_a_page_run_as_printed(page: Path, folder: Path) -> None:
    """In their order, beside the files of the folders of `examples` that the page links to, all end with exit code 0."""
    for name in _FOLDER.findall(page.read_text("utf-8")):
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
    failed = []
    for line in commands(page):
        if not reasons(line):
            code, output = carried_out(arguments(line))
            if code != 0:
                failed.append((line, output))

    assert failed == []


@pytest.mark.pages
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in pages()
        if any(reasons(line, ASKED_FOR) and not reasons(line, NOT_RUN) for line in commands(page))
    ],
    ids=lambda page: page.name,
)
def test_the_other_commands_of_a_page_run_with_a_model_that_stands_in(page: Path, folder: Path) -> None:
    """All commands but those of `NOT_RUN` end with exit code 0, with the files that a reader has and other models."""
    if not DATA.exists():
        pytest.skip("the published data lies beside the repository, not in it")
    for name in ("allergy", *_FOLDER.findall(page.read_text("utf-8"))):
        shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True)
    for data in ("wsc_273_annotated_final.csv", "generated_modify_tq.csv"):
        shutil.copy(DATA / "cr_wsc" / data, folder)
    write_inputs(folder)
    for name in ("stand-in", "stand-in-critic"):
        (folder / f"{name}.json").write_text(json.dumps(ANSWERS), "utf-8")
    failed = []
    for line in commands(page):
        if not reasons(line, NOT_RUN):
            ready = prepared(line, folder)
            # A queue is for models on servers, and a small encoder lies under the name of the large one.
            is_kept = re.search("--queue|encoder", line)
            words = arguments(ready if is_kept else _ELSEWHERE_MODEL.sub(_stand_in, ready))
            if _ALL_RULES.match(line):
                chosen = "" if "my.rules shipped" in line else f"--rule {' --rule '.join(_rules_of(line))}"
                words += shlex.split(f"{chosen} {_FEW}")
            code, output = carried_out(words)
            # A budget that ends a command, and rounds that are left, are no faults of the command.
            if code not in (0, 3 if re.search("--(max-|queue)", line) else 0):
                failed.append((line, output))

    assert failed == []


def carried_out(words: list[str]) -> tuple[int, str]:
    """The exit code and output of a command; a server is ended as soon as it listens."""
    if words[0] != "serve":
        result = invoke(*words)
        return result.exit_code, result.output
    told = ""
    with subprocess.Popen([sys.executable, ROOT / "cli.py", *words], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        while "?token=" not in told and (line := server.stderr.readline()):
            told += line
        server.kill()
    return int("?token=" not in told), told


def _stand_in(model: re.Match[str]) -> str:
    """The model that stands in; a critic that is combined with a model is another one."""
    return "scripted:stand-in-critic.json" if model[0] == "smollm2-critic" else STANDS_IN


def _rules_of(line: str) -> tuple[str, ...]:
    """Two rules of a search of all rules, or one of the library."""
    return ("orchard_in_the_wrong_climate",) if "shipped/library" in line else ("allergy", "currency")


def test_every_reason_is_needed() -> None:
    """Each pattern of commands that are not run has a command on a page."""
    used = {pattern for page in pages() for line in commands(page) for pattern in reasons(line)}

    assert sorted((*NOT_RUN, *ASKED_FOR)) == sorted(used)


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
    assert f"\n{(EXAMPLES / name).read_text('utf-8')}```\n" in (DOCS / page).read_text("utf-8")
