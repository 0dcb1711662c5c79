"""Fine-tuning of an encoder or decoder as a classifier of sentences, by the method of Schmitt and Schütze (2021).

Each case has sentences that hold if its label is true (patterns) and sentences that then do not (antipatterns). The
loss is the mean cross-entropy over the patterns with the label, plus that over the antipatterns with its opposite.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    get_linear_schedule_with_warmup,
)
from transformers import logging as transformers_logging

from hapax.grammar.errors import HapaxError
from hapax.kb.files.unfinished import exchange, unfinished

SCORED_TOGETHER = 64
"""Sentences per pass."""
MOST_TOKENS = 512
"""Longer sentences are cut, as in the released code."""


@dataclass(frozen=True, slots=True)
class LabelledCase:
    """A labelled case, written as sentences."""

    patterns: tuple[str, ...]
    antipatterns: tuple[str, ...]
    label: bool


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """A draw of the random search."""

    learning_rate: float
    weight_decay: float
    accumulated: int
    """Number of batches whose gradients are added up for a step."""


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """Settings common to all draws; the defaults are those of the released code. `frozen`: train the head alone."""

    epochs: int = 5
    rows: int = 6
    frozen: bool = False
    seed: int = 0


class SentenceClassifier:
    """A checkpoint with a head that classifies if a sentence holds."""

    def __init__(self, network: PreTrainedModel, tokenizer: Any) -> None:
        self.network, self.tokenizer = network, tokenizer

    @classmethod
    def load(cls, source: str | Path, device: str = "auto", seed: int = 0) -> SentenceClassifier:
        """A base checkpoint, whose head is initialised at random by `seed`, or one written by `save`.

        Raises HapaxError if it cannot be loaded.
        """
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers types it in part
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.manual_seed(seed)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source)
            network = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2, use_safetensors=True)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
            reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
            raise HapaxError(
                f"{source} cannot be loaded as a classifier: {reason} Give the folder of a checkpoint with "
                "weights as safetensors, or a name from https://huggingface.co that is cached or can be downloaded."
            ) from fault
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.all_special_tokens[0]
        network.config.pad_token_id = tokenizer.pad_token_id
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        return cls(network.to(device), tokenizer)

    def train(
        self, cases: Sequence[LabelledCase], draw: Hyperparameters, settings: TuningSettings, say: Callable[[str], None]
    ) -> None:
        """Train on the cases. Equal cases, draw, settings and machine give equal weights."""
        torch.manual_seed(settings.seed)
        # A generator for the order alone, which the dropout's random numbers do not disturb.
        order = torch.Generator().manual_seed(settings.seed)
        loader = DataLoader(_CaseDataset(cases), settings.rows, shuffle=True, generator=order, collate_fn=list)
        # Steps of the optimizer, which follow groups of batches; an epoch may end with a smaller group.
        steps = max(1, math.ceil(len(loader) / draw.accumulated)) * settings.epochs
        optimizer = torch.optim.AdamW(self._groups(draw, settings), lr=draw.learning_rate, eps=1e-8)
        schedule = get_linear_schedule_with_warmup(optimizer, 0, steps)  # type: ignore[no-untyped-call]  # untyped there
        self.network.train()
        for epoch in range(1, settings.epochs + 1):
            total = 0.0
            for number, batch in enumerate(loader, 1):
                loss = self._loss(batch)
                (loss / draw.accumulated).backward()  # type: ignore[no-untyped-call]  # torch types it in part
                total += loss.item()
                if number % draw.accumulated == 0 or number == len(loader):
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
            say(f"epoch {epoch} of {settings.epochs}: loss {total / len(loader):.3f}")
        self.network.eval()  # type: ignore[no-untyped-call]  # untyped there

    def probabilities(self, sentences: Sequence[str]) -> list[float]:
        """P(the sentence holds), in order."""
        self.network.eval()  # type: ignore[no-untyped-call]  # untyped there
        # Sentences of similar length need little padding in their batch.
        by_length = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
        found = [0.0] * len(sentences)
        with torch.inference_mode():
            for start in range(0, len(by_length), SCORED_TOGETHER):
                batch = by_length[start : start + SCORED_TOGETHER]
                logits = self.network(**self._encoded([sentences[number] for number in batch])).logits.float()
                for number, probability in zip(batch, functional.softmax(logits, -1)[:, 1].tolist(), strict=True):
                    found[number] = probability
        return found

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer, replacing the folder if it exists."""
        # Written beside the folder first, so that a failure leaves the old one.
        with unfinished(folder) as new:
            self.network.save_pretrained(new)
            self.tokenizer.save_pretrained(new)
            exchange(new, folder)

    def _groups(self, draw: Hyperparameters, settings: TuningSettings) -> list[dict[str, Any]]:
        """The trained parameters in two groups, with and without weight decay."""
        body = f"{self.network.base_model_prefix}."  # the language model below the head
        decayed: list[torch.nn.Parameter] = []
        plain: list[torch.nn.Parameter] = []
        for name, parameter in self.network.named_parameters():
            is_trained = not (settings.frozen and name.startswith(body))
            parameter.requires_grad_(is_trained)
            if is_trained:
                # Biases and norms are vectors and do not decay.
                (plain if parameter.ndim < 2 else decayed).append(parameter)
        return [{"params": decayed, "weight_decay": draw.weight_decay}, {"params": plain, "weight_decay": 0.0}]

    def _loss(self, batch: Sequence[LabelledCase]) -> torch.Tensor:
        patterns = self._mean_loss([(case.patterns, int(case.label)) for case in batch])
        return patterns + self._mean_loss([(case.antipatterns, int(not case.label)) for case in batch])

    def _mean_loss(self, labelled: Sequence[tuple[tuple[str, ...], int]]) -> torch.Tensor:
        """Mean cross-entropy over all sentences."""
        texts: list[str] = []
        labels: list[int] = []
        for sentences, label in labelled:
            texts += sentences
            labels += [label] * len(sentences)
        logits = self.network(**self._encoded(texts)).logits
        return functional.cross_entropy(logits.float(), torch.tensor(labels).to(logits.device))

    def _encoded(self, sentences: Sequence[str]) -> Any:
        encoded = self.tokenizer(
            list(sentences), truncation=True, max_length=MOST_TOKENS, padding=True, return_tensors="pt"
        )
        encoded.pop("token_type_ids", None)  # some tokenizers give them to networks that do not accept them
        return encoded.to(self.network.device)


class _CaseDataset(torch.utils.data.Dataset[LabelledCase]):
    """A list of cases as a dataset of torch."""

    def __init__(self, cases: Sequence[LabelledCase]) -> None:
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, number: int) -> LabelledCase:
        return self._cases[number]


def draws(count: int, seed: int = 0) -> Iterator[Hyperparameters]:
    """Draws of a random search with the ranges of the released code.

    Learning rate 1e-8 to 0.05 and weight decay 1e-5 to 0.1, both uniform in the logarithm, and 1 to 17 accumulated
    batches.
    """
    for number in range(count):
        # A stream for each draw, so that a longer run begins with the draws of a shorter one.
        rng = random.Random(f"{seed} {number}")  # noqa: S311  # not secret
        yield Hyperparameters(10 ** rng.uniform(-8, math.log10(0.05)), 10 ** rng.uniform(-5, -1), rng.randint(1, 17))
