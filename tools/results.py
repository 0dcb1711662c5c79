"""Measure a real model by the commands of Hapax: `python -m tools.results --model smollm2 > docs/papers/results.md`.

Every answer of a model is in the journal of one knowledge base, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = """\
# Results with a real model

`make results` writes this page. The model is `{model}`: other people trained it for other purposes. Bad figures are
printed as they are. Intervals are for 95 %. The commands print more tables: by rule, by question, and the papers' own.
"""
LEFT_OUT = (
    "Statements at the ends",
    "AUC of head against long tail, by judge",
    "Delta by rule",
    "Agreement: ",
    "Ours, by question",
    "LINK's table",
    "Reference: ",
)
"""The first words of the tables that the page leaves out."""
SEARCH = "search --likelihood frequency --no-progress"
"""Head and long tail that the measured model neither found nor ranked."""
COMMANDS = {
    "Judge of the shipped search": (
        "evaluate long-tail --judge {model} --judge frequency",
        "evaluate likelihood --evaluator {model} --evaluator frequency --figure 3 --figure 4 --out {figures}",
    ),
    "Critic of facts": (f"model calibrate --critic {{model}} --labels {ROOT}/tools/embedded/outside_atlas.tsv",),
    "Thirteen questions about statements": ("evaluate probe -m {model} --sample 100",),
    "Directional entailment": (
        "evaluate entailment score {data}/levyholt/dev.txt -m {model} --scorer critic --scorer likelihood",
    ),
    "Winograd schemas": (
        "evaluate winograd ask {data}/cr_wsc/wsc_273_annotated_final.csv -m {model} "
        "--method likelihood --method likelihood-partial",
    ),
}
"""The commands under each heading of the page."""


def main() -> None:
    """Run the commands and print the page; a command that fails is named in it."""
    parser = argparse.ArgumentParser(prog="python -m tools.results", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="model to measure, default: smollm2")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "results", help="where a run keeps its answers")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="published data sets")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    database = options.folder / "kb.db"
    run(SEARCH, database)
    print(HEADER.format(model=options.model))
    for title, commands in COMMANDS.items():
        print(f"## {title}\n")
        for command in commands:
            filled = command.format(model=options.model, data=options.data, figures=options.folder / "figures")
            print(f"```console\n$ hapax {command.format(model=options.model, data='data', figures='figures')}")
            print(f"{shortened(run(filled, database))}```\n", flush=True)


def shortened(output: str) -> str:
    """The output of a command without the tables that the page leaves out."""
    return "\n\n".join(part for part in output.split("\n\n") if not part.startswith(LEFT_OUT))


def run(command: str, database: Path) -> str:
    """The output of a command, or the last line of its error."""
    words = [sys.executable, str(ROOT / "cli.py"), *shlex.split(command), "--db", str(database)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return ended.stdout if ended.returncode == 0 else f"{ended.stderr.strip().splitlines()[-1]}\n"


if __name__ == "__main__":
    main()
