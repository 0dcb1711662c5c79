"""Options of a goal, and of the probabilities of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, get_args
from typing import Literal as OneOf

from hapax.engine.prolog.limits import QueryLimits
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.options import Option, check_ranges

if TYPE_CHECKING:
    from hapax.engine.search.settings import SearchSettings

Method: TypeAlias = OneOf["auto", "exact", "bounds", "best"]

MOST_NODES = 50_000
"""Nodes of the diagrams of a node's formulas together, beyond which the exact probability is given up."""


@checked
@dataclass(frozen=True)
class ProbabilityOptions:
    """The way in which probabilities are computed, from those of the facts over all proofs.

    `method`: `bounds` are two numbers between which the exact probability lies.
    """

    method: Annotated[
        Method,
        Option(
            "By all proofs, by bounds, or by the best proof; auto: exact, else bounds.",
        ),
    ] = "auto"
    proofs: Annotated[int, Option("Best proofs that bounds count, and that `why` lists.", least=1)] = 20
    nodes: Annotated[
        int, Option("Size of a decision diagram up to which a probability is computed exactly.", least=1)
    ] = MOST_NODES
    at_least: Annotated[
        float,
        Option("Leave out what is less probable, by the lower bound.", metavariable="P", least=0, most=1),
    ] = 0.0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise HapaxError(f"There is no method {self.method!r}. Choose {', '.join(get_args(Method))}.")
        check_ranges(self)


@checked
@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of a goal. `limits`: of its time, memory and answers.

    `probability`: answers that hold in some world come with their probabilities, the most probable first, as
    `hapax.ProbabilityOptions()` says. `settings`: questions, thresholds and prompt profile where models are asked.
    """

    limits: QueryLimits | None = None
    probability: ProbabilityOptions | None = None
    settings: SearchSettings | None = None
