"""Pairs of entities that replies to the analogy prompts state, in whatever form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from hapax.evaluation.winograd.data import occurs_in

EntityPair = tuple[str, str]

# The thoughts of a reasoning model; those that are never closed reach to the end.
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
# `The two entities are:`
_INTRODUCED = re.compile(r"\b(?:entities|objects)\b[^\n]*?:\s*", re.IGNORECASE)
# `The entities could be a truck and a sports car.`
_IN_PROSE = re.compile(
    r"\b(?:entities|objects)\b[^\n:]*?\b(?:are|be|include)\s+(?P<pair>[^\n:]*?)(?:[.!](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)
# `The two sentences are`, behind which the entities are used, not stated.
_SENTENCES = re.compile(r"\n\s*(?:the |these )?(?:two |analogous )*sentences\b[^\n]*\n?", re.IGNORECASE)
# `1. truck. 2. sports car.`
_NUMBERED = re.compile(r"(?:(?<=\s)|^)[12][.)]\s*(?=\S)")
# `Entity 1: truck`
_LABELLED = re.compile(
    r"^\W*(?:entity|object)\s*(?:[12ab]|one|two)\W*?[:–-]\s*(?P<entity>\S.*)$", re.IGNORECASE | re.MULTILINE
)
# `- `, `1. `, `(a) ` at the beginning of a line.
_LINE_MARK = re.compile(r"^\s*(?:[-•]|\(?[\da-b][.)])\s*")
# `| truck | sports car |`
_TABLE_ROW = re.compile(r"^\s*\|([^|\n]+)\|([^|\n]+)\|\s*$", re.MULTILINE)
# `:---:`, a cell of the line below the header.
_TABLE_RULE = re.compile(r"\s*:?-+:?\s*")
# `truck and sports car`, `truck - sports car`, `truck -> sports car`, `truck/sports car`
_TOGETHER = re.compile(r"\s+(?:-|–|—|->|→|and|vs\.?)\s+|\s*[/:→]\s*")
# `lion and gazelle relationship`
_RELATION = re.compile(r"\s+(?:relation(?:ship)?|pair|dynamic)s?$", re.IGNORECASE)
# `truck: it is slower`, `truck - which is slower`
_EXPLAINED = re.compile(r"\s*(?::|\s[-–—])\s+(?P<why>.*)$")
_CLAUSE = re.compile(r"\b(?:who|whom|whose|which|that|because|since|is|are|was|were|has|have|had|can)\b", re.IGNORECASE)
_BRACKET = re.compile(r"\s*\([^()]*\)")
_FINITE = re.compile(r"\b(?:because|although|so|but|was|is|were|are|had|has)\b", re.IGNORECASE)
_NAME = re.compile(r"\b[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*")
_DETERMINERS = ("a ", "an ", "the ", "his ", "her ", "its ", "their ", "some ", "another ")
_PREPOSITIONS = "about|after|at|by|down|for|from|in|into|off|on|out|over|to|up|with"
# `a cat chasing a mouse because it is hungry`: agent and patient.
_DOING = re.compile(
    rf"(?P<agent>\S.*?)\s+\w{{2,}}ing\s+(?:(?:{_PREPOSITIONS})\s+)*(?P<patient>\S.*?)"
    rf"(?:\s+(?:{_PREPOSITIONS}|because|during|while)\s.*)?",
    re.IGNORECASE,
)


def read_entities(reply: str) -> list[EntityPair]:
    """Pairs of entities that a reply states, in its order and without text in brackets; empty if there are none.

    Recognized are `1. X. 2. Y`, one entity per line with or without its explanation, one pair per line (`1. X and Y`,
    `1. X - Y`, `1. X chasing a Y`), a sentence (`the entities could be X and Y`), labels (`Entity 1: X`), a table of
    two columns, JSON, and pairs of names that occur only in the sentences made with them.
    """
    text = _THOUGHTS.sub("", reply).replace("*", "")  # without Markdown emphasis
    # Forms that cannot be mistaken come first.
    for read in (_read_json, _read_table, _read_labels):
        if pairs := read(text):
            return pairs
    parts = [part for part in map(_cleaned, _parts(text)) if part]
    return _read_parts(parts) or _read_prose(text)


def _read_json(text: str) -> list[EntityPair]:
    """The pair of an object with two texts, or of a list of two; of a list of such ones, each."""
    for start in (match.start() for match in re.finditer(r"[\[{]", text)):
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        entries = found if isinstance(found, list) and not any(isinstance(entry, str) for entry in found) else [found]
        pairs = [list(entry.values()) if isinstance(entry, dict) else entry for entry in entries]
        if pairs and all(_is_pair(pair) for pair in pairs):
            return [(_cleaned(first), _cleaned(second)) for first, second in pairs]
    return []


def _is_pair(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(entity, str) for entity in value)


def _read_table(text: str) -> list[EntityPair]:
    """The rows of a table of two columns, without its header."""
    rows = [(row[1], row[2]) for row in _TABLE_ROW.finditer(text)]
    if len(rows) < 3 or not all(map(_TABLE_RULE.fullmatch, rows[1])):
        return []
    return [(_cleaned(first), _cleaned(second)) for first, second in rows[2:]]


def _read_labels(text: str) -> list[EntityPair]:
    """Entities behind labels such as `Entity 1:`, two to a pair."""
    entities = [_cleaned(_without_explanation(match["entity"])) for match in _LABELLED.finditer(text)]
    return list(zip(entities[::2], entities[1::2], strict=True)) if len(entities) % 2 == 0 else []


def _read_parts(parts: Sequence[str]) -> list[EntityPair]:
    # Parts with finite verbs are sentences, not entities; only names in all of them can be told apart.
    if parts and all(_FINITE.search(part) and not _EXPLAINED.search(part) for part in parts):
        names = dict.fromkeys(_NAME.findall(parts[0]))
        common = [name for name in names if all(occurs_in(name, part) for part in parts)]
        return [(common[0], common[1])] if len(common) == 2 else []
    parts = [_without_explanation(part) for part in parts]
    splits = [_TOGETHER.split(_RELATION.sub("", part)) for part in parts]
    if splits and all(len(split) == 2 for split in splits):
        return [(_cleaned(first), _cleaned(second)) for first, second in splits]
    doings = [_DOING.fullmatch(part) for part in parts]
    pairs = [(doing["agent"], doing["patient"]) for doing in doings if doing is not None]
    if pairs and len(pairs) == len(parts) and all(_are_two(*pair) for pair in pairs):
        return pairs
    return [(parts[0], parts[1])] if len(parts) == 2 else []


def _are_two(agent: str, patient: str) -> bool:
    """False for one entity with a participle inside it, such as `an elderly walking man`."""
    specified = agent.lower().startswith(_DETERMINERS)
    return f"{agent.lower()} " not in _DETERMINERS and (
        patient.lower().startswith(_DETERMINERS) or (specified and patient.endswith("s"))
    )


def _read_prose(text: str) -> list[EntityPair]:
    """The two entities of a sentence that says which they are."""
    for match in _IN_PROSE.finditer(text):
        split = _TOGETHER.split(match["pair"])
        if len(split) == 2 and not any(_CLAUSE.search(part) for part in split):
            return [(_cleaned(split[0]), _cleaned(split[1]))]
    return []


def _without_explanation(part: str) -> str:
    """The part without the clause behind its colon or dash."""
    explained = _EXPLAINED.search(part)
    return part[: explained.start()] if explained and _CLAUSE.search(explained["why"]) else part


def _parts(reply: str) -> Iterator[str]:
    """Lines and numbered parts of the reply between `entities ..:` and the sentences that use the entities."""
    introductions = [match.end() for match in _INTRODUCED.finditer(reply)]
    # Without an introduction, the first number begins the list; without either, the reply states nothing.
    starts = introductions or [match.start() for match in _NUMBERED.finditer(reply)][:1]
    if not starts:
        return
    # Behind the last introduction: an earlier one may repeat the question.
    for line in _SENTENCES.split("\n" + reply[starts[-1] :], maxsplit=1)[0].strip().splitlines():
        places = [match.start() for match in _NUMBERED.finditer(line)]
        if len(places) > 1:
            for start, end in zip(places, [*places[1:], len(line)], strict=True):
                yield line[start:end]
        elif line.strip():
            yield line


def _cleaned(part: str) -> str:
    return _BRACKET.sub("", _LINE_MARK.sub("", part)).strip(" .,;:\"'“”\t")
