"""A critic and a likelihood model in this process, beside the obvious loop over padded batches by transformers.

What a search asks is scored: claims by `critic.probabilities`, and texts by `likelihood.log_likelihoods`. The loop
takes the same texts in the order given and computes all logits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import hapax
from benchmarks.measuring import Figure, Size, Turn, compared, seconds_of
from benchmarks.search import RULES, LookupModel, chosen
from hapax.llm_oracle.questions.prompts import critic_prompt

CHECKPOINT = Path(hapax.__file__).parent / "llm_oracle" / "embedded" / "model"
"""The embedded model, which the loop opens as any other checkpoint."""

CALL = 128
"""Texts that a search hands to a model at a time."""

BATCH = 32

CLOSE = 1e-3
"""Largest difference of a score from the loop's, in nats or as a probability."""


def figures(size: Size) -> Iterator[Figure]:
    """Both roles, on one thread. Raises RuntimeError if the scores differ."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    claims, texts = asked(size.pick(8, 512, 4096))
    models = hapax.open_models(f"hf:{CHECKPOINT}", likelihood=f"hf:{CHECKPOINT}", device="cpu", dtype="float32")
    loop = PaddedLoop(CHECKPOINT)
    try:
        yield from scored(
            f"critic, {len(claims):,} claims",
            lambda some: [score.probability for score in models.critic.probabilities(some)],
            loop.probabilities,
            claims,
            size,
        )
        yield from scored(
            f"likelihood, {len(texts):,} texts",
            lambda some: [score.total for score in models.likelihood.log_likelihoods(some)],
            loop.log_likelihoods,
            texts,
            size,
        )
    finally:
        torch.set_num_threads(threads)


def asked(count: int) -> tuple[list[str], list[str]]:
    """Claims and texts in the order of a search of shipped rules, as many of each or fewer."""
    library = hapax.load_rules(*RULES)
    model = LookupModel(hapax.open_models("simulated:1", library=library))
    with hapax.KnowledgeBase() as kb:
        settings = hapax.SearchSettings(beam=20)
        hapax.search(library, kb, model.models, settings, only=chosen(library, 8 if count > CALL else 2))
    return model.asked("probabilities")[:count], model.asked("log_likelihoods")[:count]


Score = Callable[[Sequence[str]], list[float]]


def scored(work: str, ours: Score, theirs: Score, texts: Sequence[str], size: Size) -> list[Figure]:
    """Score the texts both ways, as many at a time as a search does; compare the scores first."""

    def in_calls(score: Score) -> list[float]:
        return [value for call in batched(texts, CALL) for value in score(call)]

    def way(score: Score) -> Turn:
        return Turn({"s": seconds_of(partial(in_calls, score))}, len(texts))

    largest = max(abs(own - peers) for own, peers in zip(in_calls(ours), in_calls(theirs), strict=True))
    if largest > CLOSE:
        raise RuntimeError(f"{work}: a score differs by {largest:.2g} from that of the padded loop.")
    ways = {"hapax": partial(way, ours), "padded loop": partial(way, theirs)}
    return compared(work, ways, size)


def batched(texts: Sequence[str], count: int) -> Iterator[Sequence[str]]:
    """The texts in order, so many at a time."""
    return (texts[begin : begin + count] for begin in range(0, len(texts), count))


class PaddedLoop:
    """Scores by transformers alone."""

    def __init__(self, checkpoint: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint, padding_side="right")
        self._network: Any = AutoModelForCausalLM.from_pretrained(checkpoint, dtype="float32")
        self._yes, self._no = self._tokens("yes"), self._tokens("no")

    def probabilities(self, claims: Sequence[str]) -> list[float]:
        """P(yes) after the question about each claim, over the spellings of yes and no."""
        prompts: list[str] = []
        for claim in claims:
            message = {"role": "user", "content": critic_prompt(claim)}
            prompts.append(self._tokenizer.apply_chat_template([message], tokenize=False, add_generation_prompt=True))
        found: list[float] = []
        for logits, _, lengths in self._logits(prompts, special=False):
            last = logits[range(len(lengths)), lengths - 1]
            yes, no = (last[:, tokens].logsumexp(-1) for tokens in (self._yes, self._no))
            found += (yes - no).sigmoid().tolist()
        return found

    def log_likelihoods(self, texts: Sequence[str]) -> list[float]:
        found: list[float] = []
        for logits, ids, lengths in self._logits(texts, special=True):
            scores = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
            for row, length in zip(scores, lengths, strict=True):
                found.append(float(row[: length - 1].sum()))
        return found

    def _tokens(self, answer: str) -> list[int]:
        """The spellings of an answer that are single tokens."""
        spellings = (blank + word for blank in ("", " ") for word in (answer, answer.capitalize(), answer.upper()))
        found = (self._tokenizer(spelling, add_special_tokens=False).input_ids for spelling in spellings)
        return [tokens[0] for tokens in found if len(tokens) == 1]

    def _logits(self, texts: Sequence[str], special: bool) -> Iterator[tuple[Any, Any, Any]]:
        """Logits, tokens and lengths of each batch."""
        import torch

        for batch in batched(texts, BATCH):
            encoded = self._tokenizer(list(batch), padding=True, add_special_tokens=special, return_tensors="pt")
            with torch.inference_mode():
                logits = self._network(**encoded).logits
            yield logits, encoded.input_ids, encoded.attention_mask.sum(1)
