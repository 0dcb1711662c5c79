"""Train the embedded model: `python -m tools.embedded.train --out FOLDER`.

A run needs only this repository: the atlas, the wordings of the rule library, and this code; it takes about an hour on
two cores. At the end it writes the model folder and measures it.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import hapax
from hapax.evaluation.shared.estimates import auc
from hapax.llm_oracle.embedded.atlas import AtlasFact, load_atlas
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.weights.identities import TEACHERS_FILE, write_sums
from tools.embedded.corpus import Corpus
from tools.embedded.encoding import BEGIN, END, PADDING, VOCABULARY_SIZE, Batch, BatchMaker, build_tokenizer, token_id
from tools.embedded.facts import load_wording

FACT_THRESHOLD = 0.85
"""The paper's threshold for a fact (LINK, section 2.3)."""
LISTS = 300
"""Questions for lists that are asked."""


@dataclass(frozen=True, slots=True)
class ExaminationReport:
    """Figures of a model, of which each must reach `GATES`."""

    critic_auc: float
    """Chance that a fact of the atlas scores above a falsehood held out of training."""
    true_facts_accepted: float
    """Share of the atlas's facts whose P(yes) exceeds the threshold."""
    lines_parsed: float
    """Share of generated lines of the form `1. value.`"""
    values_of_type: float
    """Share of generated values that the atlas has with the type that was asked for."""

    @property
    def failures(self) -> tuple[str, ...]:
        """A sentence for each figure that fails the gate; empty if the model may be released."""
        values = asdict(self)
        return tuple(
            f"{name} is {values[name]:.3f}; at least {least} is needed."
            for name, least in GATES.items()
            if not values[name] >= least  # nan fails, too
        )


GATES = {"critic_auc": 0.97, "true_facts_accepted": 0.90, "lines_parsed": 0.99, "values_of_type": 0.97}
"""The lowest value of each figure for a release."""


def examine(folder: Path, corpus: Corpus) -> ExaminationReport:
    """Measure the model in a folder. Wrong facts are those held out of training, true ones all of the atlas."""
    models = hapax.open_models(f"hf:{folder}")
    rng = random.Random(0)  # noqa: S311  reproducible, not secret
    wrong = [corpus.falsehoods.wrong_fact(fact, rng, held_out=True) for fact in corpus.atlas.facts]

    def scores(facts: list[AtlasFact]) -> list[float]:
        answers = models.critic.probabilities([corpus.claim(fact) for fact in facts])
        return [answer.probability for answer in answers]

    yes, no = scores(list(corpus.atlas.facts)), scores([fact for fact in wrong if fact is not None])
    asked = rng.sample(corpus.list_questions, LISTS)
    requests = [GenerationRequest(corpus.prompt(question, rng)) for question in asked]
    replies = models.knowledge.generate(requests, GenerationParameters())
    lines = parsed = typed = 0
    for question, reply in zip(asked, replies, strict=True):
        relation = corpus.atlas.relations[question.predicate]
        known = corpus.atlas.entities(relation.argument_types[question.position])
        for line in reply.text.strip("\n").split("\n"):
            number, dot, value = line.partition(". ")
            lines += 1
            if number.isdigit() and dot and value.endswith("."):
                parsed += 1
                typed += value[:-1] in known
    accepted = sum(score > FACT_THRESHOLD for score in yes) / len(yes)
    return ExaminationReport(auc(yes, no), accepted, parsed / max(1, lines), typed / max(1, parsed))


CHAT_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""The message alone, so that a chat request and a completion request give the model the same tokens."""
ABILITIES_FILE = "hapax.json"
"""File with the predicates that the model knows, and the settings of its training."""


def export_model(
    model: LlamaForCausalLM, tokenizer: Tokenizer, corpus: Corpus, record: Mapping[str, Any], folder: Path
) -> None:
    """Write the weights (fp16; used in fp32), configuration, tokenizer and abilities."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]  # transformers types it in part
        bos_token_id=model.config.bos_token_id,
        eos_token_id=model.config.eos_token_id,
        pad_token_id=model.config.pad_token_id,
    )
    exported: Any = copy.deepcopy(model)  # transformers types `to` for classes of its own alone
    exported.to(torch.float16)
    exported.config.dtype = torch.float16
    exported.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # safetensors makes it readable to its owner only
    write_sums(folder, ["model.safetensors"])
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers types it in part
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PADDING,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=model.config.max_position_embeddings,
    )
    fast.chat_template = CHAT_TEMPLATE
    fast.save_pretrained(folder)
    _inline_chat_template(folder)
    predicates = [f"{predicate}/2" for predicate in corpus.atlas.relations]
    abilities = {"predicates": predicates, "types": list(corpus.atlas.types), "training": record}
    (folder / ABILITIES_FILE).write_text(json.dumps(abilities, indent=1) + "\n", encoding="utf-8")
    # The atlas takes the popularity of its entities, and with it the model's likelihoods, from the word list.
    (folder / TEACHERS_FILE).write_text(json.dumps({"taught_by": ["frequency"]}) + "\n", encoding="utf-8")


def _inline_chat_template(folder: Path) -> None:
    """Move the chat template into `tokenizer_config.json`, where all servers and older releases look for it."""
    separate = folder / "chat_template.jinja"
    if not separate.exists():
        return
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["chat_template"] = separate.read_text(encoding="utf-8")
    path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    separate.unlink()


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
