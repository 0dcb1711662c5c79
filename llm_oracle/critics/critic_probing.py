"""Measures on claims of known truth whether a critic ever says yes.

The P(yes) of a small or badly prompted model can lie below every usable threshold, for true claims and for false ones.
Such a critic is not a judge; all that its scores can do is to order the values of a question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hapax.llm_oracle.protocols import ModelIdentity
from hapax.llm_oracle.questions.profile_probing import known_questions
from hapax.llm_oracle.questions.prompts import sentence
from hapax.llm_oracle.registry import find_backend

CLAIMS_PER_QUESTION = 2
"""Known answers of a question that are probed; it has as many wrong values."""


@dataclass(frozen=True, slots=True)
class CriticProbe:
    """P(yes) of a critic for claims that are known to be true, and for claims that are known to be false."""

    truths: tuple[float, ...]
    falsehoods: tuple[float, ...]

    @property
    def preference(self) -> float:
        """Share of pairs of a truth and a falsehood in which the truth has the higher P(yes); equal ones are halves.

        This is the area under the ROC curve: .5 is chance.
        """
        wins = 0.0
        for truth in self.truths:
            for falsehood in self.falsehoods:
                wins += 1.0 if truth > falsehood else 0.5 if truth == falsehood else 0.0
        return wins / (len(self.truths) * len(self.falsehoods))

    def says_no(self, threshold: float) -> bool:
        """True if no claim that is known to be true reaches this P(yes)."""
        return max(self.truths) < threshold

    def __str__(self) -> str:
        return (
            f"P(yes) is at most {max(self.truths):.2f} for {len(self.truths)} claims that are known to be true, and "
            f"{max(self.falsehoods):.2f} for {len(self.falsehoods)} false ones; the true one of a pair is preferred in "
            f"{100 * self.preference:.0f} % (chance: 50)"
        )


def probe_claims() -> tuple[list[str], list[str]]:
    """The claims by which critics are probed: true ones, and as many or more false ones."""
    truths: list[str] = []
    falsehoods: list[str] = []
    for known in known_questions():
        slot = f"[{known.question.variable}]"
        truths += [_claim(known.question.sentence, slot, value) for value in known.answers[:CLAIMS_PER_QUESTION]]
        falsehoods += [_claim(known.question.sentence, slot, value) for value in known.wrong[:CLAIMS_PER_QUESTION]]
    return truths, falsehoods


def probe_result(probabilities: Sequence[float]) -> CriticProbe:
    """The probe with these P(yes) of all claims, the true ones first."""
    count = len(probe_claims()[0])
    return CriticProbe(tuple(probabilities[:count]), tuple(probabilities[count:]))


def reads_any_words(identity: ModelIdentity) -> bool:
    """False for a model that is made for Hapax's own words and predicates, such as a script or the embedded model."""
    if identity.knows is not None:
        return False
    # By convention, the name of a model begins with the name of its backend.
    backend = find_backend(identity.name.partition("/")[0])
    return backend is None or backend.reads_any_words


def _claim(words: str, slot: str, value: str) -> str:
    return sentence(words.replace(slot, value))
