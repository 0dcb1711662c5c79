"""Knowledge beam search: rules in, head and long-tail statements out (LINK, section 2.3), in large batches.

Several rules walk through their plans side by side. At each step all their questions, over all beams and both
distributions, are one batch; so are the checks and the texts to rank. Everything that is asked is asked once.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from engine.beams import Origin, RuleSearch, origin_of
from engine.demand import DemandBudget, run_demand
from engine.derive import BULK, derive_statements, relevant_library
from engine.inquiry import Answer, Inquiry
from engine.oracle import Oracle, RoundResult, journaled, model_name
from engine.query import Theory
from engine.report import (
    GateCount,
    RuleReport,
    SearchProgress,
    SearchReport,
    SearchSettings,
    Statements,
    Tally,
    Unanswerable,
)
from engine.session import PrologSession, PrologTerm
from grammar.dependencies import SearchPlan, plan
from grammar.errors import HapaxError
from grammar.rules import Library, Place, PredicateKind, Rule, type_key
from grammar.terms import Atom, Constant, Literal, Value
from kb.records import Distribution, PredicateRecord, RuleRecord, RunRecord, StatementRecord, content_id
from kb.store import KnowledgeBase
from llm_oracle.calls import KNOWLEDGE, BatchReport, Journal
from llm_oracle.protocols import Models

DEMAND = DemandBudget(rounds=50, questions=20_000, verifications=20_000, limits=BULK)
"""What one step may ask for derived predicates; the journal's budget is what limits a run."""

ROWS_PER_GOAL = 200
"""Rows of arguments in one goal about a derived predicate; goals are at most 100 kB of text."""

COLLECTED_AFTER = 50_000
"""Objects made between two collections of garbage; Python's own 700 suit small programs."""

_ROW = "Row"
"""A variable name that no rule has: there one letter is a name."""


def search(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    progress: SearchProgress | None = None,
    journal: Journal | None = None,
) -> SearchReport:
    """Search the rules and store everything. The same call again replays the journal and asks nothing twice.

    `journal` carries budget and prices; without one, calls are journaled in `kb` without a limit. When a budget is
    reached the search goes on with what the journal knows, and the report names the rules that were cut. Ctrl-C marks
    the run as interrupted and is raised again.
    """
    settings = settings or SearchSettings()
    journal = journal or Journal(kb)
    models = journaled(models, journal)
    run = run_record(library, rules, models, settings)
    kb.start_run(run)
    kb.add_rules(_rule_record(rule) for rule in rules)
    kb.add_predicates(PredicateRecord.of(signature) for signature in library.completed().signatures)
    oracle = Oracle(kb, library, models, settings.oracle, run.id, journal=journal)
    try:
        with PrologSession() as session, _seldom_collected():
            report = _Search(library, kb, oracle, settings, session).run(rules, progress)
    except BaseException as fault:
        with suppress(HapaxError):  # on a full disk it cannot be noted, and the fault itself is what is told
            kb.finish_run(run.id, "interrupted" if isinstance(fault, KeyboardInterrupt) else "failed")
        raise
    kb.finish_run(run.id, report.status, report.summary())
    return report


@contextmanager
def _seldom_collected() -> Iterator[None]:
    """A search makes millions of records that stay; looking through them for cycles takes a fifth of its time."""
    before = gc.get_threshold()
    if before[0] == COLLECTED_AFTER:  # another thread's search has seen to it, and will set it back
        yield
        return
    gc.set_threshold(COLLECTED_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_record(library: Library, rules: Sequence[Rule], models: Models, settings: SearchSettings) -> RunRecord:
    """The run's identity: the same rules, predicates, settings and models are the same run."""
    names = [model_name(one) for one in (models.knowledge, models.critic, models.likelihood, models.evaluator)]
    predicates = sorted(repr(replace(one, place=Place())) for one in library.completed().signatures)
    given = sorted(map(str, library.facts))
    subtypes = sorted(map(list, library.subtypes))
    fingerprint = content_id(
        "run", [str(rule) for rule in rules], predicates, given, subtypes, str(settings.to_json()), names
    )
    settings_told = {**settings.to_json(), "models": names, "rules": [rule.name for rule in rules]}
    return RunRecord(fingerprint, "search", settings_told, fingerprint, datetime.now(UTC).isoformat(timespec="seconds"))


def unanswerable(rule: Rule, library: Library, models: Models) -> Unanswerable | None:
    """Why the models cannot answer the rule, with the option that helps; None: they claim no limit that it breaks."""
    reached = relevant_library(library, rule)
    literals = [
        *(literal for literal in rule.literals if not rule.is_information(literal)),
        *(literal for one in reached.rules for literal in one.literals),
    ]
    needed = dict.fromkeys(one.atom.indicator for one in literals if origin_of(one, library) is Origin.MODEL)
    for model, remedy in (
        (models.knowledge, "--knowledge and --critic bring a model that does."),
        (models.critic, "--critic brings a model that does."),
    ):
        identity = model.identity
        missing = [one for one in needed if identity.knows is not None and one not in identity.knows]
        known = None if identity.types is None else {type_key(one) for one in identity.types}
        types = dict.fromkeys(one.data_type for one in rule.searched if not library.is_numeric(one.data_type))
        foreign = [f"the type {one}" for one in types if known is not None and type_key(one) not in known]
        if missing or foreign:
            return Unanswerable(identity.name, (*missing, *foreign), remedy)
    return None


@dataclass
class _Search:
    """One run: the rules go through it in groups, each group step by step."""

    library: Library
    kb: KnowledgeBase
    oracle: Oracle
    settings: SearchSettings
    session: PrologSession
    _sent: set[Inquiry] = field(default_factory=set)
    _counts: dict[RuleSearch, _Counts] = field(default_factory=dict)

    def run(self, rules: Sequence[Rule], progress: SearchProgress | None) -> SearchReport:
        plans: list[SearchPlan] = []
        reports: dict[str, RuleReport] = {}
        for rule in rules:
            reason = unanswerable(rule, self.library, self.oracle.models)
            if reason is None:
                plans.append(plan(rule, self.library, self.settings.plan))
            else:
                reports[rule.name] = RuleReport(rule.name, rule.domain, skipped=reason)
        together = 1 if _is_limited(self.oracle.journal) else self.settings.rules_together
        with _told(self.oracle, progress) as told:
            told.started(len(plans), _expected_calls(plans))
            uses = _Uses([one.rule for one in plans], self.library)
            for start in range(0, len(plans), together):
                group = plans[start : start + together]
                told.searching([one.rule.name for one in group], _expected_calls(group))
                reports.update((report.rule, report) for report in self._group(group))
                self._forget(uses, start + len(group))
        reached = self.oracle.budget_reached
        return SearchReport(
            self.oracle.run_id,
            tuple(reports[rule.name] for rule in rules),
            self.oracle.journal.statistics,
            "budget" if reached else "done",
            str(reached) if reached else None,
        )

    def _forget(self, uses: _Uses, number: int) -> None:
        """Free what is known of predicates that no rule from this one on rests on: memory does not grow by the rule."""
        later = uses.later(number)
        self.oracle.keep_only(later)
        self._sent.difference_update([one for one in self._sent if not one.is_about(later)])
        if number > uses.last_derived:
            self.oracle.known.keep_only(later)

    def _group(self, plans: Sequence[SearchPlan]) -> list[RuleReport]:
        """Some rules through all their steps; rules that are over wait for the others."""
        searches = [RuleSearch(one, self.library, self.settings, self.oracle.run_id) for one in plans]
        self._counts = {one: _Counts() for one in searches}
        while walking := [one for one in searches if one.step is not None]:
            self._extend(walking)
            self._close(walking)
            self._rank(walking)
            self.kb.add_decisions(decision for one in walking for decision in one.decisions)
            for one in walking:
                one.decisions.clear()
        reports = [self._report(one) for one in searches]
        self._counts.clear()
        return reports

    # -- the three phases of a step

    def _extend(self, walking: Sequence[RuleSearch]) -> None:
        asked = {id(one): one.inquiries() for one in walking}
        answers = self.oracle.answers([inquiry for own in asked.values() for inquiry in own.values()])
        for one in walking:
            own = asked[id(one)]
            match one.origin:
                case Origin.MODEL:
                    self._count(one, {inquiry: answers[inquiry] for inquiry in own.values()})
                    one.extend({beam: answers[inquiry] for beam, inquiry in own.items()})
                case Origin.COMPUTED:
                    one.compute()
                case Origin.GIVEN:
                    atoms = one.open_atoms()
                    known = {
                        atom: self.oracle.known.given(atom, one.names[-1]) for atom in dict.fromkeys(atoms.values())
                    }
                    one.extend_with({beam: known[atom] for beam, atom in atoms.items()})
                case Origin.DERIVED:
                    atoms = one.open_atoms()
                    derived = self._derived(one, list(dict.fromkeys(atoms.values())))
                    values = {atom: [row[one.names[-1]] for row in rows] for atom, rows in derived.items()}
                    one.extend_with({beam: list(dict.fromkeys(values[atom])) for beam, atom in atoms.items()})

    def _close(self, walking: Sequence[RuleSearch]) -> None:
        """Comparisons first, because they cost nothing; then everything that a model, a fact or a rule decides."""
        for one in walking:
            one.compare()
        asked = [(one, literal) for one in walking for literal in one.checked()]
        by_rule = [(one, literal) for one, literal in asked if origin_of(literal, self.library) is Origin.DERIVED]
        self._judge([pair for pair in asked if pair not in by_rule])
        for one, literal in by_rule:
            atoms = one.ground(literal)
            was_cut, one.cut = one.cut, False
            rows = self._derived(one, list(dict.fromkeys(atoms)))
            # What could not be asked to the end is not known to be false, so it denies nothing.
            if literal.negated:
                passed = [not rows[atom] and not one.cut for atom in atoms]
            else:
                passed = [bool(rows[atom]) for atom in atoms]
            one.close(literal, passed, "derived")
            one.cut = one.cut or was_cut

    def _judge(self, asked: Sequence[tuple[RuleSearch, Literal]]) -> None:
        """Literals that arithmetic, given facts or the critic decide. A denied one needs a sure no, not a weak yes."""
        self.oracle.probabilities(atom for one, literal in asked for atom in one.ground(literal))
        threshold = self.oracle.settings.fact_rule.start
        for one, literal in asked:
            atoms = one.ground(literal)
            scores = self.oracle.probabilities(atoms)
            limit = 1 - threshold if literal.negated else threshold
            passed = []
            noted: dict[Atom, tuple[Atom, float | None, float, bool]] = {}
            for atom in atoms:
                score = scores[atom]
                if score is None:
                    passed.append(not self.settings.critic)
                    one.cut = one.cut or self.settings.critic
                else:
                    passed.append(score <= limit if literal.negated else score >= limit)
                if score is not None or not self.settings.critic:
                    holds = not literal.negated if score is None else score >= threshold
                    noted[atom] = (atom, score, threshold, holds)
            self.oracle.note(list(noted.values()))
            computed = self.library.signature(literal.atom.indicator).kind is PredicateKind.COMPUTED
            one.close(literal, passed, "computed" if computed else "critic")

    def _rank(self, walking: Sequence[RuleSearch]) -> None:
        ranked = [one for one in walking if one.is_ranked and self.settings.likelihood != "none"]
        texts = {id(one): one.texts() for one in ranked}
        if self.settings.likelihood == "random":
            scores = {text: 0.0 for own in texts.values() for text in own.values()}
        else:
            scores = self.oracle.log_likelihoods(text for own in texts.values() for text in own.values())
        for one in walking:
            if id(one) in texts:
                one.rank(texts[id(one)], scores)
            else:
                one.advance_unranked()

    # -- derived predicates

    def _derived(self, one: RuleSearch, atoms: Sequence[Atom]) -> dict[Atom, list[dict[str, Value]]]:
        """By atom, the values of its variables that follow from the rules; what they lack is asked for first.

        Where that ended early, the rule search is marked as cut.
        """
        found: dict[Atom, list[dict[str, Value]]] = {atom: [] for atom in atoms}
        oracle = _Overheard(self.oracle, lambda answers: self._count(one, answers))
        for start in range(0, len(atoms), ROWS_PER_GOAL):
            group = atoms[start : start + ROWS_PER_GOAL]
            theory = Theory(self.library, self.kb, known=self.oracle.known)
            demanded = run_demand(theory, _goal(group), oracle, DEMAND, session=self.session)
            one.cut = one.cut or not demanded.complete
            for row in demanded.result.rows:
                cells = dict(zip(demanded.result.columns, row, strict=True))
                number = cells[_ROW]
                names = [variable.name for variable in group[0].variables]
                values = {name: cell for name in names if not isinstance(cell := cells[name], PrologTerm)}
                if isinstance(number, int) and len(values) == len(names):
                    found[group[number]].append(values)
        types = self._types({value for rows in found.values() for row in rows for value in row.values()})
        return {atom: self._of_type(rows, atom, types) for atom, rows in found.items()}

    def _types(self, values: set[Value]) -> dict[Value, set[str]]:
        """The types under which facts know these values."""
        types: dict[Value, set[str]] = {}
        indicators = [signature.indicator for signature in self.library.completed().signatures] if values else []
        for fact in (fact for indicator in indicators for fact in self.oracle.known.held(indicator)):
            for value, data_type in zip(fact.arguments, fact.types, strict=False):
                if value in values:
                    types.setdefault(value, set()).add(data_type)
        return types

    def _of_type(
        self, rows: list[dict[str, Value]], atom: Atom, types: Mapping[Value, set[str]]
    ) -> list[dict[str, Value]]:
        """The rows whose values are known under the variables' types, or under none: Rome is within Europe, too."""

        def fits(value: Value, data_type: str) -> bool:
            known = types.get(value, ())
            return not known or any(self.library.is_subtype(one, data_type) for one in known)

        wanted = [(variable.name, variable.data_type) for variable in atom.variables]
        return [row for row in rows if all(fits(row[name], data_type) for name, data_type in wanted)]

    # -- the report

    def _count(self, one: RuleSearch, answers: Mapping[Inquiry, Answer]) -> None:
        """Each question counts once a rule; its calls count for the first rule of the run that asked it."""
        counts = self._counts[one]
        for inquiry, answer in answers.items():
            if inquiry in counts.questions:
                continue
            sent = 0 if inquiry in self._sent else answer.sent
            self._sent.add(inquiry)
            counts.questions.add(inquiry)
            counts.calls += sent
            counts.hits += answer.calls - sent
            for gate, (accepted, judged) in answer.gates.items():
                one.count(gate, GateCount(accepted, judged))

    def _report(self, one: RuleSearch) -> RuleReport:
        rule, counts = one.plan.rule, self._counts[one]
        statements = self._statements(one) if one.step_number == len(one.plan.steps) else []
        most = self.settings.max_statements
        by_distribution = {
            distribution: [each for each in statements if each.distribution is distribution][:most]
            for distribution in self.settings.distributions
        }
        self.kb.add_statements(each for several in by_distribution.values() for each in several)
        return RuleReport(
            rule.name,
            rule.domain,
            {distribution: Statements(several) for distribution, several in by_distribution.items()},
            one.gates,
            len(counts.questions),
            counts.calls,
            counts.hits,
            len(set.intersection(*({each.id for each in by_distribution.get(end, ())} for end in Distribution))),
            cut=one.cut,
        )

    def _statements(self, one: RuleSearch) -> list[StatementRecord]:
        """What Prolog derives from the kept beams, scored by the evaluator."""
        rule = one.plan.rule
        needed = relevant_library(self.library, rule).completed().signatures
        facts = [fact for signature in needed for fact in self.oracle.known.held(signature.indicator)]
        statements = derive_statements(self.session, self.library, rule, one.substitutions(), facts, self.oracle.run_id)
        scores = self.oracle.log_likelihoods((each.text for each in statements), evaluator=True)
        return [replace(each, log_likelihood=scores.get(each.text)) for each in statements]


class _Uses:
    """Which predicates the rules of a run ask about or rest on, and which rule is the last to do so.

    `last_derived`: the last rule with a derived premise, -1 without any. Until then facts are kept, because a derived
    premise looks among all of them for the types of values.
    """

    def __init__(self, rules: Sequence[Rule], library: Library) -> None:
        self._last = {
            signature.indicator: number
            for number, rule in enumerate(rules)
            for signature in relevant_library(library, rule).signatures
        }
        derived = [any(origin_of(one, library) is Origin.DERIVED for one in rule.literals) for rule in rules]
        self.last_derived = max((number for number, is_so in enumerate(derived) if is_so), default=-1)

    def later(self, number: int) -> set[str]:
        """The indicators that the rule with this number or one after it uses."""
        return {indicator for indicator, last in self._last.items() if last >= number}


@dataclass(slots=True)
class _Counts:
    """Questions, calls and hits of one rule."""

    questions: set[Inquiry] = field(default_factory=set)
    calls: int = 0
    hits: int = 0


@dataclass(frozen=True, slots=True)
class _Overheard:
    """The oracle as a demand loop asks it; `heard` is told the answers, which count for the rule in hand."""

    oracle: Oracle
    heard: Callable[[Mapping[Inquiry, Answer]], None]

    def answers(self, inquiries: Sequence[Inquiry]) -> Mapping[Inquiry, Answer]:
        answers = self.oracle.answers(inquiries)
        self.heard(answers)
        return answers

    def verify(self, atoms: Sequence[Atom]) -> Mapping[Atom, bool]:
        return self.oracle.verify(atoms)


def _expected_calls(plans: Sequence[SearchPlan]) -> int:
    return sum(one.cost.calls for one in plans)


@contextmanager
def _told(oracle: Oracle, display: SearchProgress | None) -> Iterator[SearchProgress]:
    """Journal and oracle tell the display of a run what they do; without a display, they tell it to nobody."""
    progress = display or Tally()
    journal, before = oracle.journal, oracle.journal.on_batch

    def batch(report: BatchReport) -> None:
        if before is not None:
            before(report)
        if report.role == KNOWLEDGE:
            progress.advanced(report.sent, report.hits, 0, 0)

    def judged(result: RoundResult) -> None:
        progress.advanced(0, 0, result.accepted, result.rejected)

    journal.on_batch, oracle.on_round = batch, judged
    try:
        yield progress
    finally:
        journal.on_batch, oracle.on_round = before, None


def _is_limited(journal: Journal) -> bool:
    """Whether a budget may end the run: then rules go one by one, so that some are complete when it does."""
    return not journal.budget.is_unlimited


def _goal(atoms: Sequence[Atom]) -> str:
    """One goal for atoms with values at the same places: `member([Row, Row0], [[0, "x"], [1, "y"]]), p(Row0, B)`."""
    constants = [place for place, term in enumerate(atoms[0].arguments) if isinstance(term, Constant)]
    keys = ", ".join([_ROW, *(f"{_ROW}{place}" for place in constants)])
    listed = ", ".join(
        f"[{', '.join([str(number), *(str(atom.arguments[place]) for place in constants)])}]"
        for number, atom in enumerate(atoms)
    )
    arguments = (
        f"{_ROW}{place}" if isinstance(term, Constant) else term.name for place, term in enumerate(atoms[0].arguments)
    )
    return f"member([{keys}], [{listed}]), {atoms[0].predicate}({', '.join(arguments)})"


def _rule_record(rule: Rule) -> RuleRecord:
    return RuleRecord(rule.name, str(rule), rule.domain, rule.principle, rule.polarity)
