"""Pairs for others: as tasks for lm-evaluation-harness, and as sheets on which annotators judge them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.dataset.columns import json_line
from hapax.evaluation.dataset.formats import group_files
from hapax.evaluation.shared.estimates import agreement, share
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.evaluation.votes.sheets import check_voter_names, sheets, write_sheets
from hapax.evaluation.votes.voting_items import subject_id
from hapax.evaluation.votes.voting_questions import (
    SCHEMA,
    SCHEMA_AVAILABLE,
    SCHEMA_LABELS,
    SheetForms,
    SheetKind,
    VotingItem,
    schema_item,
)
from hapax.evaluation.winograd.generation import Generated
from hapax.evaluation.winograd.schema_asking import (
    PROMPTED,
    PromptMethod,
    PromptWording,
    Sources,
    WordingVariant,
    prompt,
)
from hapax.evaluation.winograd.schema_files import Pair, read_pairs
from hapax.evaluation.winograd.schema_reports import DISAGREEMENT
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.files.unfinished import replace_file
from hapax.kb.files.whole_files import atomic_text_file
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase

_AVERAGED = ("single", "pair", "unparsed")
"""Metrics whose value for a group of tasks is the mean over all documents."""

CHOOSING = (PromptMethod.ZERO_SHOT, PromptMethod.ONE_SHOT)
"""Methods without reasoning before the answer, so that the likeliest of the four answers can be chosen."""

# Files of a task folder that are the same for all schemas. The harness treats every file that ends in .yaml as a task,
# so those that tasks include have no such suffix.
_SHIPPED = {
    "utils.py": "shipped_lm_eval.py",
    "reading.py": "reply_reading.py",
    "_written_yaml": "tasks_written.yaml",
    "_choice_yaml": "tasks_choice.yaml",
    "README.md": "tasks.md",
}


@checked
@dataclass(frozen=True, slots=True)
class SchemaExportOptions:
    """Options of an export."""

    name: Annotated[str, Option("First part of the task names.")] = "winograd"
    variant: WordingVariant = PromptWording.PAPER
    sources: Sources = ()


@checked
def export_schemas(
    paths: Sequence[str | Path], folder: str | Path, options: SchemaExportOptions | None = None
) -> list[Path]:
    """Write the pairs of files as tasks for lm-evaluation-harness, and return the paths of the tasks.

    The same files and options give the same bytes. Raises HapaxError if there are no pairs.
    """
    folder, options = Path(folder), options or SchemaExportOptions()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", options.name):
        raise HapaxError(f"{options.name!r} is not a valid task name. Use lower-case letters, digits and underscores.")
    by_slug: dict[str, list[Pair]] = {}
    for pair in read_pairs(paths):
        if not options.sources or pair[0].source in options.sources:
            # The harness takes lower-case letters, digits and underscores in the names of tasks.
            slug = re.sub(r"[^a-z0-9]+", "_", pair[0].source.lower()).strip("_") or "pairs"
            by_slug.setdefault(slug, []).append(pair)
    if not by_slug:
        raise HapaxError(
            f"{', '.join(map(str, paths))}: no pairs to export.",
            Remedy("Name another file, or another {}.", Setting("options.sources")),
        )
    tasks = folder / "lm_eval"
    tasks.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in _files(by_slug, options):
        written.append(tasks / name)
        replace_file(written[-1], text)
    return written


def _column(method: PromptMethod) -> str:
    return f"prompt_{method.value.replace('-', '_')}"


def _files(by_slug: Mapping[str, Sequence[Pair]], options: SchemaExportOptions) -> Iterator[tuple[str, str]]:
    for slug, pairs in by_slug.items():
        yield f"{slug}.jsonl", "".join(json_line(_document(pair, options.variant)) for pair in pairs)
    for name, shipped in _SHIPPED.items():
        text = Path(__file__).with_name(shipped).read_text(encoding="utf-8")
        yield name, text.format(name=options.name) if name == "README.md" else text
    for ending, base, methods in (("", "_written_yaml", PROMPTED), ("_choice", "_choice_yaml", CHOOSING)):
        tasks = {}
        for slug, method in product(by_slug, methods):
            text = f"{{{{{_column(method)}}}}}"  # a template of the harness: {{prompt_aot}}
            content = {"dataset_kwargs": {"data_file": f"{slug}.jsonl"}, "doc_to_text": text}
            tasks[f"{options.name}{ending}_{slug}_{method.value.replace('-', '_')}"] = content
        yield from group_files(f"{options.name}{ending}", base, tasks, _AVERAGED)


def _document(pair: Pair, variant: PromptWording) -> dict[str, Any]:
    options = pair[0].options
    return {
        "pair": pair[0].pair,
        "family": pair[0].family,
        "sentences": [item.text for item in pair],
        "options": list(options),
        "gold": [item.answer for item in pair],
        # Place in `choices`, in which the second answer runs fastest.
        "label": 2 * pair[0].answer + pair[1].answer,
        "choices": [f"1. {first} 2. {second}" for first, second in product(options, repeat=2)],
        # The harness puts a blank between prompt and answer.
        **{_column(method): prompt(pair, method, variant).rstrip(" ") for method in PROMPTED},
    }


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
        return len(set(chain.from_iterable(self.votes.values())))

    @property
    def disputed(self) -> bool:
        """True if annotators differ on any question."""
        return any(len(set(by_voter.values())) > 1 for by_voter in self.votes.values())

    def decided(self, question: str) -> str | None:
        """The answer of more than half of the annotators, if there is one."""
        answers = Counter(self.votes.get(question, {}).values())
        # Half of the votes is not a majority: with two annotators, both must agree.
        return next((answer for answer, count in answers.items() if 2 * count > answers.total()), None)

    @property
    def discarded(self) -> str:
        """Reason why the schema is discarded; empty if it is kept."""
        if self.annotators < FEWEST:
            return "fewer than two annotators"
        answers = list(map(self.decided, (*LABELS, *AVAILABLE)))
        if None in answers:
            return "annotators disagree"
        if answers[: len(LABELS)] != [SCHEMA_LABELS[item.answer] for item in self.pair]:
            return "people give another label"
        return "" if set(answers[len(LABELS) :]) == {"yes"} else "not available"


@dataclass(frozen=True)
class AnnotatedSchemas:
    """Schemas of a file with all votes on them."""

    judged: tuple[VotedSchema, ...]

    @property
    def kept(self) -> list[Pair]:
        return [schema.pair for schema in self.judged if not schema.discarded]

    def evaluation(self) -> Evaluation[AnnotatedSchemas]:
        """Agreement by question, and numbers of kept and discarded schemas."""
        outcomes = dict(sorted(Counter(schema.discarded or "kept" for schema in self.judged).items()))
        # Among those with two annotators or more.
        disputed = share([schema.disputed for schema in self.judged if schema.annotators >= FEWEST])
        reference = f"disagreement {disputed}; the paper's is below {DISAGREEMENT} %"
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
            agreements[question] = {name: getattr(measures, name) for name in ("questions", "percent", "krippendorff")}
            rows.append((question, *agreements[question].values()))
        tables = [
            ResultTable("Agreement", ("question", "schemas", "same answer", "Krippendorff's alpha"), rows),
            ResultTable("Schemas", ("", "count"), list(outcomes.items())),
            ResultTable("Disagreement on any question", ("share of schemas",), [(reference,)]),
        ]
        for_programs = {
            "schemas": len(self.judged),
            "kept": len(self.kept),
            "disagreement": disputed,
            "agreement": agreements,
            "fates": outcomes,  # the key that was always written
        }
        return Evaluation(self, tables, for_programs)

    def lines(self) -> Iterator[str]:
        """The schemas that are kept, as lines of JSONL."""
        for item in chain.from_iterable(self.kept):
            yield json.dumps(item.to_json(), ensure_ascii=False) + "\n"


def schemas_of(path: Path) -> dict[str, Pair]:
    """Pairs of a file by their ids on sheets. Raises HapaxError if there are none."""
    schemas = {item_of(pair).id: pair for pair in read_pairs([path])}
    if not schemas:
        raise HapaxError(f"{path}: no pairs to judge. Name a file with pairs of sentences.")
    return schemas


@checked
def schema_items(path: str | Path) -> dict[str, VotingItem]:
    """The schemas of a file as items of sheets, by id, for `import_sheets`. Raises HapaxError if there are none."""
    return {identity: item_of(pair) for identity, pair in schemas_of(Path(path)).items()}


@checked
@dataclass(frozen=True, slots=True)
class SchemaSheetOptions:
    """Options of sheets. `disputed`: only schemas on which the votes so far differ."""

    annotators: Annotated[tuple[str, ...], Option("Annotators; two, as in the paper.", name="annotator")] = (
        "annotator-1",
        "annotator-2",
    )
    disputed: Annotated[bool, Option("Only schemas on which annotators differ, for an adjudicator.")] = False
    per_sheet: Annotated[
        int | None, Option("Maximum number of schemas on a sheet; default: all on one sheet.", least=1)
    ] = None
    forms: SheetForms = ("json", "csv")
    seed: Annotated[int, Option("Seed of the order of schemas.")] = 0


@checked
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
def judge_schemas(kb: KnowledgeBase, path: str | Path) -> Evaluation[AnnotatedSchemas]:
    """The annotators' agreement on the schemas of a file, and the schemas to keep, which `write_schemas` writes."""
    return annotated(kb, Path(path)).evaluation()


@checked
def write_schemas(evaluation: Evaluation[Generated] | Evaluation[AnnotatedSchemas], target: str | Path) -> None:
    """Write the accepted pairs of a generation, or the schemas that people keep, to a JSONL file."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with atomic_text_file(str(target)) as stream:
        stream.writelines(evaluation.value.lines())


def annotated(kb: KnowledgeBase, path: Path) -> AnnotatedSchemas:
    """The schemas of a file with all votes on them."""
    schemas = schemas_of(path)
    votes: dict[str, dict[str, dict[str, str]]] = {}
    for vote in kb.votes():
        # A knowledge base may also hold votes on statements and facts.
        if vote.question in (*LABELS, *AVAILABLE):
            votes.setdefault(vote.statement_id, {}).setdefault(vote.question, {})[vote.voter] = vote.answer
    return AnnotatedSchemas(
        tuple(VotedSchema(pair, votes.get(subject_id(identity), {})) for identity, pair in schemas.items())
    )
