"""Files that commands of the pages read and that a reader has: labels, filled-in sheets, published data, scores, a key."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from booqa_fixture import planted
from cli_fixture import run
from entailment_fixture import PEOPLE, PLACES, checkpoint
from lint_fixture import FILES, RULES
from openai_fake import FakeServer, answered
from plug_in_fixture import EXAMPLE, install
from votes_fixture import fill_csv, fill_page

import hapax

NOWHERE = "http://127.0.0.1:9/v1"
"""A server that is never there."""
ALIASES = [
    {"model_id": name, "model_name": name, "api_base": NOWHERE, "logprobs": "echo"} for name in ("big", "served")
]


MINED = """
@name mined
is_ingredient_in(Ingredient A, Dish B) & is_ingredient_in(Ingredient C, Dish B) -> goes_with(Ingredient A, Ingredient C)
"""
CURRENCY = """
oracle uses_currency(Country, Currency): "[1] uses [2]" / "[1] does not use [2]" / "does [1] use [2]?"
given lives_in(Person, Country): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"
given can_pay_with(Person, Currency): "[1] can pay with [2]" / "[1] cannot pay with [2]" / "can [1] pay with [2]?"
@name currency
lives_in(Person X, Country A) & uses_currency(Country A, Currency B) -> can_pay_with(Person X, Currency B)
"""


DATA = Path(__file__).parent.parent.parent / "shared" / "data"
"""Data that others published, which lies beside the repository."""


def write_inputs(folder: Path) -> None:
    """All files that are there before the first command of a page."""
    corpus = "".join(json.dumps(line) + "\n" for line in planted().lines)
    (folder / "triples.jsonl").write_text(corpus, "utf-8")
    for name, text in (("person#location", PLACES), ("person#person", PEOPLE)):
        path = folder / "graphs" / f"{name}_sim.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    checkpoint(folder / "roberta-base", "encoder")
    (folder / "probing_set").mkdir()
    for name, text in FILES.items():
        (folder / "probing_set" / name).write_text(text, "utf-8")
    (folder / "rules.json").write_text(json.dumps(RULES), "utf-8")
    (folder / "models.yaml").write_text(json.dumps(ALIASES), "utf-8")
    (folder / "answers.json").write_text(json.dumps({"defaults": {"critic": 0.9}}), "utf-8")
    for name in ("all-MiniLM-L6-v2", "bert-base-uncased"):
        checkpoint(folder / name, "encoder")


def write_labels(folder: Path) -> None:
    """Labels of all ingredients that a search has proposed so far: right ones."""
    with hapax.KnowledgeBase(folder / "hapax.db", read_only=True) as kb:
        facts = kb.facts("is_ingredient_in")
    rows = [["true", fact.predicate, *fact.arguments] for fact in facts]
    (folder / "labels.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows), "utf-8")


def fill_sheets(folder: Path) -> None:
    """Two people answer every question of the sheets, the second one otherwise than the first."""
    sheets = folder / "sheets"
    if not sheets.exists():
        voters = ("--voter", "ann", "--voter", "bob")
        run("votes", "export", "predicates", *voters, "--out", sheets, "--db", folder / "hapax.db")
    for path in sorted(sheets.glob("*.csv")):
        choice = int(path.stem.endswith(("bob", "2")))
        fill_csv(path, lambda row, choice=choice: row["choices"].split(" / ")[choice])
    for path in sorted(sheets.glob("statements-*.html")):
        shutil.move(fill_page(path, lambda row: "yes"), folder)


def make_key(folder: Path) -> None:
    """The key of `ssh-keygen`, and the file of signers, as the page makes them."""
    key = folder / "key"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        (folder / "signers.txt").write_text(f"ada {key.with_suffix('.pub').read_text('utf-8')}", "utf-8")


def scores(pairs: Path) -> str:
    """A score for each pair of a file, as other programs write them."""
    labels = [line.split("\t")[2] for line in pairs.read_text("utf-8").splitlines()]
    return "".join(f"{int(label == 'True')} {place / len(labels)}\n" for place, label in enumerate(labels))


def write_scores(folder: Path) -> None:
    """Two models have scored the development set."""
    for name in ("whole.txt", "alone.txt"):
        (folder / name).write_text(scores(folder / "dev.txt"), "utf-8")


def copy_answers(folder: Path) -> None:
    """The published answers of a model about pairs."""
    published = next((DATA / "levyholt" / "gpt4_dev").glob("*_text_*.json"))
    lines = published.read_text("utf-8").splitlines(keepends=True)
    (folder / "answers.json").write_text("".join(lines[:200]), "utf-8")


def answer_queue(folder: Path) -> None:
    """A service of batches answers the queue."""
    answered(folder / "next.jsonl", folder / "answered.jsonl", FakeServer())


def write_their_scores(folder: Path) -> None:
    """Somebody has scored the pairs that an earlier command of the page wrote."""
    (folder / "theirs.txt").write_text(scores(folder / "pairs" / "pairs-dev.txt"), "utf-8")


def write_mined_rules(folder: Path) -> None:
    """A mined rule that was accepted in the review."""
    (folder / "mined.rules").write_text(MINED, "utf-8")


def install_echo(folder: Path) -> None:
    """The plug-in of the page, and rules to search with it."""
    install(EXAMPLE, folder / "site", folder)
    importlib.invalidate_caches()
    (folder / "currency.rules").write_text(CURRENCY, "utf-8")


def write_texts(folder: Path) -> None:
    """A folder of texts, in which names are counted."""
    (folder / "texts").mkdir(exist_ok=True)
    (folder / "texts" / "dishes.txt").write_text("Butter is in hummus. Shrimp is in matapa.\n", "utf-8")


BEFORE: tuple[tuple[str, Callable[[Path], None]], ...] = (
    (r"--labels labels\.tsv", write_labels),
    (r"votes import|soundness sheets/|winograd import", fill_sheets),
    (r"--seal key|--signers", make_key),
    (r"--results answered", answer_queue),
    (r"scores:whole", write_scores),
    (r"scores:theirs", write_their_scores),
    (r"mined\.rules my\.rules", write_mined_rules),
    (r"-m echo:", install_echo),
    (r"counts:texts", write_texts),
    (r"scores:answers\.json", copy_answers),
)
"""Steps before commands with these patterns that the reader takes, or another program."""


def prepared(line: str, folder: Path) -> str:
    """The command with the names of this folder, after the steps before it."""
    for pattern, step in BEFORE:
        if re.search(pattern, line):
            step(folder)
    with hapax.KnowledgeBase(folder / "hapax.db", read_only=True) as kb:
        newest = kb.runs()[-1].id
    # As a shell expands it; and a run of the author's.
    line = re.sub(r"sheets/\*\.csv", " ".join(map(str, sorted((folder / "sheets").glob("*.csv")))), line)
    # Any free port.
    line = re.sub(r"^serve\b", "serve --port 0", line)
    return re.sub(r"--run [0-9a-f]{32}", f"--run {newest}", line)
