"""Items of sheets, made from the statements of a knowledge base: drawn for an export, found by id for an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Annotated

from hapax.engine.answers.derivation import RUN_ID, current_rules, read_statements, statement_by_id
from hapax.engine.inference.proof import By, proof_from_json
from hapax.engine.judgements import ENTAILMENT_QUESTION, SOUNDNESS_QUESTION, Judgement, Judgements
from hapax.engine.kept_rules import kept_rules
from hapax.engine.questions.score_maps import proposed_atoms
from hapax.engine.search.promises import StatementScores
from hapax.evaluation.link.probing_questions import TEMPLATES, items_of
from hapax.evaluation.shared.stored_statements import (
    DistinctTexts,
    draw_order_key,
    draw_sample,
    latest_statements,
    stored_library,
)
from hapax.evaluation.votes.voting_questions import (
    AUDIT,
    BASELINE,
    SheetKind,
    VotingItem,
    baseline_item,
    predicate_item,
    soundness_item,
    statement_item,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import ChosenRules, ChosenRuns, Option
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Constant, Literal, Value, Variable, variable_names
from hapax.grammar.writing.verbalize import literal_text, stated_literals
from hapax.kb.atoms.derived_ids import DerivedIds
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord, fact_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.questions.prompts import sentence

STATEMENT, FACT = "statement:", "fact:"
"""Prefixes of item ids, without which a spreadsheet may take an id for a number."""

ASKED_OF_MODELS = (PredicateKind.ORACLE, PredicateKind.FUNCTIONAL)
"""Kinds of predicates whose facts are audited: those that a critic accepts."""

PREMISE_AND_CONCLUSION = 5
"""Number of the template that the paper describes for people (section 4)."""

_Statements = Mapping[Distribution, Mapping[str, StatementRecord]]
"""Statements by distribution and id."""


@checked
@dataclass(frozen=True, slots=True)
class SampleOptions:
    """Which statements to draw; all if neither `total` nor `per_distribution` is given.

    `total`: number over both distributions; `per_distribution`: numbers of head and long tail; `rules`, `runs`: only
    these, if any; `rules_drawn`: number of rules to draw first (3 in appendix C's audit); `unjudged`: leave out
    statements that were voted on before; `evenly`: the same number, if it has so many, of each rule and distribution;
    `derived`: of what `derive` concluded, which is in neither distribution.
    """

    seed: Annotated[int, Option("Seed of the draw and of the order of items.")] = 0
    total: Annotated[
        int | None, Option("Statements to draw; 0: all.", name="sample", default="200", least=0, none="0")
    ] = None
    per_distribution: tuple[int, int] | None = None
    rules: ChosenRules = ()
    runs: ChosenRuns = ()
    rules_drawn: int | None = None
    unjudged: Annotated[bool, Option("Leave out items that were voted on before.", name="new")] = False
    evenly: bool = False
    derived: Annotated[bool, Option("Draw from what `derive` concluded instead of from searches.")] = False

    def __post_init__(self) -> None:
        if self.derived and (self.per_distribution or self.runs or self.rules_drawn):
            raise HapaxError(
                "Derived statements have no distribution, run or draw of rules. Draw them by their number and rules."
            )


@dataclass(frozen=True, slots=True)
class DrawnItems:
    """Items to ask about. `counts`: statements by distribution; a statement in both makes one item."""

    items: tuple[VotingItem, ...]
    counts: Mapping[Distribution, int]
    judged_only: bool = False
    derived: int = 0
    """Number of derived statements that were drawn."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact behind a statement as a sentence; `typed` are value and declared data type of both arguments."""

    fact: str
    text: str
    typed: tuple[tuple[str, str], tuple[str, str]]

    @classmethod
    def of(cls, literal: Literal, values: Mapping[str, Value], library: Library) -> Claim:
        first, second = (values[variable.name] for variable in literal.variables)
        first_type, second_type = library.signature(literal.atom.indicator).argument_types
        words = literal_text(literal, library, {name: Constant(value) for name, value in values.items()})
        # Only its id is needed, which does not depend on types or source.
        fact = FactRecord(literal.atom.predicate, (first, second), (), Source.MODEL)
        return cls(fact.id, sentence(words), ((str(first), first_type), (str(second), second_type)))


class ItemSource:
    """Makes the items of one kind of sheet from the statements of a knowledge base.

    `templates`: numbers of the templates of table 12 that a baseline asks. `derived_by`: the rules of derived
    statements; None: those that the knowledge base keeps.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        kind: SheetKind,
        templates: Collection[int] = (PREMISE_AND_CONCLUSION,),
        derived_by: Library | None = None,
    ) -> None:
        self._kb = kb
        self._given_rules = derived_by
        self._kind = kind
        self._templates = [template for template in TEMPLATES if template.number in templates]

    def draw(self, sample: SampleOptions) -> DrawnItems:
        """Draw items. The draw depends on the seed and on each statement alone: a larger sample holds the smaller."""
        if sample.derived:
            return self._drawn_derived(sample)
        population = self._population(sample)
        judged_only = False
        # People are measured by the labels of others, so only labelled statements are of use.
        if self._kind is SheetKind.BASELINE:
            population, judged_only = self._labelled(population)
        counts: dict[Distribution, int] = {}
        statements: dict[str, StatementRecord] = {}
        drawing = _drawn_evenly if sample.evenly else _drawn
        for distribution, drawn in drawing(population, sample).items():
            counts[distribution] = len(drawn)
            # By id: a statement drawn at both ends makes one item.
            statements |= {statement.id: statement for _, statement in drawn}
        items = self._open_items(list(statements.values()), sample)
        return DrawnItems(tuple(items), counts, judged_only)

    def _drawn_derived(self, sample: SampleOptions) -> DrawnItems:
        if self._kind not in (SheetKind.STATEMENTS, SheetKind.SOUNDNESS):
            raise HapaxError("Derived statements go on sheets of statements or soundness. Name one of these kinds.")
        records = draw_derived(self._kb, self._derived_by, sample.seed, sample.total, sample.rules)
        items = self._open_items(records, sample)
        return DrawnItems(tuple(items), dict.fromkeys(Distribution, 0), derived=len(records))

    def _open_items(self, statements: Sequence[StatementRecord], sample: SampleOptions) -> list[VotingItem]:
        """The items about these statements, without those that were judged before where they are to be left out."""
        items = self.items(statements)
        if sample.unjudged:
            # A vote in another role, such as a label of a statement, does not answer a baseline.
            prefixes = {
                SheetKind.STATEMENTS: ENTAILMENT_QUESTION,
                SheetKind.PREDICATES: AUDIT,
                SheetKind.SOUNDNESS: SOUNDNESS_QUESTION,
            }
            prefix = prefixes.get(self._kind, BASELINE)
            judged = {vote.statement_id for vote in self._kb.votes() if vote.question.startswith(prefix)}
            # After the draw: with and without --new, the same statements are drawn.
            items = [item for item in items if subject_id(item.id) not in judged]
        return items

    def by_id(self, identities: Collection[str]) -> dict[str, VotingItem]:
        """Items by id; ids that the knowledge base does not know are left out."""
        # Every statement once, as the last run stored it.
        statements = list({statement.id: statement for statement in self._kb.statements()}.values())
        if self._kind is not SheetKind.PREDICATES:
            # Chosen first, as a knowledge base has many more statements than a sheet has items.
            statements = [statement for statement in statements if STATEMENT + statement.id in identities]
            searched = {STATEMENT + statement.id for statement in statements}
            others = [subject_id(identity) for identity in identities if identity not in searched]
            statements += derived_records(self._kb, self._derived_by, others)
        found = {item.id: item for item in self.items(statements) if item.id in identities}
        if self._kind is SheetKind.PREDICATES:
            found |= self._proposed([identity for identity in identities if identity not in found])
        return found

    def _proposed(self, identities: Collection[str]) -> dict[str, VotingItem]:
        """Items about facts that models proposed, whether a statement rests on them or not."""
        atoms = proposed_atoms(self._kb, self._library) if identities else {}
        items = {}
        for identity in identities:
            atom = atoms.get(subject_id(identity))
            if atom is None or not identity.startswith(FACT):
                continue
            types = self._library.signature(atom.indicator).argument_types
            typed = [(str(value), data_type) for value, data_type in zip(atom.arguments, types, strict=True)]
            items[identity] = predicate_item(identity, atom.claim, typed)
        return items

    def items(self, statements: Sequence[StatementRecord]) -> list[VotingItem]:
        """Items about these statements; on a sheet of predicates, each fact once."""
        items = []
        if self._kind is SheetKind.PREDICATES:
            claims: dict[str, Claim] = {}
            for statement in statements:
                claims |= {claim.fact: claim for claim in self.claims(statement)}
            for claim in claims.values():
                items.append(predicate_item(FACT + claim.fact, claim.text, claim.typed))
        elif self._kind is SheetKind.BASELINE:
            probe_items, _ = items_of(self._kb, statements)
            for probe in probe_items:
                questions = [(template.number, template.question(probe), template.pair) for template in self._templates]
                items.append(baseline_item(STATEMENT + probe.statement_id, tuple(questions)))
        elif self._kind is SheetKind.SOUNDNESS:
            for statement in statements:
                facts = self._facts(statement)
                items.append(soundness_item(STATEMENT + statement.id, statement.premise, statement.conclusion, facts))
        else:
            for statement in statements:
                typed = []
                for variable, value in self._stated_values(statement):
                    typed.append((variable.name, str(value), variable.data_type))
                identity = STATEMENT + statement.id
                items.append(statement_item(identity, statement.premise, statement.conclusion, tuple(typed)))
        return items

    def claims(self, statement: StatementRecord) -> list[Claim]:
        """Facts behind a statement that are about two searched values and that a critic accepted (appendix C)."""
        rule = self._rule(statement)
        values = dict(statement.substitution)
        claims = []
        for literal in rule.literals:
            variables = literal.variables
            # Table 6 asks about exactly two arguments, both of them values.
            if literal.negated or not len(variables) == len(literal.atom.arguments) == 2:
                continue
            if any(variable.name in rule.generic or variable.name not in values for variable in variables):
                continue
            if self._library.signature(literal.atom.indicator).kind in ASKED_OF_MODELS:
                claims.append(Claim.of(literal, values, self._library))
        return claims

    def _population(self, sample: SampleOptions) -> _Statements:
        """The statements to draw from; nobody is asked twice about one text."""
        latest: _Statements = latest_statements(self._kb, sample.rules, sample.runs)
        if self._kind is not SheetKind.PREDICATES:
            distinct = DistinctTexts.of(latest).statements
            latest = {}
            for distribution, statements in distinct.items():
                latest[distribution] = {record.id: record for record in statements.values()}
        if sample.rules_drawn is None:
            return latest
        names: set[str] = set()
        for statements in latest.values():
            names.update(statement.rule for statement in statements.values())
        # Drawn like statements, so that more rules contain the fewer.
        drawn = sorted(names, key=lambda name: draw_order_key(sample.seed, name))[: sample.rules_drawn]
        population = {}
        for distribution, statements in latest.items():
            population[distribution] = {key: record for key, record in statements.items() if record.rule in drawn}
        return population

    def _labelled(self, population: _Statements) -> tuple[_Statements, bool]:
        """The statements whose truth people judged (section 4), and True; without any, all statements, and False.

        Statements with a value of a wrong type are never among them.
        """
        found = Judgements.stored(self._kb)
        fitting, labelled = {}, {}
        for distribution, statements in population.items():
            right_types = {key: record for key, record in statements.items() if found.of(key).typed is not False}
            fitting[distribution] = right_types
            labelled[distribution] = {key: record for key, record in right_types.items() if found.of(key).truth}
        return (labelled, True) if any(labelled.values()) else (fitting, False)

    @cached_property
    def _derived_by(self) -> Library:
        return derivation_rules(self._kb) if self._given_rules is None else self._given_rules

    @cached_property
    def _library(self) -> Library:
        return stored_library(self._kb)

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {rule.name: rule for rule in self._library.rules}

    def _library_of(self, statement: StatementRecord) -> Library:
        """The predicates of a statement's rule."""
        return self._derived_by if statement.run_id == RUN_ID else self._library

    def _rule(self, statement: StatementRecord) -> Rule:
        if statement.run_id == RUN_ID:
            return self._derived_by.rule(statement.rule)
        if statement.rule not in self._rules:
            raise HapaxError(
                f"{self._kb.place} holds statements of the rule {statement.rule}, but not the rule itself. Search or "
                "import it again."
            )
        return self._rules[statement.rule]

    def _facts(self, statement: StatementRecord) -> dict[str, str]:
        """The facts of a statement's proof in words, with their ids; a failed search has none."""
        texts: dict[str, str] = {}
        for part in proof_from_json(statement.proof).parts():
            if part.by in (By.FACT, By.GIVEN, By.NEGATION) and isinstance(part.goal, Literal):
                is_stored = part.by is not By.NEGATION
                text = literal_text(part.goal, self._library_of(statement))
                texts[text] = fact_id(part.goal.atom.predicate, part.goal.atom.values) if is_stored else ""
        return texts

    def _stated_values(self, statement: StatementRecord) -> Iterator[tuple[Variable, Value]]:
        """The searched variables that the statement names, with their values, in the order of the rule.

        The paper asks about each variable of the rule (3.3), but shows those that the statement names (table 20).
        """
        rule = self._rule(statement)
        names = variable_names([rule.conclusion])
        for literal in stated_literals(rule, self._library_of(statement)):
            names.update(variable.name for variable in literal.variables)
        values = dict(statement.substitution)
        for variable in rule.searched:
            if variable.name in names and variable.name in values:
                yield variable, values[variable.name]


def subject_id(item_id: str) -> str:
    """Id of the statement, fact or schema that an item is about."""
    return item_id.partition(":")[2]


def _drawn_evenly(
    population: _Statements, sample: SampleOptions
) -> dict[Distribution, list[tuple[str, StatementRecord]]]:
    """The drawn statements with their ids: of each rule and distribution one, then of each a second, and so on."""
    turns: list[tuple[int, str, Distribution, str]] = []
    for distribution, statements in population.items():
        taken: Counter[str] = Counter()
        # `taken` says in which turn a statement comes: the n-th drawn of its rule comes in turn n.
        for key, statement in draw_sample(statements, None, sample.seed):
            # Within a turn the order is drawn, too, so that no rule comes first because of its name.
            order = draw_order_key(sample.seed, f"{distribution.value} {statement.rule}")
            turns.append((taken[statement.rule], order, distribution, key))
            taken[statement.rule] += 1
    drawn: dict[Distribution, list[tuple[str, StatementRecord]]] = {distribution: [] for distribution in population}
    for _, _, distribution, key in sorted(turns)[: sample.total]:
        drawn[distribution].append((key, population[distribution][key]))
    return drawn


def _drawn(population: _Statements, sample: SampleOptions) -> dict[Distribution, list[tuple[str, StatementRecord]]]:
    """The drawn statements with their ids, by distribution."""
    sizes: dict[Distribution, int | None] = dict.fromkeys(Distribution)
    if sample.per_distribution is not None:
        sizes[Distribution.HEAD], sizes[Distribution.LONG_TAIL] = sample.per_distribution
    elif sample.total is not None:
        # One draw over both distributions says how many statements each of them gives.
        keys = []
        for distribution, statements in population.items():
            keys += [(draw_order_key(sample.seed, key), distribution) for key in statements]
        first = Counter(distribution for _, distribution in sorted(keys)[: sample.total])
        sizes = {distribution: first[distribution] for distribution in Distribution}
    drawn = {}
    for distribution, statements in population.items():
        drawn[distribution] = draw_sample(statements, sizes[distribution], sample.seed)
    return drawn


_BATCH = 10_000
"""Statements whose facts are scored at once."""


def derivation_rules(kb: KnowledgeBase) -> Library:
    """The rules of derived statements, which the knowledge base keeps; none where nothing is derived."""
    kept = kept_rules(kb) if any(kb.derived_counts().values()) else None
    return kept or Library()


def derived_records(kb: KnowledgeBase, library: Library, identities: Iterable[str]) -> list[StatementRecord]:
    """The derived statements with these ids, with their proofs; those that are gone or out of date are left out."""
    found = []
    if not any(kb.derived_counts().values()):
        return []
    for identity in identities:
        try:
            record = statement_by_id(kb, library, identity)
        except HapaxError:  # facts have changed since
            record = None
        if record is not None:
            found.append(record)
    return found


def draw_derived(
    kb: KnowledgeBase, library: Library, seed: int, size: int | None, rules: tuple[str, ...]
) -> list[StatementRecord]:
    """At most `size` derived statements, all if it is None, each text once; `rules`: only of these, if any are given.

    The draw depends on the seed and on each statement alone. Raises HapaxError where there are none.
    """
    ids = DerivedIds(kb)
    if not ids.prepare():
        raise HapaxError(
            f"{kb.place}: its derived statements cannot be indexed now.",
            Remedy(
                "Run {} on a file that may be written, and try again when no other command writes to it.",
                Operation("derive"),
            ),
        )
    chosen: dict[str, StatementRecord] = {}
    for identity in sorted(ids.all(rules), key=lambda identity: draw_order_key(seed, identity)):
        if size is not None and len(chosen) == size:
            break
        for record in derived_records(kb, library, [identity]):
            chosen.setdefault(record.text, record)
    if not chosen:
        raise _none_current(kb)
    return list(chosen.values())


def derived_scores(scores: StatementScores) -> dict[str, float]:
    """By id of a derived statement that is up to date, each text once, the product of what its facts are worth.

    Raises HapaxError where there are none.
    """
    kb, library = scores.kb, scores.library
    first: dict[str, tuple[str, float]] = {}
    for rule in current_rules(kb, library):
        records = read_statements(kb, library, rule)
        while batch := list(islice(records, _BATCH)):
            found = scores.scores(batch)
            for record in batch:
                own = (record.id, found[record.id])
                # The smallest id, so that the order of the rules decides nothing.
                first[record.text] = min(first.get(record.text, own), own)
    if not first:
        raise _none_current(kb)
    return dict(first.values())


def _none_current(kb: KnowledgeBase) -> HapaxError:
    return HapaxError(
        f"{kb.place} holds no derived statement that is up to date.", Remedy("Run {} first.", Operation("derive"))
    )


def judged_derived(
    kb: KnowledgeBase, library: Library, found: Judgements, known: Container[str] = ()
) -> dict[str, tuple[StatementRecord, Judgement]]:
    """The derived statements that are judged and up to date, by id; `known`: ids that are counted elsewhere."""
    judged = [identity for identity in found.texts if identity not in known]
    return {record.id: (record, found.texts[record.id]) for record in derived_records(kb, library, judged)}
