"""Report of a search: a line per rule, and the counts of the whole run."""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hapax.engine.gates.account import Shortage, StepAccount, equal_scores, merge, shortage
from hapax.engine.gates.decidable import Origin, origin_of
from hapax.engine.gates.gates import START, GateCount
from hapax.engine.inference.derive import relevant_library
from hapax.engine.search.ranking import SMALL_POOL
from hapax.grammar.data_types import type_key
from hapax.grammar.dependencies import Preset, plan
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Variable
from hapax.kb.records import Distribution, StatementRecord
from hapax.llm_oracle.budget import CallStatistics
from hapax.llm_oracle.critics.critic_probing import CriticProbe
from hapax.llm_oracle.protocols import Models

if TYPE_CHECKING:
    from hapax.engine.search.beams import RuleSearch

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """The reason why a rule is not searched: what a model does not know, and the options that bring another model.

    `unknown`: indicators of predicates, and types as `the type Dish`.
    """

    model: str
    unknown: tuple[str, ...]
    remedy: str


def unanswerable(rule: Rule, library: Library, models: Models, preset: Preset = "cheapest") -> Unanswerable | None:
    """The reason why the models cannot answer the rule; None if it is within the limits that they state.

    `preset`: of the search plan, which says what types of values are asked for.
    """
    literals = [literal for literal in rule.literals if not rule.is_information(literal)]
    for other_rule in relevant_library(library, rule).rules:
        literals += other_rule.literals
    asked = [literal for literal in literals if origin_of(literal, library) is Origin.MODEL]
    # Dictionaries, not sets: the report names what is unknown in the order of the rule.
    predicates = dict.fromkeys(literal.atom.indicator for literal in asked)
    types = dict.fromkeys(
        variable.data_type
        for variable in _asked_variables(rule, library, preset)
        if not library.is_numeric(variable.data_type)
    )
    for model, remedy in (
        (models.knowledge, f"Choose a model that knows them with {Setting('knowledge')} and {Setting('critic')}."),
        (models.critic, f"Choose a model that knows them with {Setting('critic')}."),
    ):
        identity = model.identity
        unknown: list[str] = []
        if identity.knows is not None:
            unknown += [indicator for indicator in predicates if indicator not in identity.knows]
        if identity.types is not None:
            known_types = {type_key(data_type) for data_type in identity.types}
            unknown += [f"the type {data_type}" for data_type in types if type_key(data_type) not in known_types]
        if unknown:
            return Unanswerable(identity.name, tuple(unknown), remedy)
    return None


def _asked_variables(rule: Rule, library: Library, preset: Preset) -> list[Variable]:
    """The rule's variables whose values a model proposes. Those of given facts and equations are never asked for."""
    try:
        steps = plan(rule, library, preset).steps
    except HapaxError:  # it has no search order, which the search reports
        return list(rule.searched)
    asked: list[Variable] = []
    for step in steps:
        if step.assignment is not None:
            continue
        origin = origin_of(step.generators[0], library)
        # Rules may need models for the facts behind a derived value.
        if origin in (Origin.MODEL, Origin.DERIVED) or rule.is_information(step.generators[0]):
            asked.append(step.variable)
    return asked


class PackedStatements:
    """The statements of one rule and distribution, compressed, with their mean log-likelihood.

    A record with its proof takes 3 to 5 kB, compressed among others some 0.1 kB, and a run may have 100,000 of them.
    Each iteration decompresses them.
    """

    __slots__ = ("_count", "_packed", "mean_log_likelihood")

    def __init__(self, records: Sequence[StatementRecord]) -> None:
        self._count = len(records)
        self._packed = zlib.compress(pickle.dumps(list(records)))
        scores = [record.log_likelihood for record in records if record.log_likelihood is not None]
        self.mean_log_likelihood = math.fsum(scores) / len(scores) if scores else None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[StatementRecord]:
        records: list[StatementRecord] = pickle.loads(zlib.decompress(self._packed))  # noqa: S301  # our own bytes
        return iter(records)


@dataclass(frozen=True, slots=True)
class RuleReport:
    """One rule's line in the closing table.

    `calls`: requests sent to the knowledge model for this rule's questions. `hits`: those that the journal or another
    rule of this run answered. Requests to the models that judge are counted for the whole run only. `in_both`:
    statements in head and long tail, which share the middle of a small pool. `skipped`: the reason why the rule was not
    searched. `cut`: a budget ended it, and it has no statements yet, or the limits of a demand loop left out some.
    `capped`: substitutions of each end that the rule's `@most` left out. `account`: a row for each step that was
    reached. `pool`: statements of which disjoint ends were cut, 0 for other ends; `crowded`: those that an end left out
    because it has enough with one of their values. `uncertain`: statements left out below the threshold of the promise
    on statements.
    """

    rule: str
    domain: str | None = None
    statements: Mapping[Distribution, PackedStatements] = field(default_factory=dict)
    gates: Mapping[str, GateCount] = field(default_factory=dict)
    questions: int = 0
    calls: int = 0
    hits: int = 0
    in_both: int = 0
    skipped: Unanswerable | None = None
    cut: bool = False
    capped: Mapping[Distribution, int] = field(default_factory=dict)
    account: tuple[StepAccount, ...] = ()
    pool: int = 0
    crowded: int = 0
    uncertain: int = 0

    @property
    def is_small(self) -> bool:
        """True if the rule has too few statements for meaningful ends."""
        return 0 < self.pool < SMALL_POOL

    def mean_log_likelihood(self, distribution: Distribution) -> float | None:
        """Mean over the distribution's statements of the evaluator's mean token log-likelihood, in nats."""
        statements = self.statements.get(distribution)
        return None if statements is None else statements.mean_log_likelihood

    @property
    def delta(self) -> float | None:
        """Mean log-likelihood of head less long-tail statements (paper, section 3.2); None without both."""
        head = self.mean_log_likelihood(Distribution.HEAD)
        long_tail = self.mean_log_likelihood(Distribution.LONG_TAIL)
        return None if head is None or long_tail is None else head - long_tail

    @property
    def is_empty(self) -> bool:
        """True if the rule was searched to its end and has no statement."""
        return self.skipped is None and not self.cut and not any(self.statements.values())

    def shortage(self, compat: str | None = None) -> Shortage | None:
        """Where the rule ran out of values, if it has no statement; `compat` as in the settings of the search."""
        return shortage(self.account, compat) if self.is_empty and not self.uncertain else None

    @property
    def equal_scores(self) -> tuple[int, int] | None:
        """Numbers of ranked texts that share their score, and of all, if the ranker tells less than half apart."""
        return equal_scores(self.account)

    def count(self, distribution: Distribution) -> int:
        """Number of statements of the distribution."""
        return len(self.statements.get(distribution, ()))

    def texts(self, distribution: Distribution) -> int:
        """Number of different texts of the distribution's statements."""
        return len({statement.text for statement in self.statements.get(distribution, ())})

    def to_json(self) -> dict[str, Any]:
        """The rule's line as the run record stores it."""
        return {
            "rule": self.rule,
            "domain": self.domain,
            **{distribution.value: self.count(distribution) for distribution in Distribution},
            "in_both": self.in_both,
            "delta": self.delta,
            "gates": {gate: asdict(count) for gate, count in self.gates.items()},
            "questions": self.questions,
            "calls": self.calls,
            "hits": self.hits,
            "skipped": asdict(self.skipped) if self.skipped else None,
            "cut": self.cut,
            "capped": {distribution.value: count for distribution, count in self.capped.items()},
            "account": [step.to_json() for step in self.account],
            "equal_scores": self.equal_scores,
            **({"uncertain": self.uncertain} if self.uncertain else {}),
            **({"pool": self.pool, "crowded": self.crowded} if self.pool else {}),
        }

    def examples(self, distribution: Distribution, count: int = EXAMPLES) -> tuple[str, ...]:
        """The most typical statements: the likeliest of the head, the least likely of the long tail."""
        statements = list(self.statements.get(distribution, ()))
        # Without an evaluator's score the order of derivation decides.
        scored = [statement for statement in statements if statement.log_likelihood is not None]
        sign = -1.0 if distribution is Distribution.HEAD else 1.0
        # The text decides between equal scores.
        scored.sort(key=lambda statement: (sign * (statement.log_likelihood or 0.0), statement.text))
        # Different substitutions may read the same.
        texts = dict.fromkeys(statement.text for statement in scored or statements)
        return tuple(texts)[:count]


def rule_report(search: RuleSearch, kept: Mapping[Distribution, Sequence[StatementRecord]]) -> RuleReport:
    """The line of a rule whose search is over, with its statements."""
    rule, division = search.plan.rule, search.division
    gates = dict(search.gates)
    merge(gates, search.verdicts.by_gate(search.settings.gates))
    ids = {end: {statement.id for statement in statements} for end, statements in kept.items()}
    return RuleReport(
        rule.name,
        rule.domain,
        {distribution: PackedStatements(own) for distribution, own in kept.items()},
        gates,
        len(search.questions),
        search.calls,
        search.hits,
        len(ids.get(Distribution.HEAD, set()) & ids.get(Distribution.LONG_TAIL, set())),
        cut=search.cut,
        capped=dict(search.capped),
        account=tuple(search.account),
        pool=0 if division is None else division.pool,
        crowded=0 if division is None else len(division.crowded),
        uncertain=search.uncertain,
    )


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The closing table: a line per rule, and the requests by role.

    `status`: done or budget. `budget`: message of the budget that was reached. `conflicts`: conflicts that the
    consistency gate decided, None if the rule files declare nothing or the gate is off.
    `critic_probe`: its scores of claims of known truth; None if that was not measured. `threshold`: where that of facts
    starts.
    `certificates`: what is promised about the accepted facts, in words. `evaluator`: name of the model that measured
    delta; `is_circular`: it ranked the statements itself, or one of the two learned from the other.
    """

    run_id: str
    rules: tuple[RuleReport, ...]
    statistics: Mapping[str, CallStatistics] = field(default_factory=dict)
    status: str = "done"
    budget: str | None = None
    conflicts: int | None = None
    critic_probe: CriticProbe | None = None
    threshold: float = START
    certificates: tuple[str, ...] = ()
    evaluator: str = ""
    is_circular: bool = False

    @property
    def searched(self) -> tuple[RuleReport, ...]:
        return tuple(rule for rule in self.rules if rule.skipped is None)

    @property
    def skipped(self) -> tuple[RuleReport, ...]:
        return tuple(rule for rule in self.rules if rule.skipped is not None)

    @property
    def cut(self) -> tuple[str, ...]:
        """Names of the rules that a budget cut."""
        return tuple(rule.rule for rule in self.rules if rule.cut)

    @property
    def mean_delta(self) -> float | None:
        """Mean of the rules' deltas, as in the paper."""
        deltas = [rule.delta for rule in self.rules if rule.delta is not None]
        return math.fsum(deltas) / len(deltas) if deltas else None

    @property
    def statements(self) -> tuple[StatementRecord, ...]:
        """All statements, rule by rule."""
        found: list[StatementRecord] = []
        for rule in self.rules:
            for packed in rule.statements.values():
                found.extend(packed)
        return tuple(found)

    def summary(self) -> dict[str, Any]:
        """The report as the run record stores it, with the calls of this repetition alone."""
        counts: dict[str, int] = {}
        for distribution in Distribution:
            counts[distribution.value] = sum(rule.count(distribution) for rule in self.rules)
        return {
            "statements": {**counts, "in_both": sum(rule.in_both for rule in self.rules)},
            "mean_delta": self.mean_delta,
            "evaluator": self.evaluator,
            "circular": self.is_circular,
            "rules": [rule.to_json() for rule in self.rules],
            "skipped": [rule.rule for rule in self.skipped],
            "cut": list(self.cut),
            "conflicts": self.conflicts,
            "critic": {
                **(self.critic_probe.to_json() if self.critic_probe else {"auc": None}),
                "threshold": self.threshold,
                "certificates": list(self.certificates),
            },
            "calls": {role: asdict(statistics) for role, statistics in self.statistics.items()},
        }


def spent_before(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The calls by role that a run has stored; none if another program changed them."""
    try:
        return {role: asdict(CallStatistics(**counts)) for role, counts in summary.get("calls", {}).items()}
    except (TypeError, AttributeError):
        return {}


def with_earlier(
    spent: Mapping[str, Mapping[str, Any]], statistics: Mapping[str, CallStatistics]
) -> dict[str, dict[str, Any]]:
    """The calls of a run by role: those of earlier repetitions and of this one, whose hits are the last ones."""
    every: dict[str, dict[str, Any]] = {}
    for role in dict.fromkeys((*statistics, *spent)):
        now = statistics.get(role, CallStatistics())
        every[role] = asdict(replace(CallStatistics(**spent.get(role, {})) + now, hits=now.hits))
    return every
