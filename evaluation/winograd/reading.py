"""What a reply to a pair of questions answers: by our strict reading, and by that of the released notebooks.

Needs nothing but Python's own library: the file is also shipped with exported tasks.
"""

from __future__ import annotations

import re

Answers = tuple["int | None", "int | None"]
"""For each of the two sentences the option that is named, 0 or 1; None where the reply names none, or both."""

_NEXT_QUESTION = re.compile(r"\n\s*Q:")
_NUMBERED = re.compile(
    r"(?<![\w.])1[.):]\s*(?P<one>(?:(?!(?<![\w.])[12][.):]).)+?)\s*(?<![\w.])2[.):]\s*(?P<two>[^\n]+)", re.DOTALL
)
_BOTH = re.compile(r"\bin both sentences\b(?P<both>[^\n]+)", re.IGNORECASE)
_ORDINALS = re.compile(
    r"\b(?:the )?first sentence\b(?P<one>.+?)\b(?:the )?second sentence\b(?P<two>[^\n]+)", re.IGNORECASE | re.DOTALL
)
_REFERS = re.compile(r".*\brefers? to\b", re.IGNORECASE | re.DOTALL)
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s$")
_SENTENCE = re.compile(r"(?<=[^\W\d_]{3})\.(?:\s|$)|\n")
_BRACKET = re.compile(r"\([^()]*\)")


def read_strictly(reply: str, options: tuple[str, str]) -> Answers:
    """The last pair of answers in the reply that names one option for each sentence; else what the last names.

    Read are `1. X 2. Y`, `In the first sentence .. refers to X. In the second sentence .. Y` and `In both sentences ..
    refers to X`. What a model writes behind a further `Q:` is not its answer.
    """
    text = _NEXT_QUESTION.split(reply, maxsplit=1)[0].replace("*", "")
    found: list[tuple[int, Answers]] = []
    for pattern in (_NUMBERED, _ORDINALS):
        for match in pattern.finditer(text):
            found.append((match.start(), (named(match["one"], options), named(match["two"], options))))
    for match in _BOTH.finditer(text):
        both = named(match["both"], options)
        found.append((match.start(), (both, both)))
    if not found:
        return None, None
    answers = [answer for _, answer in sorted(found, key=lambda one: one[0])]
    whole = [answer for answer in answers if None not in answer]
    return (whole or answers)[-1]


def named(part: str, options: tuple[str, str]) -> int | None:
    """The one option that a part of a reply names, in full or by a phrase of it; None for none and for both."""
    said = _REFERS.sub("", part) if _REFERS.match(part) else part
    said = _plain(_SENTENCE.split(_BRACKET.sub(" ", said).strip(), maxsplit=1)[0])
    if not said:
        return None
    cores = [_plain(option) for option in options]
    if said in cores:
        return cores.index(said) if cores[0] != cores[1] else None
    held = [number for number, core in enumerate(cores) if _within(core, said)]
    if len(held) == 2 and _nested(cores):
        shorter = min((0, 1), key=lambda number: len(cores[number]))
        rest = said.replace(cores[1 - shorter], " ")
        held = [0, 1] if _within(cores[shorter], rest) else [1 - shorter]
    if held:
        return held[0] if len(held) == 1 else None
    parts = [number for number, core in enumerate(cores) if _within(said, core)]
    return parts[0] if len(parts) == 1 else None


def _plain(text: str) -> str:
    """Small letters, without quotes, outer signs, article and possessive."""
    small = " ".join(re.sub(r"[\"“”‘]", "", text.casefold()).split()).strip(" .,;:!?-–—[]'")
    return _POSSESSIVE.sub("", _ARTICLE.sub("", small))


def _within(phrase: str, text: str) -> bool:
    return bool(phrase) and re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text) is not None


def _nested(cores: list[str]) -> bool:
    return _within(cores[0], cores[1]) or _within(cores[1], cores[0])


# -- as released


def read_as_released(reply: str, options: tuple[str, str], zero_shot: bool = False) -> tuple[int, int]:
    """What the notebook for CR-WSC-M reads: 0, 1, or -1 for neither.

    An answer that it does not find is the empty string, which its loose match finds in the first option. The notebook
    for CR-WSC-H stops at some replies; where this one does, too, both answers count as not found.
    """
    one, two = _released_zero_shot(reply) if zero_shot else _released_one_shot(reply)
    return _loosely(one, options), _loosely(two, options)


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
    one, two = (answer.replace(".", "") if answer.endswith(".") else answer for answer in _released_parts(cut, False))
    return one.replace('"', "").strip(), two.replace('"', "").strip()


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
    """The released `loosely_match_results`, with its traps: the empty string is in every option."""
    small = answer.lower()
    for number, option in enumerate(options):
        for said in (small, small.replace("the", "").strip(), small.replace("a", "").strip()):
            if said in option.lower():
                return number
    return -1
