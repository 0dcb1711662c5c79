"""Random rule files with probabilities, by Hapax and by ProbLog 2: `python -m tools.probable_programs --programs 200`.

A program has up to three layers of rules over uncertain facts: joins, recursion, negation of facts, of a `closed`
predicate and of conclusions, of an open predicate whose atoms a critic denied, and entailments between predicates. Its
derived predicates, a goal with a negation and a disjunction, and the statements of `derive` have to have the
probabilities of ProbLog (Fierens et al. 2015), which gets the program in its own language, written from the drawn rules
and not from what Hapax read: exact ones within 1e-9, bounds around them, best proofs not above them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import hapax
from hapax.engine.entailment.graph import Edge, store_entailments
from hapax.kb.records import DENIALS, DenialRecord, FactRecord, Source
from tools.drawn_programs import (
    DOUBTED,
    PROBABLE,
    Call,
    Compared,
    Drawing,
    DrawnProgram,
    Item,
    Order,
    accepted,
    compare_drawn,
    variables_of,
)

NAMES = "abcd"
ENTAILED = (("edge", "link"), ("link", "near"), ("edge", "near"), ("mark", "shut"))
LEAST_CHAIN = 0.001
"""Least product of a chain of entailments: all that are drawn."""
TOLERANCE = 1e-9
NEGATION = "\\+ "

Row = tuple[str, ...]
Chances = dict[Row, float]


@dataclass
class UncertainWorld:
    """Facts (1: given), denials and entailments, with their probabilities."""

    facts: dict[tuple[str, Row], float] = field(default_factory=dict)
    denials: dict[str, float] = field(default_factory=dict)
    entailments: list[tuple[Call, Call, float]] = field(default_factory=list)

    @classmethod
    def drawn(cls, rng: random.Random) -> UncertainWorld:
        """A world of up to four names."""
        world, names = cls(), NAMES[: rng.randint(2, 4)]
        for _ in range(rng.randint(12, 24)):
            name = rng.choice([*PROBABLE, "edge", "link"])
            row = tuple(rng.choice(names) for _ in PROBABLE[name])
            world.facts[name, row] = 1.0 if rng.random() < 0.15 else round(rng.uniform(0.05, 0.95), 3)
        world.denials = {name: round(rng.uniform(0.01, 0.3), 3) for name in rng.sample(NAMES, rng.randint(0, 3))}
        for premise, conclusion in ENTAILED:
            if rng.random() < 0.3:
                straight = ("X", "Y")[: len(PROBABLE[premise])]
                turned = straight if rng.random() < 0.7 else straight[::-1]
                chance = round(rng.uniform(0.3, 0.95), 3)
                world.entailments.append((Call(premise, straight), Call(conclusion, turned), chance))
        return world

    def store(self, kb: hapax.KnowledgeBase) -> None:
        """Store all of it."""
        records = []
        for (name, row), chance in self.facts.items():
            source = Source.GIVEN if chance == 1.0 else Source.MODEL
            records.append(FactRecord(name, row, ("Thing",) * len(row), source, chance))
        kb.add_facts(records)
        kb.add(DENIALS, (DenialRecord(DOUBTED, (name,), chance, None) for name, chance in self.denials.items()))
        edges = [
            Edge.of(_typed(premise), _typed(conclusion), chance) for premise, conclusion, chance in self.entailments
        ]
        store_entailments(kb, edges)


def _typed(call: Call) -> str:
    return f"{call.predicate}({', '.join(f'Thing {name}' for name in call.terms)})"


def problog_text(program: DrawnProgram, world: UncertainWorld, goal: str) -> str:
    """The program with `goal(X, Y)` and the premises of its rules in ProbLog's language."""
    blanks = {name: ", ".join("_" * len(kinds)) for name, kinds in program.signatures.items()}
    # ProbLog knows only predicates with a clause.
    lines = [f"{name}({blank}) :- fail." for name, blank in blanks.items()]
    lines.append(f"denied_{DOUBTED}(_) :- fail.")
    lines += [f"{chance}::{name}({', '.join(row)})." for (name, row), chance in world.facts.items()]
    lines += [f"{1 - chance}::denied_{DOUBTED}({name})." for name, chance in world.denials.items()]
    for number, (premise, conclusion, chance) in enumerate(world.entailments):
        lines.append(f"{chance}::entails({number}).")
        lines.append(f"{_problog(conclusion)} :- {_problog(premise)}, entails({number}).")
    for rule in program.rules:
        ordered = sorted(rule.premise, key=lambda item: isinstance(item, Order) or item.negated)
        body, names = ", ".join(map(_problog, ordered)), variables_of(rule.premise)
        lines.append(f"{_problog(rule.head)} :- {body}.")
        # The denials of a statement belong to what its rule needs, too.
        lines.append(f"{rule.name}({', '.join(names)}) :- {body}.")
        lines.append(f"query({rule.name}({', '.join('_' * len(names))})).")
    lines += [f"goal(X, Y) :- {part.strip()}." for part in goal.split(";")]
    lines.append("query(goal(_, _)).")
    lines += [f"query({name}({blanks[name]}))." for name in derived(program)]
    return "\n".join(lines) + "\n"


def _problog(item: Item) -> str:
    if isinstance(item, Order):
        return f"{item.left} {item.sign} {item.right}"
    terms = ", ".join(term if isinstance(term, str) else str(term.value) for term in item.terms)
    if item.negated and item.predicate == DOUBTED:
        return f"denied_{DOUBTED}({terms})"
    return f"{NEGATION if item.negated else ''}{item.predicate}({terms})"


def derived(program: DrawnProgram) -> list[str]:
    """The predicates of the conclusions."""
    return list(dict.fromkeys(rule.head.predicate for rule in program.rules))


def drawn_goal(rng: random.Random, program: DrawnProgram) -> str:
    """A goal over X and Y with a negation and sometimes a disjunction, which Hapax and ProbLog write alike."""
    arities = {name: len(program.signatures[name]) for name in (*PROBABLE, *derived(program))}
    pairs = [name for name, arity in arities.items() if arity == 2]
    ways = []
    for _ in range(rng.randint(1, 2)):
        negated, first = rng.choice(list(arities)), rng.choice(pairs)
        ways.append(f"{first}(X, Y), \\+ {negated}({', '.join(rng.choices('XY', k=arities[negated]))})")
    return " ; ".join(ways)


def by_problog(text: str) -> dict[str, Chances]:
    """The probabilities of all queries of a ProbLog program, by predicate and arguments."""
    from problog import get_evaluatable
    from problog.program import PrologString

    found: dict[str, Chances] = {}
    for term, chance in get_evaluatable("sdd").create_from(PrologString(text)).evaluate().items():
        if chance > 0:
            found.setdefault(term.functor, {})[tuple(map(str, term.args))] = chance
    return found


def compare_chances(seed: str, found: Compared) -> None:
    """Draw a program and compare its probabilities with those of ProbLog."""
    rng = random.Random(seed)  # noqa: S311  # programs, not secrets
    program, library = accepted(lambda: Drawing(rng, probable=True), found)
    world, goal = UncertainWorld.drawn(rng), drawn_goal(rng, program)
    text = problog_text(program, world, goal)
    right = by_problog(text)
    with hapax.KnowledgeBase() as kb:
        world.store(kb)
        rules = hapax.with_entailments(library, kb, LEAST_CHAIN)
        goals = {name: f"{name}({', '.join('AB'[: len(program.signatures[name])])})" for name in derived(program)}
        for name, asked in (goals | {"goal": goal}).items():
            # Each goal starts a Prolog: only half of them are asked three times.
            for method in ("exact", "bounds", "best")[: rng.choice((1, 3))]:
                options = hapax.ProbabilityOptions(method=method, proofs=3)  # type: ignore[arg-type]
                answers = hapax.query(asked, rules, kb, options=hapax.QueryOptions(probability=options))
                chances = zip(answers.rows, answers.probabilities or (), strict=True)
                got = {tuple(map(str, row[:-1])): (chance.lower, chance.upper) for row, chance in chances}
                found.counts[f"answers, {method}"] += len(got)
                for fault in _faults(method, got, right.get(name, {})):
                    found.differences.append(f"seed {seed}, {method}, {asked}: {fault}\n{text}")
        for fault in _statement_faults(kb, rules, program, right, found):
            found.differences.append(f"seed {seed}, derive: {fault}\n{text}")


def _faults(method: str, got: Mapping[Row, tuple[float, float]], right: Chances) -> Iterator[str]:
    """Answers that are missing, too many, or of another probability than ProbLog's."""
    for row in got if method == "best" else dict.fromkeys((*got, *right)):
        (lower, upper), value = got.get(row, (0.0, 0.0)), right.get(row, 0.0)
        if not lower - TOLERANCE <= value <= (lower if method == "exact" else upper) + TOLERANCE:
            yield f"{row} has {lower!r} to {upper!r}, ProbLog has {value!r}"


def _statement_faults(
    kb: hapax.KnowledgeBase,
    rules: hapax.Library,
    program: DrawnProgram,
    right: Mapping[str, Chances],
    found: Compared,
) -> Iterator[str]:
    """Statements of `derive` with another probability than ProbLog gives to the premise of their rule."""
    variables = {rule.name: variables_of(rule.premise) for rule in program.rules}
    derivation = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions(method="exact"))
    for statement, chance in zip(derivation.statements, derivation.probabilities, strict=True):
        record = statement.record
        if record.rule in variables:  # not an entailment
            values = dict(record.substitution)
            row = tuple(str(values[name]) for name in variables[record.rule])
            value = right.get(record.rule, {}).get(row, 0.0)
            found.counts["statements"] += 1
            if abs(chance.lower - value) > TOLERANCE:
                yield f"{record.rule} {row} has {chance.lower!r}, ProbLog has {value!r}"


if __name__ == "__main__":
    raise SystemExit(compare_drawn(__doc__, 200, compare_chances))
