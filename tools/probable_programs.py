"""Random rule files with probabilities, by Hapax and by ProbLog 2: `python -m tools.probable_programs --programs 200`.

A program has up to three layers of rules over uncertain facts: joins, recursion, negation of facts, of a `closed`
predicate and of conclusions, of an open predicate whose atoms a critic denied, and entailments between predicates. Its
derived predicates, a goal with a negation and a disjunction, and the statements of `derive` have to have the
probabilities of ProbLog (Fierens et al. 2015), which gets the program in its own language, written from the drawn rules
and not from what Hapax read: exact ones within 1e-9, bounds around them, best proofs not above them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import hapax
from hapax.engine.entailment.graph import Edge, store_entailments
from hapax.grammar.terms import connected
from hapax.kb.records import DENIALS, DenialRecord, FactRecord, Source
from tools.drawn_programs import compare_drawn

NAMES = "abcd"
VARIABLES = "XYZ"
FACTS = {"edge": 2, "link": 2, "near": 2, "known": 2, "mark": 1, "shut": 1}
"""Predicates of facts with their numbers of arguments. `known` is closed, the others are given."""
DOUBTED = "doubted"
"""An open predicate, whose negation needs a denial."""
ENTAILED = (("edge", "link"), ("link", "near"), ("edge", "near"), ("mark", "shut"))
LEAST_CHAIN = 0.001
"""Least product of a chain of entailments: all that are drawn."""
TOLERANCE = 1e-9

Row = tuple[str, ...]
Chances = dict[Row, float]


class SignedCall(NamedTuple):
    """An atom of a premise, possibly negated."""

    predicate: str
    variables: str
    negated: bool = False

    def text(self, typed: bool) -> str:
        """The atom as a rule file writes it, or as ProbLog does."""
        names = ", ".join(f"Thing {name}" if typed else name for name in self.variables)
        predicate = f"denied_{self.predicate}" if not typed and self.negated_open else self.predicate
        sign = "" if not self.negated or (not typed and self.negated_open) else "not " if typed else "\\+ "
        return f"{sign}{predicate}({names})"

    @property
    def negated_open(self) -> bool:
        return self.negated and self.predicate == DOUBTED


class LayeredRule(NamedTuple):
    """A rule of a program."""

    name: str
    head: SignedCall
    premise: tuple[SignedCall, ...]

    @property
    def variables(self) -> str:
        return "".join(dict.fromkeys("".join(call.variables for call in self.premise if not call.negated)))


@dataclass
class ProbableProgram:
    """Rules, uncertain facts (1: given), denials and entailments, with their probabilities."""

    arities: dict[str, int] = field(default_factory=lambda: {**FACTS, DOUBTED: 1})
    rules: list[LayeredRule] = field(default_factory=list)
    facts: dict[tuple[str, Row], float] = field(default_factory=dict)
    denials: dict[str, float] = field(default_factory=dict)
    entailments: list[tuple[SignedCall, SignedCall, float]] = field(default_factory=list)

    @property
    def derived(self) -> list[str]:
        return [name for name in self.arities if name not in FACTS and name != DOUBTED]

    @property
    def text(self) -> str:
        """The program as a rule file."""
        lines = [f"given {name}({', '.join(['Thing'] * arity)})." for name, arity in FACTS.items() if name != "known"]
        lines += [
            'oracle known(Thing, Thing): "[1] knows [2]" / "[1] does not know [2]".',
            "closed known/2.",
            f'oracle {DOUBTED}(Thing): "[1] is doubted" / "[1] is not doubted".',
        ]
        for rule in self.rules:
            premise = " & ".join(call.text(typed=True) for call in rule.premise)
            lines.append(f"@name {rule.name}\n@generic none\n{premise} -> {rule.head.text(typed=True)}.")
        return "\n".join(lines) + "\n"

    def problog_text(self, goal: str) -> str:
        """The program with `goal(X, Y)` and the premises of its rules in ProbLog's language."""
        blanks = {name: ", ".join("_" * arity) for name, arity in self.arities.items()}
        # ProbLog knows only predicates with a clause.
        lines = [f"{name}({blank}) :- fail." for name, blank in blanks.items()]
        lines.append(f"denied_{DOUBTED}(_) :- fail.")
        lines += [f"{chance}::{name}({', '.join(row)})." for (name, row), chance in self.facts.items()]
        lines += [f"{1 - chance}::denied_{DOUBTED}({name})." for name, chance in self.denials.items()]
        for number, (premise, conclusion, chance) in enumerate(self.entailments):
            lines.append(f"{chance}::entails({number}).")
            lines.append(f"{conclusion.text(typed=False)} :- {premise.text(typed=False)}, entails({number}).")
        for rule in self.rules:
            body = ", ".join(call.text(typed=False) for call in rule.premise)
            lines.append(f"{rule.head.text(typed=False)} :- {body}.")
            # The denials of a statement belong to what its rule needs, too.
            lines.append(f"{rule.name}({', '.join(rule.variables)}) :- {body}.")
            lines.append(f"query({rule.name}({', '.join('_' * len(rule.variables))})).")
        lines += [f"goal(X, Y) :- {part.strip()}." for part in goal.split(";")]
        lines.append("query(goal(_, _)).")
        lines += [f"query({name}({blanks[name]}))." for name in self.derived]
        return "\n".join(lines) + "\n"


def drawn_program(rng: random.Random) -> ProbableProgram:
    """A program, drawn at random."""
    program = ProbableProgram()
    names = NAMES[: rng.randint(2, 4)]
    for _ in range(rng.randint(8, 16)):
        name = rng.choice([*FACTS, "edge", "link"])
        row = tuple(rng.choice(names) for _ in range(FACTS[name]))
        program.facts[name, row] = 1.0 if rng.random() < 0.15 else round(rng.uniform(0.05, 0.95), 3)
    program.denials = {name: round(rng.uniform(0.01, 0.3), 3) for name in rng.sample(NAMES, rng.randint(0, 3))}
    for premise, conclusion in ENTAILED:
        if rng.random() < 0.3:
            straight = "AB"[: FACTS[premise]]
            turned = straight if rng.random() < 0.7 else straight[::-1]
            pair = (SignedCall(premise, straight), SignedCall(conclusion, turned), round(rng.uniform(0.3, 0.95), 3))
            program.entailments.append(pair)
    usable = list(FACTS)
    for layer in range(1, rng.randint(2, 3) + 1):
        own = [f"p{layer}", f"q{layer}"][: rng.randint(1, 2)]
        program.arities |= {name: rng.choice((1, 2, 2)) for name in own}
        for name in own:
            for kind in [(), *[tuple(own)] * rng.randint(0, 1), *[()] * rng.randint(0, 1)]:
                program.rules.append(_drawn_rule(rng, program, name, usable, kind))
        usable += own * 2
    return program


def _drawn_rule(
    rng: random.Random, program: ProbableProgram, head: str, usable: Sequence[str], recursive: Sequence[str]
) -> LayeredRule:
    """A rule of a predicate, recursive through one of its own layer or not."""
    name = f"rule_{len(program.rules) + 1}"
    while True:
        predicates = rng.choices(usable, k=rng.randint(1, 2)) + rng.sample(list(recursive), min(1, len(recursive)))
        premise = [SignedCall(own, _some(rng, VARIABLES, program.arities[own])) for own in predicates]
        bound = sorted(set("".join(call.variables for call in premise)))
        if len(bound) < program.arities[head]:
            continue
        conclusion = SignedCall(head, "".join(rng.sample(bound, program.arities[head])))
        for _ in range(rng.choice((0, 1, 1))):
            negated = rng.choice([*usable, DOUBTED])
            premise.append(SignedCall(negated, _some(rng, bound, program.arities[negated]), negated=True))
        atoms = {call._replace(negated=False) for call in premise}
        joined = connected(premise, lambda call: call.variables, premise[0].variables)
        if conclusion not in atoms and len(atoms) == len(premise) == len(joined):
            return LayeredRule(name, conclusion, tuple(premise))


def _some(rng: random.Random, names: Sequence[str], count: int) -> str:
    return "".join(rng.choice(names) for _ in range(count))


def drawn_goal(rng: random.Random, program: ProbableProgram) -> str:
    """A goal over X and Y with a negation and sometimes a disjunction, which Hapax and ProbLog write alike."""
    pairs = [name for name, arity in program.arities.items() if arity == 2]
    ways = []
    for _ in range(rng.randint(1, 2)):
        negated = rng.choice([name for name in program.arities if name != DOUBTED])
        first, second = rng.choice(pairs), _some(rng, "XY", program.arities[negated])
        ways.append(f"{first}({', '.join('XY')}), \\+ {negated}({', '.join(second)})")
    return " ; ".join(ways)


# --- comparing ------------------------------------------------------------------------------------------------------


@dataclass
class ComparedChances:
    """The numbers of compared probabilities, and the differences, each with its program."""

    programs: int = 0
    exact: int = 0
    bounds: int = 0
    best: int = 0
    statements: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.programs} programs, {len(self.differences)} differences: {self.exact} exact probabilities of "
            f"answers and {self.statements} of statements, {self.bounds} bounds, {self.best} best proofs"
        )


def by_problog(text: str) -> dict[str, Chances]:
    """The probabilities of all queries of a ProbLog program, by predicate and arguments."""
    from problog import get_evaluatable
    from problog.program import PrologString

    found: dict[str, Chances] = {}
    for term, chance in get_evaluatable("sdd").create_from(PrologString(text)).evaluate().items():
        if chance > 0:
            found.setdefault(term.functor, {})[tuple(map(str, term.args))] = chance
    return found


def compare_chances(seed: str, found: ComparedChances) -> None:
    """Draw a program and compare its probabilities with those of ProbLog."""
    rng = random.Random(seed)  # noqa: S311  # programs, not secrets
    program = drawn_program(rng)
    goal = drawn_goal(rng, program)
    right = by_problog(program.problog_text(goal))
    found.programs += 1
    with hapax.KnowledgeBase() as kb:
        store_program(kb, program)
        rules = hapax.with_entailments(hapax.parse_rules(program.text), kb, LEAST_CHAIN)
        goals = {name: f"{name}({', '.join('AB'[: program.arities[name]])})" for name in program.derived}
        for name, text in (goals | {"goal": goal}).items():
            # Each goal starts a Prolog: only half of them are asked three times.
            for method in ("exact", "bounds", "best")[: rng.choice((1, 3))]:
                options = hapax.ProbabilityOptions(method=method, proofs=3)  # type: ignore[arg-type]
                answers = hapax.query(text, rules, kb, options=hapax.QueryOptions(probability=options))
                got = {tuple(map(str, row[:-1])): (chance.lower, chance.upper) for row, chance in _rows(answers)}
                expected = right.get(name, {})
                for fault in _faults(method, got, expected, found):
                    found.differences.append(f"seed {seed}, {method}, {text}: {fault}\n{program.problog_text(goal)}")
        for fault in _statement_faults(kb, rules, program.rules, right, found):
            found.differences.append(f"seed {seed}, derive: {fault}\n{program.problog_text(goal)}")


def _rows(answers: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    yield from zip(answers.rows, answers.probabilities, strict=True)


def store_program(kb: hapax.KnowledgeBase, program: ProbableProgram) -> None:
    """Store the facts, denials and entailments of a program."""
    records = []
    for (name, row), chance in program.facts.items():
        source = Source.GIVEN if chance == 1.0 else Source.MODEL
        records.append(FactRecord(name, row, ("Thing",) * len(row), source, chance))
    kb.add_facts(records)
    kb.add(DENIALS, (DenialRecord(DOUBTED, (name,), chance, None) for name, chance in program.denials.items()))
    edges = []
    for premise, conclusion, chance in program.entailments:
        edges.append(Edge.of(premise.text(typed=True), conclusion.text(typed=True), chance))
    store_entailments(kb, edges)


def _faults(
    method: str, got: Mapping[Row, tuple[float, float]], right: Chances, found: ComparedChances
) -> Iterator[str]:
    """Answers that are missing, too many, or of another probability than ProbLog's."""
    if method == "exact":
        found.exact += len(right)
        if set(got) != set(right):
            yield f"answers {sorted(got)}, ProbLog has {sorted(right)}"
    elif method == "bounds":
        found.bounds += len(got)
    else:
        found.best += len(got)
    for row, (lower, upper) in got.items():
        value = right.get(row, 0.0)
        if method == "exact" and abs(lower - value) > TOLERANCE:
            yield f"{row} has {lower!r}, ProbLog has {value!r}"
        if not lower - TOLERANCE <= value <= upper + TOLERANCE:
            yield f"{row} has {lower!r} to {upper!r}, ProbLog has {value!r}"
    if method == "bounds" and not set(right) <= set(got):
        yield f"no bounds for {sorted(set(right) - set(got))}"


def _statement_faults(
    kb: hapax.KnowledgeBase,
    rules: hapax.Library,
    drawn: Sequence[LayeredRule],
    right: Mapping[str, Chances],
    found: ComparedChances,
) -> Iterator[str]:
    """Statements of `derive` with another probability than ProbLog gives to the premise of their rule."""
    variables = {rule.name: rule.variables for rule in drawn}
    derivation = hapax.derive(rules, kb, probability=hapax.ProbabilityOptions(method="exact"))
    for statement, chance in zip(derivation.statements, derivation.probabilities, strict=True):
        record = statement.record
        if record.rule not in variables:  # an entailment
            continue
        found.statements += 1
        values = dict(record.substitution)
        row = tuple(str(values[name]) for name in variables[record.rule])
        value = right.get(record.rule, {}).get(row, 0.0)
        if abs(chance.lower - value) > TOLERANCE:
            yield f"{record.rule} {row} has {chance.lower!r}, ProbLog has {value!r}"


if __name__ == "__main__":
    compared = ComparedChances()
    raise SystemExit(compare_drawn(__doc__, 200, compared, lambda seed: compare_chances(seed, compared)))
