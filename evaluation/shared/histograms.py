"""Bins of histograms."""

from __future__ import annotations

from collections.abc import Sequence

from hapax.evaluation.shared.lazy import np


def bin_edges(low: float, high: float, bins: int) -> list[float]:
    """Edges of equal bins from `low` to `high`; around the value if both are equal."""
    return [float(edge) for edge in np.histogram_bin_edges([low, high], bins)]


def bin_counts(values: Sequence[float], edges: Sequence[float]) -> list[int]:
    """Number of values in each bin; values beyond the edges count in the first and last bin."""
    # np.histogram would drop values beyond the edges.
    clipped = np.clip(np.asarray(values, dtype=float), edges[0], edges[-1])
    return [int(count) for count in np.histogram(clipped, edges)[0]]
