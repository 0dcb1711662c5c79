"""Searches of rules in a simulated world and with scripted models."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from random_cases import cases
from search_fixture import (
    ALLERGY,
    OLDER,
    RECURSIVE,
    SILENT,
    SMALL,
    rows,
    rules_of,
    scripted,
    searched,
    sentences,
    simulated,
    texts,
)

import hapax

ENDS = ("head", "long_tail")
FOREIGN = """
@name foreign
repairs(Person X, Part A) & is_part_of(Part A, Part B) & not belongs_to(Part B, Part A) -> leaves_alone(Person X, Part B).
"""
Found = tuple[hapax.SearchResult, hapax.KnowledgeBase, hapax.Library]


@pytest.fixture(scope="module")
def allergy() -> Found:
    """A search of one rule, with its knowledge base."""
    library, kb = rules_of(ALLERGY), hapax.KnowledgeBase()
    return searched(library, simulated(library), kb, beam=12), kb, library


def knowledge_only(calls: int) -> hapax.Budget:
    return hapax.Budget(max_calls=calls, roles=frozenset({"knowledge"}))


def test_head_is_likelier_than_long_tail_and_all_is_stored(allergy: Found) -> None:
    """Both ends get statements in words, the head's are likelier, and the knowledge base has the same."""
    result, kb, _ = allergy
    (row,) = rows(result)

    assert row["head"] > 3 < row["long_tail"]
    assert row["delta"] > 0
    assert all(text.startswith("If PersonX is allergic to ") for text in texts(result))
    assert {item.text for item in kb.statements()} == sentences(result)
    assert [run.status for run in kb.runs()] == ["done"]


def test_every_statement_rests_on_stored_facts(allergy: Found) -> None:
    """Each premise of a statement that is no information about PersonX is a fact."""
    result, kb, _ = allergy
    facts = {(fact.predicate, fact.arguments) for fact in kb.facts()}
    values = [item.values for item in result.statements]

    assert values
    assert all(("is_ingredient_in", (row["Z"], row["B"])) in facts for row in values)
    assert all(("is_one_type_of", (row["Z"], row["A"])) in facts for row in values)


def test_the_same_search_again_asks_nothing_and_is_the_same_run(allergy: Found) -> None:
    """All answers come from the store; other settings are another run."""
    result, kb, library = allergy
    again = searched(library, simulated(library), kb, beam=12)
    runs = len(kb.runs())
    searched(library, simulated(library), kb, beam=11)

    assert [row["calls"] for row in rows(again)] == [0]
    assert texts(again) == texts(result)
    assert (runs, len(kb.runs())) == (1, 2)


def test_rules_share_their_questions_and_do_not_change_each_other(allergy: Found) -> None:
    """A rule that asks what another has asked sends nothing, and a rule among others gives what it gives alone."""
    library = rules_of(OLDER, ALLERGY, ALLERGY.replace("@name allergy", "@name twin"))
    result = searched(library, simulated(library), beam=12)
    _, first, twin = rows(result)

    assert first["calls"] > 0 == twin["calls"]
    alone = set(texts(allergy[0]))
    assert {item.text for item in result.statements if item.rule == "allergy"} == alone
    assert twin["head"] == first["head"]


def test_the_ranker_is_what_parts_head_and_long_tail() -> None:
    """Ranked at random the ends lie closer together."""
    library = rules_of(ALLERGY)
    models, kb = simulated(library), hapax.KnowledgeBase()
    options: dict[str, Any] = {"beam": 20}
    full, chance = (
        rows(searched(library, models, kb, likelihood=ranker, **options))[0]["delta"] for ranker in ("model", "random")
    )

    assert abs(chance) < full


@pytest.mark.parametrize("compat", ["paper", "released"])
def test_links_ways_exclude_earlier_values_and_ask_in_its_words(compat: Any) -> None:
    """LINK's two behaviours give statements; the released one asks for twice the values at first."""
    library, kb = rules_of(ALLERGY), hapax.KnowledgeBase()
    result = searched(library, simulated(library), kb, compat=compat, plan="link", profile=None, values_per_call=15)
    prompts = [call.request["prompt"] for call in kb.calls().values() if call.role == "knowledge"]

    assert texts(result)
    assert prompts[0].startswith(f"Give me {'30 diverse' if compat == 'released' else 15} values of ")
    assert any("Do not generate these values: " in prompt for prompt in prompts)


def script(critic: dict[str, float] | None = None, **more: Any) -> dict[str, Any]:
    """Butter is a type of dairy, and in two dishes."""
    return {
        "generate": {
            "[A] is one type of [B]": ["dairy"],
            "[A] is one type of dairy": ["butter"],
            "butter is an ingredient in [B]": ["toast", "peanut butter"],
            "PersonX": ["dairy"],
        },
        "critic": critic or {},
        "defaults": {"critic": 0.95, "likelihood": -12, "generate": ["dairy"]},
        **more,
    }


WHOLE: dict[str, Any] = {"keep_share": 0.5, "plan": "premise-first"}


def test_scripted_models_make_a_search_that_can_be_followed() -> None:
    """One allergen, one ingredient, two dishes: exactly these statements come out, one at each end."""
    result = searched(rules_of(ALLERGY), scripted(script()), **WHOLE)
    expected = {
        f"If PersonX is allergic to dairy, then PersonX cannot eat {dish}." for dish in ("toast", "peanut butter")
    }

    assert sentences(result) == expected
    assert [len(sentences(result, end)) for end in ENDS] == [1, 1]


def test_hapax_ranks_what_models_are_asked_and_the_paper_all_it_knows() -> None:
    """Hapax's texts have the atoms that a model decides; the paper's have each atom, generic ones and the conclusion."""
    own, link = scripted(script()), scripted(script())
    searched(rules_of(ALLERGY), own, measure="paper", **WHOLE)
    searched(rules_of(ALLERGY), link, compat="paper", plan="premise-first", profile="hapax")
    whole = "Butter is an ingredient in toast and butter is one type of dairy."

    assert whole in own.likelihood.texts
    assert not any("PersonX" in text for text in own.likelihood.texts if not text.startswith("If "))
    assert (
        "PersonX is allergic to dairy and butter is an ingredient in toast and butter is one type of dairy and "
        "PersonX cannot eat toast."
    ) in link.likelihood.texts


def test_the_paper_has_no_penalty_for_repeated_words() -> None:
    """Two equally likely dishes are equal under `compat="paper"`, although one repeats a word."""
    known = script()
    known["defaults"]["likelihood"] = [-12, 6]
    kb = hapax.KnowledgeBase()
    searched(rules_of(ALLERGY), scripted(known), kb, compat="paper", plan="premise-first")

    assert {decision.score for decision in kb.decisions(gate="likelihood")} == {-2.0}


# --- derived premises -------------------------------------------------------------------------------------------------

PARTS: dict[str, Any] = {"beam": 4, "values_per_call": 4, "calls_per_question": 1}


def test_derived_predicates_are_searched_by_their_rules() -> None:
    """Values of a recursive predicate come from the rules, and facts that they lack are asked for, and counted.

    What an earlier run left changes nothing.
    """
    library, kb, other = rules_of(RECURSIVE), hapax.KnowledgeBase(), hapax.KnowledgeBase()
    first = searched(library, simulated(library), kb, "repair", **PARTS)
    pattern = kb.facts()[0]
    parts = sorted({value for fact in kb.facts() for value in fact.arguments})
    other.add_facts(replace(pattern, arguments=(part, parts[0]), run_id="earlier") for part in parts[1:])
    among = searched(library, simulated(library), other, "repair", **PARTS)

    assert len(first.statements) > 0
    assert {fact.predicate for fact in kb.facts()} == {"is_part_of"}
    assert "part" in {step.get("rule") for step in first.statements[0].record.proof["steps"]}
    assert rows(first)[0]["calls"] > 0
    assert texts(among) == texts(first)


def test_a_budget_that_ends_a_derivation_denies_nothing() -> None:
    """Where the facts of a derived predicate could not be asked to the end, `not` does not hold for want of them."""
    library = rules_of(RECURSIVE, FOREIGN)
    wholes = {"wheel": "car", "car": "fleet"}
    true = {f"{part.capitalize()} is part of {whole}.": 0.95 for part, whole in wholes.items()}
    true |= {f"{part.capitalize()} is a part.": 0.95 for part in ("wheel", "car", "fleet")}
    lists = {f"'{part} is part of [B]'": [whole] for part, whole in wholes.items()}
    known = {
        "generate": {"'[A] is part of [B]'": ["wheel", "car", "fleet"], **lists},
        "critic": true,
        "defaults": {"critic": 0.05, "likelihood": -9, "generate": []},
    }
    before = hapax.KnowledgeBase()
    whole = searched(library, scripted(known), before, "foreign", **WHOLE)
    cut = searched(library, scripted(known, budget=knowledge_only(asked(before) - 1)), None, "foreign", **WHOLE)

    assert {item.values["A"] for item in whole.statements} == set(wholes)
    assert not cut.complete
    assert len(cut.statements) < len(whole.statements)


# --- budgets and interruptions ----------------------------------------------------------------------------------------


def asked(kb: hapax.KnowledgeBase) -> int:
    """Calls of the knowledge model that the knowledge base holds."""
    return sum(call.role == "knowledge" for call in kb.calls().values())


def test_calls_and_questions_of_a_rule_that_no_model_knows_are_not_spent() -> None:
    """A model that states its predicates is not asked for others; the rule is skipped, with what is unknown."""
    library = rules_of(ALLERGY)
    models = scripted(script())
    models.knowledge.identity = type(models.knowledge.identity)("limited", "1", knows=frozenset({"is_ingredient_in/2"}))
    (row,) = rows(searched(library, models))

    assert row["skipped"] == "is_one_type_of/2"
    assert (row["calls"], models.knowledge.prompts) == (0, [])


# --- settings ---------------------------------------------------------------------------------------------------------


RULE = hapax.CriticRule(0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"values_per_call": 10**9}, ["values_per_call", "at most"]),
        ({"beam": 0}, ["beam", "0", "1"]),
        ({"temperature": math.nan}, ["temperature", "nan"]),
        ({"keep_share": 0.0}, ["keep_share", "above 0"]),
        ({"keep_share": 0.51}, ["half"]),
        ({"distributions": ()}, ["distribution", "long_tail"]),
        ({"profile": "none of these"}, ["none of these", "hapax"]),
        ({"measure": "weight"}, ["weight", "paper"]),
        ({"compat": "paper", "measure": "slor"}, ["compat paper", "measure"]),
        ({"compat": "released", "calibrated": True}, ["compat released", "raw scores"]),
        ({"compat": "paper", "promise": hapax.Promise()}, ["compat paper", "raw scores"]),
        ({"promise": hapax.Promise(), "fact_threshold": RULE}, ["promise", "thresholds"]),
        ({"promise": hapax.Promise(), "critic": False}, ["critic", "promised"]),
        ({"statement_promise": hapax.Promise(), "critic": False}, ["critic", "promised"]),
        ({"likelihood": "most"}, ["likelihood", "random"]),
    ],
)
def test_settings_refuse_what_makes_no_search(settings: dict[str, Any], words: list[str]) -> None:
    """Nonsense, and options that exclude each other, are refused with a remedy."""
    with pytest.raises(hapax.HapaxError) as error:
        hapax.SearchSettings(**settings)

    assert [word for word in words if word not in str(error.value)] == []


THIN_AIR = """
given flies_to(Person, Airport): "[1] flies to [2]" / "[1] does not fly to [2]" / "does [1] fly to [2]?"
given lies_at(Airport, Elevation): "[1] lies at [2] feet" / "[1] does not lie at [2] feet" / "does [1] lie at [2] feet?"
given may_feel_dizzy_at(Person, Airport): "[1] may feel dizzy at [2]" / "[1] cannot feel dizzy at [2]" / "may [1]?"
type Elevation < Number
@name thin_air
flies_to(Person X, Airport A) & lies_at(Airport A, Elevation E) & E > 8000 -> may_feel_dizzy_at(Person X, Airport A)
"""
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
CROWDED = [(f"Airport {number}", 9000) for number in range(900)]
"""As many high airports as no beam keeps."""


def base(rules: hapax.Library, path: Path | None = None, **facts: list[tuple[Any, ...]]) -> hapax.KnowledgeBase:
    """A knowledge base of given facts."""
    kb = hapax.KnowledgeBase(path) if path else hapax.KnowledgeBase()
    for predicate, given_rows in facts.items():
        hapax.add_facts(kb, predicate, given_rows, rules)
    return kb


def test_a_comparison_is_tested_before_the_beam_cuts() -> None:
    """A search finds all 61 of 2,000 airports that lie above 8,000 feet, and the plan foresees them, although a beam keeps 200."""
    rules = hapax.parse_rules(THIN_AIR)
    airports = [(f"Airport {n}", 8001 + n if n % 32 == 7 and n < 1952 else n) for n in range(2000)]
    kb, models = base(rules, lies_at=airports), scripted(SILENT)
    (rule,) = hapax.plan(rules, kb, models, hapax.SearchSettings(profile="hapax")).rules
    result = searched(rules, models, kb, beam=200)

    assert result.report.rules[0].pool == 61
    assert [(step.variable, step.values) for step in rule.steps] == [("A", 61), ("E", 61)]


def test_a_model_is_asked_about_the_values_that_given_facts_allow_alone() -> None:
    """Comparisons and negations over given facts come first, and no type of a given value is ever judged."""
    rules = hapax.parse_rules(MONEY)
    kb = base(rules, lies_at=[("Low", 5), ("High", 20), ("Old", 30)], closed=[("Old",)])
    models = scripted(
        {
            "generate": {"'High is flown by [B]'": ["Air One"]},
            "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []},
        }
    )
    result = searched(rules, models, kb)

    assert sentences(result) == {"If PersonX works at High, then PersonX knows pilots of Air One."}
    assert all("High" in prompt for prompt in models.knowledge.prompts)
    assert not any("airport" in claim.casefold() for claim in models.critic.claims)


SETTLED = """
oracle is_flown_by(Airport, Airline): "[1] is flown by [2]" / "[1] is not flown by [2]" / "is [1] flown by [2]?"
functional sits_in(Airline, Town): "[1] sits in [2]" / "[1] does not sit in [2]" / "does [1] sit in [2]?"
given bankrupt(Airline): "[1] is bankrupt" / "[1] is not bankrupt" / "is [1] bankrupt?"
given works_at(Person, Airport): "[1] works at [2]" / "[1] does not work at [2]" / "does [1] work at [2]?"
given has_colleagues_in(Person, Town): "[1] has colleagues in [2]" / "[1] has none in [2]" / "has [1] some in [2]?"
never is_flown_by(Airport A, Airline B) & is_a_school(Airline B)
given is_a_school(Airline): "[1] is a school" / "[1] is not a school" / "is [1] a school?"
@name colleagues
works_at(Person X, Airport A) & is_flown_by(Airport A, Airline B) & not bankrupt(Airline B) & sits_in(Airline B, Town C)
  -> has_colleagues_in(Person X, Town C)
"""


def test_nothing_is_paid_for_what_is_settled_without_the_critic() -> None:
    """Given facts, declarations, and the claim about a type come before a claim about a fact, and settle it for nothing."""
    rules = hapax.parse_rules(SETTLED)
    kb = base(
        rules,
        is_flown_by=[("High", "Known Air")],
        bankrupt=[("Old Air",)],
        is_a_school=[("Learn Air",)],
        sits_in=[("Known Air", "Rome")],
    )
    airlines = ["Known Air", "Old Air", "Learn Air", "New Air"]
    models = scripted(
        {
            "generate": {
                "'[A] is flown by [B]'": airlines,
                "'[A] is flown by Known Air'": ["High"],
                "'[A] is flown by Learn Air'": ["High"],
                "'[A] is flown by New Air'": ["High", "Hill"],
                "'New Air sits in [B]'": ["Oslo"],
            },
            "critic": {"Hill is an airport.": 0.1},
            "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []},
        }
    )
    result = searched(rules, models, kb)

    assert {text.rsplit(" ", 1)[-1] for text in sentences(result)} == {"Rome.", "Oslo."}
    assert {claim for claim in models.critic.claims if "flown" in claim} == {"High is flown by New Air."}
    assert {claim for claim in models.critic.claims if "airline" in claim} == {
        "Known Air is an airline.",
        "Learn Air is an airline.",
        "New Air is an airline.",
    }
    assert not any("Known Air sits in" in text for text in (*models.knowledge.prompts, *models.critic.claims))


RULES_OF_NEAR = (
    "near(Node A, Node B) -> reaches(Node A, Node B)",
    'near(Node A, "b") -> reaches(Node A, "b")',
    "start(Node A) & near(Node A, Node B) & near(Node B, Node C) -> reaches(Node A, Node C)",
    "start(Node A) & near(Node B, Node A) & not start(Node B) -> reaches(Node A, Node B)",
    "near(Node A, Node A) & start(Node A) -> reaches(Node A, Node A)",
    "near(Node A, Node B) & near(Node C, Node D) & A \\= C & D = B -> reaches(Node A, Node C)",
)
NODES = st.sampled_from(("a", "b", "c", "d", 2, Decimal("2.0")))
CHAIN = list(pairwise("abcdefg"))


@settings(max_examples=cases(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chosen=st.lists(st.sampled_from(RULES_OF_NEAR), min_size=1, max_size=3, unique=True),
    near=st.lists(st.tuples(NODES, NODES), min_size=1, max_size=7),
    start=st.lists(st.tuples(NODES), min_size=1, max_size=3),
    declared=st.sets(st.sampled_from(("symmetric", "transitive"))),
    kind=st.sampled_from(("given", "oracle")),
)
@example(list(RULES_OF_NEAR[:1]), CHAIN, [("a",)], {"transitive"}, "given")
@example(list(RULES_OF_NEAR[:1]), CHAIN[::-1], [("a",)], {"transitive"}, "oracle")
@example(list(RULES_OF_NEAR[:1]), CHAIN, [("a",)], {"symmetric", "transitive"}, "given")
def test_a_search_without_a_beam_finds_what_derive_finds(
    chosen: list[str], near: list[Any], start: list[Any], declared: set[str], kind: str
) -> None:
    """Of constants, repeated variables, negation, comparison, declarations and long chains: equal statements.

    A silent model adds nothing to the given facts of a predicate that models may be asked about; of others none is asked.
    """
    lines = [f'{kind} near(Node, Node): "[1] is near [2]" / "[1] is not near [2]" / "is [1] near [2]?".']
    lines += ["given start(Node)", *(f"{declaration} near/2" for declaration in sorted(declared))]
    lines += [f"@name r{number}\n@generic none\n{rule}" for number, rule in enumerate(chosen)]
    rules = hapax.parse_rules("\n".join(lines))
    models = scripted(SILENT)
    kb = base(rules, near=near, start=start)
    derived = {(item.rule, item.text) for item in hapax.derive(rules, kb).statements}
    result = searched(rules, models, kb, beam=None)

    assert {(item.rule, item.text) for item in result.statements} == derived
    assert kind == "oracle" or (models.knowledge.prompts, models.critic.claims) == ([], [])


def test_what_a_beam_cuts_is_said_where_people_read_it(tmp_path: Path) -> None:
    """The closing output says how many of a step were kept; `--beam all` cuts and ranks nothing."""
    rules, path = tmp_path / "thin.rules", tmp_path / "thin.db"
    rules.write_text(THIN_AIR, "utf-8")
    library = hapax.load_rules(rules)
    base(library, path, lies_at=CROWDED).close()
    command = ("search", rules, "--db", path, "-m", "simulated", "--no-progress")
    cut = invoke(*command)
    whole = invoke(*command, "--beam", "all")

    assert "900 values ranked, 400 kept (head 200, long tail 200)" in cut.output
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
@name sighting
@generic none
size(Thing X, Number N) & Number K = N / 3 & seen(Thing X, Number K) -> is_sighted(Thing X).
fact size("a", 1).
fact size("b", 2).
fact size("c", 3).
fact size("d", 1).
fact size("e", 0.4).
"""


def test_thirds_are_exact_in_search_derive_and_query() -> None:
    """A number without a decimal form that ends is calculated with, joined and concluded alike, and never asked about."""
    rules, kb, models = hapax.parse_rules(THIRDS), hapax.KnowledgeBase(), scripted(SILENT)
    derived = {(item.rule, item.text) for item in hapax.derive(rules, kb).statements}
    found = searched(rules, models, kb, beam=None).statements
    answers = hapax.query("third_of(X, K), Y is K * 3", rules, kb)

    assert {(item.rule, item.text) for item in found} == derived
    assert sorted(rule for rule, _ in derived) == ["again"] * 4 + ["pairs"] * 2
    assert {row["Y"] for row in answers} == {1, 2, 3, Decimal("0.4")}
    assert not any("seen at" in prompt for prompt in models.knowledge.prompts)


RULES = hapax.parse_rules("""
oracle is_sung_in(Song, Land): "[1] is sung in [2]" / "[1] is not sung in [2]" / "is [1] sung in [2]?"
oracle may_sing(Person, Song): "[1] may sing [2]" / "[1] may not sing [2]" / "may [1] sing [2]?"
given hears(Person, Song): "[1] hears [2]" / "[1] does not hear [2]" / "does [1] hear [2]?"
@name song
hears(Person X, Song A) & is_sung_in(Song A, Land B) -> may_sing(Person X, Song A)
""")
SONGS = [f"song{letter * 3}" for letter in "abcdefghijklmnopqrst"]


class ByAlphabet:
    """A ranker to which a text is less likely the later the song's letter comes; a token is a word."""

    def __init__(self, model: Any) -> None:
        self.identity = type(model.identity)("alphabet")
        self.asked: list[str] = []
        self.likelihood = type(model.log_likelihoods(["a text"])[0])

    def log_likelihoods(self, texts: list[str]) -> list[Any]:
        self.asked += texts
        return [self.likelihood(-float(len(text)), 1) for text in texts]

    def span_log_likelihoods(self, texts: list[Any]) -> list[Any]:
        self.asked += [text.text for text in texts]
        return [self.scored(text) for text in texts]

    def scored(self, text: Any) -> Any:
        places, start = [], 0
        for word in text.text.split(" "):
            places.append((start, start + len(word)))
            start += len(word) + 1
        scores = [-float(ord(text.text[begin:end].strip(".\n")[-1])) for begin, end in places]
        return self.likelihood.of_tokens(scores, places, text.spans)


def models(lands: dict[str, list[str]] | None = None, spans: bool = True) -> hapax.Models:
    """Models that know the songs, and by song the lands where it is sung; `spans`: the ranker scores parts of texts."""
    sung_in = {song: (lands or {}).get(song, ["Mali", "Fiji"]) for song in SONGS}
    lists = {"[A] is sung in [B]": SONGS, **{f"{song} is sung in [B]": sung_in[song] for song in SONGS}}
    every = scripted({"generate": lists, "defaults": {"critic": 0.99, "likelihood": -1.0, "generate": []}})
    ranker = ByAlphabet(every.likelihood) if spans else every.likelihood
    return hapax.Models(every.knowledge, every.critic, ranker, every.evaluator)


def search(kb: hapax.KnowledgeBase | None = None, using: hapax.Models | None = None, **settings: Any) -> Any:
    chosen: dict[str, Any] = {"beam": 200, "plan": "premise-first", "values_per_call": 50, **settings}
    return searched(RULES, using or models(), kb, **chosen)


def is_by_names(result: hapax.SearchResult) -> bool:
    """The head's songs come before the long tail's."""
    head, tail = (
        {song for song in SONGS if any(song in text for text in texts(result, end))} for end in ("head", "long_tail")
    )
    return bool(head and tail) and max(head) < min(tail)


def test_the_ends_are_disjoint_and_by_the_names() -> None:
    """The songs with the latest letters are the long tail, the earliest the head, and the middle is at neither."""
    result = search()
    (row,) = rows(result)

    assert is_by_names(result)
    assert row["in_both"] == 0
    assert 2 * len(SONGS) > len(sentences(result)) > 20


def test_another_measure_asks_the_ranker_nothing() -> None:
    """All measures of sentences and names are stored with the first search, and the run says by which it ranked."""
    using, kb = models(), hapax.KnowledgeBase()
    search(kb, using)
    before = len(using.likelihood.asked)
    others = [search(kb, using, measure=measure) for measure in ("paper", "total", "slor", "span")]
    stored = {run.settings.get("measure") for run in kb.runs()}

    assert before
    assert len(using.likelihood.asked) == before
    assert all(len(result.statements) > 0 for result in others)
    assert stored >= {"total", "slor", "span"}


def test_ends_are_ranked_by_the_wanted_measure() -> None:
    """By the names the head has the early letters; by the mean per token, which is equal here, chance decides."""
    options = {"keep_share": 0.25}

    assert is_by_names(search(**options, measure="prior"))
    assert is_by_names(search(**options))
    assert not is_by_names(search(**options, measure="paper"))


def test_a_search_for_the_long_tail_alone_gives_the_same_long_tail() -> None:
    """The statements of an end do not depend on whether the other is wanted."""
    both, alone = search(beam=4), search(beam=4, distributions=(hapax.Distribution.LONG_TAIL,))

    assert sentences(alone) == sentences(alone, "long_tail") == sentences(both, "long_tail")


def test_one_land_does_not_fill_an_end() -> None:
    """Ten songs are sung in one land: it takes two of six places at the head, and the end has others besides."""
    lands = {song: ["Maland" if place < 10 else f"{song[-1].upper()}land"] for place, song in enumerate(SONGS)}
    result = search(None, models(lands))
    head = [item.values["B"] for item in result.statements if item.distribution == "head"]

    assert (len(head), head.count("Maland")) == (2, 2)
    assert result.report.rules[0].crowded == 4


def test_a_ranker_of_whole_texts_ranks_by_the_papers_measure() -> None:
    """Without a wanted measure such a ranker is used as in LINK; with one it is refused before anything is asked."""
    kb, plain = hapax.KnowledgeBase(), models(spans=False)
    with pytest.raises(hapax.HapaxError, match=r"span.*paper, total"):
        search(kb, plain, measure="span")

    assert not list(kb.runs())
    assert len(search(None, plain).statements) > 0


def test_enough_statements_end_the_questions() -> None:
    """With `enough` each end has about that many statements, for a part of the calls, as the plan and the account say."""
    library = rules_of(ALLERGY)
    wanted = {"beam": 40, "enough": 6}
    found = [searched(library, simulated(library), **wanted) for _ in range(2)]
    whole = searched(library, simulated(library), beam=40)
    planned = hapax.plan(library, hapax.KnowledgeBase(), simulated(library), hapax.SearchSettings(**SMALL | wanted))
    (row,) = rows(found[0])
    calls = [result.report.statistics["critic"].calls for result in (found[0], whole)]

    assert texts(found[0]) == texts(found[1])
    assert all(4 <= row[end] <= 6 for end in ENDS)
    assert 2 * calls[0] < calls[1]
    assert planned.roles["critic"].calls < calls[1]
    assert any(step.spared for step in found[0].account)
    with pytest.raises(hapax.HapaxError, match="enough"):
        hapax.SearchSettings(enough=6, compat="paper")
