"""Chain of thought: two worked examples before each question, one with a positive and one with a negative answer.

The paper prints neither its examples nor their templates (section 4). These two are our own, and their order and
templates are random; `released.py` has those of LINK's released probing code.
"""

from __future__ import annotations

import random
import re

from hapax.evaluation.link.probing.items import ProbeItem
from hapax.evaluation.link.probing.templates import TEMPLATES, Template
from hapax.grammar.attributes import Polarity
from hapax.kb.records import Distribution

STEP_BY_STEP = "Let's think step by step."
"""End of LINK's prompt for the rationale."""


def closing(template: Template) -> str:
    """Text after the rationale that requests the answer."""
    return f"Therefore, the answer ({template.pair.spoken}) is:"


def examples(seed: int, item: ProbeItem, template: Template) -> str:
    """Both examples as shown before this question; seed, statement and template determine the text."""
    rng = random.Random(f"{seed} {item.statement_id} {item.distribution.value} {template.number}")  # noqa: S311  # reproducible, not secret
    # A string as seed gives the same numbers in every process, which `hash` would not.
    labels = [True, False]
    rng.shuffle(labels)
    worked = []
    for (example, rationale), label in zip(_EXAMPLES, labels, strict=True):
        worked.append(_worked(example, rationale, rng, label))
    return "".join(worked)


def _worked(example: ProbeItem, rationale: str, rng: random.Random, label: bool) -> str:
    # One of the templates whose right answer about this example is the wanted one.
    template = rng.choice([template for template in TEMPLATES if template.label(example) == label])
    answer = f"{closing(template)} {template.pair.word(label)}"
    return f"{template.question(example)}\n{STEP_BY_STEP}\n{rationale}\n{answer}\n\n"


def without_answer(rationale: str) -> str:
    """The rationale up to the answer that some models add by themselves."""
    # What follows is not needed either: the answer is requested again after the rationale.
    return re.split(r"therefore,? the answer", rationale, maxsplit=1, flags=re.IGNORECASE)[0].strip()


def _denial(premise: str, conclusion: str, negation: str, question: str) -> ProbeItem:
    return ProbeItem(
        "example", "example", "", Distribution.HEAD, premise, conclusion, negation, question, Polarity.NEGATIVE
    )


_EXAMPLES = (
    (
        _denial(
            "PersonX is allergic to peanuts",
            "PersonX is not able to eat satay sauce",
            "PersonX is able to eat satay sauce",
            "is PersonX able to eat satay sauce",
        ),
        "Satay sauce is made from peanuts. Somebody who is allergic to peanuts cannot eat what is made from them, so "
        "PersonX is not able to eat satay sauce.",
    ),
    (
        _denial(
            "PersonX died in the Bronze Age",
            "PersonX was not able to ride a steam train",
            "PersonX was able to ride a steam train",
            "was PersonX able to ride a steam train",
        ),
        "The Bronze Age ended about 3,000 years ago. Steam trains have existed for about 200 years. Whoever died in "
        "the Bronze Age died long before, so PersonX was not able to ride a steam train.",
    ),
)
