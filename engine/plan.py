"""What a run would cost before anything is asked: expected and most calls, tokens and money.

The rules walk through their plans with a budget of nothing: what the journal knows is taken exactly, and from the first
unknown answer on numbers are estimated. Nothing is sent and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from engine.beams import Beam, Origin, RuleSearch, origin_of, ranked_literals
from engine.derive import relevant_library
from engine.expectation import FUNCTIONAL, KEYED, LARGE, LIMITED, OPEN, VERIFIED, Experience, Rows, Shared
from engine.inquiry import FUNCTIONAL_SAMPLES, Inquiry, question_words
from engine.oracle import Oracle, journaled, model_name
from engine.report import SearchSettings, Unanswerable
from engine.search import DEMAND, ROWS_PER_GOAL, unanswerable
from grammar.dependencies import SearchPlan, SearchStep, plan
from grammar.rules import Library, Rule
from grammar.terms import Atom, Literal, Term, Variable
from kb.records import Source
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, Budget, Journal, Price
from llm_oracle.prompts import knowledge_prompt
from llm_oracle.protocols import Models, Usage

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_VALUE = 5
"""Number, value, full stop and line end of a list item."""


@dataclass(frozen=True, slots=True)
class Range:
    """An expected number and the most it can be."""

    expected: int = 0
    most: int = 0

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step: questions of the model, those of them that the journal answers, and what would be sent."""

    variable: str
    asks: str
    questions: Range = Range()
    known: int = 0
    calls: Range = Range()
    claims: Range = Range()
    texts: Range = Range()


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """One rule; `skipped` says why it would not be searched."""

    rule: str
    generic: str = ""
    """The generic variables, and how they came to be generic."""
    order: tuple[str, ...] = ()
    steps: tuple[StepEstimate, ...] = ()
    statements: Range = Range()
    scored: int = 0
    """Statements of the rule that the evaluator has scored already."""
    skipped: Unanswerable | None = None

    @property
    def calls(self) -> Range:
        return sum((step.calls for step in self.steps), Range())

    @property
    def known(self) -> int:
        return sum(step.known for step in self.steps)


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Calls, tokens and money by role. `cost` is None where the model's price is unknown."""

    model: str
    calls: Range = Range()
    tokens: Range = Range()
    cost: tuple[float, float] | None = None
    """Expected and most."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The whole run. What rules share is expected of the first of them; at most, each may ask it."""

    rules: tuple[RuleEstimate, ...]
    roles: Mapping[str, RoleEstimate] = field(default_factory=dict)

    @property
    def calls(self) -> Range:
        """Calls of the knowledge model."""
        return sum((one.calls for one in self.rules), Range())

    @property
    def cost(self) -> tuple[float, float] | None:
        """Expected and most money; None as soon as one price is unknown."""
        costs = [one.cost for one in self.roles.values()]
        known = [one for one in costs if one is not None]
        return (sum(one[0] for one in known), sum(one[1] for one in known)) if len(known) == len(costs) else None


def plan_run(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    prices: Mapping[str, Price] | None = None,
) -> RunEstimate:
    """Estimate a search of these rules, given what `kb` knows. `prices` by model name, per million tokens."""
    settings = settings or SearchSettings()
    journal = Journal(kb, Budget(max_calls=0))
    with KnowledgeBase(None) as scratch:
        scratch.add_facts(fact for fact in kb.facts() if fact.source is Source.GIVEN)
        oracle = Oracle(scratch, library, journaled(models, journal), settings.oracle, journal=journal)
        habits = LARGE if models.knowledge.identity.knows is None else LIMITED
        common = _Common(oracle, settings, Experience(habits, settings))
        estimates = []
        for rule in rules:
            reason = unanswerable(rule, library, models)
            if reason is not None:
                estimates.append(RuleEstimate(rule.name, rule.spoken_of, skipped=reason))
                continue
            one = _Walk(common, plan(rule, library, settings.plan)).estimate()
            estimates.append(replace(one, scored=_scored(kb, rule, models)))
    return RunEstimate(tuple(estimates), _roles(estimates, models, settings, common.usage, prices or {}))


def _scored(kb: KnowledgeBase, rule: Rule, models: Models) -> int:
    texts = {one.text for one in kb.statements(rule=rule.name)}
    return len(kb.assessments(texts, "log_likelihood", model_name(models.evaluator)))


@dataclass
class _Usage:
    """Prompt tokens of an average question, sampled on the way."""

    prompts: int = 0
    tokens: int = 0

    def add(self, prompt: str) -> None:
        self.prompts += 1
        self.tokens += len(prompt) // CHARACTERS_PER_TOKEN + 1

    @property
    def mean(self) -> int:
        return ceil(self.tokens / self.prompts) if self.prompts else 0


@dataclass
class _Common:
    """What the rules of one estimate share: the oracle over the journal, and what was counted so far."""

    oracle: Oracle
    settings: SearchSettings
    experience: Experience
    usage: _Usage = field(default_factory=_Usage)
    shared: Shared = field(default_factory=Shared)
    asked: set[Inquiry] = field(default_factory=set)
    claims: set[Atom] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)


class _Walk:
    """One rule: exact beams as far as answers are known, and how many more there would be.

    `most`: the most beams there can be; `unknown`: whether anything was missing so far.
    """

    def __init__(self, common: _Common, one: SearchPlan) -> None:
        self.common, self.plan, self.settings = common, one, common.settings
        self.oracle = common.oracle
        self.search = RuleSearch(one, self.oracle.library, self.settings, "")
        self.rows = Rows(self.settings)
        self.most, self.unknown = 1, False
        self.width = self.settings.beam * len(self.settings.distributions)

    def estimate(self) -> RuleEstimate:
        steps = tuple(self._step(number, step) for number, step in enumerate(self.plan.steps))
        statements = min(self.width, len(self.search.beams) + round(self.rows.together))
        rule = self.plan.rule
        most = max(statements, self.most)
        return RuleEstimate(rule.name, rule.spoken_of, self.plan.order, steps, Range(statements, most))

    def _step(self, number: int, step: SearchStep) -> StepEstimate:
        self.search.step_number = number
        asks = "" if step.assignment else str(step.generators[0])
        one = _Step(step.variable.name, asks, rows_before=self.most)
        match self.search.origin:
            case Origin.MODEL:
                self._ask(step, one)
            case Origin.COMPUTED:
                self.search.compute()
                self.rows.extend(step.variable.name, 1, self.rows.together)
            case Origin.GIVEN:
                atoms, name = self.search.open_atoms(), self.search.names[-1]
                self.search.extend_with({beam: self.oracle.known.given(atom, name) for beam, atom in atoms.items()})
                self._bring(step, self.rows.together, KEYED)
            case Origin.DERIVED:
                self._derive(step.generators[0], one)
                self._set_free(self.search.beams)
                self.search.beams = []
                self._bring(step, self.rows.together, KEYED)
        self.most = self._most_beams(step)
        self._close(step, one)
        self._rank(step, one)
        return one.estimate()

    # -- asking

    def _ask(self, step: SearchStep, one: _Step) -> None:
        """Questions that the journal answers are taken exactly; the others as their kind usually goes."""
        inquiries = self.search.inquiries()
        unique = list(dict.fromkeys(inquiries.values()))
        for inquiry in unique[:1]:
            name, words = question_words(inquiry.question, self.oracle.library)
            self.common.usage.add(knowledge_prompt(name, words, inquiry.question.data_type))
        answers = self.oracle.answers(unique)
        keys = [name for name in _names(step.generators[0]) if name in self.search.names[:-1]]
        kind = FUNCTIONAL if step.functional else KEYED if keys or not self._is_open(step) else OPEN
        self.common.experience.learn(kind, answers.values())
        missing = {inquiry for inquiry, answer in answers.items() if not answer.complete}
        waiting = [beam for beam, inquiry in inquiries.items() if inquiry in missing]
        self._set_free(waiting)
        expected = self.rows.keys(keys)
        new = len(missing - self.common.asked) + self._unasked(step, max(0.0, expected - len(missing)))
        self.common.asked |= missing
        self.search.extend({beam: answers[inquiry] for beam, inquiry in inquiries.items() if inquiry not in missing})
        known = len(unique) - len(missing)
        most = min(one.rows_before, self.width) if self.unknown else len(missing)
        habit = self.common.experience.of(kind)
        calls = FUNCTIONAL_SAMPLES if step.functional else self.settings.calls_per_question
        one.questions = Range(known + round(new), known + most)
        one.known = known
        one.calls = Range(round(new * habit.calls), most * calls)
        self._propose(step, one, new * habit.proposed, most)
        self._bring(step, expected, kind)

    def _is_open(self, step: SearchStep) -> bool:
        """Whether nothing in the question is a value."""
        return all(isinstance(term, Variable) for term in step.generators[0].atom.arguments)

    def _unasked(self, step: SearchStep, count: float) -> float:
        """Of so many unknown questions those that no other rule asks."""
        atom, names = step.generators[0].atom, self.search.names

        def place(term: Term) -> str:
            if not isinstance(term, Variable):
                return str(term)
            return "" if term == step.variable else term.data_type if term.name in names else "_"

        return self.common.shared.more((atom.indicator, tuple(map(place, atom.arguments))), count)

    def _propose(self, step: SearchStep, one: _Step, proposed: float, most: int) -> None:
        """The claims that values make: each is of its type, and, where it makes a literal ground, the literal holds."""
        if not self.settings.critic:
            return
        numeric = self.oracle.library.is_numeric(step.variable.data_type)
        ground = _names(step.generators[0]) <= set(self.search.names)
        types = 0.0 if numeric else self.common.shared.more(("type", step.variable.data_type), proposed)
        claimed = 1 if self.settings.compat is None else 1 + len(self.plan.rule.literals)
        values = most * self._most_values(step)
        one.claims += Range(round(types + proposed * ground), values * (claimed + 1))

    def _set_free(self, waiting: Sequence[Beam]) -> None:
        """Known beams that cannot go on exactly go on as expected ones."""
        names = self.search.names[:-1]
        columns = zip(*(beam.values for beam in waiting), strict=True)
        self.rows.begin(len(waiting), {name: len(set(column)) for name, column in zip(names, columns, strict=False)})
        self.unknown = self.unknown or bool(waiting)

    def _bring(self, step: SearchStep, questions: float, kind: str) -> None:
        self.rows.extend(step.variable.name, self.common.experience.of(kind).accepted, questions)

    def _most_values(self, step: SearchStep) -> int:
        """The most values of a question; models give no more than they are asked for."""
        if step.functional:
            return FUNCTIONAL_SAMPLES
        doubled = 2 if self.settings.compat == "released" and self.search.step_number == 0 else 1
        return doubled * self.settings.calls_per_question * self.settings.values_per_call

    def _most_beams(self, step: SearchStep) -> int:
        """The most beams before the gates of the step."""
        if not self.unknown:
            return len(self.search.beams)
        if self.search.origin is Origin.COMPUTED or step.functional:
            return max(self.most, len(self.search.beams))
        if self.search.origin is Origin.MODEL:
            return self.most * self._most_values(step)
        if self.search.origin is Origin.GIVEN:
            facts = self.oracle.known.held(step.generators[0].atom.indicator)
            return max(self.most * len(facts), len(self.search.beams))
        return self.most * DEMAND.questions * self._most_values(step)

    # -- closing

    def _close(self, step: SearchStep, one: _Step) -> None:
        """Comparisons decide what they can; literals that nobody has judged yet cost a claim for each beam."""
        self.search.compare()
        self.rows.compare(step)
        for literal in self.search.checked():
            if origin_of(literal, self.oracle.library) is Origin.DERIVED:
                self._derive(literal, one)
            elif self.settings.critic:
                self._check(literal, one)
            self.rows.pass_through(VERIFIED)

    def _check(self, literal: Literal, one: _Step) -> None:
        """Known beams are judged as far as the journal goes; what is not judged stays."""
        atoms = self.search.ground(literal)
        scores = self.oracle.probabilities(atoms)
        missing = {atom for atom, score in scores.items() if score is None}
        start = self.oracle.settings.fact_rule.start
        limits = {atom: score for atom, score in scores.items() if score is not None}
        passed = [
            atom in missing or (limits[atom] <= 1 - start if literal.negated else limits[atom] >= start)
            for atom in atoms
        ]
        self.search.close(literal, passed, "critic")
        new = len(missing - self.common.claims)
        self.common.claims |= missing
        self.unknown = self.unknown or bool(missing)
        asked = origin_of(literal, self.oracle.library) is Origin.MODEL
        expected = self.rows.keys(_names(literal)) if asked else 0.0
        one.claims += Range(new + round(expected), self.most if self.unknown else new)

    def _derive(self, literal: Literal, one: _Step) -> None:
        """What rules decide asks in turn for what their premises lack; how much, only running them would tell."""
        beams = len(self.search.beams)
        if not beams and not self.rows.together:
            return
        library = relevant_library(self.oracle.library, goals=[literal.atom.indicator])
        premises = [each for rule in library.rules for each in rule.literals]
        asking = sum(origin_of(each, self.oracle.library) is Origin.MODEL for each in premises)
        if not asking:
            return
        keys = beams + self.rows.keys(_names(literal) & set(self.search.names))
        new = self.common.shared.more(("derived", literal.atom.indicator), keys * asking)
        habit = self.common.experience.of(KEYED)
        groups = ceil(max(self.most, one.rows_before) / ROWS_PER_GOAL)
        most = groups * DEMAND.questions
        calls = max(self.settings.calls_per_question, FUNCTIONAL_SAMPLES)
        values = calls * self.settings.values_per_call
        self.unknown = True
        one.questions += Range(round(new), most)
        one.calls += Range(round(new * habit.calls), most * calls)
        if self.settings.critic:
            verified = groups * DEMAND.verifications
            one.claims += Range(round(2 * new * habit.proposed), 2 * most * values + verified)

    # -- ranking

    def _rank(self, step: SearchStep, one: _Step) -> None:
        """Known texts rank known beams; as soon as one lacks its score, the first beams stay."""
        search, ranks = self.search, self.search.is_ranked and self.settings.likelihood != "none"
        pool = self.most
        if ranks and self.settings.likelihood == "model":
            texts = search.texts()
            scores = self.oracle.log_likelihoods(texts.values())
            missing = {text for text in texts.values() if text not in scores}
            told = ranked_literals(self.plan.rule, self.oracle.library, search.names, bool(self.settings.compat))
            if told:
                expected = self.rows.keys(set().union(*map(_names, told)))
            else:
                expected = self.common.shared.more(("text", step.variable.data_type), self.rows.distinct_of(step))
            one.texts = Range(
                len(missing - self.common.texts) + round(expected), pool if self.unknown else len(missing)
            )
            self.common.texts |= missing
            self.unknown = self.unknown or bool(missing)
            if not missing and not self.rows.together:
                search.rank(texts, scores)
            else:
                search.advance_unranked()
        elif ranks:
            search.rank(search.texts(), dict.fromkeys(search.texts().values(), 0.0))
        else:
            search.advance_unranked()
        self.rows.rank(max(0, self.settings.beam - len(search.beams) // len(self.settings.distributions)), ranks)
        self.most = min(self.width, self.most) if self.unknown else len(search.beams)


@dataclass
class _Step:
    """A step while it is counted. `rows_before`: the most beams that it can have begun with."""

    variable: str
    asks: str
    rows_before: int
    questions: Range = Range()
    known: int = 0
    calls: Range = Range()
    claims: Range = Range()
    texts: Range = Range()

    def estimate(self) -> StepEstimate:
        return StepEstimate(self.variable, self.asks, self.questions, self.known, self.calls, self.claims, self.texts)


def _names(literal: Literal) -> set[str]:
    return {variable.name for variable in literal.variables}


def _roles(
    estimates: Sequence[RuleEstimate],
    models: Models,
    settings: SearchSettings,
    usage: _Usage,
    prices: Mapping[str, Price],
) -> dict[str, RoleEstimate]:
    steps = [step for one in estimates for step in one.steps]
    evaluated = sum(
        (Range(max(0, one.statements.expected - one.scored), one.statements.most) for one in estimates), Range()
    )
    calls = {
        KNOWLEDGE: sum((step.calls for step in steps), Range()),
        CRITIC: sum((step.claims for step in steps), Range()),
        LIKELIHOOD: sum((step.texts for step in steps), Range()),
        EVALUATOR: evaluated,
    }
    list_tokens = settings.values_per_call * TOKENS_PER_VALUE
    each = {
        KNOWLEDGE: Usage(usage.mean, list_tokens),
        CRITIC: Usage(usage.mean, 1),
        LIKELIHOOD: Usage(usage.mean, 0),
        EVALUATOR: Usage(usage.mean, 0),
    }
    named = {
        KNOWLEDGE: models.knowledge,
        CRITIC: models.critic,
        LIKELIHOOD: models.likelihood,
        EVALUATOR: models.evaluator,
    }
    found = {}
    for role, model in named.items():
        one, spent = calls[role], each[role]
        per_call = spent.prompt_tokens + spent.completion_tokens
        price = prices.get(model.identity.name)
        cost = None if price is None else (price.of(spent) * one.expected, price.of(spent) * one.most)
        tokens = Range(one.expected * per_call, one.most * per_call)
        found[role] = RoleEstimate(model.identity.name, one, tokens, cost)
    return found
