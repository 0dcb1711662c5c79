"""Train the embedded model: `python -m tools.embedded.train --out FOLDER`.

A run needs only this repository: the atlas, the wordings of the rule library, and this code; it takes about an hour on
two cores. At the end it writes the model folder and measures it.

The tokenizer is byte-level BPE with single digits. The fixed phrases of prompts and templates carry no information, so
each is a single token: a critic's question is a dozen tokens instead of fifty, and training sees four times as many
facts. Documents are packed into rows; those of a row do not see each other, and the positions of each begin at 0: in
training a prompt is at the start of an otherwise empty context, as in a search.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import hapax
from hapax.evaluation.shared.estimates import auc
from hapax.grammar.parsing.declarations import PredicateKind
from hapax.llm_oracle.backends.weights import TEACHERS_FILE, write_sums
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest
from hapax.llm_oracle.questions.prompts import (
    CRITIC_PROMPT,
    VALUES_PER_CALL,
    exclusion_clause,
    functional_prompt,
    knowledge_prompt,
)
from tools.embedded.corpus import LONGEST_LIST, NO, YES, Corpus, Document

BEGIN, END, PADDING = "<|begin|>", "<|end|>", "<|pad|>"
ANSWER_REPEATS = 500
"""Number of times that the critic's two answers are in the training text: enough to make each a single token."""
TYPE_REPEATS = 20
"""The same for the words of type names, which are in all list prompts."""
ROW_TOKENS = 256
ANSWER_WEIGHT = 8.0
"""Weight of a yes or no in the loss; any other learnt token has weight 1."""
MISFITS = 3
"""Number of successive documents that do not fit into a row, after which it is closed."""
LENGTH_SAMPLE = 400
"""Number of documents of each kind drawn to estimate their mean length."""
SHARES = {
    "question": (0.48, 0.31),
    "list": (0.26, 0.38),
    "statement": (0.15, 0.18),
    "rule statement": (0.04, 0.06),
    "type question": (0.07, 0.07),
}
"""Early and late share of each kind in the training tokens: first more for the critic, which is slow to learn."""

CHAT_TEMPLATE = "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""The message alone, so that a chat request and a completion request give the model the same tokens."""
ABILITIES_FILE = "hapax.json"
"""File with the predicates that the model knows, and the settings of its training."""
SHIPPED = "llm_oracle/embedded/model"
LOGGED_STEPS = 100

FACT_THRESHOLD = 0.85
"""The paper's threshold for a fact (LINK, section 2.3)."""
LISTS = 300
"""Questions for lists that are asked when the model is measured."""
GATES = {"critic_auc": 0.97, "true_facts_accepted": 0.90, "lines_parsed": 0.99, "values_of_type": 0.97}
"""The lowest value of each figure for a release."""

_SLOT = re.compile(r"\[[12]\]")


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
    vocabulary: int = 6144
    seed: int = 0

    def rate(self, step: int) -> float:
        """The share of the learning rate at a step: a linear rise, a plateau, and a fall by half a cosine."""
        done = step / self.steps
        if done < self.warm_up:
            return (step + 1) / (self.warm_up * self.steps + 1)
        if done < self.flat:
            return 1.0
        fallen = (1 + math.cos(math.pi * (done - self.flat) / (1 - self.flat))) / 2
        return self.final + (1 - self.final) * fallen


def build_tokenizer(corpus: Corpus, vocabulary_size: int) -> Tokenizer:
    """A tokenizer for the corpus, trained on each name and word once.

    Without weights by popularity, popular names do not get fewer tokens: only the likelihood is to reflect popularity.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    frames = phrases(corpus)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(frames),  # the phrases are added after the training
        special_tokens=[BEGIN, END, PADDING],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_words(corpus), trainer)
    tokenizer.add_tokens([AddedToken(phrase, normalized=False) for phrase in frames])
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, tokenizer.token_to_id(BEGIN))]
    )
    return tokenizer


def phrases(corpus: Corpus) -> list[str]:
    """The fixed phrases of prompts and templates and the numbering of lists; no phrase ends in a blank."""
    found = [*CRITIC_PROMPT.split("{claim}"), "If PersonX", ", then PersonX"]
    # No prompt contains a NUL, so it can mark the slots.
    for prompt in (knowledge_prompt("\0", "\0", "\0"), functional_prompt("\0", "\0", "\0")):
        found += prompt.split("\0")[:3]
    found.append(exclusion_clause(("\0",)).partition("\0")[0])
    found += [f"\n{place}." for place in range(1, max(VALUES_PER_CALL, LONGEST_LIST) + 1)]
    found += [wording.template.partition("[1]")[2].partition("[2]")[0] for wording in corpus.wordings.values()]
    used = {atom.indicator for rule in corpus.library.rules for atom in rule.atoms}
    for signature in corpus.library.signatures:
        if signature.kind is PredicateKind.GIVEN and signature.templates and signature.indicator in used:
            # More than a word around the names in statements of rules.
            found += [piece for piece in _SLOT.split(signature.templates.affirmative) if " " in piece.strip()]
    return list(dict.fromkeys(phrase.rstrip(" ") for phrase in found if len(phrase.strip()) > 1))


def _training_words(corpus: Corpus) -> Iterator[str]:
    for name in dict.fromkeys(name for data_type in corpus.atlas.types for name in corpus.atlas.entities(data_type)):
        # At the start of a sentence, inside a sentence, and after the quotation mark of a prompt.
        yield from (name[:1].upper() + name[1:], f" {name}", name)
    for wording in corpus.wordings.values():
        yield f" {_SLOT.sub('', wording.template)}"
        for types in wording.data_types:
            yield from (f" is a {data_type.lower()}." for data_type in types for _ in range(TYPE_REPEATS))
    yield from (YES, NO, " is", " an", " a", " the", " The", " where", " and") * ANSWER_REPEATS


class EncodedDocument(NamedTuple):
    """Token ids, with the weight of predicting each of them in the loss (0: the token is only read)."""

    ids: list[int]
    weights: list[float]


class Batch(NamedTuple):
    """The tensors of a training step, each of rows x tokens: ids, positions, and weights in the loss.

    Positions begin anew with each document, by which the model keeps the documents of a row apart.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    weights: torch.Tensor


class BatchMaker:
    """Makes the batch of a step from the seed and the step number alone."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, settings: TrainingSettings) -> None:
        self._tokenizer, self._settings = tokenizer, settings
        statements = corpus.statements(lambda text: len(self._ids(text)))
        makers = {"question": corpus.question, "list": corpus.listing, "type question": corpus.type_question}
        self._makers = makers | statements
        (self._begin,), (self._end,) = map(self._ids, (BEGIN, END))
        rng = random.Random(f"{settings.seed} lengths")  # noqa: S311  # reproducible, not secret
        # Shares are of tokens, draws are of documents.
        self._frequencies: dict[str, tuple[float, ...]] = {}
        for kind, maker in self._makers.items():
            mean = fmean(len(self.encoded(maker(rng)).ids) for _ in range(LENGTH_SAMPLE))
            self._frequencies[kind] = tuple(share / mean for share in SHARES[kind])

    def encoded(self, document: Document) -> EncodedDocument:
        """The document between its first token and, if it ends, its last."""
        read = [self._begin, *self._ids(document.prompt)]
        learnt = self._ids(document.answer) + [self._end] * document.ends
        weight = ANSWER_WEIGHT if document.answer in (YES, NO) else 1.0
        return EncodedDocument(read + learnt, [0.0] * len(read) + [weight] * len(learnt))

    def batch(self, step: int) -> Batch:
        """The batch of a step, in the mix of documents of its part of the run."""
        rng = random.Random(f"{self._settings.seed} step {step}")  # noqa: S311  # reproducible, not secret
        is_late = step >= self._settings.early * self._settings.steps
        weights = [frequencies[is_late] for frequencies in self._frequencies.values()]
        size = (self._settings.rows, ROW_TOKENS)
        # Padding is a document of its own, from which nothing is learnt.
        batch = Batch(
            torch.zeros(size, dtype=torch.long), torch.arange(ROW_TOKENS).repeat(size[0], 1), torch.zeros(size)
        )
        for row in range(self._settings.rows):
            filled = misfits = 0
            while misfits < MISFITS:
                kind = rng.choices(list(self._frequencies), weights=weights)[0]
                document = self.encoded(self._makers[kind](rng))
                end = filled + len(document.ids)
                if end > ROW_TOKENS:
                    misfits += 1
                    continue
                batch.ids[row, filled:end] = torch.tensor(document.ids)
                batch.weights[row, filled:end] = torch.tensor(document.weights)
                batch.positions[row, end:] = torch.arange(ROW_TOKENS - end)
                filled = end
        return batch

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


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
        bos_token_id=tokenizer.token_to_id(BEGIN),
        eos_token_id=tokenizer.token_to_id(END),
        pad_token_id=tokenizer.token_to_id(PADDING),
    )
    return LlamaForCausalLM(config)


def train(corpus: Corpus, settings: TrainingSettings) -> tuple[LlamaForCausalLM, Tokenizer]:
    """The trained model and its tokenizer. Prints the mean loss of every hundred steps."""
    tokenizer = build_tokenizer(corpus, settings.vocabulary)
    torch.manual_seed(settings.seed)
    model = new_model(settings, tokenizer)
    # Weight decay is for matrices alone: it would pull the scales of the norms to zero.
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": vectors, "weight_decay": 0.0}],
        lr=settings.learning_rate,
        betas=(0.9, 0.98),
        fused=True,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, settings.rate)
    batches = BatchMaker(corpus, tokenizer, settings)
    losses: list[float] = []
    model.train()
    for step in range(settings.steps):
        loss = _loss(model, batches.batch(step))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch types it in part
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
        if len(losses) == LOGGED_STEPS:
            print(f"step {step + 1}/{settings.steps} loss {fmean(losses):.3f}", flush=True)
            losses.clear()
    return model, tokenizer


def _loss(model: LlamaForCausalLM, batch: Batch) -> torch.Tensor:
    """The weighted mean loss of the learnt tokens, each of which the token before predicts."""
    (learnt,) = batch.weights.flatten().nonzero(as_tuple=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model.model(input_ids=batch.ids, position_ids=batch.positions, use_cache=False).last_hidden_state
        # Only places whose next token is learnt go through the output layer: two of three tokens are only read.
        logits = model.lm_head(found.flatten(0, 1)[learnt - 1])
    losses = torch.nn.functional.cross_entropy(logits.float(), batch.ids.flatten()[learnt], reduction="none")
    weights = batch.weights.flatten()[learnt]
    return (losses * weights).sum() / weights.sum()


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
    # In `tokenizer_config.json` all servers and older releases look for the chat template.
    fast.save_pretrained(folder, save_jinja_files=False)
    predicates = [f"{predicate}/2" for predicate in corpus.atlas.relations]
    abilities = {"predicates": predicates, "types": list(corpus.atlas.types), "training": record}
    (folder / ABILITIES_FILE).write_text(json.dumps(abilities, indent=1) + "\n", encoding="utf-8")
    # The atlas takes the popularity of its entities, and with it the model's likelihoods, from the word list.
    (folder / TEACHERS_FILE).write_text(json.dumps({"taught_by": ["frequency"]}) + "\n", encoding="utf-8")


def examine(folder: Path, corpus: Corpus) -> dict[str, float]:
    """The figures of `GATES` of the model in a folder.

    `critic_auc`: chance that a fact of the atlas scores above a falsehood held out of training. `true_facts_accepted`:
    share of the facts above the threshold. `lines_parsed`: share of generated lines of the form `1. value.`, and
    `values_of_type`: of their values those that the atlas has with the type that was asked for.
    """
    tested = hapax.open_models(f"hf:{folder}")
    rng = random.Random(0)  # noqa: S311  # reproducible, not secret
    wrong = filter(None, [corpus.wrong_fact(fact, rng, held_out=True) for fact in corpus.atlas.facts])
    yes, no = (
        [answer.probability for answer in tested.critic.probabilities([corpus.claim(fact) for fact in facts])]
        for facts in (corpus.atlas.facts, wrong)
    )
    asked = rng.sample(corpus.list_questions, LISTS)
    requests = [GenerationRequest(corpus.prompt(question, rng)) for question in asked]
    lines = parsed = typed = 0
    for question, reply in zip(asked, tested.knowledge.generate(requests, GenerationParameters()), strict=True):
        data_type = corpus.atlas.relations[question.predicate].argument_types[question.position]
        known = corpus.atlas.entities(data_type)
        for line in reply.text.strip("\n").split("\n"):
            lines += 1
            if match := re.fullmatch(r"\d+\. (.*)\.", line):
                parsed += 1
                typed += match[1] in known
    accepted = sum(score > FACT_THRESHOLD for score in yes) / len(yes)
    figures = (auc(yes, no), accepted, parsed / max(1, lines), typed / max(1, parsed))
    return dict(zip(GATES, figures, strict=True))


def main() -> None:
    """Train, export and measure; exit with status 1 if the model fails the release gate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help=f"model folder to write; the shipped one: {SHIPPED}")
    parser.add_argument("--steps", type=int, default=TrainingSettings().steps)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    corpus = Corpus(load_atlas())
    settings = TrainingSettings(steps=arguments.steps, seed=arguments.seed)
    model, tokenizer = train(corpus, settings)
    export_model(model, tokenizer, corpus, {"settings": asdict(settings)}, arguments.out)
    figures = examine(arguments.out, corpus)
    print(f"written to {arguments.out}: {figures}")
    failures = [
        f"{name} is {figures[name]:.3f}; at least {least} is needed."
        for name, least in GATES.items()
        if not figures[name] >= least  # nan fails, too
    ]
    if failures:
        raise SystemExit("The model fails the release gate:\n" + "\n".join(failures))


if __name__ == "__main__":
    main()
