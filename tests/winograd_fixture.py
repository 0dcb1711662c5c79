"""Small Winograd schemas of our own, plain and concept-reversed, and models that answer them in two ways."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hapax.evaluation.winograd.data import Pair, pairs_of
from hapax.evaluation.winograd.files import read_items
from hapax.evaluation.winograd.prompts import question_block

SCHEMAS = (
    ("The {a} couldn't push the {b} because he was so {q}.", "he", ("weak", "heavy")),
    ("The {a} doesn't go into the {b} because it is too {q}.", "it", ("wide", "narrow")),
    ("The {a} overtook the {b} because it was so {q}.", "it", ("fast", "slow")),
    ("The {a} asked the {b} for help because he was so {q}.", "he", ("desperate", "generous")),
)
"""Sentence, pronoun, and two qualities: of who or what stands first, and of the other."""

PLAIN = (("uncle", "nephew"), ("parcel", "locker"), ("van", "bus"), ("baker", "butcher"))
REVERSED = (("weightlifter", "toddler"), ("thimble", "barn"), ("tractor", "rocket"), ("tycoon", "beggar"))
ASSOCIATED = {
    ("toddler", "weak"),
    ("weightlifter", "heavy"),
    ("barn", "wide"),
    ("thimble", "narrow"),
    ("rocket", "fast"),
    ("tractor", "slow"),
    ("beggar", "desperate"),
    ("tycoon", "generous"),
}
"""Words that go together if one does not think of the sentence: always the wrong answer."""

ROLES = ("first one", "second one")


def write(path: Path, entities: tuple[tuple[str, str], ...]) -> Path:
    """The schemas with these entities as a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("text", "pronoun", "entity1", "entity2", "label"))
        for (text, pronoun, qualities), (a, b) in zip(SCHEMAS, entities, strict=True):
            for label, quality in enumerate(qualities):
                sentence = text.format(a=a, b=b, q=quality)
                writer.writerow((sentence, pronoun, f"The {a}", f"The {b}", label))
    return path


def annotated(path: Path) -> Path:
    """A pair and its reversal, in whose sentences the associated entity is the wrong one, as the annotated WSC file."""
    options, exchanged = json.dumps(["the fish", "the worm"]), json.dumps(["the worm", "the fish"])
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("text", "pronoun", "options", "label", "mod", "mod_text"))
        for label, quality in enumerate(("hungry", "tasty")):
            text, modified = (
                f"The {a} ate the {b}. It was {quality}." for a, b in (("fish", "worm"), ("worm", "fish"))
            )
            writer.writerow((text, "It", options, label, exchanged, modified))
    return path


def by_association(pair: Pair) -> str:
    """The reply of a model that goes by association, and knows the plain schemas by heart."""
    answers = []
    for item in pair:
        quality = item.text.rstrip(".").split()[-1]
        names = [option.removeprefix("The ") for option in item.options]
        drawn = [number for number, name in enumerate(names) if (name, quality) in ASSOCIATED]
        answers.append(item.options[drawn[0] if drawn else item.answer])
    return f"1. {answers[0]}. 2. {answers[1]}"


def by_role(pair: Pair) -> str:
    """The reply of a model that sees no entity but the roles."""
    return " ".join(f"{number}. {ROLES[item.answer]}" for number, item in enumerate(pair, start=1))


def script(paths: list[Path], direct: Callable[[Pair], str]) -> dict[str, Any]:
    """A script for these files: `direct` to whatever asks at once; concepts, and answers about them, in stages."""
    from hapax.evaluation.winograd.abstraction import abstract_pair

    replies = {}
    for path in paths:
        for pair in pairs_of(read_items(path)):
            first, second = pair[0].options
            block = question_block(pair)
            replies[block] = direct(pair)
            replies[f"{block}Conceptualization: "] = (
                f"{first} can be conceptualized as a {ROLES[0]}, and {second} can be conceptualized as a {ROLES[1]}."
            )
            abstract = abstract_pair(pair, ROLES)
            assert abstract is not None
            replies[question_block(abstract)] = by_role(pair)
    return {"generate": replies}


def scripted(path: Path, content: dict[str, Any]) -> str:
    """The model string of a script that is written to this file."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"scripted:{path}"
