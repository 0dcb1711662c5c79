"""What is known and why. Public names of the room; import from here.

The store itself is imported when first used: sqlite-utils takes a quarter of a second that `check` has no use for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from kb.records import (
    Assessment,
    CallRecord,
    Candidate,
    Decision,
    Distribution,
    FactRecord,
    Pattern,
    PredicateRecord,
    Question,
    QuestionState,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
    content_id,
)
from kb.values import ValueRefused, refusal

if TYPE_CHECKING:
    from kb.exchange import ExportReport, FactFault, FactsRejected, ImportReport
    from kb.merge import Conflict, MergeReport
    from kb.store import KnowledgeBase
    from kb.story import CandidateStory, FactStory

_LAZY = {
    "KnowledgeBase": "kb.store",
    "CandidateStory": "kb.story",
    "FactStory": "kb.story",
    "Conflict": "kb.merge",
    "MergeReport": "kb.merge",
    "ExportReport": "kb.exchange",
    "FactFault": "kb.exchange",
    "FactsRejected": "kb.exchange",
    "ImportReport": "kb.exchange",
}

__all__ = [
    "Assessment",
    "CallRecord",
    "Candidate",
    "CandidateStory",
    "Conflict",
    "Decision",
    "Distribution",
    "ExportReport",
    "FactFault",
    "FactRecord",
    "FactStory",
    "FactsRejected",
    "ImportReport",
    "KnowledgeBase",
    "MergeReport",
    "Pattern",
    "PredicateRecord",
    "Question",
    "QuestionState",
    "RuleRecord",
    "RunRecord",
    "Source",
    "StatementRecord",
    "TypeFact",
    "ValueRefused",
    "VoteRecord",
    "content_id",
    "refusal",
]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
