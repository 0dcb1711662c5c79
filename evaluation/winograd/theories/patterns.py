r"""Sentence patterns: lines that map sentences to the atoms that they state about two entities and a pronoun.

A pattern file is TOML. `[words]` defines lists of words; `[events]`, `[links]` and `[sayings]` map patterns to atoms;
`examples` are pairs of sentences that must be answered, and `undecided` are pairs that must stay open. A sentence is
read as an event, a link and a saying, each from any file: `{a} <cannot> lift {b}` + `because` + `{p} <be> <so> heavy`.
In a pattern

    {a} {b}      the two entities, with a determiner and up to two adjectives; the same letter is the same entity
    {x}          in a saying: one of the two entities
    {p} {q}      the pronoun in question; another pronoun
    <name>       a word of the list of that name, from any file
    (on|under)   one of these
    [very]       may be missing
    ...          one to six words that name no entity and negate nothing
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hapax.evaluation.winograd.theories.abstraction import DETERMINERS, MARKS, PRONOUNS, AbstractSentence
from hapax.grammar.errors import HapaxError

PRONOUN = "p"
"""Argument of an atom that stands for the pronoun; entities are the numbers 0 and 1."""

_MARK = f"[{''.join(MARKS)}]"
_WORD = r"[\w'-]+ "
_TURNING = "not|never|no|nobody|nothing|hardly|neither|unless"
_JOINING = "because|although|though|but|until|after"

# A word inside `...`: it neither negates the sentence nor begins another part of it.
_PLAIN_WORD = rf"(?!(?:{_TURNING}|{_JOINING}) ){_WORD}"

# A clause before an event, which names no entity.
_LEAD = re.compile(rf"(?:(?!(?:{_TURNING}) ){_WORD}){{1,12}}, ")

# A determiner and up to two adjectives, but no possessor (`the man's`).
_BEFORE_ENTITY = rf"(?:(?:{DETERMINERS}) (?:(?!'s ){_WORD}){{0,2}}?)?"
_STRETCH = rf"(?:{_PLAIN_WORD}){{1,6}}?"
_PART = re.compile(
    r"\{(?P<slot>[abpqx])\}|<(?P<list>[a-z_]+)>|(?P<dots>\.\.\.)|(?P<sign>[()\[\]|])|(?P<word>[^\s()\[\]|<>{}]+)"
)
_SIGNS = {"(": "(?:", "[": "(?:", ")": ")", "]": ")?", "|": "|"}  # only slots are capturing groups
_ALTERNATIVE = re.compile(r"\(([^()/]*)/([^()/]*)\)")
_ATOM = re.compile(r"\s*([a-z]\w*)\(\s*([abpx])\s*(?:,\s*([abpx])\s*)?\)\s*")
_SECTIONS = ("words", "events", "links", "sayings", "examples", "undecided")

Argument = int | str


@dataclass(frozen=True, slots=True)
class StatedAtom:
    """An atom that a sentence states, over entities by number (0, 1) and the pronoun (`p`)."""

    predicate: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class EventPattern:
    """A line of a pattern file. `atoms`: predicates over the letters of the slots."""

    text: str
    regex: re.Pattern[str]
    atoms: tuple[tuple[str, tuple[str, ...]], ...]
    place: str

    def stated(self, entities: Mapping[str, int]) -> tuple[StatedAtom, ...]:
        """The atoms with the numbers of the entities instead of their letters."""
        atoms = []
        for name, letters in self.atoms:
            arguments = tuple(PRONOUN if letter == PRONOUN else entities[letter] for letter in letters)
            atoms.append(StatedAtom(name, arguments))
        return tuple(atoms)


@dataclass(frozen=True, slots=True)
class PatternExample:
    """An example of a pattern file. With the first word in `(big/small)` the pronoun means the first entity."""

    text: str
    options: tuple[str, str]
    place: str

    @property
    def sentences(self) -> tuple[str, str]:
        """The two sentences of the pair."""
        first, second = (_ALTERNATIVE.sub(rf"\{group}", self.text) for group in (1, 2))
        return first, second


@dataclass(frozen=True, slots=True)
class Reading:
    """A reading of a sentence: the atoms it states, the pronoun it uses, and the patterns that matched."""

    atoms: tuple[StatedAtom, ...]
    pronoun: str
    by: tuple[EventPattern, EventPattern, EventPattern]


@dataclass(frozen=True, slots=True)
class PatternBook:
    """The patterns of all files together."""

    events: tuple[EventPattern, ...]
    links: tuple[EventPattern, ...]
    sayings: tuple[EventPattern, ...]
    examples: tuple[PatternExample, ...]
    undecided: tuple[PatternExample, ...]
    """Sentences that the theories leave open, because they prove both candidates."""

    @property
    def patterns(self) -> tuple[EventPattern, ...]:
        return (*self.events, *self.links, *self.sayings)

    def readings(self, sentence: AbstractSentence) -> list[Reading]:
        """All readings of the sentence, in the order of the patterns; one of those that state the same atoms."""
        texts = [sentence.text]
        # Tried with and without the leading clause, which a pattern may contain itself.
        if lead := _LEAD.match(sentence.text):
            texts.append(sentence.text[lead.end() :])
        readings: dict[tuple[StatedAtom, ...], Reading] = {}
        for text in texts:
            for reading in self._readings_from(text):
                readings[reading.atoms] = reading
        return list(readings.values())

    def _readings_from(self, text: str) -> Iterator[Reading]:
        # A link may begin after any word, so the event is tried with every length.
        ends = [match.end() for match in re.finditer(" ", text)]
        for event in self.events:
            # A cheap test before every length is tried.
            if not event.regex.match(text):
                continue
            for end in ends:
                match = event.regex.fullmatch(text, 0, end)
                if match is not None:
                    yield from self._continued(event, match, text[end:])

    def _continued(self, event: EventPattern, match: re.Match[str], rest: str) -> Iterator[Reading]:
        """Readings of an event whose match is followed by `rest`."""
        for link in self.links:
            joined = link.regex.match(rest)
            if joined is None:
                continue
            for saying in self.sayings:
                said = saying.regex.fullmatch(rest, joined.end())
                entities = None if said is None else _entities(match, said)
                if said is None or entities is None:
                    continue
                atoms = (*event.stated(entities), *link.stated(entities), *saying.stated(entities))
                yield Reading(atoms, said["p"].strip(), (event, link, saying))


def _entities(*matches: re.Match[str]) -> dict[str, int] | None:
    """Entity of each slot's letter; None if a letter would mean two entities, or `a` and `b` the same entity.

    `x` of a saying may be either entity.
    """
    entities: dict[str, int] = {}
    for match in matches:
        for letter, mark in match.groupdict().items():
            if mark in MARKS and entities.setdefault(letter, MARKS.index(mark)) != MARKS.index(mark):
                return None
    return None if "b" in entities and entities.get("a") == entities["b"] else entities


def load_patterns(paths: Iterable[Path]) -> PatternBook:
    """Load the patterns of these files. Raises HapaxError, which names the file and the line of a fault."""
    files = {path: _read(path) for path in sorted(paths)}
    lists: dict[str, str] = {}
    for path, tables in files.items():
        for name, words in tables.get("words", {}).items():
            if name in lists:
                raise HapaxError(f"{path.name}: the word list {name!r} is defined twice. Join the two lists.")
            lists[name] = _text(words, f"{path.name}: the word list {name!r}")
    compiler = _PatternCompiler(lists)
    patterns: dict[str, list[EventPattern]] = {"events": [], "links": [], "sayings": []}
    examples: dict[str, list[PatternExample]] = {"examples": [], "undecided": []}
    for path, tables in files.items():
        for section, compiled in patterns.items():
            for text, atoms in tables.get(section, {}).items():
                compiled.append(compiler.pattern(text, atoms, f"{path.name}: {text!r}"))
        for section, listed in examples.items():
            listed += [_example(entry, path) for entry in tables.get(section, [])]
    for saying in patterns["sayings"]:
        if "p" not in saying.regex.groupindex:
            raise HapaxError(f"{saying.place}: a saying must contain the pronoun in question. Write {{p}} for it.")
    return PatternBook(
        tuple(patterns["events"]),
        tuple(patterns["links"]),
        tuple(patterns["sayings"]),
        tuple(examples["examples"]),
        tuple(examples["undecided"]),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise HapaxError(f"{path}: the pattern file cannot be read: {fault}. Correct it.") from None
    unknown = [name for name in tables if name not in _SECTIONS]
    if unknown:
        raise HapaxError(f"{path}: unknown section {unknown[0]!r}. Sections are {', '.join(_SECTIONS)}.")
    for name, content in tables.items():
        if not isinstance(content, list if name in ("examples", "undecided") else dict):
            raise HapaxError(
                f"{path}: {name!r} has the wrong form. Write a table, or a list for examples and undecided."
            )
    return tables


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise HapaxError(f"{place} is not a text. Put it in quotes.")
    return value


def _example(written: object, path: Path) -> PatternExample:
    match written:
        case [str() as text, str() as first, str() as second]:
            return PatternExample(text, (first, second), f"{path.name}: {text!r}")
    raise HapaxError(f"{path.name}: {written!r} is not an example. Write [sentence, first entity, second entity].")


class _PatternCompiler:
    """Compiles patterns to regular expressions over normalised sentences, with a blank after every token."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self.lists = lists

    def pattern(self, text: str, atoms: object, place: str) -> EventPattern:
        stated = _atoms(_text(atoms, place), place)
        try:
            regex = re.compile(self._regex(text, place, set(), ()))
        except re.error as fault:
            raise HapaxError(f"{place}: the pattern cannot be read ({fault}). Close each ( and [.") from None
        # The event defines `a` and `b` for a saying that uses `x`.
        slots = {PRONOUN, *regex.groupindex, *("ab" if "x" in regex.groupindex else "")}
        for _, letters in stated:
            for letter in letters:
                if letter not in slots:
                    raise HapaxError(f"{place}: the atoms use {letter!r}, but the pattern has no {{{letter}}}. Add it.")
        return EventPattern(text, regex, stated, place)

    def _regex(self, text: str, place: str, seen: set[str], inside: tuple[str, ...]) -> str:
        unknown = _PART.sub("", text).strip()
        if unknown:
            raise HapaxError(
                f"{place}: {unknown[:20]!r} means nothing in a pattern. Write words, {{a}}, <list>, ( | ) or [ ]."
            )
        return "".join(self._part(part, place, seen, inside) for part in _PART.finditer(text))

    def _part(self, part: re.Match[str], place: str, seen: set[str], inside: tuple[str, ...]) -> str:
        if part["slot"]:
            return _slot(part["slot"], seen)
        if part["list"]:
            name = part["list"]
            # A list that contains itself would never end.
            if name not in self.lists or name in inside:
                raise HapaxError(f"{place}: there is no word list <{name}>. Define it below [words].")
            return f"(?:{self._regex(self.lists[name], place, seen, (*inside, name))})"
        if part["sign"]:
            return _SIGNS[part["sign"]]
        return _STRETCH if part["dots"] else re.escape(part["word"].casefold()) + " "


def _slot(letter: str, seen: set[str]) -> str:
    if letter == "q":
        return f"(?:{PRONOUNS}) "
    # A letter that occurs again is a backreference: it must match the same entity.
    again = letter in seen
    seen.add(letter)
    if letter == PRONOUN:
        return f"(?P={letter})" if again else f"(?P<{letter}>(?:{PRONOUNS}) )"
    return f"{_BEFORE_ENTITY}{f'(?P={letter})' if again else f'(?P<{letter}>{_MARK})'} "


def _atoms(text: str, place: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    atoms = []
    for part in text.split("&"):
        atom = _ATOM.fullmatch(part)
        if atom is None:
            raise HapaxError(f"{place}: {part.strip()!r} is not an atom. Write predicate(a, b), and join atoms with &.")
        atoms.append((atom[1], tuple(letter for letter in atom.groups()[1:] if letter)))
    return tuple(atoms)
