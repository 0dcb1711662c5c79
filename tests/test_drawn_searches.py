"""Searches of drawn rules with drawn settings, by checksums in `tests/golden/`: reports, forecasts and what is stored."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from drawn_rules import drawn_library
from golden_fixture import compared
from kb_contents import checksum, contents
from recorded_searches import job_of, planned, searched

from hapax.engine.explain import story_text, why, why_not
from hapax.engine.inference.session import PrologSession
from hapax.engine.inference.theory import Theory
from hapax.engine.search.thresholds import CriticRule
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.kb.records import USER, Distribution, FactRecord, Source
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle import simulated_world

NAMES = simulated_world._names

SETTINGS: Sequence[tuple[str, Sequence[Any]]] = [
    ("compat", (None, None, None, "paper", "released")),
    ("ends", ("disjoint", "disjoint", "overlapping")),
    ("likelihood", ("model", "model", "random", "none")),
    ("beam", (2, 5, 20, None)),
    ("calls_per_question", (1, 2, 3)),
    ("values_per_call", (3, 8)),
    ("rules_together", (1, 2, 8)),
    ("plan", ("cheapest", "cheapest", "link", "premise-first", "conclusion-first")),
    ("distributions", ((Distribution.HEAD, Distribution.LONG_TAIL), (Distribution.LONG_TAIL,), (Distribution.HEAD,))),
    ("keep_share", (0.75, 0.5, 0.25)),
    ("max_statements", (None, None, 3)),
    ("seed", (0, 1)),
    ("critic", (True, True, True, False)),
    ("fact_threshold", (None, None, CriticRule.parse("0.9"))),
    ("names", (False, False, True)),
    ("measure", (None, None, "total", "paper", "slor")),
    ("threshold_cap", (1.0, 1.0, 0.7)),
    ("answer_tokens", (512, 40)),
]
"""Settings of a search with the values from which one is drawn."""


def drawn_settings(chance: random.Random) -> dict[str, Any]:
    drawn = {name: chance.choice(values) for name, values in SETTINGS}
    if drawn["fact_threshold"]:
        drawn["threshold_cap"] = 1.0
    if drawn["compat"]:  # it has its own measure, ends and thresholds
        drawn |= {"ends": "overlapping", "measure": None, "threshold_cap": 1.0, "fact_threshold": None}
    elif drawn["ends"] == "disjoint":
        drawn["keep_share"] = min(drawn["keep_share"], 0.5)
    return drawn


def given_facts(chance: random.Random) -> list[FactRecord]:
    facts = [("sails", (f"ship {ship}", f"place {chance.randrange(14)}"), ("Ship", "Place")) for ship in range(4)]
    needs = [("needs", (f"plant {plant}", chance.randrange(50, 400)), ("Plant", "Metre")) for plant in range(14)]
    # Of predicates that a model is asked about, too.
    asked = [
        ("lies_near", (f"isle {chance.randrange(3)}", f"place {chance.randrange(4)}"), ("Isle", "Place")),
        ("lies_near", ("isle 1", f"place {chance.randrange(4)}"), ("Isle", "Place")),
        ("grows_on", (f"plant {chance.randrange(4)}", f"isle {chance.randrange(3)}"), ("Plant", "Isle")),
        ("faces", (f"place {chance.randrange(4)}", f"place {chance.randrange(4)}"), ("Place", "Place")),
        ("was_settled_in", ("isle 1", 1400 + 100 * chance.randrange(6)), ("Isle", "Year")),
        ("has_harbour", (f"place {chance.randrange(4)}",), ("Place",)),
    ]
    own = chance.sample(asked, chance.randrange(len(asked) + 1))
    return [FactRecord(name, values, types, Source.GIVEN) for name, values, types in (*facts, *needs, *own)]


def stories(kb: KnowledgeBase, library: Library, prolog: PrologSession) -> list[str]:
    theory = Theory(library, kb)
    statements = sorted(kb.statements(), key=lambda statement: statement.id)
    told = [story_text(why(theory, statement.id, prolog)) for statement in statements[:3]]
    for rule in library.rules:
        terms = [variable.data_type.lower() + " 3" for variable in rule.conclusion.atom.variables]
        named = ["PersonX" if term.startswith("person") else term for term in terms]
        atom = f"{rule.conclusion.atom.predicate}({', '.join(map(json.dumps, named))})"
        try:
            told.append(story_text(why_not(theory, atom, prolog)))
        except HapaxError as refusal:
            told.append(str(refusal))
    return told


def told_of(
    kb: KnowledgeBase, rules: str, library: Library, options: dict[str, Any], prolog: PrologSession
) -> Iterator[str]:
    """Checksums of a search's forecast, report, stored rows and stories; or why it is refused."""
    try:
        job = replace(job_of(kb, options, rules=rules), rules=library.rules)
        forecast = planned(job)
    except HapaxError as refusal:
        yield str(refusal)
        return
    report = searched(job)
    for text in (forecast, report, contents(kb, shown=0), *stories(kb, library, prolog)):
        yield checksum(text.splitlines())


def spaced(rng: random.Random) -> Iterator[str]:
    """Names of two words, of which many share one, so that the head avoids repetitions."""
    for name in NAMES(rng):
        yield f"{name[:2]} {name[2:]}"


@pytest.mark.parametrize("part", range(6))
def test_drawn_rules_are_searched_as_before(part: int, prolog: PrologSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forecast, report, stored rows and stories of each search are those of the version that was read over."""
    lines = []
    for seed in range(part * 3, part * 3 + 3):
        chance = random.Random(seed)
        monkeypatch.setattr(simulated_world, "_names", spaced if seed % 2 else NAMES)
        rules, library = drawn_library(chance)
        with KnowledgeBase() as kb:
            kb.add_facts(given_facts(chance))
            gone = kb.facts("lies_near")[:1]
            kb.withdraw([fact.id for fact in gone], "it sank", USER)
            # The second search finds the answers, verdicts and statements of the first.
            for options in (drawn_settings(chance), drawn_settings(chance)):
                told = list(told_of(kb, rules, library, options, prolog))
                figures = Counter(statement.rule for statement in kb.statements())
                lines += [f"{seed} {json.dumps(options, default=str)}", f"  {sorted(figures.items())} {' '.join(told)}"]
    compared(f"search/drawn_{part}", "\n".join(lines) + "\n")
