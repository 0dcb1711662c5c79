"""Pronouns of Winograd schemas resolved by theories, with proofs: one sentence, many, or the two of a pair together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hapax.engine.chosen_rules import sound_rules
from hapax.evaluation.shared.results import Evaluation
from hapax.evaluation.winograd.data import METHODS, WinogradItem
from hapax.evaluation.winograd.reasoner.parsing import parser_installed
from hapax.evaluation.winograd.reasoner.reasoning import AgreementCheck, Reasoner
from hapax.evaluation.winograd.theories.mapping import ROLE, mapped_by
from hapax.evaluation.winograd.theories.measure import RuleAnswer, answer_all, rules_result
from hapax.evaluation.winograd.theories.pairing import answer_pairs
from hapax.evaluation.winograd.theories.patterns import load_patterns
from hapax.evaluation.winograd.theories.proving import Referee, Resolution
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.rule_paths import load_rules
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.calls import JournaledGenerator
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import KNOWLEDGE
from hapax.llm_oracle.registry import open_instructed


@checked
@extras_named()
def resolve_schemas(
    items: Sequence[WinogradItem],
    theories: str | Path | None = None,
    *,
    kb: KnowledgeBase | None = None,
    mapper: str | None = None,
    opening: OpeningOptions | None = None,
    method: str = "patterns",
) -> Evaluation[list[RuleAnswer]]:
    """Resolve the pronouns of schemas by theories, with proofs.

    `method`: `patterns` of the theories' folder, or `reasoner`, which parses sentences and abstracts entities to types;
    it needs the extra `english`, and neither `theories` nor `mapper` goes with it. `reasoner:0.9` sets the probability
    below which the reasoner is silent. `theories`: folder of theories and patterns; None: the shipped ones. `mapper`:
    model that maps sentences to atoms, instead of the patterns; it needs `kb`, which keeps its answers. `opening`:
    options of opening it; its journal, if any, has the budget, and its seed is that of the calls.
    """
    method, least = _named_method(method, theories, mapper)
    if method == "reasoner":
        with Reasoner(least=least) as reasoner:
            answers = answer_all(items, reasoner.resolved)
        return Evaluation(answers, rules_result(answers))
    # One Prolog process for all sentences.
    with _referee(theories) as referee:
        if mapper is None:
            answers = answer_all(items, lambda item: referee.resolve(item.text, item.options, item.pronoun))
        else:
            answers = _mapped_answers(items, referee, mapper, kb, opening)
    return Evaluation(answers, rules_result(answers))


@checked
@extras_named()
def resolve_schema_pairs(items: Sequence[WinogradItem], method: str = "reasoner") -> Evaluation[list[RuleAnswer]]:
    """Resolve the two sentences of each schema together, which mean different options, by what is known of both.

    `method`: `reasoner`, or `reasoner:0.9` with the probability of a pair below which there is no answer. Sentences
    without a partner are answered as by `resolve_schemas`.
    """
    name, least = _named_method(method, None, None)
    if name != "reasoner":
        raise HapaxError(f"{name!r} has no probabilities to add. Use the method 'reasoner'.")
    with Reasoner(least=least) as reasoner:
        answers = answer_pairs(items, reasoner.resolved, reasoner.least)
    return Evaluation(answers, rules_result(answers, pair_consistent=True))


def _mapped_answers(
    items: Sequence[WinogradItem],
    referee: Referee,
    mapper: str,
    kb: KnowledgeBase | None,
    opening: OpeningOptions | None,
) -> list[RuleAnswer]:
    opening = opening or OpeningOptions()
    journal = opening.journal
    if journal is None:
        if kb is None:
            raise HapaxError("A mapper needs a knowledge base for its answers. Give `kb`.")
        journal = Journal(kb)
    model = open_instructed(mapper, KNOWLEDGE, replace(opening, journal=journal))
    generator = JournaledGenerator(model, journal, role=ROLE)
    # All sentences in one batch: the mapping sends them before the first answer is resolved.
    return answer_all(items, mapped_by(generator, referee, items, opening.seed))


@checked
@extras_named()
def resolve_pronoun(
    sentence: str,
    options: tuple[str, str],
    *,
    pronoun: str = "",
    theories: str | Path | None = None,
    method: str = "patterns",
) -> Resolution:
    """Resolve the pronoun of a sentence by theories. `options`: the two entities that it can mean.

    `method`: as `resolve_schemas` takes it. `pronoun`: the pronoun to resolve, if the sentence has more.
    `.lines(options)` of the result is the proof in words.
    """
    # A text of two letters has the length 2 as well.
    if isinstance(options, str) or len(options) != 2:
        raise HapaxError('Give two options, such as ("ant", "crumb").')
    method, least = _named_method(method, theories, None)
    if method == "reasoner":
        with Reasoner(least=least) as reasoner:
            return reasoner.resolve(sentence, (options[0], options[1]), pronoun)
    with _referee(theories) as referee:
        return referee.resolve(sentence, (options[0], options[1]), pronoun)


def _named_method(text: str, theories: str | Path | None, mapper: str | None) -> tuple[str, float | None]:
    """A method and the least probability behind its colon. Raises HapaxError for options of the other method."""
    method, _, probability = text.partition(":")
    if method not in METHODS:
        raise HapaxError(f"There is no method {method!r}. Use {' or '.join(METHODS)}.")
    if method != "reasoner" and probability:
        raise HapaxError(f"Only the reasoner estimates probabilities. Write {method!r} alone.")
    if method == "reasoner" and (theories is not None or mapper is not None):
        raise HapaxError("The reasoner has a theory and a parser of its own. Leave out `theories` and `mapper`.")
    if not probability:
        return method, None
    try:
        least = float(probability)
    except ValueError:
        # NaN fails the comparison below as well, so that both faults have one message.
        least = math.nan
    if not 0.5 <= least <= 1:
        raise HapaxError(f"{probability!r} is not a probability from 0.5 to 1. Write, for instance, `reasoner:0.9`.")
    return method, least


def _referee(theories: str | Path | None) -> Referee:
    # Agreement in number and gender needs the parser; without it, theories alone decide.
    agreement = AgreementCheck() if parser_installed() else None
    if theories is None:
        return Referee(agreement=agreement)
    library = sound_rules(load_rules(theories))
    return Referee(library, load_patterns(Path(theories).glob("*.toml")), agreement)
