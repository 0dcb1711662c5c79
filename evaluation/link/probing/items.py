"""Statements of a knowledge base as items to probe: negation and question of a conclusion, and people's verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from hapax.engine.judgements import Judgements
from hapax.evaluation.shared.stored_statements import (
    NO_DOMAIN,
    DistinctTexts,
    draw_sample,
    latest_statements,
    stored_library,
)
from hapax.grammar.attributes import Polarity, default_polarity
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library, PredicateSignature, Rule, Templates
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.verbalize import IMPROVISED, UNTRUE, atom_text, negated_template, question_template, template_of
from hapax.kb.records import Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.rewriting import FormWriter


@dataclass(frozen=True, slots=True)
class ConclusionForms:
    """A rule's conclusion, its negation and its question, with numbered slots.

    The question asks about the positive side: `can [1] eat [2]?`, even if the rule concludes that somebody cannot. So
    the label of template 7 follows from the rule's polarity, as in LINK. `notes`: the forms that were improvised.
    """

    atom: Atom
    signature: PredicateSignature
    notes: tuple[str, ...] = ()

    def texts(self, substitution: Sequence[tuple[str, Value]]) -> tuple[str, str, str]:
        """Conclusion, negation and question of one statement; variables that it leaves unbound are generic."""
        bound: Mapping[str, Constant] = {name: Constant(value) for name, value in substitution}
        generic = [variable.name for variable in self.atom.variables if variable.name not in bound]
        words = Library(signatures=(self.signature,))
        conclusion, negation, question = (
            atom_text(self.atom, words, bound, form, generic) for form in ("affirmative", "negated", "question")
        )
        return conclusion, negation, question.rstrip("? ")  # template 7 adds its own question mark


def conclusion_forms(rule: Rule, library: Library, positive: bool, writer: FormWriter | None = None) -> ConclusionForms:
    """The forms of the rule's conclusion, whose polarity is `positive`."""
    atom = rule.conclusion.atom
    declared = library.signature(atom.indicator).templates
    affirmative = template_of(atom, library)
    notes: list[str] = []

    def negation_of(sentence: str) -> str:
        if declared is not None and declared.negated:
            return declared.negated
        by_grammar = negated_template(sentence)
        if not by_grammar.startswith(IMPROVISED):
            return by_grammar
        written = writer.negation(sentence) if writer else None
        notes.append(f"{rule.name}: {_source(written)} the negation of '{sentence}': '{written or by_grammar}'")
        return written or by_grammar

    def question_of(sentence: str) -> str:
        # A declared question asks about the affirmative sentence only.
        if declared is not None and declared.question and sentence == affirmative:
            return declared.question
        by_grammar = question_template(sentence)
        if not by_grammar.startswith(IMPROVISED):
            return by_grammar
        if sentence.startswith(UNTRUE):
            by_grammar = f"is it untrue that {sentence.removeprefix(UNTRUE)}?"
        written = writer.question(sentence) if writer else None
        notes.append(f"{rule.name}: {_source(written)} the question for '{sentence}': '{written or by_grammar}'")
        return written or by_grammar

    # Both forms are needed whatever the rule concludes: questions put the other one, too.
    negative = negation_of(affirmative)
    # The polarity need not follow from the words: `cannot_plant` is negative without a negation.
    templates = Templates(affirmative, negative, question_of(affirmative if positive else negative))
    return ConclusionForms(atom, replace(library.signature(atom.indicator), templates=templates), tuple(notes))


def _source(written: str | None) -> str:
    return "the model wrote" if written else "neither template nor grammar gave"


@dataclass(frozen=True, slots=True)
class ProbeItem:
    """A statement ready for the templates: clauses without a full stop, the question without a question mark.

    `entailed` False: people found that the premise does not entail the conclusion, so every label flips.
    """

    statement_id: str
    rule: str
    domain: str
    distribution: Distribution
    premise: str
    conclusion: str
    negation: str
    question: str
    polarity: Polarity
    entailed: bool = True


@dataclass(frozen=True, slots=True)
class ItemSet:
    """Items to probe, one for all statements of a distribution that read the same. `found`: texts before sampling, by
    distribution; `repeats`: statements beyond the first of each text.

    People's votes flipped the labels of `contradicted` items, and excluded `wrong_type` texts. `shared` texts are in
    both distributions, so they say nothing about the difference. `notes`: conclusions with improvised forms.
    """

    items: tuple[ProbeItem, ...]
    found: dict[Distribution, int]
    contradicted: int
    wrong_type: int
    shared: int
    notes: tuple[str, ...] = ()
    repeats: int = 0


def probe_items(
    kb: KnowledgeBase,
    rules: Sequence[str] = (),
    sample: int | None = None,
    seed: int = 0,
    *,
    writer: FormWriter | None = None,
    runs: Sequence[str] = (),
) -> ItemSet:
    """Take statements of a knowledge base as items. `rules`, `runs`: only these; `sample`: at most so many of each
    distribution.

    Whether a text is drawn depends on the seed and on the text's row id alone, so a larger sample contains the smaller
    ones. Head and long tail alternate, so a run that ends early has both.
    """
    texts = DistinctTexts.of(latest_statements(kb, rules, runs))
    statements = texts.statements
    judged = Judgements.stored(kb)
    # LINK drops statements with a value of a wrong type and flips the labels of those judged incorrect (section 4).
    well_typed: dict[Distribution, dict[str, StatementRecord]] = {}
    for distribution, records in statements.items():
        well_typed[distribution] = {key: record for key, record in records.items() if judged.of(key).typed is not False}
    samples = [draw_sample(records, sample, seed) for records in well_typed.values()]
    alternating: list[tuple[str, StatementRecord]] = []
    for entries in zip_longest(*samples):
        # The shorter sample is padded with None.
        alternating += [entry for entry in entries if entry is not None]
    of_statements, notes = items_of(kb, [record for _, record in alternating], judged, writer)
    items = []
    for (row_id, _), item in zip(alternating, of_statements, strict=True):
        items.append(replace(item, statement_id=row_id))
    found = {distribution: len(records) for distribution, records in well_typed.items()}
    return ItemSet(
        tuple(items),
        found,
        contradicted=sum(not item.entailed for item in items),
        wrong_type=sum(map(len, statements.values())) - sum(found.values()),
        # By row ids, which a text has in common at both ends.
        shared=len(set.intersection(*map(set, well_typed.values()))),
        notes=notes,
        repeats=sum(texts.total.values()) - sum(map(len, statements.values())),
    )


def items_of(
    kb: KnowledgeBase,
    statements: Sequence[StatementRecord],
    judged: Judgements | None = None,
    writer: FormWriter | None = None,
) -> tuple[tuple[ProbeItem, ...], tuple[str, ...]]:
    """The statements as items, whatever the data types of their values; with notes on improvised forms.

    `judged`: people's judgements, by which labels are flipped.
    """
    judged = judged or Judgements()
    forms = rule_forms(kb, {statement.rule for statement in statements}, writer)
    items = []
    for statement in statements:
        domain, polarity, conclusion = forms[statement.rule]
        entailed = judged.of(statement.id).is_true is not False
        items.append(probe_item(statement, domain, polarity, conclusion, entailed=entailed))
    notes: list[str] = []
    for _, _, conclusion in forms.values():
        notes += conclusion.notes
    return tuple(items), tuple(notes)


def probe_item(
    record: StatementRecord, domain: str, polarity: Polarity, forms: ConclusionForms, *, entailed: bool
) -> ProbeItem:
    """The statement as an item; domain, polarity and forms are those that `rule_forms` returns for its rule."""
    conclusion, negation, question = forms.texts(record.substitution)
    return ProbeItem(
        record.id,
        record.rule,
        domain,
        record.distribution,
        record.premise,
        conclusion,
        negation,
        question,
        polarity,
        entailed,
    )


def rule_forms(
    kb: KnowledgeBase, names: set[str], writer: FormWriter | None
) -> dict[str, tuple[str, Polarity, ConclusionForms]]:
    """Domain, polarity and conclusion forms by rule, from the rules stored in the knowledge base."""
    library = stored_library(kb, names)
    forms: dict[str, tuple[str, Polarity, ConclusionForms]] = {}
    for rule in library.rules:
        polarity = rule.polarity or default_polarity(rule.conclusion)
        # Once for each rule, so that a writer is asked once, too.
        conclusion = conclusion_forms(rule, library, polarity is Polarity.POSITIVE, writer)
        forms[rule.name] = (rule.domain or NO_DOMAIN, polarity, conclusion)
    missing = sorted(names - set(forms))
    if missing:
        raise HapaxError(
            f"{kb.place} has statements of rule {missing[0]}, but not the rule. Search or import it again."
        )
    return forms
