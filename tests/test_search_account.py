"""The account of a search: where values are lost, what helps, the thresholds as options, and ties at the cut."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import EVERY_END, invoke
from hypothesis import given
from hypothesis import strategies as st

import hapax
from hapax.engine.search.account import (
    EXAMPLE_WIDTH,
    DistributionCut,
    DroppedLines,
    GateLoss,
    PremiseLoss,
    QuestionAccount,
    StepAccount,
    cut_text,
    equal_scores,
    excerpt,
    question_account,
    shortage,
    step_text,
)
from hapax.engine.search.gates import CRITIC, QuestionGates
from hapax.engine.search.job import SearchJob
from hapax.engine.search.ranking import keep_count, kept, kept_at_ends, random_score
from hapax.engine.search.report import RuleReport, SearchReport
from hapax.engine.search.search import search
from hapax.engine.search.settings import SearchSettings
from hapax.engine.search.thresholds import FACT_FLOOR, CriticRule
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.kb.records import Candidate, Decision, Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Models,
)
from hapax.llm_oracle.scripted import ScriptedModel

RULES = """
oracle is_in(Food, Dish): "[1] is in [2]" / "[1] is not in [2]" / "is [1] in [2]?".
functional was_first_cooked_in(Dish, Year): "[1] was first cooked in [2]" / "[1] was not first cooked in [2]" / "?".
given is_allergic_to(Person, Food): "[1] is allergic to [2]" / "[1] is not allergic to [2]" / "is [1] allergic to [2]?".
given cannot_eat(Person, Dish): "[1] cannot eat [2]" / "[1] can eat [2]" / "can [1] not eat [2]?".
@name allergy
is_allergic_to(Person X, Food A) & is_in(Food A, Dish B) -> cannot_eat(Person X, Dish B).
"""
OLD_DISH = """
@name old_dish
is_allergic_to(Person X, Food A) & is_in(Food A, Dish B) & was_first_cooked_in(Dish B, Year Y) & Y < 1900
  & not is_in(Food C, Dish B) & is_in(Food C, Dish D) -> cannot_eat(Person X, Dish D).
"""
HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
FOODS = [f"food{number}" for number in range(8)]


class Noise:
    """A model whose replies, P(yes) and likelihoods are noise, but the same for the same request."""

    def __init__(self, seed: int) -> None:
        self.identity = ModelIdentity("noise", str(seed))
        self._seed = seed

    def generate(
        self,
        requests: Sequence[GenerationRequest],
        parameters: GenerationParameters,
    ) -> list[Generation]:
        return [Generation(self._reply(request)) for request in requests]

    def _reply(self, request: GenerationRequest) -> str:
        chance = random.Random(repr((self._seed, request.prompt, request.sample_index, request.excluded_values)))
        words = ["salt", "rye/oat", "a, b, c", "x" * 80, "1850", "1950", "salt", "\x1b[31mred", *FOODS]
        lines = [f"{number}. {chance.choice(words)}." for number in range(1, chance.randint(1, 8))]
        return "\n".join(lines)

    def _number(self, text: str) -> float:
        return random_score(self._seed, text)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [CriticScore(round(0.5 + self._number(claim) / 2, 2)) for claim in claims]

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        return [LogLikelihood(-round(4 * self._number(text)), 1) for text in texts]


def searched(
    model: Noise | ScriptedModel, kb: KnowledgeBase | None = None, calls: int | None = None, **options: object
) -> SearchReport:
    """A search of both rules; `calls`: budget of the knowledge model."""
    library = parse_library([("food.rules", RULES + OLD_DISH)])
    kb = kb or KnowledgeBase()
    journal = None if calls is None else Journal(kb, Budget(max_calls=calls, roles=frozenset({"knowledge"})))
    settings = SearchSettings(**{"beam": 6, "values_per_call": 8, **options})  # type: ignore[arg-type]
    return search(SearchJob(library, library.rules, kb, Models(model, model, model, model), settings, journal))


def scripted(critic: float, **more: object) -> ScriptedModel:
    return ScriptedModel({"defaults": {"generate": FOODS, "critic": critic, "likelihood": -4}, **more})


def accounts(report: SearchReport) -> list[list[dict[str, object]]]:
    return [[step.to_json() for step in rule.account] for rule in report.rules]


# --- the account ------------------------------------------------------------------------------------------------------


def assert_adds_up(step: StepAccount) -> None:
    assert step.lines == step.dropped_count + step.repeated + step.unjudged + step.judged
    assert step.judged == step.rejected + step.accepted
    assert step.extended == step.failed_count + step.unranked + step.cut + step.kept


@pytest.mark.parametrize("seed", range(6))
def test_the_numbers_of_a_step_add_up_and_a_replay_has_the_same(seed: int) -> None:
    """Lines are dropped or judged, values rejected or accepted, substitutions lost or kept; stored answers repeat it."""
    kb = KnowledgeBase()
    first = searched(Noise(seed), kb)
    steps = [step for rule in first.rules for step in rule.account]

    assert sum(step.lines for step in steps) > 20
    for step in steps:
        assert_adds_up(step)
        assert StepAccount.from_json(json.loads(json.dumps(step.to_json()))) == step
    assert accounts(searched(Noise(seed), kb)) == accounts(first)


@pytest.mark.parametrize("seed", range(3))
def test_a_resumed_search_has_the_account_of_an_undisturbed_one(seed: int) -> None:
    """Cut by a budget the numbers still add up; after the resumption they are those of a search without a budget."""
    kb = KnowledgeBase()
    cut = searched(Noise(seed), kb, calls=5)
    for rule in cut.rules:
        for step in rule.account:
            assert_adds_up(step)

    resumed, undisturbed = searched(Noise(seed), kb), searched(Noise(seed))

    assert cut.status == "budget"
    assert accounts(resumed) == accounts(undisturbed)
    assert [statement.text for statement in resumed.statements] == [s.text for s in undisturbed.statements]


VERDICTS = st.tuples(
    st.integers(0, 5), st.sampled_from(["parser", "agreement", "type", "critic"]), st.booleans(), st.floats(0, 1)
)


@given(st.lists(VERDICTS, max_size=12), st.integers(0, 3))
def test_any_decisions_add_up(verdicts: list[tuple[int, str, bool, float]], unjudged: int) -> None:
    """Whatever the gates decide on whatever candidates, no line is lost or counted twice."""
    pairs = []
    for number, gate, accepted, score in verdicts:
        candidate = Candidate("question", f"value{number}", f"{number}. value{number}", "call", number)
        decision = Decision("run", gate, candidate.id, accepted and gate != "parser", score, 0.9, "reason 7")
        pairs.append((candidate, decision))
    step = StepAccount(1, "Food A", "model")
    account = question_account(2, pairs, unjudged, 0)
    step.add(account)

    assert step.lines == len({candidate.id for candidate, _ in pairs}) + unjudged
    assert step.lines == step.dropped_count + step.unjudged + step.rejected + step.accepted


@pytest.mark.parametrize(("foods", "told"), [((), ""), (("leek", "salt"), ", 2 given values")])
def test_a_step_tells_how_many_values_were_given(foods: Sequence[str], told: str) -> None:
    """Values by given facts stand beside the accepted ones, and nothing stands there without any."""
    library, model = parse_library([("food.rules", RULES)]), scripted(0.9)
    with KnowledgeBase() as kb:
        kb.add_facts([FactRecord("is_in", (food, "soup"), ("Food", "Dish"), Source.GIVEN) for food in foods])
        report = search(SearchJob(library, library.rules, kb, Models(model, model, model, model), SearchSettings()))

    first, _ = report.rules[0].account
    assert f"8 accepted values{told}; {8 + len(foods)} substitutions" in step_text(first)


def test_an_example_line_is_short_and_obeys_nobody() -> None:
    """A dropped line is quoted without control characters and cut; reasons that differ by a number are one reason."""
    pairs = []
    for number in range(3):
        raw = f"{number}. \x1b[31m\u202e" + "evil " * 50
        candidate = Candidate("question", "", raw, "call", number, f"has {number + 70} characters")
        reason = candidate.rejected_by_parser or ""
        pairs.append((candidate, Decision("run", "parser", candidate.id, False, None, None, reason)))
    ((reason, lines),) = question_account(1, pairs, 0, 0).dropped.items()

    assert (reason, lines.count) == ("has N characters", 3)
    assert lines.example.isprintable()
    assert len(lines.example) <= EXAMPLE_WIDTH
    assert lines.example.startswith("0. [31m evil")


# --- where values run out ---------------------------------------------------------------------------------------------


def test_a_modest_critic_gets_somewhere() -> None:
    """P(yes) of .74 everywhere gives statements by default, as far as the floor allows, and none under LINK's rules."""
    assert {rule.rule for rule in searched(scripted(0.74)).rules if not rule.is_empty} == {"allergy"}
    assert searched(scripted(FACT_FLOOR), beam=4).statements
    assert not searched(scripted(FACT_FLOOR - 0.01)).statements
    assert not searched(scripted(0.74), compat="paper").statements


def test_a_critic_of_noise_floods_nothing() -> None:
    """Half of the values of a critic that answers anything between .5 and 1 stay below the floor or the threshold."""
    steps = [step for rule in searched(Noise(1), beam=30).rules for step in rule.account]
    judged, accepted = (sum(getattr(step, name) for step in steps) for name in ("judged", "accepted"))

    assert accepted < judged / 2


def test_the_remedy_for_low_probabilities_is_a_threshold_and_costs_no_call() -> None:
    """Each remedy that an empty rule names is followed; the last brings statements from the stored answers alone."""
    model, kb = scripted(0.6), KnowledgeBase()
    first = searched(model, kb)
    assert "highest P(yes) 0.60, threshold 0.65" in str(first.rules[0].shortage())
    assert "--type-threshold 0.6;" in str(first.rules[0].shortage())

    rule = CriticRule.parse("0.6")
    second = searched(model, kb, type_threshold=rule)
    assert "critic gate (highest P(yes) 0.60, threshold 0.70)" in str(second.rules[0].shortage())
    assert "--fact-threshold 0.6;" in str(second.rules[0].shortage())
    assert "no --compat and --fact-threshold 0.6." in str(second.rules[0].shortage("paper"))

    third = searched(model, kb, type_threshold=rule, fact_threshold=rule)
    assert third.rules[0].shortage() is None
    assert third.statements
    assert third.rules[0].calls == 0


@pytest.mark.parametrize(
    ("script", "fact", "remedy"),
    [
        ({"defaults": {"generate": "", "critic": 1.0, "likelihood": -4}}, "2 calls have no line", "--calls"),
        (
            {"defaults": {"generate": "Here is a list:\nI cannot help with that.", "critic": 1.0, "likelihood": -4}},
            '2 of 2 lines hold no value (1 time: is a remark, not a value, as in "Here is a list:")',
            "--knowledge",
        ),
        ({"defaults": {"generate": FOODS, "critic": 0.2, "likelihood": -4}}, "highest P(yes) 0.20", "--critic"),
    ],
)
def test_an_empty_rule_names_the_first_remedy(script: dict[str, object], fact: str, remedy: str) -> None:
    """Nothing proposed, nothing readable, nothing believed: each has its own fact and remedy."""
    lost = searched(ScriptedModel(script)).rules[0].shortage()

    assert lost is not None
    assert fact in lost.fact
    assert remedy in lost.remedy


COMES_FROM = """
functional comes_from(Dish, Country): "[1] comes from [2]" / "[1] does not come from [2]" / "does [1] come from [2]?".
@name abroad
eats_in(Person X, Country A) & comes_from(Dish B, Country A) -> can_try(Person X, Dish B).
"""


class Wavering(Noise):
    """A model that lists dishes of a country, but names another country of a dish in each sample."""

    def _reply(self, request: GenerationRequest) -> str:
        if request.prompt.startswith("Name the country"):
            return f"Country{request.sample_index} {request.prompt[-60:-50]!r}".replace("'", "")
        kind = "Country" if "of a country" in request.prompt else "Dish"
        return "\n".join(f"{number}. {kind} {number}{chr(96 + number)}" for number in range(1, 5))

    def _number(self, text: str) -> float:
        return 1.0 if text.endswith(".") else random_score(self._seed, text)


def test_samples_that_differ_have_another_order_as_remedy() -> None:
    """Where a single right value is asked for and samples differ, the remedy is the order that asks for lists."""
    library, model = parse_library([("food.rules", COMES_FROM)]), Wavering(1)

    def report(**options: Any) -> RuleReport:
        settings = SearchSettings(beam=4, values_per_call=4, profile="plain", **options)
        models = Models(model, model, model, model)
        return search(SearchJob(library, library.rules, KnowledgeBase(), models, settings)).rules[0]

    assert "samples of one question differ. Search with --plan premise-first" in str(report().shortage())
    assert not report(plan="premise-first").is_empty


def test_a_premise_that_fails_everywhere_is_named() -> None:
    """Where values are accepted but a comparison excludes them all, the account names the comparison."""
    script = {"generate": {"first cooked": ["1950"]}, "defaults": {"generate": FOODS, "critic": 1.0, "likelihood": -4}}
    old_dish = searched(ScriptedModel(script)).rules[1]

    assert old_dish.is_empty
    assert "fail Year Y < 1900" in str(old_dish.shortage()) or "fail Y < 1900" in str(old_dish.shortage())


def test_an_account_without_steps_says_nothing() -> None:
    """A rule whose search recorded nothing has no shortage, and a ranker of no text is not blamed."""
    assert shortage([]) is None
    assert equal_scores([]) is None


FIRST = StepAccount(1, "Dish D", "model", questions=1, calls=1)
SECOND = StepAccount(2, "Dish D", "model")
REMARKS = {"is a remark": DroppedLines(2, "")}
CUT_OFF = {"is cut off": DroppedLines(2, "pi"), "is a remark": DroppedLines(1, "")}
REPEAT = {"repeats line N": DroppedLines(1, "pizza")}
BY_CRITIC = GateLoss(1, 0.4, 0.85)
BY_TYPE = GateLoss(1, 0.8, 0.85)
JUDGED_AGAIN = "stored answers are judged again without a call."
PREMISE_FIRST = "Search with --plan premise-first, which asks for lists where this order needs one right answer."
WHY_NOT = "Choose another model with --knowledge; `hapax why-not` shows its replies."


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            replace(FIRST, calls=2),
            "the replies of 2 calls have no line. Raise --calls, or choose another model with --knowledge.",
        ),
        (
            replace(FIRST, lines=1, dropped=REPEAT),
            "1 line repeats a value that the question has, and no other line came. "
            "Raise --temperature, or choose another model with --knowledge.",
        ),
        (
            replace(FIRST, lines=3, unjudged=2, losses={"critic": BY_CRITIC}),
            "the budget left its values unjudged. Run the same command with a higher budget.",
        ),
        (
            replace(FIRST, lines=2, dropped=REPEAT, unjudged=1),
            "the budget left its values unjudged. Run the same command with a higher budget.",
        ),
        (
            replace(FIRST, lines=2, unjudged=1, losses={"critic": BY_CRITIC}),
            "1 of 1 value was rejected by the critic gate (highest P(yes) 0.40, threshold 0.85). "
            f"Search with --fact-threshold 0.4; {JUDGED_AGAIN}",
        ),
        (
            replace(FIRST, lines=4, dropped=CUT_OFF, losses={"type": BY_TYPE}),
            '3 of 4 lines hold no value (2 times: is cut off, as in "pi"). '
            "Ask for fewer values in a call with --values.",
        ),
        (
            replace(FIRST, lines=4, dropped=REMARKS, losses={"type": replace(BY_TYPE, count=2)}),
            "2 of 2 values were rejected by the type gate (highest P(yes) 0.80, threshold 0.85). "
            f"Search with --type-threshold 0.8; {JUDGED_AGAIN}",
        ),
        (
            replace(FIRST, lines=2, dropped=REMARKS, listable=True),
            f"2 of 2 lines hold no value (2 times: is a remark). {PREMISE_FIRST}",
        ),
        (replace(FIRST, lines=2, dropped=REMARKS), f"2 of 2 lines hold no value (2 times: is a remark). {WHY_NOT}"),
        (
            replace(FIRST, lines=2, losses={"agreement": GateLoss(1), "type": BY_TYPE}),
            "1 of 2 values was rejected by the type gate (highest P(yes) 0.80, threshold 0.85). "
            f"Search with --type-threshold 0.8; {JUDGED_AGAIN}",
        ),
        (
            replace(FIRST, lines=1, losses={"agreement": GateLoss(1)}),
            "1 value was rejected because samples of one question differ. "
            "Lower --temperature, or choose another model with --knowledge.",
        ),
        (
            replace(FIRST, lines=2, losses={"agreement": GateLoss(2)}, listable=True),
            f"2 values were rejected because samples of one question differ. {PREMISE_FIRST}",
        ),
        (
            replace(FIRST, lines=4, dropped=REPEAT, losses={"type": BY_TYPE, "critic": GateLoss(2, 0.3, 0.85)}),
            "2 of 3 values were rejected by the critic gate (highest P(yes) 0.30, threshold 0.85). "
            f"Search with --fact-threshold 0.3; {JUDGED_AGAIN}",
        ),
        (
            replace(FIRST, lines=1, losses={"critic": GateLoss(1, 0.29, 0.85)}),
            "1 of 1 value was rejected by the critic gate (highest P(yes) 0.29, threshold 0.85). "
            "Look at the values with `hapax why-not`, and choose another model with --knowledge or --critic.",
        ),
        (
            replace(FIRST, lines=1, losses={"consistency": GateLoss(1)}),
            "1 of 1 value was rejected by the consistency gate. Choose another model with --knowledge.",
        ),
        (
            replace(SECOND, origin="given"),
            "no fact gives it a value. Add facts to a rule file, or with `hapax import`.",
        ),
        (
            replace(SECOND, origin="derived"),
            "no fact gives it a value. Look for the premise that fails with `hapax why-not`.",
        ),
        (replace(SECOND, origin="computed"), "no fact gives it a value. Check the equation that computes it."),
        (
            replace(SECOND, extended=1, kept=1),
            "1 substitution went through all steps, but Prolog derives no statement from them. "
            "Run `hapax why-not` on a conclusion that should hold.",
        ),
        (
            replace(SECOND, extended=3, unranked=2, failed={"p": PremiseLoss(1, "given")}),
            "the likelihood model scored none of 3 substitutions. "
            "Choose another model with --likelihood; `hapax stats` shows what this one refused.",
        ),
        (
            replace(SECOND, extended=1, unranked=0),
            "the likelihood model scored none of 1 substitution. "
            "Choose another model with --likelihood; `hapax stats` shows what this one refused.",
        ),
        (
            replace(
                SECOND,
                extended=4,
                unranked=2,
                failed={"q": PremiseLoss(1, "given"), "p": PremiseLoss(2, "critic", 0.8)},
            ),
            "2 of 4 substitutions fail p; the highest P(yes) is 0.80. "
            f"Search with --fact-threshold 0.8; {JUDGED_AGAIN}",
        ),
        (
            replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "given")}),
            "1 of 1 substitution fails q. Add facts with `hapax import`, or look at the premise with `hapax why-not`.",
        ),
        (
            replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "computed", 0.8)}),
            "1 of 1 substitution fails q. Raise --calls, --values or --beam for more values to compare.",
        ),
        (
            replace(SECOND, extended=1, failed={"q": PremiseLoss(1, "critic")}),
            "1 of 1 substitution fails q. Raise --calls or --beam for more values, "
            "or look at the premise with `hapax why-not`.",
        ),
    ],
)
def test_the_last_step_tells_its_commonest_loss_and_a_remedy(step: StepAccount, words: str) -> None:
    """Where values ran out is told by the last step: most of its lines, values or substitutions, and what helps."""
    before = StepAccount(1, "Person X", "given", extended=1, kept=1)

    assert str(shortage([before, step])) == f"Step {step.step}, Dish D: {words}"


def test_a_compatible_search_has_to_be_left_for_another_threshold() -> None:
    """A threshold is no option of a search with --compat, so the remedy leaves that out."""
    lost = replace(FIRST, lines=1, losses={"critic": BY_CRITIC})

    assert str(shortage([lost], "released")).endswith("Search with no --compat and --fact-threshold 0.4.")


def test_a_step_tells_each_loss_with_its_number() -> None:
    """A step in words counts questions, lines, values and substitutions, and leaves out what did not happen."""
    step = replace(
        FIRST,
        questions=2,
        lines=9,
        dropped={**CUT_OFF, **REPEAT},
        unjudged=1,
        losses={"type": BY_TYPE, "consistency": GateLoss(1)},
        accepted=2,
        given=1,
        extended=6,
        failed={"p": PremiseLoss(1, "critic"), "q": PremiseLoss(2, "given")},
        unranked=1,
        cut=1,
        kept=1,
    )

    assert step_text(step) == (
        'step 1, Dish D: 2 questions, 1 call, 9 different lines, 3 dropped (2 times: is cut off, as in "pi"), 1 repeat, '
        "1 not judged within the budget, 1 rejected by the type gate (highest P(yes) 0.80, threshold 0.85), "
        "1 rejected by the consistency gate, 2 accepted values, 1 given value; 6 substitutions, 1 fails p, 2 fail q, "
        "1 without a likelihood, 1 cut, 1 kept"
    )
    assert step_text(replace(SECOND, origin="given", extended=1, kept=1)) == (
        "step 2, Dish D: values are given; 1 substitution, 0 cut, 1 kept"
    )
    assert (step.judged, step.rejected, step.failed_count) == (4, 2, 3)


def test_losses_of_a_step_add_up_and_are_stored() -> None:
    """Failures of one premise are one entry, a premise without failures is none, and a stored step is the same."""
    step = replace(SECOND, failed={})
    step.fail("p", PremiseLoss(2, "critic", 0.4))
    step.fail("p", PremiseLoss(1, "critic", 0.5))
    step.fail("q", PremiseLoss(0, "given"))
    step.add(QuestionAccount(calls=2, lines=3))

    assert step.failed == {"p": PremiseLoss(3, "critic", 0.5)}
    assert step.loss("type") == GateLoss(0)
    assert (step.questions, step.calls, step.lines) == (1, 2, 3)
    stored = step.to_json()
    assert StepAccount.from_json(stored) == step
    del stored["listable"]  # as earlier versions stored it
    assert StepAccount.from_json(stored) == step


def test_a_loss_is_told_with_its_score_only_where_it_has_a_threshold() -> None:
    """A gate that compares no score has none in the line of its step."""
    for highest, threshold in ((0.5, None), (None, 0.5), (None, None)):
        text = step_text(replace(FIRST, lines=1, losses={"type": GateLoss(1, highest, threshold)}))
        assert "1 rejected by the type gate, 0 accepted values" in text


def test_equally_many_unranked_and_failed_substitutions_tell_the_failure() -> None:
    """The premise is named unless the likelihood model left more substitutions without a score."""
    lost = replace(SECOND, extended=2, unranked=1, failed={"p": PremiseLoss(1, "given")})

    assert "1 of 2 substitutions fails p" in str(shortage([lost]))


def test_an_example_is_cut_at_its_width() -> None:
    """A line of 60 characters is shown whole; of a longer one the first 59 with a sign that there is more."""
    assert excerpt("x" * EXAMPLE_WIDTH) == "x" * EXAMPLE_WIDTH
    assert excerpt("x" * (EXAMPLE_WIDTH + 1)) == "x" * (EXAMPLE_WIDTH - 1) + "…"


def test_a_cut_tells_the_width_of_each_distribution() -> None:
    """The cut of a step counts the values before and after it; without a model they are the first that came."""
    cuts = {"head": DistributionCut(7_836, 200, -2.5), "long_tail": DistributionCut(7_836, 200, -9.0)}
    ranked = replace(SECOND, cut=7_436, kept=400, cuts=cuts)

    assert cut_text(ranked) == "step 2, Dish D: 7,836 values ranked, 400 kept (head 200, long tail 200)"
    assert cut_text(replace(ranked, cuts={"random": DistributionCut(9, 4)}, cut=5, kept=4)) == (
        "step 2, Dish D: the first of 9 values, 4 kept"
    )
    assert cut_text(replace(ranked, cut=0)) == ""


# --- thresholds as options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0.75", CriticRule(0.75, floor=0.75, fixed=True)),
        ("floor=0.5", CriticRule(floor=0.5, falls_at_end=True)),
        ("start=0.6, cap=.9", CriticRule(0.6, floor=0.6, cap=0.9, falls_at_end=True)),
        ("cap=0.8,step=0.1", CriticRule(0.8, 0.1, FACT_FLOOR, 0.8, falls_at_end=True)),
        ("floor=0.9", CriticRule(0.9, floor=0.9, falls_at_end=True)),
    ],
)
def test_thresholds_are_read_as_they_are_written(text: str, rule: CriticRule) -> None:
    """A text states a fixed or a moving threshold, and what is written reads back as the same rule."""
    assert CriticRule.parse(text) == rule
    assert CriticRule.parse(str(rule)) == rule


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "x",
            "nan",
            "-0.1",
            "1.1",
            "floor=",
            "floor=x",
            "top=1",
            "step=0",
            "step=nan",
            "start=0.8=0.9",
            "0.8,0.9",
        ),
        *("start=0.5,start=0.6", "floor=0.9,start=0.8", "cap=0.5,start=0.6"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(text: str, tmp_path: Path) -> None:
    """Each faulty threshold is an error of usage that quotes it or its numbers."""
    with pytest.raises(HapaxError):
        CriticRule.parse(text)
    result = invoke("search", "--fact-threshold", text, "--db", tmp_path / "kb.db")

    assert result.exit_code == 2
    assert "--fact-threshold" in result.stderr
    assert not (tmp_path / "kb.db").exists()


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


def test_compat_refuses_thresholds_and_runs_remember_them() -> None:
    """LINK's modes have their own; the settings store given thresholds as texts, and none where none is given."""
    rule = CriticRule.parse("floor=0.5")
    with pytest.raises(HapaxError, match="LINK's own thresholds"):
        SearchSettings(compat="paper", fact_threshold=rule)
    with pytest.raises(HapaxError, match=r"CriticRule.parse\('0.75'\)"):
        SearchSettings(fact_threshold=0.75)  # type: ignore[arg-type]
    with pytest.raises(HapaxError, match="two caps"):
        SearchSettings(threshold_cap=0.9, fact_threshold=rule)
    result = invoke("search", "--compat", "released", "--type-threshold", "0.5")

    assert result.exit_code == 2
    assert "--type-threshold cannot go with --compat released" in result.stderr
    assert SearchSettings(fact_threshold=rule).to_json()["fact_threshold"] == str(rule)
    assert not {"fact_threshold", "type_threshold"} & set(SearchSettings().to_json())


def test_a_goal_is_asked_with_the_thresholds_of_its_options(tmp_path: Path) -> None:
    """`query --ask` accepts by --fact-threshold and --type-threshold, too."""
    rules, script = tmp_path / "food.rules", tmp_path / "script.json"
    rules.write_text(RULES, encoding="utf-8")
    script.write_text(json.dumps({"defaults": {"generate": FOODS, "critic": 0.5}}), encoding="utf-8")
    command = ("query", 'is_in("salt", Dish)', "--rules", rules, "--ask", "-m", f"scripted:{script}", "--json")

    low = invoke(*command, "--db", tmp_path / "kb.db", "--fact-threshold", "0.5", "--type-threshold", "0.5")
    usual = invoke(*command, "--db", tmp_path / "other.db")

    assert FOODS[0] in low.stdout
    assert FOODS[0] not in usual.stdout


# --- ties -------------------------------------------------------------------------------------------------------------

SCORES = st.dictionaries(st.text(max_size=3), st.sampled_from([-3.0, -2.0, -1.0]), max_size=12)


def chance(name: str) -> float:
    return random_score(0, name)


@given(SCORES, st.dictionaries(st.text(max_size=3), st.floats(-9, 0), max_size=6), st.integers(1, 6), st.randoms())
def test_ends_depend_on_the_beams_and_not_on_their_order(
    common: dict[str, float], more: dict[str, float], beam: int, rng: random.Random
) -> None:
    """Shuffled pools give the same ends, of the usual size, and no kept beam is worse than one that was cut."""
    pools = {HEAD: {**common, **more}, TAIL: common}
    shuffled = {end: dict(rng.sample(list(pool.items()), len(pool))) for end, pool in pools.items()}
    ends = kept_at_ends(pools, chance, 0.75, beam)

    assert {end: set(names) for end, names in kept_at_ends(shuffled, chance, 0.75, beam).items()} == {
        end: set(names) for end, names in ends.items()
    }
    for end, pool in pools.items():
        sign = 1 if end is HEAD else -1
        assert len(set(ends[end])) == keep_count(len(pool), 0.75, beam)
        cut = [sign * pool[name] for name in pool if name not in ends[end]]
        assert min((sign * pool[name] for name in ends[end]), default=0) >= max(cut, default=-99)


@given(st.dictionaries(st.text(max_size=3), st.floats(-9, 0), max_size=12), st.integers(1, 12))
def test_without_ties_the_ends_are_those_of_the_scores_alone(pool: dict[str, float], beam: int) -> None:
    """Different scores leave nothing to chance."""
    pool = dict(zip(pool, sorted(set(pool.values())), strict=False))
    names = list(pool)
    ends = kept_at_ends({HEAD: pool, TAIL: pool}, chance, 0.75, beam)

    for end in (HEAD, TAIL):
        places = kept([pool[name] for name in names], names, end, 0.75, beam)
        assert ends[end] == [names[place] for place in places]


@given(st.integers(0, 40), st.integers(1, 20), st.sampled_from([0.3, 0.5, 0.75]), st.booleans())
def test_no_tied_beam_goes_to_both_ends_while_there_are_others(
    count: int, beam: int, share: float, ranked_head: bool
) -> None:
    """Where all have one score, at one end or at both, the ends share only what the pool is too small to spare."""
    names = [f"beam{number}" for number in range(count)]
    head = {name: -float(place) if ranked_head else -1.0 for place, name in enumerate(names)}
    ends = kept_at_ends({HEAD: head, TAIL: dict.fromkeys(names, -1.0)}, chance, share, beam)
    common = set(ends[HEAD]) & set(ends[TAIL])

    assert len(common) == max(0, 2 * keep_count(count, share, beam) - count)


def test_another_seed_chooses_others() -> None:
    """Ties are a matter of the seed, not of the alphabet."""
    report, other = (searched(scripted(1.0), seed=seed, beam=4) for seed in (0, 1))

    def texts(found: SearchReport) -> set[str]:
        return {statement.text for statement in found.statements}

    assert texts(report) != texts(other)
    assert texts(report) == texts(searched(scripted(1.0), seed=0, beam=4))
    assert report.rules[0].in_both == 0
    assert report.rules[0].equal_scores is not None


# --- where people read it ---------------------------------------------------------------------------------------------


@pytest.fixture
def food(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A rule file, a script whose critic says .5 to everything, and the place of a knowledge base."""
    rules, script = tmp_path / "food.rules", tmp_path / "script.json"
    rules.write_text(RULES, encoding="utf-8")
    hostile = "1. <b>bold</b>/\x1b[31mred.\n" + "".join(f"{n}. {food}.\n" for n, food in enumerate(FOODS, 2))
    script.write_text(
        json.dumps({"defaults": {"generate": hostile, "critic": 0.5, "likelihood": -4}}), encoding="utf-8"
    )
    return rules, script, tmp_path / "kb.db"


def test_every_room_tells_where_values_ran_out(food: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """The closing output, its JSON, the HTML report, why-not and the Python API tell the same shortage."""
    rules, script, database = food
    command = ("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    closing, told = invoke(*command), json.loads(invoke(*command, "--json").stdout)
    page = tmp_path / "page.html"
    report = invoke("report", "--db", database, "--rules", rules, "-o", page)
    story = invoke("why-not", "cannot_eat(tom, salt)", "--rules", rules, "--db", database)
    with hapax.KnowledgeBase(database) as kb:
        result = hapax.search(hapax.load_rules(rules), kb, hapax.open_models(f"scripted:{script}"))
    fact = "8 of 8 values were rejected by the type gate (highest P(yes) 0.50, threshold 0.65)"

    assert report.exit_code == story.exit_code == 0
    assert fact in closing.stderr
    assert "passed the gates. Step 1, Food A: " in closing.stderr
    assert "--type-threshold 0.5" in closing.stderr
    assert "step 1, Food A: 1 question, 2 calls, 9 different lines, 1 dropped" in closing.stdout
    assert "\x1b" not in closing.stdout
    assert told["rules"][0]["account"][0]["losses"]["type"] == {"count": 8, "highest": 0.5, "threshold": 0.65}
    text = page.read_text("utf-8")
    assert fact in text
    assert "Account of each step" in text
    assert "<b>bold" not in text
    assert fact in story.stdout
    assert fact in result.shortages["allergy"]
    assert [step.to_json() for step in result.account] == told["rules"][0]["account"]
    row = dict(zip(result.account.columns, result.account.cells()[0], strict=True))
    assert (row["lines"], row["dropped"], row["below_type"], row["highest_type"]) == (9, 1, 8, 0.5)


def test_repeated_values_have_a_column(food: tuple[Path, Path, Path]) -> None:
    """Lines that repeat a value are counted apart from lines without one, on the screen, in JSON, the page and Python."""
    rules, script, database = food
    reply = "Sure, here is the list:\n1. salt\n2. Salt\n3. rye\n4. rye\n5. SALT"
    script.write_text(json.dumps({"defaults": {"generate": reply, "critic": 1.0, "likelihood": -4}}), encoding="utf-8")
    command = ("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    closing, told = invoke(*command, "--account"), json.loads(invoke(*command, "--json").stdout)
    page = database.parent / "page.html"
    invoke("report", "--db", database, "--rules", rules, "-o", page)
    with hapax.KnowledgeBase(database) as kb:
        account = hapax.search(hapax.load_rules(rules), kb, hapax.open_models(f"scripted:{script}")).account
    row = dict(zip(account.columns, account.cells()[0], strict=True))

    assert '1 dropped (1 time: introduces the list, as in "Sure, here is the list:"), 3 repeats' in closing.stdout
    assert told["rules"][0]["account"][0]["repeated"] == 3
    assert (row["lines"], row["dropped"], row["repeated"], row["accepted"]) == (6, 1, 3, 2)
    assert '<th scope="col" class="number">repeated</th>' in page.read_text("utf-8")


def test_account_prints_all_rules_on_demand(food: tuple[Path, Path, Path]) -> None:
    """A rule with statements has its account with --account only; a ranker that ties everything is named either way."""
    rules, script, database = food
    lenient = ("--fact-threshold", "0.5", "--type-threshold", "0.5")
    command = ("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress", *lenient, *EVERY_END)
    short, full = invoke(*command), invoke(*command, "--account")
    told = json.loads(invoke(*command, "--json").stdout)

    assert "Account of allergy" not in short.stdout
    assert "Account of allergy" in full.stdout
    for result in (short, full):
        assert "a score that another text has, too" in result.stderr
        assert "allergy: " in result.stderr
    equal, texts = told["rules"][0]["equal_scores"]
    assert equal == texts > 0


def test_a_report_of_a_run_without_an_account_is_written(food: tuple[Path, Path, Path], tmp_path: Path) -> None:
    """Searches of older versions stored no account: their report and stories are as they were."""
    rules, script, database = food
    invoke("search", rules, "-m", f"scripted:{script}", "--db", database, "--no-progress")
    with hapax.KnowledgeBase(database) as kb:
        run = kb.runs()[0]
        summary = dict(run.summary)
        summary["rules"] = [{k: v for k, v in line.items() if k != "account"} for line in summary["rules"]]
        kb.finish_run(run.id, "done", summary)
    page = tmp_path / "page.html"

    assert invoke("report", "--db", database, "--rules", rules, "-o", page).exit_code == 0
    assert "Account of each step" not in page.read_text("utf-8")
    assert "the last search" not in invoke("why-not", "cannot_eat(tom, x)", "--rules", rules, "--db", database).stdout


def test_losses_of_two_runs_keep_the_highest_score() -> None:
    """Added accounts count both losses and keep the highest P(yes) of either; a loss without a score takes none away."""
    judged, unjudged = PremiseLoss(2, "critic", 0.4), PremiseLoss(1, "critic")
    near, unscored = GateLoss(2, 0.4, 0.85), GateLoss(1)

    assert judged + unjudged == unjudged + judged == PremiseLoss(3, "critic", 0.4)
    assert unjudged + unjudged == PremiseLoss(2, "critic")
    assert judged + PremiseLoss(1, "critic", 0.6) == PremiseLoss(3, "critic", 0.6)
    assert near + unscored == unscored + near == GateLoss(3, 0.4, 0.85)


def test_a_step_that_lost_no_line_names_no_reason() -> None:
    """A step's line has reasons only where lines were dropped."""
    step = StepAccount(1, "Dish D", "model", questions=1, calls=2, lines=3, accepted=3, extended=3, kept=3)

    assert step_text(step).startswith("step 1, Dish D: 1 question, 2 calls, 3 different lines, 3 accepted values")
    assert "dropped" not in step_text(step)
    assert "1 dropped" in step_text(replace(step, dropped={"repeats a value": DroppedLines(1, "pizza")}))
