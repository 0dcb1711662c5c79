"""Train the embedded model: `python -m tools.embedded.train --steps 14000`.

A run needs only this repository: the atlas, the wordings of the rule library, and this code. It writes checkpoints,
resumes from the last one when started again, measures the model, and exports the model folder at the end.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from hapax.llm_oracle.embedded.atlas import ATLAS_FOLDER, load_atlas
from tools.embedded.batches import Batch, BatchMaker
from tools.embedded.corpus import Corpus
from tools.embedded.exam import RELEASE, SAMPLE, Examiner
from tools.embedded.export import MODEL_FOLDER, export_model
from tools.embedded.tokenizer import BEGIN, END, PADDING, VOCABULARY_SIZE, build_tokenizer, token_id
from tools.embedded.wording import RULES_FOLDER, load_wording


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The settings that decide the outcome of a run. A run resumes only with equal settings, apart from `steps`."""

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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options that do not affect the outcome: checkpoints, progress messages, and examinations on the way."""

    checkpoints: Path | None = None
    checkpoint_every: int = 1000
    examine_every: int = 2000
    log_every: int = 100
    compiled: bool = False
    say: Callable[[str], None] = print


class TrainingRun:
    """A training run: the model, its optimizer, and the number of finished steps."""

    def __init__(self, corpus: Corpus, settings: TrainingSettings, options: RunOptions) -> None:
        self.corpus, self.settings, self.options = corpus, settings, options
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
        self._body = torch.compile(self.model.model) if options.compiled else self.model.model
        self.step = 0
        self.minutes = 0.0
        """Wall time so far, including the earlier parts of a resumed run."""

    def run(self) -> LlamaForCausalLM:
        """Train up to the last step, from the last checkpoint if there is one."""
        self._resume()
        self.model.train()
        clock = time.monotonic()
        losses: list[float] = []
        while self.step < self.settings.steps:
            late = self.step >= self.settings.early * self.settings.steps
            losses.append(self._learn(self._batches.batch(self.step, late)))
            self.step += 1
            clock, passed = time.monotonic(), time.monotonic() - clock
            self.minutes += passed / 60
            self._report(losses)
        return self.model

    def _report(self, losses: list[float]) -> None:
        """Print, save and measure as often as the options say; printed losses are removed from the list."""
        last = self.step == self.settings.steps
        if self.step % self.options.log_every == 0:
            self._say(f"loss {sum(losses) / len(losses):.3f} after {self.minutes:.1f} minutes")
            losses.clear()
        if last or self.step % self.options.checkpoint_every == 0:
            self._save()
        if not last and self.step % self.options.examine_every == 0:
            self._say(str(Examiner(self.model, self.tokenizer, self.corpus).examine(SAMPLE)))

    def _learn(self, batch: Batch) -> float:
        for group in self._optimizer.param_groups:
            group["lr"] = self.settings.rate(self.step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self._body(
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

    @property
    def _checkpoint(self) -> Path | None:
        return self.options.checkpoints / "last.pt" if self.options.checkpoints else None

    def _save(self) -> None:
        if self._checkpoint is None:
            return
        self._checkpoint.parent.mkdir(parents=True, exist_ok=True)
        written = self._checkpoint.with_suffix(".new")
        state = {
            "settings": asdict(self.settings),
            "tokenizer": self.tokenizer.to_str(),
            "step": self.step,
            "minutes": self.minutes,
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
        }
        torch.save(state, written)
        written.replace(self._checkpoint)  # atomic: a process killed while writing leaves the old checkpoint intact

    def _resume(self) -> None:
        if self._checkpoint is None or not self._checkpoint.exists():
            return
        state = torch.load(self._checkpoint, weights_only=True)
        # The number of steps may change: as long as the learning rate is flat, the finished steps stay the same.
        same = {**state["settings"], "steps": 0} == {**asdict(self.settings), "steps": 0}
        if not same or state["tokenizer"] != self.tokenizer.to_str():
            raise SystemExit(
                f"{self._checkpoint} belongs to another run: its settings or atlas differ. Move it elsewhere."
            )
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.minutes = state["step"], state["minutes"]
        self._say("resumes from its checkpoint")

    def _say(self, words: str) -> None:
        self.options.say(f"{time.strftime('%H:%M:%S')} step {self.step}/{self.settings.steps} {words}")


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
    """Train, measure and export; exit with status 1 and without export if the model fails the release gate."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    atlas = load_atlas(arguments.atlas)
    corpus = Corpus(atlas, load_wording(atlas, arguments.rules))
    settings = TrainingSettings(steps=arguments.steps, seed=arguments.seed)
    options = RunOptions(arguments.checkpoints, compiled=arguments.compile, say=lambda words: print(words, flush=True))
    training = TrainingRun(corpus, settings, options)
    model = training.run()
    report = Examiner(model, training.tokenizer, corpus).examine(RELEASE)
    print(str(report).replace(" ", "\n"), flush=True)
    if report.failures and not arguments.ungated:
        raise SystemExit("The model fails the release gate and is not exported:\n" + "\n".join(report.failures))
    record = {
        "settings": asdict(settings),
        "facts": len(atlas.facts),
        "minutes": round(training.minutes, 1),
        "gate": asdict(report),
    }
    export_model(model, training.tokenizer, corpus, record, arguments.out)
    print(f"written to {arguments.out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=MODEL_FOLDER, help="model folder to write")
    parser.add_argument("--steps", type=int, default=TrainingSettings().steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atlas", type=Path, default=ATLAS_FOLDER, help="folder of *.atlas files")
    parser.add_argument("--rules", type=Path, default=RULES_FOLDER, help="folder of rule files with the templates")
    parser.add_argument("--checkpoints", type=Path, help="folder for checkpoints; default: none are kept")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--compile", action="store_true", help="use torch.compile: a fifth faster, needs a C++ compiler"
    )
    parser.add_argument("--ungated", action="store_true", help="export the model even if it fails the release gate")
    return parser.parse_args()


if __name__ == "__main__":
    main()
