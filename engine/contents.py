"""Contents of a knowledge base as counts: its tables, calls, requests, derived statements and what was withdrawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hapax.engine.answers.derivation import outdated_rules
from hapax.grammar.arguments import checked
from hapax.grammar.writing.notebook import Tabular
from hapax.grammar.writing.words import counted
from hapax.kb.records import NO_USABLE_REPLY, Outcome
from hapax.kb.store import KnowledgeBase


@dataclass(frozen=True)
class Withdrawn:
    """Counts of the withdrawn facts, and of the stored statements that no longer hold without them."""

    facts: int = 0
    statements: int = 0


@dataclass(frozen=True)
class Contents(Tabular):
    """Counts of a knowledge base, with a row for each of its tables.

    `derived`: statements stored by `derive`, by rule. `calls`: journaled calls by the role of the model.
    `refused`: role, reason and number of the calls without an answer. `outdated`: rules whose derived statements are
    from before facts changed. `sent`: requests that left for servers, those without a whole reply (`perhaps`) included.
    """

    counts: Mapping[str, int]
    derived: Mapping[str, int]
    calls: Mapping[str, int]
    refused: Sequence[tuple[str, str, int]]
    withdrawn: Withdrawn = Withdrawn()
    outdated: Sequence[str] = ()
    sent: int = 0
    perhaps: int = 0
    columns = ("table", "rows")

    def cells(self) -> list[tuple[Any, ...]]:
        """Table and number of rows."""
        return list(self.counts.items())

    @property
    def without_answer(self) -> list[str]:
        """A line for each reason why calls have no answer."""
        lines = []
        for role, reason, count in self.refused:
            is_unusable = reason.startswith(NO_USABLE_REPLY)
            why = (
                f"without a usable reply: {reason.removeprefix(NO_USABLE_REPLY)}"
                if is_unusable
                else f"refused: {reason}"
            )
            lines.append(f"{counted(count, 'call')} to the {role} model {why}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """All counts as one JSON object."""
        refused = [{"role": role, "reason": reason, "count": count} for role, reason, count in self.refused]
        return {
            **self.counts,
            "derived": self.derived,
            "outdated": list(self.outdated),
            "calls_by_role": self.calls,
            "refused": refused,
            "withdrawn": asdict(self.withdrawn),
            "requests_sent": self.sent,
            "perhaps_billed": self.perhaps,
        }


@checked
def stats(kb: KnowledgeBase) -> Contents:
    """Count the contents of a knowledge base."""
    # By id: a statement has a row for each run and end.
    fallen = len({statement.id for statement in kb.fallen_statements()})
    withdrawn = Withdrawn(len(kb.withdrawals()), fallen)
    outdated = outdated_rules(kb)
    outcomes = kb.attempt_counts()
    sent = sum(outcomes.values()) - outcomes.get(Outcome.UNSENT, 0) - outcomes.get(Outcome.QUEUED, 0)
    perhaps = outcomes.get(None, 0) + outcomes.get(Outcome.LOST, 0)
    return Contents(
        kb.counts(), kb.derived_counts(), kb.call_counts(), kb.refusals(), withdrawn, outdated, sent, perhaps
    )
