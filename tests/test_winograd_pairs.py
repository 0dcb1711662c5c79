"""Pair-consistent answers: the two sentences of a schema mean different options, so each is evidence for both."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from cli_fixture import invoke
from hypothesis import given
from hypothesis import strategies as st

from hapax.api.evaluations import resolve_schema_pairs
from hapax.evaluation.shared.results import json_value
from hapax.evaluation.winograd.data import WinogradItem
from hapax.evaluation.winograd.theories.measure import rules_result
from hapax.evaluation.winograd.theories.pairing import answer_pairs
from hapax.evaluation.winograd.theories.proving import Judgement, Lack, Resolution
from hapax.grammar.errors import HapaxError

OPTIONS = ("The ant", "the crumb")
SAID = ("is strong", "is heavy")
ALONE = "is near"
NAMES = ("ant", "crumb")


def item(said: str, pair: str = "lift") -> WinogradItem:
    text = f"The ant lifted the crumb because it {said}."
    return WinogradItem(
        f"own:{said}", pair, "own", text, "it", OPTIONS, SAID.index(said) if said in SAID else 0, "", ""
    )


PAIR = [item(said) for said in SAID]


def resolved(
    preferred: int | None, probability: float | None, barred: tuple[bool, bool] = (False, False)
) -> Resolution:
    """A resolution at a least probability of 0.8."""
    answer = preferred if probability is not None and probability >= 0.8 else None
    lack = None if answer is not None else Lack.NO_MARGIN if probability else Lack.NOT_PROVED
    return Resolution(
        answer, Judgement(NAMES, (), (None, None)), lack, probability=probability, preferred=preferred, barred=barred
    )


def together(first: Resolution, second: Resolution) -> list[Resolution]:
    """The resolutions of a pair whose sentences have these resolutions on their own."""
    by_text = {sentence.text: own for sentence, own in zip(PAIR, (first, second), strict=True)}
    open_answer = Resolution(None, lack=Lack.NOT_PROVED)
    answers = answer_pairs(PAIR, lambda sentence: by_text.get(sentence.text, open_answer), least=0.8)
    return [answer.resolution for answer in answers]


def test_two_unsure_sentences_make_a_sure_pair() -> None:
    """At 0.7 neither sentence has an answer; both for the same way, the pair has 0.84."""
    first, second = together(resolved(0, 0.7), resolved(1, 0.7))

    assert (first.answer, second.answer) == (0, 1)
    assert first.probability == second.probability == pytest.approx(0.49 / (0.49 + 0.09))
    assert "the pronoun is the crumb (probability 0.84, with the other sentence of its pair)" in second.lines(OPTIONS)


def test_a_sentence_of_which_nothing_is_known_has_the_answer_that_its_partner_leaves() -> None:
    """The strong one is the ant, so what is heavy, of which no rule speaks, is the crumb."""
    first, second = together(resolved(0, 0.9), resolved(None, None))

    assert (first.answer, second.answer) == (0, 1)
    assert second.lack is None


def test_sentences_that_contradict_each_other_are_no_answer() -> None:
    """Both sentences speak for the ant, and only in one of them can it be meant."""
    for resolution in together(resolved(0, 0.9), resolved(0, 0.85)):
        assert (resolution.answer, resolution.lack) == (None, Lack.NO_MARGIN)


def test_the_surer_sentence_decides() -> None:
    """A guess at 0.6 does not stand against an answer at 0.95."""
    first, second = together(resolved(0, 0.95), resolved(0, 0.6))

    assert (first.answer, second.answer) == (0, 1)


def test_a_candidate_that_does_not_agree_with_the_pronoun_stays_barred() -> None:
    """Whatever the partner says, a pronoun cannot mean what it does not agree with."""
    first, second = together(resolved(0, 0.95), resolved(None, None, barred=(False, True)))

    assert first.answer == 0
    assert (second.answer, second.lack) == (None, Lack.NO_AGREEMENT)


def test_a_sentence_without_a_partner_is_answered_by_itself() -> None:
    """Its answer, or its reason for none, is the one it has without pairs."""
    single = item(ALONE, "near")
    own = resolved(1, 0.9)
    (answer,) = answer_pairs([single], lambda sentence: own if sentence == single else resolved(0, 0.9), least=0.8)

    assert answer.resolution == own
    assert answer.kept


def test_sentences_with_different_options_are_no_schema() -> None:
    """Neighbours in a set without schemas, such as PDP, have answers that say nothing of each other."""
    neighbour = replace(PAIR[1], options=("The bee", "the crumb"))
    answers = answer_pairs([PAIR[0], neighbour], lambda _: resolved(0, 0.9), least=0.8)

    assert [answer.resolution.answer for answer in answers] == [0, 0]


def test_the_answer_follows_its_entity_when_both_sentences_are_exchanged() -> None:
    """A pair is compared with its pair of exchanged sentences, so that an answer by the partner is kept as well."""

    def resolve(sentence: WinogradItem) -> Resolution:
        if SAID[0] not in sentence.text:
            return resolved(None, None)
        return resolved(0 if sentence.text.startswith("The ant") else 1, 0.9)

    assert [answer.kept for answer in answer_pairs(PAIR, resolve, least=0.8)] == [True, True]


@given(
    st.sampled_from([0, 1]),
    st.floats(0.5, 1),
    st.sampled_from([0, 1]),
    st.floats(0.5, 1),
)
def test_a_pair_has_two_different_answers_or_none(preferred: int, sure: float, other: int, other_sure: float) -> None:
    """Whatever the sentences say, the pair's probability is one from 0.5 to 1, and its answers differ."""
    first, second = together(resolved(preferred, sure), resolved(other, other_sure))

    assert {first.answer, second.answer} in ({0, 1}, {None})
    assert first.probability is not None
    assert 0.5 <= first.probability <= 1


def test_the_result_says_that_it_is_pair_consistent() -> None:
    """Such figures use more than a sentence says, so they are told apart, for programs as well."""
    answers = answer_pairs(PAIR, lambda _: resolved(0, 0.9), least=0.8)
    result = rules_result(answers, pair_consistent=True)

    assert json_value(result.figures)["pair_consistent"] is True
    assert any("Pair-consistent" in note for note in result.notes)
    assert json_value(rules_result(answers).figures)["pair_consistent"] is False


@pytest.mark.parametrize("command", [("rules",), ("hybrid", "--method", "patterns")])
def test_patterns_have_no_pair_consistent_answers(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Only the reasoner has probabilities that can be added."""
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(sentence.to_json()) + "\n" for sentence in PAIR), encoding="utf-8")
    result = invoke("evaluate", "winograd", command[0], str(path), *command[1:], "--pair-consistent")

    with pytest.raises(HapaxError, match="'patterns' has no probabilities to add"):
        resolve_schema_pairs(PAIR, "patterns")
    assert result.exit_code == 2
    assert "--pair-consistent is for --method reasoner" in result.output
