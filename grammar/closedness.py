"""Closedness: which facts of a predicate are known to be all there are."""

from __future__ import annotations

from enum import StrEnum


class Closedness(StrEnum):
    """Extent to which absent facts of a predicate are false."""

    CLOSED = "closed"  # every fact that is not known is false
    CLOSED_FOR_FIRST = "closed for each first argument"  # so are those about a first argument of a known fact
    OPEN = "open"  # a fact that is not known may be true
