"""Agreement of pronouns, verbs and articles with the entities that were put into a schema (extra `english`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hapax.evaluation.winograd.data import Pair, WinogradItem
from hapax.evaluation.winograd.reasoner.kinds import SUBJECT_PRONOUNS, EntityType
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses, shipped_lexicon
from hapax.evaluation.winograd.reasoner.parsing import Parser, SpacyParser, Token
from hapax.evaluation.winograd.reasoner.reasoning import AgreementCheck
from hapax.evaluation.winograd.rewordings.changes import FINITE, Inflector, fit_article, in_case_of, subject_of
from hapax.evaluation.winograd.rewordings.making import LemmInflect
from hapax.evaluation.winograd.rewordings.sentences import ParsedItem, as_text, parsed
from hapax.grammar.errors import HapaxError

# Nominative, accusative, before a noun, alone as a possessive, reflexive.
_FORMS = {
    "he": ("he", "him", "his", "his", "himself"),
    "she": ("she", "her", "her", "hers", "herself"),
    "it": ("it", "it", "its", "its", "itself"),
    "they": ("they", "them", "their", "theirs", "themselves"),
}
_SUBJECTS = ("nsubj", "nsubjpass")


class DisagreementError(HapaxError):
    """No wording of a schema agrees with both of its entities."""


class Agreement:
    """Words schemas so that they agree with their entities."""

    def __init__(
        self,
        parser: Parser | None = None,
        inflector: Inflector | None = None,
        lexicon: WordClasses | None = None,
    ) -> None:
        self._parser = SpacyParser() if parser is None else parser
        self._inflector = LemmInflect() if inflector is None else inflector
        self._check = AgreementCheck(self._parser, shipped_lexicon() if lexicon is None else lexicon)

    def agreed(self, pair: Pair) -> Pair:
        """The pair with pronouns, verbs and articles that agree with both entities.

        Raises DisagreementError if no pronoun can mean both entities, since agreement would then give the answer away.
        """
        sentences = [parsed(item, self._parser) for item in pair]
        first, second = sentences
        if first is None or second is None:
            raise DisagreementError("the parser does not find both entities and the pronoun")
        series = _series_for(first.schema.pronoun, [*self._types(first), *self._types(second)])
        return self._worded(first, series), self._worded(second, series)

    def _types(self, sentence: ParsedItem) -> Iterator[EntityType]:
        """Types of the two entities; a noun such as sheep, whose plural is spelled alike, has both numbers."""
        for head, kind in zip(sentence.schema.heads, self._check.types(sentence.schema), strict=True):
            alike = head.tag == "NN" and self._inflector.inflect(head.lemma, "NNS") == head.text.casefold()
            yield replace(kind, numbers=kind.numbers | {"singular", "plural"}) if alike else kind

    def _worded(self, sentence: ParsedItem, series: str) -> WinogradItem:
        """The item with the pronoun's series replaced, and with verbs and articles that fit."""
        old = _series_of(sentence.schema.pronoun)
        numbers: dict[int, frozenset[str]] = {}
        for head, kind in zip(sentence.schema.heads, self._types(sentence), strict=True):
            numbers[head.index] = kind.numbers
        texts: dict[int, str] = {}
        for token in sentence.parse:
            if token.text.casefold() in _FORMS[old] and old != series:
                texts[token.index] = in_case_of(token.text, _FORMS[series][_form_number(token)])
                numbers[token.index] = frozenset(("plural" if series == "they" else "singular",))
        # The verbs follow the new numbers; one whose subject may be singular or plural stays.
        for token in sentence.parse:
            subject = subject_of(sentence, token) if token.tag in FINITE else None
            if subject is not None and len(numbers.get(subject.index, ())) == 1:
                texts |= self._verb(token, "plural" in numbers[subject.index])
        for head, span in zip(sentence.schema.heads, sentence.schema.spans, strict=True):
            if "singular" in numbers[head.index]:
                first = sentence.parse[span.start]
                fit_article(sentence, first, first.text.casefold(), texts)
        placed = as_text(sentence.replaced(texts), sentence.schema.pronoun.index)
        pronoun = texts.get(sentence.schema.pronoun.index, sentence.schema.pronoun.text)
        if placed is None or not texts:
            return sentence.item
        text, start = placed
        # Read off the text, in which a first word has got its capital.
        return replace(sentence.item, text=text, pronoun=text[start : start + len(pronoun)], pronoun_start=None)

    def _verb(self, verb: Token, plural: bool) -> dict[int, str]:
        """The form of a finite verb for its subject's number, by index; empty if it stays."""
        if verb.lemma == "be":
            forms = ("were", "was") if verb.tag == "VBD" else ("are", "is")
            form = forms[0] if plural else forms[1]
        # Apart from those of `be`, past forms do not show number.
        elif verb.tag == "VBD":
            return {}
        else:
            form = self._inflector.inflect(verb.lemma, "VBP" if plural else "VBZ") or verb.text
        # A contracted verb, such as that of `he's`, stays.
        if form == verb.text.casefold() or verb.text.startswith(("'", "’")):
            return {}
        return {verb.index: in_case_of(verb.text, form)}


def _series_for(pronoun: Token, kinds: list[EntityType]) -> str:
    """The pronoun's own series if it agrees with all entities, otherwise the first that does."""
    own = _series_of(pronoun)
    features = [kind.clash(own) for kind in kinds]
    # Where an entity agrees, only the gender is exchanged: other clashes are real, or faults of the parser.
    others = _FORMS if all(features) else ("he", "she") if own in ("he", "she") else ()
    series: str
    for series in (own, *others):
        if not any(kind.clash(series) for kind in kinds):
            return series
    raise DisagreementError(f"no pronoun agrees with both entities in {next(filter(None, features))}")


def _series_of(pronoun: Token) -> str:
    lower = pronoun.text.casefold()
    if lower not in SUBJECT_PRONOUNS:
        raise DisagreementError(f"{pronoun.text!r} is not a pronoun that agrees with an entity")
    return next(series for series, forms in _FORMS.items() if lower in forms)


def _form_number(token: Token) -> int:
    """The place of a pronoun's form in its series, by its text where that decides, otherwise by the parse."""
    lower = token.text.casefold()
    if lower.endswith(("self", "selves")):
        return 4
    if token.tag == "PRP$":
        return 2
    if lower in ("his", "hers", "its", "theirs"):
        return 3
    # The first forms name their series; of these, `it` alone is also an object.
    return 0 if lower in _FORMS and (lower != "it" or token.relation in _SUBJECTS) else 1
