"""Write the file of accepted rules, which works beside its library and is not overwritten once a person changed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hapax.engine.expansion.verdicts import with_additions
from hapax.grammar.arguments import checked
from hapax.grammar.checks import check_library
from hapax.grammar.errors import HapaxError, RulesRejected, Severity
from hapax.grammar.parser import load_library, parse_addition, rule_files
from hapax.grammar.printing import rule_text, signature_text
from hapax.grammar.rule_paths import rule_paths
from hapax.grammar.rules import Library, PredicateSignature, Rule, type_key
from hapax.kb.records import content_id

_FIRST_LINES = (
    "# Written by `hapax rules expand`, {checksum}. Once it is changed by hand it is not written over.",
    "# Written by `hapax rules mine`, {checksum}. Once it is changed by hand it is not written over.",
)


@dataclass(frozen=True, slots=True)
class Sources:
    """The files of an expansion, or of mining, which has no meta-rules.

    `beside`: the library with which the new rules will be used; `whole`: that library with the meta-rules. `own`:
    predicates that the meta-rules use for other types than the library; the library's are left out of both.
    """

    whole: Library
    beside: Library
    meta_file: Path | None
    output: Path
    own: tuple[str, ...] = ()

    def meta_rules(self, names: Sequence[str]) -> tuple[Rule, ...]:
        """The meta-rules of these names; without names all of them."""
        meta_file = self.meta_file.resolve() if self.meta_file else None
        known = {rule.name: rule for rule in self.whole.rules if Path(rule.place.file).resolve() == meta_file}
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

    `meta`: the file of the meta-rules; `names`: those to expand, all if empty; `output`: the new rule file; `beside`:
    rule files with which the new rules will be used; `sheet`: proposals and decisions, None for a file beside `output`.
    """

    meta: Path
    output: Path
    beside: Sequence[str | Path] = ()
    names: Sequence[str] = ()
    sheet: Path | None = None

    def read(self) -> Sources:
        """Load the rules, without the output of an earlier run.

        Raises RulesRejected for faulty ones, and HapaxError if the output has other content.
        """
        refuse_overwrite(self.output)
        files = [file for file in rule_files(rule_paths(self.beside)) if file.resolve() != self.output.resolve()]
        # The meta-rules are among the library's files.
        if any(file.resolve() == self.meta.resolve() for file in files):
            whole = load_library(files)
            _refuse_errors(whole)
            return Sources(whole, whole, self.meta, self.output)
        meta, beside = load_library([self.meta]), load_library(files)
        own = _own_predicates(meta, beside)
        if own:
            beside = _without(beside, own)
            whole = with_additions(beside, [meta])
        else:
            whole = load_library([self.meta, *files])
        _refuse_errors(whole)
        return Sources(whole, beside, self.meta, self.output, own)


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
    rules: list[Rule] = []
    for rule in library.rules:
        used = {atom.indicator for atom in rule.atoms}
        if used.isdisjoint(indicators):
            rules.append(rule)
    return replace(
        library,
        rules=tuple(rules),
        signatures=tuple(item for item in library.signatures if item.indicator not in indicators),
        facts=tuple(fact for fact in library.facts if fact.indicator not in indicators),
    )


def refuse_overwrite(path: Path) -> None:
    """Raise HapaxError if Hapax did not write the file, or if a person changed it since."""
    if not path.exists():
        return
    first, _, body = path.read_text("utf-8", errors="replace").partition("\n")
    if first not in [_first_line(body, is_mined) for is_mined in (False, True)]:
        raise HapaxError(f"{path} was written or changed by hand and is not overwritten. Name another file with -o.")


def file_text(accepted: Sequence[tuple[Library, str]], sources: Sources) -> str:
    """The text of a rule file with the additions and their comments. Raises RulesRejected if they contradict."""
    additions = list(_with_own_names((addition for addition, _ in accepted), sources.beside))
    whole = with_additions(replace(sources.whole, rules=()), additions)
    signatures = _declarations(whole, sources.beside)
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in _subtypes(whole, signatures, sources.beside)),
        "\n".join(map(signature_text, signatures)),
    ]
    for rule, (_, comment) in zip(whole.rules, accepted, strict=True):
        blocks.append(f"# {_one_line(comment)}\n{rule_text(rule, whole)}")
    body = "\n" + "\n\n".join(filter(None, blocks)) + "\n"
    # Each addition was accepted alone; read back as a whole they may still clash with each other.
    _refuse_errors(with_additions(sources.beside, [parse_addition(str(sources.output), body, sources.beside)]))
    return f"{_first_line(body, sources.meta_file is None)}\n{body}"


def _refuse_errors(library: Library) -> None:
    errors = [diagnostic for diagnostic in check_library(library) if diagnostic.severity is Severity.ERROR]
    if errors:
        raise RulesRejected(errors)


def _first_line(body: str, is_mined: bool) -> str:
    # False counts as 0, the line of an expansion, and True as 1, the line of mining.
    return _FIRST_LINES[is_mined].format(checksum=content_id("rules", body)[:16])


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _with_own_names(additions: Iterable[Library], library: Library) -> Iterator[Library]:
    """The additions; a rule whose name is taken by the library or an earlier addition gets a number."""
    taken = {rule.name for rule in library.rules}
    for addition in additions:
        (rule,) = addition.rules
        names = (rule.name, *(f"{rule.name}_{number}" for number in range(2, len(taken) + 3)))
        name = next(name for name in names if name not in taken)
        taken.add(name)
        yield replace(addition, rules=(rule.named(name),))


def _declarations(whole: Library, beside: Library) -> tuple[PredicateSignature, ...]:
    """Declarations that the rules need and that the library beside them does not contain in the same form."""
    known = {item.indicator: (item.kind, item.argument_types) for item in beside.signatures if item.declared}
    used: set[str] = set()
    for rule in whole.rules:
        used.update(atom.indicator for atom in rule.atoms)
    found: list[PredicateSignature] = []
    for signature in whole.signatures:
        is_known = known.get(signature.indicator) == (signature.kind, signature.argument_types)
        if signature.declared and signature.indicator in used and not is_known:
            found.append(signature)
    return tuple(found)


def _subtypes(whole: Library, signatures: Sequence[PredicateSignature], beside: Library) -> tuple[tuple[str, str], ...]:
    """Declarations of types that the rules need and that the library beside them does not contain."""
    keys: set[str] = set()
    for signature in signatures:
        keys.update(map(type_key, signature.argument_types))
    for rule in whole.rules:
        keys.update(type_key(variable.data_type) for variable in rule.variables)
    pairs = [pair for pair in whole.subtypes if pair not in beside.subtypes]
    found: dict[tuple[str, str], None] = {}
    # A supertype may have a declared supertype itself.
    while new := [pair for pair in pairs if pair not in found and type_key(pair[0]) in keys]:
        found |= dict.fromkeys(new)
        keys |= {type_key(upper) for _, upper in new}
    return tuple(pair for pair in pairs if pair in found)
