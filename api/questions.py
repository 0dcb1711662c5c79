"""BoOQA: boolean questions built from a corpus of triples, and answered by scorers of entailment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hapax.api.evaluations import Evaluation
from hapax.api.schemas import with_journal
from hapax.grammar.arguments import checked
from hapax.grammar.extras import extras_named

if TYPE_CHECKING:
    from hapax.evaluation.booqa.answering import AnswerOptions
    from hapax.evaluation.booqa.build import BuildSettings, Built
    from hapax.evaluation.booqa.premises import QuestionWithPremises
    from hapax.evaluation.booqa.scoring import ScoredAnswers
    from hapax.evaluation.entailment.lexicon import SenseChoice
    from hapax.kb.store import KnowledgeBase
    from hapax.llm_oracle.backend import OpeningOptions


@checked
@dataclass(frozen=True)
class QuestionWords:
    """WordNet and the choice of a word's sense, for the negatives of `build_questions`.

    `lexicon`: a WordNet such as oewn:2024; empty: the only one for the language. `senses`: `first` (in WordNet), `all`,
    `critic` (the best fit in the sentence, by `model`), or a file.
    """

    lexicon: str = ""
    senses: str = "first"
    model: str = "embedded"


@checked
@extras_named()
def build_questions(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    folder: str | Path,
    settings: BuildSettings | None = None,
    *,
    words: QuestionWords | None = None,
    opening: OpeningOptions | None = None,
) -> Evaluation[Built]:
    """Build questions: positives that the corpus states, and negatives with a hyponym that it never states.

    Writes `dev.jsonl`, `test.jsonl` and `report.json` into the folder. `opening`: options of opening the model that
    chooses senses; its journal, if any, has the budget. Needs the extra `wordnet`.
    """
    from hapax.evaluation.booqa.build import BuildSettings, HyponymSource, build_into
    from hapax.evaluation.entailment.wordnet_folder import open_lexicon

    chosen, words = settings or BuildSettings(), words or QuestionWords()
    lexicon = open_lexicon(words.lexicon, chosen.language)
    source = HyponymSource(lexicon, _sense_choice(words, kb, opening))
    built = build_into(Path(folder), [Path(path) for path in paths], source, chosen)
    return Evaluation(built, built.result(chosen))


def _sense_choice(words: QuestionWords, kb: KnowledgeBase, opening: OpeningOptions | None) -> SenseChoice:
    from hapax.evaluation.booqa.negatives import senses_by_critic, senses_from_file
    from hapax.evaluation.entailment.lexicon import every_sense, first_sense
    from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession
    from hapax.llm_oracle.protocols import CRITIC

    choices: dict[str, SenseChoice] = {"first": first_sense, "all": every_sense}
    # Apart from the others, since only this choice opens a model.
    if words.senses == "critic":
        opening, _ = with_journal(kb, opening, None)
        return senses_by_critic(ScorerSession(kb, ScorerOptions(words.model), opening).measure(CRITIC))
    # Any other name is that of a file.
    return choices[words.senses] if words.senses in choices else senses_from_file(Path(words.senses))


@dataclass(frozen=True)
class AnsweredQuestions:
    """The scored answers of each method on each set, and the questions with their premises by set."""

    answers: tuple[ScoredAnswers, ...]
    sets: Mapping[str, Sequence[QuestionWithPremises]]


@checked
@extras_named()
def answer_questions(
    kb: KnowledgeBase,
    sets: Mapping[str, Sequence[QuestionWithPremises]],
    options: AnswerOptions | None = None,
    opening: OpeningOptions | None = None,
) -> Evaluation[AnsweredQuestions]:
    """Answer each question of `read_questions` by the premise that most entails it, and measure the answers.

    `opening`: options of opening the model; its journal, if any, has the budget. Nothing is asked twice.
    """
    from hapax.evaluation.booqa import answering, scoring
    from hapax.evaluation.entailment.opening import ScorerSession

    chosen = options or answering.AnswerOptions()
    opening, _ = with_journal(kb, opening, None)
    session = ScorerSession(kb, chosen, opening)
    # Each scorer once, in the order in which they are named.
    methods = [answering.answer_scorer(name, session, chosen) for name in dict.fromkeys(chosen.scorers)]
    answers = tuple(scoring.measure(methods, sets, opening.seed))
    return Evaluation(AnsweredQuestions(answers, sets), scoring.experiment_result(answers, sets))


@checked
@extras_named()
def write_answers(evaluation: Evaluation[AnsweredQuestions], folder: str | Path) -> list[Path]:
    """Write curves, and each method's scores as lines of `truth score`; return the paths."""
    from hapax.evaluation.booqa.scoring import write_answers as write

    return write(evaluation.value.answers, Path(folder))
