"""Knowledge bases for what is done with statements: LINT's files read in, searches by scripts, and people's votes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli_fixture import EVERY_END, invoke, run
from click.testing import Result
from money_fixture import FOUR_CITIES
from money_fixture import RULES as MONEY_RULES
from money_fixture import SCRIPT as MONEY_SCRIPT
from votes_fixture import fill_csv

import hapax

RULES = f"""{MONEY_RULES}@name neighbour
@domain temporal
lives_in(Person X, City A) & is_a_city_in(City A, Country C) & is_a_city_in(City B, Country C) & A \\= B -> could_move_to(Person X, City B)
"""
SCRIPT = {
    **MONEY_SCRIPT,
    "generate": {
        **FOUR_CITIES,
        "'[A] is a city in Norway'": ["Bergen", "Oslo"],
        "'Bergen is a city in [B]'": ["Norway"],
    },
    "likelihood": {"Norway uses the Norwegian krone.": -12.0, "The Gambia uses the dalasi.": -20.0},
}
"""Two rules, and a script whose search finds statements of both and rejects one value."""

KITCHEN = """
type Dish < Food
given is_allergic_to(Person, Allergen): "[1] is allergic to [2]" / "[1] is not allergic to [2]" / "is [1] allergic to [2]?"
given is_not_able_to_eat(Person, Food): "[1] is not able to eat [2]" / "[1] is able to eat [2]" / "is [1] unable to eat [2]?"
given can_cook(Person, Dish): "[1] can cook [2]" / "[1] cannot cook [2]" / "can [1] cook [2]?"
given was_in(Person, Year): "[1] was in [2]" / "[1] was not in [2]" / "was [1] in [2]?"
oracle is_made_from(Dish, Allergen): "[1] is made from [2]" / "[1] is not made from [2]" / "is [1] made from [2]?"
functional was_invented_in(Dish, Year): "[1] was invented in [2]" / "[1] was not invented in [2]" / "was [1] invented in [2]?"
computed is_earlier_than(Year A, Year B) := A < B: "[1] is earlier than [2]" / "[1] is not earlier than [2]" / "is [1] earlier than [2]?"

@name allergy
@domain "outcomes and effects"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> is_not_able_to_eat(Person X, Dish B).

@name cook
@domain "natural properties"
is_allergic_to(Person X, Allergen A) & is_made_from(Dish B, Allergen A) -> can_cook(Person X, Dish B).

@name before
@domain temporal
was_in(Person X, Year A) & was_invented_in(Dish B, Year Y) & is_earlier_than(Year A, Year Y)
  -> is_not_able_to_eat(Person X, Dish B).
"""

Values = Mapping[tuple[str, str], Iterable[tuple[str, ...]]]
"""Values of statements by rule and end (`head` or `longtail`)."""

COLUMNS = {"allergy": "X,A,B", "cook": "X,A,B", "before": "X,A,B,Y"}
DISHES: Values = {
    ("allergy", "head"): [("milk", "mashed potatoes"), ("milk", "guacamole"), ("milk", "fondue")],
    ("allergy", "longtail"): [("milk", "fondue"), ("nuts", "gianduja"), ("nuts", "marzipan")],
    ("before", "longtail"): [("1876", "sushi burrito", "2005.5")],
}
"""Seven statements of two rules; fondue is in both distributions."""


def eats(dish: str, allergen: str = "milk") -> str:
    """The text of a statement of the rule allergy."""
    return f"If PersonX is allergic to {allergen}, then PersonX is not able to eat {dish}."


def bring(
    database: Path,
    values: Values = DISHES,
    *,
    scores: Mapping[str, float] | None = None,
    rules: str = KITCHEN,
    columns: Mapping[str, str] = COLUMNS,
    lint: str = "lint",
) -> Path:
    """Import statements into a knowledge base, as LINT's files; an evaluator gives their texts these `scores`."""
    folder = database.parent / lint
    folder.mkdir(exist_ok=True)
    (database.parent / "kitchen.rules").write_text(rules, "utf-8")
    for (rule, end), rows in values.items():
        quoted = ["PersonX," + ",".join(f'"{cell}"' for cell in row) for row in rows]
        lines = [columns[rule], *quoted]
        (folder / f"{rule}_value_cache.csv_{end}").write_text("\n".join(lines) + "\n", "utf-8")
    model = script(database.parent / "evaluator.json", likelihood=dict(scores or {}))
    run(
        "evaluate", "lint", folder, "--rules", database.parent / "kitchen.rules", "--evaluator", model, "--db", database
    )
    return database


def script(path: Path, yes: float = 0.9, says: object = "Yes.", **more: object) -> str:
    """Write a scripted model and return its name: its P(yes), what it says, and the parts that differ."""
    defaults = {"critic": yes, "likelihood": -10.0, "generate": says}
    path.write_text(json.dumps({"defaults": defaults, **more}), "utf-8")
    return f"scripted:{path}"


def search(database: Path, content: object = SCRIPT, *options: object, rules: str = RULES) -> dict[str, Any]:
    """Search by a script, which also evaluates; what `search --json` said."""
    folder = database.parent
    (folder / "money.rules").write_text(rules, "utf-8")
    (folder / "script.json").write_text(json.dumps(content), "utf-8")
    model = f"scripted:{folder / 'script.json'}"
    models = ("-m", model, "--evaluator", model)
    where = ("--no-progress", "--json", "--db", database)
    found: dict[str, Any] = json.loads(
        run("search", folder / "money.rules", *models, *where, *EVERY_END, *options).stdout
    )
    return found


def told(*command: object) -> Any:
    """The JSON that a command prints."""
    return json.loads(run(*command, "--json").stdout)


def fault(*command: object, code: int = 1) -> str:
    """The message of a command that fails, in one line."""
    result = invoke(*command)
    assert result.exit_code == code, result.output
    return flat(result.stderr)


def flat(text: str) -> str:
    return " ".join(text.split())


def notes(result: Result) -> str:
    """The stderr of a command, in one line."""
    return flat(result.stderr)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def statements(database: Path) -> dict[str, str]:
    """Ids of the statements by their texts."""
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return {record.text: record.id for record in kb.statements()}


def sent(database: Path, role: str) -> list[dict[str, Any]]:
    """Requests to models in a role, in the order in which the journal has them."""
    with hapax.KnowledgeBase(database, read_only=True) as kb:
        return [dict(call.request) for call in kb.calls().values() if call.role == role]


def judge(
    database: Path, voter: str, answers: Mapping[tuple[str, str], str], kind: str = "statements", *options: object
) -> list[dict[str, str]]:
    """Fill in and import a sheet: answers by a part of an item's text and the question; else yes, and no harm.

    Returns the rows of the sheet that are about items. An empty answer of a row leaves the question out.
    """
    folder = database.parent / f"sheets-{voter}"
    command = ("votes", "export", kind, "--voter", voter, "--sample", 0, "--format", "csv", "--out", folder)
    run(*command, "--db", database, *options)
    asked: list[dict[str, str]] = []

    def answer(row: dict[str, str]) -> str:
        asked.append(row)
        chosen = (
            word
            for (part, question), word in answers.items()
            if question == row["question"] and part in row["text"] + row["asked"]
        )
        usual = "" if row["question"] == "harmful" else row["choices"].split(" / ")[0] if "baseline" in kind else "yes"
        return next(chosen, usual)

    run("votes", "import", fill_csv(folder / f"{kind}-{voter}.csv", answer), "--db", database)
    return asked
