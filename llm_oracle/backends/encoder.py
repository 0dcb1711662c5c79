"""How alike an encoder such as BERT finds two texts: a baseline that knows no direction (bert1A to bert3A of BoOQA)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from llm_oracle.backends.loading import LoadedModel, load_model
from llm_oracle.protocols import LogLikelihood

OPEN, CLOSE = "\u27e6", "\u27e7"
"""Stand around the words whose vectors count; without any the first token's does, as BERT's `[CLS]`."""

BATCH = 64


class EncoderSimilarity:
    """Cosine of the vectors of a text's two halves, which a tab parts, as `per_token`, in [-1, 1].

    That is no log-likelihood, but ranks as one does. A half is known by the mean of its marked words' vectors in the
    last layer. Texts longer than the model's context are cut.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self.identity = loaded.identity

    @classmethod
    def load(cls, source: str | Path, device: str = "auto", dtype: str = "auto") -> EncoderSimilarity:
        """A checkpoint from a folder or the Hugging Face hub. Raises HapaxError where it cannot be loaded."""
        return cls(load_model(source, device, f"encoder/{source}", dtype, headless=True))

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """One for each text. Equal halves are read once."""
        halves = [text.partition("\t")[::2] for text in texts]
        known = list(dict.fromkeys(half for both in halves for half in both))
        vectors = dict(zip(known, self._vectors(known), strict=True))
        return [LogLikelihood(_cosine(vectors[one], vectors[other]), 1) for one, other in halves]

    def _vectors(self, texts: Sequence[str]) -> list[torch.Tensor]:
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found: dict[int, torch.Tensor] = {}
        for start in range(0, len(texts), BATCH):
            places = by_length[start : start + BATCH]
            found.update(zip(places, self._batch([texts[place] for place in places]), strict=True))
        return [found[place] for place in range(len(texts))]

    def _batch(self, texts: Sequence[str]) -> list[torch.Tensor]:
        plain = [self._loaded.harmless(text) for text in texts]
        bare = [text.replace(OPEN, "").replace(CLOSE, "") for text in plain]
        tokens = self._loaded.tokenizer(
            bare,
            padding=True,
            truncation=True,
            max_length=min(self._loaded.context, self._loaded.tokenizer.model_max_length),
            return_offsets_mapping=True,
            return_tensors="pt",
        ).to(self._loaded.device)
        asked = {name: tokens[name] for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            states = self._loaded.network(**asked).last_hidden_state.float().cpu()
        return [
            _mean(rows, _counting(offsets, _marked(text)))
            for rows, offsets, text in zip(states, tokens["offset_mapping"].tolist(), plain, strict=True)
        ]


def _marked(text: str) -> set[int]:
    """Where the marked characters stand once the marks are taken out."""
    places: set[int] = set()
    place, inside = 0, False
    for sign in text:
        if sign in (OPEN, CLOSE):
            inside = sign == OPEN
        else:
            places |= {place} if inside else set()
            place += 1
    return places


def _counting(offsets: Sequence[Any], marked: set[int]) -> list[int]:
    """The tokens that hold a marked character; the first where none does."""
    found = [number for number, (start, end) in enumerate(offsets) if not marked.isdisjoint(range(start, end))]
    return found or [0]


def _cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float(torch.cosine_similarity(one.double(), other.double(), dim=0).clamp(-1, 1))


def _mean(rows: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
    return rows[list(places)].mean(dim=0)
