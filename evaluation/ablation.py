"""What critic and likelihood gate are good for: the same rules searched with and without each (LINK, appendix D).

The four variants share one journal, so that only what a variant alone needs is asked for it; each keeps its facts in a
store of its own, because what no critic has judged must not reach the user's. With a truth to compare with, the result
has the columns of the paper's tables 8 and 9; the likelihoods by variant are its figure 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.beams import Origin, origin_of
from engine.report import SearchProgress, SearchReport, SearchSettings
from engine.search import search
from grammar.rules import Library, Rule
from grammar.terms import Atom, Constant, Literal, Substitution, Value
from kb.records import Distribution, Source, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import Journal
from llm_oracle.protocols import Models

Truth = Callable[[str, Sequence[Value]], bool | None]
"""Whether a fact (indicator, arguments) is true; None: unknown."""

TypeTruth = Callable[[Value, str], bool | None]
"""Whether a value is of a data type; None: unknown."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """What statements are judged by. Without `types`, no data type is judged."""

    facts: Truth
    types: TypeTruth | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is searched, by which models and how: the same for all variants."""

    library: Library
    rules: Sequence[Rule]
    models: Models
    settings: SearchSettings = field(default_factory=SearchSettings)


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of the tables, with the settings that make it."""

    name: str
    critic: bool
    likelihood: bool


VARIANTS = (
    Variant("full", critic=True, likelihood=True),
    Variant("w/o critic", critic=False, likelihood=True),
    Variant("w/o likelihood", critic=True, likelihood=False),
    Variant("w/o critic+likelihood", critic=False, likelihood=False),
)


@dataclass(frozen=True, slots=True)
class Share:
    """How many were right of those whose truth is known."""

    right: int = 0
    known: int = 0

    @property
    def value(self) -> float | None:
        return self.right / self.known if self.known else None


@dataclass(frozen=True, slots=True)
class AblationCell:
    """One variant and distribution. A statement is factual if all the facts behind it are true, typed if all its values
    are of their variables' types, and overall right if both; `facts` counts each distinct fact once."""

    variant: str
    distribution: Distribution
    statements: int
    data_type: Share
    factuality: Share
    overall: Share
    facts: Share


@dataclass(frozen=True, slots=True)
class AblationReport:
    """The cells of tables 8 and 9, delta by variant, and the likelihoods of figure 6."""

    cells: tuple[AblationCell, ...]
    deltas: Mapping[str, float | None]
    log_likelihoods: Mapping[str, Mapping[Distribution, Mapping[str, tuple[float, ...]]]]
    """Variant -> distribution -> rule -> mean token log-likelihoods of its statements, in nats, ascending."""
    reports: Mapping[str, SearchReport] = field(default_factory=dict)

    def cell(self, variant: str, distribution: Distribution) -> AblationCell:
        return next(one for one in self.cells if one.variant == variant and one.distribution is distribution)


def ablation(
    experiment: Experiment,
    kb: KnowledgeBase,
    truth: GroundTruth,
    progress: SearchProgress | None = None,
    journal: Journal | None = None,
) -> AblationReport:
    """Search the rules in all four variants. `kb` gives the journal and the given facts."""
    library, rules, models, settings = experiment.library, experiment.rules, experiment.models, experiment.settings
    journal = journal or Journal(kb)
    given = [fact for fact in kb.facts() if fact.source is Source.GIVEN]
    reports: dict[str, SearchReport] = {}
    for variant in VARIANTS:
        varied = replace(settings, critic=variant.critic, likelihood="model" if variant.likelihood else "random")
        with KnowledgeBase(None) as own:
            own.add_facts(given)
            reports[variant.name] = search(library, rules, own, models, varied, progress=progress, journal=journal)
    judge = _Judge(library, truth)
    return AblationReport(
        cells=tuple(
            judge.cell(name, distribution, report)
            for name, report in reports.items()
            for distribution in settings.distributions
        ),
        deltas={name: report.mean_delta for name, report in reports.items()},
        log_likelihoods={name: _likelihoods(report, settings.distributions) for name, report in reports.items()},
        reports=reports,
    )


@dataclass
class _Judge:
    """Looks statements up in the truth."""

    library: Library
    truth: GroundTruth

    def cell(self, variant: str, distribution: Distribution, report: SearchReport) -> AblationCell:
        statements = [one for one in report.statements if one.distribution is distribution]
        typed = [self._is_typed(one) for one in statements]
        facts = [self._facts(one) for one in statements]
        factual = [_all(self._is_true(atom) for atom in atoms) for atoms in facts]
        distinct = {atom for atoms in facts for atom in atoms}
        overall = [_all(pair) for pair in zip(typed, factual, strict=True)] if self.truth.types else factual
        return AblationCell(
            variant,
            distribution,
            len(statements),
            _share(typed),
            _share(factual),
            _share(overall),
            _share([self._is_true(atom) for atom in distinct]),
        )

    def _facts(self, statement: StatementRecord) -> list[Atom]:
        """The ground constraint atoms of the statement that a model was asked about."""
        rule = self.library.rule(statement.rule)
        bound = Substitution(tuple((name, Constant(value)) for name, value in statement.substitution))
        return [
            bound.apply(literal.atom)
            for literal in rule.literals
            if self._is_asked(rule, literal) and not literal.negated
        ]

    def _is_asked(self, rule: Rule, literal: Literal) -> bool:
        return not rule.is_information(literal) and origin_of(literal, self.library) is Origin.MODEL

    def _is_true(self, atom: Atom) -> bool | None:
        return self.truth.facts(atom.indicator, [term.value for term in atom.arguments if isinstance(term, Constant)])

    def _is_typed(self, statement: StatementRecord) -> bool | None:
        of_type = self.truth.types
        if of_type is None:
            return None
        types = {one.name: one.data_type for one in self.library.rule(statement.rule).searched}
        values = [(value, types[name]) for name, value in statement.substitution if name in types]
        return _all(of_type(value, data_type) for value, data_type in values)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """False if one is false, else None if one is unknown, else True."""
    found = list(verdicts)
    if any(one is False for one in found):
        return False
    return None if any(one is None for one in found) else True


def _share(verdicts: Sequence[bool | None]) -> Share:
    known = [one for one in verdicts if one is not None]
    return Share(sum(known), len(known))


def _likelihoods(
    report: SearchReport, distributions: Sequence[Distribution]
) -> dict[Distribution, dict[str, tuple[float, ...]]]:
    return {
        distribution: {
            one.rule: tuple(
                sorted(
                    each.log_likelihood
                    for each in one.statements.get(distribution, ())
                    if each.log_likelihood is not None and math.isfinite(each.log_likelihood)
                )
            )
            for one in report.searched
        }
        for distribution in distributions
    }
