"""Throughput of critic and likelihood scoring, compared with a plain loop over padded batches.

    python -m benchmarks.scoring
    python -m benchmarks.scoring --model random:1024x16 --device cuda -o scoring.json

`benchmarks/README.md` explains the figures.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.common import machine, write_figures
from hapax.llm_oracle.backends.checkpoints import EMBEDDED_FOLDER
from hapax.llm_oracle.backends.huggingface import answer_tokens
from hapax.llm_oracle.backends.loading import LoadedModel, load_model
from hapax.llm_oracle.backends.scoring import CausalScorer
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.prompts import critic_prompt, type_claim
from hapax.llm_oracle.protocols import ModelIdentity
from tools.embedded.corpus import Corpus, ListQuestion
from tools.embedded.groundings import rule_statements
from tools.embedded.wording import load_wording

CALL = 128
"""Number of texts that the journal sends to a model at a time."""

RUN = 24
"""Number of successive statements of a rule, and most successive claims of a question."""

MATMUL = 8192
"""Side of the square matrices whose product measures a GPU's peak."""

Tokens = tuple[int, ...]
Score = Callable[[Sequence[Tokens]], list[float]]


@dataclass(frozen=True)
class Work:
    """The work of the network: tokens and padding in its input, and positions with logits (`heads`)."""

    tokens: int
    padding: int
    heads: int


@dataclass(frozen=True)
class ScoringMeasurement:
    """The figures of a way of scoring the texts of a role.

    `speed`: tokens per second; `ratio`: the speed in relation to the plain loop; `difference`: the largest difference
    of a score from the plain loop's.
    """

    role: str
    way: str
    seconds: float
    speed: float
    ratio: float
    work: Work
    difference: float
    utilisation: float | None


class PlainLoop:
    """The obvious implementation: padded batches of a fixed number of texts in the order given, with all logits."""

    def __init__(self, loaded: LoadedModel, batch: int) -> None:
        self._loaded, self._batch = loaded, batch

    @torch.inference_mode()
    def differences(self, texts: Sequence[Tokens], yes: int, no: int) -> list[float]:
        """The logit of yes minus that of no after each text, in nats."""
        found: list[float] = []
        for logits, _, lengths in self._logits(texts):
            last = logits[torch.arange(len(lengths)), lengths - 1]
            found += (last[:, yes] - last[:, no]).tolist()
        return found

    @torch.inference_mode()
    def log_likelihoods(self, texts: Sequence[Tokens]) -> list[float]:
        found: list[float] = []
        for logits, ids, lengths in self._logits(texts):
            token_scores = logits[:, :-1].log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
            inside = torch.arange(1, ids.shape[1], device=ids.device)[None] < lengths[:, None]
            found += (token_scores * inside).sum(1).tolist()
        return found

    def _logits(self, texts: Sequence[Tokens]) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        device = self._loaded.device
        for batch in batched(texts, self._batch):
            width = max(map(len, batch))
            ids = torch.tensor(
                [[*text, *[self._loaded.padding] * (width - len(text))] for text in batch], device=device
            )
            lengths = torch.tensor(list(map(len, batch)), device=device)
            mask = (torch.arange(width, device=device)[None] < lengths[:, None]).long()
            yield self._loaded.network(input_ids=ids, attention_mask=mask).logits.float(), ids, lengths


def batched(texts: Sequence[Tokens], size: int) -> Iterator[Sequence[Tokens]]:
    """The texts in order, `size` at a time."""
    return (texts[begin : begin + size] for begin in range(0, len(texts), size))


def sample(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Claims and texts to rank in the order of a search: the values of a question or rule are next to each other."""
    rng = random.Random(seed)  # noqa: S311  # a sample, no secret
    atlas = load_atlas()
    corpus = Corpus(atlas, load_wording(atlas))
    claims: list[str] = []
    while len(claims) < count:
        claims += _claims(corpus, rng.choice(corpus.list_questions), rng)
    library = corpus.wording.library
    rules = [rule for rule in library.rules if not library.is_definition(rule)]
    texts: list[str] = []
    while len(texts) < count:
        rule = rng.choice(rules)
        statements = rule_statements(replace(library, rules=(rule,)), atlas).get(rule.name, ())
        begin = rng.randrange(max(1, len(statements) - RUN))
        texts += [statement.sentence for statement in statements[begin : begin + RUN]]
        texts += _claims(corpus, rng.choice(corpus.list_questions), rng)
    return claims[:count], texts[:count]


def _claims(corpus: Corpus, question: ListQuestion, rng: random.Random) -> list[str]:
    """Claims about values of a question: their types, and the facts that they make."""
    values = corpus.values(question)
    chosen = rng.sample(values, min(len(values), RUN))
    data_type = corpus.wording.predicates[question.predicate].data_types[question.position][0]
    types = [type_claim(value[:1].upper() + value[1:], data_type) for value in chosen]
    return types if question.given is None else [*types, *(corpus.claim(question.filled(value)) for value in chosen)]


def random_llama(size: str, texts: Sequence[str], device: str, dtype: str) -> LoadedModel:
    """A Llama of WIDTHxLAYERS with random weights and 32,000 tokens, and a tokenizer that splits texts into words."""
    width, layers = map(int, size.split("x"))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = ["<s>", "</s>", "<pad>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=8192, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([*texts, *["yes no Yes No"] * 9], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    names = dict(zip(("bos_token", "eos_token", "pad_token"), specials, strict=True))
    fast: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)  # type: ignore[no-untyped-call]  # no types
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32_000,
        hidden_size=width,
        intermediate_size=width * 8 // 3 // 32 * 32,
        num_hidden_layers=layers,
        num_attention_heads=max(1, width // 64),
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
    )
    numbers = {"auto": torch.bfloat16 if device.startswith("cuda") else torch.float32, "float32": torch.float32}
    network: Any = LlamaForCausalLM(config)
    network.eval().to(device=device, dtype=numbers.get(dtype, torch.bfloat16))
    return LoadedModel(network, fast, ModelIdentity(f"random:{size}"))


class ScoringBenchmark:
    """Compares ways of scoring with the same model."""

    def __init__(self, loaded: LoadedModel, options: argparse.Namespace) -> None:
        self.loaded = loaded
        self._repeats = options.repeats
        self.peak = peak_flops(loaded) if loaded.device.type == "cuda" else None
        plain = PlainLoop(loaded, options.batch)
        shared, whole = CausalScorer(loaded), CausalScorer(loaded, sharing=False)
        yes, no = (tokens[0] for tokens in answer_tokens(loaded))

        def critic(scorer: CausalScorer) -> Score:
            return lambda texts: [first - second for first, second in scorer.next_logits(texts, [yes, no])]

        def likelihood(scorer: CausalScorer) -> Score:
            return lambda texts: [math.fsum(tokens) for tokens in scorer.log_likelihoods(texts)]

        self._ways: dict[str, dict[str, Score]] = {
            "critic": {
                "plain": lambda texts: plain.differences(texts, yes, no),
                "unshared": critic(whole),
                "hapax": critic(shared),
            },
            "likelihood": {
                "plain": plain.log_likelihoods,
                "unshared": likelihood(whole),
                "hapax": likelihood(shared),
            },
        }

    def measure(self, role: str, texts: Sequence[Tokens]) -> list[ScoringMeasurement]:
        """Measure all ways of a role; the figures are medians of the repeats."""
        ways = {name: in_calls(way) for name, way in self._ways[role].items()}
        expected = ways["plain"](texts)
        work: dict[str, Work] = {}
        differences: dict[str, float] = {}
        for name, way in ways.items():
            found, work[name] = self._counted(way, texts)
            gaps = (abs(wanted - score) for wanted, score in zip(expected, found, strict=True))
            differences[name] = max(gaps)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(self._repeats):
            for name, way in ways.items():  # in turns, so that a machine that slows down affects all ways
                seconds[name].append(self._timed(way, texts))
        ratios = {
            name: statistics.median(plain / own for plain, own in zip(seconds["plain"], taken, strict=True))
            for name, taken in seconds.items()
        }
        asked = sum(map(len, texts))
        return [
            ScoringMeasurement(
                role,
                name,
                middle := statistics.median(seconds[name]),
                asked / middle,
                ratios[name],
                work[name],
                differences[name],
                None if self.peak is None else self._flops(work[name]) / middle / self.peak,
            )
            for name in ways
        ]

    def _timed(self, way: Score, texts: Sequence[Tokens]) -> float:
        self._wait()
        begin = time.perf_counter()
        way(texts)
        self._wait()
        return time.perf_counter() - begin

    def _wait(self) -> None:
        if self.loaded.device.type == "cuda":
            torch.cuda.synchronize()

    def _counted(self, way: Score, texts: Sequence[Tokens]) -> tuple[list[float], Work]:
        """The scores of a way, and the work of the network's body and head for them."""
        tokens, padding, heads = [0], [0], [0]

        def body(_module: Any, _given: Any, named: dict[str, Any]) -> None:
            width = named["input_ids"].shape[1]
            own = int(named["attention_mask"][:, -width:].sum())
            tokens[0] += own
            padding[0] += named["input_ids"].numel() - own

        def head(_module: Any, given: tuple[torch.Tensor, ...]) -> None:
            heads[0] += given[0].numel() // given[0].shape[-1]

        network = self.loaded.network
        hooks = [
            network.base_model.register_forward_pre_hook(body, with_kwargs=True),
            network.get_output_embeddings().register_forward_pre_hook(head),
        ]
        try:
            found = way(texts)
        finally:
            for hook in hooks:
                hook.remove()
        return found, Work(tokens[0], padding[0], heads[0])

    def _flops(self, work: Work) -> float:
        """Two operations per weight of the body and token (without padding), and per weight and use of the head."""
        network = self.loaded.network
        head = network.get_output_embeddings().weight.numel()
        embeddings = network.get_input_embeddings().weight.numel()
        body = sum(weights.numel() for weights in network.base_model.parameters()) - embeddings
        return 2.0 * float(body * work.tokens + head * work.heads)


def in_calls(way: Score) -> Score:
    """The way of scoring, given `CALL` texts at a time, as by the journal."""
    return lambda texts: [score for call in batched(texts, CALL) for score in way(call)]


def peak_flops(loaded: LoadedModel) -> float:
    """Floating-point operations per second of a large matrix product in the model's number format."""
    matrix = torch.randn(MATMUL, MATMUL, device=loaded.device, dtype=loaded.network.dtype)
    times = []
    for _ in range(12):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        torch.mm(matrix, matrix)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    seconds: float = statistics.median(times[2:])
    return 2 * MATMUL * MATMUL * MATMUL / seconds


def machine_of(device: torch.device) -> dict[str, Any]:
    """Description of the machine, the device and the versions of libraries."""
    return {
        **machine(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure, and return all figures for JSON."""
    torch.set_num_threads(options.threads)
    claims, ranked = sample(options.texts, options.seed)
    kind, _, size = options.model.partition(":")
    if kind == "random":
        prompts = [critic_prompt(claim) for claim in claims]
        loaded = random_llama(size, [*prompts, *ranked], options.device, options.dtype)
    else:
        source = EMBEDDED_FOLDER if options.model == "embedded" else options.model
        loaded = load_model(source, options.device, options.model, options.dtype)
    bench = ScoringBenchmark(loaded, options)
    asked = {
        "critic": [tuple(loaded.prompt_tokens(critic_prompt(claim))) for claim in claims],
        "likelihood": [tuple(loaded.tokenizer(text).input_ids) for text in ranked],
    }
    measured = [measurement for role, texts in asked.items() for measurement in bench.measure(role, texts)]
    return {
        "machine": machine_of(loaded.device),
        "model": {
            "name": loaded.identity.name,
            "revision": loaded.identity.revision,
            "parameters": sum(weights.numel() for weights in loaded.network.parameters()),
            "dtype": str(loaded.network.dtype).removeprefix("torch."),
        },
        "settings": {name: value for name, value in vars(options).items() if name != "output"},
        "asked": {
            role: {"texts": len(texts), "distinct": len(set(texts)), "tokens": sum(map(len, texts))}
            for role, texts in asked.items()
        },
        "peak_tflops": None if bench.peak is None else bench.peak / 1e12,
        "measured": [asdict(measurement) for measurement in measured],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; write with -o."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="embedded", help="embedded, random:WIDTHxLAYERS, or a causal checkpoint")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--texts", type=int, default=1024, help="of each role")
    parser.add_argument("--batch", type=int, default=32, help="texts of the plain loop's batches")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON file for all of it")
    options = parser.parse_args(arguments)
    result = run(options)
    print(f"{result['model']['name']}, {result['model']['dtype']}, {result['machine']['device']}")
    print(
        f"{'role':11}{'way':10}{'tokens/s':>11}{'ratio':>8}"
        f"{'computed':>10}{'padding':>9}{'heads':>9}{'off by':>10}  MFU"
    )
    for figures in result["measured"]:
        work, used = figures["work"], figures["utilisation"]
        print(
            f"{figures['role']:11}{figures['way']:10}{figures['speed']:11.0f}{figures['ratio']:8.2f}"
            f"{work['tokens']:10}{work['padding']:9}{work['heads']:9}{figures['difference']:10.1e}  "
            + ("-" if used is None else f"{used:.1%}")
        )
    write_figures(options.output, result)


if __name__ == "__main__":
    main()
