"""Entailment probing: LINK's 13 questions, what counts as an answer, and the tables that come of it."""

from __future__ import annotations

import json
import math
import re
import runpy
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke

from hapax.engine.judgements import DATA_TYPE_QUESTION, ENTAILMENT_QUESTION
from hapax.evaluation.link.probing import paper
from hapax.evaluation.link.probing.asking import (
    PREFIX,
    ProbeAnswer,
    ProbeQuestion,
    ProbeSettings,
    chain_asker,
    critic_asker,
    probe,
    text_asker,
)
from hapax.evaluation.link.probing.chain import STEP_BY_STEP, examples
from hapax.evaluation.link.probing.forms import conclusion_forms
from hapax.evaluation.link.probing.items import ProbeItem, probe_items
from hapax.evaluation.link.probing.metrics import measure
from hapax.evaluation.link.probing.reading import ParsedReply, parse_reply
from hapax.evaluation.link.probing.tables import answer_json, answer_lines, probe_tables
from hapax.evaluation.link.probing.templates import TEMPLATES, AnswerPair, count_labels
from hapax.evaluation.link.stated import GivenStatementWriter
from hapax.evaluation.shared.domains import TOTAL
from hapax.grammar.attributes import Polarity
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import parse_library
from hapax.grammar.rules import Library
from hapax.kb.records import Distribution, PredicateRecord, RuleRecord, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import CriticScore, Generation, GenerationParameters, GenerationRequest
from hapax.llm_oracle.rewriting import FormWriter
from hapax.llm_oracle.scripted import ScriptedModel

PAPER = Path(__file__).parent.parent.parent / "shared" / "papers" / "link_lint.txt"
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's text lies beside the repository, not in it")

TABLE_12 = """
1 Is it true that if premise, conclusion. Yes
2 Yes or no: if premise, conclusion. Yes
3 True or false: if premise, conclusion. True
4 Right or Wrong: if premise, conclusion. Right
5 Premise: premise. Conclusion: conclusion. Does premise entail conclusion? Yes
6 Premise: premise. Conclusion: conclusion_negation. Does premise contradict the conclusion? Yes
7 Answer the question with yes or no: if premise, conclusion_question? Depends
8 Is it true that if premise, conclusion_negation. No
9 Yes or no: if premise, conclusion_negation. No
10 True or false: if premise, conclusion_negation. False
11 Right or Wrong: if premise, conclusion_negation. Wrong
12 Premise: premise. Conclusion: conclusion_negation. Does premise entail conclusion? No
13 Premise: premise. Conclusion: conclusion. Does premise contradict the conclusion? No
"""

RULES = """
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]"
given is_not_able_to_eat(Person, Dish): "[1] is not able to eat [2]" / "[1] is able to eat [2]" / "is [1] unable to eat [2]?"
given can_cook(Person, Dish): "[1] can cook [2]" / "[1] cannot cook [2]" / "can [1] cook [2]?"
given has_use_for(Person, Dish): "[1] has use for [2]"
oracle is_made_from(Dish, Allergen): "[1] is made from [2]"

@name allergy
@domain outcomes and effects
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> is_not_able_to_eat(Person X, Dish B).

@name cook
@domain natural properties
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> can_cook(Person X, Dish B).

@name use
@domain natural properties
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> has_use_for(Person X, Dish B).
"""

ITEM = ProbeItem(
    "s1",
    "allergy",
    "outcomes and effects",
    Distribution.HEAD,
    "PersonX is allergic to milk",
    "PersonX is not able to eat fondue",
    "PersonX is able to eat fondue",
    "is PersonX able to eat fondue",
    Polarity.NEGATIVE,
)


def printed_labels() -> list[str]:
    words = (
        (template.pair.word(template.positive) if template.positive is not None else "Depends")
        for template in TEMPLATES
    )
    return [
        f"{one.number} {one.text.replace('{', '').replace('}', '')} {word}"
        for one, word in zip(TEMPLATES, words, strict=True)
    ]


def library() -> Library:
    return parse_library([("kitchen.rules", RULES)])


def statement(rule: str, dish: str, distribution: Distribution = Distribution.HEAD) -> StatementRecord:
    return StatementRecord(
        rule,
        distribution,
        "run",
        (("A", "milk"), ("B", dish)),
        "PersonX is allergic to milk",
        f"PersonX is not able to eat {dish}",
        "",
        {"steps": []},
    )


def fill(kb: KnowledgeBase, *statements: StatementRecord) -> KnowledgeBase:
    rules = library()
    kb.add_predicates(map(PredicateRecord.of, rules.completed().signatures))
    kb.add_rules(RuleRecord(rule.name, str(rule), rule.domain, rule.principle, rule.polarity) for rule in rules.rules)
    kb.add_statements(statements)
    return kb


def answering(says: Callable[[ProbeItem, int], bool | None]) -> Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]]:
    """A model whose answer to an item and template number is right, wrong, or off format (None)."""

    def ask(asked: Sequence[ProbeQuestion]) -> list[ProbeAnswer]:
        answers = []
        for item, template in asked:
            right = says(item, template.number)
            verdict = ParsedReply(None, "no answer") if right is None else ParsedReply(template.label(item) == right)
            answers.append(ProbeAnswer(item, template, template.question(item), verdict, ""))
        return answers

    return ask


# Templates and labels


def test_templates_are_the_papers() -> None:
    """All 13 templates and their labels are table 12's, byte for byte."""
    assert printed_labels() == TABLE_12.split("\n")[1:-1]


@needs_paper
def test_templates_are_in_the_papers_text() -> None:
    """Every template stands in the paper's own text as a line."""
    lines = PAPER.read_text(encoding="utf-8").splitlines()

    assert [one for one in printed_labels() if one not in lines] == []


def test_questions_of_a_denying_statement() -> None:
    """The slots are filled, and template 7 asks the positive side."""
    questions = [template.question(ITEM) for template in TEMPLATES]

    premise = "PersonX is allergic to milk"
    assert questions[0] == f"Is it true that if {premise}, PersonX is not able to eat fondue."
    assert questions[5] == (
        f"Premise: {premise}. Conclusion: PersonX is able to eat fondue. Does premise contradict the conclusion?"
    )
    assert questions[6] == f"Answer the question with yes or no: if {premise}, is PersonX able to eat fondue?"


@pytest.mark.parametrize(("polarity", "positive"), [(Polarity.POSITIVE, 7), (Polarity.NEGATIVE, 6)])
def test_label_totals_follow_the_polarity(polarity: Polarity, positive: int) -> None:
    """A positive conclusion has 7 positive and 6 negative labels, a denying one 6 and 7."""
    item = replace(ITEM, polarity=polarity)
    labels = count_labels([item])

    assert (labels.positive, labels.negative) == (positive, 13 - positive)
    assert TEMPLATES[6].label(item) == (polarity is Polarity.POSITIVE)


def test_contradicted_statement_turns_every_label() -> None:
    """Where people found a contradiction, all 13 labels turn."""
    turned = replace(ITEM, entailed=False)

    assert all(template.label(turned) != template.label(ITEM) for template in TEMPLATES)


def test_negative_share_tells_the_positive_conclusions() -> None:
    """The paper's 51.58 % of negative labels implies 29.5 % positive conclusions, and the formula is count_labels'."""
    items = [replace(ITEM, polarity=one) for one in [Polarity.POSITIVE] * 3 + [Polarity.NEGATIVE] * 7]

    def positive_share(negative_share: float) -> float:
        """Positive conclusions have 7 positive and 6 negative labels, the others 6 and 7."""
        return 7 - 13 * negative_share

    assert positive_share(paper.NEGATIVE_SHARE / 100) == pytest.approx(0.295, abs=0.0005)
    assert positive_share(count_labels(items).negative_share) == pytest.approx(0.3)


# Negation and question


def test_forms_come_from_the_template_first() -> None:
    """A declared negation and question are taken; a denying rule's question is made from its positive side."""
    rules = library()
    eat = conclusion_forms(rules.rule("allergy"), rules, positive=False)
    cook = conclusion_forms(rules.rule("cook"), rules, positive=True)
    bound = (("A", "milk"), ("B", "fondue"))

    assert eat.texts(bound) == (
        "PersonX is not able to eat fondue",
        "PersonX is able to eat fondue",
        "is PersonX able to eat fondue",
    )
    assert cook.texts(bound) == ("PersonX can cook fondue", "PersonX cannot cook fondue", "can PersonX cook fondue")


def test_forms_come_from_a_model_where_grammar_fails() -> None:
    """Forms that neither template nor grammar has are written by the model; after a reply without a slot it is asked again."""
    rules = library()
    model = ScriptedModel(
        {
            "generate": {
                "Opposite:": '"[1] has no use for [2]."\nThat is the opposite.',
                "Question:": "Does [1] have use for it?",
            }
        }
    )
    forms = conclusion_forms(rules.rule("use"), rules, positive=True, writer=FormWriter(model))

    assert forms.texts((("A", "milk"), ("B", "fondue"))) == (
        "PersonX has use for fondue",
        "PersonX has no use for fondue",
        "is it true that PersonX has use for fondue",
    )
    assert [note.split(":")[1].split(" the ")[1] for note in forms.notes] == [
        "model wrote",
        "question for '[1] has use for [2]'",
    ]
    assert len(model.prompts) == 1 + 5


# From the knowledge base


def test_items_are_taken_from_the_knowledge_base_alone(fresh_kb: KnowledgeBase) -> None:
    """Rule, polarity, domain and all forms come from what the search stored."""
    fill(fresh_kb, statement("allergy", "fondue"))
    (item,) = probe_items(fresh_kb).items

    assert replace(item, statement_id="s1") == ITEM


def test_votes_turn_labels_and_leave_statements_out(fresh_kb: KnowledgeBase) -> None:
    """A majority against the entailment turns the labels; one against a data type drops the statement; a tie does nothing."""
    wrong, odd, tie = (statement("allergy", dish) for dish in ("toast", "gravel", "naan"))
    fill(fresh_kb, wrong, odd, tie)
    fresh_kb.add_votes(
        [
            *(
                VoteRecord(wrong.id, ENTAILMENT_QUESTION, voter, answer)
                for voter, answer in [("a", "no"), ("b", "No "), ("c", "yes")]
            ),
            VoteRecord(odd.id, f"{DATA_TYPE_QUESTION} B", "a", "no"),
            *(VoteRecord(tie.id, ENTAILMENT_QUESTION, voter, answer) for voter, answer in [("a", "no"), ("b", "yes")]),
        ]
    )
    found = probe_items(fresh_kb)

    assert {item.conclusion.split()[-1]: item.entailed for item in found.items} == {"toast": False, "naan": True}
    assert (found.contradicted, found.wrong_type) == (1, 1)


def test_statements_that_read_the_same_are_one_item(fresh_kb: KnowledgeBase) -> None:
    """Statements that differ in a hidden value count once, with the votes on all of them, by the id of a dataset's row."""
    same = [
        replace(statement("allergy", "fondue"), substitution=(("A", "milk"), ("B", "fondue"), ("Z", hidden)))
        for hidden in ("gruyere", "emmental", "vacherin")
    ]
    fill(fresh_kb, *same, statement("allergy", "naan"))
    row_id, *others = sorted(record.id for record in same)
    fresh_kb.add_votes([VoteRecord(other, ENTAILMENT_QUESTION, other, "no") for other in others])
    fresh_kb.add_votes([VoteRecord(row_id, ENTAILMENT_QUESTION, "a", "yes")])
    found = probe_items(fresh_kb)
    run = probe(found.items, answering(lambda item, number: item.entailed))
    (total,) = [cell for cell in measure(run.answers).cells if cell.domain == TOTAL and cell.statements]

    assert {item.statement_id: item.entailed for item in found.items} == {
        row_id: False,
        statement("allergy", "naan").id: True,
    }
    assert (found.found[Distribution.HEAD], found.repeats, total.every.value, total.every.count) == (2, 2, 0.5, 2)


def test_shares_of_replies_have_intervals_over_statements(fresh_kb: KnowledgeBase) -> None:
    """13 replies off format about one statement are one case: of two statements the interval is nearly everything."""
    fill(fresh_kb, statement("allergy", "fondue"), statement("allergy", "naan"))
    items = probe_items(fresh_kb).items
    half = probe(items, answering(lambda item, number: None if item is items[0] else True))
    none = probe(items, answering(lambda item, number: True))
    shares = [
        next(cell.violations for cell in measure(run.answers).cells if cell.domain == TOTAL) for run in (half, none)
    ]

    assert [(found.value, found.count) for found in shares] == [(0.5, 26), (0, 26)]
    assert (shares[0].low, shares[0].high) == (0, 1)
    assert shares[1].high > 0.5


def test_larger_samples_hold_the_smaller(fresh_kb: KnowledgeBase) -> None:
    """A sample is drawn for each distribution, alternates between them, and only grows."""
    head = [statement("allergy", f"dish {n}") for n in range(9)]
    tail = [statement("allergy", f"dish {n}", Distribution.LONG_TAIL) for n in range(6, 15)]
    fill(fresh_kb, *head, *tail)
    small, large = probe_items(fresh_kb, sample=3), probe_items(fresh_kb, sample=5)

    assert large.items[:6] == small.items
    assert [item.distribution for item in small.items] == [Distribution.HEAD, Distribution.LONG_TAIL] * 3
    assert probe_items(fresh_kb, sample=3, seed=1).items != small.items
    assert (small.found[Distribution.HEAD], small.shared) == (9, 3)


def test_nothing_to_probe_is_said_with_a_remedy(fresh_kb: KnowledgeBase) -> None:
    """An empty knowledge base and an unknown rule are told with what to do."""
    with pytest.raises(HapaxError, match="hapax search"):
        probe_items(fresh_kb)
    with pytest.raises(HapaxError, match="no rule 'nosuch'"):
        probe_items(fill(fresh_kb, statement("allergy", "fondue")), rules=["nosuch"])


# Answers


@pytest.mark.parametrize(
    ("reply", "pair", "positive", "violation"),
    [
        ("Yes", AnswerPair.YES_NO, True, None),
        (" no, because", AnswerPair.YES_NO, False, None),
        ("**True.** It is so.", AnswerPair.TRUE_FALSE, True, None),
        ("'Wrong'", AnswerPair.RIGHT_WRONG, False, None),
        ("The answer is: Yes.", AnswerPair.YES_NO, True, None),
        ("Therefore, the answer (true or false) is: false", AnswerPair.TRUE_FALSE, False, None),
        ("Answer: no", AnswerPair.YES_NO, False, None),
        ("Yes", AnswerPair.TRUE_FALSE, None, "Yes where true or false was asked"),
        ("", AnswerPair.YES_NO, None, "empty reply"),
        ("Yes or no: if PersonX", AnswerPair.YES_NO, None, "repeats the question: Yes or no: if PersonX"),
        ("It depends; yes and no.", AnswerPair.YES_NO, None, "no answer: It depends; yes and no."),
        ("Yesterday", AnswerPair.YES_NO, None, "no answer: Yesterday"),
        ("42", AnswerPair.YES_NO, None, "no answer: 42"),
    ],
)
def test_replies_are_read(reply: str, pair: AnswerPair, positive: bool | None, violation: str | None) -> None:
    """Only the question's own pair of answers, said first, is an answer; all else is a violation with its reason."""
    assert parse_reply(reply, pair) == ParsedReply(positive, violation)


def test_critic_is_asked_the_questions_as_they_stand(fresh_kb: KnowledgeBase) -> None:
    """P(yes) above one half is the positive answer, also of true and right; what was asked is not asked again."""
    model = ScriptedModel({"critic": {TEMPLATES[2].question(ITEM): 0.9}, "defaults": {"critic": 0.1}})
    run = probe([ITEM], critic_asker(model, Journal(fresh_kb)))

    assert model.claims == [template.question(ITEM) for template in TEMPLATES]
    assert [answer.template.number for answer in run.answers if answer.right] == [3, 7, 8, 9, 10, 11, 12, 13]
    assert run.answers[2].reply == "True"
    assert probe([ITEM], critic_asker(model, Journal(fresh_kb))) == run
    assert len(model.claims) == 13


def test_text_is_asked_behind_the_papers_prefix(fresh_kb: KnowledgeBase) -> None:
    """The prompt is prefix and question; the reply is read by its own pair."""
    model = ScriptedModel({"defaults": {"generate": "Yes."}})
    run = probe([ITEM], text_asker(model, Journal(fresh_kb), ProbeSettings()))

    assert (
        model.prompts[1] == f"{PREFIX}\nYes or no: if PersonX is allergic to milk, PersonX is not able to eat fondue."
    )
    assert [answer.template.number for answer in run.answers if answer.verdict.violation] == [3, 4, 10, 11]


def test_chain_of_thought_asks_twice_and_keeps_the_rationale(fresh_kb: KnowledgeBase) -> None:
    """First the rationale is written, then the answer asked for behind it; an answer inside the rationale is cut off."""
    model = ScriptedModel(
        {"defaults": {"generate": "Fondue is made of cheese.\nTherefore, the answer (yes or no) is: Yes"}}
    )
    settings = ProbeSettings(seed=3)
    run = probe([ITEM], chain_asker(model, Journal(fresh_kb), settings))
    first, second = model.prompts[0], model.prompts[13]
    question = TEMPLATES[0].question(ITEM)

    assert first == f"{PREFIX}\n{examples(3, ITEM, TEMPLATES[0])}{question}\n{STEP_BY_STEP}\n"
    assert second == f"{first}Fondue is made of cheese.\nTherefore, the answer (yes or no) is:"
    assert {answer.rationale for answer in run.answers} == {"Fondue is made of cheese."}


def test_examples_are_two_with_shuffled_labels() -> None:
    """Each question has one example answered positively and one negatively, in drawn order; a seed draws the same."""
    drawn = [examples(seed, ITEM, template) for seed in range(4) for template in TEMPLATES]
    said = [re.findall(r"Therefore, the answer \(.*\) is: (\w+)", example) for example in drawn]
    first = [answer[0] in ("Yes", "True", "Right") for answer in said]

    assert all(len(answer) == 2 for answer in said)
    assert all(one[1] in ("Yes", "True", "Right") for one, positive in zip(said, first, strict=True) if not positive)
    assert all(one[1] in ("No", "False", "Wrong") for one, positive in zip(said, first, strict=True) if positive)
    assert 10 < sum(first) < 42
    assert examples(0, ITEM, TEMPLATES[0]) == drawn[0]


def test_worked_examples_answer_rightly() -> None:
    """The label of an example is that of its template for a statement that holds and denies."""
    for text in (examples(seed, ITEM, template) for seed in range(4) for template in TEMPLATES):
        for question, answer in re.findall(
            r"(?:^|\n\n)(.+)\nLet's.*\n.*\nTherefore, the answer \(.*\) is: (\w+)", text
        ):
            denies = " not able " in question
            contradicts = "contradict" in question
            assert (answer in ("Yes", "True", "Right")) == (denies != contradicts)


# Metrics


def items(count: int, distribution: Distribution, domain: str) -> list[ProbeItem]:
    return [replace(ITEM, statement_id=f"{domain} {n}", distribution=distribution, domain=domain) for n in range(count)]


class Refusing(ScriptedModel):
    """A model behind a filter that stops some questions."""

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        return [CriticScore(0.5, refused="filtered" if "contradict" in claim else "") for claim in claims]

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        said = ("filtered" if "contradict" in request.prompt.splitlines()[1] else "" for request in requests)
        return [Generation("" if refused else "Yes", refused=refused) for refused in said]


@pytest.mark.parametrize("way", [critic_asker, lambda *told: text_asker(*told, ProbeSettings())])
def test_a_refusal_is_no_answer(way: Callable[..., Callable[[Sequence[ProbeQuestion]], list[ProbeAnswer]]]) -> None:
    """It is neither no nor off format, and counts apart: of 13 questions the filter stops two."""
    ask = way(Refusing({}), Journal(KnowledgeBase()))

    run = probe([ITEM], ask)
    cell = measure(run.answers).cell(TOTAL, Distribution.HEAD)
    refused = [answer for answer in run.answers if answer.verdict.refusal]

    assert [answer.template.number for answer in refused] == [6, 13]
    assert {(answer.verdict.positive, answer.verdict.violation, answer.right) for answer in refused} == {
        (None, None, False)
    }
    assert cell.refusals.value == pytest.approx(2 / 13)
    assert probe_tables(measure(run.answers))[0].columns[-2:] == ("off format", "refused")
    assert {answer_json(answer)["refusal"] for answer in run.answers} == {None, "filtered"}
    assert "refused: filtered" in "".join(answer_lines(refused[0]))


def test_cells_count_as_table_4() -> None:
    """A statement counts if all its questions of a kind are right; one wrong question spoils its kind and the whole."""
    head, tail = items(4, Distribution.HEAD, "temporal"), items(4, Distribution.LONG_TAIL, "temporal")

    def says(item: ProbeItem, template: int) -> bool | None:
        if item.distribution is Distribution.HEAD:
            return not (item.statement_id == "temporal 0" and template == 5)
        return {0: template != 5, 1: template != 12, 2: None if template == 12 else True}.get(
            int(item.statement_id[-1]), True
        )

    report = measure(probe([*head, *tail], answering(says)).answers)
    first, last = (report.cell("temporal", distribution) for distribution in Distribution)

    assert (first.positive.value, first.negative.value, first.every.value) == (0.75, 1.0, 0.75)
    assert (last.positive.value, last.negative.value, last.every.value) == (0.75, 0.5, 0.25)
    assert last.accuracy.value == pytest.approx(1 - 3 / 52)
    assert last.violations.value == pytest.approx(1 / 52)
    assert report.change("temporal").every.value == pytest.approx((0.25 - 0.75) / 0.75)
    assert first.every.low < 0.75 < first.every.high
    by_number = {
        template.template: template for template in report.templates if template.distribution is Distribution.LONG_TAIL
    }
    assert (by_number[5].accuracy.value, by_number[12].accuracy.value, by_number[12].violations.value) == (
        0.75,
        0.5,
        0.25,
    )


def test_domains_are_told_apart() -> None:
    """Each domain has its cells, in the paper's order, strangers after it, the total last."""
    several = [
        item
        for domain in ("weather", "locational", "natural properties")
        for item in items(2, Distribution.HEAD, domain)
    ]
    report = measure(probe(several, answering(lambda item, template: item.domain != "locational")).answers)
    heads = [cell for cell in report.cells if cell.distribution is Distribution.HEAD]

    assert [one.domain for one in heads] == ["natural properties", "locational", "weather", TOTAL]
    assert [one.every.value for one in heads] == [1.0, 0.0, 1.0, pytest.approx(2 / 3)]


def test_delta_of_nothing_is_not_available() -> None:
    """Where the head has no statement right, delta is n/a and not 0."""
    several = items(2, Distribution.HEAD, "temporal") + items(2, Distribution.LONG_TAIL, "temporal")
    report = measure(
        probe(several, answering(lambda item, template: item.distribution is Distribution.LONG_TAIL)).answers
    )
    ours = probe_tables(report)[0]

    assert math.isnan(report.change("temporal").every.value)
    assert [row[5] for row in ours.rows if row[1] == "delta"] == ["n/a", "n/a"]


def test_every_printed_delta_is_recomputed() -> None:
    """18 of table 4's 20 deltas are defined; 17 equal print, one human figure is printed 0.01 too high."""
    computed = {(one.who, one.domain): one.computed for one in paper.TABLE_4}
    defined = [one for one in paper.TABLE_4 if one.computed is not None]
    unequal = [
        (one.who, one.domain, one.delta, round(one.computed or 0, 2))
        for one in defined
        if f"{one.computed:.2f}" != f"{one.delta:.2f}"
    ]

    assert len(paper.TABLE_4) == 20
    assert [key for key, delta in computed.items() if delta is None] == [
        ("ChatGPT", "natural properties"),
        ("Llama2-70B", "locational"),
    ]
    assert unequal == [("Human", "outcomes and effects", 1.56, 1.55)]


@needs_paper
def test_printed_figures_are_the_papers() -> None:
    """Tables 4 and 13 hold the figures of the paper's text."""
    text = PAPER.read_text(encoding="utf-8")
    table = next(line for line in text.splitlines() if line.startswith("Domain Distribution Llama2-70B"))
    heads = [[float(one) for one in re.findall(r"[\d.]+", part)] for part in re.findall(r"Head ([\d. ]+)", table)]
    tails = [[float(one) for one in re.findall(r"[\d.]+", part)] for part in re.findall(r"Long-tail ([\d. ]+)", table)]
    deltas = [float(one) for one in re.findall(r"(-?[\d.]+)%", table)]

    def ours(end: str) -> list[list[float]]:
        rows = [paper.TABLE_4[start : start + 4] for start in range(0, 20, 4)]
        return [[one for printed in row for one in getattr(printed, end) if one is not None] for row in rows]

    assert heads == ours("head")
    assert tails == ours("long_tail")
    assert deltas == [one.delta for one in paper.TABLE_4]
    assert all(f"{head:.2f} {tail:.2f}" in text for head, tail in paper.TABLE_13.values())


# The command


def seeded(path: Path) -> Path:
    with KnowledgeBase(path) as kb:
        fill(
            kb,
            *(statement("allergy", dish) for dish in ("fondue", "naan")),
            *(statement("allergy", dish, Distribution.LONG_TAIL) for dish in ("matapa", "ayran")),
        )
    return path


WITH_A_14TH_TEMPLATE = """
from hapax.evaluation.link.probing import templates

text = "Does it follow from '{premise}' that {conclusion}?"
templates.TEMPLATES += (templates.Template(14, text, templates.AnswerPair.YES_NO, True),)

from hapax import cli

cli.main()
"""


def test_a_new_template_needs_one_file(tmp_path: Path) -> None:
    """With a template more, probing, dataset and its tasks have 14 questions, and no metric is nan."""
    database, rules = tmp_path / "k.db", library()
    with KnowledgeBase(database) as kb:
        for distribution, dish in ((Distribution.HEAD, "fondue"), (Distribution.LONG_TAIL, "matapa")):
            writer = GivenStatementWriter(rules, rules.rule("allergy"), distribution, "run")
            fill(kb, writer.statement({"A": "milk", "B": dish}))

    def run(*words: str) -> str:
        command = [sys.executable, "-c", WITH_A_14TH_TEMPLATE, *words, "--db", str(database)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    probed = run("evaluate", "probe", "-m", "simulated:1")
    run(
        "dataset",
        str(tmp_path / "set"),
        "--in-both",
        "keep",
        "--format",
        "lm-eval",
        "--format",
        "inspect",
        "--format",
        "hf",
    )

    tasks = tmp_path / "set" / "lm_eval"
    metrics = runpy.run_path(str(tasks / "utils.py"))
    documents = [json.loads(line) for line in (tasks / "head.jsonl").read_text("utf-8").splitlines()]
    scores = [(0.0, True), (-1.0, True)]
    results = []
    for document in documents:
        # The likelier of the two answers is the right one, except for template 14.
        best_first = (document["label"] == 0) == (document["template"] != 14)
        results.append(metrics["process_results"](document, scores if best_first else scores[::-1]))

    def metric(name: str) -> float:
        return float(metrics["__getattr__"](name)([result[name] for result in results]))

    assert "all 14" in probed
    assert "Does it follow from" in probed
    assert sorted({document["template"] for document in documents}) == list(range(1, 15))
    assert [metric(name) for name in ("all_14", "template_13", "template_14")] == [0, 1, 0]
    assert "utils.all_14" in (tasks / "_base_yaml").read_text("utf-8")
    assert "utils.template_14" in (tasks / "_base_yaml").read_text("utf-8")
    assert "`template_14`" in (tasks / "README.md").read_text("utf-8")
    assert "TEMPLATES = 14" in (tmp_path / "set" / "inspect" / "task.py").read_text("utf-8")
    cards = [path.read_text("utf-8") for path in (tmp_path / "set").rglob("README.md")]
    assert any("number of the template, 1 to 14" in card for card in cards)


def test_probe_prints_ours_and_the_papers_apart(tmp_path: Path) -> None:
    """The command prints our tables, LINK's own in others, and wrong answers with their rationale."""
    database, script, answers = seeded(tmp_path / "k.db"), tmp_path / "s.json", tmp_path / "answers.jsonl"
    script.write_text(json.dumps({"defaults": {"generate": "Cheese is made of milk."}}), encoding="utf-8")
    words = ["evaluate", "probe", "--db", str(database), "-m", f"scripted:{script}", "--ask", "cot"]
    result = invoke(*words, "-o", answers)

    assert result.exit_code == 0, result.output
    titles = [line for line in result.stdout.splitlines() if line.startswith(("Ours", "LINK"))]
    assert [title.split(",")[0].split(" as ")[0] for title in titles] == [
        "Ours",
        "Ours",
        "LINK's table 4",
        "LINK's table 13",
    ]
    assert "rationale: Cheese is made of milk." in result.stdout
    assert "label Yes, answer no answer: Cheese is made of milk." in result.stdout
    lines = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 4 * 13
    assert {line["violation"] for line in lines} == {"no answer: Cheese is made of milk."}


def test_probe_goes_on_after_its_budget(tmp_path: Path) -> None:
    """A budget ends the run with exit code 3; the next run asks only what is missing, and JSON holds every figure."""
    database, script = seeded(tmp_path / "k.db"), tmp_path / "s.json"
    script.write_text(json.dumps({"defaults": {"critic": 0.9}}), encoding="utf-8")
    words = ["evaluate", "probe", "--db", str(database), "-m", f"scripted:{script}", "--json"]
    stopped = invoke(*words, "--max-calls", "20")
    done = invoke(*words)
    told = json.loads(done.stdout)

    assert stopped.exit_code == 3
    assert "Budget reached" in json.loads(stopped.stdout)["stopped"]
    assert told["calls"] == {"sent": 32, "from_journal": 20}
    total = next(one for one in told["table_4"] if (one["domain"], one["distribution"]) == ("total", "head"))
    assert (total["positive"]["value"], total["every"]["value"], total["statements"]) == (1.0, 0.0, 2)
    assert next(one for one in told["change"] if one["domain"] == "total")["every"]["value"] is None
    assert told["link"]["table_4"][0]["delta"] == -100


def test_writer_writes_what_grammar_cannot(tmp_path: Path) -> None:
    """`--writer` has a model deny and ask where grammar fails, and the run says so; the forms are journaled, too."""
    database, script = tmp_path / "k.db", tmp_path / "s.json"
    with KnowledgeBase(database) as kb:
        fill(kb, statement("use", "fondue"))
    forms = {"Opposite:": "[1] has no use for [2]", "Question:": "has [1] any use for [2]?"}
    script.write_text(json.dumps({"generate": forms, "defaults": {"critic": 0.9}}), encoding="utf-8")
    words = ["evaluate", "probe", "--db", str(database), "-m", f"scripted:{script}", "--writer", f"scripted:{script}"]
    first, second = (json.loads(invoke(*words, "--json").stdout) for _ in range(2))

    assert [note.split(" the ")[0] for note in first["notes"]] == ["use:", "use:"]
    assert first["calls"] == {"sent": 13 + 2, "from_journal": 0}
    assert second["calls"] == {"sent": 0, "from_journal": 13 + 2}


def test_probe_runs_with_a_simulated_model(tmp_path: Path) -> None:
    """The simulated world is made from the rules in the knowledge base."""
    database = seeded(tmp_path / "k.db")
    result = invoke("evaluate", "probe", "--db", database, "-m", "simulated:7")

    assert result.exit_code == 0, result.output
    assert "4 of 2 head and 2 long tail statements" in " ".join(result.stderr.split())


@pytest.mark.embedded
def test_probe_runs_with_the_embedded_model(tmp_path: Path) -> None:
    """Without network the embedded critic answers all questions, and the run says what that is worth."""
    database = seeded(tmp_path / "k.db")
    result = invoke("evaluate", "probe", "--db", database, "--sample", "1", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["calls"]["sent"] == 26
    assert "not what it knows" in " ".join(result.stderr.split())
