"""Ask a model for narrower data types and fitting verbs, and turn its replies into proposed rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Annotated

from hapax.engine.expansion.replies import (
    UnusableReply,
    Verb,
    is_sentence,
    read_conclusions,
    read_predicate,
    read_types,
    read_verb,
)
from hapax.engine.expansion.sentences import guessed_kind, sentences_for
from hapax.engine.expansion.verdicts import check_addition, objection_to, with_additions
from hapax.grammar.arguments import checked
from hapax.grammar.attributes import GenericBy, default_polarity
from hapax.grammar.errors import HapaxError, RulesRejected
from hapax.grammar.options import Option, Seed
from hapax.grammar.parser import parse_addition
from hapax.grammar.printing import rule_text, signature_text
from hapax.grammar.remedies import Operation, Remedy, Setting
from hapax.grammar.rules import Library, PredicateKind, PredicateSignature, Rule, Templates, type_key
from hapax.grammar.subsumption import subsumes
from hapax.grammar.terms import Atom, BodyLiteral, Constant, Literal, Variable
from hapax.grammar.verbalize import atom_text, literal_text
from hapax.kb.records import content_id
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.prompts import conclusion_prompt, types_prompt, verb_prompt
from hapax.llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator
from hapax.llm_oracle.rewriting import FormWriter

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
    """A new rule with its declarations."""

    id: str
    meta: str
    data_type: str
    addition: Library
    verbs: tuple[str, ...] = ()
    """Other verbs for the conclusion."""
    notes: tuple[str, ...] = ()
    """Points that a person should look at."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Additional columns of its row in the sheet."""

    @property
    def rule(self) -> Rule:
        return self.addition.rules[0]


@dataclass(frozen=True, slots=True)
class Expansion:
    """The result of expanding a meta-rule."""

    proposals: tuple[Proposal, ...]
    left_out: tuple[UnusableReply, ...]


def addition_text(addition: Library, library: Library) -> str:
    """The addition as rule text. Parts that the library makes superfluous, such as default annotations, are omitted."""
    whole = with_additions(library, [addition])
    lines = [f"type {lower} < {upper}" for lower, upper in addition.subtypes]
    lines += [signature_text(signature) for signature in addition.signatures if signature.declared]
    return "\n".join([*lines, *(rule_text(rule, whole) for rule in addition.rules)]) + "\n"


def rule_sentence(addition: Library, library: Library, verb: str = "") -> str:
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

    def expand(self, meta: Rule, earlier: Sequence[Library] = ()) -> Expansion:
        """Make a proposal for each data type that gives a rule. `earlier`: additions that it must not repeat."""
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
                result = self._proposal(meta, variable, data_type, before)
                if isinstance(result, Proposal):
                    proposals.append(result)
                else:
                    left_out.append(result)
        deferrals.raise_first()
        return Expansion(tuple(proposals), tuple(left_out))

    def reworded(self, addition: Library, words: str) -> Library | UnusableReply:
        """The addition with another verb in its conclusion. `words`: the verb, or a sentence with slots."""
        old = addition.rules[0].conclusion.atom
        arguments = _spelled(old)
        verb = None if is_sentence(words, arguments) else read_verb(words, len(arguments))
        if verb is None:
            return UnusableReply(
                words, "is not a verb: write words such as 'cannot drive', or a sentence with all slots"
            )
        own = with_additions(self.library, [addition]).signature(old.indicator)
        types = [
            term.data_type if isinstance(term, Variable) else declared
            for term, declared in zip(old.arguments, own.argument_types, strict=True)
        ]
        signature = replace(own, argument_types=tuple(types))
        reworded = self._reworded_atom(old, verb, signature, addition.subtypes)
        if isinstance(reworded, UnusableReply):
            return reworded
        return self._concluded(addition, reworded)

    # Data types

    def _types(self, meta: Rule, variable: Variable) -> Iterator[str | UnusableReply]:
        """The narrower types that the model names, and the parts of its reply that name no type."""
        literals = [str(item) for item in (*meta.literals, meta.conclusion) if variable in item.variables]
        reply = self._ask(types_prompt(" & ".join(literals), variable.name, variable.data_type, self._settings.types))
        kept: set[str] = set()
        for data_type in read_types(reply):
            # A reply may be longer than was asked for.
            if len(kept) == self._settings.types:
                break
            if isinstance(data_type, UnusableReply):
                yield data_type
                continue
            reason = self._misfit(data_type, variable.data_type, kept)
            if reason is not None:
                yield UnusableReply(data_type, reason)
                continue
            kept.add(type_key(data_type))
            yield data_type
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

    def _proposal(
        self, meta: Rule, variable: Variable, data_type: str, earlier: Sequence[Library]
    ) -> Proposal | UnusableReply:
        """The rule over the narrower type with the first verb that makes it acceptable."""
        narrow = Variable(variable.name, data_type)
        narrowed, notes = self._narrowed(meta, variable, narrow)
        verbs, unusable = self._conclusion_verbs(meta, narrowed, narrow)
        notes += unusable
        old = narrowed.rules[0].conclusion.atom
        signature = self._signature(meta.conclusion.atom, variable, narrow)
        refused: dict[str, str] = {}
        for verb in verbs:
            atom = self._reworded_atom(old, verb, signature, narrowed.subtypes)
            if isinstance(atom, UnusableReply):
                refused[verb.words] = atom.reason
                continue
            addition = self._concluded(narrowed, atom)
            if isinstance(addition, UnusableReply):
                refused[verb.words] = addition.reason
                continue
            objection = objection_to(addition, check_addition(addition, self.library, earlier))
            if objection is not None:
                refused[verb.words] = objection
                continue
            rule = addition.rules[0]
            alternatives = tuple(item.words for item in verbs if item is not verb and item.words not in refused)
            notes += [*atom.notes, *(f"not '{words}': {reason}" for words, reason in refused.items())]
            if subsumes(meta, rule, with_additions(self.library, [addition])):
                notes.append(f"rule {meta.name} states as much: use this one without it")
            # From the sentences alone: a rule that is only renamed stays the same proposal.
            identity = content_id("proposal", meta.sentence, rule.sentence)[:12]
            # One reply may be of no use at several places.
            return Proposal(identity, meta.name, data_type, addition, alternatives, tuple(dict.fromkeys(notes)))
        return UnusableReply(data_type, f"gives no rule: {next(iter(refused.values()))}")

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
            conclusion=Literal(_substituted(meta.conclusion.atom, variable, narrow)),
            # Only the default by person chooses the same variables over other types; else they are written out.
            generic_by=meta.generic_by if meta.generic_by is GenericBy.PERSON else GenericBy.ATTRIBUTE,
        )
        return Library((rule,), tuple(signatures.values()), subtypes), notes

    def _premise_atom(
        self, atom: Atom, variable: Variable, narrow: Variable, subtypes: Sequence[tuple[str, str]]
    ) -> _RewordedAtom:
        """The atom over the narrower type, with the model's verb if that can be used, else with its own."""
        narrowed = _substituted(atom, variable, narrow)
        signature = self._signature(atom, variable, narrow)
        notes: tuple[str, ...] = ()
        if self._settings.verbs and narrowed != atom and signature.kind is not PredicateKind.COMPUTED:
            verb = self._ask_verb(atom, narrowed)
            if isinstance(verb, UnusableReply):
                notes = _notes(verb)
            else:
                reworded = self._reworded_atom(narrowed, verb, signature, subtypes)
                if isinstance(reworded, _RewordedAtom):
                    return reworded
        # The verb that is kept was declared for the wide type.
        own = self._signature(atom, variable, variable)
        kept = self._reworded_atom(narrowed, Verb(atom.predicate), own, subtypes)
        if not isinstance(kept, _RewordedAtom):
            return _RewordedAtom(narrowed, notes=notes)
        return replace(kept, notes=(*notes, *kept.notes))

    def _reworded_atom(
        self, atom: Atom, verb: Verb, signature: PredicateSignature, subtypes: Sequence[tuple[str, str]]
    ) -> _RewordedAtom | UnusableReply:
        """The atom with another verb. `signature`: the declaration that a new predicate needs."""
        new = Atom(verb.name, atom.arguments)
        # `can_use` in place of `cannot_operate` would make the rule its own contrary.
        if default_polarity(Literal(new)) is not default_polarity(Literal(atom)):
            return UnusableReply(verb.words, f"is the contrary of '{atom.predicate.replace('_', ' ')}'")
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
        return UnusableReply(
            verb.words, f"is declared differently: {known.kind} {known.name}({', '.join(known.argument_types)})"
        )

    def _signature(self, atom: Atom, variable: Variable, narrow: Variable) -> PredicateSignature:
        """The predicate's signature, with the narrower type in place of the variable's."""
        own = self._whole.signature(atom.indicator)
        types = zip(atom.arguments, own.argument_types, strict=True)
        narrowed = tuple(narrow.data_type if term == variable else declared for term, declared in types)
        kind = own.kind if own.declared else guessed_kind(atom, self._whole)
        return replace(own, argument_types=narrowed, kind=kind)

    def _concluded(self, addition: Library, conclusion: _RewordedAtom) -> Library | UnusableReply:
        """The addition with this conclusion. It is printed and parsed again, so that it can be written to a file."""
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
            return UnusableReply(conclusion.atom.predicate, reason)

    def _name(self, wanted: str) -> str:
        """The name in lower case, with a number if a rule has it already."""
        plain = "_".join(re.findall(r"\w+", wanted.lower()))
        taken = {rule.name for rule in self._whole.rules}
        names = chain([plain], (f"{plain}_{number}" for number in count(2)))
        return next(name for name in names if name not in taken)

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
            reply = self._ask(conclusion_prompt(rule_sentence(narrowed, self.library, "[mask]").rstrip(".")))
            sentences = {verb.name: verb for verb in read_conclusions(reply, arguments) if isinstance(verb, Verb)}
            best = self._ask_verb(old, atom)
            if isinstance(best, UnusableReply):
                notes = _notes(best)
            else:
                # The preferred verb comes first, with the sentence in which the model used it.
                found = {best.name: sentences.get(best.name, best)}
            found |= sentences
        # The meta-rule's own verb comes last, as the fallback.
        return tuple({**found, old.predicate: Verb(old.predicate)}.values()), notes

    def _ask_verb(self, old: Atom, new: Atom) -> Verb | UnusableReply:
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


def _substituted(atom: Atom, variable: Variable, narrow: Variable) -> Atom:
    return Atom(atom.predicate, tuple(narrow if term == variable else term for term in atom.arguments))
