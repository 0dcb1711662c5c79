"""The map of a library: rules between the predicates of their premises and those of their conclusions."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.evaluation.report.drawing import NODE_HEIGHT, ROW
from hapax.grammar.rules import Library

WIDTHS = (260, 200, 260)
GAP = 120


@dataclass(frozen=True, slots=True)
class MapNode:
    """A box of the map. `kind`: premise, rule or conclusion."""

    name: str
    kind: str
    x: float
    y: float
    width: float


@dataclass(frozen=True, slots=True)
class RuleMap:
    """Boxes in three columns, and lines between them."""

    nodes: list[MapNode]
    lines: list[tuple[float, float, float, float]]
    width: float
    height: float


def rule_map(library: Library) -> RuleMap:
    """Lay out the map. A predicate stands among the premises and among the conclusions if it is both."""
    rules = [rule for rule in library.rules if not rule.by_declaration]
    premises = list(dict.fromkeys(literal.atom.indicator for rule in rules for literal in rule.literals))
    conclusions = list(dict.fromkeys(rule.conclusion.atom.indicator for rule in rules))
    columns = (premises, [rule.name for rule in rules], conclusions)
    height = ROW * max(1, *map(len, columns))
    nodes: list[MapNode] = []
    places: dict[tuple[str, str], MapNode] = {}
    x = 0.0
    for kind, names, width in zip(("premise", "rule", "conclusion"), columns, WIDTHS, strict=True):
        step = height / max(1, len(names))
        for number, name in enumerate(names):
            node = MapNode(name, kind, x, round(step * (number + 0.5) - NODE_HEIGHT / 2, 1), width)
            places[kind, name] = node
            nodes.append(node)
        x += width + GAP
    lines = []
    for rule in rules:
        middle = places["rule", rule.name]
        for literal in rule.literals:
            lines.append(_line(places["premise", literal.atom.indicator], middle))
        lines.append(_line(middle, places["conclusion", rule.conclusion.atom.indicator]))
    return RuleMap(nodes, lines, x - GAP, height)


def _line(start: MapNode, end: MapNode) -> tuple[float, float, float, float]:
    return start.x + start.width, start.y + NODE_HEIGHT / 2, end.x, end.y + NODE_HEIGHT / 2
