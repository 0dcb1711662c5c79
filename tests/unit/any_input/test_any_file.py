"""Any file that users import is read or refused with a reason; exported facts are imported unchanged."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from any_input import assert_explained, check_any_input, text_of

from hapax.engine.entailment.graph import read_entailments
from hapax.evaluation.entailment.pairs import read_levy_holt, read_scores, read_sherliic
from hapax.evaluation.link.lint_import import LintReader, read_flips
from hapax.evaluation.votes.sheets import import_sheets
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.parser import parse_library, read_texts
from hapax.grammar.rules import Library
from hapax.kb.exchange.fact_export import export_facts
from hapax.kb.exchange.tables import import_facts
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.servers.openai_aliases import read_aliases
from hapax.llm_oracle.servers.openai_batch import BatchQueue

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
