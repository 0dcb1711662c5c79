"""What hangs on what: variables on literals inside a rule, predicates on predicates inside a library.

From the first come the search plans (in which order variables get their values, and what that costs), from the second
recursion and strata. networkx is imported where it is used: planning needs none of it, and `check` must start at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, get_args
from typing import Literal as OneOf

from grammar.errors import HapaxError
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import (
    Arithmetic,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Term,
    Variable,
    expression_variables,
)

if TYPE_CHECKING:
    import networkx as nx

    RuleGraph: TypeAlias = nx.Graph[str | int]
    PredicateGraph: TypeAlias = nx.DiGraph[str]

Preset: TypeAlias = OneOf["cheapest", "premise-first", "conclusion-first", "link"]
GraphForm: TypeAlias = OneOf["text", "mermaid", "dot"]

BEAM = 200
"""Partial substitutions kept at each step (paper, section 2.3); no step can ask more questions than that."""
VALUES = 10
"""Values a question is expected to keep; a question without any bound argument is asked for twice as many."""
CALLS = 4
"""Calls of a question (paper, section 2.3)."""
FUNCTIONAL_CALLS = 2
"""A functional variable is asked twice and believed if the answers agree."""
PLANS = 24
"""How many plans `search_plans` tells of at most."""
LARGE_RULE = 12
"""Variables beyond which the beam over orders is narrowed, so that planning stays far below a second."""


@dataclass(frozen=True, slots=True)
class PlanCost:
    """What a plan is expected to ask: distinct questions, calls to the generator, and atoms put to the critic alone."""

    questions: int = 0
    calls: int = 0
    checks: int = 0

    def __add__(self, other: PlanCost) -> PlanCost:
        return PlanCost(self.questions + other.questions, self.calls + other.calls, self.checks + other.checks)


@dataclass(frozen=True, slots=True)
class SearchStep:
    """One variable gets its values.

    `generators[0]` is the literal to ask with; the others hold the variable too and verify. Arguments of it may still
    be free where nothing better exists (the first variable of a plan). An information atom generates only where no
    constraint atom can. `closes` are all premise items that have values for all their variables after this step,
    generators included. `assignment` is `V = expression` over bound variables; then nothing is asked.
    """

    variable: Variable
    generators: tuple[Literal, ...]
    closes: tuple[BodyLiteral, ...]
    functional: bool = False
    assignment: Comparison | None = None

    def __str__(self) -> str:
        how = f"= {_plain(self.assignment.right)}" if self.assignment else f"by {_plain(self.generators[0])}"
        others = [item for item in self.closes if item not in self.generators[:1]]
        return f"{self.variable.name} {how}" + (f", then {', '.join(map(_plain, others))}" if others else "")


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A rule's variables in the order of the search, with the expected cost."""

    rule: Rule
    steps: tuple[SearchStep, ...]
    cost: PlanCost

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the variables as the paper lists them: the generic ones first, although they are never searched."""
        return (*self.rule.generic, *(step.variable.name for step in self.steps))


# Plans


def search_plans(rule: Rule, library: Library) -> tuple[SearchPlan, ...]:
    """Valid orders, cheapest first, at most PLANS; LINK's two compete. Deterministic; a beam bounds the work.

    Raises HapaxError for a rule with a variable that no order can bind.
    """
    planner = _Planner(rule, library)
    planner.require_reachable()
    walked = [planner.plan(planner.walk(conclusion_first)) for conclusion_first in (False, True)]
    plans = {one.order: one for one in (*planner.cheap_plans(), *walked)}
    return tuple(sorted(plans.values(), key=planner.rank)[:PLANS])


def plan(rule: Rule, library: Library, preset: Preset = "cheapest") -> SearchPlan:
    """The plan of a preset.

    "link" is the paper's reading (section 2.3): from the generic variable through the premise; where a functional
    variable takes part, from the conclusion to *the* object of the premise. A rule that says several things about its
    generic variable has no such single object (rule0 of table 18) and is searched premise first as well.
    """
    if preset not in get_args(Preset):
        raise HapaxError(f"No order is called {preset}. Give one of {', '.join(get_args(Preset))}.")
    if preset == "cheapest":
        return search_plans(rule, library)[0]
    planner = _Planner(rule, library)
    planner.require_reachable()
    conclusion_first = preset == "conclusion-first" or (preset == "link" and planner.is_for_conclusion_first())
    return planner.plan(planner.walk(conclusion_first))


def unreachable_variables(rule: Rule, library: Library) -> tuple[Variable, ...]:
    """The premise's variables that no order can bind: nothing asks for them and no equation gives them."""
    return _Planner(rule, library).unreachable


Order: TypeAlias = tuple[str, ...]


class _Planner:
    """One rule under one library, with what every order needs to know looked up once."""

    def __init__(self, rule: Rule, library: Library) -> None:
        self.rule = rule
        self.library = library
        self.needs = {item: frozenset(v.name for v in item.variables) - set(rule.generic) for item in rule.premise}
        self.variables: dict[str, Variable] = {}
        for variable in (variable for item in rule.premise for variable in item.variables):
            if variable.name not in rule.generic:
                self.variables.setdefault(variable.name, variable)
        self.rank_of = {name: index for index, name in enumerate(self.variables)}
        self.items = {name: tuple(i for i in rule.premise if name in self.needs[i]) for name in self.variables}
        self.asking = {name: tuple(filter(self._can_ask, items)) for name, items in self.items.items()}
        self.equations = tuple(self._equations())

    # Which variable can come next

    @cached_property
    def unreachable(self) -> tuple[Variable, ...]:
        reached = {name for name in self.variables if self.asking[name]}
        grown = True
        while grown:
            new = {name for name in self.variables if name not in reached and self._assignment(name, reached)}
            reached |= new
            grown = bool(new)
        return tuple(variable for name, variable in self.variables.items() if name not in reached)

    def require_reachable(self) -> None:
        missing = (*self.unreachable, *self.rule.unbound)
        if missing:
            named = ", ".join(map(str, missing))
            raise HapaxError(
                f"{self.rule.place}: rule {self.rule.name} has no search order: nothing gives a value to {named}. "
                "Add a literal to the premise that speaks of it and can be asked."
            )

    def _equations(self) -> Iterator[Comparison]:
        """`V = expression`, as written or as a computed predicate defines it, the variable on the left."""
        for item in self.rule.premise:
            comparison = item if isinstance(item, Comparison) else comparison_of(item, self.library)
            if comparison is None or comparison.operator != "=":
                continue
            for left, right in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
                if isinstance(left, Variable) and left not in expression_variables(right):
                    yield Comparison("=", left, right)

    def _assignment(self, name: str, bound: Iterable[str]) -> Comparison | None:
        known = set(bound)
        for equation in self.equations:
            needed = {variable.name for variable in expression_variables(equation.right)}
            if equation.left == self.variables[name] and needed <= known:
                return equation
        return None

    def _can_ask(self, item: BodyLiteral) -> TypeGuard[Literal]:
        """Whether the item is positive and not decided by arithmetic."""
        return (
            isinstance(item, Literal) and not item.negated and _source(item, self.library) is not PredicateKind.COMPUTED
        )

    def _is_ready(self, name: str, bound: frozenset[str]) -> bool:
        return bool(self.asking[name]) or self._assignment(name, bound) is not None

    def _is_led_to(self, name: str, bound: frozenset[str]) -> bool:
        """Whether a constraint whose other arguments have values, or an equation, leads to the variable."""
        keyed = (one for one in self.asking[name] if len(one.atom.arguments) > 1 and not self.rule.is_information(one))
        return self._assignment(name, bound) is not None or any(self.needs[one] <= bound | {name} for one in keyed)

    # Orders

    def cheap_plans(self) -> list[SearchPlan]:
        """A beam over partial plans. Later variables are led to by earlier ones wherever that is possible at all."""
        large = len(self.variables) > LARGE_RULE
        width, branches = (8, 4) if large else (2 * PLANS, LARGE_RULE)
        partial = [_Partial(self)]
        for _ in self.variables:
            grown = [one.extended(name) for one in partial for name in self._next(one.bound)[:branches]]
            partial = sorted(grown, key=lambda one: self.rank(one.plan))[:width]
        return [one.plan for one in partial]

    def _next(self, bound: frozenset[str]) -> list[str]:
        ready = [name for name in self.variables if name not in bound and self._is_ready(name, bound)]
        led = [name for name in ready if bound and self._is_led_to(name, bound)]
        return led or ready

    def rank(self, one: SearchPlan) -> tuple[int, int, int, tuple[int, ...]]:
        order = tuple(self.rank_of[step.variable.name] for step in one.steps)
        return (one.cost.calls, one.cost.questions, one.cost.checks, order)

    def walk(self, conclusion_first: bool) -> Order:
        """LINK's walk: on from the newest variable to the next one that shares an atom with it, generic ones first."""
        first = (self.rule.conclusion,) if conclusion_first else ()
        neighbours = [[v.name for v in item.variables] for item in (*first, *self.rule.premise)]
        order: Order = ()
        while len(order) < len(self.variables):
            anchors = (*reversed(order), *self.rule.generic)
            order = (*order, self._step_of_walk(anchors, neighbours, frozenset(order)))
        return order

    def _step_of_walk(self, anchors: Sequence[str], neighbours: list[list[str]], bound: frozenset[str]) -> str:
        waiting = [name for name in self.variables if name not in bound and self._is_ready(name, bound)]
        for anchor in anchors:
            for names in neighbours:
                for name in names if anchor in names else ():
                    if name in waiting:
                        return name
        return waiting[0]

    def is_for_conclusion_first(self) -> bool:
        """Whether the paper would start at the conclusion, see `plan`. A generic variable has no one right value."""
        told = [literal for literal in self.rule.literals if self.rule.is_information(literal)]
        return len(told) == 1 and any(
            _source(literal, self.library) is PredicateKind.FUNCTIONAL
            and isinstance(literal.atom.arguments[-1], Variable)
            for literal in self.rule.literals
            if literal not in told
        )

    # Steps and costs

    def plan(self, order: Order) -> SearchPlan:
        partial = _Partial(self)
        for name in order:
            partial = partial.extended(name)
        return partial.plan

    def step(self, name: str, bound: frozenset[str]) -> SearchStep:
        now = bound | {name}
        # What speaks of generic variables alone needs no value: the first step closes it.
        own = self.items[name] if bound else self.rule.premise
        closes = tuple(item for item in own if self.needs[item] <= now)
        asking = sorted(self.asking[name], key=lambda literal: self._preference(literal, name, now))
        verifying = (item for item in asking[1:] if item in closes and not self.rule.is_information(item))
        assignment = self._assignment(name, bound)
        functional = assignment is None and self.is_functional(asking[0], name, now)
        return SearchStep(self.variables[name], (*asking[:1], *verifying), closes, functional, assignment)

    def _preference(self, literal: Literal, name: str, now: frozenset[str]) -> tuple[bool, int, bool, bool]:
        """Constraints first; among them the fewest free arguments, one right value, a model before stored facts."""
        free = len(self.needs[literal] - now)
        stored = _source(literal, self.library) not in (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
        return (self.rule.is_information(literal), free, not self.is_functional(literal, name, now), stored)

    def is_functional(self, literal: Literal, name: str, now: frozenset[str]) -> bool:
        """Whether the variable is the one right value for a key that is known by now."""
        if _source(literal, self.library) is not PredicateKind.FUNCTIONAL or self.rule.is_information(literal):
            return False
        *key, last = literal.atom.arguments
        in_key = {term.name for term in key if isinstance(term, Variable)}
        return isinstance(last, Variable) and last.name == name and name not in in_key and in_key <= now


@dataclass(frozen=True, slots=True)
class _Partial:
    """The beginning of a plan with the numbers expected so far.

    Questions are shared: a step asks one for each distinct key, not for each beam.
    """

    planner: _Planner
    steps: tuple[SearchStep, ...] = ()
    cost: PlanCost = PlanCost()
    rows: int = 1
    distinct: Mapping[str, int] = field(default_factory=dict)
    """Expected number of values of each bound variable."""

    @property
    def bound(self) -> frozenset[str]:
        return frozenset(self.distinct)

    @property
    def plan(self) -> SearchPlan:
        return SearchPlan(self.planner.rule, self.steps, self.cost)

    def extended(self, name: str) -> _Partial:
        step = self.planner.step(name, self.bound)
        keys = self._keys(step)
        asked = min(self.rows, prod(self.distinct[key] for key in keys), BEAM)
        values = self._values(step, keys)
        rows = min(BEAM, self.rows * values)
        cost = self.cost + self._asking(step, asked) + PlanCost(checks=rows * self._verifying(step))
        distinct = {**self.distinct, name: min(BEAM, asked * values)}
        return _Partial(self.planner, (*self.steps, step), cost, rows, distinct)

    def _keys(self, step: SearchStep) -> list[str]:
        source = step.assignment.variables if step.assignment else step.generators[0].variables
        return [variable.name for variable in source if variable.name in self.distinct]

    def _values(self, step: SearchStep, keys: list[str]) -> int:
        if step.assignment or step.functional:
            return 1
        constant = any(isinstance(term, Constant) for term in step.generators[0].atom.arguments)
        return VALUES if keys or constant else 2 * VALUES

    def _asking(self, step: SearchStep, asked: int) -> PlanCost:
        if step.assignment:
            return PlanCost()
        if self.planner.rule.is_information(step.generators[0]):
            return PlanCost(asked, asked * CALLS)
        calls = FUNCTIONAL_CALLS if step.functional else _calls(step.generators[0], self.planner.library)
        return PlanCost(asked if calls else 0, asked * calls)

    def _verifying(self, step: SearchStep) -> int:
        """How many literals the critic judges on ground atoms here."""
        asked_with = () if step.assignment else step.generators[:1]
        kinds = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
        return sum(
            isinstance(item, Literal)
            and item not in asked_with
            and not self.planner.rule.is_information(item)
            and _source(item, self.planner.library) in kinds
            for item in step.closes
        )


def _calls(literal: Literal, library: Library) -> int:
    """Calls of one question; a derived predicate asks every model's predicate that its rules rest on."""
    kind = _source(literal, library)
    if kind is not None:
        return CALLS if kind in (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL) else 0
    seen: set[str] = set()
    waiting, calls = [literal], 0
    while waiting:
        one = waiting.pop()
        if one.atom.indicator in seen:
            continue
        seen.add(one.atom.indicator)
        source = _source(one, library)
        if source is None:
            waiting.extend(item for rule in library.concluding[one.atom.indicator] for item in rule.literals)
        calls += CALLS if source in (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL) else 0
    return calls


def _source(literal: Literal, library: Library) -> PredicateKind | None:
    """Where the literal's truth comes from; None: from rules alone. What the library does not know would be asked."""
    indicator = literal.atom.indicator
    if not library.knows(indicator):
        return PredicateKind.ORACLE
    signature = library.signature(indicator)
    asked = signature.declared and signature.kind is not PredicateKind.GIVEN
    return signature.kind if asked or indicator not in library.derived else None


def comparison_of(literal: Literal, library: Library) -> Comparison | None:
    """What a computed predicate says about the literal's arguments; None for other literals and for negated ones."""
    if literal.negated or not library.knows(literal.atom.indicator):
        return None
    signature = library.signature(literal.atom.indicator)
    if signature.definition is None or len(signature.parameters) != len(literal.atom.arguments):
        return None
    values = {one.name: term for one, term in zip(signature.parameters, literal.atom.arguments, strict=True)}
    definition = signature.definition
    return Comparison(definition.operator, _replaced(definition.left, values), _replaced(definition.right, values))


def _replaced(expression: Expression, values: Mapping[str, Term]) -> Expression:
    if isinstance(expression, Arithmetic):
        return Arithmetic(expression.operator, _replaced(expression.left, values), _replaced(expression.right, values))
    return values.get(expression.name, expression) if isinstance(expression, Variable) else expression


# Predicates


def predicate_graph(library: Library) -> PredicateGraph:
    """Predicates, with an edge from each one in a premise to the concluded one; `negative` where it is negated."""
    import networkx as nx

    graph: PredicateGraph = nx.DiGraph()
    for rule in library.rules:
        conclusion = rule.conclusion.atom.indicator
        graph.add_node(conclusion)
        for literal in rule.literals:
            below = literal.atom.indicator
            negative = literal.negated or bool(
                graph.has_edge(below, conclusion) and graph[below][conclusion]["negative"]
            )
            graph.add_edge(below, conclusion, negative=negative)
    return graph


def recursive_predicates(library: Library) -> frozenset[str]:
    """Indicators of the predicates that rest on themselves, directly or by way of others."""
    if not any(literal.atom.indicator in library.derived for rule in library.rules for literal in rule.literals):
        return frozenset()
    import networkx as nx

    graph = predicate_graph(library)
    circles = [members for members in nx.strongly_connected_components(graph) if len(members) > 1]
    loops = {name for name in graph if graph.has_edge(name, name)}
    return frozenset(loops.union(*circles))


def negative_cycles(library: Library) -> tuple[tuple[str, ...], ...]:
    """Circles of predicates with a negation in them, each from a conclusion round to itself; one for each tangle."""
    negated = {literal.atom.indicator for rule in library.rules for literal in rule.literals if literal.negated}
    if not negated & library.derived:
        return ()
    import networkx as nx

    graph = predicate_graph(library)
    tangle_of = {name: index for index, names in enumerate(nx.strongly_connected_components(graph)) for name in names}
    cycles: dict[int, tuple[str, ...]] = {}
    for below, above in graph.edges:
        if graph[below][above]["negative"] and tangle_of[below] == tangle_of[above] not in cycles:
            cycles[tangle_of[above]] = (above, *reversed(nx.shortest_path(graph, above, below)))
    return tuple(cycles.values())


def refuse_negative_cycles(library: Library) -> None:
    """Raises HapaxError for a predicate that rests on its own negation."""
    for cycle in negative_cycles(library):
        raise HapaxError(
            f"{cycle[0]} rests on its own negation ({' <- '.join(cycle)}), so it has no truth value. "
            "Take the negation out of the circle."
        )


def strata(library: Library) -> tuple[frozenset[str], ...]:
    """Indicators in layers: each predicate rests on the negation of lower layers only. Raises HapaxError."""
    refuse_negative_cycles(library)
    import networkx as nx

    graph = predicate_graph(library)
    condensed = nx.condensation(graph)
    home: Mapping[str, int] = condensed.graph["mapping"]
    level: dict[int, int] = dict.fromkeys(condensed, 0)
    incoming: dict[int, list[tuple[int, bool]]] = {}
    for below, above in graph.edges:
        incoming.setdefault(home[above], []).append((home[below], graph[below][above]["negative"]))
    for component in nx.topological_sort(condensed):
        level[component] = max((level[below] + negative for below, negative in incoming.get(component, ())), default=0)
    heights = range(max(level.values(), default=-1) + 1)
    return tuple(frozenset(name for name in graph if level[home[name]] == height) for height in heights)


def evaluation_layers(library: Library) -> tuple[frozenset[str], ...]:
    """Indicators in the order in which they can be worked out; those that rest on each other stand together."""
    import networkx as nx

    condensed = nx.condensation(predicate_graph(library))
    return tuple(frozenset(condensed.nodes[one]["members"]) for one in nx.topological_sort(condensed))


# The graph of a rule


def dependency_graph(rule: Rule) -> RuleGraph:
    """Variables (by name) joined to the literals that hold them (by position in the premise, the conclusion last).

    A graph of two kinds of nodes, because a literal may join any number of variables, or several the same pair.
    """
    import networkx as nx

    graph: RuleGraph = nx.Graph()
    for variable in rule.variables:
        graph.add_node(variable.name, variable=variable, generic=variable.name in rule.generic)
    for index, item in enumerate((*rule.premise, rule.conclusion)):
        graph.add_node(index, item=item, conclusion=index == len(rule.premise))
        graph.add_edges_from((index, variable.name) for variable in item.variables)
    return graph


def graph_text(rule: Rule, library: Library, form: GraphForm = "text") -> str:
    """The dependency graph to read, or to draw with Mermaid or Graphviz. Ends with a newline."""
    drawn = _Drawing.of(rule, library)
    return "\n".join(_FORMS[form](rule, drawn)) + "\n"


@dataclass(frozen=True, slots=True)
class _Node:
    """A node to draw: `id` is safe in every form, `text` is not yet quoted."""

    id: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Drawing:
    variables: tuple[_Node, ...]
    literals: tuple[_Node, ...]
    edges: tuple[tuple[str, str], ...]
    """Ids of variable and literal."""

    @staticmethod
    def of(rule: Rule, library: Library) -> _Drawing:
        graph = dependency_graph(rule)
        variables = [node for node in graph if isinstance(node, str)]
        literals = [node for node in graph if isinstance(node, int)]
        edges = [(name, f"l{index}") for index in literals for name in variables if graph.has_edge(index, name)]
        return _Drawing(
            tuple(_variable_node(rule, graph.nodes[name]["variable"]) for name in variables),
            tuple(_literal_node(index, graph.nodes[index], library) for index in literals),
            tuple(edges),
        )


def _variable_node(rule: Rule, variable: Variable) -> _Node:
    return _Node(variable.name, str(variable), "generic" if variable.name in rule.generic else "searched")


def _literal_node(index: int, data: Mapping[str, Any], library: Library) -> _Node:
    item: BodyLiteral = data["item"]
    if data["conclusion"]:
        kind = "conclusion"
    elif isinstance(item, Comparison):
        kind = "comparison"
    else:
        kind = str(_source(item, library) or "derived")
    return _Node(f"l{index}", _plain(item), kind)


def _plain(item: BodyLiteral | Expression) -> str:
    """An item without data types: `is_one_type_of(Z, A)`."""
    if isinstance(item, Literal):
        arguments = ", ".join(term.name if isinstance(term, Variable) else str(term) for term in item.atom.arguments)
        return f"{'not ' if item.negated else ''}{item.atom.predicate}({arguments})"
    return item.name if isinstance(item, Variable) else str(item)


def _text_form(rule: Rule, drawn: _Drawing) -> Iterator[str]:
    yield f"{rule.name}"
    for node in drawn.variables:
        yield f"  {node.text}" + (" (generic, never searched)" if node.kind == "generic" else "")
    for node in drawn.literals:
        joined = [name for name, literal in drawn.edges if literal == node.id]
        yield f"  {' -- '.join(joined) or '(no variable)'}: {node.text} [{node.kind}]"


def _mermaid_form(_: Rule, drawn: _Drawing) -> Iterator[str]:
    yield "graph LR"
    for node in drawn.variables:
        label = _mermaid_quoted(node.text)
        yield f"  {node.id}([{label}])" if node.kind == "generic" else f"  {node.id}({label})"
    for node in drawn.literals:
        label = _mermaid_quoted(f"{node.text} [{node.kind}]")
        yield f"  {node.id}{{{{{label}}}}}" if node.kind == "conclusion" else f"  {node.id}[{label}]"
    for name, literal in drawn.edges:
        yield f"  {name} --- {literal}"


def _mermaid_quoted(text: str) -> str:
    """Mermaid knows no backslash: everything but letters, digits and harmless signs becomes a numbered entity."""
    return '"' + "".join(c if c.isalnum() or c in " _(),.[]" else f"#{ord(c)};" for c in text) + '"'


def _dot_form(rule: Rule, drawn: _Drawing) -> Iterator[str]:
    yield f"graph {_dot_quoted(rule.name)} {{"
    for node in drawn.variables:
        style = ", style=dashed" if node.kind == "generic" else ""
        yield f"  {node.id} [label={_dot_quoted(node.text)}, shape=ellipse{style}];"
    for node in drawn.literals:
        shape = "hexagon" if node.kind == "conclusion" else "box"
        yield f"  {node.id} [label={_dot_quoted(f'{node.text} [{node.kind}]')}, shape={shape}];"
    for name, literal in drawn.edges:
        yield f"  {name} -- {literal};"
    yield "}"


def _dot_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else "?" for c in escaped) + '"'


_FORMS: Mapping[str, Callable[[Rule, _Drawing], Iterator[str]]] = {
    "text": _text_form,
    "mermaid": _mermaid_form,
    "dot": _dot_form,
}
