"""Options that several commands share, and the objects they stand for."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.markup import escape

from commands.console import BUDGET_REACHED, DONE, err
from grammar.errors import HapaxError, RulesRejected
from grammar.words import counted

if TYPE_CHECKING:
    from engine.session import QueryLimits
    from grammar.rules import Library, Rule
    from kb.store import KnowledgeBase
    from llm_oracle.calls import Foreseeing, Journal, Price
    from llm_oracle.protocols import Models
    from llm_oracle.registry import OpeningOptions

SHIPPED_RULES = Path(__file__).parent.parent / "rules"


DEFAULT_DATABASE = "hapax.db"


F = TypeVar("F", bound=Callable[..., Any])


MOST_SECONDS = 86_400


MOST_INFERENCES = 10**15


MOST_MEGABYTES = 1_000_000


class Finite(click.FloatRange):
    """A number in a range that is neither infinite nor `nan`, which compares with nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or a usage error."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order given."""

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
with_runs = click.option(
    "--run", "runs", multiple=True, help="Only these runs, by how their ids begin; default: whole searches and imports."
)


class PriceOf(click.ParamType[tuple[str, "Price"]]):
    """`MODEL=IN,OUT`: a model string and its money per million tokens of prompts and of answers."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Price]:
        """The model and its price, or a usage error."""
        from llm_oracle.calls import Price

        model, equals, money = str(value).rpartition("=")
        listed = money.split(",")
        if not equals or not model or len(listed) != 2:
            self.fail(f"{value!r} should read MODEL=IN,OUT, such as openai:org/model=0.5,1.5", param, ctx)
        one = Finite(0)
        return model, Price(*(one.convert(each, param, ctx) for each in listed))


NAMING = ("knowledge", "critic", "likelihood", "evaluator", "evaluators", "model", "base", "mapper", "rerank", "writer")
"""The parameters of commands that name models."""


def warn_of_prices(prices: Mapping[str, Price], asked: Collection[str]) -> None:
    """Prices of models that are not asked, or that run in this process and cost nothing, change nothing: say so."""
    idle = [one for one in prices if one not in asked or not one.startswith("openai:")]
    if idle:
        told = f"--price of {', '.join(idle)} has no effect. Asked: {', '.join(sorted(asked)) or 'no model'}."
        remedy = "It takes models openai:..., named as where they are asked; all others cost nothing."
        err.print(f"[yellow]warning[/] {escape(told)} {remedy}", soft_wrap=True)


def _named(options: Mapping[str, Any]) -> set[str]:
    """The models that the options of a command name."""
    given = [options[one] for one in NAMING if options.get(one)]
    return {name for names in given for name in (names if isinstance(names, tuple) else (names,))}


def _priced(command: F) -> F:
    """The command behind a warning of idle prices, where its options name its models."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        if any(one in options for one in NAMING):
            warn_of_prices(dict(options["prices"]), _named(options))
        return command(*arguments, **options)

    return run  # type: ignore[return-value]  # click calls both by name


with_opening = together(
    click.option("--device", default="auto", show_default=True, help="Where Hugging Face models run."),
    click.option(
        "--dtype",
        type=click.Choice(["auto", "float32", "bfloat16"]),
        default="auto",
        show_default=True,
        help="Numbers Hugging Face models compute with; auto: bfloat16 on a GPU that has it.",
    ),
    click.option(
        "--aliases",
        type=click.Path(path_type=Path),
        help="YAML file of models on servers, for openai:ALIAS; default: HAPAX_ALIASES.",
    ),
    click.option(
        "--price",
        "prices",
        type=PriceOf(),
        multiple=True,
        metavar="MODEL=IN,OUT",
        help="What a million tokens of prompts and of answers cost; comes before what an alias says.",
    ),
    click.option("--probe-again", is_flag=True, help="Find out anew what servers can do, and which version they run."),
    click.option("--seed", default=0, show_default=True, help="Seed of everything that is drawn."),
    _priced,
)


with_models = together(
    click.option("-m", "--knowledge", default="embedded", show_default=True, help="Model that proposes values."),
    click.option("--critic", default=None, help="Model that judges; default: the knowledge model."),
    click.option("--likelihood", default=None, help="Model that ranks; default: the knowledge model."),
    click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta."),
    with_opening,
)


with_budget = together(
    click.option("--max-calls", type=click.IntRange(0), help="Stop before more requests than this."),
    click.option("--max-tokens", type=click.IntRange(0), help="Stop before more tokens than this."),
    click.option("--max-cost", type=Finite(0), help="Stop before spending more than this."),
)


class Queueing:
    """The queue of --queue and --results. It takes the place of an earlier one when the command has come to its end.

    Behind the command it says what stands where; what is missing makes the exit code that of a budget. A command that
    fails leaves the earlier queue. Raises HapaxError where the file is another's or cannot be written, or a file of
    results holds none.
    """

    def __init__(self, path: Path, results: Sequence[Path]) -> None:
        from llm_oracle.backends.openai_batch import BatchQueue

        self.queue = BatchQueue(path, results)

    def __enter__(self) -> Queueing:
        return self

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> None:
        from llm_oracle.calls import BudgetReached

        is_done = fault is None or (isinstance(fault, SystemExit) and fault.code in (None, DONE))
        is_stopped = isinstance(fault, BudgetReached) or (
            isinstance(fault, SystemExit) and fault.code == BUDGET_REACHED
        )
        try:
            if is_done or is_stopped:
                self.queue.land()
        finally:
            self.queue.discard()
        if not (is_done or is_stopped):
            return
        for line in self.queue.told():
            err.print(escape(line), soft_wrap=True)
        if is_done and self.queue.count:
            sys.exit(BUDGET_REACHED)


def warn_of_no_queue(asked: Collection[str]) -> None:
    """A queue for models that run in this process stays empty: say so."""
    if asked and not any(one.startswith("openai:") for one in asked):
        told = f"--queue has no effect and stays empty. Asked: {', '.join(sorted(asked))}."
        err.print(f"[yellow]warning[/] {escape(told)} It takes the requests of models openai:...", soft_wrap=True)


def _queueing(command: F) -> F:
    """The command with the queue of its options as `queue`; None without one."""

    @wraps(command)
    def run(*arguments: Any, queue: Path | None, results: Sequence[Path], **options: Any) -> Any:
        if queue is None and results:
            raise click.UsageError("--results goes with --queue, the file for what is still missing.")
        if queue is None or options.get("dry_run"):
            return command(*arguments, queue=None, **options)
        with Queueing(queue, results) as one:
            warn_of_no_queue(_named(options))
            return command(*arguments, queue=one, **options)

    return run  # type: ignore[return-value]  # click calls both by name


with_queue = together(
    click.option(
        "--queue",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write what openai models would be asked to this file, as OpenAI Batch JSONL, and send nothing but "
        "probes; state `logprobs` in an alias to send none.",
    ),
    click.option(
        "--results",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        help="Results of such a batch, taken in first; goes with --queue.",
    ),
    _queueing,
)


with_assume = click.option("--assume", multiple=True, help="A ground atom held true for this call only.")


with_limits = together(
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


with_search_settings = together(
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
)


with_gate_switches = together(
    click.option("--no-critic", is_flag=True, help="Switch the critic gate off (ablation)."),
    click.option("--no-likelihood", is_flag=True, help="Draw at random instead of ranking (ablation)."),
)


def read_library(paths: Sequence[Path]) -> Library:
    """The rules of these files and folders; without any the shipped ones."""
    from grammar.parser import load_library

    return load_library(list(paths) or [SHIPPED_RULES])


def refuse_faulty(library: Library) -> None:
    """Rules with errors are not searched: half of their statements would be wrong."""
    from grammar.checks import check_library

    faults = [one for one in check_library(library) if one.severity == "error"]
    if faults:
        raise RulesRejected(faults)


def chosen_rules(library: Library, names: Sequence[str]) -> list[Rule]:
    """The rules named; without names all but those that only define a predicate for others."""
    if names:
        return [library.rule(name) for name in names]
    return [rule for rule in library.rules if not library.is_definition(rule)]


def open_kb(database: str | None, read_only: bool = False, existing: bool = False, begun_by: str = "") -> KnowledgeBase:
    """The knowledge base in this file; None: one in memory. `existing`: to write into, but not to begin.

    `begun_by`: the command to run first where there is none and a search would be of no use.
    """
    from kb.store import KnowledgeBase

    if begun_by and not Path(database or "").exists():
        raise HapaxError(f"{database}: there is no such knowledge base. Run `{begun_by}` first, or name one by --db.")
    if existing:
        KnowledgeBase(database, read_only=True).close()  # raises where there is none
    return KnowledgeBase(database, read_only=read_only)


def opening_options(
    library: Library | None, options: Mapping[str, Any], journal: Journal | None = None
) -> OpeningOptions:
    """What `with_opening` says about the models to open, and `with_queue` about where their requests go."""
    from llm_oracle.registry import OpeningOptions

    queueing: Queueing | None = options.get("queue")

    same = {name: options[name] for name in ("seed", "device", "dtype", "aliases", "probe_again")}
    queue = None if queueing is None else queueing.queue
    return OpeningOptions(library=library, journal=journal, prices=dict(options["prices"]), queue=queue, **same)


def load_models(library: Library, options: dict[str, Any], journal: Journal | None = None) -> Models:
    """The models of the four roles, as the options name them; with a journal, probes of servers are kept in it."""
    from llm_oracle.registry import open_models

    opening = opening_options(library, options, journal)
    with err.status("Loading models"):
        return open_models(
            options["knowledge"], options["critic"], options["likelihood"], options["evaluator"], options=opening
        )


def search_settings(options: dict[str, Any]) -> Any:
    """The options of a search as its settings."""
    from engine.report import SearchSettings
    from kb.records import Distribution

    wanted = options["distribution"]
    same = ("beam", "keep_share", "calls_per_question", "values_per_call", "temperature", "compat", "seed")
    return SearchSettings(
        distributions=tuple(Distribution) if wanted == "both" else (Distribution(wanted),),
        critic=not options.get("no_critic"),
        likelihood="random" if options.get("no_likelihood") else "model",
        plan=options["plan"] or ("link" if options["compat"] else "cheapest"),
        **{name: options[name] for name in same},
    )


def open_journal(kb: KnowledgeBase, options: Mapping[str, Any]) -> Journal:
    """The journal of a knowledge base under the options' budget; models opened with it tell it their prices."""
    from llm_oracle.calls import Budget, Journal

    return Journal(kb, Budget(*(options.get(name) for name in ("max_calls", "max_tokens", "max_cost"))))


with_dry_run = click.option("--dry-run", is_flag=True, help="Only say what would be asked.")


def print_foreseen(journal: Foreseeing, as_json: bool) -> None:
    """What a dry run has put off."""
    requests, answered = len(journal.missing), journal.total.hits
    if as_json:
        click.echo(json.dumps({"requests": requests, "answered": answered, "most_tokens": journal.tokens}))
        return
    click.echo(
        f"{counted(requests, 'request')} would be sent, of {counted(journal.tokens, 'token')} at most; "
        f"{counted(answered, 'answer')} from the journal. What needs these answers first is not counted."
    )


@contextmanager
def dry_run(database: str) -> Iterator[tuple[KnowledgeBase, Foreseeing]]:
    """The knowledge base, if it is there, for reading, and a journal that sends nothing."""
    from llm_oracle.calls import Foreseeing

    known = Path(database).exists()
    with open_kb(database if known else None, read_only=known) as kb:
        yield kb, Foreseeing(kb)


def query_limits(options: dict[str, Any]) -> QueryLimits:
    """The options of a goal as its limits."""
    from engine.session import QueryLimits

    return QueryLimits(
        seconds=options["seconds"],
        inferences=options["inferences"],
        answers=options["answers"],
        memory_mb=options["memory"],
    )
