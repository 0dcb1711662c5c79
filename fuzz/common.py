"""What the targets share: instrumented imports, a run under limits, and any bytes as a text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS = 60
"""How long a run lasts, unless --seconds says otherwise."""

INPUT_SECONDS, MEMORY_MB = 10, 2048
"""What one input may take; more is a crash like any other."""

WATCHED = ["grammar", "kb", "llm_oracle", "engine", "evaluation", "lark", "csv", "json"]
"""Packages whose branches guide a run."""

CRASHES = Path(__file__).parent.parent / "tests" / "crashes"
"""Inputs that once broke a contract, a folder for each target. The tests run them all."""


def instrumented(name: str) -> AbstractContextManager[object]:
    """Imports inside it are watched for coverage where the module `name` is run, and are plain imports elsewhere."""
    if name != "__main__":
        return nullcontext()
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is missing. Install it with: pip install --editable '.[fuzz]'")
    manager: AbstractContextManager[object] = atheris.instrument_imports(include=WATCHED)
    return manager


def text_of(data: bytes) -> str:
    """Any bytes as a text, half characters included, as a file with faulty UTF-8 gives them."""
    return data.decode("utf-8", "surrogateescape")


def told(refused: Exception) -> None:
    """A refusal says what it is about."""
    assert str(refused).strip()


def run(target: str, check: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Fuzz `check` for a while, from the seeds and all crashes met so far. A new crash is kept beside these.

    Arguments of the command line are `--seconds N` and whatever libFuzzer takes.
    """
    import atheris

    arguments = sys.argv[1:]
    seconds = SECONDS
    if "--seconds" in arguments:
        place = arguments.index("--seconds")
        seconds = int(arguments[place + 1])
        del arguments[place : place + 2]
    kept = CRASHES / target
    kept.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="hapax-fuzz-") as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MEMORY_MB}"]
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={kept}/", *arguments, folder, str(kept)], check)
        atheris.Fuzz()
