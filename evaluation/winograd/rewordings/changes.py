"""Changes of wording that keep what a sentence says: voice, tense, number, clause order, synonyms, names and additions.

A change gives the new words and options of a sentence, or None where it does not apply. It need not be right for every
sentence: `making` parses its result again and keeps it only if the events are the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hapax.evaluation.winograd.reasoner.events import ParsedEvent, is_pronoun
from hapax.evaluation.winograd.reasoner.parsing import Token
from hapax.evaluation.winograd.reasoner.wordnet import WordNet
from hapax.evaluation.winograd.rewordings.sentences import ParsedItem, Word, uncapitalized

ADVERBS = ("Apparently", "Evidently", "Reportedly", "Clearly")
"""Adverbs that say nothing of who did something to whom."""

CONTEXTS = (
    "This happened last spring.",
    "The morning had been long.",
    "Rain fell all day.",
    "Nobody else was around.",
    "Dinner was almost ready.",
)
"""Sentences without a third-person pronoun, which say nothing of the entities."""

NAMES = {
    "male": ("Arthur", "Gerald", "Harold", "Leonard", "Oscar", "Patrick", "Simon", "Walter"),
    "female": ("Alice", "Dorothy", "Emily", "Helen", "Janet", "Martha", "Nancy", "Teresa"),
}
"""Names that other persons get, by gender."""

_PLURALS = {
    "he": "they",
    "she": "they",
    "it": "they",
    "him": "them",
    "his": "their",
    "her": "them",
    "hers": "theirs",
    "its": "their",
    "himself": "themselves",
    "herself": "themselves",
    "itself": "themselves",
}
_PLURAL_DETERMINERS = {"a": "some", "an": "some", "the": "the", "this": "these", "that": "those"}
_PRESENT_MODALS = {"could": "can", "would": "will", "might": "may"}
_PAST_MODALS = {present: past for past, present in _PRESENT_MODALS.items()}
_MOVABLE = frozenset({"because", "although", "though", "since", "as", "when", "after", "before", "while", "if"})
FINITE = ("VBD", "VBZ", "VBP")
"""Tags of finite verbs."""


class Inflector(Protocol):
    """Inflects English words."""

    def inflect(self, lemma: str, tag: str) -> str | None:
        """The form of a lemma for a Penn Treebank tag, such as VBN; None if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class WordSources:
    """Sources of other words: inflected forms, synonyms, genders of names by name, and chance."""

    inflector: Inflector
    wordnet: WordNet
    genders: Mapping[str, str]
    chance: random.Random


@dataclass(frozen=True, slots=True)
class ChangedWords:
    """The words of a changed sentence, and its options."""

    words: list[Word]
    options: tuple[str, str]


Change = Callable[[ParsedItem, WordSources], ChangedWords | None]


def passive_voice(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """`The dog chased the cat` as `The cat was chased by the dog`."""
    heads = {head.index for head in sentence.schema.heads}
    for event in sentence.reader.events():
        roles = event.roles
        if event.part == "verb" and {roles.get("subject"), roles.get("object")} == heads:
            words = _passive(sentence, event, sources.inflector)
            if words is not None:
                return ChangedWords(words, sentence.item.options)
    return None


def _passive(sentence: ParsedItem, event: ParsedEvent, inflector: Inflector) -> list[Word] | None:
    verb = sentence.parse[event.place]
    spans = _active_spans(sentence, event, verb)
    participle = inflector.inflect(verb.lemma, "VBN")
    if spans is None or participle is None:
        return None
    subject, object_ = spans
    between = [sentence.parse[index] for index in range(subject.stop, verb.index)]
    auxiliaries = [token for token in between if token.relation == "aux"]
    negation = [token for token in between if token.relation == "neg"]
    forms = _passive_forms(verb, auxiliaries, plural=_is_plural(sentence, event.roles["object"]))
    if forms is None:
        return None
    particles = [token for token in sentence.reader.children(verb.index, "prt") if token.index < object_.start]
    others = [token for token in between if token not in (*auxiliaries, *negation)]
    first, *rest = forms
    # `wasn't`: a contracted negation follows its auxiliary without a blank.
    middle = [Word(first, "" if negation and negation[0].text.startswith(("n'", "n’")) else " ")]
    middle += [Word(token.text) for token in negation]
    middle += [Word(form) for form in rest]
    middle += [Word(token.text) for token in others]
    middle += [Word(participle), *(Word(token.text) for token in particles), Word("by")]
    words = sentence.words
    agent = uncapitalized(words[subject.start : subject.stop], sentence.parse)
    # The blank that stood behind the object now stands behind the agent: the full stop follows without one.
    agent[-1] = Word(agent[-1].text, words[object_.stop - 1].blank, agent[-1].source)
    patient = words[object_.start : object_.stop]
    patient = [*patient[:-1], Word(patient[-1].text, " ", patient[-1].source)]
    return [*words[: subject.start], *patient, *middle, *agent, *words[object_.stop :]]


def _active_spans(sentence: ParsedItem, event: ParsedEvent, verb: Token) -> tuple[range, range] | None:
    """Places of subject and object of a plain active clause, in which the object is right behind the verb, or None."""
    reader, roles = sentence.reader, event.roles
    own = [token.index for token in reader.children(verb.index, "nsubj")]
    objects = [token.index for token in reader.children(verb.index, "dobj")]
    # Clauses that share the subject would get another one.
    sharing = [
        token
        for token in reader.children(verb.index, "xcomp", "ccomp", "dative", "oprd", "conj", "advcl")
        if token.relation not in ("conj", "advcl") or not reader.children(token.index, "nsubj", "nsubjpass")
    ]
    if own != [roles["subject"]] or objects != [roles["object"]] or sharing or event.under:
        return None
    subject, object_ = sentence.span(own[0]), sentence.span(objects[0])
    if subject is None or object_ is None or subject.stop > verb.index:
        return None
    between = [sentence.parse[index] for index in range(verb.index + 1, object_.start)]
    # A pronoun in them, as in "her granddaughter", may mean the other entity, and would then stand before it.
    pronouns = [index for index in (*subject, *object_) if is_pronoun(sentence.parse[index])]
    if pronouns or any(token.relation != "prt" for token in between):
        return None
    return subject, object_


def _passive_forms(verb: Token, auxiliaries: Sequence[Token], plural: bool) -> list[str] | None:
    """Auxiliaries of the passive in place of those of the active; None if there is no simple form."""
    texts = [token.text.casefold() for token in auxiliaries]
    past, present = ("were", "are") if plural else ("was", "is")
    if any(text.startswith(("'", "’")) for text in texts):
        return None
    if not texts:
        return {"VBD": [past], "VBZ": [present], "VBP": [present]}.get(verb.tag)
    first, last = auxiliaries[0], auxiliaries[-1]
    # `can lift` becomes `can be lifted`.
    if first.tag == "MD" and verb.tag == "VB" and len(texts) == 1:
        return [texts[0], "be"]
    # `did lift` becomes `was lifted`.
    if verb.tag == "VB" and len(texts) == 1 and first.lemma == "do":
        return [past if texts[0] == "did" else present]
    # `has lifted` becomes `have been lifted` for a plural patient.
    if verb.tag == "VBN" and last.lemma == "have":
        have = {"has": "have", "have": "have"} if plural else {"have": "has", "has": "has"}
        form = texts[0] if len(texts) > 1 else have.get(texts[0], texts[0])
        return [form, *texts[1:], "been"]
    # `is lifting` becomes `is being lifted`.
    if verb.tag == "VBG" and len(texts) == 1 and first.lemma == "be":
        return [past if texts[0] in ("was", "were") else present, "being"]
    return None


def _is_plural(sentence: ParsedItem, index: int) -> bool:
    token = sentence.parse[index]
    return token.tag in ("NNS", "NNPS") or bool(sentence.reader.children(index, "conj"))


def other_tense(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """The past as the present, or the present as the past, in all clauses."""
    tags = {token.tag for token in sentence.parse if token.tag in FINITE}
    is_past = "VBD" in tags
    # A sentence in both tenses says something of time.
    if not tags or (is_past and len(tags) > 1):
        return None
    texts = {}
    for token in sentence.parse:
        if token.text[0] in "'’" and token.tag in (*FINITE, "MD"):
            return None
        form = _in_tense(sentence, token, is_past, sources.inflector)
        if form is not None:
            texts[token.index] = form
    return ChangedWords(sentence.replaced(texts), sentence.item.options) if texts else None


def _in_tense(sentence: ParsedItem, token: Token, was_past: bool, inflector: Inflector) -> str | None:
    """The other tense of a word; None if it does not change."""
    lower = token.text.casefold()
    if token.tag == "MD":
        form = (_PRESENT_MODALS if was_past else _PAST_MODALS).get(lower)
        return None if form is None else in_case_of(token.text, form)
    if token.tag not in FINITE:
        return None
    plural = _has_plural_subject(sentence, token)
    if token.lemma == "be":
        if was_past:
            return "are" if plural else "is"
        return "were" if plural else "was"
    form = inflector.inflect(token.lemma, ("VBP" if plural else "VBZ") if was_past else "VBD")
    return None if form is None else in_case_of(token.text, form)


def in_case_of(model: str, form: str) -> str:
    """The form with a capital if the word that it replaces has one."""
    return form.capitalize() if model[:1].isupper() else form


def _has_plural_subject(sentence: ParsedItem, verb: Token) -> bool:
    """True if the subject of a verb takes the plural, or `I` or `you`."""
    subject = subject_of(sentence, verb)
    if subject is None:
        return False
    if subject.text.casefold() in ("they", "we", "you", "i", "these", "those"):
        return True
    if subject.tag in ("WDT", "WP"):
        # A relative pronoun has the number of its noun.
        return _is_plural(sentence, sentence.parse[verb.head].index)
    return _is_plural(sentence, subject.index)


def subject_of(sentence: ParsedItem, verb: Token) -> Token | None:
    """The subject of a verb: of an auxiliary that of its verb, of a joined verb that of the first."""
    seen: set[int] = set()
    while verb.index not in seen:
        seen.add(verb.index)
        own = sentence.reader.children(verb.index, "nsubj", "nsubjpass", "expl")
        if own:
            return own[-1]
        if verb.relation in ("aux", "auxpass", "conj"):
            verb = sentence.parse[verb.head]
    return None


def plural(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """Both entities in the plural, and the pronouns and verbs with them."""
    heads = sentence.schema.heads
    if any(head.tag != "NN" or head.relation not in ("nsubj", "nsubjpass", "dobj", "pobj", "dative") for head in heads):
        return None
    pronouns = [token for token in sentence.parse if token.text.casefold() in _PLURALS]
    neuters = [token for token in pronouns if token.text.casefold().startswith("it")]
    # A second `it` may stand for nothing, as in "it rained".
    if not pronouns or (len(neuters) > 1) or (neuters and len(pronouns) > 1):
        return None
    texts = _plural_nouns(sentence, sources.inflector)
    if texts is None:
        return None
    for token in pronouns:
        texts[token.index] = _plural_pronoun(token)
    entities = {token.index for token in (*heads, *pronouns)}
    for token in sentence.parse:
        subject = subject_of(sentence, token) if token.tag in FINITE else None
        if subject is not None and subject.index in entities:
            form = _plural_verb(token, sources.inflector)
            if form is None:
                return None
            texts[token.index] = form
    options = []
    for span in sentence.schema.spans:
        words = [texts.get(index, sentence.parse[index].text) for index in span]
        # The span of an option is without its article.
        if span.start and sentence.parse[span.start - 1].text.casefold() in ("the", "a", "an"):
            words.insert(0, texts.get(span.start - 1, sentence.parse[span.start - 1].text).casefold())
        options.append(" ".join(words))
    return ChangedWords(sentence.replaced(texts), (options[0], options[1]))


def _plural_pronoun(token: Token) -> str:
    lower = token.text.casefold()
    form = "their" if lower == "her" and token.tag == "PRP$" else _PLURALS[lower]
    # "her" and "it" as objects: "saw it" is "saw them".
    if lower == "it" and token.relation not in ("nsubj", "nsubjpass"):
        form = "them"
    return in_case_of(token.text, form)


def _plural_verb(token: Token, inflector: Inflector) -> str | None:
    if token.lemma == "be":
        return in_case_of(token.text, "were" if token.tag == "VBD" else "are")
    return token.text if token.tag == "VBD" else inflector.inflect(token.lemma, "VBP")


def _plural_nouns(sentence: ParsedItem, inflector: Inflector) -> dict[int, str] | None:
    """Plurals of the two entities and their determiners, by index; None if one has no simple plural."""
    texts: dict[int, str] = {}
    for head in sentence.schema.heads:
        form = inflector.inflect(head.lemma, "NNS")
        # `sheep` would show no plural.
        if form is None or form == head.text.casefold():
            return None
        texts[head.index] = in_case_of(head.text, form)
        for determiner in sentence.reader.children(head.index, "det", "poss", "nummod"):
            lower = determiner.text.casefold()
            # Possessives and numbers have no plural here: `his dog`, `one dog`.
            if lower not in _PLURAL_DETERMINERS:
                return None
            texts[determiner.index] = in_case_of(determiner.text, _PLURAL_DETERMINERS[lower])
    return texts


def clause_order(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:  # noqa: ARG001 - as all changes
    """`A because B` as `Because B, A`, and the other way round."""
    parse, words = sentence.parse, sentence.words
    # One sentence only: clauses do not move across a full stop.
    if sum(token.relation == "ROOT" for token in parse) != 1 or parse[-1].text not in (".", "!", "?"):
        return None
    for token in parse:
        if token.relation != "advcl" or parse[token.head].relation != "ROOT":
            continue
        clause = sentence.span(token.index)
        if clause is None or parse[clause.start].lemma not in _MOVABLE or _is_announced(sentence, parse[token.head]):
            continue
        rest = [*range(clause.start), *range(clause.stop, len(parse) - 1)]
        if clause.stop == len(parse) - 1 and rest:
            opening = words[clause.start : clause.stop]
            opening[-1] = Word(opening[-1].text, "", opening[-1].source)
            main = uncapitalized(_without_comma([words[index] for index in rest]), parse)
            return ChangedWords([*opening, Word(","), *_closed(main), words[-1]], sentence.item.options)
        if clause.start == 0 and rest and parse[clause.stop].text == ",":
            main = [words[index] for index in rest[1:]]
            closing = uncapitalized(words[clause.start : clause.stop], parse)
            main[-1] = Word(main[-1].text, " ", main[-1].source)
            return ChangedWords([*main, *_closed(closing), words[-1]], sentence.item.options)
    return None


def _is_announced(sentence: ParsedItem, verb: Token) -> bool:
    """True for `It annoyed Ann when ...`, whose clause is what `it` announces."""
    subject = subject_of(sentence, verb)
    return subject is not None and subject.text.casefold() == "it" and subject.index != sentence.schema.pronoun.index


def _without_comma(words: list[Word]) -> list[Word]:
    return words[:-1] if words[-1].text == "," else words


def _closed(words: list[Word]) -> list[Word]:
    """The words, the last of which stands right before the full stop."""
    return [*words[:-1], Word(words[-1].text, "", words[-1].source)]


def synonym(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """Entities by another word of their first sense, whose first sense that is, too."""
    texts: dict[int, str] = {}
    for head in sentence.schema.heads:
        names = sources.wordnet.synonyms("noun", head.lemma) if head.tag in ("NN", "NNS") else []
        taken = {token.lemma for token in sentence.parse}
        for name in names:
            form = sources.inflector.inflect(name, head.tag)
            if form is not None and name not in taken:
                texts[head.index] = in_case_of(head.text, form)
                fit_article(sentence, head, form, texts)
                break
    return None if not texts else _with_entities(sentence, texts)


def fit_article(sentence: ParsedItem, head: Token, form: str, texts: dict[int, str]) -> None:
    """Put `a` or `an`, if one stands before the word, into `texts` as its new form wants it."""
    before = sentence.parse[head.index - 1] if head.index else None
    if before is not None and before.text.casefold() in ("a", "an"):
        texts[before.index] = in_case_of(before.text, "an" if form[0] in "aeiou" else "a")


def _with_entities(sentence: ParsedItem, texts: Mapping[int, str]) -> ChangedWords:
    """The sentence with words replaced, and the options with the same words."""
    replaced = {sentence.parse[index].text.casefold(): text for index, text in texts.items()}
    options = []
    for option in sentence.item.options:
        words = []
        for word in option.split():
            text = replaced.get(word.casefold())
            words.append(word if text is None else in_case_of(word, text))
        options.append(" ".join(words))
    return ChangedWords(sentence.replaced(texts), (options[0], options[1]))


def other_names(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """Persons by other names of the same gender."""
    taken = {token.text.casefold() for token in sentence.parse}
    texts: dict[int, str] = {}
    for head in sentence.schema.heads:
        lower = head.text.casefold()
        gender = sources.genders.get(lower)
        if gender is None or not head.tag.startswith("NNP"):
            return None
        name = sources.chance.choice([name for name in NAMES[gender] if name.casefold() not in taken])
        taken.add(name.casefold())
        # All mentions change together.
        for token in sentence.parse:
            if token.text.casefold() == lower:
                texts[token.index] = name
    return _with_entities(sentence, texts)


def added_adverb(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """An adverb in front of the sentence."""
    if not sentence.parse[0].text[:1].isalpha():
        return None
    adverb = [Word(sources.chance.choice(ADVERBS), ""), Word(",")]
    return ChangedWords([*adverb, *uncapitalized(sentence.words, sentence.parse)], sentence.item.options)


def added_context(sentence: ParsedItem, sources: WordSources) -> ChangedWords | None:
    """A sentence in front that says nothing of the entities."""
    context = sources.chance.choice(CONTEXTS)
    return ChangedWords([Word(context), *sentence.words], sentence.item.options)


CHANGES: Mapping[str, Change] = {
    "voice": passive_voice,
    "tense": other_tense,
    "number": plural,
    "order": clause_order,
    "synonym": synonym,
    "names": other_names,
    "adverb": added_adverb,
    "context": added_context,
}
"""Changes by the names of the rewordings that they make."""
