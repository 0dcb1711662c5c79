"""Rewordings of items, kept only if their sentences are parsed to the same events as the originals."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hapax.evaluation.dataset.columns import json_line
from hapax.evaluation.shared.results import Evaluation, ExperimentResult, ResultTable
from hapax.evaluation.winograd.data import BLANK, WinogradItem
from hapax.evaluation.winograd.files import write_lines
from hapax.evaluation.winograd.leaks import read_schemas
from hapax.evaluation.winograd.reasoner.events import relation_between
from hapax.evaluation.winograd.reasoner.lexicon import WordClasses, shipped_lexicon
from hapax.evaluation.winograd.reasoner.parsing import Parser, SpacyParser
from hapax.evaluation.winograd.rewordings.changes import CHANGES, ChangedWords, Inflector, WordSources
from hapax.evaluation.winograd.rewordings.sentences import ParsedItem, as_text, parsed
from hapax.grammar.arguments import checked
from hapax.grammar.errors import HapaxError
from hapax.grammar.extras import extras_named
from hapax.grammar.words import counted

ADDING = frozenset({"context"})
"""Rewordings that add events of their own."""


class LemmInflect:
    """Inflection by LemmInflect. Raises ExtraMissing if it is not installed."""

    def __init__(self) -> None:
        with extras_named():
            import lemminflect
        self._forms = lemminflect.getInflection

    def inflect(self, lemma: str, tag: str) -> str | None:
        """The form of a lemma for a Penn Treebank tag; None for a word that is not in the dictionary."""
        forms = self._forms(lemma, tag, inflect_oov=False)
        return str(forms[0]) if forms else None


@dataclass(slots=True)
class ChangeCount:
    """Sentences that a change applied to, and of these the ones that were parsed back to the same events."""

    applied: int = 0
    kept: int = 0


@dataclass(slots=True)
class Rewordings:
    """Originals, each followed by its rewordings, with counts by kind of rewording."""

    items: list[WinogradItem] = field(default_factory=list)
    counts: dict[str, ChangeCount] = field(default_factory=dict)
    unread: int = 0
    """Originals whose entities or pronoun the parser did not locate."""

    @property
    def originals(self) -> int:
        return sum(not item.rewording for item in self.items)

    def to_result(self) -> ExperimentResult:
        """Sentences by kind of rewording."""
        rows = [(kind, str(count.applied), str(count.kept)) for kind, count in self.counts.items()]
        table = ResultTable("", ("rewording", "made", "kept: parsed to the same events"), rows)
        figures: dict[str, Any] = {"originals": self.originals, "unread": self.unread, "rewordings": self.counts}
        notes = [f"{counted(self.originals, 'original')}, of which {self.unread} were not parsed."]
        return ExperimentResult([table], figures, notes=notes)


@checked
@extras_named()
def reword_schemas(
    paths: Sequence[str | Path],
    kinds: Sequence[str] = (),
    *,
    seed: int = 0,
    skip_faulty: bool = False,
    skip_leaked: bool = False,
) -> Evaluation[Rewordings]:
    """Reword the sentences of files, each in the ways named by `kinds` (all if empty), which `write_rewordings` writes.

    A rewording is kept if its sentence is parsed to the same events. It needs the extra `english`. The same `seed`
    makes the same choices. `skip_faulty`, `skip_leaked`: as for `read_schemas`. Raises HapaxError.
    """
    items = read_schemas(*paths, skip_faulty=skip_faulty, skip_leaked=skip_leaked)
    return Evaluation.of(Rewording(kinds or tuple(CHANGES), seed).of(items))


@checked
def write_rewordings(evaluation: Evaluation[Rewordings], target: str | Path) -> None:
    """Write originals and rewordings to a JSONL file, which all commands on schemas read."""
    write_lines(target, (json_line(item.to_json()) for item in evaluation.value.items))


class Rewording:
    """Rewords items. `kinds`: names of changes; the same `seed` makes the same choices of words."""

    def __init__(
        self,
        kinds: Sequence[str] = tuple(CHANGES),
        seed: int = 0,
        parser: Parser | None = None,
        inflector: Inflector | None = None,
        lexicon: WordClasses | None = None,
    ) -> None:
        unknown = [kind for kind in kinds if kind not in CHANGES]
        if unknown:
            raise HapaxError(f"There is no rewording {unknown[0]!r}. Choose from {', '.join(CHANGES)}.")
        self._kinds, self._seed = tuple(dict.fromkeys(kinds)), seed
        self._parser = SpacyParser() if parser is None else parser
        self._inflector = LemmInflect() if inflector is None else inflector
        self._lexicon = shipped_lexicon() if lexicon is None else lexicon

    def of(self, items: Iterable[WinogradItem]) -> Rewordings:
        """Originals among the items with their rewordings."""
        made = Rewordings(counts={kind: ChangeCount() for kind in self._kinds})
        for item in items:
            # A blank has no place in a parse, and a rewording is not reworded again.
            if item.rewording or item.pronoun == BLANK:
                continue
            original = replace(item, base=item.base or item.id)
            made.items.append(original)
            sentence = parsed(original, self._parser)
            if sentence is None:
                made.unread += 1
                continue
            for kind in self._kinds:
                # Each choice has its own chance, so that other kinds and items do not change it.
                chance = random.Random(f"{self._seed} {kind} {item.id}")  # noqa: S311  # no secret
                sources = WordSources(self._inflector, self._lexicon.wordnet, self._lexicon.genders, chance)
                changed = CHANGES[kind](sentence, sources)
                if changed is not None:
                    made.counts[kind].applied += 1
                    reworded = self._checked(sentence, changed, kind)
                    if reworded is not None:
                        made.counts[kind].kept += 1
                        made.items.append(reworded)
        return made

    def _checked(self, sentence: ParsedItem, changed: ChangedWords, kind: str) -> WinogradItem | None:
        """The reworded item; None if its sentence is the same or is parsed to other events."""
        placed = as_text(changed.words, sentence.schema.pronoun.index)
        if placed is None or placed[0] == sentence.item.text:
            return None
        text, start = placed
        pronoun = next(word.text for word in changed.words if word.source == sentence.schema.pronoun.index)
        item = replace(
            sentence.item,
            id=f"{sentence.item.id}/{kind}",
            pair=f"{sentence.item.pair}/{kind}",
            text=text,
            pronoun=text[start : start + len(pronoun)],
            options=changed.options,
            pronoun_start=start,
            rewording=kind,
        )
        again = parsed(item, self._parser)
        return item if again is not None and _says_the_same(sentence, again, kind in ADDING) else None


def _says_the_same(original: ParsedItem, reworded: ParsedItem, adding: bool) -> bool:
    """True if both sentences have the same events, or the second one more of them if it is `adding`."""
    before, after = _events(original), _events(reworded)
    # Counters as multisets: what one sentence has more often than the other.
    if (before - after) or (not adding and after - before):
        return False
    return _relation(original) == _relation(reworded)


def _events(sentence: ParsedItem) -> Counter[tuple[Any, ...]]:
    """Events with entities and pronoun as marks, so that other names and numbers are the same event."""
    marks = {head.index: f"entity {number}" for number, head in enumerate(sentence.schema.heads)}
    marks[sentence.schema.pronoun.index] = "the pronoun"
    events: Counter[tuple[Any, ...]] = Counter()
    for event in sentence.reader.events():
        roles = frozenset((role, marks.get(index, sentence.parse[index].lemma)) for role, index in event.roles.items())
        events[event.lemma, event.part, roles, event.negative, event.modal, event.degree, event.under] += 1
    return events


def _relation(sentence: ParsedItem) -> str | None:
    """Relation of the pronoun's clause to the event that names both entities; None if no event does."""
    heads, pronoun = {head.index for head in sentence.schema.heads}, sentence.schema.pronoun.index
    for event in sentence.reader.events():
        if heads <= set(event.roles.values()):
            return relation_between(sentence.parse, event.place, pronoun)
    return None
