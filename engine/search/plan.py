"""Estimate of a run before anything is asked: calls, tokens and money, as expected and at most.

The rules take the steps of their plans with a budget of no calls. As far as the journal has the answers the numbers are
exact; from the first unknown answer on they are estimated. Nothing is sent, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, permutations
from math import ceil

from hapax.engine.inference.derive import relevant_library
from hapax.engine.search import gates
from hapax.engine.search.beams import Beam, RuleSearch, joined_measures, ranked_literals, ranked_parts
from hapax.engine.search.decidable import DecidableFacts
from hapax.engine.search.expectation import (
    FUNCTIONAL,
    KEYED,
    LARGE,
    LIMITED,
    OPEN,
    VERIFIED,
    ExpectedBeams,
    Experience,
    SharedQuestions,
    type_size,
)
from hapax.engine.search.inquiry import Inquiry
from hapax.engine.search.oracle import Oracle, journaled, model_name
from hapax.engine.search.origin import Origin, origin_of
from hapax.engine.search.report import Unanswerable
from hapax.engine.search.search import DEMAND, ROWS_PER_GOAL, settled_measure, unanswerable, worthy_settings
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.dependencies import SearchPlan, SearchStep, plan, search_plans
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Literal, Term, Variable, variable_names
from hapax.kb.records import Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget, Price
from hapax.llm_oracle.calls import TokenReserving
from hapax.llm_oracle.journal import PROBE, Journal, ReadOnlyCallStore
from hapax.llm_oracle.measures import Measure, RankedText, TextMeasures, kept_measures
from hapax.llm_oracle.pace import ServerPace
from hapax.llm_oracle.pair_frames import OTHERS
from hapax.llm_oracle.profile_probing import PROBED_TOKENS, PROBED_VALUES
from hapax.llm_oracle.profiles import PROFILES
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

CHARACTERS_PER_TOKEN = 4
TOKENS_PER_VALUE = 5
"""Tokens of an item of a list: number, value, full stop and line end."""
LEAST_MEASURED = 20
"""Answered requests in the ledger from which on the expected figures of a role follow them."""
PROBE_PROMPT_TOKENS = 60
"""Prompt tokens of a short question, on average over the profiles."""
ROOM_OF_A_VOTE = 64
"""Ratio of the tokens that a vote may use, so that a model can think aloud, to those that a plain yes or no uses."""


@dataclass(frozen=True, slots=True)
class Range:
    """An expected number and its upper limit."""

    expected: int = 0
    most: int = 0

    def __add__(self, other: Range) -> Range:
        return Range(self.expected + other.expected, self.most + other.most)


@dataclass(frozen=True, slots=True)
class StepEstimate:
    """One step. `known`: the questions that the journal answers; `calls`, `claims`, `texts`: what would be sent.

    `values`: partial substitutions that pass the step's tests, before the beam and the share cut them.
    """

    variable: str
    asks: str
    questions: Range = Range()
    known: int = 0
    calls: Range = Range()
    claims: Range = Range()
    texts: Range = Range()
    values: Range = Range()


@dataclass(frozen=True, slots=True)
class RuleEstimate:
    """One rule. `generic`: its generic variables, and why they are. `scored`: statements with a score already.

    `skipped`: the reason why it would not be searched.
    """

    rule: str
    generic: str = ""
    order: tuple[str, ...] = ()
    steps: tuple[StepEstimate, ...] = ()
    statements: Range = Range()
    scored: int = 0
    skipped: Unanswerable | None = None

    @property
    def calls(self) -> Range:
        return sum((step.calls for step in self.steps), Range())

    @property
    def known(self) -> int:
        return sum(step.known for step in self.steps)


@dataclass(frozen=True, slots=True)
class OrderEstimate:
    """One order in which the variables of a rule may be searched, with the estimate of each step."""

    plan: SearchPlan
    steps: tuple[StepEstimate, ...]

    @property
    def questions(self) -> Range:
        return sum((step.questions for step in self.steps), Range())

    @property
    def calls(self) -> Range:
        return sum((step.calls for step in self.steps), Range())

    @property
    def claims(self) -> Range:
        return sum((step.claims for step in self.steps), Range())


@dataclass(frozen=True, slots=True)
class RoleEstimate:
    """Calls, tokens, money and time of one role.

    `cost`: expected and most; None if the model's price is unknown. `seconds`: likewise the wall time of requests to a
    server by its alias, else by the answers that the knowledge base has of the model; None without any.
    `measured`: answered requests in the ledger from which the expected calls, tokens and money follow; 0: from none.
    """

    model: str
    calls: Range = Range()
    tokens: Range = Range()
    cost: tuple[float, float] | None = None
    seconds: tuple[float, float] | None = None
    measured: int = 0


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """The whole run. Shared questions are expected of the first rule that asks them; at most, each rule asks them."""

    rules: tuple[RuleEstimate, ...]
    roles: Mapping[str, RoleEstimate] = field(default_factory=dict)

    @property
    def calls(self) -> Range:
        """Calls of the knowledge model."""
        return sum((rule.calls for rule in self.rules), Range())

    @property
    def cost(self) -> tuple[float, float] | None:
        """Expected and most money; None if a price is unknown."""
        expected = most = 0.0
        for role in self.roles.values():
            if role.cost is None:
                return None
            expected += role.cost[0]
            most += role.cost[1]
        return expected, most

    @property
    def seconds(self) -> tuple[float, float]:
        """Expected and most wall time of the requests whose pace is known: the roles are asked one after the other."""
        known = [role.seconds for role in self.roles.values() if role.seconds is not None]
        return sum(expected for expected, _ in known), sum(most for _, most in known)


def plan_run(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
    *,
    prices: Mapping[str, Price] | None = None,
    retry_unusable: bool = False,
) -> RunEstimate:
    """Estimate a search of these rules, given the answers in `kb`. `prices` by model name, per million tokens.

    `retry_unusable`: what had no usable reply is asked again.
    Raises HapaxError where the search would: if its critic is not calibrated, or if nothing can be promised.
    """
    settings = settled_measure(settings or SearchSettings(), models)
    with KnowledgeBase(None) as scratch:
        common = _common(library, kb, scratch, models, settings, retry_unusable=retry_unusable)
        estimates = []
        for rule in rules:
            reason = unanswerable(rule, library, models, settings.order)
            if reason is not None:
                estimates.append(RuleEstimate(rule.name, rule.generic_text, skipped=reason))
                continue
            estimate = _RuleEstimator(common, plan(rule, library, settings.order)).estimate()
            texts = {statement.text for statement in kb.statements(rule=rule.name)}
            scored = len(kb.assessments(texts, "log_likelihood", model_name(models.evaluator)))
            estimates.append(replace(estimate, scored=scored))
    roles = role_estimates(estimates, models, settings, common.usage, prices or {})
    whole = with_ledger(RunEstimate(tuple(estimates), roles), kb, prices or {})
    return replace(whole, roles=_timed(whole.roles, kb, models))


def plan_orders(
    library: Library,
    rules: Sequence[Rule],
    kb: KnowledgeBase,
    models: Models,
    settings: SearchSettings | None = None,
) -> dict[str, tuple[OrderEstimate, ...]]:
    """By rule its orders of variables, cheapest first, each with its estimate as if the rule were searched alone."""
    settings = settled_measure(settings or SearchSettings(), models)
    result: dict[str, tuple[OrderEstimate, ...]] = {}
    for rule in rules:
        estimates = []
        for order in search_plans(rule, library):
            with KnowledgeBase(None) as scratch:
                common = _common(library, kb, scratch, models, settings)
                estimates.append(OrderEstimate(order, _RuleEstimator(common, order).estimate().steps))
        result[rule.name] = tuple(estimates)
    return result


def _common(
    library: Library,
    kb: KnowledgeBase,
    scratch: KnowledgeBase,
    models: Models,
    settings: SearchSettings,
    *,
    retry_unusable: bool = False,
) -> _Common:
    """The data of an estimate. The oracle stores facts as it goes, in `scratch`, because an estimate writes nothing."""
    # With no calls allowed the journal answers what it knows and cuts everything else. A store that is only read needs
    # no lock on asking, which a running search holds.
    journal = Journal(ReadOnlyCallStore(kb), Budget(max_calls=0), retry_unusable=retry_unusable)
    # Facts of models come from the stored answers, as they do in a search.
    scratch.add_facts(fact for fact in kb.facts() if fact.source is Source.GIVEN)
    worthy = worthy_settings(kb, library, models.critic, settings)
    oracle = Oracle(scratch, library, journaled(models, journal), worthy, journal=journal)
    oracle.finished, oracle.takes_parts = kb, True
    habits = LARGE if models.knowledge.identity.knows is None else LIMITED
    # What follows by rules is estimated: deriving it here would take as long as the search.
    facts = None if settings.compat else DecidableFacts(oracle.known, library, lambda _: None)
    return _Common(oracle, settings, Experience(habits, settings), kb.most_candidates(), facts=facts)


def _timed(roles: Mapping[str, RoleEstimate], kb: KnowledgeBase, models: Models) -> dict[str, RoleEstimate]:
    """The estimates with the wall time of models that state no pace, by the answers that `kb` has of them."""
    timed = dict(roles)
    for role, model in _by_role(models).items():
        pace = None if roles[role].seconds else kb.seconds_per_answer(role, model_name(model))
        if pace is not None:
            calls = roles[role].calls
            timed[role] = replace(roles[role], seconds=(calls.expected * pace, calls.most * pace))
    return timed


def _by_role(models: Models) -> dict[str, Generator | Critic | LikelihoodModel]:
    return {
        KNOWLEDGE: models.knowledge,
        CRITIC: models.critic,
        LIKELIHOOD: models.likelihood,
        EVALUATOR: models.evaluator,
    }


def with_probes(estimate: RunEstimate, probes: int, model: Generator, price: Price | None) -> RunEstimate:
    """The estimate with the requests by which a search first chooses its prompt profile."""
    if not probes:
        return estimate
    expected_use = Usage(PROBE_PROMPT_TOKENS, PROBED_VALUES * TOKENS_PER_VALUE)
    most_use = Usage(PROBE_PROMPT_TOKENS, PROBED_TOKENS)
    pace: ServerPace | None = getattr(model, "pace", None)
    # The requests of one profile are a batch.
    seconds = _both(
        None if pace is None else pace.seconds(probes, expected_use, len(PROFILES)),
        None if pace is None else pace.seconds(probes, most_use, len(PROFILES)),
    )
    cost = None if price is None else (price.of(expected_use) * probes, price.of(most_use) * probes)
    tokens = Range(probes * _tokens(expected_use), probes * _tokens(most_use))
    probing = RoleEstimate(model.identity.name, Range(probes, probes), tokens, cost, seconds)
    return replace(estimate, roles={**estimate.roles, PROBE: probing})


def with_ledger(estimate: RunEstimate, kb: KnowledgeBase, prices: Mapping[str, Price]) -> RunEstimate:
    """The estimate with what each answer of a server has taken so far: repeated requests, and tokens of a request."""
    sums = kb.attempt_sums()
    roles = dict(estimate.roles)
    for role, need in estimate.roles.items():
        requests, answered, prompt_tokens, completion_tokens = sums.get((need.model, role), (0, 0, 0, 0))
        if answered < LEAST_MEASURED:
            continue
        # Requests that failed were sent again: as many more than answers are expected now.
        expected = ceil(need.calls.expected * requests / answered)
        tokens = ceil(expected * (prompt_tokens + completion_tokens) / requests)
        price, cost = prices.get(need.model), need.cost
        if price is not None and cost is not None:
            money = price.of(Usage(prompt_tokens, completion_tokens)) * expected / requests
            cost = money, max(money, cost[1])
        roles[role] = replace(
            need,
            calls=Range(expected, max(expected, need.calls.most)),
            tokens=Range(tokens, max(tokens, need.tokens.most)),
            cost=cost,
            measured=answered,
        )
    return replace(estimate, roles=roles)


@dataclass
class PromptUsage:
    """Prompt tokens of an average question, by the prompts seen so far."""

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
    """Common data of all rules: the oracle over the journal, and the questions, claims and texts counted so far."""

    oracle: Oracle
    settings: SearchSettings
    experience: Experience
    most_stored: int
    """Values of the finished question that has most: a search with other settings may have allowed more."""
    usage: PromptUsage = field(default_factory=PromptUsage)
    facts: DecidableFacts | None = None
    """Given facts, which are tested before anything is ranked; None under `--compat`."""
    shared: SharedQuestions = field(default_factory=SharedQuestions)
    asked: set[Inquiry] = field(default_factory=set)
    claims: set[Atom] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class _RuleEstimator:
    """Estimate of one rule: its exact beams as far as answers are known, and the expected number of others.

    `most`: upper limit of the number of beams. `unknown`: an answer was missing, so numbers are estimates from here on.
    """

    def __init__(self, common: _Common, rule_plan: SearchPlan) -> None:
        self.common, self.plan, self.settings = common, rule_plan, common.settings
        self.oracle = common.oracle
        self.search = RuleSearch(rule_plan, self.oracle.library, self.settings, "", facts=common.facts)
        self.rows = ExpectedBeams(self.settings)
        # Every search begins with one beam without values.
        self.most, self.unknown = 1, False
        self.width = self.settings.pool

    def estimate(self) -> RuleEstimate:
        steps = tuple(self._step(number, step) for number, step in enumerate(self.plan.steps))
        statements = min(self.width, len(self.search.beams) + round(self.rows.together))
        rule = self.plan.rule
        most = max(statements, self.most)
        promise = self.oracle.settings.statements
        if promise is not None:
            share = promise.expected_share(rule.name)
            statements = round(statements * share)
            most = most if share else 0  # without a promise none is kept
        return RuleEstimate(rule.name, rule.generic_text, self.plan.order, steps, Range(statements, most))

    def _step(self, number: int, step: SearchStep) -> StepEstimate:
        self.search.step_number = number
        asks = "" if step.assignment else str(step.generators[0])
        counts = _StepCounts(step.variable.name, asks, rows_before=self.most)
        match self.search.origin:
            case Origin.MODEL:
                self._ask(step, counts)
            case Origin.COMPUTED:
                self.search.compute()
                self.rows.extend(step.variable.name, 1, self.rows.together)
            case Origin.GIVEN:
                atoms, name = self.search.open_atoms(), self.search.names[-1]
                self.search.extend_with({beam: self.oracle.known.given(atom, name) for beam, atom in atoms.items()})
                self._extend_expected(step, self.rows.together, KEYED)
            case Origin.DERIVED:
                self._derive(step.generators[0], counts)
                self._expect(self.search.beams)
                self.search.beams = []
                self._extend_expected(step, self.rows.together, KEYED)
        self.most = self._most_beams(step)
        # Checks come before the ranking, as in the search: it cuts only the beams that passed.
        self._close(step, counts)
        passed = len(self.search.beams) + round(self.rows.together)
        counts.values = Range(passed, max(passed, self.most) if self.unknown else passed)
        self._rank(step, counts)
        return counts.estimate()

    # -- asking

    def _ask(self, step: SearchStep, counts: _StepCounts) -> None:
        """Count the questions of a step: exactly if the journal answers them, otherwise by the habits of their kind."""
        inquiries = self.search.inquiries()
        unique = list(dict.fromkeys(inquiries.values()))
        # The prompts of one step differ by their values alone, so one of them stands for all.
        for inquiry in unique[:1]:
            request = self.oracle.wording.request(inquiry.question, self.settings.values_per_call)
            self.common.usage.add(request.prompt)
        answers = self.oracle.answers(unique)
        keys = [name for name in _names(step.generators[0]) if name in self.search.names[:-1]]
        # A constant in the question narrows it just as a value does.
        has_constant = any(not isinstance(term, Variable) for term in step.generators[0].atom.arguments)
        is_functional = self.search.is_functional
        kind = FUNCTIONAL if is_functional else KEYED if keys or has_constant else OPEN
        size = self._size(step, kind)
        self.common.experience.learn(kind, answers.values(), size)
        missing = {inquiry for inquiry, answer in answers.items() if not answer.complete}
        waiting = [beam for beam, inquiry in inquiries.items() if inquiry in missing]
        self._expect(waiting)
        expected = self.rows.keys(keys)
        # Missing answers of known beams are counted; the questions expected beyond them may be shared with other rules.
        new = len(missing - self.common.asked) + self._unasked(step, max(0.0, expected - len(missing)))
        self.common.asked |= missing
        self.search.extend({beam: answers[inquiry] for beam, inquiry in inquiries.items() if inquiry not in missing})
        known = len(unique) - len(missing)
        # Each beam may need a question of its own once its values are unknown.
        askings = counts.rows_before * (len(self.settings.distributions) if self.settings.is_released else 1)
        most = min(askings, self.width) if self.unknown else len(missing)
        habit = self.common.experience.of(kind, size)
        calls = self.oracle.most_samples if is_functional else self.settings.calls_per_question
        counts.questions = Range(known + round(new), known + most)
        counts.known = known
        counts.calls = Range(round(new * habit.calls), most * calls)
        self._propose(step, counts, new * habit.proposed, most)
        self._extend_expected(step, expected, kind, size)

    def _size(self, step: SearchStep, kind: str) -> float:
        """Number of values of the step's questions, as `Experience.of` counts it."""
        if kind == FUNCTIONAL:
            return 1.0
        library, atom = self.oracle.library, step.generators[0].atom
        own = type_size(library, step.variable.data_type)
        if kind == OPEN:
            return own
        last = library.signature(atom.indicator).argument_types[-1]
        return 1.0 if atom.arguments[-1] == step.variable else own / type_size(library, last)

    def _unasked(self, step: SearchStep, count: float) -> float:
        """The number of these `count` unknown questions that no earlier rule asks."""
        atom, names = step.generators[0].atom, self.search.names

        def shape(term: Term) -> str:
            if not isinstance(term, Variable):
                return str(term)
            # Values are not known yet, so questions are alike if values of the same types are at the same places.
            return "" if term == step.variable else term.data_type if term.name in names else "_"

        return self.common.shared.more((atom.indicator, tuple(map(shape, atom.arguments))), count)

    def _propose(self, step: SearchStep, counts: _StepCounts, proposed: float, most: int) -> None:
        """Count the claims about proposed values: one about the type, one about each literal that becomes ground."""
        if not self.settings.critic:
            return
        numeric = self.oracle.library.is_numeric(step.variable.data_type)
        ground = _names(step.generators[0]) <= set(self.search.names)
        # A value is judged once by its type, and the questions of a step propose the same values again and again.
        size = type_size(self.oracle.library, step.variable.data_type)
        different = min(proposed, self.common.experience.pool(size))
        types = 0.0 if numeric else self.common.shared.more(("type", step.variable.data_type), different)
        # LINK asks with all literals at once, and each of them may become ground.
        claimed = 1 if self.settings.compat is None else 1 + len(self.plan.rule.literals)
        values = most * self._most_values()
        counts.claims += Range(round(types + proposed * ground), values * (claimed + 1))

    def _expect(self, waiting: Sequence[Beam]) -> None:
        """Turn known beams whose answers are missing into expected ones."""
        names = self.search.names[:-1]
        # Columns: the values of each variable over the beams.
        columns = zip(*(beam.values for beam in waiting), strict=True)
        # Without beams there are no columns.
        self.rows.begin(len(waiting), {name: len(set(column)) for name, column in zip(names, columns, strict=False)})
        self.unknown = self.unknown or bool(waiting)

    def _extend_expected(self, step: SearchStep, questions: float, kind: str, size: float = 1.0) -> None:
        self.rows.extend(step.variable.name, self.common.experience.of(kind, size).accepted, questions)

    def _most_values(self) -> int:
        """Upper limit of a question's values, if models return no more than they are asked for."""
        if self.search.is_functional:
            return self.oracle.most_samples
        # LINK's released code asks for twice as many values about the first variable.
        doubled = 2 if self.settings.compat == "released" and self.search.step_number == 0 else 1
        return max(doubled * self.settings.calls_per_question * self.settings.values_per_call, self.common.most_stored)

    def _most_beams(self, step: SearchStep) -> int:
        """Upper limit of the number of beams before the gates of the step."""
        if not self.unknown:
            return len(self.search.beams)
        if self.search.origin is Origin.COMPUTED or self.search.is_functional:
            return max(self.most, len(self.search.beams))
        if self.search.origin is Origin.MODEL:
            return self.most * self._most_values()
        if self.search.origin is Origin.GIVEN:
            facts = self.oracle.known.of_run(step.generators[0].atom.indicator)
            return max(self.most * len(facts), len(self.search.beams))
        # Only the limit of the demand loop bounds what rules ask for.
        return self.most * DEMAND.questions * self._most_values()

    # -- closing

    def _close(self, step: SearchStep, counts: _StepCounts) -> None:
        """Count the claims of the step's literals: one for each beam whose atom nobody has judged yet."""
        self.search.compare()
        self.search.test()
        self.rows.compare(step)
        for literal in self.search.checked():
            # The test above has decided it for known beams; of the expected ones a share passes.
            if self.common.facts is not None and self.common.facts.is_tabled(literal):
                self.rows.pass_through(VERIFIED)
                continue
            if origin_of(literal, self.oracle.library) is Origin.DERIVED:
                self._derive(literal, counts)
            elif self.settings.critic:
                self._check(literal, counts)
            self.rows.pass_through(VERIFIED)

    def _check(self, literal: Literal, counts: _StepCounts) -> None:
        """Judge known beams as far as the journal has scores, and keep the others."""
        atoms = self.search.ground(literal)
        scores = self.oracle.probabilities(atoms)
        missing = {atom for atom, score in scores.items() if score is None}
        start = self.oracle.settings.threshold_of(literal.atom.indicator)
        # What is known to be false has 0 whatever is promised about the critic.
        denial_limit = max(self.oracle.settings.denial_limit(literal.atom.indicator), 0.0)
        limits = {atom: score for atom, score in scores.items() if score is not None}
        passed = [
            atom in missing or (limits[atom] <= denial_limit if literal.negated else limits[atom] >= start)
            for atom in atoms
        ]
        self.search.close(literal, passed, gates.CRITIC)
        new = len(missing - self.common.claims)
        self.common.claims |= missing
        self.unknown = self.unknown or bool(missing)
        asked = origin_of(literal, self.oracle.library) is Origin.MODEL
        expected = self.rows.keys(_names(literal)) if asked else 0.0
        counts.claims += Range(new + round(expected), self.most if self.unknown else new)

    def _derive(self, literal: Literal, counts: _StepCounts) -> None:
        """Count the questions of a derived literal: its rules ask for the facts that their premises need."""
        # How many these are, only running the rules would tell: the upper limit is that of the demand loop.
        beams = len(self.search.beams)
        if not beams and not self.rows.together:
            return
        library = relevant_library(self.oracle.library, goals=[literal.atom.indicator])
        asking = 0
        for rule in library.rules:
            asking += sum(origin_of(premise, self.oracle.library) is Origin.MODEL for premise in rule.literals)
        if not asking:
            return
        keys = beams + self.rows.keys(_names(literal) & set(self.search.names))
        new = self.common.shared.more(("derived", literal.atom.indicator), keys * asking)
        habit = self.common.experience.of(KEYED)
        groups = ceil(max(self.most, counts.rows_before) / ROWS_PER_GOAL)
        most = groups * DEMAND.questions
        calls = max(self.settings.calls_per_question, self.oracle.most_samples)
        values = calls * self.settings.values_per_call
        self.unknown = True
        counts.questions += Range(round(new), most)
        counts.calls += Range(round(new * habit.calls), most * calls)
        if self.settings.critic:
            verified = groups * DEMAND.verifications
            # Each value has a claim about its type and one about the fact.
            counts.claims += Range(round(2 * new * habit.proposed), 2 * most * values + verified)

    # -- ranking

    def _rank(self, step: SearchStep, counts: _StepCounts) -> None:
        """Rank known beams by known scores; if a score is missing, keep the first beams."""
        search, pool = self.search, self.most
        expected_beams = len(search.beams) + round(self.rows.together)
        ranks = self.settings.beam is not None and search.ranks(expected_beams) and self.settings.likelihood != "none"
        if ranks and self.settings.likelihood == "model":
            texts = search.texts()
            measures = self._known_measures(texts)
            missing = {part: ranked for part, ranked in search.ranked_texts(texts).items() if part not in measures}
            counts.texts = self._texts_to_score(step, missing, pool)
            self.unknown = self.unknown or bool(missing)
            if not missing and not self.rows.together:
                joined = joined_measures(texts.values(), measures)
                wanted = Measure(self.settings.measure or Measure.PAPER)
                known = {text: found.scores[wanted] for text, found in joined.items() if wanted in found.scores}
                search.rank(texts, known, joined)
            else:
                search.advance_unranked()
        elif ranks:
            texts = search.texts()
            # Chance will not keep the beams that are kept here, and others have other answers.
            self.unknown = self.unknown or len(texts) > 1
            search.rank(texts, dict.fromkeys(texts.values(), 0.0))
        else:
            may_rank = self.settings.likelihood == "model" and self.settings.beam is not None
            if may_rank and self.unknown and search.ranks(pool):
                counts.texts = Range(0, pool)
            search.advance_unranked()
        # Known beams have places that expected ones cannot get; a pool for both sides has twice the places.
        sides = self.settings.pool // self.settings.width if self.settings.beam else 1
        divides = search.step_number == len(self.plan.steps)  # the search has gone on to the next step
        self.rows.rank(max(0, self.settings.width - len(search.beams) // sides), ranks, divides)
        self.most = min(self.width, self.most) if self.unknown else len(search.beams)

    def _known_measures(self, texts: Mapping[Beam, str]) -> dict[str, TextMeasures]:
        """The measures of the texts' parts that the journal has, as the search will rank by them."""
        if self.settings.is_ranked_by_mean:
            parts = set(chain.from_iterable(map(ranked_parts, set(texts.values()))))
            scores = self.oracle.log_likelihoods(parts)
            return {part: TextMeasures({Measure.PAPER: score}, 0) for part, score in scores.items()}
        return self.oracle.measures(self.search.ranked_texts(texts).values(), self._measures)

    @property
    def _measures(self) -> list[Measure]:
        """The measures that the search asks of its ranker at this step, as it will rank by them."""
        wanted = Measure(self.settings.measure or Measure.PAPER)
        return kept_measures(self.oracle.models.likelihood, wanted) if self.search.divides else [wanted]

    def _texts_to_score(self, step: SearchStep, missing: Mapping[str, RankedText], pool: int) -> Range:
        """The texts that the ranker has to score: sentences, names on their own, and names beside others.

        `missing`: the known sentences without a measure. `pool`: upper limit of the number of beams.
        """
        ranked = ranked_literals(self.plan.rule, self.oracle.library, self.search.names, self.settings.compat)
        named = set().union(*map(_names, ranked)) if ranked else {step.variable.name}
        # The searched variables whose values are in the sentences, with their types, in the plan's order.
        types = {step.variable.name: step.variable.data_type for step in self.plan.steps if step.variable.name in named}
        beams = pool if self.unknown else len(missing)
        measures, texts = set(self._measures), Range()
        if measures - {Measure.PRIOR, Measure.PAIR}:
            new = missing.keys() - self.common.texts
            self.common.texts |= new
            # A single value is ranked by its type claim, which all rules with this type share.
            single = ("text", step.variable.data_type), self.rows.distinct_of(step)
            expected = self.rows.keys(named) if ranked else self.common.shared.more(*single)
            texts += Range(len(new) + round(expected), beams)
        if Measure.PRIOR in measures:
            names = set(chain.from_iterable(text.values for text in missing.values())) - self.common.names
            self.common.names |= names
            # A name is scored once, whatever is said of it.
            expected = sum(
                self.common.shared.more(("name", kind), self.rows.distinct.get(name, 0.0))
                for name, kind in types.items()
            )
            texts += Range(len(names) + round(expected), beams * len(types))
        # Word vectors compare two names without a text.
        if {Measure.PAIR, Measure.PRIOR} <= measures:
            pairs = list(permutations(types, 2))
            expected = sum(
                self.common.shared.more(("pair", types[partner], types[name]), self._expected_pairs(partner, name))
                for partner, name in pairs
            )
            texts += Range(len(missing) * len(pairs) + round(expected), beams * len(pairs) * (1 + OTHERS))
        return texts

    def _expected_pairs(self, partner: str, name: str) -> float:
        """Sentences with values of a variable beside those of its partner in the statements, and beside other ones."""
        beside = self.rows.keys((partner, name))
        names, partners = self.rows.distinct.get(name, 0.0), self.rows.distinct.get(partner, 0.0)
        # No more than all values beside all others: with few values, one statement's pair is another one's comparison.
        return min(beside + OTHERS * min(beside, names), names * partners)


@dataclass
class _StepCounts:
    """Counts of one step. `rows_before`: upper limit of the number of beams before the step."""

    variable: str
    asks: str
    rows_before: int
    questions: Range = Range()
    known: int = 0
    calls: Range = Range()
    claims: Range = Range()
    texts: Range = Range()
    values: Range = Range()

    def estimate(self) -> StepEstimate:
        counts = (self.questions, self.known, self.calls, self.claims, self.texts, self.values)
        return StepEstimate(self.variable, self.asks, *counts)


def _names(literal: Literal) -> set[str]:
    return variable_names([literal])


def role_estimates(
    estimates: Sequence[RuleEstimate],
    models: Models,
    settings: SearchSettings,
    usage: PromptUsage,
    prices: Mapping[str, Price],
) -> dict[str, RoleEstimate]:
    """Calls, tokens and money by role."""
    calls = dict.fromkeys((KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR), Range())
    for rule in estimates:
        for step in rule.steps:
            calls[KNOWLEDGE] += step.calls
            calls[CRITIC] += step.claims
            calls[LIKELIHOOD] += step.texts
        calls[EVALUATOR] += Range(max(0, rule.statements.expected - rule.scored), rule.statements.most)
    # A vote takes several requests for a claim.
    votes = models.critic.reserved("") if isinstance(models.critic, TokenReserving) else Usage(0, 1)
    vote_tokens = ceil(votes.completion_tokens / votes.requests)
    claims = calls[CRITIC]
    calls[CRITIC] = Range(claims.expected * votes.requests, claims.most * votes.requests)
    usage_per_call = {
        KNOWLEDGE: Usage(usage.mean, settings.values_per_call * TOKENS_PER_VALUE),
        CRITIC: Usage(usage.mean, ceil(vote_tokens / ROOM_OF_A_VOTE)),
        LIKELIHOOD: Usage(usage.mean, 0),
        EVALUATOR: Usage(usage.mean, 0),
    }
    needs = {}
    for role, model in _by_role(models).items():
        count, expected_use = calls[role], usage_per_call[role]
        most_use = Usage(usage.mean, vote_tokens) if role == CRITIC else expected_use
        pace: ServerPace | None = getattr(model, "pace", None)
        rounds = _rounds(estimates, role, settings)
        seconds = _both(
            None if pace is None else pace.seconds(count.expected, expected_use, rounds),
            None if pace is None else pace.seconds(count.most, most_use, rounds),
        )
        price = prices.get(model.identity.name)
        cost = None if price is None else (price.of(expected_use) * count.expected, price.of(most_use) * count.most)
        tokens = Range(count.expected * _tokens(expected_use), count.most * _tokens(most_use))
        needs[role] = RoleEstimate(model.identity.name, count, tokens, cost, seconds)
    return needs


def _tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _both(expected: float | None, most: float | None) -> tuple[float, float] | None:
    return None if expected is None or most is None else (expected, most)


def _rounds(estimates: Sequence[RuleEstimate], role: str, settings: SearchSettings) -> int:
    """Number of batches of a role that wait for each other: the steps of rules side by side, and a step's calls."""
    steps = [len(estimate.steps) for estimate in estimates if estimate.skipped is None]
    groups = range(0, len(steps), settings.rules_together)
    longest = sum(max(steps[start : start + settings.rules_together]) for start in groups)
    if role == EVALUATOR:
        return len(steps)
    # Values are judged call by call, and then the literals that a step closes.
    per_step = {KNOWLEDGE: settings.calls_per_question, CRITIC: settings.calls_per_question + 1, LIKELIHOOD: 1}
    return longest * per_step[role]
