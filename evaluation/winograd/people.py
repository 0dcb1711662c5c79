"""People's judgement of schemas: sheets for two annotators, who disagrees, a third for what is disputed, what stays."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evaluation.estimates import Estimate, share
from evaluation.probing.tables import Page
from evaluation.votes.agreement import Agreement, agreement
from evaluation.votes.exporting import refuse_voters, write_sheets
from evaluation.votes.importing import VotesReport, import_sheets
from evaluation.votes.items import subject
from evaluation.votes.questions import SCHEMA, SCHEMA_AVAILABLE, SCHEMA_LABELS, Item, Kind, schema_item
from evaluation.votes.sheets import sheets
from evaluation.winograd import paper
from evaluation.winograd.data import Pair, pairs_of, read_file
from evaluation.winograd.scores import estimate_json
from grammar.errors import HapaxError
from kb.records import VoteRecord, content_id
from kb.store import KnowledgeBase

LABELS = tuple(f"{SCHEMA} label {number}" for number in (1, 2))
AVAILABLE = tuple(f"{SCHEMA} {key}" for key in SCHEMA_AVAILABLE)
FEWEST = 2
"""Annotators of each schema, as in the paper."""


def item_of(pair: Pair) -> Item:
    """The schema as it stands on a sheet. Its id depends on what is read there alone."""
    one, other = pair
    identity = content_id("schema", one.text, other.text, one.pronoun, other.pronoun, *one.options)
    return schema_item(f"schema:{identity}", (one.text, other.text), (one.pronoun, other.pronoun), one.options)


@dataclass(frozen=True, slots=True)
class Judged:
    """A schema with its votes, by question and annotator."""

    pair: Pair
    votes: Mapping[str, Mapping[str, str]]

    @property
    def annotators(self) -> int:
        return len({voter for several in self.votes.values() for voter in several})

    @property
    def disputed(self) -> bool:
        """Whether annotators differ on any question."""
        return any(len(set(several.values())) > 1 for several in self.votes.values())

    def decided(self, question: str) -> str | None:
        """The answer of more than half of the annotators."""
        several = Counter(self.votes.get(question, {}).values())
        if not several:
            return None
        answer, count = several.most_common(1)[0]
        return answer if 2 * count > several.total() else None

    @property
    def lack(self) -> str:
        """Why the schema is discarded; empty if it stays."""
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
    """What annotators made of the schemas of a file."""

    judged: tuple[Judged, ...]

    @cached_property
    def kept(self) -> list[Pair]:
        return [one.pair for one in self.judged if not one.lack]

    @cached_property
    def disagreement(self) -> Estimate:
        """The share of schemas, of those with two annotators or more, on which they differ in any question."""
        return share([one.disputed for one in self.judged if one.annotators >= FEWEST])

    def pages(self) -> Iterator[Page]:
        """Agreement by question, and what became of the schemas."""
        rows = [
            (name, str(found.questions), *map(str, (found.percent, found.krippendorff)))
            for name, found in self._agreements()
        ]
        yield Page("Agreement", ("question", "schemas", "same answer", "Krippendorff's alpha"), rows)
        fates = Counter(one.lack or "kept" for one in self.judged)
        yield Page("Schemas", ("", "count"), [(fate, str(count)) for fate, count in sorted(fates.items())])
        reference = f"disagreement {self.disagreement}; the paper's is below {paper.DISAGREEMENT} %"
        yield Page("Disagreement on any question", ("share of schemas",), [(reference,)])

    def to_json(self) -> dict[str, Any]:
        return {
            "schemas": len(self.judged),
            "kept": len(self.kept),
            "disagreement": estimate_json(self.disagreement),
            "agreement": {
                name: {
                    "questions": found.questions,
                    "percent": estimate_json(found.percent),
                    "krippendorff": estimate_json(found.krippendorff),
                }
                for name, found in self._agreements()
            },
            "fates": dict(sorted(Counter(one.lack or "kept" for one in self.judged).items())),
        }

    def lines(self) -> Iterator[str]:
        """The schemas that stay, as JSONL."""
        for pair in self.kept:
            for item in pair:
                yield json.dumps(item.to_json(), ensure_ascii=False) + "\n"

    def _agreements(self) -> Iterator[tuple[str, Agreement]]:
        for question in (*LABELS, *AVAILABLE):
            choices = SCHEMA_LABELS if question in LABELS else ("yes", "no")
            counts = [
                [[list(one.votes.get(question, {}).values()).count(choice) for choice in choices]]
                for one in self.judged
            ]
            yield question, agreement(counts)


def schemas_of(path: Path) -> dict[str, Pair]:
    """The pairs of a file by the id that they have on sheets. Raises HapaxError if there are none."""
    found = {item_of(pair).id: pair for pair in pairs_of(read_file(path).items)}
    if not found:
        raise HapaxError(f"{path}: no pairs to judge. Name a file with pairs of sentences.")
    return found


@dataclass(frozen=True, slots=True)
class SheetOptions:
    """Who judges, and how: `disputed` asks only about what the votes so far differ on."""

    annotators: tuple[str, ...]
    disputed: bool = False
    per_sheet: int | None = None
    forms: tuple[str, ...] = ("html", "csv")
    seed: int = 0


def export_sheets(kb: KnowledgeBase, path: Path, options: SheetOptions, folder: Path) -> list[Path]:
    """Write a sheet for each annotator. The same file and options give the same bytes."""
    refuse_voters(options.annotators)
    schemas = schemas_of(path)
    wanted = list(schemas)
    if options.disputed:
        wanted = [identity for identity, one in zip(schemas, annotated(kb, path).judged, strict=True) if one.disputed]
    if not wanted:
        raise HapaxError(f"{path}: annotators differ on nothing. Leave --disputed out to have all judged.")
    items = [item_of(schemas[identity]) for identity in wanted]
    made = sheets(Kind.SCHEMAS, items, options.annotators, options.seed, options.per_sheet)
    return write_sheets(made, options.forms, folder)


def take_in(kb: KnowledgeBase, path: Path, files: Sequence[Path], skip_faulty: bool = False) -> VotesReport:
    """Store the votes of filled sheets about the schemas of this file."""
    items = {identity: item_of(pair) for identity, pair in schemas_of(path).items()}
    return import_sheets(kb, files, skip_faulty=skip_faulty, schemas=items)


def annotated(kb: KnowledgeBase, path: Path) -> Annotated:
    """The schemas of a file with all votes on them."""
    schemas = schemas_of(path)
    votes: dict[str, dict[str, dict[str, str]]] = {}
    for vote in _schema_votes(kb):
        votes.setdefault(vote.statement_id, {}).setdefault(vote.question, {})[vote.voter] = vote.answer
    return Annotated(tuple(Judged(pair, votes.get(subject(identity), {})) for identity, pair in schemas.items()))


def _schema_votes(kb: KnowledgeBase) -> Iterator[VoteRecord]:
    return (vote for vote in kb.votes() if vote.question in (*LABELS, *AVAILABLE))
