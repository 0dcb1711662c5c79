"""Facts from and to files."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.exchange import cell_text, export_facts, import_facts, parse_cell
from hapax.kb.intake import FactsRejected, RulesForFacts
from hapax.kb.records import FactRecord, PredicateRecord, Source
from hapax.kb.store import KnowledgeBase

ANY_VALUE = st.one_of(st.text(), st.integers(), st.decimals(allow_nan=False, allow_infinity=False))
HARD_TEXTS = st.sampled_from(
    [
        "",
        " ",
        "1984",
        "-0",
        "1.5",
        "1E+5",
        '"',
        '"x"',
        '{"decimal": "1"}',
        '{"decimal',
        "a,b",
        "a\nb",
        "\r",
        "\0",
        "predicate",
        "true",
    ]
)
FACTS = st.lists(
    st.builds(
        lambda predicate, arguments: FactRecord(predicate, tuple(arguments), (), Source.GIVEN),
        st.sampled_from(["predicate", "is_old", "ünder", "X"]),
        st.lists(ANY_VALUE | HARD_TEXTS, min_size=1, max_size=4),
    ),
    max_size=8,
    unique_by=lambda fact: fact.id,
)


def imported(text: str, form: str = "csv", **options: bool) -> list[FactRecord]:
    """The facts of a text, through an empty knowledge base."""
    with KnowledgeBase() as kb:
        import_facts(kb, io.StringIO(text), form=form, **options)
        return kb.facts()


def exported(kb: KnowledgeBase, form: str) -> str:
    stream = io.StringIO()
    export_facts(kb, form, stream)
    return stream.getvalue()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@given(FACTS)
@settings(max_examples=cases(12), deadline=None)
def test_what_is_exported_imports_as_the_same_facts(form, facts):
    """Facts with any texts and numbers survive the way through a file, exactly."""
    with KnowledgeBase() as kb:
        kb.add_facts(facts)
        again = imported(exported(kb, form), form)

    assert sorted(map(repr, again)) == sorted(map(repr, facts))


@given(ANY_VALUE | HARD_TEXTS)
def test_a_cell_reads_back_as_its_value(value):
    """The text of a CSV cell says whether it is a text, an integer or a decimal."""
    assert repr(parse_cell(cell_text(value))) == repr(value)


def test_csv_rows_become_given_facts():
    """Numbers are numbers, texts are texts, a header and empty rows do not count."""
    text = (
        "predicate,who,when\nwas_born_in,Ada, 1815 \n\n"
        'is_called,1984,"""1984"""\ncosts,tea,2.50\ncode,007\npadded,a,,\n'
    )

    assert [(fact.predicate, *fact.arguments) for fact in imported(text)] == [
        ("was_born_in", "Ada", 1815),
        ("is_called", 1984, "1984"),
        ("costs", "tea", Decimal("2.50")),
        ("code", "007"),
        ("padded", "a"),
    ]
    assert {fact.source for fact in imported(text)} == {Source.GIVEN}


def test_jsonl_rows_become_given_facts():
    """Numbers with a point are decimals; types may stand in the row."""
    text = (
        '{"predicate": "costs", "arguments": ["tea", 2.50], "types": ["Drink", "Number"]}\n\n'
        '{"predicate": "was_born_in", "arguments": ["Ada", 1815], "probability": 0.5, "source": "model"}\n'
    )

    assert imported(text, "jsonl") == [
        FactRecord("costs", ("tea", Decimal("2.50")), ("Drink", "Number"), Source.GIVEN),
        FactRecord("was_born_in", ("Ada", 1815), (), Source.GIVEN),
    ]


def test_types_come_from_the_declaration(fresh_kb):
    """A row without types gets those of the predicate, if the knowledge base knows it."""
    fresh_kb.add_predicates([PredicateRecord("was_born_in", ("Person", "Year"), "given")])
    import_facts(fresh_kb, io.StringIO("was_born_in,Ada,1815\nwas_born_in,Ada\n"), form="csv")

    assert [fact.types for fact in fresh_kb.facts()] == [("Person", "Year"), ()]


def test_every_fault_of_a_csv_file_is_told_at_once(tmp_path):
    """Each faulty row is named by file and line, and nothing of the file is imported."""
    file = tmp_path / "facts.csv"
    file.write_bytes(
        b"\xef\xbb\xbfis_old,Ur\n"  # 1: fine, after a byte order mark
        b"1st,x\n"  # 2: no name
        b"is_old\n"  # 3: no argument
        b'is_old,"two\nlines"\n'  # 4 and 5: fine
        b"is_old,caf\xe9\n"  # 6: Latin-1
        b'is_old,"""open"\n'  # 7: a JSON string that does not end
        b"is_old,,x\n"  # 8: an empty cell in between
        b'is_old,"a"b\n'  # 9: no CSV
        b"is_old," + b"9" * 5000 + b"\n"  # 10: too long a number
        b"is_old,1E+99999999999999999999999\n"  # 11: too big a number
    )
    with KnowledgeBase() as kb:
        with pytest.raises(FactsRejected) as caught:
            import_facts(kb, file)

        assert kb.facts() == []
    assert [fault.line for fault in caught.value.faults] == [2, 3, 6, 7, 8, 9, 10, 11]
    assert f"{file}:6: argument 1 of is_old: the byte 0xE9 is not UTF-8" in str(caught.value)
    assert "Nothing was imported" in str(caught.value)


def test_every_fault_of_a_jsonl_file_is_told_at_once():
    """A line that is not valid JSON, not an object, or not a fact is a fault."""
    lines = [
        '{"predicate": "is_old", "arguments": ["Ur"]}',
        "{",
        "[1]",
        '{"arguments": ["x"]}',
        '{"predicate": "p", "arguments": []}',
        '{"predicate": "p", "arguments": "x"}',
        '{"predicate": "p", "arguments": [true]}',
        '{"predicate": "p", "arguments": [null]}',
        '{"predicate": "p", "arguments": [["x"]]}',
        '{"predicate": "p", "arguments": [NaN]}',
        '{"predicate": "p", "arguments": ["\\ud83d"]}',
        '{"predicate": "p", "arguments": ["x"], "types": ["A", "B"]}',
        '{"predicate": "p", "arguments": ["x"], "types": "A"}',
        '{"predicate": "p", "arguments": ["x"], "types": ["\\ud83d"]}',
        "[" * 100_000,
        '{"predicate": "p", "arguments": [' + "9" * 5000 + "]}",
    ]
    with pytest.raises(FactsRejected) as caught:
        imported("\n".join(lines), "jsonl")

    assert [fault.line for fault in caught.value.faults] == list(range(2, len(lines) + 1))


def test_a_long_list_of_faults_is_cut_in_the_message():
    """The message shows twenty faults and counts the rest; the error holds them all."""
    with pytest.raises(FactsRejected, match="and 80 more faults") as caught:
        imported("1,x\n" * 100)

    assert len(caught.value.faults) == 100


@pytest.mark.parametrize("text", ["1,x\n", "p,x\n", "name,size\nriver,long\n"])
def test_an_import_leaves_no_temporary_table(text, fresh_kb):
    """Neither one that was refused, of which a notebook would hold all rows, nor one that was stored."""
    rules = RulesForFacts(parse_library([("a.rules", "given p(T)\n")]))
    with suppress(FactsRejected):
        import_facts(fresh_kb, io.StringIO(text), form="csv", rules=rules)

    assert fresh_kb.query("SELECT name FROM temp.sqlite_master WHERE name LIKE 'imported%'") == []


def test_faulty_rows_can_be_skipped(fresh_kb):
    """On request the sound rows are imported and the report lists the others."""
    report = import_facts(fresh_kb, io.StringIO("is_old,Ur\n???,x\nis_old,Troy\n"), form="csv", skip_faulty=True)

    assert (report.read, report.added, [fault.line for fault in report.faults]) == (2, 2, [2])


def test_given_facts_beat_model_facts(fresh_kb):
    """An imported fact that a model had proposed becomes a given one; a model's later word does not take it back."""
    model_fact = FactRecord("is_old", ("Ur",), ("City",), Source.MODEL, 0.99, "c", "r")
    fresh_kb.add_facts([model_fact])
    first = import_facts(fresh_kb, io.StringIO("is_old,Ur\nis_old,Ur\nis_old,Troy\n"), form="csv")
    second = import_facts(fresh_kb, io.StringIO("is_old,Ur\n"), form="csv")
    fresh_kb.add_facts([model_fact])

    assert (first.read, first.added, first.promoted, first.known) == (2, 1, 1, 0)
    assert (second.added, second.promoted, second.known) == (0, 0, 1)
    assert {fact.source for fact in fresh_kb.facts()} == {Source.GIVEN}


def test_a_text_of_a_megabyte_goes_through_both_formats(fresh_kb):
    """Long texts are not cut, nor refused by a reader's limit."""
    fact = FactRecord("is_long", ('"x\n,' * 250_000,), (), Source.GIVEN)
    fresh_kb.add_facts([fact])

    assert imported(exported(fresh_kb, "csv")) == imported(exported(fresh_kb, "jsonl"), "jsonl") == [fact]


def test_formats_and_files_that_do_not_exist_are_told(fresh_kb, tmp_path):
    """An unknown ending, an unknown format and a missing file give the remedy."""
    with pytest.raises(HapaxError, match=r"facts\.xml: facts are imported from csv or jsonl"):
        import_facts(fresh_kb, tmp_path / "facts.xml")
    with pytest.raises(HapaxError, match="No such file"):
        import_facts(fresh_kb, tmp_path / "facts.csv")
    with pytest.raises(HapaxError, match="exported as prolog, csv, jsonl"):
        export_facts(fresh_kb, "xml", io.StringIO())


@pytest.mark.skipif(shutil.which("swipl") is None, reason="needs SWI-Prolog")
def test_prolog_text_loads_without_a_warning_and_runs_nothing(fresh_kb, tmp_path):
    """SWI-Prolog reads every fact back, hostile ones included, and says nothing on stderr."""
    hostile = [
        "'). :- halt. p('",
        "a\\nb\\",
        "line\nbreak",
        "\u202eright to left",
        "{}",
        "[]",
        "😀",
        "Xyz",
        "_",
        "%",
        "/*",
        "",
    ]
    facts = [FactRecord("text", (text, position), (), Source.GIVEN) for position, text in enumerate(hostile)]
    facts += [FactRecord("costs", (number,), (), Source.GIVEN) for number in (-1, 2**70, Decimal("2.50"))]
    facts += [FactRecord("text", ("arity one",), (), Source.GIVEN), FactRecord("Odd name", (1,), (), Source.GIVEN)]
    fresh_kb.add_facts([facts[0], facts[-1], *facts[1:-1]])
    file = tmp_path / "facts.pl"
    with file.open("w", encoding="utf-8") as stream:
        report = export_facts(fresh_kb, "prolog", stream)
    goal = "forall(text(T,I),(atom_codes(T,C),print(I-C),nl)),forall(costs(N),(print(N),nl)),text(_),'Odd name'(1)"
    done = subprocess.run(
        ["swipl", "-q", "-g", goal, "-t", "halt", str(file)], capture_output=True, text=True, check=True, timeout=60
    )

    assert (done.stderr, report.written, report.left_out) == ("", len(facts), ())
    codes = [f"{position}-[{','.join(str(ord(c)) for c in text)}]" for position, text in enumerate(hostile)]
    assert done.stdout.split() == [*codes, "-1", str(2**70), "5r2"]


def test_what_prolog_cannot_hold_is_left_out_and_reported(fresh_kb):
    """NUL and Prolog's own predicates do not spoil the rest of the export."""
    good = FactRecord("is_old", ("Ur",), (), Source.GIVEN)
    bad = [FactRecord("is_old", ("a\0b",), (), Source.GIVEN), FactRecord("halt", (1,), (), Source.GIVEN)]
    fresh_kb.add_facts([good, *bad])
    stream = io.StringIO()
    report = export_facts(fresh_kb, "prolog", stream)

    assert stream.getvalue() == ":- encoding(utf8).\nis_old('Ur').\n"
    assert {left.fact for left in report.left_out} == set(bad)
    assert all(left.reason for left in report.left_out)


def test_one_predicate_can_be_exported_alone(fresh_kb):
    """An export may be limited to a predicate, by name or indicator."""
    import_facts(fresh_kb, io.StringIO("p,1\np,1,2\nq,1\n"), form="csv")
    by_name, by_indicator = io.StringIO(), io.StringIO()
    export_facts(fresh_kb, "csv", by_name, "p")
    export_facts(fresh_kb, "csv", by_indicator, "p/2")

    assert by_name.getvalue() == "predicate,argument1,argument2\np,1,\np,1,2\n"
    assert by_indicator.getvalue() == "predicate,argument1,argument2\np,1,2\n"


@pytest.mark.parametrize(("form", "text"), [("csv", "predicate\n"), ("prolog", ":- encoding(utf8).\n"), ("jsonl", "")])
def test_an_export_without_facts_has_its_first_line_alone(fresh_kb, form, text):
    """A file of no facts has the header of its format, of which a CSV's has no columns of arguments."""
    stream = io.StringIO()
    report = export_facts(fresh_kb, form, stream)

    assert (stream.getvalue(), report.written) == (text, 0)


def test_numbered_columns_may_stand_anywhere(fresh_kb):
    """A header with numbered arguments says where they are; columns that an import has no use for are told."""
    text = "id,Argument2,note,predicate,arg1\n7,milk,sure,is_allergic_to,Ada\n8,,,is_old,Ur\n"

    report = import_facts(fresh_kb, io.StringIO(text), form="csv")

    assert [(fact.predicate, *fact.arguments) for fact in fresh_kb.facts()] == [
        ("is_allergic_to", "Ada", "milk"),
        ("is_old", "Ur"),
    ]
    assert report.predicates == {"is_allergic_to/2": 1, "is_old/1": 1}
    assert len(report.warnings) == 1
    assert report.warnings[0].startswith("<stream>:1: ignored: 'id', 'note'. ")


@pytest.mark.parametrize(
    ("header", "fact"),
    [
        ("relation,argument1,argument2", "no column `predicate`"),
        ("predicate,argument1,argument3", "no column `argument2`"),
        ("predicate,argument2", "no column `argument1`"),
        ("predicate,argument1,argument1", "two arguments the same number"),
        ("predicate;argument1;argument2", "not separated by commas"),
        ("is_allergic_to\tAda\tegg", "not separated by commas"),
    ],
)
def test_a_header_that_lacks_a_column_is_refused(fresh_kb, header, fact):
    """Without its columns no row can be read, so nothing is imported even where faulty rows are skipped."""
    with pytest.raises(HapaxError, match=rf"^<stream>:1: the .*{re.escape(fact)}.*Nothing was imported") as caught:
        import_facts(fresh_kb, io.StringIO(f"{header}\nis_allergic_to,Ada,milk\n"), form="csv", skip_faulty=True)

    assert "--skip-faulty" not in str(caught.value)
    assert fresh_kb.facts() == []


def test_a_row_wider_than_its_header_is_a_fault():
    """Where columns are numbered, a cell beyond them belongs to none."""
    with pytest.raises(FactsRejected, match=r"^<stream>:3: the row has more cells than the 3 columns"):
        imported("predicate,argument2,argument1\np,1,2\np,1,2,3\n")


def test_a_row_that_does_not_fit_its_numbered_header_is_a_fault(fresh_kb):
    """Too many cells, and too few where neither an empty cell nor the knowledge base says that it is meant."""
    text = "predicate,argument1,argument2\nnear,Oslo,Bergen\nnear,Oslo\nnosuch,1,2,3\nis_old,Ur,\n"
    with pytest.raises(FactsRejected) as caught:
        import_facts(fresh_kb, io.StringIO(text), form="csv")
    report = import_facts(fresh_kb, io.StringIO(text), form="csv", skip_faulty=True)
    known = import_facts(fresh_kb, io.StringIO("predicate,argument1,argument2\nis_old,Troy\n"), form="csv")

    assert [fault.line for fault in caught.value.faults] == [3, 4]
    assert "the row has 2 cells where the header has 3, and near/1 is not known" in str(caught.value)
    assert "more cells than the 3 columns" in str(caught.value)
    assert report.predicates == {"near/2": 1, "is_old/1": 1}
    assert known.predicates == {"is_old/1": 1}


def test_unknown_fields_of_a_jsonl_line_are_told(fresh_kb):
    """A field without a use is a warning, a missing one a fault that names what was there instead."""
    text = '{"predicate": "is_old", "arguments": ["Ur"], "source": "model", "probability": 0.5}\n'
    text += '{"predicate": "is_old", "arguments": ["Troy"], "comment": "burnt"}\n'

    report = import_facts(fresh_kb, io.StringIO(text), form="jsonl")

    assert len(report.warnings) == 1
    assert report.warnings[0].startswith("<stream>:2: ignored: 'comment'. ")
    with pytest.raises(FactsRejected, match="no arguments, only 'args'; write"):
        imported('{"predicate": "is_old", "args": ["Ur"]}', "jsonl")


def test_a_table_is_no_file_of_facts(fresh_kb):
    """A file whose first column holds names instead of predicates is refused, with the option that reads it."""
    with pytest.raises(FactsRejected, match="--predicate NAME --columns FIRST,SECOND") as caught:
        import_facts(fresh_kb, io.StringIO("name,food\nAda,milk\nTom,egg\n"), form="csv")

    assert [fault.line for fault in caught.value.faults] == [2, 3]
    assert fresh_kb.facts() == []


def test_capitalised_predicates_are_told(fresh_kb):
    """Where the file says that its first column is the predicate, names in it come with a warning."""
    report = import_facts(fresh_kb, io.StringIO("predicate,who\nAda,milk\nTom,egg\n"), form="csv")

    assert report.added == 2
    assert "Ada/1, Tom/1 are taken as predicates" in report.warnings[0]


def test_an_export_of_an_unknown_predicate_is_refused(fresh_kb):
    """A slip in the name is an error with what was perhaps meant; a predicate that merely has no facts is none."""
    with pytest.raises(HapaxError, match=r"no facts of 'nosuch'. It has no facts at all"):
        export_facts(fresh_kb, "csv", io.StringIO(), "nosuch")
    import_facts(fresh_kb, io.StringIO("is_allergic_to,Ada,milk\nis_old,Ur\n"), form="csv")
    fresh_kb.add_predicates([PredicateRecord("was_born_in", ("Person", "Year"), "given")])

    with pytest.raises(HapaxError, match=r"no facts of 'is_alergic_to'. Did you mean is_allergic_to/2\?"):
        export_facts(fresh_kb, "csv", io.StringIO(), "is_alergic_to")
    with pytest.raises(HapaxError, match=r"no facts of 'is_allergic_to/3'. Did you mean is_allergic_to/2\?"):
        export_facts(fresh_kb, "csv", io.StringIO(), "is_allergic_to/3")
    with pytest.raises(HapaxError, match="It has facts of is_allergic_to/2, is_old/1"):
        export_facts(fresh_kb, "csv", io.StringIO(), "xyz")
    assert export_facts(fresh_kb, "csv", io.StringIO(), "was_born_in/2").written == 0


def test_a_stream_without_a_name_is_named_in_faults():
    """Faults of standard input and the like still have a place."""
    with pytest.raises(FactsRejected, match=r"^<stream>:1: "):
        imported("1,2\n")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("tea", "tea"),
        (1876, "1876"),
        (Decimal("2.5"), "2.5"),
        (-3, "-3"),
        ("1876", '"1876"'),
        ("=1+1", '"=1+1"'),
        ("+1", '"+1"'),
        ("-x", '"-x"'),
        ("@cmd", '"@cmd"'),
        ("", '""'),
        ("two\nlines", '"two\\nlines"'),
        ('"quoted"', '"\\"quoted\\""'),
    ],
)
def test_a_cell_is_read_back_and_is_no_formula(value, cell):
    """A value is written as it is where it comes back the same and no spreadsheet takes it for a formula; else as JSON."""
    assert cell_text(value) == cell
    assert parse_cell(cell) == value
    assert type(parse_cell(cell)) is type(value)
