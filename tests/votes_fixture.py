"""People who fill in sheets of votes, as CSV files and as pages."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

Answer = Callable[[dict[str, str]], str]
"""From a row's cells to what a person answers; the qualification answers itself."""

WRONG: dict[tuple[str, str], dict[str, str]] = {
    ("statements", "qualification:2"): {"data type B": "no"},
    ("statements", "qualification:3"): {"entailment": "no"},
    ("predicates", "qualification:2"): {"audit Q3": "no", "audit Q4": "no"},
    ("predicates", "qualification:3"): {"audit Q1": "no", "audit Q3": "no", "audit Q4": "no"},
    ("baseline", "qualification:2"): {"baseline 5": "no"},
    ("schemas", "qualification:1"): {"schema label 1": "first", "schema label 2": "second"},
    ("soundness", "qualification:2"): {"soundness": "rule"},
}
"""Right answers of the qualification other than yes, by sheet and item."""


def answered(row: dict[str, str], answer: Answer) -> str:
    if row["section"] == "qualification":
        return WRONG.get((row["kind"], row["item"]), {}).get(row["question"], "yes")
    return answer(row)


def fill_csv(path: Path, answer: Answer, **cells: str) -> Path:
    """Answer every question of a CSV sheet; `cells` overwrites others in every row."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        rows, names = list(reader), list(reader.fieldnames or ())
    for row in rows:
        if row["section"] != "instructions":
            row.update(cells, answer=answered(row, answer))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        writer.writerows(rows)
    return path


def fill_page(path: Path, answer: Answer, comment: str = "") -> Path:
    """Answer every question of a page, and save the file that its button saves."""
    island = Page.of(path).island
    rows = [
        {**row, "answer": answered({**row, "kind": island["kind"]}, answer), "comment": comment}
        for row in island["rows"]
    ]
    head = {name: island[name] for name in ("format", "sheet", "kind")}
    voter = Page.of(path).attributes("input", "id", "voter")["value"]
    saved = path.with_suffix(".json")
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    saved.write_text(f'{json.dumps({**head, "voter": voter})[:-1]},"rows":[\n{lines}\n]}}\n', encoding="utf-8")
    return saved


class Page(HTMLParser):
    """The tags of a page with their attributes, its texts, and what stands in its scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []

    @classmethod
    def of(cls, path: Path) -> Page:
        page = cls()
        page.feed(path.read_text(encoding="utf-8"))
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and data.strip():
            self.texts.append((self.tags[-1][0], data))

    def attributes(self, tag: str, name: str, value: str) -> dict[str, str | None]:
        return next(
            attributes for tag_name, attributes in self.tags if tag_name == tag and attributes.get(name) == value
        )

    @property
    def island(self) -> dict[str, Any]:
        (text,) = (data for tag, data in self.texts if tag == "script" and data.lstrip().startswith("{"))
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def shape(self) -> list[tuple[str, list[str]]]:
        """Tags with the names of their attributes."""
        return [(tag, sorted(attributes)) for tag, attributes in self.tags]
