"""Mined rules as proposals for the sheet in which people decide on rules, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hapax.engine.expansion.propose import Proposal
from hapax.engine.expansion.review import Review
from hapax.engine.expansion.rule_file import Sources, refuse_overwrite
from hapax.engine.expansion.sheet import ReviewSheet
from hapax.engine.mining.mine import MinedRule
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb.records import content_id

ORIGIN = "mined"
"""The column `model` of mined rules."""


def without_output(library: Library, output: Path) -> Library:
    """The library without what an earlier run wrote to the output. Raises HapaxError if a person changed that file."""
    refuse_overwrite(output)
    own = str(output.resolve())

    def is_own(file: str | None) -> bool:
        return bool(file) and str(Path(file or "").resolve()) == own

    return replace(
        library,
        rules=tuple(rule for rule in library.rules if not is_own(rule.place.file)),
        signatures=tuple(item for item in library.signatures if not is_own(item.place.file)),
    )


def mined_review(mined: Sequence[MinedRule], library: Library, output: Path, sheet: Path | None) -> Review:
    """The review of mined rules, with a row for each in the sheet."""
    sources = Sources(library, library, None, output)
    review = Review(sources, ReviewSheet(sheet or output.with_suffix(".decisions.csv")), library)
    review.add([_proposal(item) for item in mined], ORIGIN)
    return review


def _proposal(mined: MinedRule) -> Proposal:
    columns = {name: _text(value) for name, value in figures(mined).items() if name not in ("name", "rule")}
    addition = Library(rules=(mined.rule,), signatures=mined.signatures)
    # The same rule keeps its row and its decision when its figures change.
    identity = content_id("mined rule", mined.rule.sentence)[:12]
    return Proposal(identity, "", "", addition, notes=(summary(mined),), columns=columns)


def summary(mined: MinedRule) -> str:
    """The figures on one line."""
    measures = mined.measures
    rejected = f", {counted(measures.rejected, 'prediction')} rejected" if measures.rejected else ""
    return (
        f"support {measures.support}, head coverage {measures.head_coverage:.2f}, "
        f"confidence {measures.confidence:.2f}, PCA confidence {measures.pca_confidence:.2f}{rejected}"
    )


def figures(mined: MinedRule) -> dict[str, Any]:
    """The rule with its figures and examples, for JSON."""
    measures = mined.measures
    return {
        "name": mined.rule.name,
        "rule": mined.rule.sentence,
        "support": measures.support,
        "head_coverage": round(measures.head_coverage, 6),
        "confidence": round(measures.confidence, 6),
        "pca_confidence": round(measures.pca_confidence, 6),
        "predictions": measures.predictions,
        "counted": measures.counted,
        "rejected": measures.rejected,
        "examples": list(mined.examples),
        "counter_examples": list(mined.counter_examples),
    }


def _text(value: object) -> str:
    return "; ".join(value) if isinstance(value, list) else str(value)
