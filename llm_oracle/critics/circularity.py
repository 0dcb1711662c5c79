"""Circular judges: models that judge rankings by themselves, their teachers or their pupils."""

from __future__ import annotations

from hapax.llm_oracle.protocols import ModelIdentity


def is_circular(judge: ModelIdentity, ranker: ModelIdentity) -> bool:
    """True if the judge is the ranker, or one of them was trained on the other's scores."""
    return judge.name == ranker.name or judge.name in ranker.taught_by or ranker.name in judge.taught_by
