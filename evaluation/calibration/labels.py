"""Labels of facts from their sources: people's votes, given facts, references, the atlas, and files."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from pathlib import Path

from hapax.engine.inference.derive import BULK_LIMITS
from hapax.engine.inference.run_facts import RunFacts
from hapax.engine.search.decidable import GivenFacts
from hapax.engine.search.score_maps import (
    VOTES,
    ProposedAtom,
    entity_key,
    fact_claim,
    proposed_types,
    voted_truths,
)
from hapax.grammar.errors import HapaxError
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.rules import Library
from hapax.grammar.terms import Atom, Constant, Value
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.answers import parse_number
from hapax.llm_oracle.backend import OpeningOptions
from hapax.llm_oracle.protocols import CRITIC
from hapax.llm_oracle.registry import open_model

GIVEN, ATLAS = "given", "atlas"

SOURCES = "votes, given, atlas, reference:NAME, or a file"
"""Sources of labels in words."""

TRUTHS = {"true": True, "false": False}


class LabelReader:
    """Reads labels of facts. `proposed`: the facts that a knowledge base's candidates would make, by fact id.

    A file may label other facts, too; they are in `proposed` once it is read.
    """

    def __init__(
        self, kb: KnowledgeBase, library: Library, proposed: dict[str, ProposedAtom], opening: OpeningOptions
    ) -> None:
        self.proposed = proposed
        self._kb, self._library, self._opening = kb, library, opening

    def truths(self, source: str) -> dict[str, bool]:
        """Truth by fact id, by one source. Raises HapaxError for an unknown source, or a faulty file."""
        readers: Mapping[str, Callable[[], dict[str, bool]]] = {
            VOTES: lambda: voted_truths(self._kb),
            GIVEN: self._given,
            ATLAS: self._atlas,
        }
        if source in readers:
            return readers[source]()
        if source.startswith("reference:"):
            return self._referenced(source)
        if self.is_file(source):
            return self._listed(Path(source))
        raise HapaxError(f"{source}: there is no such file and no such source of labels. Name {SOURCES}.")

    @staticmethod
    def is_file(source: str) -> bool:
        """True for a file of labels, false for the other sources."""
        is_named = source in (VOTES, GIVEN, ATLAS) or source.startswith("reference:")
        return not is_named and Path(source).is_file()

    def type_truths(self, source: str) -> dict[str, bool]:
        """Truth by the claims about data types of proposed values, by references and the atlas; others label none."""
        proposed = proposed_types(self._kb, self._library)
        if source == ATLAS:
            from hapax.llm_oracle.embedded.atlas import load_atlas

            atlas = load_atlas()
            known = {item.claim: atlas.type_truth(item.value, item.data_type) for item in proposed}
            return {claim: truth for claim, truth in known.items() if truth is not None}
        if not source.startswith("reference:"):
            return {}
        scores = open_model(source, CRITIC, self._opening).probabilities([item.claim for item in proposed])
        pairs = zip(proposed, scores, strict=True)
        return {item.claim: score.probability >= 0.5 for item, score in pairs if score.covered}

    def types_of_claims(self) -> dict[str, str]:
        """The data type of each of these claims."""
        return {item.claim: item.data_type for item in proposed_types(self._kb, self._library)}

    def _given(self) -> dict[str, bool]:
        facts = GivenFacts(RunFacts(self._kb, self._library), self._library, BULK_LIMITS.seconds)
        atoms = {key: _atom(proposed) for key, proposed in self.proposed.items()}
        truths = facts.truths(atoms.values())
        # 1 or 0: by given facts, withdrawals, declarations or arithmetic.
        return {key: truths[atom] == 1.0 for key, atom in atoms.items() if truths[atom] is not None}

    def _atlas(self) -> dict[str, bool]:
        """Truth by the atlas, where it has a complete line for the fact's key."""
        from hapax.llm_oracle.embedded.atlas import load_atlas

        atlas = load_atlas()
        return {
            key: atlas.holds(proposed.predicate, proposed.arguments)
            for key, proposed in self.proposed.items()
            if atlas.knows_key(proposed.predicate, proposed.arguments)
        }

    def _referenced(self, source: str) -> dict[str, bool]:
        critic = open_model(source, CRITIC, self._opening)
        keys = list(self.proposed)
        scores = critic.probabilities([self.proposed[key].claim for key in keys])
        return {key: score.probability >= 0.5 for key, score in zip(keys, scores, strict=True) if score.covered}

    def _listed(self, path: Path) -> dict[str, bool]:
        """Labels of a file: lines of `true` or `false`, a predicate and its arguments, separated by tabs."""
        truths: dict[str, bool] = {}
        lines: dict[str, int] = {}
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
        except (OSError, UnicodeDecodeError, csv.Error) as fault:
            raise HapaxError(f"{path}: cannot be read ({fault}). Give lines of text in UTF-8.") from None
        for number, row in enumerate(rows, start=1):
            if row and not row[0].startswith("#"):
                proposed = self._labelled(row, f"{path}:{number}")
                truth, first = TRUTHS[row[0]], lines.setdefault(proposed.id, number)
                if truths.setdefault(proposed.id, truth) is not truth:
                    earlier = str(not truth).lower()
                    raise HapaxError(
                        f"{path}:{number}: says {row[0]}, line {first} {earlier}, of the same fact. Remove one of them."
                    )
                # A file may label facts that no search has proposed.
                self.proposed.setdefault(proposed.id, proposed)
        return truths

    def _labelled(self, row: list[str], place: str) -> ProposedAtom:
        # Padded, so that a line of one cell unpacks and gets the message below.
        truth, predicate, *arguments = (*row, "", "")[: max(len(row), 2)]
        indicator = f"{predicate}/{len(arguments)}"
        signatures = {item.indicator: item for item in self._library.completed().signatures}
        if truth not in TRUTHS or indicator not in signatures:
            raise HapaxError(
                f"{place}: not true or false, a predicate of the rules and its arguments, separated by tabs.",
                Remedy("Correct the line, or name the rules with {}.", Setting("rules")),
            )
        values: list[Value] = []
        for text, data_type in zip(arguments, signatures[indicator].argument_types, strict=True):
            # As a search reads values, or the label would be of another fact.
            number = parse_number(text, data_type) if self._library.is_numeric(data_type) else None
            values.append(text if number is None else number)
        atom = Atom(predicate, tuple(map(Constant, values)))
        return ProposedAtom(predicate, tuple(values), fact_claim(atom, self._library), entity_key(values[-1:]))


def _atom(proposed: ProposedAtom) -> Atom:
    return Atom(proposed.predicate, tuple(map(Constant, proposed.arguments)))
