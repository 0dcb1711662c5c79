"""Judges of statements, and the accuracy of statements by them: LINK's tables 3 and 7 to 10, with the paper's figures.

People's votes judge if there are any, or else a critic, the simulated world of the model that wrote the statements, or
the atlas of the embedded model. For these, arithmetic and given facts are decided as in a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hapax.engine.gates.decidable import Origin, origin_of
from hapax.engine.gates.score_maps import short_model_name
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.judgements import Judgements
from hapax.evaluation.shared.result_tables import ResultTable
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Literal, Substitution, Value
from hapax.grammar.values.functions import holds
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import CriticScore, Generator
from hapax.llm_oracle.questions.prompts import fact_claim, type_claim
from hapax.llm_oracle.scripts.simulated import SimulatedModel

UNDECIDED = 0.5
"""P(yes) above which a critic's claim counts as true, and below which as false."""

Verdict = tuple[bool | None, bool | None]
"""Whether a statement's values are of their types, and whether its premise holds; None: unknown."""


@dataclass(frozen=True)
class Judge:
    """A judge of statements, named as in tables. `budget`: the budget that stopped the critic, if one did."""

    name: str
    verdict: Callable[[StatementRecord], Verdict]
    budget: BudgetReached | None = None


@dataclass(frozen=True, slots=True)
class Truth:
    """Knowledge of a judge: whether a ground atom is true, and whether a value is of a data type; None: unknown."""

    is_true: Callable[[Atom], bool | None]
    is_a: Callable[[Value, str], bool | None]


@dataclass(frozen=True, slots=True)
class Share:
    """Number of right cases among those whose truth is known."""

    right: int = 0
    known: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[bool | None]) -> Share:
        """Count the verdicts that are True, and those that are not None."""
        decided = [verdict for verdict in verdicts if verdict is not None]
        return cls(sum(decided), len(decided))

    def __str__(self) -> str:
        """`83.33 of 12`: percent right, and how many are known; `n/a` where none is."""
        return f"{100 * self.right / self.known:.2f} of {self.known}" if self.known else "n/a"


@dataclass(frozen=True, slots=True)
class JudgedAccuracy:
    """A row of LINK's tables 3 and 7 to 10. `judge`: name of the judge."""

    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    judge: str

    @classmethod
    def of(cls, statements: Sequence[StatementRecord], judge: Judge) -> JudgedAccuracy:
        """Count the right statements among those that the judge can decide."""
        verdicts = [judge.verdict(statement) for statement in statements]
        typed, factual = (Share.of(verdict[place] for verdict in verdicts) for place in (0, 1))
        return cls(len(statements), typed, factual, Share.of(map(conjunction, verdicts)), judge.name)

    @property
    def cells(self) -> tuple[str, str, str]:
        """The cells of a row of the tables, by `COLUMNS`."""
        return (str(self.data_type), str(self.factuality), str(self.overall))


def conjunction(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued "and": False if any verdict is False, else None if any is unknown, else True."""
    # False decides even beside an unknown: a statement with one false fact is wrong.
    distinct = set(verdicts)
    if False in distinct:
        return False
    return None if None in distinct else True


def judge_of(
    kb: KnowledgeBase,
    library: Library,
    statements: Sequence[StatementRecord],
    author: Generator,
    *,
    critic: JournaledCritic | None = None,
    searched: bool = False,
) -> Judge:
    """The judge of statements. `author`: who proposed their values; `critic`: who judges in place of all others.

    `searched`: a search derived them, so that a derived atom holds whenever its facts do; else its truth is unknown.
    """
    budget = None
    if critic is not None:
        truth, budget = _critics_truth(statements, library, critic)
        name = f"the critic {short_model_name(critic.identity.title)}"
    else:
        judged = Judgements.stored(kb)
        # A vote on one statement is enough: those without votes are then unknown, never judged by somebody else.
        if any(judged.row(statement.id) in judged.texts for statement in statements):
            return Judge("people's votes", lambda record: (judged.of(record.id).typed, judged.of(record.id).is_true))
        name, truth = _known_truth(author)
    known = RunFacts(kb, library)

    def verdict(statement: StatementRecord) -> Verdict:
        typed = conjunction(truth.is_a(value, data_type) for value, data_type in _typed_values(statement, library))
        return typed, conjunction(_requirements(statement, library, truth, known, searched))

    return Judge(name, verdict, budget)


def _known_truth(author: Generator) -> tuple[str, Truth]:
    """The truth of the author's simulated world, or of the atlas of the embedded model; with its name."""
    if isinstance(author, SimulatedModel):
        world = author.world
        return f"the simulated world {world.seed}", Truth(lambda atom: world.holds(*_key(atom)), world.is_a)
    from hapax.llm_oracle.embedded.atlas import load_atlas

    atlas = load_atlas()
    return "the atlas", Truth(lambda atom: atlas.truth(*_key(atom)), atlas.type_truth)


def _critics_truth(
    statements: Iterable[StatementRecord], library: Library, critic: JournaledCritic
) -> tuple[Truth, BudgetReached | None]:
    """Ask a critic about all facts and types in one batch; claims that a budget cut off are unknown."""
    claims: dict[str, None] = {}
    for statement in statements:
        for atom, literal in _constraints(statement, library):
            if atom.is_ground and origin_of(literal, library) is Origin.MODEL:
                claims[fact_claim(atom, library)] = None
        for value, data_type in _typed_values(statement, library):
            if not library.is_numeric(data_type):
                claims[type_claim(str(value), data_type)] = None
    reached = None
    try:
        scores: Sequence[CriticScore | None] = critic.probabilities(list(claims))
    except BudgetReached as stopped:
        # As long as the claims, with None for those that were not answered.
        scores, reached = stopped.answers, stopped
    truths = {}
    for claim, score in zip(claims, scores, strict=True):
        # Exactly 0.5, which critics also give to claims that they do not cover, decides nothing.
        if score is not None and score.probability != UNDECIDED:
            truths[claim] = score.probability > UNDECIDED

    def is_a(value: Value, data_type: str) -> bool | None:
        # Whether a value is a number can be seen; a critic is not asked about it.
        return (
            not isinstance(value, str)
            if library.is_numeric(data_type)
            else truths.get(type_claim(str(value), data_type))
        )

    return Truth(lambda atom: truths.get(fact_claim(atom, library)), is_a), reached


def _requirements(
    statement: StatementRecord, library: Library, truth: Truth, known: RunFacts, searched: bool
) -> Iterator[bool | None]:
    """Truth of each comparison and atom that constrains the searched values."""
    rule = library.rule(statement.rule)
    values = dict(statement.substitution)
    for comparison in rule.comparisons:
        if not rule.is_information(comparison):
            bound = all(variable.name in values for variable in comparison.variables)
            yield holds(comparison, values) if bound else None
    for atom, literal in _constraints(statement, library):
        # The truth of the atom itself; a negated literal holds where its atom does not.
        is_true = None
        origin = origin_of(literal, library)
        if origin is Origin.DERIVED:
            # As the search has derived it: a negated atom is false then.
            is_true = not literal.negated if searched else None
        elif atom.is_ground and origin is Origin.MODEL:
            is_true = truth.is_true(atom)
        elif atom.is_ground and (probability := known.truth(atom)) is not None:
            is_true = probability > 0
        yield None if is_true is None else is_true != literal.negated


def _typed_values(statement: StatementRecord, library: Library) -> list[tuple[Value, str]]:
    """The statement's searched values with the types of their variables."""
    types = {variable.name: variable.data_type for variable in library.rule(statement.rule).searched}
    return [(value, types[name]) for name, value in statement.substitution if name in types]


def _constraints(statement: StatementRecord, library: Library) -> Iterator[tuple[Atom, Literal]]:
    """The constraint atoms with the statement's values, each with its literal in the rule."""
    rule = library.rule(statement.rule)
    bound = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
    for literal in rule.literals:
        if not rule.is_information(literal):
            yield bound.apply(literal.atom), literal


def _key(atom: Atom) -> tuple[str, tuple[Value, ...]]:
    return atom.indicator, tuple(term.value for term in atom.arguments if isinstance(term, Constant))


# --- the paper's figures ----------------------------------------------------------------------------------------------

COLUMNS = ("Data Type", "Factuality", "Overall")
UNKNOWN_CELLS = ("n/a", "n/a", "n/a")


PAPER = read_yaml(Path(__file__).with_name("paper.yaml").read_text("utf-8"))
"""LINK's figures as printed, in percent."""


def printed_table(number: int) -> ResultTable:
    """Table 3 or one of 7 to 10 of the paper: methods with their three accuracies."""
    printed = PAPER["accuracy"][number]
    rows = [(name, *(f"{figure:.2f}" for figure in figures)) for name, *figures in printed["rows"]]
    return ResultTable(f"LINK's paper, table {number}: {printed['title']}", (printed["first"], *COLUMNS), rows)
