"""Reference tables in the roles of a model: they propose values, judge claims and rank texts by popularity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.llm_oracle.protocols import (
    ClaimText,
    CriticScore,
    Generation,
    GenerationParameters,
    GenerationRequest,
    LogLikelihood,
    ModelIdentity,
    Usage,
)
from hapax.llm_oracle.questions.prompts import read_prompt, stated_claim
from hapax.llm_oracle.reading.link_replies import parse_number
from hapax.llm_oracle.reading.sentence_reader import SentenceReader, SentenceReading
from hapax.llm_oracle.references.mapping import read_mapping
from hapax.llm_oracle.references.names import NameIndex, name_key
from hapax.llm_oracle.references.reference import NOT_COVERED, Reference, Verdict

MOST_NAME_WORDS = 6
"""Words of a name that is looked for in a text."""

UNKNOWN_SHARE = 1e-9
"""Share of popularity of a text without a listed name."""

LEAST_POPULARITY = 0.5
"""Popularity of a name without any: half of the least that a count can be."""

CACHED_VALUES = 4096
"""Questions whose values are remembered between the calls about them."""

# `Saffron is an ingredient.`, as `prompts.type_claim` writes it.
_TYPE_CLAIM = re.compile(r"(?P<value>.{1,400}) is an? (?P<type>[^.]{1,100})\.?", re.DOTALL)
_OPEN = re.compile(r"\[\w+\]|[A-Z]\w*[a-z][A-Z]\d*")
"""`[B]` or `PersonX`, but no abbreviation such as `USA`, which tables have as aliases."""

_ONE_SENTENCE_END = re.compile(r"\.$")
_WORDS = re.compile(r"\w+")


class ReferenceModel:
    """Knowledge model, critic and ranker made of references. Of several, the first that covers a claim decides."""

    def __init__(self, name: str, paths: Sequence[Path], library: Library) -> None:
        references = [Reference(read_mapping(path), path.parent, library) for path in paths]
        self.references = tuple(references)
        self.library = library
        predicates: list[str] = []
        types: list[str] = []
        for reference in references:
            predicates += reference.predicates
            types += reference.types
        revision = "-".join(reference.revision for reference in references)
        self.identity = ModelIdentity(
            f"reference/{name}", revision, tuple(dict.fromkeys(predicates)), tuple(dict.fromkeys(types))
        )
        self._reader = SentenceReader(library)
        self._values = lru_cache(CACHED_VALUES)(self._proposed)

        self._opening = (name, tuple(paths), library)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the files itself, because the tables are large."""
        return open_reference, self._opening

    # -- knowledge model

    def generate(self, requests: Sequence[GenerationRequest], parameters: GenerationParameters) -> list[Generation]:
        """Numbered lists of values, most popular first, without those that a request excludes."""
        del parameters  # nothing is sampled
        return [self._generation(request) for request in requests]

    def proposals(self, prompt: str) -> dict[Value, float]:
        """The values for a prompt in LINK's words with their popularity, most popular first."""
        parts = read_prompt(prompt)
        return dict(self._values(parts.sentence, parts.variable)) if parts else {}

    def _generation(self, request: GenerationRequest) -> Generation:
        parts = read_prompt(request.prompt)
        if parts is None:
            return Generation("")
        excluded = {name_key(value) for value in request.excluded_values}
        lines: list[str] = []
        for value, _ in self._values(parts.sentence, parts.variable):
            if len(lines) == parts.count:
                break
            if name_key(str(value)) not in excluded:
                lines.append(f"{len(lines) + 1}. {value}.")
        return Generation("\n".join(lines), usage=Usage(len(request.prompt.split()), 3 * len(lines)))

    def _proposed(self, sentence: str, variable: str) -> tuple[tuple[Value, float], ...]:
        """Values of the slot that make all covered clauses of a sentence true, most popular first."""
        slot = f"[{variable}]"
        common: dict[Value, float] | None = None
        for clause in self._clauses(sentence):
            values = self._clause_values(clause, slot)
            if values is None:
                continue
            # Of the first clause, whose popularity ranks the values.
            common = values if common is None else {value: common[value] for value in common if value in values}
        ranked = sorted((common or {}).items(), key=lambda pair: (-pair[1], str(pair[0])))
        return tuple(ranked)

    def _clauses(self, sentence: str) -> list[str]:
        """The sentence, or its parts that "and" joins if it is not a clause as a whole."""
        if any(self._reader.readings(sentence)) or " and " not in sentence:
            return [sentence]
        pieces = sentence.split(" and ")
        clauses: list[str] = []
        while pieces:
            # A name may contain "and", so the longest clause that can be read wins.
            length = next(
                (size for size in range(len(pieces), 1, -1) if self._best(" and ".join(pieces[:size])) is not None), 1
            )
            clauses.append(" and ".join(pieces[:length]))
            pieces = pieces[length:]
        return clauses

    def _clause_values(self, clause: str, slot: str) -> dict[Value, float] | None:
        """Values of the slot by all references that cover the clause; None if there are none."""
        reading = self._best(clause)
        if reading is None or reading.denied or slot not in reading.slots:
            return None
        position = reading.slots.index(slot)
        pattern = [None if _OPEN.fullmatch(text) else self._value(text) for text in reading.slots]
        values: dict[Value, float] | None = None
        for reference in self.references:
            if reading.signature.indicator in reference.predicates:
                own = reference.values(reading.signature.indicator, pattern, position)
                # The popularity of the reference that is named first stays.
                values = {**own, **(values or {})}
        return values

    # -- critic

    reads_origins = True

    def probabilities(self, claims: Sequence[str]) -> list[CriticScore]:
        """1 for a true claim, 0 for a false one; a claim that no table covers is marked so."""
        return [self._score(claim) for claim in claims]

    def verdict(self, claim: str) -> Verdict:
        """Truth of a claim by the first reference that covers it: by its origin, or else by its words."""
        if isinstance(claim, ClaimText) and claim.typed is not None:
            return self._typed(*claim.typed)
        if isinstance(claim, ClaimText) and claim.atom is not None:
            return self._stated(claim.atom.indicator, claim.atom.values) if claim.atom.is_ground else NOT_COVERED
        words = _ONE_SENTENCE_END.sub("", stated_claim(claim).strip())
        reading = self._best(words)
        if reading is not None:
            if any(_OPEN.fullmatch(text) for text in reading.slots):
                return NOT_COVERED
            verdict = self._stated(reading.signature.indicator, [self._value(text) for text in reading.slots])
            if verdict.truth is not None and reading.denied:
                return Verdict(not verdict.truth, verdict.basis)
            return verdict
        match = _TYPE_CLAIM.fullmatch(words)
        if match is None:
            return NOT_COVERED
        return self._typed(match["value"], match["type"])

    def _stated(self, indicator: str, arguments: Sequence[Value]) -> Verdict:
        return self._first(reference.judge(indicator, arguments) for reference in self.references)

    def _typed(self, value: str, data_type: str) -> Verdict:
        return self._first(reference.judge_type(value, data_type) for reference in self.references)

    @staticmethod
    def _first(verdicts: Iterator[Verdict]) -> Verdict:
        return next((verdict for verdict in verdicts if verdict.truth is not None), NOT_COVERED)

    def _score(self, claim: str) -> CriticScore:
        verdict = self.verdict(claim)
        usage = Usage(len(claim.split()), 1)
        if verdict.truth is None:
            return CriticScore(0.5, usage, covered=False)
        return CriticScore(float(verdict.truth), usage, basis=verdict.basis)

    def _best(self, clause: str) -> SentenceReading | None:
        """The most specific reading of a clause; None if there is none, or if two predicates share the words."""
        readings = self._reader.best_readings(clause)
        if len({(reading.signature.indicator, reading.denied) for reading in readings}) != 1:
            return None
        return readings[0]

    @staticmethod
    def _value(text: str) -> Value:
        number = parse_number(text)
        return text.strip() if number is None else number

    # -- likelihood

    def log_likelihoods(self, texts: Sequence[str]) -> list[LogLikelihood]:
        """Sum of the ln shares of popularity of the listed names in each text, one token per name."""
        return [self._log_likelihood(text) for text in texts]

    def counts(self, names: Sequence[tuple[str, ...]]) -> list[float]:
        """Popularity of each tuple's least popular name, which limits how often all occur together; 0 if unknown."""
        return [min(map(self._popularity, group), default=0.0) for group in names]

    def _popularity(self, name: str) -> float:
        return max((index.popularity(name) or 0.0 for index in self._indexes), default=0.0)

    def _log_likelihood(self, text: str) -> LogLikelihood:
        words = [match.group() for match in _WORDS.finditer(text)]
        shares: list[float] = []
        start = 0
        while start < len(words):
            size, share = self._longest_name(words[start : start + MOST_NAME_WORDS])
            if size:
                shares.append(share)
            # Names do not overlap: the next one begins behind this one.
            start += max(size, 1)
        logarithms = [math.log(share) for share in shares or [UNKNOWN_SHARE]]
        return LogLikelihood(math.fsum(logarithms), len(logarithms))

    def _longest_name(self, words: Sequence[str]) -> tuple[int, float]:
        """Number of words of the longest name that these words begin with, and its share; 0 if there is none."""
        if not words[0][0].isupper() and not words[0][0].isdigit():
            return self._lower_case_name(words)
        for size in range(len(words), 0, -1):
            share = self._shares.get(name_key(" ".join(words[:size])))
            if share is not None:
                return size, share
        return 0, 0.0

    def _lower_case_name(self, words: Sequence[str]) -> tuple[int, float]:
        """Like `_longest_name`, among names that tables write in lower case: `reading` is not a town in a sentence."""
        for size in range(len(words), 0, -1):
            name = " ".join(words[:size])
            if name_key(name) in self._lower_names:
                return size, self._shares[name_key(name)]
        return 0, 0.0

    @cached_property
    def _indexes(self) -> list[NameIndex]:
        indexes = []
        for reference in self.references:
            for data_type in reference.mapping.types:
                names = reference.names(data_type)
                if names is not None:
                    indexes.append(names)
        return indexes

    @cached_property
    def _shares(self) -> dict[str, float]:
        """Share of its type's popularity by key of a canonical name; the highest where types share a name."""
        shares: dict[str, float] = {}
        for index in self._indexes:
            total = index.total or 1.0
            for key, entity in index.entities.items():
                share = max(entity.popularity, LEAST_POPULARITY) / (total + LEAST_POPULARITY)
                shares[key] = max(shares.get(key, 0.0), share)
        return shares

    @cached_property
    def _lower_names(self) -> frozenset[str]:
        lower: set[str] = set()
        for index in self._indexes:
            lower.update(key for key, entity in index.entities.items() if entity.name[:1].islower())
        return frozenset(lower)

    # -- names

    def names_type(self, data_type: str) -> bool:
        """True if a reference lists names of a data type or of a subtype."""
        return any(reference.names_type(data_type) for reference in self.references)

    def canonical(self, value: str, data_type: str) -> str | None:
        """The canonical name of a value by the first reference that knows it as one of the data type."""
        found = (reference.canonical(value, data_type) for reference in self.references)
        return next((name for name in found if name is not None), None)


@lru_cache(8)
def open_reference(name: str, paths: tuple[Path, ...], library: Library) -> ReferenceModel:
    """The model made of mapping files. Opened once in a process, because tables can be large."""
    return ReferenceModel(name, paths, library)
