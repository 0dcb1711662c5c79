"""Statements of a bulk derivation as one JSON Lines or Parquet file, written row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hapax.engine.judgements import UNJUDGED, Judgements
from hapax.evaluation.dataset.columns import Column, DatasetTable, Row, json_line
from hapax.grammar.errors import HapaxError
from hapax.kb.records import StatementRecord

if TYPE_CHECKING:
    from hapax.engine.probability.answers import Probability
    from hapax.evaluation.dataset.selection import SelectionOptions
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase

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
    from hapax.evaluation.dataset.columns import write_parquet

    rows = ({**derived_row(record), **(known.to_json() if known else {})} for record, known in found)
    return write_parquet(path, table, rows)


class DerivedCounts(NamedTuple):
    """Numbers of derived statements: written, left out because people deny them, and not up to date."""

    written: int
    denied: int
    out_of_date: int


def write_current(
    path: Path, kb: KnowledgeBase, library: Library, options: SelectionOptions, found: Judgements
) -> DerivedCounts:
    """Write the statements that `derive` stored to a `.jsonl` file, unless there are none, each with its judgement."""
    from hapax.engine.logic.derive import current_rules, read_statements
    from hapax.engine.logic.statement_lines import statement_lines
    from hapax.evaluation.votes.derived import judged_derived

    stored = {name: count for name, count in kb.derived_counts().items() if count}
    chosen = {name: count for name, count in stored.items() if not options.rules or name in options.rules}
    rules = [rule for rule in current_rules(kb, library) if rule.name in chosen]
    # The statements of a rule are current or stale together, so whole rules are left out.
    left_out = sum(chosen.values()) - sum(chosen[rule.name] for rule in rules)
    if not rules:
        return DerivedCounts(0, 0, left_out)
    judged = judged_derived(kb, library, found)
    judged_rules = {record.rule for record, _ in judged.values()}
    written = denied = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for rule in rules:
            if not options.blocked.patterns and rule.name not in judged_rules:  # spares reading each statement
                for lines in statement_lines(kb, library, rule, _unjudged_line):
                    stream.write("".join(lines))
                    written += len(lines)
                continue
            for record in read_statements(kb, library, rule):
                _, judgement = judged.get(record.id, (record, UNJUDGED))
                if judgement.is_true is False and options.judged == "drop":
                    denied += 1
                elif not options.blocked.blocks([record.text]):
                    stream.write(json_line({**derived_row(record), "judgement": judgement.word}))
                    written += 1
    return DerivedCounts(written, denied, left_out)


def _unjudged_line(record: StatementRecord) -> str:
    return json_line({**derived_row(record), "judgement": None})


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
