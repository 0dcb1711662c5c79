"""Tests of constants in rule files that a reference spells otherwise."""

from __future__ import annotations

import json
from pathlib import Path

from cli_fixture import invoke

RULES = """\
given serves(Airport, City)
given is_in(City, Airport)
fact serves("Heathrow Airport", "London")
fact is_in("Gatwick", "heathrow airport")
fact serves("Nowhere Field", "London")
"""
MAPPING = """\
source: {name: Airports, version: "1", licence: public domain}
tables:
  airports: {file: airports.csv}
types:
  Airport: {table: airports, name: airport, aliases: other names, popularity: passengers, closedness: closed}
"""


def files(folder: Path) -> tuple[str, str]:
    (folder / "my.rules").write_text(RULES, encoding="utf-8")
    (folder / "airports.yaml").write_text(MAPPING, encoding="utf-8")
    (folder / "airports.csv").write_text(
        "airport,other names,passengers\nHeathrow,Heathrow Airport,80\n", encoding="utf-8"
    )
    return str(folder / "my.rules"), f"reference:{folder / 'airports.yaml'}"


def test_other_names_are_told_at_their_place_and_mended(tmp_path: Path) -> None:
    """Aliases of the argument's type are named where they stand, and `--fix` writes the reference's own names."""
    rules, names = files(tmp_path)

    def places() -> list[list[int]]:
        found = json.loads(invoke("check", rules, "--names", names, "--json").stdout)
        return [[fault["line"], fault["column"]] for fault in found if fault["code"] == "HPX422"]

    assert places() == [[3, 13], [4, 23]]
    assert [fault for fault in json.loads(invoke("check", rules, "--json").stdout) if fault["code"] == "HPX422"] == []

    mended = invoke("check", rules, "--names", names, "--fix")

    assert "changed" in mended.stderr
    assert places() == []
    text = Path(rules).read_text("utf-8")
    assert 'serves("Heathrow", "London")' in text
    assert 'is_in("Gatwick", "Heathrow")' in text
    assert 'serves("Nowhere Field", "London")' in text


def test_what_has_no_names_is_refused(tmp_path: Path) -> None:
    """`--names` needs a reference that lists one of the rules' types."""
    rules, _ = files(tmp_path)

    result = invoke("check", rules, "--names", "embedded")

    assert result.exit_code == 1
    assert "reference:geo" in result.stderr
