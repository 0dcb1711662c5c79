"""Annotation of schemas: export sheets, measure agreement, adjudicate disputes, and keep the verified schemas."""

from __future__ import annotations

import json
import typing
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.votes.importing import VotesReport, store_votes
from hapax.evaluation.votes.items import subject_id
from hapax.evaluation.votes.questions import SCHEMA, SCHEMA_AVAILABLE, SCHEMA_LABELS, SheetKind, VotingItem, schema_item
from hapax.evaluation.votes.sheets import SheetForms, check_voter_names, sheets, write_sheets
from hapax.evaluation.votes.tally import agreement
from hapax.evaluation.winograd.data import Pair, pairs_of
from hapax.evaluation.winograd.files import read_file, write_lines
from hapax.evaluation.winograd.generation import Generated
from hapax.evaluation.winograd.tables import DISAGREEMENT
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase

LABELS = tuple(f"{SCHEMA} label {number}" for number in (1, 2))
AVAILABLE = tuple(f"{SCHEMA} {key}" for key in SCHEMA_AVAILABLE)
FEWEST = 2
"""Minimum number of annotators for each schema, as in the paper."""


def item_of(pair: Pair) -> VotingItem:
    """The schema as an item of a sheet. Its id depends only on what annotators read there."""
    first, second = pair
    # Not the label: correcting it in the file must not detach the votes.
    identity = content_id("schema", first.text, second.text, first.pronoun, second.pronoun, *first.options)
    return schema_item(f"schema:{identity}", (first.text, second.text), (first.pronoun, second.pronoun), first.options)


@dataclass(frozen=True, slots=True)
class VotedSchema:
    """A schema with its votes, by question and annotator."""

    pair: Pair
    votes: Mapping[str, Mapping[str, str]]

    @property
    def annotators(self) -> int:
        voters: set[str] = set()
        for by_voter in self.votes.values():
            voters |= by_voter.keys()
        return len(voters)

    @property
    def disputed(self) -> bool:
        """True if annotators differ on any question."""
        return any(len(set(by_voter.values())) > 1 for by_voter in self.votes.values())

    def decided(self, question: str) -> str | None:
        """The answer of more than half of the annotators, if there is one."""
        answers = Counter(self.votes.get(question, {}).values())
        if not answers:
            return None
        answer, count = answers.most_common(1)[0]
        # Half of the votes is not a majority: with two annotators, both must agree.
        return answer if 2 * count > answers.total() else None

    @property
    def discarded(self) -> str:
        """Reason why the schema is discarded; empty if it is kept."""
        if self.annotators < FEWEST:
            return "fewer than two annotators"
        for question, item in zip(LABELS, self.pair, strict=True):
            answer = self.decided(question)
            if answer is None:
                return "annotators disagree"
            if answer != SCHEMA_LABELS[item.answer]:
                return "people give another label"
        answers = [self.decided(question) for question in AVAILABLE]
        if None in answers:
            return "annotators disagree"
        return "" if set(answers) == {"yes"} else "not available"


@dataclass(frozen=True)
class Annotated:
    """Schemas of a file with all votes on them."""

    judged: tuple[VotedSchema, ...]

    @cached_property
    def kept(self) -> list[Pair]:
        return [schema.pair for schema in self.judged if not schema.discarded]

    @cached_property
    def disagreement(self) -> Estimate:
        """Share of schemas on which annotators differ in any question, among those with two annotators or more."""
        return share([schema.disputed for schema in self.judged if schema.annotators >= FEWEST])

    def to_result(self) -> ExperimentResult:
        """Agreement by question, and numbers of kept and discarded schemas."""
        outcomes = dict(sorted(Counter(schema.discarded or "kept" for schema in self.judged).items()))
        reference = f"disagreement {self.disagreement}; the paper's is below {DISAGREEMENT} %"
        rows = []
        agreements: dict[str, Any] = {}
        for question in (*LABELS, *AVAILABLE):
            choices = SCHEMA_LABELS if question in LABELS else ("yes", "no")
            # Each schema is a subject with a single question.
            counts = []
            for schema in self.judged:
                answers = list(schema.votes.get(question, {}).values())
                counts.append([[answers.count(choice) for choice in choices]])
            measures = agreement(counts)
            figures = [getattr(measures, name) for name in ("questions", "percent", "krippendorff")]
            rows.append((question, *figures))
            agreements[question] = dict(zip(("questions", "percent", "krippendorff"), figures, strict=True))
        tables = [
            ResultTable("Agreement", ("question", "schemas", "same answer", "Krippendorff's alpha"), rows),
            ResultTable("Schemas", ("", "count"), list(outcomes.items())),
            ResultTable("Disagreement on any question", ("share of schemas",), [(reference,)]),
        ]
        for_programs = {
            "schemas": len(self.judged),
            "kept": len(self.kept),
            "disagreement": self.disagreement,
            "agreement": agreements,
            "fates": outcomes,  # the key that was always written
        }
        return ExperimentResult(tables, for_programs)

    def lines(self) -> Iterator[str]:
        """The schemas that are kept, as lines of JSONL."""
        for pair in self.kept:
            for item in pair:
                yield json.dumps(item.to_json(), ensure_ascii=False) + "\n"


def schemas_of(path: Path) -> dict[str, Pair]:
    """Pairs of a file by their ids on sheets. Raises HapaxError if there are none."""
    schemas = {item_of(pair).id: pair for pair in pairs_of(read_file(path).items)}
    if not schemas:
        raise HapaxError(f"{path}: no pairs to judge. Name a file with pairs of sentences.")
    return schemas


def schema_items(path: Path) -> dict[str, VotingItem]:
    """The schemas of a file as items of sheets, by id. Raises HapaxError if there are none."""
    return {identity: item_of(pair) for identity, pair in schemas_of(path).items()}


@checked
@dataclass(frozen=True, slots=True)
class SchemaSheetOptions:
    """Options of sheets. `disputed`: only schemas on which the votes so far differ."""

    annotators: typing.Annotated[tuple[str, ...], Option("Annotators; two, as in the paper.", name="annotator")] = (
        "annotator-1",
        "annotator-2",
    )
    disputed: typing.Annotated[bool, Option("Only schemas on which annotators differ, for an adjudicator.")] = False
    per_sheet: typing.Annotated[
        int | None, Option("Maximum number of schemas on a sheet; default: all on one sheet.", least=1)
    ] = None
    forms: SheetForms = ("json", "csv")
    seed: typing.Annotated[int, Option("Seed of the order of schemas.")] = 0


@checked
@extras_named()
def export_schema_sheets(
    kb: KnowledgeBase, path: str | Path, options: SchemaSheetOptions, folder: str | Path
) -> list[Path]:
    """Write a sheet about the schemas of a file for each annotator, and return the paths of the sheets.

    The same file and options give the same bytes.
    """
    path = Path(path)
    check_voter_names(options.annotators)
    pairs = list(schemas_of(path).values())
    # Adjudication: further annotators see only what the first ones differ on.
    if options.disputed:
        pairs = [schema.pair for schema in annotated(kb, path).judged if schema.disputed]
    if not pairs:
        raise HapaxError(
            f"{path}: annotators agree on all schemas.",
            Remedy("Omit {} to have every schema judged.", Setting("options.disputed")),
        )
    items = [item_of(pair) for pair in pairs]
    schema_sheets = sheets(SheetKind.SCHEMAS, items, options.annotators, options.seed, options.per_sheet)
    return write_sheets(schema_sheets, options.forms, Path(folder))


@checked
@extras_named()
def import_schema_sheets(
    kb: KnowledgeBase, path: str | Path, files: Sequence[str | Path], *, skip_faulty: bool = False
) -> VotesReport:
    """Store the votes of filled-in sheets about the schemas of a file.

    Raises FactsRejected with every fault unless `skip_faulty`.
    """
    return store_votes(kb, files, schema_items(Path(path)), skip_faulty)


@checked
@extras_named()
def judge_schemas(kb: KnowledgeBase, path: str | Path) -> Evaluation[Annotated]:
    """The annotators' agreement on the schemas of a file, and the schemas to keep, which `write_schemas` writes."""
    return Evaluation.of(annotated(kb, Path(path)))


@checked
def write_schemas(evaluation: Evaluation[Generated] | Evaluation[Annotated], target: str | Path) -> None:
    """Write the accepted pairs of a generation, or the schemas that people keep, to a JSONL file."""
    write_lines(target, evaluation.value.lines())


def annotated(kb: KnowledgeBase, path: Path) -> Annotated:
    """The schemas of a file with all votes on them."""
    schemas = schemas_of(path)
    votes: dict[str, dict[str, dict[str, str]]] = {}
    for vote in kb.votes():
        # A knowledge base may also hold votes on statements and facts.
        if vote.question in (*LABELS, *AVAILABLE):
            votes.setdefault(vote.statement_id, {}).setdefault(vote.question, {})[vote.voter] = vote.answer
    return Annotated(
        tuple(VotedSchema(pair, votes.get(subject_id(identity), {})) for identity, pair in schemas.items())
    )
