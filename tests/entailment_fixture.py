"""Pairs in LevyHolt's form, and tiny random checkpoints that know their words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

VERBS = ("bought", "owned", "wrote", "read", "killed", "harmed", "composed", "heard")
WORDS = (
    "is not the case that let alone because which means It sure just does mean This The fact necessarily Even if maybe "
    "Just might still be true . , ann bob"
)
"""Of the prompts, beside the verbs."""
SIZE = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}

Pair = tuple[str, str, bool]
"""Premise and hypothesis, `subject,predicate,object` each, and whether it entails it."""


def levy_holt(path: Path, pairs: Iterable[Pair]) -> Path:
    """Pairs in LevyHolt's form, the hypothesis first."""
    path.write_text("".join(f"{hypothesis}\t{premise}\t{label}\tEN\n" for premise, hypothesis, label in pairs), "utf-8")
    return path


def pair(premise: str, hypothesis: str, entailed: bool, who: str = "a", whom: str = "b") -> Pair:
    """Two predicates about the same two."""
    return f"{who},{premise},{whom}", f"{who},{hypothesis},{whom}", entailed


def couple(special: str, general: str, who: str = "a", whom: str = "b") -> list[Pair]:
    """A directional entailment and its false converse."""
    return [pair(special, general, True, who, whom), pair(general, special, False, who, whom)]


def score_file(path: Path, pairs: Iterable[Pair], scores: Iterable[float]) -> Path:
    """Scores as training runs write them: truth and score, a line each."""
    path.write_text("".join(f"{int(row[2])} {score}\n" for row, score in zip(pairs, scores, strict=True)), "utf-8")
    return path


def checkpoint(folder: Path, kind: str) -> Path:
    """A random tiny encoder or decoder over the words above."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *VERBS, *WORDS.split()]
    core = Tokenizer(models.WordLevel({word: number for number, word in enumerate(dict.fromkeys(words))}, "[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    if kind == "encoder":
        core.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
        )
    special = (
        {"pad_token": "[PAD]", "unk_token": "[UNK]"}
        if kind == "encoder"
        else {"eos_token": "[SEP]", "unk_token": "[UNK]"}
    )
    PreTrainedTokenizerFast(tokenizer_object=core, **special).save_pretrained(folder)
    torch.manual_seed(0)
    count = core.get_vocab_size()
    if kind == "encoder":
        BertForMaskedLM(
            BertConfig(
                vocab_size=count,
                hidden_dropout_prob=0.0,
                attention_probs_dropout_prob=0.0,
                initializer_range=0.1,
                **SIZE,
            )
        ).save_pretrained(folder)
    else:
        LlamaForCausalLM(LlamaConfig(vocab_size=count, **SIZE)).save_pretrained(folder)
    return folder
