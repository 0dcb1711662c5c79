"""The group `rules`: `expand`, `lint` and `verbalise` ask a model; `mine` reads a knowledge base."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    out,
    print_diagnostics,
    print_json,
    print_table,
    say,
    working,
)
from hapax.commands.shared.declared import declared
from hapax.commands.shared.groups import CommandGroup
from hapax.commands.shared.model_options import asking, open_journal, opening_options, with_asking, with_model
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted, two_decimals

with_acceptance = click.option(
    "--accept", is_flag=True, help="Write rules at once, not as comments that you accept by removing their #."
)


@click.group(
    cls=CommandGroup,
    path="rules.",
    core={
        "compile": "hapax.commands.rule_commands:compile",
        "explain": "hapax.commands.rule_commands:explain",
        "lsp": "hapax.commands.rule_commands:serve_editor",
    },
)
def rules() -> None:
    """Write, lay out and compile rules, explain faults in them, and propose new ones by a model or by facts.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules verbalise my.rules -m openai:gpt-4.1
    hapax rules lint my.rules -m openai:gpt-4.1
    hapax rules mine --db hapax.db -o mined.rules
    """


@rules.command()
@click.argument("meta", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@declared(hapax.ExpansionSettings, "variable")
@with_chosen
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Rule file to which proposals are added.",
)
@with_rules
@declared(hapax.ExpansionSettings, "types", "verbs")
@with_acceptance
@with_model
@with_asking
def expand(meta: Path, chosen: tuple[str, ...], paths: tuple[Path, ...], **options: Any) -> None:
    """Expand the data type of a variable: a model proposes narrower types and fitting verbs, you accept or reject.

    META is the file of the meta-rules. New rules are checked together with the library of --rules. They are added to
    the output as comments: remove the # of those that you accept. A comment that stays is not proposed again.
    docs/how-to/rules.md shows an example.

    \b
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules
    hapax rules expand meta.rules --variable B -m openai:gpt-4.1 -o new.rules --accept --max-calls 100
    """
    output: Path = options["output"]
    # Before any question is asked and paid.
    files = hapax.ExpansionFiles(meta, output, paths, chosen)
    sources = files.read()
    if sources.own:
        note(
            f"{', '.join(sources.own)}: {meta} has other types than the library of --rules, and its own are used. Use "
            "the new rules without the files that declare others.",
            "own types",
        )
    settings, kb = from_options(hapax.ExpansionSettings, options), opened()
    opening = opening_options(sources.whole, options, open_journal(kb, options))
    with working("Asking"):
        found = hapax.expand_rules(files, kb, options["model"], settings, opening, accept=options["accept"])
    for reply in found.left_out:
        out.print(f"[yellow]left out[/] {escape(f'{reply.said!r} {reply.reason}')}")
    for proposal in found.added:
        origin, *remarks = proposal.remarks
        out.print(f"\n[bold]{escape(origin)}[/]")
        out.print(escape("\n".join(f"  {line}" for line in (proposal.rule.sentence, *remarks))))
    proposals = [
        {"rule": proposal.rule.sentence, "added": proposal in found.added, "remarks": proposal.remarks}
        for proposal in found.proposals
    ]
    print_json({"added": len(found.added), "left_out": found.left_out, "proposals": proposals})
    _print_added(len(found.added), output, options["accept"])


def _print_added(count: int, output: Path, accept: bool) -> None:
    """Print the number of proposals that were added to the output, and how to accept them."""
    text = f"{counted(count, 'rule')} added to {output}"
    if count and not accept:
        text += " as comments. Remove the # of those that you accept, and leave the others: they are not proposed again"
    note(f"{text}.")


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


@rules.command()
@with_rules
@declared(hapax.MiningOptions)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Rule file to which the rules are added.",
)
@with_acceptance
@with_database
@with_json
def mine(paths: tuple[Path, ...], **options: Any) -> None:
    """Mine rules from the facts of a knowledge base: closed rules of up to three premises, without asking a model.

    Values that a critic rejected are counter-examples. Rules that the library states already are left out. With -o the
    rules are added to a file as comments, as by `rules expand`. docs/how-to/mining.md explains the measures.

    \b
    hapax rules mine --db hapax.db
    hapax rules mine --db hapax.db --constants --pca 0.8 --json
    hapax rules mine --db hapax.db -o mined.rules
    """
    output: Path | None = options["output"]
    if output is None and options["accept"]:
        raise click.UsageError("--accept needs a rule file. Name it with -o.")
    settings, library = from_options(hapax.MiningOptions, options), read_library(paths, options["database"])
    kb = opened(begun_by="hapax import")
    with working("Mining") as tell:
        mined = hapax.mine_rules(library, kb, settings, output=output, accept=options["accept"], progress=tell)
    _print_mined(mined)
    print_json(mined.to_json() | {"added": len(mined.added)})
    for remark in mined.notes:
        note(remark, "note:")
    if output is not None:
        _print_added(len(mined.added), output, options["accept"])


def _print_mined(mined: hapax.MinedRules) -> None:
    rows = []
    for item in mined.rules:
        measures = item.measures
        shares = (measures.head_coverage, measures.confidence, measures.pca_confidence)
        rows.append((item.rule.sentence, measures.support, *map(two_decimals, shares), measures.rejected))
    if rows:
        print_table(("rule", "support", "cover.", "conf.", "PCA", "rejected"), rows)
    note(f"{counted(len(rows), 'rule')} mined")
