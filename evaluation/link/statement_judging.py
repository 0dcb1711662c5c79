"""Judges of statements: known facts, a critic, or people's votes.

A statement is *typed* if all its values are of their variables' types, *factual* if all facts that its rule requires
are true, and right overall if it is both (LINK, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.judgements import Judgements
from hapax.engine.questions.decidable import Origin, origin_of
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Literal, Substitution, Value
from hapax.grammar.values.calculation import holds
from hapax.kb.records import StatementRecord
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import CriticScore
from hapax.llm_oracle.questions.prompts import fact_claim, type_claim

Truth = Callable[[str, Sequence[Value]], bool | None]
"""Truth of a fact (indicator, arguments); None: unknown."""

TypeTruth = Callable[[Value, str], bool | None]
"""True if a value is of a data type; None: unknown."""

UNDECIDED = 0.5
"""P(yes) above which a critic's claim counts as true, and below which as false."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """Truth that statements are judged by. Without `types`, data types are not judged."""

    facts: Truth
    types: TypeTruth | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """Number of right cases among those whose truth is known."""

    right: int = 0
    known: int = 0

    @property
    def value(self) -> float | None:
        return self.right / self.known if self.known else None

    @classmethod
    def of(cls, verdicts: Iterable[bool | None]) -> Share:
        """Count the verdicts that are True, and those that are not None."""
        decided = [verdict for verdict in verdicts if verdict is not None]
        return cls(sum(decided), len(decided))

    def __str__(self) -> str:
        """`83.33 of 12`: percent right, and how many are known; `n/a` where none is."""
        return f"{100 * self.right / self.known:.2f} of {self.known}" if self.known else "n/a"


@dataclass(frozen=True, slots=True)
class StatementJudgement:
    """Verdicts on one statement; None: unknown. `overall` is the one that counts as right."""

    typed: bool | None
    factual: bool | None
    overall: bool | None


@dataclass(frozen=True, slots=True)
class JudgedAccuracy:
    """A row of LINK's tables 3 and 7 to 10. `judge`: name of the judge."""

    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    judge: str = ""


class Judge(Protocol):
    """A judge of statements, with a name for tables."""

    @property
    def name(self) -> str: ...

    def verdict(self, statement: StatementRecord) -> StatementJudgement: ...


def accuracy(statements: Sequence[StatementRecord], judge: Judge) -> JudgedAccuracy:
    """Count the right statements among those that the judge can decide."""
    judgements = [judge.verdict(statement) for statement in statements]
    return JudgedAccuracy(
        len(statements),
        Share.of(judgement.typed for judgement in judgements),
        Share.of(judgement.factual for judgement in judgements),
        Share.of(judgement.overall for judgement in judgements),
        judge.name,
    )


@dataclass(frozen=True)
class TruthJudge:
    """Judge by a ground truth for facts and types; arithmetic and given facts are decided as in a search.

    `searched`: the statements were derived by a search, so a derived atom holds whenever its facts do. The truth of
    derived atoms is unknown for statements that no search derived.
    """

    library: Library
    truth: GroundTruth
    known: RunFacts
    name: str = "known facts"
    searched: bool = True

    def verdict(self, statement: StatementRecord) -> StatementJudgement:
        """The judgement of a statement; without a truth for types, `overall` is `factual`."""
        factual = conjunction(self._requirements(statement))
        of_type = self.truth.types
        if of_type is None:
            return StatementJudgement(None, factual, factual)
        typed = conjunction(of_type(value, data_type) for value, data_type in typed_values(statement, self.library))
        return StatementJudgement(typed, factual, conjunction((typed, factual)))

    def is_true(self, atom: Atom) -> bool | None:
        return self.truth.facts(*_key(atom)) if atom.is_ground else None

    def _requirements(self, statement: StatementRecord) -> Iterator[bool | None]:
        """Truth of each comparison and atom that constrains the searched values."""
        rule = self.library.rule(statement.rule)
        values = dict(statement.substitution)
        for comparison in rule.comparisons:
            if not rule.is_information(comparison):
                bound = all(variable.name in values for variable in comparison.variables)
                yield holds(comparison, values) if bound else None
        for atom, literal in _constraints(statement, self.library):
            match origin_of(literal, self.library):
                # The truth of the atom itself; the negation is applied below.
                case Origin.MODEL:
                    truth = self.is_true(atom)
                case Origin.DERIVED:
                    # As the search has derived it: a negated atom is false then.
                    truth = not literal.negated if self.searched else None
                case _:
                    probability = self.known.truth(atom) if atom.is_ground else None
                    truth = None if probability is None else probability > 0
            # A negated literal holds where its atom does not.
            yield None if truth is None else truth != literal.negated


@dataclass(frozen=True)
class VoteJudge:
    """Judge by people's votes on the truth of statements and on data types; a tie decides nothing."""

    judged: Judgements
    name: str = "people's votes"

    def knows(self, statement: StatementRecord) -> bool:
        """True if anybody voted on the statement."""
        return self.judged.row(statement.id) in self.judged.texts

    def verdict(self, statement: StatementRecord) -> StatementJudgement:
        """Typed if every question on a data type was affirmed, factual if the statement is true."""
        judgement = self.judged.of(statement.id)
        return StatementJudgement(judgement.typed, judgement.is_true, conjunction((judgement.typed, judgement.is_true)))


def critic_truth(
    statements: Iterable[StatementRecord], library: Library, critic: JournaledCritic
) -> tuple[GroundTruth, BudgetReached | None]:
    """Ask a critic about all facts and types in one batch; claims that a budget cut off are unknown."""
    # Claims by fact and by type, so that verdicts find them again without wording them.
    facts: dict[tuple[str, tuple[Value, ...]], str] = {}
    types: dict[tuple[Value, str], str] = {}
    for statement in statements:
        for atom, _ in _model_atoms(statement, library):
            facts[_key(atom)] = fact_claim(atom, library)
        for value, data_type in typed_values(statement, library):
            if not library.is_numeric(data_type):
                types[value, data_type] = type_claim(str(value), data_type)
    claims = list(dict.fromkeys((*facts.values(), *types.values())))
    reached = None
    try:
        scores: Sequence[CriticScore | None] = critic.probabilities(claims)
    except BudgetReached as stopped:
        # As long as the claims, with None for those that were not answered.
        scores, reached = stopped.answers, stopped
    by_claim = dict(zip(claims, scores, strict=True))

    def verdict(claim: str | None) -> bool | None:
        score = None if claim is None else by_claim.get(claim)
        # None: not asked, or cut off by the budget.
        # Exactly 0.5, which critics also give to claims that they do not cover, decides nothing.
        return None if score is None or score.probability == UNDECIDED else score.probability > UNDECIDED

    def of_type(value: Value, data_type: str) -> bool | None:
        # Whether a value is a number can be seen; a critic is not asked about it.
        if library.is_numeric(data_type):
            return not isinstance(value, str)
        return verdict(types.get((value, data_type)))

    return GroundTruth(lambda name, values: verdict(facts.get((name, tuple(values)))), of_type), reached


def typed_values(statement: StatementRecord, library: Library) -> list[tuple[Value, str]]:
    """The statement's searched values with the types of their variables."""
    types = {variable.name: variable.data_type for variable in library.rule(statement.rule).searched}
    return [(value, types[name]) for name, value in statement.substitution if name in types]


def conjunction(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued "and": False if any verdict is False, else None if any is unknown, else True."""
    # False decides even beside an unknown: a statement with one false fact is wrong.
    distinct = set(verdicts)
    if False in distinct:
        return False
    return None if None in distinct else True


def _constraints(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The constraint atoms with the statement's values, each with its literal in the rule."""
    rule = library.rule(statement.rule)
    bound = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    for literal in rule.literals:
        if not rule.is_information(literal):
            yield bound.apply(literal.atom), literal


def _model_atoms(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The ground constraint atoms whose facts come from a model."""
    for atom, literal in _constraints(statement, library):
        if atom.is_ground and origin_of(literal, library) is Origin.MODEL:
            yield atom, literal


def _key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    return atom.indicator, tuple(term.value for term in atom.arguments if isinstance(term, Constant))
