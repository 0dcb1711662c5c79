"""Typed entailment graphs as published: imported, looked up by goals, and followed along chains."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.entailment.closure import EntailmentGraph
from hapax.engine.entailment.graph import Edge, edges, store_edges, stored_edge
from hapax.engine.entailment.lookup import StoredEdges, edges_into, edges_out_of
from hapax.evaluation.entailment.graph_import import graph_node
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library

PLACES = """types: person#location, num preds: 3

predicate: (shop.1,shop.in.2)#person#location
num neighbors: 3

BInc sims
(go.1,go.to.2)#person#location 0.95
(shop.1,shop.in.2)#person#location 1.0
(host.1,host.2)#location#person 0.3

predicate: (go.1,go.to.2)#person#location
num neighbors: 1

BInc sims
(be.1,be.seen.in.2)#person#location 0.9
"""

PEOPLE = """types: person#person, num preds: 2

predicate: (marry.1,marry.2)#person_1#person_2
num neighbors: 2

BInc sims
(marry.1,marry.2)#person_2#person_1 0.99
(know.1,know.2)#person_1#person_2 0.9

predicate: (shop.1,shop.in.2)#person_1#person_2
BInc sims
(go.1,go.to.2)#person_1#person_2 0.15
"""


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    """A folder with two typed graphs."""
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "person#location_sim.txt").write_text(PLACES, "utf-8")
    (folder / "person#person_sim.txt").write_text(PEOPLE, "utf-8")
    return folder


@pytest.fixture
def database(graphs: Path, tmp_path: Path) -> Path:
    """A knowledge base into which both graphs were imported."""
    path = tmp_path / "kb.db"
    assert invoke("evaluate", "entailment", "import", graphs, "--db", path).exit_code == 0
    return path


def test_graphs_become_facts(graphs: Path, tmp_path: Path) -> None:
    """Nodes become atoms with types, arguments are matched by type, self-loops are left out, and all is counted."""
    path = tmp_path / "kb.db"
    result = invoke("evaluate", "entailment", "import", graphs, "--db", path, "--json")
    report = json.loads(result.stdout)
    with hapax.KnowledgeBase(path) as kb:
        stored = {(str(edge.premise), str(edge.hypothesis)): edge.score for edge in edges(kb, 0.0)}

    assert (report["files"], report["added"], report["trivial"]) == (2, 6, 1)
    assert stored == {
        ("shop_in(Person A, Location B)", "go_to(Person A, Location B)"): 0.95,
        ("shop_in(Person A, Location B)", "host(Location B, Person A)"): 0.3,
        ("go_to(Person A, Location B)", "be_seen_in(Person A, Location B)"): 0.9,
        ("marry(Person A, Person B)", "marry(Person B, Person A)"): 0.99,
        ("marry(Person A, Person B)", "know(Person A, Person B)"): 0.9,
        ("shop_in(Person A, Person B)", "go_to(Person A, Person B)"): 0.15,
    }
    again = json.loads(invoke("evaluate", "entailment", "import", graphs, "--db", path, "--json").stdout)
    assert (again["added"], again["known"]) == (0, 6)


def test_weak_entailments_are_left_out(graphs: Path, tmp_path: Path) -> None:
    """--at-least imports the stronger ones and counts the others."""
    options = hapax.GraphImportOptions(at_least=0.5)
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        report = hapax.import_entailment_graphs(kb, graphs, options=options)
    assert (report.added, report.weak) == (4, 2)


def test_faulty_lines_are_named_by_number(graphs: Path, tmp_path: Path) -> None:
    """A faulty line refuses all files, by its number; with --skip-faulty the others are imported."""
    path = graphs / "person#location_sim.txt"
    path.write_text(PLACES.replace("0.95", "1.5").replace("(host.1,host.2)#location#person", "host"), "utf-8")
    command = ("evaluate", "entailment", "import", graphs, "--db", tmp_path / "kb.db")

    refused = invoke(*command)
    assert refused.exit_code == 1
    assert f"{path}:7: " in refused.stderr
    assert f"{path}:9: host is not a predicate" in refused.stderr
    skipped = invoke(*command, "--skip-faulty")
    assert skipped.exit_code == 0
    assert "4 entailments of 2 files" in skipped.stderr
    assert "2 faulty" in skipped.stderr


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file that is no graph, and one without the similarities asked for, are refused with what to write."""
    text = tmp_path / "notes.txt"
    text.write_text("notes\n", "utf-8")
    graph = tmp_path / "graph.txt"
    graph.write_text(PLACES, "utf-8")
    with hapax.KnowledgeBase(tmp_path / "kb.db") as kb:
        with pytest.raises(hapax.HapaxError, match="not an entailment graph"):
            hapax.import_entailment_graphs(kb, text)
        with pytest.raises(hapax.HapaxError, match="contains binc sims, but none named cosine"):
            hapax.import_entailment_graphs(kb, graph, options=hapax.GraphImportOptions(similarity="cosine"))


@pytest.mark.parametrize(
    ("text", "name", "labels"),
    [
        ("(shop.1,shop.in.2)#person#location", "shop_in", ("person", "location")),
        ("(shop.in.2,shop.1)#location#person", "shop_in", ("person", "location")),
        ("NEG__(go.1,go.to.2)#person#location", "do_not_go_to", ("person", "location")),
        ("try__(visit.1,visit.2)#person_1#person_2", "try_to_visit", ("person_1", "person_2")),
        ("(buy.2,buy.from.3)#product#person", "buy_2_buy_from_3", ("product", "person")),
        ("(write.1,write.2)#person#book", "does_write", ("person", "book")),
        ("(1990.1,1990.in.2)#event#location", "does_1990_in", ("event", "location")),
    ],
)
def test_names_of_nodes(text: str, name: str, labels: tuple[str, str]) -> None:
    """A node's name can be that of a predicate, other slots than 1 and 2 are in it, and the lower slot comes first."""
    node = graph_node(text)
    assert (node.name, node.labels) == (name, labels)
    assert Edge.of(node.premise, node.premise, 1.0).is_trivial


@pytest.mark.parametrize("text", ["shop", "(shop.1)#a#b", "(shop.1,shop.2)#a", "(-.1,-.2)#a#b", "(a.1,b.2)#1#b"])
def test_texts_that_are_no_node(text: str) -> None:
    """Texts without two slots, two types or a word are refused."""
    with pytest.raises(ValueError, match=r"predicate|word"):
        graph_node(text)


# Chains


def test_a_goal_is_proved_along_a_chain(database: Path) -> None:
    """A chain holds while the product of its scores is high enough, and `why` shows the product."""
    theory = ("--db", database, "--assume", "shop_in(ann, ikea)")
    assert "ikea" in invoke("query", "be_seen_in(ann, Place)", *theory, "--entail", "0.4").stdout
    assert invoke("query", "be_seen_in(ann, Place)", *theory, "--entail", "0.95").exit_code == 1


def test_types_decide_with_back_off(database: Path) -> None:
    """With declared types the entailment of these types counts; without an entailment of them the mean over types."""
    with hapax.KnowledgeBase(database) as kb:
        typed = parse_library([("a", "given go_to(Person, Location)\ngiven shop_in(Person, Location)\n")])
        other = parse_library([("b", "given go_to(Person, Planet)\n")])
        scores = [edges_into(kb, library, ["go_to"], 0.0)[0].score for library in (typed, other)]
        (people,) = [
            edge
            for edge in edges_into(kb, parse_library([("c", "given go_to(Person, Person)\n")]), ["go_to"], 0.0)
            if edge.premise.predicate == "shop_in"
        ]
    assert scores == [0.95, pytest.approx((0.95 + 0.15) / 2)]
    assert people.score == 0.15


def test_why_shows_the_product_of_a_chain(database: Path, tmp_path: Path) -> None:
    """`why` names each step with its score, and the product of the chain up to it."""
    rules = tmp_path / "types.rules"
    rules.write_text("given be_seen_in(Person, Location)\ngiven shop_in(Person, Location)\n", "utf-8")
    theory = ("--rules", rules, "--db", database, "--assume", "shop_in(ann, ikea)", "--entail", "0.8")
    story = invoke("why", "be_seen_in(ann, ikea)", *theory).stdout
    assert "[by rule go_to entails be_seen_in (0.90)]  [chain 0.95 x 0.90 = 0.855]" in story
    assert "[by rule shop_in entails go_to (0.95)]\n" in story


def test_chains_of_a_predicate(database: Path) -> None:
    """`graph --of` lists the chains from a predicate with their products, the strongest first."""
    listed = invoke("evaluate", "entailment", "graph", "--db", database, "--of", "shop_in", "--at-least", "0.2").stdout
    lines = listed.splitlines()
    assert lines[0].endswith("entails go_to(Person A, Location B) (0.95 = 0.95)")
    assert lines[1].endswith("which entails be_seen_in(Person A, Location B) (0.95 x 0.90 = 0.855)")
    command = ("evaluate", "entailment", "graph", "--db", database, "--of", "shop_in", "--at-least", "0.2", "--json")
    assert [chain["score"] for chain in json.loads(invoke(*command).stdout)["chains"]] == [0.95, 0.855, 0.3]
    missing = invoke("evaluate", "entailment", "graph", "--db", database, "--of", "flies_to")
    assert missing.exit_code == 1
    assert "has no entailment of flies_to" in missing.stderr


def test_summary_counts_components(database: Path) -> None:
    """`graph --summary` counts entailments, atoms and components; two atoms that entail each other are paraphrases."""
    pytest.importorskip("scipy")
    command = ("evaluate", "entailment", "graph", "--db", database, "--summary", "--at-least", "0", "--json")
    counts = json.loads(invoke(*command).stdout)
    assert (counts["entailments"], counts["paraphrases"], counts["largest_size"]) == (6, 1, 2)
    assert counts["largest"] == ["marry(Person A, Person B)", "marry(Person B, Person A)"]
    assert invoke(*command, "--of", "marry").exit_code == 2


def random_edges(seed: int) -> list[Edge]:
    """Random entailments between ten predicates, with arguments in either order."""
    draw = random.Random(seed)
    found = []
    for _ in range(draw.randint(1, 30)):
        first, second = draw.sample(range(10), 2)
        order = draw.choice(("Person A, Person B", "Person B, Person A"))
        found.append(Edge.of(f"p{first}(Person A, Person B)", f"p{second}({order})", draw.randint(1, 100) / 100))
    return found


@settings(max_examples=cases(20), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.2, 0.5]))
def test_looked_up_chains_are_those_of_the_whole_graph(seed: int, at_least: float) -> None:
    """Chains over the entailments that a predicate looks up, before or after it, are those over all entailments."""
    with hapax.KnowledgeBase() as kb:
        store_edges(kb, random_edges(seed))
        StoredEdges(kb).prepare()
        whole, ahead = EntailmentGraph(edges(kb, 0.0)), EntailmentGraph(edges_out_of(kb, ["p0"], at_least))
        behind = EntailmentGraph(edges_into(kb, Library(), ["p0"], at_least))

    def chains(graph: EntailmentGraph, start: str, end: str) -> set[tuple[str, float]]:
        found = set()
        for atom, reached in graph.chains(graph.atoms, at_least).items():
            for chain in reached:
                if start in atom.predicate and end in chain.end.predicate:
                    found.add((f"{atom} {chain.end}", round(chain.score, 9)))
        return found

    assert chains(ahead, "p0", "p") == chains(whole, "p0", "p")
    assert chains(behind, "p", "p0") == chains(whole, "p", "p0")


def test_stored_entailments_are_read_as_parsed() -> None:
    """A fact in the usual notation and one in another notation give the entailment that the parser gives."""
    plain = stored_edge(("shop_in(Person A, Big Shop B)", "host(Big Shop B, Person A)", 1))
    assert plain == Edge.of("shop_in(Person A, Big Shop B)", "host(Big Shop B, Person A)", 1.0)
    assert stored_edge(("shop_in(Person X, Shop Y)", "go_to(Person X, Shop Y)", 1)) == Edge.of(
        "shop_in(Person A, Shop B)", "go_to(Person A, Shop B)", 1.0
    )


def test_look_ups_use_the_index() -> None:
    """SQLite finds the entailments of a predicate by index, so that a goal does not read the whole graph."""
    with hapax.KnowledgeBase() as kb:
        store_edges(kb, random_edges(1))
        StoredEdges(kb).prepare()
        seen: list[str] = []
        kb.database.conn.set_trace_callback(seen.append)
        StoredEdges(kb).into("p0")
        StoredEdges(kb).out_of("p0")
        kb.database.conn.set_trace_callback(None)
        plans = [str(kb.query(f"EXPLAIN QUERY PLAN {sql}")) for sql in seen if "entails" in sql]
    assert "entails_by_hypothesis" in plans[0]
    assert "entails_by_premise" in plans[1]


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("shop_in(Person X, Shop Y)", "go_to(Person X, Shop Y)"),
        ("shop_in(Person A, Shop B)", "go_to(Person A, Shop B)"),
        ("shop_in(Person B, Shop A)", "go_to(Person B, Shop A)"),
        ("is_red(Thing A)", "is_warm(Thing A)"),
        ("is_red( Thing A )", "is_warm(Thing A)"),
        ("is_red(Thing A)", "is_warm( Thing A )"),
    ],
)
def test_a_stored_entailment_is_read_as_it_is_written(premise: str, hypothesis: str) -> None:
    """With the names and quotes of any file, atoms read from a stored fact are those that the parser makes of them."""
    edge = stored_edge((premise, hypothesis, 0.25))

    assert edge == Edge.of(premise, hypothesis, 0.25)
    assert [term.name for term in edge.premise.variables] == ["A", "B"][: len(edge.premise.arguments)]
    assert edge.score == 0.25


@pytest.mark.parametrize("score", [-0.1, 1.5])
def test_a_stored_entailment_with_another_score_is_refused(score: float) -> None:
    """A score is a probability."""
    with pytest.raises(HapaxError, match="score"):
        stored_edge(("shop_in(Person A, Shop B)", "go_to(Person A, Shop B)", score))


def test_a_stored_entailment_needs_three_arguments() -> None:
    """The error says how many there are, and what to do."""
    with pytest.raises(HapaxError, match=r"A fact of entails has 1 argument, not 3\. Retract it\."):
        stored_edge(("shop_in(Person A, Shop B)",))


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("shop_in(Person A, Shop B)", "go_to(Person A, Shop C)"),
        ("shop_in(Person X, Shop Y)", "go_to(Person X, Shop Z)"),
    ],
)
def test_a_stored_entailment_with_a_new_variable_is_refused(premise: str, hypothesis: str) -> None:
    """The error names both atoms of the fact, and says which variables the right one may have."""
    told = f"{premise} -> {hypothesis}: use variables only, and on the right only those of the left."
    with pytest.raises(HapaxError, match=f"^{re.escape(told)}$"):
        stored_edge((premise, hypothesis, 1))
