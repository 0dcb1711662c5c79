"""A real model as knowledge model: the lines that are read of its replies, and the truth of the values, by profile."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.search.inquiry import QuestionWording
from hapax.evaluation.shared.estimates import mean_share, share
from hapax.evaluation.shared.results import ResultTable
from hapax.grammar.parser import load_library
from hapax.kb.records import AtomPattern, Question
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.profile_probing import general_examples
from hapax.llm_oracle.profiles import PROFILES, Profile
from hapax.llm_oracle.protocols import Generation, GenerationParameters
from hapax.llm_oracle.reply_reader import Reply, ReplyQuestion, read_reply
from tools.embedded.corpus import Corpus, ListQuestion
from tools.embedded.wording import RULES_FOLDER, AtlasWording
from tools.results.measuring import SEED, Findings, ResultsRun

QUESTIONS = 60
COUNT = 10
"""Values that a question asks for."""

PARAMETERS = GenerationParameters(temperature=0.0, max_tokens=160, seed=SEED)


def measure_knowledge(run: ResultsRun) -> Findings:
    """Ask the same questions in the words of each profile, and judge the values by the atlas."""
    atlas, library = load_atlas(), load_library([RULES_FOLDER])
    corpus = Corpus(atlas, AtlasWording(atlas, library))
    keyed = [question for question in corpus.list_questions if question.given is not None and not question.functional]
    rng = random.Random(SEED)  # noqa: S311  # reproducible, not secret
    questions = rng.sample(keyed, min(run.sample(QUESTIONS), len(keyed)))
    generator = JournaledGenerator(run.models.knowledge, run.journal, role="results")
    rows = []
    for profile in PROFILES:
        wording = QuestionWording(profile, library, KnownFacts(run.kb, library), general_examples())
        requests = [wording.request(_question(asked, corpus), COUNT) for asked in questions]
        generations = generator.generate(requests, PARAMETERS)
        replies = [
            _read(profile, wording, _question(asked, corpus), generation)
            for asked, generation in zip(questions, generations, strict=True)
        ]
        rows.append((profile.name, *_figures(corpus, questions, replies)))
    columns = ("profile", "questions", "lines", "read as values", "values", "of the type", "true", "recall")
    return Findings([ResultTable("", columns, rows)])


def _question(asked: ListQuestion, corpus: Corpus) -> Question:
    relation = corpus.atlas.relations[asked.predicate]
    arguments = (None, asked.given) if asked.position == 0 else (asked.given, None)
    return Question((AtomPattern(asked.predicate, arguments),), relation.argument_types[asked.position], False)


def _read(profile: Profile, wording: QuestionWording, question: Question, generation: Generation) -> Reply:
    """The reply as a search reads it."""
    worded = wording.question(question, COUNT)
    asked = ReplyQuestion(worded.variable, worded.data_type, worded.sentence, worded.numeric)
    return read_reply(profile.own_part(generation.text), asked, generation.finish_reason)


def _figures(corpus: Corpus, questions: list[ListQuestion], replies: Iterable[Reply]) -> tuple[str, ...]:
    """Lines and values of the replies of a profile; a value is of the type if the atlas has it at this place."""
    read: list[bool] = []
    of_type: list[bool] = []
    true: list[bool] = []
    recalls = []
    for asked, reply in zip(questions, replies, strict=True):
        read += [True] * len(reply.values) + [False] * len(reply.dropped)
        right = {value.casefold() for value in corpus.values(asked)}
        known = {value.casefold() for value in corpus.atlas.true_values(asked.predicate, asked.position)}
        values = [str(value).casefold() for value in reply.values]
        of_type += [value in known for value in values]
        true += [value in right for value in values]
        recalls.append(len(right.intersection(values)) / min(len(right), COUNT))
    counts = (str(len(questions)), str(len(read)))
    return (*counts, str(share(read)), str(len(true)), str(share(of_type)), str(share(true)), str(mean_share(recalls)))
