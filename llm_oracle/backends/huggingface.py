"""Hugging Face checkpoints in their roles: causal models in all of them, sequence-to-sequence models as critics.

One `LoadedModel` (`loading.py`) serves all its roles. `list_decoding.py` decodes lists, `scoring.py` scores texts with
little work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopPLogitsWarper,
)

from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.kb.records import content_id
from hapax.llm_oracle.backends.list_decoding import (
    BannedTokens,
    JsonTokens,
    JsonValues,
    ListEnd,
    SampledByRow,
)
from hapax.llm_oracle.backends.loading import LoadedModel
from hapax.llm_oracle.backends.sequence_scores import (
    ROOM,
    BatchLimit,
    CausalScorer,
    Tokens,
    chosen_columns,
    distinct_in_batches,
    in_batches,
)
from hapax.llm_oracle.protocols import (
    NOTHING_KNOWN,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    SpannedText,
    Usage,
)
from hapax.llm_oracle.questions.list_requests import (
    LIST_TEXT,
    banned_tokens,
    begun_list,
    excluded_values,
    item_count,
    spellings,
    trimmed,
)
from hapax.llm_oracle.questions.prompts import critic_prompt
from hapax.llm_oracle.reading.link_replies import (
    KNOWN_CLAIM,
    KNOWN_FALSEHOOD,
    VERDICT_WORDS,
    FirstToken,
    tells_apart,
)

SHORTEST_ANSWER = 16
"""Tokens that a prompt must leave free in the context. Fewer have no room for a value."""


class HuggingFaceGenerator:
    """Numbered lists from a causal model.

    Each request has its own random stream, from `parameters.seed` and the request itself, so batches of another order
    or size give the same answers, up to rounding in the network.
    """

    def __init__(self, loaded: LoadedModel, batch_size: int = 16) -> None:
        if loaded.is_seq2seq:
            raise HapaxError(
                f"{loaded.identity.name} is a sequence-to-sequence model; the knowledge role needs a causal one.",
                Remedy("Use it as {} and choose another {}.", Setting("critic"), Setting("knowledge")),
            )
        self.identity = loaded.identity
        self._loaded = loaded
        self._room = BatchLimit(batch_size)
        self._json_tokens: JsonTokens | None = None

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        prompts = [self._opening(request) for request in requests]
        for tokens in prompts:
            if self._loaded.context - len(tokens) < SHORTEST_ANSWER:
                raise _too_long(self._loaded, "prompt", len(tokens))
        items = list(zip(requests, prompts, strict=True))
        order = sorted(range(len(items)), key=lambda place: len(prompts[place]))  # for little padding
        return in_batches(items, order, lambda _: 1, self._room, lambda batch: self._generate_batch(batch, parameters))

    def _opening(self, request: GenerationRequest) -> list[int]:
        """The prompt and, if values are excluded, the beginning of a list with them, which the model continues."""
        prompt = self._loaded.prompt_tokens(request.prompt)
        values = excluded_values(request, self._loaded.harmless)
        if not values:
            return prompt
        given = list(self._loaded.tokenizer(begun_list(values), add_special_tokens=False).input_ids)
        # At most half of the context, so that the other half is left for new values.
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
        end = ListEnd(loaded.tokenizer, start, [item_count(request) for request in requests], room)
        output = loaded.network.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=self._configuration(max(room)),
            logits_processor=LogitsProcessorList([*self._structure(requests), *self._processors(requests, parameters)]),
            stopping_criteria=StoppingCriteriaList([end]),
        )
        generations: list[Generation] = []
        for row, ended, (request, tokens) in zip(output[:, start:].tolist(), end.ended_at, batch, strict=True):
            generations.append(self._generation(row[:ended], len(tokens), request))
        return generations

    def _configuration(self, max_new_tokens: int) -> GenerationConfig:
        """Plain greedy decoding, whatever the checkpoint's defaults: our own processors do all sampling."""
        return GenerationConfig(  # type: ignore[no-untyped-call]  # transformers types it in part
            do_sample=False,  # `SampledByRow` samples by adding noise, after which the argmax is taken
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

    @property
    def structures(self) -> bool:
        """True: decoding permits nothing but the JSON that a form asks for."""
        return True

    def _structure(self, requests: Sequence[GenerationRequest]) -> list[LogitsProcessor]:
        """The processor that holds rows to JSON, if a request asks for JSON."""
        forms = [request.form for request in requests]
        counts = [form.count if form and form.json and not form.schema else None for form in forms]
        if all(count is None for count in counts):
            return []
        if self._json_tokens is None:
            self._json_tokens = JsonTokens(self._loaded.tokenizer, self._end_tokens)
        return [JsonValues(self._json_tokens, counts)]

    def _processors(
        self, requests: Sequence[GenerationRequest], parameters: GenerationParameters
    ) -> list[LogitsProcessor]:
        processors: list[LogitsProcessor] = []
        # The order matters: the bias, then the nucleus of the biased distribution, then the sample from it.
        if any(request.banned_tokens_of for request in requests):
            processors.append(BannedTokens([self._banned_tokens(request) for request in requests]))
        if parameters.temperature > 0:
            # 15 hexadecimal digits are 60 bits, which fit in torch's 64-bit seed.
            seeds = [int(content_id("sample", parameters.seed, request.content)[:15], 16) for request in requests]
            nucleus = [TopPLogitsWarper(parameters.top_p)] if parameters.top_p < 1 else []
            sampled = SampledByRow(seeds, self._loaded.device)
            processors += [TemperatureLogitsWarper(float(parameters.temperature)), *nucleus, sampled]
        return processors

    def _banned_tokens(self, request: GenerationRequest) -> list[int]:
        """Tokens of the texts at the start of a line and inside it, except those that every list needs."""
        tokenizer = self._loaded.tokenizer
        texts = [LIST_TEXT, *spellings(request.banned_tokens_of)]
        kept, *spelt = tokenizer(texts, add_special_tokens=False).input_ids
        return banned_tokens(spelt, {*tokenizer.all_special_ids, *kept})

    def _generation(self, tokens: list[int], prompt_tokens: int, request: GenerationRequest) -> Generation:
        """The reply up to its end token and the last requested item, without the excluded values."""
        ends = set(self._end_tokens)
        length = next((position for position, token in enumerate(tokens) if token in ends), len(tokens))
        ended = length < len(tokens)
        text = self._loaded.tokenizer.decode(
            tokens[:length], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return trimmed(text, "stop" if ended else "length", Usage(prompt_tokens, length + ended), request)


class HuggingFaceCritic:
    """P(yes) from the logits of an answer's first token.

    The tokens of yes and no are chosen once, in the language in which the model answers. A claim that does
    not fit the context raises HapaxError, because cutting it would cut off the question. `room`: tokens of a batch.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM) -> None:
        self.identity = loaded.identity
        self._loaded = loaded
        self._scorer = _EncodedPrompts(loaded, room) if loaded.is_seq2seq else CausalScorer(loaded, room)
        self._yes, self._no = self._answers()

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        reasons = [self._unjudged(claim) for claim in claims]
        judged = [claim for claim, reason in zip(claims, reasons, strict=True) if not reason]
        scores = iter(self._scores(judged))
        return [CriticScore(NOTHING_KNOWN, covered=False, basis=why) if why else next(scores) for why in reasons]

    def _unjudged(self, claim: str) -> str:
        """Why the critic has no opinion on a claim, before it is asked; empty if it may have one."""
        del claim
        return ""

    def _scores(self, claims: Sequence[str]) -> list[CriticScore]:
        prompts = [self._prompt(claim) for claim in claims]
        for tokens in prompts:
            if len(tokens) > self._loaded.context:
                raise _too_long(self._loaded, "claim", len(tokens))
        scores = []
        found = self._scorer.next_logits(prompts, self._yes + self._no, total=True)
        for (*logits, total), tokens in zip(found, prompts, strict=True):
            first = FirstToken.of_logits(logits[: len(self._yes)], logits[len(self._yes) :], total)
            scores.append(self._score(first, Usage(len(tokens), 1)))
        return scores

    def _score(self, first: FirstToken, usage: Usage) -> CriticScore:
        return first.score(usage)

    def _prompt(self, claim: str) -> Tokens:
        """Tokens of the question about a claim."""
        return tuple(self._loaded.prompt_tokens(critic_prompt(claim)))

    def _answers(self) -> tuple[list[int], list[int]]:
        """The tokens of yes and of no, in the first language in which the model tells a truth from a falsehood."""
        english = answer_tokens(self._loaded, VERDICT_WORDS[0])
        if english is None:
            raise HapaxError(
                f"{self.identity.name} cannot be a critic: its tokenizer begins yes and no with the same token.",
                Remedy("Choose another {}.", Setting("critic")),
            )
        prompts = {claim: self._prompt(claim) for claim in (KNOWN_CLAIM, KNOWN_FALSEHOOD)}
        if self.identity.knows is not None or max(map(len, prompts.values())) > self._loaded.context:
            return english
        spelt = {words: answer_tokens(self._loaded, words) for words in VERDICT_WORDS}
        every = list(dict.fromkeys(chain.from_iterable(yes + no for yes, no in filter(None, spelt.values()))))
        found = self._scorer.next_logits(list(prompts.values()), every, total=True)
        logits = {claim: dict(zip([*every, None], row, strict=True)) for claim, row in zip(prompts, found, strict=True)}
        for words, tokens in spelt.items():
            if tokens is not None and tells_apart(words, partial(_first_token, logits, tokens)):
                return tokens
        return english


def _first_token(
    logits: Mapping[str, Mapping[int | None, float]], tokens: tuple[list[int], list[int]], claim: str
) -> FirstToken:
    """P(yes) of a claim by these tokens of yes and no. `logits`: by token; under None the log of the sum over all."""
    yes, no = ([logits[claim][token] for token in side] for side in tokens)
    return FirstToken.of_logits(yes, no, logits[claim][None])


class _EncodedPrompts:
    """Answers of a sequence-to-sequence network. Its encoder reads both ways, so only equal prompts are shared."""

    def __init__(self, loaded: LoadedModel, room: int) -> None:
        self._loaded = loaded
        self._room = BatchLimit(room)

    def next_logits(self, prompts: Sequence[Tokens], tokens: Sequence[int], total: bool = False) -> list[list[float]]:
        """For each prompt, the logits of these tokens as the decoder's first token. `total`: as for `CausalScorer`."""
        network = self._loaded.network

        @torch.inference_mode()
        def run(batch: Sequence[Tokens]) -> list[list[float]]:
            ids, mask = _padded(batch, self._loaded)
            start = torch.full((len(ids), 1), network.config.decoder_start_token_id, device=ids.device)
            logits = network(input_ids=ids, attention_mask=mask, decoder_input_ids=start).logits
            return list(chosen_columns(logits[:, 0].float(), tokens, total).tolist())

        return distinct_in_batches(prompts, self._room, run)


class HuggingFaceLikelihood:
    """ln P of a text under a causal model, by teacher forcing.

    The first token, which nothing predicts, is not scored: that is the begin token if the tokenizer adds one, else the
    text's own first token. Other added tokens are not scored either. A text longer than the context is cut at its end,
    and the rest is scored. `room`: tokens of a batch.
    """

    def __init__(self, loaded: LoadedModel, room: int = ROOM) -> None:
        if loaded.is_seq2seq:
            raise HapaxError(
                f"{loaded.identity.name} is a sequence-to-sequence model and gives no likelihood of a text.",
                Remedy(
                    "Choose a causal model or `frequency` for {} and {}.", Setting("likelihood"), Setting("evaluator")
                ),
            )
        self.identity = loaded.identity
        self._loaded = loaded
        self._scorer = CausalScorer(loaded, room)

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        scores = self._scored([self._encoded(self._loaded.harmless(text)) for text in texts])
        return [LogLikelihood(math.fsum(tokens), len(tokens)) for tokens in scores]

    @property
    def locates_tokens(self) -> bool:
        """True if the tokenizer gives the offsets of tokens in a text, which scores of spans need."""
        return bool(self._loaded.tokenizer.is_fast)

    def span_log_likelihoods(self, texts: Sequence[SpannedText]) -> list[LogLikelihood]:
        if not self.locates_tokens:
            raise HapaxError(
                f"The tokenizer of {self.identity.name} gives no offsets of tokens in a text. "
                "Choose another model, or a checkpoint with a tokenizer.json."
            )
        cleaned = [text.rewritten(self._loaded.harmless) for text in texts]
        encoded = [self._encoded(text.text, places=True) for text in cleaned]
        answers = []
        for text, encoded_text, scores in zip(cleaned, encoded, self._scored(encoded), strict=True):
            # The unscored tokens are those at the beginning.
            places = encoded_text.places[-len(scores) :] if scores else ()
            answers.append(LogLikelihood.of_tokens(scores, places, text.spans))
        return answers

    def _scored(self, texts: Sequence[_EncodedText]) -> list[tuple[float, ...]]:
        """ln P of the scored tokens of each text; none for a text that is too short."""
        # The same for all texts, since they come from one tokenizer.
        lead = max((text.lead for text in texts), default=1)
        found = iter(self._scorer.log_likelihoods([text.tokens for text in texts if len(text.tokens) > lead], lead))
        return [next(found) if len(text.tokens) > lead else () for text in texts]

    def _encoded(self, text: str, places: bool = False) -> _EncodedText:
        encoded = self._loaded.tokenizer(text, return_special_tokens_mask=True, return_offsets_mapping=places)
        added = encoded.special_tokens_mask[: self._loaded.context]
        # Begin and end tokens that the tokenizer adds are no part of the text.
        own = [place for place, special in enumerate(added) if not special]
        if not own:
            return _EncodedText((), 1)
        length = own[-1] + 1
        ranges = tuple(encoded.offset_mapping[:length]) if places else ()
        return _EncodedText(tuple(encoded.input_ids[:length]), max(1, own[0]), ranges)


@dataclass(frozen=True, slots=True)
class _EncodedText:
    """Token ids up to the last scored one, the number at the beginning that are not scored, and character ranges."""

    tokens: Tokens
    lead: int
    places: tuple[tuple[int, int], ...] = ()


def answer_tokens(loaded: LoadedModel, words: str) -> tuple[list[int], list[int]] | None:
    """The tokens of yes and of no by an entry of `VERDICT_WORDS`; None where the same tokens begin both.

    They are all pairs of spellings that are single tokens, else their first tokens.
    """
    single: list[tuple[int, int]] = []
    first: list[tuple[int, int]] = []
    # Capitals and leading blanks make different tokens; a model may use any of them.
    spellings: tuple[Callable[[str], str], ...] = (str.lower, str.title, str.upper)
    for spelling, blank in product(spellings, ("", " ")):
        for pair in product(*(side.split() for side in words.split("/"))):
            spelt = [blank + spelling(word) for word in pair]
            yes, no = loaded.tokenizer(spelt, add_special_tokens=False).input_ids
            # A pair with the same first token, such as a lone blank, separates nothing.
            if yes and no and yes[0] != no[0]:
                first.append((yes[0], no[0]))
                if len(yes) == len(no) == 1:
                    single.append((yes[0], no[0]))
    pairs = single or first
    found = list(dict.fromkeys(yes for yes, _ in pairs)), list(dict.fromkeys(no for _, no in pairs))
    return found if pairs and set(found[0]).isdisjoint(found[1]) else None


def _padded(
    rows: Sequence[Sequence[int]], loaded: LoadedModel, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and attention mask. Generation pads on the left, an encoder on the right."""
    # A causal model continues the last column, so there the padding must come first.
    width = max(len(row) for row in rows)
    ids, mask = [], []
    for row in rows:
        fill = width - len(row)
        ids.append([*[loaded.padding] * fill, *row] if left else [*row, *[loaded.padding] * fill])
        mask.append([0] * fill + [1] * len(row) if left else [1] * len(row) + [0] * fill)
    return torch.tensor(ids, device=loaded.device), torch.tensor(mask, device=loaded.device)


def _too_long(loaded: LoadedModel, kind: str, length: int) -> HapaxError:
    return HapaxError(
        f"A {kind} of {length} tokens does not fit {loaded.identity.name}, whose context is {loaded.context}. "
        "Choose a model with a longer context."
    )
