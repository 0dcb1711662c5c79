"""Shared by the targets: instrumented imports, a run under limits, and bytes as text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

SECONDS = 60
"""Default length of a run; --seconds overrides it."""

INPUT_SECONDS, MEMORY_MB = 10, 2048
"""Limits per input; exceeding one counts as a crash."""

WATCHED = ["hapax", "lark", "csv", "json"]
"""Packages whose branch coverage guides a run."""

CRASHES = Path(__file__).parent.parent / "tests" / "crashes"
"""Inputs that once broke a contract, with a folder per target. The tests run them all."""


def instrumented(name: str) -> AbstractContextManager[object]:
    """Context in which imports are instrumented for coverage if the module `name` is run as a program."""
    if name != "__main__":
        return nullcontext()
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed. Install it with: pip install --editable '.[fuzz]'")
    manager: AbstractContextManager[object] = atheris.instrument_imports(include=WATCHED)
    return manager


def text_of(data: bytes) -> str:
    """The bytes as text; invalid UTF-8 becomes lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def assert_explained(error: Exception) -> None:
    """An error has a message."""
    assert str(error).strip()


def run(target: str, check: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Fuzz `check` with atheris, from the seeds and all earlier crashes. A new crash is stored beside these.

    The command line takes `--seconds N` and the arguments of libFuzzer.
    """
    import atheris

    arguments = sys.argv[1:]
    seconds = SECONDS
    if "--seconds" in arguments:
        index = arguments.index("--seconds")
        seconds = int(arguments[index + 1])
        del arguments[index : index + 2]
    crashes = CRASHES / target
    crashes.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="hapax-fuzz-") as folder:
        for number, seed in enumerate(seeds):
            (Path(folder) / str(number)).write_bytes(seed)
        limits = [f"-max_total_time={seconds}", f"-timeout={INPUT_SECONDS}", f"-rss_limit_mb={MEMORY_MB}"]
        atheris.Setup([sys.argv[0], *limits, f"-artifact_prefix={crashes}/", *arguments, folder, str(crashes)], check)
        atheris.Fuzz()
