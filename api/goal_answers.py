"""Goals over facts and rules, their answers, and why something holds or not."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, overload

from hapax.api.statements import Statement
from hapax.engine.answers.query import answer
from hapax.engine.explain import why as explain
from hapax.engine.inference.derive import relevant_library
from hapax.engine.inference.proof import Story, story_text
from hapax.engine.inference.theory import QueryResult, Theory, sort_key
from hapax.engine.kept_rules import kept_rules, sound_rules
from hapax.engine.logic.proofs import time_limit
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.session import PrologTerm
from hapax.engine.query_options import ProbabilityOptions, QueryOptions
from hapax.engine.why_not import capitalised_values, idle_premises
from hapax.engine.why_not import why_not as explain_failure
from hapax.grammar.arguments import checked, texts
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import Goal
from hapax.grammar.parsing.parser import parse_rules
from hapax.grammar.rules import Library
from hapax.grammar.values.moments import MOMENTS, moment_of
from hapax.grammar.writing.notebook import Tabular
from hapax.kb import store
from hapax.kb.atoms.derived_relations import TaggedRows
from hapax.kb.exchange.csv_text import write_rows
from hapax.kb.exchange.values import encode_decimal
from hapax.llm_oracle.protocols import Models

if TYPE_CHECKING:
    from hapax.engine.probability.probable_answers import Probability, ProbableAnswers

PROBABILITY = "probability"
"""The column of an answer's probability; no variable of a goal begins with a small letter."""


class Answers(Tabular, Sequence[dict[str, Any]]):
    """The answers of a goal: a sequence of dicts, one for each distinct answer, by the goal's variables.

    They are sorted, unless there are more than fit into one batch: those are read from the knowledge base, which has to
    be open, while one goes through them. Dates, times and durations are texts in ISO 8601, and get their types in
    `df()`, `arrow()` and `pl()`.

    A goal without variables has no columns; `holds` and the truth of the object tell if it holds. `truncated`: there
    were more answers than the limit. `warnings` name comparisons that had no value for some rows.
    `complete` is False if facts are still missing; `stopped` says why and what to do.
    `notes`: what may be meant otherwise, such as a variable that is spelt like a value.

    With probabilities the column `probability` has that of each answer, or its lower bound; `probabilities` has the
    upper bounds and methods as well, and `basis` says which scores count as the facts' probabilities.
    """

    def __init__(
        self, result: QueryResult, kinds: Sequence[str] = (), *, complete: bool = True, stopped: str = ""
    ) -> None:
        """`kinds`: of the columns' values, such as Date."""
        self.result = result
        self.columns = result.columns
        self.kinds = tuple(kinds) or ("",) * len(self.columns)
        self.rows: Sequence[tuple[Any, ...]] = result.rows
        if not isinstance(result.rows, TaggedRows):
            self.rows = [tuple(map(_python_value, row)) for row in result.rows]
        self.holds = result.holds
        self.truncated = result.truncated
        self.warnings = result.failures
        self.complete = complete
        self.stopped = stopped
        self.notes: list[str] = []
        self.probabilities: list[Probability] = []
        self.basis = ""

    @classmethod
    def probable(
        cls, found: ProbableAnswers, kinds: Sequence[str], complete: bool = True, stopped: str = ""
    ) -> Answers:
        """Answers with probabilities."""
        answers = cls(found.result, kinds, complete=complete, stopped=stopped)
        answers.probabilities, answers.basis = found.probabilities, found.basis
        answers.columns, answers.kinds = (*answers.columns, PROBABILITY), (*answers.kinds, "")
        answers.rows = [
            (*row, probability.lower) for row, probability in zip(answers.rows, found.probabilities, strict=True)
        ]
        return answers

    def cells(self) -> Sequence[Sequence[Any]]:
        return self.rows

    def to_json(self) -> dict[str, Any]:
        """The answers as a JSON object; a decimal becomes `{"decimal": "0.1"}`, a Prolog term its text."""
        rows = [dict(zip(self.result.columns, map(_json_cell, row), strict=True)) for row in self.result.rows]
        notes = {"notes": self.notes} if self.notes else {}
        if PROBABILITY not in self.columns:
            return {"answers": rows, "truncated": self.truncated, **notes}
        for number, probability in enumerate(self.probabilities):
            # A variable begins with a capital letter, so that no name occurs twice.
            rows[number].update(probability.to_json())
        return {"answers": rows, "truncated": self.truncated, "basis": self.basis, **notes}

    def write_csv(self, stream: IO[str]) -> None:
        """Write names of the columns and rows as CSV; of a goal without variables, one column with its truth."""
        rows = self.rows if self.columns else [("true" if self.holds else "false",)]
        write_rows(stream, chain([self.columns or ("holds",)], rows))

    def sort(self, by: str, limit: int | None = None) -> None:
        """Sort by a variable (`-T`: from the last), and keep the first `limit`. Raises HapaxError for another name."""
        name = by.removeprefix("-")
        if name not in self.columns:
            known = f"Sort by {' or '.join(self.columns)}" if self.columns else "Leave the order out"
            raise HapaxError(f"The goal has no variable {name}. {known}.")
        column, rows, results = self.columns.index(name), list(self.rows), list(self.result.rows)
        keys = [_order(row[column], self.kinds[column]) for row in rows]
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=by != name)
        self.rows = [rows[number] for number in order]
        self.result = replace(self.result, rows=[results[number] for number in order])
        self.probabilities = [self.probabilities[number] for number in order] if self.probabilities else []
        self.keep(len(order) if limit is None else limit)

    def keep(self, limit: int) -> None:
        """Keep the first `limit` answers."""
        self.truncated = self.truncated or len(self) > limit
        self.rows, rows = list(self.rows)[:limit], list(self.result.rows)[:limit]
        self.result = replace(self.result, rows=rows, truncated=self.truncated)
        self.probabilities = self.probabilities[:limit]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, place: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, place: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(place, slice):
            return [self._answer(row) for row in self.rows[place]]
        return self._answer(self.rows[place])

    def _answer(self, row: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self.columns, row, strict=True))

    def __repr__(self) -> str:
        if not self.columns:
            return f"Answers(holds={self.holds})"
        return f"Answers({list(self)!r})"

    def _repr_html_(self) -> str:
        return super()._repr_html_() if self.columns else f"<p>{'true' if self.holds else 'false'}</p>"


def _json_cell(cell: Any) -> Any:
    if isinstance(cell, PrologTerm):
        # A Prolog list is a term of the name `[]` with its items as arguments.
        return [_json_cell(item) for item in cell.arguments] if cell.name == "[]" else str(cell)
    return encode_decimal(cell) if isinstance(cell, Decimal) else cell


def _order(cell: Any, kind: str) -> Any:
    """The place of a cell in a sorted column: of a moment by its time, of a list by its text."""
    moment = moment_of(cell) if kind in MOMENTS and isinstance(cell, str) else None
    if moment is not None:
        return [(0, moment.seconds)]
    return sort_key((str(cell) if isinstance(cell, list) else cell,))


def _python_value(cell: Any) -> Any:
    """A text or number as it is, a Prolog list as a list, any other Prolog term as its text."""
    if isinstance(cell, PrologTerm):
        return [_python_value(item) for item in cell.arguments] if cell.name == "[]" else str(cell)
    return cell


@checked
def query(
    goal: str,
    rules: Library,
    kb: store.KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    models: Models | None = None,
    options: QueryOptions | None = None,
) -> Answers:
    """The answers of a Prolog goal over the facts of a knowledge base and the conclusions of rules.

    `assume`: ground atoms held true for this goal alone. With `models` the goal asks them for the facts that it lacks,
    within their budget, and stores these. Raises RulesRejected, GoalRejected and LimitExceeded.
    """
    theory = Theory(sound_rules(rules), kb, texts(assume))
    read = theory.goal(goal)
    options = options or QueryOptions()
    kinds = tuple(theory.library.kind_of(variable.data_type) for variable in read.columns)
    found, complete, stopped = None, True, ""
    if models is not None:
        found, complete, stopped = _asked(theory, goal, models, options)
    probability = options.probability or stated_probabilities(read, theory.library)
    if probability is not None:
        from hapax.engine.probability.probable_answers import probable_answers

        # Over the facts that were asked for as well.
        probable = probable_answers(theory, goal, probability, options.limits)
        answers = Answers.probable(probable, kinds, complete, stopped)
    else:
        answers = Answers(found or answer(theory, read, options.limits), kinds, complete=complete, stopped=stopped)
    answers.notes = [*capitalised_values(read, theory), *idle_premises(read, theory)]
    return answers


# --- why something holds, or why not ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Explanation:
    """Why something holds or does not, as a tree of lines. `str()` gives indented text; a notebook unfolds it."""

    story: Story

    @property
    def lines(self) -> list[tuple[int, str, str]]:
        """Depth, kind (`goal`, `fact`, `call`, `gate` ...) and text of every line, from the top."""
        return [(depth, line.kind, line.text) for depth, line in self.story.lines()]

    def to_json(self) -> list[dict[str, Any]]:
        return self.story.to_json()

    def __str__(self) -> str:
        return story_text(self.story)

    def _repr_html_(self) -> str:
        """Nested lists; built line by line, because a proof may be deeper than Python's stack."""
        pieces, open_lists = [], 0
        for depth, line in self.story.lines():
            # Close the lists of lines that are not above this one.
            while open_lists > depth:
                pieces.append("</details></li></ul>")
                open_lists -= 1
            text = html.escape(line.text)
            if line.children:
                pieces.append(f"<ul><li><details open><summary>{text}</summary>")
                open_lists += 1
            else:
                pieces.append(f"<ul><li>{text}</li></ul>")
        # Close what is still open.
        return "".join(pieces) + "</details></li></ul>" * open_lists


@checked
def why(
    text: str | Statement,
    rules: Library,
    kb: store.KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    probability: ProbabilityOptions | None = None,
    seconds: float = 60,
) -> Explanation:
    """Explain why a statement, given itself or by text or id, or an atom holds, down to prompts and thresholds.

    `probability`: first the probability of the atom, or of what the statement's rule needs, with its best proofs.
    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    rules = sound_rules(rules)
    if rules.is_uncertain:
        probability = probability or ProbabilityOptions()
    named = text if isinstance(text, str) else text.id
    with time_limit(kb, seconds, "seconds"):
        return Explanation(explain(Theory(rules, kb, texts(assume)), named, probability=probability))


@checked
def why_not(
    text: str | Statement,
    rules: Library,
    kb: store.KnowledgeBase,
    *,
    assume: str | Sequence[str] = (),
    seconds: float = 60,
) -> Explanation:
    """Explain why an atom or a statement does not hold: the gate that stopped it, or the premises that failed.

    `seconds`: the time limit of each goal that this needs, after which LimitExceeded is raised.
    """
    rules = sound_rules(rules)
    with time_limit(kb, seconds, "seconds"):
        named = text if isinstance(text, str) else text.id
        return Explanation(explain_failure(Theory(rules, kb, texts(assume)), named))


# --- objects that can be asked ----------------------------------------------------------------------------------------


class GoalKnowledgeBase(store.KnowledgeBase):
    """Facts, rules and what follows from them, in a file or, without a path, in memory.

    with hapax.KnowledgeBase("my.db") as kb:
        kb.query("likes(ann, Who)", rules)
    """

    def query(self, goal: str, rules: Library | None = None, **arguments: Any) -> Answers:
        """Like `hapax.query`; without rules, with those that the knowledge base keeps."""
        return query(goal, rules or kept_rules(self) or Library(), self, **arguments)

    def why(self, text: str, rules: Library | None = None, **arguments: Any) -> Explanation:
        """Like `hapax.why`; without rules, with those that the knowledge base keeps."""
        return why(text, rules or kept_rules(self) or Library(), self, **arguments)

    def why_not(self, text: str, rules: Library | None = None, **arguments: Any) -> Explanation:
        """Like `hapax.why_not`; without rules, with those that the knowledge base keeps."""
        return why_not(text, rules or kept_rules(self) or Library(), self, **arguments)


KnowledgeBase = GoalKnowledgeBase
"""The name at the front door: whoever opens a knowledge base there can ask it."""


@checked
class Program:
    """Rules and facts of a text with a knowledge base, by default one in memory.

    program = hapax.program("parent(ann, bob). ancestor(X, Y) :- parent(X, Y).")
    program.query("ancestor(ann, X)")
    """

    def __init__(self, rules: Library, kb: store.KnowledgeBase) -> None:
        self.rules = rules
        self.kb = kb

    def query(self, goal: str, **arguments: Any) -> Answers:
        """The answers of a goal; the arguments are those of `hapax.query`."""
        return query(goal, self.rules, self.kb, **arguments)

    def why(self, text: str, **arguments: Any) -> Explanation:
        """Why an atom holds; the arguments are those of `hapax.why`."""
        return why(text, self.rules, self.kb, **arguments)

    def why_not(self, text: str, **arguments: Any) -> Explanation:
        """Why an atom does not hold; the arguments are those of `hapax.why_not`."""
        return why_not(text, self.rules, self.kb, **arguments)


@checked
def program(text: str, kb: store.KnowledgeBase | None = None) -> Program:
    """The program of a text of rules and facts. Raises RulesRejected for a text that cannot be read."""
    return Program(parse_rules(text), kb if kb is not None else KnowledgeBase())


def stated_probabilities(goal: Goal, library: Library) -> ProbabilityOptions | None:
    """The options for a goal below which rules state probabilities; None for any other goal."""
    if not library.is_uncertain:
        return None
    part = relevant_library(library, goals=goal.called)
    return ProbabilityOptions() if part.is_uncertain else None


# Most goals ask no model and need no probability, and begin without the modules of searches.
def _asked(theory: Theory, goal: str, models: Models, options: QueryOptions) -> tuple[QueryResult, bool, str]:
    """The answers after asking for lacking facts, True if none is lacking now, and what ended the asking before."""
    from hapax.api.importing import revised
    from hapax.engine.search.demand_loop import DemandBudget, run_demand
    from hapax.engine.search.oracle import Oracle
    from hapax.engine.search.settings import ProfileChooser, SearchJob, SearchSettings, settled
    from hapax.llm_oracle.registry import journal_of

    kb, rules, journal = theory.kb, theory.library, journal_of(theory.kb, models)
    settings = options.settings or SearchSettings()
    # With the journal of the goal, so that a probe counts against its budget.
    settings = settled(settings, ProfileChooser(kb, rules, models.knowledge, journal).choose(settings))
    oracle = Oracle(SearchJob(rules, (), kb, models, settings, journal), "query", takes_parts=True)
    # Rounds and questions have limits of their own; the journal limits calls and money.
    result = run_demand(theory, goal, oracle, DemandBudget(limits=options.limits or QueryLimits()))
    revised(kb, rules)
    stopped = str(oracle.scorer.budget_reached or result.stopped) if result.stopped else ""
    return result.result, result.complete, stopped
