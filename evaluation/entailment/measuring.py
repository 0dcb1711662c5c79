"""Measure and audit scorers, opened by name, on the pairs of files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal

from hapax.evaluation.entailment.bias import AuditSetting, BiasAudit, audit
from hapax.evaluation.entailment.consistency import ConsistencyAudit, ConsistencySetting, consistency
from hapax.evaluation.entailment.datasets import read_splits, skipped_note
from hapax.evaluation.entailment.metrics import refuse_one_label
from hapax.evaluation.entailment.opening import SCORERS, ScorerOptions, ScorerSession, leak_warning
from hapax.evaluation.entailment.pairs import EntailmentPair
from hapax.evaluation.entailment.perturbations import Entities
from hapax.evaluation.entailment.report import Measuring, SubsetResult, measure
from hapax.evaluation.entailment.scorers import VisibleSides
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.grammar.arguments import checked
from hapax.grammar.options import Option
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backends.frequency import FrequencyLikelihood
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


def measure_files(
    session: ScorerSession, paths: Sequence[Path], options: EntailmentOptions, seed: int
) -> tuple[list[SubsetResult], list[str]]:
    """The results of each scorer on each subset of the pairs of these files, and notes on their lines and leaks."""
    pairs, notes = _pairs(paths, options)
    # A scorer that is named twice is measured once.
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    how = Measuring(VisibleSides(options.sides), options.twin, options.released, seed)
    results = list(measure(scorers, pairs, how))
    return results, [*notes, *session.notes]


def audit_files(
    session: ScorerSession, kb: KnowledgeBase, paths: Sequence[Path], options: EntailmentOptions, seed: int
) -> list[BiasAudit]:
    """The audit of each scorer on the pairs of these files. A model also judges the hypotheses alone, as statements."""
    pairs, notes = _pairs(paths, options)
    entities = kb_entities(kb)
    audits = []
    for name in dict.fromkeys(options.scorers):
        # Both scorers ask the session's model, whose P(yes) shows what it believes without a premise.
        attest = session.measure(CRITIC) if name in (CRITIC, LIKELIHOOD) else None
        setting = AuditSetting(word_frequency, entities, attest, seed)
        audited = audit(session.scorer(name), pairs, setting)
        audits.append(replace(audited, notes=(*notes, *audited.notes)))
    return audits


def consistency_of_files(
    session: ScorerSession, paths: Sequence[Path], options: ConsistencyOptions, seed: int
) -> tuple[list[ConsistencyAudit], list[str]]:
    """The consistency of each scorer on the pairs of these files, and notes on their lines and leaks."""
    pairs, notes = _pairs(paths, options)
    setting = ConsistencySetting(options.threshold, options.completed, seed)
    scorers = [session.scorer(name) for name in dict.fromkeys(options.scorers)]
    audits = [consistency(scorer, pairs, setting) for scorer in scorers]
    return audits, [*notes, *session.notes]


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


def _pairs(paths: Sequence[Path], options: EntailmentOptions) -> tuple[list[EntailmentPair], list[str]]:
    """The pairs of the files, and notes on faulty lines and leaks."""
    skipped: list[str] = []
    splits = read_splits(paths, skipped if options.skip_faulty else None)
    pairs = list(chain.from_iterable(splits.values()))
    refuse_one_label([pair.entailed for pair in pairs], ", ".join(map(str, paths)))  # before any model is asked
    warning = leak_warning(options.training_pairs, pairs) if options.training else ""
    return pairs, [*skipped_note(skipped), *([warning] if warning else [])]
