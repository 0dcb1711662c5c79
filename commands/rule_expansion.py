"""The group `rules`: `expand`, `lint` and `verbalise` ask a model; `suggest` and `mine` read a knowledge base."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

import hapax
from hapax.commands.shared.common_options import (
    opened,
    read_library,
    with_chosen,
    with_database,
    with_json,
    with_paths,
    with_rules,
)
from hapax.commands.shared.console import (
    diagnostic_json,
    note,
    number_text,
    out,
    print_diagnostics,
    print_json,
    print_table,
    say,
    working,
)
from hapax.commands.shared.declared import Finite, declared, together
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, open_journal, opening_options, with_asking, with_model
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
@with_asking
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
    # Before any question is asked and paid.
    _check_review(options)
    files = hapax.ExpansionFiles(meta, output, paths, chosen, options["decisions"])
    sources = files.read()
    if sources.own:
        note(
            f"{', '.join(sources.own)}: {meta} has other types than the library of --rules, and its own are used. Use "
            "the new rules without the files that declare others.",
            "own types",
        )
    settings, kb = made(hapax.ExpansionSettings, options), opened()
    opening = opening_options(sources.whole, options, open_journal(kb, options))
    with working("Asking"):
        expanded = hapax.expand_rules(files, kb, options["model"], settings, opening)
    # All questions are asked by now; deciding costs nothing.
    review, left_out = expanded.review, expanded.left_out
    for reply in left_out:
        out.print(f"[yellow]left out[/] {escape(f'{reply.said!r} {reply.reason}')}")
    _decide(review, options)
    written = review.write()
    print_json({"rules": written, "left_out": left_out, "proposals": review})
    _print_outcome(written, output, review.sheet)


def _check_review(options: dict[str, Any]) -> None:
    if out.quiet and options["review"] == "ask":
        raise click.UsageError("--json prints no questions. Use it with --review later or --review accept-all.")


def _print_outcome(written: int, output: Path, sheet: ReviewSheet) -> None:
    """Print the number of rules written, and how to decide on the proposals that are still waiting."""
    waiting = len(sheet.decided(WAITING))
    summary = f"{counted(written, 'rule')} in {output}, for use with the library of --rules"
    note(summary if written else "no rule accepted")
    if waiting:
        note(
            f"{counted(waiting, 'proposal is', 'proposals are')} waiting in {sheet.path}. Write accept or reject into "
            "the column decision, and run the same command again. No question is asked twice."
        )


@rules.command()
@with_paths
@with_model
@with_asking
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
    print_json(list(map(diagnostic_json, diagnostics)))
    print_diagnostics(diagnostics)
    note(f"{counted(asked, 'predicate')} judged, {counted(len(diagnostics), 'warning')}")


@rules.command()
@with_paths
@with_model
@with_asking
def verbalise(paths: tuple[Path, ...], **options: Any) -> None:
    """Print declarations with all three sentences for predicates that lack some.

    Sentences that grammar rules cannot form are written by the model, in up to five tries until every slot is there.

    \b
    hapax rules verbalise my.rules -m openai:gpt-4.1 > vocabulary.rules
    """
    library, kb = read_library(paths), opened()
    opening = opening_options(library, options, open_journal(kb, options))
    found = []
    # Printed one by one, as the model writes them.
    for name, declaration, notes in hapax.verbalise_rules(library, kb, options["model"], opening):
        found.append({"predicate": name, "declaration": declaration, "notes": notes})
        say(declaration)
        for remark in notes:
            note(f"{name}: {remark}", "look at")
    print_json(found)


def _decide(review: Review, options: dict[str, Any]) -> None:
    """Decide on the waiting proposals as --review says. Without --review and a terminal, leave them to the sheet."""
    way = options["review"] or ("ask" if sys.stdin.isatty() and not out.quiet else "later")
    rows = review.sheet.decided(WAITING)
    if way == "ask":
        _ask(review, rows, options["by"] or _user())
        return
    for row in rows:
        # A proposal with an objection cannot be accepted by a person either; it stays in the sheet.
        if way == "accept-all" and review.checked(row).objection is None:
            review.decide(row, ACCEPT, options["by"] or "--review accept-all")
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
        note(f"It cannot be accepted: {objection}.")
    elif answer == "a":
        review.decide(row, ACCEPT, by, words)
    elif answer == "e" and words:
        try:
            review.reword(row, words)
        except HapaxError as fault:
            note(fault)
        _print_proposal(row, review.checked(row))
    else:
        note("Answer a, r, e with the words of a verb, s or q.")


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
def suggest(paths: tuple[Path, ...], at_least: float, margin: float, database: str) -> None:
    """Propose rules from strong stored entailments that hold in one direction only, and print them as a rule file.

    Left out are entailments that a rule states already, and those whose predicates no loaded rule file declares.
    docs/papers/entailment.md explains how to store entailments.

    \b
    hapax rules suggest --rules my.rules --db hapax.db > suggested.rules
    """
    found = hapax.suggest_rules(read_library(paths, database), opened(read_only=True), at_least, margin)
    rows = []
    for suggestion in found:
        edge = suggestion.edge
        rule = f"{edge.premise} -> {edge.hypothesis}"
        rows.append({"rule": rule, "score": edge.score, "converse": suggestion.converse, "feeds": suggestion.used_by})
    print_json(rows)
    say("\n\n".join(suggestion.text for suggestion in found))
    note(counted(len(found), "rule suggested", "rules suggested"))


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
    _check_review(options)
    settings, library = made(hapax.MiningOptions, options), read_library(paths, options["database"])
    kb = opened(begun_by="hapax import")
    with working("Mining") as tell:
        mined = hapax.mine_rules(library, kb, settings, output=output, sheet=options["decisions"], progress=tell)
    _print_mined(mined)
    proposals: dict[str, Any] = {}
    if mined.review is not None:
        _decide(mined.review, options)
        proposals = {"written": mined.review.write(), "proposals": mined.review}
    print_json(mined.to_json() | proposals)
    for remark in mined.notes:
        note(remark, "note:")
    if mined.review is not None and output is not None:
        _print_outcome(proposals["written"], output, mined.review.sheet)


def _print_mined(mined: hapax.MinedRules) -> None:
    rows = []
    for item in mined.rules:
        measures = item.measures
        shares = (measures.head_coverage, measures.confidence, measures.pca_confidence)
        rows.append((item.rule.sentence, measures.support, *map(number_text, shares), measures.rejected))
    if rows:
        print_table(("rule", "support", "cover.", "conf.", "PCA", "rejected"), rows)
    note(f"{counted(len(rows), 'rule')} mined")
