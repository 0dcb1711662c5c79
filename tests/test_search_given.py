"""Searches over given facts: what no model is needed for is tested before anything is ranked or cut."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from random_cases import cases
from random_programs import facts, programs

from hapax.engine.explain import story_text, why_not
from hapax.engine.inference.bulk_derivation import derive_all, read_statements
from hapax.engine.inference.known_facts import Row
from hapax.engine.inference.replay import Replay
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory, run_query
from hapax.engine.search import search as searching
from hapax.engine.search.account import cut_text
from hapax.engine.search.job import SearchJob
from hapax.engine.search.plan import plan_run
from hapax.engine.search.report import SearchReport
from hapax.engine.search.search import search, unanswerable
from hapax.engine.search.settings import SearchSettings
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import ModelIdentity, Models
from hapax.llm_oracle.scripted import ScriptedModel

THIN_AIR = """
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?"
given may_feel_dizzy_at(Person, Airport): "[1] may feel dizzy at [2]" / "[1] cannot feel dizzy at [2]" / "may [1]?"
type Elevation < Number
@name thin_air
flies_to(Person X, Airport A) & lies_at(Airport A, Elevation E) & E > 8000 -> may_feel_dizzy_at(Person X, Airport A)
"""
AIRPORTS, HIGH = 7836, 61


def airports() -> list[FactRecord]:
    """As many airports as a public list has, of which 61 lie above 8,000 feet."""
    facts = []
    for number in range(AIRPORTS):
        # The high ones lie between the others, so that neither end of a ranking has all of them.
        is_high = number % (AIRPORTS // HIGH) == 7 and number // (AIRPORTS // HIGH) < HIGH
        elevation = 8001 + number if is_high else number % 8000
        facts.append(FactRecord("lies_at", (f"Airport {number}", elevation), ("Airport", "Elevation"), Source.GIVEN))
    return facts


def silent_model() -> ScriptedModel:
    """A model that proposes nothing, denies everything and finds all texts equally likely."""
    return ScriptedModel({"generate": {}, "defaults": {"critic": 0.0, "likelihood": -10.0, "generate": []}})


def searched(rules: str, rows: list[FactRecord], **chosen: object) -> tuple[SearchReport, ScriptedModel]:
    """The report of a search of all rules, and the model that it asked."""
    library = parse_library([("given.rules", rules)])
    model = silent_model()
    kb = KnowledgeBase()
    kb.add_facts(rows)
    models = Models(model, model, model, model)
    return search(SearchJob(library, library.rules, kb, models, SearchSettings(**chosen))), model  # type: ignore[arg-type]


def statements(report: SearchReport) -> set[str]:
    return {statement.text for statement in report.statements}


def test_a_comparison_is_tested_before_the_beam_cuts() -> None:
    """A search finds all 61 of 7,836 airports that lie above 8,000 feet, although its beam keeps 200."""
    report, _ = searched(THIN_AIR, airports(), ends="overlapping")

    assert len(statements(report)) == HIGH


PROGRAMS = cases(15)
"""Random programs that are compared."""


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(program=programs(), rows=facts())
def test_a_search_without_a_beam_finds_what_derive_finds(
    program: str, rows: list[FactRecord], prolog: PrologSession
) -> None:
    """Constants, repeated variables, negation, comparisons, arithmetic, definitions and recursion: equal statements."""
    assume(not any("\0" in str(value) for row in rows for value in row.arguments))  # no text of Prolog's
    library = parse_library([("random.rules", program)])
    named = [library.rule("told"), library.rule("r2")]
    model = silent_model()
    with KnowledgeBase() as kb:
        kb.add_facts(replace(row, source=Source.GIVEN) for row in rows)
        derive_all(kb, library, named, session=prolog)
        derived = {
            rule.name: {(item.id, item.text) for item in read_statements(kb, library, rule, prolog)} for rule in named
        }
        chosen = SearchSettings(beam=None, distributions=(Distribution.HEAD,))
        # A process for each program would take most of the time.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hapax.engine.search.search.PrologSession", lambda: nullcontext(prolog))
            report = search(SearchJob(library, named, kb, Models(model, model, model, model), chosen))

    found = {rule.rule: {(item.id, item.text) for item in rule.statements[Distribution.HEAD]} for rule in report.rules}
    assert found == derived
    assert not model.prompts
    assert not model.claims


NODES = st.sampled_from(("a", "b", "c", "d", 2, Decimal("2.0")))
RULES_OF_NEAR = (
    "near(Node A, Node B) -> reaches(Node A, Node B)",
    'near(Node A, "b") -> reaches(Node A, "b")',
    "start(Node A) & near(Node A, Node B) & near(Node B, Node C) -> reaches(Node A, Node C)",
    "start(Node A) & near(Node B, Node A) & not start(Node B) -> reaches(Node A, Node B)",
    "start(Node A) & start(Node B) & near(Node A, Node B) -> reaches(Node A, Node B)",
    "near(Node A, Node A) & start(Node A) -> reaches(Node A, Node A)",
)


@settings(max_examples=PROGRAMS, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rules=st.lists(st.sampled_from(RULES_OF_NEAR), min_size=1, max_size=3, unique=True),
    near=st.lists(st.tuples(NODES, NODES), max_size=7),
    start=st.lists(st.tuples(NODES), max_size=3),
    declared=st.sets(st.sampled_from(("symmetric", "transitive"))),
)
def test_what_follows_from_given_facts_by_declarations_is_proposed(
    rules: list[str], near: list[Row], start: list[Row], declared: set[str], prolog: PrologSession
) -> None:
    """Given facts of a symmetric or transitive oracle predicate give the values and truths that `derive` has."""
    lines = ['oracle near(Node, Node): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?".']
    lines += ["given start(Node)", *(f"{declaration} near/2" for declaration in sorted(declared))]
    lines += [f"@name r{number}\n@generic none\n{rule}" for number, rule in enumerate(rules)]
    library = parse_library([("near.rules", "\n".join(lines))])
    rows = [FactRecord("near", row, ("Node", "Node"), Source.GIVEN) for row in near]
    rows += [FactRecord("start", row, ("Node",), Source.GIVEN) for row in start]
    model = silent_model()
    with KnowledgeBase() as kb:
        kb.add_facts(rows)
        derive_all(kb, library, library.rules, session=prolog)
        derived = {
            rule.name: {(item.id, item.text) for item in read_statements(kb, library, rule, prolog)}
            for rule in library.rules
        }
        chosen = SearchSettings(beam=None, distributions=(Distribution.HEAD,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hapax.engine.search.search.PrologSession", lambda: nullcontext(prolog))
            report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model), chosen))

    found = {rule.rule: {(item.id, item.text) for item in rule.statements[Distribution.HEAD]} for rule in report.rules}
    assert found == derived


MONEY = """
type Elevation < Number
oracle is_flown_by(Airport, Airline): "[1] is flown by [2]" / "[1] is not flown by [2]" / "is [1] flown by [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2]?"
given closed(Airport): "[1] is closed" / "[1] is not closed" / "is [1] closed?"
given works_at(Person, Airport): "[1] works at [2]" / "[1] does not work at [2]" / "does [1] work at [2]?"
given knows_pilots_of(Person, Airline): "[1] knows pilots of [2]" / "[1] knows no pilots of [2]" / "does [1] know [2]?"
@name pilots
works_at(Person X, Airport A) & is_flown_by(Airport A, Airline B) & lies_at(Airport A, Elevation E) & E > 10
  & not closed(Airport A) -> knows_pilots_of(Person X, Airline B)
"""


def test_a_model_is_asked_about_the_values_that_given_facts_allow_alone() -> None:
    """Comparisons and negations over given facts come first, and no type of a given value is ever judged."""
    types = ("Airport", "Elevation")
    rows = [FactRecord("lies_at", (name, feet), types, Source.GIVEN) for name, feet in (("Low", 5), ("High", 20))]
    rows += [
        FactRecord("lies_at", ("Old", 30), types, Source.GIVEN),
        FactRecord("closed", ("Old",), types, Source.GIVEN),
    ]
    model = ScriptedModel(
        {
            "generate": {"'High is flown by [B]'": ["Air One"]},
            "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []},
        }
    )
    library = parse_library([("given.rules", MONEY)])
    kb = KnowledgeBase()
    kb.add_facts(rows)

    report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model)))

    assert statements(report) == {"If PersonX works at High, then PersonX knows pilots of Air One."}
    assert all("High" in prompt and "Low" not in prompt and "Old" not in prompt for prompt in model.prompts)
    assert not any("airport" in claim.casefold() for claim in model.claims)


def test_the_types_that_a_model_knows_do_not_matter_for_given_values() -> None:
    """A rule whose facts are all given is searched with a model that states it knows nothing."""
    library = parse_library([("given.rules", THIN_AIR)])
    model = silent_model()
    model.identity = ModelIdentity("narrow", "1", knows=frozenset(), types=frozenset())

    assert unanswerable(library.rules[0], library, Models(model, model, model, model)) is None


def test_the_plan_shows_the_values_that_the_tests_let_through() -> None:
    """An estimate counts the values of each step after the tests over given facts and before the cut."""
    library, model = parse_library([("given.rules", THIN_AIR)]), silent_model()
    kb = KnowledgeBase()
    kb.add_facts(airports())

    (rule,) = plan_run(library, library.rules, kb, Models(model, model, model, model)).rules

    assert [(step.variable, step.values.expected) for step in rule.steps] == [("A", HIGH), ("E", HIGH)]


def crowded() -> list[FactRecord]:
    """As many high airports as no beam keeps."""
    return [FactRecord("lies_at", (f"Airport {n}", 9000), ("Airport", "Elevation"), Source.GIVEN) for n in range(900)]


def test_cuts_are_reported_by_rule_and_step() -> None:
    """A step says how many values were ranked and kept, in the report, in its JSON and in words."""
    report, _ = searched(THIN_AIR, crowded())

    (rule,) = report.rules
    last = rule.account[-1]
    assert (last.cut, last.kept) == (500, 400)
    assert rule.to_json()["account"][-1]["cuts"]["head"] == {"ranked": 900, "kept": 200, "limit": -2.5}
    assert cut_text(last) == "step 2, Elevation E: 900 values ranked, 400 kept (head 200, long tail 200)"


def test_a_beam_of_all_cuts_and_ranks_nothing() -> None:
    """With `beam=None` all 900 statements stay in both distributions, and no likelihood is asked for the cut."""
    report, model = searched(THIN_AIR, crowded(), beam=None)

    assert report.rules[0].count(Distribution.HEAD) == report.rules[0].count(Distribution.LONG_TAIL) == 900
    assert not any(step.cut for step in report.rules[0].account)
    assert not any(text.endswith("is an airport.") for text in model.texts)


PAIRS = """
given lies_at(Airport, Elevation).
given watches(Person, Airport): "[1] watches [2]" / "[1] does not watch [2]" / "does [1] watch [2]?"
given looks_down_on(Person, Airport): "[1] looks down on [2]" / "[1] does not look down on [2]" / "does [1]?"
type Elevation < Number
@name pairs
watches(Person X, Airport A) & lies_at(Airport A, Elevation E) & lies_at(Airport B, Elevation F) & E > F
  -> looks_down_on(Person X, Airport B)
"""


def test_rejected_beams_cost_no_rows(tmp_path: Path) -> None:
    """A knowledge base grows by at most 3 kB a statement and 100 bytes a ranked value."""
    rows = [FactRecord("lies_at", (f"Airport {n}", n), ("Airport", "Elevation"), Source.GIVEN) for n in range(200)]
    library, model = parse_library([("given.rules", PAIRS)]), silent_model()
    path = tmp_path / "pairs.db"
    with KnowledgeBase(path) as kb:
        kb.add_facts(rows)
    before = path.stat().st_size
    with KnowledgeBase(path) as kb:
        report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model)))
    ranked = sum(step.cut + step.kept for rule in report.rules for step in rule.account if step.cuts)

    assert ranked > 10_000
    assert path.stat().st_size - before <= 3_000 * len(report.statements) + 100 * ranked


def test_why_not_tells_which_step_cut_a_value() -> None:
    """A cut value has no row; its verdict follows from the stored likelihoods and the limits of the step."""
    library = parse_library([("given.rules", THIN_AIR)])
    likelihoods = {f"Airport {n} is an airport.": -float(n) for n in range(900)}
    model = ScriptedModel({"likelihood": likelihoods, "defaults": {"critic": 0.0, "likelihood": -1.0, "generate": []}})
    kb = KnowledgeBase()
    kb.add_facts(crowded())
    search(SearchJob(library, library.rules, kb, Models(model, model, model, model)))

    told = story_text(why_not(Theory(library, kb), 'may_feel_dizzy_at("PersonX", "Airport 450")'))

    assert "A = Airport 450, E = 9000: step 2 cut it" in told
    assert "the 200 likeliest of 900 were kept" in told


def test_why_not_tells_of_an_end_that_kept_nothing() -> None:
    """The ends of one substitution are disjoint: it is in the long tail, and the head keeps none of it."""
    library = parse_library([("given.rules", THIN_AIR)])
    model = silent_model()
    told = {}
    for end in Distribution:
        kb = KnowledgeBase()
        kb.add_facts(crowded()[:1])
        search(
            SearchJob(
                library, library.rules, kb, Models(model, model, model, model), SearchSettings(distributions=(end,))
            )
        )
        told[end] = story_text(why_not(Theory(library, kb), 'may_feel_dizzy_at("PersonX", "Airport 0")'))

    assert "A = Airport 0, E = 9000: every step could keep it" in told[Distribution.LONG_TAIL]
    assert "step 2 cut it: its score is -" in told[Distribution.HEAD]
    assert told[Distribution.HEAD].rstrip().endswith(", and the 0 likeliest of 1 were kept")


def test_the_command_line_says_what_was_cut_and_can_cut_nothing(tmp_path: Path) -> None:
    """The closing output has a line for each step that cut; `--beam all` has none, and keeps every statement."""
    rules, database = tmp_path / "thin.rules", tmp_path / "thin.db"
    rules.write_text(THIN_AIR, "utf-8")
    with KnowledgeBase(database) as kb:
        kb.add_facts(crowded())
    command = ("search", str(rules), "--db", str(database), "-m", "simulated", "--no-progress")

    cut, whole = invoke(*command), invoke(*command, "--beam", "all")

    assert "thin_air, step 2, Elevation E: 900 values ranked, 400 kept (head 200, long tail 200)" in cut.output
    assert "values ranked" not in whole.output
    assert "900 head and 900 long-tail statements" in whole.output


THIRDS = """
given size(Thing, Number).
oracle seen(Thing, Number): "[1] is seen at [2]" / "[1] is not seen at [2]" / "is [1] seen at [2]?".
@name third
@generic none
size(Thing X, Number N) & Number K = N / 3 & K * 3 = N -> third_of(Thing X, Number K).
@name again
@generic none
third_of(Thing X, Number K) & Number M = K * 6 & M > 1 -> double_of(Thing X, Number M).
@name pairs
@generic none
third_of(Thing X, Number K) & third_of(Thing Y, Number K) & X \\= Y -> same(Thing X, Thing Y).
@name unseen
@generic P
size(Thing X, Number N) & Number K = N / 3 & knows(Person P, Number K) & not double_of(Thing X, Number K)
  -> may_see(Person P, Thing X, Number K).
@name sighting
@generic none
size(Thing X, Number N) & Number K = N / 3 & seen(Thing X, Number K) -> is_sighted(Thing X).
fact size("a", 1).
fact size("b", 2).
fact size("c", 3).
fact size("d", 1).
fact size("e", 0.4).
"""


def test_thirds_are_exact_in_search_derive_and_query(prolog: PrologSession) -> None:
    """A number without a decimal form that ends is calculated with, joined and concluded alike, and never asked about."""
    library = parse_library([("thirds.rules", THIRDS)])
    names = ["third", "again", "pairs", "unseen"]
    model = silent_model()
    with KnowledgeBase() as kb:
        derive_all(kb, library, [library.rule(name) for name in names], session=prolog)
        derived = {
            name: {item.text for item in read_statements(kb, library, library.rule(name), prolog)} for name in names
        }
        chosen = SearchSettings(beam=None, distributions=(Distribution.HEAD,))
        report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model), chosen))
        answers = run_query(Theory(library, kb), "third_of(X, K), Y is K * 3", session=prolog).rows
        found = {rule.rule: {item.text for item in rule.statements[Distribution.HEAD]} for rule in report.rules}

        assert {name: found[name] for name in names} == derived
        assert {name: len(texts) for name, texts in found.items()} == {
            "third": 5, "again": 4, "pairs": 2, "unseen": 5, "sighting": 0
        }  # fmt: skip
        assert {row[2] for row in answers} == {1, 2, 3, Decimal("0.4")}
        assert list(Replay(kb, library).damages()) == []
    assert not any("seen at" in prompt for prompt in model.prompts)


def test_an_equation_without_a_value_drops_its_substitution() -> None:
    """A number divided by zero has no value, so that nothing goes on from it; the others go on."""
    rules = (
        "given weighs(Thing, Number)\ngiven holds(Thing, Number)\n@name shares\n@generic none\n"
        "weighs(Thing A, Number N) & holds(Thing A, Number M) & Number K = N / M -> has_share(Thing A, Number K)"
    )
    rows = []
    for name, weight, parts in (("cake", 6, 2), ("crumb", 6, 0), ("loaf", 9, 3)):
        rows.append(FactRecord("weighs", (name, weight), (), Source.GIVEN))
        rows.append(FactRecord("holds", (name, parts), (), Source.GIVEN))

    report, _ = searched(rules, rows, ends="overlapping")

    assert {text.partition(", then ")[2] for text in statements(report)} == {"cake has share 3.", "loaf has share 3."}
    last = report.rules[0].account[-1]
    assert (last.origin, last.extended, last.kept) == ("computed", 2, 2)


@pytest.mark.parametrize("limits", [{"answers": 2}, {"inferences": 1}])
def test_a_derived_table_that_is_too_large_is_left_to_prolog(
    limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search finds the same statements where the rows of a derived predicate are too many, or take too long."""
    rules = (
        "given road(Place, Place)\n@name direct\n@generic none\nroad(Place A, Place B) -> reaches(Place A, Place B)\n"
        "@name onward\n@generic none\nroad(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)\n"
        "@name sees\nvisits(Person X, Place A) & reaches(Place A, Place B) & has(Place B, Thing T) -> may_see(Person X, Thing T)\n"
        "given has(Place, Thing)\n"
    )
    rows = [FactRecord("road", (f"p{k}", f"p{k + 1}"), (), Source.GIVEN) for k in range(5)]
    rows += [FactRecord("has", (f"p{k}", f"t{k}"), (), Source.GIVEN) for k in range(4)]
    whole, _ = searched(rules, rows, ends="overlapping")
    monkeypatch.setattr(searching, "TABLE_LIMITS", replace(searching.TABLE_LIMITS, **limits))
    limited, _ = searched(rules, rows, ends="overlapping")

    assert statements(limited) == statements(whole)
    assert len(statements(whole)) > 3
