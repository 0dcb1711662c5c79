"""Train the adapter of `smollm2-critic`: `python -m tools.critic.train --device cuda --batch 512 --minutes 6`.

Without a graphics card, `--minutes 45` on two cores sees a tenth as many claims.

The loss is that of the answer's token alone. A checkpoint with the optimizer's state and the adapter as it is are
written every few minutes; `--resume` continues from there, with more `--minutes` if they are used up.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from hapax.llm_oracle.backends.adapters import DOWN, UP, Adapter, read_adapter
from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.gguf_files import converted
from hapax.llm_oracle.backends.processor import processor_speed
from hapax.llm_oracle.backends.trained_critic import ANSWERS, QUESTIONS
from tools.critic.claims import ClaimSampler, KnownClaim
from tools.critic.data import SHARES, load_data
from tools.critic.lora import AdaptedLinear, adapt, save_adapter
from tools.critic.measuring import auc
from tools.critic.split import ClaimPart
from tools.critic.wordnet import Wordnet

STATE = "training.pt"
ADAPTER = "adapter.safetensors"
POOL = 16
"""Batches that are drawn together and sorted by length, so that little is padded."""
WARM_UP = 40
"""Steps."""
DENIALS = 0.1
"""Share of the claims that are followed by the second question."""
MEASURED_BATCH = 64
"""Claims."""


@dataclass(frozen=True, slots=True)
class EncodedTwins:
    """Tokens of two questions about a fact and a falsehood made from it: the answer is yes to `true`, no to `false`."""

    true: tuple[int, ...]
    false: tuple[int, ...]


@dataclass
class TrainingProgress:
    """Steps, claims, tokens and seconds of training so far."""

    step: int = 0
    claims: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Trainer:
    """The adapted network, its optimizer and its claims."""

    def __init__(self, options: argparse.Namespace, rank: int) -> None:
        self.options, self.rank = options, rank
        self.data = load_data(Wordnet())
        self.sampler = ClaimSampler(self.data.relations.parts[ClaimPart.TRAIN], SHARES)
        model = converted(smollm2_file())
        self.base = model.revision
        self.tokenizer = AutoTokenizer.from_pretrained(model.folder)
        torch.manual_seed(options.seed)  # so that all workers begin with the same adapter
        # Without instructions for it, a processor trains a hundred times slower in bfloat16.
        short = options.device != "cpu" or processor_speed().prefers_bfloat16
        dtype = torch.bfloat16 if short else torch.float32
        self.network = AutoModelForCausalLM.from_pretrained(model.folder, dtype=dtype, use_safetensors=True)
        self.network.to(options.device)
        self.adapted: dict[str, AdaptedLinear] = adapt(self.network, options.first_layer)
        weights = [weight for layer in self.adapted.values() for weight in (layer.down, layer.up)]
        self.weights = weights
        self.optimizer = torch.optim.AdamW(weights, lr=options.rate, weight_decay=0.0, betas=(0.9, 0.98), fused=True)
        self.progress = TrainingProgress()
        self.answers = [self.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in ANSWERS]
        self.suffixes = [tuple(self.tokenizer(suffix, add_special_tokens=False).input_ids) for suffix in QUESTIONS]
        if options.resume:
            self._resume()
        elif options.start is not None:
            self._start(read_adapter(options.start))

    def _resume(self) -> None:
        state = torch.load(self.options.folder / STATE, weights_only=True)
        for weight, stored in zip(self.weights, state["weights"], strict=True):
            weight.data.copy_(stored)
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = TrainingProgress(**state["progress"])

    @torch.no_grad()
    def _start(self, adapter: Adapter) -> None:
        """Take over the matrices of an adapter, whose claims count as seen."""
        for name, layer in self.adapted.items():
            layer.down.copy_(adapter.tensors[name + DOWN])
            layer.up.copy_(adapter.tensors[name + UP])
        self.progress.claims = int(adapter.metadata["claims"])

    def save(self) -> None:
        """Write the checkpoint and the adapter."""
        path = self.options.folder / STATE
        unfinished = path.with_suffix(".unfinished")
        stored = [weight.detach() for weight in self.weights]
        state = {"weights": stored, "optimizer": self.optimizer.state_dict(), "progress": asdict(self.progress)}
        torch.save(state, unfinished)
        unfinished.replace(path)
        metadata = {"base": f"SmolLM2-135M-Instruct {self.base}", "claims": str(self.progress.claims)}
        save_adapter(self.adapted, self.options.folder / ADAPTER, metadata)

    def train(self) -> None:
        """Train until the minutes are used up."""
        saved = printed = time.monotonic()
        losses: list[float] = []
        while self._share() < 1:
            for batch in self._batches():
                began = time.monotonic()
                losses.append(self._step(batch))
                now = time.monotonic()
                self.progress.seconds += now - began
                self._agreed()
                if self.rank == 0 and now - printed > 20:
                    self._print(losses)
                    printed, losses = now, []
                if self.rank == 0 and now - saved > 60 * self.options.save_minutes:
                    self.save()
                    self.measure(self.options.measured)
                    saved = time.monotonic()
                if self._share() >= 1 or self.progress.step >= self.options.steps:
                    break
            else:
                continue
            break
        if self.rank == 0:
            self.save()
            self.measure(self.options.measured)

    def _share(self) -> float:
        """Share of the training that is done."""
        share: float = self.progress.seconds / (60 * self.options.minutes)
        return share

    def _print(self, losses: Sequence[float]) -> None:
        done = self.progress
        print(
            f"step {done.step} claims {done.claims} loss {sum(losses) / len(losses):.3f} "
            f"{done.tokens / done.seconds:.0f} tokens/s {done.seconds / 60:.1f} min",
            flush=True,
        )

    def _batches(self) -> list[list[EncodedTwins]]:
        """Batches of encoded claims of similar length, in random order."""
        # Seeded by the step, so that a resumed training goes on with new claims.
        seed = f"{self.options.seed} {self.progress.step} {self.rank}"
        rng = random.Random(seed)  # noqa: S311  # claims, not secrets
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
        return (*own[: self.options.longest], *self.suffixes[order])

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

    def _step(self, batch: Sequence[EncodedTwins]) -> float:
        share = min(1.0, (self.progress.step + 1) / WARM_UP) * max(0.03, 1.0 - self._share())
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * share
        rows = [*(twins.true for twins in batch), *(twins.false for twins in batch)]
        yes, no = self.margins(rows).chunk(2)
        # The answers' cross entropy, and that of choosing between the twins, which is what AUC measures.
        answers: torch.Tensor = (functional.softplus(-yes) + functional.softplus(no)).mean() / 2
        loss: torch.Tensor = answers + functional.softplus(no - yes).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch types it in part
        self._share_gradients()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.progress.step += 1
        # As many in each worker, in the mean.
        self.progress.claims += self.options.workers * len(rows)
        self.progress.tokens += self.options.workers * sum(map(len, rows))
        return float(answers.detach())

    def _share_gradients(self) -> None:
        """Average the gradients over the workers."""
        if self.options.workers == 1:
            return
        flat = torch.cat([weight.grad.flatten() for weight in self.weights if weight.grad is not None])
        distributed.all_reduce(flat)
        flat /= self.options.workers
        start = 0
        for weight in self.weights:
            if weight.grad is not None:
                weight.grad.copy_(flat[start : start + weight.numel()].view_as(weight))
                start += weight.numel()

    def _agreed(self) -> None:
        """Take over the first worker's clock, on which the learning rate and the end depend."""
        if self.options.workers > 1:
            seconds = torch.tensor([self.progress.seconds], dtype=torch.float64)
            distributed.broadcast(seconds, 0)
            self.progress.seconds = float(seconds)

    @torch.inference_mode()
    def measure(self, per_relation: int) -> None:
        """Print the AUC on the development parts."""
        if not per_relation:
            return
        for part in (ClaimPart.DEV_ENTITIES, ClaimPart.DEV_PREDICATES):
            claims = sorted(self.data.measured(part, per_relation), key=lambda claim: len(claim.sentence))
            scores: list[float] = []
            for at in range(0, len(claims), MEASURED_BATCH):
                scores += self.margins([self.encoded(claim) for claim in claims[at : at + MEASURED_BATCH]]).tolist()
            known = list(zip(claims, scores, strict=True))
            parts: dict[str, Any] = {"all": known}
            for claim, score in known:
                parts.setdefault(f"{claim.source}{' numbers' if claim.numeric else ''}", []).append((claim, score))
            line = ", ".join(
                f"{name} {auc([claim.is_true for claim, _ in rows], [score for _, score in rows]):.3f} ({len(rows)})"
                for name, rows in parts.items()
            )
            print(f"{part}: AUC {line}", flush=True)


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("critic_training"), help="for checkpoint and adapter")
    parser.add_argument("--minutes", type=float, default=45.0, help="of training, earlier runs counted in")
    parser.add_argument("--steps", type=int, default=10**9, help="end after this many steps at the latest")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda with one worker")
    parser.add_argument("--batch", type=int, default=8, help="claims of a step and worker")
    parser.add_argument("--rate", type=float, default=1e-3, help="highest learning rate")
    parser.add_argument("--longest", type=int, default=36, help="tokens of a claim")
    parser.add_argument("--workers", type=int, help="processes of one thread each (2 on cpu: faster on busy cores)")
    parser.add_argument("--first-layer", type=int, default=0, help="layers below have no adapter, and cost less")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-minutes", type=float, default=4.0)
    parser.add_argument("--measured", type=int, default=8, help="development facts of each relation; 0: none")
    parser.add_argument("--start", type=Path, help="adapter to begin with, made by the same split and layers")
    parser.add_argument("--resume", action="store_true", help="continue from the folder's checkpoint")
    options = parser.parse_args()
    options.workers = options.workers or (2 if options.device == "cpu" else 1)
    if options.workers > 1 and options.device != "cpu":
        parser.error("several workers share a processor; use --workers 1 with a graphics card")
    options.folder.mkdir(parents=True, exist_ok=True)
    # Before the workers start: of several that are connected, only the first would save the converted weights.
    converted(smollm2_file(), print)
    meeting = options.folder / "workers"
    meeting.unlink(missing_ok=True)
    spawn(work, (options, meeting.absolute().as_uri()), options.workers)  # type: ignore[no-untyped-call]  # torch types it in part


def work(rank: int, options: argparse.Namespace, meeting: str) -> None:
    """Train as one of the workers."""
    torch.set_num_threads(1)
    if options.workers > 1:
        distributed.init_process_group("gloo", meeting, rank=rank, world_size=options.workers)
    Trainer(options, rank).train()
    if options.workers > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main()
