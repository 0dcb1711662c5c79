"""Tools over one knowledge base for agents, as plain functions: `hapax kb mcp` offers them to a language model.

The docstring of a tool is what the model reads. Arguments come from the model, so that every tool has limits, and only
`ask` can write or cost anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hapax.api.browser.table_pages import Page, Wanted, facts, searched
from hapax.api.goal_answers import query, why, why_not
from hapax.api.questions import ROLE, AnsweredQuestion, QuestionInWords
from hapax.api.rules import check_rules
from hapax.engine.kept_rules import kept_rules
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.query_options import QueryOptions
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.errors import Diagnostic, HapaxError, RulesRejected
from hapax.grammar.parsing.parser import parse_rules
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rule_paths import load_rules
from hapax.grammar.rules import Library
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.kb.word_index import WordIndex
from hapax.llm_oracle.budget import Budget, CallStatistics
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.registry import BudgetedModels, instructed, price_table

MOST_ROWS = 1_000
"""Most answers or statements of one call: more would fill a model's context."""

MOST_ANSWERS = 500
"""Most answers to a question in words."""

# A client gives these to its model together with the list of tools.
INSTRUCTIONS = (
    "A knowledge base of facts, rules and derived statements about rare things. Call list_predicates first: goals can "
    "use no other predicates. Values must be spelt as they are stored: find them with search_names. Goals are Prolog: "
    "is_made_from(Dish, butter), names of more than one word in quotes. The resource hapax://language describes rules."
)


@dataclass(frozen=True)
class AskingModels:
    """Models that `ask` may ask, the questions' settings, and the budget for all its calls together.

    `used`: what of the budget was spent before the first call, such as on questions that tell what a server can do.
    """

    models: BudgetedModels
    budget: Budget
    settings: SearchSettings = field(default_factory=SearchSettings)
    used: CallStatistics = field(default_factory=CallStatistics)


class AgentTools:
    """The tools. Each call opens the knowledge base anew, and so sees what other programs have stored since.

    `rules`: files and folders; without any, the rules that the knowledge base keeps, or the shipped ones. `limits`: of
    each goal. Without `asking` there is no tool that writes. Raises HapaxError where a knowledge base cannot be opened.
    """

    def __init__(
        self,
        database: str | Path,
        rules: Sequence[str | Path] = (),
        *,
        limits: QueryLimits | None = None,
        asking: AskingModels | None = None,
    ) -> None:
        self.database = Path(database)
        self._paths = tuple(rules)
        self._limits = limits or QueryLimits()
        self._asking = asking
        self._used = CallStatistics() if asking is None else asking.used
        self._lock = threading.Lock()
        self.words = WordIndex(self.database)
        # Opened now, so that a missing file or a faulty rule ends the start and not the first call.
        with self._open() as kb:
            self._rules(kb)

    @property
    def tools(self) -> tuple[Callable[..., dict[str, Any]], ...]:
        """The tools that this server offers."""
        finding = (self.list_predicates, self.search_names, self.search_facts, self.search_statements)
        reading = (*finding, self.query, self.why, self.why_not, self.check_rules)
        return reading if self._asking is None else (*reading, self.ask)

    def list_predicates(self) -> dict[str, Any]:
        """List the predicates that goals can use, with their argument types, meaning and numbers of facts."""
        with self._open() as kb:
            library, counts = self._rules(kb), kb.fact_counts()
        listed = []
        for signature in library.completed().signatures:
            says = signature.templates.affirmative if signature.templates else None
            line = {"predicate": signature.indicator, "types": list(signature.argument_types), "says": says}
            listed.append({**line, "facts": counts.pop(signature.indicator, 0)})
        # What is left in `counts` has facts, and no rule declares it.
        listed += [{"predicate": name, "types": None, "says": None, "facts": count} for name, count in counts.items()]
        return {"predicates": listed}

    def search_names(self, words: str, limit: int = 20) -> dict[str, Any]:
        """Find stored values that have all these words, or words that begin so, spelt as goals need them."""
        names = self.words.search(words).names
        return {"names": list(names[: _most(limit)]), "more": len(names) > limit}

    def search_facts(self, words: str = "", predicate: str = "", limit: int = 20) -> dict[str, Any]:
        """Find facts whose values contain all these words, of a predicate such as `is_made_from` or of any.

        `probability` and `source` say how sure a fact is and where it is from. `more`: further facts match.
        """
        with self._open() as kb:
            found = facts(kb, Wanted(words=words, predicate=predicate), Page(rows=_most(limit)))
        return {"facts": found.to_json(), "more": found.more}

    def query(self, goal: str, assume: Sequence[str] = (), limit: int = 100) -> dict[str, Any]:
        """Answer a Prolog goal over facts and rules, for instance `is_made_from(Dish, butter), \\+ is_vegan(Dish)`.

        Words with a capital are variables; other names need quotes if they have blanks or capitals. `assume`: atoms
        taken as true for this goal, for instance `is_allergic_to(tom, milk)`. `truncated`: there are more answers.
        """
        with self._open() as kb:
            options = QueryOptions(self._limited(limit))
            return query(goal, self._rules(kb), kb, assume=assume, options=options).to_json()

    def search_statements(
        self, words: str = "", rule: str | None = None, distribution: str | None = None, limit: int = 20
    ) -> dict[str, Any]:
        """Find derived statements that contain all these words, in any case.

        `rule` and `distribution` (`head`: about common names, `long_tail`: about rare ones) narrow the search. `more`
        says that further statements match.
        """
        if distribution is not None and distribution not in list(Distribution):
            raise HapaxError(f"There is no distribution {distribution!r}. Choose {' or '.join(Distribution)}.")
        wanted = Wanted(words=words, rule=rule or "", end=distribution or "")
        with self._open() as kb:
            found = searched(kb, wanted, Page(rows=_most(limit)))
        listed = []
        for identity, name, end, text, _ in found.rows:
            listed.append({"id": identity, "text": text, "rule": name, "distribution": end})
        return {"statements": listed, "more": found.more}

    def why(self, text: str, assume: Sequence[str] = ()) -> dict[str, Any]:
        """Explain why a statement (its text or id) or an atom holds: its proof down to sources, prompts and scores."""
        with self._open() as kb:
            return {"story": str(why(text, self._rules(kb), kb, assume=assume))}

    def why_not(self, text: str, assume: Sequence[str] = ()) -> dict[str, Any]:
        """Explain why an atom without variables does not hold: the gate that stopped it, or the premises that fail."""
        with self._open() as kb:
            return {"story": str(why_not(text, self._rules(kb), kb, assume=assume))}

    def check_rules(self, text: str) -> dict[str, Any]:
        """Check rules in Hapax's language: faults, redundancy and contradictions, each with place and remedy."""
        try:
            diagnostics: Sequence[Diagnostic] = check_rules(parse_rules(text))
        # Syntax faults are the answer here, not a failure of the tool.
        except RulesRejected as rejected:
            diagnostics = rejected.diagnostics
        return {"diagnostics": [str(diagnostic) for diagnostic in diagnostics]}

    def ask(self, goal: str, assume: Sequence[str] = (), limit: int = 100) -> dict[str, Any]:
        """Answer a goal as `query` does, after asking models for the facts that it lacks. This costs time and money.

        New facts are stored if they pass the gates. `stopped` says why not everything was asked, such as the budget.
        """
        with self._spending() as (kb, models):
            options = QueryOptions(self._limited(limit), settings=self._models_to_ask().settings)
            answers = query(goal, self._rules(kb), kb, assume=assume, models=models, options=options)
        return {**answers.to_json(), "complete": answers.complete, "stopped": answers.stopped}

    @contextmanager
    def _spending(self, most: Budget | None = None) -> Iterator[tuple[KnowledgeBase, BudgetedModels]]:
        """The models with a journal for one call, which keeps the budget that is left, or `most`."""
        asking = self._models_to_ask()
        # One call at a time, so that together they keep the budget.
        with self._lock, KnowledgeBase(self.database) as kb:
            left = most or asking.budget.less(self._used)
            journal = Journal(kb, left, price_table(asking.models), retry_unusable=asking.models.retry_unusable)
            try:
                yield kb, replace(asking.models, journal=journal)
            finally:
                # What was sent was paid for, even if the goal failed afterwards.
                self._used += journal.used

    def answer_question(self, question: str, *, free: bool = False) -> AnsweredQuestion:
        """Answer a question in words, as `hapax.ask` does.

        `free`: send nothing, and raise BudgetReached for a question that the model was not asked before.
        """
        with self._spending(Budget(max_calls=0) if free else None) as (kb, models):
            generator = JournaledGenerator(instructed(models.knowledge), models.journal or Journal(kb), role=ROLE)
            asked = QuestionInWords(question, self._rules(kb), kb)
            return asked.answered(generator, self._limited(MOST_ANSWERS))

    def question_forecast(self, question: str) -> dict[str, Any]:
        """The most that a model takes to translate a question; no model is asked.

        `cost`: None if unknown; `left`: of the budget.
        """
        asking = self._models_to_ask()
        name, price = instructed(asking.models.knowledge).identity.name, price_table(asking.models)
        with self._open() as kb:
            usage = QuestionInWords(question, self._rules(kb), kb).usage
        tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        cost = price[name].of(usage) if price.get(name) else None
        return {"model": name, **tokens, "cost": cost, "left": asking.budget.less(self._used)}

    def forecast(self, goal: str) -> dict[str, Any]:
        """Forecast of the questions of `ask` for a goal; the knowledge base is only read, and no model is asked.

        `questions`: the first ones, goals with `?` at the value that is asked for; `atoms`: the first claims to be
        judged; `calls`: most requests to the knowledge model for these questions; `whole`: what is expected of them,
        though their answers may raise further questions; `left`: what the budget leaves.
        """
        from hapax.engine.inference.theory import Theory
        from hapax.engine.search.demand_loop import DemandBudget, run_demand
        from hapax.engine.search.estimate import estimate_goal

        asking = self._models_to_ask()
        models, settings, calls, needs = asking.models, asking.settings, 0, []
        with self._open() as kb:
            library = self._rules(kb)
            missing = run_demand(Theory(library, kb), goal, None, DemandBudget(rounds=0, limits=self._limits)).missing
            for need in missing.needs:
                state = kb.question_state(need.question)
                # A question that was asked in full before is answered from the knowledge base.
                if not state.exhausted and state.calls < settings.calls_per_question:
                    needs.append(need)
                    calls += settings.calls_per_question - state.calls
            missing = replace(missing, needs=tuple(needs))
            whole = estimate_goal(library, missing, kb, models, settings, prices=price_table(models))
        return {
            "questions": list(map(str, needs)),
            "atoms": list(map(str, missing.atoms)),
            "calls": calls,
            "knowledge": models.knowledge.identity.name,
            "critic": models.critic.identity.name,
            "whole": whole,
            "left": asking.budget.less(self._used),
        }

    def _models_to_ask(self) -> AskingModels:
        if self._asking is None:
            raise HapaxError("This server asks no model.", Remedy("Start it with {} and a budget.", Setting("models")))
        return self._asking

    def _open(self) -> KnowledgeBase:
        return KnowledgeBase(self.database, read_only=True)

    def _rules(self, kb: KnowledgeBase) -> Library:
        return load_rules(*self._paths) if self._paths else kept_rules(kb) or load_rules()

    def _limited(self, answers: int) -> QueryLimits:
        return replace(self._limits, answers=_most(answers))


def _most(limit: int) -> int:
    if not 1 <= limit <= MOST_ROWS:
        raise HapaxError(f"The limit is {limit}. Choose 1 to {MOST_ROWS}.")
    return limit
