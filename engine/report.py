"""What a search is told to do, and what it tells afterwards: settings, rule reports, the whole report, progress."""

from __future__ import annotations

import math
import pickle
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal, Protocol

from engine.gates import KEEP_SHARE, TYPE_FLOOR, CriticRule
from engine.oracle import OracleSettings
from grammar.dependencies import BEAM, Preset
from grammar.errors import HapaxError
from grammar.words import counted
from kb.records import Distribution, StatementRecord
from llm_oracle.calls import CallStatistics
from llm_oracle.protocols import GenerationParameters

Ranker = Literal["model", "random", "none"]
Compat = Literal["paper", "released"]

EXAMPLES = 3

TELLING_SHARE = 0.05
"""From this share of a search on, its pace tells the time left; before, questions are few and their lists long."""


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How a search goes. The defaults are Hapax's own; `compat` brings LINK's paper or LINK's released code.

    `beam`: partial substitutions kept at each step and distribution. `keep_share`: share of a step's pool that the
    likelihood gate keeps. `likelihood`: who ranks; `random` and `none` are for ablation. `max_statements`: at most so
    many per rule and distribution; None: all. `rules_together`: how many rules share batches, and so are cut together
    when a budget ends.
    """

    distributions: tuple[Distribution, ...] = (Distribution.HEAD, Distribution.LONG_TAIL)
    beam: int = BEAM
    keep_share: float = KEEP_SHARE
    calls_per_question: int = 4
    values_per_call: int = 50
    critic: bool = True
    likelihood: Ranker = "model"
    compat: Compat | None = None
    plan: Preset = "cheapest"
    seed: int = 0
    temperature: float = 0.7
    max_statements: int | None = None
    threshold_cap: float = 1.0
    """The critic's threshold never rises above it."""
    rules_together: int = 8

    def __post_init__(self) -> None:
        if self.beam < 1 or self.calls_per_question < 1 or self.values_per_call < 1 or self.rules_together < 1:
            raise HapaxError("Beam, calls, values and rules at once should each be at least 1.")
        if not 0.0 < self.keep_share <= 1.0:
            raise HapaxError(f"The likelihood gate cannot keep {self.keep_share:g} of the beams. Give 0 < share <= 1.")
        if not self.distributions:
            raise HapaxError("No distribution to search. Give head, long_tail or both.")

    @property
    def oracle(self) -> OracleSettings:
        """How the oracle asks and judges under these settings."""
        link = self.compat is not None
        moving_type = CriticRule(floor=TYPE_FLOOR)
        fixed_type = CriticRule(TYPE_FLOOR, floor=TYPE_FLOOR, fixed=True)
        return OracleSettings(
            calls_per_question=self.calls_per_question,
            values_per_call=self.values_per_call,
            critic=self.critic,
            type_rule=moving_type if link else fixed_type,
            fact_rule=CriticRule(cap=self.threshold_cap, released=self.compat == "released"),
            fact_first=self.compat == "released",
            link_exclusion=link,
            parameters=GenerationParameters(temperature=self.temperature, seed=self.seed),
        )

    def to_json(self) -> dict[str, Any]:
        """The settings as the run record keeps them."""
        return {**asdict(self), "distributions": [one.value for one in self.distributions]}


class SearchProgress(Protocol):
    """What a progress display is told. Rooms know nothing of how it is shown."""

    def started(self, rules: int, calls: int) -> None:
        """A search of so many rules begins; so many calls of the knowledge model are expected."""

    def searching(self, rules: Sequence[str], calls: int) -> None:
        """The next rules are searched, side by side; so many of the expected calls are theirs."""

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        """More calls sent to the knowledge model, answers from the journal, values accepted and rejected."""


@dataclass
class Tally:
    """A `SearchProgress` that only counts: what displays of every kind show.

    Rules take fewer calls than expected, or more; so what is over is counted rule by rule, and only the share of the
    rules in hand is told by their calls.
    """

    clock: Callable[[], float] = time.monotonic
    calls: int = 0
    hits: int = 0
    accepted: int = 0
    rejected: int = 0
    _rules: int = 0
    _expected: int = 0
    _now: tuple[str, ...] = ()
    _rules_over: int = 0
    _expected_now: int = 0
    _expected_over: int = 0
    _asked_now: int = 0
    _since: float = 0.0

    def started(self, rules: int, calls: int) -> None:
        self._rules, self._expected, self._since = rules, calls, self.clock()
        self._now, self._rules_over, self._expected_now, self._expected_over, self._asked_now = (), 0, 0, 0, 0

    def searching(self, rules: Sequence[str], calls: int) -> None:
        self._rules_over += len(self._now)
        self._expected_over += self._expected_now
        self._now, self._expected_now, self._asked_now = tuple(rules), calls, 0

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        self.calls += calls
        self.hits += hits
        self.accepted += accepted
        self.rejected += rejected
        self._asked_now += calls + hits

    @property
    def seconds(self) -> float:
        """Since the search began."""
        return self.clock() - self._since

    @property
    def share(self) -> float:
        """How much of the search is over, from 0 to 1."""
        over = self._expected_over + min(self._asked_now, self._expected_now)
        return over / self._expected if self._expected else 0.0

    @property
    def rules(self) -> str:
        """The rules in hand: `rule 3 of 9`, `rules 1 to 8 of 9`."""
        first, last = self._rules_over + 1, self._rules_over + len(self._now)
        return f"rule {first} of {self._rules}" if first == last else f"rules {first} to {last} of {self._rules}"

    @property
    def counts(self) -> str:
        """`204 calls, 1 hit, 310 accepted, 95 rejected`."""
        return (
            f"{counted(self.calls, 'call')}, {counted(self.hits, 'hit')}, "
            f"{self.accepted} accepted, {self.rejected} rejected"
        )

    @property
    def left(self) -> str:
        """The time left if it goes on as it went, `, 0:01:40 left`; empty before that can be told, and at the end."""
        left = self.seconds * (1 / self.share - 1) if TELLING_SHARE <= self.share < 1 else None
        return "" if left is None else f", {duration(left)} left"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds: `0:01:40`."""
    return str(timedelta(seconds=round(seconds)))


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """Why a rule is not searched: what one of the models does not know, and the options that bring another.

    `unknown`: indicators, and types as `the type Dish`.
    """

    model: str
    unknown: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class GateCount:
    """How many passed a gate, of how many that came to it."""

    accepted: int = 0
    judged: int = 0

    def __add__(self, other: GateCount) -> GateCount:
        return GateCount(self.accepted + other.accepted, self.judged + other.judged)

    @property
    def share(self) -> float | None:
        return self.accepted / self.judged if self.judged else None


class Statements:
    """A rule's statements of one distribution, packed, with what the closing table tells of them.

    A record with its proof takes 3 to 5 kB, packed among others some 0.1 kB, and a run may have 100,000 of them.
    Each time they are gone through they are unpacked.
    """

    __slots__ = ("_count", "_packed", "mean_log_likelihood")

    def __init__(self, records: Sequence[StatementRecord]) -> None:
        self._count = len(records)
        self._packed = zlib.compress(pickle.dumps(list(records)))
        scores = [one.log_likelihood for one in records if one.log_likelihood is not None]
        self.mean_log_likelihood = math.fsum(scores) / len(scores) if scores else None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[StatementRecord]:
        records: list[StatementRecord] = pickle.loads(zlib.decompress(self._packed))  # noqa: S301  # our own bytes
        return iter(records)


@dataclass(frozen=True, slots=True)
class RuleReport:
    """One rule's line in the closing table.

    `calls`: requests sent to the knowledge model for this rule's questions; `hits`: those that the journal or another
    rule of this run answered. Requests to the models that judge are counted for the whole run alone. `skipped`: why the
    rule was not searched; `cut`: the budget ended it before it was complete.
    """

    rule: str
    domain: str | None = None
    statements: Mapping[Distribution, Statements] = field(default_factory=dict)
    gates: Mapping[str, GateCount] = field(default_factory=dict)
    questions: int = 0
    calls: int = 0
    hits: int = 0
    in_both: int = 0
    """Statements that are in head and long tail: where a pool is small, both ends keep its middle."""
    skipped: Unanswerable | None = None
    cut: bool = False

    def mean_log_likelihood(self, distribution: Distribution) -> float | None:
        """Mean over the distribution's statements of the evaluator's mean token log-likelihood, in nats."""
        statements = self.statements.get(distribution)
        return None if statements is None else statements.mean_log_likelihood

    @property
    def delta(self) -> float | None:
        """How much likelier head statements are than long-tail ones (paper, section 3.2); None where one is missing."""
        head = self.mean_log_likelihood(Distribution.HEAD)
        long_tail = self.mean_log_likelihood(Distribution.LONG_TAIL)
        return None if head is None or long_tail is None else head - long_tail

    def count(self, distribution: Distribution) -> int:
        return len(self.statements.get(distribution, ()))

    def to_json(self) -> dict[str, Any]:
        """The rule's line as the run record keeps it."""
        return {
            "rule": self.rule,
            "domain": self.domain,
            **{each.value: self.count(each) for each in Distribution},
            "in_both": self.in_both,
            "delta": self.delta,
            "gates": {gate: asdict(count) for gate, count in self.gates.items()},
            "questions": self.questions,
            "calls": self.calls,
            "hits": self.hits,
            "skipped": asdict(self.skipped) if self.skipped else None,
            "cut": self.cut,
        }

    def examples(self, distribution: Distribution, count: int = EXAMPLES) -> tuple[str, ...]:
        """The most typical statements of the distribution: its likeliest, or its unlikeliest."""
        statements = list(self.statements.get(distribution, ()))
        known = [one for one in statements if one.log_likelihood is not None]
        sign = -1.0 if distribution is Distribution.HEAD else 1.0
        best = sorted(known, key=lambda one: (sign * (one.log_likelihood or 0.0), one.text))
        texts = (one.text for one in best or statements)
        return tuple(dict.fromkeys(texts))[:count]


@dataclass(frozen=True, slots=True)
class SearchReport:
    """The closing table: a line per rule, and what was sent by role. `status` is done or budget."""

    run_id: str
    rules: tuple[RuleReport, ...]
    statistics: Mapping[str, CallStatistics] = field(default_factory=dict)
    status: str = "done"
    budget: str | None = None
    """The message of the budget that was reached."""

    @property
    def searched(self) -> tuple[RuleReport, ...]:
        return tuple(one for one in self.rules if one.skipped is None)

    @property
    def skipped(self) -> tuple[RuleReport, ...]:
        return tuple(one for one in self.rules if one.skipped is not None)

    @property
    def cut(self) -> tuple[str, ...]:
        return tuple(one.rule for one in self.rules if one.cut)

    @property
    def mean_delta(self) -> float | None:
        """Mean of the rules' deltas, as the paper averages."""
        deltas = [one.delta for one in self.rules if one.delta is not None]
        return math.fsum(deltas) / len(deltas) if deltas else None

    @property
    def statements(self) -> tuple[StatementRecord, ...]:
        return tuple(one for rule in self.rules for several in rule.statements.values() for one in several)

    def summary(self) -> dict[str, Any]:
        """What the run record keeps."""
        return {
            "statements": {
                **{each.value: sum(one.count(each) for one in self.rules) for each in Distribution},
                "in_both": sum(one.in_both for one in self.rules),
            },
            "mean_delta": self.mean_delta,
            "rules": [one.to_json() for one in self.rules],
            "skipped": [one.rule for one in self.skipped],
            "cut": list(self.cut),
            "calls": {role: asdict(counts) for role, counts in self.statistics.items()},
        }
