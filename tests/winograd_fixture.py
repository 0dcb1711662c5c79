"""Small Winograd schemas of our own, plain and concept-reversed, and models that answer them in two ways."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

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


def questions(sentences: tuple[str, str], pronoun: str, options: tuple[str, str]) -> str:
    """The end of every prompt of the paper: two sentences with their questions, and the options."""
    asked = f'What does "{pronoun}" refer to?'
    return (
        f"Q: Compare the two sentences and answer the questions\n1. {sentences[0]} {asked}\n2. {sentences[1]} {asked}\n"
        f'Select from ["{options[0]}", "{options[1]}"]\n'
    )


def association(*sets: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """The script of a model that goes by association, knows the plain schemas by heart, and sees roles once it is
    asked for concepts first."""
    replies = {}
    for entities in sets:
        for (text, pronoun, qualities), pair in zip(SCHEMAS, entities, strict=True):
            options = (f"The {pair[0]}", f"The {pair[1]}")
            sentences = tuple(text.format(a=pair[0], b=pair[1], q=quality) for quality in qualities)
            asked = questions((sentences[0], sentences[1]), pronoun, options)
            drawn = [[place for place in (0, 1) if (pair[place], quality) in ASSOCIATED] for quality in qualities]
            answers = [options[places[0] if places else number] for number, places in enumerate(drawn)]
            replies[asked] = f"1. {answers[0]}. 2. {answers[1]}"
            replies[f"{asked}Conceptualization: "] = (
                f"{options[0]} can be conceptualized as a {ROLES[0]}, and "
                f"{options[1]} can be conceptualized as a {ROLES[1]}."
            )
            abstract = [text.format(a=ROLES[0], b=ROLES[1], q=quality) for quality in qualities]
            replies[questions((abstract[0], abstract[1]), pronoun, ROLES)] = f"1. {ROLES[0]} 2. {ROLES[1]}"
    return {"generate": replies}


def scripted(path: Path, content: dict[str, Any]) -> str:
    """The model string of a script that is written to this file."""
    path.write_text(json.dumps(content), encoding="utf-8")
    return f"scripted:{path}"
