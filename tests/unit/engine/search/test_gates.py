"""The gates: the critic's threshold, retrospective rejection, the likelihood gate, arithmetic."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_cases import cases

from hapax.commands.shared.console import CommandLine
from hapax.engine.gates.account import (
    DroppedLines,
    GateLoss,
    PremiseLoss,
    StepAccount,
    question_account,
    shortage,
)
from hapax.engine.gates.gates import (
    CONSISTENCY,
    CRITIC,
    FACT_FLOOR,
    TYPE,
    CriticRule,
    LastVerdicts,
    QuestionGates,
    gates_in_order,
)
from hapax.engine.prolog.session import PrologSession
from hapax.engine.search.ranking import (
    Ends,
    EndSize,
    divided,
    ends,
    keep_count,
    kept,
    random_score,
    released_penalty,
)
from hapax.grammar.remedies import worded_for
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Arithmetic, Atom, Comparison, Constant, Literal, Variable
from hapax.grammar.values.functions import holds
from hapax.grammar.writing.prolog_text import clause_text
from hapax.kb.records import Candidate, Decision, Distribution
from hapax.llm_oracle.critics.measures import Measure, TextMeasures

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


ENDS_SCORES = st.dictionaries(st.text(max_size=4), st.sampled_from([-3.0, -2.5, -1.0, 0.0, 4.0]), max_size=40)


def split(scores: dict[str, float], values: dict[str, tuple[object, ...]] | None = None) -> Ends:
    own = {text: (text,) for text in scores}
    return ends(scores, values or own, lambda text: random_score(0, text))


@given(ENDS_SCORES)
def test_the_ends_are_apart(scores: dict[str, float]) -> None:
    """No statement is at both ends, each end has at most a third, and every head scores above every long tail."""
    made = split(scores)

    assert not set(made.head) & set(made.long_tail)
    assert max(len(made.head), len(made.long_tail)) <= max(1, len(scores) // 3)
    assert all(scores[likely] > scores[rare] for likely in made.head for rare in made.long_tail)


@given(ENDS_SCORES)
def test_the_order_of_statements_does_not_matter(scores: dict[str, float]) -> None:
    """The ends follow from the set of statements."""
    assert split(dict(reversed(scores.items()))) == split(scores)


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 0), (2, 1), (3, 1), (5, 1), (6, 2), (9, 3), (10, 3)])
def test_a_third_at_each_end(count: int, size: int) -> None:
    """Each end has a third, rounded down; a pair is split, and a single statement is at no end."""
    made = split({str(number): float(number) for number in range(count)})

    assert (len(made.head), len(made.long_tail)) == (size, size)


def test_statements_that_the_ranker_cannot_tell_apart_are_at_no_end() -> None:
    """Where most statements have one score, the ends have the others only."""
    made = split({"rare": -5.0, "common": 5.0, **{f"same {number}": 0.0 for number in range(10)}})

    assert made == Ends(("common",), ("rare",), pool=12)


def test_one_value_does_not_fill_an_end() -> None:
    """A war with forty inventions takes a quarter of an end; the rest of them are told as crowded out."""
    wars = {f"war 1, invention {number}": ("war 1", number) for number in range(40)}
    other = {f"war {number}, wheel {number}": (f"war {number}", f"wheel {number}") for number in range(2, 22)}
    values: dict[str, tuple[object, ...]] = {**wars, **other}
    made = split({text: float(place) for place, text in enumerate(values)}, values)

    assert Counter(values[text][0] for text in made.long_tail) == {"war 1": 5}
    assert len(made.head) == 20
    assert made.crowded == tuple(wars)[5:20]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=12, unique=True))
def test_quotas_on_a_tiny_pool_empty_no_end(rows: list[tuple[int, int]]) -> None:
    """However few statements and values there are, each end keeps its most extreme statement, and what leaves is told."""
    values: dict[str, tuple[object, ...]] = {f"{row[0]}, {row[1]}": row for row in rows}
    made = split({text: float(place) for place, text in enumerate(values)}, values)
    size = max(1, len(rows) // 3)
    order = list(values)

    assert (made.head[0], made.long_tail[0]) == (order[-1], order[0])
    assert len(made.head) + len(made.long_tail) + len(made.crowded) == 2 * size
    for end in (made.head, made.long_tail):
        assert len(end) >= min(2, size)


def test_pair_rarity_is_asked_of_common_names() -> None:
    """By `pair`, only statements with the commoner half of the names are divided."""
    priors = {"oslo": -3.0, "paris": -1.0, "apia": -9.0, "rome": -2.0}
    measures = {name: TextMeasures({Measure.PRIOR: prior, Measure.PAIR: 0.0}, 1) for name, prior in priors.items()}
    scores = {"oslo": 0.0, "paris": 1.0, "apia": 5.0, "rome": -1.0}
    values = {name: (name,) for name in priors}
    made = divided(scores, values, measures, lambda _: 0.5, EndSize(by_pairs=True))

    assert (made.head, made.long_tail, made.pool) == (("paris",), ("rome",), 2)


HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
VERDICTS = st.tuples(
    st.integers(0, 5), st.sampled_from(["parser", "agreement", "type", "critic"]), st.booleans(), st.floats(0, 1)
)


@given(st.lists(VERDICTS, max_size=12), st.integers(0, 3))
def test_any_decisions_add_up(verdicts: list[tuple[int, str, bool, float]], unjudged: int) -> None:
    """Whatever the gates decide on whatever candidates, no line is lost or counted twice, also by a stored account."""
    pairs = []
    for number, gate, accepted, score in verdicts:
        candidate = Candidate("question", f"value{number}", f"{number}. value{number}", "call", number)
        decision = Decision("run", gate, candidate.id, accepted and gate != "parser", score, 0.9, "reason 7")
        pairs.append((candidate, decision))
    step = StepAccount(1, "Food A", "model")
    step.add(question_account(2, pairs, unjudged, 0))

    assert step.lines == len({candidate.id for candidate, _ in pairs}) + unjudged
    assert step.lines == step.dropped_count + step.unjudged + step.rejected + step.accepted
    assert StepAccount.from_json(step.to_json()) == step


FIRST = StepAccount(1, "Dish D", "model", questions=1, calls=1)
SECOND = StepAccount(2, "Dish D", "model")
REMARKS = {"is a remark": DroppedLines(2, "")}
CUT_OFF = {"is cut off": DroppedLines(2, "pi"), "is a remark": DroppedLines(1, "")}
REPEAT = {"repeats line N": DroppedLines(1, "pizza")}
BY_CRITIC, BY_TYPE = GateLoss(1, 0.4, 0.85), GateLoss(1, 0.8, 0.85)
UNLIKELY = GateLoss(1, 0.29, 0.85)


@pytest.mark.parametrize(
    ("step", "fact", "remedy"),
    [
        (replace(FIRST, calls=2), "2 calls", "--calls"),
        (replace(FIRST, lines=1, dropped=REPEAT), "1 line", "--temperature"),
        (replace(FIRST, lines=3, unjudged=2, losses={"critic": BY_CRITIC}), "unjudged", "higher budget"),
        (replace(FIRST, lines=2, unjudged=1, losses={"critic": BY_CRITIC}), "critic", "--fact-threshold 0.4"),
        (replace(FIRST, lines=4, dropped=CUT_OFF, losses={"type": BY_TYPE}), "3 of 4 lines", "--values"),
        (replace(FIRST, lines=2, losses={"type": BY_TYPE}), "type", "--type-threshold 0.8"),
        (replace(FIRST, lines=2, dropped=REMARKS, listable=True), "2 of 2 lines", "--plan premise-first"),
        (replace(FIRST, lines=2, dropped=REMARKS), "2 of 2 lines", "--knowledge"),
        (replace(FIRST, lines=1, losses={"agreement": GateLoss(1)}), "samples", "--temperature"),
        (replace(FIRST, lines=2, losses={"agreement": GateLoss(2)}, listable=True), "samples", "--plan premise-first"),
        (replace(FIRST, lines=1, losses={"critic": UNLIKELY}), "0.29", "--knowledge or --critic"),
        (replace(FIRST, lines=1, losses={"consistency": GateLoss(1)}), "consistency", "--knowledge"),
        (replace(SECOND, origin="given"), "no fact", "hapax import"),
        (replace(SECOND, origin="derived"), "no fact", "hapax why-not"),
        (replace(SECOND, origin="computed"), "no fact", "equation"),
        (replace(SECOND, extended=1, kept=1), "Prolog derives no statement", "hapax why-not"),
        (replace(SECOND, extended=3, unranked=2), "likelihood", "--likelihood"),
        (
            replace(SECOND, extended=4, failed={"q": PremiseLoss(1, "given"), "p": PremiseLoss(2, "critic", 0.8)}),
            "2 of 4 substitutions fail p",
            "--fact-threshold 0.8",
        ),
        (replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "given")}), "fails q", "hapax import"),
        (replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "computed")}), "fails q", "--beam"),
    ],
)
def test_the_last_step_names_its_commonest_loss_and_a_remedy(step: StepAccount, fact: str, remedy: str) -> None:
    """Where values ran out is said of the last step: most of its lines, values or substitutions, and what helps."""
    before = StepAccount(1, "Person X", "given", extended=1, kept=1)
    with worded_for(CommandLine()):
        lost = shortage([before, step])
        worded = "" if lost is None else str(lost.remedy)

    assert lost is not None
    assert fact in lost.fact
    assert remedy in worded
    assert str(lost).startswith(f"Step {step.step}, Dish D: ")


def test_a_compatible_search_has_to_be_left_for_another_threshold() -> None:
    """A threshold is no option of a search with --compat, so the remedy leaves that out."""
    lost = replace(FIRST, lines=1, losses={"critic": BY_CRITIC})

    with worded_for(CommandLine()):
        assert "no --compat and --fact-threshold 0.4" in str(shortage([lost], "released"))


@given(st.lists(st.lists(st.integers(0, 100).map(lambda p: p / 100), max_size=4), max_size=4))
def test_a_threshold_falls_at_the_end_to_the_best_step_but_not_below_the_floor(batches: list[list[float]]) -> None:
    """Nothing accepted so far: all that reach the highest step that any reaches; never anything below the floor."""
    gates = QuestionGates()
    for number, batch in enumerate(batches):
        gates.add({Candidate("q", f"{number}.{i}", "", "call", i): {CRITIC.name: p} for i, p in enumerate(batch)})
    before, scores = list(gates.accepted), [score for batch in batches for score in batch]
    gates.end()
    accepted = [gates.scores[candidate][CRITIC.name] for candidate in gates.accepted]

    if before:
        assert gates.accepted == before
    else:
        assert bool(accepted) == any(score >= FACT_FLOOR for score in scores)
        assert all(max(scores) - score <= 0.05 for score in accepted)
