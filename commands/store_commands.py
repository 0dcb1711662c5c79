"""The contents of a knowledge base: `import`, `export`, `merge`, `retract`, counts, ledger, copies and their checks."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.shared.common_options import (
    is_default,
    keep_rules,
    opened,
    read_library,
    with_database,
    with_json,
    with_rules,
)
from hapax.commands.shared.console import (
    Left,
    counts_text,
    leaving,
    note,
    out,
    print_json,
    print_texts,
    say,
    show,
    working,
)
from hapax.commands.shared.declared import declared
from hapax.grammar.options import from_options
from hapax.grammar.parsing.parser import read_rules
from hapax.grammar.writing.words import counted
from hapax.kb.files.whole_files import atomic_text_file

if TYPE_CHECKING:
    from hapax.kb.exchange.intake import FactFault, ImportReport
    from hapax.kb.exchange.mappings import TableMapping
    from hapax.kb.records import StatementRecord
    from hapax.kb.store import KnowledgeBase

FAULTS_SHOWN, ALIKE_SHOWN = 20, 3
"""Faulty rows that `import --skip-faulty` and `init` list, and of those with one fault."""

REPLACED_SHOWN = 5
"""Facts that `import` lists with those that took their place."""

PREDICATES_SHOWN = 10
"""Predicates that `import` lists with their numbers of facts; the rest are summed up."""


@click.command()
@with_database
@with_json
def stats(**_: Any) -> None:
    """Show how much the knowledge base has stored.

    \b
    hapax data stats --db hapax.db
    """
    contents = hapax.stats(opened(read_only=True))
    show(contents)
    if contents.derived:
        statements = counted(sum(contents.derived.values()), "statement")
        out.print(f"\n{statements} of {counted(len(contents.derived), 'rule')}, stored by hapax derive.")
    if contents.outdated:
        names, were = escape(", ".join(contents.outdated)), "was" if len(contents.outdated) == 1 else "were"
        out.print(f"Facts have changed since {names} {were} derived: run `hapax derive` again.", soft_wrap=True)
    if contents.withdrawn.facts:
        fallen = counted(contents.withdrawn.statements, "stored statement")
        tail = f", so {fallen} no longer hold" if contents.withdrawn.statements else ""
        facts = counted(contents.withdrawn.facts, "fact")
        out.print(f"\n{facts} withdrawn{tail}; hapax data retract --list names the facts.")
    if contents.calls:
        out.print(f"\nCalls in all runs, by role of the model: {counts_text(contents.calls)}.")
    if contents.sent:
        text = f"{counted(contents.sent, 'request')} left for servers, repeated and lost ones included"
        perhaps = f", {contents.perhaps} of them without a whole reply" if contents.perhaps else ""
        out.print(f"{text}{perhaps}; hapax model ledger has their tokens and cost.")
    for line in contents.without_answer:
        out.print(escape(line))


@click.command()
@with_database
@with_json
def verify(database: str) -> None:
    """Check the knowledge base against itself; exit code 1 if a row or the file is damaged.

    Checks SQLite's structures, the identity of every row (a hash of its content), all references, and the proof of
    every stored statement.

    \b
    hapax kb verify --db hapax.db
    """
    checked = hapax.verify(opened(read_only=True))
    if checked.is_clean:
        proofs = f" and {counted(checked.proofs, 'proof')} replayed" if checked.proofs else ""
        print_json(checked)
        say(f"{counted(checked.rows, 'row')} checked{proofs}, none damaged.")
    else:
        show(checked)
    if checked.others:
        note(f"Made by another program, and not used by Hapax: {', '.join(checked.others)}.")
    if checked.rewritten:
        note(
            f"Rewritten since their statements were derived: {', '.join(checked.rewritten)}. Their proofs were "
            "compared with the facts only. Search these rules again to renew them."
        )
    if not checked.is_clean:
        note(f"in {database}", counted(len(checked.damages), "damage"))
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("target", type=click.Path(path_type=Path, dir_okay=False))
@with_database
@with_json
def backup(target: Path, database: str) -> None:
    """Copy the knowledge base into the new file TARGET, also while others write to it, and verify the copy.

    The copy takes its name when it is whole, verified and on disk. An existing file is never overwritten.

    \b
    hapax kb backup hapax-monday.db --db hapax.db
    """
    with leaving(Left.WHOLE), working("Copying"):
        rows = hapax.backup(database, target)
    print_json({"copy": target, "rows": rows})
    say(f"{target}: {counted(rows, 'row')} copied and verified.")


@click.command()
@click.argument("copy", type=click.Path(path_type=Path, dir_okay=False))
@with_database
@with_json
def restore(copy: Path, database: str) -> None:
    """Replace the knowledge base by the backup COPY; the replaced file is kept beside it.

    The backup is verified first, and stays. A run that uses the replaced file ends with a copy of its answers.

    \b
    hapax kb restore hapax-monday.db --db hapax.db
    """
    with leaving(Left.WHOLE), working("Copying"):
        kept = hapax.restore_backup(copy, database)
    print_json({"database": database, "backup": copy, "earlier": kept})
    say(f"{database} is {copy} now." + (f" The earlier one is {kept}." if kept else ""))


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@with_database
@click.option("--predicate", help="Predicate of a table's facts; needs --columns.")
@click.option("--columns", metavar="FIRST,SECOND", help="Columns of the table that are the predicate's arguments.")
@click.option("--table", help="Table in a SQLite file.")
@click.option("--map", "map_file", type=click.Path(path_type=Path), help="YAML file that maps columns to predicates.")
@click.option(
    "--rules",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Rules that the facts must fit, kept for later commands; default: those kept.",
)
@click.option(
    "--names",
    metavar="REFERENCE",
    help="Store values under the canonical names of a reference, such as reference:geo.",
)
@click.option(
    "--empty",
    type=click.Choice(["skip", "refuse", "fact"]),
    default="skip",
    show_default=True,
    help='Empty cells: skip the cell of a row with a key, and other facts; refuse the row; or have the text "".',
)
@declared(hapax.import_facts)
@with_json
@leaving(Left.WHOLE)
def import_(file: Path, paths: tuple[Path, ...], **options: Any) -> None:
    """Import given facts: a CSV or JSONL file of facts, or a table with columns of its own.

    A row of facts is `predicate,argument,...`. Of any other table, name the columns; it may be CSV, TSV, JSONL, Parquet
    or SQLite. docs/reference/knowledge-base.md describes the files, and how one table gives facts of several
    predicates.

    \b
    hapax import facts.csv --db my.db
    hapax import airports.csv --predicate lies_at --columns airport,elevation --rules my.rules
    hapax import world.sqlite --table airports --map mapping.yaml
    hapax import visits.csv --rules my.rules --names reference:geo
    hapax import corrected.csv --map mapping.yaml --same-key replace
    """
    # Before the file of the knowledge base is made.
    mapping = _mapping(options)
    library = hapax.load_rules(*paths) if paths else None
    kb = opened()
    unchecked = _unchecked(kb, options["map_file"], mapping) if library is None else ""
    with working(f"Importing {file}") as line:
        kb.progress = partial(line, f"Importing {file}")
        rules = hapax.FactRules(library, options["names"])
        report = from_options(hapax.import_facts, options, kb=kb, source=file, mapping=mapping, rules=rules)
        if library is not None:
            # After the import, so that rules are not kept if it fails.
            keep_rules(kb, paths, "import", library)
    print_json(report)
    if not out.quiet:
        _print_import(report, mapping)
        if unchecked:
            note(unchecked)


def _unchecked(kb: KnowledgeBase, path: Path | None, mapping: TableMapping | None) -> str:
    """The note about a rule file beside a mapping that declares its predicates, where the knowledge base does not."""
    if path is None or mapping is None:
        return ""
    wanted = {fact.predicate for fact in mapping.facts}
    kept = {signature.name for signature in (hapax.kept_rules(kb) or hapax.Library()).signatures}
    for neighbour in sorted(path.parent.glob("*.rules")) if not wanted <= kept else ():
        if wanted <= {signature.name for signature in read_rules([neighbour]).library.signatures}:
            return (
                f"No rules were named, so no value was checked. {neighbour} declares {', '.join(wanted)}: import into "
                f"a new file with --rules {shlex.quote(str(neighbour))}."
            )
    return ""


def print_faults(faults: Sequence[FactFault]) -> None:
    """Print the first faulty rows, a few of each fault."""
    alike: Counter[tuple[str, str]] = Counter()
    shown = 0
    for fault in faults:
        sort = fault.kind, fault.message.partition(" is ")[0]
        alike[sort] += 1
        if alike[sort] <= ALIKE_SHOWN and shown < FAULTS_SHOWN:
            shown += 1
            note(fault)
    if more := len(faults) - shown:
        note(f"and {counted(more, 'more faulty row')} like these; import with --json lists all")


def _print_import(report: ImportReport, mapping: TableMapping | None) -> None:
    print_faults(report.faults)
    for warning in report.warnings:
        note(warning, "warning:")
    for indicator, count in list(report.predicates.items())[:PREDICATES_SHOWN]:
        note(f"{count} of {indicator}")
    if len(report.predicates) > PREDICATES_SHOWN:
        note(f"and facts of {counted(len(report.predicates) - PREDICATES_SHOWN, 'more predicate')}")
    if report.empty:
        note(_empty_cells(report, mapping))
    if report.renamed:
        # One spelling stands for all.
        written, name = next(iter(report.spellings.items()))
        example = f"such as {written} as {name}; hapax why shows the spelling of the file"
        note(f"{counted(report.renamed, 'row')} under canonical names, {example}")
    _print_replaced(report.replaced)
    print_texts("no longer holds", report.fallen)
    print_texts("holds again", report.risen)
    skipped = counted(len(report.faults), "faulty row")
    note(f"{counted(report.read, 'fact')} read, {report.added} of them new; {skipped} left out")


def _print_replaced(replaced: Mapping[str, object]) -> None:
    """Print some facts with those that took their place."""
    if replaced:
        shown = [f"{old} by {new}" for old, new in list(replaced.items())[:REPLACED_SHOWN]]
        more = f"; and {len(replaced) - len(shown)} more" if len(replaced) > len(shown) else ""
        note(f"{counted(len(replaced), 'fact')} replaced: {'; '.join(shown)}{more}")


def _empty_cells(report: ImportReport, mapping: TableMapping | None) -> str:
    """The sentences about the empty cells of a table."""
    cells = ", ".join(f"{column} {count}" for column, count in report.empty.items())
    if mapping is not None and mapping.empty == "fact":
        kept = 'They have the text "".'
    elif report.incomplete:
        kept = f"{counted(report.incomplete, 'fact')} left out. A declared key (`key id`) keeps such rows."
    else:
        kept = "There the rows have no value: `_` matches them, and is_missing(T) finds them."
    return f"{counted(sum(report.empty.values()), 'empty cell')}: {cells}. {kept}"


def _mapping(options: Mapping[str, Any]) -> TableMapping | None:
    """The mapping that the options state; None for a file of facts."""
    predicate, columns, table, path = (options[name] for name in ("predicate", "columns", "table", "map_file"))
    # What was typed comes before what the file names.
    chosen = {} if is_default("empty") else {"empty": options["empty"]}
    if path is not None:
        if predicate or columns:
            raise click.UsageError("--map names predicates and columns itself. Omit --predicate and --columns.")
        return hapax.TableMapping.read(path).model_copy(update=chosen | ({"table": table} if table else {}))
    if bool(predicate) != bool(columns):
        raise click.UsageError("--predicate and --columns go together: --predicate lies_at --columns airport,elevation")
    if predicate:
        named = hapax.TableMapping.of(predicate, [column.strip() for column in columns.split(",")], table)
        return named.model_copy(update=chosen)
    if table:
        raise click.UsageError("--table needs --predicate and --columns, or --map.")
    return None


@click.command()
@with_database
@declared(hapax.export_facts)
@click.option(
    "--statements",
    is_flag=True,
    help="Export statements with their proofs, as JSON Lines, instead of facts.",
)
@click.option("-o", "--output", default="-", help="File to write; default: stdout.")
@with_rules
def export(database: str, statements: bool, output: str, paths: tuple[Path, ...], **options: Any) -> None:
    """Export facts as a Prolog program, CSV or JSONL, or all statements with their proofs.

    \b
    hapax export --format prolog -o facts.pl
    hapax export --format csv --predicate is_ingredient_in
    hapax export --statements -o statements.jsonl
    """
    if statements and options["predicate"]:
        raise click.UsageError("--predicate chooses facts. Omit it with --statements.")
    kb, library = opened(read_only=True), read_library(paths, database) if statements else None
    # Atomic: a file that was there stays as it was until everything is written.
    with working("" if output == "-" else "Exporting"), atomic_text_file(output) as stream:
        if library is None:
            facts = from_options(hapax.export_facts, options, kb=kb, stream=stream)
        else:
            report = hapax.export_statements(kb, library, stream)
    if library is None:
        for left_out in facts.left_out:
            note(f"left out {left_out.fact.predicate}: {left_out.reason}")
        note(f"{counted(facts.written, 'fact')} exported")
        return
    if report.outdated:
        note(
            f"{counted(report.outdated, 'statement')} that derive stored left out: facts or rules have changed since. "
            "Run `hapax derive` again."
        )
    note(f"{counted(report.searched + report.derived, 'statement')} exported, {report.derived} of them of derive")


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="OTHER")
@with_database
@with_json
@leaving(Left.WHOLE)
def merge(path: Path, database: str) -> None:
    """Add everything from another knowledge base to this one.

    \b
    hapax data merge colleague.db --db hapax.db
    """
    kb = opened()
    with working(f"Merging {path}"):
        report = hapax.merge(kb, path)
    print_json(report)
    for name, count in report.added.items():
        # Names of tables are plurals.
        say(f"{counted(count, name.removesuffix('s'), name)} added")
    if not (report.added or report.replaced):
        say(f"nothing added: {database} has everything in {path}")
    for conflict in report.conflicts:
        note(conflict, "conflict:")
    _print_replaced(report.replaced)
    print_texts("no longer holds", report.fallen)


# --- requests to servers ----------------------------------------------------------------------------------------------


@click.command()
@with_database
@declared(hapax.ledger)
@with_json
def ledger(**options: Any) -> None:
    """List the requests that left for servers in all runs, with tokens and cost.

    A request without a whole reply was perhaps billed, and counts at the most it can use. Requests of --queue are
    queued until their results are read.

    \b
    hapax model ledger --db hapax.db
    hapax model ledger --since 2026-11 --until 2026-12
    """
    show(from_options(hapax.ledger, options, kb=opened(read_only=True)))


# --- withdrawn facts --------------------------------------------------------------------------------------------------


@click.command()
@click.argument("facts", nargs=-1)
@click.option("--reason", default="", help="Reason for the withdrawal; it is stored with it.")
@click.option("--undo", is_flag=True, help="Bring withdrawn facts back.")
@click.option("--list", "listing", is_flag=True, help="List the facts that are withdrawn.")
@with_rules
@with_database
@with_json
@leaving(Left.WHOLE)
def retract(  # noqa: PLR0917  one parameter an option
    facts: tuple[str, ...], reason: str, undo: bool, listing: bool, paths: tuple[Path, ...], database: str
) -> None:
    """Withdraw facts, named as atoms or by id, and with them all statements that rest on them alone.

    A statement with another proof stays, with that proof. Searches do not bring back what you withdrew; --undo does,
    and so does importing the fact. What a search has left out meanwhile comes back by the next search.

    \b
    hapax data retract 'is_ingredient_in(butter, hummus)' --reason 'read the recipe'
    hapax data retract --undo 'is_ingredient_in(butter, hummus)'
    hapax data retract --list
    """
    if listing is bool(facts):
        raise click.UsageError("Name facts, such as 'is_ingredient_in(butter, hummus)', or use --list without any.")
    if facts and undo is bool(reason.strip()):
        raise click.UsageError("A withdrawal needs --reason TEXT, and --undo takes none.")
    if listing:
        withdrawn = hapax.withdrawn_facts(opened(read_only=True))
        print_json(withdrawn)
        for item in withdrawn:
            out.print(f"{escape(item.atom)}, {escape(item.text)}", soft_wrap=True)
        note(f"{counted(len(withdrawn), 'fact')} withdrawn")
        return
    library, kb = read_library(paths, database), opened(existing=True)
    change = hapax.restore(facts, library, kb) if undo else hapax.retract(facts, library, kb, reason=reason)
    print_json(change)
    done = "restored" if undo else "withdrawn"
    for atom in change.to_json()["facts"]:
        out.print(f"{done}: {escape(atom)}", soft_wrap=True)
    _print_statements("no longer holds", change.fallen)
    _print_statements("holds by another proof", change.reproved)
    _print_statements("holds again", change.risen)
    # Of statements that `derive` stored only the numbers are known.
    for rule, (before, now) in change.derived.items():
        out.print(f"derived by {escape(rule)}: {counted(now, 'statement')}, {before} before", soft_wrap=True)
    note(f"{counted(len(change.facts), 'fact')} {done}")
    if undo and not change.risen and not change.derived:
        note("No stored statement waited for it; the next search or derivation finds those that rest on it.")


def _print_statements(outcome: str, statements: Sequence[StatementRecord]) -> None:
    # By id: a statement has a row for each run and end.
    print_texts(outcome, list({statement.id: statement.text for statement in statements}.values()))
