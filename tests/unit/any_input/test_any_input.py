"""Inputs of any kind: files, goals, values of Prolog and replies are read, or rejected with a reason."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from any_input import assert_explained, check_any_input, text_of

from hapax.engine.entailment.graph import read_entailments
from hapax.engine.expansion.propose import UnusableReply, read_conclusions, read_predicate, read_types
from hapax.engine.prolog.limits import QueryLimits
from hapax.engine.prolog.program import answers_program
from hapax.engine.prolog.session import LimitExceeded, PrologError, PrologSession, _decoded
from hapax.evaluation.entailment.pairs import read_levy_holt, read_scores, read_sherliic
from hapax.evaluation.link.lint_import import LintReader, read_flips
from hapax.evaluation.votes.sheets import import_sheets
from hapax.grammar.errors import HapaxError
from hapax.grammar.goals import BUILT_INS, PrologCall, every_item
from hapax.grammar.parsing.parser import parse_goal, parse_library, read_texts
from hapax.grammar.rules import Library
from hapax.grammar.terms import Literal
from hapax.grammar.writing.prolog_text import GoalText, prolog_atom, prolog_value
from hapax.kb.exchange.fact_export import export_facts
from hapax.kb.exchange.tables import import_facts
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.reading.link_replies import (
    LONGEST_LINE,
    LONGEST_VALUE,
    MOST_LINES,
    first_items,
    parse_number,
    parse_values,
    parse_yes_no,
    without_values,
)
from hapax.llm_oracle.reading.replies import read_reply
from hapax.llm_oracle.reading.reply_question import DropReason, ReplyQuestion
from hapax.llm_oracle.servers.openai_aliases import read_aliases
from hapax.llm_oracle.servers.openai_batch import BatchQueue

# --- file -------------------------------------------------------------------------------------------------------------


SEEDS = (
    b'cpredicate,argument1,argument2\nwrote,George Orwell,"""1984"""\nwas_born_in,Ada,1815\n',
    b'j{"predicate": "p", "arguments": ["Ada", {"decimal": "1.50"}, 3], "types": ["A", "B", "C"]}\n',
    b"l"
    b'{"rule0": {"premise_map": {"p(A, B)": "[A] is in [B]"}, "conclusion_map": {"q(A, B)": null},'
    b' "variables": {"A": ["A", "Person", true, null], "B": ["B", "Food", false, "factual"]}}}',
    b"iA,B,X\nsalt,dough,PersonX\n",
    b'f{"m": {"rule2": {"head": [0], "longtail": []}}}',
    b"v"
    b"kind,sheet,voter,row,rows,section,item,question,text,asked,answer,check\nstatements,s-1,ann,1,1,,x,q,t,a,yes,c-1\n",
    b'v{"format": "hapax votes 1", "sheet": "s", "rows": [{"row": 1, "item": "x"}]}',
    b"hjohn,bought,car\tjohn,owns,car\tTrue\tEN\n(buy.1,buy.2) john::person car::thing\ta,b,c\tFalse\n",
    b"sa,b\n" + b",".join([b"x"] * 17 + [b"yes"] + [b"x"] * 4) + b"\n",
    b"n1 0.5\n0 -3\n",
    b"ebuys(Person A, Thing B)\towns(Person A, Thing B)\t0.9\n",
    b"a- model_id: x\n  model_name: y\n  rpm: 5\n",
    b'b{"custom_id": "x", "response": {"status_code": 200, "body": {"choices": []}}}\n',
)
RULES = "p(Thing A, Thing B) -> q(Thing A, Thing B)."


def check(data: bytes) -> None:
    """Raise if the contract is broken. The first byte chooses the reader; the rest is the file."""
    reader = READERS.get(data[:1])
    if reader is None:
        return
    try:
        reader(data[1:])
    except HapaxError as error:
        assert_explained(error)


def _facts(form: str) -> Callable[[bytes], None]:
    """A reader of facts that also exports and imports them again."""

    def read(data: bytes) -> None:
        with KnowledgeBase() as kb, KnowledgeBase() as copy:
            import_facts(kb, io.StringIO(text_of(data), newline=""), form=form)
            for written in ("csv", "jsonl", "prolog"):
                file = io.StringIO(newline="")
                report = export_facts(kb, file, form=written)
                if written != "prolog":
                    assert not report.left_out
                    file.seek(0)
                    import_facts(copy, file, form=written)
                    assert {fact.id for fact in kb.facts()} == {fact.id for fact in copy.facts()}

    return read


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], None]:
    """A reader of bytes for a reader of files."""

    def write_and_read(data: bytes) -> None:
        path = Path(_folder().name) / name
        path.write_bytes(data)
        read(path)

    return write_and_read


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="hapax-fuzz-")


@cache
def _library() -> Library:
    return parse_library([("f.rules", RULES)])


def _sheet(path: Path) -> None:
    with KnowledgeBase() as kb:
        import_sheets(kb, [path])


def _queue(path: Path) -> None:
    BatchQueue(path.with_name("queue.jsonl"), [path])


READERS: dict[bytes, Callable[[bytes], object]] = {
    b"c": _facts("csv"),
    b"j": _facts("jsonl"),
    b"l": lambda data: read_texts([("rules.json", text_of(data))]),
    b"i": _file("rule1_value_cache.csv_head", lambda path: LintReader(_library(), path.parent).files()),
    b"f": _file("flip_label_data.json", lambda path: read_flips(path, "m")),
    b"v": _file("sheet.csv", _sheet),
    b"h": _file("pairs.txt", read_levy_holt),
    b"s": _file("pairs.csv", read_sherliic),
    b"n": _file("scores.txt", read_scores),
    b"e": _file("edges.tsv", lambda path: read_entailments(Library(), path)),
    b"a": _file("aliases.yaml", read_aliases),
    b"b": _file("results.jsonl", _queue),
}


def test_any_file() -> None:
    """A reader returns or says what is wrong, and exported facts come back the same."""
    check_any_input(check, SEEDS)


# --- goal -------------------------------------------------------------------------------------------------------------


LIBRARY = parse_library(
    [("f.rules", "oracle p(Thing).\noracle q(Thing, Thing).\ncomputed is_less(Number A, Number B) := A < B.")]
)
CALLABLE = {*BUILT_INS, "^/2"}
KNOWN = {"p/1", "q/2", "is_less/2"}
LIMITS = QueryLimits(seconds=2, inferences=20_000, answers=20, memory_mb=128)
NEVER = ("refused", "syntax_error", "died", "load", "unavailable", "error")
"""Kinds of Prolog errors that an allowed goal cannot cause."""

GOAL_SEEDS = (
    b"p(X), \\+ q(X, 'soy milk'); X = \"a\\\\b\"",
    b"findall(X-Y, q(X, Y), [H|T]), length(T, N), N > 3 * (2 - 1)",
    b"aggregate_all(max(X, Y), q(X, Y), max(A, B)), setof(X, Y^q(X, Y), L)",
    b"X is 7 // 2 mod 3 + abs(-1.5e3), between(1, 5, X), forall(p(X), q(X, _))",
    b"system:shell(ls)",
    b"p('\\x41\\'), q(\"\", '\xc3\xa9')",
)


def goal_check(data: bytes) -> None:
    """Raise if the contract is broken."""
    text = text_of(data)
    try:
        goal = parse_goal(text, LIBRARY)
        written = GoalText(LIBRARY).of(goal.premise)
    except HapaxError as error:
        assert_explained(error)
        return
    items = list(every_item(goal.premise))
    assert {item.indicator for item in items if isinstance(item, PrologCall)} <= CALLABLE
    assert {item.atom.indicator for item in items if isinstance(item, Literal)} <= KNOWN
    try:
        _session().solutions(written, goal.variables, LIMITS)
    except LimitExceeded:
        return
    except PrologError as error:
        if error.kind in NEVER:
            raise


@cache
def _session() -> PrologSession:
    session = PrologSession()
    session.load(answers_program(LIBRARY, []))
    return session


def test_any_goal() -> None:
    """A goal is refused with a reason, or calls nothing but allowed predicates."""
    power = b"X is 7 /- 2  / abs(-55e1333333333333333333333333333333333333333333333)` \xff_))"
    check_any_input(goal_check, GOAL_SEEDS, [power], 30)


# --- value ------------------------------------------------------------------------------------------------------------


VALUE_SEEDS = (
    b"rl2:a3:abci42;q3/2;f1.5;e1:a4:donea0:",
    b"rc1:a1:fl2:v2:_Gs3:x\ny",
    b"it's \\ \"x\" \t\r\n'), halt, ('",
    b"-1876.50",
    "\U0001f600é\u202e\x00\x7f".encode(),
)
CRASHES = (
    b"rl1:q1/" + b"17" * 1200 + b";e",
    b"rl1:i" + b"9" * 5000 + b";e1:a4:donea0:",
    b"rc-1:",
    b"rl1:a-9:xe1:a0:",
    b"rq1/0;",
    b"rl1:ix;",
)
_NUMBER = re.compile(r"-?[0-9]{1,1000}(?:\.[0-9]{1,20})?(?:[eE]-?[0-9]{1,4})?")
MOST_TEXT = 200
"""Characters of the longest input that also goes through Prolog, which takes longer than all the rest."""


def value_check(data: bytes) -> None:
    """Raise if the contract is broken."""
    check_decoding(data)
    check_quoting(text_of(data))


def check_decoding(data: bytes) -> None:
    """Decode bytes that a goal's process might write in the host's place."""
    try:
        rows, end = _decoded(data)
    except PrologError as error:
        if error.kind != "size":
            raise
        return
    assert isinstance(rows, list)
    assert end is None or all(isinstance(part, str) for part in end)


def check_quoting(text: str) -> None:
    """Quote the text as a value and, if it is a number, as this number."""
    values: list[str | int | Decimal] = [text]
    if _NUMBER.fullmatch(text):
        values.append(int(text) if text.lstrip("-").isdigit() else Decimal(text))
    for value in values:
        try:
            written = prolog_value(value)
        except HapaxError as error:
            assert_explained(error)
            continue
        assert "\n" not in written
        assert "\0" not in written
        if len(text) <= MOST_TEXT:
            assert _through_prolog(written) == value
    try:
        assert prolog_atom(text)
    except HapaxError as error:
        assert_explained(error)


def _through_prolog(written: str) -> object:
    ((value,),) = _value_session().solutions(f"X = {written}", ("X",), QueryLimits(seconds=5)).rows
    return value


@cache
def _value_session() -> PrologSession:
    session = PrologSession()
    session.load(":- dynamic e/1.\ne(alive).\n")
    return session


def test_any_prolog_value() -> None:
    """A value is rejected or comes back from Prolog unchanged, and bytes of a goal's process are rows or rejected."""
    check_any_input(value_check, VALUE_SEEDS, CRASHES, 30)


# --- reply ------------------------------------------------------------------------------------------------------------


REPLY_SEEDS = (
    b'1. Crohn\'s disease.\n2. asthma.\n3) "type 2 diabetes".\n- *shellfish* (all kinds).',
    b'```json\n["a", "b"]\n```\nSure! Here are the values of A:\n1. the year 1,876 BC.',
    b"Yes, it isn't wrong.",
    b"or",
    "1. ‘Über’ — “quoted”.\n2. \u202eevil.\n3. −1876.\n4. ½.".encode(),
    b"<![if x]><li>asthma</li><item>hay fever</item><!-- x -->\nName,Kind\nasthma,lung",
)


def reply_check(data: bytes) -> None:
    """Raise if the contract is broken."""
    text = text_of(data)
    for numeric in (False, True):
        parsed = parse_values(text, "A", "Number" if numeric else "Food Allergen", numeric)
        assert len(parsed) <= MOST_LINES + 1
        for item in parsed:
            assert len(item.raw) <= LONGEST_LINE + 1
            assert len(str(item.value)) <= LONGEST_LINE
            if item.rejected is None:
                assert isinstance(item.value, int | Decimal) if numeric else _is_plain(item.value)
        question = ReplyQuestion("A", "Number" if numeric else "Food Allergen", "PersonX is allergic to [A]", numeric)
        reply = read_reply(text, question, "length" if len(text) % 2 else "stop")
        assert len(reply.entries) <= MOST_LINES + 1
        assert all(isinstance(value, int | Decimal) if numeric else _is_plain(value) for value in reply.values)
        assert all(isinstance(entry.rejected, DropReason) for entry in reply.dropped)
    parse_number(text)
    parse_yes_no(text)
    without_values(text, text.splitlines()[:3])
    first_items(text, 2)
    list(read_types(text))
    list(read_conclusions(text, ("A", "B")))
    with suppress(UnusableReply):
        read_predicate(text)


def _is_plain(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_VALUE:
        return False
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in value)


def test_any_reply() -> None:
    """Reading a reply never raises, but for its refusal where a verb is wanted, and what is accepted is short and printable."""
    check_any_input(reply_check, REPLY_SEEDS)
