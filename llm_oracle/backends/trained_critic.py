"""The critic `smollm2-critic`: SmolLM2-135M-Instruct with an adapter that was trained to judge short claims.

The adapter ships with Hapax, with a card of what it was measured to judge. Claims of a predicate that it was found not
to judge are not covered, which is neither yes nor no; a chain asks the next critic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from hapax.llm_oracle.protocols import ClaimText, CriticScore
from hapax.llm_oracle.questions.prompts import stated_claim

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


@dataclass(frozen=True)
class CriticCard:
    """The predicates on which the adapter was measured. `bar`: the AUC below which a predicate is not judged."""

    predicates: tuple[MeasuredPredicate, ...]
    bar: float

    @cached_property
    def revision(self) -> str:
        """Hash of all that decides which claims are covered."""
        return content_id("card", [[entry.templates, entry.judged] for entry in self.predicates])[:6]

    def refusing(self, claim: str) -> MeasuredPredicate | None:
        """The predicate in whose words a claim is, if it is not judged; None for claims of data types.

        Of several templates that fit, the longest is the claim's.
        """
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return None
        words = stated_claim(claim).strip().removesuffix(".")
        atom = claim.atom if isinstance(claim, ClaimText) else None
        lengths = {entry.name: entry.matched_length(words, atom) for entry in self.predicates}
        best = max(self.predicates, key=lambda entry: lengths[entry.name], default=None)
        return None if best is None or best.judged or not lengths[best.name] else best


def read_card(path: Path) -> CriticCard:
    """Raises HapaxError for a file that cannot be read, or that is not a card."""
    try:
        content: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        entries = [
            MeasuredPredicate(name, tuple(entry["templates"]), entry["auc"], entry["claims"], entry["judged"])
            for name, entry in content["predicates"].items()
        ]
        return CriticCard(tuple(entries), float(content["bar"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        raise HapaxError(f"{path} cannot be read as a critic's card: {fault}. Install Hapax anew.") from fault


class TrainedCritic(HuggingFaceCritic):
    """P(yes) of a claim under a network into which the adapter is merged; `covered` False where the card says so."""

    reads_origins = True

    def __init__(self, loaded: LoadedModel, adapter: Adapter, card: CriticCard, room: int = ROOM) -> None:
        """Changes the network's weights. Raises HapaxError if the adapter is made for another network."""
        merge(loaded.network, adapter)
        revision = f"{adapter.revision}-{card.revision} {loaded.identity.revision}".strip()
        super().__init__(replace(loaded, identity=replace(loaded.identity, revision=revision)), room)
        self._card = card

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        refusals = [self._card.refusing(claim) for claim in claims]
        judged = [claim for claim, refusal in zip(claims, refusals, strict=True) if refusal is None]
        scores = iter(super().probabilities(judged))
        return [next(scores) if refusal is None else self._uncovered(refusal) for refusal in refusals]

    def _uncovered(self, refusal: MeasuredPredicate) -> CriticScore:
        basis = (
            f"{self.identity.name} does not judge {refusal.name}: AUC {refusal.area:.2f} on {refusal.claims} claims "
            f"that it was not trained on, below {self._card.bar:.2f}"
        )
        return CriticScore(0.5, covered=False, basis=basis)

    def _prompt(self, claim: str) -> tuple[int, ...]:
        # The bare words of its training, without the chat template of the base model.
        words = self._loaded.harmless(stated_claim(claim)).strip()
        return tuple(self._loaded.tokenizer(words + QUESTIONS[0], add_special_tokens=False).input_ids)

    def _answers(self) -> tuple[list[int], list[int]]:
        yes, no = (self._loaded.tokenizer(answer, add_special_tokens=False).input_ids[:1] for answer in ANSWERS)
        return yes, no


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
