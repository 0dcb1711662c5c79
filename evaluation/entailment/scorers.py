"""Scorers of entailments, by name with their options: models with prompts, baselines, files of scores."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, permutations, product
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from hapax.engine.entailment.graph import STRONG, Edge, store_entailments
from hapax.evaluation.entailment.pairs import (
    ANYTHING,
    EntailmentPair,
    Triple,
    VisibleSides,
    leaks,
    read_scores,
    read_splits,
)
from hapax.evaluation.entailment.published_graphs import GraphScorer
from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.grammar.arguments import ArgumentRejected, checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature
from hapax.grammar.remedies import Operation, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.writing.verbalize import atom_text
from hapax.grammar.writing.words import counted
from hapax.grammar.yaml_files import read_yaml
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import FREE, Budget
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.protocols import CRITIC
from hapax.llm_oracle.registry import open_model, with_journal

Patterns = Literal["directional", "symmetric", "original"]
"""The patterns to fill: the three directional ones, these in both directions, or the five of S&S."""

PROMPTS: Mapping[str, Mapping[str, Sequence[str]]] = read_yaml(
    Path(__file__).with_name("prompts.yaml").read_text("utf-8")
)
"""Patterns and antipatterns by language. Only the first three patterns express the direction of the entailment."""

DIRECTIONAL = 3

# By contraposition: "not P because not H" says again that P entails H, although the order is reversed.
NEGATED_PATTERNS: Mapping[int, tuple[bool, bool]] = {3: (True, True), 4: (True, True)}
NEGATED_ANTIPATTERNS: Mapping[int, tuple[bool, bool]] = {3: (False, True)}
"""Numbers of the English prompts, from 0, in which Schmitt and Schuetze negate premise and hypothesis (SherLIiC)."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The sentences of a pair."""

    patterns: tuple[str, ...]
    antipatterns: tuple[str, ...]


def filled(pair: EntailmentPair, kind: Patterns = "directional") -> Filled:
    """The pair in the prompts of its language. Raises HapaxError for a language without prompts."""
    prompts = PROMPTS.get(pair.language)
    if prompts is None:
        raise HapaxError(
            f"{pair.place or pair.premise.sentence}: no prompts for language {pair.language!r}. Use one of "
            f"{', '.join(PROMPTS)}."
        )
    patterns = prompts["patterns"][: None if kind == "original" else DIRECTIONAL]
    ways = [(pair.premise, pair.hypothesis)]
    if kind == "symmetric":
        # A scorer of both directions cannot tell a pair from its converse, which is what it is compared for.
        ways.append((pair.hypothesis, pair.premise))
    if kind == "original" and pair.verbal and pair.language == "EN":
        return Filled(
            _with_negation(patterns, NEGATED_PATTERNS, pair),
            _with_negation(prompts["antipatterns"], NEGATED_ANTIPATTERNS, pair),
        )
    # Chinese patterns take whole sentences, because a Chinese object may stand inside its predicate.
    fill = _chinese if pair.language == "ZH" else _european
    return Filled(
        tuple(fill(pattern, *way) for way, pattern in product(ways, patterns)),
        tuple(fill(pattern, *way) for way, pattern in product(ways, prompts["antipatterns"])),
    )


def _with_negation(
    patterns: Sequence[str], negated: Mapping[int, tuple[bool, bool]], pair: EntailmentPair
) -> tuple[str, ...]:
    """The patterns, filled with the pair; those with a number in `negated` with its premise or hypothesis negated."""
    texts = []
    for number, pattern in enumerate(patterns):
        sides = []
        for side, negate in zip((pair.premise, pair.hypothesis), negated.get(number, (False, False)), strict=True):
            sides.append(replace(side, predicate=negation(side.predicate)) if negate else side)
        texts.append(_european(pattern, sides[0], sides[1]))
    return tuple(texts)


def negation(predicate: str) -> str:
    """A predicate negated as in the released code: `is not part of`, `does not own`.

    Of a verb without -s it loses the last letter, as there: the prompts are the released ones.
    """
    first, *rest = predicate.split()
    if first in ("is", "are", "were", "was"):
        return " ".join([first, "not", *rest])
    return " ".join(["does" if first.endswith("s") else "do", "not", first[:-1], *rest])


def sentences(premise: str, hypothesis: str) -> Filled:
    """The directional English prompts, filled with whole sentences instead of triples."""
    pieces = {
        "{pal} {prem} {par}": premise,
        "{hal} {hypo} {har}": hypothesis,
        "{hal} maybe {hypo} {har}": f"maybe {hypothesis}",  # a sentence has no marked subject to put "maybe" after
    }

    def fill(pattern: str) -> str:
        for slots, words in pieces.items():
            pattern = pattern.replace(slots, words)
        return pattern

    prompts = PROMPTS["EN"]
    return Filled(tuple(map(fill, prompts["patterns"][:DIRECTIONAL])), tuple(map(fill, prompts["antipatterns"])))


def _european(pattern: str, premise: Triple, hypothesis: Triple) -> str:
    return pattern.format(
        pal=premise.subject,
        prem=premise.predicate,
        par=premise.object,
        hal=hypothesis.subject,
        hypo=hypothesis.predicate,
        har=hypothesis.object,
    )


def _chinese(pattern: str, premise: Triple, hypothesis: Triple) -> str:
    return pattern.format(prem=chinese_sentence(premise), hypo=chinese_sentence(hypothesis))


def chinese_sentence(triple: Triple) -> str:
    """A Chinese triple as a sentence: `·X·` is the object's place, `否·` a negation, `【介宾】` an adjunct subject."""
    subject, predicate = triple.subject, triple.predicate
    if "【介宾】" in predicate:
        # The right side is evaluated first, so it still has the subject, which moves into the object's place.
        subject, predicate = "", predicate.replace("·X·", f"·{subject}·", 1).replace("【介宾】", "")
    if predicate.startswith("否·"):
        predicate = "没有·" + predicate.removeprefix("否·")
    if "·X·" in predicate:
        return subject + predicate.replace("·X·", triple.object, 1).replace("·", "")
    return subject + predicate.replace("·", "") + triple.object


Measure = Callable[[Sequence[str]], list[float]]
"""Returns a number for each sentence: P(yes), or log-likelihood per token."""


@dataclass(frozen=True, slots=True)
class PairScorer:
    """Scores how certain it is that a premise entails a hypothesis; only the order of the scores matters.

    `sees`: the sides of a pair that it uses; None if unknown, because the scores come from elsewhere.
    """

    name: str
    scores: Callable[[Sequence[EntailmentPair]], list[float]]
    sees: VisibleSides | None = VisibleSides.BOTH

    def grouped(self, groups: Sequence[Sequence[EntailmentPair]]) -> list[float]:
        """The highest score of each group of pairs; an empty group gets the lowest of all."""
        scores = self.scores(list(chain.from_iterable(groups)))
        # An empty group ranks with the least entailed one; 0 may lie above other scores.
        lowest = min(scores, default=0.0)
        # The scores of all groups follow each other.
        remaining = iter(scores)
        return [max(islice(remaining, len(group)), default=lowest) for group in groups]


EntailmentScorer: TypeAlias = PairScorer | GraphScorer


def best_difference(filled_pairs: Sequence[Filled], measure: Measure) -> list[float]:
    """A model's measure of each pair's best pattern minus that of its best antipattern (S&S, section 2).

    Equal sentences are measured once: with symmetric patterns, a pair and its converse give the same.
    """
    sentences = list(dict.fromkeys(chain.from_iterable((*pair.patterns, *pair.antipatterns) for pair in filled_pairs)))
    measured = dict(zip(sentences, measure(sentences), strict=True))
    differences = []
    for pair in filled_pairs:
        patterns, antipatterns = ([measured[text] for text in texts] for texts in (pair.patterns, pair.antipatterns))
        differences.append(max(patterns) - max(antipatterns))
    return differences


def likeness_scores(pairs: Sequence[EntailmentPair], measure: Measure, marks: tuple[str, str]) -> list[float]:
    """Similarity of an encoder's vectors for the two predicates of each pair, or for whole sentences.

    `measure` takes both sides separated by a tab; it compares the parts between `marks`.
    """
    texts = []
    for pair in pairs:
        texts.append("\t".join(_marked(side, pair, marks) for side in (pair.premise, pair.hypothesis)))
    unique = list(dict.fromkeys(texts))
    measured = dict(zip(unique, measure(unique), strict=True))
    return [measured[text] for text in texts]


def _marked(triple: Triple, pair: EntailmentPair, marks: tuple[str, str]) -> str:
    """The triple as a sentence with its predicate marked; unmarked if the premise is a whole sentence."""
    # Without marks of its own.
    blanks = dict.fromkeys(map(ord, marks), " ")
    texts = (triple.subject, triple.predicate, triple.object)
    plain = Triple(*(" ".join(text.translate(blanks).split()) for text in texts))
    if pair.premise.predicate:
        # A Chinese predicate is marked in two parts, around the object's place.
        parts = plain.predicate.split("·X·")
        plain = replace(plain, predicate="·X·".join(part.join(marks) for part in parts))
    return chinese_sentence(plain) if pair.language == "ZH" else plain.sentence


def random_scores(pairs: Sequence[EntailmentPair], seed: int) -> list[float]:
    """A number for each pair, which depends on the seed and the pair alone, not on the order of pairs."""
    return [random.Random(f"{seed} {pair.key}").random() for pair in pairs]  # noqa: S311  # no secret


def frequency_scores(pairs: Sequence[EntailmentPair], training: Sequence[EntailmentPair]) -> list[float]:
    """1 - 1/n if the hypothesis' predicate occurs n times in training pairs, 0 if it does not (BoOQA's baseline)."""
    counts: Counter[str] = Counter()
    for pair in training:
        # Premises and hypotheses alike.
        counts.update((pair.premise.key[1], pair.hypothesis.key[1]))
    return [1 - 1 / n if (n := counts[pair.hypothesis.key[1]]) else 0.0 for pair in pairs]


def prior_scores(pairs: Sequence[EntailmentPair], training: Sequence[EntailmentPair]) -> list[float]:
    """(true + 1) / (all + 2) over the training pairs with the hypothesis' predicate.

    It measures how much a data set reveals by its hypotheses alone.
    """
    labels: defaultdict[str, list[bool]] = defaultdict(list)
    for pair in training:
        labels[pair.hypothesis.key[1]].append(pair.entailed)
    # One true and one false pair are added (Laplace), so an unseen predicate scores one half.
    of_pairs = (labels.get(pair.hypothesis.key[1], []) for pair in pairs)
    return [(sum(known) + 1) / (len(known) + 2) for known in of_pairs]


def file_scores(pairs: Sequence[EntailmentPair], path: Path, twin: Path | None = None) -> list[float]:
    """Scores from a file of `truth score` lines, one for each pair, in the same order.

    `twin`: the file of the same pairs' scores by hypotheses alone. Raises HapaxError if the labels of the file are not
    those of the pairs.
    """
    # Only the pairs tell which of the two files is asked for.
    if twin is not None and all(pair.premise == ANYTHING for pair in pairs):
        path = twin
    rows = read_scores(path)
    if [truth for truth, _ in rows] != [pair.entailed for pair in pairs]:
        raise HapaxError(
            f"{path}: its {len(rows)} labels differ from those of the {len(pairs)} pairs. Name the file of "
            "pairs that was scored."
        )
    return [score for _, score in rows]


SCORERS = "critic, likelihood, encoder, random, frequency, prior, scores:FILE[+TWIN], graph:PATH[@SIMILARITY]"
"""Names of scorers."""

BATCH = 512
"""Sentences between two calls of `progress`."""

Language: TypeAlias = Annotated[str, Option("Language of the corpus.", choices=("EN", "ZH"))]


@checked
@dataclass(frozen=True)
class ScorerOptions:
    """Options of scorers. `model` is asked by critic, likelihood and encoder, in the wording of `patterns`.

    `training`: files of the pairs that frequency and prior count.
    """

    model: Annotated[str, Option("Model for critic, likelihood and encoder.", short="-m")] = "embedded"
    patterns: Annotated[Patterns, Option("Prompts of Schmitt and Schütze that a model judges or learns from.")] = (
        "directional"
    )
    training: Annotated[
        tuple[Path, ...],
        Option(
            "Pairs that frequency and prior count; required by these scorers.", name="train", path="file", exists=True
        ),
    ] = ()

    @property
    def training_pairs(self) -> list[EntailmentPair]:
        """The pairs of all training files."""
        return list(chain.from_iterable(read_splits(self.training).values()))


class ScorerSession:
    """Opens scorers by name. Models are opened when a scorer needs one, and their answers stay in the journal."""

    def __init__(
        self,
        kb: KnowledgeBase,
        options: ScorerOptions,
        opening: OpeningOptions | None,
        budget: Budget | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`progress` is called with the sentences done and their number, for each scorer anew."""
        self.options, self._progress = options, progress
        self._opening, self._journal = with_journal(kb, opening, budget)
        self.seed = self._opening.seed

    def scorer(self, name: str) -> EntailmentScorer:
        """The scorer of this name. Raises ArgumentRejected for an unknown name or a missing option."""
        kind, _, argument = name.partition(":")
        if name in ("critic", "likelihood"):
            measure, patterns = self.measure(name), self.options.patterns
            return PairScorer(
                f"{name} {self.options.model}",
                lambda pairs: best_difference([filled(pair, patterns) for pair in pairs], measure),
            )
        if name == "encoder":
            return self._encoder()
        if name == "random":
            return PairScorer(name, partial(random_scores, seed=self.seed))
        if name in ("frequency", "prior"):
            if not self.options.training:
                raise ArgumentRejected(
                    f"{Setting('options.scorers')} {name} counts training pairs: name their files with "
                    f"{Setting('options.training')}."
                )
            count = frequency_scores if name == "frequency" else prior_scores
            return PairScorer(name, partial(count, training=self.options.training_pairs), VisibleSides.HYPOTHESIS)
        if kind == "scores" and argument:
            path, _, alone = argument.partition("+")  # as in scores:WHOLE+ALONE
            twin = Path(alone) if alone else None
            # Scores by hypotheses alone show that the others are by both sides.
            sees = VisibleSides.BOTH if twin else None
            return PairScorer(Path(path).stem, partial(file_scores, path=Path(path), twin=twin), sees)
        if kind == "graph" and argument:
            path, _, block = argument.partition("@")  # as in graph:PATH@SIMILARITY
            return GraphScorer(path, block)
        raise ArgumentRejected(f"There is no scorer {name}. Choose {SCORERS}.")

    def measure(self, role: str) -> Measure:
        """The model's P(yes) of sentences (role critic), or their log-likelihood per token in nats.

        It is taken batch by batch, so that progress shows and a budget ends between batches.
        """
        model = open_model(self.options.model, role, self._opening)
        if role == CRITIC:
            measure = _probability(JournaledCritic(model, self._journal))
        else:
            measure = _per_token(JournaledLikelihood(model, self._journal))
        progress = self._progress
        if progress is None:
            return measure

        def measured(texts: Sequence[str]) -> list[float]:
            numbers: list[float] = []
            for start in range(0, len(texts), BATCH):
                numbers += measure(texts[start : start + BATCH])
                progress(len(numbers), len(texts))
            return numbers

        return measured

    def _encoder(self) -> PairScorer:
        """The scorer of an encoder that runs in this process."""
        from hapax.llm_oracle.rankers.encoder import CLOSE, OPEN, EncoderSimilarity

        kind, _, source = self.options.model.partition(":")
        if kind != "hf" or not source:
            raise ArgumentRejected(
                f"{Setting('options.scorers')} encoder needs a Hugging Face encoder: {Setting('options.model')} "
                "hf:NAME_OR_PATH."
            )
        model = EncoderSimilarity.load(source, self._opening.device, self._opening.dtype)
        self._journal.prices[model.identity.name] = FREE  # it runs in this process
        # The journal keeps similarities like likelihoods: a number for each text.
        measure = _per_token(JournaledLikelihood(model, self._journal))
        scores = partial(likeness_scores, measure=measure, marks=(OPEN, CLOSE))
        return PairScorer(f"encoder {source}", scores)


def _probability(critic: JournaledCritic) -> Measure:
    return lambda texts: [answer.probability for answer in critic.probabilities(texts)]


def _per_token(ranker: JournaledLikelihood) -> Measure:
    return lambda texts: [likelihood.per_token for likelihood in ranker.log_likelihoods(texts)]


def leak_warning(training: Sequence[EntailmentPair], measured: Sequence[EntailmentPair]) -> str:
    """A warning of pairs that are in both sets, or whose converses are, and test no direction; else empty."""
    crossing = leaks({"training": training, "measured": measured})
    if not crossing:
        return ""
    leaking = counted(crossing, "pair is", "pairs are")
    return (
        f"Warning: {leaking} in both the training and the measured files, unchanged or as the converse. Split "
        f"the files again with {Operation('split_entailments')}."
    )


Candidate = tuple[Atom, Atom]
"""Premise and hypothesis over the same variables."""


@checked
def count_entailment_candidates(rules: Library) -> int:
    """Number of pairs of predicates that `judge_entailments` asks about, with up to 8 sentences each."""
    return sum(1 for _ in candidates(rules))


def candidates(library: Library) -> Iterator[Candidate]:
    """All pairs of predicates whose arguments can be matched so that the premise's types are subtypes.

    Predicates without a template are left out, because a critic could not read them.
    """
    signatures = []
    for signature in library.completed().signatures:
        # Arithmetic decides what a computed predicate entails.
        is_asked = signature.kind is not PredicateKind.COMPUTED and signature.templates is not None
        if is_asked and signature.argument_types:
            signatures.append(signature)
    for premise, hypothesis in permutations(signatures, 2):
        if len(premise.argument_types) == len(hypothesis.argument_types):
            yield from _aligned(premise, hypothesis, library)


def _aligned(premise: PredicateSignature, hypothesis: PredicateSignature, library: Library) -> Iterator[Candidate]:
    names = [chr(ord("A") + number) for number in range(len(premise.argument_types))]
    variables = tuple(Variable(name, data_type) for name, data_type in zip(names, premise.argument_types, strict=True))
    for order in permutations(variables):
        types = [variable.data_type for variable in order]
        if all(map(library.is_subtype, types, hypothesis.argument_types)):
            yield Atom(premise.name, variables), Atom(hypothesis.name, order)


def score_candidates(pairs: Sequence[Candidate], library: Library, measure: Measure) -> list[Edge]:
    """The candidates with their scores: (1 + best P(yes) of a pattern - best P(yes) of an antipattern) / 2."""
    texts = []
    for premise, hypothesis in pairs:
        generic = [term.name for term in premise.arguments if isinstance(term, Variable)]
        words = [atom_text(atom, library, generic=generic) for atom in (premise, hypothesis)]
        texts.append(sentences(*words))
    edges = []
    for (premise, hypothesis), score in zip(pairs, best_difference(texts, measure), strict=True):
        edges.append(Edge(premise, hypothesis, round((score + 1) / 2, 6)))  # from [-1, 1] to [0, 1]
    return edges


@checked
def judge_entailments(
    kb: KnowledgeBase,
    rules: Library,
    options: ScorerOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    at_least: Annotated[float, Option("Ignore entailments with a lower score.", least=0, most=1)] = STRONG,
    budget: Budget | None = None,
) -> Evaluation[list[Edge]]:
    """Ask a model which predicates of the rules entail which, and store what has at least this score.

    The score is (1 + P(yes) of the best pattern - P(yes) of the best antipattern) / 2.
    """
    measure = ScorerSession(kb, options or ScorerOptions(), opening, budget).measure(CRITIC)
    pairs = list(candidates(rules))
    strong = [edge for edge in score_candidates(pairs, rules, measure) if edge.score >= at_least]
    # The strongest first, as the result lists them.
    strong.sort(key=lambda edge: -edge.score)
    store_entailments(kb, strong)
    columns = ("premise", "hypothesis", "score")
    rows = [(str(edge.premise), str(edge.hypothesis), edge.score) for edge in strong]
    figures = {"pairs": len(pairs), "entailments": [dict(zip(columns, row, strict=True)) for row in rows]}
    note = f"{len(strong)} of {counted(len(pairs), 'pair')} stored"
    return Evaluation(strong, [ResultTable("", columns, rows)], figures, notes=[note])
