"""Entailments between predicates: stored, closed by Prolog, used in proofs, and held against rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.entailment import checks
from hapax.engine.entailment.checks import entailment_faults
from hapax.engine.entailment.closure import EntailmentGraph
from hapax.engine.entailment.graph import Edge, edges, read_edges, store_edges, with_entailments
from hapax.engine.entailment.lookup import StoredEdges, edges_into, strongest
from hapax.grammar.errors import HapaxError
from hapax.grammar.pair_checks import duplicate_and_subsumed_rules
from hapax.grammar.parser import parse_library
from hapax.grammar.subsumption import Matcher
from hapax.grammar.terms import Atom, Variable
from hapax.kb.store import KnowledgeBase

ENTAILMENTS = """\
shopped_in(Person X, Shop A)\twent_to(Person X, Shop A)\t0.95
went_to(Person X, Shop A)\twas_at(Person X, Shop A)\t0.9
was_at(Person X, Shop A)\twent_to(Person X, Shop A)\t0.8
murdered(Person X, Person Y)\tkilled(Person X, Person Y)\t0.97
killed(Person X, Person Y)\tharmed(Person X, Person Y)\t0.9
owns(Person X, Vehicle V)\tis_owned_by(Vehicle V, Person X)\t0.99
is_owned_by(Vehicle V, Person X)\towns(Person X, Vehicle V)\t0.99
is_the_capital_of(City C, Country L)\tlies_in(City C, Country L)\t0.98
can_digest(Person X, Food B)\tcan_eat(Person X, Food B)\t0.85
composed(Person X, Symphony S)\twrote_music(Person X, Symphony S)\t0.9
distrusts(Person X, Person Y)\tcannot_rely_on(Person X, Person Y)\t0.9
is_weakly_linked_to(Person X, Person Y)\tkilled(Person X, Person Y)\t0.2
"""

FAULTY = """
@name reversed_shop
went_to(Person X, Shop A) & is_in(Shop A, City C) -> shopped_in(Person X, Shop A)
@name reversed_by_chain
was_at(Person X, Shop A) & is_in(Shop A, City C) -> shopped_in(Person X, Shop A)
@name reversed_murder
harmed(Person X, Person Y) & lives_in(Person Y, City C) -> murdered(Person X, Person Y)
@name reversed_capital
lies_in(City C, Country L) & borders(Country L, Country M) -> is_the_capital_of(City C, Country L)
@name redundant_shop
shopped_in(Person X, Shop A) & is_in(Shop A, City C) -> was_at(Person X, Shop A)
@name redundant_owner
owns(Person X, Vehicle V) & was_built_in(Vehicle V, Country L) -> is_owned_by(Vehicle V, Person X)
@name redundant_special
murdered(Person X, Person Y) & is_a_citizen_of(Person Y, Country L) -> is_wanted_in(Person X, Country L)
@name contrary_food
is_allergic_to(Person X, Allergen A) & is_in_food(Allergen A, Food B) -> cannot_eat(Person X, Food B)
@name contrary_harm
vowed_peace_to(Person X, Country L) & is_a_citizen_of(Person Y, Country L) -> did_not_harm(Person X, Person Y)
@name contrary_trust
distrusts(Person X, Person Y) & works_for(Person Y, Company C) -> can_rely_on(Person X, Person Y)
"""

SOUND = """
opposite did_not_harm harmed
@name innocent_killers
killed(Person X, Person Y) & is_a_citizen_of(Person Y, Country L) -> is_wanted_in(Person X, Country L)
@name meals
enjoys(Person X, Food B) & is_served_in(Food B, Country L) -> can_digest(Person X, Food B)
@name soldiers
fought_against(Person X, Country L) & is_a_citizen_of(Person Y, Country L) -> killed(Person X, Person Y)
@name purchase
went_to(Person X, Shop A) & sells(Shop A, Food B) & bought(Person X, Food B) -> shopped_in(Person X, Shop A)
@name intent
killed(Person X, Person Y) & planned_the_death_of(Person X, Person Y) -> murdered(Person X, Person Y)
@name government
lies_in(City C, Country L) & is_home_of(City C, Government G) & governs(Government G, Country L) -> is_the_capital_of(City C, Country L)
@name bread
shopped_in(Person X, Shop A) & sells(Shop A, Food B) -> saw(Person X, Food B)
@name jam
went_to(Person X, Shop A) & is_next_to(Shop A, Shop B) -> passed(Person X, Shop B)
@name licence
owns(Person X, Vehicle V) & needs_licence(Vehicle V, Licence W) -> must_have(Person X, Licence W)
@name insurance
is_owned_by(Vehicle V, Person X) & was_built_in(Vehicle V, Country L) -> may_insure_in(Person X, Country L)
@name score
composed(Person X, Symphony S) & is_about(Symphony S, City C) -> knows(Person X, City C)
@name music
wrote_music(Person X, Symphony S) & was_first_played_in(Symphony S, City C) -> visited(Person X, City C)
@name tourist
visited(Person X, City C) & is_the_capital_of(City C, Country L) -> has_been_to(Person X, Country L)
@name traveller
lives_in(Person X, City C) & lies_in(City C, Country L) -> pays_tax_in(Person X, Country L)
@name doctor
harmed(Person X, Person Y) & treats(Person Z, Person Y) -> made_work_for(Person X, Person Z)
@name court
is_wanted_in(Person X, Country L) & borders(Country L, Country M) -> may_flee_to(Person X, Country M)
@name garage
is_owned_by(Vehicle V, Person X) & is_kept_in(Vehicle V, Garage G) -> has_the_key_of(Person X, Garage G)
@name friends
likes(Person X, Person Y) & works_for(Person Y, Company C) -> can_rely_on(Person X, Person Y)
@name weak
is_weakly_linked_to(Person X, Person Y) & knows_of(Person Y, Company C) -> may_ask_about(Person X, Company C)
@name grocer
is_in(Shop A, City C) & was_at(Person X, Shop A) -> was_seen_in(Person X, City C)
"""


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A knowledge base that holds the entailments above."""
    (tmp_path / "edges.tsv").write_text(ENTAILMENTS, "utf-8")
    with KnowledgeBase(tmp_path / "some.db") as kb:
        store_edges(kb, read_edges(tmp_path / "edges.tsv"))
    return tmp_path / "some.db"


def edge(premise: str, hypothesis: str, score: float = 0.9) -> Edge:
    return Edge.of(premise, hypothesis, score)


# Storing


def test_entailments_are_facts(stored: Path) -> None:
    """They come back with names in order, the weak ones left out, and storing them again adds nothing."""
    with KnowledgeBase(stored) as kb:
        found = edges(kb)
        before = kb.fact_counts()
        store_edges(kb, found)
        assert kb.fact_counts() == before == {"entails/3": 12}
        assert len(edges(kb, 0.0)) == 12

    assert len(found) == 11
    assert str(found[-1].premise) == "went_to(Person A, Shop B)"


def test_a_query_finds_them(stored: Path, tmp_path: Path) -> None:
    """`entails(P, Q, Score)` is a predicate like any other."""
    rules = tmp_path / "e.rules"
    rules.write_text("given entails(Text, Text, Score)\n", "utf-8")
    result = invoke("query", "entails(P, Q, S), S > 0.98", "--rules", rules, "--db", stored, "--json")

    assert len(json.loads(result.stdout)["answers"]) == 2


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("p(T X)\tq(T X)", "has 2 fields"),
        ("p(T X)\tq(T X)\thigh", "'high' is not a score"),
        ("p(T X)\tq(T X)\t1.5", "the score is 1.5"),
        ("p(T X)\tq(T X, T Y)\t0.5", "only those of the left"),
        ('p(T X)\tq("butter")\t0.5', "use variables only"),
        ("p(T X) & r(T X)\tq(T X)\t0.5", "one atom on each side"),
        ("not p(T X)\tq(T X)\t0.5", "one atom on each side"),
        ("p(X)	q(X)	0.5", "no atom gives the variable"),
        ("p(T X)) :- halt.	q(T X)	0.5", "is not an entailment"),
    ],
)
def test_faulty_lines_are_all_told(tmp_path: Path, line: str, told: str) -> None:
    """Each with its number and what is wrong; nothing of the file is stored."""
    path = tmp_path / "edges.tsv"
    path.write_text(f"p(T X)\tq(T X)\t0.9\n{line}\n\n{line}\n", "utf-8")
    result = invoke("evaluate", "entailment", "facts", path, "--db", tmp_path / "x.db")

    assert result.exit_code == 1
    assert told in " ".join(result.stderr.split())
    assert ":2:" in result.stderr
    assert ":4:" in result.stderr
    assert not (tmp_path / "x.db").exists()


def test_a_file_of_no_entailment_is_refused(tmp_path: Path) -> None:
    """An empty file stores nothing, and says what its lines should be."""
    (tmp_path / "edges.tsv").write_text("\n \t\n", "utf-8")
    result = invoke("evaluate", "entailment", "facts", tmp_path / "edges.tsv", "--db", tmp_path / "x.db")

    assert result.exit_code == 1
    assert "edges.tsv contains no entailment. Write lines of premise TAB" in " ".join(result.stderr.split())
    assert not (tmp_path / "x.db").exists()


def test_declared_types_may_be_left_out(tmp_path: Path) -> None:
    """Types come from the rules at hand."""
    library = parse_library([("x.rules", "oracle eats(Person, Dish)\noracle tastes(Person, Dish)")])

    assert Edge.of("eats(X, Y)", "tastes(X, Y)", 1, library) == edge(
        "eats(Person A, Dish B)", "tastes(Person A, Dish B)", 1
    )


# The graph


def graph(*found: Edge) -> EntailmentGraph:
    return EntailmentGraph(found)


def test_closure_gives_the_shortest_chain() -> None:
    """Arguments keep or change their places along the way, and a shorter way wins."""
    entailments = graph(
        edge("a(T X, T Y)", "b(T Y, T X)"),
        edge("b(T X, T Y)", "c(T Y, T X)"),
        edge("c(T X, T Y)", "d(T X)"),
        edge("a(T X, T Y)", "c(T X, T Y)"),
    )
    start = next(atom for atom in entailments.atoms if atom.predicate == "a")

    assert [str(chain) for chain in entailments.closure[start]] == [
        "a(T A, T B) entails b(T B, T A)",
        "a(T A, T B) entails c(T A, T B)",
        "a(T A, T B) entails c(T A, T B), which entails d(T A)",
    ]


def test_a_chain_is_as_strong_as_the_product_of_its_steps() -> None:
    """Ten steps of .5 are not .5, a long strong way beats a short weak one, and weak chains can be left out."""
    steps = [edge(f"p{number}(T X)", f"p{number + 1}(T X)", 0.5) for number in range(10)]
    start = NODES[0]
    ways = graph(edge("p(T X)", "t(T X)", 0.6), edge("p(T X)", "q(T X)", 0.9), edge("q(T X)", "t(T X)", 0.9))

    (chain,) = (chain for chain in graph(*steps).closure[steps[0].premise] if chain.end == steps[-1].hypothesis)
    assert chain.score == pytest.approx(0.5**10)
    (strong,) = (chain for chain in ways.chains([start])[start] if chain.end.predicate == "t")
    assert (strong.length, strong.score) == (3, pytest.approx(0.81))
    assert [chain.end.predicate for chain in ways.chains([start], 0.85)[start]] == ["q"]


def test_a_premise_with_a_repeated_variable_needs_equal_terms() -> None:
    """Who admires oneself is vain; who admires someone need not be."""
    entailments = graph(
        edge("adores(P X, P Y)", "admires(P X, P Y)"),
        edge("is_narcissist(P X)", "admires(P X, P X)"),
        edge("admires(P X, P X)", "is_vain(P X)"),
    )
    ends = {start.predicate: [str(chain.end) for chain in chains] for start, chains in entailments.closure.items()}

    assert ends["adores"] == ["admires(P A, P B)"]
    assert ends["is_narcissist"] == ["admires(P A, P A)", "is_vain(P A)"]


def test_the_strongest_entailment_of_a_predicate_has_its_number_of_arguments(fresh_kb: KnowledgeBase) -> None:
    """`runs/1` and `runs/2` are two predicates."""
    store_edges(fresh_kb, [edge("runs(P X)", "moves(P X)", 0.7), edge("runs(P X, S Y)", "leads(P X, S Y)", 0.9)])

    assert (strongest(fresh_kb, "runs/1"), strongest(fresh_kb, "runs/2"), strongest(fresh_kb, "leads/1")) == (
        0.7,
        0.9,
        None,
    )


def test_an_entailment_of_score_zero_is_among_all_entailments(fresh_kb: KnowledgeBase) -> None:
    """It is left out only where a higher score is asked for."""
    store_edges(fresh_kb, [edge("runs(P X)", "sleeps(P X)", 0.0)])
    stored = StoredEdges(fresh_kb)

    assert [len(stored.out_of("runs", least)) for least in (0.0, 0.01)] == [1, 0]
    assert strongest(fresh_kb, "runs/1") == 0.0
    # A chain goes on behind it, and has its score.
    store_edges(fresh_kb, [edge("sleeps(P X)", "dreams(P X)", 0.5)])
    library = parse_library([])
    assert [found.score for found in edges_into(fresh_kb, library, ["dreams"], 0.0)] == [0.0, 0.5]
    assert [found.score for found in edges_into(fresh_kb, library, ["dreams"], 0.1)] == [0.5]
    whole = EntailmentGraph(edges(fresh_kb, 0.0))
    (start,) = (atom for atom in whole.atoms if atom.predicate == "runs")
    (chain,) = (found for found in whole.chains([start])[start] if found.end.predicate == "dreams")
    assert (chain.score, chain.scores) == (0.0, (0.0, 0.0))


def test_circles_are_paraphrases() -> None:
    """Predicates that entail each other are one set, arguments in their places; what leaves the circle is not in it."""
    entailments = graph(
        edge("owns(P X, V Y)", "is_owned_by(V Y, P X)"),
        edge("is_owned_by(V Y, P X)", "belongs_to(V Y, P X)"),
        edge("belongs_to(V Y, P X)", "owns(P X, V Y)"),
        edge("owns(P X, V Y)", "has(P X, V Y)"),
    )

    assert [[str(atom) for atom in same] for same in entailments.paraphrases] == [
        ["belongs_to(V A, P B)", "is_owned_by(V A, P B)", "owns(P B, V A)"]
    ]


NODES = [Atom(name, (Variable("A", "T"),)) for name in "pqrst"]


@settings(deadline=None, max_examples=cases(12))
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_closure_is_transitive(arrows: set[tuple[int, int]]) -> None:
    """The closure reaches what a plain walk reaches, and every chain goes by stored entailments."""
    found = [Edge(NODES[start], NODES[end], 0.9) for start, end in arrows if start != end]
    direct = {(edge.premise, edge.hypothesis) for edge in found}
    reached = set(direct)
    for middle in NODES:
        reached |= {(a, d) for a, b in reached for c, d in reached if b == c == middle}
    chains = EntailmentGraph(found).chains(NODES)

    assert {(start, chain.end) for start, some in chains.items() for chain in some} == {
        (start, end) for start, end in reached if start != end
    }
    for some in chains.values():
        assert all(set(zip(chain.atoms, chain.atoms[1:], strict=False)) <= direct for chain in some)


def test_graph_command(stored: Path, tmp_path: Path) -> None:
    """Chains and paraphrases as text and JSON, the entailments for two plotting programs, and a plot with its CSV."""
    words = ("evaluate", "entailment", "graph", "--db", stored)
    text = invoke(*words, "--out", tmp_path / "plot").stdout
    message = json.loads(invoke(*words, "--json").stdout)

    assert "shopped_in(Person A, Shop B) entails went_to(Person A, Shop B), which entails was_at" in text
    assert "paraphrases: is_owned_by(Vehicle A, Person B), owns(Person B, Vehicle A)" in text
    assert len(message["edges"]) == 11
    assert len(message["paraphrases"]) == 2
    assert {path.name for path in (tmp_path / "plot").iterdir()} == {
        "entailments.png",
        "entailments.svg",
        "entailments.csv",
    }
    assert invoke(*words, "--form", "mermaid").stdout.startswith("graph BT")
    assert invoke(*words, "--form", "dot").stdout.startswith("digraph")


def test_graph_of_nothing(tmp_path: Path) -> None:
    """A knowledge base without entailments says how to bring some."""
    KnowledgeBase(tmp_path / "x.db").close()
    result = invoke("evaluate", "entailment", "graph", "--db", tmp_path / "x.db")

    assert (result.exit_code, "hapax evaluate entailment facts" in result.stdout) == (0, True)


# Proofs


def test_goals_are_proved_through_entailments(stored: Path, tmp_path: Path) -> None:
    """With --entail a goal holds through two entailments and a rule, and the proof names them; without, or above, not."""
    rules = tmp_path / "r.rules"
    rules.write_text(
        "oracle shopped_in(Person, Shop)\noracle was_at(Person, Shop)\n"
        "@name seen\nis_in(Shop A, City C) & was_at(Person X, Shop A) -> was_seen_in(Person X, City C)\n",
        "utf-8",
    )
    theory = ("--rules", rules, "--db", stored, "--assume", "shopped_in(ann, ikea)", "--assume", "is_in(ikea, delft)")
    goal = ("query", "was_seen_in(ann, City)", *theory)

    assert invoke(*goal).stderr.startswith("No answer.")
    assert invoke(*goal, "--entail", "0.92").stderr.startswith("No answer.")
    assert invoke(*goal, "--entail", "0.9").stderr.startswith("No answer.")  # .95 x .9 is .855
    assert "delft" in invoke(*goal, "--entail", "0.85").stdout
    story = invoke("why", "was_seen_in(ann, delft)", *theory, "--entail", "0.85").stdout
    assert "[by rule went_to entails was_at (0.90)]" in story
    assert "[by rule shopped_in entails went_to (0.95)]" in story
    assert invoke(*goal, "--entail", "2").exit_code == 2


# Against rules


def found_faults(text: str) -> dict[str, set[str]]:
    """Code and rule of everything that the entailments say against a library."""
    library = parse_library([("planted.rules", text)])
    known = [Edge.of(p, q, float(s), library) for p, q, s in (line.split("\t") for line in ENTAILMENTS.splitlines())]
    strong = [edge for edge in known if edge.score >= 0.5]
    names = {rule.place: rule.name for rule in library.rules}
    found: dict[str, set[str]] = {}
    for diagnostic in entailment_faults(library, strong):
        found.setdefault(names[diagnostic.place], set()).add(diagnostic.code)
    return found


def test_a_planted_library_of_thirty() -> None:
    """Ten rules are reversed, redundant or contradictory, and all are found; none of the other twenty is accused."""
    text = SOUND + FAULTY

    assert text.count("@name") == 30
    assert found_faults(text) == {
        "reversed_shop": {"HPX413"},
        "reversed_by_chain": {"HPX413"},
        "reversed_murder": {"HPX413"},
        "reversed_capital": {"HPX413"},
        "redundant_shop": {"HPX414"},
        "redundant_owner": {"HPX414"},
        "redundant_special": {"HPX414"},
        "contrary_food": {"HPX415"},
        "contrary_harm": {"HPX415"},
        "contrary_trust": {"HPX415"},
    }


def test_rules_without_a_common_predicate_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """With entailments, too, each of many rules is compared with the few that it could be redundant beside."""
    lines = (
        f"p{n}(Person X, Shop A) & q{n}(Shop A, City C) -> r{n}(Person X, City C)\n"
        f"p{n + 1}(Person X, Shop A) & q{n}(Shop A, City C) & s(City C, Shop A) -> r{n}(Person X, City C)\n"
        for n in range(0, 200, 2)
    )
    library = parse_library([("many.rules", "".join(lines))])
    found = [edge(f"p{n + 1}(Person X, Shop A)", f"p{n}(Person X, Shop A)") for n in range(0, 200, 2)]
    compared = []
    subsumes = Matcher.subsumes
    monkeypatch.setattr(Matcher, "subsumes", lambda *arguments: compared.append(arguments) or subsumes(*arguments))
    diagnostics = list(entailment_faults(library, found))

    assert [diagnostic.code for diagnostic in diagnostics] == ["HPX414"] * 100
    assert len(compared) < 5 * len(library.rules)


def test_of_rules_that_follow_from_each_other_only_the_first_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With paraphrases in their premises either rule makes the other redundant, and without both the conclusion is lost;
    a comparison for which no time is left is told."""
    library = parse_library(
        [
            (
                "two.rules",
                "\n".join(f"{word}(Person X, Person Y) & s(Person Y, City C) -> r(Person X, City C)" for word in "pq"),
            )
        ]
    )
    found = [edge(f"{word}(Person X, Person Y)", f"{back}(Person X, Person Y)") for word, back in ("pq", "qp")]

    assert [(fault.code, fault.place.line) for fault in entailment_faults(library, found)] == [("HPX414", 1)]

    monkeypatch.setattr(checks, "MAXIMUM_TRIES_OF_ALL", 0)
    assert [fault.code for fault in entailment_faults(library, found)] == ["HPX303"]


def test_contrary_conclusions_are_told_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule against more than twenty is told of twenty, and that the others were not looked at; nor are they where the
    comparisons of a library are used up."""
    rules = "".join(f"p{n}(Person X, Shop A) & s(Shop A, City C) -> can_pay(Person X, Shop A)\n" for n in range(22))
    last = "q(Person X, Shop A) & s(Shop A, City C) -> is_poor(Person X, Shop A)\n"
    library = parse_library([("many.rules", rules + last)])
    found = [edge("is_poor(Person X, Shop A)", "cannot_pay(Person X, Shop A)")]
    diagnostics = list(entailment_faults(library, found))

    assert [diagnostic.code for diagnostic in diagnostics] == ["HPX415"] * 20 + ["HPX303"]

    monkeypatch.setattr(checks, "MAXIMUM_MEETINGS", 5)
    # Rules after the one at which they are used up are not told one by one.
    more = parse_library([("more.rules", rules + last + last.replace("q(", "t("))])

    assert [fault.code for fault in entailment_faults(library, found)] == ["HPX415"] * 5 + ["HPX303"]
    assert [fault.code for fault in entailment_faults(more, found)] == ["HPX415"] * 5 + ["HPX303"]


def test_check_tells_the_chain(stored: Path, tmp_path: Path) -> None:
    """`check --db` names the rules, both places and every step of the chain."""
    rules = tmp_path / "planted.rules"
    rules.write_text(SOUND + FAULTY, "utf-8")
    result = invoke("check", rules, "--db", stored)
    text = " ".join(result.stdout.split())

    assert "HPX413" in text
    assert (
        "shopped_in(Person X, Shop A) entails went_to(Person X, Shop A), which entails was_at(Person X, Shop A)" in text
    )
    assert (
        "the conclusion of rule redundant_special already follows by rule innocent_killers: murdered(Person X, Person Y) entails killed(Person X, Person Y)"
        in text
    )


def test_without_entailments_nothing_is_said() -> None:
    """The same library passes where none is stored."""
    library = parse_library([("planted.rules", SOUND + FAULTY)])

    assert list(entailment_faults(library, [])) == []


def test_stored_nonsense_is_told(tmp_path: Path) -> None:
    """A fact `entails` that is no entailment, brought in by an import, is an error that quotes it."""
    rows = tmp_path / "facts.jsonl"
    rows.write_text(json.dumps({"predicate": "entails", "arguments": ["halt. p(", "q", 0.9]}) + "\n", "utf-8")
    assert invoke("import", rows, "--db", tmp_path / "x.db").exit_code == 0
    with KnowledgeBase(tmp_path / "x.db") as kb, pytest.raises(HapaxError, match="is not an entailment"):
        edges(kb)


def test_suggested_rules_are_a_rule_file(stored: Path, tmp_path: Path) -> None:
    """`rules suggest` prints what `check` reads, once for each strong one-way entailment of predicates that rules know."""
    rules = tmp_path / "planted.rules"
    rules.write_text(SOUND, "utf-8")
    result = invoke("rules", "suggest", "--rules", rules, "--db", stored)
    rows = json.loads(invoke("rules", "suggest", "--rules", rules, "--db", stored, "--json").stdout)

    assert result.exit_code == 0
    assert "shopped_in(Person A, Shop B) -> went_to(Person A, Shop B)" in result.stdout
    assert "is_owned_by(Vehicle A, Person B) ->" not in result.stdout
    assert len(parse_library([("new.rules", result.stdout)]).rules) == len(rows)
    assert {row["rule"].split("(")[0] for row in rows} >= {"shopped_in", "murdered", "killed", "is_the_capital_of"}
    suggested = tmp_path / "suggested.rules"
    suggested.write_text(result.stdout, "utf-8")
    checked = invoke("check", rules, suggested, "--db", stored)
    assert checked.exit_code == 0
    assert not [line for line in checked.stdout.splitlines() if "suggested.rules" in line and "HPX4" in line]


TWO_WAYS_OUT = """
@name short
shopped_in(Person X, Shop A) & sells(Shop A, Thing B) -> may_own(Person X, Thing B)
@name longer
shopped_in(Person X, Shop A) & went_to(Person X, Shop A) & sells(Shop A, Thing B) -> may_own(Person X, Thing B)
"""


def test_remedies_of_rules_and_of_entailments_leave_the_conclusion() -> None:
    """A rule that the rules alone make redundant is no reason to remove another: one of the two stays."""
    library = parse_library([("two.rules", TWO_WAYS_OUT)])
    strong = [edge("shopped_in(Person X, Shop A)", "went_to(Person X, Shop A)", 0.95)]
    redundant = [fault.message for fault in duplicate_and_subsumed_rules(library)]

    assert len(redundant) == 1
    assert "longer" in redundant[0]
    assert [fault.code for fault in entailment_faults(library, strong)] == []


NAMES = "pqrst"


@st.composite
def rules_and_edges(draw: st.DrawFn) -> tuple[list[tuple[frozenset[str], str]], list[tuple[str, str]]]:
    """Rules and entailments over predicates of one argument: premises with a conclusion, and pairs."""
    name = st.sampled_from(NAMES)
    rules = draw(st.lists(st.tuples(st.frozensets(name, min_size=1, max_size=3), name), min_size=1, max_size=6))
    pairs = draw(st.lists(st.tuples(name, name), max_size=4))
    return [(premise, head) for premise, head in rules if head not in premise], [
        pair for pair in pairs if len(set(pair)) == 2
    ]


def closure(known: Iterable[str], rules: Sequence[tuple[frozenset[str], str]]) -> set[str]:
    found, size = set(known), -1
    while len(found) > size:
        size = len(found)
        found.update(head for premise, head in rules if premise <= found)
    return found


@given(rules_and_edges())
def test_obeying_all_remedies_loses_no_conclusion(
    generated: tuple[list[tuple[frozenset[str], str]], list[tuple[str, str]]],
) -> None:
    """Whatever rules are named for removal, by rules alone or by entailments, the others conclude the same without them."""
    rules, pairs = generated
    lines = [
        f"@name r{number}\n{' & '.join(f'{name}(Thing X)' for name in sorted(premise))} -> {head}(Thing X)\n"
        for number, (premise, head) in enumerate(rules)
    ]
    library = parse_library([("random.rules", "".join(lines))])
    found = [edge(f"{first}(Thing X)", f"{second}(Thing X)", 0.9) for first, second in pairs]
    faults = [*duplicate_and_subsumed_rules(library), *entailment_faults(library, found)]
    # A remedy may offer a choice; the first is to remove.
    removed = {int(number) for fault in faults for number in re.findall(r"^Remove rule r(\d+)", fault.remedy)}
    stronger = [(frozenset({first}), second) for first, second in pairs]
    kept = [rule for number, rule in enumerate(rules) if number not in removed]

    for size in range(len(NAMES) + 1):
        for known in combinations(NAMES, size):
            assert closure(known, [*kept, *stronger]) == closure(known, [*rules, *stronger])


def test_a_weak_way_back_does_not_silence_a_strong_direction() -> None:
    """.95 one way and .5 back is a direction; .95 and .9 are paraphrases."""
    library = parse_library(
        [("r.rules", "went_to(Person X, Shop A) & wants(Person X, Thing B) -> shopped_in(Person X, Shop A)\n")]
    )
    there = edge("shopped_in(Person X, Shop A)", "went_to(Person X, Shop A)", 0.95)

    def codes(score: float) -> list[str]:
        back = edge("went_to(Person X, Shop A)", "shopped_in(Person X, Shop A)", score)
        return [fault.code for fault in entailment_faults(library, [there, back])]

    assert "HPX413" in codes(0.5)
    assert "HPX413" not in codes(0.9)


@pytest.mark.parametrize(
    ("further", "codes"),
    [("lives_in(Person X, City C)", ["HPX413"]), ("is_old(Person X)", [])],
)
def test_a_reversed_rule_about_one_value_is_told_unless_another_premise_is_about_it_alone(
    further: str, codes: list[str]
) -> None:
    """Who is a nurse works; who works and is old may be said to be a nurse for being old, but not for living somewhere."""
    library = parse_library([("r.rules", f"works(Person X) & {further} -> is_a_nurse(Person X)\n")])
    found = [edge("is_a_nurse(Person X)", "works(Person X)")]

    assert [fault.code for fault in entailment_faults(library, found)] == codes


@pytest.mark.parametrize("negation", ["", "not "])
def test_a_negated_premise_entails_nothing(negation: str) -> None:
    """Only a literal that holds is compared with the conclusion, and makes other premises superfluous."""
    premise = f"lives_in(Person X, City C) & {negation}works(Person X)"
    reversed_rule = parse_library([("r.rules", f"{premise} -> is_a_nurse(Person X)\n")])
    implied = parse_library(
        [("r.rules", f"is_a_nurse(Person X) -> hurries(Person X)\n{premise} -> hurries(Person X)\n")]
    )
    nurse_works, works_nurse = edge("is_a_nurse(P X)", "works(P X)"), edge("works(P X)", "is_a_nurse(P X)")
    told = [entailment_faults(reversed_rule, [nurse_works]), entailment_faults(implied, [works_nurse])]

    expected: list[list[str]] = [[], []] if negation else [["HPX413"], ["HPX414"]]
    assert [[fault.code for fault in faults] for faults in told] == expected


def test_the_limits_of_entailments_are_options(tmp_path: Path) -> None:
    """`check --db` takes the score and the lead from which on an entailment counts, and refuses them without `--db`."""
    rules = tmp_path / "r.rules"
    rules.write_text(
        "given went_to(Person, Shop)\ngiven wants(Person, Thing)\n"
        "went_to(Person X, Shop A) & wants(Person X, Thing B) -> shopped_in(Person X, Shop A)\n",
        encoding="utf-8",
    )
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        store_edges(
            kb,
            [
                edge("shopped_in(Person X, Shop A)", "went_to(Person X, Shop A)", 0.9),
                edge("went_to(Person X, Shop A)", "shopped_in(Person X, Shop A)", 0.75),
            ],
        )

    def found(*more: str) -> set[str]:
        result = invoke("check", str(rules), "--db", str(tmp_path / "kb.db"), "--json", *more)
        return {fault["code"] for fault in json.loads(result.stdout)}

    assert "HPX413" not in found()
    assert "HPX413" in found("--entailment-margin", "0.1")
    assert "HPX413" not in found("--entailment-margin", "0.1", "--entailment-from", "0.95")
    refused = invoke("check", str(rules), "--entailment-margin", "0.1")
    assert refused.exit_code == 2
    assert "need the knowledge base of --db" in " ".join(refused.stderr.split())


def test_goals_use_entailments_whose_types_differ_from_the_declarations() -> None:
    """Goals refuse faulty rules, but not stored entailments, whose types no author of rules has written."""
    rules = hapax.parse_rules("given went_to(Person, Shop)\n")
    entailing = with_entailments(rules, [Edge.of("went_to(Human A, Place B)", "visited(Human A, Place B)", 0.9)])

    with hapax.KnowledgeBase() as kb:
        hapax.add_facts(kb, "went_to", [("ann", "baker")], rules)

        assert hapax.query("visited(ann, X)", entailing, kb).result.rows == [("baker",)]
