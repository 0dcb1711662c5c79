"""Random networks with a few tokens, and the logits of one plain pass."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
from tokenizers import decoders as decoding
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.protocols import ModelIdentity
from hapax.llm_oracle.questions.prompts import critic_prompt, knowledge_prompt

CLAIMS = ["Butter is in naan.", "Soy sauce is an ingredient.", "A.", "Buttermilk is in butter, and butter is in naan."]
VALUES = ["butter", "buttermilk", "soy sauce", "soy milk", "naan"]
PROMPT = knowledge_prompt("B", "milk is in [B]", "Food", 4)
LISTING = [
    *(f" {value}." for value in VALUES * 20),
    *(f"\n{number}. {value}." for number in range(1, 9) for value in VALUES),
    PROMPT,
    *["Answer: yes", "Answer: no", "yes", "no"] * 20,
    *CLAIMS,
]


def tiny_tokenizer(begin: bool = True) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of a few hundred tokens, with a begin token in front if asked for."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoding.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "</s>", "<pad>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(LISTING, trainer)
    if begin:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    names = dict(zip(("bos_token", "eos_token", "pad_token"), specials, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, clean_up_tokenization_spaces=False)


def tiny_llama(tokenizer: Any, context: int = 512) -> LlamaForCausalLM:
    torch.manual_seed(1)
    size = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    ends = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "initializer_range": 0.3}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=context, **size, **ends)
    return LlamaForCausalLM(config).eval()


def loaded(network: Any, tokenizer: Any) -> LoadedModel:
    return LoadedModel(network, tokenizer, ModelIdentity("hf/tiny"))


@cache
def network(kind: str) -> LoadedModel:
    """A random Llama (`causal`) or T5 (`seq2seq`)."""
    tokenizer = tiny_tokenizer(begin=kind == "causal")
    if kind == "causal":
        return loaded(tiny_llama(tokenizer), tokenizer)
    torch.manual_seed(2)
    size = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    config = T5Config(vocab_size=len(tokenizer), **size, decoder_start_token_id=2)
    return loaded(T5ForConditionalGeneration(config).eval(), tokenizer)


def first_token_logits(model: LoadedModel, claim: str) -> torch.Tensor:
    """The logits of the answer's first token, by one plain forward pass without any batch."""
    ids = torch.tensor([model.tokenizer(critic_prompt(claim)).input_ids])
    with torch.no_grad():
        if model.is_seq2seq:
            return model.network(input_ids=ids, decoder_input_ids=torch.tensor([[2]])).logits[0, 0]
        return model.network(input_ids=ids).logits[0, -1]
