"""The file of accepted rules: complete beside its library, and never written over once a person changed it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.expansion.verdicts import joined
from grammar.checks import check_library
from grammar.errors import HapaxError, RulesRejected, Severity
from grammar.parser import load_library, parse_addition, rule_files
from grammar.printing import rule_text, signature_text
from grammar.rules import Library, PredicateSignature, Rule, type_key
from kb.records import content_id

_FIRST_LINE = "# Written by `hapax rules expand`, {checksum}. Once it is changed by hand it is not written over."


@dataclass(frozen=True, slots=True)
class Sources:
    """Where new rules come from and where they go.

    `beside`: the library that they will be used with; `whole`: that and the file of the meta-rules.
    """

    whole: Library
    beside: Library
    meta_file: Path
    output: Path

    @classmethod
    def read(cls, meta_file: Path, paths: Sequence[Path], output: Path) -> Sources:
        """The output may lie in one of the paths: what an earlier run wrote there is left out. Raises RulesRejected."""
        files = [one for one in rule_files(paths) if one.resolve() != output.resolve()]
        inside = any(one.resolve() == meta_file.resolve() for one in files)
        whole = load_library(files if inside else [meta_file, *files])
        errors = [one for one in check_library(whole) if one.severity is Severity.ERROR]
        if errors:
            raise RulesRejected(errors)
        return cls(whole, whole if inside else load_library(files), meta_file, output)

    def meta_rules(self, names: Sequence[str]) -> tuple[Rule, ...]:
        """The rules of the meta-rules' file, or those named."""
        own = tuple(one for one in self.whole.rules if Path(one.place.file).resolve() == self.meta_file.resolve())
        known = {one.name: one for one in own}
        for name in names:
            if name not in known:
                raise HapaxError(f"{self.meta_file} has no rule {name!r}. It has {', '.join(known) or 'none'}.")
        if not own:
            raise HapaxError(f"{self.meta_file} has no rule to expand. Write a meta-rule over a wide type into it.")
        return tuple(known[name] for name in names) if names else own


def refuse_foreign(path: Path) -> None:
    """A file that Hapax did not write, or that a person changed since, is not ours to write over."""
    if not path.exists():
        return
    first, _, body = path.read_text("utf-8", errors="replace").partition("\n")
    if first != _first_line(body):
        raise HapaxError(
            f"{path} was written or changed by hand, so it is not written over. Name another file with -o."
        )


def file_text(accepted: Sequence[tuple[Library, str]], sources: Sources) -> str:
    """The additions, each with a line of comment, as one rule file. Raises RulesRejected where they do not agree."""
    additions = list(_with_own_names((one for one, _ in accepted), sources.beside))
    whole = joined(replace(sources.whole, rules=()), additions)
    signatures = _declarations(whole, sources.beside)
    blocks = [
        "\n".join(f"type {lower} < {upper}" for lower, upper in _subtypes(whole, signatures, sources.beside)),
        "\n".join(map(signature_text, signatures)),
        *(
            f"# {_one_line(comment)}\n{rule_text(rule, whole)}"
            for rule, (_, comment) in zip(whole.rules, accepted, strict=True)
        ),
    ]
    body = "\n" + "\n\n".join(filter(None, blocks)) + "\n"
    _refuse_faulty(body, sources)
    return f"{_first_line(body)}\n{body}"


def _refuse_faulty(text: str, sources: Sources) -> None:
    file = str(sources.output)
    whole = joined(sources.beside, [parse_addition(file, text, sources.beside)])
    errors = [one for one in check_library(whole) if one.severity is Severity.ERROR]
    if errors:
        raise RulesRejected(errors)


def _first_line(body: str) -> str:
    return _FIRST_LINE.format(checksum=content_id("rules", body)[:16])


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _with_own_names(additions: Iterable[Library], library: Library) -> Iterator[Library]:
    """A rule whose name is taken by the library or an earlier one gets a number."""
    taken = {rule.name for rule in library.rules}
    for addition in additions:
        (rule,) = addition.rules
        names = (rule.name, *(f"{rule.name}_{number}" for number in range(2, len(taken) + 3)))
        name = next(one for one in names if one not in taken)
        taken.add(name)
        yield replace(addition, rules=(rule.named(name),))


def _declarations(whole: Library, beside: Library) -> tuple[PredicateSignature, ...]:
    """What the rules use and the library beside does not declare in the same way."""
    known = {one.indicator: (one.kind, one.argument_types) for one in beside.signatures if one.declared}
    used = {atom.indicator for rule in whole.rules for atom in rule.atoms}
    return tuple(
        one
        for one in whole.signatures
        if one.declared and one.indicator in used and known.get(one.indicator) != (one.kind, one.argument_types)
    )


def _subtypes(whole: Library, signatures: Sequence[PredicateSignature], beside: Library) -> tuple[tuple[str, str], ...]:
    """The declarations of types that the rules rest on and the library beside does not make."""
    keys = {type_key(one) for signature in signatures for one in signature.argument_types}
    keys |= {type_key(variable.data_type) for rule in whole.rules for variable in rule.variables}
    pairs = [pair for pair in whole.subtypes if pair not in beside.subtypes]
    found: dict[tuple[str, str], None] = {}
    while new := [pair for pair in pairs if pair not in found and type_key(pair[0]) in keys]:
        found |= dict.fromkeys(new)
        keys |= {type_key(upper) for _, upper in new}
    return tuple(pair for pair in pairs if pair in found)
