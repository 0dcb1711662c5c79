"""Measure and audit scorers, opened by name, on the pairs of files."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from hapax.evaluation.entailment.bias import AuditSetting, BiasAudit, audit, audit_result
from hapax.evaluation.entailment.consistency import (
    ConsistencyAudit,
    consistency,
    consistency_result,
)
from hapax.evaluation.entailment.datasets import read_splits, skipped_note
from hapax.evaluation.entailment.metrics import refuse_one_label
from hapax.evaluation.entailment.opening import SCORERS, ScorerOptions, ScorerSession, leak_warning
from hapax.evaluation.entailment.pairs import EntailmentPair
from hapax.evaluation.entailment.perturbations import Entities
from hapax.evaluation.entailment.report import Measuring, SubsetResult, experiment_result, measure
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.evaluation.shared.results import Evaluation
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.protocols import CRITIC, LIKELIHOOD


@checked
@dataclass(frozen=True)
class EntailmentOptions(ScorerOptions):
    """Scorers by name, their options, and how they are measured.

    `sides`: the sides of a pair that they see. `twin`: hypotheses alone are measured, too. `released`: curves as the
    released code draws them. `skip_faulty`: faulty lines are left out instead of refusing their file.
    """

    scorers: Annotated[tuple[str, ...], Option(f"{SCORERS}; repeat the option to compare scorers.", name="scorer")] = (
        "critic",
    )
    sides: Annotated[
        Literal["both", "hypothesis", "premise"],
        Option("Sides of a pair that a scorer sees; both: also measure the hypothesis alone.", name="shown"),
    ] = "both"
    twin: bool = True
    released: Annotated[
        bool,
        Option("Take curves as the released code does: precision 1 at recall 0, AUC50 from .51 on.", name="release"),
    ] = False
    skip_faulty: Annotated[bool, Option("Leave out faulty lines instead of refusing a file.")] = False


@checked
@dataclass(frozen=True)
class ConsistencyOptions(EntailmentOptions):
    """Scorers by name, their options, and how their consistency is audited.

    `threshold`: score from which on a pair is affirmed; None: as many pairs are affirmed as are true. `completed`:
    largest number of chains and of negated hypotheses that are made from the set and scored beside it.
    """

    threshold: Annotated[
        float | None, Option("Score from which on a pair is affirmed. Default: as many as are true.")
    ] = None
    completed: Annotated[
        int,
        Option(
            "Most chains, and most negated hypotheses, that are made from the pairs and scored beside them.", least=0
        ),
    ] = 200


@checked
@extras_named()
def score_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[SubsetResult]]:
    """Measure scorers on each subset of the pairs, with whole pairs and with hypotheses alone.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    `progress` is called with the sentences done and their number. Raises HapaxError for an unknown scorer, a missing
    option, and pairs that all have one label.
    """
    options = options or EntailmentOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    pairs, notes = _pairs(paths, options)
    # A scorer that is named twice is measured once.
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = Measuring(VisibleSides(options.sides), options.twin, options.released, session.seed)
    results = list(measure(scorers, pairs, how))
    return Evaluation(results, experiment_result(results, [*notes, *session.notes]))


@checked
@extras_named()
def audit_entailments(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: EntailmentOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[BiasAudit]]:
    """Measure what scorers affirm without a premise that says so, by random premises, other entities and halves.

    The halves are by attestation (is the hypothesis affirmed alone?) and by word frequency. Entities come from the set
    and from the knowledge base's head and long tail, where their types are those of the pairs. `opening` and
    `progress`: as for `score_entailments`.
    """
    options = options or EntailmentOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    pairs, notes = _pairs(paths, options)
    entities = kb_entities(kb)
    audits = []
    for name in dict.fromkeys(options.scorers):
        # Both scorers ask the session's model, whose P(yes) of a hypothesis alone shows what it believes anyway.
        attest = session.measure(CRITIC) if name in (CRITIC, LIKELIHOOD) else None
        setting = AuditSetting(word_frequency, entities, attest, session.seed)
        audited = audit(session.scorer(name), pairs, setting)
        audits.append(replace(audited, notes=(*notes, *audited.notes)))
    return Evaluation(audits, audit_result(audits))


@checked
@extras_named()
def audit_consistency(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: ConsistencyOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation[list[ConsistencyAudit]]:
    """Audit whether scorers know the direction of entailments, and whether their answers can all hold.

    Chains of two pairs of the set are completed, and hypotheses negated, as far as scorers judge new pairs. `opening`
    and `progress`: as for `score_entailments`.
    """
    options = options or ConsistencyOptions()
    session = ScorerSession(kb, options, opening, budget, progress)
    pairs, notes = _pairs(paths, options)
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = (options.threshold, options.completed, session.seed)
    audits = [consistency(scorer, pairs, *how) for scorer in scorers]
    return Evaluation(audits, consistency_result(audits, [*notes, *session.notes]))


def word_frequency(texts: Sequence[str]) -> list[float]:
    """Mean log frequency of the words of each text; lowest for a text without words."""
    scores = FrequencyLikelihood().log_likelihoods(texts)
    return [score.total / score.token_count if score.token_count else -math.inf for score in scores]


def kb_entities(kb: KnowledgeBase) -> dict[str, Entities]:
    """The values of a knowledge base's statements by type in lower case, for each end that has any."""
    library = stored_library(kb)
    rules = {rule.name: rule for rule in library.rules}
    by_end: dict[str, Entities] = {}
    for end in Distribution:
        # Ordered sets: draws from the entities must not depend on hashes.
        names: dict[str, dict[str, None]] = {}
        for statement in kb.statements(distribution=end):
            rule = rules.get(statement.rule)
            types = {} if rule is None else {variable.name: variable.data_type for variable in rule.variables}
            for variable, value in statement.substitution:
                if isinstance(value, str) and variable in types:
                    names.setdefault(types[variable].casefold(), {})[value] = None
        if names:
            title = end.value.replace("_", " ")
            by_end[f"{title} entities of the knowledge base"] = {kind: list(values) for kind, values in names.items()}
    return by_end


def _pairs(paths: Sequence[str | Path], options: EntailmentOptions) -> tuple[list[EntailmentPair], list[str]]:
    """The pairs of the files, and notes on faulty lines and leaks."""
    skipped: list[str] = []
    splits = read_splits(list(map(Path, paths)), skipped if options.skip_faulty else None)
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    return pairs, [*skipped_note(skipped), *([warning] if warning else [])]
