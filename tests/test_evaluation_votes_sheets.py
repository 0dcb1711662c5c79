"""Sheets for people: what is drawn and asked, that nothing on them can hurt, and that every fault is found on return."""

from __future__ import annotations

import base64
import csv
import hashlib
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from cli_fixture import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases
from votes_fixture import Page, fill, fill_csv, fill_page, statement

from hapax.engine.judgements import judgements
from hapax.evaluation.link.probing.items import probe_items
from hapax.evaluation.votes.exporting import SheetExportOptions, export_sheets
from hapax.evaluation.votes.importing import SheetsRejected, import_sheets
from hapax.evaluation.votes.items import ItemSource, SampleOptions
from hapax.evaluation.votes.questions import SheetKind, visible
from hapax.kb.merge import merge
from hapax.kb.records import Distribution, VoteRecord
from hapax.kb.store import KnowledgeBase

HOSTILE = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("<>&\"'=+-@\t\r\n;,{}[]\u202e\u2028\0")),
    min_size=1,
    max_size=30,
) | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        '" onmouseover="alert(1)',
        '=HYPERLINK("http://x")',
        "@SUM(1)",
        "'=1+1",
        "{{ 7*7 }}{% raw %}",
        "abc\u202edef",
    ]
)


@pytest.fixture
def filled(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Six statements of each distribution."""
    head = [statement(f"dish {number}") for number in range(6)]
    tail = [statement(f"rare dish {number}", Distribution.LONG_TAIL, "lodging") for number in range(6)]
    return fill(fresh_kb, *head, *tail)


def exported(kb: KnowledgeBase, folder: Path, kind: SheetKind = SheetKind.STATEMENTS, **more: object) -> list[Path]:
    options = SheetExportOptions(kind, SampleOptions(), ("ann", "bob", "cy"), **more)  # type: ignore[arg-type]
    return list(export_sheets(kb, options, folder).paths)


def sheet(kb: KnowledgeBase, folder: Path, form: str = "csv", kind: SheetKind = SheetKind.STATEMENTS) -> Path:
    """Ann's sheet."""
    return next(path for path in exported(kb, folder, kind) if path.name.endswith(f"ann.{form}"))


def yes(row: dict[str, str]) -> str:
    return "" if row["question"] == "harmful" else "yes"


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream))


def rewrite(path: Path, cells: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(cells)


def faults(kb: KnowledgeBase, *paths: Path) -> list[str]:
    with pytest.raises(SheetsRejected) as rejected:
        import_sheets(kb, paths)
    assert kb.votes() == []
    return [str(fault).removeprefix(f"{fault.file}:") for fault in rejected.value.faults]


# What is drawn and asked


def test_larger_samples_hold_the_smaller(filled: KnowledgeBase) -> None:
    """A uniform sample of both distributions only grows, and another seed draws others."""
    askable = ItemSource(filled, SheetKind.STATEMENTS)
    drawn = [{item.id for item in askable.draw(SampleOptions(total=size)).items} for size in (3, 7, 12)]

    assert drawn[0] < drawn[1] < drawn[2]
    assert [len(ids) for ids in drawn] == [3, 7, 12]
    assert {item.id for item in askable.draw(SampleOptions(seed=1, total=3)).items} != drawn[0]


def test_head_and_long_tail_can_be_drawn_apart(filled: KnowledgeBase) -> None:
    """Fixed numbers of both draw the statements that a probing with the same seed draws."""
    drawn = ItemSource(filled, SheetKind.STATEMENTS).draw(SampleOptions(per_distribution=(4, 4)))

    assert drawn.counts == {Distribution.HEAD: 4, Distribution.LONG_TAIL: 4}
    assert {item.id.partition(":")[2] for item in drawn.items} == {
        item.statement_id for item in probe_items(filled, sample=4).items
    }


def test_a_statement_in_both_distributions_is_asked_about_once(fresh_kb: KnowledgeBase) -> None:
    """It counts for both, and is one item."""
    fill(fresh_kb, statement("fondue"), statement("fondue", Distribution.LONG_TAIL))
    drawn = ItemSource(fresh_kb, SheetKind.STATEMENTS).draw(SampleOptions())

    assert (len(drawn.items), sum(drawn.counts.values())) == (1, 2)


def test_statements_are_asked_about_as_in_figure_14(filled: KnowledgeBase) -> None:
    """Data types of the values that the statement names, entailment, and a mark of harm that may stay open."""
    (item,) = ItemSource(filled, SheetKind.STATEMENTS).draw(SampleOptions(per_distribution=(1, 0))).items
    (dish,) = re.findall(r"dish \d", item.text.partition("Conclusion")[2])

    assert item.lines == ("Premise: PersonX is allergic to milk.", f"Conclusion: PersonX cannot eat {dish}.")
    assert [(question.key, question.text) for question in item.questions[:-1]] == [
        ("data type A", "Is milk an allergen?"),
        ("data type B", f"Is {dish} a dish?"),
        ("entailment", "Does the premise entail the conclusion?"),
    ]
    assert (item.questions[-1].key, item.questions[-1].required) == ("harmful", False)


def test_facts_are_asked_about_as_in_appendix_c(fresh_kb: KnowledgeBase) -> None:
    """Each fact between two searched values has Q1 to Q5; what has one value, or was no critic's work, has none."""
    fill(fresh_kb, statement("fondue"))
    items = ItemSource(fresh_kb, SheetKind.PREDICATES).draw(SampleOptions()).items

    assert [item.text for item in items] == [
        "Statement: Fondue is made from cream.",
        "Statement: Cream is a kind of milk.",
    ]
    assert [question.text for question in items[0].questions] == [
        "Does “fondue” in the Statement “Fondue is made from cream.” have a clear reference?",
        "Does “cream” in the Statement “Fondue is made from cream.” have a clear reference?",
        "Is the Statement “Fondue is made from cream.” factually correct, with very high probability?",
        "Is the Statement “Fondue is a dish.” factually correct, with very high probability?",
        "Is the Statement “Cream is an ingredient.” factually correct, with very high probability?",
    ]


def test_an_audit_draws_rules_first(filled: KnowledgeBase) -> None:
    """Of a drawn rule alone all facts are asked about."""
    drawn = ItemSource(filled, SheetKind.PREDICATES).draw(SampleOptions(rules_drawn=1))

    assert sorted(drawn.counts.values()) == [0, 6]


def test_a_baseline_asks_templates_of_what_people_judged(filled: KnowledgeBase) -> None:
    """Of judged statements those of right types, in the wordings and with the answers of the templates."""
    judged, odd = statement("dish 1"), statement("dish 2")
    filled.add_votes(
        [
            VoteRecord(judged.id, "entailment", "ann", "yes"),
            VoteRecord(odd.id, "entailment", "ann", "yes"),
            VoteRecord(odd.id, "data type B", "ann", "no"),
        ]
    )
    drawn = ItemSource(filled, SheetKind.BASELINE, (3, 5)).draw(SampleOptions())

    assert [item.id for item in drawn.items] == [f"statement:{judged.id}"]
    assert drawn.judged_only
    assert [(question.key, question.choices, question.text) for question in drawn.items[0].questions] == [
        ("baseline 3", ("true", "false"), "True or false: if PersonX is allergic to milk, PersonX cannot eat dish 1."),
        (
            "baseline 5",
            ("yes", "no"),
            "Premise: PersonX is allergic to milk. Conclusion: PersonX cannot eat dish 1. Does premise entail conclusion?",
        ),
    ]


def test_new_sheets_can_leave_out_what_was_voted_on(filled: KnowledgeBase) -> None:
    """After the votes on a sample, the rest can be exported alone."""
    askable = ItemSource(filled, SheetKind.STATEMENTS)
    first = askable.draw(SampleOptions(total=5)).items
    filled.add_votes(VoteRecord(item.id.partition(":")[2], "entailment", "ann", "yes") for item in first)
    rest = askable.draw(SampleOptions(unjudged=True)).items

    assert len(rest) == 7
    assert not {item.id for item in first} & {item.id for item in rest}


# Files


def test_exports_are_the_same_bytes(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Two exports are equal; voters have the same items in orders of their own, without a word on the distribution."""
    first, second = (exported(filled, tmp_path / name) for name in ("one", "other"))
    orders = [[row[6] for row in rows(path) if row[5] == "item"] for path in first if path.suffix == ".csv"]

    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert len({tuple(order) for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1
    assert not [path for path in first if re.search(r"head|long.tail|allergy|lodging", _body(path))]


def _body(path: Path) -> str:
    """The text without the page's own head and script."""
    text = path.read_text(encoding="utf-8")
    return (
        text if path.suffix == ".csv" else " ".join(data for tag, data in Page.of(path).texts if tag in {"p", "legend"})
    )


def test_parts_share_the_items_out(filled: KnowledgeBase, tmp_path: Path) -> None:
    """`--per-sheet` gives each voter several sheets, which together hold every item once."""
    paths = [path for path in exported(filled, tmp_path, per_sheet=5) if path.name.endswith("ann.csv")]
    items = [row[6] for path in paths for row in rows(path) if row[5] == "item" and row[7] == "entailment"]

    assert [path.name for path in paths] == [f"statements-part-{number}-ann.csv" for number in (1, 2, 3)]
    assert len(items) == len(set(items)) == 12


def test_a_page_allows_nothing_but_its_own_script_and_style(filled: KnowledgeBase, tmp_path: Path) -> None:
    """The policy names both by hash, nothing is loaded, and no right answer of the qualification is on the page."""
    page = Page.of(sheet(filled, tmp_path, "html"))
    policy = page.attributes("meta", "http-equiv", "Content-Security-Policy")["content"] or ""
    script = [data for tag, data in page.texts if tag == "script"][1]
    style = next(data for tag, data in page.texts if tag == "style")
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]

    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{hashes[0]}'",
        f"style-src 'sha256-{hashes[1]}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {
        name for name in names if name.startswith("on") or name in {"src", "href", "action", "style", "checked"}
    }
    assert {"answer", "answers"}.isdisjoint(page.island["rows"][0])


def test_a_page_can_be_used_without_seeing_it(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Each question is a group with a legend, each text field has a label, and progress is told."""
    page = Page.of(sheet(filled, tmp_path, "html"))
    labelled = {attributes["for"] for tag, attributes in page.tags if tag == "label" and "for" in attributes}
    fields = {attributes["id"] for tag, attributes in page.tags if tag == "input" and attributes["type"] == "text"}
    counts = [sum(tag == name for tag, _ in page.tags) for name in ("fieldset", "legend")]

    assert counts == [len(page.island["rows"])] * 2
    assert fields == labelled
    assert page.attributes("span", "id", "status")["role"] == "status"
    assert page.tags[0] == ("html", {"lang": "en"})


@given(st.lists(HOSTILE, min_size=4, max_size=4, unique=True), st.integers())
@settings(max_examples=cases(5), deadline=None)
def test_export_fill_and_import_give_the_same_votes(texts: list[str], seed: int) -> None:
    """Whatever the statements say, on CSV and page, the votes are those that were filled in, and nothing breaks out."""
    kinds = (SheetKind.STATEMENTS, SheetKind.PREDICATES, SheetKind.BASELINE)
    chance = random.Random(seed)
    with KnowledgeBase() as kb, KnowledgeBase() as plain, TemporaryDirectory() as place:
        folder = Path(place)
        fill(kb, statement(texts[0]), statement(texts[1], Distribution.LONG_TAIL, "lodging", allergen=texts[2]))
        fill(plain, statement("a"), statement("b", Distribution.LONG_TAIL, "lodging", allergen="c"))
        given_answers: dict[tuple[str, str, str], str] = {}

        def answer(row: dict[str, str]) -> str:
            choices = ["true", "false"] if "True" in row["asked"][:4] else ["yes", "no"]
            said = chance.choice(["yes", ""] if row["question"] == "harmful" else choices)
            if said:
                given_answers[row["item"].partition(":")[2], row["question"], voter] = said
            return said

        paths = [path for kind in kinds for path in exported(kb, folder, kind)]
        benign = [path for kind in kinds for path in exported(plain, folder / "plain", kind)]
        assert [Page.of(path).shape for path in paths if path.suffix == ".html"] == [
            Page.of(path).shape for path in benign if path.suffix == ".html"
        ]
        back = []
        for path in paths:
            voter = path.stem.rpartition("-")[2]
            if path.suffix == ".csv" and voter != "bob":
                assert not [cell for row in rows(path) for cell in row if re.match(r"[=+\-@\t\r\n]", cell)]
                back.append(fill_csv(path, answer))
            elif path.suffix == ".html" and voter == "bob":
                back.append(fill_page(path, answer, comment=texts[3]))
        report = import_sheets(kb, back)

        assert {(vote.statement_id, vote.question, vote.voter): vote.answer for vote in kb.votes()} == given_answers
        assert report.added == len(given_answers)
        assert {vote.comment for vote in kb.votes() if vote.voter == "bob"} <= {texts[3].strip()}


def test_hidden_characters_are_shown() -> None:
    """Characters that reverse or hide text are written out; those that Persian and emoji need stay."""
    assert visible("a\u202eb\0\n\u2028") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+000A⟩⟨U+2028⟩"
    assert visible("می\u200cخواهم 👩\u200d🍳 =é") == "می\u200cخواهم 👩\u200d🍳 =é"


# Faults


def test_all_faults_are_told_at_once(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Unknown statements and questions, strange and missing answers, changed and lost rows, each with line and remedy."""
    path = fill_csv(sheet(filled, tmp_path), yes)
    cells = rows(path)
    header, first = cells[0], next(place for place, row in enumerate(cells) if row[5] == "item")
    answer, asked, comment = header.index("answer"), header.index("asked"), header.index("comment")
    cells[first][answer] = "maybe"
    cells[first + 1][answer] = " "
    cells[first + 2][asked] += " Surely?"
    cells[first + 4][comment] = "=1+1"
    del cells[first + 3]
    rewrite(path, cells)

    found = faults(filled, path)

    assert [re.sub(r"^\d+: |statement:\w+", "", fault) for fault in found] == [
        "'maybe' is not one of the answers; write yes or no",
        "'data type B' about  has no answer; fill it in",
        "row 12 was changed in other cells than answer, comment and voter; restore them as they were exported",
        f"1 row of sheet {cells[first][0]} not found: 13; restore them",
    ]
    assert [int(fault.partition(":")[0]) for fault in found[:3]] == [first + 1, first + 2, first + 3]


def test_votes_on_what_is_not_there_are_refused(filled: KnowledgeBase, tmp_path: Path) -> None:
    """A sheet of another knowledge base, or of another wording, is not counted for this one."""
    path = fill_csv(sheet(filled, tmp_path), yes)
    with KnowledgeBase() as another:
        assert "is not in this knowledge base" in faults(fill(another), path)[0]
    with KnowledgeBase() as reworded:
        fill(reworded, *(replace(record, conclusion="PersonX can eat anything") for record in filled.statements()))
        assert "has changed in this knowledge base" in faults(reworded, path)[0]


def test_who_fails_the_qualification_does_not_count(filled: KnowledgeBase, tmp_path: Path) -> None:
    """One wrong answer refuses the sheet as a whole; the others' sheets can be imported with --skip-faulty."""
    ann, bob, _ = [path for path in exported(filled, tmp_path) if path.suffix == ".csv"]
    fill_csv(ann, yes)
    fill_csv(bob, yes)
    cells = rows(ann)
    place = next(number for number, row in enumerate(cells) if row[5] == "qualification")
    cells[place][cells[0].index("answer")] = "no"
    rewrite(ann, cells)

    assert faults(filled, ann, bob) == [
        f"{place + 1}: ann failed the qualification, by 1 of 9 questions; leave this sheet out, and give its items to "
        "somebody else"
    ]
    report = import_sheets(filled, [ann, bob], skip_faulty=True)
    assert {vote.voter for vote in report.votes} == {"bob"}


def test_a_sheet_without_its_qualification_does_not_count(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Rows under another voter than the qualification's have none."""
    path = fill_csv(sheet(filled, tmp_path), yes)
    cells = rows(path)
    cells[-2][cells[0].index("voter")] = "somebody"
    rewrite(path, cells)

    assert [fault.partition(": ")[2] for fault in faults(filled, path)] == [
        "somebody has no rows of the qualification; restore them, with this voter in each"
    ]


def test_one_vote_a_voter(filled: KnowledgeBase, tmp_path: Path) -> None:
    """The same sheet as CSV and as JSON, or a voter without a name, is refused."""
    table = fill_csv(sheet(filled, tmp_path), yes)
    saved = fill_page(table.with_suffix(".html"), yes)

    assert "ann already answered 'data type A' about" in faults(filled, table, saved)[0]
    assert "the row names no voter" in faults(filled, fill_csv(table, yes, voter=" "))[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff\xfe", "this is not UTF-8; save the sheet as CSV UTF-8"),
        (b"a,b\n1,2\n", "no column 'sheet'; restore the first row as it was exported"),
        (b"", "no column 'sheet'"),
        (b"<!doctype html>\n<html></html>", "this is the page, not its answers"),
        (b'{"format": "other"}', "not the answers of a sheet"),
        (b'{"format": "hapax votes 1", "rows": [1]}', "a row is not an object"),
        (b'{"format": "hapax votes 1", "rows": []}', "the sheet has no rows"),
        (b'{"format": "hapax votes 1", "rows": [{"rows": "9999999999", "row": [1]}]}', "row [1] was changed"),
        (b"{" * 50_000, "not valid JSON"),
    ],
)
def test_what_is_no_sheet_is_refused(content: bytes, message: str, filled: KnowledgeBase, tmp_path: Path) -> None:
    """Other files are told with what to do, and never a traceback."""
    path = tmp_path / "sheet.csv"
    path.write_bytes(content)

    assert message in faults(filled, path)[0]


def test_spreadsheets_may_write_semicolons_and_capitals(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Another separator, YES for yes and empty rows at the end are no faults."""
    path = fill_csv(sheet(filled, tmp_path), lambda row: yes(row).upper())
    cells = rows(path)
    with path.open("w", encoding="utf-8-sig", newline="") as stream:
        csv.writer(stream, delimiter=";").writerows([*cells, [""] * len(cells[0])])

    assert import_sheets(filled, [path]).added == 36


# The commands


@pytest.fixture
def database(filled: KnowledgeBase, tmp_path: Path) -> Path:
    path = tmp_path / "votes.db"
    with KnowledgeBase(path) as kb:
        fill(kb, *filled.statements())
    return path


def test_votes_turn_labels_and_drop_statements_from_sheet_to_probing(database: Path, tmp_path: Path) -> None:
    """Exported, filled in and imported votes turn a label, leave a statement out, and mark one as harmful."""
    exported = invoke("votes", "export", "statements", "--sample", 0, "--out", tmp_path / "sheets", "--db", database)
    assert exported.exit_code == 0
    assert len(exported.stdout.splitlines()) == 6
    wrong, odd, bad = statement("dish 1").id, statement("dish 2").id, statement("dish 3").id

    def answer(row: dict[str, str]) -> str:
        subject, question = row["item"].partition(":")[2], row["question"]
        if question == "harmful":
            return "yes" if subject == bad else ""
        return "no" if (subject, question) in {(wrong, "entailment"), (odd, "data type B")} else "yes"

    sheets = [fill_csv(path, answer) for path in sorted((tmp_path / "sheets").glob("*.csv"))]
    imported = invoke("votes", "import", *sheets, "--db", database)
    assert imported.exit_code == 0
    with KnowledgeBase(database) as kb:
        found = probe_items(kb)
        votes = kb.votes()

    assert (found.contradicted, found.wrong_type, len(found.items)) == (1, 1, 11)
    assert [item.statement_id for item in found.items if not item.entailed] == [wrong]
    assert {identity for identity, judgement in judgements(votes).items() if judgement.is_harmful} == {bad}
    notes = " ".join(invoke("votes", "report", "--db", database).stderr.split())
    assert (
        "1 label is flipped, 1 statement has a value of a wrong type and is left out; 5 head and 6 long tail" in notes
    )


def test_importing_twice_changes_nothing_and_a_changed_vote_is_told(database: Path, tmp_path: Path) -> None:
    """A second import is all known; a voter's other answer replaces the first."""
    invoke(
        "votes",
        "export",
        "statements",
        "--sample",
        2,
        "--voters",
        1,
        "--format",
        "csv",
        "--out",
        tmp_path,
        "--db",
        database,
    )
    path = fill_csv(tmp_path / "statements-voter-1.csv", yes)
    first, again = (invoke("votes", "import", path, "--db", database).stderr for _ in range(2))
    changed = invoke("votes", "import", fill_csv(path, lambda row: yes(row) and "no"), "--db", database).stderr

    assert "6 votes of 1 voter: 6 new, 0 known, 0 replaced" in first
    assert "6 votes of 1 voter: 0 new, 6 known, 0 replaced" in again
    assert "0 new, 0 known, 6 replaced" in changed
    assert changed.count("voter-1 changed yes to no") == 6
    with KnowledgeBase(database) as kb:
        assert {vote.answer for vote in kb.votes()} == {"no"}


def test_faulty_sheets_fail_the_command(database: Path, tmp_path: Path) -> None:
    """Empty sheets end with exit code 1, the first 20 faults, how many more there are, and the way out."""
    written = invoke("votes", "export", "statements", "--out", tmp_path, "--format", "csv", "--db", database)
    result = invoke("votes", "import", *written.stdout.split(), "--db", database)
    messages = result.stderr.splitlines()

    assert result.exit_code == 1
    assert sum(".csv:" in line for line in messages) == 20
    assert any(re.match(r"\.\.\. and \d+ more faults", line) for line in messages)
    assert "skip them with --skip-faulty" in " ".join(messages)


def test_votes_are_imported_into_what_is_there(database: Path, tmp_path: Path) -> None:
    """A mistyped --db is an error and leaves no file."""
    invoke("votes", "export", "statements", "--out", tmp_path, "--db", database)
    result = invoke("votes", "import", tmp_path / "statements-voter-1.csv", "--db", tmp_path / "typo.db")

    assert result.exit_code == 1
    assert "there is no such knowledge base" in " ".join(result.stderr.split())
    assert not (tmp_path / "typo.db").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--head", 3], 2, "Give --head and --long-tail together."),
        (["--head", 0, "--long-tail", 0], 1, "nothing to ask"),
        (["--voter", "ann", "--voter", "Ann"], 1, "Two voters have the same name"),
        (["--voter", " "], 1, "cannot be the name of a voter"),
        (["--rule", "nosuch"], 1, "no rule 'nosuch'"),
    ],
)
def test_exports_that_cannot_be_are_refused(
    arguments: list[object], code: int, message: str, database: Path, tmp_path: Path
) -> None:
    """Each with what to do."""
    result = invoke("votes", "export", "statements", *arguments, "--out", tmp_path / "sheets", "--db", database)

    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())


def test_votes_merge(database: Path, tmp_path: Path) -> None:
    """Votes that two people imported into two copies merge without a conflict."""
    copy = tmp_path / "copy.db"
    invoke("votes", "export", "statements", "--format", "csv", "--out", tmp_path, "--db", database)
    shutil.copy(database, copy)
    for number, target in ((1, database), (2, copy)):
        invoke("votes", "import", fill_csv(tmp_path / f"statements-voter-{number}.csv", yes), "--db", target)
    with KnowledgeBase(database) as kb:
        report = merge(kb, copy)
        assert report.added["votes"] == 36
        assert report.conflicts == ()
