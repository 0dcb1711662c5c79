"""Instruction-only generation: the paper's prompts, replies of every kind, and statements that are no facts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_fixture import invoke
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from hapax.evaluation.link.baselines.instruct import (
    BUDGET,
    CALLS,
    COMPLETE,
    NO_ROWS,
    REPEATS,
    Instructed,
    InstructReport,
    InstructSettings,
    instruct,
)
from hapax.evaluation.link.baselines.rows import Drop, GeneratedRow, RowVariable, parse_rows, row_text, row_variables
from hapax.evaluation.link.baselines.session import wording_numbers
from hapax.evaluation.link.baselines.wording import rule_sentence
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.answers import parse_values
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.prompts import LONG_TAIL_WORDINGS, InstructionParts, instruction_prompt, read_instruction
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity
from hapax.llm_oracle.scripted import ScriptedModel

HEAD, TAIL = Distribution.HEAD, Distribution.LONG_TAIL
RULES = """
type Food Allergen < Object.
given is_allergic_to(Person, Food Allergen): "[1] is allergic to [2]" / "?" / "?".
oracle is_ingredient_in(Ingredient, Dish): "[1] is a ingredient in [2]" / "?" / "?".
oracle is_one_type_of(Ingredient, Food Allergen): "[1] is one type of [2]" / "?" / "?".
given is_not_able_to_eat(Person, Dish): "[1] is not able to eat [2]" / "?" / "?".
@name allergy
is_allergic_to(Person X, Food Allergen A) & is_ingredient_in(Ingredient Z, Dish B) & is_one_type_of(Ingredient Z, Food Allergen A)
  -> is_not_able_to_eat(Person X, Dish B).
"""
MEASURED = """
functional weighs(Animal, Kilograms): "the [1] weighs [2] kilograms" / "?" / "?".
type Kilograms < Number.
@name lifting
has_trouble_carrying(Person X, Animal A) & weighs(Animal A, Kilograms V) & weighs(Animal B, Kilograms W) & 2 * V < W & A \\= B
  -> cannot_carry(Person X, Animal B).
"""
ABZ = (RowVariable("A", "Food Allergen"), RowVariable("B", "Dish"), RowVariable("Z", "Ingredient"))
DEFAULT = "Give me 50 values"
LONG = "Use less frequent terms of A and B and Z. Give me 50 values"
FEW = InstructSettings(count=4, values_per_call=2)


def library_of(text: str = RULES) -> Library:
    return parse_library([("test.rules", text)])


class Listed:
    """Gives its replies in turn, for the head and for the long tail; remembers what it was asked."""

    def __init__(self, head: Sequence[str], tail: Sequence[str] = ("",), reason: str = "stop") -> None:
        self._replies = {HEAD: list(head), TAIL: list(tail)}
        self._reason = reason
        self.requests: list[GenerationRequest] = []

    @property
    def identity(self) -> ModelIdentity:
        return ModelIdentity("listed", "1")

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        self.requests += requests
        return [Generation(self._next(request), self._reason) for request in requests]

    def _next(self, request: GenerationRequest) -> str:
        replies = self._replies[TAIL if "Use " in request.prompt else HEAD]
        return replies.pop(0) if len(replies) > 1 else replies[0]


def measuring() -> ScriptedModel:
    return ScriptedModel({"defaults": {"likelihood": -10.0}})


def instructed(
    kb: KnowledgeBase, model: Any, settings: InstructSettings = FEW, journal: Journal | None = None
) -> InstructReport:
    library = library_of()
    return instruct(Instructed(library, library.rules, model, measuring()), kb, settings, journal or Journal(kb))


def rows(*triples: str) -> str:
    """`milk paneer butter` as a numbered row, and so on."""
    split = [one.split() for one in triples]
    return "\n".join(f"{number}. A={a}, B={b}, Z={z}" for number, (a, b, z) in enumerate(split, 1))


# -- prompts


def test_the_prompt_of_table_2_byte_for_byte() -> None:
    """The rule that table 2 prints gives the prompt that it prints, stray blanks of its typesetting closed."""
    library = library_of()
    variables = tuple((one.name, one.data_type) for one in row_variables(library.rules[0], library))
    named = {"Food Allergen": "Food allergen", "Dish": "Name of a dish or food"}
    told = tuple((name, named.get(data_type, data_type)) for name, data_type in variables)

    prompt = instruction_prompt(InstructionParts(told, rule_sentence(library.rules[0], library)))

    assert prompt == (
        "In the following sentence, A is a Food allergen, B is a Name of a dish or food, Z is a Ingredient. Find values "
        "of A, B, Z to fill in the blank in the sentence ‘If Person X is allergic to [A] and [Z] is a ingredient in [B] "
        "and [Z] is one type of [A], then Person X is not able to eat [B].’ and make it a grammatical and correct "
        "sentence. Give me 50 values in the format ‘1. A=, B=, Z=’."
    )


def test_the_released_prompt_byte_for_byte() -> None:
    """The released code joins variables by "and", quotes plainly, and asks for the long tail before the format."""
    parts = InstructionParts((("A", "allergen"), ("B", "dish")), "If [A], then [B].", 50, 1, released=True)

    assert instruction_prompt(parts) == (
        "In the following sentence, A is a allergen, B is a dish. Find values of A and B to fill in the blank in the "
        "sentence 'If [A], then [B].' and make it a grammatical and correct sentence. Use less frequent terms of A and "
        "B. Give me 50 values in the format '1. A=, B='."
    )


def test_the_ten_wordings_of_table_11_byte_for_byte() -> None:
    """They stand as the paper prints them."""
    assert [one.format(terms="A and B and Z") for one in LONG_TAIL_WORDINGS] == [
        "Use less frequent terms of A and B and Z.",
        "Use terms of A and B and Z that are less common.",
        "Use terms with lower frequency for A and B and Z.",
        "Use terms of A and B and Z that have lower probability in language model distribution.",
        "Use less frequent words of A and B and Z.",
        "Use words of A and B and Z that are less common.",
        "Use words with lower frequency for A and B and Z.",
        "Use less frequent entities of A and B and Z.",
        "Use entities of A and B and Z that are less common.",
        "Use entities with lower frequency for A and B and Z.",
    ]


@given(
    st.lists(st.tuples(st.sampled_from("ABCZ"), st.sampled_from(["Dish", "Food Allergen"])), min_size=1, unique=True),
    st.text(max_size=50),
    st.integers(1, 999),
    st.one_of(st.none(), st.integers(1, 10)),
    st.booleans(),
)
def test_an_instruction_is_read_back(
    variables: list[tuple[str, str]], words: str, count: int, wording: int | None, released: bool
) -> None:
    """Whatever stands in the sentence, the parts of an instruction are found again."""
    parts = InstructionParts(tuple(variables), words, count, wording, released)

    assert read_instruction(instruction_prompt(parts)) == parts


def test_comparisons_are_told_in_words() -> None:
    """A premise that calculates is told, too, so that a model is asked for the whole rule."""
    library = library_of(MEASURED)

    assert rule_sentence(library.rules[0], library) == (
        "If Person X has trouble carrying [A] and the [A] weighs [V] kilograms and the [B] weighs [W] kilograms and "
        "2 * [V] is less than [W] and [A] is not [B], then Person X cannot carry [B]."
    )


def test_wordings_are_named_by_number_paper_and_all() -> None:
    """`paper` is the first; each comes once, in order."""
    assert wording_numbers(["3", "paper", "3"]) == (1, 3)
    assert wording_numbers(["all"]) == tuple(range(1, 11))


# -- replies


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("1. A=milk, B=paneer, Z=butter", ("milk", "paneer", "butter")),
        ("12) A = milk; B = paneer; Z = butter.", ("milk", "paneer", "butter")),
        ("- **A**=milk, **B**=paneer, **Z**=butter", ("milk", "paneer", "butter")),
        ("Z=butter, A=milk, B=paneer", ("milk", "paneer", "butter")),
        ("1. A: milk, B: paneer, Z: butter", ("milk", "paneer", "butter")),
        ('1. A="milk", B=“paneer”, Z=butter (clarified)', ("milk", "paneer", "butter")),
        ("1. A=milk, B=Paris, France, Z=butter", ("milk", "Paris", "butter")),
    ],
)
def test_rows_are_read(line: str, values: tuple[str, ...]) -> None:
    """Spellings of a row that say the same are read the same; values are cleaned as a search cleans them."""
    assert [one.values for one in parse_rows(line, ABZ)] == [values]


@pytest.mark.parametrize(
    ("line", "drop", "reason"),
    [
        ("Sure! Here are 50 values:", Drop.NO_ROW, "has no A="),
        ("1. milk, paneer, butter", Drop.NO_ROW, "has no A="),
        ("1. A=milk, B=paneer", Drop.INCOMPLETE, "has no value for Z"),
        ("1. A=, B=paneer, Z=butter", Drop.INCOMPLETE, "has no value for A"),
        ("1. A=..., B=paneer, Z=butter", Drop.INCOMPLETE, "has no value for A"),
        ("1. A=milk, A=egg, B=paneer, Z=butter", Drop.INCOMPLETE, "has A twice"),
        ("1. A=[A], B=[B], Z=[Z]", Drop.UNUSABLE, "A names the variable A"),
        ("1. A=milk, B=dish, Z=butter", Drop.UNUSABLE, "B repeats the data type Dish"),
        ("1. A=milk/egg, B=paneer, Z=butter", Drop.UNUSABLE, "A names alternatives with a slash"),
        ("1. A=milk\u202e, B=paneer, Z=butter", Drop.UNUSABLE, "A holds a control character"),
        (f"1. A={'x' * 65}, B=paneer, Z=butter", Drop.UNUSABLE, "A has 65 characters, more than 64"),
        ("A=" * 5000, Drop.UNUSABLE, "A has 1002 characters, more than 64"),
    ],
)
def test_hostile_and_faulty_rows_are_dropped_with_a_reason(line: str, drop: Drop, reason: str) -> None:
    """No line raises, and none is half a statement."""
    (row,) = parse_rows(line, ABZ)

    assert (row.values, row.dropped, row.reason) == ((), drop, reason)


def test_a_number_is_asked_of_numeric_types() -> None:
    """A year that is no number drops its row; one that is comes as a number, also the list's own first one."""
    year = (RowVariable("A", "Dish"), RowVariable("Y", "Year", numeric=True))

    found = parse_rows("1. A=naan, Y=soon\n2. A=naan, Y=1\n3. A=naan, Y=1,200", year)

    assert [row.values for row in found] == [(), ("naan", 1), ("naan", 1200)]


def test_the_last_line_of_a_reply_that_was_cut_is_no_row() -> None:
    """Where the token limit ended a reply, its last value may be half a word."""
    reply = rows("milk paneer butter", "egg omelette yol")

    assert [one.dropped for one in parse_rows(reply, ABZ, cut=True)] == [None, Drop.CUT]
    assert [one.dropped for one in parse_rows(f"{reply}\n", ABZ, cut=True)] == [None, None]


def _is_value(text: str) -> bool:
    found = parse_values(f"1. {text}.", "A", "Food Allergen")
    ends = text.strip(" .,;|") != text
    marks = ends or any(f"{name}{sign}" in text.replace(" ", "") for name in "ABZ" for sign in "=:")
    return len(found) == 1 and found[0].value == text and found[0].rejected is None and not marks


VALUES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=20).filter(_is_value)


@given(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=5))
def test_rows_are_read_back(several: list[tuple[Value, ...]]) -> None:
    """Rows in the requested format are parsed back as they were, as far as a search would keep their values."""
    text = "\n".join(f"{number}. {row_text(ABZ, values)}" for number, values in enumerate(several, 1))

    for row, values in zip(parse_rows(text, ABZ), several, strict=True):
        if row.dropped is None:
            assert row.values == values
        else:
            assert row.dropped is Drop.UNUSABLE, row.reason  # `dish` as a dish


@given(st.text(), st.booleans())
def test_no_reply_raises(text: str, cut: bool) -> None:
    """Any text at all becomes rows and drops."""
    found = parse_rows(text, ABZ, cut)

    assert all(isinstance(row, GeneratedRow) and bool(row.values) == (row.dropped is None) for row in found)


# -- generation


def test_head_and_long_tail_are_asked_for_and_stored(fresh_kb: KnowledgeBase) -> None:
    """The default instruction gives the head, the wording the long tail; both are statements, and none is a fact."""
    model = Listed([rows("milk paneer butter", "egg omelette yolk")], [rows("milk quark whey")])

    report = instructed(fresh_kb, model, replace(FEW, count=2))

    head, tail = (report.of("allergy")[each] for each in (HEAD, TAIL))
    assert [statement.text for statement in head.statements] == [
        "If PersonX is allergic to milk, then PersonX is not able to eat paneer.",
        "If PersonX is allergic to egg, then PersonX is not able to eat omelette.",
    ]
    assert [dict(statement.substitution) for statement in tail.statements] == [{"A": "milk", "B": "quark", "Z": "whey"}]
    assert {statement.id for statement in fresh_kb.statements()} == {statement.id for statement in report.statements}
    assert fresh_kb.facts() == []
    assert fresh_kb.type_facts() == []
    (run,) = fresh_kb.runs()
    assert (run.command, run.status, run.summary["statements"]) == (
        "evaluate instruct",
        "done",
        {"head": 2, "long_tail": 1},
    )


def test_given_rows_are_excluded_from_later_calls(fresh_kb: KnowledgeBase) -> None:
    """Each call names what came before, and counts what comes again; the logit bias is for models that can."""
    model = Listed(
        [rows("milk paneer butter"), rows("Milk Paneer butter", "egg omelette yolk"), rows("nut pesto pine")]
    )

    report = instructed(fresh_kb, model, replace(FEW, count=3, bias=True))

    asked = [request for request in model.requests if "Use " not in request.prompt]
    assert [one.excluded_values for one in asked] == [
        (),
        ("A=milk, B=paneer, Z=butter",),
        ("A=milk, B=paneer, Z=butter", "A=egg, B=omelette, Z=yolk"),
    ]
    assert [one.banned_tokens_of for one in asked] == [(), (), ("Milk", "Paneer", "butter")]
    assert report.of("allergy")[HEAD].dropped == {Drop.REPEATED: 1}
    assert report.of("allergy")[HEAD].end == COMPLETE


@pytest.mark.parametrize(
    ("replies", "calls", "end"),
    [
        ([rows("milk paneer butter")], 3, REPEATS),
        (["I cannot help with that."], 2, NO_ROWS),
        ([""], 2, NO_ROWS),
        ([rows(f"milk dish{number} butter") for number in range(20)], 5, CALLS),
        ([rows(*(f"milk dish{number} butter" for number in range(20)))], 1, COMPLETE),
    ],
)
def test_a_model_is_asked_no_longer_than_it_helps(
    fresh_kb: KnowledgeBase, replies: list[str], calls: int, end: str
) -> None:
    """Two calls without a new row end it, as do the count that was wanted and the most calls."""
    stream = instructed(fresh_kb, Listed(replies), replace(FEW, count=10, calls=5)).of("allergy")[HEAD]

    assert (stream.calls, stream.end) == (calls, end)
    assert len(stream.statements) <= 10


def test_the_same_call_again_asks_nothing(fresh_kb: KnowledgeBase) -> None:
    """A second run replays the journal and stores the same; another wording asks for its long tail alone."""
    replies = [rows("milk paneer butter"), rows("egg omelette yolk")]
    first, second, other = (Listed(replies, replies) for _ in range(3))

    told = [instructed(fresh_kb, model, replace(FEW, count=2)) for model in (first, second)]
    third = instructed(fresh_kb, other, replace(FEW, count=2, wording=4))

    assert first.requests
    assert second.requests == []
    assert [one.statements for one in told[:1]] == [told[1].statements]
    assert len(fresh_kb.runs()) == 2
    assert {"lower probability in language model" in request.prompt for request in other.requests} == {True}
    assert third.of("allergy")[HEAD].calls == 0


def test_a_budget_keeps_what_was_answered(fresh_kb: KnowledgeBase) -> None:
    """Rules cut by the budget are marked, and the next run continues from there."""
    replies = [rows(f"milk dish{number} butter") for number in range(20)]
    cut = instructed(fresh_kb, Listed(replies), FEW, Journal(fresh_kb, Budget(max_calls=1)))
    whole = instructed(fresh_kb, Listed(replies[1:], replies))

    assert cut.budget
    assert cut.of("allergy")[TAIL].end == BUDGET
    assert fresh_kb.runs()[0].status == "done"
    assert whole.of("allergy")[HEAD].hits == 1
    assert len(whole.of("allergy")[HEAD].statements) == 4


def test_settings_that_make_no_instruction_are_refused() -> None:
    """Nonsense is refused with what there is."""
    with pytest.raises(HapaxError, match="1 to 10"):
        InstructSettings(wording=11)
    with pytest.raises(HapaxError, match="at least 1"):
        InstructSettings(count=0)


# -- the command


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Rules, and a model that writes two rows for the head and one for the long tail."""
    (tmp_path / "allergy.rules").write_text(RULES, encoding="utf-8")
    generate = {
        DEFAULT: rows("milk paneer butter", "egg omelette yolk"),
        LONG: rows("milk quark whey", "egg eggnog rum"),
    }
    claims = {"Butter is one type of milk.": 0.9, "Butter is a ingredient in paneer.": 0.9}
    told = {"generate": generate, "critic": claims, "defaults": {"likelihood": -12, "critic": 0.1}}
    path = tmp_path / "script.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return path


def evaluate_instruct(script: Path, *options: str) -> Result:
    folder = script.parent
    model = f"scripted:{script}"
    arguments = ["evaluate", "instruct", folder / "allergy.rules", "-m", model, "--evaluator", model]
    return invoke(*arguments, "--db", folder / "kb.db", *options)


def test_the_command_prints_rules_wordings_and_accuracy(script: Path) -> None:
    """Tables of ours come first, LINK's own stands apart; statements are shown."""
    result = evaluate_instruct(script, "--critic", f"scripted:{script}")

    assert result.exit_code == 0, result.output
    assert "If PersonX is allergic to milk, then PersonX is not able to eat quark." in result.stdout
    assert "judged by the critic scripted/script.json" in " ".join(result.stdout.split())
    ours, _, theirs = result.stdout.partition("LINK's paper, table 3")
    assert "56.44" not in ours
    assert "ChatGPT  85.40      67.50       56.44" in theirs
    assert "none is a fact" in " ".join(result.stderr.split())


def test_a_critic_judges_statements(script: Path) -> None:
    """Accuracy counts a statement whose every claim the critic affirms; its types are judged apart."""
    report = json.loads(evaluate_instruct(script, "--critic", f"scripted:{script}", "--json").stdout)

    (wording,) = report["wordings"]
    head = wording["accuracy"]["head"]
    assert head["factuality"] == {"right": 1, "known": 2}
    assert head["data_type"] == {"right": 0, "known": 2}
    assert head["overall"] == {"right": 0, "known": 2}
    assert wording["rules"][0]["dropped"]["repeated"] == 8


def test_the_command_stops_at_its_budget_and_goes_on(script: Path) -> None:
    """A budget ends it with exit code 3; the same command without one sends the rest, and then nothing."""
    cut = evaluate_instruct(script, "--max-calls", "1")
    whole = json.loads(evaluate_instruct(script, "--json").stdout)
    again = json.loads(evaluate_instruct(script, "--json").stdout)

    assert cut.exit_code == 3
    assert "Raise the limit" in " ".join(cut.stderr.split())
    assert whole["calls"]["sent"] > 0
    assert again["calls"]["sent"] == 0
    assert again["wordings"] == [{**wording, "rules": again["wordings"][0]["rules"]} for wording in whole["wordings"]]


def test_all_wordings_run_in_one_call(script: Path) -> None:
    """`--wording all` gives ten methods that share their head."""
    result = evaluate_instruct(script, "--wording", "all", "--json")

    report = json.loads(result.stdout)
    assert [wording["wording"] for wording in report["wordings"]] == list(range(1, 11))
    with KnowledgeBase(script.parent / "kb.db") as kb:
        assert len(kb.runs()) == 10
        heads = {(statement.run_id, statement.text) for statement in kb.statements(distribution=HEAD)}
    assert len(heads) == 20
    assert len({text for _, text in heads}) == 2


def test_a_model_that_ignores_the_format_is_told(script: Path) -> None:
    """No row at all is no failure, but it is said."""
    script.write_text(json.dumps({"defaults": {"generate": "No.", "likelihood": -1}}), encoding="utf-8")

    result = evaluate_instruct(script)

    assert result.exit_code == 0, result.output
    assert "does not follow the format of the instruction" in " ".join(result.stderr.split())


def test_an_unknown_wording_is_wrong_usage(script: Path) -> None:
    """Eleven is none of table 11."""
    assert evaluate_instruct(script, "--wording", "11").exit_code == 2
