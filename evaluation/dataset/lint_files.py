"""LINT's files as LINK's code writes them: what `hapax evaluate lint` reads."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluation.dataset.rows import CONTRADICTS, Entry, Source
from evaluation.lint import FLIPS_FILE
from grammar.link_json import to_link_json, unfit
from grammar.terms import Variable
from grammar.words import counted
from kb.records import Distribution

METHOD = "LINK"
"""Whose labels `flip_label_data.json` holds: its readers, ours among them, look for LINK's."""

_ENDS = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "longtail"}
_BAD_IN_NAMES = frozenset('/\\:*?"<>|\0')


@dataclass
class LintSink:
    """A CSV of values for each rule and distribution, `rules.json`, and the labels that people turned.

    A rule whose name cannot be a file's name is left out; `notes` tell it, and the rules that LINK's JSON cannot hold.
    """

    folder: Path
    notes: list[str] = field(default_factory=list)
    _rows: dict[tuple[str, Distribution], int] = field(default_factory=dict)
    _turned: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    _unnamed: set[str] = field(default_factory=set)

    def take(self, entry: Entry) -> None:
        """Append the values to their file, opened for each row: there may be more files than one may hold open."""
        rule, distribution = entry.rule, entry.record.distribution
        if not _is_file_name(rule.name):
            self._unnamed.add(rule.name)
            return
        number = self._rows.get((rule.name, distribution), 0)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{rule.name}_value_cache.csv_{_ENDS[distribution]}"
        with path.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            if number == 0:
                writer.writerow(variable.name for variable in rule.variables)
            bound = dict(entry.record.substitution)
            writer.writerow(str(bound.get(one.name, _generic_name(one))) for one in rule.variables)
        self._rows[rule.name, distribution] = number + 1
        if entry.row["label"] == CONTRADICTS:
            turned = self._turned.setdefault(rule.name, {end: [] for end in _ENDS.values()})
            turned[_ENDS[distribution]].append(number)

    def finish(self, source: Source) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.notes += [
            f"{name}: no file can have this name, so LINT's form lacks the rule" for name in sorted(self._unnamed)
        ]
        rules = sorted((one for one in source.library.rules if one.name not in self._unnamed), key=lambda one: one.name)
        misfits = {rule.name: reasons for rule in rules if (reasons := ", ".join(unfit(rule)))}
        if misfits:
            told = ", ".join(f"{name} ({reasons})" for name, reasons in misfits.items())
            self.notes.append(f"rules.json lacks {counted(len(misfits), 'rule')}, which rules.rules has: {told}")
        fit = tuple(rule for rule in rules if rule.name not in misfits)
        self._write("rules.json", to_link_json(replace(source.library, rules=fit)))
        if self._turned:
            self._write(FLIPS_FILE, json.dumps({METHOD: dict(sorted(self._turned.items()))}, indent=2) + "\n")

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8", newline="\n")


def _is_file_name(name: str) -> bool:
    return not _BAD_IN_NAMES & set(name) and not name.startswith(".") and name.isprintable() and len(name) <= 100


def _generic_name(variable: Variable) -> str:
    """`PersonX`, as statements call what is never searched."""
    return "".join(variable.data_type.split()) + variable.name
