"""The commands `query`, `why`, `why-not` and `derive`: rules over the facts of the knowledge base."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hapax
from hapax.commands.shared.common_options import (
    SECONDS,
    keep_rules,
    open_for_goal,
    opened,
    print_idle,
    probability_options,
    sound_library,
    with_assume,
    with_at_least,
    with_chosen,
    with_database,
    with_goal_seconds,
    with_json,
    with_limits,
    with_paths,
    with_probability,
)
from hapax.commands.shared.console import (
    BUDGET_REACHED,
    DONE,
    FAILED,
    Left,
    ended_by,
    leaving,
    note,
    out,
    print_json,
    print_table,
    say,
    working,
)
from hapax.commands.shared.declared import Finite, of_program
from hapax.commands.shared.model_options import (
    choose_profile,
    load_models,
    open_journal,
    opening_options,
    question_settings,
    with_budget,
    with_model,
    with_models,
    with_questions,
    with_queue,
)
from hapax.grammar.options import from_options
from hapax.grammar.writing.words import counted, some
from hapax.kb.files.whole_files import atomic_path, atomic_text_file

if TYPE_CHECKING:
    from hapax.api.goal_answers import Answers
    from hapax.api.statements import Derivation
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase

with_entail = click.option(
    "--entail",
    type=Finite(0, 1),
    metavar="SCORE",
    help="Also use stored entailments, in chains whose scores have at least this product.",
)


@click.command()
@click.argument("goal")
@with_paths
@with_database
@with_assume
@with_entail
@click.option("--ask", is_flag=True, help="Ask a model for missing facts.")
@with_models
@with_questions
@with_budget
@with_queue
@with_limits
@with_probability
@with_at_least
@click.option("--sort", metavar="VARIABLE", help="Sort by a variable; -VARIABLE: from the last.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the answers, by the end of its name: .csv, .json or .parquet.",
)
@with_json
def query(goal: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], **options: Any) -> None:
    """Answer a goal over the knowledge base, or over the facts and rules of PATHS alone.

    In the place of a goal, a rule file answers those that it asks: `?- ancestor(ann, X).`

    \b
    hapax query 'ancestor(ann, X)' family.rules
    hapax query 'is_ingredient_in(butter, Dish)'
    hapax query 'is_not_able_to_eat(tom, Dish)' --assume 'is_allergic_to(tom, shellfish)'
    hapax query 'aggregate_all(count, is_a_cheese_from(_, "Italy"), N)' --json
    hapax query 'is_made_from_milk_of(feta, Animal)' --ask
    hapax query 'went_to(john, Place)' --entail 0.8
    hapax query 'is_ingredient_in(butter, Dish)' --probability --at-least 0.9
    hapax query 'trip(id: I, air_time: T) & T > 400' trips.rules --sort=-T --limit 10 -o long.csv
    """
    if options["as_csv"] and out.quiet:
        raise click.UsageError("--csv and --json contradict each other.")
    if options["output"] and options["output"].suffix not in _ANSWER_FILES:
        endings = ", ".join(filter(None, _ANSWER_FILES))
        raise click.UsageError(f"{options['output']}: answers are written to files that end in {endings}. Name one.")
    goals = [goal]
    with suppress(OSError):  # a goal may be longer than any path
        paths = (Path(goal), *paths) if Path(goal).is_file() else paths
    if paths[:1] == (Path(goal),):
        goals = list(sound_library(paths[:1], database).goals)
        if not goals:
            raise click.UsageError(f"{goal} asks no goal. Name one before it, or write it there: ?- ancestor(ann, X).")
        if len(goals) > 1 and options["output"]:
            raise click.UsageError("-o takes the answers of one goal. Name it in the place of the file.")
    if goals == [goal]:
        _answer(goal, paths, database, assume, options)
        return
    codes = []
    for asked in goals:
        note(f"?- {' '.join(asked.split())}")
        try:
            _answer(asked, paths, database, assume, options)
        except hapax.HapaxError as fault:  # the other goals have their answers
            codes.append(ended_by(fault))
    if codes:
        click.get_current_context().exit(max(codes))


def _answer(
    goal: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], options: dict[str, Any]
) -> None:
    """Print the answers of a goal; with --ask, end the command if facts are still missing."""
    library = sound_library(paths, database)
    # Options that contradict each other end the command here.
    limits, probability = from_options(hapax.QueryLimits, options), probability_options(options)
    most = limits.answers or (None if options["output"] else MOST_PRINTED)
    limits = replace(limits, answers=_MOST_SORTED if options["sort"] else most)
    if options["queue"] is not None and not options["ask"]:
        raise click.UsageError("--queue needs --ask: without it no model is asked.")
    models, settings, begins = None, None, not Path(database).exists()
    kb = opened() if options["ask"] else open_for_goal(database, paths, library)
    rules = _entailing(library, kb, options["entail"], goal)
    if options["ask"]:
        if begins:
            note(f"{database} is new; answers are stored in it.")
        models = load_models(rules, options, journal=open_journal(kb, options))
        settings = choose_profile(from_options(question_settings, options), kb, rules, models, options)
        # Only once the models answer: a start that fails leaves no file.
        keep_rules(kb, paths, "query --ask", library)
    asked = hapax.QueryOptions(limits, probability, settings)
    with leaving(Left.ANSWERS if models else Left.UNCHANGED), working("Asking" if models else "Looking for answers"):
        answers = hapax.query(goal, rules, kb, assume=assume, models=models, options=asked)
    _print_answers(answers, options, most)
    # Hints are for people.
    if not (models or answers.holds or out.quiet):
        for line in hapax.near_misses(goal, rules, kb, assume=assume):
            note(line)
    if answers.stopped:
        note(answers.stopped)
    # Facts are still missing, as where a budget was reached.
    if not answers.complete:
        sys.exit(BUDGET_REACHED)


@click.command()
@click.argument("question")
@with_paths
@with_model
@of_program
@with_budget
@with_database
@with_limits
@with_json
def ask(question: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Answer a question in words: a model states it as a goal, which is shown, and the rules and facts answer it.

    The model only translates. The answers, with the proof of the first, come from the knowledge base.

    \b
    hapax ask "What can Tom not eat if he is allergic to milk?" -m openai:gpt-4.1
    hapax ask "Who is an ancestor of Dan?" family.rules -m openai:org/model@http://localhost:8000/v1
    """
    library, limits = sound_library(paths, database), from_options(hapax.QueryLimits, options)
    kb, limits = opened(), replace(limits, answers=limits.answers or MOST_PRINTED)
    opening = opening_options(library, options, open_journal(kb, options))
    with working("Asking"):
        answered = hapax.ask(question, library, kb, options["model"], opening=opening, limits=limits)
    print_json(answered)
    if not out.quiet:
        _print_answered(answered)
    sys.exit(FAILED if answered.answers is None else DONE)


def _print_answered(answered: hapax.AnsweredQuestion) -> None:
    """Print goal and reading, then the answers with the proof of the first."""
    if answered.answers is None:
        fault = answered.fault or "This cannot be said with these predicates."
        lines = [f"{fault} Nearest are:", *(f"  {name}" for name in answered.nearest)]
    else:
        said = [("goal", answered.goal), *(("assume", atom) for atom in answered.assume), ("meaning", answered.reading)]
        for name, text in said:
            note(f"{name:<7}  {text}")
        if answered.count is None:
            print_answer_table(answered.answers)
        else:
            say(answered.count)
        lines = [] if answered.answers.rows or not answered.answers.columns else ["No answer."]
        if answered.answers.truncated and answered.count is None:
            lines.append("There are more answers; --limit says how many are shown.")
    for line in (*lines, *answered.notes):
        note(line)
    for proof in answered.proofs:
        say(f"\n{proof}")


@click.command()
@click.argument("text")
@with_paths
@with_database
@with_assume
@with_entail
@with_probability
@with_goal_seconds
@with_json
def why(text: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Explain why a statement (by text or id) or an atom holds: its proof, and the prompt and scores of each fact.

    Predicates are worded as in the knowledge base. PATHS are the rules that derive the atom.

    \b
    hapax why 'ancestor(ann, carol)' family.rules
    hapax why 'is_ingredient_in(butter, "chicken Kiev")'
    hapax why 'If PersonX is allergic to milk, then PersonX is not able to eat chicken Kiev.'
    hapax why 'is_not_able_to_eat(tom, "chicken Kiev")' --probability
    """
    library = sound_library(paths, database)
    kb = open_for_goal(database, paths, library)
    rules, probability = _entailing(library, kb, options["entail"], text), probability_options(options)
    assume, seconds = options["assume"], options["seconds"]
    with working("Looking for a proof"):
        explanation = hapax.why(text, rules, kb, assume=assume, probability=probability, seconds=seconds)
    print_json(explanation)
    say(explanation)


@click.command("why-not")
@click.argument("text")
@with_paths
@with_database
@with_assume
@with_entail
@with_goal_seconds
@with_json
def why_not(text: str, paths: tuple[Path, ...], database: str, **options: Any) -> None:
    """Explain why an atom or a statement does not hold: the gate that rejected it, or the premises that fail.

    \b
    hapax why-not 'is_ingredient_in(butter, hummus)'
    hapax why-not 'trip(id: 7, air_time: 63)'
    """
    library = sound_library(paths, database)
    kb = open_for_goal(database, paths, library)
    rules = _entailing(library, kb, options["entail"], text)
    with working("Looking for what fails"):
        explanation = hapax.why_not(text, rules, kb, assume=options["assume"], seconds=options["seconds"])
    print_json(explanation)
    say(explanation)


def _entailing(library: Library, kb: KnowledgeBase, at_least: float | None, goal: str) -> Library:
    """The library with the entailments on chains to the goal of at least this score; unchanged without a score."""
    return library if at_least is None else hapax.with_entailments(library, kb, at_least, goal)


MOST_PRINTED = 10_000
"""Answers that are printed unless `--limit` says otherwise; a file gets all."""

_MOST_SORTED = 10_000_000
"""Answers that are sorted at most; the limit of printed answers counts afterwards."""


def _print_answers(answers: Answers, options: Mapping[str, Any], most: int | None) -> None:
    if options["sort"]:
        answers.sort(options["sort"], most)
    result = answers.result
    for line in () if out.quiet else answers.notes:
        note(line)
    if options["output"] is not None:
        _write_answers(answers, options["output"])
    elif options["as_csv"]:
        answers.write_csv(sys.stdout)
    else:
        print_json(answers)
        print_answer_table(answers, options["at_least"])
    if not (result.rows or out.quiet) and result.columns:
        note("No answer. `hapax why-not` explains why an atom does not hold.")
    for line in result.failures:
        note(line)
    if result.truncated:
        first = counted(len(result.rows), "answer is", "answers are")
        note(f"Only the first {first} shown. Raise the limit with --limit.")


_ANSWER_FILES = (".csv", ".json", ".parquet", "")
"""Ends of the names of files for answers. Without one, as of /dev/stdout, they are CSV."""


def _write_answers(answers: Answers, output: Path) -> None:
    if output.suffix == ".parquet":
        with atomic_path(output) as path:
            answers.parquet(path)
    else:
        with atomic_text_file(str(output)) as stream:
            if output.suffix == ".json":
                stream.write(f"{json.dumps(answers.to_json(), ensure_ascii=False)}\n")
            else:
                answers.write_csv(stream)
    note(f"{counted(len(answers.rows), 'answer')} in {output}")


def print_answer_table(answers: Answers, at_least: float | None = None) -> None:
    """Print answers as a table, or whether a goal without variables holds. `at_least`: their least probability."""
    result = answers.result
    if answers.basis and not out.quiet:
        pairs = zip(result.rows, answers.probabilities, strict=True)
        rows: list[tuple[object, ...]] = [(*row, found) for row, found in pairs]
        if not rows and not result.columns:
            # A goal without variables that holds in no world, or is not probable enough.
            rows = [("0.0000" if at_least is None else f"below {at_least:g}",)]
        print_table((*result.columns, "probability"), rows)
        note(answers.basis)
    elif not result.columns:
        say("true" if result.holds else "false")
    elif result.rows:
        print_table(result.columns, (tuple(map(str, row)) for row in result.rows))


# --- statements of rules ----------------------------------------------------------------------------------------------


@click.command()
@with_paths
@with_database
@with_chosen
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for statements and proofs: .jsonl or .parquet.",
)
@click.option(
    "--seconds",
    # The default is that of `BULK_LIMITS` in engine/inference/derive.py.
    type=SECONDS,
    help="Time limit of the derivation. [default: 600 for each rule]",
)
@with_probability
@with_at_least
@with_json
@leaving(Left.NOTHING)
def derive(
    paths: tuple[Path, ...],
    database: str,
    chosen: tuple[str, ...],
    output: Path | None,
    seconds: float | None,
    **options: Any,
) -> None:
    """Apply rules to all stored facts and their own, and store the resulting statements with their proofs.

    No model is asked. Literals about a generic variable are assumed, and all others are proved. After small changes of
    facts, only what they affect is derived anew.

    \b
    hapax derive family.rules
    hapax derive --db hapax.db
    hapax derive my.rules --rule allergy -o statements.jsonl
    hapax derive --probability --at-least 0.9 -o statements.jsonl
    """
    library, probability = sound_library(paths, database), probability_options(options)
    if not chosen:
        print_idle(library)
    # Before the derivation, which can take long.
    if output is not None:
        from hapax.evaluation.dataset.columns import check_output

        check_output(output)
    kb = opened(existing=not (paths and library.facts))
    with kb.transaction(), working("Deriving"):
        # The rules of the stored statements, by which later commands prove them.
        keep_rules(kb, paths, "derive", library)
        derivation = hapax.derive(library, kb, only=chosen, probability=probability, seconds=seconds)
    with leaving(Left.STORED):
        _print_report(derivation)
        definitions = [rule.name for rule in library.rules if library.is_definition(rule)] if not chosen else []
        if definitions and not out.quiet:
            note(
                f"No statements are stored of rules whose conclusions other rules use: {some(definitions)}. "
                f"--rule {definitions[0]} derives them."
            )
        if output is not None:
            with atomic_path(output) as path:
                count = derivation.write(path)
            note(f"{counted(count, 'statement')} in {output}")


def _print_report(derivation: Derivation) -> None:
    report = derivation.report
    figures = asdict(report)
    # Without probabilities nothing is expected of any rule.
    for figure, value in zip(figures["rules"], derivation.expected, strict=False):
        figure["expected"] = value
    print_json(figures)
    if out.quiet:
        return
    if report.rules:
        # As wide in every run.
        rows = [(rule, count, f"{seconds:.2f}", *more) for rule, count, seconds, *more in derivation.cells()]
        print_table(derivation.columns, rows)
    if derivation.basis:
        note(derivation.basis)
    if report.atoms:
        print_table(("derived predicate", "atoms"), report.atoms.items())
    for failure in report.failures:
        note(failure)
    for rule in report.rules:
        if rule.left_out:
            note(f"{rule.rule} was left out: {rule.left_out}.")
        if rule.anew:
            note(f"{rule.rule} was derived anew, not from the changes alone: {rule.anew}.")
    note(f"{counted(report.facts, 'fact is', 'facts are')} new since the last derivation.")
