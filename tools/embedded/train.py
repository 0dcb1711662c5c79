"""Train the embedded model: `python -m tools.embedded.train --out FOLDER`.

A run needs only this repository: the atlas, the wordings of the rule library, and this code; it takes about an hour on
two cores. At the end it writes the model folder and measures it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from hapax.llm_oracle.embedded.atlas import load_atlas
from tools.embedded.batches import Batch, BatchMaker
from tools.embedded.corpus import Corpus
from tools.embedded.exam import examine
from tools.embedded.export import export_model
from tools.embedded.tokenizer import BEGIN, END, PADDING, VOCABULARY_SIZE, build_tokenizer, token_id
from tools.embedded.wording import load_wording

SHIPPED = "llm_oracle/embedded/model"
LOGGED_STEPS = 100


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings that decide the outcome of a run."""

    steps: int = 14_000
    rows: int = 8
    """Rows of `ROW_TOKENS` tokens in a step."""
    learning_rate: float = 3e-3
    warm_up: float = 0.02
    """Share of the steps over which the learning rate rises."""
    flat: float = 0.5
    """Share of the steps after which it falls; by then the critic must be better than chance."""
    early: float = 0.29
    """Share of the steps with the early mix of documents."""
    final: float = 0.02
    """Share of the learning rate that is left at the end."""
    weight_decay: float = 0.05
    width: int = 128
    layers: int = 4
    heads: int = 4
    vocabulary: int = VOCABULARY_SIZE
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate of a step: a linear rise, a plateau, and a fall by half a cosine."""
        done = step / self.steps
        if done < self.warm_up:
            return self.learning_rate * (step + 1) / (self.warm_up * self.steps + 1)
        if done < self.flat:
            return self.learning_rate
        fallen = (1 + math.cos(math.pi * (done - self.flat) / (1 - self.flat))) / 2
        return self.learning_rate * (self.final + (1 - self.final) * fallen)


class TrainingRun:
    """The model, its tokenizer and its optimizer."""

    def __init__(self, corpus: Corpus, settings: TrainingSettings) -> None:
        self.settings = settings
        self.tokenizer = build_tokenizer(corpus, settings.vocabulary)
        torch.manual_seed(settings.seed)
        self.model = new_model(settings, self.tokenizer)
        # Weight decay is for matrices alone: it would pull the scales of the norms to zero.
        matrices = [parameter for parameter in self.model.parameters() if parameter.ndim >= 2]
        vectors = [parameter for parameter in self.model.parameters() if parameter.ndim < 2]
        self._optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=settings.learning_rate,
            betas=(0.9, 0.98),
            fused=True,
        )
        self._batches = BatchMaker(corpus, self.tokenizer, settings.seed, settings.rows)

    def run(self) -> LlamaForCausalLM:
        """Train, and print the mean loss of every hundred steps."""
        self.model.train()
        losses: list[float] = []
        for step in range(self.settings.steps):
            late = step >= self.settings.early * self.settings.steps
            losses.append(self._learn(step, self._batches.batch(step, late)))
            if len(losses) == LOGGED_STEPS:
                print(f"step {step + 1}/{self.settings.steps} loss {fmean(losses):.3f}", flush=True)
                losses.clear()
        return self.model

    def _learn(self, step: int, batch: Batch) -> float:
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.rate(step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model.model(
                input_ids=batch.ids, attention_mask=batch.visible, position_ids=batch.positions, use_cache=False
            ).last_hidden_state
            # Only places whose next token is learnt go through the output layer: two of three tokens are only read.
            logits = self.model.lm_head(hidden.flatten(0, 1).index_select(0, batch.sources))
        losses = torch.nn.functional.cross_entropy(logits.float(), batch.targets, reduction="none")
        loss = (losses * batch.weights).sum() / batch.weights.sum()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch types it in part
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self._optimizer.step()
        return loss.item()


def new_model(settings: TrainingSettings, tokenizer: Tokenizer) -> LlamaForCausalLM:
    """A small Llama with random weights and tied embeddings."""
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=settings.width,
        intermediate_size=3 * settings.width,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=token_id(tokenizer, BEGIN),
        eos_token_id=token_id(tokenizer, END),
        pad_token_id=token_id(tokenizer, PADDING),
    )
    return LlamaForCausalLM(config)


def main() -> None:
    """Train, export and measure; exit with status 1 if the model fails the release gate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help=f"model folder to write; the shipped one: {SHIPPED}")
    parser.add_argument("--steps", type=int, default=TrainingSettings().steps)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    atlas = load_atlas()
    corpus = Corpus(atlas, load_wording(atlas))
    settings = TrainingSettings(steps=arguments.steps, seed=arguments.seed)
    training = TrainingRun(corpus, settings)
    model = training.run()
    export_model(model, training.tokenizer, corpus, {"settings": asdict(settings)}, arguments.out)
    report = examine(arguments.out, corpus)
    print(f"written to {arguments.out}: {report}")
    if report.failures:
        raise SystemExit("The model fails the release gate:\n" + "\n".join(report.failures))


if __name__ == "__main__":
    main()
