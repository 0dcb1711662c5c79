"""Write a trained model as a folder that `AutoModelForCausalLM` and `AutoTokenizer` load like any other checkpoint."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import GenerationConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from hapax.llm_oracle.backends.identities import TEACHERS_FILE
from hapax.llm_oracle.backends.weight_hashes import write_sums
from tools.embedded.corpus import Corpus
from tools.embedded.tokenizer import BEGIN, END, PADDING

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
