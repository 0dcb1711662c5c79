"""The statements that are probed, from a knowledge base, with what people said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evaluation.experiments import skipped_runs
from evaluation.probing.forms import ConclusionForms, conclusion_forms
from grammar.defaults import default_polarity
from grammar.errors import HapaxError
from grammar.parser import parse_rule
from grammar.rules import Library, Polarity, PredicateKind, PredicateSignature, Templates
from kb.records import Distribution, PredicateRecord, StatementRecord, VoteRecord, content_id
from kb.store import KnowledgeBase
from llm_oracle.rewriting import FormWriter

ENTAILMENT, DATA_TYPE = "entailment", "data type"
"""The questions of votes that a label follows from. One on data types may go on with a variable: `data type B`."""

NO_DOMAIN = "no domain"

_Keyed = tuple[str, StatementRecord]


@dataclass(frozen=True, slots=True)
class ProbeItem:
    """A statement ready for the templates: clauses without full stop, the question without question mark.

    `entailed` is what people found: False turns every label.
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
    """What is probed, and what was left out. `found` counts statements before sampling, by distribution.

    `contradicted`: labels turned by people's votes; `wrong_type`: left out by them; `shared`: statements found in both
    distributions, which tell nothing about a difference; `notes`: conclusions with improvised forms.
    """

    items: tuple[ProbeItem, ...]
    found: dict[Distribution, int]
    contradicted: int
    wrong_type: int
    shared: int
    notes: tuple[str, ...] = ()


def probe_items(
    kb: KnowledgeBase,
    rules: Sequence[str] = (),
    sample: int | None = None,
    seed: int = 0,
    *,
    writer: FormWriter | None = None,
    runs: Sequence[str] = (),
) -> ItemSet:
    """The statements of a knowledge base as items. `rules`, `runs`: only these; `sample`: so many a distribution.

    Which statements are drawn depends on the seed and on each statement alone, so that a larger sample holds the
    smaller one. Head and long tail alternate, so that a run cut short has both.
    """
    statements = latest_statements(kb, rules, runs)
    verdicts = verdicts_of(kb.votes())
    fitting = {
        each: {key: one for key, one in several.items() if key not in verdicts.wrong_type}
        for each, several in statements.items()
    }
    chosen = _alternating(*(drawn(several, sample, seed) for several in fitting.values()))
    items, notes = items_of(kb, [one for _, one in chosen], verdicts, writer)
    found = {each: len(several) for each, several in fitting.items()}
    return ItemSet(
        items,
        found,
        contradicted=sum(not one.entailed for one in items),
        wrong_type=sum(map(len, statements.values())) - sum(found.values()),
        shared=len(set.intersection(*map(set, fitting.values()))),
        notes=notes,
    )


def items_of(
    kb: KnowledgeBase, statements: Sequence[StatementRecord], verdicts: Verdicts, writer: FormWriter | None = None
) -> tuple[tuple[ProbeItem, ...], tuple[str, ...]]:
    """These statements as items, whatever their data types; and the notes on improvised forms."""
    forms = rule_forms(kb, {one.rule for one in statements}, writer)
    items = (probe_item(one, *forms[one.rule], entailed=one.id not in verdicts.contradicted) for one in statements)
    return tuple(items), tuple(note for _, _, made in forms.values() for note in made.notes)


def latest_statements(
    kb: KnowledgeBase, rules: Sequence[str] = (), runs: Sequence[str] = ()
) -> dict[Distribution, dict[str, StatementRecord]]:
    """Each statement by its id, once a distribution, as the last run wrote it. `runs`: see `skipped_runs`."""
    known = {rule.name for rule in kb.rules()}
    for name in rules:
        if name not in known:
            raise HapaxError(f"{kb.place}: no rule {name!r}. Without --rule all are taken that it holds.")
    skipped = skipped_runs(kb, runs)
    latest: dict[Distribution, dict[str, StatementRecord]] = {each: {} for each in Distribution}
    for one in kb.statements():
        if one.run_id not in skipped and (not rules or one.rule in rules):
            latest[one.distribution][one.id] = one
    if not any(latest.values()):
        raise HapaxError(
            f"{kb.place} holds no statement to ask about. Search some (`hapax search`) or import LINT's "
            "(`hapax evaluate lint`); --run takes those of an experiment."
        )
    return latest


def drawn(statements: Mapping[str, StatementRecord], sample: int | None, seed: int) -> list[_Keyed]:
    """At most so many statements, of which a larger sample holds the smaller."""
    return sorted(statements.items(), key=lambda keyed: draw_key(seed, keyed[0]))[:sample]


def draw_key(seed: int, identity: str) -> str:
    """By what samples are put in order: it depends on the seed and on the drawn thing alone."""
    return content_id("draw", seed, identity)


def _alternating(*several: Sequence[_Keyed]) -> list[_Keyed]:
    longest = max(map(len, several))
    return [one[place] for place in range(longest) for one in several if place < len(one)]


def probe_item(
    record: StatementRecord, domain: str, polarity: Polarity, forms: ConclusionForms, *, entailed: bool
) -> ProbeItem:
    """The statement as an item, with what `rule_forms` gives for its rule."""
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
    kb: KnowledgeBase, wanted: set[str], writer: FormWriter | None
) -> dict[str, tuple[str, Polarity, ConclusionForms]]:
    """Domain, polarity and conclusion of the rules, read from the knowledge base: no rule file is needed."""
    library = kb_library(kb, wanted)
    found: dict[str, tuple[str, Polarity, ConclusionForms]] = {}
    for rule in library.rules:
        polarity = rule.polarity or default_polarity(rule.conclusion)
        made = conclusion_forms(rule, library, polarity is Polarity.POSITIVE, writer)
        found[rule.name] = (rule.domain or NO_DOMAIN, polarity, made)
    missing = sorted(wanted - set(found))
    if missing:
        raise HapaxError(f"{kb.place} holds statements of {missing[0]}, but not the rule. Search or import it again.")
    return found


def kb_library(kb: KnowledgeBase, rules: Container[str] | None = None) -> Library:
    """The rules of a knowledge base with their predicates, as its last run read them; `rules` None: all."""
    library = Library(signatures=tuple(map(_signature, kb.predicates())))
    wanted = [record for record in kb.rules() if rules is None or record.name in rules]
    return replace(library, rules=tuple(parse_rule(record.text, library).named(record.name) for record in wanted))


def _signature(record: PredicateRecord) -> PredicateSignature:
    templates = Templates(record.affirmative, record.negated, record.question) if record.affirmative else None
    return PredicateSignature(record.name, record.argument_types, PredicateKind(record.kind), templates)


class Verdicts(NamedTuple):
    """The statements that more voters denied than affirmed, by kind of question."""

    contradicted: frozenset[str]
    wrong_type: frozenset[str]


def balance_of(votes: Iterable[VoteRecord]) -> Counter[tuple[str, str]]:
    """By statement and question how many more said yes than no; an answer other than these counts for neither."""
    balance: Counter[tuple[str, str]] = Counter()
    for one in votes:
        question, answer = one.question.strip().casefold(), one.answer.strip().casefold()
        balance[one.statement_id, question] += {"yes": 1, "no": -1}.get(answer, 0)
    return balance


def verdicts_of(votes: Iterable[VoteRecord]) -> Verdicts:
    """What people's votes say."""
    denied = [key for key, count in balance_of(votes).items() if count < 0]
    return Verdicts(
        frozenset(statement for statement, question in denied if question == ENTAILMENT),
        frozenset(statement for statement, question in denied if question.startswith(DATA_TYPE)),
    )
