r"""Sentence patterns: readable lines that say which atoms a sentence states about two entities and a pronoun.

A pattern file is TOML. `[words]` names lists of words; `[events]`, `[links]` and `[sayings]` map patterns to atoms;
`examples` are pairs of sentences that have to be answered, `undecided` such as must stay open. A
sentence is read as an event, a link and a saying: `{a} <cannot> lift {b}` + `because` + `{p} <be> <so> heavy`, each
from whichever file has it. In a pattern

    {a} {b}      the two entities, with a determiner and up to two adjectives; the same letter is the same entity
    {x}          in a saying: one of the two entities
    {p} {q}      the pronoun in question; another pronoun
    <name>       a word of the list of that name, of whichever file
    (on|under)   one of these; [very] may be missing; ... one to six words that name no entity and deny nothing
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.winograd.theories.abstraction import DETERMINERS, MARKS, PRONOUNS, AbstractSentence
from grammar.errors import HapaxError

PRONOUN = "p"
"""The argument of an atom that stands for the pronoun; entities are their numbers, 0 and 1."""

_MARK = f"[{''.join(MARKS)}]"
_WORD = r"[\w'-]+ "
_TURNING = "not|never|no|nobody|nothing|hardly|neither|unless"
_JOINING = "because|although|though|but|until|after"
_PLAIN_WORD = rf"(?!(?:{_TURNING}|{_JOINING}) ){_WORD}"
"""What a stretch may hold: no word that turns a sentence into its contrary, none that begins another part of it."""

_LEAD = re.compile(rf"(?:(?!(?:{_TURNING}) ){_WORD}){{1,12}}, ")
"""What may stand before an event: a clause of its own that names no entity."""

_BEFORE_ENTITY = rf"(?:(?:{DETERMINERS}) (?:(?!'s ){_WORD}){{0,2}}?)?"
_STRETCH = rf"(?:{_PLAIN_WORD}){{1,6}}?"
_PART = re.compile(
    r"\{(?P<slot>[abpqx])\}|<(?P<list>[a-z_]+)>|(?P<dots>\.\.\.)|(?P<sign>[()\[\]|])|(?P<word>[^\s()\[\]|<>{}]+)"
)
_OPENED = {"(": "(?:", "[": "(?:", ")": ")", "]": ")?", "|": "|"}
_ALTERNATIVE = re.compile(r"\(([^()/]*)/([^()/]*)\)")
_ATOM = re.compile(r"\s*([a-z]\w*)\(\s*([abpx])\s*(?:,\s*([abpx])\s*)?\)\s*")
_SECTIONS = ("words", "events", "links", "sayings", "examples", "undecided")

Argument = int | str


@dataclass(frozen=True, slots=True)
class StatedAtom:
    """What a sentence states: a predicate over entities by number (0, 1) and the pronoun (`p`)."""

    predicate: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line of a pattern file. `atoms`: predicates over the letters of the slots."""

    text: str
    regex: re.Pattern[str]
    atoms: tuple[tuple[str, tuple[str, ...]], ...]
    place: str

    def stated(self, entities: Mapping[str, int]) -> tuple[StatedAtom, ...]:
        """The atoms with the numbers of the entities in place of their letters."""
        return tuple(
            StatedAtom(name, tuple(PRONOUN if letter == PRONOUN else entities[letter] for letter in letters))
            for name, letters in self.atoms
        )


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence of a pattern file. `(big/small)`: the first word makes the pronoun mean the first entity."""

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
    """One way to read a sentence: what it states, the pronoun's own atoms among it, by which patterns."""

    atoms: tuple[StatedAtom, ...]
    pronoun: str
    by: tuple[Pattern, Pattern, Pattern]


@dataclass(frozen=True, slots=True)
class PatternBook:
    """The patterns of all files together."""

    events: tuple[Pattern, ...]
    links: tuple[Pattern, ...]
    sayings: tuple[Pattern, ...]
    examples: tuple[Example, ...]
    undecided: tuple[Example, ...]
    """Sentences that theories of roles leave open, because they prove both candidates."""

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        return (*self.events, *self.links, *self.sayings)

    def readings(self, sentence: AbstractSentence) -> list[Reading]:
        """Every way to read the sentence, in the order of the patterns; those that state the same stand once."""
        found = {one.atoms: one for start in _starts(sentence.text) for one in self._from(sentence.text[start:])}
        return list(found.values())

    def _from(self, text: str) -> Iterator[Reading]:
        ends = [match.end() for match in re.finditer(" ", text)]
        for event in self.events:
            if not event.regex.match(text):
                continue
            for end in ends:
                match = event.regex.fullmatch(text, 0, end)
                if match is not None:
                    yield from self._behind(event, match, text[end:])

    def _behind(self, event: Pattern, match: re.Match[str], rest: str) -> Iterator[Reading]:
        for link in self.links:
            joined = link.regex.match(rest)
            if joined is None:
                continue
            for saying in self.sayings:
                said = saying.regex.fullmatch(rest, joined.end())
                entities = None if said is None else _entities(match, said)
                if said is None or entities is None:
                    continue
                atoms = tuple(atom for part in (event, link, saying) for atom in part.stated(entities))
                yield Reading(atoms, said["p"].strip(), (event, link, saying))


def _starts(text: str) -> list[int]:
    lead = _LEAD.match(text)
    return [0] if lead is None else [0, lead.end()]


def _entities(*matches: re.Match[str]) -> dict[str, int] | None:
    """The entity of each slot's letter; None if one letter would be two entities or `a` and `b` the same one.

    A saying may name the second entity first: where the event has one alone, `x` is the other or the same.
    """
    entities: dict[str, int] = {}
    for match in matches:
        for letter, mark in match.groupdict().items():
            if mark in MARKS and entities.setdefault(letter, MARKS.index(mark)) != MARKS.index(mark):
                return None
    return None if "b" in entities and entities.get("a") == entities["b"] else entities


def load_patterns(paths: Iterable[Path]) -> PatternBook:
    """The patterns of these files. Raises HapaxError that names file and line of a fault."""
    files = {path: _read(path) for path in sorted(paths)}
    lists: dict[str, str] = {}
    for path, tables in files.items():
        for name, words in tables.get("words", {}).items():
            if name in lists:
                raise HapaxError(f"{path.name}: the word list {name!r} stands twice. Join the two.")
            lists[name] = _text(words, f"{path.name}: the word list {name!r}")
    compiler = _Compiler(lists)
    sections = {
        section: tuple(
            compiler.pattern(text, atoms, f"{path.name}: {text!r}")
            for path, tables in files.items()
            for text, atoms in tables.get(section, {}).items()
        )
        for section in ("events", "links", "sayings")
    }
    for saying in sections["sayings"]:
        if "p" not in saying.regex.groupindex:
            raise HapaxError(f"{saying.place}: a saying names the pronoun in question. Write {{p}} where it stands.")
    examples, undecided = (
        tuple(_example(one, path) for path, tables in files.items() for one in tables.get(section, []))
        for section in ("examples", "undecided")
    )
    return PatternBook(**sections, examples=examples, undecided=undecided)


def _read(path: Path) -> dict[str, Any]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise HapaxError(f"{path}: the pattern file cannot be read: {fault}. Correct it.") from None
    unknown = [name for name in tables if name not in _SECTIONS]
    if unknown:
        raise HapaxError(f"{path}: no section is called {unknown[0]!r}. Sections are {', '.join(_SECTIONS)}.")
    for name, content in tables.items():
        if not isinstance(content, list if name in ("examples", "undecided") else dict):
            raise HapaxError(f"{path}: {name!r} has another form. Write a table; examples are a list.")
    return tables


def _text(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise HapaxError(f"{place} is no text. Quote it.")
    return value


def _example(written: object, path: Path) -> Example:
    match written:
        case [str() as text, str() as first, str() as second]:
            return Example(text, (first, second), f"{path.name}: {text!r}")
    raise HapaxError(f"{path.name}: {written!r} is no example. Write [sentence, first entity, second entity].")


class _Compiler:
    """Patterns to regular expressions over normalised sentences, in which a blank follows each word and sign."""

    def __init__(self, lists: Mapping[str, str]) -> None:
        self.lists = lists

    def pattern(self, text: str, atoms: object, place: str) -> Pattern:
        stated = _atoms(_text(atoms, place), place)
        regex = self._compiled(text, place)
        slots = {PRONOUN, *regex.groupindex, *("ab" if "x" in regex.groupindex else "")}
        missing = next((one for _, letters in stated for one in letters if one not in slots), None)
        if missing:
            raise HapaxError(f"{place}: the atoms speak of {missing!r}, and the pattern has no {{{missing}}}. Add it.")
        return Pattern(text, regex, stated, place)

    def _compiled(self, text: str, place: str) -> re.Pattern[str]:
        try:
            return re.compile(self._regex(text, place, set(), ()))
        except re.error as fault:
            raise HapaxError(f"{place}: the pattern cannot be read ({fault}). Close each ( and [.") from None

    def _regex(self, text: str, place: str, seen: set[str], inside: tuple[str, ...]) -> str:
        left = _PART.sub("", text).strip()
        if left:
            raise HapaxError(
                f"{place}: {left[:20]!r} means nothing in a pattern. Write words, {{a}}, <list>, ( | ) or [ ]."
            )
        return "".join(self._part(part, place, seen, inside) for part in _PART.finditer(text))

    def _part(self, part: re.Match[str], place: str, seen: set[str], inside: tuple[str, ...]) -> str:
        if part["slot"]:
            return _slot(part["slot"], seen)
        if part["list"]:
            name = part["list"]
            if name not in self.lists or name in inside:
                raise HapaxError(f"{place}: no word list is called <{name}>. Write it below [words].")
            return f"(?:{self._regex(self.lists[name], place, seen, (*inside, name))})"
        if part["sign"]:
            return _OPENED[part["sign"]]
        return _STRETCH if part["dots"] else re.escape(part["word"].casefold()) + " "


def _slot(letter: str, seen: set[str]) -> str:
    if letter == "q":
        return f"(?:{PRONOUNS}) "
    again = letter in seen
    seen.add(letter)
    if letter == PRONOUN:
        return f"(?P={letter})" if again else f"(?P<{letter}>(?:{PRONOUNS}) )"
    return f"{_BEFORE_ENTITY}{f'(?P={letter})' if again else f'(?P<{letter}>{_MARK})'} "


def _atoms(text: str, place: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for part in text.split("&"):
        atom = _ATOM.fullmatch(part)
        if atom is None:
            raise HapaxError(f"{place}: {part.strip()!r} is no atom. Write predicate(a, b), joined by &.")
        found.append((atom[1], tuple(letter for letter in atom.groups()[1:] if letter)))
    return tuple(found)
