"""The options of models, budgets, queues of requests and searches, and what is made of them."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import click

import hapax
from hapax.commands.shared.common_options import open_kb, refuse_without, with_database, with_json
from hapax.commands.shared.console import (
    BUDGET_REACHED,
    DONE,
    Left,
    Tell,
    counts_text,
    leaving,
    note,
    print_json,
    say,
    working,
)
from hapax.commands.shared.declared import F, declared, of_program, together
from hapax.engine.certificates import Promise
from hapax.engine.gates.gates import FactThreshold, TypeThreshold, gates_in_order
from hapax.engine.search.settings import THRESHOLDS, SearchSettings
from hapax.grammar.options import Option, from_options
from hapax.grammar.writing.words import counted
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached, Price
from hapax.llm_oracle.questions.profiles import ProfileName
from hapax.llm_oracle.registry import find_backend

if TYPE_CHECKING:
    from hapax.engine.search.settings import ProfileChoice
    from hapax.grammar.rules import Library
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.registry import BudgetedModels

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
    "writer",
)
"""Parameters of commands that name models."""


def warn_of_prices(prices: Mapping[str, Price], asked: Collection[str]) -> None:
    """Warn of prices without effect: of models that are not asked, or that run in this process and cost nothing."""
    idle = [name for name in prices if name not in asked or not name.startswith("openai:")]
    if idle:
        note(
            f"--price of {', '.join(idle)} has no effect. Asked: {', '.join(sorted(asked)) or 'no model'}. "
            "Name a model openai:... as in the option that asks it; all other models cost nothing.",
            "warning",
        )


with_model = click.option("-m", "--model", required=True, help="The model to ask; it must follow instructions.")

with_models = together(
    click.option("-m", "--knowledge", default="embedded", show_default=True, help="Model that proposes values."),
    click.option(
        "--critic",
        default=None,
        help="Model that judges; A,B: the first that covers a claim; A+B: both combined; paraphrased:A: in "
        "several wordings. Default: the knowledge model.",
    ),
    click.option("--likelihood", default=None, help="Model that ranks; default: the knowledge model."),
    click.option("--evaluator", default="frequency", show_default=True, help="Model that measures delta."),
    of_program,
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
        from hapax.llm_oracle.servers.openai_batch import BatchQueue

        self.queue = BatchQueue(path, results)

    def __enter__(self) -> Queueing:
        return self

    def __exit__(self, _: object, fault: BaseException | None, __: object) -> None:
        # click ends commands by SystemExit, also those that succeed.
        is_done = fault is None or (isinstance(fault, SystemExit) and fault.code in (None, DONE))
        is_stopped = isinstance(fault, BudgetReached) or (
            isinstance(fault, SystemExit) and fault.code == BUDGET_REACHED
        )
        if not (is_done or is_stopped):
            return
        self.queue.land()
        for line in self.queue.summary():
            note(line)
        # Answers are missing, just as when a budget was reached.
        if is_done and self.queue.files:
            sys.exit(BUDGET_REACHED)


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
            return command(*arguments, queue=queueing, **options)

    return run  # type: ignore[return-value]  # click calls both by name


with_queue = together(
    click.option(
        "--queue",
        type=click.Path(dir_okay=False, path_type=Path),
        help="File for requests to openai models, as OpenAI Batch JSONL; only probes are sent.",
    ),
    click.option(
        "--results",
        multiple=True,
        type=click.Path(dir_okay=False, path_type=Path),
        help="Results of such a batch, which are read first; needs --queue.",
    ),
    _queueing,
)


with_asking = together(of_program, with_budget, with_queue, with_database, with_json)
"""The options of a command that asks models and stores their answers; `asking` opens both."""


def opening_options(
    library: Library | None, options: Mapping[str, Any], journal: Journal | None = None
) -> OpeningOptions:
    """The options of opening models, with the queue of `with_queue` for their requests.

    With a journal, which only the process that asks has, it warns of options without effect.
    """
    # `_queueing` has put the opened queue in the place of the path.
    queueing: Queueing | None = options.get("queue")
    prices, asked = dict(options["prices"]), set[str]()
    for parameter in NAMING:
        names = options.get(parameter) or ()
        # An option that may be repeated gives a tuple.
        asked.update(names if isinstance(names, tuple) else (names,))
    # Else a file names the models.
    if journal is not None and any(parameter in options for parameter in NAMING):
        warn_of_prices(prices, asked)
    if journal is not None and queueing and asked and not any(name.startswith("openai:") for name in asked):
        names = ", ".join(sorted(asked))
        note(f"--queue has no effect and stays empty. Asked: {names}. Only models named openai:... use it.", "warning")
    return from_options(
        OpeningOptions,
        options,
        library=library,
        journal=journal,
        prices=prices,
        queue=None if queueing is None else queueing.queue,
        notice=note,
    )


def load_models(
    library: Library, options: dict[str, Any], journal: Journal | None = None, forecast: bool = False
) -> BudgetedModels:
    """The models of the four roles, as the options name them. The journal, if given, stores probes of servers.

    `forecast`: only their identities are needed, so nothing is loaded.
    """
    opening = replace(opening_options(library, options, journal), forecast=forecast)
    names = (options["knowledge"], options["critic"], options["likelihood"], options["evaluator"])
    with working("Loading models"):
        # Field by field: `asdict` would copy the library and the journal.
        return hapax.open_models(*names, **{field.name: getattr(opening, field.name) for field in fields(opening)})


def question_settings(
    *, fact_threshold: FactThreshold = None, type_threshold: TypeThreshold = None, profile: ProfileName = None
) -> SearchSettings:
    """The settings under which the questions of a goal are asked."""
    from hapax.engine.search.settings import SearchSettings

    return SearchSettings(fact_threshold=fact_threshold, type_threshold=type_threshold, profile=profile)


with_questions = declared(question_settings)
"""The options of questions; `from_options(question_settings, options)` reads them."""


def choose_profile(
    settings: SearchSettings,
    kb: KnowledgeBase,
    library: Library,
    models: BudgetedModels,
    options: Mapping[str, Any],
) -> SearchSettings:
    """The settings with the prompt profile for the model; a line says how it was chosen."""
    from hapax.engine.search.settings import settled

    return settled(settings, profile_choice(settings, kb, library, models, options))


def profile_choice(
    settings: SearchSettings,
    kb: KnowledgeBase,
    library: Library,
    models: BudgetedModels,
    options: Mapping[str, Any],
) -> ProfileChoice:
    """The prompt profile for the model; a line says how it was chosen."""
    from hapax.engine.search.settings import ProfileChooser

    chooser = ProfileChooser(
        kb,
        library,
        models.knowledge,
        models.journal or open_journal(kb, options),
        again=bool(options["probe_again"]),
        # A queue is answered later, and a dry run not at all.
        can_ask=options.get("queue") is None and not options.get("dry_run"),
    )
    choice = chooser.choose(settings)
    if choice.message:
        note(choice.message)
    return choice


def open_journal(kb: KnowledgeBase, options: Mapping[str, Any]) -> Journal:
    """The journal of a knowledge base with the options' budget. Models opened with it register their prices."""
    from hapax.llm_oracle.journal import Journal

    # A command without such options has no limits.
    budget = from_options(Budget, options)
    journal = Journal(kb, budget, retry_unusable=bool(options.get("retry_unusable")))
    context = click.get_current_context(silent=True)  # None where no command line asked
    if context is not None:
        context.call_on_close(lambda: _print_without_answer(journal))
    return journal


_WITHOUT_ANSWER = {
    "refused": "{} refused by a model: {}. They are not asked again; `hapax data stats` shows the reasons.",
    "unusable": "{} without a usable reply: {}. They are passed over; `hapax data stats` shows the reasons, and "
    "--retry-unusable asks again.",
}
"""Sentences about requests without an answer, by their number in the statistics."""


def _print_without_answer(journal: Journal) -> None:
    """Say at the end of a command how many requests have no answer."""
    for kind, sentence in _WITHOUT_ANSWER.items():
        counts = {role: getattr(used, kind) for role, used in journal.statistics.items() if getattr(used, kind)}
        if counts:
            nouns = ("request was", "requests were") if kind == "refused" else ("request", "requests")
            note(sentence.format(counted(sum(counts.values()), *nouns), counts_text(counts)), kind)


with_dry_run = click.option("--dry-run", is_flag=True, help="Print what would be asked, and ask nothing.")


class Asking(NamedTuple):
    """Knowledge base, options of opening and display with which a command asks models."""

    kb: KnowledgeBase
    opening: OpeningOptions
    show: Tell


@contextmanager
def asking(
    options: Mapping[str, Any], activity: str, library: Library | None = None, **opened: Any
) -> Iterator[Asking]:
    """Show an activity while the block asks models; it may print nothing. `opened`: arguments of `open_kb`.

    A dry run sends nothing, and ends the command with the number of requests that the block would have sent.
    """
    if options.get("dry_run"):
        yield from _foreseeing(options, library)
    with open_kb(options["database"], **opened) as kb, working(activity) as show:
        yield Asking(kb, opening_options(library, options, open_journal(kb, options)), show)


def _foreseeing(options: Mapping[str, Any], library: Library | None) -> Iterator[Asking]:
    from hapax.llm_oracle.journal import PlanningJournal

    # An empty knowledge base in memory stands for a file that is not there yet.
    known = Path(options["database"]).exists()
    with leaving(Left.UNCHANGED), open_kb(options["database"] if known else None, read_only=known) as kb:
        journal = PlanningJournal(kb)
        # The journal raises where answers are missing, once it has noted what would be asked.
        with suppress(BudgetReached):
            yield Asking(kb, opening_options(library, options, journal), lambda *_: None)
    requests, answered = len(journal.missing), journal.total.hits
    print_json({"requests": requests, "answered": answered, "most_tokens": journal.tokens})
    say(
        f"{counted(requests, 'request')} would be sent, of {counted(journal.tokens, 'token')} at most; "
        f"{counted(answered, 'answer')} from the journal. Requests that depend on missing answers are not counted."
    )
    raise click.exceptions.Exit(DONE)


# --- searches ---------------------------------------------------------------------------------------------------------

TOKENS_PER_VALUE = 25
"""Tokens for one value of a list where a model is given few values at once: a name and a few words about it."""

with_search_settings = declared(
    SearchSettings,
    *("distributions", "beam", "measure", "keep_share", "enough"),
    *("calls_per_question", "values_per_call"),
    *("temperature", "answer_tokens", "plan", "compat", *THRESHOLDS, "profile"),
)

with_gates = together(
    *(click.option(f"--no-{gate.name}", is_flag=True, help=gate.switch) for gate in gates_in_order() if gate.switch)
)
"""The option `--no-GATE` of each gate that can be switched off."""


def promises(
    *,
    precision: Annotated[
        float | None,
        Option(
            "Promise that this share of the accepted facts is true: labels decide the threshold.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = None,
    statement_precision: Annotated[
        float | None,
        Option(
            "The same for statements, by those that people judged.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = None,
    confidence: Annotated[
        float,
        Option(
            "Probability with which the promises of --precision and --statement-precision are kept.",
            above=0,
            below=1,
            in_any_folder=True,
        ),
    ] = 0.9,
) -> dict[str, Promise]:
    """The promises of a search, by the fields of its settings."""
    wanted = {"promise": precision, "statement_promise": statement_precision}
    return {name: Promise(share, confidence) for name, share in wanted.items() if share is not None}


with_promise = together(
    declared(SearchSettings, "calibrated"),
    declared(promises),
    declared(SearchSettings, "certify_by"),
)


def search_settings(options: dict[str, Any]) -> SearchSettings:
    """The settings of a search by its options."""
    given = [f"--{name.replace('_', '-')}" for name in THRESHOLDS if options[name] is not None]
    if options["compat"] and given:
        message = f"{' and '.join(given)} cannot go with --compat {options['compat']}, which has LINK's own thresholds."
        raise click.UsageError(message)
    promised = from_options(promises, options)
    if not promised:
        # A search without a promise would look as if it had the one that was asked for.
        refuse_without("--precision or --statement-precision", "confidence", "certify_by")
    return from_options(
        SearchSettings,
        options,
        **promised,
        seed=options["seed"],
        # Commands without switches of gates do not have these options.
        critic=not options.get("no_critic"),
        likelihood="random" if options.get("no_likelihood") else "model",
        # LINK's ways include its order of variables.
        plan=options["plan"] or ("link" if options["compat"] else None),
        **_list_sizes(options),
    )


def _list_sizes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Values and tokens of one list: as the user says, as suits the knowledge model, or the settings' own."""
    # The kind of the model: `hf` of `hf:NAME`.
    backend = None if options["compat"] else find_backend(options["knowledge"].partition(":")[0])
    if backend is None or backend.values_per_call is None:
        return {}
    # The user's own numbers stay.
    values = options["values"] or backend.values_per_call
    return {"values_per_call": values, "answer_tokens": options["answer_tokens"] or TOKENS_PER_VALUE * values}
