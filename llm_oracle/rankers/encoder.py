"""Similarity of two texts under an encoder such as BERT: a symmetric baseline (bert1A to bert3A of BoOQA)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from hapax.llm_oracle.backends.loading import LoadedModel, load_model
from hapax.llm_oracle.protocols import LogLikelihood

OPEN, CLOSE = "\u27e6", "\u27e7"
"""Marks around the words whose vectors count; without marks, the first token's counts, which is BERT's `[CLS]`."""

BATCH = 64
"""Texts per pass."""


class EncoderSimilarity:
    """Cosine similarity of the two halves of a text, which a tab separates, as `per_token`, in [-1, 1].

    That is not a log-likelihood, but ranks like one. The vector of a half is the mean over its marked words in the last
    layer. Texts longer than the model's context are cut.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self._loaded = loaded
        self.identity = loaded.identity

    @classmethod
    def load(cls, source: str | Path, device: str = "auto", dtype: str = "auto") -> EncoderSimilarity:
        """A checkpoint from a folder or the Hugging Face hub. Raises HapaxError if it cannot be loaded."""
        return cls(load_model(source, device, f"encoder/{source}", dtype, headless=True))

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """One score per text. Equal halves are encoded once."""
        pairs: list[tuple[str, str]] = []
        distinct: dict[str, None] = {}
        for text in texts:
            first, _, second = text.partition("\t")
            pairs.append((first, second))
            distinct |= {first: None, second: None}
        vectors = dict(zip(distinct, self._vectors(list(distinct)), strict=True))
        scores: list[LogLikelihood] = []
        for first, second in pairs:
            cosine = torch.cosine_similarity(vectors[first].double(), vectors[second].double(), dim=0)
            # Clamped, because rounding may leave a value just above 1.
            scores.append(LogLikelihood(float(cosine.clamp(-1, 1)), 1))
        return scores

    def _vectors(self, texts: Sequence[str]) -> list[torch.Tensor]:
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # for little padding
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
        # Without token types, which some tokenizers add and some networks reject.
        inputs = {name: tokens[name] for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            states = self._loaded.network(**inputs).last_hidden_state.float().cpu()
        vectors: list[torch.Tensor] = []
        for rows, offsets, text in zip(states, tokens["offset_mapping"].tolist(), plain, strict=True):
            vectors.append(rows[_marked_tokens(offsets, _marked_characters(text))].mean(dim=0))
        return vectors


def _marked_characters(text: str) -> set[int]:
    """Positions of the marked characters in the text without marks."""
    places: set[int] = set()
    place, inside = 0, False
    for character in text:
        if character in (OPEN, CLOSE):
            inside = character == OPEN
            continue
        if inside:
            places.add(place)
        place += 1
    return places


def _marked_tokens(offsets: Sequence[Any], marked: set[int]) -> list[int]:
    """The tokens that contain a marked character; the first token if there are none."""
    found = [number for number, (start, end) in enumerate(offsets) if not marked.isdisjoint(range(start, end))]
    # BERT's `[CLS]`.
    return found or [0]
