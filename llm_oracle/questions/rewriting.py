"""Sentences with slots, rewritten by a model: corrected, negated, or turned into a question.

A model may lose a slot or write something else. Then it is asked again, five times in all, before it counts as failed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator
from hapax.llm_oracle.questions.prompts import CORRECTION_PROMPT, NEGATION_PROMPT, QUESTION_PROMPT

TRIES = 5
"""Samples of one sentence, as in LINK's released code."""

LONGEST_SENTENCE = 200
"""Characters. The sentence of a predicate is far shorter."""

_SLOT = re.compile(r"\[\d{1,3}\]")
_QUOTES = "\"'“”`"


@dataclass
class FormWriter:
    """Lets a model write the forms that the grammar cannot derive. A reply must keep all slots."""

    model: Generator
    seed: int = 0
    _written: dict[str, str | None] = field(default_factory=dict)

    def negation(self, sentence: str) -> str | None:
        """The opposite; None if no reply kept all slots."""
        return self._form(NEGATION_PROMPT, sentence)

    def question(self, sentence: str) -> str | None:
        """The question for yes or no, without its question mark."""
        return self._form(QUESTION_PROMPT, sentence)

    def correction(self, sentence: str) -> str | None:
        """The corrected sentence, which may be equal to the given one."""
        return self._form(CORRECTION_PROMPT, sentence)

    def _form(self, prompt: str, sentence: str) -> str | None:
        slots = list(dict.fromkeys(_SLOT.findall(sentence)))
        request = prompt.format(slots=" and ".join(slots), sentence=sentence)
        if request not in self._written:
            self._written[request] = self._ask(request, sentence, may_repeat=prompt is CORRECTION_PROMPT)
        return self._written[request]

    def _ask(self, prompt: str, sentence: str, may_repeat: bool) -> str | None:
        # Not 0, at which all tries would give the same reply.
        parameters = GenerationParameters(temperature=0.7, max_tokens=64, seed=self.seed)
        for sample in range(TRIES):
            (reply,) = self.model.generate([GenerationRequest(prompt, sample_index=sample)], parameters)
            # The first line is the sentence; models may add an explanation below it.
            lines = [line.strip() for line in reply.text.splitlines() if line.strip()]
            form = lines[0].strip(_QUOTES).rstrip(".?").strip(_QUOTES) if lines else ""
            # A negation or question equal to the sentence is a failure; a correction may find nothing to correct.
            if _is_form_of(form, sentence) and (may_repeat or form != sentence):
                return form
        return None


def _is_form_of(form: str, sentence: str) -> bool:
    """True if the form has the same slots, no introduction (`Corrected: ...`), and can be written to a rule file."""
    # A slot may occur more than once, and has to occur as often as before.
    if Counter(_SLOT.findall(form)) != Counter(_SLOT.findall(sentence)):
        return False
    return form.isprintable() and len(form) <= LONGEST_SENTENCE and form.count(":") <= sentence.count(":")
