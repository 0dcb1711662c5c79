"""A knowledge base with statements to judge, and people who fill in sheets."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hapax.evaluation.votes.questions import WORDINGS
from hapax.grammar.parser import parse_library
from hapax.kb.records import Distribution, PredicateRecord, RuleRecord, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase

RULES = """
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]"
given cannot_eat(Person, Dish): "[1] cannot eat [2]" / "[1] can eat [2]" / "can [1] eat [2]?"
oracle is_made_from(Dish, Ingredient): "[1] is made from [2]"
oracle is_kind_of(Ingredient, Allergen): "[1] is a kind of [2]"

@name allergy
@domain outcomes and effects
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Ingredient C) & is_kind_of(Ingredient C, Allergen A) -> cannot_eat(Person X, Dish B).

@name lodging
@domain locational
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> cannot_eat(Person X, Dish B).
"""

Answer = Callable[[dict[str, str]], str]
"""From a row's cells to what a person answers; the qualification answers itself."""


def statement(
    dish: str, distribution: Distribution = Distribution.HEAD, rule: str = "allergy", allergen: str = "milk"
) -> StatementRecord:
    values = (("A", allergen), ("B", dish), *([("C", "cream")] if rule == "allergy" else []))
    proof = {"steps": [{"goal": {"predicate": "cannot_eat", "arguments": [dish]}, "by": "rule", "rule": rule}]}
    return StatementRecord(
        rule,
        distribution,
        "run",
        values,
        f"PersonX is allergic to {allergen}",
        f"PersonX cannot eat {dish}",
        "",
        proof,
    )


def fill(kb: KnowledgeBase, *statements: StatementRecord) -> KnowledgeBase:
    rules = parse_library([("kitchen.rules", RULES)])
    kb.start_run(RunRecord("run", "evaluate lint", {"folder": "kitchen"}, "run", "2026-01-01"))
    kb.add_predicates(map(PredicateRecord.of, rules.completed().signatures))
    kb.add_rules(RuleRecord(rule.name, str(rule), rule.domain, rule.principle, rule.polarity) for rule in rules.rules)
    kb.add_statements(statements)
    return kb


def right_answers() -> dict[tuple[str, str, str], str]:
    """The qualification's answers by kind, item and question."""
    return {
        (kind.value, example.item.id, question.key): answer
        for kind, wording in WORDINGS.items()
        for example in wording.qualification
        for question, answer in zip(example.item.questions, example.answers, strict=True)
    }


def answered(row: dict[str, str], answer: Answer) -> str:
    if row["section"] == "qualification":
        return right_answers()[row["kind"], row["item"], row["question"]]
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
