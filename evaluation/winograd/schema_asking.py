"""Asking about pairs: the prompts of paper and notebooks, likelihoods, the stages of AoT, and the stored runs."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from hapax.evaluation.shared.estimates import Estimate, share
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable, for_batches, grouped
from hapax.evaluation.winograd.reply_reading import Answers, named, read_as_released, read_strictly
from hapax.evaluation.winograd.schema_files import (
    MACHINE,
    Pair,
    WinogradItem,
    in_place_of,
    occurs_in,
    options_as_named,
    pronoun_place,
    read_pairs,
    replaced,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed, Temperature, from_options
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.exchange.values import refusal
from hapax.kb.files.whole_files import read_text
from hapax.kb.records import PREDICATES, RUNS, FactRecord, PredicateRecord, RunRecord, Source, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached, Deferred
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import (
    KNOWLEDGE,
    LIKELIHOOD,
    GenerationParameters,
    GenerationRequest,
    Generator,
    LikelihoodModel,
)
from hapax.llm_oracle.registry import open_shared, with_journal


class PromptMethod(StrEnum):
    """Method of asking. `aot-staged` abstracts, answers and maps back in separate steps; `own` is a user's prompt.

    The methods that begin with `likelihood` score texts instead of reading a reply.
    """

    ZERO_SHOT = "zero-shot"
    ONE_SHOT = "one-shot"
    WINOWHY = "winowhy"
    ZS_COT = "zs-cot"
    COT = "cot"
    AOT = "aot"
    AOT_STAGED = "aot-staged"
    OWN = "own"
    LIKELIHOOD = "likelihood"
    LIKELIHOOD_PARTIAL = "likelihood-partial"
    LIKELIHOOD_PMI = "likelihood-pmi"
    LIKELIHOOD_CHOICE = "likelihood-choice"


class PromptWording(StrEnum):
    """Wording of the prompts: as the paper prints them, or as its released notebooks send them."""

    PAPER = "paper"
    NOTEBOOK = "notebook"


PAPER = read_yaml(Path(__file__).with_name("paper.yaml").read_text("utf-8"))
"""The prompts of paper and release, and the paper's tables."""

ANALOGIES: Sequence[str] = PAPER["analogies"]
"""The worked examples of the paper's prompts 1 to 5."""

SCORED = (
    PromptMethod.LIKELIHOOD,
    PromptMethod.LIKELIHOOD_PARTIAL,
    PromptMethod.LIKELIHOOD_PMI,
    PromptMethod.LIKELIHOOD_CHOICE,
)
"""Methods that score texts instead of prompting."""

PROMPTED = tuple(
    method for method in PromptMethod if method not in (PromptMethod.AOT_STAGED, PromptMethod.OWN, *SCORED)
)
"""The six single-prompt methods of the paper's table 2."""


def question_block(pair: Pair) -> str:
    """The end of every prompt: the two sentences with their questions, and the options of the first."""
    lines = ""
    for number, item in enumerate(pair, start=1):
        word = item.pronoun.lower()
        verb = "do" if word in ("they", "them") else "does"
        lines += f'{number}. {item.text} What {verb} "{word}" refer to?\n'
    # The second sentence may have options of its own; the prompt has one list for both.
    options = pair[0].options
    return f'{PAPER["header"]}\n{lines}Select from ["{options[0]}", "{options[1]}"]\n'


def prompt(pair: Pair, method: PromptMethod, variant: PromptWording, own: str = "") -> str:
    """The prompt of a single-prompt method. `own`: a user's text to put before the question."""
    block = question_block(pair)
    notebook = variant is PromptWording.NOTEBOOK
    form = PAPER["format_line"] if notebook else ""
    # The notebook for CR-WSC-M differs from that for CR-WSC-H in the WinoWhy and in the AoT prompt.
    machine = pair[0].source == MACHINE
    if method is PromptMethod.ZERO_SHOT:
        return f"{block}{form}A:"
    # Only zero-shot has no blank after "A:"; the notebooks' prompts are kept to the byte.
    if method is PromptMethod.ZS_COT:
        return f"{block}{form}{PAPER['step_by_step'][variant]}A: "
    # A user's text takes the place of the worked example; the question stays the paper's.
    exemplar = own if method is PromptMethod.OWN else PAPER["examples"][method][variant]
    if method is PromptMethod.WINOWHY and notebook:
        return f"{exemplar}\n\n{block}{'A:' if machine else ''}"
    follow = PAPER["follow"] if method is PromptMethod.AOT and notebook and machine else ""
    return f"{exemplar}\n\n{follow}{block}A: "


def abstraction_prompt(pair: Pair) -> str:
    """Stage 1: ask for concepts of the two entities."""
    return f"{PAPER['first_stage']}\n\n{question_block(pair)}Conceptualization: "


def abstract_prompt(pair: Pair) -> str:
    """Stage 2: ask about a pair whose options are concepts."""
    return f"{PAPER['second_stage']}\n\n{question_block(pair)}"


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A user's prompt, for example for AoT2 of table 5, which neither the paper nor the release contains."""

    name: str
    text: str


def read_own(name: str, path: Path) -> OwnPrompt:
    """Read a prompt from a file, to be put before each question. Raises HapaxError."""
    text = read_text(path, "Give a file with the text of a prompt.").strip()
    if not text:
        raise HapaxError(f"{path} is empty. Write the text that comes before each question.")
    # Otherwise its answers would be stored, and counted, as those of the built-in method.
    if name in set(PromptMethod):
        raise HapaxError(f"{name!r} is the name of a built-in method. Give the prompt another name.")
    return OwnPrompt(name, text)


def paper_prompt(pair: Pair, number: int) -> str:
    """The paper's prompt 1 to 5 for a source pair."""
    first, second = pair
    # Options are in capitals where they begin a sentence; the prompt names them in the middle of one.
    a, b = (option[0].lower() + option[1:] if option.startswith("The ") else option for option in first.options)
    task: str = PAPER["analogy_task"].format(one=first.text, two=second.text, a=a, b=b)
    return f"{ANALOGIES[number - 1]}\n\n{task}"


def released_prompt(pair: Pair) -> str:
    """The prompt of the released transcripts, byte for byte."""
    first, second = pair
    a, b = first.options
    task: str = PAPER["released_task"].format(one=first.text, two=second.text, a=a, b=b)
    return f"{PAPER['released_example']}\n\n\n{task}"


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """Answer to a sentence. `strict`: the option read, or None if none was; `released`: 0, 1 or -1."""

    item: str
    pair: str
    family: str
    gold: int
    strict: int | None
    released: int

    @property
    def right(self) -> bool:
        """True if the strict reading finds the right option."""
        return self.strict == self.gold


@dataclass(frozen=True, slots=True)
class Scores:
    """The paper's three scores, with Wilson intervals over sentences, pairs and families.

    Consistency is the share of families with right answers to all sentences, 1/m sum floor(C/N) (section 3.3).
    """

    single: Estimate
    pair: Estimate
    consistency: Estimate


ABSTRACTS_TO = PredicateRecord(
    "abstracts_to",
    ("Entity", "Concept"),
    "oracle",
    "[1] can be conceptualized as [2]",
    "[1] cannot be conceptualized as [2]",
    "can [1] be conceptualized as [2]?",
)
"""Predicate of the facts that store mappings."""

MOST_CHARACTERS = 80
"""Longest concept; longer texts are whole sentences."""

# `The fish can be conceptualized as a predator`: the concept ends at a sign or where the next statement begins.
_STATED = re.compile(
    r"(?P<entity>[^.,;:\n]+?)\s+(?:can|could|may|might) be (?:conceptuali[sz]ed|abstracted|seen|described) as\s+"
    r"(?P<concept>.+?)"
    r"(?=[.,;:\n(]|\s+(?:and|while|whereas)\s[^.,;\n]*?\bbe (?:conceptuali|abstracted|seen|described)|$)",
    re.IGNORECASE,
)
_OWNING = "this|that|these|those|my|your|his|her|its|our|their|some"
_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)

Concepts = tuple[str, str]
"""The concepts of the two options, in their order."""


def read_concepts(reply: str, options: tuple[str, str]) -> Concepts | None:
    """The first concept that the reply states for each option; None unless it states a concept for both.

    Two equal concepts become `person X` and `person Y`, as in the paper's figure 1.
    """
    concepts: dict[int, str] = {}
    for match in _STATED.finditer(reply.replace("*", "")):  # without Markdown emphasis
        entity = re.sub(r"^\s*(?:and|while|whereas)\s+", "", match["entity"], flags=re.IGNORECASE)
        option = named(entity, options)
        concept = _ARTICLE.sub("", " ".join(match["concept"].split()).strip("\"'“” "))
        # A concept that the knowledge base cannot store is not a concept.
        if option is not None and concept and len(concept) <= MOST_CHARACTERS and not refusal(concept):
            concepts.setdefault(option, concept)
    if len(concepts) < 2:
        return None
    if concepts[0].casefold() == concepts[1].casefold():
        return f"{concepts[0]} X", f"{concepts[1]} Y"
    return concepts[0], concepts[1]


def abstract_pair(pair: Pair, concepts: Concepts) -> Pair | None:
    """The pair with concepts instead of entities; None if a sentence does not name both entities."""
    items = []
    for item in pair:
        named_options = options_as_named(item)
        if named_options is None:
            return None
        text = replaced(item.text, named_options, (f"the {concepts[0]}", f"the {concepts[1]}"))
        for concept in concepts:
            # The sentence may have an article or a possessive before the entity already.
            text = re.sub(rf"\b(?:the|an?) (?=the {re.escape(concept)}\b)", "", text, flags=re.IGNORECASE)
            text = re.sub(rf"\b({_OWNING}) the (?={re.escape(concept)}\b)", r"\1 ", text, flags=re.IGNORECASE)
            # One entity may be a part of the other's name.
            if not occurs_in(concept, text):
                return None
        items.append(replace(item, text=text[0].upper() + text[1:], options=concepts, pronoun_start=None))
    return items[0], items[1]


ROLE = "winograd"
"""Role under which these calls are counted."""


Sources: TypeAlias = Annotated[tuple[str, ...], Option("Use only these sources, such as CR-WSC-H.", name="source")]
WordingVariant: TypeAlias = Annotated[
    PromptWording, Option("Prompts as the paper prints them, or as its notebooks send them.")
]


@checked
@dataclass(frozen=True, slots=True)
class AskSettings:
    """Settings of asking. `temperature` 0 asks for the likeliest reply; `tokens` limits its length."""

    method: PromptMethod = PromptMethod.ZERO_SHOT
    variant: WordingVariant = PromptWording.PAPER
    own: OwnPrompt | None = None
    temperature: Temperature = 0.0
    tokens: Annotated[int, Option("Maximum tokens of a reply.", name="reply-tokens", least=1)] = 512
    seed: Seed = 0

    @property
    def name(self) -> str:
        """The method's name in tables."""
        return self.own.name if self.own is not None else self.method.value


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """A pair with the replies about it, in order, and the answers read from them.

    `released`: by the released reading; None where there is no reply to read in another way.
    """

    pair: Pair
    calls: tuple[str, ...]
    replies: tuple[str, ...]
    strict: Answers
    released: tuple[int, int] | None = None
    concepts: Concepts | None = None

    @property
    def right(self) -> int:
        """Number of sentences answered right; an unreadable reply is wrong."""
        return sum(answer == item.answer for answer, item in zip(self.strict, self.pair, strict=True))

    @property
    def cells(self) -> list[list[Any]]:
        """The answers to both sentences, as a run stores them: the fields of `SentenceAnswer`."""
        released = self.released or tuple(-1 if option is None else option for option in self.strict)
        rows = zip(self.pair, self.strict, released, strict=True)
        return [[item.id, item.pair, item.family, item.answer, *answers] for item, *answers in rows]


Ask = Callable[[Sequence[Pair]], list[PairAnswer]]


def asking(model: Generator, journal: Journal, settings: AskSettings) -> Ask:
    """The function that asks a batch of pairs by the method of the settings."""
    generator, method = JournaledGenerator(model, journal, role=ROLE), settings.method
    parameters = GenerationParameters(settings.temperature, max_tokens=settings.tokens, seed=settings.seed)
    own = settings.own.text if settings.own is not None else ""

    def replies_to(prompts: Sequence[str]) -> list[tuple[str, str]]:
        """Journal ids and texts of the replies."""
        requests = [GenerationRequest(text) for text in prompts]
        replies = generator.generate(requests, parameters)
        calls = generator.call_ids(requests, parameters)
        return [(call, reply.text) for call, reply in zip(calls, replies, strict=True)]

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Ask by a single prompt."""
        replies = replies_to([prompt(pair, method, settings.variant, own) for pair in pairs])
        answers = []
        for pair, (call, reply) in zip(pairs, replies, strict=True):
            options = pair[0].options
            released = read_as_released(reply, options, zero_shot=method is PromptMethod.ZERO_SHOT)
            concepts = read_concepts(reply, options) if method in (PromptMethod.AOT, PromptMethod.OWN) else None
            answers.append(PairAnswer(pair, (call,), (reply,), read_strictly(reply, options), released, concepts))
        return answers

    def ask_in_stages(pairs: Sequence[Pair]) -> list[PairAnswer]:
        """Abstract, answer about the concepts, and map the answer back to entities without a model.

        The second question names no entity, so associations of the entities cannot influence the answer.
        """
        first = replies_to([abstraction_prompt(pair) for pair in pairs])
        mappings = [read_concepts(reply, pair[0].options) for pair, (_, reply) in zip(pairs, first, strict=True)]
        # None stays None: without concepts there is no second question, and the answer counts as unreadable.
        abstract = [known and abstract_pair(pair, known) for pair, known in zip(pairs, mappings, strict=True)]
        second = iter(replies_to([abstract_prompt(pair) for pair in abstract if pair is not None]))
        answers = []
        for pair, asked, mapping, rewritten in zip(pairs, first, mappings, abstract, strict=True):
            strict: Answers = (None, None)
            exchange = [asked]
            if rewritten is not None:
                exchange.append(next(second))
                # Options and concepts have the same order, so the answer needs no translation.
                strict = read_strictly(exchange[1][1], rewritten[0].options)
            calls, texts = zip(*exchange, strict=True)
            answers.append(PairAnswer(pair, calls, texts, strict, concepts=mapping))
        return answers

    return ask_in_stages if method is PromptMethod.AOT_STAGED else ask


QUESTION = '{text}\nQuestion: What does "{pronoun}" refer to?\n1. {first}\n2. {second}\nAnswer: {number}'


def _terms(item: WinogradItem, option: int, method: PromptMethod) -> dict[str, int]:
    """Texts with the factors of their log-likelihoods in an option's score; none if the sentence lacks the pronoun."""
    name = item.options[option]
    if method is PromptMethod.LIKELIHOOD_CHOICE:
        rival = item.options[1 - option]
        fields = {"text": item.text, "pronoun": item.pronoun}
        # In both orders, because models prefer a position.
        ahead = QUESTION.format(**fields, first=name, second=rival, number=1)
        behind = QUESTION.format(**fields, first=rival, second=name, number=2)
        return {ahead: 1, behind: 1}
    pronoun = pronoun_place(item)
    if pronoun is None:
        return {}
    beginning = f"{item.text[: pronoun.start()]}{in_place_of(pronoun, name)}"
    terms = {f"{beginning}{item.text[pronoun.end() :]}": 1}
    if method is PromptMethod.LIKELIHOOD_PARTIAL:
        # log P(rest | beginning) = log P(sentence) - log P(beginning).
        terms[beginning] = -1
    elif method is PromptMethod.LIKELIHOOD_PMI:
        terms[f"{name[0].upper()}{name[1:]}."] = -1
    return terms


def scoring(model: LikelihoodModel, journal: Journal, settings: AskSettings) -> Ask:
    """The function that answers a batch of pairs by the scores of the settings' method."""
    likelihood = JournaledLikelihood(model, journal, role=ROLE)

    def ask(pairs: Sequence[Pair]) -> list[PairAnswer]:
        terms = {}
        for item in chain.from_iterable(pairs):
            terms[item.id] = [_terms(item, option, settings.method) for option in (0, 1)]
        texts = list(dict.fromkeys(chain.from_iterable(chain.from_iterable(terms.values()))))
        scores = likelihood.log_likelihoods(texts)
        # A text that the model refuses has no likelihood.
        totals = {text: score.total for text, score in zip(texts, scores, strict=True) if not score.refused}
        call_ids = dict(zip(texts, likelihood.call_ids(texts), strict=True))
        answers = []
        for pair in pairs:
            calls: dict[str, None] = {}
            chosen: list[int | None] = []
            replies = []
            for item in pair:
                calls |= dict.fromkeys(call_ids[text] for text in chain.from_iterable(terms[item.id]))
                option_scores = []
                # A sentence of which a text cannot be scored has no scores, and no answer.
                if all(factors and factors.keys() <= totals.keys() for factors in terms[item.id]):
                    for factors in terms[item.id]:
                        option_scores.append(math.fsum(factor * totals[text] for text, factor in factors.items()))
                chosen.append(option_scores.index(max(option_scores)) if len(set(option_scores)) > 1 else None)
                scored = zip(item.options, option_scores, strict=False)
                replies.append(", ".join(f"{option}: {score:.3f}" for option, score in scored))
            answers.append(PairAnswer(pair, tuple(calls), tuple(replies), (chosen[0], chosen[1])))
        return answers

    return ask


COMMAND = "evaluate winograd ask"
WITHOUT_VARIANT = (PromptMethod.AOT_STAGED, *SCORED)
"""Methods without a second wording."""
ALL = "all"

PAIRS_TOGETHER = 16
"""Pairs asked in one batch; when a budget ends, all pairs of its batch stay unanswered."""

ABSENT = "-"


@checked
@dataclass(frozen=True, slots=True)
class SchemaAskOptions:
    """Options of asking. `settings`: a method and its settings for each run."""

    model: Annotated[str, Option("Model to ask.", short="-m")] = "embedded"
    settings: tuple[AskSettings, ...] = (AskSettings(),)
    sources: Sources = ()
    limit: Annotated[int | None, Option("Maximum number of pairs of each source.", least=1)] = None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> SchemaAskOptions:
        """Build it from the options of the command line."""
        base = from_options(AskSettings, options)
        methods: dict[PromptMethod, None] = {}
        for name in options["methods"]:
            methods |= dict.fromkeys(PROMPTED if name == ALL else (PromptMethod(name),))
        settings = [replace(base, method=method) for method in methods]
        for option in options["prompts"]:
            name, equals, path = option.partition("=")
            if not equals or not name.strip() or not path:
                raise HapaxError(
                    f"{Setting('settings.own')} {option!r} should read NAME=FILE, such as AoT2=my_prompt.txt."
                )
            settings.append(replace(base, method=PromptMethod.OWN, own=read_own(name.strip(), Path(path))))
        return from_options(cls, options, settings=tuple(settings))


@dataclass(frozen=True)
class StoredRun:
    """Stored answers of one model, by one method, on one source; the run has ended."""

    record: RunRecord

    @property
    def model(self) -> str:
        """Name of the model, without its revision."""
        return str(self.settings["model"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """Method, variant, source, and what else the run was made with."""
        return self.record.settings

    @cached_property
    def answers(self) -> tuple[SentenceAnswer, ...]:
        return tuple(SentenceAnswer(*cells) for cells in self.record.summary["answers"])

    @property
    def calls(self) -> Mapping[str, Sequence[str]]:
        """Journal ids of the calls, by pair."""
        calls: Mapping[str, Sequence[str]] = self.record.summary["calls"]
        return calls

    def scores(self, released: bool = False) -> Scores:
        """The scores by the strict or by the released reading of the replies."""
        single = []
        pairs: dict[str, bool] = {}
        families: dict[str, bool] = {}
        for answer in self.answers:
            right = (answer.released if released else answer.strict) == answer.gold
            single.append(right)
            # One wrong sentence makes its pair and its family wrong.
            pairs[answer.pair] = pairs.get(answer.pair, True) and right
            families[answer.family] = families.get(answer.family, True) and right
        return Scores(share(single), share(list(pairs.values())), share(list(families.values())))

    @property
    def unparsed(self) -> Estimate:
        """Share of sentences without a strict answer."""
        return share([answer.strict is None for answer in self.answers])

    @property
    def label(self) -> str:
        """Method and wording."""
        method, variant = self.settings["method"], self.settings["variant"]
        return method if method in WITHOUT_VARIANT else f"{method} ({variant})"

    @property
    def figures(self) -> dict[str, Any]:
        """Settings and scores for programs, without the single answers."""
        names = ("model", "revision", "method", "variant", "source", "pairs")
        place = {"id": self.record.id, "status": self.record.status, **{name: self.settings[name] for name in names}}
        return {**place, "strict": self.scores(), "released": self.scores(True), "unparsed": self.unparsed}


def stored_runs(kb: KnowledgeBase) -> list[StoredRun]:
    """The latest run of each model, method, variant and source, in the order they were first started."""
    latest: dict[tuple[str, str, str], StoredRun] = {}
    for record in kb.runs():
        if record.command == COMMAND and record.status != "running":
            run = StoredRun(record)
            # A later run replaces an earlier one and keeps its place.
            latest[run.model, f"{run.label} {run.settings['variant']}", run.settings["source"]] = run
    return list(latest.values())


def readings_table(runs: Sequence[StoredRun], title: str) -> ResultTable:
    """Scores by both readings of the same replies; the released one finds answers even where there are none."""
    rows = []
    for run in runs:
        strict, released = run.scores(), run.scores(released=True)
        shares = (strict.single, strict.pair, released.single, released.pair, run.unparsed, strict.consistency)
        cells = [estimate.text(1, 0, scale=100, empty=ABSENT) for estimate in shares]
        rows.append((run.label, run.model, run.settings["source"], *cells))
    scores = ("single", "pair", "single, released", "pair, released", "unparsed", "consistency")
    return ResultTable(title, ("", "model", "source", *scores), rows)


@checked
def ask_schemas(
    kb: KnowledgeBase,
    paths: Sequence[str | Path],
    options: SchemaAskOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation[list[StoredRun]]:
    """Ask a model about the pairs of files, by each method, and store the answers. No question is asked twice.

    A run that a budget or a queue ended has the status `budget`. `opening`: options of opening the model; its journal,
    if any, has the budget. `progress` is called with the method, the pairs done and all pairs.
    """
    opening, journal = with_journal(kb, opening, budget)
    options = options or SchemaAskOptions()
    opened, runs = OpenedModels(opening), []
    distinct: dict[str, Pair] = {}
    for pair in read_pairs(paths):
        # A pair is stored by its name, so two pairs of one name would mix their answers.
        if distinct.setdefault(pair[0].pair, pair) != pair:
            raise HapaxError(
                f"{pair[0].place}: another file has a different pair {pair[0].pair!r}. Rename one of the files."
            )
    chosen = (pair for pair in distinct.values() if not options.sources or pair[0].source in options.sources)
    by_source = grouped(chosen, lambda pair: pair[0].source)
    if not by_source:
        raise HapaxError(
            f"{', '.join(map(str, paths))}: no pairs to ask about.",
            Remedy("Name another file, or another {}.", Setting("options.sources")),
        )
    stopped: BudgetReached | None = None
    for (source, pairs), settings in product(by_source.items(), options.settings):
        asked = pairs[: options.limit]

        def finished(done: int, name: str = f"{settings.name} on {source}", total: int = len(asked)) -> None:
            if progress is not None:
                progress(name, done, total)

        is_scored = settings.method in SCORED
        model = open_shared(opened, options.model, LIKELIHOOD if is_scored else KNOWLEDGE)
        ask = (scoring if is_scored else asking)(model, journal, settings)
        record = _record(asked, settings, model.identity.name, model.identity.revision)
        kb.add(RUNS, [record])
        answers: list[PairAnswer] = []
        reached = for_batches(asked, PAIRS_TOGETHER, lambda batch: answers.extend(ask(batch)), finished)  # noqa: B023  # called at once
        runs.append(StoredRun(_finished(kb, record, answers, "budget" if reached else "done")))
        stopped = stopped or reached
        # Requests deferred to a queue do not keep the other runs from being asked.
        if reached and not isinstance(reached, Deferred):
            break
    readings = readings_table(runs, "Asked, with 95 % intervals")
    return Evaluation(runs, [readings], [run.figures for run in runs], notes=[str(stopped)] if stopped else [])


def _record(pairs: Sequence[Pair], settings: AskSettings, model: str, revision: str) -> RunRecord:
    # The texts are part of the identity, so a changed file starts a new run.
    texts = [[[item.text, item.pronoun, *item.options] for item in pair] for pair in pairs]
    stored = {
        "model": model,
        "revision": revision,
        "method": settings.name,
        "variant": settings.variant.value,
        # A user may change the text of a prompt and keep its name.
        "prompt": hashlib.sha256(settings.own.text.encode()).hexdigest() if settings.own else "",
        "source": pairs[0][0].source,
        "temperature": str(settings.temperature),
        "tokens": settings.tokens,
        "seed": settings.seed,
        "pairs": len(pairs),
    }
    return RunRecord.now(content_id(COMMAND, stored, texts), COMMAND, stored)


def _finished(kb: KnowledgeBase, record: RunRecord, answers: Sequence[PairAnswer], status: str) -> RunRecord:
    """The record with the answers, which are stored, as are the concepts that replies state for entities."""
    facts = []
    for answer in answers:
        for entity, concept in zip(answer.pair[0].options, answer.concepts or (), strict=False):
            if not refusal(entity):
                types = ABSTRACTS_TO.argument_types
                facts.append(FactRecord(ABSTRACTS_TO.name, (entity, concept), types, Source.MODEL, run_id=record.id))
    calls = {answer.pair[0].pair: list(answer.calls) for answer in answers}
    summary = {"answers": list(chain.from_iterable(answer.cells for answer in answers)), "calls": calls}
    with kb.transaction():
        kb.finish_run(record.id, status, summary)
        if facts:
            kb.add(PREDICATES, [ABSTRACTS_TO])
            kb.add_facts(facts)
    return replace(record, status=status, summary=summary)
