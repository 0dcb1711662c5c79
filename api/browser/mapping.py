"""The map of a library: rules between the predicates of their premises and those of their conclusions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from hapax.api.browser.tables import Page, StoredTable
from hapax.evaluation.report.drawing import Graph, Node
from hapax.grammar.rules import Library, Rule, literals_of

Address = Callable[[object], str]


def rule_map(library: Library, rule_url: Address, predicate_url: Address) -> Graph:
    """The map. A predicate stands among the premises and among the conclusions if it is both.

    `rule_url` and `predicate_url` give the pages of a rule by name and of a predicate by indicator.
    """
    rules = [rule for rule in library.rules if not rule.by_declaration]
    premises = list(dict.fromkeys(literal.atom.indicator for literal in literals_of(rules)))
    conclusions = list(dict.fromkeys(rule.conclusion.atom.indicator for rule in rules))
    columns = (
        [Node(0, name, "predicate", predicate_url(name)) for name in premises],
        [Node(1, rule.name, "rule", rule_url(rule.name)) for rule in rules],
        [Node(2, name, "predicate", predicate_url(name)) for name in conclusions],
    )
    nodes = list(chain.from_iterable(columns))
    # By column and text: a predicate may stand on both sides.
    place = {(node.column, node.text): position for position, node in enumerate(nodes)}
    edges = []
    words = []
    for rule in rules:
        conditions = _conditions(rule)
        conclusion = rule.conclusion.atom.indicator
        edges += [(place[0, name], place[1, rule.name]) for name in conditions]
        edges.append((place[1, rule.name], place[2, conclusion]))
        words.append(f"{rule.name}: {', '.join(conditions)} -> {conclusion}")
    return Graph(tuple(nodes), tuple(edges), "\n".join(words))


def links_of(library: Library) -> StoredTable:
    """The same as a table: each rule with each predicate of its premise, and with that of its conclusion."""
    rows: list[tuple[str, ...]] = []
    for rule in library.rules:
        if not rule.by_declaration:
            rows += [(rule.name, "premise", name) for name in _conditions(rule)]
            rows.append((rule.name, "conclusion", rule.conclusion.atom.indicator))
    return StoredTable(("rule", "side", "predicate"), rows, "", Page(rows=len(rows)))


def _conditions(rule: Rule) -> list[str]:
    return list(dict.fromkeys(literal.atom.indicator for literal in rule.literals))
