"""Rules that are mined from facts, and rules that models propose."""

from __future__ import annotations

import itertools
import json
import random
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_fixture import invoke
from click.testing import Result
from openai_fake import FakeServer

import hapax

# --- mining -----------------------------------------------------------------------------------------------------------


Fact = tuple[str, tuple[Any, ...]]
TYPES = {
    "lives_in": ("Person", "City"),
    "lies_in": ("City", "Country"),
    "citizen_of": ("Person", "Country"),
    "born_in": ("Person", "City"),
    "parent_of": ("Person", "Person"),
    "child_of": ("Person", "Person"),
    "sibling_of": ("Person", "Person"),
    "speaks": ("Person", "Language"),
    "is_adult": ("Person",),
    "may_vote_in": ("Person", "Country"),
    "drives_on": ("Country", "Side"),
    "drives_left": ("Country",),
}

RULES = """
parent_of(Person Y, Person X) -> child_of(Person X, Person Y)
lives_in(Person X, City Z) & lies_in(City Z, Country Y) -> citizen_of(Person X, Country Y)
parent_of(Person Z, Person X) & parent_of(Person Z, Person Y) -> sibling_of(Person X, Person Y)
citizen_of(Person X, Country Y) & is_adult(Person X) -> may_vote_in(Person X, Country Y)
drives_on(Country X, "left") -> drives_left(Country X)
"""
"""Rules of several shapes: inverse, chain, shared subject, condition, constant."""


def stored(
    facts: Iterable[Fact], types: dict[str, tuple[str, ...]], path: str | Path = ":memory:"
) -> hapax.KnowledgeBase:
    """A knowledge base with these facts."""
    kb = hapax.KnowledgeBase() if path == ":memory:" else hapax.KnowledgeBase(path)
    declared = hapax.parse_rules("".join(f"given {name}({', '.join(each)})\n" for name, each in types.items()))
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for name, values in facts:
        rows.setdefault(name, []).append(values)
    for name, each in rows.items():
        hapax.add_facts(kb, name, each, declared)
    return kb


def mined(
    facts: Iterable[Fact], rules: str = "", types: dict[str, tuple[str, ...]] | None = None, **options: Any
) -> hapax.MinedRules:
    """The rules mined from these facts beside a library."""
    with stored(facts, types or TYPES) as kb:
        return hapax.mine_rules(hapax.parse_rules(rules), kb, hapax.MiningOptions(**{"examples": 0, **options}))


def sentences(found: hapax.MinedRules) -> list[str]:
    return [item.rule.sentence for item in found.rules]


def world(people: int) -> list[tuple[str, tuple[str, ...]]]:
    """Facts made by RULES: a tenth of the conclusions is missing, and a twentieth of the facts is noise."""
    rng = random.Random(1)
    persons, cities, countries = (
        [f"{kind} {n}" for n in range(count)] for kind, count in (("person", people), ("city", 60), ("country", 30))
    )
    lies = {city: rng.choice(countries) for city in cities}
    lives, born = ({person: rng.choice(cities) for person in persons} for _ in range(2))
    sides = {country: rng.choice(["left", "right"]) for country in countries}
    parents = {child: rng.choice(persons[: people // 4]) for child in persons[people // 4 :]}
    adults = [person for person in persons if rng.random() < 0.6]
    chosen = {"lies_in": lies, "lives_in": lives, "born_in": born, "drives_on": sides}
    made = {(name, pair) for name, pairs in chosen.items() for pair in pairs.items()}
    made |= {("parent_of", (parent, child)) for child, parent in parents.items()}
    made |= {("is_adult", (person,)) for person in adults}
    concluded = [("child_of", pair) for pair in parents.items()]
    concluded += [("sibling_of", (a, b)) for a in parents for b in parents if parents[a] == parents[b] and a != b]
    concluded += [("citizen_of", (person, lies[lives[person]])) for person in persons]
    concluded += [("may_vote_in", (person, lies[lives[person]])) for person in adults]
    concluded += [("drives_left", (country,)) for country in countries if sides[country] == "left"]
    made |= {fact for fact in concluded if rng.random() < 0.9}
    made |= {("citizen_of", (rng.choice(persons), rng.choice(countries))) for _ in range(people // 20)}
    return sorted(made)


def spelled(rule: hapax.Rule) -> str:
    """The rule with variables named by first occurrence, its premises in the order that makes this the least text."""
    texts = []
    for order in itertools.permutations(rule.premise):
        names: dict[str, str] = {}
        text = " & ".join(map(str, order)) + f" -> {rule.conclusion}"
        for variable in hapax.Rule("", tuple(order), rule.conclusion).variables:
            names[str(variable)] = f"{variable.data_type} V{len(names)}"
        for old, new in names.items():
            text = text.replace(old, f"<{new}>")
        texts.append(text)
    return min(texts)


def test_the_rules_that_made_the_facts_are_mined() -> None:
    """All but at most one of the rules that made a noisy world are mined, and no reversal that its facts deny."""
    found_rules = mined(world(people=100), constants=True)
    found = {spelled(item.rule) for item in found_rules.rules}
    expected = {spelled(rule) for rule in hapax.parse_rules(RULES).rules}
    reversed_rules = hapax.parse_rules(
        """
        citizen_of(Person X, Country Z) & lies_in(City Y, Country Z) -> lives_in(Person X, City Y)
        sibling_of(Person X, Person Y) -> parent_of(Person X, Person Y)
        born_in(Person X, City Y) -> lives_in(Person X, City Y)
        """
    )

    assert len(expected - found) <= 1, expected - found
    assert not {spelled(rule) for rule in reversed_rules.rules} & found


def test_figures_are_those_worked_out_by_hand() -> None:
    """Of four who live in a city two were born there, one was born elsewhere, and of one no birthplace is known."""
    facts: list[Fact] = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem", "dan")]
    facts += [("born_in", ("ann", "Rome")), ("born_in", ("bob", "Rome")), ("born_in", ("cem", "Oslo"))]
    facts += [("born_in", ("eva", "Oslo"))]
    found = mined(facts, min_support=1, min_coverage=0, min_confidence=0, min_pca=0, examples=3)
    (item,) = (
        item for item in found.rules if item.rule.sentence == "lives_in(Person X, City Y) -> born_in(Person X, City Y)"
    )
    measures = item.measures

    assert (measures.support, measures.head_coverage, measures.confidence) == (2, 2 / 4, 2 / 4)
    assert measures.pca_confidence == 2 / 3
    assert item.examples[0] == "ann lives in Rome: ann born in Rome"
    assert item.counter_examples == ("cem lives in Rome: cem born in Rome",)


PAIRS: list[Fact] = [(name, (f"a{number}", f"b{number}")) for number in range(20) for name in ("near", "beside")]
PLACES = {"near": ("Place", "Place"), "beside": ("Place", "Place")}


def test_a_mined_rule_brings_the_declarations_it_needs() -> None:
    """A predicate that the library does not declare is given with the types of the facts."""
    for text, declared in (("", {"near", "beside"}), ("given near(Place, Place)", {"beside"})):
        found = mined(PAIRS, text, PLACES).rules
        rule = next(item for item in found if item.rule.conclusion.atom.predicate == "beside")
        assert {each.name for each in rule.signatures} == declared
        assert {each.argument_types for each in rule.signatures} == {("Place", "Place")}


def test_rules_that_say_nothing_new_are_left_out() -> None:
    """Neither a mirrored `symmetric` predicate nor special cases nor rules of the library are mined."""
    blue: list[Fact] = [("blue", (f"a{number}",)) for number in range(20)]
    types = {**PLACES, "blue": ("Place",)}
    rule = "near(Place X, Place Y) -> beside(Place X, Place Y)"
    plain = sentences(mined([*PAIRS, *blue], "", types))
    symmetric = sentences(mined([*PAIRS, *blue], "given near(Place, Place)\nsymmetric near/2", types))
    stated = mined([*PAIRS, *blue], f"@generic none\n{rule}", types)

    assert rule in plain
    assert not [sentence for sentence in plain if "blue" in sentence.partition("->")[0]]
    assert "near(Place X, Place Y) -> near(Place Y, Place X)" not in symmetric
    assert rule not in sentences(stated)
    assert any("the library states as much" in note for note in stated.notes)


def test_constants_are_mined_when_asked() -> None:
    """A rule about a constant is mined with `constants` alone; conclusion and premise may have one each."""
    facts: list[Fact] = []
    for number in range(40):
        is_parisian, is_adult = number % 2 == 0, number % 4 < 2
        facts.append(("lives_in", (f"person {number}", "Paris" if is_parisian else "Rome")))
        facts += [("is_adult", (f"person {number}",))] if is_adult else []
        facts.append(("speaks", (f"person {number}", "French" if is_parisian and is_adult else "Italian")))
    with_constants, without = (sentences(mined(facts, constants=asked)) for asked in (True, False))
    premises = ('lives_in(Person X, "Paris")', "is_adult(Person X)")

    assert {f'{" & ".join(order)} -> speaks(Person X, "French")' for order in (premises, premises[::-1])} & {
        *with_constants
    }
    assert not [sentence for sentence in without if '"' in sentence]


def test_hostile_values_are_quoted() -> None:
    """Constants with quotation marks, backslashes, rule text or SQL stand in rules that read back as they were."""
    hostile: list[Any] = ['x"), halt(', "a\\", "'; DROP TABLE facts; --", "new\nline", "%_", "[1]"]
    facts: list[Fact] = []
    types: dict[str, tuple[str, ...]] = {"p": ("Object", "Object")}
    for number, value in enumerate(hostile):
        names = [f"object {number} {place}" for place in range(12)]
        facts += [("p", (name, value)) for name in names] + [(f"is_kind_{number}", (name,)) for name in names]
        types[f"is_kind_{number}"] = ("Object",)
    found = mined(facts, "", types, constants=True, min_coverage=0, premises=1)

    assert [rule.sentence for rule in hapax.parse_rules(found.text).rules] == sentences(found)
    ends = [item.rule.conclusion.atom.arguments[-1] for item in found.rules]
    assert {*hostile} <= {getattr(end, "value", None) for end in ends}


RULE = "lives_in(Person X, City Z) & lies_in(City Z, Country Y) -> citizen_of(Person X, Country Y)"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of people, cities and countries."""
    path = tmp_path_factory.mktemp("people") / "x.db"
    names = ("lives_in", "lies_in", "citizen_of")
    stored([fact for fact in world(people=120) if fact[0] in names], TYPES, path).close()
    return path


@pytest.fixture
def mine(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`hapax rules mine` in a folder with the knowledge base's vocabulary."""
    monkeypatch.chdir(tmp_path)
    Path("words.rules").write_text(
        'given lives_in(Person, City): "[1] has a home in [2]"\ngiven lies_in(City, Country): "[1] lies in [2]"\n'
        'given citizen_of(Person, Country): "[1] is a citizen of [2]"\n',
        "utf-8",
    )

    def run(*options: str) -> Result:
        return invoke("rules", "mine", "--db", people, "--rules", "words.rules", *options)

    return run


def test_accepted_rules_are_written_and_pass_check(mine: Any) -> None:
    """A rule is added as a comment with its figures and examples; without its # it is a rule, and it is added once."""
    first, listed = mine("-o", "mined.rules"), json.loads(mine("--json").stdout)["rules"]
    text = Path("mined.rules").read_text("utf-8")
    (block,) = (block for block in text.split("\n\n") if RULE in block)

    assert first.exit_code == 0
    assert RULE in [rule["rule"] for rule in listed]
    assert hapax.load_rules("mined.rules", "words.rules").rules == ()
    assert "has a home in" in block
    assert "PCA confidence" in block

    accepted = text.replace(block, block.replace("\n# ", "\n").removeprefix("# "))
    Path("mined.rules").write_text(accepted, "utf-8")
    for more in ((), ("--rules", "mined.rules")):
        assert mine("-o", "mined.rules", *more).exit_code == 0
        assert Path("mined.rules").read_text("utf-8") == accepted
    assert [rule.sentence for rule in hapax.load_rules("mined.rules", "words.rules").rules] == [RULE]
    assert invoke("check", "mined.rules", "words.rules").exit_code == 0


def test_a_person_s_rules_are_not_overwritten(mine: Any) -> None:
    """A file keeps what it has; with --accept rules are added that pass the check with it."""
    written = "# my own rules\nis_red(Object A) -> is_warm(Object A)\n"
    Path("mined.rules").write_text(written, "utf-8")
    added = mine("-o", "mined.rules", "--accept")

    assert added.exit_code == 0
    assert Path("mined.rules").read_text("utf-8").startswith(written)
    assert len(hapax.load_rules("mined.rules", "words.rules").rules) > 1
    assert mine("--accept").exit_code == 2


# --- proposals --------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[3]
FILES = yaml.safe_load((Path(__file__).parents[1] / "commands" / "rule_proposals.yaml").read_text("utf-8"))["files"]
EXPAND = ("rules", "expand", "meta.rules", "--variable", "B", "-o", "new.rules", "--rules", "library")
TABLE_5 = (
    'In rule "requires_a_minimal_age_of(Object B, Age Y) & cannot_operate(Person A, Object B)", B is a variable '
    "representing an Object. List 10 subcategories of Object that B could be that also make the rule true.",
    "cannot_operate(Person A, Object B) is equal to [mask](Person A, Vehicle B). Write the best predicate that "
    "could fit in [mask] token.",
    "Fill in the [mask] in 'If Person A is Age X years old and Vehicle B requires a minimal age of Age Y and Age X is "
    "smaller than Age Y, then Person A [mask] Vehicle B' so that the statement is factually plausible and "
    "grammatically correct. Give 5 statements.",
)
"""The paper's prompts for its own meta-rule."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the paper's meta-rule, a library and a script, as the working folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, "utf-8")


def expand(*options: str, model: str = "scripted:script.json", database: str = "x.db") -> Result:
    return invoke(*EXPAND, "-m", model, "--db", database, *options)


def calls(database: str = "x.db") -> int:
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return sum(kb.call_counts().values())


def test_prompts_are_those_of_table_5() -> None:
    """The paper's meta-rule is asked about in the paper's words, to the letter."""
    script: dict[str, Any] = json.loads(FILES["script.json"])
    with FakeServer(script) as server:
        result = expand("--max-calls", "100", model=f"openai:tiny@{server.url}")
    prompts = [str(asked.body["messages"][-1]["content"]) for asked in server.asked if "messages" in asked.body]

    assert result.exit_code == 0, result.output
    assert [prompt for prompt in TABLE_5 if prompt not in prompts] == []


def test_comments_become_rules_by_hand_and_are_not_proposed_again() -> None:
    """Without its # a proposal is a rule, with another verb too; what stays a comment or was edited stays as it is."""
    first = expand()
    blocks = Path("new.rules").read_text("utf-8").split("\n\n")
    none = hapax.load_rules("new.rules").rules
    accepted = [re.sub("^# ", "", block, flags=re.MULTILINE) if "cannot_drive" in block else block for block in blocks]
    edited = "\n\n".join(accepted).replace("cannot_drive", "cannot_steer")
    Path("new.rules").write_text(edited, "utf-8")
    again = expand()
    rules = hapax.load_rules("new.rules")

    assert (first.exit_code, again.exit_code) == (0, 0)
    assert len(none) == 0
    assert [str(rule.conclusion) for rule in rules.rules] == ["cannot_steer(Person A, Vehicle B)"]
    assert [fault for fault in hapax.check_rules(rules) if fault.severity == "error"] == []
    assert Path("new.rules").read_text("utf-8") == edited


def test_a_budget_counts_every_request_and_no_run_asks_again() -> None:
    """Two runs, the first one ended by its budget, send as many requests as one; a third asks and adds nothing."""
    stopped = expand("--max-calls", "4")
    sent = calls()
    expand("--accept")
    expand("-o", "alone.rules", database="y.db")
    written = Path("new.rules").read_bytes()
    again = expand("--accept")

    assert (stopped.exit_code, sent, again.exit_code) == (3, 4, 0)
    assert calls() == calls("y.db")
    assert Path("new.rules").read_bytes() == written


def test_the_worked_example_of_the_page() -> None:
    """Script and command of docs/how-to/rules.md, typed in as they stand, print and write what the page shows."""
    page = (ROOT / "docs" / "how-to" / "rules.md").read_text("utf-8")
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (script,) = (text for kind, text in fences if kind == "json")
    (rules,) = (text for kind, text in fences if kind == "rules")
    (command,) = (text for _, text in fences if text.startswith("hapax rules expand"))
    (printed,) = (text for _, text in fences if text.startswith("Vehicle in operating_age"))
    Path("rules").symlink_to(ROOT / "rules")
    Path("table5.json").write_text(script, "utf-8")
    result = invoke(*shlex.split(command)[1:])

    assert result.exit_code == 0
    assert result.stdout.strip() == printed.strip()
    assert Path("age.rules").read_text("utf-8") == rules
    assert invoke("check", "age.rules", "rules").exit_code == 0
