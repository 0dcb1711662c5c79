"""Questions in words: a model turns one into a goal over the predicates and values that exist, the engine answers it.

The model's reply is untrusted: it chooses among predicates, its values are quoted, and the goal passes all checks of
goals that people type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from hapax.api.goal_answers import Answers, Explanation, query, why, why_not
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.query_options import QueryOptions
from hapax.engine.why_not import near_misses
from hapax.grammar.arguments import checked
from hapax.grammar.errors import GoalRejected
from hapax.grammar.parsing.declarations import PredicateSignature
from hapax.grammar.rules import Library
from hapax.grammar.terms import ANY, Atom, Constant, Literal, Term, Value, Variable
from hapax.grammar.writing.prolog_text import atom_goal, term_text
from hapax.grammar.writing.verbalize import literal_text, template_of
from hapax.grammar.writing.words import counted, short
from hapax.kb.connection import translated
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import estimated_tokens
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import KNOWLEDGE, GenerationParameters, GenerationRequest, ReplyForm, Usage
from hapax.llm_oracle.questions.prompts import TRANSLATION_PROMPT
from hapax.llm_oracle.registry import open_instructed, with_journal

MOST_PREDICATES, MOST_VALUES, MOST_NEAREST = 60, 60, 3
"""Predicates and values that a prompt names, and predicates that are named where none can say the question."""

ROLE = "question"
"""Role under which questions are counted."""
REPLY_TOKENS = 1000
"""Tokens of a reply; a goal of five literals needs some 200."""

SIGNS = {"<": "<", ">": ">", "<=": "=<", ">=": ">=", "=": "=", "!=": "\\="}
"""Comparisons of a reply, as goals write them."""

_VARIABLE = re.compile(r"\?([^\W\d_]\w*)")
_REPLY = re.compile(r"\{.*\}", re.DOTALL)


class _ReplyPart(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)


class StatedLiteral(_ReplyPart):
    """A literal of a reply; an argument that begins with ? is a variable."""

    predicate: str
    arguments: list[str]
    negated: bool = False


class StatedComparison(_ReplyPart):
    """A comparison of a reply."""

    left: str
    sign: str
    right: str


class Translation(_ReplyPart):
    """A model's reply. `asked`: variables that are asked for; `order`: the one that sorts, `-?X` from the greatest."""

    goal: list[StatedLiteral] = []
    compare: list[StatedComparison] = []
    assume: list[StatedLiteral] = []
    asked: list[str] = []
    count: bool = False
    order: str = ""
    limit: int = 0


@dataclass(frozen=True)
class AnsweredQuestion:
    """A question with the goal that a model made of it, and the engine's answers.

    `reading`: the goal in words. `assume`: what the question supposes. `answers` is None where the predicates cannot
    say the question, or where the reply is no goal, as `fault` says; `nearest` has predicates that come near. `count`:
    the number of answers, if that was asked. `proofs`: of the first answer, or why there is none. `notes`: what may be
    meant otherwise.
    """

    question: str
    goal: str = ""
    reading: str = ""
    assume: tuple[str, ...] = ()
    answers: Answers | None = None
    count: int | None = None
    proofs: tuple[Explanation, ...] = ()
    nearest: tuple[str, ...] = ()
    fault: str = ""
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The fields; `holds` is the truth of a goal without variables."""
        found = {} if self.answers is None else {**self.answers.to_json(), "holds": self.answers.holds}
        fields = {**vars(self), **found, "notes": self.notes, "proofs": [proof.to_json() for proof in self.proofs]}
        return {name: value for name, value in fields.items() if name != "answers" or found}


@checked
def ask(
    question: str,
    rules: Library,
    kb: KnowledgeBase,
    model: str,
    *,
    opening: OpeningOptions | None = None,
    limits: QueryLimits | None = None,
) -> AnsweredQuestion:
    """Answer a question in words: a model states it as a goal, over the predicates and values that exist.

    The model must follow instructions; its reply is kept, so that the same question costs nothing again. Raises
    HapaxError for a model that cannot be asked, BudgetReached and LimitExceeded.
    """
    opening, journal = with_journal(kb, opening)
    opened = open_instructed(model, KNOWLEDGE, replace(opening, library=rules))
    return QuestionInWords(question, rules, kb).answered(JournaledGenerator(opened, journal, role=ROLE), limits)


class _NoGoal(Exception):  # noqa: N818  says what happened
    """A reply that states no goal, with the reason."""


class QuestionInWords:
    """A question over the predicates and values that exist, for a model."""

    def __init__(self, question: str, rules: Library, kb: KnowledgeBase) -> None:
        self._question, self._rules, self._kb, self._library = question, rules, kb, rules.completed()
        words = dict.fromkeys(_stems(question))
        constants = (term for atom in self._library.facts for term in atom.arguments if isinstance(term, Constant))
        self._stated = dict.fromkeys(constant.value for constant in constants if isinstance(constant.value, str))
        # Those first whose words are the question's most.
        self._signatures = sorted(
            self._library.signatures, key=lambda signature: -len(words.keys() & set(_stems(self._said(signature))))
        )[:MOST_PREDICATES]
        values: dict[str, None] = {}
        for word in words:
            values |= dict.fromkeys(self._named(word)[: MOST_VALUES // 4])
        prompt = TRANSLATION_PROMPT.format(
            predicates="\n".join(map(self._said, self._signatures)),
            values=json.dumps(list(values)[:MOST_VALUES], ensure_ascii=False),
            question=" ".join(question.split()),
        )
        form = ReplyForm(1, "", json=True, schema=json.dumps(self._schema()))
        self._request = GenerationRequest(prompt, form=form)

    @property
    def usage(self) -> Usage:
        """Most tokens that a model takes to translate it."""
        return Usage(estimated_tokens(self._request.prompt), REPLY_TOKENS)

    def answered(self, generator: JournaledGenerator, limits: QueryLimits | None = None) -> AnsweredQuestion:
        """The engine's answers to the goal that a model makes of it. Raises BudgetReached and LimitExceeded."""
        parameters = GenerationParameters(temperature=0, max_tokens=REPLY_TOKENS)
        (reply,) = generator.generate([self._request], parameters)
        unsaid = AnsweredQuestion(self._question, nearest=tuple(map(self._said, self._signatures[:MOST_NEAREST])))
        try:
            read = self._read(reply.text)
            return unsaid if read is None else read.answered(self._question, self._rules, self._kb, limits)
        except _NoGoal as fault:
            return replace(unsaid, fault=f"{fault} Ask in other words, or another model.")
        except GoalRejected as fault:
            return replace(unsaid, fault="The model stated no goal that can be asked.", notes=(str(fault),))

    def _said(self, signature: PredicateSignature) -> str:
        """`is_in(Person, Place): [1] is in [2]`."""
        types = [("Value" if data_type.startswith(ANY) else data_type) for data_type in signature.argument_types]
        variables = tuple(Variable(f"X{place}", data_type) for place, data_type in enumerate(types))
        names = [f"{name}: {data_type}" for name, data_type in zip(signature.columns, types, strict=False)] or types
        said = template_of(Atom(signature.name, variables), self._library)
        return f"{signature.name}({', '.join(names)}): {said}"

    def _named(self, words: str) -> list[str]:
        """Stored values with these words, the shortest first, and those that the rules state."""
        with translated(self._kb.place):
            stored = self._kb.symbols.texts_with(words, MOST_VALUES)
        wanted = re.findall(r"\w+", words.casefold())
        for name in self._stated:
            known = re.findall(r"\w+", name.casefold())
            if all(any(word.startswith(part) for word in known) for part in wanted):
                stored.append(name)
        return stored

    def _schema(self) -> dict[str, Any]:
        """The JSON schema of a reply: its predicates are those of the prompt."""
        text, names = {"type": "string"}, sorted({signature.name for signature in self._signatures})
        predicate = {"type": "string", "enum": names}
        literal = {"predicate": predicate, "arguments": _array(text), "negated": {"type": "boolean"}}
        compare = {"left": text, "sign": {"type": "string", "enum": list(SIGNS)}, "right": text}
        return _object(
            {
                "goal": _array(_object(literal)),
                "compare": _array(_object(compare)),
                "assume": _array(_object(literal)),
                "asked": _array(text),
                "count": {"type": "boolean"},
                "order": text,
                "limit": {"type": "integer"},
            }
        )

    def _read(self, reply: str) -> _Goal | None:
        """The goal of a reply; None if it says that there is none. Raises _NoGoal for any other reply."""
        found = _REPLY.search(reply)
        try:
            said = Translation.model_validate_json(found[0] if found else "")
        except ValidationError:
            raise _NoGoal(f"The model stated no goal, but {short(reply.strip())}.") from None
        if not said.goal:
            return None
        literals, assumed = [self._literal(part) for part in said.goal], [self._literal(part) for part in said.assume]
        compared = []
        for comparison in said.compare:
            if comparison.sign not in SIGNS:
                raise _NoGoal(f"The model's goal compares by {short(comparison.sign)}, which is no sign.")
            left, right = self._term(comparison.left, ""), self._term(comparison.right, "")
            compared.append((left, SIGNS[comparison.sign], right))
        sign, order = ("-", said.order[1:]) if said.order.startswith("-") else ("", said.order)
        by = f"{sign}{_capital(order[1:])}" if _VARIABLE.fullmatch(order) else ""
        names = [_capital(match[1]) for text in (*said.asked, order) if (match := _VARIABLE.fullmatch(text))]
        return _Goal(literals, compared, assumed, frozenset(names), said.count, by, max(said.limit, 0))

    def _literal(self, part: StatedLiteral) -> Literal:
        indicator = f"{part.predicate}/{len(part.arguments)}"
        if not self._library.knows(indicator):
            named = f"{short(part.predicate)} with {counted(len(part.arguments), 'argument')}"
            raise _NoGoal(f"The model's goal has {named}, which is no predicate of these rules.")
        types = self._library.signature(indicator).argument_types
        terms = [self._term(text, data_type) for text, data_type in zip(part.arguments, types, strict=True)]
        return Literal(Atom(part.predicate, tuple(terms)), part.negated)

    def _term(self, text: str, data_type: str) -> Term:
        """A variable, a value spelt as it is stored, a number, or a new name."""
        if match := _VARIABLE.fullmatch(text):
            return Variable(_capital(match[1]), data_type or ANY)
        # A comparison has no type.
        number, is_numeric = _number(text), not data_type or self._library.is_numeric(data_type)
        if is_numeric and not isinstance(number, str):
            return Constant(number)
        if text in self._stated or self._kb.symbols.known([text])[0] is not None:
            return Constant(text)
        spelt = (name for name in self._named(text) if name.casefold() == text.casefold())
        return Constant(next(spelt, number))


@dataclass(frozen=True)
class _Goal:
    """Literals and comparisons that hold together, under assumptions. `order`: a variable, `-X` from the greatest."""

    literals: Sequence[Literal]
    compared: Sequence[tuple[Term, str, Term]]
    assumed: Sequence[Literal]
    asked: frozenset[str]
    counts: bool
    order: str
    limit: int

    def _text(self, terms: Mapping[str, Term]) -> str:
        """The goal with some variables replaced."""
        goals = []
        # A negation comes last, when the other literals have given its variables values.
        for literal in sorted(self.literals, key=lambda literal: literal.negated):
            goals.append(("\\+ " if literal.negated else "") + atom_goal(literal.atom.replaced(terms)))
        for left, sign, right in self.compared:
            sides = [terms.get(side.name, side) if isinstance(side, Variable) else side for side in (left, right)]
            goals.append(f"{term_text(sides[0])} {sign} {term_text(sides[1])}")
        return ", ".join(goals)

    def _reading(self, library: Library) -> str:
        said = [literal_text(literal, library) for literal in self.literals]
        said += [f"{_said(left)} {sign} {_said(right)}" for left, sign, right in self.compared]
        which = f"{'how many' if self.counts else 'which'} {', '.join(sorted(self.asked))}: "
        supposed = [literal_text(literal, library) for literal in self.assumed]
        given = f", if {' and '.join(supposed)}" if supposed else ""
        by = self.order.removeprefix("-")
        ordered = f", sorted by {by}{' from the greatest' if by != self.order else ''}" if by else ""
        first = f", the first {self.limit}" if self.limit else ""
        return f"{which if self.asked else 'is it true: '}{' and '.join(said)}{given}{ordered}{first}?"

    def answered(
        self, question: str, rules: Library, kb: KnowledgeBase, limits: QueryLimits | None
    ) -> AnsweredQuestion:
        """The engine's answers, with the proof of the first."""
        # Variables that are not asked for begin with _, and are not answered.
        every = [variable for literal in self.literals for variable in literal.atom.variables]
        others = [variable for variable in every if self.asked and variable.name not in self.asked]
        goal = self._text({variable.name: Variable(f"_{variable.name}", variable.data_type) for variable in others})
        assume, limits = [atom_goal(literal.atom) for literal in self.assumed], limits or QueryLimits()
        most = min((limit for limit in (limits.answers, self.limit) if limit), default=None)
        if self.counts or self.order:
            # All of them are counted or sorted; what is kept of them is another matter.
            limits = replace(limits, answers=None)
        answers = query(goal, rules, kb, assume=assume, options=QueryOptions(limits))
        count = len(answers) if self.counts else None
        if self.order.removeprefix("-") in answers.columns:
            answers.sort(self.order)
        if most is not None:
            answers.keep(most)
        near = [] if answers.holds else near_misses(goal, rules, kb, assume=assume)
        return AnsweredQuestion(
            question,
            goal,
            self._reading(rules.completed()),
            tuple(assume),
            answers,
            count,
            tuple(self._proofs(answers, rules, kb, assume)),
            notes=(*answers.notes, *answers.warnings, *near),
        )

    def _proofs(self, answers: Answers, rules: Library, kb: KnowledgeBase, assume: list[str]) -> Iterator[Explanation]:
        """Why the literals of the first answer hold; of a single one that does not, why not."""
        atoms = [literal.atom for literal in self.literals if not literal.negated]
        if not answers.holds:
            if len(self.literals) == 1 and atoms and atoms[0].is_ground:
                yield why_not(atom_goal(atoms[0]), rules, kb, assume=assume)
            return
        terms = _first_answer(answers)
        first = QueryOptions(QueryLimits(answers=1))
        terms |= _first_answer(query(self._text(terms), rules, kb, assume=assume, options=first))
        for atom in atoms:
            if (ground := atom.replaced(terms)).is_ground:
                yield why(atom_goal(ground), rules, kb, assume=assume)


def _first_answer(answers: Answers) -> dict[str, Term]:
    """The values of the first answer by variable, without terms of Prolog."""
    values = zip(answers.columns, answers.result.rows[0], strict=False) if answers.columns else ()
    return {name: Constant(value) for name, value in values if isinstance(value, Value)}


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _said(term: Term) -> str:
    return f"[{term.name}]" if isinstance(term, Variable) else str(term.value)


def _number(text: str) -> Value:
    """The number that a text is; else the text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    if not number.is_finite() or abs(number.adjusted()) > 30:
        return text
    return int(number) if number == number.to_integral_value() else number


def _stems(text: str) -> list[str]:
    """Beginnings of the words, without endings of plurals and verbs, in small letters."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return [re.sub(r"(?:ies|es|s|ing|ed)$", "", word) if len(word) > 4 else word for word in words if len(word) > 2]


def _array(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
