"""The language's page is made from the grammar and the tables."""

from __future__ import annotations

import re
from pathlib import Path

from grammar import parse_library
from grammar.reference import language_page

PAGE = Path(__file__).parents[1] / "docs" / "language.md"


def test_the_page_is_what_the_module_makes() -> None:
    """After a change of grammar or faults: `python -m grammar.reference > docs/language.md`."""
    assert PAGE.read_text(encoding="utf-8") == language_page()


def test_the_tour_parses() -> None:
    """The example at the top of the page is a rule file."""
    example = re.findall(r"```\n(.*?)```", language_page(), re.DOTALL)[0]

    assert len(parse_library([("tour", example)]).rules) == 2
