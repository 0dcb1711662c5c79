"""The parts of the results, in the order of the page, each a function from the run to findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.evaluation.entailment import report as entailment_report
from hapax.evaluation.entailment.datasets import read_splits
from hapax.evaluation.entailment.scorers import Direction, Measure, PatternScorer, RandomScorer
from hapax.evaluation.link.likelihood.run import PAPER_DELTAS, LikelihoodOptions, evaluate_likelihood, open_evaluators
from hapax.evaluation.link.longtail import STORED, LongTailStudy, evaluate_long_tail
from hapax.evaluation.link.probing.run import ProbeOptions, evaluate_probe
from hapax.evaluation.shared.results import ExperimentResult, ResultTable
from hapax.evaluation.winograd.asking import AskSettings
from hapax.evaluation.winograd.data import HUMAN, WSC273
from hapax.evaluation.winograd.prompts import PromptMethod
from hapax.evaluation.winograd.runs import SchemaAskOptions
from hapax.evaluation.winograd.tables import ask_schemas, printed_tables
from hapax.grammar.parser import load_library
from hapax.llm_oracle.backend import OpenedModels
from hapax.llm_oracle.backends.reference import covering_references
from hapax.llm_oracle.calls import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.registry import open_roles
from tools.embedded.wording import RULES_FOLDER
from tools.results.critic import measure_critic
from tools.results.knowledge import measure_knowledge
from tools.results.measuring import SEED, Findings, ResultsRun

PRINTED = ("LINK's", "Reference:")
"""Beginnings of the titles of tables that repeat a paper's figures."""

FREQUENCY = "frequency"
PROBED = 100
"""Probed statements of each distribution."""

Measurer = Callable[[ResultsRun], Findings]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the results. `reading`: how to take its figures."""

    name: str
    title: str
    reading: str
    measure: Measurer


def _evaluator(run: ResultsRun) -> Findings:
    """Ends of the shipped search, as the model and word frequency see them by every measure, and by LINK's delta."""
    library = load_library([RULES_FOLDER])
    rules = [rule for rule in library.rules if not library.is_definition(rule) and rule.withdrawn is None]
    rules = rules[: run.sample(len(rules))]
    # As `make search` without SmolLM2: what tables cover, they decide, and word frequency ranks. The measured model is
    # then a judge that neither found nor ranked the statements.
    references = covering_references(library)
    critic = f"reference:{','.join(references)},embedded" if references else None
    models = open_roles(OpenedModels(replace(run.opening, library=library)), critic=critic, likelihood=FREQUENCY)
    search(SearchJob(library, rules, run.kb, models, SearchSettings(), run.journal))
    evaluators = open_evaluators([run.model, FREQUENCY], run.opening)
    ends = evaluate_long_tail(run.kb, evaluators, seed=SEED, journal=run.journal)
    folder = run.folder / "figures"
    options = LikelihoodOptions(evaluators=evaluators, figure_numbers=(3, 4), out=folder)
    result = evaluate_likelihood(run.kb, options, journal=run.journal)
    written = [path.name for paths in result.value.written.values() for path in paths if path.suffix == ".svg"]
    tables = [_stored_ends(ends.value), *ends.tables, *result.tables]
    notes = (PAPER_DELTAS, *ends.notes, *result.notes)
    return Findings(tables, (), notes, written)


def _stored_ends(ends: LongTailStudy) -> ResultTable:
    """The ends of the search itself, by each judge and measure, with intervals."""
    rows = []
    for split in ends.judged:
        if split.ranker == STORED:
            mark = "*" if split.circular else ""
            estimates = (split.auc, split.auc_equal_tokens, split.positive)
            rows.append((f"{split.judge}{mark}", split.judged_by, *map(str, estimates), split.auc.count))
    columns = ("judge", "by", "AUC", "AUC, names of as many tokens", "rules with delta > 0", "rules")
    return ResultTable("Head against long tail of the search", columns, rows)


def _probes(run: ResultsRun) -> Findings:
    """The 13 questions about statements of the search, answered as a critic."""
    options = ProbeOptions(run.model, sample=run.sample(PROBED), seed=SEED)
    evaluation = evaluate_probe(run.kb, options, replace(run.opening, journal=run.journal), wrong=0)
    return _findings(evaluation.result)


def _entailment(run: ResultsRun) -> Findings:
    """Directional pairs of LevyHolt's development split, by prompts and by likelihood."""
    path = run.data / "levyholt" / "entgraph" / "dev_dir_rels.txt"
    if not path.exists():
        return _absent(path)
    pairs = [pair for split in read_splits([path]).values() for pair in split]
    pairs = pairs[: run.sample(len(pairs))]
    critic = JournaledCritic(run.models.critic, run.journal)
    likelihood = JournaledLikelihood(run.models.likelihood, run.journal)
    measures: dict[str, Measure] = {
        "prompts, P(yes)": lambda texts: [score.probability for score in critic.probabilities(texts)],
        "likelihood per token": lambda texts: [score.per_token for score in likelihood.log_likelihoods(texts)],
    }
    scorers = [PatternScorer(name, measure, Direction.DIRECTIONAL) for name, measure in measures.items()]
    results = list(
        entailment_report.measure([*scorers, RandomScorer(SEED)], pairs, entailment_report.Measuring(seed=SEED))
    )
    return _findings(entailment_report.experiment_result(results))


LIKELIHOODS = (PromptMethod.LIKELIHOOD, PromptMethod.LIKELIHOOD_PARTIAL)
"""Methods of the sentence with each option in the pronoun's place."""


def _winograd(run: ResultsRun) -> Findings:
    """WSC-273 and CR-WSC-H by the likelihood of the sentence with each option in the pronoun's place."""
    path = run.data / "cr_wsc" / "wsc_273_annotated_final.csv"
    if not path.exists():
        return _absent(path)
    settings = tuple(AskSettings(method) for method in LIKELIHOODS)
    limit = None if run.share == 1 else run.sample(100)
    options = SchemaAskOptions(run.model, settings, (WSC273, HUMAN), limit=limit)
    result = ask_schemas(run.kb, [path], options, replace(run.opening, journal=run.journal))
    return Findings(result.tables, list(printed_tables())[:2], result.notes)


def _absent(path: Path) -> Findings:
    return Findings(missing=f"{path.parent.name}/{path.name} is not in the folder that --data names.")


def _findings(result: ExperimentResult) -> Findings:
    """The tables of a result, those of the paper apart."""
    printed = [table for table in result.tables if table.title.startswith(PRINTED)]
    measured = [table for table in result.tables if table not in printed]
    return Findings(measured, printed, result.notes)


PARTS = (
    Part(
        "evaluator",
        "Judge of the shipped search",
        "Head and long tail of the shipped rules, found by the embedded model and ranked by word frequency. AUC is the "
        "probability that a head statement is likelier than a long-tail statement of its rule; [the long "
        "tail](long_tail.md) explains the measures. Delta is LINK's own: the mean log-likelihood per token of a rule's "
        "head statements minus that of its long tail (section 3.2).",
        _evaluator,
    ),
    Part(
        "critic",
        "Critic of facts",
        "P(yes) of true facts and of falsehoods with values of the same type, by the critic prompt of a search. "
        "*Calibrated* is Platt's scaling with an intercept for each predicate, fitted on other keys than it is "
        "measured on. AUC is .5 by chance; Brier's score is .25 for who always says one half.",
        measure_critic,
    ),
    Part(
        "knowledge",
        "Knowledge model",
        "Questions of a search about keys of the atlas, asked in the words of each prompt profile, one call each. "
        "A value is true if the atlas has it for the key; the atlas does not know everything.",
        measure_knowledge,
    ),
    Part(
        "probes",
        "Thirteen questions about statements",
        "LINK's 13 templates (table 12) about statements of the search. A statement counts as answered right only if "
        "all of its questions are.",
        _probes,
    ),
    Part(
        "entailment",
        "Directional entailment",
        "The directional pairs of LevyHolt's development split, each of which is there with its converse, by the "
        "patterns of Schmitt and Schütze: the best pattern's measure minus the best antipattern's. The tables of Li et "
        "al. (2022) are for models that were fine-tuned on the training split, and are not repeated here.",
        _entailment,
    ),
    Part(
        "winograd",
        "Winograd schemas",
        "Each option in the pronoun's place; the likelier sentence wins (Trinh and Le, 2018). Chance is 50 for single "
        "sentences and 25 for pairs.",
        _winograd,
    ),
)
