"""The files of an expansion: proposals are added to a rule file, as comments that a person makes rules of.

LINK leaves out predicates beyond a model's knowledge (section 2.2): `grammar/checking/predicate_checks.py` recognises
some by their words; here a model is asked about the others, and writes sentences that the grammar cannot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import indent

from hapax.engine.expansion.propose import (
    Expander,
    ExpansionSettings,
    Proposal,
    UnusableReply,
    free_name,
    guessed_kind,
    sentences_for,
    with_additions,
)
from hapax.grammar.arguments import checked
from hapax.grammar.checking import faults
from hapax.grammar.checking.library_checks import check_library
from hapax.grammar.checking.predicate_checks import asked_atoms
from hapax.grammar.data_types import type_key
from hapax.grammar.errors import Diagnostic, HapaxError, Place, RulesRejected, Severity
from hapax.grammar.parsing.parser import load_library, parse_addition, rule_files
from hapax.grammar.rule_paths import rule_paths
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant
from hapax.grammar.writing.printing import rule_text, signature_text
from hapax.grammar.writing.verbalize import atom_text
from hapax.grammar.writing.words import one_line
from hapax.kb.files.unfinished import replace_file
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.budget import DeferralCollector
from hapax.llm_oracle.journaled_models import JournaledCritic, JournaledGenerator
from hapax.llm_oracle.protocols import CRITIC, KNOWLEDGE, CriticScore
from hapax.llm_oracle.questions.prompts import scope_claim, sense_claim
from hapax.llm_oracle.questions.rewriting import FormWriter
from hapax.llm_oracle.registry import open_instructed, with_journal


@dataclass(frozen=True, slots=True)
class Sources:
    """The rules of an expansion.

    `beside`: the library with which the new rules will be used; `whole`: that library with the meta-rules. `own`:
    predicates that the meta-rules use for other types than the library; the library's are left out of both.
    """

    whole: Library
    beside: Library
    meta_file: Path
    own: tuple[str, ...] = ()

    def meta_rules(self, names: Sequence[str]) -> tuple[Rule, ...]:
        """The meta-rules of these names; without names all of them."""
        known = {rule.name: rule for rule in self.whole.rules if Path(rule.place.file).resolve() == self.meta_file}
        for name in names:
            if name not in known:
                raise HapaxError(f"{self.meta_file} has no rule {name!r}. It has {', '.join(known) or 'none'}.")
        if not known:
            raise HapaxError(f"{self.meta_file} has no rule to expand. Add a meta-rule over a wide type to it.")
        return tuple(known[name] for name in names or known)


@checked
@dataclass(frozen=True)
class ExpansionFiles:
    """The files of an expansion.

    `meta`: the file of the meta-rules; `names`: those to expand, all if empty; `output`: the rule file to which
    proposals are added; `beside`: rule files with which the new rules will be used.
    """

    meta: Path
    output: Path
    beside: Sequence[str | Path] = ()
    names: Sequence[str] = ()

    def read(self) -> Sources:
        """Load the rules, without the output of an earlier run. Raises RulesRejected for faulty ones."""
        files = [file for file in rule_files(rule_paths(self.beside)) if file.resolve() != self.output.resolve()]
        own: tuple[str, ...] = ()
        # The meta-rules may be among the library's files.
        if any(file.resolve() == self.meta.resolve() for file in files):
            beside = whole = load_library(files)
        else:
            meta, beside = load_library([self.meta]), load_library(files)
            own = _own_predicates(meta, beside)
            beside = _without(beside, own)
            whole = with_additions(beside, [meta]) if own else load_library([self.meta, *files])
        _refuse_errors(whole)
        return Sources(whole, beside, self.meta.resolve(), own)


def _own_predicates(meta: Library, beside: Library) -> tuple[str, ...]:
    """Indicators of predicates that the meta-rules declare or use with types that the library's do not cover."""
    joined = replace(beside, subtypes=(*beside.subtypes, *meta.subtypes))
    known = {signature.indicator: signature for signature in beside.completed().signatures}
    own: list[str] = []
    for signature in meta.completed().signatures:
        namesake = known.get(signature.indicator)
        if namesake is None:
            continue
        pairs = zip(signature.argument_types, namesake.argument_types, strict=True)
        # A declaration has to be the same; a use only has to fit.
        if signature.declared:
            is_covered = signature.kind is namesake.kind and all(type_key(a) == type_key(b) for a, b in pairs)
        else:
            is_covered = all(joined.is_subtype(a, b) for a, b in pairs)
        if not is_covered:
            own.append(signature.indicator)
    return tuple(own)


def _without(library: Library, indicators: Sequence[str]) -> Library:
    """The library without these predicates, and without the rules and facts that use them."""
    return replace(
        library,
        rules=tuple(rule for rule in library.rules if not any(atom.indicator in indicators for atom in rule.atoms)),
        signatures=tuple(item for item in library.signatures if item.indicator not in indicators),
        facts=tuple(fact for fact in library.facts if fact.indicator not in indicators),
    )


def _refuse_errors(library: Library) -> None:
    errors = [diagnostic for diagnostic in check_library(library) if diagnostic.severity is Severity.ERROR]
    if errors:
        raise RulesRejected(errors)


# --- the rule file ----------------------------------------------------------------------------------------------------

_NAME = re.compile(r"@name (\S+)")


def write_proposals(
    path: Path, proposals: Sequence[Proposal], whole: Library, beside: Library, *, accept: bool
) -> list[Proposal]:
    """Add the proposals that a rule file has not, with the declarations that they need, and return these.

    They are comments, which a person makes rules of; `accept`: rules at once. What the file has stays as it is, so that
    a proposal that was rejected is not made again as long as its comment is there. `whole`: the library of the
    proposals, `beside`: the one with which the file is used. Raises RulesRejected if accepted rules contradict.
    """
    text = path.read_text("utf-8") if path.exists() else ""
    new = [proposal for proposal in proposals if f"{proposal.key}\n" not in text]
    joined = with_additions(replace(whole, rules=()), [proposal.addition for proposal in new])
    for proposal in new:
        known = set(text.splitlines())
        declared = (line for line in _declarations(proposal.rule, joined, beside) if line not in known)
        taken = {*(rule.name for rule in beside.rules), *_NAME.findall(text)}
        rule = replace(proposal.rule, name=free_name(proposal.rule.name, taken))
        remarks = (f"# {one_line(remark)}" for remark in proposal.remarks)
        block = "\n".join([*remarks, *declared, rule_text(rule, joined)])
        text += f"{block if accept else indent(block, '# ', lambda _: True)}\n\n"
    if accept:  # each was accepted alone; as a whole they may still clash with each other
        _refuse_errors(with_additions(beside, [parse_addition(str(path), text, beside)]))
    if new:
        replace_file(path.resolve(), text)
    return new


def _declarations(rule: Rule, whole: Library, beside: Library) -> Iterator[str]:
    """The declarations that a rule needs and that the library beside it does not have in the same form."""
    known = {item.indicator: (item.kind, item.argument_types) for item in beside.signatures if item.declared}
    used = {atom.indicator for atom in rule.atoms}
    needed = [
        item
        for item in whole.signatures
        if item.declared and item.indicator in used and known.get(item.indicator) != (item.kind, item.argument_types)
    ]
    keys = {type_key(variable.data_type) for variable in rule.variables}
    for signature in needed:
        keys.update(map(type_key, signature.argument_types))
    pairs = [pair for pair in whole.subtypes if pair not in beside.subtypes]
    # A supertype may have a declared supertype itself.
    while upper := {type_key(upper) for lower, upper in pairs if type_key(lower) in keys} - keys:
        keys |= upper
    yield from (f"type {lower} < {upper}" for lower, upper in pairs if type_key(lower) in keys)
    yield from map(signature_text, needed)


@dataclass(frozen=True)
class ProposedRules:
    """Proposals of new rules. `added`: those that the rule file had not; `left_out`: replies that gave none."""

    proposals: tuple[Proposal, ...]
    added: tuple[Proposal, ...]
    left_out: tuple[UnusableReply, ...]


@checked
def expand_rules(
    files: ExpansionFiles,
    kb: KnowledgeBase,
    model: str,
    settings: ExpansionSettings,
    opening: OpeningOptions | None = None,
    *,
    accept: bool = False,
) -> ProposedRules:
    """Ask a model for narrower data types of a variable and for fitting verbs, and add the proposals to the output.

    They are comments there: remove the `#` of those that you accept. `accept`: they are rules at once. The same call
    again asks nothing twice, and adds nothing that the file has.
    """
    # First, so that faulty rules end it before anything is paid.
    sources = files.read()
    metas = sources.meta_rules(files.names)
    opening, journal = with_journal(kb, opening)
    opened = open_instructed(model, KNOWLEDGE, replace(opening, library=sources.whole))
    expander = Expander(JournaledGenerator(opened, journal, role="rules"), sources.whole, metas, settings)
    proposals: list[Proposal] = []
    left_out: list[UnusableReply] = []
    deferrals = DeferralCollector()
    for meta in metas:
        with deferrals:
            found, unusable = expander.expand(meta, [proposal.addition for proposal in proposals])
            proposals += found
            left_out += unusable
    deferrals.raise_first()
    added = write_proposals(files.output, proposals, sources.whole, sources.beside, accept=accept)
    return ProposedRules(tuple(proposals), tuple(added), tuple(left_out))


# --- sentences and scope of predicates --------------------------------------------------------------------------------


@checked
def verbalise_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Name, declaration and notes of each predicate that lacks a sentence; the model writes what grammar cannot.

    The notes name templates that failed.
    """
    opening, journal = with_journal(kb, opening)
    opened = open_instructed(model, KNOWLEDGE, replace(opening, library=rules))
    writer = FormWriter(JournaledGenerator(opened, journal, role="rules"), opening.seed)
    atoms: dict[str, Atom] = {}
    for rule in rules.rules:
        atoms |= {atom.indicator: atom for atom in rule.atoms}
    indicators = [*(signature.indicator for signature in rules.signatures), *atoms]
    deferrals = DeferralCollector()
    for signature in dict.fromkeys(map(rules.signature, indicators)):
        given = signature.templates
        if given and given.negated and given.question:
            continue
        # A declared predicate may occur in no rule.
        atom = atoms.get(signature.indicator) or Atom(signature.name, signature.parameters)
        made = None
        with deferrals:
            made = sentences_for(atom, given, writer)
        if made is None:
            continue
        kind = signature.kind if signature.declared else guessed_kind(atom, rules)
        declaration = replace(signature, kind=kind, templates=made.templates, declared=True)
        yield declaration.name, signature_text(declaration), made.notes
    deferrals.raise_first()


# --- predicates that a model cannot know ------------------------------------------------------------------------------

MIN_PROBABILITY = 0.5
"""P(yes) below which the model objects to a claim."""


@checked
def lint_rules(
    rules: Library, kb: KnowledgeBase, model: str, opening: OpeningOptions | None = None
) -> tuple[int, tuple[Diagnostic, ...]]:
    """Ask a model if predicates make sense over their types. Gives their number, and its warnings in rule order.

    A predicate counts once for each combination of argument types. A claim that the model refuses to judge gives no
    warning.
    """
    opening, journal = with_journal(kb, opening)
    critic = JournaledCritic(open_instructed(model, CRITIC, replace(opening, library=rules)), journal, role="rules")
    first: dict[tuple[str, tuple[str, ...]], tuple[Place, str, Atom]] = {}
    for place, owner, atom, types in asked_atoms(rules):
        first.setdefault((atom.indicator, types), (place, owner, atom))
    uses = list(first.values())
    sentences: list[str] = []
    for _, _, atom in uses:
        # Types stand in for values: `[Tree A] has the height [Height B]`.
        names = {variable.name: Constant(f"[{variable}]") for variable in atom.variables}
        sentences.append(atom_text(atom, rules, names))
    # One batch, the claims about scope first and those about sense after them.
    scores = critic.probabilities([*map(scope_claim, sentences), *map(sense_claim, sentences)])
    warnings: list[Diagnostic] = []
    for number, (place, owner, atom) in enumerate(uses):
        scope, sense = scores[number], scores[number + len(uses)]
        if _objects(sense):
            warnings.append(
                faults.SENSELESS.at(
                    place,
                    f"{atom}{owner} reads '{sentences[number]}', which makes no sense to {critic.identity.name} "
                    f"(P(yes) {sense.probability:.2f})",
                    "Choose a verb or types that fit each other, or correct the predicate's sentence",
                )
            )
        # A sentence without sense is reported once: whether it is in scope says nothing then.
        elif _objects(scope):
            warnings.append(
                faults.OUT_OF_SCOPE.at(
                    place,
                    f"{atom}{owner} asks for facts that common texts do not contain, {critic.identity.name} says "
                    f"(P(yes) {scope.probability:.2f})",
                    "Ask about a type whose members are named, or declare the predicate given",
                )
            )
    return len(uses), tuple(warnings)


def _objects(score: CriticScore) -> bool:
    return score.probability < MIN_PROBABILITY and not score.refused
