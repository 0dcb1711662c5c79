"""Excluded values, banned tokens and the end of the reply, for every model that decodes lists."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from itertools import chain

from hapax.llm_oracle.protocols import Generation, GenerationRequest, Usage
from hapax.llm_oracle.questions.prompts import reply_form
from hapax.llm_oracle.reading.link_replies import first_items, render_values, without_values

MOST_GIVEN_VALUES = 6
"""Number of the newest excluded values that a list begins with: a small model ends a list that is long already."""

MOST_BANNED_TOKENS = 300
"""LINK's limit, which is the OpenAI API's."""

BIAS = -100.0
"""The bias on banned tokens."""

LIST_TEXT = "1. 2.\n3.\n"
"""Text whose tokens every list needs; they are never banned."""


def excluded_values(request: GenerationRequest, harmless: Callable[[str], str]) -> list[str]:
    """The values that a prompt has to exclude; none if its own words name them, as those of another form do."""
    if request.form is not None:
        return []
    return [harmless(value) for value in request.excluded_values if value.strip()]


def begun_list(values: Sequence[str]) -> str:
    """The beginning of a list with the newest of these values, which the model goes on with.

    Models have learnt not to repeat items of a list, which makes excluded values unlikely at the source. A ban during
    decoding would shift their probability to odd endings (`gorgonzolaa`).
    """
    return "\n" + render_values(values[-MOST_GIVEN_VALUES:])


def spellings(texts: Sequence[str]) -> list[str]:
    """Each text inside a line, where a word begins with a blank that is part of its first token, and at its start."""
    return [spelling for text in texts for spelling in (" " + text, text)]


def banned_tokens(spelt: Iterable[Iterable[int]], kept: Container[int]) -> list[int]:
    """The tokens of such spellings, except the kept ones."""
    tokens = dict.fromkeys(chain.from_iterable(spelt))
    return [token for token in tokens if token not in kept][:MOST_BANNED_TOKENS]


def item_count(request: GenerationRequest) -> int | None:
    """Number of lines after which a list is complete; None for other replies."""
    form = reply_form(request)
    return form.count if form and not form.json else None


def trimmed(text: str, reason: str, usage: Usage, request: GenerationRequest) -> Generation:
    """The reply up to the last requested item, without the excluded values. `reason`: why the model ended it."""
    form = reply_form(request)
    if form is not None and form.json:
        return Generation(text, reason, usage)
    # The last token of a line may hold the beginning of the next line, too.
    items = first_items(text, item_count(request))
    data_type = form.data_type if form else "Number"
    kept = without_values(text if items is None else items, request.excluded_values, data_type)
    return Generation(kept, reason if items is None else "stop", usage)
