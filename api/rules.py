"""Rule files and libraries: checked, fixed and compiled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hapax.engine.kept_rules import chosen_rules, sound_rules
from hapax.grammar.arguments import checked
from hapax.grammar.checking.faults import OTHER_NAME
from hapax.grammar.checking.library_checks import check_library, check_read
from hapax.grammar.errors import Diagnostic, HapaxError, Place
from hapax.grammar.extras import extras_named
from hapax.grammar.parsing.declarations import SAME_AS
from hapax.grammar.parsing.hints import hint
from hapax.grammar.parsing.parser import read_rules, rule_files
from hapax.grammar.remedies import Operation, Remedy
from hapax.grammar.rule_paths import rule_paths
from hapax.grammar.rules import Library, atoms_of
from hapax.grammar.terms import Constant
from hapax.grammar.writing.link_json import to_link_json
from hapax.grammar.writing.printing import format_library
from hapax.grammar.writing.prolog_text import program_text
from hapax.kb.files.whole_files import atomic_path

if TYPE_CHECKING:
    from hapax.engine.entailment.graph import EntailmentLimits
    from hapax.engine.kb_checks import KbFinding
    from hapax.kb.store import KnowledgeBase

# What needs a knowledge base, a reference or SQL is imported where it is used: a check of rules alone starts without.


@checked
def check_rules(
    rules: Library, kb: KnowledgeBase | None = None, *, entailments: EntailmentLimits | None = None
) -> tuple[Diagnostic, ...]:
    """Faults, redundancy and contradictions of rules; with a knowledge base, also what contradicts its facts.

    `entailments`: limits from which on the knowledge base's entailments count against rules.
    """
    diagnostics = check_library(rules)
    if kb is None:
        return diagnostics
    from hapax.engine.kb_checks import check_kb

    return (*diagnostics, *(finding.diagnostic for finding in check_kb(rules, kb, entailments)))


@dataclass(frozen=True)
class RuleCheck:
    """Diagnostics of rule files, of which some may be unreadable, and of facts that contradict the rules."""

    library: Library
    diagnostics: tuple[Diagnostic, ...]
    findings: tuple[KbFinding, ...] = ()

    @property
    def proofs(self) -> Iterator[tuple[str, int, str]]:
        """Code, number and text of each proof that shows a contradiction."""
        from hapax.engine.inference.proof import proof_text

        for finding in self.findings:
            for number, proof in enumerate(finding.proofs, 1):
                yield finding.diagnostic.code, number, proof_text(proof)


def check_files(
    paths: Iterable[str | Path] = (),
    kb: Callable[[], KnowledgeBase] | None = None,
    entailments: EntailmentLimits | None = None,
    names: str | None = None,
) -> RuleCheck:
    """Check rule files as far as they can be read, as `check_rules` does; `kb` opens the knowledge base, if any.

    Without paths these are the rules that the knowledge base keeps, or the shipped ones. `names`: a reference such as
    `reference:geo`, whose canonical names constants should have.
    """
    paths = tuple(paths)
    read = None
    if kb is not None and not paths:
        from hapax.engine.kept_rules import read_kept

        with kb() as opened:
            read = read_kept(opened)
    if read is None:
        read = read_rules(rule_paths(paths))
    diagnostics = (*_with_neighbour(check_read(read), paths), *_other_names(read.library, names))
    # Facts are not held against a part of the rules.
    if kb is None or read.diagnostics:
        return RuleCheck(read.library, diagnostics)
    from hapax.engine.kb_checks import check_kb

    with kb() as opened:
        findings = check_kb(read.library, opened, entailments)
    return RuleCheck(read.library, (*diagnostics, *(finding.diagnostic for finding in findings)), findings)


FIX_ROUNDS = 10
"""A fix of one fault may let another be found; after this many rounds the rest is reported."""


Change: TypeAlias = tuple[Place, str, str]
"""Place of a text in a file, the text, and the one that replaces it."""


def fix_files(paths: Iterable[str | Path], names: str | None = None) -> list[Change]:
    """Fix the faults of rule files whose remedy leaves no choice; returns the changes that were made.

    Only the files of the paths are changed, each as a whole, and none of LINK's JSON. `names`: as for `check_files`.
    """
    # A file that is named twice is changed once.
    files = list({os.path.realpath(path): path for path in rule_files(list(paths))}.values())
    made: list[Change] = []
    own = {str(path) for path in files if path.suffix != ".json"}
    for _ in range(FIX_ROUNDS):
        read, before = read_rules(files), len(made)
        changes: dict[str, set[Change]] = {}
        for fault in (*check_read(read), *_other_names(read.library, names)):
            if fault.fix is not None:
                for place in fault.fix.places:
                    changes.setdefault(place.file, set()).add((place, fault.fix.old, fault.fix.new))
        for file in sorted(changes.keys() & own):
            made += _changed(file, changes[file])
        # What is left has no fix.
        if len(made) == before:
            break
    return made


def _changed(file: str, changes: Iterable[Change]) -> list[Change]:
    """Make changes of a file, whose line ends stay; a change is left out where the text at its place is another."""
    made = []
    with Path(file).open(encoding="utf-8", newline="") as stream:
        lines = list(stream)
    # From the right, so that the columns of the others stay.
    for place, old, new in sorted(changes, key=lambda change: (change[0].line, change[0].column), reverse=True):
        line, is_marked = lines[place.line - 1], place.line == 1 and lines[0].startswith("\ufeff")
        start = place.column - 1 + is_marked
        if line.startswith(old, start):
            lines[place.line - 1] = line[:start] + new + line[start + len(old) :]
            made.append((place, old, new))
    if made:
        with atomic_path(file) as path:
            path.write_bytes("".join(lines).encode("utf-8"))
    return made[::-1]


MOST_NEIGHBOURS = 20
"""Files of one folder that are looked through for a declaration."""


def _with_neighbour(diagnostics: Sequence[Diagnostic], paths: Sequence[str | Path]) -> list[Diagnostic]:
    """The diagnostics, with one in the place of all about columns that another file of the folder declares."""
    code = hint("column").code
    of_columns = [diagnostic for diagnostic in diagnostics if diagnostic.code == code]
    others = [diagnostic for diagnostic in diagnostics if diagnostic.code != code]
    if not of_columns:
        return others
    named = list(rule_files(rule_paths(paths)))
    neighbours = sorted(path for folder in {path.parent for path in named} for path in folder.glob("*.rules"))
    for neighbour in [path for path in neighbours if path not in named][:MOST_NEIGHBOURS]:
        if all(diagnostic.code != code for diagnostic in read_rules([*named, neighbour]).diagnostics):
            files = [str(path) for path in (*named, neighbour)]
            remedy = str(Remedy("{} declares it. Check both: {}.", neighbour, Operation("check_rules", *files)))
            return [replace(of_columns[0], remedy=remedy), *others]
    return list(diagnostics)


def _other_names(library: Library, title: str | None) -> Iterator[Diagnostic]:
    """Constants of facts and rules that a reference knows under other names, which other facts then do not meet."""
    if title is None:
        return
    from hapax.llm_oracle.references.model import open_names

    canonical = open_names(title, library).canonical
    for atom in (*library.facts, *atoms_of(library.rules)):
        types = library.signature(atom.indicator).argument_types
        for number, (term, data_type) in enumerate(zip(atom.arguments, types, strict=False)):
            place = atom.place_at(number)
            if not isinstance(term, Constant) or not isinstance(term.value, str) or place is None:
                continue
            name = canonical(term.value, data_type)
            if name is not None and name != term.value:
                written, name = str(term), str(Constant(name))
                yield OTHER_NAME.at(
                    place,
                    f"{title} names {written} {name}, so facts under the one name do not meet those under the other",
                    f"Write {name}",
                ).with_fix(written, name)


TEXT_FORMS = ("prolog", "rules", "link-json")
SQL_FORMS = ("duckdb", "postgres", "spark")
FORMS = (*TEXT_FORMS, *SQL_FORMS)
"""Forms in which `compile_rules` writes rules."""


@checked
def compile_rules(rules: Library, form: str = "prolog", *, only: str | Sequence[str] = ()) -> str:
    """Rules as a Prolog program (`prolog`), as rule text (`rules`), as LINK's rules.json (`link-json`), or as SQL.

    The SQL of `duckdb`, `postgres` and `spark` has a table for the facts of each predicate and views of what follows.
    It needs the extra `sql`. Raises HapaxError, with every reason, for rules that the database cannot run.
    """
    if form not in FORMS:
        raise HapaxError(f"There is no form {form!r}. Choose {' or '.join(FORMS)}.")
    if form in SQL_FORMS:
        rules = sound_rules(rules)
        concluded = chosen_rules(rules, only)
    if only:
        from hapax.engine.inference.derive import relevant_library

        chosen = chosen_rules(rules, only)
        part = relevant_library(rules, *chosen)
        # A chosen rule stays even if the part needed to derive its conclusion leaves it out.
        rules = replace(part, rules=tuple(dict.fromkeys((*part.rules, *chosen))))
    if form != "rules":
        rules.refuse_uncertain()
    if form in (*SQL_FORMS, "prolog") and rules.knows(SAME_AS):
        raise HapaxError(f"The rules join names by {SAME_AS}, which no {form} program does. Ask them with Hapax.")
    if form in SQL_FORMS:
        with extras_named():
            from hapax.engine.answers.dialects import sql_text
        return sql_text(rules, concluded, form)
    return dict(zip(TEXT_FORMS, (program_text, format_library, to_link_json), strict=True))[form](rules)
