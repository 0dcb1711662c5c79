"""The gates: the critic's threshold, retrospective rejection, the likelihood gate, arithmetic."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.engine.inference.session import PrologSession
from hapax.engine.search.gates import CONSISTENCY, CRITIC, TYPE, CriticRule, LastVerdicts, QuestionGates, gates_in_order
from hapax.engine.search.ranking import keep_count, kept, released_penalty
from hapax.grammar.arithmetic import holds
from hapax.grammar.prolog_text import clause_text
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable
from hapax.kb.records import Candidate, Decision, Distribution

PROBABILITIES = st.floats(0.0, 1.0).map(lambda p: round(p, 3))
BATCHES = st.lists(st.lists(PROBABILITIES, max_size=6), max_size=5)
RULES = st.sampled_from([CriticRule(), CriticRule(cap=0.9), CriticRule(released=True), CriticRule(floor=0.65)])


def candidate(value):
    return Candidate("question", value, str(value), "call", 0)


def critic_scores(number, batch):
    return {candidate(f"v{number}.{position}"): {CRITIC.name: score} for position, score in enumerate(batch)}


def fed(batches, rule=None, **options):
    gates = QuestionGates(rules={CRITIC.name: rule or CriticRule()}, **options)
    for number, batch in enumerate(batches):
        gates.add(critic_scores(number, batch))
    return gates


def accepted(gates):
    return [gates.scores[passed][CRITIC.name] for passed in gates.accepted]


def threshold(gates):
    return gates.thresholds[CRITIC.name].value


def decisions(gates):
    return gates.decisions(gates.scores, "run")


RELEASED, CAPPED = CriticRule(released=True), CriticRule(cap=0.9)


@pytest.mark.parametrize(
    ("rule", "batches", "reached", "passed"),
    [
        # The paper's steps 1 and 3: what reaches 0.85 is accepted, and the threshold is then set.
        (None, [[0.86, 0.84], [0.84, 0.2]], 0.85, [0.86]),
        # Step 2: a call that leaves nothing accepted takes it down by 0.05, which earlier values may then reach.
        (None, [[0.78]], 0.8, []),
        (None, [[0.78], [0.1]], 0.75, [0.78]),
        (None, [[0.82]], 0.8, [0.82]),
        # Step 4: a better call takes it up by 0.05, and lower values that were accepted fall out, up to a cap.
        (None, [[0.86, 0.92], [0.97]], 0.9, [0.92, 0.97]),
        (None, [[0.99]] * 4, 0.95, [0.99] * 4),
        (CAPPED, [[0.99]] * 4, 0.9, [0.99] * 4),
        # LINK's code: floor(max P / 0.05) * 0.05, at most 0.85, and up when a later call has a better one.
        (RELEASED, [[0.62, 0.58]], 0.6, [0.62]),
        (RELEASED, [[0.62], [0.99, 0.84]], 0.85, [0.99]),
    ],
)
def test_the_threshold_of_the_critic(rule, batches, reached, passed):
    """Where it stands after some calls, and what it has accepted then."""
    gate = fed(batches, rule)

    assert (threshold(gate), accepted(gate)) == (reached, passed)
    assert [decision.accepted for decision in decisions(gate)].count(True) == len(passed)


def test_types_have_a_floor_and_what_nobody_judged_passes():
    """Step 5: data types need 0.65 whatever the critic says. Numbers have no type, and open questions no fact."""
    gates = QuestionGates(rules={TYPE.name: CriticRule(floor=0.65)})
    for number in range(9):
        gates.add({candidate(f"a{number}"): {TYPE.name: 0.6, CRITIC.name: 0.99}})

    assert gates.thresholds[TYPE.name].value == 0.65
    assert not gates.accepted
    assert fed([]).add({candidate(1876): {}}) == 1


def test_released_code_judges_the_mean_of_the_beam():
    """The score of a value is the mean of the probabilities of all values in its beam."""
    gate = fed([[0.7]], CriticRule(released=True), prior={CRITIC.name: (0.9, 0.8)})

    assert decisions(gate)[0].score == pytest.approx(0.8)


@given(BATCHES, RULES)
def test_threshold_never_falls_once_set(batches, rule):
    """Whatever comes, a threshold that is set only rises."""
    gates = QuestionGates(rules={CRITIC.name: rule})
    was = None
    for number, batch in enumerate(batches):
        gates.add(critic_scores(number, batch))
        now = gates.thresholds[CRITIC.name]
        if was is not None and was.is_set:
            assert now.is_set
            assert now.value >= was.value
        was = now


@given(BATCHES, RULES)
def test_nothing_below_the_final_threshold_is_accepted(batches, rule):
    """Accepted is exactly what reaches the final threshold."""
    gate = fed(batches, rule)
    scores = [p for batch in batches for p in batch]

    assert accepted(gate) == [p for p in scores if p >= threshold(gate)]


@given(BATCHES, RULES, st.randoms(use_true_random=False))
def test_order_within_a_batch_does_not_matter(batches, rule, rng):
    """Shuffling the values of each call leaves threshold and accepted values as they are."""
    shuffled = [rng.sample(batch, len(batch)) for batch in batches]

    assert threshold(fed(batches, rule)) == threshold(fed(shuffled, rule))
    assert sorted(accepted(fed(batches, rule))) == sorted(accepted(fed(shuffled, rule)))


@pytest.mark.parametrize(("compat", "reached"), [(None, 0.85), ("paper", 0.85), ("released", 0.9)])
def test_which_check_comes_first_decides_who_moves_the_threshold(compat, reached):
    """With the type first, a value of a wrong type cannot raise the factual threshold; with the fact first it can."""
    gates = QuestionGates(gates_in_order(compat))
    gates.add({candidate("a"): {TYPE.name: 0.9, CRITIC.name: 0.86}})
    gates.add({candidate("b"): {TYPE.name: 0.2, CRITIC.name: 0.99}})

    assert threshold(gates) == reached
    assert decisions(gates)[1].gate == "type"


SCORES = [-3.0, -1.0, -4.0, -2.0, -1.5]


@pytest.mark.parametrize(
    ("distribution", "beam", "expected"),
    [("long_tail", 200, [2, 0, 3, 4]), ("head", 200, [1, 4, 3, 0]), ("long_tail", 2, [2, 0]), ("head", 2, [1, 4])],
)
def test_kept_sets_on_a_fixed_table(distribution, beam, expected):
    """Of five beams 75 % stay, rounded up, and never more than the beam: the lowest, or for the head the highest."""
    assert kept(SCORES, range(5), Distribution(distribution), 0.75, beam) == expected


@given(st.lists(st.tuples(st.sampled_from([-1.0, -2.0]), st.text(max_size=3)), unique=True, max_size=9), st.randoms())
def test_ties_are_decided_by_the_values(pairs, rng):
    """The kept set depends on the beams, not on their order."""
    shuffled = rng.sample(pairs, len(pairs))

    def chosen(some):
        places = kept([s for s, _ in some], [t for _, t in some], Distribution.HEAD, 0.5, 200)
        return [some[place] for place in places]

    assert chosen(pairs) == chosen(shuffled)


@given(st.integers(0, 10_000), st.integers(1, 500))
def test_three_quarters_are_exact(count, beam):
    """No rounding error of floats takes or adds a beam."""
    assert keep_count(count, 0.75, beam) == min(beam, -(-3 * count // 4))


WORDS = st.lists(st.sampled_from(["peanut", "Butter", "and", "jelly", "42", "é"]), max_size=6).map(" ".join)


@settings(max_examples=cases(30), deadline=None)
@given(WORDS, WORDS)
def test_penalty_is_three_rouge_l(left, right):
    """The penalty equals 3 x the F measure of the rouge_score package."""
    from rouge_score.rouge_scorer import RougeScorer

    expected = 3 * RougeScorer(["rougeL"]).score(left, right)["rougeL"].fmeasure
    assert 2 * released_penalty(left, [right]) == pytest.approx(expected)  # the mean with `PersonX`


def test_python_decides_as_prolog_does():
    """On a table of numbers and all operators, the evaluator and the generated clause agree."""
    x, y = Variable("X", "Number"), Variable("Y", "Number")
    shapes = [Arithmetic(sign, (x, Arithmetic("*", (y, Constant(Decimal("1.5")))))) for sign in "+-*"]
    comparisons = [Comparison(sign, shape, y) for sign in ("<", "=<", ">", ">=", "=", "\\=") for shape in shapes]
    numbers = [-3, 0, 2, Decimal("2.50"), 10**30]
    library, clauses = Library(), []
    for place, comparison in enumerate(comparisons):
        rule = Rule("r", (comparison,), Literal(Atom(f"test_{place}", (x, y))))
        clauses.append(clause_text(rule, library))
    with PrologSession() as session:
        session.load("\n".join(clauses) + "\n")
        for place, comparison in enumerate(comparisons):
            goal = f"member(X, [-3, 0, 2, 5r2, {10**30}]), member(Y, [-3, 0, 2, 5r2, {10**30}]), test_{place}(X, Y)"
            rows = {tuple(map(Decimal, map(str, row))) for row in session.solutions(goal, ["X", "Y"]).rows}
            pairs = {(Decimal(a), Decimal(b)) for a in numbers for b in numbers if holds(comparison, {"X": a, "Y": b})}
            assert rows == pairs, comparison


def test_orders_of_gates_have_the_same_gates():
    """`--compat` changes places and knows no declarations; no other gate is lost, and none asked twice."""
    own, paper, released = ([gate.name for gate in gates_in_order(compat)] for compat in (None, "paper", "released"))

    assert set(own) - set(paper) == {CONSISTENCY.name}
    assert released != paper
    assert sorted(released) == sorted(paper)


def test_the_last_verdict_is_the_last_one_that_is_stored():
    """A verdict that a value has had before is not stored again: the one between stays the last."""

    def verdict(subject, accepted, gate="critic"):
        return Decision("run", gate, subject, accepted, 0.5, 0.6, "")

    last = LastVerdicts()
    last.add([verdict("a", True), verdict("b", True), verdict("a", False)])
    last.add([verdict("a", True), verdict("c", False, "type")])
    counts = last.by_gate(gates_in_order())

    assert (counts["type"].accepted, counts["type"].judged) == (2, 3)
    assert (counts["critic"].accepted, counts["critic"].judged) == (1, 2)
