"""The commands to begin with: `init` makes a folder from a table, `shell` asks goals, `doctor` says what is missing."""

from __future__ import annotations

import cmd
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

import hapax
from hapax.commands.reasoning import MOST_PRINTED, print_answer_table
from hapax.commands.shared.common_options import open_for_goal, sound_library, with_database, with_json, with_paths
from hapax.commands.shared.console import DONE, FAILED, note, show
from hapax.commands.store_commands import FAULTS_SHOWN, print_faults
from hapax.grammar.writing.words import counted

if TYPE_CHECKING:
    from hapax.api.goal_answers import Program


@click.command()
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--table", "name", help="Table in a SQLite file; default: the only one.")
def init(table: Path, folder: Path | None, name: str | None) -> None:
    """Begin with a table: write its mapping, rules and settings into FOLDER, and name the next commands.

    TABLE is CSV, TSV, JSONL, Parquet or SQLite.

    \b
    hapax init flights.csv
    """
    from hapax.api.starting import start_folder

    started = start_folder(table, folder, name)
    print_faults(started.faults)
    for line in started.notes[:FAULTS_SHOWN]:
        note(line)
    if started.faults:
        rows = counted(len(started.faults), "faulty row")
        note(f"{rows}: correct them or the guesses; the first command leaves them out.")
    for path in started.files:
        click.echo(f"wrote {path}")
    click.echo(f"\nNext, from {started.files[0].parent}:\n")
    for command in started.commands:
        click.echo(f"  {command}")


@click.command()
@with_paths
@with_database
def shell(paths: tuple[Path, ...], database: str) -> None:
    """Ask goals one after another, over the knowledge base or over the facts and rules of PATHS alone.

    \b
    hapax shell family.rules
    """
    library = sound_library(paths, database)
    GoalShell(hapax.Program(library, open_for_goal(database, paths, library))).run()


SHELL_HELP = "A goal such as ancestor(ann, X), or: why ATOM, why-not ATOM, predicates, help, quit."


class GoalShell(cmd.Cmd):
    """Reads goals from the terminal or from stdin. Tab completes predicates and values; arrows go back."""

    prompt = "hapax> "

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.failed = False

    def run(self) -> None:
        """Read until the end. Raises SystemExit with 1 if a goal failed and nobody sits at the terminal."""
        if not sys.stdin.isatty():
            self.prompt, self.use_rawinput = "", False
        else:
            click.echo(SHELL_HELP)
        self.cmdloop()
        if self.failed and not sys.stdin.isatty():
            sys.exit(1)

    def onecmd(self, line: str) -> bool:
        """Do one line; True ends the shell."""
        word, _, rest = line.strip().rstrip(".").partition(" ")
        if word in ("quit", "exit", "EOF"):
            return True
        try:
            if word in ("why", "why-not"):
                explain = self.program.why if word == "why" else self.program.why_not
                click.echo(str(explain(rest.strip())))
            elif word in ("?", "help", "predicates"):
                click.echo("\n".join([*([] if word == "predicates" else [SHELL_HELP, ""]), *self._called()]))
            elif word:
                self._ask(line.strip().rstrip("."))
        except hapax.HapaxError as fault:
            self.failed = True
            note(fault)
        return False

    def _ask(self, goal: str) -> None:
        answers = self.program.query(goal, options=hapax.QueryOptions(hapax.QueryLimits(answers=MOST_PRINTED)))
        print_answer_table(answers)
        none = ["No answer."] if answers.columns and not answers.rows else []
        more = ["There are more answers."] if answers.truncated else []
        for line in (*answers.notes, *answers.warnings, *none, *more):
            note(line)

    def completenames(self, text: str, *_: object) -> list[str]:
        """Words, predicates and values that begin so."""
        predicates = (line.partition("/")[0] for line in self._called())
        words = {"why", "why-not", "predicates", "help", "quit", *predicates, *self.program.kb.texts_beginning(text)}
        return sorted(word for word in words if word.startswith(text))

    completedefault = completenames

    def _called(self) -> list[str]:
        """The predicates, each with its columns if it has some."""
        rules = self.program.rules
        declared = {signature.indicator for signature in rules.completed().signatures} - rules.excepted
        named = sorted(declared.union(self.program.kb.fact_indicators()))
        return [f"{name}  {', '.join(rules.columns_of(name.partition('/')[0]))}".rstrip() for name in named]


with suppress(ImportError):
    # Lines are kept and edited where it is there.
    import readline  # noqa: F401


# --- what is installed ------------------------------------------------------------------------------------------------


@click.command("list")
@with_json
def list_models() -> None:
    """List the model backends and their abilities.

    \b
    hapax model list
    """
    show(hapax.list_models())


@click.command()
@with_json
def doctor() -> None:
    """Check the programs and packages that Hapax needs, and say how to install what is missing.

    \b
    hapax doctor
    """
    examination = hapax.doctor()
    show(examination)
    sys.exit(DONE if examination.passed else FAILED)
