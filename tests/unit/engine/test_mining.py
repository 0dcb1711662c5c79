"""Rule mining against a brute-force evaluator, on random knowledge bases; shapes of rules; rejected predictions."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

import hapax
from hapax.engine.entailment.graph import (
    PREMISE,
    Chain,
    Edge,
    edges,
    edges_into,
    edges_of,
    entailment_chains,
    entailment_faults,
    store_entailments,
)
from hapax.engine.expansion.expand import ExpansionFiles, write_proposals
from hapax.engine.expansion.propose import (
    Expander,
    ExpansionSettings,
    Proposal,
    UnusableReply,
    Verb,
    addition_text,
    read_conclusions,
    read_predicate,
    read_types,
    read_verb,
    sentences_for,
    with_additions,
)
from hapax.engine.mining.fact_tables import MiningOptions, RuleShape, shapes, ways_to_match
from hapax.engine.mining.mine import mine
from hapax.grammar.checking.library_checks import check_library
from hapax.grammar.checking.pair_checks import duplicate_and_subsumed_rules
from hapax.grammar.parsing.parser import parse_addition, parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Value, Variable, grouped
from hapax.kb.records import (
    CANDIDATES,
    DECISIONS,
    DENIALS,
    RUNS,
    AtomPattern,
    Candidate,
    Decision,
    DenialRecord,
    FactRecord,
    Question,
    RunRecord,
    Source,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity
from hapax.llm_oracle.questions.rewriting import TRIES, FormWriter
from hapax.llm_oracle.scripts.scripted import ScriptedModel

NO_RULES = Library()
ALL = MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0, examples=1)
"""Every rule with any support."""
TYPES = {"lives_in": ("Person", "City"), "born_in": ("Person", "City")}


def stored(facts: Iterable[tuple[str, tuple[Value, ...]]], types: dict[str, tuple[str, ...]]) -> KnowledgeBase:
    """A knowledge base in memory with these facts."""
    kb = KnowledgeBase()
    kb.add_facts(FactRecord(name, values, types.get(name, ()), Source.GIVEN) for name, values in facts)
    return kb


def born_where_they_live(kb: KnowledgeBase) -> Any:
    found = mine(kb, NO_RULES, ALL).rules
    return next(
        item for item in found if item.rule.sentence == "lives_in(Person X, City Y) -> born_in(Person X, City Y)"
    )


def test_predictions_that_a_critic_rejected_are_counter_examples() -> None:
    """The last verdict on a value counts; a denied fact counts; a value that two atoms were asked about does not."""
    facts = [("lives_in", (name, "Rome")) for name in ("ann", "bob", "cem", "dan", "eva")] + [
        ("born_in", ("ann", "Rome"))
    ]
    with stored(facts, TYPES) as kb:
        before = born_where_they_live(kb).measures
        judged(kb, "bob", [False], "born_in", "is_mayor_of")
        judged(kb, "cem", verdicts=[True, False])
        judged(kb, "dan", verdicts=[False, True])
        rejected = born_where_they_live(kb)
        kb.add(DENIALS, [DenialRecord("born_in", ("eva", "Rome"), 0.01)])
        denied = born_where_they_live(kb).measures

    assert (before.rejected, before.pca_confidence) == (0, 1.0)
    assert (rejected.measures.rejected, rejected.measures.pca_confidence) == (1, 1 / 2)
    assert rejected.counter_examples == ("cem lives in Rome: cem born in Rome",)
    assert (denied.rejected, denied.pca_confidence) == (2, 1 / 3)
    assert denied.confidence == before.confidence


def judged(kb: KnowledgeBase, name: str, verdicts: list[bool], *predicates: str) -> None:
    """Store a candidate of `born_in(NAME, ?)` with these decisions of the critic gate, one in each run."""
    patterns = tuple(AtomPattern(predicate, (name, None)) for predicate in predicates or ("born_in",))
    question = Question(patterns, "City")
    candidate = Candidate(question.id, "Rome", "Rome", "call", 0)
    kb.add_questions([question])
    kb.add(CANDIDATES, [candidate])
    for number, accepted in enumerate(verdicts):
        run = RunRecord(f"run {number}", "search", {}, "", "2026-01-01")
        kb.add(RUNS, [run])
        kb.add(DECISIONS, [Decision(run.id, "critic", candidate.id, accepted, 0.5, 0.6, "a reason")])


def brute_force(rule: Rule, facts: set[tuple[str, tuple[Value, ...]]], rejected: set[Any], by_second: bool) -> Any:
    """Support, facts of the head, predictions and predictions that count, by trying all values for all variables."""
    values = sorted({value for _, arguments in facts for value in arguments}, key=repr)
    names = [variable.name for variable in rule.variables]
    head_names = {variable.name for variable in rule.conclusion.variables}
    supported, predicted = set(), set()
    for chosen in itertools.product(values, repeat=len(names)):
        binding = dict(zip(names, chosen, strict=True))

        def ground(atom: Any, binding: dict[str, Value] = binding) -> tuple[str, tuple[Value, ...]]:
            terms = (binding[t.name] if isinstance(t, Variable) else t.value for t in atom.arguments)
            return atom.predicate, tuple(terms)

        head = ground(rule.conclusion.atom)
        body = [ground(literal.atom) for literal in rule.literals]
        if head in body or not all(atom in facts for atom in body):
            continue
        predicted.add(head)
        inner = [binding[name] for name in names if name not in head_names]
        others = [binding[name] for name in names]
        if head in facts and all(others.count(value) == 1 for value in inner):
            supported.add(head)
    name = rule.conclusion.atom.predicate
    constants = {
        place: term.value for place, term in enumerate(rule.conclusion.atom.arguments) if isinstance(term, Constant)
    }
    of_head = {
        arguments
        for other, arguments in facts
        if other == name and all(arguments[place] == value for place, value in constants.items())
    }
    given_place = next(iter({0, 1} - set(constants)), 0) if constants else int(by_second)
    known = {arguments[given_place] for other, arguments in facts if other == name}
    counts = {head for head in predicted if head[1][given_place] in known or head in rejected}
    if len(rule.conclusion.atom.arguments) == 1:
        counts = predicted
    return len(supported), len(of_head), len(predicted), len(counts), len(predicted & rejected)


NODES = st.sampled_from(["a", "b", "c", 3])
SMALL = st.sets(
    st.one_of(
        st.tuples(st.sampled_from(["p", "q", "r"]), st.tuples(NODES, NODES)), st.tuples(st.just("u"), st.tuples(NODES))
    ),
    min_size=3,
    max_size=9,
)


@settings(max_examples=cases(6), deadline=None)
@given(SMALL, st.sets(st.tuples(st.sampled_from(["p", "q"]), st.tuples(NODES, NODES)), max_size=3), st.booleans())
def test_measures_equal_those_of_brute_force(facts: set[Any], rejected: set[Any], constants: bool) -> None:
    """On random knowledge bases every mined rule has the figures that trying all values for all variables gives."""
    options = MiningOptions(min_support=1, min_coverage=0, min_confidence=0, min_pca=0, constants=constants, examples=0)
    with stored(facts, {}) as kb:
        kb.add(DENIALS, (DenialRecord(name, arguments, 0.0) for name, arguments in sorted(rejected, key=repr)))
        mined = mine(kb, NO_RULES, options)
    for item in mined.rules:
        name = item.rule.conclusion.atom.predicate
        pairs = [arguments for other, arguments in facts if other == name]
        by_second = len(pairs[0]) == 2 and len({pair[1] for pair in pairs}) > len({pair[0] for pair in pairs})
        measures = item.measures
        found = (measures.support, measures.facts, measures.predictions, measures.counted, measures.rejected)

        assert found == brute_force(item.rule, facts, rejected - facts, by_second), item.rule.sentence


def closed_rules(most: int) -> Iterator[Rule]:
    """All closed rules over p and q with two variables of the head and up to this many premises of a chain."""
    for premises in range(1, most + 1):
        ends = ["X", *"ZW"[: premises - 1], "Y"]
        for names in itertools.product("pq", repeat=premises):
            for turned in itertools.product((False, True), repeat=premises):
                atoms = []
                for place, (name, is_turned) in enumerate(zip(names, turned, strict=True)):
                    pair = (ends[place], ends[place + 1])
                    first, second = reversed(pair) if is_turned else pair
                    atoms.append(f"{name}(Object {first}, Object {second})")
                for head in "pq":
                    yield hapax.parse_rules(f"{' & '.join(atoms)} -> {head}(Object X, Object Y)").rules[0]


@settings(max_examples=cases(6), deadline=None)
@given(st.sets(st.tuples(st.sampled_from(["p", "q"]), st.tuples(NODES, NODES)), min_size=4, max_size=12))
def test_no_supported_chain_is_lost(facts: set[Any]) -> None:
    """Each chain with support is mined, or a rule is that subsumes it or predicts the same with no less confidence."""
    with stored(facts, {}) as kb:
        mined = mine(kb, NO_RULES, ALL)
    best = {name: [item for item in mined.rules if item.rule.conclusion.atom.predicate == name] for name in "pq"}
    for rule in closed_rules(2):
        head = rule.conclusion.atom.predicate
        pairs = [arguments for other, arguments in facts if other == head]
        if not pairs or str(rule.conclusion) in map(str, rule.premise):
            continue
        by_second = len({pair[1] for pair in pairs}) > len({pair[0] for pair in pairs})
        support, _, _, counted, _ = brute_force(rule, facts, set(), by_second)

        if support:
            assert any(item.measures.pca_confidence >= support / counted for item in best[head]), rule.sentence


def test_shapes_are_closed_and_connected() -> None:
    """Each variable of a shape occurs twice, and no two shapes differ only in names."""
    for premises in (1, 2, 3):
        found = shapes(premises)
        for shape in found:
            used = [*range(shape.head), *itertools.chain(*shape.premises)]
            assert min(map(used.count, used)) > 1
        assert len(set(found)) == len(found)
    assert [len(shapes(premises)) for premises in (1, 2, 3)] == [2, 7, 26]


def test_premises_are_matched_from_the_head_outwards() -> None:
    """Each premise of an order has a variable that is bound before it; one with bound variables alone comes at once."""
    assert list(ways_to_match(RuleShape(2, ((0, 2), (2, 1))))) == [(0, 1), (1, 0)]
    assert list(ways_to_match(RuleShape(2, ((0, 2), (2, 1), (0,))))) == [(2, 0, 1), (2, 1, 0)]
    assert list(ways_to_match(RuleShape(2, ((0, 1), (0, 2), (1,))))) == [(0, 2, 1)]


ENTAILMENT_GRAPH_NODES = [Atom(name, (Variable("A", "T"),)) for name in "pqrst"]


def edge(premise: str, hypothesis: str, score: float = 0.9) -> Edge:
    return Edge.of(premise, hypothesis, score)


def by_premise(found: Iterable[Edge]) -> Callable[[str], list[Edge]]:
    by_indicator = grouped(found, lambda edge: edge.premise.indicator)
    return lambda indicator: by_indicator.get(indicator, [])


def chains_from(start: Atom, *found: Edge, at_least: float = 0.0) -> list[Chain[Atom]]:
    return entailment_chains([start], by_premise(found), at_least)[start]


def test_a_chain_is_as_strong_as_the_product_of_its_steps() -> None:
    """Ten steps of .5 are not .5, a long strong way beats a short weak one, and weak chains can be left out."""
    steps = [edge(f"p{number}(T X)", f"p{number + 1}(T X)", 0.5) for number in range(10)]
    start = ENTAILMENT_GRAPH_NODES[0]
    ways = [edge("p(T X)", "t(T X)", 0.6), edge("p(T X)", "q(T X)", 0.9), edge("q(T X)", "t(T X)", 0.9)]

    (chain,) = (chain for chain in chains_from(steps[0].premise, *steps) if chain.end == steps[-1].hypothesis)
    assert chain.score == pytest.approx(0.5**10)
    (strong,) = (chain for chain in chains_from(start, *ways) if chain.end.predicate == "t")
    assert (strong.length, strong.score) == (3, pytest.approx(0.81))
    assert [chain.end.predicate for chain in chains_from(start, *ways, at_least=0.85)] == ["q"]


def test_a_premise_with_a_repeated_variable_needs_equal_terms() -> None:
    """Who admires oneself is vain; who admires someone need not be."""
    found = [
        edge("adores(P X, P Y)", "admires(P X, P Y)"),
        edge("is_narcissist(P X)", "admires(P X, P X)"),
        edge("admires(P X, P X)", "is_vain(P X)"),
    ]
    chains = entailment_chains([edge.premise for edge in found], by_premise(found))
    ends = {start.predicate: [str(chain.end) for chain in some] for start, some in chains.items()}

    assert ends["adores"] == ["admires(P A, P B)"]
    assert ends["is_narcissist"] == ["admires(P A, P A)", "is_vain(P A)"]


@settings(deadline=None, max_examples=cases(12))
@given(st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_closure_is_transitive(arrows: set[tuple[int, int]]) -> None:
    """The closure reaches what a plain walk reaches, and every chain goes by stored entailments."""
    found = [
        Edge(ENTAILMENT_GRAPH_NODES[start], ENTAILMENT_GRAPH_NODES[end], 0.9) for start, end in arrows if start != end
    ]
    direct = {(edge.premise, edge.hypothesis) for edge in found}
    reached = set(direct)
    for middle in ENTAILMENT_GRAPH_NODES:
        reached |= {(a, d) for a, b in reached for c, d in reached if b == c == middle}
    chains = entailment_chains(ENTAILMENT_GRAPH_NODES, by_premise(found))

    assert {(start, chain.end) for start, some in chains.items() for chain in some} == {
        (start, end) for start, end in reached if start != end
    }
    for some in chains.values():
        assert all(set(zip(chain.nodes, chain.nodes[1:], strict=False)) <= direct for chain in some)


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
    with KnowledgeBase() as kb:
        store_entailments(kb, random_edges(seed))
        whole, behind = edges(kb, 0.0), edges_into(kb, Library(), ["p0"], at_least)
        ahead = {name: edges_of(kb, PREMISE, name, at_least) for name in (f"p{number}" for number in range(10))}

    def chains(edges_of: Callable[[str], list[Edge]], start: str, end: str) -> set[tuple[str, float]]:
        found = set()
        for atom, reached in entailment_chains([edge.premise for edge in whole], edges_of, at_least).items():
            for chain in reached:
                if start in atom.predicate and end in chain.end.predicate:
                    found.add((f"{atom} {chain.end}", round(chain.score, 9)))
        return found

    looked_up = by_premise(itertools.chain.from_iterable(ahead.values()))
    assert chains(looked_up, "p0", "p") == chains(by_premise(whole), "p0", "p")
    assert chains(by_premise(behind), "p", "p0") == chains(by_premise(whole), "p", "p0")


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
    faults = [*duplicate_and_subsumed_rules(library), *entailment_faults(library, by_premise(found))]
    # A remedy may offer a choice; the first is to remove.
    removed = {int(number) for fault in faults for number in re.findall(r"^Remove rule r(\d+)", fault.remedy)}
    stronger = [(frozenset({first}), second) for first, second in pairs]
    kept = [rule for number, rule in enumerate(rules) if number not in removed]

    for size in range(len(NAMES) + 1):
        for known in combinations(NAMES, size):
            assert closure(known, [*kept, *stronger]) == closure(known, [*rules, *stronger])


@pytest.mark.parametrize("negation", ["", "not "])
def test_a_negated_premise_entails_nothing(negation: str) -> None:
    """Only a literal that holds is compared with the conclusion, and makes other premises superfluous."""
    premise = f"lives_in(Person X, City C) & {negation}works(Person X)"
    reversed_rule = parse_library([("r.rules", f"{premise} -> is_a_nurse(Person X)\n")])
    implied = parse_library(
        [("r.rules", f"is_a_nurse(Person X) -> hurries(Person X)\n{premise} -> hurries(Person X)\n")]
    )
    nurse_works, works_nurse = edge("is_a_nurse(P X)", "works(P X)"), edge("works(P X)", "is_a_nurse(P X)")
    told = [
        entailment_faults(reversed_rule, by_premise([nurse_works])),
        entailment_faults(implied, by_premise([works_nurse])),
    ]

    expected: list[list[str]] = [[], []] if negation else [["HPX413"], ["HPX414"]]
    assert [[fault.code for fault in faults] for faults in told] == expected


META = """given is_of_age(Person, Age): "[1] is [2] years old" / "[1] is not [2] years old" / "is [1] [2] years old?"
functional needs_age(Object, Age): "[1] needs age [2]" / "[1] does not need age [2]" / "does [1] need age [2]?"
given cannot_operate(Person, Object): "[1] cannot operate [2]" / "[1] can operate [2]" / "is [1] unable to operate [2]?"
@name operating_age
is_of_age(Person A, Age X) & needs_age(Object B, Age X) -> cannot_operate(Person A, Object B)
"""
PROPOSED_RULES_TYPES = "List 10 subcategories of Object"
INGREDIENT = Atom("ingredient_in", (Variable("A", "Ingredient"), Variable("B", "Dish")))


def library_of(text: str = META) -> Library:
    return parse_library([("meta.rules", text)])


def proposals(generate: Mapping[str, Any], text: str = META) -> list[Proposal]:
    library = library_of(text)
    (meta,) = (rule for rule in library.rules if rule.name == "operating_age")
    model = ScriptedModel({"generate": generate, "defaults": {"generate": ""}})
    return Expander(model, library, [meta], ExpansionSettings("B")).expand(meta)[0]


@pytest.mark.parametrize(
    ("reply", "types"),
    [
        ("Vehicle, Machinery, Tobacco Product", ["Vehicle", "Machinery", "Tobacco Product"]),
        ("Here are some:\n1. **Vehicles**: cars\n2) firearms - all\n- an Alcohol (beer)", ["Vehicle", "Firearm", "Alcohol"]),
        ("* name of a dish\n* works of art", ["Name of Dish", "Work of Art"]),
        ("1. Knives\n2. Cosmetics\n3. Cactus\n4. Gas", ["Knife", "Cosmetics", "Cactus", "Gas"]),
        ("Vitamin C\np(X) :- q(X).\n\x00\n:-\n'\"\n1.\n" + "x" * 10_000 + "\nthe\nof", []),
        ("I cannot help with that, because it is not clear what you mean by a type of this kind", []),
        ("", []),
    ],
)  # fmt: skip
def test_data_types_are_read_out_of_lists(reply: str, types: list[str]) -> None:
    """Numbers, marks, articles, plurals and explanations go; what cannot name a type is left out."""
    assert [data_type for data_type in read_types(reply) if isinstance(data_type, str)] == types


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        ("cannot_drive", "cannot_drive"),
        ("`cannot_drive(Person A, Vehicle B)`", "cannot_drive"),
        ("1. Cannot drive.", "cannot_drive"),
        ("The best predicate is cannot_drive.", "cannot_drive"),
        ("can't drive", "cannot_drive"),
        ("is a kind of", "is_a_kind_of"),
        ("drives_a or rides_a", None),
        ("halt. :- shell('rm -rf /')", None),
        ("drive\x00", None),
        ("", None),
        ("drive " * 40, None),
        ("Furniture A cannot be placed in Bag B.", None),
        ("The sofa does not fit in the drawer.", None),
        ("If it is large, it cannot be placed", None),
    ],
)
def test_a_predicate_is_read_out_of_a_reply(reply: str, name: str | None) -> None:
    """One name in letters, digits and underscores; a sentence or anything else is none."""
    with nullcontext() if name else pytest.raises(UnusableReply):
        assert read_predicate(reply, ["Furniture A", "Drawer B"]) == Verb(name or "")


def test_conclusions_give_verbs_with_their_sentences() -> None:
    """A statement's end, behind its last `then`, becomes name and template; one without both arguments is left out."""
    reply = (
        "Here are the statements:\n\n1. If Person A ate and then slept, then Person A cannot drive Vehicle B.\n"
        "2. person a can't steer the Vehicle B\n3. Nobody\x1b[2J drives."
    )
    verbs = list(read_conclusions(reply, ["Person A", "Vehicle B"]))

    assert verbs == [Verb("cannot_drive", "[1] cannot drive [2]"), Verb("cannot_steer", "[1] cannot steer the [2]")]
    assert read_verb("[1] cannot pay [2] for [3]", 3) == Verb("cannot_pay_for", "[1] cannot pay [2] for [3]")
    assert read_verb("[1] pays [1] and [2]", 2) is None


def test_new_names_are_free_and_a_shared_verb_is_declared_over_both_types() -> None:
    """A name that a rule has gets a number; a verb of two types is declared once; the same replies give the same text."""
    replies = {PROPOSED_RULES_TYPES: "Alcohol, Tobacco Product", "[mask](Person A,": "cannot_buy"}
    first, second = proposals(replies), proposals(replies)
    taken = f"@name {first[0].rule.name}\n@generic none\nis_of_age(Person A, Age X) -> is_old(Person A)\n"
    whole = with_additions(replace(library_of(), rules=()), [proposal.addition for proposal in first])

    assert proposals(replies, META + taken)[0].rule.name == f"{first[0].rule.name}_2"
    assert whole.signature("cannot_buy/2").argument_types == ("Person", "Object")
    assert [fault for fault in check_library(whole) if fault.severity == "error"] == []
    assert [addition_text(each.addition, library_of()) for each in first] == [
        addition_text(each.addition, library_of()) for each in second
    ]


@pytest.mark.parametrize(
    ("types", "joined"),
    [
        (("Food", "Food"), "Food"),
        (("Fruit", "Food"), "Food"),
        (("Fruit", "Herb"), "Food"),
        (("Fruit", "Stone"), "Object"),
        (("Person", "Food"), "Person"),
    ],
)
def test_two_uses_of_a_new_verb_have_a_common_type(types: tuple[str, str], joined: str) -> None:
    """The wider of two types, a declared one above both, or Object; persons share none with others, and the first stays."""
    library = library_of("type Fruit < Food\ntype Herb < Food\n")
    additions = [parse_addition("a", f"given is_washed({data_type})\n", library) for data_type in types]

    assert with_additions(library, additions).signature("is_washed/1").argument_types == (joined,)


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ("p(X) :- q(X).", ":- halt.", '"; drop table calls; --', "\n\n\n", "1. \n2. \n3. .", "x" * 10_000, "not", "type",
         "fact", "[1] [2] [1]", '[1] cannot " use [2]', "[1] -> [2]", "Person A # Vehicle B", "Vehicle\nType X\nfact p(1)",
         "\u202eelcihev\x1b[31m")
    ),
)  # fmt: skip


@settings(max_examples=cases(15), deadline=None)
@given(types=HOSTILE, verb=HOSTILE, statements=HOSTILE, sentence=HOSTILE)
def test_hostile_replies_never_give_a_faulty_rule(types: str, verb: str, statements: str, sentence: str) -> None:
    """Whatever a model says, a proposal is a rule that reads back as it was written and has no error."""
    generate = {
        PROPOSED_RULES_TYPES: f"{types}\nVehicle\nMachinery",
        "is equal to [mask]": verb,
        "Fill in": statements,
        "Sentence:": sentence,
        "Correct the sentence": sentence,
    }
    library = replace(library_of(), rules=())
    for proposal in proposals(generate):
        text = addition_text(proposal.addition, library)
        again = parse_addition("again", text, library)
        faults = [fault for fault in check_library(with_additions(library, [again])) if fault.severity == "error"]

        assert again.rules == proposal.addition.rules
        assert faults == []
        assert text.replace("\n", "").isprintable()


class Forgetful:
    """A generator that gives its replies in turn."""

    identity = ModelIdentity("forgetful")

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.samples: list[int] = []

    def generate(self, requests: list[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        self.samples += [request.sample_index for request in requests]
        return [Generation(self.replies.pop(0) if self.replies else "") for _ in requests]


def test_a_predicate_becomes_a_sentence_with_minimal_edits() -> None:
    """S1-7: a reply that loses a slot is asked for again; the one that keeps them is taken, and grammar does the rest."""
    model = Forgetful("[1] is an ingredient", "Corrected: [1] is in [2]", "[1] is an ingredient in [2].")
    made = sentences_for(INGREDIENT, None, FormWriter(model))

    assert made.templates.affirmative == "[1] is an ingredient in [2]"
    assert made.templates.negated == "[1] is not an ingredient in [2]"
    assert made.templates.question == "is [1] an ingredient in [2]?"
    assert made.notes == ()
    assert model.samples == [0, 1, 2]


def test_five_tries_and_no_more() -> None:
    """A model that never keeps the slots is asked five times a form, and what was made instead is said."""
    model = Forgetful()
    made = sentences_for(INGREDIENT, None, FormWriter(model))

    assert TRIES == 5
    assert model.samples == [*range(TRIES)] * 3
    assert made.templates.affirmative == "[1] ingredient in [2]"
    assert len(made.notes) == 3


def test_predicates_that_a_meta_file_only_uses_are_its_own_where_types_do_not_fit(tmp_path: Path) -> None:
    """Rules and facts beside that use them are left out; a predicate whose types fit is shared."""
    meta, beside = tmp_path / "meta.rules", tmp_path / "beside.rules"
    meta.write_text("wears(Person A, Object B) & is_sold_at(Object B, Price P) -> pays(Person A, Price P)\n", "utf-8")
    beside.write_text(
        "type Price < Number\noracle wears(Person, Object)\noracle is_sold_at(Object, Shop)\n"
        'fact is_sold_at("hat", "corner shop")\nfact wears("ann", "hat")\n'
        "@name own\n@generic none\nwears(Person A, Object B) -> is_dressed(Person A)\n"
        "@name shop\nwears(Person A, Object B) & is_sold_at(Object B, Shop S) -> visits(Person A, Shop S)\n",
        "utf-8",
    )
    sources = ExpansionFiles(meta, tmp_path / "new.rules", [beside]).read()

    assert sources.own == ("is_sold_at/2",)
    assert [rule.name for rule in sources.beside.rules] == ["own"]
    assert [fact.indicator for fact in sources.beside.facts] == ["wears/2"]


def test_a_rule_file_declares_what_its_rules_need(tmp_path: Path) -> None:
    """Types of a rule with all above them and no others; predicates that the library beside does not declare."""
    types = "type Herb < Plant\ntype Car < Vehicle\ntype Vehicle < Machine\n"
    rule = "@generic none\ndrives(Person A, Car B) & sells(Person C, Car B) -> meets(Person A, Person C)\n"
    declared = "oracle drives(Person, Car)\n"
    addition = parse_addition("a", f"{types}{declared}{rule}", library_of(""))

    def text(beside: str, note: str = "note") -> str:
        library, path = library_of(beside + rule.replace("meets", "knows")), tmp_path / "new.rules"
        path.unlink(missing_ok=True)
        proposal = Proposal(addition, addition.rules[0].sentence, "statement", note)
        assert write_proposals(path, [proposal], library, library, accept=True) == [proposal]
        assert write_proposals(path, [proposal], library, library, accept=True) == []
        return path.read_text("utf-8")

    assert [line for line in text("").splitlines() if line.startswith("type ")] == [
        "type Car < Vehicle",
        "type Vehicle < Machine",
    ]
    assert declared in text("")
    assert declared not in text(declared)
    assert "# a b c d\n" in text("", " a\nb\r\u2028c \u202e\x07 d")  # no text of a person ends the comment
