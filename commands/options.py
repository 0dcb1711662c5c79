"""Options that several commands share, and the objects that they make."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from rich.markup import escape

from hapax.api import operations
from hapax.commands.console import BUDGET_REACHED, DONE, Left, counts_text, err, leaving
from hapax.commands.declared import Finite, declared
from hapax.engine.inference.limits import MOST_SECONDS, QueryLimits
from hapax.engine.probability.options import ProbabilityOptions
from hapax.engine.search.thresholds import FactThreshold, TypeThreshold
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import made
from hapax.grammar.words import counted
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, Price
from hapax.llm_oracle.profiles import ProfileName

if TYPE_CHECKING:
    from hapax.api.operations import BudgetedModels
    from hapax.engine.search.profile_choice import ProfileChoice
    from hapax.engine.search.settings import SearchSettings
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.journal import Journal, PlanningJournal

DEFAULT_DATABASE = "hapax.db"

SECONDS = Finite(0, MOST_SECONDS, min_open=True)
"""Type of a time limit."""

F = TypeVar("F", bound=Callable[..., Any])


def together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Join options into one decorator that adds them in this order."""

    def decorate(command: F) -> F:
        # click lists options in the reverse order in which they are applied.
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


_RULES_OPTION = "hapax.commands.rules"


def _note_rules(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> None:
    # click shares `meta` among the contexts of one call of the program.
    context.meta[_RULES_OPTION] = paths


def _with_noted_rules(context: click.Context, _: click.Parameter, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    noted = context.meta.get(_RULES_OPTION, ())
    # Files on the command line come in place of those that a file or the environment names, as with every option.
    return (
        paths
        if paths and context.get_parameter_source("rules") is not ParameterSource.COMMANDLINE
        else (*paths, *noted)
    )


# Commands whose only files are rules take these as arguments, and by the option of all other commands.
with_paths = together(
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path), callback=_with_noted_rules),
    click.option(
        "--rules",
        multiple=True,
        type=click.Path(path_type=Path),
        expose_value=False,
        # Eager: noted before the callback of PATHS runs, wherever the option stands.
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
    help="Rule files or folders; `shipped` names the shipped ones.  [default: those that the knowledge base keeps, "
    "otherwise shipped]",
)


def _unlinked(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Refuse a link in place of the file that nobody named: it may lead out of a stranger's folder."""
    source = context.get_parameter_source(parameter.name or "")
    if value is not None and source is click.core.ParameterSource.DEFAULT and Path(value).is_symlink():
        raise click.BadParameter(
            f"{value} is a symbolic link to {Path(value).readlink()}, and you did not name it. Name the file with --db."
        )
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

with_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

with_chosen = click.option("--rule", "chosen", multiple=True, help="Only these rules, by name.")
with_runs = click.option(
    "--run",
    "runs",
    multiple=True,
    help="Only these runs, by the beginnings of their ids; default: complete searches and imports.",
)


# --- models: prices, opening, budget and queue ------------------------------------------------------------------------


class PriceOf(click.ParamType[tuple[str, Price]]):
    """`MODEL=IN,OUT`: a model string and its prices per million tokens of prompts and of answers."""

    name = "price"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Price]:
        """The model and its price, or a usage error."""

        # At the last `=`, since the name of a model may contain one.
        model, equals, money = str(value).rpartition("=")
        listed = money.split(",")
        if not equals or not model or len(listed) != 2:
            self.fail(f"{value!r} should read MODEL=IN,OUT, such as openai:org/model=0.5,1.5", param, ctx)
        amount = Finite(0)
        prompts, answers = (amount.convert(part, param, ctx) for part in listed)
        return model, Price(prompts, answers)


NAMING = (
    "knowledge",
    "critic",
    "likelihood",
    "evaluator",
    "evaluators",
    "model",
    "models",
    "base",
    "mapper",
    "rerank",
    "writer",
)
"""Parameters of commands that name models."""


def warn_of_prices(prices: Mapping[str, Price], asked: Collection[str]) -> None:
    """Warn of prices without effect: of models that are not asked, or that run in this process and cost nothing."""
    idle = [name for name in prices if name not in asked or not name.startswith("openai:")]
    if idle:
        message = f"--price of {', '.join(idle)} has no effect. Asked: {', '.join(sorted(asked)) or 'no model'}."
        remedy = "Name a model openai:... as in the option that asks it; all other models cost nothing."
        err.print(f"[yellow]warning[/] {escape(message)} {remedy}", soft_wrap=True)


def _named(options: Mapping[str, Any]) -> set[str]:
    """The models that a command's options name."""
    found: set[str] = set()
    for parameter in NAMING:
        names = options.get(parameter) or ()
        # An option that may be repeated gives a tuple.
        found.update(names if isinstance(names, tuple) else (names,))
    return found


def _priced(command: F) -> F:
    """The command with a warning of prices without effect, if its options name models."""

    # `wraps` also keeps the options that click has noted on the command so far.
    @wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        if any(parameter in options for parameter in NAMING):
            warn_of_prices(dict(options["prices"]), _named(options))
        return command(*arguments, **options)

    return run  # type: ignore[return-value]  # click calls both by name


with_opening = together(
    declared(OpeningOptions, "device", "dtype", "aliases"),
    click.option(
        "--price",
        "prices",
        type=PriceOf(),
        multiple=True,
        metavar="MODEL=IN,OUT",
        help="Price of a million tokens of prompts and of answers; overrides the alias.",
    ),
    declared(OpeningOptions, "proxy", "offline", "probe_again", "retry_unusable", "seed"),
    _priced,
)

with_models = together(
    click.option("-m", "--knowledge", default="embedded", show_default=True, help="Model that proposes values."),
    click.option(
        "--critic",
        default=None,
        help="Model that judges. Of several separated by commas the first that covers a claim decides; several joined "
        "by + are combined, and paraphrased:MODEL is asked in several wordings. Default: the knowledge model.",
    ),
    click.option("--likelihood", default=None, help="Model that ranks; default: the knowledge model."),
    click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta."),
    with_opening,
)

with_budget = together(
    declared(Budget, "max_calls", "max_tokens", "max_cost"),
    # A command with a budget asks models, and their answers are stored one by one.
    leaving(Left.ANSWERS),
)


class Queueing:
    """The queue of --queue and --results. At the end of the command it replaces the file of an earlier queue.

    It then prints what is in which file. Missing answers give the exit code of a budget. If the command fails, the
    earlier queue stays. Raises HapaxError if the file is not a queue or cannot be written, and for a file of results
    without any.
    """

    def __init__(self, path: Path, results: Sequence[Path]) -> None:
        from hapax.llm_oracle.backends.openai_batch import BatchQueue

        self.queue = BatchQueue(path, results)

    def __enter__(self) -> Queueing:
        return self

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> None:
        from hapax.llm_oracle.budget import BudgetReached

        # click ends commands by SystemExit, also those that succeed.
        is_done = fault is None or (isinstance(fault, SystemExit) and fault.code in (None, DONE))
        is_stopped = isinstance(fault, BudgetReached) or (
            isinstance(fault, SystemExit) and fault.code == BUDGET_REACHED
        )
        try:
            if is_done or is_stopped:
                self.queue.land()
        finally:
            self.queue.discard()  # of a queue that has landed nothing is left
        if not (is_done or is_stopped):
            return
        for line in self.queue.summary():
            err.print(escape(line), soft_wrap=True)
        # Answers are missing, just as when a budget was reached.
        if is_done and self.queue.count:
            sys.exit(BUDGET_REACHED)


def warn_of_no_queue(asked: Collection[str]) -> None:
    """Warn of a queue that stays empty, because all models run in this process."""
    if asked and not any(name.startswith("openai:") for name in asked):
        message = f"--queue has no effect and stays empty. Asked: {', '.join(sorted(asked))}."
        err.print(f"[yellow]warning[/] {escape(message)} Only models named openai:... use it.", soft_wrap=True)


def _queueing(command: F) -> F:
    """The command with its queue as the argument `queue`; None without --queue."""

    # `wraps` also keeps the options that click has noted on the command so far.
    @wraps(command)
    def run(*arguments: Any, queue: Path | None, results: Sequence[Path], **options: Any) -> Any:
        if queue is None and results:
            raise click.UsageError("--results needs --queue, the file for the requests that are still missing.")
        # A dry run sends nothing, and leaves an earlier queue alone.
        if queue is None or options.get("dry_run"):
            return command(*arguments, queue=None, **options)
        with Queueing(queue, results) as queueing:
            warn_of_no_queue(_named(options))
            return command(*arguments, queue=queueing, **options)

    return run  # type: ignore[return-value]  # click calls both by name


with_queue = together(
    click.option(
        "--queue",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Write the requests to openai models to this file, as OpenAI Batch JSONL, and send only probes; state "
        "`logprobs` in an alias to send none.",
    ),
    click.option(
        "--results",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        help="Results of such a batch, which are read first; needs --queue.",
    ),
    _queueing,
)


# --- goals ------------------------------------------------------------------------------------------------------------

with_assume = click.option("--assume", multiple=True, help="Ground atom that is true for this call only.")

with_probability = together(
    click.option(
        "--probability",
        is_flag=True,
        help="Also give probabilities, computed from those of the facts over all proofs.",
    ),
    declared(ProbabilityOptions, "method", "proofs", "nodes", "together"),
)

with_at_least = declared(ProbabilityOptions, "at_least")

# The default of `operations.why` and `why_not`.
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
        return operations.load_rules(*paths)
    from hapax.api.kept_rules import changed_files, kept_rules

    with open_kb(database, read_only=True) as kb:
        kept = kept_rules(kb)
        # The options that read all files again, ready for a shell.
        again = " ".join(f"--rules {shlex.quote(record.name)}" for record in kb.rule_texts())
        for name in changed_files(kb):
            err.print(
                f"[yellow]note:[/] {escape(name)} has changed; {escape(database)} keeps its earlier text. "
                f"Use the new one with {escape(again)}.",
                soft_wrap=True,
            )
    return operations.load_rules() if kept is None else kept


def sound_library(paths: Sequence[Path], database: str | None = None) -> Library:
    """Like `read_library`, without the rules that have errors; says which these are."""
    library = operations.sound_rules(read_library(paths, database))
    for item in library.left_out or ():
        err.print(escape(str(item)), soft_wrap=True)
    return library


def print_idle(library: Library) -> None:
    """Name the rules that are not used, unless by name, because they conclude nothing new."""
    from hapax.grammar.rule_checks import adds_nothing

    for rule in library.rules:
        if adds_nothing(rule, library):
            err.print(
                f"rule {escape(rule.name)} is left out: it concludes nothing new. `hapax check` says why.",
                soft_wrap=True,
            )


def keep_rules(kb: KnowledgeBase, paths: Sequence[Path], command: str, rules: Library) -> None:
    """Keep these rule files in the knowledge base for later commands, and say what they replace."""
    # Without paths the rules are the shipped ones, or are kept already.
    if not paths:
        return
    from hapax.api import kept_rules

    if replaced := str(kept_rules.keep_rules(kb, *paths, command=command, rules=rules)):
        err.print(escape(replaced), soft_wrap=True)


def open_kb(database: str | None, read_only: bool = False, existing: bool = False, begun_by: str = "") -> KnowledgeBase:
    """The knowledge base in this file; None: one in memory. `existing`: to write into, if the file exists.

    `begun_by`: the command to run first if the file does not exist.
    """
    from hapax.kb.store import KnowledgeBase

    if begun_by and not Path(database or "").exists():
        raise HapaxError(f"{database}: there is no such knowledge base. Run `{begun_by}` first, or name one with --db.")
    if existing:
        with KnowledgeBase(database, read_only=True) as kb:  # raises if there is none
            _say_what_fell(kb)
    kb = KnowledgeBase(database, read_only=read_only)
    _say_what_fell(kb)
    return kb


# Only the opening that has migrated the file has something to say.
def _say_what_fell(kb: KnowledgeBase) -> None:
    notice = kb.opening_notice()
    if notice:
        _print_notice(notice)


def opening_options(
    library: Library | None, options: Mapping[str, Any], journal: Journal | None = None
) -> OpeningOptions:
    """The options of `with_opening`, for opening models, and the queue of `with_queue` for their requests."""
    # `_queueing` has put the opened queue in the place of the path.
    queueing: Queueing | None = options.get("queue")

    return made(
        OpeningOptions,
        options,
        library=library,
        journal=journal,
        prices=dict(options["prices"]),
        queue=None if queueing is None else queueing.queue,
        notice=_print_notice,
    )


def _print_notice(line: str) -> None:
    err.print(escape(line), soft_wrap=True)


def load_models(
    library: Library, options: dict[str, Any], journal: Journal | None = None, forecast: bool = False
) -> BudgetedModels:
    """The models of the four roles, as the options name them. The journal, if given, stores probes of servers.

    `forecast`: only their identities are needed, so nothing is loaded.
    """
    opening = replace(opening_options(library, options, journal), forecast=forecast)
    names = (options["knowledge"], options["critic"], options["likelihood"], options["evaluator"])
    with err.status("Loading models"):
        # Field by field: `asdict` would copy the library and the journal.
        return operations.open_models(*names, **{field.name: getattr(opening, field.name) for field in fields(opening)})


def question_settings(
    *, fact_threshold: FactThreshold = None, type_threshold: TypeThreshold = None, profile: ProfileName = None
) -> SearchSettings:
    """The settings under which the questions of a goal are asked."""
    from hapax.engine.search.settings import SearchSettings

    return SearchSettings(fact_threshold=fact_threshold, type_threshold=type_threshold, profile=profile)


with_questions = declared(question_settings)
"""The options of questions; `made(question_settings, options)` reads them."""


def choose_profile(
    settings: SearchSettings,
    kb: KnowledgeBase,
    library: Library,
    models: BudgetedModels,
    options: Mapping[str, Any],
) -> SearchSettings:
    """The settings with the prompt profile for the model; a line says how it was chosen."""
    from hapax.engine.search.profile_choice import settled

    return settled(settings, profile_choice(settings, kb, library, models, options))


def profile_choice(
    settings: SearchSettings,
    kb: KnowledgeBase,
    library: Library,
    models: BudgetedModels,
    options: Mapping[str, Any],
) -> ProfileChoice:
    """The prompt profile for the model; a line says how it was chosen."""
    from hapax.engine.search.profile_choice import ProfileChooser

    chooser = ProfileChooser(
        kb,
        library,
        models.knowledge,
        models.journal or open_journal(kb, options),
        again=bool(options["probe_again"]),
        # A queue is answered later, and a dry run not at all.
        can_ask=options.get("queue") is None and not options.get("dry_run"),
        notice=lambda text: err.print(escape(text), soft_wrap=True),
    )
    choice = chooser.choose(settings)
    if choice.message:
        err.print(escape(choice.message), soft_wrap=True)
    return choice


def open_journal(kb: KnowledgeBase, options: Mapping[str, Any]) -> Journal:
    """The journal of a knowledge base with the options' budget. Models opened with it register their prices."""
    from hapax.llm_oracle.journal import Journal

    # A command without such options has no limits.
    budget = made(Budget, options)
    journal = Journal(kb, budget, retry_unusable=bool(options.get("retry_unusable")))
    context = click.get_current_context(silent=True)  # None where no command line asked
    if context is not None:
        context.call_on_close(lambda: _print_without_answer(journal))
    return journal


def _print_without_answer(journal: Journal) -> None:
    """Say at the end of a command how many requests have no answer."""
    refused = {role: used.refused for role, used in journal.statistics.items() if used.refused}
    if refused:
        requests = counted(sum(refused.values()), "request was", "requests were")
        _print_notice(
            f"refused {requests} refused by a model: {counts_text(refused)}. They are not asked again; "
            "`hapax stats` shows the reasons."
        )
    unusable = {role: used.unusable for role, used in journal.statistics.items() if used.unusable}
    if unusable:
        requests = counted(sum(unusable.values()), "request")
        _print_notice(
            f"unusable {requests} without a usable reply: {counts_text(unusable)}. They are passed over; `hapax stats` "
            "shows the reasons, and --retry-unusable asks again."
        )


with_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be asked, and ask nothing.")


def print_foreseen(journal: PlanningJournal, as_json: bool) -> None:
    """Print the requests that a dry run would have sent."""
    requests, answered = len(journal.missing), journal.total.hits
    if as_json:
        click.echo(json.dumps({"requests": requests, "answered": answered, "most_tokens": journal.tokens}))
        return
    click.echo(
        f"{counted(requests, 'request')} would be sent, of {counted(journal.tokens, 'token')} at most; "
        f"{counted(answered, 'answer')} from the journal. Requests that depend on missing answers are not counted."
    )


@contextmanager
def dry_run(database: str) -> Iterator[tuple[KnowledgeBase, PlanningJournal]]:
    """The knowledge base, opened for reading if it exists, and a journal that sends nothing."""
    from hapax.llm_oracle.journal import PlanningJournal

    # An empty one in memory stands for a file that is not there yet.
    known = Path(database).exists()
    with leaving(Left.UNCHANGED), open_kb(database if known else None, read_only=known) as kb:
        yield kb, PlanningJournal(kb)


def probability_options(options: dict[str, Any]) -> ProbabilityOptions | None:
    """The options of probabilities; None if none are asked for, and a usage error where an option is useless then."""
    if not options["probability"]:
        context = click.get_current_context()
        for name in ("method", "proofs", "nodes", "together", "at_least"):
            # `why` has no --at-least.
            if name in options and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --probability.")
        return None
    return made(ProbabilityOptions, options)
