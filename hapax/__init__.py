"""Hapax: a logic-programming knowledge engine for the long tail of what language models know.

Everything that a script or a notebook needs is here; `docs/python.md` shows it at work. Nothing below prints or exits.

    rules = hapax.load_rules("my.rules")
    with hapax.KnowledgeBase("my.db") as kb:
        hapax.search(rules, kb, hapax.open_models("embedded"))
        print(hapax.query("is_not_able_to_eat(tom, Dish)", rules, kb, assume=["is_allergic_to(tom, shellfish)"]).rows)

Names are loaded when they are first used, so that `import hapax` costs next to nothing. Modules below `hapax` may move
between versions; these names stay.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hapax.api.operations import (
        Progress,
        add_facts,
        check_rules,
        derive,
        export_facts,
        import_facts,
        load_rules,
        merge,
        open_models,
        parse_rules,
        plan,
        query,
        search,
        why,
        why_not,
    )
    from hapax.api.results import (
        Answers,
        Derivation,
        Explanation,
        SearchAccount,
        SearchResult,
        Statement,
        Statements,
    )
    from hapax.engine.inference.session import LimitExceeded, QueryLimits
    from hapax.engine.search.settings import SearchSettings
    from hapax.engine.search.thresholds import CriticRule
    from hapax.grammar.errors import Diagnostic, GoalRejected, HapaxError, RulesRejected
    from hapax.grammar.rules import Library, Rule
    from hapax.kb.exchange import FactsRejected
    from hapax.kb.records import Distribution
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.budget import Budget, BudgetReached
    from hapax.llm_oracle.protocols import Models

_HOMES = {
    "hapax.api.operations": (
        "Progress",
        "add_facts",
        "check_rules",
        "derive",
        "export_facts",
        "import_facts",
        "load_rules",
        "merge",
        "open_models",
        "parse_rules",
        "plan",
        "query",
        "search",
        "why",
        "why_not",
    ),
    "hapax.engine.inference.session": ("LimitExceeded", "QueryLimits"),
    "hapax.engine.search.settings": ("SearchSettings",),
    "hapax.engine.search.thresholds": ("CriticRule",),
    "hapax.grammar.errors": ("Diagnostic", "GoalRejected", "HapaxError", "RulesRejected"),
    "hapax.grammar.rules": ("Library", "Rule"),
    "hapax.kb.exchange": ("FactsRejected",),
    "hapax.kb.records": ("Distribution",),
    "hapax.kb.store": ("KnowledgeBase",),
    "hapax.llm_oracle.budget": ("Budget", "BudgetReached"),
    "hapax.llm_oracle.protocols": ("Models",),
    "hapax.api.results": (
        "Answers",
        "Derivation",
        "Explanation",
        "SearchAccount",
        "SearchResult",
        "Statement",
        "Statements",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Answers",
    "Budget",
    "BudgetReached",
    "CriticRule",
    "Derivation",
    "Diagnostic",
    "Distribution",
    "Explanation",
    "FactsRejected",
    "GoalRejected",
    "HapaxError",
    "KnowledgeBase",
    "Library",
    "LimitExceeded",
    "Models",
    "Progress",
    "QueryLimits",
    "Rule",
    "RulesRejected",
    "SearchAccount",
    "SearchResult",
    "SearchSettings",
    "Statement",
    "Statements",
    "add_facts",
    "check_rules",
    "derive",
    "export_facts",
    "import_facts",
    "load_rules",
    "merge",
    "open_models",
    "parse_rules",
    "plan",
    "query",
    "search",
    "why",
    "why_not",
]


def __getattr__(name: str) -> Any:
    """Load the module that defines a public name."""
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'hapax' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
