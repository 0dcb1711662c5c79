"""Measures the embedded model and writes its card: `python -m evaluation.embedded_card`.

The card's prose is `llm_oracle/embedded/card.md`; the figures go between its markers. The same figures, and more, go
into `measurements.json`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evaluation.card_text import (
    critic_section,
    delta_section,
    likelihood_section,
    lists_section,
    model_section,
    outside_section,
    replace_sections,
    search_section,
    training_section,
)
from evaluation.claims import free_claims, outside_facts
from evaluation.embedded_lists import ListMeasurements, measure_lists
from evaluation.embedded_roles import (
    CriticMeasurements,
    Extent,
    LikelihoodMeasurements,
    OutsideMeasurements,
    measure_critic,
    measure_free,
    measure_likelihood,
    measure_outside,
)
from evaluation.embedded_search import SearchMeasurements, measure_search
from evaluation.model_facts import ModelFacts, read_model_facts
from grammar.errors import HapaxError
from grammar.parser import load_library
from llm_oracle.embedded.atlas import load_atlas
from llm_oracle.embedded.corpus import Corpus
from llm_oracle.embedded.wording import RULES_FOLDER, Wording
from llm_oracle.registry import EMBEDDED_FOLDER, open_models

PROSE = EMBEDDED_FOLDER.parent / "card.md"
CARD_FILE, MEASUREMENTS_FILE = "README.md", "measurements.json"


@dataclass(frozen=True, slots=True)
class Measurements:
    """All that the card tells."""

    model: ModelFacts
    critic: CriticMeasurements
    likelihood: LikelihoodMeasurements
    lists: ListMeasurements
    outside_atlas: OutsideMeasurements
    unknown_predicates: OutsideMeasurements
    search: SearchMeasurements

    @property
    def sections(self) -> dict[str, str]:
        """The card's sections by the names of their markers."""
        return {
            "model": model_section(self.model),
            "training": training_section(self.model),
            "search": search_section(self.search),
            "critic": critic_section(self.critic),
            "lists": lists_section(self.lists),
            "likelihood": likelihood_section(self.likelihood),
            "delta": delta_section(self.search),
            "outside": outside_section(self.outside_atlas, self.unknown_predicates),
        }

    def to_json(self) -> str:
        """The figures as JSON; null stands where there was nothing to measure."""
        return json.dumps(_plain(asdict(self)), indent=1, ensure_ascii=False) + "\n"


def measure(folder: Path, extent: Extent, say: Callable[[str], None]) -> Measurements:
    """Measure a folder's model; the shipped one is opened as `embedded`, any other as a Hugging Face checkpoint."""
    atlas, library = load_atlas(), load_library([RULES_FOLDER])
    corpus = Corpus(atlas, Wording(atlas, library))
    facts = read_model_facts(folder, atlas)
    models = open_models("embedded" if folder == EMBEDDED_FOLDER else f"hf:{folder}")
    say("critic")
    critic = measure_critic(models.critic, corpus, extent)
    outside = measure_outside(models.critic, corpus, outside_facts())
    unknown = measure_free(models.critic, free_claims())
    say("likelihood")
    likelihood = measure_likelihood(models.likelihood, corpus, extent)
    say("lists")
    lists = measure_lists(models.knowledge, corpus, library, extent)
    say("search")
    found = measure_search(models, library, atlas, extent)
    return Measurements(facts, critic, likelihood, lists, outside, unknown, found)


def write_card(measurements: Measurements, folder: Path) -> None:
    """Write card and figures into the folder."""
    card = replace_sections(PROSE.read_text("utf-8"), measurements.sections)
    (folder / CARD_FILE).write_text(card, encoding="utf-8")
    (folder / MEASUREMENTS_FILE).write_text(measurements.to_json(), encoding="utf-8")


def main() -> None:
    """Measures and writes; exit status 1 and one line if that cannot be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=EMBEDDED_FOLDER, help="the model folder; its card is written")
    folder = parser.parse_args().folder.resolve()
    began = time.monotonic()

    def say(words: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:6.1f} s  {words}\n")

    try:
        write_card(measure(folder, Extent(), say), folder)
    except HapaxError as fault:
        raise SystemExit(f"error: {fault}") from None
    say(f"written: {folder / CARD_FILE} and {MEASUREMENTS_FILE}")


def _plain(item: Any) -> Any:
    """JSON has no nan."""
    if isinstance(item, dict):
        return {key: _plain(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_plain(value) for value in item]
    return None if isinstance(item, float) and math.isnan(item) else item


if __name__ == "__main__":
    main()
