"""Options that several commands share, and the objects that they make; those of models are in `model_options.py`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
from click.core import ParameterSource

import hapax
from hapax.commands.shared.console import NAMED_DATABASE, NAMED_PATHS, note, use_json
from hapax.commands.shared.declared import Finite, declared, together
from hapax.engine.kept_rules import sound_rules
from hapax.engine.prolog.limits import MOST_SECONDS, QueryLimits
from hapax.engine.query_options import ProbabilityOptions
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import ChosenRules, from_options

if TYPE_CHECKING:
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase

DEFAULT_DATABASE = "hapax.db"

SECONDS = Finite(0, MOST_SECONDS, min_open=True)
"""Type of a time limit."""

_RULES_OPTION = "hapax.commands.rule_commands"


def _note_rules(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> None:
    # click shares `meta` among the contexts of one call of the program.
    context.meta[_RULES_OPTION] = paths


def _with_noted_rules(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    noted = context.meta.get(_RULES_OPTION, ())
    is_named = context.get_parameter_source("rules") is ParameterSource.COMMANDLINE
    context.meta[NAMED_PATHS] = (*paths, *(noted if is_named else ()))
    # Files on the command line come in place of those that a file or the environment names, as with every option.
    return paths if paths and not is_named else (*paths, *noted)


# Commands whose only files are rules take these as arguments, and by the option of all other commands.
with_paths = together(
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path), callback=_with_noted_rules),
    click.option(
        "--rules",
        multiple=True,
        type=click.Path(path_type=Path),
        expose_value=False,
        # Eager: noted before the callback of PATHS runs, wherever the option is on the line.
        is_eager=True,
        callback=_note_rules,
        help="The same as PATHS: rule files or folders, or `shipped`.",
    ),
)

with_rules = click.option(
    "--rules",
    "paths",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Rule files or folders; `shipped` names the shipped ones.  [default: those of the knowledge "
    "base, else shipped]",
)


def _unlinked(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a link in place of the file that nobody named: it may lead out of a stranger's folder."""
    source = context.get_parameter_source(parameter.name or "")
    if value is not None and source is click.core.ParameterSource.DEFAULT and Path(value).is_symlink():
        raise click.BadParameter(
            f"{value} is a symbolic link to {Path(value).readlink()}, and you did not name it. Name the file with --db."
        )
    if source is ParameterSource.COMMANDLINE:
        context.meta[NAMED_DATABASE] = value
    return value


with_database = click.option(
    "--db",
    "database",
    default=DEFAULT_DATABASE,
    show_default=True,
    envvar="HAPAX_DB",
    callback=_unlinked,
    help="File of the knowledge base.",
)

with_json = click.option("--json", is_flag=True, expose_value=False, callback=use_json, help="Print JSON.")

with_chosen = click.option("--rule", "chosen", multiple=True, help=get_args(ChosenRules)[1].help)
# --- goals ------------------------------------------------------------------------------------------------------------

with_assume = click.option("--assume", multiple=True, help="Ground atom that is true for this call only.")

with_probability = together(
    click.option(
        "--probability",
        is_flag=True,
        help="Also give probabilities, computed from those of the facts over all proofs.",
    ),
    declared(ProbabilityOptions, "method", "proofs", "nodes"),
)

with_at_least = declared(ProbabilityOptions, "at_least")

# The default of `why` and `why_not`.
with_goal_seconds = click.option(
    "--seconds",
    type=SECONDS,
    default=60.0,
    show_default=True,
    help="Limit of processor time of each goal that the explanation needs.",
)

with_limits = declared(QueryLimits, "seconds", "inferences", "memory_mb", "answers")


# --- what options make ------------------------------------------------------------------------------------------------


def read_library(paths: Sequence[Path], database: str | None = None) -> Library:
    """The rules of these files and folders; without any, those that the knowledge base keeps, or the shipped ones.

    Says which files are not as they were when the knowledge base kept them.
    """
    if paths or database is None or not Path(database).exists():
        return hapax.load_rules(*paths)
    from hapax.engine.kept_rules import changed_files, kept_rules

    with open_kb(database, read_only=True) as kb:
        kept = kept_rules(kb)
        # The options that read all files again, ready for a shell.
        again = " ".join(f"--rules {shlex.quote(record.name)}" for record in kb.rule_texts())
        for name in changed_files(kb):
            note(f"{name} has changed; {database} keeps its earlier text. Use the new one with {again}.", "note:")
    return hapax.load_rules() if kept is None else kept


def sound_library(paths: Sequence[Path], database: str | None = None) -> Library:
    """Like `read_library`, without the rules that have errors; says which these are."""
    library = sound_rules(read_library(paths, database))
    for item in library.left_out or ():
        note(item)
    return library


def print_idle(library: Library) -> None:
    """Name the rules that are not used, unless by name, because they conclude nothing new."""
    from hapax.grammar.checking.rule_checks import adds_nothing

    for rule in library.rules:
        if adds_nothing(rule, library):
            note(f"rule {rule.name} is left out: it concludes nothing new. `hapax check` says why.")


def keep_rules(kb: KnowledgeBase, paths: Sequence[Path], command: str, rules: Library) -> None:
    """Keep these rule files in the knowledge base for later commands, and say what they replace."""
    # Without paths the rules are the shipped ones, or are kept already.
    if not paths:
        return
    if replaced := str(hapax.keep_rules(kb, *paths, command=command, rules=rules)):
        note(replaced)


def opened(**how: Any) -> KnowledgeBase:
    """The knowledge base of --db, open until the command ends; `how` as for `open_kb`."""
    context = click.get_current_context()
    return context.with_resource(open_kb(**{"database": context.params["database"], **how}))


def open_kb(database: str | None, read_only: bool = False, existing: bool = False, begun_by: str = "") -> KnowledgeBase:
    """The knowledge base in this file; None: one in memory. `existing`: to write into, if the file exists.

    `begun_by`: the command to run first if the file does not exist.
    """
    from hapax.kb.store import KnowledgeBase

    if begun_by and not Path(database or "").exists():
        raise HapaxError(f"{database}: there is no such knowledge base. Run `{begun_by}` first, or name one with --db.")
    if existing:
        KnowledgeBase(database, read_only=True).close()  # raises if there is none
    return KnowledgeBase(database, read_only=read_only)


def open_for_goal(database: str, paths: Sequence[Path], library: Library) -> KnowledgeBase:
    """The knowledge base of a goal, read-only.

    With rule files that state facts none is needed: without a name it is one in memory, and a new one gets what the
    rules conclude, if this is certain.
    """
    if Path(database).exists() or not paths:
        return opened(read_only=True)
    if not library.facts:
        named = ", ".join(map(str, paths))
        raise hapax.HapaxError(
            f"{named}: no facts are stated there, and there is no knowledge base {database}. Write facts, such as "
            "parent(ann, bob), or import a table first.",
        )
    if is_default("database"):
        return opened(database=None)
    with open_kb(database) as kb, kb.transaction():
        keep_rules(kb, paths, "derive", library)
        if not library.is_uncertain:
            hapax.derive(library, kb)
    stored = "the rules are" if library.is_uncertain else "what the rules conclude is"
    note(f"{database} is new; {stored} stored in it.")
    return opened(read_only=True)


def refuse_without(needed: str, *names: str) -> None:
    """Raise UsageError if one of these options is on the command line: they have no effect without the needed one."""
    context = click.get_current_context(silent=True)  # None where no command line asked
    for name in names:
        if context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} needs {needed}.")


def is_default(name: str) -> bool:
    """True for an option that neither the command line nor a file or the environment sets."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT


def probability_options(options: dict[str, Any]) -> ProbabilityOptions | None:
    """The options of probabilities; None if none are asked for, and a usage error where an option is useless then."""
    if options["probability"]:
        return from_options(ProbabilityOptions, options)
    refuse_without("--probability", "method", "proofs", "nodes", "at_least")
    return None
