"""Errors at the command line name the remedy that helps, and small slips are reported before they cost anything."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import winograd_fixture
from cli_fixture import run
from click.testing import Result
from money_fixture import RULES as MONEY
from money_fixture import WORLD

import hapax
from hapax.evaluation.entailment.pairs import EntailmentPair, Triple, write_levy_holt
from hapax.kb.store import KnowledgeBase

RULES = """
oracle bought(Person, Thing): "[1] bought [2]" / "[1] did not buy [2]" / "did [1] buy [2]?"
given owns(Person, Thing): "[1] owns [2]" / "[1] does not own [2]" / "does [1] own [2]?"
fact owns("Ann", "book")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my.rules").write_text(RULES, "utf-8")
    script = {"generate": {"'Ann bought [B]'": ["car"]}, "defaults": {"critic": 0.9, "generate": "Yes"}}
    (tmp_path / "m.json").write_text(json.dumps(script), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def facts(place: Path, *lines: str, code: int = 0) -> Result:
    (place / "edges.tsv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return run("evaluate", "entailment", "facts", "edges.tsv", "--rules", "my.rules", "--db", "kb.db", code=code)


def searched(place: Path) -> None:
    """A knowledge base with a few statements."""
    (place / "money.rules").write_text(MONEY, "utf-8")
    (place / "world.json").write_text(json.dumps(WORLD), "utf-8")
    run("search", "money.rules", "-m", "scripted:world.json", "--db", "kb.db", "--no-progress")


EDGE = "leased(Person A, Thing B)\thires(Person A, Thing B)\t0.6"


def test_a_weaker_entailment_is_named_with_the_score_that_takes_it_in(place: Path) -> None:
    """A goal whose predicate stands in stored entailments alone says which --entail brings it."""
    facts(place, EDGE)
    asked = ("query", "hires(ann, What)", "--rules", "my.rules", "--db", "kb.db")

    for more in ((), ("--entail", "0.8")):
        assert "the strongest of score 0.6: use --entail 0.6 to include that one" in run(*asked, *more, code=1).output
    assert run(*asked, "--entail", "0.6").exit_code == 0
    assert "the strongest" not in run("query", "unheard_of(What)", "--db", "kb.db", code=1).output


def test_an_entailment_without_types_says_how_it_gets_them(place: Path) -> None:
    """Fact and remedy: write the type, or name the rule file that declares the predicate."""
    printed = facts(place, "leased(A, B)\thires(A, B)\t0.6", code=1).output

    assert "no atom gives the variable A a data type" in printed
    assert "or name the file that declares the predicate by --rules" in printed


def test_an_atom_that_entails_itself_is_left_out_with_a_note(place: Path) -> None:
    """It would say nothing; what says that the arguments may change places stays."""
    printed = facts(
        place,
        EDGE,
        "met(Person A, Person B)\tmet(Person A, Person B)\t1",
        "met(Person A, Person B)\tmet(Person B, Person A)\t1",
    )

    assert "2 entailments in kb.db; skipped 1 line, since every atom entails itself" in printed.output
    with KnowledgeBase("kb.db", read_only=True) as kb:
        assert len(list(kb.facts("entails"))) == 2


def test_a_missing_file_of_scores_asks_for_a_file_of_scores(place: Path) -> None:
    """Not for premises and hypotheses."""
    buys, owns = Triple("A", "buys", "B"), Triple("A", "owns", "B")
    write_levy_holt([EntailmentPair(buys, owns, True), EntailmentPair(owns, buys, False)], place / "dev.txt")

    printed = run(
        "evaluate", "entailment", "score", "dev.txt", "--scorer", "scores:nothere", "--db", "x.db", code=1
    ).output

    assert "nothere: cannot be read" in printed
    assert "`truth score` lines" in printed


def test_a_base_that_cannot_be_loaded_is_told_before_anything_is_begun(place: Path) -> None:
    """No folder stays that would refuse the right base afterwards."""
    pair = EntailmentPair(Triple("A", "buys", "B"), Triple("A", "owns", "B"), True)
    for name in ("train.txt", "dev.txt"):
        write_levy_holt([pair], place / name)

    printed = run(
        "evaluate", "entailment", "train", "train.txt", "dev.txt", "--base", place / "none", "--out", "o", code=1
    )

    assert "cannot be loaded as a classifier" in printed.output
    assert "draw 1" not in printed.output
    assert not (place / "o").exists()


def test_a_dataset_that_cannot_be_written_names_the_folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's folder, not a temporary one that nobody asked for."""
    searched(place)

    def refused(*_: Any, **options: Any) -> str:
        raise PermissionError(13, "Permission denied", f"{options['dir']}/.new-xyz")

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    printed = run("dataset", "new", "--db", "kb.db", "--in-both", "keep", code=1).output

    assert f"{place.resolve()}: the dataset cannot be written there (Permission denied)" in printed.replace("\n", "")
    assert ".new-" not in printed


def test_a_query_that_begins_a_knowledge_base_says_so(place: Path) -> None:
    """Once; the next one finds it there."""
    asked = ("query", "bought(ann, What)", "--ask", "--rules", "my.rules", "-m", "scripted:m.json", "--db", "new.db")

    assert "new.db is new" in run(*asked).output
    assert "is new" not in run(*asked).output


@pytest.mark.parametrize("method", ["zero-shot", "aot-staged"])
def test_winograd_pairs_are_counted_before_they_are_asked(place: Path, method: str) -> None:
    """A dry run sends and writes nothing, and takes off what the journal holds."""
    path = winograd_fixture.write(place / "s.csv", winograd_fixture.PLAIN)
    asked = ("evaluate", "winograd", "ask", path, "--method", method, "-m", "scripted:m.json", "--db", "kb.db")

    printed = run(*asked, "--dry-run").output
    assert "4 requests would be sent" in printed
    assert not (place / "kb.db").exists()
    run(*asked)
    assert json.loads(run(*asked, "--dry-run", "--json").output) == {"requests": 0, "answered": 4, "most_tokens": 0}


def test_questions_of_a_probe_are_counted_before_they_are_asked(place: Path) -> None:
    """Thirteen for each statement, as far as the journal does not hold them."""
    searched(place)
    asked = ("evaluate", "probe", "-m", "scripted:m.json", "--sample", "1", "--db", "kb.db")

    printed = json.loads(run(*asked, "--dry-run", "--json").output)
    run(*asked)

    assert printed["requests"] >= 13
    assert json.loads(run(*asked, "--dry-run", "--json").output)["requests"] == 0


VISITS = """given has_pass(Person, Country)
given lets_in(Country, Country)
@name visits
has_pass(Person X, Country A) & lets_in(Country B, Country A) -> can_visit(Person X, Country B)
"""
FREE = "can_visit(Person X, Country A) & lets_in(Country A, Country B) -> is_free_in(Person X, Country B)\n"


@pytest.mark.parametrize(("count", "named"), [(5, "r1, r2, r3, r4, r5."), (6, "r1, r2, r3, r4, r5 ....")])
def test_the_first_five_rules_with_derived_statements_are_named(place: Path, count: int, named: str) -> None:
    """More rules than five are told by dots."""
    rules = "given has(Person, Thing)\n" + "".join(
        f"@name r{number}\n@generic none\nhas(Person X, Thing Y) -> may{number}(Person X, Thing Y)\n"
        for number in range(1, count + 1)
    )
    (place / "many.rules").write_text(rules, "utf-8")
    (place / "facts.csv").write_text("predicate,argument1,argument2\nhas,Ada,pen\n", "utf-8")
    run("import", "facts.csv", "--db", "own.db")
    run("derive", "many.rules", "--db", "own.db")

    printed = run("query", "holds(Who, Where)", "--db", "own.db", "--rules", "my.rules", code=1).output

    assert f"derived statements of rules {named} If one concludes" in printed


def test_a_goal_about_derived_statements_names_the_option_that_asks_for_them(place: Path) -> None:
    """A predicate whose derived atoms are stored is known of; otherwise the derived rules are, beside the guesses."""
    (place / "facts.csv").write_text("predicate,argument1,argument2\nhas_pass,Ada,UK\nlets_in,France,UK\n", "utf-8")
    run("import", "facts.csv", "--db", "own.db")
    printed = []
    for rules in (VISITS, VISITS + FREE):
        (place / "visits.rules").write_text(rules, "utf-8")
        run("derive", "visits.rules", "--db", "own.db")
        asked = ("query", "can_visit(Who, Where)", "--db", "own.db", "--rules", "my.rules")
        printed.append(run(*asked, code=1).output)
    why = run("why", 'can_visit("Ada","France")', "--db", "own.db", "--rules", "my.rules", code=1).output

    assert (
        "own.db holds derived statements of rule visits. If one concludes the predicate, name its rule file with --rules"
        in printed[0]
    )
    assert "name other files with --rules" in printed[0]
    for message in (printed[1], why):
        assert "own.db holds derived atoms of can_visit: name its rule file with --rules." in message
    assert why.count("error") == 1


def test_a_file_that_holds_no_rules_is_told_where_it_goes(place: Path) -> None:
    """A knowledge base goes by --db, facts by `hapax import`."""
    KnowledgeBase(place / "own.db").close()
    (place / "facts.csv").write_text("predicate,argument1\np,1\n", "utf-8")

    assert "it is a knowledge base. Pass it as --db own.db." in run("check", "own.db", code=4).output
    assert "Import facts with `hapax import facts.csv`." in run("check", "facts.csv", code=4).output


def test_an_unknown_rule_is_told_with_files_and_names(place: Path) -> None:
    """The files that were read and the names that are near, or those that there are."""
    (place / "visits.rules").write_text(VISITS, "utf-8")

    near = run("plan", "visits.rules", "--rule", "visit", code=1).output
    far = run("plan", "visits.rules", "--rule", "nosuch", code=1).output

    assert "No rule is named visit in visits.rules. Did you mean visits?" in near
    assert "No rule is named nosuch in visits.rules. Known rules: visits." in far


def test_an_unknown_rule_among_many_is_told_in_short() -> None:
    """Of many files and names the first stand there by name, without their folders, with the number of the rest."""
    unknown = run("plan", "--rule", "zzzzzzzz", code=1).output

    assert re.search(r"No rule is named zzzzzzzz in \w+\.rules, \w+\.rules, \w+\.rules and \d+ more\.", unknown)
    assert re.search(r"Known rules: (\w+, ){4}\w+ and \d+ more\.\n", unknown)


def test_a_report_in_a_missing_folder_names_the_folder(place: Path) -> None:
    """`report -o` and `ReportPage.write` say which folder there is not, and what to do."""
    searched(place)
    with hapax.KnowledgeBase(place / "kb.db") as kb:
        page = hapax.report(kb, hapax.parse_rules(MONEY))

    with pytest.raises(hapax.HapaxError, match=r"there is no folder .*nowhere. Create it, or name a file in another"):
        page.write(place / "nowhere" / "page.html")
    ended = run("report", "--db", "kb.db", "-o", "nowhere/page.html", code=1).output
    assert "there is no folder" in ended


def test_check_tells_the_faults_of_other_rules_beside_a_doubled_name_and_a_broken_rule(place: Path) -> None:
    """A line that cannot be parsed hides no other error, except those that its declarations might explain."""
    rule = "p(Person X, Food A) & q(Food A, Place B) -> r(Person X, Place {})\n"
    doubled = "@name a\n" + rule.format("B") + "@name a\n" + rule.format("C")
    codes = {}
    for name, more in (("doubled", ""), ("rule", "p(Person X -> q\n"), ("declaration", "oracle p(Person\n")):
        (place / f"{name}.rules").write_text(doubled + more, "utf-8")
        found = json.loads(run("check", f"{name}.rules", "--json", code=4).stdout)
        codes[name] = {diagnostic["code"] for diagnostic in found}

    assert {"HPX053", "HPX101", "HPX201"} <= codes["doubled"]
    assert {"HPX053", "HPX101"} <= codes["rule"]
    assert "HPX201" not in codes["rule"]
    assert "HPX101" not in codes["declaration"]
