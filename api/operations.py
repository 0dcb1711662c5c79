"""The operations of Hapax as plain functions. Nothing prints, nothing exits; errors are `HapaxError`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hapax.api.rule_paths import rule_paths
from hapax.engine.search.progress import ProgressCounter
from hapax.grammar.arguments import checked, is_table, texts
from hapax.grammar.errors import Diagnostic, HapaxError, RulesRejected, TextRepair
from hapax.grammar.extras import extras_named
from hapax.grammar.rules import Library, Rule
from hapax.llm_oracle.protocols import Models

if TYPE_CHECKING:
    import pandas as pd

    from hapax.api.importing import FactRules
    from hapax.api.results import Answers, Derivation, Explanation, SearchResult, Statement
    from hapax.api.tabular import ArrowStream
    from hapax.engine.entailment.checks import EntailmentLimits
    from hapax.engine.kb_checks import KbFinding
    from hapax.engine.logic.statement_lines import LineWriter
    from hapax.engine.probability.answers import Probability
    from hapax.engine.probability.options import ProbabilityOptions
    from hapax.engine.query_options import QueryOptions
    from hapax.engine.search.estimate import RunEstimate
    from hapax.engine.search.job import SearchJob
    from hapax.engine.search.settings import SearchSettings
    from hapax.grammar.explanations import FaultExplanation
    from hapax.kb.intake import ImportReport
    from hapax.kb.mappings import TableMapping
    from hapax.kb.merge import MergeReport
    from hapax.kb.records import StatementRecord
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.budget import Budget
    from hapax.llm_oracle.journal import Journal

# Each operation imports what it needs when it is called: a command or script that only checks rules starts without the
# store, the models and the Prolog session.


# --- rules ------------------------------------------------------------------------------------------------------------


@checked
def load_rules(*paths: str | Path) -> Library:
    """The rules of files and folders; without any, the shipped rules, which are also called `shipped`.

    Raises RulesRejected with every syntax fault.
    """
    from hapax.grammar.parser import load_library

    return load_library(rule_paths(paths))


@checked
def check_rules(
    rules: Library, kb: KnowledgeBase | None = None, *, entailments: EntailmentLimits | None = None
) -> tuple[Diagnostic, ...]:
    """Faults, redundancy and contradictions of rules; with a knowledge base, also what contradicts its facts.

    `entailments`: limits from which on the knowledge base's entailments count against rules.
    """
    from hapax.grammar.checks import check_library

    diagnostics = check_library(rules)
    if kb is None:
        return diagnostics
    from hapax.engine.kb_checks import check_kb

    return (*diagnostics, *(finding.diagnostic for finding in check_kb(rules, kb, entailments)))


def formatted_files(paths: Iterable[str | Path]) -> Iterator[tuple[Path, str, str]]:
    """Each rule file of the files and folders, with its text and that text in the one layout. LINK's JSON is skipped.

    Raises RulesRejected with the faults of all files, before the first is given.
    """
    from hapax.grammar.formatting import format_rules
    from hapax.grammar.imports import UnreadableFile
    from hapax.grammar.parser import file_content, read_rules, rule_files

    formatted: list[tuple[Path, str, str]] = []
    diagnostics: list[Diagnostic] = []
    for path in rule_files(list(paths)):
        if path.suffix == ".json":
            continue
        try:
            text = file_content(path).decode("utf-8")
            formatted.append((path, text, format_rules(text, str(path))))
        except RulesRejected as rejected:
            diagnostics += rejected.diagnostics
        except (OSError, UnicodeDecodeError, UnreadableFile):
            # Read again as rules, which gives the fault its place and its words.
            diagnostics += read_rules([path]).diagnostics
    if diagnostics:
        raise RulesRejected(diagnostics)
    return iter(formatted)


FIX_ROUNDS = 10
"""A fix of one fault may let another be found; after this many rounds the rest is reported."""


def fix_files(paths: Iterable[str | Path], names: str | None = None) -> list[TextRepair]:
    """Fix the faults of rule files whose remedy leaves no choice, and return the replacements that were made.

    Each file is replaced as a whole. LINK's JSON is left as it is. `names`: as for `check_files`.
    """
    from hapax.api.whole_files import atomic_path
    from hapax.grammar.checks import check_read
    from hapax.grammar.fixing import with_replacements
    from hapax.grammar.parser import read_rules

    paths, made = list(paths), list[TextRepair]()
    for _ in range(FIX_ROUNDS):
        # By file, so that each is written once a round.
        by_file: dict[str, list[TextRepair]] = {}
        read = read_rules(paths)
        for diagnostic in (*check_read(read), *_other_names(read.library, names)):
            for replacement in diagnostic.fix:
                by_file.setdefault(replacement.place.file, []).append(replacement)
        before = len(made)
        for file, replacements in by_file.items():
            if Path(file).suffix == ".json":
                continue
            text, done = with_replacements(Path(file).read_bytes().decode("utf-8"), replacements)
            if done:
                with atomic_path(file) as path:
                    path.write_bytes(text.encode("utf-8"))  # line ends stay as they are
                made += done
        # What is left has no fix.
        if len(made) == before:
            break
    return made


def explained_codes() -> tuple[FaultExplanation, ...]:
    """All codes with name, severity and example; `explain_fault` adds the diagnostics and the corrected example."""
    from hapax.grammar import explanations

    return tuple(explanations.explained_codes().values())


@dataclass(frozen=True)
class RuleCheck:
    """Diagnostics of rule files, of which some may be unreadable, and of facts that contradict the rules."""

    library: Library
    diagnostics: tuple[Diagnostic, ...]
    findings: tuple[KbFinding, ...] = ()

    @property
    def proofs(self) -> Iterator[tuple[str, int, str]]:
        """Code, number and text of each proof that shows a contradiction."""
        from hapax.engine.inference.proof import proof_text

        for finding in self.findings:
            for number, proof in enumerate(finding.proofs, 1):
                yield finding.diagnostic.code, number, proof_text(proof)


def check_files(
    paths: Iterable[str | Path] = (),
    kb: Callable[[], KnowledgeBase] | None = None,
    entailments: EntailmentLimits | None = None,
    names: str | None = None,
) -> RuleCheck:
    """Check rule files as far as they can be read, as `check_rules` does; `kb` opens the knowledge base, if any.

    Without paths these are the rules that the knowledge base keeps, or the shipped ones. `names`: a reference such as
    `reference:geo`, whose canonical names constants should have.
    """
    from hapax.grammar.checks import check_read
    from hapax.grammar.parser import read_rules

    paths = tuple(paths)
    read = None
    if kb is not None and not paths:
        from hapax.api.kept_rules import read_kept

        with kb() as opened:
            read = read_kept(opened)
    if read is None:
        read = read_rules(rule_paths(paths))
    diagnostics = (*check_read(read), *_other_names(read.library, names))
    # Facts are not held against a part of the rules.
    if kb is None or read.diagnostics:
        return RuleCheck(read.library, diagnostics)
    from hapax.engine.kb_checks import check_kb

    with kb() as opened:
        findings = check_kb(read.library, opened, entailments)
    return RuleCheck(read.library, (*diagnostics, *(finding.diagnostic for finding in findings)), findings)


def _other_names(library: Library, names: str | None) -> Iterator[Diagnostic]:
    if names is None:
        return
    from hapax.grammar.name_checks import other_names
    from hapax.llm_oracle.backends.reference import open_names

    yield from other_names(library, open_names(names, library).canonical, names)


TEXT_FORMS = ("prolog", "rules", "link-json")
SQL_FORMS = ("duckdb", "postgres", "spark")
FORMS = (*TEXT_FORMS, *SQL_FORMS)
"""Forms in which `compile_rules` writes rules."""


@checked
def compile_rules(rules: Library, form: str = "prolog", *, only: str | Sequence[str] = ()) -> str:
    """Rules as a Prolog program (`prolog`), as rule text (`rules`), as LINK's rules.json (`link-json`), or as SQL.

    The SQL of `duckdb`, `postgres` and `spark` has a table for the facts of each predicate and views of what follows.
    It needs the extra `sql`. Raises HapaxError, with every reason, for rules that the database cannot run.
    """
    from hapax.engine.inference.derive import relevant_library
    from hapax.grammar.link_json import to_link_json
    from hapax.grammar.printing import format_library
    from hapax.grammar.prolog_text import program_text

    if form not in FORMS:
        raise HapaxError(f"There is no form {form!r}. Choose {' or '.join(FORMS)}.")
    if form in SQL_FORMS:
        rules = sound_rules(rules)
        concluded = chosen_rules(rules, only)
    if only:
        chosen = chosen_rules(rules, only)
        part = relevant_library(rules, *chosen)
        # A chosen rule stays even if the part needed to derive its conclusion leaves it out.
        rules = replace(part, rules=tuple(dict.fromkeys((*part.rules, *chosen))))
    if form in SQL_FORMS:
        with extras_named():
            from hapax.engine.logic.dialects import sql_text
        return sql_text(rules, concluded, form)
    return dict(zip(TEXT_FORMS, (program_text, format_library, to_link_json), strict=True))[form](rules)


def sound_rules(rules: Library) -> Library:
    """The rules without those that cannot be evaluated, which `left_out` of the result names with the reasons.

    Raises RulesRejected for an error that is not one of a rule, such as a cycle of types. Stored entailments that were
    added as rules stay: their types are a parser's, and their scores decide.
    """
    from hapax.grammar.sound_rules import sound_part
    from hapax.kb.schema import ENTAILS

    return sound_part(rules, ENTAILS)


def chosen_rules(rules: Library, names: str | Sequence[str] = ()) -> list[Rule]:
    """The named rules; without names all that can conclude something new, but for withdrawn ones and definitions.

    A definition is a rule that only defines a predicate for others. Raises HapaxError for a name that no rule has, and
    RulesRejected if every rule, or a named one, was left out for its errors.
    """
    from hapax.grammar.rule_checks import adds_nothing

    names = texts(names)
    if names:
        return [rules.rule(name) for name in names]
    if not rules.rules:
        rules.refuse_left_out(item.indicator for item in rules.left_out or ())
    kept = (rule for rule in rules.rules if not rules.is_definition(rule) and rule.withdrawn is None)
    return [rule for rule in kept if not adds_nothing(rule, rules)]


# --- facts ------------------------------------------------------------------------------------------------------------


@checked
def add_facts(
    kb: KnowledgeBase,
    predicate: str,
    rows: Iterable[Sequence[Any]] | pd.DataFrame | ArrowStream,
    rules: Library,
) -> int:
    """Hold facts true: rows of values, or a table whose columns are the arguments in order. Gives the new ones.

    A table is a data frame of pandas, or any with Arrow's PyCapsule protocol, such as one of polars. The predicate must
    be declared in `rules`, and the rows fit the declaration, as in `import_facts`. Raises FactsRejected with every
    faulty row, and then stores nothing.
    """
    from hapax.api.importing import rules_for_facts
    from hapax.kb.tables import import_rows

    name, slash, _ = predicate.partition("/")
    if slash:
        raise HapaxError(
            f"{predicate} is not the name of a predicate. Give the name alone, {name!r}: the rows tell how many."
        )
    if all(signature.name != predicate for signature in rules.completed().signatures):
        raise HapaxError(
            f"{predicate} is not declared in these rules. Add a line such as `given {predicate}(Type, Type)`."
        )
    report = import_rows(kb, predicate, rows, rules_for_facts(kb, rules))
    # The new facts may refute stored statements, or let others hold again.
    _revised(kb, rules)
    return report.added + report.promoted


@checked
def import_facts(
    kb: KnowledgeBase,
    source: str | Path | IO[str] | pd.DataFrame | ArrowStream,
    *,
    mapping: TableMapping | None = None,
    rules: Library | FactRules | None = None,
    form: str | None = None,
    skip_faulty: bool = False,
) -> ImportReport:
    """Import given facts from CSV or JSONL. Raises FactsRejected with every fault, and then imports nothing.

    `mapping`: which columns of a table are the arguments of which predicates, such as `TableMapping.of("lies_at",
    ["airport", "elevation"])` or `TableMapping.read(path)`; the source may then also be a TSV, Parquet or SQLite file,
    or a table in memory, as in `add_facts`. `rules`: their declarations are what the facts must fit; by default those
    of the rules that the knowledge base keeps, of whose predicates a file then need not have any. `FactRules(rules,
    names="reference:geo")` stores values under the canonical names of a reference, and what the file has as the fact's
    `basis`.
    """
    from hapax.api.importing import rules_for_facts
    from hapax.kb import tables

    if mapping is None and is_table(source):
        raise HapaxError("A table needs a mapping. Give mapping=hapax.TableMapping.of(predicate, columns).")
    fitting = rules_for_facts(kb, rules)
    report = tables.import_facts(kb, source, mapping=mapping, form=form, skip_faulty=skip_faulty, rules=fitting)
    fallen, risen = _revised(kb, fitting.library)
    return replace(report, fallen=fallen, risen=risen)


def _revised(kb: KnowledgeBase, rules: Library | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts of the stored statements that fell, and of those that rose, by facts that were added.

    They are proved by the rules that the knowledge base keeps, otherwise by `rules` or the shipped ones.
    """
    if not kb.unrevised_statements():
        return (), ()
    from hapax.api.kept_rules import kept_rules
    from hapax.engine.withdrawal import revise_statements

    change = revise_statements(kept_rules(kb) or rules or load_rules(), kb)
    # By id: a statement has a row for each run and end.
    fallen = {statement.id: statement.text for statement in change.fallen}
    risen = {statement.id: statement.text for statement in change.risen}
    return tuple(fallen.values()), tuple(risen.values())


@checked
def merge(kb: KnowledgeBase, source: str | Path) -> MergeReport:
    """Copy everything that another knowledge base holds into this one.

    Raises FactsRejected, and copies nothing, if given facts there do not fit the rules that this one keeps.
    """
    from hapax.api.importing import check_given_facts
    from hapax.kb import merge as merging

    check_given_facts(kb, Path(source))
    report = merging.merge(kb, Path(source))
    return replace(report, fallen=_revised(kb)[0])


# --- search -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BudgetedModels(Models):
    """The models of the four roles, with the budget that each operation on them keeps; None: no limit.

    `journal`: the one that the models were opened with, which holds their probes and prices. `retry_unusable`: ask once
    more for what had no usable reply.
    """

    budget: Budget | None = None
    journal: Journal | None = None
    retry_unusable: bool = False


@checked
@extras_named()
def open_models(
    knowledge: str = "embedded",
    critic: str | None = None,
    likelihood: str | None = None,
    evaluator: str = "frequency",
    *,
    budget: Budget | None = None,
    **options: Any,
) -> BudgetedModels:
    """The models of a search, by model strings such as `embedded`, `hf:NAME` and `openai:MODEL@URL`.

    Critic and likelihood are the knowledge model unless they are named. `budget`: the most that each search or goal
    with these models may send. `options`: the fields of `OpeningOptions`, for instance `seed`, `device` and `aliases`;
    a simulated world needs `library`. A `journal` keeps what probing a server takes and finds.
    """
    from hapax.llm_oracle.backend import OpeningOptions
    from hapax.llm_oracle.registry import open_models as open_by_name

    known = [field.name for field in fields(OpeningOptions)]
    # `OpeningOptions` itself would raise a TypeError, without the names of its options.
    if unknown := sorted(options.keys() - set(known)):
        raise HapaxError(f"open_models has no option {', '.join(unknown)}. Its options are {', '.join(known)}.")
    opening = OpeningOptions(**options)
    models = open_by_name(knowledge, critic, likelihood, evaluator, options=opening)
    roles = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    return BudgetedModels(*roles, models.names, budget, opening.journal, opening.retry_unusable)


def journal_of(kb: KnowledgeBase, models: Models) -> Journal:
    """The journal of the models, else a journal of the knowledge base under their budget and prices."""
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.registry import price_table

    if isinstance(models, BudgetedModels) and models.journal is not None:
        return models.journal
    if not isinstance(models, BudgetedModels):
        return Journal(kb, None, price_table(models))
    return Journal(kb, models.budget, price_table(models), retry_unusable=models.retry_unusable)


@checked
class Progress(ProgressCounter):
    """The state of a running search, given to the progress callback at each event: calls, hits, accepted, share ..."""

    def __init__(self, callback: Callable[[Progress], None]) -> None:
        super().__init__()
        self._callback = callback

    def started(self, rules: int, calls: int) -> None:
        # The counter first, so that the callback sees the event counted.
        super().started(rules, calls)
        self._callback(self)

    def searching(self, rules: Sequence[str], calls: int) -> None:
        super().searching(rules, calls)
        self._callback(self)

    def expecting(self, calls: int) -> None:
        super().expecting(calls)
        self._callback(self)

    def advanced(self, calls: int, hits: int, accepted: int, rejected: int) -> None:
        super().advanced(calls, hits, accepted, rejected)
        self._callback(self)

    def paused(self, is_paused: bool) -> None:
        super().paused(is_paused)
        self._callback(self)


@checked
@extras_named()
def search(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
) -> SearchResult:
    """Search head and long-tail statements for rules and store them with their proofs.

    `only`: a name or names of rules, instead of all. Unless `settings` name a prompt profile, the one that suits the
    model best is probed, once per model. Rules with errors are left out; `check_rules` names them.
    The same search again asks nothing twice; one that reached its budget goes on.
    Ctrl-C (KeyboardInterrupt) loses nothing that was answered.
    """
    from hapax.engine.search.job import SearchJob
    from hapax.engine.search.settings import SearchSettings

    rules = sound_rules(rules)
    display = None if progress is None else Progress(progress)
    chosen, settings = chosen_rules(rules, only), settings or SearchSettings()
    return run_search(SearchJob(rules, chosen, kb, models, settings, journal_of(kb, models), display))


@extras_named()
def run_search(job: SearchJob) -> SearchResult:
    """Search as a prepared job says; `search` prepares one from rules, knowledge base and models."""
    from hapax.api.results import SearchResult
    from hapax.engine.search.search import search as search_rules
    from hapax.engine.withdrawal import revise_statements

    result = SearchResult(search_rules(job))
    # What its gates withdrew may not be the only proof of earlier statements, and its facts may refute some.
    revise_statements(job.library, job.kb)
    return result


@checked
@extras_named()
def plan(
    rules: Library,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    only: str | Sequence[str] = (),
) -> RunEstimate:
    """Estimate the calls and cost of a search, given the answers in the knowledge base. No model is asked."""
    from hapax.engine.search.estimate import estimate_run
    from hapax.engine.search.job import SearchJob
    from hapax.engine.search.profile_choice import ProfileChooser, settled
    from hapax.engine.search.settings import SearchSettings
    from hapax.llm_oracle.journal import Journal
    from hapax.llm_oracle.registry import price_table

    rules = sound_rules(rules)
    settings = settings or SearchSettings()
    # A profile that is not chosen yet is probed by the search; the plan counts these requests.
    choice = ProfileChooser(kb, rules, models.knowledge, Journal(kb), can_ask=False).choose(settings)
    chosen = chosen_rules(rules, only)
    retry = isinstance(models, BudgetedModels) and models.retry_unusable
    job = SearchJob(rules, chosen, kb, models, settled(settings, choice))
    return estimate_run(job, prices=price_table(models), retry_unusable=retry, probes=choice.probes)


@checked
def with_entailments(rules: Library, kb: KnowledgeBase, at_least: float, goal: str | None = None) -> Library:
    """The rules and, as further rules, the entailments between predicates that the knowledge base scores this high.

    With a goal: those that it can use, on chains whose product of scores is as high. They are looked up, so that a
    graph of a million entailments costs a goal no more than its own chains. A text without an atom, such as a
    statement, stands for every predicate of the rules.
    """
    from hapax.engine.entailment.graph import edges
    from hapax.engine.entailment.graph import with_entailments as add_entailments
    from hapax.engine.entailment.lookup import called_names, edges_into

    if goal is None:
        return add_entailments(rules, edges(kb, at_least))
    names = called_names(goal) or [signature.name for signature in rules.completed().signatures]
    return add_entailments(rules, edges_into(kb, rules, names, at_least))


# --- inference --------------------------------------------------------------------------------------------------------


@checked
@extras_named()
def query(
    goal: str,
    rules: Library,
    kb: KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    models: Models | None = None,
    options: QueryOptions | None = None,
) -> Answers:
    """The answers of a Prolog goal over the facts of a knowledge base and the conclusions of rules.

    `assume`: ground atoms held true for this goal alone. With `models` the goal asks them for the facts that it lacks,
    within their budget, and stores these. Raises RulesRejected, GoalRejected and LimitExceeded.
    """
    from hapax.api.results import Answers
    from hapax.engine.inference.theory import Theory
    from hapax.engine.logic.query import run_query
    from hapax.engine.query_options import QueryOptions

    rules = sound_rules(rules)
    theory = Theory(rules, kb, texts(assume))
    options = options or QueryOptions()
    limits, probability = options.limits, options.probability
    if models is None:
        if probability is not None:
            from hapax.engine.probability.answers import probable_answers

            return Answers.probable(probable_answers(theory, goal, probability, limits))
        return Answers(run_query(theory, goal, limits))
    from hapax.engine.inference.limits import QueryLimits
    from hapax.engine.search.demand import DemandBudget, run_demand
    from hapax.engine.search.oracle import Oracle
    from hapax.engine.search.profile_choice import ProfileChooser, settled
    from hapax.engine.search.settings import SearchSettings

    journal = journal_of(kb, models)
    settings = options.settings or SearchSettings()
    # With the journal of the goal, so that a probe counts against its budget.
    settings = settled(settings, ProfileChooser(kb, rules, models.knowledge, journal).choose(settings))
    oracle = Oracle(kb, rules, models, settings.oracle, run_id="query", journal=journal)
    oracle.known.looks_up = oracle.takes_parts = True
    # Rounds and questions have limits of their own; the journal limits calls and money.
    result = run_demand(theory, goal, oracle, DemandBudget(limits=limits or QueryLimits()))
    _revised(kb, rules)
    stopped = str(oracle.budget_reached or result.stopped) if result.stopped else ""
    # Over the facts that were asked for as well.
    if probability is not None:
        from hapax.engine.probability.answers import probable_answers

        return Answers.probable(probable_answers(theory, goal, probability, limits), result.complete, stopped)
    return Answers(result.result, complete=result.complete, stopped=stopped)


@checked
@extras_named()
def derive(
    rules: Library,
    kb: KnowledgeBase,
    *,
    only: str | Sequence[str] = (),
    probability: ProbabilityOptions | None = None,
    seconds: float | None = None,
) -> Derivation:
    """Derive everything that rules conclude from the stored facts, in bulk, and store it. No model is asked.

    Where statements are stored and few facts have changed since, only what the change affects is derived.
    `probability`: the statements come with the probabilities of what their rules need, the most probable first.
    `seconds`: a time limit, after which LimitExceeded is raised and nothing is stored. The report names the rules that
    were left out for their errors.
    """
    from hapax.api.results import Derivation, StatementChances
    from hapax.engine.inference.derive import relevant_library
    from hapax.engine.logic.derive import derive_all, read_statements
    from hapax.engine.logic.statement_lines import statement_lines
    from hapax.engine.probability.answers import basis_of
    from hapax.engine.probability.options import ProbabilityOptions
    from hapax.engine.probability.statements import statement_probabilities

    rules = sound_rules(rules)
    chosen = chosen_rules(rules, only)
    # With the rules that derive premises of the chosen ones.
    library = relevant_library(rules, *chosen) if only else rules

    # Read when they are asked for, and not before: there may be millions.
    def stored() -> Generator[StatementRecord]:
        for rule in chosen:
            yield from read_statements(kb, library, rule)

    def lines(line_of: LineWriter) -> Generator[list[str]]:
        for rule in chosen:
            yield from statement_lines(kb, library, rule, line_of)

    def chances() -> Generator[list[Probability]]:
        for rule in chosen:
            yield statement_probabilities(kb, library, rule, probability or ProbabilityOptions())

    report = derive_all(kb, library, chosen, seconds=seconds)
    report = replace(report, left_out=tuple(map(str, rules.left_out or ())))
    if probability is None:
        return Derivation(report, stored, lines)
    return Derivation(report, stored, lines, StatementChances(chances, probability.at_least, basis_of(kb)))


@checked
@extras_named()
def why(
    text: str | Statement,
    rules: Library,
    kb: KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    probability: ProbabilityOptions | None = None,
    seconds: float = 60,
) -> Explanation:
    """Explain why a statement, given itself or by text or id, or an atom holds, down to prompts and thresholds.

    `probability`: first the probability of the atom, or of what the statement's rule needs, with its best proofs.
    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    from hapax.api.results import Explanation
    from hapax.engine.explain import why as explain
    from hapax.engine.inference.theory import Theory
    from hapax.engine.logic.limits import time_limit

    rules = sound_rules(rules)
    named = text if isinstance(text, str) else text.id
    with time_limit(kb, seconds, "seconds"):
        return Explanation(explain(Theory(rules, kb, texts(assume)), named, probability=probability))


@checked
def why_not(
    atom: str, rules: Library, kb: KnowledgeBase, *, assume: str | Sequence[str] = (), seconds: float = 60
) -> Explanation:
    """Explain which gate stopped a value, or which premise of which rule failed.

    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    from hapax.api.results import Explanation
    from hapax.engine.explain import why_not as explain_failure
    from hapax.engine.inference.theory import Theory
    from hapax.engine.logic.limits import time_limit

    rules = sound_rules(rules)
    with time_limit(kb, seconds, "seconds"):
        return Explanation(explain_failure(Theory(rules, kb, texts(assume)), atom))
