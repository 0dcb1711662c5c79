"""Frozen datasets: a written dataset, read back with its version, its checksum verified.

The checksum covers what models are asked: the statements and the questions about them, whatever the files' format. So
the JSON Lines and the Parquet files of one dataset have the same checksum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from hapax.evaluation.dataset.columns import PROBES, STATEMENTS, DatasetTable, Row, json_text, probe_rows
from hapax.evaluation.link.probing.items import ProbeItem
from hapax.grammar.arguments import checked
from hapax.grammar.attributes import Polarity
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.terms import Value
from hapax.kb.foreign_files import parquet_table
from hapax.kb.records import Distribution, StatementPlace, statement_id, text_id
from hapax.kb.values import encode_tree

METADATA = "metadata.json"
"""Written into every dataset; only a folder that has it may be replaced."""

METADATA_CHECKSUM = "metadata_checksum"
"""Field of the metadata that verifies the others, so that changed rankers or settings are noticed as well."""

LAYOUT = 2
"""Version of the files of a dataset. Since 2, a text is one row, and the dataset has a version and a checksum."""

_WRITE_AGAIN = Remedy("Write the dataset again with {}.", Operation("write_dataset"))

ENTAILS, CONTRADICTS = "entailment", "contradiction"

_CONTENT = (
    "id",
    "distribution",
    "rule",
    "domain",
    "polarity",
    "premise",
    "conclusion",
    "negation",
    "question",
    "label",
)


def metadata_checksum(metadata: Mapping[str, Any]) -> str:
    """SHA-256 of all fields of `metadata.json` but this one, in 64 hexadecimal digits, whatever the file's layout."""
    # Encoded and read back first: enums and tuples then hash like the texts and lists of a file that is read.
    content = {name: value for name, value in metadata.items() if name != METADATA_CHECKSUM}
    return hashlib.sha256(json_text(json.loads(encode_tree(content))).encode()).hexdigest()


@dataclass(slots=True)
class Checksum:
    """SHA-256 of statements and questions, each in the order of their files."""

    # Two digests, because a build meets each statement with its questions and a reader all statements first.
    _statements: Any = field(default_factory=hashlib.sha256)
    _questions: Any = field(default_factory=hashlib.sha256)

    def take_statement(self, row: Row) -> None:
        content: dict[str, Any] = {name: row[name] for name in _CONTENT}
        content["values"] = [[binding["variable"], binding["value"]] for binding in row["substitution"]]
        self._statements.update(json_text(content).encode() + b"\n")

    def take_question(self, row: Row) -> None:
        self._questions.update(json_text(dict(row)).encode() + b"\n")

    def hexdigest(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(self._statements.digest() + self._questions.digest()).hexdigest()


@dataclass(frozen=True)
class FrozenDataset:
    """A verified dataset. `statements`: as models are asked about them."""

    folder: Path
    name: str
    version: str
    checksum: str
    statements: tuple[ProbeItem, ...]
    _ids: frozenset[str]
    _text_ids: frozenset[str]

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the rules of its statements, sorted."""
        return tuple(sorted({statement.rule for statement in self.statements}))

    def contains(self, place: StatementPlace) -> bool:
        """True if the dataset has the text, or the rule with these values."""
        return place.id in self._ids or place.text_id in self._text_ids


@checked
@extras_named()
def load_dataset(folder: str | Path) -> FrozenDataset:
    """Read a dataset that `write_dataset` wrote in the format jsonl, parquet or hf, and verify its checksum.

    Raises HapaxError for a folder without a dataset of this layout, and for one whose statements, questions or metadata
    have changed since it was written.
    """
    place = Path(folder)
    metadata = _metadata(place)
    checksum = Checksum()
    statements: list[ProbeItem] = []
    ids: set[str] = set()
    text_ids: set[str] = set()
    expected: list[Row] = []
    try:
        for row in _rows(place, STATEMENTS):
            checksum.take_statement(row)
            statement = _statement(row)
            statements.append(statement)
            expected += probe_rows(statement)
            text_ids.add(text_id(row["premise"], row["conclusion"]))
            # All derivations of the text: a statement is not fresh if any of them is here.
            ids.add(_id_of(row))
            ids.update(proof["id"] for proof in row["other_proofs"])
        questions = list(_rows(place, PROBES))
    # ArithmeticError: `Decimal` raises one for a text that is no number.
    except (KeyError, TypeError, ValueError, ArithmeticError) as fault:
        raise HapaxError(
            f"{place}: its tables cannot be read ({fault!r}).",
            Remedy("Restore the files that {} wrote, or write the dataset again.", Operation("write_dataset")),
        ) from fault
    for row in questions:
        checksum.take_question(row)
    if checksum.hexdigest() != metadata["checksum"]:
        raise HapaxError(
            f"{place}: the statements or questions have changed since the dataset was written: their "
            f"checksum is {checksum.hexdigest()[:12]}, not {metadata['checksum'][:12]}.",
            Remedy("Restore the files, or write the dataset again under another {}.", Setting("target.version")),
        )
    # The files are intact by now, so a difference comes from other templates, not from a change of the data.
    if questions != expected:
        raise HapaxError(
            f"{place}: this version of Hapax words the questions about a statement differently.",
            Remedy(
                "Use the version that wrote the dataset, or write it again under another {}.", Setting("target.version")
            ),
        )
    return FrozenDataset(
        place,
        metadata["name"],
        metadata["version"],
        metadata["checksum"],
        tuple(statements),
        frozenset(ids),
        frozenset(text_ids),
    )


def _metadata(folder: Path) -> dict[str, Any]:
    """The dataset's `metadata.json`, of this layout."""
    path = folder / METADATA
    try:
        metadata: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except OSError as fault:
        raise HapaxError(
            f"{folder}: there is no dataset ({METADATA} is missing).",
            Remedy("Write one with {}.", Operation("write_dataset")),
        ) from fault
    except ValueError as fault:
        raise HapaxError(f"{path}: this is not JSON ({fault}).", _WRITE_AGAIN) from fault
    layout = metadata.get("layout") if isinstance(metadata, dict) else None
    if layout != LAYOUT:
        raise HapaxError(
            f"{folder}: the dataset has layout {layout}; this version of Hapax reads {LAYOUT}.", _WRITE_AGAIN
        )
    if metadata.get(METADATA_CHECKSUM) != metadata_checksum(metadata):
        raise HapaxError(
            f"{path}: the metadata have changed since the dataset was written.",
            Remedy("Restore the file, or write the dataset again under another {}.", Setting("target.version")),
        )
    missing = [name for name in ("name", "version", "checksum") if not isinstance(metadata.get(name), str)]
    if missing:
        raise HapaxError(f"{path}: {missing[0]} is missing.", _WRITE_AGAIN)
    return metadata


def _rows(folder: Path, table: DatasetTable) -> Iterator[dict[str, Any]]:
    """Rows of a table, head before long tail, from JSON Lines or else from Parquet."""
    lines = [folder / "jsonl" / f"{table.name}-{distribution.value}.jsonl" for distribution in Distribution]
    present = [path for path in lines if path.is_file()]
    for path in present:
        with path.open(encoding="utf-8") as stream:
            for line in stream:
                yield json.loads(line)
    if present:
        return
    parts = folder / ("data" if table is STATEMENTS else table.name)
    shards: list[Path] = []
    for distribution in Distribution:
        # Shard numbers have leading zeros, so this is the order in which the rows were written.
        shards += sorted(parts.glob(f"{distribution.value}-*.parquet"))
    if not shards:
        raise HapaxError(
            f"{folder}: neither the format jsonl nor parquet is there.",
            Remedy("Write the dataset with {} jsonl or hf.", Setting("target.formats")),
        )
    objects = [column.name for column in table.columns if column.kind == "json"]
    for shard in shards:
        columns, cells = parquet_table(shard)
        for row in (dict(zip(columns, values, strict=True)) for values in cells):
            yield row | {name: json.loads(row[name]) for name in objects}


def _statement(row: Row) -> ProbeItem:
    return ProbeItem(
        row["id"],
        row["rule"],
        row["domain"],
        Distribution(row["distribution"]),
        row["premise"],
        row["conclusion"],
        row["negation"],
        row["question"],
        Polarity(row["polarity"]),
        entailed=row["label"] == ENTAILS,
    )


def _substitution(row: Row) -> list[tuple[str, Value]]:
    """Variables and values of a row, with numbers as numbers."""
    kinds = {"text": str, "integer": int, "decimal": Decimal}
    return [(binding["variable"], kinds[binding["kind"]](binding["value"])) for binding in row["substitution"]]


def _id_of(row: Row) -> str:
    """The id of the first statement of the row, which differs from the row's if that is of the other distribution."""
    return statement_id(row["rule"], _substitution(row))
