"""Answer the questions of a folder with scorers that are opened by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal

from hapax.evaluation.booqa.corpus import DAYS, SliceDays, sentences
from hapax.evaluation.booqa.premises import MOST, Context, PremiseSettings, QuestionWithPremises, ask
from hapax.evaluation.booqa.records import read_set
from hapax.evaluation.booqa.scoring import (
    AnswerScorer,
    BestPremise,
    Frequency,
    Null,
    ScoredAnswers,
    experiment_result,
    measure,
)
from hapax.evaluation.entailment.graph_files import NEIGHBOURS, GraphScorer, Neighbours, Smoothing, read_neighbours
from hapax.evaluation.entailment.metrics import refuse_one_label
from hapax.evaluation.entailment.opening import SCORERS, ScorerOptions, ScorerSession
from hapax.evaluation.entailment.report import write_curves
from hapax.evaluation.shared.drawing import file_name
from hapax.evaluation.shared.results import Evaluation
from hapax.grammar.arguments import ArgumentRejected, checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.store import KnowledgeBase
from hapax.kb.unfinished import replace_file
from hapax.llm_oracle.backend import OpeningOptions


@checked
@dataclass(frozen=True)
class AnswerOptions(ScorerOptions):
    """Scorers by name, their options, and the premises that they see.

    `premises`: most of a question. `smooth_premise` and `smooth_hypothesis`: stand-ins (hypernym, hyponym, lm:FILE),
    at most `neighbours` of each, for predicates that are missing from a graph. `days`: length of a time slice.
    """

    training: Annotated[
        tuple[Path, ...],
        Option("Pairs that prior counts; required by this scorer.", name="train", path="file", exists=True),
    ] = ()
    scorers: Annotated[
        tuple[str, ...],
        Option(f"frequency (of the corpus), null, {SCORERS}; repeat the option to compare scorers.", name="scorer"),
    ] = ("frequency", "null")
    context: Annotated[
        Literal["triple", "sentence", "documents"],
        Option("Kind of premises: triples of the same entities, their sentences, or sentences of similar documents."),
    ] = "triple"
    chosen: Annotated[
        Literal["dev", "test", "both"],
        Option("Set of questions; both: every set in the folder.", name="set"),
    ] = "both"
    premises: Annotated[int, Option("Most premises of a question.", least=1)] = MOST
    smooth_premise: Annotated[
        str, Option("Stand-ins for premises missing from a graph: hypernym, hyponym, or lm:FILE.")
    ] = ""
    smooth_hypothesis: Annotated[str, Option("Stand-ins for missing hypotheses, as above.")] = ""
    neighbours: Annotated[int, Option("Most stand-ins of a predicate.", least=1)] = NEIGHBOURS
    days: SliceDays = DAYS


@checked
@extras_named()
def read_questions(
    folder: str | Path, corpus: Sequence[str | Path], options: AnswerOptions | None = None, *, seed: int = 0
) -> Mapping[str, Sequence[QuestionWithPremises]]:
    """The questions of a folder by set, with what the corpus states of the same two entities in the same slice."""
    folder, options = Path(folder), options or AnswerOptions()
    sets = {name: questions for name, questions in read_set(folder).items() if options.chosen in (name, "both")}
    if not sets:
        raise ArgumentRejected(
            f"{folder} contains no set {options.chosen}.", Remedy("Choose another with {}.", Setting("options.chosen"))
        )
    for name, questions in sets.items():  # before the corpus is read and any model is asked
        refuse_one_label([question.label for question in questions], f"{folder}, set {name}")
    settings = PremiseSettings(options.language, Context(options.context), options.premises, seed=seed)
    stated = sentences([Path(path) for path in corpus], options.days, Counter())
    # The answers come in the order of the questions, so each set takes as many as it has.
    with_premises = iter(ask(list(chain.from_iterable(sets.values())), stated, settings))
    return {name: list(islice(with_premises, len(questions))) for name, questions in sets.items()}


def answer_scorer(name: str, session: ScorerSession, options: AnswerOptions) -> AnswerScorer:
    """The scorer of questions with this name. Raises ArgumentRejected for an unknown name or a missing option."""
    # Before the scorers of pairs, whose frequency counts training pairs; this one counts the corpus.
    if name == "null":
        return Null()
    if name == "frequency":
        return Frequency()
    scorer = session.scorer(name)
    if isinstance(scorer, GraphScorer):
        if options.context != "triple":
            raise ArgumentRejected(
                "Entailment graphs contain predicates, not sentences.",
                Remedy("Use {} triple.", Setting("options.context")),
            )
        premise = _neighbours(options.smooth_premise, options)
        hypothesis = _neighbours(options.smooth_hypothesis, options)
        scorer = replace(scorer, smoothing=Smoothing(premise, hypothesis))
    return BestPremise(scorer, Context(options.context))


def _neighbours(name: str, options: AnswerOptions) -> Neighbours | None:
    from hapax.evaluation.entailment.lexicon import ReplacementDirection, neighbours
    from hapax.evaluation.entailment.wordnet_folder import open_lexicon

    if not name:
        return None
    if name.startswith("lm:"):
        return read_neighbours(Path(name.removeprefix("lm:")), options.neighbours)
    if name not in tuple(ReplacementDirection):
        raise ArgumentRejected(f"There is no stand-in {name}. Choose hypernym, hyponym or lm:FILE.")
    return neighbours(open_lexicon(options.lexicon, options.language), ReplacementDirection(name), options.neighbours)


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
    options = options or AnswerOptions()
    session = ScorerSession(kb, options, opening)
    # Each scorer once, in the order in which they are named.
    methods = [answer_scorer(name, session, options) for name in dict.fromkeys(options.scorers)]
    answers = tuple(measure(methods, sets, session.seed))
    return Evaluation(AnsweredQuestions(answers, sets), experiment_result(answers, sets))


@checked
@extras_named()
def write_answers(evaluation: Evaluation[AnsweredQuestions], folder: str | Path) -> list[Path]:
    """Write curves, and each method's scores as lines of `truth score`; return the paths."""
    answers, folder = evaluation.value.answers, Path(folder)
    written = write_curves([scored.result for scored in answers], folder)
    for scored in answers:
        path = folder / f"scores-{file_name(scored.result.scorer)}-{scored.result.subset}.txt"
        lines = zip(scored.truth, scored.scores, strict=True)
        replace_file(path, "".join(f"{int(truth)} {score!r}\n" for truth, score in lines))
        written.append(path)
    return written
