"""Pairs of entities that replies to the analogy prompts state."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hapax.evaluation.winograd.data import occurs_in
from hapax.llm_oracle.replies import read_reply
from hapax.llm_oracle.reply_question import ReplyQuestion

EntityPair = tuple[str, str]

_QUESTION = ReplyQuestion("X", "Entity", "[X] is one of two entities")

# `The two sentences are`, behind which the entities are used, not stated.
_SENTENCES = re.compile(r"\n\s*(?:the |these )?(?:two |analogous )*sentences\b", re.IGNORECASE)
# `- `, `1. `, `(a) `, `Entity 1: ` at the beginning of a line.
_LINE_MARK = re.compile(
    r"^\W*(?:\(?[\da-b][.)]\s*)?(?:(?:entity|object)\s*(?:[12ab]|one|two)\W*?[:–-]\s*)?", re.IGNORECASE
)
# `truck and sports car`, `truck - sports car`, `truck -> sports car`, `truck/sports car`, `truck | sports car`
_TOGETHER = re.compile(r"\s+(?:-|–|—|->|→|and|vs\.?)\s+|\s*[/:→|]\s*")
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

    A pair is two entries of the reply as the reader of lists finds them, with or without an explanation, or one entry
    (`1. X and Y`, `1. X - Y`, `1. X chasing a Y`, a row of a table), or two names in all of its sentences.
    """
    stated = _SENTENCES.split(reply.replace("*", ""), maxsplit=1)[0]
    entries = [entry for entry in read_reply(stated, _QUESTION) if entry.rejected is None]
    parts = [_cleaned(entry.raw) for entry in entries]
    # Parts with finite verbs are sentences, not entities; only names in all of them can be told apart.
    if parts and all(_FINITE.search(part) and not _EXPLAINED.search(part) for part in parts):
        names = dict.fromkeys(_NAME.findall(parts[0]))
        common = [name for name in names if all(occurs_in(name, part) for part in parts)]
        return [(common[0], common[1])] if len(common) == 2 else []
    parts = [_without_explanation(part) for part in parts]
    return _pairs_of_parts(parts) or ([(parts[0], parts[1])] if len(parts) == 2 else [])


def _pairs_of_parts(parts: Sequence[str]) -> list[EntityPair]:
    """The pairs of a list of which each part states both entities; none of any other list."""
    splits = [_TOGETHER.split(_RELATION.sub("", part)) for part in parts]
    if all(len(split) == 2 for split in splits):
        return [(_cleaned(first), _cleaned(second)) for first, second in splits]
    doings = [_DOING.fullmatch(part) for part in parts]
    pairs = [(doing["agent"], doing["patient"]) for doing in doings if doing is not None]
    return pairs if len(pairs) == len(parts) and all(_are_two(*pair) for pair in pairs) else []


def _are_two(agent: str, patient: str) -> bool:
    """False for one entity with a participle inside it, such as `an elderly walking man`."""
    specified = agent.lower().startswith(_DETERMINERS)
    return f"{agent.lower()} " not in _DETERMINERS and (
        patient.lower().startswith(_DETERMINERS) or (specified and patient.endswith("s"))
    )


def _without_explanation(part: str) -> str:
    """The part without the clause behind its colon or dash."""
    explained = _EXPLAINED.search(part)
    return part[: explained.start()] if explained and _CLAUSE.search(explained["why"]) else part


def _cleaned(part: str) -> str:
    return _BRACKET.sub("", _LINE_MARK.sub("", part)).strip(" .,;:|\"'“”\t")
