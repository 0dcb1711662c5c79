"""Records of what is known about facts and statements from outside: votes, labels, calibrations, promises and draws."""

from __future__ import annotations

from dataclasses import dataclass

from hapax.grammar.terms import Value
from hapax.kb.records import content_id, fact_id
from hapax.kb.rows import Json, OnConflict, Score, TableSchema


@dataclass(frozen=True, slots=True)
class VoteRecord:
    """An annotator's answer to a question about a statement. A second answer of the same voter replaces it.

    In the predicate audit, questions are about facts, and `statement_id` is the id of the fact.
    """

    statement_id: str
    question: str
    voter: str
    answer: str
    comment: str = ""

    @property
    def id(self) -> str:
        return content_id("vote", self.statement_id, self.question, self.voter)


VOTES = TableSchema.of("votes", VoteRecord, disagreement="answer", indexes=("statement_id",))


@dataclass(frozen=True, slots=True)
class FactLabel:
    """The truth of a fact by a source: a reference, the atlas, a file, or given facts. Votes are stored as votes."""

    predicate: str
    arguments: tuple[Value, ...]
    is_true: bool
    source: str

    @property
    def fact_id(self) -> str:
        return fact_id(self.predicate, self.arguments)

    @property
    def id(self) -> str:
        return content_id("label", self.predicate, list(self.arguments), self.source)


LABELS = TableSchema.of(
    "fact_labels", FactLabel, also=("fact_id",), disagreement="is_true", indexes=("fact_id",), is_late=True
)


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """The worth of a critic's scores, learned from labelled facts. `critic`: NAME@REVISION.

    `method`: isotonic, logistic, stacked, contextual or raw. `parameters`: the map and its shifts by predicate;
    `sample`: ids of the labelled facts from which it was learned; `metrics`: figures on labels of held-out keys;
    `sources`: of labels.
    """

    critic: str
    method: str
    parameters: Json
    sample: tuple[str, ...]
    sources: tuple[str, ...]
    metrics: Json
    created: str

    @property
    def checksum(self) -> str:
        """Changes whenever a calibrated score may change."""
        return content_id("calibration", self.critic, self.method, self.parameters)


CALIBRATIONS = TableSchema.of(
    "calibrations", CalibrationRecord, ("critic",), also=("checksum",), preferred=("created",), is_late=True
)


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """A promise on the accepted facts of a group, or the reason why there is none.

    `basis`: identities on which it rests, by name: critic, wording, calibration; a change of any of them ends it.
    `threshold`: None if nothing is promised. `labels`, `false`, `bound`, `accepted`, `pool` as in `ThresholdChoice`.
    `sample`: hash of the labelled facts with their scores and labels. `shift`: AUC of telling labelled from other facts
    by their scores, 0.5 where they are alike. `after_run`: id of the last run that the knowledge base had when the
    promise was tested.
    """

    fact_group: str
    precision: float
    confidence: float
    method: str
    basis: Json
    threshold: float | None
    labels: int
    false: int
    bound: float
    accepted: int
    pool: int
    sample: str
    shift: float | None
    reason: str
    created: str
    run_id: str = ""
    after_run: str | None = None

    @property
    def id(self) -> str:
        return content_id(
            "certificate",
            self.fact_group,
            self.precision,
            self.confidence,
            self.method,
            self.basis,
            self.sample,
            self.run_id,
        )


CERTIFICATES = TableSchema.of(
    "certificates", CertificateRecord, preferred=("created", "after_run"), indexes=("run_id",), is_late=True
)


@dataclass(frozen=True, slots=True)
class JudgingDraw:
    """A draw of facts or statements for people to judge, in which some are more probable than others.

    `kind`: of sheet, `predicates` or `soundness`. `salt`: makes the random numbers of its items. `settings`: how the
    weights were made. `reach`: an item was given out if its random number is below `reach` times its weight.
    """

    kind: str
    salt: str
    settings: Json
    reach: float
    created: str


JUDGING_DRAWS = TableSchema.of("judging_draws", JudgingDraw, ("kind",), preferred=("created",), is_late=True)


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """A fact or statement of the draw with this salt: its score, its weight, and its random number between 0 and 1."""

    salt: str
    item_id: str
    score: Score
    weight: float
    draw: float


DRAWN_ITEMS = TableSchema.of("drawn_items", DrawnItem, ("salt", "item_id"), on_conflict=OnConflict.KEEP, is_late=True)
