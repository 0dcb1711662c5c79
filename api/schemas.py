"""Winograd schemas: asked, compared, generated, judged by people, and exported as tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hapax.api.evaluations import Evaluation
from hapax.api.whole_files import atomic_folder, atomic_text_file
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy

if TYPE_CHECKING:
    from hapax.evaluation.winograd.cases import CaseComparison
    from hapax.evaluation.winograd.data import WinogradItem
    from hapax.evaluation.winograd.gating import AssociationSplit
    from hapax.evaluation.winograd.generation import Generated, SchemaGenerationOptions
    from hapax.evaluation.winograd.hybrid import RiskCurve
    from hapax.evaluation.winograd.people import Annotated
    from hapax.evaluation.winograd.reasoner.lessons import Lesson
    from hapax.evaluation.winograd.rewordings.making import Rewordings
    from hapax.evaluation.winograd.rewordings.robustness import RobustnessRow
    from hapax.evaluation.winograd.runs import SchemaAskOptions, StoredRun
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.budget import Budget
    from hapax.llm_oracle.journal import Journal

METHODS = ("cot", "aot")
"""Methods that the paper compares case by case."""

CASES = 10
"""Most cases of each source that `compare_cases` lists."""


@checked
@extras_named()
def count_schemas(
    *paths: str | Path, published: bool = False, rows: int | None = None, skip_faulty: bool = False
) -> Evaluation[None]:
    """Count the schemas of files by source, and list faulty rows, at most `rows` of each fault, and leaked pairs.

    `published`: rows are read exactly as the release asks them, with their faults. `skip_faulty`: faulty rows are left
    out and listed.
    """
    from hapax.evaluation.winograd.leaks import file_result

    return Evaluation(None, file_result([Path(path) for path in paths], published, rows, skip_faulty))


@dataclass(frozen=True)
class AskedSchemas:
    """Runs of methods on sources of schemas. `stopped`: the budget or queue that left pairs unanswered; else empty."""

    runs: tuple[StoredRun, ...]
    stopped: str = ""


@checked
@extras_named()
def ask_schemas(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: SchemaAskOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[AskedSchemas]:
    """Ask a model about the pairs of files, by each method, and store the answers. No question is asked twice.

    `opening`: options of opening the model; its journal, if any, has the budget. `progress` is called with the method,
    the pairs done and all pairs.
    """
    from hapax.evaluation.winograd.runs import AskSession, SchemaAskOptions
    from hapax.evaluation.winograd.tables import run_result

    opening, journal = with_journal(kb, opening, budget)
    session = AskSession(kb, options or SchemaAskOptions(), opening)
    # A generator, which must have ended before `stopped` is read.
    runs = tuple(session.ask([Path(path) for path in paths], journal, progress))
    return Evaluation(AskedSchemas(runs, str(session.stopped or "")), run_result(runs))


@checked
@extras_named()
def tabulate_schemas(kb: KnowledgeBase, *, released: bool = False) -> Evaluation[list[StoredRun]]:
    """Tables 1, 2, 3 and 5 of the stored answers, McNemar's test between methods, and the paper's own tables.

    `released`: replies are read as the released code reads them.
    """
    from hapax.evaluation.winograd.runs import stored_runs
    from hapax.evaluation.winograd.tables import stored_result

    runs = stored_runs(kb)
    return Evaluation(runs, stored_result(runs, released))


@checked
@extras_named()
def compare_cases(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    methods: tuple[str, str] = METHODS,
    *,
    model: str | None = None,
    sources: Sequence[str] = (),
    most: int = CASES,
) -> Evaluation[dict[tuple[str, str], list[CaseComparison]]]:
    """Stored replies of two methods to the same pairs, by model and source, with the failures of the second tagged.

    `model`: the beginning of the models' names. The tables list at most `most` cases of each source.
    """
    from hapax.evaluation.winograd.cases import case_result, stored_cases

    first, second = methods
    cases_by_run = stored_cases(kb, [Path(path) for path in paths], (first, second), model, sources)
    return Evaluation(cases_by_run, case_result(cases_by_run, most))


@checked
@extras_named()
def generate_schemas(
    kb: KnowledgeBase,
    path: str | Path,
    options: SchemaGenerationOptions,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
) -> Evaluation[Generated]:
    """Make a concept-reversed set from a file of schemas, and store every decision with its score.

    `opening`: as for `ask_schemas`. `write_schemas` writes the set, unless its `value.stopped` names a budget.
    `progress` is called with the step that begins.
    """
    from hapax.evaluation.winograd.generation import GenerateSession

    opening, journal = with_journal(kb, opening, budget)
    generated = GenerateSession(kb, options, opening, journal).generate(Path(path), progress)
    return Evaluation(generated, generated.result())


@checked
@extras_named()
def write_schemas(evaluation: Evaluation[Generated] | Evaluation[Annotated], target: str | Path) -> None:
    """Write the accepted pairs of a generation, or the schemas that people keep, to a JSONL file."""
    from hapax.evaluation.winograd.people import Annotated

    value = evaluation.value
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with atomic_text_file(str(target)) as stream:
        stream.writelines(value.kept_lines() if isinstance(value, Annotated) else value.accepted_lines())


@checked
@extras_named()
def judge_schemas(kb: KnowledgeBase, path: str | Path) -> Evaluation[Annotated]:
    """The annotators' agreement on the schemas of a file, and the schemas to keep, which `write_schemas` writes."""
    from hapax.evaluation.winograd.people import annotated

    annotations = annotated(kb, Path(path))
    return Evaluation(annotations, annotations.result())


@checked
@extras_named()
def measure_association(
    kb: KnowledgeBase, path: str | Path, model: str = "embedded", opening: OpeningOptions | None = None
) -> Evaluation[AssociationSplit]:
    """Association of the reversed pairs of the annotated WSC file (CR-WSC-H) and of their sources under a model.

    `model`: of the likelihood role. `opening`: as for `ask_schemas`. Raises HapaxError if the file has no such pairs.
    """
    from hapax.evaluation.winograd.gating import association_result, association_split
    from hapax.llm_oracle.registry import open_model

    opening, journal = with_journal(kb, opening, None)
    split = association_split(Path(path), open_model(model, "likelihood", opening), journal)
    return Evaluation(split, association_result(split))


@checked
@extras_named()
def reword_schemas(
    paths: Sequence[str | Path],
    kinds: Sequence[str] = (),
    *,
    seed: int = 0,
    skip_faulty: bool = False,
    skip_leaked: bool = False,
) -> Evaluation[Rewordings]:
    """Reword the sentences of files, each in the ways named by `kinds` (all if empty), which `write_rewordings` writes.

    A rewording is kept if its sentence is parsed to the same events. It needs the extra `english`. The same `seed`
    makes the same choices. `skip_faulty`, `skip_leaked`: as for `read_schemas`. Raises HapaxError.
    """
    from hapax.api.evaluations import read_schemas
    from hapax.evaluation.winograd.rewordings.changes import CHANGES
    from hapax.evaluation.winograd.rewordings.making import Rewording

    items = read_schemas(*paths, skip_faulty=skip_faulty, skip_leaked=skip_leaked)
    rewordings = Rewording(kinds or tuple(CHANGES), seed).of(items)
    return Evaluation(rewordings, rewordings.result())


@checked
@extras_named()
def write_rewordings(evaluation: Evaluation[Rewordings], target: str | Path) -> None:
    """Write originals and rewordings to a JSONL file, which all commands on schemas read."""
    from hapax.evaluation.dataset.columns import json_line

    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with atomic_text_file(str(target)) as stream:
        stream.writelines(json_line(item.to_json()) for item in evaluation.value.items)


@checked
@extras_named()
def measure_robustness(
    items: Sequence[WinogradItem], methods: Sequence[str] = ("patterns",), *, kb: KnowledgeBase | None = None
) -> Evaluation[list[RobustnessRow]]:
    """Accuracy and kept answers under rewording, by method, with McNemar's test against the originals.

    `items`: originals and rewordings, of `reword_schemas` or of a perturbed set. `methods`: those of `resolve_schemas`,
    which are asked now. `kb`: the answers of models that `ask_schemas` stored there are measured, too. Raises
    HapaxError if no item is a rewording.
    """
    from hapax.api.evaluations import resolve_schemas
    from hapax.evaluation.winograd.rewordings import robustness as measures
    from hapax.evaluation.winograd.runs import stored_runs
    from hapax.evaluation.winograd.tables import shortened

    # Before any sentence is resolved, which takes a while.
    measures.require_rewordings(items)
    answers: dict[str, dict[str, int | None]] = {}
    for method in methods:
        resolved = resolve_schemas(items, method=method).value
        answers[method] = {answer.item.id: answer.resolution.answer for answer in resolved}
    if kb is not None:
        answers |= measures.stored_answers(shortened(stored_runs(kb)), items)
    rows = measures.robustness(items, answers)
    return Evaluation(rows, measures.robustness_result(rows))


@checked
@extras_named()
def combine_proofs(
    kb: KnowledgeBase,
    items: Sequence[WinogradItem],
    method: str = "reasoner",
    *,
    model: str | None = None,
    pair_consistent: bool = False,
) -> Evaluation[list[RiskCurve]]:
    """Accuracy and risk at each coverage of models alone, and with the proofs of `method` where there are some.

    The models' answers are those that `ask_schemas` stored in the knowledge base; `method` is one of
    `resolve_schemas`. `model`: only runs of models whose names begin so. `pair_consistent`: proofs are those of
    `resolve_schema_pairs`. Raises HapaxError if nothing was asked.
    """
    from hapax.api.evaluations import resolve_schema_pairs, resolve_schemas
    from hapax.evaluation.winograd.hybrid import combined, hybrid_result
    from hapax.evaluation.winograd.runs import stored_runs
    from hapax.evaluation.winograd.tables import shortened

    known = {item.id for item in items}
    runs: list[StoredRun] = []
    for run in stored_runs(kb):
        is_wanted = run.name.startswith(model or "") and run.status == "done"
        if is_wanted and any(answer.item in known for answer in run.answers):
            runs.append(run)
    if not runs:
        raise HapaxError(
            "No finished answers of a model to these sentences are stored.",
            Remedy("Ask with {}.", Operation("ask_schemas", "FILE", knowledge="MODEL", method="likelihood")),
        )
    # Sentences that no model was asked about cannot be compared, and are not proved.
    asked: set[str] = set()
    for run in runs:
        asked.update(answer.item for answer in run.answers)
    wanted = [item for item in items if item.id in asked]
    resolved = (resolve_schema_pairs if pair_consistent else resolve_schemas)(wanted, method=method).value
    proofs: dict[str, int] = {}
    for answer in resolved:
        if answer.resolution.answer is not None:
            proofs[answer.item.id] = answer.resolution.answer
    named = f"{method}, pair-consistent" if pair_consistent else method
    curves = combined(items, proofs, shortened(runs), named)
    return Evaluation(curves, hybrid_result(curves))


def with_journal(
    kb: KnowledgeBase, opening: OpeningOptions | None, budget: Budget | None
) -> tuple[OpeningOptions, Journal]:
    """The opening options with a journal: their own, else one of the knowledge base with this budget."""
    from dataclasses import replace

    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.journal import Journal

    opening = opening or OpeningOptions()
    journal = opening.journal or Journal(kb, budget, retry_unusable=opening.retry_unusable)
    return replace(opening, journal=journal), journal


# --- learning ---------------------------------------------------------------------------------------------------------


@extras_named()
def learn_from_schemas(
    items: Sequence[WinogradItem],
    *,
    opening: OpeningOptions | None = None,
    proposer: str | None = None,
    review: str | Path | None = None,
) -> Evaluation[Lesson]:
    """Weights and rules of the reasoner from labelled schemas, with figures on families that a fit did not see.

    `proposer`: model that proposes rules for sentences without proof, beside induction; `opening` has its journal.
    `review`: a sheet of `write_lesson` with a person's verdicts, or the folder of a lesson, which may have one; rules
    with the verdict `no` are not taken.
    """
    from hapax.evaluation.winograd.reasoner.lessons import ROLE, learn
    from hapax.evaluation.winograd.reasoner.reasoning import RULES, Reasoner
    from hapax.evaluation.winograd.reasoner.reviewing import SHEET, RuleReview, read_review
    from hapax.evaluation.winograd.reasoner.weighing import RuleWeights
    from hapax.grammar.parser import load_library
    from hapax.llm_oracle.calls import JournaledGenerator
    from hapax.llm_oracle.protocols import KNOWLEDGE
    from hapax.llm_oracle.registry import open_instructed

    sheet = None if review is None else Path(review)
    if sheet is not None and sheet.is_dir():
        # The folder of a lesson has its sheet under this name, or none if nobody has judged yet.
        sheet = sheet / SHEET if (sheet / SHEET).exists() else None
    answers = RuleReview() if sheet is None else read_review(sheet)
    generator = None
    if proposer is not None:
        if opening is None or opening.journal is None:
            raise HapaxError("A proposer needs a journal for its answers. Give `opening` with one.")
        generator = JournaledGenerator(open_instructed(proposer, KNOWLEDGE, opening), opening.journal, role=ROLE)
    # What was acquired before is not evidence for itself.
    with Reasoner(library=load_library([RULES]), weights=RuleWeights({}, 0.5)) as reasoner:
        lesson = learn(items, reasoner, generator, 0 if opening is None else opening.seed, answers)
    return Evaluation(lesson, lesson.result())


def write_lesson(evaluation: Evaluation[Lesson], folder: str | Path) -> None:
    """Write `weights.toml`, `acquired.rules` and the sheet `review.csv` for a person into a folder."""
    from hapax.evaluation.winograd.reasoner.acquiring import rules_text
    from hapax.evaluation.winograd.reasoner.learning import weights_text
    from hapax.evaluation.winograd.reasoner.reasoning import shipped_theory
    from hapax.evaluation.winograd.reasoner.reviewing import SHEET, review_sheet

    lesson = evaluation.value
    texts = {
        "weights.toml": weights_text(lesson.weights, lesson.observations),
        "acquired.rules": rules_text(lesson.records),
        SHEET: review_sheet(lesson.records, shipped_theory(), lesson.review),
    }
    with atomic_folder(folder) as new:
        for name, text in texts.items():
            (new / name).write_text(text, encoding="utf-8")
