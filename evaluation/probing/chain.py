"""Chain of thought: two examples before each question, one answered positively and one negatively, in drawn order.

LINK prints neither its examples nor which template they are put in (section 4). The two here are ours, and are put in a
drawn template each.
"""

from __future__ import annotations

import random
import re

from evaluation.probing.items import ProbeItem
from evaluation.probing.templates import TEMPLATES, Template
from grammar.rules import Polarity
from kb.records import Distribution

STEP_BY_STEP = "Let's think step by step."
"""What LINK's prompt says before the rationale."""


def closing(template: Template) -> str:
    """What follows the rationale and calls for the answer."""
    return f"Therefore, the answer ({template.pair.spoken}) is:"


def examples(seed: int, item: ProbeItem, template: Template) -> str:
    """Both examples as they stand before this question; the same seed, statement and template give the same text."""
    rng = random.Random(f"{seed} {item.statement_id} {item.distribution.value} {template.number}")  # noqa: S311  # drawn again by anybody, not secret
    labels = [True, False]
    rng.shuffle(labels)
    return "".join(
        _worked(example, rationale, rng, label) for (example, rationale), label in zip(_EXAMPLES, labels, strict=True)
    )


def _worked(example: ProbeItem, rationale: str, rng: random.Random, label: bool) -> str:
    template = rng.choice([one for one in TEMPLATES if one.label(example) == label])
    answer = f"{closing(template)} {template.pair.word(label)}"
    return f"{template.question(example)}\n{STEP_BY_STEP}\n{rationale}\n{answer}\n\n"


def without_answer(rationale: str) -> str:
    """A rationale without the answer that some models go on to by themselves, and all that follows it."""
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
