"""Critics that know where their training ends: the embedded model, and `smollm2-critic`.

`smollm2-critic` is SmolLM2-135M-Instruct with an adapter that was trained to judge short claims.

The adapter ships with Hapax, with a card of what it was measured to judge. Claims of a predicate that it was found not
to judge are not covered, which is neither yes nor no; a chain asks the next critic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hapax.grammar.errors import HapaxError
from hapax.grammar.terms import Atom
from hapax.kb.records import content_id
from hapax.llm_oracle.backends.adapters import Adapter, merge, read_adapter
from hapax.llm_oracle.backends.huggingface import HuggingFaceCritic
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.sequence_scores import ROOM
from hapax.llm_oracle.critics.combined_critic import logit, sigmoid
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.protocols import NOTHING_KNOWN, ClaimText, CriticScore, Usage
from hapax.llm_oracle.questions.prompts import stated_claim
from hapax.llm_oracle.reading.link_replies import FirstToken

FOLDER = Path(__file__).parents[1] / "trained_critic"
ADAPTER, CARD = "adapter.safetensors", "card.json"

QUESTIONS = (" True?", " False?")
"""Questions that follow a claim. The critic asks the first; training asks both, so that yes alone is not an answer."""
ANSWERS = (" Yes", " No")

_SLOT = re.compile(r"\[\d\]")


@dataclass(frozen=True, slots=True)
class MeasuredPredicate:
    """A predicate of the card: its templates, its AUC on claims never trained on, and whether it is judged."""

    name: str
    templates: tuple[str, ...]
    area: float
    claims: int
    judged: bool

    def matched_length(self, claim: str, atom: Atom | None) -> int:
        """Characters of the longest of its templates that the claim fits; 0 if it fits none.

        `atom`: what the claim states, if that is known. Its arguments are then those of the template.
        """
        fitting = [template for template in self.templates if _fits(template, claim, atom)]
        return max(map(len, fitting), default=0)


@dataclass(frozen=True, slots=True)
class LogisticMap:
    """From a P(yes) to a probability (Platt 1999). `unsure`: distance from .5 below which nothing is known."""

    slope: float = 1.0
    intercept: float = 0.0
    unsure: float = 0.0

    def probability(self, score: float) -> float:
        """The probability that a claim with this P(yes) is true."""
        return sigmoid(self.slope * logit(score) + self.intercept)


@dataclass(frozen=True)
class CriticCard:
    """The predicates on which the adapter was measured. `bar`: the AUC below which a predicate is not judged.

    `inside`: the map for claims in the words of these predicates; `outside`: for all others.
    """

    predicates: tuple[MeasuredPredicate, ...]
    bar: float
    inside: LogisticMap = LogisticMap()
    outside: LogisticMap = LogisticMap()

    @cached_property
    def revision(self) -> str:
        """Hash of all that decides which claims are covered, and with which probability."""
        covered = [[entry.templates, entry.judged] for entry in self.predicates]
        return content_id("card", covered, astuple(self.inside), astuple(self.outside))[:6]

    def entry(self, claim: str) -> MeasuredPredicate | None:
        """The predicate in whose words a claim is. Of several templates that fit, the longest is the claim's."""
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return None
        words = stated_claim(claim).strip().removesuffix(".")
        atom = claim.atom if isinstance(claim, ClaimText) else None
        lengths = {entry.name: entry.matched_length(words, atom) for entry in self.predicates}
        best = max(self.predicates, key=lambda entry: lengths[entry.name], default=None)
        return best if best is not None and lengths[best.name] else None


def read_card(path: Path) -> CriticCard:
    """Raises HapaxError for a file that cannot be read, or that is not a card."""
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        entries = [
            MeasuredPredicate(name, tuple(entry["templates"]), entry["auc"], entry["claims"], entry["judged"])
            for name, entry in content["predicates"].items()
        ]
        maps = (LogisticMap(*map(float, content["maps"][place])) for place in ("inside", "outside"))
        return CriticCard(tuple(entries), float(content["bar"]), *maps)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise HapaxError(f"{path} cannot be read as a critic's card: {fault}. Install Hapax anew.") from fault


class TrainedCritic(HuggingFaceCritic):
    """The probability of a claim by a network into which the adapter is merged; `covered` False where the card says so.

    Claims about data types keep the network's own P(yes).
    """

    reads_origins = True

    def __init__(self, loaded: LoadedModel, adapter: Adapter, card: CriticCard, room: int = ROOM) -> None:
        """Changes the network's weights. Raises HapaxError if the adapter is made for another network."""
        merge(loaded.network, adapter)
        revision = f"{adapter.revision}-{card.revision} {loaded.identity.revision}".strip()
        super().__init__(replace(loaded, identity=replace(loaded.identity, revision=revision)), room)
        self._card = card

    def _unjudged(self, claim: str) -> str:
        entry = self._card.entry(claim)
        if entry is None or entry.judged:
            return ""
        return (
            f"{self.identity.name} does not judge {entry.name}: AUC {entry.area:.2f} on {entry.claims} claims "
            f"that it was not trained on, below {self._card.bar:.2f}"
        )

    def _score(self, first: FirstToken, usage: Usage) -> CriticScore:
        # Its training compared yes with no alone, so that other tokens may well be likelier than both.
        return CriticScore(first.probability, usage)

    def _scores(self, claims: Sequence[str]) -> list[CriticScore]:
        return [self._calibrated(claim, score) for claim, score in zip(claims, super()._scores(claims), strict=True)]

    def _calibrated(self, claim: str, score: CriticScore) -> CriticScore:
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return score
        own = self._card.outside if self._card.entry(claim) is None else self._card.inside
        probability = own.probability(score.probability)
        if abs(probability - NOTHING_KNOWN) < own.unsure:
            why = f"{self.identity.name} does not know: {probability:.2f}, of a predicate that it was not trained on"
            return replace(score, probability=NOTHING_KNOWN, covered=False, basis=why)
        return replace(score, probability=probability)

    def _prompt(self, claim: str) -> tuple[int, ...]:
        # The bare words of its training, without the chat template of the base model.
        words = self._loaded.harmless(stated_claim(claim)).strip()
        return tuple(self._loaded.tokenizer(words + QUESTIONS[0], add_special_tokens=False).input_ids)

    def _answers(self) -> tuple[list[int], list[int]]:
        yes, no = (self._loaded.tokenizer(answer, add_special_tokens=False).input_ids[:1] for answer in ANSWERS)
        return yes, no


class AtlasCritic(HuggingFaceCritic):
    """The embedded model as critic: it knows its atlas and nothing else, and judges no claim about other names."""

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name.casefold() for fact in load_atlas().facts for name in fact.arguments)

    def _unjudged(self, claim: str) -> str:
        if not isinstance(claim, ClaimText):
            return ""
        values = claim.typed[:1] if claim.typed else () if claim.atom is None else claim.atom.values
        outside = [value for value in values if isinstance(value, str) and value.casefold() not in self._names]
        return f"{self.identity.name} knows its atlas and nothing else, not {' or '.join(outside)}" if outside else ""


def _fits(template: str, claim: str, atom: Atom | None) -> bool:
    found = _expression(template).fullmatch(claim)
    if found is None or atom is None:
        return found is not None
    by_slot = dict(zip(_SLOT.findall(template), found.groups(), strict=True))
    return [by_slot[slot].casefold() for slot in sorted(by_slot)] == [str(value).casefold() for value in atom.values]


def _expression(template: str) -> re.Pattern[str]:
    """The template as a regular expression."""
    pieces = map(re.escape, _SLOT.split(template))
    # Limited and lazy, so that a long claim cannot make the match explode.
    return re.compile("(.{1,400}?)".join(pieces), re.IGNORECASE | re.DOTALL)


def shipped_critic(loaded: LoadedModel) -> TrainedCritic:
    """The critic that ships with Hapax. Raises HapaxError if its files are faulty."""
    return TrainedCritic(loaded, read_adapter(FOLDER / ADAPTER), read_card(FOLDER / CARD))
