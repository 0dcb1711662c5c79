"""Lists from models: excluded values, banned tokens, the end of the reply, and several short lists in one request.

Several lists go to a model that holds its reply to a JSON schema: one sentence for each list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from hapax.llm_oracle.protocols import Generation, GenerationRequest, ReplyForm, Stream, Usage
from hapax.llm_oracle.questions.prompts import lists_prompt, reply_form
from hapax.llm_oracle.reading.link_replies import first_items, render_values, without_values
from hapax.llm_oracle.reading.replies import parsed, read_reply
from hapax.llm_oracle.reading.reply_question import ReplyQuestion

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


# --- several lists

LISTS = 10
"""Lists in one request. Short lists, as questions with a value have them, then fit into the tokens of one answer."""

SAMPLE = 3
"""Lists of the first request that are also asked alone."""

LEAST_SHARED = 0.5
"""Share of the values that come alone which come together, too. Two samples of one question share hardly more."""

Ask = Callable[[Sequence[GenerationRequest]], Stream[Generation]]
"""Sends each of the requests by itself."""


@dataclass(slots=True)
class ListsTogether:
    """Asks for several lists in one request, unless a sample of them is answered otherwise alone.

    `can_structure` tells whether the model holds a reply to a schema; it may ask the model. `agrees`: what the sample
    showed; None: there was none yet.
    """

    can_structure: Callable[[], bool]
    agrees: bool | None = None

    def stream(self, asked: Sequence[GenerationRequest], ask: Ask) -> Stream[Generation]:
        """The answers as they arrive. Lists that an answer lacks, or that are cut off, are asked alone."""
        groups = list(_groups(asked))
        answered: set[int] = set()
        # Fewer lists would save less than the sample costs.
        if self.agrees is None and any(len(group) == LISTS for group in groups):
            self.agrees = self.can_structure()
            if self.agrees:
                first = groups.pop(0)
                yield from self._sampled(first, asked, ask, answered)
        for answers in ask([_joined(asked, group) for group in groups]) if self.agrees else ():
            for number, answer in answers:
                lists = _shared_out(answer, groups[number])
                answered.update(lists)
                yield list(lists.items())
        alone = [place for place in range(len(asked)) if place not in answered]
        for answers in ask([asked[place] for place in alone]):
            yield [(alone[number], answer) for number, answer in answers]

    def _sampled(
        self, group: Sequence[int], asked: Sequence[GenerationRequest], ask: Ask, answered: set[int]
    ) -> Stream[Generation]:
        """The answers to a group of requests, of which some are asked alone, too. Adds to `answered`."""
        found: dict[int, Generation] = {}
        for answers in ask([*(asked[place] for place in group[:SAMPLE]), _joined(asked, group)]):
            found |= answers
            yield [(group[number], answer) for number, answer in answers if number < SAMPLE]
        answered.update(group[:SAMPLE])
        lists = _shared_out(found[SAMPLE], group)
        alone = [_values(found[number]) for number in range(SAMPLE)]
        together = [_values(lists[place]) if place in lists else set() for place in group[:SAMPLE]]
        shared = sum(len(first & second) for first, second in zip(alone, together, strict=True))
        self.agrees = shared >= LEAST_SHARED * sum(map(len, alone)) > 0
        if self.agrees:
            others = {place: answer for place, answer in lists.items() if place not in answered}
            answered.update(others)
            yield list(others.items())


def _groups(asked: Sequence[GenerationRequest]) -> Iterator[list[int]]:
    """Places of requests that can be asked together, at most `LISTS` of them, those for as many values."""
    alike = defaultdict(list)
    for place, request in enumerate(asked):
        if request.listed is not None:
            alike[request.listed.count, request.sample_index].append(place)
    for places in alike.values():
        for start in range(0, len(places), LISTS):
            group = places[start : start + LISTS]
            if len(group) > 1:
                yield group


def _joined(asked: Sequence[GenerationRequest], group: Sequence[int]) -> GenerationRequest:
    """The request for the lists of a group."""
    listed = [sentence for place in group if (sentence := asked[place].listed)]
    prompt = lists_prompt(listed[0].count, [sentence.text for sentence in listed])
    form = ReplyForm(listed[0].count, "", json=True, lists=len(listed))
    return GenerationRequest(prompt, sample_index=asked[group[0]].sample_index, form=form)


def _shared_out(answer: Generation, group: Sequence[int]) -> dict[int, Generation]:
    """The whole lists in an answer, by the place of their requests. The first has the tokens."""
    lists = _lists(answer.text)
    if answer.finish_reason == "length":
        lists = lists[:-1]
    found: dict[int, Generation] = {}
    usage = answer.usage
    for number, values in lists:
        if 1 <= number <= len(group) and group[number - 1] not in found:
            found[group[number - 1]] = Generation(render_values(values), usage=usage)
            usage = Usage(requests=0)
    return found


def _lists(text: str) -> list[tuple[int, list[str]]]:
    """The numbered lists in an answer that follows the schema; a cut-off one is repaired."""
    data = parsed(text)
    lists = data.get("lists") if isinstance(data, dict) else None
    found: list[tuple[int, list[str]]] = []
    for entry in lists if isinstance(lists, list) else ():
        number, values = (entry.get("number"), entry.get("values")) if isinstance(entry, dict) else (None, None)
        if isinstance(number, int) and isinstance(values, list):
            found.append((number, [" ".join(str(value).split()) for value in values]))
    return found


def _values(answer: Generation) -> set[str]:
    """The values of a list, without their case."""
    return {str(value).casefold() for value in read_reply(answer.text, ReplyQuestion("", "")).values}
