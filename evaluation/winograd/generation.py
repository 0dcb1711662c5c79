"""Generation of concept-reversed schemas by analogy, and the gates that a new schema must pass."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

from hapax.evaluation.shared.result_tables import Evaluation, ResultTable
from hapax.evaluation.winograd.schema_asking import (
    ANALOGIES,
    AskSettings,
    PromptMethod,
    asking,
    paper_prompt,
    released_prompt,
)
from hapax.evaluation.winograd.schema_files import (
    Pair,
    WinogradItem,
    clause_with,
    core,
    occurs_in,
    options_as_named,
    read_pairs,
    replaced,
)
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, Seed, Temperature, from_options
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import DECISIONS, RUNS, Decision, RunRecord, content_id
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import Budget, BudgetReached
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator, JournaledLikelihood
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, LIKELIHOOD, GenerationParameters, GenerationRequest
from hapax.llm_oracle.reading.replies import read_reply
from hapax.llm_oracle.reading.reply_question import ReplyQuestion
from hapax.llm_oracle.registry import open_model, with_journal

EntityPair = tuple[str, str]

_QUESTION = ReplyQuestion("X", "Entity", "[X] is one of two entities")

# `The two sentences are`, after which the entities are used, not stated.
_SENTENCES = re.compile(r"\n\s*(?:the |these )?(?:two |analogous )*sentences\b", re.IGNORECASE)
# `- `, `1. `, `(a) `, `Entity 1: ` at the beginning of a line.
_LINE_MARK = re.compile(
    r"^\W*(?:\(?[\da-b][.)]\s*)?(?:(?:entity|object)\s*(?:[12ab]|one|two)\W*?[:–-]\s*)?", re.IGNORECASE
)
# `truck and sports car`, `truck - sports car`, `truck -> sports car`, `truck/sports car`, `truck | sports car`
_TOGETHER = re.compile(r"\s+(?:-|–|—|->|→|and|vs\.?)\s+|\s*[/:→|]\s*")
# `truck: it is slower`, `truck - which is slower`
_EXPLAINED = re.compile(r"\s*(?::|\s[-–—])\s+\w+\s.*$")
_BRACKET = re.compile(r"\s*\([^()]*\)")


def read_entities(reply: str) -> list[EntityPair]:
    """Pairs of entities that a reply states, in its order and without text in brackets; empty if there are none.

    A pair is one entry of the reply as the reader of lists finds them (`1. X and Y`, `1. X - Y`, a row of a table), or
    two entries, with or without an explanation.
    """
    stated = _SENTENCES.split(reply.replace("*", ""), maxsplit=1)[0]
    parts = [_cleaned(entry.raw) for entry in read_reply(stated, _QUESTION).entries if entry.rejected is None]
    splits = [_TOGETHER.split(part) for part in parts]
    if all(len(split) == 2 and len(split[1].split()) < 3 for split in splits):
        return [(_cleaned(first), _cleaned(second)) for first, second in splits]
    return [(_EXPLAINED.sub("", parts[0]), _EXPLAINED.sub("", parts[1]))] if len(parts) == 2 else []


def _cleaned(part: str) -> str:
    return _BRACKET.sub("", _LINE_MARK.sub("", part)).strip(" .,;:|\"'“”\t")


def associations(pairs: Sequence[Pair], model: JournaledLikelihood) -> list[float | None]:
    """Preference of the sentences' clauses for the wrong entity over the right one, in nats; None without a clause.

    For a sentence this is [log P(clause about wrong) - log P(wrong)] - [log P(clause about right) - log P(right)], the
    difference of two pointwise mutual informations, so that long and rare names have no influence. It is the mean of
    both sentences.
    """
    signed: list[list[tuple[str, int]]] = []
    for pair in pairs:
        signed.append([])
        for item, sign in product(pair, (1, -1)):
            entity = item.options[1 - item.answer if sign > 0 else item.answer]
            clause = clause_with(item, entity)
            if clause is None:
                signed[-1] = []
                break
            signed[-1] += [(clause, sign), (f"{entity[0].upper()}{entity[1:]}.", -sign)]
    distinct = list(dict.fromkeys(text for text, _ in chain.from_iterable(signed)))
    totals = {text: score.total for text, score in zip(distinct, model.log_likelihoods(distinct), strict=True)}
    return [sum(sign * totals[text] for text, sign in texts) / 2 if texts else None for texts in signed]


def critic_rights(pairs: Sequence[Pair], critic: JournaledCritic) -> list[int]:
    """Number of sentences of each pair (0 to 2) whose right meaning a critic finds likelier than the wrong one."""
    claims = []
    for item in chain.from_iterable(pairs):
        for option in (item.answer, 1 - item.answer):
            meaning = f"the word “{item.pronoun.lower()}” means {item.options[option]}"
            claims.append(f"In the sentence “{item.text}” {meaning}.")
    scores = [score.probability for score in critic.probabilities(claims)]
    # A right and a wrong claim for each of the two sentences, in the order in which they were asked.
    rights = [right > wrong for right, wrong in zip(scores[::2], scores[1::2], strict=True)]
    return [first + second for first, second in zip(rights[::2], rights[1::2], strict=True)]


COMMAND = "evaluate winograd generate"
ROLE, ASSOCIATION_ROLE, BASE_ROLE = "winograd generator", "winograd association", "winograd base"
RELEASED = "released"
REPLY_GATE, SENTENCE_GATE, ASSOCIATION = "winograd reply", "winograd template", "winograd association"
NON_LLM_PROOF = "winograd non-llm-proof"
"""Names of the gates in stored decisions."""

MOST_WORDS = 5
"""Words of the longest entity; longer texts describe the relation instead."""


@checked
@dataclass(frozen=True, slots=True)
class SchemaGenerationOptions:
    """Options of a generation."""

    model: str
    base: str
    likelihood: str
    source: Annotated[
        str | None, Option("Source to start from, such as WSC273; default: the first source of the file.")
    ] = None
    prompts: Annotated[
        tuple[str, ...],
        Option(
            "Analogy prompts: the paper's by number, or the one of the released transcripts.",
            name="prompt",
            choices=(*map(str, range(1, len(ANALOGIES) + 1)), "released"),
        ),
    ] = tuple(map(str, range(1, len(ANALOGIES) + 1)))
    base_method: Annotated[
        str,
        Option(
            "Prompting method for the base model; critic: it judges claims, as Flan-T5 can.",
            choices=("zero-shot", "one-shot", "winowhy", "zs-cot", "cot", "aot", "critic"),
        ),
    ] = PromptMethod.ZERO_SHOT.value
    threshold: Annotated[float, Option("Minimum preference for the wrong answer, in nats.", least=-1000, most=1000)] = (
        0.0
    )
    temperature: Temperature = 0.0
    limit: Annotated[int | None, Option("Maximum number of source pairs.", least=1)] = None
    seed: Seed = 0

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> SchemaGenerationOptions:
        """Build it from the options of the command line."""
        model = options["model"]
        models = (options["base"] or model, options["likelihood"] or model)
        return from_options(cls, options, model=model, base=models[0], likelihood=models[1])


@dataclass(slots=True)
class EntityProposal:
    """Two entities proposed for a source pair, with their scores. `pair`: the schema made with them.

    `base_right`: number of sentences that the base model answers right. `rejected`: reason, empty if accepted.
    """

    source: Pair
    entities: EntityPair | None
    call: str
    pair: Pair | None = None
    association: float | None = None
    base_right: int | None = None
    rejected: str = ""

    @property
    def id(self) -> str:
        # A reply without entities is identified by its call. Articles do not make another candidate.
        entities = self.entities or (self.call, "")
        return content_id("winograd candidate", self.source[0].text, self.source[1].text, *map(core, entities))


@dataclass(slots=True)
class Generated:
    """All candidates, accepted and rejected. `stopped`: message of the budget that ended the run."""

    sources: int
    candidates: list[EntityProposal] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    stopped: str | None = None

    @property
    def accepted(self) -> list[EntityProposal]:
        """The candidates that no gate has rejected."""
        return [made for made in self.candidates if made.pair is not None and not made.rejected]

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of source pairs, candidates, rejected candidates by reason, and new pairs."""
        reasons = Counter(candidate.rejected for candidate in self.candidates if candidate.rejected)
        left_out = {f"left out: {reason}": count for reason, count in sorted(reasons.items())}
        sizes = {"source pairs": self.sources, "candidates": len(self.candidates)}
        return {**sizes, **left_out, "pairs made": len(self.accepted)}

    def evaluation(self) -> Evaluation[Generated]:
        """The counts, and every candidate with its scores."""
        candidates = []
        for candidate in self.candidates:
            candidates.append(
                {
                    "source": candidate.source[0].pair,
                    "entities": candidate.entities or (),
                    "sentences": [item.text for item in candidate.pair or ()],
                    "association": candidate.association,
                    "base_right": candidate.base_right,
                    "rejected": candidate.rejected or None,
                }
            )
        table = ResultTable("", ("", "count"), list(self.counts.items()))
        return Evaluation(self, [table], {"counts": self.counts, "candidates": candidates, "stopped": self.stopped})

    def lines(self) -> Iterator[str]:
        """The new pairs as lines of JSONL, which `evaluate winograd data` and `ask` can read."""
        for number, candidate in enumerate(self.accepted):
            scores = {"association": candidate.association, "base_right": candidate.base_right}
            for item in candidate.pair or ():
                # Numbered anew: several pairs come from one source pair, whose name they still have.
                row = replace(item, pair=str(number)).to_json()
                yield json.dumps({**row, **scores}, ensure_ascii=False) + "\n"


@checked
def generate_schemas(
    kb: KnowledgeBase,
    path: str | Path,
    options: SchemaGenerationOptions,
    opening: OpeningOptions | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[str], None] | None = None,
) -> Evaluation[Generated]:
    """Make a concept-reversed set from a file of schemas, and store every decision with its score.

    `opening`: as for `ask_schemas`. `write_schemas` writes the set, unless its `value.stopped` names a budget.
    `progress` is called with the step that begins.
    """
    opening, journal = with_journal(kb, opening, budget)
    pairs = read_pairs([path])
    source = options.source or pairs[0][0].source if pairs else ""
    pairs = [pair for pair in pairs if pair[0].source == source][: options.limit]
    if not pairs:
        raise HapaxError(
            f"{path}: no pairs of {source or 'any source'} to start from.",
            Remedy("Name another {}.", Setting("options.source")),
        )
    numbers = {name: str(getattr(options, name)) for name in ("threshold", "temperature")}
    settings = {**asdict(options), "prompts": list(options.prompts), **numbers, "file": Path(path).name}
    # The texts are part of the identity, so a changed file starts a new run.
    run_id = content_id(COMMAND, settings, [[first.text, second.text] for first, second in pairs])
    kb.add(RUNS, [RunRecord.now(run_id, COMMAND, settings)])
    generated = Generated(len(pairs))
    show, gates = progress or (lambda _: None), _SchemaGates(options, opening, journal, run_id, generated)
    try:
        show("Asking for analogous entities")
        gates.propose(pairs)
        show("Measuring associations")
        gates.associate()
        show("Asking the base model")
        gates.ask_base()
    except BudgetReached as reached:
        generated.stopped = str(reached)
        # The budget ended a gate midway; a pair that no gate has rejected yet is not accepted.
        for candidate in generated.candidates:
            candidate.rejected = candidate.rejected or "not judged: the budget was reached"
    with kb.transaction():
        kb.add(DECISIONS, generated.decisions)
        kb.finish_run(run_id, "budget" if generated.stopped else "done", {"counts": generated.counts})
    return generated.evaluation()


@dataclass
class _SchemaGates:
    """Proposes pairs, and applies the gates that a new pair must pass. Rejected candidates cost no calls."""

    options: SchemaGenerationOptions
    opening: OpeningOptions
    journal: Journal
    run_id: str
    generated: Generated

    def _decide(
        self,
        gate: str,
        verdicts: Iterable[tuple[EntityProposal, str, float | None]],
        passes: str = "",
        threshold: float | None = None,
    ) -> None:
        """Store a gate's verdicts: candidates with the reason of a rejection, if any, and the score.

        `passes`: reason of an acceptance.
        """
        for candidate, rejected, score in verdicts:
            candidate.rejected = rejected
            texts = " / ".join(item.text for item in candidate.pair or candidate.source)
            reason = ": ".join(filter(None, (rejected or passes, texts)))
            decision = Decision(self.run_id, gate, candidate.id, not rejected, score, threshold, reason)
            self.generated.decisions.append(decision)

    def propose(self, pairs: Sequence[Pair]) -> None:
        """Candidates from the model's replies. A repeated pair of entities for one source pair is rejected."""
        options, candidates = self.options, self.generated.candidates
        model = open_model(options.model, KNOWLEDGE, self.opening)
        generator = JournaledGenerator(model, self.journal, role=ROLE)
        # 256 tokens: an explanation, the two entities and two sentences, as in the examples of the prompts.
        parameters = GenerationParameters(options.temperature, max_tokens=256, seed=options.seed)
        asked, requests = list(product(pairs, options.prompts)), []
        for pair, name in asked:
            requests.append(
                GenerationRequest(released_prompt(pair) if name == RELEASED else paper_prompt(pair, int(name)))
            )
        replies = generator.generate(requests, parameters)
        seen: set[str] = set()
        for (pair, _), call, reply in zip(asked, generator.call_ids(requests, parameters), replies, strict=True):
            entity_pairs = read_entities(reply.text)
            if not entity_pairs:
                candidates.append(EntityProposal(pair, None, call))
                self._decide(REPLY_GATE, [(candidates[-1], "the reply states no two entities", None)])
            for proposed in entity_pairs:
                # Each entity takes the place of the option with the same number.
                named = zip(proposed, pair[0].options, strict=True)
                first, second = (_with_article(entity, reply.text, option) for entity, option in named)
                candidate = EntityProposal(pair, (first, second), call)
                # Without articles (`EntityProposal.id`), and across the prompts of one source pair.
                rejected = "proposed before" if candidate.id in seen else _unfit(pair, (first, second))
                seen.add(candidate.id)
                if not rejected:
                    candidate.pair = _instance(pair[0], (first, second)), _instance(pair[1], (first, second))
                candidates.append(candidate)
                self._decide(SENTENCE_GATE, [(candidate, rejected, None)])

    def associate(self) -> None:
        """Apply the inverted likelihood gate: the wrong entity must be the more associated one."""
        candidates = self.generated.accepted
        if not candidates:
            return
        model, threshold = open_model(self.options.likelihood, LIKELIHOOD, self.opening), self.options.threshold
        likelihood, verdicts = JournaledLikelihood(model, self.journal, role=ASSOCIATION_ROLE), []
        scores = associations([made.pair for made in candidates if made.pair], likelihood)
        for candidate, score in zip(candidates, scores, strict=True):
            candidate.association, rejected = score, ""
            if score is None:
                rejected = "no clause of a sentence holds the pronoun"
            elif score < threshold:
                rejected = "the right answer is the associated one"
            verdicts.append((candidate, rejected, score))
        self._decide(ASSOCIATION, verdicts, "the wrong answer is favoured", threshold)

    def ask_base(self) -> None:
        """Apply the inverted critic gate: a base model must fail on at least one of the two sentences."""
        options, candidates = self.options, self.generated.accepted
        pairs = [candidate.pair for candidate in candidates if candidate.pair]
        if not pairs:
            return
        if options.base_method == CRITIC:
            critic = open_model(options.base, CRITIC, self.opening)
            rights = critic_rights(pairs, JournaledCritic(critic, self.journal, role=BASE_ROLE))
        else:
            model = open_model(options.base, KNOWLEDGE, self.opening)
            settings = AskSettings(PromptMethod(options.base_method), seed=options.seed)
            rights = [answer.right for answer in asking(model, self.journal, settings)(pairs)]
        verdicts = []
        for candidate, right in zip(candidates, rights, strict=True):
            candidate.base_right = right
            # The score is the share of sentences that the base model fails on.
            rejected = "the base model answers both sentences right" if right == 2 else ""
            verdicts.append((candidate, rejected, 1 - right / 2))
        self._decide(NON_LLM_PROOF, verdicts, "the base model fails", 0.5)


def _instance(item: WinogradItem, entities: EntityPair) -> WinogradItem:
    """The source's sentence with these entities. The label stays, since the reasoning of the template stays."""
    text = replaced(item.text, options_as_named(item) or item.options, entities)
    return replace(item, text=text, options=entities, pronoun_start=None)


def _with_article(entity: str, reply: str, option: str) -> str:
    """The entity with the article that the reply's own sentences give it.

    If these sentences lack the entity, it gets an article where the option that it replaces has one.
    """
    bare, article = core(entity), "The" if option[0].isupper() else "the"
    if bare != entity:
        return f"{article} {bare}"
    # The reply's own sentences tell whether a noun or a name is meant.
    used = re.search(rf"\b(?:the|an?|my|his|her|that|this)\s+({re.escape(bare)})(?!\w)", reply, re.IGNORECASE)
    if used is not None:
        return f"{article} {used[1]}"
    # Inside a sentence and without an article, it is used like a name.
    named = re.search(rf"(?<=[a-z,] ){re.escape(bare)}(?!\w)", reply)
    return bare if named or core(option) == option else f"{article} {bare[0].lower()}{bare[1:]}"


def _unfit(source: Pair, entities: EntityPair) -> str:
    """Reason why the entities do not fit into the template; empty if they do."""
    cores = [core(entity).casefold() for entity in entities]
    if cores[0] == cores[1]:
        return "both entities are one"
    if any(len(entity.split()) > MOST_WORDS or "\n" in entity for entity in cores):
        return "an entity is a whole description"
    for item in source:
        if options_as_named(item) is None:
            return "the source sentence does not name both entities by its options"
        if any(occurs_in(entity, item.text) for entity in cores):
            return "an entity is in the source sentence already"
    return ""
