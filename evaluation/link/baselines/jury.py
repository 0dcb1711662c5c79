"""Choice of the judge of an experiment's statements: a named critic, else people's votes, else known facts.

Known facts are the simulated world's own for statements of a simulated model, and the embedded model's atlas for all
others; predicates and types outside the atlas are not judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hapax.engine.inference.known_facts import KnownFacts
from hapax.engine.judgements import Judgements
from hapax.engine.search.score_maps import short_model_name
from hapax.evaluation.link.judging import GroundTruth, Judge, TruthJudge, VoteJudge, critic_truth
from hapax.grammar.rules import Library
from hapax.kb.records import StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.budget import BudgetReached
from hapax.llm_oracle.calls import JournaledCritic
from hapax.llm_oracle.protocols import Generator
from hapax.llm_oracle.simulated import SimulatedModel


@dataclass
class Jury:
    """Chooses judges. `budget`: the budget that stopped the critic, if one did."""

    kb: KnowledgeBase
    library: Library
    critic: JournaledCritic | None = None
    budget: BudgetReached | None = field(default=None, init=False)

    def judge(self, statements: Sequence[StatementRecord], author: Generator, searched: bool) -> Judge:
        """Choose the judge of statements. `author`: who proposed their values; `searched`: a search derived them."""
        if self.critic is not None:
            truth, reached = critic_truth(statements, self.library, self.critic)
            self.budget = self.budget or reached
            name = f"the critic {short_model_name(self.critic.identity.title)}"
        # A vote on one statement is enough: those without votes are then unknown, never judged by somebody else.
        elif any(map(self._votes.knows, statements)):
            return self._votes
        elif isinstance(author, SimulatedModel):
            world = author.world
            name, truth = f"the simulated world {world.seed}", GroundTruth(world.holds, world.is_a)
        else:
            name, truth = "the atlas", self._atlas
        return TruthJudge(self.library, truth, self._facts, name, searched)

    @cached_property
    def _votes(self) -> VoteJudge:
        return VoteJudge(Judgements.stored(self.kb))

    @cached_property
    def _facts(self) -> KnownFacts:
        return KnownFacts(self.kb, self.library)

    @cached_property
    def _atlas(self) -> GroundTruth:
        from hapax.llm_oracle.embedded.atlas import load_atlas

        atlas = load_atlas()
        return GroundTruth(atlas.truth, atlas.type_truth)
