"""The group `rules`: `expand`, `lint` and `verbalise` ask a model; `suggest` and `mine` read a knowledge base."""

from __future__ import annotations

import getpass
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.shared.common_options import (
    open_kb,
    read_library,
    with_chosen,
    with_database,
    with_json,
    with_paths,
    with_rules,
)
from hapax.commands.shared.console import err, number_text, out, print_diagnostics, print_json, print_table, working
from hapax.commands.shared.declared import Finite, declared, together
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import (
    asking,
    open_journal,
    opening_options,
    with_budget,
    with_model,
    with_queue,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import made
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hapax.engine.expansion.review import CheckedProposal, Review, ReviewedProposal, ReviewSheet

ANSWERS = "a accept, r reject, e WORDS use another verb, s skip, q quit"

ACCEPT, REJECT, WAITING = "accept", "reject", ""
"""Decisions about a proposal, as in the column `decision` of the sheet; a waiting proposal has none."""


with_review = together(
    click.option(
        "--review",
        type=click.Choice(["ask", "later", "accept-all"]),
        help="Ask about each, only write the sheet, or accept all that pass.  [default: ask on a terminal]",
    ),
    click.option(
        "--decisions",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Sheet of proposals and decisions, a CSV file; default: the output's name with .decisions.csv.",
    ),
    click.option("--by", help="Your name in the sheet; default: your user name."),
)


@click.group(
    cls=CommandGroup,
    path="rules.",
    core={
        "compile": "hapax.commands.rule_commands:compile",
        "explain": "hapax.commands.rule_commands:explain",
        "fmt": "hapax.commands.rule_commands:fmt",
        "lsp": "hapax.commands.rule_commands:serve_editor",
    },
)
def rules() -> None:
    """Write, lay out and compile rules, explain faults in them, and propose new ones by a model or by facts.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules verbalise my.rules -m openai:gpt-4.1
    hapax rules lint my.rules -m openai:gpt-4.1
    hapax rules suggest --db hapax.db
    hapax rules mine --db hapax.db -o mined.rules
    """


@rules.command()
@click.argument("meta", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@declared(hapax.ExpansionSettings, "variable")
@with_chosen
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="New rule file.")
@with_rules
@declared(hapax.ExpansionSettings, "types", "verbs")
@with_review
@with_model
@with_budget
@with_queue
@with_database
@with_json
def expand(meta: Path, chosen: tuple[str, ...], paths: tuple[Path, ...], **options: Any) -> None:
    """Expand the data type of a variable: a model proposes narrower types and fitting verbs, you accept or reject.

    META is the file of the meta-rules. New rules are checked together with the library of --rules. Without a terminal
    you decide in the sheet: write accept or reject into its column decision, and run the same command again.
    docs/how-to/rules.md shows an example.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules --review later --max-calls 100
    """
    output: Path = options["output"]
    if options["as_json"] and options["review"] == "ask":
        raise click.UsageError("--json prints no questions. Use it with --review later or --review accept-all.")
    # Before any question is asked and paid.
    files = hapax.ExpansionFiles(meta, output, paths, chosen, options["decisions"])
    sources = files.read()
    if sources.own:
        err.print(
            f"[yellow]own types[/] {escape(', '.join(sources.own))}: {escape(str(meta))} has other types than the "
            "library of --rules, and its own are used. Use the new rules without the files that declare others.",
            soft_wrap=True,
        )
    settings = made(hapax.ExpansionSettings, options)
    with open_kb(options["database"]) as kb:
        with working("Asking"):
            opening = opening_options(sources.whole, options, open_journal(kb, options))
            expanded = hapax.expand_rules(files, kb, options["model"], settings, opening)
        # All questions are asked by now; deciding costs nothing.
        review, left_out = expanded.review, expanded.left_out
        if not options["as_json"]:
            for reply in left_out:
                out.print(f"[yellow]left out[/] {escape(f'{reply.said!r} {reply.reason}')}")
        _decide(review, options)
        written = review.write()
    if options["as_json"]:
        click.echo(
            json.dumps({"rules": written, "left_out": list(map(asdict, left_out)), "proposals": review.to_json()})
        )
    _print_outcome(written, output, review.sheet)


def _print_outcome(written: int, output: Path, sheet: ReviewSheet) -> None:
    """Print the number of rules written, and how to decide on the proposals that are still waiting."""
    waiting = len(sheet.decided(WAITING))
    summary = f"{counted(written, 'rule')} in {output}, for use with the library of --rules"
    err.print(escape(summary if written else "no rule accepted"), soft_wrap=True)
    if waiting:
        waiting_text = (
            f"{counted(waiting, 'proposal is', 'proposals are')} waiting in {sheet.path}. Write accept or reject into "
            "the column decision, and run the same command again. No question is asked twice."
        )
        err.print(escape(waiting_text), soft_wrap=True)


@rules.command()
@with_paths
@with_model
@with_budget
@with_queue
@with_database
@with_json
def lint(paths: tuple[Path, ...], **options: Any) -> None:
    """Ask a model whether predicates make sense over their types, and whether it can know their facts.

    `has_height(Tree X, Height Y)` is out of a model's scope: single trees have no names. The model acts as a critic,
    and its objections are warnings.

    \b
    hapax rules lint my.rules -m openai:gpt-4.1
    """
    library = read_library(paths)
    with asking(options, "Asking", library) as (kb, opening, _):
        asked, diagnostics = hapax.lint_rules(library, kb, options["model"], opening)
    print_diagnostics(diagnostics, options["as_json"])
    err.print(f"{counted(asked, 'predicate')} judged, {counted(len(diagnostics), 'warning')}")


@rules.command()
@with_paths
@with_model
@with_budget
@with_queue
@with_database
@with_json
def verbalise(paths: tuple[Path, ...], as_json: bool, **options: Any) -> None:
    """Print declarations with all three sentences for predicates that lack some.

    Sentences that grammar rules cannot form are written by the model, in up to five tries until every slot is there.

    \b
    hapax rules verbalise my.rules -m openai:gpt-4.1 > vocabulary.rules
    """
    library = read_library(paths)
    with open_kb(options["database"]) as kb:
        opening = opening_options(library, options, open_journal(kb, options))
        worded = hapax.verbalise_rules(library, kb, options["model"], opening)
        if as_json:
            print_json([dict(zip(("predicate", "declaration", "notes"), row, strict=True)) for row in worded])
            return
        # Printed one by one, as the model writes them.
        for name, declaration, notes in worded:
            click.echo(declaration)
            for note in notes:
                err.print(f"[yellow]look at[/] {escape(f'{name}: {note}')}", soft_wrap=True)


def _decide(review: Review, options: dict[str, Any]) -> None:
    """Decide on the waiting proposals as --review says. Without --review and a terminal, leave them to the sheet."""
    way = options["review"] or ("ask" if sys.stdin.isatty() and not options["as_json"] else "later")
    rows = review.sheet.decided(WAITING)
    if way == "ask":
        _ask(review, rows, options["by"] or _user())
        return
    for row in rows:
        # A proposal with an objection cannot be accepted by a person either; it stays in the sheet.
        if way == "accept-all" and review.checked(row).objection is None:
            review.decide(row, ACCEPT, options["by"] or "--review accept-all")
        if not options["as_json"]:
            _print_proposal(row, review.checked(row))


def _ask(review: Review, rows: Sequence[ReviewedProposal], by: str) -> None:
    """Ask about each row until it is decided or skipped. The end of the input counts as `q`."""
    for number, row in enumerate(rows, 1):
        # Each is checked together with those accepted before it.
        _print_proposal(row, review.checked(row))
        while not row.decision:
            try:
                # On stderr, as stdout may go to a file. `e is fond of` is the answer `e` with words.
                answer, _, words = click.prompt(f"{number} of {len(rows)}: {ANSWERS}", err=True).strip().partition(" ")
            except click.Abort:
                return
            if answer == "q":
                return
            if answer == "s":
                break
            _apply_answer(review, row, by, answer, words.strip())


def _apply_answer(review: Review, row: ReviewedProposal, by: str, answer: str, words: str) -> None:
    """Accept, reject or reword a proposal, or print why that is not possible."""
    objection = review.checked(row).objection
    if answer == "r":
        review.decide(row, REJECT, by, words)
    elif answer == "a" and objection:
        err.print(escape(f"It cannot be accepted: {objection}."), soft_wrap=True)
    elif answer == "a":
        review.decide(row, ACCEPT, by, words)
    elif answer == "e" and words:
        try:
            review.reword(row, words)
        except HapaxError as fault:
            err.print(escape(str(fault)), soft_wrap=True)
        _print_proposal(row, review.checked(row))
    else:
        err.print("Answer a, r, e with the words of a verb, s or q.")


def _print_proposal(row: ReviewedProposal, checked: CheckedProposal) -> None:
    # `accepted` or `rejected`.
    decided = f", {row.decision}ed" if row.decision else ""
    origin = f"[bold]{escape(row.type)}[/] in {escape(row.meta)}" if row.meta else f"[bold]{escape(row.model)}[/]"
    out.print(f"\n{origin}, proposal {escape(row.proposal)}{decided}")
    out.print(escape(f"  {checked.rule.sentence}\n  {row.statement}\n  {checked.summary}"))
    if row.verbs:
        out.print(escape(f"  other verbs: {row.verbs}"))
    if row.remarks:
        out.print(escape(f"  look at: {row.remarks}"))
    for name in ("examples", "counter_examples"):
        if row.additional.get(name):
            out.print(escape(f"  {name.replace('_', '-')}: {row.additional[name]}"))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a machine without users
        return ""


@rules.command()
@with_rules
@click.option(
    "--at-least", type=Finite(0, 1), default=0.8, show_default=True, help="Only entailments with at least this score."
)
@click.option(
    "--margin", type=Finite(0, 1), default=0.3, show_default=True, help="How much lower the converse must score."
)
@with_database
@with_json
def suggest(paths: tuple[Path, ...], at_least: float, margin: float, database: str, as_json: bool) -> None:
    """Propose rules from strong stored entailments that hold in one direction only, and print them as a rule file.

    Left out are entailments that a rule states already, and those whose predicates no loaded rule file declares.
    docs/papers/entailment.md explains how to store entailments.

    \b
    hapax rules suggest --rules my.rules --db hapax.db > suggested.rules
    """
    with open_kb(database, read_only=True) as kb:
        found = hapax.suggest_rules(read_library(paths, database), kb, at_least, margin)
    if as_json:
        rows = []
        for suggestion in found:
            edge = suggestion.edge
            rule = f"{edge.premise} -> {edge.hypothesis}"
            rows.append(
                {"rule": rule, "score": edge.score, "converse": suggestion.converse, "feeds": suggestion.used_by}
            )
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    click.echo("\n\n".join(suggestion.text for suggestion in found))
    err.print(counted(len(found), "rule suggested", "rules suggested"), markup=False)


@rules.command()
@with_rules
@declared(hapax.MiningOptions)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="New file of the accepted rules, with the sheet of decisions beside it.",
)
@with_review
@with_database
@with_json
def mine(paths: tuple[Path, ...], **options: Any) -> None:
    """Mine rules from the facts of a knowledge base: closed rules of up to three premises, without asking a model.

    Values that a critic rejected are counter-examples. Rules that the library states already are left out. With -o you
    decide on each rule, as for `rules expand`. docs/how-to/mining.md explains the measures.

    \b
    hapax rules mine --db hapax.db
    hapax rules mine --db hapax.db --constants --pca 0.8 --json
    hapax rules mine --db hapax.db -o mined.rules --review later
    """
    output: Path | None = options["output"]
    if output is None and (options["review"] or options["decisions"]):
        raise click.UsageError("--review and --decisions need a rule file. Name it with -o.")
    if options["as_json"] and options["review"] == "ask":
        raise click.UsageError("--json prints no questions. Use it with --review later or --review accept-all.")
    settings = made(hapax.MiningOptions, options)
    library = read_library(paths, options["database"])
    with open_kb(options["database"], begun_by="hapax import") as kb, working("Mining") as show:
        mined = hapax.mine_rules(library, kb, settings, output=output, sheet=options["decisions"], progress=show)
    if not options["as_json"]:
        _print_mined(mined)
    written = 0
    if mined.review is not None:
        _decide(mined.review, options)
        written = mined.review.write()
    if options["as_json"]:
        proposals = {} if mined.review is None else {"written": written, "proposals": mined.review.to_json()}
        click.echo(json.dumps(mined.to_json() | proposals, ensure_ascii=False))
    for note in mined.notes:
        err.print(f"[yellow]note:[/] {escape(note)}", soft_wrap=True)
    if mined.review is not None and output is not None:
        _print_outcome(written, output, mined.review.sheet)


def _print_mined(mined: hapax.MinedRules) -> None:
    rows = []
    for item in mined.rules:
        measures = item.measures
        shares = (measures.head_coverage, measures.confidence, measures.pca_confidence)
        rows.append((item.rule.sentence, str(measures.support), *map(number_text, shares), str(measures.rejected)))
    if rows:
        print_table(("rule", "support", "cover.", "conf.", "PCA", "rejected"), rows)
    err.print(f"{counted(len(rows), 'rule')} mined")
