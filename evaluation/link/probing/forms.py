"""Negation and question of a conclusion: from the predicate's template, from grammar, or as a last resort from a model.

LINK has a model write both for each statement. Here they are written once for each predicate, with slots, so that all
statements of a rule are negated and asked in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.grammar.rules import Library, PredicateSignature, Rule, Templates
from hapax.grammar.terms import Atom, Constant, Value
from hapax.grammar.verbalize import IMPROVISED, UNTRUE, atom_text, negated_template, question_template, template_of
from hapax.llm_oracle.rewriting import FormWriter


@dataclass(frozen=True, slots=True)
class ConclusionForms:
    """A rule's conclusion, its negation and its question, with numbered slots.

    The question asks about the positive side: `can [1] eat [2]?`, even if the rule concludes that somebody cannot. So
    the label of template 7 follows from the rule's polarity, as in LINK. `notes`: the forms that were improvised.
    """

    atom: Atom
    signature: PredicateSignature
    notes: tuple[str, ...] = ()

    def texts(self, substitution: Sequence[tuple[str, Value]]) -> tuple[str, str, str]:
        """Conclusion, negation and question of one statement; variables that it leaves unbound are generic."""
        bound: Mapping[str, Constant] = {name: Constant(value) for name, value in substitution}
        generic = [variable.name for variable in self.atom.variables if variable.name not in bound]
        words = Library(signatures=(self.signature,))
        conclusion, negation, question = (
            atom_text(self.atom, words, bound, form, generic) for form in ("affirmative", "negated", "question")
        )
        return conclusion, negation, question.rstrip("? ")  # template 7 adds its own question mark


def conclusion_forms(rule: Rule, library: Library, positive: bool, writer: FormWriter | None = None) -> ConclusionForms:
    """The forms of the rule's conclusion, whose polarity is `positive`."""
    atom = rule.conclusion.atom
    declared = library.signature(atom.indicator).templates
    affirmative = template_of(atom, library)
    notes: list[str] = []

    def negation_of(sentence: str) -> str:
        if declared is not None and declared.negated:
            return declared.negated
        by_grammar = negated_template(sentence)
        if not by_grammar.startswith(IMPROVISED):
            return by_grammar
        written = writer.negation(sentence) if writer else None
        notes.append(f"{rule.name}: {_source(written)} the negation of '{sentence}': '{written or by_grammar}'")
        return written or by_grammar

    def question_of(sentence: str) -> str:
        # A declared question asks about the affirmative sentence only.
        if declared is not None and declared.question and sentence == affirmative:
            return declared.question
        by_grammar = question_template(sentence)
        if not by_grammar.startswith(IMPROVISED):
            return by_grammar
        if sentence.startswith(UNTRUE):
            by_grammar = f"is it untrue that {sentence.removeprefix(UNTRUE)}?"
        written = writer.question(sentence) if writer else None
        notes.append(f"{rule.name}: {_source(written)} the question for '{sentence}': '{written or by_grammar}'")
        return written or by_grammar

    # Both forms are needed whatever the rule concludes: questions put the other one, too.
    negative = negation_of(affirmative)
    # The polarity need not follow from the words: `cannot_plant` is negative without a negation.
    templates = Templates(affirmative, negative, question_of(affirmative if positive else negative))
    return ConclusionForms(atom, replace(library.signature(atom.indicator), templates=templates), tuple(notes))


def _source(written: str | None) -> str:
    return "the model wrote" if written else "neither template nor grammar gave"
