"""The release gate: a model folder is measured through the code that a search uses, against the atlas."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from pathlib import Path

import hapax
from hapax.evaluation.shared.estimates import auc
from hapax.llm_oracle.embedded.atlas import AtlasFact
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from tools.embedded.corpus import Corpus

FACT_THRESHOLD = 0.85
"""The paper's threshold for a fact (LINK, section 2.3)."""
LISTS = 300
"""Questions for lists that are asked."""


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """Figures of a model, of which each must reach `GATES`."""

    critic_auc: float
    """Chance that a fact of the atlas scores above a falsehood held out of training."""
    true_facts_accepted: float
    """Share of the atlas's facts whose P(yes) exceeds the threshold."""
    lines_parsed: float
    """Share of generated lines of the form `1. value.`"""
    values_of_type: float
    """Share of generated values that the atlas has with the type that was asked for."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each figure that fails the gate; empty if the model may be released."""
        values = asdict(self)
        return tuple(
            f"{name} is {values[name]:.3f}; at least {least} is needed."
            for name, least in GATES.items()
            if not values[name] >= least  # nan fails, too
        )


GATES = {"critic_auc": 0.97, "true_facts_accepted": 0.90, "lines_parsed": 0.99, "values_of_type": 0.97}
"""The lowest value of each figure for a release."""


def examine(folder: Path, corpus: Corpus) -> ExaminationReport:
    """Measure the model in a folder. Wrong facts are those held out of training, true ones all of the atlas."""
    models = hapax.open_models(f"hf:{folder}")
    rng = random.Random(0)  # noqa: S311  reproducible, not secret
    wrong = [corpus.falsehoods.wrong_fact(fact, rng, held_out=True) for fact in corpus.atlas.facts]

    def scores(facts: list[AtlasFact]) -> list[float]:
        answers = models.critic.probabilities([corpus.claim(fact) for fact in facts])
        return [answer.probability for answer in answers]

    yes, no = scores(list(corpus.atlas.facts)), scores([fact for fact in wrong if fact is not None])
    asked = rng.sample(corpus.list_questions, LISTS)
    requests = [GenerationRequest(corpus.prompt(question, rng)) for question in asked]
    replies = models.knowledge.generate(requests, GenerationParameters())
    lines = parsed = typed = 0
    for question, reply in zip(asked, replies, strict=True):
        relation = corpus.atlas.relations[question.predicate]
        known = corpus.atlas.entities(relation.argument_types[question.position])
        for line in reply.text.strip("\n").split("\n"):
            number, dot, value = line.partition(". ")
            lines += 1
            if number.isdigit() and dot and value.endswith("."):
                parsed += 1
                typed += value[:-1] in known
    accepted = sum(score > FACT_THRESHOLD for score in yes) / len(yes)
    return ExaminationReport(auc(yes, no), accepted, parsed / max(1, lines), typed / max(1, parsed))
