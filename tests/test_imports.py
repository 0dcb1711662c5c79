"""Imports of rule files: paths, names behind `as`, cycles, faults, and knowledge bases that keep rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hapax.api.rule_documents import files_with
from hapax.grammar import imports
from hapax.grammar.errors import RulesRejected
from hapax.grammar.formatting import formatted_rules
from hapax.grammar.parser import load_library, parse_library, read_texts
from hapax.grammar.printing import format_library
from hapax.grammar.verbalize import literal_text
from tests.cli_fixture import invoke, run

KITCHEN = """
type Nut < Ingredient
given is_in(Ingredient, Dish)
closed is_in/2
@name made
is_in(Ingredient Z, Dish D) -> cannot_be_made_without(Dish D, Ingredient Z)
fact is_in("nut", "cake")
"""
GUESTS = """
import "lib/kitchen.rules"
given is_allergic_to(Person, Ingredient)
fact is_allergic_to("Ann", "nut")
is_allergic_to(Person X, Ingredient Z) & cannot_be_made_without(Dish D, Ingredient Z) -> cannot_eat(Person X, Dish D)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with guests.rules, which imports lib/kitchen.rules."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "kitchen.rules").write_text(KITCHEN, "utf-8")
    (tmp_path / "guests.rules").write_text(GUESTS, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def faults(path: Path) -> list[tuple[str, int, str]]:
    with pytest.raises(RulesRejected) as caught:
        load_library([path])
    return [(Path(fault.place.file).name, fault.place.line, fault.code) for fault in caught.value.diagnostics]


def test_imported_statements_are_those_of_one_library(folder: Path) -> None:
    """An import has the effect of naming the imported file beside its importer."""
    named = load_library([folder / "guests.rules", folder / "lib" / "kitchen.rules"])

    assert load_library([folder / "guests.rules"]) == named
    assert parse_library([("f.rules", format_library(named))]) == named


def test_a_file_is_read_once_however_often_it_is_imported(folder: Path) -> None:
    """Files that import each other, and files that are named and imported, are read once."""
    kitchen = folder / "lib" / "kitchen.rules"
    kitchen.write_text(KITCHEN + '\nimport "../guests.rules"\nimport "kitchen.rules"', "utf-8")
    (folder / "more.rules").write_text('import "./lib/../lib/kitchen.rules"\nimport "guests.rules"', "utf-8")
    names = sorted(rule.name for rule in load_library([folder]).rules)

    assert names == ["made", "rule1"]
    assert sorted(rule.name for rule in load_library([kitchen]).rules) == names


def test_names_behind_as_end_the_names_of_predicates_and_rules(folder: Path) -> None:
    """`as` renames predicates and rules in every statement, also those of nested imports; types and sentences stay."""
    (folder / "all.rules").write_text('import "guests.rules" as home\nimport "lib/kitchen.rules" as inn', "utf-8")
    library = load_library([folder / "all.rules"])
    printed = format_library(library)

    assert sorted(rule.name for rule in library.rules) == ["made_home", "made_inn", "rule1"]
    assert {atom.predicate for rule in library.rules for atom in rule.atoms} == {
        *("is_allergic_to_home", "cannot_be_made_without_home", "cannot_eat_home", "is_in_home"),
        *("is_in_inn", "cannot_be_made_without_inn"),
    }
    assert "closed is_in_inn/2" in printed
    assert "closed is_in_home/2" in printed
    assert printed.count("type Nut < Ingredient") == 1
    made = library.rule("made_inn")
    assert literal_text(made.premise[0], library) == "[Z] is in [D]"
    assert made.polarity.value == "negative"


EVERY_KIND = """
oracle can_eat*(Person, Dish): "[1] can eat [2]" / "[1] cannot eat [2]" / "can [1] eat [2]?"
given avoids*(Person, Dish): "[1] avoids [2]" / "[1] does not avoid [2]" / "does [1] avoid [2]?"
given is_related_ to*(Person, Person): "[1] is kin to [2]" / "[1] is not kin to [2]" / "is [1] kin to [2]?"
opposite can_eat* avoids*
symmetric is_related_to*/2
closed is_related_to*/2
disjoint Person, Dish
type Soup < Dish
computed is_older*(Age A, Age B) := A > B: "[1] is over [2]" / "[1] is not over [2]" / "is [1] over [2]?"
aggregate meals*(Person P, Number K) := K = count(Dish D: avoids*(Person P, Dish D)): "[2] for [1]" / "no" / "?"
never is_related_to*(Person X, Person X)
fact is_related_ to*("Ann", "Bob")
@name "plain*"
is_related_ to*(Person X, Person Y) & not avoids*(Person X, Dish D) -> can_eat*(Person Y, Dish D)
unless avoids*(Person Y, Dish D)
@name short*
can_eat*(Person X, Soup D) -> avoids*(Person X, Soup D)
"""
"""Statements with a star behind each name that `as` changes."""


def test_names_behind_as_change_every_kind_of_statement(folder: Path) -> None:
    """An import under a name reads as the file would with the name at the end of each predicate and rule."""
    (folder / "plain.rules").write_text(EVERY_KIND.replace("*", ""), "utf-8")
    (folder / "all.rules").write_text('import "plain.rules" as inn', "utf-8")
    written = parse_library([("all.rules", EVERY_KIND.replace("*", "_inn"))])

    assert format_library(load_library([folder / "all.rules"])) == format_library(written)


def test_rules_without_a_name_get_different_names(folder: Path) -> None:
    """One file under three names has three rules with names of their own."""
    (folder / "all.rules").write_text("\n".join(f'import "guests.rules" as g{n}' for n in range(3)), "utf-8")
    names = [rule.name for rule in load_library([folder / "all.rules"]).rules]

    assert len(names) == len(set(names)) == 6


def test_a_missing_file_is_reported_where_it_is_imported(folder: Path) -> None:
    """The place of the fault is the import's line; the other rules are checked all the same."""
    (folder / "all.rules").write_text('import "guests.rules"\nimport "nowhere.rules"\nimport "lib"\np(X', "utf-8")

    assert faults(folder / "all.rules") == [
        ("all.rules", 2, "HPX060"),
        ("all.rules", 3, "HPX060"),
        ("all.rules", 4, "HPX012"),
    ]


def test_faults_of_imported_files_are_reported_at_their_places(folder: Path) -> None:
    """A fault of an imported file is reported once, even if two names import it."""
    (folder / "lib" / "kitchen.rules").write_text(KITCHEN + "\np(X", "utf-8")
    (folder / "all.rules").write_text('import "guests.rules"\nimport "lib/kitchen.rules" as inn', "utf-8")

    assert faults(folder / "all.rules") == [("kitchen.rules", 9, "HPX012")]


def test_an_import_of_itself_under_another_name_is_refused(folder: Path) -> None:
    """Names that would become longer without end are an error; there is a limit to the number of imports, too."""
    (folder / "a.rules").write_text('import "b.rules"', "utf-8")
    (folder / "b.rules").write_text('import "a.rules" as again', "utf-8")

    assert faults(folder / "a.rules") == [("b.rules", 1, "HPX064")]


def test_the_number_of_imports_is_limited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that import the next one under two names each do not fill the memory."""
    monkeypatch.setattr(imports, "MAXIMUM_IMPORTS", 50)
    for number in range(12):
        following = f'"f{number + 1}.rules"'
        (folder / f"f{number}.rules").write_text(f"import {following} as a\nimport {following} as b", "utf-8")
    (folder / "f12.rules").write_text("p(T X, T Y) -> q(T X, T Y)", "utf-8")

    assert [code for _, _, code in faults(folder / "f0.rules")] == ["HPX060"]


def test_a_file_may_be_known_by_a_thousand_names(folder: Path) -> None:
    """A thousand imports in one reading are read; the line of the next one is reported, with how many there are."""
    (folder / "names.rules").write_text('given is_open(Place)\nfact is_open("Oslo")', "utf-8")
    importing = folder / "many.rules"
    importing.write_text("\n".join(f'import "names.rules" as n{number}' for number in range(1000)), "utf-8")
    assert len(load_library([importing]).facts) == 1000

    with importing.open("a", encoding="utf-8") as stream:
        stream.write('\nimport "names.rules" as further')

    assert faults(importing) == [("many.rules", 1001, "HPX060")]


def test_texts_read_no_files(folder: Path) -> None:
    """Rules that come as a text, from an agent for instance, cannot make Hapax read a file."""
    with pytest.raises(RulesRejected, match="HPX060"):
        parse_library([(str(folder / "other.rules"), GUESTS)])

    sources = [(str(folder / "guests.rules"), GUESTS), (str(folder / "lib" / "kitchen.rules"), KITCHEN)]
    assert parse_library(sources) == load_library([folder / "guests.rules"])
    assert not read_texts([(str(folder / "x.rules"), GUESTS)], import_files=True).diagnostics
    assert parse_library([("a name\0 that is no path", KITCHEN)]).rules


def test_a_knowledge_base_keeps_imported_files(folder: Path) -> None:
    """After `derive` the kept rules need no file, and a change of an imported file is told."""
    database = folder / "hapax.db"
    (folder / "facts.csv").write_text("is_in,flour,pie\n", "utf-8")
    run("import", "facts.csv", "--db", database, "--rules", "guests.rules")
    run("derive", "guests.rules", "--db", database)
    kitchen = folder / "lib" / "kitchen.rules"
    kitchen.write_text(KITCHEN + 'fact is_in("egg", "cake")\n', "utf-8")
    changed = invoke("query", "cannot_eat(Who, Dish)", "--db", database, "--json")

    assert "lib/kitchen.rules has changed" in changed.stderr
    assert json.loads(changed.stdout)["answers"] == [{"Who": "Ann", "Dish": "cake"}]
    kitchen.unlink()
    (folder / "guests.rules").unlink()
    assert "cake" in run("query", "cannot_eat(Who, Dish)", "--db", database).stdout


def test_an_import_is_laid_out_like_other_statements() -> None:
    """`hapax fmt` keeps imports."""
    text = 'import   "a.rules"as b.import "c.rules" # the rest\n'

    assert formatted_rules(text) == 'import "a.rules" as b\nimport "c.rules"  # the rest\n'


def test_the_editor_reads_what_a_file_imports(folder: Path) -> None:
    """A file that is open alone belongs together with the files that it imports."""
    names = files_with(str(folder / "guests.rules"), [])

    assert names == [str(folder / "guests.rules"), str(folder / "lib" / "kitchen.rules")]


def test_a_broken_declaration_explains_what_its_file_is_imported_as(tmp_path: Path) -> None:
    """A rule that uses it under its new name gets no faults that only follow from the broken line."""
    (tmp_path / "lib.rules").write_text('oracle lies_in(City X, Country Y : "[1] lies in [2]"\n', "utf-8")
    (tmp_path / "main.rules").write_text(
        'import "lib.rules" as eu\n@generic none\n'
        "lies_in_eu(A, B) & speaks(Country B, Language L) & has(City C, Thing T) -> says(Thing T, Language L)\n",
        "utf-8",
    )

    assert faults(tmp_path / "main.rules") == [("lib.rules", 1, "HPX001")]
