"""The command line: read options, call one function, print. Data goes to stdout, progress and logs to stderr.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 budget reached, 4 rules rejected, 130 interrupted.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from grammar.errors import Diagnostic, HapaxError, RulesRejected, Severity
from grammar.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.explain import Story
    from engine.kb_checks import KbFinding
    from engine.plan import Range, RunEstimate
    from engine.query import QueryResult
    from engine.report import RuleReport, SearchReport, Tally, Unanswerable
    from engine.session import QueryLimits
    from evaluation.ablation import AblationReport, Share
    from evaluation.likelihood import LikelihoodResult
    from evaluation.probing.run import ProbeResult
    from grammar.dependencies import SearchPlan
    from grammar.rules import Library, Rule
    from kb.store import KnowledgeBase
    from llm_oracle.backends.openai_batch import BatchQueue
    from llm_oracle.calls import Journal
    from llm_oracle.protocols import Models

SHIPPED_RULES = Path(__file__).parent / "rules"
DEFAULT_DATABASE = "hapax.db"

DONE, FAILED, BUDGET_REACHED, RULES_REJECTED, INTERRUPTED = 0, 1, 3, 4, 130

F = TypeVar("F", bound=Callable[..., Any])

out = Console(soft_wrap=True, highlight=False, width=None if sys.stdout.isatty() else 160)
err = Console(stderr=True, highlight=False)


class Finite(click.FloatRange):
    """A number in a range that is neither infinite nor `nan`, which compares with nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


PREDICATES_SHOWN = 10
"""How many predicates `import` counts one by one."""

NOTES_SHOWN = 3
"""How many notes of one kind at one place `check` prints; --all prints the others, too."""

SECONDS_BETWEEN_LINES = 10
"""Between two lines of progress, where there is no terminal to draw a bar on."""

MOST_SECONDS = 86_400
MOST_INFERENCES = 10**15
MOST_MEGABYTES = 1_000_000


class Commands(click.Group):
    """Turns every expected error into one line and an exit code; a traceback would be a defect."""

    def invoke(self, ctx: click.Context) -> Any:
        from llm_oracle.calls import BudgetReached

        try:
            return super().invoke(ctx)
        except RulesRejected as rejected:
            _print_diagnostics(rejected.diagnostics)
            ctx.exit(RULES_REJECTED)
        except BudgetReached as reached:
            err.print(escape(str(reached)))
            ctx.exit(BUDGET_REACHED)
        except HapaxError as fault:
            err.print(f"[red]error:[/] {escape(str(fault))}")
            ctx.exit(FAILED)
        except OSError as fault:
            if isinstance(fault, BrokenPipeError):
                raise  # click ends quietly when a reader such as `head` has gone
            err.print(f"[red]error:[/] {escape(str(fault))}. Nothing that was answered is lost.")
            ctx.exit(FAILED)
        except KeyboardInterrupt:
            err.print("Interrupted. Everything answered so far is kept; the same command goes on from here.")
            ctx.exit(INTERRUPTED)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "HAPAX"})
@click.version_option(package_name="hapax-kb", prog_name="hapax")
def main() -> None:
    """Hapax searches for what a language model rarely says, checks it, stores it and reasons over it.

    Every option can also be set by the environment: HAPAX_<COMMAND>_<OPTION>, and HAPAX_DB for --db.
    """


# Options that several commands share


def _together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


with_paths = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
with_rules = click.option(
    "--rules", "paths", multiple=True, type=click.Path(path_type=Path), help="Rule files or folders; default: shipped."
)
with_database = click.option(
    "--db",
    "database",
    default=DEFAULT_DATABASE,
    show_default=True,
    envvar="HAPAX_DB",
    help="The knowledge base, a file.",
)
with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_chosen = click.option("--rule", "chosen", multiple=True, help="Only these rules, by name.")
with_models = _together(
    click.option("-m", "--knowledge", default="embedded", show_default=True, help="Model that proposes values."),
    click.option("--critic", default=None, help="Model that judges; default: the knowledge model."),
    click.option("--likelihood", default=None, help="Model that ranks; default: the knowledge model."),
    click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta."),
    click.option("--device", default="auto", show_default=True, help="Where Hugging Face models run."),
    click.option(
        "--aliases",
        type=click.Path(path_type=Path),
        help="YAML file of models on servers, for openai:ALIAS; default: HAPAX_ALIASES.",
    ),
    click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn."),
)
with_budget = _together(
    click.option("--max-calls", type=click.IntRange(0), help="Stop before more requests than this."),
    click.option("--max-tokens", type=click.IntRange(0), help="Stop before more tokens than this."),
    click.option("--max-cost", type=Finite(0), help="Stop before spending more than this."),
)
with_assume = click.option("--assume", multiple=True, help="A ground atom held true for this call only.")
with_limits = _together(
    click.option(
        "--seconds",
        type=Finite(0, MOST_SECONDS, min_open=True),
        default=10.0,
        show_default=True,
        help="Time limit of a goal.",
    ),
    click.option(
        "--inferences",
        type=click.IntRange(1, MOST_INFERENCES),
        default=50_000_000,
        show_default=True,
        help="Inference limit of a goal.",
    ),
    click.option(
        "--memory",
        type=click.IntRange(64, MOST_MEGABYTES),
        default=1024,
        show_default=True,
        help="Memory limit of a goal, in MB.",
    ),
    click.option("--answers", type=click.IntRange(1), default=10_000, show_default=True, help="Most answers printed."),
)
with_search_settings = _together(
    click.option(
        "--distribution",
        type=click.Choice(["head", "long_tail", "both"]),
        default="both",
        show_default=True,
        help="Which end of the distribution to search.",
    ),
    click.option(
        "--beam",
        type=click.IntRange(1),
        default=200,
        show_default=True,
        help="Partial substitutions kept at each step.",
    ),
    click.option(
        "--keep-share",
        type=Finite(0, 1, min_open=True),
        default=0.75,
        show_default=True,
        help="Share that the likelihood gate keeps.",
    ),
    click.option(
        "--calls",
        "calls_per_question",
        type=click.IntRange(1),
        default=4,
        show_default=True,
        help="Calls per question at most.",
    ),
    click.option(
        "--values",
        "values_per_call",
        type=click.IntRange(1),
        default=50,
        show_default=True,
        help="Values asked for in a call.",
    ),
    click.option("--temperature", type=Finite(0), default=0.7, show_default=True, help="Sampling temperature."),
    click.option(
        "--plan",
        type=click.Choice(["cheapest", "premise-first", "conclusion-first", "link"]),
        help="Order in which variables are searched.  [default: cheapest; with --compat link]",
    ),
    click.option(
        "--compat", type=click.Choice(["paper", "released"]), help="Do as LINK's paper or its released code did."
    ),
    click.option("--no-critic", is_flag=True, help="Switch the critic gate off (ablation)."),
    click.option("--no-likelihood", is_flag=True, help="Draw at random instead of ranking (ablation)."),
)


# Rules


@main.command()
@with_paths
@click.option("--db", "database", default=None, envvar="HAPAX_DB", help="Check against this knowledge base, too.")
@click.option("--all", "every", is_flag=True, help="Print all notes of a kind; default: the first few. JSON has all.")
@with_json
def check(paths: tuple[Path, ...], database: str | None, every: bool, as_json: bool) -> None:
    """Check rules for faults, redundancy and contradictions. PATHS: rule files or folders; default: the shipped ones.

    \b
    hapax check my.rules
    hapax check rules --db hapax.db
    """
    from grammar.checks import check_library

    library = _library(paths)
    diagnostics = list(check_library(library))
    findings: tuple[KbFinding, ...] = ()
    if database is not None:
        from engine.kb_checks import check_kb
        from engine.session import PrologSession

        with _kb(database, read_only=True) as kb, PrologSession() as session:
            findings = check_kb(library, kb, session)
        diagnostics += (one.diagnostic for one in findings)
    _print_diagnostics(diagnostics, as_json, every)
    found = {severity: sum(one.severity == severity for one in diagnostics) for severity in Severity}
    if not as_json:
        _print_proofs(findings)
        err.print(", ".join((counted(len(library.rules), "rule"), *(counted(found[each], each) for each in Severity))))
    sys.exit(RULES_REJECTED if found[Severity.ERROR] else DONE)


@main.command()
@with_paths
@with_chosen
@click.option(
    "--format", "form", type=click.Choice(["prolog", "rules", "link-json"]), default="prolog", show_default=True
)
def compile(paths: tuple[Path, ...], chosen: tuple[str, ...], form: str) -> None:  # noqa: A001  # the verb users type
    """Print rules as a Prolog program, as rule text or as LINK's rules.json.

    \b
    hapax compile > program.pl && swipl program.pl
    hapax compile rules.json --format rules
    """
    from dataclasses import replace

    from engine.derive import relevant_library
    from grammar.link_json import to_link_json
    from grammar.printing import format_library
    from grammar.prolog_text import program_text

    library = _library(paths)
    if chosen:
        rules = _chosen(library, chosen)
        part = relevant_library(library, *rules)
        library = replace(part, rules=tuple(dict.fromkeys((*part.rules, *rules))))
    writers = {"prolog": program_text, "rules": format_library, "link-json": to_link_json}
    click.echo(writers[form](library).rstrip())


@main.command()
@with_paths
@with_chosen
@click.option("--graph", type=click.Choice(["text", "mermaid", "dot"]), help="Print the dependency graph in this form.")
@with_search_settings
@with_models
@with_database
@with_json
def plan(paths: tuple[Path, ...], chosen: tuple[str, ...], graph: str | None, **options: Any) -> None:
    """Show in which order variables would be searched and what a run would cost, before anything is asked.

    \b
    hapax plan --rule allergy
    hapax plan --rule allergy --graph mermaid
    hapax plan --db hapax.db --beam 50
    """
    from grammar.dependencies import graph_text, search_plans

    library = _library(paths)
    rules = _chosen(library, chosen)
    if graph:
        click.echo("\n".join(graph_text(rule, library, graph) for rule in rules))  # type: ignore[arg-type]  # click checked it
        return
    if chosen:
        for rule in rules:
            _print_plans(rule, search_plans(rule, library), options["as_json"])
    _print_estimate(_estimate(library, rules, options), options["as_json"])


# Search


@main.command()
@with_paths
@with_chosen
@with_search_settings
@with_models
@with_budget
@with_database
@with_json
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    help="Example statements per rule and distribution.",
)
@click.option("--no-progress", is_flag=True, help="No progress bar, nor lines of progress where it cannot be drawn.")
@click.option("--dry-run", is_flag=True, help="Only say what the run would cost.")
@click.option(
    "--queue",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what openai models would be asked to this file, as OpenAI Batch JSONL, and send nothing.",
)
@click.option(
    "--results",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Results of such a batch, taken in first; goes with --queue.",
)
def search(paths: tuple[Path, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Search head and long-tail knowledge for rules, store it, and derive statements from it.

    The same command goes on where it was interrupted and asks nothing twice.

    \b
    hapax search
    hapax search --rule allergy --distribution long_tail --beam 50
    hapax search my.rules -m hf:meta-llama/Llama-3.1-8B --critic hf:google/flan-t5-xxl --max-calls 5000
    hapax search -m openai:gpt-4.1 --likelihood frequency --queue next.jsonl --results answered.jsonl
    """
    from engine.search import search as run_search

    library = _library(paths)
    _refuse_faulty(library)
    rules = _chosen(library, chosen)
    if options["dry_run"]:
        _print_estimate(_estimate(library, rules, options), options["as_json"])
        return
    queue = _queue(options)
    models = _models(library, options, queue)
    settings = _settings(options)
    _warn_of_loose_facts(models, options)
    with _kb(options["database"]) as kb, _progress(not options["no_progress"]) as progress:
        journal = _journal(kb, models, options)
        if queue is not None:
            from llm_oracle.backends.openai_batch import queued

            models = queued(models, journal)
        report = run_search(library, rules, kb, models, settings, progress=progress, journal=journal)
    _print_search(report, library, options)
    if queue is not None:
        err.print(f"{queue.count} requests in {escape(str(queue.path))}; {queue.faulty} results were of no use")
    sys.exit(BUDGET_REACHED if report.status == "budget" else DONE)


@main.group()
def evaluate() -> None:
    """Run the papers' experiments.

    \b
    hapax evaluate ablation --rule allergy
    hapax evaluate likelihood --out figures
    hapax evaluate probe
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    """


@evaluate.command()
@with_paths
@with_chosen
@with_search_settings
@with_models
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for figure 6: PNG, SVG and CSV.")
@with_database
@with_json
def ablation(paths: tuple[Path, ...], chosen: tuple[str, ...], out: Path | None, **options: Any) -> None:
    """Search without critic, without likelihood gate, and without both: LINK's tables 8 and 9 and figure 6.

    Truth is judged against the embedded model's atlas, so predicates outside it have no say.

    \b
    hapax evaluate ablation
    hapax evaluate ablation --rule allergy --rule currency --out figures
    """
    from evaluation.ablation import Experiment, GroundTruth
    from evaluation.ablation import ablation as run_ablation
    from llm_oracle.embedded.atlas import load_atlas

    library = _library(paths)
    atlas, models, settings = load_atlas(), _models(library, options), _settings(options)
    experiment = Experiment(library, _chosen(library, chosen), models, settings)
    with _kb(options["database"]) as kb, _progress(True) as progress:
        report = run_ablation(experiment, kb, GroundTruth(atlas.truth, atlas.type_truth), progress)
    _print_ablation(report, options["as_json"])
    if out is not None:
        from engine.oracle import model_name
        from evaluation.figures import ablation_plot, write

        write(ablation_plot(report.reports, model_name(models.evaluator)), out)


@evaluate.command()
@with_rules
@with_chosen
@click.option(
    "--evaluator", "evaluators", multiple=True, help="Models that measure; default: all whose scores are stored."
)
@click.option(
    "--figure",
    "numbers",
    multiple=True,
    type=click.Choice([*map(str, range(3, 14)), "all"]),
    help="LINK's figures by number; default: all that can be drawn.",
)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder for PNG, SVG and CSV files.")
@click.option("--device", default="auto", show_default=True, help="Where Hugging Face models run.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn.")
@with_database
@with_json
def likelihood(
    paths: tuple[Path, ...], chosen: tuple[str, ...], numbers: tuple[str, ...], out: Path | None, **options: Any
) -> None:
    """Compare how likely head and long-tail statements are: LINK's delta and figures 3 to 12.

    Reads what is stored; an evaluator is asked only for what it has not scored yet. docs/evaluation.md tells what each
    figure shows and needs.

    \b
    hapax evaluate likelihood
    hapax evaluate likelihood --evaluator frequency --evaluator embedded --out figures
    hapax evaluate likelihood --figure 4 --rule allergy --out figures
    """
    from evaluation.likelihood import open_evaluators, run

    if numbers and out is None:
        raise click.UsageError("--figure needs --out, the folder to write to.")
    named = () if "all" in numbers else tuple(map(int, dict.fromkeys(numbers)))
    with err.status("Measuring"):
        evaluators = open_evaluators(options["evaluators"], _library(paths), options) if options["evaluators"] else []
        with _kb(options["database"], read_only=not evaluators) as kb:
            result = run(kb, evaluators, chosen, named or tuple(range(3, 14)), out)
    _print_likelihood(result, options["as_json"])
    sys.exit(FAILED if named and result.lacking else DONE)


@evaluate.command()
@with_database
@with_chosen
@click.option("-m", "--model", default="embedded", show_default=True, help="Model that is probed.")
@click.option(
    "--ask",
    type=click.Choice(["critic", "text", "cot"]),
    default="critic",
    show_default=True,
    help="P(yes), the reply's words, or a chain of thought with two examples and then its words.",
)
@click.option("--writer", help="Model that writes negations and questions where grammar cannot.")
@click.option("--sample", type=click.IntRange(0), default=200, show_default=True, help="Statements each end; 0: all.")
@click.option("--temperature", type=Finite(0), default=0.0, show_default=True, help="Sampling temperature.")
@click.option("--device", default="auto", show_default=True, help="Where Hugging Face models run.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn.")
@with_budget
@click.option("--examples", type=click.IntRange(0), default=2, show_default=True, help="Wrong answers shown each end.")
@click.option("-o", "--output", type=click.File("w", "utf-8", lazy=True), help="JSONL file for every answer.")
@with_json
def probe(database: str, chosen: tuple[str, ...], output: Any, **options: Any) -> None:
    """Ask a model 13 questions about each statement of the knowledge base: LINK's tables 4, 13 and 15.

    No rule file is needed. What was asked before is not asked again. docs/evaluation.md tells what the figures mean.

    \b
    hapax evaluate probe
    hapax evaluate probe -m hf:Qwen/Qwen2.5-7B-Instruct --ask cot --sample 100 -o answers.jsonl
    """
    from evaluation.probing import run

    with _kb(database) as kb:
        session = run.ProbeSession(kb, run.ProbeOptions.of(chosen, options))
        with err.status("Loading models"):
            models = session.open_models()
        with err.status("Asking") as status:
            result = session.probe(
                _journal(kb, models, options),
                lambda done, total: status.update(f"Asking: {done} of {counted(total, 'statement')}"),
            )
    if output is not None:
        output.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in result.answers_json())
    _print_probe(result, options["examples"], options["as_json"])
    sys.exit(BUDGET_REACHED if result.run.stopped else DONE)


@evaluate.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--rules", "paths", multiple=True, required=True, type=click.Path(path_type=Path), help="LINT's rules.")
@click.option("--flips", type=click.Path(path_type=Path), help="Labels that people turned; default: the folder's file.")
@click.option("--method", default="LINK", show_default=True, help="Whose labels in that file.")
@click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta.")
@click.option("--device", default="auto", show_default=True, help="Where Hugging Face models run.")
@with_budget
@with_database
@with_json
def lint(folder: Path, paths: tuple[Path, ...], flips: Path | None, **options: Any) -> None:
    """Import the statements of LINK's dataset LINT from its CSV files and count them: LINK's table 16, and delta.

    \b
    hapax evaluate lint probing_set --rules rules.json --db lint.db
    hapax evaluate probe --db lint.db
    """
    from evaluation import lint as lints
    from llm_oracle.calls import EVALUATOR
    from llm_oracle.protocols import Models
    from llm_oracle.registry import OpeningOptions, open_model

    reader = lints.LintReader(_library(paths), folder)
    opening = OpeningOptions(reader.library, device=options["device"])
    evaluator: Any = open_model(options["evaluator"], EVALUATOR, opening)
    flips = flips or (folder / lints.FLIPS_FILE if (folder / lints.FLIPS_FILE).exists() else None)
    turned = lints.read_flips(flips, options["method"]) if flips else {}
    with _kb(options["database"]) as kb:
        journal = _journal(kb, Models(*[evaluator] * 4), options)
        report = lints.import_lint(kb, reader, turned, evaluator, journal)
    if options["as_json"]:
        click.echo(json.dumps(lints.report_json(report)))
    else:
        _print_table(("domain", "rules", "head", "long tail", "delta"), lints.report_rows(report))
    err.print(
        f"{counted(report.repeated, 'row repeats', 'rows repeat')} an earlier one and "
        f"{counted(report.incomplete, 'lacks', 'lack')} a value: left out; "
        f"{counted(report.turned, 'label was', 'labels were')} turned by people"
    )


# Reasoning


@main.command()
@click.argument("goal")
@with_rules
@with_database
@with_assume
@click.option("--ask", is_flag=True, help="Ask a model for the facts that the goal lacks.")
@with_models
@with_budget
@with_limits
@with_json
def query(
    goal: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], ask: bool, **options: Any
) -> None:
    """Answer a Prolog goal over the knowledge base.

    \b
    hapax query 'is_ingredient_in(butter, Dish)'
    hapax query 'is_not_able_to_eat(tom, Dish)' --assume 'is_allergic_to(tom, shellfish)'
    hapax query 'aggregate_all(count, is_a_cheese_from(_, "Italy"), N)' --json
    hapax query 'is_made_from_milk_of(feta, Animal)' --ask
    """
    from engine.query import Theory, run_query

    library = _library(paths)
    limits = _limits(options)
    if not ask:
        with _kb(database, read_only=True) as kb:
            _print_answers(run_query(Theory(library, kb, assume), goal, limits), options["as_json"])
        return
    from engine.demand import DemandBudget, run_demand
    from engine.oracle import Oracle

    with _kb(database) as kb:
        models = _models(library, options)
        oracle = Oracle(kb, library, models, run_id="query", journal=_journal(kb, models, options))
        result = run_demand(Theory(library, kb, assume), goal, oracle, DemandBudget(limits=limits))
    _print_answers(result.result, options["as_json"])
    if result.stopped:
        err.print(escape(result.stopped))
    sys.exit(DONE if result.complete else BUDGET_REACHED)


@main.command()
@click.argument("text")
@with_rules
@with_database
@with_assume
@with_json
def why(text: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], as_json: bool) -> None:
    """Tell the whole story of a statement (its text or id) or of a fact, down to call, prompt, scores and thresholds.

    It is told in the words that the knowledge base stores; --rules is for what rules derive.

    \b
    hapax why 'is_ingredient_in(butter, "chicken Kiev")'
    hapax why 'If PersonX is allergic to milk, then PersonX is not able to eat chicken Kiev.'
    """
    from engine.explain import why as explain
    from engine.query import Theory

    with _kb(database, read_only=True) as kb:
        _print_story(explain(Theory(_library(paths), kb, assume), text), as_json)


@main.command("why-not")
@click.argument("atom")
@with_rules
@with_database
@with_assume
@with_json
def why_not(atom: str, paths: tuple[Path, ...], database: str, assume: tuple[str, ...], as_json: bool) -> None:
    """Say which gate stopped a value, or which premise of which rule failed.

    \b
    hapax why-not 'is_ingredient_in(butter, hummus)'
    """
    from engine.explain import why_not as explain
    from engine.query import Theory

    with _kb(database, read_only=True) as kb:
        _print_story(explain(Theory(_library(paths), kb, assume), atom), as_json)


# The knowledge base


@main.command()
@with_database
@with_json
def stats(database: str, as_json: bool) -> None:
    """Count what the knowledge base holds.

    \b
    hapax stats --db hapax.db
    """
    with _kb(database, read_only=True) as kb:
        counts, roles = kb.counts(), kb.call_counts()
    if as_json:
        click.echo(json.dumps({**counts, "calls_by_role": roles}))
        return
    _print_table(("what", "how many"), ((name, str(count)) for name, count in counts.items()))
    if roles:
        out.print(f"\nThe calls are those of all runs to all models: {_by_name(roles)}.")


@main.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@with_database
@click.option("--skip-faulty", is_flag=True, help="Leave faulty lines out instead of refusing the file.")
def import_(file: Path, database: str, skip_faulty: bool) -> None:
    """Import given facts from CSV or JSONL.

    \b
    hapax import facts.csv --db my.db
    """
    with _kb(database) as kb:
        report = kb.import_facts(file, skip_faulty=skip_faulty)
    for fault in report.faults:
        err.print(escape(str(fault)))
    for warning in report.warnings:
        err.print(f"[yellow]warning:[/] {escape(warning)}")
    for indicator, count in list(report.predicates.items())[:PREDICATES_SHOWN]:
        err.print(f"{count} of {escape(indicator)}")
    if len(report.predicates) > PREDICATES_SHOWN:
        err.print(f"and others of {counted(len(report.predicates) - PREDICATES_SHOWN, 'more predicate')}")
    left_out = counted(len(report.faults), "faulty line")
    err.print(f"{counted(report.read, 'fact')} read, {report.added} of them new; {left_out} left out")


@main.command()
@with_database
@click.option("--format", "form", type=click.Choice(["prolog", "csv", "jsonl"]), default="prolog", show_default=True)
@click.option("--predicate", help="Only this predicate's facts.")
@click.option(
    "-o", "--output", type=click.File("w", encoding="utf-8", lazy=True), default="-", help="File; default: stdout."
)
def export(database: str, form: str, predicate: str | None, output: Any) -> None:
    """Export facts as a Prolog program, CSV or JSONL.

    \b
    hapax export --format prolog -o facts.pl
    hapax export --format csv --predicate is_ingredient_in
    """
    with _kb(database, read_only=True) as kb:
        report = kb.export_facts(form, output, predicate)
    for left_out in report.left_out:
        err.print(escape(f"left out {left_out.fact.predicate}: {left_out.reason}"))
    err.print(f"{counted(report.written, 'fact')} exported")


@main.command()
@click.argument("other", type=click.Path(path_type=Path))
@with_database
def merge(other: Path, database: str) -> None:
    """Take everything that another knowledge base holds into this one.

    \b
    hapax merge colleague.db --db hapax.db
    """
    with _kb(database) as kb:
        report = kb.merge(other)
    for name, count in report.added.items():
        click.echo(f"{counted(count, name.removesuffix('s'), name)} added")
    for conflict in report.conflicts:
        err.print(f"[yellow]conflict:[/] {escape(str(conflict))}")


# The machine


@main.command("models")
@with_json
def list_models(as_json: bool) -> None:
    """List the model backends and what each can do.

    \b
    hapax models
    """
    from llm_oracle.registry import list_models as listed

    models = listed()
    if as_json:
        click.echo(json.dumps([asdict(one) for one in models]))
        return
    rows = ((one.name, ", ".join(one.roles), one.abilities, "yes" if one.available else one.remedy) for one in models)
    _print_table(("model", "roles", "what it does", "usable here"), rows)


@main.command()
@with_json
def doctor(as_json: bool) -> None:
    """Say what this machine lacks, and the command that installs it.

    \b
    hapax doctor
    """
    from engine.doctor import examine

    findings = examine()
    if as_json:
        click.echo(json.dumps([asdict(one) for one in findings]))
    else:
        rows = ((one.name, one.found or "missing", "" if one.ok else one.remedy) for one in findings)
        _print_table(("what", "found", "what to do"), rows)
    sys.exit(DONE if all(one.ok for one in findings) else FAILED)


# From options to objects


def _library(paths: Sequence[Path]) -> Library:
    from grammar.parser import load_library

    return load_library(list(paths) or [SHIPPED_RULES])


def _refuse_faulty(library: Library) -> None:
    """Rules with errors are not searched: half of their statements would be wrong."""
    from grammar.checks import check_library

    faults = [one for one in check_library(library) if one.severity == "error"]
    if faults:
        raise RulesRejected(faults)


def _chosen(library: Library, names: Sequence[str]) -> list[Rule]:
    """The rules named; without names all but those that only define a predicate for others."""
    if names:
        return [library.rule(name) for name in names]
    return [rule for rule in library.rules if not library.is_definition(rule)]


def _kb(database: str | None, read_only: bool = False) -> KnowledgeBase:
    from kb.store import KnowledgeBase

    return KnowledgeBase(database, read_only=read_only)


def _queue(options: dict[str, Any]) -> BatchQueue | None:
    if options["queue"] is None:
        if options["results"]:
            raise click.UsageError("--results goes with --queue, the file for what is still missing.")
        return None
    from llm_oracle.backends.openai_batch import BatchQueue

    return BatchQueue(options["queue"], options["results"])


def _models(library: Library, options: dict[str, Any], queue: BatchQueue | None = None) -> Models:
    from llm_oracle.registry import OpeningOptions, open_models

    same = ("seed", "device", "aliases")
    opening = OpeningOptions(library=library, queue=queue, **{name: options[name] for name in same})
    with err.status("Loading models"):
        return open_models(
            options["knowledge"], options["critic"], options["likelihood"], options["evaluator"], options=opening
        )


def _estimate(library: Library, rules: Sequence[Rule], options: dict[str, Any]) -> RunEstimate:
    from engine.plan import plan_run
    from llm_oracle.registry import price_table

    models = _models(library, options)
    known = Path(options["database"]).exists()
    with _kb(options["database"] if known else None, read_only=known) as kb:
        return plan_run(library, rules, kb, models, _settings(options), prices=price_table(models))


def _settings(options: dict[str, Any]) -> Any:
    from engine.report import SearchSettings
    from kb.records import Distribution

    wanted = options["distribution"]
    same = ("beam", "keep_share", "calls_per_question", "values_per_call", "temperature", "compat", "seed")
    return SearchSettings(
        distributions=tuple(Distribution) if wanted == "both" else (Distribution(wanted),),
        critic=not options["no_critic"],
        likelihood="random" if options["no_likelihood"] else "model",
        plan=options["plan"] or ("link" if options["compat"] else "cheapest"),
        **{name: options[name] for name in same},
    )


def _journal(kb: KnowledgeBase, models: Models, options: dict[str, Any]) -> Journal:
    from llm_oracle.calls import Budget, Journal
    from llm_oracle.registry import price_table

    budget = Budget(options["max_calls"], options["max_tokens"], options["max_cost"])
    return Journal(kb, budget, price_table(models))


def _limits(options: dict[str, Any]) -> QueryLimits:
    from engine.session import QueryLimits

    return QueryLimits(
        seconds=options["seconds"],
        inferences=options["inferences"],
        answers=options["answers"],
        memory_mb=options["memory"],
    )


# While it runs


class _Display:
    """Counts what a search tells, and shows the count after each word of it."""

    def __init__(self, tally: Tally, show: Callable[[Tally], None]) -> None:
        self._tally, self._show = tally, show

    def started(self, rules: int, calls: int) -> None:
        self._tally.started(rules, calls)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        self._tally.searching(rules, calls)
        self._show(self._tally)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        self._tally.advanced(calls, hits, accepted, rejected)
        self._show(self._tally)


@contextmanager
def _progress(shown: bool) -> Iterator[_Display | None]:
    """A bar on a terminal, else plain lines, both on stderr."""
    from engine.report import Tally

    if not shown:
        yield None
        return
    tally = Tally()
    with _bar() if err.is_terminal and not err.is_dumb_terminal else _lines(tally) as show:
        yield _Display(tally, show)


@contextmanager
def _bar() -> Iterator[Callable[[Tally], None]]:
    """A bar that takes what the counts leave of the line."""
    from rich.progress import BarColumn, TextColumn

    with Progress(BarColumn(None), TextColumn("{task.description}"), console=err, expand=True, transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda tally: bar.update(task, completed=tally.share, description=tally.counts + tally.left)


@contextmanager
def _lines(tally: Tally) -> Iterator[Callable[[Tally], None]]:
    """A line at the start, then one in ten seconds at most, and one at the end."""
    from engine.report import duration

    began = tally.clock()
    due = began

    def show(tally: Tally) -> None:
        nonlocal due
        if tally.clock() >= due:
            due = tally.clock() + SECONDS_BETWEEN_LINES
            err.print(f"{tally.rules}: {tally.counts}{tally.left}", soft_wrap=True)

    yield show
    err.print(f"searched in {duration(tally.clock() - began)}: {tally.counts}", soft_wrap=True)


# From results to the screen


def _print_diagnostics(diagnostics: Iterable[Diagnostic], as_json: bool = False, every: bool = True) -> None:
    if as_json:
        click.echo(json.dumps([{**asdict(one), "place": str(one.place)} for one in diagnostics], default=str))
        return
    for (severity, code, place), group in groupby(diagnostics, lambda one: (one.severity, one.code, one.place)):
        alike = list(group)
        shown = len(alike) if every or severity is not Severity.NOTE else NOTES_SHOWN
        for one in alike[:shown]:
            out.print(escape(str(one)))
        if more := len(alike[shown:]):
            out.print(escape(f"{place}: {counted(more, f'more note {code}', f'more notes {code}')}; --all prints all."))


def _print_proofs(findings: Iterable[KbFinding]) -> None:
    from engine.proof import proof_text

    for finding in findings:
        for number, proof in enumerate(finding.proofs, 1):
            out.print(escape(f"\n{finding.diagnostic.code}, proof {number}:\n{proof_text(proof)}"))


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(escape, row))
    out.print(table)


def _print_plans(rule: Rule, plans: Sequence[SearchPlan], as_json: bool) -> None:
    if as_json:
        shown = [{"order": one.order, "steps": list(map(str, one.steps)), **asdict(one.cost)} for one in plans]
        click.echo(json.dumps({"rule": rule.name, "plans": shown}, ensure_ascii=False))
        return
    costs = ((str(one.cost.questions), str(one.cost.calls), str(one.cost.checks)) for one in plans)
    rows = (
        (" ".join(one.order), *cost, "; ".join(map(str, one.steps))) for one, cost in zip(plans, costs, strict=True)
    )
    _print_table(("order", "questions", "calls", "checks", "steps"), rows, title=f"{rule.name}: {rule.sentence}")


def _print_estimate(estimate: RunEstimate, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(asdict(estimate), ensure_ascii=False))
        return
    rules = [one for one in estimate.rules if one.skipped is None]
    rows = (
        (
            one.rule,
            one.generic,
            " ".join(one.order),
            *(_total(getattr(step, what) for step in one.steps) for what in ("questions", "calls", "claims")),
        )
        for one in rules
    )
    _print_table(("rule", "generic", "order", "questions", "calls", "claims judged"), rows)
    _print_skipped({one.rule: one.skipped for one in estimate.rules if one.skipped is not None})
    out.print()
    costs = (
        (
            role,
            one.model,
            _range(one.calls),
            _range(one.tokens),
            "price unknown" if one.cost is None else f"{one.cost[0]:.2f} to {one.cost[1]:.2f}",
        )
        for role, one in estimate.roles.items()
    )
    _print_table(("role", "model", "calls", "tokens", "money"), costs, title="The whole run, as expected and at most")


def _range(several: Range) -> str:
    return f"{several.expected}, at most {several.most}"


def _total(ranges: Iterable[Range]) -> str:
    listed = list(ranges)
    return f"{sum(one.expected for one in listed)}, at most {sum(one.most for one in listed)}"


def _print_ablation(report: AblationReport, as_json: bool) -> None:
    if as_json:
        cells = [asdict(one) for one in report.cells]
        likelihoods = report.log_likelihoods
        told = {"cells": cells, "deltas": report.deltas, "log_likelihoods": likelihoods}
        click.echo(json.dumps(told, ensure_ascii=False))
        return
    rows = (
        (
            one.distribution.value,
            one.variant,
            str(one.statements),
            *map(_percent, (one.data_type, one.factuality, one.overall, one.facts)),
        )
        for one in report.cells
    )
    columns = ("distribution", "variant", "statements", "data type", "factuality", "overall", "true facts")
    _print_table(columns, rows, title="LINK, tables 8 and 9, on our rules and models")
    out.print()
    deltas = ((name, _number(delta)) for name, delta in report.deltas.items())
    _print_table(("variant", "mean delta"), deltas, title="LINK, figure 6, as one figure")


def _print_likelihood(result: LikelihoodResult, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        for number, one in enumerate(result.tables()):
            out.print("\n" * bool(number), end="")
            _print_table(one.columns, one.rows, title=one.title)
    for note in result.notes():
        err.print(escape(note))


def _print_probe(result: ProbeResult, examples: int, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_json(examples), ensure_ascii=False))
    else:
        for page in result.pages():
            _print_table(page.columns, page.rows, title=page.title)
            out.print()
        for line in result.example_lines(examples):
            out.print(escape(line))
    for line in result.remarks():
        err.print(escape(line))


def _percent(share: Share) -> str:
    return "n/a" if share.value is None else f"{100 * share.value:.2f} of {share.known}"


def _print_story(story: Story, as_json: bool) -> None:
    from engine.explain import story_text

    click.echo(json.dumps(story.to_json(), ensure_ascii=False, indent=2) if as_json else story_text(story))


def _print_answers(result: QueryResult, as_json: bool) -> None:
    if as_json:
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        click.echo(json.dumps({"answers": rows, "truncated": result.truncated}, ensure_ascii=False, default=_plain))
    elif not result.columns:
        click.echo("true" if result.holds else "false")
    elif result.rows:
        _print_table(result.columns, (tuple(map(str, row)) for row in result.rows))
    if not result.rows and result.columns and not as_json:
        err.print("No answer.")
    if result.truncated:
        first = counted(len(result.rows), "answer is", "answers are")
        err.print(f"Only the first {first} shown; --answers raises the limit.")


def _plain(value: object) -> object:
    """A Prolog term or an exact number as JSON; a list as a list, any other term as its text."""
    if type(value).__name__ == "PrologTerm" and value.name == "[]":  # type: ignore[attr-defined]
        return list(value.arguments)  # type: ignore[attr-defined]
    return float(value) if type(value).__name__ == "Decimal" else str(value)  # type: ignore[arg-type]  # it is a Decimal


def _print_search(report: SearchReport, library: Library, options: dict[str, Any]) -> None:
    if options["as_json"]:
        click.echo(json.dumps({"run": report.run_id, "status": report.status, **report.summary()}, ensure_ascii=False))
        return
    domains = list(dict.fromkeys(rule.domain for rule in report.searched))
    for domain in domains:
        rules = [rule for rule in report.searched if rule.domain == domain]
        if domains != [None]:
            out.print(f"\n[bold]{escape(domain or 'rules without a domain')}[/]")
        for rule in rules:
            _print_examples(rule, options["examples"])
        out.print()
        columns = ("rule", "head", "long tail", "in both", "critic", "likelihood", "delta", "calls", "hits")
        _print_table(columns, map(_line, rules))
    _print_skipped({one.rule: one.skipped for one in report.rules if one.skipped is not None})
    _print_empty(report, library)
    _print_totals(report, options)
    if report.budget:
        err.print(escape(report.budget))


def _warn_of_loose_facts(models: Models, options: dict[str, Any]) -> None:
    """Settings under which much that is false becomes a fact, and stays one for every later query."""
    reasons = []
    if options["no_critic"]:
        reasons.append("--no-critic takes every value for true.")
    if options["compat"] == "released":
        reasons.append("LINK's released threshold starts at the best of the first values, however low that is.")
    if options["compat"] and models.knowledge.identity.knows is not None:
        reasons.append(
            f"{models.knowledge.identity.name} was never taught LINK's prompts and answers many of them wrongly."
        )
    if reasons:
        told = f"{' '.join(reasons)} It all stays in {options['database']}; --db keeps such a run apart."
        err.print(f"[yellow]warning[/] {escape(told)}", soft_wrap=True)


def _print_skipped(skipped: Mapping[str, Unanswerable]) -> None:
    """What the models do not know, rule by rule, and once what helps."""
    alike: dict[tuple[str, str], list[str]] = {}
    for rule, one in skipped.items():
        alike.setdefault((one.model, one.remedy), []).append(f"  {rule}: {', '.join(one.unknown)}")
    for (model, remedy), lines in alike.items():
        rules = counted(len(lines), "rule that asks", "rules that ask")
        told = escape(f"{rules} for what {model} does not know. {remedy}")
        err.print(f"[yellow]skipped[/] {told}", soft_wrap=True)
        err.print(escape("\n".join(lines)), soft_wrap=True)


def _print_empty(report: SearchReport, library: Library) -> None:
    """Rules that found nothing, and what may have kept them from it: a model is asked in the templates' words."""
    for one in report.searched:
        if any(one.statements.values()) or one.cut:
            continue
        signatures = {literal.atom.indicator for literal in library.rule(one.rule).literals}
        wordless = sorted(name for name in signatures if library.signature(name).templates is None)
        told = f"{one.rule} has no statement: no values for all its variables passed the gates."
        if wordless:
            told += (
                f" {', '.join(wordless)} {'has' if len(wordless) == 1 else 'have'} no template, so that the model was "
                "asked in words made of the names: declare them, or name the files that do beside yours."
            )
        err.print(f"[yellow]empty[/] {escape(told)}", soft_wrap=True)


def _print_totals(report: SearchReport, options: dict[str, Any]) -> None:
    counts = report.summary()["statements"]
    both = f", {counts['in_both']} of them in both" if options["distribution"] == "both" else ""
    out.print(
        f"\n{counts['head']} head and {counted(counts['long_tail'], 'long-tail statement')} "
        f"in {escape(options['database'])}{both}; mean delta {_number(report.mean_delta)}"
    )
    if counts["in_both"]:
        out.print(
            f"Statements are in both where a step has few values: each end keeps {100 * options['keep_share']:g}% of "
            f"them (--keep-share; LINK's paper: 75%), {options['beam']} at most (--beam)."
        )
    sent = {role: one.calls for role, one in report.statistics.items()}
    out.print(
        f"{counted(sum(sent.values()), 'call')} sent in this run{f': {_by_name(sent)}' if any(sent.values()) else ''}. "
        "The table counts those to the knowledge model, `hapax stats` those of all runs."
    )


def _by_name(counts: Mapping[str, int]) -> str:
    """`knowledge 204, critic 310`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _print_examples(rule: RuleReport, count: int) -> None:
    from kb.records import Distribution

    for distribution in Distribution:
        for text in rule.examples(distribution, count):
            out.print(f"[dim]{distribution.value:>9}[/]  {escape(text)}")


def _line(rule: RuleReport) -> tuple[str, ...]:
    from kb.records import Distribution

    shares = (rule.gates[gate].share if gate in rule.gates else None for gate in ("critic", "likelihood"))
    return (
        rule.rule + (" (cut)" if rule.cut else ""),
        str(rule.count(Distribution.HEAD)),
        str(rule.count(Distribution.LONG_TAIL)),
        str(rule.in_both),
        *("-" if share is None else f"{share:.0%}" for share in shares),
        _number(rule.delta),
        str(rule.calls),
        str(rule.hits),
    )


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
