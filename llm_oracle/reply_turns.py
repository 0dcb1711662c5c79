"""Finds the model's own answer in a reply: without its reasoning, and without what it writes after its turn.

A base model goes on behind its answer: with the next question, the next turn of a conversation, or the rest of a page.
"""

from __future__ import annotations

import re

_THOUGHTS = ("think", "thinking", "thought", "reasoning", "scratchpad", "reflection")
# Marks by which chat templates end a turn: `<|im_end|>`, `<|user|>`, `</s>`, `[/INST]`.
_TURN_ENDS = re.compile(r"<\|(?!channel\b|message\b)\w{1,30}\|>|</?s>|<(?:end|start)_of_turn>|\[/?INST\]")
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final<\|message\|>")
# `Assistant: `, `Answer:` on a line of its own, or the question again with `A: ` behind it.
_SPEAKER = re.compile(
    r"\s*(?:(?:q|question)\s*:[^\n]{1,500}\n\s*(?=(?:a|answer)\s*:))?"
    r"(?:(?:assistant|answer|response|output)\s*:?\s*\n|(?:assistant|answer|ai|bot|a)\s*:\s)",
    re.IGNORECASE,
)
_NEXT_PROMPT = re.compile(
    r"(?:#{1,6}\s*|\*\*)?(?:(?:question|q|user|human|instruction|prompt|input|assistant|exercise|problem|task|example|sentence|"
    r"statement|context|passage|topic)\s?\d*\s?:|(?:question|exercise|problem)\s\d+\W*$|"
    r"(?:instruction|response|human|user|assistant)\s*:?\s*$|"
    r"give me \d|list \d+\s|give me the correct|(?:def|class)\s+\w+\s?[(:]|import\s+\w+\s*$|#include\b)",
    re.IGNORECASE,
)
"""The line with which a base model begins another prompt: `Question:`, `### Human:`, `Give me 5`, code."""
_PAGE = re.compile(
    r"(?:=+\s*)?(?:share\s+(?:this|on)\b|posted\s+(?:by|in|on)\b|filed\s+under\b|tagged\b|tags\s*:|related\s+(?:posts?|articles?|stories)\W*$|leave\s+a\s+(?:reply|comment)|add\s+to\s+cart|customer\s+reviews|"
    r"(?:\d+\s+)?comments?\W*$|re\s*:\s|previous\s+(?:post|article)|next\s+(?:post|article)|copyright\b|©|all\s+rights\s+reserved|(?:external\s+links|see\s+also|references)\W*$|"
    r"(?:thanks\s+in\s+advance|cheers|best\s+regards|regards|sincerely)\b[^.]{0,30}$)",
    re.IGNORECASE,
)
"""Lines around the text of a web page or of a message, which a base model writes after its answer."""
_NUMBER = re.compile(r"\s*\**\(?(\d{1,4})[.)]")


def without_reasoning(text: str) -> tuple[str, str]:
    """The reasoning before the answer, and the answer, which is empty if the reasoning has no end."""
    final = list(_FINAL_CHANNEL.finditer(text))
    if final:
        return text[: final[-1].start()], text[final[-1].end() :]
    # Places in the folded text must be places in the text, and folding can lengthen it (`ß`).
    folded = text.casefold() if len(text.casefold()) == len(text) else text
    for name in _THOUGHTS:
        for opening, closing in ((f"<{name}>", f"</{name}>"), (f"[{name}]", f"[/{name}]")):
            end = folded.rfind(closing)
            if end >= 0:
                begin = folded.find(opening)
                before = text[:begin] if begin >= 0 else ""
                return text[max(begin, 0) : end + len(closing)], before + text[end + len(closing) :]
            begin = folded.find(opening)
            if begin >= 0:
                return text[begin:], text[:begin]
    answers = re.search(r"<answer>(.*?)(?:</answer>|\Z)", text, re.DOTALL | re.IGNORECASE)
    if answers and answers[1].strip():
        return text[: answers.start()], answers[1]
    return "", text


# `[[Nile]]` and `[[Nile (river)|Nile]]`, but not `[["Nile", "Egypt"]]`.
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\"',]{1,200}\|)?(?P<text>[^\[\]|\"',\d][^\[\]|\"',]{0,200})\]\]")


def first_turn(text: str) -> tuple[str, str]:
    """The model's own turn, without links of a wiki, and what it wrote after the mark that ends it."""
    text = _WIKI_LINK.sub(r"\g<text>", text)
    text = _SPEAKER.sub("", text, count=1) if _SPEAKER.match(text) else text
    begin = 0
    for match in _TURN_ENDS.finditer(text):
        if text[begin : match.start()].strip():
            return text[begin : match.start()], text[match.end() :]
        begin = match.end()  # a mark before any text begins the turn
    return text[begin:], ""


def own_text(text: str) -> tuple[str, str]:
    """The text up to the line with which a base model goes on with something else, and the rest.

    A line inside a numbered list, whose next number follows, is a part of the list.
    """
    lines = text.splitlines(keepends=True)
    begun = False
    number = 0
    for position, line in enumerate(lines):
        numbered = _NUMBER.match(line)
        number = int(numbered[1]) if numbered else number
        stripped = line.strip()
        goes_on = begun and line[:1].strip() and (_NEXT_PROMPT.match(stripped) or _PAGE.match(stripped))
        if goes_on and not _is_numbered_on(lines[position + 1 :], number):
            return "".join(lines[:position]), "".join(lines[position:])
        begun = begun or bool(stripped)
    return text, ""


def _is_numbered_on(lines: list[str], number: int) -> bool:
    """True if the next numbered line bears the number that follows."""
    following = next((match for line in lines if (match := _NUMBER.match(line))), None)
    return number > 0 and following is not None and int(following[1]) == number + 1


_STATEMENT = re.compile(
    r"\s*(?:import\s+\w+$|from\s+\w+\s+import\b|(?:async\s+)?def\s+\w+\(|class\s+\w+.*[:{]$|return\s|print\(|"
    r"(?:const|let|var)\s+\w+\s*=|function\s+\w*\(|#include\b|using\s+namespace|(?:for|while|if)\s*\(.*\{$)"
)
_CODE = re.compile(
    r"\s*(?:\w[\w.]*\(.*\);?$|\w[\w.]*\s*=\s*\S|[{}()\]]+;?$|//|.*[;{}]$|(?:for|if|while|with|elif)\s.*:$|else:$)"
)


def is_code(text: str) -> bool:
    """True if most lines of a text are code of a program."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    is_statement = [_STATEMENT.match(line) is not None for line in lines]
    is_code_line = [known or _CODE.match(line) is not None for known, line in zip(is_statement, lines, strict=True)]
    return any(is_statement) and sum(is_code_line) > 0.6 * len(lines)
