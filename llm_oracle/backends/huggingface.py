"""Hugging Face checkpoints in their roles: causal models in all of them, sequence-to-sequence models as critics.

One `LoadedModel` serves several roles; `loading.py` says how it is asked, `list_decoding.py` how lists are decoded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeVar

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteriaList,
    TopPLogitsWarper,
)

from grammar.errors import HapaxError
from kb.records import content_id
from llm_oracle.answers import first_items, render_values, without_values, yes_probability
from llm_oracle.backends.list_decoding import (
    BannedTokens,
    ListEnd,
    ListTracker,
    SampledByRow,
)
from llm_oracle.backends.loading import LoadedModel
from llm_oracle.prompts import PromptParts, critic_prompt, read_prompt
from llm_oracle.protocols import (
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    Usage,
)

SHORTEST_ANSWER = 16
"""Tokens that a prompt must leave free in the context: less holds no value."""

LOGIT_BYTES = 512 * 2**20
"""Of logits kept at once by a likelihood batch."""

MOST_GIVEN_VALUES = 6
"""How many of the newest excluded values a list is begun with: a small model ends a list that is long already."""

MOST_BANNED_TOKENS = 300
"""LINK's limit, which is the OpenAI API's."""

YES_NO = (("yes", "no"), (" yes", " no"), ("Yes", "No"), (" Yes", " No"), ("YES", "NO"), (" YES", " NO"))

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class HuggingFaceGenerator:
    """Numbered lists from a causal model.

    Each request has its own random stream, from `parameters.seed` and the request itself: a batch in another order or
    cut gives the same answers, up to rounding in the network.
    """

    def __init__(self, loaded: LoadedModel, batch_size: int = 16) -> None:
        if loaded.is_seq2seq:
            raise HapaxError(
                f"{loaded.identity.name} is a sequence-to-sequence model; the knowledge role needs a causal one. "
                "Use it as --critic and choose another --knowledge."
            )
        self.identity = loaded.identity
        self._loaded = loaded
        self._batch_size = batch_size

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        prompts = [self._opening(request) for request in requests]
        for tokens in prompts:
            if self._loaded.context - len(tokens) < SHORTEST_ANSWER:
                raise _too_long(self._loaded, "prompt", len(tokens))
        asked = list(zip(requests, prompts, strict=True))
        return _in_batches(
            asked, lambda one: len(one[1]), self._batch_size, lambda batch: self._generate_batch(batch, parameters)
        )

    def _opening(self, request: GenerationRequest) -> list[int]:
        """The prompt and, where values are excluded, a list that has given them and that the model goes on with.

        A list that a model has learnt to write does not repeat itself, so this takes the excluded values' probability
        away where it arises. A ban while decoding would leave it to the first odd ending (`gorgonzolaa`).
        """
        prompt = self._loaded.prompt_tokens(request.prompt)
        values = [self._loaded.harmless(value) for value in request.excluded_values if value.strip()]
        if not values:
            return prompt
        begun = "\n" + render_values(values[-MOST_GIVEN_VALUES:])
        given = list(self._loaded.tokenizer(begun, add_special_tokens=False).input_ids)
        fits = len(prompt) + len(given) <= self._loaded.context // 2
        return [*prompt, *given] if fits else prompt

    @torch.inference_mode()
    def _generate_batch(
        self, batch: Sequence[tuple[GenerationRequest, list[int]]], parameters: GenerationParameters
    ) -> list[Generation]:
        loaded = self._loaded
        ids, mask = _padded([tokens for _, tokens in batch], loaded, left=True)
        start = ids.shape[1]
        requests = [request for request, _ in batch]
        room = [min(parameters.max_tokens, loaded.context - len(tokens)) for _, tokens in batch]
        tracker = ListTracker(loaded.tokenizer, start, len(batch))
        counts = [_asked_count(read_prompt(request.prompt)) for request in requests]
        end = ListEnd(tracker, counts, room, start)
        output = loaded.network.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=self._configuration(max(room)),
            logits_processor=LogitsProcessorList(self._processors(requests, parameters)),
            stopping_criteria=StoppingCriteriaList([end]),
        )
        written = [row[:ended] for row, ended in zip(output[:, start:].tolist(), end.ended_at, strict=True)]
        return [
            self._generation(row, len(tokens), request) for row, (request, tokens) in zip(written, batch, strict=True)
        ]

    def _configuration(self, max_new_tokens: int) -> GenerationConfig:
        """Plain greedy decoding, whatever the checkpoint prefers: all sampling is in our own processors."""
        return GenerationConfig(  # type: ignore[no-untyped-call]  # transformers types it in part
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            max_new_tokens=max_new_tokens,
            eos_token_id=self._end_tokens or None,
            pad_token_id=self._loaded.padding,
        )

    @property
    def _end_tokens(self) -> list[int]:
        configured = self._loaded.network.generation_config.eos_token_id
        ends = configured if isinstance(configured, list) else [configured, self._loaded.tokenizer.eos_token_id]
        return sorted({int(end) for end in ends if end is not None})

    def _processors(
        self, requests: Sequence[GenerationRequest], parameters: GenerationParameters
    ) -> list[LogitsProcessor]:
        processors: list[LogitsProcessor] = []
        if any(request.banned_tokens_of for request in requests):
            processors.append(BannedTokens([self._banned_tokens(request) for request in requests]))
        if parameters.top_p < 1:
            processors.append(_TopP(parameters.top_p, parameters.temperature))
        if parameters.temperature > 0:
            seeds = [_seed(request, parameters) for request in requests]
            processors.append(SampledByRow(parameters.temperature, seeds, self._loaded.device))
        return processors

    def _banned_tokens(self, request: GenerationRequest) -> list[int]:
        """Tokens of the texts at a line's start and inside it, but none that the list itself needs."""
        tokenizer = self._loaded.tokenizer
        kept = {*tokenizer.all_special_ids, *tokenizer("1. 2.\n3.\n", add_special_tokens=False).input_ids}
        tokens = dict.fromkeys(
            token
            for text in request.banned_tokens_of
            for spelled in (" " + text, text)
            for token in tokenizer(spelled, add_special_tokens=False).input_ids
            if token not in kept
        )
        return list(tokens)[:MOST_BANNED_TOKENS]

    def _generation(self, tokens: list[int], prompt_tokens: int, request: GenerationRequest) -> Generation:
        """Cuts at the end token and behind the last item asked for: its line may have ended inside a token."""
        ends = set(self._end_tokens)
        length = next((at for at, token in enumerate(tokens) if token in ends), len(tokens))
        ended = length < len(tokens)
        text = self._loaded.tokenizer.decode(
            tokens[:length], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        asked = read_prompt(request.prompt)
        items = first_items(text, _asked_count(asked))
        reason = "stop" if ended or items is not None else "length"
        data_type = asked.data_type if asked else "Number"
        said = without_values(text if items is None else items, request.excluded_values, data_type)
        return Generation(said, reason, Usage(prompt_tokens, length + ended))


class HuggingFaceCritic:
    """P(yes) from the logits of an answer's first token.

    Which tokens stand for yes and for no is settled once, for all spellings that are one token each. A claim that does
    not fit the context is refused: cut, it would lose its question.
    """

    def __init__(self, loaded: LoadedModel, batch_size: int = 64) -> None:
        self.identity = loaded.identity
        self._loaded = loaded
        self._batch_size = batch_size
        self._yes, self._no = answer_tokens(loaded)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        prompts = [self._loaded.prompt_tokens(critic_prompt(claim)) for claim in claims]
        for tokens in prompts:
            if len(tokens) > self._loaded.context:
                raise _too_long(self._loaded, "claim", len(tokens))
        return _in_batches(prompts, len, self._batch_size, self._batch)

    @torch.inference_mode()
    def _batch(self, prompts: Sequence[list[int]]) -> list[CriticScore]:
        ids, mask = _padded(prompts, self._loaded)
        logits = self._seq2seq_logits(ids, mask) if self._loaded.is_seq2seq else self._causal_logits(ids, mask)
        yes, no = logits[:, self._yes].float().tolist(), logits[:, self._no].float().tolist()
        return [
            CriticScore(yes_probability(one, other), Usage(len(tokens), 1))
            for one, other, tokens in zip(yes, no, prompts, strict=True)
        ]

    def _seq2seq_logits(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        start = torch.full((len(ids), 1), self._loaded.network.config.decoder_start_token_id, device=ids.device)
        logits: torch.Tensor = self._loaded.network(input_ids=ids, attention_mask=mask, decoder_input_ids=start).logits
        return logits[:, 0]

    def _causal_logits(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Logits behind each row's last token. Only these positions are computed where the network can do so."""
        last = mask.sum(1) - 1
        rows = torch.arange(len(ids), device=ids.device)
        if "logits_to_keep" not in inspect.signature(self._loaded.network.forward).parameters:
            logits: torch.Tensor = self._loaded.network(input_ids=ids, attention_mask=mask).logits
            return logits[rows, last]
        positions, where = torch.unique(last, return_inverse=True)
        logits = self._loaded.network(input_ids=ids, attention_mask=mask, logits_to_keep=positions).logits
        return logits[rows, where]


class HuggingFaceLikelihood:
    """ln P of a text under a causal model, by teacher forcing.

    The text is tokenized as the tokenizer does by itself. The first token, which nothing predicts, is not scored: that
    is the begin token where the tokenizer adds one, else the text's own first token. Other added tokens are not scored
    either. A text longer than the context is cut at its end, and the score is that of what remains.
    """

    def __init__(self, loaded: LoadedModel, batch_size: int = 64) -> None:
        if loaded.is_seq2seq:
            raise HapaxError(
                f"{loaded.identity.name} is a sequence-to-sequence model and gives no likelihood of a text. "
                "Choose a causal model or `frequency` for --likelihood and --evaluator."
            )
        self.identity = loaded.identity
        self._loaded = loaded
        self._batch_size = batch_size

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        tokenized = [self._tokens(text) for text in texts]
        longest = max((len(tokens) for tokens, _ in tokenized), default=1)
        by_memory = LOGIT_BYTES // (4 * max(1, longest) * self._loaded.network.config.vocab_size)
        size = max(1, min(self._batch_size, by_memory))
        return _in_batches(tokenized, lambda one: len(one[0]), size, self._batch)

    def _tokens(self, text: str) -> tuple[list[int], list[bool]]:
        """Token ids, and which of them are scored."""
        encoded = self._loaded.tokenizer(self._loaded.harmless(text), return_special_tokens_mask=True)
        ids = list(encoded.input_ids)[: self._loaded.context]
        scored = [place > 0 and not special for place, special in enumerate(encoded.special_tokens_mask[: len(ids)])]
        return ids, scored

    @torch.inference_mode()
    def _batch(self, batch: Sequence[tuple[list[int], list[bool]]]) -> list[LogLikelihood]:
        counts = [sum(scored) for _, scored in batch]
        if not any(counts):
            return [LogLikelihood(0.0, 0)] * len(batch)
        ids, mask = _padded([tokens for tokens, _ in batch], self._loaded)
        logits = self._loaded.network(input_ids=ids, attention_mask=mask).logits[:, :-1].float()
        # The same as log_softmax and then gather, without writing the whole table once more.
        chosen = logits.gather(-1, ids[:, 1:, None]).squeeze(-1) - logits.logsumexp(-1)
        wanted = torch.zeros_like(ids, dtype=torch.bool)
        for row, (_, scored) in enumerate(batch):
            wanted[row, : len(scored)] = torch.tensor(scored, dtype=torch.bool)
        totals = chosen.masked_fill(~wanted[:, 1:], 0.0).double().sum(1).tolist()
        return [LogLikelihood(total, count) for total, count in zip(totals, counts, strict=True)]


def answer_tokens(loaded: LoadedModel) -> tuple[list[int], list[int]]:
    """The tokens that stand for yes and for no: all spellings that are single tokens in pairs, else first tokens."""
    spelled = [
        tuple(loaded.tokenizer(word, add_special_tokens=False).input_ids for word in spelling) for spelling in YES_NO
    ]
    single = [(yes[0], no[0]) for yes, no in spelled if len(yes) == len(no) == 1]
    first = [(yes[0], no[0]) for yes, no in spelled if yes and no]
    for pairs in (single, first):
        distinct = [(yes, no) for yes, no in dict.fromkeys(pairs) if yes != no]
        if distinct:
            return list(dict.fromkeys(yes for yes, _ in distinct)), list(dict.fromkeys(no for _, no in distinct))
    raise HapaxError(
        f"{loaded.identity.name} cannot be a critic: its tokenizer begins yes and no with one and the same token. "
        "Choose another --critic."
    )


class _TopP(LogitsProcessor):
    """Nucleus filter on the probabilities at the sampling temperature, which is applied after it."""

    def __init__(self, top_p: float, temperature: float) -> None:
        self._warper = TopPLogitsWarper(top_p)
        self._temperature = temperature or 1.0

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        kept = self._warper(input_ids, scores / self._temperature)
        return scores.masked_fill(kept.isneginf(), float("-inf"))


def _in_batches(
    items: Sequence[Item],
    length: Callable[[Item], int],
    size: int,
    run: Callable[[Sequence[Item]], list[Answer]],
) -> list[Answer]:
    """Runs items of like length together and puts the answers back in order. A full GPU halves the batch."""
    order = sorted(range(len(items)), key=lambda position: length(items[position]))
    answers: dict[int, Answer] = {}
    while order:
        batch = order[:size]
        try:
            done: list[Answer] | None = run([items[position] for position in batch])
        except torch.OutOfMemoryError as full:
            if len(batch) == 1:
                raise HapaxError(
                    "The GPU has too little memory for a single request. Choose a smaller model or --device cpu."
                ) from full
            done = None
        if done is None:  # outside the except block, so that the failed batch's tensors are free by now
            torch.cuda.empty_cache()
            size = len(batch) // 2
            continue
        answers.update(zip(batch, done, strict=True))
        order = order[len(batch) :]
    return [answers[position] for position in range(len(items))]


def _padded(rows: Sequence[list[int]], loaded: LoadedModel, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask. Generation pads on the left; scoring on the right, which leaves positions alone."""
    width = max(len(row) for row in rows)
    ids, mask = [], []
    for row in rows:
        fill = width - len(row)
        ids.append([loaded.padding] * fill + row if left else row + [loaded.padding] * fill)
        mask.append([0] * fill + [1] * len(row) if left else [1] * len(row) + [0] * fill)
    return torch.tensor(ids, device=loaded.device), torch.tensor(mask, device=loaded.device)


def _asked_count(asked: PromptParts | None) -> int | None:
    return asked.count if asked else None


def _seed(request: GenerationRequest, parameters: GenerationParameters) -> int:
    return int(content_id("sample", parameters.seed, asdict(request))[:15], 16)


def _too_long(loaded: LoadedModel, what: str, length: int) -> HapaxError:
    return HapaxError(
        f"A {what} of {length} tokens does not fit {loaded.identity.name}, which reads {loaded.context}. "
        "Choose a model with a longer context."
    )
