"""Estimate of a run before anything is asked: expected calls, tokens, money and time.

The rules are searched over the answers that the knowledge base has, which cost nothing. What lacks an answer goes on as
expected numbers, by the usual costs of the plan's other steps. Nothing is sent, and nothing is written. What a run
takes at most is for its budget to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from math import ceil

from hapax.engine.gates.decidable import Origin, origin_of
from hapax.engine.gates.inquiry import Inquiry, QuestionAnswer
from hapax.engine.prolog.session import LimitExceeded
from hapax.engine.search.beams import RuleSearch
from hapax.engine.search.demand_loop import Missing
from hapax.engine.search.judge_scores import critic_names
from hapax.engine.search.oracle import journaled
from hapax.engine.search.promises import Promises
from hapax.engine.search.ranking import Beam, TextWriter, ranked_literals
from hapax.engine.search.search import Answers, SearchRun, rows_of, settled_measure, trial
from hapax.engine.search.search_report import Unanswerable, unanswerable
from hapax.engine.search.settings import SearchJob, SearchSettings
from hapax.grammar.data_types import type_key
from hapax.grammar.dependencies import (
    PlanCost,
    PlanCosts,
    Rows,
    SearchPlan,
    SearchStep,
    Yield,
    Yields,
    asked_predicates,
    plan,
    search_plans,
)
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Variable, variable_names
from hapax.grammar.writing.verbalize import statement_text
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Price, ServerPace
from hapax.llm_oracle.critics.measures import Measure, kept_measures
from hapax.llm_oracle.journal import PROBE, PlanningJournal
from hapax.llm_oracle.journaled_models import JournaledCritic
from hapax.llm_oracle.protocols import (
    CRITIC,
    EVALUATOR,
    KNOWLEDGE,
    LIKELIHOOD,
    Critic,
    Generator,
    LikelihoodModel,
    Models,
    Usage,
)
from hapax.llm_oracle.questions.list_requests import SAMPLE
from hapax.llm_oracle.questions.pair_frames import OTHERS
from hapax.llm_oracle.questions.prompts import critic_prompt

QUICK_SECONDS = 2.0
"""Processor time for the values that given facts give in a step, before a search."""
CHARACTERS_PER_TOKEN = 4.5
TOKENS_PER_VALUE = 4
"""Tokens of an item of a list: number, value, full stop and line end."""
LEAST_MEASURED = 20
"""Answered requests in the ledger from which on the expected figures of a role follow them."""
PROMPT_TOKENS = 60
"""Prompt tokens of a question of which no wording is known yet."""
PROBE_TOKENS = Usage(55, 10)
"""Tokens of a request by which a model is probed."""
USUAL_NAME = Constant("example")
"""A name as long as most are."""
TOKENS_PER_NUMBER, TOKENS_PER_VERDICT = 1, 2
"""Tokens of the number before a claim, and of a line with a number and a verdict, by their characters."""
ROOM_OF_A_VOTE = 64
"""Ratio of the tokens that a vote may use, so that a model can think aloud, to those that a plain yes or no uses."""


LIMITED = Yields(open=Yield(1, 36, 35, 34), keyed=Yield(1, 2.7, 2.6, 2.3), functional=Yield(1, 1, 1, 1))
"""Measured on the shipped rules with the embedded model, which knows the facts of its atlas alone."""
LINK = Yields(open=Yield(4, 121, 92, 29), keyed=Yield(3, 16, 12, 3.3))
"""Measured as the defaults of `Yields` were: LINK's thresholds rise with the scores, and pass fewer values."""


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step. `known`: the questions that the journal answers; `calls`, `claims`, `texts`: expected to be sent.

    `values`: partial substitutions that pass the step's tests, before the beam and the share cut them.
    """

    variable: str
    questions: int = 0
    known: int = 0
    calls: int = 0
    claims: int = 0
    texts: int = 0
    values: int = 0


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """One rule. `generic`: its generic variables, and why they are. `scored`: statements with a score already.

    `skipped`: the reason why it would not be searched.
    """

    rule: str
    generic: str = ""
    order: tuple[str, ...] = ()
    steps: tuple[StepEstimate, ...] = ()
    statements: int = 0
    scored: int = 0
    skipped: Unanswerable | None = None

    def total(self, count: str) -> int:
        """The sum of a count of its steps, such as `calls`."""
        return sum(getattr(step, count) for step in self.steps)


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Calls, tokens, money and time of one role, as expected.

    `cost`: None if the model's price is unknown. `seconds`: the wall time of requests to a server by its alias, else by
    the answers that the knowledge base has of the model; None without any. `measured`: answered requests in the ledger
    from which calls, tokens and money follow; 0: from none. `assumed`: the server was never probed, so that it is
    expected to give log-probabilities.
    """

    model: str
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float | None = None
    measured: int = 0
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The whole run. Questions that rules share are expected of the first rule that asks them."""

    rules: tuple[RuleEstimate, ...]
    roles: Mapping[str, RoleEstimate] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Calls of the knowledge model."""
        return sum(rule.total("calls") for rule in self.rules)

    @property
    def cost(self) -> float | None:
        """Money; None if a price is unknown."""
        known = [role.cost for role in self.roles.values() if role.cost is not None]
        return sum(known) if len(known) == len(self.roles) else None


def estimate_run(
    job: SearchJob, *, prices: Mapping[str, Price] | None = None, retry_unusable: bool = False, probes: int = 0
) -> RunEstimate:
    """Estimate a search, given the answers in its knowledge base. `prices` by model name, per million tokens.

    `retry_unusable`: what had no usable reply is asked again. `probes`: requests by which the search first chooses its
    prompt profile. Raises HapaxError where the search would: if its critic is not calibrated, or if nothing can be
    promised.
    """
    library, rules, models, kb = job.library, job.rules, job.models, job.kb
    job = replace(job, settings=settled_measure(job.settings, models))
    reasons = {rule.name: unanswerable(rule, library, models, job.settings.order) for rule in rules}
    plans = [plan(rule, library, job.settings.order) for rule in rules if reasons[rule.name] is None]
    searched, prompts = _estimates(job, plans, retry_unusable)
    found = {estimate.rule: estimate for estimate in searched}
    estimates: list[RuleEstimate] = []
    for rule in rules:
        if reasons[rule.name] is not None:
            estimates.append(RuleEstimate(rule.name, rule.generic_text, skipped=reasons[rule.name]))
            continue
        texts = {statement.text for statement in kb.statements(rule=rule.name)}
        scored = len(kb.assessments(texts, "log_likelihood", models.evaluator.identity.title))
        estimates.append(replace(found[rule.name], scored=scored))
    roles = _Roles(kb, models, job.settings, prices or {}, prompts).estimates(estimates, probes)
    return RunEstimate(tuple(estimates), roles)


def estimate_orders(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
) -> dict[str, list[tuple[SearchPlan, RuleEstimate]]]:
    """By rule its orders of variables, cheapest first, each with its estimate as if the rule were searched alone."""
    job = SearchJob(library, rules, kb, models, settled_measure(settings or SearchSettings(), models))
    found: dict[str, list[tuple[SearchPlan, RuleEstimate]]] = {rule.name: [] for rule in rules}
    for rule in rules:
        for order in search_plans(rule, library):
            found[rule.name].append((order, _estimates(job, [order])[0][0]))
    return found


def estimate_goal(
    library: Library,
    missing: Missing,
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings,
    *,
    prices: Mapping[str, Price] | None = None,
) -> RunEstimate:
    """Estimate of the first round of a goal that needs what is `missing`; its answers may raise further questions."""
    yields = settings.yields(usual_yields(models, settings))
    calls = proposed = claims = 0.0
    for need in missing.needs:
        functional, narrowed = need.question.functional, not need.is_opening
        answer = yields.functional if functional else yields.keyed if narrowed else yields.open
        calls, proposed = calls + answer.calls, proposed + answer.proposed
        # One claim about the type of a value, and one about the fact that it makes.
        claims += answer.proposed * (narrowed + (not library.is_numeric(need.question.data_type)))
    judged = round(claims) + len(missing.atoms) if settings.critic else 0
    rule = RuleEstimate("", steps=(StepEstimate("", len(missing.needs), calls=round(calls), claims=judged),))
    roles = _Roles(kb, models, settings, prices or {}, _Prompts(proposed=proposed)).estimates([rule])
    return RunEstimate((rule,), {role: roles[role] for role in (KNOWLEDGE, CRITIC)})


# --- the rules --------------------------------------------------------------------------------------------------------


@dataclass
class _Prompts:
    """Prompt tokens of an average request by role, and what the critic uses for a claim.

    `proposed`: values that the knowledge model is expected to propose in all its calls. `joined`: lists that it is
    asked for together with others. `probed`: claims of known truth that the critic is asked about.
    """

    tokens: Mapping[str, int] = field(default_factory=dict)
    claim: Usage = field(default_factory=lambda: Usage(PROMPT_TOKENS, 1))
    proposed: float = 0.0
    joined: float = 0.0
    probed: int = 0


def _estimates(
    job: SearchJob, plans: Sequence[SearchPlan], retry_unusable: bool = False
) -> tuple[list[RuleEstimate], _Prompts]:
    """The estimate of each plan."""
    with _walk(job, retry_unusable) as walk:
        # Whatever a search finds, its critic is probed once.
        walk.oracle.scorer.critic_probe()
        probed = len(walk.journal.missing)
        return [_RuleWalk(walk, rule_plan).estimate() for rule_plan in plans], walk.prompts(plans, probed)


@contextmanager
def _walk(job: SearchJob, retry_unusable: bool) -> Iterator[_Walk]:
    """A search that sends nothing. Its oracle stores facts as it goes, in a scratch file in memory."""
    journal = PlanningJournal(job.kb, retry_unusable=retry_unusable)
    promises = Promises.of(job.kb, job.library, critic_names(job.models.critic), job.settings)
    planned = replace(job, models=journaled(job.models, journal), journal=journal)
    with trial(planned, promises) as (own, oracle):
        lists = getattr(job.models.knowledge, "lists_together", 1)
        yield _Walk(own, oracle, seconds=QUICK_SECONDS, journal=journal, lists=lists)


@dataclass
class _Walk(SearchRun):
    """A search over known answers. `waiting`: the beams of a phase that lack one; `answers`: to its questions.

    `lists`: number of lists in one request. `shared`: numbers of expected questions, claims and texts by what they have
    in common, over all rules. `claims`: examples of them. `ranked`: examples of the ranked texts, with their numbers.
    """

    journal: PlanningJournal = field(kw_only=True)
    lists: int = 1
    waiting: list[Beam] = field(default_factory=list)
    answers: dict[Inquiry, QuestionAnswer] = field(default_factory=dict)
    shared: dict[Hashable, float] = field(default_factory=dict)
    claims: dict[str, None] = field(default_factory=dict)
    ranked: Counter[str] = field(default_factory=Counter)
    proposed: float = 0.0
    joined: float = 0.0

    def phase(self, take: Callable[[Sequence[RuleSearch]], None], search: RuleSearch) -> tuple[Counter[str], Rows]:
        """Take a phase of a step; returns the new missing requests by role, and the beams that lack an answer."""
        before, names = len(self.journal.missing), search.names
        self.waiting, self.answers = [], {}
        if search.beams:
            take([search])
        new = Counter(role for role, _ in list(self.journal.missing.values())[before:])
        length = len(self.waiting[0].values) if self.waiting else 0
        return new, rows_of(names[:length], self.waiting)

    def _wait(self, _: RuleSearch, beams: Sequence[Beam]) -> None:
        self.waiting += beams

    def _count(self, _: RuleSearch, answers: Answers) -> None:
        self.answers.update(answers)

    def _prove(self, rule_search: RuleSearch, literal: Literal) -> None:
        """Nothing is derived here: all beams pass."""

    def more(self, key: Hashable, count: float) -> float:
        """The number of these questions, claims or texts that no earlier rule has counted.

        Of the rules with the same key, the one with the most asks those of the others too.
        """
        before = self.shared.get(key, 0.0)
        self.shared[key] = max(before, count)
        return max(0.0, count - before)

    def prompts(self, plans: Sequence[SearchPlan], probed: int) -> _Prompts:
        """The prompts of the missing requests; a claim that is not known yet has usual names."""
        calls = [call for role, call in self.journal.missing.values() if role == KNOWLEDGE]
        texts = {KNOWLEDGE: [str(call.request.get("prompt", "")) for call in calls]}
        texts[CRITIC] = list(map(critic_prompt, self.claims))
        texts[EVALUATOR] = []
        for rule in (rule_plan.rule for rule_plan in plans):
            names = {variable.name: USUAL_NAME for variable in rule.variables}
            texts[EVALUATOR].append(statement_text(rule, self.job.library, names).sentence)
        tokens = {PROBE: PROBE_TOKENS.prompt_tokens}
        if self.ranked.total():
            characters = sum(len(text) * count for text, count in self.ranked.items())
            tokens[LIKELIHOOD] = ceil(characters / self.ranked.total() / CHARACTERS_PER_TOKEN)
        for role, known in texts.items():
            if known:
                tokens[role] = ceil(sum(map(len, known)) / len(known) / CHARACTERS_PER_TOKEN)
        critic = self.oracle.models.critic
        assert isinstance(critic, JournaledCritic)  # noqa: S101  `journaled` made it
        return _Prompts(
            tokens, critic.prepared(max(self.claims, key=len, default="")).reserved, self.proposed, self.joined, probed
        )


class _RuleWalk:
    """Numbers of one rule: of its beams as far as answers are known, and of the others, `rest`."""

    def __init__(self, walk: _Walk, rule_plan: SearchPlan) -> None:
        self.walk, self.plan, self.settings, self.library = walk, rule_plan, walk.job.settings, walk.job.library
        facts = None if self.settings.compat else walk.facts
        self.search = RuleSearch(rule_plan, self.library, self.settings, "", facts=facts)
        self.costs = _ExpectedCosts(rule_plan.rule, self.library, walk.job.models, self.settings)
        self.rest, self.was_ranked = Rows(0), False

    def estimate(self) -> RuleEstimate:
        """The rule's counts, step by step."""
        steps = [self._step(number, step) for number, step in enumerate(self.plan.steps)]
        most = self.settings.pool if self.settings.enough is None else 2 * self.settings.enough
        statements = min(most, self._beams)
        promise = self.walk.oracle.promises.statements
        if promise is not None:
            statements *= promise.expected_share(self.plan.rule.name)
        rule = self.plan.rule
        return RuleEstimate(rule.name, rule.generic_text, self.plan.order, tuple(steps), round(statements))

    @property
    def _beams(self) -> float:
        return len(self.search.beams) + self.rest.count

    def _step(self, number: int, step: SearchStep) -> StepEstimate:
        self.search.step_number = number
        if self.settings.enough is not None:
            needed = ceil(self.search.enough_now[1])
            self.search.beams = self.search.beams[:needed]
            self.rest = self.rest.sampled(needed - len(self.search.beams))
        step = replace(step, functional=self.search.is_functional)
        known, questions, calls, claims = self._ask(step)
        claims += self._close(step)
        values = self._beams
        counts = (questions, known, calls, claims, self._rank(step), values)
        return StepEstimate(step.variable.name, *map(round, counts))

    def _ask(self, step: SearchStep) -> tuple[int, float, float, float]:
        """The questions that the journal answers, all questions, and the calls and claims to be sent."""
        search, name = self.search, step.variable.name
        if search.origin is Origin.DERIVED and not self._is_quick():
            self._leave(search.names[:-1])
        key = ("asked", *(self._shape(literal, step) for literal in step.generators[:1]))
        cost, self.rest = self.costs.ask(step, self.rest)
        share = self.walk.more(key, cost.questions) / cost.questions if cost.questions else 0.0
        cost = PlanCost(*(share * count for count in astuple(cost)))
        new, waiting = self.walk.phase(self.walk.extend, search)
        if waiting.count:
            answer = self.costs.yield_of(step, search.names[:-1])
            asked = new[KNOWLEDGE] / (self.walk.oracle.settings.samples if step.functional else 1)
            cost += PlanCost(asked, asked * answer.calls, asked * answer.proposed)
            keys = waiting.keys(variable_names(step.generators[:1]))
            self.rest = self.rest.joined(waiting.extended(name, keys, answer.accepted))
        known = sum(answer.complete for answer in self.walk.answers.values())
        self.walk.proposed += cost.proposed
        cost = self._together(step, cost)
        claims = self._claims(step, cost) if search.origin is Origin.MODEL else cost.checks
        return known, known + cost.questions, cost.calls, new[CRITIC] + (claims if self.settings.critic else 0.0)

    def _is_quick(self) -> bool:
        """True if given facts give the values of a derived step in the time that there is."""
        search = self.search
        if search.facts is None or not search.facts.decide(search.generator):
            return False
        try:
            search.facts.values(search.open_atoms().values(), search.names[-1])
        except LimitExceeded:
            return False
        return True

    def _together(self, step: SearchStep, cost: PlanCost) -> PlanCost:
        """The cost if the first lists of questions with a value come several in one reply."""
        lists = self.walk.lists
        joined = cost.questions * (self.settings.samples if step.functional else 1)
        if lists == 1 or joined < lists or not self.settings.words.joins:
            return cost
        has_value = variable_names(step.generators[:1]) & set(self.search.names[:-1])
        if not has_value:
            return cost
        sample = 0 if self.walk.joined else SAMPLE
        self.walk.joined += joined
        return replace(cost, calls=cost.calls - joined + ceil(joined / lists) + sample)

    def _claims(self, step: SearchStep, cost: PlanCost) -> float:
        """The claims about proposed values: one about the type, one about each literal that becomes ground."""
        for literal in self.plan.rule.literals:
            terms = (USUAL_NAME if isinstance(term, Variable) else term for term in literal.atom.arguments)
            self.walk.claims[self.walk.oracle.claim(Atom(literal.atom.predicate, tuple(terms)))] = None
        data_type = step.variable.data_type
        # A value is judged once by its type, and the questions of a step propose the same values again and again.
        different = min(cost.proposed, self.costs.most_values(data_type))
        types = 0.0 if self.library.is_numeric(data_type) else self.walk.more(("type", data_type), different)
        is_ground = variable_names(step.generators[:1]) <= set(self.search.names)
        return types + cost.proposed * is_ground

    def _close(self, step: SearchStep) -> float:
        """The claims of the premises that the step closes: one for each beam whose atom nobody has judged yet."""
        search = self.search
        for literal in search.checked():
            if origin_of(literal, self.library) is Origin.DERIVED and asked_predicates(literal, self.library):
                self._leave(search.names)
        shapes = tuple(self._shape(item, step) for item in step.closes)
        cost, self.rest = self.costs.close(step, self.rest)
        checks = self.walk.more(("closed", shapes), cost.checks) if self.settings.critic else 0.0
        new, waiting = self.walk.phase(self.walk.close, search)
        if waiting.count:
            self.rest = self.rest.joined(waiting.sampled(waiting.count * self.costs.yields.passing))
        return new[CRITIC] + checks

    def _rank(self, step: SearchStep) -> float:
        """The texts to score; the beams are ranked by known scores, and the others cut to their share."""
        search, settings = self.search, self.settings
        ranks = settings.beam is not None and search.ranks(round(self._beams))
        texts = self._texts(step) if ranks and settings.likelihood == "model" else 0.0
        divides = search.divides
        new, waiting = self.walk.phase(self.walk.rank, search)
        if ranks and (divides or settings.compat):
            # The distributions keep different ends of the first ranking, and then each its share of its own.
            ends = 1 if self.was_ranked else len(settings.distributions)
            size = ceil(self.rest.count * settings.share)
            if divides:
                size = settings.end_size.of(round(self.rest.count))
            self.rest = self.rest.sampled(ends * size)
            self.was_ranked = True
        if new[LIKELIHOOD]:  # otherwise the ranker has refused the texts
            self.rest = self.rest.joined(waiting)
        self.rest = self.rest.sampled(max(0, settings.pool - len(search.beams)))
        return texts + new[LIKELIHOOD]

    def _texts(self, step: SearchStep) -> float:
        """The texts that the ranker has to score: sentences, names on their own, and names beside others."""
        rows = self.rest
        ranked = ranked_literals(self.plan.rule, self.library, self.search.names, self.settings.compat)
        named = sorted(variable_names(ranked) & rows.distinct.keys()) if ranked else [step.variable.name]
        wanted = Measure(self.settings.measure or Measure.PAPER)
        model = self.walk.oracle.models.likelihood
        measures = set(kept_measures(model, wanted) if self.search.divides else [wanted])
        keys, count = rows.keys(named), 0.0
        # A single value is ranked by its type claim, which all rules with this type share.
        shape = tuple(self._shape(literal, step) for literal in ranked) or step.variable.data_type
        usual = [USUAL_NAME.value] * len(self.search.names)
        if measures - {Measure.PRIOR, Measure.PAIR}:
            count += self.walk.more(("texts", shape), keys)
            writer = TextWriter(self.plan.rule, self.library, self.search.names, self.settings.compat, {})
            self.walk.ranked[writer.text(tuple(usual))] += ceil(count)
        if Measure.PRIOR in measures:
            types = {variable.name: variable.data_type for variable in self.plan.rule.variables}
            names = sum(self.walk.more(("names", types[name]), rows.distinct[name]) for name in named)
            self.walk.ranked[str(USUAL_NAME.value)] += ceil(names)
            count += names
        if {Measure.PRIOR, Measure.PAIR} <= measures:
            pairs = len(named) * (len(named) - 1) * keys * (1 + OTHERS)
            count += self.walk.more(("pairs", shape, len(named)), pairs)
        return count

    def _leave(self, names: Sequence[str]) -> None:
        """Go on with numbers in place of known beams. `names`: those of the beams' values."""
        self.rest = self.rest.joined(rows_of(names, self.search.beams))
        self.search.beams = []

    def _shape(self, item: BodyLiteral, step: SearchStep) -> Hashable:
        """Equal for premises that ask or claim alike: values are not known yet, so their types stand for them."""
        if not isinstance(item, Literal):
            return str(item)
        names, terms = self.search.names, []
        for term in item.atom.arguments:
            if not isinstance(term, Variable):
                terms.append(str(term))
            elif term == step.variable:
                terms.append("")
            else:
                terms.append(term.data_type if term.name in names else "_")
        return (item.negated, item.atom.indicator, tuple(terms))


class _ExpectedCosts(PlanCosts):
    """Expected costs where a question has as many more values as its type has parts."""

    def __init__(self, rule: Rule, library: Library, models: Models, settings: SearchSettings) -> None:
        self.settings, self.usual = settings, usual_yields(models, settings)
        super().__init__(rule, library, settings.yields(self.usual))

    def yield_of(self, step: SearchStep, bound: Collection[str]) -> Yield:
        limited = super().yield_of(step, bound)
        if step.functional:
            return limited
        atom, size = step.generators[0].atom, _parts_of(step.variable.data_type, self.library)
        if limited is self.yields.open:
            return self.settings.within(self.usual.open.scaled(size))
        # A predicate has a typical number of last arguments; other ones have as many more as their type is larger.
        last = self.library.signature(atom.indicator).argument_types[-1]
        size = 1.0 if atom.arguments[-1] == step.variable else size / _parts_of(last, self.library)
        return self.settings.within(self.usual.keyed.scaled(size))

    def most_values(self, data_type: str) -> float:
        """Number of different values of a type, in answers to any questions."""
        return self.usual.open.accepted * _parts_of(data_type, self.library)


def usual_yields(models: Models, settings: SearchSettings) -> Yields:
    """The usual yields: a model that states the predicates that it knows has few values of each."""
    if settings.compat:
        return LINK
    return Yields() if models.knowledge.identity.knows is None else LIMITED


def _parts_of(data_type: str, library: Library) -> float:
    """Number of types without subtypes that a type consists of."""
    parts = {type_key(lower) for lower, _ in library.subtypes if library.is_declared_subtype(lower, data_type)}
    return max(1, len(parts - {type_key(upper) for _, upper in library.subtypes}))


# --- the roles --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Roles:
    """Calls, tokens and money by role."""

    kb: KnowledgeBase
    models: Models
    settings: SearchSettings
    prices: Mapping[str, Price]
    prompts: _Prompts

    def estimates(self, rules: Sequence[RuleEstimate], probes: int = 0) -> dict[str, RoleEstimate]:
        """The estimate of each role; of choosing a prompt profile too, if that takes requests."""
        models, votes = self.models, self.prompts.claim
        calls, claims, texts = (sum(rule.total(name) for rule in rules) for name in ("calls", "claims", "texts"))
        unscored = sum(max(0, rule.statements - rule.scored) for rule in rules)
        # A vote takes several requests for a claim. A server that was not probed is expected to need one.
        assumed = getattr(models.critic, "is_assumed", False)
        together = getattr(models.critic, "claims_together", 1)
        judged = ceil((claims + self.prompts.probed) / together) * (1 if assumed else votes.requests)
        verdict = 1 if assumed else ceil(votes.completion_tokens / votes.requests / ROOM_OF_A_VOTE)
        verdict = verdict if together == 1 else together * TOKENS_PER_VERDICT
        listed = ceil(self.prompts.proposed * TOKENS_PER_VALUE / max(1, calls))
        steps = sum(len(rule.steps) for rule in rules)
        rounds = ceil(steps / self.settings.rules_together) * self.settings.calls_per_question
        found = {
            KNOWLEDGE: self._role(KNOWLEDGE, models.knowledge, calls, listed, rounds),
            CRITIC: self._role(CRITIC, models.critic, judged, verdict, rounds),
            LIKELIHOOD: self._role(LIKELIHOOD, models.likelihood, texts, 0, rounds),
            EVALUATOR: self._role(EVALUATOR, models.evaluator, unscored, 0, rounds),
        }
        abilities: dict[str, int] = {}
        for model in (models.knowledge, models.critic, models.likelihood, models.evaluator):
            abilities |= getattr(model, "probes_to_come", dict)()
        # Most models understand one of the first wordings.
        if probes or abilities:
            asked = sum(abilities.values()) + max(0, probes - 1)
            found[PROBE] = self._role(PROBE, models.knowledge, asked, PROBE_TOKENS.completion_tokens, asked)
        return found

    def _role(
        self, role: str, model: Generator | Critic | LikelihoodModel, calls: int, completion: int, rounds: int
    ) -> RoleEstimate:
        """The estimate of so many calls. `completion`: tokens of one answer."""
        name, prompt = model.identity.name, self.prompts.tokens.get(role, PROMPT_TOKENS)
        if role == KNOWLEDGE:
            # A list that is asked for together with others adds only its sentence, about half of a prompt.
            prompt += round(self.prompts.joined * prompt / 2 / max(1, calls))
        if role == CRITIC and (together := getattr(model, "claims_together", 1)) > 1:
            # The question comes once, before the claims.
            question = ceil(len(critic_prompt("")) / CHARACTERS_PER_TOKEN)
            prompt = question + together * (max(1, prompt - question) + TOKENS_PER_NUMBER)
        sent, usage, per = calls, Usage(prompt, completion), 1
        requests, answered, prompt_tokens, completion_tokens = self.kb.attempt_sums().get((name, role), (0, 0, 0, 0))
        measured = answered if answered >= LEAST_MEASURED else 0
        if measured:
            # Requests that failed were sent again: as many more than answers are expected now.
            sent, usage, per = ceil(calls * requests / answered), Usage(prompt_tokens, completion_tokens), requests
        tokens, price = ceil(sent * usage.tokens / per), self.prices.get(name)
        cost = None if price is None else price.of(usage) * sent / per
        # By the limits of the alias, else by the answers that the knowledge base has of the model.
        pace: ServerPace | None = getattr(model, "pace", None)
        seconds = None if pace is None else pace.seconds(sent, Usage(prompt, completion), rounds)
        pause = self.kb.seconds_per_answer(role, model.identity.title) if seconds is None else None
        if pause is not None:
            seconds = sent * pause
        return RoleEstimate(name, sent, tokens, cost, seconds, measured, getattr(model, "is_assumed", False))
