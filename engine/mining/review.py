"""Mined rules as proposals for the sheet in which people decide on rules, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hapax.engine.chosen_rules import sound_rules
from hapax.engine.expansion.propose import Proposal
from hapax.engine.expansion.review import Review
from hapax.engine.expansion.rule_file import Sources, refuse_overwrite
from hapax.engine.expansion.sheet import ReviewSheet
from hapax.engine.mining.mine import MinedRule, MiningOptions, mine
from hapax.grammar.arguments import checked
from hapax.grammar.printing import signature_text
from hapax.grammar.rules import Library
from hapax.grammar.words import counted
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase

ORIGIN = "mined"
"""The column `model` of mined rules."""


@dataclass(frozen=True, slots=True)
class MinedRules:
    """The mined rules, the most confident first. `notes`: what was left out, sampled or not explored.

    `review` shows, decides and writes them, as for `expand_rules`; None without an output.
    """

    rules: tuple[MinedRule, ...]
    notes: tuple[str, ...]
    review: Review | None = None

    @property
    def text(self) -> str:
        """All mined rules as rule text, with their figures as comments."""
        # Several rules may declare one predicate.
        declared: dict[str, None] = {}
        for mined in self.rules:
            declared.update(dict.fromkeys(map(signature_text, mined.signatures)))
        blocks = ["\n".join(declared)]
        blocks += [f"# {summary(mined)}\n{mined.rule}" for mined in self.rules]
        return "\n\n".join(filter(None, blocks)) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Rules with their figures and examples, and the notes."""
        return {"rules": [figures(mined) for mined in self.rules], "notes": list(self.notes)}


@checked
def mine_rules(
    rules: Library,
    kb: KnowledgeBase,
    options: MiningOptions | None = None,
    *,
    output: str | Path | None = None,
    sheet: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> MinedRules:
    """Mine closed rules from the facts of a knowledge base, with values that a critic rejected as counter-examples.

    `rules`: give types and templates; what they state is left out. `output`: a rule file for the accepted rules, with
    a sheet of decisions beside it or in `sheet`. Decide by `review.decide(row, "accept", by)`, then call
    `review.write()`. `progress` takes a line of text now and then.
    """
    library, review = sound_rules(rules), None
    # What an earlier run wrote to the output is mined again, and not taken for known.
    if output is not None:
        library = without_output(library, Path(output))
    found = mine(kb, library, options or MiningOptions(), progress or (lambda _: None))
    if output is not None:
        review = mined_review(found.rules, library, Path(output), None if sheet is None else Path(sheet))
    return MinedRules(found.rules, found.notes, review)


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
