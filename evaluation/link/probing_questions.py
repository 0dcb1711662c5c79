"""Statements that are asked about, the questions of LINK's table 12 about them, and a model's parsed answers."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from itertools import product, zip_longest
from typing import Any

from hapax.engine.judgements import Judgements
from hapax.evaluation.shared.result_tables import for_batches
from hapax.evaluation.shared.stored_statements import (
    NO_DOMAIN,
    DistinctTexts,
    draw_sample,
    latest_statements,
    stored_library,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.attributes import Polarity, default_polarity
from hapax.grammar.rules import Library, PredicateSignature, Rule, Templates
from hapax.grammar.terms import Atom, Constant, Value
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
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.protocols import Critic, Generation, GenerationParameters, GenerationRequest, Generator
from hapax.llm_oracle.questions.rewriting import FormWriter


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


@dataclass(frozen=True, slots=True)
class LabelCount:
    """Numbers of positive and negative right answers."""

    positive: int
    negative: int

    @property
    def negative_share(self) -> float:
        total = self.positive + self.negative
        return self.negative / total if total else float("nan")


def count_labels(items: Iterable[ProbeItem]) -> LabelCount:
    """Count the right answers to all questions about each item."""
    labels = [template.label(item) for item, template in product(items, TEMPLATES)]
    return LabelCount(sum(labels), len(labels) - sum(labels))


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
    worked = []
    for (example, rationale), label in zip(_EXAMPLES, labels, strict=True):
        worked.append(_worked(example, rationale, rng, label))
    return "".join(worked)


def _worked(example: ProbeItem, rationale: str, rng: random.Random, label: bool) -> str:
    # One of the templates whose right answer about this example is the wanted one.
    template = rng.choice([template for template in TEMPLATES if template.label(example) == label])
    answer = f"{closing(template)} {template.pair.word(label)}"
    return f"{template.question(example)}\n{STEP_BY_STEP}\n{rationale}\n{answer}\n\n"


def without_answer(rationale: str) -> str:
    """The rationale up to the answer that some models add by themselves."""
    # What follows is not needed either: the answer is requested again after the rationale.
    return re.split(r"therefore,? the answer", rationale, maxsplit=1, flags=re.IGNORECASE)[0].strip()


def _denial(premise: str, conclusion: str, negation: str, question: str) -> ProbeItem:
    return ProbeItem(
        "example", "example", "", Distribution.HEAD, premise, conclusion, negation, question, Polarity.NEGATIVE
    )


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

# The paper names no limits. An answer is one word, perhaps after a few others; a rationale is a paragraph.
ANSWER_TOKENS = 16
RATIONALE_TOKENS = 256
ROLE = "probe"
"""Role under which probing calls are counted."""

STATEMENTS_PER_BATCH = 16
"""Statements whose questions share batches; a budget that ends within a batch loses all of them."""


class ProbeMethod(StrEnum):
    """The method of asking a model."""

    CRITIC = "critic"
    TEXT = "text"
    CHAIN = "cot"


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """Sampling settings; temperature 0 takes the likeliest reply."""

    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """A model's answer to one question. `rationale`: its chain of thought; `probability`: a critic's P(yes)."""

    item: ProbeItem
    template: Template
    question: str
    verdict: ParsedReply
    reply: str
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


@dataclass(frozen=True, slots=True)
class ProbeRun:
    """Answers to all questions about each finished statement. `stopped`: the message of the budget that ended it."""

    answers: tuple[ProbeAnswer, ...]
    stopped: str | None = None


ProbeQuestion = tuple[ProbeItem, Template]
Asker = Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]]


def probe(items: Sequence[ProbeItem], ask: Asker, finished: Callable[[int], None] | None = None) -> ProbeRun:
    """Ask every question about each item. `finished` is called with the number of statements done so far."""
    answers: list[ProbeAnswer] = []

    def ask_batch(batch: Sequence[ProbeItem]) -> None:
        # All questions about a statement in one batch, so that a budget leaves none half asked.
        answers.extend(ask(list(product(batch, TEMPLATES))))

    stopped = for_batches(items, STATEMENTS_PER_BATCH, ask_batch, finished)
    return ProbeRun(tuple(answers), str(stopped) if stopped else None)


def open_asker(method: ProbeMethod, model: Any, journal: Journal, settings: ProbeSettings) -> Asker:
    """The asker of a method. `model` is a Critic for `critic`, and a Generator for the other methods."""
    match method:
        case ProbeMethod.CRITIC:
            return critic_asker(model, journal)
        case ProbeMethod.TEXT | ProbeMethod.CHAIN:
            return reply_asker(model, journal, settings, with_rationale=method is ProbeMethod.CHAIN)


def critic_asker(model: Critic, journal: Journal) -> Asker:
    """Put each question to a critic as the claim to judge; P(yes) above one half is the positive answer."""
    critic = JournaledCritic(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = _texts(questions)
        scores = critic.probabilities(texts)
        answers = []
        for (item, template), text, score in zip(questions, texts, scores, strict=True):
            if score.refused:
                # A refused claim has a P(yes), which lets a search go on; as an answer it would be made up.
                refused = ParsedReply(None, refusal=score.refused)
                answers.append(ProbeAnswer(item, template, text, refused, ""))
                continue
            # Exactly one half counts as the negative answer.
            positive = score.probability > 0.5
            # The reply in words, although the critic gave a number, so that all methods are reported alike.
            word = template.pair.word(positive)
            answers.append(ProbeAnswer(item, template, text, ParsedReply(positive), word, None, score.probability))
        return answers

    return ask


def reply_asker(model: Generator, journal: Journal, settings: ProbeSettings, with_rationale: bool) -> Asker:
    """Put the question to a generator and parse the first word of its reply.

    `with_rationale`: show two worked examples, let the model write a rationale, and then request its answer.
    """
    generator = JournaledGenerator(model, journal, role=ROLE)

    def ask(questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        texts = _texts(questions)
        prompts = [f"{PREFIX}\n{text}" for text in texts]
        rationales: list[str | None] = [None] * len(texts)
        if with_rationale:
            prompts, rationales = _reasoned(questions, texts)
        replies = _replies(generator, prompts, settings, ANSWER_TOKENS)
        answers = []
        for (item, template), text, reply, rationale in zip(questions, texts, replies, rationales, strict=True):
            answers.append(ProbeAnswer(item, template, text, _verdict(reply, template), reply.text, rationale))
        return answers

    def _reasoned(questions: Sequence[ProbeQuestion], texts: Sequence[str]) -> tuple[list[str], list[str | None]]:
        """Prompts with the model's own rationales, which request the answers, and the rationales."""
        prompts = []
        for (item, template), text in zip(questions, texts, strict=True):
            prompts.append(f"{PREFIX}\n{examples(settings.seed, item, template)}{text}\n{STEP_BY_STEP}\n")
        thoughts = _replies(generator, prompts, settings, RATIONALE_TOKENS)
        rationales: list[str | None] = [without_answer(thought.text) for thought in thoughts]
        closed = []
        for (_, template), prompt, rationale in zip(questions, prompts, rationales, strict=True):
            # The whole first prompt again with its rationale: a request has no memory of another.
            closed.append(f"{prompt}{rationale}\n{closing(template)}")
        return closed, rationales

    return ask


def _texts(questions: Iterable[ProbeQuestion]) -> list[str]:
    return [template.question(item) for item, template in questions]


def _verdict(reply: Generation, template: Template) -> ParsedReply:
    return ParsedReply(None, refusal=reply.refused) if reply.refused else parse_reply(reply.text, template.pair)


def _replies(
    generator: Generator, prompts: Sequence[str], settings: ProbeSettings, max_tokens: int
) -> list[Generation]:
    parameters = GenerationParameters(settings.temperature, max_tokens=max_tokens, seed=settings.seed)
    return generator.generate([GenerationRequest(prompt) for prompt in prompts], parameters)
