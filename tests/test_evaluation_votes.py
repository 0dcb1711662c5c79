"""Counts of people's votes: agreement by hand-worked examples, majorities, and the tables of the report."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from cli_fixture import invoke
from votes_fixture import fill, statement

from hapax.engine.judgements import LINK_ANNOTATORS, judgements
from hapax.evaluation.shared.estimates import of_groups
from hapax.evaluation.shared.results import json_value
from hapax.evaluation.votes import paper
from hapax.evaluation.votes.agreement import agreement, fleiss_kappa, krippendorff_alpha
from hapax.evaluation.votes.report import votes_result
from hapax.evaluation.votes.tally import count_votes
from hapax.grammar.errors import HapaxError
from hapax.kb.records import Distribution, FactRecord, Source, StatementRecord, VoteRecord
from hapax.kb.store import KnowledgeBase

PAPER = Path(__file__).parent.parent.parent / "shared" / "papers" / "link_lint.txt"
needs_paper = pytest.mark.skipif(not PAPER.exists(), reason="the paper's text lies beside the repository, not in it")

FLEISS_1971_STYLE = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]
"""The textbook's table of ten subjects, fourteen raters and five categories: kappa 0.210."""

TWO_OBSERVERS = ([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0])
"""Krippendorff's own binary example: alpha 0.095."""

FOUR_OBSERVERS = (
    *((3, 0, 0, 0, 0), (0, 3, 1, 0, 0), (0, 0, 4, 0, 0), (0, 0, 4, 0, 0), (0, 4, 0, 0, 0), (1, 1, 1, 1, 0)),
    *((0, 0, 0, 4, 0), (3, 1, 0, 0, 0), (0, 4, 0, 0, 0), (0, 0, 0, 0, 3), (2, 0, 0, 0, 0), (0, 0, 1, 0, 0)),
)
"""Krippendorff's example of four observers, twelve units and five values, with missing ones: nominal alpha 0.743."""


def voted(record: StatementRecord, question: str, answers: str, comment: str = "") -> list[VoteRecord]:
    """`answers`: y or n of each voter in turn."""
    words = {"y": "yes", "n": "no"}
    return [
        VoteRecord(record.id, question, f"v{place}", words[letter], comment) for place, letter in enumerate(answers)
    ]


# Agreement


def test_agreement_of_three_questions_by_hand() -> None:
    """Votes 3:0, 2:1 and 0:3. Percent (1 + 1/3 + 1)/3; kappa (7/9 - 41/81)/(40/81); alpha 1 - 8 x 1/(5 x 4)."""
    found = agreement([[(3, 0)], [(2, 1)], [(0, 3)]])

    assert found.questions == 3
    assert found.percent.value == pytest.approx(7 / 9)
    assert found.unanimous.value == pytest.approx(2 / 3)
    assert found.fleiss.value == pytest.approx(0.55)
    assert found.krippendorff.value == pytest.approx(0.6)


def test_published_examples_of_kappa_and_alpha() -> None:
    """The textbook's kappa and Krippendorff's alpha come out."""
    observed = np.array([[pair.count(0), pair.count(1)] for pair in zip(*TWO_OBSERVERS, strict=True)])

    textbook = np.array(FLEISS_1971_STYLE)
    assert fleiss_kappa(krippendorff_alpha(textbook), int(textbook.sum())) == pytest.approx(0.210, abs=5e-4)
    assert krippendorff_alpha(observed) == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(np.array(FOUR_OBSERVERS)) == pytest.approx(0.743, abs=5e-4)


def test_votes_without_a_partner_do_not_change_alpha() -> None:
    """A question with one vote adds nothing, not even to the expected disagreement."""
    counts = np.array([[2, 0, 0], [1, 1, 0], [0, 2, 0]])
    alone = np.array([[0, 0, 1], [1, 0, 0]])

    assert krippendorff_alpha(np.concatenate([counts, alone])) == krippendorff_alpha(counts)
    assert math.isnan(krippendorff_alpha(alone))


def test_agreement_is_undefined_where_nothing_varies() -> None:
    """One answer throughout has no kappa and no alpha; a question with one vote has no say at all."""
    same, alone = agreement([[(3, 0), (3, 0)]]), agreement([[(1, 0)], [(0, 1)]])

    assert (same.percent.value, math.isnan(same.fleiss.value), math.isnan(same.krippendorff.value)) == (1, True, True)
    assert (alone.questions, alone.percent.count) == (0, 0)


def test_groups_are_resampled_as_a_whole() -> None:
    """Rows of one group move together: groups that are each of one kind widen the interval."""
    together = of_groups(lambda rows: float(rows.mean()), [np.full((20, 1), number % 2) for number in range(6)])
    apart = of_groups(lambda rows: float(rows.mean()), [np.full((1, 1), number % 2) for number in range(120)])

    assert together.value == apart.value == 0.5
    assert together.high - together.low > apart.high - apart.low


# Majorities and tables


@pytest.fixture
def judged(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Three head statements, one right, one not entailed, one of a wrong type; a long-tail one with a tie."""
    right, wrong, odd = (statement(dish) for dish in ("fondue", "toast", "gravel"))
    tie = statement("naan", Distribution.LONG_TAIL, "lodging")
    fill(fresh_kb, right, wrong, odd, tie)
    fresh_kb.add_votes(
        [
            *(
                vote
                for judged_statement in (right, wrong, tie)
                for vote in voted(judged_statement, "data type A", "yyy")
            ),
            *(
                vote
                for judged_statement in (right, wrong, tie)
                for vote in voted(judged_statement, "data type B", "yyn")
            ),
            *voted(odd, "data type A", "yyy"),
            *voted(odd, "data type B", "nny"),
            *voted(right, "entailment", "yyy"),
            *voted(wrong, "entailment", "nny", comment="no milk \u202ein it"),
            *voted(odd, "entailment", "yyy"),
            *voted(tie, "entailment", "yn"),
        ]
    )
    return fresh_kb


def test_accuracy_counts_majorities_and_no_ties(judged: KnowledgeBase) -> None:
    """Tables 3 and 17: a tie is in neither share, and a statement is right if types and entailment are."""
    count = count_votes(judged, judged.statements())
    head, _, both = count.by_method()
    by_domain = {group.group: group for group in count.by_domain()}

    assert [round(estimate.value, 3) for estimate in (head.data_type, head.factuality, head.overall)] == [
        0.667,
        0.667,
        0.333,
    ]
    assert (both.statements, both.data_type.count, both.factuality.count, both.overall.count) == (4, 4, 3, 3)
    assert (by_domain["locational"].statements, by_domain["locational"].overall.count) == (1, 0)
    assert by_domain["total"].overall == both.overall
    assert [voted.ties for voted in count.judged if voted.ties] == [["entailment"]]


def test_agreement_is_told_for_types_entailment_and_both(judged: KnowledgeBase) -> None:
    """Table 19: the last line takes all questions together."""
    found = count_votes(judged, judged.statements()).agreements

    assert {name: measures.questions for name, measures in found.items()} == {
        "data type": 8,
        "factuality": 4,
        "overall": 12,
    }
    assert found["data type"].percent.value == pytest.approx((4 + 4 / 3) / 8)


def test_labels_that_link_turned_are_in_no_table(judged: KnowledgeBase) -> None:
    """Only the noes of LINK's annotators are known, so they would make every figure worse."""
    before = json_value(votes_result(judged).figures)
    judged.add_votes([VoteRecord(statement("fondue").id, "entailment", LINK_ANNOTATORS, "no")])
    after = json_value(votes_result(judged).figures)

    assert after["table_3"] == before["table_3"]
    assert any("flipped by LINK's annotators" in remark for remark in after["remarks"])


def test_failures_join_rule_values_votes_and_proof(judged: KnowledgeBase) -> None:
    """Table 20: what a majority denied, in the words that people were asked in, with hidden characters shown."""
    lines = votes_result(judged).details
    start = next(place for place, line in enumerate(lines) if statement("toast").id in line)

    assert lines[start].startswith("head, rule allergy, outcomes and effects")
    assert lines[start + 1].startswith('  rule: @name allergy @domain "outcomes and effects"')
    assert lines[start + 2 : start + 5] == [
        "  values: A = milk, B = toast, C = cream",
        "  premise: PersonX is allergic to milk",
        "  conclusion: PersonX cannot eat toast",
    ]
    assert lines[start + 5 : start + 8] == [
        "  Is milk an allergen? yes (3 yes, 0 no)",
        "  Is toast a dish? yes (2 yes, 1 no)",
        "  Does the premise entail the conclusion? no (1 yes, 2 no)",
    ]
    assert lines[start + 8] == "    v0: no milk ⟨U+202E⟩in it"
    assert lines[start + 11] == '  proof: cannot_eat("toast")  [by rule allergy]'
    assert sum("statement" in line for line in lines) == 2


def test_the_audit_counts_errors_by_fact_and_rightness_by_statement(fresh_kb: KnowledgeBase) -> None:
    """Table 6: a statement is right if all questions about all its facts are; undecided ones have no say."""
    good, bad, open_ = (statement(dish) for dish in ("fondue", "toast", "naan"))
    fill(fresh_kb, good, bad, open_)

    def fact(*atom: str) -> str:
        return FactRecord(atom[0], atom[1:], (), Source.MODEL).id

    def five(subject: str, answers: str) -> list[VoteRecord]:
        words = {"y": "yes", "n": "no"}
        return [VoteRecord(subject, f"audit Q{n}", "ann", words[letter]) for n, letter in enumerate(answers, start=1)]

    fresh_kb.add_votes(
        [
            *five(fact("is_kind_of", "cream", "milk"), "yyyyy"),
            *five(fact("is_made_from", "fondue", "cream"), "yyyyy"),
            *five(fact("is_made_from", "toast", "cream"), "yynyy"),
            VoteRecord(fact("is_made_from", "toast", "cream"), "audit Q1", "bob", "no"),
        ]
    )
    audit = count_votes(fresh_kb, fresh_kb.statements()).audit

    assert audit is not None
    assert (audit.facts, audit.ties) == (3, 1)
    assert [(error.value, error.count) for error in audit.errors] == [
        (0, 2),
        (0, 3),
        (pytest.approx(1 / 3), 3),
        (0, 3),
        (0, 3),
    ]
    assert (audit.correct[Distribution.HEAD].value, audit.correct[Distribution.HEAD].count) == (0.5, 2)


def test_people_are_measured_as_a_model_is(fresh_kb: KnowledgeBase) -> None:
    """Table 4: the majority and the single person against the labels that people's judgement gives."""
    right, wrong, odd = (statement(dish) for dish in ("fondue", "toast", "gravel"))
    tail = statement("naan", Distribution.LONG_TAIL)
    fill(fresh_kb, right, wrong, odd, tail)
    fresh_kb.add_votes(
        [
            *voted(right, "entailment", "y"),
            *voted(wrong, "entailment", "n"),
            *voted(odd, "data type B", "n"),
            *voted(right, "baseline 5", "yyn"),
            *voted(wrong, "baseline 5", "nnn"),
            *voted(odd, "baseline 5", "nnn"),
            *voted(tail, "baseline 5", "yn"),
        ]
    )
    baseline = count_votes(fresh_kb, fresh_kb.statements()).baseline

    assert baseline is not None
    head, tail_cell = (baseline.majority.cell("total", distribution) for distribution in Distribution)
    assert (head.statements, head.every.value, tail_cell.every.value) == (2, 1.0, 0.0)
    assert baseline.single.cell("total", Distribution.HEAD).accuracy.value == pytest.approx((2 / 3 + 1) / 2)
    assert baseline.majority.change("total").every.value == -1
    assert (baseline.ties, baseline.unlabelled, baseline.both_roles) == (1, 1, ("v0",))


def test_one_mark_of_harm_is_enough(fresh_kb: KnowledgeBase) -> None:
    """Whatever the others say."""
    marked, unmarked = statement("fondue"), statement("toast")
    votes = [*voted(marked, "harmful", "nny"), *voted(unmarked, "harmful", "nnn")]

    assert {identity for identity, judgement in judgements(votes).items() if judgement.is_harmful} == {marked.id}


def test_nothing_to_report_is_said_with_a_remedy(fresh_kb: KnowledgeBase) -> None:
    """A knowledge base without votes says where votes come from."""
    with pytest.raises(HapaxError, match="hapax votes export"):
        votes_result(fresh_kb)


def test_the_report_prints_ours_and_the_papers_apart(judged: KnowledgeBase, tmp_path: Path) -> None:
    """Every table of ours is one, every table of the paper's another that says so; as JSON the same."""
    path = tmp_path / "votes.db"
    with KnowledgeBase(path) as kb:
        fill(kb, *judged.statements())
        kb.add_votes([*judged.votes(), VoteRecord("nothing", "entailment", "v0", "yes")])
    text = invoke("votes", "report", "--db", path)
    whole = invoke("votes", "report", "--json", "--db", path)

    titles = [line for line in text.stdout.splitlines() if "table" in line]
    assert [title.partition(" ")[0] for title in titles] == ["Ours,", "LINK's"] * 3
    assert "1 vote is on statements or facts that this knowledge base does not hold" in " ".join(text.stderr.split())
    assert "1 tie, counted for neither side: entailment of" in " ".join(text.stderr.split())
    found = json.loads(whole.stdout)
    assert found["statements"]["found_wrong"] == len(found["failures"]) == 2
    assert found["table_19"]["factuality"]["questions"] == 4
    assert found["link"]["table_19"]["overall"] == [65.64, 74.93, 83.39]


# The paper


@needs_paper
def test_the_papers_figures_are_the_printed_ones() -> None:
    """Tables 3, 6, 17 and 19 stand in the paper's text as they are kept here."""
    text = PAPER.read_text(encoding="utf-8")
    lines = [
        f"{name.title()} {' '.join(f'{figure:.2f}' for figure in row)}"
        for table in (paper.TABLE_3, paper.TABLE_19)
        for name, row in table.items()
    ]
    by_domain = [
        f"{name.title()} {' '.join(f'{figure:.2f}' for figure in row)}" for name, row in paper.TABLE_17.items()
    ]
    shares = " ".join("0" if figure == 0 else f"{figure / 100:.4f}" for figure in paper.TABLE_6)

    assert [line for line in [*lines, *by_domain] if line.replace(" And ", " and ") not in text] == []
    assert f"Error Rate {shares}" in text
    assert all(f"{figure / 100:.4f}" in text for figure in paper.AUDIT_CORRECT)


def test_the_papers_overall_agreement_is_a_mean_over_three_questions() -> None:
    """In each column of table 19 it is two parts data type and one part factuality, to the printed digit."""
    for types, entailed, together in zip(*paper.TABLE_19.values(), strict=True):
        assert (2 * types + entailed) / 3 == pytest.approx(together, abs=0.006)
