"""Ask a model for narrower data types and fitting verbs, and turn its replies into proposed rules.

A reply is untrusted text: a part that does not fit is dropped. The parser of knowledge replies (`llm_oracle.answers`)
expects lines that end in a full stop, which these do not.

Sentence templates of new predicates come from grammar rules if they know the verb, else from the model. LINK has a
model correct every sentence with minimal edits, in up to five tries until all slots are there.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Annotated

from hapax.grammar.arguments import checked
from hapax.grammar.checking.library_checks import check_library
from hapax.grammar.checking.subsumption import subsumes
from hapax.grammar.data_types import OBJECT, type_key
from hapax.grammar.errors import HapaxError, RulesRejected, Severity
from hapax.grammar.options import Option, Seed
from hapax.grammar.parsing.declarations import GenericBy, PredicateKind, PredicateSignature, Templates, default_polarity
from hapax.grammar.parsing.parser import parse_addition
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Variable
from hapax.grammar.writing.printing import rule_text, signature_text
from hapax.grammar.writing.texts import is_variable_name
from hapax.grammar.writing.verbalize import (
    IMPROVISED,
    atom_text,
    has_known_verb,
    literal_text,
    negated_template,
    question_template,
    spelled_template,
)
from hapax.grammar.writing.words import excerpt
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator
from hapax.llm_oracle.questions.prompts import conclusion_prompt, types_prompt, verb_prompt
from hapax.llm_oracle.questions.rewriting import TRIES, FormWriter
from hapax.llm_oracle.reading.link_replies import without_numbering

# --- checks of a proposed rule ----------------------------------------------------------------------------------------

# tautology, premise that never holds, division by zero, duplicate, subsumed and implied rule
_REDUNDANT = frozenset(("HPX104", "HPX108", "HPX125", "HPX205", "HPX206"))
"""Codes of the warnings about a rule that concludes nothing new."""


def with_additions(library: Library, additions: Iterable[Library]) -> Library:
    """The library with the additions. A predicate declared over different types by two of them gets wider types."""
    additions = list(additions)
    rules = chain(library.rules, *(addition.rules for addition in additions))
    subtypes = chain(library.subtypes, *(addition.subtypes for addition in additions))
    whole = replace(library, rules=tuple(rules), subtypes=tuple(dict.fromkeys(subtypes)))
    declared = {signature.indicator: signature for signature in library.signatures if signature.declared}
    added: dict[str, PredicateSignature] = {}
    for signature in chain.from_iterable(addition.signatures for addition in additions):
        known = declared.get(signature.indicator)
        if known is None:
            first = added.setdefault(signature.indicator, signature)
            types = zip(first.argument_types, signature.argument_types, strict=True)
            wider = tuple(_common_supertype(pair, whole) for pair in types)
            added[signature.indicator] = replace(first, argument_types=wider)
        elif (known.kind, known.argument_types) != (signature.kind, signature.argument_types):
            added[signature.indicator] = signature  # a clash, which `check` reports
    kept = (item for item in library.signatures if item.declared or item.indicator not in added)
    return replace(whole, signatures=(*kept, *added.values()))


def _common_supertype(types: tuple[str, str], library: Library) -> str:
    """The first supertype of both types: one of the two, else a declared type, else Object; for want of one, the first.

    Persons are no objects.
    """
    candidates = (*types, *(upper for _, upper in library.subtypes), OBJECT)
    common = (upper for upper in candidates if all(library.is_subtype(data_type, upper) for data_type in types))
    return next(common, types[0])


# --- replies ----------------------------------------------------------------------------------------------------------

MAX_REPLY_CHARACTERS = 20_000
"""Characters of a reply that are read; the rest is ignored."""

MAX_TYPE_CHARACTERS, MAX_TYPE_WORDS = 40, 5
MAX_NAME_CHARACTERS, MAX_VERB_WORDS = 60, 9

_TYPE_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SMALL_WORDS = frozenset(("a", "an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
_TALK = frozenset(
    ("are", "can", "cannot", "could", "here", "i", "is", "it", "not", "some", "sorry", "sure", "that", "there")
)
"""Words that occur in sentences before or instead of a list, and not in names of types."""

_SINGULAR_ENDINGS = re.compile(r"(?:as|ics|is|lens|ss|us)$", re.IGNORECASE)
"""Endings of words that look like plurals and mostly are not: atlas, cosmetics, axis, glass, cactus."""

_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_LAST_ARTICLE = re.compile(r" (?:an?|the)$")
# what follows the name in `Tattoo Equipment: needles`, `Tattoo Equipment (needles)` and `Tattoo Equipment - needles`
_EXPLANATION = re.compile(r"\s*(?::|\(|\s[-–—]\s).*$", re.DOTALL)
_MARKS = " \t\"'`*“”‘’_.;,!?"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
# `cannot_drive` among other words
_SNAKE = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)+\b")
_VERB_WORDS = re.compile(r"[a-z][a-z0-9]*(?: [a-z0-9]+)*")
_CONTRACTIONS = ((r"\bcan['’]t\b", "cannot"), (r"\bwon['’]t\b", "will not"), (r"n['’]t\b", " not"))
_SUBJECTS = frozenset(
    ("a", "an", "each", "every", "i", "if", "it", "people", "someone", "sure", "that", "the", "they", "this", "you")
)
"""Words with which sentences begin, and verbs do not."""

_SLOT = re.compile(r"\[\d{1,3}\]")


@dataclass(eq=False)
class UnusableReply(Exception):  # noqa: N818  named after the situation
    """A part of a reply that cannot be used, and the reason."""

    said: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verb:
    """A predicate's name, and the sentence with slots in which the model used it, if there is one."""

    name: str
    sentence: str | None = None

    @property
    def words(self) -> str:
        return self.name.replace("_", " ")


def read_types(reply: str) -> Iterator[str | UnusableReply]:
    """The data types of a list, on lines or separated by commas, spelled as in rule files: `Tattoo Equipment`."""
    lines = [line.strip() for line in reply[:MAX_REPLY_CHARACTERS].splitlines() if line.strip()]
    if len(lines) == 1:
        lines = re.split(r"[,;]", without_numbering(lines[0]))
    for line in lines:
        if line.endswith(":") or not line.strip(_MARKS):
            continue  # a sentence that introduces the list
        name = _type_name(line)
        yield name or UnusableReply(excerpt(line), "is not a name of a data type")


def _type_name(line: str) -> str | None:
    """The type that a line of a list names, without number, article and explanation; None if it names none."""
    text = without_numbering(unicodedata.normalize("NFC", line).strip(_MARKS)).strip(_MARKS)
    words = _ARTICLE.sub("", _EXPLANATION.sub("", text).strip(_MARKS), count=1).split()
    fits = 0 < len(words) <= MAX_TYPE_WORDS and all(map(_TYPE_WORD.fullmatch, words)) and ":-" not in line
    if not fits or len(" ".join(words)) > MAX_TYPE_CHARACTERS:
        return None
    small = list(map(str.casefold, words))
    if {small[0], small[-1]} & _SMALL_WORDS or _TALK.intersection(small):
        return None
    singular = _singular(" ".join(words)).split()
    name = " ".join(word if word in _SMALL_WORDS else word[0].upper() + word[1:] for word in singular)
    # `Vitamin C` would be read as a variable C of the type Vitamin.
    return None if is_variable_name(name.rpartition(" ")[2]) else name


def _singular(noun: str) -> str:
    """The singular of a noun. Critics are asked whether a value is *a vehicle*, not *a vehicles*."""
    import inflect

    if _SINGULAR_ENDINGS.search(noun):
        return noun
    return str(inflect.engine().singular_noun(noun) or noun)


def read_predicate(reply: str, arguments: Sequence[str] = ()) -> Verb:
    """The predicate of a reply such as `cannot_drive`, `cannot_drive(Person A, Vehicle B)` or `cannot drive`.

    `arguments`: as the prompt named them. Raises UnusableReply for anything else, such as a sentence, which has one of
    them in the verb's place.
    """
    line = next((line for line in reply[:MAX_REPLY_CHARACTERS].splitlines() if line.strip()), "")
    # A reply in words may name the predicate: `Use cannot_drive here.`
    named = list(dict.fromkeys(_SNAKE.findall(line.lower())))
    plain = without_numbering(line.split("(")[0].strip(_MARKS)).strip(_MARKS)
    words = (named[0] if named else plain).replace("_", " ")
    if len(named) > 1:
        raise UnusableReply(excerpt(line), "names several verbs")
    if line and is_sentence(words, arguments):
        raise UnusableReply(excerpt(line), "is a sentence, where a verb such as 'cannot drive' is wanted")
    verb = read_verb(words.lower())
    if verb is None:
        raise UnusableReply(excerpt(line), "is not a verb")
    return verb


def is_sentence(words: str, arguments: Sequence[str]) -> bool:
    """Tell if words that should be a verb have a subject or an argument, such as `Person A cannot drive a car`.

    `arguments`: as the prompt named them, such as `Person A`.
    """
    plain = words.split()
    lower = [word.casefold() for word in plain]
    if not lower or lower[0] in _SUBJECTS:
        return True
    variables: set[str] = set()
    for position, argument in enumerate(arguments):
        *type_words, name = argument.casefold().split() or [""]
        if not type_words:  # a constant: its whole text
            type_words, name = [name], ""
        variables.add(name)
        if position == 0 and lower[: len(type_words)] == type_words:
            return True
        # The article `a` is a variable only after a type or as a capital letter.
        if f" {' '.join(filter(None, [*type_words, name]))} " in f" {' '.join(lower)} ":
            return True
    # Capital letters and the names of variables; `a` may be an article.
    return any(map(is_variable_name, plain[1:])) or not (variables - {"a", ""}).isdisjoint(lower)


def read_verb(words: str, slots: int = 0) -> Verb | None:
    """The verb of words such as `cannot drive`, or of a sentence with `slots` slots: `[1] cannot pay [2] for [3]`.

    None if it has other slots, or characters that a predicate's name cannot have.
    """
    plain = words
    for pattern, full in _CONTRACTIONS:
        plain = re.sub(pattern, full, plain, flags=re.IGNORECASE)
    found = sorted(_SLOT.findall(plain))
    # Each slot once, or none at all.
    if found and found != [f"[{number}]" for number in range(1, slots + 1)]:
        return None
    verb = " ".join(_SLOT.sub(" ", plain).split()).lower()
    name = _LAST_ARTICLE.sub("", verb).replace(" ", "_")
    fits = _VERB_WORDS.fullmatch(verb) and len(verb.split()) <= MAX_VERB_WORDS and len(name) <= MAX_NAME_CHARACTERS
    if not fits or not _NAME.fullmatch(name):
        return None
    return Verb(name, " ".join(plain.split()) if found else None)


def read_conclusions(reply: str, arguments: Sequence[str]) -> Iterator[Verb]:
    """The verbs of statements that end in the conclusion: `If ..., then Person A cannot drive Vehicle B.`

    `arguments`: how the prompt named the conclusion's arguments, in order. Other lines are left out.
    """
    for line in reply[:MAX_REPLY_CHARACTERS].splitlines():
        # A line that ends in a colon introduces a list.
        verb = None if line.strip().endswith(":") else read_verb(_slotted(line, arguments), len(arguments))
        if verb is not None and verb.sentence:
            yield verb


def _slotted(line: str, arguments: Sequence[str]) -> str:
    """The part of the line after the last `then`, with slots in place of the arguments.

    An argument that occurs twice gives two equal slots, which `read_verb` rejects.
    """
    text = re.split(r"\bthen\b", without_numbering(line.strip()), flags=re.IGNORECASE)[-1].strip(_MARKS)
    for number, argument in enumerate(arguments, 1):
        text = re.sub(rf"(?<!\w){re.escape(argument)}(?!\w)", f"[{number}]", text, flags=re.IGNORECASE)
    return text


# --- sentences of a predicate -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sentences:
    """The templates of a predicate. `notes` name those that the model failed to write, for a person to look at."""

    templates: Templates
    notes: tuple[str, ...] = ()


def sentences_for(atom: Atom, given: Templates | None, writer: FormWriter) -> Sentences:
    """Write the templates of a predicate that `given` does not contain."""
    notes: list[str] = []

    def usable(written: str | None, improvised: str, form: str) -> str:
        if written is None:
            notes.append(f"the model wrote no {form} with every slot in {TRIES} tries: '{improvised}'")
            return improvised
        # A template stands within a sentence.
        return written[0].lower() + written[1:]

    affirmative = given.affirmative if given else spelled_template(atom.predicate, len(atom.arguments))
    if given is None and not has_known_verb(affirmative):
        affirmative = usable(writer.correction(affirmative), affirmative, "sentence")
    negated = (given and given.negated) or negated_template(affirmative)
    if negated.startswith(IMPROVISED):
        negated = usable(writer.negation(affirmative), negated, "negation")
    question = (given and given.question) or question_template(affirmative)
    if question.startswith(IMPROVISED):
        question = usable(writer.question(affirmative), question, "question").rstrip("?") + "?"
    return Sentences(Templates(affirmative, negated, question), tuple(notes))


def guessed_kind(atom: Atom, library: Library) -> PredicateKind:
    """The kind of an undeclared predicate: given if rules only conclude it or use it about generic variables."""
    for rule in library.rules:
        for literal in rule.literals:
            if literal.atom.indicator == atom.indicator and not rule.is_information(literal):
                return PredicateKind.ORACLE
    return PredicateKind.GIVEN


# --- proposals --------------------------------------------------------------------------------------------------------

REPLY_TOKENS = 512
"""Tokens of a reply; ten data types with an explanation each need about 300."""


@checked
@dataclass(frozen=True, slots=True)
class ExpansionSettings:
    """Settings of an expansion."""

    variable: Annotated[str, Option("The variable whose data type is expanded, such as B.")]
    types: Annotated[int, Option("Data types to ask for.", least=1, most=100)] = 10
    verbs: Annotated[bool, Option("Ask for the verb that fits each data type.", switch=True)] = True
    seed: Seed = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new rule with its declarations.

    `key`: the line of the rule by which a file has the proposal already. `statement`: the rule as a sentence with data
    types. `origin`: where it comes from; `notes`: points that a person should look at.
    """

    addition: Library
    key: str
    statement: str
    origin: str
    notes: tuple[str, ...] = ()

    @property
    def rule(self) -> Rule:
        return self.addition.rules[0]

    @property
    def remarks(self) -> tuple[str, ...]:
        """The lines before the rule in a file."""
        return (self.origin, self.statement, *self.notes)


def addition_text(addition: Library, library: Library) -> str:
    """The addition as rule text. Parts that the library makes superfluous, such as default annotations, are omitted."""
    whole = with_additions(library, [addition])
    lines = [f"type {lower} < {upper}" for lower, upper in addition.subtypes]
    lines += [signature_text(signature) for signature in addition.signatures if signature.declared]
    return "\n".join([*lines, *(rule_text(rule, whole) for rule in addition.rules)]) + "\n"


def free_name(wanted: str, taken: Container[str]) -> str:
    """The name, with a number if it is taken."""
    names = chain([wanted], (f"{wanted}_{number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def statement_of(addition: Library, library: Library, verb: str = "") -> str:
    """The addition's rule as a sentence with data types: `If Person A is Age X years old and ..., then Person A ...`.

    `verb` replaces that of the conclusion.
    """
    (rule,) = addition.rules
    whole = with_additions(library, [addition])
    named = {variable.name: Constant(str(variable)) for variable in rule.variables}
    premise = " and ".join(literal_text(literal, whole, named) for literal in rule.literals)
    concluded = Atom(verb, rule.conclusion.atom.arguments) if verb else rule.conclusion.atom
    return f"If {premise}, then {atom_text(concluded, whole, named)}."


@dataclass(frozen=True, slots=True)
class _RewordedAtom:
    """An atom with a new verb. `signature`: its declaration, if no file has one."""

    atom: Atom
    signature: PredicateSignature | None = None
    notes: tuple[str, ...] = ()


class Expander:
    """Expands meta-rules of a library. New rules are compared with all other rules of the library."""

    def __init__(self, model: Generator, library: Library, metas: Sequence[Rule], settings: ExpansionSettings) -> None:
        self._model = model
        self._writer = FormWriter(model, settings.seed)
        self._whole = library
        self._settings = settings
        self.library = replace(library, rules=tuple(rule for rule in library.rules if rule not in metas))

    def expand(self, meta: Rule, earlier: Sequence[Library] = ()) -> tuple[list[Proposal], list[UnusableReply]]:
        """Make a proposal for each data type that gives a rule. `earlier`: additions that it must not repeat.

        Also returns the replies that gave none.
        """
        variables = {variable.name: variable for variable in meta.variables}
        variable = variables.get(self._settings.variable)
        if variable is None:
            raise HapaxError(
                f"Rule {meta.name} has no variable {self._settings.variable}.",
                Remedy("Give {} one of {}.", Setting("settings.variable"), ", ".join(variables)),
            )
        proposals: list[Proposal] = []
        left_out: list[UnusableReply] = []
        deferrals = DeferralCollector()
        for data_type in self._types(meta, variable):
            if isinstance(data_type, UnusableReply):
                left_out.append(data_type)
                continue
            # Where an answer will come later, the other types are asked for first.
            with deferrals:
                before = (*earlier, *(proposal.addition for proposal in proposals))
                try:
                    proposals.append(self._proposal(meta, variable, data_type, before))
                except UnusableReply as unusable:
                    left_out.append(unusable)
        deferrals.raise_first()
        return proposals, left_out

    # Data types

    def _types(self, meta: Rule, variable: Variable) -> Iterator[str | UnusableReply]:
        """The narrower types that the model names, and the parts of its reply that name no type."""
        literals = [str(item) for item in (*meta.literals, meta.conclusion) if variable in item.variables]
        reply = self._ask(types_prompt(" & ".join(literals), variable.name, variable.data_type, self._settings.types))
        kept: set[str] = set()
        for named in read_types(reply):
            # A reply may be longer than was asked for.
            if len(kept) == self._settings.types:
                break
            reason = self._misfit(named, variable.data_type, kept) if isinstance(named, str) else None
            if isinstance(named, str) and reason is None:
                kept.add(type_key(named))
            yield named if reason is None else UnusableReply(str(named), reason)
        if not kept:
            raise HapaxError(
                f"{self._model.identity.name} named no data type below {variable.data_type} for rule "
                f"{meta.name}; its reply begins {reply[:60]!r}.",
                Remedy(
                    "Name a model that follows instructions with {} ({}).",
                    Setting("model"),
                    Operation("list_models"),
                ),
            )

    def _misfit(self, data_type: str, upper: str, kept: set[str]) -> str | None:
        """Why a type cannot be a new subtype of `upper`; None if it can be."""
        library = self._whole
        if type_key(data_type) in kept:
            return "was named before"
        if type_key(data_type) == type_key(upper) or library.is_declared_subtype(upper, data_type):
            return f"is not narrower than {upper}"
        if library.is_person(data_type) and not library.is_person(upper):
            return f"is declared a type of persons, and {upper} is not"
        if library.is_numeric(data_type) and not library.is_numeric(upper):
            return f"is declared a type of numbers, and {upper} is not"
        return None

    # Rules

    def _proposal(self, meta: Rule, variable: Variable, data_type: str, earlier: Sequence[Library]) -> Proposal:
        """The rule over the narrower type with the first verb that makes it acceptable. Raises UnusableReply."""
        narrow = Variable(variable.name, data_type)
        narrowed, notes = self._narrowed(meta, variable, narrow)
        verbs, unusable = self._conclusion_verbs(meta, narrowed, narrow)
        notes += unusable
        old = narrowed.rules[0].conclusion.atom
        signature = self._signature(meta.conclusion.atom, variable, narrow)
        refused: dict[str, str] = {}
        for verb in verbs:
            try:
                atom = self._reworded_atom(old, verb, signature, narrowed.subtypes)
                addition = self._concluded(narrowed, atom)
                self._refuse_useless(addition, earlier)
            except UnusableReply as objection:
                refused[verb.words] = objection.reason
                continue
            rule = addition.rules[0]
            alternatives = [item.words for item in verbs if item is not verb and item.words not in refused]
            notes += [*atom.notes, *(f"not '{words}': {reason}" for words, reason in refused.items())]
            if subsumes(meta, rule, with_additions(self.library, [addition])):
                notes.append(f"rule {meta.name} states as much: use this one without it")
            if alternatives:
                notes.append(f"other verbs: {'; '.join(alternatives)}")
            origin = f"{data_type} in {meta.name}, proposed by {self._model.identity.name}"
            statement = statement_of(addition, self.library)
            # One reply may be of no use at several places.
            return Proposal(addition, f"@name {rule.name}", statement, origin, tuple(dict.fromkeys(notes)))
        raise UnusableReply(data_type, f"gives no rule: {next(iter(refused.values()))}")

    def _refuse_useless(self, addition: Library, earlier: Sequence[Library]) -> None:
        """Raise UnusableReply for a rule that has an error beside the library, or concludes nothing new there.

        The library and the earlier additions must be free of errors: every error is taken to be the addition's.
        """
        rule = addition.rules[0]
        for diagnostic in check_library(with_additions(self.library, (*earlier, addition))):
            is_redundant = diagnostic.code in _REDUNDANT and diagnostic.place.file == rule.place.file
            if is_redundant or diagnostic.severity is Severity.ERROR:
                raise UnusableReply(rule.name, f"{diagnostic.code}: {diagnostic.message}")

    def _narrowed(self, meta: Rule, variable: Variable, narrow: Variable) -> tuple[Library, list[str]]:
        """The meta-rule over the narrower type, with fitting verbs in its premise only, and notes for a person."""
        known = self._whole.is_declared_subtype(narrow.data_type, variable.data_type)
        subtypes = () if known else ((narrow.data_type, variable.data_type),)
        premise: list[BodyLiteral] = []
        signatures: dict[str, PredicateSignature] = {}
        notes: list[str] = []
        for item in meta.premise:
            if not isinstance(item, Literal):
                premise.append(item)  # the parser gives the variables of comparisons their types
                continue
            reworded = self._premise_atom(item.atom, variable, narrow, subtypes)
            premise.append(Literal(reworded.atom, item.negated))
            notes += reworded.notes
            if reworded.signature is not None:
                signatures[reworded.signature.indicator] = reworded.signature
        rule = replace(
            meta,
            name=self._name(f"{meta.name}_{narrow.data_type}"),
            premise=tuple(premise),
            conclusion=meta.conclusion.replaced({variable.name: narrow}),
            # Only the default by person chooses the same variables over other types; else they are written out.
            generic_by=meta.generic_by if meta.generic_by is GenericBy.PERSON else GenericBy.ATTRIBUTE,
        )
        return Library((rule,), tuple(signatures.values()), subtypes), notes

    def _premise_atom(
        self, atom: Atom, variable: Variable, narrow: Variable, subtypes: Sequence[tuple[str, str]]
    ) -> _RewordedAtom:
        """The atom over the narrower type, with the model's verb if that can be used, else with its own."""
        narrowed = atom.replaced({variable.name: narrow})
        signature = self._signature(atom, variable, narrow)
        notes: tuple[str, ...] = ()
        if self._settings.verbs and narrowed != atom and signature.kind is not PredicateKind.COMPUTED:
            try:
                return self._reworded_atom(narrowed, self._ask_verb(atom, narrowed), signature, subtypes)
            except UnusableReply as unusable:
                notes = _notes(unusable)
        # The verb that is kept was declared for the wide type.
        own = self._signature(atom, variable, variable)
        try:
            kept = self._reworded_atom(narrowed, Verb(atom.predicate), own, subtypes)
        except UnusableReply:
            return _RewordedAtom(narrowed, notes=notes)
        return replace(kept, notes=(*notes, *kept.notes))

    def _reworded_atom(
        self, atom: Atom, verb: Verb, signature: PredicateSignature, subtypes: Sequence[tuple[str, str]]
    ) -> _RewordedAtom:
        """The atom with another verb. `signature`: the declaration that a new predicate needs. Raises UnusableReply."""
        new = Atom(verb.name, atom.arguments)
        # `can_use` in place of `cannot_operate` would make the rule its own contrary.
        if default_polarity(Literal(new)) is not default_polarity(Literal(atom)):
            raise UnusableReply(verb.words, f"is the contrary of '{atom.predicate.replace('_', ' ')}'")
        library = with_additions(self._whole, [Library(subtypes=tuple(subtypes))])
        known = library.declared_as(verb.name)
        if known is None:
            sentences = sentences_for(new, Templates(verb.sentence) if verb.sentence else None, self._writer)
            declared = replace(signature, name=verb.name, templates=sentences.templates, declared=True)
            return _RewordedAtom(new, declared, sentences.notes)
        fits = known.indicator == new.indicator and known.kind is signature.kind
        # `fits` first: with another number of arguments there would be no pairs.
        if fits and all(
            library.is_subtype(term.data_type, wanted)
            for term, wanted in zip(new.arguments, known.argument_types, strict=True)
            if isinstance(term, Variable)
        ):
            return _RewordedAtom(new)
        raise UnusableReply(
            verb.words, f"is declared differently: {known.kind} {known.name}({', '.join(known.argument_types)})"
        )

    def _signature(self, atom: Atom, variable: Variable, narrow: Variable) -> PredicateSignature:
        """The predicate's signature, with the narrower type in place of the variable's."""
        own = self._whole.signature(atom.indicator)
        types = zip(atom.arguments, own.argument_types, strict=True)
        narrowed = tuple(narrow.data_type if term == variable else declared for term, declared in types)
        kind = own.kind if own.declared else guessed_kind(atom, self._whole)
        return replace(own, argument_types=narrowed, kind=kind)

    def _concluded(self, addition: Library, conclusion: _RewordedAtom) -> Library:
        """The addition with this conclusion. It is printed and parsed again, so that it can be written to a file.

        Raises UnusableReply if it cannot.
        """
        rule = replace(addition.rules[0], conclusion=Literal(conclusion.atom))
        used = {atom.indicator for atom in rule.atoms}
        signatures: dict[str, PredicateSignature] = {}
        # A declaration only for verbs that the rule has in the end.
        for signature in (*addition.signatures, conclusion.signature):
            if signature is not None and signature.indicator in used:
                signatures[signature.indicator] = signature
        concluded = replace(addition, rules=(rule,), signatures=tuple(signatures.values()))
        try:
            return parse_addition(f"proposal {rule.name}", addition_text(concluded, self.library), self.library)
        except RulesRejected as rejected:
            reason = f"cannot be written as a rule: {rejected.diagnostics[0].message}"
            raise UnusableReply(conclusion.atom.predicate, reason) from None

    def _name(self, wanted: str) -> str:
        """The name in lower case, with a number if a rule has it already."""
        plain = "_".join(re.findall(r"\w+", wanted.lower()))
        return free_name(plain, {rule.name for rule in self._whole.rules})

    # Verbs

    def _conclusion_verbs(
        self, meta: Rule, narrowed: Library, narrow: Variable
    ) -> tuple[tuple[Verb, ...], tuple[str, ...]]:
        """Verbs for the conclusion: the one that the model prefers, those of its sentences, and the meta-rule's own.

        Also notes about replies that contain no verb.
        """
        notes: tuple[str, ...] = ()
        old, atom = meta.conclusion.atom, narrowed.rules[0].conclusion.atom
        found: dict[str, Verb] = {}
        if self._settings.verbs and narrow in atom.variables:
            arguments = _spelled(atom)
            reply = self._ask(conclusion_prompt(statement_of(narrowed, self.library, "[mask]").rstrip(".")))
            sentences = {verb.name: verb for verb in read_conclusions(reply, arguments)}
            try:
                best = self._ask_verb(old, atom)
                # The preferred verb comes first, with the sentence in which the model used it.
                found = {best.name: sentences.get(best.name, best)}
            except UnusableReply as unusable:
                notes = _notes(unusable)
            found |= sentences
        # The meta-rule's own verb comes last, as the fallback.
        return tuple({**found, old.predicate: Verb(old.predicate)}.values()), notes

    def _ask_verb(self, old: Atom, new: Atom) -> Verb:
        return read_predicate(self._ask(verb_prompt(str(old), str(Atom("[mask]", new.arguments)))), _spelled(new))

    def _ask(self, prompt: str) -> str:
        parameters = GenerationParameters(temperature=0.7, max_tokens=REPLY_TOKENS, seed=self._settings.seed)
        (reply,) = self._model.generate([GenerationRequest(prompt)], parameters)
        return reply.text


def _spelled(atom: Atom) -> list[str]:
    """The arguments as prompts name them: `Person A`, or a constant's text."""
    return [str(term) if isinstance(term, Variable) else str(term.value) for term in atom.arguments]


def _notes(reply: UnusableReply) -> tuple[str, ...]:
    """A note about a reply that is not a verb; none about an empty one."""
    return (f"not '{reply.said}': {reply.reason}",) if reply.said else ()
