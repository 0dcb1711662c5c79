"""Scores, counts and texts at the very limits of the engine, and cases that its other tests seldom meet."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cli_fixture import invoke

import hapax
from hapax.engine import certificates
from hapax.engine.certificates import JudgedScore, Promise, binomial_tail, choose_threshold
from hapax.engine.cluster.calling import AllottedCalls
from hapax.engine.cluster.owner import Owner, OwnerReply
from hapax.engine.cluster.running import _check_models
from hapax.engine.expansion.predicate_lint import _objects
from hapax.engine.expansion.sheet import ReviewSheet
from hapax.engine.explain import _Replay, story_text, why_not
from hapax.engine.inference import session as sessions
from hapax.engine.inference.bulk_derivation import (
    current_rules,
    derive_all,
    followed_rules,
    outdated_rules,
    read_statements,
)
from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.inference.statement_export import DERIVED, _line
from hapax.engine.inference.theory import Theory, parse_atom
from hapax.engine.judgements import MODEL_VOTER, SOUNDNESS_QUESTION
from hapax.engine.mining import mine as mining
from hapax.engine.mining.mine import MiningOptions, _some
from hapax.engine.mining.screening import LeastSupport
from hapax.engine.probability import proofs
from hapax.engine.probability.exact import TooLarge, exact
from hapax.engine.probability.ground import GroundProgram
from hapax.engine.probability.proofs import _any_of, best_proofs
from hapax.engine.run_memory import identities_of, last_account, with_stored_predicates
from hapax.engine.search import certified_groups
from hapax.engine.search.account import DistributionCut, DroppedLines, StepAccount
from hapax.engine.search.certified_groups import end_lines
from hapax.engine.search.certified_statements import DistinctStatements
from hapax.engine.search.ends import pair_pool
from hapax.engine.search.job import SearchJob
from hapax.engine.search.oracle import NOT_COVERED, _basis
from hapax.engine.search.plan import plan_run
from hapax.engine.search.scored_facts import proposed_atoms
from hapax.engine.search.search import search, settled_measure
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import CriticRule
from hapax.engine.voter_errors import FEWEST_SHARED, FEWEST_VOTERS, Vote, weigh_shared
from hapax.engine.withdrawal import _is_of
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import PredicateKind
from hapax.grammar.terms import Atom, Constant, decimal_of
from hapax.kb.records import (
    AtomPattern,
    Candidate,
    Distribution,
    FactRecord,
    PredicateRecord,
    Question,
    QuestionState,
    RuleRecord,
    RuleTextRecord,
    RunRecord,
    Source,
    StatementRecord,
    TypeFact,
    VoteRecord,
)
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.measures import Measure, TextMeasures
from hapax.llm_oracle.protocols import CriticScore, ModelIdentity, Models
from hapax.llm_oracle.scripted import ScriptedModel

BANNED = """
oracle is_in(Dish, Town): "[1] is served in [2]" / "[1] is not served in [2]" / "is [1] served in [2]?"
oracle is_banned(Dish, Town): "[1] is banned in [2]" / "[1] is not banned in [2]" / "is [1] banned in [2]?"
given eats(Person, Dish): "[1] eats [2]" / "[1] does not eat [2]" / "does [1] eat [2]?"
@name served
visits(Person X, Town B) & is_in(Dish A, Town B) & not is_banned(Dish A, Town B) -> eats(Person X, Dish A)
"""


def served(score: float, banned: float) -> tuple[ScriptedModel, SearchSettings]:
    """A model with one dish of one town, the scores of its two claims, and a threshold of 3/4 for facts."""
    script = {
        "generate": {"'[A] is served in [B]'": ["Lima"], "'[A] is served in Lima'": ["soup"]},
        "critic": {"Soup is served in Lima.": score, "Soup is banned in Lima.": banned},
        "defaults": {"critic": 0.9, "likelihood": -1.0, "generate": []},
    }
    return ScriptedModel(script), SearchSettings(fact_threshold=CriticRule.at(0.75), ends="overlapping")


@pytest.mark.parametrize(
    ("score", "banned", "statements"),
    [(0.75, 0.25, 1), (0.75, 0.26, 0), (0.74, 0.25, 0), (0.9, 0.0, 1), (0.9, 0.75, 0)],
)
def test_scores_at_the_thresholds_pass(score: float, banned: float, statements: int) -> None:
    """A fact may have the threshold itself, and a sure no one less the threshold; the forecast knows it afterwards."""
    library = parse_library([("served.rules", BANNED)])
    model, settings = served(score, banned)
    models = Models(model, model, model, model)
    with KnowledgeBase() as kb:
        report = search(SearchJob(library, library.rules, kb, models, settings))
        forecast = plan_run(library, library.rules, kb, models, settings).rules[0]

        assert len({statement.id for statement in report.statements}) == statements
        assert len(kb.denials("is_banned/2")) == (banned <= 0.25 and score >= 0.75)
        assert bool(forecast.statements.expected) == bool(statements)
        assert forecast.calls.expected == 0


@pytest.mark.parametrize(("length", "shown"), [(80, 80), (81, 80)])
def test_a_text_that_is_no_atom_is_shown_up_to_eighty_characters(length: int, shown: int) -> None:
    """A longer one ends with three dots."""
    library = parse_library([("a.rules", "given p(T)")])
    text = f"p({'A' * (length - 3)})"
    with pytest.raises(HapaxError) as refused:
        parse_atom(text, library)

    told = str(refused.value).partition(" contains a variable")[0]
    assert told == (text if length == 80 else f"{text[:77]}...")
    assert len(told) == shown


@pytest.mark.parametrize(("length", "end"), [(400, ""), (401, " ...")])
def test_a_message_of_prolog_is_shown_up_to_four_hundred_characters(length: int, end: str) -> None:
    """Line ends in it are blanks."""
    text = ("word\n" * 200)[: length - 1] + "x"

    assert sessions._short(text) == " ".join(text.split())[:400] + end


def test_a_list_of_a_note_has_five_texts() -> None:
    """The number of the others follows, if there are any."""
    assert _some("abcde") == "a; b; c; d; e"
    assert _some("abcdef") == "a; b; c; d; e and 1 more"


@pytest.mark.parametrize(
    ("options", "bounds"),
    [({"sample": -1}, "at least 0"), ({"examples": 101}, "between 0 and 100"), ({"min_pca": 1.5}, "between 0 and 1")],
)
def test_an_option_of_mining_out_of_its_range_is_refused(options: dict[str, Any], bounds: str) -> None:
    """The message has the bounds; the bounds themselves are allowed."""
    ((name, value),) = options.items()
    with pytest.raises(HapaxError, match=re.escape(f"{name} is {value!r}. Set it to a number {bounds}.")):
        MiningOptions(**options)
    MiningOptions(sample=0, examples=100, min_pca=1)


def test_lines_that_were_dropped_keep_an_example() -> None:
    """The first example stands; without one the other's does."""
    assert DroppedLines(1, "a") + DroppedLines(2, "b") == DroppedLines(3, "a")
    assert DroppedLines(1, "") + DroppedLines(2, "b") == DroppedLines(3, "b")


def test_the_last_account_is_that_of_a_complete_search(fresh_kb: KnowledgeBase) -> None:
    """Neither an unfinished search nor another command has one."""
    summary = {"rules": [{"rule": "r", "account": [StepAccount(1, "A", "given").to_json()]}]}
    for name, command in (("query", "query"), ("search", "search"), ("cut", "search")):
        fresh_kb.start_run(RunRecord.now(name, command, {}))
        if name != "cut":
            fresh_kb.finish_run(name, summary=summary)
    found = last_account(fresh_kb, "r")

    assert found is not None
    assert found[0].id == "search"
    assert last_account(fresh_kb, "s") is None
    assert identities_of(None) == {}


def test_an_id_with_every_digit_is_an_id(tmp_path: Any) -> None:
    """A fact is withdrawn by 32 hexadecimal digits; a text of that length with others is an atom or none."""
    hapax.KnowledgeBase(tmp_path / "kb.db").close()
    (tmp_path / "a.rules").write_text("given p(T)\n", "utf-8")
    options = ("--reason", "wrong", "--rules", tmp_path / "a.rules", "--db", tmp_path / "kb.db")
    every, other = "0123456789abcdef" * 2, "0123456789abcdeg" * 2

    assert f"there is no fact {every}" in invoke("retract", every, *options).output
    assert "is not expected here" in invoke("retract", other, *options).output


def test_voters_are_weighed_once_enough_items_are_shared() -> None:
    """Twenty items with three votes are enough, and nineteen are not."""
    votes = [
        Vote(f"item {item}", f"voter {voter}", True) for item in range(FEWEST_SHARED) for voter in range(FEWEST_VOTERS)
    ]

    assert weigh_shared(votes) is not None
    assert weigh_shared(votes[1:]) is None


def test_statements_of_one_text_are_certified_once(fresh_kb: KnowledgeBase) -> None:
    """They share their votes; models' votes, ties and statements of other rules count for nothing."""
    fresh_kb.start_run(RunRecord.now("run", "search", {}))

    def stored(rule: str, value: str, end: Distribution, premise: str) -> StatementRecord:
        return StatementRecord(rule, end, "run", (("A", value),), premise, "c", "t", {})

    same = [stored("r", "a", Distribution.HEAD, "one"), stored("s", "a", Distribution.LONG_TAIL, "one")]
    tied, other = stored("r", "b", Distribution.HEAD, "two"), stored("gone", "c", Distribution.HEAD, "three")
    by_model = stored("r", "d", Distribution.HEAD, "four")
    fresh_kb.add_statements([*same, tied, other, by_model])
    first = min(same, key=lambda statement: statement.id)
    distinct = DistinctStatements.of(fresh_kb, {"r": "", "s": ""})

    assert set(distinct.records) == {first.id, tied.id, by_model.id}
    assert distinct.rows == {**{each.id: first.id for each in same}, tied.id: tied.id, by_model.id: by_model.id}
    assert distinct.ends[first.id] == {"head", "long_tail"}
    fresh_kb.add_votes(
        [
            *(VoteRecord(same[1].id, SOUNDNESS_QUESTION, voter, "yes", "") for voter in ("ann", "bob")),
            VoteRecord(same[0].id, SOUNDNESS_QUESTION, "cem", "rule", ""),
            VoteRecord(tied.id, SOUNDNESS_QUESTION, "ann", "yes", ""),
            VoteRecord(tied.id, SOUNDNESS_QUESTION, "bob", "rule", ""),
            VoteRecord(by_model.id, SOUNDNESS_QUESTION, f"{MODEL_VOTER}m", "yes", ""),
        ]
    )
    assert distinct.truths(fresh_kb) == {first.id: True}


def test_ends_are_told_apart_beyond_a_much_different_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit itself is not much; an end with a much smaller part of the labels is named."""
    monkeypatch.setattr(certified_groups, "MUCH_SHIFT", 0.25)

    def told(shift: float, labels: int) -> str:
        head = {"accepted": 10, "labels": labels, "false": 0, "bound": 0.5, "shift": shift}
        tail = {"accepted": 10, "labels": 40 - labels, "false": 0, "bound": 0.5, "shift": 0.5}
        return end_lines({"head": head, "long_tail": tail})

    assert ["AUC" in told(shift, 20) for shift in (0.2, 0.25, 0.5, 0.75, 0.8)] == [True, False, False, False, True]
    assert ["smaller part" in told(0.5, labels) for labels in (9, 10, 20, 30, 31)] == [True, False, False, False, True]


def test_a_computed_predicate_with_facts_is_left_to_prolog(fresh_kb: KnowledgeBase) -> None:
    """Only Prolog combines a definition with facts, and both give proofs."""
    library = parse_library(
        [("a.rules", "computed is_big(Number N) := N > 3\n@name it\n@generic none\nn(T X, Number N) & is_big(Number N) -> q(T X, Number N)")]
    )  # fmt: skip
    fresh_kb.add_facts(FactRecord("n", (f"x{number}", number), ("T", "Number"), Source.GIVEN) for number in (2, 3, 5))
    fresh_kb.add_facts([FactRecord("is_big", (2,), ("Number",), Source.GIVEN)])

    with pytest.raises(HapaxError, match="is_big/1 is computed and also has facts or rules"):
        derive_all(fresh_kb, library, library.rules, "sql")
    derive_all(fresh_kb, library, library.rules)
    found = {record.substitution: str(record.proof) for record in read_statements(fresh_kb, library, library.rules[0])}
    assert sorted(dict(bindings)["N"] for bindings in found) == [2, 5]
    assert ["computed" in proof for _, proof in sorted(found.items())] == [False, True]


ROADS = """
given road(Place, Place)
closed road/2
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name back
@generic none
road(Place A, Place B) & not road(Place B, Place A) -> one_way(Place A, Place B)
"""


def test_rules_that_were_not_derived_anew_are_out_of_date(fresh_kb: KnowledgeBase) -> None:
    """After a change of facts all are, after deriving one of them the others are, and other rules of a name never count."""
    library = parse_library([("roads.rules", ROADS)])
    step, back = library.rules

    def road(ends: str) -> FactRecord:
        return FactRecord("road", tuple(ends), ("Place", "Place"), Source.GIVEN)

    def told() -> list[list[str]]:
        names = [[rule.name for rule in found(fresh_kb, library)] for found in (current_rules, followed_rules)]
        return [outdated_rules(fresh_kb), *names]

    fresh_kb.add_facts([road("ab"), road("ba"), road("bc")])
    derive_all(fresh_kb, library, [step], "sql")
    derive_all(fresh_kb, library, [back], "prolog")
    assert told() == [[], ["step", "back"], ["step"]]
    changed = parse_library([("roads.rules", ROADS.replace("road(Place A, Place B) -> reaches", "road(Place B, Place A) -> reaches"))])  # fmt: skip
    assert [rule.name for rule in current_rules(fresh_kb, changed)] == ["back"]

    fresh_kb.add_facts([road("cb")])
    assert sorted(told()[0]) == ["back", "step"]
    derive_all(fresh_kb, library, [step], "sql")
    assert told() == [["back"], ["step"], ["step"]]


def test_a_question_that_may_be_asked_again_is_not_exhausted(fresh_kb: KnowledgeBase) -> None:
    """`why-not` tells the calls of a question about the atom, and whether more would be made."""
    library = parse_library([("a.rules", "oracle is_in(Dish, Town)")])
    question = Question((AtomPattern("is_in", (None, "Lima")),), "Dish")
    fresh_kb.add_questions([question])
    told = []
    for exhausted in (False, True):
        fresh_kb.set_question_states([(question, QuestionState(2, 0, exhausted=exhausted))])
        told.append(story_text(why_not(Theory(library, fresh_kb), 'is_in(soup, "Lima")')))

    assert [re.findall(r"2 calls, (.*)", text) for text in told] == [["not exhausted"], ["exhausted"]]


def test_types_of_users_and_of_this_run_count(fresh_kb: KnowledgeBase) -> None:
    """Those that a model's score gave in an earlier run do not; a withdrawn fact is not added again."""
    library = parse_library([("a.rules", "oracle is_in(Dish, Town)")])
    fresh_kb.add_type_facts([TypeFact("soup", "Dish"), TypeFact("stew", "Dish", 0.9)])
    gone, other = (
        FactRecord("is_in", (dish, "Lima"), ("Dish", "Town"), Source.MODEL, 0.9) for dish in ("soup", "stew")
    )
    fresh_kb.add_facts([gone])
    fresh_kb.withdraw([gone.id], "wrong", "user")
    known = KnownFacts(fresh_kb, library)
    known.add([gone, other])

    assert known.types() == [TypeFact("soup", "Dish")]
    known.add_types([TypeFact("pie", "Dish", 0.8)])
    assert known.types() == [TypeFact("soup", "Dish"), TypeFact("pie", "Dish", 0.8)]
    assert fresh_kb.facts() == [other]


def test_names_of_unknown_rarity_make_no_smaller_pool() -> None:
    """Only where the rarity of all names is known is the half with the commoner ones taken."""
    priors = {"a": -1.0, "b": -2.0, "c": -3.0}
    measures = {text: TextMeasures({Measure.PRIOR: prior}, 1) for text, prior in priors.items()}

    assert pair_pool(measures) == ["a", "b"]
    assert pair_pool({**measures, "d": TextMeasures({Measure.PAPER: -1.0}, 1)}) == ["a", "b", "c", "d"]
    assert pair_pool({}) == []


def test_a_worker_with_other_models_or_none_ends_the_search() -> None:
    """The first worker that cannot open the models, or opens others, is named with its reason."""
    here = ModelIdentity("m", "1")
    model = ScriptedModel({"defaults": {}})
    model.identity = here
    models = Models(model, model, model, model)
    same, other = OwnerReply((here,) * 4), OwnerReply((here, here, replace(here, revision="2"), here))

    class Workers:
        count = 3

        def __init__(self, *replies: OwnerReply) -> None:
            self.replies = replies

        def begin(self, number: int, method: str) -> Any:
            assert method == "identities"
            return SimpleNamespace(result=lambda: self.replies[number])

    _check_models(Workers(same, same, same), models)
    with pytest.raises(HapaxError, match=r"^Worker 1: no file m$"):
        _check_models(Workers(same, OwnerReply(fault="no file m"), other), models)
    with pytest.raises(HapaxError, match=r"^Worker 2 opened m as 2, this process as 1: their answers would differ"):
        _check_models(Workers(same, same, other), models)


@pytest.mark.parametrize(
    ("probability", "refused", "objects"), [(0.49, "", True), (0.5, "", False), (0.3, "no answer", False)]
)
def test_a_critic_objects_below_one_half(probability: float, refused: str, objects: bool) -> None:
    """One half is no objection, nor is a refusal to answer."""
    assert _objects(CriticScore(probability, refused=refused)) is objects


@pytest.mark.parametrize(
    ("settings", "end", "score"),
    [
        ({"ends": "overlapping"}, "head", "-4.5"),
        ({"ends": "overlapping"}, "long_tail", "-2.5"),
        ({"ends": "disjoint"}, "head", "-2.5"),
        ({"ends": "overlapping", "compat": "paper"}, "head", "-2.5"),
    ],
)
def test_repeated_words_lower_a_score_in_the_overlapping_head_alone(
    settings: dict[str, str], end: str, score: str, fresh_kb: KnowledgeBase
) -> None:
    """`why-not` tells the score by which the search ranked; `New York` shares a word with `York`, whose ROUGE-L is 2/3."""
    library = parse_library([("a.rules", "@generic none\np(City A, City B) -> q(City A, City B)")])
    run = replace(RunRecord.now("run", "search", {}), settings=settings)
    bound = {"A": Constant("York"), "B": Constant("New York")}
    replayed = _Replay(Theory(library, fresh_kb), library.rules[0], run, ())

    _, words = replayed._verdict(end, DistributionCut(3, 1, -2.0), -2.5, bound)
    assert words.startswith(f"its score is {score}00, and the 1 ")


def test_of_too_many_proofs_the_better_half_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probability that is too large to compute is that of fewer proofs, the most probable of them."""
    program = GroundProgram()
    nodes = [program.node(f"event {number}") for number in range(6)]
    program.weights.update(dict.fromkeys(nodes, 0.5))
    counts: list[int] = []

    def limited(small: GroundProgram, root: int) -> float:
        counts.append(len(small.instances[root]))
        if counts[-1] > 3:
            raise TooLarge
        return exact(small, root)

    monkeypatch.setattr("hapax.engine.probability.proofs.exact", limited)
    found = [frozenset({(node, True)}) for node in nodes]

    assert _any_of(program, found) == pytest.approx(1 - 0.5**3)
    assert counts == [6, 3]
    assert _any_of(program, []) == 0.0


def test_the_predicates_of_a_damaged_file_are_those_that_can_be_read(fresh_kb: KnowledgeBase) -> None:
    """A check of the file goes on where other readers stop."""
    fresh_kb.add_facts([FactRecord(name, ("a",), ("T",), Source.GIVEN) for name in ("p", "q")])
    fresh_kb.database.conn.execute("UPDATE facts SET arguments = '[' WHERE predicate = 'p'")

    with pytest.raises(HapaxError):
        fresh_kb.fact_indicators()
    fresh_kb.unreadable = {}
    assert fresh_kb.fact_indicators() == ["q/1"]
    assert [fresh_kb.fact_count(name, 5) for name in ("p/1", "q/1")] == [0, 1]


def test_published_ways_rank_by_likelihoods_alone() -> None:
    """LINK has no measure of names, so that a model that only counts them is refused; Hapax's own way takes its first."""

    class Counts:
        identity = ModelIdentity("counts", "1")

        def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
            return [1.0] * len(names)

    model = ScriptedModel({"defaults": {}})
    counting = Models(model, model, cast("Any", Counts()), model)
    published = SearchSettings(compat="paper")

    assert settled_measure(published, Models(model, model, model, model)) == published
    with pytest.raises(HapaxError, match="counts does not give the measure paper"):
        settled_measure(published, counting)
    assert settled_measure(SearchSettings(), counting).measure == "prior"


def test_a_negation_with_an_open_place_is_told_without_a_proof(fresh_kb: KnowledgeBase) -> None:
    """`check` refuses such a rule; `why-not` still says what is against it."""
    library = parse_library(
        [("a.rules", "given likes(Person, Dish)\ngiven banned(Dish, Town)\nclosed banned/2\n@generic none\n"
          "likes(Person X, Dish A) & not banned(Dish A, Town B) -> eats(Person X, Dish A)")]
    )  # fmt: skip
    fresh_kb.add_facts(
        [
            FactRecord("likes", ("ann", "soup"), ("Person", "Dish"), Source.GIVEN),
            FactRecord("banned", ("soup", "Lima"), ("Dish", "Town"), Source.GIVEN),
        ]
    )
    told = story_text(why_not(Theory(library, fresh_kb), "eats(ann, soup)"))

    assert told.rstrip().endswith('banned("soup", Town B) holds, but the rule requires that it does not')


def test_a_number_without_an_end_is_in_no_fact(fresh_kb: KnowledgeBase) -> None:
    """No fact is stored with a third, so that no model is asked about one."""
    library = parse_library([("a.rules", "oracle weighs(Thing, Number)")])
    known = KnownFacts(fresh_kb, library)
    third, half = (Atom("weighs", (Constant("stone"), Constant(decimal_of(Fraction(1, part))))) for part in (3, 2))

    assert known.truth(third) == 0.0
    assert known.truth(half) is None


@pytest.mark.parametrize(
    ("score", "basis"),
    [
        (CriticScore(0.5, covered=False), NOT_COVERED),
        (CriticScore(0.9, basis="row 3"), "row 3"),
        (CriticScore(0.9), None),
    ],
)
def test_a_stored_score_has_its_source(score: CriticScore, basis: str | None) -> None:
    """The row of a table, or that no critic covers the claim; nothing for a model's own score."""
    assert _basis(score) == basis


def test_a_hint_names_five_kept_rule_files(fresh_kb: KnowledgeBase) -> None:
    """Dots stand for the others, where there are any."""
    theory = Theory(parse_library([]), fresh_kb)
    assert theory._kept() == ""
    for count, told in ((5, "0.rules, 1.rules, 2.rules, 3.rules, 4.rules;"), (6, "3.rules, 4.rules ...;")):
        fresh_kb.set_rule_texts(RuleTextRecord(f"{number}.rules", "", "search") for number in range(count))
        assert f"{told} `--rules shipped` names those of Hapax." in theory._kept()


def test_a_worker_collects_the_shards_of_other_runs_alone(tmp_path: Path) -> None:
    """Also one of which only a file beside it is left; its own shard is at work."""
    for name in ("shard-now-0.db", "shard-now-0.db-wal", "shard-old-1.db", "shard-older-2.db-wal", "notes.txt"):
        (tmp_path / name).touch()
    worker = SimpleNamespace(_post=SimpleNamespace(folder=tmp_path, run="now"))

    assert Owner.left_over(cast("Any", worker)) == ["shard-old-1.db", "shard-older-2.db"]


def test_an_exported_statement_names_its_run_unless_it_was_derived() -> None:
    """`derive` is no run of a search."""
    record = StatementRecord("r", Distribution.HEAD, "run 1", (("A", "x"),), "p", "c", "t", {})

    assert [json.loads(_line(record, end))["run"] for end in ("head", "long_tail", DERIVED)] == ["run 1", "run 1", None]


def test_more_labels_are_recommended_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the limit are named, and no number above it."""
    scores = [number / 1000 for number in range(1000)]
    judged = [JudgedScore(score, True, block=str(place)) for place, score in enumerate(scores[::333])]
    for method in ("learn-then-test", "conformal"):
        more = choose_threshold(judged, scores, Promise(0.9, 0.9, method)).more_labels
        assert more is not None
        for limit, named in ((more, more), (more - 1, None)):
            monkeypatch.setattr(certificates, "MOST_LABELS", limit)
            assert choose_threshold(judged, scores, Promise(0.9, 0.9, method)).more_labels == named
        monkeypatch.undo()


def test_labels_with_as_many_false_ones_as_the_risk_lack_no_number() -> None:
    """More labels of the same kind would never do."""
    assert certificates._lacking(1, 14, 0.1, 0.1, binomial_tail) == math.inf
    assert certificates._lacking_questions(10, 1.0, 0.1) is None


def test_a_conclusion_without_a_positive_premise_has_a_proof() -> None:
    """An atom that follows from nothing that may fail is certain, and so is one that rests on it alone."""
    program = GroundProgram()
    sure, after, fact = (program.node(name) for name in ("sure", "after", "fact"))
    program.weights[fact] = 0.5
    program.add(sure, ())
    program.add(after, (sure, fact))

    assert best_proofs(program) == {sure: 1.0, after: 0.5, fact: 0.5}


def test_upper_bounds_that_still_move_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A circle of atoms with fewer rounds than it needs is bounded by one, and atoms without a rule by themselves."""
    program = GroundProgram()
    fact = program.node("fact")
    circle = [program.node(number) for number in range(4)]
    program.weights[fact] = 0.5
    program.add(circle[0], (fact,))
    for number in range(4):
        program.add(circle[(number + 1) % 4], (circle[number],))
    nodes = program.below(circle[0])
    monkeypatch.setattr(proofs, "MOST_ROUNDS", len(nodes) + 1)
    assert [proofs.upper_bounds(program, nodes)[node] for node in (fact, *circle)] == [0.5, 0.75, 0.75, 0.5, 0.5]

    monkeypatch.setattr(proofs, "MOST_ROUNDS", len(nodes))
    assert [proofs.upper_bounds(program, nodes)[node] for node in (fact, *circle)] == [0.5, 1.0, 1.0, 1.0, 1.0]


def test_an_unknown_kind_of_a_stored_predicate_is_read_as_given(fresh_kb: KnowledgeBase) -> None:
    """A file of a later version may have kinds that this one does not know."""
    fresh_kb.add_predicates([PredicateRecord("p", ("T",), "guessed"), PredicateRecord("q", ("T",), "functional")])

    library = with_stored_predicates(Theory(hapax.parse_rules(""), fresh_kb)).library
    kinds = {signature.name: signature.kind for signature in library.signatures}
    assert kinds == {"p": PredicateKind.GIVEN, "q": PredicateKind.FUNCTIONAL}


def test_a_rule_that_the_library_has_no_more_explains_no_missing_proof(fresh_kb: KnowledgeBase) -> None:
    """Only of a rule that is the same now as then is a missing proof a reason to withdraw a statement."""
    rules = "@name {}\n@generic none\np(T X) -> q(T X)"
    now = hapax.parse_rules(rules.format("r"))
    fresh_kb.add_rules([RuleRecord.of(rule) for name in "rs" for rule in hapax.parse_rules(rules.format(name)).rules])
    for name, is_same in (("r", True), ("s", False), ("t", False)):
        statement = SimpleNamespace(rule=name)
        assert _is_of(cast(StatementRecord, statement), Theory(now, fresh_kb)) is is_same


def test_a_time_limit_of_mining_is_met_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of all rules, or that of one, is up after it and not with it."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(mining.system, "monotonic", lambda: now.seconds)
    clock = mining._Clock(8.0, began=100.0)
    now.seconds = 108.0
    clock.check()
    clock.rule_began = 108.0 - mining._SECONDS_OF_A_RULE
    clock.check()
    clock.rule_began -= 0.25
    with pytest.raises(mining._TimeUpError):
        clock.check()
    clock.rule_began, now.seconds = None, 108.25
    with pytest.raises(mining._TimeUpError):
        clock.check()


def test_an_empty_cell_of_a_sheet_of_json_is_an_empty_text(tmp_path: Path) -> None:
    """A decision that is null has not been made."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"proposal": "p1", "decision": null, "rules": "r", "note": null}\n')

    (row,) = ReviewSheet(path).rows
    assert (row.proposal, row.decision, row.note) == ("p1", "", "")


def test_a_lost_worker_is_taken_to_have_used_all_that_it_got() -> None:
    """Its own count is gone; that of others counts as it is."""
    settled: list[tuple[object, ...]] = []
    ledger = SimpleNamespace(settle_allotment=lambda *used: settled.append(used))
    allotment = SimpleNamespace(account=SimpleNamespace(ledger=ledger), most="most")
    reply = SimpleNamespace(spent=SimpleNamespace(used="used", ledger="ledger", reached=("calls", 7)))
    caller = SimpleNamespace(_counted=["", ""])
    for is_lost in (False, True):
        assert AllottedCalls._settle(caller, 1, allotment, reply, is_lost) == "calls"  # type: ignore[arg-type]

    assert settled == [(allotment, "used"), (allotment, "most")]
    assert caller._counted == ["", "ledger"]


def test_a_summary_that_nobody_can_read_hides_no_earlier_account(fresh_kb: KnowledgeBase) -> None:
    """A newer search of another version is passed over."""
    account = [StepAccount(1, "A", "given").to_json()]
    for name, rules in (("old", [{"rule": "r", "account": account}]), ("new", [{"rule": "r", "account": [{"x": 1}]}])):
        fresh_kb.start_run(RunRecord.now(name, "search", {}))
        fresh_kb.finish_run(name, summary={"rules": rules})
        time.sleep(0.002)

    found = last_account(fresh_kb, "r")
    assert found is not None
    assert found[0].id == "old"


def test_a_question_of_an_unknown_predicate_hides_no_other(fresh_kb: KnowledgeBase) -> None:
    """Values that a search proposed for a rule that is gone are passed over."""
    library = parse_library([("a.rules", "oracle p(T, T)")])
    for name in ("a_gone", "p"):
        question = Question((AtomPattern(name, ("x", None)),), "T")
        fresh_kb.add_questions([question])
        fresh_kb.add_candidates([Candidate(question.id, "y", "y", "call", 0)])

    assert [str(atom.arguments) for atom in proposed_atoms(fresh_kb, library).values()] == ["('x', 'y')"]


def test_a_rule_needs_the_support_of_one_fact_at_least() -> None:
    """Whatever the options allow."""
    assert LeastSupport(0, 0.0).of(5) == 1
    assert LeastSupport(0, 0.3).of(10) == 3
    assert LeastSupport(4, 0.3).of(10) == 4
