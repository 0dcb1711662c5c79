"""Two small WordNets, and a corpus of some 2,000 triples with rows planted for every filter."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

Synsets = Mapping[str, tuple[Sequence[str], Mapping[str, Sequence[str]]]]
"""By id, which ends in the part of speech: lemmas, and related synsets by relation."""

ENGLISH: Synsets = {
    "go-v": (["go", "travel"], {"hyponym": ["visit-v"]}),
    "call-n": (["visit", "call"], {"hyponym": ["courtesy-n"]}),
    "courtesy-n": (["courtesy call"], {"hypernym": ["call-n"]}),
    "visit-v": (["visit", "see"], {"hypernym": ["go-v"], "hyponym": ["tour-v", "inspect-v", "stop-v", "revisit-v"]}),
    "tour-v": (["tour", "do the sights of"], {"hypernym": ["visit-v"]}),
    "inspect-v": (["inspect"], {"hypernym": ["visit-v"]}),
    "stop-v": (["stop by"], {"hypernym": ["visit-v"]}),
    "revisit-v": (["revisit", "visit"], {"hypernym": ["visit-v"]}),
    "afflict-v": (["visit"], {"hyponym": ["plague-v"]}),
    "plague-v": (["plague"], {"hypernym": ["afflict-v"]}),
    "help-v": (["help"], {"hyponym": ["aid-v"]}),
    "aid-v": (["aid", "assist"], {"hypernym": ["help-v"]}),
    "buy-v": (["buy", "purchase"], {"hypernym": ["get-v"], "entails": ["pay-v"]}),
    "get-v": (["get", "acquire"], {"hyponym": ["buy-v"]}),
    "pay-v": (["pay"], {}),
    "own-v": (["own"], {}),
    "shop-v": (["shop"], {}),
}

CHINESE: Synsets = {
    "visit-v": (["访问", "拜访"], {"hyponym": ["tour-v"]}),
    "tour-v": (["参观"], {"hypernym": ["visit-v"]}),
    "work-v": (["工作"], {"hyponym": ["teach-v"]}),
    "teach-v": (["任教"], {"hypernym": ["work-v"]}),
}


FORMS = {"go": "went", "shop": "shopped"}
"""Irregular forms, which WordNets list with their lemmas."""


def lexicon_xml(name: str, language: str, synsets: Synsets) -> str:
    """A WordNet in WN-LMF; a lemma's senses stand in the order of the synsets."""
    entries: dict[tuple[str, str], list[str]] = {}
    for key, (lemmas, _) in synsets.items():
        for lemma in lemmas:
            entries.setdefault((lemma, key[-1]), []).append(key)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE LexicalResource SYSTEM "http://globalwordnet.github.io/schemas/WN-LMF-1.1.dtd">',
        f'<LexicalResource><Lexicon id="{name}" label="{name}" language="{language}" email="a@b" license="x" version="1">',
    ]
    for number, ((lemma, part), keys) in enumerate(entries.items()):
        senses = "".join(f'<Sense id="{name}-{number}-{key}" synset="{name}-{key}"/>' for key in keys)
        forms = f"<Form writtenForm={quoteattr(FORMS[lemma])}/>" if lemma in FORMS else ""
        lemma_xml = f'<Lemma writtenForm={quoteattr(lemma)} partOfSpeech="{part}"/>'
        lines.append(f'<LexicalEntry id="{name}-{number}">{lemma_xml}{forms}{senses}</LexicalEntry>')
    for key, (lemmas, relations) in synsets.items():
        written = "".join(
            f'<SynsetRelation relType="{relation}" target="{name}-{target}"/>'
            for relation, targets in relations.items()
            for target in targets
        )
        definition = f"<Definition>as {lemmas[-1]} in {key}</Definition>"
        lines.append(f'<Synset id="{name}-{key}" ili="" partOfSpeech="{key[-1]}">{definition}{written}</Synset>')
    return "\n".join([*lines, "</Lexicon></LexicalResource>"])


def install(folder: Path) -> None:
    """Both WordNets as `toy-en:1` and `toy-zh:1`, in a database of their own."""
    import wn

    wn.config.data_directory = folder
    for name, language, synsets in (("toy-en", "en", ENGLISH), ("toy-zh", "cmn", CHINESE)):
        path = folder / f"{name}.xml"
        path.write_text(lexicon_xml(name, language, synsets), "utf-8")
        wn.add(path, progress_handler=None)


def parsed(word: str) -> str:
    """`shop.in` as a CCG parser's predicate."""
    return f"({word}.1,{word}.2)"


FILLERS = tuple(parsed(f"filler{number}") for number in range(14))
CORE = (parsed("visit"), parsed("help"), *FILLERS)
"""The sixteen predicates that the corpus states of every pair that is asked about."""


@dataclass
class Planted:
    """The lines of a corpus, and how many triples each filter should drop."""

    lines: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    asked: set[tuple[str, str]] = field(default_factory=set)

    def say(self, who: str, verb: str, where: str, date: str, fate: str = "", **more: str) -> None:
        """One triple in a document of its own, unless `more` names it."""
        number = len(self.lines)
        line = {"subject": who, "predicate": verb, "object": where, "types": ["person", "location"], "date": date}
        self.lines.append({**line, "document": f"d{number}", "sentence": f"{who} {verb} {where} {number}.", **more})
        if fate:
            self.dropped[fate] += 1

    def say_all(self, who: str, verbs: Iterable[str], where: str, date: str, fate: str = "") -> None:
        for verb in verbs:
            self.say(who, verb, where, date, fate)

    def write(self, path: Path) -> Path:
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines), "utf-8")
        return path


def planted(seed: int = 0) -> Planted:
    """Ninety pairs that are asked about, in nine slices, and rows for each filter; in an order drawn."""
    corpus = Planted()
    for number in range(90):
        who, where, date = f"Person {number}", f"Town {number}", f"2008-04-{1 + 3 * (number % 9):02d}"
        corpus.asked.add((who, where))
        corpus.say_all(who, CORE, where, date)
        corpus.say(who, parsed("be"), where, date, "vague predicate")
        corpus.say(who, parsed(f"rare{number}"), where, date, "too few occurrences of the predicate")
    for number in range(70):  # what is often said, though never of a pair that is asked about
        for verb in ("tour", "inspect", "assist"):
            corpus.say(f"{verb}er {number}", parsed(verb), f"Place {number}", "2008-06-01", "too few mentions")
    for number in range(5):  # ... but for these, in another slice
        corpus.say(f"Person {number}", parsed("tour"), f"Town {number}", "2008-07-01", "too few mentions")
        corpus.say(f"Person {number}", parsed("aid"), f"Town {number}", "2008-07-01", "too few mentions")
    corpus.say_all("Few", CORE[:14], "Village", "2008-05-01", "too few mentions")
    corpus.say_all("Many", CORE * 2, "City", "2008-05-01", "too many mentions")
    corpus.say_all("Dull", CORE[:10] + CORE[:10], "Village", "2008-05-04", "too few different predicates")
    for number in range(30):  # thirty predicates in fifteen documents
        verb = (*CORE, *(parsed(f"once{index}") for index in range(14)))[number]
        corpus.say("Busy", verb, "City", "2008-05-07", "too many different predicates", document=f"b{number % 15}")
    corpus.say_all("He", CORE, "Village", "2008-05-10", "pronoun")
    corpus.say_all("Somebody", CORE, "City", "2008-05-10", "pronoun")
    corpus.say_all("Nobody knows", CORE, "when", "some day", "undated")
    for number in range(25):
        corpus.lines.append({**corpus.lines[number], "document": f"copy{number}"})
        corpus.dropped["sentence repeated"] += 1
    random.Random(seed).shuffle(corpus.lines)
    return corpus
