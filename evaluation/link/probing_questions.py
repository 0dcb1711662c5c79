"""Statements that are asked about, the questions of LINK's table 12 about them, and a model's parsed answers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import chain, zip_longest

from hapax.engine.judgements import Judgements
from hapax.evaluation.shared.stored_statements import (
    NO_DOMAIN,
    draw_sample,
    latest_statements,
    statement_rows,
    stored_library,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import Polarity, PredicateSignature, Templates, default_polarity
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.writing.verbalize import (
    IMPROVISED,
    UNTRUE,
    atom_text,
    negated_template,
    question_template,
    template_of,
)
from hapax.kb.records import Distribution, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.questions.rewriting import FormWriter


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
class ConclusionForms:
    """A rule's conclusion, its negation and its question, with numbered slots, and the rule's domain and polarity.

    The question asks about the positive side: `can [1] eat [2]?`, even if the rule concludes that somebody cannot. So
    the label of template 7 follows from the rule's polarity, as in LINK. `notes`: the forms that were improvised.
    """

    domain: str
    polarity: Polarity
    atom: Atom
    signature: PredicateSignature
    notes: tuple[str, ...] = ()

    def item(self, record: StatementRecord, *, entailed: bool) -> ProbeItem:
        """A statement of the rule as an item; variables that it leaves unbound are generic."""
        bound: Mapping[str, Constant] = {name: Constant(value) for name, value in record.substitution}
        generic = [variable.name for variable in self.atom.variables if variable.name not in bound]
        words = Library(signatures=(self.signature,))
        conclusion, negation, question = (
            atom_text(self.atom, words, bound, form, generic) for form in ("affirmative", "negated", "question")
        )
        place = (record.id, record.rule, self.domain, record.distribution, record.premise)
        # Template 7 adds its own question mark.
        return ProbeItem(*place, conclusion, negation, question.rstrip("? "), self.polarity, entailed)


def conclusion_forms(rule: Rule, library: Library, writer: FormWriter | None = None) -> ConclusionForms:
    """The forms of the rule's conclusion: declared, by grammar, written or improvised."""
    atom = rule.conclusion.atom
    polarity = rule.polarity or default_polarity(rule.conclusion)
    signature = library.signature(atom.indicator)
    declared = signature.templates or Templates("")
    affirmative = template_of(atom, library)
    notes: list[str] = []

    def form(kind: str, sentence: str, declared_form: str | None) -> str:
        by_grammar = negated_template(sentence) if kind == "negation" else question_template(sentence)
        if declared_form or not by_grammar.startswith(IMPROVISED):
            return declared_form or by_grammar
        if kind == "question" and sentence.startswith(UNTRUE):
            by_grammar = f"is it untrue that {sentence.removeprefix(UNTRUE)}?"
        written = getattr(writer, kind)(sentence) if writer else None
        source = "the model wrote" if written else "neither template nor grammar gave"
        of_sentence = f"the negation of '{sentence}'" if kind == "negation" else f"the question for '{sentence}'"
        notes.append(f"{rule.name}: {source} {of_sentence}: '{written or by_grammar}'")
        return written or by_grammar

    # Both forms are needed whatever the rule concludes: questions put the other one, too.
    negative = form("negation", affirmative, declared.negated)
    # The polarity need not follow from the words: `cannot_plant` is negative without a negation.
    asked = affirmative if polarity is Polarity.POSITIVE else negative
    # A declared question asks about the affirmative sentence only.
    question = form("question", asked, declared.question if asked == affirmative else None)
    worded = replace(signature, templates=Templates(affirmative, negative, question))
    return ConclusionForms(rule.domain or NO_DOMAIN, polarity, atom, worded, tuple(notes))


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
    latest = latest_statements(kb, rules, runs)
    statements = statement_rows(latest)
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
        repeats=sum(map(len, latest.values())) - sum(map(len, statements.values())),
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
        entailed = judged.of(statement.id).is_true is not False
        items.append(forms[statement.rule].item(statement, entailed=entailed))
    return tuple(items), tuple(chain.from_iterable(conclusion.notes for conclusion in forms.values()))


def rule_forms(kb: KnowledgeBase, names: set[str], writer: FormWriter | None = None) -> dict[str, ConclusionForms]:
    """Conclusion forms by rule, from the rules stored in the knowledge base."""
    library = stored_library(kb, names)
    # Once for each rule, so that a writer is asked once, too.
    forms = {rule.name: conclusion_forms(rule, library, writer) for rule in library.rules}
    missing = sorted(names - set(forms))
    if missing:
        raise HapaxError(
            f"{kb.place} has statements of rule {missing[0]}, but not the rule. Search or import it again."
        )
    return forms


class AnswerPair(Enum):
    """The two answers to choose from, the positive one first."""

    YES_NO = ("Yes", "No")
    TRUE_FALSE = ("True", "False")
    RIGHT_WRONG = ("Right", "Wrong")

    def word(self, positive: bool) -> str:
        return self.value[0 if positive else 1]

    @property
    def spoken(self) -> str:
        return " or ".join(self.value).lower()


@dataclass(frozen=True, slots=True)
class Template:
    """A question with slots. `positive`: the right answer if the premise entails the conclusion; None: it depends."""

    number: int
    text: str
    pair: AnswerPair
    positive: bool | None

    def question(self, item: ProbeItem) -> str:
        return self.text.format(
            premise=item.premise,
            conclusion=item.conclusion,
            conclusion_negation=item.negation,
            conclusion_question=item.question,
        )

    def label(self, item: ProbeItem) -> bool:
        """True if the right answer is the positive one.

        Template 7 asks about the positive side of the conclusion, so its answer is No for a negative conclusion. All
        answers flip if people found that the premise contradicts the conclusion (section 4).
        """
        # Equality flips the label where `entailed` is False.
        positive = item.polarity is Polarity.POSITIVE if self.positive is None else self.positive
        return positive == item.entailed


# An enum yields its members in the order of their definition.
_YES_NO, _TRUE_FALSE, _RIGHT_WRONG = AnswerPair

TEMPLATES = (
    Template(1, "Is it true that if {premise}, {conclusion}.", _YES_NO, True),
    Template(2, "Yes or no: if {premise}, {conclusion}.", _YES_NO, True),
    Template(3, "True or false: if {premise}, {conclusion}.", _TRUE_FALSE, True),
    Template(4, "Right or Wrong: if {premise}, {conclusion}.", _RIGHT_WRONG, True),
    Template(5, "Premise: {premise}. Conclusion: {conclusion}. Does premise entail conclusion?", _YES_NO, True),
    Template(
        6,
        "Premise: {premise}. Conclusion: {conclusion_negation}. Does premise contradict the conclusion?",
        _YES_NO,
        True,
    ),
    Template(7, "Answer the question with yes or no: if {premise}, {conclusion_question}?", _YES_NO, None),
    Template(8, "Is it true that if {premise}, {conclusion_negation}.", _YES_NO, False),
    Template(9, "Yes or no: if {premise}, {conclusion_negation}.", _YES_NO, False),
    Template(10, "True or false: if {premise}, {conclusion_negation}.", _TRUE_FALSE, False),
    Template(11, "Right or Wrong: if {premise}, {conclusion_negation}.", _RIGHT_WRONG, False),
    Template(
        12, "Premise: {premise}. Conclusion: {conclusion_negation}. Does premise entail conclusion?", _YES_NO, False
    ),
    Template(
        13, "Premise: {premise}. Conclusion: {conclusion}. Does premise contradict the conclusion?", _YES_NO, False
    ),
)


# `**No.** Because ...`: quotes, brackets and Markdown may stand before the word.
_FIRST_WORD = re.compile(r"[\s\"'“”‘’*_`(\[]*([^\W\d_]+)")
# `Therefore, the answer (yes or no) is: Yes`; each part but "answer" may be missing.
_ANNOUNCED = re.compile(
    r"[\s*_]*(?:therefore,? )?(?:the |my )?answer(?: \([^)]{1,40}\))?(?: is)?[:\s\"'“*]*([^\W\d_]+)", re.IGNORECASE
)
_ECHO = re.compile(r"\W*(?:yes|true|right)\s*(?:or|/)\s*(?:no|false|wrong)\b", re.IGNORECASE)
_QUOTED = 60
"""Characters of a reply that a violation quotes."""


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A parsed reply. Where it has neither answer of its pair, `positive` is None and `violation` says why; where the
    model refused to reply, `refusal` does.
    """

    positive: bool | None
    violation: str | None = None
    refusal: str | None = None


def parse_reply(reply: str, pair: AnswerPair) -> ParsedReply:
    """Parse the answer that a reply begins with: `Yes`, `**No.** Because ...`, `The answer is: true`.

    Only the question's own pair counts, as in LINK: `Yes` to a true-or-false question is a violation, and so is a reply
    that argues first.
    """
    if not reply.strip():
        return ParsedReply(None, "empty reply")
    # "Yes or no: ..." begins with a word of the pair, but is the question and no answer.
    if _ECHO.match(reply):
        return ParsedReply(None, f"repeats the question: {_quote(reply)}")
    # In this order, or the first word of an announcement, "The", would be taken for the answer.
    match = _ANNOUNCED.match(reply) or _FIRST_WORD.match(reply)
    word = match[1].capitalize() if match else ""
    if word in pair.value:
        return ParsedReply(word == pair.word(True))
    if any(word in wrong_pair.value for wrong_pair in AnswerPair):
        return ParsedReply(None, f"{word} where {pair.spoken} was asked")
    return ParsedReply(None, f"no answer: {_quote(reply)}")


def _quote(reply: str) -> str:
    # Cut before joining: a reply can be megabytes long.
    return " ".join(reply[: 4 * _QUOTED].split())[:_QUOTED]


STEP_BY_STEP = "Let's think step by step."
"""End of LINK's prompt for the rationale."""


def closing(template: Template) -> str:
    """Text after the rationale that requests the answer."""
    return f"Therefore, the answer ({template.pair.spoken}) is:"


def examples(seed: int, item: ProbeItem, template: Template) -> str:
    """Both examples as shown before this question; seed, statement and template determine the text."""
    rng = random.Random(f"{seed} {item.statement_id} {item.distribution.value} {template.number}")  # noqa: S311  # reproducible, not secret
    # A string as seed gives the same numbers in every process, which `hash` would not.
    labels = [True, False]
    rng.shuffle(labels)
    text = ""
    for (example, rationale), label in zip(_EXAMPLES, labels, strict=True):
        # One of the templates whose right answer about this example is the wanted one.
        shown = rng.choice([template for template in TEMPLATES if template.label(example) == label])
        answer = f"{closing(shown)} {shown.pair.word(label)}"
        text += f"{shown.question(example)}\n{STEP_BY_STEP}\n{rationale}\n{answer}\n\n"
    return text


def without_answer(rationale: str) -> str:
    """The rationale up to the answer that some models add by themselves."""
    # What follows is not needed either: the answer is requested again after the rationale.
    return re.split(r"therefore,? the answer", rationale, maxsplit=1, flags=re.IGNORECASE)[0].strip()


_denial = partial(ProbeItem, "example", "example", "", Distribution.HEAD, polarity=Polarity.NEGATIVE)
_EXAMPLES = (
    (
        _denial(
            "PersonX is allergic to peanuts",
            "PersonX is not able to eat satay sauce",
            "PersonX is able to eat satay sauce",
            "is PersonX able to eat satay sauce",
        ),
        "Satay sauce is made from peanuts. Somebody who is allergic to peanuts cannot eat what is made from them, so "
        "PersonX is not able to eat satay sauce.",
    ),
    (
        _denial(
            "PersonX died in the Bronze Age",
            "PersonX was not able to ride a steam train",
            "PersonX was able to ride a steam train",
            "was PersonX able to ride a steam train",
        ),
        "The Bronze Age ended about 3,000 years ago. Steam trains have existed for about 200 years. Whoever died in "
        "the Bronze Age died long before, so PersonX was not able to ride a steam train.",
    ),
)


PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:"
"""Text that LINK puts before each question; the critic's prompt contains it already."""


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A model's answer to one question. `rationale`: its chain of thought; `probability`: a critic's P(yes)."""

    item: ProbeItem
    template: Template
    question: str
    verdict: ParsedReply
    reply: str = ""
    rationale: str | None = None
    probability: float | None = None

    @property
    def label(self) -> bool:
        """True if the positive answer is the right one."""
        return self.template.label(self.item)

    @property
    def right(self) -> bool:
        """True if the answer matches the label; a reply off format or refused never does."""
        return self.verdict.positive == self.label


ProbeQuestion = tuple[ProbeItem, Template]
Asker = Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]]
"""Asks questions; all questions about a statement are in one call."""
