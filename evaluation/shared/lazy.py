"""Libraries for numbers, each imported when a function first uses it: the help of a command needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import scipy  # type: ignore[import-untyped]  # ships no types
else:

    class _Lazy:
        """A module that is imported at its first use."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    np, scipy = _Lazy("numpy"), _Lazy("scipy")

__all__ = ["np", "scipy"]
