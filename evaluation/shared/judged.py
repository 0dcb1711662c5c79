"""People's judgements of statements, in counts and in the sentences that every page, card and report shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Self

from hapax.engine.judgements import LINK_ANNOTATORS, Judgement
from hapax.grammar.words import counted


@dataclass(frozen=True, slots=True)
class JudgedCounts:
    """Numbers of statements by their judgement. `people`: voters; `link_denied`: denied by LINK's annotators alone."""

    true: int = 0
    false: int = 0
    undecided: int = 0
    people: int = 0
    link_denied: int = 0

    @classmethod
    def of(cls, found: Iterable[Judgement]) -> Self:
        """Count judgements, of which each is on another text."""
        words, link_denied = {"true": 0, "false": 0, "undecided": 0}, 0
        people: set[str] = set()
        for judgement in found:
            if judgement.word is None:
                continue
            people |= judgement.voters
            if judgement.in_shares:
                words[judgement.word] += 1
            else:
                link_denied += judgement.is_true is False
        return cls(**words, people=len(people - {LINK_ANNOTATORS}), link_denied=link_denied)

    @property
    def judged(self) -> int:
        """Number of statements that people of whom every answer is known judged."""
        return self.true + self.false + self.undecided

    def sentence(self) -> str:
        """The counts in words, for every place that speaks of them."""
        parts = []
        if self.judged:
            parts.append(
                f"{counted(self.people, 'person has', 'people have')} judged {counted(self.judged, 'statement')}: "
                f"by majority {self.true} true, {self.false} false, {self.undecided} undecided."
            )
        if self.link_denied:
            noun = "further statement" if self.judged else "statement"
            parts.append(
                f"LINK's annotators denied {counted(self.link_denied, noun)}; what they affirmed is not known."
            )
        return " ".join(parts) or "Nobody has judged these statements. How many of them are false is not known."

    def to_json(self) -> dict[str, Any]:
        return {"judged": self.judged, **asdict(self)}


def judgement_text(judgement: Judgement) -> str:
    """The judgement on one statement in words; empty if nobody judged it."""
    parts = []
    if judgement.word is not None:
        parts.append("undecided" if judgement.is_true is None else f"{judgement.word} by majority")
    if judgement.typed is False:
        parts.append("with a value of a wrong type")
    return f"People's judgement: {', '.join(parts)}." if parts else ""
