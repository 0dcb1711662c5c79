"""Predicates of a rule library and entailments: judged by a critic, and linked to those of stored graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, permutations
from pathlib import Path
from typing import Annotated, Any

from hapax.engine.entailment import STRONG
from hapax.engine.entailment.graph import Edge, StoredEdges, store_entailments
from hapax.engine.expansion.propose import Proposal
from hapax.engine.expansion.review import ACCEPT, REJECT, WAITING, ReviewedProposal, ReviewSheet
from hapax.engine.withdrawal import retract
from hapax.evaluation.entailment.lexicon import Lexicon
from hapax.evaluation.entailment.opening import ScorerOptions, ScorerSession
from hapax.evaluation.entailment.scorers import Measure, best_difference, sentences
from hapax.grammar.arguments import ArgumentRejected, checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.options import Option, check_ranges
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature
from hapax.grammar.terms import Atom, Variable
from hapax.grammar.verbalize import atom_text
from hapax.grammar.words import counted
from hapax.kb.records import content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget
from hapax.llm_oracle.protocols import CRITIC

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


REVIEWED = 1.0
"""Score of an entailment that a person has accepted."""

_AUXILIARIES = frozenset({"be", "have", "has", "do", "does"})
"""Lemmas at the beginning of a name that say nothing of the event: `has_shopped_in`, `does_write`."""


@checked
@dataclass(frozen=True)
class LinkOptions:
    """Options of linking. `encoder`: a checkpoint such as `hf:all-MiniLM-L6-v2`; empty: by name and lemmas alone.

    `at_least`: lowest cosine of the words of two names. `most`: links that an encoder proposes for a predicate.
    """

    encoder: Annotated[str, Option("Also propose names with near vectors, by a checkpoint: hf:NAME_OR_PATH.")] = ""
    # A cosine may be negative.
    at_least: Annotated[float, Option("Lowest cosine that an encoder proposes.", least=-1, most=1)] = 0.6
    most: Annotated[int, Option("Most links by an encoder for a predicate.", least=1)] = 3

    def __post_init__(self) -> None:
        check_ranges(self)
        kind, _, source = self.encoder.partition(":")
        if self.encoder and (kind != "hf" or not source):
            raise ArgumentRejected(f"There is no encoder {self.encoder}. Give hf:NAME_OR_PATH.")


@dataclass(frozen=True)
class PredicateLinks:
    """Outcome of linking: rows of the sheet by decision, and the entailments that are stored and withdrawn by them."""

    proposed: int
    waiting: int
    accepted: int
    rejected: int
    stored: int
    withdrawn: int
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All counts as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ProposedLink:
    """A predicate of the rules and a name among the stored entailments that may mean the same."""

    signature: PredicateSignature
    name: str
    method: str
    similarity: float

    @property
    def rules(self) -> str:
        """The two entailments, one line each."""
        arguments = ", ".join(
            f"{data_type} {chr(ord('A') + number)}" for number, data_type in enumerate(self.signature.argument_types)
        )
        atoms = f"{self.signature.name}({arguments})", f"{self.name}({arguments})"
        return f"{atoms[0]} -> {atoms[1]}\n{atoms[1]} -> {atoms[0]}"

    @property
    def proposal(self) -> Proposal:
        """The link as a row of a sheet, the same for the same two names."""
        columns = {"predicate": self.signature.name, "entailments": self.name, "method": self.method}
        identity = content_id("predicate link", self.signature.indicator, self.name)[:12]
        return Proposal(identity, "", "", Library(), columns={**columns, "similarity": f"{self.similarity:.3f}"})


@checked
@extras_named()
def link_predicates(
    kb: KnowledgeBase, rules: Library, sheet: str | Path, options: LinkOptions | None = None
) -> PredicateLinks:
    """Link predicates of the rules to those of stored entailments, by a sheet (CSV or JSONL) in which people decide.

    Each call adds the links that the sheet lacks, stores the accepted ones as entailments both ways, and withdraws
    those that were accepted before and are rejected now. Lemmas need the extra `wordnet`, an encoder the extra `local`.
    Raises HapaxError for a sheet that cannot be read, with the place of the faulty row.
    """
    path, options = Path(sheet), options or LinkOptions()
    review = ReviewSheet(path)
    notes: list[str] = []
    before = len(review.rows)
    own = {signature.name: signature for signature in rules.completed().signatures if _can_be_linked(signature)}
    stored_names = StoredEdges(kb).names()
    # A name that rules and entailments share needs no link.
    for link in _proposed(own, sorted(stored_names - own.keys()), options, notes):
        review.add(link.proposal, "linked", link.rules, "")
    accepted = list(chain.from_iterable(_edges(row, path) for row in review.decided(ACCEPT)))
    rejected = list(chain.from_iterable(_edges(row, path) for row in review.decided(REJECT)))
    review.write()
    decided = {edge.fact.id: edge for edge in (*rejected, *accepted)}
    stored = kb.facts_by_id(decided).keys()
    added = [edge for edge in accepted if edge.fact.id not in stored]
    store_entailments(kb, added)
    # Two links can give the same edge; if one of them is accepted, it stays.
    gone = sorted(stored - {edge.fact.id for edge in accepted})
    if gone:
        retract(gone, rules, kb, reason=f"its link is rejected in {path.name}")
    same = len(own.keys() & stored_names)
    if same:
        notes.append(f"entailments under their own names: {counted(same, 'predicate')} of the rules")
    return PredicateLinks(
        len(review.rows) - before,
        len(review.decided(WAITING)),
        len(review.decided(ACCEPT)),
        len(review.decided(REJECT)),
        len(added),
        len(gone),
        tuple(notes),
    )


def _can_be_linked(signature: PredicateSignature) -> bool:
    """Arithmetic decides what a computed predicate entails; graphs have predicates of two arguments."""
    return signature.kind is not PredicateKind.COMPUTED and len(signature.argument_types) == 2


def _edges(row: ReviewedProposal, path: Path) -> Iterator[Edge]:
    for line in row.rules.splitlines():
        if line.strip():
            premise, arrow, hypothesis = line.partition("->")
            if not arrow:
                raise HapaxError(
                    f"{path}: link {row.proposal}: {line[:60]!r} is not an entailment. Write ATOM -> ATOM."
                )
            yield Edge.of(premise.strip(), hypothesis.strip(), REVIEWED)


# --- proposals --------------------------------------------------------------------------------------------------------


def _proposed(
    own: Mapping[str, PredicateSignature], names: Sequence[str], options: LinkOptions, notes: list[str]
) -> Iterator[ProposedLink]:
    """Names with the same lemmas as a predicate, then those whose words an encoder finds near."""
    same = _by_lemmas(own, names, notes)
    for predicate, alike in same.items():
        for name in alike:
            yield ProposedLink(own[predicate], name, "lemmas", 1.0)
    if options.encoder and own and names:
        for predicate, near in _by_encoder(list(own), names, options).items():
            for name, cosine in near:
                if name not in same.get(predicate, ()):
                    yield ProposedLink(own[predicate], name, "encoder", cosine)


def _by_lemmas(own: Iterable[str], names: Iterable[str], notes: list[str]) -> dict[str, list[str]]:
    """Names with the lemmas of a predicate, by predicate."""
    try:
        lexicon = Lexicon.open()
    except HapaxError as missing:
        notes.append(f"names were not compared by lemmas: {missing}")
        return {}

    def lemmas(name: str) -> tuple[str, ...]:
        words = lexicon.words(name)
        # The last word stays, so that `has` itself does not become empty.
        while len(words) > 1 and words[0] in _AUXILIARIES:
            words = words[1:]
        return words

    by_lemmas: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in names:
        by_lemmas[lemmas(name)].append(name)
    return {predicate: by_lemmas[lemmas(predicate)] for predicate in own if lemmas(predicate) in by_lemmas}


def _by_encoder(own: Sequence[str], names: Sequence[str], options: LinkOptions) -> dict[str, list[tuple[str, float]]]:
    """The names nearest to each predicate, with their cosines."""
    with extras_named():
        from hapax.llm_oracle.backends.encoder import EncoderSimilarity
    encoder = EncoderSimilarity.load(options.encoder.partition(":")[2])
    nearest = encoder.nearest([_words(name) for name in own], [_words(name) for name in names], options.most)
    found = {}
    for predicate, candidates in zip(own, nearest, strict=True):
        found[predicate] = [(names[place], cosine) for place, cosine in candidates if cosine >= options.at_least]
    return found


def _words(name: str) -> str:
    return name.removeprefix("does_").replace("_", " ")
