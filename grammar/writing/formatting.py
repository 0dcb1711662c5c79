"""The one layout of rule files: blanks, signs and line ends are settled; lines, their order and comments stay."""

from __future__ import annotations

from dataclasses import dataclass, field

from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.parsing.parser import parse_statements
from hapax.grammar.parsing.statements import GOES_ON_BEFORE, SourceToken, statement_tokens
from hapax.grammar.parsing.syntax import COMPARISONS

_SIGNS = {"ARROW": "->", "AND": "&", "OR": "|", "NOT": "not"}
"""The sign that stands for all spellings of a terminal."""
_TIGHT_BEFORE = frozenset(("COMMA", "RPAR", "DOT", "COLON", "RANGE"))
_OPERATORS = frozenset(
    (
        "AND",
        "OR",
        "ARROW",
        "NECK",
        "DEFINE",
        "PLUS",
        "MINUS",
        "STAR",
        "SLASH",
        "COMPARE",
        "LESS",
        "COMMA",
        "LPAR",
        "COLON",
    )
)
"""Terminals after which a minus is a sign."""
_INDENT = "  "


@checked
def format_rules(text: str, name: str = "rules") -> str:
    """The text of a rule file in the one layout of `hapax rules fmt`: the same rules and comments.

    `name` stands in error messages for a file's name. A continued line is indented, arrows and signs have one spelling,
    every statement begins a line, and full stops are dropped where a line ends the statement. Raises RulesRejected for
    a text that cannot be parsed.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if diagnostics := parse_statements(name, text):
        raise RulesRejected(diagnostics, {name: text})
    result = _Layout(text).formatted()
    # A layout that reads differently is a defect here; the file is kept rather than its rules changed.
    if _content(result) != _content(text):
        raise HapaxError(f"{name}: the layout would change the rules. Please report this file; it stays as it is.")
    return result


def _content(text: str) -> list[list[str]]:
    """The statements without blanks, comments and spellings."""
    return [list(map(_spelling, tokens)) for tokens in statement_tokens(text)[1]]


def _spelling(token: SourceToken) -> str:
    if token.type == "COMPARE":
        return COMPARISONS.get(str(token), str(token))
    return _SIGNS.get(token.type, str(token))


@dataclass(slots=True)
class _Layout:
    """The lines of a file as they are laid out."""

    text: str
    lines: list[str] = field(default_factory=list)
    current: str = ""

    def formatted(self) -> str:
        tokens, statements = statement_tokens(self.text)
        begins = {statement[0].start_pos for statement in statements}
        properties = {statement[2].start_pos for statement in statements if _is_property(statement)}
        before: list[SourceToken] = []  # tokens of the statement so far
        position = 0
        for index, token in enumerate(tokens):
            # Comments are no tokens: a comment is the text between two of them.
            self._comment(position, token.start_pos or 0)
            position = token.end_pos or 0
            if token.type == "NEWLINE":
                self._end_line()
                continue
            if token.type == "DOT":
                before = []
                following = next((later.type for later in tokens[index + 1 :] if later.type != "NEWLINE"), "")
                # Without the full stop a line that begins with a minus would continue this one.
                if following in GOES_ON_BEFORE:
                    self.current += "."
                continue
            if token.start_pos in begins:
                before = []
                if self.current:
                    self._end_line()
            if self.current:
                self.current += _gap(before, token, properties)
            elif before:
                self.current = _INDENT
            self.current += _spelling(token)
            before.append(token)
        self._comment(position, len(self.text))
        self._end_line()
        return "\n".join(self.lines).strip("\n") + "\n" if any(self.lines) else ""

    def _comment(self, start: int, end: int) -> None:
        """Add the comment between two tokens, if there is one."""
        comment = self.text[start:end].strip()
        if comment:
            self.current += f"  {comment}" if self.current else comment

    def _end_line(self) -> None:
        """End the line. Of several blank lines, keep one."""
        line, self.current = self.current.rstrip(), ""
        if line or (self.lines and self.lines[-1]):
            self.lines.append(line)


def _is_property(statement: list[SourceToken]) -> bool:
    """True for `symmetric p/2` and the like, whose slash has no blanks."""
    return [token.type for token in statement[:3]] == ["WORD", "WORD", "SLASH"]


def _gap(before: list[SourceToken], token: SourceToken, properties: set[int | None]) -> str:
    """The blanks between the token and those before it on the line."""
    if not before:
        return ""
    last = before[-1]
    opens_arguments = token.type == "LPAR" and last.type == "WORD" and last.value not in ("not", "unless")
    if token.type in _TIGHT_BEFORE or last.type in ("LPAR", "RANGE") or opens_arguments:
        return ""
    # `A - 1` has a blank after the minus, `= -1` has none.
    is_sign = last.type == "MINUS" and (len(before) < 2 or before[-2].type in _OPERATORS)
    return "" if is_sign or {token.start_pos, last.start_pos} & properties else " "
