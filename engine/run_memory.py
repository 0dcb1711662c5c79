"""Recall the predicates, rules and models of earlier runs from a knowledge base.

With them an explanation uses the words in which its questions were asked, whatever rule files are loaded now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hapax.engine.inference.derive import atoms_in_sentence
from hapax.engine.inference.theory import AskedAtom, Theory
from hapax.engine.logic.proofs import holding_prefixes
from hapax.engine.questions.account import DistributionCut, StepAccount, shortage, step_text
from hapax.engine.search.ranking import mean_of_parts, ranked_parts, ranked_text
from hapax.engine.stories import Story
from hapax.grammar.data_types import OBJECT
from hapax.grammar.dependencies import plan
from hapax.grammar.errors import HapaxError
from hapax.grammar.parsing.declarations import PredicateKind, PredicateSignature, Templates
from hapax.grammar.parsing.parser import parse_library
from hapax.grammar.rules import Library, Rule
from hapax.grammar.terms import Atom, Constant, Substitution, Value
from hapax.kb.records import PREDICATES, RULES, Assessment, Distribution, PredicateRecord, RunRecord
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.critics.circularity import is_circular
from hapax.llm_oracle.critics.measures import Measure
from hapax.llm_oracle.protocols import CRITIC, EVALUATOR, KNOWLEDGE, LIKELIHOOD, ModelIdentity

REPLAYED = 3
"""Most substitutions of a rule whose way through its last search is shown."""

ROLES = (KNOWLEDGE, CRITIC, LIKELIHOOD, EVALUATOR)
"""The roles, in the order of the models in a run's record."""


def with_stored_predicates(theory: Theory, *, thorough: bool = False) -> Theory:
    """The theory with the predicates of its knowledge base added, and all sentence templates as stored there.

    `thorough`: also those that facts alone have, under the name of another predicate with more or fewer arguments. To
    find them, all facts are read.
    """
    stored = {record.indicator: record for record in theory.kb.select(PREDICATES)}
    signatures = []
    for signature in theory.library.completed().signatures:
        templates = _templates(stored.get(signature.indicator)) or signature.templates
        signatures.append(replace(signature, templates=templates))
    known = {*(signature.name for signature in signatures), *(record.name for record in stored.values())}
    names = frozenset() if thorough else frozenset(known)
    # Predicates that only the store knows are undeclared: no rule file says what could be asked about them.
    for record in stored.values():
        if not theory.library.knows(record.indicator):
            kind = PredicateKind(record.kind) if record.kind in list(PredicateKind) else PredicateKind.GIVEN
            templates = _templates(record)
            signatures.append(PredicateSignature(record.name, record.argument_types, kind, templates, declared=False))
    for indicator in theory.kb.fact_indicators(names):
        if indicator not in stored and not theory.library.knows(indicator):
            # Only imported facts use it, so nothing but its name and its number of arguments is known.
            name, _, arity = indicator.rpartition("/")
            types = (OBJECT,) * int(arity)
            signatures.append(PredicateSignature(name, types, PredicateKind.GIVEN, declared=False))
    return replace(theory, library=replace(theory.library, signatures=tuple(signatures)))


IDENTITY = re.compile(r"[0-9a-f]{32}")
"""An id of a fact or of a statement."""

ATOM = re.compile(r"\s*(?:\w+|'[^']*')\(")
"""The beginning of an atom, which no sentence has."""


def worded_atom(text: str, theory: Theory) -> tuple[Theory, AskedAtom]:
    """An atom, also as a sentence, and the theory with the stored predicates that it needs.

    Raises as `Theory.asked_atom`.
    """
    worded = with_stored_predicates(theory)
    if not ATOM.match(text) and (atom := _atom_in_sentence(text.strip(), worded)) is not None:
        return worded, AskedAtom(atom)
    try:
        return worded, worded.asked_atom(text)
    except HapaxError:
        worded = with_stored_predicates(theory, thorough=True)
        return worded, worded.asked_atom(text)


def _atom_in_sentence(text: str, theory: Theory) -> Atom | None:
    """The atom that a sentence states, of several the first with known values; a sentence may begin with a capital."""
    library = theory.library
    read = [atom for spelt in (text, text[:1].lower() + text[1:]) for atom in atoms_in_sentence(library, spelt)]
    stated = {value for fact in library.facts for value in fact.values}
    for atom in read:
        tags = theory.kb.symbols.known(atom.values)
        if all(tag is not None or value in stated for tag, value in zip(tags, atom.values, strict=True)):
            return atom
    return read[0] if read else None


def _templates(record: PredicateRecord | None) -> Templates | None:
    if record is None or record.affirmative is None:
        return None
    return Templates(record.affirmative, record.negated, record.question)


def last_account(kb: KnowledgeBase, rule: str) -> tuple[RunRecord, list[StepAccount]] | None:
    """The last complete search of the rule with the account of its steps; None without such a search."""
    runs = [run for run in kb.runs() if run.command == "search" and run.finished]
    # Times in ISO notation sort as texts; the newest run comes first.
    for run in sorted(runs, key=lambda run: run.finished or "", reverse=True):
        lines = run.summary.get("rules", ())
        try:
            stored = next((line["account"] for line in lines if line["rule"] == rule and line.get("account")), None)
            if stored:
                return run, [StepAccount.from_json(step) for step in stored]
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # another program's summary
    return None


def stored_rule(kb: KnowledgeBase, name: str, library: Library) -> Rule | None:
    """The rule of that name as the last search used it, else as the library has it.

    None if there is no such rule, or if the library does not know all of its predicates.
    """
    text = next((record.text for record in kb.select(RULES) if record.name == name), None)
    try:
        rule = library.rule(name) if text is None else parse_library([(f"rule {name}", text)]).rules[0]
    except (HapaxError, IndexError):
        return None
    return rule if all(library.knows(atom.indicator) for atom in rule.atoms) else None


def models_of(run: RunRecord | None) -> dict[str, str]:
    """The names of a run's models by role, without roles that the run did not use."""
    names = run.settings.get("models") if run else None
    # Imports record no models.
    if run is None or not isinstance(names, list) or len(names) != len(ROLES):
        return {}
    # Such a search named a likelihood model, but did not rank by it.
    without = {LIKELIHOOD} if run.settings.get("likelihood") != "model" else set()
    return {role: str(name) for role, name in zip(ROLES, names, strict=True) if role not in without}


def identities_of(run: RunRecord | None) -> dict[str, ModelIdentity]:
    """The identities of a run's models by role, with the models that taught them."""
    identities = {}
    taught_by = run.settings.get("taught_by", {}) if run else {}
    for role, full_name in models_of(run).items():
        name, _, revision = full_name.rpartition("@") if "@" in full_name else (full_name, "", "")
        identities[role] = ModelIdentity(name, revision, taught_by=tuple(taught_by.get(full_name, ())))
    return identities


def circular_judge(run: RunRecord) -> str | None:
    """The name of the run's evaluator if it ranked the run itself, taught its ranker or learned from it."""
    identities = identities_of(run)
    ranker, judge = identities.get(LIKELIHOOD), identities.get(EVALUATOR)
    return judge.name if ranker is not None and judge is not None and is_circular(judge, ranker) else None


def ranking_measure(run: RunRecord) -> str:
    """The measure under which the scores are stored that ranked a run's beams."""
    # Runs by LINK's measure and ends, as all of older versions were, do not say which ends they have.
    return str(run.settings.get("measure") or Measure.PAPER) if "ends" in run.settings else "log_likelihood"


def ranking_scores(kb: KnowledgeBase, run: RunRecord, text: str) -> dict[str, Assessment]:
    """The run's likelihood model's scores of the parts of a text that it ranked; empty without such a model."""
    model = models_of(run).get(LIKELIHOOD)
    return kb.assessments(ranked_parts(text), ranking_measure(run), model) if model and text else {}


def search_story(theory: Theory, rule: Rule, bound: Substitution) -> Iterator[Story]:
    """The account of the last search of a rule, with the place where its values ran out, or these values were cut."""
    searched = last_account(theory.kb, rule.name)
    if searched is None:
        return
    run, steps = searched
    # A search that kept substitutions to the end did not run out of values, whatever became of this one.
    lost = None if steps[-1].kept else shortage(steps, run.settings.get("compat"))
    text = f"the last search of the rule, run {run.id}"
    lines = [Story(step_text(step), "search") for step in steps]
    if any(step.cuts for step in steps):
        lines += _Replay(theory, rule, run, steps).stories(bound)
    yield Story(f"{text}: {lost}" if lost else text, "search", tuple(lines))


@dataclass(frozen=True)
class _Replay:
    """The verdicts of a search on substitutions for which the premises hold, by stored likelihoods and limits."""

    theory: Theory
    rule: Rule
    run: RunRecord
    steps: Sequence[StepAccount]

    def stories(self, bound: Substitution) -> Iterator[Story]:
        """A line for each of up to `REPLAYED` substitutions with these values: the step that cut it, if one did."""
        searched = self.rule.searched
        constraints = tuple(item for item in self.rule.premise if not self.rule.is_information(item))
        # Nothing of such a rule is searched, so nothing was cut.
        if not searched:
            return
        if constraints:
            *_, whole = holding_prefixes(self.theory, self.rule, constraints, bound, REPLAYED)
        else:
            whole = [bound]
        names = [variable.name for variable in searched]
        for substitution in whole:
            yield Story(
                self._fate({name: found.value for name, found in substitution.bindings if name in names}), "search"
            )

    def _fate(self, values: Mapping[str, Value]) -> str:
        """`A = Abadan: step 1 cut it: score -3.1; head kept 200 of 7,836, down to -2.2`."""
        library, settings = self.theory.library, self.run.settings
        order = [name for name in plan(self.rule, library, settings.get("plan", "")).order if name in values]
        named = ", ".join(f"{name} = {values[name]}" for name in order)
        if settings.get("likelihood") != "model" or LIKELIHOOD not in models_of(self.run):
            return f"{named}: no model ranked it"
        for number, step in enumerate(self.steps):
            if not step.cuts:
                continue
            bound = {name: Constant(values[name]) for name in order[: number + 1]}
            text = ranked_text(self.rule, library, bound, settings.get("compat"))
            assessed = ranking_scores(self.theory.kb, self.run, text)
            # Of the plain log-likelihood the total is stored, by whose mean LINK ranks.
            is_total = ranking_measure(self.run) == "log_likelihood"
            scores = {part: item.score / ((is_total and item.token_count) or 1) for part, item in assessed.items()}
            score = mean_of_parts(text, scores)
            if score is None:
                return f"{named}: step {step.step} did not rank it"
            verdicts = [self._verdict(name, cut, score) for name, cut in step.cuts.items()]
            if all(is_cut for is_cut, _ in verdicts):
                return f"{named}: step {step.step} cut it: {'; '.join(words for _, words in verdicts)}"
        return f"{named}: every step could keep it"

    def _verdict(self, distribution: str, cut: DistributionCut, score: float) -> tuple[bool, str]:
        """True if the distribution cut the beam for certain, and the comparison of its score with the limit."""
        is_head = distribution == Distribution.HEAD.value
        side, bounds = ("likeliest", "down to") if is_head else ("least likely", "up to")
        limit = "" if cut.limit is None else f", {bounds} {cut.limit:.3f}"
        words = f"its score is {score:.3f}, and the {cut.kept:,} {side} of {cut.ranked:,} were kept{limit}"
        if cut.limit is None:
            return not cut.kept, words
        # Among equal scores chance decided.
        return (score < cut.limit if is_head else score > cut.limit), words
