"""The rules that an operation works with, and the rule files that a knowledge base keeps for later commands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hapax.engine.entailment.graph import ENTAILS
from hapax.grammar.arguments import checked, texts
from hapax.grammar.checking.library_checks import sound_part
from hapax.grammar.checking.rule_checks import adds_nothing
from hapax.grammar.errors import RulesRejected
from hapax.grammar.parsing.parser import ReadRules, read_texts, rule_files
from hapax.grammar.rule_paths import SHIPPED, SHIPPED_RULES, load_rules, rule_paths
from hapax.grammar.rules import Library, Rule
from hapax.kb.records import RuleTextRecord
from hapax.kb.store import KnowledgeBase


def sound_rules(rules: Library) -> Library:
    """The rules without those that cannot be evaluated, which `left_out` of the result names with the reasons.

    Raises RulesRejected for an error that is not one of a rule, such as a cycle of types. Stored entailments that were
    added as rules stay: their types are a parser's, and their scores decide.
    """
    return sound_part(rules, ENTAILS)


def chosen_rules(rules: Library, names: str | Sequence[str] = ()) -> list[Rule]:
    """The named rules; without names all that can conclude something new, but for withdrawn ones and definitions.

    A definition is a rule that only defines a predicate for others. Raises HapaxError for a name that no rule has, and
    RulesRejected if every rule, or a named one, was left out for its errors.
    """
    names = texts(names)
    if names:
        return [rules.rule(name) for name in names]
    if not rules.rules:
        rules.refuse_left_out(item.indicator for item in rules.left_out or ())
    kept = (rule for rule in rules.rules if not rules.is_definition(rule) and rule.withdrawn is None)
    return [rule for rule in kept if not adds_nothing(rule, rules)]


# --- rule files in a knowledge base -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RulesKept:
    """Outcome of `keep_rules`, by names of files.

    `names`: kept now; `changed`: kept with another text than before; `dropped`: no longer kept.
    """

    names: tuple[str, ...]
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One sentence about what was replaced; empty if nothing was."""
        parts = []
        if self.changed:
            parts.append(f"a new text of {', '.join(self.changed)}")
        if self.dropped:
            parts.append(f"{', '.join(self.names)} instead of {', '.join(self.dropped)}")
        return f"The knowledge base now keeps {' and '.join(parts)}." if parts else ""


@checked
def keep_rules(
    kb: KnowledgeBase, *paths: str | Path, command: str = "keep_rules", rules: Library | None = None
) -> RulesKept:
    """Keep rule files in the knowledge base, instead of those before. `command`: what they were used for.

    `rules`: the library of these files, if they were read before. `shipped` is kept by its name, since the shipped
    rules come with Hapax. Raises RulesRejected with every syntax fault, and then keeps nothing.
    """
    if rules is None or not rules.texts:
        rules = load_rules(*paths)
    texts = _records(paths, rules.texts, command)
    before = {record.name: record for record in kb.rule_texts()}
    now = {record.name: record for record in texts}
    changed = [name for name in now if name in before and now[name].checksum != before[name].checksum]
    dropped = [name for name in before if name not in now]
    # Unchanged texts are not written again.
    if changed or before.keys() != now.keys():
        kb.set_rule_texts(now.values())
    return RulesKept(tuple(now), tuple(changed), tuple(dropped))


@checked
def kept_rules(kb: KnowledgeBase) -> Library | None:
    """The rules that the knowledge base keeps; None if it keeps none. Raises RulesRejected with every syntax fault."""
    read = read_kept(kb)
    if read is not None and read.diagnostics:
        raise RulesRejected(read.diagnostics)
    return None if read is None else read.library


def read_kept(kb: KnowledgeBase) -> ReadRules | None:
    """The readable part of the rules that the knowledge base keeps, and diagnostics for the rest; None without any."""
    records = kb.rule_texts()
    return _read(records) if records else None


def changed_files(kb: KnowledgeBase) -> tuple[str, ...]:
    """Names of the kept files that have another text on disk now."""
    changed = []
    for record in kb.rule_texts():
        path = Path(record.name)
        if not _is_shipped(path) and _is_changed(path, record.text):
            changed.append(record.name)
    return tuple(changed)


def _is_changed(path: Path, text: str) -> bool:
    """True if there is a file with another text. The name may be a stranger's, of any file of this machine."""
    size = len(text.encode("utf-8", "surrogatepass"))
    try:
        # One of another size is not read: it may be huge, or a file of the system that never ends. A byte order mark
        # takes three bytes.
        return path.is_file() and (path.stat().st_size not in (size, size + 3) or _decoded(path) != text)
    except OSError:
        return False  # it may not be read, or its name is none


def _is_shipped(path: Path) -> bool:
    # Only a path that begins with `shipped` is replaced by another one.
    return rule_paths([path]) != [path]


def _records(paths: Sequence[str | Path], texts: Mapping[str, str], command: str) -> list[RuleTextRecord]:
    """The records of files, folders and `shipped`, and of the files that these import."""
    shipped = [path for path in map(Path, paths) if _is_shipped(path)]
    # What the shipped rules import is shipped, too.
    own = [name for name in texts if paths and not (shipped and Path(name).is_relative_to(SHIPPED_RULES))]
    return [
        *(RuleTextRecord(str(path), "", command) for path in shipped),
        *(RuleTextRecord(name, texts[name], command) for name in own),
    ]


def _decoded(path: Path) -> str:
    # A byte order mark of Windows is no part of the text. Files that are not UTF-8 were refused before.
    return path.read_bytes().decode("utf-8-sig", errors="replace")


def _read(records: Iterable[RuleTextRecord]) -> ReadRules:
    sources = []
    for record in records:
        if not record.text and record.name.split("/")[0] == SHIPPED:
            # The shipped rules as this version of Hapax has them.
            sources += [(str(file), _decoded(file)) for file in rule_files(rule_paths([record.name]))]
        else:
            sources.append((record.name, record.text))
    return read_texts(sources)
