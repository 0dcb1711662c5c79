"""Measure a model in training against its corpus, fast and without a search.

As in a search, each prompt has a row of its own and numbers are fp32. Wrong facts are those held out of training; true
facts are those of the atlas, since the model is no more than a copy of it.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from scipy.stats import spearmanr  # type: ignore[import-untyped]  # scipy ships no types
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from hapax.evaluation.shared.estimates import auc
from hapax.llm_oracle.embedded.atlas import popularity
from hapax.llm_oracle.prompts import critic_prompt
from tools.embedded.corpus import LONGEST_LIST, NO, YES, Corpus, ListQuestion
from tools.embedded.gate import ExaminationReport
from tools.embedded.tokenizer import BEGIN, END, PADDING, token_id

FACT_THRESHOLD, TYPE_THRESHOLD = 0.85, 0.65
"""The paper's thresholds for a fact and for a data type (LINK, section 2.3)."""
TEMPERATURE = 0.7
LONGEST_ANSWER = 200
"""In tokens; a list of 24 values takes about 130."""
CRITIC_BATCH, LIST_BATCH = 128, 32
LARGE_PREDICATE = 40
"""Fewest facts of a predicate for a meaningful rank correlation."""
_LINE = re.compile(r"\d+\. (.+)\.")
_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Exam:
    """Extent of an examination: the most facts, types and lists to measure (as many types as facts)."""

    facts: int
    lists: int
    seed: int = 0


SAMPLE = Exam(facts=600, lists=64)
"""Extent while training."""
RELEASE = Exam(facts=1_000_000, lists=600)
"""Extent before a release: all facts."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """A list question, the number of lines in the model's answer, and the values in them."""

    question: ListQuestion
    lines: int
    values: tuple[str, ...]


class Examiner:
    """Measures a model against its corpus."""

    def __init__(self, model: LlamaForCausalLM, tokenizer: Tokenizer, corpus: Corpus) -> None:
        self._model: Any = model  # transformers types `generate` for classes of its own alone
        self._tokenizer, self._corpus = tokenizer, corpus
        self._padding, self._begin, self._end = (token_id(tokenizer, word) for word in (PADDING, BEGIN, END))
        self._yes, self._no = token_id(tokenizer, YES), token_id(tokenizer, NO)

    @torch.no_grad()
    def examine(self, exam: Exam) -> ExaminationReport:
        """All measurements. The model is left in the mode, training or evaluation, that it was in."""
        in_training = self._model.training
        self._model.eval()
        rng = random.Random(exam.seed)  # noqa: S311  # reproducible, not secret
        facts = self._facts(exam, rng)
        types = self._types(exam, rng)
        lists = self._lists(exam, rng)
        report = ExaminationReport(**facts, **types, **lists, popularity_correlation=self._popularity_correlation())
        self._model.train(in_training)
        return report

    @torch.no_grad()
    def probabilities(self, claims: Sequence[str]) -> list[float]:
        """P(yes) of each claim, normalised over yes and no."""
        found: list[float] = []
        for start in range(0, len(claims), CRITIC_BATCH):
            rows = [self._row(critic_prompt(claim)) for claim in claims[start : start + CRITIC_BATCH]]
            logits = self._model(**self._padded(rows), logits_to_keep=1).logits[:, -1, [self._yes, self._no]]
            found += logits.float().softmax(-1)[:, 0].tolist()
        return found

    @torch.no_grad()
    def log_likelihoods(self, texts: Sequence[str]) -> list[float]:
        """Mean natural log-likelihood of each text's tokens."""
        found: list[float] = []
        for start in range(0, len(texts), CRITIC_BATCH):
            inputs = self._padded([self._row(text) for text in texts[start : start + CRITIC_BATCH]])
            logs = self._model(**inputs).logits[:, :-1].float().log_softmax(-1)
            chosen = logs.gather(-1, inputs["input_ids"][:, 1:, None]).squeeze(-1)
            mask = inputs["attention_mask"][:, :-1]  # padding is on the left: its predictions do not count
            found += ((chosen * mask).sum(-1) / mask.sum(-1)).tolist()
        return found

    @torch.no_grad()
    def generate(self, prompts: Sequence[str], seed: int) -> Iterator[str]:
        """A sampled completion of each prompt."""
        torch.manual_seed(seed)
        for start in range(0, len(prompts), LIST_BATCH):
            inputs = self._padded([self._row(prompt) for prompt in prompts[start : start + LIST_BATCH]])
            del inputs["position_ids"]  # `generate` counts them itself
            output = self._model.generate(
                **inputs,
                do_sample=True,
                temperature=TEMPERATURE,
                max_new_tokens=LONGEST_ANSWER,
                pad_token_id=self._padding,
                eos_token_id=self._end,
            )
            width = inputs["input_ids"].shape[1]
            yield from self._tokenizer.decode_batch(output[:, width:].tolist(), skip_special_tokens=True)

    def _facts(self, exam: Exam, rng: random.Random) -> dict[str, float]:
        facts = _sample(self._corpus.atlas.facts, exam.facts, rng)
        wrong = [self._corpus.falsehoods.wrong_fact(fact, rng, held_out=True) for fact in facts]
        yes = self.probabilities([self._corpus.claim(fact) for fact in facts])
        no = self.probabilities([self._corpus.claim(item.fact) for item in wrong if item])
        return {
            "true_facts_accepted": _share_above(yes, FACT_THRESHOLD),
            "wrong_facts_accepted": _share_above(no, FACT_THRESHOLD),
            "critic_auc": auc(yes, no),
        }

    def _types(self, exam: Exam, rng: random.Random) -> dict[str, float]:
        true = _sample(self._corpus.true_type_claims(), exam.facts, rng)
        wrong = [claim for _ in true if (claim := self._corpus.falsehoods.wrong_type(rng, held_out=True))]
        return {
            "true_types_accepted": _share_above(self.probabilities(true), TYPE_THRESHOLD),
            "wrong_types_accepted": _share_above(self.probabilities(wrong), TYPE_THRESHOLD),
        }

    def _lists(self, exam: Exam, rng: random.Random) -> dict[str, float]:
        answers = self._answers(exam, rng)
        given: list[tuple[_Answer, str]] = []
        for answer in answers:
            given += ((answer, value) for value in answer.values)
        recalls = []
        for answer in answers:
            right = self._corpus.values(answer.question)
            if len(right) <= LONGEST_LIST:  # an answer cannot contain more
                recalls.append(len(set(answer.values).intersection(right)) / len(right))
        return {
            "lines_parsed": len(given) / max(1, sum(answer.lines for answer in answers)),
            "values_of_type": _mean([self._is_of_type(answer.question, value) for answer, value in given]),
            "values_true": _mean([value in self._corpus.values(answer.question) for answer, value in given]),
            "accepted_precision": self._accepted_precision(answers),
            "list_recall": _mean(recalls),
        }

    def _answers(self, exam: Exam, rng: random.Random) -> list[_Answer]:
        asked = _sample(self._corpus.list_questions, exam.lists, rng)
        texts = self.generate([self._corpus.prompt(question, rng) for question in asked], exam.seed)
        read = []
        for question, text in zip(asked, texts, strict=True):
            lines = text.strip("\n").split("\n")
            values = tuple(match[1] for line in lines if (match := _LINE.fullmatch(line)))
            read.append(_Answer(question, len(lines), values))
        return read

    def _is_of_type(self, question: ListQuestion, value: str) -> bool:
        data_type = self._corpus.atlas.relations[question.predicate].argument_types[question.position]
        return value in self._corpus.atlas.entities(data_type)

    def _accepted_precision(self, answers: Sequence[_Answer]) -> float:
        """Precision over questions with one open argument; with two there is no claim to judge yet."""
        judged: dict[str, bool] = {}
        for answer in answers:
            question = answer.question
            if question.given is None:
                continue
            for value in answer.values:
                right = value in self._corpus.values(question)
                judged[self._corpus.claim(question.filled(value))] = right
        scores = self.probabilities(list(judged))
        return _mean([right for right, p in zip(judged.values(), scores, strict=True) if p > FACT_THRESHOLD])

    def _popularity_correlation(self) -> float:
        """The lowest correlation of any large predicate."""
        correlations = []
        for relation in self._corpus.atlas.relations.values():
            facts = list(relation.facts)
            if len(facts) >= LARGE_PREDICATE:
                likelihoods = self.log_likelihoods([self._corpus.claim(fact) for fact in facts])
                popularities = [sum(map(popularity, fact.arguments)) for fact in facts]
                correlations.append(float(spearmanr(likelihoods, popularities).statistic))
        return min(correlations, default=math.nan)

    def _row(self, text: str) -> list[int]:
        return [self._begin, *self._tokenizer.encode(text, add_special_tokens=False).ids]

    def _padded(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Rows padded on the left; positions count from the first real token."""
        width = max(map(len, rows))
        ids = torch.tensor([[*[self._padding] * (width - len(row)), *row] for row in rows])
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows])
        return {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(-1) - 1).clamp_min(0)}


def _sample(items: Sequence[_Item], count: int, rng: random.Random) -> list[_Item]:
    return rng.sample(items, min(count, len(items)))


def _share_above(scores: Sequence[float], threshold: float) -> float:
    return _mean([score > threshold for score in scores])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
