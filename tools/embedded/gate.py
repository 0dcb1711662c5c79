"""The release gate: the lowest figures that a trained model needs for a release."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """The figures of an examination: shares, probabilities and correlations; nan if undefined."""

    true_facts_accepted: float
    """Share of the atlas's facts whose P(yes) exceeds the fact threshold."""
    wrong_facts_accepted: float
    """The same for falsehoods held out of training."""
    critic_auc: float
    """Chance that a true fact scores above such a falsehood."""
    true_types_accepted: float
    wrong_types_accepted: float
    lines_parsed: float
    """Share of generated lines of the form `1. value.`"""
    values_of_type: float
    values_true: float
    """Share of generated values that the atlas lists, repeats included."""
    accepted_precision: float
    """Share of true values among the generated ones that pass the fact threshold."""
    list_recall: float
    """Mean share of a question's true values found by one call, over questions with lists of up to 24 values."""
    popularity_correlation: float
    """Spearman correlation of per-token log-likelihood with popularity: the lowest of the large predicates."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each figure that fails the gate; empty if the model may be released."""
        values = asdict(self)
        return tuple(
            f"{name} is {values[name]:.3f}; at least {least} is needed."
            for name, least in GATES.items()
            if not values[name] >= least  # nan fails, too
        )

    def __str__(self) -> str:
        return " ".join(f"{name}={value:.3f}" for name, value in asdict(self).items())


GATES = {
    "lines_parsed": 0.99,
    "values_of_type": 0.97,
    "critic_auc": 0.97,
    "accepted_precision": 0.88,
    "true_facts_accepted": 0.90,
    "popularity_correlation": 0.8,
}
"""The lowest value of each figure for a release."""
