"""What sheets ask about, from a knowledge base: drawn for an export, and found again by id for an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from evaluation.probing.items import ENTAILMENT, draw_key, drawn, items_of, kb_library, latest_statements, verdicts_of
from evaluation.probing.templates import TEMPLATES
from evaluation.votes.questions import (
    AUDIT,
    BASELINE,
    Item,
    Kind,
    baseline_item,
    predicate_item,
    statement_item,
)
from grammar.errors import HapaxError
from grammar.rules import Library, PredicateKind, Rule
from grammar.terms import Constant, Literal, Value, Variable
from grammar.verbalize import literal_text, told_literals
from kb.records import Distribution, FactRecord, Source, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.prompts import sentence

STATEMENT, FACT = "statement:", "fact:"
"""What an item's id begins with. A bare id could be taken for a number by a spreadsheet."""

ASKED_OF_MODELS = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
"""Only what a critic accepted is audited; computed and given predicates are not its work."""

PREMISE_AND_CONCLUSION = 5
"""The template in the format that the paper describes for people (section 4)."""

_Statements = Mapping[Distribution, Mapping[str, StatementRecord]]


@dataclass(frozen=True, slots=True)
class Draw:
    """Which statements are drawn. `total`: of both distributions together; `each`: head and long tail; neither: all.

    `rules`, `runs`: only these; `rules_drawn`: so many rules, drawn as well (appendix C's audit takes 3); None: all.
    """

    seed: int = 0
    total: int | None = None
    each: tuple[int, int] | None = None
    rules: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    rules_drawn: int | None = None
    unjudged: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """The items to be asked about. `counts`: statements by distribution; one in both is one item."""

    items: tuple[Item, ...]
    counts: Mapping[Distribution, int]
    judged_only: bool = False


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact behind a statement as a sentence, with value and declared data type of both arguments."""

    fact: str
    text: str
    typed: tuple[tuple[str, str], tuple[str, str]]

    @classmethod
    def of(cls, literal: Literal, bound: Mapping[str, Value], library: Library) -> Claim:
        values = tuple(bound[each.name] for each in literal.variables)
        one, other = library.signature(literal.atom.indicator).argument_types
        words = literal_text(literal, library, {name: Constant(value) for name, value in bound.items()})
        fact = FactRecord(literal.atom.predicate, values, (), Source.MODEL)
        return cls(fact.id, sentence(words), ((str(values[0]), one), (str(values[1]), other)))


class Askable:
    """The statements of a knowledge base as items of a sheet.

    `templates`: which of table 12 a baseline asks, by number.
    """

    def __init__(self, kb: KnowledgeBase, kind: Kind, templates: Collection[int] = (PREMISE_AND_CONCLUSION,)) -> None:
        self._kb = kb
        self._kind = kind
        self._templates = [one for one in TEMPLATES if one.number in templates]

    def drawn(self, draw: Draw) -> Drawn:
        """A sample. It depends on the seed and on each statement alone: a larger one holds the smaller one."""
        population = self._population(draw)
        judged_only = False
        if self._kind is Kind.BASELINE:
            population, judged_only = self._labelled(population)
        chosen = {each: [one for _, one in several] for each, several in _sampled(population, draw).items()}
        counts = {each: len(several) for each, several in chosen.items()}
        statements = list({one.id: one for several in chosen.values() for one in several}.values())
        items = self.items(statements)
        if draw.unjudged:
            items = self._unjudged(items)
        return Drawn(tuple(items), counts, judged_only)

    def found(self, identities: Collection[str]) -> dict[str, Item]:
        """The items of these ids, as far as the knowledge base knows them."""
        if self._kind is Kind.PREDICATES:
            return {one.id: one for one in self._facts(self._known) if one.id in identities}
        wanted = [one for one in self._known if STATEMENT + one.id in identities]
        return {one.id: one for one in self.items(wanted)}

    @cached_property
    def _known(self) -> list[StatementRecord]:
        """Every statement once, as the last run wrote it."""
        return list({one.id: one for one in self._kb.statements()}.values())

    def _population(self, draw: Draw) -> _Statements:
        found = latest_statements(self._kb, draw.rules, draw.runs)
        if draw.rules_drawn is None:
            return found
        names = {one.rule for several in found.values() for one in several.values()}
        taken = set(sorted(names, key=lambda name: draw_key(draw.seed, name))[: draw.rules_drawn])
        return {
            each: {key: one for key, one in several.items() if one.rule in taken} for each, several in found.items()
        }

    def _labelled(self, population: _Statements) -> tuple[_Statements, bool]:
        """The statements whose labels people gave (section 4), where there are any; never those of wrong types."""
        votes = self._kb.votes()
        wrong_type = verdicts_of(votes).wrong_type
        judged = {one.statement_id for one in votes if one.question == ENTAILMENT}
        fitting = {
            each: {key: one for key, one in several.items() if key not in wrong_type}
            for each, several in population.items()
        }
        labelled = {each: {key: one for key, one in few.items() if key in judged} for each, few in fitting.items()}
        return (labelled, True) if any(labelled.values()) else (fitting, False)

    def _unjudged(self, items: Iterable[Item]) -> list[Item]:
        begins = {Kind.STATEMENTS: ENTAILMENT, Kind.PREDICATES: AUDIT, Kind.BASELINE: BASELINE}[self._kind]
        done = {one.statement_id for one in self._kb.votes() if one.question.startswith(begins)}
        return [one for one in items if subject(one.id) not in done]

    def items(self, statements: Sequence[StatementRecord]) -> list[Item]:
        """What is asked about these statements; of predicates each fact once."""
        if self._kind is Kind.PREDICATES:
            return list({one.id: one for one in self._facts(statements)}.values())
        if self._kind is Kind.BASELINE:
            return list(self._baselines(statements))
        return [
            statement_item(
                STATEMENT + one.id,
                one.premise,
                one.conclusion,
                tuple((variable.name, str(value), variable.data_type) for variable, value in self._named(one)),
            )
            for one in statements
        ]

    @cached_property
    def _library(self) -> Library:
        return kb_library(self._kb)

    def _rule(self, one: StatementRecord) -> Rule:
        if one.rule not in self._rules:
            raise HapaxError(
                f"{self._kb.place} holds statements of {one.rule}, but not the rule. Search or import it again."
            )
        return self._rules[one.rule]

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {one.name: one for one in self._library.rules}

    def _named(self, one: StatementRecord) -> Iterator[tuple[Variable, Value]]:
        """The searched variables that the statement names, with their values, in the order of the rule.

        The paper asks about each variable of the rule (3.3) and shows (table 20) those that the statement names.
        """
        rule = self._rule(one)
        told = {each.name for literal in told_literals(rule, self._library) for each in literal.variables}
        told |= {each.name for each in rule.conclusion.variables}
        bound = dict(one.substitution)
        return ((each, bound[each.name]) for each in rule.searched if each.name in told and each.name in bound)

    def _baselines(self, statements: Sequence[StatementRecord]) -> Iterator[Item]:
        made, _ = items_of(self._kb, statements, verdicts_of(()))
        for one in made:
            asked = tuple((each.number, each.question(one), each.pair) for each in self._templates)
            yield baseline_item(STATEMENT + one.statement_id, asked)

    def _facts(self, statements: Sequence[StatementRecord]) -> Iterator[Item]:
        for claim in {each.fact: each for one in statements for each in self.claims(one)}.values():
            yield predicate_item(FACT + claim.fact, claim.text, claim.typed)

    def claims(self, one: StatementRecord) -> list[Claim]:
        """The facts behind a statement that a critic accepted and that are about two values (appendix C)."""
        rule = self._rule(one)
        bound = dict(one.substitution)
        return [
            Claim.of(literal, bound, self._library)
            for literal in rule.literals
            if not literal.negated
            and len(literal.variables) == len(literal.atom.arguments) == 2
            and all(each.name in bound and each.name not in rule.generic for each in literal.variables)
            and self._library.signature(literal.atom.indicator).kind in ASKED_OF_MODELS
        ]


def subject(identity: str) -> str:
    """The id of what an item is about, without what it begins with."""
    return identity.partition(":")[2]


def _sampled(population: _Statements, draw: Draw) -> dict[Distribution, list[tuple[str, StatementRecord]]]:
    sizes: Mapping[Distribution, int | None] = dict.fromkeys(Distribution)
    if draw.each is not None:
        sizes = dict(zip((Distribution.HEAD, Distribution.LONG_TAIL), draw.each, strict=True))
    elif draw.total is not None:
        pairs = ((draw_key(draw.seed, key), each) for each, several in population.items() for key in several)
        first = Counter(each for _, each in sorted(pairs)[: draw.total])
        sizes = {each: first[each] for each in Distribution}
    return {each: drawn(several, sizes[each], draw.seed) for each, several in population.items()}
