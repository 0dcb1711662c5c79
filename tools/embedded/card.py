"""Measure the embedded model and write its card: `python -m tools.embedded.card`.

The card is `tools/embedded/card.md` with figures between its markers. `measurements.json` has the same figures and
more. `--search` measures only the search again, whose figures change with the rules and the settings.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hapax.evaluation.shared.results import json_value
from hapax.grammar.errors import HapaxError
from hapax.grammar.parser import load_library
from hapax.llm_oracle.backends.checkpoints import EMBEDDED_FOLDER
from hapax.llm_oracle.embedded.atlas import load_atlas
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.registry import open_models
from tools.embedded.card_sections import (
    critic_section,
    delta_section,
    likelihood_section,
    lists_section,
    model_section,
    outside_section,
    replace_sections,
    search_section,
    training_section,
    written_sections,
)
from tools.embedded.corpus import Corpus
from tools.embedded.handwritten_claims import free_claims, outside_facts
from tools.embedded.list_measurements import ListMeasurements, measure_lists
from tools.embedded.model_folder import ModelFacts, read_model_facts
from tools.embedded.score_measurements import (
    CardSize,
    CriticMeasurements,
    LikelihoodMeasurements,
    OutsideMeasurements,
    measure_critic,
    measure_free,
    measure_likelihood,
    measure_outside,
)
from tools.embedded.search_measurements import SearchMeasurements, measure_search
from tools.embedded.wording import RULES_FOLDER, AtlasWording

PROSE = Path(__file__).parent / "card.md"
CARD_FILE, MEASUREMENTS_FILE = "README.md", "measurements.json"


@dataclass(frozen=True, slots=True)
class Measurements:
    """All figures of the card."""

    model: ModelFacts
    critic: CriticMeasurements
    likelihood: LikelihoodMeasurements
    lists: ListMeasurements
    outside_atlas: OutsideMeasurements
    unknown_predicates: OutsideMeasurements
    search: SearchMeasurements

    @property
    def sections(self) -> dict[str, str]:
        """The sections of the card by the names of their markers."""
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
        """The figures as JSON, with null for those that are undefined."""
        return json.dumps(json_value(self), indent=1, ensure_ascii=False) + "\n"


def open_folder(folder: Path) -> Models:
    """The model in a folder: the shipped one as `embedded`, others as Hugging Face checkpoints."""
    return open_models("embedded" if folder == EMBEDDED_FOLDER else f"hf:{folder}")


def measure(folder: Path, extent: CardSize, say: Callable[[str], None]) -> Measurements:
    """Measure the model in a folder for all sections of the card."""
    atlas, library = load_atlas(), load_library([RULES_FOLDER])
    corpus = Corpus(atlas, AtlasWording(atlas, library))
    facts = read_model_facts(folder, atlas)
    models = open_folder(folder)
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
    """Write the card and its figures into the folder."""
    card = replace_sections(PROSE.read_text("utf-8"), measurements.sections)
    (folder / CARD_FILE).write_text(card, encoding="utf-8")
    (folder / MEASUREMENTS_FILE).write_text(measurements.to_json(), encoding="utf-8")


def rewrite_search(measured: SearchMeasurements, folder: Path) -> None:
    """Replace the figures of the search in the folder's card, and leave those of the model as they are.

    Raises HapaxError if the card's markers are not those of the prose.
    """
    card = (folder / CARD_FILE).read_text("utf-8")
    sections = written_sections(card) | {"search": search_section(measured), "delta": delta_section(measured)}
    figures = json.loads((folder / MEASUREMENTS_FILE).read_text("utf-8"))
    figures["search"] = json_value(measured)
    (folder / CARD_FILE).write_text(replace_sections(PROSE.read_text("utf-8"), sections), encoding="utf-8")
    (folder / MEASUREMENTS_FILE).write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Measure and write the card; exit with status 1 and a message on failure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, default=EMBEDDED_FOLDER, help="folder of the model, for the card too")
    parser.add_argument("--search", action="store_true", help="measure only the search again")
    options = parser.parse_args()
    folder = options.folder.resolve()
    began = time.monotonic()

    def say(words: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began:6.1f} s  {words}\n")

    try:
        if options.search:
            models, library = open_folder(folder), load_library([RULES_FOLDER])
            rewrite_search(measure_search(models, library, load_atlas(), CardSize()), folder)
        else:
            write_card(measure(folder, CardSize(), say), folder)
    except HapaxError as fault:
        raise SystemExit(f"error: {fault}") from None
    say(f"written: {folder / CARD_FILE} and {MEASUREMENTS_FILE}")


if __name__ == "__main__":
    main()
