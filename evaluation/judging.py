"""Which statements are right: by known facts, by a critic, or by people's votes.

A statement is *typed* if all its values are of their variables' types, *factual* if everything that its rule demands
of them is true, and right overall if both (LINK, section 3.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.beams import Origin, origin_of
from engine.known import KnownFacts
from evaluation.probing.items import DATA_TYPE, ENTAILMENT
from grammar.arithmetic import holds
from grammar.rules import Library
from grammar.terms import Atom, Comparison, Constant, Literal, Substitution, Value
from grammar.verbalize import atom_text
from kb.records import StatementRecord, VoteRecord
from llm_oracle.calls import BudgetReached, JournaledCritic
from llm_oracle.prompts import sentence, type_claim
from llm_oracle.protocols import CriticScore

Truth = Callable[[str, Sequence[Value]], bool | None]
"""Whether a fact (indicator, arguments) is true; None: unknown."""

TypeTruth = Callable[[Value, str], bool | None]
"""Whether a value is of a data type; None: unknown."""

UNDECIDED = 0.5
"""A critic that judges statements takes a claim for true above this P(yes), and for false below."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What statements are judged by. Without `types`, no data type is judged."""

    facts: Truth
    types: TypeTruth | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """How many were right of those whose truth is known."""

    right: int = 0
    known: int = 0

    @property
    def value(self) -> float | None:
        return self.right / self.known if self.known else None

    @classmethod
    def of(cls, verdicts: Iterable[bool | None]) -> Share:
        """The share of True among what is not None."""
        known = [one for one in verdicts if one is not None]
        return cls(sum(known), len(known))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known of one statement; None: unknown. `overall` is what counts as right."""

    typed: bool | None
    factual: bool | None
    overall: bool | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """One row of LINK's tables 3 and 7 to 10, by whom it was judged."""

    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    judge: str = ""


class Judge(Protocol):
    """Gives verdicts; `name` says who it is."""

    @property
    def name(self) -> str: ...

    def verdict(self, statement: StatementRecord) -> Verdict: ...


def accuracy(statements: Sequence[StatementRecord], judge: Judge) -> Accuracy:
    """How many of the statements are right, of those that the judge knows."""
    verdicts = [judge.verdict(one) for one in statements]
    return Accuracy(
        len(statements),
        Share.of(one.typed for one in verdicts),
        Share.of(one.factual for one in verdicts),
        Share.of(one.overall for one in verdicts),
        judge.name,
    )


@dataclass(frozen=True)
class TruthJudge:
    """Looks facts and types up in a truth; arithmetic and given facts are decided as in a search.

    `searched`: the statements were derived, so that what rules derive of them holds if its facts do. Of statements
    that nobody derived it is unknown.
    """

    library: Library
    truth: GroundTruth
    known: KnownFacts
    name: str = "known facts"
    searched: bool = True

    def verdict(self, statement: StatementRecord) -> Verdict:
        """Typed, factual, and both; without types to look up, factual alone counts."""
        typed, factual = self._is_typed(statement), every(self._demands(statement))
        return Verdict(typed, factual, every((typed, factual)) if self.truth.types else factual)

    def facts(self, statement: StatementRecord) -> list[Atom]:
        """The ground constraint atoms of the statement that a model was asked about."""
        asked = _asked(statement, self.library)
        return [atom for atom, literal in asked if not literal.negated]

    def is_true(self, atom: Atom) -> bool | None:
        return self.truth.facts(*_key(atom)) if atom.is_ground else None

    def _demands(self, statement: StatementRecord) -> Iterator[bool | None]:
        """The truth of everything that the premise demands of the searched values."""
        rule = self.library.rule(statement.rule)
        values = dict(statement.substitution)
        for item in rule.comparisons:
            if not rule.is_information(item):
                yield _compares(item, values)
        for atom, literal in _constraints(statement, self.library):
            truth = self._atom_truth(atom, literal)
            yield None if truth is None else truth != literal.negated

    def _atom_truth(self, atom: Atom, literal: Literal) -> bool | None:
        match origin_of(literal, self.library):
            case Origin.MODEL:
                return self.is_true(atom)
            case Origin.DERIVED:
                return not literal.negated if self.searched else None
            case _:
                found = self.known.truth(atom) if atom.is_ground else None
                return None if found is None else found > 0

    def _is_typed(self, statement: StatementRecord) -> bool | None:
        of_type = self.truth.types
        if of_type is None:
            return None
        return every(of_type(value, data_type) for value, data_type in typed_values(statement, self.library))


@dataclass(frozen=True)
class VoteJudge:
    """The majority of people's votes on entailment and data types; a tie, and no vote, decide nothing."""

    votes: Iterable[VoteRecord]
    name: str = "people's votes"
    _balance: dict[str, Counter[str]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        balance: dict[str, Counter[str]] = {}
        for one in self.votes:
            answer = {"yes": 1, "no": -1}.get(one.answer.strip().casefold(), 0)
            balance.setdefault(one.statement_id, Counter())[one.question.strip().casefold()] += answer
        object.__setattr__(self, "_balance", balance)

    def knows(self, statement: StatementRecord) -> bool:
        """Whether anybody voted on it."""
        return statement.id in self._balance

    def verdict(self, statement: StatementRecord) -> Verdict:
        """Typed if every question on a type was affirmed, factual if entailment was."""
        counts = self._balance.get(statement.id, Counter())
        types = [_majority(count) for question, count in counts.items() if question.startswith(DATA_TYPE)]
        typed = every(types) if types else None
        factual = _majority(counts[ENTAILMENT]) if ENTAILMENT in counts else None
        return Verdict(typed, factual, every((typed, factual)))


def critic_truth(
    statements: Iterable[StatementRecord], library: Library, critic: JournaledCritic
) -> tuple[GroundTruth, BudgetReached | None]:
    """What a critic says of the statements' facts and types, asked in one batch; unknown is what a budget cut off."""
    facts: dict[tuple[str, tuple[Value, ...]], str] = {}
    types: dict[tuple[Value, str], str] = {}
    for statement in statements:
        facts.update((_key(atom), sentence(atom_text(atom, library))) for atom, _ in _asked(statement, library))
        for value, data_type in typed_values(statement, library):
            if not library.is_numeric(data_type):
                types[value, data_type] = type_claim(str(value), data_type)
    claims = list(dict.fromkeys((*facts.values(), *types.values())))
    said, reached = _answers(critic, claims)

    def holds_of(claim: str | None) -> bool | None:
        probability = said.get(claim) if claim else None
        return None if probability in (None, UNDECIDED) else probability > UNDECIDED

    def of_type(value: Value, data_type: str) -> bool | None:
        if library.is_numeric(data_type):
            return not isinstance(value, str)
        return holds_of(types.get((value, data_type)))

    return GroundTruth(lambda name, values: holds_of(facts.get((name, tuple(values)))), of_type), reached


def typed_values(statement: StatementRecord, library: Library) -> list[tuple[Value, str]]:
    """The statement's searched values with the types of their variables."""
    types = {one.name: one.data_type for one in library.rule(statement.rule).searched}
    return [(value, types[name]) for name, value in statement.substitution if name in types]


def every(verdicts: Iterable[bool | None]) -> bool | None:
    """False if one is false, else None if one is unknown, else True."""
    found = list(verdicts)
    if any(one is False for one in found):
        return False
    return None if any(one is None for one in found) else True


def _constraints(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The atoms that only constrain, with the statement's values, and the literals that they come from."""
    rule = library.rule(statement.rule)
    bound = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    for literal in rule.literals:
        if not rule.is_information(literal):
            yield bound.apply(literal.atom), literal


def _asked(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """Those that a model knows."""
    for atom, literal in _constraints(statement, library):
        if atom.is_ground and origin_of(literal, library) is Origin.MODEL:
            yield atom, literal


def _key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    return atom.indicator, tuple(term.value for term in atom.arguments if isinstance(term, Constant))


def _answers(critic: JournaledCritic, claims: Sequence[str]) -> tuple[dict[str, float], BudgetReached | None]:
    try:
        scores: Sequence[CriticScore | None] = critic.probabilities(claims)
        reached = None
    except BudgetReached as stopped:
        scores, reached = stopped.answers, stopped
    found = {claim: score.probability for claim, score in zip(claims, scores, strict=True) if score is not None}
    return found, reached


def _compares(comparison: Comparison, values: Mapping[str, Value]) -> bool | None:
    known = all(variable.name in values for variable in comparison.variables)
    return holds(comparison, values) if known else None


def _majority(balance: int) -> bool | None:
    return None if balance == 0 else balance > 0
