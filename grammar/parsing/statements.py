"""Text to statements, each with the diagnostics of its syntax. The language is in `rule.lark`.

Each statement is parsed alone, so that a syntax error ends where its statement ends.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, partial
from itertools import chain, count, pairwise
from typing import Any, TypeAlias

from lark import Token
from lark.exceptions import UnexpectedToken

from hapax.grammar.errors import Diagnostic, GoalRejected, Place
from hapax.grammar.goals import GOAL_PLACE, TAKE_GOALS
from hapax.grammar.parsing import syntax
from hapax.grammar.parsing.hints import DIAGNOSTICS_PER_FILE, hint
from hapax.grammar.parsing.rule_imports import RuleSource
from hapax.grammar.parsing.shorthand import BUILT_IN, ShorthandWriter
from hapax.grammar.parsing.syntax_hints import SYNTAX_HINTS, UNEXPECTED_TOKEN, Hint
from hapax.grammar.parsing.tree_builder import (
    TextTooLarge,
    built,
    place_of,
    refuse_depth,
    span,
    tokens_of,
)
from hapax.grammar.terms import INFIX_TESTS, TRUTHS
from hapax.grammar.writing.texts import NoConstant, unquoted

MAXIMUM_TOKENS = 10_000
"""Tokens per statement."""

MAXIMUM_GOAL = 100_000
"""Characters per goal."""

KEYWORDS = (
    *("import", "type", "oracle", "functional", "given", "derived", "computed", "aggregate", "opposite", "fact"),
    *("symmetric", "asymmetric", "irreflexive", "transitive", "closed", "disjoint", "never"),
)
_OPERATIONS = ("PLUS", "MINUS", "STAR", "SLASH", "DIVIDE", "POWER")
GOES_ON_AFTER = frozenset(
    ("AND", "OR", "COMMA", "ARROW", "NECK", "DEFINE", "COLON", "_CHANCE", "COMPARE", "LESS", "NOT", *_OPERATIONS)
)
"""Terminals after which a statement goes on over a newline."""
GOES_ON_BEFORE = GOES_ON_AFTER - {"NOT"}  # a line that begins with "not" is a new statement
_SHORT = frozenset(
    ("RANGE", "LBRACE", "LSQB", "OR", "or", "PERCENT", "_CHANCE", "mod", "in", *BUILT_IN, *_OPERATIONS, *TRUTHS)
)
"""Terminals, and words, of which one is in each statement with shorthand."""
_BEFORE_NOT = GOES_ON_AFTER | {"FACT", "NEVER", "_UNLESS"}
_JOINING = ("AND", "OR", "COMMA", "ARROW", "NECK")
_BEFORE_ITEM = frozenset(
    (*_JOINING, "NOT", "_CHANCE", "LPAR", "LBRACE", "FACT", "EXAMPLE", "NEVER", "GIVEN", "DERIVED", "_UNLESS", "THEN")
) | {"NOT_NOT", "HAT", "_GOALS"}
"""Terminals after which an item of a premise, a fact or a declared atom begins."""
_BEHIND_ITEM = frozenset((*_JOINING, "THEN", "RPAR", "RBRACE", "_UNLESS", "$END"))
_CLAUSES = {("closed", "NUMBER", "by"), ("import", "TEXT", "as"), ("functional", "TOLERANCE", "key")} | {
    (keyword, "RPAR", "key") for keyword in ("oracle", "functional", "given", "derived")
}
"""Words inside a statement that have a meaning there, after its keyword and the terminal before them."""
_COMMA = frozenset(("COMMA",))
ENDS_ITEM = frozenset(("RPAR", "RBRACE", "RSQB", "WORD", "NUMBER", "TEXT"))
"""Terminals that can end an item of a premise."""
_NOT_INSIDE_PARENTHESES = frozenset(("ARROW", "NECK", "DEFINE"))

_CONNECTIVES = {"and": "AND", "or": "OR"}
"""Words that join items of a premise, with their terminals."""

_GROUP = 3
"""Digits between the commas of a number that is written in groups."""

_BEFORE_NUMBER = frozenset(("COMPARE", "LESS", "COLON", *_OPERATIONS))
"""Terminals after which a number stands alone."""

_NEAR_KEYWORD = 0.75
"""Similarity from which a word is a misspelt keyword; two letters in another order leave .83 of six."""
_RUNS = "initialization"
_LOADS = ("use_module", "ensure_loaded")
_OF_FILES = {*_LOADS, "consult", "include", "load_files"}
"""Directives of Prolog that read another file, if this is no library."""
_DIRECTIVES = frozenset(
    (*_LOADS, _RUNS, "dynamic", "discontiguous", "multifile", "table", "set_prolog_flag", "style_check", "module")
)
"""Directives of Prolog that are ignored, because nothing here needs them."""

SourceToken: TypeAlias = Token
"""A token of a rule file with its place; only this module knows lark."""


def read_statements(file: str, text: str) -> RuleSource:
    """The statements of a text."""
    source = RuleSource(file)
    writer = ShorthandWriter(partial(_report, source))
    # Line ends of every system are one character here, also those of files that have carriage returns alone.
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    constants: dict[str, list[Token]] = {}
    statements = list(_statements(tokens_of(text)))
    writer.defined = {token.value for tokens in statements for token in _concluded(tokens)}
    for written in statements:
        tokens = list(_with_constants(written, constants))
        # The rest of such a file is not worth the time.
        if len(source.diagnostics) > 20 * DIAGNOSTICS_PER_FILE:
            break
        if tokens[0].type == "CONSTANT" and len(tokens) > 3:
            constants[tokens[1].value] = tokens[3:]
        elif _is_directive(tokens) and tokens[1].value not in writer.defined:
            continue
        elif tokens[0].value == ":-" and tokens[-1] is not tokens[0] and tokens[1].value in _OF_FILES - writer.defined:
            place = Place(file, *span(tokens[:2]))
            source.diagnostics.append(hint("directive").at(place, directive=f"{tokens[0]} {tokens[1]}"))
        elif asked := _asked(tokens, text):
            source.lines.append(syntax.RawLine("?-", (asked,), at=span(tokens)))
        else:
            source.lines += _read_statement(source, tokens, writer)
    source.lines += writer.added.values()
    return source


def _read_statement(source: RuleSource, tokens: list[Token], writer: ShorthandWriter) -> Iterable[syntax.RawNode]:
    """The nodes of a statement; its diagnostics go to the source."""
    near, count = _near_keywords(tokens), len(source.diagnostics)
    try:
        line = _parse(tokens)
        # `fcat p("a")` is an atom with a blank in its name.
        if isinstance(line, syntax.RawClause) and line.keyword == "fact" and near:
            source.diagnostics.append(_misspelt(source.file, tokens, near))
            return [syntax.BROKEN]
        if _SHORT.isdisjoint(token.value if token.type == "WORD" else token.type for token in tokens):
            return [line]
        plain = list(writer.statement(line))
        if count == len(source.diagnostics):
            return plain
    except TextTooLarge as error:
        source.diagnostics.append(hint(error.label).at(place_of(source.file, tokens[0]), limit=str(error.limit)))
    except UnexpectedToken as error:
        # Finding the hint costs a parse of all examples; diagnostics beyond the cap are only counted.
        if len(source.diagnostics) < DIAGNOSTICS_PER_FILE:
            source.diagnostics.append(_syntax_diagnostic(source.file, tokens, error))
        else:
            source.diagnostics.append(UNEXPECTED_TOKEN.at(place_of(source.file, tokens[0]), found="", expected=""))
    # The attributes before a broken one wait for their rule, unless it has that behind it, without a newline between.
    is_attribute = _keyword(tokens) == "@" and not any(token.type in ("ARROW", "NECK") for token in tokens)
    return [] if is_attribute else [syntax.BROKEN]


def _concluded(tokens: list[Token]) -> Iterator[Token]:
    """The names that a statement declares, states or concludes."""
    for index, token in enumerate(tokens):
        before = tokens[index - 1]
        if token.type == "WORD" and (index == 0 or before.type in ("ARROW", "_CHANCE") or before.value in KEYWORDS):
            yield token


def _with_constants(tokens: list[Token], constants: Mapping[str, list[Token]]) -> Iterator[Token]:
    """The tokens with the values of constants in the place of their names."""
    for token, following in pairwise([*tokens, Token("$END", "")]):
        is_name = token.value in constants and following.type != "LPAR"
        yield from (
            [Token.new_borrow_pos(part.type, part.value, token) for part in constants[token.value]]
            if is_name
            else [token]
        )


def _asked(tokens: list[Token], text: str) -> str:
    """The goal of `?- goal` and of `query(atom)`, which lists what its `_` stand for; empty for another statement."""
    kinds = [token.type for token in tokens]
    if kinds[0] == "ASK" and len(tokens) > 1:
        return text[tokens[1].start_pos : tokens[-1].end_pos]
    is_query = kinds[:2] == ["WORD", "LPAR"] and tokens[0].value == "query" and kinds[-1] == "RPAR"
    if not is_query or (kinds[2] != "NOT" and kinds[2:4] != ["WORD", "LPAR"]):
        return ""
    taken = {token.value for token in tokens}
    names = (name for number in count(1) if (name := f"V{number}") not in taken)
    end = tokens[-1].start_pos
    asked = ""
    for token in reversed(tokens[2:-1]):
        word = next(names) if token.value == "_" else text[token.start_pos : token.end_pos]
        asked, end = f"{word}{text[token.end_pos : end]}{asked}", token.start_pos
    return asked


def _report(source: RuleSource, label: str, at: syntax.Spot, **words: str) -> None:
    """Add the diagnostic of a hint to those of a file."""
    source.diagnostics.append(hint(label).at(Place(source.file, *at), **words))


def statement_tokens(text: str) -> tuple[list[Token], list[list[Token]]]:
    """All tokens of a text, newlines and full stops included, and those of each statement. Comments are not tokens."""
    tokens = list(tokens_of(text))
    return tokens, list(_statements(tokens))


def _statements(tokens: Iterable[Token]) -> Iterator[list[Token]]:
    """The token lists of the statements, which end at a full stop or at a newline that nothing carries on over."""
    current: list[Token] = []
    opened: list[bool] = []  # by open parenthesis, if it is one of arguments
    newlines = 0
    # An arrow inside parentheses, or "&" inside arguments: one was left open, so the next newline ends the statement.
    broken = False
    for token, following in pairwise(chain(tokens, [Token("$END", "")])):
        if token.type == "NEWLINE":
            newlines += 1
            continue
        starts_line, blank_line, newlines = newlines > 0, newlines > 1, 0
        is_torn = bool(opened) and opened[-1] and _is_torn(current[-1], token, following)
        may_end = starts_line and (not opened or broken or blank_line or is_torn)
        ends = may_end and not (_goes_on(current, token, blank_line) or _at_exception(current, token, following))
        # A keyword at the start of a line begins a statement even inside an open parenthesis.
        declares = starts_line and token.value in KEYWORDS and (bool(opened) or following.type in ("WORD", "TEXT"))
        if current and (ends or declares or token.type in ("ATTRIBUTE", "EXAMPLE")):
            yield current
            current, opened, broken = [], [], False
        if token.type == "DOT" and not _joins_names(current, token, following):
            if current:
                yield current
            current, opened, broken = [], [], False
            continue
        if token.type in ("LPAR", "LBRACE", "LSQB"):
            opened.append(token.type == "LPAR" and _opens_arguments(current))
        elif token.type in ("RPAR", "RBRACE", "RSQB") and opened:
            opened.pop()
        unclosed = token.type in _NOT_INSIDE_PARENTHESES or (token.type == "AND" and opened and opened[-1])
        broken = bool(opened) and (broken or bool(unclosed))
        current.append(token)
    if current:
        yield current


def _is_torn(last: Token, token: Token, following: Token) -> bool:
    """True if a list of arguments cannot go on with a token: a value ends an argument, and an atom is none."""
    begins_atom = token.type == "WORD" and following.type == "LPAR" and last.type != "COMMA"
    return begins_atom or (last.type in ("TEXT", "NUMBER") and token.type == "WORD")


def _opens_arguments(before: Sequence[Token]) -> bool:
    """True if a parenthesis after these tokens holds arguments, and no part of a premise or a calculation."""
    return bool(before) and before[-1].type == "WORD" and before[-1].value not in ("not", "unless")


def _goes_on(current: list[Token], token: Token, blank_line: bool) -> bool:
    """True if the statement `current` carries on over the newline before `token`.

    An operator at its end carries it over blank lines too; at the start of the next line only an arrow does, because no
    statement begins with one.
    """
    if not current:
        return False
    # Attributes go on only at a comma: the sign at the start of a broken rule below them is not theirs.
    after, before = (_COMMA, _COMMA) if current[0].type == "ATTRIBUTE" else (GOES_ON_AFTER, GOES_ON_BEFORE)
    return current[-1].type in after or (token.type in before and (not blank_line or token.type == "ARROW"))


def _joins_names(current: list[Token], dot: Token, following: Token) -> bool:
    """True for the dot in `food.is_in`, which stands between two words of a rule without a blank."""
    if not current or _keyword(current) or current[-1].type != "WORD" or following.type != "WORD":
        return False
    return current[-1].end_pos == dot.start_pos and dot.end_pos == following.start_pos


def _at_exception(current: list[Token], token: Token, following: Token) -> bool:
    """True if the line ends or begins with `unless`, `and` or `or`, which begin no statement."""
    words = ("unless", *_CONNECTIVES)
    begins = token.value in words and following.type not in ("LPAR", "$END")
    ends = len(current) > 1 and current[-1].value in words and current[-2].type in ENDS_ITEM
    return bool(current) and _keyword(current) == "" and (begins or ends)


def _parse(tokens: list[Token], start: str = "statement") -> Any:
    """The parsed statement, or the items of a goal. Raises UnexpectedToken or TextTooLarge."""
    if len(tokens) > MAXIMUM_TOKENS:
        raise TextTooLarge("too long", MAXIMUM_TOKENS)
    refuse_depth(tokens)
    return built(start, _with_parentheses(list(_with_keywords(tokens))), tokens)


def read_goal(text: str) -> syntax.RawPremise:
    """The items of a goal as they were written. Raises GoalRejected."""
    if len(text) > MAXIMUM_GOAL:
        diagnostic = hint("goal too long").at(Place(GOAL_PLACE), limit=str(MAXIMUM_GOAL))
        raise GoalRejected([diagnostic], {GOAL_PLACE: text})
    tokens = [token for token in tokens_of(text) if token.type != "NEWLINE"]
    # As at Prolog's prompt.
    tokens = tokens[1:] if tokens and tokens[0].type == "ASK" else tokens
    tokens = list(_of_goal(tokens[:-1] if tokens and tokens[-1].type == "DOT" else tokens))
    try:
        if tokens:
            return _parse(tokens, "goal")  # type: ignore[no-any-return]
        diagnostic = hint("empty goal").at(Place(GOAL_PLACE))
    except TextTooLarge as error:
        diagnostic = hint(error.label).at(place_of(GOAL_PLACE, tokens[0]), limit=str(error.limit))
    except UnexpectedToken as error:
        diagnostic = _syntax_diagnostic(GOAL_PLACE, tokens, error)
        if diagnostic.code == UNEXPECTED_TOKEN.code and (of_premise := _error_of_premise(tokens)):
            found = _syntax_diagnostic(GOAL_PLACE, tokens, of_premise)
            diagnostic = diagnostic if found.code == UNEXPECTED_TOKEN.code else found
    raise GoalRejected([diagnostic], {GOAL_PLACE: text}) from None


def _error_of_premise(tokens: list[Token]) -> UnexpectedToken | None:
    """The error of a goal as the premise of a rule, such as those of the examples: lark compares the whole stack."""
    rule = [Token("WORD", "goal"), Token("LPAR", "("), Token("RPAR", ")"), Token("NECK", ":-"), *tokens]
    try:
        _parse(rule)
    except UnexpectedToken as error:
        return error
    return None


def _of_goal(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens of a goal, with terminals of their own where they mean something else than in rules."""
    before = Token("$END", "")
    for token, following in pairwise([*tokens, before]):
        kind, words = token.type, [str(token)]
        if kind == "TEXT" and following.type == "LPAR":  # 'Reach'(X, Y)
            with suppress(NoConstant):
                kind, words = "WORD", [unquoted(token) or str(token)]
        elif kind == "WORD":
            words = re.split("(-)", token)  # Dish-Price is a pair
            kind = "NOT" if words == ["not"] else kind
            if words == ["is"] and before.type in ENDS_ITEM:
                kind, words = "COMPARE", [syntax.ASSIGN]
        elif kind == "LPAR" and before.type == "WORD" and before.value in TAKE_GOALS:
            kind = "_GOALS"
        else:
            kind = "THEN" if kind == "ARROW" else "HAT" if words == ["^"] else kind
        if kind == "NOT" and (following.type == "NOT" or following == "not"):
            kind = "NOT_NOT"
        for word in words:
            before = Token.new_borrow_pos("MINUS" if word == "-" != str(token) else kind, word, token)
            yield before


def _with_keywords(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with `type`, `oracle` ... and `not` as terminals of their own where they are not ordinary words."""
    before = ""
    depth = 0
    begins_premise = False  # after a parenthesis that holds a part of a premise
    is_rule = not _keyword(tokens)
    for index, token in enumerate(tokens):
        terminal = token.type
        depth += (terminal == "LPAR") - (terminal == "RPAR")
        if index == 0 and (keyword := _keyword(tokens)) in KEYWORDS:
            terminal = keyword.upper()
        # Inside an argument or a name `not` is an ordinary word, unless an atom follows: `evidence(not p(a))`.
        elif token.value == "not" and (
            index == 0
            or begins_premise
            or before in _BEFORE_NOT
            or (before == "LPAR" and [behind.type for behind in tokens[index + 1 : index + 3]] == ["WORD", "LPAR"])
        ):
            terminal = "NOT"
        elif is_rule and depth == 0 and before in ENDS_ITEM and _begins_exception(tokens, index):
            terminal = "_UNLESS"
        elif token.value in ("count", "sum", "min", "max", "mean", "avg") and _collects(tokens, index):
            terminal = "COLLECT"
        elif sign := _sign(tokens, index):
            terminal = sign
        elif depth == 0 and (tokens[0].value, before, token.value) in _CLAUSES:
            terminal = f"_{token.value.upper()}"
        value = token.value
        if terminal == "IN" and _is_in_range(tokens, index):
            terminal, value = "COMPARE", "="
        if terminal == "PERCENT":
            terminal, value = "MOD", "mod"
        yield token if terminal == token.type else Token.new_borrow_pos(terminal, value, token)
        begins_premise = terminal == "LPAR" and not _opens_arguments(tokens[:index])
        before = terminal


def _sign(tokens: list[Token], index: int) -> str:
    """The terminal of a word that stands for a sign, such as `mod`, `contains` or `and`; empty for another one."""
    word = str(tokens[index])
    if word in _SIGNS and _is_operation(tokens, index) and _SIGNS[word](tokens, index):
        return {"mod": "MOD", "in": "IN"}.get(word, "COMPARE")
    is_premise = _keyword(tokens) in ("", "never", "aggregate")
    return _CONNECTIVES[word] if is_premise and word in _CONNECTIVES and _ends_item(tokens[:index]) else ""


def _ends_item(tokens: list[Token]) -> bool:
    """True if the last of these tokens ends an item of a premise: a bracket, a value, or a variable after a sign."""
    if not tokens or tokens[-1].type not in ENDS_ITEM:
        return False
    if tokens[-1].type != "WORD":
        return True
    for token in reversed(tokens[:-1]):
        if token.type in _BEHIND_ITEM or token.type == "LPAR" or token.value in _CONNECTIVES:
            return False
        if token.type in ("COMPARE", "LESS") or token.value in INFIX_TESTS:
            return True
    return False


def _with_parentheses(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with parentheses after each word that is an atom without arguments: `wet :- raining`."""
    premises = [True]  # by open parenthesis, and for the whole statement, if it holds items of a premise
    begins_item = True
    for index, (token, following) in enumerate(pairwise([*tokens, Token("$END", "")])):
        yield token
        if token.type == "_GOALS":
            premises.append(True)
        elif token.type == "LPAR":
            premises.append(premises[-1] and begins_item and not _holds_values(tokens[index:]))
        elif token.type in ("LBRACE", "LSQB"):
            premises.append(token.type == "LBRACE")
        elif token.type in ("RPAR", "RBRACE", "RSQB") and len(premises) > 1:
            premises.pop()
        elif token.type == "COLON" and len(premises) == 2 and any(before.type == "DEFINE" for before in tokens[:index]):
            premises[-1] = True  # after what an aggregate counts
        elif token.type == "_KEY":
            premises[-1] = False  # columns follow
        is_name = token.type == "WORD" and not token.value[0].isupper() and token.value[0] != "_"
        if is_name and premises[-1] and begins_item and following.type in _BEHIND_ITEM:
            yield Token.new_borrow_pos("LPAR", "(", token)
            yield Token.new_borrow_pos("RPAR", ")", token)
        begins_item = token.type in _BEFORE_ITEM or (token.type == "COLON" and premises[-1])


def _holds_values(tokens: list[Token]) -> bool:
    """True if the parenthesis that begins these tokens holds a side of a comparison, as `(A, b) < (C, D)`."""
    depth = 0
    for token, following in pairwise([*tokens, Token("$END", "")]):
        depth += (token.type in ("LPAR", "_GOALS")) - (token.type == "RPAR")
        if depth == 0:
            return following.type in ("COMPARE", "LESS", *_OPERATIONS)
    return False


def _collects(tokens: list[Token], index: int) -> bool:
    """True for the `sum` of `sum P * N : { ... }`."""
    for token, following in pairwise(tokens[index + 1 :]):
        if token.type == "COLON":
            return following.type == "LBRACE"
        if token.type not in ("WORD", "NUMBER", "TEXT", "LPAR", "RPAR", *_OPERATIONS):
            return False
    return False


def _is_operation(tokens: list[Token], index: int) -> bool:
    """True for a word between two operands, of which the first is a number, a variable or in brackets."""
    if not 0 < index < len(tokens) - 1:
        return False
    before, behind = tokens[index - 1], tokens[index + 1]
    is_operand = before.type in ("NUMBER", "TEXT", "RPAR") or (before.type == "WORD" and before.value[0].isupper())
    return is_operand and behind.type in ("NUMBER", "TEXT", "WORD", "LPAR", "LSQB", "MINUS")


def _is_assignment(tokens: list[Token], index: int) -> bool:
    """True for the `is` of `M is N + 1`, but not for that of `X is tasty`."""
    behind = tokens[index + 1 : index + 3]
    names_value = len(behind) == 2 and behind[0].type == "WORD" and not behind[0].value[0].isupper()
    return tokens[index - 1].type in ("WORD", "NUMBER") and not (names_value and behind[1].type != "LPAR")


def _is_in_range(tokens: list[Token], index: int) -> bool:
    """True for the `in` of `X in 1..5`, which says the same as `=`."""
    first, *others = tokens[index + 1 : index + 4]
    return first.type not in ("LPAR", "LSQB") and "RANGE" in [token.type for token in others]


_SIGNS: dict[str, Callable[[list[Token], int], bool]] = {
    "mod": lambda tokens, index: tokens[index + 1].type != "LSQB",
    "in": lambda tokens, index: tokens[index + 1].type in ("LPAR", "LSQB") or _is_in_range(tokens, index),
    "is": _is_assignment,
    **{test: lambda tokens, index: tokens[index + 1].type != "LPAR" for test in INFIX_TESTS},
}
"""Words that are signs between two operands, each with the condition that it is one."""


def _begins_exception(tokens: list[Token], index: int) -> bool:
    """True for the word `unless` that is not the name of an atom: a predicate may be called so."""
    follows_word = tokens[index - 1].type == "WORD"
    is_name = follows_word and index + 1 < len(tokens) and tokens[index + 1].type == "LPAR"
    return tokens[index].value == "unless" and not is_name


def _is_directive(tokens: list[Token]) -> bool:
    """True for a directive of Prolog that changes nothing here.

    What `initialization` would run is at most a name, and what is loaded is a library of Prolog.
    """
    sign, *words = (token.value for token in tokens)
    if sign != ":-" or not words or words[0] not in _DIRECTIVES:
        return False
    return "library" in words if words[0] in _LOADS else words[0] != _RUNS or words.count("(") <= 1


def _keyword(tokens: list[Token]) -> str:
    """The keyword that begins the statement, "@" for attributes, "" for rules."""
    if tokens[0].type == "ATTRIBUTE":
        return "@"
    if tokens[0].type == "EXAMPLE":
        return "@example"
    is_name = len(tokens) > 1 and tokens[1].type == "LPAR"  # a predicate may be called `type`
    return tokens[0].value if tokens[0].value in KEYWORDS and not is_name else ""


# Syntax errors

_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
"""Signs that look like the hyphen of an arrow or a minus."""


def _near_keywords(tokens: list[Token]) -> list[str]:
    """The two keywords at most that a malformed statement may begin with, the likelier one first."""
    if _keyword(tokens) or len(tokens) < 2 or tokens[0].type != "WORD" or tokens[1].type != "WORD":
        return []
    return get_close_matches(str(tokens[0]), KEYWORDS, 2, _NEAR_KEYWORD)


def _misspelt(file: str, tokens: list[Token], near: Sequence[str]) -> Diagnostic:
    """The diagnostic of a statement that begins with a word near these keywords."""
    place, word = place_of(file, tokens[0]), str(tokens[0])
    fault = hint("misspelt keyword").at(place, word=word, keyword=near[0])
    # Two keywords may be equally near; a fix leaves no choice.
    return fault.with_fix(word, near[0]) if len(near) == 1 else fault


def _unknown_character(place: Place, sign: str) -> Diagnostic:
    """The diagnostic of a sign that the language does not have; it may be invisible, or look like another one."""
    fault = hint("unknown character").at(place, character=f'"{sign}" (U+{ord(sign):04X})')
    if unicodedata.category(sign) == "Cf":
        return fault.with_fix(sign, "")
    return fault.with_fix(sign, "-") if sign in _DASHES else fault


def _syntax_diagnostic(file: str, tokens: list[Token], error: UnexpectedToken) -> Diagnostic:
    """The diagnostic of the hint with an example that fails in the same parser state, else the expected tokens."""
    if near := _near_keywords(tokens):
        return _misspelt(file, tokens, near)
    if grouped := grouped_digits(file, tokens):
        return grouped
    if tokens[0].type == "DIRECTIVE":
        place, word = place_of(file, tokens[0]), str(tokens[0])
        return hint("directive").at(place, directive=word)
    at_end = error.token.type == "$END"
    place, sign = place_of(file, tokens[-1] if at_end else error.token), str(error.token)
    if error.token.type == "UNKNOWN":
        return _unknown_character(place, sign)
    dot = next((index for index, token in enumerate(tokens) if token is error.token and token.type == "DOT"), 0)
    if dot and [token.type for token in tokens[dot - 1 : dot + 2]] == ["WORD", "DOT", "WORD"]:
        prefix, name = tokens[dot - 1], tokens[dot + 1]
        return hint("dotted name").at(Place(file, *span([prefix, name])), prefix=str(prefix), name=str(name))
    is_neck = error.token.type == "NECK"
    before = {token.type for token in tokens if is_neck and token.start_pos < error.token.start_pos}
    if "OR" in before and before.isdisjoint(("NECK", "ARROW")):
        return hint("disjunction").at(place)
    # Only examples of the same kind of statement: the parser's state does not tell a fact's atom from a rule's.
    kinds, keyword = _example_tokens(), _keyword(tokens)
    examples: list[tuple[Hint, list[str]]] = []
    signs = Counter(token.type for token in tokens)
    # A parser's state may be that of an example without the sign that its hint speaks of.
    absent = {
        "negation of a non-atom": not signs["NOT"] and "not" not in tokens,
        "unclosed parenthesis": signs["LPAR"] <= signs["RPAR"],
        "extra parenthesis": signs["LPAR"] >= signs["RPAR"],
    }
    for entry in SYNTAX_HINTS:
        if not absent.get(entry.label):
            examples.append((entry, [text for text in entry.examples if _keyword(kinds[text]) == keyword]))
    matching_hint = error.match_examples(
        lambda text: _parse(kinds[text]),  # lark only asks for the error's state
        examples,
        token_type_match_fallback=True,
        use_accepts=False,
    )
    if matching_hint is not None:
        return matching_hint.at(place)
    found = "the end of the statement" if at_end else f'"{sign[:20]}"'
    expected = sorted({_TERMINAL_NAMES[name] for name in error.expected if name in _TERMINAL_NAMES})
    return UNEXPECTED_TOKEN.at(place, found=found, expected=" or ".join(expected) or "the end of the statement")


def grouped_digits(file: str, tokens: Sequence[Token]) -> Diagnostic | None:
    """The diagnostic of the first number such as `1,000` or `3,5` after a sign or a column's name."""
    for index, token in enumerate(tokens):
        signs = tokens[max(0, index - 1) : index]
        if token.type != "NUMBER" or not signs or signs[0].type not in _BEFORE_NUMBER:
            continue
        last, groups = index, [str(token)]
        while [part.type for part in tokens[last + 1 : last + 3]] == ["COMMA", "NUMBER"]:
            comma, group = tokens[last + 1 : last + 3]
            if (comma.start_pos, group.start_pos) != (tokens[last].end_pos, comma.end_pos):
                break
            groups.append(str(group))
            last += 2
        if plain := _without_commas(groups):
            place = Place(file, *span(tokens[index : last + 1]))
            return hint("grouped digits").at(place, number=",".join(groups), plain=plain)
    return None


def _without_commas(groups: Sequence[str]) -> str:
    """The number that `1,000.5` or, with a decimal comma, `2.071,01` is meant to be; empty for other texts."""
    first, *rest = groups
    if not rest:
        return ""
    if first.isdigit() and len(first) <= _GROUP and all(len(group.partition(".")[0]) == _GROUP for group in rest):
        return "".join(groups)
    return f"{first.replace('.', '')}.{rest[0]}" if len(rest) == 1 and rest[0].isdigit() else ""


@cache
def _example_tokens() -> dict[str, list[Token]]:
    """The examples as tokens."""
    tokens: dict[str, list[Token]] = {}
    for entry in SYNTAX_HINTS:
        for text in entry.examples:
            tokens[text] = next(_statements(tokens_of(text)))
    return tokens


_TERMINAL_NAMES = {
    "WORD": "a word",
    "TEXT": "a quoted text",
    "NUMBER": "a number",
    "LPAR": '"("',
    "RPAR": '")"',
    "COMMA": '","',
    "AND": '"&"',
    "OR": '"|"',
    "ARROW": '"->"',
    "NECK": '":-"',
    "COLON": '":"',
    "TOLERANCE": "a tolerance",
    "DEFINE": '":="',
    "LESS": '"<"',
    "_UNLESS": '"unless"',
    "SLASH": '"/"',
    "_BY": '"by"',
    "_AS": '"as"',
    "COMPARE": "a comparison sign",
    "$END": "the end of the statement",
}
