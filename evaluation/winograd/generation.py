"""New concept-reversed schemas from old ones: propose by analogy, instantiate, and let through what is adversarial."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evaluation.winograd import gating
from evaluation.winograd.analogies import ANALOGIES, EntityPair, paper_prompt, read_entities, released_prompt
from evaluation.winograd.asking import AskSettings, asking
from evaluation.winograd.data import Pair, core, pairs_of, read_file, replaced, stands_in
from evaluation.winograd.prompts import Method
from grammar.errors import HapaxError
from kb.records import Decision, RunRecord, content_id
from kb.store import KnowledgeBase
from llm_oracle.calls import (
    CRITIC,
    KNOWLEDGE,
    LIKELIHOOD,
    BudgetReached,
    Journal,
    JournaledCritic,
    JournaledGenerator,
    JournaledLikelihood,
)
from llm_oracle.protocols import GenerationParameters, GenerationRequest
from llm_oracle.registry import OpeningOptions, open_model

COMMAND = "evaluate winograd generate"
ROLE, ASSOCIATION_ROLE, BASE_ROLE = "winograd generator", "winograd association", "winograd base"
RELEASED = "released"
SENTENCE_GATE, REPLY_GATE = "winograd template", "winograd reply"
MOST_WORDS = 8
"""Of an entity; what is longer is a description of the relation."""


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """What a generation is told.

    `base_method`: a single-prompt method, or `critic`, the one role that models such as Flan-T5 have here. `threshold`:
    nats by which the wrong answer must be favoured at least. `share` and `most`: how much of what passes
    is kept of each source pair, the most adversarial first.
    """

    model: str
    base: str
    likelihood: str
    source: str | None = None
    prompts: tuple[str, ...] = tuple(map(str, range(1, len(ANALOGIES) + 1)))
    base_method: str = Method.ZERO_SHOT.value
    threshold: float = 0.0
    share: float = 1.0
    most: int = 5
    temperature: float = 0.0
    limit: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> GenerateOptions:
        """From the options of the command line."""
        model = options["model"]
        same = {
            name: options[name] for name in ("source", "threshold", "share", "most", "temperature", "limit", "seed")
        }
        return cls(
            model,
            options["base"] or model,
            options["likelihood"] or model,
            prompts=options["prompts"],
            base_method=options["base_method"],
            **same,
        )

    def to_json(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__}
        return {
            **told,
            "prompts": list(self.prompts),
            **{n: str(told[n]) for n in ("threshold", "share", "temperature")},
        }


@dataclass(slots=True)
class Candidate:
    """Two entities proposed for a source pair, and what became of them. `pair`: the schema made with them."""

    source: Pair
    entities: EntityPair | None
    call: str
    pair: Pair | None = None
    association: float | None = None
    base_right: int | None = None
    rejected: str = ""

    @property
    def id(self) -> str:
        entities = self.entities or (self.call, "")
        return content_id("winograd candidate", self.source[0].text, self.source[1].text, *map(core, entities))

    @property
    def texts(self) -> str:
        return " / ".join(item.text for item in self.pair or self.source)


@dataclass(slots=True)
class Generated:
    """All candidates with their fate. `stopped`: what the budget says, if it ended the run."""

    sources: int
    candidates: list[Candidate] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    stopped: str | None = None

    @property
    def accepted(self) -> list[Candidate]:
        return [one for one in self.candidates if one.pair is not None and not one.rejected]

    def counts(self) -> list[tuple[str, int]]:
        """Source pairs, candidates, why candidates were left out, and what is left."""
        reasons = Counter(one.rejected for one in self.candidates if one.rejected)
        return [
            ("source pairs", self.sources),
            ("candidates", len(self.candidates)),
            *((f"left out: {reason}", count) for reason, count in sorted(reasons.items())),
            ("pairs made", len(self.accepted)),
        ]

    def to_json(self) -> dict[str, Any]:
        """The counts, and every candidate with its scores and fate."""
        told = [
            {
                "source": one.source[0].pair,
                "entities": list(one.entities or ()),
                "sentences": [item.text for item in one.pair or ()],
                "association": one.association,
                "base_right": one.base_right,
                "rejected": one.rejected or None,
            }
            for one in self.candidates
        ]
        return {"counts": dict(self.counts()), "candidates": told, "stopped": self.stopped}

    def lines(self) -> Iterator[str]:
        """The new set as JSONL: what `evaluate winograd data` and `ask` read."""
        for number, one in enumerate(self.accepted):
            scores = {"association": one.association, "base_right": one.base_right}
            for item in one.pair or ():
                row = replace(item, pair=str(number)).to_json()
                yield json.dumps({**row, **scores}, ensure_ascii=False) + "\n"


class GenerateSession:
    """A WSC file of which a concept-reversed set is made. The gates run in the order of `_gates`."""

    def __init__(self, kb: KnowledgeBase, options: GenerateOptions, opening: OpeningOptions, journal: Journal) -> None:
        self._kb, self._options, self._opening, self._journal = kb, options, opening, journal

    def generate(self, path: Path, progress: Callable[[str], None] | None = None) -> Generated:
        """Propose, instantiate and gate, as far as the budget goes; decisions are stored with their scores."""
        told = progress or (lambda _: None)
        pairs = self._sources(path)
        record = self._record(path, pairs)
        self._kb.start_run(record)
        made = Generated(len(pairs))
        try:
            told("Asking for analogous entities")
            made.candidates = self._proposed(pairs)
            _instantiate(made.candidates)
            told("Measuring associations")
            self._associate(made, record.id)
            told("Asking the base model")
            self._ask_base(made, record.id)
            self._keep_share(made, record.id)
        except BudgetReached as reached:
            made.stopped = str(reached)
        for one in made.candidates:
            if made.stopped and not one.rejected:
                one.rejected = "not judged: the budget was reached"
        with self._kb.transaction():
            self._kb.add_decisions([*_structural(made.candidates, record.id), *made.decisions])
            self._kb.finish_run(record.id, "budget" if made.stopped else "done", {"counts": dict(made.counts())})
        return made

    def _sources(self, path: Path) -> list[Pair]:
        pairs = pairs_of(read_file(path).items)
        wanted = self._options.source or pairs[0][0].source if pairs else ""
        chosen = [pair for pair in pairs if pair[0].source == wanted][: self._options.limit]
        if not chosen:
            raise HapaxError(f"{path}: no pairs of {wanted or 'any source'} to start from. Name another --source.")
        return chosen

    def _record(self, path: Path, pairs: Sequence[Pair]) -> RunRecord:
        told = {**self._options.to_json(), "file": path.name}
        identity = content_id(COMMAND, told, [[item.text for item in pair] for pair in pairs])
        return RunRecord(identity, COMMAND, told, identity, datetime.now(UTC).isoformat(timespec="milliseconds"))

    def _proposed(self, pairs: Sequence[Pair]) -> list[Candidate]:
        """What the model proposes, each pair of entities once for each source pair."""
        options = self._options
        model = open_model(options.model, KNOWLEDGE, self._opening)
        generator = JournaledGenerator(model, self._journal, role=ROLE)
        parameters = GenerationParameters(options.temperature, max_tokens=256, seed=options.seed)
        asked = [(pair, name) for pair in pairs for name in options.prompts]
        requests = [GenerationRequest(_prompt(pair, name)) for pair, name in asked]
        calls = generator.call_ids(requests, parameters)
        candidates: list[Candidate] = []
        seen: set[str] = set()
        for (pair, _), call, reply in zip(asked, calls, generator.generate(requests, parameters), strict=True):
            stated = read_entities(reply.text)
            if not stated:
                candidates.append(Candidate(pair, None, call, rejected="the reply states no two entities"))
            for entities in stated:
                candidate = Candidate(pair, _as_used(entities, reply.text, pair), call)
                if candidate.id in seen:
                    candidate.rejected = "proposed before"
                seen.add(candidate.id)
                candidates.append(candidate)
        return candidates

    def _associate(self, made: Generated, run_id: str) -> None:
        """The likelihood gate turned round: the wrong entity must go better with what is said."""
        waiting = made.accepted
        if not waiting:
            return
        model = open_model(self._options.likelihood, LIKELIHOOD, self._opening)
        likelihood = JournaledLikelihood(model, self._journal, role=ASSOCIATION_ROLE)
        scores = gating.associations([one.pair for one in waiting if one.pair is not None], likelihood)
        threshold = self._options.threshold
        for one, score in zip(waiting, scores, strict=True):
            one.association = None if score is None else score.mean
            if one.association is None:
                one.rejected = "no clause of a sentence holds the pronoun"
            elif one.association < threshold:
                one.rejected = "the right answer is the associated one"
            made.decisions.append(
                _decision(run_id, gating.ASSOCIATION, one, (one.association, threshold), "the wrong answer is favoured")
            )

    def _ask_base(self, made: Generated, run_id: str) -> None:
        """The critic's gate turned round: a base model must fail on one of the two sentences at least."""
        waiting = made.accepted
        if not waiting:
            return
        rights = self._base_rights([one.pair for one in waiting if one.pair is not None])
        for one, right in zip(waiting, rights, strict=True):
            one.base_right = right
            if right == 2:
                one.rejected = "the base model answers both sentences right"
            made.decisions.append(
                _decision(run_id, gating.NON_LLM_PROOF, one, (1 - right / 2, 0.5), "the base model fails")
            )

    def _base_rights(self, pairs: Sequence[Pair]) -> list[int]:
        if self._options.base_method == CRITIC:
            critic = open_model(self._options.base, CRITIC, self._opening)
            return gating.critic_rights(pairs, JournaledCritic(critic, self._journal, role=BASE_ROLE))
        model = open_model(self._options.base, KNOWLEDGE, self._opening)
        settings = AskSettings(Method(self._options.base_method), seed=self._options.seed)
        return gating.base_rights(pairs, asking(model, self._journal, settings))

    def _keep_share(self, made: Generated, run_id: str) -> None:
        """Of each source pair the most adversarial share."""
        by_source: dict[str, list[Candidate]] = {}
        for one in made.accepted:
            by_source.setdefault(one.source[0].pair, []).append(one)
        for several in by_source.values():
            scores = [one.association or 0.0 for one in several]
            options = self._options
            stay = gating.keep_most_adversarial(scores, [one.id for one in several], options.share, options.most)
            for place, one in enumerate(several):
                if place not in stay:
                    one.rejected = "more adversarial ones of its source pair are kept"
                    made.decisions.append(_decision(run_id, gating.SHARE, one, (one.association, None), ""))


def _prompt(pair: Pair, name: str) -> str:
    return released_prompt(pair) if name == RELEASED else paper_prompt(pair, int(name))


def _as_used(entities: EntityPair, reply: str, pair: Pair) -> EntityPair:
    """The entities with the article that they need, as the reply's own sentences use them.

    Where it has none, what stands for a thing with an article is one, and what stands for a name is a name.
    """
    one, other = (_one_as_used(entity, reply, option) for entity, option in zip(entities, pair[0].options, strict=True))
    return one, other


def _one_as_used(entity: str, reply: str, option: str) -> str:
    bare, article = core(entity), "The" if option[0].isupper() else "the"
    if bare != entity:
        return f"{article} {bare}"
    used = re.search(rf"\b(?:the|an?|my|his|her|that|this)\s+({re.escape(bare)})(?!\w)", reply, re.IGNORECASE)
    if used is not None:
        return f"{article} {used[1]}"
    named = re.search(rf"(?<=[a-z,] ){re.escape(bare)}(?!\w)", reply)
    return bare if named or core(option) == option else f"{article} {bare[0].lower()}{bare[1:]}"


def _instantiate(candidates: Sequence[Candidate]) -> None:
    """Put the entities into the source's sentences. Labels stay: the reasoning is the template's."""
    for one in candidates:
        if one.rejected or one.entities is None:
            continue
        one.rejected = _unfit(one.source, one.entities)
        if not one.rejected:
            first, second = (
                replace(item, text=replaced(item.text, item.options, one.entities), options=one.entities)
                for item in one.source
            )
            one.pair = first, second


def _unfit(source: Pair, entities: EntityPair) -> str:
    """Why the entities do not go into the template; empty if they do."""
    cores = [core(entity).casefold() for entity in entities]
    if cores[0] == cores[1]:
        return "both entities are one"
    if any(len(each.split()) > MOST_WORDS or "\n" in each for each in cores):
        return "an entity is a whole description"
    for item in source:
        if any(not stands_in(core(option), item.text) for option in item.options):
            return "the source sentence does not name both entities by its options"
        if any(stands_in(each, item.text) for each in cores):
            return "an entity is in the source sentence already"
    return ""


def _structural(candidates: Sequence[Candidate], run_id: str) -> Iterator[Decision]:
    for one in candidates:
        gate = REPLY_GATE if one.entities is None else SENTENCE_GATE
        fits = one.pair is not None
        yield Decision(run_id, gate, one.id, fits, None, None, one.texts if fits else f"{one.rejected}: {one.texts}")


def _decision(
    run_id: str, gate: str, candidate: Candidate, measured: tuple[float | None, float | None], passes: str
) -> Decision:
    """`measured`: score and threshold."""
    score, threshold = measured
    reason = f"{candidate.rejected or passes}: {candidate.texts}"
    return Decision(run_id, gate, candidate.id, not candidate.rejected, score, threshold, reason)
