"""A dataset in the files of LINT, as LINK's code writes them and `hapax evaluate lint` reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from hapax.evaluation.dataset.frozen import CONTRADICTS
from hapax.evaluation.dataset.rows import DatasetSource, Entry
from hapax.evaluation.dataset.sinks import Sink
from hapax.evaluation.link.lint import FLIPS_FILE
from hapax.grammar.link_json import inexpressible_parts, to_link_json
from hapax.grammar.remedies import Setting
from hapax.grammar.words import counted
from hapax.kb.csv_text import write_rows
from hapax.kb.records import Distribution

METHOD = "LINK"
"""Key of the labels in `flip_label_data.json`: readers of LINT, ours included, look for LINK's."""

_ENDS = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "longtail"}
_BAD_IN_NAMES = frozenset('/\\:*?"<>|\0')


class LintSink(Sink):
    """A CSV of values for each rule and distribution, `rules.json`, and the labels that people flipped.

    Rules whose names cannot be file names are left out. `notes` lists them, and the rules that LINK's JSON cannot hold.
    """

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder / "lint", name)
        self._rows: dict[tuple[str, Distribution], int] = {}
        self._flipped: dict[str, dict[str, list[int]]] = {}
        self._unnamed: set[str] = set()

    def take(self, entry: Entry) -> None:
        rule, distribution = entry.rule, entry.record.distribution
        if not _is_file_name(rule.name):
            self._unnamed.add(rule.name)
            return
        number = self._rows.get((rule.name, distribution), 0)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{rule.name}_value_cache.csv_{_ENDS[distribution]}"
        # Opened anew for each row: a large library needs more files than a process may keep open.
        with path.open("a", encoding="utf-8", newline="") as stream:
            if number == 0:
                write_rows(stream, [[variable.name for variable in rule.variables]])
            values = dict(entry.record.substitution)
            row = []
            for variable in rule.variables:
                # Generic variables have no value; LINK writes their names, such as `PersonX`.
                generic_name = "".join(variable.data_type.split()) + variable.name
                row.append(str(values.get(variable.name, generic_name)))
            write_rows(stream, [row])
        self._rows[rule.name, distribution] = number + 1
        if entry.row["label"] == CONTRADICTS:
            # LINK's file lists the rows of a CSV, counted from 0.
            flipped = self._flipped.setdefault(rule.name, {end: [] for end in _ENDS.values()})
            flipped[_ENDS[distribution]].append(number)

    def finish(self, source: DatasetSource) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(self._unnamed):
            self.notes.append(f"lint: rule {name} is left out, because no file can have its name")
        fitting, unfitting = [], []
        for rule in sorted(source.library.rules, key=lambda rule: rule.name):
            if rule.name in self._unnamed:
                continue
            # The values of such a rule are written all the same; only rules.json lacks the rule.
            if reasons := ", ".join(inexpressible_parts(rule)):
                unfitting.append(f"{rule.name} ({reasons})")
            else:
                fitting.append(rule)
        if unfitting:
            self.notes.append(
                f"lint/rules.json cannot hold {counted(len(unfitting), 'rule')}: {', '.join(unfitting)}. Read "
                f"the dataset with {Setting('rules')} rules.rules instead, which holds all of them."
            )
        self.write("rules.json", to_link_json(replace(source.library, rules=tuple(fitting))))
        if self._flipped:
            self.write(FLIPS_FILE, json.dumps({METHOD: dict(sorted(self._flipped.items()))}, indent=2) + "\n")


def _is_file_name(name: str) -> bool:
    # 100 characters leave room for the suffix within the 255 bytes of most file systems.
    return not _BAD_IN_NAMES & set(name) and not name.startswith(".") and name.isprintable() and len(name) <= 100
