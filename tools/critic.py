"""Train, join and measure adapters of the critic `smollm2-critic`, on claims that are drawn from the atlas.

python -m tools.critic train --out first.safetensors --device cuda --batch 512 --minutes 6
python -m tools.critic card first.safetensors second.safetensors
python -m tools.critic calibrate

Without a graphics card, `--minutes 45` sees a fiftieth as many claims. Adapters are written in 8-bit integers, by plain
rounding. `calibrate` fits only the card's maps, from P(yes) to a probability.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer

from hapax.evaluation.calibration.fitting import LabelledScore, logistic
from hapax.evaluation.shared.estimates import auc
from hapax.evaluation.shared.lazy import np
from hapax.grammar.parsing.parser import parse_rules
from hapax.grammar.terms import Atom, Constant
from hapax.llm_oracle.backends.adapters import PARTS, Adapter, read_adapter
from hapax.llm_oracle.backends.checkpoints import smollm2_file
from hapax.llm_oracle.backends.loading import load_model, multiplies_bfloat16
from hapax.llm_oracle.backends.trained_critic import (
    ADAPTER,
    ANSWERS,
    CARD,
    FOLDER,
    QUESTIONS,
    CriticCard,
    LogisticMap,
    TrainedCritic,
)
from hapax.llm_oracle.backends.weights import converted, write_sums
from hapax.llm_oracle.embedded.atlas import NUMERIC_TYPES, AtlasFact, load_atlas
from hapax.llm_oracle.questions.prompts import fact_claim, sentence, type_claim
from tools.embedded.corpus import Corpus

HELD_OUT_KEYS = 10
"""One key in this many, by a hash of its name, is kept out of training."""
CLASS_SIZE = 8
"""Facts of a predicate from which a value is a class, such as a continent: it trains although its name is held out."""
TYPE_SHARE, DENIED_SHARE = 0.15, 0.1
"""Shares of the training claims that name a data type, and that use the negated template."""
RANK = 16
SCALE = 2.0
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
POOL = 16
"""Batches that are drawn together and sorted by length, so that little is padded."""
WARM_UP = 40
"""Steps."""
OTHER_QUESTION_SHARE = 0.1
"""Share of the claims that are followed by the second question, which asks if the claim is false."""
LONGEST = 36
"""Tokens of a claim that are read."""
LOGGED_STEPS = 50
CARD_RANK = 19
"""The joined adapter of all layers then has 5.9 MB."""
BAR = 0.65
"""AUC below which a predicate is not judged."""
FEWEST = 16
"""Claims from which a predicate's own AUC decides; with fewer, that of all its kind (numbers or names) does."""
PER_PREDICATE = 40
"""Most facts of a predicate that are measured, each with a falsehood."""

MAPPED = 10
"""Most facts of a predicate by which the map is fitted."""
SUBJECTS = Path(__file__).parent / "critic_claims"
"""Claims of subjects that nobody trained on: those for development, and those that are held out."""
UNKNOWN_SHARE = 0.35
"""Share of the development claims, those nearest to one half, of which the critic says that it does not know them."""

Twins = tuple[str, str]
"""A true claim and a false one made from it, in the same words."""


@dataclass(frozen=True, slots=True)
class MeasuredClaim:
    """The P(yes) of a claim of known truth about a predicate."""

    predicate: str
    is_true: bool
    probability: float


class AtlasClaims:
    """Draws training twins, and lists the facts that are kept out of training to measure the critic."""

    def __init__(self) -> None:
        self.atlas = load_atlas()
        self.corpus = Corpus(self.atlas)
        counts = Counter((fact.predicate, self._value(fact)) for fact in self.atlas.facts)
        self._classes = {place for place, count in counts.items() if count >= CLASS_SIZE}
        # By their place in the alphabet alone, so that nobody chose them.
        self._unseen_predicates = frozenset(sorted(self.atlas.relations)[3::7])
        self.trained = tuple(fact for fact in self.atlas.facts if self._trains(fact))
        self.kept_out = tuple(fact for fact in self.atlas.facts if self._is_measured(fact))
        self._typed = tuple(pair for pair in self.corpus.typed if not is_kept_out(pair[0]))
        self.templates: dict[str, list[str]] = {}
        for signature in self.corpus.library.signatures:
            if signature.name in self.atlas.relations and signature.templates is not None:
                own = (signature.templates.affirmative, signature.templates.negated)
                self.templates[signature.name] = [template for template in own if template is not None]

    def is_numeric(self, predicate: str) -> bool:
        """True if an argument of the predicate is a number."""
        return bool(NUMERIC_TYPES.intersection(self.atlas.relations[predicate].argument_types))

    def twins(self, rng: random.Random) -> Twins:
        """A true and a false training claim; the same random state draws the same twins."""
        while True:
            if rng.random() < TYPE_SHARE:
                wrong_type = self.corpus.wrong_type(rng)
                if wrong_type is not None:
                    return type_claim(*rng.choice(self._typed)), wrong_type
            fact = rng.choice(self.trained)
            wrong = self.corpus.wrong_fact(fact, rng)
            if wrong is not None and self._trains(wrong):
                templates = self.templates[fact.predicate]
                if rng.random() < DENIED_SHARE and len(templates) > 1:
                    return self._worded(wrong, templates[1]), self._worded(fact, templates[1])
                return self.corpus.claim(fact), self.corpus.claim(wrong)

    def _worded(self, fact: AtlasFact, template: str) -> str:
        return sentence(replace(self.corpus.wordings[fact.predicate], template=template).words(*fact.arguments))

    def _trains(self, fact: AtlasFact) -> bool:
        value = self._value(fact)
        return (
            fact.predicate not in self._unseen_predicates
            and not is_kept_out(self._key(fact))
            and (not is_kept_out(value) or (fact.predicate, value) in self._classes)
        )

    def _is_measured(self, fact: AtlasFact) -> bool:
        return fact.predicate in self._unseen_predicates or is_kept_out(self._key(fact))

    def _key(self, fact: AtlasFact) -> str:
        return fact.arguments[self.atlas.relations[fact.predicate].key]

    def _value(self, fact: AtlasFact) -> str:
        return fact.arguments[1 - self.atlas.relations[fact.predicate].key]


def is_kept_out(name: str) -> bool:
    """True if the facts about this key do not train."""
    # Unlike `hash`, a checksum is the same on all machines and in all runs.
    return zlib.crc32(name.casefold().encode()) % HELD_OUT_KEYS == 0


class AdaptedLinear(nn.Module):
    """A frozen linear layer plus a trainable product of two thin matrices, which begins at zero."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.frozen = layer.requires_grad_(requires_grad=False)
        device = layer.weight.device
        self.down = nn.Parameter(torch.empty(RANK, layer.in_features, device=device))
        self.up = nn.Parameter(torch.zeros(layer.out_features, RANK, device=device))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        thin = functional.linear(states, self.down.to(states.dtype) * SCALE)
        return self.frozen(states) + functional.linear(thin, self.up.to(states.dtype))  # type: ignore[no-any-return]


class Trainer:
    """The adapted network, its optimizer and its claims."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.claims = AtlasClaims()
        model = converted(smollm2_file())
        self.base = model.revision
        self.tokenizer = AutoTokenizer.from_pretrained(model.folder)
        torch.manual_seed(options.seed)
        # Without instructions for it, a processor trains a hundred times slower in bfloat16.
        short = options.device != "cpu" or multiplies_bfloat16()
        dtype = torch.bfloat16 if short else torch.float32
        self.network = AutoModelForCausalLM.from_pretrained(model.folder, dtype=dtype, use_safetensors=True)
        self.network.to(options.device)
        self.adapted = _adapt(self.network)
        self.weights = [weight for layer in self.adapted.values() for weight in (layer.down, layer.up)]
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=options.rate, weight_decay=0.0, betas=(0.9, 0.98), fused=True
        )
        self.steps = self.claims_seen = 0
        self.answers = [self.tokenizer(answer, add_special_tokens=False).input_ids[0] for answer in ANSWERS]
        self.questions = [self.tokenizer(question, add_special_tokens=False).input_ids for question in QUESTIONS]

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
                    print(f"step {self.steps} claims {self.claims_seen} loss {fmean(losses):.3f}", flush=True)
                    losses.clear()
        self._save()

    def _batches(self) -> list[list[tuple[list[int], list[int]]]]:
        """Batches in random order, each of tokens answered by yes and by no, of similar length."""
        rng = random.Random(f"{self.options.seed} {self.steps}")  # noqa: S311  claims, not secrets
        pairs = []
        for _ in range(POOL * self.options.batch // 2):
            true, false = self.claims.twins(rng)
            if rng.random() < OTHER_QUESTION_SHARE:
                pairs.append((self._encoded(false, 1), self._encoded(true, 1)))
            else:
                pairs.append((self._encoded(true, 0), self._encoded(false, 0)))
        pairs.sort(key=lambda pair: len(pair[0]) + len(pair[1]) + rng.random())
        size = self.options.batch // 2
        batches = [pairs[at : at + size] for at in range(0, len(pairs), size)]
        rng.shuffle(batches)
        return batches

    def _encoded(self, claim: str, question: int) -> list[int]:
        """Tokens of a claim and of one of the two questions."""
        own = self.tokenizer(claim, add_special_tokens=False).input_ids
        return [*own[:LONGEST], *self.questions[question]]

    def _margins(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
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

    def _learn(self, batch: Sequence[tuple[list[int], list[int]]], share: float) -> float:
        """A step of the training, of which `share` is done."""
        rate = min(1.0, (self.steps + 1) / WARM_UP) * max(0.03, 1.0 - share)
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * rate
        rows = [*(true for true, _ in batch), *(false for _, false in batch)]
        yes, no = self._margins(rows).chunk(2)
        # The answers' cross entropy, and that of choosing between the twins, which is what AUC measures.
        answers: torch.Tensor = (functional.softplus(-yes) + functional.softplus(no)).mean() / 2
        loss: torch.Tensor = answers + functional.softplus(no - yes).mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch types it in part
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.steps += 1
        self.claims_seen += len(rows)
        return float(answers.detach())

    def _save(self) -> None:
        tensors: dict[str, torch.Tensor] = {}
        for name, layer in self.adapted.items():
            tensors |= rounded(name, layer.down.detach().cpu() * SCALE, layer.up.detach().cpu().T)
        base = f"SmolLM2-135M-Instruct {self.base}"
        save_file(tensors, self.options.out, {"base": base, "claims": str(self.claims_seen)})


def _adapt(network: Any) -> dict[str, AdaptedLinear]:
    """Put adapters on all projections, in place, by name; the rest of the network is frozen."""
    network.requires_grad_(requires_grad=False)
    adapted: dict[str, AdaptedLinear] = {}
    for name, module in list(network.named_modules()):
        parent, _, own = name.rpartition(".")
        if isinstance(module, nn.Linear) and own in PROJECTIONS:
            adapted[name] = AdaptedLinear(module)
            setattr(network.get_submodule(parent), own, adapted[name])
    return adapted


def rounded(name: str, down: torch.Tensor, up: torch.Tensor) -> dict[str, torch.Tensor]:
    """Tensors that an adapter stores of a layer to which it adds `up.T @ down`. `down`: rank x in; `up`: rank x out."""
    steps = [matrix.abs().amax(dim=1).clamp_min(1e-12) / 127 for matrix in (down, up)]
    whole = [(matrix / step[:, None]).round() for matrix, step in zip((down, up), steps, strict=True)]
    stored = (*(matrix.to(torch.int8).contiguous() for matrix in whole), steps[0] * steps[1])
    return {name + part: tensor for part, tensor in zip(PARTS, stored, strict=True)}


def mean(adapters: Sequence[Adapter], rank: int) -> dict[str, torch.Tensor]:
    """Matrices of the mean of adapters of the same layers (Wortsman et al. 2022, Model soups).

    Each adapter adds a product of two thin matrices to a layer. The mean of such products has the sum of their ranks;
    the largest singular values are kept, up to `rank`.
    """
    tensors: dict[str, torch.Tensor] = {}
    for layer in adapters[0].layers:
        parts = [[adapter.tensors[layer + part].float() for part in PARTS] for adapter in adapters]
        down = torch.cat([matrix * scale[:, None] / len(adapters) for matrix, _, scale in parts])
        up = torch.cat([matrix for _, matrix, _ in parts])
        # The product is as large as the layer; the singular values of the two small factors are its own.
        left, left_factor = torch.linalg.qr(up.T)
        right, right_factor = torch.linalg.qr(down.T)
        rows, values, columns = torch.linalg.svd(left_factor @ right_factor.T)
        roots = values[:rank, None].sqrt()
        tensors |= rounded(layer, roots * (columns[:rank] @ right.T), roots * (left @ rows[:, :rank]).T)
    return tensors


def write_card(adapters: Sequence[Adapter], folder: Path) -> None:
    """Join the adapters, measure the critic with the result, and write both into the folder.

    `card.json` says of which predicates the critic has no opinion, because it was wrong about them too often.
    """
    folder.mkdir(parents=True, exist_ok=True)
    metadata = {
        "base": adapters[0].metadata["base"],
        "claims": str(sum(int(adapter.metadata["claims"]) for adapter in adapters)),
        "trainings": str(len(adapters)),
    }
    save_file(mean(adapters, CARD_RANK), folder / ADAPTER, metadata)
    write_sums(folder, [ADAPTER])
    claims = AtlasClaims()
    measured = measure(opened_critic(folder), claims)
    content = {"bar": BAR, "measured": _area(measured), "predicates": predicate_entries(claims, measured)}
    (folder / CARD).write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    calibrate(folder)


def measure(critic: TrainedCritic, claims: AtlasClaims, most: int = PER_PREDICATE) -> list[MeasuredClaim]:
    """Facts that were kept out of training, at most so many of a predicate, each with a falsehood that was, too."""
    rng = random.Random(16)  # noqa: S311  claims, not secrets
    by_predicate: dict[str, list[AtlasFact]] = defaultdict(list)
    for fact in claims.kept_out:
        by_predicate[fact.predicate].append(fact)
    chosen: list[tuple[AtlasFact, bool]] = []
    for facts in by_predicate.values():
        for fact in rng.sample(facts, min(most, len(facts))):
            wrong = claims.corpus.wrong_fact(fact, rng, held_out=True)
            if wrong is not None:
                chosen += [(fact, True), (wrong, False)]
    answers = critic.probabilities([claims.corpus.claim(fact) for fact, _ in chosen])
    measured = []
    for (fact, is_true), answer in zip(chosen, answers, strict=True):
        measured.append(MeasuredClaim(fact.predicate, is_true, answer.probability))
    return measured


def calibrate(folder: Path) -> None:
    """Fit the maps from P(yes) to a probability, and write them into the card.

    Claims in the words of the card's predicates are mapped by facts that were kept out of training, all others by
    claims of the subjects for development.
    """
    path = folder / CARD
    content = json.loads(path.read_text(encoding="utf-8"))
    judged = {name for name, entry in content["predicates"].items() if entry["judged"]}
    critic = opened_critic(folder)
    inside = [claim for claim in measure(critic, AtlasClaims(), MAPPED) if claim.predicate in judged]
    library = parse_rules((SUBJECTS / "subjects.rules").read_text(encoding="utf-8"))
    rows = [line.split("\t") for line in (SUBJECTS / "development.tsv").read_text(encoding="utf-8").splitlines()]
    texts = [fact_claim(Atom(name, tuple(map(Constant, values))), library) for _, name, *values in rows]
    scores = zip(rows, critic.probabilities(texts), strict=True)
    outside = [MeasuredClaim(name, truth == "true", score.probability) for (truth, name, *_), score in scores]
    maps = {"inside": _fitted(inside, 0.0), "outside": _fitted(outside, UNKNOWN_SHARE)}
    content["maps"] = {name: astuple(found) for name, found in maps.items()}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _fitted(claims: Sequence[MeasuredClaim], unknown: float) -> LogisticMap:
    """The logistic regression on the logits, with no opinion on this share of the claims."""
    labels = [LabelledScore(claim.probability, claim.is_true, claim.predicate, claim.predicate) for claim in claims]
    found = logistic(labels, np.array([claim.is_true for claim in claims], dtype=int))
    distances = sorted(abs(found.probability(label.score) - 0.5) for label in labels)
    return LogisticMap(found.slope, found.intercept, distances[int(unknown * len(distances))] if unknown else 0.0)


def opened_critic(folder: Path) -> TrainedCritic:
    """The critic with the folder's adapter, before any card: it judges all claims by its own P(yes)."""
    model = converted(smollm2_file())
    loaded = load_model(model.folder, name="smollm2-critic", revision=model.revision)
    return TrainedCritic(loaded, read_adapter(folder / ADAPTER), CriticCard((), BAR))


def predicate_entries(claims: AtlasClaims, measured: Sequence[MeasuredClaim]) -> dict[str, Any]:
    """The atlas's predicates with their templates and AUC, and whether they are judged.

    Predicates with the same templates are measured together: a claim does not tell which of them it is about.
    """
    by_words: dict[tuple[str, ...], list[MeasuredClaim]] = defaultdict(list)
    by_kind: dict[bool, list[MeasuredClaim]] = defaultdict(list)
    for claim in measured:
        by_words[tuple(claims.templates[claim.predicate])].append(claim)
        by_kind[claims.is_numeric(claim.predicate)].append(claim)
    entries: dict[str, Any] = {}
    for name, words in claims.templates.items():
        own = by_words[tuple(words)]
        area = _area(own if len(own) >= FEWEST else by_kind[claims.is_numeric(name)])
        entries[name] = {"templates": words, "auc": area, "claims": len(own), "judged": area >= BAR}
    return entries


def _area(claims: Sequence[MeasuredClaim]) -> float:
    truths = [claim.probability for claim in claims if claim.is_true]
    return auc(truths, [claim.probability for claim in claims if not claim.is_true])


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m tools.critic", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train", help="train an adapter")
    train.add_argument("--out", type=Path, default=Path("adapter.safetensors"), help="adapter to write")
    train.add_argument("--minutes", type=float, default=45.0, help="of training")
    train.add_argument("--device", default="cpu", help="cpu or cuda")
    train.add_argument("--batch", type=int, default=8, help="claims of a step")
    train.add_argument("--rate", type=float, default=1e-3, help="highest learning rate")
    train.add_argument("--seed", type=int, default=0)
    card = commands.add_parser("card", help="join adapters, measure the result, and write both")
    card.add_argument("adapters", type=Path, nargs="+")
    card.add_argument("--folder", type=Path, default=FOLDER, help="where adapter and card are written")
    fit = commands.add_parser("calibrate", help="fit the maps from scores to probabilities")
    fit.add_argument("--folder", type=Path, default=FOLDER, help="where adapter and card are")
    options = parser.parse_args()
    if options.command == "train":
        Trainer(options).train()
    elif options.command == "calibrate":
        calibrate(options.folder)
    else:
        write_card([read_adapter(path) for path in options.adapters], options.folder)


if __name__ == "__main__":
    main()
