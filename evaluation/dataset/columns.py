"""Columns of the tables of a dataset, and their files; `derive`'s statements as a file, written row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hapax.evaluation.link.probing_questions import TEMPLATES, ProbeItem
from hapax.grammar.errors import HapaxError
from hapax.kb.exchange.values import encode_decimal
from hapax.kb.records import StatementRecord

if TYPE_CHECKING:
    from hapax.engine.probability.probable_answers import Probability

Kind = Literal["string", "bool", "int32", "float64", "json"]
"""`json` is an object in JSONL, and its text in Parquet, where all cells of a column need one type."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `fields` make it a record of columns, `many` a list; `about` is its description in the card."""

    name: str
    about: str = ""
    kind: Kind = "string"
    fields: tuple[Column, ...] = ()
    many: bool = False


@dataclass(frozen=True, slots=True)
class DatasetTable:
    """One table of the dataset, in terms of the Hugging Face Hub a configuration."""

    name: str
    about: str
    columns: tuple[Column, ...]


STATEMENTS = DatasetTable(
    "statements",
    "one row per text and distribution",
    (
        # Which statement it is.
        Column("id", "id of the text, the same in both distributions; that of a statement which reads so"),
        Column("distribution", "`head` or `long_tail`, like the split"),
        Column("in_both", "whether the statement is in both head and long tail", "bool"),
        Column("rule", "name of the rule"),
        Column("domain", "domain of the rule, or `no domain`"),
        Column("principle", "`compatibility` or `exclusion`"),
        Column("polarity", "whether the conclusion affirms (`positive`) or denies (`negative`)"),
        # What it says.
        Column("premise", "the premise in words"),
        Column("conclusion", "the conclusion in words"),
        Column("negation", "the conclusion denied, as some questions put it"),
        Column("question", "the conclusion as a question about its positive side, without a question mark"),
        Column("label", "`entailment`, or `contradiction` if the votes from which it comes deny the statement"),
        Column("label_source", "`votes`, or `rule` if it repeats what the rule concludes"),
        Column("judgement", "`true`, `false` or `undecided` by people's votes; null if nobody has voted"),
        Column(
            "substitution",
            "the values, with `kind` text, integer or decimal",
            fields=(Column("variable"), Column("data_type"), Column("value"), Column("kind")),
            many=True,
        ),
        # How likely it is.
        Column(
            "log_likelihood",
            "log-likelihood of the statement by the run's evaluator, in nats, mean over tokens",
            "float64",
        ),
        # What it rests on.
        Column(
            "facts",
            "facts of all proofs with the critic's P(yes), which is null for facts given by a person",
            fields=(Column("id"), Column("fact"), Column("source"), Column("probability", kind="float64")),
            many=True,
        ),
        Column("least_probability", "lowest P(yes) among those of a proof; of several proofs, the surest", "float64"),
        Column("rarest_word_zipf", "Zipf frequency of the rarest word of the values; not in the paper", "float64"),
        Column("proof", "the proof as a list of steps, the root first", "json"),
        Column("proof_text", "the proof in words, indented"),
        Column(
            "other_proofs",
            "further derivations of the same text: statements with other values that it does not mention, or of "
            "another rule, each with id, rule, run, substitution and proof",
            "json",
        ),
        Column(
            "sources",
            "kinds of the proof's steps: fact (from a model), given, computed, negation, assumption",
            many=True,
        ),
        # Where it comes from.
        Column("run", "run that derived the statement; its settings are in `metadata.json`"),
        Column("knowledge_model", "model that proposed values"),
        Column("critic_model", "model that judged them"),
        Column(
            "critic_auc",
            "how well it separates true claims from false ones: 1 is best, .5 is chance, null is not measured",
            "float64",
        ),
        Column("likelihood_model", "model that ranked them"),
        Column("evaluator_model", "model that measured `log_likelihood`"),
    ),
)
FACTS = DatasetTable(
    "facts",
    "the facts that the proofs use",
    (
        Column("id", "id of the fact"),
        Column("predicate", "name of the predicate"),
        Column("arguments", "its arguments", many=True),
        Column("types", "data types under which they were accepted", many=True),
        Column("text", "the fact in words"),
        Column("source", "`model` or `given`"),
        Column("probability", "the critic's P(yes)", "float64"),
        Column("run", "run that accepted the fact"),
    ),
)
PROBES = DatasetTable(
    "probes",
    f"the {len(TEMPLATES)} questions of LINK's table 12 about each statement",
    (
        Column("id", "id of the statement and number of the template"),
        Column("statement", "id of the statement"),
        Column("distribution", "`head` or `long_tail`, like the split"),
        Column("rule", "name of the rule"),
        Column("domain", "domain of the rule"),
        Column("template", f"number of the template, 1 to {len(TEMPLATES)}", "int32"),
        Column("question", "the question"),
        Column("answers", "the two possible answers, the positive one first", many=True),
        Column("label", "index of the right answer, 0 or 1", "int32"),
    ),
)
ANNOTATIONS = DatasetTable(
    "annotations",
    "people's votes on the statements, without names and comments",
    (
        Column("statement", "id of the statement"),
        Column("question", "question as the sheet names it"),
        Column("annotator", "number of the annotator in this dataset", "int32"),
        Column("answer", "answer"),
    ),
)

Row = Mapping[str, Any]
"""Cells of one row by column name; a cell of kind `json` is an object."""

METADATA = "metadata.json"
"""Written into every dataset; only a folder that has it may be replaced."""

LAYOUT = 2
"""Version of the files of a dataset. Since 2, a text is one row, and the dataset has a version."""

ENTAILS, CONTRADICTS = "entailment", "contradiction"


def json_line(row: Row) -> str:
    """The row as a line of JSONL, keys in the order of the columns."""
    # Python would write NaN, which is not JSON and which other readers reject.
    return json.dumps(row, ensure_ascii=False, allow_nan=False, default=encode_decimal) + "\n"


def flat(row: Row, table: DatasetTable) -> dict[str, Any]:
    """The row with its JSON objects as texts, for Parquet."""
    # Only whole cells: a column inside a record is never of the kind json.
    objects = {column.name for column in table.columns if column.kind == "json"}
    compact = partial(json.dumps, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=encode_decimal)
    return {name: compact(cell) if name in objects else cell for name, cell in row.items()}


def probe_rows(probe: ProbeItem) -> Iterator[Row]:
    """Rows of the questions about a statement, with the right answer to each."""
    for template in TEMPLATES:
        yield {
            # With the distribution, because a statement may be in both and has its questions in each.
            "id": f"{probe.statement_id}-{probe.distribution.value}-{template.number}",
            "statement": probe.statement_id,
            "distribution": probe.distribution.value,
            "rule": probe.rule,
            "domain": probe.domain,
            "template": template.number,
            "question": template.question(probe),
            "answers": [template.pair.word(True), template.pair.word(False)],
            "label": 0 if template.label(probe) else 1,
        }


ROWS_PER_GROUP = 1_000
"""Rows of Parquet that are collected in memory and written together."""

# Names of pyarrow's functions; that for booleans has an underscore, as `pa.bool` does not exist.
_TYPES = {"string": "string", "json": "string", "bool": "bool_", "int32": "int32", "float64": "float64"}


class Size(NamedTuple):
    """Size of one split. `num_bytes` is that of its columns in memory, as `datasets` counts; 0 for JSON Lines."""

    rows: int
    num_bytes: int = 0


class JsonlWriter:
    """Writes rows as lines of a file, whose folder is made."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("w", encoding="utf-8", newline="\n")
        self._rows = 0

    def write(self, row: Row) -> None:
        self._stream.write(json_line(row))
        self._rows += 1

    def close(self) -> Size:
        self._stream.close()
        return Size(self._rows)


class ParquetWriter:
    """Writes rows to a file, group by group; its folder is made."""

    def __init__(self, path: Path, table: DatasetTable) -> None:
        import pyarrow as pa  # slow to import, and not needed for JSON Lines
        from pyarrow import parquet

        path.parent.mkdir(parents=True, exist_ok=True)
        self._table, self._schema = table, pa.schema([(column.name, _arrow(column)) for column in table.columns])
        self._file = parquet.ParquetWriter(path, self._schema, compression="zstd")
        self._waiting: list[dict[str, Any]] = []
        self._rows = self._bytes = 0

    def write(self, row: Row) -> None:
        self._waiting.append(flat(row, self._table))
        if len(self._waiting) == ROWS_PER_GROUP:
            self._flush()

    def close(self) -> Size:
        if self._waiting:
            self._flush()
        self._file.close()
        return Size(self._rows, self._bytes)

    def _flush(self) -> None:
        import pyarrow as pa

        group = pa.Table.from_pylist(self._waiting, schema=self._schema)
        self._file.write_table(group)
        self._bytes += group.nbytes  # uncompressed, as `datasets` states it in its cards
        self._rows += len(self._waiting)
        self._waiting.clear()


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    if column.fields:
        arrow_type = pa.struct([(field.name, _arrow(field)) for field in column.fields])
    else:
        arrow_type = getattr(pa, _TYPES[column.kind])()
    return pa.list_(arrow_type) if column.many else arrow_type


DERIVED = DatasetTable(
    "derived",
    "one row per statement that rules derive from the facts",
    (
        Column("id", "id of the statement"),
        Column("rule", "name of the rule"),
        Column("statement", "premise and conclusion as one sentence"),
        Column("premise", "the premise in words"),
        Column("conclusion", "the conclusion in words"),
        Column("substitution", "values by variable", "json"),
        Column("proof", "steps that refer to their premises by index, the root first", "json"),
    ),
)


PROBABLE = DatasetTable(
    "derived",
    "one row per statement that rules derive from the facts, the most probable first",
    (
        *DERIVED.columns,
        Column("probability", "the probability of what its rule needs, or a lower bound", "float64"),
        Column("at_most", "the upper bound, equal to an exact probability", "float64"),
        Column("method", "exact, bounds or best proof"),
    ),
)


def derived_row(record: StatementRecord) -> Row:
    """One statement as a row of `DERIVED`."""
    return {
        "id": record.id,
        "rule": record.rule,
        "statement": record.text,
        "premise": record.premise,
        "conclusion": record.conclusion,
        "substitution": dict(record.substitution),
        "proof": record.proof,
    }


def derived_line(record: StatementRecord) -> str:
    """One statement as a line of JSON."""
    return json_line(derived_row(record))


def probable_line(line: str, probability: Probability) -> str:
    """A line of `derived_line` with the statement's probability."""
    # Two JSON lines joined as texts, `{...}` and `{...}` to one object: no statement is parsed again.
    extra = json_line(probability.to_json())
    return f"{line.rstrip()[:-1]}, {extra[1:]}"


def write_lines(path: Path, batches: Iterable[Sequence[str]]) -> int:
    """Write lines to a file as they come, and return their number."""
    count = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for batch in batches:
            stream.write("".join(batch))
            count += len(batch)
    return count


def write_derived(path: Path, found: Iterable[tuple[StatementRecord, Probability | None]], table: DatasetTable) -> int:
    """Write statements, with their probabilities if these are known, to a `.parquet` file; return their number."""
    writer = ParquetWriter(path, table)
    for record, known in found:
        writer.write({**derived_row(record), **(known.to_json() if known else {})})
    return writer.close().rows


def check_output(path: Path) -> None:
    """Raises HapaxError unless the file is named .jsonl or .parquet and its folder exists.

    Raises ModuleNotFoundError where the library that writes Parquet files is missing.
    """
    if path.suffix not in (".jsonl", ".parquet"):
        raise HapaxError(f"{path}: statements are written as .jsonl or .parquet. Give the file one of these suffixes.")
    if not path.resolve().parent.is_dir():
        raise HapaxError(f"{path}: its folder does not exist. Create {path.parent} first, or name another file.")
    if path.suffix == ".parquet":
        import_module("pyarrow")
