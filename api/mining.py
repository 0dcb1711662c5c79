"""Mining rules from the facts of a knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.engine.expansion.review import Review
    from hapax.engine.mining.mine import MinedRule, MiningOptions
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase


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
        from hapax.engine.mining.review import summary
        from hapax.grammar.printing import signature_text

        # Several rules may declare one predicate.
        declared: dict[str, None] = {}
        for mined in self.rules:
            declared.update(dict.fromkeys(map(signature_text, mined.signatures)))
        blocks = ["\n".join(declared)]
        blocks += [f"# {summary(mined)}\n{mined.rule}" for mined in self.rules]
        return "\n\n".join(filter(None, blocks)) + "\n"

    def to_json(self) -> dict[str, Any]:
        """Rules with their figures and examples, and the notes."""
        from hapax.engine.mining.review import figures

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
    from hapax.api.operations import sound_rules
    from hapax.engine.mining.mine import MiningOptions, mine
    from hapax.engine.mining.review import mined_review, without_output

    rules = sound_rules(rules)
    # What an earlier run wrote to the output is mined again, and not taken for known.
    library = rules if output is None else without_output(rules, Path(output))
    found = mine(kb, library, options or MiningOptions(), progress or (lambda _: None))
    review = None
    if output is not None:
        review = mined_review(found.rules, library, Path(output), None if sheet is None else Path(sheet))
    return MinedRules(found.rules, found.notes, review)
