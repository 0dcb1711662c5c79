"""Asks a model for narrower data types and fitting verbs, and makes a rule of each answer that is one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count

from engine.expansion.replies import LeftOut, Verb, read_conclusions, read_predicate, read_types, read_verb
from engine.expansion.sentences import guessed_kind, sentences_for
from engine.expansion.verdicts import joined, refusal, verdict
from grammar.defaults import default_polarity
from grammar.errors import HapaxError, RulesRejected
from grammar.parser import parse_addition
from grammar.printing import rule_text, signature_text
from grammar.rules import GenericBy, Library, PredicateKind, PredicateSignature, Rule, Templates, type_key
from grammar.subsumption import subsumes
from grammar.terms import Atom, BodyLiteral, Constant, Literal, Variable
from grammar.verbalize import atom_text, literal_text
from kb.records import content_id
from llm_oracle.calls import GoingOn
from llm_oracle.prompts import conclusion_prompt, types_prompt, verb_prompt
from llm_oracle.protocols import GenerationParameters, GenerationRequest, Generator
from llm_oracle.rewriting import FormWriter

REPLY_TOKENS = 512
"""Of a reply; ten data types with an explanation each need about 300."""


@dataclass(frozen=True, slots=True)
class ExpansionSettings:
    """What is expanded. `types`: how many data types are asked for; `verbs`: whether their verbs are, too."""

    variable: str
    types: int = 10
    verbs: bool = True
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """A new rule with its declarations. `verbs`: what else its conclusion could say; `notes`: what to look at."""

    id: str
    meta: str
    data_type: str
    addition: Library
    verbs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def rule(self) -> Rule:
        return self.addition.rules[0]


@dataclass(frozen=True, slots=True)
class Expansion:
    """What came of a meta-rule."""

    proposals: tuple[Proposal, ...]
    left_out: tuple[LeftOut, ...]


def addition_text(addition: Library, library: Library) -> str:
    """The addition as rule text; `library`: what it is added to, which decides what goes without saying."""
    whole = joined(library, [addition])
    lines = [f"type {lower} < {upper}" for lower, upper in addition.subtypes]
    lines += [signature_text(one) for one in addition.signatures if one.declared]
    return "\n".join([*lines, *(rule_text(rule, whole) for rule in addition.rules)]) + "\n"


def in_words(addition: Library, library: Library, verb: str = "") -> str:
    """The addition's rule as a sentence with data types: `If Person A is Age X years old and ..., then Person A ...`.

    `verb`: what stands in the conclusion instead of its own.
    """
    (rule,) = addition.rules
    whole = joined(library, [addition])
    named = {one.name: Constant(str(one)) for one in rule.variables}
    premise = " and ".join(literal_text(one, whole, named) for one in rule.literals)
    concluded = Atom(verb, rule.conclusion.atom.arguments) if verb else rule.conclusion.atom
    return f"If {premise}, then {atom_text(concluded, whole, named)}."


@dataclass(frozen=True, slots=True)
class _Spoken:
    """An atom with a new verb, and its declaration where no file has it."""

    atom: Atom
    signature: PredicateSignature | None = None
    notes: tuple[str, ...] = ()


class Expander:
    """Expands meta-rules beside a library.

    `library`: everything, the meta-rules too; new rules are compared with all its rules but these.
    """

    def __init__(self, model: Generator, library: Library, metas: Sequence[Rule], settings: ExpansionSettings) -> None:
        self._model = model
        self._writer = FormWriter(model, settings.seed)
        self._whole = library
        self._settings = settings
        self.library = replace(library, rules=tuple(rule for rule in library.rules if rule not in metas))

    def expand(self, meta: Rule, earlier: Sequence[Library] = ()) -> Expansion:
        """A proposal for each data type that gives a rule. `earlier`: additions that it must not repeat."""
        variable = next((one for one in meta.variables if one.name == self._settings.variable), None)
        if variable is None:
            raise HapaxError(
                f"Rule {meta.name} has no variable {self._settings.variable}. "
                f"--variable is one of {', '.join(one.name for one in meta.variables)}."
            )
        found: list[Proposal] = []
        left_out: list[LeftOut] = []
        going_on = GoingOn()
        for said in self._types(meta, variable):
            with going_on:
                before = (*earlier, *(one.addition for one in found))
                made = self._proposal(meta, variable, said, before) if isinstance(said, str) else said
                if isinstance(made, Proposal):
                    found.append(made)
                else:
                    left_out.append(made)
        going_on.settle()
        return Expansion(tuple(found), tuple(left_out))

    def reworded(self, addition: Library, words: str) -> Library | LeftOut:
        """The addition with another verb in its conclusion: words, or a sentence with slots."""
        old = addition.rules[0].conclusion.atom
        verb = read_verb(words, len(old.arguments))
        if verb is None:
            return LeftOut(words, "is no verb: write words such as 'cannot drive', or a sentence with all its slots")
        own = joined(self.library, [addition]).signature(old.indicator)
        types = zip(old.arguments, own.argument_types, strict=True)
        signature = replace(
            own, argument_types=tuple(one.data_type if isinstance(one, Variable) else wide for one, wide in types)
        )
        spoken = self._spoken(old, verb, signature, addition.subtypes)
        if isinstance(spoken, LeftOut):
            return spoken
        return self._concluded(addition, spoken)

    # Data types

    def _types(self, meta: Rule, variable: Variable) -> Iterator[str | LeftOut]:
        holding = [str(one) for one in (*meta.literals, meta.conclusion) if variable in one.variables]
        reply = self._asked(types_prompt(" & ".join(holding), variable.name, variable.data_type, self._settings.types))
        kept: set[str] = set()
        for said in read_types(reply):
            if len(kept) == self._settings.types:
                break
            reason = self._unfit(said, variable.data_type, kept) if isinstance(said, str) else None
            if isinstance(said, str) and reason is None:
                kept.add(type_key(said))
            yield LeftOut(said, reason) if isinstance(said, str) and reason else said
        if not kept:
            raise HapaxError(
                f"{self._model.identity.name} named no data type below {variable.data_type} for rule {meta.name}; its "
                f"reply begins {reply[:60]!r}. Name a model that follows instructions with -m (`hapax models`)."
            )

    def _unfit(self, data_type: str, upper: str, kept: set[str]) -> str | None:
        library = self._whole
        if type_key(data_type) in kept:
            return "was named before"
        if type_key(data_type) == type_key(upper) or library.is_declared_subtype(upper, data_type):
            return f"is not narrower than {upper}"
        if library.is_person(data_type) and not library.is_person(upper):
            return f"is declared a type of persons, and {upper} is none"
        if library.is_numeric(data_type) and not library.is_numeric(upper):
            return f"is declared a type of numbers, and {upper} is none"
        return None

    # Rules

    def _proposal(
        self, meta: Rule, variable: Variable, data_type: str, earlier: Sequence[Library]
    ) -> Proposal | LeftOut:
        """The rule with the first verb against whose rule nothing stands."""
        narrow = Variable(variable.name, data_type)
        narrowed, notes = self._narrowed(meta, variable, narrow)
        verbs = self._conclusion_verbs(meta, narrowed, narrow)
        old = narrowed.rules[0].conclusion.atom
        signature = self._signature(meta.conclusion.atom, variable, narrow)
        refused: dict[str, str] = {}
        for verb in verbs:
            spoken = self._spoken(old, verb, signature, narrowed.subtypes)
            made = spoken if isinstance(spoken, LeftOut) else self._concluded(narrowed, spoken)
            against = made.reason if isinstance(made, LeftOut) else refusal(made, verdict(made, self.library, earlier))
            if against is None and isinstance(made, Library) and isinstance(spoken, _Spoken):
                others = tuple(one.words for one in verbs if one is not verb and one.words not in refused)
                identity = content_id("proposal", meta.sentence, made.rules[0].sentence)[:12]
                told = [*notes, *spoken.notes, *(f"not '{words}': {reason}" for words, reason in refused.items())]
                if subsumes(meta, made.rules[0], joined(self.library, [made])):
                    told.append(f"rule {meta.name} says as much: use this one without it")
                return Proposal(identity, meta.name, data_type, made, others, tuple(told))
            refused[verb.words] = str(against)
        return LeftOut(data_type, f"gives no rule: {next(iter(refused.values()))}")

    def _narrowed(self, meta: Rule, variable: Variable, narrow: Variable) -> tuple[Library, list[str]]:
        """The meta-rule over the narrower type, with the verbs of its premise; its conclusion keeps its own verb."""
        known = self._whole.is_declared_subtype(narrow.data_type, variable.data_type)
        subtypes = () if known else ((narrow.data_type, variable.data_type),)
        premise: list[BodyLiteral] = []
        signatures: dict[str, PredicateSignature] = {}
        notes: list[str] = []
        for item in meta.premise:
            if not isinstance(item, Literal):
                premise.append(item)  # the parser gives the variables of comparisons their types
                continue
            spoken = self._premise_atom(item.atom, variable, narrow, subtypes)
            premise.append(Literal(spoken.atom, item.negated))
            notes += spoken.notes
            if spoken.signature is not None:
                signatures[spoken.signature.indicator] = spoken.signature
        rule = replace(
            meta,
            name=self._name(f"{meta.name}_{narrow.data_type}"),
            premise=tuple(premise),
            conclusion=Literal(_put(meta.conclusion.atom, variable, narrow)),
            generic_by=meta.generic_by if meta.generic_by is GenericBy.PERSON else GenericBy.ATTRIBUTE,
        )
        return Library((rule,), tuple(signatures.values()), subtypes), notes

    def _premise_atom(
        self, atom: Atom, variable: Variable, narrow: Variable, subtypes: Sequence[tuple[str, str]]
    ) -> _Spoken:
        """The atom over the narrower type, with the verb that the model prefers, if that can be used."""
        put = _put(atom, variable, narrow)
        signature = self._signature(atom, variable, narrow)
        if self._settings.verbs and put != atom and signature.kind is not PredicateKind.COMPUTED:
            verb = self._one_verb(atom, put)
            spoken = None if verb is None else self._spoken(put, verb, signature, subtypes)
            if isinstance(spoken, _Spoken):
                return spoken
        kept = self._spoken(put, Verb(atom.predicate), self._signature(atom, variable, variable), subtypes)
        return kept if isinstance(kept, _Spoken) else _Spoken(put)

    def _spoken(
        self, atom: Atom, verb: Verb, signature: PredicateSignature, subtypes: Sequence[tuple[str, str]]
    ) -> _Spoken | LeftOut:
        """The atom with the verb. `signature`: the old predicate's over the narrower type, for a new one."""
        new = Atom(verb.name, atom.arguments)
        if default_polarity(Literal(new)) is not default_polarity(Literal(atom)):
            return LeftOut(verb.words, f"says the contrary of '{atom.predicate.replace('_', ' ')}'")
        library = joined(self._whole, [Library(subtypes=tuple(subtypes))])
        known = library.declared_as(verb.name)
        if known is None:
            made = sentences_for(new, Templates(verb.sentence) if verb.sentence else None, self._writer)
            declared = replace(signature, name=verb.name, templates=made.templates, declared=True)
            return _Spoken(new, declared, made.notes)
        fits = known.indicator == new.indicator and known.kind is signature.kind
        if fits and all(
            library.is_subtype(term.data_type, wanted)
            for term, wanted in zip(new.arguments, known.argument_types, strict=True)
            if isinstance(term, Variable)
        ):
            return _Spoken(new)
        return LeftOut(
            verb.words, f"is declared otherwise: {known.kind} {known.name}({', '.join(known.argument_types)})"
        )

    def _signature(self, atom: Atom, variable: Variable, narrow: Variable) -> PredicateSignature:
        """The predicate's own signature, with the narrower type where the variable stands."""
        own = self._whole.signature(atom.indicator)
        types = zip(atom.arguments, own.argument_types, strict=True)
        narrowed = tuple(narrow.data_type if term == variable else one for term, one in types)
        kind = own.kind if own.declared else guessed_kind(atom, self._whole)
        return replace(own, argument_types=narrowed, kind=kind)

    def _concluded(self, addition: Library, spoken: _Spoken) -> Library | LeftOut:
        """The addition with that conclusion, written and read back: what cannot be read is nobody's rule."""
        rule = replace(addition.rules[0], conclusion=Literal(spoken.atom))
        used = {atom.indicator for atom in rule.atoms}
        kept = (one for one in (*addition.signatures, spoken.signature) if one is not None and one.indicator in used)
        made = replace(addition, rules=(rule,), signatures=tuple({one.indicator: one for one in kept}.values()))
        try:
            return parse_addition(f"proposal {rule.name}", addition_text(made, self.library), self.library)
        except RulesRejected as rejected:
            return LeftOut(spoken.atom.predicate, f"cannot be written as a rule: {rejected.diagnostics[0].message}")

    def _name(self, wanted: str) -> str:
        """The name in small letters, with a number where a rule has it already."""
        plain = "_".join(re.findall(r"\w+", wanted.lower()))
        taken = {rule.name for rule in self._whole.rules}
        return next(name for name in chain([plain], (f"{plain}_{number}" for number in count(2))) if name not in taken)

    # Verbs

    def _conclusion_verbs(self, meta: Rule, narrowed: Library, narrow: Variable) -> tuple[Verb, ...]:
        """The model's verbs for the conclusion, the best first, and the meta-rule's own at the end."""
        old, atom = meta.conclusion.atom, narrowed.rules[0].conclusion.atom
        found: dict[str, Verb] = {}
        if self._settings.verbs and narrow in atom.variables:
            arguments = [str(one) if isinstance(one, Variable) else str(one.value) for one in atom.arguments]
            reply = self._asked(conclusion_prompt(in_words(narrowed, self.library, "[mask]").rstrip(".")))
            sentences = {one.name: one for one in read_conclusions(reply, arguments) if isinstance(one, Verb)}
            best = self._one_verb(old, atom)
            found = {} if best is None else {best.name: sentences.get(best.name, best)}
            found |= sentences
        return tuple({**found, old.predicate: Verb(old.predicate)}.values())

    def _one_verb(self, old: Atom, new: Atom) -> Verb | None:
        return read_predicate(self._asked(verb_prompt(str(old), str(Atom("[mask]", new.arguments)))))

    def _asked(self, prompt: str) -> str:
        parameters = GenerationParameters(temperature=0.7, max_tokens=REPLY_TOKENS, seed=self._settings.seed)
        (reply,) = self._model.generate([GenerationRequest(prompt)], parameters)
        return reply.text


def _put(atom: Atom, variable: Variable, narrow: Variable) -> Atom:
    return Atom(atom.predicate, tuple(narrow if term == variable else term for term in atom.arguments))
