"""A conclusion's negation and its question: by the predicate's template first, by a model where grammar does not do.

LINK has both written by a model for each statement. Here it is done once for a predicate, with the slots in place, so
that all statements of a rule are denied and asked in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from grammar.rules import Library, PredicateSignature, Rule, Templates
from grammar.terms import Atom, Constant, Value
from grammar.verbalize import IMPROVISED, UNTRUE, atom_text, negated_template, question_template, template_of
from llm_oracle.rewriting import FormWriter


@dataclass(frozen=True, slots=True)
class ConclusionForms:
    """What a rule's conclusion says, its denial and its question, with numbered slots.

    The question asks the positive side: `can [1] eat [2]?` also where the rule concludes that somebody cannot. So the
    label of template 7 follows from the rule's polarity, as in LINK.
    """

    atom: Atom
    signature: PredicateSignature
    notes: tuple[str, ...] = ()

    def texts(self, substitution: Sequence[tuple[str, Value]]) -> tuple[str, str, str]:
        """Conclusion, negation and question of one statement; variables that it does not bind are generic."""
        bound: Mapping[str, Constant] = {name: Constant(value) for name, value in substitution}
        generic = [variable.name for variable in self.atom.variables if variable.name not in bound]
        words = Library(signatures=(self.signature,))
        conclusion, negation, question = (
            atom_text(self.atom, words, bound, form, generic) for form in ("affirmative", "negated", "question")
        )
        return conclusion, negation, question.rstrip("? ")


def conclusion_forms(rule: Rule, library: Library, positive: bool, writer: FormWriter | None = None) -> ConclusionForms:
    """The forms of the rule's conclusion. `positive`: its polarity. `notes` name each form that was improvised."""
    atom, denied = rule.conclusion.atom, rule.conclusion.negated
    declared = library.signature(atom.indicator).templates
    affirmative = template_of(atom, library)
    notes: list[str] = []

    def negated(sentence: str) -> str:
        if declared is not None and declared.negated:
            return declared.negated
        made = negated_template(sentence)
        if not made.startswith(IMPROVISED):
            return made
        written = writer.negation(sentence) if writer else None
        notes.append(f"{rule.name}: {_by(written)} the negation of '{sentence}': '{written or made}'")
        return written or made

    def asked(sentence: str) -> str:
        if declared is not None and declared.question and sentence == affirmative:
            return declared.question
        made = question_template(sentence)
        if not made.startswith(IMPROVISED):
            return made
        if sentence.startswith(UNTRUE):
            made = f"is it untrue that {sentence.removeprefix(UNTRUE)}?"
        written = writer.question(sentence) if writer else None
        notes.append(f"{rule.name}: {_by(written)} the question for '{sentence}': '{written or made}'")
        return written or made

    denial = negated(affirmative)
    own, other = (denial, affirmative) if denied else (affirmative, denial)
    templates = Templates(own, other, asked(own if positive else other))
    return ConclusionForms(atom, replace(library.signature(atom.indicator), templates=templates), tuple(notes))


def _by(written: str | None) -> str:
    return "the model wrote" if written else "neither template nor grammar gave"
