"""Who judges an experiment's statements: people where they voted, a critic where one is named, else what is known.

What is known is the simulated world's own truth for statements of a simulated model, and the embedded model's atlas
for all others: predicates and types outside it have no say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from engine.known import KnownFacts
from engine.oracle import model_name, short_model_name
from evaluation.judging import GroundTruth, Judge, TruthJudge, VoteJudge, critic_truth
from grammar.rules import Library
from kb.records import StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import BudgetReached, JournaledCritic
from llm_oracle.protocols import Generator
from llm_oracle.simulated import SimulatedModel


@dataclass
class Jury:
    """Finds the judge of statements. `budget`: what stopped the critic, if anything did."""

    kb: KnowledgeBase
    library: Library
    critic: JournaledCritic | None = None
    budget: BudgetReached | None = field(default=None, init=False)

    def judge(self, statements: Sequence[StatementRecord], author: Generator, searched: bool) -> Judge:
        """Who judges these statements. `author`: who proposed their values; `searched`: whether they were derived."""
        if self.critic is not None:
            truth, reached = critic_truth(statements, self.library, self.critic)
            self.budget = self.budget or reached
            name = f"the critic {short_model_name(model_name(self.critic))}"
        elif any(map(self._votes.knows, statements)):
            return self._votes
        else:
            name, truth = self._known(author)
        return TruthJudge(self.library, truth, self._facts, name, searched)

    def _known(self, author: Generator) -> tuple[str, GroundTruth]:
        if isinstance(author, SimulatedModel):
            world = author.world
            return f"the simulated world {world.seed}", GroundTruth(world.holds, world.is_a)
        return "the atlas", self._atlas

    @cached_property
    def _votes(self) -> VoteJudge:
        return VoteJudge(self.kb.votes())

    @cached_property
    def _facts(self) -> KnownFacts:
        return KnownFacts(self.kb, self.library)

    @cached_property
    def _atlas(self) -> GroundTruth:
        from llm_oracle.embedded.atlas import load_atlas

        atlas = load_atlas()
        return GroundTruth(atlas.truth, atlas.type_truth)
