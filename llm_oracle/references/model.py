"""Reference tables in the roles of a model: they propose values, judge claims and rank texts by popularity."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from hapax.grammar.data_types import type_key
from hapax.grammar.errors import HapaxError
from hapax.grammar.rules import Library
from hapax.grammar.terms import Value
from hapax.llm_oracle.backend import ALL_ROLES, Backend, ModelRequest
from hapax.llm_oracle.budget import FREE
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
from hapax.llm_oracle.reading.link_replies import parse_number, render_values
from hapax.llm_oracle.reading.sentence_reader import SentenceReader, SentenceReading, clauses_of
from hapax.llm_oracle.references.mapping import ALL, SHIPPED, ReferenceMapping, read_mapping, shipped_names
from hapax.llm_oracle.references.reference import NOT_COVERED, NameIndex, Reference, Verdict, name_key

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
        predicates = dict.fromkeys(chain.from_iterable(reference.predicates for reference in references))
        types = dict.fromkeys(chain.from_iterable(reference.types for reference in references))
        revision = "-".join(reference.revision for reference in references)
        self.identity = ModelIdentity(f"reference/{name}", revision, tuple(predicates), tuple(types))
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

    def _generation(self, request: GenerationRequest) -> Generation:
        parts = read_prompt(request.prompt)
        if parts is None:
            return Generation("")
        excluded = set(map(name_key, request.excluded_values))
        proposed = (value for value, _ in self._values(parts.sentence, parts.variable))
        values = [value for value in proposed if name_key(str(value)) not in excluded][: parts.count]
        return Generation(render_values(values), usage=Usage(len(request.prompt.split()), 3 * len(values)))

    def _proposed(self, sentence: str, variable: str) -> tuple[tuple[Value, float], ...]:
        """Values of the slot that make all covered clauses of a sentence true, most popular first."""
        slot = f"[{variable}]"
        clauses = (self._clause_values(clause, slot) for clause in self._clauses(sentence))
        first, *others = [values for values in clauses if values is not None] or [{}]
        # By the popularities of the first clause.
        common = [pair for pair in first.items() if all(pair[0] in values for values in others)]
        return tuple(sorted(common, key=lambda pair: (-pair[1], str(pair[0]))))

    def _clauses(self, sentence: str) -> list[str]:
        """The sentence, or its parts that "and" joins if it is not a clause as a whole."""
        if any(self._reader.readings(sentence)) or " and " not in sentence:
            return [sentence]
        return list(clauses_of(sentence, lambda clause: self._best(clause) is not None))

    def _clause_values(self, clause: str, slot: str) -> dict[Value, float] | None:
        """Values of the slot by all references that cover the clause; None if there are none."""
        reading = self._best(clause)
        if reading is None or reading.denied or slot not in reading.slots:
            return None
        position = reading.slots.index(slot)
        pattern = [None if _OPEN.fullmatch(text) else _value(text) for text in reading.slots]
        indicator = reading.signature.indicator
        covering = [reference for reference in self.references if indicator in reference.predicates]
        values: dict[Value, float] = {}
        for reference in reversed(covering):  # the popularity of the reference that is named first stays
            values |= reference.values(indicator, pattern, position)
        return values if covering else None

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
            verdict = self._stated(reading.signature.indicator, list(map(_value, reading.slots)))
            return (
                Verdict(not verdict.truth, verdict.basis) if reading.denied and verdict.truth is not None else verdict
            )
        match = _TYPE_CLAIM.fullmatch(words)
        return self._typed(match["value"], match["type"]) if match else NOT_COVERED

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
        while words:
            # The longest name that these words begin with. Of names, only those that tables write in lower case may
            # begin so: `reading` is not a town in a sentence.
            is_lower = not (words[0][0].isupper() or words[0][0].isdigit())
            keys = [name_key(" ".join(words[:size])) for size in range(min(len(words), MOST_NAME_WORDS), 0, -1)]
            named = [key for key in keys if key in self._shares and (not is_lower or key in self._lower_names)][:1]
            shares += map(self._shares.__getitem__, named)
            # Names do not overlap: the next one begins after this one.
            words = words[len(keys) - keys.index(named[0]) if named else 1 :]
        logarithms = [math.log(share) for share in shares or [UNKNOWN_SHARE]]
        return LogLikelihood(math.fsum(logarithms), len(logarithms))

    @cached_property
    def _indexes(self) -> list[NameIndex]:
        indexes: list[NameIndex] = []
        for reference in self.references:
            indexes += filter(None, map(reference.names, reference.mapping.types))
        return indexes

    @cached_property
    def _shares(self) -> dict[str, float]:
        """Share of its type's popularity by key of a canonical name; the highest where types share a name."""
        shares: dict[str, float] = {}
        for index in self._indexes:
            total = sum(entity.popularity for entity in index.entities.values()) or 1.0
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


def _value(text: str) -> Value:
    number = parse_number(text)
    return text.strip() if number is None else number


@lru_cache(8)
def open_reference(name: str, paths: tuple[Path, ...], library: Library) -> ReferenceModel:
    """The model made of mapping files. Opened once in a process, because tables can be large."""
    return ReferenceModel(name, paths, library)


def installed_references() -> tuple[str, ...]:
    """Names of the shipped mappings whose data is installed."""
    return tuple(name for name in shipped_names() if not _missing(read_mapping(SHIPPED / f"{name}.yaml")))


def covering_references(library: Library) -> tuple[str, ...]:
    """Names of the installed mappings with a predicate, or a closed list of a type, that the library uses."""
    used = set(map(type_key, _argument_types(library)))
    names = []
    for name in installed_references():
        model = open_reference(name, (SHIPPED / f"{name}.yaml",), library)
        sections = read_mapping(SHIPPED / f"{name}.yaml").types
        closed = {type_key(title) for title, section in sections.items() if section.closedness == "closed"}
        if model.identity.knows or closed & used:
            names.append(name)
    return tuple(names)


def _argument_types(library: Library) -> set[str]:
    """The data types of all arguments of a library's predicates."""
    return set(chain.from_iterable(signature.argument_types for signature in library.completed().signatures))


def _missing(mapping: ReferenceMapping) -> tuple[str, ...]:
    """Modules and files that a mapping needs and that are not installed."""
    # `find_spec` does not import the module, which may be large.
    return tuple(
        need for need in mapping.needs if not (Path(need).exists() if need.startswith("/") else find_spec(need))
    )


def _paths(argument: str) -> tuple[Path, ...]:
    """The mapping files that an argument names: files, shipped mappings, or `all` of the installed ones."""
    paths: list[Path] = []
    for name in argument.split(","):
        if name == ALL:
            installed = installed_references()
            if not installed:
                raise HapaxError(
                    "No data of a shipped reference is installed. Run `pip install 'hapax-kb[references]'`."
                )
            paths += [SHIPPED / f"{known}.yaml" for known in installed]
        elif name in shipped_names():
            paths.append(SHIPPED / f"{name}.yaml")
        elif Path(name).is_file():
            paths.append(Path(name).absolute())
        else:
            known = ", ".join((*shipped_names(), ALL))
            raise HapaxError(
                f"reference:{name}: there is no such file, and no such mapping ships. Name a file or {known}."
            )
    return tuple(dict.fromkeys(paths))


def _installed(model: str, argument: str) -> tuple[Path, ...]:
    """The mapping files that an argument names. Raises HapaxError if data of one is not installed."""
    paths = _paths(argument)
    for path in paths:
        mapping = read_mapping(path)
        if missing := _missing(mapping):
            remedy = mapping.remedy or "Install them"
            raise HapaxError(f"{model} needs {' and '.join(missing)}, not installed here. {remedy}.")
    return paths


def open_names(model: str, library: Library) -> ReferenceModel:
    """The reference of a model string, for the names of its types. Raises HapaxError if the rules use none of them."""
    kind, _, argument = model.partition(":")
    if kind != "reference" or not argument:
        raise HapaxError(f"{model} has no canonical names. Name a reference, such as reference:geo.")
    opened = open_reference(argument, _installed(model, argument), library)
    listed = dict.fromkeys(chain.from_iterable(reference.mapping.types for reference in opened.references))
    if not any(map(opened.names_type, _argument_types(library))):
        raise HapaxError(
            f"{model} has names of {', '.join(listed) or 'no type'}, of which the rules have no argument. "
            "Declare such a type in the rules, or name another reference."
        )
    return opened


def _open(request: ModelRequest) -> ReferenceModel:
    library = request.options.library
    if library is None:
        raise HapaxError(f"{request.model} needs rules, whose predicates its tables fill. Name a rule file.")
    paths = _installed(request.model, request.argument)
    model = open_reference(request.argument, paths, library)
    judges_types = any(map(model.names_type, _argument_types(library)))
    for reference in model.references:
        # Of several mappings, some may have no predicate of these rules.
        if reference.mapping.predicates and not reference.predicates and not judges_types and len(paths) == 1:
            listed = ", ".join(reference.mapping.predicates)
            raise HapaxError(f"{request.model}: the rules use none of its predicates ({listed}). Name rules that do.")
    return model


BACKEND = Backend(
    open=_open,
    argument="FILE",
    roles=ALL_ROLES,
    abilities=f"tables by a mapping file, or {', '.join((*shipped_names(), ALL))}: true, false or not covered",
    price=FREE,
)
