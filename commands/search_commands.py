"""`plan` and `search`: the estimate of a run, the run, and its report on the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from hapax.api.searching import run_search
from hapax.commands.shared.common_options import (
    is_default,
    keep_rules,
    opened,
    print_idle,
    sound_library,
    with_chosen,
    with_database,
    with_json,
    with_paths,
)
from hapax.commands.shared.console import (
    BUDGET_REACHED,
    DONE,
    counts_text,
    err,
    note,
    out,
    print_json,
    print_table,
    progress_display,
)
from hapax.commands.shared.declared import F, together
from hapax.commands.shared.model_options import (
    choose_profile,
    load_models,
    open_journal,
    profile_choice,
    search_settings,
    with_budget,
    with_gates,
    with_models,
    with_promise,
    with_queue,
    with_search_settings,
)
from hapax.engine.gates.account import cut_text, step_text
from hapax.engine.gates.gates import FACT_FLOOR, START, gates_in_order
from hapax.engine.kept_rules import chosen_rules
from hapax.engine.search.ranking import SMALL_POOL
from hapax.engine.search.search_report import RuleReport, SearchReport, Unanswerable
from hapax.grammar.dependencies import SearchPlan
from hapax.grammar.errors import HapaxError
from hapax.grammar.plug_ins import load, plug_ins
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.writing.printing import graph_text
from hapax.grammar.writing.words import counted, some, two_decimals
from hapax.kb.records import Distribution
from hapax.llm_oracle.journal import Journal, ReadOnlyCallStore
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.registry import FALLBACK_RANKER, find_backend, price_table, runs_in_process

if TYPE_CHECKING:
    from hapax.engine.search.estimate import RuleEstimate, RunEstimate

DEFAULT_RANKERS = ("smollm2", "frequency")
"""The first of these that is installed ranks the embedded model's findings; that model itself has read no texts."""

RULES_SHOWN = 5
"""Rules of which a search prints statements and figures without --account."""

ACCOUNT_LINES = 5
"""Lines of the account that a search prints without --account; the last has the requests and what a statement cost."""

EXECUTORS = "hapax.executors"
"""Entry-point group of executors, by the names of --executor.

Each is called with the rules and the options of a search; `spread(models)` is a context with the models to search by.
`options` adds its own options to the command.
"""


def with_executors(command: F) -> F:
    """Add --executor, and the options of each executor."""
    executors = plug_ins(EXECUTORS)
    choice = click.option(
        "--executor",
        type=click.Choice(["process", *executors]),
        default="process",
        show_default=True,
        help="Load models in this process or on a Ray cluster; the result is the same.",
    )
    decorated: F = together(choice, *(load(point).options for point in executors.values()))(command)
    return decorated


@click.command()
@with_paths
@with_chosen
@click.option("--graph", type=click.Choice(["text", "mermaid"]), help="Print the dependency graph in this form.")
@with_search_settings
@with_models
@with_database
@with_json
@with_promise
@with_gates
def plan(paths: tuple[Path, ...], chosen: tuple[str, ...], graph: str | None, **options: Any) -> None:
    """Show the order in which variables would be searched and the cost of a run. No question is asked.

    A plan needs no network and no key. Stored answers are counted exactly; other expected numbers follow from earlier
    searches and the ledger. The most a run can need holds without repeated requests.

    \b
    hapax plan --rule allergy
    hapax plan --rule allergy --graph mermaid
    hapax plan --db hapax.db --beam 50
    hapax plan --precision 0.95
    """
    library = sound_library(paths)
    rules = chosen_rules(library, chosen)
    if graph:
        click.echo("\n".join(graph_text(rule, library, graph) for rule in rules))  # type: ignore[arg-type]  # click checked it
        return
    # All orders of all rules would fill many screens.
    estimate, orders = estimated(library, rules, options, with_orders=bool(chosen))
    for rule in rules if chosen else ():
        print_plans(rule, orders[rule.name])
    print_estimate(estimate)


@click.command()
@with_paths
@with_chosen
@with_search_settings
@with_models
@with_budget
@with_queue
@with_database
@with_json
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Example statements per rule and distribution.",
)
@click.option(
    "--account",
    "all_accounts",
    is_flag=True,
    help="Print all rules, and what became of the values at each step.",
)
@click.option("--no-progress", is_flag=True, help="Print no progress.")
@click.option("--dry-run", is_flag=True, help="Print the estimated cost, and ask nothing.")
@with_promise
@with_executors
@with_gates
def search(paths: tuple[Path, ...], chosen: tuple[str, ...], **options: Any) -> None:
    """Search head and long-tail knowledge for rules, store it, and derive statements from it.

    After an interruption the same command goes on, and asks nothing twice.

    docs/how-to/servers.md shows how to run the queue file as a batch and read its results.

    \b
    hapax search
    hapax search --precision 0.95 --confidence 0.9
    hapax search --rule allergy --distribution long_tail --beam 50
    hapax search my.rules -m hf:meta-llama/Llama-3.1-8B --critic hf:google/flan-t5-xxl --max-calls 5000
    hapax search -m openai:gpt-4.1 --likelihood frequency --queue next.jsonl --results answered.jsonl
    hapax search rules/library -m hf:meta-llama/Llama-3.1-8B --executor ray --ray-address auto
    """
    # The modules of a search take long to import, and its help needs none of them.
    from hapax.engine.search.settings import SearchJob

    # Before the file of the knowledge base is made: all rules may have errors.
    library = sound_library(paths)
    rules = chosen_rules(library, chosen)
    if options["dry_run"]:
        print_estimate(estimated(library, rules, options)[0])
        return
    if not chosen:
        print_idle(library)
    # Options that contradict each other end the command here, before a model is loaded.
    settings = search_settings(options)
    options["critic"] = _default_critic(library, options)
    options["likelihood"] = _default_ranker(options)
    if options["compat"]:
        options["claims"] = 1  # as LINK asks
    # Before anything is opened: Ray may be missing, or options contradict each other.
    name = options["executor"]
    executor = None if name == "process" else load(plug_ins(EXECUTORS)[name])(library, options)
    if is_default("knowledge"):
        note("Searching with the embedded model, made for a first try. Name another with -m (`hapax model list`).")
    kb = opened()
    journal = open_journal(kb, options)
    models = load_models(library, options, journal)
    _explain_ranker(models, options)
    # With the journal of the search, so that a probe counts against its budget.
    settings = choose_profile(settings, kb, library, models, options)
    # Only once the models answer: a start that fails leaves no file.
    keep_rules(kb, paths, "search", library)
    _warn_of_doubtful_facts(models, options)
    spread = nullcontext(models) if executor is None else executor.spread(models)
    with spread as asked, progress_display(not options["no_progress"]) as progress:
        report = run_search(SearchJob(library, rules, kb, asked, settings, journal, progress)).report
    # Known only when the search has asked, and only of models on servers.
    if reason := getattr(models.knowledge, "bias_refused", ""):
        note(f"no logit bias was sent to {models.knowledge.identity.name}: {reason}", "warning")
    print_json({"run": report.run_id, "status": report.status, **report.summary()})
    if not out.quiet:
        _print_search(report, library, options)
    sys.exit(BUDGET_REACHED if report.status == "budget" else DONE)


# --- the estimate -----------------------------------------------------------------------------------------------------


def estimated(
    library: Library, rules: Sequence[Rule], options: dict[str, Any], with_orders: bool = False
) -> tuple[RunEstimate, dict[str, list[tuple[SearchPlan, RuleEstimate]]]]:
    """The estimate of a search without what the knowledge base already has, and one for each order of each rule."""
    from hapax.engine.search.estimate import estimate_orders, estimate_run
    from hapax.engine.search.settings import SearchJob, settled

    options["critic"] = _default_critic(library, options)
    options["likelihood"] = _default_ranker(options)
    # Without a file the estimate uses an empty knowledge base in memory, and makes no file.
    kb = opened(read_only=True) if Path(options["database"]).exists() else opened(database=None)
    # Known probes of servers are read, and nothing is written.
    models = load_models(library, options, journal=Journal(ReadOnlyCallStore(kb)), forecast=True)
    settings = search_settings(options)
    # As in a dry run nothing is probed; the plan counts the requests of a probe.
    choice = profile_choice(settings, kb, library, models, {**options, "dry_run": True})
    settings = settled(settings, choice)
    estimate = estimate_run(
        SearchJob(library, rules, kb, models, settings),
        prices=price_table(models),
        retry_unusable=options["retry_unusable"],
        probes=choice.probes,
    )
    return estimate, estimate_orders(library, rules, kb, models, settings) if with_orders else {}


def print_plans(rule: Rule, orders: Sequence[tuple[SearchPlan, RuleEstimate]]) -> None:
    """Print the estimates of a rule's search plans as a table or as a line of JSON."""
    plans, rows = [], []
    for order, estimate in orders:
        totals = {name: estimate.total(name) for name in ("questions", "calls", "claims")}
        plans.append({"order": order.order, "steps": list(map(str, order.steps)), **totals})
        figures = [f"{count:,}" for count in totals.values()]
        rows.append((" ".join(order.order), *figures, "; ".join(map(str, order.steps))))
    print_json({"rule": rule.name, "plans": plans})
    print_table(
        ("order", "questions", "calls", "claims judged", "steps"),
        rows,
        title=f"{rule.name}, its orders, with the cost of each in a search of this rule alone: {rule.sentence}",
    )


def print_estimate(estimate: RunEstimate) -> None:
    """Print the estimate by rule, and by role with its price."""
    print_json(asdict(estimate))
    if out.quiet:
        return
    rows = []
    for rule in estimate.rules:
        # Skipped rules follow below the table.
        if rule.skipped is None:
            totals = [f"{rule.total(name):,}" for name in ("questions", "calls", "claims")]
            values = ", ".join(f"{step.variable} {step.values:,}" for step in rule.steps)
            rows.append((rule.rule, rule.generic, " ".join(rule.order), values, *totals))
    print_table(("rule", "generic", "order", "values by step", "questions", "calls", "claims judged"), rows)
    skipped = {rule.rule: rule.skipped for rule in estimate.rules if rule.skipped is not None}
    for text, lines in _skipped(skipped):
        _print_remark("skipped", text, lines)
    out.print()
    costs = []
    for role, need in estimate.roles.items():
        money = "price unknown" if need.cost is None else f"{need.cost:.2f}"
        seconds = "-" if need.seconds is None else _duration(need.seconds)
        costs.append((role, need.model, f"{need.calls:,}", f"{need.tokens:,}", money, seconds))
    columns = ("role", "model", "calls", "tokens", "money", "wall time")
    print_table(columns, costs, title="The whole run, as expected")
    if measured := [f"{role} {need.measured:,}" for role, need in estimate.roles.items() if need.measured]:
        note(
            "Expected calls, tokens and money follow from answered requests in the ledger, repeated ones included: "
            f"{', '.join(measured)}."
        )
    if assumed := [role for role, need in estimate.roles.items() if need.assumed]:
        note(
            f"Nobody has asked the server of {', '.join(assumed)} what it can do. By default it is expected to give "
            "log-probabilities; votes take more calls. A search first probes it once. State `logprobs` in an alias "
            "of the model to plan by it."
        )
    untimed = [role for role, need in estimate.roles.items() if need.seconds is None and need.calls]
    if untimed:
        # Only for models on servers can an alias state limits.
        served = any("openai/" in estimate.roles[role].model for role in untimed)
        note(
            f"The wall time of {', '.join(untimed)} is unknown, because the knowledge base has no answers of "
            f"{'this model' if len(untimed) == 1 else 'these models'}: search with --max-calls 50 and plan again"
            f"{', or state latency, rpm or tpm in the alias' if served else ''}."
        )


def _duration(seconds: float) -> str:
    """`40 s`, `12 min`, `3.5 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- the report -------------------------------------------------------------------------------------------------------


def _print_search(report: SearchReport, library: Library, options: dict[str, Any]) -> None:
    """Print typical statements, a line for each rule, and the account; without --account of the first rules."""
    every = options["all_accounts"]
    rules = report.searched if every else report.searched[:RULES_SHOWN]
    stated = [rule for rule in report.searched if any(rule.statements.values())]
    for rule in stated if every else stated[:RULES_SHOWN]:
        for end in Distribution:
            for text in rule.examples(end, options["examples"]):
                out.print(f"[dim]{end.value:>9}[/]  {escape(text)}")
    out.print()
    # The gates in the order in which the run has asked them, with the share that each let pass.
    gates = [gate.name for gate in gates_in_order(options["compat"]) if gate.in_tables] if every else []
    rows = []
    for rule in rules:
        # A gate that is switched off has judged nothing.
        shares = [rule.gates[gate].share if gate in rule.gates else None for gate in gates]
        percents = ["-" if share is None else f"{share:.0%}" for share in shares]
        # A budget ended the search before the rule was through.
        name = rule.rule + (" (cut)" if rule.cut else "")
        counts = (*map(rule.count, Distribution), rule.in_both)
        rows.append((name, *counts, *percents, two_decimals(rule.delta), rule.calls))
    print_table(("rule", "head", "long tail", "in both", *gates, "delta", "calls"), rows)
    if more := len(report.searched) - len(rules):
        out.print(f"{counted(more, 'more rule')}: --account prints all.")
    out.print()
    remarks = list(_remarks(report, library, options))
    shown = remarks if every or len(remarks) < ACCOUNT_LINES else remarks[: ACCOUNT_LINES - 2]
    for label, text, details in shown:
        _print_remark(label, text, details if every else ())
    if more := len(remarks) - len(shown):
        out.print(f"{counted(more, 'more remark')}: --account prints all.")
    _print_remark("", _requests_text(report, options), ())
    if report.budget:
        note(report.budget)


def _print_remark(label: str, text: str, details: Iterable[str]) -> None:
    """Print a sentence of the account and its details; one with a label is a warning, and goes to stderr."""
    stream, head = (err, f"[yellow]{label}[/] ") if label else (out, "")
    lines = [head + escape(text), *(escape(f"  {detail}") for detail in details)]
    stream.print("\n".join(lines), soft_wrap=True, highlight=False)


def _remarks(
    report: SearchReport, library: Library, options: dict[str, Any]
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The account of a search, the most important first: label of a warning, sentence, and lines of --account."""
    counts, probe = report.summary()["statements"], report.critic_probe
    ends = f"{counts['head']} head and {counted(counts['long_tail'], 'long-tail statement')} in {options['database']}"
    judge = "" if report.mean_delta is None else f" by {report.evaluator}"
    if judge and report.is_circular:
        judge += ", which also ranked, so it proves nothing (name another --evaluator)"
    yield "", f"{ends}; mean delta {two_decimals(report.mean_delta)}{judge}.", ()
    if messages := [_empty(rule, report, library, options) for rule in report.rules if rule.is_empty]:
        more = f" {counted(len(messages) - 1, 'more rule has', 'more rules have')} none." if messages[1:] else ""
        yield "empty", messages[0] + more, messages[1:]
    if probe is not None and probe.says_no(FACT_FLOOR):
        remedy = "choose another one with --critic, or set --fact-threshold and --type-threshold"
        yield "critic", f"it says no to everything: {probe}; {remedy}.", ()
    if report.certificates:
        yield "", f"promise: {report.certificates[0]}", report.certificates[1:]
    if uncertain := sum(rule.uncertain for rule in report.searched):
        yield "", f"{counted(uncertain, 'statement')} left out below the threshold of the promise on statements.", ()
    yield from _left_out(report, library)
    if report.conflicts:
        conflicts = f"{counted(report.conflicts, 'conflict')} of facts with declarations"
        yield "", f"{conflicts}; `hapax why-not` explains each fact that lost.", ()
    yield from _figures(report, library, options)


def _left_out(report: SearchReport, library: Library) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The sizes of disjoint ends, the rules with too few statements for them, and those that were not searched."""
    if divided := [rule for rule in report.searched if rule.pool]:
        pool = sum(rule.pool for rule in divided)
        head, long_tail = (sum(rule.texts(end) for rule in divided) for end in Distribution)
        ends = f"Of {counted(pool, 'sentence')} the {head} likeliest are head, the {long_tail} least likely long tail"
        ends += f"; {pool - head - long_tail} are in neither."
        if small := [f"{rule.rule} ({rule.pool})" for rule in divided if rule.is_small]:
            ends += f" Fewer than {SMALL_POOL} sentences are too few for meaningful ends: {some(small, 3)}."
        yield "", ends, ()
    withdrawn = [f"{rule.name}: {rule.withdrawn}" for rule in library.rules if rule.withdrawn is not None]
    # With --rule the other rules were not wanted.
    if withdrawn and len(withdrawn) + len(report.rules) == len(library.rules):
        rules = counted(len(withdrawn), "rule is withdrawn and was", "rules are withdrawn and were")
        yield "", f"{rules} not searched (`@withdrawn` in the file says why).", withdrawn
    for text, rule_lines in _skipped({rule.rule: rule.skipped for rule in report.rules if rule.skipped is not None}):
        yield "skipped", text, rule_lines


def _figures(
    report: SearchReport, library: Library, options: Mapping[str, Any]
) -> Iterator[tuple[str, str, Sequence[str]]]:
    """The worth of ranker and critic, what was left out, and the accounts of the rules."""
    if equal := {rule.rule: rule.equal_scores for rule in report.searched if rule.equal_scores is not None}:
        # The knowledge model ranks unless another one was named.
        text = (
            f"{options['likelihood'] or options['knowledge']} gives more than half of the ranked texts of "
            f"{counted(len(equal), 'rule')} a score that another text has, too. Among these, chance decides between "
            "head and long tail. Choose another ranker with --likelihood."
        )
        yield "ties", text, [f"{rule}: {tied} of {counted(texts, 'text')}" for rule, (tied, texts) in equal.items()]
    if (probe := report.critic_probe) is not None:
        area = "unknown"
        if probe.preference is not None and probe.interval is not None:
            area = "{:.2f} ({:.2f} to {:.2f})".format(probe.preference, *probe.interval)
        needed = f"; facts need {report.threshold:.2f}" if report.threshold > START else ""
        judged = f"{probe.judged} of {len(probe.scores)} judged{needed}"
        judged += "" if report.certificates else ", with no certificate"
        yield "", f"critic: AUC {area} on {probe.claims.source} (chance: 0.50), {judged}", ()
    if capped := {rule.rule: sum(rule.capped.values()) for rule in report.searched if any(rule.capped.values())}:
        were = counted(sum(capped.values()), "statement was", "statements were")
        lines = [f"{rule}: {count} (@most {library.rule(rule).cap})" for rule, count in capped.items()]
        yield "", f"{were} left out because one value occurred too often (@most).", lines
    cuts, settings = [], search_settings(dict(options))
    for rule in report.searched:
        # In the last step of disjoint ends the middle is cut, which every rule has, unless the beam cuts more.
        has_middle = rule.pool and settings.end_size.of(rule.pool) < settings.width
        cuts += [
            f"{rule.rule}, {cut}" for cut in map(cut_text, rule.account[:-1] if has_middle else rule.account) if cut
        ]
    if cuts:
        more = f"; {counted(len(cuts) - 1, 'more step')}" if cuts[1:] else ""
        yield "", f"{cuts[0]}{more} (--beam, --keep-share; --beam all keeps all).", cuts[1:]
    for rule in report.searched if options["all_accounts"] else ():
        if rule.account:
            yield "", f"Account of {rule.rule}:", list(map(step_text, rule.account))


def _skipped(skipped: Mapping[str, Unanswerable]) -> Iterator[tuple[str, list[str]]]:
    """A sentence for each model that does not know what rules ask for, with the remedy, and a line for each rule."""
    lines_by_model: dict[tuple[str, str], list[str]] = {}
    for rule, reason in skipped.items():
        line = f"{rule}: {', '.join(reason.unknown)}"
        lines_by_model.setdefault((reason.model, reason.remedy), []).append(line)
    for (model, remedy), lines in lines_by_model.items():
        rules = counted(len(lines), "rule that asks", "rules that ask")
        yield f"{rules} for what {model} does not know. {remedy}", lines


def _empty(rule: RuleReport, report: SearchReport, library: Library, options: Mapping[str, Any]) -> str:
    """Where the values of a rule without a statement ran out, and the first remedy."""
    if rule.uncertain:
        statements = counted(rule.uncertain, "statement is", "statements are")
        return f"{rule.rule}: {statements} below the threshold of the promise on statements"
    message = f"{rule.rule} has no statement: no values for all its variables passed the gates."
    if shortage := rule.shortage(options["compat"]):
        guesses = report.critic_probe is not None and report.critic_probe.is_chance
        is_of_threshold = str(Setting("settings.fact_threshold")) in str(shortage.remedy)
        another = f"Choose another critic with {Setting('critic')}: this one guesses, so that no threshold helps."
        message += f" {shortage.fact} {another if guesses and is_of_threshold else shortage.remedy}"
    indicators = {literal.atom.indicator for literal in library.rule(rule.rule).literals}
    if wordless := sorted(name for name in indicators if library.signature(name).templates is None):
        message += f" No template words {', '.join(wordless)} for the model: declare them, or name files that do."
    return message


def _requests_text(report: SearchReport, options: Mapping[str, Any]) -> str:
    """The requests of a run by role, in all and for each statement, and those that models in this process answered."""
    sent: dict[str, int] = {}
    local: dict[str, int] = {}
    for role, statistics in report.statistics.items():
        model = options.get(role) or options["knowledge"]  # also of probes
        (local if runs_in_process(model) else sent)[role] = statistics.calls
    by_role = f": {counts_text(sent)}" if any(sent.values()) else ""
    text = f"{counted(sum(sent.values()), 'request')} sent in this run, retries and votes included{by_role}."
    count = sum(rule.count(end) for rule in report.searched for end in Distribution)
    if count and any(sent.values()):
        shares = ", ".join(f"{role} {calls / count:.2f}" for role, calls in sent.items() if calls)
        text += f" For each statement: {shares}."
    if any(local.values()):
        text += f" {counted(sum(local.values()), 'request')} answered in this process: {counts_text(local)}."
    return text


# --- the embedded model as the default --------------------------------------------------------------------------------


def _default_critic(library: Library, options: dict[str, Any]) -> str | None:
    """The critic of the default model: the installed references that cover predicates of the rules, then itself."""
    from hapax.llm_oracle.references.model import covering_references

    critic: str | None = options["critic"]
    if critic or options["compat"] or options["no_critic"] or not is_default("knowledge"):
        return critic
    references = covering_references(library)
    # The first critic that covers a claim decides, so the model comes last.
    return f"reference:{','.join(references)},{options['knowledge']}" if references else None


def _default_ranker(options: dict[str, Any]) -> str | None:
    """The ranker of the default model: one that knows which names are common, if it is installed."""
    ranker: str | None = options["likelihood"]
    # With every beam kept nothing is ranked.
    unranked = options["no_likelihood"] or options["beam"] is None
    if ranker or unranked or options["compat"] or not is_default("knowledge"):
        return ranker
    installed = (name for name in DEFAULT_RANKERS if (backend := find_backend(name)) and not backend.missing())
    return next(installed, None)


def _explain_ranker(models: Models, options: dict[str, Any]) -> None:
    """Say that word frequencies rank in the place of a model that gives no likelihoods, unless LINK's way is wanted."""
    ranker = models.likelihood.identity.name
    if options["likelihood"] or ranker == models.knowledge.identity.name or not ranker.startswith(FALLBACK_RANKER):
        return
    said = f"{models.knowledge.identity.name} gives no likelihoods"
    if options["compat"]:
        raise HapaxError(f"{said}, by which LINK ranks.", Remedy("Choose another {}.", Setting("likelihood")))
    note(f"{said}, so word frequencies rank. Choose another ranker with --likelihood.")


def _warn_of_doubtful_facts(models: Models, options: dict[str, Any]) -> None:
    """Warn of settings under which false values are stored as facts, which every later query uses."""
    reasons = []
    if options["no_critic"]:
        reasons.append("--no-critic accepts every value as true.")
    if options["compat"] == "released":
        reasons.append("LINK's released threshold starts at the best score of the first values, however low it is.")
    # Models that state what they know, such as the embedded one, are trained on prompts of their own.
    if options["compat"] and models.knowledge.identity.knows is not None:
        reasons.append(
            f"{models.knowledge.identity.name} was not trained on LINK's prompts and answers many of them wrongly."
        )
    if reasons:
        reasons.append(f"Results go to {options['database']}; use --db to keep such a run separate.")
        note(" ".join(reasons), "warning")
