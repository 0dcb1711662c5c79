"""Knowledge beam search: from rules to head and long-tail statements (LINK, section 2.3), in large batches.

Several rules take the steps of their plans side by side. At each step all their questions, over all beams and both
distributions, are one batch; so are the literals to check and the texts to rank. Nothing is asked twice.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from hapax.engine.gates.decidable import GivenFacts, Origin, numbered, origin_of, shape_of
from hapax.engine.gates.gates import COMPUTED, CONSISTENCY, CRITIC, DERIVED
from hapax.engine.gates.inquiry import Inquiry, QuestionAnswer
from hapax.engine.inference.derive import BULK_LIMITS, KeptSubstitutions, relevant_library
from hapax.engine.inference.theory import QueryResult, Theory
from hapax.engine.logic.goal_rules import rule_of, with_rules
from hapax.engine.logic.proofs import derive_statements
from hapax.engine.prolog.session import PrologTerm
from hapax.engine.search.beams import RuleSearch
from hapax.engine.search.demand_loop import DemandBudget, run_demand
from hapax.engine.search.judge_scores import critic_names
from hapax.engine.search.oracle import Oracle, journaled
from hapax.engine.search.progress import Progress, RunFile, StateWriter
from hapax.engine.search.promises import Promises, certificate_lines
from hapax.engine.search.ranking import Beam, joined_measures, measured_parts
from hapax.engine.search.search_report import (
    RuleReport,
    SearchReport,
    rule_report,
    spent_before,
    unanswerable,
    with_earlier,
)
from hapax.engine.search.settings import SearchJob, SearchSettings, settled_job
from hapax.grammar.data_types import OBJECT
from hapax.grammar.dependencies import PlanCosts, Rows, SearchPlan, Yields, cost_from, plan
from hapax.grammar.errors import HapaxError, Place
from hapax.grammar.goals import Goal
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Literal, Value
from hapax.kb.files import system
from hapax.kb.judgement_records import CERTIFICATES
from hapax.kb.records import (
    DECISIONS,
    PREDICATES,
    RULES,
    RUNS,
    Decision,
    Distribution,
    PredicateRecord,
    RuleRecord,
    RunRecord,
    Source,
    StatementRecord,
    content_id,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import BudgetReached, Deferred
from hapax.llm_oracle.critics.circularity import is_circular
from hapax.llm_oracle.critics.measures import Measure, TextMeasures, chosen_measure, counts_names, kept_measures
from hapax.llm_oracle.journal import BatchReport, Journal
from hapax.llm_oracle.protocols import KNOWLEDGE, Models
from hapax.llm_oracle.reading.replies import READER_VERSION, STRICT_READER_VERSION

DEMAND = DemandBudget(rounds=50, questions=20_000, verifications=20_000, limits=BULK_LIMITS)
"""Limits of what one step asks for derived predicates. A run is limited by its journal's budget."""

GC_THRESHOLD = 50_000
"""Objects allocated between two garbage collections during a search; Python's 700 are meant for small programs."""

Answers = Mapping[Inquiry, QuestionAnswer]
Bindings = dict[str, Value]


def search(job: SearchJob) -> SearchReport:
    """Search the job's rules and store everything. The same job again replays the journal and asks nothing twice.

    Of a rule that a budget ends, only answers and the facts that they settle are stored: half of its values would make
    other statements than all of them. The search goes on with rules that the journal can answer, and the report names
    those that were cut. Ctrl-C marks the run as interrupted and is raised again.
    """
    journal = job.journal or Journal(job.kb)
    job = settled_job(replace(job, journal=journal, models=journaled(job.models, journal)), journal)
    job = replace(job, settings=settled_measure(job.settings, job.models))
    kb, promises = job.kb, Promises.of(job.kb, job.library, critic_names(job.models.critic), job.settings)
    run = run_record(job, promises)
    earlier = kb.first(RUNS, id=run.id)
    spent = spent_before(earlier.summary if earlier is not None else {})
    run = replace(run, summary={"calls": spent})
    # Rules and predicates are stored with the run, so that its statements can be read without the rule files.
    kb.add(RUNS, [run])
    kb.add(RULES, map(RuleRecord.of, job.rules))
    for certificates in promises.certificates:
        kb.add(CERTIFICATES, certificates.of_run(kb, run.id))
    kb.add(PREDICATES, (PredicateRecord.of(signature) for signature in job.library.completed().signatures))
    oracle = Oracle(job, run.id, promises)
    try:
        with _watched(job, journal, run) as progress, _rare_garbage_collection():
            report = SearchRun(job, oracle, progress).report()
    except BaseException as fault:
        with suppress(HapaxError):  # on a full disk the end cannot be stored, and the first fault is what matters
            so_far = {"calls": with_earlier(spent, journal.statistics)}
            kb.finish_run(run.id, "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed", so_far)
        raise
    kb.finish_run(run.id, report.status, report.summary() | {"calls": with_earlier(spent, report.statistics)})
    return report


@contextmanager
def _watched(job: SearchJob, journal: Journal, run: RunRecord) -> Iterator[Progress]:
    """The progress of a search that other processes see until the block ends."""
    watchers = [] if job.progress is None else [job.progress]
    if job.kb.path is None:
        yield Progress(watchers)
        return
    file = RunFile(job.kb.path, run.id)
    file.remove()
    try:
        yield Progress([StateWriter(file, journal).show, *watchers])
    finally:
        file.remove()


@contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Collect garbage rarely while the block runs."""
    # A search makes millions of records that stay; scanning them for cycles takes a fifth of its time.
    before = gc.get_threshold()
    if before[0] == GC_THRESHOLD:  # a search in another thread has set it, and will set it back
        yield
        return
    gc.set_threshold(GC_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def trial(job: SearchJob, promises: Promises, run_id: str = "") -> Iterator[tuple[SearchJob, Oracle]]:
    """A job and its oracle in memory, with the given facts, that go on with the answers that are there."""
    with KnowledgeBase() as scratch:
        # Facts of models come from the stored answers, as they do in a search.
        scratch.add_facts(fact for fact in job.kb.facts() if fact.source is Source.GIVEN)
        own = replace(job, kb=scratch)
        yield own, Oracle(own, run_id, promises, takes_parts=True, finished=job.kb)


def settled_measure(settings: SearchSettings, models: Models) -> SearchSettings:
    """The settings with the measure that the ranker gives, as `chosen_measure` says."""
    if settings.likelihood != "model" or (settings.compat and not counts_names(models.likelihood)):
        return settings  # LINK's ways rank by the plain likelihood, whatever else a model gives
    measure = chosen_measure(models.likelihood, settings.wanted_measure)
    return replace(settings, measure=measure.value)


def run_record(job: SearchJob, promises: Promises) -> RunRecord:
    """The run's identity: the same rules, predicates, settings, models, calibration and promise are the same run."""
    models, library, settings = job.models, job.library, job.settings.to_json() | promises.checksums
    roles = (models.knowledge, models.critic, models.likelihood, models.evaluator)
    names = [model.identity.title for model in roles]
    # The place is where the rule file lies: moving a file does not make another run.
    signatures = library.completed().signatures
    predicates = sorted(repr(replace(signature, place=Place())) for signature in signatures)
    predicates += sorted(f"{item.indicator} within {item.tolerance}" for item in signatures if item.tolerance)
    predicates += sorted(map(str, library.declarations))
    # The order of facts and subtypes in the files has no meaning, so it must not make another run.
    given = sorted(map(str, library.facts))
    subtypes = sorted(map(list, library.subtypes))
    rules = [str(rule) for rule in job.rules]
    # Any change of these parts or their order would make every stored run a different one.
    fingerprint = content_id("run", rules, predicates, given, subtypes, str(settings), names)
    # The reader is not part of the identity: a finished question is not read again by a newer one.
    reader = READER_VERSION if job.settings.compat is None else STRICT_READER_VERSION
    # Nor are the teachers, by which reports tell circular judges.
    teachers = {name: list(model.identity.taught_by) for name, model in zip(names, roles, strict=True)}
    run_rules = [rule.name for rule in job.rules]
    stored = {**settings, "models": names, "taught_by": teachers, "rules": run_rules, "reader": reader}
    return RunRecord(fingerprint, "search", stored, fingerprint, system.now().isoformat(timespec="seconds"))


@dataclass
class SearchRun:
    """One run of a job: `report` plans its rules and searches them in groups, each group step by step.

    A step extends the beams of its rules (`extend`: questions are asked, and gates judge the values), drops those for
    which a premise does not hold (`close`), and keeps each end's share of the others (`rank`). Statements are derived
    from the beams that the last step leaves.

    `seconds`: processor time for the values that given facts give in a step. `_sent`: inquiries of all rules so far,
    whose calls are counted.
    """

    job: SearchJob
    oracle: Oracle
    progress: Progress = field(default_factory=Progress)
    seconds: float = BULK_LIMITS.seconds
    _sent: set[Inquiry] = field(default_factory=set)
    _group: list[RuleSearch] = field(default_factory=list)

    @cached_property
    def facts(self) -> GivenFacts:
        """The facts that decide premises without a model."""
        return GivenFacts(self.oracle.known, self.job.library, self.seconds)

    def report(self) -> SearchReport:
        """Search all rules that the models can answer."""
        library, settings = self.job.library, self.job.settings
        plans: list[SearchPlan] = []
        reports: dict[str, RuleReport] = {}
        for rule in self.job.rules:
            reason = unanswerable(rule, library, self.oracle.models, settings.order)
            if reason is None:
                plans.append(plan(rule, library, settings.order))
            else:
                reports[rule.name] = RuleReport(rule.name, rule.domain, skipped=reason)
        # Under a budget rules go one by one, so that some are complete when it is reached.
        together = settings.rules_together if self.oracle.journal.budget.is_unlimited else 1
        with _reported_to(self.progress, self.oracle):
            self.progress.started(len(plans), _expected_calls(plans, library, settings))
            uses, last_derived = _last_uses(plans, library)
            for start in range(0, len(plans), together):
                group = plans[start : start + together]
                names = [rule_plan.rule.name for rule_plan in group]
                self.progress.searching(names, _expected_calls(group, library, settings))
                for report in self._search_group(group):
                    reports[report.rule] = report
                number = start + len(group)
                needed = {indicator for indicator, last in uses.items() if last >= number}
                # Free what no further rule uses, so that memory does not grow with the rules.
                self.oracle.keep_only(needed)
                self._sent.difference_update([inquiry for inquiry in self._sent if not inquiry.is_about(needed)])
                if number > last_derived:
                    self.oracle.known.keep_only(needed)
        return self._closing(tuple(reports[rule.name] for rule in self.job.rules))

    def _closing(self, rules: tuple[RuleReport, ...]) -> SearchReport:
        oracle, settings, models = self.oracle, self.job.settings, self.oracle.models
        reached = oracle.scorer.budget_reached
        if reached is not None:
            reached.used = oracle.journal.used  # smaller requests may have been sent since
        is_consistency_on = oracle.consistency.is_needed and CONSISTENCY in oracle.gates
        records = chain.from_iterable(certificates.records for certificates in oracle.promises.certificates)
        ranks = settings.likelihood == "model" and settings.beam is not None
        probe = None if reached else oracle.scorer.critic_probe()
        return SearchReport(
            oracle.run_id,
            rules,
            oracle.journal.statistics,
            "budget" if reached else "done",
            str(reached) if reached else None,
            oracle.consistency.conflicts if is_consistency_on else None,
            critic_probe=probe,
            threshold=oracle.rule_of_facts.start,
            certificates=tuple(certificate_lines(list(records))),
            evaluator=models.evaluator.identity.name,
            is_circular=ranks and is_circular(models.evaluator.identity, models.likelihood.identity),
        )

    def _search_group(self, plans: Sequence[SearchPlan]) -> list[RuleReport]:
        """Search the rules together, or one by one if a budget ends that: some may need nothing that is missing."""
        try:
            return self._search_together(plans)
        except BudgetReached as reached:
            if len(plans) > 1:
                return list(chain.from_iterable(self._search_group([rule_plan]) for rule_plan in plans))
            (rule_search,) = self._group
            if isinstance(reached, Deferred):
                # Go on with the answers that are there, and store nothing: what does not depend on a missing one is
                # queued in the same round, since each may take a day.
                with trial(self.job, self.oracle.promises, self.oracle.run_id) as (job, oracle):
                    SearchRun(job, oracle)._search_together(plans)
        rule, questions = rule_search.plan.rule, len(rule_search.questions)
        gates, calls, hits = rule_search.gates, rule_search.calls, rule_search.hits
        return [RuleReport(rule.name, rule.domain, {}, gates, questions, calls, hits, cut=True)]

    def _search_together(self, plans: Sequence[SearchPlan]) -> list[RuleReport]:
        """Take the rules through all steps of their plans; rules with short plans wait for the others."""
        library, settings = self.job.library, self.job.settings
        # LINK tests a premise once all its variables have values.
        facts = None if settings.compat else self.facts
        run_id = self.oracle.run_id
        searches = [RuleSearch(rule_plan, library, settings, run_id, facts=facts) for rule_plan in plans]
        self._group = searches
        while active := [rule_search for rule_search in searches if rule_search.step is not None]:
            if any(rule_search.step_number for rule_search in active):
                self.progress.expecting(sum(map(_calls_left, active)))
            waiting = active
            while waiting:
                for rule_search in waiting:
                    rule_search.take_needed()
                self.extend(waiting)
                self.close(waiting)
                waiting = [rule_search for rule_search in waiting if rule_search.needs_more()]
            self.rank(active)
            decisions: list[Decision] = []
            for rule_search in active:
                decisions += rule_search.decisions
                rule_search.decisions.clear()
            self.job.kb.add(DECISIONS, decisions)
        for rule_search in searches:
            rule_search.finish()
            self.job.kb.add(DECISIONS, rule_search.decisions)
            rule_search.decisions.clear()
        return [self._report(rule_search) for rule_search in searches]

    # -- the three phases of a step

    def extend(self, active: Sequence[RuleSearch]) -> None:
        """Extend the beams of each rule by the values of its step's variable."""
        inquiries = {rule_search: rule_search.inquiries() for rule_search in active}
        batch: list[Inquiry] = []
        for by_beam in inquiries.values():
            batch.extend(by_beam.values())
        answers = self.oracle.answers(batch, lambda proposed: self._worth_judging(inquiries, proposed))
        for rule_search in active:
            match rule_search.origin:
                case Origin.MODEL:
                    by_beam = inquiries[rule_search]
                    self._count(rule_search, {inquiry: answers[inquiry] for inquiry in by_beam.values()})
                    self._wait(rule_search, [beam for beam, asked in by_beam.items() if not answers[asked].complete])
                    rule_search.extend({beam: answers[inquiry] for beam, inquiry in by_beam.items()})
                case Origin.COMPUTED:
                    rule_search.compute()
                case _:
                    self._extend_without_asking(rule_search)

    def _worth_judging(
        self, inquiries: Mapping[RuleSearch, Mapping[Beam, Inquiry]], proposed: Mapping[Inquiry, Sequence[Value]]
    ) -> dict[Inquiry, set[Value]]:
        """By inquiry, the values with which a beam of some rule passes the premises that need no model."""
        wanted: dict[Inquiry, set[Value]] = {inquiry: set() for inquiry in proposed}
        for rule_search, by_beam in inquiries.items():
            extended: dict[Beam, Inquiry] = {}
            for beam, inquiry in by_beam.items():
                extended |= {beam.extended(value): inquiry for value in proposed.get(inquiry, ())}
            for beam in rule_search.passing(extended):
                wanted[extended[beam]].add(beam.values[-1])
        return wanted

    def _extend_without_asking(self, rule_search: RuleSearch) -> None:
        """Extend beams by values that given facts or rules give; models are asked only for facts below the rules."""
        name, atoms, literal = rule_search.names[-1], rule_search.open_atoms(), rule_search.generator
        if rule_search.origin is Origin.GIVEN or (rule_search.facts is not None and rule_search.facts.decide(literal)):
            values = self.facts.values(atoms.values(), name)
        else:
            values = {
                atom: list(dict.fromkeys(row[name] for row in rows))
                for atom, rows in self._derived(rule_search, list(dict.fromkeys(atoms.values()))).items()
            }
        rule_search.extend_with({beam: values[atom] for beam, atom in atoms.items()})

    def close(self, active: Sequence[RuleSearch]) -> None:
        """Drop the beams for which a comparison or a premise that has all its values now does not hold."""
        judged: list[tuple[RuleSearch, Literal]] = []
        derived: list[tuple[RuleSearch, Literal]] = []
        for rule_search in active:
            rule_search.test()  # first, because it costs no call
            for literal in rule_search.checked():
                if rule_search.facts is not None and rule_search.facts.decide(literal):
                    continue  # the test has decided it
                is_derived = origin_of(literal, self.job.library) is Origin.DERIVED
                (derived if is_derived else judged).append((rule_search, literal))
        self._judge(judged)
        for rule_search, literal in derived:
            self._prove(rule_search, literal)

    def _prove(self, rule_search: RuleSearch, literal: Literal) -> None:
        """Close a derived literal."""
        atoms = rule_search.ground(literal)
        # `_derived` sets `cut`; here it must say whether this literal was cut.
        was_cut, rule_search.cut = rule_search.cut, False
        rows = self._derived(rule_search, list(dict.fromkeys(atoms)))
        if literal.negated:
            # An atom whose proof the limits cut short is not known to be false.
            passed = [not rows[atom] and not rule_search.cut for atom in atoms]
        else:
            passed = [bool(rows[atom]) for atom in atoms]
        rule_search.drop(DERIVED, passed, str(literal))
        rule_search.cut = rule_search.cut or was_cut

    def _wait(self, _: RuleSearch, beams: Sequence[Beam]) -> None:
        """Called for beams whose answers are missing, before they are dropped. A plan counts them."""

    def _judge(self, checked: Sequence[tuple[RuleSearch, Literal]]) -> None:
        """Close literals that arithmetic, given facts or the critic decide, all of them by one batch."""
        self.oracle.probabilities(chain.from_iterable(search.ground(literal) for search, literal in checked))
        for rule_search, literal in checked:
            atoms = rule_search.ground(literal)
            verdicts = self.oracle.verdicts(atoms, literal.negated)
            paired = zip(rule_search.beams, atoms, strict=True)
            self._wait(rule_search, [beam for beam, atom in paired if atom not in verdicts])
            passed: list[bool] = []
            failing: list[float] = []
            for atom in atoms:
                verdict = verdicts.get(atom)  # None: the answer is queued
                passed.append(verdict is not None and (verdict.is_false if literal.negated else verdict.is_true))
                if verdict is not None and verdict.score is not None and not passed[-1] and not literal.negated:
                    failing.append(verdict.score)
            kind = self.job.library.signature(literal.atom.indicator).kind
            gate = COMPUTED if kind is PredicateKind.COMPUTED else CRITIC
            highest = max(failing, default=None) if gate is CRITIC else None
            rule_search.drop(gate, passed, str(literal), highest)

    def rank(self, active: Sequence[RuleSearch]) -> None:
        """Keep each distribution's share of the beams, or the first beams where this step does not rank."""
        settings = self.job.settings
        texts = {rule_search: rule_search.texts() for rule_search in active if rule_search.is_ranked}
        batch = list(dict.fromkeys(chain.from_iterable(own.values() for own in texts.values())))
        scores: dict[str, float] = {}
        measures: dict[RuleSearch, dict[str, TextMeasures]] = {}
        if settings.likelihood == "random":
            scores = dict.fromkeys(batch, 0.0)  # a beam whose text has no score would be dropped
        elif settings.compat is not None:
            scores = self.oracle.scorer.log_likelihoods(batch)
        else:
            measures = self._measures(texts)
        for rule_search in active:
            if rule_search not in texts:
                rule_search.advance_unranked()
                continue
            own, joined = texts[rule_search], measures.get(rule_search)
            if joined is not None:
                wanted = Measure(settings.measure or Measure.PAPER)
                scores = {text: found.scores[wanted] for text, found in joined.items() if wanted in found.scores}
            self._wait(rule_search, [beam for beam, text in own.items() if text not in scores])
            rule_search.rank(own, scores, joined)

    def _measures(self, texts: Mapping[RuleSearch, Mapping[Beam, str]]) -> dict[RuleSearch, dict[str, TextMeasures]]:
        """The ranker's measures of the texts: those that are kept where ends are cut, elsewhere the one that ranks."""
        ranker, wanted = self.oracle.models.likelihood, Measure(self.job.settings.measure or Measure.PAPER)
        found: dict[RuleSearch, dict[str, TextMeasures]] = {}
        for divides, measures in ((True, kept_measures(ranker, wanted)), (False, [wanted])):
            searches = [search for search in texts if search.divides == divides]
            pairs = chain.from_iterable(texts[search].items() for search in searches)
            batch = measured_parts((text, beam.values) for beam, text in pairs)
            known = self.oracle.scorer.measures(batch.values(), measures)
            for search in searches:
                found[search] = joined_measures(dict.fromkeys(texts[search].values()), known)
        return found

    # -- derived predicates

    def _derived(self, rule_search: RuleSearch, atoms: Sequence[Atom]) -> dict[Atom, list[Bindings]]:
        """By atom, the values of its variables that follow by rules, after asking the models for missing facts.

        A rule search whose atoms could not be asked to the end, within the limits of a loop, is marked as cut. Raises
        BudgetReached.
        """
        found: dict[Atom, list[Bindings]] = {atom: [] for atom in atoms}
        theory = Theory(self.job.library, self.job.kb, known=self.oracle.known)
        if not atoms:
            return found
        goal, joined = _joined(theory, atoms)
        demanded = run_demand(joined, goal, self.oracle, DEMAND)
        self._count(rule_search, demanded.answers)
        if demanded.budget is not None and not demanded.complete:
            raise demanded.budget
        rule_search.cut = rule_search.cut or not demanded.complete
        for number, *values in _plain_rows(demanded.result):
            found[atoms[int(number)]].append(dict(zip(goal.variables[1:], values, strict=True)))
        # Given values are of whatever type their facts and rules say.
        is_given = self.facts.needs_no_model(Literal(atoms[0]))
        return found if is_given else self._of_declared_types(found)

    def _of_declared_types(self, found: Mapping[Atom, list[Bindings]]) -> dict[Atom, list[Bindings]]:
        """The rows whose values are of the variables' types. A derived predicate may join values of every type."""
        values: set[Value] = set()
        for rows in found.values():
            for row in rows:
                values.update(row.values())
        types = self._types(values)

        def fits(value: Value, data_type: str) -> bool:
            known = types.get(value, ())  # a value that no fact has fits everywhere
            return not known or any(self.job.library.is_subtype(known_type, data_type) for known_type in known)

        fitting: dict[Atom, list[Bindings]] = {}
        for atom, rows in found.items():
            types_of = {variable.name: variable.data_type for variable in atom.variables}
            fitting[atom] = [row for row in rows if all(fits(row[name], types_of[name]) for name in types_of)]
        return fitting

    def _types(self, values: set[Value]) -> dict[Value, set[str]]:
        """The types under which facts have these values."""
        types: dict[Value, set[str]] = {}
        signatures = self.job.library.completed().signatures if values else ()
        for signature in signatures:
            for fact in self.oracle.known.of_run(signature.indicator):
                for value, data_type in zip(fact.arguments, fact.types, strict=False):
                    if value in values:
                        types.setdefault(value, set()).add(data_type)
        return types

    # -- the report

    def _count(self, rule_search: RuleSearch, answers: Answers) -> None:
        """Count answers: each question once per rule, and its calls for the first rule of the run that asked it."""
        for inquiry, answer in answers.items():
            # The oracle answers a repeated inquiry from memory, with the calls of the first time.
            rule_search.count_answer(inquiry, answer, 0 if inquiry in self._sent else answer.sent)
            self._sent.add(inquiry)

    def _report(self, rule_search: RuleSearch) -> RuleReport:
        """Derive and store the statements of a rule, and report them."""
        rule, settings = rule_search.plan.rule, self.job.settings
        # A search that ran out of beams stopped at an earlier step.
        is_complete = rule_search.step_number == len(rule_search.plan.steps)
        statements = self._statements(rule_search) if is_complete else []
        kept: dict[Distribution, list[StatementRecord]] = {}
        for distribution in settings.distributions:
            kept[distribution] = [statement for statement in statements if statement.distribution is distribution]
        self.job.kb.replace_statements(self.oracle.run_id, rule.name, list(chain.from_iterable(kept.values())))
        return rule_report(rule_search, kept)

    def _statements(self, rule_search: RuleSearch) -> list[StatementRecord]:
        """The statements that follow from the kept beams, scored by the evaluator."""
        rule = rule_search.plan.rule
        facts = []
        for signature in relevant_library(self.job.library, rule).completed().signatures:
            facts += self.oracle.known.of_run(signature.indicator)
        kept = KeptSubstitutions(rule, rule_search.substitutions(), self.oracle.run_id)
        denied = chain.from_iterable(map(self.oracle.known.denials, sorted(self.job.library.open_negations)))
        statements = derive_statements(self.oracle.kb, self.job.library, facts, kept, denied)
        if self.oracle.promises.statements is not None:
            derived = list(statements)
            statements = self.oracle.promises.statements.kept(derived)
            rule_search.uncertain = len(derived) - len(statements)
        scores = self.oracle.scorer.log_likelihoods((statement.text for statement in statements), evaluator=True)
        return [replace(statement, log_likelihood=scores.get(statement.text)) for statement in statements]


def _last_uses(plans: Sequence[SearchPlan], library: Library) -> tuple[dict[str, int], int]:
    """By predicate, the number of the last rule that needs it, and that of the last one with a derived premise.

    Until then all facts are kept: a derived premise looks among all of them for the types of values.
    """
    uses: dict[str, int] = {}
    last_derived = -1
    for number, rule_plan in enumerate(plans):
        rule = rule_plan.rule
        uses |= {signature.indicator: number for signature in relevant_library(library, rule).signatures}
        if any(origin_of(literal, library) is Origin.DERIVED for literal in rule.literals):
            last_derived = number
    return uses, last_derived


def _expected_calls(plans: Sequence[SearchPlan], library: Library, settings: SearchSettings) -> int:
    return sum(_calls_left(RuleSearch(rule_plan, library, settings, "")) for rule_plan in plans)


def _calls_left(rule_search: RuleSearch) -> int:
    """The calls that a rule is expected to need from its current step on."""
    settings, names = rule_search.settings, rule_search.names[:-1]
    costs = PlanCosts(rule_search.plan.rule, rule_search.library, settings.yields(Yields()))
    return round(cost_from(rule_search.plan, costs, settings.pool, rows_of(names, rule_search.beams)).calls)


def rows_of(names: Sequence[str], beams: Sequence[Beam]) -> Rows:
    """The numbers of beams and of distinct values of their variables. `names`: those of the beams' values."""
    columns = zip(*(beam.values for beam in beams), strict=True)
    distinct = {name: len(set(column)) for name, column in zip(names, columns, strict=False)}
    return Rows(len(beams), {**dict.fromkeys(names, 0), **distinct})


@contextmanager
def _reported_to(progress: Progress, oracle: Oracle) -> Iterator[None]:
    """Have the journal and the oracle report what they do until the block ends."""
    journal, before = oracle.journal, oracle.journal.on_batch

    def on_batch(report: BatchReport) -> None:
        if before is not None:
            before(report)
        is_of_knowledge = report.role == KNOWLEDGE
        # Other roles' calls are in no display, but show that the search is alive.
        progress.advanced(report.sent if is_of_knowledge else 0, report.hits if is_of_knowledge else 0)

    def on_round(accepted: int, rejected: int) -> None:
        progress.advanced(accepted=accepted, rejected=rejected)

    journal.on_batch, oracle.on_round = on_batch, on_round
    try:
        yield
    finally:
        journal.on_batch, oracle.on_round = before, None


def _joined(theory: Theory, atoms: Sequence[Atom]) -> tuple[Goal, Theory]:
    """A goal for the numbers of those atoms that hold, with the values of their variables, and its theory.

    The atoms have values at the same places. A rule joins these values, each row with its number, with the predicate.
    """
    shape, first = shape_of(atoms[0]), atoms[0]
    terms = [shape.arguments[place] for place, term in enumerate(first.arguments) if isinstance(term, Constant)]
    keys, given = numbered(terms, [atom.values for atom in atoms])
    head = Atom("rows of a search", (keys.arguments[0], *first.variables))
    rule = rule_of([Literal(keys), Literal(shape)], head)
    goal = Goal((Literal(head),), head.variables)
    declared = PredicateSignature(keys.predicate, (OBJECT,) * len(keys.arguments), PredicateKind.GIVEN)
    library = with_rules(theory.library, [rule])
    library = replace(library, signatures=(*library.signatures, declared))
    return goal, replace(theory, library=library, assume=tuple(given))


def _plain_rows(found: QueryResult) -> list[tuple[Value, ...]]:
    """Answers that rules give: their cells are constants."""
    return [tuple(cell for cell in row if not isinstance(cell, PrologTerm)) for row in found.rows]
