"""`rules`: making rules with a model's help. `rules expand`, `rules lint` and `rules verbalise`."""

from __future__ import annotations

import getpass
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from commands.console import err, out, print_diagnostics
from commands.options import (
    SHIPPED_RULES,
    Finite,
    open_journal,
    open_kb,
    opening_options,
    read_library,
    together,
    with_budget,
    with_chosen,
    with_database,
    with_json,
    with_opening,
    with_paths,
    with_queue,
    with_rules,
)
from grammar.errors import HapaxError
from grammar.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.expansion.replies import LeftOut
    from engine.expansion.review import Offer, Review
    from engine.expansion.sheet import Row
    from grammar.rules import Library
    from kb.store import KnowledgeBase
    from llm_oracle.calls import Journal, JournaledGenerator

ANSWERS = "a accept, r reject, e WORDS another verb, s later, q stop"

with_model = together(
    click.option("-m", "--model", required=True, help="Model that is asked; it must follow instructions."),
    with_opening,
)


@click.group()
def rules() -> None:
    """Make rules with a model's help.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules verbalise my.rules -m openai:gpt-4.1
    hapax rules lint my.rules -m openai:gpt-4.1
    hapax rules suggest --db hapax.db
    """


@rules.command()
@click.argument("meta", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--variable", required=True, help="The variable whose data type is expanded, such as B.")
@with_chosen
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="New rule file.")
@with_rules
@click.option("--types", type=click.IntRange(1, 100), default=10, show_default=True, help="Data types asked for.")
@click.option("--verbs/--no-verbs", default=True, show_default=True, help="Ask for the verb that fits each data type.")
@click.option(
    "--review",
    type=click.Choice(["ask", "later", "accept-all"]),
    help="Ask about each proposal, only write the sheet, or accept what passes.  [default: ask on a terminal]",
)
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The sheet: CSV or JSONL file of proposals and decisions; default: the output's name with .decisions.csv.",
)
@click.option("--by", help="Who decides, for the sheet; default: your user name.")
@with_model
@with_budget
@with_queue
@with_database
@with_json
def expand(meta: Path, chosen: tuple[str, ...], paths: tuple[Path, ...], **options: Any) -> None:
    """Expand the data type of a variable: a model proposes narrower types and fitting verbs, you accept or reject.

    META holds the meta-rules; new ones are compared with the library of --rules, beside which they are to be used.
    What was asked or decided before is not asked again. Without a terminal nothing is asked: mark the column decision
    of the sheet with accept or reject, and run the same command again. docs/rules.md shows it all.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules --review later --max-calls 100
    """
    from engine.expansion.propose import ExpansionSettings
    from engine.expansion.review import Review
    from engine.expansion.rule_file import Sources, refuse_foreign
    from engine.expansion.sheet import WAITING, Sheet

    output: Path = options["output"]
    if options["as_json"] and options["review"] == "ask":
        raise click.UsageError("--json prints no questions: use --review later or --review accept-all with it.")
    refuse_foreign(output)
    sources = Sources.read(meta, paths or (SHIPPED_RULES,), output)
    sheet = Sheet(options["decisions"] or output.with_suffix(".decisions.csv"))
    same = ("variable", "types", "verbs", "seed")
    settings = ExpansionSettings(**{name: options[name] for name in same})
    with open_kb(options["database"]) as kb:
        review = Review(_generator(kb, sources.whole, options), sources, sources.meta_rules(chosen), sheet, settings)
        with err.status("Asking"):
            left_out = review.propose()
        if not options["as_json"]:
            _print_left_out(left_out)
        _decide(review, options)
        written = review.write()
    if options["as_json"]:
        click.echo(json.dumps({"rules": written, "left_out": list(map(asdict, left_out)), "proposals": review.told()}))
    waiting = len(sheet.decided(WAITING))
    told = f"{counted(written, 'rule')} in {output}, for use beside the library of --rules"
    err.print(escape(told if written else "no rule accepted"), soft_wrap=True)
    if waiting:
        told = (
            f"{counted(waiting, 'proposal waits', 'proposals wait')} in {sheet.path}: write accept or reject into the "
            "column decision and run the same command again. Nothing is asked twice."
        )
        err.print(escape(told), soft_wrap=True)


@rules.command()
@with_paths
@with_model
@with_budget
@with_queue
@with_database
@with_json
def lint(paths: tuple[Path, ...], **options: Any) -> None:
    """Ask a model whether it can know what rules ask, and whether their predicates fit their types.

    `has_height(Tree X, Height Y)` is out of a model's scope: single trees have no names. The model is asked as a
    critic; what it finds are warnings.

    \b
    hapax rules lint my.rules -m openai:gpt-4.1
    """
    from engine.scope import lint_predicates
    from llm_oracle.calls import CRITIC, JournaledCritic

    library = read_library(paths)
    with open_kb(options["database"]) as kb, err.status("Asking"):
        model, journal = _opened(kb, library, CRITIC, options)
        asked, diagnostics = lint_predicates(library, JournaledCritic(model, journal, role="rules"))
    print_diagnostics(diagnostics, options["as_json"])
    err.print(f"{counted(asked, 'predicate')} judged, {counted(len(diagnostics), 'warning')}")


@rules.command()
@with_paths
@with_model
@with_budget
@with_queue
@with_database
def verbalise(paths: tuple[Path, ...], **options: Any) -> None:
    """Print declarations with all three sentences for the predicates that lack some.

    Grammar makes what it can; the rest is the model's, in up to five tries until every slot is there.

    \b
    hapax rules verbalise my.rules -m openai:gpt-4.1 > vocabulary.rules
    """
    from engine.expansion.sentences import declarations
    from grammar.printing import signature_text
    from llm_oracle.rewriting import FormWriter

    library = read_library(paths)
    with open_kb(options["database"]) as kb:
        model = _generator(kb, library, options)
        for signature, notes in declarations(library, FormWriter(model, options["seed"])):
            click.echo(signature_text(signature))
            for note in notes:
                err.print(f"[yellow]look at[/] {escape(f'{signature.name}: {note}')}", soft_wrap=True)


def _generator(kb: KnowledgeBase, library: Library, options: dict[str, Any]) -> JournaledGenerator:
    from llm_oracle.calls import KNOWLEDGE, JournaledGenerator

    model, journal = _opened(kb, library, KNOWLEDGE, options)
    return JournaledGenerator(model, journal, role="rules")


def _opened(kb: KnowledgeBase, library: Library, role: str, options: dict[str, Any]) -> tuple[Any, Journal]:
    """The model in that role, and the journal that it is asked through."""
    from llm_oracle.registry import open_instructed

    journal = open_journal(kb, options)
    return open_instructed(options["model"], role, opening_options(library, options, journal)), journal


def _decide(review: Review, options: dict[str, Any]) -> None:
    """Go through the proposals that wait, in the way that was asked for; the default never waits without a terminal."""
    from engine.expansion.sheet import ACCEPT, WAITING

    way = options["review"] or ("ask" if sys.stdin.isatty() and not options["as_json"] else "later")
    rows = review.sheet.decided(WAITING)
    if way == "ask":
        _ask(review, rows, options["by"] or _user())
        return
    for row in rows:
        if way == "accept-all" and review.offer(row).against is None:
            review.decide(row, ACCEPT, options["by"] or "--review accept-all")
        if not options["as_json"]:
            _print_offer(row, review.offer(row))


def _ask(review: Review, rows: Sequence[Row], by: str) -> None:
    """One question for each row, until it is answered. The end of the input is `q`."""
    for number, row in enumerate(rows, 1):
        _print_offer(row, review.offer(row))
        while not row.decision:
            try:
                answer, _, words = click.prompt(f"{number} of {len(rows)}: {ANSWERS}", err=True).strip().partition(" ")
            except click.Abort:
                return
            if answer == "q":
                return
            if answer == "s":
                break
            _answered(review, row, by, (answer, words.strip()))


def _answered(review: Review, row: Row, by: str, said: tuple[str, str]) -> None:
    """Accept, reject or reword, or say why not."""
    from engine.expansion.sheet import ACCEPT, REJECT

    answer, words = said
    offer = review.offer(row)
    if answer == "r":
        review.decide(row, REJECT, by, words)
    elif answer == "a" and offer.against:
        err.print(escape(f"It cannot be accepted: {offer.against}."), soft_wrap=True)
    elif answer == "a":
        review.decide(row, ACCEPT, by, words)
    elif answer == "e" and words:
        try:
            review.reword(row, words)
        except HapaxError as fault:
            err.print(escape(str(fault)), soft_wrap=True)
        _print_offer(row, review.offer(row))
    else:
        err.print("Answer a, r, e with the words of a verb, s or q.")


def _print_offer(row: Row, offer: Offer) -> None:
    decided = f", {row.decision}ed" if row.decision else ""
    out.print(f"\n[bold]{escape(row.type)}[/] in {escape(row.meta)}, proposal {escape(row.proposal)}{decided}")
    out.print(escape(f"  {offer.rule.sentence}\n  {row.statement}\n  {offer.told}"))
    if row.verbs:
        out.print(escape(f"  other verbs: {row.verbs}"))
    if row.remarks:
        out.print(escape(f"  look at: {row.remarks}"))


def _print_left_out(left_out: Iterable[LeftOut]) -> None:
    for one in left_out:
        out.print(f"[yellow]left out[/] {escape(f'{one.said!r} {one.reason}')}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a machine without users
        return ""


@rules.command()
@with_rules
@click.option("--at-least", type=Finite(0, 1), default=0.8, show_default=True, help="Only entailments of this score.")
@click.option(
    "--margin", type=Finite(0, 1), default=0.3, show_default=True, help="How much weaker the way back must score."
)
@with_database
@with_json
def suggest(paths: tuple[Path, ...], at_least: float, margin: float, database: str, as_json: bool) -> None:
    """Propose rules from stored entailments that are strong and point one way; print them as a rule file.

    An entailment is left out where a rule says as much already, and where no loaded rule file knows its predicates.
    docs/entailment.md tells how entailments are stored.

    \b
    hapax rules suggest --rules my.rules --db hapax.db > suggested.rules
    """
    from engine.entailment import edges
    from engine.suggestions import suggestions

    with open_kb(database, read_only=True) as kb:
        found = list(suggestions(edges(kb, 0.0), read_library(paths), at_least, margin))
    if as_json:
        told = [
            {"rule": f"{one.edge.premise} -> {one.edge.hypothesis}", "score": one.edge.score, "converse": one.converse}
            | {"feeds": one.used_by}
            for one in found
        ]
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    click.echo("\n\n".join(one.text for one in found))
    err.print(counted(len(found), "rule suggested", "rules suggested"), markup=False)
