"""Probing as LINK's released code does it: its questions, examples, token limits and scoring, word for word."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from test_evaluation_probing import ITEM, seeded

from hapax.evaluation.link.probing.asking import ProbeAnswer, ProbeMethod, probe
from hapax.evaluation.link.probing.items import ProbeItem
from hapax.evaluation.link.probing.metrics import measure
from hapax.evaluation.link.probing.released import (
    ReleasedAsker,
    ReleasedSettings,
    ReleasedVariant,
    completed,
    explanation,
    first_word,
    released_order,
    released_questions,
)
from hapax.evaluation.link.probing.run import ProbeOptions
from hapax.grammar.attributes import Polarity
from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Generation, GenerationParameters, GenerationRequest, ModelIdentity

PREFIX = "For the following question, please answer in a normal life scenario with no special consideration:\n"
PREMISE, CONCLUSION = "P", "C cannot."
NEGATION, QUESTION = "C can.", "Can C?"

NEGATIVE = """
Is it true that if P, C cannot? Answer yes or no: | Yes
Yes or no: if P, C cannot. | Yes
True or false: if P, C cannot. | True
Right or Wrong: if P, C cannot. | Right
Premise: P. Conclusion: C cannot. Does premise entail conclusion? Answer yes or no: | Yes
Premise: P. Conclusion: C can. Does premise contradict the conclusion? Answer yes or no: | Yes
Is it true that if P, C can? Answer yes or no: | No
Yes or no: if P, C can. | No
Answer the question with yes or no: if P, Can C? | No
True or false: if P, C can. | False
Right or Wrong: if P, C can. | Wrong
Premise: P. Conclusion: C can. Does premise entail conclusion? Answer yes or no: | No
Premise: P. Conclusion: C cannot. Does premise contradict the conclusion? Answer yes or no: | No
"""

NO_RATIONALE = frozenset({ReleasedVariant.NO_RATIONALE})


class Writing:
    """A generator that replies by kind of prompt and keeps every request with its token limit."""

    identity = ModelIdentity("writing", "1")

    def __init__(self, answer: str = "Yes.", thought: str = "Because.") -> None:
        self.answer, self.thought = answer, thought
        self.requests: list[tuple[str, int, float, int]] = []

    def generate(self, requests: list[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        replies = []
        for request in requests:
            self.requests.append((request.prompt, parameters.max_tokens, parameters.temperature, request.sample_index))
            replies.append(Generation(self._reply(request.prompt)))
        return replies

    def _reply(self, prompt: str) -> str:
        if prompt.startswith("Convert"):
            return " Q?\n"
        if prompt.startswith("Negate"):
            return " N\n"
        return self.thought if prompt.endswith("step by step.\n") else self.answer


def lines(settings: ReleasedSettings, positive: bool = False) -> list[str]:
    questions = released_questions(PREMISE, CONCLUSION, NEGATION, QUESTION, settings, positive=positive)
    return [f"{question.text} | {question.answer}" for question in questions]


def asked(kb: KnowledgeBase, model: Writing, settings: ReleasedSettings, *items: ProbeItem) -> list[ProbeAnswer]:
    journal = Journal(kb)
    asker = ReleasedAsker(
        JournaledGenerator(model, journal, role="probe"), JournaledGenerator(model, journal, role="writer"), settings
    )
    return list(probe(released_order(items), asker).answers)


def test_the_questions_about_a_negative_conclusion() -> None:
    """All 13, in the release's order, with their right answers."""
    assert lines(ReleasedSettings(variants=NO_RATIONALE)) == NEGATIVE.strip().splitlines()


def test_the_questions_that_ask_for_an_explanation() -> None:
    """The published run without a chain of thought asks for one in each question, in three wordings."""
    explained = [
        line.replace("Answer yes or no:", "Answer yes or no, and then give an explanation to your answer:")
        .replace("with yes or no: if", "with yes or no, and then give an explanation to your answer: if")
        .replace(". | ", ". Also give an explanation to the answer. | ")
        for line in NEGATIVE.strip().splitlines()
    ]

    assert lines(ReleasedSettings()) == explained


def test_the_questions_before_a_chain_of_thought() -> None:
    """They do not ask for yes or no; the text after the thought does."""
    bare = [
        line.replace(" Answer yes or no:", "").replace("the question with yes or no: if", "the question: if")
        for line in NEGATIVE.strip().splitlines()
    ]
    questions = released_questions(PREMISE, CONCLUSION, NEGATION, QUESTION, ReleasedSettings(chain=True))

    assert lines(ReleasedSettings(chain=True)) == bare
    assert [question.closing for question in questions[1:4]] == [
        f"Therefore, the answer ({pair}) is:" for pair in ("yes or no", "true or false", "right or wrong")
    ]


def test_the_questions_about_a_positive_conclusion() -> None:
    """In the intended form the question is the third of seven with a positive answer."""
    negative = NEGATIVE.strip().splitlines()
    question = "Answer the question with yes or no: if P, Can C? | Yes"
    expected = [*negative[:2], question, *negative[2:8], *negative[9:]]

    assert lines(ReleasedSettings(variants=NO_RATIONALE), positive=True) == expected


def test_a_doubled_if_and_full_stops() -> None:
    """`if if` becomes `if`, a full stop is added only where there is none, and the question mark takes its place."""
    questions = released_questions(
        "if P", completed("C."), completed("N"), "Q?", ReleasedSettings(variants=NO_RATIONALE)
    )

    assert questions[0].text == "Is it true that if P, C? Answer yes or no:"
    assert questions[6].text == "Is it true that if P, N? Answer yes or no:"
    assert questions[4].text == "Premise: if P. Conclusion: C. Does premise entail conclusion? Answer yes or no:"


def test_a_model_writes_negation_and_question(fresh_kb: KnowledgeBase) -> None:
    """One request each, of 32 tokens at temperature .9; then prefix and question, with 256 tokens for an explanation."""
    model = Writing("Yes. It contains milk.")
    answers = asked(fresh_kb, model, ReleasedSettings(), ITEM)
    conclusion = "PersonX is not able to eat fondue."

    assert model.requests[:3] == [
        (f"Convert the statement to a question with minimal edits: {conclusion}", 32, 0.9, 0),
        (f"Negate the statement with minimal edits: {conclusion}", 32, 0.9, 0),
        (
            f"{PREFIX}Is it true that if PersonX is allergic to milk, PersonX is not able to eat fondue? Answer yes or no, "
            "and then give an explanation to your answer:",
            256,
            0.9,
            0,
        ),
    ]
    assert len(model.requests) == 2 + 13
    assert model.requests[10][0].endswith("to your answer: if PersonX is allergic to milk, Q?")
    assert answers[0].rationale == "It contains milk."


def test_without_a_rationale_a_reply_has_16_tokens(fresh_kb: KnowledgeBase) -> None:
    """The switch takes the explanation out of words and limits."""
    model = Writing()
    asked(fresh_kb, model, ReleasedSettings(variants=NO_RATIONALE), ITEM)

    assert {limit for _, limit, _, _ in model.requests[2:]} == {16}


def test_the_worked_examples_are_those_of_the_release(fresh_kb: KnowledgeBase) -> None:
    """Python's own chance with seed 42 draws a polarity and two forms for each question, over all statements."""
    model = Writing("Yes", "It has milk.\nTherefore, the answer is yes.")
    tail = replace(ITEM, distribution=Distribution.LONG_TAIL, conclusion="PersonX is not able to eat raclette")
    asked(fresh_kb, model, ReleasedSettings(chain=True), ITEM, tail)
    prompts = [prompt for prompt, *_ in model.requests if prompt.endswith("step by step.\n")]
    closings = [prompt for prompt, *_ in model.requests if prompt.endswith("is:")]

    chance = random.Random(42)  # the release's
    drawn = []
    for _ in range(26):
        negative = chance.sample([0, 1], 1)[0]
        first = chance.sample(range(13)[6:] if negative else range(13)[:6], 1)[0]
        second = chance.sample(range(13)[:6] if negative else range(13)[6:], 1)[0]
        drawn.append((first, second))
    tractor = "PersonX was born in Roman Republic", "PersonX was not able to use tractor."
    mango = "PersonX is allergic to mango", "PersonX is not able to eat mango rice pudding."
    settings = ReleasedSettings(chain=True)
    expected = []
    for first, second in drawn:
        one = released_questions(*tractor, "N.", "Q?", settings)[first]
        two = released_questions(*mango, "N.", "Q?", settings)[second]
        expected.append(
            f"{PREFIX}{one.text}\nLet's think step by step.\nThe Roman Republic existed around 509-27 BC. Tractor was "
            "invented in 1892. The Roman Republic was long before when tractor was invented.\n"
            f"{one.closing} {one.answer}\n"
            f"{two.text}\nLet's think step by step.\nMango is an ingredient in mango rice pudding.\n"
            f"{two.closing} {two.answer}\n"
        )

    assert "raclette" in prompts[0]
    for prompt, examples in zip(prompts, expected, strict=True):
        assert prompt.startswith(examples)
    assert prompts[1][len(expected[1]) :] == (
        "Yes or no: if PersonX is allergic to milk, PersonX is not able to eat raclette.\nLet's think step by step.\n"
    )
    assert closings[0] == f"{prompts[0]}\nIt has milk.\nTherefore, the answer (yes or no) is:"


def test_a_chain_of_thought_without_examples(fresh_kb: KnowledgeBase) -> None:
    """The prefix stands before the question, and the thought stays whole."""
    thought = "It has milk.\nTherefore, no."
    model = Writing("Yes", thought)
    answers = asked(
        fresh_kb, model, ReleasedSettings(chain=True, variants=frozenset({ReleasedVariant.NO_EXAMPLES})), ITEM
    )

    assert model.requests[3][0] == (
        f"{PREFIX}Yes or no: if PersonX is allergic to milk, PersonX is not able to eat fondue."
        "\nLet's think step by step.\n"
    )
    assert {answer.rationale for answer in answers} == {thought}


def test_a_repeated_request_is_sampled_anew(fresh_kb: KnowledgeBase) -> None:
    """The release asks again about a statement in both distributions, and so does this mode."""
    model = Writing()
    asked(fresh_kb, model, ReleasedSettings(), ITEM, replace(ITEM, distribution=Distribution.LONG_TAIL))

    assert [sample for *_, sample in model.requests] == [0, 0, 1, 1, *[0] * 13, *[1] * 13]


@pytest.mark.parametrize(
    ("reply", "word"),
    [("Yes", "Yes"), (" yes, because", "yes"), ("Yes.\n\nMilk", "Yes"), ('"Yes"', '"'), ("", ""), ("Yes-no", "Yes-no")],
)
def test_the_first_word_counts(reply: str, word: str) -> None:
    """It ends before its punctuation; a reply that begins with a sign begins with no answer."""
    assert first_word(reply) == word


def test_an_explanation_is_what_follows_two_tokens() -> None:
    """Those are the answer and the sign after it."""
    assert explanation("Yes, PersonX cannot.") == "PersonX cannot."
    assert explanation("Yes") == ""


def test_flipped_statements_count_one_less_their_accuracy(fresh_kb: KnowledgeBase) -> None:
    """A reply that is no answer is wrong like any other, and so right where people flipped the label."""
    chatty = Writing("Well, it depends.")
    flipped = replace(ITEM, statement_id="s2", entailed=False)
    report = measure(asked(fresh_kb, chatty, ReleasedSettings(), ITEM, flipped))

    assert report.cell("total", Distribution.HEAD).accuracy.value == 0.5
    assert report.cell("total", Distribution.HEAD).violations.value == 1.0


def test_positive_conclusions_are_asked_in_the_negative_form(fresh_kb: KnowledgeBase) -> None:
    """As the release does by mistake, unless its intended form is chosen."""
    positive = replace(ITEM, conclusion="PersonX can cook fondue", polarity=Polarity.POSITIVE)
    published = asked(fresh_kb, Writing(), ReleasedSettings(), positive)
    intended = asked(
        fresh_kb, Writing(), ReleasedSettings(variants=frozenset({ReleasedVariant.POSITIVE_FORM})), positive
    )

    assert [answer.template.number for answer in published].index(7) == 8
    assert sum(answer.label for answer in published) == 6
    assert [answer.template.number for answer in intended].index(7) == 2
    assert sum(answer.label for answer in intended) == 7


def test_the_command_probes_as_the_release(tmp_path: Path) -> None:
    """The notes name the measure and the statements that were asked about in the wrong form."""
    database, script = seeded(tmp_path / "k.db"), tmp_path / "s.json"
    script.write_text(json.dumps({"defaults": {"generate": "Yes. So it is."}}), encoding="utf-8")
    words = ["evaluate", "probe", "--db", str(database), "-m", f"scripted:{script}", "--compat", "released"]
    result = invoke(*words)
    figures = json.loads(invoke(*words, "--json").stdout)

    assert result.exit_code == 0, result.output
    assert "asked as LINK's released code asks" in result.output
    assert figures["calls"]["sent"] == 0
    refused = invoke(*words, "--ask", "critic")
    assert refused.exit_code == 1
    assert "Choose --ask text or --ask cot" in refused.output
    assert "Add --compat released" in invoke(*words[:6], "--variant", "no-examples").output


def test_variants_need_the_released_code() -> None:
    """A switch of the released code alone is refused."""
    with pytest.raises(HapaxError, match="Add --compat released"):
        ProbeOptions(variants=(ReleasedVariant.NO_EXAMPLES,))
    with pytest.raises(HapaxError, match="temperature"):
        ProbeOptions(way=ProbeMethod.TEXT, compat="released", temperature=0.3)
