"""Agreement of new schemas with their entities: pronouns, verbs and articles, or the reason why none fits."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import winograd_fixture as fixture
from cli_fixture import run

from hapax.evaluation.winograd.agreement import Agreement, DisagreementError
from hapax.evaluation.winograd.data import Pair, WinogradItem
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses
from hapax.evaluation.winograd.reasoner.parsing import ConlluParser, parser_installed
from hapax.evaluation.winograd.reasoner.wordnet import WORDNET, WordNet

TRANSCRIPTS = Path(__file__).parent.parent.parent / "shared" / "data" / "cr_wsc" / "gpt35_entity_pair_transcripts.jsonl"
needs_parser = pytest.mark.skipif(
    not (parser_installed() and find_spec("lemminflect") and WORDNET.exists()),
    reason="needs the extra english and WordNet",
)

PARSE = """
# text = Sarah thanked {name} because he was {quality}.
1 Sarah sarah _ NNP _ 2 nsubj _ _
2 thanked thank _ VBD _ 0 ROOT _ _
3 {name} {name} _ NNP _ 2 dobj _ _
4 because because _ IN _ 6 mark _ _
5 he he _ PRP _ 6 nsubj _ _
6 was be _ VBD _ 2 advcl _ _
7 {quality} {quality} _ JJ _ 6 acomp _ _
8 . . _ . _ 2 punct _ _
"""


class NoForms:
    """Inflection that knows no word."""

    def inflect(self, lemma: str, tag: str) -> str | None:
        return None


def schema(text: str, qualities: tuple[str, str], pronoun: str, options: tuple[str, str]) -> Pair:
    """A pair of sentences that differ in their last word."""
    first, second = (
        WinogradItem("mine:0", "mine:0", "mine", text.format(quality), pronoun, options, answer, "row 0", "mine:0")
        for answer, quality in enumerate(qualities)
    )
    return first, second


def by_parses(name: str, folder: Path) -> Pair:
    """A schema about Sarah and this name, worded by recorded parses and without WordNet."""
    parses = "".join(PARSE.format(name=name, quality=quality) for quality in ("kind", "tired"))
    agreement = Agreement(ConlluParser(parses), NoForms(), WordClasses(wordnet=WordNet(folder)))
    return agreement.agreed(
        schema(f"Sarah thanked {name} because he was {{}}.", ("kind", "tired"), "he", ("Sarah", name))
    )


def test_the_pronoun_takes_the_gender_of_both_entities(tmp_path: Path) -> None:
    """`he` becomes `she` where both entities are women, in the sentence and as the item's pronoun."""
    first, second = by_parses("Anna", tmp_path)

    assert (first.text, first.pronoun) == ("Sarah thanked Anna because she was kind.", "she")
    assert (second.text, second.pronoun) == ("Sarah thanked Anna because she was tired.", "she")


def test_a_pronoun_that_agrees_with_one_entity_is_refused(tmp_path: Path) -> None:
    """Between a woman and a man the pronoun alone would give the answer away."""
    with pytest.raises(DisagreementError, match="no pronoun agrees with both entities in gender"):
        by_parses("Peter", tmp_path)


@pytest.mark.english
@needs_parser
@pytest.mark.parametrize(
    ("text", "qualities", "pronoun", "options", "expected"),
    [
        (
            "The tennis players was upset with the coaches because he was {}.",
            ("late", "wrong"),
            "he",
            ("The tennis players", "the coaches"),
            "The tennis players were upset with the coaches because they were late.",
        ),
        (
            "I put an key into a old purse so that it would be {}.",
            ("handy", "heavy"),
            "it",
            ("the key", "the old purse"),
            "I put a key into an old purse so that it would be handy.",
        ),
        (
            "Sarah told Emily about his mother, but he did not {} her.",
            ("like", "trust"),
            "he",
            ("Sarah", "Emily"),
            "Sarah told Emily about her mother, but she did not like her.",
        ),
        (
            "Serena told Yvette about his mother, but he did not {} her.",
            ("like", "trust"),
            "he",
            ("Serena", "Yvette"),
            "Serena told Yvette about her mother, but she did not like her.",
        ),
        (
            "The wolves are attacking the sheep. They have become {}.",
            ("bold", "shy"),
            "They",
            ("The wolves", "the sheep"),
            "The wolves are attacking the sheep. They have become bold.",
        ),
    ],
)
def test_words_agree_with_new_entities(
    text: str, qualities: tuple[str, str], pronoun: str, options: tuple[str, str], expected: str
) -> None:
    """Verbs take the number of their subjects, articles fit the next word, and pronouns agree with both entities."""
    assert Agreement().agreed(schema(text, qualities, pronoun, options))[0].text == expected


@pytest.mark.english
@needs_parser
@pytest.mark.skipif(not TRANSCRIPTS.exists(), reason="the published data lies beside the repository, not in it")
def test_the_transcripts_make_schemas_that_agree(tmp_path: Path) -> None:
    """Of the 48 schemas by the released replies 43 agree, some with another pronoun; the others say why not."""
    sent = [json.loads(line) for line in TRANSCRIPTS.read_text(encoding="utf-8").splitlines()]
    defaults = {"generate": "I cannot say.", "likelihood": -1, "critic": 0.5}
    replies = {"generate": {request["prompt"]: request["completion"] for request in sent}, "defaults": defaults}
    name, annotated = fixture.scripted(tmp_path / "t.json", replies), TRANSCRIPTS.parent / "wsc_273_annotated_final.csv"
    words = ("evaluate", "winograd", "generate", annotated, "-m", name, "--prompt", "released", "--agreement", "--json")
    made = json.loads(run(*words, "--out", tmp_path / "new.jsonl", "--db", tmp_path / "t.db").stdout)
    texts = {item.text for item in read_items(tmp_path / "new.jsonl")}

    assert made["counts"]["pairs made"] == 43
    assert made["counts"]["left out: no pronoun agrees with both entities in number"] == 2
    assert made["counts"]["left out: no pronoun agrees with both entities in gender"] == 3
    assert "Sarah yelled at Alex because she was so upset." in texts
