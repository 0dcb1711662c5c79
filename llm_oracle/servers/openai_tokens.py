"""The tokenizer of OpenAI's own models, whose server has no endpoint for tokens: tiktoken.

Its files must be on this machine already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hapax.grammar.extras import missing_of

Tokenizer = Callable[[str], list[int]]


class _NotHere(Exception):  # noqa: N818  # not an error: the file of a tokenizer is not on this machine
    """The file of a tokenizer would have to be downloaded."""


def own_tokenizer(model: str) -> tuple[Tokenizer | None, str]:
    """The tokenizer of one of OpenAI's models; None, with the reason and remedy, if it is not at hand.

    Nothing is downloaded: tiktoken would fetch the file of a tokenizer from a server that the user did not name.
    """
    if missing := missing_of("openai"):
        return None, missing
    import tiktoken
    from tiktoken import load

    read_file: Any = load.read_file

    def read_local_file(path: str) -> bytes:
        if "://" in path:
            raise _NotHere
        return read_file(path)  # type: ignore[no-any-return]  # tiktoken's own function

    reading: Any = load  # a module whose function is exchanged
    reading.read_file = read_local_file
    try:
        encoding = tiktoken.encoding_for_model(model)
    except KeyError:
        return None, f"tiktoken does not know the tokenizer of {model}."
    except _NotHere:
        command = f"""python -c "import tiktoken; tiktoken.encoding_for_model('{model}')" """.strip()
        return None, f"The file of its tokenizer is not on this machine. Download it once: {command}."
    finally:
        reading.read_file = read_file
    # A value may spell a special token; it is a text like any other.
    return lambda text: list(encoding.encode(text, disallowed_special=())), ""
