"""Train the adapter of `smollm2-critic`: `python -m tools.critic.train --device cuda --batch 512 --minutes 6`.

Without a graphics card, `--minutes 45` sees a fiftieth as many claims. The loss is that of the answer's token alone.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.gguf_files import converted
from hapax.llm_oracle.backends.processor import processor_speed
from hapax.llm_oracle.backends.trained_critic import ANSWERS, QUESTIONS
from tools.critic.claims import ClaimSampler, KnownClaim
from tools.critic.lora import AdaptedLinear, adapt, save_adapter
from tools.critic.relations import SOURCES
from tools.critic.split import ClaimPart, load_split

SHARES = dict(zip(SOURCES, (0.15, 0.035, 0.005, 0.77, 0.04), strict=True))
"""Share of each source in the training claims."""
POOL = 16
"""Batches that are drawn together and sorted by length, so that little is padded."""
WARM_UP = 40
"""Steps."""
DENIALS = 0.1
"""Share of the claims that are followed by the second question."""
LONGEST = 36
"""Tokens of a claim that are read."""
LOGGED_STEPS = 50


@dataclass(frozen=True, slots=True)
class EncodedTwins:
    """Tokens of two questions about a fact and a falsehood made from it: the answer is yes to `true`, no to `false`."""

    true: tuple[int, ...]
    false: tuple[int, ...]


class Trainer:
    """The adapted network, its optimizer and its claims."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.sampler = ClaimSampler(load_split().parts[ClaimPart.TRAIN], SHARES)
        model = converted(smollm2_file())
        self.base = model.revision
        self.tokenizer = AutoTokenizer.from_pretrained(model.folder)
        torch.manual_seed(options.seed)
        # Without instructions for it, a processor trains a hundred times slower in bfloat16.
        short = options.device != "cpu" or processor_speed().prefers_bfloat16
        dtype = torch.bfloat16 if short else torch.float32
        self.network = AutoModelForCausalLM.from_pretrained(model.folder, dtype=dtype, use_safetensors=True)
        self.network.to(options.device)
        self.adapted: dict[str, AdaptedLinear] = adapt(self.network)
        self.weights = [weight for layer in self.adapted.values() for weight in (layer.down, layer.up)]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=options.rate, weight_decay=0.0, betas=(0.9, 0.98), fused=True
        )
        self.step = self.claims = 0
        self.answers = [self.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in ANSWERS]
        self.suffixes = [tuple(self.tokenizer(suffix, add_special_tokens=False).input_ids) for suffix in QUESTIONS]

    def train(self) -> None:
        """Train until the minutes are used up, and write the adapter."""
        began = time.monotonic()
        losses: list[float] = []
        share = 0.0
        while share < 1:
            for batch in self._batches():
                losses.append(self._learn(batch, share))
                share = (time.monotonic() - began) / (60 * self.options.minutes)
                if share >= 1:
                    break
                if len(losses) == LOGGED_STEPS:
                    print(f"step {self.step} claims {self.claims} loss {fmean(losses):.3f}", flush=True)
                    losses.clear()
        metadata = {"base": f"SmolLM2-135M-Instruct {self.base}", "claims": str(self.claims)}
        save_adapter(self.adapted, self.options.out, metadata)

    def _batches(self) -> list[list[EncodedTwins]]:
        """Batches of encoded claims of similar length, in random order."""
        rng = random.Random(f"{self.options.seed} {self.step}")  # noqa: S311  # claims, not secrets
        pairs: list[EncodedTwins] = []
        for _ in range(POOL * self.options.batch // 2):
            first, second = self.sampler.twins(rng)
            true, false = (first, second) if first.is_true else (second, first)
            order = int(rng.random() < DENIALS)  # the second question asks if the claim is false
            if order:
                true, false = false, true
            pairs.append(EncodedTwins(self.encoded(true, order), self.encoded(false, order)))
        pairs.sort(key=lambda pair: len(pair.true) + len(pair.false) + rng.random())
        size = self.options.batch // 2
        batches = [pairs[at : at + size] for at in range(0, len(pairs), size)]
        rng.shuffle(batches)
        return batches

    def encoded(self, claim: KnownClaim, order: int = 0) -> tuple[int, ...]:
        """Tokens of a claim and of one of the two questions."""
        own = self.tokenizer(claim.sentence, add_special_tokens=False).input_ids
        return (*own[:LONGEST], *self.suffixes[order])

    def margins(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logit of yes less that of no after each row."""
        width = max(map(len, rows))
        # Padding on the right: a causal network does not see it from before, so no mask is needed.
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=self.options.device)
        states = self.network.model(input_ids=ids, use_cache=False).last_hidden_state
        ends = torch.tensor([len(row) - 1 for row in rows], device=self.options.device)
        last = states[torch.arange(len(rows), device=self.options.device), ends]
        yes, no = self.network.lm_head.weight[self.answers]
        margins: torch.Tensor = (last @ (yes - no)).float()
        return margins

    def _learn(self, batch: Sequence[EncodedTwins], share: float) -> float:
        """A step of the training, of which `share` is done."""
        rate = min(1.0, (self.step + 1) / WARM_UP) * max(0.03, 1.0 - share)
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * rate
        rows = [*(twins.true for twins in batch), *(twins.false for twins in batch)]
        yes, no = self.margins(rows).chunk(2)
        # The answers' cross entropy, and that of choosing between the twins, which is what AUC measures.
        answers: torch.Tensor = (functional.softplus(-yes) + functional.softplus(no)).mean() / 2
        loss: torch.Tensor = answers + functional.softplus(no - yes).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch types it in part
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.step += 1
        self.claims += len(rows)
        return float(answers.detach())


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("adapter.safetensors"), help="adapter to write")
    parser.add_argument("--minutes", type=float, default=45.0, help="of training")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--batch", type=int, default=8, help="claims of a step")
    parser.add_argument("--rate", type=float, default=1e-3, help="highest learning rate")
    parser.add_argument("--seed", type=int, default=0)
    Trainer(parser.parse_args()).train()


if __name__ == "__main__":
    main()
