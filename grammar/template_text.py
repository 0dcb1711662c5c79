"""Grammar of templates: errors that show in the words around the slots, whatever their values are."""

from __future__ import annotations

import re
from collections.abc import Iterator

# `a [1]`
_ARTICLE = re.compile(r"\b(?:an?)\s+(\[\d+\])", re.IGNORECASE)
# `the [1]`
_NAMED = re.compile(r"\b(?:the|an?)\s+(\[\d+\])", re.IGNORECASE)
# `in in`, but not `in in-laws`
_TWICE = re.compile(r"(?<![\w'’-])(\w+)\s+\1(?![\w'’-])", re.IGNORECASE)
# `an apple`
_SOUND = re.compile(r"\b(an?)\s+([A-Za-z]+)", re.IGNORECASE)
# `cannot eats`, `does not eats`, `can [1] eats`
_AFTER_AUXILIARY = re.compile(
    # A question may begin with an auxiliary and a noun ("can ships pass"); only a slot or words before it show a verb.
    r"(?:(?<=\S )(?:cannot|can|could|may|might|must|should|will|would)\s+(?:not\s+|never\s+)?"
    r"|\b(?:does|do|did)\s+not\s+"
    r"|\b(?:can|could|may|might|must|should|will|would|does|do|did)\s+\[\d+\]\s+(?:not\s+|never\s+)?)(?P<verb>[a-z]+)"
)
# two blanks, a blank before a sign or at an end, a slot that touches a word or a slot
_SPACING = re.compile(r"\s{2,}|\s[,.;?!]|^\s|\s$|\]\[|\w\[|\]\w")

_REPEATABLE = frozenset({"had", "that", "very"})
"""Words that may stand twice in a row."""

_CONSONANT_SOUND = (
    *("uni", "unanim", "usa", "use", "usu", "ute", "uti", "uto", "ubi", "uk", "ura", "ure", "uri", "uro", "uru", "uvu"),
    *("eu", "ewe", "one", "once"),
)
_VOWEL_SOUND = ("hour", "honest", "honour", "honor", "heir", "unin", "unimp", "unimag", "uniden", "uniro", "oner")
"""First letters of words whose sound is not that of their letter; the second list outweighs the first."""

_FINITE = frozenset({"is", "are", "was", "were", "has", "had", "does", "did", "goes", "been", "being"})
_NO_VERB = frozenset({"always", "perhaps", "sometimes", "as", "this", "its", "his", "besides"})
"""Words after an auxiliary that end in s and are not verbs."""


def template_errors(template: str, persons: frozenset[int] = frozenset()) -> Iterator[str]:
    """The grammatical errors of one template, in words. `persons`: numbers of the slots that name persons."""
    yield from _article_errors(template, persons)
    for match in _TWICE.finditer(template):
        if match[1].casefold() not in _REPEATABLE:
            yield f'"{match[0]}": the word stands twice'
    for match in _AFTER_AUXILIARY.finditer(template):
        if _is_finite(match["verb"]):
            yield f'"{match[0]}": the infinitive must follow'
    if blank := _SPACING.search(template):
        yield f'"{template[max(blank.start() - 8, 0) : blank.end() + 8]}": a blank is missing or too many'


def _article_errors(template: str, persons: frozenset[int]) -> Iterator[str]:
    """Articles before slots that no one article fits, before persons, and before words of another sound."""
    if match := _ARTICLE.search(template):
        yield f'"{match[0]}": whether a or an is right depends on the value'
    for match in _NAMED.finditer(template):
        if int(match[1].strip("[]")) in persons:
            yield f'"{match[0]}": a person\'s name has no article'
    for match in _SOUND.finditer(template):
        if (match[1].casefold() == "an") != _begins_with_vowel(match[2]):
            yield f'"{match[0]}": the article does not fit the next word'


def text_errors(text: str) -> Iterator[str]:
    """The errors of a finished sentence that values make: doubled articles, and a before a vowel."""
    for match in re.finditer(r"\b(the|an?)\s+(the|an?)\b(?=\s)", text):
        yield f'"{match[0]}": two articles'
    for match in re.finditer(r"\b(an?)\s+([a-z]{2,})", text):
        if (match[1] == "an") != _begins_with_vowel(match[2]):
            yield f'"{match[0]}": the article does not fit the next word'


def _begins_with_vowel(word: str) -> bool:
    lower = word.casefold()
    if lower.startswith(_VOWEL_SOUND):
        return True
    return lower[0] in "aeiou" and not lower.startswith(_CONSONANT_SOUND)


def _is_finite(word: str) -> bool:
    """True for a form such as `is`, `has` or `plays`, which cannot follow an auxiliary."""
    if word in _FINITE:
        return True
    return word.endswith("s") and not word.endswith(("ss", "us")) and word not in _NO_VERB
