"""Sentences rewritten by a model, slots and all: corrected, denied, or turned into a question.

A model may lose a slot or write something else altogether; then it is asked again, five times in all, and after that
whoever asked does without.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from llm_oracle.prompts import CORRECTION_PROMPT, NEGATION_PROMPT, QUESTION_PROMPT
from llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator

TRIES = 5
"""Samples of one sentence, as in LINK's released code."""

LONGEST_SENTENCE = 200
"""Characters; a predicate's sentence is far shorter."""

_SLOT = re.compile(r"\[\d{1,3}\]")
_QUOTES = "\"'“”`"


@dataclass
class FormWriter:
    """Has a model write the forms that grammar cannot make; every reply must keep all slots."""

    model: Generator
    seed: int = 0
    _written: dict[str, str | None] = field(default_factory=dict)

    def negation(self, sentence: str) -> str | None:
        """The opposite; None: no reply had all slots."""
        return self._form(NEGATION_PROMPT, sentence)

    def question(self, sentence: str) -> str | None:
        """The yes/no question, without its mark."""
        return self._form(QUESTION_PROMPT, sentence)

    def correction(self, sentence: str) -> str | None:
        """The sentence as it should read, which may be as it reads already."""
        return self._form(CORRECTION_PROMPT, sentence)

    def _form(self, prompt: str, sentence: str) -> str | None:
        slots = list(dict.fromkeys(_SLOT.findall(sentence)))
        asked = prompt.format(slots=" and ".join(slots), sentence=sentence)
        if asked not in self._written:
            self._written[asked] = self._asked(asked, sentence, may_repeat=prompt is CORRECTION_PROMPT)
        return self._written[asked]

    def _asked(self, prompt: str, sentence: str, may_repeat: bool) -> str | None:
        parameters = GenerationParameters(temperature=0.7, max_tokens=64, seed=self.seed)
        for sample in range(TRIES):
            (reply,) = self.model.generate([GenerationRequest(prompt, sample_index=sample)], parameters)
            lines = [line.strip() for line in reply.text.splitlines() if line.strip()]
            form = lines[0].strip(_QUOTES).rstrip(".?").strip(_QUOTES) if lines else ""
            if _is_form_of(form, sentence) and (may_repeat or form != sentence):
                return form
        return None


def _is_form_of(form: str, sentence: str) -> bool:
    """Whether it has the same slots and no introduction (`Corrected: ...`), and can stand in a rule file."""
    same = Counter(_SLOT.findall(form)) == Counter(_SLOT.findall(sentence))
    return same and form.isprintable() and len(form) <= LONGEST_SENTENCE and form.count(":") <= sentence.count(":")
