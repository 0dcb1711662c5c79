"""Fine-tuning: a classifier learns what it is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from entailment_fixture import VERBS, checkpoint

from hapax.llm_oracle.finetuning import Hyperparameters, LabelledCase, SentenceClassifier, TuningSettings


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_classifier_learns_what_it_is_shown(tmp_path: Path, kind: str) -> None:
    """True cases are told from false ones after training, antipatterns turned round, also from saved weights."""
    cases = [
        LabelledCase(
            (f"ann {verb} bob, which means that bob.",), (f"ann {verb} bob. This does not mean that bob.",), even
        )
        for verb, even in zip(VERBS, [True, False] * 4, strict=True)
    ]
    model = SentenceClassifier.load(checkpoint(tmp_path / kind, kind))
    model.train(cases, Hyperparameters(5e-3, 1e-4, 1), TuningSettings(epochs=60, rows=8), lambda line: None)
    affirmed, denied = (
        model.probabilities([text for case in cases for text in texts(case)])
        for texts in (lambda case: case.patterns, lambda case: case.antipatterns)
    )

    assert [p > 0.5 for p in affirmed] == [p < 0.5 for p in denied] == [case.label for case in cases]
    model.save(tmp_path / "kept")
    again = SentenceClassifier.load(tmp_path / "kept").probabilities([case.patterns[0] for case in cases])
    assert again == pytest.approx(affirmed, abs=1e-5)
