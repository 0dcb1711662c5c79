"""Values at the very limits of the store, and states that a knowledge base seldom has."""

from __future__ import annotations

import io
import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from cli_fixture import invoke

import hapax
from hapax.engine.kb_checks import functional_with_two_values
from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import MAXIMUM_POWER, Value, decimal_of
from hapax.kb import argument_index, derived_statements, relations, symbols, values, word_index
from hapax.kb.argument_index import ArgumentIndex, one_state
from hapax.kb.exchange import import_facts, parse_cell
from hapax.kb.loading import MOST_ARGUMENTS, is_sayable
from hapax.kb.records import AttemptRecord, CallRecord, DenialRecord, FactRecord, Source, canonical_text
from hapax.kb.relations import Relations, _scaled
from hapax.kb.running import RunFiles, RunState
from hapax.kb.store import KnowledgeBase
from hapax.kb.symbols import TAGGED_BITS, canonical, exact_extent
from hapax.kb.tables import TableMapping, import_table
from hapax.kb.values import MAX_INTEGER_BITS, ValueRefused, cut_decimal, fact_refusal, is_exact, refusal
from hapax.kb.word_index import WordIndex


def test_integers_have_as_many_bits_as_are_stored() -> None:
    """The largest is stored, the next one is refused with the number of bits."""
    assert refusal((1 << MAX_INTEGER_BITS) - 1) is None
    assert refusal(1 << MAX_INTEGER_BITS) == f"the integer has more than {MAX_INTEGER_BITS} bits; give it as text"


@pytest.mark.parametrize(
    ("longest", "longer"), [("1e3332", "1e3333"), ("1e-3333", "1e-3334"), ("-5.1e3332", "1.01e-3332")]
)
def test_decimals_of_new_facts_have_as_many_places_as_is_allowed(longest: str, longer: str) -> None:
    """Places before the point count, and those behind it."""
    assert fact_refusal(Decimal(longest)) is None
    assert "more than 3333 places before or behind its point; give it as text" in str(fact_refusal(Decimal(longer)))
    assert refusal(Decimal(longer)) is None  # older files may have it


def test_a_cell_has_as_many_digits_as_an_integer_may_have() -> None:
    """Of more digits nothing is read; the message has their number."""
    most = MAX_INTEGER_BITS // 3

    assert parse_cell("7" * most) == int("7" * most)
    with pytest.raises(ValueError, match=f"the integer has {most + 1} digits"):
        parse_cell("7" * (most + 1))


def test_a_cut_number_is_written_exactly_up_to_the_limit() -> None:
    """Numerator and denominator may have as many bits as an integer."""
    largest = 3**6309  # has 10,000 bits
    assert largest.bit_length() == MAX_INTEGER_BITS
    exact = decimal_of(Fraction(1, largest))

    assert is_exact(exact)  # type: ignore[arg-type]
    assert not is_exact(decimal_of(Fraction(1, 3 * largest)))  # type: ignore[arg-type]


def test_a_stored_fraction_is_as_long_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """A longer text is no fraction."""
    third = str(decimal_of(Fraction(1, 3)))
    monkeypatch.setattr(values, "MAX_INTEGER_BITS", 3)
    assert cut_decimal(third, "1/3").exact == Fraction(1, 3)
    monkeypatch.setattr(values, "MAX_INTEGER_BITS", 2)
    with pytest.raises(ValueError, match="'1/3' is not a fraction"):
        cut_decimal(third, "1/3")


def test_whole_decimals_are_integers_up_to_the_power_of_prolog() -> None:
    """A larger one stays a decimal without its trailing zeros; a zero stays a zero."""
    assert canonical(Decimal(f"1e{MAXIMUM_POWER}")) == 10**MAXIMUM_POWER
    assert type(canonical(Decimal(f"1e{MAXIMUM_POWER}"))) is int
    assert str(canonical(Decimal(f"10e{MAXIMUM_POWER}"))) == f"1E+{MAXIMUM_POWER + 1}"
    assert str(canonical(Decimal(f"0e{MAXIMUM_POWER + 1}"))) == f"0E+{MAXIMUM_POWER + 1}"


def test_sql_takes_numbers_below_its_limits() -> None:
    """Numbers that SQLite would round, or that are no symbols, are not exact; scaled ones are below the limit, too."""
    assert not exact_extent([(1 << TAGGED_BITS) - 1]).inexact
    assert exact_extent([1 << TAGGED_BITS]).inexact
    assert exact_extent([(1 << 58), Decimal("0.25")]).inexact
    assert not exact_extent([(1 << 55), Decimal("0.25")]).inexact
    assert _scaled(Decimal("1.25"), 2) == 125
    assert _scaled(Decimal("1.25"), 1) is None
    assert _scaled((1 << TAGGED_BITS) - 1, 1) is None


def test_a_limit_of_sql_is_met_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest number that is exact is one below the limit."""
    monkeypatch.setattr(symbols, "EXACT", 400)
    assert [exact_extent([number, Decimal("0.25")]).inexact for number in (3, 4, 5)] == [False, True, True]
    monkeypatch.setattr(relations, "EXACT", 400)
    assert [_scaled(number, 2) for number in (3, 4)] == [300, None]
    assert [_scaled(-number, 2) for number in (3, 4)] == [-300, None]


def test_all_constants_keep_their_tags_when_the_known_ones_are_forgotten(
    fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A million known tags are forgotten before more are learnt."""
    found = Relations(fresh_kb).symbols
    before = found.tags(["a", "b", 3])
    monkeypatch.setattr(symbols, "_KNOWN_TAGS", 2)

    assert found.tags(["c", "a"])[1] == before[0]
    assert found.tags(["a", "b", 3]) == before


def test_many_sentences_are_found_without_being_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the limit the sentences with rarer and more of the words come first, beyond it the older ones."""
    with KnowledgeBase(tmp_path / "kb.db") as kb:
        long = "and then some more of it " * 9 + "rye"
        kb.add_facts([FactRecord("p", (text,), ("T",), Source.GIVEN) for text in (long, "rye", "oats")])
    index = WordIndex(tmp_path / "kb.db")
    assert index.ready(10)

    monkeypatch.setattr(word_index, "MOST_RANKED", 2)
    assert index.search("rye").names == ("rye", long)
    monkeypatch.setattr(word_index, "MOST_RANKED", 1)
    assert index.search("rye").names == (long, "rye")


def test_denials_are_those_of_the_predicate_with_this_many_arguments(fresh_kb: KnowledgeBase) -> None:
    """`p/1` and `p/2` are two predicates."""
    one, two = DenialRecord("p", ("a",), 0.1), DenialRecord("p", ("a", "b"), 0.1)
    fresh_kb.add_denials([one, two])

    assert [fresh_kb.denials(name) for name in ("p/1", "p/2", "p", "q/1")] == [[one], [two], [one, two], []]


@pytest.mark.parametrize(("seconds", "is_told"), [(0.99, False), (1.0, True), (7.4, True)])
def test_a_long_migration_is_told(seconds: float, is_told: bool, fresh_kb: KnowledgeBase) -> None:
    """One that takes a second or more."""
    fresh_kb.migrated.names, fresh_kb.migrated.seconds = ["m002_next"], seconds

    assert ("brought up to date with this version of Hapax" in fresh_kb.opening_notice()) is is_told


@pytest.mark.parametrize(
    "changed",
    [
        {"process": 0}, {"process": -1}, {"accepted": -1}, {"rejected": 0.5}, {"sent": []}, {"seconds_left": "7"},
        {"done": None}, {"written": "now"}, {"calls_per_minute": {}},
    ],
    ids=str,
)  # fmt: skip
def test_a_state_of_a_run_that_cannot_be_is_none(changed: dict[str, object], tmp_path: Path) -> None:
    """Another program may have written the file."""
    files = RunFiles(tmp_path / "kb.db", "run")
    state = RunState(1, "here", 1.0, 2.0)
    for left in (None, 3.5):
        files.write(replace(state, seconds_left=left))
        assert files.read() == replace(state, seconds_left=left)
    (path,) = tmp_path.glob("kb.db-running-*")
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **changed}), "utf-8")

    assert files.read() is None


@pytest.mark.parametrize(("column", "near"), [("name 61x", "name 61"), ("name 101x", "name 11")])
def test_a_missing_column_is_told_with_a_name_that_is_there(column: str, near: str, tmp_path: Path) -> None:
    """Of JSON objects with very many names those of the first objects are looked at, up to a hundred."""
    table = tmp_path / "table.jsonl"
    lines = [{f"name {number}": 1 for number in range(start, start + 50)} for start in (0, 50, 100)]
    table.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    columns = f"{column},name 1"
    result = invoke("import", table, "--predicate", "p", "--columns", columns, "--db", tmp_path / "kb.db")

    assert result.exit_code == 1
    assert f"there is no column '{column}'. Did you mean {near}?" in result.stderr


@pytest.mark.parametrize("huge", [10**400, -(10**400), Decimal("1e400"), Decimal("-1e400")], ids=range(4))
def test_a_fact_is_found_by_a_number_beyond_all_floats(
    huge: Value, fresh_kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index has infinity in its place, with the sign of the number."""
    monkeypatch.setattr(argument_index, "FEW_FACTS", 0)
    fresh_kb.add_facts(FactRecord("p", (number, "x"), ("N", "T"), Source.GIVEN) for number in (huge, 1, -1))
    index = ArgumentIndex(fresh_kb)
    index.prepare(["p/2"])

    assert [values for _, values in index.rows("p/2", {0: huge})] == [(huge, "x")]


def test_predicates_without_a_relation_have_no_atoms_and_always_change(fresh_kb: KnowledgeBase) -> None:
    """One of more than a hundred arguments is in no relation, so that its facts may have changed."""
    found = Relations(fresh_kb)
    fresh_kb.add_facts([FactRecord("p", ("a",), ("T",), Source.GIVEN)])
    found.bring_up_to_date()
    changes = found.changes()

    assert found.atom_count("p/1") == 0
    assert changes is not None
    assert [found.changed(changes, [name]) for name in ("p/1", f"q/{MOST_ARGUMENTS}", f"q/{MOST_ARGUMENTS + 1}")] == [
        False,
        False,
        True,
    ]


def test_a_fact_with_fewer_arguments_has_no_value_at_a_later_place(fresh_kb: KnowledgeBase) -> None:
    """Of predicates with one name, those with enough arguments are searched."""
    fresh_kb.add_facts([FactRecord("p", ("a", "b"), ("T", "T"), Source.GIVEN)])

    index = ArgumentIndex(fresh_kb)
    index.prepare(["p/2", "p/3"])
    assert index.rows("p/3", {2: "c"}) == []
    assert len(index.rows("p/2", {1: "b"})) == 1


def test_reading_one_state_inside_a_transaction_ends_nothing(fresh_kb: KnowledgeBase) -> None:
    """The block that writes goes on, and is undone as a whole."""
    with suppress(KeyError), fresh_kb.transaction():
        fresh_kb.add_facts([FactRecord("p", ("a",), ("T",), Source.GIVEN)])
        with one_state(fresh_kb):
            assert len(fresh_kb.facts()) == 1
        raise KeyError

    assert fresh_kb.facts() == []


def test_a_stream_has_one_of_the_forms_that_are_built_in(fresh_kb: KnowledgeBase) -> None:
    """Readers of other packages get files alone."""
    with pytest.raises(HapaxError, match="<stream>: facts are imported from csv or jsonl, not from 'parquet'"):
        import_facts(fresh_kb, io.StringIO("p"), form="parquet")


def test_a_fact_with_a_power_at_the_limit_is_loaded() -> None:
    """Prolog holds as many places as a rule may have."""
    for power, is_loaded in ((MAXIMUM_POWER, True), (-MAXIMUM_POWER, True), (MAXIMUM_POWER + 1, False)):
        assert is_sayable(("a", Decimal(f"1e{power}"))) is is_loaded


def test_what_no_identity_can_have_is_refused() -> None:
    """Only JSON's values and decimals have a canonical form."""
    assert canonical_text(Decimal("1.50")) == '{"decimal":"15E-1"}'
    with pytest.raises(TypeError, match="no canonical form for object"):
        canonical_text(object())


def test_an_absent_cell_before_a_faulty_one_is_no_fault(fresh_kb: KnowledgeBase) -> None:
    """The refusal names the cell that cannot be written."""
    with pytest.raises(ValueRefused, match=r"^facts\.basis: the text contains half a character"):
        fresh_kb.add_facts([FactRecord("p", ("a",), ("T",), Source.GIVEN, basis="\ud800")])


def test_a_faulty_answer_is_refused_and_kept_nowhere(tmp_path: Path) -> None:
    """Only answers that the file cannot take at the moment go into the file beside it."""
    call = CallRecord("c", "critic", "m\ud800", {"claim": "x"}, {"probability": 0.5}, created="2026-01-01")
    with KnowledgeBase(tmp_path / "a.db") as kb:
        with pytest.raises(ValueRefused, match=r"calls\.model"):
            kb.record_calls([call])

        assert kb.calls() == {}


def test_totals_of_requests_have_those_on_their_way_into_the_file(tmp_path: Path) -> None:
    """A request that was just written down counts."""
    with KnowledgeBase(tmp_path / "a.db") as kb:
        for number in range(50):
            kb.attempt_log.write(
                AttemptRecord(f"t{number}", "critic", "m", "chat/completions", "2026-01-01", None, "answered", 2, 3)
            )

        assert kb.attempt_totals()[:3] == (50, 100, 150)


def test_a_mapping_of_json_lines_may_fix_a_value(fresh_kb: KnowledgeBase, tmp_path: Path) -> None:
    """A fixed value is no column."""
    mapping, table = tmp_path / "m.yaml", tmp_path / "t.jsonl"
    mapping.write_text("facts:\n- predicate: p\n  columns: [{value: 7}, a]\n")
    table.write_text('{"a": "x"}\n{"a": "y", "7": "z"}\n')

    import_table(fresh_kb, table, TableMapping.read(mapping))
    assert [fact.arguments for fact in fresh_kb.facts()] == [(7, "x"), (7, "y")]


def test_many_rules_have_one_view_of_their_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite takes so many selections together; more are taken in groups."""
    monkeypatch.setattr(derived_statements, "_TERMS", 2)
    rules = "".join(f"@name r{k}\n@generic none\np(T X) -> q{k}(T X)\n" for k in range(5))
    path = tmp_path / "a.rules"
    path.write_text(f'given p(T)\nfact p("a")\nfact p("b")\n{rules}')
    KnowledgeBase(tmp_path / "a.db").close()
    assert invoke("derive", "--rules", str(path), "--db", str(tmp_path / "a.db")).exit_code == 0

    with KnowledgeBase(tmp_path / "a.db") as kb:
        found = Counter(item.rule for item in derived_statements.derived_statements(kb))
    assert found == {f"r{k}": 2 for k in range(5)}


def test_a_new_fact_has_no_number_that_is_too_long(fresh_kb: KnowledgeBase) -> None:
    """One of an older file, of which the new one is a second value, ends no import."""
    rules = hapax.FactRules(hapax.parse_rules("functional height(Thing, Number) within 2"))
    fresh_kb.add_facts([FactRecord("height", ("a", Decimal("1e99999999")), ("Thing", "Number"), Source.GIVEN)])

    for form, line in (("jsonl", '{"predicate": "height", "arguments": ["b", 1e3333]}'), ("csv", "height,b,1E+3333")):
        with pytest.raises(HapaxError, match="more than 3333 places before or behind its point; give it as text"):
            import_facts(fresh_kb, io.StringIO(line), form=form)
    with pytest.raises(HapaxError, match="height/2 is functional, but has 2 values"):
        hapax.import_facts(fresh_kb, io.StringIO("height,a,2"), form="csv", rules=rules)
    fresh_kb.add_facts([FactRecord("height", ("a", 2), ("Thing", "Number"), Source.GIVEN)])
    (finding,) = functional_with_two_values(hapax.parse_rules("functional height(Thing, Number) within 2"), fresh_kb)
    assert 'height("a", 2)' in str(finding)
