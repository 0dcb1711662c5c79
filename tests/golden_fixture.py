"""Texts that tests hold whole: `tests/golden/` has them, and HAPAX_RENEW_GOLDEN=1 writes them anew."""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
"""Read the differences before renewed files are committed."""


def compared(name: str, text: str) -> None:
    """Fail unless the file of this name has exactly this text, which must not be empty."""
    path = GOLDEN / f"{name}.txt"
    assert text.strip()
    if os.environ.get("HAPAX_RENEW_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
