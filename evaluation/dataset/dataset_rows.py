"""Rows of the selected statements, made chunk by chunk, so that memory does not limit the size of a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

from hapax.engine.inference.proof import By, Proof, proof_from_json, proof_text
from hapax.engine.run_memory import circular_judge, identities_of, models_of
from hapax.evaluation.dataset.columns import CONTRADICTS, ENTAILS, Row, probe_rows
from hapax.evaluation.dataset.selection import JudgedChoice, SameText, Selection, chunks, records_of
from hapax.evaluation.link.probing_questions import ConclusionForms, probe_item, rule_forms
from hapax.evaluation.shared.stored_statements import stored_library
from hapax.grammar.parsing.attributes import Polarity, default_principle
from hapax.grammar.remedies import Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal
from hapax.grammar.writing.verbalize import atom_text, literal_text
from hapax.grammar.writing.words import counted
from hapax.kb.records import FactRecord, RunRecord, StatementRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity

LANGUAGE = "en"


def rarest_word(values: Iterable[str]) -> float | None:
    """Zipf frequency of the rarest word: log10 of its count per billion words, 0 for an unknown word.

    None if no value has a word that contains a letter.
    """
    from wordfreq.tokens import tokenize

    words: set[str] = set()
    for value in values:
        # Between blanks, letters and digits of ASCII are wordfreq's words as well; splitting is much faster.
        plain = value.isascii() and value.replace(" ", "").isalnum()
        # wordfreq only guesses how frequent a number is, so numbers do not count.
        found = value.lower().split(" ") if plain else tokenize(value, LANGUAGE)
        words.update(word for word in found if any(map(str.isalpha, word)))
    return min(map(_zipf, words), default=None)


@lru_cache(maxsize=100_000)
def _zipf(word: str) -> float:
    from wordfreq import zipf_frequency

    return float(zipf_frequency(word, LANGUAGE))


@dataclass(frozen=True, slots=True)
class Entry:
    """One text of the dataset: its row, the questions about it, and the ids of the facts that its proofs rest on.

    `record`: the first of the statements with this text.
    """

    record: StatementRecord
    rule: Rule
    row: Row
    probes: tuple[Row, ...]
    fact_ids: tuple[str, ...]


class _Derivation(NamedTuple):
    """A statement with its proof as a tree."""

    record: StatementRecord
    proof: Proof


@dataclass(frozen=True)
class DatasetSource:
    """A knowledge base, the statements selected from it, and the use of people's judgements for their labels."""

    kb: KnowledgeBase
    selection: Selection
    judged: JudgedChoice = "drop"

    @cached_property
    def library(self) -> Library:
        """Rules of the chosen statements, with the predicates of the knowledge base."""
        return stored_library(self.kb, {place.rule for place in self.selection.places})

    @cached_property
    def forms(self) -> dict[str, tuple[str, Polarity, ConclusionForms]]:
        """Domain, polarity and conclusion by rule."""
        return rule_forms(self.kb, {place.rule for place in self.selection.places}, None)

    @cached_property
    def runs(self) -> dict[str, RunRecord]:
        """Runs that derived the chosen statements, in the order of their start; runs without a record are left out."""
        run_ids = {place.run_id for place in self.selection.places}
        runs = sorted(self.kb.runs(), key=lambda run: (run.started, run.id))
        return {run.id: run for run in runs if run.id in run_ids}

    @property
    def judged_notes(self) -> list[str]:
        """A sentence on the statements that people deny; none without such statements."""
        denied, did = self.selection.denied, "kept with the labels of their rules; the column `judgement` says `false`"
        if self.judged == "drop":
            denied, did = self.selection.left_out["denied"], "left out, counted once per distribution"
        elif self.judged == "mark":
            did = "marked by the label `contradiction`"
        return (
            [(f"{counted(denied, 'statement')} that people deny: {did} ({Setting('selection.judged')} {self.judged}).")]
            if denied
            else []
        )

    @property
    def rankers(self) -> list[ModelIdentity]:
        """Models that divided the chosen statements into head and long tail, each once."""
        rankers: dict[str, ModelIdentity] = {}
        for run in self.runs.values():
            if ranker := identities_of(run).get(LIKELIHOOD):
                rankers[ranker.name] = ranker
        return list(rankers.values())

    @property
    def circular_evaluators(self) -> list[str]:
        """Names of evaluators that ranked their run, taught its ranker or learned from it."""
        return sorted(filter(None, set(map(circular_judge, self.runs.values()))))

    @cached_property
    def _models(self) -> dict[str, dict[str, str]]:
        """Models by role, by run."""
        return {name: run_models(run) for name, run in self.runs.items()}

    def entries(self) -> Iterator[Entry]:
        """Make the entries of the chosen statements, in order."""
        for part in chunks(self.selection.texts):
            groups = records_of(self.kb, part)
            derivations = []
            for records in groups:
                derivations.append([_Derivation(record, proof_from_json(record.proof)) for record in records])
            # One query per chunk instead of one per statement.
            facts = self.kb.facts_by_id(_fact_ids(chain.from_iterable(derivations)))
            for text, group in zip(part, derivations, strict=True):
                yield self._entry(text, group, facts)

    def facts(self, fact_ids: Iterable[str]) -> Iterator[Row]:
        """Rows of facts, in the order of their ids; ids without a fact are skipped."""
        ids = sorted(set(fact_ids))
        for part in chunks(ids):
            facts = self.kb.facts_by_id(part)
            for fact_id in part:
                if fact_id in facts:
                    fact = facts[fact_id]
                    yield {
                        "id": fact.id,
                        "predicate": fact.predicate,
                        "arguments": [str(value) for value in fact.arguments],
                        "types": list(fact.types),
                        "text": fact_text(fact, self.library),
                        "source": fact.source.value,
                        "probability": fact.probability,
                        "run": fact.run_id,
                    }

    def annotations(self) -> Iterator[Row]:
        """Rows of the votes on the chosen statements, with numbers instead of the voters' names."""
        row_of = self.selection.judgements.row
        # Votes on all statements that read as a row, by its id.
        row_ids = {row_of(text.id): text.id for text in self.selection.texts}
        votes = []
        for vote in self.kb.votes():
            row_id = row_ids.get(row_of(vote.statement_id))
            if row_id is not None:
                votes.append(replace(vote, statement_id=row_id))
        # Numbers follow the names' order, so that they do not depend on who voted first.
        voters = sorted({vote.voter for vote in votes})
        numbers = {voter: number for number, voter in enumerate(voters, 1)}
        for vote in sorted(votes, key=lambda vote: (vote.statement_id, vote.question, vote.voter)):
            yield {
                "statement": vote.statement_id,
                "question": vote.question,
                "annotator": numbers[vote.voter],
                "answer": vote.answer,
            }

    def _entry(
        self,
        text: SameText,
        derivations: Sequence[_Derivation],
        facts: Mapping[str, FactRecord],
    ) -> Entry:
        record, proof = derivations[0]
        rule, judgement = self.library.rule(record.rule), self.selection.judgements.of(text.id)
        domain, polarity, forms = self.forms[record.rule]
        # As many for as against leave the statement to the rule.
        is_voted = judgement.is_true is not None and self.judged != "keep"
        entailed = not is_voted or judgement.is_true is True
        # A row may bear the id of a statement of the other distribution (`SameText.id`).
        item = replace(probe_item(record, domain, polarity, forms, entailed=entailed), statement_id=text.id)
        # Proofs share facts; each is listed once, in the order of the first proof that uses it.
        fact_ids = tuple(dict.fromkeys(_fact_ids(derivations)))
        used = [facts[fact_id] for fact_id in fact_ids if fact_id in facts]
        # One proof suffices, so the text is as sure as the surest of its proofs.
        lowest = [_least_probability(derivation.proof, facts) for derivation in derivations]
        models = self._models.get(record.run_id, {})
        searched = [str(value) for name, value in record.substitution if name not in rule.generic]
        fact_cells = []
        for fact in used:
            cell = {"source": fact.source.value, "probability": fact.probability}
            fact_cells.append({"id": fact.id, "fact": fact_text(fact, self.library), **cell})

        def goal_text(goal: BodyLiteral) -> str:
            return literal_text(goal, self.library, {}, rule.generic) if isinstance(goal, Literal) else str(goal)

        row = {
            "id": text.id,
            "distribution": record.distribution.value,
            "in_both": text.in_both,
            "rule": record.rule,
            "domain": domain,
            "principle": (rule.principle or default_principle(polarity)).value,
            "polarity": polarity.value,
            "premise": record.premise,
            "conclusion": record.conclusion,
            "negation": item.negation,
            "question": item.question,
            "label": ENTAILS if entailed else CONTRADICTS,
            "label_source": "votes" if is_voted else "rule",
            "judgement": judgement.word,
            "substitution": _bindings(rule, record),
            "log_likelihood": _finite(record.log_likelihood),
            "facts": fact_cells,
            "least_probability": max((least for least in lowest if least is not None), default=None),
            "rarest_word_zipf": rarest_word(searched),
            "proof": record.proof,
            "proof_text": proof_text(proof, goal_text),
            "other_proofs": [self._other_proof(derivation) for derivation in derivations[1:]],
            # Every proof has steps by rule; their premises are what it rests on.
            "sources": sorted({part.by.value for part in proof.parts() if part.by not in (By.RULE, By.DECLARATION)}),
            "run": record.run_id,
            "knowledge_model": models.get(KNOWLEDGE),
            "critic_model": models.get(CRITIC),
            "likelihood_model": models.get(LIKELIHOOD),
            "evaluator_model": models.get(EVALUATOR),
        }
        return Entry(record, rule, row, tuple(probe_rows(item)), fact_ids)

    def _other_proof(self, derivation: _Derivation) -> Row:
        record = derivation.record
        return {
            "id": record.id,
            "rule": record.rule,
            "run": record.run_id,
            "substitution": _bindings(self.library.rule(record.rule), record),
            "proof": record.proof,
        }


def _fact_ids(derivations: Iterable[_Derivation]) -> Iterator[str]:
    """Ids of the facts of all proofs."""
    for derivation in derivations:
        yield from derivation.proof.fact_ids()


def _least_probability(proof: Proof, facts: Mapping[str, FactRecord]) -> float | None:
    """The lowest P(yes) among the facts of a proof; None if none of them was judged."""
    used = [facts[fact_id] for fact_id in proof.fact_ids() if fact_id in facts]
    return min((fact.probability for fact in used if fact.probability is not None), default=None)


def run_models(run: RunRecord) -> dict[str, str]:
    """Models of a run by role. A critic that was switched off is left out; an import has its evaluator only."""
    models = models_of(run)
    # A run names a critic even if it was switched off.
    if run.settings.get("critic") is False:
        models.pop(CRITIC, None)
    # An import ran no role; its evaluator stands directly in the settings, as a name.
    if not models and isinstance(run.settings.get("evaluator"), str):
        models[EVALUATOR] = run.settings["evaluator"]
    return models


def fact_text(fact: FactRecord, library: Library) -> str:
    """The fact in the words of its predicate."""
    return atom_text(Atom(fact.predicate, tuple(map(Constant, fact.arguments))), library)


def _bindings(rule: Rule, record: StatementRecord) -> list[Row]:
    types = {variable.name: variable.data_type for variable in rule.variables}
    bindings: list[Row] = []
    for name, value in record.substitution:
        # Values are texts because a column of Parquet has one type; `kind` says what they were.
        kind = "text" if isinstance(value, str) else "decimal" if isinstance(value, Decimal) else "integer"
        bindings.append({"variable": name, "data_type": types.get(name), "value": str(value), "kind": kind})
    return bindings


def _finite(number: float | None) -> float | None:
    """The number, or None for infinity and NaN, which JSON cannot hold."""
    return number if number is not None and math.isfinite(number) else None
