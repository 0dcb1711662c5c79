"""Words of a question for values in a prompt profile, with examples from given facts for the profile `few-shot`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from hapax.engine.inference.known_facts import KnownFacts, atom_values
from hapax.engine.search.inquiry import Key, question_words, value_key
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value, Variable
from hapax.grammar.verbalize import atom_text
from hapax.kb.records import AtomPattern, Question
from hapax.llm_oracle.profiles import BLANK, FEW_SHOT, AnsweredExample, Profile, ValueQuestion
from hapax.llm_oracle.prompts import exclusion_clause
from hapax.llm_oracle.protocols import GenerationRequest

EXAMPLES = 3
"""Worked examples in a prompt of the profile `few-shot`."""

EXAMPLE_VALUES = 5
"""Values of a worked example."""

Rows = dict[tuple[Value, ...], list[Value]]
"""Values at one argument place of a predicate, by the other arguments."""

# `[B]` or `[A1]`: the slot of a variable without a value
_BRACKETS = re.compile(r"\[([A-Z][0-9]{0,3})\]")


@dataclass
class QuestionWording:
    """Words the questions of a run by one profile.

    `general`: examples for `few-shot` where neither given facts nor `@example` lines have any.
    """

    profile: Profile
    library: Library
    known: KnownFacts
    general: tuple[AnsweredExample, ...] = ()
    _rows: dict[tuple[str, int], Rows] = field(default_factory=dict)

    def request(
        self,
        question: Question,
        count: int,
        excluded: tuple[str, ...] = (),
        sample_index: int = 0,
        *,
        rejected: tuple[str, ...] | None = None,
        variable: str = "",
    ) -> GenerationRequest:
        """The request for `count` values other than the excluded ones.

        `rejected`: LINK's way, where words exclude the others, and a bias the tokens of these.
        """
        worded = self.question(question, count, excluded, variable)
        prompt, form = self.profile.word(worded), self.profile.reply_form(worded)
        if rejected is None:
            return GenerationRequest(prompt, excluded, sample_index=sample_index, form=form)
        if not self.profile.names_forbidden:
            prompt += exclusion_clause(excluded)
        return GenerationRequest(prompt, (), rejected, sample_index, form)

    def question(
        self, question: Question, count: int, forbidden: tuple[str, ...] = (), variable: str = ""
    ) -> ValueQuestion:
        """The question in all forms that a wording may need. `variable`: its name; empty: the letter of its place."""
        variable, words = question_words(question, self.library, variable)
        worded = ValueQuestion(
            variable,
            words,
            tuple(_predicate_form(pattern, variable) for pattern in question.patterns),
            question.data_type,
            count,
            question.functional,
            self.library.is_numeric(question.data_type),
            forbidden,
            open_types=tuple(self._open_types(question)),
        )
        if self.profile is not FEW_SHOT:
            return worded
        return replace(worded, examples=self.examples(question))

    def _open_types(self, question: Question) -> Iterator[tuple[str, str]]:
        """Name and data type of each open argument beside the requested one, which the patterns hold as `[B]`."""
        for pattern in question.patterns:
            types = self.library.signature(f"{pattern.predicate}/{len(pattern.arguments)}").argument_types
            for argument, data_type in zip(pattern.arguments, types, strict=True):
                slot = _BRACKETS.fullmatch(argument) if isinstance(argument, str) else None
                if slot:
                    yield slot[1], data_type

    # -- examples

    def examples(self, question: Question) -> tuple[AnsweredExample, ...]:
        """Worked examples: of the question's predicate, else of others with the slot at the same place, else general.

        No example mentions a value of the question, since a symmetric or similar predicate would then give an answer
        away, and none shows a value that is known to answer it.
        """
        return tuple(islice(self._examples(question), EXAMPLES))

    def _examples(self, question: Question) -> Iterator[AnsweredExample]:
        pattern = question.patterns[0]
        place = pattern.arguments.index(None)
        answers = {value_key(value) for value in self._known_answers(question)}
        asked = chain.from_iterable(pattern.arguments for pattern in question.patterns)
        known = [value for value in asked if value is not None]
        mentioned = set(map(value_key, known))
        for indicator in self._indicators(pattern, place):
            yield from self._examples_of(indicator, place, mentioned, answers)
        # A value of the question anywhere in a general example would give an answer away.
        texts = [str(value).casefold() for value in known]
        for example in self.general:
            whole = " ".join((example.sentence, *example.values)).casefold()
            if not any(text in whole for text in texts) and not answers.intersection(map(value_key, example.values)):
                yield example

    def _indicators(self, pattern: AtomPattern, place: int) -> Iterator[str]:
        """The pattern's predicate, then those of the same shape: as many arguments, the slot's of the same type."""
        own = f"{pattern.predicate}/{len(pattern.arguments)}"
        yield own
        data_type = self.library.signature(own).argument_types[place]
        for signature in sorted(self.library.completed().signatures, key=lambda signature: signature.indicator):
            types = signature.argument_types
            alike = len(types) == len(pattern.arguments) and types[place] == data_type
            if alike and signature.indicator != own and signature.templates is not None:
                yield signature.indicator

    def _examples_of(
        self, indicator: str, place: int, mentioned: set[Key], answers: set[Key]
    ) -> Iterator[AnsweredExample]:
        """Examples of one predicate, those with most values first."""
        data_type = self.library.signature(indicator).argument_types[place]
        rows = self.rows_of(indicator, place)
        for key in sorted(rows, key=lambda key: (-len(rows[key]), tuple(map(str, key)))):
            if mentioned.intersection(map(value_key, (*key, *rows[key]))):
                continue
            values = [str(value) for value in rows[key] if value_key(value) not in answers]
            if values:
                sentence = self._blank_sentence(indicator.rpartition("/")[0], key, place, data_type)
                yield AnsweredExample(sentence, data_type, tuple(values[:EXAMPLE_VALUES]))

    def rows_of(self, indicator: str, place: int) -> Rows:
        """Values at this place in given facts and `@example` lines, by the other arguments."""
        rows = self._rows.get((indicator, place))
        if rows is None:
            rows = {}
            for arguments in (*self.known.given_rows(indicator), *self._example_rows(indicator)):
                key = arguments[:place] + arguments[place + 1 :]
                values = rows.setdefault(key, [])
                if arguments[place] not in values:
                    values.append(arguments[place])
            self._rows[indicator, place] = rows
        return rows

    def _example_rows(self, indicator: str) -> Iterable[tuple[Value, ...]]:
        return (atom_values(atom) for atom in self.library.examples if atom.indicator == indicator)

    def _known_answers(self, question: Question) -> Iterator[Value]:
        """Values that given facts or `@example` lines state for one of the question's patterns."""
        for pattern in question.patterns:
            indicator = f"{pattern.predicate}/{len(pattern.arguments)}"
            place = pattern.arguments.index(None)
            key = tuple(argument for argument in pattern.arguments if argument is not None)
            for known_key, values in self.rows_of(indicator, place).items():
                if _same(known_key, key):
                    yield from values

    def _blank_sentence(self, predicate: str, key: tuple[Value, ...], place: int, data_type: str) -> str:
        """The sentence of an example, with `BLANK` at its place."""
        arguments = [Constant(value) for value in key]
        slot = Variable("BLANK", data_type)
        atom = Atom(predicate, (*arguments[:place], slot, *arguments[place:]))
        return atom_text(atom, self.library).replace(f"[{slot.name}]", BLANK)


def _same(first: tuple[Value, ...], second: tuple[Value, ...]) -> bool:
    return tuple(map(value_key, first)) == tuple(map(value_key, second))


def _predicate_form(pattern: AtomPattern, variable: str) -> str:
    """`ingredient_in(butter, B)`: the values as they are, without quotation marks, as LINK writes them."""
    arguments = []
    for argument in pattern.arguments:
        text = variable if argument is None else str(argument)
        open_slot = _BRACKETS.fullmatch(text)  # another variable without a value
        arguments.append(open_slot[1] if open_slot else text)
    return f"{pattern.predicate}({', '.join(arguments)})"
