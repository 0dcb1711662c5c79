"""Parse data types and verbs from a model's replies. A reply is untrusted text: a part that does not fit is dropped.

The parser of knowledge replies (`llm_oracle.answers`) expects lines that end in a full stop, which these do not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hapax.grammar.assemble import is_variable_name
from hapax.llm_oracle.answers import without_numbering

MAX_REPLY_CHARACTERS = 20_000
"""Characters of a reply that are read; the rest is ignored."""

MAX_TYPE_CHARACTERS, MAX_TYPE_WORDS = 40, 5
MAX_NAME_CHARACTERS, MAX_VERB_WORDS = 60, 9

_TYPE_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SMALL_WORDS = frozenset(("a", "an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
_TALK = frozenset(
    ("are", "can", "cannot", "could", "here", "i", "is", "it", "not", "some", "sorry", "sure", "that", "there")
)
"""Words that occur in sentences before or instead of a list, and not in names of types."""

_SINGULAR_ENDINGS = re.compile(r"(?:as|ics|is|lens|ss|us)$", re.IGNORECASE)
"""Endings of words that look like plurals and mostly are not: atlas, cosmetics, axis, glass, cactus."""

_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_LAST_ARTICLE = re.compile(r" (?:an?|the)$")
# what follows the name in `Tattoo Equipment: needles`, `Tattoo Equipment (needles)` and `Tattoo Equipment - needles`
_EXPLANATION = re.compile(r"\s*(?::|\(|\s[-–—]\s).*$", re.DOTALL)
_MARKS = " \t\"'`*“”‘’_.;,!?"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# `cannot_drive` among other words
_SNAKE = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_VERB_WORDS = re.compile(r"[a-z][a-z0-9]*(?: [a-z0-9]+)*")
_CONTRACTIONS = ((r"\bcan['’]t\b", "cannot"), (r"\bwon['’]t\b", "will not"), (r"n['’]t\b", " not"))
_SUBJECTS = frozenset(
    ("a", "an", "each", "every", "i", "if", "it", "people", "someone", "sure", "that", "the", "they", "this", "you")
)
"""Words with which sentences begin, and verbs do not."""

_SLOT = re.compile(r"\[\d{1,3}\]")


@dataclass(frozen=True, slots=True)
class UnusableReply:
    """A part of a reply that cannot be used, and the reason."""

    said: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A predicate's name, and the sentence with slots in which the model used it, if there is one."""

    name: str
    sentence: str | None = None

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")


def read_types(reply: str) -> Iterator[str | UnusableReply]:
    """The data types of a list, on lines or separated by commas, spelled as in rule files: `Tattoo Equipment`."""
    lines = [line.strip() for line in reply[:MAX_REPLY_CHARACTERS].splitlines() if line.strip()]
    if len(lines) == 1:
        lines = re.split(r"[,;]", without_numbering(lines[0]))
    for line in lines:
        if line.endswith(":") or not line.strip(_MARKS):
            continue  # a sentence that introduces the list
        name = _type_name(line)
        yield name or UnusableReply(_shown(line), "is not a name of a data type")


def _type_name(line: str) -> str | None:
    """The type that a line of a list names, without number, article and explanation; None if it names none."""
    text = without_numbering(unicodedata.normalize("NFC", line).strip(_MARKS)).strip(_MARKS)
    words = _ARTICLE.sub("", _EXPLANATION.sub("", text).strip(_MARKS), count=1).split()
    fits = 0 < len(words) <= MAX_TYPE_WORDS and all(map(_TYPE_WORD.fullmatch, words)) and ":-" not in line
    if not fits or len(" ".join(words)) > MAX_TYPE_CHARACTERS:
        return None
    if {words[0].casefold(), words[-1].casefold()} & _SMALL_WORDS:
        return None
    if _TALK.intersection(map(str.casefold, words)):
        return None
    singular = _singular(" ".join(words)).split()
    name = " ".join(word if word in _SMALL_WORDS else word[0].upper() + word[1:] for word in singular)
    # `Vitamin C` would be read as a variable C of the type Vitamin.
    return None if is_variable_name(name.rpartition(" ")[2]) else name


def _singular(noun: str) -> str:
    """The singular of a noun. Critics are asked whether a value is *a vehicle*, not *a vehicles*."""
    import inflect

    if _SINGULAR_ENDINGS.search(noun):
        return noun
    return str(inflect.engine().singular_noun(noun) or noun)


def read_predicate(reply: str, arguments: Sequence[str] = ()) -> Verb | UnusableReply:
    """The predicate of a reply such as `cannot_drive`, `cannot_drive(Person A, Vehicle B)` or `cannot drive`.

    `arguments`: as the prompt named them; a reply with one of them in the verb's place is a sentence, and unusable.
    """
    lines = [line for line in reply[:MAX_REPLY_CHARACTERS].splitlines() if line.strip()]
    if not lines:
        return UnusableReply("", "is not a verb")
    # A reply in words may name the predicate: `Use cannot_drive here.`
    named = dict.fromkeys(_SNAKE.findall(lines[0].lower()))
    if len(named) > 1:
        return UnusableReply(_shown(lines[0]), "names several verbs")
    plain = without_numbering(lines[0].split("(")[0].strip(_MARKS)).strip(_MARKS)
    words = (next(iter(named), None) or plain).replace("_", " ")
    if is_sentence(words, arguments):
        return UnusableReply(_shown(lines[0]), "is a sentence, where a verb such as 'cannot drive' is wanted")
    return read_verb(words.lower()) or UnusableReply(_shown(lines[0]), "is not a verb")


def is_sentence(words: str, arguments: Sequence[str]) -> bool:
    """Tell if words that should be a verb have a subject or an argument, such as `Person A cannot drive a car`.

    `arguments`: as the prompt named them, such as `Person A`.
    """
    plain = words.split()
    lower = [word.casefold() for word in plain]
    if not lower or lower[0] in _SUBJECTS:
        return True
    variables: set[str] = set()
    for position, argument in enumerate(arguments):
        *type_words, name = argument.casefold().split() or [""]
        if not type_words:  # a constant: its whole text
            type_words, name = [name], ""
        variables.add(name)
        if position == 0 and lower[: len(type_words)] == type_words:
            return True
        # The article `a` is a variable only behind a type or as a capital letter.
        if f" {' '.join(filter(None, [*type_words, name]))} " in f" {' '.join(lower)} ":
            return True
    for place, word in enumerate(lower):
        is_capital = place > 0 and is_variable_name(plain[place])
        if is_capital or (word in variables and word not in ("a", "")):
            return True
    return False


def read_verb(words: str, slots: int = 0) -> Verb | None:
    """The verb of words such as `cannot drive`, or of a sentence with `slots` slots: `[1] cannot pay [2] for [3]`.

    None if it has other slots, or characters that a predicate's name cannot have.
    """
    plain = words
    for pattern, full in _CONTRACTIONS:
        plain = re.sub(pattern, full, plain, flags=re.IGNORECASE)
    found = sorted(_SLOT.findall(plain))
    # Each slot once, or none at all.
    if found and found != [f"[{number}]" for number in range(1, slots + 1)]:
        return None
    verb = " ".join(_SLOT.sub(" ", plain).split()).lower()
    name = _LAST_ARTICLE.sub("", verb).replace(" ", "_")
    fits = _VERB_WORDS.fullmatch(verb) and len(verb.split()) <= MAX_VERB_WORDS and len(name) <= MAX_NAME_CHARACTERS
    if not fits or not _NAME.fullmatch(name):
        return None
    return Verb(name, " ".join(plain.split()) if found else None)


def read_conclusions(reply: str, arguments: Sequence[str]) -> Iterator[Verb | UnusableReply]:
    """The verbs of statements that end in the conclusion: `If ..., then Person A cannot drive Vehicle B.`

    `arguments`: how the prompt named the conclusion's arguments, in order.
    """
    for line in reply[:MAX_REPLY_CHARACTERS].splitlines():
        # The second case is a line that introduces a list.
        if not line.strip() or line.strip().endswith(":"):
            continue
        verb = read_verb(_slotted(line, arguments), len(arguments))
        if verb is not None and verb.sentence:
            yield verb
        else:
            yield UnusableReply(_shown(line), "is not a sentence about the conclusion's arguments")


def _slotted(line: str, arguments: Sequence[str]) -> str:
    """The part of the line after the last `then`, with slots in place of the arguments.

    An argument that occurs twice gives two equal slots, which `read_verb` rejects.
    """
    text = re.split(r"\bthen\b", without_numbering(line.strip()), flags=re.IGNORECASE)[-1].strip(_MARKS)
    for number, argument in enumerate(arguments, 1):
        text = re.sub(rf"(?<!\w){re.escape(argument)}(?!\w)", f"[{number}]", text, flags=re.IGNORECASE)
    return text


def _shown(text: str) -> str:
    """The beginning of a text, printable on one line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= 60 else f"{line[:57]}..."
