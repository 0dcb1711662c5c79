"""Dependencies: between variables and literals of a rule, and between the predicates of a library.

The first give search plans: orders in which variables get their values, with the expected cost. The second give
recursion and strata. networkx is imported where it is used: planning does not need it, and `check` must start at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from math import inf, prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeGuard, get_args
from typing import Literal as OneOf

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import SAME_AS, PredicateKind
from hapax.grammar.rules import Library, Rule, comparison_of, literals_of
from hapax.grammar.terms import (
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Variable,
    distinct_variables,
    expression_names,
    expression_text,
    reached,
    variable_names,
)

if TYPE_CHECKING:
    import networkx as nx

    PredicateGraph: TypeAlias = nx.DiGraph[str]

Preset: TypeAlias = OneOf["cheapest", "premise-first", "conclusion-first", "link"]

BEAM = 200
"""Partial substitutions kept at each step (paper, section 2.3), and so the most questions that a step asks."""
PLANS = 24
"""Plans that `search_plans` returns at most."""
LARGE_RULE = 12
"""Variables beyond which the beam over orders is narrowed, so that planning takes far less than a second."""


@dataclass(frozen=True, slots=True)
class Yield:
    """Calls of a question, lines of its replies, the different values they propose, and those that are accepted."""

    calls: float
    lines: float
    proposed: float
    accepted: float

    def scaled(self, factor: float) -> Yield:
        """The yield of as many calls that bring so many times the values."""
        return Yield(self.calls, self.lines * factor, self.proposed * factor, self.accepted * factor)

    def within(self, calls: int, values: int, empty: int = 0) -> Yield:
        """The yield of a question that has at most so many calls, each for so many values.

        A reply with fewer lines than values ends the question, or after it so many calls that bring nothing (`empty`).
        """
        # Half a list: the lines of a question are a round number of full lists only by chance.
        needed = max(1.0, self.lines / values + 0.5) + empty
        share = min(1.0, calls * values / self.proposed)
        return replace(self.scaled(share), calls=min(needed, calls))


@dataclass(frozen=True, slots=True)
class Yields:
    """Yields by kind of question: without a value in it, with at least one, and with one right answer.

    The defaults were measured on the shipped rules in simulated worlds. `functional`: of one sample. `passing`: share
    of the partial substitutions for which a premise or a comparison holds.
    """

    open: Yield = Yield(3, 123, 109, 103)
    keyed: Yield = Yield(1, 11, 9.6, 6.4)
    functional: Yield = Yield(1, 1.2, 1.1, 0.67)
    passing: float = 0.5


ORDERS = Yields(open=Yield(4, 123, 115, 109), keyed=Yield(3, 11, 9, 5), functional=Yield(2, 1, 1, 1), passing=1.0)
"""Yields by which orders of variables are compared.

Two further calls for a list, as LINK makes, count it above a single right answer, which models know better.
"""


@dataclass(frozen=True, slots=True)
class PlanCost:
    """Expected cost: distinct questions, calls of the generator, values that these propose, and atoms to judge.

    `checks` has the atoms of the premises that a step closes, and the claims behind derived predicates.
    """

    questions: float = 0
    calls: float = 0
    proposed: float = 0
    checks: float = 0

    def __add__(self, other: PlanCost) -> PlanCost:
        return PlanCost(
            self.questions + other.questions,
            self.calls + other.calls,
            self.proposed + other.proposed,
            self.checks + other.checks,
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Expected number of partial substitutions, and of distinct values of each variable that has values."""

    count: float = 1
    distinct: Mapping[str, float] = field(default_factory=dict)

    def keys(self, names: Iterable[str]) -> float:
        """Number of different combinations of these variables' values, at most one per row."""
        bound = set(names) & self.distinct.keys()
        return min(self.count, prod(self.distinct[name] for name in sorted(bound)))

    def extended(self, name: str, questions: float, values: float, most: float = inf) -> Rows:
        """Each row by `values` rows. The questions limit the number of different values, as does `most`."""
        count = self.count * values
        return Rows(count, {**self.distinct, name: min(count, questions * values, most)})

    def kept(self, count: float) -> Rows:
        """So many of the rows at most, with as many different values as these may have."""
        return Rows(min(count, self.count), {name: min(count, many) for name, many in self.distinct.items()})

    def sampled(self, count: float) -> Rows:
        """So many of the rows at most, with the different values to expect of a random sample."""
        if count >= self.count:
            return self
        lost = 1 - count / self.count
        distinct = {}
        for name, many in self.distinct.items():
            # A value is lost with the last of its rows.
            distinct[name] = many * (1 - lost ** (self.count / many)) if many else 0.0
        return Rows(count, distinct)

    def joined(self, other: Rows) -> Rows:
        """These rows and others."""
        distinct = dict(self.distinct)
        for name, count in other.distinct.items():
            distinct[name] = distinct.get(name, 0) + count
        return Rows(self.count + other.count, distinct)


@dataclass(frozen=True, slots=True)
class SearchStep:
    """The step of a search that gives one variable its values.

    `generators[0]` is the literal that is asked; the others contain the variable too and verify its values. Arguments
    of the first may still be free if there is nothing better, as for the first variable of a plan. An information atom
    is asked only if no constraint atom can be. `closes` are the premise items, generators included, whose variables
    all have values after this step. `assignment` is `V = expression` over bound variables; then nothing is asked.
    """

    variable: Variable
    generators: tuple[Literal, ...]
    closes: tuple[BodyLiteral, ...]
    functional: bool = False
    assignment: Comparison | None = None

    def __str__(self) -> str:
        origin = self.assignment or self.generators[0]
        source = f"= {expression_text(self.assignment.right)}" if self.assignment else f"by {origin.untyped}"
        closed = [item.untyped for item in self.closes if item != origin]
        return f"{self.variable.name} {source}" + (f", then {', '.join(closed)}" if closed else "")


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A rule's variables in the order of the search, with the expected cost."""

    rule: Rule
    steps: tuple[SearchStep, ...]
    cost: PlanCost

    @property
    def order(self) -> tuple[str, ...]:
        """Names of the variables as the paper lists them: first the generic ones, although they are never searched."""
        return (*self.rule.generic, *(step.variable.name for step in self.steps))


def cost_from(plan: SearchPlan, costs: PlanCosts, beam: int, rows: Rows) -> PlanCost:
    """Expected cost of the steps of a plan that are left. `beam`: partial substitutions kept at most at each step."""
    cost = PlanCost()
    for step in plan.steps[len(rows.distinct) :]:
        more, rows = costs.step(step, rows)
        cost, rows = cost + more, rows.sampled(beam)
    return cost


class PlanCosts:
    """Costs of the steps of a rule's plans, by the yields of questions alone.

    Rows share questions: a step asks one per distinct key, not one per row.
    """

    def __init__(self, rule: Rule, library: Library, yields: Yields) -> None:
        self.rule, self.library, self.yields = rule, library, yields

    def step(self, step: SearchStep, rows: Rows) -> tuple[PlanCost, Rows]:
        """The cost of a step for these rows, and the rows that it leaves."""
        asked, rows = self.ask(step, rows)
        judged, rows = self.close(step, rows)
        return asked + judged, rows

    def ask(self, step: SearchStep, rows: Rows) -> tuple[PlanCost, Rows]:
        """The questions of the step, and the rows with its variable's values."""
        name = step.variable.name
        if step.assignment:
            return PlanCost(), rows.extended(name, rows.keys(variable_names([step.assignment])), 1)
        literal = step.generators[0]
        keys = rows.keys(variable_names([literal]))
        answer = self.yield_of(step, rows.distinct)
        extended = rows.extended(name, keys, answer.accepted, self.most_values(step.variable.data_type))
        if self.rule.is_information(literal) or self.library.is_asked(literal.atom.indicator):
            return PlanCost(keys, keys * answer.calls, keys * answer.proposed), extended
        return self.behind(literal, keys), extended

    def yield_of(self, step: SearchStep, bound: Collection[str]) -> Yield:
        """The yield of a question of the step. `bound`: names of the variables with values before it."""
        if step.functional:
            return self.yields.functional
        arguments = step.generators[0].atom.arguments
        # A constant in the question narrows it just as a value does.
        has_key = any(isinstance(term, Constant) or term.name in bound for term in arguments)
        return self.yields.keyed if has_key else self.yields.open

    def most_values(self, data_type: str) -> float:  # noqa: ARG002  for plans whose types have a size
        """Number of different values of a type in all answers."""
        return inf

    def close(self, step: SearchStep, rows: Rows) -> tuple[PlanCost, Rows]:
        """The atoms of the step's other premises to judge, and the rows for which they hold."""
        cost = PlanCost()
        for item in step.closes:
            if isinstance(item, Comparison) and step.assignment:
                continue  # the value was computed from it
            if isinstance(item, Literal):
                is_answered = item in step.generators[:1] and not step.assignment
                if is_answered or self.rule.is_information(item):
                    continue
                keys = rows.keys(variable_names([item]))
                is_asked = self.library.is_asked(item.atom.indicator)
                cost += PlanCost(checks=keys) if is_asked else self.behind(item, keys)
            rows = rows.kept(rows.count * self.yields.passing)
        return cost, rows

    def behind(self, literal: Literal, keys: float) -> PlanCost:
        """The cost of facts from which a derived literal follows, for so many atoms of it."""
        questions = keys * len(asked_predicates(literal, self.library))
        answer = self.yields.keyed
        proposed = questions * answer.proposed
        # Each value has a claim about its type and one about the fact.
        return PlanCost(questions, questions * answer.calls, proposed, 2 * proposed)


# Plans


def search_plans(rule: Rule, library: Library) -> tuple[SearchPlan, ...]:
    """Valid plans, cheapest first, at most PLANS, with LINK's two orders among the candidates. Deterministic.

    Raises HapaxError for a rule with a variable that no order can bind.
    """
    planner = _Planner(rule, library, facts_first=True)
    planner.require_reachable()
    candidates = planner.cheap_plans()
    candidates += [planner.plan(planner.walk(conclusion_first)) for conclusion_first in (False, True)]
    # By order, because LINK's two may be among the cheap ones already.
    plans = {candidate.order: candidate for candidate in candidates}
    return tuple(sorted(plans.values(), key=planner.rank)[:PLANS])


def plan(rule: Rule, library: Library, preset: Preset = "cheapest") -> SearchPlan:
    """The plan of a preset.

    "link" follows the paper (section 2.3): from the generic variable through the premise; with a functional variable,
    from the conclusion to *the* object of the premise. A rule with two or more information atoms has no such single
    object (rule0 of table 18) and is searched premise first as well.
    """
    if preset not in get_args(Preset):
        raise HapaxError(f"No order is called {preset}. Choose one of {', '.join(get_args(Preset))}.")
    if preset == "cheapest":
        return search_plans(rule, library)[0]
    # Without `facts_first`: LINK's orders do not depend on which facts are stored.
    planner = _Planner(rule, library)
    planner.require_reachable()
    conclusion_first = preset == "conclusion-first" or (preset == "link" and planner.is_for_conclusion_first())
    return planner.plan(planner.walk(conclusion_first))


def unreachable_variables(rule: Rule, library: Library) -> tuple[Variable, ...]:
    """Variables of the premise that no order can bind: no literal can be asked for them, and no equation gives them."""
    return _Planner(rule, library).unreachable


Order: TypeAlias = tuple[str, ...]


class _PartialPlan(NamedTuple):
    """The beginning of a plan, with the expected rows behind it."""

    plan: SearchPlan
    rows: Rows


class _Planner:
    """Searches the orders of one rule's variables. `facts_first`: facts give values that a model could give, too."""

    def __init__(self, rule: Rule, library: Library, *, facts_first: bool = False) -> None:
        self.facts_first = facts_first
        self.rule = rule
        self.library = library
        self.costs = PlanCosts(rule, library, ORDERS)
        self.needs: dict[BodyLiteral, frozenset[str]] = {}
        """The searched variables of each premise item."""
        self.variables: dict[str, Variable] = {}
        for variable in distinct_variables(rule.premise):
            if variable.name not in rule.generic:
                self.variables[variable.name] = variable
        for item in rule.premise:
            self.needs[item] = frozenset(variable_names([item]).difference(rule.generic))
        self.rank_of = {name: index for index, name in enumerate(self.variables)}
        self.items: dict[str, tuple[BodyLiteral, ...]] = {}
        """The premise items with a variable."""
        self.asking: dict[str, tuple[Literal, ...]] = {}
        """The literals that can be asked."""
        for name in self.variables:
            self.items[name] = tuple(item for item in rule.premise if name in self.needs[item])
            self.asking[name] = tuple(filter(self._can_ask, self.items[name]))
        self.equations: list[tuple[Variable, Expression]] = []
        for item in rule.premise:
            comparison = item if isinstance(item, Comparison) else comparison_of(item, library)
            self.equations += comparison.equations if comparison is not None else ()

    # Variables that can come next

    @cached_property
    def unreachable(self) -> tuple[Variable, ...]:
        reached = {name for name in self.variables if self.asking[name]}
        # A variable that is reached may complete the right side of another one's equation.
        while new := {name for name in self.variables.keys() - reached if self._assignment(name, reached)}:
            reached |= new
        return tuple(variable for name, variable in self.variables.items() if name not in reached)

    def require_reachable(self) -> None:
        missing = (*self.unreachable, *self.rule.unbound)
        if missing:
            variables = ", ".join(map(str, missing))
            raise HapaxError(
                f"{self.rule.place}: rule {self.rule.name} has no search order: nothing gives a value to {variables}. "
                "Add a literal with this variable to the premise that can be asked."
            )

    def _assignment(self, name: str, bound: Iterable[str]) -> Comparison | None:
        """An equation, as written or as a computed predicate defines it, that gives the variable its value."""
        known = set(bound)  # without the generic variables, which have no values
        for target, source in self.equations:
            if target.name == name and expression_names(source) <= known:
                return Comparison("=", target, source)
        return None

    def _can_ask(self, item: BodyLiteral) -> TypeGuard[Literal]:
        """True for positive literals that arithmetic does not decide."""
        return (
            isinstance(item, Literal)
            and not item.negated
            and self.library.kind(item.atom.indicator) is not PredicateKind.COMPUTED
        )

    def _is_ready(self, name: str, bound: frozenset[str]) -> bool:
        return bool(self.asking[name]) or self._assignment(name, bound) is not None

    def _is_led_to(self, name: str, bound: frozenset[str]) -> bool:
        """True if an equation, or a constraint whose other variables have values, gives the variable its values."""
        if self._assignment(name, bound) is not None:
            return True
        # A literal without another argument asks for all values, whatever is bound.
        return any(
            len(literal.atom.arguments) > 1
            and not self.rule.is_information(literal)
            and self.needs[literal] <= bound | {name}
            for literal in self.asking[name]
        )

    # Orders

    def cheap_plans(self) -> list[SearchPlan]:
        """The cheapest plans that a beam search over partial plans finds."""
        large = len(self.variables) > LARGE_RULE
        # Plans grow with the factorial of the variables: a large rule gets a narrower beam.
        width, branches = (8, 4) if large else (2 * PLANS, LARGE_RULE)
        beam = [self.nothing]
        # Each round adds one variable to each partial plan.
        for _ in self.variables:
            extended: list[_PartialPlan] = []
            for partial in beam:
                names = self._next(frozenset(partial.rows.distinct))
                extended += [self.extended(partial, name) for name in names[:branches]]
            beam = sorted(extended, key=lambda partial: self.rank(partial.plan))[:width]
        return [partial.plan for partial in beam]

    @property
    def nothing(self) -> _PartialPlan:
        return _PartialPlan(SearchPlan(self.rule, (), PlanCost()), Rows())

    def extended(self, partial: _PartialPlan, name: str) -> _PartialPlan:
        """The plan with a step for one more variable."""
        step = self.step(name, frozenset(partial.rows.distinct))
        cost, rows = self.costs.step(step, partial.rows)
        plan = SearchPlan(self.rule, (*partial.plan.steps, step), partial.plan.cost + cost)
        return _PartialPlan(plan, rows.kept(BEAM))

    def _next(self, bound: frozenset[str]) -> list[str]:
        """Variables that can come next; only those that bound variables lead to, if there are any."""
        ready = [name for name in self.variables if name not in bound and self._is_ready(name, bound)]
        led = [name for name in ready if bound and self._is_led_to(name, bound)]
        return led or ready

    def rank(self, candidate: SearchPlan) -> tuple[int, float, float, float, tuple[int, ...]]:
        """Sort key: facts before models, then the cost, then the order of the variables in the rule."""
        order = tuple(self.rank_of[step.variable.name] for step in candidate.steps)
        cost = candidate.cost
        return (self._late(candidate), cost.calls, cost.questions, cost.checks, order)

    def _late(self, candidate: SearchPlan) -> int:
        """Number of pairs of a step by facts and an earlier step that asks a model."""
        late = asked = 0
        for step in candidate.steps:
            if step.assignment is not None:
                continue
            if self.rule.is_information(step.generators[0]) or asked_predicates(step.generators[0], self.library):
                asked += 1
            else:
                late += asked
        return late

    def walk(self, conclusion_first: bool) -> Order:
        """LINK's order: from the newest variable on to the next one that shares an atom with it.

        It starts at the generic variables.
        """
        first = (self.rule.conclusion,) if conclusion_first else ()
        neighbours = [[variable.name for variable in item.variables] for item in (*first, *self.rule.premise)]
        order: Order = ()
        while len(order) < len(self.variables):
            bound = frozenset(order)
            waiting = [name for name in self.variables if name not in bound and self._is_ready(name, bound)]
            # The newest variable first; the generic ones last, as they were known before all others.
            for anchor in (*reversed(order), *self.rule.generic):
                joined = chain.from_iterable(names for names in neighbours if anchor in names)
                if found := next((name for name in joined if name in waiting), None):
                    break
            else:
                found = waiting[0]  # nothing bound leads on: the rule's premise falls into parts
            order = (*order, found)
        return order

    def is_for_conclusion_first(self) -> bool:
        """True if the paper would start at the conclusion; see `plan`."""
        information = [literal for literal in self.rule.literals if self.rule.is_information(literal)]
        # Constraints alone: a generic variable has no single right value.
        constraints = [literal for literal in self.rule.literals if literal not in information]
        return len(information) == 1 and any(
            self.library.kind(literal.atom.indicator) is PredicateKind.FUNCTIONAL
            and isinstance(literal.atom.arguments[-1], Variable)
            for literal in constraints
        )

    # Steps and costs

    def plan(self, order: Order) -> SearchPlan:
        return reduce(self.extended, order, self.nothing).plan

    def step(self, name: str, bound: frozenset[str]) -> SearchStep:
        now = bound | {name}
        # Items with generic variables alone need no value: the first step closes them.
        items = self.items[name] if bound else self.rule.premise
        closes = tuple(item for item in items if self.needs[item] <= now)
        asking = sorted(self.asking[name], key=lambda literal: self._preference(literal, name, now))
        verifying = (item for item in asking[1:] if item in closes and not self.rule.is_information(item))
        assignment = self._assignment(name, bound)
        # A variable without an equation was ready only because a literal can be asked for it.
        functional = assignment is None and self.is_functional(asking[0], name, now)
        return SearchStep(self.variables[name], (*asking[:1], *verifying), closes, functional, assignment)

    def _preference(self, literal: Literal, name: str, now: frozenset[str]) -> tuple[bool, bool, int, bool, bool]:
        """Sort key of literals to ask: constraints, few free arguments, a single right value, models before facts.

        With `facts_first`, facts come before all that a model answers: they cost nothing, and all of them are known.
        """
        free = len(self.needs[literal] - now)
        stored = not self.library.is_asked(literal.atom.indicator)
        paid = self.facts_first and bool(asked_predicates(literal, self.library))
        return (self.rule.is_information(literal), paid, free, not self.is_functional(literal, name, now), stored)

    def is_functional(self, literal: Literal, name: str, now: frozenset[str]) -> bool:
        """True if the variable is the single right value for a key whose variables are bound."""
        is_declared = self.library.kind(literal.atom.indicator) is PredicateKind.FUNCTIONAL
        if not is_declared or self.rule.is_information(literal):
            return False
        *key, last = literal.atom.arguments
        in_key = {term.name for term in key if isinstance(term, Variable)}
        return isinstance(last, Variable) and last.name == name and name not in in_key and in_key <= now


def asked_predicates(literal: Literal, library: Library) -> frozenset[str]:
    """Indicators of the predicates that models are asked about for a literal: its own, or those that its rules need."""

    def below(indicator: str) -> Iterator[str]:
        if not library.is_asked(indicator):
            yield from (needed.atom.indicator for needed in literals_of(library.concluding.get(indicator, ())))

    return frozenset(filter(library.is_asked, reached([literal.atom.indicator], below)))


# Predicates


def predicate_graph(library: Library) -> PredicateGraph:
    """Predicates, with edges from those of a premise to the conclusion's.

    An edge is `negative` if a rule negates the former, or if the latter is an aggregate: both need all of the former.
    """
    import networkx as nx

    graph: PredicateGraph = nx.DiGraph()
    for rule in library.rules:
        graph.add_node(rule.conclusion.atom.indicator)
        for literal in rule.literals:
            edge = (literal.atom.indicator, rule.conclusion.atom.indicator)
            # Two predicates have one edge: a single negation between them makes it negative.
            was_negative = graph.has_edge(*edge) and graph.edges[edge]["negative"]
            graph.add_edge(*edge, negative=_needs_all(rule, literal) or was_negative)
    return graph


def _needs_all(rule: Rule, literal: Literal) -> bool:
    is_own = rule.aggregate is not None and rule.aggregate.is_own(literal)
    return literal.negated or (rule.aggregate is not None and not is_own)


def negative_cycles(library: Library) -> tuple[tuple[str, ...], ...]:
    """Cycles of predicates that contain a negation or aggregate, at most one per strongly connected component."""
    needed: set[str] = set()
    for rule in library.rules:
        needed.update(literal.atom.indicator for literal in rule.literals if _needs_all(rule, literal))
    # A cycle with a negation needs a conclusion that is negated. Without one, networkx need not be loaded.
    if not needed & library.derived and SAME_AS not in library.derived:
        return ()
    import networkx as nx

    graph = predicate_graph(library)
    if SAME_AS in library.derived:
        # Each predicate has the names that `same_as` joins.
        for indicator in [*graph]:
            if not indicator.endswith("/0") and not graph.has_edge(SAME_AS, indicator):
                graph.add_edge(SAME_AS, indicator, negative=False)
        for rule in library.rules:
            if _tells_names_apart(rule, library):
                graph.add_edge(SAME_AS, rule.conclusion.atom.indicator, negative=True)
    component_of = nx.condensation(graph).graph["mapping"]
    cycles: dict[int, tuple[str, ...]] = {}
    for below, above in graph.edges:
        component = component_of[above]
        is_inside = component_of[below] == component
        # Inside a component a path leads back from `above` to `below`, so a negative edge closes a cycle.
        if is_inside and graph.edges[below, above]["negative"] and component not in cycles:
            # From a conclusion back to itself.
            cycles[component] = (above, *reversed(nx.shortest_path(graph, above, below)))
    return tuple(cycles.values())


def _tells_names_apart(rule: Rule, library: Library) -> bool:
    """True if a premise needs two names to differ that `same_as` may join, other than those that it concludes of."""
    conclusion = rule.conclusion.atom
    for item in rule.premise:
        if isinstance(item, Comparison) and item.operator == "\\=":
            names = {variable.name for variable in item.variables if not library.is_numeric(variable.data_type)}
            if names and (conclusion.indicator != SAME_AS or names != {item.name for item in conclusion.variables}):
                return True
    return False


def cycle_text(cycle: Sequence[str]) -> str:
    """A negative cycle in words."""
    text = " <- ".join(cycle)
    return f"{text}, as every predicate has the names that {SAME_AS} joins" if SAME_AS in cycle else text


def refuse_negative_cycles(library: Library) -> None:
    """Raise HapaxError for a predicate that depends on its own negation, or an aggregate on itself."""
    for cycle in negative_cycles(library):
        if set(cycle) & library.aggregated:
            raise HapaxError(
                f"An aggregate depends on itself ({cycle_text(cycle)}), so it has no value. "
                "Remove the aggregate from the cycle."
            )
        raise HapaxError(
            f"{cycle[0]} depends on its own negation ({cycle_text(cycle)}), so it has no truth value. "
            "Remove the negation from the cycle."
        )


def evaluation_layers(library: Library) -> tuple[frozenset[str], ...]:
    """Indicators in an order of evaluation; predicates that depend on each other share a layer."""
    below: dict[str, dict[str, None]] = {}
    for conclusion, rules in library.concluding.items():
        names = (literal.atom.indicator for literal in literals_of(rules))
        below[conclusion] = dict.fromkeys(name for name in names if name != conclusion)
    try:
        return tuple(frozenset([indicator]) for indicator in TopologicalSorter(below).static_order())
    except CycleError:
        pass  # only networkx, which takes long to import, finds the predicates of a cycle
    import networkx as nx

    condensed = nx.condensation(predicate_graph(library))
    return tuple(frozenset(condensed.nodes[component]["members"]) for component in nx.topological_sort(condensed))
