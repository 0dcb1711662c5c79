"""Readers that find the answers in a reply about a pair of sentences: strictly, or as the released notebooks do.

This file uses only the standard library, since it is also shipped with exported tasks.
"""

from __future__ import annotations

import re

Answers = tuple["int | None", "int | None"]
"""The option named for each of the two sentences, 0 or 1; None where the reply names neither or both."""

_NEXT_QUESTION = re.compile(r"\n\s*Q:")

# `1. X 2. Y`. The numbers follow no letter, digit or full stop, so that decimals are not taken for them.
_NUMBERED = re.compile(
    r"(?<![\w.])1[.):]\s*(?P<first>(?:(?!(?<![\w.])[12][.):]).)+?)\s*(?<![\w.])2[.):]\s*(?P<second>[^\n]+)",
    re.DOTALL,
)
_BOTH = re.compile(r"\bin both sentences\b(?P<both>[^\n]+)", re.IGNORECASE)
_ORDINALS = re.compile(
    r"\b(?:the )?first sentence\b(?P<first>.+?)\b(?:the )?second sentence\b(?P<second>[^\n]+)",
    re.IGNORECASE | re.DOTALL,
)
_REFERS = re.compile(r".*\brefers? to\b", re.IGNORECASE | re.DOTALL)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s$")

# A full stop ends a sentence only after three letters, so not in `Mr.` and the like.
_SENTENCE = re.compile(r"(?<=[^\W\d_]{3})\.(?:\s|$)|\n")
_BRACKET = re.compile(r"\([^()]*\)")


def read_strictly(reply: str, options: tuple[str, str]) -> Answers:
    """The last pair of answers that names one option for each sentence, or else the last pair of answers.

    Recognized are `1. X 2. Y`, `In the first sentence .. refers to X. In the second sentence .. Y` and `In both
    sentences .. refers to X`.
    """
    # Models continue with a further question and its answer, which are not about this pair.
    text = _NEXT_QUESTION.split(reply, maxsplit=1)[0].replace("*", "")
    placed: list[tuple[int, Answers]] = []
    for pattern in (_NUMBERED, _ORDINALS):
        for match in pattern.finditer(text):
            placed.append((match.start(), (named(match["first"], options), named(match["second"], options))))
    for match in _BOTH.finditer(text):
        both = named(match["both"], options)
        placed.append((match.start(), (both, both)))
    if not placed:
        return None, None
    answers = [pair for _, pair in sorted(placed, key=lambda entry: entry[0])]
    complete = [pair for pair in answers if None not in pair]
    return (complete or answers)[-1]


def named(part: str, options: tuple[str, str]) -> int | None:
    """The option that a part of a reply names, in full or by a phrase of it; None for neither and for both."""
    phrase = _REFERS.sub("", part) if _REFERS.match(part) else part
    phrase = _plain(_SENTENCE.split(_BRACKET.sub(" ", phrase).strip(), maxsplit=1)[0])
    if not phrase:
        return None
    cores = [_plain(option) for option in options]
    if phrase in cores:
        return cores.index(phrase) if cores[0] != cores[1] else None
    contained = [number for number, core in enumerate(cores) if _within(core, phrase)]
    if len(contained) == 2 and (_within(cores[0], cores[1]) or _within(cores[1], cores[0])):
        # "tasty fish" contains "fish", so the shorter option counts only if it also occurs elsewhere.
        shorter = min((0, 1), key=lambda number: len(cores[number]))
        elsewhere = phrase.replace(cores[1 - shorter], " ")
        contained = [0, 1] if _within(cores[shorter], elsewhere) else [1 - shorter]
    if contained:
        return contained[0] if len(contained) == 1 else None
    # The reply may use a part of an option ("uncle" for "my rich uncle").
    containing = [number for number, core in enumerate(cores) if _within(phrase, core)]
    return containing[0] if len(containing) == 1 else None


def _plain(text: str) -> str:
    """The text in lower case, without quotes, outer punctuation, article and possessive."""
    lower = " ".join(re.sub(r"[\"“”‘]", "", text.casefold()).split()).strip(" .,;:!?-–—[]'")
    return _POSSESSIVE.sub("", _ARTICLE.sub("", lower))


def _within(phrase: str, text: str) -> bool:
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


# -- reading of the released notebooks, with their errors


def read_as_released(reply: str, options: tuple[str, str], zero_shot: bool = False) -> tuple[int, int]:
    """Answers as the notebook for CR-WSC-M reads them: 0, 1, or -1 for neither.

    An answer that the notebook does not find is the empty string, which its loose match finds in the first option. The
    notebook for CR-WSC-H crashes on some replies; where this one does, too, both answers count as not found.
    """
    first, second = _released_zero_shot(reply) if zero_shot else _released_one_shot(reply)
    return _loosely(first, options), _loosely(second, options)


def _released_zero_shot(reply: str) -> tuple[str, str]:
    if "1." not in reply or "2." not in reply:
        return "", ""
    parts = reply[reply.rfind("1.") :].strip().split("2.")
    return _released_parts(parts) if len(parts) > 1 else ("", "")


def _released_one_shot(reply: str) -> tuple[str, str]:
    if "1." not in reply or "2." not in reply[reply.rfind("1.") :]:
        return "", ""
    parts = reply[reply.rfind("1.") :].strip().split("2. ")
    if len(parts) < 2:
        return "", ""
    cut = [part.split("\n")[0].split("(")[0].split(",")[0] for part in parts]
    answers = []
    for answer in _released_parts(cut, False):
        without_stop = answer.replace(".", "") if answer.endswith(".") else answer
        answers.append(without_stop.replace('"', "").strip())
    return answers[0], answers[1]


def _released_parts(parts: list[str], unquoted: bool = True) -> tuple[str, str]:
    answers = []
    for number, part in enumerate(parts[:2], start=1):
        answer = part.split("\n")[0].strip().replace(f"{number}.", "")
        for phrase in ("refers to", "refer to"):
            if phrase in answer:
                answer = answer[answer.find(phrase) + len(phrase) :].replace(".", "")
                break
        answers.append(answer.replace('"', "").strip() if unquoted else answer)
    return answers[0], answers[1]


def _loosely(answer: str, options: tuple[str, str]) -> int:
    """The released `loosely_match_results`; as there, the empty string matches every option."""
    lower = answer.lower()
    for number, option in enumerate(options):
        for phrase in (lower, lower.replace("the", "").strip(), lower.replace("a", "").strip()):
            if phrase in option.lower():
                return number
    return -1
