"""Options of a goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hapax.engine.probability.probability_options import ProbabilityOptions
from hapax.engine.prolog.limits import QueryLimits
from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.engine.search.settings import SearchSettings


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
