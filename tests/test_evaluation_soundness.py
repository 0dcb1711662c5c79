"""Soundness: sheets of drawn statements, shares of true ones by rule, judging models, and reports of rules below a bar."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from votes_fixture import fill, fill_csv, statement

import hapax
from hapax.engine.judgements import SOUNDNESS_QUESTION, judgements
from hapax.engine.kb_checks import ill_formed_statements, rules_below_the_bar
from hapax.engine.soundness import RuleSoundness, rule_soundness
from hapax.evaluation.votes.items import ItemSource, SampleOptions
from hapax.evaluation.votes.questions import SOUNDNESS_WORDING, SheetKind
from hapax.evaluation.votes.soundness import measure
from hapax.kb.records import Distribution, VoteRecord
from hapax.kb.store import KnowledgeBase


@pytest.fixture
def filled(fresh_kb: KnowledgeBase) -> KnowledgeBase:
    """Twenty head statements of one rule, four long-tail statements of another."""
    head = [statement(f"dish {number}") for number in range(20)]
    tail = [statement(f"rare dish {number}", Distribution.LONG_TAIL, "lodging") for number in range(4)]
    return fill(fresh_kb, *head, *tail)


def vote(statement_id: str, answer: str, voter: str = "ann") -> VoteRecord:
    return VoteRecord(statement_id, SOUNDNESS_QUESTION, voter, answer, "")


def test_a_draw_is_even_over_rules_and_ends(filled: KnowledgeBase) -> None:
    """A rule with few statements has as many on the sheet as a rule with many, and a larger draw holds the smaller."""
    source = ItemSource(filled, SheetKind.SOUNDNESS)
    small = source.draw(SampleOptions(total=8, evenly=True))
    large = source.draw(SampleOptions(total=12, evenly=True))

    assert dict(small.counts) == {Distribution.HEAD: 4, Distribution.LONG_TAIL: 4}
    assert {item.id for item in small.items} < {item.id for item in large.items}


def test_a_sheet_is_filled_in_and_counted(filled: KnowledgeBase, tmp_path: Path) -> None:
    """Answers of an imported sheet give the shares by rule and over rules, and mark the rule below the bar."""
    options = hapax.SoundnessOptions(sample=8)
    with filled as kb:
        from hapax.api.sheets import export_soundness, import_sheets

        (sheet,) = (path for path in export_soundness(kb, options, ["ann"], tmp_path).paths if path.suffix == ".csv")
        filled_in = fill_csv(sheet, lambda row: "rule" if "rare" in row["text"] and row["choices"][4:5] else "yes")
        import_sheets(kb, [_wording_yes(filled_in)])
        measured = hapax.evaluate_soundness(kb, options)

    assert [(rule.rule, rule.sound, rule.judged) for rule in measured.value.rules] == [
        ("allergy", 4, 4),
        ("lodging", 0, 4),
    ]
    assert [rule.rule for rule in measured.value.below] == ["lodging"]
    assert measured.value.overall.value == 0.5
    assert measured.value.weighted.value == pytest.approx(20 / 24)
    assert measured.value.wording.value == 1.0


def test_the_majority_decides_about_good_english(filled: KnowledgeBase) -> None:
    """Of several voters on the English of a statement the majority counts, not the last; a tie counts for neither."""
    first, second = [record.id for record in filled.statements()][:2]
    for identity, answers in ((first, ("yes", "yes", "no")), (second, ("yes", "no"))):
        for voter, answer in zip("abc", answers, strict=False):
            filled.add_votes([VoteRecord(identity, SOUNDNESS_WORDING, voter, answer, "")])

    wording = measure(filled, hapax.SoundnessOptions()).wording

    assert (wording.value, wording.count) == (1.0, 1)


def _wording_yes(path: Path) -> Path:
    """The sheet with yes in the rows about wording, whose answers are yes and no alone."""
    import csv

    with path.open(encoding="utf-8", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, names = list(reader), list(reader.fieldnames or ())
    for row in rows:
        if row["question"].endswith("wording"):
            row["answer"] = "yes"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_people_outweigh_models_and_ties_are_undecided() -> None:
    """A model's vote counts only where no person voted; as many noes as yeses leave a statement undecided."""
    votes = [
        vote("a", "no", "model big@1"),
        vote("a", "yes"),
        vote("b", "no", "model big@1"),
        vote("c", "yes"),
        vote("c", "facts", "bob"),
        vote("d", "unsure"),
    ]
    verdicts = {item: judgement.truth or "" for item, judgement in judgements(votes).items()}

    assert verdicts == {"a": "yes", "b": "no", "c": "unsure", "d": "unsure"}
    assert rule_soundness(dict.fromkeys("abcd", "allergy"), verdicts) == {
        "allergy": RuleSoundness("allergy", 1, 2, 2, {"no": 1})
    }
    # A statement of a rule that is not asked about counts nowhere.
    assert rule_soundness({"a": "allergy"}, verdicts) == {"allergy": RuleSoundness("allergy", 1, 1, 0, {})}


def test_a_model_judges_and_is_not_asked_twice(filled: KnowledgeBase) -> None:
    """The answers of a model are stored as votes; the same call again takes all answers from the journal."""
    options = hapax.SoundnessOptions("simulated:1", sample=6)
    first = hapax.evaluate_soundness(filled, options)
    calls = sum(filled.call_counts().values())
    again = hapax.evaluate_soundness(filled, options)

    judged = sum(rule.judged + rule.unsure for rule in first.value.rules)
    assert judged == 6
    assert sum(filled.call_counts().values()) == calls > 0
    assert again.value.rules == first.value.rules
    assert first.value.voters[0].startswith("model simulated")


def test_a_budget_ends_judging_and_the_next_call_goes_on(filled: KnowledgeBase) -> None:
    """A reached budget is reported; without it the rest is judged."""
    options = hapax.SoundnessOptions("simulated:1", sample=None)
    stopped = hapax.evaluate_soundness(filled, options, budget=hapax.Budget(max_calls=2))
    finished = hapax.evaluate_soundness(filled, options)

    assert stopped.value.stopped
    assert finished.value.stopped is None
    assert sum(rule.judged for rule in finished.value.rules) == 24


def test_check_and_card_report_rules_below_the_bar(filled: KnowledgeBase, tmp_path: Path) -> None:
    """`check --db` and a dataset's card name a rule of which too many statements are false, and no other."""
    answers = {"allergy": "yes", "lodging": "rule"}
    filled.add_votes(vote(record.id, answers[record.rule]) for record in filled.statements())
    findings = [finding.diagnostic for finding in rules_below_the_bar(filled)]
    hapax.write_dataset(filled, tmp_path / "set")
    card = next((tmp_path / "set").rglob("README.md")).read_text(encoding="utf-8")

    assert [diagnostic.code for diagnostic in findings] == ["HPX416"]
    assert "0 of 4 judged statements of rule lodging" in findings[0].message
    assert "| lodging | 0.00 (0.0 to 49.0) | 4 |" in card
    assert "| allergy |" not in card


def test_check_reports_articles_that_do_not_fit(fresh_kb: KnowledgeBase) -> None:
    """A statement with two articles or "a" before a vowel is reported once for its rule."""
    record = statement("the an omelette")
    fill(fresh_kb, record, replace(record, conclusion="PersonX cannot eat a apple"))

    assert Counter(finding.diagnostic.code for finding in ill_formed_statements(fresh_kb)) == {"HPX417": 1}


def test_the_command_refuses_a_sheet_and_a_model_together(tmp_path: Path) -> None:
    """--out writes sheets, so a model beside it is an error of usage."""
    result = invoke("evaluate", "soundness", "--out", str(tmp_path), "-m", "simulated")

    assert result.exit_code == 2
    assert "--out writes sheets" in result.output
