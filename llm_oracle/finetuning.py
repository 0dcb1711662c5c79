"""Prompt fine-tuning of an encoder or decoder as a classifier of sentences: the method of Schmitt and Schütze (2021).

Each case comes as sentences that should hold (patterns) and sentences that should not (antipatterns). The loss is the
mean cross-entropy over the patterns with the case's label, plus that over the antipatterns with the other label.
"""

from __future__ import annotations

import math
import shutil
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

from grammar.errors import HapaxError

SCORED_TOGETHER = 64
MOST_TOKENS = 512
"""Longer sentences are cut, as in the release."""


@dataclass(frozen=True, slots=True)
class Case:
    """One labelled case in its sentences."""

    patterns: tuple[str, ...]
    antipatterns: tuple[str, ...]
    label: bool


@dataclass(frozen=True, slots=True)
class Draw:
    """One set of hyperparameters."""

    learning_rate: float
    weight_decay: float
    accumulated: int
    """Batches whose gradients make one step."""


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """What all draws share. `frozen`: only the classification head learns. The defaults are the release's."""

    epochs: int = 5
    rows: int = 6
    frozen: bool = False
    seed: int = 0


class SentenceClassifier:
    """A checkpoint with a head of two classes: does the sentence hold?"""

    def __init__(self, network: PreTrainedModel, tokenizer: Any) -> None:
        self.network, self.tokenizer = network, tokenizer

    @classmethod
    def load(cls, source: str | Path, device: str = "auto", seed: int = 0) -> SentenceClassifier:
        """A base checkpoint, whose head then begins at random by `seed`, or one that was saved here.

        Raises HapaxError where it cannot be loaded.
        """
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers types it in part
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        torch.manual_seed(seed)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source)
            network = AutoModelForSequenceClassification.from_pretrained(source, num_labels=2)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as fault:
            reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
            raise HapaxError(
                f"{source} cannot be loaded as a classifier: {reason} Give the folder of a checkpoint, or a name from "
                "https://huggingface.co that is cached or can be downloaded."
            ) from fault
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.all_special_tokens[0]
        network.config.pad_token_id = tokenizer.pad_token_id
        wanted = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        return cls(network.to(wanted), tokenizer)

    def train(self, cases: Sequence[Case], draw: Draw, settings: TuningSettings, say: Callable[[str], None]) -> None:
        """Learn the cases. Same cases, draw, settings and machine: same weights."""
        torch.manual_seed(settings.seed)
        order = torch.Generator().manual_seed(settings.seed)
        loader = DataLoader(_Listed(cases), settings.rows, shuffle=True, generator=order, collate_fn=list)
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
        """P(holds) of each sentence, in order."""
        self.network.eval()  # type: ignore[no-untyped-call]  # untyped there
        by_length = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
        found = [0.0] * len(sentences)
        with torch.inference_mode():
            for start in range(0, len(by_length), SCORED_TOGETHER):
                some = by_length[start : start + SCORED_TOGETHER]
                logits = self.network(**self._encoded([sentences[number] for number in some])).logits.float()
                for number, probability in zip(some, functional.softmax(logits, -1)[:, 1].tolist(), strict=True):
                    found[number] = probability
        return found

    def save(self, folder: Path) -> None:
        """Write weights and tokenizer, in place of what was there."""
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        self.network.save_pretrained(unfinished)
        self.tokenizer.save_pretrained(unfinished)
        shutil.rmtree(folder, ignore_errors=True)
        unfinished.rename(folder)

    def _groups(self, draw: Draw, settings: TuningSettings) -> list[dict[str, Any]]:
        """What learns, biases and norms without decay. `base_model_prefix` names the language model below the head."""
        body = f"{self.network.base_model_prefix}."
        learning = [
            (name, one)
            for name, one in self.network.named_parameters()
            if not (settings.frozen and name.startswith(body))
        ]
        for name, one in self.network.named_parameters():
            one.requires_grad_(not (settings.frozen and name.startswith(body)))
        plain = [one for name, one in learning if one.ndim < 2]
        decayed = [one for name, one in learning if one.ndim >= 2]
        return [{"params": decayed, "weight_decay": draw.weight_decay}, {"params": plain, "weight_decay": 0.0}]

    def _loss(self, batch: Sequence[Case]) -> torch.Tensor:
        sides = (([one.patterns for one in batch], 0), ([one.antipatterns for one in batch], 1))
        return torch.stack(
            [self._side(texts, [int(one.label) ^ turned for one in batch]) for texts, turned in sides]
        ).sum()

    def _side(self, texts: Sequence[tuple[str, ...]], labels: Sequence[int]) -> torch.Tensor:
        """Mean cross-entropy over all sentences of one side, each case counting alike."""
        flat = [text for some in texts for text in some]
        wanted = torch.tensor([label for some, label in zip(texts, labels, strict=True) for _ in some])
        logits = self.network(**self._encoded(flat)).logits
        return functional.cross_entropy(logits.float(), wanted.to(logits.device))

    def _encoded(self, sentences: Sequence[str]) -> Any:
        encoded = self.tokenizer(
            list(sentences), truncation=True, max_length=MOST_TOKENS, padding=True, return_tensors="pt"
        )
        encoded.pop("token_type_ids", None)
        return encoded.to(self.network.device)


class _Listed(torch.utils.data.Dataset[Case]):
    """A list as torch wants it."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases

    def __len__(self) -> int:
        return len(self._cases)

    def __getitem__(self, number: int) -> Case:
        return self._cases[number]


def draws(count: int, seed: int = 0) -> Iterator[Draw]:
    """Random search as in the release: learning rate 1e-8 to .05 and weight decay 1e-5 to .1, both by their logarithm,
    and 1 to 17 accumulated batches. A longer run begins with the draws of a shorter one.
    """
    import random

    for number in range(count):
        one = random.Random(f"{seed} {number}")  # noqa: S311  # no secret
        yield Draw(10 ** one.uniform(-8, math.log10(0.05)), 10 ** one.uniform(-5, -1), one.randint(1, 17))
