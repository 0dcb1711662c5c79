"""Hugging Face checkpoints in their roles: causal models in all of them, sequence-to-sequence models as critics.

One `LoadedModel` serves several roles; `loading.py` says how it is asked, `list_decoding.py` how lists are decoded,
`scoring.py` how texts are scored with little work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

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
from llm_oracle.backends.batching import Room, distinct_in_batches, in_batches
from llm_oracle.backends.list_decoding import (
    BannedTokens,
    ListEnd,
    ListTracker,
    SampledByRow,
)
from llm_oracle.backends.loading import LoadedModel
from llm_oracle.backends.prefixes import Tokens
from llm_oracle.backends.scoring import ROOM, Scorer
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

MOST_GIVEN_VALUES = 6
"""How many of the newest excluded values a list is begun with: a small model ends a list that is long already."""

MOST_BANNED_TOKENS = 300
"""LINK's limit, which is the OpenAI API's."""

YES_NO = (("yes", "no"), (" yes", " no"), ("Yes", "No"), (" Yes", " No"), ("YES", "NO"), (" YES", " NO"))


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
        self._room = Room(batch_size)

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        prompts = [self._opening(request) for request in requests]
        for tokens in prompts:
            if self._loaded.context - len(tokens) < SHORTEST_ANSWER:
                raise _too_long(self._loaded, "prompt", len(tokens))
        asked = list(zip(requests, prompts, strict=True))
        order = sorted(range(len(asked)), key=lambda place: len(prompts[place]))
        return in_batches(asked, order, lambda _: 1, self._room, lambda batch: self._generate_batch(batch, parameters))

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
    not fit the context is refused: cut, it would lose its question. `room`: tokens of a batch.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM) -> None:
        self.identity = loaded.identity
        self._loaded = loaded
        self._yes, self._no = answer_tokens(loaded)
        self._scorer = _EncodedPrompts(loaded, room) if loaded.is_seq2seq else Scorer(loaded, room)

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        prompts = [tuple(self._loaded.prompt_tokens(critic_prompt(claim))) for claim in claims]
        for tokens in prompts:
            if len(tokens) > self._loaded.context:
                raise _too_long(self._loaded, "claim", len(tokens))
        count = len(self._yes)
        return [
            CriticScore(yes_probability(logits[:count], logits[count:]), Usage(len(tokens), 1))
            for logits, tokens in zip(self._scorer.next_logits(prompts, self._yes + self._no), prompts, strict=True)
        ]


class _EncodedPrompts:
    """A sequence-to-sequence network's answers. Its encoder reads both ways, so that only equal prompts are shared."""

    def __init__(self, loaded: LoadedModel, room: int) -> None:
        self._loaded = loaded
        self._room = Room(room)

    def next_logits(self, prompts: Sequence[Tokens], tokens: Sequence[int]) -> list[list[float]]:
        """Per prompt, the logits of these tokens as the first that the decoder says."""
        network = self._loaded.network

        @torch.inference_mode()
        def run(batch: Sequence[Tokens]) -> list[list[float]]:
            ids, mask = _padded(batch, self._loaded)
            start = torch.full((len(ids), 1), network.config.decoder_start_token_id, device=ids.device)
            logits = network(input_ids=ids, attention_mask=mask, decoder_input_ids=start).logits
            return list(logits[:, 0, tokens].float().tolist())

        return distinct_in_batches(prompts, self._room, run)


class HuggingFaceLikelihood:
    """ln P of a text under a causal model, by teacher forcing.

    The text is tokenized as the tokenizer does by itself. The first token, which nothing predicts, is not scored: that
    is the begin token where the tokenizer adds one, else the text's own first token. Other added tokens are not scored
    either. A text longer than the context is cut at its end, and the score is that of what remains. `room`: tokens of a
    batch.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM) -> None:
        if loaded.is_seq2seq:
            raise HapaxError(
                f"{loaded.identity.name} is a sequence-to-sequence model and gives no likelihood of a text. "
                "Choose a causal model or `frequency` for --likelihood and --evaluator."
            )
        self.identity = loaded.identity
        self._loaded = loaded
        self._scorer = Scorer(loaded, room)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        tokenized = [self._tokens(text) for text in texts]
        lead = max((lead for _, lead in tokenized), default=1)
        counts = [max(0, len(tokens) - lead) for tokens, _ in tokenized]
        asked = [tokens for (tokens, _), count in zip(tokenized, counts, strict=True) if count]
        totals = iter(self._scorer.log_likelihoods(asked, lead))
        return [LogLikelihood(next(totals) if count else 0.0, count) for count in counts]

    def _tokens(self, text: str) -> tuple[Tokens, int]:
        """Token ids up to the last that is scored, and how many at the beginning are not: those added, at least one."""
        encoded = self._loaded.tokenizer(self._loaded.harmless(text), return_special_tokens_mask=True)
        added = encoded.special_tokens_mask[: self._loaded.context]
        own = [place for place, special in enumerate(added) if not special]
        return (tuple(encoded.input_ids[: own[-1] + 1]), max(1, own[0])) if own else ((), 1)


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


def _padded(
    rows: Sequence[Sequence[int]], loaded: LoadedModel, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask. Generation pads on the left, an encoder on the right."""
    width = max(len(row) for row in rows)
    ids, mask = [], []
    for row in rows:
        fill = width - len(row)
        ids.append([*[loaded.padding] * fill, *row] if left else [*row, *[loaded.padding] * fill])
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
