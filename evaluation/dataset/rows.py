"""The rows of a selection, read and made chunk by chunk, so that a knowledge base of any size fits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from engine.beams import ranked_text
from engine.proof import By, Proof, proof_from_json, proof_text
from engine.stored import models_of
from evaluation.dataset.columns import Row
from evaluation.dataset.frequency import rarest_word
from evaluation.dataset.selection import Selection, chunks
from evaluation.probing.forms import ConclusionForms
from evaluation.probing.items import ProbeItem, kb_library, probe_item, rule_forms
from evaluation.probing.templates import TEMPLATES
from grammar.defaults import default_principle
from grammar.rules import Library, Polarity, Rule
from grammar.terms import Atom, BodyLiteral, Constant, Literal, Value
from grammar.verbalize import atom_text, literal_text
from kb.records import Assessment, FactRecord, RunRecord, StatementRecord
from kb.store import KnowledgeBase
from llm_oracle.calls import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD
from llm_oracle.protocols import LogLikelihood

ENTAILS, CONTRADICTS = "entailment", "contradiction"

RANKER = "ranker"
"""The role of a score by which a search ranked; an evaluator's has the role of that name."""

_MEASURE = "log_likelihood"


@dataclass(frozen=True, slots=True)
class Entry:
    """One statement of the dataset: its row, the 13 questions about it, and what stands behind it."""

    record: StatementRecord
    rule: Rule
    row: Row
    probes: tuple[Row, ...]
    fact_ids: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A knowledge base and what is taken from it."""

    kb: KnowledgeBase
    selection: Selection

    @cached_property
    def library(self) -> Library:
        """The rules of the chosen statements with the predicates of the knowledge base."""
        return kb_library(self.kb, {place.rule for place in self.selection.places})

    @cached_property
    def forms(self) -> dict[str, tuple[str, Polarity, ConclusionForms]]:
        """Domain, polarity and conclusion by rule."""
        return rule_forms(self.kb, {place.rule for place in self.selection.places}, None)

    @cached_property
    def runs(self) -> dict[str, RunRecord]:
        """The runs that derived the chosen statements, in the order they were started; unknown ones are left out."""
        wanted = {place.run_id for place in self.selection.places}
        runs = sorted(self.kb.runs(), key=lambda run: (run.started, run.id))
        return {run.id: run for run in runs if run.id in wanted}

    @cached_property
    def _models(self) -> dict[str, dict[str, str]]:
        return {name: run_models(run) for name, run in self.runs.items()}

    def entries(self) -> Iterator[Entry]:
        """The chosen statements, in order."""
        for part in chunks(self.selection.places):
            records = self.kb.statements_at(part)
            proofs = [proof_from_json(record.proof) for record in records]
            facts = self.kb.facts_by_id(one for proof in proofs for one in proof.fact_ids())
            for record, proof, told in zip(records, proofs, self._scores(records), strict=True):
                used = [facts[one] for one in proof.fact_ids() if one in facts]
                yield self._entry(record, proof, used, told)

    def facts(self, fact_ids: Iterable[str]) -> Iterator[Row]:
        """The rows of the facts, in the order of their identities."""
        wanted = sorted(set(fact_ids))
        for part in chunks(wanted):
            held = self.kb.facts_by_id(part)
            yield from (self._fact_row(held[one]) for one in part if one in held)

    def annotations(self) -> Iterator[Row]:
        """Votes on the chosen statements. Voters are numbered by the order of their names, which stay at home."""
        chosen = {place.id for place in self.selection.places}
        votes = [vote for vote in self.kb.votes() if vote.statement_id in chosen]
        numbers = {name: number for number, name in enumerate(sorted({vote.voter for vote in votes}), 1)}
        for vote in sorted(votes, key=lambda one: (one.statement_id, one.question, one.voter)):
            yield {
                "statement": vote.statement_id,
                "question": vote.question,
                "annotator": numbers[vote.voter],
                "answer": vote.answer,
            }

    def _entry(self, record: StatementRecord, proof: Proof, used: Sequence[FactRecord], scores: Sequence[Row]) -> Entry:
        rule, judgements = self.library.rule(record.rule), self.selection.judgements
        domain, polarity, forms = self.forms[record.rule]
        entailed = record.id not in judgements.verdicts.contradicted
        item = probe_item(record, domain, polarity, forms, entailed=entailed)
        probabilities = [one.probability for one in used if one.probability is not None]
        models = self._models.get(record.run_id, {})
        row = {
            "id": record.id,
            "distribution": record.distribution.value,
            "in_both": record.id in self.selection.in_both,
            "rule": record.rule,
            "domain": domain,
            "principle": (rule.principle or default_principle(polarity)).value,
            "polarity": polarity.value,
            "premise": record.premise,
            "conclusion": record.conclusion,
            "label": ENTAILS if entailed else CONTRADICTS,
            "label_source": "votes" if record.id in judgements.judged else "rule",
            "substitution": _bindings(rule, record),
            "log_likelihood": _finite(record.log_likelihood),
            "log_likelihoods": scores,
            "facts": [_fact_cell(one, self.library) for one in used],
            "least_probability": min(probabilities, default=None),
            "rarest_word_zipf": rarest_word(_searched(rule, record)),
            "proof": record.proof,
            "proof_text": proof_text(proof, self._teller(rule)),
            "sources": sorted({part.by.value for part in proof.parts() if part.by is not By.RULE}),
            "run": record.run_id,
            "knowledge_model": models.get(KNOWLEDGE),
            "critic_model": models.get(CRITIC),
            "likelihood_model": models.get(LIKELIHOOD),
            "evaluator_model": models.get(EVALUATOR),
        }
        return Entry(record, rule, row, tuple(_probe_rows(item)), proof.fact_ids())

    def _scores(self, records: Sequence[StatementRecord]) -> list[list[Row]]:
        """What is stored of each statement's log-likelihood: the ranker's, then the evaluators' by name."""
        ranked = [self._ranked(record) for record in records]
        texts = [*(record.text for record in records), *ranked]
        known = {model: self.kb.assessments(texts, _MEASURE, model) for model in self.kb.assessors(_MEASURE)}
        found = []
        for record, text in zip(records, ranked, strict=True):
            ranker = self._models.get(record.run_id, {}).get(LIKELIHOOD, "")
            asked = [(RANKER, ranker, text), *((EVALUATOR, model, record.text) for model in known)]
            told = ((role, known.get(model, {}).get(words)) for role, model, words in asked)
            found.append([_score_cell(role, score) for role, score in told if score is not None])
        return found

    def _ranked(self, record: StatementRecord) -> str:
        """The text by which the search ranked the finished statement."""
        bound = {name: Constant(value) for name, value in record.substitution}
        run = self.runs.get(record.run_id)
        compat = run is not None and bool(run.settings.get("compat"))
        return ranked_text(self.library.rule(record.rule), self.library, bound, compat)

    def _teller(self, rule: Rule) -> Any:
        def tell(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library, {}, rule.generic) if isinstance(goal, Literal) else str(goal)

        return tell

    def _fact_row(self, fact: FactRecord) -> Row:
        return {
            "id": fact.id,
            "predicate": fact.predicate,
            "arguments": [str(value) for value in fact.arguments],
            "types": list(fact.types),
            "text": fact_text(fact, self.library),
            "source": fact.source.value,
            "probability": fact.probability,
            "run": fact.run_id,
        }


def _probe_rows(item: ProbeItem) -> Iterator[Row]:
    """The 13 questions about a statement, with the right answer to each."""
    for template in TEMPLATES:
        yield {
            "id": f"{item.statement_id}-{item.distribution.value}-{template.number}",
            "statement": item.statement_id,
            "distribution": item.distribution.value,
            "rule": item.rule,
            "domain": item.domain,
            "template": template.number,
            "question": template.question(item),
            "answers": [template.pair.word(True), template.pair.word(False)],
            "label": 0 if template.label(item) else 1,
        }


def run_models(run: RunRecord) -> dict[str, str]:
    """The run's models by role, without a critic that was switched off; of an import the evaluator."""
    named = models_of(run)
    if run.settings.get("critic") is False:
        named.pop(CRITIC, None)
    if not named and isinstance(run.settings.get("evaluator"), str):
        named[EVALUATOR] = run.settings["evaluator"]
    return named


def fact_text(fact: FactRecord, library: Library) -> str:
    """The fact in the words of its predicate."""
    return atom_text(Atom(fact.predicate, tuple(map(Constant, fact.arguments))), library)


def _fact_cell(fact: FactRecord, library: Library) -> Row:
    return {
        "id": fact.id,
        "fact": fact_text(fact, library),
        "source": fact.source.value,
        "probability": fact.probability,
    }


def _score_cell(role: str, score: Assessment) -> Row:
    mean = LogLikelihood(score.score, score.token_count).per_token if score.token_count else None
    return {"role": role, "model": score.model, "per_token": _finite(mean), "tokens": score.token_count}


def _bindings(rule: Rule, record: StatementRecord) -> list[Row]:
    types = {variable.name: variable.data_type for variable in rule.variables}
    return [
        {"variable": name, "data_type": types.get(name), "value": str(value), "kind": _kind(value)}
        for name, value in record.substitution
    ]


def _kind(value: Value) -> str:
    if isinstance(value, str):
        return "text"
    return "decimal" if isinstance(value, Decimal) else "integer"


def _searched(rule: Rule, record: StatementRecord) -> Iterator[str]:
    return (str(value) for name, value in record.substitution if name not in rule.generic)


def _finite(number: float | None) -> float | None:
    """JSON has no infinity."""
    return number if number is not None and math.isfinite(number) else None
