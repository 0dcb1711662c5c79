"""Proofs of statements and atoms: trees of goals, each justified by a fact, a rule, arithmetic, a failed search or a
hypothesis.

As JSON a proof is a list of steps, the root first, that name their premises by index: a subtree that is used twice is
written once, and a proof of any depth stays flat. Step: {"goal", "by", "rule"?, "fact"?, "premises"?}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from graphlib import TopologicalSorter
from typing import Any, TypeVar

from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import is_exception
from hapax.grammar.terms import (
    Arithmetic,
    Atom,
    BodyLiteral,
    Comparison,
    Constant,
    Expression,
    Literal,
    Value,
    Variable,
)
from hapax.kb.exchange.values import cut_decimal, encode_decimal


class By(StrEnum):
    """The justification of a goal."""

    FACT = "fact"
    """A model proposed it and the gates accepted it."""
    GIVEN = "given"
    """The user or a rule file states it."""
    RULE = "rule"
    DECLARATION = "declaration"
    """A property that a rule file declares, such as `symmetric borders/2`."""
    COMPUTED = "computed"
    NEGATION = "negation"
    """The atom was not provable (closed world)."""
    DENIAL = "denial"
    """A critic said a sure no to the atom of an open predicate."""
    ASSUMPTION = "assumption"
    """A hypothesis of the statement, or an atom given with `--assume`."""


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A goal with its justification. Compare proofs by `to_json`: `==` on a deep proof would overrun Python's stack."""

    goal: BodyLiteral
    by: By
    rule: str | None = None
    children: tuple[Proof, ...] = ()
    fact_id: str | None = None
    left_out: int = 0
    """Further rows of an aggregate's group, which a proof that is only shown does not list."""

    def to_json(self) -> dict[str, Any]:
        parts = self.parts()
        # By identity: equal subtrees are one object, and `==` would compare deep trees recursively.
        numbers = {id(proof): number for number, proof in enumerate(parts)}
        steps: list[dict[str, Any]] = []
        for proof in parts:
            step: dict[str, Any] = {"goal": _goal_json(proof.goal), "by": proof.by.value}
            if proof.rule is not None:
                step["rule"] = proof.rule
            if proof.fact_id is not None:
                step["fact"] = proof.fact_id
            if proof.children:
                step["premises"] = [numbers[id(child)] for child in proof.children]
            steps.append(step)
        return {"steps": steps}

    def parts(self) -> list[Proof]:
        """All subtrees, each once, in preorder; the root comes first."""
        seen: dict[int, Proof] = {}
        waiting = [self]
        while waiting:
            proof = waiting.pop()
            if id(proof) not in seen:
                seen[id(proof)] = proof
                # The first premise must be on top of the stack.
                waiting.extend(reversed(proof.children))
        return list(seen.values())

    def fact_ids(self) -> tuple[str, ...]:
        """Ids of the facts that the proof uses, each once."""
        return tuple(dict.fromkeys(proof.fact_id for proof in self.parts() if proof.fact_id))


def proof_from_json(tree: Mapping[str, Any]) -> Proof:
    """Read a proof that `to_json` wrote. Raises HapaxError if it is malformed."""
    try:
        return _from_steps(tree["steps"])
    # A knowledge base from elsewhere may contain any JSON here.
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as fault:
        raise HapaxError(f"A stored proof cannot be read ({fault!r}). Derive its statement again.") from None


def _from_steps(steps: Sequence[Mapping[str, Any]]) -> Proof:
    done: dict[int, Proof] = {}
    # Premises come before the steps that need them; a step that is its own premise is an error of the sorter.
    for number in TopologicalSorter({at: step.get("premises", ()) for at, step in enumerate(steps)}).static_order():
        step = steps[number]
        children = tuple(map(done.__getitem__, step.get("premises", ())))
        done[number] = Proof(_goal_from(step["goal"]), By(step["by"]), step.get("rule"), children, step.get("fact"))
    return done[0]


def proof_text(proof: Proof, verbalise: Callable[[BodyLiteral], str] = str) -> str:
    """The proof as indented lines; `verbalise` writes a goal. A subtree that was shown is not shown again."""
    lines: list[str] = []
    shown: set[int] = set()
    waiting = [(proof, 0)]
    while waiting:
        part, depth = waiting.pop()
        again = id(part) in shown and bool(part.children)
        lines.append(indented(depth, f"{verbalise(part.goal)}  [{'shown above' if again else reason(part)}]"))
        if not again:
            shown.add(id(part))
            # Reversed, because the last one that is pushed is the first one that is shown.
            waiting.extend((child, depth + 1) for child in reversed(part.children))
    return "\n".join(lines)


def reason(proof: Proof) -> str:
    """The justification in a few words, such as `by rule allergy`."""
    atom = proof.goal.atom if isinstance(proof.goal, Literal) else proof.goal
    return {
        By.FACT: "fact",
        By.GIVEN: "given",
        By.RULE: f"by rule {proof.rule}",
        By.DECLARATION: f"by declaration {proof.rule}",
        By.COMPUTED: "computed",
        By.NEGATION: "none was provable" if is_exception(atom) else f"{atom} was not provable",
        By.DENIAL: f"a critic denied {atom}",
        By.ASSUMPTION: "assumed",
    }[proof.by]


# --- JSON -----------------------------------------------------------------------------------------------------------


def _goal_json(goal: BodyLiteral) -> dict[str, Any]:
    if isinstance(goal, Comparison):
        return {"operator": goal.operator, "left": _expression_json(goal.left), "right": _expression_json(goal.right)}
    arguments = [_expression_json(term) for term in goal.atom.arguments]
    written: dict[str, Any] = {"predicate": goal.atom.predicate, "arguments": arguments}
    return {**written, "negated": True} if goal.negated else written


def _goal_from(written: Mapping[str, Any]) -> BodyLiteral:
    if "operator" in written:
        return Comparison(written["operator"], _expression_from(written["left"]), _expression_from(written["right"]))
    terms = tuple(_term_from(cell) for cell in written["arguments"])
    return Literal(Atom(written["predicate"], terms), bool(written.get("negated", False)))


def _expression_json(expression: Expression) -> Any:
    """A text or whole number as itself; a decimal, variable or calculation as an object that names its kind."""
    if isinstance(expression, Variable):
        return {"variable": expression.name, "type": expression.data_type}
    if isinstance(expression, Constant):
        return encode_decimal(expression.value) if isinstance(expression.value, Decimal) else expression.value
    operands = list(map(_expression_json, expression.operands))
    # The field names of two operands are older than functions.
    parts = dict(zip(("left", "right"), operands, strict=True)) if len(operands) == 2 else {"operands": operands}
    return {"arithmetic": expression.operator, **parts}


def _expression_from(written: Any) -> Expression:
    if isinstance(written, Mapping) and "arithmetic" in written:
        operands = written["operands"] if "operands" in written else (written["left"], written["right"])
        return Arithmetic(str(written["arithmetic"]), tuple(map(_expression_from, operands)))
    return _term_from(written)


def _term_from(written: Any) -> Variable | Constant:
    if isinstance(written, Mapping):
        if "variable" in written:
            return Variable(written["variable"], written["type"])
        if "exact" in written:
            return Constant(cut_decimal(written["decimal"], written["exact"]))
        return Constant(Decimal(written["decimal"]))
    value: Value = written
    if not isinstance(value, str | int | Decimal):
        raise TypeError("a term is a text, a number, a variable or a decimal")
    return Constant(value)


# --- explanations as trees of lines -----------------------------------------------------------------------------------


Record = TypeVar("Record")

SHOWN = 10
"""Lines of one kind below a line; how many more there are is said."""

_INDENTED = 20
"""Depth up to which lines are indented; deeper ones begin with it as a number."""


@dataclass(frozen=True, slots=True, eq=False)
class Story:
    """A line of an explanation with the lines that support it. `kind` is for programs: goal, call, gate ...

    `more`: the number of lines of this kind that the line stands for, where not all are shown. `words` and `by`: what
    the line says to a reader without atoms and ids, and why it holds; empty where `text` alone says it.
    """

    text: str
    kind: str
    children: tuple[Story, ...] = ()
    more: int = 0
    words: str = ""
    by: str = ""

    def lines(self) -> Iterator[tuple[int, Story]]:
        """Every line with its depth, from the top."""
        # Not recursive: a proof may be deeper than Python's stack.
        waiting = [(0, self)]
        while waiting:
            depth, part = waiting.pop()
            yield depth, part
            # Reversed, because the last one that is pushed is the first one that is shown.
            waiting.extend((depth + 1, child) for child in reversed(part.children))

    def to_json(self) -> list[dict[str, Any]]:
        """A flat list of the lines with their depths, which can be read without recursion."""
        return [
            {"depth": depth, "kind": part.kind, "text": part.text} | ({"more": part.more} if part.more else {})
            for depth, part in self.lines()
        ]


def first_of(records: Sequence[Record], story_of: Callable[[Record], Story], kind: str) -> Iterator[Story]:
    """The stories of the first records, and the number of the others."""
    yield from map(story_of, records[:SHOWN])
    if len(records) > SHOWN:
        yield Story(f"and {len(records) - SHOWN:,} more", kind, more=len(records) - SHOWN)


def story_text(story: Story) -> str:
    """The story as indented lines."""
    return "\n".join(indented(depth, part.text) for depth, part in story.lines())


def indented(depth: int, text: str) -> str:
    """A line of a tree: indented, or with its depth as a number where it is deep."""
    return "  " * depth + text if depth <= _INDENTED else f"{'  ' * _INDENTED}[depth {depth:,}] {text}"
