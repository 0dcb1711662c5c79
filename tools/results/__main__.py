"""Measure a real model and write the page: `python -m tools.results --model smollm2`.

Each part stores its tables in the folder of the run, and every answer of a model is in the journal there, so a run that
was killed goes on where it was. Parts whose data is absent are left out of the page with the reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from hapax.grammar.errors import HapaxError
from tools.results.measuring import PartResult, ResultsRun
from tools.results.page import write_page
from tools.results.parts import PARTS, Part

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    """Measure all parts, or those that are named, and write the page; exit with status 1 and a message on failure."""
    parser = argparse.ArgumentParser(prog="python -m tools.results", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2", help="model to measure, default: smollm2")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "results", help="where a run keeps its answers")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data", help="published data sets")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results.md", help="page to write")
    parser.add_argument("--part", action="append", choices=[part.name for part in PARTS], help="only these parts")
    parser.add_argument("--share", type=float, default=1.0, help="share of each sample; below 1 for a trial run")
    options = parser.parse_args()
    if not 0 < options.share <= 1:
        parser.error("--share is above 0 and at most 1")
    try:
        with ResultsRun(options.folder, options.model, options.data, options.share) as run:
            results = {part.name: _measured(part, run, options.part) for part in PARTS}
            write_page(options.page, run, results)
    except HapaxError as fault:
        raise SystemExit(f"error: {fault}") from None
    sys.stderr.write(f"written: {options.page}\n")


def _measured(part: Part, run: ResultsRun, chosen: list[str] | None) -> PartResult | None:
    """The stored result of a part, or a new one; None for a part that is not chosen and was never measured."""
    stored = run.stored(part.name)
    if stored is not None or (chosen is not None and part.name not in chosen):
        return stored
    sys.stderr.write(f"{time.strftime('%H:%M:%S')}  {part.title}\n")
    began = time.monotonic()
    findings = part.measure(run)
    result = run.store(part.name, findings, time.monotonic() - began)
    sys.stderr.write(f"          {result.seconds:.0f} s\n")
    return result


if __name__ == "__main__":
    main()
