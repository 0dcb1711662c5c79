"""A search to be done: rules, knowledge base, models and settings that go together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hapax.engine.search.progress import Watcher
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.rules import Library, Rule
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models


@dataclass(frozen=True)
class SearchJob:
    """Everything that a search needs.

    `rules` are those of `library` to search; the others may derive what these need. `journal` has the budget and the
    prices; None: calls are journaled in `kb` without a limit. `progress`: is called after each event.
    """

    library: Library
    rules: Sequence[Rule]
    kb: KnowledgeBase
    models: Models
    settings: SearchSettings = field(default_factory=SearchSettings)
    journal: Journal | None = None
    progress: Watcher | None = None
