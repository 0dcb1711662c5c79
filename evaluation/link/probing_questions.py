"""Statements that are asked about, LINK's questions in the paper's and the released words, and parsed answers."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from functools import partial
from itertools import chain, zip_longest

from hapax.engine.judgements import Judgements
from hapax.evaluation.shared.result_tables import grouped
from hapax.evaluation.shared.stored_statements import (
    NO_DOMAIN,
    StatementChoice,
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
from hapax.llm_oracle.journaled_models import JournaledGenerator
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest
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
    choice: StatementChoice,
    sample: int | None = None,
    seed: int = 0,
    *,
    writer: FormWriter | None = None,
) -> ItemSet:
    """Take statements of a knowledge base as items, at most `sample` of each distribution.

    Whether a text is drawn depends on the seed and on the text's row id alone, so a larger sample contains the smaller
    ones. Head and long tail alternate, so a run that ends early has both.
    """
    latest = latest_statements(kb, choice)
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


# --- as LINK's released code asks -------------------------------------------------------------------------------------

# A model writes negations and questions. Worked examples come in forms that one random stream draws over the whole run.
# Only the first word of a reply counts. The release is meant to ask about positive conclusions in other forms, but its
# option never reaches the function that asks. This is repeated here.

QUESTION_PROMPT = "Convert the statement to a question with minimal edits: "
NEGATION_PROMPT = "Negate the statement with minimal edits: "

TEMPERATURE = 0.9
HELPER_TOKENS = 32
# The paper names no limits. An answer is one word, perhaps after a few others; a rationale is a paragraph.
ANSWER_TOKENS = 16
EXPLANATION_TOKENS = 256
EXAMPLE_SEED = 42


class ReleasedVariant(StrEnum):
    """A switch of the released code that differs from its published runs."""

    NO_RATIONALE = "no-rationale"
    """No explanation is asked for, and a chain of thought ends after 16 tokens."""
    NO_EXAMPLES = "no-examples"
    """A chain of thought without worked examples."""


@dataclass(frozen=True, slots=True)
class ReleasedSettings:
    """Settings of a released probing. `chain`: with a chain of thought; `seed`: of sampling, not of the examples."""

    chain: bool = False
    variants: frozenset[ReleasedVariant] = frozenset()
    seed: int = 0

    @property
    def explains(self) -> bool:
        """True if the model is asked for an explanation, or has room for its chain of thought."""
        return ReleasedVariant.NO_RATIONALE not in self.variants

    @property
    def has_examples(self) -> bool:
        """True if worked examples come before a chain of thought."""
        return self.chain and ReleasedVariant.NO_EXAMPLES not in self.variants


@dataclass(frozen=True, slots=True)
class ReleasedQuestion:
    """A question with the paper's template of the same content, and its right answer in words."""

    template: Template
    text: str
    answer: str


_YES_NO_SUFFIX = " Answer yes or no:"
_YES_NO_EXPLAINED = " Answer yes or no, and then give an explanation to your answer:"
_EXPLAINED = " Also give an explanation to the answer."

RELEASED_ORDER = (1, 2, 3, 4, 5, 6, 8, 9, 7, 10, 11, 12, 13)
"""Numbers of the paper's templates in the release's order, for a conclusion such as `PersonX cannot eat fondue`."""


def released_questions(
    premise: str, conclusion: str, negation: str, question: str, settings: ReleasedSettings
) -> list[ReleasedQuestion]:
    """The 13 questions of the release, in its order. `negation`, `question`: of the conclusion, as a model wrote them.

    `conclusion` and `negation` end in a full stop (`completed`), of which a question mark takes the place.
    """
    suffix, explained, asked = _YES_NO_SUFFIX, "", "Answer the question with yes or no: if"
    if settings.chain:
        suffix, asked = "", "Answer the question: if"
    elif settings.explains:
        suffix, explained = _YES_NO_EXPLAINED, _EXPLAINED
        asked = "Answer the question with yes or no, and then give an explanation to your answer: if"
    # By the number of the paper's template that asks the same.
    texts = {
        1: f"Is it true that if {premise}, {conclusion[:-1]}?{suffix}",
        2: f"Yes or no: if {premise}, {conclusion}{explained}",
        3: f"True or false: if {premise}, {conclusion}{explained}",
        4: f"Right or Wrong: if {premise}, {conclusion}{explained}",
        5: f"Premise: {premise}. Conclusion: {conclusion} Does premise entail conclusion?{suffix}",
        6: f"Premise: {premise}. Conclusion: {negation} Does premise contradict the conclusion?{suffix}",
        7: f"{asked} {premise}, {question}",
        8: f"Is it true that if {premise}, {negation[:-1]}?{suffix}",
        9: f"Yes or no: if {premise}, {negation}{explained}",
        10: f"True or false: if {premise}, {negation}{explained}",
        11: f"Right or Wrong: if {premise}, {negation}{explained}",
        12: f"Premise: {premise}. Conclusion: {negation} Does premise entail conclusion?{suffix}",
        13: f"Premise: {premise}. Conclusion: {conclusion} Does premise contradict the conclusion?{suffix}",
    }
    templates = {template.number: template for template in TEMPLATES}
    questions = []
    for number in RELEASED_ORDER:
        template = templates[number]
        # The label of template 7 is that of a negative conclusion, whatever the rule concludes.
        label = bool(template.positive)
        # As the release does where a premise begins with `if`.
        questions.append(ReleasedQuestion(template, texts[number].replace("if if ", "if "), template.pair.word(label)))
    return questions


def completed(clause: str) -> str:
    """The clause with a full stop, if it ends in none."""
    return clause if clause.strip().endswith(".") else clause + "."


def released_order(items: Iterable[ProbeItem]) -> tuple[ProbeItem, ...]:
    """The items in the order in which the release probes them: rule by rule, the long tail first."""
    ordered: list[ProbeItem] = []
    for of_rule in grouped(items, lambda item: item.rule).values():
        for distribution in (Distribution.LONG_TAIL, Distribution.HEAD):
            ordered += [item for item in of_rule if item.distribution is distribution]
    return tuple(ordered)


def read_released(reply: Generation, question: ReleasedQuestion) -> ParsedReply:
    """The reply as right or wrong by its first word. A wrong one that is not an answer is also named as off format."""
    if reply.refused:
        return ParsedReply(None, refusal=reply.refused)
    word = first_word(reply.text)
    # True if the positive word is right.
    label = question.template.pair.word(True) == question.answer
    if word.casefold() == question.answer.casefold():
        return ParsedReply(label)
    words = [answer.casefold() for answer in question.template.pair.value]
    violation = None if word.casefold() in words else f"no answer: {' '.join(reply.text.split())[:60]}"
    # Without a third possibility, a wrong reply becomes a right one where people flipped the label.
    return ParsedReply(not label, violation)


_TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|\S")


def first_word(text: str) -> str:
    """The first word of a reply, or the sign that it begins with; empty for an empty reply."""
    match = _TOKEN.match(text.strip())
    return match[0] if match else ""


def explanation(text: str) -> str:
    """The reply after its first two tokens, which are the answer and its full stop or comma."""
    rest = text.strip()
    for _ in range(2):
        rest = _TOKEN.sub("", rest, count=1).strip()
    return rest


EXAMPLES = (
    (
        "PersonX was born in Roman Republic",
        "PersonX was not able to use tractor",
        "The Roman Republic existed around 509-27 BC. Tractor was invented in 1892. The Roman Republic was long before "
        "when tractor was invented.",
    ),
    (
        "PersonX is allergic to mango",
        "PersonX is not able to eat mango rice pudding",
        "Mango is an ingredient in mango rice pudding.",
    ),
)
"""Premise, conclusion and reason of the release's two worked examples."""


class ReleasedAsker:
    """Asks the 13 questions about each statement as the release does. Call it with statements in `released_order`.

    `writer` writes negations and questions. A repeated request is sampled anew, as in the release.
    """

    def __init__(self, model: JournaledGenerator, writer: JournaledGenerator, settings: ReleasedSettings) -> None:
        self._model, self._writer, self._settings = model, writer, settings
        self._chance = random.Random(EXAMPLE_SEED)  # noqa: S311  # the release's seed
        self._samples: Counter[tuple[str, str]] = Counter()
        self._examples: dict[tuple[str, Distribution], list[list[ReleasedQuestion]]] = {}

    def __call__(self, questions: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        """The answers to all questions about the statements that occur here."""
        items = list(dict.fromkeys(item for item, _ in questions))
        # Before anything is asked: a queue that waits for the writer must not change the draws of later statements.
        draws = iter([self._draw() for _ in range(len(items) * len(RELEASED_ORDER))])
        # The release joins the words of a value by underscores, and shows blanks.
        clauses = [(item.premise.replace("_", " "), item.conclusion.replace("_", " ")) for item in items]
        asked: list[tuple[ProbeItem, ReleasedQuestion]] = []
        prompts: list[str] = []
        for item, of_item in zip(items, self._worded(clauses), strict=True):
            for question in of_item:
                asked.append((item, question))
                prompts.append(self._prompt(item, question, next(draws)))
        explains = self._settings.explains
        replies = self._replies(self._model, prompts, EXPLANATION_TOKENS if explains else ANSWER_TOKENS)
        rationales: list[str | None] = [explanation(reply.text) if explains else None for reply in replies]
        if self._settings.chain:
            for place, ((_, question), reply) in enumerate(zip(asked, replies, strict=True)):
                thought = reply.text.strip()
                if self._settings.has_examples:
                    # The worked examples teach the model to write the closing itself, which is added again below.
                    thought = thought.partition("\nTherefore")[0]
                rationales[place] = thought
                prompts[place] += f"\n{thought}\n{closing(question.template)}"
            # After a chain of thought, the answers are asked for in a second prompt.
            replies = self._replies(self._model, prompts, ANSWER_TOKENS)
        answers = []
        for (item, question), reply, rationale in zip(asked, replies, rationales, strict=True):
            # The label of template 7 is that of a negative conclusion, whatever the rule's polarity is.
            as_asked, verdict = replace(item, polarity=Polarity.NEGATIVE), read_released(reply, question)
            answers.append(ProbeAnswer(as_asked, question.template, question.text, verdict, reply.text, rationale))
        return answers

    def _worded(self, clauses: Sequence[tuple[str, str]]) -> list[list[ReleasedQuestion]]:
        """The questions of premises and conclusions, whose other forms the writer writes."""
        conclusions = [completed(conclusion) for _, conclusion in clauses]
        prompts: list[str] = []
        for conclusion in conclusions:
            prompts += [QUESTION_PROMPT + conclusion, NEGATION_PROMPT + conclusion]
        written = [reply.text.strip() for reply in self._replies(self._writer, prompts, HELPER_TOKENS)]
        worded = []
        for number, ((premise, _), conclusion) in enumerate(zip(clauses, conclusions, strict=True)):
            # Two prompts for each conclusion, in this order.
            question, negation = written[2 * number : 2 * number + 2]
            worded.append(released_questions(premise, conclusion, completed(negation), question, self._settings))
        return worded

    def _draw(self) -> tuple[int, ...]:
        """Places of the forms in which the worked examples of one question are shown; their labels are opposite."""
        if not self._settings.has_examples:
            return ()
        # The first six questions in the negative form have the positive answer, the other seven the negative one.
        half = len(RELEASED_ORDER) // 2
        places = []
        is_negative = self._chance.sample([0, 1], 1)[0]
        for _ in EXAMPLES:
            labelled = range(half, len(RELEASED_ORDER)) if is_negative else range(half)
            places.append(self._chance.sample(labelled, 1)[0])
            is_negative = 1 - is_negative
        return tuple(places)

    def _prompt(self, item: ProbeItem, question: ReleasedQuestion, places: Sequence[int]) -> str:
        if not self._settings.chain:
            return f"{PREFIX}\n{question.text}"
        return f"{PREFIX}\n{self._worked(item, places) if places else ''}{question.text}\n{STEP_BY_STEP}\n"

    def _worked(self, item: ProbeItem, places: Sequence[int]) -> str:
        """Both worked examples in the forms at these places."""
        group = (item.rule, item.distribution)
        if group not in self._examples:
            self._examples[group] = self._worded([(premise, conclusion) for premise, conclusion, _ in EXAMPLES])
        text = ""
        for forms, place, (_, _, reason) in zip(self._examples[group], places, EXAMPLES, strict=True):
            form = forms[place]
            text += f"{form.text}\n{STEP_BY_STEP}\n{reason}\n{closing(form.template)} {form.answer}\n"
        return text

    def _replies(self, model: JournaledGenerator, prompts: Sequence[str], most_tokens: int) -> list[Generation]:
        requests = []
        for prompt in prompts:
            sample = (model.role, prompt)
            requests.append(GenerationRequest(prompt, sample_index=self._samples[sample]))
            # Equal requests, such as those for the examples of every rule, get samples of their own.
            self._samples[sample] += 1
        parameters = GenerationParameters(TEMPERATURE, max_tokens=most_tokens, seed=self._settings.seed)
        return model.generate(requests, parameters)
