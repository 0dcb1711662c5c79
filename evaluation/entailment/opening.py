"""Scorers by name, with the options that they need, and the entailments that they find between predicates of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, permutations
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import Edge, store_entailments
from hapax.evaluation.entailment import scorers
from hapax.evaluation.entailment.datasets import leaks, read_splits
from hapax.evaluation.entailment.pairs import EntailmentPair
from hapax.evaluation.entailment.scorers import Direction, Measure, VisibleSides, best_difference, sentences
from hapax.grammar.arguments import ArgumentRejected, checked
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option
from hapax.grammar.remedies import Operation, Setting
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.writing.verbalize import atom_text
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import FREE, Budget
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledLikelihood
from hapax.llm_oracle.protocols import CRITIC
from hapax.llm_oracle.registry import open_model, with_journal

SCORERS = "critic, likelihood, encoder, random, frequency, prior, scores:FILE[+TWIN], graph:PATH[@SIMILARITY]"
"""Names of scorers."""

BATCH = 512
"""Sentences between two calls of `progress`."""

Patterns = Literal["directional", "symmetric", "original"]


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
    """Opens scorers by name. Models are opened when a scorer needs one, and their answers stay in the journal.

    `notes`: what scorers could not do, for the report.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        options: ScorerOptions,
        opening: OpeningOptions | None,
        budget: Budget | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """`progress` is called with the sentences done and their number, for each scorer anew."""
        self.options = options
        self._progress = progress
        self.notes: list[str] = []
        self._opening, self._journal = with_journal(kb, opening, budget)
        self.seed = self._opening.seed

    def scorer(self, name: str) -> scorers.EntailmentScorer:
        """The scorer of this name. Raises ArgumentRejected for an unknown name or a missing option."""
        without_model = self._without_model(name)
        if without_model is not None:
            return without_model
        if name in ("critic", "likelihood"):
            direction = Direction(self.options.patterns)
            scores = partial(scorers.pattern_scores, measure=self.measure(name), direction=direction)
            return scorers.FunctionScorer(f"{name} {self.options.model}", scores)
        if name == "encoder":
            return self._encoder()
        raise ArgumentRejected(f"There is no scorer {name}. Choose {SCORERS}.")

    def measure(self, role: str) -> scorers.Measure:
        """The model's P(yes) of sentences (role critic), or their log-likelihood per token in nats."""
        model = open_model(self.options.model, role, self._opening)
        if role == CRITIC:
            critic = JournaledCritic(model, self._journal)
            return self._in_batches(lambda texts: [answer.probability for answer in critic.probabilities(texts)])
        return self._in_batches(_per_token(JournaledLikelihood(model, self._journal)))

    def _in_batches(self, measure: scorers.Measure) -> scorers.Measure:
        """The measure, taken batch by batch, so that progress shows and a budget ends between batches."""
        if self._progress is None:
            return measure
        progress = self._progress

        def measured(texts: Sequence[str]) -> list[float]:
            numbers: list[float] = []
            for start in range(0, len(texts), BATCH):
                numbers += measure(texts[start : start + BATCH])
                progress(len(numbers), len(texts))
            return numbers

        return measured

    def _without_model(self, name: str) -> scorers.EntailmentScorer | None:
        """A scorer that asks no model; None for other names."""
        kind, _, argument = name.partition(":")
        if name == "random":
            return scorers.FunctionScorer(name, partial(scorers.random_scores, seed=self.seed))
        if name in ("frequency", "prior"):
            if not self.options.training:
                raise ArgumentRejected(
                    f"{Setting('options.scorers')} {name} counts training pairs: name their files with "
                    f"{Setting('options.training')}."
                )
            pairs = self.options.training_pairs
            if name == "frequency":
                scores = partial(scorers.frequency_scores, corpus=pairs)
            else:
                scores = partial(scorers.prior_scores, training=pairs)
            return scorers.FunctionScorer(name, scores, VisibleSides.HYPOTHESIS)
        if kind == "scores" and argument:
            path, _, twin = argument.partition("+")  # as in scores:WHOLE+ALONE
            return scorers.FileScorer(Path(path), Path(twin) if twin else None)
        if kind == "graph" and argument:
            from hapax.evaluation.entailment.published_graphs import GraphScorer

            path, _, block = argument.partition("@")  # as in graph:PATH@SIMILARITY
            return GraphScorer(path, block)
        return None

    def _encoder(self) -> scorers.EntailmentScorer:
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
        scores = partial(scorers.likeness_scores, measure=measure, marks=(OPEN, CLOSE))
        return scorers.FunctionScorer(f"encoder {source}", scores)


def _per_token(ranker: JournaledLikelihood) -> scorers.Measure:
    return lambda texts: [likelihood.per_token for likelihood in ranker.log_likelihoods(texts)]


def leak_warning(training: Sequence[EntailmentPair], measured: Sequence[EntailmentPair]) -> str:
    """A warning of pairs that are in both sets, or whose converses are, and test no direction; else empty."""
    from hapax.grammar.writing.words import counted

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


@dataclass(frozen=True)
class EntailmentsJudged:
    """Outcome of `judge_entailments`: the number of pairs of predicates, and the stored edges, the strongest first."""

    pairs: int
    edges: tuple[Edge, ...]

    def to_json(self) -> dict[str, Any]:
        """The pairs and edges as a JSON object."""
        entailments = []
        for edge in self.edges:
            atoms = {"premise": str(edge.premise), "hypothesis": str(edge.hypothesis)}
            entailments.append({**atoms, "score": edge.score})
        return {"pairs": self.pairs, "entailments": entailments}


@checked
@extras_named()
def judge_entailments(
    kb: KnowledgeBase,
    rules: Library,
    options: ScorerOptions | None = None,
    opening: OpeningOptions | None = None,
    *,
    at_least: float = STRONG,
    budget: Budget | None = None,
) -> EntailmentsJudged:
    """Ask a model which predicates of the rules entail which, and store what has at least this score.

    The score is (1 + P(yes) of the best pattern - P(yes) of the best antipattern) / 2.
    """
    measure = ScorerSession(kb, options or ScorerOptions(), opening, budget).measure(CRITIC)
    pairs = list(candidates(rules))
    strong = [edge for edge in score_candidates(pairs, rules, measure) if edge.score >= at_least]
    # The strongest first, as the result lists them.
    strong.sort(key=lambda edge: -edge.score)
    store_entailments(kb, strong)
    return EntailmentsJudged(len(pairs), tuple(strong))
