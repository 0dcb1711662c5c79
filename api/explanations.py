"""Why something holds, or why not."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hapax.api.statements import Statement
from hapax.engine.explain import why as explain
from hapax.engine.explain import why_not as explain_failure
from hapax.engine.inference.theory import Theory
from hapax.engine.kept_rules import sound_rules
from hapax.engine.logic.time_limit import time_limit
from hapax.engine.probability.probability_options import ProbabilityOptions
from hapax.engine.stories import Story, story_text
from hapax.grammar.arguments import checked, texts
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class Explanation:
    """Why something holds or does not, as a tree of lines. `str()` gives indented text; a notebook unfolds it."""

    story: Story

    @property
    def lines(self) -> list[tuple[int, str, str]]:
        """Depth, kind (`goal`, `fact`, `call`, `gate` ...) and text of every line, from the top."""
        return [(depth, line.kind, line.text) for depth, line in self.story.lines()]

    def to_json(self) -> list[dict[str, Any]]:
        return self.story.to_json()

    def __str__(self) -> str:
        return story_text(self.story)

    def _repr_html_(self) -> str:
        """Nested lists; built line by line, because a proof may be deeper than Python's stack."""
        pieces, open_lists = [], 0
        for depth, line in self.story.lines():
            # Close the lists of lines that are not above this one.
            while open_lists > depth:
                pieces.append("</details></li></ul>")
                open_lists -= 1
            text = html.escape(line.text)
            if line.children:
                pieces.append(f"<ul><li><details open><summary>{text}</summary>")
                open_lists += 1
            else:
                pieces.append(f"<ul><li>{text}</li></ul>")
        # Close what is still open.
        return "".join(pieces) + "</details></li></ul>" * open_lists


@checked
@extras_named()
def why(
    text: str | Statement,
    rules: Library,
    kb: KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    probability: ProbabilityOptions | None = None,
    seconds: float = 60,
) -> Explanation:
    """Explain why a statement, given itself or by text or id, or an atom holds, down to prompts and thresholds.

    `probability`: first the probability of the atom, or of what the statement's rule needs, with its best proofs.
    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    rules = sound_rules(rules)
    if rules.is_uncertain:
        probability = probability or ProbabilityOptions()
    named = text if isinstance(text, str) else text.id
    with time_limit(kb, seconds, "seconds"):
        return Explanation(explain(Theory(rules, kb, texts(assume)), named, probability=probability))


@checked
def why_not(
    atom: str, rules: Library, kb: KnowledgeBase, *, assume: str | Sequence[str] = (), seconds: float = 60
) -> Explanation:
    """Explain which gate stopped a value, or which premise of which rule failed.

    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    rules = sound_rules(rules)
    with time_limit(kb, seconds, "seconds"):
        return Explanation(explain_failure(Theory(rules, kb, texts(assume)), atom))
